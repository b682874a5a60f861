//! The actions of an investor, from a filter to the return of a venue, on a generated market.

use chrono::{DateTime, Utc};

use super::drops::names;
use super::world::{TODAY, World};
use crate::common::mailbox::Mailbox;

/// Rows of the watchlist.
const WATCHED: &str = "//tbody/tr[td[contains(@class, 'check')]]";

#[test]
fn a_morning_from_the_filter_to_the_return() {
    let mailbox = Mailbox::new();
    let world = World::market_of_tomorrow(&mailbox);
    let browser = world.member("ann@example.com", "pro");

    // Three actions find the eight best .com names without digits that drop tomorrow.
    browser.open("/");
    let days = browser.main().at("//nav[@aria-label='Release days']");
    days.at("//a[starts-with(normalize-space(.), 'Tomorrow')]").click();
    browser.is_at("/?release_from=2026-11-21&release_to=2026-11-21");
    browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]").click();
    browser.is_at("/?tld=com&release_from=2026-11-21&release_to=2026-11-21");
    browser.main().at("//aside//a[normalize-space(.)='No digits']").click();
    browser.is_at("/?tld=com&digits=none&release_from=2026-11-21&release_to=2026-11-21");
    browser.text("no digits").wait();
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let query = "tld=com&digits=none&release_from=tomorrow&release_to=tomorrow&limit=8";
    let best = api.get(&format!("/api/v1/drops?{query}")).json();
    let best = best["drops"].as_array().expect("a list").iter();
    let best: Vec<_> = best.filter_map(|row| row["name"].as_str()).map(str::to_owned).collect();
    assert_eq!((best.len(), &names(&browser)[..8]), (8, &best[..]));

    // The saved search stays relative to the day, and marks new names.
    browser.main().at("//summary[.='Save this search']").click();
    browser.main().field("Name").fill("Best of tomorrow");
    browser.main().button("Save search").follow();
    browser.main().at("//aside//a[@aria-current='true'][contains(., 'Best of tomorrow')]").wait();
    assert!(browser.place().contains("release_from=tomorrow"), "{}", browser.place());
    world.ingest_soon("next.csv", &["openorchard.com", "calmriver.com", "brightcabin.com"], 8);
    browser.until("the new names are counted", || {
        browser.open("/");
        Ok(browser.link("3 new in Best of tomorrow").is_shown().then_some(()))
    });
    browser.link("3 new in Best of tomorrow").follow();
    let mut new = names(&browser);
    new.sort_unstable();
    assert_eq!(new, ["brightcabin.com", "calmriver.com", "openorchard.com"]);
    // They were shown, so the next page counts none.
    browser.open("/?tld=com&digits=none&release_from=tomorrow&release_to=tomorrow&sort=listed");
    browser.main().row("calmriver.com").wait();
    assert_eq!(browser.main().at("//aside//a[@class='new']").count(), 0);

    // Twenty names are selected by keyboard, and watched with a tag.
    for _ in 0..20 {
        browser.press("j");
        browser.press("x");
    }
    browser.text("20 selected").wait();
    browser.field("Tags").fill("tomorrow");
    browser.main().button("Save notes").follow();
    browser.main().row("calmriver.com").button("Watching calmriver.com: stop").wait();

    // A maximum bid and a venue are set for all of them at once.
    browser.open("/watchlist?tag=tomorrow");
    browser.main().link("calmriver.com").wait();
    assert_eq!(browser.main().at(WATCHED).count(), 20);
    browser.field("Select all names on this page").click();
    browser.field("Max bid (USD)").fill("120");
    browser.field("Venue").fill("DropCatch");
    browser.main().button("Save").follow();
    browser.text("Saved.").wait();
    let with_bid = "return [...document.querySelectorAll('.watches td.number')].filter((it) => it.textContent.startsWith('$120')).length";
    assert_eq!(browser.script(with_bid, &[]), 20);

    // The search becomes a rule, and the next list produces a mail whose names link to dossiers.
    browser.open("/");
    browser.link("Best of tomorrow").follow();
    browser.link("Alert me about these").follow();
    browser.field("Name").fill("Tomorrow");
    browser.main().button("Create alert").follow();
    browser.heading("Tomorrow").wait();
    // The twenty names drop tomorrow, so a mail about them came at once.
    let mail = mailbox.next();
    assert!(mail.text.contains("calmriver.com"), "{}", mail.text);
    world.ingest_soon("last.csv", &["stillharbor.com", "stillharbor.net"], 9);
    let mail = mailbox.next();
    assert!(mail.to.contains("<ann@example.com>"), "{}", mail.to);
    assert!(
        mail.text.contains("https://drops.example.net/domain/stillharbor.com"),
        "{}",
        mail.text
    );
    assert!(!mail.text.contains("stillharbor.net"), "{}", mail.text);

    // The dossier links to the venue; the test checks the link without following it.
    browser.open("/watchlist?tag=tomorrow");
    browser.main().link("calmriver.com").follow();
    let venue = browser.main().at("//section[h2='Open at']//a[contains(@class, 'on')]");
    assert_eq!(venue.property("textContent"), "DropCatch");
    assert_eq!(venue.property("href"), "https://www.dropcatch.com/domain/calmriver.com");
    assert_eq!(venue.property("rel"), "noreferrer noopener");

    // The catch and the sale are logged, and the venue's return is read.
    browser.main().link("Log a result").follow();
    assert_eq!(browser.field("Your bid (USD)").property("value"), "120");
    browser.field("Status").choose("Caught");
    browser.field("Cost (USD)").fill("80");
    browser.main().button("Add claim").follow();
    browser.link("Edit calmriver.com").follow();
    browser.field("Status").choose("Sold");
    browser.field("Sold for (USD)").fill("400");
    browser.main().button("Save").follow();
    browser.open("/portfolio");
    browser.button("Show as table").click();
    browser.main().at("//*[@id='groups']").row("DropCatch").text("5.0×").wait();
}

#[test]
fn a_new_list_is_seen_by_its_marks() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = folder.path().join("clock");
    let set = |hour: &str| {
        let at: DateTime<Utc> = format!("{TODAY}T{hour}:00:00Z").parse().expect("a time");
        let aside = clock.with_extension("aside");
        std::fs::write(&aside, format!("{}\n", at.timestamp())).expect("written");
        std::fs::rename(&aside, &clock).expect("renamed");
    };
    set("08");
    let world = World::by_clock(&clock);
    let browser = world.member("ann@example.com", "core");
    let list = "/?view=active&tld=com&starts=harbor";
    browser.open(list);
    assert_eq!(names(&browser), ["harborlight.com"]);

    // Two actions save the search.
    browser.main().at("//summary[.='Save this search']").click();
    browser.main().button("Save search").follow();
    world.ingest_soon("next.csv", &["harborlantern.com", "harborgarden.com", "other.com"], 9);

    // On the next visit, new names have a mark without any action, and others have none.
    set("10");
    browser.log_in("ann@example.com");
    browser.until("the list is served", || {
        browser.open(list);
        Ok((names(&browser).len() == 3).then_some(()))
    });
    let marked = "return [...document.querySelectorAll('#list tr:has(.fresh) .sel input')].map((box) => box.value).sort()";
    let new = ["harborgarden.com", "harborlantern.com"];
    assert_eq!(browser.script(marked, &[]), serde_json::json!(new));

    // One action leads to the new names of the search, and another one to those of the whole list.
    browser.main().at("//aside//a[@class='new'][starts-with(normalize-space(.), '2 new')]").click();
    browser.main().text("2 new names").wait();
    let mut shown = names(&browser);
    shown.sort_unstable();
    assert_eq!(shown, new);
    browser.open("/?view=active");
    browser.link("3 new since Fri 08:00").click();
    browser.main().text("3 new names since Fri 08:00").wait();
    assert_eq!(names(&browser).len(), 3);
    browser.main().button("Mark as seen").follow();
    browser.main().at("//*[@id='rows']//tr").wait();
    assert_eq!(browser.script("return document.querySelectorAll('.fresh').length", &[]), 0);
}
