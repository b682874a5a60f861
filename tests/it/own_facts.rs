//! Facts that accounts add over the API: files, conditions, orders, columns and exports, and who sees them.

use serde_json::{Value, json};

use crate::common::{Client, Response, Server, Site, TODAY};
use crate::pages::browser::Browser;

const PATH: &str = "/api/v1/facts";
const PASSWORD: &str = "correct horse battery";
/// Names of [`Site::with_names`], and facts about some of them.
const NAMES: [&str; 6] =
    ["alpha.com", "beta.com", "gamma.com", "delta.com", "epsilon.net", "zeta.com"];
const MAJESTIC: &str = "\
Item,TrustFlow,CitationFlow,Title,RootDomainIPAddress
alpha.com,24,31,x,192.0.2.1
beta.com/,15,9,x,192.0.2.2
gamma.com,0,3,x,192.0.2.3
missing.com,99,99,x,192.0.2.4
blog.delta.com,1,1,x,192.0.2.5
";

fn served() -> (Site, Server, Client) {
    let (site, server, client, _) = served_with_key();
    (site, server, client)
}

fn served_with_key() -> (Site, Server, Client, String) {
    let site = Site::with_names(NAMES.map(str::to_owned).into_iter(), TODAY);
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let client = server.client_with(&key);
    (site, server, client, key)
}

fn upload(client: &mut Client, query: &str, file: impl AsRef<[u8]>) -> Response {
    client.send_with(
        "POST",
        &format!("{PATH}{query}"),
        &[("Content-Type", "text/csv")],
        file.as_ref(),
    )
}

/// Returns the status and the message of a refusal.
fn refused(response: &Response) -> (u16, String) {
    (response.status, response.json()["error"].as_str().unwrap_or_default().to_owned())
}

/// Returns the names of a list, in its order.
#[track_caller]
fn names(client: &mut Client, query: &str) -> Vec<String> {
    let response = client.get(&format!("/api/v1/drops?view=all&fields=name&{query}"));
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    let rows = response.json()["drops"].as_array().expect("rows").clone();
    rows.iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn facts_are_added_and_filter_sort_and_show_at_once() {
    let (_site, _server, mut client) = served();
    let empty = client.get(PATH).json();
    assert_eq!(
        (&empty["count"], &empty["ownRows"], &empty["ownRowsMax"]),
        (&json!(0), &json!(0), &json!(100_000))
    );
    let (status, trial) = upload(&mut client, "?dry_run=true", MAJESTIC).answer();
    assert_eq!((status, &trial["added"]), (200, &json!(false)));
    assert_eq!(client.get(PATH).json(), empty, "a trial keeps nothing");

    let (status, report) = upload(&mut client, "", MAJESTIC).answer();
    assert_eq!(status, 201, "{report}");
    for (member, value) in [
        ("format", json!("majestic")),
        ("rows", json!(5)),
        ("usable", json!(4)),
        ("refusedRows", json!(1)),
        ("ignored", json!(["Title"])),
        ("dropped", json!(["RootDomainIPAddress"])),
    ] {
        assert_eq!(report[member], value, "{report}");
    }
    let source = json!({"source": "majestic", "rows": 4, "fromFile": 4, "matched": 3, "facts": ["majestic.tf", "majestic.cf"]});
    assert_eq!(report["sources"], json!([source]));
    assert_eq!(report["refused"][0]["line"], 6);

    assert_eq!(
        names(&mut client, "fact.majestic.tf=1..&sort=fact:majestic.tf"),
        ["alpha.com", "beta.com"]
    );
    assert_eq!(
        names(&mut client, "fact.majestic.tf=0..15&sort=fact:majestic.tf&order=asc"),
        ["gamma.com", "beta.com"]
    );
    assert_eq!(names(&mut client, "fact=majestic.tf:15|24,majestic.cf:..10"), ["beta.com"]);
    let mut known = names(&mut client, "has=majestic.tf");
    known.sort();
    assert_eq!(known, ["alpha.com", "beta.com", "gamma.com"], "0 is known");
    let mut unknown = names(&mut client, "has=!majestic.tf");
    unknown.sort();
    assert_eq!(unknown, ["delta.com", "epsilon.net", "zeta.com"]);
    for order in ["asc", "desc"] {
        let all = names(&mut client, &format!("sort=fact:majestic.tf&order={order}"));
        let mut last = all[3..].to_vec();
        last.sort();
        assert_eq!(last, unknown, "names without the fact come last: {all:?}");
    }

    let shown = client
        .get("/api/v1/drops?view=all&facts=majestic.tf,majestic.cf&fields=name&sort=name")
        .json();
    let alpha = json!({
        "majestic.tf": {"value": 24, "asOf": TODAY}, "majestic.cf": {"value": 31, "asOf": TODAY},
    });
    assert_eq!(shown["drops"][0], json!({"name": "alpha.com", "facts": alpha}));
    assert_eq!(
        shown["drops"][3]["facts"],
        json!({"majestic.tf": null, "majestic.cf": null}),
        "{shown}"
    );
    assert_eq!(shown["factSources"][0]["title"], "Majestic");
    assert_eq!(shown["factSources"][0]["own"], true);

    let csv = client
        .get("/api/export/drops?view=all&sort=fact:majestic.tf&columns=name&facts=majestic.tf");
    assert_eq!(
        (csv.status, &csv.text()[..45]),
        (200, "name,majestic.tf\r\nalpha.com,24\r\nbeta.com,15\r\n"),
        "{}",
        csv.text()
    );
    let lines = client.get(
        "/api/export/drops?view=all&has=majestic.tf&format=ndjson&facts=majestic.tf&sort=name",
    );
    let first: Value =
        serde_json::from_str(lines.text().lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["facts"]["majestic.tf"]["value"], 24);

    let facets = "facets=fact:majestic.tf,tld&fact.majestic.tf=20..&fact.majestic.cf=..40";
    let counted = client.get(&format!("/api/v1/drops?view=all&{facets}")).json();
    let count = |value: &str| json!({"value": value, "count": 1});
    // All conditions but its own.
    assert_eq!(
        counted["facets"]["fact:majestic.tf"],
        json!([count("0"), count("15"), count("24")])
    );
    assert_eq!(counted["facets"]["tld"], json!([count("com")]));

    // A page by cursor continues after the last fact.
    let mut target = "/api/v1/drops?view=all&fields=name&sort=fact:majestic.tf&limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = client.get(&target).json();
        seen.extend(page["drops"].as_array().expect("rows").iter().map(|row| row["name"].clone()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        target = format!(
            "/api/v1/drops?view=all&fields=name&sort=fact:majestic.tf&limit=2&cursor={cursor}"
        );
    }
    assert_eq!(seen.len(), NAMES.len());
    assert_eq!(seen[..3], ["alpha.com", "beta.com", "gamma.com"]);
}

/// Facets of a fact are ten ranges of about as many names, each of which finds its names as a condition.
#[test]
fn facets_of_facts_are_conditions() {
    let names = (0..200).map(|number| format!("name{number}.com"));
    let site = Site::with_names(names.clone(), TODAY);
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let rows = names.enumerate().filter(|(at, _)| at % 4 > 0).map(|(at, name)| {
        let (price, kind) = (at * at % 97, ["red", "blue"][at % 2]);
        format!("{name},{},{price}.50,2026-02-{:02},{kind}\n", at * 7 % 60, 1 + at % 28)
    });
    let file = format!(
        "domain,a.x:int,a.price:money:EUR,a.seen:date,a.kind:enum\n{}",
        rows.collect::<String>()
    );
    assert_eq!(upload(&mut client, "", file).status, 201);
    let list = "facets=fact:a.x,fact:a.price,fact:a.seen,fact:a.kind";
    let counted = client.get(&format!("/api/v1/drops?view=all&{list}")).json()["facets"].take();
    for (fact, bins) in [("a.x", 10), ("a.price", 10), ("a.seen", 10), ("a.kind", 2)] {
        let values = counted[format!("fact:{fact}")].as_array().expect("values").clone();
        assert_eq!(values.len(), bins, "{values:?}");
        let mut all = 0;
        for value in &values {
            let (text, count) = (value["value"].as_str().expect("text"), value["count"].as_u64());
            let found =
                client.get(&format!("/api/v1/drops?view=all&total=exact&fact.{fact}={text}"));
            assert_eq!(found.json()["total"].as_u64(), count, "{fact} {text}");
            all += count.expect("a number");
        }
        assert_eq!(all, 150, "{fact}: every name is in one range");
    }
}

#[test]
fn a_later_file_replaces_the_rows_that_it_has() {
    let (_site, _server, mut client) = served();
    assert_eq!(upload(&mut client, "", MAJESTIC).status, 201);
    let tag = |client: &mut Client| {
        client.get("/api/v1/drops?view=all&has=majestic.tf").header("etag").map(str::to_owned)
    };
    let before = tag(&mut client);
    assert_eq!(tag(&mut client), before);
    let next = "Item,TrustFlow,CitationFlow\nalpha.com,30,31\ndelta.com,40,2\n";
    let report = upload(&mut client, "", next).json();
    assert_eq!(report["sources"][0]["rows"], 5);
    assert_ne!(tag(&mut client), before, "other facts are another response");
    assert_eq!(
        names(&mut client, "fact.majestic.tf=15..&sort=fact:majestic.tf"),
        ["delta.com", "alpha.com", "beta.com"]
    );

    let removed = client.request("DELETE", &format!("{PATH}/majestic"), &[]).answer();
    assert_eq!(removed, (200, json!({"id": "majestic", "removed": true})));
    assert_eq!(client.request("DELETE", &format!("{PATH}/majestic"), &[]).status, 404);
    let gone = client.get("/api/v1/drops?has=majestic.tf");
    assert_eq!(gone.status, 400, "{}", gone.text());
}

#[test]
fn facts_survive_a_restart_and_a_new_list() {
    let (site, server, mut client, key) = served_with_key();
    assert_eq!(upload(&mut client, "", MAJESTIC).status, 201);
    drop((client, server));
    let list = site.write("next.csv", format!("domain,drop_date\nmissing.com,{TODAY}\n"));
    site.ingest(&list, "2026-03-15T09:00:00Z");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    // The row waited for its name.
    assert_eq!(
        names(&mut client, "fact.majestic.tf=20..&sort=fact:majestic.tf"),
        ["missing.com", "alpha.com"]
    );
}

#[test]
fn dossiers_show_the_facts_that_their_reader_may_see() {
    let site = Site::with_names(NAMES.map(str::to_owned).into_iter(), TODAY);
    // It dropped a year before, and was registered again in between.
    let list = site.write("before.csv", "domain,drop_date\nalpha.com,2025-03-01\n");
    site.ingest(&list, "2026-03-15T09:00:00Z");
    let key = site.account("owner@example.com", "api");
    site.account_with_password("bob@example.com", "api", PASSWORD);
    let licensed = site.write("acme.csv", "domain,acme.visits:int:more\nalpha.com,1250\n");
    site.ok(&["facts", "add", licensed.to_str().expect("UTF-8")]);
    let settings = site.settings("[web]\nplain_http = true\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let mut client = server.client_with(&key);
    let own = "domain,mine.tf:int:points:0-100,mine.cf:int,as_of\nalpha.com,24,,2025-02-28\n";
    let empty = client.get("/api/v1/domain/alpha.com");
    assert_eq!(upload(&mut client, "", own).status, 201);

    let dossier = client.get("/api/v1/domain/alpha.com");
    let fact = |fact: &str, value: u32, as_of: &str, source: &str, own: bool, before: bool| {
        json!({
            "fact": fact, "value": value, "asOf": as_of, "source": source, "attribution": null, "own": own,
            "beforeDrop": before,
        })
    };
    let today = dossier.json()["facts"][0]["asOf"].as_str().expect("a day").to_owned();
    let visits = fact("acme.visits", 1250, &today, "acme", false, false);
    assert_eq!(empty.json()["facts"], json!([visits]));
    let tf = fact("mine.tf", 24, "2025-02-28", "mine", true, true);
    assert_eq!(dossier.json()["facts"], json!([visits, tf]), "unknown is not 0");
    assert_ne!(dossier.header("etag"), empty.header("etag"), "other facts are another response");
    assert_eq!(client.get("/api/v1/domain/beta.com").json()["facts"], json!([]));

    let mut other = Browser::new(&server);
    assert_eq!(other.log_in("bob@example.com", PASSWORD).status, 303);
    for page in [other.get("/domain/alpha.com"), Browser::new(&server).get("/domain/alpha.com")] {
        assert!(page.text().contains("1,250") && !page.text().contains("before the drop"));
        assert!(!page.text().contains("24 of 100"), "the facts of others do not exist");
    }
    assert!(other.get("/domain/beta.com").text().contains("No source knows this name"));
    assert!(!Browser::new(&server).get("/domain/beta.com").text().contains("facts-title"));
}

#[test]
fn the_drops_page_shows_and_sorts_by_chosen_facts() {
    let site = Site::with_names(NAMES.map(str::to_owned).into_iter(), TODAY);
    let key = site.account("owner@example.com", "api");
    site.account_with_password("bob@example.com", "api", PASSWORD);
    let acme = "domain,acme.visits:int:more,acme.note:text\nalpha.com,1250,hello\nbeta.com,7,\n";
    site.ok(&["facts", "add", site.write("acme.csv", acme).to_str().expect("UTF-8")]);
    let settings = site.settings("[web]\nplain_http = true\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let own = "domain,mine.rank:int\nalpha.com,5\n";
    assert_eq!(upload(&mut server.client_with(&key), "", own).status, 201);

    let mut bob = Browser::new(&server);
    assert_eq!(bob.log_in("bob@example.com", PASSWORD).status, 303);
    let list = bob.get("/?view=all");
    assert!(list.text().contains("name=\"fact\" value=\"acme.visits\""), "{}", list.text());
    assert!(!list.text().contains("mine.rank"), "the facts of others do not exist");
    assert!(!list.text().contains("is unknown, not 0"), "{}", list.text());
    let chosen = [("next", "/?view=all"), ("fact", "acme.visits"), ("fact", "acme.note")];
    // The response removes another cookie, for which a browser of the tests has no room.
    let answer = bob.copy(&server).post("/columns", &chosen);
    let shown = "/?view=all&facts=acme.visits%2Cacme.note";
    assert_eq!(answer.header("location"), Some(shown));
    let page = bob.get(shown);
    let text = page.text();
    assert_eq!(page.status, 200, "{text}");
    let sorted =
        "href=\"/?view=all&amp;sort=fact%3Aacme.visits&amp;facts=acme.visits%2Cacme.note\"";
    for part in [">1,250</td>", ">hello</td>", "title=\"as of ", "is unknown, not 0", sorted] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let csv = text.split("href=\"/api/export/drops?").nth(1).and_then(|it| it.split('"').next());
    assert!(csv.is_some_and(|it| it.contains("facts=acme.visits%2Cacme.note")), "{csv:?}: {text}");

    let page = bob.get("/?view=all&fact.acme.visits=1000..&fact.acme.note=");
    assert!(page.text().contains("value=\"alpha.com\""), "{}", page.text());
    assert!(!page.text().contains("value=\"beta.com\""), "{}", page.text());
    let page = bob.get("/?view=all&sort=fact:acme.visits&facts=acme.visits");
    let places = ["alpha.com", "beta.com", "gamma.com"]
        .map(|name| page.text().find(&format!("value=\"{name}\"")).expect("a row"));
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.text().contains("aria-sort=\"descending\""), "{}", page.text());
    assert!(page.text().contains("order=asc"), "{}", page.text());
    for unknown in ["mine.rank", "acme"] {
        let page = bob.get(&format!("/?view=all&facts={unknown}"));
        assert_eq!(page.status, 400, "{}", page.text());
    }
    let reset = [("next", shown), ("fact", "acme.visits"), ("reset", "yes")];
    assert_eq!(bob.post("/columns", &reset).header("location"), Some("/?view=all"));
}

#[test]
fn a_file_of_the_most_rows_is_used_at_once_and_no_more_rows_are_kept() {
    let (_site, _server, mut client) = served();
    let rows =
        (0..99_994).map(|number| format!("waiting{number}.com,{number},{}.5\n", number % 900));
    let rows: String = rows.collect();
    let own: String = NAMES.map(|name| format!("{name},7,1.5\n")).concat();
    let file = format!("domain,acme.rank:int,acme.score:dec\n{own}{rows}");
    let added = upload(&mut client, "", &file);
    assert_eq!(added.status, 201, "{}", added.text());
    let source = &added.json()["sources"][0];
    assert_eq!((&source["rows"], &source["matched"]), (&json!(100_000), &json!(6)));
    assert_eq!(names(&mut client, "fact.acme.rank=7&fact.acme.score=1.5").len(), 6);
    let (status, message) = refused(&upload(&mut client, "", format!("{file}one-more.com,1,1\n")));
    assert!(status == 400 && message.contains("at most 100000 are read"), "{message}");
    let (status, message) =
        refused(&upload(&mut client, "", "domain,acme.rank:int\none-more.com,1\n"));
    assert!(status == 400 && message.contains("would have 100001 rows"), "{message}");
    let other = upload(&mut client, "", "domain,other.rank:int\nalpha.com,1\n");
    assert_eq!(other.status, 403, "{}", other.text());
    assert_eq!(client.get(PATH).json()["count"], 1);
}

#[test]
fn unknown_files_are_described_once() {
    let (_site, _server, mut client) = served();
    let file = "Domain,Visits,Seen\nalpha.com,\"1,250\",03/04/2026\nbeta.com,7,05/06/2026\n";
    let refused = upload(&mut client, "", file);
    let body = refused.json();
    assert_eq!((refused.status, &body["code"]), (400, &json!("unmapped_columns")), "{body}");
    let message = body["error"].as_str().expect("a message");
    let print: String = message.split('\'').nth(1).expect("quoted").chars().take(16).collect();
    let mapping = format!("{PATH}/mappings/{print}");
    let bad = client.send("PUT", &mapping, &json!({"columns": ["domain", "visits"]}));
    assert_eq!(bad.status, 400, "{}", bad.text());
    let columns = json!({"columns": ["domain", "acme.visits:int", "acme.seen:date"]});
    assert_eq!(client.send("PUT", &mapping, &columns).status, 200);
    let report = upload(&mut client, "", file).json();
    assert_eq!(report["ambiguous"][0]["column"], "Seen", "{report}");
    assert_eq!(upload(&mut client, "?date_order=dmy", file).status, 201);
    assert_eq!(names(&mut client, "fact.acme.seen=2026-04-01..2026-04-30"), ["alpha.com"]);
    assert_eq!(
        names(&mut client, "fact.acme.visits=..1250&sort=fact:acme.visits"),
        ["alpha.com", "beta.com"]
    );
    let listed = client.get(PATH).json();
    assert_eq!(listed["mappings"][0]["columns"], columns["columns"]);
    assert_eq!(client.request("DELETE", &mapping, &[]).status, 200);
    assert_eq!(client.request("DELETE", &mapping, &[]).status, 404);
    assert_eq!(client.send("PUT", &format!("{PATH}/mappings/nothing"), &columns).status, 404);
}

#[test]
fn wrong_conditions_say_what_to_do() {
    let (_site, _server, mut client) = served();
    let ask =
        |client: &mut Client, query: &str| refused(&client.get(&format!("/api/v1/drops?{query}")));
    let (status, message) = ask(&mut client, "has=majestic.tf");
    assert_eq!(
        (status, message.as_str()),
        (
            400,
            "has: has no fact majestic.tf; no source of facts is here yet; add a file of facts first"
        )
    );
    let file = "domain,a.x:int,a.price:money:EUR,a.seen:date,a.kind:enum,a.note:text,a.on:bool\n\
                alpha.com,1,12.50,2026-01-02,red,hello,yes\nbeta.com,2,99,2026-02-03,blue,,no\n";
    assert_eq!(upload(&mut client, "", file).status, 201);
    for (query, part) in [
        ("fact.a.x=one..", "fact.a.x: must be a whole number"),
        ("fact.a.x=5..1", "fact.a.x: must not begin above its end"),
        ("fact.a.x=..", "fact: needs a value before or after the two points"),
        ("fact.a.y=1", "fact: has no fact a.y; there are a.x, a.price"),
        ("fact.a.price=1,50..", "fact.a.price: must be an amount in EUR, written as 12.50"),
        ("fact.a.seen=1.2.2026..", "fact.a.seen: must be a date"),
        ("fact.a.kind=green", "fact.a.kind: must be one of the values of the fact: blue, red"),
        ("fact.a.note=hello", "fact.a.note: is text, which no condition compares"),
        ("fact.a.on=1", "fact.a.on: must be yes or no"),
        ("fact=a.x", "fact: must be SOURCE.FACT:VALUE"),
        ("has=a", "has: must be SOURCE.FACT"),
        ("sort=fact:b.c", "sort: has no fact b.c"),
        ("sort=fact:b", "sort: must be the name of a fact"),
        ("sort=fact", "sort: must name the fact"),
        ("facts=b.c", "facts: has no fact b.c"),
        ("facts=b", "facts: must be the name of a fact"),
    ] {
        let (status, message) = ask(&mut client, query);
        assert!(status == 400 && message.starts_with(part), "{query}: {message}");
    }
    for (query, expected) in [
        ("fact.a.price=12.5", &["alpha.com"][..]),
        ("fact.a.price=12.49..12.51", &["alpha.com"]),
        ("fact.a.kind=RED|blue&sort=fact:a.x", &["beta.com", "alpha.com"]),
        ("fact.a.on=no", &["beta.com"]),
        ("has=a.note", &["alpha.com"]),
        (
            "fact.a.x=",
            &["alpha.com", "beta.com", "delta.com", "epsilon.net", "gamma.com", "zeta.com"],
        ),
    ] {
        let mut found = names(&mut client, query);
        if !query.contains("sort") {
            found.sort();
        }
        assert_eq!(found, expected, "{query}");
    }
    let (status, message) = refused(&upload(&mut client, "", "no table"));
    assert!(status == 400 && message.contains("none of the first rows is a header"), "{message}");
    let (status, message) =
        refused(&upload(&mut client, "", "domain,a.x:date\nalpha.com,2026-01-01\n"));
    assert!(status == 400 && message.contains("a.x is date in this file and int"), "{message}");
    let (status, _) = refused(&upload(&mut client, "?currency=gold", file));
    assert_eq!(status, 400);
}

#[test]
fn the_operators_sources_are_seen_by_all_and_own_ones_win() {
    let (site, server, mut owner) = served();
    let mut other = server.client_with(&site.account("other@example.com", "api"));
    assert_eq!(upload(&mut owner, "", "domain,acme.rank:int\nalpha.com,5\n").status, 201);
    assert_eq!(names(&mut owner, "fact.acme.rank=5"), ["alpha.com"]);
    assert_eq!(
        other.get("/api/v1/drops?fact.acme.rank=5").status,
        400,
        "the facts of others do not exist"
    );
    assert_eq!(other.get(PATH).json()["count"], 0);

    let file = site.write("acme.csv", "domain,acme.rank:int\nalpha.com,1\nbeta.com,2\n");
    site.ok(&["facts", "add", file.to_str().expect("UTF-8")]);
    crate::common::wait::until_ok(std::time::Duration::from_secs(20), || {
        let found =
            other.get("/api/v1/drops?view=all&fields=name&fact.acme.rank=1..&sort=fact:acme.rank");
        match found.json()["drops"].as_array().map(Vec::len) {
            Some(2) => Ok(()),
            _ => Err(found.text().to_owned()),
        }
    });
    assert_eq!(names(&mut other, "fact.acme.rank=1"), ["alpha.com"]);
    assert_eq!(names(&mut owner, "fact.acme.rank=1..9"), ["alpha.com"]);
    assert_eq!(owner.get(PATH).json()["sources"][0]["own"], true);
    assert!(site.ok(&["facts", "list"]).contains("acme"));
    let refused = site.run(&["facts", "remove", "nothing"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    site.ok(&["facts", "remove", "acme"]);
}

/// Numbers that are far apart take 12 bytes each in memory: those of 2,000 names in 60 columns more than a mebibyte.
#[test]
fn a_source_that_does_not_fit_into_memory_is_refused_with_the_number_and_others_are_used() {
    let name = |at: u64| format!("name{at}.com");
    let site = Site::with_names((0..2_000).map(name), TODAY);
    let columns: String = (0..60).map(|at| format!(",vast.c{at}:int")).collect();
    let row = |at: u64| {
        let number = |column: u64| (at * 60 + column) * 999_999_999_937 % 1_000_000_000_000_003;
        let numbers: String = (0..60).map(|column| format!(",{}", number(column))).collect();
        format!("{}{numbers}\n", name(at))
    };
    let vast = format!("domain{columns}\n{}", (0..2_000).map(row).collect::<String>());
    for (file, text) in
        [("vast.csv", vast.as_str()), ("acme.csv", "domain,acme.rank:int\nname7.com,7\n")]
    {
        site.ok(&["facts", "add", site.write(file, text).to_str().expect("UTF-8")]);
    }
    let key = site.account("owner@example.com", "api");
    let settings = site.settings("[index]\nfacts_memory_mib = 1\n[web]\nplain_http = true\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let mut client = server.client_with(&key);
    for query in ["has=vast.c0", "sort=fact:vast.c1", "fact.vast.c2=1..2"] {
        let (status, message) = refused(&client.get(&format!("/api/v1/drops?{query}")));
        assert_eq!(status, 400, "{message}");
        assert!(message.contains("needs 2 MB of memory for facts"), "{message}");
        assert!(message.contains("raise facts_memory_mib of [index]"), "{message}");
    }
    assert_eq!(names(&mut client, "has=acme.rank"), ["name7.com"]);
    let shown = client.get("/api/v1/drops?view=all&facts=vast.c0&limit=1").json();
    assert!(shown["drops"][0]["facts"]["vast.c0"]["value"].is_u64(), "{shown}");
    let status = Browser::new(&server).get("/status");
    assert!(
        status.text().contains("Some facts of this server cannot be used"),
        "{}",
        status.text()
    );
}

#[test]
fn facts_of_vendors_reach_neither_agents_nor_feeds() {
    let (_site, server, mut client) = served();
    assert_eq!(upload(&mut client, "", MAJESTIC).status, 201);
    assert_eq!(upload(&mut client, "", "domain,acme.rank:int\nbeta.com,5\n").status, 201);
    let search = json!({"name": "Linked", "filter": {"facts": ["majestic.tf:1.."]}});
    let saved = client.send("POST", "/api/v1/searches", &search);
    assert_eq!(saved.status, 201, "{}", saved.text());
    assert_eq!(saved.json()["search"]["total"], 2);
    assert_eq!(saved.json()["search"]["filter"], search["filter"]);
    let id = saved.json()["search"]["id"].clone();
    let feed = client.send("POST", "/api/v1/feeds", &json!({"searchId": id}));
    let url = feed.json()["atom"].as_str().unwrap_or_default().to_owned();
    let path =
        url.split_once("/feeds/").map(|(_, path)| format!("/feeds/{path}")).unwrap_or_default();
    let read = server.client().get(&path);
    assert_eq!(read.status, 400, "{}", read.text());
    assert!(read.text().contains("no fact majestic.tf"), "{}", read.text());
}
