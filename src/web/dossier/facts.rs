//! What sources of facts know about a name: those of the server, and the viewer's own.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::components::{date, fact_value, panel};
use crate::service::error::ApiError;
use crate::service::fact_book::VisibleFacts;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// Renders the known facts of a name that was last registered again after a drop on the day `returned`; nothing
/// without any.
///
/// # Errors
/// An edition cannot be read.
pub fn section(
    visible: &VisibleFacts,
    domain: &DomainName,
    returned: Option<Day>,
    today: Day,
) -> Result<Markup, ApiError> {
    let known = visible.of_name(domain).map_err(|err| ApiError::Internal(err.into()))?;
    if known.is_empty() {
        return Ok(html! {});
    }
    let metas = known.iter().map(|(source, ..)| source.edition.meta());
    let attributions: BTreeSet<&str> = metas.filter_map(|it| it.attribution.as_deref()).collect();
    let content = html! {
        table.siblings {
            thead { tr { th scope="col" { "Fact" } th scope="col" { "Value" } th scope="col" { "As of" } } }
            tbody {
                @for (source, column, fact) in &known {
                    tr {
                        th scope="row" {
                            (source.edition.meta().title) " " b { (column.name) }
                            @if source.is_own { " " span.badge.info { "yours" } }
                        }
                        td.old[fact.is_outdated(today)] { (fact_value(&fact.value, column, today)) }
                        td.where {
                            (date(fact.as_of, today))
                            @if fact.is_before(returned) { " " span.badge.warn { "before the drop" } }
                            @if fact.is_outdated(today) { " " span.badge { "outdated" } }
                        }
                    }
                }
            }
        }
        @for line in attributions { p.soft { (line) } }
        p.soft {
            @if known.iter().any(|(.., fact)| fact.is_before(returned)) {
                "Facts from before the drop are about an earlier registration. "
            }
            "Not part of the score. " a href="/docs/facts" { "Facts" }
        }
    };
    Ok(panel("facts-title", "Facts", content))
}
