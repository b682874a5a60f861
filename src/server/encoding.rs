//! Answers that are compressed on their way, for clients that ask for it: streamed, so that a large one
//! takes no more memory than a small one.

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::Body as _;
use tower::Service;
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tower_http::compression::predicate::Predicate;

use crate::http::etag;
use crate::server::admission::Class;

/// Shorter answers fit a packet as they are.
const BYTES_MIN: u64 = 1024;
/// What compresses well, by how its type begins.
const KINDS: [&str; 3] = ["application/json", "text/", "image/svg+xml"];

/// A way to encode an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    Zstd,
}

impl Encoding {
    fn as_str(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Zstd => "zstd",
        }
    }

    /// How an answer to this request may be encoded: as its client likes best, and not at all where it
    /// asks for neither, or where the answer may hold a secret that was made for it, whose length
    /// would tell of it beside what a stranger makes the answer repeat (BREACH).
    pub(super) fn for_request(class: Class, headers: &HeaderMap) -> Option<Encoding> {
        let reads = matches!(class, Class::Read | Class::Export);
        if !reads || !headers.contains_key(ACCEPT_ENCODING) {
            return None;
        }
        let lines = headers.get_all(ACCEPT_ENCODING).iter();
        best(lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')))
    }
}

/// The best of what a client names (RFC 9110 §12.5.3); of two that it likes alike the faster.
fn best<'a>(items: impl Iterator<Item = &'a str>) -> Option<Encoding> {
    let (mut gzip, mut zstd, mut others) = (None, None, None);
    for item in items {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let weight = weight.map_or(Some(1.0), |text| text.parse::<f32>().ok()).unwrap_or(0.0);
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => gzip = Some(weight),
            "zstd" => zstd = Some(weight),
            "*" => others = Some(weight),
            _ => {}
        }
    }
    let weight = |named: Option<f32>| named.or(others).unwrap_or(0.0);
    let (gzip, zstd) = (weight(gzip), weight(zstd));
    if gzip <= 0.0 && zstd <= 0.0 {
        None
    } else if zstd >= gzip {
        Some(Encoding::Zstd)
    } else {
        Some(Encoding::Gzip)
    }
}

/// The router, with its answers encoded.
#[derive(Clone)]
pub(super) struct Encoder(Compression<Router, Worthwhile>);

impl Encoder {
    pub(super) fn new(router: Router) -> Encoder {
        // A page of a hundred rows takes 1.4 ms to make: this level adds 0.4 and leaves 22 kB, the
        // default one adds 3 and leaves 13.
        let quality = CompressionLevel::Fastest;
        Encoder(Compression::new(router).quality(quality).compress_when(Worthwhile))
    }

    /// The answer to a request, in `encoding` where that is worth it.
    pub(super) async fn ask(
        mut self,
        mut request: Request<Body>,
        encoding: Encoding,
    ) -> Response<Body> {
        // What was chosen, and nothing to choose from.
        let chosen = HeaderValue::from_static(encoding.as_str());
        request.headers_mut().insert(ACCEPT_ENCODING, chosen);
        let Ok(mut answer) = self.0.call(request).await;
        let is_encoded = answer.headers().contains_key(CONTENT_ENCODING);
        if is_encoded
            && let Some(tag) = answer.headers().get(ETAG)
            && let Some(tag) = etag::encoded(tag, encoding.as_str())
        {
            answer.headers_mut().insert(ETAG, tag);
        }
        answer.map(Body::new)
    }
}

/// Which answers are worth it.
#[derive(Clone, Copy)]
struct Worthwhile;

impl Predicate for Worthwhile {
    fn should_compress<B: hyper::body::Body>(&self, answer: &Response<B>) -> bool {
        answer.body().size_hint().exact().is_none_or(|bytes| bytes >= BYTES_MIN)
            && varies(answer.headers())
    }
}

/// Whether an answer could have come encoded: caches are told so whether it did or not.
fn varies(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) else {
        return false;
    };
    // JSON that is not to be stored holds a secret; pages are for their reader alone, and hold none
    // that was not asked for by a POST.
    let secret = kind.starts_with("application/json")
        && headers.get(CACHE_CONTROL).is_some_and(|it| it == "no-store");
    !secret && KINDS.iter().any(|known| kind.starts_with(known))
}

/// Says of an answer that came as it is that it could have come encoded.
pub(super) fn note_plain(answer: &mut Response<Body>) {
    let long = answer.body().size_hint().exact().is_none_or(|bytes| bytes >= BYTES_MIN);
    if long && varies(answer.headers()) {
        answer.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_it_likes_best() {
        for (sent, expected) in [
            ("gzip", Some(Encoding::Gzip)),
            ("zstd", Some(Encoding::Zstd)),
            ("gzip, deflate, br, zstd", Some(Encoding::Zstd)),
            ("gzip;q=1.0, zstd;q=0.5", Some(Encoding::Gzip)),
            ("GZIP;Q=0.1", Some(Encoding::Gzip)),
            ("*", Some(Encoding::Zstd)),
            ("zstd;q=0, *;q=0.3", Some(Encoding::Gzip)),
            ("gzip;q=0", None),
            ("*;q=0", None),
            ("identity;q=0", None),
            ("br", None),
            ("gzip;q=many", None),
            ("", None),
        ] {
            assert_eq!(best(sent.split(',')), expected, "{sent}");
        }
    }

    #[test]
    fn answers_with_secrets_are_not_compressed() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(Encoding::for_request(Class::Read, &headers), Some(Encoding::Gzip));
        assert_eq!(Encoding::for_request(Class::Write, &headers), None);
        assert_eq!(Encoding::for_request(Class::LogIn, &headers), None);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        assert!(varies(&headers));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        assert!(!varies(&headers));
    }
}
