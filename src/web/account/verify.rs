//! `/verify/{token}`: the link that verifies an e-mail address. GET only shows a button, because mail
//! scanners open every link; POST verifies. No login is required: the link itself proves access to the
//! mailbox.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;

use crate::Web;
use crate::account::form_page;
use crate::accounts::Token;
use crate::error::PageError;
use crate::notice::Notice;
use crate::viewer::Viewer;

pub const VERIFIED: Notice = Notice::new(
    "verified",
    "Your e-mail address is verified. You can now receive alerts by e-mail.",
);

/// `GET /verify/{token}`: asks for confirmation and changes nothing.
pub async fn ask(State(web): State<Web>, viewer: Viewer, Path(link): Path<String>) -> Response {
    let token = Token::parse(&link);
    let Some(token) = token.filter(|it| web.app.store.is_good_link(it, viewer.now.0)) else {
        return invalid_link(&viewer);
    };
    let action = format!("/verify/{}", token.reveal());
    let main = html! {
        form.panel method="post" action=(action) {
            p { "Confirm that this address is yours to receive alerts by e-mail." }
            button type="submit" { "Verify address" }
        }
    };
    form_page(&viewer, "Verify your e-mail address", &main).into_response()
}

/// `POST /verify/{token}`: verifies the address.
pub async fn verify(
    State(web): State<Web>,
    viewer: Viewer,
    Path(link): Path<String>,
) -> Result<Response, PageError> {
    let Some(token) = Token::parse(&link) else { return Ok(invalid_link(&viewer)) };
    if !web.app.store.verify_email(&token, viewer.now.0).await? {
        return Ok(invalid_link(&viewer));
    }
    let path = if viewer.member.is_some() { "/account/notifications" } else { "/login" };
    Ok(VERIFIED.at(path).into_response())
}

/// Response to used, expired and unknown links, without distinguishing them.
fn invalid_link(viewer: &Viewer) -> Response {
    let main = html! {
        p.hint { "It was already used, has expired, or was replaced by a newer link." }
        p { "Request a new link in your " a href="/account/notifications" { "notification settings" } "." }
    };
    (StatusCode::NOT_FOUND, form_page(viewer, "This link no longer works", &main)).into_response()
}
