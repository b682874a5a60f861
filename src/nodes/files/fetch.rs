//! Fetches the files that the log announces, and installs them.

use std::fs;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::switch::Prepared;
use super::{Exchange, FilesError, Held, link};
use crate::accounts::Publication;
use crate::index::generation::build;
use crate::index::storage::manifest::{self, GenerationId};
use crate::intake::request::Site;
use crate::nodes::store::list::{FileList, ObjectKey};
use crate::nodes::store::objects::Objects;
use crate::nodes::store::transfer::is_like;
use crate::vocab::new_file;

/// Pause after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// Poll interval while waiting for the newest files.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Interval of checks without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(30);

impl<O: Objects> Exchange<O> {
    /// Fetches files until `stop` completes.
    pub async fn fetch_all(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let announced = self.store.files_changed();
        let mut stop = std::pin::pin!(stop);
        loop {
            let looked = tokio::select! {
                () = &mut stop => return,
                looked = self.look() => looked,
            };
            let pause = match looked {
                Ok(()) => LOOK_EVERY,
                Err(err) => {
                    tracing::warn!(error = %err, "fetching the files of the cluster failed; retrying");
                    metrics::counter!("dropdex_cluster_fetch_failures_total").increment(1);
                    RETRY_AFTER
                }
            };
            tokio::select! {
                () = &mut stop => return,
                () = announced.notified() => {}
                () = self.switch.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Waits until this node has the newest files that the log names.
    pub async fn has_newest(&self) {
        while self.newest().is_some_and(|newest| !self.switch.has(&newest)) {
            sleep(LOOK_AGAIN).await;
        }
    }

    fn newest(&self) -> Option<Publication> {
        let nodes = self.store.nodes();
        nodes.announced.or_else(|| nodes.served.into_iter().next())
    }

    async fn look(&self) -> Result<(), FilesError> {
        self.note_use().await?;
        let Some(wanted) = self.newest().filter(|newest| !self.switch.has(newest)) else {
            return Ok(());
        };
        if self.held().installed.as_ref() != Some(&wanted) {
            self.fetch(&wanted).await?;
        }
        self.prepare(&wanted).await
    }

    /// Points `CURRENT` at the generation being served.
    async fn note_use(&self) -> Result<(), FilesError> {
        let Some(in_use) = self.switch.in_use() else { return Ok(()) };
        if self.held().in_use.as_ref() == Some(&in_use) {
            return Ok(());
        }
        // A leader may already have built the next generation.
        if !self.store.leads() {
            let (site, generation) = (self.site.clone(), GenerationId(in_use.generation));
            let adopted = spawn_blocking(move || {
                let is_current = manifest::current(&site.index).ok().flatten() == Some(generation);
                if is_current {
                    return Ok(());
                }
                build::adopt(&site.index, generation, site.build.keep)
            });
            adopted.await?.map_err(|err| FilesError::Install(err.into()))?;
        }
        Ok(self.hold(|held| held.in_use = Some(in_use))?)
    }

    /// Fetches files and installs them.
    async fn fetch(&self, wanted: &Publication) -> Result<(), FilesError> {
        let list = self.transfer.list(ObjectKey(wanted.list)).await?;
        let (site, held, files) = (self.site.clone(), self.held().clone(), list.clone());
        let lacking = spawn_blocking(move || link_what_is_there(&site, &held, &files)).await?;
        let lacking = lacking.map_err(FilesError::Install)?;
        let begun = std::time::Instant::now();
        let fetched = self
            .transfer
            .download(&lacking, |path| Some(link::arrival(&self.site, path.as_str())))
            .await?;
        let (files, ms) = (lacking.files.len(), begun.elapsed().as_millis() as u64);
        let (bytes, generation) = (fetched.fetched, wanted.generation);
        tracing::info!(files, bytes, ms, generation, "fetched files of the cluster");
        metrics::counter!("dropdex_cluster_fetched_bytes_total").increment(bytes);
        self.hold(|held| held.installed = None)?;
        let site = self.site.clone();
        let set_aside = spawn_blocking(move || link::install(&site)).await?;
        let set_aside = set_aside.map_err(FilesError::Install)?;
        if !set_aside.is_empty() {
            tracing::warn!(
                lists = ?set_aside,
                "these lists were ingested here and are not in the cluster; their batches are in `set-aside` of \
                 the data folder: ingest the lists again on the node that leads"
            );
        }
        self.remember(&list).await;
        Ok(self.hold(|held| {
            (held.installed, held.list) = (Some(wanted.clone()), list);
        })?)
    }

    /// Caches the parts of the installed files in case this node becomes the leader.
    async fn remember(&self, list: &FileList) {
        let mut hashed = self.hashed.lock().await;
        for (path, parts) in &list.files {
            if let Ok(place) = link::place(&self.site, path.as_str()) {
                // Files that are not cached are hashed again.
                let _ = hashed.add(&place, parts);
            }
        }
    }

    /// Opens installed files.
    async fn prepare(&self, wanted: &Publication) -> Result<(), FilesError> {
        let opened = self.open(wanted.generation).await;
        if opened.is_err() {
            // Damaged files are fetched again.
            self.hold(|held| held.installed = None)?;
        }
        let (index, changes) = (opened?, self.appender.reopen()?);
        let publication = wanted.clone();
        self.switch.prepare(Prepared { publication, index, changes });
        Ok(())
    }
}

/// Hard-links files that this node already has into the incoming folder. Returns the missing ones.
fn link_what_is_there(site: &Site, held: &Held, list: &FileList) -> anyhow::Result<FileList> {
    let wanted: std::collections::HashSet<&str> = list.files.keys().map(|it| it.as_str()).collect();
    link::tidy_incoming(site, |path| wanted.contains(path))?;
    let mut lacking = FileList::default();
    for (path, parts) in &list.files {
        let place = link::place(site, path.as_str())?;
        let is_known = held.installed.is_some() && held.list.files.get(path) == Some(parts);
        let arrival = link::arrival(site, path.as_str());
        let is_there = (is_known && place.exists()) || is_like(&place, parts)?;
        if !is_there {
            lacking.files.insert(path.clone(), parts.clone());
            continue;
        }
        match fs::remove_file(&arrival) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err.into()),
            _ => {}
        }
        if let Some(folder) = arrival.parent() {
            new_file::create_folder(folder)?;
        }
        fs::hard_link(place, arrival)?;
    }
    Ok(lacking)
}
