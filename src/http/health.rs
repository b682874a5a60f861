//! Health, readiness and the index of endpoints. These endpoints need no key and take constant
//! time.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::cluster::log::Condition;
use crate::edge::etag::{self, Tag};
use crate::response::Timestamp;
use crate::service::app::App;
use crate::service::app::Now;
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
        uptime: app.status.uptime_s(),
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
    /// On a cluster node: seconds since it last had all writes of the other nodes.
    #[serde(rename = "dataAge", skip_serializing_if = "Option::is_none")]
    data_age: Option<u64>,
    checks: Checks,
}

/// Each check is `ok` or a short reason.
// The response is public, so details are only in the log.
#[derive(Serialize, ToSchema)]
struct Checks {
    database: String,
    drops: &'static str,
    environment: &'static str,
    /// `unwritable` while events of names are missing from the change log. Reads and writes continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<&'static str>,
    /// On a cluster node. `cut_off`: reads continue, writes wait for the shared log. `behind`: the other nodes
    /// serve newer lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'static str>,
    /// `untrusted` while the clock of the machine is not trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'static str>,
}

/// What this instance can serve.
struct Readiness {
    reads: bool,
    writes: bool,
    checks: Checks,
}

impl Readiness {
    fn of(app: &App) -> Readiness {
        let database = app.store.health().err();
        let is_draining = app.status.is_draining();
        let log = app.store.shared_log();
        let (log, log_reads, log_writes) = match &log {
            None => (None, true, true),
            Some(log) => {
                let (check, reads, writes) = of_log(log, app.live.is_behind());
                (Some(check), reads, writes)
            }
        };
        let is_clock_trusted = app.clock.is_trusted();
        let has_lists = app.has_lists();
        Readiness {
            reads: has_lists && !is_draining && log_reads,
            writes: has_lists
                && database.is_none()
                && !is_draining
                && log_writes
                && is_clock_trusted,
            checks: Checks {
                database: database.unwrap_or_else(|| "ok".to_owned()),
                // The instance stays ready while it serves an older generation than `CURRENT` names.
                drops: match app.status.index_problem() {
                    _ if !has_lists => "no_lists",
                    Some(_) => "older_generation",
                    None => "ok",
                },
                environment: if is_draining { "draining" } else { "ok" },
                changes: app.changes.is_failing().then_some("unwritable"),
                log,
                clock: (!is_clock_trusted).then_some("untrusted"),
            },
        }
    }
}

/// `GET /api/ready`: 200 if this instance can serve reads and writes, otherwise 503.
pub async fn ready(State(app): State<App>) -> impl IntoResponse {
    let Readiness { writes, checks, .. } = Readiness::of(&app);
    respond(&app, writes, checks)
}

/// `GET /api/ready/reads`: 200 if this instance can serve reads, otherwise 503.
pub async fn ready_reads(State(app): State<App>) -> impl IntoResponse {
    let Readiness { reads, checks, .. } = Readiness::of(&app);
    respond(&app, reads, checks)
}

fn respond(app: &App, ready: bool, checks: Checks) -> (StatusCode, Json<ReadyResponse>) {
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let data_age = app.store.data_age().map(|age| age.as_secs());
    let (uptime, node) = (app.status.uptime_s(), app.status.node.clone());
    (status, Json(ReadyResponse { ready, uptime, node, data_age, checks }))
}

const BEHIND: &str = "behind";
/// While the servers elect a new leader, all nodes are briefly cut off at the same time.
const CUT_OFF: &str = "cut_off";
/// A node cut off for longer may be alone: the others may have continued without it.
const CUT_OFF_MAX: Duration = Duration::from_secs(120);

/// Returns the check of the shared log, and whether a node can serve reads and writes.
fn of_log(log: &Condition, is_behind: bool) -> (&'static str, bool, bool) {
    let check = log_check(log, is_behind);
    let is_alone = log.cut_off.as_ref().is_some_and(|it| it.since.elapsed() > CUT_OFF_MAX);
    let reads = log.is_caught_up && check != BEHIND;
    (check, reads, reads && (check == "ok" || check == CUT_OFF && !is_alone))
}

fn log_check(log: &Condition, is_behind: bool) -> &'static str {
    match log {
        Condition { halted: Some(_), .. } => "halted",
        _ if is_behind => BEHIND,
        Condition { cut_off: Some(_), .. } => CUT_OFF,
        log if !log.is_complete(Instant::now()) => "catching_up",
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

/// A list that the server fetches automatically.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IngestSource)]
struct SourceResponse {
    name: String,
    /// `waiting` before the first run, `ok`, `doubtful` if the fetched lists are odd, `failing` while it is retried,
    /// `late` after two intervals without a success, or `stopped` until the operator acts.
    status: &'static str,
    /// When a run of the source last succeeded.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    last_success: Option<Timestamp>,
    /// Rows of its last ingested lists.
    rows: u64,
    /// For a table, such as the Public Suffix List: the version fetched last.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// For a table: whether the server uses that version, or will after its next start.
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
    let views = app.status.sources.views();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::log::CutOff;

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).expect("after the boot")
    }

    #[test]
    fn a_node_cut_off_for_minutes_is_ready_only_for_reads() {
        let well =
            Condition { is_caught_up: true, complete_at: Some(ago(1)), ..Condition::default() };
        let cut_off = |log: &Condition, seconds| {
            let since = ago(seconds);
            Condition { cut_off: Some(CutOff { error: String::new(), since }), ..log.clone() }
        };
        let new = Condition::default();
        let halted = Condition { halted: Some(String::new()), ..well.clone() };
        let slow = Condition { complete_at: Some(ago(60)), ..well.clone() };
        for (log, expected) in [
            (&well, ("ok", true, true)),
            (&cut_off(&well, 60), ("cut_off", true, true)),
            (&cut_off(&well, 121), ("cut_off", true, false)),
            (&cut_off(&new, 1), ("cut_off", false, false)),
            (&new, ("catching_up", false, false)),
            (&halted, ("halted", true, false)),
            // The node receives no records, for an unknown reason.
            (&slow, ("catching_up", true, false)),
        ] {
            assert_eq!(of_log(log, false), expected, "{log:?}");
        }
        assert_eq!(of_log(&well, true), ("behind", false, false));
    }
}
