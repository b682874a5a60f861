//! The path prefix under which the server is reached, as in `public_url =
//! "https://example.com/drops"`.
//!
//! Routes, handlers and templates use paths without the prefix. The prefix is stripped from the path of each
//! request, unless a proxy has done so already, and added to the URLs in the headers and pages of responses.

use std::sync::Arc;

use aho_corasick::AhoCorasick;
use axum::body::Body;
use axum::http::header::{
    CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE, LINK, LOCATION, SET_COOKIE,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri};
use futures_util::FutureExt;
use http_body_util::BodyExt;

use crate::vocab::url::BaseUrl;

/// Starts of attributes that contain a URL path of this server, as `maud` writes them.
const ATTRIBUTES: [&str; 6] =
    [" href=\"/", " src=\"/", " action=\"/", " formaction=\"/", " data-href=\"/", " data-path=\"/"];

/// The path prefix, or none. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Mount(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    /// Starts with a slash and does not end with one.
    path: String,
    attributes: AhoCorasick,
}

impl Mount {
    /// Takes the prefix from the public URL; none if the server is at the root of its host.
    pub fn new(home: Option<&BaseUrl>) -> Mount {
        let path = home.map(BaseUrl::path).filter(|path| !path.is_empty());
        Mount(path.map(|path| {
            let attributes = AhoCorasick::new(ATTRIBUTES).expect("few short patterns");
            Arc::new(Inner { path: path.to_owned(), attributes })
        }))
    }

    /// Strips the prefix from the URI of a request. A path without the prefix came through a proxy
    /// that strips it.
    pub fn enter(&self, uri: &mut Uri) {
        let Some(inner) = &self.0 else { return };
        let Some(rest) = uri.path().strip_prefix(&inner.path) else { return };
        let slash = match rest.as_bytes().first() {
            None => "/",
            Some(b'/') => "",
            Some(_) => return,
        };
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let Ok(rest) = PathAndQuery::try_from(format!("{slash}{rest}{query}")) else { return };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(rest);
        if let Ok(entered) = Uri::from_parts(parts) {
            *uri = entered;
        }
    }

    /// Adds the prefix to the headers of a response: to redirects, and to the paths of cookies.
    pub fn head(&self, headers: &mut HeaderMap) {
        let Some(Inner { path, .. }) = self.0.as_deref() else { return };
        let mut change = |name: HeaderName, changed: &dyn Fn(&str) -> Option<String>| {
            let values = headers.get_all(&name).iter().cloned().collect::<Vec<_>>();
            if values.is_empty() {
                return;
            }
            headers.remove(&name);
            for value in values {
                let text = std::str::from_utf8(value.as_bytes()).ok().and_then(changed);
                let new = text.and_then(|text| HeaderValue::try_from(text).ok());
                headers.append(&name, new.unwrap_or(value));
            }
        };
        for name in [LOCATION, CONTENT_LOCATION] {
            change(name, &|value| is_local(value).then(|| format!("{path}{value}")));
        }
        change(LINK, &|value| Some(value.replace("</", &format!("<{path}/"))));
        change(SET_COOKIE, &|value| {
            let attributes = value.split("; ").map(|part| match part {
                "Path=/" => format!("Path={path}"),
                part => part.to_owned(),
            });
            Some(attributes.collect::<Vec<_>>().join("; "))
        });
    }

    /// Adds the prefix to the URLs in a page. Pages are rendered as a whole, so the body is
    /// available.
    pub fn page(&self, response: Response<Body>) -> Response<Body> {
        let is_page = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        let Some(inner) = self.0.as_deref().filter(|_| is_page) else { return response };
        let (mut parts, body) = response.into_parts();
        let Some(Ok(body)) = body.collect().now_or_never() else {
            return Response::from_parts(parts, Body::empty());
        };
        parts.headers.remove(CONTENT_LENGTH);
        let page = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        Response::from_parts(parts, Body::from(inner.moved(&page)))
    }
}

impl Inner {
    /// Returns the page with the prefix before its URLs.
    fn moved(&self, page: &str) -> String {
        let mut moved = String::with_capacity(page.len() + page.len() / 8);
        let mut from = 0;
        for found in self.attributes.find_iter(page) {
            let slash = found.end() - 1;
            if is_local(&page[slash..]) {
                moved.push_str(&page[from..slash]);
                moved.push_str(&self.path);
                from = slash;
            }
        }
        moved.push_str(&page[from..]);
        moved
    }
}

/// Whether a URL is a path on this host. With two leading slashes it names another host.
fn is_local(address: &str) -> bool {
    address.strip_prefix('/').is_some_and(|rest| !rest.starts_with(['/', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(home: &str) -> Mount {
        Mount::new(Some(&BaseUrl::try_from(home.to_owned()).expect("a base")))
    }

    #[test]
    fn requests_arrive_with_or_without_the_path() {
        let mount = mount("https://example.com/tools/drops/");
        for (sent, meant) in [
            ("/tools/drops/watchlist?a=1", "/watchlist?a=1"),
            ("/tools/drops/", "/"),
            ("/tools/drops", "/"),
            ("/tools/drops?a=1", "/?a=1"),
            ("/watchlist?a=1", "/watchlist?a=1"),
            ("/tools/dropsy", "/tools/dropsy"),
            ("/tools", "/tools"),
            ("/tools/drops//evil.example", "//evil.example"),
            ("http://example.com/tools/drops/api/v1/drops", "http://example.com/api/v1/drops"),
            ("*", "*"),
        ] {
            let mut uri: Uri = sent.parse().expect("an address");
            mount.enter(&mut uri);
            assert_eq!(uri.to_string(), meant, "{sent}");
        }
        let mut uri: Uri = "/tools/drops/".parse().expect("an address");
        Mount::new(None).enter(&mut uri);
        assert_eq!(uri, "/tools/drops/");
    }

    #[test]
    fn headers_lead_below_the_path() {
        let mount = mount("https://example.com/d");
        for (name, value, moved) in [
            (LOCATION, "/login?next=%2Fa", "/d/login?next=%2Fa"),
            (LOCATION, "/d/a", "/d/d/a"),
            (LOCATION, "https://other.example/a", "https://other.example/a"),
            (LOCATION, "//other.example/a", "//other.example/a"),
            (
                LINK,
                "</api/v1/drops?cursor=a>; rel=\"next\"",
                "</d/api/v1/drops?cursor=a>; rel=\"next\"",
            ),
            (SET_COOKIE, "a=b; HttpOnly; Path=/; Secure", "a=b; HttpOnly; Path=/d; Secure"),
            (SET_COOKIE, "a=b; Path=/", "a=b; Path=/d"),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(&name, HeaderValue::from_static(value));
            let mut bare = headers.clone();
            mount.head(&mut headers);
            assert_eq!(headers[&name], moved);
            Mount::new(None).head(&mut bare);
            assert_eq!(bare[&name], value);
        }
    }

    #[test]
    fn pages_lead_below_the_path() {
        let html = "<a href=\"/\" title=\"/\">a</a><form method=\"post\" action=\"/login\"><button formaction=\"/a?b\">\
                    <input name=\"next\" value=\"/watchlist\"><img src=\"/b.svg\"><a href=\"https://c.example/\">\
                    <a href=\"//c.example\"><a href=\"#d\"><p data-path=\"/e\"></p>";
        let moved = "<a href=\"/d/\" title=\"/\">a</a><form method=\"post\" action=\"/d/login\"><button formaction=\"/d/a?b\">\
                    <input name=\"next\" value=\"/watchlist\"><img src=\"/d/b.svg\"><a href=\"https://c.example/\">\
                    <a href=\"//c.example\"><a href=\"#d\"><p data-path=\"/d/e\"></p>";
        let sent = |mount: &Mount, kind: &'static str| {
            let response = Response::builder().header(CONTENT_TYPE, kind).body(Body::from(html));
            let body = mount.page(response.expect("a response")).into_body().collect();
            let body = body.now_or_never().expect("it is there").expect("whole").to_bytes();
            String::from_utf8(body.to_vec()).expect("text")
        };
        assert_eq!(sent(&mount("https://example.com/d"), "text/html; charset=utf-8"), moved);
        assert_eq!(sent(&mount("https://example.com/d"), "text/plain"), html);
        assert_eq!(sent(&mount("https://example.com/"), "text/html"), html);
    }
}
