//! Indexes that ingests extend, with the real binary: killed at any moment, merged when the delta has
//! grown, rolled back, and swapped under a running server.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::wait::until;
use crate::common::{Client, Site, TODAY};

/// The lists since the last complete index may have up to a third as many names as the index.
const SETTINGS: &str = "[index]\nextend_from = 1\nextend_percent = 33\n";
const LISTS: usize = 10;
/// Deadline from a switch of `CURRENT` to responses from it, on a busy machine.
const SWAP_MAX: Duration = Duration::from_secs(60);

const QUESTIONS: [&str; 7] = [
    "/api/v1/drops?view=all&limit=1000",
    "/api/v1/drops?view=all&sort=name&order=desc&limit=1000&offset=7",
    "/api/v1/drops?view=active&facets=tld,length,dqs&limit=5",
    "/api/v1/search?q=l1&limit=100",
    "/api/v1/search?q=l0x1&tld=com,de&limit=100",
    "/api/v1/tlds",
    "/api/v1/label/l0x7",
];

/// Returns responses of the served index, without the number of the generation.
fn answers(client: &mut Client) -> [Value; QUESTIONS.len()] {
    QUESTIONS.map(|question| {
        let mut answer = client.get(question).json();
        if let Some(members) = answer.as_object_mut() {
            members.remove("generation");
        }
        answer
    })
}

fn wait_for_the_current(site: &Site, client: &mut Client) {
    let generation = site.manifest()["generation"].clone();
    until(SWAP_MAX, "the generation is served", || {
        client.get(QUESTIONS[0]).json()["generation"] == generation
    });
}

/// Creates a list of drops, most of which have new labels; the others have known labels under any
/// suffix.
fn list(rng: &mut Rng, at: usize) -> String {
    let rows = if at == 0 { 1_500 } else { 120 };
    let mut text = String::from("domain,drop_date\n");
    for _ in 0..rows {
        let label = match rng.chance(70) {
            true => format!("l{at}x{}", rng.below(900)),
            false => format!("l{}x{}", rng.below(at + 1), rng.below(900)),
        };
        let tld = rng.pick(&["com", "de", "net", "co.uk", "io"]);
        text.push_str(&format!("{label}.{tld},2026-03-{:02}\n", 1 + rng.below(9)));
    }
    text
}

fn arguments<'a>(settings: &'a str, path: &'a str) -> [&'a str; 9] {
    let observed_at = "2026-03-14T12:00:00Z";
    let at = "--observed-at";
    ["--today", TODAY, "--config", settings, "ingest", "--local", at, observed_at, path]
}

fn drops(site: &Site) -> String {
    site.ok(&["export", "drops", "--view", "all", "--today", TODAY])
}

#[test]
fn killed_ingests_lead_to_the_same_index_as_undisturbed_ones() {
    let mut rng = Rng::new(seed());
    let (calm, killed) = (Site::new(), Site::new());
    let settings = [calm.settings(SETTINGS), killed.settings(SETTINGS)];
    let (mut kills, mut extended, mut whole) = (0, 0, 0);
    let wanted = figure(18, 200);
    for at in 0..LISTS {
        let text = list(&mut rng, at);
        let name = format!("list{at}.csv");
        let paths = [&calm, &killed].map(|site| {
            let path = site.write(&name, text.as_str());
            path.to_str().expect("UTF-8").to_owned()
        });
        let begun = Instant::now();
        calm.ok(&arguments(&settings[0], &paths[0]));
        let mut within = begun.elapsed().as_micros() as usize;
        let args = arguments(&settings[1], &paths[1]);
        // If an attempt completes, there is no work left for the next attempts.
        for _ in 0..3 * wanted / LISTS {
            if kills >= wanted * (at + 1) / LISTS {
                break;
            }
            let mut child = killed.command(&args).spawn().expect("it starts");
            std::thread::sleep(Duration::from_micros(rng.below(within) as u64));
            if child.try_wait().expect("a child").is_none() {
                child.kill().expect("killed");
                kills += 1;
            } else {
                // The machine was busier during the undisturbed ingest.
                within = within.div_ceil(2);
            }
            child.wait().expect("ended");
            if at > 0 {
                // The current generation is complete, and so is its base.
                killed.ok(&["index", "verify"]);
            }
        }
        killed.ok(&args);
        match calm.manifest()["extends"].is_null() {
            true => whole += 1,
            false => extended += 1,
        }
        assert_eq!(drops(&killed), drops(&calm), "{name}");
        let names =
            |site: &Site| [&site.manifest()["names"], &site.manifest()["drops"]].map(Value::clone);
        assert_eq!(names(&killed), names(&calm), "{name}");
    }
    say(&format!("{kills} kills; {extended} lists extended the index, {whole} built it whole"));
    assert!(extended > LISTS / 2 && whole > 1, "{extended} extended, {whole} whole");
    assert!(kills * 3 >= wanted, "{kills} of {wanted} kills");
    // No other files are left: even if the last kill came after the switch of `CURRENT`, so that the
    // last ingest had nothing to build.
    let entries = std::fs::read_dir(killed.index()).expect("readable");
    let hidden = entries.filter(|entry| {
        let name = entry.as_ref().expect("an entry").file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(hidden.count(), 0);
}

/// A server swaps from delta to delta, to a complete index and back over deltas; each response equals
/// that of a complete index of the same lists.
#[test]
fn a_server_responds_from_each_extension_as_from_a_whole_index() {
    let mut rng = Rng::new(seed());
    let (site, whole) = (Site::new(), Site::new());
    let settings = site.settings(&format!("{SETTINGS}keep = 3\n"));
    let without = whole.settings("[index]\nextend_from = 0\n");
    let ingest = |site: &Site, settings: &str, name: &str, text: &str| {
        let path = site.write(name, text);
        site.ok(&arguments(settings, path.to_str().expect("UTF-8")));
    };
    let first = list(&mut rng, 0);
    ingest(&site, &settings, "first.csv", &first);
    ingest(&whole, &without, "first.csv", &first);
    let keys = [&site, &whole].map(|site| site.account("a@example.com", "api"));
    let servers = [(&site, &settings), (&whole, &without)]
        .map(|(site, settings)| site.serve_with(&["--today", TODAY, "--config", settings]));
    let mut clients = [0, 1].map(|at| servers[at].client_with(&keys[at]));
    let mut before = Vec::new();
    for at in 1..=6 {
        let text = list(&mut rng, at);
        ingest(&site, &settings, &format!("list{at}.csv"), &text);
        ingest(&whole, &without, &format!("list{at}.csv"), &text);
        let sites = [&site, &whole].into_iter().zip(&mut clients);
        sites.for_each(|(site, client)| wait_for_the_current(site, client));
        assert_eq!(whole.manifest()["extends"], Value::Null);
        let [ours, theirs] = clients.each_mut().map(answers);
        assert_eq!(ours, theirs, "list {at}");
        before.push((site.manifest()["extends"].is_null(), ours));
    }
    assert!(before.iter().any(|(is_whole, _)| *is_whole));
    assert!(before.iter().filter(|(is_whole, _)| !is_whole).count() > 2);
    // Rolls back through the kept generations, both deltas and complete ones.
    before.pop();
    for _ in 0..2 {
        site.ok(&["index", "rollback"]);
        wait_for_the_current(&site, &mut clients[0]);
        assert_eq!(answers(&mut clients[0]), before.pop().expect("an answer").1);
    }
    for server in servers {
        server.stop();
    }
}
