//! Undoing actions from pages, without scripts and by scripts.

use serde_json::{Value, json};

use super::World;
use super::person::{Page, Person, between};
use crate::common::Client;

/// Returns the action in the address to which a form led.
#[track_caller]
fn action(page: &Page) -> String {
    let location = page.location.as_deref().unwrap_or_else(|| panic!("{}", page.visible()));
    let (_, rest) = location.split_once("undo=").unwrap_or_else(|| panic!("no action: {location}"));
    rest.split(['&', '#']).next().unwrap_or_default().to_owned()
}

fn undo(person: &mut Person, id: &str, next: &str) -> Page {
    person.post("/undo", &[("id", id), ("next", next)])
}

/// Returns the watched and the hidden names of an account.
fn state(api: &mut Client) -> (Value, Value) {
    let mut watched = api.get("/api/v1/watchlist?sort=name").json()["watchlist"].clone();
    for row in watched.as_array_mut().expect("rows") {
        let row = row.as_object_mut().expect("a row");
        row.retain(|name, _| {
            ["domain", "addedAt", "tags", "note", "venue", "maxBidUsd"].contains(&name.as_str())
        });
    }
    (watched, api.get("/api/v1/hidden").json()["hidden"].clone())
}

#[test]
fn every_action_on_names_can_be_undone() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let text =
        "domain,tags,max_bid_usd,venue,note\nsolar.com,flip,300,DropCatch,mine\nfresh.com,,,,\n";
    let added = ann.post("/watchlist/add", &[("names", text)]);
    added.assert_says(200, "2 names added");
    let id = between(&added.text, "name=\"id\" value=\"", "\"").to_owned();
    undo(&mut ann, &id, "/watchlist").assert_goes_to("/watchlist?undone=2&kept=0");
    ann.post("/watchlist/add", &[("names", text)]).assert_says(200, "2 names added");
    let one = ann.post("/watchlist/add", &[("names", "teapots.net")]);
    one.assert_goes_to("/watchlist?notice=added");
    undo(&mut ann, &action(&one), "/watchlist").assert_goes_to("/watchlist?undone=1&kept=0");
    ann.post("/hide", &[("domain", "pending.com")]);
    let three =
        "domain=solar.com&domain=fresh.com&domain=released.com&next=%2Fwatchlist%3Ftag%3Dflip";
    for (form, fields) in [
        ("/watch", "tags=garden&bid=12&existing=replace&counted=1"),
        ("/watch", "bid=12&existing=keep"),
        ("/watchlist/notes", "note=all&venue=NameJet&existing=replace&counted=1"),
        ("/unwatch", ""),
        ("/hide", ""),
        ("/unhide", "domain=pending.com"),
    ] {
        let before = state(&mut api);
        let page = ann.post_text(form, &format!("{three}&{fields}"));
        assert_eq!(page.status, 303, "{form}: {}", page.visible());
        assert_ne!(state(&mut api), before, "{form}");
        // The page offers it, and leads back to itself.
        let location = page.location.clone().unwrap_or_default();
        assert!(location.starts_with("/watchlist?tag=flip&"), "{location}");
        let offer = ann.get(&location);
        offer.assert_says(200, "Undo");
        let id = action(&page);
        assert!(offer.text.contains(&format!("name=\"id\" value=\"{id}\"")), "{form}");
        let back = undo(&mut ann, &id, "/watchlist?tag=flip");
        assert!(
            back.location
                .as_deref()
                .is_some_and(|it| it.starts_with("/watchlist?tag=flip&undone="))
        );
        assert_eq!(state(&mut api), before, "{form}");
        // An action is undone once.
        undo(&mut ann, &id, "/").assert_says(404, "not found");
    }
}

#[test]
fn what_was_changed_after_an_action_stays() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let page =
        ann.post("/watch", &[("domain", "solar.com"), ("domain", "fresh.com"), ("bid", "10")]);
    let id = action(&page);
    let later = [("domain", "solar.com"), ("bid", "500"), ("next", "/watchlist")];
    ann.post("/watchlist/entry", &later).assert_goes_to("/watchlist");
    let mut bob = world.person("bob@example.com", "api");
    undo(&mut bob, &id, "/").assert_says(404, "not found");
    let back = undo(&mut ann, &id, "/watchlist");
    assert_eq!(back.location.as_deref(), Some("/watchlist?undone=1&kept=1"));
    ann.get("/watchlist?undone=1&kept=1")
        .assert_says(200, "1 change undone. 1 stayed, because they were changed again later.");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let rows = api.get("/api/v1/watchlist").json()["watchlist"].clone();
    assert_eq!((&rows[0]["domain"], &rows[0]["maxBidUsd"]), (&json!("solar.com"), &json!(500)));
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    // An address of another site is not followed, and what changed nothing is not offered.
    let page = ann.post("/unwatch", &[("domain", "fresh.com"), ("next", "/watchlist")]);
    assert_eq!(page.location.as_deref(), Some("/watchlist"));
    let page = ann.post("/unwatch", &[("domain", "solar.com"), ("next", "/watchlist")]);
    let back = undo(&mut ann, &action(&page), "https://evil.example/");
    assert_eq!(back.location.as_deref(), Some("/?undone=1&kept=0"));
}

#[test]
fn marks_are_undone() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let mut marked = |mark: &str| {
        let body = api.get(&format!("/api/v1/drops?fact=mine.mark:{mark}&view=all")).json();
        let names = body["drops"].as_array().expect("rows").iter();
        let mut names: Vec<_> = names.map(|row| row["name"].clone()).collect();
        names.sort_by_key(Value::to_string);
        names
    };
    let both = [("domain", "solar.com"), ("domain", "fresh.com"), ("next", "/watchlist")];
    let with = |mark| [&both[..], &[("mark", mark)]].concat();
    ann.post("/mark", &[("domain", "solar.com"), ("mark", "clean")]);
    let page = ann.post("/mark", &with("spam"));
    assert_eq!(marked("spam"), [json!("fresh.com"), json!("solar.com")]);
    undo(&mut ann, &action(&page), "/watchlist").assert_goes_to("/watchlist?undone=2&kept=0");
    assert_eq!(marked("clean"), [json!("solar.com")]);
    assert_eq!(marked("spam"), [] as [Value; 0]);
    let page = ann.post("/mark", &with("none"));
    ann.post("/mark", &[("domain", "solar.com"), ("mark", "spam")]);
    undo(&mut ann, &action(&page), "/watchlist").assert_goes_to("/watchlist?undone=0&kept=1");
    assert_eq!(marked("spam"), [json!("solar.com")]);
}

#[test]
fn deleted_rules_searches_and_claims_are_undone() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let rule = ann.add_rule("mine", &[("email", "on")]);
    let claim = ann.add_claim("solar.com", &[("status", "attempted")]);
    let search = ann.add_search("mine", &[("tld", "com")]);
    for path in
        [format!("/alerts/{rule}"), format!("/portfolio/{claim}"), format!("/searches/{search}")]
    {
        let list = path.rsplit_once('/').expect("a path").0.to_owned();
        let page = ann.post(&format!("{path}/delete"), &[]);
        page.assert_goes_to(&format!("{list}?notice=removed"));
        let location = page.location.clone().unwrap_or_default();
        ann.get(&location).assert_says(200, "Undo");
        assert!(!ann.get(&list).text.contains(&format!("{path}\"")), "{path}");
        undo(&mut ann, &action(&page), &list).assert_goes_to(&format!("{list}?undone=1&kept=0"));
        assert!(ann.get(&list).text.contains(path.as_str()), "{path}");
    }
}

#[test]
fn scripts_get_the_action_in_a_header() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    ann.post("/watchlist/entry", &[("domain", "solar.com"), ("note", "mine"), ("next", "/")]);
    let fields = [("domain", "solar.com")];
    let gone = ann.post_by_script("/unwatch", &fields);
    assert_eq!(gone.status, 204);
    let id = gone.header("undo").expect("an action").to_owned();
    assert_eq!(ann.post_by_script("/undo", &[("id", &id)]).status, 204);
    ann.get("/watchlist").assert_says(200, "mine");
    assert_eq!(ann.post_by_script("/undo", &[("id", &id)]).status, 404);
    assert_eq!(ann.post_by_script("/watch", &fields).header("undo"), None, "nothing was changed");
}
