//! Account pages over HTTP: log-in, sessions, cross-site requests and stolen cookies. The `browser` module
//! tests the same pages in a browser.

mod account;
pub mod browser;
mod cross_site;
mod keys;
mod log_in;
mod mails;
mod mounted;
mod welcome;

use crate::common::{Server, Site};
use browser::Browser;

const TODAY: &str = "2026-11-21";
const TOMORROW: &str = "2026-11-22";
pub const PASSWORD: &str = "correct horse battery";
const PLAIN: &str = "[web]\nplain_http = true\n";
/// Sign-up without mail, which is off by default.
const SIGN_UP: &str = "[web]\nplain_http = true\nsignup = true\n";

/// Creates an installation with a few names and these settings.
fn site(settings: &str) -> Site {
    let names = ["good.com", "fine.net", "solar.org"].map(str::to_owned);
    let site = Site::with_names(names.into_iter(), TODAY);
    site.settings(settings);
    site
}

/// Starts the server of the site on a day.
fn serve_on(site: &Site, today: &str) -> Server {
    let settings = site.lists().join("settings.toml");
    let settings = settings.to_str().expect("temporary paths are UTF-8");
    site.serve_with(&["--today", today, "--config", settings])
}

fn serve(site: &Site) -> Server {
    serve_on(site, TODAY)
}

/// Adds an account with [`PASSWORD`].
pub fn add(site: &Site, email: &str, plan: &str) {
    site.account_with_password(email, plan, PASSWORD);
}

/// Returns a browser with a logged-in session.
fn logged_in(server: &Server, email: &str) -> Browser {
    let mut browser = Browser::new(server);
    let answer = browser.log_in(email, PASSWORD);
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert!(browser.cookie.is_some());
    browser
}
