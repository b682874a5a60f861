//! The hour at which a name is released: the same on every page and in every response, and that of a
//! script that shares nothing with dropdex.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{Datelike, Days, NaiveDate, Weekday};
use serde_json::{Map, Value, json};

use crate::common::{Site, TODAY, tools};

const OBSERVED: &str = "2026-03-15T00:00:00Z";

/// Returns the days around changes of the clocks in Europe and in the United States, from 2026 to 2030.
fn days_of_changes() -> Vec<NaiveDate> {
    let all = NaiveDate::from_ymd_opt(2026, 3, 20).expect("a day").iter_days();
    let is_change = |day: &NaiveDate| {
        day.weekday() == Weekday::Sun
            && (matches!(day.month(), 3 | 10) && day.day() > 24
                || day.month() == 3 && (8..15).contains(&day.day())
                || day.month() == 11 && day.day() < 8)
    };
    let changes = all.take_while(|day| day.year() < 2031).filter(is_change);
    changes.flat_map(|day| [day - Days::new(1), day, day + Days::new(1)]).collect()
}

/// Writes lists of every class with releases around changes of the clocks.
fn lists(site: &Site) -> Vec<PathBuf> {
    let real =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/feeds/bardate_domains_nu.json");
    let mut lists = vec![site.write("bardate_domains.json", std::fs::read(real).expect("a list"))];
    let (mut uk, mut others) =
        ("roid,domain,drop_time\n".to_owned(), "domain,drop_date,release_date\n".to_owned());
    for (at, day) in days_of_changes().into_iter().enumerate() {
        let second = at * 1_237 % 86_400;
        let (hours, minutes) = (second / 3_600, second / 60 % 60);
        let time = format!("{hours:02}:{minutes:02}:{:02}", second % 60);
        for (name, time) in
            [("a.uk", time.as_str()), ("b.co.uk", "00:00:00"), ("c.org.uk", "23:59:59")]
        {
            writeln!(uk, "D{at},n{at}{name},{day}T{time}Z").expect("text");
        }
        for suffix in ["com", "net", "se", "nu", "com.au", "fr", "uk", "it", "museum"] {
            writeln!(others, "day{at}.{suffix},2026-03-14,{day}").expect("text");
        }
        for hour in ["09", "16"] {
            let name = day.format(&format!("%Y%m%d{hour}.txt")).to_string();
            lists.push(site.write(&name, format!("at{at}-{hour}.it\n")));
        }
    }
    lists.extend([site.write("uk.csv", uk), site.write("others.csv", others)]);
    lists
}

#[test]
fn hours_are_those_of_an_independent_script() {
    let site = Site::new();
    let lists = lists(&site);
    let list = |path: &PathBuf| path.to_str().expect("text").to_owned();
    let mut ingest = vec!["ingest".to_owned(), "--observed-at".to_owned(), OBSERVED.to_owned()];
    ingest.extend(lists.iter().map(list));
    site.ok(&ingest);
    site.ok(&["rebuild"]);
    let columns = "name,releaseDate,releaseAt,releaseCertainty,releaseWindowMinutes";
    let export = ["export", "drops", "--view", "all", "--format", "ndjson", "--columns", columns];
    let rows = site.ok(&[&["--today", TODAY][..], &export].concat());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/release_times/expected.py");
    let output = Command::new(tools::python()).arg(script).args(&lists).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected: Map<String, Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let (mut found, mut exact) = (0, 0);
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).expect("JSON");
        let name = row["name"].as_str().expect("a name");
        let hour = json!([row["releaseAt"], row["releaseCertainty"], row["releaseWindowMinutes"]]);
        assert_eq!(Some(&hour), expected.get(name), "{row}");
        let on = row["releaseDate"].as_str().expect("a day");
        assert!(row["releaseAt"].as_str().is_none_or(|at| at.starts_with(on)), "{row}");
        found += 1;
        exact += usize::from(row["releaseCertainty"] == "exact");
    }
    assert_eq!(found, expected.len());
    assert!(found > 800 && exact > 200, "{found} {exact}");
}

#[test]
fn a_name_has_one_hour_everywhere() {
    let site = Site::new();
    let list = "domain,drop_date,release_date\n\
                silverpine.co.uk,2026-03-01,2026-03-24T11:31:21Z\n\
                solarroof.com,2026-02-10,2026-03-24\n\
                jardinage.fr,2026-02-20,2026-03-24\n";
    site.ingest(&site.write("list.csv", list), OBSERVED);
    let key = site.account("ann@example.com", "api");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    for (name, at, certainty, minutes, start, words) in [
        (
            "silverpine.co.uk",
            json!("2026-03-24T11:31:21.000Z"),
            "exact",
            1,
            "DTSTART:20260324T113121Z",
            "at 11:31:21 UTC",
        ),
        (
            "solarroof.com",
            json!("2026-03-24T18:00:00.000Z"),
            "window",
            60,
            "DTSTART:20260324T180000Z",
            "usual hour 18:00 UTC",
        ),
        (
            "jardinage.fr",
            Value::Null,
            "day",
            1_440,
            "DTSTART;VALUE=DATE:20260324",
            "the hour is not known",
        ),
    ] {
        let expected = json!(["2026-03-24", at, certainty, minutes]);
        let hour = |row: &Value| {
            json!([
                row["releaseDate"],
                row["releaseAt"],
                row["releaseCertainty"],
                row["releaseWindowMinutes"]
            ])
        };
        assert_eq!(hour(&client.get(&format!("/api/v1/domain/{name}")).json()), expected);
        let added = client.send("POST", "/api/v1/watchlist", &json!({ "domainName": name }));
        assert!(matches!(added.status, 200 | 201), "{}", added.text());
        let watched = client.get("/api/v1/watchlist").json();
        let row = watched["watchlist"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|row| row["domain"] == name)
            .expect("watched");
        assert_eq!(hour(row), expected);
        let drops = client.get(&format!("/api/v1/drops?q={}", &name[..5])).json();
        assert_eq!(hour(&drops["drops"][0]), expected, "{drops}");
        let page = client.get(&format!("/domain/{name}"));
        assert!(page.text().contains(words), "{name}: {words}");
        let feed = client.send("POST", "/api/v1/feeds", &json!({})).json();
        let calendar = server.client().get(feed["calendar"].as_str().expect("an address"));
        let event = calendar
            .text()
            .split("BEGIN:VEVENT")
            .find(|it| it.contains(name))
            .expect("an event")
            .to_owned();
        assert!(event.contains(start), "{event}");
    }
}

#[test]
fn releases_are_filtered_by_their_instant() {
    let site = Site::new();
    let list = "domain,drop_date,release_date\n\
                silverpine.co.uk,2026-03-01,2026-03-24T11:31:21Z\n\
                stonewall.org.uk,2026-03-01,2026-03-24\n\
                solarroof.com,2026-02-10,2026-03-24\n\
                jardinage.fr,2026-02-20,2026-03-24\n\
                sunflower.com,2026-02-10,2026-03-25\n";
    site.ingest(&site.write("list.csv", list), OBSERVED);
    let key = site.account("ann@example.com", "api");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let unknown = ["jardinage.fr", "stonewall.org.uk"];
    for (from, to, known) in [
        ("2026-03-24T11:31:21Z", "2026-03-24", &["silverpine.co.uk", "solarroof.com"][..]),
        ("2026-03-24T11:31:22Z", "2026-03-24", &["solarroof.com"]),
        ("2026-03-24", "2026-03-24T11:31:20Z", &[]),
        ("2026-03-24", "2026-03-24T12:31:21+01:00", &["silverpine.co.uk"]),
        ("2026-03-24T18:00Z", "2026-03-25T17:59:59Z", &["solarroof.com"]),
        ("2026-03-24T18:00:01Z", "2026-03-25T18:00Z", &["sunflower.com"]),
    ] {
        let mut expected = [&unknown[..], known].concat();
        expected.sort_unstable();
        let range = format!("release_from={from}&release_to={to}");
        let names = |rows: &Value, member: &str| {
            let name = |row: &Value| row[member].as_str().expect("a name").to_owned();
            let mut names: Vec<String> = rows.as_array().expect("rows").iter().map(name).collect();
            names.sort_unstable();
            names
        };
        let drops = client.get(&format!("/api/v1/drops?{range}")).json();
        assert_eq!(names(&drops["drops"], "name"), expected, "{range}");
        let found = client.get(&format!("/api/v1/search?starts=s,j&{range}")).json();
        assert_eq!(names(&found["results"], "domain"), expected, "{range}");
        let filter = json!({"releaseFrom": from, "releaseTo": to});
        let preview = json!({ "filter": filter });
        let preview = client.send("POST", "/api/v1/alerts/preview", &preview).json();
        assert_eq!(names(&preview["samples"], "name"), expected, "{preview}");
        let saved = json!({"name": range, "filter": filter});
        let saved = client.send("POST", "/api/v1/searches", &saved).json();
        assert_eq!(saved["search"]["filter"], filter);
        assert_eq!(saved["search"]["total"], expected.len());
        let page = client.get(&format!("/?{range}"));
        let links_to = |name: &&str| page.text().contains(&format!("/domain/{name}"));
        assert!(expected.iter().all(links_to), "{range}");
    }
}
