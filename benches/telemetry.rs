//! The cost of request telemetry: id, counter and histogram around a service that responds at once. Run
//! `cargo bench --bench telemetry`; the difference between `bare` and `observed` is the cost.

use std::future::ready;
use std::task::{Context, Poll, Waker};

use axum::extract::MatchedPath;
use axum::http::{Request, Response};
use axum::routing::get;
use axum::{Router, body::Body};
use divan::Bencher;
use dropdex::telemetry::query::{QueryKind, QueryTimer};
use dropdex::telemetry::requests::{Observer, RequestSettings, record_route};
use dropdex::telemetry::{catalogue, logs};
use tower::Service;

fn main() {
    catalogue::install().expect("nothing else counts");
    // The default filter of a server: no access log.
    logs::start(&logs::Logs::default(), "info").expect("a level");
    divan::main();
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

/// Responds at once.
async fn handle(request: Request<()>) -> Response<()> {
    drop(request);
    Response::new(())
}

#[divan::bench]
fn bare(bencher: Bencher<'_, '_>) {
    let path = route();
    bencher.with_inputs(|| request(&path)).bench_local_values(|request| answer(handle(request)));
}

#[divan::bench]
fn observed(bencher: Bencher<'_, '_>) {
    let path = route();
    let observer = Observer::new(RequestSettings::default());
    let handle = |request| handle(record_route(request));
    bencher
        .with_inputs(|| request(&path))
        .bench_local_values(|request| answer(observer.observe(request, handle)));
}

#[divan::bench]
fn query() {
    QueryTimer::start(QueryKind::Drops).finish(1, &"a filter");
}
