//! State shared by all requests.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::account_turns::AccountTurns;
use crate::accounts::Store;
use crate::archive::WebArchive;
use crate::backtests::Backtests;
use crate::backups::Backups;
use crate::changes::ChangeLog;
use crate::checks::Checks;
use crate::comparables::{LiveSales, OwnSales};
use crate::copies::Copies;
use crate::downloads::Downloads;
use crate::error::ApiError;
use crate::fact_book::{FactBook, VisibleFacts};
use crate::feed_limits::FeedLimits;
use crate::index::Index;
use crate::index::filter::{AsOf, DropFilter};
use crate::index::generation::live::LiveIndex;
use crate::intake::inbox::InboxStatus;
use crate::intake::queue::JobStatus;
use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::guard::Guard;
use crate::query::filter::Filter;
use crate::site::Site;
use crate::sources::worker::SourcesStatus;
use crate::telemetry::current;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;

/// Routes whose responses reach others than the account: readers of feeds, and agents. Facts that a vendor licensed
/// to the account alone are not seen there.
const SHARED: [&str; 2] = ["/mcp", "/feeds/{address}"];

/// State shared by all handlers. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<AppParts>);

/// The parts of an [`App`].
pub struct AppParts {
    /// The generation being served.
    pub live: Arc<LiveIndex>,
    /// User data.
    pub store: Store,
    /// Facts of the server and of accounts.
    pub facts: Arc<FactBook>,
    /// The operator's sales of names.
    pub sales: Arc<LiveSales>,
    /// Sales from the files of accounts.
    pub own_sales: Arc<OwnSales>,
    /// The log of changes of names.
    pub changes: ChangeLog,
    /// Dated files for whole copies; `None` if none are made.
    pub copies: Option<Copies>,
    pub clock: Clock,
    /// Days for which a name counts as catchable after its effective release.
    pub catch_days: u16,
    pub site: Site,
    pub reach: Reach,
    pub limits: ResponseLimits,
    pub status: Status,
}

/// Outbound services that requests use.
pub struct Reach {
    /// Checks the webhook addresses that users enter.
    pub guard: Guard,
    /// Channels that alerts can use.
    pub channels: ConfiguredChannels,
    /// RDAP servers by suffix: the names that can be verified.
    pub bootstrap: Arc<LiveBootstrap>,
    /// Registry checks on demand; `None` if verification is off.
    pub checks: Option<Arc<Checks>>,
    /// Whether WHOIS servers may be asked.
    pub whois: bool,
    /// `None` if no web archive is asked.
    pub archive: Option<Arc<WebArchive>>,
}

/// Limits of responses that take a long time.
pub struct ResponseLimits {
    pub feeds: FeedLimits,
    pub backtests: Backtests,
    /// CSV exports in progress.
    pub exports: Arc<AccountTurns>,
    /// Dated files that were downloaded today.
    pub downloads: Downloads,
    /// Long polls and streams of events in progress.
    pub streams: Arc<AccountTurns>,
    /// Maximum wait for a client to read the next rows.
    pub stall: Duration,
    /// Whether exports include drops from lists that are for internal use only.
    pub exports_internal: bool,
}

impl ResponseLimits {
    /// Creates the limits of a server that waits at most `stall` for a client to read the next
    /// rows.
    pub fn new(stall: Duration, exports_internal: bool) -> ResponseLimits {
        let (feeds, exports, streams) = (FeedLimits::default(), Arc::default(), Arc::default());
        let (backtests, downloads) = (Backtests::default(), Downloads::default());
        ResponseLimits { feeds, backtests, exports, downloads, streams, stall, exports_internal }
    }
}

/// Facts about this server.
pub struct Status {
    /// Name of this instance.
    pub node: String,
    pub started: Instant,
    /// Counts of the lists that arrived in the inbox.
    pub inbox: Arc<InboxStatus>,
    /// The sources that the server fetches.
    pub sources: Arc<SourcesStatus>,
    /// State of the scheduled backups.
    pub backups: Arc<Backups>,
    /// Status of ingests and rebuilds.
    pub jobs: Arc<JobStatus>,
    /// Why the served generation differs from the one in `CURRENT`; `None` if it does not.
    pub index_problem: Arc<Mutex<Option<String>>>,
    /// Whether the server is shutting down, so that load balancers should stop routing to it.
    pub draining: Arc<AtomicBool>,
}

impl Status {
    /// Creates the status of a server that starts now.
    pub fn new(node: String, index_problem: Option<String>) -> Status {
        Status {
            node,
            started: Instant::now(),
            inbox: Arc::default(),
            sources: Arc::default(),
            backups: Arc::default(),
            jobs: Arc::default(),
            index_problem: Arc::new(Mutex::new(index_problem)),
            draining: Arc::default(),
        }
    }

    /// Seconds since the server started.
    pub fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Whether the server is shutting down.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Why the served generation differs from the one in `CURRENT`; `None` if it does not.
    pub fn index_problem(&self) -> Option<String> {
        self.index_problem.lock().expect("no code panics holding this lock").clone()
    }
}

/// The time of a request, read once so that quotas, stages and dates agree.
#[derive(Clone, Copy, Debug)]
pub struct Now(pub DateTime<Utc>);

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

    /// Returns the facts that the account of this thread's request may see; those of the server without an account.
    pub fn visible_facts(&self) -> VisibleFacts {
        let owned = current::account().and_then(|account| self.store.data_of(account));
        let visible = self.facts.visible(owned.as_deref());
        if current::is_on(&SHARED) { visible.without_vendors() } else { visible }
    }

    /// Resolves the conditions of a filter on facts that the account of this thread's request may see, and joins
    /// these with the index.
    ///
    /// # Errors
    /// A fact is unknown to the account, a value is of another type, or memory does not suffice.
    pub fn apply_facts(
        &self,
        index: &Index,
        filter: &mut Filter,
        today: Day,
    ) -> Result<(), ApiError> {
        self.facts.apply(index, || self.visible_facts(), filter, today)
    }

    /// As [`App::apply_facts`], for filter and order of the drops list.
    ///
    /// # Errors
    /// As [`App::apply_facts`].
    pub fn apply_drop_facts(
        &self,
        index: &Index,
        filter: &mut DropFilter,
        today: Day,
    ) -> Result<(), ApiError> {
        self.facts.apply_drops(index, || self.visible_facts(), filter, today)
    }

    /// Whether the index was built from at least one list.
    pub fn has_lists(&self) -> bool {
        self.live.current().manifest().newest_observed_at.is_some()
    }

    /// Returns the day that a request treats as today.
    pub fn as_of(&self, now: Now) -> AsOf {
        let today = Day::from_instant(now.0).unwrap_or_else(|| self.clock.today());
        AsOf { today, catch_days: self.catch_days }
    }
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}
