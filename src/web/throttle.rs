//! How often somebody may try a password or make an account. Nobody is locked out: whoever waits
//! may try again, and who has logged in from an address before is not slowed down by what others
//! try from elsewhere. Kept in memory: a restart forgets it.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::accounts::Email;
use crate::web::peer::Peer;

/// Tries from one address, for whatever account: an office behind one address at nine o'clock.
const PER_ADDRESS: Limit = Limit { at_once: 40, then_every: Duration::from_secs(2) };
/// Tries for one account from one address: somebody who goes through the passwords they have.
const PER_PAIR: Limit = Limit { at_once: 20, then_every: Duration::from_secs(30) };
/// Tries for one account from all addresses that it was never logged in to from: 1,440 guesses a
/// day from a thousand machines, where a list of common passwords has more.
const PER_ACCOUNT: Limit = Limit { at_once: 30, then_every: Duration::from_secs(60) };
/// Accounts made from one address.
const SIGN_UPS: Limit = Limit { at_once: 10, then_every: Duration::from_secs(300) };
/// Pairs of account and address that are kept as known; with more, all are forgotten, which costs
/// their owners nothing but a place in [`PER_ACCOUNT`].
const KNOWN_MAX: usize = 200_000;
/// What is as new is dropped after so many checks.
const SWEEP_EVERY: u32 = 4_096;

struct Limit {
    at_once: u32,
    then_every: Duration,
}

/// Accounts and addresses are kept as keyed hashes: eight bytes whatever somebody sends.
type Limiter<C> =
    RateLimiter<u64, DashMapStateStore<u64>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// All limits.
pub struct Throttle<C: Clock = DefaultClock> {
    per_address: Limiter<C>,
    per_pair: Limiter<C>,
    per_account: Limiter<C>,
    sign_ups: Limiter<C>,
    /// Pairs that a log-in came from. Held for a look-up.
    known: Mutex<HashSet<u64>>,
    hasher: RandomState,
    clock: C,
    checks: AtomicU32,
}

/// Too many tries: the next one may be made after so many whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub seconds: u64,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle::new(DefaultClock::default())
    }
}

impl<C: Clock + Clone> Throttle<C> {
    fn new(clock: C) -> Throttle<C> {
        let limiter = |limit: Limit| {
            let at_once = NonZeroU32::new(limit.at_once).expect("limits are above 0");
            let quota = Quota::with_period(limit.then_every).expect("periods are above 0");
            RateLimiter::new(
                quota.allow_burst(at_once),
                DashMapStateStore::default(),
                clock.clone(),
            )
        };
        Throttle {
            per_address: limiter(PER_ADDRESS),
            per_pair: limiter(PER_PAIR),
            per_account: limiter(PER_ACCOUNT),
            sign_ups: limiter(SIGN_UPS),
            known: Mutex::default(),
            hasher: RandomState::new(),
            clock,
            checks: AtomicU32::new(0),
        }
    }

    /// A try of a password, counted whatever comes of it. The same for an address that has no
    /// account.
    ///
    /// # Errors
    /// [`Wait`].
    pub fn try_password(&self, peer: Peer, email: &Email) -> Result<(), Wait> {
        self.sweep();
        let pair = self.hash(&(peer, email));
        self.check(&self.per_address, self.hash(&peer))?;
        self.check(&self.per_pair, pair)?;
        if self.known().contains(&pair) {
            return Ok(());
        }
        self.check(&self.per_account, self.hash(email))
    }

    /// A password fitted: what others try elsewhere does not slow this pair down from now on.
    pub fn remember(&self, peer: Peer, email: &Email) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(self.hash(&(peer, email)));
    }

    /// An account that is to be made.
    ///
    /// # Errors
    /// [`Wait`].
    pub fn sign_up(&self, peer: Peer) -> Result<(), Wait> {
        self.sweep();
        self.check(&self.sign_ups, self.hash(&peer))
    }

    fn check(&self, limiter: &Limiter<C>, key: u64) -> Result<(), Wait> {
        limiter.check_key(&key).map_err(|refused| {
            let left = refused.wait_time_from(self.clock.now());
            // Up to the second that has begun: who waits this long is never a moment early.
            Wait { seconds: left.as_secs() + 1 }
        })
    }

    fn sweep(&self) {
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP_EVERY) {
            for limiter in [&self.per_address, &self.per_pair, &self.per_account, &self.sign_ups] {
                limiter.retain_recent();
            }
        }
    }

    fn hash(&self, what: &impl Hash) -> u64 {
        self.hasher.hash_one(what)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.known.lock().expect("no code panics holding this lock")
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn email(text: &str) -> Email {
        text.parse().expect("an address")
    }

    fn peer(last: u8) -> Peer {
        Peer::from([192, 0, 2, last])
    }

    /// Tries until one is refused.
    fn tries(throttle: &Throttle<FakeRelativeClock>, peer: Peer, email: &Email) -> u32 {
        (0..).find(|_| throttle.try_password(peer, email).is_err()).expect("all limits end")
    }

    #[test]
    fn one_address_has_few_tries_for_one_account_and_gets_more() {
        let clock = FakeRelativeClock::default();
        let throttle = Throttle::new(clock.clone());
        assert_eq!(tries(&throttle, peer(1), &email("ann@example.com")), PER_PAIR.at_once);
        let wait = throttle.try_password(peer(1), &email("ann@example.com"));
        let seconds = wait.expect_err("nothing has passed").seconds;
        assert!(seconds <= PER_PAIR.then_every.as_secs() + 1, "{seconds}");
        clock.advance(Duration::from_secs(seconds));
        assert_eq!(throttle.try_password(peer(1), &email("ann@example.com")), Ok(()), "no lock");
    }

    #[test]
    fn one_address_has_few_tries_for_all_accounts() {
        let throttle = Throttle::new(FakeRelativeClock::default());
        let mut made = 0;
        while throttle.try_password(peer(1), &email(&format!("a{made}@example.com"))).is_ok() {
            made += 1;
        }
        assert_eq!(made, PER_ADDRESS.at_once);
        assert_eq!(throttle.try_password(peer(2), &email("a@example.com")), Ok(()));
    }

    #[test]
    fn strangers_do_not_keep_an_owner_out() {
        let throttle = Throttle::new(FakeRelativeClock::default());
        let ann = email("ann@example.com");
        throttle.try_password(peer(1), &ann).expect("the first");
        throttle.remember(peer(1), &ann);
        let made: u32 = (2..=40).map(|last| tries(&throttle, peer(last), &ann)).sum();
        assert_eq!(made, PER_ACCOUNT.at_once - 1, "from everywhere together");
        assert_eq!(throttle.try_password(peer(1), &ann), Ok(()), "a known address goes on");
        assert_eq!(throttle.try_password(peer(99), &email("bob@example.com")), Ok(()));
    }

    #[test]
    fn accounts_are_made_slowly() {
        let clock = FakeRelativeClock::default();
        let throttle = Throttle::new(clock.clone());
        let made = (0..).find(|_| throttle.sign_up(peer(1)).is_err()).expect("it ends");
        assert_eq!(made, SIGN_UPS.at_once);
        assert_eq!(throttle.sign_up(peer(2)), Ok(()));
        clock.advance(SIGN_UPS.then_every);
        assert_eq!(throttle.sign_up(peer(1)), Ok(()));
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let clock = FakeRelativeClock::default();
        let throttle = Throttle::new(clock.clone());
        for number in 0..SWEEP_EVERY {
            let _ =
                throttle.try_password(peer((number % 250) as u8), &email(&format!("{number}@b")));
        }
        assert!(throttle.per_account.len() > 1_000);
        clock.advance(Duration::from_secs(3_600));
        throttle.try_password(peer(1), &email("a@b")).expect("long ago");
        assert!(throttle.per_account.len() <= 1, "{}", throttle.per_account.len());
    }
}
