//! The gateway: every request goes through it to the router and every answer comes back through it.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, HOST, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use metrics::{Counter, counter};
use tokio::time::sleep_until;
use tower::Service as _;

use crate::http::error::ApiError;
use crate::http::peer::Client;
use crate::server::admission::{Admission, Admitted, Class, Shed};
use crate::server::body::{AnswerBody, InFlight, RequestBody};
use crate::server::cors::{self, Cors, CorsRequest};
use crate::server::encoding::{self, Encoder, Encoding};
use crate::server::settings::ServerSettings;
use crate::server::state::ConnectionState;
use crate::server::{Parts, Refusals, Refuse};
use crate::telemetry::requests::Observed;
use crate::vocab::limits::{BODY_BYTES_MAX, FORM_BYTES_MAX};

/// For two years, as lists that browsers ship ask for.
const HSTS: &str = "max-age=63072000";

/// What every request goes through.
pub(super) struct Gateway {
    /// Every request that comes this far is told of, whatever becomes of it.
    inside: Observed<Service>,
    proxies: Vec<IpAddr>,
    refusals: Refusals,
    draining: Arc<AtomicBool>,
    /// Whether browsers are to come by TLS alone from now on.
    secure: bool,
}

/// What a request is allowed: in its extensions on the way in.
#[derive(Clone)]
struct RequestPolicy {
    class: Class,
    deadline: Instant,
    /// What the router never sees is refused in the same shape as what it does.
    refuse: Refuse,
    /// Whether its body came too slowly. `None` without a body.
    late: Option<Arc<AtomicBool>>,
}

impl RequestPolicy {
    fn is_late(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.load(Ordering::Relaxed))
    }
}

impl Gateway {
    pub(super) fn new(settings: &ServerSettings, parts: Parts) -> Gateway {
        let Parts { router, refusals, tls, observing, draining } = parts;
        // Worked out once, not with the first request of each connection.
        let router: Router = router.with_state(());
        let inside = Service(Arc::new(Inner {
            encoder: Encoder::new(router.clone()),
            router,
            cors: Cors::new(&settings.cors_origins),
            admission: Admission::new(&settings.admission),
            panics: counter!("dropdex_panics_total"),
            timeouts: counter!("dropdex_request_timeouts_total"),
        }));
        Gateway {
            inside: Observed::new(inside, observing),
            proxies: settings.proxies.clone(),
            refusals,
            draining,
            secure: tls.is_some(),
        }
    }

    /// The answer to a request of the connection that `state` watches.
    pub(super) fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        peer: SocketAddr,
        state: &Arc<ConnectionState>,
    ) -> impl Future<Output = Response<AnswerBody>> + Send + use<> {
        let (mut parts, body) = request.into_parts();
        // HTTP/2 says it elsewhere (RFC 9113 §8.3.1); who wants to know asks for the header.
        if let (Some(authority), false) = (parts.uri.authority(), parts.headers.contains_key(HOST))
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            parts.headers.insert(HOST, host);
        }
        let deadlines = state.deadlines();
        let now = Instant::now();
        let class = Class::of(&parts.method, parts.uri.path());
        let allowed = if class == Class::Export { deadlines.export } else { deadlines.request };
        let deadline = now + allowed;
        let in_flight = InFlight::begin(state, deadline);
        // Most requests have none, which needs no watch.
        let (body, late) = if body.is_end_stream() {
            (Body::empty(), None)
        } else {
            let late = Arc::new(AtomicBool::new(false));
            let body = RequestBody::new(body, now + deadlines.body, Arc::clone(&late));
            (Body::new(body), Some(late))
        };
        let client = Client::of(peer.ip(), &parts.headers, &self.proxies);
        let refuse = (self.refusals)(&parts.uri, &parts.headers);
        parts.extensions.insert(ConnectInfo(peer));
        parts.extensions.insert(client);
        parts.extensions.insert(RequestPolicy { class, deadline, refuse, late });
        let version = parts.version;
        let answer = self.inside.clone().call(Request::from_parts(parts, body));
        let gateway = Arc::clone(self);
        async move {
            let Ok(mut answer) = answer.await;
            let is_unchanged = answer.status() == StatusCode::NOT_MODIFIED;
            let headers = answer.headers_mut();
            if is_unchanged {
                // It would be that of the answer which is not sent (RFC 9110 §8.6).
                headers.remove(CONTENT_LENGTH);
            }
            if version <= Version::HTTP_11 && gateway.draining.load(Ordering::Relaxed) {
                // Its client connects to another server before this one takes no more requests.
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            if gateway.secure {
                headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(HSTS));
            }
            let admitted = answer.extensions_mut().remove::<Arc<Admitted>>();
            answer.map(|body| AnswerBody::new(body, in_flight, admitted))
        }
    }
}

/// The way from the door to the router and back.
#[derive(Clone)]
struct Service(Arc<Inner>);

struct Inner {
    router: Router,
    encoder: Encoder,
    cors: Cors,
    admission: Admission,
    panics: Counter,
    timeouts: Counter,
}

impl tower::Service<Request<Body>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let way = Arc::clone(&self.0);
        Box::pin(async move {
            let policy = request.extensions_mut().remove::<RequestPolicy>();
            let policy = policy.expect("the door puts them into every request");
            Ok(way.ask_as_allowed(&policy, request).await)
        })
    }
}

impl Inner {
    /// The answer, for who may read it.
    async fn ask_as_allowed(
        &self,
        policy: &RequestPolicy,
        request: Request<Body>,
    ) -> Response<Body> {
        match self.cors.look(&request) {
            CorsRequest::None => self.ask_in_turn(policy, request).await,
            CorsRequest::Preflight(answer) => *answer,
            CorsRequest::Actual(origin) => {
                let mut answer = self.ask_in_turn(policy, request).await;
                cors::mark(answer.headers_mut(), origin);
                answer
            }
        }
    }

    /// The answer, when it is the request's turn.
    async fn ask_in_turn(&self, policy: &RequestPolicy, request: Request<Body>) -> Response<Body> {
        // A request takes a place when it is whole: slow clients wait in nobody's way.
        let request = match gathered(request).await {
            Ok(request) => request,
            Err(_) if policy.is_late() => return (policy.refuse)(ApiError::SlowBody),
            Err(err) => return (policy.refuse)(err),
        };
        // Before anything is done for it: a request that is shed is not charged either.
        let admitted = match self.admission.enter(policy.class).await {
            Ok(admitted) => admitted,
            Err(Shed { retry_after_s }) => {
                return (policy.refuse)(ApiError::Shed { retry_after_s });
            }
        };
        let mut answer = self.ask(policy, request).await;
        if let (Class::Export, Some(admitted)) = (policy.class, admitted) {
            // Most of its work is done while it is read.
            answer.extensions_mut().insert(Arc::new(admitted));
        }
        // Whatever its handler made of a body that broke off.
        if policy.is_late() { (policy.refuse)(ApiError::SlowBody) } else { answer }
    }

    /// The answer, in the encoding that its client asks for. A HEAD is a GET whose body stays here, so
    /// that their headers cannot differ (RFC 9110 §9.3.2).
    async fn ask(&self, policy: &RequestPolicy, mut request: Request<Body>) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        if is_head {
            *request.method_mut() = Method::GET;
        }
        let answer = match Encoding::for_request(policy.class, request.headers()) {
            Some(encoding) => {
                let encoder = self.encoder.clone();
                self.within(encoder.ask(request, encoding), policy).await
            }
            None => {
                let mut router = self.router.clone();
                let plain = async move {
                    let Ok(mut answer) = router.call(request).await;
                    encoding::note_plain(&mut answer);
                    answer
                };
                self.within(plain, policy).await
            }
        };
        if is_head { without_body(answer) } else { answer }
    }

    /// The answer, or that making it panicked or took too long.
    async fn within(
        &self,
        answer: impl Future<Output = Response<Body>>,
        policy: &RequestPolicy,
    ) -> Response<Body> {
        let mut answer = pin!(answer);
        let mut alarm = pin!(sleep_until(policy.deadline.into()));
        std::future::poll_fn(|cx| {
            // What a panic leaves half done is behind locks that are poisoned by it, as anywhere else.
            match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
                Ok(Poll::Ready(answer)) => return Poll::Ready(answer),
                Ok(Poll::Pending) => {}
                Err(_) => {
                    self.panics.increment(1);
                    let err = ApiError::Internal(anyhow::anyhow!("a request panicked"));
                    return Poll::Ready((policy.refuse)(err));
                }
            }
            // Reached by what has to wait alone: most requests never touch the timer.
            alarm.as_mut().poll(cx).map(|()| {
                self.timeouts.increment(1);
                (policy.refuse)(ApiError::RequestTimeout)
            })
        })
        .await
    }
}

/// The answer to a GET as that to a HEAD: all but its body.
fn without_body(answer: Response<Body>) -> Response<Body> {
    let length = answer.body().size_hint().exact();
    let mut answer = answer.map(|_| Body::empty());
    if let Some(length) = length.filter(|_| !answer.headers().contains_key(CONTENT_LENGTH)) {
        answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    answer
}

/// The request with its body, as far as any handler reads one: what is longer comes as it comes.
async fn gathered(request: Request<Body>) -> Result<Request<Body>, ApiError> {
    let (parts, mut body) = request.into_parts();
    let api = parts.uri.path().starts_with("/api/");
    let bytes_max = if api { BODY_BYTES_MAX } else { FORM_BYTES_MAX };
    // Its handler refuses it for what it says of itself.
    if body.is_end_stream() || body.size_hint().lower() > bytes_max as u64 {
        return Ok(Request::from_parts(parts, body));
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::parameter("body", "ended before its end"))?;
        let Ok(data) = frame.into_data() else { continue };
        bytes.extend_from_slice(&data);
        if bytes.len() > bytes_max {
            // Enough for its handler to see that it is too much.
            break;
        }
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}
