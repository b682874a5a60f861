//! The pictures of the README, taken from the demo: in `target/screenshots`, or with `DROPDEX_BLESS=1`
//! in the folder that the README links.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::driver::{Browser, Look};
use super::drops::names;
use crate::common::Site;

const DARK: Look = Look { width: Look::DESKTOP.width, dark: true };

/// Writes a picture of the visible part of the page.
fn keep(browser: &Browser, folder: &Path, name: &str) {
    let picture = browser.cdp("Page.captureScreenshot", json!({"format": "png"}));
    let bytes = BASE64_STANDARD.decode(picture["data"].as_str().expect("a picture"));
    let file = folder.join(format!("{name}.png"));
    std::fs::write(file, bytes.expect("base64")).expect("a picture can be written");
}

#[test]
#[ignore = "makes the pictures of the README, which differ every day; in the full run"]
fn the_pictures_of_the_readme() {
    let is_blessed = std::env::var("DROPDEX_BLESS").is_ok_and(|it| it == "1");
    let folder = if is_blessed { "data/screenshots" } else { "target/screenshots" };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let site = Site::new();
    let server = site.demo();
    let browser = Browser::new(&server);
    let password = server.printed("  password  ");
    browser.open("/login");
    browser.field("E-mail address").fill(server.printed("  e-mail    ").trim());
    browser.field("Password").fill(password.trim());
    browser.main().button("Log in").follow();

    browser.open("/");
    let best = names(&browser)[0].clone();
    keep(&browser, &folder, "drops");
    browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]").click();
    browser.is_at("/?tld=com");
    browser.main().at("//aside//a[normalize-space(.)='No digits']").click();
    browser.text("no digits").wait();
    for _ in 0..6 {
        browser.press("j");
        browser.press("x");
    }
    browser.text("6 selected").wait();
    keep(&browser, &folder, "selected");
    browser.open(&format!("/domain/{best}"));
    keep(&browser, &folder, "dossier");
    browser.open("/watchlist");
    keep(&browser, &folder, "watchlist");
    browser.open("/alerts");
    browser.main().at("//*[@class='rules']//h2/a").follow();
    keep(&browser, &folder, "alert");
    browser.look(DARK);
    browser.open("/overview");
    keep(&browser, &folder, "overview");
    browser.open("/portfolio");
    keep(&browser, &folder, "portfolio");
    browser.look(Look::PHONE);
    browser.open("/");
    keep(&browser, &folder, "phone-drops");
    browser.open(&format!("/domain/{best}"));
    keep(&browser, &folder, "phone-dossier");
    browser.look(Look { dark: true, ..Look::PHONE });
    browser.open("/watchlist");
    keep(&browser, &folder, "phone-watchlist");
}
