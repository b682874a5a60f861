//! The search results as a table, and the view tabs.

use maud::{Markup, html};

use crate::accounts::UserData;
use crate::components::ANONYMOUS_DEPTH;
use crate::components::Column::{Hidden, Text};
use crate::components::{
    self, columns, copy_and_log, counted, date, dossier_path, log_in_for_more, name_linked, query,
    score, standing, watch_star,
};
use crate::index::SearchPage;
use crate::index::query::rows::Lifecycle;
use crate::index::query::rows::{SearchRow, Status};
use crate::search::{ROWS, Search};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

/// The views: label, `stage` and `view`.
const PARTS: [(&str, &str, &str); 6] = [
    ("All stages", "", ""),
    ("Whole pipeline", "", "active"),
    ("Just dropped", "catchable", ""),
    ("Pending delete", "pending-delete", ""),
    ("In redemption", "redemption", ""),
    ("Released", "released", ""),
];

/// Renders the results below the search field.
pub fn section(
    asked: &Search,
    problem: Option<&str>,
    found: Option<&SearchPage<'_>>,
    owned: Option<&UserData>,
    today: Day,
) -> Markup {
    let offset = asked.filter.as_ref().map_or(0, |filter| filter.offset);
    html! {
        section #results aria-label="Results" data-path=(asked.page(offset)) {
            @if let Some(found) = found {
                (tabs(asked))
                p.bar role="status" { (summary(found, offset)) }
                @if found.count() == 0 { (nothing(asked, found)) } @else { (table(asked, found, owned, today)) }
                (pager(asked, found, offset))
            } @else if let Some(problem) = problem {
                div.panel.empty { p { (problem) } }
            } @else if asked.filter.is_some() {
                div.panel.empty {
                    (log_in_for_more(&asked.page(offset)))
                    p { a href=(asked.page(0)) data-load { "Back to the first page" } }
                }
            } @else {
                div.panel.empty {
                    p { "Enter the start of a name: a word, or a full name in Unicode or as an A-label. Or choose another way to search: patterns such as CVCV are explained in " a href="/docs/queries" { "Queries" } "." }
                    p { "To score a name that is not in our data, enter it in full, with its TLD." }
                }
            }
        }
    }
}

fn tabs(asked: &Search) -> Markup {
    let (stage, view) = (asked.get("stage"), asked.get("view"));
    html! {
        nav aria-label="View" {
            ul.tabs {
                @for (word, of_stage, of_view) in PARTS {
                    @let here = stage == of_stage && (!stage.is_empty() || view == of_view);
                    li { a href=(asked.within(of_stage, of_view)) data-load aria-current=[here.then_some("page")] { (word) } }
                }
            }
        }
    }
}

/// Formats a position: `1 to 50 of 1,204 names`.
fn summary(found: &SearchPage<'_>, offset: u32) -> String {
    let rows = found.count();
    let more = if found.capped { "more than " } else { "" };
    let total = format!("{more}{}", counted(found.total, "name"));
    match rows {
        0 => total,
        rows => components::range(offset, rows, &total),
    }
}

fn nothing(asked: &Search, found: &SearchPage<'_>) -> Markup {
    let whole = DomainName::parse_or_address(&asked.text).ok();
    html! {
        div.panel.empty {
            @if found.total > 0 {
                p { "There are no more results." }
                p { a href=(asked.page(0)) data-load { "Back to the first page" } }
            } @else if let Some(domain) = whole {
                p { b { (domain.unicode()) } " isn't in our data yet." }
                p { a href=(dossier_path(domain.as_str())) { "Score it" } }
            } @else {
                p { "No names match " b { (asked.text) } "." }
                @if asked.way == "q" { p { "Try fewer letters, or search for them " a href=(query::with(&[("q", &asked.text), ("view", "all")], "/")) { "anywhere in dropped names" } "." } }
                @else { p { "Try a shorter text, or remove a filter." } }
            }
        }
    }
}

fn table(asked: &Search, found: &SearchPage<'_>, owned: Option<&UserData>, today: Day) -> Markup {
    let next = asked.page(asked.filter.as_ref().map_or(0, |filter| filter.offset));
    let mut rows = Vec::with_capacity(ROWS as usize);
    found.for_each_placed(|result, dqs, place| {
        rows.push(row(result, dqs, place.as_ref(), owned, &next, today));
    });
    html! {
        table.results {
            caption.hidden { "Search results, exact matches first, then by score" }
            (columns(&[Hidden("Watch"), Text("Name"), Text("Score"), Text("Why"), Text("Registry"), Text("Last drop"), Hidden("Actions")]))
            tbody { @for row in &rows { (row) } }
        }
    }
}

fn row(
    result: &SearchRow<'_>,
    dqs: Dqs,
    place: Option<&Lifecycle>,
    owned: Option<&UserData>,
    next: &str,
    today: Day,
) -> Markup {
    html! {
        tr {
            td.star { (watch_star(owned, result.domain, result.tld, next)) }
            th scope="row" { (name_linked(result.domain, result.tld)) }
            td.dqs { (score(dqs)) }
            td.why { @if let Some(drop) = &result.latest_drop { (drop.explanation) } }
            td.where { (standing(place, result.current_status == Status::Registered, today)) }
            td.last data-label="Last drop" {
                @if let Some(place) = place { (date(place.dropped, today)) } @else { span.soft { "–" } }
            }
            td.actions { (copy_and_log(result.domain)) }
        }
    }
}

fn pager(asked: &Search, found: &SearchPage<'_>, offset: u32) -> Markup {
    let after = offset + found.count();
    let more = found.capped || after < found.total;
    let has_more = found.count() > 0 && more;
    let has_next = has_more && after < asked.depth;
    let previous = (offset > 0).then(|| asked.page(offset.saturating_sub(ROWS)));
    html! {
        (components::pager(previous, summary(found, offset), has_next.then(|| asked.page(after))))
        @if has_more && !has_next && asked.depth == ANONYMOUS_DEPTH { (log_in_for_more(&asked.page(offset))) }
    }
}
