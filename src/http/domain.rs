//! `/api/v1/domain/{name}`: the dossier of a name, and the caller's vote on it.

use std::borrow::Cow;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{Caller, Feedback};
use crate::body::{JsonBody, Patch};
use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::fact_rows::fact_value;
use crate::facts_file::Value;
use crate::facts_file::store::StoredColumn;
use crate::index::PipelineDrop;
use crate::index::query::expectation_model::{Expectation, Model};
use crate::index::query::rows::{PopularityFact, Status};
use crate::json;
use crate::response::Timestamp;
use crate::sales::Comparables;
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::fact_book::{FactValue, Source};
use crate::service::watchlist;
use crate::vocab::claim::Vote;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::Completeness;
use crate::vocab::release_time::{Certainty, ReleaseTime};
use crate::vocab::stage::Stage;
use crate::watchlist::AvailabilityResponse;

/// Everything known about a name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Dossier)]
pub struct DossierResponse<'a> {
    #[schema(value_type = String)]
    domain: &'a DomainName,
    /// Its Unicode form; equal to the name unless it is an IDN.
    #[schema(value_type = String)]
    unicode: Cow<'a, str>,
    tld: &'a str,
    length: u8,
    /// Score, even if the name never dropped or was registered again.
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    dqs: Dqs,
    /// A guess of the calendar, without a registry query. `available` means that the release is past, not that
    /// the name is free: `availability` has the answer of the registry.
    current_status: Status,
    /// Lifecycle stage today; `null` for a name that never dropped or was registered again.
    #[schema(required)]
    stage: Option<Stage>,
    /// Date of the latest drop; `null` for a name that never dropped.
    #[schema(value_type = Option<String>, format = Date, required)]
    drop_date: Option<Day>,
    /// Effective release of the latest drop; `null` for a name that never dropped.
    #[schema(value_type = Option<String>, format = Date, required)]
    release_date: Option<Day>,
    /// Start of the release on that day; `null` unless the registry releases names of the suffix at a known
    /// hour.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    release_at: Option<Timestamp>,
    /// How sure the hour is; `null` without a release.
    #[schema(required)]
    release_certainty: Option<Certainty>,
    /// Minutes from `releaseAt`, or from the start of the day, within which the name is released.
    #[schema(required)]
    release_window_minutes: Option<u16>,
    /// The day the registry releases the name, while that day is in the future.
    #[schema(value_type = Option<String>, format = Date, required)]
    drop_predicted_at: Option<Day>,
    /// `null` when the name is not in the active pipeline.
    #[schema(required)]
    latest_drop: Option<PipelineDrop>,
    /// The drops before the latest one, newest first. The name was registered again after each of them.
    earlier_drops: Vec<EarlierDropJson>,
    /// The newest of the registry's answers that you may see: `null` unless you watch the name or checked it
    /// within six hours.
    #[schema(required)]
    availability: Option<AvailabilityResponse>,
    /// Share of names like it that are expected to be registered again soon; `null` for a name that never
    /// dropped, and for a suffix without enough known outcomes.
    #[schema(required)]
    expectation: Option<ExpectationJson>,
    /// The operator's sales of similar names, by channel and currency; `null` if the operator has none. They are not
    /// part of the score.
    #[schema(required)]
    comparables: Option<Vec<Comparables<'a>>>,
    /// Known facts of the name, from the sources that you may see, in order of their names. They are not part of the
    /// score.
    facts: Vec<DossierFact<'a>>,
    /// Ranks on popularity lists; empty for a name that never dropped. They are not part of the
    /// score.
    popularity: Vec<PopularityFact>,
    feedback: Feedback,
}

/// A drop before the latest one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EarlierDrop)]
pub struct EarlierDropJson {
    #[schema(value_type = String, format = Date)]
    drop_date: Day,
    /// Effective release of that drop.
    #[schema(value_type = String, format = Date)]
    release_date: Day,
}

/// A known fact about a name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DossierFact<'a> {
    /// `SOURCE.FACT`.
    fact: String,
    #[schema(schema_with = fact_value)]
    value: Value,
    #[schema(value_type = String, format = Date)]
    as_of: Day,
    /// Title of the source.
    source: &'a str,
    /// The line that the licence asks to be shown beside values.
    #[schema(required)]
    attribution: Option<&'a str>,
    /// Whether only this account sees it.
    own: bool,
    /// Whether the name dropped after that day and was registered again since: the fact is about an earlier
    /// registration.
    before_drop: bool,
}

impl<'a> DossierFact<'a> {
    fn new(
        source: &'a Source,
        column: &StoredColumn,
        fact: FactValue,
        returned: Option<Day>,
    ) -> DossierFact<'a> {
        let meta = source.edition.meta();
        DossierFact {
            fact: format!("{}.{}", meta.id, column.name),
            before_drop: fact.is_before(returned),
            value: fact.value,
            as_of: fact.as_of,
            source: &meta.title,
            attribution: meta.attribution.as_deref(),
            own: source.is_own,
        }
    }
}

/// Expected share of names with the score, length, earlier drops and other suffixes of a name that are
/// registered again within a week of their release. It is not part of the score.
#[derive(Serialize, ToSchema)]
#[schema(as = Expectation)]
pub struct ExpectationJson {
    /// From 0 to 1.
    share: f64,
    /// Bounds of the 95 % interval.
    low: f64,
    high: f64,
    /// Days after the release.
    horizon: i32,
    /// Completeness of the lists; if it is `partial`, the share is a lower bound.
    label: Completeness,
}

impl ExpectationJson {
    fn new(expected: Expectation, model: &Model) -> ExpectationJson {
        let rounded = |share: f64| (share * 10_000.0).round() / 10_000.0;
        ExpectationJson {
            share: rounded(expected.share),
            low: rounded(expected.low),
            high: rounded(expected.high),
            horizon: ExpectedTaken::HORIZON.days(),
            label: model.shown,
        }
    }
}

/// The caller's vote, and the totals that include it.
#[derive(Serialize, ToSchema)]
#[schema(as = VoteResult)]
pub struct VoteResponse {
    #[schema(value_type = String)]
    domain: DomainName,
    #[schema(required)]
    vote: Option<Vote>,
    feedback: Feedback,
}

/// A vote. `null` withdraws it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = VoteBody, example = json!({"vote": "up"}))]
pub struct VoteRequest {
    #[serde(default)]
    #[schema(value_type = Option<Vote>, required)]
    vote: Patch<String>,
}

impl TryFrom<VoteRequest> for Option<Vote> {
    type Error = ApiError;

    fn try_from(request: VoteRequest) -> Result<Option<Vote>, ApiError> {
        match request.vote {
            Patch::Null => Ok(None),
            Patch::Value(word) if word == "up" => Ok(Some(Vote::Up)),
            Patch::Value(word) if word == "down" => Ok(Some(Vote::Down)),
            Patch::Value(_) => Err(ApiError::parameter("vote", "must be up, down or null")),
            Patch::Absent => Err(ApiError::parameter("vote", "is required")),
        }
    }
}

fn parse_name(path: Result<Path<String>, PathRejection>) -> Result<DomainName, ApiError> {
    let Path(name) =
        path.map_err(|_| ApiError::parameter("name", "is not percent-encoded UTF-8"))?;
    DomainName::parse_or_address(&name).map_err(|err| ApiError::parameter("name", err))
}

/// `GET /api/v1/domain/{name}`: the dossier of a name, in any spelling.
pub async fn find_domain(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let domain = parse_name(name)?;
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let feedback = app.store.feedback(&domain);
    let seen = watchlist::seen_by(&app, &caller, &domain);
    let seen_at = seen.map_or(0, |seen| seen.at.get());
    let sales = app.sales.current();
    let digest = sales.as_ref().map_or(0, |sales| sales.digest);
    let visible = app.visible_facts();
    let editions = visible.sources().iter().map(|source| source.id().0);
    let inputs: Vec<u64> =
        [feedback.up, feedback.down, seen_at, digest].into_iter().chain(editions).collect();
    let tag = Tag::for_query(&index, as_of, request.uri(), &inputs);
    // The 404 must precede the comparison of tags, because `If-None-Match: *` would turn it into a
    // 304.
    let dossier = index.dossier(&domain, as_of).ok_or(ApiError::UnknownName)?;
    if let Some(not_modified) = tag.not_modified(request.headers()) {
        return Ok(not_modified);
    }
    let release = dossier.release.map(|release| ReleaseTime::of(dossier.tld, release));
    let expected = index.expectation_of(&domain);
    let returned = index.last_returned(&domain);
    let facts = visible.of_name(&domain).map_err(|err| ApiError::Internal(err.into()))?;
    let fact = |(source, column, fact)| DossierFact::new(source, column, fact, returned);
    let body = json::json_bytes(&DossierResponse {
        domain: &domain,
        unicode: domain.unicode(),
        tld: dossier.tld,
        length: dossier.length,
        dqs: dossier.dqs,
        current_status: dossier.status,
        stage: dossier.stage,
        drop_date: dossier.drop_date,
        release_date: dossier.release.map(|release| release.day),
        release_at: release.and_then(|it| it.at).map(Timestamp),
        release_certainty: release.map(|it| it.certainty),
        release_window_minutes: release.map(|it| it.window_minutes),
        drop_predicted_at: dossier.drop_predicted_at,
        latest_drop: dossier.latest_drop,
        earlier_drops: dossier
            .earlier
            .iter()
            .map(|drop| EarlierDropJson { drop_date: drop.date, release_date: drop.release })
            .collect(),
        availability: seen.as_ref().map(AvailabilityResponse::new),
        expectation: expected.map(|(of, model)| ExpectationJson::new(of, model)),
        comparables: sales.as_ref().map(|sales| sales.comparables(&domain, as_of.today)),
        facts: facts.into_iter().map(fact).collect(),
        popularity: dossier.popularity,
        feedback,
    })?;
    Ok(tag.on(json::json_response(body)))
}

/// `PUT /api/v1/domain/{name}/feedback`: sets the caller's vote on an observed name, or withdraws
/// it with null.
pub async fn vote(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<VoteRequest>,
) -> Result<Json<VoteResponse>, Refusal> {
    let domain = parse_name(name)?;
    let vote = Option::<Vote>::try_from(body)?;
    if !app.live.current().holds(&domain) {
        return Err(ApiError::UnknownName.into());
    }
    let feedback = app.store.vote(&caller, &domain, vote).await?;
    Ok(Json(VoteResponse { domain, vote, feedback }))
}
