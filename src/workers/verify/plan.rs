//! What is to be verified, in which order: watched names with what was last seen of them and what
//! the index says in, a queue for each server out. Pure, and made anew whenever it is asked for: the
//! state is the queue, so a restart goes on where it ended.
//!
//! Names of the world outside that nobody has seen yet come first, because their watchers know
//! nothing of them; then names whose release is near, the nearest first; then the rest, the longest
//! unseen first. Within each of these, accounts take turns: one with ten thousand names does not
//! keep one with three waiting.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::accounts::Target;
use crate::index::NameFacts;
use crate::outbound::rdap;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{Observation, RdapState};
use crate::vocab::rdap::{Bootstrap, RdapBase};
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

const HOUR_MS: u64 = 3_600_000;
/// Days before and after the release of a name in which it is near: registries let names go some
/// days from what the calendar says.
pub const NEAR_DAYS: i32 = 7;
/// A name near its release changes within a day, and whoever waits for it wants to know.
pub const NEAR_AGAIN_MS: u64 = 6 * HOUR_MS;
/// A name in redemption may be restored on any day.
pub const REDEMPTION_AGAIN_MS: u64 = 24 * HOUR_MS;
/// Any other name: registrations last a year and longer.
pub const REST_AGAIN_MS: u64 = 7 * 24 * HOUR_MS;
/// A name that was seen to be held is asked for by RDAP once in so many days, and else by DNS as
/// long as it is delegated: a delegation does not tell whose it is, so a name that was dropped and
/// caught between two looks would pass for kept.
pub const DNS_TRUSTED_DAYS: u16 = 14;

/// How urgent, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Nobody who watches it knows anything of it: neither the index nor a registry told.
    External,
    /// Its release is near.
    Near,
    Rest,
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The DNS, and RDAP if the name is not delegated any more.
    DnsFirst,
    /// The DNS alone: its registry has no RDAP server.
    DnsOnly,
    Rdap,
}

/// A name to be asked about.
#[derive(Clone, Debug)]
pub struct Due {
    pub name: DomainName,
    pub urgency: Urgency,
    pub how: How,
    /// Where RDAP is asked; `None` without a server.
    pub base: Option<RdapBase>,
    /// Whose turn it takes.
    pub account: AccountId,
    /// The date of its latest drop.
    pub drop_date: Option<Day>,
    /// What was last seen.
    pub last: Option<Observation>,
}

/// A candidate, before accounts take turns: who waits for it, and its place within its urgency, the
/// smallest first.
struct Candidate {
    due: Due,
    watchers: Vec<AccountId>,
    place: (i32, u64),
}

/// What names are judged by.
pub struct Moment {
    pub now: UnixMs,
    pub today: Day,
}

/// The queues.
#[derive(Default)]
pub struct Plan {
    /// Questions for RDAP by [`server_of`].
    pub rdap: HashMap<String, VecDeque<Due>>,
    /// Questions for the DNS.
    pub dns: VecDeque<Due>,
}

impl Plan {
    /// Sorts out what is due. `facts` is what the index says of a name; `failures` how often a name
    /// could not be asked about lately, or `None` while it has to wait for the next try or is being
    /// asked about; `turn` whose turn it was last at a server (`None` for the DNS).
    pub fn new(
        targets: Vec<Target>,
        bootstrap: &Bootstrap,
        moment: &Moment,
        facts: impl Fn(&DomainName) -> Option<NameFacts>,
        failures: impl Fn(&DomainName) -> Option<u32>,
        turn: impl Fn(Option<&str>) -> Option<AccountId>,
    ) -> Plan {
        let mut by_server: HashMap<Option<String>, Vec<Candidate>> = HashMap::new();
        for target in targets {
            let facts = facts(&target.name);
            let Some((urgency, place)) = judge(&target, facts.as_ref(), moment) else { continue };
            let Some(failures) = failures(&target.name) else { continue };
            let servers = bootstrap.servers(&target.name);
            // The next one after each failure (RFC 9224 §3 lists them without an order of merit).
            let base = servers.get(failures as usize % servers.len().max(1)).cloned();
            let drop_date = facts.and_then(|facts| facts.latest_drop);
            let how = match &base {
                None => How::DnsOnly,
                Some(_) if is_spared(&target, drop_date, moment) => How::DnsFirst,
                Some(_) => How::Rdap,
            };
            let server = base.as_ref().filter(|_| how == How::Rdap).map(server_of);
            let Target { name, watchers, observation: last, .. } = target;
            let Some(&account) = watchers.first() else { continue };
            let due = Due { name, urgency, how, base, account, drop_date, last };
            by_server.entry(server).or_default().push(Candidate { due, watchers, place });
        }
        let mut plan = Plan::default();
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

impl Plan {
    /// Whether nothing is due.
    pub fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.rdap.is_empty()
    }
}

/// What rates and limits are counted by: scheme, host and port of a base URL. One host speaks for
/// hundreds of suffixes.
pub fn server_of(base: &RdapBase) -> String {
    base.origin()
}

/// Whether a name is due, how urgent it is and its place among such.
fn judge(
    target: &Target,
    facts: Option<&NameFacts>,
    moment: &Moment,
) -> Option<(Urgency, (i32, u64))> {
    let seen = target.observation.filter(|_| !target.is_unverified());
    let (Some(seen), known) = (seen, facts) else {
        return Some(match facts {
            None => (Urgency::External, (0, target.added_at.get())),
            Some(facts) => match days_from_release(facts, None, moment) {
                Some(days) => (Urgency::Near, (days, 0)),
                None => (Urgency::Rest, (0, 0)),
            },
        });
    };
    let days = known.and_then(|facts| days_from_release(facts, Some(seen.state), moment));
    // The registry's word counts where the index has none: five days at most (ICANN's policy).
    let days = days.or((seen.state == RdapState::PendingDelete).then_some(0));
    let stage = known.and_then(|facts| facts.stage).map(|(stage, _)| stage);
    let in_redemption = seen.state == RdapState::Redemption
        || stage == Some(Stage::Redemption) && !seen.state.is_held();
    let again_ms = match days {
        Some(_) => NEAR_AGAIN_MS,
        None if in_redemption => REDEMPTION_AGAIN_MS,
        None => REST_AGAIN_MS,
    };
    // A clock that was put back must not silence a name for ever.
    let is_due = moment.now.get().abs_diff(seen.at.get()) >= again_ms;
    is_due.then(|| match days {
        Some(days) => (Urgency::Near, (days, seen.at.get())),
        None => (Urgency::Rest, (0, seen.at.get())),
    })
}

/// Days between today and the release of a name that is near it; `None` for one that is not, or
/// that was seen to be held: its holder, old or new, has it for a year.
fn days_from_release(facts: &NameFacts, seen: Option<RdapState>, moment: &Moment) -> Option<i32> {
    let (stage, release) = facts.stage?;
    let days = release.days_since(moment.today).abs();
    let near = matches!(stage, Stage::PendingDelete | Stage::Catchable) || days <= NEAR_DAYS;
    (near && !seen.is_some_and(RdapState::is_held)).then_some(days)
}

/// Whether the DNS may answer in place of the registry: the name was seen to be held, nothing on
/// record says that this changed, and RDAP's turn, once in [`DNS_TRUSTED_DAYS`], has not come.
///
/// RDAP's days are told from the name, so that a restart knows them, and names take different ones.
fn is_spared(target: &Target, drop_date: Option<Day>, moment: &Moment) -> bool {
    let Some(seen) = target.observation.filter(|seen| seen.state.is_held()) else { return false };
    let Some(seen_on) = Day::from_instant(seen.at.instant()) else { return false };
    let offset = (FxBuildHasher.hash_one(target.name.as_str()) >> 32) % u64::from(DNS_TRUSTED_DAYS);
    let turn = |day: Day| (u64::from(day.raw()) + offset) / u64::from(DNS_TRUSTED_DAYS);
    turn(seen_on) == turn(moment.today)
        && drop_date.is_none_or(|dropped| dropped < seen_on)
        && (seen.registered_on.is_none() || rdap::held(seen.registered_on, drop_date) == seen.state)
}

/// The most urgent first, and within an urgency accounts in turns, beginning after `turn`.
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

/// Each account's first, then each account's second, and so on. A name that several watch takes the
/// turn of the first of them that comes to it.
fn in_turns(candidates: Vec<Candidate>, turn: Option<AccountId>) -> Vec<Due> {
    let mut of: BTreeMap<AccountId, VecDeque<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        for &account in &candidate.watchers {
            of.entry(account).or_default().push_back(at);
        }
    }
    let mut accounts: Vec<(AccountId, VecDeque<usize>)> = of.into_iter().collect();
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
