//! Computes percentiles of latencies.

use std::hint::black_box;
use std::time::{Duration, Instant};

use dropdex::index::Index;
use dropdex::index::filter::AsOf;

use crate::answer::{Ask, answer};

/// Number of queries before the measurement; they fill caches and build data that is kept.
const WARM_UP: usize = 200;

/// Summary of a set of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Median, in microseconds.
    pub p50_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
    /// Maximum, in microseconds.
    pub worst_us: f64,
    /// Number of latencies.
    pub count: usize,
}

impl Timing {
    /// Summarises latencies in nanoseconds; all figures are zero if there are none.
    pub fn of(mut latencies_ns: Vec<u64>) -> Timing {
        latencies_ns.sort_unstable();
        let at = |share: f64| {
            let last = latencies_ns.len().saturating_sub(1);
            let place = (latencies_ns.len() as f64 * share) as usize;
            latencies_ns.get(place.min(last)).map_or(0.0, |&ns| ns as f64 / 1e3)
        };
        Timing { p50_us: at(0.50), p99_us: at(0.99), worst_us: at(1.0), count: latencies_ns.len() }
    }
}

/// Runs one query after the other on this thread, all of them or as many as `budget` allows.
///
/// # Errors
///
/// A query fails.
pub fn ask_all(
    index: &Index,
    queries: &[Ask],
    as_of: AsOf,
    budget: Duration,
) -> anyhow::Result<Timing> {
    let mut body = Vec::new();
    for query in queries.iter().take(WARM_UP) {
        answer(index, query, as_of, &mut body)?;
    }
    let begun = Instant::now();
    let mut latencies_ns = Vec::with_capacity(queries.len());
    let mut asked = Instant::now();
    for query in queries {
        answer(index, black_box(query), as_of, &mut body)?;
        black_box(&body);
        let answered = Instant::now();
        latencies_ns.push(answered.duration_since(asked).as_nanos() as u64);
        if answered.duration_since(begun) > budget {
            break;
        }
        asked = answered;
    }
    Ok(Timing::of(latencies_ns))
}
