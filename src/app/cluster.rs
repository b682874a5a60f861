//! A server as a node of a cluster.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::until;
use super::work::Work;
use crate::accounts::{OnServe, Publication, Store, StoreOptions};
use crate::cluster::facts::NodeFacts;
use crate::cluster::jetstream::{JetStream, RefusedStream};
use crate::cluster::peers::{Peer, Peers};
use crate::config::Config;
use crate::config::cluster::ClusterSettings;
use crate::publication::ObjectKey;
use crate::publication::store::FileStore;
use crate::publication::transfer::Transfer;
use crate::vocab::clock::Clock;
use crate::workers::files::switch::Switch;
use crate::workers::files::{Exchange, Held};
use crate::workers::lead::Candidate;

/// Pause before another attempt to reach the other nodes.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// The time of a node that was silent for longer is not compared.
const SILENT_MAX: TimeDelta = TimeDelta::seconds(3);
/// A node that was silent for longer is missed.
const GONE_AFTER: Duration = Duration::from_secs(10);
/// A node that takes the lead waits for so long for files that the one before has published.
const FILES_WAIT: Duration = Duration::from_secs(600);

/// Opens the store of a node. Without the NATS servers it serves what it has, and connects when they are there.
///
/// # Errors
/// The servers or the stream may lose records, or the journal cannot be opened.
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

/// This node, before its workers start.
pub(super) struct Member {
    settings: ClusterSettings,
    files: FileStore,
    switch: Arc<Switch>,
    held: Held,
}

impl Member {
    /// `is_current` says whether the generation that is served is the one that the folder names.
    ///
    /// # Errors
    /// The store of files cannot be used with these settings.
    pub fn new(
        config: &Config,
        settings: &ClusterSettings,
        switch: Arc<Switch>,
        is_current: bool,
    ) -> anyhow::Result<Member> {
        let mut held = Held::read(&config.site().data);
        held.in_use.take_if(|_| !is_current);
        let files = FileStore::new(&settings.log, settings.s3.as_ref(), &config.outbound)?;
        Ok(Member { settings: settings.clone(), files, switch, held })
    }

    /// Starts what a node does: it meets the others, fetches files, and leads if it is its turn.
    pub fn spawn(self, work: Work, tasks: &mut JoinSet<()>, stopped: &watch::Receiver<()>) {
        let Member { settings, files, switch, held } = self;
        let (store, live) = (work.app.store.clone(), Arc::clone(&work.app.live));
        let serves = live.current().manifest().generation.0;
        let in_use = held.in_use.clone().filter(|it| it.generation == serves);
        switch.begin(&work.changes, in_use, store.nodes().served.first().cloned());
        let exchange = Arc::new(Exchange {
            transfer: Transfer::new(files, settings.bytes_per_second),
            store: store.clone(),
            switch: Arc::clone(&switch),
            site: work.config.site(),
            appender: Arc::clone(&work.changes),
            live,
            clock: work.config.clock,
            catch_days: work.config.catch_days,
            held: Mutex::new(held),
            hashed: Default::default(),
        });
        let peers = Arc::new(Peers::new(Instant::now()));
        let (may_lead, stop) = (settings.may_lead, || until(stopped.clone()));
        let facts = {
            let (store, switch) = (store.clone(), Arc::clone(&switch));
            let (peers, clock) = (Arc::clone(&peers), work.config.clock);
            move || {
                compare_clocks(&peers, &store, clock);
                facts(&store, &switch, &peers)
            }
        };
        tasks.spawn(meet(settings, facts, Arc::clone(&peers), stop()));
        tasks.spawn(Arc::clone(&exchange).fetch_all(stop()));
        let candidate = Candidate { store, peers: Arc::clone(&peers), may_lead };
        tasks.spawn(lead(candidate, work, exchange, peers, stopped.clone()));
    }
}

/// Position and health of this node.
fn facts(store: &Store, switch: &Switch, peers: &Peers) -> Option<NodeFacts> {
    let facts = store.node_facts()?;
    let files = switch.newest().map(|Publication { list, .. }| ObjectKey(list).to_string());
    let silent = peers.list().into_iter().filter(|peer| peer.at.elapsed() > GONE_AFTER);
    let silent = silent.map(|peer| peer.facts.node).collect();
    Some(NodeFacts { files, behind: switch.is_behind(), silent, ..facts })
}

/// Tells the clock what time the other nodes have.
fn compare_clocks(peers: &Peers, store: &Store, clock: Clock) {
    for Peer { facts, at, .. } in peers.list() {
        let passed = TimeDelta::from_std(at.elapsed()).unwrap_or(TimeDelta::MAX);
        let told = facts.unix_ms.and_then(DateTime::from_timestamp_millis);
        if let Some(told) = told.filter(|_| !store.is_node(&facts.node) && passed < SILENT_MAX) {
            clock.hear(&facts.node, told + passed);
        }
    }
}

/// Tells other nodes and operators how this one is, and notes what other nodes tell, until `stop` is done.
async fn meet(
    cluster: ClusterSettings,
    facts: impl Fn() -> Option<NodeFacts>,
    peers: Arc<Peers>,
    stop: impl Future<Output = ()>,
) {
    let stream = JetStream::new(cluster.log);
    let facts = || serde_json::to_vec(&facts()).unwrap_or_default();
    let meeting = async {
        loop {
            if let Err(err) = stream.meet(facts, &peers).await {
                tracing::debug!(error = %err, "other nodes cannot be reached over the shared log");
            }
            sleep(RETRY_PAUSE).await;
        }
    };
    tokio::select! {
        () = meeting => {}
        () = stop => {}
    }
}

/// Does the work for all nodes while this one leads, until `stopped` ends.
async fn lead(
    candidate: Candidate,
    work: Work,
    exchange: Arc<Exchange<FileStore>>,
    peers: Arc<Peers>,
    stopped: watch::Receiver<()>,
) {
    loop {
        tokio::select! {
            () = candidate.leads() => {}
            () = until(stopped.clone()) => return,
        }
        let (running, ended) = watch::channel(());
        let working = async {
            // What the leader before has published must not be lost.
            if timeout(FILES_WAIT, exchange.has_newest()).await.is_err() {
                tracing::error!(
                    "the newest files of the cluster cannot be fetched; this node goes on with its own"
                );
            }
            let mut tasks = work.start(&ended).await?;
            let publishing =
                Arc::clone(&exchange).publish_all(Arc::clone(&peers), until(ended.clone()));
            tasks.spawn(publishing);
            while tasks.join_next().await.is_some() {}
            anyhow::Ok(())
        };
        let mut working = std::pin::pin!(working);
        let is_stopping = tokio::select! {
            () = candidate.lost() => false,
            () = until(stopped.clone()) => true,
            worked = &mut working => {
                if let Err(err) = worked {
                    tracing::error!(error = format!("{err:#}"), "this node cannot lead; trying again");
                }
                candidate.leave().await;
                sleep(RETRY_PAUSE).await;
                continue;
            }
        };
        drop(running);
        let _ = working.await;
        if is_stopping {
            return candidate.leave().await;
        }
    }
}
