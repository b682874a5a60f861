//! The few best results as options of the list below the search field of every page.

use maud::{Markup, html};

use crate::index::SearchPage;
use crate::index::query::rows::Status;
use crate::vocab::name::DomainName;
use crate::web::components::{counted, dossier_path, name, score, stage_word};
use crate::web::search::Asked;

/// Names in the list.
pub const ROWS: u32 = 8;

/// The options: names, then the page of all results, or for a whole name never seen its score.
pub fn list(asked: &Asked, found: Option<&SearchPage<'_>>) -> Markup {
    let Some(found) = found else { return html! {} };
    let mut rows = Vec::with_capacity(ROWS as usize);
    found.for_each_placed(|result, dqs, place| {
        let stage = match (place.filter(|place| !place.registered_again), result.current_status) {
            (Some(place), _) => stage_word(place.stage),
            (None, Status::Registered) => "registered",
            (None, _) => "",
        };
        rows.push(html! {
            li id={ "find-" (rows.len()) } role="option" data-href=(dossier_path(result.domain)) {
                span { (name(result.domain, result.tld)) }
                span.what { (stage) }
                (score(dqs))
            }
        });
    });
    let known = rows.len();
    html! {
        @for row in &rows { (row) }
        @if let Some(domain) = unseen(asked, found) {
            li id={ "find-" (known) } role="option" data-href=(dossier_path(domain.as_str())) {
                span { "What would " b { (domain.unicode()) } " be worth" }
            }
        } @else {
            li.all id={ "find-" (known) } role="option" data-href=(asked.page(0)) {
                @if found.total == 0 { "No name starts so" }
                @else if found.capped { "More than " (counted(found.total, "name")) }
                @else { "All " (counted(found.total, "name")) }
            }
        }
    }
}

/// The whole name that is asked for, where no list ever brought it.
fn unseen(asked: &Asked, found: &SearchPage<'_>) -> Option<DomainName> {
    DomainName::parse(&asked.text).ok().filter(|_| found.total == 0)
}
