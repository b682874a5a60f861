//! The rate limit of requests without a valid key or session, per client network.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::state::{InMemoryState, NotKeyed, StateStore};
use governor::{Quota, RateLimiter};

use crate::edge::peer::Client;
use crate::service::error::ApiError;

/// Number of cells of the table, which takes half a megabyte for any number of networks. Networks
/// that share a cell share its limit. The hash has a random seed, so no client can choose the
/// network whose cell it shares.
const CELLS: usize = 1 << 16;

/// The rate limiter of visitors.
pub(super) struct Visitors {
    limiter: RateLimiter<IpAddr, Cells, DefaultClock>,
    per_minute: u32,
    /// Proxies name their clients in `X-Forwarded-For`; a request without it cannot be limited by
    /// address.
    proxies: Vec<IpAddr>,
}

impl Visitors {
    /// Creates a limit of `per_minute`, with bursts of half as many.
    pub(super) fn new(per_minute: u32, proxies: &[IpAddr]) -> Visitors {
        let quota =
            NonZeroU32::new(per_minute).map_or(Quota::per_minute(NonZeroU32::MIN), |limit| {
                let burst = NonZeroU32::new(per_minute / 2).unwrap_or(NonZeroU32::MIN);
                Quota::per_minute(limit).allow_burst(burst)
            });
        Visitors {
            limiter: RateLimiter::new(quota, Cells::new(), DefaultClock::default()),
            per_minute,
            proxies: proxies.to_vec(),
        }
    }

    /// Counts a request. Loopback and proxies are exempt, except for requests whose proxy does not
    /// report the client.
    ///
    /// # Errors
    /// 429 above the limit.
    pub(super) fn check(&self, client: Option<&Client>) -> Result<(), ApiError> {
        let Some(client) = client else { return Ok(()) };
        let address = client.address.to_canonical();
        let is_exempt = address.is_loopback() || self.proxies.contains(&address);
        if is_exempt && !client.is_hidden {
            return Ok(());
        }
        self.limiter.check_key(&client.network()).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            ApiError::TooManyVisits {
                per_minute: self.per_minute,
                // Rounded up, so that a client that waits this long does not retry too early.
                retry_after_s: wait.as_secs() + 1,
            }
        })
    }
}

/// The limiter states of all networks.
struct Cells {
    cells: Box<[InMemoryState]>,
    hasher: RandomState,
}

impl Cells {
    fn new() -> Cells {
        let cells = (0..CELLS).map(|_| InMemoryState::default()).collect();
        Cells { cells, hasher: RandomState::new() }
    }
}

impl StateStore for Cells {
    type Key = IpAddr;

    fn measure_and_replace<T, F, E>(&self, network: &IpAddr, f: F) -> Result<T, E>
    where
        F: Fn(Option<governor::nanos::Nanos>) -> Result<(T, governor::nanos::Nanos), E>,
    {
        let cell = self.hasher.hash_one(network) as usize % CELLS;
        self.cells[cell].measure_and_replace(&NotKeyed::NonKey, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> Client {
        let address = address.parse().expect("an address");
        Client { address, through_proxy: true, is_hidden: false }
    }

    #[test]
    fn each_network_has_its_own_limit() {
        let proxy = "10.0.0.1";
        let visitors = Visitors::new(20, &[proxy.parse().expect("an address")]);
        let allowed = |address: &str| {
            (0..100).filter(|_| visitors.check(Some(&client(address))).is_ok()).count()
        };
        assert_eq!(allowed("192.0.2.1"), 10);
        assert_eq!(allowed("::ffff:192.0.2.1"), 0);
        assert_eq!(allowed("2001:db8::1"), 10);
        assert_eq!(allowed("2001:db8::2"), 0);
        assert_eq!(allowed("127.0.0.1"), 100);
        assert_eq!(allowed(proxy), 100);
        let refused = visitors.check(Some(&client("192.0.2.1")));
        assert!(
            matches!(
                refused,
                Err(ApiError::TooManyVisits { per_minute: 20, retry_after_s: 1..=4 })
            ),
            "{refused:?}"
        );
    }
}
