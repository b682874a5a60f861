//! The rate-limit headers.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::accounts::{Allowance, MinuteLeft};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The same in the form of the IETF draft `ratelimit-headers`: the remaining requests of a policy, and the policy, whose
/// window is a day in seconds.
const LEFT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Inserts the IETF headers of the suggestions of a minute, in place of those of the day.
pub fn suggestion_headers(left: &MinuteLeft, headers: &mut HeaderMap) {
    let MinuteLeft { limit, remaining } = left;
    let texts = [
        (LEFT, format!("\"suggestions\";r={remaining}")),
        (POLICY, format!("\"suggestions\";q={limit};w=60")),
    ];
    for (name, text) in texts {
        headers.insert(name, HeaderValue::try_from(text).expect("visible ASCII"));
    }
}

/// Inserts the rate-limit headers.
pub fn rate_limit_headers(allowance: &Allowance, headers: &mut HeaderMap) {
    let Allowance { limit, remaining, .. } = allowance;
    let texts =
        [(LEFT, format!("\"day\";r={remaining}")), (POLICY, format!("\"day\";q={limit};w=86400"))];
    for (name, text) in texts {
        headers.insert(name, HeaderValue::try_from(text).expect("visible ASCII"));
    }
    headers.insert(LIMIT, HeaderValue::from(allowance.limit));
    headers.insert(REMAINING, HeaderValue::from(allowance.remaining));
    headers.insert(RESET, HeaderValue::from(allowance.resets_at.timestamp()));
}
