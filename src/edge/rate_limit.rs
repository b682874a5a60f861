//! The rate-limit headers.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::accounts::Allowance;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Inserts the three rate-limit headers.
pub fn rate_limit_headers(allowance: &Allowance, headers: &mut HeaderMap) {
    headers.insert(LIMIT, HeaderValue::from(allowance.limit));
    headers.insert(REMAINING, HeaderValue::from(allowance.remaining));
    headers.insert(RESET, HeaderValue::from(allowance.resets_at.timestamp()));
}
