//! Headers that control which caches may reuse a response. The server adds these headers to every
//! response, its own errors included, so that no handler can forget them (`data/docs/network.md`).

use axum::http::header::{CACHE_CONTROL, VARY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};

/// Inputs that determine the responses of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// The current state of this instance.
    Health,
    /// Only the URL, for the index of endpoints, documents and styles.
    Public,
    /// The API key.
    Key,
    /// The API key or the session.
    KeyOrSession,
    /// The session; errors also depend on whether the client accepts HTML.
    Session,
}

impl Caching {
    /// Completes the headers of a response. A `Cache-Control` set by the handler is kept.
    pub fn finish(self, status: StatusCode, headers: &mut HeaderMap) {
        if self == Caching::Health {
            // A load balancer must not act on a stale state.
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        // Only the client may cache a response, and it must revalidate it before every use.
        let private = HeaderValue::from_static("private, no-cache");
        headers.entry(CACHE_CONTROL).or_insert(private);
        headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
        match self {
            Caching::Health | Caching::Public => {}
            Caching::Key => vary(headers, "authorization"),
            Caching::KeyOrSession => {
                vary(headers, "authorization");
                vary(headers, "cookie");
            }
            Caching::Session => {
                vary(headers, "cookie");
                if status.is_client_error() || status.is_server_error() {
                    vary(headers, "accept");
                }
            }
        }
    }
}

/// Adds a name to `Vary` unless it is listed. All names go on one line, because some clients read
/// only the first.
pub fn vary(headers: &mut HeaderMap, name: &'static str) {
    let is_listed = |line: &HeaderValue| {
        let mut names = line.as_bytes().split(|&byte| byte == b',');
        names.any(|listed| listed.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    if headers.get_all(VARY).iter().any(is_listed) {
        return;
    }
    let mut lines = headers.get_all(VARY).iter();
    let value = match (lines.next(), lines.next()) {
        (None, _) => HeaderValue::from_static(name),
        // This is the case for nearly every API response, and it needs no allocation.
        (Some(line), None) if line == "accept-encoding" && name == "authorization" => {
            HeaderValue::from_static("accept-encoding, authorization")
        }
        _ => {
            let lines = headers.get_all(VARY).iter().map(HeaderValue::as_bytes);
            let all: Vec<_> = lines.chain([name.as_bytes()]).collect();
            HeaderValue::from_bytes(&all.join(&b", "[..])).expect("made of values")
        }
    };
    headers.insert(VARY, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_handlers_stay() {
        for (caching, sent, status, expected) in [
            (Caching::Key, vec![], 200, ("private, no-cache", "authorization")),
            (
                Caching::Key,
                vec![("vary", "accept-encoding"), ("cache-control", "no-store")],
                200,
                ("no-store", "accept-encoding, authorization"),
            ),
            (
                Caching::KeyOrSession,
                vec![("vary", "accept-encoding")],
                200,
                ("private, no-cache", "accept-encoding, authorization, cookie"),
            ),
            (
                Caching::Session,
                vec![("vary", "Cookie, X-Fragment"), ("cache-control", "no-store")],
                404,
                ("no-store", "Cookie, X-Fragment, accept"),
            ),
            (Caching::Health, vec![("cache-control", "public")], 503, ("no-store", "")),
            (Caching::Public, vec![], 200, ("private, no-cache", "")),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(name, HeaderValue::from_static(value));
            }
            caching.finish(StatusCode::from_u16(status).expect("a status"), &mut headers);
            let lines = headers.get_all(VARY).iter();
            let lines: Vec<_> = lines.map(|line| line.to_str().expect("ASCII")).collect();
            let control = headers[CACHE_CONTROL].to_str().expect("ASCII");
            assert_eq!((control, &*lines.join(", ")), expected, "{caching:?}");
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
    }
}
