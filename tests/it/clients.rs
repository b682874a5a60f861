//! Clients against a live server: those in `data/examples` that are generated from its document, and
//! the packages in `data/clients`.

mod packages;
mod tour;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Server, Site, TODAY, tools};

const LIST: &str =
    "domain,drop_date\nsolar.com,2026-03-10\nsolar.de,2026-03-14\nlunar.com,2026-03-12\n";

/// A file of `data/examples`.
fn example(name: &str) -> String {
    let path = root().join("data/examples").join(name);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

/// A folder with the packages that the documentation names.
struct Desk {
    _site: Site,
    server: Server,
    key: String,
    folder: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let site = Site::new();
        site.ingest(&site.write("list.csv", LIST), "2026-03-14T12:00:00Z");
        let key = site.account("owner@example.com", "pro");
        let server = site.serve(TODAY);
        let folder = site.lists().join("desk");
        fs::create_dir(&folder).expect("a folder");
        let modules = tools::root().join("node_modules");
        symlink(modules, folder.join("node_modules")).expect("a link");
        Desk { _site: site, server, key, folder }
    }

    fn run(&self, script: &str) -> String {
        let url = format!("http://{}", self.server.address());
        shell(&self.folder, script, &[("DROPDEX_URL", &url), ("DROPDEX_KEY", &self.key)])
    }
}

/// Runs a shell script in a folder, with the programs of `tests/tools` first, and returns its standard
/// output.
fn shell(folder: &Path, script: &str, environment: &[(&str, &str)]) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-euc", script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", tools::root().join("bin").display()))
        .env("CLIENTS", root().join("data/clients"))
        .env("MODULES", tools::root().join("node_modules"))
        .envs(environment.iter().copied())
        .output()
        .expect("a shell");
    let (out, err) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8_lossy(out).into_owned();
    assert!(output.status.success(), "{script}\n{out}\n{err}");
    out
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the common output of both typed clients: score and name of each drop.
fn printed(desk: &Desk) -> String {
    let page: serde_json::Value =
        serde_json::from_str(&desk.run(&example("drops.sh"))).expect("JSON");
    let drops = page["drops"].as_array().expect("a list");
    let line = |drop: &serde_json::Value| {
        format!("{} {}\n", drop["dqs"], drop["name"].as_str().expect("a name"))
    };
    drops.iter().map(line).collect()
}

#[test]
fn the_curl_example_lists_drops() {
    let desk = Desk::new();
    let page: serde_json::Value =
        serde_json::from_str(&desk.run(&example("drops.sh"))).expect("JSON");
    assert_eq!((&page["count"], &page["drops"][0]["name"]), (&2.into(), &"solar.com".into()));
}

#[test]
fn the_python_example_lists_drops() {
    let desk = Desk::new();
    fs::write(desk.folder.join("drops.py"), example("drops.py")).expect("written");
    assert!(desk.run(&example("python_client.sh")).ends_with(&printed(&desk)));
}

#[test]
fn the_typescript_example_lists_drops() {
    let desk = Desk::new();
    fs::write(desk.folder.join("drops.mts"), example("drops.mts")).expect("written");
    assert!(desk.run(&example("typescript_client.sh")).ends_with(&printed(&desk)));
}
