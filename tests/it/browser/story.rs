//! The actions of an investor, from a filter to the return of a venue, on a generated market.

use super::drops::names;
use super::world::World;
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
    let mut first = names(&browser)[..3].to_vec();
    first.sort_unstable();
    assert_eq!(first, ["brightcabin.com", "calmriver.com", "openorchard.com"]);

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
