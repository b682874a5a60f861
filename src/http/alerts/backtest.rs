//! `POST /api/v1/alerts/backtest`: a rule tried on past releases.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::Caller;
use crate::body::{JsonInteger, PostBody};
use crate::edge::error::Refusal;
use crate::filter::FilterRequest;
use crate::index::rules::backtest::{
    self, Backtest, BacktestPeriod, ComparedScore, Example, Tested,
};
use crate::json;
use crate::query::request::RuleQuery;
use crate::service::app::{App, Now};
use crate::service::error::{ApiError, required};
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::outcome::{Completeness, Horizon, ReturnTime, Share, Verdict};

/// Default and maximum number of months.
const MONTHS: i64 = 12;
const MONTHS_MAX: i64 = 36;
/// Suffixes that are listed by number of names; others count in the sum.
const TLDS_MAX: usize = 50;

/// A filter to try on past releases.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = BacktestBody, example = json!({"filter": {"tlds": ["nu"], "minDqs": 40}, "months": 12, "horizon": 7}))]
pub struct BacktestRequest {
    #[schema(value_type = FilterRequest)]
    pub filter: Option<FilterRequest>,
    /// Months of releases, 12 by default.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 36)]
    pub months: Option<JsonInteger>,
    /// Days after the release within which registrations count: 1, 7 (the default), 30 or 400.
    #[schema(value_type = Option<u16>)]
    pub horizon: Option<JsonInteger>,
    /// The score that `minDqs` and `maxDqs` are compared with: that of `today` (the default), or the `base`
    /// without other TLDs of the label.
    #[schema(value_type = Option<ComparedScore>)]
    pub score: Option<String>,
}

impl BacktestRequest {
    /// Returns the conditions, and the releases that they are tried on.
    fn parse(self, today: Day) -> Result<(RuleQuery, BacktestPeriod), ApiError> {
        let months = self.months.map_or(MONTHS, |JsonInteger(months)| months);
        if !(1..=MONTHS_MAX).contains(&months) {
            let what = format!("must be an integer from 1 to {MONTHS_MAX}");
            return Err(ApiError::parameter("months", what));
        }
        let days = self.horizon.map_or(Horizon::Week.days().into(), |JsonInteger(days)| days);
        let horizon = Horizon::ALL.into_iter().find(|it| i64::from(it.days()) == days);
        let horizon = horizon.ok_or_else(|| {
            ApiError::parameter("horizon", format!("must be one of {}", Horizon::NAMES.join(", ")))
        })?;
        let score = self.score.as_deref().map(str::parse).transpose();
        let score = score.map_err(|err| ApiError::parameter("score", err))?.unwrap_or_default();
        let query = required(self.filter, "filter")?.parse(today)?.rule(today)?;
        Ok((query, BacktestPeriod { score, ..BacktestPeriod::new(today, months as u16, horizon) }))
    }
}

/// Names that match among those that were released, and their outcomes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BacktestGroup)]
pub struct Group<'a> {
    /// The suffix, of a row by suffix.
    #[serde(skip_serializing_if = "Option::is_none")]
    tld: Option<&'a str>,
    /// The month of release, such as `2026-03`, of a row by month.
    #[serde(skip_serializing_if = "Option::is_none")]
    month: Option<String>,
    /// Names that match and were released.
    names: u64,
    /// Names that match and were renewed instead; not among `names`.
    renewed: u64,
    /// Names with a known outcome, by the lists that `label` names.
    outcomes: u64,
    /// Names without one.
    unknown: u64,
    /// Completeness of the lists that show most of the outcomes; null if none is known.
    #[schema(required)]
    label: Option<Completeness>,
    /// Names that were registered again within the horizon.
    count: u64,
    /// Part of the names with a known outcome, with its 95 % interval; null if none is known.
    #[schema(required)]
    share: Option<f64>,
    #[schema(required)]
    low: Option<f64>,
    #[schema(required)]
    high: Option<f64>,
}

impl Group<'_> {
    fn new(tested: &Tested) -> Self {
        let found = tested.share();
        let outcomes = found.map_or(0, |(_, names, _)| names);
        let of = |value: fn(Share) -> f64| found.map(|(_, _, share)| value(share));
        Group {
            tld: None,
            month: None,
            names: tested.names,
            renewed: tested.renewed,
            outcomes,
            unknown: tested.names - outcomes,
            label: found.map(|(shown, ..)| shown),
            count: found.map_or(0, |(.., share)| share.count),
            share: of(|share| share.share),
            low: of(|share| share.low),
            high: of(|share| share.high),
        }
    }
}

/// A rule tried on past releases.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Backtest)]
pub struct BacktestResponse<'a> {
    /// First and last release that counts.
    #[schema(value_type = String, format = Date)]
    from: Day,
    #[schema(value_type = String, format = Date)]
    to: Day,
    /// Days after the release within which registrations count.
    horizon: i32,
    /// Names that match and were released.
    names: u64,
    /// Names that match and were renewed instead; not among `names`.
    renewed: u64,
    /// Names with a known outcome, by the lists that `label` names.
    outcomes: u64,
    /// Names without one.
    unknown: u64,
    /// Completeness of the lists that show most of the outcomes; null if none is known.
    #[schema(required)]
    label: Option<Completeness>,
    /// Names that were registered again within the horizon.
    count: u64,
    /// Part of the names with a known outcome, with its 95 % interval; null if none is known.
    #[schema(required)]
    share: Option<f64>,
    #[schema(required)]
    low: Option<f64>,
    #[schema(required)]
    high: Option<f64>,
    /// Names a day.
    per_day: f64,
    /// By suffix, most names first, at most 50.
    by_tld: Vec<Group<'a>>,
    by_month: Vec<Group<'a>>,
    /// Days on which no name at all was released in the data: their lists are missing.
    missing: Vec<MissingDays>,
    /// Up to 20 random names, the same for equal questions.
    examples: Vec<ExampleJson<'a>>,
    /// Conditions with the values of today, not of the day on which the rule would have matched.
    today_values: Vec<&'static str>,
    /// Conditions that do not apply to past releases.
    ignored: Vec<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = MissingDays)]
struct MissingDays {
    #[schema(value_type = String, format = Date)]
    from: Day,
    #[schema(value_type = String, format = Date)]
    to: Day,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BacktestExample)]
struct ExampleJson<'a> {
    domain: &'a str,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    dqs: Dqs,
    #[schema(value_type = String, format = Date)]
    release_date: Day,
    outcome: ExampleOutcome,
    /// Days after the release within which it was registered again: 1, 7, 30 or 400; null if no list
    /// gives the day, or it was not registered within 400 days.
    #[schema(required)]
    within: Option<i32>,
}

/// Outcome of a name within the horizon.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum ExampleOutcome {
    Renewed,
    Taken,
    NotTaken,
    Unknown,
}

impl<'a> ExampleJson<'a> {
    fn new(example: &'a Example) -> ExampleJson<'a> {
        ExampleJson {
            domain: &example.name,
            dqs: example.dqs,
            release_date: example.release,
            outcome: match example.verdict {
                Verdict::Renewed => ExampleOutcome::Renewed,
                Verdict::Known(_, true) => ExampleOutcome::Taken,
                Verdict::Known(_, false) => ExampleOutcome::NotTaken,
                Verdict::Unknown | Verdict::NotOver => ExampleOutcome::Unknown,
            },
            within: match example.time {
                Some(ReturnTime::Within(horizon)) => Some(horizon.days()),
                _ => None,
            },
        }
    }
}

impl<'a> BacktestResponse<'a> {
    fn new(tested: &'a Backtest, query: &RuleQuery) -> BacktestResponse<'a> {
        let BacktestPeriod { from, to, horizon, .. } = tested.period;
        let per_day = tested.all.names as f64 / f64::from(tested.period.days());
        let by_tld = tested.by_tld.iter().take(TLDS_MAX);
        let Group { names, renewed, outcomes, unknown, label, count, share, low, high, .. } =
            Group::new(&tested.all);
        let month = |day: Day| day.date().format("%Y-%m").to_string();
        BacktestResponse {
            from,
            to,
            horizon: horizon.days(),
            names,
            renewed,
            outcomes,
            unknown,
            label,
            count,
            share,
            low,
            high,
            per_day: (per_day * 10.0).round() / 10.0,
            by_tld: by_tld.map(|(tld, of)| Group { tld: Some(tld), ..Group::new(of) }).collect(),
            by_month: tested
                .by_month
                .iter()
                .map(|(day, of)| Group { month: Some(month(*day)), ..Group::new(of) })
                .collect(),
            missing: tested.missing.iter().map(|&(from, to)| MissingDays { from, to }).collect(),
            examples: tested.examples.iter().map(ExampleJson::new).collect(),
            today_values: backtest::today_values(query, tested.period.score),
            ignored: backtest::ignored(query),
        }
    }
}

/// `POST /api/v1/alerts/backtest`: counts the names of past releases that a rule matches, and how many were
/// registered again. Stores nothing.
pub async fn backtest_alert(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    Extension(caller): Extension<Caller>,
    PostBody { body, .. }: PostBody<BacktestRequest>,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    // The base of each score is restored from a record.
    let scans = body.score.is_some() || body.filter.as_ref().is_some_and(FilterRequest::reads_text);
    let body = work::run_or_scan(scans, index.backtest_cost_us(), move || {
        let (mut query, period) = body.parse(as_of.today)?;
        app.apply_facts(&index, &mut query.common, as_of.today)?;
        let _turn = app.limits.backtests.begin(caller.account)?;
        let tested = index.backtest(&query, period);
        json::json_bytes(&BacktestResponse::new(&tested, &query))
    });
    Ok(json::json_response(body.await?))
}
