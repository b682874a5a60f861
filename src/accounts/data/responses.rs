//! Responses kept for 24 hours under the idempotency key of their request.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::data::access::is_younger;
use crate::data::fields::row;
use crate::data::sorted::Sorted;
use crate::vocab::time::UnixMs;

/// How long a response is kept (`data/docs/api.md`, Idempotency).
const KEPT: TimeDelta = TimeDelta::hours(24);

/// Approximate size in memory of a response without its body.
const RESPONSE_BYTES: u64 = 256;
/// Maximum responses that one event drops: dropping those of a whole day would hold the lock of the
/// state for too long. Each event adds no more than one response, so expired ones do not
/// accumulate.
const EXPIRED_AT_ONCE_MAX: usize = 64;

/// The first 16 bytes of the BLAKE3 digest of an idempotency key.
pub type KeyDigest = [u8; 16];

/// A response. Status and body are opaque to this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptResponse {
    pub key: KeyDigest,
    /// Digest of the request.
    pub fingerprint: [u8; 32],
    /// Time of the request.
    pub at: UnixMs,
    pub status: u16,
    pub body: Box<[u8]>,
}

row!(KeptResponse { 1 key, 2 fingerprint, 3 at, 4 status, 5 body });

impl KeptResponse {
    /// Returns the approximate size in memory of the response.
    pub fn bytes(&self) -> u64 {
        RESPONSE_BYTES + self.body.len() as u64
    }

    /// Returns true if the response's 24 hours are over at `now`, or if its time came from a wrong
    /// clock.
    pub fn has_expired(&self, now: UnixMs) -> bool {
        !is_younger(self.at, KEPT, now)
    }
}

/// All responses kept for one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    by_key: Sorted<KeyDigest, Arc<KeptResponse>>,
    by_time: Sorted<(UnixMs, KeyDigest), ()>,
    bytes: u64,
}

impl Responses {
    /// Returns the approximate size in memory of all responses.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the approximate size in memory of the responses that have expired by `now`; the next
    /// event will drop them.
    pub fn expired_bytes(&self, now: UnixMs) -> u64 {
        let oldest = self.by_time.iter().filter_map(|((_, key), ())| self.by_key.get(key));
        oldest.take_while(|it| it.has_expired(now)).map(|it| it.bytes()).sum()
    }

    /// Returns the response under `key`, unless it has expired by `now`.
    pub fn get(&self, key: &KeyDigest, now: UnixMs) -> Option<&KeptResponse> {
        self.by_key.get(key).map(Arc::as_ref).filter(|response| !response.has_expired(now))
    }

    /// Returns the responses in order of the keys' digests.
    pub fn iter(&self) -> impl Iterator<Item = &KeptResponse> {
        self.by_key.values().map(Arc::as_ref)
    }

    /// Drops responses that are older than a day at `now`, oldest first, up to
    /// [`EXPIRED_AT_ONCE_MAX`]. `now` is the time of an event, never that of the clock, so that a
    /// replay drops the same responses. The event may have the time of something that was created
    /// days before, so a response later than `now` need not come from a wrong clock.
    pub fn expire(&mut self, now: UnixMs) {
        self.drop_oldest(|it| now.instant() - it.at.instant() >= KEPT);
    }

    /// Like [`Responses::expire`], but at the time of a request. This also drops responses whose
    /// time came from a wrong clock.
    pub fn expire_at_request(&mut self, now: UnixMs) {
        self.drop_oldest(|it| it.has_expired(now));
    }

    fn drop_oldest(&mut self, is_due: impl Fn(&KeptResponse) -> bool) {
        for _ in 0..EXPIRED_AT_ONCE_MAX {
            let Some(expired) = self.oldest().filter(|it| is_due(it)) else { return };
            let key = expired.key;
            self.remove(&key);
        }
    }

    /// Adds a response, or replaces the one with the same key.
    pub fn put(&mut self, response: KeptResponse) {
        self.remove(&response.key);
        self.bytes += response.bytes();
        self.by_time.insert((response.at, response.key), ());
        self.by_key.insert(response.key, Arc::new(response));
    }

    fn oldest(&self) -> Option<&KeptResponse> {
        let ((_, key), ()) = self.by_time.first()?;
        self.by_key.get(key).map(Arc::as_ref)
    }

    fn remove(&mut self, key: &KeyDigest) {
        if let Some(old) = self.by_key.remove(key) {
            self.by_time.remove(&(old.at, old.key));
            self.bytes -= old.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> UnixMs {
        UnixMs::new(1_790_000_000_000 + hours * 3_600_000).expect("an instant")
    }

    /// The event of a changed saved search has the time at which the search was created.
    #[test]
    fn an_event_about_something_old_drops_no_newer_response() {
        let mut responses = Responses::default();
        for (key, hours) in [(1, 75), (2, 98)] {
            let body: Vec<u8> = vec![key];
            responses.put(KeptResponse {
                key: [key; 16],
                fingerprint: [0; 32],
                at: at(hours),
                status: 201,
                body: body.as_slice().into(),
            });
        }
        responses.expire(at(0));
        assert_eq!(responses.iter().count(), 2);
        responses.expire(at(99));
        assert_eq!(responses.iter().map(|it| it.at).collect::<Vec<_>>(), [at(98)]);
        responses.expire_at_request(at(0));
        assert_eq!(responses.iter().count(), 0, "the clock was wrong");
    }
}
