//! A model of a disk, in memory: the state that a running system sees, and the states that a power
//! loss may leave.
//!
//! Input: [`Op`]s, the calls that change something. Output: the files as the running system reads
//! them and, from [`Disk::crash`], any state in which the disk may be after a power loss. Pure: the
//! same calls and the same choices lead to the same bytes.
//!
//! - Of an unsynced write, each 512-byte sector is kept or lost independently, in any order.
//! - The length of a file is that before or after any change since the last sync, independent of its
//!   bytes; bytes that were never written read as zeros. Truncated bytes do not return once the
//!   truncation is kept.
//! - A name that was created, moved, linked or removed is durable once its folder was synced; until
//!   then, each such call is kept or lost independently.
//! - A failed sync leaves any part of the data on disk, and the system forgets that the rest never
//!   reached it: it reads as written, and no later sync writes it.
//!
//! Not modelled: damage (see `damage.rs`), and files larger than memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::rng::Rng;

/// The unit that a disk writes completely or not at all, in bytes.
pub const SECTOR: usize = 512;

/// A file, independent of its names.
pub type Ino = usize;

/// The bytes of a file. Cheap to copy; zeros at the end take no memory.
#[derive(Clone, Debug, Default)]
pub struct Content {
    len: usize,
    /// The content, of at most `len` bytes; all later bytes are zeros.
    stored: Arc<Vec<u8>>,
}

impl Content {
    /// Creates a file of `bytes`.
    pub fn new(bytes: Vec<u8>) -> Content {
        Content { len: bytes.len(), stored: Arc::new(bytes) }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the length up to the last byte that is not zero.
    pub fn used(&self) -> usize {
        self.stored.len() - trailing_zeros(&self.stored)
    }

    /// Feeds `hasher` with the data that distinguishes this content from others.
    pub fn digest_into(&self, hasher: &mut blake3::Hasher) {
        hasher.update(&(self.len as u64).to_le_bytes());
        hasher.update(&(self.used() as u64).to_le_bytes());
        hasher.update(&self.stored[..self.used()]);
    }

    /// Returns all bytes, including zeros.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len);
        bytes.extend_from_slice(&self.stored);
        bytes.resize(self.len, 0);
        bytes
    }

    /// Copies the bytes that start at `offset` to `out`, and returns their number.
    pub fn read_at(&self, offset: usize, out: &mut [u8]) -> usize {
        let count = out.len().min(self.len.saturating_sub(offset));
        out[..count].fill(0);
        if let Some(stored) = self.stored.get(offset..) {
            let stored = &stored[..stored.len().min(count)];
            out[..stored.len()].copy_from_slice(stored);
        }
        count
    }

    /// Flips one bit.
    pub fn flip(&mut self, bit: usize) {
        let stored = Arc::make_mut(&mut self.stored);
        stored.resize(stored.len().max(bit / 8 + 1), 0);
        stored[bit / 8] ^= 1 << (bit % 8);
    }

    /// Writes `bytes` at `offset`.
    pub fn write(&mut self, bytes: &[u8], offset: usize) {
        self.len = self.len.max(offset + bytes.len());
        let used = bytes.len() - trailing_zeros(bytes);
        let stored = Arc::make_mut(&mut self.stored);
        if used > 0 && stored.len() < offset + used {
            stored.resize(offset + used, 0);
        }
        if offset < stored.len() {
            let count = bytes.len().min(stored.len() - offset);
            stored[offset..offset + count].copy_from_slice(&bytes[..count]);
        }
    }

    /// Truncates or extends the file.
    pub fn truncate(&mut self, len: usize) {
        if len < self.stored.len() {
            Arc::make_mut(&mut self.stored).truncate(len);
        }
        self.len = len;
    }

    /// Returns the bytes of sector `no`, with zeros after the end of the file.
    fn sector(&self, no: usize) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        let start = no * SECTOR;
        if start < self.stored.len() {
            let stored = &self.stored[start..self.stored.len().min(start + SECTOR)];
            bytes[..stored.len()].copy_from_slice(stored);
        }
        bytes
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        let common = self.stored.len().min(other.stored.len());
        let rest = |content: &Content| trailing_zeros(&content.stored[common..]);
        self.len == other.len
            && self.stored[..common] == other.stored[..common]
            && rest(self) == self.stored.len() - common
            && rest(other) == other.stored.len() - common
    }
}

/// Counts the zeros at the end of `bytes`, block by block, because files are extended by many zeros
/// at a time.
fn trailing_zeros(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let whole: usize = bytes
        .rchunks(ZEROS.len())
        .take_while(|chunk| **chunk == ZEROS[..chunk.len()])
        .map(<[u8]>::len)
        .sum();
    let rest = &bytes[..bytes.len() - whole];
    whole + rest.iter().rev().take_while(|byte| **byte == 0).count()
}

/// A call that changed something, as it was carried out.
#[derive(Clone, Debug)]
pub enum Op {
    /// A folder was created.
    Mkdir(PathBuf),
    /// A file was created, or truncated if the name existed.
    Create(PathBuf),
    /// Bytes were written; for a failed call, the bytes that reached the disk.
    Write {
        /// The file.
        ino: Ino,
        /// Position of the first byte.
        offset: usize,
        /// The bytes written.
        bytes: Arc<[u8]>,
    },
    /// A file was truncated or extended.
    Truncate {
        /// The file.
        ino: Ino,
        /// New length in bytes.
        len: usize,
    },
    /// The bytes and the length of a file were synced.
    Sync(Ino),
    /// A sync of a file failed; the seed decides which data still reached the disk.
    SyncFailed(Ino, u64),
    /// The names in a folder were synced.
    SyncDir(PathBuf),
    /// A sync of a folder failed; the seed decides which data still reached the disk.
    SyncDirFailed(PathBuf, u64),
    /// A file was renamed, and replaced any file of that name.
    Rename(PathBuf, PathBuf),
    /// A file got a second name.
    HardLink(PathBuf, PathBuf),
    /// A name was removed.
    Remove(PathBuf),
}

/// Decides which changes survive a crash.
pub trait Chooser {
    /// Chooses one of `count` outcomes, from 0, the old state, to `count - 1`, the newest. `unit` is
    /// the same for all sectors of a 4 KiB page.
    fn choose(&mut self, count: usize, unit: u64) -> usize;
}

/// A disk and the data that the system holds in memory for it.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: Vec<File>,
    /// The map is shared between copies until one of them changes a name.
    dirs: Arc<BTreeMap<PathBuf, Dir>>,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// Content as the running system reads it.
    now: Content,
    /// Content on the disk.
    durable: Content,
    /// Changes since the last sync.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
struct Change {
    kind: ChangeKind,
    /// The file after it.
    after: Content,
}

#[derive(Clone, Copy, Debug)]
enum ChangeKind {
    Write { start: usize, end: usize },
    Length,
}

#[derive(Clone, Debug, Default)]
struct Dir {
    now: BTreeMap<String, Ino>,
    durable: BTreeMap<String, Ino>,
    pending: Vec<NameChange>,
    /// Whether the name of the folder itself is durable.
    is_durable: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Link(String, Ino),
    Unlink(String),
    Rename(String, String, Ino),
}

impl Disk {
    /// Creates a disk that has only the folder `dir` and those above it.
    pub fn with_dir(dir: &Path) -> Disk {
        let mut disk = Disk::default();
        for above in dir.ancestors() {
            let made = Dir { is_durable: true, ..Dir::default() };
            Arc::make_mut(&mut disk.dirs).insert(above.to_owned(), made);
        }
        disk
    }

    /// Carries out `op`.
    ///
    /// # Errors
    ///
    /// The errors that a system returns, of the kinds that the journal distinguishes.
    pub fn apply(&mut self, op: &Op) -> io::Result<()> {
        match op {
            Op::Mkdir(dir) => self.make_dir(dir),
            Op::Create(path) => self.create(path)?,
            Op::Write { ino, offset, bytes } => self.files[*ino].write(bytes, *offset),
            Op::Truncate { ino, len } => self.files[*ino].truncate(*len),
            Op::Sync(ino) => self.files[*ino].sync(),
            Op::SyncFailed(ino, seed) => self.files[*ino].fail_sync(&mut Coin(Rng::new(*seed))),
            Op::SyncDir(dir) => self.sync_dir(dir)?,
            Op::SyncDirFailed(dir, seed) => self.fail_sync_dir(dir, *seed)?,
            Op::Rename(from, to) => self.rename(from, to)?,
            Op::HardLink(from, to) => self.hard_link(from, to)?,
            Op::Remove(path) => self.remove(path)?,
        }
        Ok(())
    }

    /// Returns the file of that name.
    ///
    /// # Errors
    ///
    /// Not found.
    pub fn ino(&self, path: &Path) -> io::Result<Ino> {
        let (dir, name) = split(path);
        self.dir(dir)?.now.get(name).copied().ok_or_else(not_found)
    }

    /// Returns the content of a file as the running system reads it.
    pub fn content(&self, ino: Ino) -> &Content {
        &self.files[ino].now
    }

    /// Returns the entries of a folder: files and folders.
    ///
    /// # Errors
    ///
    /// Not found.
    pub fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.dir(dir)?.now.keys().map(|name| dir.join(name));
        let dirs = self.dirs.keys().filter(|path| path.parent() == Some(dir)).cloned();
        Ok(files.chain(dirs).collect())
    }

    /// Whether the folder exists.
    pub fn has_dir(&self, dir: &Path) -> bool {
        self.dirs.contains_key(dir)
    }

    /// Returns all files in `dir` by name, as the running system reads them.
    pub fn files(&self, dir: &Path) -> BTreeMap<String, Content> {
        let names = self.dirs.get(dir).map(|dir| &dir.now);
        let named = names.into_iter().flatten();
        named.map(|(name, ino)| (name.clone(), self.files[*ino].now.clone())).collect()
    }

    /// Returns the total length of the files in `dir`.
    pub fn bytes_in(&self, dir: &Path) -> usize {
        let names = self.dirs.get(dir).map(|dir| dir.now.values());
        names.into_iter().flatten().map(|ino| self.files[*ino].now.len()).sum()
    }

    /// Creates a disk on which everything is durable: `dir` with these files.
    pub fn of_files(dir: &Path, files: &BTreeMap<String, Content>) -> Disk {
        let mut disk = Disk::with_dir(dir);
        for (name, content) in files {
            disk.put(&dir.join(name), content.clone());
        }
        disk
    }

    /// Puts a file on the disk, durably, and replaces any file of that name.
    pub fn put(&mut self, path: &Path, content: Content) {
        let (dir, name) = split(path);
        let ino = self.files.len();
        self.files.push(File { now: content.clone(), durable: content, pending: Vec::new() });
        let dir = self.dir_mut(dir).expect("the folder is there");
        dir.now.insert(name.to_owned(), ino);
        dir.durable.insert(name.to_owned(), ino);
    }

    /// Replaces a file's bytes, as damage does.
    pub fn damage(&mut self, path: &Path, content: Content) {
        let ino = self.ino(path).expect("the file is there");
        self.files[ino] = File { now: content.clone(), durable: content, pending: Vec::new() };
    }

    /// Returns one possible state of the disk after a power loss.
    pub fn crash(&self, chooser: &mut dyn Chooser) -> Disk {
        let mut left = Disk { files: vec![File::default(); self.files.len()], ..Disk::default() };
        let mut gone: Vec<&Path> = Vec::new();
        let mut named = BTreeSet::new();
        let mut dirs = BTreeMap::new();
        for (path, dir) in self.dirs.as_ref() {
            let is_kept = dir.is_durable || chooser.choose(2, unit_of_dirs()) == 1;
            if !is_kept || gone.iter().any(|above| path.starts_with(above)) {
                gone.push(path);
                continue;
            }
            let names = dir.crash(chooser);
            named.extend(names.values().copied());
            let dir =
                Dir { now: names.clone(), durable: names, pending: Vec::new(), is_durable: true };
            dirs.insert(path.clone(), dir);
        }
        left.dirs = Arc::new(dirs);
        for ino in named {
            let content = self.files[ino].crash(ino, chooser);
            left.files[ino] = File { now: content.clone(), durable: content, pending: Vec::new() };
        }
        left
    }

    fn dir(&self, dir: &Path) -> io::Result<&Dir> {
        self.dirs.get(dir).ok_or_else(not_found)
    }

    fn dir_mut(&mut self, dir: &Path) -> io::Result<&mut Dir> {
        Arc::make_mut(&mut self.dirs).get_mut(dir).ok_or_else(not_found)
    }

    fn make_dir(&mut self, dir: &Path) {
        for above in dir.ancestors() {
            Arc::make_mut(&mut self.dirs).entry(above.to_owned()).or_default();
        }
    }

    fn create(&mut self, path: &Path) -> io::Result<()> {
        if let Ok(ino) = self.ino(path) {
            self.files[ino].truncate(0);
            return Ok(());
        }
        let ino = self.files.len();
        let (dir, name) = split(path);
        self.dir_mut(dir)?.change(NameChange::Link(name.to_owned(), ino));
        self.files.push(File::default());
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let ino = self.ino(from)?;
        let ((dir, from), (other, to)) = (split(from), split(to));
        assert_eq!(dir, other, "the journal moves files within a folder alone");
        self.dir_mut(dir)?.change(NameChange::Rename(from.to_owned(), to.to_owned(), ino));
        Ok(())
    }

    fn hard_link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let ino = self.ino(from)?;
        if self.ino(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (dir, to) = split(to);
        self.dir_mut(dir)?.change(NameChange::Link(to.to_owned(), ino));
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.ino(path)?;
        let (dir, name) = split(path);
        self.dir_mut(dir)?.change(NameChange::Unlink(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let synced = self.dir_mut(dir)?;
        synced.durable = synced.now.clone();
        synced.pending.clear();
        self.dirs_in(dir).for_each(|dir| dir.is_durable = true);
        Ok(())
    }

    fn fail_sync_dir(&mut self, dir: &Path, seed: u64) -> io::Result<()> {
        let mut coin = Coin(Rng::new(seed));
        let synced = self.dir_mut(dir)?;
        synced.durable = synced.crash(&mut coin);
        synced.pending.clear();
        self.dirs_in(dir).for_each(|dir| dir.is_durable |= coin.choose(2, 0) == 1);
        Ok(())
    }

    fn dirs_in(&mut self, parent: &Path) -> impl Iterator<Item = &mut Dir> {
        let dirs = Arc::make_mut(&mut self.dirs).iter_mut();
        dirs.filter(move |(dir, _)| dir.parent() == Some(parent)).map(|it| it.1)
    }
}

impl File {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        self.now.write(bytes, offset);
        let kind = ChangeKind::Write { start: offset, end: offset + bytes.len() };
        self.pending.push(Change { kind, after: self.now.clone() });
    }

    fn truncate(&mut self, len: usize) {
        self.now.truncate(len);
        self.pending.push(Change { kind: ChangeKind::Length, after: self.now.clone() });
    }

    /// Makes pending changes durable; data that was lost by an earlier failed sync stays lost.
    fn sync(&mut self) {
        self.durable = self.crash(0, &mut Newest);
        self.pending.clear();
    }

    fn fail_sync(&mut self, coin: &mut Coin) {
        self.durable = self.crash(0, coin);
        self.pending.clear();
    }

    fn crash(&self, ino: Ino, chooser: &mut dyn Chooser) -> Content {
        if self.pending.is_empty() {
            return self.durable.clone();
        }
        let (len, kept) = self.crash_length(ino, chooser);
        let mut left = self.durable.clone();
        left.truncate(len);
        let stored = self.pending.iter().map(|change| change.after.stored.len());
        let stored = stored.max().unwrap_or(0).max(self.durable.stored.len()).min(len);
        for no in 0..stored.div_ceil(SECTOR) {
            let versions = self.versions(no, kept);
            let chosen = match versions.len() {
                1 => 0,
                count => chooser.choose(count, unit_of_page(ino, no)),
            };
            let (start, end) = (no * SECTOR, len.min((no + 1) * SECTOR));
            left.write(&versions[chosen][..end - start], start);
        }
        left
    }

    /// Returns the length that is kept, and the number of its pending changes that are kept.
    fn crash_length(&self, ino: Ino, chooser: &mut dyn Chooser) -> (usize, usize) {
        let mut lengths = vec![(self.durable.len, 0)];
        for (at, change) in self.pending.iter().enumerate() {
            let is_cut = matches!(change.kind, ChangeKind::Length);
            if is_cut || lengths.last().is_some_and(|last| last.0 != change.after.len) {
                lengths.push((change.after.len, at + 1));
            }
        }
        match lengths.len() {
            1 => (self.durable.len, self.pending.len()),
            // If the last length is kept, all changes count as kept, because later ones do not
            // change the length.
            count => match chooser.choose(count, unit_of_page(ino, 0)) {
                last if last + 1 == count => (lengths[last].0, self.pending.len()),
                chosen => lengths[chosen],
            },
        }
    }

    /// Returns the possible contents of sector `no` if the first `kept` changes of the length were
    /// kept.
    fn versions(&self, no: usize, kept: usize) -> Vec<[u8; SECTOR]> {
        let mut versions = vec![self.durable.sector(no)];
        let (first, end) = (no * SECTOR, (no + 1) * SECTOR);
        for (at, change) in self.pending.iter().enumerate() {
            match change.kind {
                ChangeKind::Write { start, end: stop } if start < end && stop > first => {
                    let version = change.after.sector(no);
                    if versions.last() != Some(&version) {
                        versions.push(version);
                    }
                }
                ChangeKind::Length if at < kept && change.after.len < end => {
                    versions = vec![change.after.sector(no)];
                }
                _ => {}
            }
        }
        versions
    }
}

impl Dir {
    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    fn crash(&self, chooser: &mut dyn Chooser) -> BTreeMap<String, Ino> {
        let mut names = self.durable.clone();
        for change in &self.pending {
            if chooser.choose(2, unit_of_dirs()) == 1 {
                change.apply(&mut names);
            }
        }
        names
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, Ino>) {
        match self {
            NameChange::Link(name, ino) => {
                names.insert(name.clone(), *ino);
            }
            NameChange::Unlink(name) => {
                names.remove(name);
            }
            NameChange::Rename(from, to, ino) => {
                names.remove(from);
                names.insert(to.clone(), *ino);
            }
        }
    }
}

/// Everything was kept.
struct Newest;

impl Chooser for Newest {
    fn choose(&mut self, count: usize, _unit: u64) -> usize {
        count - 1
    }
}

/// Any of these changes may have been kept.
struct Coin(Rng);

impl Chooser for Coin {
    fn choose(&mut self, count: usize, _unit: u64) -> usize {
        self.0.below(count)
    }
}

fn unit_of_page(ino: Ino, sector: usize) -> u64 {
    ((ino as u64) << 32) | (sector as u64 / 8)
}

fn unit_of_dirs() -> u64 {
    u64::MAX
}

fn split(path: &Path) -> (&Path, &str) {
    let name = path.file_name().and_then(|name| name.to_str());
    (path.parent().expect("files are in folders"), name.expect("names are UTF-8"))
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}
