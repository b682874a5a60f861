//! `/unsubscribe/{delivery}`: the link in alert mails (RFC 8058). No key: whoever holds the link may
//! switch off the mails of the one rule it stands for, and nothing else. GET shows a page with a
//! button, since scanners of mails follow every link; POST, of the button or of a mail program,
//! switches off. Every link is answered alike, known or not.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

use crate::http::App;
use crate::http::body::read_octets;
use crate::http::error::ApiError;
use crate::vocab::ids::DeliveryId;
use crate::vocab::time::UnixMs;

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// `GET /unsubscribe/{delivery}`: asks, and changes nothing.
pub async fn ask() -> Response {
    page(
        "<h1>Stop these mails?</h1>\
         <p>You will get no more mails of this alert. Other alerts and channels stay as they are.</p>\
         <form method=\"post\">\
         <input type=\"hidden\" name=\"List-Unsubscribe\" value=\"One-Click\">\
         <button>Stop these mails</button></form>",
    )
}

/// `POST /unsubscribe/{delivery}`: switches the mails of the rule off. The body says nothing that
/// counts, and is read so that the connection lives on.
///
/// # Errors
/// 413 for a body that no mail program sends, 503 while nothing can be written.
pub async fn unsubscribe(
    State(app): State<App>,
    link: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    read_octets(request.into_body()).await?;
    let id = link.ok().and_then(|Path(text)| DeliveryId::parse(&text));
    if let Some(id) = id
        && app.store.unsubscribe(id, UnixMs::from_instant(app.clock.now())).await?
    {
        tracing::info!("an alert's mails were switched off by their link");
    }
    Ok(page(
        "<h1>Done</h1>\
         <p>You will get no more mails of this alert. To get them again, change its channels in \
         your account.</p>",
    ))
}

/// A page that loads nothing, is framed nowhere and tells nobody its address.
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
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
        (ROBOTS, "noindex"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, html).into_response()
}
