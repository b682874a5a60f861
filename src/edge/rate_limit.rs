//! The rate-limit headers.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::accounts::{Allowance, MinuteLeft};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The same in the form of the IETF draft `ratelimit-headers`: the remaining requests of a policy, and the policy.
const LEFT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Adds the IETF headers of a limit per minute to those of the day.
pub fn minute_headers(name: &str, left: &MinuteLeft, headers: &mut HeaderMap) {
    policy_headers(name, (left.remaining, left.limit, 60), headers);
}

/// Inserts the rate-limit headers of the day.
pub fn rate_limit_headers(allowance: &Allowance, headers: &mut HeaderMap) {
    for header in [LEFT, POLICY] {
        headers.remove(header);
    }
    policy_headers("day", (allowance.remaining, allowance.limit, 86_400), headers);
    headers.insert(LIMIT, HeaderValue::from(allowance.limit));
    headers.insert(REMAINING, HeaderValue::from(allowance.remaining));
    headers.insert(RESET, HeaderValue::from(allowance.resets_at.timestamp()));
}

/// Adds a policy to the IETF headers, which are lists: what remains of its limit in a window of seconds.
fn policy_headers(name: &str, (left, limit, window): (u32, u32, u32), headers: &mut HeaderMap) {
    let texts = [
        (LEFT, format!("\"{name}\";r={left}")),
        (POLICY, format!("\"{name}\";q={limit};w={window}")),
    ];
    for (header, text) in texts {
        let before = headers.get(&header).and_then(|value| value.to_str().ok());
        let text = before.map(|before| format!("{before}, {text}")).unwrap_or(text);
        headers.insert(header, HeaderValue::try_from(text).expect("visible ASCII"));
    }
}
