//! Questions to the index: how long each kind takes, and those that took too long by themselves, as
//! they were meant.

use std::fmt::{self, Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use metrics::{Histogram, histogram};

use crate::telemetry::current::{Current, current};
use crate::telemetry::logs::milliseconds;

/// What is logged of a question at most: a filter has up to a hundred TLDs.
const QUERY_BYTES_MAX: usize = 256;

/// What is asked of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Names by prefix alone.
    Prefix,
    /// Names by prefix, with filters.
    Search,
    /// The drops list.
    Drops,
    /// The drops list, by a part of the name.
    Substring,
    /// Names for a file.
    Export,
    /// Names that are appraised.
    Appraise,
    /// Lists matched with alert rules.
    Match,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Prefix,
        Kind::Search,
        Kind::Drops,
        Kind::Substring,
        Kind::Export,
        Kind::Appraise,
        Kind::Match,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Kind::Prefix => "prefix",
            Kind::Search => "search",
            Kind::Drops => "drops",
            Kind::Substring => "substring",
            Kind::Export => "export",
            Kind::Appraise => "appraise",
            Kind::Match => "match",
        }
    }

    fn durations(self) -> &'static Histogram {
        static DURATIONS: LazyLock<[Histogram; Kind::ALL.len()]> = LazyLock::new(|| {
            Kind::ALL
                .map(|kind| histogram!("dropdex_query_duration_seconds", "kind" => kind.as_str()))
        });
        &DURATIONS[self as usize]
    }
}

/// Microseconds from which on a question is logged. One for the process, as its log is.
static SLOW_US: AtomicU64 = AtomicU64::new(u64::MAX);

/// Logs what takes `slow` or longer from now on.
pub fn log_from(slow: Duration) {
    SLOW_US.store(u64::try_from(slow.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// A question that is being answered.
pub struct Asked {
    kind: Kind,
    begun: Instant,
    /// The request's, which a thread of the blocking pool does not know of.
    current: Option<Arc<Current>>,
}

/// Begins a question, on the request's own thread.
pub fn ask(kind: Kind) -> Asked {
    Asked { kind, begun: Instant::now(), current: current() }
}

impl Asked {
    /// It is answered, with so many rows.
    pub fn answered(self, rows: usize, query: &impl Debug) {
        let took = self.begun.elapsed();
        self.kind.durations().record(took);
        if took.as_micros() >= u128::from(SLOW_US.load(Ordering::Relaxed)) {
            self.log(rows, query, took);
        }
    }

    fn log(&self, rows: usize, query: &impl Debug, took: Duration) {
        let mut text = Cut(String::new());
        // Full, it says so by an error: what there is of it is what is logged.
        let _ = write!(text, "{query:?}");
        let duration_ms = milliseconds(took);
        let (kind, query) = (self.kind.as_str(), text.0);
        let _entered = self.current.as_ref().map(Current::enter);
        tracing::warn!(kind, query, rows, duration_ms, "slow query");
    }
}

/// Text that ends where it has been long enough.
struct Cut(String);

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = QUERY_BYTES_MAX.saturating_sub(self.0.len());
        let end = text.floor_char_boundary(room.min(text.len()));
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_where_they_are_counted() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }

    #[test]
    fn long_questions_are_cut_between_characters() {
        let mut text = Cut(String::new());
        assert!(write!(text, "{:?}", "ü\n".repeat(200)).is_err());
        assert!(text.0.len() <= QUERY_BYTES_MAX && text.0.starts_with("\"ü\\nü\\n"), "{}", text.0);
    }
}
