//! Deliveries of rules and observations of names: matched lists, attempts and their outcomes, test
//! messages, links in mails.

use std::collections::BTreeMap;

use chrono::Duration;
use dropdex::accounts::{
    AttemptOutcome, Channel, Delivery, DeliveryStatus, MatchedName, MessageKind, OffReason,
    Problem, Receipt, RuleMatch, StatusClass, WriteError,
};
use dropdex::vocab::day::Day;
use dropdex::vocab::dqs::Dqs;
use dropdex::vocab::dropped_name::DroppedName;
use dropdex::vocab::evidence::EvidenceSet;
use dropdex::vocab::ids::{AccountId, DeliveryId, RuleId, UnsubscribeToken};
use dropdex::vocab::observation::{
    LatestRegistration, Observation, ObservedBy, RdapState, RdapStatuses, Registrar,
};
use dropdex::vocab::plan::Plan;
use dropdex::vocab::release_time::SecondOfDay;
use dropdex::vocab::stage::Stage;
use dropdex::vocab::time::UnixMs;
use dropdex::vocab::watermark::Watermark;

use super::{ACTIVE_RULES, Account, ModelRule, Run, name};

const TESTS_PER_DAY: usize = 30;
const KEPT: usize = 100;
const FAILED_WITH_NAMES: usize = 10;

/// Deliveries of one rule.
#[derive(Default)]
pub struct ModelOutbox {
    /// Token in the unsubscribe link of its mails.
    token: Option<UnsubscribeToken>,
    /// Whether the rule sent a mail, so that it has a token.
    is_mailed: bool,
    off: Vec<(Channel, OffReason, UnixMs)>,
    /// Oldest first.
    deliveries: Vec<ModelDelivery>,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelDelivery {
    id: DeliveryId,
    channel: Channel,
    kind: MessageKind,
    at: UnixMs,
    total: u32,
    names: Option<Vec<String>>,
    attempts: u16,
    status: DeliveryStatus,
    last_at: Option<UnixMs>,
    problem: Option<Problem>,
}

/// State shared by all accounts.
#[derive(Default)]
pub struct Outside {
    batch: u64,
    seen: BTreeMap<String, Observation>,
}

fn model_delivery(delivery: &Delivery) -> ModelDelivery {
    let names = delivery.message.content.as_ref().map(|_| delivery.message.names());
    ModelDelivery {
        id: delivery.id,
        channel: (*delivery.channel).clone(),
        kind: delivery.message.kind,
        at: delivery.message.at,
        total: delivery.message.total,
        names: names.map(|names| names.iter().map(|it| it.name.to_string()).collect()),
        attempts: delivery.attempts,
        status: delivery.status,
        last_at: delivery.last_attempt_at,
        problem: delivery.last_problem,
    }
}

impl ModelDelivery {
    fn is_pending(&self) -> bool {
        matches!(self.status, DeliveryStatus::Pending { .. })
    }

    fn fail(&mut self, problem: Problem) {
        (self.status, self.problem) = (DeliveryStatus::Failed, Some(problem));
    }
}

impl ModelOutbox {
    fn is_off(&self, channel: &Channel) -> bool {
        self.off.iter().any(|(off, _, _)| off == channel)
    }

    fn give_up(&mut self, is_concerned: impl Fn(&Channel) -> bool) {
        let pending = self.deliveries.iter_mut().filter(|it| it.is_pending());
        let concerned = pending.filter(|it| is_concerned(&it.channel));
        concerned.for_each(|it| it.fail(Problem::SwitchedOff));
        self.forget();
    }

    fn switch_off(&mut self, channel: &Channel, reason: OffReason, at: UnixMs) {
        if !self.is_off(channel) {
            self.off.push((channel.clone(), reason, at));
        }
        self.give_up(|other| other == channel);
    }

    /// Replacing channels switches them on; messages queued for removed channels are cancelled.
    pub fn channels_sent(&mut self, channels: &[Channel]) {
        self.off.clear();
        self.give_up(|channel| !channels.contains(channel));
    }

    fn forget(&mut self) {
        while self.deliveries.iter().filter(|it| !it.is_pending()).count() > KEPT {
            let oldest = self.deliveries.iter().position(|it| !it.is_pending()).expect("one");
            self.deliveries.remove(oldest);
        }
        let failed = self.deliveries.iter_mut().rev();
        let failed = failed.filter(|it| it.status == DeliveryStatus::Failed && it.names.is_some());
        failed.skip(FAILED_WITH_NAMES).for_each(|it| it.names = None);
    }
}

impl Account {
    fn live(&self, rule: &ModelRule) -> Vec<Channel> {
        let outbox = self.outboxes.get(&rule.id);
        let is_off = |channel: &&Channel| outbox.is_some_and(|it| it.is_off(channel));
        let within_plan =
            |channel: &&Channel| self.plan != Plan::Free || **channel == Channel::Email;
        rule.channels.iter().filter(|it| !is_off(it)).filter(within_plan).cloned().collect()
    }
}

impl Run {
    fn now_ms(&self) -> UnixMs {
        UnixMs::from_instant(self.now)
    }

    fn number(at: usize) -> AccountId {
        AccountId(at as u64 + 1)
    }

    /// Returns a rule of any account, with the index of the account.
    fn any_rule(&mut self) -> Option<(usize, u64)> {
        let at = self.rng.below(self.model.len());
        let count = self.model[at].rules.len();
        (count > 0).then(|| (at, self.model[at].rules[self.rng.below(count)].id))
    }

    fn table(&mut self) -> Vec<MatchedName> {
        let day: Day = super::TODAY.parse().expect("a day");
        (0..1 + self.rng.below(5))
            .map(|_| {
                MatchedName(DroppedName {
                    name: name(&self.domain()),
                    dqs: Dqs::new(self.rng.below(101) as u8).expect("a score"),
                    drop_date: day,
                    release: day.plus(self.rng.below(40) as i32),
                    release_second: SecondOfDay::new(self.rng.below(172_800) as u32),
                    stage: *self.rng.pick(&Stage::ALL),
                })
            })
            .collect()
    }

    /// Matches some rules, including deleted and inactive ones, against a list that goes live.
    pub fn list(&mut self) {
        let today: Day = super::TODAY.parse().expect("a day");
        if self.outside.batch == 0 {
            let through = Watermark { batch: 1, day: today };
            let store = self.store();
            self.runtime.block_on(store.set_watermark_if_none(through)).expect("set");
            self.outside.batch = 1;
        }
        self.outside.batch += 1;
        let through = Watermark { batch: self.outside.batch, day: today };
        let table = self.table();
        let mut rules: Vec<(usize, u64)> = (0..6).filter_map(|_| self.any_rule()).collect();
        rules.sort_unstable();
        rules.dedup();
        let mut matches = vec![RuleMatch {
            account: Run::number(0),
            rule: RuleId::new(1).expect("an id"),
            total: 1,
            names: vec![0],
        }];
        for &(at, rule) in &rules {
            let names: Vec<_> = (0..table.len() as u32).filter(|_| self.rng.chance(50)).collect();
            let (account, rule) = (Run::number(at), RuleId::new(rule).expect("an id"));
            matches.push(RuleMatch { account, rule, total: 7, names });
        }
        let (store, now) = (self.store(), self.now_ms());
        self.compare_matchable();
        let record = store.record_matches(through, now, matches.clone(), table.clone().into());
        self.runtime.block_on(record).expect("recorded");
        assert_eq!(store.watermark(), Some(through));
        for (&(at, rule), found) in rules.iter().zip(&matches[1..]) {
            let texts = found.names.iter().map(|place| table[*place as usize].name.to_string());
            self.queued(at, rule, MessageKind::Match, 7, texts.collect());
        }
        (0..self.model.len()).for_each(|at| self.compare(at));
    }

    fn compare_matchable(&self) {
        let mut told: Vec<_> = self.store().matchable_rules();
        told.sort_by_key(|it| (it.account, it.rule.id));
        let mut expected = Vec::new();
        for (at, account) in self.model.iter().enumerate().filter(|(_, account)| !account.shut) {
            let mut active: Vec<_> = account.rules.iter().filter(|rule| rule.active).collect();
            active.sort_by_key(|rule| (rule.created_at, rule.id));
            active.truncate(ACTIVE_RULES[account.plan as usize]);
            for rule in active {
                let live = account.live(rule);
                expected.extend((!live.is_empty()).then_some((Run::number(at), rule.id, live)));
            }
        }
        expected.sort_by_key(|(account, rule, _)| (*account, *rule));
        let told: Vec<_> = told
            .iter()
            .map(|it| {
                let live = it.live_channels.iter().map(|place| it.rule.channels[*place].clone());
                (it.account, it.rule.id.get(), live.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(told, expected);
    }

    /// Adopts the message that was queued for a rule, if any, because the store chooses ids.
    fn queued(&mut self, at: usize, rule: u64, kind: MessageKind, total: u32, names: Vec<String>) {
        let now = self.now_ms();
        let account = &self.model[at];
        let found = account.rules.iter().find(|it| it.id == rule).expect("a rule");
        if kind == MessageKind::Match && (account.shut || !found.active) {
            return;
        }
        let live = account.live(found);
        // For accounts that cannot log in, only pending deliveries are visible.
        let store = self.store();
        let id = RuleId::new(rule).expect("an id");
        let pending = store.pending_deliveries();
        let known = account.outboxes.get(&rule);
        let is_known = |id| known.is_some_and(|it| it.deliveries.iter().any(|one| one.id == id));
        let new: Vec<_> = pending
            .iter()
            .filter(|it| it.account == Run::number(at) && it.rule.id == id)
            .filter(|it| !is_known(it.delivery.id))
            .collect();
        assert_eq!(new.len(), live.len(), "{live:?}");
        self.seen.matched += live.len();
        let outbox = self.model[at].outboxes.entry(rule).or_default();
        for channel in live {
            let of_channel = new.iter().find(|it| *it.delivery.channel == channel);
            let id = of_channel.expect("one for each channel").delivery.id;
            if channel == Channel::Email {
                outbox.is_mailed = true;
            }
            outbox.deliveries.push(ModelDelivery {
                id,
                channel,
                kind,
                at: now,
                total,
                names: Some(names.clone()),
                attempts: 0,
                status: DeliveryStatus::Pending { next_at: now },
                last_at: None,
                problem: None,
            });
        }
        outbox.forget();
    }

    /// Checks that due deliveries equal those of the model, and attempts some of them.
    pub fn try_some(&mut self) {
        let (store, now) = (self.store(), self.now_ms());
        let due = store.pending_deliveries();
        let is_sorted = due.is_sorted_by_key(|it| it.delivery.next_at());
        assert!(is_sorted, "{due:?}");
        let mut told: Vec<_> = due.iter().map(|it| (it.account, it.delivery.id)).collect();
        told.sort_unstable();
        let mut expected: Vec<_> = self
            .model
            .iter()
            .enumerate()
            .filter(|(_, account)| !account.shut)
            .flat_map(|(at, account)| account.outboxes.values().map(move |it| (at, it)))
            .flat_map(|(at, outbox)| outbox.deliveries.iter().map(move |it| (at, it)))
            .filter(|(_, it)| it.is_pending())
            .map(|(at, it)| (Run::number(at), it.id))
            .collect();
        expected.sort_unstable();
        assert_eq!(told, expected);
        for one in &due {
            let account = &mut self.model[one.account.0 as usize - 1];
            let outbox = account.outboxes.get_mut(&one.rule.id.get()).expect("it has one");
            let is_mail = *one.delivery.channel == Channel::Email;
            assert_eq!(one.unsubscribe.is_some(), outbox.is_mailed && is_mail);
            if let Some(token) = one.unsubscribe {
                assert_eq!(*outbox.token.get_or_insert(token), token, "it never changes");
                assert!(outbox.deliveries.iter().all(|it| it.id.to_string() != token.reveal()));
            }
            let is_webhook = matches!(*one.delivery.channel, Channel::Webhook { .. });
            assert_eq!(one.secret.is_some(), is_webhook);
        }
        let mut outcomes = Vec::new();
        for one in due.iter().filter(|_| self.rng.chance(60)).collect::<Vec<_>>() {
            let settled = self.outcome();
            outcomes.push((one.account, one.rule.id, one.delivery.id, settled));
        }
        // Unknown IDs change nothing.
        let nothing = (Run::number(0), RuleId::new(1).expect("an id"), DeliveryId::new([0; 16]));
        outcomes.push((nothing.0, nothing.1, nothing.2, AttemptOutcome::Delivered));
        self.runtime.block_on(store.settle(outcomes.clone(), now)).expect("settled");
        for (account, rule, id, settled) in outcomes {
            self.settled(account.0 as usize - 1, rule.get(), id, settled, now);
        }
        (0..self.model.len()).for_each(|at| self.compare(at));
    }

    fn outcome(&mut self) -> AttemptOutcome {
        let problem = *self.rng.pick(&[
            Problem::Timeout,
            Problem::Tls,
            Problem::Status(StatusClass::ServerError),
            Problem::Rejected,
        ]);
        match self.rng.below(10) {
            0..=3 => AttemptOutcome::Delivered,
            4..=6 => {
                let later = self.now + Duration::minutes(1 + self.rng.below(90) as i64);
                AttemptOutcome::Retry { next_at: UnixMs::from_instant(later), problem }
            }
            7..=8 => AttemptOutcome::Failed { problem },
            _ => AttemptOutcome::SwitchOff { problem: Problem::Gone },
        }
    }

    fn settled(
        &mut self,
        at: usize,
        rule: u64,
        id: DeliveryId,
        settled: AttemptOutcome,
        now: UnixMs,
    ) {
        let Some(outbox) = self.model[at].outboxes.get_mut(&rule) else { return };
        let Some(one) = outbox.deliveries.iter_mut().find(|it| it.id == id) else { return };
        // Another delivery of the same record may have switched its channel off.
        if !one.is_pending() {
            return;
        }
        one.attempts += 1;
        one.last_at = Some(now);
        match settled {
            AttemptOutcome::Delivered => {
                (one.status, one.names, one.problem) = (DeliveryStatus::Delivered, None, None);
            }
            AttemptOutcome::Retry { next_at, problem } => {
                one.status = DeliveryStatus::Pending { next_at };
                one.problem = Some(problem);
            }
            AttemptOutcome::Failed { problem } => one.fail(problem),
            AttemptOutcome::SwitchOff { problem } => {
                one.fail(problem);
                let channel = one.channel.clone();
                outbox.switch_off(&channel, OffReason::Gone, now);
            }
        }
        outbox.forget();
    }

    pub fn test_message(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let id = self.rule_id(at);
        let names = self.table();
        let (store, post) = (self.store(), self.post(None));
        let mut ids = Vec::new();
        let shape = |queued: &Vec<Delivery>| {
            ids = queued.iter().map(|it| it.id).collect();
            Receipt { code: 202, bytes: Vec::new() }
        };
        let rule = RuleId::new(id).expect("an id");
        let result = self.runtime.block_on(async {
            store.queue_test(&caller, rule, &names, 9, post).await?.respond(shape).await
        });
        let today = Day::from_instant(self.now).expect("a day");
        let account = &mut self.model[at];
        let Some(found) = account.rules.iter().find(|it| it.id == id) else {
            assert!(matches!(result, Err(WriteError::NotFound)), "{result:?}");
            return;
        };
        let live = account.live(found);
        let (day, sent) = account.tests.filter(|(day, _)| *day == today).unwrap_or((today, 0));
        if live.is_empty() {
            assert!(matches!(result, Err(WriteError::Conflict(_))), "{result:?}");
            return;
        }
        if sent + live.len() > TESTS_PER_DAY {
            self.seen.limits += 1;
            assert!(matches!(result, Err(WriteError::TooManyTests { .. })), "{result:?}");
            return;
        }
        assert!(result.is_ok(), "{result:?}");
        account.tests = Some((day, sent + live.len()));
        let texts = names.iter().map(|it| it.name.to_string()).collect();
        self.queued(at, id, MessageKind::Test, 9, texts);
        let account = &self.model[at];
        let newest = account.outboxes[&id].deliveries.iter().rev().take(ids.len()).rev();
        assert_eq!(newest.map(|it| it.id).collect::<Vec<_>>(), ids, "as they were delivered");
        self.compare(at);
    }

    pub fn requeue(&mut self) {
        let all = self.model.iter().enumerate().filter(|(_, account)| !account.shut);
        let sent = all.flat_map(|(at, account)| account.outboxes.iter().map(move |it| (at, it)));
        let failed: Vec<_> = sent
            .flat_map(|(at, (rule, outbox))| {
                let failed = outbox.deliveries.iter().enumerate();
                let failed = failed.filter(|(_, it)| it.status == DeliveryStatus::Failed);
                failed.map(move |(place, _)| (at, *rule, place))
            })
            .collect();
        let one = (!failed.is_empty() && self.rng.chance(80)).then(|| *self.rng.pick(&failed));
        let at = one.map_or_else(|| self.rng.below(self.model.len()), |(at, _, _)| at);
        let rule = one.map_or_else(|| self.rule_id(at), |(_, rule, _)| rule);
        let known = self.model[at].outboxes.get(&rule).map_or(0, |it| it.deliveries.len());
        let place = one.map_or_else(|| self.rng.below(known + 1), |(_, _, place)| place);
        let Some(key) = self.model[at].key.clone() else { return };
        let Some(caller) = self.store().authenticate(&key) else { return };
        let outbox = self.model[at].outboxes.get(&rule);
        let one = outbox.and_then(|it| it.deliveries.get(place)).cloned();
        let id = one.as_ref().map_or(DeliveryId::new([9; 16]), |one| one.id);
        let (store, post, now) = (self.store(), self.post(None), self.now_ms());
        let shape = |_: &Delivery| Receipt { code: 202, bytes: Vec::new() };
        let rule_id = RuleId::new(rule).expect("an id");
        let result = self.runtime.block_on(async {
            store.requeue(&caller, rule_id, id, post).await?.respond(shape).await
        });
        let Some(one) = one else {
            assert!(matches!(result, Err(WriteError::NotFound)), "{result:?}");
            return;
        };
        let account = &mut self.model[at];
        let found = account.rules.iter().find(|it| it.id == rule).expect("it has an outbox");
        let is_live = account.live(found).contains(&one.channel);
        if one.status != DeliveryStatus::Failed || one.names.is_none() || !is_live {
            assert!(matches!(result, Err(WriteError::Conflict(_))), "{result:?}");
            return;
        }
        assert!(result.is_ok(), "{result:?}");
        let outbox = account.outboxes.get_mut(&rule).expect("looked up");
        let one = &mut outbox.deliveries[place];
        (one.status, one.attempts) = (DeliveryStatus::Pending { next_at: now }, 0);
        self.seen.requeued += 1;
        self.compare(at);
    }

    pub fn unsubscribe(&mut self) {
        let all = self.model.iter().enumerate();
        let outboxes =
            all.flat_map(|(at, account)| account.outboxes.iter().map(move |it| (at, it)));
        let links: Vec<_> = outboxes
            .flat_map(|(at, (rule, it))| it.token.map(|token| (at, *rule, token)))
            .collect();
        let one = (!links.is_empty()).then(|| *self.rng.pick(&links));
        let token = one.map_or(UnsubscribeToken::new([9; 16]), |(_, _, token)| token);
        let (store, now) = (self.store(), self.now_ms());
        let told = self.runtime.block_on(store.unsubscribe(token, now)).expect("written");
        assert_eq!(told, one.is_some());
        let Some((at, rule, _)) = one else { return };
        let account = &mut self.model[at];
        let found = account.rules.iter().find(|it| it.id == rule).expect("it has an outbox");
        let has_mail = found.channels.contains(&Channel::Email);
        let outbox = account.outboxes.get_mut(&rule).expect("looked up");
        if has_mail && !outbox.is_off(&Channel::Email) {
            outbox.switch_off(&Channel::Email, OffReason::Unsubscribed, now);
            self.seen.unsubscribed += 1;
        }
        self.compare(at);
    }

    pub fn observe(&mut self) {
        let rows: Vec<_> = (0..1 + self.rng.below(6))
            .map(|_| {
                let observation = Observation {
                    state: *self.rng.pick(&RdapState::ALL),
                    at: self.now_ms(),
                    registered_on: self.rng.maybe(50, |_| Day::MIN),
                    statuses: RdapStatuses::from(self.rng.below(1 << 20) as u32),
                    source: *self.rng.pick(&[ObservedBy::Dns, ObservedBy::Rdap]),
                    evidence: EvidenceSet::from(self.rng.below(1 << 11) as u16),
                    registration: LatestRegistration {
                        at: self
                            .rng
                            .maybe(50, |rng| rng.below(1 << 40) as u64)
                            .and_then(UnixMs::new),
                        registrar: self.rng.maybe(50, |_| "Ünï Names").and_then(Registrar::new),
                    },
                };
                (name(&self.domain()), observation)
            })
            .collect();
        let store = self.store();
        self.runtime.block_on(store.record_observations(rows.clone())).expect("written");
        for (name, observation) in rows {
            if self.is_watched(name.as_str()) {
                self.outside.seen.insert(name.to_string(), observation);
            }
        }
        self.compare_seen();
    }

    fn is_watched(&self, text: &str) -> bool {
        self.model.iter().any(|account| account.watches.iter().any(|it| it.name == text))
    }

    /// Removes observations without a watcher.
    pub fn forget_seen(&mut self) {
        let watched: Vec<_> =
            self.outside.seen.keys().filter(|text| self.is_watched(text)).cloned().collect();
        self.outside.seen.retain(|text, _| watched.contains(text));
        self.compare_seen();
    }

    pub fn compare_seen(&self) {
        let store = self.store();
        for target in store.verification_targets() {
            let seen = self.outside.seen.get(target.name.as_str()).copied();
            assert_eq!(target.observation, seen, "{}", target.name);
            let of = |it: &&Account| {
                !it.shut && it.watches.iter().any(|w| w.name == target.name.as_str())
            };
            assert_eq!(target.watchers.len(), self.model.iter().filter(of).count());
        }
        for (text, seen) in &self.outside.seen {
            assert_eq!(store.observations([&name(text)]), [Some(*seen)], "{text}");
        }
    }

    /// Compares deliveries as an account that can log in sees them.
    pub fn compare_outbox(&self, at: usize, owned: &dropdex::accounts::UserData) {
        let account = &self.model[at];
        for rule in &account.rules {
            let (id, none) = (RuleId::new(rule.id).expect("an id"), ModelOutbox::default());
            let outbox = account.outboxes.get(&rule.id).unwrap_or(&none);
            let mut told: Vec<_> = owned.deliveries(id).map(model_delivery).collect();
            told.reverse();
            assert_eq!(told, outbox.deliveries);
            for channel in &rule.channels {
                let off = owned.switched_off(id, channel).map(|off| (off.reason, off.at));
                let expected = outbox.off.iter().find(|(it, _, _)| it == channel);
                assert_eq!(off, expected.map(|(_, reason, at)| (*reason, *at)));
            }
        }
    }
}
