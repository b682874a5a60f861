//! Publishes the files of the leader after each change.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::switch::Prepared;
use super::{Exchange, FilesError, link, relative};
use crate::accounts::Publication;
use crate::changes::Files;
use crate::index::storage::manifest::{self, GenerationId};
use crate::nodes::peers::{Peer, Peers};
use crate::nodes::store::list::{ObjectKey, RelativePath};
use crate::nodes::store::objects::Objects;

/// Poll interval of the folders.
const PERIOD: Duration = Duration::from_millis(250);
/// Pause after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// The leader does not wait for nodes that are silent for longer.
const PRESENT: Duration = Duration::from_secs(3);
/// How long the leader waits for nodes to fetch the files. Slower nodes serve no requests until
/// they have fetched the files.
const READY_MAX: Duration = Duration::from_secs(600);
/// Minimum age before an unreferenced object is deleted; the previous leader may just have stored
/// it.
const UNNEEDED_KEPT: Duration = Duration::from_secs(3_600);

/// The state of the files that a publication is made from. If all are unchanged, so are the files.
struct Seen {
    generation: Option<GenerationId>,
    changes: Files,
    loose: Vec<link::Stamp>,
}

impl<O: Objects> Exchange<O> {
    /// Publishes changed files until `stop` completes. Runs on the leader.
    pub async fn publish_all(self: Arc<Self>, peers: Arc<Peers>, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut published: Option<Seen> = None;
        loop {
            let mut pause = PERIOD;
            let seen = self.seen();
            let is_new = published.as_ref().is_none_or(|it| {
                it.generation != seen.generation
                    || !it.changes.are(&seen.changes)
                    || it.loose != seen.loose
            });
            if is_new {
                let done = tokio::select! {
                    () = &mut stop => return,
                    done = self.publish(&peers) => done,
                };
                match done {
                    Ok(()) => published = Some(seen),
                    Err(err) => {
                        tracing::warn!(error = %err, "publishing the files failed; retrying");
                        metrics::counter!("dropdex_cluster_publish_failures_total").increment(1);
                        pause = RETRY_AFTER;
                    }
                }
            }
            tokio::select! {
                () = &mut stop => return,
                () = sleep(pause) => {}
            }
        }
    }

    fn seen(&self) -> Seen {
        let generation = manifest::current(&self.site.index).ok().flatten();
        // A folder whose files are being changed is read again.
        let loose = link::loose_files(&self.site).unwrap_or_default();
        Seen { generation, changes: self.appender.written(), loose }
    }

    async fn publish(&self, peers: &Peers) -> Result<(), FilesError> {
        // After this point, the files may differ from the fetched ones.
        if self.held().installed.is_some() {
            self.hold(|held| held.installed = None)?;
        }
        let site = self.site.clone();
        let linked = spawn_blocking(move || link::link(&site)).await?;
        let linked = linked.map_err(FilesError::Install)?;
        let files = linked.files.into_iter().map(|(path, file)| Ok((relative(&path)?, file)));
        let files: BTreeMap<RelativePath, PathBuf> = files.collect::<Result<_, FilesError>>()?;
        let nodes = self.store.nodes();
        let mut known = Vec::new();
        for publication in &nodes.served {
            known.extend(self.transfer.list(ObjectKey(publication.list)).await.ok());
        }
        let begun = Instant::now();
        let mut hashed = self.hashed.lock().await;
        let (key, list) = self.transfer.upload(&files, &known, &mut hashed).await?;
        drop(hashed);
        let publication = Publication { generation: linked.generation.0, list: key.0 };
        if nodes.served.first() == Some(&publication) && self.switch.has(&publication) {
            return Ok(());
        }
        let changes = Files::open(&link::linked_changes(&self.site))?;
        let index = self.open(publication.generation).await?;
        self.switch.prepare(Prepared { publication: publication.clone(), index, changes });
        self.store.announce_files(publication.clone()).await?;
        let announced_ms = begun.elapsed().as_millis() as u64;
        self.wait_for(&publication, peers).await;
        self.store.serve_files(publication.clone()).await?;
        let (generation, bytes) = (publication.generation, list.bytes());
        let ms = begun.elapsed().as_millis() as u64;
        tracing::info!(generation, bytes, announced_ms, ms, "published files for all nodes");
        self.remove_unneeded().await;
        Ok(())
    }

    /// Waits until all running nodes have the files.
    async fn wait_for(&self, publication: &Publication, peers: &Peers) {
        let (key, begun) = (ObjectKey(publication.list).to_string(), Instant::now());
        let lacks = |peer: &Peer| {
            let facts = &peer.facts;
            peer.at.elapsed() < PRESENT
                && !self.store.is_node(&facts.node)
                && facts.halted.is_none()
                && !facts.behind
                && facts.files.as_ref() != Some(&key)
        };
        while peers.list().iter().any(lacks) {
            if begun.elapsed() > READY_MAX {
                tracing::warn!(
                    "some nodes have not fetched the files in time; they serve nothing until they have them"
                );
                return;
            }
            sleep(PERIOD).await;
        }
    }

    async fn remove_unneeded(&self) {
        let nodes = self.store.nodes();
        let needed = nodes.served.iter().chain(&nodes.announced);
        let lists: Vec<ObjectKey> = needed.map(|it| ObjectKey(it.list)).collect();
        match self.transfer.keep_only(&lists, UNNEEDED_KEPT).await {
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "removed unreferenced objects"),
            Err(err) => tracing::warn!(error = %err, "removing unreferenced objects failed"),
        }
    }
}
