//! A server as a node of a cluster.

use std::future::Future;
use std::sync::Arc;
#[cfg(feature = "cluster")]
use std::time::Duration;

use tokio::sync::watch;

use super::until;
use super::work::Work;
use crate::accounts::{OnServe, Store, StoreOptions};
#[cfg(feature = "cluster")]
use crate::cluster::jetstream::{JetStream, RefusedStream};
use crate::cluster::peers::Peers;
use crate::config::cluster::ClusterSettings;
use crate::workers::lead::Candidate;

/// Pause before another attempt to reach the other nodes.
#[cfg(feature = "cluster")]
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Opens the store of a node. Without the NATS servers it serves what it has, and connects when they are there.
///
/// # Errors
/// The servers or the stream may lose records, or the journal cannot be opened.
#[cfg(feature = "cluster")]
pub(super) fn open(
    options: StoreOptions,
    cluster: &ClusterSettings,
    on_serve: OnServe,
) -> anyhow::Result<Store> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(JetStream::new(cluster.log.clone()).check()) {
        Err(err @ RefusedStream::Unreachable(_)) => {
            tracing::warn!(error = %err, "the shared log cannot be reached; serving what this node has");
        }
        checked => checked?,
    }
    let stream = JetStream::new(cluster.log.clone());
    Ok(Store::open_shared(options, &cluster.log.node, stream, on_serve)?)
}

#[cfg(not(feature = "cluster"))]
pub(super) fn open(
    _options: StoreOptions,
    _cluster: &ClusterSettings,
    _on_serve: OnServe,
) -> anyhow::Result<Store> {
    anyhow::bail!("this dropdex was built without the feature `cluster`")
}

/// Tells other nodes and operators how this one is, and notes what other nodes tell, until `stop` is done.
#[cfg(feature = "cluster")]
pub(super) async fn meet(
    cluster: ClusterSettings,
    store: Store,
    peers: Arc<Peers>,
    stop: impl Future<Output = ()>,
) {
    let stream = JetStream::new(cluster.log);
    let facts = || serde_json::to_vec(&store.node_facts()).unwrap_or_default();
    let meeting = async {
        loop {
            if let Err(err) = stream.meet(facts, &peers).await {
                tracing::debug!(error = %err, "other nodes cannot be reached over the shared log");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    };
    tokio::select! {
        () = meeting => {}
        () = stop => {}
    }
}

#[cfg(not(feature = "cluster"))]
pub(super) async fn meet(
    _cluster: ClusterSettings,
    _store: Store,
    _peers: Arc<Peers>,
    stop: impl Future<Output = ()>,
) {
    stop.await;
}

/// Does the work for all nodes while this one leads, until `stopped` ends.
pub(super) async fn lead(candidate: Candidate, work: Work, stopped: watch::Receiver<()>) {
    loop {
        tokio::select! {
            () = candidate.leads() => {}
            () = until(stopped.clone()) => return,
        }
        let (running, ended) = watch::channel(());
        let mut tasks = match work.start(&ended).await {
            Ok(tasks) => tasks,
            Err(err) => {
                tracing::error!(error = format!("{err:#}"), "this node cannot lead");
                return candidate.leave().await;
            }
        };
        let is_stopping = tokio::select! {
            () = candidate.lost() => false,
            () = until(stopped.clone()) => true,
        };
        drop(running);
        while tasks.join_next().await.is_some() {}
        if is_stopping {
            return candidate.leave().await;
        }
    }
}
