//! Latencies in, percentiles out.

use std::hint::black_box;
use std::time::{Duration, Instant};

use dropdex::index::Index;
use dropdex::index::filter::AsOf;

use crate::answer::{Ask, answer};

/// Queries asked before the clock counts: caches fill and lists that are kept are made.
const WARM_UP: usize = 200;

/// Summary of a set of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// In microseconds: half of all were faster.
    pub p50_us: f64,
    /// In microseconds: 99 of 100 were faster.
    pub p99_us: f64,
    /// In microseconds.
    pub worst_us: f64,
    /// How many there were.
    pub count: usize,
}

impl Timing {
    /// Sums up latencies in nanoseconds; none at all are all zero.
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

/// Asks one query after the other on this thread, all of them or as many as `budget` allows.
///
/// # Errors
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
