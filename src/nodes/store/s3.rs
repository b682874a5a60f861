//! Objects in a bucket of a service that speaks the protocol of Amazon S3.

use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use hyper::body::Bytes;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::list::ObjectKey;
use super::objects::{ObjectError, Objects, Stored};
use crate::bucket::S3Settings;
use crate::outbound::http::Client;

/// A bucket.
pub struct S3 {
    store: AmazonS3,
    prefix: Path,
}

impl S3 {
    /// Creates the store of a bucket, accessed through this client.
    ///
    /// # Errors
    /// The key cannot be read, or a setting is invalid.
    pub fn new(settings: &S3Settings, client: Client) -> anyhow::Result<S3> {
        // The transfer retries, so the client does not.
        let (store, prefix) = settings.open(client, 0)?;
        Ok(S3 { store, prefix })
    }

    fn path(&self, name: impl ToString) -> Path {
        self.prefix.clone().join(name.to_string())
    }

    async fn put_at(&self, path: &Path, bytes: Bytes) -> Result<(), ObjectError> {
        self.store.put(path, bytes.into()).await.map(drop).map_err(unavailable)
    }

    async fn at(&self, path: &Path) -> Result<Option<Bytes>, ObjectError> {
        match self.store.get(path).await {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            found => Ok(Some(found.map_err(unavailable)?.bytes().await.map_err(unavailable)?)),
        }
    }
}

impl Objects for S3 {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), ObjectError> {
        self.put_at(&self.path(key), bytes).await
    }

    async fn get(&self, key: ObjectKey) -> Result<Bytes, ObjectError> {
        self.at(&self.path(key)).await?.ok_or(ObjectError::Missing(key))
    }

    async fn put_note(&self, name: &'static str, bytes: Bytes) -> Result<(), ObjectError> {
        self.put_at(&self.path(name), bytes).await
    }

    async fn note(&self, name: &'static str) -> Result<Option<Bytes>, ObjectError> {
        self.at(&self.path(name)).await
    }

    async fn list(&self) -> Result<Vec<Stored>, ObjectError> {
        let listed = self.store.list(Some(&self.prefix)).try_collect::<Vec<_>>().await;
        let listed = listed.map_err(unavailable)?;
        let now = SystemTime::now();
        let stored = listed.into_iter().filter_map(|object| {
            let key = ObjectKey::parse(object.location.filename()?)?;
            let age = now.duration_since(object.last_modified.into()).unwrap_or(Duration::ZERO);
            Some(Stored { key, age })
        });
        Ok(stored.collect())
    }

    async fn delete(&self, key: ObjectKey) -> Result<(), ObjectError> {
        match self.store.delete(&self.path(key)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            deleted => deleted.map_err(unavailable),
        }
    }
}

fn unavailable(err: object_store::Error) -> ObjectError {
    ObjectError::Unavailable(err.to_string())
}
