//! Facts about a name from all sources: those of the server, and the viewer's own. The viewer's mark comes first,
//! then the categories of lists.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::components::{date, dossier_path, fact_value, panel};
use crate::dossier::risks;
use crate::drops::bulk::NO_MARK;
use crate::facts_file::store::StoredColumn;
use crate::service::error::ApiError;
use crate::service::fact_book::{FactValue, Source, VisibleFacts};
use crate::service::marks::Mark;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// Renders the known facts of a name that was last registered again after a drop on the day `returned`, with what a
/// buyer should know about its past, of which `drops` are the days, newest first; the form to mark it for a member; and the question to the web archive; nothing without any of them.
///
/// # Errors
/// An edition cannot be read.
pub fn section(
    visible: &VisibleFacts,
    domain: &DomainName,
    returned: Option<Day>,
    today: Day,
    question: Option<Markup>,
    is_member: bool,
    drops: &[Day],
) -> Result<Markup, ApiError> {
    let mut known = visible.of_name(domain).map_err(|err| ApiError::Internal(err.into()))?;
    // These have a panel of their own.
    known.retain(|(source, ..)| source.name() != "popularity");
    let mark = known.iter().find_map(|(source, column, fact)| Mark::of(source, column, fact));
    let of = |source: &str, name: &str| {
        if mark == Some(Mark::Clean) && risks::CATEGORIES.contains(&source) {
            return None;
        }
        let is_it = |(of, column, _): &&(&Source, &StoredColumn, FactValue)| {
            of.name() == source && column.name == name
        };
        known
            .iter()
            .find(is_it)
            .map(|(of, _, fact)| (of.edition.meta().title.as_str(), &fact.value, fact.as_of))
    };
    let risks = risks::sentences(of, drops);
    if known.is_empty() && risks.is_empty() && question.is_none() && !is_member {
        return Ok(html! {});
    }
    known.sort_by_key(|(source, column, fact)| match Mark::of(source, column, fact) {
        Some(_) => 0,
        None if is_risk(source) => 1,
        None => 2,
    });
    let metas = known.iter().map(|(source, ..)| source.edition.meta());
    let attributions: BTreeSet<&str> = metas.filter_map(|it| it.attribution.as_deref()).collect();
    let content = html! {
        @if !risks.is_empty() {
            ul.risks { @for risk in &risks { li { (risk) } } }
        }
        @if known.is_empty() {
            p.soft { "No source knows this name." }
        } @else {
            table.siblings {
                thead { tr { th scope="col" { "Fact" } th scope="col" { "Value" } th scope="col" { "As of" } } }
                tbody { @for it in &known { (row(it, mark, returned, today)) } }
            }
        }
        @if is_member { (form(domain, mark)) }
        @for line in attributions { p.soft { (line) } }
        @if let Some(question) = question { (question) }
        p.soft {
            @if known.iter().any(|(.., fact)| fact.is_before(returned)) {
                "Facts from before the drop are about an earlier registration. "
            }
            "Not part of the score. " a href="/docs/facts" { "Facts" }
        }
    };
    Ok(panel("facts-title", "Facts", content))
}

fn is_risk(source: &Source) -> bool {
    risks::CATEGORIES.contains(&source.name())
}

fn row(
    (source, column, fact): &(&Source, &StoredColumn, FactValue),
    mark: Option<Mark>,
    returned: Option<Day>,
    today: Day,
) -> Markup {
    let is_overruled = mark == Some(Mark::Clean) && is_risk(source);
    html! {
        tr {
            @match Mark::of(source, column, fact) {
                Some(mark) => {
                    th scope="row" { "Marked by you" }
                    td { span.badge.good[mark == Mark::Clean].bad[mark == Mark::Spam] { (mark) } }
                }
                None => {
                    th scope="row" {
                        (source.edition.meta().title) " " b { (column.name) }
                        @if source.is_own { " " span.badge.info { "yours" } }
                    }
                    td.old[fact.is_outdated(today) || is_overruled] { (fact_value(&fact.value, column, today)) }
                }
            }
            td.where {
                (date(fact.as_of, today))
                @if fact.is_before(returned) { " " span.badge.warn { "before the drop" } }
                @if fact.is_outdated(today) { " " span.badge { "outdated" } }
                @if is_overruled { " " span.badge { "overruled by your mark" } }
            }
        }
    }
}

/// Renders buttons to mark a name. That of the current mark withdraws it.
fn form(domain: &DomainName, mark: Option<Mark>) -> Markup {
    let button = |of: Mark, word: &str| {
        let is_here = mark == Some(of);
        let sent = if is_here { NO_MARK } else { of.as_str() };
        html! { button.quiet.small type="submit" name="mark" value=(sent) aria-pressed=(is_here) { (word) } }
    };
    html! {
        form.votes method="post" action="/mark" {
            input type="hidden" name="domain" value=(domain);
            input type="hidden" name="next" value=(dossier_path(domain.as_str()));
            (button(Mark::Clean, "Mark as clean"))
            (button(Mark::Spam, "Mark as spam"))
        }
    }
}
