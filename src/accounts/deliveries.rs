//! Alert deliveries: the queue, outcomes of attempts, test messages, retries and unsubscribing.

use std::sync::Arc;

use super::data::account::Account;
use super::data::deliveries::{
    AttemptOutcome, Delivery, DeliveryStatus, FAILING_MAX_MS, MatchedName, Message, OffReason,
    Problem, RuleOutbox, SwitchedOff,
};
use super::data::rules::{Channel, Rule, WebhookSecret};
use super::decide::{Decided, random_bytes};
use super::email::Email;
use super::error::WriteError;
use super::event::Event;
use super::idempotency::{Draft, Post};
use super::store::{Caller, ROWS_MAX, Store};
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId, UnsubscribeToken};
use crate::vocab::limits::{TEST_NAMES_MAX, TESTS_PER_DAY_MAX};
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// A delivery to be sent, with all data that it needs.
#[derive(Clone, Debug)]
pub struct PendingDelivery {
    pub account: AccountId,
    /// The account's address, which mails are sent to.
    pub email: Email,
    /// The current rule.
    pub rule: Arc<Rule>,
    /// The key that signs a webhook's message.
    pub secret: Option<WebhookSecret>,
    /// The secret in the unsubscribe link of a mail. All mails of the rule have the same secret, so
    /// that a link works even after its delivery is removed.
    pub unsubscribe: Option<UnsubscribeToken>,
    pub delivery: Delivery,
}

/// A channel that was switched off by the outcome of a delivery.
#[derive(Clone, Debug)]
pub struct ClosedChannel {
    pub account: AccountId,
    /// The account's address, if it may receive mail.
    pub email: Option<Email>,
    pub rule: Arc<Rule>,
    pub channel: Arc<Channel>,
    /// The last failed delivery.
    pub delivery: DeliveryId,
    pub problem: Problem,
}

impl ClosedChannel {
    fn is_same(&self, other: &ClosedChannel) -> bool {
        let of = |it: &ClosedChannel| (it.account, it.rule.id);
        of(self) == of(other) && self.channel == other.channel
    }
}

impl Store {
    /// Returns all pending deliveries of enabled accounts, earliest due first.
    pub fn pending_deliveries(&self) -> Vec<PendingDelivery> {
        let found: Vec<_> = {
            let state = self.state();
            let due = state.queue.pending().filter_map(|&(_, account, rule, delivery)| {
                Some((Arc::clone(state.account(account)?), rule, delivery))
            });
            due.collect()
        };
        found.iter().filter_map(|(account, rule, id)| pending(account, *rule, *id)).collect()
    }

    /// Returns a delivery if it is still pending. Meanwhile the channel may have been switched off,
    /// or the rule removed.
    pub fn pending_delivery(
        &self,
        account: AccountId,
        rule: RuleId,
        id: DeliveryId,
    ) -> Option<PendingDelivery> {
        // Changes that are being recorded may join this message, so it is not sent until all of
        // them are recorded.
        let is_recorded = rule == RuleId::WATCHLIST && self.0.watching.try_lock().is_err();
        let account = self.state().account(account).filter(|_| !is_recorded).map(Arc::clone)?;
        pending(&account, rule, id)
    }

    /// Records the outcomes of attempts that ended at `at`, and returns the channels that they
    /// switch off. When a delivery has failed after its last attempt, its channel is also switched off if
    /// nothing was delivered to it for five days. Deliveries that are already finished do not change.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: the first outcomes may be recorded.
    pub async fn settle(
        &self,
        outcomes: Vec<(AccountId, RuleId, DeliveryId, AttemptOutcome)>,
        at: UnixMs,
    ) -> Result<Vec<ClosedChannel>, WriteError> {
        let mut closed = Vec::new();
        for outcomes in outcomes.chunks(ROWS_MAX) {
            let mut closing: Vec<ClosedChannel> = Vec::new();
            let events: Vec<_> = {
                let state = self.state();
                let settled = outcomes.iter().filter_map(|&(account, rule, delivery, outcome)| {
                    let owner = state.account(account)?;
                    let found = owner.data.delivery(rule, delivery)?;
                    let outbox = owner.data.outbox.get(rule)?;
                    let since = outbox.failing_since(&found.channel);
                    let outcome = match outcome {
                        AttemptOutcome::Failed { problem }
                            if problem.is_of(&found.channel)
                                && since.is_some_and(|it| {
                                    at.get().saturating_sub(it.get()) >= FAILING_MAX_MS
                                }) =>
                        {
                            AttemptOutcome::SwitchOff { problem }
                        }
                        outcome => outcome,
                    };
                    if let AttemptOutcome::SwitchOff { problem } = outcome {
                        let one = closed_channel(owner, rule, found, problem);
                        // Several deliveries of a channel may end at the same time.
                        if let Some(one) = one
                            && !closing.iter().any(|it| one.is_same(it))
                        {
                            closing.push(one);
                        }
                    }
                    let attempts = found.attempts.saturating_add(1);
                    let settled =
                        Event::DeliverySettled { account, rule, delivery, at, attempts, outcome };
                    found.is_pending().then_some(settled)
                });
                settled.collect()
            };
            self.append(events, None).await?;
            closed.append(&mut closing);
        }
        Ok(closed)
    }

    /// Queues a test message of a rule for each of its live channels. `total` names match the rule,
    /// of which `names` are shown.
    ///
    /// # Errors
    /// [`WriteError`]: the rule does not exist, no live channel, too many test messages today, an
    /// idempotency key used before.
    pub async fn queue_test(
        &self,
        caller: &Caller,
        rule: RuleId,
        names: &[MatchedName],
        total: u32,
        post: Post,
    ) -> Result<Draft<'_, Vec<Delivery>>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, _| queue_test(account, rule, names, total, now)).await
    }

    /// Queues a failed delivery again.
    ///
    /// # Errors
    /// [`WriteError`]: no such delivery, it has not failed or cannot be sent any more, an
    /// idempotency key used before.
    pub async fn requeue(
        &self,
        caller: &Caller,
        rule: RuleId,
        delivery: DeliveryId,
        post: Post,
    ) -> Result<Draft<'_, Delivery>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, _| requeue(account, rule, delivery, now)).await
    }

    /// Switches off the mails of the rule whose unsubscribe links contain `token`. Returns true if
    /// such a rule exists, even if its mails were already off.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn unsubscribe(
        &self,
        token: UnsubscribeToken,
        at: UnixMs,
    ) -> Result<bool, WriteError> {
        let Some((account, rule)) = self.state().queue.rule_of(token) else { return Ok(false) };
        self.write_to(account, |account, _| Ok(unsubscribe(account, rule, at))).await?;
        Ok(true)
    }
}

/// Returns the positions in `rule.channels` of the channels in use: those that are on, allowed by
/// the plan and, for mail, have a verified address.
pub fn live_channels(account: &Account, rule: &Rule) -> Vec<usize> {
    let outbox = account.data.outbox.get(rule.id);
    let is_live = |channel: &Channel| {
        let is_mail = *channel == Channel::Email;
        let is_off = outbox.is_some_and(|outbox| outbox.switched_off(channel).is_some());
        !is_off
            && (is_mail || account.plan != Plan::Free)
            && (!is_mail || account.access.is_verified())
    };
    let channels = rule.channels.iter().enumerate();
    channels.filter(|(_, channel)| is_live(channel)).map(|(position, _)| position).collect()
}

/// Draws a delivery id for the channel at each of these positions.
pub fn draw_deliveries(channels: &[usize]) -> Result<Vec<(u8, DeliveryId)>, WriteError> {
    let draw = |position: &usize| {
        let position = u8::try_from(*position).expect("a rule has at most five channels");
        Ok((position, DeliveryId::new(random_bytes()?)))
    };
    channels.iter().map(draw).collect()
}

/// Draws the token of unsubscribe links if one of the channels at these positions gets the first mail
/// of the rule.
pub fn new_unsubscribe_token(
    account: &Account,
    rule: &Rule,
    channels: &[usize],
) -> Result<Option<Event>, WriteError> {
    let is_mailed = channels.iter().any(|position| rule.channels[*position] == Channel::Email);
    let outbox = account.data.outbox.get(rule.id);
    if !is_mailed || outbox.is_some_and(|outbox| outbox.unsubscribe.is_some()) {
        return Ok(None);
    }
    let token = UnsubscribeToken::new(random_bytes()?);
    Ok(Some(Event::UnsubscribeTokenSet { account: account.id, rule: rule.id, token }))
}

fn pending(account: &Account, rule: RuleId, id: DeliveryId) -> Option<PendingDelivery> {
    let data = &account.data;
    let delivery =
        data.delivery(rule, id).filter(|it| it.is_pending() && !account.is_disabled())?;
    let rule = data.sender(rule)?;
    let secret = match &*delivery.channel {
        Channel::Webhook { url } => rule.secrets.iter().find(|it| it.url == *url),
        Channel::Email | Channel::Telegram { .. } | Channel::Chat(_) => None,
    };
    let is_mail = *delivery.channel == Channel::Email;
    Some(PendingDelivery {
        account: account.id,
        email: account.email.clone(),
        rule: Arc::clone(rule),
        secret: secret.cloned(),
        unsubscribe: data.outbox.get(rule.id).and_then(|it| it.unsubscribe).filter(|_| is_mail),
        delivery: delivery.clone(),
    })
}

/// Returns the channel that an outcome of a pending delivery switches off; `None` if it is already off.
fn closed_channel(
    account: &Account,
    rule: RuleId,
    delivery: &Delivery,
    problem: Problem,
) -> Option<ClosedChannel> {
    let is_on = account.data.switched_off(rule, &delivery.channel).is_none();
    let rule = Arc::clone(account.data.sender(rule)?);
    let is_verified = account.access.is_verified();
    (is_on && delivery.is_pending()).then(|| ClosedChannel {
        account: account.id,
        email: is_verified.then(|| account.email.clone()),
        rule,
        channel: Arc::clone(&delivery.channel),
        delivery: delivery.id,
        problem,
    })
}

fn queue_test(
    account: &Account,
    rule: RuleId,
    names: &[MatchedName],
    total: u32,
    now: UnixMs,
) -> Result<Decided<Vec<Delivery>>, WriteError> {
    let rule = account.data.rules.get(rule).ok_or(WriteError::NotFound)?;
    let channels = live_channels(account, rule);
    if channels.is_empty() {
        let what = "all channels of this alert rule are switched off; PATCH it with `channels` to \
                    switch them on";
        return Err(WriteError::Conflict(what.into()));
    }
    let day = Day::nearest(now.instant());
    check_test_limit(account, now, day, channels.len())?;
    let names: Vec<_> = names.iter().take(TEST_NAMES_MAX).cloned().collect();
    let deliveries = draw_deliveries(&channels)?;
    // Returns the deliveries that applying the event will add.
    let mut queued = RuleOutbox::default();
    let message = Message::test(rule.id, now, day, total, names.clone(), Vec::new());
    queued.queue(rule, &message, &deliveries);
    let token = new_unsubscribe_token(account, rule, &channels)?;
    let (account, rule) = (account.id, rule.id);
    let changes = Vec::new();
    let event =
        Event::TestQueued { account, rule, at: now, day, total, names, changes, deliveries };
    Ok(Decided::new(token.into_iter().chain([event]), queued.deliveries.into()))
}

/// Checks that another `more` test messages are allowed today.
pub(super) fn check_test_limit(
    account: &Account,
    now: UnixMs,
    today: Day,
    more: usize,
) -> Result<(), WriteError> {
    let (last, sent) =
        account.data.tests.filter(|(day, _)| !today.replaces(*day)).unwrap_or((today, 0));
    if sent as usize + more <= TESTS_PER_DAY_MAX as usize {
        return Ok(());
    }
    let (limit, resets_at) = (TESTS_PER_DAY_MAX, last.plus(1).start());
    // Rounded up, since a request one second early would be refused again.
    let retry_after_s = (resets_at - now.instant()).num_seconds() + 1;
    Err(WriteError::TooManyTests { limit, resets_at, retry_after_s })
}

fn requeue(
    account: &Account,
    rule: RuleId,
    id: DeliveryId,
    now: UnixMs,
) -> Result<Decided<Delivery>, WriteError> {
    let rule = account.data.sender(rule).ok_or(WriteError::NotFound)?;
    let delivery = account.data.delivery(rule.id, id).ok_or(WriteError::NotFound)?;
    let mut live = live_channels(account, rule).into_iter();
    let is_live = live.any(|position| rule.channels[position] == *delivery.channel);
    let refusal = match delivery.status {
        DeliveryStatus::Pending { .. } => Some("it is pending and will be retried automatically"),
        DeliveryStatus::Delivered => Some("it was delivered"),
        DeliveryStatus::Failed if !delivery.can_be_retried() => {
            Some("newer deliveries have failed since, and its names are no longer kept")
        }
        DeliveryStatus::Failed if !is_live => Some(match rule.id {
            RuleId::WATCHLIST => "its channel is switched off or no longer one of the watchlist's",
            _ => "its channel is switched off or no longer one of the rule's",
        }),
        DeliveryStatus::Failed => None,
    };
    if let Some(why) = refusal {
        return Err(WriteError::Conflict(format!("this delivery cannot be retried: {why}")));
    }
    // Returns the delivery in the state that applying the event will give it.
    let mut outbox = RuleOutbox::default();
    outbox.put(delivery.clone());
    outbox.requeue(id, now);
    let requeued = outbox.deliveries.pop_front().expect("one was added");
    let (account, rule) = (account.id, rule.id);
    let event = Event::DeliveryRequeued { account, rule, delivery: id, at: now };
    Ok(Decided::new([event], requeued))
}

fn unsubscribe(account: &Account, rule: RuleId, now: UnixMs) -> Decided<()> {
    let channel = Channel::Email;
    let has_mail = account.data.sender(rule).is_some_and(|rule| rule.channels.contains(&channel));
    let is_on = has_mail && account.data.switched_off(rule, &channel).is_none();
    let off = SwitchedOff { reason: OffReason::Unsubscribed, at: now };
    let off = Some((channel, off));
    let event = Event::ChannelsSwitched { account: account.id, rule, off };
    Decided::new(is_on.then_some(event), ())
}
