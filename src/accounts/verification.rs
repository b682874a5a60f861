//! The store's methods for those who work without a request: matching lists, delivering alerts and
//! verifying names. What they write is about many accounts at once and takes no stripe: applying it
//! judges each rule and delivery as it is by then, and what is gone changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::decide::Decided;
use super::decide::deliveries::{self, Batch, live_channels};
use super::decide::replies::posted;
use super::email::Email;
use super::event::{Event, StoredAttempt, StoredName, Transaction};
use super::owned::deliveries::{Delivery, MatchedName, Settled};
use super::owned::rules::{Channel, Rule};
use super::state::Account;
use super::store::{Caller, Store};
use super::write::{Answered, Post, Reply, WriteError};
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;
use crate::vocab::plan::Plan;
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// Outcomes and observations of one record at most: at their longest they stay below half of what
/// a record may have.
const ROWS_MAX: usize = 1_500;

/// A rule to be matched against a list.
#[derive(Clone, Debug)]
pub struct MatchableRule {
    /// Whose.
    pub account: AccountId,
    /// What its account pays for.
    pub plan: Plan,
    /// The rule.
    pub rule: Arc<Rule>,
    /// How far it has been matched.
    pub base: Watermark,
    /// The UTC day it was added.
    pub created_day: Day,
    /// Places in `rule.channels` of those that are used; not empty.
    pub live_channels: Vec<usize>,
}

/// What a rule matched in a list.
#[derive(Clone, Debug)]
pub struct RuleMatch {
    /// Whose.
    pub account: AccountId,
    /// The rule.
    pub rule: RuleId,
    /// How many names.
    pub total: u32,
    /// The best of them, best first, by their places in the table of all matches. More than
    /// [`MESSAGE_NAMES_MAX`](crate::vocab::limits::MESSAGE_NAMES_MAX) are cut off.
    pub names: Vec<u32>,
}

/// A delivery to be tried, with all it takes.
#[derive(Clone, Debug)]
pub struct PendingDelivery {
    /// Whose.
    pub account: AccountId,
    /// The account's address: where mails go.
    pub email: Email,
    /// The rule, as it is now.
    pub rule: Arc<Rule>,
    /// What a webhook's message is signed with.
    pub secret: Option<Secret>,
    /// What the unsubscribe link of a mail names: the same for all mails of the rule, so that it
    /// works when this delivery has long been forgotten.
    pub unsubscribe: Option<DeliveryId>,
    /// The delivery; pending.
    pub delivery: Delivery,
}

/// A name somebody watches, to be verified.
#[derive(Clone, Debug)]
pub struct Target {
    /// The name.
    pub name: DomainName,
    /// Whether it costs one of those who watch it quota: the corpus does not hold it.
    pub external: bool,
    /// Who watches it, in ascending order.
    pub watchers: Vec<AccountId>,
    /// When it was last put on a list. Somebody who adds a name is shown only what was seen since:
    /// otherwise they could tell that others watch it.
    pub added_at: UnixMs,
    /// What was last seen.
    pub observation: Option<Observation>,
}

impl Target {
    /// Whether somebody who watches it has seen nothing of it yet.
    pub fn is_unverified(&self) -> bool {
        self.observation.is_none_or(|seen| seen.at < self.added_at)
    }
}

/// What waits to be done without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Deliveries to be sent.
    pub deliveries: usize,
    /// When the first of them is due.
    pub first_due: Option<UnixMs>,
    /// Names that somebody watches.
    pub watched: usize,
    /// Those of them of which nothing was seen yet.
    pub unseen: usize,
}

/// Who is to be told of what has been written. A note that comes while nobody waits is kept for the
/// next who does: for one waiter each.
#[derive(Default)]
pub(super) struct Wakes {
    deliveries: Arc<Notify>,
    watches: Arc<Notify>,
}

impl Wakes {
    /// What is to be woken once this has been applied.
    pub(super) fn after(
        &self,
        transaction: &Transaction,
    ) -> impl FnOnce() + Send + 'static + use<> {
        let (mut deliveries, mut watches) = (None, None);
        for event in &transaction.0 {
            match event {
                Event::ListMatched { .. }
                | Event::TestQueued { .. }
                | Event::DeliveryRequeued { .. }
                | Event::RuleChanged { .. }
                | Event::RuleRemoved { .. }
                | Event::ChannelSwitchedOff { .. }
                | Event::ChannelsSwitchedOn { .. } => {
                    deliveries = Some(Arc::clone(&self.deliveries))
                }
                Event::WatchAdded { .. } => watches = Some(Arc::clone(&self.watches)),
                _ => {}
            }
        }
        move || {
            for wake in [deliveries, watches].into_iter().flatten() {
                wake.notify_one();
            }
        }
    }
}

impl Store {
    /// How far all alert rules are matched; `None` before the first start of a server.
    pub fn watermark(&self) -> Option<Watermark> {
        self.state().watermark()
    }

    /// Says that everything up to `through` is the past, of which nothing fires, if nothing has been
    /// said so far.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn set_watermark_if_none(&self, through: Watermark) -> Result<(), WriteError> {
        let _one_matcher = self.0.matching.lock().await;
        if self.watermark().is_some() {
            return Ok(());
        }
        let at = UnixMs::of(self.0.clock.now());
        self.append(vec![Batch::default().event(through, at, true)]).await
    }

    /// The rules to be matched: at work, within the plan, with a channel that is used, of accounts
    /// that are not shut. None before a watermark was set.
    pub fn matchable_rules(&self) -> Vec<MatchableRule> {
        let state = self.state();
        let mut rules = Vec::new();
        for account in state.accounts().filter(|account| !account.disabled) {
            for rule in account.owned.rules.at_work(self.0.plans.of(account.plan).active_rules) {
                let Some(base) = state.matched(account.id, rule.id) else { return Vec::new() };
                let live_channels = live_channels(account, rule);
                if live_channels.is_empty() {
                    continue;
                }
                rules.push(MatchableRule {
                    account: account.id,
                    plan: account.plan,
                    rule: Arc::clone(rule),
                    base,
                    created_day: Day::of(rule.created_at.instant()).unwrap_or(Day::MAX),
                    live_channels,
                });
            }
        }
        rules
    }

    /// Writes down what a list brought, `through` which all rules are matched then, and queues a
    /// message for each match. Durable when it returns; after a crash in between, some rules are
    /// done with the list and the others are to be matched again. A rule that is done with it, or
    /// that was stopped or removed since it was matched, gets nothing.
    ///
    /// # Errors
    /// [`WriteError::Journal`], [`WriteError::Random`]: call it again with all matches then.
    pub async fn record_matches(
        &self,
        through: Watermark,
        at: UnixMs,
        matches: Vec<RuleMatch>,
        table: Arc<[MatchedName]>,
    ) -> Result<(), WriteError> {
        let _one_matcher = self.0.matching.lock().await;
        let mut left = matches.as_slice();
        loop {
            let mut batch = Batch::default();
            while let Some((first, rest)) = left.split_first() {
                if !batch.take(&self.state(), through, first, &table)? {
                    break;
                }
                left = rest;
            }
            self.append(vec![batch.event(through, at, left.is_empty())]).await?;
            if left.is_empty() {
                return Ok(());
            }
        }
    }

    /// Notified when there may be deliveries that are due earlier than was known, and when some are
    /// not to be sent any more. For one waiter.
    pub fn deliveries_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.wakes.deliveries)
    }

    /// Notified when a name was put on a watchlist. For one waiter.
    pub fn watches_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.wakes.watches)
    }

    /// How much waits. Looks at every watched name, so it is for the blocking pool; writes go on
    /// meanwhile.
    pub fn queues(&self) -> Queues {
        let (deliveries, first_due, watched) = {
            let state = self.state();
            let mut pending = state.pending();
            (pending.len(), pending.next().map(|due| due.0), state.watched())
        };
        let (watched, unseen) = watched.counts();
        Queues { deliveries, first_due, watched, unseen }
    }

    /// All that is to be sent, the first that is due first; nothing of accounts that are shut.
    pub fn pending_deliveries(&self) -> Vec<PendingDelivery> {
        let found: Vec<_> = {
            let state = self.state();
            let account = |id| state.account(id).map(Arc::clone);
            let due = state.pending();
            due.filter_map(|&(_, id, rule, delivery)| Some((account(id)?, rule, delivery)))
                .collect()
        };
        found.iter().filter_map(|(account, rule, id)| pending(account, *rule, *id)).collect()
    }

    /// One delivery, if it is to be sent still: its channel may have been switched off, its rule
    /// removed.
    pub fn pending_delivery(
        &self,
        account: AccountId,
        rule: RuleId,
        id: DeliveryId,
    ) -> Option<PendingDelivery> {
        let account = self.state().account(account).map(Arc::clone)?;
        pending(&account, rule, id)
    }

    /// Writes down what tries at `at` came to. What is not pending any more stays as it is.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: nothing, or a part from the front, is written then.
    pub async fn settle(
        &self,
        outcomes: Vec<(AccountId, RuleId, DeliveryId, Settled)>,
        at: UnixMs,
    ) -> Result<(), WriteError> {
        for outcomes in outcomes.chunks(ROWS_MAX) {
            let events: Vec<_> = {
                let state = self.state();
                let attempt = |&(account, rule, delivery, settled): &(_, _, _, Settled)| {
                    let found = state.account(account)?.owned.delivery(rule, delivery)?;
                    let attempts = found.attempts.saturating_add(1);
                    let settled = settled.into();
                    let attempt = StoredAttempt { rule, delivery, at, attempts, settled };
                    found.is_pending().then_some(Event::DeliverySettled { account, attempt })
                };
                outcomes.iter().filter_map(attempt).collect()
            };
            self.append(events).await?;
        }
        Ok(())
    }

    /// Queues a test message of a rule with some of the names it matches, of `total`; `shape` makes
    /// the answer of its deliveries.
    ///
    /// # Errors
    /// [`WriteError`]: no such rule, no channel that is on, too many test messages today, a key used
    /// before.
    pub async fn queue_test(
        &self,
        caller: &Caller,
        rule: RuleId,
        names: &[MatchedName],
        total: u32,
        post: Post,
        shape: impl FnOnce(&[Delivery]) -> Reply + Send,
    ) -> Result<Answered, WriteError> {
        let now = UnixMs::of(post.now);
        self.write(caller, |account, _| {
            posted(account, &post, || {
                let Decided { events, answer } =
                    deliveries::test(account, rule, (names, total), now)?;
                Ok(Decided { events, answer: shape(&answer) })
            })
        })
        .await
    }

    /// Queues a failed delivery again; `shape` makes the answer of it.
    ///
    /// # Errors
    /// [`WriteError`]: no such delivery, it has not failed or cannot be sent any more, a key used
    /// before.
    pub async fn requeue(
        &self,
        caller: &Caller,
        rule: RuleId,
        delivery: DeliveryId,
        post: Post,
        shape: impl FnOnce(&Delivery) -> Reply + Send,
    ) -> Result<Answered, WriteError> {
        let now = UnixMs::of(post.now);
        self.write(caller, |account, _| {
            posted(account, &post, || {
                let Decided { events, answer } = deliveries::requeue(account, rule, delivery, now)?;
                Ok(Decided { events, answer: shape(&answer) })
            })
        })
        .await
    }

    /// Switches off the mails of the rule whose mails name `id`; whether there is one. They may have
    /// been off.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn unsubscribe(&self, id: DeliveryId, at: UnixMs) -> Result<bool, WriteError> {
        let Some((account, rule)) = self.state().of_mail(id) else { return Ok(false) };
        self.write_to(account, |account, _| Ok(deliveries::unsubscribe(account, rule, at))).await?;
        Ok(true)
    }

    /// What was last seen of each of these names.
    pub fn observations<'a>(
        &self,
        names: impl IntoIterator<Item = &'a DomainName>,
    ) -> Vec<Option<Observation>> {
        let state = self.state();
        names.into_iter().map(|name| state.observation(name)).collect()
    }

    /// Every name that an account which is not shut watches, in order of names.
    pub fn verification_targets(&self) -> Vec<Target> {
        let mut accounts: Vec<_> = {
            let state = self.state();
            let watching = state.accounts().filter(|it| !it.disabled && it.owned.watches.len() > 0);
            watching.map(Arc::clone).collect()
        };
        accounts.sort_unstable_by_key(|account| account.id);
        let mut targets: HashMap<DomainName, Target> = HashMap::new();
        for account in &accounts {
            for entry in account.owned.watches() {
                let target = targets.entry(entry.name).or_insert_with_key(|name| Target {
                    name: name.clone(),
                    external: false,
                    watchers: Vec::with_capacity(1),
                    added_at: entry.added_at,
                    observation: None,
                });
                target.external |= entry.external;
                target.added_at = target.added_at.max(entry.added_at);
                target.watchers.push(account.id);
            }
        }
        let mut targets: Vec<_> = targets.into_values().collect();
        targets.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        let seen = self.observations(targets.iter().map(|target| &target.name));
        for (target, seen) in targets.iter_mut().zip(seen) {
            target.observation = seen;
        }
        targets
    }

    /// Writes down what was seen. Names that nobody watches any more are forgotten.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: nothing, or a part from the front, is written then.
    pub async fn record_observations(
        &self,
        rows: Vec<(DomainName, Observation)>,
    ) -> Result<(), WriteError> {
        for rows in rows.chunks(ROWS_MAX) {
            let row = |(name, seen): &(DomainName, Observation)| {
                (StoredName(name.clone()), (*seen).into())
            };
            let rows = rows.iter().map(row).collect();
            self.append(vec![Event::NamesVerified { rows }]).await?;
        }
        Ok(())
    }

    /// Makes these durable, if there are any.
    async fn append(&self, events: Vec<Event>) -> Result<(), WriteError> {
        self.append_as(events, None).await
    }
}

fn pending(account: &Account, rule: RuleId, id: DeliveryId) -> Option<PendingDelivery> {
    let owned = &account.owned;
    let delivery = owned.delivery(rule, id).filter(|it| it.is_pending() && !account.disabled)?;
    let rule = owned.rules.shared(rule)?;
    let secret = match &*delivery.channel {
        Channel::Webhook { url } => rule.secrets.iter().find(|it| it.url == *url),
        Channel::Email | Channel::Telegram { .. } => None,
    };
    let is_mail = *delivery.channel == Channel::Email;
    Some(PendingDelivery {
        account: account.id,
        email: account.email.clone(),
        rule: Arc::clone(rule),
        secret: secret.map(|it| it.secret.clone()),
        unsubscribe: owned.outbox.of(rule.id).and_then(|it| it.mail_id).filter(|_| is_mail),
        delivery: delivery.clone(),
    })
}
