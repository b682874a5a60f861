//! Erases accounts some days after their deletion was asked for, and removes them from the disk of each node.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::accounts::{Purge, Store};
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

/// The worker that removes erased accounts from the journal's folder. Each node runs it.
pub struct Purging(Purge);

impl Purging {
    /// Creates the worker. Called before any account can be erased, so that it sees each erasure.
    pub fn new(store: Store) -> Purging {
        Purging(Purge::new(store))
    }

    /// Removes until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.purge() => {}
        }
    }

    async fn purge(self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let Purging(mut purge) = self;
        loop {
            ticks.tick().await;
            let Some((done, rest)) = work::run_low(move || (purge.step(), purge)).await else {
                return;
            };
            purge = rest;
            if let Err(err) = done {
                tracing::error!(error = %err, "erased accounts stay in the journal; trying again");
            }
        }
    }
}
