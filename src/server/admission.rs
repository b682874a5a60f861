//! What is let in when there is more than can be done: each class of request has so many at once, as
//! many may wait a moment, and the rest is told to come again before anything is done for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::Method;
use metrics::{Counter, Gauge, counter, gauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::server::settings::AdmissionLimits;

/// Requests that compete for the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Whether all is well. Never refused.
    Health,
    /// The index and what users own is looked at.
    Read,
    /// Thousands of rows.
    Export,
    /// A password is hashed or compared.
    LogIn,
    /// Something is changed, and waits for the disk.
    Write,
}

/// POSTs that change nothing: what they ask is too long for a query string.
const READING_POSTS: [&str; 2] = ["/api/v1/appraise", "/api/v1/alerts/preview"];
/// Pages whose forms hold a password.
const PASSWORD_PAGES: [&str; 3] = ["/login", "/signup", "/account/password"];

impl Class {
    /// The class of a request.
    pub fn of(method: &Method, path: &str) -> Class {
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if path == "/api/health" || path.starts_with("/api/ready") {
            Class::Health
        } else if reads && path.starts_with("/api/export/") {
            Class::Export
        } else if reads || READING_POSTS.contains(&path) {
            Class::Read
        } else if PASSWORD_PAGES.contains(&path) {
            Class::LogIn
        } else {
            Class::Write
        }
    }

    /// As metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Health => "health",
            Class::Read => "read",
            Class::Export => "export",
            Class::LogIn => "log_in",
            Class::Write => "write",
        }
    }
}

/// What each class has.
pub(super) struct Admission {
    reads: Arc<Gate>,
    exports: Arc<Gate>,
    log_ins: Arc<Gate>,
    writes: Arc<Gate>,
    /// Told apart from one another by a second or two, so that those refused do not all come back at
    /// once.
    refusals: AtomicU32,
}

/// There is too much to do: to be asked again after so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shed {
    pub retry_after_s: u32,
}

/// So many seconds at most, from 1.
const RETRY_AFTER_S_MAX: u32 = 3;

impl Admission {
    pub(super) fn new(limits: &AdmissionLimits) -> Admission {
        let gate = |class, at_once| Arc::new(Gate::new(class, at_once, limits.wait));
        Admission {
            reads: gate(Class::Read, limits.reads),
            exports: gate(Class::Export, limits.exports),
            log_ins: gate(Class::LogIn, limits.log_ins),
            writes: gate(Class::Write, limits.writes),
            refusals: AtomicU32::new(0),
        }
    }

    /// Lets a request in, at once or after a short wait.
    ///
    /// # Errors
    /// [`Shed`].
    pub(super) async fn enter(&self, class: Class) -> Result<Option<Admitted>, Shed> {
        let gate = match class {
            Class::Health => return Ok(None),
            Class::Read => &self.reads,
            Class::Export => &self.exports,
            Class::LogIn => &self.log_ins,
            Class::Write => &self.writes,
        };
        match gate.enter().await {
            Some(admitted) => Ok(Some(admitted)),
            None => {
                gate.sheds.increment(1);
                let turn = self.refusals.fetch_add(1, Ordering::Relaxed);
                Err(Shed { retry_after_s: 1 + turn % RETRY_AFTER_S_MAX })
            }
        }
    }
}

/// How many requests of one class are worked on, and how many wait.
struct Gate {
    places: Arc<Semaphore>,
    at_once: u32,
    waiting: AtomicU32,
    wait: Duration,
    /// How long a request holds its place, in microseconds: an average that forgets.
    held_us: AtomicU64,
    in_flight: Gauge,
    sheds: Counter,
}

/// A request that was let in, for as long as it is worked on.
pub(super) struct Admitted {
    gate: Arc<Gate>,
    since: Instant,
    _place: OwnedSemaphorePermit,
}

impl Gate {
    fn new(class: Class, at_once: u32, wait: Duration) -> Gate {
        let class = class.as_str();
        Gate {
            places: Arc::new(Semaphore::new(at_once as usize)),
            at_once,
            waiting: AtomicU32::new(0),
            wait,
            held_us: AtomicU64::new(0),
            in_flight: gauge!("dropdex_requests_in_flight", "class" => class),
            sheds: counter!("dropdex_sheds_total", "class" => class),
        }
    }

    async fn enter(self: &Arc<Gate>) -> Option<Admitted> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(self.admitted(place));
        }
        let waiting = Waiting::count(&self.waiting);
        // Whoever may wait in vain is better told at once: they can ask another server. Half of the wait
        // is left for what is slower than it was of late.
        if waiting.before >= self.at_once || self.turn_of(waiting.before) > self.wait / 2 {
            return None;
        }
        let place = timeout(self.wait, Arc::clone(&self.places).acquire_owned()).await;
        Some(self.admitted(place.ok()?.ok()?))
    }

    /// When it will be the turn of a request with so many before it, going by how it was of late.
    fn turn_of(&self, before: u32) -> Duration {
        let held_us = self.held_us.load(Ordering::Relaxed);
        Duration::from_micros(held_us * u64::from(before + 1) / u64::from(self.at_once))
    }

    fn admitted(self: &Arc<Gate>, place: OwnedSemaphorePermit) -> Admitted {
        self.in_flight.increment(1);
        Admitted { gate: Arc::clone(self), since: Instant::now(), _place: place }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.gate.in_flight.decrement(1);
        let held_us = self.since.elapsed().as_micros() as u64;
        // One in eight: two requests that end together may lose one of the two, which is as well.
        let average = self.gate.held_us.load(Ordering::Relaxed);
        self.gate.held_us.store((average * 7 + held_us) / 8, Ordering::Relaxed);
    }
}

/// One that waits, until it does no longer.
struct Waiting<'a> {
    all: &'a AtomicU32,
    /// How many waited already.
    before: u32,
}

impl Waiting<'_> {
    fn count(all: &AtomicU32) -> Waiting<'_> {
        Waiting { all, before: all.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::operations::OPERATIONS;

    fn admission(reads: u32, wait: Duration) -> Admission {
        Admission::new(&AdmissionLimits { reads, wait, ..AdmissionLimits::default() })
    }

    #[test]
    fn every_operation_has_the_class_it_should() {
        for operation in OPERATIONS {
            let method: Method = operation.method.parse().expect("a method");
            let class = Class::of(&method, operation.path);
            let expected = match (operation.method, operation.path) {
                (_, path) if path.starts_with("/api/health") => Class::Health,
                (_, path) if path.starts_with("/api/ready") => Class::Health,
                (_, path) if path.starts_with("/api/export") => Class::Export,
                ("GET", _) => Class::Read,
                (_, "/api/v1/appraise" | "/api/v1/alerts/preview") => Class::Read,
                _ => Class::Write,
            };
            assert_eq!(class, expected, "{} {}", operation.method, operation.path);
        }
        for path in READING_POSTS {
            assert!(OPERATIONS.iter().any(|it| it.method == "POST" && it.path == path), "{path}");
        }
        for (method, path, class) in [
            (Method::GET, "/", Class::Read),
            (Method::GET, "/login", Class::Read),
            (Method::POST, "/login", Class::LogIn),
            (Method::POST, "/signup", Class::LogIn),
            (Method::POST, "/watchlist", Class::Write),
            (Method::HEAD, "/api/export/drops", Class::Export),
            (Method::POST, "/api/export/drops", Class::Write),
        ] {
            assert_eq!(Class::of(&method, path), class, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn health_is_never_refused() {
        let admission = admission(1, Duration::ZERO);
        let _held = admission.enter(Class::Read).await.expect("the first");
        assert!(admission.enter(Class::Read).await.is_err());
        assert!(admission.enter(Class::Health).await.expect("always").is_none());
        assert!(admission.enter(Class::Write).await.is_ok(), "classes do not share");
    }

    #[tokio::test]
    async fn a_place_that_is_free_again_goes_to_who_waits() {
        let admission = Arc::new(admission(1, Duration::from_secs(60)));
        let held = admission.enter(Class::Read).await.expect("the first");
        let second = Arc::clone(&admission);
        let second = tokio::spawn(async move { second.enter(Class::Read).await.is_ok() });
        while admission.reads.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(admission.enter(Class::Read).await.is_err(), "as many wait as are worked on");
        drop(held);
        assert!(second.await.expect("no panic"));
    }

    #[tokio::test]
    async fn who_would_wait_in_vain_is_told_at_once() {
        let admission = admission(1, Duration::from_millis(50));
        let _held = admission.enter(Class::Read).await.expect("the first");
        let began = Instant::now();
        assert!(admission.enter(Class::Read).await.is_err());
        assert!(began.elapsed() >= Duration::from_millis(50), "nothing was known: it waited");
        // Requests of late held their place for a second.
        admission.reads.held_us.store(1_000_000, Ordering::Relaxed);
        let began = Instant::now();
        let seconds: Vec<u32> = {
            let mut seconds = Vec::new();
            for _ in 0..6 {
                let Err(shed) = admission.enter(Class::Read).await else { panic!("let in") };
                seconds.push(shed.retry_after_s);
            }
            seconds
        };
        assert!(began.elapsed() < 6 * Duration::from_millis(50), "they waited");
        assert_eq!(seconds, [2, 3, 1, 2, 3, 1]);
    }
}
