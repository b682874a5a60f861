//! API keys on `/account/security`: creates, replaces and revokes them, shows each once, and lists code
//! examples.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::Web;
use crate::account::keys::{GONE, REVOKED, examples, plan_hint};
use crate::account::security::{Refused, page as security_page};
use crate::account::{SECURITY, Tab, profile_of, tab_page};
use crate::accounts::{ApiKey, NewKey, Replaced, WriteError};
use crate::edge::home::Home;
use crate::error::PageError;
use crate::form::{Fields, Form};
use crate::logged_in::LoggedIn;
use crate::service::error::ApiError;
use crate::telemetry::security::{self, SecurityEvent};
use crate::vocab::ids::KeyId;
use crate::vocab::scope::{Scope, Scopes};

/// `POST /account/key`: creates or replaces the first key, and shows it once. The previous key stops
/// working at once.
pub async fn issue(
    State(web): State<Web>,
    member: LoggedIn,
    Home(home): Home,
) -> Result<Markup, PageError> {
    let issued = web.app.store.issue_own_key(&member.caller, member.viewer.now.0).await?;
    let event = if issued.replaced { SecurityEvent::KeyReplaced } else { SecurityEvent::KeyMade };
    security::record(event, member.email.as_str());
    let before = if issued.replaced { "Your previous key no longer works." } else { "" };
    shown_once(&web, &member, &home, &issued.key, before)
}

/// `POST /account/keys`: creates a key with a name, scopes and an expiry.
pub async fn make(
    State(web): State<Web>,
    member: LoggedIn,
    Home(home): Home,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let again = |problem: &str| {
        let page = security_page(&web, &member, &home, &html! {}, Refused::Key(&fields, problem))?;
        Ok((StatusCode::BAD_REQUEST, page).into_response())
    };
    let scopes: Result<Vec<Scope>, _> = fields.all("scope").map(str::parse).collect();
    let Some(scopes) = scopes.ok().and_then(Scopes::of) else {
        return again("Choose what the key may do.");
    };
    let days = match fields.text("days") {
        "" => None,
        text => match text.parse() {
            Ok(days) => Some(days),
            Err(_) => return again("Choose when the key expires."),
        },
    };
    let new = NewKey { name: fields.text("name").trim().to_owned(), scopes, days };
    match web.app.store.make_key(&member.caller, new, member.viewer.now.0).await {
        Ok(key) => {
            security::record(SecurityEvent::KeyMade, member.email.as_str());
            Ok(shown_once(&web, &member, &home, &key, "")?.into_response())
        }
        Err(WriteError::Invalid { what, .. }) => again(&format!("The name {what}.")),
        Err(err @ WriteError::TooMany { .. }) => again(&format!("Revoke a key first: {err}.")),
        Err(err) => Err(err.into()),
    }
}

/// `POST /account/keys/replace`: replaces a key. With `keep`, the old key works for another day.
pub async fn replace(
    State(web): State<Web>,
    member: LoggedIn,
    Home(home): Home,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let id = KeyId::parse(fields.text("id")).ok_or(ApiError::NotFound)?;
    let (old, before) = if fields.text("keep").is_empty() {
        (Replaced::AtOnce, "The old key no longer works.")
    } else {
        (Replaced::AfterGrace, "The old key works for 24 hours more.")
    };
    match web.app.store.replace_key(&member.caller, id, old, member.viewer.now.0).await {
        Ok(key) => {
            security::record(SecurityEvent::KeyReplaced, member.email.as_str());
            Ok(shown_once(&web, &member, &home, &key, before)?.into_response())
        }
        Err(err @ WriteError::TooMany { .. }) => {
            let problem = format!("Revoke a key first, or replace this one at once: {err}.");
            let page = security_page(
                &web,
                &member,
                &home,
                &html! {},
                Refused::Key(&Fields::default(), &problem),
            )?;
            Ok((StatusCode::BAD_REQUEST, page).into_response())
        }
        Err(err) => Err(err.into()),
    }
}

/// `POST /account/keys/revoke`: revokes a key, which stops working at once.
pub async fn revoke(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Redirect, PageError> {
    let id = KeyId::parse(fields.text("id")).ok_or(ApiError::NotFound)?;
    let notice = match web.app.store.revoke_key(&member.caller, id).await {
        Ok(()) => {
            security::record(SecurityEvent::KeyRevoked, member.email.as_str());
            REVOKED
        }
        Err(WriteError::NotFound) => GONE,
        Err(err) => return Err(err.into()),
    };
    Ok(notice.at(SECURITY))
}

/// Renders the page that shows a new key. `before` states what happened to the previous key.
fn shown_once(
    web: &Web,
    member: &LoggedIn,
    home: &str,
    key: &ApiKey,
    before: &str,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let key = key.reveal();
    let main = html! {
        (plan_hint(web, &profile))
        section.panel {
            h2 { "Your new key" }
            p.hint role="status" {
                "Copy your key now. You will not be able to see it again. " (before)
            }
            div.row {
                code.key #key { (key) }
                button type="button" data-copy-from="key" { "Copy key" }
            }
            p { a href=(SECURITY) { "Back to your keys" } }
        }
        (examples(home, Some(key)))
    };
    Ok(tab_page(&member.viewer, Tab::Security, &html! {}, &main))
}
