//! Errors as HTTP responses: the only module that maps errors to a status and a body. Internal errors
//! are logged in full, and the client sees only "internal error".

use std::time::Duration;

use axum::Json;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::{AppendError, WriteError};
use crate::edge::rate_limit::rate_limit_headers;
use crate::service::error::ApiError;
use crate::vocab::plan::Plan;
use crate::vocab::turns::NoTurn;

/// `Retry-After` of an export refused because others of its account are running; most take less.
const EXPORT_RETRY_AFTER_S: u32 = 5;
/// `Retry-After` of a refused long poll or stream; a long poll ends within half a minute.
const STREAM_RETRY_AFTER_S: u32 = 30;

/// Body of every error response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Error, example = json!({
    "error": "min_dqs: must be an integer from 0 to 100",
    "code": "invalid_value",
    "parameter": "min_dqs",
}))]
pub struct ErrorResponse {
    /// Human-readable message. It starts with the parameter or body member at fault:
    /// `channels[0].url: …`.
    error: String,
    /// Machine-readable reason: `invalid_value`, `not_found`, `PLAN_LIMIT`. New codes may be added.
    code: &'static str,
    /// The parameter or the body member at fault: `min_dqs`, `channels[0].url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    parameter: Option<String>,
    /// The limit that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limit: Option<u32>,
    /// The caller's plan, for errors about plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    plan: Option<&'static str>,
    /// The oldest event of the change log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    oldest: Option<u64>,
    /// When the limit resets, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reset_at: Option<i64>,
}

impl ErrorResponse {
    fn new(code: &'static str, error: impl Into<String>) -> ErrorResponse {
        ErrorResponse { code, error: error.into(), ..ErrorResponse::default() }
    }
}

/// A write that the journal refused. A full queue drains within a second; some other causes need an
/// operator.
fn unavailable(err: &AppendError) -> Refusal {
    let (code, message, retry_after_s) = match err {
        AppendError::Busy => ("busy", "too many writes at once; try again", 1),
        AppendError::DiskFull => {
            ("disk_full", "the disk is full; writes are refused until there is room", 10)
        }
        AppendError::Superseded => {
            ("superseded", "another request changed the same data on another node; try again", 1)
        }
        AppendError::Unknown => (
            "outcome_unknown",
            "it is not known whether this was written; read it again, or repeat the request with its Idempotency-Key",
            5,
        ),
        AppendError::Unreachable => {
            ("writes_unavailable", "the shared log cannot be reached; reads still work", 5)
        }
        _ => ("writes_unavailable", "writes are unavailable at the moment; reads still work", 30),
    };
    Refusal::retry_later(code, message, retry_after_s)
}

/// A query that got no turn among those of its account, or among those of all visitors.
fn no_turn_left(no_turn: NoTurn, is_visitor: bool) -> Refusal {
    let (others, advice) = match is_visitor {
        true => ("those of other visitors", "try again later, or log in"),
        false => ("other queries of your account", "send fewer at once"),
    };
    let (wait, message) = match no_turn {
        NoTurn::Refused { expected } => {
            let wait = seconds(expected);
            (wait, format!("the query would wait about {wait} s for {others}; {advice}"))
        }
        NoTurn::TimedOut { waited } => {
            let wait = seconds(waited);
            (wait, format!("the query waited {wait} s for {others}; {advice}"))
        }
    };
    Refusal::retry_later("too_many_queries", &message, wait)
}

/// Returns whole seconds, rounded up, from 1 to 60.
fn seconds(time: Duration) -> u32 {
    time.as_secs_f64().ceil().clamp(1.0, 60.0) as u32
}

/// An [`ApiError`] as HTTP, shared by the API and the pages. Handlers of the API return it.
pub struct Refusal {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Boxed to keep `Result`s small.
    pub body: Box<ErrorResponse>,
}

impl Refusal {
    fn new(status: StatusCode, body: ErrorResponse) -> Refusal {
        Refusal { status, headers: HeaderMap::new(), body: Box::new(body) }
    }

    fn plain(status: StatusCode, code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal::new(status, ErrorResponse::new(code, message))
    }

    /// A 400 about a parameter.
    fn bad_parameter(code: &'static str, parameter: String, message: String) -> Refusal {
        let body = ErrorResponse::new(code, message);
        Refusal::new(StatusCode::BAD_REQUEST, ErrorResponse { parameter: Some(parameter), ..body })
    }

    fn unauthenticated(code: &'static str, challenge: &'static str) -> Refusal {
        Refusal::plain(StatusCode::UNAUTHORIZED, code, "authentication required")
            .with(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    fn internal() -> Refusal {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Refusal::plain(status, "internal_error", "internal error")
    }

    fn plan_required(message: &str, plan: Plan) -> Refusal {
        let body = ErrorResponse::new("PLAN_REQUIRED", message);
        let plan = Some(plan.as_str());
        Refusal::new(StatusCode::FORBIDDEN, ErrorResponse { plan, ..body })
    }

    fn retry_later(code: &'static str, message: &str, retry_after_s: u32) -> Refusal {
        Refusal::plain(StatusCode::SERVICE_UNAVAILABLE, code, message)
            .with(RETRY_AFTER, retry_after_s)
    }

    /// A refused write. The error's text is the message, unless another one helps the client more.
    fn of_write(err: &WriteError) -> Refusal {
        let body = |code| ErrorResponse::new(code, err.to_string());
        match *err {
            WriteError::PlanLimit { plan, limit, .. } => {
                let plan = Some(plan.as_str());
                let body = ErrorResponse { plan, limit, ..body("PLAN_LIMIT") };
                Refusal::new(StatusCode::FORBIDDEN, body)
            }
            WriteError::TooMany { limit, .. } => {
                let body = ErrorResponse { limit: Some(limit), ..body("PLAN_LIMIT") };
                Refusal::new(StatusCode::FORBIDDEN, body)
            }
            WriteError::TooManyTests { limit, resets_at, retry_after_s } => {
                let (limit, reset_at) = (Some(limit), Some(resets_at.timestamp_millis()));
                let body = ErrorResponse { limit, reset_at, ..body("TEST_LIMIT") };
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, body).with(RETRY_AFTER, retry_after_s)
            }
            WriteError::IdempotencyConflict => Refusal::plain(
                StatusCode::CONFLICT,
                "idempotency_conflict",
                "Idempotency-Key: was used with another request in the last 24 h",
            ),
            WriteError::TooManyWrites { plan, limit, retry_after_s } => {
                let (plan, limit) = (Some(plan.as_str()), Some(limit));
                let body = ErrorResponse { plan, limit, ..body("WRITE_LIMIT") };
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, body).with(RETRY_AFTER, retry_after_s)
            }
            WriteError::ServerFull => Refusal::new(StatusCode::FORBIDDEN, body("PLAN_LIMIT")),
            WriteError::Conflict(_) => Refusal::new(StatusCode::CONFLICT, body("conflict")),
            WriteError::Overloaded => Refusal::retry_later(
                "overloaded",
                "too many log-ins at the moment; try again in a few seconds",
                2,
            ),
            WriteError::Journal(ref err) => {
                tracing::warn!(error = %err, "write refused");
                unavailable(err)
            }
            // Unexpected here: [`ApiError`] has its own variants for these.
            WriteError::NotFound
            | WriteError::Invalid { .. }
            | WriteError::Random(_)
            | WriteError::Password(_) => {
                tracing::error!(error = %err, "write failed");
                Refusal::internal()
            }
        }
    }

    fn with(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Refusal {
        self.headers.insert(name, value.into());
        self
    }

    /// Closes the connection, because the rest of the request body stays unread.
    fn closing(self) -> Refusal {
        self.with(CONNECTION, HeaderValue::from_static("close"))
    }

    /// The human-readable message.
    pub fn message(&self) -> &str {
        &self.body.error
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, self.headers, Json(self.body)).into_response()
    }
}

impl<E: Into<ApiError>> From<E> for Refusal {
    fn from(err: E) -> Refusal {
        match err.into() {
            ApiError::Unauthenticated => Refusal::unauthenticated("unauthenticated", "Bearer"),
            // Only a request that carried a token gets an error code (RFC 6750 §3.1).
            ApiError::InvalidKey => {
                Refusal::unauthenticated("invalid_key", "Bearer error=\"invalid_token\"")
            }
            ApiError::ExpiredKey { at } => {
                let challenge =
                    "Bearer error=\"invalid_token\", error_description=\"The key expired\"";
                let message =
                    format!("this key expired at {at}; create a new one on the account page");
                Refusal::plain(StatusCode::UNAUTHORIZED, "expired_key", message)
                    .with(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
            }
            ApiError::JsonPlanRequired(plan) => {
                Refusal::plan_required("JSON API access requires the Pro plan or above", plan)
            }
            ApiError::ExportPlanRequired(plan) => {
                Refusal::plan_required("CSV export requires the Core plan or above", plan)
            }
            // RFC 6750 §3.1.
            ApiError::ScopeRequired(scope) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
                let message = format!(
                    "this key has no scope \"{scope}\"; create a key that has it on the account page"
                );
                Refusal::plain(StatusCode::FORBIDDEN, "insufficient_scope", message).with(
                    WWW_AUTHENTICATE,
                    HeaderValue::from_str(&challenge).expect("scopes are words"),
                )
            }
            ApiError::BadParameter { name, what, code } => {
                let message = format!("{name}: {what}");
                Refusal::bad_parameter(code.as_str(), name.into_owned(), message)
            }
            ApiError::UnknownParameter { name, nearest } => {
                let mut message = format!("unknown parameter \"{name}\"");
                if let Some(nearest) = nearest {
                    message += &format!("; did you mean \"{nearest}\"?");
                }
                Refusal::bad_parameter("unknown_parameter", name, message)
            }
            ApiError::BodyTooLarge { bytes_max } => {
                let message = format!("body: must have at most {bytes_max} bytes");
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                Refusal::plain(status, "body_too_large", message).closing()
            }
            ApiError::UnsupportedMediaType => Refusal::plain(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "Content-Type: must be application/json, without an encoding",
            ),
            ApiError::Write(err) => Refusal::of_write(&err),
            // No `Retry-After`, because a retry would take just as long.
            ApiError::QueryTimeout => Refusal::plain(
                StatusCode::UNPROCESSABLE_ENTITY,
                "query_timeout",
                "the query exceeded its time budget; narrow the filters",
            ),
            ApiError::NoTurn { no_turn, is_visitor } => no_turn_left(no_turn, is_visitor),
            ApiError::ClientClosed => Refusal::plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "client_closed",
                "the client closed the connection",
            ),
            ApiError::Shed { retry_after_s } => Refusal::retry_later(
                "overloaded",
                "too many requests at the moment; try again in a few seconds",
                retry_after_s,
            ),
            ApiError::TooManyVisits { per_minute, retry_after_s } => Refusal::plain(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_visits",
                format!(
                    "a network may send {per_minute} requests a minute without an API key or a \
                     log-in; wait, log in or use a key"
                ),
            )
            .with(RETRY_AFTER, retry_after_s),
            ApiError::TooManyFeedRequests { retry_after_s } => Refusal::plain(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_feed_requests",
                "this feed was read too often; once in a quarter of an hour is enough",
            )
            .with(RETRY_AFTER, retry_after_s),
            ApiError::TooManyFeeds { limit } => Refusal::plain(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_feed_requests",
                format!("{limit} feeds of this account are being read; read one after the other"),
            )
            .with(RETRY_AFTER, 1),
            ApiError::InvalidHost => Refusal::plain(
                StatusCode::BAD_REQUEST,
                "invalid_host",
                "Host: must be given once, as a host name or address with an optional port",
            ),
            ApiError::Misdirected { host } => Refusal::plain(
                StatusCode::MISDIRECTED_REQUEST,
                "misdirected",
                format!("Host: the pages of this server are at {host}"),
            ),
            ApiError::SlowBody => Refusal::plain(
                StatusCode::REQUEST_TIMEOUT,
                "body_timeout",
                "body: did not arrive in time",
            )
            .closing(),
            ApiError::RequestTimeout => Refusal::retry_later(
                "request_timeout",
                "the request exceeded its deadline; try again later",
                10,
            ),
            ApiError::NodeBehind => Refusal::retry_later(
                "node_behind",
                "this node has not read yet what you wrote on another one; try again",
                1,
            ),
            ApiError::Unread => Refusal::retry_later(
                "node_behind",
                "this node has not read yet what the other nodes wrote, so it may not know this key; try again, or another \
                 node",
                5,
            ),
            ApiError::CrossSite => Refusal::plain(
                StatusCode::FORBIDDEN,
                "cross_site",
                "this request came from another site; nothing was changed",
            ),
            ApiError::NotFound => Refusal::plain(StatusCode::NOT_FOUND, "not_found", "not found"),
            ApiError::PreconditionFailed => Refusal::plain(
                StatusCode::PRECONDITION_FAILED,
                "precondition_failed",
                "If-Match: is not the current ETag; read the resource again, or send no If-Match",
            ),
            ApiError::ChangesGone { oldest } => {
                let message = format!(
                    "since: events before {oldest} are no longer kept; read the list anew, then go on \
                     with since={}",
                    oldest - 1
                );
                let body = ErrorResponse::new("changes_gone", message);
                Refusal::new(
                    StatusCode::GONE,
                    ErrorResponse {
                        parameter: Some("since".to_owned()),
                        oldest: Some(oldest),
                        ..body
                    },
                )
            }
            ApiError::MethodNotAllowed => Refusal::plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "method not allowed",
            ),
            ApiError::TooManyExports { plan, limit } => {
                let message = format!(
                    "your plan allows {limit} exports at once; wait until one of them ends"
                );
                let body = ErrorResponse {
                    plan: Some(plan.as_str()),
                    limit: Some(limit),
                    ..ErrorResponse::new("EXPORTS_RUNNING", message)
                };
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, body)
                    .with(RETRY_AFTER, EXPORT_RETRY_AFTER_S)
            }
            ApiError::TooManyStreams { limit } => {
                let message = format!(
                    "an account may have {limit} long polls and streams at once; close one, or read pages \
                     without `wait`"
                );
                let body = ErrorResponse {
                    limit: Some(limit),
                    ..ErrorResponse::new("STREAMS_OPEN", message)
                };
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, body)
                    .with(RETRY_AFTER, STREAM_RETRY_AFTER_S)
            }
            ApiError::RateLimited { plan, allowance, retry_after_s } => {
                let body = ErrorResponse {
                    plan: Some(plan.as_str()),
                    limit: Some(allowance.limit),
                    reset_at: Some(allowance.resets_at.timestamp_millis()),
                    ..ErrorResponse::new("rate_limited", "rate limit exceeded")
                };
                let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, body)
                    .with(RETRY_AFTER, retry_after_s);
                rate_limit_headers(&allowance, &mut refusal.headers);
                refusal
            }
            ApiError::Internal(err) => {
                tracing::error!(error = format!("{err:#}"), "request failed");
                Refusal::internal()
            }
        }
    }
}

/// Responds to a method that the path does not support; the router adds `Allow`.
pub async fn method_not_allowed() -> Refusal {
    ApiError::MethodNotAllowed.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::budget::Spent;

    #[test]
    fn a_refused_write_has_retry_after() {
        for (err, retry_after_s) in [
            (AppendError::Busy, "1"),
            (AppendError::DiskFull, "10"),
            (AppendError::Poisoned { reason: "EIO".into() }, "30"),
            (AppendError::Fenced, "30"),
            (AppendError::Closed, "30"),
        ] {
            let text = err.to_string();
            let response = Refusal::from(WriteError::Journal(err)).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{text}");
            assert_eq!(response.headers()[RETRY_AFTER], retry_after_s, "{text}");
        }
        let response = Refusal::from(WriteError::Journal(AppendError::TooLong { len: 1 }));
        assert_eq!(response.into_response().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn a_query_without_a_turn_is_told_how_long_it_would_wait() {
        let told = |no_turn, is_visitor| {
            let refusal = Refusal::from(ApiError::NoTurn { no_turn, is_visitor });
            assert_eq!(refusal.status, StatusCode::SERVICE_UNAVAILABLE);
            let wait = refusal.headers[RETRY_AFTER].to_str().expect("a number").to_owned();
            (refusal.message().to_owned(), wait)
        };
        let expected = |message: &str, wait: &str| (message.to_owned(), wait.to_owned());
        let seconds = Duration::from_secs_f64;
        assert_eq!(
            told(NoTurn::Refused { expected: seconds(11.2) }, false),
            expected(
                "the query would wait about 12 s for other queries of your account; send fewer at once",
                "12",
            )
        );
        assert_eq!(
            told(NoTurn::TimedOut { waited: seconds(10.0) }, true),
            expected(
                "the query waited 10 s for those of other visitors; try again later, or log in",
                "10",
            )
        );
        assert_eq!(told(NoTurn::Refused { expected: Duration::ZERO }, false).1, "1");
    }

    #[test]
    fn a_query_beyond_its_own_time_is_not_told_to_try_again() {
        let refusal = Refusal::from(Spent::Time);
        assert_eq!(refusal.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(!refusal.headers.contains_key(RETRY_AFTER));
    }

    #[test]
    fn a_limit_common_to_all_plans_names_no_plan() {
        let refusal = Refusal::from(WriteError::TooMany { what: "claims", limit: 100_000 });
        assert_eq!(
            serde_json::to_value(refusal.body).expect("JSON"),
            serde_json::json!({
                "error": "an account may have at most 100000 claims",
                "code": "PLAN_LIMIT",
                "limit": 100_000,
            })
        );
    }
}
