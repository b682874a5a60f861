//! The address of this server as a client sees it, for links in feeds and examples.

use std::convert::Infallible;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::request::Parts;

use crate::local::is_this_machine;
use crate::peer::Client;
use crate::service::app::App;

/// Host of links if the request has no host.
const UNNAMED: &str = "localhost:8080";

/// Scheme, host and port that a request was sent to, stored in its extensions by the server.
#[derive(Clone, Debug)]
pub struct Origin(String);

impl Origin {
    /// Determines the origin of a request, which arrived with TLS or without. A trusted proxy reports the
    /// scheme and host that its client used: each proxy adds the host that it saw, and the first scheme is the
    /// client's.
    pub fn new(headers: &HeaderMap, has_tls: bool, client: &Client) -> Origin {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let forwarded = |name: &str| text(name).filter(|_| client.through_proxy);
        let scheme = forwarded("x-forwarded-proto").and_then(|all| all.split(',').next());
        let scheme = match scheme.map(|scheme| scheme.trim().to_ascii_lowercase()).as_deref() {
            Some("https") => "https",
            Some("http") => "http",
            _ if has_tls => "https",
            _ => "http",
        };
        let host = forwarded("x-forwarded-host").and_then(|all| all.rsplit(',').next());
        let is_host = |host: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
            !host.is_empty() && host.bytes().all(is_plain)
        };
        let host = host.map(str::trim).filter(is_host).or(text(HOST.as_str()).filter(is_host));
        Origin(format!("{scheme}://{}", host.unwrap_or(UNNAMED)))
    }

    /// Whether the request came over plain HTTP to a host that does not name this machine. A browser that gets a
    /// cookie for TLS does not send it back there.
    pub fn is_plain_and_remote(&self) -> bool {
        self.0.strip_prefix("http://").is_some_and(|host| !is_this_machine(host))
    }
}

/// Base URL of this server without a trailing slash: the public one or, without one, the one that this
/// client uses.
pub struct Home(pub String);

impl Home {
    /// The base URL for the client of a request.
    pub fn of(app: &App, extensions: &axum::http::Extensions) -> Home {
        let seen = || extensions.get::<Origin>().map(|Origin(seen)| seen.clone());
        let public = app.site.home.as_ref().map(|home| home.as_str().to_owned());
        Home(public.or_else(seen).unwrap_or_else(|| format!("http://{UNNAMED}")))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Home
where
    App: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Home, Infallible> {
        Ok(Home::of(&App::from_ref(state), &parts.extensions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    #[test]
    fn links_use_the_scheme_and_host_of_the_client() {
        let origin = |through_proxy, has_tls, lines: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                let name = HeaderName::try_from(*name).expect("a name");
                headers.append(name, HeaderValue::from_str(value).expect("a value"));
            }
            let address = "192.0.2.1".parse().expect("an address");
            let client = Client { address, through_proxy, is_hidden: false };
            Origin::new(&headers, has_tls, &client).0
        };
        let host = ("host", "drops.example:8080");
        assert_eq!(origin(false, false, &[host]), "http://drops.example:8080");
        assert_eq!(origin(false, true, &[host]), "https://drops.example:8080");
        assert_eq!(origin(false, false, &[("host", "[::1]:80")]), "http://[::1]:80");
        assert_eq!(origin(false, false, &[]), "http://localhost:8080");
        let https = ("x-forwarded-proto", "https");
        assert_eq!(origin(false, false, &[host, https]), "http://drops.example:8080");
        assert_eq!(origin(true, false, &[host, https]), "https://drops.example:8080");
        for (proto, expected) in [
            ("HTTPS", "https"),
            ("https, http", "https"),
            ("http", "http"),
            ("javascript", "http"),
            ("", "http"),
        ] {
            let told = origin(true, false, &[host, ("x-forwarded-proto", proto)]);
            assert_eq!(told, format!("{expected}://drops.example:8080"), "{proto}");
        }
        let named = |name| origin(true, false, &[host, https, ("x-forwarded-host", name)]);
        assert_eq!(named("public.example"), "https://public.example");
        assert_eq!(named("forged.example, public.example"), "https://public.example");
        assert_eq!(named("a\"><b"), "https://drops.example:8080");
    }
}
