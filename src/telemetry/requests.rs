//! Request ids, request metrics and the access log.
//!
//! [`Observer::observe`] wraps the whole path of a request, so that requests refused before routing are
//! counted too. [`record_route`] runs inside the router and records which route matched.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::extract::MatchedPath;
use axum::http::{Method, Request, Response, StatusCode};
use metrics::{Counter, Histogram, counter, histogram};
use rustc_hash::FxHashMap;
use tracing::Level;

use crate::current::{Current, HEADER, NO_ROUTE, RequestId};
use crate::logs;
use crate::security::ClientAddress;

/// Settings of request telemetry.
#[derive(Clone, Debug, Default)]
pub struct RequestSettings {
    /// Proxies whose `X-Request-Id` is used.
    pub proxies: Arc<[IpAddr]>,
    /// Logs every response at `info` instead of `debug`.
    pub access: bool,
}

/// Counts and logs requests.
pub struct Observer {
    settings: RequestSettings,
    routes: Routes,
}

impl Observer {
    pub fn new(settings: RequestSettings) -> Observer {
        let routes = Routes::default();
        // Registers both metrics before the first request.
        routes.series(NO_ROUTE).metrics(NO_ROUTE, &Method::GET, StatusCode::NOT_FOUND);
        Observer { settings, routes }
    }

    /// Calls `handle` with a request and adds the request ID to the response. While the future is polled,
    /// log lines of the thread name the request.
    pub async fn observe<B, A, F>(
        &self,
        mut request: Request<B>,
        handle: impl FnOnce(Request<B>) -> F,
    ) -> Response<A>
    where
        F: Future<Output = Response<A>>,
    {
        let started = Instant::now();
        let method = request.method().clone();
        let id = RequestId::for_request(&request, &self.settings.proxies);
        let client = request.extensions().get::<ClientAddress>().map(|client| client.0);
        let current = Current::new(id, methods::name(&method), client);
        request.extensions_mut().insert(Arc::clone(&current));
        let mut response = current.work(handle(request)).await;
        let elapsed = started.elapsed();
        self.routes.count(current.route(), &method, response.status(), elapsed);
        log(&current, response.status(), elapsed, self.settings.access);
        response.headers_mut().insert(HEADER, current.id());
        response
    }
}

/// Writes a line to the access log.
fn log(current: &Arc<Current>, status: StatusCode, elapsed: Duration, access: bool) {
    if !access && !tracing::enabled!(Level::DEBUG) {
        return;
    }
    let _entered = current.enter();
    let (status, duration_ms) = (status.as_u16(), logs::milliseconds(elapsed));
    if access {
        tracing::info!(status, duration_ms, "answered");
    } else {
        tracing::debug!(status, duration_ms, "answered");
    }
}

/// Records the matched route. Meant for `Router::layer` with [`tower::util::MapRequestLayer`],
/// which calls it after routing.
pub fn record_route<B>(request: Request<B>) -> Request<B> {
    let extensions = request.extensions();
    if let (Some(current), Some(route)) =
        (extensions.get::<Arc<Current>>(), extensions.get::<MatchedPath>())
    {
        current.set_route(route);
    }
    request
}

/// Label values for methods. Clients can invent methods; all invented ones share the last value.
mod methods {
    use axum::http::Method;

    const NAMES: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"];
    pub const COUNT: usize = NAMES.len();

    pub fn index(method: &Method) -> usize {
        NAMES.iter().position(|name| *name == method.as_str()).unwrap_or(COUNT - 1)
    }

    pub fn name(method: &Method) -> &'static str {
        NAMES[index(method)]
    }
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

fn class(status: StatusCode) -> usize {
    usize::from(status.as_u16() / 100).saturating_sub(1).min(CLASSES.len() - 1)
}

/// The metrics of each route, created by its first request.
#[derive(Default)]
struct Routes(ArcSwap<FxHashMap<Box<str>, Arc<Series>>>);

/// A counter and a histogram for each method and status class of a route, created on first use.
#[derive(Default)]
struct Series([[OnceLock<(Counter, Histogram)>; CLASSES.len()]; methods::COUNT]);

impl Series {
    fn metrics(&self, route: &str, method: &Method, status: StatusCode) -> &(Counter, Histogram) {
        let (index, class) = (methods::index(method), class(status));
        self.0[index][class].get_or_init(|| {
            let labels = [
                ("route", route.to_owned()),
                ("method", methods::name(method).to_owned()),
                ("status", CLASSES[class].to_owned()),
            ];
            (
                counter!("dropdex_http_requests_total", &labels),
                histogram!("dropdex_http_request_duration_seconds", &labels),
            )
        })
    }
}

impl Routes {
    fn count(&self, route: &str, method: &Method, status: StatusCode, elapsed: Duration) {
        let series = self.series(route);
        let (requests, durations) = series.metrics(route, method, status);
        requests.increment(1);
        durations.record(elapsed);
    }

    fn series(&self, route: &str) -> Arc<Series> {
        if let Some(series) = self.0.load().get(route) {
            return Arc::clone(series);
        }
        let new = Arc::new(Series::default());
        self.0.rcu(|routes| {
            let mut routes = FxHashMap::clone(routes);
            // Another thread may have inserted it first.
            routes.entry(route.into()).or_insert_with(|| Arc::clone(&new));
            routes
        });
        self.0.load().get(route).map_or(new, Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_and_statuses_have_a_class() {
        assert_eq!(methods::name(&Method::GET), "GET");
        assert_eq!(methods::name(&Method::from_bytes(b"BREW").expect("a method")), "other");
        assert_eq!(CLASSES[class(StatusCode::NOT_FOUND)], "4xx");
        assert_eq!(CLASSES[class(StatusCode::from_u16(999).expect("a status"))], "5xx");
        assert_eq!(CLASSES[class(StatusCode::CONTINUE)], "1xx");
    }
}
