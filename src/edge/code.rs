//! All error codes in one table, from which statuses, `data/docs/api.md` and the OpenAPI document are
//! derived.

use crate::query::error::ParameterCode;

/// Whether the same request may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// No: the request, or the state of its resource, must change first.
    No,
    /// Yes, after the time in `Retry-After`.
    Later,
}

macro_rules! codes {
    ($($code:ident $name:literal $status:literal $retry:ident $when:literal)*) => {
        /// Machine-readable reason of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($code),* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// The `code` of the body.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$code => $name),* }
            }

            pub const fn status(self) -> u16 {
                match self { $(Code::$code => $status),* }
            }

            pub const fn retry(self) -> Retry {
                match self { $(Code::$code => Retry::$retry),* }
            }

            /// Condition under which the error occurs, for the documentation.
            pub const fn when(self) -> &'static str {
                match self { $(Code::$code => $when),* }
            }
        }
    };
}

codes! {
    InvalidValue         "invalid_value"          400 No    "a value is missing, does not parse or is out of range"
    UnknownParameter     "unknown_parameter"      400 No    "the endpoint has no such parameter; the sentence suggests the nearest name. With `Prefer: handling=lenient`, unknown parameters are ignored"
    RepeatedParameter    "repeated_parameter"     400 No    "a parameter or a member is given more than once"
    UnknownMember        "unknown_member"         400 No    "the body has a member that the endpoint does not know"
    CrossedRange         "crossed_range"          400 No    "a lower bound is above its upper bound"
    InvalidPattern       "invalid_pattern"        400 No    "a [pattern](queries.md) does not parse"
    InvalidRegex         "invalid_regex"          400 No    "a [regular expression](queries.md) does not parse"
    RegexTooLarge        "regex_too_large"        400 No    "the automaton of a regular expression is too large"
    InvalidCursor        "invalid_cursor"         400 No    "a text is not a cursor"
    CursorMismatch       "cursor_mismatch"        400 No    "a cursor belongs to another query or order"
    UnknownField         "unknown_field"          400 No    "`fields` or `columns` names a member that rows do not have"
    UnmappedColumns      "unmapped_columns"       400 No    "the columns of a file of facts are of no known export; [describe](facts.md#all-other-files) them once"
    UnknownFacet         "unknown_facet"          400 No    "`facets` names a facet that does not exist"
    InvalidHost          "invalid_host"           400 No    "the `Host` header is missing, repeated or malformed"
    Unauthenticated      "unauthenticated"        401 No    "there is no key"
    InvalidKey           "invalid_key"            401 No    "the key is not valid"
    ExpiredKey           "expired_key"            401 No    "the key has expired"
    PlanRequired         "PLAN_REQUIRED"          403 No    "the plan does not include the call; `plan` is your plan"
    InsufficientScope    "insufficient_scope"     403 No    "the key lacks the scope"
    PlanLimit            "PLAN_LIMIT"             403 No    "above the limit of the plan, of every plan or of the server; with `plan` and `limit` where known"
    CrossSite            "cross_site"             403 No    "the request came from a page of another site"
    NotFound             "not_found"              404 No    "unknown path, name or ID"
    MethodNotAllowed     "method_not_allowed"     405 No    "the path does not support the method; `Allow` lists those that it supports"
    BodyTimeout          "body_timeout"           408 No    "the request body did not arrive in time"
    IdempotencyConflict  "idempotency_conflict"   409 No    "the `Idempotency-Key` was used for another request"
    Conflict             "conflict"               409 No    "the object's state does not allow the call"
    ChangesGone          "changes_gone"           410 No    "events after `since` are no longer kept; with `oldest`"
    PreconditionFailed   "precondition_failed"    412 No    "the resource is not in the state that [`If-Match`](#preconditions) names"
    BodyTooLarge         "body_too_large"         413 No    "the body is over 64 KiB"
    UnsupportedMediaType "unsupported_media_type" 415 No    "the body is not `application/json`"
    RangeNotSatisfiable  "range_not_satisfiable"  416 No    "the `Range` is behind the end of the file; `Content-Range` has its length"
    Misdirected          "misdirected"            421 No    "the pages of this server are at another host"
    QueryTimeout         "query_timeout"          422 No    "the query exceeded its [time budget](queries.md); narrow the filters"
    RateLimited          "rate_limited"           429 Later "the day's allowance is used up; with `plan`, `limit` and `resetAt` (Unix milliseconds)"
    ExportsRunning       "exports_running"        429 Later "as many exports of the account run as its plan allows at once; with `plan` and `limit`"
    StreamsOpen          "streams_open"           429 Later "the account has 100 long polls and streams of [events](changes.md) open; with `limit`"
    TestLimit            "test_limit"             429 Later "the day's test messages are used up; with `limit` and `resetAt`"
    WriteLimit           "write_limit"            429 Later "more writes than the plan allows in a minute; with `plan` and `limit`"
    SuggestionLimit      "suggestion_limit"       429 Later "more [suggestions](#get-apiv1suggest) than the plan allows in a minute; with `plan` and `limit`"
    TooManyFeedRequests  "too_many_feed_requests" 429 Later "a feed is read too often, or too many feeds of the account at once"
    TooManyBacktests     "too_many_backtests"     429 Later "a [backtest](outcomes.md#backtest-of-a-rule) of the account is running, or it ran 30 in an hour; then with `limit`"
    TooManyVisits        "too_many_visits"        429 Later "too many requests without a valid key from your network"
    Internal             "internal_error"         500 No    "a bug or a failing machine; the log has the details"
    ClientClosed         "client_closed"          503 No    "the client closed the connection before the response was ready"
    Overloaded           "overloaded"             503 Later "the server sheds load; the request is not counted"
    TooManyQueries       "too_many_queries"       503 Later "too many queries of your account wait for their [turn](network.md#turns)"
    RequestTimeout       "request_timeout"        503 Later "the request took too long"
    Busy                 "busy"                   503 Later "too many writes at once"
    DiskFull             "disk_full"              503 Later "writes are impossible: the disk is full"
    WritesUnavailable    "writes_unavailable"     503 Later "writes are impossible; reads still work"
    Superseded           "superseded"             503 Later "another node of a [cluster](cluster.md) was first"
    NodeBehind           "node_behind"            503 Later "this node of a cluster has not read yet what another one wrote"
    OutcomeUnknown       "outcome_unknown"        503 Later "it is not known whether the write happened"
}

impl Code {
    /// Returns the code of an error about a parameter.
    pub fn of_parameter(code: ParameterCode) -> Code {
        let found = Code::ALL.iter().find(|known| known.as_str() == code.as_str());
        *found.expect("the table has the codes of parameters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_parameters_are_400() {
        for code in ParameterCode::ALL {
            assert_eq!(Code::of_parameter(code).status(), 400, "{code:?}");
        }
    }

    #[test]
    fn the_document_has_the_table() {
        let mut table =
            String::from("| status | `code` | retry | when |\n| --- | --- | --- | --- |\n");
        for code in Code::ALL {
            let retry = if code.retry() == Retry::Later { "later" } else { "no" };
            let (status, name, when) = (code.status(), code.as_str(), code.when());
            table += &format!("| {status} | `{name}` | {retry} | {when} |\n");
        }
        let document = include_str!("../../data/docs/api.md");
        assert!(document.contains(&table), "api.md, Errors:\n{table}");
    }
}
