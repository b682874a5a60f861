//! Checks on demand, at registries and in a web archive. Requests wait here for the worker, which respects its rate
//! limits for each server. Results are cached for a few hours.
//!
//! An account sees only checks that it requested, since those of other accounts would reveal which
//! names they want. Only a fresh result is shared with an account that requests the same check: the
//! registry is not queried again, and the account pays as for a query.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;

/// Time for which a result counts as fresh and is returned instead of a new query.
const FRESH: Duration = Duration::from_secs(600);
/// Time after which a result is removed.
const KEPT: Duration = Duration::from_secs(6 * 3_600);
/// Maximum number of results kept.
const RESULTS_MAX: usize = 4_096;
/// Time after which a name without a result is given up. A node that does not lead has no worker.
const GIVEN_UP: Duration = Duration::from_secs(600);
/// Maximum number of waiting requests.
const WAITING_MAX: usize = 256;
/// Maximum number of names of a request.
pub const NAMES_MAX: usize = 100;
/// Checks per account and hour. All may come at once.
const PER_HOUR: NonZeroU32 = NonZeroU32::new(NAMES_MAX as u32).expect("above 0");

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    Seen(Observation),
    /// The registry sent no usable response, or asked the server to pause.
    Failed,
}

/// The account has used up its checks of this hour, or too many checks are waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Waiting requests, and the results of the last hours.
pub struct Checks<R = Checked> {
    state: Mutex<PendingChecks<R>>,
    limits: DefaultKeyedRateLimiter<AccountId>,
    asked: Notify,
    settled: watch::Sender<()>,
}

struct PendingChecks<R> {
    waiting: VecDeque<DomainName>,
    /// Names without a result yet. Results of other names would reveal who watches them.
    asked: HashMap<DomainName, Request>,
    /// Results of each name, oldest first. The accounts that requested an older one still see it.
    results: HashMap<DomainName, Vec<(R, Request)>>,
}

/// Who asked about a name, and when; of a result, when it came.
#[derive(Clone)]
struct Request {
    at: Instant,
    accounts: Vec<AccountId>,
}

impl<R> Default for Checks<R> {
    fn default() -> Checks<R> {
        let (waiting, asked, results) = (VecDeque::new(), HashMap::new(), HashMap::new());
        Checks {
            state: Mutex::new(PendingChecks { waiting, asked, results }),
            limits: RateLimiter::keyed(Quota::per_hour(PER_HOUR)),
            asked: Notify::new(),
            settled: watch::Sender::new(()),
        }
    }
}

impl<R: Copy> Checks<R> {
    /// Requests a check, unless a fresh result exists or the name is already waiting. Waits at most
    /// `wait` for the result.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn check(
        &self,
        account: AccountId,
        name: &DomainName,
        wait: Duration,
    ) -> Result<Option<R>, Refused> {
        let mut settled = self.settled.subscribe();
        if let Some(fresh) = self.begin(account, name)? {
            return Ok(Some(fresh));
        }
        let is_over =
            async { while self.is_waiting(account, name) && settled.changed().await.is_ok() {} };
        let is_over = timeout(wait, is_over).await.is_ok();
        Ok(if is_over { self.result(account, name) } else { None })
    }

    /// Requests a check, unless the name is already waiting; returns a fresh result instead if there is
    /// one.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn begin(&self, account: AccountId, name: &DomainName) -> Result<Option<R>, Refused> {
        let mut state = self.state();
        state.give_up();
        if let Some((checked, request)) = state.results.get_mut(name).and_then(|all| all.last_mut())
            && request.at.elapsed() < FRESH
        {
            self.join(request, account)?;
            return Ok(Some(*checked));
        }
        if let Some(request) = state.asked.get_mut(name) {
            self.join(request, account)?;
            return Ok(None);
        }
        if state.waiting.len() >= WAITING_MAX {
            return Err(Refused);
        }
        self.charge(account)?;
        let request = Request { at: Instant::now(), accounts: vec![account] };
        state.asked.insert(name.clone(), request);
        state.waiting.push_back(name.clone());
        drop(state);
        self.asked.notify_one();
        Ok(None)
    }

    /// Adds an account to those that see a check. If this were free, an account without checks left
    /// could find out which names others check.
    fn join(&self, request: &mut Request, account: AccountId) -> Result<(), Refused> {
        if !request.is_of(account) {
            self.charge(account)?;
            request.accounts.push(account);
        }
        Ok(())
    }

    fn charge(&self, account: AccountId) -> Result<(), Refused> {
        self.limits.check_key(&account).map_err(|_| Refused)
    }

    /// Returns true if a check of the name that `account` requested has no result yet.
    pub fn is_waiting(&self, account: AccountId, name: &DomainName) -> bool {
        let is_waiting =
            |request: &Request| request.is_of(account) && request.at.elapsed() < GIVEN_UP;
        self.state().asked.get(name).is_some_and(is_waiting)
    }

    /// Returns a receiver that changes whenever a check is settled.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.settled.subscribe()
    }

    /// Returns the last result for a name that `account` requested, if it is still kept.
    pub fn result(&self, account: AccountId, name: &DomainName) -> Option<R> {
        let state = self.state();
        let mut newest_first = state.results.get(name)?.iter().rev();
        let (checked, request) = newest_first.find(|(_, request)| request.is_of(account))?;
        (request.at.elapsed() < KEPT).then_some(*checked)
    }

    /// Returns once a name is waiting. For the worker.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Returns the waiting names. The worker calls this, and settles each of them.
    pub fn take(&self) -> Vec<DomainName> {
        self.state().waiting.drain(..).collect()
    }

    /// Stores the result of a name, if a check of it was requested.
    pub fn settle(&self, name: &DomainName, checked: R) {
        let mut state = self.state();
        let Some(Request { accounts, .. }) = state.asked.remove(name) else { return };
        if state.results.len() >= RESULTS_MAX {
            let is_fresh = |(_, request): &(R, Request)| request.at.elapsed() < FRESH;
            state.results.retain(|_, results| results.last().is_some_and(is_fresh));
        }
        if state.results.len() < RESULTS_MAX {
            let results = state.results.entry(name.clone()).or_default();
            results.retain(|(_, request)| request.at.elapsed() < KEPT);
            results.push((checked, Request { at: Instant::now(), accounts }));
        }
        drop(state);
        self.settled.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, PendingChecks<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> PendingChecks<R> {
    /// Removes names that have waited for too long.
    fn give_up(&mut self) {
        self.asked.retain(|_, request| request.at.elapsed() < GIVEN_UP);
        let asked = &self.asked;
        self.waiting.retain(|name| asked.contains_key(name));
    }
}

impl Request {
    fn is_of(&self, account: AccountId) -> bool {
        self.accounts.contains(&account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::evidence::EvidenceSet;
    use crate::vocab::observation::{LatestRegistration, ObservedBy, RdapState, RdapStatuses};
    use crate::vocab::time::UnixMs;

    const WAIT: Duration = Duration::from_secs(5);

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).expect("a name")
    }

    fn seen() -> Checked {
        let at = UnixMs::new(1_790_000_000_000).expect("an instant");
        let (state, source) = (RdapState::Available, ObservedBy::Rdap);
        let statuses = RdapStatuses::NONE;
        let evidence = EvidenceSet::default();
        Checked::Seen(Observation {
            state,
            at,
            registered_on: None,
            statuses,
            source,
            evidence,
            registration: LatestRegistration::default(),
        })
    }

    #[tokio::test]
    async fn a_fresh_result_needs_no_query() {
        let checks: Checks = Checks::default();
        let answer = async {
            checks.asked().await;
            assert_eq!(checks.take(), [name("a.com")]);
            checks.settle(&name("a.com"), seen());
        };
        let name = name("a.com");
        let asked = checks.check(AccountId(1), &name, WAIT);
        let (checked, ()) = tokio::join!(asked, answer);
        assert_eq!(checked, Ok(Some(seen())));
        assert_eq!(checks.check(AccountId(2), &name, WAIT).await, Ok(Some(seen())));
        assert_eq!(checks.take(), []);
        let of = [1, 2, 3].map(|account| checks.result(AccountId(account), &name));
        assert_eq!(of, [Some(seen()), Some(seen()), None], "those who asked");
    }

    #[tokio::test(start_paused = true)]
    async fn checks_of_other_accounts_change_nothing() {
        let (checks, name) = (Checks::<Checked>::default(), name("a.com"));
        let [one, other] = [1, 2].map(AccountId);
        let shown =
            || [one, other].map(|of| (checks.is_waiting(of, &name), checks.result(of, &name)));
        assert_eq!(checks.begin(one, &name), Ok(None));
        assert_eq!(shown(), [(true, None), (false, None)]);
        checks.settle(&name, seen());
        assert_eq!(shown(), [(false, Some(seen())), (false, None)]);
        tokio::time::advance(FRESH).await;
        assert_eq!(checks.begin(other, &name), Ok(None));
        assert_eq!(shown(), [(false, Some(seen())), (true, None)]);
        checks.settle(&name, Checked::Failed);
        assert_eq!(shown(), [(false, Some(seen())), (false, Some(Checked::Failed))]);
        assert_eq!(checks.begin(one, &name), Ok(Some(Checked::Failed)), "a fresh result");
        tokio::time::advance(KEPT).await;
        assert_eq!(shown(), [(false, None), (false, None)]);
    }

    /// A node that does not lead has no worker that takes names.
    #[tokio::test(start_paused = true)]
    async fn names_that_nobody_checks_are_given_up() {
        let checks: Checks = Checks::default();
        assert_eq!(checks.begin(AccountId(1), &name("a.com")), Ok(None));
        tokio::time::advance(GIVEN_UP / 2).await;
        assert!(checks.is_waiting(AccountId(1), &name("a.com")));
        tokio::time::advance(GIVEN_UP / 2).await;
        assert!(!checks.is_waiting(AccountId(1), &name("a.com")));
        assert_eq!(checks.begin(AccountId(1), &name("b.com")), Ok(None));
        assert_eq!(checks.take(), [name("b.com")]);
    }

    #[tokio::test]
    async fn checks_are_limited_and_others_results_are_not_kept() {
        let checks: Checks = Checks::default();
        checks.settle(&name("watched.com"), seen());
        assert_eq!(checks.result(AccountId(1), &name("watched.com")), None);
        for at in 0..PER_HOUR.get() {
            let name = name(&format!("a{at}.com"));
            assert_eq!(checks.check(AccountId(1), &name, Duration::ZERO).await, Ok(None));
        }
        let refused = checks.check(AccountId(1), &name("b.com"), Duration::ZERO).await;
        assert_eq!(refused, Err(Refused));
        assert_eq!(checks.check(AccountId(2), &name("b.com"), Duration::ZERO).await, Ok(None));
        // Neither a check of another account nor its result is free.
        assert_eq!(checks.begin(AccountId(1), &name("b.com")), Err(Refused));
        checks.settle(&name("b.com"), seen());
        assert_eq!(checks.begin(AccountId(1), &name("b.com")), Err(Refused));
        assert_eq!(checks.begin(AccountId(1), &name("a0.com")), Ok(None), "its own is free");
    }
}
