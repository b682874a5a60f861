//! The day ends at 00:00 UTC: the real binary under libfaketime, whose clock is set to every second
//! around midnight and then stepped back and forth, in two time zones. Whatever the clock shows and
//! however often the server is started, an allowance is never exceeded and a day that has ended never
//! returns; each response is consistent about the day.
//!
//! The clock stands still between two steps, so expectations are exact to the second. The small size
//! covers five seconds on each side; `DROPDEX_FULL=1` covers 120.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::common::{Client, Response, Server, Site, runs, tools};
use crate::pages::browser::Browser;

/// The midnight under test, at the end of 2026-11-21.
const MIDNIGHT: &str = "2026-11-22T00:00:00Z";
/// Requests per day, fewer than are sent.
const REQUESTS: i64 = 4;
const EXPORTS: i64 = 3;
const PASSWORD: &str = "correct horse battery";
/// Zones 14 hours ahead of UTC and 8 behind it, since the local day never matters.
const ZONES: [&str; 2] = ["Pacific/Kiritimati", "America/Los_Angeles"];

/// A server with a fake clock.
struct World {
    site: Site,
    zone: &'static str,
    clock: PathBuf,
    server: Option<Server>,
    key: String,
    now: DateTime<Utc>,
    /// The latest UTC day on which the server saw a request; earlier days have ended.
    day: i64,
    used: BTreeMap<(i64, &'static str), i64>,
}

fn midnight() -> DateTime<Utc> {
    MIDNIGHT.parse().expect("a time")
}

fn day_of(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(86_400)
}

impl World {
    fn new(zone: &'static str) -> World {
        let site = Site::new();
        // One name drops on each side of midnight, which is also when `late.com` leaves redemption.
        let list = "domain,drop_date,release_date\neve.com,2026-11-21,\nmorn.com,2026-11-22,\n\
                    late.com,2026-10-22,2026-11-27\n";
        site.ingest(&site.write("list.csv", list), "2026-11-20T00:00:00Z");
        let key = site.account("owner@example.com", "pro");
        site.account_with_password("reader@example.com", "core", PASSWORD);
        let (clock, now) = (site.lists().join("clock"), midnight() - TimeDelta::hours(1));
        let used = BTreeMap::new();
        let mut world = World { site, zone, clock, server: None, key, now, day: 0, used };
        world.set(now);
        world.start();
        world
    }

    /// Sets the clock atomically, because a half-written file would be a different time.
    fn set(&mut self, now: DateTime<Utc>) {
        self.show(now);
        self.now = now;
    }

    /// Sets the clock to a time that must have no effect.
    fn show(&self, now: DateTime<Utc>) {
        let aside = self.clock.with_extension("aside");
        fs::write(&aside, now.timestamp().to_string()).expect("written");
        fs::rename(&aside, &self.clock).expect("renamed");
    }

    fn start(&mut self) {
        let settings = format!(
            "[plans.pro]\nrequests_per_day = {REQUESTS}\nwrites_per_minute = 1000000\nexports_per_day = {EXPORTS}\nconcurrent_exports = 1000\n\
             [web]\nplain_http = true\n"
        );
        let config = self.site.settings(&settings);
        let zone = [("TZ", self.zone.to_owned())];
        let environment = [&tools::faketime(&self.clock)[..], &zone].concat();
        self.server = Some(self.site.serve_in(&environment, &["--config", &config]));
    }

    fn restart(&mut self) {
        self.server.take().expect("it runs").stop();
        self.start();
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn client(&self) -> Client {
        self.server().client_with(&self.key)
    }

    /// Sends a request, and compares the reported allowance with the expected one.
    #[track_caller]
    fn ask(&mut self, target: &str, kind: &'static str, limit: i64) -> Response {
        let answer = self.client().get(target);
        self.day = self.day.max(day_of(self.now));
        let used = self.used.entry((self.day, kind)).or_default();
        let granted = *used < limit;
        *used += i64::from(granted);
        let reset = (self.day + 1) * 86_400;
        let context = format!("{target} at {}: {answer:?}", self.now);
        assert_eq!(answer.status, if granted { 200 } else { 429 }, "{context}");
        assert_eq!(answer.number("x-ratelimit-limit"), Some(limit), "{context}");
        assert_eq!(answer.number("x-ratelimit-remaining"), Some(limit - *used), "{context}");
        assert_eq!(answer.number("x-ratelimit-reset"), Some(reset), "{context}");
        if !granted {
            let wait = reset - self.now.timestamp();
            assert_eq!(answer.number("retry-after"), Some(wait), "{context}");
            assert_eq!(answer.json()["resetAt"], reset * 1000, "{context}");
        }
        answer
    }

    /// Checks everything that depends on the day at this moment.
    #[track_caller]
    fn look(&mut self) {
        let today = self.now.date_naive().to_string();
        let context = format!("{} in {}", self.now, self.zone);
        let of_today = self.ask("/api/v1/drops?view=today", "request", REQUESTS);
        if of_today.status == 200 {
            let page = of_today.json();
            let names: Vec<_> = rows(&page["drops"]).map(|row| row["name"].clone()).collect();
            let dropped = match today.as_str() {
                "2026-11-21" => vec!["eve.com"],
                "2026-11-22" => vec!["morn.com"],
                _ => vec![],
            };
            assert_eq!(page["date"], today.as_str(), "{context}");
            assert_eq!(names, dropped, "{context}");
        }
        // On 2026-11-22, five days before its release, the name enters pending delete; list, search
        // and dossier agree.
        let dossier = self.ask("/api/v1/domain/late.com", "request", REQUESTS);
        if dossier.status == 200 {
            let stage = match day_of(self.now) - day_of(midnight()) {
                ..0 => "redemption",
                0..5 => "pending-delete",
                _ => "available",
            };
            assert_eq!(dossier.json()["currentStatus"], stage, "{context}");
        }
        let export = self.ask("/api/export/drops?view=today", "export", EXPORTS);
        if export.status == 200 {
            let name = format!("attachment; filename=\"drops-{today}.csv\"");
            assert_eq!(export.header("content-disposition"), Some(name.as_str()), "{context}");
            let has = |name| export.text().contains(name);
            assert_eq!(has("eve.com"), today == "2026-11-21", "{context}");
            assert_eq!(has("morn.com"), today == "2026-11-22", "{context}");
        }
    }
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

fn around(zone: &'static str) {
    let seconds = runs::figure(5, 120) as i64;
    let mut world = World::new(zone);
    let mut browser = Browser::new(world.server());
    world.set(midnight() - TimeDelta::seconds(seconds + 1));
    assert_eq!(browser.log_in("reader@example.com", PASSWORD).status, 303);
    for second in -seconds..=seconds {
        world.set(midnight() + TimeDelta::seconds(second));
        world.look();
        // A session continues past midnight.
        assert!(browser.is_in(), "{}", world.now);
    }
    // The clock moves back and forth over midnight; used requests stay used, and the day that ended
    // stays ended.
    let (day, hour, second) = (TimeDelta::days(1), TimeDelta::hours(1), TimeDelta::seconds(1));
    for step in [-second, -second, -hour, second, hour, -day, -hour, day, hour] {
        world.set(world.now + step);
        world.look();
    }
    // A restart does not reopen it either, on either side of midnight.
    for step in [-hour, -day, hour, day] {
        world.set(world.now + step);
        world.restart();
        world.look();
    }
    // The next day begins with a new allowance, and a log-in of the previous day has expired.
    world.set(midnight() + day);
    world.look();
    let left = world.used[&(day_of(midnight() + day), "request")];
    assert!(left > 0, "the next day has an allowance");
    let mut browser = browser.copy(world.server());
    assert!(!browser.is_in(), "a log-in ends after twelve hours");
    // A clock that is a year ahead for a moment changes nothing.
    world.show(midnight() + TimeDelta::days(366));
    world.look();
    world.set(midnight() + day + hour);
    world.look();
    for ((day, kind), used) in &world.used {
        let limit = if *kind == "request" { REQUESTS } else { EXPORTS };
        assert!(*used <= limit, "{used} {kind}s on day {day}");
    }
    runs::say(&format!("{zone}: {} seconds around midnight", 2 * seconds + 1));
}

#[test]
fn east_of_utc() {
    around(ZONES[0]);
}

#[test]
fn west_of_utc() {
    around(ZONES[1]);
}
