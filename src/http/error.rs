//! The one place that turns errors into HTTP: a status, and JSON with an `error` field
//! (api.md, Errors; decisions.md §3 to §5). Internals are logged whole and answered bare.

use std::borrow::Cow;
use std::fmt::Display;

use axum::Json;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::accounts::{Allowance, AppendError, Field, WriteError};
use crate::http::allowance::rate_limit_headers;
use crate::index::QueryError;
use crate::vocab::budget::Spent;
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
    BodyTooLarge { bytes_max: usize },
    /// 415: the body does not say it is JSON.
    UnsupportedMediaType,
    /// 403: a page of another site made the browser send it.
    CrossSite,
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
    /// 503: too many password checks are queued.
    HashingBusy,
    /// 503: the query exceeded its time budget.
    QueryTimeout,
    /// The client closed the connection before the response was ready.
    ClientClosed,
    /// 503: load shedding: every slot of the request's class is taken.
    Shed { retry_after_s: u32 },
    /// 408: the body did not come in time.
    SlowBody,
    /// 503: the request exceeded its deadline.
    RequestTimeout,
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
            WriteError::Invalid { field, what } => ApiError::parameter(member(field), what),
            WriteError::Journal(err @ AppendError::TooLong { .. }) => {
                ApiError::Internal(err.into())
            }
            WriteError::Journal(err) => ApiError::Unavailable(err),
            WriteError::Overloaded => ApiError::HashingBusy,
            WriteError::Random(_) | WriteError::Password(_) => ApiError::Internal(err.into()),
        }
    }
}

/// The member of a request body that holds a field.
fn member(field: Field) -> Cow<'static, str> {
    Cow::Borrowed(match field {
        Field::Registrar => "registrar",
        Field::ResalePrice => "resalePriceUsd",
        Field::SoldAt => "soldAt",
        Field::UserNotes => "userNotes",
        Field::AlertRule => "alertRuleId",
        Field::RuleName => "name",
        Field::FilterTlds => "filter.tlds",
        Field::FilterTld(at) => return format!("filter.tlds[{at}]").into(),
        Field::FilterMaxLength => "filter.maxLength",
        Field::FilterStages => "filter.stages",
        Field::Channels => "channels",
        Field::Channel(at) => return format!("channels[{at}]").into(),
        Field::ChannelChatId(at) => return format!("channels[{at}].chatId").into(),
        Field::ChatId => "chatId",
    })
}

impl From<Spent> for ApiError {
    fn from(spent: Spent) -> ApiError {
        match spent {
            Spent::Time => ApiError::QueryTimeout,
            Spent::Gone => ApiError::ClientClosed,
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

/// An error as HTTP: what a page shows as well as the API.
pub struct Refusal {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// An object with `error`, a text for people.
    pub body: Value,
}

impl Refusal {
    fn new(status: StatusCode, body: Value) -> Refusal {
        Refusal { status, headers: HeaderMap::new(), body }
    }

    fn with(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Refusal {
        self.headers.insert(name, value.into());
        self
    }

    /// What is said to people.
    pub fn message(&self) -> &str {
        self.body["error"].as_str().unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Refusal { status, headers, body } = self.into();
        (status, headers, Json(body)).into_response()
    }
}

impl From<ApiError> for Refusal {
    fn from(err: ApiError) -> Refusal {
        match err {
            ApiError::Unauthenticated => {
                Refusal::new(StatusCode::UNAUTHORIZED, plain("authentication required"))
                    .with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            ApiError::JsonPlanRequired(plan) => {
                let message = "JSON API access requires the Pro plan or above";
                Refusal::new(StatusCode::FORBIDDEN, plan_required(message, plan))
            }
            ApiError::ExportPlanRequired(plan) => {
                let message = "CSV export requires the Core plan or above";
                Refusal::new(StatusCode::FORBIDDEN, plan_required(message, plan))
            }
            ApiError::BadParameter { name, what } => {
                Refusal::new(StatusCode::BAD_REQUEST, plain(&format!("{name}: {what}")))
            }
            ApiError::PlanLimit { plan, limit, message } => {
                Refusal::new(StatusCode::FORBIDDEN, plan_limit(&message, plan, limit))
            }
            ApiError::IdempotencyConflict => {
                let body = plain("Idempotency-Key: was used with another request in the last 24 h");
                Refusal::new(StatusCode::CONFLICT, body)
            }
            ApiError::BodyTooLarge { bytes_max } => {
                let body = plain(&format!("body: must have at most {bytes_max} bytes"));
                // The rest of it is not read: the connection is of no use any more.
                Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, body)
                    .with(CONNECTION, HeaderValue::from_static("close"))
            }
            ApiError::UnsupportedMediaType => {
                let body = plain("Content-Type: must be application/json, without an encoding");
                Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, body)
            }
            ApiError::Unavailable(err) => {
                tracing::warn!(error = %err, "a change was refused");
                let (message, retry_after_s) = unavailable(&err);
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, plain(message))
                    .with(RETRY_AFTER, retry_after_s)
            }
            ApiError::HashingBusy => {
                let message = "too many log-ins at the moment; try again in a few seconds";
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, plain(message)).with(RETRY_AFTER, 2)
            }
            ApiError::QueryTimeout => {
                let message = "the query exceeded its time budget; narrow the filters";
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, plain(message)).with(RETRY_AFTER, 1)
            }
            ApiError::ClientClosed => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                plain("the client closed the connection"),
            ),
            ApiError::Shed { retry_after_s } => {
                let message = "too many requests at the moment; try again in a few seconds";
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, plain(message))
                    .with(RETRY_AFTER, retry_after_s)
            }
            ApiError::SlowBody => {
                let body = plain("body: did not come in time");
                // The rest of it may come yet, and would be taken for another request.
                Refusal::new(StatusCode::REQUEST_TIMEOUT, body)
                    .with(CONNECTION, HeaderValue::from_static("close"))
            }
            ApiError::RequestTimeout => {
                let message = "the request exceeded its deadline; try again later";
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, plain(message)).with(RETRY_AFTER, 10)
            }
            ApiError::CrossSite => {
                let message = "this was sent from another site; nothing has been changed";
                Refusal::new(StatusCode::FORBIDDEN, plain(message))
            }
            ApiError::NotFound => Refusal::new(StatusCode::NOT_FOUND, plain("not found")),
            ApiError::MethodNotAllowed => {
                Refusal::new(StatusCode::METHOD_NOT_ALLOWED, plain("method not allowed"))
            }
            ApiError::RateLimited { plan, allowance, retry_after_s } => {
                let body = json!({
                    "error": "rate limit exceeded",
                    "plan": plan.as_str(),
                    "limit": allowance.limit,
                    "resetAt": allowance.resets_at.timestamp_millis(),
                });
                let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, body)
                    .with(RETRY_AFTER, retry_after_s);
                rate_limit_headers(&allowance, &mut refusal.headers);
                refusal
            }
            ApiError::Conflict(message) => Refusal::new(StatusCode::CONFLICT, plain(&message)),
            ApiError::TooManyTests { limit, resets_at, retry_after_s, message } => {
                let body = json!({
                    "error": message,
                    "code": "TEST_LIMIT",
                    "limit": limit,
                    "resetAt": resets_at.timestamp_millis(),
                });
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, body).with(RETRY_AFTER, retry_after_s)
            }
            ApiError::Internal(err) => {
                tracing::error!(error = format!("{err:#}"), "request failed");
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, plain("internal error"))
            }
        }
    }
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
