//! The JSON API and CSV exports: requests in, answers of the index and of what users own out.
//! [`router`] names every route; rules live in `index` and `accounts`, statuses in [`error`].

pub mod alerts;
pub mod allowance;
mod answer;
pub mod appraise;
pub mod body;
pub mod domain;
pub mod drops;
pub mod error;
pub mod export;
pub mod health;
pub mod params;
pub mod portfolio;
pub mod search;
pub mod session;
pub mod unsubscribe;
pub mod watchlist;
pub mod work;

use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::routing::{get, post, put};
use serde::Serialize;

use crate::accounts::Store;
use crate::http::allowance::{Now, guarded};
use crate::http::session::CookieKind;
use crate::index::filter::Moment;
use crate::index::live::LiveIndex;
use crate::outbound::guard::Guard;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::rdap::LiveBootstrap;

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
    /// Why the generation being served is not the one `CURRENT` names.
    pub index_problem: Arc<Mutex<Option<String>>>,
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
        let today = Day::of(now.0).unwrap_or_else(|| self.clock.today());
        Moment { today, catch_days: self.catch_days }
    }

    /// Whole seconds since the start.
    pub fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
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

/// One public endpoint, as the index lists it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Endpoint {
    pub method: &'static str,
    pub path: &'static str,
    /// Whether it needs a key.
    pub auth: bool,
    pub description: &'static str,
}

const fn endpoint(
    method: &'static str,
    path: &'static str,
    auth: bool,
    description: &'static str,
) -> Endpoint {
    Endpoint { method, path, auth, description }
}

/// Every public endpoint.
pub const ENDPOINTS: &[Endpoint] = &[
    endpoint("GET", "/api/v1", false, "This index"),
    endpoint("GET", "/api/v1/drops", true, "Ranked drops"),
    endpoint("GET", "/api/v1/search", true, "Prefix search over every name ever seen"),
    endpoint("GET", "/api/v1/domain/{name}", true, "The dossier of one name"),
    endpoint("PUT", "/api/v1/domain/{name}/feedback", true, "Your vote on a name"),
    endpoint("POST", "/api/v1/appraise", true, "The scores of up to 100 names, seen or not"),
    endpoint("GET", "/api/v1/portfolio", true, "Your backorder claims"),
    endpoint("POST", "/api/v1/portfolio", true, "Add a claim"),
    endpoint("GET", "/api/v1/portfolio/{id}", true, "One claim"),
    endpoint("PATCH", "/api/v1/portfolio/{id}", true, "Change a claim"),
    endpoint("DELETE", "/api/v1/portfolio/{id}", true, "Remove a claim"),
    endpoint("GET", "/api/v1/watchlist", true, "Your watchlist"),
    endpoint("POST", "/api/v1/watchlist", true, "Watch a name"),
    endpoint("DELETE", "/api/v1/watchlist", true, "Stop watching a name"),
    endpoint("GET", "/api/v1/alerts", true, "Your alert rules"),
    endpoint("POST", "/api/v1/alerts", true, "Add an alert rule"),
    endpoint("GET", "/api/v1/alerts/{id}", true, "One alert rule"),
    endpoint("PATCH", "/api/v1/alerts/{id}", true, "Change an alert rule"),
    endpoint("DELETE", "/api/v1/alerts/{id}", true, "Remove an alert rule"),
    endpoint("POST", "/api/v1/alerts/preview", true, "What an alert rule would match"),
    endpoint("POST", "/api/v1/alerts/{id}/test", true, "Send a test message"),
    endpoint("GET", "/api/v1/alerts/{id}/deliveries", true, "What was sent, and what will be"),
    endpoint(
        "POST",
        "/api/v1/alerts/{id}/deliveries/{delivery}/retry",
        true,
        "Try a failed delivery again",
    ),
    endpoint("GET", "/api/export/drops", true, "Ranked drops as CSV"),
    endpoint("GET", "/api/export/watchlist", true, "Your watchlist as CSV"),
    endpoint("GET", "/api/export/portfolio", true, "Your backorder claims as CSV"),
    endpoint("GET", "/unsubscribe/{delivery}", false, "A page to stop the mails of an alert"),
    endpoint("POST", "/unsubscribe/{delivery}", false, "Stop the mails of an alert"),
    endpoint("GET", "/api/health", false, "Liveness and freshness, always 200"),
    endpoint("GET", "/api/ready", false, "Readiness of this instance"),
    endpoint("GET", "/api/ready/ingest", false, "503 when the newest list is over 48 hours old"),
    endpoint("GET", "/api/docs", false, "The documentation of this API"),
];

/// Every route of the API; whoever adds pages answers what is not routed. Guards stand before handlers, not before routes: a wrong method is 405 without a
/// key.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/api/v1", get(health::api_index))
        .route("/api/v1/", get(health::api_index))
        .route("/api/v1/drops", get(guarded(drops::list_drops)))
        .route("/api/v1/search", get(guarded(search::search_names)))
        .route("/api/v1/domain/{name}", get(guarded(domain::find_domain)))
        .route("/api/v1/domain/{name}/feedback", put(guarded(domain::vote)))
        .route("/api/v1/appraise", post(guarded(appraise::appraise_names)))
        .merge(resources())
        .route("/api/export/drops", get(export::export_drops))
        .route("/api/export/watchlist", get(export::export_watchlist))
        .route("/api/export/portfolio", get(export::export_portfolio))
        .route("/unsubscribe/{delivery}", get(unsubscribe::ask).post(unsubscribe::unsubscribe))
        .route("/api/health", get(health::health))
        .route("/api/ready", get(health::ready))
        .route("/api/ready/ingest", get(health::ready_ingest))
        .route("/api/docs", get(health::api_docs))
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(app)
}

/// The routes of what users own.
fn resources() -> Router<App> {
    let claims = get(guarded(portfolio::list_claims)).post(guarded(portfolio::add_claim));
    let claim = get(guarded(portfolio::find_claim))
        .patch(guarded(portfolio::change_claim))
        .delete(guarded(portfolio::remove_claim));
    let watchlist = get(guarded(watchlist::list_watches))
        .post(guarded(watchlist::add_watch))
        .delete(guarded(watchlist::remove_watch));
    let alerts = get(guarded(alerts::list_alerts)).post(guarded(alerts::add_alert));
    let alert = get(guarded(alerts::find_alert))
        .patch(guarded(alerts::change_alert))
        .delete(guarded(alerts::remove_alert));
    Router::new()
        .route("/api/v1/portfolio", claims)
        .route("/api/v1/portfolio/{id}", claim)
        .route("/api/v1/watchlist", watchlist)
        .route("/api/v1/alerts", alerts)
        .route("/api/v1/alerts/preview", post(guarded(alerts::preview::preview_alert)))
        .route("/api/v1/alerts/{id}", alert)
        .route("/api/v1/alerts/{id}/test", post(guarded(alerts::deliveries::test_alert)))
        .route("/api/v1/alerts/{id}/deliveries", get(guarded(alerts::deliveries::list_deliveries)))
        .route(
            "/api/v1/alerts/{id}/deliveries/{delivery}/retry",
            post(guarded(alerts::deliveries::retry_delivery)),
        )
}
