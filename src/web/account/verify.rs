//! `/verify/{token}`: the link in the mail that verifies an address. GET shows a page with a button,
//! since scanners of mails follow every link; POST verifies. No log-in: whoever has the link reads
//! the mail of the address.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;

use crate::accounts::Token;
use crate::web::Web;
use crate::web::account::form_page;
use crate::web::error::PageError;
use crate::web::notice::Notice;
use crate::web::viewer::Viewer;

pub const VERIFIED: Notice =
    Notice::new("verified", "Your e-mail address is verified. Alerts can be mailed to it.");

/// `GET /verify/{token}`: asks, and changes nothing.
pub async fn ask(State(web): State<Web>, viewer: Viewer, Path(link): Path<String>) -> Response {
    let token = Token::parse(&link);
    let Some(token) = token.filter(|it| web.app.store.is_good_link(it, viewer.now.0)) else {
        return over(&viewer);
    };
    let action = format!("/verify/{}", token.reveal());
    let main = html! {
        form.panel method="post" action=(action) {
            p { "Alerts of your account can be mailed to this address then." }
            button type="submit" { "Verify the address" }
        }
    };
    form_page(&viewer, "Verify your e-mail address", &main).into_response()
}

/// `POST /verify/{token}`: verifies.
pub async fn verify(
    State(web): State<Web>,
    viewer: Viewer,
    Path(link): Path<String>,
) -> Result<Response, PageError> {
    let Some(token) = Token::parse(&link) else { return Ok(over(&viewer)) };
    if !web.app.store.verify_email(&token, viewer.now.0).await? {
        return Ok(over(&viewer));
    }
    let path = if viewer.member.is_some() { "/account/notifications" } else { "/login" };
    Ok(VERIFIED.at(path).into_response())
}

/// Said alike of links that were used, are over, and never were.
fn over(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "It was used before, is more than a day old, or a newer one was sent." }
        p { "Your " a href="/account/notifications" { "account's notifications" } " page sends another." }
    };
    (StatusCode::NOT_FOUND, form_page(viewer, "This link no longer works", &main)).into_response()
}
