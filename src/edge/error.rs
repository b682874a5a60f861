//! Errors as HTTP responses: the only module that maps errors to a status and a body. Internal errors
//! are logged in full, and the client sees only "internal error".

use axum::Json;
use axum::http::header::{CONNECTION, CONTENT_RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::{AppendError, WriteError};
use crate::code::{Code, Retry};
use crate::rate_limit::rate_limit_headers;
use crate::service::error::{ApiError, wait_s};
use crate::vocab::plan::Plan;

/// `Retry-After` of an export refused because others of its account are running; most exports take
/// less.
const EXPORT_RETRY_AFTER_S: u32 = 5;
/// `Retry-After` of a refused long poll or stream; a long poll ends within half a minute.
const STREAM_RETRY_AFTER_S: u32 = 30;

/// Hint of a 404 about a name.
const UNKNOWN_NAME: &str = "the name is not in the data; POST /api/v1/appraise scores any name, POST /api/v1/check asks its registry";
const INVALID_TOKEN: &str = "Bearer error=\"invalid_token\"";
const EXPIRED_TOKEN: &str = "Bearer error=\"invalid_token\", error_description=\"The key expired\"";

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
    /// Advice on how to proceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hint: Option<&'static str>,
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

/// An [`ApiError`] as HTTP, shared by the API and the pages. Handlers of the API return it.
pub struct Refusal {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Boxed to keep `Result`s small.
    pub body: Box<ErrorResponse>,
}

impl Refusal {
    fn new(code: Code, error: String) -> Refusal {
        let status = StatusCode::from_u16(code.status()).expect("the table has statuses");
        let body = ErrorResponse { code: code.as_str(), error, ..ErrorResponse::default() };
        Refusal { status, headers: HeaderMap::new(), body: Box::new(body) }
    }

    /// Whether the server could not do the work, now or in time.
    pub fn is_unavailable(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Adds details to the body.
    fn with(mut self, add: impl FnOnce(&mut ErrorResponse)) -> Refusal {
        add(&mut self.body);
        self
    }

    fn parameter(self, name: impl Into<String>) -> Refusal {
        self.with(|body| body.parameter = Some(name.into()))
    }

    fn limit(self, limit: impl Into<Option<u32>>) -> Refusal {
        self.with(|body| body.limit = limit.into())
    }

    fn plan(self, plan: Plan) -> Refusal {
        self.with(|body| body.plan = Some(plan.as_str()))
    }

    fn resets_at(self, at: DateTime<Utc>) -> Refusal {
        self.with(|body| body.reset_at = Some(at.timestamp_millis()))
    }

    fn header(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Refusal {
        self.headers.insert(name, value.into());
        self
    }

    fn retry_after(self, seconds: impl Into<HeaderValue>) -> Refusal {
        self.header(RETRY_AFTER, seconds)
    }

    /// Only a request that carried a token gets an error code (RFC 6750 §3.1).
    fn challenge(self, challenge: &str) -> Refusal {
        self.header(WWW_AUTHENTICATE, HeaderValue::from_str(challenge).expect("plain words"))
    }

    /// Closes the connection, because the rest of the request body stays unread.
    fn closing(self) -> Refusal {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    /// The human-readable message.
    pub fn message(&self) -> &str {
        &self.body.error
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        debug_assert_eq!(
            Code::ALL.iter().any(|it| it.as_str() == self.body.code && it.retry() == Retry::Later),
            self.headers.contains_key(RETRY_AFTER),
            "{}",
            self.body.code
        );
        (self.status, self.headers, Json(self.body)).into_response()
    }
}

impl<E: Into<ApiError>> From<E> for Refusal {
    fn from(err: E) -> Refusal {
        let err = err.into();
        let message = err.to_string();
        let of = |code| Refusal::new(code, message);
        match err {
            ApiError::Unauthenticated => of(Code::Unauthenticated).challenge("Bearer"),
            ApiError::InvalidKey => of(Code::InvalidKey).challenge(INVALID_TOKEN),
            ApiError::ExpiredKey { .. } => of(Code::ExpiredKey).challenge(EXPIRED_TOKEN),
            ApiError::JsonPlanRequired(plan) | ApiError::ExportPlanRequired(plan) => {
                of(Code::PlanRequired).plan(plan)
            }
            ApiError::ScopeRequired(scope) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
                of(Code::InsufficientScope).challenge(&challenge)
            }
            ApiError::BadParameter { name, code, .. } => {
                of(Code::of_parameter(code)).parameter(name)
            }
            ApiError::UnknownParameter { name, .. } => of(Code::UnknownParameter).parameter(name),
            ApiError::BodyTooLarge { .. } => of(Code::BodyTooLarge).closing(),
            ApiError::UnsupportedMediaType => of(Code::UnsupportedMediaType),
            ApiError::CrossSite => of(Code::CrossSite),
            ApiError::NotFound => of(Code::NotFound),
            ApiError::UnknownName => of(Code::NotFound).with(|body| body.hint = Some(UNKNOWN_NAME)),
            ApiError::PreconditionFailed => of(Code::PreconditionFailed),
            ApiError::ChangesGone { oldest } => {
                of(Code::ChangesGone).parameter("since").with(|body| body.oldest = Some(oldest))
            }
            ApiError::MethodNotAllowed => of(Code::MethodNotAllowed),
            ApiError::Range { len } => {
                let of_file = HeaderValue::try_from(format!("bytes */{len}")).expect("digits");
                of(Code::RangeNotSatisfiable).header(CONTENT_RANGE, of_file)
            }
            ApiError::TooManyExports { plan, limit } => {
                of(Code::ExportsRunning).plan(plan).limit(limit).retry_after(EXPORT_RETRY_AFTER_S)
            }
            ApiError::TooManyStreams { limit } => {
                of(Code::StreamsOpen).limit(limit).retry_after(STREAM_RETRY_AFTER_S)
            }
            ApiError::RateLimited { plan, allowance, retry_after_s } => {
                let refusal = of(Code::RateLimited).plan(plan).limit(allowance.limit);
                let mut refusal = refusal.resets_at(allowance.resets_at).retry_after(retry_after_s);
                rate_limit_headers(&allowance, &mut refusal.headers);
                refusal
            }
            ApiError::TooManySuggestions { plan, limit, retry_after_s } => {
                of(Code::SuggestionLimit).plan(plan).limit(limit).retry_after(retry_after_s)
            }
            ApiError::Write(err) => of_write(&err, of),
            // No `Retry-After`, because a retry would take just as long.
            ApiError::QueryTimeout { .. } => of(Code::QueryTimeout),
            ApiError::NoTurn { no_turn, .. } => {
                of(Code::TooManyQueries).retry_after(wait_s(&no_turn))
            }
            ApiError::ClientClosed => of(Code::ClientClosed),
            ApiError::Shed { retry_after_s } => of(Code::Overloaded).retry_after(retry_after_s),
            ApiError::TooManyVisits { retry_after_s, .. } => {
                of(Code::TooManyVisits).retry_after(retry_after_s)
            }
            ApiError::TooManyFeedRequests { retry_after_s } => {
                of(Code::TooManyFeedRequests).retry_after(retry_after_s)
            }
            ApiError::TooManyFeeds { .. } => of(Code::TooManyFeedRequests).retry_after(1),
            ApiError::BacktestRunning => of(Code::TooManyBacktests).retry_after(1),
            ApiError::TooManyBacktests { per_hour, retry_after_s } => {
                of(Code::TooManyBacktests).limit(per_hour).retry_after(retry_after_s)
            }
            ApiError::InvalidHost => of(Code::InvalidHost),
            ApiError::Misdirected { .. } => of(Code::Misdirected),
            ApiError::SlowBody => of(Code::BodyTimeout).closing(),
            ApiError::RequestTimeout => of(Code::RequestTimeout).retry_after(10),
            ApiError::NodeBehind => of(Code::NodeBehind).retry_after(1),
            ApiError::Unread => of(Code::NodeBehind).retry_after(5),
            ApiError::Internal(err) => {
                tracing::error!(error = format!("{err:#}"), "request failed");
                of(Code::Internal)
            }
        }
    }
}

/// A refused write.
fn of_write(err: &WriteError, of: impl FnOnce(Code) -> Refusal) -> Refusal {
    match *err {
        WriteError::PlanLimit { plan, limit, .. } => of(Code::PlanLimit).plan(plan).limit(limit),
        WriteError::TooMany { limit, .. } => of(Code::PlanLimit).limit(limit),
        WriteError::ServerFull => of(Code::PlanLimit),
        WriteError::TooManyTests { limit, resets_at, retry_after_s } => {
            of(Code::TestLimit).limit(limit).resets_at(resets_at).retry_after(retry_after_s)
        }
        WriteError::TooManyWrites { plan, limit, retry_after_s } => {
            of(Code::WriteLimit).plan(plan).limit(limit).retry_after(retry_after_s)
        }
        WriteError::IdempotencyConflict => of(Code::IdempotencyConflict),
        WriteError::Conflict(_) => of(Code::Conflict),
        WriteError::Overloaded => of(Code::Overloaded).retry_after(2),
        WriteError::Journal(ref err) => {
            tracing::warn!(error = %err, "write refused");
            // A full queue drains within a second; other causes take longer or need an operator.
            let (code, retry_after_s) = match err {
                AppendError::Busy => (Code::Busy, 1),
                AppendError::DiskFull => (Code::DiskFull, 10),
                AppendError::Superseded => (Code::Superseded, 1),
                AppendError::Unknown => (Code::OutcomeUnknown, 5),
                AppendError::Unreachable => (Code::WritesUnavailable, 5),
                _ => (Code::WritesUnavailable, 30),
            };
            of(code).retry_after(retry_after_s)
        }
        // The following errors do not occur here: [`ApiError`] has its own variants for them.
        WriteError::NotFound
        | WriteError::Invalid { .. }
        | WriteError::Random(_)
        | WriteError::Password(_) => {
            tracing::error!(error = %err, "write failed");
            of(Code::Internal)
        }
    }
}

/// Responds to a method that the path does not support; the router adds `Allow`.
pub async fn method_not_allowed() -> Refusal {
    ApiError::MethodNotAllowed.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::vocab::budget::Spent;
    use crate::vocab::turns::NoTurn;

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
    fn a_query_without_a_turn_gets_its_expected_wait() {
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
    fn a_query_beyond_its_time_budget_gets_no_retry_after() {
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
