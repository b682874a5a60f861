//! Response compression with gzip or zstd, by `tower-http`. Bodies are compressed as they are sent, so
//! a large response needs no more memory than a small one.

use axum::Router;
use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use tower::Service;
use tower::util::MapResponse;
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tower_http::compression::predicate::Predicate;

use crate::edge::class::Class;
use crate::edge::etag;
use crate::server::body;

/// A smaller body fits one packet uncompressed.
const BYTES_MIN: u64 = 1024;
/// Prefixes of the media types that compress well.
const MEDIA_TYPES: [&str; 3] = ["application/json", "text/", "image/svg+xml"];
/// Weight with which the uncompressed response remains acceptable; for `identity;q=0`, `tower-http`
/// would return 406.
const IDENTITY: HeaderValue = HeaderValue::from_static("identity;q=0.001");

/// The router with response compression.
#[derive(Clone)]
pub(super) struct Encoder(Compression<Measured, Compressible>);

/// The router with a layer that stores the uncompressed length of large responses.
type Measured = MapResponse<Router, fn(Response<Body>) -> Response<Body>>;

impl Encoder {
    pub(super) fn new(router: Router) -> Encoder {
        // Rendering a page of 100 rows takes 1.4 ms. This level adds 0.4 ms and results in 22 kB;
        // the default level adds 3 ms and results in 13 kB.
        let quality = CompressionLevel::Fastest;
        let measured: Measured = MapResponse::new(router, body::remember_length);
        Encoder(Compression::new(measured).quality(quality).compress_when(Compressible))
    }

    /// Calls the router and compresses the response if the client accepts it.
    pub(super) async fn call(mut self, mut request: Request<Body>, class: Class) -> Response<Body> {
        set_accepted(request.headers_mut(), class);
        let Ok(mut response) = self.0.call(request).await;
        let headers = response.headers_mut();
        if let (Some(tag), Some(encoding)) = (headers.get(ETAG), headers.get(CONTENT_ENCODING))
            && let Ok(encoding) = encoding.to_str()
            && let Some(tag) = etag::encoded(tag, encoding)
        {
            headers.insert(ETAG, tag);
        }
        response.map(Body::new)
    }
}

/// Adjusts `Accept-Encoding`. A response to a form or a write is never compressed: it may repeat the
/// client's input beside a secret, and the compressed length would reveal the secret (BREACH).
fn set_accepted(headers: &mut HeaderMap, class: Class) {
    if !matches!(class, Class::Read | Class::Export) {
        headers.remove(ACCEPT_ENCODING);
        return;
    }
    let sent: Vec<HeaderValue> = headers.get_all(ACCEPT_ENCODING).iter().cloned().collect();
    if !sent.is_empty() {
        // Inserted first, because only the first weight given for an encoding counts.
        headers.insert(ACCEPT_ENCODING, IDENTITY);
        sent.into_iter().for_each(|line| _ = headers.append(ACCEPT_ENCODING, line));
    }
}

/// Selects the responses to compress for clients that accept compression. The selected responses
/// get `Vary: Accept-Encoding`, compressed or not.
#[derive(Clone, Copy)]
struct Compressible;

impl Predicate for Compressible {
    fn should_compress<B: hyper::body::Body>(&self, response: &Response<B>) -> bool {
        response.body().size_hint().exact().is_none_or(|bytes| bytes >= BYTES_MIN)
            && is_compressible(response.headers())
    }
}

fn is_compressible(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) else {
        return false;
    };
    // JSON with `no-store` contains a secret. A page contains a secret only in response to a POST,
    // which is never compressed.
    let has_secret = kind.starts_with("application/json")
        && headers.get(CACHE_CONTROL).is_some_and(|value| value == "no-store");
    !has_secret && MEDIA_TYPES.iter().any(|known| kind.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;

    /// Status and encoding of a compressible response.
    async fn call(accepted: &[&'static str], class: Class) -> (u16, Option<String>) {
        let text = || async { "x".repeat(2_000) };
        let encoder = Encoder::new(Router::new().route("/", get(text)));
        let mut request = Request::new(Body::empty());
        for line in accepted {
            request.headers_mut().append(ACCEPT_ENCODING, HeaderValue::from_static(line));
        }
        let response = encoder.call(request, class).await;
        assert_eq!(response.headers()["vary"], "accept-encoding");
        let encoding = response.headers().get(CONTENT_ENCODING);
        let encoding = encoding.map(|value| value.to_str().expect("ASCII").to_owned());
        (response.status().as_u16(), encoding)
    }

    #[tokio::test]
    async fn client_preference_selects_the_encoding() {
        for (sent, expected) in [
            (&["gzip"][..], Some("gzip")),
            (&["zstd"], Some("zstd")),
            (&["gzip, deflate, br, zstd"], Some("zstd")),
            (&["gzip", "zstd"], Some("zstd")),
            (&["gzip;q=1.0, zstd;q=0.5"], Some("gzip")),
            (&["GZIP;Q=0.1"], Some("gzip")),
            (&["*"], Some("zstd")),
            (&["zstd;q=0, *;q=0.3"], Some("gzip")),
            (&["gzip;q=0"], None),
            (&["*;q=0"], None),
            (&["identity;q=0"], None),
            (&["identity;q=0, *;q=0"], None),
            (&["br"], None),
            (&["gzip;q=many"], None),
            (&[""], None),
            (&[], None),
        ] {
            let expected = (200, expected.map(str::to_owned));
            assert_eq!(call(sent, Class::Read).await, expected, "{sent:?}");
        }
    }

    #[tokio::test]
    async fn responses_with_secrets_are_not_compressed() {
        assert_eq!(call(&["gzip"], Class::Export).await, (200, Some("gzip".to_owned())));
        assert_eq!(call(&["gzip"], Class::Write).await, (200, None));
        assert_eq!(call(&["gzip"], Class::LogIn).await, (200, None));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        assert!(is_compressible(&headers));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        assert!(!is_compressible(&headers));
    }
}
