//! Answers kept for a day under the key their request named, so that sending it again does nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::accounts::write::{IdempotencyKey, Reply};
use crate::vocab::time::UnixMs;

/// How long an answer is kept (reliability.md §3; the API document of the project).
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

/// What a key is kept as: the first 16 bytes of its BLAKE3 digest.
pub type KeyDigest = [u8; 16];

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReply {
    /// Of the key it was sent under.
    pub key: KeyDigest,
    /// Of the request.
    pub fingerprint: [u8; 32],
    /// When it was carried out.
    pub at: UnixMs,
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Box<[u8]>,
}

impl KeptReply {
    /// Whether its day is over at `now`.
    pub fn is_over(&self, now: UnixMs) -> bool {
        now.get() >= self.at.get().saturating_add(KEPT_MS)
    }

    /// The answer.
    pub fn reply(&self) -> Reply {
        Reply { status: self.status, body: self.body.to_vec() }
    }
}

/// What [`KeptReply::key`] is for `key`.
pub fn digest_of(key: &IdempotencyKey) -> KeyDigest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(key.as_str().as_bytes()).as_bytes()[..16]);
    digest
}

/// All answers kept for one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::accounts) struct Replies {
    by_key: BTreeMap<KeyDigest, Arc<KeptReply>>,
    by_time: BTreeSet<(UnixMs, KeyDigest)>,
    body_bytes: usize,
}

impl Replies {
    /// Bytes of all bodies.
    pub(in crate::accounts) fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// The answer under `key`, if its day is not over at `now`.
    pub(in crate::accounts) fn get(&self, key: &KeyDigest, now: UnixMs) -> Option<&KeptReply> {
        self.by_key.get(key).map(Arc::as_ref).filter(|reply| !reply.is_over(now))
    }

    /// In order of keys' digests.
    pub(in crate::accounts) fn iter(&self) -> impl ExactSizeIterator<Item = &KeptReply> {
        self.by_key.values().map(Arc::as_ref)
    }

    /// Whether [`Replies::forget`] would forget any.
    pub(in crate::accounts) fn has_over(&self, now: UnixMs) -> bool {
        self.oldest().is_some_and(|reply| reply.is_over(now))
    }

    /// Forgets the answers whose day is over at `now`.
    pub(in crate::accounts) fn forget(&mut self, now: UnixMs) {
        while let Some(key) = self.oldest().filter(|it| it.is_over(now)).map(|it| it.key) {
            self.remove(&key);
        }
    }

    /// Keeps an answer, in place of one under its key.
    pub(in crate::accounts) fn put(&mut self, reply: KeptReply) {
        self.remove(&reply.key);
        self.body_bytes += reply.body.len();
        self.by_time.insert((reply.at, reply.key));
        self.by_key.insert(reply.key, Arc::new(reply));
    }

    fn oldest(&self) -> Option<&KeptReply> {
        self.by_key.get(&self.by_time.first()?.1).map(Arc::as_ref)
    }

    fn remove(&mut self, key: &KeyDigest) {
        if let Some(old) = self.by_key.remove(key) {
            self.by_time.remove(&(old.at, old.key));
            self.body_bytes -= old.body.len();
        }
    }
}
