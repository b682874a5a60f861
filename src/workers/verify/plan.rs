//! Plans which watched names to verify, in which order: one queue per server, computed from the last
//! observations and the index. Pure. No queue is stored, so a restart continues where the last run
//! ended.
//!
//! Names outside the index that were never observed come first, because their watchers have no
//! information at all; then names close to their release, the closest first; then all others, those
//! with the oldest observation first. Within each group, accounts take turns: an account with ten
//! thousand names does not delay one with three.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::accounts::{SampleDraw, Target};
use crate::index::NameFacts;
use crate::outbound::rdap;
use crate::vocab::day::Day;
use crate::vocab::evidence::Evidence;
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{Observation, RdapState};
use crate::vocab::rdap::{Bootstrap, RdapBase};
use crate::vocab::release_time::{Certainty, ReleaseTime};
use crate::vocab::stage::{Periods, Stage};
use crate::vocab::time::UnixMs;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Days before and after the computed release during which a name counts as near it; registries may
/// deviate from the date by some days.
pub const NEAR_DAYS: i32 = 7;
/// Interval for a name near its release, which may change within a day.
pub const NEAR_AGAIN_MS: u64 = 6 * HOUR_MS;
/// Minutes after the hour of a release at which the registry is asked. Until the first, it has nothing new
/// to say.
const AFTER_HOUR_MINUTES: [u64; 3] = [2, 10, 60];
/// Age of an observation that need not be renewed before the hour of a release.
const FRESH_MS: u64 = 24 * HOUR_MS;
/// Interval for a name in redemption, which may be restored on any day.
pub const REDEMPTION_AGAIN_MS: u64 = 24 * HOUR_MS;
/// Interval for any other name: a registration lasts a year or longer.
pub const REST_AGAIN_MS: u64 = 7 * 24 * HOUR_MS;
/// A registered name is verified by RDAP once in this many days. Otherwise DNS suffices while the name is
/// delegated. A delegation does not show the registrant, so without RDAP, a name that was dropped and
/// caught between two checks would count as kept.
pub const DNS_TRUSTED_DAYS: u16 = 14;

/// Urgency of a name, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Neither the index nor a registry has information on the name.
    External,
    /// Close to its release.
    Near,
    Rest,
}

/// The source to query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Query DNS, then RDAP if the name is no longer delegated.
    DnsFirst,
    /// Query only DNS, because the registry has no RDAP server.
    DnsOnly,
    Rdap,
}

/// A name to verify.
#[derive(Clone, Debug)]
pub struct Due {
    pub name: DomainName,
    pub urgency: Urgency,
    pub how: How,
    /// The RDAP server; `None` if its registry has none.
    pub base: Option<RdapBase>,
    /// The account whose turn the query uses.
    pub account: AccountId,
    pub drop: DropDays,
    /// The last observation.
    pub last: Option<Observation>,
    /// The release of a name of the random sample. The query is charged to the share of the sample.
    pub sampled: Option<Day>,
}

/// Days of the latest drop of a name in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropDays {
    pub dropped: Option<Day>,
    /// Its release, if a list states it. Otherwise it follows from the life cycle of the suffix, and the
    /// registry knows better.
    pub listed_release: Option<Day>,
}

impl DropDays {
    /// Returns the days of a name.
    pub fn of(name: &DomainName, facts: Option<&NameFacts>) -> DropDays {
        let Some(NameFacts { latest_drop: Some(dropped), release, .. }) = facts.copied() else {
            return DropDays::default();
        };
        let computed = Periods::for_tld(name.tld()).effective_release(dropped, None);
        let listed_release = release.map(|it| it.day).filter(|release| *release != computed);
        DropDays { dropped: Some(dropped), listed_release }
    }

    /// Returns what the list says about the release.
    pub fn evidence(self, today: Day) -> Option<Evidence> {
        match self.listed_release?.cmp(&today) {
            Ordering::Greater => Some(Evidence::ReleaseAhead),
            // Its hour may be ahead.
            Ordering::Equal => None,
            Ordering::Less => Some(Evidence::ReleasePast),
        }
    }
}

/// A due name with its watchers, and its sort key within its urgency (smallest first).
struct Candidate {
    due: Due,
    watchers: Vec<AccountId>,
    place: (i32, u64),
}

/// The time of a plan.
pub struct PlanTime {
    pub now: UnixMs,
    pub today: Day,
}

/// The queues of names to verify.
#[derive(Default)]
pub struct VerifyPlan {
    /// RDAP queries by [`server_key`].
    pub rdap: HashMap<String, VecDeque<Due>>,
    /// DNS queries.
    pub dns: VecDeque<Due>,
    /// RDAP queries about names of the random sample, which follow all others of their server.
    pub sample: HashMap<String, VecDeque<Due>>,
    /// New names of the sample.
    pub draws: Vec<SampleDraw>,
}

impl VerifyPlan {
    /// Computes the queues. `facts` returns the index's information on a name. `failures` returns the
    /// number of recent failed queries of a name, or `None` while it waits for a retry or is in flight.
    /// `turn` returns the account that had the last turn at a server (`None` for DNS).
    pub fn new(
        targets: Vec<Target>,
        bootstrap: &Bootstrap,
        time: &PlanTime,
        facts: impl Fn(&DomainName) -> Option<NameFacts>,
        failures: impl Fn(&DomainName) -> Option<u32>,
        turn: impl Fn(Option<&str>) -> Option<AccountId>,
    ) -> VerifyPlan {
        let mut by_server: HashMap<Option<String>, Vec<Candidate>> = HashMap::new();
        for target in targets {
            let facts = facts(&target.name);
            let Some((urgency, place)) = prioritise(&target, facts.as_ref(), time) else {
                continue;
            };
            let Some(failures) = failures(&target.name) else { continue };
            let servers = bootstrap.servers(&target.name);
            // After each failure, the next server is used: in RFC 9224 §3, servers are listed in no
            // order of preference.
            let base = servers.get(failures as usize % servers.len().max(1)).cloned();
            let drop = DropDays::of(&target.name, facts.as_ref());
            let how = match &base {
                None => How::DnsOnly,
                Some(_) if may_use_dns(&target, drop.dropped, time) => How::DnsFirst,
                Some(_) => How::Rdap,
            };
            let server = base.as_ref().filter(|_| how == How::Rdap).map(server_key);
            let Target { name, watchers, observation: last, .. } = target;
            let Some(&account) = watchers.first() else { continue };
            let due = Due { name, urgency, how, base, account, drop, last, sampled: None };
            by_server.entry(server).or_default().push(Candidate { due, watchers, place });
        }
        let mut plan = VerifyPlan::default();
        for (server, candidates) in by_server {
            let queue = in_order(candidates, turn(server.as_deref()));
            match server {
                Some(server) => drop(plan.rdap.insert(server, queue)),
                None => plan.dns = queue,
            }
        }
        plan
    }
}

impl VerifyPlan {
    pub fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.rdap.is_empty() && self.sample.is_empty()
    }
}

/// Returns the key of rates and limits: scheme, host and port of a base URL, since one host may serve
/// hundreds of suffixes.
pub fn server_key(base: &RdapBase) -> String {
    base.origin()
}

/// The urgency and sort key of a name; `None` if it is not due.
fn prioritise(
    target: &Target,
    facts: Option<&NameFacts>,
    time: &PlanTime,
) -> Option<(Urgency, (i32, u64))> {
    let seen = target.observation.filter(|_| !target.is_unverified());
    let (Some(seen), known) = (seen, facts) else {
        return Some(match facts {
            None => (Urgency::External, (0, target.added_at.get())),
            Some(facts) => match days_from_release(facts, None, time) {
                Some(days) => (Urgency::Near, (days, 0)),
                None => (Urgency::Rest, (0, 0)),
            },
        });
    };
    let days = known.and_then(|facts| days_from_release(facts, Some(seen.state), time));
    // Without a date in the index, the registry's status decides: pendingDelete lasts at most five
    // days (ICANN policy).
    let days = days.or((seen.state == RdapState::PendingDelete).then_some(0));
    let stage = known.and_then(|facts| facts.stage);
    let in_redemption = seen.state == RdapState::Redemption
        || stage == Some(Stage::Redemption) && !seen.state.is_held();
    let again_ms = match days {
        Some(_) => NEAR_AGAIN_MS,
        None if in_redemption => REDEMPTION_AGAIN_MS,
        None => REST_AGAIN_MS,
    };
    let by_hour = days.and(known).and_then(|facts| due_by_hour(&target.name, facts, seen.at, time));
    // If the clock was set back, names stay due.
    let is_due = by_hour.unwrap_or_else(|| time.now.get().abs_diff(seen.at.get()) >= again_ms);
    is_due.then(|| match days {
        Some(days) => (Urgency::Near, (days, seen.at.get())),
        None => (Urgency::Rest, (0, seen.at.get())),
    })
}

/// Whether a name is due because of the hour of its release; `None` if the hour does not decide.
fn due_by_hour(
    name: &DomainName,
    facts: &NameFacts,
    seen: UnixMs,
    time: &PlanTime,
) -> Option<bool> {
    let release = facts.release.filter(|_| facts.stage.is_some())?;
    let hour = ReleaseTime::of(name.tld(), release);
    let now = time.now.get();
    let has_passed = |at: u64| seen.get() < at && at <= now;
    let Some(at) = hour.at else {
        let end = UnixMs::from_instant(release.day.plus(1).start()).get();
        let [after, ..] = AFTER_HOUR_MINUTES;
        let is_over = hour.certainty == Certainty::Day && has_passed(end + after * MINUTE_MS);
        return is_over.then_some(true);
    };
    let moments = AFTER_HOUR_MINUTES.map(|minutes| at.get() + minutes * MINUTE_MS);
    let [first, .., last] = moments;
    if moments.into_iter().any(has_passed) {
        return Some(true);
    }
    // The day begins before the hour. A name that was not asked about for long is not left out.
    let is_fresh = first < seen.get() + FRESH_MS;
    let waits = time.today >= release.day && now < first && is_fresh;
    (waits || (first..last).contains(&now)).then_some(false)
}

/// Days between today and the release of a name near it. `None` for other names, and for names
/// observed as registered, which stay registered for a year.
fn days_from_release(facts: &NameFacts, seen: Option<RdapState>, time: &PlanTime) -> Option<i32> {
    let (stage, release) = facts.stage.zip(facts.release)?;
    let days = release.day.days_since(time.today).abs();
    let near = matches!(stage, Stage::PendingDelete | Stage::Catchable) || days <= NEAR_DAYS;
    (near && !seen.is_some_and(RdapState::is_held)).then_some(days)
}

/// Whether DNS may be queried instead of the registry: the name was observed as registered, nothing
/// indicates a change, and today is not the name's day for RDAP, which comes once in
/// [`DNS_TRUSTED_DAYS`].
///
/// The day for RDAP is derived from a hash of the name, so that it survives restarts and differs
/// between names.
fn may_use_dns(target: &Target, drop_date: Option<Day>, time: &PlanTime) -> bool {
    let Some(seen) = target.observation.filter(|seen| seen.state.is_held()) else { return false };
    let Some(seen_on) = Day::from_instant(seen.at.instant()) else { return false };
    let offset = (FxBuildHasher.hash_one(target.name.as_str()) >> 32) % u64::from(DNS_TRUSTED_DAYS);
    let turn = |day: Day| (u64::from(day.raw()) + offset) / u64::from(DNS_TRUSTED_DAYS);
    turn(seen_on) == turn(time.today)
        && drop_date.is_none_or(|dropped| dropped < seen_on)
        && (seen.registered_on.is_none() || rdap::held(seen.registered_on, drop_date) == seen.state)
}

/// Sorts by urgency; within an urgency, accounts take turns, starting after `turn`.
fn in_order(mut candidates: Vec<Candidate>, turn: Option<AccountId>) -> VecDeque<Due> {
    candidates.sort_by(|left, right| {
        let key = |it: &Candidate| (it.due.urgency, it.place);
        key(left).cmp(&key(right)).then_with(|| left.due.name.cmp(&right.due.name))
    });
    let mut queue = VecDeque::with_capacity(candidates.len());
    let mut rest = candidates.into_iter().peekable();
    while let Some(first) = rest.next() {
        let urgency = first.due.urgency;
        let mut alike = vec![first];
        while let Some(next) = rest.next_if(|next| next.due.urgency == urgency) {
            alike.push(next);
        }
        queue.extend(in_turns(alike, turn));
    }
    queue
}

/// Orders names round-robin by account. A name with several watchers uses the turn of the first of them.
fn in_turns(candidates: Vec<Candidate>, turn: Option<AccountId>) -> Vec<Due> {
    let mut by_account: BTreeMap<AccountId, VecDeque<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        for &account in &candidate.watchers {
            by_account.entry(account).or_default().push_back(at);
        }
    }
    let mut accounts: Vec<(AccountId, VecDeque<usize>)> = by_account.into_iter().collect();
    let after = accounts.partition_point(|&(account, _)| Some(account) <= turn);
    accounts.rotate_left(after);
    let mut left: Vec<Option<Due>> = candidates.into_iter().map(|it| Some(it.due)).collect();
    let mut queue = Vec::with_capacity(left.len());
    while !accounts.is_empty() {
        accounts.retain_mut(|(account, waiting)| {
            while let Some(at) = waiting.pop_front() {
                if let Some(due) = left[at].take() {
                    queue.push(Due { account: *account, ..due });
                    return true;
                }
            }
            false
        });
    }
    queue
}

#[cfg(test)]
mod tests;
