//! The request that a thread is working on: whatever is logged meanwhile is about that one.
//!
//! A span would do the same, but is written out for every request, though hardly any is ever logged:
//! what is kept here is what is there anyway.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use axum::extract::{ConnectInfo, MatchedPath};
use axum::http::{HeaderName, HeaderValue, Request};
use serde::Serialize;

/// The header that carries an id.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The route of what has none: unknown paths, and what was refused before a route was looked for.
const NOWHERE: &str = "-";
/// Characters of an id that a proxy may give.
const GIVEN_MAX: usize = 64;
/// Bytes of an id of ours: 128 bits, so that no two are ever equal.
const ID_BYTES: usize = 16;
/// Random bytes asked of the system at once.
const POOL_BYTES: usize = 32 * ID_BYTES;

/// The name of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    /// The name of `request`: what a proxy calls it, or a new one.
    pub(super) fn of<B>(request: &Request<B>, proxies: &[IpAddr]) -> RequestId {
        RequestId::given(request, proxies).unwrap_or_else(RequestId::random)
    }

    fn random() -> RequestId {
        let mut text = [0; 2 * ID_BYTES];
        hex::encode_to_slice(random_bytes(), &mut text).expect("two digits a byte");
        RequestId(HeaderValue::from_bytes(&text).expect("hexadecimal digits are visible ASCII"))
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

    fn as_str(&self) -> &str {
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

/// A request, as far as the log tells of it: never its path or its query, which can hold what opens
/// things.
#[derive(Debug)]
pub struct Current {
    id: RequestId,
    method: &'static str,
    route: OnceLock<MatchedPath>,
    account: OnceLock<u64>,
}

/// What a line of the log says of its request.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
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
    pub(super) fn new(id: RequestId, method: &'static str) -> Arc<Current> {
        Arc::new(Current { id, method, route: OnceLock::new(), account: OnceLock::new() })
    }

    /// Works on this request until what is given back goes.
    pub fn enter(self: &Arc<Current>) -> Entered {
        Entered { before: CURRENT.replace(Some(Arc::clone(self))) }
    }

    /// Says which route it is.
    pub(super) fn routed(&self, route: &MatchedPath) {
        // There is one router.
        let _ = self.route.set(route.clone());
    }

    /// Its id, for its answer.
    pub(super) fn id(&self) -> HeaderValue {
        self.id.0.clone()
    }

    /// Its route, or [`NOWHERE`].
    pub(super) fn route(&self) -> &str {
        self.route.get().map_or(NOWHERE, MatchedPath::as_str)
    }

    pub(super) fn line(&self) -> Line<'_> {
        Line {
            id: self.id.as_str(),
            method: self.method,
            route: self.route(),
            account: self.account.get().copied(),
        }
    }
}

/// Until this goes, its thread works on a request.
#[must_use]
pub struct Entered {
    before: Option<Arc<Current>>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Not there any more while its thread ends.
        let _ = CURRENT.try_with(|current| current.replace(self.before.take()));
    }
}

/// The request that this thread works on, to be entered on another thread.
pub fn current() -> Option<Arc<Current>> {
    CURRENT.with_borrow(Option::clone)
}

/// Calls `tell` with the request that this thread works on, if it does on any.
pub(super) fn with_current<T>(tell: impl FnOnce(Option<&Current>) -> T) -> T {
    CURRENT.with_borrow(|current| tell(current.as_deref()))
}

/// Whose request it is, for the lines that are logged about it from now on.
pub fn tell_account(account: u64) {
    with_current(|current| {
        if let Some(current) = current {
            // A request is of one account.
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
    fn a_thread_works_on_one_request_and_goes_back_to_the_one_before() {
        let id = || with_current(|it| it.map(|it| it.id.as_str().to_owned()));
        let [outer, inner] = ["outer", "inner"]
            .map(|name| Current::new(RequestId(HeaderValue::from_static(name)), "GET"));
        assert_eq!(id(), None);
        let entered = outer.enter();
        let unwound = std::panic::catch_unwind(|| {
            let _entered = inner.enter();
            assert_eq!(id().as_deref(), Some("inner"));
            tell_account(7);
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(unwound.is_err());
        assert_eq!(id().as_deref(), Some("outer"));
        drop(entered);
        assert_eq!(id(), None);
        assert_eq!((inner.line().account, outer.line().account), (Some(7), None));
        tell_account(8);
    }
}
