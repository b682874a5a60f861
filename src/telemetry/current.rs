//! The request that a thread is working on, so that log lines can name the request, and its work is
//! charged to its account.
//!
//! A `tracing` span would format its fields for every request, although hardly any request logs a line.
//! A pointer to existing fields costs almost nothing.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use axum::extract::{ConnectInfo, MatchedPath};
use axum::http::{HeaderName, HeaderValue, Request};
use serde::Serialize;

use crate::vocab::ids::AccountId;

/// The header of the request id.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Placeholder route of a request that matched no route or was refused before routing.
pub(super) const NO_ROUTE: &str = "-";
/// Maximum length of an ID from a proxy.
const ID_LEN_MAX: usize = 64;
/// Random bytes of a generated ID; 128 bits are unique in practice.
const ID_BYTES: usize = 16;
/// Random bytes fetched from the system at a time.
const POOL_BYTES: usize = 32 * ID_BYTES;

/// The id of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    /// Returns the ID that a trusted proxy sent, or a random one.
    pub(super) fn for_request<B>(request: &Request<B>, proxies: &[IpAddr]) -> RequestId {
        RequestId::from_proxy(request, proxies).unwrap_or_else(RequestId::random)
    }

    fn random() -> RequestId {
        let mut text = [0; 2 * ID_BYTES];
        hex::encode_to_slice(random_bytes(), &mut text).expect("two digits a byte");
        RequestId(HeaderValue::from_bytes(&text).expect("hexadecimal digits are visible ASCII"))
    }

    /// Returns the ID in the header, if a trusted proxy sent it.
    fn from_proxy<B>(request: &Request<B>, proxies: &[IpAddr]) -> Option<RequestId> {
        let sent = request.headers().get(HEADER)?;
        let ConnectInfo(from) = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
        let is_plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let bytes = sent.as_bytes();
        let is_valid = (1..=ID_LEN_MAX).contains(&bytes.len()) && bytes.iter().all(is_plain);
        let is_trusted = proxies.contains(&from.ip().to_canonical());
        (is_valid && is_trusted).then(|| RequestId(sent.clone()))
    }

    fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Returns random bytes from a per-thread pool, because a system call costs more than the rest of
/// this module.
fn random_bytes() -> [u8; ID_BYTES] {
    thread_local! {
        static POOL: RefCell<(usize, [u8; POOL_BYTES])> = const { RefCell::new((0, [0; POOL_BYTES])) };
    }
    POOL.with_borrow_mut(|(left, pool)| {
        if *left == 0 {
            // If the system call fails, old bytes are reused, because IDs are not secrets.
            let _ = getrandom::fill(pool);
            *left = POOL_BYTES;
        }
        *left -= ID_BYTES;
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&pool[*left..*left + ID_BYTES]);
        id
    })
}

/// The logged fields of a request. Path and query are never logged, because they can contain
/// secrets.
#[derive(Debug)]
pub struct Current {
    id: RequestId,
    method: &'static str,
    route: OnceLock<MatchedPath>,
    account: OnceLock<u64>,
    client: Option<IpAddr>,
}

/// The fields of a request in a log line.
#[derive(Debug, Serialize)]
pub(super) struct RequestFields<'a> {
    pub id: &'a str,
    pub method: &'static str,
    pub route: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<u64>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Current>>> = const { RefCell::new(None) };
}

impl Current {
    pub(super) fn new(id: RequestId, method: &'static str, client: Option<IpAddr>) -> Arc<Current> {
        let (route, account) = (OnceLock::new(), OnceLock::new());
        Arc::new(Current { id, method, route, account, client })
    }

    /// The address of the client, for the security log.
    pub(super) fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// Makes this request the one of the current thread until the guard is dropped.
    pub fn enter(self: &Arc<Current>) -> Entered {
        Entered { before: CURRENT.replace(Some(Arc::clone(self))) }
    }

    /// Polls a future as work of this request, on whichever thread.
    pub async fn work<F: Future>(self: &Arc<Current>, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _entered = self.enter();
            future.as_mut().poll(cx)
        })
        .await
    }

    pub(super) fn set_route(&self, route: &MatchedPath) {
        // The route is set only once, because a request passes through one router.
        let _ = self.route.set(route.clone());
    }

    /// The id, as a header value.
    pub(super) fn id(&self) -> HeaderValue {
        self.id.0.clone()
    }

    /// The template of the route, or `-`.
    pub(super) fn route(&self) -> &str {
        self.route.get().map_or(NO_ROUTE, MatchedPath::as_str)
    }

    pub(super) fn line(&self) -> RequestFields<'_> {
        RequestFields {
            id: self.id.as_str(),
            method: self.method,
            route: self.route(),
            account: self.account.get().copied(),
        }
    }
}

/// Guard of [`Current::enter`].
#[must_use]
pub struct Entered {
    before: Option<Arc<Current>>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // The thread-local no longer exists when its thread is exiting.
        let _ = CURRENT.try_with(|current| current.replace(self.before.take()));
    }
}

/// Returns the request of this thread, to be entered on another thread.
pub fn current() -> Option<Arc<Current>> {
    CURRENT.with_borrow(Option::clone)
}

/// Calls `f` with the request of this thread, if any.
pub(super) fn with_current<T>(f: impl FnOnce(Option<&Current>) -> T) -> T {
    CURRENT.with_borrow(|current| f(current.as_deref()))
}

/// The account of this thread's request, once its key, session or secret address has been checked.
pub fn account() -> Option<AccountId> {
    with_current(|current| current?.account.get().copied().map(AccountId))
}

/// Whether the request of this thread is on one of these routes.
pub fn is_on(routes: &[&str]) -> bool {
    with_current(|current| current.is_some_and(|current| routes.contains(&current.route())))
}

/// Adds the account to later log lines of this request, and charges its work to the turns of that
/// account.
pub fn set_account(account: u64) {
    with_current(|current| {
        if let Some(current) = current {
            // The account is set only once, because a request belongs to one account.
            let _ = current.account.set(account);
        }
    });
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
    fn only_trusted_proxies_set_the_id() {
        let proxies = ["10.0.0.1".parse().expect("an address")];
        let given = |from: &str, id: &str| {
            RequestId::from_proxy(&request(from, id), &proxies).map(|id| id.as_str().to_owned())
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
    fn entered_requests_nest() {
        let id = || with_current(|it| it.map(|it| it.id.as_str().to_owned()));
        let [outer, inner] = ["outer", "inner"]
            .map(|name| Current::new(RequestId(HeaderValue::from_static(name)), "GET", None));
        assert_eq!(id(), None);
        let entered = outer.enter();
        let unwound = std::panic::catch_unwind(|| {
            let _entered = inner.enter();
            assert_eq!(id().as_deref(), Some("inner"));
            set_account(7);
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(unwound.is_err());
        assert_eq!(id().as_deref(), Some("outer"));
        drop(entered);
        assert_eq!(id(), None);
        assert_eq!((inner.line().account, outer.line().account), (Some(7), None));
        set_account(8);
    }
}
