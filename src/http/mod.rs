//! The JSON API and CSV exports: requests in, answers of the index and of what users own out.
//! [`operations`] names every route and says what it takes and gives; rules live in `index` and
//! `accounts`, statuses in [`error`].

pub mod alerts;
pub mod allowance;
pub mod answer;
pub mod appraise;
pub mod body;
pub mod domain;
pub mod drops;
pub mod error;
pub mod etag;
pub mod export;
pub mod health;
pub mod openapi;
pub mod operations;
pub mod origin;
pub mod params;
pub mod peer;
pub mod portfolio;
pub mod rows;
pub mod search;
pub mod session;
mod shapes;
pub mod unsubscribe;
pub mod watchlist;
pub mod work;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::accounts::Store;
use crate::http::allowance::Now;
use crate::http::session::CookieKind;
use crate::index::filter::Moment;
use crate::index::generation::live::LiveIndex;
use crate::intake::inbox::InboxStatus;
use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::guard::Guard;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;

/// What every handler asks.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// The parts of an [`App`].
pub struct Parts {
    /// The generation being served.
    pub live: Arc<LiveIndex>,
    /// What users own.
    pub store: Store,
    /// Judges the webhooks that users name.
    pub guard: Guard,
    /// Which channels alerts can go through.
    pub channels: ConfiguredChannels,
    /// How browsers carry sessions.
    pub cookie: CookieKind,
    pub clock: Clock,
    /// Which names RDAP can verify.
    pub bootstrap: Arc<LiveBootstrap>,
    /// Days a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// What this instance calls itself.
    pub node: String,
    pub started: Instant,
    /// Counts of the lists that arrived in the inbox.
    pub inbox: Arc<InboxStatus>,
    /// Why the generation being served is not the one `CURRENT` names.
    pub index_problem: Arc<Mutex<Option<String>>>,
    /// Whether the end has begun, and requests should go elsewhere.
    pub draining: Arc<AtomicBool>,
}

/// Which channels of alerts the operator has set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfiguredChannels {
    pub email: bool,
    pub webhook: bool,
    pub telegram: bool,
}

impl App {
    /// An app of these parts.
    pub fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }

    /// The day a request is answered for.
    pub fn moment(&self, now: Now) -> Moment {
        let today = Day::from_instant(now.0).unwrap_or_else(|| self.clock.today());
        Moment { today, catch_days: self.catch_days }
    }

    /// Whole seconds since the start.
    pub fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Whether the end has begun, and requests should go elsewhere.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Why the generation being served is not the one `CURRENT` names.
    pub fn index_problem(&self) -> Option<String> {
        self.index_problem.lock().expect("no code panics holding this lock").clone()
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
