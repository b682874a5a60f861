//! Admission control: each class of request has a limit of concurrent requests and a short queue.
//! Requests beyond both are shed before they cost any work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, counter, gauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::edge::class::Class;
use crate::server::settings::AdmissionLimits;
use crate::service::error::ApiError;

/// The gates of all classes.
pub(super) struct Admission {
    reads: Arc<Gate>,
    exports: Arc<Gate>,
    streams: Arc<Gate>,
    log_ins: Arc<Gate>,
    writes: Arc<Gate>,
    visitors: Arc<Gate>,
    /// Number of shed requests. `Retry-After` varies, so that clients do not all retry at the same
    /// time.
    sheds: AtomicU32,
}

/// A request that was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shed {
    pub retry_after_s: u32,
}

impl From<Shed> for ApiError {
    fn from(Shed { retry_after_s }: Shed) -> ApiError {
        ApiError::Shed { retry_after_s }
    }
}

/// Highest value of `Retry-After`; the lowest is 1.
const RETRY_AFTER_S_MAX: u32 = 3;

impl Admission {
    pub(super) fn new(limits: &AdmissionLimits) -> Admission {
        let gate = |class, limit| Arc::new(Gate::new(class, limit, limits.queue_timeout));
        Admission {
            reads: gate(Class::Read, limits.reads),
            exports: gate(Class::Export, limits.exports),
            streams: gate(Class::Stream, limits.streams),
            log_ins: gate(Class::LogIn, limits.log_ins),
            writes: gate(Class::Write, limits.writes),
            visitors: gate(Class::Visitor, limits.visitors),
            sheds: AtomicU32::new(0),
        }
    }

    /// Admits a request, at once or after a short time in the queue. Health checks need no slot.
    ///
    /// # Errors
    /// The class is at its limit and its queue is full or too slow.
    pub(super) async fn enter(&self, class: Class) -> Result<Option<Admitted>, Shed> {
        let Some(gate) = self.gate(class) else { return Ok(None) };
        match gate.enter().await {
            Some(admitted) => Ok(Some(admitted)),
            None => Err(self.shed(class)),
        }
    }

    /// Counts a shed request.
    pub(super) fn shed(&self, class: Class) -> Shed {
        if let Some(gate) = self.gate(class) {
            gate.sheds.increment(1);
        }
        let number = self.sheds.fetch_add(1, Ordering::Relaxed);
        Shed { retry_after_s: 1 + number % RETRY_AFTER_S_MAX }
    }

    fn gate(&self, class: Class) -> Option<&Arc<Gate>> {
        match class {
            Class::Health => None,
            Class::Read => Some(&self.reads),
            Class::Export => Some(&self.exports),
            Class::Stream => Some(&self.streams),
            Class::LogIn => Some(&self.log_ins),
            Class::Write => Some(&self.writes),
            Class::Visitor => Some(&self.visitors),
        }
    }
}

/// The slots and the queue of one class.
struct Gate {
    slots: Arc<Semaphore>,
    limit: u32,
    queued: AtomicU32,
    queue_timeout: Duration,
    /// Moving average of how long a request holds its slot, in microseconds.
    service_us: AtomicU64,
    in_flight: Gauge,
    sheds: Counter,
}

/// The slot of an admitted request, released on drop.
pub(super) struct Admitted {
    gate: Arc<Gate>,
    since: Instant,
    _slot: OwnedSemaphorePermit,
}

impl Gate {
    fn new(class: Class, limit: u32, queue_timeout: Duration) -> Gate {
        let class = class.as_str();
        Gate {
            slots: Arc::new(Semaphore::new(limit as usize)),
            limit,
            queued: AtomicU32::new(0),
            queue_timeout,
            service_us: AtomicU64::new(0),
            in_flight: gauge!("dropdex_requests_in_flight", "class" => class),
            sheds: counter!("dropdex_sheds_total", "class" => class),
        }
    }

    async fn enter(self: &Arc<Gate>) -> Option<Admitted> {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(self.admitted(slot));
        }
        let queued = Queued::new(&self.queued);
        // Fail fast instead of timing out in the queue. The factor of two allows for requests that are
        // slower than the recent ones.
        if queued.before >= self.limit || 2 * self.expected_wait(queued.before) > self.queue_timeout
        {
            return None;
        }
        let slot = timeout(self.queue_timeout, Arc::clone(&self.slots).acquire_owned()).await;
        Some(self.admitted(slot.ok()?.ok()?))
    }

    /// Expected time in the queue behind `before` other requests, estimated from recent service
    /// times.
    fn expected_wait(&self, before: u32) -> Duration {
        let service_us = self.service_us.load(Ordering::Relaxed);
        Duration::from_micros(service_us * u64::from(before + 1) / u64::from(self.limit))
    }

    fn admitted(self: &Arc<Gate>, slot: OwnedSemaphorePermit) -> Admitted {
        self.in_flight.increment(1);
        Admitted { gate: Arc::clone(self), since: Instant::now(), _slot: slot }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.gate.in_flight.decrement(1);
        let service_us = self.since.elapsed().as_micros() as u64;
        // Weight 1/8. If two requests end at the same time, one sample may be lost, which is
        // harmless.
        let average = self.gate.service_us.load(Ordering::Relaxed);
        self.gate.service_us.store((average * 7 + service_us) / 8, Ordering::Relaxed);
    }
}

/// A request in the queue, counted until it is dropped.
struct Queued<'a> {
    count: &'a AtomicU32,
    /// Number of requests ahead of it in the queue.
    before: u32,
}

impl Queued<'_> {
    fn new(count: &AtomicU32) -> Queued<'_> {
        Queued { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(reads: u32, queue_timeout: Duration) -> Admission {
        Admission::new(&AdmissionLimits { reads, queue_timeout, ..AdmissionLimits::default() })
    }

    #[tokio::test]
    async fn health_is_never_refused() {
        let admission = admission(1, Duration::ZERO);
        let _held = admission.enter(Class::Read).await.expect("the first");
        assert!(admission.enter(Class::Read).await.is_err());
        assert!(admission.enter(Class::Health).await.expect("always").is_none());
        assert!(admission.enter(Class::Write).await.is_ok(), "classes are independent");
    }

    #[tokio::test]
    async fn a_released_slot_goes_to_the_queue() {
        let admission = Arc::new(admission(1, Duration::from_secs(60)));
        let held = admission.enter(Class::Read).await.expect("the first");
        let second = Arc::clone(&admission);
        let second = tokio::spawn(async move { second.enter(Class::Read).await.is_ok() });
        while admission.reads.queued.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(admission.enter(Class::Read).await.is_err(), "the queue is as long as the limit");
        drop(held);
        assert!(second.await.expect("no panic"));
    }

    #[tokio::test]
    async fn requests_that_would_time_out_in_the_queue_are_shed_at_once() {
        let admission = admission(1, Duration::from_millis(50));
        let _held = admission.enter(Class::Read).await.expect("the first");
        let began = Instant::now();
        assert!(admission.enter(Class::Read).await.is_err());
        assert!(began.elapsed() >= Duration::from_millis(50), "it queued: no history");
        // Recent requests held their slots for a second.
        admission.reads.service_us.store(1_000_000, Ordering::Relaxed);
        let began = Instant::now();
        let seconds: Vec<u32> = {
            let mut seconds = Vec::new();
            for _ in 0..6 {
                let Err(shed) = admission.enter(Class::Read).await else { panic!("let in") };
                seconds.push(shed.retry_after_s);
            }
            seconds
        };
        assert!(began.elapsed() < 6 * Duration::from_millis(50), "they queued");
        assert_eq!(seconds, [2, 3, 1, 2, 3, 1]);
    }
}
