//! `/domain/{name}` for its watcher: checks with a registry, notes and external links.

use std::time::Duration;

use serde_json::json;

use super::World;
use super::person::{PASSWORD, Person};
use crate::common::knot::Knot;
use crate::common::rdap::{RdapServer, Says};
use crate::common::{Site, TODAY, wait};

/// Longer than any step takes, so a timeout means that the event never happens.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Settings with a registry and a zone for .com.
fn settings(site: &Site, com: &RdapServer, zone: &Knot) -> String {
    site.settings(&format!(
        "[rdap]\nbootstrap = \"{}\"\nallow = {}\n[dns.zones]\ncom = [\"{}\"]\n",
        com.bootstrap_url(),
        json!([com.allowed()]),
        zone.address(),
    ))
}

#[test]
fn a_check_queries_the_registry_once_and_is_kept() {
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say("gone.com", Says::NotFound);
    let zone = Knot::start_zone("com.", "");
    com.say("broken.com", Says::Status(500));
    let site = Site::new();
    let list =
        site.write("list.csv", "domain,drop_date\ngone.com,2026-01-20\nbroken.com,2026-02-20\n");
    site.ingest(&list, &format!("{TODAY}T00:00:00Z"));
    site.account_with_password("ann@example.com", "free", PASSWORD);
    site.account_with_password("bob@example.com", "free", PASSWORD);
    let settings = settings(&site, &com, &zone);
    let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
    let mut nobody = Person::nobody(&server);
    nobody.get("/domain/gone.com").assert_says(200, "Log in to check now");
    nobody.post("/domain/gone.com/check", &[]).assert_goes_to("/login");

    let mut ann = Person::logged_in(&server, "ann@example.com");
    let page = ann.get("/domain/gone.com");
    page.assert_says(200, "Not checked The dates come from the calendar. Check now");
    page.assert_says(200, "Expected to be available since 24 Feb, not verified.");
    for _ in 0..2 {
        ann.post("/domain/gone.com/check", &[]).assert_goes_to("/domain/gone.com?notice=checked");
    }
    let page = ann.get("/domain/gone.com");
    page.assert_says(200, "free RDAP and the DNS agree.");
    page.assert_says(200, "✓ Confirmed just now");
    page.assert_says(200, "Two sources confirm that it is free.");
    assert_eq!(com.asked_about("gone.com"), 1, "the second check was answered from memory");

    // The result does not reveal to others that Ann asked.
    let mut bob = Person::logged_in(&server, "bob@example.com");
    let not_checked = "Not checked The dates come from the calendar.";
    nobody.get("/domain/gone.com").assert_says(200, not_checked);
    bob.get("/domain/gone.com").assert_says(200, not_checked);
    bob.get("/checks?domain=gone.com").assert_says(200, "gone.com not checked");
    bob.post("/domain/gone.com/check", &[]).assert_goes_to("/domain/gone.com?notice=checked");
    bob.get("/domain/gone.com").assert_says(200, "✓ Confirmed just now");
    assert_eq!(com.asked_about("gone.com"), 1, "a fresh result is shared with those who ask");

    ann.post("/domain/broken.com/check", &[])
        .assert_goes_to("/domain/broken.com?notice=check-failed");
    ann.get("/domain/broken.com").assert_says(200, "No response The last check failed.");
    let page = ann.get("/domain/unseen.se");
    page.assert_says(404, "No RDAP server The DNS can show that the name is taken. Check now");
}

/// Names are selected in the list, their results come on a page of their own, and stay in a column.
#[test]
fn selected_names_are_checked_on_a_page() {
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say("gone.com", Says::NotFound);
    com.say("kept.com", Says::held_since("2000-01-01"));
    let zone = Knot::start_zone("com.", "kept NS ns.elsewhere.example.\n");
    let site = Site::new();
    let list =
        site.write("list.csv", "domain,drop_date\ngone.com,2026-03-10\nkept.com,2026-03-10\n");
    site.ingest(&list, &format!("{TODAY}T00:00:00Z"));
    site.account_with_password("ann@example.com", "free", PASSWORD);
    let settings = settings(&site, &com, &zone);
    let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
    let fields = [("domain", "gone.com"), ("domain", "kept.com"), ("next", "/?view=all")];
    Person::nobody(&server).post("/checks", &fields).assert_goes_to("/login");
    let mut ann = Person::logged_in(&server, "ann@example.com");
    let page = "/checks?domain=gone.com&domain=kept.com&next=%2F%3Fview%3Dall";
    ann.post("/checks", &fields).assert_goes_to(page);
    wait::until(WAIT_MAX, "the results", || {
        let shown = ann.get(page);
        let has_all = shown.visible().contains("All results have come.");
        assert_eq!(shown.header("refresh").is_some(), !has_all, "it is loaded until then");
        has_all
    });
    let shown = ann.get(page);
    shown.assert_says(200, "gone.com ✓ free RDAP and the DNS agree.");
    shown.assert_says(200, "kept.com ✓ renewed");
    assert!(shown.text.contains("href=\"/?view=all\""), "{}", shown.text);
    ann.post("/columns", &[("column", "checked"), ("next", "/")]).assert_goes_to("/");
    ann.get("/?view=all").assert_says(200, "free just now");
    for wrong in [vec![], vec![("domain", "no name")], vec![("domain", "a.com"); 101]] {
        assert_eq!(ann.post("/checks", &wrong).status, 400);
    }
    assert_eq!(com.asked(), 2);
}

#[test]
fn the_operator_chooses_the_links() {
    let world = World::with(
        "[[links.backorder]]\nname = \"Mine\"\nurl = \"https://mine.example/?q={unicode}&t={tld}\"\n",
    );
    let mut ann = world.person("ann@example.com", "free");
    let page = ann.get("/domain/xn--mnchen-3ya.de").text;
    let link = "href=\"https://mine.example/?q=m%C3%BCnchen&amp;t=de\" target=\"_blank\" rel=\"noreferrer noopener\">Mine</a>";
    assert!(page.contains(link) && !page.contains("Catched"), "{page}");
    assert!(page.contains("https://web.archive.org/web/*/xn--mnchen-3ya.de"), "{page}");
}

#[test]
fn notes_are_saved_from_the_dossier() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    let fields = [
        ("domain", "solar.com"),
        ("next", "/domain/solar.com"),
        ("bid", "$1,200.50"),
        ("venue", "SnapNames"),
        ("tags", "flip, #keep,"),
        ("note", "two\r\nlines <b>"),
    ];
    ann.post("/watchlist/entry", &fields).assert_goes_to("/domain/solar.com");
    let page = ann.get("/domain/solar.com").text;
    for value in [
        "value=\"1200.5\"",
        "value=\"SnapNames\"",
        "value=\"flip, keep\"",
        "\ntwo\nlines &lt;b&gt;</textarea>",
    ] {
        assert!(page.contains(value), "no {value} in {page}");
    }
    ann.get("/watchlist").assert_says(200, "$1,200.50");
    ann.post("/watchlist/entry", &[("domain", "solar.com"), ("bid", "much")])
        .assert_says(400, "must be a number");
    // An empty form clears the note.
    ann.post("/watchlist/entry", &[("domain", "solar.com"), ("next", "/watchlist")])
        .assert_goes_to("/watchlist");
    ann.get("/watchlist").assert_says(200, "set bid");
    ann.post("/watchlist/notes", &[("tags", "x"), ("next", "/watchlist")])
        .assert_goes_to("/watchlist?notice=unselected");
}
