//! Downloads of lists: conditional requests, resumed downloads, limits, and errors that tell an
//! operator what to do.
//!
//! A host gets one request at a time, except that ICANN's zone files are downloaded several at once. A download
//! is written to a `.part` file, synced, checked and renamed. The wait for each piece of a body is limited, but
//! the duration of a download is not, because zone files take hours.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum_extra::extract::cookie::Cookie;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, COOKIE, ETAG, HeaderMap,
    HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, LOCATION,
    RANGE, SET_COOKIE, USER_AGENT,
};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::{Origin, Url};

use crate::feeds;
use crate::outbound::coding::{CodingError, Codings};
use crate::outbound::guard::Guard;
use crate::outbound::http::{AGENT, CallError, Client, Request, Stream};
use crate::outbound::transfer::{Transfer, TransferError, TransferKey};
use crate::presets::{Flow, Packing};
use crate::settings::{Contact, Settings, Source, shown};
use crate::state::{Folder, Held, Known, Partial, Retry};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::new_file;
use crate::vocab::popularity::{ListId, ListRank};
use crate::vocab::secret::Secret;

pub(super) const PART_ENDING: &str = ".part";
/// Characters of a URL's SHA-256 in the file name of its unfinished download.
const PART_CHARS: usize = 16;
/// Maximum redirects to follow.
const REDIRECTS_MAX: usize = 5;
/// Maximum cookies kept along a chain of redirects.
const COOKIES_MAX: usize = 10;
/// Maximum bytes of a checksum file or of a response with a link.
const SMALL_MAX: usize = 64 << 10;
/// Maximum bytes of the list of web graphs, each of which takes about 1 KiB.
const GRAPHS_MAX: usize = 1 << 20;
/// Maximum length of an ETag or date that is stored and sent back.
const TAG_BYTES_MAX: usize = 256;
/// Pause after a 429 without `Retry-After`.
const PAUSE_DEFAULT: TimeDelta = TimeDelta::minutes(5);
/// Algorithm of a transfer key whose name does not include one.
const KEY_ALGORITHM: &str = "hmac-sha256";
/// Maximum characters of a file name.
const FILE_NAME_MAX: usize = 100;

/// Downloads lists. Clones share the queues of requests to each host.
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    /// The contact of the settings.
    contact: Option<Contact>,
    folder: Folder,
    idle: Duration,
    pub(super) clock: Clock,
    hosts: Arc<Hosts>,
    /// The token of the last log-in; empty before the first.
    bearer: Arc<Mutex<Secret>>,
}

/// The result of a fetch.
#[derive(Debug)]
pub enum Fetched {
    New(Download),
    /// The list is the same as the last one ingested.
    Unchanged,
    /// The list is not published yet.
    Early,
}

/// A complete download.
#[derive(Debug)]
pub struct Download {
    /// The file, named after the URL.
    pub path: PathBuf,
    /// The state to store once the file is ingested.
    pub held: Held,
}

/// Why a list was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the address cannot be called: {0}; private addresses need an entry in sources.allow")]
    Refused(CallError),
    #[error("the connection failed: {0}")]
    Call(#[from] CallError),
    #[error(
        "the server requires a login (401); correct username and password_file in the settings, then run \
         `dropdex sources fetch`"
    )]
    Unauthorized,
    #[error(
        "the server refuses access (403): it may block this address or require an account; ask the \
         publisher, then run `dropdex sources fetch`"
    )]
    Forbidden,
    #[error(
        "the publisher has new terms ({0}); accept them on its site, then run `dropdex sources fetch`"
    )]
    NewTerms(u16),
    #[error("there is no list at {0} ({1}); if it has moved, set `url` in the settings")]
    Missing(String, u16),
    #[error("the server limits requests (429); the next one is sent after {0}")]
    TooMany(String, TimeDelta),
    #[error("the server failed with status {0}")]
    Server(u16, Option<TimeDelta>),
    #[error("the server responded with status {0}, which is not expected here")]
    Status(u16),
    #[error(transparent)]
    Coding(CodingError),
    #[error("the server sent a web page instead of the list, perhaps for maintenance")]
    WebPage,
    #[error("the list is empty")]
    Empty,
    #[error("the file is not packed with {0} as it should be")]
    NotPacked(&'static str),
    #[error(
        "the file has {0} bytes or more, above the limit of {1}; raise `max_mib` in the settings"
    )]
    TooLarge(u64, u64),
    #[error("the download ended after {0} of {1} bytes")]
    Short(u64, u64),
    #[error("the list changed while it was downloaded")]
    Changed,
    #[error(
        "the server sent a part of the list from the wrong place ({0}); the next try starts from the \
         beginning"
    )]
    BadRange(String),
    #[error("the file does not match its checksum: SHA-256 is {found}, published is {expected}")]
    Checksum { found: String, expected: String },
    #[error("more than {REDIRECTS_MAX} redirects, or one that leads nowhere")]
    Redirects,
    #[error(
        "the server redirects again and again although its cookie `{0}` was sent back; it may expect a browser: ask the \
         publisher for an address for programs"
    )]
    Cookie(String),
    #[error("the response has no link to the list: {0}")]
    NoLink(String),
    #[error("the download cannot be stored: {0}")]
    Io(#[from] io::Error),
    #[error("the zone was not transferred: {0}")]
    Transfer(#[from] TransferError),
    #[error(
        "the key of the transfer is wrong: {0}; `username` is [ALGORITHM:]NAME, the password base64"
    )]
    TransferKey(String),
    #[error(
        "{0} needs an account: set username and password_file in [sources.{0}] of the settings file"
    )]
    NoLogin(String),
    #[error("the password cannot be read: {0}")]
    Password(io::Error),
}

impl FetchError {
    /// Returns when to retry.
    pub fn retry(&self) -> Retry {
        match self {
            FetchError::Refused(_)
            | FetchError::Unauthorized
            | FetchError::Forbidden
            | FetchError::NewTerms(_)
            | FetchError::NoLogin(_)
            | FetchError::Password(_)
            | FetchError::Transfer(
                TransferError::Refused(_)
                | TransferError::Key
                | TransferError::ZoneName(_)
                | TransferError::Connect { source: CallError::Refused(_), .. },
            )
            | FetchError::TransferKey(_) => Retry::OnRequest,
            FetchError::Missing(..)
            | FetchError::Status(_)
            | FetchError::TooLarge(..)
            | FetchError::Transfer(TransferError::TooLarge(_))
            | FetchError::Redirects
            | FetchError::Cookie(_)
            | FetchError::Coding(CodingError::Unknown(_))
            | FetchError::NoLink(_) => Retry::NextRun,
            FetchError::TooMany(_, pause) | FetchError::Server(_, Some(pause)) => {
                Retry::After(*pause)
            }
            FetchError::Call(_)
            | FetchError::Server(_, None)
            | FetchError::WebPage
            | FetchError::Empty
            | FetchError::NotPacked(_)
            | FetchError::Coding(_)
            | FetchError::Short(..)
            | FetchError::BadRange(_)
            | FetchError::Changed
            | FetchError::Checksum { .. }
            | FetchError::Transfer(_)
            | FetchError::Io(_) => Retry::Soon,
        }
    }
}

impl From<CodingError> for FetchError {
    fn from(err: CodingError) -> FetchError {
        match err {
            CodingError::TooLarge(most) => FetchError::TooLarge(most, most),
            err => FetchError::Coding(err),
        }
    }
}

/// Turns of requests, by host.
#[derive(Default)]
struct Hosts(Mutex<HashMap<String, Arc<Host>>>);

struct Host {
    turns: Arc<Semaphore>,
    /// Time until which the host must get no requests.
    paused: Mutex<DateTime<Utc>>,
}

impl Hosts {
    /// Waits for a turn at a host that allows `lanes` requests at once.
    async fn turn(&self, url: &Url, lanes: usize) -> HostTurn {
        let host = {
            let mut hosts = self.0.lock().expect("no code panics holding this lock");
            let host = hosts.entry(url.authority().to_owned()).or_insert_with(|| {
                let turns = Arc::new(Semaphore::new(lanes));
                Arc::new(Host { turns, paused: DateTime::UNIX_EPOCH.into() })
            });
            Arc::clone(host)
        };
        let turn = Arc::clone(&host.turns).acquire_owned().await;
        HostTurn { host, _turn: turn.expect("no code closes the semaphore") }
    }
}

/// A turn at a host, until it is dropped.
struct HostTurn {
    host: Arc<Host>,
    _turn: OwnedSemaphorePermit,
}

impl HostTurn {
    fn paused_until(&self) -> DateTime<Utc> {
        *self.host.paused.lock().expect("no code panics holding this lock")
    }

    fn pause_until(&self, until: DateTime<Utc>) {
        *self.host.paused.lock().expect("no code panics holding this lock") = until;
    }
}

/// A response, which keeps the turn at its host until it is dropped.
struct Response {
    stream: Stream,
    url: Url,
    turn: HostTurn,
}

/// The cookies of a chain of redirects, because some servers set one and redirect to the same URL. Each cookie
/// is sent only to the origin that set it, and is dropped at the end of the chain.
#[derive(Default)]
struct Cookies(Vec<(Origin, Cookie<'static>)>);

impl Cookies {
    fn keep(&mut self, headers: &HeaderMap, from: &Url) {
        for line in headers.get_all(SET_COOKIE) {
            let cookie = line.to_str().ok().and_then(|line| Cookie::parse(line.to_owned()).ok());
            let Some(cookie) = cookie else { continue };
            self.0
                .retain(|(origin, held)| *origin != from.origin() || held.name() != cookie.name());
            if self.0.len() < COOKIES_MAX {
                self.0.push((from.origin(), cookie));
            }
        }
    }

    /// Returns the value of `Cookie`.
    fn of(&self, url: &Url) -> Option<String> {
        let own = self.0.iter().filter(|(origin, _)| *origin == url.origin());
        let pairs: Vec<String> =
            own.map(|(_, cookie)| format!("{}={}", cookie.name(), cookie.value())).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Returns the name of the first cookie.
    fn first(&self) -> Option<String> {
        self.0.first().map(|(_, cookie)| cookie.name().to_owned())
    }
}

/// A request.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) url: &'a Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl<'a> Ask<'a> {
    /// A GET request.
    pub(super) fn get(url: &'a Url) -> Ask<'a> {
        Ask { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new() }
    }
}

impl Fetcher {
    /// Creates a fetcher that calls through `guard`. Without a contact in the settings, it sends that of
    /// `folder`.
    ///
    /// # Errors
    /// The file of certificates cannot be read.
    pub fn new(
        settings: &Settings,
        folder: Folder,
        guard: Guard,
        clock: Clock,
    ) -> anyhow::Result<Fetcher> {
        Ok(Fetcher {
            client: Client::new(guard, settings.ca_file.as_deref())?,
            contact: settings.contact.clone(),
            folder,
            idle: settings.idle,
            clock,
            hosts: Arc::default(),
            bearer: Arc::default(),
        })
    }

    /// The value of `User-Agent`.
    fn agent(&self) -> HeaderValue {
        let contact = self.contact.clone().or_else(|| self.folder.contact());
        let agent = contact.map(|contact| format!("{AGENT} (+{})", contact.as_str()));
        let agent = agent.and_then(|agent| HeaderValue::try_from(agent).ok());
        agent.unwrap_or(HeaderValue::from_static(AGENT))
    }

    /// Uses this token from now on. An empty token means none.
    pub(super) fn set_bearer(&self, token: Secret) {
        *self.bearer.lock().expect("no code panics holding this lock") = token;
    }

    /// Downloads the list at `url` into `folder`, unless it is the `known` one. Records in `known` how to
    /// resume an interrupted download.
    ///
    /// # Errors
    /// The list does not exist, cannot be fetched or is damaged.
    pub async fn fetch(
        &self,
        source: &Source,
        url: &Url,
        known: &mut Known,
        folder: &Path,
    ) -> Result<Fetched, FetchError> {
        let fetched = self.fetch_new(source, url, known, folder).await;
        match fetched {
            Err(FetchError::Missing(..)) if source.may_be_early => Ok(Fetched::Early),
            fetched => fetched,
        }
    }

    async fn fetch_new(
        &self,
        source: &Source,
        url: &Url,
        known: &mut Known,
        folder: &Path,
    ) -> Result<Fetched, FetchError> {
        let held = known.held.clone();
        if held.as_ref().is_some_and(|held| self.clock.now() < held.at + source.pause) {
            return Ok(Fetched::Unchanged);
        }
        if source.head_first
            && let Some(held) = &held
            && self.is_same(source, url, held).await?
        {
            return Ok(Fetched::Unchanged);
        }
        if source.flow == Flow::Transfer {
            return self.transfer(source, url, held, folder).await;
        }
        let expected = if source.checksum { self.checksum(source, url).await? } else { None };
        if let (Some(expected), Some(held)) = (&expected, &held)
            && *expected == held.sha256
        {
            return Ok(Fetched::Unchanged);
        }
        let target = match source.flow {
            Flow::Link(host) => self.link(source, url, host).await?,
            Flow::Tranco => match self.tranco(source, url).await? {
                Some(list) => list,
                None => return Ok(Fetched::Early),
            },
            Flow::WebGraph => self.web_graph(source, url).await?,
            Flow::Direct | Flow::Pages | Flow::Czds | Flow::Transfer => url.clone(),
        };
        let part = part_of(url, folder);
        let mut new = self.download(source, &target, known, &part).await;
        if let (Flow::Tranco, Err(FetchError::Forbidden)) = (source.flow, &new) {
            // Sometimes the archive of daily lists is not accessible, although the list itself is.
            let id = target.path().rsplit('/').next().unwrap_or_default();
            let mut list = target.clone();
            list.set_path(&format!("/download/{id}/{}", ListRank::MAX));
            new = self.download(source, &list, known, &part).await;
        }
        let Some((mut new, codings)) = new? else { return Ok(Fetched::Unchanged) };
        let (packing, max, now) = (source.packing, source.max_bytes, self.clock.now());
        let path = folder.join(file_name(&target));
        let file = path.clone();
        let checked = tokio::task::spawn_blocking(move || {
            decode(&part, &codings, packing, max)?;
            finish(&part, &file, packing, expected)
        });
        new.sha256 = checked.await.map_err(io::Error::other)??;
        new.at = now;
        if held.is_some_and(|held| held.sha256 == new.sha256) {
            fs::remove_file(&path)?;
            known.held = Some(new);
            return Ok(Fetched::Unchanged);
        }
        Ok(Fetched::New(Download { path, held: new }))
    }

    /// Transfers a zone, unless its serial number is that of the last ingested one.
    async fn transfer(
        &self,
        source: &Source,
        url: &Url,
        held: Option<Held>,
        folder: &Path,
    ) -> Result<Fetched, FetchError> {
        let zone = url.path().trim_matches('/');
        let server = (url.host_str().unwrap_or_default(), url.port().unwrap_or(53));
        let key = match &source.login {
            Some(login) => {
                let secret = login.password.read().map_err(FetchError::Password)?;
                let secret = STANDARD.decode(secret.reveal().trim());
                let secret = secret
                    .map_err(|_| FetchError::TransferKey("its secret is not base64".into()))?;
                let given = login.username.split_once(':');
                let (algorithm, name) = given.unwrap_or((KEY_ALGORITHM, &login.username));
                Some(TransferKey::new(name, algorithm, secret).map_err(FetchError::TransferKey)?)
            }
            None => None,
        };
        let mut transfer =
            Transfer::connect(&self.client, server, zone, key, source.max_bytes).await?;
        let serial = transfer.serial().await?.to_string();
        if held.is_some_and(|held| held.etag.as_ref() == Some(&serial)) {
            return Ok(Fetched::Unchanged);
        }
        let (part, path) = (part_of(url, folder), folder.join(format!("{zone}.zone")));
        let mut file = io::BufWriter::new(new_file::create(&part)?);
        transfer.run(&mut file).await?;
        let bytes = file.into_inner().map_err(io::IntoInnerError::into_error)?.metadata()?.len();
        let file = path.clone();
        let checked = tokio::task::spawn_blocking(move || finish(&part, &file, Packing::Any, None));
        let sha256 = checked.await.map_err(io::Error::other)??;
        let (etag, at) = (Some(serial), self.clock.now());
        let held = Held { etag, last_modified: None, bytes, sha256, at };
        Ok(Fetched::New(Download { path, held }))
    }

    /// Whether the server's HEAD response has the validators of the last ingested list.
    async fn is_same(&self, source: &Source, url: &Url, held: &Held) -> Result<bool, FetchError> {
        let response = self.ask(source, Ask { method: Method::HEAD, ..Ask::get(url) }).await;
        let response = match response {
            // The server may support only GET.
            Err(FetchError::Status(405) | FetchError::Server(501, _)) => return Ok(false),
            response => response?,
        };
        let same = |name, held: &Option<String>| {
            held.is_some() && header(&response.stream.headers, name) == *held
        };
        Ok(same(ETAG, &held.etag) || same(LAST_MODIFIED, &held.last_modified))
    }

    /// Fetches the SHA-256 published beside the list; `None` if the server has no such file.
    async fn checksum(&self, source: &Source, url: &Url) -> Result<Option<String>, FetchError> {
        let mut beside = url.clone();
        beside.set_path(&format!("{}.sha256", url.path()));
        let text = match self.text(source, Ask::get(&beside), SMALL_MAX).await {
            Err(FetchError::Missing(..)) => return Ok(None),
            text => text?,
        };
        let word = text
            .split_ascii_whitespace()
            .find(|word| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Ok(word.map(str::to_ascii_lowercase))
    }

    /// Requests the signed link to a list.
    async fn link(&self, source: &Source, url: &Url, host: &str) -> Result<Url, FetchError> {
        /// The link is a string in one version of the API and a member in another.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum LinkResult {
            Text(String),
            #[serde(rename_all = "camelCase")]
            File {
                file_url: String,
            },
        }
        #[derive(Deserialize)]
        struct Linked {
            result: LinkResult,
        }
        let text = self.text(source, Ask::get(url), SMALL_MAX).await?;
        let linked: Linked =
            serde_json::from_str(&text).map_err(|err| FetchError::NoLink(err.to_string()))?;
        let (LinkResult::Text(link) | LinkResult::File { file_url: link }) = linked.result;
        let link = Url::parse(&link).map_err(|err| FetchError::NoLink(err.to_string()))?;
        if link.host_str() != Some(host) && link.authority() != url.authority() {
            let other = link.host_str().unwrap_or_default();
            return Err(FetchError::NoLink(format!("it leads to {other} instead of {host}")));
        }
        Ok(link)
    }

    /// Requests the URL of Tranco's newest daily list. The fragment of the URL contains the list's
    /// identifier and day as a file name. Returns `None` if the list is not ready.
    async fn tranco(&self, source: &Source, url: &Url) -> Result<Option<Url>, FetchError> {
        #[derive(Deserialize)]
        struct Daily {
            list_id: ListId,
            available: bool,
            created_on: Option<String>,
        }
        let text = self.text(source, Ask::get(url), SMALL_MAX).await?;
        let daily: Daily =
            serde_json::from_str(&text).map_err(|err| FetchError::NoLink(err.to_string()))?;
        let created = daily.created_on.as_deref().and_then(|text| text.get(..10)?.parse().ok());
        // Without a date, the list is assumed to be yesterday's.
        let day: Day = created.unwrap_or(self.clock.today().plus(-1));
        let (id, mut list) = (daily.list_id.as_str(), url.clone());
        list.set_path(&format!("/download_daily/{id}"));
        list.set_query(None);
        list.set_fragment(Some(&format!("tranco_{id}_{day}.csv.zip")));
        Ok(daily.available.then_some(list))
    }

    /// Requests the URL of the ranks of Common Crawl's newest web graph. Its files are on the host `data` beside
    /// `index`; a mirror has them on its own.
    async fn web_graph(&self, source: &Source, url: &Url) -> Result<Url, FetchError> {
        #[derive(Deserialize)]
        struct Graph {
            id: String,
        }
        let no_link = |why: &str| FetchError::NoLink(why.to_owned());
        let text = self.text(source, Ask::get(url), GRAPHS_MAX).await?;
        let graphs: Vec<Graph> =
            serde_json::from_str(&text).map_err(|err| no_link(&err.to_string()))?;
        let Graph { id } = graphs.first().ok_or_else(|| no_link("it lists no web graph"))?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if id.is_empty() || id.len() > FILE_NAME_MAX / 2 || !id.bytes().all(is_plain) {
            return Err(no_link("the name of the newest web graph is not one"));
        }
        let mut ranks = url.clone();
        let beside = url.host_str().and_then(|host| host.strip_prefix("index."));
        if let Some(domain) = beside {
            let host = format!("data.{domain}");
            ranks.set_host(Some(&host)).map_err(|err| no_link(&err.to_string()))?;
        }
        ranks.set_path(&format!("projects/hyperlinkgraph/{id}/domain/{id}-domain-ranks.txt.gz"));
        ranks.set_query(None);
        Ok(ranks)
    }

    /// Returns a response of at most `max` bytes as text.
    pub(super) async fn text(
        &self,
        source: &Source,
        ask: Ask<'_>,
        max: usize,
    ) -> Result<String, FetchError> {
        let mut response = self.ask(source, ask).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = response.stream.piece(self.idle).await? {
            let length = bytes.len() + piece.len();
            if length > max {
                return Err(FetchError::TooLarge(length as u64, max as u64));
            }
            bytes.extend_from_slice(&piece);
        }
        let bytes = response.stream.codings()?.decode(bytes, max)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Downloads to the part file. Returns `None` if nothing changed. Starts over if the rest of an
    /// interrupted download belongs to another version. Removes a part that cannot be resumed.
    async fn download(
        &self,
        source: &Source,
        target: &Url,
        known: &mut Known,
        part: &Path,
    ) -> Result<Option<(Held, Codings)>, FetchError> {
        let mut done = self.download_once(source, target, known, part).await;
        if let Err(FetchError::Changed) = done {
            remove(part)?;
            done = self.download_once(source, target, known, part).await;
        }
        if done.is_err() && known.partial.is_none() {
            remove(part)?;
        }
        done
    }

    async fn download_once(
        &self,
        source: &Source,
        target: &Url,
        known: &mut Known,
        part: &Path,
    ) -> Result<Option<(Held, Codings)>, FetchError> {
        let from = fs::metadata(part).map_or(0, |facts| facts.len());
        let version = known.partial.take().filter(|it| from > 0 && it.validator().is_some());
        let rest = version.map(|version| Rest { from, version });
        let headers = conditions(rest.as_ref(), known.held.as_ref());
        let answered = self.ask(source, Ask { headers, ..Ask::get(target) }).await;
        // An error that ends by itself says nothing about the list, so the part is still good.
        if let (
            Err(FetchError::Call(_) | FetchError::Server(..) | FetchError::TooMany(..)),
            Some(rest),
        ) = (&answered, &rest)
        {
            known.partial = Some(rest.version.clone());
        }
        let mut response = answered?;
        let stream = &mut response.stream;
        if stream.status == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let codings = stream.codings()?;
        let Rest { from, version } = sent(stream, &codings, rest)?;
        if let Some(total) = version.total.filter(|total| *total > source.max_bytes) {
            return Err(FetchError::TooLarge(total, source.max_bytes));
        }
        let mut file = match from {
            0 => new_file::create(part)?,
            _ => new_file::open(part)?,
        };
        file.seek(SeekFrom::Start(from))?;
        let received = receive(stream, &mut file, from, source.max_bytes, self.idle).await;
        let received = received.and_then(|bytes| match version.total {
            Some(total) if bytes != total => Err(FetchError::Short(bytes, total)),
            _ => Ok(bytes),
        });
        let is_interrupted = matches!(received, Err(FetchError::Call(_) | FetchError::Short(..)));
        if is_interrupted && codings.is_empty() && version.validator().is_some() {
            known.partial = Some(version.clone());
        }
        let Partial { etag, last_modified, .. } = version;
        Ok(Some((Held { etag, last_modified, bytes: received?, ..Held::default() }, codings)))
    }

    /// Sends a request and follows redirects. Any status except success and 304 is an error.
    async fn ask(&self, source: &Source, ask: Ask<'_>) -> Result<Response, FetchError> {
        let (mut url, mut cookies) = (ask.url.clone(), Cookies::default());
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask_once(source, &ask, &url, &cookies).await?;
            let status = response.stream.status;
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                return self.judge(response, ask.headers.contains_key(RANGE));
            }
            // A log-in does not follow redirects.
            if ask.method == Method::POST {
                return Err(FetchError::Redirects);
            }
            cookies.keep(&response.stream.headers, &url);
            let location = header(&response.stream.headers, LOCATION);
            let next = location.and_then(|location| url.join(&location).ok());
            url = next.ok_or(FetchError::Redirects)?;
        }
        Err(cookies.first().map_or(FetchError::Redirects, FetchError::Cookie))
    }

    async fn ask_once(
        &self,
        source: &Source,
        ask: &Ask<'_>,
        url: &Url,
        cookies: &Cookies,
    ) -> Result<Response, FetchError> {
        let mut headers = ask.headers.clone();
        cookies.of(url).iter().for_each(|cookies| put(&mut headers, COOKIE, cookies));
        headers.insert(USER_AGENT, self.agent());
        // Credentials are never sent to another host.
        let is_own = source
            .addresses
            .iter()
            .any(|address| address.on(self.clock.today()).origin() == url.origin());
        if source.flow == Flow::Czds {
            let bearer = self.bearer.lock().expect("no code panics holding this lock").clone();
            if !bearer.reveal().is_empty() && source.may_have_token(url) {
                put(&mut headers, AUTHORIZATION, &format!("Bearer {}", bearer.reveal()));
            }
        } else if let Some(login) = source.login.as_ref().filter(|_| is_own) {
            let password = login.password.read().map_err(FetchError::Password)?;
            let pair = STANDARD.encode(format!("{}:{}", login.username, password.reveal()));
            put(&mut headers, AUTHORIZATION, &format!("Basic {pair}"));
        }
        let turn = self.hosts.turn(url, source.lanes()).await;
        let now = self.clock.now();
        if turn.paused_until() > now {
            return Err(too_many(turn.paused_until(), now));
        }
        let (method, body) = (ask.method.clone(), ask.body.clone());
        let request = Request { method, url: url.clone(), headers, body };
        let stream = self.client.open(request).await.map_err(|err| match err {
            CallError::Refused(_) | CallError::WrongPeer { .. } | CallError::BadRequest(_) => {
                FetchError::Refused(err)
            }
            err => FetchError::Call(err),
        })?;
        Ok(Response { stream, url: url.clone(), turn })
    }

    /// Classifies the status of a response to a request for a whole file or a part of it.
    fn judge(&self, response: Response, of_part: bool) -> Result<Response, FetchError> {
        let now = self.clock.now();
        let status = response.stream.status;
        let asked = response.stream.retry_after(now);
        let asked = asked.and_then(|pause| TimeDelta::from_std(pause).ok());
        Err(match status.as_u16() {
            200 | 304 => return Ok(response),
            206 if of_part => return Ok(response),
            206 => bad_range(&response.stream),
            416 if of_part => bad_range(&response.stream),
            401 => FetchError::Unauthorized,
            403 => FetchError::Forbidden,
            409 | 428 => FetchError::NewTerms(status.as_u16()),
            404 | 410 => FetchError::Missing(shown(&response.url), status.as_u16()),
            429 => {
                let until = now + asked.unwrap_or(PAUSE_DEFAULT).min(TimeDelta::days(1));
                response.turn.pause_until(until);
                too_many(until, now)
            }
            500..600 => FetchError::Server(status.as_u16(), asked),
            _ => FetchError::Status(status.as_u16()),
        })
    }
}

/// The part of a list that starts at a position.
struct Rest {
    from: u64,
    version: Partial,
}

/// Returns the headers of a request for the rest of a list or, without one, for a list other than the
/// held one.
fn conditions(rest: Option<&Rest>, held: Option<&Held>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // A body compressed in transit cannot be resumed, and its ETag differs from that of the list.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(Rest { from, version }) = rest {
        put(&mut headers, RANGE, &format!("bytes={from}-"));
        version.validator().iter().for_each(|it| put(&mut headers, IF_RANGE, it));
    } else if let Some(held) = held {
        held.etag.iter().for_each(|tag| put(&mut headers, IF_NONE_MATCH, tag));
        held.last_modified.iter().for_each(|date| put(&mut headers, IF_MODIFIED_SINCE, date));
    }
    headers
}

/// Returns the content of a response to a request for `asked` or, without it, for a whole list.
fn sent(stream: &Stream, codings: &Codings, asked: Option<Rest>) -> Result<Rest, FetchError> {
    let text = |name| header(&stream.headers, name);
    let (etag, last_modified) = (text(ETAG), text(LAST_MODIFIED));
    if stream.status != StatusCode::PARTIAL_CONTENT {
        let total = text(CONTENT_LENGTH).and_then(|text| text.parse().ok());
        return Ok(Rest { from: 0, version: Partial { etag, last_modified, total } });
    }
    // The part file is not encoded, so an encoded remainder does not continue it.
    if !codings.is_empty() {
        return Err(FetchError::Changed);
    }
    let range = text(CONTENT_RANGE).as_deref().and_then(parse_range);
    let (Some((from, total)), Some(asked)) = (range, asked) else { return Err(bad_range(stream)) };
    let version = Partial { etag, last_modified, total };
    match from == asked.from {
        _ if !asked.version.fits(&version) => Err(FetchError::Changed),
        true => Ok(Rest { from, version }),
        false => Err(bad_range(stream)),
    }
}

fn too_many(until: DateTime<Utc>, now: DateTime<Utc>) -> FetchError {
    FetchError::TooMany(until.format("%Y-%m-%d %H:%M UTC").to_string(), until - now)
}

/// Returns the error for a partial response that was not requested.
fn bad_range(stream: &Stream) -> FetchError {
    let range = header(&stream.headers, CONTENT_RANGE);
    let range = range.map_or("no Content-Range".to_owned(), |it| format!("Content-Range: {it}"));
    FetchError::BadRange(format!("{}, {range}", stream.status.as_u16()))
}

/// Removes a file if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

/// Appends the body to a file. Returns the file's new size.
async fn receive(
    stream: &mut Stream,
    file: &mut File,
    from: u64,
    max: u64,
    idle: Duration,
) -> Result<u64, FetchError> {
    let mut bytes = from;
    while let Some(piece) = stream.piece(idle).await? {
        bytes += piece.len() as u64;
        if bytes > max {
            return Err(FetchError::TooLarge(bytes, max));
        }
        file.write_all(&piece)?;
    }
    Ok(bytes)
}

/// Decodes a download. A file that is already packed as expected is left unchanged, because some
/// servers declare the packing of a file as its content coding.
fn decode(part: &Path, codings: &Codings, packing: Packing, max: u64) -> Result<(), FetchError> {
    if codings.is_empty() {
        return Ok(());
    }
    let decoded = || {
        let is_packed =
            |path: &Path| Ok::<_, io::Error>(check_start(&start_of(path)?, packing).is_ok());
        let draft = part.with_extension("decoded");
        let mut into = io::BufWriter::new(File::create(&draft)?);
        codings.copy(io::BufReader::new(File::open(part)?), &mut into, max)?;
        into.into_inner().map_err(io::IntoInnerError::into_error)?;
        if packing != Packing::Any && !is_packed(&draft)? && is_packed(part)? {
            fs::remove_file(&draft)?;
        } else {
            fs::rename(&draft, part)?;
        }
        Ok(())
    };
    decoded().inspect_err(|_| drop(fs::remove_file(part)))
}

/// Reads the first bytes of a file.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(512).read_to_end(&mut start)?;
    Ok(start)
}

/// Syncs, checks and renames a download. Returns its SHA-256. Removes a bad download.
fn finish(
    part: &Path,
    path: &Path,
    packing: Packing,
    expected: Option<String>,
) -> Result<String, FetchError> {
    let checked = || {
        File::open(part)?.sync_all()?;
        check_start(&start_of(part)?, packing)?;
        let found = hex::encode(feeds::file_sha256(part)?);
        match expected.filter(|expected| *expected != found) {
            Some(expected) => Err(FetchError::Checksum { found, expected }),
            None => Ok(found),
        }
    };
    let found = checked().inspect_err(|_| drop(fs::remove_file(part)))?;
    fs::rename(part, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(found)
}

/// Detects content that servers send instead of a list, such as web pages.
fn check_start(start: &[u8], packing: Packing) -> Result<(), FetchError> {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    match (text.first(), packing) {
        (None, _) => Err(FetchError::Empty),
        (Some(b'<'), _) => Err(FetchError::WebPage),
        (_, Packing::Gzip) if !start.starts_with(b"\x1f\x8b") => Err(FetchError::NotPacked("gzip")),
        (_, Packing::Zip) if !start.starts_with(b"PK") => Err(FetchError::NotPacked("zip")),
        _ => Ok(()),
    }
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    (text.len() <= TAG_BYTES_MAX || text.starts_with("http")).then(|| text.to_owned())
}

fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Parses `bytes 100-199/200` into the start of the body and the length of the whole file.
fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    Some((from.parse().ok()?, total.parse().ok()))
}

/// Returns the path of an unfinished download.
pub(super) fn part_of(url: &Url, folder: &Path) -> PathBuf {
    let sum = hex::encode(Sha256::digest(url.as_str()));
    folder.join(format!("{}{PART_ENDING}", &sum[..PART_CHARS]))
}

/// Returns the file name of a URL: its fragment or, without one, the last segment of its path. The
/// file name may contain the date or name of the list.
pub(super) fn file_name(url: &Url) -> String {
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let last = url.fragment().unwrap_or(last);
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = last.chars().filter(is_plain).take(FILE_NAME_MAX).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() || name.ends_with(PART_ENDING) { "list".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_sent_instead_of_a_list_is_reported() {
        let told = |start: &[u8], packing| match check_start(start, packing) {
            Ok(()) => "list".to_owned(),
            Err(err) => err.to_string(),
        };
        assert_eq!(told(b"a.pl\n", Packing::Any), "list");
        assert_eq!(told(b"\x1f\x8b\x08", Packing::Gzip), "list");
        assert_eq!(told(b"PK\x03\x04", Packing::Zip), "list");
        for page in [&b"<!DOCTYPE html>"[..], b"\xef\xbb\xbf\r\n <html>", b"<?xml"] {
            assert!(told(page, Packing::Any).contains("web page"));
            assert!(told(page, Packing::Gzip).contains("web page"));
        }
        assert!(told(b" \r\n", Packing::Any).contains("empty"));
        assert!(told(b"a.uk\n", Packing::Gzip).contains("gzip"));
        assert!(told(b"\x1f\x8b\x08", Packing::Zip).contains("zip"));
    }

    #[test]
    fn file_names_cannot_leave_their_folder() {
        for (url, name) in [
            ("https://a.example/files/2026112309.txt?k=1", "2026112309.txt"),
            ("https://a.example/", "list"),
            ("https://a.example/..%2f..%2fetc", "2f..2fetc"),
            ("https://a.example/.hidden", "hidden"),
            ("https://a.example/download.part", "list"),
            ("https://a.example/b64/nrd#nrd-20261122.zip", "nrd-20261122.zip"),
            ("https://a.example/nrd#../../.etc", "etc"),
        ] {
            assert_eq!(file_name(&Url::parse(url).expect("a URL")), name, "{url}");
        }
    }

    #[test]
    fn ranges_are_parsed() {
        assert_eq!(parse_range("bytes 100-199/200"), Some((100, Some(200))));
        assert_eq!(parse_range("bytes 5-9/*"), Some((5, None)));
        for text in ["", "bytes */200", "lines 1-2/3", "bytes x-9/10"] {
            assert_eq!(parse_range(text), None, "{text}");
        }
    }
}
