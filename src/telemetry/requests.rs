//! What is told of every request: an id in its answer and in each line that is logged about it, how
//! often its route was asked and how long answers took.
//!
//! [`Observed`] stands around everything, so that what is refused before a route is known is told of
//! as well; [`Routed`] stands at the routes and says which one it was.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::extract::MatchedPath;
use axum::http::{Method, Request, Response, StatusCode};
use metrics::{Counter, Histogram, counter, histogram};
use rustc_hash::FxHashMap;
use tower::{Layer, Service};
use tracing::Level;

use crate::telemetry::current::{Current, HEADER, RequestId};
use crate::telemetry::logs;

/// How requests are told of.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Who may name requests.
    pub proxies: Arc<[IpAddr]>,
    /// Whether every answer is a line of the log at `info`; else it is one at `debug`.
    pub access: bool,
}

/// A service whose requests are told of.
#[derive(Clone)]
pub struct Observed<S> {
    inner: S,
    settings: Settings,
    routes: Arc<Routes>,
}

impl<S> Observed<S> {
    /// Tells of what goes through `inner`.
    pub fn new(inner: S, settings: Settings) -> Observed<S> {
        Observed { inner, settings, routes: Arc::default() }
    }
}

type Answering<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Infallible>> + Send>>;

impl<S, B, A> Service<Request<B>> for Observed<S>
where
    S: Service<Request<B>, Response = Response<A>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<A>;
    type Error = Infallible;
    type Future = Answering<A>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Answering<A> {
        let begun = Instant::now();
        let method = request.method().clone();
        let id = RequestId::of(&request, &self.settings.proxies);
        let current = Current::new(id, methods::name(&method));
        request.extensions_mut().insert(Arc::clone(&current));
        let (routes, access) = (Arc::clone(&self.routes), self.settings.access);
        let entered = current.enter();
        let answer = self.inner.call(request);
        drop(entered);
        Box::pin(async move {
            let mut answer = pin!(answer);
            let polled = poll_fn(|cx| {
                let _entered = current.enter();
                answer.as_mut().poll(cx)
            });
            let Ok(mut response) = polled.await;
            let took = begun.elapsed();
            routes.count(current.route(), &method, response.status(), took);
            log(&current, response.status(), took, access);
            response.headers_mut().insert(HEADER, current.id());
            Ok(response)
        })
    }
}

/// A line for each answer.
fn log(current: &Arc<Current>, status: StatusCode, took: Duration, access: bool) {
    if !access && !tracing::enabled!(Level::DEBUG) {
        return;
    }
    let _entered = current.enter();
    let (status, duration_ms) = (status.as_u16(), logs::milliseconds(took));
    if access {
        tracing::info!(status, duration_ms, "answered");
    } else {
        tracing::debug!(status, duration_ms, "answered");
    }
}

/// Makes a [`Routed`] of each route: for `Router::layer`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Route;

impl<S> Layer<S> for Route {
    type Service = Routed<S>;

    fn layer(&self, inner: S) -> Routed<S> {
        Routed(inner)
    }
}

/// A route that says of each request that it is its.
#[derive(Clone)]
pub struct Routed<S>(S);

impl<S: Service<Request<B>>, B> Service<Request<B>> for Routed<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        let extensions = request.extensions();
        if let (Some(current), Some(route)) =
            (extensions.get::<Arc<Current>>(), extensions.get::<MatchedPath>())
        {
            current.routed(route);
        }
        self.0.call(request)
    }
}

/// Classes of methods and statuses: what clients make up falls into the last of each.
mod methods {
    use axum::http::Method;

    const NAMES: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"];
    pub const COUNT: usize = NAMES.len();

    pub fn place(method: &Method) -> usize {
        NAMES.iter().position(|name| *name == method.as_str()).unwrap_or(COUNT - 1)
    }

    pub fn name(method: &Method) -> &'static str {
        NAMES[place(method)]
    }
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

fn class(status: StatusCode) -> usize {
    usize::from(status.as_u16() / 100).saturating_sub(1).min(CLASSES.len() - 1)
}

/// What is counted of each route. Routes are those of the router, which are few; each is entered
/// when it is first asked for.
#[derive(Default)]
struct Routes(ArcSwap<FxHashMap<Box<str>, Arc<Series>>>);

/// One route: a counter and a histogram for each method and class that was seen.
#[derive(Default)]
struct Series([[OnceLock<(Counter, Histogram)>; CLASSES.len()]; methods::COUNT]);

impl Routes {
    fn count(&self, route: &str, method: &Method, status: StatusCode, took: Duration) {
        let (place, class) = (methods::place(method), class(status));
        let series = self.of(route);
        let (requests, durations) = series.0[place][class].get_or_init(|| {
            let labels = [
                ("route", route.to_owned()),
                ("method", methods::name(method).to_owned()),
                ("status", CLASSES[class].to_owned()),
            ];
            (
                counter!("dropdex_http_requests_total", &labels),
                histogram!("dropdex_http_request_duration_seconds", &labels),
            )
        });
        requests.increment(1);
        durations.record(took);
    }

    fn of(&self, route: &str) -> Arc<Series> {
        if let Some(series) = self.0.load().get(route) {
            return Arc::clone(series);
        }
        let new = Arc::new(Series::default());
        self.0.rcu(|routes| {
            let mut routes = FxHashMap::clone(routes);
            // Somebody may have been faster.
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
    fn what_clients_make_up_is_one_class() {
        assert_eq!(methods::name(&Method::GET), "GET");
        assert_eq!(methods::name(&Method::from_bytes(b"BREW").expect("a method")), "other");
        assert_eq!(CLASSES[class(StatusCode::NOT_FOUND)], "4xx");
        assert_eq!(CLASSES[class(StatusCode::from_u16(999).expect("a status"))], "5xx");
        assert_eq!(CLASSES[class(StatusCode::CONTINUE)], "1xx");
    }
}
