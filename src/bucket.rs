//! Buckets of services that speak the protocol of Amazon S3: settings, and a client behind the guard of all outbound
//! calls.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use hyper::header::{ACCEPT_ENCODING, HeaderValue};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path;
use object_store::{ClientOptions, RetryConfig};

use crate::outbound::dns::Dns;
use crate::outbound::guard::Guard;
use crate::outbound::http::{CallError, Client};
use crate::outbound::settings::Settings;
use crate::vocab::net::AllowList;
use crate::vocab::secret::SecretSource;
use crate::vocab::url::BaseUrl;

/// Length of a part that is sent or read in one request.
pub const PART_BYTES: usize = 8 << 20;
/// Maximum length of a response: a part, or a page of a thousand names in XML.
const RESPONSE_BYTES_MAX: usize = PART_BYTES + (1 << 20);

/// Timeout of a request. Within this timeout, a link of 4.5 Mbit/s transfers four concurrent parts.
const REQUEST_MAX: Duration = Duration::from_secs(60);

/// A bucket of an S3-compatible service, with its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Settings {
    pub endpoint: BaseUrl,
    pub bucket: String,
    /// Prefix of all object keys.
    pub prefix: String,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: SecretSource,
    /// Private addresses that `endpoint` may resolve to.
    pub allow: AllowList,
    pub ca_file: Option<PathBuf>,
}

impl S3Settings {
    /// Returns the client for this bucket. `calls` has the rules for its address.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn client(&self, calls: &Settings) -> anyhow::Result<Client> {
        let guard = Guard::new(calls.rules(&self.allow), Dns::new(&calls.dns)?);
        Client::new(guard, self.ca_file.as_deref())
    }

    /// Opens the bucket through this client. A failed request is repeated up to `retries` times. Also returns the
    /// prefix of all keys.
    ///
    /// # Errors
    /// The key cannot be read, or a setting is invalid.
    pub fn open(&self, client: Client, retries: usize) -> anyhow::Result<(AmazonS3, Path)> {
        let key = self.secret_access_key.read().context("the secret access key")?;
        let store = AmazonS3Builder::new()
            .with_endpoint(self.endpoint.as_str())
            .with_bucket_name(&self.bucket)
            .with_region(&self.region)
            .with_access_key_id(&self.access_key_id)
            .with_secret_access_key(key.reveal())
            .with_allow_http(!self.endpoint.is_https())
            .with_retry(RetryConfig { max_retries: retries, ..RetryConfig::default() })
            .with_http_connector(Caller(client.with_timeout(REQUEST_MAX)))
            .build()?;
        Ok((store, Path::parse(&self.prefix)?))
    }
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
        let (mut head, body) = request.into_parts();
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
        let identity = HeaderValue::from_static("identity");
        head.headers.entry(ACCEPT_ENCODING).or_insert(identity);
        let request = hyper::Request::from_parts(head, body);
        let response = self.0.exchange(request, RESPONSE_BYTES_MAX).await.map_err(kind)?;
        Ok(response.map(HttpResponseBody::from))
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
