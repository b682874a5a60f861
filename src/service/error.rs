//! Reasons to refuse a request. `edge/error` maps these reasons to statuses and bodies.

use std::borrow::Cow;
use std::fmt::Display;

use crate::accounts::{Allowance, AppendError, InvalidField, WriteError};
use crate::index::QueryError;
use crate::query::error::{BadParameter, ParameterCode};
use crate::vocab::budget::Spent;
use crate::vocab::plan::Plan;
use crate::vocab::scope::Scope;
use crate::vocab::time::UnixMs;
use crate::vocab::turns::NoTurn;

/// Reasons to refuse a request. The text of each is the message sent to the client.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No key and no valid session.
    #[error("authentication required")]
    Unauthenticated,
    /// A key that is not valid.
    #[error("authentication required")]
    InvalidKey,
    #[error("this key expired at {at}; create a new one on the account page")]
    ExpiredKey { at: UnixMs },
    #[error("JSON API access requires the Pro plan or above")]
    JsonPlanRequired(Plan),
    #[error("CSV export requires the Core plan or above")]
    ExportPlanRequired(Plan),
    #[error("this key has no scope \"{0}\"; create a key that has it on the account page")]
    ScopeRequired(Scope),
    /// A parameter, header or member of the body (`filter.tlds[1]`) is missing, malformed or
    /// out of range.
    #[error("{name}: {what}")]
    BadParameter { name: Cow<'static, str>, what: String, code: ParameterCode },
    /// A parameter that the operation does not have. `nearest` is the most similar one it has.
    #[error("unknown parameter \"{name}\"{}", nearest.map(|it| format!("; did you mean \"{it}\"?")).unwrap_or_default())]
    UnknownParameter { name: String, nearest: Option<&'static str> },
    #[error("body: must have at most {bytes_max} bytes")]
    BodyTooLarge { bytes_max: usize },
    #[error("Content-Type: must be application/json, without an encoding")]
    UnsupportedMediaType,
    /// The browser sent the request from a page of another site.
    #[error("this request came from another site; nothing was changed")]
    CrossSite,
    #[error("not found")]
    NotFound,
    /// A name that is not in the data.
    #[error("not found")]
    UnknownName,
    /// The resource is not in the state that `If-Match` names.
    #[error("If-Match: is not the current ETag; read the resource again, or send no If-Match")]
    PreconditionFailed,
    #[error(
        "since: events before {oldest} are no longer kept; read the list anew, then go on with since={}",
        oldest - 1
    )]
    ChangesGone { oldest: u64 },
    #[error("method not allowed")]
    MethodNotAllowed,
    /// The requested range is behind the end of the file.
    #[error("the file has {len} bytes; the range is behind its end")]
    Range { len: u64 },
    #[error("your plan allows {limit} exports at once; wait until one of them ends")]
    TooManyExports { plan: Plan, limit: u32 },
    #[error(
        "an account may have {limit} long polls and streams at once; close one, or read pages without `wait`"
    )]
    TooManyStreams { limit: u32 },
    /// The day's allowance is used up.
    #[error("rate limit exceeded")]
    RateLimited { plan: Plan, allowance: Allowance, retry_after_s: i64 },
    /// The minute's suggestions are used up.
    #[error("the plan has {limit} suggestions a minute; wait, and ask for fewer key presses")]
    TooManySuggestions { plan: Plan, limit: u32, retry_after_s: u64 },
    /// A refused write. `From` maps errors that have a variant of their own to that variant.
    #[error("{}", of_write(.0))]
    Write(WriteError),
    /// The query exceeded its time budget, and would do so again.
    #[error(
        "the query exceeded its time budget{}",
        advice.as_ref().map_or("; narrow the filters".to_owned(), |advice| format!(": {advice}"))
    )]
    QueryTimeout { advice: Option<String> },
    /// Too much work of the account, or of all visitors, is already in progress.
    #[error("{}", of_turn(no_turn, *is_visitor))]
    NoTurn { no_turn: NoTurn, is_visitor: bool },
    /// The client closed the connection before the response was ready.
    #[error("the client closed the connection")]
    ClientClosed,
    /// Load shedding: every slot of the request's class is taken, or a byte budget is used up.
    #[error("too many requests at the moment; try again in a few seconds")]
    Shed { retry_after_s: u32 },
    /// Too many requests without a valid key or session from the client's network.
    #[error(
        "a network may send {per_minute} requests a minute without an API key or a log-in; wait, log in or use a \
         key"
    )]
    TooManyVisits { per_minute: u32, retry_after_s: u64 },
    #[error("this feed was read too often; once in a quarter of an hour is enough")]
    TooManyFeedRequests { retry_after_s: u64 },
    #[error("{limit} feeds of this account are being read; read one after the other")]
    TooManyFeeds { limit: u32 },
    #[error("a backtest of this account is running; wait for its response")]
    BacktestRunning,
    #[error("an account can run {per_hour} backtests an hour; try again later")]
    TooManyBacktests { per_hour: u32, retry_after_s: u64 },
    #[error("Host: must be given once, as a host name or address with an optional port")]
    InvalidHost,
    #[error("Host: the pages of this server are at {host}")]
    Misdirected { host: String },
    #[error("body: did not arrive in time")]
    SlowBody,
    #[error("the request exceeded its deadline; try again later")]
    RequestTimeout,
    /// This node has not yet applied the log up to the position that the request sends.
    #[error("this node has not read yet what you wrote on another one; try again")]
    NodeBehind,
    /// This node has not read the other nodes' writes since its start.
    #[error(
        "this node has not read yet what the other nodes wrote, so it may not know this key; try again, or another \
         node"
    )]
    Unread,
    /// A bug or a machine failure.
    #[error("internal error")]
    Internal(anyhow::Error),
}

/// Returns the message of a refused write: the text of the error, unless another text is more
/// helpful to the client.
fn of_write(err: &WriteError) -> Cow<'static, str> {
    Cow::Borrowed(match err {
        WriteError::IdempotencyConflict => {
            "Idempotency-Key: was used with another request in the last 24 h"
        }
        WriteError::Overloaded => "too many log-ins at the moment; try again in a few seconds",
        WriteError::Journal(AppendError::Busy) => "too many writes at once; try again",
        WriteError::Journal(AppendError::DiskFull) => {
            "the disk is full; writes are refused until there is room"
        }
        WriteError::Journal(AppendError::Superseded) => {
            "another request changed the same data on another node; try again"
        }
        WriteError::Journal(AppendError::Unknown) => {
            "it is not known whether this was written; read it again, or repeat the request with its Idempotency-Key"
        }
        WriteError::Journal(AppendError::Unreachable) => {
            "the shared log cannot be reached; reads still work"
        }
        WriteError::Journal(_) => "writes are unavailable at the moment; reads still work",
        // The following errors do not occur here, because they have their own variants.
        WriteError::NotFound
        | WriteError::Invalid { .. }
        | WriteError::Random(_)
        | WriteError::Password(_) => "internal error",
        err => return err.to_string().into(),
    })
}

/// Returns the message for a query that got no turn among the queries of its account or of all
/// visitors.
fn of_turn(no_turn: &NoTurn, is_visitor: bool) -> String {
    let (others, advice) = match is_visitor {
        true => ("those of other visitors", "try again later, or log in"),
        false => ("other queries of your account", "send fewer at once"),
    };
    let wait = wait_s(no_turn);
    match no_turn {
        NoTurn::Refused { .. } => {
            format!("the query would wait about {wait} s for {others}; {advice}")
        }
        NoTurn::TimedOut { .. } => format!("the query waited {wait} s for {others}; {advice}"),
    }
}

/// Rounds the wait for a turn up to whole seconds, from 1 to 60.
pub fn wait_s(no_turn: &NoTurn) -> u32 {
    let (NoTurn::Refused { expected: wait } | NoTurn::TimedOut { waited: wait }) = no_turn;
    wait.as_secs_f64().ceil().clamp(1.0, 60.0) as u32
}

impl From<BadParameter> for ApiError {
    fn from(BadParameter { name, what, code }: BadParameter) -> ApiError {
        ApiError::BadParameter { name, what, code }
    }
}

impl ApiError {
    /// An invalid parameter. `what` is the text that follows its name and a colon.
    pub fn parameter(name: impl Into<Cow<'static, str>>, what: impl Display) -> ApiError {
        ApiError::coded(ParameterCode::InvalidValue, name, what)
    }

    /// The same as [`ApiError::parameter`], with a more specific code.
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

    /// Adds to the error of a query that exceeded its time budget what narrows it.
    #[must_use]
    pub fn narrowed(self, advice: impl FnOnce() -> Option<String>) -> ApiError {
        match self {
            ApiError::QueryTimeout { .. } => ApiError::QueryTimeout { advice: advice() },
            other => other,
        }
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
fn member(field: InvalidField) -> Cow<'static, str> {
    Cow::Borrowed(match field {
        InvalidField::Registrar => "registrar",
        InvalidField::ResalePrice => "resalePriceUsd",
        InvalidField::SoldAt => "soldAt",
        InvalidField::SoldVenue => "soldVenue",
        InvalidField::Commission => "commission",
        InvalidField::RenewalDecision => "renewalDecision",
        InvalidField::UserNotes => "userNotes",
        InvalidField::Venue => "venue",
        InvalidField::Note => "note",
        InvalidField::Tags => "tags",
        InvalidField::AlertRule => "alertRuleId",
        InvalidField::RuleName | InvalidField::SearchName | InvalidField::KeyName => "name",
        InvalidField::KeyDays => "days",
        InvalidField::Channels => "channels",
        InvalidField::Channel(at) => return format!("channels[{at}]").into(),
        InvalidField::ChannelChatId(at) => return format!("channels[{at}].chatId").into(),
        InvalidField::ChatId => "chatId",
    })
}

impl From<Spent> for ApiError {
    fn from(spent: Spent) -> ApiError {
        match spent {
            Spent::Time => ApiError::QueryTimeout { advice: None },
            Spent::Gone => ApiError::ClientClosed,
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(err: QueryError) -> ApiError {
        ApiError::Internal(err.into())
    }
}
