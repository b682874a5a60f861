//! Refreshes the RDAP bootstrap registry, the table of RDAP servers that verification and watchlists use,
//! and caches it in the data folder.
//!
//! The worker queries the publisher once a day with the ETag of the cached copy, so that an unchanged
//! registry costs only a few bytes. A response that does not parse, or lacks half of the known suffixes,
//! is rejected with a warning, and the current table stays in use. If no response was ever received, the
//! compiled-in copy is used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE};
use hyper::header::{IF_NONE_MATCH, LAST_MODIFIED};
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use url::Url;

use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::http::{Answer, Body, Client, Request};
use crate::outbound::settings::{RDAP_BOOTSTRAP_DEFAULT, Rdap};
use crate::vocab::clock::Clock;
use crate::vocab::net::AllowList;
use crate::vocab::rdap::{Bootstrap, ChosenServers};
use crate::vocab::time::UnixMs;
use crate::vocab::whole_file;

/// The cached registry in the data folder.
const FILE: &str = "rdap-bootstrap.json";
/// Maximum size of a registry file: fifteen times that of IANA's.
const BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of an ETag or date that is stored and sent back.
const TAG_BYTES_MAX: usize = 256;
/// Delay before retrying after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Content of the cache file.
#[derive(Serialize, Deserialize)]
struct Cached {
    /// URL from which the registry was downloaded. The file is ignored if the settings name another
    /// URL.
    source: String,
    /// Time at which the publisher last confirmed the registry.
    checked_at: UnixMs,
    etag: Option<String>,
    last_modified: Option<String>,
    /// The registry as received.
    registry: Box<RawValue>,
}

/// The registry at a URL, with its cache.
pub struct Registry {
    source: Url,
    every: Duration,
    allow: AllowList,
    chosen: ChosenServers,
    file: PathBuf,
    cached: Option<Cached>,
    live: Arc<LiveBootstrap>,
    clock: Clock,
}

impl Registry {
    /// Reads the cache in the data folder and publishes it to `live`, unless the compiled-in copy is newer. An
    /// unusable cache is logged and ignored.
    ///
    /// # Errors
    /// The address in the settings is invalid.
    pub fn open(
        data: &Path,
        settings: &Rdap,
        clock: Clock,
        live: Arc<LiveBootstrap>,
    ) -> anyhow::Result<Registry> {
        let source = Url::parse(settings.bootstrap.as_str()).context("rdap.bootstrap")?;
        let mut registry = Registry {
            source,
            every: settings.bootstrap_refresh,
            allow: settings.allow.clone(),
            chosen: settings.servers.clone(),
            file: data.join(FILE),
            cached: None,
            live,
            clock,
        };
        if let Err(err) = registry.load() {
            let file = registry.file.display();
            tracing::warn!(error = format!("{err:#}"), %file, "the cached bootstrap registry is not used");
        }
        Ok(registry)
    }

    /// Returns the table in use, which [`Registry::refresh`] replaces.
    pub fn live(&self) -> Arc<LiveBootstrap> {
        Arc::clone(&self.live)
    }

    /// The time until the next refresh.
    pub fn due_in(&self) -> Duration {
        let Some(cached) = &self.cached else { return Duration::ZERO };
        let age = self.clock.now() - cached.checked_at.instant();
        // A time in the future means that the clock was set back, so refresh now.
        age.to_std().map_or(Duration::ZERO, |age| self.every.saturating_sub(age))
    }

    /// Queries the publisher and returns the time until the next refresh. A failure is logged, and the
    /// current table stays in use.
    pub async fn refresh(&mut self, client: &Client) -> Duration {
        match self.fetch(client).await {
            Ok(()) => self.every,
            Err(err) => {
                let error = format!("{err:#}");
                let in_use = self.live.current();
                tracing::warn!(error, ?in_use, "the RDAP bootstrap registry was not refreshed");
                RETRY_AFTER.min(self.every)
            }
        }
    }

    fn load(&mut self) -> anyhow::Result<()> {
        let text = match fs::read_to_string(&self.file) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text?,
        };
        let cached: Cached = serde_json::from_str(&text)?;
        if cached.source != self.source.as_str() {
            return Ok(());
        }
        let bootstrap = self.parse(cached.registry.get())?;
        // A newer release may contain a newer copy of the same registry.
        if !self.is_default() || bootstrap.publication() >= Bootstrap::compiled().publication() {
            self.live.publish(Arc::new(bootstrap));
            self.cached = Some(cached);
        }
        Ok(())
    }

    async fn fetch(&mut self, client: &Client) -> anyhow::Result<()> {
        let request = Request {
            method: Method::GET,
            url: self.source.clone(),
            headers: self.headers(),
            body: Bytes::new(),
        };
        let answer = client.send(request, Body::Whole(BYTES_MAX)).await?;
        let now = UnixMs::from_instant(self.clock.now());
        match answer.status {
            StatusCode::OK => self.take(&answer, now),
            StatusCode::NOT_MODIFIED => {
                let cached =
                    self.cached.as_mut().context("status 304 to an unconditional request")?;
                cached.checked_at = now;
                self.write_cache()
            }
            status => anyhow::bail!("HTTP status {status}"),
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let Some(cached) = &self.cached else { return headers };
        let conditions =
            [(IF_NONE_MATCH, &cached.etag), (IF_MODIFIED_SINCE, &cached.last_modified)];
        for (name, tag) in conditions {
            if let Some(value) = tag.as_ref().and_then(|tag| HeaderValue::from_str(tag).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Checks a new registry, puts it into use and caches it.
    fn take(&mut self, answer: &Answer, now: UnixMs) -> anyhow::Result<()> {
        let text = std::str::from_utf8(&answer.body).context("the response is not UTF-8")?;
        let new = self.parse(text)?;
        // The compiled-in copy cannot be compared with a registry from another URL.
        let in_use = (self.cached.is_some() || self.is_default()).then(|| self.live.current());
        if let Some(in_use) = &in_use {
            ensure!(
                !new.is_shrunken(in_use),
                "it lists {} suffixes, less than half of the {} in use; if that is correct, remove {}",
                new.len(),
                in_use.len(),
                self.file.display()
            );
            ensure!(
                new.publication() >= in_use.publication(),
                "it was published on {}, before the one in use ({})",
                new.publication(),
                in_use.publication()
            );
        }
        tracing::info!(registry = ?new, "using a new RDAP bootstrap registry");
        self.live.publish(Arc::new(new));
        self.cached = Some(Cached {
            source: self.source.as_str().to_owned(),
            checked_at: now,
            etag: header(answer, ETAG),
            last_modified: header(answer, LAST_MODIFIED),
            registry: RawValue::from_string(text.to_owned())?,
        });
        self.write_cache()
    }

    /// Replaces the cache file atomically.
    fn write_cache(&self) -> anyhow::Result<()> {
        let text = serde_json::to_vec(&self.cached)?;
        whole_file::replace(&self.file, &text)
            .with_context(|| format!("writing {}", self.file.display()))
    }

    fn parse(&self, text: &str) -> anyhow::Result<Bootstrap> {
        let read = Bootstrap::parse(text, &|url| self.allow.may_be_plain(url))?;
        let suffixes = read.in_overlay();
        if self.is_default() && !suffixes.is_empty() {
            tracing::info!(?suffixes, "the registry lists servers of its own for these suffixes");
        }
        Ok(read.completed(self.is_default(), &self.chosen))
    }

    fn is_default(&self) -> bool {
        self.source.as_str() == RDAP_BOOTSTRAP_DEFAULT
    }
}

fn header(answer: &Answer, name: HeaderName) -> Option<String> {
    let text = answer.headers.get(name)?.to_str().ok()?;
    (text.len() <= TAG_BYTES_MAX).then(|| text.to_owned())
}
