//! The one place that turns errors into HTTP: a status, and JSON with an `error` field
//! (api.md, Errors; decisions.md §3 to §5). Internals are logged whole and answered bare.

use std::fmt::Display;

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::accounts::Allowance;
use crate::http::allowance::rate_limit_headers;
use crate::index::QueryError;
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
    /// 400: a parameter is missing, malformed or out of range.
    BadParameter { name: &'static str, what: String },
    /// 404: no such resource.
    NotFound,
    /// 405: the path is there, the method is not.
    MethodNotAllowed,
    /// 429: the day's allowance is used up at this moment.
    RateLimited { plan: Plan, allowance: Allowance, retry_after_s: i64 },
    /// 500: not the client's fault.
    Internal(anyhow::Error),
}

impl ApiError {
    /// A parameter that is not as it should be: `what` reads on after its name and a colon.
    pub fn parameter(name: &'static str, what: impl Display) -> ApiError {
        ApiError::BadParameter { name, what: what.to_string() }
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
