//! `GET /outcomes`: does the score still order outcomes? Shares by score, and the order by suffix.

mod sample;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use maud::{Markup, html};

use crate::Web;
use crate::components::Column::{Number, Text};
use crate::components::{date, grouped, panel, table};
use crate::error::PageError;
use crate::index::Index;
use crate::index::query::expectation_model::{Model, Test};
use crate::index::query::outcome_months::{
    MONTHS_HORIZON, OutcomeHistory, PeriodOutcome, hundredths,
};
use crate::index::query::outcome_tables::{
    Group, HorizonShare, OutcomeRow, OutcomeTables, ScoreBand, percent,
};
use crate::layout::{NavItem, Page};
use crate::service::work;
use crate::viewer::Viewer;
use crate::vocab::day::Day;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::name::to_unicode;
use crate::vocab::outcome::{Auc, Completeness, Horizon};
use crate::vocab::sample::SampleTable;

/// Maximum number of suffixes shown.
const SUFFIXES_MAX: usize = 40;
/// Estimated cost in microseconds without counting.
const COST_US: u32 = 2_000;

pub fn routes() -> Router<Web> {
    Router::new().route("/outcomes", get(show_outcomes))
}

/// `GET /outcomes`.
async fn show_outcomes(State(web): State<Web>, viewer: Viewer) -> Result<Markup, PageError> {
    let (index, as_of) = (web.app.live.current(), web.app.as_of(viewer.now));
    let cost = COST_US + index.outcomes_cost_us(as_of.today);
    let store = web.app.store.clone();
    let main =
        work::run(cost, move || Ok(main(&index, &store.sample_tables(as_of.today), as_of.today)));
    let main = main.await?;
    Ok(Page::new(
        "Outcomes",
        "Which share of dropped names was registered again, by score, and how well the score orders them.",
    )
    .at(NavItem::Overview)
    .styles(&["components.css", "overview.css"])
    .show(Some(&viewer), main))
}

fn main(index: &Index, drawn: &BTreeMap<String, SampleTable>, today: Day) -> Markup {
    let tables = index.outcomes(today);
    let suffixes = tables.suffixes();
    let sample = sample::panels(drawn, today);
    html! {
        h1 { "Outcomes" }
        p.soft.lead { "Names that dropped and were registered again, by score. " a href="/docs/outcomes" { "How it is counted" } }
        @if suffixes.is_empty() && sample.is_empty() {
            p { "No list shows outcomes yet. Zone files and lists of all names of a registry do, from the second day on, and lists of new registrations." }
        }
        @for &(tld, shown) in suffixes.iter().take(SUFFIXES_MAX) {
            (suffix(index, &tables, (tld, shown), today))
        }
        @if suffixes.len() > SUFFIXES_MAX { p.soft { "And " (suffixes.len() - SUFFIXES_MAX) " suffixes with fewer names." } }
        @for panel in &sample { (panel) }
    }
}

/// Renders the bands of a suffix, as far as lists of one completeness show them.
fn suffix(
    index: &Index,
    tables: &OutcomeTables,
    (tld, shown): (u16, Completeness),
    today: Day,
) -> Markup {
    let name = index.tlds().name(tld);
    let bands = ScoreBand::all().map(Group::Band);
    let rows: Vec<(String, OutcomeRow)> = bands
        .chain([Group::Suffix])
        .filter_map(|group| {
            let word = match group {
                Group::Band(band) => band.as_str(),
                _ => "all",
            };
            Some((word.to_owned(), tables.row(tld, shown, group)?))
        })
        .collect();
    let Some((_, all)) = rows.last() else { return html! {} };
    let horizons: Vec<Horizon> = all.shares.iter().map(|share| share.horizon).collect();
    let lists = match shown {
        Completeness::Complete => "by lists of all names",
        Completeness::Partial => "at least, by lists of new registrations",
        Completeness::LaterList => "at least, by later drops of the same names",
    };
    let model = index.model_of(name).filter(|model| model.shown == shown);
    let content = html! {
        p.soft { "Registered again, " (lists) ". Releases from " (date(all.from, today)) " to " (date(all.to, today)) "." }
        div.table tabindex="0" role="region" aria-label={ "Outcomes of ." (to_unicode(name)) } {
            table {
                thead { tr {
                    th scope="col" { "Score" }
                    @for horizon in &horizons { th.number scope="col" { (within(*horizon)) } }
                } }
                tbody {
                    @for (word, row) in &rows {
                        tr {
                            th scope="row" { (word) }
                            @for horizon in &horizons { td.number { (cell(row, *horizon)) } }
                        }
                    }
                }
            }
        }
        p { (order(tables, (tld, shown), &horizons)) }
        @if let Some(model) = model { p { (expectation(model)) } }
        @if let Some(history) = tables.history(tld, shown) { (by_month(name, history)) }
    };
    let id = format!("{name}-{shown}");
    panel(&id, &format!(".{}", to_unicode(name)), content)
}

fn within(horizon: Horizon) -> &'static str {
    match horizon {
        Horizon::Day => "1 day",
        Horizon::Week => "7 days",
        Horizon::Month => "30 days",
        Horizon::Year => "400 days",
    }
}

fn cell(row: &OutcomeRow, horizon: Horizon) -> Markup {
    let Some(HorizonShare { names, share, .. }) =
        row.shares.iter().find(|share| share.horizon == horizon)
    else {
        return html! { "–" };
    };
    html! {
        (percent(share.share)) " %"
        br;
        span.soft { (percent(share.low)) "–" (percent(share.high)) " of " (grouped(*names)) }
    }
}

/// Says how well a model predicted the last releases.
fn expectation(model: &Model) -> String {
    let Some(Test { of, brier, brier_of_mean, auc, auc_of_score, .. }) = model.test else {
        return "Expectation: too few releases to test it.".to_owned();
    };
    let mut text = format!(
        "Expectation within {}, tested on the last {} releases: mean squared error {brier:.4}, against \
         {brier_of_mean:.4} for the share of all names",
        within(ExpectedTaken::HORIZON),
        grouped(of.names),
    );
    if let (Some(auc), Some(of_score)) = (auc, auc_of_score) {
        text += &format!(
            "; it wins {} of the pairs, the score alone {}",
            hundredths(auc.value),
            hundredths(of_score.value)
        );
    }
    text + "."
}

/// Says how well the score orders outcomes.
fn order(
    tables: &OutcomeTables,
    (tld, shown): (u16, Completeness),
    horizons: &[Horizon],
) -> String {
    let found = horizons.iter().filter_map(|&horizon| {
        let Auc { value, low, high } = tables.auc(tld, shown, horizon)?;
        let [value, low, high] = [value, low, high].map(hundredths);
        Some(format!("{value} within {} ({low}–{high})", within(horizon)))
    });
    let found: Vec<String> = found.collect();
    if found.is_empty() {
        return format!(
            "Fewer than {} names were registered again: too few to judge the order of the score.",
            Auc::NAMES_MIN
        );
    }
    format!(
        "The higher score wins in this share of pairs, one name registered again and one not (.5 is chance): {}.",
        found.join(", ")
    )
}

/// Renders the outcomes by month of release, and whether the score orders names less well than before.
fn by_month(name: &str, history: &OutcomeHistory) -> Markup {
    let taken = format!("Registered again within {}", within(MONTHS_HORIZON));
    let head = [Text("Released"), Number("Names"), Number(&taken), Number("Order")];
    html! {
        @if let Some(warning) = history.warning(name) { p { b { (warning) } } }
        details {
            summary { "By month of release" }
            @if history.months > 1 {
                p.soft { "A month has too few names to judge the order of the score, so " (history.months) " months are counted together." }
            }
            (table(&format!("Outcomes of .{} by month of release", to_unicode(name)), "", &head, html! {
                tbody { @for period in &history.periods { (period_row(period)) } }
            }))
        }
    }
}

fn period_row(period: &PeriodOutcome) -> Markup {
    let month = |day: Day| day.date().format("%b %Y").to_string();
    let (first, last) = (month(period.from), month(period.to));
    html! {
        tr {
            th scope="row" { (first) @if last != first { " to " (last) } }
            td.number { (grouped(period.names)) }
            td.number {
                @match period.share {
                    Some(share) => { (percent(share.share)) " %" br; span.soft { (percent(share.low)) "–" (percent(share.high)) } }
                    None => { "–" }
                }
            }
            td.number {
                @match period.auc {
                    Some(auc) => { (hundredths(auc.value)) br; span.soft { (hundredths(auc.low)) "–" (hundredths(auc.high)) } }
                    None => { "–" }
                }
            }
        }
    }
}
