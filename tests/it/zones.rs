//! Zone files of consecutive days, through the commands and the inbox, and with kills in between.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine;
use dropdex::facts::Value;
use dropdex::facts::store::Edition;
use dropdex::outbound::dns::Dns;
use dropdex::outbound::guard::Guard;
use dropdex::outbound::http::Client;
use dropdex::outbound::settings;
use dropdex::outbound::transfer::{Transfer, TransferError, TransferKey};
use dropdex::vocab::url::HostRules;
use serde_json::json;

use crate::common::knot::{KEY, Knot};
use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::{Site, gzip};

const FIRST: &str = "2026-03-01";

fn day(number: i32) -> String {
    FIRST.parse::<dropdex::vocab::day::Day>().expect("a day").plus(number).to_string()
}

/// Writes the zone file of a day, packed as registries publish it.
fn zone(site: &Site, on: i32, names: &[String]) -> PathBuf {
    let soa =
        format!("com. 900 in soa a.nic.com. host.nic.com. {} 1800 900 604800 86400\n", 100 + on);
    let mut owners: Vec<String> = names.iter().map(|name| format!("{name}.com.")).collect();
    owners.sort_unstable();
    let mut text = soa.clone();
    for owner in owners {
        // This name is for sale.
        let host = if owner == "zoned0005.com." { "afternic.com" } else { "host.net" };
        for server in [1, 2] {
            let _ = writeln!(text, "{owner}\t172800\tin\tns\tns{server}.{host}.");
        }
    }
    site.write(&format!("com-{}.txt.gz", day(on)), gzip((text + &soa).as_bytes()))
}

fn names(count: usize, gone: &[usize]) -> Vec<String> {
    (0..count).filter(|at| !gone.contains(at)).map(|at| format!("zoned{at:04}")).collect()
}

fn ingest(site: &Site, path: &std::path::Path) -> String {
    site.ok(&["ingest", "--local", path.to_str().expect("UTF-8")])
}

#[test]
fn zone_files_of_a_few_days_become_drops() {
    let site = Site::new();
    ingest(&site, &zone(&site, 0, &names(200, &[])));
    for on in 1..=3 {
        // Name number 7 is renewed on the third day.
        let gone: &[usize] = if on < 3 { &[5, 6, 7] } else { &[5, 6] };
        let printed = ingest(&site, &zone(&site, on, &names(200, gone)));
        assert!(printed.contains("\"compared\""), "{printed}");
    }
    let server = site.serve(&day(3));
    let key = site.account("zones@example.com", "api");
    let mut client = server.client_with(&key);
    let list = client.get("/api/v1/drops?view=all").json();
    let rows = list["drops"].as_array().expect("rows");
    let found: Vec<_> =
        rows.iter().map(|row| (row["name"].as_str(), row["dropDate"].as_str())).collect();
    let dropped = day(1);
    assert_eq!(
        found,
        [(Some("zoned0005.com"), Some(&*dropped)), (Some("zoned0006.com"), Some(&*dropped))]
    );
    let facts = Edition::open(&site.data().join("facts/zone.ddf")).expect("an edition");
    let row = facts.row(b"zoned0005.com").expect("read").expect("a row");
    assert_eq!((facts.rows(), facts.as_of(&row).to_string()), (1, dropped));
    assert_eq!(facts.values(&row), [Some(Value::Enum("for-sale".to_owned()))]);
}

#[test]
fn a_zone_file_that_is_refused_changes_nothing() {
    let site = Site::new();
    ingest(&site, &zone(&site, 0, &names(20, &[])));
    let older = zone(&site, -5, &names(20, &[1]));
    let refused = site.run(&["ingest", "--local", older.to_str().expect("UTF-8")]);
    refused.assert_failed(1, &["serial number 95", "100 was taken before"]);
    let whole = std::fs::read(zone(&site, 1, &names(20, &[1]))).expect("readable");
    let cut = site.write("com-2026-03-02.txt.gz", &whole[..whole.len() - 30]);
    site.run(&["ingest", "--local", cut.to_str().expect("UTF-8")])
        .assert_failed(1, &["fetch the file again"]);
    let printed = ingest(&site, &zone(&site, 1, &names(20, &[])));
    assert!(printed.contains("\"compared\""), "{printed}");
}

/// Ingests are killed at any moment and repeated: the final data is the same.
#[test]
fn kills_leave_the_same_drops() {
    const DAYS: i32 = 14;
    let mut rng = Rng::new(seed());
    let mut days = vec![names(1_500, &[])];
    let mut gone: Vec<usize> = Vec::new();
    for _ in 1..DAYS {
        gone.extend((0..20).map(|_| rng.below(1_500)));
        let back = rng.below(gone.len());
        gone.swap_remove(back);
        days.push(names(1_500, &gone));
    }
    let (calm, killed) = (Site::new(), Site::new());
    let (mut kills, wanted) = (0, figure(20, 100));
    for (on, names) in (0..).zip(&days) {
        let begun = Instant::now();
        ingest(&calm, &zone(&calm, on, names));
        // If an attempt completes, there is no work left for the next ones.
        let soon = begun.elapsed() * 3 / 4;
        let path = zone(&killed, on, names);
        let args = ["ingest", "--local", path.to_str().expect("UTF-8")];
        // Requests that were omitted after an aborted attempt are made on the next day.
        let tries = 3 * wanted.div_ceil(DAYS as usize);
        let by_now = wanted.min(wanted * (on as usize + 1) / (DAYS as usize - 4));
        for _ in 0..tries {
            if kills >= by_now {
                break;
            }
            let mut child = killed.command(&args).spawn().expect("it starts");
            let within = soon.as_micros() as usize + 1;
            std::thread::sleep(Duration::from_micros(rng.below(within) as u64));
            if child.try_wait().expect("a child").is_none() {
                child.kill().expect("killed");
                kills += 1;
            }
            child.wait().expect("ended");
        }
        ingest(&killed, &path);
    }
    say(&format!("{kills} kills"));
    let drops = |site: &Site| site.ok(&["export", "drops", "--view", "all", "--today", &day(DAYS)]);
    assert_eq!(drops(&killed), drops(&calm));
    assert!(drops(&calm).lines().count() > 100);
    assert!(kills * 10 >= wanted * 9, "{kills} of {wanted} kills");
}

const SECRET: &[u8] = b"a secret that client and server share, of sixty-four bytes here.";

/// Transfers the zone `ee` of a server; returns its serial number and the text.
fn transferred(server: &str, key: Option<TransferKey>) -> Result<(u32, String), TransferError> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (host, port) = server.rsplit_once(':').expect("a port");
    let allow = serde_json::from_value(json!([format!("{host}/32:{port}")])).expect("a list");
    let dns = Dns::new(&settings::Dns::default()).expect("a resolver");
    let guard = Guard::new(HostRules { allow, ..HostRules::default() }, dns);
    let client = Client::new(guard, None).expect("a client");
    runtime.block_on(async {
        let server = (host, port.parse().expect("a port"));
        let mut transfer = Transfer::connect(&client, server, "ee", key, 64 << 20).await?;
        let serial = transfer.serial().await?;
        let mut text = Vec::new();
        transfer.run(&mut text).await?;
        Ok((serial, String::from_utf8(text).expect("ASCII")))
    })
}

/// Returns records of a zone that takes many messages.
fn delegations(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let _ = writeln!(
            text,
            "deleg{at:05} NS ns1.host\ndeleg{at:05} NS ns2.host.net.\nns1.deleg{at:05} A 192.0.2.1"
        );
    }
    text + "ns1.host A 192.0.2.7\n"
}

#[test]
fn zones_are_transferred_and_compared() {
    let mut knot = Knot::start_transferable("ee.", &delegations(3_000), None);
    let server = knot.address().to_string();
    let site = Site::new();
    for on in 0..=3 {
        let (serial, text) = transferred(&server, None).expect("transferred");
        assert_eq!(serial, on + 1);
        let path = site.write(&format!("ee-{}.zone", day(on as i32)), text);
        ingest(&site, &path);
        knot.replace(&delegations(2_990));
    }
    let list = site.ok(&["export", "drops", "--view", "all", "--today", &day(4)]);
    let rows: Vec<&str> = list.lines().skip(1).collect();
    assert_eq!(rows.len(), 10, "{list}");
    assert!(rows.iter().all(|row| row.starts_with("deleg0299")), "{list}");
}

#[test]
fn signed_transfers_need_the_key() {
    let secret = base64::engine::general_purpose::STANDARD.encode(SECRET);
    let knot = Knot::start_transferable("ee.", &delegations(2_000), Some(&secret));
    let server = knot.address().to_string();
    let key = |secret: &[u8]| TransferKey::new(KEY, "hmac-sha512", secret.to_vec()).expect("a key");
    let (_, text) = transferred(&server, Some(key(SECRET))).expect("transferred");
    assert_eq!(text.lines().filter(|line| line.contains("deleg01234")).count(), 2);
    assert!(matches!(transferred(&server, None), Err(TransferError::Refused(_))));
    assert!(matches!(transferred(&server, Some(key(b"another secret"))), Err(TransferError::Key)));
    let words = TransferKey::new(KEY, "hmac-md5", Vec::new()).err().expect("refused");
    assert!(words.contains("hmac-sha512"), "{words}");
}

/// A server that closes the connection in the middle, or sends nothing, causes an error and no zone
/// file.
#[test]
fn a_transfer_that_ends_early_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = listener.local_addr().expect("an address").to_string();
    let answers = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let _ = std::io::Read::read(&mut stream, &mut [0; 512]);
            let _ = std::io::Write::write_all(&mut stream, &[0, 40, 0, 1, 0x84]);
        }
    });
    assert!(matches!(transferred(&server, None), Err(TransferError::Ended(_))));
    drop(std::net::TcpStream::connect(&server));
    answers.join().expect("served");
    assert!(matches!(transferred(&server, None), Err(TransferError::Connect { .. })));
}

/// A zone that is transferred on a schedule: `dropdex sources fetch` on four days.
#[test]
fn a_source_transfers_its_zone() {
    let secret = base64::engine::general_purpose::STANDARD.encode(SECRET);
    let mut knot = Knot::start_transferable("ee.", &delegations(200), Some(&secret));
    let site = Site::new();
    let file = site.write("key", &secret);
    let settings = site.settings(&format!(
        "[sources]\nallow = [\"127.0.0.1/32:{}\"]\n[sources.ee-axfr]\nenabled = true\nurl = \"axfr://{}/ee\"\nusername = \"hmac-sha512:{KEY}\"\n\
         password_file = \"{}\"\n",
        knot.address().port(),
        knot.address(),
        file.display()
    ));
    let fetch = |on: i32| {
        let done =
            site.run(&["--config", &settings, "sources", "fetch", "--json", "--today", &day(on)]);
        let reports: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
        (done, reports)
    };
    for on in 0..=3 {
        let (done, reports) = fetch(on);
        assert_eq!(done.code, Some(0), "{} {}", done.stdout, done.stderr);
        assert_eq!(reports.to_string().contains("unchanged"), on < 3, "{reports}");
        let (_, again) = fetch(on);
        assert!(again.to_string().contains("unchanged"), "the same serial number: {again}");
        knot.replace(&delegations(190));
    }
    let list = site.ok(&["export", "drops", "--view", "all", "--today", &day(4)]);
    assert_eq!(list.lines().count(), 11, "{list}");
    std::fs::write(&file, "b3RoZXI=").expect("written");
    let (done, _) = fetch(4);
    let said = format!("{} {}", done.stdout, done.stderr);
    assert!(said.contains("does not know the key"), "{said}");
}
