//! Tests of order, turns and intervals.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::super::server::{Ended, Limits, Server};
use super::*;
use crate::vocab::dqs::Dqs;
use crate::vocab::evidence::EvidenceSet;
use crate::vocab::observation::{LatestRegistration, ObservedBy, RdapStatuses};

const TODAY: &str = "2026-11-21";

fn day(text: &str) -> Day {
    text.parse().expect(text)
}

fn at(text: &str) -> UnixMs {
    text.parse().expect(text)
}

fn time() -> PlanTime {
    PlanTime { now: at("2026-11-21T12:00:00Z"), today: day(TODAY) }
}

/// The time `ms` milliseconds before [`time`].
fn ago(ms: u64) -> UnixMs {
    UnixMs::new(time().now.get() - ms).expect("after 1970")
}

fn seen(state: RdapState, at: UnixMs, registered_on: Option<&str>) -> Observation {
    Observation {
        state,
        at,
        registered_on: registered_on.map(day),
        statuses: RdapStatuses::NONE,
        source: ObservedBy::Rdap,
        evidence: EvidenceSet::default(),
        registration: LatestRegistration::default(),
    }
}

fn target(name: &str, watchers: &[u64], observation: Option<Observation>) -> Target {
    Target {
        name: DomainName::parse(name).expect(name),
        external: false,
        watchers: watchers.iter().map(|&number| AccountId(number)).collect(),
        added_at: at("2020-01-01T00:00:00Z"),
        observation,
    }
}

/// A drop to be released in this many days.
fn drop_in(days: i32) -> NameFacts {
    let release = day(TODAY).plus(days);
    NameFacts {
        dqs: Dqs::new(50).expect("a score"),
        latest_drop: Some(release.plus(-35)),
        release: Some(release.into()),
        stage: Some(Stage::on(day(TODAY), release, 5, 5)),
        registered_again: false,
    }
}

fn plan(targets: Vec<Target>, facts: impl Fn(&DomainName) -> Option<NameFacts>) -> VerifyPlan {
    VerifyPlan::new(targets, &Bootstrap::compiled(), &time(), facts, |_| Some(0), |_| None)
}

fn names(queue: &VecDeque<Due>) -> Vec<&str> {
    queue.iter().map(|due| due.name.label()).collect()
}

/// The queue of .com.
fn com(plan: &VerifyPlan) -> Vec<&str> {
    plan.rdap.get("https://rdap.verisign.com").map(names).unwrap_or_default()
}

#[test]
fn names_are_sorted_by_urgency_then_release_then_age_of_the_observation() {
    let week = REST_AGAIN_MS;
    let targets = vec![
        target("rest-new.com", &[1], None),
        target("rest-old.com", &[1], Some(seen(RdapState::Unknown, ago(3 * week), None))),
        target("rest-seen.com", &[1], Some(seen(RdapState::Available, ago(2 * week), None))),
        target("near-5.com", &[1], None),
        target("near-1.com", &[1], Some(seen(RdapState::PendingDelete, ago(week), None))),
        target("near-0.com", &[1], Some(seen(RdapState::Available, ago(week), None))),
        target("near-past.com", &[1], Some(seen(RdapState::Available, ago(week), None))),
        target("external-b.com", &[1], None),
        target("external-a.com", &[1], None),
    ];
    let facts = |name: &DomainName| match name.label() {
        "external-a" | "external-b" => None,
        "near-0" => Some(drop_in(0)),
        "near-1" => Some(drop_in(1)),
        "near-5" => Some(drop_in(5)),
        "near-past" => Some(drop_in(-3)),
        _ => Some(drop_in(30)),
    };
    let expected = [
        "external-a",
        "external-b",
        "near-0",
        "near-1",
        "near-past",
        "near-5",
        "rest-new",
        "rest-old",
        "rest-seen",
    ];
    assert_eq!(com(&plan(targets, facts)), expected);
}

#[test]
fn the_last_observation_determines_the_interval() {
    let minute = 60_000;
    for (state, release_in, again_ms) in [
        (RdapState::PendingDelete, Some(3), NEAR_AGAIN_MS),
        (RdapState::Available, Some(1), NEAR_AGAIN_MS),
        (RdapState::Available, Some(-4), NEAR_AGAIN_MS),
        (RdapState::Available, Some(-NEAR_DAYS), NEAR_AGAIN_MS),
        (RdapState::Available, Some(-NEAR_DAYS - 1), REST_AGAIN_MS),
        (RdapState::Redemption, Some(NEAR_DAYS), NEAR_AGAIN_MS),
        (RdapState::Redemption, Some(NEAR_DAYS + 1), REDEMPTION_AGAIN_MS),
        (RdapState::Unknown, Some(20), REDEMPTION_AGAIN_MS),
        // The registry reports that the name is registered, which overrides the date.
        (RdapState::Renewed, Some(3), REST_AGAIN_MS),
        (RdapState::RegisteredAgain, Some(-1), REST_AGAIN_MS),
        (RdapState::Renewed, Some(20), REST_AGAIN_MS),
        // Only the registry has information on the name.
        (RdapState::PendingDelete, None, NEAR_AGAIN_MS),
        (RdapState::Redemption, None, REDEMPTION_AGAIN_MS),
        (RdapState::Registered, None, REST_AGAIN_MS),
        (RdapState::Unknown, None, REST_AGAIN_MS),
    ] {
        let due = |ms: u64| {
            let targets = vec![target("a.com", &[1], Some(seen(state, ago(ms), None)))];
            let plan = plan(targets, |_| release_in.map(drop_in));
            plan.dns.len() + com(&plan).len() == 1
        };
        assert!(due(again_ms), "{state} {release_in:?}");
        assert!(!due(again_ms - minute), "{state} {release_in:?}");
    }
}

#[test]
fn the_hour_of_a_release_determines_when_to_ask() {
    let plan_at = |name: &str, seen_at: &str, now: &str| {
        let now = at(now);
        let time = PlanTime { now, today: Day::from_instant(now.instant()).expect("a day") };
        let observation = seen(RdapState::PendingDelete, at(seen_at), None);
        let targets = vec![target(name, &[1], Some(observation))];
        let facts = |_: &DomainName| {
            let release = day("2026-11-24");
            Some(NameFacts {
                release: Some(release.into()),
                stage: Some(Stage::on(time.today, release, 5, 5)),
                ..drop_in(0)
            })
        };
        let bootstrap = Bootstrap::compiled();
        let plan = VerifyPlan::new(targets, &bootstrap, &time, facts, |_| Some(0), |_| None);
        plan.dns.len() + plan.rdap.values().map(VecDeque::len).sum::<usize>() == 1
    };
    for (name, seen_at, now, expected) in [
        // .com names are released from 19:00.
        ("a.com", "2026-11-23T10:00:00Z", "2026-11-23T16:00:00Z", true),
        ("a.com", "2026-11-23T23:00:00Z", "2026-11-24T18:59:00Z", false),
        ("a.com", "2026-11-23T18:00:00Z", "2026-11-24T18:59:00Z", true),
        ("a.com", "2026-11-23T23:00:00Z", "2026-11-24T19:01:00Z", false),
        ("a.com", "2026-11-23T23:00:00Z", "2026-11-24T19:02:00Z", true),
        ("a.com", "2026-11-24T19:02:10Z", "2026-11-24T19:09:00Z", false),
        ("a.com", "2026-11-24T19:02:10Z", "2026-11-24T19:10:00Z", true),
        ("a.com", "2026-11-24T19:10:10Z", "2026-11-24T19:59:00Z", false),
        ("a.com", "2026-11-24T19:10:10Z", "2026-11-24T20:00:00Z", true),
        ("a.com", "2026-11-24T20:00:10Z", "2026-11-25T01:59:00Z", false),
        ("a.com", "2026-11-24T20:00:10Z", "2026-11-25T02:01:00Z", true),
        // Those of .fr on some hour of the day.
        ("a.fr", "2026-11-24T20:00:00Z", "2026-11-24T23:00:00Z", false),
        ("a.fr", "2026-11-24T20:00:00Z", "2026-11-25T00:02:00Z", true),
        ("a.fr", "2026-11-24T17:00:00Z", "2026-11-24T23:00:00Z", true),
        // Nothing is known of .museum.
        ("a.museum", "2026-11-24T20:00:00Z", "2026-11-25T00:02:00Z", false),
    ] {
        assert_eq!(plan_at(name, seen_at, now), expected, "{name} {seen_at} {now}");
    }
}

#[test]
fn a_name_added_after_its_observation_is_due_again() {
    let observation = seen(RdapState::Registered, ago(1_000), None);
    let mut watched = target("a.com", &[1, 2], Some(observation));
    assert!(com(&plan(vec![watched.clone()], |_| None)).is_empty());
    watched.added_at = ago(500);
    let plan = plan(vec![watched], |_| None);
    // The name is registered, so DNS may be queried.
    assert_eq!(plan.dns.len() + com(&plan).len(), 1);
    let due = plan.dns.front().or_else(|| plan.rdap.values().next()?.front()).expect("one");
    assert_eq!(due.urgency, Urgency::External);
}

#[test]
fn names_stay_due_when_the_clock_is_set_back() {
    let later = UnixMs::new(time().now.get() + REST_AGAIN_MS).expect("in range");
    let plan =
        plan(vec![target("a.com", &[1], Some(seen(RdapState::Unknown, later, None)))], |_| None);
    assert_eq!(com(&plan), ["a"]);
}

#[test]
fn accounts_take_turns_within_an_urgency() {
    let mut targets: Vec<Target> =
        (0..1_000).map(|n| target(&format!("many-{n:04}.com"), &[1], None)).collect();
    targets.extend((0..3).map(|n| target(&format!("few-{n}.com"), &[2], None)));
    targets.push(target("both.com", &[1, 2], None));
    let queue = |turn: Option<u64>| {
        let turn = turn.map(AccountId);
        VerifyPlan::new(
            targets.clone(),
            &Bootstrap::compiled(),
            &time(),
            |_| None,
            |_| Some(0),
            |_| turn,
        )
    };
    let first = queue(None);
    let expected = ["both", "few-0", "many-0000", "few-1", "many-0001", "few-2", "many-0002"];
    assert_eq!(com(&first)[..7], expected);
    assert_eq!(com(&first)[7..9], ["many-0003", "many-0004"]);
    assert_eq!(com(&first).len(), 1_004, "each name once");
    // After account 1 it is account 2's turn, and so on in a circle.
    assert_eq!(com(&queue(Some(1)))[..3], ["both", "many-0000", "few-0"]);
    assert_eq!(com(&queue(Some(2)))[..3], ["both", "few-0", "many-0000"]);
    let turns: Vec<u64> =
        first.rdap.values().next().expect("one").iter().map(|it| it.account.0).collect();
    assert_eq!(turns[..5], [1, 2, 1, 2, 1]);
}

#[test]
fn each_server_has_a_queue_and_names_without_a_server_use_dns() {
    let targets = ["a.com", "b.net", "c.org", "d.de", "e.co.uk", "found.se"];
    let plan = plan(targets.iter().map(|name| target(name, &[1], None)).collect(), |_| None);
    assert_eq!(com(&plan), ["a", "b"], "one server for both");
    let servers: BTreeSet<&str> = plan.rdap.keys().map(String::as_str).collect();
    let expected = [
        "https://rdap.nominet.uk",
        "https://rdap.publicinterestregistry.org",
        "https://rdap.verisign.com",
    ];
    assert_eq!(servers.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(names(&plan.dns), ["d", "found"]);
    assert!(plan.dns.iter().all(|due| due.how == How::DnsOnly));
}

#[test]
fn names_that_failed_or_are_in_flight_wait() {
    let targets = vec![target("a.com", &[1], None), target("b.com", &[1], None)];
    let failures = |name: &DomainName| (name.label() == "b").then_some(3);
    let plan =
        VerifyPlan::new(targets, &Bootstrap::compiled(), &time(), |_| None, failures, |_| None);
    assert_eq!(com(&plan), ["b"]);
}

/// Over three months of weekly checks, a registered name is verified by RDAP at least once in
/// [`DNS_TRUSTED_DAYS`] plus one interval, and rarely more often.
#[test]
fn dns_replaces_rdap_for_a_limited_time() {
    let mut asked = 0;
    for n in 0..200 {
        let mut observation =
            seen(RdapState::Renewed, at("2026-01-01T06:00:00Z"), Some("2010-01-01"));
        let mut last_rdap = day("2026-01-01");
        for look in 1..=13 {
            let today = day("2026-01-01").plus(look * 7);
            let now = UnixMs::from_instant(today.start() + chrono::TimeDelta::hours(7));
            let facts = NameFacts { latest_drop: Some(day("2025-12-01")), ..drop_in(0) };
            let plan = VerifyPlan::new(
                vec![target(&format!("a{n}.com"), &[1], Some(observation))],
                &Bootstrap::compiled(),
                &PlanTime { now, today },
                |_| Some(facts),
                |_| Some(0),
                |_| None,
            );
            assert_eq!(plan.dns.len() + com(&plan).len(), 1);
            if plan.dns.is_empty() {
                asked += 1;
                last_rdap = today;
            }
            let bound = i32::from(DNS_TRUSTED_DAYS) + 7;
            assert!(today.days_since(last_rdap) < bound, "a{n} on {today}");
            observation = Observation { at: now, ..observation };
        }
    }
    assert!((200 * 6..=200 * 7).contains(&asked), "{asked}");
}

#[test]
fn rdap_is_used_where_dns_is_not_sufficient() {
    let yesterday = "2026-11-14T06:00:00Z";
    let uses_dns = |state, registered_on: Option<&str>, drop: Option<&str>| {
        // Some of the names are due for RDAP on this day, so the closure tries 50.
        (0..50).any(|n| {
            let observation = seen(state, at(yesterday), registered_on);
            let facts = NameFacts { latest_drop: drop.map(day), stage: None, ..drop_in(0) };
            let targets = vec![target(&format!("a{n}.com"), &[1], Some(observation))];
            !plan(targets, |_| Some(facts)).dns.is_empty()
        })
    };
    use RdapState::*;
    assert!(uses_dns(Registered, Some("2010-01-01"), None));
    assert!(uses_dns(Registered, None, None));
    assert!(uses_dns(Renewed, Some("2010-01-01"), Some("2026-10-01")));
    assert!(uses_dns(RegisteredAgain, Some("2026-10-02"), Some("2026-10-01")));
    // The name has dropped again since then, or a newly known drop changes the meaning of the date.
    assert!(!uses_dns(RegisteredAgain, Some("2026-10-02"), Some("2026-11-14")));
    assert!(!uses_dns(RegisteredAgain, Some("2026-10-02"), Some("2026-11-01")));
    assert!(!uses_dns(Registered, Some("2010-01-01"), Some("2026-10-01")));
    for state in [Redemption, PendingDelete, Available, Unknown] {
        assert!(!uses_dns(state, Some("2010-01-01"), Some("2026-10-01")), "{state}");
    }
}

/// A day on which ten thousand watched names are released under one suffix, at its server's usual rate.
#[test]
fn ten_thousand_names_of_one_day_stay_within_the_rate_of_their_server() {
    const NAMES: usize = 10_000;
    const STEP_MS: u64 = 20 * MINUTE_MS;
    let limits = Limits { per_second: 1, concurrency: 2 };
    let (begin, release) = (at("2026-11-24T00:00:00Z"), day("2026-11-24"));
    let hour = at("2026-11-24T19:00:00Z").get() + 2 * MINUTE_MS;
    let facts = |_: &DomainName| {
        Some(NameFacts {
            release: Some(release.into()),
            stage: Some(Stage::on(release, release, 5, 5)),
            ..drop_in(0)
        })
    };
    let mut last: HashMap<DomainName, UnixMs> = (0..NAMES)
        .map(|number| {
            let name = DomainName::parse(&format!("name-{number}.com")).expect("a name");
            (name, UnixMs::new(begin.get() - 60 * MINUTE_MS).expect("after 1970"))
        })
        .collect();
    let start = Instant::now();
    let at_ms = |ms: u64| UnixMs::new(begin.get() + ms).expect("after 1970");
    let mut server = Server::new(limits, start);
    let (mut asked, mut repeated) = (Vec::new(), 0);
    for step in (0..24 * 60 * MINUTE_MS).step_by(STEP_MS as usize) {
        let targets = last
            .iter()
            .map(|(name, &seen_at)| {
                let account = [1 + name.as_str().len() as u64 % 3];
                let seen = seen(RdapState::PendingDelete, seen_at, None);
                target(name.as_str(), &account, Some(seen))
            })
            .collect();
        let time = PlanTime { now: at_ms(step), today: release };
        let bootstrap = Bootstrap::compiled();
        let plan = VerifyPlan::new(targets, &bootstrap, &time, facts, |_| Some(0), |_| None);
        for due in plan.rdap.into_values().flatten() {
            let ready = server.ready_at().expect("each query ends at once");
            let ms = (ready.saturating_duration_since(start).as_millis() as u64).max(step);
            if ms >= step + STEP_MS {
                break;
            }
            server.begin(start + Duration::from_millis(ms));
            server.end(Ended::Answered, start + Duration::from_millis(ms));
            let before = last.insert(due.name, at_ms(ms));
            repeated += usize::from(before.is_some_and(|before| before.get() >= hour));
            asked.push(begin.get() + ms);
        }
    }
    assert!(asked.iter().all(|&at| at >= hour), "nothing new before the hour");
    for second in asked.chunk_by(|one, other| one / 1_000 == other / 1_000) {
        assert!(second.len() <= 3, "{} queries in a second", second.len());
    }
    let first_round = asked[NAMES - 1] - hour;
    assert!(first_round < 4 * 60 * MINUTE_MS, "{first_round} ms until every name was asked");
    assert!(last.values().all(|at| at.get() >= hour), "no name is left out");
    assert!(repeated > 2_000, "those of the first hour are asked once more: {repeated}");
}
