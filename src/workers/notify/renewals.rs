//! Reminders of renewals: every minute, looks for claims whose renewal is due in some days. The store records
//! the day together with the messages, which [`crate::workers::deliver`] sends, so none is lost or repeated.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::accounts::{Store, WriteError};
use crate::vocab::clock::Clock;

/// Interval at which claims are read. They may be added on the day of their reminder.
const PERIOD: Duration = Duration::from_secs(60);

/// The worker that reminds of renewals.
pub struct Renewals {
    pub store: Store,
    pub clock: Clock,
    /// Whether this server sends mail.
    pub has_mail: bool,
}

impl Renewals {
    /// Reminds until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.remind() => {}
        }
    }

    async fn remind(&self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.remind_now().await {
                Ok(0) => {}
                Ok(accounts) => tracing::info!(accounts, "queued reminders of renewals"),
                Err(err) => {
                    tracing::error!(error = %err, "queueing reminders of renewals failed; trying again");
                }
            }
        }
    }

    async fn remind_now(&self) -> Result<usize, WriteError> {
        match self.clock.is_trusted() {
            true => self.store.remind_of_renewals(self.clock.today(), self.has_mail).await,
            false => Ok(0),
        }
    }
}
