//! The outbox of one account: alert messages that were sent or will be sent.
//!
//! A match queues one delivery for each active channel of its rule. A delivery is pending until the
//! receiver accepts it, refuses it permanently, or 24 hours of retries have passed. The owner can
//! queue a failed one again. The outbox is separate from the rules, which change less often.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::data::fields::row;
use crate::data::rules::{Channel, Rule};
use crate::data::sorted::Sorted;
use crate::vocab::day::Day;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::ids::{DeliveryId, RuleId, SearchId, UnsubscribeToken};
use crate::vocab::limits::{DELIVERIES_KEPT_MAX, FAILED_WITH_NAMES_MAX, MESSAGE_NAMES_MAX};
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;

/// A name that a rule matched, with its data at that time: a row of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatchedName(pub DroppedName);

impl Deref for MatchedName {
    type Target = DroppedName;

    fn deref(&self) -> &DroppedName {
        &self.0
    }
}

impl From<DroppedName> for MatchedName {
    fn from(name: DroppedName) -> MatchedName {
        MatchedName(name)
    }
}

row!(MatchedName of DroppedName { 1 name, 2 dqs, 3 drop_date, 4 release, 5 stage }
    optional { 6 release_second });

/// Names of a saved search in a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestSearch {
    pub id: SearchId,
    pub name: CompactString,
    /// Number of new names.
    pub total: u32,
    /// The best of them.
    pub names: Vec<MatchedName>,
}

row!(DigestSearch { 1 id, 2 name, 3 total } optional { 4 names });

/// Rows of a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigestRows {
    /// The best new names, best first.
    pub best: Vec<MatchedName>,
    /// Saved searches with new names.
    pub searches: Vec<DigestSearch>,
}

row!(DigestRows { } optional { 1 best, 2 searches });

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageKind {
    /// Names that match a rule.
    Match,
    /// A test message that the owner requested.
    Test,
    /// Changes of watched names.
    Changes,
}

/// A message of a rule. Each channel gets its own delivery of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: MessageKind,
    /// When it was queued.
    pub at: UnixMs,
    /// The UTC day of the list. The stages are those of this day.
    pub list_day: Day,
    /// Number of names that matched, or of changes.
    pub total: u32,
    /// The first rows, up to [`MESSAGE_NAMES_MAX`]. `None` once the rows are no longer needed.
    pub content: Option<MessageRows>,
}

/// Rows of a message. Equal rows and lists are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRows {
    /// Matching names, best first.
    Names(Arc<[Arc<MatchedName>]>),
    /// Changes of watched names, oldest first.
    Changes(Arc<[Arc<WatchedChange>]>),
    /// A morning digest.
    Digest(Arc<DigestRows>),
}

/// Number of changes of a delivered message that are kept for its history.
pub const CHANGES_KEPT_MAX: usize = 20;

impl MessageRows {
    /// Returns the part of a delivered message that is kept: the first changes, or `None` for a
    /// message about names.
    fn kept(self) -> Option<MessageRows> {
        match self {
            MessageRows::Names(_) | MessageRows::Digest(_) => None,
            MessageRows::Changes(all) if all.len() <= CHANGES_KEPT_MAX => {
                Some(MessageRows::Changes(all))
            }
            MessageRows::Changes(all) => Some(MessageRows::Changes(all[..CHANGES_KEPT_MAX].into())),
        }
    }
}

/// Number of undelivered messages of a channel above which further changes are collected in one
/// message.
const CHANGES_PENDING_MAX: usize = 3;
/// Time for which changes are collected, so that no more than a hundred messages wait for a
/// receiver that is down during the 24 hours of retries.
const CHANGES_GATHER_MS: u64 = 15 * 60_000;

/// Changes of watched names for one channel.
pub struct NewChanges {
    /// Position of the channel.
    pub position: u8,
    pub id: DeliveryId,
    pub at: UnixMs,
    /// Time at which the message is due.
    pub due: UnixMs,
    pub total: u32,
    /// The first of the changes.
    pub changes: Vec<Arc<WatchedChange>>,
}

/// A message to one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    /// The channel, as it was when the message was queued.
    pub channel: Arc<Channel>,
    pub message: Message,
    /// Number of attempts since the delivery was last queued.
    pub attempts: u16,
    pub status: DeliveryStatus,
    pub last_attempt_at: Option<UnixMs>,
    pub last_problem: Option<Problem>,
}

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryStatus {
    /// The delivery waits to be sent, not before `next_at`.
    Pending { next_at: UnixMs },
    /// The receiver accepted it.
    Delivered,
    /// Delivery was given up.
    Failed,
}

/// Reason why an attempt failed, as shown to the owner. The reason contains no body, address or
/// timing, because users could probe networks with these that they cannot reach themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Problem {
    /// The SSRF guard refused the address.
    Refused,
    /// The receiver did not respond in time.
    Timeout,
    /// The connection failed, or the host does not resolve.
    Unreachable,
    /// The TLS handshake failed.
    Tls,
    /// The response was not a success.
    Status(StatusClass),
    /// The receiver wants no more messages (410), or the hook of a chat service no longer exists.
    Gone,
    /// The mailbox or chat does not exist, or refused the message.
    Rejected,
    /// The server has no settings for this kind of channel.
    NotConfigured,
    /// The owner switched the channel off or removed it before the message was sent.
    SwitchedOff,
}

/// The class of an unsuccessful HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatusClass {
    /// 3xx: redirects are not followed.
    Redirect,
    /// 4xx.
    ClientError,
    /// 5xx.
    ServerError,
    Other,
}

impl StatusClass {
    /// Returns the class of an unsuccessful HTTP status.
    pub fn from_status(status: u16) -> StatusClass {
        match status / 100 {
            3 => StatusClass::Redirect,
            4 => StatusClass::ClientError,
            5 => StatusClass::ServerError,
            _ => StatusClass::Other,
        }
    }
}

/// The outcome of an attempt to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// The receiver accepted the message.
    Delivered,
    /// The attempt is repeated, not before `next_at`.
    Retry { next_at: UnixMs, problem: Problem },
    /// Delivery was given up.
    Failed { problem: Problem },
    /// Delivery is given up, and the channel is off until the owner switches it on.
    SwitchOff { problem: Problem },
}

impl AttemptOutcome {
    /// Returns the word for the outcome in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptOutcome::Delivered => "delivered",
            AttemptOutcome::Retry { .. } => "retry",
            AttemptOutcome::Failed { .. } => "failed",
            AttemptOutcome::SwitchOff { .. } => "switched-off",
        }
    }

    /// Returns why the attempt failed; `None` if it succeeded.
    pub fn problem(self) -> Option<Problem> {
        match self {
            AttemptOutcome::Delivered => None,
            AttemptOutcome::Retry { problem, .. }
            | AttemptOutcome::Failed { problem }
            | AttemptOutcome::SwitchOff { problem } => Some(problem),
        }
    }
}

impl Problem {
    /// Returns true if the problem counts as a failure of the receiver behind `channel`. Problems
    /// of mail and Telegram do not count, since all their messages go through one server.
    pub fn is_of(self, channel: &Channel) -> bool {
        match channel {
            Channel::Email | Channel::Telegram { .. } => self == Problem::Rejected,
            Channel::Webhook { .. } | Channel::Chat(_) => self != Problem::NotConfigured,
        }
    }
}

/// Why a channel is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OffReason {
    /// The receiver responded that it no longer exists.
    Gone,
    /// The recipient followed the unsubscribe link.
    Unsubscribed,
    /// All deliveries have failed for [`FAILING_MAX_MS`].
    Failing,
}

/// Time without a delivered message (five days) after which a failed message switches its channel off.
pub const FAILING_MAX_MS: u64 = 5 * 86_400_000;

/// The reason why a channel of a rule is off, and the time at which it was switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedOff {
    pub reason: OffReason,
    pub at: UnixMs,
}

impl Message {
    /// Returns a test message about names that match a rule, or about changes of watched names.
    pub fn test(
        rule: RuleId,
        at: UnixMs,
        day: Day,
        total: u32,
        names: Vec<MatchedName>,
        changes: Vec<WatchedChange>,
    ) -> Message {
        let content = match rule {
            RuleId::WATCHLIST => MessageRows::Changes(changes.into_iter().map(Arc::new).collect()),
            _ => MessageRows::Names(names.into_iter().map(Arc::new).collect()),
        };
        let content = Some(content);
        Message { kind: MessageKind::Test, at, list_day: day, total, content }
    }

    /// Returns the matching names; empty once they are no longer needed, and for changes.
    pub fn names(&self) -> &[Arc<MatchedName>] {
        match &self.content {
            Some(MessageRows::Names(names)) => names,
            _ => &[],
        }
    }

    /// Returns the changes; for a delivered message, only the first few.
    pub fn changes(&self) -> &[Arc<WatchedChange>] {
        match &self.content {
            Some(MessageRows::Changes(changes)) => changes,
            _ => &[],
        }
    }

    /// Adds changes to a message about changes.
    fn extend(&mut self, total: u32, more: Vec<Arc<WatchedChange>>) {
        self.total = self.total.saturating_add(total);
        let room = MESSAGE_NAMES_MAX.saturating_sub(self.changes().len());
        if room > 0 {
            let all = self.changes().iter().cloned().chain(more.into_iter().take(room));
            self.content = Some(MessageRows::Changes(all.collect()));
        }
    }
}

impl Delivery {
    /// Returns the time of the next attempt, if the delivery is pending.
    pub fn next_at(&self) -> Option<UnixMs> {
        match self.status {
            DeliveryStatus::Pending { next_at } => Some(next_at),
            DeliveryStatus::Delivered | DeliveryStatus::Failed => None,
        }
    }

    /// Returns true if the delivery is pending.
    pub fn is_pending(&self) -> bool {
        self.next_at().is_some()
    }

    /// Returns true if the delivery failed and still has its names, so that it can be sent again.
    pub fn can_be_retried(&self) -> bool {
        self.status == DeliveryStatus::Failed && self.message.content.is_some()
    }

    fn fail(&mut self, problem: Problem) {
        self.status = DeliveryStatus::Failed;
        self.last_problem = Some(problem);
    }
}

/// The outbox of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleOutbox {
    /// The secret in the unsubscribe links of all mails of the rule, set before the first of them.
    pub unsubscribe: Option<UnsubscribeToken>,
    /// Channels that are off. Invariant: the channels are distinct and belong to the rule.
    pub off: Vec<(Arc<Channel>, SwitchedOff)>,
    /// Channels that have been failing, with the time since which no message was delivered through
    /// them. Invariant: the channels are distinct active channels of the rule.
    pub failing: Vec<(Arc<Channel>, UnixMs)>,
    /// Deliveries, oldest first. Invariant: at most [`DELIVERIES_KEPT_MAX`] of them are not
    /// pending.
    pub deliveries: VecDeque<Delivery>,
}

impl RuleOutbox {
    pub fn is_empty(&self) -> bool {
        self.unsubscribe.is_none()
            && self.off.is_empty()
            && self.failing.is_empty()
            && self.deliveries.is_empty()
    }

    pub fn get(&self, id: DeliveryId) -> Option<&Delivery> {
        self.deliveries.iter().rev().find(|delivery| delivery.id == id)
    }

    pub fn switched_off(&self, channel: &Channel) -> Option<SwitchedOff> {
        self.off.iter().find(|(it, _)| **it == *channel).map(|(_, off)| *off)
    }

    /// Returns since when a channel has been failing; `None` if its last message was delivered.
    pub fn failing_since(&self, channel: &Channel) -> Option<UnixMs> {
        self.failing.iter().find(|(it, _)| **it == *channel).map(|(_, since)| *since)
    }

    /// Returns the pending deliveries and their due times.
    pub fn pending(&self) -> impl Iterator<Item = (UnixMs, DeliveryId)> {
        self.deliveries.iter().filter_map(|it| Some((it.next_at()?, it.id)))
    }

    /// Queues a message for channels of `rule`, each given by its position and the id of its
    /// delivery. Channels that were removed or switched off in the meantime are skipped.
    pub fn queue(&mut self, rule: &Rule, message: &Message, deliveries: &[(u8, DeliveryId)]) {
        for &(position, id) in deliveries {
            let Some(channel) = rule.channels.get(usize::from(position)) else { continue };
            if self.switched_off(channel).is_some() {
                continue;
            }
            if *channel == Channel::Email {
                self.unsubscribe.get_or_insert(UnsubscribeToken::of_older_version(id));
            }
            self.deliveries.push_back(Delivery {
                id,
                channel: self.shared(channel),
                message: message.clone(),
                attempts: 0,
                status: DeliveryStatus::Pending { next_at: message.at },
                last_attempt_at: None,
                last_problem: None,
            });
        }
        self.trim();
    }

    /// Queues changes of watched names, unless the channel was removed or switched off in the
    /// meantime. The changes join a message to the channel if it is not yet due and no attempt was
    /// made to send it, so that all attempts under one id have the same body.
    pub fn queue_changes(&mut self, rule: &Rule, new: NewChanges) {
        let NewChanges { position, id, at, due, total, changes } = new;
        let Some(channel) = rule.channels.get(usize::from(position)) else { return };
        if self.switched_off(channel).is_some() {
            return;
        }
        let waits = |it: &Delivery| {
            let is_later = it.next_at().is_some_and(|next| next > at);
            is_later && it.attempts == 0 && it.message.kind == MessageKind::Changes
        };
        let mut of_channel = self.deliveries.iter_mut().filter(|it| *it.channel == *channel);
        if let Some(open) = of_channel.find(|it| waits(it)) {
            open.message.extend(total, changes);
            return;
        }
        let pending =
            self.deliveries.iter().filter(|it| it.is_pending() && *it.channel == *channel);
        let is_behind = pending.count() >= CHANGES_PENDING_MAX;
        let gathered =
            UnixMs::new(at.get() + CHANGES_GATHER_MS).filter(|_| is_behind).unwrap_or(due);
        let content = Some(MessageRows::Changes(changes.into()));
        let kind = MessageKind::Changes;
        let list_day = Day::nearest(at.instant());
        self.deliveries.push_back(Delivery {
            id,
            channel: self.shared(channel),
            message: Message { kind, at, list_day, total, content },
            attempts: 0,
            status: DeliveryStatus::Pending { next_at: due.max(gathered) },
            last_attempt_at: None,
            last_problem: None,
        });
        self.trim();
    }

    /// Applies the outcome of the attempt at `at`; `attempts` counts it.
    pub fn settle(&mut self, id: DeliveryId, at: UnixMs, attempts: u16, outcome: AttemptOutcome) {
        let Some(delivery) = self.get_mut(id).filter(|it| it.is_pending()) else { return };
        let channel = Arc::clone(&delivery.channel);
        delivery.attempts = attempts;
        delivery.last_attempt_at = Some(at);
        match outcome {
            AttemptOutcome::Delivered => {
                delivery.status = DeliveryStatus::Delivered;
                delivery.message.content =
                    delivery.message.content.take().and_then(MessageRows::kept);
                delivery.last_problem = None;
            }
            AttemptOutcome::Retry { next_at, problem } => {
                delivery.status = DeliveryStatus::Pending { next_at };
                delivery.last_problem = Some(problem);
            }
            AttemptOutcome::Failed { problem } => delivery.fail(problem),
            AttemptOutcome::SwitchOff { problem } => {
                delivery.fail(problem);
                let reason = match problem {
                    Problem::Gone => OffReason::Gone,
                    _ => OffReason::Failing,
                };
                self.switch_off(&channel, SwitchedOff { reason, at });
            }
        }
        self.note_failing(channel, at, outcome.problem());
        self.trim();
    }

    /// Records since when an active channel has been failing.
    fn note_failing(&mut self, channel: Arc<Channel>, at: UnixMs, problem: Option<Problem>) {
        match problem {
            None => self.failing.retain(|(it, _)| *it != channel),
            Some(problem)
                if problem.is_of(&channel)
                    && self.switched_off(&channel).is_none()
                    && self.failing_since(&channel).is_none() =>
            {
                self.failing.push((channel, at));
            }
            Some(_) => {}
        }
    }

    /// Queues a failed delivery again and resets its attempts.
    pub fn requeue(&mut self, id: DeliveryId, at: UnixMs) {
        if let Some(delivery) = self.get_mut(id).filter(|it| it.can_be_retried()) {
            delivery.status = DeliveryStatus::Pending { next_at: at };
            delivery.attempts = 0;
        }
    }

    /// Switches a channel off and fails its pending deliveries.
    pub fn switch_off(&mut self, channel: &Channel, off: SwitchedOff) {
        if self.switched_off(channel).is_none() {
            let channel = self.shared(channel);
            self.off.push((channel, off));
        }
        self.failing.retain(|(it, _)| **it != *channel);
        self.give_up(|other| *other == *channel);
        self.trim();
    }

    /// Switches a channel of the rule off or, with `None`, all channels on.
    pub fn switch(&mut self, rule: &Rule, off: Option<(Channel, SwitchedOff)>) {
        match off {
            Some((channel, off)) if rule.channels.contains(&channel) => {
                self.switch_off(&channel, off);
            }
            Some(_) => {}
            None => {
                self.off.clear();
                self.failing.clear();
            }
        }
    }

    /// Applies a change of the rule's channels; pending deliveries to removed channels fail.
    pub fn keep_channels(&mut self, channels: &[Channel]) {
        self.off.retain(|(channel, _)| channels.contains(channel));
        self.failing.retain(|(channel, _)| channels.contains(channel));
        self.give_up(|channel| !channels.contains(channel));
        self.trim();
    }

    /// Appends a delivery from a snapshot.
    pub fn put(&mut self, mut delivery: Delivery) {
        delivery.channel = self.shared(&delivery.channel);
        self.deliveries.push_back(delivery);
    }

    fn give_up(&mut self, is_affected: impl Fn(&Channel) -> bool) {
        for delivery in &mut self.deliveries {
            if delivery.is_pending() && is_affected(&delivery.channel) {
                delivery.fail(Problem::SwitchedOff);
            }
        }
    }

    fn get_mut(&mut self, id: DeliveryId) -> Option<&mut Delivery> {
        self.deliveries.iter_mut().rev().find(|delivery| delivery.id == id)
    }

    /// Returns an equal channel of another delivery of the rule, to save memory, or a new one.
    fn shared(&self, channel: &Channel) -> Arc<Channel> {
        let of_deliveries = self.deliveries.iter().rev().map(|delivery| &delivery.channel);
        let known = of_deliveries.chain(self.off.iter().map(|(channel, _)| channel));
        let same = known.into_iter().find(|known| ***known == *channel);
        same.map_or_else(|| Arc::new(channel.clone()), Arc::clone)
    }

    /// Drops the oldest deliveries that are not pending, and the names of the oldest failed ones.
    fn trim(&mut self) {
        let done = self.deliveries.iter().filter(|it| !it.is_pending()).count();
        let mut too_many = done.saturating_sub(DELIVERIES_KEPT_MAX);
        if too_many > 0 {
            self.deliveries.retain(|delivery| {
                let goes = too_many > 0 && !delivery.is_pending();
                too_many -= usize::from(goes);
                !goes
            });
        }
        let failed = self.deliveries.iter_mut().rev().filter(|it| it.can_be_retried());
        failed.skip(FAILED_WITH_NAMES_MAX).for_each(|it| it.message.content = None);
    }
}

/// The outboxes of all rules of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox(Sorted<RuleId, Arc<RuleOutbox>>);

impl Outbox {
    pub fn get(&self, rule: RuleId) -> Option<&Arc<RuleOutbox>> {
        self.0.get(&rule)
    }

    /// Returns the number of deliveries of all rules.
    pub fn len(&self) -> usize {
        self.0.values().map(|outbox| outbox.deliveries.len()).sum()
    }

    /// In order of rule ids.
    pub fn iter(&self) -> impl Iterator<Item = (RuleId, &Arc<RuleOutbox>)> {
        self.0.iter().map(|(rule, outbox)| (*rule, outbox))
    }

    /// Changes the outbox of `rule`, and removes it if it is then empty.
    pub fn change(&mut self, rule: RuleId, change: impl FnOnce(&mut RuleOutbox)) {
        // The outbox is removed first, so that it is not shared with the map.
        let mut outbox = self.0.remove(&rule).unwrap_or_default();
        change(Arc::make_mut(&mut outbox));
        if !outbox.is_empty() {
            self.0.insert(rule, outbox);
        }
    }

    pub fn remove(&mut self, rule: RuleId) -> Option<Arc<RuleOutbox>> {
        self.0.remove(&rule)
    }
}
