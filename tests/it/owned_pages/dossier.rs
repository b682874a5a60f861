//! `/domain/{name}` for its watcher: checks with a registry, notes and external links.

use serde_json::json;

use super::World;
use super::person::{PASSWORD, Person};
use crate::common::rdap::{RdapServer, Says};
use crate::common::{Site, TODAY};

#[test]
fn a_check_queries_the_registry_once_and_is_kept() {
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say("gone.com", Says::NotFound);
    com.say("broken.com", Says::Status(500));
    let site = Site::new();
    let list =
        site.write("list.csv", "domain,drop_date\ngone.com,2026-01-20\nbroken.com,2026-02-20\n");
    site.ingest(&list, &format!("{TODAY}T00:00:00Z"));
    site.account_with_password("ann@example.com", "free", PASSWORD);
    let settings = site.settings(&format!(
        "[rdap]\nbootstrap = \"{}\"\nallow = {}\n",
        com.bootstrap_url(),
        json!([com.allowed()]),
    ));
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
    page.assert_says(200, "available ✓ Confirmed just now");
    page.assert_says(200, "The registry confirms that it is available.");
    assert_eq!(com.asked_about("gone.com"), 1, "the second check was answered from memory");

    ann.post("/domain/broken.com/check", &[])
        .assert_goes_to("/domain/broken.com?notice=check-failed");
    ann.get("/domain/broken.com").assert_says(200, "No response The last check failed.");
    // A suffix without a server cannot be checked.
    ann.get("/domain/unseen.de").assert_says(404, "No RDAP server");
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
