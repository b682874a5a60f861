//! Verifies watched names with their registries and writes observations to the journal.
//!
//! A [`plan`] of the due names is computed from the state, at intervals and when a name is added to a
//! watchlist. There is no other queue, so a restart repeats only the queries that were in flight.
//! [`server`] limits the rate of queries, and `outbound::rdap` interprets responses. For registered
//! names, DNS is queried where that suffices.
//!
//! A 404 alone proves nothing ([`crate::vocab::availability`]): the server must have described a registered name
//! of the suffix within a day ([`trust`]), and the name servers of the suffix are asked as well.
//!
//! Names of the random sample ([`sample`]) are asked about when no other name waits for their server.

mod budget;
pub mod plan;
mod sample;
pub mod server;
mod trust;

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

use crate::accounts::{Store, WriteError};
use crate::facts::Value;
use crate::facts::published::{Gathered, GatheredRow};
use crate::index::filter::AsOf;
use crate::index::generation::live::LiveIndex;
use crate::index::storage::manifest::GenerationId;
use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::guard::Guard;
use crate::outbound::http::{Body, CallError, Client, Request};
use crate::outbound::parent::{Delegation, ParentError, Parents};
use crate::outbound::rdap::{self, RESPONSE_BYTES_MAX, Reply, Response, Unusable};
use crate::outbound::settings::{Sample, WhoisHosts};
use crate::outbound::whois::{self, WhoisError, WhoisServer};
use crate::service::checks::{Checked, Checks};
use crate::vocab::availability::{self, Finding};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::evidence::{Evidence, EvidenceSet};
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{
    LatestRegistration, Observation, ObservedBy, RdapState, RdapStatuses,
};
use crate::vocab::rdap::{Bootstrap, origin};
use crate::vocab::sample::SampleAnswer;
use crate::vocab::time::UnixMs;
use crate::workers::bootstrap::Registry;
use crate::workers::gather::{Batch, Rows};
use budget::{Budgets, Turn};
use plan::{DropDays, Due, How, PlanTime, Urgency, VerifyPlan};
use server::{Ended, Limits, Server};
use trust::{Control, Trust};

/// Interval between two plans.
const PLAN_EVERY: Duration = Duration::from_secs(5);
/// Minimum interval between two plans when names are added to watchlists.
const PLAN_GAP: Duration = Duration::from_millis(500);
/// Planning may use 1/N of a core's time, where N is this number.
const PLAN_SHARE: u32 = 50;
/// Maximum observations in one record.
const GROUP_MAX: usize = 100;
/// Maximum time that an observation waits for others to share its record.
const GROUP_WAIT: Duration = Duration::from_secs(1);
/// Maximum names in flight or not yet on disk; after a crash, they are queried again.
const UNWRITTEN_MAX: usize = 200;
/// Maximum DNS queries in flight.
const DNS_CONCURRENCY: usize = 16;
/// Maximum names that wait for a WHOIS server; others do without.
const WHOIS_WAITING_MAX: usize = 64;
/// Maximum redirects per query; registries need one.
const REDIRECTS_MAX: u8 = 3;
/// Number of servers above which the state of idle ones is dropped; more than the bootstrap
/// registry lists.
const SERVERS_MAX: usize = 1_000;
/// The first pause of a name whose query failed. It doubles each time.
const NAME_PAUSE_FIRST: Duration = Duration::from_secs(300);
/// Maximum pause of a name.
const NAME_PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Delay before retrying a failed write.
const WRITE_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Delay before retrying a refresh of the bootstrap registry that panicked.
const REFRESH_RETRY_AFTER: Duration = Duration::from_secs(3600);
const PANICKED: &str = "the query panicked";
/// Time within which sources must agree. A server may pause before it answers for the control.
const AGREE_WITHIN: Duration = Duration::from_secs(15 * 60);
/// Maximum time to finish queries in flight after the signal to stop.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The verification worker.
pub struct Verify {
    pub store: Store,
    pub live: Arc<LiveIndex>,
    /// `None` during a refresh.
    pub registry: Option<Box<Registry>>,
    pub client: Client,
    pub parents: Parents,
    /// `None` if WHOIS servers are not asked.
    pub whois: Option<WhoisServers>,
    pub clock: Clock,
    /// Checks requested by users.
    pub checks: Arc<Checks>,
    /// Days for which a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// Limits for each server.
    pub limits: Limits,
    /// Suffixes of the random sample; `None` without one.
    pub sample: Option<Sample>,
    /// Takes the registrations of names as facts; `None` if they are not kept.
    pub lives: Option<Rows>,
}

/// How WHOIS servers are reached.
pub struct WhoisServers {
    pub chosen: WhoisHosts,
    pub guard: Guard,
}

/// A query to an RDAP server.
struct RdapQuery {
    due: Due,
    url: Url,
    server: String,
    redirects: u8,
    /// The server and suffix of which this is the control: the name is known to be registered, and the
    /// query shows whether the server knows it.
    control_of: Option<(String, String)>,
}

/// A name about which sources are asked.
struct Sought {
    due: Due,
    /// The server that has no such name, if RDAP was asked.
    server: Option<String>,
    evidence: EvidenceSet,
    since: Instant,
}

/// The result of a task.
enum TaskResult {
    /// A plan, and the bootstrap registry that it used.
    Planned(Box<VerifyPlan>, Arc<Bootstrap>, Duration),
    Rdap(Box<RdapQuery>, Result<Reply, CallError>),
    Parent(Box<Sought>, Result<Delegation, ParentError>),
    Whois(Box<Sought>, WhoisServer, Result<whois::Answer, WhoisError>),
    Written(Answers, Result<(), WriteError>),
    Drawn(Result<(), WriteError>),
    Refreshed(Box<Registry>, Duration),
}

/// Answers to write.
#[derive(Clone, Default)]
struct Answers {
    observed: Vec<(DomainName, Observation)>,
    /// Answers about names of the random sample, each with the day of its release.
    sampled: Vec<(Day, DomainName, SampleAnswer)>,
}

/// The pause of a name whose query failed.
#[derive(Clone, Copy)]
struct Pause {
    until: Instant,
    failures: u32,
}

impl Verify {
    /// Verifies until `stop` is done, then finishes queries in flight.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let changed = self.store.watches_changed();
        let mut work = VerifyWorker::new(self, Instant::now());
        work.run(&changed, stop).await;
        work.finish().await;
    }
}

/// The state of the worker.
struct VerifyWorker {
    verify: Verify,
    bootstrap: Arc<LiveBootstrap>,
    refresh_at: Instant,
    /// Whether any name was ever due. Until a name is due, the bootstrap registry is not refreshed.
    has_names: bool,
    waits_for_registry: bool,
    plan: VerifyPlan,
    /// Queries that precede the plan, by server: redirects, and names that DNS could not decide.
    ahead: HashMap<String, VecDeque<RdapQuery>>,
    servers: HashMap<String, Server>,
    trust: Trust,
    /// Names that wait for the control of their server and suffix.
    uncontrolled: HashMap<(String, String), Vec<Sought>>,
    /// Names about which the DNS is asked next.
    confirming: VecDeque<Sought>,
    /// Names about which a WHOIS server is asked once it may be.
    whois_waiting: VecDeque<(Sought, WhoisServer)>,
    budgets: Budgets,
    /// Queries in flight.
    in_flight: usize,
    /// DNS queries in flight.
    dns_in_flight: usize,
    dns_turn: Option<AccountId>,
    /// Names that are in flight, next in line, or waiting for their observation to be stored.
    busy: HashSet<DomainName>,
    /// Names that left `busy` during planning; the plan may still contain them.
    settled: Vec<DomainName>,
    pauses: HashMap<DomainName, Pause>,
    /// Names of the random sample that got no answer, until they are asked about again.
    rests: HashMap<DomainName, Instant>,
    /// The day and generation from which names were drawn last.
    drew: Option<(Day, GenerationId)>,
    planning: bool,
    plan_at: Instant,
    plan_not_before: Instant,
    /// Names whose check was requested.
    asked: Vec<DomainName>,
    answers: Answers,
    /// Latest time at which to write the answers.
    write_at: Option<Instant>,
    /// Number of answers being written.
    writing: usize,
    tasks: JoinSet<TaskResult>,
}

impl VerifyWorker {
    fn new(verify: Verify, now: Instant) -> VerifyWorker {
        let registry = verify.registry.as_ref().expect("no refresh before the start");
        let refresh_at = now + registry.due_in();
        VerifyWorker {
            bootstrap: registry.live(),
            verify,
            refresh_at,
            has_names: false,
            // A registry older than a day is refreshed before its servers are queried.
            waits_for_registry: refresh_at <= now,
            plan: VerifyPlan::default(),
            ahead: HashMap::new(),
            servers: HashMap::new(),
            trust: Trust::default(),
            uncontrolled: HashMap::new(),
            confirming: VecDeque::new(),
            whois_waiting: VecDeque::new(),
            budgets: Budgets::default(),
            in_flight: 0,
            dns_in_flight: 0,
            dns_turn: None,
            busy: HashSet::new(),
            settled: Vec::new(),
            pauses: HashMap::new(),
            rests: HashMap::new(),
            drew: None,
            planning: false,
            plan_at: now,
            plan_not_before: now,
            asked: Vec::new(),
            answers: Answers::default(),
            write_at: None,
            writing: 0,
            tasks: JoinSet::new(),
        }
    }

    async fn run(&mut self, changed: &Notify, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let checks = Arc::clone(&self.verify.checks);
        loop {
            let now = Instant::now();
            self.start_refresh(now);
            self.start_plan(now);
            self.start_write(now);
            self.dispatch(now);
            let wake = self.wake_at(now);
            tokio::select! {
                () = &mut stop => return,
                Some(done) = self.tasks.join_next() => self.take(done),
                () = checks.asked() => self.has_names = true,
                () = changed.notified() => self.plan_at = self.plan_not_before,
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Finishes queries in flight and writes their observations.
    async fn finish(&mut self) {
        let deadline = Instant::now() + STOP_MAX;
        while let Ok(Some(done)) = timeout_at(deadline, self.tasks.join_next()).await {
            self.take(done);
            if self.answers.len() >= GROUP_MAX {
                self.start_write(Instant::now());
            }
        }
        self.tasks.abort_all();
        let answers = std::mem::take(&mut self.answers);
        if let Err(err) = answers.write(&self.verify.store).await {
            tracing::warn!(error = %err, "cannot write the last observations");
        }
    }

    fn take(&mut self, done: Result<TaskResult, tokio::task::JoinError>) {
        let now = Instant::now();
        match done {
            Ok(TaskResult::Planned(plan, bootstrap, took)) => {
                self.adopt(*plan, &bootstrap, took, now)
            }
            Ok(TaskResult::Rdap(ask, reply)) => self.take_rdap(*ask, reply, now),
            Ok(TaskResult::Parent(sought, answer)) => self.take_parent(*sought, answer, now),
            Ok(TaskResult::Whois(sought, server, answer)) => {
                self.take_whois(*sought, &server, answer, now);
            }
            Ok(TaskResult::Written(rows, outcome)) => self.take_written(rows, outcome, now),
            Ok(TaskResult::Drawn(Ok(()))) => self.plan_at = self.plan_not_before,
            Ok(TaskResult::Drawn(Err(err))) => {
                tracing::warn!(error = %err, "cannot write drawn names; trying again");
                self.drew = None;
            }
            Ok(TaskResult::Refreshed(registry, again)) => {
                self.verify.registry = Some(registry);
                self.refresh_at = now + again;
                self.waits_for_registry = false;
                // The plan may use servers that have changed.
                self.plan = VerifyPlan::default();
                self.plan_at = now;
            }
            // A plan or a write that panicked; queries and refreshes report their panics.
            Err(err) => {
                tracing::error!(error = %err, "a verification task panicked");
                (self.planning, self.writing) = (false, 0);
            }
        }
    }
}

// Methods that start tasks.
impl VerifyWorker {
    fn start_refresh(&mut self, now: Instant) {
        if self.refresh_at > now || !self.has_names {
            return;
        }
        if let Some(mut registry) = self.verify.registry.take() {
            let client = self.verify.client.clone();
            self.tasks.spawn(async move {
                let again = contained(registry.refresh(&client)).await;
                TaskResult::Refreshed(registry, again.unwrap_or(REFRESH_RETRY_AFTER))
            });
        }
    }

    fn start_plan(&mut self, now: Instant) {
        if self.planning || self.plan_at > now {
            return;
        }
        self.planning = true;
        // A newly watched name makes the next plan due earlier.
        self.plan_at = now + PLAN_EVERY;
        let (store, index) = (self.verify.store.clone(), self.verify.live.current());
        let (clock, catch_days) = (self.verify.clock, self.verify.catch_days);
        let bootstrap = self.bootstrap.current();
        self.pauses.retain(|_, pause| pause.until + NAME_PAUSE_MAX > now);
        let (pauses, busy) = (self.pauses.clone(), self.busy.clone());
        let turns = self.servers.iter().map(|(name, server)| (name.clone(), server.turn));
        let (turns, dns_turn) = (turns.collect::<HashMap<_, _>>(), self.dns_turn);
        self.rests.retain(|_, until| *until > now);
        let (sample, rests) = (self.verify.sample.clone(), self.rests.clone());
        let (today, generation) = (self.verify.clock.today(), index.manifest().generation);
        let draws = sample.is_some() && self.drew != Some((today, generation));
        self.drew = Some((today, generation));
        let per_second = self.verify.limits.per_second;
        self.tasks.spawn_blocking(move || {
            let instant = clock.now();
            let today = Day::from_instant(instant).unwrap_or_else(|| clock.today());
            let of_index = AsOf { today, catch_days };
            let mut plan = VerifyPlan::new(
                store.verification_targets(),
                &bootstrap,
                &PlanTime { now: UnixMs::from_instant(instant), today },
                |name| index.facts(name, of_index),
                |name| match pauses.get(name) {
                    _ if busy.contains(name) => None,
                    Some(pause) => (pause.until <= now).then_some(pause.failures),
                    None => Some(0),
                },
                |server| server.map_or(dns_turn, |server| turns.get(server).copied().flatten()),
            );
            if let Some(sample) = sample {
                let is_ready =
                    |name: &DomainName| !busy.contains(name) && !rests.contains_key(name);
                let facts = |name: &DomainName| index.facts(name, of_index);
                plan.sample =
                    sample::queues(store.sample_targets(today), &bootstrap, facts, is_ready);
                let mut seed = [0; 32];
                if draws && getrandom::fill(&mut seed).is_ok() {
                    let of = (&sample, &*bootstrap);
                    let drawn = |on| store.drawn(on);
                    plan.draws = sample::draw(&index, of, per_second, today, &seed, drawn);
                }
            }
            TaskResult::Planned(Box::new(plan), bootstrap, now.elapsed())
        });
    }

    fn adopt(
        &mut self,
        mut plan: VerifyPlan,
        bootstrap: &Arc<Bootstrap>,
        took: Duration,
        now: Instant,
    ) {
        self.planning = false;
        self.has_names |= !plan.is_empty();
        let draws = std::mem::take(&mut plan.draws);
        if !draws.is_empty() {
            let store = self.verify.store.clone();
            self.tasks.spawn(async move { TaskResult::Drawn(store.record_draws(draws).await) });
        }
        self.plan = plan;
        let settled: HashSet<DomainName> = self.settled.drain(..).collect();
        let fresh = |due: &Due| !settled.contains(&due.name);
        let queues = self.plan.rdap.values_mut().chain(self.plan.sample.values_mut());
        queues.for_each(|queue| queue.retain(fresh));
        self.plan.dns.retain(fresh);
        self.plan_not_before = now + PLAN_GAP.max(took * PLAN_SHARE);
        // A plan requested during planning is still due.
        self.plan_at = if self.plan_at <= now {
            self.plan_not_before
        } else {
            now + PLAN_EVERY.max(took * PLAN_SHARE)
        };
        if !Arc::ptr_eq(bootstrap, &self.bootstrap.current()) {
            // The plan uses servers that have changed.
            self.plan = VerifyPlan::default();
            self.plan_at = now;
        }
        self.ahead.retain(|_, queue| !queue.is_empty());
        self.trust.prune(now);
        self.expire_controls(now);
        // Only a few hundred registries exist, but redirects can lead to any number of hosts.
        if self.servers.len() > SERVERS_MAX {
            self.servers.retain(|_, server| !server.is_idle(now));
        }
        tracing::debug!(
            rdap = self.plan.rdap.values().map(VecDeque::len).sum::<usize>(),
            dns = self.plan.dns.len(),
            ?took,
            "planned verification"
        );
    }

    fn start_write(&mut self, now: Instant) {
        let due = self.write_at.is_some_and(|at| at <= now) || self.answers.len() >= GROUP_MAX;
        if self.writing > 0 || !due || self.answers.is_empty() {
            return;
        }
        let rows = self.answers.take_group();
        self.writing = rows.len();
        self.write_at = (!self.answers.is_empty()).then_some(now + GROUP_WAIT);
        let store = self.verify.store.clone();
        self.tasks.spawn(async move {
            let outcome = rows.clone().write(&store).await;
            TaskResult::Written(rows, outcome)
        });
    }

    fn take_written(&mut self, rows: Answers, outcome: Result<(), WriteError>, now: Instant) {
        self.writing = 0;
        if let Err(err) = outcome {
            tracing::warn!(error = %err, "cannot write observations; trying again");
            self.answers.put_back(rows);
            self.write_at = Some(now + WRITE_RETRY_AFTER);
            return;
        }
        for name in rows.into_names() {
            self.release(name);
        }
    }

    /// Releases a name for the next plan. A plan in progress may already contain the name.
    fn release(&mut self, name: DomainName) {
        self.busy.remove(&name);
        if self.planning {
            self.settled.push(name);
        }
    }

    /// Sends all queries that are permitted now.
    fn dispatch(&mut self, now: Instant) {
        if self.waits_for_registry {
            return;
        }
        self.start_checks(now);
        while self.dns_in_flight < DNS_CONCURRENCY
            && let Some(sought) = self.confirming.pop_front()
        {
            self.ask_parent(sought);
        }
        self.dispatch_whois(now);
        while self.has_room() && self.dns_in_flight < DNS_CONCURRENCY {
            let Some(due) = self.plan.dns.pop_front() else { break };
            if self.busy.insert(due.name.clone()) {
                self.dns_turn = Some(due.account);
                self.ask_parent(Sought::new(due, now));
            }
        }
        for name in self.waiting() {
            while self.may_ask(&name) && self.ready_at(&name, now).is_some_and(|at| at <= now) {
                let Some(ask) = self.next_query(&name) else { break };
                self.ask_rdap(ask, now);
            }
        }
    }

    /// Queues requested checks, before the plan of their servers. A busy name waits, because the
    /// result of its current query may predate the request.
    fn start_checks(&mut self, now: Instant) {
        self.asked.extend(self.verify.checks.take());
        if self.asked.is_empty() {
            return;
        }
        let (bootstrap, index) = (self.bootstrap.current(), self.verify.live.current());
        let (today, catch_days) = (self.verify.clock.today(), self.verify.catch_days);
        for name in std::mem::take(&mut self.asked) {
            if self.busy.contains(&name) {
                self.asked.push(name);
                continue;
            }
            if self.pauses.get(&name).is_some_and(|pause| pause.until > now) {
                self.verify.checks.settle(&name, Checked::Failed);
                continue;
            }
            let base = bootstrap.servers(&name).first().cloned();
            let facts = index.facts(&name, AsOf { today, catch_days });
            let drop = DropDays::of(&name, facts.as_ref());
            let last = self.verify.store.observations([&name]).pop().flatten();
            let (account, urgency) = (AccountId(0), Urgency::External);
            let how = if base.is_some() { How::Rdap } else { How::DnsOnly };
            let sampled = None;
            let due = Due { name: name.clone(), urgency, how, base, account, drop, last, sampled };
            self.busy.insert(name);
            match RdapQuery::first(&due) {
                None => self.confirming.push_back(Sought::new(due, now)),
                Some(ask) => self.ahead.entry(ask.server.clone()).or_default().push_front(ask),
            }
        }
    }

    /// Whether another name may be in flight.
    fn has_room(&self) -> bool {
        let waiting =
            self.uncontrolled.values().map(Vec::len).sum::<usize>() + self.confirming.len();
        let waiting = waiting + self.whois_waiting.len();
        self.in_flight + waiting + self.answers.len() + self.writing < UNWRITTEN_MAX
    }

    /// Whether the next query for a server may be sent. Redirects and controls need no room: the names
    /// that wait for them would keep it forever.
    fn may_ask(&self, server: &str) -> bool {
        let is_begun = |queue: &VecDeque<RdapQuery>| queue.iter().any(RdapQuery::is_begun);
        self.has_room() || self.ahead.get(server).is_some_and(is_begun)
    }

    /// The servers with waiting queries.
    fn waiting(&self) -> Vec<String> {
        let ahead = self.ahead.iter().filter(|(_, queue)| !queue.is_empty());
        let planned = self.plan.rdap.iter().chain(&self.plan.sample);
        let planned = planned.filter(|(_, queue)| !queue.is_empty());
        let names: HashSet<&String> =
            ahead.map(|(name, _)| name).chain(planned.map(|(name, _)| name)).collect();
        names.into_iter().cloned().collect()
    }

    /// The time from which the next of the queries that wait for a server may be sent.
    fn ready_at(&mut self, name: &str, now: Instant) -> Option<Instant> {
        let has_any = |queue: Option<bool>| queue == Some(false);
        let is_watched = has_any(self.ahead.get(name).map(VecDeque::is_empty))
            || has_any(self.plan.rdap.get(name).map(VecDeque::is_empty));
        let server = self.server(name, now);
        if is_watched { server.ready_at() } else { server.sample_ready_at() }
    }

    fn server(&mut self, name: &str, now: Instant) -> &mut Server {
        let limits = self.verify.limits;
        self.servers.entry(name.to_owned()).or_insert_with(|| Server::new(limits, now))
    }

    /// Takes the next query for a server; its name is busy from then on. Names that DNS could not decide
    /// precede others of the same urgency, but not more urgent ones. Otherwise a failing resolver would put
    /// all of them first.
    fn next_query(&mut self, server: &str) -> Option<RdapQuery> {
        let has_room = self.has_room();
        let ahead = self.ahead.get_mut(server);
        if !has_room {
            let queue = ahead?;
            let at = queue.iter().position(RdapQuery::is_begun)?;
            return queue.remove(at);
        }
        let planned = self.plan.rdap.get_mut(server);
        let next = planned.as_ref().and_then(|queue| queue.front());
        let goes_first = |ask: &RdapQuery| {
            ask.is_begun() || next.is_none_or(|next| ask.due.urgency <= next.urgency)
        };
        if let Some(ahead) = ahead.filter(|queue| queue.front().is_some_and(goes_first)) {
            return ahead.pop_front();
        }
        let sample = self.plan.sample.get_mut(server);
        let is_left = planned.as_ref().is_some_and(|queue| !queue.is_empty());
        let queue = planned.filter(|_| is_left).or(sample)?;
        while let Some(due) = queue.pop_front() {
            if let Some(ask) = RdapQuery::first(&due).filter(|_| self.busy.insert(due.name)) {
                return Some(ask);
            }
        }
        None
    }

    fn ask_rdap(&mut self, ask: RdapQuery, now: Instant) {
        let server = self.server(&ask.server, now);
        server.begin(now);
        match ask.due.sampled {
            Some(_) => server.charge_sample(now),
            None => server.turn = Some(ask.due.account),
        }
        self.in_flight += 1;
        let (client, clock) = (self.verify.client.clone(), self.verify.clock);
        self.tasks.spawn(async move {
            let reply = contained(ask_server(&client, ask.url.clone(), &ask.due.name, clock)).await;
            let reply = reply.unwrap_or_else(|| Err(CallError::BadRequest(PANICKED.to_owned())));
            TaskResult::Rdap(Box::new(ask), reply)
        });
    }

    fn ask_parent(&mut self, sought: Sought) {
        self.in_flight += 1;
        self.dns_in_flight += 1;
        let parents = self.verify.parents.clone();
        self.tasks.spawn(async move {
            let answer = contained(parents.ask(&sought.due.name)).await;
            let answer = answer.unwrap_or_else(|| Err(ParentError::Unclear(PANICKED.to_owned())));
            TaskResult::Parent(Box::new(sought), answer)
        });
    }

    /// Returns when to wake up if no task ends.
    fn wake_at(&mut self, now: Instant) -> Instant {
        let mut wake = now + PLAN_EVERY;
        if !self.planning {
            wake = wake.min(self.plan_at);
        }
        if self.verify.registry.is_some() && self.has_names {
            wake = wake.min(self.refresh_at);
        }
        if let Some(at) = self.write_at.filter(|_| self.writing == 0) {
            wake = wake.min(at);
        }
        for (_, server) in &self.whois_waiting {
            if let Turn::Later(Some(at)) = self.budgets.turn(&server.key(), now) {
                wake = wake.min(at);
            }
        }
        if !self.waits_for_registry {
            for name in self.waiting() {
                if self.may_ask(&name) {
                    wake = self.ready_at(&name, now).map_or(wake, |at| wake.min(at));
                }
            }
        }
        wake
    }
}

// Methods that handle the results of tasks.
impl VerifyWorker {
    fn take_rdap(&mut self, ask: RdapQuery, reply: Result<Reply, CallError>, now: Instant) {
        self.in_flight -= 1;
        let ended = match &reply {
            Ok(Reply::NotNow(wait)) => Ended::NotNow(*wait),
            Ok(Reply::Refused) => Ended::NotNow(None),
            Ok(Reply::Failed(_)) | Err(_) => Ended::Failed,
            Ok(_) => Ended::Answered,
        };
        metrics::counter!("dropdex_rdap_answers_total", "outcome" => outcome(&reply)).increment(1);
        if let Some(pause) = self.server(&ask.server, now).end(ended, now) {
            let RdapQuery { server, .. } = &ask;
            tracing::warn!(server, ?pause, ?ended, "RDAP server paused after errors");
        }
        if let Ok(Reply::Elsewhere(location)) = &reply {
            return self.follow(ask, location, now);
        }
        if let Some(of) = ask.control_of.clone() {
            return self.take_control(of, &ask, reply, now);
        }
        match reply {
            Ok(Reply::Found(found)) => {
                self.trust.controlled(&ask.server, ask.due.name.tld(), true, now);
                let state = rdap::derive(&found, ask.due.drop.dropped);
                let evidence = match state {
                    RdapState::Reserved => Evidence::RdapReserved,
                    _ => Evidence::RdapFound,
                };
                let evidence = EvidenceSet::default().with(evidence);
                let seen = self.seen(state, ObservedBy::Rdap, evidence);
                let rdap::Registration { statuses, registered_on, latest: registration, .. } =
                    found;
                self.keep_life(&ask.due, state, registered_on);
                let seen = Observation { statuses, registered_on, registration, ..seen };
                self.answer(ask.due, seen, now);
            }
            Ok(Reply::NotFound) => self.missing(ask, now),
            Ok(Reply::Reserved) => {
                let evidence = EvidenceSet::default().with(Evidence::RdapReserved);
                let seen = self.seen(RdapState::Reserved, ObservedBy::Rdap, evidence);
                self.answer(ask.due, seen, now);
            }
            // The server's limit was reached, which does not count as a failure of the name. The
            // next plan contains the name again.
            Ok(Reply::NotNow(_)) => self.postpone(ask.due),
            Ok(Reply::Refused) => self.pause(ask.due, &ask.server, "access denied", now),
            Ok(Reply::Failed(status)) => {
                if self.trust.answered(&ask.server, false, now) {
                    self.distrust(&ask.server, "404 and failures in turn");
                }
                self.pause(ask.due, &ask.server, &format!("HTTP status {status}"), now);
            }
            Ok(Reply::Unusable(reason)) => self.unusable(ask, &reason, now),
            Err(CallError::TooLarge(_)) => self.unusable(ask, &Unusable::TooLong, now),
            Err(CallError::Coding(err)) => {
                self.unusable(ask, &Unusable::Coding(err.to_string()), now);
            }
            Ok(Reply::Elsewhere(_)) => {}
            Err(err) => self.pause(ask.due, &ask.server, &err.to_string(), now),
        }
    }

    /// Keeps the registration of a name as a fact. Once the name dropped and was registered again, the fact is still
    /// about the life that ended.
    fn keep_life(&self, due: &Due, state: RdapState, registered_on: Option<Day>) {
        let is_kept = due.sampled.is_none() && state != RdapState::RegisteredAgain;
        let day = registered_on.filter(|_| is_kept);
        let Some((lives, day)) = self.verify.lives.as_ref().zip(day) else { return };
        let as_of = self.verify.clock.today();
        let values = vec![Some(Value::Date(day))];
        let rows = vec![GatheredRow { name: due.name.clone(), as_of, values }];
        // The worker ends after this one.
        let _ = lives.send(Batch { source: Gathered::Life, rows, is_awaited: false });
    }

    /// Handles a 404: the name servers of the suffix are asked as well, once the server has described a
    /// name of the suffix that is known to be registered.
    fn missing(&mut self, ask: RdapQuery, now: Instant) {
        // The server that said so, to which the registry's own may have redirected the query.
        let RdapQuery { due, server, .. } = ask;
        if self.trust.answered(&server, true, now) {
            self.distrust(&server, "404 and failures in turn");
        }
        let suffix = due.name.tld().to_owned();
        // A name on its way out has left the DNS as well, so there the 404 decides.
        let was_free = due.last.is_some_and(|last| last.is_free());
        // A name of the sample is not reported as free, so one control a day suffices.
        let kept = match was_free || due.sampled.is_some() {
            true => trust::CONTROL_KEPT,
            false => AGREE_WITHIN,
        };
        let control = self.trust.control(&server, &suffix, kept, now);
        let evidence = EvidenceSet::default().with(Evidence::RdapNone);
        let sought = Sought { server: Some(server.clone()), evidence, ..Sought::new(due, now) };
        match control {
            Control::Passed => {
                let evidence = evidence.with(Evidence::Control);
                self.confirming.push_back(Sought { evidence, ..sought });
            }
            Control::Failed => self.confirming.push_back(sought),
            Control::Due => self.ask_control((server, suffix), sought),
        }
    }

    /// Queues the control of a server and suffix, unless it is queued. `sought` waits for it.
    fn ask_control(&mut self, of: (String, String), sought: Sought) {
        let suffix = &of.1;
        let url = sought.due.base.clone();
        let (account, sampled) = (sought.due.account, sought.due.sampled);
        let popular = self.verify.live.current().popular_under(suffix);
        // Some suffixes have `nic` as a suffix below them.
        let usual = ["nic", "google"].map(|label| DomainName::parse(&format!("{label}.{suffix}")));
        let Some(name) = popular.into_iter().chain(usual.into_iter().flatten()).next() else {
            self.confirming.push_back(sought);
            return;
        };
        let waiting = self.uncontrolled.entry(of.clone()).or_default();
        waiting.push(sought);
        if waiting.len() > 1 {
            return;
        }
        let (urgency, how, drop) = (Urgency::External, How::Rdap, DropDays::default());
        let due = Due { name, urgency, how, base: url, account, drop, last: None, sampled };
        if let Some(ask) = RdapQuery::first(&due) {
            let ask = RdapQuery { control_of: Some(of), ..ask };
            self.ahead.entry(ask.server.clone()).or_default().push_front(ask);
        }
    }

    /// Takes the answer for a control name, and continues with the names that wait for it.
    fn take_control(
        &mut self,
        of: (String, String),
        ask: &RdapQuery,
        reply: Result<Reply, CallError>,
        now: Instant,
    ) {
        let waiting = self.uncontrolled.remove(&of).unwrap_or_default();
        let (server, suffix) = of;
        let passed = match reply {
            Ok(Reply::Found(_)) => {
                self.trust.controlled(&ask.server, &suffix, true, now);
                ask.server == server
            }
            // The server limits its clients, and is paused for that.
            Ok(Reply::NotNow(_)) => {
                waiting.into_iter().for_each(|sought| self.postpone(sought.due));
                return;
            }
            Ok(Reply::Failed(_)) | Err(_) => {
                for sought in waiting {
                    self.pause(sought.due, &server, "its control failed", now);
                }
                return;
            }
            Ok(_) => false,
        };
        self.trust.controlled(&server, &suffix, passed, now);
        if !passed {
            let name = &ask.due.name;
            self.distrust(&server, &format!("it does not know {name}, which is registered"));
        }
        for sought in waiting {
            let evidence = match passed {
                true => sought.evidence.with(Evidence::Control),
                false => sought.evidence,
            };
            match sought.since + AGREE_WITHIN > now {
                true => self.confirming.push_back(Sought { evidence, ..sought }),
                false => self.postpone(sought.due),
            }
        }
    }

    /// Leaves names whose control takes too long to the next plan. It may be redirected to a server that is
    /// paused for a day.
    fn expire_controls(&mut self, now: Instant) {
        let is_late = |sought: &Sought| sought.since + AGREE_WITHIN <= now;
        let late: Vec<_> =
            self.uncontrolled.extract_if(|_, waiting| waiting.iter().any(is_late)).collect();
        for (of, waiting) in late {
            let is_it = |ask: &RdapQuery| ask.control_of.as_ref() == Some(&of);
            self.ahead.values_mut().for_each(|queue| queue.retain(|ask| !is_it(ask)));
            for sought in waiting {
                self.pause(sought.due, &of.0, "its control takes too long", now);
            }
        }
    }

    fn distrust(&self, server: &str, reason: &str) {
        metrics::counter!("dropdex_rdap_distrusted_total").increment(1);
        tracing::warn!(server, reason, "404s of an RDAP server do not count");
    }

    /// Leaves a name to the next plan.
    fn postpone(&mut self, due: Due) {
        self.settle(&due, Checked::Failed);
        self.release(due.name);
    }

    /// Reports the result of a check. One that was requested while the name was asked about for the sample is
    /// yet to come.
    fn settle(&self, due: &Due, checked: Checked) {
        if due.sampled.is_none() {
            self.verify.checks.settle(&due.name, checked);
        }
    }

    /// Redirects the query to another server, within that server's limits. The guard checks the
    /// address.
    fn follow(&mut self, ask: RdapQuery, location: &str, now: Instant) {
        let url =
            ask.url.join(location).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
        match url {
            Some(url) if ask.redirects < REDIRECTS_MAX => {
                let server = origin(&url);
                let ask =
                    RdapQuery { server: server.clone(), url, redirects: ask.redirects + 1, ..ask };
                self.ahead.entry(server).or_default().push_front(ask);
            }
            _ => match ask.control_of.clone() {
                Some(of) => self.take_control(of, &ask, Ok(Reply::Refused), now),
                None => self.pause(ask.due, &ask.server, "too many or invalid redirects", now),
            },
        }
    }

    fn take_parent(
        &mut self,
        sought: Sought,
        answer: Result<Delegation, ParentError>,
        now: Instant,
    ) {
        self.in_flight -= 1;
        self.dns_in_flight -= 1;
        let evidence = match answer {
            Ok(Delegation::Delegated) => sought.evidence.with(Evidence::Delegated),
            Ok(Delegation::Missing) => sought.evidence.with(Evidence::NotDelegated),
            Err(_) => sought.evidence,
        };
        let Sought { due, server, since, .. } = sought;
        if let Some(server) = server {
            if answer == Ok(Delegation::Delegated) && self.trust.contradicted(&server, now) {
                self.distrust(&server, "the DNS delegates names that it does not know");
            }
            let is_silent = matches!(answer, Err(ParentError::Timeout | ParentError::Unclear(_)));
            if is_silent && due.last.is_some_and(|last| last.is_free()) {
                return self.pause(due, "DNS", "it confirmed that the name is free before", now);
            }
            return self.conclude(Sought { due, server: Some(server), evidence, since }, now);
        }
        match (due.how, due.last, answer) {
            // The name is still delegated, so nothing has changed.
            (How::DnsFirst, Some(last), Ok(Delegation::Delegated)) => {
                let seen = self.seen(last.state, ObservedBy::Dns, evidence);
                let Observation { registered_on, registration, .. } = last;
                self.answer(due, Observation { registered_on, registration, ..seen }, now);
            }
            (How::DnsOnly, _, Ok(Delegation::Delegated)) => {
                self.conclude(Sought { due, server: None, evidence, since }, now);
            }
            (How::DnsOnly, _, Ok(_) | Err(ParentError::NoServers | ParentError::Wildcard)) => {
                self.seek_whois(Sought { due, server: None, evidence, since }, now);
            }
            (How::DnsOnly, _, Err(err)) => self.pause(due, "DNS", &err.to_string(), now),
            // The name is not delegated, or DNS failed, so the registry is queried.
            (How::DnsFirst | How::Rdap, ..) => {
                if let Some(ask) = RdapQuery::first(&due) {
                    self.ahead.entry(ask.server.clone()).or_default().push_back(ask);
                }
            }
        }
    }

    /// Asks the WHOIS server of a name that is on its way out or whose check was requested, if there is one
    /// and its day is not used up. Otherwise all sources were asked.
    fn seek_whois(&mut self, sought: Sought, now: Instant) {
        let chosen = self.verify.whois.as_ref().map(|whois| &whois.chosen);
        let server = chosen.and_then(|chosen| whois::server(sought.due.name.tld(), chosen));
        match server.filter(|_| sought.due.urgency != Urgency::Rest) {
            Some(server) if self.whois_waiting.len() < WHOIS_WAITING_MAX => {
                self.whois_waiting.push_back((sought, server));
            }
            _ => self.conclude(sought, now),
        }
    }

    /// Asks the WHOIS servers that may be asked now.
    fn dispatch_whois(&mut self, now: Instant) {
        let Some(guard) = self.verify.whois.as_ref().map(|whois| whois.guard.clone()) else {
            return;
        };
        for (sought, server) in std::mem::take(&mut self.whois_waiting) {
            let key = server.key();
            match self.budgets.turn(&key, now) {
                _ if sought.since + AGREE_WITHIN <= now => self.conclude(sought, now),
                Turn::NotToday => self.conclude(sought, now),
                Turn::Later(_) => self.whois_waiting.push_back((sought, server)),
                Turn::Now => {
                    self.budgets.begin(&key, now);
                    self.in_flight += 1;
                    let guard = guard.clone();
                    self.tasks.spawn(async move {
                        let answer = contained(whois::ask(&server, &guard, &sought.due.name)).await;
                        let answer = answer.unwrap_or(Err(WhoisError::Unclear));
                        TaskResult::Whois(Box::new(sought), server, answer)
                    });
                }
            }
        }
    }

    fn take_whois(
        &mut self,
        sought: Sought,
        server: &WhoisServer,
        answer: Result<whois::Answer, WhoisError>,
        now: Instant,
    ) {
        self.in_flight -= 1;
        let is_throttled = answer == Err(WhoisError::Throttled);
        self.budgets.end(&server.key(), is_throttled, now);
        let name = &sought.due.name;
        let evidence = match answer {
            Ok(whois::Answer::Found) => Some(Evidence::WhoisFound),
            Ok(whois::Answer::Missing) => Some(Evidence::WhoisNone),
            Ok(whois::Answer::Reserved) => Some(Evidence::WhoisReserved),
            Err(err) => {
                let rests = is_throttled.then_some("it is not asked for a day");
                tracing::info!(domain.name = %name, server = server.key(), error = %err, rests, "no answer by WHOIS");
                None
            }
        };
        let evidence = sought.evidence.iter().chain(evidence).collect();
        self.conclude(Sought { evidence, ..sought }, now);
    }

    /// Decides the state of a name of which all sources were asked.
    fn conclude(&mut self, sought: Sought, now: Instant) {
        let Sought { due, server, evidence, .. } = sought;
        let is_trusted = server.as_ref().is_none_or(|server| self.trust.is_trusted(server, now));
        let evidence = if is_trusted { evidence } else { evidence.without(Evidence::Control) };
        let listed = due.drop.evidence(self.verify.clock.today());
        let evidence: EvidenceSet = evidence.iter().chain(listed).collect();
        // Only a WHOIS server describes a registration here.
        let Finding { state, .. } =
            availability::decide(evidence, RdapState::Registered, &due.name);
        let is_known = due.last.is_some_and(|last| last.state != RdapState::Unknown);
        if state == RdapState::Unknown && is_known {
            let source = server.as_deref().unwrap_or("DNS");
            return self.pause(due, source, "the answers prove nothing", now);
        }
        use Evidence::{WhoisFound, WhoisNone, WhoisReserved};
        let has_whois =
            [WhoisFound, WhoisNone, WhoisReserved].into_iter().any(|it| evidence.has(it));
        let source = match server {
            Some(_) => ObservedBy::Rdap,
            None if has_whois => ObservedBy::Whois,
            None => ObservedBy::Dns,
        };
        let seen = self.seen(state, source, evidence);
        self.answer(due, seen, now);
    }

    fn seen(&self, state: RdapState, source: ObservedBy, evidence: EvidenceSet) -> Observation {
        let at = UnixMs::from_instant(self.verify.clock.now());
        let statuses = RdapStatuses::NONE;
        let registration = LatestRegistration::default();
        Observation { state, at, registered_on: None, statuses, source, evidence, registration }
    }

    /// Queues an observation for writing; of a name of the sample, only what the sample needs.
    fn answer(&mut self, due: Due, observation: Observation, now: Instant) {
        if let Some(release) = due.sampled {
            let answer = SampleAnswer::of(&observation, release);
            if answer == SampleAnswer::None {
                return self.rest(due.name, now);
            }
            self.answers.sampled.push((release, due.name, answer));
        } else {
            self.settle(&due, Checked::Seen(observation));
            self.pauses.remove(&due.name);
            self.answers.observed.push((due.name, observation));
        }
        self.write_at = self.write_at.or(Some(now + GROUP_WAIT));
    }

    /// Handles an unusable response. A name without an earlier observation gets the state unknown; an
    /// earlier observation is kept.
    fn unusable(&mut self, ask: RdapQuery, reason: &Unusable, now: Instant) {
        let known = ask.due.last.is_some_and(|last| last.state != RdapState::Unknown);
        let (name, is_sampled) = (ask.due.name.clone(), ask.due.sampled.is_some());
        self.pause(ask.due, &ask.server, &reason.to_string(), now);
        if !known && !is_sampled && self.busy.insert(name.clone()) {
            let observation =
                self.seen(RdapState::Unknown, ObservedBy::Rdap, EvidenceSet::default());
            self.answers.observed.push((name, observation));
            self.write_at = self.write_at.or(Some(now + GROUP_WAIT));
        }
    }

    /// Pauses a name, for longer each time.
    fn pause(&mut self, due: Due, server: &str, reason: &str, now: Instant) {
        if due.sampled.is_some() {
            return self.rest(due.name, now);
        }
        self.settle(&due, Checked::Failed);
        let name = due.name;
        let failures = self.pauses.get(&name).map_or(0, |pause| pause.failures) + 1;
        let wait = (NAME_PAUSE_FIRST * (1 << (failures - 1).min(16))).min(NAME_PAUSE_MAX);
        tracing::info!(domain.name = %name, server, reason, ?wait, "verification failed");
        self.pauses.insert(name.clone(), Pause { until: now + wait, failures });
        self.release(name);
    }

    /// Leaves a name of the sample, about which the sources prove nothing, for a day.
    fn rest(&mut self, name: DomainName, now: Instant) {
        self.rests.insert(name.clone(), now + NAME_PAUSE_MAX);
        self.release(name);
    }
}

/// The metric label of a reply.
fn outcome(reply: &Result<Reply, CallError>) -> &'static str {
    match reply {
        Ok(Reply::Found(_)) => "found",
        Ok(Reply::NotFound) => "not_found",
        Ok(Reply::Reserved) => "reserved",
        Ok(Reply::Refused) => "refused",
        Ok(Reply::Elsewhere(_)) => "redirect",
        Ok(Reply::NotNow(_)) => "not_now",
        Ok(Reply::Failed(_)) => "failed",
        Ok(Reply::Unusable(_)) => "unusable",
        Err(_) => "no_answer",
    }
}

impl RdapQuery {
    /// Returns true if names wait for the answer, or the query is the rest of another.
    fn is_begun(&self) -> bool {
        self.redirects > 0 || self.control_of.is_some()
    }

    /// Returns the first query for a name; `None` if its registry has no server.
    fn first(due: &Due) -> Option<RdapQuery> {
        let base = due.base.as_ref()?;
        let (url, server) = (base.domain(&due.name), plan::server_key(base));
        Some(RdapQuery { due: due.clone(), url, server, redirects: 0, control_of: None })
    }
}

impl Answers {
    fn len(&self) -> usize {
        self.observed.len() + self.sampled.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first answers, up to [`GROUP_MAX`] of each kind.
    fn take_group(&mut self) -> Answers {
        let observed = self.observed.drain(..self.observed.len().min(GROUP_MAX)).collect();
        let sampled = self.sampled.drain(..self.sampled.len().min(GROUP_MAX)).collect();
        Answers { observed, sampled }
    }

    fn put_back(&mut self, rows: Answers) {
        self.observed.splice(..0, rows.observed);
        self.sampled.splice(..0, rows.sampled);
    }

    async fn write(self, store: &Store) -> Result<(), WriteError> {
        store.record_observations(self.observed).await?;
        store.record_sample(self.sampled).await
    }

    fn into_names(self) -> impl Iterator<Item = DomainName> {
        let observed = self.observed.into_iter().map(|(name, _)| name);
        observed.chain(self.sampled.into_iter().map(|(_, name, _)| name))
    }
}

impl Sought {
    fn new(due: Due, now: Instant) -> Sought {
        Sought { due, server: None, evidence: EvidenceSet::default(), since: now }
    }
}

/// Runs the work of a task. Returns `None` if the task panicked; the panic hook logs the panic. Without
/// this, the task would end without a result and keep its slot.
async fn contained<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

/// Sends one query to one server (RFC 7480 §4).
async fn ask_server(
    client: &Client,
    url: Url,
    name: &DomainName,
    clock: Clock,
) -> Result<Reply, CallError> {
    let accept = HeaderValue::from_static("application/rdap+json, application/json;q=0.9");
    let headers = HeaderMap::from_iter([(ACCEPT, accept)]);
    let request = Request { method: Method::GET, url, headers, body: Bytes::new() };
    let answer = client.send(request, Body::Whole(RESPONSE_BYTES_MAX)).await?;
    let now = clock.now();
    let response = Response {
        status: answer.status.as_u16(),
        location: answer.headers.get(LOCATION).and_then(|value| value.to_str().ok()),
        retry_after: answer.retry_after(now),
        body: &answer.body,
    };
    Ok(rdap::read(response, name, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_query_that_panics_ends_with_a_result() {
        let mut tasks = JoinSet::new();
        for is_bad in [true, false] {
            let query = async move {
                assert!(!is_bad, "a bug");
                1
            };
            tasks.spawn(contained(query));
        }
        let mut results = Vec::new();
        while let Some(done) = tasks.join_next().await {
            results.push(done.expect("the task itself does not panic"));
        }
        results.sort();
        assert_eq!(results, [None, Some(1)]);
    }
}
