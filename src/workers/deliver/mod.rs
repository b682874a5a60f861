//! Sends what matches have queued: pending deliveries of the store in, outcomes into the store out.
//!
//! A delivery is sent at least once. It is pending in the journal before anything is sent, and its
//! outcome is written after: a crash in between sends it again, under the same id. While outcomes
//! cannot be written, nothing is sent.

pub mod queue;
pub mod schedule;
pub mod send;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use metrics::counter;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::accounts::{AttemptOutcome, PendingDelivery, Store};
use crate::outbound::{Failure, SendError};
use crate::vocab::clock::Clock;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::time::UnixMs;
use crate::workers::deliver::queue::{Key, Queue};
use crate::workers::deliver::schedule::Schedule;
use crate::workers::deliver::send::Senders;

/// What is under way may take this long after the signal to stop; it is sent again after the start.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// Nothing is slept on for longer: clocks are set.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How long to wait before outcomes that could not be written are tried again.
const UNWRITTEN_PAUSE: Duration = Duration::from_secs(5);

/// What the loop needs.
pub struct Deliver {
    pub store: Store,
    pub senders: Senders,
    pub schedule: Schedule,
    pub clock: Clock,
}

type Sent = Result<(), SendError>;
type Outcome = (AccountId, RuleId, DeliveryId, AttemptOutcome);

/// The loop at work.
struct Work {
    deliver: Deliver,
    queue: Queue,
    tasks: JoinSet<Sent>,
    under_way: HashMap<Id, (Key, u16)>,
    /// Outcomes that are to be written before anything else is sent.
    unwritten: Vec<Outcome>,
}

impl Deliver {
    /// Sends until `stop` is done, then lets what is under way end.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let changed = self.store.deliveries_changed();
        let mut stop = std::pin::pin!(stop);
        let mut work = Work::new(self);
        work.look();
        loop {
            work.start_due();
            let idle = work.idle();
            tokio::select! {
                () = &mut stop => break,
                () = changed.notified() => work.look(),
                Some(ended) = work.tasks.join_next_with_id() => work.end(ended).await,
                () = sleep(idle) => work.write().await,
            }
        }
        work.drain().await;
    }
}

/// Counts what a try came to.
fn count(target: Option<&queue::Target>, settled: &AttemptOutcome) {
    let channel = match target {
        Some(queue::Target::Host(_)) => "webhook",
        Some(queue::Target::Mail) => "email",
        Some(queue::Target::Telegram) => "telegram",
        None => "gone",
    };
    let outcome = match settled {
        AttemptOutcome::Delivered => "delivered",
        AttemptOutcome::Retry { .. } => "retry",
        AttemptOutcome::Failed { .. } => "failed",
        AttemptOutcome::SwitchOff { .. } => "switched_off",
    };
    counter!("dropdex_deliveries_total", "channel" => channel, "outcome" => outcome).increment(1);
}

impl Work {
    fn new(deliver: Deliver) -> Work {
        let queue = Queue::new(deliver.schedule.shortest());
        let (tasks, under_way, unwritten) = (JoinSet::new(), HashMap::new(), Vec::new());
        Work { deliver, queue, tasks, under_way, unwritten }
    }

    /// Takes over what is pending in the store.
    fn look(&mut self) {
        let pending = self.deliver.store.pending_deliveries();
        let queued = pending.iter().filter_map(|pending| {
            let PendingDelivery { account, rule, delivery, .. } = pending;
            let key = Key { account: *account, rule: rule.id, id: delivery.id };
            Some((send::target(&delivery.channel), delivery.next_at()?, key))
        });
        self.queue.replace(queued);
    }

    /// Starts all that may go.
    fn start_due(&mut self) {
        if !self.unwritten.is_empty() {
            return;
        }
        while let Some((_, key)) = self.queue.take(self.deliver.clock.now(), Instant::now()) {
            let Key { account, rule, id } = key;
            let Some(pending) = self.deliver.store.pending_delivery(account, rule, id) else {
                // Switched off, or its rule removed, meanwhile.
                self.queue.done(key, queue::Health::Well, Instant::now());
                continue;
            };
            let attempts = pending.delivery.attempts.saturating_add(1);
            let (senders, now) = (self.deliver.senders.clone(), self.deliver.clock.now());
            let task = self.tasks.spawn(async move { senders.send(pending, now).await });
            self.under_way.insert(task.id(), (key, attempts));
        }
    }

    /// How long nothing can be started, unless something happens.
    fn idle(&self) -> Duration {
        if !self.unwritten.is_empty() {
            return UNWRITTEN_PAUSE;
        }
        let idle = self.queue.idle(self.deliver.clock.now(), Instant::now());
        // A millisecond is the grain of what is due.
        idle.map_or(IDLE_MAX, |idle| idle.clamp(Duration::from_millis(1), IDLE_MAX))
    }

    /// Takes note of what ended, and of all that ended by now, and writes it down.
    async fn end(&mut self, first: Result<(Id, Sent), JoinError>) {
        let mut ended = Some(first);
        while let Some(one) = ended {
            self.note(one);
            ended = self.tasks.try_join_next_with_id();
        }
        self.write().await;
    }

    fn note(&mut self, ended: Result<(Id, Sent), JoinError>) {
        let (id, sent) = match ended {
            Ok(ended) => ended,
            // A fault of ours: logged by the runtime, and tried again by schedule.
            Err(err) => {
                let detail = "sending it panicked".to_owned();
                let failure = Failure::NotConfigured;
                (err.id(), Err(SendError { failure, retry_after: None, detail }))
            }
        };
        let Some((key, attempts)) = self.under_way.remove(&id) else { return };
        let settled =
            self.deliver.schedule.settle(key.id, attempts, &sent, self.deliver.clock.now());
        let health = send::health(&sent);
        let target = self.queue.done(key, health, Instant::now());
        count(target.as_ref(), &settled);
        if let Err(err) = &sent {
            tracing::info!(
                delivery.id = %key.id,
                target = ?target,
                attempts,
                error = %err,
                outcome = ?settled,
                "a delivery was not taken"
            );
        }
        if let (AttemptOutcome::Retry { next_at, .. }, Some(target)) = (settled, target) {
            self.queue.put(target, next_at, key);
        }
        self.unwritten.push((key.account, key.rule, key.id, settled));
    }

    /// Writes outcomes down.
    async fn write(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        let at = UnixMs::from_instant(self.deliver.clock.now());
        match self.deliver.store.settle(self.unwritten.clone(), at).await {
            Ok(()) => self.unwritten.clear(),
            Err(err) => tracing::error!(
                error = %err,
                "outcomes of deliveries cannot be written; nothing is sent until they can"
            ),
        }
    }

    /// Lets what is under way end, within bounds, and writes it down.
    async fn drain(mut self) {
        let ended = timeout(DRAIN_MAX, async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.note(ended);
            }
        });
        if ended.await.is_err() {
            let left = self.under_way.len();
            tracing::info!(
                left,
                "deliveries were still under way; they are sent again at the start"
            );
        }
        self.write().await;
    }
}
