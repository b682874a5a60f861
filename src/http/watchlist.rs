//! `/api/v1/watchlist`: the names that the caller watches, joined with the index when they are read.

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{
    Caller, Channel, EntryAlerts, Outcome, Store, Tags, UserData, Watch, WatchDetails, WatchEntry,
    WatchPatch, WriteError,
};
use crate::edge::error::Refusal;
use crate::http::alerts::watchlist::{EntryAlertsRequest, EntryAlertsResponse, channels};
use crate::http::body::{JsonBody, Money, Object, Patch, PostBody, required};
use crate::http::json;
use crate::http::params::{Limits, Page, Params};
use crate::http::response::{self, Timestamp};
use crate::index::filter::AsOf;
use crate::index::{Index, NameFacts};
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{
    ENTRIES_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX, VENUE_CHARS_MAX, WATCHES_PASTED_MAX,
};
use crate::vocab::name::{DomainName, NameError};
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::observation::{FormerState, Observation, RdapState};
use crate::vocab::rdap::Bootstrap;
use crate::vocab::stage::Stage;
use crate::vocab::tag::Tag;
use crate::vocab::time::UnixMs;

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Approximate cost of looking up one name, in microseconds.
pub const LOOKUP_US: usize = 1;

named_enum! {
    /// Sort order of a watchlist.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum WatchSort {
        /// Soonest to be caught first: by stage, then effective release, then name.
        #[default]
        Lifecycle = "lifecycle",
        Name = "name",
        /// Highest score first; names without a score last.
        Dqs = "dqs",
        /// Newest first.
        Added = "added",
        /// Soonest release first; names without a release last.
        Release = "release",
        /// Highest maximum bid first; names without one last.
        Bid = "bid",
        /// By name of the venue; names without one last.
        Venue = "venue",
    }
}

parse_named!(WatchSort);

impl WatchSort {
    /// Sorts `rows`, which are in name order. Sorting is stable, so ties stay in name order.
    fn sort(self, rows: &mut [WatchRow]) {
        match self {
            WatchSort::Lifecycle => rows.sort_by_key(WatchRow::lifecycle),
            WatchSort::Name => {}
            WatchSort::Dqs => rows.sort_by_key(|row| Reverse(row.dqs())),
            WatchSort::Added => rows.sort_by_key(|row| Reverse(row.entry.added_at)),
            WatchSort::Release => rows.sort_by_key(|row| {
                let release = row.stage_and_release().map(|(_, release)| release);
                (release.is_none(), release)
            }),
            WatchSort::Bid => rows.sort_by_key(|row| Reverse(row.details().max_bid)),
            WatchSort::Venue => rows.sort_by_key(|row| {
                let venue = row.details().venue.as_deref().map(str::to_lowercase);
                (venue.is_none(), venue)
            }),
        }
    }
}

named_enum! {
    /// Whether a watched name has a maximum bid.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum HasBid {
        None = "none",
        Some = "some",
    }
}

parse_named!(HasBid);

/// Conditions on watched names; all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchFilter {
    /// The name has one of these tags, without regard to case; empty for all.
    pub tags: Vec<Tag>,
    pub venue: Option<String>,
    pub bid: Option<HasBid>,
    /// Today's stage is one of these; empty for all.
    pub stages: Vec<Stage>,
}

impl WatchFilter {
    fn parse(params: &Params<'_>) -> Result<WatchFilter, ApiError> {
        Ok(WatchFilter {
            tags: params.list("tag")?,
            venue: params.text("venue", VENUE_CHARS_MAX)?,
            bid: params.one("bid")?,
            stages: params.list("stage")?,
        })
    }

    /// Whether a name passes.
    pub fn passes(&self, row: &WatchRow) -> bool {
        let details = row.details();
        let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        let has = |tag: &Tag| details.tags.iter().any(|it| same(it.as_str(), tag.as_str()));
        (self.tags.is_empty() || self.tags.iter().any(has))
            && self
                .venue
                .as_ref()
                .is_none_or(|venue| details.venue.as_ref().is_some_and(|it| same(it, venue)))
            && self.bid.is_none_or(|bid| (bid == HasBid::Some) == details.max_bid.is_some())
            && (self.stages.is_empty()
                || row.stage().is_some_and(|stage| self.stages.contains(&stage)))
    }
}

/// Filter, sort order and page of a watchlist.
#[derive(Clone, Debug)]
pub struct WatchQuery {
    pub filter: WatchFilter,
    pub sort: WatchSort,
    pub page: Page,
}

impl WatchQuery {
    /// Parses a query string.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn parse(params: Params<'_>, limits: Limits) -> Result<WatchQuery, ApiError> {
        Ok(WatchQuery {
            filter: WatchFilter::parse(&params)?,
            sort: params.one("sort")?.unwrap_or_default(),
            page: params.page(limits, ENTRIES_OFFSET_MAX)?,
        })
    }
}

/// An entry joined with the facts about its name.
#[derive(Clone, Debug)]
pub struct WatchRow {
    entry: WatchEntry,
    /// `None` for a name that is not in the index.
    facts: Option<NameFacts>,
    /// The last observation by RDAP or DNS.
    seen: Option<Observation>,
    /// States before that observation, oldest first.
    former: Vec<FormerState>,
    details: Arc<WatchDetails>,
    /// The owner's choice of what is sent about it.
    alerts: Option<Arc<EntryAlerts>>,
}

impl WatchRow {
    /// Joins an entry with its facts. An observation older than the entry was made for another account
    /// and is hidden: it would reveal that another account watches the name.
    fn new(
        entry: WatchEntry,
        details: Option<&Arc<WatchDetails>>,
        alerts: Option<&Arc<EntryAlerts>>,
        facts: Option<NameFacts>,
        (seen, mut former): (Option<Observation>, Vec<FormerState>),
    ) -> WatchRow {
        static NO_DETAILS: LazyLock<Arc<WatchDetails>> = LazyLock::new(Arc::default);
        let seen = seen.filter(|seen| seen.at >= entry.added_at);
        former.retain(|former| former.last_seen >= entry.added_at);
        let details = Arc::clone(details.unwrap_or(&NO_DETAILS));
        WatchRow { entry, facts, seen, former, details, alerts: alerts.map(Arc::clone) }
    }

    /// Joins `entries` of the account `owned` with the current `index` and `store`, in the given order.
    pub fn all(
        entries: Vec<WatchEntry>,
        owned: &UserData,
        index: &Index,
        store: &Store,
        as_of: AsOf,
    ) -> Vec<WatchRow> {
        let seen = store.observed(entries.iter().map(|entry| &entry.name));
        let row = |(entry, seen): (WatchEntry, _)| {
            let (facts, details) =
                (index.facts(&entry.name, as_of), owned.watch_details(&entry.name));
            let alerts = owned.entry_alerts(&entry.name);
            WatchRow::new(entry, details, alerts, facts, seen)
        };
        entries.into_iter().zip(seen).take_while(|_| !budget::spent()).map(row).collect()
    }

    /// The name.
    pub fn name(&self) -> &DomainName {
        &self.entry.name
    }

    /// Notes of the owner.
    pub fn details(&self) -> &WatchDetails {
        &self.details
    }

    /// The owner's choice of what is sent about the name; `None` if that of the account holds.
    pub fn alerts(&self) -> Option<&EntryAlerts> {
        self.alerts.as_deref()
    }

    /// States that were observed before the last one, oldest first.
    pub fn former(&self) -> &[FormerState] {
        &self.former
    }

    /// Where the facts about the name come from.
    pub fn source(&self) -> WatchSource {
        if self.is_external() { WatchSource::External } else { WatchSource::Corpus }
    }

    /// The score; `None` for a name that is not in the index.
    pub fn dqs(&self) -> Option<Dqs> {
        self.facts.map(|facts| facts.dqs)
    }

    /// The date of the latest drop, if any.
    pub fn latest_drop(&self) -> Option<Day> {
        self.facts.and_then(|facts| facts.latest_drop)
    }

    /// Today's stage; `None` for a name that never dropped, was registered again or is not in the index.
    pub fn stage(&self) -> Option<Stage> {
        self.facts.and_then(|facts| facts.stage).map(|(stage, _)| stage)
    }

    /// Today's stage and the effective release.
    pub fn stage_and_release(&self) -> Option<(Stage, Day)> {
        self.facts.and_then(|facts| facts.stage)
    }

    /// The effective release of the latest drop, even if the name was registered again.
    pub fn release(&self) -> Option<Day> {
        self.facts.and_then(|facts| facts.release)
    }

    /// When it was put on the list.
    pub fn added_at(&self) -> UnixMs {
        self.entry.added_at
    }

    /// The last observed state, and when it was observed.
    pub fn rdap(&self) -> Option<(RdapState, UnixMs)> {
        self.seen.map(|seen| (seen.state, seen.at))
    }

    /// Whether the name is not in the index and was not when it was added. External names use quota.
    pub fn is_external(&self) -> bool {
        self.entry.external && self.facts.is_none()
    }

    /// Whether a list or the registry reported since it was added that the name is registered again.
    pub fn is_renewed(&self) -> bool {
        let listed = self.facts.is_some_and(|facts| facts.registered_again);
        let seen = self.seen.is_some_and(|seen| {
            matches!(seen.state, RdapState::Renewed | RdapState::RegisteredAgain)
        });
        (listed || seen) && !self.entry.registered_again
    }

    /// Sort key: catchable first, names without a stage last.
    fn lifecycle(&self) -> (u8, Option<Day>) {
        let Some((stage, release)) = self.facts.and_then(|facts| facts.stage) else {
            return (4, None);
        };
        let place = match stage {
            Stage::Catchable => 0,
            Stage::PendingDelete => 1,
            Stage::Redemption => 2,
            Stage::Released => 3,
        };
        (place, Some(release))
    }
}

/// Approximate cost of looking up a whole watchlist, in microseconds, for [`work::run`].
pub fn watches_cost_us(owned: &UserData) -> u32 {
    work::cost_us(owned.watch_count(), LOOKUP_US)
}

/// The whole list joined with `index` and `store`, sorted.
pub fn sorted_rows(
    owned: &UserData,
    index: &Index,
    store: &Store,
    as_of: AsOf,
    sort: WatchSort,
) -> Vec<WatchRow> {
    let mut rows = WatchRow::all(owned.watches().collect(), owned, index, store, as_of);
    sort.sort(&mut rows);
    rows
}

named_enum! {
    /// Whether a watched name is in the corpus.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum WatchSource {
        Corpus = "corpus",
        External = "external",
    }
}

/// A watched name. Facts from the corpus are `null` for an external name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WatchEntry)]
pub struct WatchResponse<'a> {
    #[schema(value_type = String)]
    domain: &'a DomainName,
    source: WatchSource,
    #[schema(required)]
    rdap_observed_state: Option<&'static str>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    rdap_verified_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = Date, required)]
    latest_drop_date: Option<Day>,
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 100, required)]
    dqs: Option<Dqs>,
    #[schema(value_type = Option<String>, required)]
    stage: Option<Stage>,
    /// The day the registry releases the name, or did.
    #[schema(value_type = Option<String>, format = Date, required)]
    release_date: Option<Day>,
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
    /// States that the registry reported before, oldest first.
    rdap_former_states: Vec<FormerStateResponse>,
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
    fn new(row: &'a WatchRow) -> WatchResponse<'a> {
        WatchResponse {
            domain: row.name(),
            source: row.source(),
            rdap_observed_state: row.rdap().map(|(state, _)| state.as_str()),
            rdap_verified_at: row.rdap().map(|(_, at)| Timestamp(at)),
            latest_drop_date: row.latest_drop(),
            dqs: row.dqs(),
            stage: row.stage(),
            release_date: row.stage_and_release().map(|(_, release)| release),
            added_at: Timestamp(row.added_at()),
            note: row.details.note.as_deref(),
            tags: &row.details.tags,
            max_bid_usd: row.details.max_bid.map(Money),
            venue: row.details.venue.as_deref(),
            alerts: row.alerts.as_deref().map(EntryAlertsResponse::new),
            rdap_former_states: row.former.iter().map(FormerStateResponse::new).collect(),
        }
    }
}

impl FormerStateResponse {
    fn new(former: &FormerState) -> FormerStateResponse {
        let FormerState { state, last_seen } = *former;
        FormerStateResponse { state: state.as_str(), last_seen_at: Timestamp(last_seen) }
    }
}

/// Counts over the whole list.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = WatchSummary)]
pub struct Summary {
    #[schema(value_type = u32)]
    pub total: usize,
    /// Names that are not in the corpus.
    #[schema(value_type = u32)]
    pub external: usize,
    /// Names registered again since they were added.
    #[schema(value_type = u32)]
    pub renewed: usize,
    /// Names that RDAP can verify.
    #[schema(value_type = u32)]
    pub checkable: usize,
}

impl Summary {
    /// Counts `rows`, which are the whole list.
    pub fn new(rows: &[WatchRow], bootstrap: &Bootstrap) -> Summary {
        let count = |is: &dyn Fn(&WatchRow) -> bool| rows.iter().filter(|row| is(row)).count();
        Summary {
            total: rows.len(),
            external: count(&WatchRow::is_external),
            renewed: count(&WatchRow::is_renewed),
            checkable: count(&|row| bootstrap.is_checkable(row.name())),
        }
    }
}

/// A page of the watchlist.
#[derive(Serialize, ToSchema)]
#[schema(as = Watchlist)]
pub struct WatchlistResponse<'a> {
    #[schema(value_type = u32)]
    count: usize,
    limit: u32,
    offset: u32,
    sort: WatchSort,
    /// Entries that match the filters, on all pages.
    #[schema(value_type = u32)]
    matches: usize,
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
    /// Added to the tags that a name has.
    #[schema(max_items = 10)]
    tags: Option<Vec<String>>,
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1000000000, multiple_of = 0.01)]
    max_bid_usd: Option<Money>,
    #[schema(min_length = 1, max_length = 60)]
    venue: Option<String>,
    /// Alert settings of these names, in place of those of the watchlist.
    #[schema(value_type = Option<EntryAlertsRequest>)]
    alerts: Option<Object<EntryAlertsRequest>>,
}

/// Result for one name of a batch.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchBatchResult)]
pub struct BatchResult {
    /// The name in its canonical form, or as sent if it is invalid.
    domain: String,
    /// `added`, `existing` or `refused`.
    outcome: &'static str,
    /// Why it was refused.
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
    /// The changes as they are meant. `channels` are those of the account.
    fn parse(self, channels: &[Channel]) -> Result<WatchPatch, ApiError> {
        let tags = self.tags.try_map(tags)?.nested().map(Option::unwrap_or_default);
        Ok(WatchPatch {
            note: self.note.nested(),
            tags: tags.map(Tags::Replace),
            max_bid: self.max_bid_usd.try_map(|Money(price)| Ok(price))?.nested(),
            venue: self.venue.nested(),
            alerts: self.alerts.try_map(|Object(alerts)| alerts.parse(channels))?.nested(),
        })
    }
}

/// `GET /api/v1/watchlist`: the caller's watchlist.
pub async fn list_watches(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let WatchQuery { filter, sort, page } =
        WatchQuery::parse(Params::new(query.as_deref()), LIMITS)?;
    let (owned, index, as_of) = (app.store.user_data(&caller), app.live.current(), app.as_of(now));
    let (bootstrap, store) = (app.reach.bootstrap.current(), app.store.clone());
    let body = work::run(watches_cost_us(&owned), move || {
        let mut rows = sorted_rows(&owned, &index, &store, as_of, sort);
        let summary = Summary::new(&rows, &bootstrap);
        rows.retain(|row| filter.passes(row));
        let watchlist: Vec<_> = page.rows(rows.iter()).map(WatchResponse::new).collect();
        json::json_bytes(&WatchlistResponse {
            count: watchlist.len(),
            limit: page.limit,
            offset: page.offset,
            sort,
            matches: rows.len(),
            summary,
            watchlist,
        })
    });
    Ok(json::json_response(body.await?))
}

/// `POST /api/v1/watchlist`: adds a name to the list; 200 when it is already there.
pub async fn add_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    PostBody { body, post }: PostBody<WatchRequest>,
) -> Result<Response, ApiError> {
    let text = required(body.domain_name, "domainName")?;
    let name = DomainName::parse_or_address(&text)
        .map_err(|err| ApiError::parameter("domainName", err))?;
    let mut looked_up = look_up(&app, &caller, vec![(name, WatchPatch::default())], now).await?;
    let LookedUp { watch, facts } = looked_up.pop().expect("one name was looked up");
    let seen = app.store.observed([&watch.name]).pop().expect("one name was looked up");
    let owned = app.store.user_data(&caller);
    let details = owned.watch_details(&watch.name).map(Arc::clone);
    let alerts = owned.entry_alerts(&watch.name).map(Arc::clone);
    drop(owned);
    let draft = app.store.add_watch(&caller, watch, post).await?;
    let receipt = |(entry, outcome): &(WatchEntry, Outcome)| {
        let status = match outcome {
            Outcome::Added => StatusCode::CREATED,
            Outcome::AlreadyThere => StatusCode::OK,
        };
        let (details, alerts) = (details.as_ref(), alerts.as_ref());
        let row = WatchRow::new(entry.clone(), details, alerts, facts, seen.clone());
        response::receipt(status, &WatchResponse::new(&row))
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
) -> Result<Response, ApiError> {
    let Path(name) =
        name.map_err(|_| ApiError::parameter("domain", "is not percent-encoded UTF-8"))?;
    let name =
        DomainName::parse_or_address(&name).map_err(|err| ApiError::parameter("domain", err))?;
    let owned = app.store.user_data(&caller);
    let patch = body.parse(channels(&app, &caller, &owned, now))?;
    let (entry, details) = app.store.change_watch(&caller, &name, &patch).await?;
    let facts = app.live.current().facts(&name, app.as_of(now));
    let seen = app.store.observed([&name]).pop().expect("one name was looked up");
    let owned = app.store.user_data(&caller);
    let details = Arc::new(details);
    let row = WatchRow::new(entry, Some(&details), owned.entry_alerts(&name), facts, seen);
    Ok(Json(WatchResponse::new(&row)).into_response())
}

/// `POST /api/v1/watchlist/batch`: adds 1 to 1,000 names, each as if it came alone.
pub async fn add_batch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    PostBody { body, post }: PostBody<WatchBatchRequest>,
) -> Result<Response, ApiError> {
    let texts = required(body.domain_names, "domainNames")?;
    let parsed = parse_names(&texts, "domainNames")?;
    let owned = app.store.user_data(&caller);
    let channels = channels(&app, &caller, &owned, now);
    let patch = WatchPatch {
        note: None,
        tags: body.tags.map(tags).transpose()?.map(Tags::Add),
        max_bid: body.max_bid_usd.map(|price| Some(price.0)),
        venue: body.venue.map(Some),
        alerts: body.alerts.map(|Object(alerts)| alerts.parse(channels)).transpose()?.map(Some),
    };
    // What is wrong with the notes is wrong for every name.
    patch.applied(None)?;
    let names = parsed.iter().flatten().map(|name| (name.clone(), patch.clone())).collect();
    let watches = to_watch(&app, &caller, names, now).await?;
    let draft = app.store.draft_watches(&caller, watches, post).await?;
    let draft = draft.map(|outcomes| BatchResponse::new(texts, parsed, outcomes));
    let receipt = |batch: &BatchResponse| response::receipt(StatusCode::OK, batch);
    Ok(response::posted(draft.respond(receipt).await?))
}

impl BatchResponse {
    /// `outcomes` are those of the valid names, in order.
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

/// A name to watch, and its facts in the index.
struct LookedUp {
    watch: Watch,
    facts: Option<NameFacts>,
}

impl LookedUp {
    fn new((name, patch): (DomainName, WatchPatch), index: &Index, as_of: AsOf) -> LookedUp {
        let facts = index.facts(&name, as_of);
        let watch = Watch {
            name,
            in_corpus: facts.is_some(),
            registered_again: facts.is_some_and(|facts| facts.registered_again),
            arrived: Vec::new(),
            patch,
        };
        LookedUp { watch, facts }
    }
}

/// Looks up names that are to be watched.
async fn look_up(
    app: &App,
    caller: &Caller,
    names: Vec<(DomainName, WatchPatch)>,
    now: Now,
) -> Result<Vec<LookedUp>, ApiError> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let searched = Arc::clone(&index);
    let mut looked_up: Vec<LookedUp> =
        work::run(work::cost_us(names.len(), LOOKUP_US), move || {
            Ok(names.into_iter().map(|name| LookedUp::new(name, &searched, as_of)).collect())
        })
        .await?;
    // An external name uses quota, and external names that have since entered the corpus free some.
    if let Some(external) = looked_up.iter_mut().find(|name| name.facts.is_none()) {
        let owned = app.store.user_data(caller);
        let arrived = work::run(watches_cost_us(&owned), move || {
            Ok(owned.external_names().filter(|name| index.holds(name)).collect())
        });
        external.watch.arrived = arrived.await?;
    }
    Ok(looked_up)
}

/// Adds names with their notes to the caller's watchlist, at most
/// [`WATCHES_PASTED_MAX`](crate::vocab::limits::WATCHES_PASTED_MAX). Returns one outcome per name.
///
/// # Errors
/// Failures that affect all names: the journal refuses writes.
pub async fn watch_all(
    app: &App,
    caller: &Caller,
    names: Vec<(DomainName, WatchPatch)>,
    now: Now,
) -> Result<Vec<Result<Outcome, WriteError>>, ApiError> {
    let watches = to_watch(app, caller, names, now).await?;
    Ok(app.store.add_watches(caller, watches, now.0).await?)
}

async fn to_watch(
    app: &App,
    caller: &Caller,
    names: Vec<(DomainName, WatchPatch)>,
    now: Now,
) -> Result<Vec<Watch>, ApiError> {
    let looked_up = look_up(app, caller, names, now).await?;
    Ok(looked_up.into_iter().map(|name| name.watch).collect())
}

/// `DELETE /api/v1/watchlist?domain=`: removes a name from the list.
pub async fn remove_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Json<RemovedWatch>, ApiError> {
    let domain = Params::new(query.as_deref()).domain("domain")?;
    app.store.remove_watch(&caller, &domain).await?;
    Ok(Json(RemovedWatch { domain, removed: true }))
}
