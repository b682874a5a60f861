//! `/login` and `/logout`: exchange an e-mail address and a password for a session cookie.

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
use crate::web::account::{form_page, too_many, wait_text};
use crate::web::error::PageError;
use crate::web::form::Form;
use crate::web::next::local_path;
use crate::web::notice::{self, Notice};
use crate::web::peer::Peer;
use crate::web::viewer::Viewer;

/// Shown for a wrong password, an unknown address and a disabled account, so that it reveals nothing.
const REFUSED: &str = "Wrong e-mail or password.";

const LOGGED_OUT: Notice = Notice::new("logged-out", "You are logged out.");
const NOTICES: [Notice; 2] = [LOGGED_OUT, super::verify::VERIFIED];

/// Login form.
#[derive(Deserialize)]
pub struct LoginForm {
    #[serde(default)]
    email: String,
    password: Option<Secret>,
    next: Option<String>,
}

/// `GET /login`: the form. Redirects visitors who are already logged in.
pub async fn ask(State(web): State<Web>, viewer: Viewer, RawQuery(query): RawQuery) -> Response {
    let next = next_of(query.as_deref());
    if viewer.member.is_some() {
        return Redirect::to(local_path(next.as_deref())).into_response();
    }
    let notice = notice::shown(&NOTICES, query.as_deref());
    let asked = form(&web, "", next.as_deref(), None);
    form_page(&viewer, "Log in", &html! { (notice) (asked) }).into_response()
}

/// `POST /login`: starts a session and ends the browser's previous one.
pub async fn log_in(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    headers: HeaderMap,
    Form(sent): Form<LoginForm>,
) -> Result<Response, PageError> {
    let again = |problem: &str| {
        let again = form(&web, &sent.email, sent.next.as_deref(), Some(problem));
        form_page(&viewer, "Log in", &again)
    };
    let refused = || (StatusCode::BAD_REQUEST, again(REFUSED)).into_response();
    let Ok(email) = sent.email.parse::<Email>() else { return Ok(refused()) };
    if let Err(wait) = web.throttle.try_password(peer, &email) {
        return Ok(too_many(wait, again(&wait_text(wait))));
    }
    let password = sent.password.clone().unwrap_or_else(|| Secret::new(String::new()));
    let Some(token) = web.app.store.log_in(&email, password, viewer.now.0).await? else {
        return Ok(refused());
    };
    web.throttle.remember(peer, &email);
    begin(&web, &headers, &token, local_path(sent.next.as_deref())).await
}

/// Ends the browser's previous session, sets the new cookie and redirects to `next`.
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

/// Logout form.
#[derive(Deserialize)]
pub struct LogoutForm {
    /// `yes` ends all sessions of the account.
    everywhere: Option<String>,
}

/// `POST /logout`: ends this session or all sessions of the account.
pub async fn log_out(
    State(web): State<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    Form(sent): Form<LogoutForm>,
) -> Result<Response, PageError> {
    if let (Some("yes"), Some(member)) = (sent.everywhere.as_deref(), &viewer.member) {
        web.app.store.log_out_everywhere(&member.caller).await?;
    } else if let Some(token) = session::token(&web.app, &headers) {
        web.app.store.log_out(&token).await?;
    }
    let jar = CookieJar::new().add(web.app.cookie.removal());
    Ok((jar, LOGGED_OUT.at("/login")).into_response())
}

/// The `next` parameter of a query string.
pub fn next_of(query: Option<&str>) -> Option<String> {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.into_owned().find(|(name, _)| name == "next").map(|(_, next)| next)
}

/// Appends `next` to a path.
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
            p { "New to dropdex? " a href=(with_next("/signup", next)) { "Sign up" } "." }
        }
        p.soft { "Forgot your password? Ask the administrator of this server to reset it." }
    }
}
