//! `/account`: e-mail address, plan, password and active sessions.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use crate::Web;
use crate::account::login::begin;
use crate::account::plan::word;
use crate::account::{Tab, profile_of, tab_page, too_many, wait_text};
use crate::accounts::{Attempt, Password, PasswordChange, Profile, SessionLife, TokenDigest};
use crate::error::{PageError, sentence};
use crate::field::Field;
use crate::form::Form;
use crate::logged_in::LoggedIn;
use crate::notice::{self, Notice};
use crate::peer::Peer;
use crate::telemetry::security::{self, SecurityEvent};
use crate::vocab::secret::Secret;

const CHANGED: Notice =
    Notice::new("password", "Password changed. All other sessions were logged out.");
const NOTICES: [Notice; 1] = [CHANGED];

/// Password form.
#[derive(Deserialize)]
pub struct PasswordForm {
    #[serde(default)]
    present: Secret,
    #[serde(default)]
    password: Secret,
}

/// `GET /account`.
pub async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let notice = notice::shown(&NOTICES, query.as_deref());
    page(&web, &member, &notice, None)
}

/// `POST /account/password`: changes the password after checking the current one.
pub async fn change_password(
    State(web): State<Web>,
    member: LoggedIn,
    peer: Peer,
    headers: HeaderMap,
    Form(sent): Form<PasswordForm>,
) -> Result<Response, PageError> {
    let nothing = html! {};
    let again = |field, problem: &str| page(&web, &member, &nothing, Some((field, problem)));
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
        let path = format!("/account?notice={}", CHANGED.code);
        return begin(&web, &headers, &token, SessionLife::Short, &path).await;
    }
    match web.app.store.change_password(caller, sent.present, new, attempt, now).await? {
        PasswordChange::Done(token) => {
            security::record(SecurityEvent::PasswordChanged, member.email.as_str());
            let path = format!("/account?notice={}", CHANGED.code);
            begin(&web, &headers, &token, SessionLife::Short, &path).await
        }
        PasswordChange::WrongPassword => {
            security::record(SecurityEvent::PasswordChangeFailed, member.email.as_str());
            let page = again("present", "Wrong password. Your password was not changed.")?;
            Ok((StatusCode::BAD_REQUEST, page).into_response())
        }
    }
}

fn page(
    web: &Web,
    member: &LoggedIn,
    notice: &Markup,
    problem: Option<(&str, &str)>,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let main = html! {
        div.columns {
            div {
                (facts(&profile, member.is_owner))
                @if let Some(session) = &member.session { (sessions(&profile, session)) }
            }
            (password_form(&profile, member.session.is_some(), problem))
        }
    };
    Ok(tab_page(&member.viewer, Tab::Profile, notice, &main))
}

fn facts(profile: &Profile, is_owner: bool) -> Markup {
    html! {
        section.panel {
            h2 { "Profile" }
            dl.facts {
                dt { "E-mail address" }
                dd {
                    (profile.email) " "
                    @if profile.is_verified { span.badge.good { "verified" } }
                    @else { a href="/account/notifications" { "not verified yet" } }
                }
                @if !is_owner {
                    dt { "Plan" }
                    dd { a href="/account/plan" { (word(profile.plan)) } }
                }
                dt { "Member since" }
                dd { time datetime=(profile.created) { (profile.created) } }
            }
        }
    }
}

fn sessions(profile: &Profile, own: &TokenDigest) -> Markup {
    html! {
        section.panel {
            h2 { "Active sessions" }
            ul.sessions {
                @for session in &profile.sessions {
                    @let (began, seen) = (session.began.instant(), session.seen.instant());
                    li {
                        "Logged in " time datetime=(began.to_rfc3339()) { (began.format("%Y-%m-%d %H:%M")) }
                        ", last used " time datetime=(seen.to_rfc3339()) { (seen.format("%H:%M")) } " "
                        @if session.digest.is(own) { span.badge.info { "this browser" } }
                    }
                }
            }
            p.soft { "Sessions end after 30 minutes without activity, and after 12 hours at most. Times are in UTC." }
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
