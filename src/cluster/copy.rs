//! Copies records of the shared log to the journal, then applies them and responds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::record::{SHARED, SharedPosition, copy_fits, push_copy};
use super::replica::{Condition, Done, Replica};
use crate::journal::{AppendError, Appended, Journal};

/// Pause before a retry when the disk is full or the journal is busy.
const PAUSE: Duration = Duration::from_millis(100);

/// A record to copy.
pub(super) struct Copy<T> {
    pub(super) bytes: Vec<u8>,
    /// The position after it.
    pub(super) position: SharedPosition,
    pub(super) transactions: Vec<T>,
    /// Callbacks of the transactions that this node appended.
    pub(super) done: Vec<Done>,
}

pub(super) struct Copier<R: Replica> {
    pub(super) journal: Arc<Journal>,
    pub(super) replica: Arc<R>,
    pub(super) applied: Arc<watch::Sender<SharedPosition>>,
    pub(super) condition: Arc<watch::Sender<Condition>>,
    pub(super) closing: watch::Receiver<bool>,
}

impl<R: Replica> Copier<R> {
    /// Copies records until the channel closes. A group holds as many waiting records as fit.
    pub(super) async fn run(self, mut copies: mpsc::Receiver<Copy<R::Transaction>>) {
        let mut next = copies.recv().await;
        while let Some(first) = next.take() {
            let mut payload = Vec::new();
            push_copy(&mut payload, first.position.seq, &first.bytes);
            let mut group = vec![first];
            while let Ok(more) = copies.try_recv() {
                if !copy_fits(payload.len(), more.bytes.len()) {
                    next = Some(more);
                    break;
                }
                push_copy(&mut payload, more.position.seq, &more.bytes);
                group.push(more);
            }
            if let Err(refusal) = self.write(payload, group).await {
                let reason = format!("its copy cannot be written: {refusal}");
                tracing::error!(error = reason, "the shared log of this node is halted");
                self.condition.send_modify(|it| it.halted = Some(reason));
                return;
            }
            if next.is_none() {
                next = copies.recv().await;
            }
        }
    }

    /// Writes and applies a group. Waits for room in the journal, since groups must be written in order.
    async fn write(
        &self,
        payload: Vec<u8>,
        group: Vec<Copy<R::Transaction>>,
    ) -> Result<(), AppendError> {
        let group = Arc::new(Mutex::new(group));
        loop {
            let apply = {
                let group = Arc::clone(&group);
                let (replica, applied) = (Arc::clone(&self.replica), Arc::clone(&self.applied));
                move |appended| {
                    let group =
                        std::mem::take(&mut *group.lock().unwrap_or_else(PoisonError::into_inner));
                    apply_all(replica.as_ref(), &applied, group, appended);
                }
            };
            let appended = match self.journal.append_async(SHARED, payload.clone(), apply) {
                Ok(append) => append.durable().await.map(drop),
                Err(refusal) => Err(refusal),
            };
            match appended {
                // The node receives the group again after its next start.
                Err(refusal @ (AppendError::Busy | AppendError::DiskFull))
                    if *self.closing.borrow() =>
                {
                    return Err(refusal);
                }
                Err(AppendError::Busy | AppendError::DiskFull) => tokio::time::sleep(PAUSE).await,
                other => return other,
            }
        }
    }
}

/// Applies a group. Runs on the journal's thread, which preserves the order.
fn apply_all<R: Replica>(
    replica: &R,
    applied: &watch::Sender<SharedPosition>,
    group: Vec<Copy<R::Transaction>>,
    appended: Appended,
) {
    let Some(position) = group.last().map(|last| last.position) else { return };
    let (mut transactions, mut done) = (Vec::new(), Vec::new());
    for copy in group {
        transactions.extend(copy.transactions);
        done.extend(copy.done);
    }
    replica.apply(transactions, position, appended.position);
    applied.send_replace(position);
    for done in done {
        done(Ok(appended));
    }
}
