//! Confirmation messages after a form. The redirect carries a code, not the text, so that a crafted
//! link cannot inject a message.

use axum::response::Redirect;
use maud::{Markup, html};

use crate::form::Fields;

/// A message at the top of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub code: &'static str,
    pub text: &'static str,
}

impl Notice {
    /// A notice with its code in URLs.
    pub const fn new(code: &'static str, text: &'static str) -> Notice {
        Notice { code, text }
    }

    /// Redirects (303) to `path`, which must not have a query, to show the notice there.
    pub fn at(self, path: &str) -> Redirect {
        Redirect::to(&format!("{path}?notice={}", self.code))
    }
}

/// Renders the notice whose code is in the query string.
pub fn shown(notices: &[Notice], query: Option<&str>) -> Markup {
    let query = Fields::from_query(query);
    let notice = notices.iter().find(|notice| query.text("notice") == notice.code);
    html! {
        @if let Some(notice) = notice { p.notice role="status" { (notice.text) } }
    }
}
