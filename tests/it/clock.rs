//! Servers with a wrong clock, under libfaketime: checks their responses meanwhile, and that
//! nothing is stored with the wrong time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::common::{Client, Server, Site, process, tools, wait};

const RIGHT: &str = "2026-11-21T12:00:00Z";
/// Time of the first reset of allowances after [`RIGHT`].
const RESET: &str = "2026-11-22T00:00:00Z";
const EMAIL: &str = "owner@example.com";
/// Deadline of a correction. A clock that is behind the newest record is trusted after ten seconds.
const CORRECTED_SOON: Duration = Duration::from_secs(60);

fn time(text: &str) -> i64 {
    text.parse::<DateTime<Utc>>().expect("a time").timestamp()
}

/// An installation with a list of the day before, and a key of an account that has two requests a day.
fn installation() -> (Site, String, String) {
    let site = Site::new();
    let list = site.write("list.csv", "domain,drop_date\nsolar.com,2026-11-20\n");
    site.ok_on(
        "2026-11-20",
        &["ingest", list.to_str().expect("text"), "--observed-at", "2026-11-20T00:00:00Z"],
    );
    site.ok_on("2026-11-20", &["account", "add", EMAIL, "--plan", "pro"]);
    let made = site.command(&["account", "key", EMAIL]).env("DROPDEX_TODAY", "2026-11-20").output();
    let key = String::from_utf8(made.expect("it runs").stdout).expect("text").trim().to_owned();
    let settings = "[plans.pro]\nrequests_per_day = 2\n[metrics]\nlisten = \"127.0.0.1:0\"\n";
    let config = site.settings(settings);
    (site, key, config)
}

fn set(clock: &Path, at: &str) {
    let aside = clock.with_extension("aside");
    // libfaketime ignores a single digit without a line end.
    std::fs::write(&aside, format!("{}\n", time(at))).expect("written");
    std::fs::rename(&aside, clock).expect("renamed");
}

fn clock_of(site: &Site, at: &str) -> PathBuf {
    let clock = site.lists().join("clock");
    set(&clock, at);
    clock
}

/// Sends one request; returns status and reset.
fn ask(server: &Server, key: &str) -> (u16, Option<i64>) {
    let response = server.client_with(key).get("/api/v1/tlds");
    (response.status, response.number("x-ratelimit-reset"))
}

fn is_trusted(server: &Server) -> bool {
    let ready = server.client().get("/api/ready");
    let is_untrusted = ready.json()["checks"]["clock"] == "untrusted";
    assert_eq!(ready.status == 503, is_untrusted, "{}", ready.text());
    assert_eq!(server.client().get("/api/ready/reads").status, 200, "reads continue");
    !is_untrusted
}

#[test]
fn a_day_before_the_build_or_far_ahead_is_not_stored() {
    for wrong in [
        "1970-01-01T00:00:07Z",
        "1999-12-31T00:00:00Z",
        "2026-10-31T00:00:00Z",
        "2027-01-15T00:00:00Z",
        "2027-12-26T00:00:00Z",
        "2164-06-05T00:00:00Z",
        "2300-01-01T00:00:00Z",
    ] {
        let (site, key, config) = installation();
        let clock = clock_of(&site, wrong);
        let server = site.serve_by(&clock, &["--config", &config]);
        assert!(!is_trusted(&server), "{wrong}");
        // The day of the newest list or record.
        let (status, reset) = ask(&server, &key);
        let of_list = ["2026-11-21T00:00:00Z", RESET].map(time);
        assert!(
            status == 200 && of_list.contains(&reset.unwrap_or(0)),
            "{wrong}: {status} {reset:?}"
        );
        let page = server.client().get("/status");
        assert!(page.text().contains("clock of this server is wrong"), "{}", page.text());
        let metrics = server.metrics().get("/metrics");
        assert!(metrics.text().contains("dropdex_clock_trusted 0"), "{wrong}");
        assert!(server.stop().contains("the system clock is wrong"));
        set(&clock, RIGHT);
        let server = site.serve_by(&clock, &["--config", &config]);
        assert!(is_trusted(&server), "{wrong}");
        for _ in 0..2 {
            assert_eq!(ask(&server, &key), (200, Some(time(RESET))), "{wrong}");
        }
        assert_eq!(ask(&server, &key), (429, Some(time(RESET))), "{wrong}");
    }
}

/// The day on which a list is read is stored with it.
#[test]
fn lists_wait_until_the_clock_is_trusted() {
    for wrong in ["1970-01-01T00:03:00Z", "2027-01-06T00:00:00Z"] {
        let (site, key, _) = installation();
        let config = site.settings("[inbox]\nseconds = 1\n");
        let clock = clock_of(&site, wrong);
        let server = site.serve_by(&clock, &["--config", &config]);
        assert!(!is_trusted(&server), "{wrong}");
        let list = site.write("new.csv", "domain,release_date\nlunar.com,2026-12-20\n");
        let list = list.to_str().expect("text").to_owned();
        let mut ingest = site.command(&["ingest", &list]);
        ingest.envs(tools::faketime(&clock));
        let refused = process::finish(ingest);
        assert!(
            refused.code == Some(1) && refused.stderr.contains("--observed-at"),
            "{wrong}: {refused}"
        );
        let inbox = site.data().join("inbox");
        std::fs::copy(&list, inbox.join("lunar.csv")).expect("copied");
        wait::until(Duration::from_secs(60), "the inbox says why lists wait", || {
            server.client().get("/status").text().contains("Lists in the inbox cannot be ingested")
        });
        assert!(inbox.join("lunar.csv").exists());
        set(&clock, RIGHT);
        let mut client = server.client_with(&key);
        let date = |client: &mut Client| {
            client.get("/api/v1/domain/lunar.com").json()["latestDrop"]["date"].take()
        };
        let mut seconds = 0;
        // Each request counts.
        while date(&mut client).is_null() && seconds < 60 {
            std::thread::sleep(Duration::from_secs(1));
            seconds += 1;
        }
        assert_eq!(date(&mut client), "2026-11-21", "{wrong}");
    }
}

#[test]
fn a_clock_that_jumps_does_not_move_a_running_server() {
    let (site, key, config) = installation();
    let clock = clock_of(&site, RIGHT);
    let server = site.serve_by(&clock, &["--config", &config]);
    assert!(is_trusted(&server));
    assert_eq!(ask(&server, &key), (200, Some(time(RESET))));
    for wrong in [
        "2027-12-26T12:00:00Z",
        "1970-01-01T00:00:00Z",
        "2164-01-01T00:00:00Z",
        "2026-11-15T12:00:00Z",
    ] {
        set(&clock, wrong);
        assert!(!is_trusted(&server), "{wrong}");
        let reset = server.client_with(&key).get("/api/v1/tlds").number("x-ratelimit-reset");
        assert_eq!(reset, Some(time(RESET)), "{wrong}");
        set(&clock, RIGHT);
        assert!(is_trusted(&server), "{wrong}");
    }
    // Operators do set a clock forward or back by an hour.
    set(&clock, "2026-11-21T11:00:00Z");
    assert!(is_trusted(&server));
}

#[test]
fn a_future_day_that_an_older_version_stored_heals() {
    for future in ["2026-12-24", "2028-01-01", "2164-06-05"] {
        let (site, key, config) = installation();
        let server = site.serve_with(&["--today", future, "--config", &config]);
        while ask(&server, &key).0 == 200 {}
        server.stop();
        let clock = clock_of(&site, RIGHT);
        let server = site.serve_by(&clock, &["--config", &config]);
        wait::until(CORRECTED_SOON, "it is today again", || {
            ask(&server, &key) == (200, Some(time(RESET)))
        });
        server.stop();
        // The day is still correct after a restart.
        let server = site.serve_by(&clock, &["--config", &config]);
        assert_eq!(ask(&server, &key).1, Some(time(RESET)), "{future}");
    }
}

#[test]
fn an_operator_resets_allowances() {
    let (site, key, config) = installation();
    let clock = clock_of(&site, RIGHT);
    let server = site.serve_by(&clock, &["--config", &config]);
    let use_up = |server: &Server| while ask(server, &key).0 == 200 {};
    for args in [&[EMAIL][..], &["--all"]] {
        use_up(&server);
        let said = site.ok(&[&["account", "reset-usage"], args].concat());
        assert!(said.contains("accounts: 1"), "{said}");
        assert_eq!(ask(&server, &key), (200, Some(time(RESET))));
    }
    let unknown = site.run(&["account", "reset-usage", "nobody@example.com"]);
    unknown.assert_failed(1, &["there is no account for nobody@example.com"]);
    assert_eq!(site.run(&["account", "reset-usage"]).code, Some(2));
    // The reset persists across a restart, because the journal records it.
    use_up(&server);
    site.ok(&["account", "reset-usage", EMAIL]);
    server.stop();
    let dump = site.ok(&["journal", "dump"]);
    assert!(dump.contains(r#""reset":true"#), "{dump}");
    let server = site.serve_by(&clock, &["--config", &config]);
    assert_eq!(ask(&server, &key), (200, Some(time(RESET))));
    let list: serde_json::Value =
        serde_json::from_str(&site.ok(&["account", "list", "--json"])).expect("JSON");
    assert_eq!(list[0]["requests_today"], json!(1), "{list}");
}
