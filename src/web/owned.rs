//! Building blocks of the pages of user data: watchlist, alert rules and portfolio.

use axum::RequestPartsExt;
use axum::extract::RawPathParams;
use axum::http::request::Parts;
use maud::{Markup, html};

use crate::accounts::{Idempotency, IdempotencyKey, Post};
use crate::components::grouped;
use crate::error::PageError;
use crate::form::Fields;
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::query::params::{Limits, Paging};
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// Rows per page.
pub const ROWS: u32 = 100;
/// [`ROWS`] as limits of a query string.
pub const ROW_LIMITS: Limits = Limits { default: ROWS, max: ROWS };

/// Name of the field with the idempotency key.
pub const IDEMPOTENCY_FIELD: &str = "once";

/// Style sheets of these pages.
pub const STYLES: &[&str] = &["components.css", "owned.css"];

/// Renders a hidden field with an idempotency key, so that a form submitted twice, by a second click
/// or a reload, adds only one resource.
pub fn idempotency_field() -> Markup {
    let mut key = [0; 16];
    // Without random bytes, the form works without the key.
    let is_random = getrandom::fill(&mut key).is_ok();
    html! { @if is_random { input type="hidden" name=(IDEMPOTENCY_FIELD) value=(hex::encode(key)); } }
}

/// Builds a POST with the idempotency key of a form.
pub fn idempotent_post(fields: &Fields, now: Now) -> Post {
    let key = IdempotencyKey::parse(fields.text(IDEMPOTENCY_FIELD)).ok();
    let idempotency = key.map(|key| Idempotency { key, fingerprint: fields.digest() });
    Post { now: now.0, idempotency }
}

/// Builds a POST that is safe to repeat.
pub fn repeatable_post(now: Now) -> Post {
    Post::repeatable(now.0)
}

/// Parses a path parameter.
///
/// # Errors
/// 404 if it is missing or malformed.
pub async fn path_param<T>(
    parts: &mut Parts,
    name: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, PageError> {
    let params = parts.extract::<RawPathParams>().await.map_err(|_| ApiError::NotFound)?;
    let value = params.iter().find(|(key, _)| *key == name).and_then(|(_, text)| parse(text));
    Ok(value.ok_or(ApiError::NotFound)?)
}

/// Formats a time to the minute.
pub fn instant(at: UnixMs) -> Markup {
    let exact = at.instant().format("%Y-%m-%d %H:%M UTC");
    html! { time datetime=(at) title=(exact) { (at.instant().format("%-d %b %Y, %H:%M")) } }
}

/// Formats the date of a time.
pub fn day(at: UnixMs) -> Markup {
    let exact = at.instant().format("%Y-%m-%d");
    html! { time datetime=(at) title=(exact) { (at.instant().format("%-d %b %Y")) } }
}

/// Content of an empty cell.
pub fn nothing() -> Markup {
    html! { span.soft.none { span aria-hidden="true" { "–" } span.hidden { "none" } } }
}

/// Renders a figure with its label.
pub fn tile(label: &str, figure: Markup) -> Markup {
    html! { div.tile { dt { (label) } dd { (figure) } } }
}

/// Renders links to a CSV file and to its variant for Excel, or to the plans if the plan has no
/// exports.
pub fn csv(plan: Plan, address: &str) -> Markup {
    html! {
        @if plan >= Plan::Core {
            a.button.quiet href=(address) download { "Download CSV" }
            a.button.quiet href=(for_excel(address)) download title="CSV with a byte order mark, so that Excel reads it as UTF-8" {
                "For Excel"
            }
        } @else {
            a.button.quiet href="/account/plan" title="CSV export requires the Core plan" { "CSV with Core" }
        }
    }
}

/// Renders links that a button opens.
pub fn menu(label: &str, links: Markup) -> Markup {
    html! { details.menu { summary.button.quiet { (label) } div { (links) } } }
}

/// Returns the URL of a CSV file that Excel reads as UTF-8.
pub fn for_excel(address: &str) -> String {
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}bom=true")
}

/// Renders the position in a list, with links to the previous and next page. `at` returns the URL of
/// the page at an offset.
pub fn pager(page: Paging, total: usize, at: impl Fn(u32) -> String) -> Markup {
    let (first, shown) = (page.offset as usize, page.limit as usize);
    let last = total.min(first + shown);
    let previous = (page.offset > 0).then(|| at(page.offset.saturating_sub(page.limit)));
    let next = (last < total).then(|| at(page.offset + page.limit));
    html! {
        @if total > shown || first > 0 {
            nav.pager aria-label="Pages" {
                p.soft {
                    @if first < last {
                        (grouped(first as u64 + 1)) " to " (grouped(last as u64)) " of " (grouped(total as u64))
                    } @else {
                        "Nothing on this page"
                    }
                }
                p {
                    @if let Some(previous) = previous { a.button.quiet href=(previous) rel="prev" { "Previous" } }
                    " "
                    @if let Some(next) = next { a.button.quiet href=(next) rel="next" { "Next" } }
                }
            }
        }
    }
}

/// Confirmation page before a resource is deleted.
pub struct Deletion<'a> {
    pub item: NavItem,
    /// Noun for the resource, such as `claim`.
    pub noun: &'a str,
    /// Path of the resource.
    pub path: &'a str,
    pub description: Markup,
    /// Consequences of the deletion.
    pub consequence: &'a str,
}

impl Deletion<'_> {
    /// Renders the page. The form on the page posts to `{path}/delete`.
    pub fn page(self, member: &LoggedIn) -> Markup {
        let Deletion { item, noun, path, description, consequence } = self;
        Page::new(&format!("Delete {noun}"), consequence).at(item).styles(STYLES).show(
            Some(&member.viewer),
            html! {
                section.narrow.panel {
                    h1 { "Delete this " (noun) "?" }
                    (description)
                    p.soft { (consequence) }
                    form.actions method="post" action={ (path) "/delete" } {
                        button.danger type="submit" { "Delete" }
                        a.button.quiet href=(path) { "Cancel" }
                    }
                }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pagers_link_to_the_neighbouring_pages() {
        let at = |offset: u32| format!("/x?offset={offset}");
        let page = |offset| Paging { limit: 100, offset };
        let shown = |offset, total| pager(page(offset), total, at).into_string();
        assert_eq!(shown(0, 100), "");
        assert!(shown(0, 101).contains("1 to 100 of 101"));
        assert!(shown(0, 101).contains("/x?offset=100") && !shown(0, 101).contains("prev"));
        assert!(shown(100, 101).contains("/x?offset=0") && !shown(100, 101).contains("next"));
        assert!(shown(300, 101).contains("Nothing on this page"));
    }
}
