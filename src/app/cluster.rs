//! A server as a node of a cluster.

use std::future::Future;
#[cfg(feature = "cluster")]
use std::time::Duration;

use crate::accounts::{Store, StoreOptions};
#[cfg(feature = "cluster")]
use crate::cluster::jetstream::{JetStream, RefusedStream};
use crate::config::cluster::ClusterSettings;

/// Pause before another attempt to answer operators.
#[cfg(feature = "cluster")]
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Opens the store of a node. Without the NATS servers it serves what it has, and connects when they are there.
///
/// # Errors
/// The servers or the stream may lose records, or the journal cannot be opened.
#[cfg(feature = "cluster")]
pub(super) fn open(options: StoreOptions, cluster: &ClusterSettings) -> anyhow::Result<Store> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(JetStream::new(cluster.log.clone()).check()) {
        Err(err @ RefusedStream::Unreachable(_)) => {
            tracing::warn!(error = %err, "the shared log cannot be reached; serving what this node has");
        }
        checked => checked?,
    }
    let stream = JetStream::new(cluster.log.clone());
    Ok(Store::open_shared(options, &cluster.log.node, stream)?)
}

#[cfg(not(feature = "cluster"))]
pub(super) fn open(_options: StoreOptions, _cluster: &ClusterSettings) -> anyhow::Result<Store> {
    anyhow::bail!("this dropdex was built without the feature `cluster`")
}

/// Answers `dropdex cluster status` of any node until `stop` is done.
#[cfg(feature = "cluster")]
pub(super) async fn answer(cluster: ClusterSettings, store: Store, stop: impl Future<Output = ()>) {
    let stream = JetStream::new(cluster.log.clone());
    let facts = || {
        let facts = store.node_facts(&cluster.log.node, cluster.workers);
        serde_json::to_vec(&facts).unwrap_or_default()
    };
    let answering = async {
        loop {
            if let Err(err) = stream.answer(facts).await {
                tracing::debug!(error = %err, "operators cannot ask this node over the shared log");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    };
    tokio::select! {
        () = answering => {}
        () = stop => {}
    }
}

#[cfg(not(feature = "cluster"))]
pub(super) async fn answer(
    _cluster: ClusterSettings,
    _store: Store,
    stop: impl Future<Output = ()>,
) {
    stop.await;
}
