//! Confirmation messages after a form. The redirect carries a code, not the text, so that a crafted
//! link cannot inject a message.

use axum::response::Redirect;
use maud::{Markup, html};

use crate::form::Fields;
use crate::undo;

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

    /// Returns the parameter that shows the notice.
    pub const fn parameter(self) -> (&'static str, &'static str) {
        ("notice", self.code)
    }

    /// Redirects (303) to `path`, which must not have a query, to show the notice there.
    pub fn at(self, path: &str) -> Redirect {
        Redirect::to(&format!("{path}?notice={}", self.code))
    }
}

/// Renders the notice whose code is in the query string.
pub fn shown(notices: &[Notice], query: Option<&str>) -> Markup {
    let text = text(notices, &Fields::from_query(query));
    html! { @if let Some(text) = text { p.notice role="status" { (text) } } }
}

/// As [`shown`], with the button that undoes the action that led to this `page`.
pub fn undoable(notices: &[Notice], query: Option<&str>, page: &str) -> Markup {
    let sent = Fields::from_query(query);
    undo::shown(&sent, page, text(notices, &sent))
}

fn text(notices: &[Notice], sent: &Fields) -> Option<&'static str> {
    let notice = notices.iter().find(|notice| sent.text("notice") == notice.code);
    notice.map(|notice| notice.text)
}
