//! Account pages: sign-up, login, logout and the account settings.

mod api_key;
mod data;
mod digest;
pub(crate) mod facts;
mod keys;
mod login;
mod mail;
mod mailed_links;
mod notifications;
mod plan;
mod profile;
mod reset;
mod security;
mod setup;
mod signup;
mod verify;
mod welcome;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use maud::{Markup, html};

use crate::Web;
use crate::accounts::Profile;
use crate::error::PageError;
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice::Notice;
use crate::service::error::ApiError;
use crate::throttle::Wait;
use crate::viewer::Viewer;
pub use mail::{is_set_up as can_mail, send_invitation};
pub use mailed_links::MailedLinks;
pub use setup::{asks_code, code as setup_code, lead as lead_to_setup};
pub use welcome::{let_in as first_visit, makes_owner};

/// Notice on the login page, which is the same if the address already had an account.
const SIGNED_UP: Notice =
    Notice::new("signed-up", "Sign-up complete. Log in with your e-mail and password.");

/// Way in which the pages create accounts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignUps {
    Closed,
    /// Through a mailed link.
    ByMail,
    /// With address and password, without verifying the address.
    AtOnce,
}

impl SignUps {
    /// Depends only on the setting `signup`: configuring a mail server for alerts must not open the
    /// server to everyone.
    fn of(web: &Web) -> SignUps {
        match (web.settings.signup, mail::is_set_up(web)) {
            (None | Some(false), _) => SignUps::Closed,
            (Some(true), true) => SignUps::ByMail,
            (Some(true), false) => SignUps::AtOnce,
        }
    }
}

/// Function that builds the handlers of a path.
type Methods = fn() -> MethodRouter<Web>;

/// Pages whose forms contain a password.
pub const LOG_INS: [(&str, Methods); 7] = [
    (setup::PATH, || get(setup::ask).post(setup::start)),
    ("/login", || get(login::ask).post(login::log_in)),
    ("/signup", || get(signup::ask).post(signup::sign_up)),
    ("/signup/{link}", || get(signup::ask_password).post(signup::start)),
    ("/reset/{link}", || get(reset::ask_password).post(reset::set)),
    ("/account/password", || post(security::change_password)),
    ("/account/delete", || post(data::delete)),
];

/// Routes of the account pages.
pub fn routes() -> Router<Web> {
    LOG_INS
        .iter()
        .fold(Router::new(), |router, (path, methods)| router.route(path, methods()))
        .route("/logout", post(login::log_out))
        .route("/forgot", get(reset::ask).post(reset::send))
        .route("/welcome", get(welcome::ask).post(welcome::start))
        .route("/account", get(profile::show))
        .route("/account/plan", get(plan::show))
        .route("/account/security", get(security::show))
        .route("/account/sessions/end", post(security::end))
        .route("/account/api", get(async || Redirect::permanent(SECURITY)))
        .route("/account/key", post(api_key::issue))
        .route("/account/keys", post(api_key::make))
        .route("/account/keys/replace", post(api_key::replace))
        .route("/account/keys/revoke", post(api_key::revoke))
        .route("/account/facts", get(facts::show).post(facts::add))
        .route("/account/facts/mapping", post(facts::map))
        .route("/account/facts/remove", post(facts::remove))
        .route("/account/data", get(data::show))
        .route("/account/notifications", get(notifications::show))
        .route("/account/digest", post(notifications::set_digest))
        .route("/account/telegram", post(notifications::set_chat))
        .route("/account/email/send", post(notifications::send_link))
        .route("/verify/{token}", get(verify::ask).post(verify::verify))
}

/// Path of the tab with password, sessions and keys.
const SECURITY: &str = "/account/security";

/// Tabs of the account settings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tab {
    Profile,
    Security,
    Plan,
    Facts,
    Notifications,
    Data,
}

/// Path, name and description of each tab.
const TABS: [(Tab, &str, &str, &str); 6] = [
    (Tab::Profile, "/account", "Profile", "Your e-mail address and plan."),
    (
        Tab::Security,
        SECURITY,
        "Security",
        "Your password, active sessions, and API keys with what each may use.",
    ),
    (
        Tab::Plan,
        "/account/plan",
        "Plan",
        "The limits of each plan, and what you have used of yours.",
    ),
    (
        Tab::Facts,
        "/account/facts",
        "Facts",
        "The facts about names that you added, and those of this server.",
    ),
    (
        Tab::Notifications,
        "/account/notifications",
        "Notifications",
        "Where your alerts are sent, and the morning digest.",
    ),
    (
        Tab::Data,
        "/account/data",
        "Data",
        "A copy of everything that is kept for your account, and its deletion.",
    ),
];

/// Styles of pages with a table beside forms.
pub const WITH_TABLES: &[&str] = &["components.css", "owned.css", "account.css"];

/// Returns the current profile of the logged-in account.
fn profile_of(web: &Web, member: &LoggedIn) -> Result<Profile, PageError> {
    let profile = web.app.store.profile(&member.caller, member.viewer.now.0);
    Ok(profile.ok_or(ApiError::NotFound)?)
}

/// Renders a tab of the account settings below the notice of the last form.
fn tab_page(viewer: &Viewer, tab: Tab, notice: &Markup, main: &Markup) -> Markup {
    let (_, _, word, about) = TABS[tab as usize];
    let title = format!("Account: {word}");
    let current = |it: Tab| (it == tab).then_some("page");
    let is_owner = viewer.member.as_ref().is_some_and(|member| member.is_owner);
    Page::new(&title, about)
        .at(NavItem::Account)
        .styles(if matches!(tab, Tab::Security | Tab::Facts) { WITH_TABLES } else { &["account.css"] })
        .scripts(&["account.js"])
        .show(
            Some(viewer),
            html! {
                h1 { "Account" }
                nav aria-label="Account" {
                    ul.tabs {
                        @for (it, path, word, _) in TABS.into_iter().filter(|it| !is_owner || it.0 != Tab::Plan) {
                            li { a href=(path) aria-current=[current(it)] { (word) } }
                        }
                    }
                }
                (notice)
                (main)
            },
        )
}

/// Renders a page with a single form.
fn form_page(viewer: &Viewer, title: &str, main: &Markup) -> Markup {
    let about = match title {
        "Log in" => "Log in to your watchlist, alerts and portfolio.",
        "Sign up" => "Create an account to watch names, get alerts and track your backorders.",
        "Reset your password" => "Get a link by e-mail that sets a new password.",
        _ => "Your account on this server.",
    };
    Page::new(title, about)
        .at(NavItem::Account)
        .styles(&["account.css"])
        .scripts(&["account.js"])
        .show(Some(viewer), html! { div.narrow { h1 { (title) } (main) } })
}

/// Response (429) to a form that was submitted too often.
fn too_many(wait: Wait, page: Markup) -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, wait.seconds.to_string())], page).into_response()
}

/// Returns a text that states how long to wait.
fn wait_text(wait: Wait) -> String {
    let (number, unit) = match wait.seconds {
        seconds @ 0..=90 => (seconds, "second"),
        seconds => (seconds.div_ceil(60), "minute"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("Too many attempts. Try again in {number} {unit}{plural}.")
}
