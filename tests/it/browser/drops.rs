//! The list of the day, and what is looked for in all names.

use serde_json::json;

use super::driver::Browser;
use super::find::{DOWN, ENTER, ESCAPE};
use super::world::World;
use crate::common::Client;

/// Names of the rows, in their order.
fn names(browser: &Browser) -> Vec<String> {
    let rows = browser.script(
        "return [...document.querySelectorAll('#list tbody tr')].map((row) => row.dataset.name)",
        &[],
    );
    serde_json::from_value(rows).expect("names")
}

/// The first fields of the lines of a CSV file that the page links, got as the page would.
fn csv(browser: &Browser, link: &str) -> Vec<String> {
    let text = browser.script(
        "const link = [...document.querySelectorAll('a[download]')].find((it) => it.textContent.startsWith(arguments[0]));
         return fetch(link.href).then((answer) => answer.text());",
        &[json!(link)],
    );
    let text = text.as_str().expect("a file").to_owned();
    let field = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
    text.lines().skip(1).map(field).collect()
}

/// The names that the API gives for the query of the page's address.
fn api(client: &mut Client, browser: &Browser) -> Vec<String> {
    let place = browser.place();
    let query = place.split_once('?').map_or("", |(_, query)| query);
    let answer = client.get(&format!("/api/v1/drops?limit=100&{query}")).json();
    let drops = answer["drops"].as_array().unwrap_or_else(|| panic!("{answer}"));
    drops.iter().map(|drop| drop["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn list_address_and_csv_say_the_same() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    let mut client = world.server.client_with(&world.site.new_key("ann@example.com"));
    browser.open("/?view=active");
    assert_eq!(names(&browser).len(), 100);
    assert_eq!(names(&browser), api(&mut client, &browser));

    browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]").click();
    browser.is_at("/?view=active&tld=com");
    let bar = browser.field("Search or filter names");
    bar.type_keys("a len:<=8 -digits");
    bar.type_keys(ENTER);
    browser.text("length ≤ 8").wait();
    let place = browser.place();
    for part in ["view=active", "tld=com", "contains=a", "max_len=8", "digits=none"] {
        assert!(place.contains(part), "{place}");
    }
    let shown = names(&browser);
    assert!(!shown.is_empty());
    for name in &shown {
        let label = name.strip_suffix(".com").unwrap_or_else(|| panic!("{name}"));
        // Letters are counted as people write them.
        let is_idn = label.starts_with("xn--");
        assert!(is_idn || label.len() <= 8 && label.contains('a'), "{name}");
    }
    assert_eq!(shown, api(&mut client, &browser));
    let whole = csv(&browser, "CSV");
    assert_eq!(shown, whole[..shown.len()]);

    // The address alone gives the same page, with its filters.
    browser.open(&place);
    assert_eq!(names(&browser), shown);
    browser.text("no digits").wait();

    // Pages are turned in place, one may go back, and together they are the file of all.
    browser.open("/?view=active&tld=com&limit=50");
    let first = names(&browser);
    browser.link("Next").click();
    browser.is_at("/?view=active&tld=com&limit=50&offset=50");
    let second = names(&browser);
    assert_ne!(first, second);
    let whole = csv(&browser, "CSV");
    assert_eq!([first.clone(), second].concat(), whole[..100]);
    browser.script("history.back()", &[]);
    browser.is_at("/?view=active&tld=com&limit=50");
    browser.until("the first page again", || Ok((names(&browser) == first).then_some(())));
    // A column sorts, and turns around.
    browser.link("Length").click();
    browser.is_at("/?view=active&tld=com&sort=length&limit=50");
    assert_eq!(names(&browser), {
        let answer = client.get("/api/v1/drops?view=active&tld=com&sort=length&limit=50").json();
        let drops = answer["drops"].as_array().expect("a list").clone();
        drops
            .iter()
            .map(|drop| drop["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    });
    browser.link("Length").click();
    browser.is_at("/?view=active&tld=com&sort=length&order=desc&limit=50");
}

#[test]
fn the_drop_list_works_by_keyboard() {
    let world = World::new();
    let browser = world.member("ann@example.com", "free");
    browser.open("/?view=active");
    browser.press("/");
    browser.press("harborlight");
    browser.press(ENTER);
    browser.is_at("/?view=active&contains=harborlight");
    assert_eq!(names(&browser), ["harborlight.com"]);
    // Out of the field, into the rows.
    browser.press(ESCAPE);
    browser.press("j");
    browser.press("e");
    let parts = browser.main().at("//tr[contains(@class, 'parts-row')]//dl");
    parts.wait();
    browser.press("e");
    parts.wait_gone();
    browser.press("x");
    browser.text("1 selected").wait();
    browser.press("x");
    browser.press("w");
    browser.main().row("harborlight.com").button("Watching harborlight.com: stop").wait();
    browser.press("?");
    browser.heading("Keyboard shortcuts").wait();
    browser.press(ESCAPE);
    browser.heading("Keyboard shortcuts").wait_gone();
    browser.leave(|| browser.press("o"));
    browser.is_at("/domain/harborlight.com");
}

#[test]
fn the_best_of_tomorrow_are_found_saved_and_watched() {
    let world = World::new();
    let soon = |file: &str, names: &[String], observed_at: &str| {
        let rows: String =
            names.iter().map(|name| format!("{name},2026-10-17,2026-11-21\n")).collect();
        let list = world.site.write(file, format!("domain,drop_date,release_date\n{rows}"));
        world.site.ingest(&list, observed_at);
    };
    let mut tomorrow = vec!["harbor9.com".to_owned(), "oakledger.net".to_owned()];
    for first in ["quiet", "paper", "harbor", "silver", "garden"] {
        let second = ["meadow", "lantern", "ledger", "bridge", "market"];
        tomorrow.extend(second.map(|second| format!("{first}{second}.com")));
    }
    soon("soon.csv", &tomorrow, "2026-11-20T07:00:00Z");
    let browser = world.member("ann@example.com", "pro");
    browser.open("/");
    // Three actions.
    let day = browser
        .main()
        .at("//nav[@aria-label='Release days']//a[starts-with(normalize-space(.), 'Tomorrow')]");
    day.click();
    browser.is_at("/?release_from=2026-11-21&release_to=2026-11-21");
    browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]").click();
    browser.main().at("//aside//a[normalize-space(.)='No digits']").click();
    browser.text("no digits").wait();
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let query = "tld=com&digits=none&release_from=tomorrow&release_to=tomorrow&limit=8";
    let best = api.get(&format!("/api/v1/drops?{query}")).json();
    let best = best["drops"].as_array().expect("a list").iter();
    let best: Vec<_> = best.filter_map(|row| row["name"].as_str()).map(str::to_owned).collect();
    assert_eq!((best.len(), &names(&browser)[..8]), (8, &best[..]));

    // The search is that of tomorrow, on every day.
    browser.main().at("//summary[.='Save this search']").click();
    browser.main().field("Name").fill("Best of tomorrow");
    browser.main().button("Save search").follow();
    browser.main().at("//aside//a[@aria-current='true'][contains(., 'Best of tomorrow')]").wait();
    assert!(browser.place().contains("release_from=tomorrow"), "{}", browser.place());
    let new = ["openorchard.com", "calmriver.com", "brightcabin.com"].map(str::to_owned);
    soon("next.csv", &new, "2026-11-20T08:00:00Z");
    browser.until("the new names are counted", || {
        browser.open("/");
        Ok(browser.link("3 new in Best of tomorrow").is_shown().then_some(()))
    });
    browser.link("3 new in Best of tomorrow").follow();
    let mut first = names(&browser)[..3].to_vec();
    first.sort_unstable();
    assert_eq!(first, ["brightcabin.com", "calmriver.com", "openorchard.com"]);

    // Twenty are selected by keyboard, and watched with a tag.
    for _ in 0..20 {
        browser.press("j");
        browser.press("x");
    }
    browser.text("20 selected").wait();
    browser.field("Tags").fill("tomorrow");
    browser.main().button("Tag").follow();
    browser.main().row("calmriver.com").button("Watching calmriver.com: stop").wait();
    browser.open("/watchlist?tag=tomorrow");
    browser.main().link("calmriver.com").wait();
    assert_eq!(browser.main().at("//tbody/tr[td[contains(@class, 'check')]]").count(), 20);
}

#[test]
fn a_search_is_saved_shows_new_names_and_becomes_an_alert() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    browser.open("/?view=active&tld=com");
    browser.main().at("//summary[.='Save this search']").click();
    browser.main().field("Name").fill("Dotcoms");
    browser.main().button("Save search").follow();
    browser.is_at("/?view=active&tld=com");
    browser.main().at("//aside//a[@aria-current='true'][contains(., 'Dotcoms')]").wait();
    assert_eq!(browser.main().text("new").count(), 0);

    world.ingest("news.csv", &["brandnewname.com", "anothernewname.com", "newname.net"]);
    browser.until("the new names are counted", || {
        browser.open("/");
        Ok(browser.link("2 new in Dotcoms").is_shown().then_some(()))
    });
    browser.link("2 new in Dotcoms").follow();
    browser.is_at("/?view=active&tld=com&sort=listed");
    let mut newest = names(&browser)[..2].to_vec();
    newest.sort_unstable();
    assert_eq!(newest, ["anothernewname.com", "brandnewname.com"]);
    assert_eq!(browser.link("2 new in Dotcoms").count(), 0);

    // Selected names are tagged, and hidden.
    browser.field("Select brandnewname.com").click();
    browser.field("Tags").fill("flip");
    browser.main().button("Tag").follow();
    browser.main().row("brandnewname.com").button("Watching brandnewname.com: stop").wait();
    browser.field("Select anothernewname.com").click();
    browser.main().button("Hide").follow();
    browser.text("1 hidden on this page").wait();
    assert!(!names(&browser).contains(&"anothernewname.com".to_owned()));
    browser.main().link("Show").click();
    browser.main().row("anothernewname.com").text("hidden").wait();

    browser.link("Manage saved searches").follow();
    browser.heading("Saved searches").wait();
    browser.link("Alert me about Dotcoms").follow();
    assert_eq!(browser.field("TLDs").property("value"), "com");
    assert_eq!(browser.field("Name").property("value"), "Dotcoms");
    browser.field("Add filters").fill("starts:brand -digits");
    browser.main().at("//*[@id='preview']").text("brandnewname.com").wait();
    browser.main().button("Create alert").follow();
    browser.text("no digits, starts with brand").wait();
    // The filters are chips now; one is unchecked and gone.
    browser.main().at("//label[normalize-space(.)='no digits']").click();
    browser.main().button("Save").follow();
    browser.text("Names in .com; starts with brand").wait();
}

#[test]
fn type_ahead_suggests_names() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    browser.open("/status");
    let field = browser.field("Search names");
    let option = |name: &str| browser.page().at("//*[@role='option']").text(name);
    field.type_keys("harborlight");
    option("harborlight.com").wait();
    field.type_keys("zzzz");
    option("harborlight.com").wait_gone();
    field.fill("oldharbor");
    option("oldharbor.com").wait();
    // Away and back again, faster than the list closes.
    let open = browser.script(
        "const field = document.querySelector('#find');
         field.blur();
         field.focus();
         return new Promise((resolve) => setTimeout(() => resolve(field.ariaExpanded), 100))",
        &[],
    );
    assert_eq!(open, "true");
    field.type_keys(ESCAPE);
    option("oldharbor.com").wait_gone();
    // At once, so that one question is asked: an answer to another could come after the arrow.
    browser.script(
        "const field = document.querySelector('#find');
         field.value = 'müller';
         field.dispatchEvent(new InputEvent('input', {bubbles: true}))",
        &[],
    );
    option("müller.de").wait();
    field.type_keys(DOWN);
    browser.leave(|| field.type_keys(ENTER));
    browser.is_at("/domain/xn--mller-kva.de");
    browser.text("müller.de").wait();
}
