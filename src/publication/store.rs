//! The object store that the settings choose.

use hyper::body::Bytes;

use super::ObjectKey;
use super::jetstream::Bucket;
use super::objects::{ObjectError, Objects, Stored};
use super::s3::S3;

/// One of the stores.
pub enum FileStore {
    /// Beside the shared log.
    JetStream(Box<Bucket>),
    S3(S3),
}

impl Objects for FileStore {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), ObjectError> {
        match self {
            FileStore::JetStream(bucket) => bucket.put(key, bytes).await,
            FileStore::S3(bucket) => bucket.put(key, bytes).await,
        }
    }

    async fn get(&self, key: ObjectKey) -> Result<Bytes, ObjectError> {
        match self {
            FileStore::JetStream(bucket) => bucket.get(key).await,
            FileStore::S3(bucket) => bucket.get(key).await,
        }
    }

    async fn list(&self) -> Result<Vec<Stored>, ObjectError> {
        match self {
            FileStore::JetStream(bucket) => bucket.list().await,
            FileStore::S3(bucket) => bucket.list().await,
        }
    }

    async fn delete(&self, key: ObjectKey) -> Result<(), ObjectError> {
        match self {
            FileStore::JetStream(bucket) => bucket.delete(key).await,
            FileStore::S3(bucket) => bucket.delete(key).await,
        }
    }
}
