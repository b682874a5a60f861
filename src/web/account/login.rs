//! `/login` and `/logout`: an address and a password in, a session cookie out.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use maud::{Markup, html};
use serde::Deserialize;

use crate::accounts::Email;
use crate::accounts::secret::Secret;
use crate::http::session;
use crate::web::Web;
use crate::web::error::PageError;
use crate::web::form::Form;
use crate::web::layout::{Page, Place};
use crate::web::next::local_path;
use crate::web::notice::{self, Notice};
use crate::web::viewer::Viewer;

/// Said alike of a wrong password, an unknown address and an account that was shut.
const REFUSED: &str = "This address and password do not fit. Check both and try again.";

pub const LOGGED_OUT: Notice = Notice::new("logged-out", "You are logged out.");
const NOTICES: [Notice; 1] = [LOGGED_OUT];

#[derive(Deserialize)]
pub struct LogIn {
    #[serde(default)]
    email: String,
    password: Option<Secret>,
    next: Option<String>,
}

/// `GET /login`: the form; for somebody who has logged in, the way on.
pub async fn ask(viewer: Viewer, RawQuery(query): RawQuery) -> Response {
    let pairs = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let next = pairs.into_owned().find(|(name, _)| name == "next").map(|(_, next)| next);
    if viewer.member.is_some() {
        return Redirect::to(local_path(next.as_deref())).into_response();
    }
    let notice = notice::shown(&NOTICES, query.as_deref());
    page(&viewer, html! { (notice) (form("", next.as_deref(), None)) }).into_response()
}

/// `POST /login`: a new session for whoever knows the password. The one that the browser had ends.
pub async fn log_in(
    State(web): State<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    Form(sent): Form<LogIn>,
) -> Result<Response, PageError> {
    let password = sent.password.unwrap_or_else(|| Secret::new(String::new()));
    let token = match sent.email.parse::<Email>() {
        Ok(email) => web.app.store.log_in(&email, password, viewer.now.0).await?,
        Err(_) => None,
    };
    let Some(token) = token else {
        let again = form(&sent.email, sent.next.as_deref(), Some(REFUSED));
        return Ok((StatusCode::BAD_REQUEST, page(&viewer, again)).into_response());
    };
    if let Some(old) = session::token(&web.app, &headers) {
        web.app.store.log_out(&old).await?;
    }
    let jar = CookieJar::new().add(web.app.cookie.with(&token));
    Ok((jar, Redirect::to(local_path(sent.next.as_deref()))).into_response())
}

/// `POST /logout`: ends the session, for good.
pub async fn log_out(State(web): State<Web>, headers: HeaderMap) -> Result<Response, PageError> {
    if let Some(token) = session::token(&web.app, &headers) {
        web.app.store.log_out(&token).await?;
    }
    let jar = CookieJar::new().add(web.app.cookie.removal());
    Ok((jar, LOGGED_OUT.at("/login")).into_response())
}

fn page(viewer: &Viewer, main: Markup) -> Markup {
    Page::new("Log in").at(Place::Account).show(Some(viewer), html! { div.narrow { (main) } })
}

fn form(email: &str, next: Option<&str>, problem: Option<&str>) -> Markup {
    let described = problem.map(|_| "login-problem");
    let invalid = problem.map(|_| "true");
    html! {
        h1 { "Log in" }
        form.panel method="post" action="/login" {
            @if let Some(problem) = problem { p.problem #login-problem role="alert" { (problem) } }
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            div.field {
                label for="email" { "E-mail address" }
                input #email type="email" name="email" value=(email) required autocomplete="username"
                    maxlength="254" aria-invalid=[invalid] aria-describedby=[described];
            }
            div.field {
                label for="password" { "Password" }
                input #password type="password" name="password" required
                    autocomplete="current-password" aria-invalid=[invalid] aria-describedby=[described];
            }
            button type="submit" { "Log in" }
        }
    }
}
