//! The tables of the random sample (`data/docs/outcomes.md`).

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::within;
use crate::components::{date, grouped, panel};
use crate::index::query::outcome_tables::{NAMES_MIN, ScoreBand, percent};
use crate::vocab::day::Day;
use crate::vocab::name::to_unicode;
use crate::vocab::sample::{HORIZONS, SampleCount, SampleTable};

/// Maximum number of suffixes shown.
const SUFFIXES_MAX: usize = 40;

/// Renders the suffixes of which enough names were drawn; empty without any.
pub fn panels(tables: &BTreeMap<String, SampleTable>, today: Day) -> Vec<Markup> {
    let mut shown: Vec<_> = tables.iter().map(|(tld, table)| (tld, table, table.all())).collect();
    shown.retain(|(.., [day, ..])| day.names >= NAMES_MIN);
    shown.sort_by_key(|(.., [day, ..])| std::cmp::Reverse(day.names));
    let shown = shown.into_iter().take(SUFFIXES_MAX);
    shown.map(|(tld, table, all)| suffix(tld, table, all, today)).collect()
}

/// Renders the bands of a suffix.
fn suffix(
    name: &str,
    table: &SampleTable,
    all: [SampleCount; HORIZONS.len()],
    today: Day,
) -> Markup {
    let bands = ScoreBand::all().map(ScoreBand::as_str).zip(table.bands);
    let bands = bands.filter(|(_, [day, ..])| day.names >= NAMES_MIN);
    let content = html! {
        p.soft { "Registered again, by RDAP, of names drawn at random on their release. Releases from " (date(table.from, today)) " to " (date(table.to, today)) "." }
        div.table tabindex="0" role="region" aria-label={ "Sample of ." (to_unicode(name)) } {
            table {
                thead { tr {
                    th scope="col" { "Score" }
                    @for horizon in HORIZONS { th.number scope="col" { (within(horizon)) } }
                } }
                tbody {
                    @for (word, counts) in bands.chain([("all", all)]) {
                        tr {
                            th scope="row" { (word) }
                            @for count in counts { td.number { (cell(count)) } }
                        }
                    }
                }
            }
        }
    };
    panel(&format!("{name}-sample"), &format!(".{}, random sample", to_unicode(name)), content)
}

fn cell(count: SampleCount) -> Markup {
    let Some(of) = count.share() else { return html! { "–" } };
    let (low, high) = (percent(of.share.low), percent(of.share.high));
    html! {
        @if of.is_range {
            (low) "–" (high) " %"
            br;
            span.soft { (grouped(count.unanswered)) " of " (grouped(count.names)) " unanswered" }
        } @else {
            (percent(of.share.share)) " %"
            br;
            span.soft { (low) "–" (high) " of " (grouped(count.names)) }
        }
    }
}
