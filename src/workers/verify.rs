//! Verifies watched names with their registries and writes observations to the journal.
//!
//! A [`plan`] of the due names is computed from the state, at intervals and when a name is added to a
//! watchlist. There is no other queue, so a restart repeats only the queries that were in flight.
//! [`server`] limits the rate of queries, and `outbound::rdap` interprets responses. For registered
//! names, DNS is queried where that suffices.

pub mod plan;
pub mod server;

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
use crate::index::filter::AsOf;
use crate::index::generation::live::LiveIndex;
use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::dns::{Dns, DnsError};
use crate::outbound::http::{Body, CallError, Client, Request};
use crate::outbound::rdap::{self, RESPONSE_BYTES_MAX, Reply, Response, Unusable};
use crate::service::checks::{Checked, Checks};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{Observation, ObservedBy, RdapState, RdapStatuses};
use crate::vocab::rdap::{Bootstrap, origin};
use crate::vocab::time::UnixMs;
use crate::workers::bootstrap::Registry;
use plan::{Due, How, PlanTime, Urgency, VerifyPlan};
use server::{Ended, Limits, Server};

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
/// Maximum time to finish queries in flight after the signal to stop.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The verification worker.
pub struct Verify {
    pub store: Store,
    pub live: Arc<LiveIndex>,
    /// `None` during a refresh.
    pub registry: Option<Box<Registry>>,
    pub client: Client,
    pub dns: Dns,
    pub clock: Clock,
    /// Checks requested by users.
    pub checks: Arc<Checks>,
    /// Days for which a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// Limits for each server.
    pub limits: Limits,
}

/// A query to an RDAP server.
struct RdapQuery {
    due: Due,
    url: Url,
    server: String,
    redirects: u8,
}

/// The result of a task.
enum TaskResult {
    /// A plan, and the bootstrap registry that it used.
    Planned(Box<VerifyPlan>, Arc<Bootstrap>, Duration),
    Rdap(Box<RdapQuery>, Result<Reply, CallError>),
    Dns(Box<Due>, Result<bool, DnsError>),
    Written(Vec<(DomainName, Observation)>, Result<(), WriteError>),
    Refreshed(Box<Registry>, Duration),
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
    planning: bool,
    plan_at: Instant,
    plan_not_before: Instant,
    /// Names whose check was requested.
    asked: Vec<DomainName>,
    /// Observations to write.
    answers: Vec<(DomainName, Observation)>,
    /// Latest time at which to write the observations.
    write_at: Option<Instant>,
    /// Number of observations being written.
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
            in_flight: 0,
            dns_in_flight: 0,
            dns_turn: None,
            busy: HashSet::new(),
            settled: Vec::new(),
            pauses: HashMap::new(),
            planning: false,
            plan_at: now,
            plan_not_before: now,
            asked: Vec::new(),
            answers: Vec::new(),
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
        if let Err(err) = self.verify.store.record_observations(answers).await {
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
            Ok(TaskResult::Dns(due, answer)) => self.take_dns(*due, answer, now),
            Ok(TaskResult::Written(rows, outcome)) => self.take_written(rows, outcome, now),
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
        self.tasks.spawn_blocking(move || {
            let instant = clock.now();
            let today = Day::from_instant(instant).unwrap_or_else(|| clock.today());
            let of_index = AsOf { today, catch_days };
            let plan = VerifyPlan::new(
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
            TaskResult::Planned(Box::new(plan), bootstrap, now.elapsed())
        });
    }

    fn adopt(
        &mut self,
        plan: VerifyPlan,
        bootstrap: &Arc<Bootstrap>,
        took: Duration,
        now: Instant,
    ) {
        self.planning = false;
        self.has_names |= !plan.is_empty();
        self.plan = plan;
        let settled: HashSet<DomainName> = self.settled.drain(..).collect();
        let fresh = |due: &Due| !settled.contains(&due.name);
        self.plan.rdap.values_mut().for_each(|queue| queue.retain(fresh));
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
        let rest = self.answers.split_off(self.answers.len().min(GROUP_MAX));
        let rows = std::mem::replace(&mut self.answers, rest);
        self.writing = rows.len();
        self.write_at = (!self.answers.is_empty()).then_some(now + GROUP_WAIT);
        let store = self.verify.store.clone();
        self.tasks.spawn(async move {
            let outcome = store.record_observations(rows.clone()).await;
            TaskResult::Written(rows, outcome)
        });
    }

    fn take_written(
        &mut self,
        rows: Vec<(DomainName, Observation)>,
        outcome: Result<(), WriteError>,
        now: Instant,
    ) {
        self.writing = 0;
        if let Err(err) = outcome {
            tracing::warn!(error = %err, "cannot write observations; trying again");
            self.answers.splice(..0, rows);
            self.write_at = Some(now + WRITE_RETRY_AFTER);
            return;
        }
        for (name, _) in rows {
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
        while self.has_room() && self.dns_in_flight < DNS_CONCURRENCY {
            let Some(due) = self.plan.dns.pop_front() else { break };
            if self.busy.insert(due.name.clone()) {
                self.ask_dns(due);
            }
        }
        for name in self.waiting() {
            while self.has_room() && self.server(&name, now).ready_at().is_some_and(|at| at <= now)
            {
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
            let is_paused = self.pauses.get(&name).is_some_and(|pause| pause.until > now);
            let base = bootstrap.servers(&name).first().filter(|_| !is_paused).cloned();
            let facts = index.facts(&name, AsOf { today, catch_days });
            let drop_date = facts.and_then(|facts| facts.latest_drop);
            let last = self.verify.store.observations([&name]).pop().flatten();
            let (account, urgency, how) = (AccountId(0), Urgency::External, How::Rdap);
            let due = Due { name: name.clone(), urgency, how, base, account, drop_date, last };
            match RdapQuery::first(due) {
                None => self.verify.checks.settle(&name, Checked::Failed),
                Some(ask) => {
                    self.busy.insert(name);
                    self.ahead.entry(ask.server.clone()).or_default().push_front(ask);
                }
            }
        }
    }

    /// Whether another name may be in flight.
    fn has_room(&self) -> bool {
        self.in_flight + self.answers.len() + self.writing < UNWRITTEN_MAX
    }

    /// The servers with waiting queries.
    fn waiting(&self) -> Vec<String> {
        let ahead = self.ahead.iter().filter(|(_, queue)| !queue.is_empty());
        let planned = self.plan.rdap.iter().filter(|(_, queue)| !queue.is_empty());
        let names: HashSet<&String> =
            ahead.map(|(name, _)| name).chain(planned.map(|(name, _)| name)).collect();
        names.into_iter().cloned().collect()
    }

    fn server(&mut self, name: &str, now: Instant) -> &mut Server {
        let limits = self.verify.limits;
        self.servers.entry(name.to_owned()).or_insert_with(|| Server::new(limits, now))
    }

    /// Takes the next query for a server; its name is busy from then on. Names that DNS could not decide
    /// precede others of the same urgency, but not more urgent ones. Otherwise a failing resolver would put
    /// all of them first.
    fn next_query(&mut self, server: &str) -> Option<RdapQuery> {
        let ahead = self.ahead.get_mut(server);
        let planned = self.plan.rdap.get_mut(server);
        let next = planned.as_ref().and_then(|queue| queue.front());
        let goes_first = |ask: &RdapQuery| {
            ask.redirects > 0 || next.is_none_or(|next| ask.due.urgency <= next.urgency)
        };
        if let Some(ahead) = ahead.filter(|queue| queue.front().is_some_and(goes_first)) {
            return ahead.pop_front();
        }
        let queue = planned?;
        while let Some(due) = queue.pop_front() {
            if let Some(ask) =
                RdapQuery::first(due).filter(|ask| self.busy.insert(ask.due.name.clone()))
            {
                return Some(ask);
            }
        }
        None
    }

    fn ask_rdap(&mut self, ask: RdapQuery, now: Instant) {
        let server = self.server(&ask.server, now);
        server.begin(now);
        server.turn = Some(ask.due.account);
        self.in_flight += 1;
        let (client, clock) = (self.verify.client.clone(), self.verify.clock);
        self.tasks.spawn(async move {
            let reply = contained(ask_server(&client, ask.url.clone(), &ask.due.name, clock)).await;
            let reply = reply.unwrap_or_else(|| Err(CallError::BadRequest(PANICKED.to_owned())));
            TaskResult::Rdap(Box::new(ask), reply)
        });
    }

    fn ask_dns(&mut self, due: Due) {
        self.in_flight += 1;
        self.dns_in_flight += 1;
        self.dns_turn = Some(due.account);
        let dns = self.verify.dns.clone();
        self.tasks.spawn(async move {
            let answer = contained(dns.is_delegated(&due.name)).await;
            let answer = answer.unwrap_or_else(|| Err(DnsError::Failed(PANICKED.to_owned())));
            TaskResult::Dns(Box::new(due), answer)
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
        if self.has_room() && !self.waits_for_registry {
            for name in self.waiting() {
                wake = self.server(&name, now).ready_at().map_or(wake, |at| wake.min(at));
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
            Ok(Reply::Failed(_)) | Err(_) => Ended::Failed,
            Ok(_) => Ended::Answered,
        };
        metrics::counter!("dropdex_rdap_answers_total", "outcome" => outcome(&reply)).increment(1);
        if let Some(pause) = self.server(&ask.server, now).end(ended, now) {
            let RdapQuery { server, .. } = &ask;
            tracing::warn!(server, ?pause, ?ended, "RDAP server paused after errors");
        }
        let drop_date = ask.due.drop_date;
        match reply {
            Ok(Reply::Found(found)) => {
                let state = rdap::derive(Some(&found), drop_date);
                let observation = self.seen(state, ObservedBy::Rdap);
                let rdap::Registration { statuses, registered_on, .. } = found;
                self.answer(
                    ask.due.name,
                    Observation { statuses, registered_on, ..observation },
                    now,
                );
            }
            Ok(Reply::NotFound) => {
                let observation = self.seen(rdap::derive(None, drop_date), ObservedBy::Rdap);
                self.answer(ask.due.name, observation, now);
            }
            Ok(Reply::Elsewhere(location)) => self.follow(ask, &location, now),
            // The server's limit was reached, which does not count as a failure of the name. The
            // next plan contains the name again.
            Ok(Reply::NotNow(_)) => {
                self.verify.checks.settle(&ask.due.name, Checked::Failed);
                self.release(ask.due.name);
            }
            Ok(Reply::Failed(status)) => {
                self.pause(ask.due.name, &ask.server, &format!("HTTP status {status}"), now);
            }
            Ok(Reply::Unusable(reason)) => self.unusable(ask, &reason, now),
            Err(CallError::TooLarge(_)) => self.unusable(ask, &Unusable::TooLong, now),
            Err(CallError::Coding(err)) => {
                self.unusable(ask, &Unusable::Coding(err.to_string()), now);
            }
            Err(err) => self.pause(ask.due.name, &ask.server, &err.to_string(), now),
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
            _ => self.pause(ask.due.name, &ask.server, "too many or invalid redirects", now),
        }
    }

    fn take_dns(&mut self, due: Due, answer: Result<bool, DnsError>, now: Instant) {
        self.in_flight -= 1;
        self.dns_in_flight -= 1;
        match (due.how, due.last, answer) {
            // The name is still delegated, so nothing has changed.
            (How::DnsFirst, Some(last), Ok(true)) => {
                let observation = self.seen(last.state, ObservedBy::Dns);
                let registered_on = last.registered_on;
                self.answer(due.name, Observation { registered_on, ..observation }, now);
            }
            (How::DnsOnly, _, Ok(delegated)) => {
                let state = if delegated { RdapState::Registered } else { RdapState::Unknown };
                let observation = self.seen(state, ObservedBy::Dns);
                self.answer(due.name, observation, now);
            }
            (How::DnsOnly, _, Err(err)) => self.pause(due.name, "DNS", &err.to_string(), now),
            // The name is not delegated, or DNS failed, so the registry is queried.
            (How::DnsFirst | How::Rdap, ..) => {
                if let Some(ask) = RdapQuery::first(due) {
                    self.ahead.entry(ask.server.clone()).or_default().push_back(ask);
                }
            }
        }
    }

    fn seen(&self, state: RdapState, source: ObservedBy) -> Observation {
        let at = UnixMs::from_instant(self.verify.clock.now());
        Observation { state, at, registered_on: None, statuses: RdapStatuses::NONE, source }
    }

    /// Queues an observation for writing.
    fn answer(&mut self, name: DomainName, observation: Observation, now: Instant) {
        self.pauses.remove(&name);
        self.verify.checks.settle(&name, Checked::Seen(observation));
        self.answers.push((name, observation));
        self.write_at = self.write_at.or(Some(now + GROUP_WAIT));
    }

    /// Handles an unusable response. A name without an earlier observation gets the state unknown; an
    /// earlier observation is kept.
    fn unusable(&mut self, ask: RdapQuery, reason: &Unusable, now: Instant) {
        let known = ask.due.last.is_some_and(|last| last.state != RdapState::Unknown);
        let name = ask.due.name;
        self.pause(name.clone(), &ask.server, &reason.to_string(), now);
        if !known && self.busy.insert(name.clone()) {
            let observation = self.seen(RdapState::Unknown, ObservedBy::Rdap);
            self.answers.push((name, observation));
            self.write_at = self.write_at.or(Some(now + GROUP_WAIT));
        }
    }

    /// Pauses a name, for longer each time.
    fn pause(&mut self, name: DomainName, server: &str, reason: &str, now: Instant) {
        let failures = self.pauses.get(&name).map_or(0, |pause| pause.failures) + 1;
        let wait = (NAME_PAUSE_FIRST * (1 << (failures - 1).min(16))).min(NAME_PAUSE_MAX);
        tracing::info!(domain.name = %name, server, reason, ?wait, "verification failed");
        self.verify.checks.settle(&name, Checked::Failed);
        self.pauses.insert(name.clone(), Pause { until: now + wait, failures });
        self.release(name);
    }
}

/// The metric label of a reply.
fn outcome(reply: &Result<Reply, CallError>) -> &'static str {
    match reply {
        Ok(Reply::Found(_)) => "found",
        Ok(Reply::NotFound) => "not_found",
        Ok(Reply::Elsewhere(_)) => "redirect",
        Ok(Reply::NotNow(_)) => "not_now",
        Ok(Reply::Failed(_)) => "failed",
        Ok(Reply::Unusable(_)) => "unusable",
        Err(_) => "no_answer",
    }
}

impl RdapQuery {
    /// Returns the first query for a name; `None` if its registry has no server.
    fn first(due: Due) -> Option<RdapQuery> {
        let base = due.base.as_ref()?;
        let (url, server) = (base.domain(&due.name), plan::server_key(base));
        Some(RdapQuery { due, url, server, redirects: 0 })
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
