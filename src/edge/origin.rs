//! CSRF protection for requests that carry a session cookie: determines the origin of a request from
//! `Sec-Fetch-Site`, or from `Origin` or `Referer` for browsers that do not send it (OWASP,
//! Cross-Site Request Forgery Prevention).

use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN, REFERER};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether one of our own pages sent a state-changing request. False if no such header is present,
/// because every browser sends one with a POST.
pub fn is_same_origin(headers: &HeaderMap) -> bool {
    match headers.get(SITE) {
        Some(site) => site == "same-origin",
        None => matches_host(headers, ORIGIN),
    }
}

/// Whether a download was started from one of our own pages, a typed URL or a bookmark.
pub fn is_same_origin_or_direct(headers: &HeaderMap) -> bool {
    match headers.get(SITE) {
        Some(site) => site == "same-origin" || site == "none",
        None if headers.contains_key(ORIGIN) => matches_host(headers, ORIGIN),
        None => matches_host(headers, REFERER),
    }
}

/// Whether a page of another site sent a request that carries an API key. Clients other than
/// browsers send none of these headers.
pub fn is_of_other_site(headers: &HeaderMap) -> bool {
    match headers.get(SITE) {
        Some(site) => site != "same-origin" && site != "none",
        None => headers.contains_key(ORIGIN) && !matches_host(headers, ORIGIN),
    }
}

/// Whether the URL in the header `name` has the host of the request.
fn matches_host(headers: &HeaderMap, name: HeaderName) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(address), Some(host)) = (text(name), text(HOST)) else { return false };
    let authority = address.split_once("://").map(|(_, rest)| rest.split('/').next());
    authority.flatten().is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "drops.example:8443".parse().expect("a value"));
        for (name, value) in pairs {
            headers.insert(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn only_our_own_pages_may_write() {
        for (pairs, changes, downloads) in [
            (vec![("sec-fetch-site", "same-origin")], true, true),
            (vec![("sec-fetch-site", "none")], false, true),
            (vec![("sec-fetch-site", "same-site")], false, false),
            (vec![("sec-fetch-site", "cross-site")], false, false),
            (vec![("sec-fetch-site", "")], false, false),
            (
                vec![("sec-fetch-site", "cross-site"), ("origin", "https://drops.example:8443")],
                false,
                false,
            ),
            (vec![("origin", "https://drops.example:8443")], true, true),
            (vec![("origin", "https://DROPS.example:8443")], true, true),
            (vec![("origin", "https://drops.example")], false, false),
            (vec![("origin", "https://drops.example:8443.evil.example")], false, false),
            (vec![("origin", "https://evil.example")], false, false),
            (vec![("origin", "null")], false, false),
            (vec![("origin", "null"), ("referer", "https://drops.example:8443/")], false, false),
            (vec![("referer", "https://drops.example:8443/watchlist?a=b")], false, true),
            (vec![("referer", "https://evil.example/drops.example:8443")], false, false),
            (vec![], false, false),
        ] {
            let headers = headers(&pairs);
            assert_eq!(is_same_origin(&headers), changes, "{pairs:?}");
            assert_eq!(is_same_origin_or_direct(&headers), downloads, "{pairs:?}");
        }
    }
}
