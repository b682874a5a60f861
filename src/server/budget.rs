//! Byte budgets of the process: one for request bodies in memory, one for unsent responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use metrics::{Counter, Gauge, counter, gauge};

use crate::edge::class::Class;
use crate::server::state::ConnectionState;

/// A process-wide limit of bytes.
pub(super) struct ByteBudget {
    limit: u64,
    used: AtomicU64,
    used_gauge: Gauge,
    refusals: Counter,
}

impl ByteBudget {
    pub(super) fn new(name: &'static str, limit: u64) -> Arc<ByteBudget> {
        gauge!("dropdex_budget_limit_bytes", "budget" => name).set(limit as f64);
        let refusals = counter!("dropdex_budget_refusals_total", "budget" => name);
        refusals.increment(0);
        Arc::new(ByteBudget {
            limit,
            used: AtomicU64::new(0),
            used_gauge: gauge!("dropdex_budget_used_bytes", "budget" => name),
            refusals,
        })
    }

    /// An empty share, which can grow.
    pub(super) fn empty(self: &Arc<ByteBudget>) -> Share {
        Share { budget: Arc::clone(self), bytes: 0 }
    }

    /// Takes `bytes`, which the share returns on drop. Returns `None` if the budget has fewer bytes
    /// left for the class.
    fn take(self: &Arc<ByteBudget>, bytes: u64, class: Class) -> Option<Share> {
        let mut share = self.empty();
        share.grow_within(self.limit_of(class), bytes).then_some(share)
    }

    /// Visitors may use half, so that responses they leave unread cannot block those of customers.
    fn limit_of(&self, class: Class) -> u64 {
        if class == Class::Visitor { self.limit / 2 } else { self.limit }
    }

    /// Takes `bytes` even if the budget has fewer left, for data that is already in memory.
    fn take_anyway(self: &Arc<ByteBudget>, bytes: u64) -> Share {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.used_gauge.increment(bytes as f64);
        Share { budget: Arc::clone(self), bytes }
    }

    /// Whether less than a sixteenth of the budget is left for the class.
    pub(super) fn is_nearly_used(&self, class: Class) -> bool {
        self.used.load(Ordering::Relaxed) > self.limit_of(class) / 16 * 15
    }
}

/// Bytes taken from a budget.
pub(super) struct Share {
    budget: Arc<ByteBudget>,
    bytes: u64,
}

impl Share {
    /// Takes `bytes` more. Returns false, and takes nothing, if the budget has fewer bytes left.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        self.grow_within(self.budget.limit, bytes)
    }

    fn grow_within(&mut self, limit: u64, bytes: u64) -> bool {
        let ByteBudget { used, used_gauge, refusals, .. } = &*self.budget;
        // Adds the bytes first and undoes that on failure, so that the usual case is one atomic
        // operation.
        if used.fetch_add(bytes, Ordering::Relaxed) + bytes > limit {
            used.fetch_sub(bytes, Ordering::Relaxed);
            refusals.increment(1);
            return false;
        }
        used_gauge.increment(bytes as f64);
        self.bytes += bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.used_gauge.decrement(self.bytes as f64);
    }
}

/// Unsent bytes of a response, counted for the process and for its connection.
pub(super) struct Unsent {
    share: Share,
    connection: Arc<ConnectionState>,
}

impl Unsent {
    /// Returns `None` if the budget has fewer than `bytes` left for the class.
    pub(super) fn take(
        budget: &Arc<ByteBudget>,
        connection: &Arc<ConnectionState>,
        bytes: u64,
        class: Class,
    ) -> Option<Unsent> {
        budget.take(bytes, class).map(|share| Unsent::count(share, connection))
    }

    /// Counts a piece of a response that is being streamed.
    pub(super) fn take_anyway(
        budget: &Arc<ByteBudget>,
        connection: &Arc<ConnectionState>,
        bytes: u64,
    ) -> Unsent {
        Unsent::count(budget.take_anyway(bytes), connection)
    }

    fn count(share: Share, connection: &Arc<ConnectionState>) -> Unsent {
        connection.add_unsent(share.bytes);
        Unsent { share, connection: Arc::clone(connection) }
    }

    /// Ties the count to `data`: it ends when hyper drops the last part, after writing it.
    pub(super) fn hold(self, data: Bytes) -> Bytes {
        Bytes::from_owner(UnsentBytes { data, _unsent: self })
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.connection.remove_unsent(self.share.bytes);
    }
}

struct UnsentBytes {
    data: Bytes,
    _unsent: Unsent,
}

impl AsRef<[u8]> for UnsentBytes {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::settings::Deadlines;
    use crate::server::state::Protocol;

    #[test]
    fn shares_return_their_bytes() {
        let budget = ByteBudget::new("test", 100);
        let mut share = budget.take(60, Class::Read).expect("room");
        assert!(budget.take(41, Class::Read).is_none());
        assert!(share.grow(40) && !share.grow(1));
        assert!(budget.is_nearly_used(Class::Read));
        drop(share);
        assert!(budget.take(100, Class::Read).is_some());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn visitors_leave_half_to_others() {
        let budget = ByteBudget::new("test", 100);
        let unread = budget.take(50, Class::Visitor).expect("room");
        assert!(budget.take(1, Class::Visitor).is_none());
        assert!(budget.is_nearly_used(Class::Visitor) && !budget.is_nearly_used(Class::Read));
        assert!(budget.take(50, Class::Read).is_some());
        drop(unread);
    }

    #[test]
    fn held_bytes_count_until_their_last_part_is_dropped() {
        let budget = ByteBudget::new("test", 100);
        let state = Arc::new(ConnectionState::new(Protocol::Http2, Deadlines::default()));
        let unsent = Unsent::take(&budget, &state, 80, Class::Read).expect("room");
        let mut data = unsent.hold(Bytes::from_static(b"hello"));
        let first = data.split_to(2);
        drop(data);
        assert_eq!((&first[..], state.unsent()), (&b"he"[..], 80));
        assert!(Unsent::take(&budget, &state, 80, Class::Read).is_none());
        drop(Unsent::take_anyway(&budget, &state, 80));
        drop(first);
        assert_eq!((state.unsent(), budget.used.load(Ordering::Relaxed)), (0, 0));
    }
}
