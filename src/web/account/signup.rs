//! `/signup`: creates an account. No response reveals which addresses have an account.
//!
//! If mail is set up, the form asks only for an address, to which a link is mailed. GET `/signup/{link}`
//! asks for a password; POST creates the account and logs its owner in. An address that already has an
//! account gets a mail that says so. Without mail, the operator can allow sign-up with address and
//! password.

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::Web;
use crate::account::login::{Credentials, begin_first, next_of, with_next};
use crate::account::mailed_links::Purpose;
use crate::account::{SIGNED_UP, SignUps, form_page, mail, too_many, wait_text};
use crate::accounts::{Email, Password};
use crate::components::query;
use crate::error::{PageError, sentence};
use crate::field::Field;
use crate::form::Form;
use crate::next::local_path;
use crate::notice::{self, Notice};
use crate::peer::Peer;
use crate::telemetry::security::{self, SecurityEvent};
use crate::viewer::Viewer;

const MAILED: Notice = Notice::new(
    "mailed",
    "We sent an e-mail to this address. Open the link in it within 24 hours. If it does not arrive, check your spam folder.",
);
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
    let how = SignUps::of(&web);
    if how == SignUps::Closed {
        return closed(&viewer);
    }
    let notice = notice::shown(&[MAILED], query.as_deref());
    let asked = form(how, "", next.as_deref(), &Problems::default());
    form_page(&viewer, "Sign up", &html! { (notice) (asked) }).into_response()
}

/// `POST /signup`: mails a link, or creates the account if mail is not set up. The response is the same
/// for addresses with and without an account.
pub async fn sign_up(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    Form(sent): Form<Credentials>,
) -> Result<Response, PageError> {
    let (how, next) = (SignUps::of(&web), sent.next.as_deref());
    let again = |problems| form_page(&viewer, "Sign up", &form(how, &sent.email, next, &problems));
    let refused = |problems| Ok((StatusCode::BAD_REQUEST, again(problems)).into_response());
    let email = sent.email.parse::<Email>();
    let password = match how {
        SignUps::Closed => return Ok(closed(&viewer)),
        SignUps::ByMail => Ok(None),
        SignUps::AtOnce => Password::chosen(sent.password.clone(), email.as_ref().ok()).map(Some),
    };
    let (email, password) = match (email, password) {
        (Ok(email), Ok(password)) => (email, password),
        (email, password) => {
            return refused(Problems {
                email: email.err().map(|err| sentence(&err.to_string())),
                password: password.err().map(|err| sentence(&err.to_string())),
            });
        }
    };
    if let Err(wait) = web.throttle.sign_up(peer) {
        let problems = Problems { email: Some(wait_text(wait)), ..Problems::default() };
        return Ok(too_many(wait, again(problems)));
    }
    let Some(password) = password else {
        mail::send_sign_up(&web, email, viewer.now.0);
        return Ok(MAILED.at("/signup").into_response());
    };
    let (plan, now) = (web.settings.signup_plan, viewer.now.0);
    // The response is the same if the address is taken, since its owner can log in.
    let attempt = web.throttle.attempt(peer, &email);
    if web.app.store.sign_up(email.clone(), plan, password, false, attempt, now).await? {
        security::record(SecurityEvent::SignUp, email.as_str());
    }
    let parameters = [("notice", SIGNED_UP.code), ("next", next.unwrap_or_default())];
    Ok(Redirect::to(&query::with(&parameters, "/login")).into_response())
}

/// `GET /signup/{link}`: asks for the password of the new account and changes nothing.
pub async fn ask_password(
    State(web): State<Web>,
    viewer: Viewer,
    Path(link): Path<String>,
) -> Response {
    match address_of(&web, &viewer, &link) {
        Some(email) => password_page(&viewer, &link, &email, None).into_response(),
        None => invalid_link(&viewer),
    }
}

/// `POST /signup/{link}`: creates the account with a verified address and starts its first session.
pub async fn start(
    State(web): State<Web>,
    viewer: Viewer,
    peer: Peer,
    headers: HeaderMap,
    Path(link): Path<String>,
    Form(sent): Form<Credentials>,
) -> Result<Response, PageError> {
    let Some(email) = address_of(&web, &viewer, &link) else { return Ok(invalid_link(&viewer)) };
    let again = |problem: &str| password_page(&viewer, &link, &email, Some(problem));
    let password = match Password::chosen(sent.password.clone(), Some(&email)) {
        Ok(password) => password,
        Err(err) => {
            let page = again(&sentence(&err.to_string()));
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
    };
    let attempt = match web.throttle.try_password(peer, &email) {
        Ok(attempt) => attempt,
        Err(wait) => return Ok(too_many(wait, again(&wait_text(wait)))),
    };
    let (store, plan, now) = (&web.app.store, web.settings.signup_plan, viewer.now.0);
    if !store.sign_up(email.clone(), plan, password, true, attempt, now).await? {
        return Ok(invalid_link(&viewer));
    }
    security::record(SecurityEvent::SignUp, email.as_str());
    web.throttle.remember(peer, &email);
    begin_first(&web, &headers, &email, sent.password, attempt, now, "/").await
}

/// Returns the address of a valid link, unless the address has an account by now.
fn address_of(web: &Web, viewer: &Viewer, link: &str) -> Option<Email> {
    let email = web.mailed_links.email(link, |_| Some(Purpose::SignUp), viewer.now.0)?;
    (SignUps::of(web) == SignUps::ByMail && !web.app.store.has_account(&email)).then_some(email)
}

fn password_page(viewer: &Viewer, link: &str, email: &Email, problem: Option<&str>) -> Markup {
    let main = html! {
        form.panel method="post" action={ "/signup/" (link) } {
            p { "Choose a password for " b { (email) } "." }
            // Tells password managers which account the password belongs to.
            input type="email" name="email" value=(email) autocomplete="username" readonly hidden;
            (Field::new_password("Password", problem))
            button type="submit" { "Create account" }
        }
    };
    form_page(viewer, "Create your account", &main)
}

/// Response to used, expired and unknown links, without distinguishing them.
fn invalid_link(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "It was already used, has expired, or was sent before the server restarted." }
        p { a href="/login" { "Log in" } " or " a href="/signup" { "sign up again" } "." }
    };
    (StatusCode::NOT_FOUND, form_page(viewer, "This link no longer works", &main)).into_response()
}

fn closed(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "This server does not allow self-service sign-up. Ask the administrator for an account." }
        p.soft { "Administrators add accounts with " code { "dropdex account add" } "." }
        p { a href="/login" { "Log in" } " · " a href="/" { "Browse drops" } }
    };
    (StatusCode::FORBIDDEN, form_page(viewer, "Sign-up is closed", &main)).into_response()
}

fn form(how: SignUps, email: &str, next: Option<&str>, problems: &Problems) -> Markup {
    html! {
        form.panel method="post" action="/signup" {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            (Field::email(email, problems.email.as_deref()))
            @if how == SignUps::AtOnce {
                (Field::new_password("Password", problems.password.as_deref()))
                button type="submit" { "Sign up" }
            } @else {
                p.soft { "We send you a link. It opens a page where you choose your password." }
                button type="submit" { "Send link" }
            }
        }
        p { "Already have an account? " a href=(with_next("/login", next)) { "Log in" } "." }
    }
}
