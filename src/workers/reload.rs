//! Watches `CURRENT` and publishes the generation it names, while requests go on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::index::live::LiveIndex;
use crate::index::manifest::{self, GenerationId};
use crate::index::open::{self, OpenError, Opened};

/// How often `CURRENT` is looked at: a new generation is served well within two seconds.
const PERIOD: Duration = Duration::from_millis(250);

/// What the watcher needs.
pub struct Reload {
    pub index: PathBuf,
    pub live: Arc<LiveIndex>,
    /// Where the reason for serving an older generation is told.
    pub problem: Arc<Mutex<Option<String>>>,
}

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
                _ = ticks.tick() => seen = self.look(seen).await,
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
        let opened = tokio::task::spawn_blocking(move || -> Result<Option<String>, OpenError> {
            let Opened { index, fallback } = open::open_current(&index)?;
            let generation = index.manifest().generation;
            if generation != live.current().manifest().generation {
                // Dropped here, where freeing gigabytes holds no request up.
                drop(live.publish(Arc::new(index)));
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
}

fn current(index: &Path) -> Option<GenerationId> {
    manifest::current(index).ok().flatten()
}
