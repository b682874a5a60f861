//! Suggestions below the search field of every page.

use maud::{Markup, html};

use crate::components::{counted, dossier_path, name, score, stage_word};
use crate::index::SearchPage;
use crate::index::query::rows::Status;
use crate::search::Search;
use crate::vocab::name::DomainName;

/// Maximum number of suggested names.
pub const ROWS: u32 = 8;

/// Renders the suggested names, then a link to all results, or to the score of an unknown full
/// name.
pub fn list(asked: &Search, found: Option<&SearchPage<'_>>) -> Markup {
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
                span { "Score " b { (domain.unicode()) } }
            }
        } @else {
            li.all id={ "find-" (known) } role="option" data-href=(asked.page(0)) {
                @if found.total == 0 { "No names found" }
                @else if found.capped { "More than " (counted(found.total, "name")) }
                @else { "All " (counted(found.total, "name")) }
            }
        }
    }
}

/// Returns the query as a full name, if the data does not contain it.
fn unseen(asked: &Search, found: &SearchPage<'_>) -> Option<DomainName> {
    DomainName::parse_or_address(&asked.text).ok().filter(|_| found.total == 0)
}
