//! Which site a request comes from, as the browser tells it: `Sec-Fetch-Site`, and `Origin` or
//! `Referer` of one that does not send it (OWASP, Cross-Site Request Forgery Prevention). A cookie
//! says who a browser belongs to, and these who made it ask.

use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN, REFERER};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a page of ours sent a request that changes something. One that tells nothing is refused:
/// every browser tells one of the two with a POST.
pub fn is_ours(headers: &HeaderMap) -> bool {
    match headers.get(SITE) {
        Some(site) => site == "same-origin",
        None => is_host(headers, ORIGIN),
    }
}

/// Whether a page of ours led to a download, or somebody who typed its address or used a bookmark.
pub fn is_ours_or_typed(headers: &HeaderMap) -> bool {
    match headers.get(SITE) {
        Some(site) => site == "same-origin" || site == "none",
        None if headers.contains_key(ORIGIN) => is_host(headers, ORIGIN),
        None => is_host(headers, REFERER),
    }
}

/// Whether the address in the header `name` is of the host that is asked.
fn is_host(headers: &HeaderMap, name: HeaderName) -> bool {
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
    fn only_our_own_pages_change_something() {
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
            assert_eq!(is_ours(&headers), changes, "{pairs:?}");
            assert_eq!(is_ours_or_typed(&headers), downloads, "{pairs:?}");
        }
    }
}
