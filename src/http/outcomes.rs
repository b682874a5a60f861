//! `GET /api/v1/outcomes`: the outcomes of dropped names.

mod sample;

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::{RawQuery, Request, State};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::index::query::expectation_model::Model;
use crate::index::query::index::Index;
use crate::index::query::outcome_months::{MONTHS_HORIZON, OutcomeHistory, PeriodOutcome};
use crate::index::query::outcome_tables::{
    Group, HorizonShare, OutcomeRow, OutcomeTables, ScoreBand,
};
use crate::index::query::summary::BANDS;
use crate::json;
use crate::query::params::Params;
use crate::service::app::{App, Now};
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::kind::Kind;
use crate::vocab::outcome::{Auc, Completeness, Horizon, Share};
use crate::vocab::tld;

/// Estimated cost in microseconds without counting.
const COST_US: u32 = 1_000;
/// How shares are counted.
const METHOD: &str = "Drops whose release was in the year up to the last day for which a horizon is over; names that were \
    renewed before their release are not counted. Intervals: 95 %, by Wilson. `label` says what the lists can show: \
    `complete` counts absence, `partial` and `later-list` are lower bounds. `sample` has names drawn at random, about which \
    RDAP servers were asked; it has the scores of the draw. All other scores are those of today.";

/// Outcomes of dropped names, by group.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Outcomes)]
pub struct OutcomesResponse<'a> {
    /// The day up to which lists were counted.
    #[schema(value_type = String, format = Date)]
    as_of: Day,
    #[schema(value_type = u32)]
    count: usize,
    rows: Vec<OutcomeJson<'a>>,
    /// Models of the expectation, `expectedTaken` of the drops list, up to the newest list.
    models: Vec<ModelJson<'a>>,
    /// How the shares are counted.
    method: &'static str,
    /// Members that have the values of today, even if `asOf` is earlier.
    today_values: [&'static str; 1],
}

/// Outcomes of the names of a group.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OutcomeRow)]
pub struct OutcomeJson<'a> {
    tld: &'a str,
    /// Completeness of the lists: `complete`, every name each day; `partial`, some new registrations;
    /// `later-list`, later drops of the same names; `sample`, no list, but RDAP for names drawn at random;
    /// `unknown`, nothing.
    label: &'static str,
    /// Scores of the names, such as `40-49`; null for all.
    #[schema(required)]
    band: Option<&'static str>,
    /// Kind of the labels; null for all.
    #[schema(required)]
    kind: Option<Kind>,
    /// Words of the labels, `0` to `4+`; null for all.
    #[schema(required)]
    words: Option<&'static str>,
    /// Characters of the labels, such as `4-5`; null for all.
    #[schema(required)]
    length: Option<&'static str>,
    /// Names of the first horizon.
    n: u64,
    /// Shares by horizon in days: `1`, `7`, `30`, `400`. Horizons that the lists or the sample cannot show are absent.
    within: BTreeMap<i32, WithinJson>,
    /// Part of the released names whose outcome is known, for the first horizon.
    coverage: f64,
    /// First and last release of a counted name.
    #[schema(required, value_type = Option<String>, format = Date)]
    from: Option<Day>,
    #[schema(required, value_type = Option<String>, format = Date)]
    to: Option<Day>,
    /// The group that was asked for and has too few names: `kind` or `band`, so that this row counts more names.
    #[schema(required)]
    fallback: Option<&'static str>,
    /// The row in words; null without names.
    #[schema(required)]
    text: Option<String>,
    /// The last 24 months; null for a smaller group, unless `tld` is given, and if no list shows a day.
    #[schema(required)]
    history: Option<HistoryJson>,
}

/// Outcomes of a suffix by month of release.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OutcomeHistory)]
struct HistoryJson {
    /// Days after the release within which registrations count.
    horizon: i32,
    /// Months of a period: 1, or 3, 6 or 12 if fewer have too few names for an order.
    #[schema(value_type = u32)]
    months: usize,
    /// Oldest first.
    periods: Vec<PeriodJson>,
    /// How well the score ordered the names of the year before the last period; null with too few.
    #[schema(required)]
    year_before: Option<Auc>,
    /// Whether the order of the last period is worse than that of the year before: `auc` is .03 or more lower, and
    /// its interval does not contain the earlier value.
    has_fallen: bool,
}

/// Names that were released in a period.
#[derive(Serialize, ToSchema)]
#[schema(as = OutcomePeriod)]
struct PeriodJson {
    /// First and last day of the releases.
    #[schema(value_type = String, format = Date)]
    from: Day,
    #[schema(value_type = String, format = Date)]
    to: Day,
    /// Names with a known outcome.
    n: u64,
    /// The part that was registered again; null without names.
    #[schema(required)]
    share: Option<Share>,
    /// How well the score orders them; null with too few.
    #[schema(required)]
    auc: Option<Auc>,
}

impl HistoryJson {
    fn new(history: &OutcomeHistory) -> HistoryJson {
        let period = |period: &PeriodOutcome| {
            let PeriodOutcome { from, to, names, share, auc } = *period;
            PeriodJson { from, to, n: names, share, auc }
        };
        HistoryJson {
            horizon: MONTHS_HORIZON.days(),
            months: history.months,
            periods: history.periods.iter().map(period).collect(),
            year_before: history.year_before,
            has_fallen: history.has_fallen(),
        }
    }
}

/// Share of the names that were registered again within a horizon.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OutcomeShare)]
pub struct WithinJson {
    /// Names whose horizon is over.
    n: u64,
    /// Names that were registered again.
    count: u64,
    /// `count` divided by `n`; of a sample with enough answers, by the names with an answer.
    share: f64,
    /// Bounds of the 95 % interval, or of the range.
    low: f64,
    high: f64,
    /// Names of a sample about which no registry gave an answer that counts. They are part of `n`.
    unanswered: u64,
    /// True if more than a tenth of a sample has no answer. Then `low` counts none of these names as registered, and
    /// `high` all.
    is_range: bool,
    /// How well the score orders the names of the suffix; null for a smaller group, and with fewer than 300
    /// names that were registered again, or that were not.
    #[schema(required)]
    auc: Option<Auc>,
}

/// The model from which the expectation of the names of a suffix follows.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OutcomeModel)]
pub struct ModelJson<'a> {
    tld: &'a str,
    /// Completeness of the lists; expectations from `partial` ones are lower bounds.
    label: Completeness,
    /// Days after the release.
    horizon: i32,
    /// Names from which it was fitted, and those of them that were registered again.
    n: u64,
    count: u64,
    /// First and last release.
    #[schema(value_type = String, format = Date)]
    from: Day,
    #[schema(value_type = String, format = Date)]
    to: Day,
    /// How well a model of the earlier releases predicted the last ones; null for too few.
    #[schema(required)]
    test: Option<ModelTest>,
}

/// How well a model predicted names that it was not fitted to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelTest {
    /// Names released from `from` on, and those of them that were registered again.
    n: u64,
    count: u64,
    #[schema(value_type = String, format = Date)]
    from: Day,
    /// Mean squared difference of expectation and outcome (Brier score): 0 is perfect.
    brier: f64,
    /// The same with the share of all earlier names as the expectation of each.
    brier_of_mean: f64,
    /// How well the expectation orders the names; null with fewer than 300 names that were registered
    /// again, or that were not.
    #[schema(required)]
    auc: Option<Auc>,
    /// How well the score alone orders them.
    #[schema(required)]
    auc_of_score: Option<Auc>,
}

impl<'a> ModelJson<'a> {
    fn new(tld: &'a str, model: &Model) -> ModelJson<'a> {
        let rounded = |brier: f64| (brier * 100_000.0).round() / 100_000.0;
        let test = model.test.map(|test| ModelTest {
            n: test.of.names,
            count: test.of.taken,
            from: test.from,
            brier: rounded(test.brier),
            brier_of_mean: rounded(test.brier_of_mean),
            auc: test.auc,
            auc_of_score: test.auc_of_score,
        });
        let Model { shown, all, from, to, .. } = *model;
        let (horizon, n, count) = (ExpectedTaken::HORIZON.days(), all.names, all.taken);
        ModelJson { tld, label: shown, horizon, n, count, from, to, test }
    }
}

/// The requested groups.
struct OutcomeQuery {
    tld: Option<String>,
    band: Option<ScoreBand>,
    kind: Option<Kind>,
    horizon: Option<Horizon>,
    as_of: Day,
}

impl OutcomeQuery {
    fn parse(query: Option<&str>, today: Day) -> Result<OutcomeQuery, ApiError> {
        let params = Params::new(query);
        let tld = params.get("tld")?.map(|text| {
            let folded = tld::fold_tld(text).filter(|tld| tld::is_suffix(tld));
            folded.ok_or_else(|| {
                ApiError::parameter("tld", "must be one suffix, such as com or co.uk")
            })
        });
        let band = params.get("band")?.map(|text| {
            let what = || format!("must be one of {}", ScoreBand::NAMES.join(", "));
            ScoreBand::parse(text).ok_or_else(|| ApiError::parameter("band", what()))
        });
        let as_of = params.get("asOf")?.map(|text| {
            let day = Day::parse_from(text, today);
            let day = day.map_err(|err| ApiError::parameter("asOf", err))?;
            let what = "must not be after today: lists of that day are not known yet";
            if day > today { Err(ApiError::parameter("asOf", what)) } else { Ok(day) }
        });
        Ok(OutcomeQuery {
            tld: tld.transpose()?.map(Into::into),
            band: band.transpose()?,
            kind: params.one("kind")?,
            horizon: params.one("horizon")?,
            as_of: as_of.transpose()?.unwrap_or(today),
        })
    }

    /// Returns the rows that were asked for: all of a suffix, or one of each suffix.
    fn rows<'a>(&self, index: &'a Index) -> Vec<OutcomeJson<'a>> {
        let (tables, tlds) = (index.outcomes(self.as_of), index.tlds());
        let OutcomeQuery { band, kind, .. } = *self;
        let Some(tld) = &self.tld else {
            let rows = tlds.sorted().iter().filter_map(|&tld| tables.nearest(tld, band, kind));
            return rows.filter_map(|row| self.shaped(index, &tables, row)).collect();
        };
        let number = tlds.find(tld);
        let rows = number.map_or_else(Vec::new, |tld| match (band, kind) {
            (None, None) => tables.rows_of(tld),
            _ => tables.nearest(tld, band, kind).into_iter().collect(),
        });
        rows.into_iter().filter_map(|row| self.shaped(index, &tables, row)).collect()
    }

    /// Returns the model of the suffix that was asked for, or every model.
    fn models<'a>(&self, index: &'a Index) -> Vec<ModelJson<'a>> {
        let wanted = |tld: &str| self.tld.as_deref().is_none_or(|wanted| wanted == tld);
        let models = index.models().filter(|(tld, _)| wanted(tld));
        models.map(|(tld, model)| ModelJson::new(tld, model)).collect()
    }

    /// Returns a row with the horizon that was asked for; `None` if the lists cannot show that.
    fn shaped<'a>(
        &self,
        index: &'a Index,
        tables: &OutcomeTables,
        mut row: OutcomeRow,
    ) -> Option<OutcomeJson<'a>> {
        let is_suffix = row.group == Group::Suffix;
        row.shares.retain(|share| self.horizon.is_none_or(|horizon| share.horizon == horizon));
        let first = row.shares.first()?;
        let tld = index.tlds().name(row.tld);
        let (mut band, mut kind, mut words, mut length) = (None, None, None, None);
        match row.group {
            Group::Suffix => {}
            Group::Band(of) => band = Some(of),
            Group::Kind(of) => kind = Some(of),
            Group::BandAndKind(of, and) => (band, kind) = (Some(of), Some(and)),
            Group::Words(count) => {
                words = ["0", "1", "2", "3", "4+"].get(usize::from(count)).copied();
            }
            Group::Length(at) => length = Some(BANDS[usize::from(at)].0),
        }
        let fallback = match (self.kind, self.band) {
            (_, Some(_)) if band.is_none() => Some("band"),
            (Some(_), _) if kind.is_none() => Some("kind"),
            _ => None,
        };
        let within = |of: &HorizonShare| {
            let Share { count, share, low, high } = of.share;
            let auc = is_suffix.then(|| tables.auc(row.tld, row.shown, of.horizon)).flatten();
            let (unanswered, is_range) = (0, false);
            let within =
                WithinJson { n: of.names, count, share, low, high, unanswered, is_range, auc };
            (of.horizon.days(), within)
        };
        let has_history = is_suffix && self.tld.is_some();
        let history = has_history.then(|| tables.history(row.tld, row.shown)).flatten();
        Some(OutcomeJson {
            tld,
            label: row.shown.as_str(),
            band: band.map(ScoreBand::as_str),
            kind,
            words,
            length,
            n: first.names,
            within: row.shares.iter().map(within).collect(),
            coverage: first.coverage,
            from: Some(row.from),
            to: Some(row.to),
            fallback,
            text: Some(row.sentence(tld)),
            history: history.map(HistoryJson::new),
        })
    }

    /// The row of a suffix about which lists show nothing.
    fn unknown<'a>(&self, tld: &'a str) -> OutcomeJson<'a> {
        OutcomeJson {
            tld,
            label: "unknown",
            band: self.band.map(ScoreBand::as_str),
            kind: self.kind,
            words: None,
            length: None,
            n: 0,
            within: BTreeMap::new(),
            coverage: 0.0,
            from: None,
            to: None,
            fallback: None,
            text: None,
            history: None,
        }
    }
}

/// `GET /api/v1/outcomes`: shares of dropped names that were registered again.
pub async fn list_outcomes(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let asked = OutcomeQuery::parse(query.as_deref(), as_of.today)?;
    let tag = Tag::for_query(&index, as_of, request.uri(), &[app.store.sample_changes()]);
    if let Some(not_modified) = tag.not_modified(request.headers()) {
        return Ok(not_modified);
    }
    let cost = COST_US + index.outcomes_cost_us(asked.as_of);
    let body = work::run(cost, move || {
        // Answers have no history.
        let sample = (asked.as_of == as_of.today).then(|| app.store.sample_tables(as_of.today));
        let sample = sample.unwrap_or_default();
        let mut rows = asked.rows(&index);
        rows.extend(asked.sample_rows(&sample));
        if let (Some(tld), true) = (&asked.tld, rows.is_empty()) {
            rows.push(asked.unknown(tld));
        }
        let (as_of, count) = (asked.as_of, rows.len());
        let models = asked.models(&index);
        let (method, today_values) = (METHOD, ["dqs"]);
        let response = OutcomesResponse { as_of, count, rows, models, method, today_values };
        json::json_bytes(&response)
    });
    Ok(tag.on(json::json_response(body.await?)))
}
