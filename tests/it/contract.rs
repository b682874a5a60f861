//! The service against its own OpenAPI document, by Schemathesis: every operation, with valid and
//! invalid requests, as every plan and without a key. The service may not return a server error or an
//! undocumented response, refuse a valid request, or accept an invalid one.
//!
//! At the small size, each operation gets about 10 requests and the boundary values of its
//! parameters; with `DROPDEX_FULL=1` it gets 1,000. `DROPDEX_SEED` repeats a run.

use std::path::Path;
use std::process::Command;

use crate::common::{Server, Site, TODAY, runs, tools};

/// Allowances that no run uses up; the `races` module tests the limits.
const SETTINGS: &str = "\
[plans.core]\nexports_per_day = 2000000000\n\
[plans.pro]\nrequests_per_day = 2000000000\nwrites_per_minute = 1000000\nexports_per_day = 2000000000\nactive_rules = 100000\n\
external_names = 100000\n\
[plans.api]\nrequests_per_day = 2000000000\nwrites_per_minute = 1000000\nexports_per_day = 2000000000\nactive_rules = 100000\n\
external_names = 100000\n";
struct Tried {
    phases: &'static str,
    examples: u32,
}

fn tried(key: Option<&str>) -> Tried {
    match runs::full() {
        true => Tried { phases: "examples,coverage,fuzzing,stateful", examples: 1000 },
        // Public operations refuse no client.
        false if key.is_none() => Tried { phases: "fuzzing", examples: 5 },
        false => Tried { phases: "examples,coverage,fuzzing", examples: 10 },
    }
}

/// Adds the facts that `hooks.py` asks for.
fn add_facts(site: &Site) {
    let facts = "domain,acme.rank:int,acme.kind:enum\nsolar.com,5,red\nkept.org,7,blue\n";
    let facts = site.write("acme.csv", facts);
    site.ok(&["facts", "add", facts.to_str().expect("UTF-8")]);
}

/// Runs every operation of the document with `key`.
fn judge(site: &Site, server: &Server, key: Option<&str>) {
    let Tried { phases, examples } = tried(key);
    let seed = runs::seed_of_the_commit();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/contract");
    let mut command = Command::new(tools::schemathesis());
    command
        .arg("--config-file")
        .arg(here.join("schemathesis.toml"))
        .arg("run")
        .arg(format!("http://{}/api/openapi.json", server.address()))
        .args(["--phases", phases, "--max-examples", &examples.to_string()])
        .args(["--seed", &(seed % u64::from(u32::MAX)).to_string()])
        .args(["--generation-database", "none", "--no-color", "--continue-on-failure"])
        .env("SCHEMATHESIS_HOOKS", here.join("hooks.py"))
        .current_dir(site.lists());
    if let Some(key) = key {
        command.args(["-H", &format!("Authorization: Bearer {key}")]);
    }
    let judged = command.output().expect("Schemathesis runs");
    let said = String::from_utf8_lossy(&judged.stdout);
    assert!(
        judged.status.success(),
        "{said}\n{}\n{}",
        String::from_utf8_lossy(&judged.stderr),
        server.log()
    );
    let summary = said.split("SUMMARY").nth(1).unwrap_or_default();
    runs::say(summary);
    assert!(!server.log().contains("ERROR"), "{}", server.log());
}

fn as_plan(plan: &str) {
    let site = Site::with_a_name_of_each_kind();
    add_facts(&site);
    let key = site.account("owner@example.com", plan);
    let config = site.settings(SETTINGS);
    let server = site.serve_with(&["--today", TODAY, "--config", &config]);
    // Events exist, so that a request for them does not wait.
    let list = site.write("later.csv", "domain,drop_date\nlunar.com,2026-03-14\n");
    let list = list.to_str().expect("UTF-8");
    site.ok(&["ingest", "--observed-at", "2026-03-15T01:00:00Z", list]);
    judge(&site, &server, Some(&key));
}

#[test]
fn plan_api() {
    as_plan("api");
}

#[test]
fn anonymous() {
    let site = Site::with_a_name_of_each_kind();
    add_facts(&site);
    let config = site.settings(SETTINGS);
    let server = site.serve_with(&["--today", TODAY, "--config", &config]);
    judge(&site, &server, None);
}

// The other plans differ only in the requests that they refuse, so they only run at full size.

#[test]
fn plan_pro() {
    if runs::full() {
        as_plan("pro");
    }
}

#[test]
fn plan_core() {
    if runs::full() {
        as_plan("core");
    }
}

#[test]
fn plan_free() {
    if runs::full() {
        as_plan("free");
    }
}
