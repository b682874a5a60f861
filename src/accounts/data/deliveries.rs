//! What was, is and will be sent for the alert rules of one account: the outbox.
//!
//! A match queues a delivery for each channel of its rule that is on. It is pending until a receiver
//! took it, or refused it for good, or 24 hours of tries were in vain; a failed one can be queued
//! again by its owner. Kept beside the rules, not in them: stored rules never change their bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::accounts::owned::rules::{Channel, Rule};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::limits::{DELIVERIES_KEPT_MAX, FAILED_WITH_NAMES_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

/// A name a rule matched, as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatchedName {
    /// The name.
    pub name: DomainName,
    /// Its score.
    pub dqs: Dqs,
    /// The day it was seen leaving its zone.
    pub drop_date: Day,
    /// The day its registry frees it: the effective release.
    pub release: Day,
    /// Where it stood.
    pub stage: Stage,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Names that match a rule.
    Match,
    /// What a match would look like, at the owner's request.
    Test,
}

/// One message of a rule; each of its channels gets it in a delivery of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What for.
    pub kind: MessageKind,
    /// When it was queued.
    pub at: UnixMs,
    /// The UTC day of the list, which the stages are of.
    pub list_day: Day,
    /// How many names matched.
    pub total: u32,
    /// The best of them, best first, at most
    /// [`MESSAGE_NAMES_MAX`](crate::vocab::limits::MESSAGE_NAMES_MAX); none once they are not needed
    /// any more. Names and list are shared by all who have the same.
    pub names: Option<Arc<[Arc<MatchedName>]>>,
}

/// One message on its way through one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Where to, as the rule had it then.
    pub channel: Arc<Channel>,
    /// What.
    pub message: Message,
    /// Tries so far, since it was last queued.
    pub attempts: u16,
    /// How it stands.
    pub status: DeliveryStatus,
    /// When it was last tried.
    pub last_attempt_at: Option<UnixMs>,
    /// What went wrong then.
    pub last_problem: Option<Problem>,
}

/// How a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// To be tried, or tried again.
    Pending {
        /// Not before this.
        next_at: UnixMs,
    },
    /// The receiver took it.
    Delivered,
    /// Given up.
    Failed,
}

/// What a user is told of a try that failed: never a body, an address or a time, which would let
/// them look into networks they cannot reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Our own guard against private networks.
    Refused,
    /// No answer in time.
    Timeout,
    /// No connection, or no address.
    Unreachable,
    /// No secure connection.
    Tls,
    /// An answer that is no success.
    Status(StatusClass),
    /// The receiver wants no more (410).
    Gone,
    /// The mailbox or chat does not exist, or does not want it.
    Rejected,
    /// This server is not set up to send there.
    NotConfigured,
    /// Its owner switched the channel off or removed it before it was sent.
    SwitchedOff,
}

/// The first digit of an HTTP status that is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusClass {
    /// A redirect: none is followed.
    Redirect,
    /// 4xx.
    ClientError,
    /// 5xx.
    ServerError,
    /// Anything else.
    Other,
}

impl StatusClass {
    /// The class of an HTTP status that is no success.
    pub fn of(status: u16) -> StatusClass {
        match status / 100 {
            3 => StatusClass::Redirect,
            4 => StatusClass::ClientError,
            5 => StatusClass::ServerError,
            _ => StatusClass::Other,
        }
    }
}

/// What a try came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The receiver took it.
    Delivered,
    /// To be tried again.
    Retry {
        /// Not before this.
        next_at: UnixMs,
        /// What went wrong.
        problem: Problem,
    },
    /// Given up.
    Failed {
        /// What went wrong last.
        problem: Problem,
    },
    /// Given up, and the channel is not to be used any more until its owner says so.
    SwitchOff {
        /// What the receiver said.
        problem: Problem,
    },
}

/// Why a channel is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffReason {
    /// The receiver said that it is gone (410).
    Gone,
    /// Who got the mail wants no more of them.
    Unsubscribed,
}

/// A channel of a rule that is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchedOff {
    /// Why.
    pub reason: OffReason,
    /// Since when.
    pub at: UnixMs,
}

impl Delivery {
    /// When it is to be tried, if it is.
    pub fn next_at(&self) -> Option<UnixMs> {
        match self.status {
            DeliveryStatus::Pending { next_at } => Some(next_at),
            DeliveryStatus::Delivered | DeliveryStatus::Failed => None,
        }
    }

    /// Whether it is still to be sent.
    pub fn is_pending(&self) -> bool {
        self.next_at().is_some()
    }

    /// Whether it was given up and still has its names, so that it can be sent after all.
    pub fn can_be_retried(&self) -> bool {
        self.status == DeliveryStatus::Failed && self.message.names.is_some()
    }

    fn fail(&mut self, problem: Problem) {
        self.status = DeliveryStatus::Failed;
        self.last_problem = Some(problem);
    }
}

/// A message to be queued: what its deliveries share.
pub(in crate::accounts) struct Queued {
    pub(in crate::accounts) message: Message,
    /// Place of the channel in the rule, and the id drawn for it.
    pub(in crate::accounts) deliveries: Vec<(u8, DeliveryId)>,
}

/// What one rule sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::accounts) struct RuleOutbox {
    /// The id of the first mail of the rule, which all its mails name in their unsubscribe link:
    /// deliveries are forgotten after a while, a link in an old mail must work.
    pub(in crate::accounts) mail_id: Option<DeliveryId>,
    /// Channels that are off. Invariant: each is one of the rule's, none is there twice.
    pub(in crate::accounts) off: Vec<(Arc<Channel>, SwitchedOff)>,
    /// Oldest first. Invariant: at most [`DELIVERIES_KEPT_MAX`] beside the pending ones.
    pub(in crate::accounts) deliveries: VecDeque<Delivery>,
}

impl RuleOutbox {
    pub(in crate::accounts) fn is_empty(&self) -> bool {
        self.mail_id.is_none() && self.off.is_empty() && self.deliveries.is_empty()
    }

    pub(in crate::accounts) fn get(&self, id: DeliveryId) -> Option<&Delivery> {
        self.deliveries.iter().rev().find(|delivery| delivery.id == id)
    }

    pub(in crate::accounts) fn switched_off(&self, channel: &Channel) -> Option<SwitchedOff> {
        self.off.iter().find(|(it, _)| **it == *channel).map(|(_, off)| *off)
    }

    /// What is to be sent, and when.
    pub(in crate::accounts) fn pending(&self) -> impl Iterator<Item = (UnixMs, DeliveryId)> {
        self.deliveries.iter().filter_map(|it| Some((it.next_at()?, it.id)))
    }

    /// Queues a message for the channels of `rule`. One that has gone meanwhile, or is off, gets
    /// nothing.
    pub(in crate::accounts) fn queue(&mut self, rule: &Rule, queued: Queued) {
        for (place, id) in queued.deliveries {
            let Some(channel) = rule.channels.get(usize::from(place)) else { continue };
            if self.switched_off(channel).is_some() {
                continue;
            }
            if *channel == Channel::Email {
                self.mail_id.get_or_insert(id);
            }
            self.deliveries.push_back(Delivery {
                id,
                channel: self.shared(channel),
                message: queued.message.clone(),
                attempts: 0,
                status: DeliveryStatus::Pending { next_at: queued.message.at },
                last_attempt_at: None,
                last_problem: None,
            });
        }
        self.forget();
    }

    /// Takes over what a try at `at` came to, the `attempts`th.
    pub(in crate::accounts) fn settle(
        &mut self,
        id: DeliveryId,
        at: UnixMs,
        attempts: u16,
        settled: Settled,
    ) {
        let Some(delivery) = self.get_mut(id).filter(|it| it.is_pending()) else { return };
        delivery.attempts = attempts;
        delivery.last_attempt_at = Some(at);
        match settled {
            Settled::Delivered => {
                delivery.status = DeliveryStatus::Delivered;
                delivery.message.names = None;
                delivery.last_problem = None;
            }
            Settled::Retry { next_at, problem } => {
                delivery.status = DeliveryStatus::Pending { next_at };
                delivery.last_problem = Some(problem);
            }
            Settled::Failed { problem } => delivery.fail(problem),
            Settled::SwitchOff { problem } => {
                delivery.fail(problem);
                let channel = Arc::clone(&delivery.channel);
                self.switch_off(&channel, SwitchedOff { reason: OffReason::Gone, at });
            }
        }
        self.forget();
    }

    /// Queues a failed delivery again, as if it had never been tried.
    pub(in crate::accounts) fn requeue(&mut self, id: DeliveryId, at: UnixMs) {
        if let Some(delivery) = self.get_mut(id).filter(|it| it.can_be_retried()) {
            delivery.status = DeliveryStatus::Pending { next_at: at };
            delivery.attempts = 0;
        }
    }

    /// Switches a channel off: nothing more goes there, not even what is queued.
    pub(in crate::accounts) fn switch_off(&mut self, channel: &Channel, off: SwitchedOff) {
        if self.switched_off(channel).is_none() {
            let channel = self.shared(channel);
            self.off.push((channel, off));
        }
        self.give_up(|other| *other == *channel);
        self.forget();
    }

    /// Switches all channels on.
    pub(in crate::accounts) fn switch_on(&mut self) {
        self.off.clear();
    }

    /// Takes note of what the rule's channels are now: what was queued for others is given up.
    pub(in crate::accounts) fn keep_to(&mut self, channels: &[Channel]) {
        self.off.retain(|(channel, _)| channels.contains(channel));
        self.give_up(|channel| !channels.contains(channel));
        self.forget();
    }

    /// Adds a delivery after all others, as a snapshot brings it.
    pub(in crate::accounts) fn put(&mut self, mut delivery: Delivery) {
        delivery.channel = self.shared(&delivery.channel);
        self.deliveries.push_back(delivery);
    }

    fn give_up(&mut self, is_concerned: impl Fn(&Channel) -> bool) {
        for delivery in &mut self.deliveries {
            if delivery.is_pending() && is_concerned(&delivery.channel) {
                delivery.fail(Problem::SwitchedOff);
            }
        }
    }

    fn get_mut(&mut self, id: DeliveryId) -> Option<&mut Delivery> {
        self.deliveries.iter_mut().rev().find(|delivery| delivery.id == id)
    }

    /// The channel as other deliveries of the rule have it: a webhook's address is long.
    fn shared(&self, channel: &Channel) -> Arc<Channel> {
        let of_deliveries = self.deliveries.iter().rev().map(|delivery| &delivery.channel);
        let known = of_deliveries.chain(self.off.iter().map(|(channel, _)| channel));
        let same = known.into_iter().find(|known| ***known == *channel);
        same.map_or_else(|| Arc::new(channel.clone()), Arc::clone)
    }

    /// Forgets the oldest of what is done, and the names of the oldest that failed.
    fn forget(&mut self) {
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
        failed.skip(FAILED_WITH_NAMES_MAX).for_each(|it| it.message.names = None);
    }
}

/// What all rules of an account send. A clone copies pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::accounts) struct Outbox(BTreeMap<RuleId, Arc<RuleOutbox>>);

impl Outbox {
    pub(in crate::accounts) fn of(&self, rule: RuleId) -> Option<&Arc<RuleOutbox>> {
        self.0.get(&rule)
    }

    /// Deliveries of all rules.
    pub(in crate::accounts) fn len(&self) -> usize {
        self.0.values().map(|outbox| outbox.deliveries.len()).sum()
    }

    /// In order of ids.
    pub(in crate::accounts) fn iter(&self) -> impl Iterator<Item = (RuleId, &Arc<RuleOutbox>)> {
        self.0.iter().map(|(rule, outbox)| (*rule, outbox))
    }

    /// Changes what `rule` sends; what has become empty is forgotten.
    pub(in crate::accounts) fn change(
        &mut self,
        rule: RuleId,
        change: impl FnOnce(&mut RuleOutbox),
    ) {
        let outbox = self.0.entry(rule).or_default();
        change(Arc::make_mut(outbox));
        if outbox.is_empty() {
            self.0.remove(&rule);
        }
    }

    pub(in crate::accounts) fn remove(&mut self, rule: RuleId) -> Option<Arc<RuleOutbox>> {
        self.0.remove(&rule)
    }
}
