//! Reasons to refuse a request. `edge/error` maps them to statuses and bodies.

use std::borrow::Cow;
use std::fmt::Display;

use crate::accounts::{Allowance, AppendError, Field, WriteError};
use crate::index::QueryError;
use crate::query::error::{BadParameter, ParameterCode};
use crate::vocab::budget::Spent;
use crate::vocab::plan::Plan;
use crate::vocab::scope::Scope;
use crate::vocab::time::UnixMs;
use crate::vocab::turns::NoTurn;

/// Reasons to refuse a request.
#[derive(Debug)]
pub enum ApiError {
    /// No key and no valid session.
    Unauthenticated,
    /// A key that is not valid.
    InvalidKey,
    /// A key that expired at this time.
    ExpiredKey { at: UnixMs },
    /// The plan does not include the JSON API.
    JsonPlanRequired(Plan),
    /// The plan does not include CSV exports.
    ExportPlanRequired(Plan),
    /// The key lacks this scope.
    ScopeRequired(Scope),
    /// A parameter, header or member of the body (`filter.tlds[1]`) is missing, malformed or
    /// out of range.
    BadParameter { name: Cow<'static, str>, what: String, code: ParameterCode },
    /// A parameter that the operation does not have. `nearest` is the most similar one it has.
    UnknownParameter { name: String, nearest: Option<&'static str> },
    /// The body is larger than `bytes_max`.
    BodyTooLarge { bytes_max: usize },
    /// The `Content-Type` is not JSON.
    UnsupportedMediaType,
    /// The browser sent it from a page of another site.
    CrossSite,
    /// No such resource.
    NotFound,
    /// The `ETag` of the resource is not in `If-Match`.
    PreconditionFailed,
    /// The requested events are no longer kept.
    ChangesGone { oldest: u64 },
    /// The path exists, but not with this method.
    MethodNotAllowed,
    /// The account already runs as many exports as its plan allows.
    TooManyExports { plan: Plan, limit: u32 },
    /// The account already has the maximum number of long polls and event streams.
    TooManyStreams { limit: u32 },
    /// The day's allowance is used up.
    RateLimited { plan: Plan, allowance: Allowance, retry_after_s: i64 },
    /// A refused write. `From` maps errors with their own variant to that variant.
    Write(WriteError),
    /// The query exceeded its time budget, and would do so again.
    QueryTimeout,
    /// Too much work of the account, or of all visitors, is already in progress.
    NoTurn { no_turn: NoTurn, is_visitor: bool },
    /// The client closed the connection before the response was ready.
    ClientClosed,
    /// Load shedding: every slot of the request's class is taken, or a byte budget is used up.
    Shed { retry_after_s: u32 },
    /// Too many requests without a valid key or session from the client's network.
    TooManyVisits { per_minute: u32, retry_after_s: u64 },
    /// A feed was read too often.
    TooManyFeedRequests { retry_after_s: u64 },
    /// The maximum number of feeds of the account is already being built.
    TooManyFeeds { limit: u32 },
    /// The `Host` header is missing, repeated or malformed.
    InvalidHost,
    /// The pages have another host.
    Misdirected { host: String },
    /// The request body did not arrive in time.
    SlowBody,
    /// The request exceeded its deadline.
    RequestTimeout,
    /// This node has not yet applied the log up to the position that the request sends.
    NodeBehind,
    /// This node has not read the other nodes' writes since its start, so it cannot know that a credential is
    /// invalid.
    Unread,
    /// A bug or a machine failure.
    Internal(anyhow::Error),
}

impl From<BadParameter> for ApiError {
    fn from(BadParameter { name, what, code }: BadParameter) -> ApiError {
        ApiError::BadParameter { name, what, code }
    }
}

impl ApiError {
    /// An invalid parameter. `what` completes the sentence that starts with its name and a colon.
    pub fn parameter(name: impl Into<Cow<'static, str>>, what: impl Display) -> ApiError {
        ApiError::coded(ParameterCode::InvalidValue, name, what)
    }

    /// [`ApiError::parameter`] with a more specific code.
    pub fn coded(
        code: ParameterCode,
        name: impl Into<Cow<'static, str>>,
        what: impl Display,
    ) -> ApiError {
        ApiError::BadParameter { name: name.into(), what: what.to_string(), code }
    }

    /// A parameter or member given more than once.
    pub fn repeated(name: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::coded(ParameterCode::Repeated, name, "is given more than once")
    }
}

/// Returns a required member of a request.
///
/// # Errors
/// It is absent.
pub fn required<T>(member: Option<T>, name: &'static str) -> Result<T, ApiError> {
    member.ok_or_else(|| ApiError::parameter(name, "is required"))
}

impl From<WriteError> for ApiError {
    fn from(err: WriteError) -> ApiError {
        match err {
            WriteError::NotFound => ApiError::NotFound,
            WriteError::Invalid { field, what } => ApiError::parameter(member(field), what),
            WriteError::Journal(AppendError::TooLong { .. })
            | WriteError::Random(_)
            | WriteError::Password(_) => ApiError::Internal(err.into()),
            err => ApiError::Write(err),
        }
    }
}

/// The name of a field in request bodies.
fn member(field: Field) -> Cow<'static, str> {
    Cow::Borrowed(match field {
        Field::Registrar => "registrar",
        Field::ResalePrice => "resalePriceUsd",
        Field::SoldAt => "soldAt",
        Field::UserNotes => "userNotes",
        Field::Venue => "venue",
        Field::Note => "note",
        Field::Tags => "tags",
        Field::AlertRule => "alertRuleId",
        Field::RuleName | Field::SearchName | Field::KeyName => "name",
        Field::KeyDays => "days",
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
