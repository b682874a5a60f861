//! `/api/v1/watchlist`: names the caller watches, joined with what the index says of them
//! (api.md; decisions.md §5).

use std::cmp::Reverse;
use std::str::FromStr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::accounts::{Caller, Outcome, Store, UserData, Watch, WatchEntry, WriteError};
use crate::http::allowance::Now;
use crate::http::answer::{self, Timestamp};
use crate::http::body::{PostBody, required};
use crate::http::error::ApiError;
use crate::http::params::{Limits, Page, Params};
use crate::http::{App, work};
use crate::index::filter::Moment;
use crate::index::{Index, NameFacts};
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{ENTRIES_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::observation::{Observation, RdapState};
use crate::vocab::rdap::Bootstrap;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Microseconds that one look-up of a name takes, about.
const LOOKUP_US: usize = 1;

/// The order of a watchlist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchSort {
    /// What is to be caught first: stage, then effective release, then name.
    #[default]
    Lifecycle,
    Name,
    /// Best first; names without a score last.
    Dqs,
    /// Newest first.
    Added,
}

impl WatchSort {
    /// All of them.
    pub const ALL: [WatchSort; 4] =
        [WatchSort::Lifecycle, WatchSort::Name, WatchSort::Dqs, WatchSort::Added];

    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            WatchSort::Lifecycle => "lifecycle",
            WatchSort::Name => "name",
            WatchSort::Dqs => "dqs",
            WatchSort::Added => "added",
        }
    }

    /// Sorts `rows`, which come in order of names: that breaks ties.
    fn sort(self, rows: &mut [WatchRow]) {
        match self {
            WatchSort::Lifecycle => rows.sort_by_key(WatchRow::lifecycle),
            WatchSort::Name => {}
            WatchSort::Dqs => rows.sort_by_key(|row| Reverse(row.dqs())),
            WatchSort::Added => rows.sort_by_key(|row| Reverse(row.entry.added_at)),
        }
    }
}

/// A word that names no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of lifecycle, name, dqs, added")]
pub struct WatchSortError;

impl FromStr for WatchSort {
    type Err = WatchSortError;

    fn from_str(text: &str) -> Result<WatchSort, WatchSortError> {
        WatchSort::ALL.into_iter().find(|sort| sort.as_str() == text).ok_or(WatchSortError)
    }
}

/// Which entries, as a query means it.
#[derive(Clone, Copy, Debug)]
pub struct WatchQuery {
    pub sort: WatchSort,
    pub page: Page,
}

impl WatchQuery {
    /// The query of a query string.
    ///
    /// # Errors
    /// The first parameter that is not as it should be.
    pub fn parse(params: Params<'_>, limits: Limits) -> Result<WatchQuery, ApiError> {
        Ok(WatchQuery {
            sort: params.one("sort")?.unwrap_or_default(),
            page: params.page(limits, ENTRIES_OFFSET_MAX)?,
        })
    }
}

/// An entry and what the index says of its name.
#[derive(Clone, Debug)]
pub struct WatchRow {
    entry: WatchEntry,
    /// `None` for a name the index does not hold.
    facts: Option<NameFacts>,
    /// What its registry was last seen to say.
    seen: Option<Observation>,
}

impl WatchRow {
    /// An entry, what the index says of its name, and what was last seen of it. What was seen before
    /// it was put on this list was seen for somebody else, and is nothing to its owner.
    fn new(entry: WatchEntry, facts: Option<NameFacts>, seen: Option<Observation>) -> WatchRow {
        let seen = seen.filter(|seen| seen.at >= entry.added_at);
        WatchRow { entry, facts, seen }
    }

    /// Entries as `index` and `store` see them now, in their order.
    pub fn all(
        entries: Vec<WatchEntry>,
        index: &Index,
        store: &Store,
        moment: Moment,
    ) -> Vec<WatchRow> {
        let seen = store.observations(entries.iter().map(|entry| &entry.name));
        let row = |(entry, seen): (WatchEntry, _)| {
            let facts = index.facts(&entry.name, moment);
            WatchRow::new(entry, facts, seen)
        };
        entries.into_iter().zip(seen).take_while(|_| !budget::spent()).map(row).collect()
    }

    /// The name.
    pub fn name(&self) -> &DomainName {
        &self.entry.name
    }

    /// `corpus`, or `external` for a name that the index neither holds nor held when it was added.
    pub fn source(&self) -> &'static str {
        if self.is_external() { "external" } else { "corpus" }
    }

    /// The score; `None` for a name the index does not hold.
    pub fn dqs(&self) -> Option<Dqs> {
        self.facts.map(|facts| facts.dqs)
    }

    /// The date of the latest drop, where there is one.
    pub fn latest_drop(&self) -> Option<Day> {
        self.facts.and_then(|facts| facts.latest_drop)
    }

    /// The stage today; `None` for a name that never dropped, came back or is not held.
    pub fn stage(&self) -> Option<Stage> {
        self.facts.and_then(|facts| facts.stage).map(|(stage, _)| stage)
    }

    /// The same, with the effective release.
    pub fn stage_and_release(&self) -> Option<(Stage, Day)> {
        self.facts.and_then(|facts| facts.stage)
    }

    /// When it was put on the list.
    pub fn added_at(&self) -> UnixMs {
        self.entry.added_at
    }

    /// What the registry was last seen to say, and when.
    pub fn rdap(&self) -> Option<(RdapState, UnixMs)> {
        self.seen.map(|seen| (seen.state, seen.at))
    }

    /// Whether the index neither holds it nor held it when it was added: it costs quota.
    pub fn is_external(&self) -> bool {
        self.entry.external && self.facts.is_none()
    }

    /// Renewed or registered again since it was added, by a list or by its registry.
    pub fn is_renewed(&self) -> bool {
        let listed = self.facts.is_some_and(|facts| facts.registered_again);
        let seen = self.seen.is_some_and(|seen| {
            matches!(seen.state, RdapState::Renewed | RdapState::RegisteredAgain)
        });
        (listed || seen) && !self.entry.registered_again
    }

    /// What can be caught, then what can be next, and last what is out of reach.
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

/// Microseconds that looking up a whole watchlist takes, for [`work::run`].
pub fn watches_cost_us(owned: &UserData) -> u32 {
    cost_us(owned.watches().len())
}

fn cost_us(names: usize) -> u32 {
    u32::try_from(names * LOOKUP_US).unwrap_or(u32::MAX)
}

/// The whole list as `index` and `store` see it, in the order asked for.
pub fn sorted_rows(
    owned: &UserData,
    index: &Index,
    store: &Store,
    moment: Moment,
    sort: WatchSort,
) -> Vec<WatchRow> {
    let mut rows = WatchRow::all(owned.watches().collect(), index, store, moment);
    sort.sort(&mut rows);
    rows
}

/// A watchlist entry (api.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryAnswer<'a> {
    domain: &'a DomainName,
    source: &'static str,
    rdap_observed_state: Option<&'static str>,
    rdap_verified_at: Option<Timestamp>,
    latest_drop_date: Option<Day>,
    dqs: Option<Dqs>,
}

impl<'a> EntryAnswer<'a> {
    fn new(row: &'a WatchRow) -> EntryAnswer<'a> {
        EntryAnswer {
            domain: row.name(),
            source: row.source(),
            rdap_observed_state: row.rdap().map(|(state, _)| state.as_str()),
            rdap_verified_at: row.rdap().map(|(_, at)| Timestamp(at)),
            latest_drop_date: row.latest_drop(),
            dqs: row.dqs(),
        }
    }
}

/// Counts over a whole list (api.md).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    pub total: usize,
    pub external: usize,
    /// Renewed or registered again since they were added.
    pub renewed: usize,
    /// Those that a registry can be asked about.
    pub checkable: usize,
}

impl Summary {
    /// Of a whole list.
    pub fn of(rows: &[WatchRow], bootstrap: &Bootstrap) -> Summary {
        let count = |is: &dyn Fn(&WatchRow) -> bool| rows.iter().filter(|row| is(row)).count();
        Summary {
            total: rows.len(),
            external: count(&WatchRow::is_external),
            renewed: count(&WatchRow::is_renewed),
            checkable: count(&|row| bootstrap.is_checkable(row.name())),
        }
    }
}

/// The watchlist response (api.md).
#[derive(Serialize)]
struct WatchlistAnswer<'a> {
    count: usize,
    limit: u32,
    offset: u32,
    sort: &'static str,
    summary: Summary,
    watchlist: Vec<EntryAnswer<'a>>,
}

#[derive(Serialize)]
struct Removed {
    domain: DomainName,
    removed: bool,
}

/// A name to be watched, as sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WatchRequest {
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
    let (owned, index, moment) =
        (app.store.user_data(&caller), app.live.current(), app.moment(now));
    let (bootstrap, store) = (app.bootstrap.current(), app.store.clone());
    let body = work::run(watches_cost_us(&owned), move || {
        let rows = sorted_rows(&owned, &index, &store, moment, sort);
        let watchlist: Vec<_> = page.of(rows.iter()).map(EntryAnswer::new).collect();
        work::json_bytes(&WatchlistAnswer {
            count: watchlist.len(),
            limit: page.limit,
            offset: page.offset,
            sort: sort.as_str(),
            summary: Summary::of(&rows, &bootstrap),
            watchlist,
        })
    });
    Ok(work::json_response(body.await?))
}

/// `POST /api/v1/watchlist`: puts a name on the list; 200 when it was there.
pub async fn add_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    PostBody { body, post }: PostBody<WatchRequest>,
) -> Result<Response, ApiError> {
    let text = required(body.domain_name, "domainName")?;
    let name = DomainName::parse(&text).map_err(|err| ApiError::parameter("domainName", err))?;
    let mut found = found(&app, &caller, vec![name], now).await?;
    let Found { watch, facts } = found.pop().expect("one name was looked up");
    let seen = app.store.observations([&watch.name]).pop().flatten();
    let draft = app.store.add_watch(&caller, watch, post).await?;
    let reply = |(entry, outcome): &(WatchEntry, Outcome)| {
        let status = match outcome {
            Outcome::Added => StatusCode::CREATED,
            Outcome::AlreadyThere => StatusCode::OK,
        };
        let row = WatchRow::new(entry.clone(), facts, seen);
        answer::reply(status, &EntryAnswer::new(&row))
    };
    Ok(answer::posted(draft.respond(reply).await?, None))
}

/// A name to be watched, and what the index says of it.
struct Found {
    watch: Watch,
    facts: Option<NameFacts>,
}

impl Found {
    fn new(name: DomainName, index: &Index, moment: Moment) -> Found {
        let facts = index.facts(&name, moment);
        let watch = Watch {
            name,
            in_corpus: facts.is_some(),
            registered_again: facts.is_some_and(|facts| facts.registered_again),
            arrived: Vec::new(),
        };
        Found { watch, facts }
    }
}

/// Looks names up that are to be watched.
async fn found(
    app: &App,
    caller: &Caller,
    names: Vec<DomainName>,
    now: Now,
) -> Result<Vec<Found>, ApiError> {
    let (index, moment) = (app.live.current(), app.moment(now));
    let looked_up = Arc::clone(&index);
    let mut found: Vec<Found> = work::run(cost_us(names.len()), move || {
        Ok(names.into_iter().map(|name| Found::new(name, &looked_up, moment)).collect())
    })
    .await?;
    // A name the index does not hold consumes quota, and then it matters which of the others it
    // holds by now.
    if let Some(external) = found.iter_mut().find(|found| found.facts.is_none()) {
        let owned = app.store.user_data(caller);
        let arrived = work::run(watches_cost_us(&owned), move || {
            Ok(owned.external_names().filter(|name| index.holds(name)).collect())
        });
        external.watch.arrived = arrived.await?;
    }
    Ok(found)
}

/// Puts names on the caller's watchlist: what became of each. At most
/// [`WATCHES_PASTED_MAX`](crate::vocab::limits::WATCHES_PASTED_MAX).
///
/// # Errors
/// What keeps all of them out: nothing can be written.
pub async fn watch_all(
    app: &App,
    caller: &Caller,
    names: Vec<DomainName>,
    now: Now,
) -> Result<Vec<Result<Outcome, WriteError>>, ApiError> {
    let found = found(app, caller, names, now).await?;
    let watches = found.into_iter().map(|found| found.watch).collect();
    Ok(app.store.add_watches(caller, watches, now.0).await?)
}

/// `DELETE /api/v1/watchlist?domain=`: takes a name off the list.
pub async fn remove_watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let domain = Params::new(query.as_deref()).domain("domain")?;
    app.store.remove_watch(&caller, &domain).await?;
    Ok(work::json_response(work::json_bytes(&Removed { domain, removed: true })?))
}
