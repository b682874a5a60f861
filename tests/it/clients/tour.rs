//! The tours in `data/examples`: tomorrow's drops, watched names with a webhook, and a copy in DuckDB
//! that follows the changes over a restart of the server.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use dropdex::vocab::clock::Clock;
use serde_json::Value;

use super::packages::{Installed, Language, Running};
use super::root;
use crate::common::{Client, Site, tools, wait};

/// Deadline of every wait; conditions are normally met long before.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Names that drop tomorrow: more than a page has.
const TOMORROW: usize = 1_100;
const HEADER: &str = "domain,drop_date,release_date,registered_again\n";
const READ: &str = "import duckdb\n\
    for (name,) in duckdb.connect('drops.duckdb').sql('select name from drops').fetchall(): print(name)";

/// The command that starts the tour, with the packages that it needs.
fn tour(language: Language, installed: &Installed) -> Command {
    let folder = &installed.folder;
    let mut command = match language {
        Language::Python => {
            let versions = fs::read_dir(folder.join("env/lib")).expect("an environment");
            let version = versions.map(|entry| entry.expect("an entry").path()).next();
            let packages = version.expect("one version").join("site-packages");
            let mut python = Command::new(tools::copy_tools().join("python"));
            python.arg("tour.py").env("PYTHONPATH", packages);
            python
        }
        Language::TypeScript => {
            let mut node = Command::new(tools::node());
            node.arg("tour.mjs");
            node
        }
    };
    command.current_dir(folder);
    command
}

/// The names of the pipeline, by the API.
fn pipeline(client: &mut Client) -> BTreeSet<String> {
    let export = client.get("/api/export/drops?format=ndjson&adult=include&limit=10000");
    assert_eq!(export.status, 200, "{}", export.text());
    let name = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("JSON");
        row["name"].as_str().expect("text").to_owned()
    };
    export.text().lines().map(name).collect()
}

fn goes_round(language: Language) {
    let site = Site::new();
    let today = Clock::system().today();
    let day = |days: i32| today.plus(days).to_string();
    let ingest = |at: u32, rows: String| {
        let list = site.write(&format!("list{at}.csv"), format!("{HEADER}{rows}"));
        site.ingest(&list, &format!("{today}T00:00:{at:02}Z"));
    };
    let row = |at| format!("name{at:04}.com,{},{},\n", day(-30), day(1));
    let rain = format!("rain.net,{},{},", day(-30), day(3));
    let rows: String = (0..TOMORROW).map(row).collect();
    let watched = ["solar.com", "wind.de"].map(|name| format!("{name},{},{},\n", day(-30), day(2)));
    ingest(1, format!("{rows}{}{rain}\n", watched.concat()));
    let key = site.account("owner@example.com", "api");

    let pair = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]);
    let pair = pair.expect("a certificate can be created");
    let hook = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let hook = hook.expect("loopback has free ports");
    let ca_file = site.write("ca.pem", pair.cert.pem());
    let settings = site.settings(&format!(
        "[export_files]\nenabled = true\n[webhooks]\nallow = [\"{hook}\"]\nca_file = {ca_file:?}\n"
    ));
    let server = site.serve_with(&["--config", &settings]);
    let address = server.address();
    let has_file = || server.client_with(&key).get("/api/export/files").json()["total"] != 0;
    wait::until(WAIT_MAX, "a file of the pipeline", has_file);

    let installed = Installed::new(language, &site);
    let folder = &installed.folder;
    fs::write(folder.join("cert.pem"), pair.cert.pem()).expect("written");
    fs::write(folder.join("key.pem"), pair.signing_key.serialize_pem()).expect("written");
    let source = match language {
        Language::Python => "tour.py",
        Language::TypeScript => {
            let modules = tools::copy_tools().with_file_name("node_modules");
            let scope = folder.join("node_modules/@duckdb");
            symlink(modules.join("@duckdb"), scope).expect("a link");
            "tour.mts"
        }
    };
    installed.add(&root().join("data/examples").join(source));
    let mut command = tour(language, &installed);
    command.env("DROPDEX_URL", format!("http://{address}")).env("DROPDEX_KEY", &key);
    command.env("HOOK_URL", format!("https://{hook}/dropdex"));
    let running = Running::start(command, folder.join("tour.txt"));
    let until_printed = |text: &str| {
        wait::until_ok(WAIT_MAX, || {
            let printed = running.printed();
            let has = printed.lines().any(|line| line == text);
            if has { Ok(()) } else { Err(format!("no {text:?} in:\n{printed}")) }
        });
    };
    until_printed("watchlist.test 3");
    let printed = running.printed();
    let tomorrow =
        printed.lines().filter_map(|line| line.strip_prefix("tomorrow ")?.split(' ').nth(1));
    let tomorrow: Vec<&str> = tomorrow.collect();
    let distinct: BTreeSet<&str> = tomorrow.iter().copied().collect();
    assert_eq!((tomorrow.len(), distinct.len()), (TOMORROW, TOMORROW));

    // The list may come before the program has its copy: the changes since then are not lost.
    ingest(2, format!("{rain}true\nstar.com,{},{},\n", day(0), day(35)));
    for line in ["watchlist.changed 1", "renewed rain.net", "left-zone star.com"] {
        until_printed(line);
    }
    server.stop();
    let server = site.serve_on(address, &["--config", &settings]);
    ingest(3, format!("moon.org,{},{},\n", day(0), day(35)));
    until_printed("left-zone moon.org");
    let printed = running.printed();
    drop(running);
    let changes = printed.lines().filter(|line| line.starts_with("left-zone "));
    assert_eq!(changes.count(), 2, "each change comes once:\n{printed}");

    let mut read = Command::new(tools::copy_tools().join("python"));
    let output = read.args(["-c", READ]).current_dir(folder).output().expect("it can be run");
    let copied = String::from_utf8(output.stdout).expect("UTF-8");
    let copied: BTreeSet<String> = copied.lines().map(str::to_owned).collect();
    assert_eq!(copied, pipeline(&mut server.client_with(&key)));
    assert!(!copied.contains("rain.net") && copied.contains("moon.org"));
}

#[test]
#[ignore = "needs DuckDB for Python; in the full run"]
fn the_python_tour_copies_and_follows_the_pipeline() {
    goes_round(Language::Python);
}

#[test]
#[ignore = "needs DuckDB for Node.js and for Python; in the full run"]
fn the_typescript_tour_copies_and_follows_the_pipeline() {
    goes_round(Language::TypeScript);
}
