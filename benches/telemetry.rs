//! The cost of request telemetry: id, counter and histogram around a service that answers at once. Run
//! `cargo bench --bench telemetry`; the difference between `bare` and `observed` is the cost.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll, Waker};

use axum::extract::MatchedPath;
use axum::http::{Request, Response};
use axum::routing::get;
use axum::{Router, body::Body};
use divan::Bencher;
use dropdex::telemetry::query::{QueryKind, QueryTimer};
use dropdex::telemetry::requests::{Observed, Settings, record_route};
use dropdex::telemetry::{catalogue, logs};
use tower::Service;
use tower::util::MapRequest;

fn main() {
    catalogue::install().expect("nothing else counts");
    // The default filter of a server: no access log.
    logs::start(&logs::Logs::default(), "info").expect("a level");
    divan::main();
}

/// Answers at once.
#[derive(Clone)]
struct Plain;

impl Service<Request<()>> for Plain {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        drop(request);
        ready(Ok(Response::new(())))
    }
}

/// A `MatchedPath` as the router creates it.
fn route() -> MatchedPath {
    let found = std::sync::Arc::new(std::sync::Mutex::new(None));
    let kept = std::sync::Arc::clone(&found);
    let handler = move |path: MatchedPath| {
        *kept.lock().expect("no panic") = Some(path);
        ready(())
    };
    let mut router: Router = Router::new().route("/api/v1/domain/{name}", get(handler));
    let request = Request::get("/api/v1/domain/a.com").body(Body::empty()).expect("a request");
    let routed = answer(router.call(request));
    drop(routed);
    let path = found.lock().expect("no panic").take();
    path.expect("it was routed")
}

fn answer<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return answer;
        }
    }
}

fn request(path: &MatchedPath) -> Request<()> {
    let mut request = Request::get("/api/v1/domain/a.com").body(()).expect("a request");
    request.extensions_mut().insert(path.clone());
    request
}

#[divan::bench]
fn bare(bencher: Bencher<'_, '_>) {
    let path = route();
    let mut service = Plain;
    bencher
        .with_inputs(|| request(&path))
        .bench_local_values(|request| answer(service.call(request)));
}

#[divan::bench]
fn observed(bencher: Bencher<'_, '_>) {
    let path = route();
    let routed = MapRequest::new(Plain, record_route);
    let mut service = Observed::new(routed, Settings::default());
    bencher
        .with_inputs(|| request(&path))
        .bench_local_values(|request| answer(service.call(request)));
}

#[divan::bench]
fn query() {
    QueryTimer::start(QueryKind::Drops).finish(1, &"a filter");
}
