//! What a page says of the form that led to it. A redirect names one by its code, so that nobody can
//! put words of their own into a page by a link.

use axum::response::Redirect;
use maud::{Markup, html};

/// A line at the head of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub code: &'static str,
    pub text: &'static str,
}

impl Notice {
    /// A notice that links name by `code`.
    pub const fn new(code: &'static str, text: &'static str) -> Notice {
        Notice { code, text }
    }

    /// A redirect (303) to `path`, which has no query yet, that shows it there.
    pub fn at(self, path: &str) -> Redirect {
        Redirect::to(&format!("{path}?notice={}", self.code))
    }
}

/// The notice of `notices` that the query string names, as markup.
pub fn shown(notices: &[Notice], query: Option<&str>) -> Markup {
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let code = pairs.find(|(name, _)| name == "notice").map(|(_, code)| code);
    let notice = notices.iter().find(|notice| code.as_deref() == Some(notice.code));
    html! {
        @if let Some(notice) = notice { p.notice role="status" { (notice.text) } }
    }
}
