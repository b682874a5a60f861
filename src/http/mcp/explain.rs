//! `explain_filters`: a query of the drops list in words, and the names that each of its conditions leaves
//! out.
//!
//! The tool has an operation of its own, outside the API. The guard of all operations therefore checks keys
//! and scopes, and counts requests.

use std::cmp::Reverse;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use url::form_urlencoded;

use crate::edge::error::Refusal;
use crate::edge::operation::{Group, Operation};
use crate::guarded::guarded;
use crate::index::DropsPage;
use crate::index::filter::{Counting, DropFilter};
use crate::json;
use crate::operations::FILTERS;
use crate::parse;
use crate::query::error::BadParameter;
use crate::query::narrow::{self, Scope};
use crate::query::params::{Limits, Params};
use crate::service::app::{App, Now};
use crate::service::error::ApiError;
use crate::service::filter_words::{self, Chip};
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::stage::Stage;

pub static OPERATION: Operation = Operation::get("/mcp/explain", |of| get(guarded(of, explain)))
    .named(Group::Names, "explainFilters", "What filters mean, and which names they leave out")
    .parameters(FILTERS);

/// Rows of a page in which examples are looked for.
const LIMITS: Limits = Limits { default: 100, max: 100 };
/// Maximum examples for each condition.
const EXAMPLES_MAX: usize = 3;

/// A query in words.
#[derive(Serialize)]
struct Explanation {
    means: String,
    /// Number of names that pass; an estimate if they are many.
    total: u32,
    /// Those that leave out most come first.
    conditions: Vec<Explained>,
    hints: Vec<String>,
}

/// A condition, and the names that pass all others.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    arguments: Vec<&'static str>,
    means: String,
    leaves_out: u32,
    examples: Vec<String>,
}

/// A parsed request.
struct Explainable {
    whole: DropFilter,
    /// Each condition, with the query that lacks it.
    without: Vec<(Chip, DropFilter)>,
    hints: Vec<String>,
}

type Pair = (String, String);

fn value<'a>(pairs: &'a [Pair], name: &str) -> &'a str {
    pairs.iter().find(|(set, _)| set == name).map_or("", |(_, value)| value)
}

fn filter(pairs: &[Pair], today: Day) -> Result<DropFilter, BadParameter> {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
    Params::from_pairs(&pairs).drops(LIMITS, today)
}

/// Returns the parameters with another value of one.
fn with(pairs: &[Pair], name: &str, value: &str) -> Vec<Pair> {
    let others = pairs.iter().filter(|(set, _)| set != name).cloned();
    others.chain([(name.to_owned(), value.to_owned())]).collect()
}

impl Explainable {
    fn parse(uri: &Uri, today: Day) -> Result<Explainable, BadParameter> {
        let query = uri.query().unwrap_or_default().as_bytes();
        let pairs: Vec<Pair> = form_urlencoded::parse(query).into_owned().collect();
        let whole = filter(&pairs, today)?;
        let (has_stage, view) = (!value(&pairs, "stage").is_empty(), value(&pairs, "view"));
        let mut without = Vec::new();
        for chip in filter_words::chips(&|name| value(&pairs, name), &|_| true, Some(today)) {
            let is_other = |(name, _): &&Pair| !chip.parameters.contains(&name.as_str());
            let mut others: Vec<Pair> = pairs.iter().filter(is_other).cloned().collect();
            // `adult` only adds names.
            if chip.parameters == ["adult"] {
                continue;
            }
            // Without stages, the default view would take their place.
            if chip.parameters == ["stage"] {
                others = with(&others, "view", "all");
            }
            without.push((chip, filter(&others, today)?));
        }
        let by_default = [
            (
                "view",
                "all",
                if view == "today" {
                    "dropped today"
                } else {
                    "not yet released, not registered again"
                },
            ),
            ("adult", "include", "without adult names"),
        ];
        for (name, widest, means) in by_default {
            if value(&pairs, name) == widest || (name == "view" && has_stage) {
                continue;
            }
            let chip =
                Chip { word: String::new(), value: means.to_owned(), parameters: vec![name] };
            without.push((chip, filter(&with(&pairs, name, widest), today)?));
        }
        let hints = hints(&pairs, &whole);
        Ok(Explainable { whole, without, hints })
    }
}

/// Returns what is easily overlooked in a query.
fn hints(pairs: &[Pair], whole: &DropFilter) -> Vec<String> {
    let is_set = |name: &str| !value(pairs, name).is_empty();
    let stages = value(pairs, "stage");
    let has = |stage: Stage| stages.split(',').any(|it| it.trim() == stage.as_str());
    let mut hints = Vec::new();
    if is_set("stage") && is_set("view") {
        hints.push("`view` is ignored beside `stage`".to_owned());
    }
    if is_set("distance") && !is_set("like") {
        hints.push("`distance` is ignored without `like`".to_owned());
    }
    if has(Stage::PendingDelete) && !has(Stage::Redemption) {
        hints.push(
            "some registries release names without pending-delete days; for the releases of a day, use \
             `release_from` and `release_to` without `stage`"
                .to_owned(),
        );
    }
    if whole.common.label.has_text() {
        let advice = narrow::advice(&whole.common, Scope::Drops);
        hints.push(format!("if the query takes too long: {advice}"));
    }
    hints
}

/// Explains the filters of a query of the drops list.
async fn explain(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let parse = move |uri: &Uri| Explainable::parse(uri, as_of.today);
    let mut asked = parse::parameters(request.uri(), parse).await?;
    let visible = app.visible_facts();
    // The other queries have no further facts.
    let used = visible.resolve_drops(&mut asked.whole, as_of.today)?;
    for (_, filter) in &mut asked.without {
        visible.resolve_drops(filter, as_of.today)?;
    }
    let filters = asked.without.iter().map(|(_, filter)| filter).chain([&asked.whole]);
    let cost_us = filters.map(|it| index.drops_cost_us(it, as_of, Counting::Estimate)).sum();
    let scans = asked.whole.common.label.has_text() || !used.is_empty();
    let make = move || {
        app.facts.join(&index, &used)?;
        let Explainable { whole, without, hints } = asked;
        let page = index.drops(&whole, as_of, Counting::Estimate)?;
        let (total, passing) = (counted(&page), names(&page));
        let means: Vec<_> = without.iter().map(|(chip, _)| means(chip)).collect();
        let means = means.join(", ");
        let explained = |(chip, filter): (Chip, DropFilter)| {
            let page = index.drops(&filter, as_of, Counting::Estimate)?;
            let left_out = names(&page).into_iter().filter(|name| !passing.contains(name));
            let mut examples: Vec<_> = left_out.collect();
            examples.truncate(EXAMPLES_MAX);
            Ok(Explained {
                means: self::means(&chip),
                arguments: chip.parameters,
                // Estimates of both numbers may differ by less than the examples.
                leaves_out: counted(&page).saturating_sub(total).max(examples.len() as u32),
                examples,
            })
        };
        let conditions: Result<Vec<_>, ApiError> = without.into_iter().map(explained).collect();
        let mut conditions = conditions?;
        conditions.sort_by_key(|it| Reverse(it.leaves_out));
        json::json_bytes(&Explanation { means, total, conditions, hints })
    };
    Ok(json::json_response(work::run_or_scan(scans, cost_us, make).await?))
}

fn means(chip: &Chip) -> String {
    format!("{} {}", chip.word, chip.value).trim().to_owned()
}

fn counted(page: &DropsPage<'_>) -> u32 {
    page.total.map_or(0, |total| total.count())
}

/// Returns the names on a page, in its order. Names that pass one condition more are in the same order,
/// so those on this page are among the first of theirs.
fn names(page: &DropsPage<'_>) -> Vec<String> {
    let mut names = Vec::new();
    page.for_each(|row| names.push(row.name.to_owned()));
    names
}
