//! Objects in a bucket of a service that speaks the protocol of Amazon S3.

use std::fmt;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use async_trait::async_trait;
use futures_util::TryStreamExt;
use hyper::body::Bytes;
use hyper::header::{ACCEPT_ENCODING, HeaderValue};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use url::Url;

use super::list::{ObjectKey, PART_BYTES_MAX};
use super::objects::{ObjectError, Objects, Stored};
use crate::config::cluster::S3Settings;
use crate::outbound::http::{Body, CallError, Client, Request};

/// Maximum length of a response: a part, or a page of a thousand names in XML.
const RESPONSE_BYTES_MAX: usize = PART_BYTES_MAX + (1 << 20);

/// Timeout of a request. Within this timeout, a link of 4.5 Mbit/s transfers four concurrent parts.
const REQUEST_MAX: Duration = Duration::from_secs(60);

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
        let key = settings.secret_access_key.read().context("the secret access key")?;
        let store = AmazonS3Builder::new()
            .with_endpoint(settings.endpoint.as_str())
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            .with_access_key_id(&settings.access_key_id)
            .with_secret_access_key(key.reveal())
            .with_allow_http(!settings.endpoint.is_https())
            // The transfer retries, so the client does not.
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_http_connector(Caller(client.with_timeout(REQUEST_MAX)))
            .build()?;
        Ok(S3 { store, prefix: Path::parse(&settings.prefix)? })
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

/// Sends requests with the client of all outbound calls.
#[derive(Clone)]
struct Caller(Client);

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller")
    }
}

impl HttpConnector for Caller {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Caller {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let bad = |err| HttpError::new(HttpErrorKind::Unknown, err);
        let url = Url::parse(&head.uri.to_string()).map_err(bad)?;
        // Bodies are parts and short documents, in one chunk or a few.
        let body = match body.as_bytes() {
            Some(bytes) => bytes.clone(),
            None => {
                use http_body_util::BodyExt;
                let collected = body.collect().await;
                collected.map_err(|err| HttpError::new(HttpErrorKind::Request, err))?.to_bytes()
            }
        };
        // Objects must arrive exactly as they were written.
        let mut headers = head.headers;
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let request = Request { method: head.method, url, headers, body };
        let answer = self.0.send(request, Body::Whole(RESPONSE_BYTES_MAX)).await.map_err(kind)?;
        let mut response = HttpResponse::new(HttpResponseBody::from(answer.body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

fn kind(err: CallError) -> HttpError {
    let kind = match &err {
        CallError::Timeout(_) => HttpErrorKind::Timeout,
        it if it.is_unconnected() => HttpErrorKind::Connect,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, err)
}
