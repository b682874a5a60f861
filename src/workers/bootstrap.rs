//! Keeps the bootstrap registry of RDAP fresh: an address in, a table that verification and the
//! watchlist use out, and a file in the data folder for the next start.
//!
//! Asked once a day, with the tag of what is held, so that an unchanged registry costs its publisher
//! a few octets. A file that is none, or has lost half of what is held, is refused and told of, and
//! what is held stays in use. Without an address that answers, the copy compiled in serves.

use std::fs::{self, File};
use std::io::{self, Write};
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
use tempfile::NamedTempFile;
use url::{Host, Url};

use crate::outbound::http::{Answer, Body, Client, Request};
use crate::outbound::settings::{RDAP_BOOTSTRAP_DEFAULT, Rdap};
use crate::vocab::clock::Clock;
use crate::vocab::net::AllowList;
use crate::vocab::rdap::{Bootstrap, LiveBootstrap};
use crate::vocab::time::UnixMs;

/// Where the last good file is kept, in the data folder.
const FILE: &str = "rdap-bootstrap.json";
/// Octets of a registry at most: fifteen times IANA's.
const OCTETS_MAX: usize = 1024 * 1024;
/// Octets of a tag or date that is sent back at most.
const TAG_OCTETS_MAX: usize = 256;
/// After a failure.
const AGAIN: Duration = Duration::from_secs(3600);

/// What is kept, as it is written.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Where it came from. Another address in the settings, and it counts for nothing.
    source: String,
    /// When its publisher last said that it is the newest.
    checked_at: UnixMs,
    etag: Option<String>,
    last_modified: Option<String>,
    /// As it was sent.
    registry: Box<RawValue>,
}

/// What is known of the registry at an address.
pub struct Registry {
    source: Url,
    every: Duration,
    allow: AllowList,
    file: PathBuf,
    kept: Option<Kept>,
    live: Arc<LiveBootstrap>,
    clock: Clock,
}

impl Registry {
    /// Reads what is kept in the data folder, and has it used: it, or the copy compiled in where
    /// that is newer. What cannot be used is told of and counts as absent.
    ///
    /// # Errors
    /// The address in the settings is none.
    pub fn open(data: &Path, settings: &Rdap, clock: Clock) -> anyhow::Result<Registry> {
        let source = Url::parse(settings.bootstrap.as_str()).context("rdap.bootstrap")?;
        let mut registry = Registry {
            source,
            every: settings.bootstrap_refresh,
            allow: settings.allow.clone(),
            file: data.join(FILE),
            kept: None,
            live: Arc::new(LiveBootstrap::new(Bootstrap::compiled())),
            clock,
        };
        if let Err(err) = registry.load() {
            let file = registry.file.display();
            tracing::warn!(error = format!("{err:#}"), %file, "the kept bootstrap registry is not used");
        }
        Ok(registry)
    }

    /// The table in use, which [`Registry::refresh`] replaces.
    pub fn live(&self) -> Arc<LiveBootstrap> {
        Arc::clone(&self.live)
    }

    /// How long until the publisher is to be asked.
    pub fn due_in(&self) -> Duration {
        let Some(kept) = &self.kept else { return Duration::ZERO };
        let age = self.clock.now() - kept.checked_at.instant();
        // Of a time to come, the clock was put back: asked anew.
        age.to_std().map_or(Duration::ZERO, |age| self.every.saturating_sub(age))
    }

    /// Asks the publisher, and says after how long to ask again. What goes wrong is told of; what is
    /// held stays in use.
    pub async fn refresh(&mut self, client: &Client) -> Duration {
        match self.fetch(client).await {
            Ok(()) => self.every,
            Err(err) => {
                let error = format!("{err:#}");
                let held = self.live.current();
                tracing::warn!(error, ?held, "the bootstrap registry of RDAP was not refreshed");
                AGAIN.min(self.every)
            }
        }
    }

    fn load(&mut self) -> anyhow::Result<()> {
        let text = match fs::read_to_string(&self.file) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text?,
        };
        let kept: Kept = serde_json::from_str(&text)?;
        if kept.source != self.source.as_str() {
            return Ok(());
        }
        let bootstrap = self.parse(kept.registry.get())?;
        // A newer release may bring a newer copy of the same registry.
        if !self.is_default() || bootstrap.publication() >= Bootstrap::compiled().publication() {
            self.live.publish(Arc::new(bootstrap));
            self.kept = Some(kept);
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
        let answer = client.send(request, Body::Whole(OCTETS_MAX)).await?;
        let now = UnixMs::from_instant(self.clock.now());
        match answer.status {
            StatusCode::OK => self.take(&answer, now),
            StatusCode::NOT_MODIFIED => {
                let kept = self.kept.as_mut().context("304 without a condition")?;
                kept.checked_at = now;
                self.keep()
            }
            status => anyhow::bail!("HTTP status {status}"),
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let Some(kept) = &self.kept else { return headers };
        let conditions = [(IF_NONE_MATCH, &kept.etag), (IF_MODIFIED_SINCE, &kept.last_modified)];
        for (name, tag) in conditions {
            if let Some(value) = tag.as_ref().and_then(|tag| HeaderValue::from_str(tag).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Judges a new registry, has it used and keeps it.
    fn take(&mut self, answer: &Answer, now: UnixMs) -> anyhow::Result<()> {
        let text = std::str::from_utf8(&answer.body).context("it is not UTF-8")?;
        let new = self.parse(text)?;
        // Of another address nothing is known but what it said itself.
        let held = (self.kept.is_some() || self.is_default()).then(|| self.live.current());
        if let Some(held) = &held {
            ensure!(
                !new.is_shrunken(held),
                "it lists {} suffixes, less than half of the {} that are known; if that is so, \
                 remove {}",
                new.len(),
                held.len(),
                self.file.display()
            );
            ensure!(
                new.publication() >= held.publication(),
                "it was published at {}, before the one in use ({})",
                new.publication(),
                held.publication()
            );
        }
        tracing::info!(registry = ?new, "a new bootstrap registry of RDAP is in use");
        self.live.publish(Arc::new(new));
        self.kept = Some(Kept {
            source: self.source.as_str().to_owned(),
            checked_at: now,
            etag: header(answer, ETAG),
            last_modified: header(answer, LAST_MODIFIED),
            registry: RawValue::from_string(text.to_owned())?,
        });
        self.keep()
    }

    /// Writes what is kept, whole or not at all.
    fn keep(&self) -> anyhow::Result<()> {
        let text = serde_json::to_vec(&self.kept)?;
        write_whole(&self.file, &text).with_context(|| format!("writing {}", self.file.display()))
    }

    fn parse(&self, text: &str) -> anyhow::Result<Bootstrap> {
        Ok(Bootstrap::parse(text, &|url| may_be_plain(url, &self.allow))?)
    }

    fn is_default(&self) -> bool {
        self.source.as_str() == RDAP_BOOTSTRAP_DEFAULT
    }
}

/// Whether an operator allows calls there in plain text, as far as the address tells; the guard
/// judges again where it leads.
fn may_be_plain(url: &Url, allow: &AllowList) -> bool {
    let port = url.port_or_known_default().unwrap_or(0);
    match url.host() {
        Some(Host::Ipv4(address)) => allow.covers((address, port).into()),
        Some(Host::Ipv6(address)) => allow.covers((address, port).into()),
        Some(Host::Domain(_)) => allow.has_port(port),
        None => false,
    }
}

fn header(answer: &Answer, name: HeaderName) -> Option<String> {
    let text = answer.headers.get(name)?.to_str().ok()?;
    (text.len() <= TAG_OCTETS_MAX).then(|| text.to_owned())
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut draft = NamedTempFile::new_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    File::open(folder)?.sync_all()
}
