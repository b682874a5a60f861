//! What an investor does before breakfast, each with the number of clicks that it takes.

use serde_json::json;

use super::drops::names;
use super::world::{TODAY, World};
use crate::common::mailbox::Mailbox;

#[test]
fn fifty_names_get_bid_tag_and_venue_in_one_form_and_lose_them_with_one_click() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let mut watched = || {
        let list = api.get("/api/v1/watchlist?limit=100").json();
        list["watchlist"].as_array().expect("a list").clone()
    };
    browser.open("/?view=active&tld=com&limit=50");
    let shown = names(&browser);
    assert_eq!(shown.len(), 50);
    // Two clicks: all, and save. What is written into fields is no click.
    browser.field("Select all names on this page").click();
    browser.text("50 selected").wait();
    browser.field("Max bid (USD)").fill("120");
    browser.field("Tags").fill("morning");
    browser.field("Venue").fill("DropCatch");
    browser.main().button("Save notes").follow();
    browser.text("50 names").wait();
    let list = watched();
    assert_eq!(list.len(), 50);
    for row in &list {
        let notes = (&row["maxBidUsd"], &row["tags"], &row["venue"]);
        assert_eq!(notes, (&json!(120), &json!(["morning"]), &json!("DropCatch")), "{row}");
    }
    browser.button("Undo").follow();
    browser.text("50 changes undone.").wait();
    assert_eq!(watched().len(), 0);
}

#[test]
fn a_preview_states_what_the_rule_delivers() {
    let mailbox = Mailbox::new();
    let world = World::market(&mailbox);
    let browser = world.member("ann@example.com", "pro");
    let path = "/alerts/new?tld=com&max_len=12&name=Short";
    browser.open(path);
    browser.main().button("Create alert").follow();
    browser.heading("Short").wait();
    let list =
        ["harborbay.com", "quaylamp.com", "lanternworks.com", "averyverylongname.com", "quay.net"];
    world.ingest_soon("next.csv", &list, 8);
    let mail = mailbox.next();
    let delivered: Vec<_> = list.iter().filter(|name| mail.text.contains(*name)).collect();
    assert_eq!(delivered, list[..3].iter().collect::<Vec<_>>());

    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let rules = api.get("/api/v1/alerts").json();
    let rule = &rules["alerts"][0];
    let id = &rule["id"];
    let sent = api.get(&format!("/api/v1/alerts/{id}/deliveries")).json();
    assert_eq!(sent["deliveries"][0]["names"], 3, "{sent}");
    let filter = rule["filter"].clone();
    let mut soon = filter.clone();
    soon["releaseWithinDays"] = json!(3);
    for filter in [filter, soon] {
        let preview = json!({"name": "Short", "filter": filter, "channels": []});
        let preview = api.send("POST", "/api/v1/alerts/preview", &preview).json();
        assert_eq!(preview["latest"], json!({"date": TODAY, "count": 3}), "{preview}");
    }
    // The form says the same.
    browser.open(path);
    browser.main().text("3 names").wait();
}

#[test]
fn prices_are_read_as_they_are_written_in_german() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    browser.cdp("Emulation.setLocaleOverride", json!({"locale": "de-DE"}));
    let save = || {
        let form = browser.main().at("//form[contains(@class, 'notes')]");
        form.at("//button[contains(., 'ave')]").follow();
    };
    for (typed, shown) in [("1.250,00", "$1,250"), ("12,50", "$12.50")] {
        browser.open("/domain/harborlight.com");
        browser.field("Max bid (USD)").fill(typed);
        save();
        // The price is shown as it was read, before it is saved.
        browser.main().text(shown).wait();
        browser.main().button("Save").follow();
        browser.open("/watchlist");
        browser.main().row("harborlight.com").text(shown).wait();
    }
    browser.open("/domain/harborlight.com");
    browser.field("Max bid (USD)").fill("1.250");
    save();
    browser.main().text("write 1250 or 1.25").wait();
}
