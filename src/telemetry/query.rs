//! Query times: a histogram by kind, and a log line for each slow query.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use metrics::{Histogram, histogram};

use crate::current::{Current, current};
use crate::logs::milliseconds;
use crate::vocab::named::named_enum;

named_enum! {
    /// Kind of an index query.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum QueryKind {
        /// Names by prefix, without filters.
        Prefix = "prefix",
        /// Names by prefix, with filters.
        Search = "search",
        /// The drops list.
        Drops = "drops",
        /// The drops list, filtered by a substring.
        Substring = "substring",
        /// Names for an export.
        Export = "export",
        /// Names to appraise.
        Appraise = "appraise",
        /// Matching of alert rules with new lists.
        Match = "match",
    }
}

impl QueryKind {
    fn durations(self) -> &'static Histogram {
        &DURATIONS[self as usize]
    }
}

static DURATIONS: LazyLock<[Histogram; QueryKind::ALL.len()]> = LazyLock::new(|| {
    QueryKind::ALL.map(|kind| histogram!("dropdex_query_duration_seconds", "kind" => kind.as_str()))
});

/// Registers the histograms, so that they are exported before the first query.
pub(super) fn register() {
    LazyLock::force(&DURATIONS);
}

/// Threshold of the slow-query log in microseconds. The threshold is global, because the log is
/// global.
static SLOW_US: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the threshold of the slow-query log.
pub fn set_slow_threshold(slow: Duration) {
    SLOW_US.store(u64::try_from(slow.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Timer of one query.
pub struct QueryTimer {
    kind: QueryKind,
    started: Instant,
    /// The request is stored here because the query may finish on a thread of the blocking pool.
    current: Option<Arc<Current>>,
}

impl QueryTimer {
    /// Starts the timer, on the thread that handles the request.
    pub fn start(kind: QueryKind) -> QueryTimer {
        QueryTimer { kind, started: Instant::now(), current: current() }
    }

    /// Records the time, and logs the query if it was slow.
    pub fn finish(self, rows: usize, query: &impl Debug) {
        let elapsed = self.started.elapsed();
        self.kind.durations().record(elapsed);
        if elapsed.as_micros() >= u128::from(SLOW_US.load(Ordering::Relaxed)) {
            let _entered = self.current.as_ref().map(Current::enter);
            let (kind, duration_ms) = (self.kind.as_str(), milliseconds(elapsed));
            tracing::warn!(kind, ?query, rows, duration_ms, "slow query");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_index_their_histograms() {
        for (index, kind) in QueryKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{kind:?}");
        }
    }
}
