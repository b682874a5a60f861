//! `/account`: e-mail address, plan, password and active sessions.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use crate::accounts::{Password, PasswordChange, Profile, TokenDigest};
use crate::vocab::secret::Secret;
use crate::web::Web;
use crate::web::account::login::begin;
use crate::web::account::plan::word;
use crate::web::account::{Tab, profile_of, tab_page, too_many, wait_text};
use crate::web::error::{PageError, sentence};
use crate::web::field::Field;
use crate::web::form::Form;
use crate::web::logged_in::LoggedIn;
use crate::web::notice::{self, Notice};
use crate::web::peer::Peer;

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

/// Errors of a form by field.
#[derive(Default)]
struct Problems {
    present: Option<String>,
    password: Option<String>,
}

/// `GET /account`.
pub async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let notice = notice::shown(&NOTICES, query.as_deref());
    page(&web, &member, &notice, &Problems::default())
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
    let again = |problems| page(&web, &member, &nothing, &problems);
    let new = match Password::chosen(sent.password, Some(&member.email)) {
        Ok(new) => new,
        Err(err) => {
            let problems =
                Problems { password: Some(sentence(&err.to_string())), ..Problems::default() };
            return Ok((StatusCode::BAD_REQUEST, again(problems)?).into_response());
        }
    };
    // Rate limited like a login: a session alone must not allow password guessing.
    if let Err(wait) = web.throttle.try_password(peer, &member.email) {
        let problems = Problems { present: Some(wait_text(wait)), ..Problems::default() };
        return Ok(too_many(wait, again(problems)?));
    }
    let (caller, now) = (&member.caller, member.viewer.now.0);
    match web.app.store.change_password(caller, sent.present, new, now).await? {
        PasswordChange::Done(token) => {
            let path = format!("/account?notice={}", CHANGED.code);
            begin(&web, &headers, &token, &path).await
        }
        PasswordChange::WrongPassword => {
            let wrong = "Wrong password. Your password was not changed.".to_owned();
            let problems = Problems { present: Some(wrong), ..Problems::default() };
            Ok((StatusCode::BAD_REQUEST, again(problems)?).into_response())
        }
    }
}

fn page(
    web: &Web,
    member: &LoggedIn,
    notice: &Markup,
    problems: &Problems,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let main = html! {
        div.columns {
            div {
                (facts(&profile))
                (sessions(&profile, &member.session))
            }
            (password_form(&profile, problems))
        }
    };
    Ok(tab_page(&member.viewer, Tab::Profile, notice, &main))
}

fn facts(profile: &Profile) -> Markup {
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
                dt { "Plan" }
                dd { a href="/account/plan" { (word(profile.plan)) } }
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

fn password_form(profile: &Profile, problems: &Problems) -> Markup {
    html! {
        form.panel method="post" action="/account/password" {
            h2 { "Change password" }
            // Tells password managers which account the password belongs to.
            input type="email" name="email" value=(profile.email) autocomplete="username" readonly hidden;
            (Field::password("present", "Current password", problems.present.as_deref()))
            (Field::new_password("New password", problems.password.as_deref()))
            button type="submit" { "Change password" }
        }
    }
}
