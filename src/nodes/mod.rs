//! This server as a node of a cluster.
//!
//! The users' data of all nodes is one shared log ([`crate::cluster`]), which is kept in a stream
//! of NATS ([`jetstream`]). One node leads ([`lead`]): it ingests lists, builds the index, derives
//! changes and sends alerts. All nodes serve the files that it publishes ([`files`]), through an
//! object store ([`store`]), and report their health to their peers ([`peers`]).

pub mod files;
pub mod jetstream;
pub mod lead;
pub mod peers;
pub mod store;

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::accounts::{Publication, Store, StoreOptions};
use crate::changes::Appender;
use crate::cluster::facts::NodeFacts;
use crate::config::Config;
use crate::config::cluster::ClusterSettings;
use crate::index::generation::live::LiveIndex;
use crate::vocab::clock::Clock;
use crate::workers::{Work, until};
use files::switch::Switch;
use files::{Exchange, Held};
use jetstream::{JetStream, RefusedStream};
use lead::Candidate;
use peers::{Peer, Peers};
use store::FileStore;
use store::list::ObjectKey;
use store::transfer::Transfer;

/// Pause before the next attempt to reach the other nodes.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Maximum age of a message whose time is compared with this node's clock.
const SILENT_MAX: TimeDelta = TimeDelta::seconds(3);
/// Silence after which a node is reported as missing.
const GONE_AFTER: Duration = Duration::from_secs(10);
/// Time that a new leader waits for its predecessor's files.
const FILES_WAIT: Duration = Duration::from_secs(600);

/// Returns true if the files in a data folder are those that the node fetched from the leader. A leader publishes its
/// own.
pub fn has_files_of_the_leader(data: &Path) -> bool {
    Held::read(data).installed.is_some()
}

/// This node, before its workers start.
pub struct LocalNode {
    settings: ClusterSettings,
    files: FileStore,
    switch: Arc<Switch>,
    held: Held,
}

impl LocalNode {
    /// Opens the store of a node. If NATS is unreachable, the node serves its local data and
    /// connects later.
    ///
    /// `published` is notified when the node serves other files. `is_current` is true if `live` is
    /// the generation that the index folder names.
    ///
    /// # Errors
    /// The servers or the stream may lose records, the journal cannot be opened, or the settings of
    /// the file store are invalid.
    pub fn open(
        options: StoreOptions,
        config: &Config,
        settings: &ClusterSettings,
        live: &Arc<LiveIndex>,
        published: Vec<Arc<Notify>>,
        is_current: bool,
    ) -> anyhow::Result<(Store, LocalNode)> {
        let log = &settings.log;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match runtime.block_on(JetStream::new(log.clone()).check()) {
            Err(err @ RefusedStream::Unreachable(_)) => {
                tracing::warn!(error = %err, "the shared log cannot be reached; serving what this node has");
            }
            checked => checked?,
        }
        let switch = Arc::new(Switch::new(Arc::clone(live), published));
        let on_serve = {
            let switch = Arc::clone(&switch);
            Arc::new(move |files: &Publication, seq| switch.serve(files, seq))
        };
        let stream = JetStream::new(log.clone());
        let store = Store::open_shared(options, &log.node, stream, on_serve)?;
        let mut held = Held::read(&config.site().data);
        held.in_use.take_if(|_| !is_current);
        let files = FileStore::new(log, settings.s3.as_ref(), &config.outbound)?;
        Ok((store, LocalNode { settings: settings.clone(), files, switch, held }))
    }

    /// Starts the tasks of a node: it exchanges health with its peers, fetches files, and does `work` while it leads.
    /// Everything ends when the sender of `stopped` is dropped.
    pub fn spawn(
        self,
        config: &Config,
        (store, live, appender): (Store, Arc<LiveIndex>, Arc<Appender>),
        work: impl Work,
        tasks: &mut JoinSet<()>,
        stopped: &watch::Receiver<()>,
    ) {
        let LocalNode { settings, files, switch, held } = self;
        let serves = live.current().manifest().generation.0;
        let in_use = held.in_use.clone().filter(|it| it.generation == serves);
        switch.begin(&appender, in_use, store.nodes().served.first().cloned());
        let exchange = Arc::new(Exchange {
            transfer: Transfer::new(files, settings.bytes_per_second),
            store: store.clone(),
            switch: Arc::clone(&switch),
            site: config.site(),
            appender,
            live,
            clock: config.clock,
            catch_days: config.catch_days,
            held: Mutex::new(held),
            hashed: Default::default(),
        });
        let peers = Arc::new(Peers::default());
        let (may_lead, stop) = (settings.may_lead, || until(stopped.clone()));
        let facts = {
            let (store, switch) = (store.clone(), Arc::clone(&switch));
            let (peers, clock) = (Arc::clone(&peers), config.clock);
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

/// Returns position and health of this node.
fn facts(store: &Store, switch: &Switch, peers: &Peers) -> Option<NodeFacts> {
    let facts = store.node_facts()?;
    let files = switch.newest().map(|Publication { list, .. }| ObjectKey(list).to_string());
    let silent = peers.list().into_iter().filter(|peer| peer.at.elapsed() > GONE_AFTER);
    let silent = silent.map(|peer| peer.facts.node).collect();
    Some(NodeFacts { files, behind: switch.is_behind(), silent, ..facts })
}

/// Passes the other nodes' times to the clock.
fn compare_clocks(peers: &Peers, store: &Store, clock: Clock) {
    for Peer { facts, at, .. } in peers.list() {
        let passed = TimeDelta::from_std(at.elapsed()).unwrap_or(TimeDelta::MAX);
        let sent = facts.unix_ms.and_then(DateTime::from_timestamp_millis);
        if let Some(sent) = sent.filter(|_| !store.is_node(&facts.node) && passed < SILENT_MAX) {
            clock.hear(&facts.node, sent + passed);
        }
    }
}

/// Publishes this node's health and records the health of its peers until `stop` completes.
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

/// While this node leads, does the work for all nodes, until the sender of `stopped` is dropped.
async fn lead(
    candidate: Candidate,
    work: impl Work,
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
            // Otherwise the predecessor's last publication would be lost.
            if timeout(FILES_WAIT, exchange.has_newest()).await.is_err() {
                tracing::error!(
                    "the newest files of the cluster cannot be fetched; this node continues with its own"
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
                    tracing::error!(error = format!("{err:#}"), "this node cannot lead; retrying");
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
