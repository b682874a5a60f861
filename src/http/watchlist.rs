//! `/api/v1/watchlist`: the names that the caller watches, joined with the index when they are read.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{Caller, Outcome, Store, UserData, Watch, WatchEntry, WriteError};
use crate::http::allowance::Now;
use crate::http::body::{PostBody, required};
use crate::http::error::ApiError;
use crate::http::params::{Limits, Page, Params};
use crate::http::response::{self, Timestamp};
use crate::http::{App, work};
use crate::index::filter::AsOf;
use crate::index::{Index, NameFacts};
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{ENTRIES_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::observation::{Observation, RdapState};
use crate::vocab::rdap::Bootstrap;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Approximate cost of looking up one name, in microseconds.
const LOOKUP_US: usize = 1;

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
        }
    }
}

/// Sort order and page of a watchlist.
#[derive(Clone, Copy, Debug)]
pub struct WatchQuery {
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
}

impl WatchRow {
    /// Joins an entry with its facts. An observation older than the entry was made for another account
    /// and is hidden: it would reveal that another account watches the name.
    fn new(entry: WatchEntry, facts: Option<NameFacts>, seen: Option<Observation>) -> WatchRow {
        let seen = seen.filter(|seen| seen.at >= entry.added_at);
        WatchRow { entry, facts, seen }
    }

    /// Joins `entries` with the current `index` and `store`, in the given order.
    pub fn all(
        entries: Vec<WatchEntry>,
        index: &Index,
        store: &Store,
        as_of: AsOf,
    ) -> Vec<WatchRow> {
        let seen = store.observations(entries.iter().map(|entry| &entry.name));
        let row = |(entry, seen): (WatchEntry, _)| {
            let facts = index.facts(&entry.name, as_of);
            WatchRow::new(entry, facts, seen)
        };
        entries.into_iter().zip(seen).take_while(|_| !budget::spent()).map(row).collect()
    }

    /// The name.
    pub fn name(&self) -> &DomainName {
        &self.entry.name
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
    let mut rows = WatchRow::all(owned.watches().collect(), index, store, as_of);
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
        }
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

/// `GET /api/v1/watchlist`: the caller's watchlist.
pub async fn list_watches(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let WatchQuery { sort, page } = WatchQuery::parse(Params::new(query.as_deref()), LIMITS)?;
    let (owned, index, as_of) = (app.store.user_data(&caller), app.live.current(), app.as_of(now));
    let (bootstrap, store) = (app.bootstrap.current(), app.store.clone());
    let body = work::run(watches_cost_us(&owned), move || {
        let rows = sorted_rows(&owned, &index, &store, as_of, sort);
        let watchlist: Vec<_> = page.rows(rows.iter()).map(WatchResponse::new).collect();
        work::json_bytes(&WatchlistResponse {
            count: watchlist.len(),
            limit: page.limit,
            offset: page.offset,
            sort,
            summary: Summary::new(&rows, &bootstrap),
            watchlist,
        })
    });
    Ok(work::json_response(body.await?))
}

/// `POST /api/v1/watchlist`: adds a name to the list; 200 when it is already there.
pub async fn add_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    PostBody { body, post }: PostBody<WatchRequest>,
) -> Result<Response, ApiError> {
    let text = required(body.domain_name, "domainName")?;
    let name = DomainName::parse(&text).map_err(|err| ApiError::parameter("domainName", err))?;
    let mut looked_up = look_up(&app, &caller, vec![name], now).await?;
    let LookedUp { watch, facts } = looked_up.pop().expect("one name was looked up");
    let seen = app.store.observations([&watch.name]).pop().flatten();
    let draft = app.store.add_watch(&caller, watch, post).await?;
    let reply = |(entry, outcome): &(WatchEntry, Outcome)| {
        let status = match outcome {
            Outcome::Added => StatusCode::CREATED,
            Outcome::AlreadyThere => StatusCode::OK,
        };
        let row = WatchRow::new(entry.clone(), facts, seen);
        response::reply(status, &WatchResponse::new(&row))
    };
    Ok(response::posted(draft.respond(reply).await?))
}

/// A name to watch, and its facts in the index.
struct LookedUp {
    watch: Watch,
    facts: Option<NameFacts>,
}

impl LookedUp {
    fn new(name: DomainName, index: &Index, as_of: AsOf) -> LookedUp {
        let facts = index.facts(&name, as_of);
        let watch = Watch {
            name,
            in_corpus: facts.is_some(),
            registered_again: facts.is_some_and(|facts| facts.registered_again),
            arrived: Vec::new(),
        };
        LookedUp { watch, facts }
    }
}

/// Looks up names that are to be watched.
async fn look_up(
    app: &App,
    caller: &Caller,
    names: Vec<DomainName>,
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

/// Adds names to the caller's watchlist, at most
/// [`WATCHES_PASTED_MAX`](crate::vocab::limits::WATCHES_PASTED_MAX). Returns one outcome per name.
///
/// # Errors
/// Failures that affect all names: the journal refuses writes.
pub async fn watch_all(
    app: &App,
    caller: &Caller,
    names: Vec<DomainName>,
    now: Now,
) -> Result<Vec<Result<Outcome, WriteError>>, ApiError> {
    let looked_up = look_up(app, caller, names, now).await?;
    let watches = looked_up.into_iter().map(|name| name.watch).collect();
    Ok(app.store.add_watches(caller, watches, now.0).await?)
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
