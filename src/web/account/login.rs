//! `/login` and `/logout`: an address and a password in, a session cookie out.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use maud::{Markup, html};
use serde::Deserialize;

use crate::accounts::{Email, Token};
use crate::http::session;
use crate::vocab::secret::Secret;
use crate::web::Web;
use crate::web::account::field::Field;
use crate::web::account::{form_page, too_many, wait_words};
use crate::web::error::PageError;
use crate::web::form::Form;
use crate::web::next::local_path;
use crate::web::notice::{self, Notice};
use crate::web::peer::Peer;
use crate::web::viewer::Viewer;

/// Said alike of a wrong password, an unknown address and an account that was shut.
const REFUSED: &str = "This address and password do not fit. Check both and try again.";

const LOGGED_OUT: Notice = Notice::new("logged-out", "You are logged out.");
const NOTICES: [Notice; 2] = [LOGGED_OUT, super::verify::VERIFIED];

/// The form, as sent.
#[derive(Deserialize)]
pub struct LogIn {
    #[serde(default)]
    email: String,
    password: Option<Secret>,
    next: Option<String>,
}

/// `GET /login`: the form; for somebody who has logged in, the way on.
pub async fn ask(State(web): State<Web>, viewer: Viewer, RawQuery(query): RawQuery) -> Response {
    let next = next_of(query.as_deref());
    if viewer.member.is_some() {
        return Redirect::to(local_path(next.as_deref())).into_response();
    }
    let notice = notice::shown(&NOTICES, query.as_deref());
    let asked = form(&web, "", next.as_deref(), None);
    form_page(&viewer, "Log in", &html! { (notice) (asked) }).into_response()
}

/// `POST /login`: a new session for whoever knows the password. The one that the browser had ends.
pub async fn log_in(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    headers: HeaderMap,
    Form(sent): Form<LogIn>,
) -> Result<Response, PageError> {
    let again = |problem: &str| {
        let again = form(&web, &sent.email, sent.next.as_deref(), Some(problem));
        form_page(&viewer, "Log in", &again)
    };
    let refused = || (StatusCode::BAD_REQUEST, again(REFUSED)).into_response();
    let Ok(email) = sent.email.parse::<Email>() else { return Ok(refused()) };
    if let Err(wait) = web.throttle.try_password(peer, &email) {
        return Ok(too_many(wait, again(&wait_words(wait))));
    }
    let password = sent.password.clone().unwrap_or_else(|| Secret::new(String::new()));
    let Some(token) = web.app.store.log_in(&email, password, viewer.now.0).await? else {
        return Ok(refused());
    };
    web.throttle.remember(peer, &email);
    begin(&web, &headers, &token, local_path(sent.next.as_deref())).await
}

/// What comes with every new session: the one that the browser had ends, and the way on.
pub async fn begin(
    web: &Web,
    headers: &HeaderMap,
    token: &Token,
    next: &str,
) -> Result<Response, PageError> {
    if let Some(old) = session::token(&web.app, headers) {
        web.app.store.log_out(&old).await?;
    }
    let jar = CookieJar::new().add(web.app.cookie.with(token));
    Ok((jar, Redirect::to(next)).into_response())
}

/// The form, as sent.
#[derive(Deserialize)]
pub struct LogOut {
    /// `yes` for all sessions of the account.
    everywhere: Option<String>,
}

/// `POST /logout`: ends the session for good, or all of the account's.
pub async fn log_out(
    State(web): State<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    Form(sent): Form<LogOut>,
) -> Result<Response, PageError> {
    if let (Some("yes"), Some(member)) = (sent.everywhere.as_deref(), &viewer.member) {
        web.app.store.log_out_everywhere(&member.caller).await?;
    } else if let Some(token) = session::token(&web.app, &headers) {
        web.app.store.log_out(&token).await?;
    }
    let jar = CookieJar::new().add(web.app.cookie.removal());
    Ok((jar, LOGGED_OUT.at("/login")).into_response())
}

/// Where a link to a form wants to go after it.
pub fn next_of(query: Option<&str>) -> Option<String> {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.into_owned().find(|(name, _)| name == "next").map(|(_, next)| next)
}

/// A path with the page to go on to in its query.
pub fn with_next(path: &str, next: Option<&str>) -> String {
    let Some(next) = next else { return path.to_owned() };
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    format!("{path}?{}", query.append_pair("next", next).finish())
}

fn form(web: &Web, email: &str, next: Option<&str>, problem: Option<&str>) -> Markup {
    html! {
        form.panel method="post" action="/login" {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            (Field::email(email, None).show())
            (Field::password("password", "Password", problem).show())
            button type="submit" { "Log in" }
        }
        @if web.settings.signup {
            p { "No account yet? " a href=(with_next("/signup", next)) { "Sign up" } "." }
        }
        p.soft { "Forgot the password? Whoever runs this server can set another." }
    }
}
