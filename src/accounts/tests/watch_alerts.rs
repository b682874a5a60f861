//! Settings of watch alerts, and changes of watched names on their way to messages.

use super::*;
use crate::vocab::change::{Change, ChangeKind, ChangeKinds, ChangeSource};
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, DeliveryId};
use crate::vocab::limits::{DELIVERIES_KEPT_MAX, MESSAGE_NAMES_MAX};
use crate::vocab::zone::{Hour, Zone};

const EVERY: ChangeKinds = ChangeKinds::ALL;

fn today() -> Day {
    "2026-11-21".parse().expect("a day")
}

fn change(seq: u64, kind: ChangeKind, domain: &str) -> Change {
    Change {
        seq,
        kind,
        source: ChangeSource::Calendar,
        name: name(domain),
        day: today(),
        dqs: None,
        dqs_before: None,
        release: None,
    }
}

fn settings(kinds: ChangeKinds, channels: Vec<Channel>) -> NewWatchAlerts {
    let alerts = WatchAlerts { kinds, ..WatchAlerts::default() };
    NewWatchAlerts { alerts, channels, switch_on: true }
}

fn only(kind: ChangeKind) -> ChangeKinds {
    ChangeKinds::NONE.with(kind)
}

/// Returns the name and kind of each change in a message.
fn told(delivery: &Delivery) -> Vec<(String, ChangeKind)> {
    let changes = delivery.message.changes().iter();
    changes.map(|change| (change.name.to_string(), change.kind)).collect()
}

impl World {
    fn begun() -> (World, Caller) {
        let world = World::new();
        let ann = world.account("ann@example.com", Plan::Pro);
        world
            .wait(world.store.begin_watch_alerts(100, UnixMs::from_instant(noon())))
            .expect("begun");
        (world, ann)
    }

    fn save(&self, caller: &Caller, new: NewWatchAlerts) -> Result<usize, WriteError> {
        let at = UnixMs::from_instant(noon());
        self.wait(self.store.set_watch_alerts(caller, new, at)).map(|secrets| secrets.len())
    }

    fn choose(&self, caller: &Caller, domain: &str, alerts: Option<EntryAlerts>) {
        let patch = WatchPatch { alerts: Some(alerts), ..WatchPatch::default() };
        self.wait(self.store.change_watch(caller, &name(domain), &patch)).expect("changed");
    }

    /// Matches changes and queues their messages, like the worker.
    fn tell(&self, changes: &[Change]) -> usize {
        let mut changes = changes.to_vec();
        let through = changes.last().expect("one").seq;
        self.store.keep_watched(&mut changes);
        let found = self.store.match_changes(&changes);
        self.wait(self.store.record_changes(through, &changes, &found, true)).expect("recorded")
    }

    fn sent(&self, caller: &Caller) -> Vec<Delivery> {
        self.store.user_data(caller).deliveries(RuleId::WATCHLIST).cloned().collect()
    }

    fn settle_all(&self, outcome: AttemptOutcome) {
        let at = UnixMs::from_instant(Clock::pinned_to(today()).now());
        let outcomes: Vec<_> = self
            .store
            .pending_deliveries()
            .iter()
            .map(|it| (it.account, it.rule.id, it.delivery.id, outcome))
            .collect();
        self.wait(self.store.settle(outcomes, at)).expect("settled");
    }
}

#[test]
fn the_defaults_apply_to_newly_watched_names() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    let before = noon() - Duration::milliseconds(1);
    let old = world.store.add_watches(&ann, vec![watch("old.com", true)], before);
    assert!(world.wait(old).expect("added").iter().all(Result::is_ok));
    world.wait(world.store.begin_watch_alerts(100, UnixMs::from_instant(noon()))).expect("begun");
    world
        .wait(world.store.begin_watch_alerts(7, UnixMs::from_instant(noon())))
        .expect("begun once");
    assert_eq!(world.store.changes_matched(), Some(100));
    world.add_watch(&ann, watch("new.com", true)).expect("added");
    let all: Vec<_> = ["new.com", "old.com"]
        .into_iter()
        .flat_map(|domain| ChangeKind::ALL.map(|kind| (kind, domain)))
        .zip(101..)
        .map(|((kind, domain), seq)| change(seq, kind, domain))
        .collect();
    assert_eq!(world.tell(&all), 1);
    let sent = world.sent(&ann);
    let usual = [
        ChangeKind::DropsTomorrow,
        ChangeKind::Available,
        ChangeKind::Renewed,
        ChangeKind::RenewalDue,
    ];
    assert_eq!(told(&sent[0]), usual.map(|kind| ("new.com".to_owned(), kind)));
    assert_eq!((&*sent[0].channel, sent[0].message.kind), (&Channel::Email, MessageKind::Changes));
    assert!(world.store.pending_deliveries()[0].unsubscribe.is_some());

    // No change is sent twice, even after a restart.
    let world = world.reopened();
    assert_eq!(world.store.changes_matched(), Some(100 + all.len() as u64));
    assert_eq!(world.tell(&all), 0);

    // Saved settings apply to all names. The plan includes only mail, and settings can be empty.
    let hook = vec![Channel::Email, webhook("https://hooks.example.com/x")];
    assert_plan_limit(world.save(&ann, settings(EVERY, hook)), None);
    world.save(&ann, settings(only(ChangeKind::Renewed), vec![Channel::Email])).expect("saved");
    let again = change(121, ChangeKind::Renewed, "old.com");
    assert_eq!(world.tell(&[again]), 1);
    world.save(&ann, settings(EVERY, Vec::new())).expect("saved");
    assert_eq!(world.tell(&[change(122, ChangeKind::Renewed, "old.com")]), 0);
    let none = world.sent(&ann);
    assert!(none.iter().all(|it| it.status == DeliveryStatus::Failed), "its channel is gone");
    // Nothing is queued if the server has no mail settings, or for a disabled account.
    world.save(&ann, settings(EVERY, vec![Channel::Email])).expect("saved");
    let changes = [change(123, ChangeKind::Renewed, "old.com")];
    let found = world.store.match_changes(&changes);
    let queued = world.store.record_changes(119, &changes, &found, false);
    assert_eq!((found.len(), world.wait(queued).expect("recorded")), (1, 0));
    world.reopened();
}

#[test]
fn entries_choose_kinds_and_channels_or_are_muted() {
    let (world, ann) = World::begun();
    let bob = world.account("bob@example.com", Plan::Api);
    let hook = webhook("https://hooks.example.com/x");
    let channels = vec![Channel::Email, hook.clone()];
    assert_eq!(world.save(&ann, settings(only(ChangeKind::Renewed), channels)).expect("saved"), 1);
    for domain in ["follows.com", "mute.com", "own.com", "mailed.com"] {
        world.add_watch(&ann, watch(domain, true)).expect("added");
    }
    world.add_watch(&bob, watch("own.com", true)).expect("added");
    let own = |kinds, channels: &[&str]| EntryAlerts {
        kinds,
        channels: channels.iter().map(|it| (*it).into()).collect(),
    };
    world.choose(&ann, "mute.com", Some(EntryAlerts::default()));
    world.choose(&ann, "own.com", Some(own(only(ChangeKind::LeftZone), &[])));
    world.choose(&ann, "mailed.com", Some(own(EVERY, &["email"])));
    let all: Vec<_> = ["follows.com", "mailed.com", "mute.com", "own.com", "strange.com"]
        .into_iter()
        .flat_map(|domain| [ChangeKind::LeftZone, ChangeKind::Renewed].map(|kind| (kind, domain)))
        .zip(101..)
        .map(|((kind, domain), seq)| change(seq, kind, domain))
        .collect();
    // Bob has the defaults.
    assert_eq!(world.tell(&all), 3);
    let world = world.reopened();
    let of = |channel: &Channel| {
        let sent = world.sent(&ann);
        sent.iter().find(|it| *it.channel == *channel).map(|it| (told(it), it.message.total))
    };
    let row = |domain: &str, kind| (domain.to_owned(), kind);
    let (mail, total) = of(&Channel::Email).expect("a mail");
    let expected = [
        row("follows.com", ChangeKind::Renewed),
        row("mailed.com", ChangeKind::LeftZone),
        row("mailed.com", ChangeKind::Renewed),
        row("own.com", ChangeKind::LeftZone),
    ];
    assert_eq!((mail.as_slice(), total), (&expected[..], 4));
    let (posted, total) = of(&hook).expect("a message");
    assert_eq!((posted, total), (vec![expected[0].clone(), expected[3].clone()], 2));
    assert_eq!(told(&world.sent(&bob)[0]), [row("own.com", ChangeKind::Renewed)]);
    // A choice is removed with its entry, or when the owner returns to the account's settings.
    world.choose(&ann, "own.com", None);
    world.wait(world.store.remove_watch(&ann, &name("mute.com"))).expect("removed");
    world.add_watch(&ann, watch("mute.com", true)).expect("added");
    let again = ["mute.com", "own.com"].into_iter().zip(111..);
    let again: Vec<_> = again.map(|(it, seq)| change(seq, ChangeKind::Renewed, it)).collect();
    assert_eq!(world.tell(&again), 3, "Bob and both channels of Ann");
    let data = world.store.user_data(&ann);
    assert!(data.entry_alerts(&name("mute.com")).is_none());
    // If the chosen channel was removed, messages go to all others.
    world.choose(&ann, "mailed.com", Some(own(EVERY, &["telegram"])));
    let both = world.tell(&[change(113, ChangeKind::Renewed, "mailed.com")]);
    assert_eq!(both, 2, "both channels of Ann");
    world.reopened();
}

#[test]
fn later_changes_join_a_message_that_is_not_due() {
    let (world, ann) = World::begun();
    let clock = Clock::pinned_to(today());
    let hour = Zone::UTC.hour_at(clock.now()).get();
    let later = Hour::new((hour + 2) % 24).expect("an hour");
    let alerts = WatchAlerts { kinds: EVERY, digest: Some(later), ..WatchAlerts::default() };
    let channels = vec![Channel::Email];
    let new = NewWatchAlerts { alerts, channels, switch_on: true };
    world.save(&ann, new.clone()).expect("saved");
    world.add_watch(&ann, watch("a.com", true)).expect("added");
    for seq in 101..=700 {
        world.tell(&[change(seq, ChangeKind::Rescored, "a.com")]);
    }
    let world = world.reopened();
    let sent = world.sent(&ann);
    let [digest] = sent.as_slice() else { panic!("one message: {}", sent.len()) };
    assert_eq!((digest.message.total, told(digest).len()), (600, MESSAGE_NAMES_MAX));
    let due = digest.next_at().expect("pending").instant();
    assert_eq!(due, Zone::UTC.next(later, clock.now()));
    // Once an attempt was made to send a message, later changes form a new message.
    let id = world.store.pending_deliveries()[0].delivery.id;
    let retry =
        AttemptOutcome::Retry { next_at: UnixMs::from_instant(due), problem: Problem::Timeout };
    world.settle_all(retry);
    world.tell(&[change(701, ChangeKind::Rescored, "a.com")]);
    let sent = world.sent(&ann);
    assert_eq!((sent.len(), sent[1].id, sent[1].message.total), (2, id, 600));
    // The history keeps the first changes of a delivered message.
    world.settle_all(AttemptOutcome::Delivered);
    let sent = world.sent(&ann);
    assert_eq!((sent[1].message.total, told(&sent[1]).len()), (600, 20));
    assert_eq!(told(&sent[0]).len(), 1);
    world.reopened();
}

/// The receiver is down while a name changes repeatedly.
#[test]
fn the_queue_of_a_channel_is_bounded() {
    let (world, ann) = World::begun();
    let hook = vec![webhook("https://hooks.example.com/x")];
    world.save(&ann, settings(EVERY, hook)).expect("saved");
    world.add_watch(&ann, watch("a.com", true)).expect("added");
    for seq in 101..=600 {
        world.tell(&[change(seq, ChangeKind::Rescored, "a.com")]);
    }
    let sent = world.sent(&ann);
    assert!(sent.len() <= 4, "{} messages", sent.len());
    assert_eq!(sent.iter().map(|it| it.message.total).sum::<u32>(), 500, "none is lost");
    assert!(sent.len() < DELIVERIES_KEPT_MAX);
    world.reopened();
}

/// A list changes every name of 40 watchlists at once: several records, but one message per channel.
#[test]
fn many_changes_form_one_message_per_channel() {
    const ACCOUNTS: usize = 40;
    const NAMES: usize = 1_000;
    let (world, _) = World::begun();
    let channels: Vec<_> =
        (0..5).map(|at| webhook(&format!("https://hooks{at}.example.com/x"))).collect();
    let all: Vec<_> = (0..NAMES).map(|at| watch(&format!("name-{at}.com"), true)).collect();
    let callers: Vec<_> = (0..ACCOUNTS)
        .map(|at| {
            let caller = world.account(&format!("a{at}@example.com"), Plan::Api);
            world.save(&caller, settings(EVERY, channels.clone())).expect("saved");
            let added = world.store.add_watches(&caller, all.clone(), noon());
            assert!(world.wait(added).expect("added").iter().all(Result::is_ok));
            caller
        })
        .collect();
    let changes: Vec<_> = (0..NAMES)
        .flat_map(|at| {
            let domain = format!("name-{at}.com");
            let seq = 101 + 2 * at as u64;
            let kinds = [(seq, ChangeKind::LeftZone), (seq + 1, ChangeKind::Rescored)];
            kinds.map(|(seq, kind)| change(seq, kind, &domain))
        })
        .collect();
    assert_eq!(world.tell(&changes), ACCOUNTS * channels.len());
    for caller in &callers {
        let sent = world.sent(caller);
        assert_eq!(sent.len(), channels.len());
        for delivery in &sent {
            let (total, rows) = (delivery.message.total, delivery.message.changes().len());
            assert_eq!((total, rows), (2 * NAMES as u32, MESSAGE_NAMES_MAX));
        }
    }
    let world = world.reopened();
    assert_eq!(world.tell(&changes), 0);
    assert_eq!(world.store.pending_deliveries().len(), ACCOUNTS * channels.len());
}

/// A crash between the records of a match: finished accounts get no second message.
#[test]
fn a_match_in_pieces_resumes_after_a_crash() {
    let (world, ann) = World::begun();
    let bob = world.account("bob@example.com", Plan::Pro);
    for caller in [&ann, &bob] {
        world.add_watch(caller, watch("a.com", true)).expect("added");
    }
    let changes = [change(101, ChangeKind::Renewed, "a.com")];
    // Only the first record is applied, as if the process had crashed before the second.
    let found = world.store.match_changes(&changes);
    assert_eq!(found.len(), 2);
    let first = event::Event::ChangesMatched {
        through: 101,
        upto: Some(ann.account),
        at: UnixMs::from_instant(noon()),
        changes: Vec::new(),
        messages: Vec::new(),
    };
    world.wait(world.store.append(vec![first], None)).expect("appended");
    let world = world.reopened();
    assert_eq!(world.store.changes_matched(), Some(100));
    assert_eq!(world.store.change_matching_to(), Some(101));
    let left = world.store.match_changes(&changes);
    assert_eq!(left.iter().map(|it| it.account).collect::<Vec<_>>(), [bob.account]);
    assert_eq!(world.tell(&changes), 1);
    assert_eq!(
        (world.store.changes_matched(), world.store.change_matching_to()),
        (Some(101), None)
    );
    assert_eq!((world.sent(&ann).len(), world.sent(&bob).len()), (0, 1));
    world.reopened();
}

/// A record with an unknown outcome is written again, with other ids.
#[test]
fn changes_that_are_recorded_twice_are_reported_once() {
    let (world, ann) = World::begun();
    world.save(&ann, settings(ChangeKinds::ALL, vec![Channel::Email])).expect("saved");
    world.add_watch(&ann, watch("a.com", true)).expect("added");
    let record = |id, upto| event::Event::ChangesMatched {
        through: 101,
        upto,
        at: UnixMs::from_instant(noon()),
        changes: vec![(&change(101, ChangeKind::Renewed, "a.com")).into()],
        messages: vec![event::RecordedChanges {
            account: ann.account,
            channel: 0,
            delivery: DeliveryId::new([id; 16]),
            due: UnixMs::from_instant(noon()),
            total: 1,
            changes: vec![0],
        }],
    };
    let pieces = [Some(ann.account), Some(AccountId(0)), Some(ann.account), None, None];
    for (id, upto) in (1..).zip(pieces) {
        world.wait(world.store.append(vec![record(id, upto)], None)).expect("appended");
    }
    let sent = world.sent(&ann);
    assert_eq!((sent.len(), sent[0].message.total), (1, 1));
    world.reopened();
}

#[test]
fn test_messages_and_unsubscribe_links_work_as_for_rules() {
    let (world, ann) = World::begun();
    let unsent = world.wait(world.store.queue_watch_test(&ann, false, plain(noon())));
    let refused = unsent.map(|_| ()).expect_err("no mail can be sent").to_string();
    assert!(refused.contains("no channel is set"), "{refused}");
    let test = || {
        let queued = world.wait(async {
            let draft = world.store.queue_watch_test(&ann, true, plain(noon())).await?;
            draft.respond(|_| created("")).await
        });
        queued.map(|it: Answered<Vec<Delivery>>| it.value.expect("not a repeat"))
    };
    let queued = test().expect("queued");
    assert_eq!((queued.len(), queued[0].message.kind), (1, MessageKind::Test));
    assert_eq!(told(&queued[0]), [("example.com".to_owned(), ChangeKind::DropsTomorrow)]);
    assert_eq!(world.sent(&ann), queued);
    let token = world.store.pending_deliveries()[0].unsubscribe.expect("a token");
    let at = UnixMs::from_instant(noon());
    assert!(world.wait(world.store.unsubscribe(token, at)).expect("unsubscribed"));
    assert!(matches!(test(), Err(WriteError::Conflict(_))), "its only channel is off");
    // Settings may be saved unchanged; channels are switched on again on request.
    let quiet = NewWatchAlerts { switch_on: false, ..settings(EVERY, vec![Channel::Email]) };
    world.save(&ann, quiet).expect("saved");
    assert!(test().is_err());
    world.save(&ann, settings(EVERY, vec![Channel::Email])).expect("saved");
    assert_eq!(test().expect("queued").len(), 1);
    world.reopened();
}
