//! Shares the files of one node with all others through an object store.
//!
//! A file is a sequence of parts, and a part is an object named by the hash of its content:
//! received bytes are verified, an interrupted transfer resumes with the next part, and unchanged
//! parts are not sent. A [`FileList`](list::FileList) names the parts of all files and is an object
//! too; its name goes through the shared log.
//!
//! [`transfer`] moves files, [`objects`] is the interface of a store, [`jetstream`] keeps objects in NATS and [`s3`] in
//! a service with the protocol of Amazon S3; [`FileStore`] is the one that the settings choose.

pub mod jetstream;
pub mod list;
#[cfg(test)]
mod memory;
pub mod objects;
pub mod s3;
#[cfg(test)]
mod tests;
pub mod transfer;

use anyhow::Context;
use hyper::body::Bytes;

use crate::bucket::S3Settings;
use crate::nodes::jetstream::JetStream;
use crate::{cluster, outbound};
use jetstream::Bucket;
use list::ObjectKey;
use objects::{ObjectError, Objects, Stored};
use s3::S3;

/// The store that the settings choose.
pub enum FileStore {
    /// The object store of the servers of the shared log.
    JetStream(Box<Bucket>),
    S3(S3),
}

impl FileStore {
    /// Returns the store of the cluster with this log: the bucket of `s3` if it is set. `calls` has
    /// the rules for the address of the bucket.
    ///
    /// # Errors
    /// The settings of the bucket cannot be used.
    pub fn new(
        log: &cluster::settings::SharedLogSettings,
        s3: Option<&S3Settings>,
        calls: &outbound::settings::Settings,
    ) -> anyhow::Result<FileStore> {
        let Some(s3) = s3 else {
            return Ok(FileStore::JetStream(Bucket::new(JetStream::new(log.clone())).into()));
        };
        let client = s3.client(calls).context("cluster.s3")?;
        Ok(FileStore::S3(S3::new(s3, client).context("cluster.s3")?))
    }
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

    async fn put_note(&self, name: &'static str, bytes: Bytes) -> Result<(), ObjectError> {
        match self {
            FileStore::JetStream(bucket) => bucket.put_note(name, bytes).await,
            FileStore::S3(bucket) => bucket.put_note(name, bytes).await,
        }
    }

    async fn note(&self, name: &'static str) -> Result<Option<Bytes>, ObjectError> {
        match self {
            FileStore::JetStream(bucket) => bucket.note(name).await,
            FileStore::S3(bucket) => bucket.note(name).await,
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
