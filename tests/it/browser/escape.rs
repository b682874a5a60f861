//! User input is shown as text everywhere.

use serde_json::json;

use super::driver::Browser;
use super::world::World;

/// Contains no space, which would separate several names. If a page treated it as markup, in an
/// element or at the end of an attribute, it would change the title.
const HOSTILE: &str = "\"'><img/src=x/onerror=document.title='owned'><b>bold</b>";

/// Asserts that no part of the text became an element, and that the text appears as written, at least
/// `times` times.
#[track_caller]
fn is_text(browser: &Browser, times: u64) {
    let made = browser.script(
        "return document.querySelectorAll('img[src=x], main b:not([class])').length
            ? [...document.querySelectorAll('img[src=x], main b')].filter((it) => it.matches('img') || it.textContent === 'bold').length
            : 0",
        &[],
    );
    assert_eq!(made, json!(0), "{}", browser.describe());
    let title = browser.script("return document.title", &[]);
    assert_ne!(title, "owned");
    let found = browser.script(
        "const texts = [document.body.innerText, ...[...document.querySelectorAll('input, textarea')].map((it) => it.value)];
         return texts.filter((text) => text.includes(arguments[0])).length",
        &[json!("<img/src=x")],
    );
    assert!(found.as_u64() >= Some(times), "{found}: {}", browser.describe());
}

#[test]
fn html_in_any_field_stays_text() {
    let world = World::new();
    let browser = world.member("ann@example.com", "api");
    let query = crate::common::http::escape(HOSTILE);
    // Text in query strings, which the page shows again.
    for path in
        ["/?q=", "/?tld=", "/?stage=", "/search?q=", "/alerts/new?name=", "/watchlist?notice="]
    {
        browser.open(&format!("{path}{query}"));
        is_text(&browser, 0);
    }
    browser.open(&format!("/search?q={query}"));
    is_text(&browser, 1);

    browser.open("/watchlist");
    browser.field("Names").fill(HOSTILE);
    browser.main().button("Add names").follow();
    is_text(&browser, 2);

    browser.open("/alerts/new");
    browser.field("Name").fill(HOSTILE);
    browser.field("TLDs").fill(HOSTILE);
    browser.field("Webhook URL").fill(HOSTILE);
    // The browser's own check of the address is skipped, so that the server receives it.
    browser.script("document.querySelector('form#rule').noValidate = true", &[]);
    browser.main().button("Create alert").follow();
    is_text(&browser, 3);
    browser.field("Webhook URL").fill("");
    browser.main().button("Create alert").follow();
    is_text(&browser, 2);
    browser.field("TLDs").fill("com");
    browser.main().button("Create alert").follow();
    is_text(&browser, 1);
    let rule = browser.place();
    browser.open("/alerts");
    is_text(&browser, 1);

    browser.open("/portfolio/new?domain=harborlight.com");
    browser.field("Registrar").fill(&HOSTILE[..50]);
    browser.field("Notes").fill(HOSTILE);
    browser.field("Alert rule").choose(HOSTILE);
    browser.main().button("Add claim").follow();
    is_text(&browser, 1);
    for by in ["registrar", "rule"] {
        browser.open(&format!("/portfolio?by={by}"));
        is_text(&browser, 1);
    }
    browser.link("Edit harborlight.com").follow();
    is_text(&browser, 2);
    browser.open(rule.split('?').next().expect("a path"));
    browser.link("Delete").follow();
    is_text(&browser, 1);
}
