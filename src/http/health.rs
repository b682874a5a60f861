//! Health, readiness and the index of endpoints. They need no key and take constant time.

use std::sync::LazyLock;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::cluster::log::Condition;
use crate::http::App;
use crate::http::allowance::Now;
use crate::http::etag::{self, Tag};
use crate::http::response::Timestamp;
use crate::sources::state::{TableUse, View};
use crate::vocab::day::Day;
use crate::vocab::limits::STALE_AFTER_HOURS;
use crate::vocab::time::UnixMs;

/// Age of the data.
struct Freshness {
    latest_drop_date: Option<Day>,
    /// Time since the newest list was observed. `None` before the first list.
    age: Option<TimeDelta>,
}

impl Freshness {
    fn at(app: &App, now: DateTime<Utc>) -> Freshness {
        let index = app.live.current();
        let observed = index.manifest().newest_observed_at;
        Freshness {
            latest_drop_date: index.newest_drop_date(app.as_of(Now(now)).today),
            age: observed.map(|observed| (now - observed).max(TimeDelta::zero())),
        }
    }

    fn stale(&self) -> bool {
        self.age.is_none_or(|age| age > TimeDelta::hours(STALE_AFTER_HOURS))
    }

    fn status(&self) -> &'static str {
        if self.stale() { "stale" } else { "ok" }
    }
}

/// Liveness and data freshness.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Health)]
pub struct HealthResponse {
    /// `ok` or `stale`.
    status: &'static str,
    #[schema(value_type = Option<String>, format = Date, required)]
    latest_drop_date: Option<Day>,
    stale: bool,
    /// Seconds since the server started.
    uptime: u64,
}

/// `GET /api/health`: always 200.
pub async fn health(State(app): State<App>) -> impl IntoResponse {
    let fresh = Freshness::at(&app, app.clock.now());
    Json(HealthResponse {
        status: fresh.status(),
        latest_drop_date: fresh.latest_drop_date,
        stale: fresh.stale(),
        uptime: app.uptime_s(),
    })
}

/// Readiness of an instance.
#[derive(Serialize, ToSchema)]
#[schema(as = Ready)]
pub struct ReadyResponse {
    ready: bool,
    /// Seconds since the server started.
    uptime: u64,
    /// Name of the instance.
    node: String,
    checks: Checks,
}

/// Each check is `ok` or a short reason.
// Anybody can read it: details are in the log.
#[derive(Serialize, ToSchema)]
struct Checks {
    database: String,
    drops: &'static str,
    environment: &'static str,
    /// Of a node of a cluster. `cut_off`: reads go on, writes wait for the shared log. `behind`: the other nodes
    /// serve newer lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'static str>,
}

/// `GET /api/ready`: 200 when this instance can serve reads and writes, else 503.
pub async fn ready(State(app): State<App>) -> impl IntoResponse {
    let database = app.store.health().err();
    let is_draining = app.is_draining();
    let log = app.store.shared_log().map(|log| log_check(&log, app.live.is_behind()));
    let is_log_ready = log.is_none_or(|check| check == "ok" || check == CUT_OFF);
    let ready = database.is_none() && !is_draining && is_log_ready;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let checks = Checks {
        database: database.unwrap_or_else(|| "ok".to_owned()),
        // The instance stays ready while it serves an older generation than `CURRENT` names.
        drops: if app.index_problem().is_some() { "older_generation" } else { "ok" },
        environment: if is_draining { "draining" } else { "ok" },
        log,
    };
    (status, Json(ReadyResponse { ready, uptime: app.uptime_s(), node: app.node.clone(), checks }))
}

/// All nodes are cut off together, and then still serve reads.
const CUT_OFF: &str = "cut_off";

fn log_check(log: &Condition, is_behind: bool) -> &'static str {
    match log {
        Condition { halted: Some(_), .. } => "halted",
        _ if is_behind => "behind",
        Condition { cut_off: Some(_), .. } => CUT_OFF,
        Condition { is_caught_up: false, .. } => "catching_up",
        _ => "ok",
    }
}

/// Age of the newest list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Ingest)]
pub struct IngestResponse {
    /// `ok` or `stale`.
    status: &'static str,
    #[schema(value_type = Option<String>, format = Date, required)]
    latest_drop_date: Option<Day>,
    /// `null` before the first list.
    #[schema(required)]
    hours_old: Option<i64>,
    stale_after_hours: i64,
    /// The sources that the server fetches, if it fetches any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<SourceResponse>,
}

/// A list that the server fetches by itself.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IngestSource)]
struct SourceResponse {
    name: String,
    /// `waiting` before the first run, `ok`, `failing` while it is retried, `late` without a success for
    /// two of its intervals, or `stopped` until the operator acts.
    status: &'static str,
    /// When the source last had no fault.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    last_success: Option<Timestamp>,
    /// Rows of its last ingested lists.
    rows: u64,
    /// Of a table, such as the Public Suffix List: the version that was fetched last.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Of a table: whether the server uses that version, or will after its next start.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_use: Option<bool>,
    /// `null` when the source is stopped.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    next_run: Option<Timestamp>,
}

impl SourceResponse {
    fn new(view: &View, now: DateTime<Utc>) -> SourceResponse {
        let stamp = |at| Timestamp(UnixMs::from_instant(at));
        SourceResponse {
            name: view.source.name.clone(),
            status: view.standing(now).as_str(),
            last_success: view.state.last_success.map(stamp),
            rows: view.state.rows,
            version: view.state.version.clone(),
            in_use: view.table_use().map(|used| used == TableUse::InUse),
            next_run: view.next_run(now).map(stamp),
        }
    }
}

/// `GET /api/ready/ingest`: 503 when the newest list is more than 48 hours old.
pub async fn ready_ingest(State(app): State<App>) -> impl IntoResponse {
    let now = app.clock.now();
    let fresh = Freshness::at(&app, now);
    let views = app.sources.views();
    let sources = views.iter().filter(|view| view.is_enabled());
    let status = if fresh.stale() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let body = IngestResponse {
        status: fresh.status(),
        latest_drop_date: fresh.latest_drop_date,
        hours_old: fresh.age.map(|age| age.num_hours()),
        stale_after_hours: STALE_AFTER_HOURS,
        sources: sources.map(|view| SourceResponse::new(view, now)).collect(),
    };
    (status, Json(body))
}

/// `GET /api/docs`: the API documentation as Markdown.
pub async fn api_docs(headers: HeaderMap) -> Response {
    const DOCS: &[u8] = include_bytes!("../../data/docs/api.md");
    static TAG: LazyLock<Tag> = LazyLock::new(|| Tag::for_bytes(DOCS));
    etag::constant(&TAG, &headers, "text/markdown; charset=utf-8", DOCS)
}
