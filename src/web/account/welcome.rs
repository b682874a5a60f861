//! `/welcome`: the first visit to a single-user server makes the account of its owner.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use crate::accounts::{Attempt, Password, SessionLife};
use crate::http::error::ApiError;
use crate::http::local::is_local;
use crate::vocab::secret::Secret;
use crate::web::Web;
use crate::web::account::SignUps;
use crate::web::account::login::begin;
use crate::web::components::grouped;
use crate::web::error::{PageError, sentence};
use crate::web::field::{Field, Input};
use crate::web::form::Form;
use crate::web::layout::Page;
use crate::web::viewer::Viewer;

/// The form.
#[derive(Deserialize)]
pub struct Choice {
    #[serde(default)]
    lock: String,
    #[serde(default)]
    password: Secret,
}

/// Whether the first visit creates an account: no account exists, and sign-ups are closed.
fn makes_owner(web: &Web) -> bool {
    !web.app.store.has_accounts() && SignUps::of(web) == SignUps::Closed
}

/// Whether the request is from the machine of a single-user server that has no account yet.
pub struct FirstVisit(bool);

impl axum::extract::FromRequestParts<Web> for FirstVisit {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        web: &Web,
    ) -> Result<FirstVisit, Self::Rejection> {
        Ok(FirstVisit(makes_owner(web) && is_local(&web.app, &parts.extensions, &parts.headers)))
    }
}

/// Leads the first visit from the list to the welcome page. Programs get the list.
pub async fn redirect(State(web): State<Web>, request: Request, next: Next) -> Response {
    let is_page = request.uri().path() == "/" && request.method() == Method::GET;
    if is_page && makes_owner(&web) {
        let (extensions, headers) = (request.extensions(), request.headers());
        let is_browser = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
        if is_browser && is_local(&web.app, extensions, headers) {
            return Redirect::to("/welcome").into_response();
        }
    }
    next.run(request).await
}

/// `GET /welcome`.
pub async fn ask(State(web): State<Web>, viewer: Viewer, first: FirstVisit) -> Response {
    match first {
        FirstVisit(true) => page(&web, &viewer, None).into_response(),
        FirstVisit(false) => Redirect::to("/").into_response(),
    }
}

/// `POST /welcome`: adds the owner and leads to the list.
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
        web.app.store.add_owner(None, first, now).await?;
        return Ok(Redirect::to("/").into_response());
    }
    let password = match Password::chosen(sent.password.clone(), None) {
        Ok(password) => password,
        Err(err) => {
            let page = page(&web, &viewer, Some(&sentence(&err.to_string())));
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
    };
    let Some(email) = web.app.store.add_owner(Some(password), first, now).await? else {
        return Err(ApiError::NotFound.into());
    };
    match web.app.store.log_in(&email, sent.password, SessionLife::Short, first, now).await? {
        Some(token) => begin(&web, &headers, &token, SessionLife::Short, "/").await,
        None => Ok(Redirect::to("/login").into_response()),
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
                    p.soft { "This server answers on this machine only. Everything is included." }
                    form.panel method="post" action="/welcome" {
                        fieldset {
                            legend { "Who can open it?" }
                            label.choice {
                                input type="radio" name="lock" value="open" checked[!wants_password];
                                span { b { "No password, this machine only" } " Anyone who can use this computer can open dropdex." }
                            }
                            label.choice {
                                input type="radio" name="lock" value="password" checked[wants_password];
                                span { b { "Set a password" } " For shared computers, or before you open the server to a network." }
                            }
                        }
                        // Not required: the other choice needs none.
                        div.with-password { (Field::new("password", "Password").help("8 to 128 characters. Use a few unrelated words.").problem(problem).input("", Input { autocomplete: "new-password", is_required: false, ..Input::PASSWORD })) }
                        button type="submit" { "Open the list" }
                    }
                    p.soft { (grouped(names.into())) " names are here. You can change this under Account." }
                }
            },
        )
}
