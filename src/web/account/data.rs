//! `/account/data`: the download of everything of the account, and its deletion.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;
use maud::{Markup, html};
use serde::Deserialize;

use crate::Web;
use crate::account::{Tab, form_page, tab_page, too_many, wait_text};
use crate::accounts::Attempt;
use crate::components::date;
use crate::edge::session;
use crate::error::PageError;
use crate::field::Field;
use crate::form::Form;
use crate::logged_in::LoggedIn;
use crate::peer::Peer;
use crate::telemetry::security::{self, SecurityEvent};
use crate::viewer::Viewer;
use crate::vocab::day::Day;
use crate::vocab::secret::Secret;

/// Form that deletes the account.
#[derive(Deserialize)]
pub struct DeleteForm {
    #[serde(default)]
    password: Secret,
}

/// `GET /account/data`.
pub async fn show(member: LoggedIn) -> Markup {
    page(&member, None)
}

/// `POST /account/delete`: disables the account after checking the password. It is erased later.
pub async fn delete(
    State(web): State<Web>,
    member: LoggedIn,
    peer: Peer,
    Form(sent): Form<DeleteForm>,
) -> Result<Response, PageError> {
    // Rate limited like a log-in, because a session must not allow password guessing.
    let attempt = match web.throttle.try_password(peer, &member.email) {
        // The session was created by a log-in.
        Ok(attempt) => Attempt { is_known: true, ..attempt },
        Err(wait) => return Ok(too_many(wait, page(&member, Some(&wait_text(wait))))),
    };
    let now = member.viewer.now.0;
    let Some(at) = web.app.store.leave(&member.caller, sent.password, attempt, now).await? else {
        let page = page(&member, Some("Wrong password. Your account was not deleted."));
        return Ok((StatusCode::BAD_REQUEST, page).into_response());
    };
    security::record(SecurityEvent::AccountDeleted, member.email.as_str());
    let jar = CookieJar::new().add(session::removal(web.app.site.cookie));
    let viewer = Viewer { member: None, ..member.viewer.clone() };
    let until = date(Day::nearest(at.instant()), Day::nearest(now));
    let gone = html! {
        div.panel {
            p { "You are logged out everywhere. Your keys and feeds no longer work, and nothing is sent to you." }
            p { "Until " (until) " you can restore the account: log in with your e-mail address and password. After that, it is erased with all its data." }
        }
    };
    Ok((jar, form_page(&viewer, "Account deleted", &gone)).into_response())
}

/// Renders the page, with the problem of the password.
fn page(member: &LoggedIn, problem: Option<&str>) -> Markup {
    let main = html! {
        section.panel {
            h2 { "Download your data" }
            p {
                "One zip file with everything that this server keeps for your account, as JSON and CSV: profile, watchlist with "
                "notes, portfolio, alert rules and their messages, saved searches, hidden names, votes, feeds and your own facts. "
                "A README in it describes each file."
            }
            p.soft { "Passwords, keys, secrets of webhooks and addresses of feeds are not in it." }
            p { a.button href="/account/data.zip" download { "Download" } }
        }
        section.panel {
            h2 { "Delete your account" }
            @if member.is_owner {
                p {
                    "This account owns the server, and no other account can take its place. "
                    "To remove everything, stop the server and delete its data folder."
                }
            } @else {
                p {
                    "Your account is disabled at once: you are logged out everywhere, keys and feeds stop working, and no alerts are "
                    "sent. For seven days you can restore it by logging in. Then it is erased with all its data, and its address is free again. "
                    a href="/docs/accounts#deleting-an-account" { "What remains" }
                }
                form method="post" action="/account/delete" {
                    // For password managers, which store the password of this address.
                    input type="email" name="email" value=(member.email) autocomplete="username" readonly hidden;
                    (Field::password("password", "Password", problem))
                    button.danger type="submit" { "Delete account" }
                }
            }
        }
    };
    tab_page(&member.viewer, Tab::Data, &html! {}, &main)
}
