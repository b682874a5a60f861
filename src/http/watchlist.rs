//! `/api/v1/watchlist`: the names that the caller watches, joined with the index on reading.

use std::borrow::Cow;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{Caller, Channel, Outcome, Tags, WatchPatch, WriteError};
use crate::alerts::watchlist::{EntryAlertsRequest, EntryAlertsResponse};
use crate::body::{JsonBody, Money, Object, Patch, PostBody};
use crate::edge::error::Refusal;
use crate::json;
use crate::query::params::{Limits, Params};
use crate::response::{self, Timestamp};
use crate::service::app::{App, Now};
use crate::service::error::{ApiError, required};
use crate::service::watchlist::{
    self, Summary, WatchQuery, WatchRow, WatchSort, WatchSource, sorted_rows, usable_channels,
    watches_cost_us,
};
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::evidence::Evidence;
use crate::vocab::limits::{OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX, WATCHES_PASTED_MAX};
use crate::vocab::name::{DomainName, NameError};
use crate::vocab::observation::{FormerState, Observation};
use crate::vocab::release_time::Certainty;
use crate::vocab::stage::Stage;
use crate::vocab::tag::Tag;

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// A watched name. Facts from the corpus are `null` for an external name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WatchEntry)]
pub struct WatchResponse<'a> {
    #[schema(value_type = String)]
    domain: &'a DomainName,
    /// Its Unicode form; equal to the name unless it is an IDN.
    #[schema(value_type = String)]
    unicode: Cow<'a, str>,
    source: WatchSource,
    #[schema(required)]
    rdap_observed_state: Option<&'static str>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    rdap_verified_at: Option<Timestamp>,
    /// `null` for a name that was not checked yet.
    #[schema(required)]
    availability: Option<AvailabilityResponse>,
    #[schema(value_type = Option<String>, format = Date, required)]
    latest_drop_date: Option<Day>,
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 100, required)]
    dqs: Option<Dqs>,
    #[schema(value_type = Option<String>, required)]
    stage: Option<Stage>,
    /// The day on which the registry releases or released the name.
    #[schema(value_type = Option<String>, format = Date, required)]
    release_date: Option<Day>,
    /// As in the dossier.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    release_at: Option<Timestamp>,
    #[schema(required)]
    release_certainty: Option<Certainty>,
    #[schema(required)]
    release_window_minutes: Option<u16>,
    #[schema(value_type = String, format = DateTime)]
    added_at: Timestamp,
    #[schema(required)]
    note: Option<&'a str>,
    #[schema(value_type = Vec<String>)]
    tags: &'a [Tag],
    #[schema(value_type = Option<f64>, required)]
    max_bid_usd: Option<Money>,
    /// Where you want to bid.
    #[schema(required)]
    venue: Option<&'a str>,
    /// Alert settings of the name; `null` if it follows those of the watchlist.
    #[schema(required)]
    alerts: Option<EntryAlertsResponse>,
    /// Earlier states reported by the registry, oldest first.
    rdap_former_states: Vec<FormerStateResponse>,
}

/// Whether a name can be registered, and what says so.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Availability)]
pub struct AvailabilityResponse {
    /// As `rdapObservedState`.
    state: &'static str,
    /// A source describes the state, or two agree on it. A name is free only if it is `available` and
    /// verified.
    verified: bool,
    evidence: Vec<EvidenceResponse>,
    /// When the name was last registered; `null` unless its RDAP server gives the time.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    registered_at: Option<Timestamp>,
    /// Registrar of that registration; `null` unless its RDAP server gives it.
    #[schema(value_type = Option<String>, max_length = 64, required)]
    registrar: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

/// Statement of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = Evidence)]
pub struct EvidenceResponse {
    /// `rdap`, `whois`, `dns` or `list`.
    source: &'static str,
    /// `rdap-found`, `rdap-none`, `rdap-reserved`, `whois-found`, `whois-none`, `whois-reserved`,
    /// `delegated`, `not-delegated`, `release-ahead`, `release-past`, or `control`: the RDAP server
    /// knows a registered name of the suffix.
    answer: &'static str,
}

impl AvailabilityResponse {
    pub fn new(seen: &Observation) -> AvailabilityResponse {
        let said = |it: Evidence| EvidenceResponse { source: it.source(), answer: it.as_str() };
        AvailabilityResponse {
            state: seen.state.as_str(),
            verified: seen.is_verified(),
            evidence: seen.evidence.iter().map(said).collect(),
            registered_at: seen.registration.at.map(Timestamp),
            registrar: seen.registration.registrar.map(|it| it.as_str().to_owned()),
            at: Timestamp(seen.at),
        }
    }
}

/// A state that a watched name had.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FormerState)]
pub struct FormerStateResponse {
    state: &'static str,
    #[schema(value_type = String, format = DateTime)]
    last_seen_at: Timestamp,
}

impl<'a> WatchResponse<'a> {
    pub fn new(row: &'a WatchRow) -> WatchResponse<'a> {
        let release = row.release_time();
        WatchResponse {
            domain: row.name(),
            unicode: row.name().unicode(),
            source: row.source(),
            rdap_observed_state: row.rdap().map(|(state, _)| state.as_str()),
            rdap_verified_at: row.rdap().map(|(_, at)| Timestamp(at)),
            availability: row.seen().map(AvailabilityResponse::new),
            latest_drop_date: row.latest_drop(),
            dqs: row.dqs(),
            stage: row.stage(),
            release_date: row.release().map(|release| release.day),
            release_at: release.and_then(|it| it.at).map(Timestamp),
            release_certainty: release.map(|it| it.certainty),
            release_window_minutes: release.map(|it| it.window_minutes),
            added_at: Timestamp(row.added_at()),
            note: row.details().note.as_deref(),
            tags: &row.details().tags,
            max_bid_usd: row.details().max_bid.map(Money),
            venue: row.details().venue.as_deref(),
            alerts: row.alerts().map(EntryAlertsResponse::new),
            rdap_former_states: row.former().iter().map(FormerStateResponse::new).collect(),
        }
    }
}

impl FormerStateResponse {
    fn new(former: &FormerState) -> FormerStateResponse {
        let FormerState { state, last_seen } = *former;
        FormerStateResponse { state: state.as_str(), last_seen_at: Timestamp(last_seen) }
    }
}

/// A page of the watchlist.
#[derive(Serialize, ToSchema)]
#[schema(as = Watchlist)]
pub struct WatchlistResponse<'a> {
    #[schema(value_type = u32)]
    count: usize,
    /// Entries that pass the filters, on all pages.
    #[schema(value_type = u32)]
    total: usize,
    limit: u32,
    offset: u32,
    sort: WatchSort,
    summary: Summary,
    watchlist: Vec<WatchResponse<'a>>,
}

/// Confirmation that a name is no longer watched.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchRemoved)]
pub struct RemovedWatch {
    #[schema(value_type = String)]
    domain: DomainName,
    removed: bool,
}

/// A name to watch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = WatchBody, example = json!({"domainName": "solar.com"}))]
pub struct WatchRequest {
    #[schema(value_type = String, format = "domain", min_length = 1, max_length = 253)]
    domain_name: Option<String>,
}

/// Changes to the notes on a watched name. Absent members are unchanged; `null` clears a value.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = WatchPatchBody, example = json!({"tags": ["flip"], "maxBidUsd": 420}))]
pub struct WatchPatchRequest {
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 2000)]
    note: Patch<String>,
    /// Replaces all tags.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 10)]
    tags: Patch<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    max_bid_usd: Patch<Money>,
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 60)]
    venue: Patch<String>,
    /// Alert settings of the name; `null` to follow those of the watchlist.
    #[serde(default)]
    #[schema(value_type = Option<EntryAlertsRequest>)]
    alerts: Patch<Object<EntryAlertsRequest>>,
}

/// Names to watch, and the notes to set on all of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = WatchBatchBody, example = json!({"domainNames": ["solar.com", "lunar.net"], "tags": ["flip"]}))]
pub struct WatchBatchRequest {
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 1000)]
    domain_names: Option<Vec<String>>,
    /// Tags to add to those of each name.
    #[schema(max_items = 10)]
    tags: Option<Vec<String>>,
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    max_bid_usd: Option<Money>,
    #[schema(min_length = 1, max_length = 60)]
    venue: Option<String>,
    /// Alert settings of these names, instead of those of the watchlist.
    #[schema(value_type = Option<EntryAlertsRequest>)]
    alerts: Option<Object<EntryAlertsRequest>>,
}

/// Result for one name in a batch.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchBatchResult)]
pub struct BatchResult {
    /// The name in its canonical form, or as sent if it is invalid.
    domain: String,
    /// `added`, `existing` or `refused`.
    outcome: &'static str,
    /// Why the name was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
}

/// One result for each name, in request order.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchBatch)]
pub struct BatchResponse {
    #[schema(value_type = u32)]
    added: usize,
    #[schema(value_type = u32)]
    existing: usize,
    #[schema(value_type = u32)]
    refused: usize,
    results: Vec<BatchResult>,
}

/// Parses the names of a batch.
///
/// # Errors
/// 400 unless there are 1 to 1,000.
pub fn parse_names(
    texts: &[String],
    member: &'static str,
) -> Result<Vec<Result<DomainName, NameError>>, ApiError> {
    if !(1..=WATCHES_PASTED_MAX).contains(&texts.len()) {
        return Err(ApiError::parameter(member, "must hold 1 to 1000 names"));
    }
    Ok(texts.iter().map(|text| DomainName::parse_or_address(text)).collect())
}

fn tags(texts: Vec<String>) -> Result<Vec<Tag>, ApiError> {
    let tag = |text: String| text.parse().map_err(|err| ApiError::parameter("tags", err));
    texts.into_iter().map(tag).collect()
}

impl WatchPatchRequest {
    /// Converts the changes to their domain types. `channels` are those of the account.
    fn parse(self, channels: &[Channel]) -> Result<WatchPatch, ApiError> {
        let tags = self.tags.try_map(tags)?.nested().map(Option::unwrap_or_default);
        Ok(WatchPatch {
            note: self.note.nested(),
            tags: tags.map(Tags::Replace),
            max_bid: self.max_bid_usd.try_map(|Money(price)| Ok(price))?.nested(),
            venue: self.venue.nested(),
            alerts: self.alerts.try_map(|Object(alerts)| alerts.parse(channels))?.nested(),
            keeps: false,
        })
    }
}

/// `GET /api/v1/watchlist`: the caller's watchlist.
pub async fn list_watches(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let WatchQuery { filter, sort, page } = WatchQuery::parse(Params::new(uri.query()), LIMITS)?;
    let (owned, index, as_of) = (app.store.user_data(&caller), app.live.current(), app.as_of(now));
    let (bootstrap, store) = (app.reach.bootstrap.current(), app.store.clone());
    let found = work::run(watches_cost_us(&owned), move || {
        let mut rows = sorted_rows(&owned, &index, &store, as_of, sort);
        let summary = Summary::new(&rows, &bootstrap);
        rows.retain(|row| filter.passes(row));
        let watchlist: Vec<_> = page.rows(rows.iter()).map(WatchResponse::new).collect();
        let body = json::json_bytes(&WatchlistResponse {
            count: watchlist.len(),
            total: rows.len(),
            limit: page.limit,
            offset: page.offset,
            sort,
            summary,
            watchlist,
        })?;
        Ok((body, rows.len()))
    });
    let (body, total) = found.await?;
    Ok(response::with_next(json::json_response(body), &uri, page, total))
}

/// `POST /api/v1/watchlist`: adds a name to the list. Returns 200 if it is already there.
pub async fn add_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    PostBody { body, post }: PostBody<WatchRequest>,
) -> Result<Response, Refusal> {
    let text = required(body.domain_name, "domainName")?;
    let name = DomainName::parse_or_address(&text)
        .map_err(|err| ApiError::parameter("domainName", err))?;
    let draft = watchlist::add(&app, &caller, name, now, post).await?;
    let receipt = |(row, outcome): &(WatchRow, Outcome)| {
        let status = match outcome {
            Outcome::Added => StatusCode::CREATED,
            Outcome::AlreadyThere => StatusCode::OK,
        };
        response::receipt(status, &WatchResponse::new(row))
    };
    Ok(response::posted(draft.respond(receipt).await?))
}

/// `PATCH /api/v1/watchlist/{domain}`: changes the given members of the notes on a watched name.
pub async fn change_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    name: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<WatchPatchRequest>,
) -> Result<Response, Refusal> {
    let Path(name) =
        name.map_err(|_| ApiError::parameter("domain", "is not percent-encoded UTF-8"))?;
    let name =
        DomainName::parse_or_address(&name).map_err(|err| ApiError::parameter("domain", err))?;
    let owned = app.store.user_data(&caller);
    let patch = body.parse(usable_channels(&app, &caller, &owned, now))?;
    let row = watchlist::change(&app, &caller, &name, &patch, now).await?;
    Ok(Json(WatchResponse::new(&row)).into_response())
}

/// `POST /api/v1/watchlist/batch`: adds 1 to 1,000 names, each as if in a request of its own.
pub async fn add_batch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    PostBody { body, post }: PostBody<WatchBatchRequest>,
) -> Result<Response, Refusal> {
    let texts = required(body.domain_names, "domainNames")?;
    let parsed = parse_names(&texts, "domainNames")?;
    let owned = app.store.user_data(&caller);
    let channels = usable_channels(&app, &caller, &owned, now);
    let patch = WatchPatch {
        note: None,
        tags: body.tags.map(tags).transpose()?.map(Tags::Add),
        max_bid: body.max_bid_usd.map(|price| Some(price.0)),
        venue: body.venue.map(Some),
        alerts: body.alerts.map(|Object(alerts)| alerts.parse(channels)).transpose()?.map(Some),
        keeps: false,
    };
    // An error in the notes affects every name.
    patch.applied(None)?;
    let names = parsed.iter().flatten().map(|name| (name.clone(), patch.clone())).collect();
    let draft = watchlist::draft_all(&app, &caller, names, now, post).await?;
    let draft = draft.map(|outcomes| BatchResponse::new(texts, parsed, outcomes));
    let receipt = |batch: &BatchResponse| response::receipt(StatusCode::OK, batch);
    Ok(response::posted(draft.respond(receipt).await?))
}

impl BatchResponse {
    /// `outcomes` has one entry for each valid name, in order.
    fn new(
        texts: Vec<String>,
        parsed: Vec<Result<DomainName, NameError>>,
        outcomes: Vec<Result<Outcome, WriteError>>,
    ) -> BatchResponse {
        let mut outcomes = outcomes.into_iter();
        let mut response = BatchResponse { added: 0, existing: 0, refused: 0, results: Vec::new() };
        for (text, name) in texts.into_iter().zip(parsed) {
            let (domain, outcome) = match name {
                Ok(name) => {
                    let outcome = outcomes.next().expect("one outcome for each name");
                    (name.to_string(), outcome.map_err(|err| message(err.into())))
                }
                Err(err) => (text, Err(err.to_string())),
            };
            let (count, outcome, error) = match outcome {
                Ok(Outcome::Added) => (&mut response.added, "added", None),
                Ok(Outcome::AlreadyThere) => (&mut response.existing, "existing", None),
                Err(error) => (&mut response.refused, "refused", Some(error)),
            };
            *count += 1;
            response.results.push(BatchResult { domain, outcome, error });
        }
        response
    }
}

fn message(err: ApiError) -> String {
    Refusal::from(err).message().to_owned()
}

/// `DELETE /api/v1/watchlist?domain=`: removes a name from the list.
pub async fn remove_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Json<RemovedWatch>, Refusal> {
    let domain = Params::new(query.as_deref()).domain("domain")?;
    app.store.remove_watch(&caller, &domain).await?;
    Ok(Json(RemovedWatch { domain, removed: true }))
}
