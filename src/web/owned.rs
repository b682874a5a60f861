//! Pieces of the pages of what accounts own: watchlist, alerts, portfolio.

use maud::{Markup, html};

use crate::accounts::{Idempotency, IdempotencyKey, Post};
use crate::http::allowance::Now;
use crate::http::params::{Limits, Page};
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use crate::web::components::{grouped, query};
use crate::web::form::Fields;

/// Rows of a page.
pub const ROWS: u32 = 100;
/// The same for those who read query strings: how many rows nobody says.
pub const ROW_LIMITS: Limits = Limits { default: ROWS, max: ROWS };

/// The field that makes sending a form twice do it once.
pub const IDEMPOTENCY_FIELD: &str = "once";

/// The hidden field of a form that adds something. What was sent twice, by a second click or a
/// reload, is answered as the first time.
pub fn idempotency_field() -> Markup {
    let mut octets = [0; 16];
    // Without randomness a form goes without: what it adds could then be added twice, no more.
    let drawn = getrandom::fill(&mut octets).is_ok();
    html! { @if drawn { input type="hidden" name=(IDEMPOTENCY_FIELD) value=(hex::encode(octets)); } }
}

/// A form that adds something, as the store takes it.
pub fn idempotent_post(fields: &Fields, now: Now) -> Post {
    let key = IdempotencyKey::parse(fields.text(IDEMPOTENCY_FIELD)).ok();
    let idempotency = key.map(|key| Idempotency { key, fingerprint: fields.digest() });
    Post { now: now.0, idempotency }
}

/// A form that may be sent twice.
pub fn repeatable_post(now: Now) -> Post {
    Post { now: now.0, idempotency: None }
}

/// Styles of these pages.
pub const STYLES: &[&str] = &["components.css", "owned.css"];

/// `path?name=value&…`, of the pairs that have a value.
pub fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    let filled: Vec<_> = pairs.iter().copied().filter(|(_, value)| !value.is_empty()).collect();
    query::with(&filled, path)
}

/// An instant to the minute.
pub fn instant(at: UnixMs) -> Markup {
    let text = at.instant().format("%Y-%m-%d %H:%M");
    html! { time datetime=(at) { (text) } }
}

/// The day of an instant.
pub fn day(at: UnixMs) -> Markup {
    html! { time datetime=(at) { (at.instant().format("%Y-%m-%d")) } }
}

/// What a cell shows that has nothing to show.
pub fn nothing() -> Markup {
    html! { span.soft.none { span aria-hidden="true" { "–" } span.hidden { "none" } } }
}

/// A figure and what it counts.
pub fn tile(label: &str, figure: Markup) -> Markup {
    html! { div.tile { dt { (label) } dd { (figure) } } }
}

/// The way to a CSV file, for those whose plan has one.
pub fn csv(plan: Plan, address: &str) -> Markup {
    html! {
        @if plan >= Plan::Core {
            a.button.quiet href=(address) download { "Download CSV" }
        } @else {
            a.button.quiet href="/account/plan" title="CSV files come with the Core plan" { "CSV with Core" }
        }
    }
}

/// Which rows are shown of how many, and the ways to the next and the previous ones. `at` is the
/// address of the page that begins at an offset.
pub fn pager(page: Page, total: usize, at: impl Fn(u32) -> String) -> Markup {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_values_are_left_out_of_addresses() {
        assert_eq!(address("/a", &[("b", ""), ("c", "")]), "/a");
        assert_eq!(address("/a", &[("b", "1&2"), ("c", ""), ("d", "é")]), "/a?b=1%262&d=%C3%A9");
    }

    #[test]
    fn pages_lead_to_those_beside_them() {
        let at = |offset: u32| format!("/x?offset={offset}");
        let page = |offset| Page { limit: 100, offset };
        let shown = |offset, total| pager(page(offset), total, at).into_string();
        assert_eq!(shown(0, 100), "");
        assert!(shown(0, 101).contains("1 to 100 of 101"));
        assert!(shown(0, 101).contains("/x?offset=100") && !shown(0, 101).contains("prev"));
        assert!(shown(100, 101).contains("/x?offset=0") && !shown(100, 101).contains("next"));
        assert!(shown(300, 101).contains("Nothing on this page"));
    }
}
