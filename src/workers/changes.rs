//! Derives the events of names (`data/docs/changes.md`) and appends them to the log: when a generation
//! goes live, at midnight UTC, after registry responses about watched names, and before the hour of their
//! release.
//!
//! Events are derived from durable state: the generation, the day, and the numbered state changes of
//! watched names. The log's mark records how far that state has been processed. The mark is written
//! together with the events, so a crash neither loses nor repeats an event. The first start sets the
//! mark and derives no past events.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::accounts::{StateChange, Store};
use crate::changes::segment::{SegmentError, SegmentWriter};
use crate::changes::{Appender, ChangeEntry, Mark};
use crate::index::Index;
use crate::index::changes::DropChange;
use crate::index::filter::AsOf;
use crate::index::generation::live::LiveIndex;
use crate::index::generation::open;
use crate::index::storage::manifest::{self, GenerationId};
use crate::vocab::change::{ChangeKind, ChangeSource};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::name::DomainName;
use crate::vocab::observation::RdapState;
use crate::vocab::release_time::ReleaseTime;
use crate::vocab::time::UnixMs;

/// Interval at which the clock is read, because timers do not fire when the clock is set.
const PERIOD: Duration = Duration::from_secs(1);
/// Delay before retrying a failed write; most likely the disk is full.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Minimum time between two derivations from registry responses, so that several share one write.
const REGISTRY_GAP: Duration = Duration::from_secs(1);
/// Interval at which the hours of watched names are compared with the clock.
const HOURS_PERIOD: Duration = Duration::from_secs(5 * 60);
/// A release is announced at most this long before its hour.
const ANNOUNCED_AHEAD: TimeDelta = TimeDelta::hours(1);
/// Maximum number of missed days whose events are derived; more than the log keeps.
const MISSED_DAYS_MAX: i32 = 100;

/// The worker that derives changes. This worker is the only writer of the log, so subscriptions to
/// the log end when it ends.
pub struct Deriving {
    pub live: Arc<LiveIndex>,
    pub store: Store,
    pub clock: Clock,
    /// Days for which a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// The folder of generations.
    pub index: PathBuf,
    pub log: Arc<Appender>,
    /// Notified when another generation is served.
    pub published: Arc<Notify>,
}

/// Why changes were not derived. The worker retries.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    #[error("the derivation panicked: {0}")]
    Panic(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Write(#[from] SegmentError),
}

impl Deriving {
    /// Derives changes until `stop` is done.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.derive_all() => {}
        }
    }

    /// On the very first start, sets the mark to the current lists and the current day. If the disk
    /// is full, [`Deriving::run`] does so as soon as space is free.
    pub async fn begin(&self) {
        if self.log.mark().is_none()
            && let Err(err) = self.derive(None, false).await
        {
            failed(&err);
        }
    }

    async fn derive_all(&mut self) {
        let observed = self.store.observations_changed();
        // The generation of the mark, while it is held in memory.
        let mut base = None;
        // When hours were last compared with the clock.
        let mut hours_at: Option<Instant> = None;
        let hours_are_due = |at: Option<Instant>| at.is_none_or(|at| at.elapsed() >= HOURS_PERIOD);
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Responses of registries come every second; all watched names are looked up for their hours.
            let hours = hours_are_due(hours_at);
            match self.derive(base.clone(), hours).await {
                Ok(derived) => {
                    base = derived;
                    if hours {
                        hours_at = Some(Instant::now());
                    }
                }
                Err(err) => {
                    failed(&err);
                    sleep(RETRY_AFTER).await;
                    continue;
                }
            }
            loop {
                tokio::select! {
                    () = self.published.notified() => break,
                    () = observed.notified() => {
                        sleep(REGISTRY_GAP).await;
                        break;
                    }
                    _ = ticks.tick() => {
                        let today = self.clock.today();
                        let is_due = |day| day < today || today.replaces(day) && self.clock.corrects();
                        let is_due = self.log.mark().is_some_and(|mark| is_due(mark.day));
                        if is_due || hours_are_due(hours_at) {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Derives everything up to now; releases within the next hour only if `hours`. Returns the generation
    /// of the mark.
    ///
    /// # Errors
    /// [`DeriveError`]; the call can be repeated.
    pub async fn derive(
        &self,
        base: Option<Arc<Index>>,
        hours: bool,
    ) -> Result<Option<Arc<Index>>, DeriveError> {
        let derivation = Derivation {
            index: self.live.current(),
            folder: self.index.clone(),
            store: self.store.clone(),
            log: Arc::clone(&self.log),
            as_of: AsOf { today: self.clock.today(), catch_days: self.catch_days },
            now: UnixMs::from_instant(self.clock.now()),
            hours,
            corrects: self.clock.corrects(),
        };
        Ok(tokio::task::spawn_blocking(move || derivation.run(base)).await??)
    }
}

fn failed(err: &DeriveError) {
    tracing::error!(error = %err, "deriving changes of names failed; trying again");
    metrics::counter!("dropdex_change_failures_total").increment(1);
}

/// Input of one derivation.
struct Derivation {
    index: Arc<Index>,
    folder: PathBuf,
    store: Store,
    log: Arc<Appender>,
    as_of: AsOf,
    now: UnixMs,
    /// Whether the hours of watched names are compared with the clock.
    hours: bool,
    /// Whether a mark so far ahead was set by a wrong clock.
    corrects: bool,
}

impl Derivation {
    fn run(self, base: Option<Arc<Index>>) -> Result<Option<Arc<Index>>, SegmentError> {
        let manifest = self.index.manifest();
        let (generation, batch) = (manifest.generation.0, manifest.batches);
        let (newest, state_changes) =
            self.store.state_changes(self.log.mark().map_or(u64::MAX, |mark| mark.registry));
        let Some(mut mark) = self.log.mark() else {
            let (day, hours) = (self.as_of.today, Some(self.now));
            let mark = Mark { generation, batch, day, registry: newest, hours };
            self.log.append(mark, |_| Ok(()))?;
            return Ok(Some(self.index));
        };
        // The index has fewer lists than before, because the operator rolled back to an older
        // generation.
        let is_newer = generation != mark.generation && batch >= mark.batch;
        let base = match base.filter(|base| base.manifest().generation.0 == mark.generation) {
            None if generation == mark.generation => Some(Arc::clone(&self.index)),
            None if is_newer => self.open(mark.generation),
            base => base,
        };
        if self.corrects && self.as_of.today < mark.day && self.as_of.today.replaces(mark.day) {
            tracing::warn!(was = %mark.day, now = %self.as_of.today, "changes were derived up to the day of a wrong clock");
            mark.day = self.as_of.today;
            mark.hours = mark.hours.min(Some(self.now));
            self.append(mark, &self.index, &[], Watched::default())?;
        }
        let first_missed = self.as_of.today.plus(-MISSED_DAYS_MAX);
        if mark.day < first_missed {
            mark.day = first_missed;
        }
        while mark.day < self.as_of.today {
            mark.day = mark.day.plus(1);
            let of_day = base.as_ref().unwrap_or(&self.index);
            let changes = of_day.changes_of_day(mark.day, mark.batch);
            self.append(mark, of_day, &changes, Watched::default())?;
        }
        if is_newer {
            let as_of = AsOf { today: mark.day, ..self.as_of };
            let changes = self.index.changes_of_lists(base.as_deref(), mark.batch, as_of);
            mark = Mark { generation, batch, ..mark };
            self.append(mark, &self.index, &changes, Watched::default())?;
        }
        // The number is lower than before, because the accounts were restored from an older backup.
        if newest != mark.registry {
            mark.registry = newest;
            let watched = Watched { states: &state_changes, near: &[] };
            self.append(mark, &self.index, &[], watched)?;
        }
        let since = mark.hours.filter(|_| self.hours);
        let near = since.map(|since| self.near(since)).unwrap_or_default();
        if !near.is_empty() || mark.hours.is_none() {
            mark.hours = Some(self.now);
            self.append(mark, &self.index, &[], Watched { states: &[], near: &near })?;
        }
        Ok((mark.generation == generation).then_some(self.index))
    }

    /// Returns the watched names that are released within an hour and were not at `since`.
    fn near(&self, since: UnixMs) -> Vec<DomainName> {
        let is_near = |name: &DomainName| {
            let facts = self.index.facts(name, self.as_of);
            let release = facts.filter(|facts| facts.stage.is_some())?.release?;
            let at = ReleaseTime::of(name.tld(), release).at?.instant();
            let announced = UnixMs::from_instant(at - ANNOUNCED_AHEAD);
            (since < announced && announced <= self.now && self.now.instant() < at).then_some(())
        };
        let watched = self.store.verification_targets().into_iter().map(|target| target.name);
        watched.filter(|name| is_near(name).is_some()).collect()
    }

    /// Opens the generation of the last derivation, if it still exists.
    fn open(&self, generation: u64) -> Option<Arc<Index>> {
        match open::reopen(&self.folder, GenerationId(generation), Some(&self.index)) {
            Ok(index) => Some(Arc::new(index)),
            Err(_) if !manifest::folder_of(&self.folder, GenerationId(generation)).exists() => {
                tracing::info!(
                    "the index was rebuilt: names that lists say were renewed, registered again or \
                     rescored since the last one are not in the change log"
                );
                None
            }
            Err(err) => {
                tracing::warn!(
                    error = %err,
                    "the generation before is gone: names that lists say were renewed, registered \
                     again or rescored since are not in the change log"
                );
                None
            }
        }
    }

    /// Appends the changes of docs of `index`, and those of watched names.
    fn append(
        &self,
        mark: Mark,
        index: &Index,
        changes: &[DropChange],
        watched: Watched<'_>,
    ) -> Result<(), SegmentError> {
        let begun = Instant::now();
        let mut counts = [0u64; ChangeKind::ALL.len()];
        let mut push = |writer: &mut SegmentWriter, entry: &ChangeEntry<'_>| {
            counts[entry.kind as usize] += 1;
            writer.push(entry)
        };
        let written = self.log.append(mark, |writer| -> io::Result<()> {
            for &DropChange { place, kind, source, dqs_before } in changes {
                let DroppedName { name, dqs, release, .. } = index.listed_drop(place, self.as_of);
                push(
                    writer,
                    &ChangeEntry {
                        kind,
                        source,
                        name: name.as_str(),
                        label_len: name.label_len(),
                        day: mark.day,
                        dqs: Some(dqs),
                        dqs_before,
                        release: Some(release),
                    },
                )?;
            }
            let mut push_watched = |name: &DomainName, kind, source, day| {
                let facts = index.facts(name, self.as_of);
                let pending = facts.filter(|facts| facts.stage.is_some());
                let entry = ChangeEntry {
                    kind,
                    source,
                    name: name.as_str(),
                    label_len: name.label_len(),
                    day,
                    dqs: facts.map(|facts| facts.dqs),
                    dqs_before: None,
                    release: pending.and_then(|facts| facts.release).map(|release| release.day),
                };
                push(writer, &entry)
            };
            for change in watched.states {
                let Some(kind) = kind_of(change) else { continue };
                let day = Day::nearest(change.observation.at.instant());
                push_watched(&change.name, kind, ChangeSource::Registry, day)?;
            }
            for name in watched.near {
                let kind = ChangeKind::DropsInAnHour;
                push_watched(name, kind, ChangeSource::Calendar, mark.day)?;
            }
            Ok(())
        })?;
        for (kind, count) in ChangeKind::ALL.into_iter().zip(counts) {
            metrics::counter!("dropdex_changes_total", "kind" => kind.as_str()).increment(count);
        }
        let took = begun.elapsed();
        if written > 0 && watched.states.is_empty() && watched.near.is_empty() {
            let (day, batch, ms) = (mark.day, mark.batch, took.as_millis() as u64);
            tracing::info!(%day, batch, changes = written, ms, "derived changes of names");
        }
        Ok(())
    }
}

/// Events of watched names.
#[derive(Clone, Copy, Default)]
struct Watched<'a> {
    /// Responses of registries.
    states: &'a [StateChange],
    /// Names that are released within an hour.
    near: &'a [DomainName],
}

/// Returns the kind of event that a state change represents, if any. A first observation is not an
/// event, because the name may have been in that state for a long time.
fn kind_of(change: &StateChange) -> Option<ChangeKind> {
    let state = change.observation.state;
    change.before.filter(|before| *before != state)?;
    match state {
        RdapState::Available => change.observation.is_free().then_some(ChangeKind::Available),
        RdapState::Renewed => Some(ChangeKind::Renewed),
        RdapState::RegisteredAgain => Some(ChangeKind::RegisteredAgain),
        RdapState::Redemption
        | RdapState::PendingDelete
        | RdapState::Registered
        | RdapState::Taken
        | RdapState::Reserved
        | RdapState::Expected
        | RdapState::Unknown => None,
    }
}

#[cfg(test)]
mod tests;
