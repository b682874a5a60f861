//! A store in memory, for tests. The store can simulate the failures of a real one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;

use super::list::ObjectKey;
use super::objects::{ObjectError, Objects, Stored};

/// A store in memory. Clones share their objects.
#[derive(Clone, Default)]
pub struct Memory {
    objects: Arc<Mutex<HashMap<ObjectKey, (Bytes, Instant)>>>,
    notes: Arc<Mutex<HashMap<&'static str, Bytes>>>,
    pub puts: Arc<AtomicU64>,
    pub gets: Arc<AtomicU64>,
    /// Number of calls that succeed before all later calls fail; unlimited by default.
    pub calls_left: Arc<Mutex<Option<u64>>>,
}

impl Memory {
    pub fn objects(&self) -> MutexGuard<'_, HashMap<ObjectKey, (Bytes, Instant)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn fail_after(&self, calls: Option<u64>) {
        *self.calls_left.lock().unwrap_or_else(PoisonError::into_inner) = calls;
    }

    fn call(&self) -> Result<(), ObjectError> {
        let mut left = self.calls_left.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *left {
            Some(0) => Err(ObjectError::Unavailable("lost".to_owned())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Objects for Memory {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), ObjectError> {
        self.call()?;
        self.puts.fetch_add(1, Ordering::Relaxed);
        self.objects().insert(key, (bytes, Instant::now()));
        Ok(())
    }

    async fn get(&self, key: ObjectKey) -> Result<Bytes, ObjectError> {
        self.call()?;
        self.gets.fetch_add(1, Ordering::Relaxed);
        let found = self.objects().get(&key).map(|(bytes, _)| bytes.clone());
        found.ok_or(ObjectError::Missing(key))
    }

    async fn put_note(&self, name: &'static str, bytes: Bytes) -> Result<(), ObjectError> {
        self.call()?;
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(name, bytes);
        Ok(())
    }

    async fn note(&self, name: &'static str) -> Result<Option<Bytes>, ObjectError> {
        self.call()?;
        Ok(self.notes.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
    }

    async fn list(&self) -> Result<Vec<Stored>, ObjectError> {
        self.call()?;
        let stored = |(key, (_, at)): (&_, &(_, Instant))| Stored { key: *key, age: at.elapsed() };
        Ok(self.objects().iter().map(stored).collect())
    }

    async fn delete(&self, key: ObjectKey) -> Result<(), ObjectError> {
        self.call()?;
        self.objects().remove(&key);
        Ok(())
    }
}

/// Matches objects of any age.
pub const ANY_AGE: Duration = Duration::ZERO;
