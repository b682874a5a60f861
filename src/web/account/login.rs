//! `/login` and `/logout`: exchange an e-mail address and a password for a session cookie.

use axum::extract::{RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Deserialize;

use crate::Web;
use crate::account::{SIGNED_UP, SignUps, form_page, mail, too_many, wait_text};
use crate::accounts::{Attempt, Email, IfLeaving, LogIn, SessionLife, Token};
use crate::browser_name;
use crate::components::{date, query};
use crate::edge::home::Origin;
use crate::edge::session;
use crate::error::PageError;
use crate::field::Field;
use crate::form::{Fields, Form};
use crate::next::local_path;
use crate::notice::{self, Notice};
use crate::peer::Peer;
use crate::service::error::ApiError;
use crate::telemetry::security::{self, SecurityEvent};
use crate::viewer::Viewer;
use crate::vocab::day::Day;
use crate::vocab::secret::Secret;

/// The same message for a wrong password, an unknown address and a disabled account, so that it
/// reveals nothing.
const REFUSED: &str = "Wrong e-mail or password.";

const LOGGED_OUT: Notice = Notice::new("logged-out", "You are logged out.");
const NOTICES: [Notice; 3] = [LOGGED_OUT, SIGNED_UP, super::verify::VERIFIED];

/// Login and sign-up form.
#[derive(Deserialize)]
pub struct Credentials {
    #[serde(default)]
    pub email: String,
    #[serde(default)]
    pub password: Secret,
    pub next: Option<String>,
    /// `yes`: keep me signed in.
    #[serde(default)]
    pub keep: String,
    /// `yes`: keep an account that is to be erased.
    #[serde(default)]
    pub restore: String,
}

/// Says on a page with a password that the browser will not send the session's cookie back: over plain HTTP, from
/// another machine. Empty otherwise.
pub fn plain_warning(web: &Web, parts: &Parts) -> Markup {
    let origin = parts.extensions.get::<Origin>();
    let is_plain =
        web.app.site.cookie.is_secure() && origin.is_some_and(Origin::is_plain_and_remote);
    html! {
        @if is_plain {
            p.problem { "This page came over plain HTTP, so the password can be read on the way and your browser will not stay logged in. Open it as http://localhost (through ssh -L, for example), put a proxy with TLS in front, or give the server a certificate: " a href="/docs/network" { "Network" } "." }
        }
    }
}

/// `GET /login`: the form. Redirects visitors who are already logged in.
pub async fn ask(
    State(web): State<Web>,
    viewer: Viewer,
    RawQuery(query): RawQuery,
    parts: Parts,
) -> Response {
    let next = next_of(query.as_deref());
    if viewer.member.is_some() {
        return Redirect::to(local_path(next.as_deref())).into_response();
    }
    if web.app.site.single_user && web.app.store.has_open_owner() {
        return form_page(&viewer, "Another browser opens dropdex", &unknown_browser())
            .into_response();
    }
    let notice = notice::shown(&NOTICES, query.as_deref());
    let owner = web.app.store.owner_email().filter(|_| web.app.site.single_user);
    let email = owner.as_ref().map_or("", |email| email.as_str());
    let asked = form(&web, email, next.as_deref(), false, None);
    let plain = plain_warning(&web, &parts);
    form_page(&viewer, "Log in", &html! { (plain) (notice) (asked) }).into_response()
}

/// `POST /login`: starts a session and ends the browser's previous one.
pub async fn log_in(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    headers: HeaderMap,
    Form(sent): Form<Credentials>,
) -> Result<Response, PageError> {
    let is_kept = sent.keep == "yes";
    let again = |problem: &str| {
        let again = form(&web, &sent.email, sent.next.as_deref(), is_kept, Some(problem));
        form_page(&viewer, "Log in", &again)
    };
    let refused = || (StatusCode::BAD_REQUEST, again(REFUSED)).into_response();
    let Ok(email) = sent.email.parse::<Email>() else { return Ok(refused()) };
    let attempt = match web.throttle.try_password(peer, &email) {
        Ok(attempt) => attempt,
        Err(wait) => {
            security::record(SecurityEvent::LogInLimited, email.as_str());
            return Ok(too_many(wait, again(&wait_text(wait))));
        }
    };
    let life = if is_kept { SessionLife::Kept } else { SessionLife::Short };
    let (store, typed) = (&web.app.store, sent.password.clone());
    let now = viewer.now.0;
    let leaving = if sent.restore == "yes" { IfLeaving::Restore } else { IfLeaving::Ask };
    let token = match store.log_in(&email, typed, life, leaving, attempt, now).await? {
        LogIn::Begun(token) => token,
        LogIn::Restored(token) => {
            security::record(SecurityEvent::AccountRestored, email.as_str());
            token
        }
        LogIn::Leaving(until) => {
            let offer =
                restore_form(&email, is_kept, Day::nearest(until.instant()), Day::nearest(now));
            return Ok(form_page(&viewer, "Restore your account", &offer).into_response());
        }
        LogIn::Refused => {
            security::record(SecurityEvent::LogInFailed, email.as_str());
            // The account may already exist on other nodes.
            return if store.was_caught_up() {
                Ok(refused())
            } else {
                Err(ApiError::Unread.into())
            };
        }
    };
    security::record(SecurityEvent::LogIn, email.as_str());
    web.throttle.remember(peer, &email);
    begin(&web, &headers, &token, life, local_path(sent.next.as_deref())).await
}

/// Ends the browser's previous session, sets the new cookie and redirects to `next`.
pub async fn begin(
    web: &Web,
    headers: &HeaderMap,
    token: &Token,
    life: SessionLife,
    next: &str,
) -> Result<Response, PageError> {
    if let Some(old) = session::token(&web.app, headers) {
        web.app.store.log_out(&old).await?;
    }
    web.app.store.name_session(token, &browser_name::of(headers));
    let jar = CookieJar::new().add(session::cookie(web.app.site.cookie, token, life));
    Ok((jar, Redirect::to(next)).into_response())
}

/// Logs the browser in to an account that this request added, and redirects to `next`.
pub async fn begin_first(
    web: &Web,
    headers: &HeaderMap,
    email: &Email,
    password: Secret,
    attempt: Attempt,
    now: DateTime<Utc>,
    next: &str,
) -> Result<Response, PageError> {
    let life = SessionLife::Short;
    let log_in = web.app.store.log_in(email, password, life, IfLeaving::Ask, attempt, now);
    match log_in.await?.token() {
        Some(token) => begin(web, headers, &token, life, next).await,
        // Another request disabled the account, or changed its password.
        None => Ok(SIGNED_UP.at("/login").into_response()),
    }
}

/// `POST /logout`: ends this session or, with `everywhere=yes`, all sessions of the account.
pub async fn log_out(
    State(web): State<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    if let ("yes", Some(member)) = (fields.text("everywhere"), &viewer.member) {
        web.app.store.log_out_everywhere(&member.caller).await?;
        security::record(SecurityEvent::LogOutEverywhere, member.email.as_str());
    } else if let Some(token) = session::token(&web.app, &headers) {
        web.app.store.log_out(&token).await?;
    }
    let jar = CookieJar::new().add(session::removal(web.app.site.cookie));
    Ok((jar, LOGGED_OUT.at("/login")).into_response())
}

/// Renders the form that restores an account. It asks for the password again, because no session began.
fn restore_form(email: &Email, is_kept: bool, until: Day, today: Day) -> Markup {
    html! {
        form.panel method="post" action="/login" {
            p { "This account was deleted, and will be erased with all its data on " (date(until, today)) "." }
            p { "Enter your password again to restore it. Your keys and feeds will work again." }
            input type="hidden" name="restore" value="yes";
            @if is_kept { input type="hidden" name="keep" value="yes"; }
            input type="email" name="email" value=(email) autocomplete="username" readonly hidden;
            (Field::password("password", "Password", None))
            button type="submit" { "Restore account" }
        }
        p { a href="/" { "Leave it deleted" } }
    }
}

/// Renders the page for a browser that lacks the cookie of an owner without a password.
fn unknown_browser() -> Markup {
    html! {
        p {
            "This server is for one person on this machine, and recognizes their browser by a cookie that this "
            "browser does not have. To open dropdex here, use the link that " code { "dropdex serve" }
            " printed when it started, or set a password with "
            code { "dropdex account set-password owner@localhost --password-stdin" } "."
        }
        p.soft {
            "If you came through a proxy, the server is not set up for that: set " code { "public_url" }
            " and a password."
        }
    }
}

/// Returns the `next` parameter of a query string.
pub fn next_of(query: Option<&str>) -> Option<String> {
    Fields::from_query(query).all("next").next().map(str::to_owned)
}

/// Appends `next` to a path.
pub fn with_next(path: &str, next: Option<&str>) -> String {
    query::with(&[("next", next.unwrap_or_default())], path)
}

fn form(
    web: &Web,
    email: &str,
    next: Option<&str>,
    is_kept: bool,
    problem: Option<&str>,
) -> Markup {
    html! {
        form.panel method="post" action="/login" {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            (Field::email(email, None))
            (Field::password("password", "Password", problem))
            label.keep {
                input type="checkbox" name="keep" value="yes" checked[is_kept];
                " Keep me signed in for 30 days"
            }
            button type="submit" { "Log in" }
        }
        @if SignUps::of(web) != SignUps::Closed {
            p { "New to dropdex? " a href=(with_next("/signup", next)) { "Sign up" } "." }
        }
        @if mail::is_set_up(web) {
            p { a href="/forgot" { "Forgot your password?" } }
        } @else {
            p.soft { "Forgot your password? Ask the administrator of this server to reset it." }
        }
    }
}
