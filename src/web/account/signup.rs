//! `/signup`: an address and a password in, an account and a session cookie out; unless the operator
//! adds all accounts.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use crate::accounts::{Email, Password, SignUp};
use crate::vocab::secret::Secret;
use crate::web::Web;
use crate::web::account::field::Field;
use crate::web::account::login::{begin, next_of, with_next};
use crate::web::account::{api_key, form_page, mail, too_many, wait_words};
use crate::web::error::PageError;
use crate::web::form::Form;
use crate::web::next::local_path;
use crate::web::peer::Peer;
use crate::web::viewer::Viewer;

/// The form, as sent.
#[derive(Deserialize)]
pub struct NewAccount {
    #[serde(default)]
    email: String,
    password: Option<Secret>,
    next: Option<String>,
}

/// What is wrong with a form, by its fields.
#[derive(Default)]
struct Problems {
    email: Option<String>,
    password: Option<String>,
}

/// `GET /signup`: the form.
pub async fn ask(State(web): State<Web>, viewer: Viewer, RawQuery(query): RawQuery) -> Response {
    let next = next_of(query.as_deref());
    if viewer.member.is_some() {
        return Redirect::to(local_path(next.as_deref())).into_response();
    }
    if !web.settings.signup {
        return closed(&viewer);
    }
    let asked = form("", next.as_deref(), &Problems::default());
    form_page(&viewer, "Sign up", &asked).into_response()
}

/// `POST /signup`: makes the account, logs its owner in and mails the link that verifies the address.
pub async fn sign_up(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    headers: HeaderMap,
    Form(sent): Form<NewAccount>,
) -> Result<Response, PageError> {
    if !web.settings.signup {
        return Ok(closed(&viewer));
    }
    let again = |problems| {
        form_page(&viewer, "Sign up", &form(&sent.email, sent.next.as_deref(), &problems))
    };
    let (email, password) = match parse(&sent) {
        Ok(meant) => meant,
        Err(problems) => return Ok((StatusCode::BAD_REQUEST, again(problems)).into_response()),
    };
    if let Err(wait) = web.throttle.sign_up(peer) {
        let problems = Problems { email: Some(wait_words(wait)), ..Problems::default() };
        return Ok(too_many(wait, again(problems)));
    }
    let (plan, now) = (web.settings.signup_plan, viewer.now.0);
    let SignUp::Done(token) = web.app.store.sign_up(email.clone(), plan, password, now).await?
    else {
        let taken = "There is an account with this address. Log in instead.".to_owned();
        let problems = Problems { email: Some(taken), ..Problems::default() };
        return Ok((StatusCode::BAD_REQUEST, again(problems)).into_response());
    };
    web.throttle.remember(peer, &email);
    if let Some(person) = web.app.store.person(&token, now) {
        mail::send_first(&web, &person.caller, now).await;
    }
    let welcome = format!("/account/api?notice={}", api_key::WELCOME.code);
    let next = sent.next.as_deref().map_or(welcome.as_str(), |next| local_path(Some(next)));
    begin(&web, &headers, &token, next).await
}

fn parse(sent: &NewAccount) -> Result<(Email, Password), Problems> {
    let email = sent.email.parse::<Email>();
    let typed = sent.password.clone().unwrap_or_else(|| Secret::new(String::new()));
    let password = Password::chosen(typed, email.as_ref().ok());
    match (email, password) {
        (Ok(email), Ok(password)) => Ok((email, password)),
        (email, password) => Err(Problems {
            email: email.err().map(|err| sentence(&err)),
            password: password.err().map(|err| sentence(&err)),
        }),
    }
}

/// What a type says is wrong with a text, as a sentence.
pub fn sentence(err: &impl std::fmt::Display) -> String {
    let text = err.to_string();
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    format!("{}.", first.chain(chars).collect::<String>())
}

fn closed(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "Accounts on this server are added by whoever runs it. Ask there for one." }
        p { a href="/login" { "Log in" } " · " a href="/" { "See the drops" } }
    };
    (StatusCode::FORBIDDEN, form_page(viewer, "Sign-up is closed", &main)).into_response()
}

fn form(email: &str, next: Option<&str>, problems: &Problems) -> Markup {
    let new_password =
        Field { label: "Password", ..Field::new_password(problems.password.as_deref()) };
    html! {
        form.panel method="post" action="/signup" {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            (Field::email(email, problems.email.as_deref()).show())
            (new_password.show())
            button type="submit" { "Sign up" }
        }
        p { "You have an account? " a href=(with_next("/login", next)) { "Log in" } "." }
    }
}
