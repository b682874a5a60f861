//! `dropdex facts inspect` as a user runs it.

use serde_json::{Value, json};

use crate::common::Site;

#[test]
fn inspect_shows_how_files_are_read() {
    let site = Site::new();
    let majestic = site.write(
        "majestic.csv",
        "Item,TrustFlow,CitationFlow,Title,RootDomainIPAddress\nbrightmesa.com/,24,31,x,192.0.2.1\n\
         blog.brightmesa.com,1,1,x,192.0.2.2\n",
    );
    let majestic = majestic.to_str().expect("UTF-8");
    let text = site.ok(&["facts", "inspect", majestic]);
    for part in [
        "majestic, header in line 1",
        "rows: 2, usable: 1, refused: 1, merged: 0",
        "majestic.tf",
        "ignored: Title",
        "dropped, may be personal or secret: RootDomainIPAddress",
        "line 3: the key is a host below a name; did you mean brightmesa.com?",
        "brightmesa.com: majestic.tf=24, majestic.cf=31",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let line: Value = serde_json::from_str(&site.ok(&["facts", "inspect", "--json", majestic]))
        .expect("a line of JSON");
    let facts = json!({ "majestic.tf": 24, "majestic.cf": 31 });
    assert_eq!(line["rows"], json!([{ "key": "brightmesa.com", "asOf": null, "facts": facts }]));
    assert_eq!(line["report"]["read"][0]["direction"], "more");
    assert!(!text.contains("192.0.2") && !line.to_string().contains("192.0.2"), "{text}");
}

#[test]
fn choices_and_mappings_are_options() {
    let site = Site::new();
    let file =
        site.write("prices.csv", "Domain,Seen,Asked\nbrightmesa.com,03/04/2026,\"1,250.50\"\n");
    let file = file.to_str().expect("UTF-8");
    let refused = site.run(&["facts", "inspect", file]);
    let error = &refused.stderr;
    assert_eq!(refused.code, Some(1), "{error}");
    let (_, rest) = error.split_once("--map '").expect("what to write");
    let (fingerprint, _) = rest.split_once('=').expect("a fingerprint");
    let map = format!("{fingerprint}=domain,acme.seen:date,acme.asked:money");
    let text = site.ok(&["facts", "inspect", "--map", &map, file]);
    assert!(text.contains("not read: Seen: the order of day and month is unknown"), "{text}");
    assert!(text.contains("not read: Asked: no currency is stated"), "{text}");
    let chosen = ["--date-order", "dmy", "--currency", "eur", "--map", &map, file];
    let text = site.ok(&[&["facts", "inspect"][..], &chosen].concat());
    let row = "brightmesa.com: acme.seen=2026-04-03, acme.asked=1250.50 EUR";
    assert!(text.contains(row), "{text}");
    let usage = site.run(&["facts", "inspect", "--currency", "gold", file]);
    assert_eq!(usage.code, Some(2), "{}", usage.stderr);
}
