//! `GET /api/v1/account`: what the account of a key may do, and what it used today. Free of charge, so that a client
//! can ask before it stops.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::{Allowance, Caller, Counter};
use crate::edge::error::Refusal;
use crate::json::{json_bytes, json_response};
use crate::response::Timestamp;
use crate::service::app::{App, Now};
use crate::vocab::limits::{CLAIMS_MAX, WATCHES_MAX};
use crate::vocab::scope::Scope;
use crate::vocab::time::UnixMs;

/// The account of a key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Account)]
pub struct AccountResponse {
    /// `free`, `core`, `pro` or `api`.
    plan: &'static str,
    /// Scopes of the key.
    scopes: Vec<&'static str>,
    /// JSON requests of this day.
    requests: Used,
    /// Exports of this day.
    exports: Used,
    /// When the day ends: the next 00:00 UTC.
    #[schema(value_type = String, format = DateTime)]
    resets_at: Timestamp,
    /// Exports that may run at the same time.
    concurrent_exports: u32,
    /// Writes by API and pages together.
    writes_per_minute: u32,
    /// Requests to `GET /api/v1/suggest`, which do not count as requests of the day.
    suggestions_per_minute: u32,
    active_rules: Used,
    /// Watched names that are not in the data.
    external_names: Used,
    watches: Used,
    claims: Used,
}

/// A limit, and how much of it is in use.
#[derive(Serialize, ToSchema)]
pub struct Used {
    used: u32,
    limit: u32,
}

impl Used {
    fn new(used: usize, limit: u32) -> Used {
        Used { used: u32::try_from(used).unwrap_or(u32::MAX), limit }
    }

    fn today(Allowance { limit, remaining, .. }: Allowance) -> Used {
        Used { used: limit.saturating_sub(remaining), limit }
    }
}

/// `GET /api/v1/account`.
pub async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
) -> Result<Response, Refusal> {
    let owned = app.store.user_data(&caller);
    let limits = app.store.limits(&caller);
    let requests = app.store.allowance(Counter::Requests, &caller, now.0);
    let exports = app.store.allowance(Counter::Exports, &caller, now.0);
    let rules = owned.rules().filter(|rule| rule.active).count();
    let scopes = Scope::ALL.into_iter().filter(|scope| caller.scopes.holds(*scope));
    let body = json_bytes(&AccountResponse {
        plan: caller.plan.as_str(),
        scopes: scopes.map(Scope::as_str).collect(),
        requests: Used::today(requests),
        exports: Used::today(exports),
        resets_at: Timestamp(UnixMs::from_instant(requests.resets_at)),
        concurrent_exports: limits.concurrent_exports,
        writes_per_minute: limits.writes_per_minute.get(),
        suggestions_per_minute: limits.suggestions_per_minute.get(),
        active_rules: Used::new(rules, limits.active_rules),
        external_names: Used::new(owned.external_names().count(), limits.external_names),
        watches: Used::new(owned.watch_count(), WATCHES_MAX),
        claims: Used::new(owned.claim_count(), CLAIMS_MAX),
    })?;
    Ok(json_response(body))
}
