//! The files that the nodes of a cluster exchange: lists, index, log of changes, the state of the
//! zone trackers, tables of suffixes, and the server's facts and sales. [`link`] captures the files of the leader at one moment;
//! [`install`] replaces a node's own files with received ones.
//!
//! ```text
//! DATA/.outgoing/, INDEX/.outgoing/   links to files that are being published
//! DATA/.incoming/, INDEX/.incoming/   files being downloaded
//! DATA/set-aside/                     batches of lists that the leader does not have
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::corpus::Corpus;
use crate::corpus::batch::BatchMeta;
use crate::index::generation::build;
use crate::index::storage::manifest::{self, GenerationId, Manifest};
use crate::intake::request::Site;
use crate::vocab::file_error::AtPath;
use crate::vocab::folder::files_below;
use crate::vocab::new_file;

/// Folders of the data folder that nodes share.
const FOLDERS: [&str; 6] = [CORPUS, "zones", "tables", CHANGES, FACTS, SALES];
const CORPUS: &str = "corpus";
/// The folder of the log of changes.
const CHANGES: &str = "changes";
const FACTS: &str = "facts";
const SALES: &str = "sales";
/// Prefix of the paths of files of the index.
const INDEX: &str = "index";
const OUTGOING: &str = ".outgoing";
const INCOMING: &str = ".incoming";
const SET_ASIDE: &str = "set-aside";

/// A consistent set of the files of an installation.
#[derive(Debug)]
pub struct Linked {
    pub generation: GenerationId,
    /// Links to the files, by path: `corpus/…` of the data folder, `index/…` of the index.
    pub files: BTreeMap<String, PathBuf>,
}

/// Hard-links the files of an installation. Later writes do not affect them until the next call.
///
/// # Errors
/// Lists are being ingested, there is no index, or a file vanished. The caller tries again.
pub fn link(site: &Site) -> anyhow::Result<Linked> {
    // Every process that changes the lists or the index holds this lock.
    let _corpus = Corpus::open(&site.data)?;
    let mut files = BTreeMap::new();
    let outgoing = emptied(&site.data.join(OUTGOING))?;
    for folder in FOLDERS {
        let from = site.data.join(folder);
        for path in files_in(&from)? {
            let name = format!("{folder}/{path}");
            files.insert(name, link_to(&from.join(&path), &outgoing.join(folder).join(&path))?);
        }
    }
    let generation = manifest::current(&site.index)?.context("there is no index yet")?;
    let current = Manifest::read(&manifest::folder_of(&site.index, generation))?;
    let outgoing = emptied(&site.index.join(OUTGOING))?;
    for generation in current.base().into_iter().chain([generation]) {
        let from = manifest::folder_of(&site.index, generation);
        let listed = Manifest::read(&from)?.files.into_keys();
        for path in listed.chain([manifest::MANIFEST.to_owned()]) {
            let name = format!("{INDEX}/{generation}/{path}");
            let to = outgoing.join(generation.to_string()).join(&path);
            files.insert(name, link_to(&from.join(&path), &to)?);
        }
    }
    Ok(Linked { generation, files })
}

/// A file, as last seen: its path, inode, length, and time of modification.
pub type Stamp = (PathBuf, u64, u64, (i64, i64));

/// Returns the state of the files that change without a new index: facts and sales.
///
/// # Errors
/// A folder cannot be read, or a file vanished.
pub fn loose_files(site: &Site) -> io::Result<Vec<Stamp>> {
    let mut stamps = Vec::new();
    for folder in [FACTS, SALES].map(|folder| site.data.join(folder)) {
        for path in files_in(&folder)? {
            let path = folder.join(path);
            let found = fs::metadata(&path)?;
            let modified = (found.mtime(), found.mtime_nsec());
            stamps.push((path, found.ino(), found.len(), modified));
        }
    }
    Ok(stamps)
}

/// Returns the folder of the linked log of changes; see [`link`].
pub fn linked_changes(site: &Site) -> PathBuf {
    site.data.join(OUTGOING).join(CHANGES)
}

/// Returns the download folders of the data folder and of the index, which may be on different disks.
pub fn incoming(site: &Site) -> (PathBuf, PathBuf) {
    (site.data.join(INCOMING), site.index.join(INCOMING))
}

/// Removes downloads of unwanted files, and links to installed files, so that a download never
/// writes to an installed file.
///
/// # Errors
/// A folder cannot be used.
pub fn tidy_incoming(site: &Site, wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    let (data, index) = incoming(site);
    for folder in [&data, &index] {
        for path in all_files_in(folder, |_| true)? {
            let file = folder.join(&path);
            if !wanted(&path) || fs::metadata(&file)?.nlink() > 1 {
                fs::remove_file(file)?;
            }
        }
    }
    Ok(())
}

/// Returns the path to which a file is downloaded.
pub fn arrival(site: &Site, path: &str) -> PathBuf {
    let (data, index) = incoming(site);
    if path.split('/').next() == Some(INDEX) { index.join(path) } else { data.join(path) }
}

/// Returns the path of a file in an installation.
///
/// # Errors
/// The path is unknown: a newer version shares more files.
pub fn place(site: &Site, path: &str) -> anyhow::Result<PathBuf> {
    let (folder, rest) = path.split_once('/').unwrap_or_default();
    match folder {
        INDEX => Ok(site.index.join(rest)),
        folder if FOLDERS.contains(&folder) => Ok(site.data.join(path)),
        _ => bail!("{path:?} belongs to a newer dropdex; update this node"),
    }
}

/// Replaces the installation's own files with the downloaded ones. Returns the lists that were set
/// aside because the leader does not have them.
///
/// # Errors
/// Lists are being ingested, or the disk failed. Call this function again with all files.
pub fn install(site: &Site) -> anyhow::Result<Vec<String>> {
    let _corpus = Corpus::open(&site.data)?;
    let (data, index) = incoming(site);
    let set_aside = set_lists_aside(site, &data.join(CORPUS))?;
    for folder in FOLDERS {
        replace(&data.join(folder), &site.data.join(folder))?;
    }
    build::install(&site.index, &index.join(INDEX))?;
    for folder in [data, index] {
        emptied(&folder)?;
    }
    Ok(set_aside)
}

/// Moves batches with lists that are not in `received` to `set-aside`.
fn set_lists_aside(site: &Site, received: &Path) -> anyhow::Result<Vec<String>> {
    let mut known = BTreeSet::new();
    for path in batches(received)? {
        let meta = BatchMeta::peek(&received.join(path))?;
        known.extend(meta.lists().iter().map(|list| list.source_sha256.clone()));
    }
    let (corpus, aside) = (site.data.join(CORPUS), site.data.join(SET_ASIDE));
    let mut set_aside = Vec::new();
    for path in batches(&corpus)? {
        let meta = BatchMeta::peek(&corpus.join(&path))?;
        let unknown = meta.lists().iter().filter(|list| !known.contains(&list.source_sha256));
        let unknown: Vec<_> = unknown.map(|list| list.source.clone()).collect();
        if unknown.is_empty() {
            continue;
        }
        new_file::create_folder(&aside).at(&aside)?;
        let to = (0..).map(|number| aside.join(format!("{path}.{number}"))).find(|to| !to.exists());
        let to = to.unwrap_or_else(|| aside.join(&path));
        fs::rename(corpus.join(&path), &to).at(&to)?;
        set_aside.extend(unknown);
    }
    Ok(set_aside)
}

fn batches(corpus: &Path) -> io::Result<Vec<String>> {
    let mut files = files_in(corpus)?;
    files.retain(|path| path.starts_with("batch-") && path.ends_with(".ddb"));
    Ok(files)
}

/// Replaces the files of a folder with those of another one.
fn replace(from: &Path, to: &Path) -> anyhow::Result<()> {
    let new = files_in(from)?;
    for path in &new {
        let target = to.join(path);
        if let Some(parent) = target.parent() {
            new_file::create_folder(parent).at(parent)?;
        }
        // A rename between two links to the same file does nothing.
        fs::rename(from.join(path), &target).at(&target)?;
    }
    for path in files_in(to)? {
        if new.binary_search(&path).is_err() {
            let path = to.join(path);
            fs::remove_file(&path).at(&path)?;
        }
    }
    if to.exists() {
        manifest::sync_folder(to).at(to)?;
    }
    Ok(())
}

/// Empties or creates a folder.
fn emptied(folder: &Path) -> io::Result<PathBuf> {
    match fs::remove_dir_all(folder) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => new_file::create_folder(folder)?,
    }
    Ok(folder.to_owned())
}

fn link_to(from: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    if let Some(parent) = to.parent() {
        new_file::create_folder(parent).at(parent)?;
    }
    fs::hard_link(from, to).at(from)?;
    Ok(to.to_owned())
}

/// Returns the paths of all files below a folder, in order, without locks and drafts. A missing folder has none.
fn files_in(folder: &Path) -> io::Result<Vec<String>> {
    all_files_in(folder, |name| !is_private(name))
}

fn all_files_in(folder: &Path, counts: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
    Ok(files_below(folder, counts)?.into_iter().map(|(path, _)| path).collect())
}

fn is_private(name: &str) -> bool {
    name.starts_with('.') || name == "LOCK" || name.ends_with(".damaged")
}

#[cfg(test)]
mod tests;
