//! The results of a search as a table, and the parts of the pipeline to look in.

use maud::{Markup, html};

use crate::accounts::UserData;
use crate::index::SearchPage;
use crate::index::query::profile::Lifecycle;
use crate::index::query::rows::{SearchRow, Status};
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::SEARCH_OFFSET_MAX;
use crate::vocab::name::DomainName;
use crate::web::components::{
    claim_link, copy_button, counted, dossier_path, grouped, name_linked, query, score, standing,
    watch_button,
};
use crate::web::search::{Asked, ROWS};

/// Words and values of `stage` and `view`.
const PARTS: [(&str, &str, &str); 6] = [
    ("Everything", "", ""),
    ("Active", "", "active"),
    ("Catchable", "catchable", ""),
    ("Pending delete", "pending-delete", ""),
    ("Redemption", "redemption", ""),
    ("Released", "released", ""),
];

/// What is below the field.
pub fn section(asked: &Asked, found: Option<&SearchPage<'_>>, owned: Option<&UserData>) -> Markup {
    let offset = asked.filter.as_ref().map_or(0, |filter| filter.offset);
    html! {
        section #results aria-label="Results" data-path=(asked.page(offset)) {
            @if let Some(found) = found {
                (tabs(asked))
                p.bar role="status" { (summary(found, offset)) }
                @if found.count() == 0 { (nothing(asked, found)) } @else { (table(asked, found, owned)) }
                (pager(asked, found, offset))
            } @else {
                div.panel.empty {
                    p { "Type the start of a name: a word, a whole name, Unicode or its A-label." }
                    p { "A name that was never seen can be appraised: type it whole, with its TLD." }
                }
            }
        }
    }
}

fn tabs(asked: &Asked) -> Markup {
    let (stage, view) = &asked.part;
    html! {
        nav aria-label="Part of the pipeline" {
            ul.tabs {
                @for (word, of_stage, of_view) in PARTS {
                    @let here = stage == of_stage && (!stage.is_empty() || view == of_view);
                    li { a href=(asked.within(of_stage, of_view)) data-load aria-current=[here.then_some("page")] { (word) } }
                }
            }
        }
    }
}

/// `1 to 50 of 1,204 names`.
fn summary(found: &SearchPage<'_>, offset: u32) -> String {
    let rows = found.count();
    let more = if found.capped { "more than " } else { "" };
    match rows {
        0 => format!("{more}{}", counted(found.total, "name")),
        rows => format!(
            "{} to {} of {more}{}",
            grouped((offset + 1).into()),
            grouped((offset + rows).into()),
            counted(found.total, "name")
        ),
    }
}

fn nothing(asked: &Asked, found: &SearchPage<'_>) -> Markup {
    let whole = DomainName::parse(&asked.text).ok();
    html! {
        div.panel.empty {
            @if found.total > 0 {
                p { "The results end before here." }
                p { a href=(asked.page(0)) data-load { "Back to the first page" } }
            } @else if let Some(domain) = whole {
                p { "No list ever brought " b { (domain.unicode()) } "." }
                p { a href=(dossier_path(domain.as_str())) { "See what it would be worth" } }
            } @else {
                p { "No name starts with " b { (asked.text) } "." }
                p { "Try fewer letters, or look for them " a href=(query::with(&[("q", &asked.text), ("view", "all")], "/")) { "anywhere in the names that dropped" } "." }
            }
        }
    }
}

fn table(asked: &Asked, found: &SearchPage<'_>, owned: Option<&UserData>) -> Markup {
    let next = asked.page(asked.filter.as_ref().map_or(0, |filter| filter.offset));
    let mut rows = Vec::with_capacity(ROWS as usize);
    found.for_each_placed(|result, dqs, place| {
        rows.push(row(result, dqs, place.as_ref(), owned, &next));
    });
    html! {
        table.results {
            caption.hidden { "Names found, whole matches first, then the best score first" }
            thead {
                tr {
                    th scope="col" { "Name" }
                    th scope="col" { "DQS" }
                    th scope="col" { "Stage" }
                    th scope="col" { "Last drop" }
                    th scope="col" { span.hidden { "Actions" } }
                }
            }
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
) -> Markup {
    let label_len = result.domain.len() - result.tld.len() - 1;
    let domain = DomainName::from_stored(result.domain.as_bytes(), label_len as u8)
        .expect("names of the index are a label and a suffix");
    html! {
        tr {
            th scope="row" {
                (name_linked(result.domain, result.tld))
                @if let Some(drop) = &result.latest_drop { p.why { (drop.explanation) } }
            }
            td.dqs { (score(dqs)) }
            td.where { (standing(place, result.current_status == Status::Registered)) }
            td.last data-label="Last drop" {
                @if let Some(place) = place { time datetime=(place.dropped) { (place.dropped) } } @else { span.soft { "never" } }
            }
            td.actions { (copy_button(result.domain)) (watch_button(owned, &domain, next)) (claim_link(result.domain)) }
        }
    }
}

fn pager(asked: &Asked, found: &SearchPage<'_>, offset: u32) -> Markup {
    let after = offset + found.count();
    let more = found.capped || after < found.total;
    let has_next = found.count() > 0 && more && after <= SEARCH_OFFSET_MAX;
    html! {
        @if offset > 0 || has_next {
            nav.pager aria-label="Pages" {
                @if offset > 0 {
                    a.button.quiet rel="prev" href=(asked.page(offset.saturating_sub(ROWS))) data-load { "Previous" }
                } @else { span {} }
                span.soft { (summary(found, offset)) }
                @if has_next {
                    a.button.quiet rel="next" href=(asked.page(after)) data-load { "Next" }
                } @else { span {} }
            }
        }
    }
}
