//! Watchlists and the quota of names outside the corpus (`data/docs/api.md`, Watchlist).

use std::collections::BTreeSet;
use std::slice;

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;

use super::data::account::Account;
use super::data::watch_alerts::EntryAlerts;
use super::data::watches::{WatchDetails, WatchEntry, WatchRow};
use super::decide::{Decided, check_text, invalid};
use super::error::{InvalidField, WriteError};
use super::event::{Event, RowOf};
use super::idempotency::{Draft, Post};
use super::store::{Caller, Store};
use super::watch_alerts::tell;
use crate::vocab::limits::{TAGS_MAX, VENUE_CHARS_MAX, WATCH_NOTE_CHARS_MAX, WATCHES_MAX};
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::plan::PlanLimits;
use crate::vocab::tag::Tag;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;

/// Maximum names marked as arrived per transaction: as many as fit a record at their longest. Only
/// with a quota far above today's plans can there be more external names; the next write then marks
/// the rest.
const ARRIVED_MAX: usize = 2_000;
/// Maximum names per transaction if their notes change: a record holds this many of the longest rows.
const NOTED_MAX: usize = 100;

/// A name to be watched, and facts about it from the index.
#[derive(Clone, Debug)]
pub struct Watch {
    pub name: DomainName,
    /// Whether the index holds the name. A name that the index lacks consumes quota.
    pub in_corpus: bool,
    /// Whether the name has been registered again since its last drop.
    pub registered_again: bool,
    /// External names of the watchlist that are now in the index. These names stop consuming quota
    /// before the quota is checked.
    pub arrived: Vec<DomainName>,
    /// Notes on the name, which are set even if it is already on the list.
    pub patch: WatchPatch,
    /// Change of today to be reported at once, because the release is near.
    pub near: Option<NearRelease>,
}

/// A release today or tomorrow.
#[derive(Clone, Debug)]
pub struct NearRelease {
    pub change: WatchedChange,
    /// Whether this server sends mail.
    pub has_mail: bool,
}

/// A change of the notes on a watched name. An outer `None` leaves a value unchanged; an inner
/// `None` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchPatch {
    /// At most 2,000 characters. An empty note counts as none.
    pub note: Option<Option<String>>,
    pub tags: Option<Tags>,
    pub max_bid: Option<Option<Usd>>,
    /// 1 to 60 characters on one line.
    pub venue: Option<Option<String>>,
    /// Alert settings of this name, which replace those of the account.
    pub alerts: Option<Option<EntryAlerts>>,
    /// Whether a note, bid or venue that is already set stays.
    pub keeps: bool,
}

/// A change of tags. A name has at most 10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    Replace(Vec<Tag>),
    Add(Vec<Tag>),
    Remove(Vec<Tag>),
}

impl WatchPatch {
    /// Returns the notes after the change.
    ///
    /// # Errors
    /// [`WriteError::Invalid`].
    pub fn applied(&self, before: Option<&WatchDetails>) -> Result<WatchDetails, WriteError> {
        let mut details = before.cloned().unwrap_or_default();
        let replaces = |is_set: bool| !(self.keeps && is_set);
        if let Some(note) = &self.note
            && replaces(details.note.is_some())
        {
            let note = note.as_deref().filter(|note| !note.is_empty());
            let bad = |char: char| char.is_control() && !matches!(char, '\n' | '\r' | '\t');
            check_text(
                InvalidField::Note,
                note.unwrap_or_default(),
                0..=WATCH_NOTE_CHARS_MAX,
                bad,
            )?;
            details.note = note.map(Box::from);
        }
        if let Some(venue) = &self.venue
            && replaces(details.venue.is_some())
        {
            details.venue = checked_venue(InvalidField::Venue, venue.as_deref())?;
        }
        if let Some(max_bid) = self.max_bid
            && replaces(details.max_bid.is_some())
        {
            details.max_bid = max_bid;
        }
        let (mut tags, new) = match &self.tags {
            None => return Ok(details),
            Some(Tags::Replace(new)) => (Vec::new(), new.as_slice()),
            Some(Tags::Add(new)) => (details.tags, new.as_slice()),
            Some(Tags::Remove(old)) => {
                details.tags.retain(|tag| !old.contains(tag));
                return Ok(details);
            }
        };
        for tag in new {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        if tags.len().max(new.len()) > TAGS_MAX {
            return Err(invalid(
                InvalidField::Tags,
                format!("a name may have at most {TAGS_MAX} tags"),
            ));
        }
        Ok(WatchDetails { tags, ..details })
    }
}

/// Checks the name of a venue.
pub(super) fn checked_venue(
    field: InvalidField,
    venue: Option<&str>,
) -> Result<Option<Box<str>>, WriteError> {
    let Some(venue) = venue else { return Ok(None) };
    check_text(field, venue, 1..=VENUE_CHARS_MAX, char::is_control)?;
    Ok(Some(venue.into()))
}

/// Outcome of adding a name to the watchlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Added,
    /// The name was already on the list; no quota was consumed.
    AlreadyThere,
}

/// The entry of a name to be added, or the reason for refusing it.
type Added = Result<(WatchEntry, Outcome), WriteError>;

impl Store {
    /// Adds a name to the watchlist.
    ///
    /// # Errors
    /// [`WriteError`]: no quota left for an external name, 10,000 entries, an idempotency key used
    /// before.
    pub async fn add_watch(
        &self,
        caller: &Caller,
        watch: Watch,
        post: Post,
    ) -> Result<Draft<'_, (WatchEntry, Outcome)>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, limits| {
            let Decided { events, mut value } =
                add_all(account, limits, slice::from_ref(&watch), now)?;
            Ok(Decided { events, value: value.pop().expect("one result for one name")? })
        })
        .await
    }

    /// Adds names to the watchlist, in their order, and returns a result for each. At most 1,000 names,
    /// which form one transaction unless they have notes.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: none was added, or only the first of those with notes.
    pub async fn add_watches(
        &self,
        caller: &Caller,
        new: Vec<Watch>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Result<Outcome, WriteError>>, WriteError> {
        self.draft_watches(caller, new, Post::repeatable(now)).await?.finish().await
    }

    /// As [`Store::add_watches`], for a POST that may have an idempotency key. The response for
    /// names with notes has its own transaction, which follows the transactions of the names. If
    /// the response is lost, a repeated request finds the names on the list.
    ///
    /// # Errors
    /// As [`Store::add_watches`], and an idempotency key used before.
    pub async fn draft_watches(
        &self,
        caller: &Caller,
        new: Vec<Watch>,
        post: Post,
    ) -> Result<Draft<'_, Vec<Result<Outcome, WriteError>>>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        let has_notes = new.iter().any(|watch| watch.patch != WatchPatch::default());
        let at_once = if has_notes { NOTED_MAX } else { new.len().max(1) };
        // A record has room for a response only if the names have no notes.
        let first = match post.idempotency.is_some() && has_notes {
            true => new.len(),
            false => new.len().saturating_sub(1) / at_once * at_once,
        };
        let (first, last) = new.split_at(first);
        let mut outcomes = Vec::with_capacity(new.len());
        let outcome = |added: Added| added.map(|(_, outcome)| outcome);
        if !self.is_repeat(caller, &post) {
            for new in first.chunks(at_once) {
                let add =
                    |account: &Account, limits: &PlanLimits| add_all(account, limits, new, now);
                outcomes.extend(self.write(caller, add).await?.into_iter().map(outcome));
            }
        }
        self.draft(caller, post, |account, limits| {
            let Decided { events, value } = add_all(account, limits, last, now)?;
            outcomes.extend(value.into_iter().map(outcome));
            Ok(Decided { events, value: outcomes })
        })
        .await
    }

    /// Changes the notes on a watched name. Returns the entry of the name and the notes after the
    /// change.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::Invalid`].
    pub async fn change_watch(
        &self,
        caller: &Caller,
        name: &DomainName,
        patch: &WatchPatch,
    ) -> Result<(WatchEntry, WatchDetails), WriteError> {
        self.write(caller, |account, _| {
            let entry = account.data.watches.get(name).ok_or(WriteError::NotFound)?;
            let (row, is_new) = noted(account, entry.clone(), patch)?;
            let details = row.details.clone();
            Ok(Decided::new(is_new.then(|| put(account, row)), (entry, details)))
        })
        .await
    }

    /// Changes the notes on those of up to 100 names that are watched, as one transaction. Returns
    /// the number of these names.
    ///
    /// # Errors
    /// [`WriteError::Invalid`], [`WriteError::Journal`]: none was changed.
    pub async fn change_watches(
        &self,
        caller: &Caller,
        names: Vec<DomainName>,
        patch: &WatchPatch,
    ) -> Result<usize, WriteError> {
        self.write(caller, |account, _| {
            let names: BTreeSet<_> = names.into_iter().collect();
            let entries: Vec<_> =
                names.iter().filter_map(|name| account.data.watches.get(name)).collect();
            let (count, mut events) = (entries.len(), Vec::new());
            for entry in entries {
                let (row, is_new) = noted(account, entry, patch)?;
                events.extend(is_new.then(|| put(account, row)));
            }
            Ok(Decided::new(events, count))
        })
        .await
    }

    /// Removes a name from the watchlist.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_watch(&self, caller: &Caller, name: &DomainName) -> Result<(), WriteError> {
        match self.remove_watches(caller, vec![name.clone()]).await? {
            0 => Err(WriteError::NotFound),
            _ => Ok(()),
        }
    }

    /// Removes names from the watchlist as one transaction. Returns how many were on it.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: none was removed.
    pub async fn remove_watches(
        &self,
        caller: &Caller,
        names: Vec<DomainName>,
    ) -> Result<usize, WriteError> {
        self.write(caller, |account, _| {
            let (id, watches) = (account.id, &account.data.watches);
            let names: BTreeSet<_> =
                names.into_iter().filter(|name| watches.get(name).is_some()).collect();
            let count = names.len();
            let removed = |name| Event::Removed { account: id, row: RowOf::Watch(name) };
            let removed = names.into_iter().map(removed);
            Ok(Decided::new(removed, count))
        })
        .await
    }
}

/// Adds names in their order, each as if it were the only one. Once the quota is used up or the
/// list is full, the remaining names are refused.
fn add_all(
    account: &Account,
    limits: &PlanLimits,
    new: &[Watch],
    now: UnixMs,
) -> Result<Decided<Vec<Added>>, WriteError> {
    let arrived = arrived(account, new);
    let watches = &account.data.watches;
    let mut adding = Adding {
        account,
        limits,
        now,
        entries: watches.len(),
        external: watches.external() - arrived.len() as u32,
        arrived: &arrived,
        added: FxHashMap::default(),
        events: Vec::new(),
    };
    let results: Vec<Added> = new.iter().map(|watch| adding.add(watch)).collect();
    let mut events = adding.events;
    let is_added = |added: &Added| matches!(added, Ok((_, Outcome::Added)));
    let added = new.iter().zip(&results).filter(|(_, added)| is_added(added));
    let near: Vec<&NearRelease> = added.filter_map(|(watch, _)| watch.near.as_ref()).collect();
    let has_mail = near.iter().any(|near| near.has_mail);
    let changes = near.into_iter().map(|near| near.change.clone()).collect();
    events.extend(tell(account, changes, has_mail, now)?);
    if !arrived.is_empty() {
        events.insert(0, Event::WatchesArrived { account: account.id, names: arrived });
    }
    Ok(Decided { events, value: results })
}

/// State of adding names to a list.
struct Adding<'a> {
    account: &'a Account,
    limits: &'a PlanLimits,
    now: UnixMs,
    /// Names of the list that no longer consume quota.
    arrived: &'a [DomainName],
    /// Number of entries so far, and of those that consume quota.
    entries: usize,
    external: u32,
    added: FxHashMap<&'a DomainName, WatchEntry>,
    events: Vec<Event>,
}

impl<'a> Adding<'a> {
    fn add(&mut self, watch: &'a Watch) -> Added {
        let Watch { name, in_corpus, registered_again, patch, .. } = watch;
        let entry = WatchEntry {
            name: name.clone(),
            added_at: self.now,
            external: !in_corpus,
            registered_again: *registered_again,
        };
        let existing = self.account.data.watches.get(name).map(|mut entry| {
            entry.external &= !self.arrived.contains(name);
            entry
        });
        let is_there = existing.is_some();
        let (row, is_new) = noted(self.account, existing.unwrap_or(entry), patch)?;
        let entry = row.entry.clone();
        if let Some(entry) = self.added.get(name) {
            return Ok((entry.clone(), Outcome::AlreadyThere));
        }
        if is_there {
            self.events.extend(is_new.then(|| put(self.account, row)));
            return Ok((entry, Outcome::AlreadyThere));
        }
        if self.entries >= WATCHES_MAX as usize {
            return Err(WriteError::TooMany { what: "names on its watchlist", limit: WATCHES_MAX });
        }
        if !in_corpus && self.external >= self.limits.external_names {
            return Err(external_names_used_up(self.account, self.limits));
        }
        self.entries += 1;
        self.external += u32::from(entry.external);
        self.events.push(put(self.account, row));
        self.added.insert(name, entry.clone());
        Ok((entry, Outcome::Added))
    }
}

/// Returns an entry with its notes and alert settings after a change, and whether they change.
fn noted(
    account: &Account,
    entry: WatchEntry,
    patch: &WatchPatch,
) -> Result<(WatchRow, bool), WriteError> {
    let before = account.data.watches.row(entry);
    let details = patch.applied(Some(&before.details))?;
    let alerts = patch.alerts.clone().unwrap_or_else(|| before.alerts.clone());
    let is_new = (&details, &alerts) != (&before.details, &before.alerts);
    Ok((WatchRow { entry: before.entry, details, alerts }, is_new))
}

fn put(account: &Account, row: WatchRow) -> Event {
    Event::WatchPut { account: account.id, watch: Box::new(row) }
}

/// Returns the distinct names among the arrived ones that still consume quota.
fn arrived(account: &Account, new: &[Watch]) -> Vec<DomainName> {
    let is_external =
        |name: &&DomainName| account.data.watches.get(name).is_some_and(|entry| entry.external);
    let names: BTreeSet<_> =
        new.iter().flat_map(|watch| &watch.arrived).filter(is_external).collect();
    names.into_iter().take(ARRIVED_MAX).cloned().collect()
}

pub(super) fn external_names_used_up(account: &Account, limits: &PlanLimits) -> WriteError {
    let (plan, limit) = (account.plan, limits.external_names);
    let message = match limit {
        0 => format!("the {plan} plan has no watchlist names that are not in the corpus"),
        _ => format!(
            "the {plan} plan allows {limit} watchlist names that are not in the corpus, and they \
             are used up"
        ),
    };
    WriteError::PlanLimit { plan, limit: Some(limit), message }
}
