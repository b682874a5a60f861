//! Objects in the object store of NATS JetStream: the bucket `<stream>-files`, on the servers of the shared log.

use std::io::Cursor;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::object_store::{
    self, DeleteErrorKind, GetErrorKind, ObjectMetadata, ObjectStore,
};
use async_nats::jetstream::stream::StorageType;
use futures_util::TryStreamExt;
use hyper::body::Bytes;
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

use super::list::{ObjectKey, PART_BYTES_MAX};
use super::objects::{ObjectError, Objects, Stored};
use crate::nodes::jetstream::JetStream;

/// Bytes of a message. Servers accept messages of up to 1 MB.
const CHUNK_BYTES: usize = 512 << 10;

/// The bucket, opened on first use and created if it does not exist.
pub struct Bucket {
    stream: JetStream,
    opened: Mutex<Option<ObjectStore>>,
}

impl Bucket {
    /// Returns the bucket that belongs to the stream of the shared log.
    pub fn new(stream: JetStream) -> Bucket {
        Bucket { stream, opened: Mutex::default() }
    }

    async fn open(&self) -> Result<ObjectStore, ObjectError> {
        let mut opened = self.opened.lock().await;
        if let Some(store) = &*opened {
            return Ok(store.clone());
        }
        let context = self.stream.large().await.map_err(unavailable)?;
        let settings = self.stream.settings();
        let bucket = format!("{}-files", settings.stream);
        let store = match context.get_object_store(&bucket).await {
            Ok(store) => store,
            Err(_) => {
                let config = object_store::Config {
                    bucket,
                    storage: StorageType::File,
                    num_replicas: settings.replicas.into(),
                    max_bytes: -1,
                    ..object_store::Config::default()
                };
                context.create_object_store(config).await.map_err(unavailable)?
            }
        };
        *opened = Some(store.clone());
        Ok(store)
    }

    async fn put_named(&self, name: String, bytes: Bytes) -> Result<(), ObjectError> {
        let metadata =
            ObjectMetadata { name, chunk_size: Some(CHUNK_BYTES), ..ObjectMetadata::default() };
        let stored = self.open().await?.put(metadata, &mut Cursor::new(bytes)).await;
        stored.map(drop).map_err(unavailable)
    }

    async fn named(&self, name: String) -> Result<Option<Bytes>, ObjectError> {
        let mut object = match self.open().await?.get(name).await {
            Err(err) if err.kind() == GetErrorKind::NotFound => return Ok(None),
            object => object.map_err(unavailable)?,
        };
        let mut bytes = Vec::with_capacity(object.info.size.min(PART_BYTES_MAX));
        object.read_to_end(&mut bytes).await.map_err(unavailable)?;
        Ok(Some(bytes.into()))
    }
}

impl Objects for Bucket {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), ObjectError> {
        self.put_named(key.to_string(), bytes).await
    }

    async fn get(&self, key: ObjectKey) -> Result<Bytes, ObjectError> {
        self.named(key.to_string()).await?.ok_or(ObjectError::Missing(key))
    }

    async fn put_note(&self, name: &'static str, bytes: Bytes) -> Result<(), ObjectError> {
        self.put_named(name.to_owned(), bytes).await
    }

    async fn note(&self, name: &'static str) -> Result<Option<Bytes>, ObjectError> {
        self.named(name.to_owned()).await
    }

    async fn list(&self) -> Result<Vec<Stored>, ObjectError> {
        let listed = self.open().await?.list().await.map_err(unavailable)?;
        let objects: Vec<_> = listed.try_collect().await.map_err(unavailable)?;
        let now = SystemTime::now();
        let stored = objects.into_iter().filter(|object| !object.deleted).filter_map(|object| {
            let modified = object.modified.map(SystemTime::from);
            let age = modified.and_then(|at| now.duration_since(at).ok());
            Some(Stored {
                key: ObjectKey::parse(&object.name)?,
                age: age.unwrap_or(Duration::ZERO),
            })
        });
        Ok(stored.collect())
    }

    async fn delete(&self, key: ObjectKey) -> Result<(), ObjectError> {
        match self.open().await?.delete(key.to_string()).await {
            Err(err) if err.kind() == DeleteErrorKind::NotFound => Ok(()),
            deleted => deleted.map_err(unavailable),
        }
    }
}

fn unavailable(err: impl std::fmt::Display) -> ObjectError {
    ObjectError::Unavailable(err.to_string())
}
