//! The object store that the settings choose.

use anyhow::Context;
use hyper::body::Bytes;

use super::ObjectKey;
use super::jetstream::Bucket;
use super::objects::{ObjectError, Objects, Stored};
use super::s3::S3;
use super::settings::S3Settings;
use crate::cluster::jetstream::JetStream;
use crate::outbound::dns::Dns;
use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::{cluster, outbound};

/// One of the stores.
pub enum FileStore {
    /// Beside the shared log.
    JetStream(Box<Bucket>),
    S3(S3),
}

impl FileStore {
    /// The store of the cluster with this log: the bucket of `s3` if there is one. `calls` has the rules for its
    /// address.
    ///
    /// # Errors
    /// The settings of the bucket cannot be used.
    pub fn new(
        log: &cluster::settings::Settings,
        s3: Option<&S3Settings>,
        calls: &outbound::settings::Settings,
    ) -> anyhow::Result<FileStore> {
        let Some(s3) = s3 else {
            return Ok(FileStore::JetStream(Bucket::new(JetStream::new(log.clone())).into()));
        };
        let guard = Guard::new(calls.rules(&s3.allow), Dns::new(&calls.dns)?);
        let client = Client::new(guard, s3.ca_file.as_deref()).context("cluster.s3")?;
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
