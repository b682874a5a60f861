//! Health, readiness and the index of endpoints: no key, constant cost (decisions.md §7).

use std::sync::LazyLock;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::http::App;
use crate::http::allowance::Now;
use crate::http::etag::{self, Tag};
use crate::http::openapi::document;
use crate::http::operations::{Endpoint, endpoints};
use crate::vocab::day::Day;
use crate::vocab::limits::STALE_AFTER_HOURS;

/// How old the data is.
struct Freshness {
    latest_drop_date: Option<Day>,
    /// Since the newest list was observed; `None` before any list.
    age: Option<TimeDelta>,
}

impl Freshness {
    fn at(app: &App, now: DateTime<Utc>) -> Freshness {
        let index = app.live.current();
        let observed = index.manifest().newest_observed_at;
        Freshness {
            latest_drop_date: index.newest_drop_date(app.moment(Now(now)).today),
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HealthAnswer {
    status: &'static str,
    latest_drop_date: Option<Day>,
    stale: bool,
    uptime: u64,
}

/// `GET /api/health`: always 200.
pub async fn health(State(app): State<App>) -> impl IntoResponse {
    let fresh = Freshness::at(&app, app.clock.now());
    Json(HealthAnswer {
        status: fresh.status(),
        latest_drop_date: fresh.latest_drop_date,
        stale: fresh.stale(),
        uptime: app.uptime_s(),
    })
}

#[derive(Serialize)]
struct ReadyAnswer {
    ready: bool,
    uptime: u64,
    node: String,
    checks: Checks,
}

#[derive(Serialize)]
struct Checks {
    database: String,
    drops: String,
    environment: String,
}

/// `GET /api/ready`: 200 when this instance can do all its work, else 503.
pub async fn ready(State(app): State<App>) -> impl IntoResponse {
    let word = |problem: Option<String>| problem.unwrap_or_else(|| "ok".to_owned());
    let database = app.store.health().err();
    let draining = app.is_draining().then(|| "draining".to_owned());
    let ready = database.is_none() && draining.is_none();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let checks = Checks {
        database: word(database),
        // An older generation than CURRENT names is served well, but somebody should look.
        drops: word(app.index_problem()),
        environment: word(draining),
    };
    (status, Json(ReadyAnswer { ready, uptime: app.uptime_s(), node: app.node.clone(), checks }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IngestAnswer {
    status: &'static str,
    latest_drop_date: Option<Day>,
    hours_old: Option<i64>,
    stale_after_hours: i64,
}

/// `GET /api/ready/ingest`: 503 when the newest list is more than 48 hours old.
pub async fn ready_ingest(State(app): State<App>) -> impl IntoResponse {
    let fresh = Freshness::at(&app, app.clock.now());
    let status = if fresh.stale() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let answer = IngestAnswer {
        status: fresh.status(),
        latest_drop_date: fresh.latest_drop_date,
        hours_old: fresh.age.map(|age| age.num_hours()),
        stale_after_hours: STALE_AFTER_HOURS,
    };
    (status, Json(answer))
}

#[derive(Serialize)]
struct IndexAnswer {
    name: &'static str,
    version: &'static str,
    endpoints: Vec<Endpoint>,
    auth: &'static str,
    docs: &'static str,
}

/// `GET /api/v1`: what there is.
pub async fn api_index() -> impl IntoResponse {
    Json(IndexAnswer {
        name: "dropdex",
        version: "1.0",
        endpoints: endpoints().collect(),
        auth: "Send your API key with every request, in the header `Authorization: Bearer <API_KEY>`.",
        docs: "/api/docs",
    })
}

/// `GET /api/docs`: the documentation of the API, as Markdown.
pub async fn api_docs(headers: HeaderMap) -> Response {
    const DOCS: &[u8] = include_bytes!("../../data/docs/api.md");
    static TAG: LazyLock<Tag> = LazyLock::new(|| Tag::of_bytes(DOCS));
    etag::constant(&TAG, &headers, "text/markdown; charset=utf-8", DOCS)
}

/// `GET /api/openapi.json`: the OpenAPI document, for programs.
pub async fn openapi(headers: HeaderMap) -> Response {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| document().to_string().into_bytes());
    static TAG: LazyLock<Tag> = LazyLock::new(|| Tag::of_bytes(&BYTES));
    etag::constant(&TAG, &headers, "application/json", &BYTES)
}
