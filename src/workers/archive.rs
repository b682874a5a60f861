//! Asks a web archive about the captures of names, one query at a time: names that members ask about, then watched
//! names, then the best names that are about to drop.
//!
//! There is no queue on disk: a [`Plan`] is computed from the watchlists, the index and the edition in use. If the
//! archive limits its clients or fails, nothing is asked until the pause is over.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use url::Url;

use crate::accounts::Store;
use crate::facts::Value;
use crate::facts::published::{FactsFolder, Gathered, GatheredRow};
use crate::facts::store::Edition;
use crate::index::Index;
use crate::index::filter::{AsOf, Counting, DropFilter, View};
use crate::index::generation::live::LiveIndex;
use crate::outbound::archive::{self, Captures, Reply};
use crate::outbound::http::Client;
use crate::query::conditions::Parsed;
use crate::query::filter::DayRange;
use crate::service::archive::{Looked, WebArchive};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::workers::gather::{Batch, Rows};

/// Interval between two plans.
const PLAN_EVERY: Duration = Duration::from_secs(60);
/// Days for which captures of a name count as known.
const KNOWN_DAYS: i32 = 180;
/// Days of releases whose best names are asked about.
const DAYS: i32 = 2;
/// Maximum repeats of a query.
const REPEATS_MAX: u32 = 3;
/// Time for which a name is not asked about after its last query.
const REST: Duration = Duration::from_secs(24 * 3600);
/// Pause of all queries after a 429 that states none. The Internet Archive blocks clients that go on.
const LIMITED_PAUSE: Duration = Duration::from_secs(60);
/// First pause of all queries after a failure. It doubles with each failure.
const FAILED_PAUSE: Duration = Duration::from_secs(5);
const FAILED_PAUSE_MAX: Duration = Duration::from_secs(600);
/// Maximum pause that the archive can ask for.
const STATED_PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The worker.
pub struct Archive {
    pub archive: Arc<WebArchive>,
    pub client: Client,
    pub url: Url,
    /// Time between two queries.
    pub every: Duration,
    /// Number of the best names that are asked about each day.
    pub best: u32,
    pub store: Store,
    pub live: Arc<LiveIndex>,
    pub clock: Clock,
    pub catch_days: u16,
    pub folder: FactsFolder,
    pub rows: Rows,
    /// Whether watched names are asked about, and what members ask about is kept for all.
    pub of_members: bool,
}

/// The names to ask about, in order.
#[derive(Default)]
struct Plan(VecDeque<DomainName>);

/// A name whose query is sent next.
struct Next {
    name: DomainName,
    is_asked: bool,
    repeats: u32,
}

/// When the next query may be sent.
struct Pace {
    every: Duration,
    ready_at: Instant,
    /// Number of failures since the last response.
    failures: u32,
}

/// How a query ended. A pause is one that the archive asked for.
enum Ended {
    Answered,
    Limited(Option<Duration>),
    Failed(Option<Duration>),
}

impl Archive {
    /// Asks until `stop` is done. A query in flight is dropped; the plan of the next start has its name.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut asking = Asking::new(self, Instant::now());
        tokio::select! {
            () = stop => {}
            () = asking.run() => {}
        }
    }
}

/// The state of the worker.
struct Asking {
    settings: Archive,
    pace: Pace,
    plan: Plan,
    plan_at: Instant,
    asked: VecDeque<DomainName>,
    again: Option<Next>,
    /// Names that were asked about lately: the end of their rest, and whether they were given up.
    rests: HashMap<DomainName, (Instant, bool)>,
}

impl Asking {
    fn new(settings: Archive, now: Instant) -> Asking {
        Asking {
            pace: Pace { every: settings.every, ready_at: now, failures: 0 },
            settings,
            plan: Plan::default(),
            plan_at: now,
            asked: VecDeque::new(),
            again: None,
            rests: HashMap::new(),
        }
    }

    async fn run(&mut self) {
        loop {
            self.report();
            sleep_until(self.pace.ready_at).await;
            let now = Instant::now();
            if self.plan_at <= now {
                self.plan = self.planned(now).await;
                self.plan_at = now + PLAN_EVERY;
            }
            let next = self.next(now);
            self.report();
            match next {
                Some(next) => self.ask(next).await,
                None => tokio::select! {
                    () = self.settings.archive.checks.asked() => {}
                    () = sleep_until(self.plan_at) => {}
                },
            }
        }
    }

    fn report(&self) {
        let waiting = self.asked.len() + self.plan.0.len();
        metrics::gauge!("dropdex_archive_waiting").set(waiting as f64);
        let mut progress = self.settings.archive.progress();
        (progress.waiting, progress.is_paused) = (waiting, self.pace.failures > 0);
    }

    async fn planned(&mut self, now: Instant) -> Plan {
        self.rests.retain(|_, (until, _)| *until > now);
        let resting: HashSet<DomainName> = self.rests.keys().cloned().collect();
        let Archive { store, live, clock, catch_days, folder, best, of_members, .. } =
            &self.settings;
        let (store, index, folder) = (store.clone(), live.current(), folder.clone());
        let as_of = AsOf { today: clock.today(), catch_days: *catch_days };
        let (best, of_members) = (*best, *of_members);
        let plan = move || {
            let watched = if of_members { store.verification_targets() } else { Vec::new() };
            let watched = watched.into_iter().map(|target| target.name);
            let edition = Edition::open(&folder.edition(Gathered::Archive.as_str())).ok();
            let is_due = |name: &DomainName| {
                !resting.contains(name) && !is_known(edition.as_ref(), name, as_of.today)
            };
            Plan::new(watched.chain(best_names(&index, best, as_of)), is_due)
        };
        // A panic is logged.
        spawn_blocking(plan).await.unwrap_or_default()
    }

    /// Takes the next name. One that was given up fails at once.
    fn next(&mut self, now: Instant) -> Option<Next> {
        let checks = &self.settings.archive.checks;
        for name in checks.take() {
            let rest =
                self.rests.get(&name).filter(|(until, is_failed)| *until > now && *is_failed);
            match rest {
                Some(_) => checks.settle(&name, Looked::Failed),
                None => self.asked.push_back(name),
            }
        }
        let (asked, plan) = (&mut self.asked, &mut self.plan.0);
        let first = |name, is_asked| Next { name, is_asked, repeats: 0 };
        self.again
            .take()
            .or_else(|| asked.pop_front().map(|name| first(name, true)))
            .or_else(|| plan.pop_front().map(|name| first(name, false)))
    }

    async fn ask(&mut self, next: Next) {
        let Archive { client, url, clock, archive, .. } = &self.settings;
        let reply = archive::ask(client, url, &next.name, *clock).await;
        let now = Instant::now();
        let outcome = match &reply {
            Ok(Reply::Captures(Some(_))) => "captures",
            Ok(Reply::Captures(None)) => "none",
            Ok(Reply::NotNow(_)) => "not_now",
            Ok(Reply::Again(..)) => "failed",
            Ok(Reply::Refused(_)) => "refused",
            Err(_) => "no_answer",
        };
        metrics::counter!("dropdex_archive_answers_total", "outcome" => outcome).increment(1);
        let (ended, why) = match reply {
            Ok(Reply::Captures(captures)) => {
                self.pace.end(Ended::Answered, now);
                archive.progress().answered += 1;
                archive.checks.settle(&next.name, Looked::Known(captures));
                self.keep(next, captures, now);
                return;
            }
            Ok(Reply::Refused(status)) => {
                self.pace.end(Ended::Answered, now);
                return self.give_up(next.name, &format!("HTTP status {status}"), now);
            }
            Ok(Reply::NotNow(wait)) => (Ended::Limited(wait), "it limits its clients".to_owned()),
            Ok(Reply::Again(wait, fault)) => (Ended::Failed(wait), fault.to_string()),
            Err(err) => (Ended::Failed(None), err.to_string()),
        };
        let pause = self.pace.end(ended, now);
        tracing::warn!(reason = why, ?pause, "the web archive is not asked for a while");
        match next.repeats < REPEATS_MAX {
            true => self.again = Some(Next { repeats: next.repeats + 1, ..next }),
            false => self.give_up(next.name, &why, now),
        }
    }

    /// Keeps the captures of a name.
    fn keep(&mut self, next: Next, captures: Option<Captures>, now: Instant) {
        if next.is_asked && !self.settings.of_members {
            // The plan may still have the name: a missing row would show that a member asked.
            return;
        }
        self.rests.insert(next.name.clone(), (now + REST, false));
        let row = row(next.name, self.settings.clock.today(), captures);
        let batch = Batch { source: Gathered::Archive, rows: vec![row], is_awaited: next.is_asked };
        // The worker ends after this one.
        let _ = self.settings.rows.send(batch);
    }

    fn give_up(&mut self, name: DomainName, reason: &str, now: Instant) {
        tracing::info!(domain.name = %name, reason, "no answer by the web archive; not asked for a day");
        self.settings.archive.progress().failed += 1;
        self.settings.archive.checks.settle(&name, Looked::Failed);
        self.rests.insert(name, (now + REST, true));
    }
}

impl Pace {
    /// Sets the time of the next query, and returns the pause.
    fn end(&mut self, ended: Ended, now: Instant) -> Duration {
        let pause = match ended {
            Ended::Answered => {
                self.failures = 0;
                Duration::ZERO
            }
            Ended::Limited(wait) => {
                self.failures += 1;
                wait.unwrap_or(LIMITED_PAUSE)
            }
            Ended::Failed(wait) => {
                let doubled = FAILED_PAUSE * (1 << self.failures.min(16));
                self.failures += 1;
                doubled.min(FAILED_PAUSE_MAX).max(wait.unwrap_or_default())
            }
        };
        let pause = pause.min(STATED_PAUSE_MAX).max(self.every);
        self.ready_at = now + pause;
        pause
    }
}

impl Plan {
    /// The names that are due, each once.
    fn new(names: impl Iterator<Item = DomainName>, is_due: impl Fn(&DomainName) -> bool) -> Plan {
        let mut seen = HashSet::new();
        Plan(names.filter(|name| seen.insert(name.clone()) && is_due(name)).collect())
    }
}

fn is_known(edition: Option<&Edition>, name: &DomainName, today: Day) -> bool {
    let row = edition.and_then(|it| Some((it, it.row(name.as_str().as_bytes()).ok()??)));
    row.is_some_and(|(edition, row)| today.days_since(edition.as_of(&row)) < KNOWN_DAYS)
}

/// Returns the best names that drop today and tomorrow.
fn best_names(index: &Index, count: u32, as_of: AsOf) -> Vec<DomainName> {
    if count == 0 {
        return Vec::new();
    }
    let AsOf { today, .. } = as_of;
    let mut filter =
        DropFilter { limit: count, view: View::Active, ..DropFilter::of(Parsed::default()) };
    let release = DayRange { from: Some(today), to: Some(today.plus(DAYS - 1)) };
    filter.common.drop.release = release.into();
    let mut names = Vec::new();
    match index.drops(&filter, as_of, Counting::None) {
        Ok(page) => page.for_each(|row| names.extend(DomainName::parse(row.name))),
        Err(error) => tracing::error!(%error, "the best names cannot be found"),
    }
    names
}

fn row(name: DomainName, as_of: Day, captures: Option<Captures>) -> GatheredRow {
    let int = |number: u16| Value::Int(number.into());
    let values = match captures {
        None => vec![None, None, Some(Value::Int(0)), None, None],
        Some(Captures { first, last, days, is_cut, redirects, gap }) => vec![
            Some(Value::Year(first)),
            last.map(Value::Year),
            Some(if is_cut { Value::AtLeast { low: days.into() } } else { int(days) }),
            redirects.map(|share| int(share.into())),
            gap.map(int),
        ],
    };
    GatheredRow { name, as_of, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(2_500);

    fn seconds(count: u64) -> Option<Duration> {
        Some(Duration::from_secs(count))
    }

    #[test]
    fn all_queries_pause_as_the_archive_asks_and_longer_after_each_failure() {
        let now = Instant::now();
        let mut pace = Pace { every: EVERY, ready_at: now, failures: 0 };
        let mut after = |ended| {
            let pause = pace.end(ended, now);
            assert_eq!(pace.ready_at, now + pause);
            pause
        };
        assert_eq!(after(Ended::Answered), EVERY);
        assert_eq!(after(Ended::Limited(None)), LIMITED_PAUSE);
        assert_eq!(after(Ended::Limited(seconds(7))), Duration::from_secs(7));
        assert_eq!(after(Ended::Limited(seconds(1))), EVERY);
        assert_eq!(after(Ended::Limited(seconds(1_000_000))), STATED_PAUSE_MAX);
        after(Ended::Answered);
        let pauses = [(); 3].map(|()| after(Ended::Failed(None)));
        assert_eq!(pauses, [5, 10, 20].map(Duration::from_secs));
        assert_eq!(after(Ended::Failed(seconds(100))), Duration::from_secs(100));
        for _ in 0..100 {
            assert!(after(Ended::Failed(None)) <= FAILED_PAUSE_MAX);
        }
        assert_eq!(after(Ended::Failed(None)), FAILED_PAUSE_MAX);
        assert_eq!(after(Ended::Answered), EVERY);
        assert_eq!(after(Ended::Failed(None)), FAILED_PAUSE);
    }

    #[test]
    fn a_plan_has_each_due_name_once_in_order() {
        let name = |text: &str| DomainName::parse(text).expect("a name");
        let names = ["b.com", "a.com", "known.com", "b.com", "c.com"].map(name);
        let plan = Plan::new(names.into_iter(), |it| it.label() != "known");
        assert_eq!(plan.0, ["b.com", "a.com", "c.com"].map(name));
    }

    #[test]
    fn no_captures_are_a_fact() {
        let name = DomainName::parse("a.com").expect("a name");
        let values = |captures| {
            let row = row(name.clone(), Day::MIN, captures);
            let text = |value: &Option<Value>| value.as_ref().map_or("-".into(), Value::to_string);
            row.values.iter().map(text).collect::<Vec<String>>().join(" ")
        };
        assert_eq!(values(None), "- - 0 - -");
        let cut = Captures {
            first: 1998,
            last: None,
            days: 1_990,
            is_cut: true,
            redirects: Some(3),
            gap: None,
        };
        assert_eq!(values(Some(cut)), "1998 - 1990 or more 3 -");
        let whole = Captures { last: Some(2010), is_cut: false, gap: Some(6), ..cut };
        assert_eq!(values(Some(whole)), "1998 2010 1990 3 6");
    }
}
