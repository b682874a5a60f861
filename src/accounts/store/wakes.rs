//! Notifications of writes, for background workers.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::event::{Event, RowOf, Transaction};

/// Notifications, each for one waiter. A notification without a waiter is kept for the next one.
#[derive(Clone, Default)]
pub struct Wakes {
    pub deliveries: Arc<Notify>,
    pub watches: Arc<Notify>,
    pub observations: Arc<Notify>,
    pub files: Arc<Notify>,
}

impl Wakes {
    /// Returns the notifications to send once this transaction has been applied.
    pub fn after(&self, transaction: &Transaction) -> impl FnOnce() + Send + 'static + use<> {
        let (mut deliveries, mut watches, mut observations) = (None, None, None);
        let mut files = None;
        for event in &transaction.0 {
            match event {
                Event::ListMatched { .. }
                | Event::TestQueued { .. }
                | Event::DeliveryRequeued { .. }
                | Event::RulePut { .. }
                | Event::Removed { row: RowOf::Rule(_), .. }
                | Event::ChannelsSwitched { .. }
                | Event::ChangesMatched { .. }
                | Event::ChangesTold { .. }
                | Event::RenewalsDue { .. }
                | Event::WatchAlertsSet { .. } => deliveries = Some(Arc::clone(&self.deliveries)),
                Event::WatchPut { .. } => watches = Some(Arc::clone(&self.watches)),
                // An undone action may restore rules and watched names.
                Event::ActionUndone { .. } => {
                    deliveries = Some(Arc::clone(&self.deliveries));
                    watches = Some(Arc::clone(&self.watches));
                }
                Event::NamesVerified { .. } => {
                    observations = Some(Arc::clone(&self.observations));
                }
                Event::FilesAnnounced { served: false, .. } => {
                    files = Some(Arc::clone(&self.files))
                }
                _ => {}
            }
        }
        move || {
            for wake in [deliveries, watches, observations, files].into_iter().flatten() {
                wake.notify_one();
            }
        }
    }
}
