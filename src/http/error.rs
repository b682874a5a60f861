//! The one place that turns errors into HTTP: a status, and JSON with an `error` field
//! (api.md, Errors; decisions.md §3 to §5). Internals are logged whole and answered bare.

use std::borrow::Cow;
use std::fmt::Display;

use axum::Json;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::accounts::{Allowance, AppendError, WriteError};
use crate::http::allowance::rate_limit_headers;
use crate::index::QueryError;
use crate::vocab::limits::BODY_BYTES_MAX;
use crate::vocab::plan::Plan;

/// Why a request is not answered as asked.
#[derive(Debug)]
pub enum ApiError {
    /// 401: no credentials, or none that are valid.
    Unauthenticated,
    /// 403: the plan has no JSON API.
    JsonPlanRequired(Plan),
    /// 403: the plan has no CSV export.
    ExportPlanRequired(Plan),
    /// 403: more than the plan, or any plan, allows.
    PlanLimit { plan: Option<Plan>, limit: Option<u32>, message: String },
    /// 400: a parameter, header or member of the body (`filter.tlds[1]`) is missing, malformed or
    /// out of range.
    BadParameter { name: Cow<'static, str>, what: String },
    /// 409: the idempotency key came with another request before.
    IdempotencyConflict,
    /// 413: more than a body may have.
    BodyTooLarge,
    /// 415: the body does not say it is JSON.
    UnsupportedMediaType,
    /// 404: no such resource.
    NotFound,
    /// 405: the path is there, the method is not.
    MethodNotAllowed,
    /// 429: the day's allowance is used up at this moment.
    RateLimited { plan: Plan, allowance: Allowance, retry_after_s: i64 },
    /// 409: it does not fit how the resource stands now.
    Conflict(String),
    /// 429: every test message of the UTC day has been sent.
    TooManyTests { limit: u32, resets_at: DateTime<Utc>, retry_after_s: i64, message: String },
    /// 503: nothing can be written now.
    Unavailable(AppendError),
    /// 500: not the client's fault.
    Internal(anyhow::Error),
}

impl ApiError {
    /// A parameter that is not as it should be: `what` reads on after its name and a colon.
    pub fn parameter(name: impl Into<Cow<'static, str>>, what: impl Display) -> ApiError {
        ApiError::BadParameter { name: name.into(), what: what.to_string() }
    }
}

impl From<WriteError> for ApiError {
    fn from(err: WriteError) -> ApiError {
        match err {
            WriteError::NotFound => ApiError::NotFound,
            WriteError::IdempotencyConflict => ApiError::IdempotencyConflict,
            WriteError::PlanLimit { plan, limit, message } => {
                ApiError::PlanLimit { plan: Some(plan), limit, message }
            }
            WriteError::TooMany { limit, .. } => {
                ApiError::PlanLimit { plan: None, limit: Some(limit), message: err.to_string() }
            }
            WriteError::Conflict(message) => ApiError::Conflict(message),
            WriteError::TooManyTests { limit, resets_at, retry_after_s } => {
                ApiError::TooManyTests { limit, resets_at, retry_after_s, message: err.to_string() }
            }
            WriteError::Invalid { field, what } => ApiError::parameter(field, what),
            WriteError::Journal(err @ AppendError::TooLong { .. }) => {
                ApiError::Internal(err.into())
            }
            WriteError::Journal(err) => ApiError::Unavailable(err),
            WriteError::Random(_) => ApiError::Internal(err.into()),
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(err: QueryError) -> ApiError {
        ApiError::Internal(err.into())
    }
}

fn plain(message: &str) -> Value {
    json!({ "error": message })
}

fn plan_required(message: &str, plan: Plan) -> Value {
    json!({ "error": message, "code": "PLAN_REQUIRED", "plan": plan.as_str() })
}

fn plan_limit(message: &str, plan: Option<Plan>, limit: Option<u32>) -> Value {
    let mut body = json!({ "error": message, "code": "PLAN_LIMIT" });
    if let Some(plan) = plan {
        body["plan"] = plan.as_str().into();
    }
    if let Some(limit) = limit {
        body["limit"] = limit.into();
    }
    body
}

/// What a client is told of a write that cannot be made now, and after how many seconds to come
/// again. A full queue empties at once; the rest waits for an operator.
fn unavailable(err: &AppendError) -> (&'static str, u32) {
    match err {
        AppendError::Busy => ("too many changes at once; try again", 1),
        AppendError::DiskFull => ("the disk is full; nothing can be changed until it has room", 10),
        _ => ("nothing can be changed at the moment; reading goes on", 30),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            ApiError::Unauthenticated => {
                let body = Json(plain("authentication required"));
                (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], body).into_response()
            }
            ApiError::JsonPlanRequired(plan) => {
                let message = "JSON API access requires the Pro plan or above";
                (StatusCode::FORBIDDEN, Json(plan_required(message, plan))).into_response()
            }
            ApiError::ExportPlanRequired(plan) => {
                let message = "CSV export requires the Core plan or above";
                (StatusCode::FORBIDDEN, Json(plan_required(message, plan))).into_response()
            }
            ApiError::BadParameter { name, what } => {
                let body = Json(plain(&format!("{name}: {what}")));
                (StatusCode::BAD_REQUEST, body).into_response()
            }
            ApiError::PlanLimit { plan, limit, message } => {
                let body = Json(plan_limit(&message, plan, limit));
                (StatusCode::FORBIDDEN, body).into_response()
            }
            ApiError::IdempotencyConflict => {
                let body = plain("Idempotency-Key: was used with another request in the last 24 h");
                (StatusCode::CONFLICT, Json(body)).into_response()
            }
            ApiError::BodyTooLarge => {
                let body = plain(&format!("body: must have at most {BODY_BYTES_MAX} bytes"));
                // The rest of it is not read: the connection is of no use any more.
                let close = [(CONNECTION, "close")];
                (StatusCode::PAYLOAD_TOO_LARGE, close, Json(body)).into_response()
            }
            ApiError::UnsupportedMediaType => {
                let body = plain("Content-Type: must be application/json, without an encoding");
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, Json(body)).into_response()
            }
            ApiError::Unavailable(err) => {
                tracing::warn!(error = %err, "a change was refused");
                let (message, retry_after_s) = unavailable(&err);
                let retry = [(RETRY_AFTER, HeaderValue::from(retry_after_s))];
                (StatusCode::SERVICE_UNAVAILABLE, retry, Json(plain(message))).into_response()
            }
            ApiError::NotFound => (StatusCode::NOT_FOUND, Json(plain("not found"))).into_response(),
            ApiError::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, Json(plain("method not allowed"))).into_response()
            }
            ApiError::RateLimited { plan, allowance, retry_after_s } => {
                let body = json!({
                    "error": "rate limit exceeded",
                    "plan": plan.as_str(),
                    "limit": allowance.limit,
                    "resetAt": allowance.resets_at.timestamp_millis(),
                });
                let retry = [(RETRY_AFTER, HeaderValue::from(retry_after_s))];
                let mut response =
                    (StatusCode::TOO_MANY_REQUESTS, retry, Json(body)).into_response();
                rate_limit_headers(&allowance, response.headers_mut());
                response
            }
            ApiError::Conflict(message) => {
                (StatusCode::CONFLICT, Json(plain(&message))).into_response()
            }
            ApiError::TooManyTests { limit, resets_at, retry_after_s, message } => {
                let body = json!({
                    "error": message,
                    "code": "TEST_LIMIT",
                    "limit": limit,
                    "resetAt": resets_at.timestamp_millis(),
                });
                let retry = [(RETRY_AFTER, HeaderValue::from(retry_after_s))];
                (StatusCode::TOO_MANY_REQUESTS, retry, Json(body)).into_response()
            }
            ApiError::Internal(err) => {
                tracing::error!(error = format!("{err:#}"), "request failed");
                let body = Json(plain("internal error"));
                (StatusCode::INTERNAL_SERVER_ERROR, body).into_response()
            }
        }
    }
}

/// Answers every path that is not routed.
pub async fn not_found() -> ApiError {
    ApiError::NotFound
}

/// Answers every method that a routed path does not have; the router adds `Allow`.
pub async fn method_not_allowed() -> ApiError {
    ApiError::MethodNotAllowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_now_says_when_to_come_again() {
        for (err, retry_after_s) in [
            (AppendError::Busy, "1"),
            (AppendError::DiskFull, "10"),
            (AppendError::Poisoned { reason: "EIO".into() }, "30"),
            (AppendError::Fenced, "30"),
            (AppendError::Closed, "30"),
        ] {
            let text = err.to_string();
            let response = ApiError::from(WriteError::Journal(err)).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{text}");
            assert_eq!(response.headers()[RETRY_AFTER], retry_after_s, "{text}");
        }
        let response = ApiError::from(WriteError::Journal(AppendError::TooLong { len: 1 }));
        assert_eq!(response.into_response().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn a_limit_of_every_plan_is_a_plan_limit_without_a_plan() {
        let err = ApiError::from(WriteError::TooMany { what: "claims", limit: 100_000 });
        let ApiError::PlanLimit { plan, limit, message } = err else { panic!("{err:?}") };
        assert_eq!(
            plan_limit(&message, plan, limit),
            json!({
                "error": "an account may have at most 100000 claims",
                "code": "PLAN_LIMIT",
                "limit": 100_000,
            })
        );
    }
}
