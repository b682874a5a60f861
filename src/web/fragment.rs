//! Page fragments for scripts: with the `X-Fragment` header, the same URL returns only the part that
//! changes, rendered by the same code.

use axum::http::header::VARY;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

/// Requested part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The whole page.
    Page,
    /// `X-Fragment: 1`: the part that changes.
    Part,
    /// `X-Fragment: rows`: the rows of a list that its page leaves to a later request.
    Rows,
    /// `X-Fragment: parts`: the parts of the score of a name.
    Parts,
    /// `X-Fragment: options`: the suggestions below the search field.
    Options,
}

/// Reads the `X-Fragment` header.
pub fn wanted(headers: &HeaderMap) -> Wanted {
    match headers.get("x-fragment").map(HeaderValue::as_bytes) {
        Some(b"1") => Wanted::Part,
        Some(b"rows") => Wanted::Rows,
        Some(b"parts") => Wanted::Parts,
        Some(b"options") => Wanted::Options,
        _ => Wanted::Page,
    }
}

/// Sets `Vary`: the response depends on [`wanted`] and on the session.
pub fn vary(mut response: Response) -> Response {
    response.headers_mut().insert(VARY, HeaderValue::from_static("cookie, x-fragment"));
    response
}
