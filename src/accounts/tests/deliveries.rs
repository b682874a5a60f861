//! Matches, deliveries and observations.

use super::*;
use crate::vocab::chat::{Chat, Hook};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::evidence::Evidence;
use crate::vocab::ids::{DeliveryId, UnsubscribeToken};
use crate::vocab::limits::{
    DELIVERIES_KEPT_MAX, FAILED_WITH_NAMES_MAX, MESSAGE_NAMES_MAX, TEST_NAMES_MAX,
    TESTS_PER_DAY_MAX,
};
use crate::vocab::observation::{
    LatestRegistration, Observation, ObservedBy, RdapState, RdapStatuses,
};
use crate::vocab::stage::Stage;
use crate::vocab::watermark::Watermark;

fn today() -> Day {
    "2026-11-21".parse().expect("a day")
}

fn through(batch: u64) -> Watermark {
    Watermark { batch, day: today() }
}

fn at(minutes: i64) -> UnixMs {
    UnixMs::from_instant(noon() + Duration::minutes(minutes))
}

fn table(names: usize) -> Arc<[MatchedName]> {
    let name = |place| DroppedName {
        name: name(&format!("name-{place}.com")),
        dqs: Dqs::new(70).expect("a score"),
        drop_date: today(),
        release: today().plus(35),
        release_second: None,
        stage: Stage::Redemption,
    };
    (0..names).map(|place| MatchedName(name(place))).collect()
}

fn found(caller: &Caller, rule: RuleId, names: &[u32]) -> RuleMatch {
    let (account, names) = (caller.account, names.to_vec());
    RuleMatch { account, rule, total: names.len() as u32, names }
}

impl World {
    fn begin(&self) {
        self.wait(self.store.set_watermark_if_none(through(1))).expect("set");
    }

    fn record(&self, batch: u64, matches: Vec<RuleMatch>, names: &Arc<[MatchedName]>) {
        let names = Arc::clone(names);
        let recorded = self.store.record_matches(through(batch), at(0), matches, names);
        self.wait(recorded).expect("recorded");
    }

    fn settle(
        &self,
        delivery: &PendingDelivery,
        settled: AttemptOutcome,
        minutes: i64,
    ) -> Vec<ClosedChannel> {
        let outcome = (delivery.account, delivery.rule.id, delivery.delivery.id, settled);
        self.wait(self.store.settle(vec![outcome], at(minutes))).expect("settled")
    }

    fn requeue(&self, caller: &Caller, rule: RuleId, id: DeliveryId) -> Result<(), WriteError> {
        let reply = |delivery: &Delivery| {
            assert_eq!((delivery.id, delivery.attempts), (id, 0));
            assert_eq!(delivery.next_at(), Some(UnixMs::from_instant(noon())));
            created("")
        };
        let post = plain(noon());
        let requeued =
            async { self.store.requeue(caller, rule, id, post).await?.respond(reply).await };
        self.wait(requeued).map(drop)
    }

    fn test(&self, caller: &Caller, rule: RuleId, now: DateTime<Utc>) -> Result<usize, WriteError> {
        let names = table(TEST_NAMES_MAX + 1);
        let queued = self.wait(async {
            let draft = self.store.queue_test(caller, rule, &names, 77, plain(now)).await?;
            draft.respond(|_| created("")).await
        });
        Ok(queued?.value.expect("not a repeat").len())
    }

    fn deliveries(&self, caller: &Caller, rule: RuleId) -> Vec<Delivery> {
        self.store.user_data(caller).deliveries(rule).cloned().collect()
    }

    fn everywhere(&self, caller: &Caller, name: &str) -> RuleId {
        let channels = vec![
            Channel::Email,
            webhook("https://hooks.example.com/x"),
            Channel::Telegram { chat_id: "-100".into() },
        ];
        self.add_rule(caller, NewRule { channels, ..by_email(name) }).expect("added")
    }
}

#[track_caller]
fn assert_conflict<T: std::fmt::Debug>(result: Result<T, WriteError>, part: &str) {
    let fits = matches!(&result, Err(WriteError::Conflict(what)) if what.contains(part));
    assert!(fits, "{result:?}");
}

#[test]
fn a_match_is_queued_once_per_channel() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let rule = world.everywhere(&ann, "all");
    assert!(
        world.store.matchable_rules().is_empty(),
        "no rule is matched before the first watermark"
    );
    world.begin();
    world.wait(world.store.set_watermark_if_none(through(9))).expect("kept the first watermark");
    assert_eq!(world.store.watermark(), Some(through(1)));
    let matchable = world.store.matchable_rules();
    assert_eq!(matchable.len(), 1);
    assert_eq!((matchable[0].base, &matchable[0].live_channels), (through(1), &vec![0, 1, 2]));

    let names = table(3);
    let longer = RuleMatch { total: 1_000, ..found(&ann, rule, &[2, 0]) };
    world.record(2, vec![longer.clone()], &names);
    world.record(2, vec![longer], &names);
    let world = world.reopened();
    assert_eq!(world.store.watermark(), Some(through(2)));
    let pending = world.store.pending_deliveries();
    assert_eq!(pending.len(), 3, "the repeat queued nothing");
    let queues = world.store.queues();
    assert_eq!((queues.deliveries, queues.first_due), (3, Some(at(0))));
    let owned = world.store.user_data(&ann);
    let rule = owned.rule(rule).expect("there");
    for (channel, one) in rule.channels.iter().zip(world.store.user_data(&ann).deliveries(rule.id))
    {
        assert!(pending.iter().any(|it| it.delivery == *one), "{channel:?}");
    }
    for one in &pending {
        let Message { kind, at: queued_at, list_day, total, .. } = &one.delivery.message;
        assert_eq!((*kind, *queued_at, *list_day), (MessageKind::Match, at(0), today()));
        let names = one.delivery.message.names().iter();
        let names: Vec<_> = names.map(|it| &it.name).collect();
        assert_eq!((*total, names), (1_000, vec![&name("name-2.com"), &name("name-0.com")]));
        assert_eq!(one.delivery.next_at(), Some(at(0)));
        let is_webhook = matches!(*one.delivery.channel, Channel::Webhook { .. });
        assert_eq!(one.secret, is_webhook.then(|| rule.secrets[0].clone()));
        let is_mail = *one.delivery.channel == Channel::Email;
        assert_eq!(one.unsubscribe.is_some(), is_mail);
        let token = one.unsubscribe.map(|token| token.reveal());
        assert_ne!(token, Some(one.delivery.id.to_string()), "it would be the mail's Message-ID");
    }
}

#[test]
fn paused_removed_and_disabled_rules_get_nothing() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let bob = world.account("bob@example.com", Plan::Pro);
    let eve = world.account("eve@example.com", Plan::Core);
    let [stopped, removed, stays] = ["a", "b", "c"].map(|name| world.everywhere(&ann, name));
    let disabled = world.everywhere(&bob, "d");
    let of_eve: Vec<_> = (0..3).map(|_| world.everywhere(&eve, "e")).collect();
    world.begin();
    let all =
        [(&ann, stopped), (&ann, removed), (&ann, stays), (&bob, disabled), (&eve, of_eve[2])];
    let matches: Vec<_> = all.iter().map(|(who, rule)| found(who, *rule, &[0])).collect();
    let stop = RulePatch { active: Some(false), ..RulePatch::default() };
    world.change_rule(&ann, stopped, stop).expect("stopped");
    world.wait(world.store.remove_rule(&ann, removed)).expect("removed");
    world.store.disable(&email("bob@example.com")).expect("disabled");
    // The plan now includes only one rule and only mail channels.
    world.store.set_plan(&email("eve@example.com"), Plan::Free).expect("set");
    let matchable: Vec<_> = world.store.matchable_rules();
    let found: std::collections::HashSet<_> =
        matchable.iter().map(|it| (it.rule.id, it.live_channels.clone())).collect();
    let oldest = *of_eve.iter().min_by_key(|id| **id).expect("three");
    assert_eq!(found, [(stays, vec![0, 1, 2]), (oldest, vec![0])].into());
    world.record(2, matches, &table(1));
    let pending = world.store.pending_deliveries();
    let of = |rule| pending.iter().filter(|it| it.rule.id == rule).count();
    assert_eq!((pending.len(), of(stays), of(of_eve[2])), (4, 3, 1));
    world.reopened();
}

#[test]
fn a_long_list_takes_several_records_that_share_names() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Api);
    world.begin();
    let rules: Vec<_> =
        (0..250).map(|_| world.add_rule(&ann, by_email("x")).expect("added")).collect();
    let names = table(60_000);
    let best = MESSAGE_NAMES_MAX as u32;
    let places = |of: usize| (0..best + 7).map(move |at| (of as u32 % 120) * best + at % best);
    let matches = rules.iter().enumerate();
    let matches = matches.map(|(at, rule)| found(&ann, *rule, &places(at).collect::<Vec<_>>()));
    let matches: Vec<_> = matches.collect();
    let seq = || world.store.inspect_journal().expect("sound").recovery.position.seq;
    let before = seq();
    world.record(2, matches.clone(), &names);
    let records = seq() - before;
    assert!((3..20).contains(&records), "{records} records");
    let pending = world.store.pending_deliveries();
    assert_eq!(pending.len(), 250);
    let mut distinct = std::collections::HashSet::new();
    for one in &pending {
        let names = one.delivery.message.names();
        assert_eq!((names.len(), one.delivery.message.total), (MESSAGE_NAMES_MAX, best + 7));
        distinct.extend(names.iter().map(Arc::as_ptr));
    }
    assert_eq!(distinct.len(), 60_000, "125,000 references share 60,000 names");

    let world = world.reopened();
    world.store.snapshot_now().expect("written");
    world.reopened();
}

#[test]
fn a_crash_in_a_long_list_queues_nothing_twice() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let [first, second] =
        ["a", "b"].map(|name| world.add_rule(&ann, by_email(name)).expect("added"));
    world.begin();
    let mut batch = matches::MatchBatch::default();
    let names = table(2);
    let taken = batch.add(&world.store.state(), through(2), &found(&ann, first, &[0]), &names);
    assert!(taken.expect("drawn"));
    let events = batch.take_events(through(2), at(0), false);
    world.wait(world.store.append(events, None)).expect("written");
    world.store.snapshot_now().expect("written");
    let world = world.reopened();
    assert_eq!(world.store.watermark(), Some(through(1)));
    let bases: std::collections::HashMap<_, _> =
        world.store.matchable_rules().iter().map(|it| (it.rule.id, it.base)).collect();
    assert_eq!(bases, [(first, through(2)), (second, through(1))].into());
    world.record(2, vec![found(&ann, first, &[0]), found(&ann, second, &[0])], &names);
    assert_eq!(world.store.pending_deliveries().len(), 2);
    assert!(world.store.matchable_rules().iter().all(|it| it.base == through(2)));
    world.record(3, vec![found(&ann, first, &[1])], &names);
    assert_eq!(world.store.pending_deliveries().len(), 3);
    world.reopened();
}

/// A record with an unknown outcome is written again, with other ids.
#[test]
fn matches_that_are_recorded_twice_are_sent_once() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let rule = world.add_rule(&ann, by_email("a")).expect("added");
    world.begin();
    let names = table(1);
    let record = |list, is_last| {
        let mut batch = matches::MatchBatch::default();
        let added =
            batch.add(&world.store.state(), through(list), &found(&ann, rule, &[0]), &names);
        assert!(added.expect("drawn"));
        batch.take_events(through(list), at(0), is_last)
    };
    for is_last in [false, true] {
        let list = if is_last { 3 } else { 2 };
        let twice = [record(list, is_last), record(list, is_last)];
        for events in twice {
            world.wait(world.store.append(events, None)).expect("written");
        }
    }
    assert_eq!(world.store.pending_deliveries().len(), 2, "one for each list");
    world.reopened();
}

#[test]
fn outcomes_of_attempts_are_kept() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let rule = world.everywhere(&ann, "all");
    world.begin();
    world.record(2, vec![found(&ann, rule, &[0, 1])], &table(2));
    let pending = world.store.pending_deliveries();
    let by = |wanted: fn(&Channel) -> bool| {
        pending.iter().find(|it| wanted(&it.delivery.channel)).expect("queued")
    };
    let mail = by(|channel| *channel == Channel::Email);
    let hook = by(|channel| matches!(channel, Channel::Webhook { .. }));
    let chat = by(|channel| matches!(channel, Channel::Telegram { .. }));
    world.settle(mail, AttemptOutcome::Delivered, 1);
    let problem = Problem::Status(StatusClass::from_status(503));
    world.settle(hook, AttemptOutcome::Retry { next_at: at(9), problem }, 1);
    world.settle(hook, AttemptOutcome::Retry { next_at: at(7), problem }, 2);
    world.settle(chat, AttemptOutcome::Failed { problem: Problem::Rejected }, 1);
    let world = world.reopened();
    let owned = world.store.user_data(&ann);
    let get = |of: &PendingDelivery| owned.delivery(rule, of.delivery.id).expect("kept");
    assert_eq!((get(mail).status, get(mail).attempts), (DeliveryStatus::Delivered, 1));
    assert_eq!((&get(mail).message.content, get(mail).message.total), (&None, 2));
    assert_eq!((get(hook).next_at(), get(hook).attempts), (Some(at(7)), 2));
    assert_eq!((get(hook).last_problem, get(hook).last_attempt_at), (Some(problem), Some(at(2))));
    assert_eq!((get(chat).status, get(chat).attempts), (DeliveryStatus::Failed, 1));
    let due = world.store.pending_deliveries();
    assert_eq!(due.iter().map(|it| it.delivery.id).collect::<Vec<_>>(), [hook.delivery.id]);

    world.settle(mail, AttemptOutcome::Failed { problem }, 3);
    assert_eq!(world.deliveries(&ann, rule).iter().filter(|it| !it.is_pending()).count(), 2);
    let mail_again = world.requeue(&ann, rule, mail.delivery.id);
    assert_conflict(mail_again, "it was delivered");
    assert_conflict(world.requeue(&ann, rule, hook.delivery.id), "it is pending");
    let bob = world.account("bob@example.com", Plan::Pro);
    assert_not_found(world.requeue(&bob, rule, chat.delivery.id));
    assert_not_found(world.requeue(&ann, rule, DeliveryId::new([7; 16])));
    world.requeue(&ann, rule, chat.delivery.id).expect("queued");
    let again = world.store.pending_delivery(ann.account, rule, chat.delivery.id).expect("pending");
    assert_eq!((again.delivery.attempts, again.delivery.next_at()), (0, Some(at(0))));
    assert_eq!(again.delivery.message.content, chat.delivery.message.content);
    let world = world.reopened();
    world.wait(world.store.remove_rule(&ann, rule)).expect("removed");
    assert!(world.store.pending_deliveries().is_empty());
    world.settle(&again, AttemptOutcome::Delivered, 4);
    world.reopened();
}

#[test]
fn five_days_without_a_delivery_switch_a_channel_off() {
    const DAY_MINUTES: i64 = 24 * 60;
    let mut world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let url = WebhookUrl::parse("https://hooks.slack.com/services/T/B/secret-secret");
    let hook = Hook { url: url.ok(), ..Hook::default() };
    let slack = Channel::Chat(Chat { service: "slack".into(), hook });
    let channels = vec![
        slack.clone(),
        webhook("https://hooks.example.com/x"),
        Channel::Telegram { chat_id: "-100".into() },
        Channel::Email,
    ];
    let rule = NewRule { channels, ..by_email("all") };
    let rule = world.add_rule(&ann, rule).expect("added");
    world.begin();
    let mut closed = Vec::new();
    for day in 0..=9 {
        world.record(2 + day as u64, vec![found(&ann, rule, &[0])], &table(1));
        for pending in world.store.pending_deliveries() {
            let problem = Problem::Timeout;
            let outcome = match &*pending.delivery.channel {
                // A delivery to the webhook succeeds on the third day, so the count of failing days
                // restarts on the fourth.
                Channel::Webhook { .. } if day == 3 => AttemptOutcome::Delivered,
                _ => AttemptOutcome::Failed { problem },
            };
            let retried = AttemptOutcome::Retry { next_at: at(day * DAY_MINUTES + 1), problem };
            assert!(
                world.settle(&pending, retried, day * DAY_MINUTES).is_empty(),
                "a retry follows"
            );
            let ended = world.settle(&pending, outcome, day * DAY_MINUTES + 1);
            closed.extend(ended.into_iter().map(|it| (day, it)));
        }
        world = world.reopened();
    }
    // Mail and Telegram channels stay on, because all messages of each go through one server.
    let told: Vec<_> = closed.iter().map(|(day, it)| (*day, &*it.channel, it.problem)).collect();
    let hooks = webhook("https://hooks.example.com/x");
    assert_eq!(told, [(5, &slack, Problem::Timeout), (9, &hooks, Problem::Timeout)]);
    assert_eq!(closed[0].1.email.as_ref().map(Email::as_str), Some("ann@example.com"));
    let owned = world.store.user_data(&ann);
    let off = owned.switched_off(rule, &slack).expect("off");
    assert_eq!((off.reason, off.at), (OffReason::Failing, at(5 * DAY_MINUTES + 1)));
    assert!(owned.switched_off(rule, &Channel::Email).is_none());
}

#[test]
fn channels_stay_off_until_their_owner_changes_them() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let rule = world.everywhere(&ann, "all");
    world.begin();
    world.record(2, vec![found(&ann, rule, &[0])], &table(1));
    world.record(3, vec![found(&ann, rule, &[0])], &table(1));
    let pending = world.store.pending_deliveries();
    let hooks: Vec<_> = pending
        .iter()
        .filter(|it| matches!(*it.delivery.channel, Channel::Webhook { .. }))
        .collect();
    world.settle(hooks[0], AttemptOutcome::SwitchOff { problem: Problem::Gone }, 1);
    let owned = world.store.user_data(&ann);
    let status = |of: &PendingDelivery| {
        let delivery = owned.delivery(rule, of.delivery.id).expect("kept");
        (delivery.status, delivery.last_problem)
    };
    assert_eq!(status(hooks[0]), (DeliveryStatus::Failed, Some(Problem::Gone)));
    assert_eq!(status(hooks[1]), (DeliveryStatus::Failed, Some(Problem::SwitchedOff)));
    let off = owned.switched_off(rule, &hooks[0].delivery.channel);
    assert_eq!(off, Some(SwitchedOff { reason: OffReason::Gone, at: at(1) }));
    assert_conflict(world.requeue(&ann, rule, hooks[1].delivery.id), "switched off");

    // All mails of the rule have the same unsubscribe link.
    let mails: Vec<_> =
        pending.iter().filter(|it| *it.delivery.channel == Channel::Email).collect();
    let link = mails[1].unsubscribe.expect("a mail");
    assert_eq!(mails[0].unsubscribe, Some(link));
    let world = world.reopened();
    let unsubscribe = |token| world.wait(world.store.unsubscribe(token, at(2))).expect("written");
    for id in [hooks[0].delivery.id, mails[0].delivery.id] {
        assert!(
            !unsubscribe(UnsubscribeToken::new(*id.bytes())),
            "the id of a delivery is not a token"
        );
    }
    assert!(unsubscribe(link));
    let digest = world.store.state_digest();
    assert!(unsubscribe(link), "already off");
    assert_eq!(world.store.state_digest(), digest);
    assert_eq!(world.store.matchable_rules()[0].live_channels, [2]);
    assert_eq!(world.store.pending_deliveries().len(), 2, "chats");

    let renamed = RulePatch { name: Some("other".into()), ..RulePatch::default() };
    world.change_rule(&ann, rule, renamed).expect("changed");
    assert_eq!(world.store.matchable_rules()[0].live_channels, [2]);
    let channels = world.store.user_data(&ann).rule(rule).expect("there").channels.clone();
    let all = RulePatch { channels: Some(channels), ..RulePatch::default() };
    world.change_rule(&ann, rule, all).expect("the same ones");
    assert_eq!(world.store.matchable_rules()[0].live_channels, [0, 1, 2]);
    world.requeue(&ann, rule, hooks[1].delivery.id).expect("it is on");
    let mails_only = RulePatch { channels: Some(vec![Channel::Email]), ..RulePatch::default() };
    world.change_rule(&ann, rule, mails_only).expect("changed");
    assert!(world.store.pending_deliveries().is_empty(), "their channels were removed");
    assert_conflict(world.requeue(&ann, rule, hooks[1].delivery.id), "no longer one");
    assert!(world.wait(world.store.unsubscribe(link, at(3))).expect("written"));
    assert!(world.store.matchable_rules().is_empty());
    let world = world.reopened();
    world.wait(world.store.remove_rule(&ann, rule)).expect("removed");
    assert!(!world.wait(world.store.unsubscribe(link, at(4))).expect("the rule was removed"));
}

#[test]
fn the_last_100_deliveries_and_the_names_of_10_failed_ones_are_kept() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let rule = world.add_rule(&ann, by_email("x")).expect("added");
    world.begin();
    let first = {
        world.record(2, vec![found(&ann, rule, &[0])], &table(1));
        world.store.pending_deliveries().remove(0)
    };
    for batch in 3..=3 + DELIVERIES_KEPT_MAX as u64 {
        world.record(batch, vec![found(&ann, rule, &[0])], &table(1));
        let due = world.store.pending_deliveries();
        let newest = due.iter().find(|it| it.delivery.id != first.delivery.id).expect("queued");
        world.settle(newest, AttemptOutcome::Failed { problem: Problem::Timeout }, batch as i64);
    }
    let kept = world.deliveries(&ann, rule);
    assert_eq!(kept.len(), DELIVERIES_KEPT_MAX + 1);
    assert!(
        kept.last().is_some_and(|oldest| oldest.id == first.delivery.id && oldest.is_pending())
    );
    let can: Vec<_> = kept.iter().map(Delivery::can_be_retried).collect();
    assert!(can[..FAILED_WITH_NAMES_MAX].iter().all(|can| *can));
    assert!(!can[FAILED_WITH_NAMES_MAX..].iter().any(|can| *can));
    assert_conflict(world.requeue(&ann, rule, kept[FAILED_WITH_NAMES_MAX].id), "no longer kept");
    world.settle(&first, AttemptOutcome::Delivered, 500);
    assert_eq!(world.deliveries(&ann, rule).len(), DELIVERIES_KEPT_MAX);
    // The first mail has been dropped by now, but its link still works.
    let world = world.reopened();
    assert!(world.store.user_data(&ann).delivery(rule, first.delivery.id).is_none());
    let link = first.unsubscribe.expect("a mail");
    assert!(world.wait(world.store.unsubscribe(link, at(0))).expect("written"));
}

#[test]
fn test_messages_are_limited_per_account_and_day() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    for sent in (0..TESTS_PER_DAY_MAX).step_by(3) {
        let rule = world.everywhere(&ann, "x");
        assert_eq!(world.test(&ann, rule, noon()).expect("sent"), 3, "{sent} before");
        let queued = &world.deliveries(&ann, rule)[0];
        assert_eq!((queued.message.kind, queued.message.total), (MessageKind::Test, 77));
        assert_eq!(queued.message.names().len(), TEST_NAMES_MAX);
        world.wait(world.store.remove_rule(&ann, rule)).expect("removed");
    }
    let world = world.reopened();
    let rule = world.add_rule(&ann, by_email("x")).expect("added");
    let refused = world.test(&ann, rule, noon());
    let Err(WriteError::TooManyTests { limit, resets_at, retry_after_s }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((limit, retry_after_s), (TESTS_PER_DAY_MAX, 12 * 3_600 + 1));
    assert_eq!(resets_at.to_rfc3339(), "2026-11-22T00:00:00+00:00");
    let before = noon() - Duration::days(1);
    assert!(world.test(&ann, rule, before).is_err(), "an earlier day is not reopened");
    assert_eq!(world.test(&ann, rule, noon() + Duration::days(1)).expect("a new day"), 1);
    world.record_off(&ann, rule);
    let none = world.test(&ann, rule, noon() + Duration::days(1));
    assert_conflict(none, "switched off");
    assert_not_found(world.test(&ann, RuleId::new(1).expect("an id"), noon()));
}

impl World {
    /// Switches off the mails of a rule.
    fn record_off(&self, caller: &Caller, rule: RuleId) {
        let pending = self.store.pending_deliveries();
        let of_rule = |it: &&PendingDelivery| it.account == caller.account && it.rule.id == rule;
        let link = pending.iter().find(of_rule).and_then(|it| it.unsubscribe).expect("a mail");
        assert!(self.wait(self.store.unsubscribe(link, at(0))).expect("written"));
    }
}

#[test]
fn observations_are_kept_while_a_name_is_watched() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let bob = world.account("bob@example.com", Plan::Pro);
    for (who, text, in_corpus) in
        [(&ann, "a.com", true), (&bob, "a.com", false), (&ann, "b.com", true)]
    {
        world.add_watch(who, watch(text, in_corpus)).expect("added");
    }
    let seen = |state, minutes| Observation {
        state,
        at: at(minutes),
        registered_on: Some(today()),
        statuses: RdapStatuses::NONE,
        source: ObservedBy::Rdap,
        evidence: [Evidence::RdapNone, Evidence::Control, Evidence::NotDelegated]
            .into_iter()
            .collect(),
        registration: LatestRegistration::default(),
    };
    let observe = |world: &World, text, observation| {
        let rows = vec![(name(text), observation)];
        world.wait(world.store.record_observations(rows)).expect("written");
    };
    observe(&world, "a.com", seen(RdapState::Renewed, 0));
    observe(&world, "a.com", seen(RdapState::RegisteredAgain, 1));
    observe(&world, "unwatched.com", seen(RdapState::Available, 1));
    let world = world.reopened();
    let targets = world.store.verification_targets();
    let found: Vec<_> = targets
        .iter()
        .map(|it| (it.name.as_str(), it.external, it.watchers.len(), it.is_unverified()))
        .collect();
    assert_eq!(found, [("a.com", true, 2, false), ("b.com", false, 1, true)]);
    let queues = world.store.queues();
    assert_eq!((queues.watched, queues.unseen, queues.deliveries), (2, 1, 0));
    assert_eq!(targets[0].observation, Some(seen(RdapState::RegisteredAgain, 1)));
    let of = |world: &World, text| world.store.observations([&name(text)])[0].map(|it| it.state);
    assert_eq!(of(&world, "unwatched.com"), None);
    world.wait(world.store.remove_watch(&ann, &name("a.com"))).expect("removed");
    assert_eq!(of(&world, "a.com"), Some(RdapState::RegisteredAgain));
    world.wait(world.store.remove_watch(&bob, &name("a.com"))).expect("removed");
    assert_eq!(of(&world, "a.com"), None, "dropped with the last watcher");
    world.store.snapshot_now().expect("written");
    let world = world.reopened();
    world.store.disable(&email("ann@example.com")).expect("disabled");
    assert!(world.store.verification_targets().is_empty());
}

#[test]
fn writes_notify_the_workers() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let (deliveries, watches) = (world.store.deliveries_changed(), world.store.watches_changed());
    let is_woken = |notify: &tokio::sync::Notify| {
        world.wait(async {
            tokio::select! {
                biased;
                () = notify.notified() => true,
                () = std::future::ready(()) => false,
            }
        })
    };
    let rule = world.add_rule(&ann, by_email("x")).expect("added");
    world.begin();
    let _ = is_woken(&deliveries);
    assert!(!is_woken(&deliveries) && !is_woken(&watches));
    world.record(2, vec![found(&ann, rule, &[0])], &table(1));
    assert!(is_woken(&deliveries) && !is_woken(&deliveries));
    let due = world.store.pending_deliveries().remove(0);
    world.settle(&due, AttemptOutcome::Failed { problem: Problem::Tls }, 1);
    assert!(!is_woken(&deliveries), "the sender knows the outcome");
    world.requeue(&ann, rule, due.delivery.id).expect("queued");
    assert!(is_woken(&deliveries));
    world.test(&ann, rule, noon()).expect("sent");
    assert!(is_woken(&deliveries) && !is_woken(&watches));
    world.add_watch(&ann, watch("a.com", true)).expect("added");
    assert!(is_woken(&watches) && !is_woken(&deliveries));
}
