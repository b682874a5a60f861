//! Background work: everything that happens without a request.

pub mod admin;
pub mod archive;
pub mod backups;
pub mod bootstrap;
pub mod changes;
pub mod deliver;
pub mod erasure;
pub mod files;
pub mod gather;
pub mod gauges;
pub mod notify;
pub mod reload;
pub mod sales;
pub mod verify;

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinSet;

/// Work that one node does for all: a single server always, and in a cluster the current leader.
pub trait Work: Send + Sync + 'static {
    /// Starts the tasks, which end when the sender of `stopped` is dropped.
    ///
    /// # Errors
    /// A setting is invalid.
    fn start(
        &self,
        stopped: &watch::Receiver<()>,
    ) -> impl Future<Output = anyhow::Result<JoinSet<()>>> + Send;
}

/// Resolves when the sender is dropped.
pub async fn until(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}
