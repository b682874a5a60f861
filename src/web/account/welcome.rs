//! `/welcome`: the first visit to a single-user server creates the owner's account.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{Query, Request, State};
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Deserialize;

use crate::Web;
use crate::account::SignUps;
use crate::account::login::begin_first;
use crate::accounts::{Attempt, Password, Person, SessionLife, Token, WriteError};
use crate::components::grouped;
use crate::edge::local::{Local, judge};
use crate::edge::session;
use crate::error::{PageError, sentence};
use crate::field::{Field, Input};
use crate::form::Form;
use crate::layout::Page;
use crate::next::local_path;
use crate::service::error::ApiError;
use crate::service::site::CookieKind;
use crate::viewer::Viewer;
use crate::vocab::secret::Secret;

const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The form.
#[derive(Deserialize)]
pub struct Choice {
    #[serde(default)]
    lock: String,
    #[serde(default)]
    password: Secret,
}

/// Whether the first visit creates an account: no account exists, and sign-ups are closed.
pub fn makes_owner(web: &Web) -> bool {
    web.app.site.single_user && !web.app.store.has_accounts() && SignUps::of(web) == SignUps::Closed
}

/// Whether the request is from the machine of a single-user server that has no account yet.
pub struct FirstVisit(pub(super) bool);

impl axum::extract::FromRequestParts<Web> for FirstVisit {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        web: &Web,
    ) -> Result<FirstVisit, Self::Rejection> {
        Ok(FirstVisit(makes_owner(web) && judge_parts(web, parts) == Local::Yes))
    }
}

pub(super) fn judge_parts(web: &Web, parts: &Parts) -> Local {
    judge(&web.app, &parts.extensions, &parts.headers, parts.version)
}

/// Redirects the first visit from the list to the welcome page; programs get the list. If no browser has
/// the cookie of an owner without a password, also gives it to the browser of the request: after the
/// welcome page, after an update of the server, and after the cookie has expired.
pub async fn let_in(State(web): State<Web>, request: Request, next: Next) -> Response {
    if !web.app.site.single_user || !is_navigation(&request) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let local = judge_parts(&web, &parts);
    if local == Local::Forwarded {
        warn_of_proxy();
    }
    let is_browser = parts.headers.get(MODE).is_some_and(|mode| mode == "navigate");
    if local == Local::Yes && is_browser && parts.uri.path() == "/" && makes_owner(&web) {
        return Redirect::to("/welcome").into_response();
    }
    let is_unknown = parts.extensions.get::<Person>().is_none();
    if local == Local::Yes && is_unknown && web.app.store.has_open_owner() {
        match web.app.store.open_to_browser(false, web.app.clock.now()).await {
            Ok(Some(token)) => return with_cookie(&token, &shown_path(&parts.uri)),
            Ok(None) => {}
            // The write failed, most likely because the disk is full. Pages that need no account
            // are still served.
            Err(err) => tracing::error!(error = %err, "cannot let the owner in"),
        }
    }
    next.run(Request::from_parts(parts, body)).await
}

/// Whether the request is a browser's navigation to a page, so that a cookie would be kept.
fn is_navigation(request: &Request) -> bool {
    let headers = request.headers();
    let accepts_pages = || {
        let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        accept.is_some_and(|accept| accept.contains("text/html"))
    };
    request.method() == Method::GET
        && headers.get(MODE).map_or_else(accepts_pages, |mode| mode == "navigate")
}

fn shown_path(uri: &Uri) -> String {
    uri.path_and_query().map_or("/", |it| it.as_str()).to_owned()
}

/// Sets the cookie of an owner without a password, and redirects.
fn with_cookie(token: &Token, to: &str) -> Response {
    let jar =
        CookieJar::new().add(session::cookie(CookieKind::PlainHttp, token, SessionLife::Kept));
    (jar, Redirect::to(local_path(Some(to)))).into_response()
}

/// Logs once that requests come through a proxy.
fn warn_of_proxy() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "a proxy forwards requests to this server, which was started for one person on this machine; set \
             `public_url`, so that every visitor has to log in, and a password under Account"
        );
    }
}

/// The query of the link that the server prints at its start.
#[derive(Deserialize)]
pub struct WelcomeQuery {
    key: Option<String>,
}

/// `GET /welcome`: with the key of the link, logs the browser in.
pub async fn ask(
    State(web): State<Web>,
    viewer: Viewer,
    first: FirstVisit,
    Query(link): Query<WelcomeQuery>,
) -> Result<Response, PageError> {
    if first.0 {
        return Ok(page(&web, &viewer, None).into_response());
    }
    let key = link.key.as_deref().and_then(Token::parse);
    let is_right = key.is_some_and(|key| key.digest().is(&web.app.site.owner_link.digest()));
    if web.app.site.single_user && is_right && viewer.member.is_none() {
        let let_in = web.app.store.open_to_browser(true, viewer.now.0).await?;
        if let Some(token) = let_in {
            return Ok(with_cookie(&token, "/"));
        }
    }
    Ok(Redirect::to("/").into_response())
}

/// `POST /welcome`: adds the owner and redirects to the list.
pub async fn start(
    State(web): State<Web>,
    viewer: Viewer,
    first: FirstVisit,
    headers: HeaderMap,
    Form(sent): Form<Choice>,
) -> Result<Response, PageError> {
    if !first.0 {
        return Err(ApiError::NotFound.into());
    }
    let (first, now) = (Attempt::FIRST_VISIT, viewer.now.0);
    if sent.lock != "password" {
        let let_in = let_in_owner(&web, "/", now).await?;
        return Ok(let_in.unwrap_or_else(|| Redirect::to("/").into_response()));
    }
    let password = match Password::chosen(sent.password.clone(), None) {
        Ok(password) => password,
        Err(err) => {
            let page = page(&web, &viewer, Some(&sentence(&err.to_string())));
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
    };
    let Some(email) = web.app.store.add_owner(None, Some(password), first, now).await? else {
        return Err(ApiError::NotFound.into());
    };
    begin_first(&web, &headers, &email, sent.password, first, now, "/").await
}

/// Adds the owner without a password, and gives the browser the owner's cookie. `None` if the owner has a
/// password.
pub(super) async fn let_in_owner(
    web: &Web,
    to: &str,
    now: DateTime<Utc>,
) -> Result<Option<Response>, WriteError> {
    web.app.store.add_owner(None, None, Attempt::FIRST_VISIT, now).await?;
    let token = web.app.store.open_to_browser(true, now).await?;
    Ok(token.map(|token| with_cookie(&token, to)))
}

/// Renders the choice between a password and none.
pub(super) fn lock_choice(problem: Option<&str>, wants_password: bool) -> Markup {
    html! {
        fieldset {
            legend { "Who can open it?" }
            label.choice {
                input type="radio" name="lock" value="open" checked[!wants_password];
                span { b { "No password, this machine only" } " This browser keeps a cookie that opens dropdex." }
            }
            label.choice {
                input type="radio" name="lock" value="password" checked[wants_password];
                span { b { "Set a password" } " For shared computers, or before you open the server to a network." }
            }
        }
        // The field is not required, because the other choice needs no password.
        div.with-password { (Field::new("password", "Password").help("8 to 128 characters. Use a few unrelated words.").problem(problem).input("", Input { autocomplete: "new-password", is_required: false, ..Input::PASSWORD })) }
    }
}

fn page(web: &Web, viewer: &Viewer, problem: Option<&str>) -> Markup {
    let names = web.app.live.current().manifest().names;
    let wants_password = problem.is_some();
    Page::new("Welcome", "Choose who can open this server.")
        .styles(&["account.css"])
        .scripts(&["account.js"])
        .show(
            Some(viewer),
            html! {
                div.narrow.welcome {
                    h1 { "Your list is ready" }
                    p.soft { "This server is reachable only from this machine. Everything is included." }
                    form.panel method="post" action="/welcome" {
                        (lock_choice(problem, wants_password))
                        button type="submit" { "Open the list" }
                    }
                    p.soft { (grouped(names.into())) " names are here. You can change this under Account." }
                }
            },
        )
}
