//! Parts of pages for scripts: the same address with a header gives the part that changes, made by
//! the same code, so that a page looks the same however it came to be.

use axum::http::header::VARY;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The whole page.
    Page,
    /// `X-Fragment: 1`: the part that changes.
    Part,
    /// `X-Fragment: options`: the options of a list below a field.
    Options,
}

/// What the headers of a request ask for.
pub fn wanted(headers: &HeaderMap) -> Wanted {
    match headers.get("x-fragment").map(HeaderValue::as_bytes) {
        Some(b"1") => Wanted::Part,
        Some(b"options") => Wanted::Options,
        _ => Wanted::Page,
    }
}

/// Says of an answer that it depends on [`wanted`], and on who has logged in.
pub fn vary(mut response: Response) -> Response {
    response.headers_mut().insert(VARY, HeaderValue::from_static("cookie, x-fragment"));
    response
}
