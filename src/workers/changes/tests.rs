//! Derives every kind of event on its day from real lists, generations and observations, with a simulated
//! clock: in one process, with a restart before every derivation, and after a pause of weeks.

use std::fs;
use std::path::Path;

use chrono::{DateTime, Utc};
use tempfile::TempDir;

use super::*;
use crate::accounts::{Caller, Watch, WatchPatch};
use crate::changes::ChangeLog;
use crate::corpus::Corpus;
use crate::corpus::ingest::Source;
use crate::feeds::{Feed, ReadOptions};
use crate::index::generation::build::{self, BuildSettings};
use crate::scorer::Coverage;
use crate::vocab::evidence::{Evidence, EvidenceSet};
use crate::vocab::name::DomainName;
use crate::vocab::observation::{LatestRegistration, Observation, ObservedBy, RdapStatuses};
use crate::vocab::plan::{Plan, Plans};
use crate::vocab::time::UnixMs;

const FIRST: &str = "2026-06-01";
/// Suffixes under which the label of a test name appears.
const TLDS: &str = "net org info biz de fr nl se it es pl ch at be dk fi no pt cz us ca mx br jp kr in io co me tv \
    cc ai app dev shop store online site xyz club top tech space website fun live life world today news blog \
    email cloud agency company center city land house energy solar solutions systems services support";
const HEADER: &str = "domain,drop_date,release_date,registered_again\n";

/// Day, kind, source and name of an event; days count from [`FIRST`].
type Event = (i32, &'static str, &'static str, String);

fn day(days: i32) -> Day {
    FIRST.parse::<Day>().expect("a day").plus(days)
}

fn noon(days: i32) -> DateTime<Utc> {
    day(days).start() + chrono::TimeDelta::hours(12)
}

struct World {
    folder: TempDir,
    runtime: tokio::runtime::Runtime,
    store: Store,
    log: Arc<Appender>,
    changes: ChangeLog,
    base: Option<Arc<Index>>,
    /// Whether each derivation runs in a new process.
    restarts: bool,
    lists: usize,
}

impl World {
    fn new(restarts: bool) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let store = Store::open(&folder.path().join("data"), Plans::default(), Clock::system());
        let (log, changes) =
            Appender::open(&folder.path().join("changes"), noon(0)).expect("opens");
        World {
            runtime: runtime.expect("a runtime"),
            store: store.expect("a store"),
            log: Arc::new(log),
            changes,
            base: None,
            restarts,
            lists: 0,
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Ingests a list observed on a day, and builds a generation.
    fn ingest(&mut self, days: i32, rows: &[String]) {
        self.lists += 1;
        let name = format!("list-{}.csv", self.lists);
        let (path, now) = (self.path(&name), noon(days));
        fs::write(&path, format!("{HEADER}{}\n", rows.join("\n"))).expect("written");
        let options = ReadOptions { format: None, drop_date: None, observed_at: Some(now), now };
        let feed = Feed::open(&path, &options).expect("a list");
        let corpus = Corpus::open(&self.path("data")).expect("a corpus");
        let mut sha256 = [0; 32];
        sha256[..8].copy_from_slice(&self.lists.to_le_bytes());
        let source = Source {
            name,
            sha256,
            format: "native".to_owned(),
            observed_at: now,
            ingested_at: now,
            origin: None,
            day: None,
            replaces: Vec::new(),
            zone: None,
        };
        corpus.ingest(&source, feed).expect("taken");
        let batches = corpus.batches().expect("batches");
        build::rebuild(&self.path("index"), &batches, &[], BuildSettings::default(), now)
            .expect("built");
    }

    fn reopen_log(&mut self) {
        let (log, changes) = Appender::open(&self.path("changes"), noon(0)).expect("opens");
        (self.log, self.changes) = (Arc::new(log), changes);
    }

    /// Derives the new events of a day.
    fn derive(&mut self, days: i32) {
        if self.restarts {
            self.base = None;
            self.reopen_log();
        }
        let index = open::open_current(&self.path("index")).expect("a generation").index;
        let deriving = Deriving {
            live: Arc::new(LiveIndex::new(Arc::new(index))),
            store: self.store.clone(),
            clock: Clock::pinned_to(day(days)),
            catch_days: 5,
            index: self.path("index"),
            log: Arc::clone(&self.log),
            published: Arc::default(),
        };
        let base = self.base.take();
        self.base = self.runtime.block_on(deriving.derive(base, true)).expect("derived");
    }

    /// Derives the new events at a time of a day.
    fn derive_at(&mut self, days: i32, time: &str) {
        let index = open::open_current(&self.path("index")).expect("a generation").index;
        let today = day(days);
        let derivation = Derivation {
            index: Arc::new(index),
            folder: self.path("index"),
            store: self.store.clone(),
            log: Arc::clone(&self.log),
            as_of: AsOf { today, catch_days: 5 },
            now: format!("{today}T{time}Z").parse().expect("a time"),
            hours: true,
            corrects: false,
        };
        self.base = derivation.run(self.base.take()).expect("derived");
    }

    fn events(&self) -> Vec<Event> {
        let changes = self.changes.read(0, usize::MAX).expect("readable");
        assert!(changes.is_sorted_by(|one, next| one.seq + 1 == next.seq));
        let event = |change: crate::vocab::change::Change| {
            assert_eq!(change.dqs_before.is_some(), change.kind == ChangeKind::Rescored);
            let (kind, source) = (change.kind.as_str(), change.source.as_str());
            (change.day.days_since(day(0)), kind, source, change.name.as_str().to_owned())
        };
        changes.into_iter().map(event).collect()
    }

    fn watch(&self, text: &str) -> Caller {
        let email = format!("{text}@example.com").parse().expect("an address");
        self.store.add_account(&email, Plan::Pro, None).expect("added");
        let key = self.store.issue_key(&email).expect("issued").key;
        let caller = self.store.authenticate(key.reveal()).expect("a key");
        let watch = Watch {
            name: name(text),
            in_corpus: true,
            registered_again: false,
            arrived: Vec::new(),
            patch: WatchPatch::default(),
            near: None,
        };
        let added = self.runtime.block_on(self.store.add_watches(&caller, vec![watch], noon(0)));
        assert!(added.expect("written").iter().all(Result::is_ok));
        caller
    }

    /// Observes a state; two sources agree that an available name is free.
    fn observe(&self, text: &str, state: RdapState, days: i32) {
        let free = [Evidence::RdapNone, Evidence::Control, Evidence::NotDelegated];
        self.observe_with(text, state, days, free.into_iter().collect());
    }

    fn observe_with(&self, text: &str, state: RdapState, days: i32, evidence: EvidenceSet) {
        let observation = Observation {
            state,
            at: UnixMs::from_instant(noon(days)),
            registered_on: None,
            statuses: RdapStatuses::NONE,
            source: ObservedBy::Rdap,
            evidence,
            registration: LatestRegistration::default(),
        };
        let rows = vec![(name(text), observation)];
        self.runtime.block_on(self.store.record_observations(rows)).expect("written");
    }
}

fn name(text: &str) -> DomainName {
    DomainName::parse(text).expect("a name")
}

fn row(text: &str, dropped: i32, release: Option<i32>, again: bool) -> String {
    let release = release.map_or(String::new(), |days| day(days).to_string());
    format!("{text},{},{release},{again}", day(dropped))
}

fn event(days: i32, kind: &'static str, source: &'static str, text: &str) -> Event {
    (days, kind, source, text.to_owned())
}

/// Lists of several weeks, with a derivation on each of these days after its lists.
fn story(restarts: bool, days: impl Iterator<Item = i32>) -> Vec<Event> {
    let mut world = World::new(restarts);
    world.ingest(0, &[row("past.com", -10, None, false), row("gone.com", -90, None, false)]);
    world.derive(0);
    assert_eq!(world.events(), [], "a first start derives nothing of the past");
    let days: Vec<i32> = days.collect();
    let end = days.iter().max().copied().unwrap_or(0);
    for today in 0..=end {
        match today {
            0 => world.ingest(
                0,
                &[
                    row("fresh.com", 0, None, false),
                    row("soon.com", -34, Some(1), false),
                    row("late.de", -1, Some(3), false),
                    row("kept.com", 0, None, false),
                    // Released two days ago, so leaving the zone is not an event.
                    row("caught.com", -37, Some(-2), false),
                    // Released long ago, so no further event is expected.
                    row("ancient.com", -200, None, false),
                ],
            ),
            3 => world.ingest(3, &[row("kept.com", 0, None, true)]),
            // A list of the registry postpones the release past the day of `drops-tomorrow`.
            20 => world.ingest(20, &[row("fresh.com", 0, Some(21), false)]),
            24 => world.ingest(24, &[row("fresh.com", 0, Some(21), true)]),
            _ => {}
        }
        if days.contains(&today) {
            world.derive(today);
            // No event is derived twice.
            let events = world.events();
            world.derive(today);
            assert_eq!(world.events(), events);
        }
    }
    world.events()
}

#[test]
fn each_kind_of_event_is_derived_on_its_day() {
    let expected = [
        // Sorted by score, then by kind.
        event(0, "available", "calendar", "caught.com"),
        event(0, "left-zone", "list", "kept.com"),
        event(0, "left-zone", "list", "soon.com"),
        event(0, "drops-tomorrow", "calendar", "soon.com"),
        event(0, "left-zone", "list", "fresh.com"),
        event(0, "left-zone", "list", "late.de"),
        event(1, "drops-today", "calendar", "soon.com"),
        event(2, "available", "calendar", "soon.com"),
        event(2, "drops-tomorrow", "calendar", "late.de"),
        event(3, "drops-today", "calendar", "late.de"),
        event(3, "renewed", "list", "kept.com"),
        event(4, "available", "calendar", "late.de"),
        event(20, "pending-delete", "calendar", "past.com"),
        event(20, "drops-tomorrow", "calendar", "fresh.com"),
        event(21, "drops-today", "calendar", "fresh.com"),
        event(22, "available", "calendar", "fresh.com"),
        event(24, "drops-tomorrow", "calendar", "past.com"),
        event(24, "registered-again", "list", "fresh.com"),
        event(25, "drops-today", "calendar", "past.com"),
        event(26, "available", "calendar", "past.com"),
    ];
    // Events of one derivation are ordered by score, which this test ignores.
    let sorted = |mut events: Vec<Event>| {
        events.sort();
        events
    };
    assert_eq!(sorted(story(false, 0..=30)), sorted(expected.to_vec()));
    assert_eq!(story(true, 0..=30), story(false, 0..=30), "a restart changes nothing");
}

#[test]
fn missed_days_are_derived_in_order_with_their_own_days() {
    let events = story(false, [0, 19, 30].into_iter());
    assert!(events.is_sorted_by_key(|event| event.0), "{events:?}");
    let of = |text: &str| -> Vec<(i32, &str)> {
        let of_name = events.iter().filter(|event| event.3 == text);
        of_name.map(|event| (event.0, event.1)).collect()
    };
    assert_eq!(of("soon.com")[2..], [(1, "drops-today"), (2, "available")]);
    assert_eq!(
        of("past.com"),
        [(20, "pending-delete"), (24, "drops-tomorrow"), (25, "drops-today"), (26, "available")]
    );
    // Events from lists have the day on which the server learns of them; the name was restored before day
    // 35.
    assert_eq!(of("kept.com"), [(0, "left-zone"), (19, "renewed")]);
    let expected = [(0, "left-zone"), (30, "pending-delete"), (30, "registered-again")];
    assert_eq!(of("fresh.com"), expected);
}

#[test]
fn a_score_that_moves_by_five_is_an_event() {
    for restarts in [false, true] {
        let mut world = World::new(restarts);
        world.ingest(0, &[row("lumoria.com", 0, None, false), row("qzxvk.com", 0, None, false)]);
        world.derive(0);
        // The number of TLDs affects a score only if the corpus has other names.
        let others =
            Coverage::probes().flat_map(|label| ["net", "org", "de"].map(|tld| (label, tld)));
        let known = TLDS.split(' ').map(|tld| ("lumoria", tld)).chain(others);
        let rows = known.map(|(label, tld)| format!("{label}.{tld},,,")).collect::<Vec<_>>();
        world.ingest(1, &rows);
        world.derive(0);
        assert!(world.events().contains(&event(0, "rescored", "list", "lumoria.com")));
        for change in world.changes.read(0, 9).expect("readable") {
            let (before, after) = (change.dqs_before.expect("known"), change.dqs.expect("known"));
            assert!(after.points().abs_diff(before.points()) >= 5, "{before} to {after}");
        }
    }
}

#[test]
fn registries_are_believed_once() {
    for restarts in [false, true] {
        let mut world = World::new(restarts);
        world.ingest(0, &[row("solar.com", -20, None, false)]);
        world.watch("solar.com");
        world.watch("other.com");
        world.observe("other.com", RdapState::Available, 0);
        world.derive(0);
        let states = [
            (RdapState::PendingDelete, 1, None),
            (RdapState::Available, 2, Some("available")),
            (RdapState::Available, 3, None),
            (RdapState::Unknown, 4, None),
            (RdapState::Available, 5, None),
            (RdapState::RegisteredAgain, 6, Some("registered-again")),
            (RdapState::Renewed, 7, Some("renewed")),
        ];
        let mut expected = Vec::new();
        for (state, days, kind) in states {
            world.observe("solar.com", state, days);
            expected.extend(kind.map(|kind| event(days, kind, "registry", "solar.com")));
            world.derive(0);
            world.derive(0);
            assert_eq!(world.events(), expected);
        }
        // A first observation is not a change.
        world.observe("other.com", RdapState::Available, 8);
        world.derive(0);
        assert_eq!(world.events(), expected);
    }
}

/// A single 404 may be wrong, so nobody is notified; the second source makes it a change.
#[test]
fn only_names_that_two_sources_call_free_are_reported_as_free() {
    let mut world = World::new(false);
    world.ingest(0, &[row("solar.com", -20, None, false)]);
    world.watch("solar.com");
    let probably: EvidenceSet = [Evidence::RdapNone, Evidence::Control].into_iter().collect();
    let states = [
        (RdapState::PendingDelete, EvidenceSet::default(), false),
        (RdapState::Available, probably, false),
        (RdapState::Available, probably.with(Evidence::NotDelegated), true),
        (RdapState::Available, probably.with(Evidence::NotDelegated), false),
    ];
    let mut expected = Vec::new();
    for (days, (state, evidence, is_told)) in (1..).zip(states) {
        world.observe_with("solar.com", state, days, evidence);
        expected.extend(is_told.then(|| event(days, "available", "registry", "solar.com")));
        world.derive(0);
        assert_eq!(world.events(), expected, "{state} {evidence:?}");
    }
}

#[test]
fn the_hour_of_a_watched_name_is_announced_once() {
    let mut world = World::new(false);
    let rows = ["soon.com", "other.com", "jour.fr", "late.com"].map(|name| {
        let again = name == "late.com";
        row(name, -34, Some(1), again)
    });
    world.ingest(0, &rows);
    for name in ["soon.com", "jour.fr", "late.com"] {
        world.watch(name);
    }
    world.derive_at(1, "00:00:00");
    let announced = |world: &World| -> Vec<Event> {
        world.events().into_iter().filter(|event| event.1 == "drops-in-an-hour").collect()
    };
    // In June, names under .com are released from 18:00 UTC.
    for (time, count) in
        [("16:59:59", 0), ("17:00:00", 1), ("17:05:00", 1), ("17:59:59", 1), ("18:10:00", 1)]
    {
        world.derive_at(1, time);
        world.reopen_log();
        let expected = [event(1, "drops-in-an-hour", "calendar", "soon.com")];
        assert_eq!(announced(&world), expected[..count], "{time}");
    }
    // A name that is watched within the hour is announced as well, and a missed hour is not.
    world.ingest(2, &[row("next.com", 0, Some(3), false), row("past.com", 0, Some(2), false)]);
    world.watch("past.com");
    world.derive_at(3, "17:20:00");
    assert_eq!(announced(&world).len(), 1);
    world.watch("next.com");
    world.derive_at(3, "17:25:00");
    let last = announced(&world).pop();
    assert_eq!(last, Some(event(3, "drops-in-an-hour", "calendar", "next.com")));
}

#[test]
fn an_older_generation_and_a_clock_set_back_derive_nothing() {
    let mut world = World::new(false);
    world.ingest(0, &[row("solar.com", 0, Some(6), false)]);
    world.derive(0);
    world.ingest(5, &[row("wind.com", 5, None, false)]);
    world.derive(5);
    let events = world.events();
    assert_eq!(events.len(), 3, "{events:?}");
    let current = world.path("index").join("CURRENT");
    let newest = fs::read(&current).expect("readable");
    fs::write(&current, format!("{}\n", GenerationId(1))).expect("written");
    for days in [3, 5] {
        world.derive(days);
        assert_eq!(world.events(), events);
    }
    fs::write(&current, newest).expect("written");
    world.derive(5);
    assert_eq!(world.events(), events);
    assert!(Path::new(&world.path("changes")).exists());
}
