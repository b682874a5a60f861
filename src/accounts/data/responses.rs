//! Responses kept for 24 hours under the idempotency key of their request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::vocab::time::UnixMs;

/// How long a response is kept (`data/docs/api.md`, Idempotency).
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

/// The first 16 bytes of the BLAKE3 digest of an idempotency key.
pub type KeyDigest = [u8; 16];

/// One response. Its status and body are opaque here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResponse {
    pub key: KeyDigest,
    /// Digest of the request.
    pub fingerprint: [u8; 32],
    /// Time of the request.
    pub at: UnixMs,
    pub status: u16,
    pub body: Box<[u8]>,
}

impl KeptResponse {
    /// Whether its 24 hours are over at `now`.
    pub fn has_expired(&self, now: UnixMs) -> bool {
        now.get() >= self.at.get().saturating_add(KEPT_MS)
    }
}

/// All responses kept for one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    by_key: BTreeMap<KeyDigest, Arc<KeptResponse>>,
    by_time: BTreeSet<(UnixMs, KeyDigest)>,
    body_bytes: usize,
}

impl Responses {
    /// Bytes of all bodies.
    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// The response under `key`, unless it has expired by `now`.
    pub fn get(&self, key: &KeyDigest, now: UnixMs) -> Option<&KeptResponse> {
        self.by_key.get(key).map(Arc::as_ref).filter(|response| !response.has_expired(now))
    }

    /// In order of the keys' digests.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &KeptResponse> {
        self.by_key.values().map(Arc::as_ref)
    }

    /// Whether [`Responses::expire`] would drop any.
    pub fn has_expired(&self, now: UnixMs) -> bool {
        self.oldest().is_some_and(|response| response.has_expired(now))
    }

    /// Drops the responses that have expired by `now`.
    pub fn expire(&mut self, now: UnixMs) {
        while let Some(key) = self.oldest().filter(|it| it.has_expired(now)).map(|it| it.key) {
            self.remove(&key);
        }
    }

    /// Adds a response, or replaces the one under its key.
    pub fn put(&mut self, response: KeptResponse) {
        self.remove(&response.key);
        self.body_bytes += response.body.len();
        self.by_time.insert((response.at, response.key));
        self.by_key.insert(response.key, Arc::new(response));
    }

    fn oldest(&self) -> Option<&KeptResponse> {
        self.by_key.get(&self.by_time.first()?.1).map(Arc::as_ref)
    }

    fn remove(&mut self, key: &KeyDigest) {
        if let Some(old) = self.by_key.remove(key) {
            self.by_time.remove(&(old.at, old.key));
            self.body_bytes -= old.body.len();
        }
    }
}
