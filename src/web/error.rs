//! Errors as pages, with the status and the text of [`crate::edge::error`].

use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;

use crate::components::{query, upper_first};
use crate::edge::error::Refusal;
use crate::layout::Page;

/// Reason why a page cannot be shown.
pub enum PageError {
    /// A login is required. `next` is the path and query to return to after a GET request.
    LogIn { next: Option<String> },
    /// The error that the API would return.
    Refused(Refusal),
}

impl PageError {
    /// Creates the redirect to the login page, which returns to `uri` after a GET request.
    pub fn log_in_for(method: &Method, uri: &Uri) -> PageError {
        let next = (method == Method::GET).then(|| uri.path_and_query()).flatten();
        PageError::LogIn { next: next.map(|next| next.as_str().to_owned()) }
    }
}

impl<E: Into<Refusal>> From<E> for PageError {
    fn from(err: E) -> PageError {
        PageError::Refused(err.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            PageError::LogIn { next } => {
                let next = next.unwrap_or_default();
                Redirect::to(&query::with(&[("next", &next)], "/login")).into_response()
            }
            PageError::Refused(refusal) => refusal_page(refusal),
        }
    }
}

fn refusal_page(refusal: Refusal) -> Response {
    let reason = refusal.status.canonical_reason().unwrap_or("Error");
    let title = sentence_case(reason);
    let is_bare = refusal.message().eq_ignore_ascii_case(reason);
    let page = Page::new(&title, "This page cannot be shown.").show(
        None,
        html! {
            section.narrow.refusal {
                p.status { (refusal.status.as_str()) }
                h1 { (title) }
                @if refusal.status == StatusCode::NOT_FOUND && is_bare {
                    p { "Page not found. Check the address, or start from one of these pages." }
                } @else {
                    p.problem { (sentence(refusal.message())) }
                }
                p.ways { a.button href="/" { "Browse drops" } " " a.button.quiet href="/search" { "Search names" } }
            }
        },
    );
    (refusal.status, refusal.headers, page).into_response()
}

/// Converts `Not Found` to `Not found`.
pub fn sentence_case(reason: &str) -> String {
    let mut chars = reason.chars();
    chars.next().into_iter().chain(chars.flat_map(char::to_lowercase)).collect()
}

/// Capitalizes an error message and ends it with a full stop.
pub fn sentence(message: &str) -> String {
    let text = upper_first(message);
    if text.ends_with(['.', '?', '!']) { text } else { format!("{text}.") }
}
