//! Sends the pending deliveries of the store and writes their outcomes back.
//!
//! Delivery is at least once: a delivery is pending in the journal before it is sent, and its outcome is
//! written afterwards. After a crash in between, it is sent again under the same ID. While outcomes
//! cannot be written, nothing is sent.

pub mod queue;
pub mod schedule;
pub mod send;

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::counter;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::accounts::{AttemptOutcome, Channel, ClosedChannel, PendingDelivery, Store};
use crate::outbound::{Failure, SendError};
use crate::vocab::clock::Clock;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::time::UnixMs;
use crate::workers::deliver::queue::{Key, Queue};
use crate::workers::deliver::schedule::Schedule;
use crate::workers::deliver::send::Senders;

/// Maximum time to finish attempts after the signal to stop. Unfinished attempts are repeated after
/// the next start.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// Maximum time to finish mails about channels that were switched off.
const REPORTS_DRAIN_MAX: Duration = Duration::from_secs(2);
/// Maximum sleep, because the clock may be changed.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Delay before retrying to write outcomes.
const WRITE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Delays of the attempts to mail an owner that a channel was switched off.
const REPORT_AFTER: [Duration; 3] =
    [Duration::ZERO, Duration::from_secs(60), Duration::from_secs(600)];

/// The delivery worker.
#[derive(Clone)]
pub struct Deliver {
    pub store: Store,
    pub senders: Senders,
    pub schedule: Schedule,
    pub clock: Clock,
}

/// Result of an attempt; `Some` is the new ID of a Telegram chat.
type Sent = Result<Option<String>, SendError>;
type Outcome = (AccountId, RuleId, DeliveryId, AttemptOutcome);

/// The state of the worker.
struct DeliveryWorker {
    deliver: Deliver,
    queue: Queue,
    tasks: JoinSet<Sent>,
    /// Attempts in flight, each with its delivery, its number and its channel.
    in_flight: HashMap<Id, (Key, u16, Arc<Channel>)>,
    /// New IDs of Telegram chats, to be stored once the outcomes are written.
    moved: Vec<(AccountId, Arc<Channel>, String)>,
    /// Mails about channels that were switched off.
    reports: JoinSet<()>,
    /// Outcomes that must be written before anything else is sent.
    unwritten: Vec<Outcome>,
}

impl Deliver {
    /// Sends until `stop` is done, then finishes attempts in progress.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let changed = self.store.deliveries_changed();
        let mut stop = std::pin::pin!(stop);
        let mut work = DeliveryWorker::new(self);
        work.reload();
        loop {
            work.start_due();
            let idle = work.idle();
            tokio::select! {
                () = &mut stop => break,
                () = changed.notified() => work.reload(),
                Some(ended) = work.tasks.join_next_with_id() => work.end(ended).await,
                () = sleep(idle) => work.write().await,
            }
        }
        work.drain().await;
    }
}

/// Mails an owner that a channel was switched off. The rule's page also shows it, in case no mail
/// arrives.
async fn report(senders: Senders, closed: ClosedChannel, clock: Clock) {
    for after in REPORT_AFTER {
        sleep(after).await;
        let Err(err) = senders.report(&closed, clock.now()).await else { return };
        tracing::warn!(error = %err, "the owner could not be mailed that a channel was switched off");
        if err.failure.is_permanent() {
            return;
        }
    }
}

/// Stores the new ID of a Telegram chat, after the last message queued for the old one. Until then, each message
/// looks up the new ID again.
async fn move_chat(store: &Store, account: AccountId, channel: &Channel, to: &str) {
    let Channel::Telegram { chat_id } = channel else { return };
    match store.move_telegram_chat(account, chat_id, to).await {
        Ok(true) => tracing::info!(from = chat_id, to, "a Telegram group became a supergroup"),
        Ok(false) => {}
        Err(err) => tracing::warn!(error = %err, "the new id of a Telegram chat is not stored"),
    }
}

/// Counts an attempt in the metrics.
fn count(channel: &'static str, settled: &AttemptOutcome) {
    let outcome = match settled {
        AttemptOutcome::Delivered => "delivered",
        AttemptOutcome::Retry { .. } => "retry",
        AttemptOutcome::Failed { .. } => "failed",
        AttemptOutcome::SwitchOff { .. } => "switched_off",
    };
    counter!("dropdex_deliveries_total", "channel" => channel, "outcome" => outcome).increment(1);
}

impl DeliveryWorker {
    fn new(deliver: Deliver) -> DeliveryWorker {
        let queue = Queue::new(deliver.schedule.shortest());
        let (tasks, reports) = Default::default();
        let (in_flight, unwritten) = (HashMap::new(), Vec::new());
        DeliveryWorker { deliver, queue, tasks, in_flight, moved: Vec::new(), reports, unwritten }
    }

    /// Reads the pending deliveries from the store.
    fn reload(&mut self) {
        let pending = self.deliver.store.pending_deliveries();
        let queued = pending.iter().filter_map(|pending| {
            let PendingDelivery { account, rule, delivery, .. } = pending;
            let key = Key { account: *account, rule: rule.id, id: delivery.id };
            Some((send::target(&delivery.channel), delivery.next_at()?, key))
        });
        self.queue.replace(queued);
    }

    /// Starts all deliveries that are due and permitted.
    fn start_due(&mut self) {
        if !self.unwritten.is_empty() {
            return;
        }
        while let Some((_, key)) = self.queue.take(self.deliver.clock.now(), Instant::now()) {
            let Key { account, rule, id } = key;
            let Some(pending) = self.deliver.store.pending_delivery(account, rule, id) else {
                // The channel has been switched off meanwhile, or the rule was removed.
                self.queue.done(key, queue::Health::Healthy, Instant::now());
                continue;
            };
            let attempts = pending.delivery.attempts.saturating_add(1);
            let (senders, now) = (self.deliver.senders.clone(), self.deliver.clock.now());
            let channel = Arc::clone(&pending.delivery.channel);
            let task = self.tasks.spawn(async move { senders.send(pending, now).await });
            self.in_flight.insert(task.id(), (key, attempts, channel));
        }
    }

    /// The time until the next delivery may start.
    fn idle(&self) -> Duration {
        if !self.unwritten.is_empty() {
            return WRITE_RETRY_AFTER;
        }
        let idle = self.queue.idle(self.deliver.clock.now(), Instant::now());
        // Due times have a resolution of a millisecond.
        idle.map_or(IDLE_MAX, |idle| idle.clamp(Duration::from_millis(1), IDLE_MAX))
    }

    /// Records this attempt and all others that have finished, and writes their outcomes.
    async fn end(&mut self, first: Result<(Id, Sent), JoinError>) {
        let mut ended = Some(first);
        while let Some(one) = ended {
            self.record(one);
            ended = self.tasks.try_join_next_with_id();
        }
        self.write().await;
    }

    fn record(&mut self, ended: Result<(Id, Sent), JoinError>) {
        let (id, sent) = match ended {
            Ok(ended) => ended,
            // The task panicked; the panic hook logs the panic. The delivery is retried on
            // schedule.
            Err(err) => {
                (err.id(), Err(SendError::new(Failure::NotConfigured, "sending it panicked")))
            }
        };
        let Some((key, attempts, channel)) = self.in_flight.remove(&id) else { return };
        let kind = send::kind(&channel);
        let sent = sent.map(|moved| {
            self.moved.extend(moved.map(|chat| (key.account, channel, chat)));
        });
        let settled =
            self.deliver.schedule.settle(key.id, attempts, &sent, self.deliver.clock.now());
        let health = send::health(&sent);
        let target = self.queue.done(key, health, Instant::now());
        count(kind, &settled);
        if let Err(err) = &sent {
            let next_at = match settled {
                AttemptOutcome::Retry { next_at, .. } => Some(next_at),
                _ => None,
            };
            tracing::info!(
                delivery.id = %key.id,
                target = target.as_ref().map(tracing::field::display),
                attempts,
                error = %err,
                outcome = settled.as_str(),
                next_at = next_at.map(tracing::field::display),
                "delivery failed"
            );
        }
        if let (AttemptOutcome::Retry { next_at, .. }, Some(target)) = (settled, target) {
            self.queue.put(target, next_at, key);
        }
        self.unwritten.push((key.account, key.rule, key.id, settled));
    }

    /// Writes outcomes to the journal.
    async fn write(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        let at = UnixMs::from_instant(self.deliver.clock.now());
        match self.deliver.store.settle(self.unwritten.clone(), at).await {
            Ok(closed) => {
                self.unwritten.clear();
                for (account, channel, chat) in mem::take(&mut self.moved) {
                    move_chat(&self.deliver.store, account, &channel, &chat).await;
                }
                // Removes finished mails.
                while self.reports.try_join_next().is_some() {}
                for closed in closed {
                    let (senders, clock) = (self.deliver.senders.clone(), self.deliver.clock);
                    self.reports.spawn(report(senders, closed, clock));
                }
            }
            Err(err) => tracing::error!(
                error = %err,
                "cannot write outcomes of deliveries; sending is paused until they are written"
            ),
        }
    }

    /// Finishes attempts in progress, with a time limit, and writes their outcomes.
    async fn drain(mut self) {
        let ended = timeout(DRAIN_MAX, async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.record(ended);
            }
        });
        if ended.await.is_err() {
            let left = self.in_flight.len();
            tracing::info!(left, "stopped during deliveries; they are sent again after the start");
        }
        self.write().await;
        let reported = async { while self.reports.join_next().await.is_some() {} };
        if timeout(REPORTS_DRAIN_MAX, reported).await.is_err() {
            tracing::info!("stopped before an owner was mailed that a channel was switched off");
        }
    }
}
