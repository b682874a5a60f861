//! `/account/security`: password, active sessions and API keys.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use crate::Web;
use crate::account::login::begin;
use crate::account::{SECURITY, Tab, keys, profile_of, tab_page, too_many, wait_text};
use crate::accounts::{
    Attempt, Password, PasswordChange, Profile, Session, SessionLife, TokenDigest,
};
use crate::components::Column::{Hidden, Text};
use crate::components::{ago, date_text, table};
use crate::edge::home::Home;
use crate::error::{PageError, sentence};
use crate::field::Field;
use crate::form::{Fields, Form};
use crate::logged_in::LoggedIn;
use crate::notice::{self, Notice};
use crate::peer::Peer;
use crate::service::app::Now;
use crate::telemetry::security::{self, SecurityEvent};
use crate::vocab::day::Day;
use crate::vocab::secret::Secret;

const CHANGED: Notice =
    Notice::new("password", "Password changed. All other sessions were logged out.");
const ENDED: Notice = Notice::new("ended", "The session was ended.");
const NOTICES: [Notice; 4] = [CHANGED, ENDED, keys::REVOKED, keys::GONE];

/// Password form.
#[derive(Deserialize)]
pub struct PasswordForm {
    #[serde(default)]
    present: Secret,
    #[serde(default)]
    password: Secret,
}

/// `GET /account/security`.
pub async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
    Home(home): Home,
) -> Result<Markup, PageError> {
    let notice = notice::shown(&NOTICES, query.as_deref());
    page(&web, &member, &home, &notice, Refused::Nothing)
}

/// `POST /account/sessions/end`: ends another session of the account.
pub async fn end(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Redirect, PageError> {
    web.app.store.end_session(&member.caller, fields.text("id")).await?;
    security::record(SecurityEvent::SessionEnded, member.email.as_str());
    Ok(ENDED.at(SECURITY))
}

/// `POST /account/password`: changes the password after checking the current one.
pub async fn change_password(
    State(web): State<Web>,
    member: LoggedIn,
    peer: Peer,
    headers: HeaderMap,
    Home(home): Home,
    Form(sent): Form<PasswordForm>,
) -> Result<Response, PageError> {
    let nothing = html! {};
    let again = |field, problem: &str| {
        page(&web, &member, &home, &nothing, Refused::Password(field, problem))
    };
    let new = match Password::chosen(sent.password, Some(&member.email)) {
        Ok(new) => new,
        Err(err) => {
            let page = again("password", &sentence(&err.to_string()))?;
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
    };
    // Rate limited like a login, because a session must not allow password guessing.
    let attempt = match web.throttle.try_password(peer, &member.email) {
        // The session was created by a log-in.
        Ok(attempt) => Attempt { is_known: true, ..attempt },
        Err(wait) => return Ok(too_many(wait, again("present", &wait_text(wait))?)),
    };
    let (caller, now) = (&member.caller, member.viewer.now.0);
    if member.session.is_none() {
        let token = web.app.store.set_first_password(caller, new, attempt, now).await?;
        security::record(SecurityEvent::PasswordChanged, member.email.as_str());
        let path = format!("{SECURITY}?notice={}", CHANGED.code);
        return begin(&web, &headers, &token, SessionLife::Short, &path).await;
    }
    match web.app.store.change_password(caller, sent.present, new, attempt, now).await? {
        PasswordChange::Done(token) => {
            security::record(SecurityEvent::PasswordChanged, member.email.as_str());
            let path = format!("{SECURITY}?notice={}", CHANGED.code);
            begin(&web, &headers, &token, SessionLife::Short, &path).await
        }
        PasswordChange::WrongPassword => {
            security::record(SecurityEvent::PasswordChangeFailed, member.email.as_str());
            let page = again("present", "Wrong password. Your password was not changed.")?;
            Ok((StatusCode::BAD_REQUEST, page).into_response())
        }
    }
}

/// A form that was refused, with its problem.
#[derive(Clone, Copy)]
pub enum Refused<'a> {
    Nothing,
    /// Field of the form for the password.
    Password(&'a str, &'a str),
    /// Content of the form for a new key.
    Key(&'a Fields, &'a str),
}

/// Renders the page.
pub fn page(
    web: &Web,
    member: &LoggedIn,
    home: &str,
    notice: &Markup,
    refused: Refused<'_>,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let (key, password) = match refused {
        Refused::Nothing => (None, None),
        Refused::Password(field, problem) => (None, Some((field, problem))),
        Refused::Key(fields, problem) => (Some((fields, problem)), None),
    };
    let main = html! {
        div.columns {
            @if let Some(session) = &member.session { (sessions(&profile, session, member.viewer.now)) }
            (password_form(&profile, member.session.is_some(), password))
        }
        (keys::section(web, &profile, home, member.viewer.now, key))
    };
    Ok(tab_page(&member.viewer, Tab::Security, notice, &main))
}

fn sessions(profile: &Profile, own: &TokenDigest, now: Now) -> Markup {
    let is_own = |session: &Session| session.digest.is(own);
    let today = Day::nearest(now.0);
    html! {
        section.panel {
            h2 { "Active sessions" }
            (table("Active sessions", "", &[Text("Browser"), Text("Since"), Text("Last used"), Hidden("End")], html! {
                tbody {
                    @for session in &profile.sessions {
                        tr {
                            th scope="row" { @if session.browser.is_empty() { "Unknown browser" } @else { (session.browser) } }
                            td { (date_text(Day::nearest(session.began.instant()), today)) }
                            td { @if is_own(session) { span.badge.info { "this browser" } } @else { (ago(session.seen, now)) } }
                            td {
                                @if !is_own(session) {
                                    form method="post" action="/account/sessions/end" {
                                        input type="hidden" name="id" value=(session.digest.public_id());
                                        button.quiet.small type="submit" { "End" }
                                    }
                                }
                            }
                        }
                    }
                }
            }))
            @if let Some(session) = profile.sessions.iter().find(|session| is_own(session)) {
                p.soft {
                    @match session.life {
                        SessionLife::Short => "This session ends after 30 minutes without activity, and after 12 hours at most.",
                        SessionLife::Kept => "This session ends 30 days after the log-in, because you chose to stay logged in.",
                    }
                }
            }
            form method="post" action="/logout" {
                input type="hidden" name="everywhere" value="yes";
                button.quiet type="submit" { "Log out everywhere" }
            }
        }
    }
}

/// Renders the form, with the problem of one of its fields. The form asks for the current password
/// only if one exists.
fn password_form(profile: &Profile, has_password: bool, problem: Option<(&str, &str)>) -> Markup {
    let about = |id| problem.filter(|(field, _)| *field == id).map(|(_, problem)| problem);
    html! {
        form.panel method="post" action="/account/password" {
            h2 { @if has_password { "Change password" } @else { "Set a password" } }
            @if !has_password { p { "Anyone who can use this computer can open dropdex. With a password, only you can." } }
            // Tells password managers which account the password belongs to.
            input type="email" name="email" value=(profile.email) autocomplete="username" readonly hidden;
            @if has_password { (Field::password("present", "Current password", about("present"))) }
            (Field::new_password("New password", about("password")))
            button type="submit" { @if has_password { "Change password" } @else { "Set password" } }
        }
    }
}
