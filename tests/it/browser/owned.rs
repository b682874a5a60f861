//! User data: watched names, alert rules, claims and their totals.

use super::driver::Look;
use super::drops::names;
use super::find::ESCAPE;
use super::world::World;
use crate::common::receiver::{Receiver, Reply};

const EMAIL: &str = "ann@example.com";

#[test]
fn watched_names_survive_a_restart() {
    let world = World::new();
    let mut browser = world.member(EMAIL, "core");
    browser.open("/?view=active&q=harbor");
    browser.button("Watch harborlight.com").click();
    browser.button("Watching harborlight.com: stop").wait();

    browser.open("/watchlist");
    browser.field("Names").fill("never-seen-by-anybody.com, not-a-name!, oldharbor.com");
    browser.main().button("Add names").follow();
    browser.text("2 names").wait();
    browser.text("Why were they not added?").wait();

    let world = world.restarted();
    browser.moved_to(&world.server);
    browser.open("/watchlist");
    let list = browser.main();
    for name in ["harborlight.com", "oldharbor.com", "never-seen-by-anybody.com"] {
        list.row(name).wait();
    }
    list.button("Remove oldharbor.com").follow();
    list.row("harborlight.com").wait();
    assert_eq!(list.row("oldharbor.com").count(), 0);

    // The other pages show it too.
    browser.open("/domain/harborlight.com");
    browser.button("Watching").wait();
}

#[test]
fn a_rule_is_previewed_and_its_deliveries_are_shown() {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(200));
    let world = World::that_calls(&receiver);
    let browser = world.member(EMAIL, "pro");
    browser.open("/alerts");
    browser.link("Create alert").follow();
    browser.field("Name").fill("Lanterns");
    browser.field("Contains").type_keys("harbor");
    // The preview is updated while the user types.
    browser.main().at("//*[@id='preview']").text("harborlight.com").wait();
    browser.field("Contains").fill("lantern");
    browser.main().at("//*[@id='preview']").text("harborlight.com").wait_gone();
    browser.field("TLDs").fill("com");
    browser.field("Webhook URL").fill(&receiver.url("/hook"));
    browser.main().button("Create alert").follow();
    // The secret is shown once, and messages are signed with it.
    browser.heading("Rule saved").wait();
    browser.text("whsec_").wait();
    browser.link("Go to the rule").follow();
    browser.heading("Lanterns").wait();
    assert_eq!(browser.text("whsec_").count(), 0);
    browser.text("No messages sent yet").wait();

    world.ingest("news.csv", &["lanternbay.com", "lanternbay.net", "otherthing.com"]);
    let sent = receiver.wait_for(1);
    assert!(sent[0].text().contains("lanternbay.com"), "{}", sent[0].text());
    let delivered = browser.main().at("//*[@id='deliveries']").row("delivered");
    browser.until("the delivery is shown", || {
        browser.open(&browser.place());
        Ok(delivered.is_shown().then_some(()))
    });
    delivered.text("1 name").wait();
    // Without a mail server, this message waits; the page shows its content and the reason.
    let waiting = browser.main().at("//*[@id='deliveries']").row("retrying");
    waiting.text("The connection failed").wait();
    waiting.button("1 name").click();
    waiting.text("lanternbay.com").wait();

    browser.button("Pause").follow();
    browser.text("paused").wait();
    browser.link("Delete").follow();
    browser.main().button("Delete").follow();
    browser.main().button("Undo").wait();
}

#[test]
fn claims_are_kept_and_summed_up() {
    let world = World::new();
    let browser = world.member(EMAIL, "core");
    browser.open("/domain/harborlight.com");
    browser.main().link("Log a result").follow();
    assert_eq!(browser.field("Name").property("value"), "harborlight.com");
    browser.field("Status").choose("Sold");
    browser.field("Registrar").fill("Dynadot");
    browser.field("Cost (USD)").fill("69");
    browser.field("Sold for (USD)").fill("1250.50");
    browser.field("Notes").fill("Sold in a week.");
    browser.main().button("Add claim").follow();
    browser.main().row("harborlight.com").text("$1,250.50").wait();

    // Errors are shown beside their field, and typed text is kept.
    browser.link("Add claim").follow();
    browser.field("Name").fill("not a name");
    browser.field("Registrar").fill("Gandi");
    browser.main().button("Add claim").follow();
    assert_eq!(browser.field("Name").property("ariaInvalid"), "true");
    assert_eq!(browser.field("Registrar").property("value"), "Gandi");
    browser.field("Name").fill("oldharbor.com");
    browser.field("Cost (USD)").fill("20");
    browser.main().button("Add claim").follow();

    browser.main().row("Dynadot").wait();
    browser.link("By TLD").follow();
    browser.button("Show as table").click();
    browser.main().at("//*[@id='groups']").row(".com").text("$69").wait();
    browser.link("Edit oldharbor.com").follow();
    browser.link("Delete").follow();
    browser.main().button("Delete").follow();
    assert_eq!(browser.main().row("oldharbor.com").count(), 0);
    browser.main().row("harborlight.com").wait();
}

#[test]
fn selected_names_are_tagged_and_a_dossier_takes_notes() {
    let world = World::new();
    let browser = world.member(EMAIL, "core");
    browser.open("/watchlist");
    browser
        .field("Names")
        .fill("domain,tags,max_bid_usd\nharborlight.com,coast,\noldharbor.com,,120\n");
    browser.main().button("Add names").follow();
    browser.text("2 names").wait();

    // Enter in a field saves the selected names and removes none.
    browser.open("/watchlist");
    browser.field("Select harborlight.com").click();
    browser.field("Select oldharbor.com").click();
    browser.field("Add tags").fill("flip");
    browser.field("Max bid (USD)").fill("95");
    browser.main().button("Save").follow();
    // One of them had another bid.
    browser.main().button("Replace").follow();
    browser.text("Saved.").wait();
    browser.text("2 selected").wait();
    let list = browser.main();
    list.row("harborlight.com").text("coast").wait();
    for name in ["harborlight.com", "oldharbor.com"] {
        list.row(name).text("flip").wait();
        list.row(name).text("$95").wait();
    }
    list.link("#coast").follow();
    list.row("harborlight.com").wait();
    assert_eq!(list.row("oldharbor.com").count(), 0);

    // The dossier shows the notes of the name, and its venue comes first among the links.
    list.link("harborlight.com").follow();
    assert_eq!(browser.field("Max bid (USD)").property("value"), "95");
    assert_eq!(browser.field("Tags").property("value"), "coast, flip");
    browser.field("Venue").fill("NameJet");
    browser.field("Note").fill("Ask Hanna about the shop.");
    browser.main().button("Save").follow();
    assert_eq!(browser.field("Note").property("value"), "Ask Hanna about the shop.");
    let links = browser.script(
        "return [...document.querySelectorAll('.open a')].map((it) => [it.textContent, it.href, it.rel])",
        &[],
    );
    let links = links.as_array().expect("links");
    assert_eq!(links[0][0], "NameJet");
    assert!(links.iter().all(|link| link[2] == "noreferrer noopener"), "{links:?}");
    let dropcatch = links.iter().find(|link| link[0] == "DropCatch").expect("a link");
    assert_eq!(dropcatch[1], "https://www.dropcatch.com/domain/harborlight.com");

    // The bid and the venue are copied to the claim, and after the sale, the page shows the venue's
    // return.
    browser.main().link("Log a result").follow();
    assert_eq!(browser.field("Your bid (USD)").property("value"), "95");
    browser.field("Status").choose("Sold");
    browser.field("Cost (USD)").fill("80");
    browser.field("Sold for (USD)").fill("400");
    browser.main().button("Add claim").follow();
    browser.button("Show as table").click();
    browser.main().at("//*[@id='groups']").row("NameJet").text("5.0×").wait();
}

/// Heights of the rows of the watchlist, and the number of those that are completely on the screen.
const ROWS: &str = "
    const bar = document.querySelector('header.site nav').getBoundingClientRect();
    const end = bar.top > 0 && bar.bottom >= innerHeight ? bar.top : innerHeight;
    const rows = [...document.querySelectorAll('table.watches tbody tr:not(.group)')];
    const boxes = rows.map((row) => row.getBoundingClientRect());
    const seen = boxes.filter((box) => box.top >= 0 && box.bottom <= end).length;
    return [Math.max(...boxes.map((box) => Math.round(box.height))), seen];";

#[test]
fn a_watchlist_is_dense_and_keeps_selection_and_place() {
    let world = World::new();
    let browser = world.member(EMAIL, "core");
    browser.open("/?view=active&tld=com");
    let all = names(&browser);
    let (first, last) = (&all[0], &all[19]);
    browser.open("/watchlist");
    browser.field("Names").fill(&all[..20].join(" "));
    browser.main().button("Add names").follow();
    for (look, height, seen) in [(Look::PHONE, 52, 9), (Look::DESKTOP, 34, 14)] {
        browser.look(look);
        browser.open("/watchlist");
        let rows = browser.script(ROWS, &[]);
        assert_eq!(rows[0], height, "{}", look.word());
        assert!(rows[1].as_u64() >= Some(seen), "{}: {rows}", look.word());
    }

    // The form for selected names is on the screen wherever the rows are.
    browser.open("/watchlist?sort=name");
    let saved = browser.main().button("Save");
    assert!(!saved.is_shown());
    for name in [first, last] {
        browser.field(&format!("Select {name}")).click();
    }
    browser.text("2 selected").wait();
    browser.script("scrollTo(0, 120)", &[]);
    browser
        .field("Note")
        .fill("Ask Hanna about the shop before the end of the week, and call again.");
    saved.follow();
    browser.text("Saved.").wait();
    browser.text("2 selected").wait();
    browser.until("the place is kept", || {
        Ok((browser.script("return Math.round(scrollY)", &[]) == 120).then_some(()))
    });
    assert_eq!(browser.script(ROWS, &[])[0], 34, "a note is one line");

    // Downloads and feeds are in a menu, which closes with Escape.
    let feeds = browser.main().link("Feed and calendar");
    assert!(!feeds.is_shown());
    browser.main().button("More").click();
    feeds.wait();
    browser.press(ESCAPE);
    feeds.wait_gone();
}
