//! `/forgot` and `/reset/{link}`: set a new password through a mailed link. No response reveals which
//! addresses have an account. The link is valid for an hour, and only until the password changes. GET
//! only shows the form, because mail scanners open every link. An account without a password gets its
//! first one the same way.

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::Web;
use crate::account::login::{Credentials, begin};
use crate::account::mailed_links::Purpose;
use crate::account::{form_page, mail, too_many, wait_text};
use crate::accounts::{Email, Password, PasswordSeal, SessionLife};
use crate::error::{PageError, sentence};
use crate::field::Field;
use crate::form::Form;
use crate::notice::{self, Notice};
use crate::peer::Peer;
use crate::telemetry::security::{self, SecurityEvent};
use crate::viewer::Viewer;

const MAILED: Notice = Notice::new(
    "mailed",
    "If this address has an account, we sent a link to it. Open it within an hour. If it does not arrive, check your spam folder.",
);

/// `GET /forgot`: asks for the address.
pub async fn ask(State(web): State<Web>, viewer: Viewer, RawQuery(query): RawQuery) -> Response {
    if !mail::is_set_up(&web) {
        return without_mail(&viewer);
    }
    let notice = notice::shown(&[MAILED], query.as_deref());
    form_page(&viewer, TITLE, &html! { (notice) (address_form("", None)) }).into_response()
}

/// `POST /forgot`: mails a link if the address has an account.
pub async fn send(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    Form(sent): Form<Credentials>,
) -> Response {
    if !mail::is_set_up(&web) {
        return without_mail(&viewer);
    }
    let again =
        |problem: &str| form_page(&viewer, TITLE, &address_form(&sent.email, Some(problem)));
    let email: Email = match sent.email.parse() {
        Ok(email) => email,
        Err(err) => {
            let page = again(&sentence(&format!("{err}")));
            return (StatusCode::BAD_REQUEST, page).into_response();
        }
    };
    if let Err(wait) = web.throttle.sign_up(peer) {
        return too_many(wait, again(&wait_text(wait)));
    }
    security::record(SecurityEvent::PasswordResetRequested, email.as_str());
    mail::send_reset(&web, email, viewer.now.0);
    MAILED.at("/forgot").into_response()
}

/// `GET /reset/{link}`: asks for the new password and changes nothing.
pub async fn ask_password(
    State(web): State<Web>,
    viewer: Viewer,
    Path(link): Path<String>,
) -> Response {
    match opened(&web, &viewer, &link) {
        Some((email, _)) => password_page(&viewer, &link, &email, None).into_response(),
        None => invalid_link(&viewer),
    }
}

/// `POST /reset/{link}`: sets the password, ends all sessions and starts a new one.
pub async fn set(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    headers: HeaderMap,
    Path(link): Path<String>,
    Form(sent): Form<Credentials>,
) -> Result<Response, PageError> {
    let Some((email, seal)) = opened(&web, &viewer, &link) else {
        return Ok(invalid_link(&viewer));
    };
    let again = |problem: &str| password_page(&viewer, &link, &email, Some(problem));
    let password = match Password::chosen(sent.password, Some(&email)) {
        Ok(password) => password,
        Err(err) => {
            let page = again(&sentence(&err.to_string()));
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
    };
    let attempt = match web.throttle.try_password(peer, &email) {
        Ok(attempt) => attempt,
        Err(wait) => return Ok(too_many(wait, again(&wait_text(wait)))),
    };
    let (store, now) = (&web.app.store, viewer.now.0);
    match store.reset_password(&email, seal, password, attempt, now).await? {
        Some(token) => {
            security::record(SecurityEvent::PasswordReset, email.as_str());
            web.throttle.remember(peer, &email);
            begin(&web, &headers, &token, SessionLife::Short, "/").await
        }
        None => Ok(invalid_link(&viewer)),
    }
}

const TITLE: &str = "Reset your password";

/// Returns the address of a valid link, and the seal of the password that it replaces.
fn opened(web: &Web, viewer: &Viewer, link: &str) -> Option<(Email, PasswordSeal)> {
    let mut found = None;
    let purpose = |email: &Email| {
        found = web.app.store.password_seal(email);
        found.map(Purpose::Reset)
    };
    let email = web.mailed_links.email(link, purpose, viewer.now.0)?;
    Some((email, found?))
}

fn address_form(email: &str, problem: Option<&str>) -> Markup {
    html! {
        form.panel method="post" action="/forgot" {
            (Field::email(email, problem))
            p.soft { "We send you a link. It opens a page where you choose a new password." }
            button type="submit" { "Send link" }
        }
        p { a href="/login" { "Log in" } }
    }
}

fn password_page(viewer: &Viewer, link: &str, email: &Email, problem: Option<&str>) -> Markup {
    let main = html! {
        form.panel method="post" action={ "/reset/" (link) } {
            p { "Choose a new password for " b { (email) } ". All sessions of the account end." }
            // Tells password managers which account the password belongs to.
            input type="email" name="email" value=(email) autocomplete="username" readonly hidden;
            (Field::new_password("New password", problem))
            button type="submit" { "Set password" }
        }
    };
    form_page(viewer, TITLE, &main)
}

/// Response to used, expired and unknown links, without distinguishing them.
fn invalid_link(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "It was already used, has expired, or was sent before the server restarted." }
        p { a href="/forgot" { "Request a new link" } "." }
    };
    (StatusCode::NOT_FOUND, form_page(viewer, "This link no longer works", &main)).into_response()
}

fn without_mail(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "This server sends no e-mail. Ask its administrator to set a new password." }
        p.soft { "Administrators use " code { "dropdex account set-password EMAIL" } "." }
        p { a href="/login" { "Log in" } }
    };
    (StatusCode::NOT_FOUND, form_page(viewer, TITLE, &main)).into_response()
}
