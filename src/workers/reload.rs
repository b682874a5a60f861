//! Watches `CURRENT` and publishes the generation it names without interrupting requests. Also
//! computes the stages of each day before it begins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use metrics::gauge;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::index::Index;
use crate::index::error::OpenError;
use crate::index::filter::AsOf;
use crate::index::generation::live::LiveIndex;
use crate::index::generation::open::{self, Opened};
use crate::index::query::outcome_tables::OutcomeTables;
use crate::index::storage::manifest::{self, GenerationId};
use crate::service::fact_book::FactBook;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;

/// Time between two checks of `CURRENT`, so that a new generation is served well within two
/// seconds.
const PERIOD: Duration = Duration::from_millis(250);

/// The worker that watches the index folder.
pub struct Reload {
    pub index: PathBuf,
    pub live: Arc<LiveIndex>,
    /// Facts of the server, which are joined with each generation.
    pub facts: Arc<FactBook>,
    /// Each of these is notified when another generation is served.
    pub published: [Arc<Notify>; 2],
    /// Why an older generation is served, for status and metrics.
    pub problem: Arc<Mutex<Option<String>>>,
    pub clock: Clock,
    /// Days for which a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// Whether the generation in `CURRENT` is served. In a cluster, the shared log decides instead.
    pub follows_current: bool,
}

/// The counting of the outcomes of a generation and day.
struct Counting {
    of: (GenerationId, Day),
    task: JoinHandle<()>,
}

/// Sets the gauges of the order of the score. A suffix with too few names has none.
fn report(index: &Index, tables: &OutcomeTables) {
    for (tld, shown, history) in tables.histories() {
        let Some(last) = history.last() else { continue };
        let labels = [("suffix", index.tlds().name(tld).to_owned()), ("label", shown.to_string())];
        gauge!("dropdex_outcomes_auc", &labels).set(last.value);
        let has_fallen = f64::from(u8::from(history.has_fallen()));
        gauge!("dropdex_outcomes_auc_fallen", &labels).set(has_fallen);
    }
}

/// Maximum wait for readers of a replaced generation: the maximum duration of an export.
const READERS_WAIT_MAX: Duration = Duration::from_secs(150);
/// Interval at which the server checks whether the replaced generation still has readers.
const READERS_PERIOD: Duration = Duration::from_millis(20);
/// Time before midnight at which the stages of the next day are computed; this is longer than the
/// computation takes for the largest corpus.
const AHEAD: TimeDelta = TimeDelta::seconds(60);

impl Reload {
    /// Watches until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Some(self.live.current().manifest().generation);
        let mut counting = None;
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                _ = ticks.tick() => {
                    seen = self.check(seen).await;
                    self.prepare().await;
                    self.join().await;
                    counting = self.count(counting);
                }
            }
        }
    }

    /// Publishes the generation that `CURRENT` names if it changed, and returns its id. A generation that
    /// cannot be opened is tried only once, and the old one stays in use.
    async fn check(&self, seen: Option<GenerationId>) -> Option<GenerationId> {
        let named = current(&self.index);
        if named == seen || named.is_none() || !self.follows_current {
            return seen;
        }
        let (index, live) = (self.index.clone(), Arc::clone(&self.live));
        let (published, facts) = (self.published.clone(), Arc::clone(&self.facts));
        let as_of = self.as_of(TimeDelta::zero());
        let opened = tokio::task::spawn_blocking(move || -> Result<Option<String>, OpenError> {
            // A delta shares its base with the served index.
            let Opened { index, fallback } = open::reopen_current(&index, Some(&live.current()))?;
            index.prepare(as_of);
            facts.join_server(&index);
            let (generation, contains) = (index.manifest().generation, index.contains());
            if generation != live.current().manifest().generation {
                let old = live.publish(Arc::new(index));
                tokio::task::spawn_blocking(|| retire(old));
                published.iter().for_each(|reader| reader.notify_one());
                metrics::counter!("dropdex_index_swaps_total").increment(1);
                tracing::info!(%generation, ?contains, "serving a new generation");
            }
            Ok(fallback.map(|problem| problem.to_string()))
        });
        let problem = match opened.await {
            Ok(Ok(problem)) => problem,
            Ok(Err(err)) => Some(err.to_string()),
            Err(err) => Some(err.to_string()),
        };
        if let Some(problem) = &problem {
            tracing::error!(error = problem, "the current generation cannot be served");
        }
        *self.problem.lock().expect("no code panics holding this lock") = problem;
        named
    }

    /// Computes the stages of the day that begins within [`AHEAD`], unless that is done.
    async fn prepare(&self) {
        let (index, as_of) = (self.live.current(), self.as_of(AHEAD));
        if !index.is_prepared(as_of) {
            // After a panic, which is logged, queries compute the stages themselves.
            let _ = tokio::task::spawn_blocking(move || index.prepare(as_of)).await;
        }
    }

    /// Joins sources of facts that are new with the served generation.
    async fn join(&self) {
        let (index, facts) = (self.live.current(), Arc::clone(&self.facts));
        if !facts.has_joined_server(&index) {
            // After a panic, which is logged, the next query tries again.
            let _ = tokio::task::spawn_blocking(move || facts.join_server(&index)).await;
        }
    }

    /// Counts the outcomes of dropped names as of today, unless that is done. Readers of a dossier do not
    /// wait for it.
    fn count(&self, before: Option<Counting>) -> Option<Counting> {
        let (index, today) = (self.live.current(), self.clock.today());
        let of = (index.manifest().generation, today);
        let is_done = |it: &Counting| it.of == of && index.counted_outcomes(today).is_some();
        if before.as_ref().is_some_and(|it| is_done(it) || !it.task.is_finished()) {
            return before;
        }
        let task = tokio::task::spawn_blocking(move || report(&index, &index.outcomes(today)));
        Some(Counting { of, task })
    }

    fn as_of(&self, ahead: TimeDelta) -> AsOf {
        let today =
            Day::from_instant(self.clock.now() + ahead).unwrap_or_else(|| self.clock.today());
        AsOf { today, catch_days: self.catch_days }
    }
}

/// Blocks until no request uses a replaced generation, then drops it. Otherwise the thread of the last request that
/// used it would have to free gigabytes.
pub fn retire(old: Arc<Index>) {
    let until = Instant::now() + READERS_WAIT_MAX;
    while Arc::strong_count(&old) > 1 && Instant::now() < until {
        thread::sleep(READERS_PERIOD);
    }
}

fn current(index: &Path) -> Option<GenerationId> {
    manifest::current(index).ok().flatten()
}
