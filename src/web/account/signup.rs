//! `/signup`: creates an account and logs its owner in, unless the operator disabled self-service
//! sign-up.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::accounts::{Email, Password, SignUp};
use crate::web::Web;
use crate::web::account::login::{Credentials, begin, next_of, with_next};
use crate::web::account::{api_key, form_page, mail, too_many, wait_text};
use crate::web::error::{PageError, sentence};
use crate::web::field::Field;
use crate::web::form::Form;
use crate::web::next::local_path;
use crate::web::peer::Peer;
use crate::web::viewer::Viewer;

/// Errors of a form by field.
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

/// `POST /signup`: creates the account, logs its owner in and e-mails the verification link.
pub async fn sign_up(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    headers: HeaderMap,
    Form(sent): Form<Credentials>,
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
        let problems = Problems { email: Some(wait_text(wait)), ..Problems::default() };
        return Ok(too_many(wait, again(problems)));
    }
    let (plan, now) = (web.settings.signup_plan, viewer.now.0);
    let SignUp::Done(token) = web.app.store.sign_up(email.clone(), plan, password, now).await?
    else {
        let taken = "An account with this address already exists. Log in instead.".to_owned();
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

fn parse(sent: &Credentials) -> Result<(Email, Password), Problems> {
    let email = sent.email.parse::<Email>();
    let password = Password::chosen(sent.password.clone(), email.as_ref().ok());
    match (email, password) {
        (Ok(email), Ok(password)) => Ok((email, password)),
        (email, password) => Err(Problems {
            email: email.err().map(|err| sentence(&err.to_string())),
            password: password.err().map(|err| sentence(&err.to_string())),
        }),
    }
}

fn closed(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "This server does not allow self-service sign-up. Ask the administrator for an account." }
        p { a href="/login" { "Log in" } " · " a href="/" { "Browse drops" } }
    };
    (StatusCode::FORBIDDEN, form_page(viewer, "Sign-up is closed", &main)).into_response()
}

fn form(email: &str, next: Option<&str>, problems: &Problems) -> Markup {
    html! {
        form.panel method="post" action="/signup" {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            (Field::email(email, problems.email.as_deref()))
            (Field::new_password("Password", problems.password.as_deref()))
            button type="submit" { "Sign up" }
        }
        p { "Already have an account? " a href=(with_next("/login", next)) { "Log in" } "." }
    }
}
