//! Erases accounts some days after their deletion was asked for.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::accounts::Store;
use crate::service::work;
use crate::telemetry::security::{self, SecurityEvent};
use crate::vocab::clock::Clock;

/// Interval at which accounts are looked through.
const PERIOD: Duration = Duration::from_secs(60);

/// The worker that erases accounts.
pub struct Erasure {
    pub store: Store,
    pub clock: Clock,
}

impl Erasure {
    /// Erases until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.erase() => {}
        }
    }

    async fn erase(&self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.clock.is_trusted() {
                continue;
            }
            let (store, now) = (self.store.clone(), self.clock.now());
            match work::run_low(move || store.erase_due(now)).await {
                // The log outlives the account, so it does not get the address.
                Some(Ok(erased)) => {
                    erased.iter().for_each(|_| security::record(SecurityEvent::AccountErased, ""));
                }
                Some(Err(err)) => {
                    tracing::error!(error = %err, "accounts cannot be erased; trying again");
                }
                None => {}
            }
        }
    }
}
