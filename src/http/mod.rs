//! The JSON API and the CSV exports. [`operations`] is the table of routes and their documentation,
//! [`error`] maps errors to statuses. Business rules live in `index` and `accounts`.

pub mod account_turns;
pub mod alerts;
pub mod allowance;
pub mod appraise;
pub mod batch;
pub mod body;
pub mod caching;
pub mod changes;
pub mod cursor;
pub mod domain;
pub mod drops;
pub mod error;
pub mod etag;
pub mod export;
pub mod feeds;
pub mod filter;
pub mod health;
pub mod hidden;
pub mod home;
pub mod label;
pub mod local;
pub mod mcp;
pub mod mount;
mod openapi;
pub mod operation;
pub mod operations;
pub mod origin;
pub mod params;
pub mod paths;
pub mod peer;
pub mod portfolio;
pub mod position;
mod precondition;
mod rate_limit;
pub mod response;
pub mod rows;
pub mod search;
pub mod searches;
pub mod session;
pub mod suggest;
pub mod tlds;
pub mod unsubscribe;
pub mod watchlist;
pub mod work;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::accounts::{Store, Token};
use crate::changes::ChangeLog;
use crate::http::account_turns::AccountTurns;
use crate::http::allowance::Now;
use crate::http::feeds::FeedLimits;
use crate::http::mount::Mount;
use crate::http::session::CookieKind;
use crate::index::filter::AsOf;
use crate::index::generation::live::LiveIndex;
use crate::intake::inbox::InboxStatus;
use crate::intake::queue::JobStatus;
use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::checks::Checks;
use crate::outbound::guard::Guard;
use crate::sources::worker::SourcesStatus;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::url::BaseUrl;

/// State shared by all handlers.
#[derive(Clone)]
pub struct App(Arc<AppParts>);

/// Everything that an [`App`] holds.
pub struct AppParts {
    /// The generation being served.
    pub live: Arc<LiveIndex>,
    /// User data.
    pub store: Store,
    /// Events of names.
    pub changes: ChangeLog,
    /// Checks the webhook addresses that users enter.
    pub guard: Guard,
    /// Channels that alerts can use.
    pub channels: ConfiguredChannels,
    /// Kind of the session cookie.
    pub cookie: CookieKind,
    /// Whether the server is for the owner of this machine alone: it listens on loopback, without TLS
    /// and without a public URL.
    pub single_user: bool,
    /// Secret of the link that lets a browser in as the owner of such a server. Drawn at each start.
    pub owner_link: Token,
    pub clock: Clock,
    /// RDAP servers by suffix: the names that can be verified.
    pub bootstrap: Arc<LiveBootstrap>,
    /// Registry checks on demand; `None` if verification is off.
    pub checks: Option<Arc<Checks>>,
    /// Days a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// Public address of this server, if it has one.
    pub home: Option<BaseUrl>,
    /// The path of that address.
    pub mount: Mount,
    /// Rate limits of feeds.
    pub feed_limits: FeedLimits,
    /// CSV exports in progress, and long polls and streams of events.
    pub exports: Arc<AccountTurns>,
    pub streams: Arc<AccountTurns>,
    /// Longest wait for a client to take the next rows.
    pub stall: Duration,
    /// Whether exports hold drops of lists for internal use only.
    pub exports_internal: bool,
    /// Name of this instance.
    pub node: String,
    pub started: Instant,
    /// Counts of the lists that arrived in the inbox.
    pub inbox: Arc<InboxStatus>,
    /// The sources that the server fetches.
    pub sources: Arc<SourcesStatus>,
    /// How ingests and rebuilds do.
    pub jobs: Arc<JobStatus>,
    /// Why the served generation is not the one that `CURRENT` names; `None` if it is.
    pub index_problem: Arc<Mutex<Option<String>>>,
    /// Whether the server is shutting down, so that load balancers should stop routing to it.
    pub draining: Arc<AtomicBool>,
}

/// Alert channels that the operator has set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfiguredChannels {
    pub email: bool,
    pub webhook: bool,
    pub telegram: bool,
}

impl App {
    pub fn new(parts: AppParts) -> App {
        App(Arc::new(parts))
    }

    /// The day that a request counts as today.
    pub fn as_of(&self, now: Now) -> AsOf {
        let today = Day::from_instant(now.0).unwrap_or_else(|| self.clock.today());
        AsOf { today, catch_days: self.catch_days }
    }

    /// Seconds since the server started.
    pub fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Whether the server is shutting down, so that load balancers should stop routing to it.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Why the served generation is not the one that `CURRENT` names; `None` if it is.
    pub fn index_problem(&self) -> Option<String> {
        self.index_problem.lock().expect("no code panics holding this lock").clone()
    }
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}
