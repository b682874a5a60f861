//! `/unsubscribe/{delivery}`: the link in alert mails (RFC 8058). The link needs no key and can only
//! switch off the mails of one rule. GET shows a page with a button, because mail scanners follow every
//! link; POST, from the button or a mail program, switches the mails off. Valid and invalid links get the
//! same response.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

use crate::body::read_bytes;
use crate::edge::error::Refusal;
use crate::service::app::App;
use crate::vocab::ids::UnsubscribeToken;
use crate::vocab::time::UnixMs;

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// `GET /unsubscribe/{delivery}`: shows the confirmation page and changes nothing.
pub async fn ask() -> Response {
    page(
        "<h1>Stop these mails?</h1>\
         <p>You will no longer get mails from this alert. Other alerts and channels are not affected.</p>\
         <form method=\"post\">\
         <input type=\"hidden\" name=\"List-Unsubscribe\" value=\"One-Click\">\
         <button>Stop these mails</button></form>",
    )
}

/// `POST /unsubscribe/{delivery}`: switches off the mails of the rule. The body is ignored; it is
/// read only so that the connection can be reused.
///
/// # Errors
/// 413 for an oversized body, 503 while the journal refuses writes.
pub async fn unsubscribe(
    State(app): State<App>,
    link: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    read_bytes(request.into_body()).await?;
    let token = link.ok().and_then(|Path(text)| UnsubscribeToken::parse(&text));
    if let Some(token) = token
        && app.store.unsubscribe(token, UnixMs::from_instant(app.clock.now())).await?
    {
        tracing::info!("alert mails switched off by unsubscribe link");
    }
    Ok(page(
        "<h1>Done</h1>\
         <p>You will no longer get mails from this alert. To turn them on again, edit the channels of \
         the alert in your account.</p>",
    ))
}

/// Renders a page that loads no resources, cannot be framed and sends no referrer.
fn page(main: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>dropdex alerts</title></head>\
         <body><main>{main}</main></body></html>\n"
    );
    let policy = "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (ROBOTS, "noindex"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, html).into_response()
}
