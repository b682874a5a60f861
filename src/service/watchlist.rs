//! The names that a caller watches, joined with the index on reading.

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::{
    Caller, Channel, Draft, EntryAlerts, NearRelease, Outcome, Post, Store, UserData, Watch,
    WatchDetails, WatchEntry, WatchPatch, WriteError,
};
use crate::app::{App, Now};
use crate::checks::Checked;
use crate::error::ApiError;
use crate::index::filter::AsOf;
use crate::index::{Index, NameFacts};
use crate::query::params::{Limits, Paging, Params};
use crate::vocab::budget;
use crate::vocab::change::ChangeKind;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{ENTRIES_OFFSET_MAX, VENUE_CHARS_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::observation::{FormerState, Observation, RdapState};
use crate::vocab::rdap::Bootstrap;
use crate::vocab::release_time::{Release, ReleaseTime};
use crate::vocab::stage::Stage;
use crate::vocab::tag::Tag;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;
use crate::work;

/// Approximate cost of looking up one name, in microseconds.
pub const LOOKUP_US: usize = 1;

named_enum! {
    /// Sort order of a watchlist.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum WatchSort {
        /// Names that can be caught soonest come first: by stage, then effective release, its
        /// hour, score and name.
        #[default]
        Lifecycle = "lifecycle",
        Name = "name",
        /// Highest score first; names without a score last.
        Dqs = "dqs",
        /// Newest first.
        Added = "added",
        /// Soonest release first, then the highest score; names without a release last.
        Release = "release",
        /// Highest maximum bid first; names without one last.
        Bid = "bid",
        /// In order of venue; names without a venue last.
        Venue = "venue",
    }
}

parse_named!(WatchSort);

impl WatchSort {
    /// Sorts `rows`, which are in name order. Sorting is stable, so ties stay in name order.
    fn sort(self, rows: &mut [WatchRow]) {
        match self {
            WatchSort::Lifecycle => rows.sort_by_cached_key(|row| (row.place(), row.soonest())),
            WatchSort::Name => {}
            WatchSort::Dqs => rows.sort_by_key(|row| Reverse(row.dqs())),
            WatchSort::Added => rows.sort_by_key(|row| Reverse(row.entry.added_at)),
            WatchSort::Release => rows.sort_by_cached_key(WatchRow::soonest),
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
    /// The name has one of these tags, ignoring case; empty for all.
    pub tags: Vec<Tag>,
    pub venue: Option<String>,
    pub bid: Option<HasBid>,
    /// Today's stage is one of these; empty for all.
    pub stages: Vec<Stage>,
}

impl WatchFilter {
    /// Whether a name meets all conditions.
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
    pub page: Paging,
}

impl WatchQuery {
    /// Parses a query string.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn parse(params: Params<'_>, limits: Limits) -> Result<WatchQuery, ApiError> {
        Ok(WatchQuery {
            filter: WatchFilter {
                tags: params.list("tag")?,
                venue: params.text("venue", VENUE_CHARS_MAX)?,
                bid: params.one("bid")?,
                stages: params.list("stage")?,
            },
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
    /// The owner's alert settings for the name.
    alerts: Option<Arc<EntryAlerts>>,
}

impl WatchRow {
    /// Joins an entry with its facts. An observation that is older than the entry was made for
    /// another account. The observation is hidden, because it would reveal that another account
    /// watches the name.
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

    /// Joins an entry of the account `owned` with the given facts.
    fn of(
        entry: WatchEntry,
        owned: &UserData,
        facts: Option<NameFacts>,
        seen: (Option<Observation>, Vec<FormerState>),
    ) -> WatchRow {
        let (details, alerts) = (owned.watch_details(&entry.name), owned.entry_alerts(&entry.name));
        WatchRow::new(entry, details, alerts, facts, seen)
    }

    /// Joins `entries` of the account `owned` with the current `index` and `store`, in the given order.
    pub fn all(
        entries: Vec<WatchEntry>,
        owned: &UserData,
        index: &Index,
        store: &Store,
        as_of: AsOf,
    ) -> Vec<WatchRow> {
        WatchRow::joined(entries, owned, store, |name| index.facts(name, as_of))
    }

    /// Returns the watchlist of the account without what an index says about the names.
    pub fn without_index(owned: &UserData, store: &Store) -> Vec<WatchRow> {
        WatchRow::joined(owned.watches().collect(), owned, store, |_| None)
    }

    fn joined(
        entries: Vec<WatchEntry>,
        owned: &UserData,
        store: &Store,
        facts: impl Fn(&DomainName) -> Option<NameFacts>,
    ) -> Vec<WatchRow> {
        let seen = store.observed(entries.iter().map(|entry| &entry.name));
        let row = |(entry, seen): (WatchEntry, _)| {
            let facts = facts(&entry.name);
            WatchRow::of(entry, owned, facts, seen)
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

    /// The owner's alert settings for the name; `None` if the settings of the account apply.
    pub fn alerts(&self) -> Option<&EntryAlerts> {
        self.alerts.as_deref()
    }

    /// Earlier observed states, oldest first.
    pub fn former(&self) -> &[FormerState] {
        &self.former
    }

    /// Source of the facts about the name.
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
        self.facts.and_then(|facts| facts.stage)
    }

    /// The effective release of the latest drop; `None` if the name was registered again.
    pub fn release(&self) -> Option<Release> {
        self.stage().and(self.latest_release())
    }

    /// The effective release of the latest drop, even if the name was registered again.
    pub fn latest_release(&self) -> Option<Release> {
        self.facts.and_then(|facts| facts.release)
    }

    /// When the latest drop is or was released; `None` if the name was registered again.
    pub fn release_time(&self) -> Option<ReleaseTime> {
        self.release().map(|release| ReleaseTime::of(self.name().tld(), release))
    }

    /// When it was added.
    pub fn added_at(&self) -> UnixMs {
        self.entry.added_at
    }

    /// The last observation.
    pub fn seen(&self) -> Option<&Observation> {
        self.seen.as_ref()
    }

    /// The last observed state, and when it was observed.
    pub fn rdap(&self) -> Option<(RdapState, UnixMs)> {
        self.seen.map(|seen| (seen.state, seen.at))
    }

    /// Whether the name is not in the index now, and was not when it was added. External names use
    /// quota.
    pub fn is_external(&self) -> bool {
        self.entry.external && self.facts.is_none()
    }

    /// Whether a list or the registry has reported, since it was added, that the name is registered
    /// again.
    pub fn is_renewed(&self) -> bool {
        let listed = self.facts.is_some_and(|facts| facts.registered_again);
        let seen = self.seen.is_some_and(|seen| {
            matches!(seen.state, RdapState::Renewed | RdapState::RegisteredAgain)
        });
        (listed || seen) && !self.entry.registered_again
    }

    /// Sort key: catchable names first, names without a stage last.
    fn place(&self) -> u8 {
        match self.stage() {
            Some(Stage::Catchable) => 0,
            Some(Stage::PendingDelete) => 1,
            Some(Stage::Redemption) => 2,
            Some(Stage::Released) => 3,
            None => 4,
        }
    }

    /// Sort key: soonest release first, then the highest score. A release without an hour counts from the
    /// start of its day; names without a release come last.
    fn soonest(&self) -> impl Ord + use<> {
        let release = self.release().map(|release| {
            let at = ReleaseTime::of(self.name().tld(), release).at;
            let at = at.map_or(release.day.start(), UnixMs::instant);
            (release.day, at, Reverse(self.dqs()))
        });
        (release.is_none(), release)
    }
}

/// Approximate cost of looking up the whole watchlist, in microseconds, for [`work::run`].
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

/// Returns the channels that alerts can use. Until settings are saved, the only channel is mail, if
/// mail can be sent.
pub fn usable_channels<'a>(
    app: &App,
    caller: &Caller,
    owned: &'a UserData,
    now: Now,
) -> &'a [Channel] {
    let all = owned.watch_sender().rule.channels.as_slice();
    let is_mailed = || {
        let profile = app.store.profile(caller, now.0);
        app.reach.channels.email && profile.is_some_and(|profile| profile.is_verified)
    };
    if owned.has_watch_sender() || is_mailed() { all } else { &[] }
}

/// Numbers of names whose owner set another value than the one that a change of several names sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overwrites {
    /// Names with any such value.
    pub names: usize,
    pub bids: usize,
    /// Names whose present bid is higher than the new one.
    pub higher_bids: usize,
    pub notes: usize,
    pub venues: usize,
}

impl Overwrites {
    /// Counts the values of an account that these changes replace. Tags are only added.
    pub fn new<'a>(
        owned: &UserData,
        changes: impl Iterator<Item = (&'a DomainName, &'a WatchPatch)>,
    ) -> Overwrites {
        let is_other = |now: Option<&str>, new: &Option<Option<String>>| {
            now.is_some() && new.as_ref().is_some_and(|new| new.as_deref() != now)
        };
        let mut counts = Overwrites::default();
        for (name, patch) in changes {
            let Some(now) = owned.watch_details(name) else { continue };
            let new_bid = patch.max_bid.filter(|new| *new != now.max_bid);
            let bid = now.max_bid.is_some() && new_bid.is_some();
            let note = is_other(now.note.as_deref(), &patch.note);
            let venue = is_other(now.venue.as_deref(), &patch.venue);
            counts.names += usize::from(bid || note || venue);
            counts.bids += usize::from(bid);
            counts.higher_bids += usize::from(bid && now.max_bid > new_bid.flatten());
            counts.notes += usize::from(note);
            counts.venues += usize::from(venue);
        }
        counts
    }
}

/// A name to watch, with its facts from the index.
struct LookedUp {
    watch: Watch,
    facts: Option<NameFacts>,
}

impl LookedUp {
    fn new(
        (name, patch): (DomainName, WatchPatch),
        index: &Index,
        as_of: AsOf,
        tell: Option<bool>,
    ) -> LookedUp {
        let facts = index.facts(&name, as_of);
        let change = facts.and_then(|facts| near_release(&name, &facts, as_of.today));
        let near = tell.zip(change).map(|(has_mail, change)| NearRelease { change, has_mail });
        let watch = Watch {
            name,
            in_corpus: facts.is_some(),
            registered_again: facts.is_some_and(|facts| facts.registered_again),
            arrived: Vec::new(),
            patch,
            near,
        };
        LookedUp { watch, facts }
    }
}

/// Returns the change by the calendar that a name with a release today or tomorrow had today.
fn near_release(name: &DomainName, facts: &NameFacts, today: Day) -> Option<WatchedChange> {
    let release = facts.stage.and(facts.release)?.day;
    let kind = match release.days_since(today) {
        0 => ChangeKind::DropsToday,
        1 => ChangeKind::DropsTomorrow,
        _ => return None,
    };
    let (name, dqs) = (name.clone(), Some(facts.dqs));
    Some(WatchedChange { kind, name, day: today, verified: false, dqs, dqs_before: None })
}

/// Looks up names to watch.
async fn look_up_all(
    app: &App,
    caller: &Caller,
    names: Vec<(DomainName, WatchPatch)>,
    now: Now,
) -> Result<Vec<LookedUp>, ApiError> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let searched = Arc::clone(&index);
    // The match reports changes that are not matched yet.
    let is_matched = app.store.changes_matched() == Some(app.changes.newest());
    let tell = is_matched.then_some(app.reach.channels.email);
    let mut looked_up: Vec<LookedUp> =
        work::run(work::cost_us(names.len(), LOOKUP_US), move || {
            Ok(names.into_iter().map(|name| LookedUp::new(name, &searched, as_of, tell)).collect())
        })
        .await?;
    // An external name uses quota. External names that have entered the corpus since then are
    // therefore found first, which frees their quota.
    if let Some(external) = looked_up.iter_mut().find(|name| name.facts.is_none()) {
        let owned = app.store.user_data(caller);
        let arrived = work::run(watches_cost_us(&owned), move || {
            Ok(owned.external_names().filter(|name| index.holds(name)).collect())
        });
        external.watch.arrived = arrived.await?;
    }
    Ok(looked_up)
}

/// Adds up to [`WATCHES_PASTED_MAX`](crate::vocab::limits::WATCHES_PASTED_MAX) names with their
/// notes to the caller's watchlist. Returns one outcome per name.
///
/// # Errors
/// The journal refuses writes, which affects all names.
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
    let looked_up = look_up_all(app, caller, names, now).await?;
    Ok(looked_up.into_iter().map(|name| name.watch).collect())
}

/// Looks up a name to watch.
async fn look_up(
    app: &App,
    caller: &Caller,
    name: DomainName,
    patch: WatchPatch,
    now: Now,
) -> Result<LookedUp, ApiError> {
    let mut found = look_up_all(app, caller, vec![(name, patch)], now).await?;
    Ok(found.pop().expect("one name was looked up"))
}

/// Returns the newest observation of a name that an account may see: of a name on its watchlist, or of a
/// check that it asked for. Others would reveal who watches the name.
pub fn seen_by(app: &App, caller: &Caller, name: &DomainName) -> Option<Observation> {
    let is_watched = app.store.user_data(caller).watch(name).is_some();
    let watched = is_watched.then(|| observed(app, name).0).flatten();
    let checks = app.reach.checks.as_ref();
    let checked = match checks.and_then(|checks| checks.result(caller.account, name)) {
        Some(Checked::Seen(seen)) => Some(seen),
        Some(Checked::Failed) | None => None,
    };
    [watched, checked].into_iter().flatten().max_by_key(|seen| seen.at)
}

/// The known registry state of a name, and its earlier states.
fn observed(app: &App, name: &DomainName) -> (Option<Observation>, Vec<FormerState>) {
    app.store.observed([name]).pop().expect("one name was looked up")
}

/// Adds a name to the caller's watchlist.
///
/// # Errors
/// The plan's limit is reached, or the write fails.
pub async fn add<'a>(
    app: &'a App,
    caller: &Caller,
    name: DomainName,
    now: Now,
    post: Post,
) -> Result<Draft<'a, (WatchRow, Outcome)>, ApiError> {
    let LookedUp { watch, facts } = look_up(app, caller, name, WatchPatch::default(), now).await?;
    let seen = observed(app, &watch.name);
    // Only parts are kept: holding the whole account would force the write to copy it.
    let owned = app.store.user_data(caller);
    let details = owned.watch_details(&watch.name).map(Arc::clone);
    let alerts = owned.entry_alerts(&watch.name).map(Arc::clone);
    drop(owned);
    let draft = app.store.add_watch(caller, watch, post).await?;
    Ok(draft.map(|(entry, outcome)| {
        (WatchRow::new(entry, details.as_ref(), alerts.as_ref(), facts, seen), outcome)
    }))
}

/// Adds a name with its notes, or changes the notes of one that is watched.
///
/// # Errors
/// The plan's limit is reached, a note is refused, or the write fails.
pub async fn watch(
    app: &App,
    caller: &Caller,
    name: DomainName,
    patch: WatchPatch,
    now: Now,
) -> Result<Outcome, ApiError> {
    let mut outcomes = watch_all(app, caller, vec![(name, patch)], now).await?;
    Ok(outcomes.pop().expect("one name has one outcome")?)
}

/// Changes the notes of a watched name.
///
/// # Errors
/// The name is not watched, a note is refused, or the write fails.
pub async fn change(
    app: &App,
    caller: &Caller,
    name: &DomainName,
    patch: &WatchPatch,
    now: Now,
) -> Result<WatchRow, ApiError> {
    let (entry, details) = app.store.change_watch(caller, name, patch).await?;
    let facts = app.live.current().facts(name, app.as_of(now));
    let owned = app.store.user_data(caller);
    let (details, alerts) = (Arc::new(details), owned.entry_alerts(name));
    Ok(WatchRow::new(entry, Some(&details), alerts, facts, observed(app, name)))
}

/// Adds names with their notes, each as if it were the only one.
///
/// # Errors
/// A failure that affects all names.
pub async fn draft_all<'a>(
    app: &'a App,
    caller: &Caller,
    names: Vec<(DomainName, WatchPatch)>,
    now: Now,
    post: Post,
) -> Result<Draft<'a, Vec<Result<Outcome, WriteError>>>, ApiError> {
    let watches = to_watch(app, caller, names, now).await?;
    Ok(app.store.draft_watches(caller, watches, post).await?)
}
