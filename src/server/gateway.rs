//! The path of a request from hyper to the router and of its response back: host check, CORS,
//! limits, admission, compression, deadline and panic handling.
//!
//! `tower-http`'s timeout and catch-panic layers treat all requests the same. Here the deadline
//! depends on the class of the request, and the error is a page for a browser and JSON for other
//! clients.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Instant;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
use metrics::{Counter, counter};
use tokio::time::timeout_at;
use tower::util::MapResponseLayer;

use crate::edge::class::{Class, STREAM_TIME_MAX};
use crate::edge::extensions::HeadersOnly;
use crate::edge::extensions::ServerSlot;
use crate::edge::home::Origin;
use crate::edge::mount::Mount;
use crate::edge::paths;
use crate::edge::peer::Client;
use crate::edge::position::{self, Positions};
use crate::edge::routes::Routes;
use crate::server::admission::{Admission, Admitted};
use crate::server::body::{self, Counted, InFlight, ResponseBody};
use crate::server::budget::ByteBudget;
use crate::server::cors::{self, Cors, CorsRequest};
use crate::server::encoding::Encoder;
use crate::server::host::{self, Hosts};
use crate::server::settings::ServerSettings;
use crate::server::state::ConnectionState;
use crate::server::visitors::Visitors;
use crate::server::{ErrorRenderer, Identify, SelectErrorRenderer, ServerParts};
use crate::service::error::ApiError;
use crate::telemetry::requests::Observer;
use crate::telemetry::security::ClientAddress;

/// Two years, the value recommended for the browsers' preload list.
const HSTS: &str = "max-age=63072000";

/// The request path, shared by all connections.
pub(super) struct Gateway {
    observer: Observer,
    routes: Routes,
    encoder: Encoder,
    cors: Cors,
    admission: Arc<Admission>,
    request_bytes: Arc<ByteBudget>,
    response_bytes: Arc<ByteBudget>,
    visitors: Visitors,
    identify: Identify,
    positions: Option<Positions>,
    hosts: Hosts,
    mount: Mount,
    proxies: Vec<IpAddr>,
    error_renderer: SelectErrorRenderer,
    draining: Arc<AtomicBool>,
    has_tls: bool,
    panics: Counter,
    timeouts: Counter,
}

/// The limits of a request and the format of its errors.
struct RequestPolicy {
    class: Class,
    state: Arc<ConnectionState>,
    body_deadline: Instant,
    deadline: Instant,
    render_error: ErrorRenderer,
    mount: Mount,
}

impl RequestPolicy {
    /// The response for an error.
    fn refuse(&self, err: ApiError) -> Response<Body> {
        self.mount.page((self.render_error)(err))
    }
}

impl Gateway {
    pub(super) fn new(settings: &ServerSettings, parts: ServerParts) -> Gateway {
        let ServerParts {
            router,
            routes,
            error_renderer,
            identify,
            positions,
            public_host,
            mount,
            tls,
            observing,
            draining,
        } = parts;
        let moved = mount.clone();
        let router = router.layer(MapResponseLayer::new(move |response| moved.page(response)));
        let budget = |name, limit| ByteBudget::new(name, limit);
        Gateway {
            observer: Observer::new(observing),
            routes,
            // `with_state` builds the routes now instead of on the first request of each
            // connection.
            encoder: Encoder::new(router.with_state(())),
            cors: Cors::new(&settings.cors_origins),
            admission: Arc::new(Admission::new(&settings.admission)),
            request_bytes: budget("request_bodies", settings.budgets.request_bytes),
            response_bytes: budget("responses", settings.budgets.response_bytes),
            visitors: Visitors::new(settings.visitor_requests_per_minute, &settings.proxies),
            identify,
            positions,
            hosts: Hosts::new(public_host),
            mount,
            proxies: settings.proxies.clone(),
            error_renderer,
            draining,
            has_tls: tls.is_some(),
            panics: counter!("dropdex_panics_total"),
            timeouts: counter!("dropdex_request_timeouts_total"),
        }
    }

    /// Returns the response to a request of the connection that `state` belongs to.
    pub(super) fn call(
        self: &Arc<Self>,
        request: Request<Incoming>,
        peer: SocketAddr,
        state: &Arc<ConnectionState>,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + use<> {
        let (mut parts, body) = request.into_parts();
        host::use_authority(&mut parts);
        self.mount.enter(&mut parts.uri);
        if let Some(uri) = paths::without_slash(&parts.uri) {
            parts.uri = uri;
        }
        let (now, deadlines) = (Instant::now(), state.deadlines());
        let (class, caching) = self.routes.of(&parts.method, &parts.uri, &parts.headers);
        let allowed = match class {
            Class::Export => deadlines.export,
            Class::Stream => STREAM_TIME_MAX + deadlines.request,
            _ => deadlines.request,
        };
        let policy = RequestPolicy {
            class,
            state: Arc::clone(state),
            body_deadline: now + deadlines.body,
            deadline: now + allowed,
            render_error: (self.error_renderer)(&parts.uri, &parts.headers),
            mount: self.mount.clone(),
        };
        let in_flight = InFlight::begin(state, policy.deadline);
        let client = Client::from_headers(peer.ip(), &parts.headers, &self.proxies);
        parts.extensions.insert(ConnectInfo(peer));
        parts.extensions.insert(client);
        parts.extensions.insert(Origin::new(&parts.headers, self.has_tls, &client));
        parts.extensions.insert(ClientAddress(client.address));
        let (version, request) = (parts.version, Request::from_parts(parts, body));
        let gateway = Arc::clone(self);
        async move {
            let handle = |request| gateway.with_cors(&policy, request);
            let mut response = gateway.observer.observe(request, handle).await;
            gateway.mount.head(response.headers_mut());
            caching.finish(response.status(), response.headers_mut());
            gateway.finish_headers(&mut response, version);
            let counted = response.extensions_mut().remove::<Arc<Counted>>();
            let counted = counted.and_then(Arc::into_inner).unwrap_or(Counted::No);
            let counted = (counted, &gateway.response_bytes);
            response.map(|body| ResponseBody::new(body, counted, in_flight))
        }
    }

    /// Sets the headers that belong to the connection rather than to the resource.
    fn finish_headers(&self, response: &mut Response<Body>, version: Version) {
        let is_not_modified = response.status() == StatusCode::NOT_MODIFIED;
        let headers = response.headers_mut();
        if is_not_modified {
            // In a 304, `Content-Length` would have to be the length of the representation, which is
            // not sent (RFC 9110 §8.6).
            headers.remove(CONTENT_LENGTH);
        }
        if version <= Version::HTTP_11 && self.draining.load(Ordering::Relaxed) {
            // The client then reconnects, to another server, before this one stops accepting.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self.has_tls {
            headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(HSTS));
        }
    }

    /// Whether the budget for responses is nearly used up for a class.
    pub(super) fn is_short_of_memory(&self, class: Class) -> bool {
        self.response_bytes.is_nearly_used(class)
    }

    async fn with_cors(
        &self,
        policy: &RequestPolicy,
        request: Request<Incoming>,
    ) -> Response<Body> {
        match self.cors.classify(&request) {
            CorsRequest::None => self.counted(policy, request).await,
            CorsRequest::Preflight(response) => *response,
            CorsRequest::Actual(origin) => {
                let mut response = self.counted(policy, request).await;
                cors::add_headers(response.headers_mut(), origin);
                response
            }
        }
    }

    /// Counts a large response until it has been sent.
    async fn counted(&self, policy: &RequestPolicy, request: Request<Incoming>) -> Response<Body> {
        let (class, response) = self.positioned(policy, request).await;
        match Counted::new(&response, &self.response_bytes, &policy.state, class) {
            Some(Counted::No) => response,
            Some(counted) => {
                let mut response = response;
                response.extensions_mut().insert(Arc::new(counted));
                response
            }
            None => policy.refuse(self.admission.shed(policy.class).into()),
        }
    }

    /// Serves a request from a state that includes its client's earlier writes, and returns the position after
    /// a write.
    async fn positioned(
        &self,
        policy: &RequestPolicy,
        request: Request<Incoming>,
    ) -> (Class, Response<Body>) {
        let Some(positions) = self.positions.as_ref().filter(|_| policy.class != Class::Health)
        else {
            return self.admitted(policy, request).await;
        };
        // This must precede authentication, because the key or session may have been created on
        // another node.
        let moment = match positions.reach(request.headers()).await {
            Ok(moment) => moment,
            Err(err) => return (policy.class, policy.refuse(err)),
        };
        // A client that sends a position also gets the position of its reads, so that no later read
        // is older.
        if request.method().is_safe() && !request.headers().contains_key(position::HEADER) {
            return self.admitted(policy, request).await;
        }
        let (headers, is_read) = (request.headers().clone(), request.method().is_safe());
        let (class, mut response) = self.admitted(policy, request).await;
        if response.status().is_client_error() || response.status().is_server_error() {
            return (class, response);
        }
        positions.tell(&headers, response.headers_mut());
        // A write has taken effect regardless of the index in use.
        if is_read && !positions.saw_one_index(moment) {
            return (class, policy.refuse(ApiError::NodeBehind));
        }
        (class, response)
    }

    /// Checks the limits, waits for admission and calls the router. Returns the response, and the class
    /// whose limits applied.
    async fn admitted(
        &self,
        policy: &RequestPolicy,
        request: Request<Incoming>,
    ) -> (Class, Response<Body>) {
        let (version, waits_for_continue) = (request.version(), body::waits_for_continue(&request));
        let (mut request, reading) = body::read_on_demand(
            request,
            policy.body_deadline,
            &self.admission,
            &self.request_bytes,
        );
        // Admission precedes routing, so that a refused request costs little and does not count
        // against a quota.
        let (class, entered) = match self.classify(policy, &mut request) {
            Ok(class) => (class, self.enter(policy, class).await),
            Err(err) => (Class::Visitor, Err(err)),
        };
        let mut response = match entered {
            Ok(slot) => {
                let _held = match (policy.class, slot, &reading) {
                    // Exports and streams do most of their work while the body is sent, so the body
                    // holds the slot. If the request is refused, the slot is released before the
                    // client reads the error.
                    (Class::Export | Class::Stream, Some(slot), _) => {
                        request.extensions_mut().insert(ServerSlot::new(slot));
                        None
                    }
                    (_, slot, Some(reading)) => {
                        reading.keep(class, slot);
                        None
                    }
                    (_, slot, None) => slot,
                };
                self.routed(policy, request).await
            }
            Err(err) => {
                drop(request);
                policy.refuse(err)
            }
        };
        drop(reading.as_ref().and_then(|reading| reading.take_slot()));
        if let Some(reading) = reading
            && version <= Version::HTTP_11
            && !reading.discard_unread(waits_for_continue).await
        {
            policy.state.linger();
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        (class, response)
    }

    /// Checks host and rate, and determines the class whose slots the request competes for.
    fn classify(
        &self,
        policy: &RequestPolicy,
        request: &mut Request<Body>,
    ) -> Result<Class, ApiError> {
        self.hosts.check(request)?;
        if policy.class == Class::Health || (self.identify)(request) {
            return Ok(policy.class);
        }
        self.visitors.check(request.extensions().get::<Client>())?;
        // Log-ins compete for password hashing.
        Ok(if policy.class == Class::LogIn { Class::LogIn } else { Class::Visitor })
    }

    /// Waits until the connection has few enough unsent bytes, then for a slot.
    async fn enter(
        &self,
        policy: &RequestPolicy,
        class: Class,
    ) -> Result<Option<Admitted>, ApiError> {
        if class == Class::Health {
            return Ok(None);
        }
        if policy.state.is_full() {
            let room = timeout_at(policy.deadline.into(), policy.state.room());
            room.await.map_err(|_| ApiError::RequestTimeout)?;
        }
        if self.is_short_of_memory(class) && policy.class != Class::Write {
            return Err(self.admission.shed(class).into());
        }
        Ok(self.admission.enter(class).await?)
    }

    /// Calls the router. A HEAD request is routed as GET and its response body is dropped, so that
    /// the headers are those of GET (RFC 9110 §9.3.2).
    async fn routed(&self, policy: &RequestPolicy, mut request: Request<Body>) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        if is_head {
            *request.method_mut() = Method::GET;
            request.extensions_mut().insert(HeadersOnly);
        }
        let response = catch_panic(self.encoder.clone().call(request, policy.class));
        let response = match timeout_at(policy.deadline.into(), response).await {
            Ok(Ok(response)) => response,
            Ok(Err(Panicked)) => {
                self.panics.increment(1);
                policy.refuse(ApiError::Internal(anyhow::anyhow!("a request panicked")))
            }
            Err(_) => {
                self.timeouts.increment(1);
                policy.refuse(ApiError::RequestTimeout)
            }
        };
        if is_head { without_body(response) } else { response }
    }
}

struct Panicked;

/// Turns a panic of `future` into an error. State that a panic leaves inconsistent is behind a lock,
/// which the panic poisons.
async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

/// Turns a response to GET into one to HEAD.
fn without_body(response: Response<Body>) -> Response<Body> {
    let length = response.body().size_hint().exact();
    let mut response = response.map(|_| Body::empty());
    if let Some(length) = length.filter(|_| !response.headers().contains_key(CONTENT_LENGTH)) {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}
