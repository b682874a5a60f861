//! Accounts, as their owners see them: signing up, logging in and out, and the tabs of one's own.

mod api_key;
mod field;
mod login;
mod mail;
mod notifications;
mod plan;
mod profile;
mod signup;
mod verify;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::accounts::Profile;
use crate::http::error::ApiError;
use crate::web::Web;
use crate::web::error::PageError;
use crate::web::layout::{NavItem, Page};
use crate::web::throttle::Wait;
use crate::web::viewer::{LoggedIn, Viewer};

/// Pages about the account of whoever looks.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/login", get(login::ask).post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/signup", get(signup::ask).post(signup::sign_up))
        .route("/account", get(profile::show))
        .route("/account/password", post(profile::change_password))
        .route("/account/plan", get(plan::show))
        .route("/account/api", get(api_key::show))
        .route("/account/key", post(api_key::issue))
        .route("/account/notifications", get(notifications::show))
        .route("/account/telegram", post(notifications::set_chat))
        .route("/account/email/send", post(notifications::send_link))
        .route("/verify/{token}", get(verify::ask).post(verify::verify))
}

/// The tabs of an account.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tab {
    Profile,
    Plan,
    Api,
    Notifications,
}

const TABS: [(Tab, &str, &str); 4] = [
    (Tab::Profile, "/account", "Profile"),
    (Tab::Plan, "/account/plan", "Plan"),
    (Tab::Api, "/account/api", "API"),
    (Tab::Notifications, "/account/notifications", "Notifications"),
];

/// What the account of whoever looks is like now.
fn profile_of(web: &Web, member: &LoggedIn) -> Result<Profile, PageError> {
    let profile = web.app.store.profile(&member.caller, member.viewer.now.0);
    Ok(profile.ok_or(ApiError::NotFound)?)
}

/// A tab of the account, with what is said of the form that led to it.
fn tab_page(viewer: &Viewer, tab: Tab, notice: &Markup, main: &Markup) -> Markup {
    let title = TABS.iter().find(|(it, ..)| *it == tab).map_or("Account", |(.., word)| word);
    let title = format!("Account: {title}");
    let current = |it| (it == tab).then_some("page");
    Page::new(&title).at(NavItem::Account).styles(&["account.css"]).scripts(&["account.js"]).show(
        Some(viewer),
        html! {
            h1 { "Account" }
            nav aria-label="Account" {
                ul.tabs {
                    @for (it, path, word) in TABS {
                        li { a href=(path) aria-current=[current(it)] { (word) } }
                    }
                }
            }
            (notice)
            (main)
        },
    )
}

/// A page that is one form.
fn form_page(viewer: &Viewer, title: &str, main: &Markup) -> Markup {
    Page::new(title)
        .at(NavItem::Account)
        .styles(&["account.css"])
        .scripts(&["account.js"])
        .show(Some(viewer), html! { div.narrow { h1 { (title) } (main) } })
}

/// A form that was sent too often, shown again.
fn too_many(wait: Wait, page: Markup) -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, wait.seconds.to_string())], page).into_response()
}

/// How long to wait, in words.
fn wait_words(wait: Wait) -> String {
    let (number, unit) = match wait.seconds {
        seconds @ 0..=90 => (seconds, "second"),
        seconds => (seconds.div_ceil(60), "minute"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("Too many tries. Wait {number} {unit}{plural}, then try again.")
}
