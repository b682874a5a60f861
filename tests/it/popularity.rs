//! Popularity lists, through commands, inbox, API and pages: facts about names that do not change
//! scores.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Client, Site, wait};

const DAY: &str = "2026-03-15";
/// Deadline of a list in the inbox.
const ARRIVAL_MAX: Duration = Duration::from_secs(90);

const DROPS: &str = "domain,drop_date,registered_again\nsolar.com,2026-03-10,\nsolarpanel.de,2026-03-01,\n\
                     quietharbor.net,2026-03-02,\nbrightmesa.co.uk,2026-03-03,\nlost.org,2026-02-20,true\n\
                     heldname.com,,\n";

fn ingest(site: &Site, name: &str, text: &str) -> Value {
    let path = site.write(name, text);
    let printed = site.ok(&["ingest", "--local", path.to_str().expect("UTF-8")]);
    serde_json::from_str(&printed).expect("a line of JSON")
}

fn site() -> Site {
    let site = Site::new();
    site.ingest(&site.write("list.csv", DROPS), "2026-03-14T00:00:00Z");
    site
}

/// Returns names and ranks of a list of drops.
fn ranks(client: &mut Client, query: &str) -> Vec<(String, Option<u64>)> {
    let body = client.get(&format!("/api/v1/drops?view=all{query}")).json();
    let rows = body["drops"].as_array().unwrap_or_else(|| panic!("{body}"));
    let pair = |row: &Value| {
        (row["name"].as_str().expect("a name").to_owned(), row["popularityRank"].as_u64())
    };
    rows.iter().map(pair).collect()
}

fn names(client: &mut Client, query: &str) -> Vec<String> {
    ranks(client, query).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn ranks_are_shown_filtered_and_sorted_and_change_no_score() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let scored = |client: &mut Client| {
        let body = client.get("/api/v1/drops?view=all").json();
        let mut rows = body["drops"].as_array().expect("rows").clone();
        let mut dossier = client.get("/api/v1/domain/heldname.com").json();
        dossier.as_object_mut().expect("an object").remove("facts");
        for row in &mut rows {
            row.as_object_mut().expect("an object").remove("popularityRank");
        }
        (rows, dossier)
    };
    let server = site.serve(DAY);
    let mut client = server.client_with(&key);
    let before = scored(&mut client);
    assert_eq!(before.0.len(), 4);
    assert!(ranks(&mut client, "").iter().all(|(_, rank)| rank.is_none()));
    assert_eq!(names(&mut client, "&max_rank=1000000"), [] as [&str; 0]);
    drop((client, server));

    let tranco = "1,google.com\n12345,solar.com\n99,heldname.com\n400,lost.org\n";
    let added = ingest(&site, "tranco_X9K2_2026-03-13.csv", tranco);
    assert_eq!((&added["accepted"], &added["names"]), (&4.into(), &4.into()), "{added}");
    let umbrella = "1,com\n50,www.solar.com\n700,mail.brightmesa.co.uk\n800,brightmesa.co.uk\n";
    ingest(&site, "umbrella-2026-03-12.csv", umbrella);
    let majestic = "GlobalRank,TldRank,Domain,TLD,RefSubNets,RefIPs\n7,1,quietharbor.net,net,9,9\n";
    ingest(&site, "majestic_million_2026-03-14.csv", majestic);

    let server = site.serve(DAY);
    let mut client = server.client_with(&key);
    assert_eq!(scored(&mut client), before, "no score has changed");
    let ranked: Vec<(String, Option<u64>)> = vec![
        ("quietharbor.net".into(), Some(7)),
        ("solar.com".into(), Some(50)),
        ("brightmesa.co.uk".into(), Some(700)),
        ("solarpanel.de".into(), None),
    ];
    assert_eq!(ranks(&mut client, "&sort=rank"), ranked);
    let mut reversed = ranked.clone();
    reversed.reverse();
    assert_eq!(ranks(&mut client, "&sort=rank&order=desc"), reversed);
    for (most, count) in [(6, 0), (7, 1), (50, 2), (699, 2), (700, 3), (1_000_000, 3)] {
        let query = format!("&sort=rank&max_rank={most}");
        assert_eq!(ranks(&mut client, &query), ranked[..count], "{most}");
        let found = client.get(&format!("/api/v1/search?q=s&max_rank={most}")).json();
        assert_eq!(found["total"], usize::from(most >= 50), "{found}");
    }
    // A name that never dropped has no rank; one that was registered again has one.
    assert_eq!(client.get("/api/v1/search?q=heldname&max_rank=1000000").json()["total"], 0);
    assert_eq!(client.get("/api/v1/search?q=lost&max_rank=400").json()["total"], 1);
    let exported = "/api/export/drops?view=all&sort=rank&columns=name,popularityRank";
    assert_eq!(
        client.get(exported).text(),
        "name,popularityRank\r\nquietharbor.net,7\r\nsolar.com,50\r\nbrightmesa.co.uk,700\r\n\
         solarpanel.de,\r\n"
    );

    let dossier = client.get("/api/v1/domain/solar.com").json();
    let facts = json!([
        {"list": "tranco", "rank": 12_345, "date": "2026-03-13", "listId": "X9K2"},
        {"list": "umbrella", "rank": 50, "date": "2026-03-12", "listId": null},
    ]);
    assert_eq!(dossier["popularity"], facts);
    // Each list is a fact as well.
    let of_tranco: Vec<&Value> = dossier["facts"].as_array().expect("facts").iter().collect();
    assert_eq!((of_tranco.len(), &of_tranco[0]["value"]), (2, &json!(12_345)), "{of_tranco:?}");
    assert_eq!(of_tranco[0]["fact"], "popularity.tranco");
    assert_eq!(
        of_tranco[0]["attribution"],
        "Popularity: Tranco X9K2 of 2026-03-13, Majestic Million of 2026-03-14, Cisco Umbrella of 2026-03-12"
    );
    assert_eq!(names(&mut client, "&fact.popularity.tranco=..20000"), ["solar.com"]);
    let by_umbrella = "&has=popularity.umbrella&sort=fact:popularity.umbrella&order=asc";
    assert_eq!(names(&mut client, by_umbrella), ["solar.com", "brightmesa.co.uk"]);
    let page = client.get("/domain/solar.com").text().to_owned();
    for part in ["Tranco", "12,345", "(list ID X9K2)", "Cisco Umbrella", "13 Mar"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let preview = json!({"filter": {"maxRank": 50, "stages": ["redemption", "pending-delete"]}});
    let preview = client.send("POST", "/api/v1/alerts/preview", &preview).json();
    assert_eq!(preview["samples"].as_array().map(Vec::len), Some(2), "{preview}");
    let list =
        client.request("GET", "/?view=all&max_rank=100", &[("Cookie", "columns=popularity")]);
    assert!(list.text().contains("popularity rank at most"), "{}", list.text());
    assert!(list.text().contains("quietharbor") && !list.text().contains("brightmesa"));
}

#[test]
fn misspellings_of_popular_names_are_marked_and_can_be_left_out() {
    let site = Site::new();
    let rows = ["lighthosue.com", "lighthousees.de", "solar.com", "lighthouse.net"];
    let rows = rows.map(|name| format!("{name},2026-03-10\n")).concat();
    let list = site.write("list.csv", format!("domain,drop_date\n{rows}"));
    site.ingest(&list, "2026-03-14T00:00:00Z");
    let known = site.write("known.csv", "domain,drop_date\nlighthouze.org,\n");
    site.ingest(&known, "2026-03-14T00:00:00Z");
    let popular = "14,lighthouse.com\n2001,sollar.com\n9,solr.com\n";
    ingest(&site, "tranco_X9K2_2026-03-13.csv", popular);
    let key = site.account("owner@example.com", "api");
    let server = site.serve(DAY);
    let mut client = server.client_with(&key);
    let found = client.get("/api/v1/drops?view=all&typo=only&fields=name,typoOf").json();
    let typo =
        json!([{"name": "lighthosue.com", "typoOf": {"name": "lighthouse.com", "rank": 14}}]);
    assert_eq!(found["drops"], typo);
    let rest = ["lighthouse.net", "lighthousees.de", "solar.com"].map(str::to_owned);
    assert_eq!(names(&mut client, "&typo=none&sort=name"), rest);
    for (query, total) in [("only", 2), ("none", 2)] {
        let found = client.get(&format!("/api/v1/search?q=lighth&typo={query}")).json();
        assert_eq!(found["total"], total, "{found}");
    }
    let said = "One typing error from lighthouse.com, rank 14.";
    for path in ["/?view=all", "/domain/lighthosue.com", "/domain/lighthouze.org"] {
        assert!(client.get(path).text().contains(said), "{path}");
    }
    assert_eq!(client.get("/api/v1/drops?typo=some").status, 400);
}

#[test]
fn the_newest_list_of_a_kind_replaces_the_previous_one() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let first = ingest(&site, "tranco_AAAAA_2026-03-10.csv", "5,solar.com\n6,quietharbor.net\n");
    assert!(first["generation"].is_string(), "{first}");
    let second = "9,quietharbor.net\n10,solarpanel.de\n";
    ingest(&site, "tranco_BBBBB_2026-03-12.csv", second);
    let again = ingest(&site, "tranco_BBBBB_2026-03-12.csv", second);
    assert_eq!(again["lists"][0]["outcome"], "already held", "{again}");
    assert!(again["generation"].is_null(), "{again}");
    let older = ingest(&site, "tranco_CCCCC_2026-03-11.csv", "1,brightmesa.co.uk\n");
    assert_eq!(older["lists"][0]["outcome"], "already held", "{older}");
    let nameless = site.write("top-1m.csv", "1,solar.com\n2,solarpanel.de\n");
    site.run(&["ingest", "--local", nameless.to_str().expect("UTF-8")])
        .assert_failed(1, &["tranco, majestic, umbrella", "file name"]);

    let settings = site.settings("[inbox]\nseconds = 1\n");
    let server = site.serve_with(&["--today", DAY, "--config", &settings]);
    let mut client = server.client_with(&key);
    let ranked = [("quietharbor.net", 9), ("solarpanel.de", 10)];
    let ranked = ranked.map(|(name, rank)| (name.to_owned(), Some(rank)));
    assert_eq!(ranks(&mut client, "&sort=rank&max_rank=1000"), ranked);

    // A running server ingests a list from its inbox.
    let inbox = site.data().join("inbox");
    put(&inbox, "tranco_DDDDD_2026-03-14.csv", "3,brightmesa.co.uk\n4,solar.com\n");
    wait::until_ok(ARRIVAL_MAX, || match names(&mut client, "&sort=rank&max_rank=1000") {
        names if names == ["brightmesa.co.uk", "solar.com"] => Ok(()),
        names => Err(format!("{names:?}")),
    });
    let dossier = client.get("/api/v1/domain/solar.com").json();
    assert_eq!(dossier["popularity"][0]["listId"], "DDDDD");
    assert_eq!(client.get("/api/v1/domain/quietharbor.net").json()["popularity"], json!([]));
}

/// Moves a file into a folder atomically.
fn put(folder: &Path, name: &str, text: &str) {
    let part = folder.join(format!("{name}.part"));
    fs::write(&part, text).expect("writable");
    fs::rename(&part, folder.join(name)).expect("renamed");
}
