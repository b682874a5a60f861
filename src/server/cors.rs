//! Pages of other sites that may use the JSON API: none unless an operator names them. Keys travel in
//! a header that the page sets, so nothing that a browser adds by itself is let through.

use std::str::FromStr;

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use url::Url;

/// Where pages of other sites may ask.
const PATHS: &str = "/api/";
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const HEADERS: &str = "authorization, content-type, idempotency-key, if-none-match, x-request-id";
/// What a script may read of an answer besides its body and what it may read always.
const EXPOSED: &str = "etag, idempotency-replayed, location, retry-after, x-index-generation, \
                       x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-request-id";
/// How long a browser need not ask again, in seconds: as long as any of them remembers.
const MAX_AGE: &str = "7200";

/// A site: `https://app.example`, with a port where it is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Origin, String> {
        let wrong = || format!("`{text}` is no origin such as https://app.example");
        let url = Url::parse(text).map_err(|_| wrong())?;
        // As browsers spell it: no path, no usual port, lower case.
        let is_origin = url.origin().ascii_serialization() == text;
        // A site, not a pattern of them.
        let known = matches!(url.scheme(), "http" | "https") && !text.contains('*');
        let value = HeaderValue::from_str(text).map_err(|_| wrong())?;
        if is_origin && known { Ok(Origin(value)) } else { Err(wrong()) }
    }
}

/// The sites that may.
pub(super) struct Cors {
    origins: Vec<Origin>,
}

/// A request from a page of another site, or of none.
pub(super) enum CorsRequest {
    /// Nothing to say about it.
    None,
    /// Of a site that may: `Some`.
    Actual(Option<HeaderValue>),
    /// Whether it may ask: answered here.
    Preflight(Box<Response<Body>>),
}

impl Cors {
    pub(super) fn new(origins: &[Origin]) -> Cors {
        Cors { origins: origins.to_vec() }
    }

    pub(super) fn look(&self, request: &Request<impl Sized>) -> CorsRequest {
        if self.origins.is_empty() || !request.uri().path().starts_with(PATHS) {
            return CorsRequest::None;
        }
        let allowed = self.allowed(request.headers());
        let asks = request.method() == Method::OPTIONS
            && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        match allowed {
            Some(origin) if asks => CorsRequest::Preflight(Box::new(preflight(origin))),
            allowed => CorsRequest::Actual(allowed),
        }
    }

    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.origins.iter().find(|allowed| allowed.0 == origin).map(|allowed| allowed.0.clone())
    }
}

fn preflight(origin: HeaderValue) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    mark(headers, Some(origin));
    answer
}

/// Writes on an answer who may read it.
pub(super) fn mark(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    // Also where it is refused: a cache must not give it to others.
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_spelt_as_browsers_spell_them() {
        for good in ["https://app.example", "http://localhost:3000", "https://a.example:8443"] {
            assert!(good.parse::<Origin>().is_ok(), "{good}");
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
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
