//! Authentication, plan check and daily allowance, in this order. A request that passes the first two
//! checks counts against the allowance, unless its response is a 304 or a 503.

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use chrono::{DateTime, Utc};

use crate::accounts::{Allowance, Caller, Counter, Person};
use crate::error::Refusal;
use crate::service::app::App;
use crate::service::error::ApiError;
use crate::telemetry::current;
use crate::vocab::plan::Plan;
use crate::vocab::scope::Scope;
use crate::{origin, session};

/// Checks that the caller's plan includes the JSON API and its key has the scope.
///
/// # Errors
/// 403 if either is missing.
pub fn check_json(caller: &Caller, scope: Option<Scope>) -> Result<(), ApiError> {
    if caller.plan < Plan::Pro {
        return Err(ApiError::JsonPlanRequired(caller.plan));
    }
    scope.map_or(Ok(()), |scope| check_scope(caller, scope))
}

/// Authenticates the caller of a CSV export by key or, without an `Authorization` header, by session.
/// A request with a session must come from our own pages.
///
/// # Errors
/// 401 without a valid key or session, 403 from another site, below the Core plan, and for a key without
/// the scope.
pub fn admit_export(app: &App, parts: &Parts, now: DateTime<Utc>) -> Result<Caller, ApiError> {
    let Parts { headers, extensions, .. } = parts;
    let is_person = session::token(app, headers).is_some() || extensions.get::<Person>().is_some();
    let caller = match is_person && !headers.contains_key(AUTHORIZATION) {
        true if !origin::is_same_origin_or_direct(headers) => return Err(ApiError::CrossSite),
        true => session::of_request(app, parts, now).ok_or(ApiError::Unauthenticated)?.caller,
        false => authenticated(app, extensions, headers)?,
    };
    check_export(&caller)?;
    Ok(caller)
}

/// Checks that the caller's plan includes CSV exports and its key has the scope.
fn check_export(caller: &Caller) -> Result<(), ApiError> {
    if caller.plan < Plan::Core {
        return Err(ApiError::ExportPlanRequired(caller.plan));
    }
    check_scope(caller, Scope::Export)
}

/// Authenticates the caller of a tool for agents by key. A tool call counts like a request to its
/// operation.
///
/// # Errors
/// 401 without a valid key, 403 below the Pro plan and for a key without the scope.
pub fn admit_agent(
    app: &App,
    extensions: &Extensions,
    headers: &HeaderMap,
) -> Result<Caller, ApiError> {
    let caller = authenticated(app, extensions, headers)?;
    check_json(&caller, Some(Scope::Mcp))?;
    Ok(caller)
}

fn check_scope(caller: &Caller, scope: Scope) -> Result<(), ApiError> {
    if caller.scopes.holds(scope) { Ok(()) } else { Err(ApiError::ScopeRequired(scope)) }
}

/// Checks the caller of a long response again, because its key may have been revoked meanwhile, or its
/// account disabled or moved to another plan.
///
/// # Errors
/// The same as before the response.
pub fn readmit(app: &App, caller: &Caller, scope: Scope) -> Result<Caller, ApiError> {
    let caller = app.store.renew(caller).ok_or(ApiError::InvalidKey)?;
    match scope {
        Scope::Export => check_export(&caller)?,
        scope => check_json(&caller, Some(scope))?,
    }
    Ok(caller)
}

/// Counts requests beyond the one already counted. Returns `None` if there are none.
///
/// # Errors
/// 429 when the day's allowance is used up.
pub async fn charge_more(
    app: &App,
    caller: &Caller,
    requests: usize,
    now: DateTime<Utc>,
) -> Result<Option<Allowance>, ApiError> {
    let mut left = None;
    for _ in 0..requests {
        let charged = app.store.charge_waiting(Counter::Requests, caller, now).await;
        left = Some(check_granted(charged, caller, now)?);
    }
    Ok(left)
}

/// Takes back what a request was charged if its response is a 503: the server did no work for it.
pub fn forgive<T>(
    app: &App,
    (caller, counter): (&Caller, Counter),
    requests: usize,
    now: DateTime<Utc>,
    outcome: Result<T, ApiError>,
) -> Result<T, Refusal> {
    outcome.map_err(|err| {
        let refusal = Refusal::from(err);
        if refusal.is_unavailable() {
            let number = u32::try_from(requests).unwrap_or(u32::MAX);
            app.store.give_back(counter, caller, number, now);
        }
        refusal
    })
}

/// Counts one export.
///
/// # Errors
/// 429 when the day's export budget is used up.
pub async fn charge_export(
    app: &App,
    caller: &Caller,
    now: DateTime<Utc>,
) -> Result<Allowance, ApiError> {
    check_granted(app.store.charge_waiting(Counter::Exports, caller, now).await, caller, now)
}

/// Returns the day's export budget without using any of it.
///
/// # Errors
/// 429 when it is used up.
pub fn exports_left(app: &App, caller: &Caller, now: DateTime<Utc>) -> Result<Allowance, ApiError> {
    check_granted(app.store.allowance(Counter::Exports, caller, now), caller, now)
}

/// Whether a request has a valid key or, without an `Authorization` header, a valid session. Stores the
/// caller in the request's extensions, so that the handler need not look it up again.
pub fn identify(app: &App, request: &mut Request) -> bool {
    let headers = request.headers();
    if headers.contains_key(AUTHORIZATION) {
        let Ok(caller) = authenticate(app, headers) else { return false };
        current::set_account(caller.account.0);
        request.extensions_mut().insert(caller);
    } else {
        let has_cookie = headers.contains_key(COOKIE);
        let person = has_cookie.then(|| session::find(app, headers, app.clock.now())).flatten();
        let Some(person) = person else { return false };
        current::set_account(person.caller.account.0);
        request.extensions_mut().insert(person);
    }
    true
}

/// Checks that a request or export was granted.
///
/// # Errors
/// 429 when the day's allowance is used up.
pub fn check_granted(
    allowance: Allowance,
    caller: &Caller,
    now: DateTime<Utc>,
) -> Result<Allowance, ApiError> {
    if allowance.granted {
        return Ok(allowance);
    }
    // Rounded up, so that a client that waits this long does not retry too early.
    let left_ms = (allowance.resets_at - now).num_milliseconds().max(0);
    let retry_after_s = (left_ms + 999) / 1000;
    Err(ApiError::RateLimited { plan: caller.plan, allowance, retry_after_s })
}

/// Returns the caller that [`identify`] found, or the owner of the key.
///
/// # Errors
/// 401 without a valid key.
pub fn authenticated(
    app: &App,
    extensions: &Extensions,
    headers: &HeaderMap,
) -> Result<Caller, ApiError> {
    extensions.get::<Caller>().cloned().map_or_else(|| authenticate(app, headers), Ok)
}

fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let key = bearer(headers).ok_or(ApiError::Unauthenticated)?;
    let unknown = || match app.store.key_expired_at(key) {
        Some(at) => ApiError::ExpiredKey { at },
        None if app.store.was_caught_up() => ApiError::InvalidKey,
        // This node has not read the other nodes' writes yet.
        None => ApiError::Unread,
    };
    app.store.authenticate(key).ok_or_else(unknown)
}

/// Returns the token of the only `Authorization` header. The scheme is case-insensitive (RFC 9110
/// §11.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
