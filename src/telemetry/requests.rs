//! What is told of every request: an id in its answer and in each line that is logged about it, how
//! often its route was asked and how long answers took.
//!
//! [`Observed`] stands around everything, so that what is refused before a route is known is told of
//! as well; [`Routed`] stands at the routes and says which one it was.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::extract::{ConnectInfo, MatchedPath};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use metrics::{Counter, Histogram, counter, histogram};
use rustc_hash::FxHashMap;
use tower::{Layer, Service};
use tracing::Instrument;

/// The header that carries an id.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Characters of an id that a proxy may give.
const GIVEN_MAX: usize = 64;
/// Bytes of an id of ours: 128 bits, so that no two are ever equal.
const ID_BYTES: usize = 16;
/// Random bytes asked of the system at once.
const POOL_BYTES: usize = 32 * ID_BYTES;

/// The name of a request: in the extensions of each that goes through [`Observed`].
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// A new one.
    pub fn random() -> RequestId {
        let text = hex::encode(random_bytes());
        RequestId(HeaderValue::try_from(text).expect("hexadecimal digits are visible ASCII"))
    }

    /// What `request` brings, if it may: anybody can write a header, a proxy of ours can be believed.
    fn given<B>(request: &Request<B>, proxies: &[IpAddr]) -> Option<RequestId> {
        let given = request.headers().get(HEADER)?;
        let ConnectInfo(from) = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
        let is_plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let bytes = given.as_bytes();
        let is_fit = (1..=GIVEN_MAX).contains(&bytes.len()) && bytes.iter().all(is_plain);
        let is_trusted = proxies.contains(&from.ip().to_canonical());
        (is_fit && is_trusted).then(|| RequestId(given.clone()))
    }

    /// Its characters.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Random bytes, asked of the system many at once: asking costs more than all the rest here.
fn random_bytes() -> [u8; ID_BYTES] {
    thread_local! {
        static POOL: RefCell<(usize, [u8; POOL_BYTES])> = const { RefCell::new((0, [0; POOL_BYTES])) };
    }
    POOL.with_borrow_mut(|(left, pool)| {
        if *left == 0 {
            // Ids are no secrets: where the system has no random bytes, old ones are used again.
            let _ = getrandom::fill(pool);
            *left = POOL_BYTES;
        }
        *left -= ID_BYTES;
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&pool[*left..*left + ID_BYTES]);
        id
    })
}

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
        let given = RequestId::given(&request, &self.settings.proxies);
        let id = given.unwrap_or_else(RequestId::random);
        request.extensions_mut().insert(id.clone());
        let method = request.method().clone();
        let (routes, access) = (Arc::clone(&self.routes), self.settings.access);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Ok(mut response) = answer.await;
            let took = begun.elapsed();
            let route = response.extensions_mut().remove::<MatchedPath>();
            let route = route.as_ref().map_or(NOWHERE, MatchedPath::as_str);
            routes.count(route, &method, response.status(), took);
            log(&id, route, &method, response.status(), took, access);
            response.headers_mut().insert(HEADER, id.0);
            Ok(response)
        })
    }
}

/// The route of what has none: unknown paths, and what was refused before a route was looked for.
const NOWHERE: &str = "-";

/// A line for each answer: the route as it is routed, never the path, which can hold what opens things.
fn log(
    id: &RequestId,
    route: &str,
    method: &Method,
    status: StatusCode,
    took: Duration,
    access: bool,
) {
    let (id, method, status) = (id.as_str(), methods::name(method), status.as_u16());
    let duration_ms = took.as_secs_f64() * 1000.0;
    if access {
        tracing::info!(id, method, route, status, duration_ms, "answered");
    } else {
        tracing::debug!(id, method, route, status, duration_ms, "answered");
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

/// A route that says in the extensions of its answer which one it is, and whose work is logged under
/// the request's id.
#[derive(Clone)]
pub struct Routed<S>(S);

impl<S, B, A> Service<Request<B>> for Routed<S>
where
    S: Service<Request<B>, Response = Response<A>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<A>;
    type Error = Infallible;
    type Future = Answering<A>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Answering<A> {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let span = tracing::info_span!(
            "request",
            id = request.extensions().get::<RequestId>().map(RequestId::as_str),
            method = methods::name(request.method()),
            route = route.as_ref().map_or(NOWHERE, MatchedPath::as_str),
            account = tracing::field::Empty,
        );
        let answer = span.in_scope(|| self.0.call(request));
        let told = async move {
            let Ok(mut response) = answer.await;
            if let Some(route) = route {
                response.extensions_mut().insert(route);
            }
            Ok(response)
        };
        Box::pin(told.instrument(span))
    }
}

/// Whose request it is, for the lines that are logged about it from now on.
pub fn tell_account(account: u64) {
    tracing::Span::current().record("account", account);
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

    fn request(from: &str, id: &str) -> Request<()> {
        let from: SocketAddr = from.parse().expect("an address");
        let mut request = Request::builder();
        if !id.is_empty() {
            request = request.header(HEADER, id);
        }
        request.extension(ConnectInfo(from)).body(()).expect("a request")
    }

    #[test]
    fn only_proxies_name_requests_and_only_plainly() {
        let proxies = ["10.0.0.1".parse().expect("an address")];
        let given = |from: &str, id: &str| {
            RequestId::given(&request(from, id), &proxies).map(|id| id.as_str().to_owned())
        };
        assert_eq!(given("10.0.0.1:4", "a-B_3.x").as_deref(), Some("a-B_3.x"));
        assert_eq!(given("[::ffff:10.0.0.1]:4", "a").as_deref(), Some("a"));
        assert_eq!(given("10.0.0.2:4", "a"), None);
        assert_eq!(given("10.0.0.1:4", ""), None);
        assert_eq!(given("10.0.0.1:4", "a b"), None);
        assert_eq!(given("10.0.0.1:4", "a\"b"), None);
        assert_eq!(given("10.0.0.1:4", &"a".repeat(64)), Some("a".repeat(64)));
        assert_eq!(given("10.0.0.1:4", &"a".repeat(65)), None);
    }

    #[test]
    fn ids_are_128_bits_in_hexadecimal_and_differ() {
        let ids: std::collections::HashSet<String> =
            (0..1000).map(|_| RequestId::random().as_str().to_owned()).collect();
        assert_eq!(ids.len(), 1000);
        let is_hex =
            |id: &String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(ids.iter().all(is_hex));
    }

    #[test]
    fn what_clients_make_up_is_one_class() {
        assert_eq!(methods::name(&Method::GET), "GET");
        assert_eq!(methods::name(&Method::from_bytes(b"BREW").expect("a method")), "other");
        assert_eq!(CLASSES[class(StatusCode::NOT_FOUND)], "4xx");
        assert_eq!(CLASSES[class(StatusCode::from_u16(999).expect("a status"))], "5xx");
        assert_eq!(CLASSES[class(StatusCode::CONTINUE)], "1xx");
    }
}
