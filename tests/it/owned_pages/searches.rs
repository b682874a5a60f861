//! Saved searches on the drops page and at `/searches`, hidden names, and tags of selected names.

use std::time::Duration;

use super::World;
use super::person::between;
use crate::common::wait;

#[test]
fn a_saved_search_counts_new_names_until_they_were_shown() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "pro");
    ann.get("/?view=active&tld=com").assert_says(200, "Save this search");
    let fields = [("view", "active"), ("tld", "com"), ("sort", "length"), ("limit", "50")];
    let id = ann.add_search("Short .com", &fields);
    let opened = ann.get(&format!("/searches/{id}"));
    opened.assert_goes_to("/?view=active&tld=com&sort=length");
    let list = ann.get("/?view=active&tld=com&sort=length");
    list.assert_says(200, "Short .com 4");
    assert!(list.text.contains(&format!("href=\"/searches/{id}\" aria-current=\"true\"")));

    let rows = "domain,drop_date\nbrandnew.com,2026-03-14\nother.net,2026-03-14\n";
    world.site.ingest(&world.site.write("next.csv", rows), "2026-03-16T00:00:00Z");
    wait::until_ok(Duration::from_secs(60), || {
        let page = ann.get("/").visible();
        if page.contains("Short .com 1 new") { Ok(()) } else { Err(page) }
    });
    ann.get("/searches").assert_says(200, "TLD com");
    // Another list, and the whole list of the search, keep the number.
    ann.get("/?view=active&tld=net");
    ann.get(&format!("/searches/{id}")).assert_goes_to("/?view=active&tld=com&sort=length");
    ann.get("/?view=active&tld=com&sort=length").assert_says(200, "Short .com 1 new");
    // The number leads to the new name alone, also when the page is loaded again.
    let new = "/?view=active&new=after-1&tld=com&sort=length";
    ann.get(&format!("/searches/{id}?new=1")).assert_goes_to(new);
    for _ in 0..2 {
        let list = ann.get(new);
        list.assert_says(200, "1 new name Drops");
        list.assert_lacks("1 new in");
        assert_eq!(list.text.matches("aria-label=\"Select ").count(), 2, "{}", list.visible());
        assert!(list.text.contains("Select brandnew.com"), "{}", list.visible());
    }
    ann.get("/").assert_says(200, "Short .com 5");

    ann.post(&format!("/searches/{id}"), &[("name", "Renamed")])
        .assert_goes_to("/searches?notice=renamed");
    ann.post(&format!("/searches/{id}"), &[("name", " ")]).assert_says(400, "1 to 100 characters");
    ann.get(&format!("/searches/{id}/delete")).assert_says(200, "Renamed");
    ann.post(&format!("/searches/{id}/delete"), &[]).assert_goes_to("/searches?notice=removed");
    ann.get("/searches").assert_says(200, "Keep a search that you run again");
}

#[test]
fn a_page_shows_the_filters_that_its_search_stores() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "pro");
    for (sent, opened) in [
        (
            vec![("view", "all"), ("digits", "none")],
            "/?stage=redemption%2Cpending-delete%2Ccatchable%2Creleased&digits=none",
        ),
        (vec![("view", "today")], "/?dropped_from=today&dropped_to=today"),
        (
            vec![("release_from", "tomorrow"), ("release_to", "+7d")],
            "/?release_from=tomorrow&release_to=%2B7d",
        ),
        (vec![("starts", "a,\"b,c\""), ("q", "e")], "/?view=active&q=e&starts=a%2C%22b%2Cc%22"),
    ] {
        let id = ann.add_search("one", &sent);
        let page = ann.get(&format!("/searches/{id}"));
        assert_eq!(page.location.as_deref().map(params), Some(params(opened)), "{sent:?}");
    }
    ann.post("/searches", &[("name", "a"), ("min_dqs", "101")])
        .assert_says(400, "must be an integer from 0 to 100");
}

/// Returns the parameters of a path, in any order.
fn params(path: &str) -> Vec<&str> {
    let mut params: Vec<_> = path.trim_start_matches("/?").split('&').collect();
    params.sort_unstable();
    params
}

#[test]
fn an_alert_takes_the_filters_of_a_search_or_a_list() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "pro");
    let search = ann.add_search("Teas", &[("starts", "tea"), ("max_len", "9"), ("tld", "com,net")]);
    let form = ann.get(&format!("/alerts/new?search={search}"));
    for part in [
        "name=\"name\" type=\"text\" value=\"Teas\"",
        "name=\"tld\" type=\"text\" value=\"com, net\"",
        "name=\"max_len\" type=\"number\" value=\"9\"",
        "type=\"checkbox\" name=\"starts\" value=\"tea\" checked",
    ] {
        assert!(form.text.contains(part), "no {part}: {}", form.text);
    }
    let fields = [
        ("search", search.as_str()),
        ("tld", "com, net"),
        ("max_len", "9"),
        ("starts", "tea"),
        ("email", "on"),
    ];
    let rule = ann.add_rule("Teas", &fields);
    ann.get("/alerts").assert_says(
        200,
        "Names in .com or .net, of at most 9 characters; starts with tea. From the search Teas.",
    );
    // With a different filter, the rule no longer belongs to the search; the query bar adds to the
    // filter.
    let changed =
        [("name", "Teas"), ("starts", "tea"), ("add", "-digits len:4-8"), ("email", "on")];
    ann.post(&format!("/alerts/{rule}"), &changed)
        .assert_goes_to(&format!("/alerts/{rule}?notice=saved"));
    let page = ann.get(&format!("/alerts/{rule}"));
    page.assert_says(200, "of at most 8 characters; length ≥ 4, no digits, starts with tea.");
    page.assert_lacks("From the search");
    let bad = [("name", "Teas"), ("add", "colour:red"), ("email", "on")];
    ann.post(&format!("/alerts/{rule}"), &bad).assert_says(400, "Unknown filter “colour”.");
    ann.post_by_script("/alerts/preview", &[("add", "len:4-")])
        .assert_says(200, "6 names match today");
    ann.post_by_script("/alerts/preview", &[("regex", "(")])
        .assert_says(400, "Regex: at character 1: unclosed group.");
    // The list links to the form with its filters.
    ann.get("/?tld=com&min_len=4&sort=length").assert_says(200, "Alert me");
    let link = ann.get("/?view=all&tld=com&min_len=4&sort=length").text;
    assert!(link.contains("/alerts/new?stage=redemption%2Cpending-delete%2Ccatchable%2Creleased&amp;tld=com&amp;min_len=4\""));
}

#[test]
fn selected_names_are_tagged_and_hidden() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "pro");
    let next = ("next", "/?view=all");
    ann.post(
        "/watch",
        &[next, ("domain", "solar.com"), ("domain", "fresh.com"), ("tags", "flip, garden")],
    )
    .assert_goes_to("/?view=all");
    ann.get("/watchlist?tag=garden").assert_says(200, "solar");
    ann.post("/hide", &[next, ("domain", "solar.com"), ("domain", "released.com")])
        .assert_goes_to("/?view=all");
    let list = ann.get("/?view=all");
    list.assert_says(200, "2 hidden on this page. Show");
    list.assert_lacks("Select solar.com");
    assert!(list.text.contains("Select fresh.com"));
    let all = ann.get("/?view=all&hidden=show");
    assert!(all.text.contains("Select solar.com") && all.text.contains("formaction=\"/unhide\""));
    ann.post("/unhide", &[next, ("domain", "solar.com"), ("domain", "fresh.com")])
        .assert_goes_to("/?view=all");
    ann.get("/?view=all").assert_says(200, "1 hidden on this page. Show");
    ann.post("/hide", &[next, ("domain", "no name")]).assert_says(400, "");
    // Other accounts see the whole list.
    let mut bob = world.person("bob@example.com", "free");
    bob.get("/?view=all").assert_lacks("hidden on this page");
}

#[test]
fn presets_are_listed_saved_and_become_rules() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let page = ann.get("/").text;
    let section = between(&page, "Start with</h2>", "</section>").to_owned();
    assert_eq!(section, between(&ann.get("/search").text, "start with</h2>", "</section>"));
    ann.get("/?tld=com").assert_lacks("Start with</h2>");
    ann.get("/search?q=so").assert_lacks("start with</h2>");
    let links = section.split("<a href=\"").skip(1).map(|link| {
        let path = link.split('"').next().unwrap_or_default().replace("&amp;", "&");
        (path, between(link, ">", "<").to_owned())
    });
    let links: Vec<_> = links.collect();
    assert_eq!(links.len(), 11);
    for (path, name) in links {
        let list = ann.get(&path);
        assert_eq!(list.status, 200, "{path}");
        // The form that saves it, and the link to a rule, have its name.
        assert!(list.text.contains(&format!("name=\"name\" value=\"{name}\"")), "{name}");
        let link = between(&list.text, "href=\"/alerts/new?", "\"").replace("&amp;", "&");
        let editor = ann.get(&format!("/alerts/new?{link}"));
        assert!(editor.text.contains(&format!("value=\"{name}\"")), "{name}: {}", editor.visible());
        let made = ann.post_text("/alerts/new", &format!("{link}&email=on"));
        assert_eq!(made.status, 303, "{name}: {}", made.visible());
    }
}
