//! The interface of a store of objects.

use std::future::Future;
use std::time::Duration;

use hyper::body::Bytes;
use thiserror::Error;

use super::list::ObjectKey;

/// Reason why an object was not stored or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// The object was removed, because newer files replaced it.
    #[error("the object {0} is not in the store")]
    Missing(ObjectKey),
    #[error("the object {0} is damaged in the store")]
    Damaged(ObjectKey),
    #[error("the object store cannot be used: {0}")]
    Unavailable(String),
}

/// An object of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub key: ObjectKey,
    /// Time since it was stored.
    pub age: Duration,
}

/// A store of objects named by their content.
pub trait Objects: Send + Sync + 'static {
    /// Stores an object, even if it is already stored.
    fn put(
        &self,
        key: ObjectKey,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), ObjectError>> + Send;

    /// Returns an object. The caller verifies the content of an object against its name.
    fn get(&self, key: ObjectKey) -> impl Future<Output = Result<Bytes, ObjectError>> + Send;

    /// Stores a note under a name, replacing the previous one. `name` must not look like a key.
    fn put_note(
        &self,
        name: &'static str,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), ObjectError>> + Send;

    /// Returns a note, if there is one.
    fn note(
        &self,
        name: &'static str,
    ) -> impl Future<Output = Result<Option<Bytes>, ObjectError>> + Send;

    /// Lists all objects except notes.
    fn list(&self) -> impl Future<Output = Result<Vec<Stored>, ObjectError>> + Send;

    /// Removes an object. A missing object is not an error.
    fn delete(&self, key: ObjectKey) -> impl Future<Output = Result<(), ObjectError>> + Send;
}
