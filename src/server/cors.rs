//! CORS for the JSON API. No site is allowed unless the operator names it, and credentials are never
//! allowed: a page sends its API key in a header that it sets itself.
//!
//! `tower-http`'s CORS layer responds to every OPTIONS request with 200. This module responds only
//! to preflights of allowed sites; all others reach the router, which rejects them.

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::edge::caching::vary;

/// Path prefix that other sites may call.
const PATHS: &str = "/api/";
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// All request headers of the API that need a CORS preflight.
const HEADERS: &str = "authorization, content-type, idempotency-key, if-match, if-none-match, if-range, \
                       last-event-id, prefer, range, x-log-position, x-request-id";
/// Response headers that scripts may read in addition to the safelisted ones.
const EXPOSED: &str = "accept-ranges, allow, content-disposition, content-range, etag, idempotency-replayed, link, location, ratelimit, \
                       ratelimit-policy, retry-after, www-authenticate, x-index-generation, x-log-position, x-ratelimit-limit, \
                       x-ratelimit-remaining, x-ratelimit-reset, x-request-id";
/// Time for which a browser may cache a preflight, in seconds; the maximum that any browser
/// supports.
const MAX_AGE: &str = "7200";

/// The origin of a site: `https://app.example`, with its port unless it is the default.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AllowedOrigin(HeaderValue);

impl TryFrom<String> for AllowedOrigin {
    type Error = String;

    fn try_from(text: String) -> Result<AllowedOrigin, String> {
        let invalid = || format!("`{text}` is not an origin such as https://app.example");
        let url = Url::parse(&text).map_err(|_| invalid())?;
        // The form that browsers send: lower case, without a path or the default port.
        let is_origin = url.origin().ascii_serialization() == text;
        let is_site = matches!(url.scheme(), "http" | "https") && !text.contains('*');
        let value = HeaderValue::from_str(&text).map_err(|_| invalid())?;
        if is_origin && is_site { Ok(AllowedOrigin(value)) } else { Err(invalid()) }
    }
}

/// The allowed sites.
pub(super) struct Cors {
    origins: Vec<AllowedOrigin>,
}

/// The role of a request in CORS.
pub(super) enum CorsRequest {
    /// CORS does not apply.
    None,
    /// A request to the API, with its origin if the origin is allowed.
    Actual(Option<HeaderValue>),
    /// A preflight of an allowed origin, with the response.
    Preflight(Box<Response<Body>>),
}

impl Cors {
    pub(super) fn new(origins: &[AllowedOrigin]) -> Cors {
        Cors { origins: origins.to_vec() }
    }

    pub(super) fn classify(&self, request: &Request<impl Sized>) -> CorsRequest {
        if self.origins.is_empty() || !request.uri().path().starts_with(PATHS) {
            return CorsRequest::None;
        }
        let headers = request.headers();
        let origin = headers.get(ORIGIN).filter(|sent| self.origins.iter().any(|it| it.0 == sent));
        let is_preflight = request.method() == Method::OPTIONS
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        match origin.cloned() {
            Some(origin) if is_preflight => CorsRequest::Preflight(Box::new(preflight(origin))),
            origin => CorsRequest::Actual(origin),
        }
    }
}

fn preflight(origin: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    add_headers(headers, Some(origin));
    response
}

/// Adds the CORS headers to a response.
pub(super) fn add_headers(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    // Needed even if the origin is not allowed: a cache must not reuse the response for another
    // origin.
    vary(headers, "origin");
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_must_be_spelled_as_browsers_send_them() {
        for good in ["https://app.example", "http://localhost:3000", "https://a.example:8443"] {
            assert!(AllowedOrigin::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "*",
            "null",
            "app.example",
            "https://app.example/",
            "https://App.example",
            "https://app.example:443",
            "https://*.example",
            "ftp://app.example",
            "https://a@app.example",
            "",
        ] {
            assert!(AllowedOrigin::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
