//! The clients in the README, as printed: made from the document of a running server and run against it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Server, Site, tools};

const TODAY: &str = "2026-03-15";
const LIST: &str =
    "domain,drop_date\nsolar.com,2026-03-10\nsolar.de,2026-03-14\nlunar.com,2026-03-12\n";

/// The fenced blocks of a kind in the section on clients, in their order.
fn blocks(kind: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(path).expect("the README");
    let (_, rest) = text.split_once("\n## Clients\n").expect("a section on clients");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let fence = format!("```{kind}\n");
    section
        .split(&fence)
        .skip(1)
        .map(|block| block.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// A folder of somebody who has installed what the README names.
struct Desk {
    site: Site,
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
        Desk { site, server, key, folder }
    }

    /// Runs a block of the README in a shell and gives what it prints.
    fn run(&self, script: &str) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let tools = tools::root().join("bin");
        let output = Command::new("sh")
            .args(["-euc", script])
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{path}", tools.display()))
            .env("DROPDEX_URL", format!("http://{}", self.server.address()))
            .env("DROPDEX_KEY", &self.key)
            .output()
            .expect("a shell");
        let (out, err) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
        let out = String::from_utf8_lossy(out).into_owned();
        assert!(output.status.success(), "{script}\n{out}\n{err}\n{}", self.site.index().display());
        out
    }
}

/// What both typed clients print.
const PRINTED: &str = "99 solar.com\n93 lunar.com\n";

#[test]
fn curl() {
    let desk = Desk::new();
    let page: serde_json::Value = serde_json::from_str(&desk.run(&blocks("sh")[0])).expect("JSON");
    assert_eq!((&page["count"], &page["drops"][0]["name"]), (&2.into(), &"solar.com".into()));
}

#[test]
fn python() {
    let desk = Desk::new();
    desk.run(&blocks("sh")[1]);
    fs::write(desk.folder.join("drops.py"), &blocks("python")[0]).expect("written");
    assert_eq!(desk.run("python drops.py"), PRINTED);
}

#[test]
fn typescript() {
    let desk = Desk::new();
    desk.run(&blocks("sh")[2]);
    fs::write(desk.folder.join("drops.mts"), &blocks("typescript")[0]).expect("written");
    assert_eq!(desk.run(&blocks("sh")[3]), PRINTED);
}
