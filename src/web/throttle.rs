//! Rate limits of password attempts and sign-ups. Accounts are never locked: attempts are allowed again
//! after a delay, and attempts from elsewhere do not slow down a network that has logged in before.
//! Limits are kept in memory, so a restart resets them.

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

use crate::accounts::{Attempt, Email};
use crate::peer::Peer;

/// Attempts per network for all accounts. Enough for an office behind one address to log in at nine
/// o'clock.
const PER_ADDRESS: Limit = Limit { burst: 40, refill_every: Duration::from_secs(2) };
/// Attempts per network and account. Enough for an owner to try all the passwords that they use.
const PER_PAIR: Limit = Limit { burst: 20, refill_every: Duration::from_secs(30) };
/// Attempts per account from all networks without an earlier login. A botnet gets at most 1,440
/// guesses a day, fewer than the entries of a list of common passwords.
const PER_ACCOUNT: Limit = Limit { burst: 30, refill_every: Duration::from_secs(60) };
/// Sign-ups per network.
const SIGN_UPS: Limit = Limit { burst: 10, refill_every: Duration::from_secs(300) };
/// Mails for sign-ups and resets to one mailbox, limited so that nobody can flood it.
const SIGN_UP_MAILS: Limit = Limit { burst: 3, refill_every: Duration::from_secs(4 * 3_600) };
/// Verification mails to one mailbox: as many as a single account may request, even if several
/// accounts share the mailbox.
const VERIFICATION_MAILS: Limit =
    Limit { burst: 5, refill_every: Duration::from_secs(24 * 3_600 / 5) };
/// Maximum remembered pairs of account and network. Above this number, all pairs are dropped;
/// [`PER_ACCOUNT`] then applies to each until its next login.
const KNOWN_MAX: usize = 200_000;
/// Checks between two removals of idle entries.
const SWEEP_EVERY: u32 = 4_096;

struct Limit {
    burst: u32,
    refill_every: Duration,
}

/// Keys are keyed hashes of accounts and networks, eight bytes each, whatever the length of the
/// input.
type Limiter<C> =
    RateLimiter<u64, DashMapStateStore<u64>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// All rate limits.
pub struct Throttle<C: Clock = DefaultClock> {
    per_address: Limiter<C>,
    per_pair: Limiter<C>,
    per_account: Limiter<C>,
    sign_ups: Limiter<C>,
    sign_up_mails: Limiter<C>,
    verification_mails: Limiter<C>,
    /// Pairs of account and network with a successful login. Locked for a lookup only.
    known: Mutex<HashSet<u64>>,
    hasher: RandomState,
    clock: C,
    checks: AtomicU32,
}

/// Error of a rate limit: seconds until the next attempt is allowed.
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
            let burst = NonZeroU32::new(limit.burst).expect("limits are above 0");
            let quota = Quota::with_period(limit.refill_every).expect("periods are above 0");
            RateLimiter::new(quota.allow_burst(burst), DashMapStateStore::default(), clock.clone())
        };
        Throttle {
            per_address: limiter(PER_ADDRESS),
            per_pair: limiter(PER_PAIR),
            per_account: limiter(PER_ACCOUNT),
            sign_ups: limiter(SIGN_UPS),
            sign_up_mails: limiter(SIGN_UP_MAILS),
            verification_mails: limiter(VERIFICATION_MAILS),
            known: Mutex::default(),
            hasher: RandomState::new(),
            clock,
            checks: AtomicU32::new(0),
        }
    }

    /// Counts a password attempt, successful or not, even for addresses without an account.
    ///
    /// # Errors
    /// [`Wait`] above a limit.
    pub fn try_password(&self, peer: Peer, email: &Email) -> Result<Attempt, Wait> {
        self.sweep();
        let attempt = self.attempt(peer, email);
        self.check(&self.per_address, attempt.network)?;
        self.check(&self.per_pair, self.hash(&(peer, email)))?;
        if !attempt.is_known {
            self.check(&self.per_account, self.hash(email))?;
        }
        Ok(attempt)
    }

    /// Creates a password attempt without counting it.
    pub fn attempt(&self, peer: Peer, email: &Email) -> Attempt {
        let is_known = self.known().contains(&self.hash(&(peer, email)));
        Attempt { network: self.hash(&peer), is_known }
    }

    /// Remembers a successful login, so that [`PER_ACCOUNT`] no longer applies to this pair.
    pub fn remember(&self, peer: Peer, email: &Email) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(self.hash(&(peer, email)));
    }

    /// Counts a sign-up.
    ///
    /// # Errors
    /// [`Wait`] above the limit.
    pub fn sign_up(&self, peer: Peer) -> Result<(), Wait> {
        self.sweep();
        self.check(&self.sign_ups, self.hash(&peer))
    }

    /// Counts a mail for a sign-up or a reset.
    ///
    /// # Errors
    /// [`Wait`] above the limit.
    pub fn sign_up_mail(&self, email: &Email) -> Result<(), Wait> {
        self.check(&self.sign_up_mails, self.hash(&email.mailbox()))
    }

    /// Counts a mail with a verification link.
    ///
    /// # Errors
    /// [`Wait`] above the limit.
    pub fn verification_mail(&self, email: &Email) -> Result<(), Wait> {
        self.check(&self.verification_mails, self.hash(&email.mailbox()))
    }

    fn check(&self, limiter: &Limiter<C>, key: u64) -> Result<(), Wait> {
        limiter.check_key(&key).map_err(|refused| {
            let left = refused.wait_time_from(self.clock.now());
            // Rounded up, so that a client that waits this long does not retry too early.
            Wait { seconds: left.as_secs() + 1 }
        })
    }

    fn sweep(&self) {
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP_EVERY) {
            for limiter in [
                &self.per_address,
                &self.per_pair,
                &self.per_account,
                &self.sign_ups,
                &self.sign_up_mails,
                &self.verification_mails,
            ] {
                limiter.retain_recent();
            }
        }
    }

    fn hash(&self, value: &impl Hash) -> u64 {
        self.hasher.hash_one(value)
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

    /// Number of attempts before one is refused.
    fn attempts(throttle: &Throttle<FakeRelativeClock>, peer: Peer, email: &Email) -> u32 {
        (0..).find(|_| throttle.try_password(peer, email).is_err()).expect("all limits end")
    }

    #[test]
    fn attempts_per_network_and_account_are_limited_and_refill() {
        let clock = FakeRelativeClock::default();
        let throttle = Throttle::new(clock.clone());
        assert_eq!(attempts(&throttle, peer(1), &email("ann@example.com")), PER_PAIR.burst);
        let wait = throttle.try_password(peer(1), &email("ann@example.com"));
        let seconds = wait.expect_err("nothing has passed").seconds;
        assert!(seconds <= PER_PAIR.refill_every.as_secs() + 1, "{seconds}");
        clock.advance(Duration::from_secs(seconds));
        assert!(throttle.try_password(peer(1), &email("ann@example.com")).is_ok(), "no lock");
    }

    #[test]
    fn attempts_per_network_are_limited() {
        let throttle = Throttle::new(FakeRelativeClock::default());
        let mut made = 0;
        while throttle.try_password(peer(1), &email(&format!("a{made}@example.com"))).is_ok() {
            made += 1;
        }
        assert_eq!(made, PER_ADDRESS.burst);
        assert!(throttle.try_password(peer(2), &email("a@example.com")).is_ok());
    }

    #[test]
    fn attempts_from_elsewhere_do_not_lock_out_a_known_network() {
        let throttle = Throttle::new(FakeRelativeClock::default());
        let ann = email("ann@example.com");
        throttle.try_password(peer(1), &ann).expect("the first");
        throttle.remember(peer(1), &ann);
        let made: u32 = (2..=40).map(|last| attempts(&throttle, peer(last), &ann)).sum();
        assert_eq!(made, PER_ACCOUNT.burst - 1, "from everywhere together");
        let known = throttle.try_password(peer(1), &ann).expect("a known network is let in");
        assert!(known.is_known);
        let other = throttle.try_password(peer(99), &email("bob@example.com")).expect("another");
        assert!(!other.is_known && other.network != known.network);
    }

    #[test]
    fn sign_ups_per_network_are_limited() {
        let clock = FakeRelativeClock::default();
        let throttle = Throttle::new(clock.clone());
        let made = (0..).find(|_| throttle.sign_up(peer(1)).is_err()).expect("it ends");
        assert_eq!(made, SIGN_UPS.burst);
        assert_eq!(throttle.sign_up(peer(2)), Ok(()));
        clock.advance(SIGN_UPS.refill_every);
        assert_eq!(throttle.sign_up(peer(1)), Ok(()));
    }

    #[test]
    fn idle_entries_are_removed() {
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
