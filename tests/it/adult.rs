//! Adult names, which lists leave out by default, and names that no list may hold.

use serde_json::{Value, json};

use crate::common::{Client, Site};

const DAY: &str = "2026-03-15";
const DROPS: &str = "domain,drop_date\nsolar.com,2026-03-10\npornshop.com,2026-03-10\n\
                     sexy-party.de,2026-03-11\nkidsporn.com,2026-03-11\n";
/// The last name of [`DROPS`].
const PROHIBITED: &str = "kidsporn.com";

fn site() -> Site {
    let site = Site::new();
    site.ingest(&site.write("list.csv", DROPS), "2026-03-14T00:00:00Z");
    site
}

/// Returns the total of a list of drops and its names, sorted.
fn drops(client: &mut Client, query: &str) -> (u64, Vec<String>) {
    let body = client.get(&format!("/api/v1/drops?view=all{query}")).json();
    let rows = body["drops"].as_array().unwrap_or_else(|| panic!("{body}"));
    let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
    let mut names: Vec<String> = rows.iter().map(name).collect();
    names.sort();
    (body["total"].as_u64().expect("a number"), names)
}

#[test]
fn lists_leave_out_adult_names_unless_they_are_included() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let server = site.serve(DAY);
    let mut client = server.client_with(&key);
    let all = ["pornshop.com", "sexy-party.de", "solar.com"].map(str::to_owned).to_vec();
    for (query, names) in
        [("", &all[2..]), ("&adult=exclude", &all[2..]), ("&adult=include", &all[..])]
    {
        assert_eq!(drops(&mut client, query), (names.len() as u64, names.to_vec()), "{query}");
        let exported = client.get(&format!("/api/export/drops?view=all{query}"));
        assert_eq!(exported.text().lines().count(), 1 + names.len(), "{query}");
        let found = client.get(&format!("/api/v1/search?q=pornshop{query}")).json();
        assert_eq!(found["total"], u64::from(names.len() > 1), "{query}");
        let facets = client.get(&format!("/api/v1/drops?view=all&facets=stage{query}")).json();
        let counts = facets["facets"]["stage"].as_array().expect("values").iter();
        let sum: u64 = counts.filter_map(|value| value["count"].as_u64()).sum();
        assert_eq!(sum, names.len() as u64, "{query}");
    }
    assert_eq!(drops(&mut client, "&adult=include&caps=none").1, all[2..]);
    assert_eq!(client.get("/api/v1/suggest?q=porns").json()["names"], json!([]));
    for (filter, names) in [(json!({}), 1), (json!({"adult": "include"}), 3)] {
        let preview = json!({"filter": filter});
        let preview = client.send("POST", "/api/v1/alerts/preview", &preview).json();
        assert_eq!(preview["samples"].as_array().map(Vec::len), Some(names), "{preview}");
    }
    // A name that the request spells out is always found.
    assert_eq!(client.get("/api/v1/domain/pornshop.com").json()["domain"], "pornshop.com");
    let page = client.get("/?view=all");
    assert!(page.text().contains("2 adult names are hidden."), "{}", page.text());
    let page = client.get("/?view=all&adult=include");
    assert!(page.text().contains("pornshop") && !page.text().contains("are hidden."));
}

#[test]
fn prohibited_names_are_in_no_list() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let server = site.serve(DAY);
    let mut client = server.client_with(&key);
    assert_eq!(drops(&mut client, "&adult=include").0, 3);
    for path in ["/api/v1/search?q=kids&adult=include", "/api/v1/label/kidsporn"] {
        let found = client.get(path);
        assert!(!found.text().contains(PROHIBITED), "{path}: {}", found.text());
    }
    assert_eq!(client.get(&format!("/api/v1/domain/{PROHIBITED}")).status, 404);
    let page = client.get(&format!("/domain/{PROHIBITED}"));
    assert_eq!(page.status, 404);
    assert!(page.text().contains("not listed"), "{}", page.text());
}
