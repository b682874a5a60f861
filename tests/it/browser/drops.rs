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
    let answer = client.get(&format!("/api/v1/drops?limit=40&{query}")).json();
    let drops = answer["drops"].as_array().unwrap_or_else(|| panic!("{answer}"));
    drops.iter().map(|drop| drop["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn list_address_and_csv_say_the_same() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    let mut client = world.server.client_with(&world.site.new_key("ann@example.com"));
    let chip = browser.main().at("//label[starts-with(normalize-space(.), '.com')]");
    browser.open("/");
    assert_eq!(names(&browser).len(), 40);
    assert_eq!(names(&browser), api(&mut client, &browser));

    chip.click();
    browser.is_at("/?tld=com");
    browser.field("Name contains").type_keys("a");
    browser.is_at("/?tld=com&q=a");
    browser.field("Maximum length").type_keys("8");
    browser.is_at("/?tld=com&q=a&max_len=8");
    let shown = names(&browser);
    assert!(!shown.is_empty() && shown.len() <= 40);
    for name in &shown {
        let label = name.strip_suffix(".com").unwrap_or_else(|| panic!("{name}"));
        // Letters are counted as people write them.
        let is_idn = label.starts_with("xn--");
        assert!(is_idn || label.len() <= 8 && label.contains('a'), "{name}");
    }
    assert_eq!(shown, api(&mut client, &browser));
    assert_eq!(shown, csv(&browser, "this page"));

    // The address alone gives the same page, its fields filled in.
    let place = browser.place();
    browser.open(&place);
    assert_eq!(names(&browser), shown);
    assert_eq!(browser.field("Name contains").property("value"), "a");
    assert_eq!(browser.field("Maximum length").property("value"), "8");

    // Pages are turned in place, one may go back, and together they are the file of all.
    browser.open("/?tld=com");
    let first = names(&browser);
    browser.link("Next").click();
    browser.is_at("/?tld=com&offset=40");
    let second = names(&browser);
    assert_eq!(second, csv(&browser, "this page"));
    assert_ne!(first, second);
    let whole = csv(&browser, "all");
    assert_eq!([first.clone(), second].concat(), whole[..80]);
    browser.script("history.back()", &[]);
    browser.is_at("/?tld=com");
    browser.until("the first page again", || Ok((names(&browser) == first).then_some(())));
}

#[test]
fn the_drop_list_works_by_keyboard() {
    let world = World::new();
    let browser = world.member("ann@example.com", "free");
    browser.open("/");
    browser.press("/");
    browser.press("harborlight");
    browser.is_at("/?q=harborlight");
    assert_eq!(names(&browser), ["harborlight.com"]);
    // Out of the field and over the numbers, where letters are no shortcuts either.
    for _ in 0..3 {
        browser.press("\u{E004}");
    }
    browser.press("j");
    browser.press(ENTER);
    let row = browser.main().row("harborlight.com");
    row.at("//details[@open]").wait();
    // A script adds the parts of the score.
    row.at("//details[@open]//dl").wait();
    browser.press(ENTER);
    row.at("//details[@open]").wait_gone();
    browser.press("w");
    row.button("Watching harborlight.com: stop").wait();
    browser.press("?");
    browser.heading("Keyboard shortcuts").wait();
    browser.press(ESCAPE);
    browser.heading("Keyboard shortcuts").wait_gone();
    browser.leave(|| browser.press("o"));
    browser.is_at("/domain/harborlight.com");
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
