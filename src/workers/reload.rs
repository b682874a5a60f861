//! Watches `CURRENT` and publishes the generation it names, while requests go on; and has the
//! stages of a day worked out before the day begins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use crate::index::Index;
use crate::index::error::OpenError;
use crate::index::filter::Moment;
use crate::index::generation::live::LiveIndex;
use crate::index::generation::open::{self, Opened};
use crate::index::storage::manifest::{self, GenerationId};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;

/// How often `CURRENT` is looked at: a new generation is served well within two seconds.
const PERIOD: Duration = Duration::from_millis(250);

/// What the watcher needs.
pub struct Reload {
    pub index: PathBuf,
    pub live: Arc<LiveIndex>,
    /// Told when another generation is served.
    pub published: Arc<Notify>,
    /// Where the reason for serving an older generation is told.
    pub problem: Arc<Mutex<Option<String>>>,
    pub clock: Clock,
    /// Days a name counts as catchable after its effective release.
    pub catch_days: u16,
}

/// How long those who still read a generation are waited for, which is as long as an export may take,
/// and how often they are looked for.
const READERS_MAX: Duration = Duration::from_secs(150);
const READERS_EVERY: Duration = Duration::from_millis(20);

/// How long before midnight the next day is made ready: more than it takes for any corpus.
const AHEAD: TimeDelta = TimeDelta::seconds(60);

impl Reload {
    /// Watches until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Some(self.live.current().manifest().generation);
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                _ = ticks.tick() => {
                    seen = self.look(seen).await;
                    self.prepare().await;
                }
            }
        }
    }

    /// Publishes what `CURRENT` names when that is not what it named last, and says what it
    /// names. A generation that cannot be opened is tried once: the old one goes on serving.
    async fn look(&self, seen: Option<GenerationId>) -> Option<GenerationId> {
        let named = current(&self.index);
        if named == seen || named.is_none() {
            return seen;
        }
        let (index, live) = (self.index.clone(), Arc::clone(&self.live));
        let published = Arc::clone(&self.published);
        let moment = self.moment(TimeDelta::zero());
        let opened = tokio::task::spawn_blocking(move || -> Result<Option<String>, OpenError> {
            let Opened { index, fallback } = open::open_current(&index)?;
            index.prepare(moment);
            let generation = index.manifest().generation;
            if generation != live.current().manifest().generation {
                retire(live.publish(Arc::new(index)));
                published.notify_one();
                metrics::counter!("dropdex_index_swaps_total").increment(1);
                tracing::info!(%generation, "serving a new generation");
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

    /// Has the stages of the day that will be in [`AHEAD`] worked out, unless they are.
    async fn prepare(&self) {
        let (index, moment) = (self.live.current(), self.moment(AHEAD));
        if !index.is_prepared(moment) {
            // A panic there is logged; a query then works them out itself.
            let _ = tokio::task::spawn_blocking(move || index.prepare(moment)).await;
        }
    }

    fn moment(&self, ahead: TimeDelta) -> Moment {
        let today =
            Day::from_instant(self.clock.now() + ahead).unwrap_or_else(|| self.clock.today());
        Moment { today, catch_days: self.catch_days }
    }
}

/// Lets go of what was served when nobody else holds it any more: freeing gigabytes would hold up
/// everybody on the thread of the request that is the last.
fn retire(old: Arc<Index>) {
    tokio::task::spawn_blocking(move || {
        let until = Instant::now() + READERS_MAX;
        while Arc::strong_count(&old) > 1 && Instant::now() < until {
            thread::sleep(READERS_EVERY);
        }
    });
}

fn current(index: &Path) -> Option<GenerationId> {
    manifest::current(index).ok().flatten()
}
