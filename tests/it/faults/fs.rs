//! [`SimFs`]: the journal's disk in memory. The disk records all calls, and can make any call fail.
//!
//! Input: the calls of the journal, and notes about the journal's responses to its caller. Output:
//! one [`Event`] for each, in order. From these, [`Disk`] can restore any moment of the run.

use std::collections::BTreeSet;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dropdex::journal::fs::{DirLock, Fs, FsFile};

use super::disk::{Disk, Ino, Op, SECTOR};
use crate::common::rng::Rng;

/// The kinds of calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// A folder is created.
    Mkdir,
    /// A folder is listed.
    List,
    /// The content or the length of a file is read.
    Read,
    /// A file is opened for reading.
    OpenRead,
    /// A file is created.
    Create,
    /// A file is opened for writing.
    Open,
    /// Bytes are written.
    Write,
    /// A file is truncated.
    Truncate,
    /// A file's bytes are synced.
    SyncData,
    /// A file is synced.
    SyncAll,
    /// A folder is synced.
    SyncDir,
    /// A file is given another name.
    Rename,
    /// A file is given a second name.
    HardLink,
    /// A name is removed.
    Remove,
    /// The lock is taken.
    Lock,
    /// The lock is checked.
    IsOurs,
}

impl Call {
    /// All kinds of calls.
    pub const ALL: [Call; 16] = [
        Call::Mkdir,
        Call::List,
        Call::Read,
        Call::OpenRead,
        Call::Create,
        Call::Open,
        Call::Write,
        Call::Truncate,
        Call::SyncData,
        Call::SyncAll,
        Call::SyncDir,
        Call::Rename,
        Call::HardLink,
        Call::Remove,
        Call::Lock,
        Call::IsOurs,
    ];

    /// Whether the call needs space on the disk, so that it may fail when the disk is full.
    pub fn needs_room(self) -> bool {
        matches!(
            self,
            Call::Mkdir | Call::Create | Call::Write | Call::Rename | Call::HardLink | Call::Lock
        )
    }

    fn is_sync(self) -> bool {
        matches!(self, Call::SyncData | Call::SyncAll | Call::SyncDir)
    }
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device has an error (EIO). Any part of a write may have reached the disk.
    Io,
    /// The call was interrupted (EINTR).
    Interrupted,
    /// There is no space (ENOSPC) for this one call. The first part of a write reached the disk.
    NoRoom,
    /// There is no space, beginning with this call, until [`SimFs::free_space`].
    Full,
}

/// The `nth` call of a kind, from 1, fails.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The kind of call.
    pub call: Call,
    /// Its number, from 1.
    pub nth: u64,
    /// The failure.
    pub fault: Fault,
}

/// A recorded event.
#[derive(Clone, Debug)]
pub enum Event {
    /// A call changed the disk.
    Op(Op),
    /// The caller of the journal submitted a request or got a response.
    Note(Note),
}

/// Calls of the journal's user, and their outcomes. Payloads have numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// An append is about to be submitted.
    Submitted {
        /// Number of its payload.
        id: u32,
        /// Its caller does not wait.
        is_lazy: bool,
    },
    /// Its `apply` ran.
    Applied(u32),
    /// The append was acknowledged as durable.
    Acked(u32),
    /// The append was refused for lack of space.
    NoRoom(u32),
    /// The append failed with an error that leaves its outcome open.
    Failed(u32),
    /// A journal is about to be opened.
    Opening,
    /// A journal was opened and contained these payloads.
    Opened(Vec<u32>),
    /// A snapshot of these payloads, or a clean close after them, was acknowledged, so they are
    /// durable.
    Durable(Vec<u32>),
}

/// The disk of one running system. Clones share the disk.
#[derive(Clone)]
pub struct SimFs(Arc<Mutex<Inner>>);

struct Inner {
    disk: Disk,
    events: Vec<Event>,
    /// Number of calls of each kind so far, including failed ones.
    calls: [u64; Call::ALL.len()],
    plan: Option<Plan>,
    /// Whether the planned call has failed.
    has_struck: bool,
    /// Whether calls may fail, so that each is counted.
    may_fail: bool,
    is_full: bool,
    locked: BTreeSet<PathBuf>,
    rng: Rng,
}

impl SimFs {
    /// Creates a system that starts on `disk`, on which everything is durable. `seed` decides which
    /// effects a failed call has.
    pub fn new(disk: Disk, plan: Option<Plan>, seed: u64) -> SimFs {
        SimFs::with(disk, plan, true, seed)
    }

    /// Creates a system that starts on `disk` and in which no call fails, so that calls need not be
    /// counted.
    pub fn sound(disk: Disk) -> SimFs {
        SimFs::with(disk, None, false, 0)
    }

    fn with(disk: Disk, plan: Option<Plan>, may_fail: bool, seed: u64) -> SimFs {
        SimFs(Arc::new(Mutex::new(Inner {
            disk,
            events: Vec::new(),
            calls: [0; Call::ALL.len()],
            plan,
            has_struck: false,
            may_fail,
            is_full: false,
            locked: BTreeSet::new(),
            rng: Rng::new(seed),
        })))
    }

    /// Adds a note to the events.
    pub fn note(&self, note: Note) {
        self.lock_inner().events.push(Event::Note(note));
    }

    /// Returns all events.
    pub fn events(&self) -> Vec<Event> {
        self.lock_inner().events.clone()
    }

    /// Returns the number of calls of a kind.
    pub fn calls(&self, call: Call) -> u64 {
        self.lock_inner().calls[call as usize]
    }

    /// Whether the planned call has failed.
    pub fn has_struck(&self) -> bool {
        self.lock_inner().has_struck
    }

    /// Ends [`Fault::Full`]; returns whether the disk was full.
    pub fn free_space(&self) -> bool {
        std::mem::take(&mut self.lock_inner().is_full)
    }

    /// Returns the disk as it is now.
    pub fn disk(&self) -> Disk {
        self.lock_inner().disk.clone()
    }

    fn lock_inner(&self) -> MutexGuard<'_, Inner> {
        // A failed assertion elsewhere must not be hidden by a second failure here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Counts the call, and fails it if the plan says so.
    fn count(&mut self, call: Call, grows: bool) -> Result<(), Fault> {
        self.calls[call as usize] += 1;
        let nth = self.calls[call as usize];
        let struck = self.plan.filter(|plan| plan.call == call && plan.nth == nth);
        if let Some(plan) = struck {
            self.has_struck = true;
            self.is_full |= plan.fault == Fault::Full;
            return Err(plan.fault);
        }
        let needs_room = call == Call::Create || call == Call::Mkdir || grows;
        if self.is_full && needs_room { Err(Fault::Full) } else { Ok(()) }
    }

    /// Makes a call that has no effect if it fails.
    fn plain(&mut self, call: Call, op: Option<Op>) -> io::Result<()> {
        self.count(call, false).map_err(error)?;
        match op {
            Some(op) => self.done(op),
            None => Ok(()),
        }
    }

    fn done(&mut self, op: Op) -> io::Result<()> {
        self.disk.apply(&op)?;
        self.events.push(Event::Op(op));
        Ok(())
    }

    fn sync(&mut self, call: Call, op: Op, failed: impl FnOnce(u64) -> Op) -> io::Result<()> {
        debug_assert!(call.is_sync());
        match self.count(call, false) {
            Ok(()) => self.done(op),
            Err(fault) => {
                let seed = self.rng.below(usize::MAX) as u64;
                self.done(failed(seed))?;
                Err(error(fault))
            }
        }
    }

    fn write(&mut self, ino: Ino, bytes: &[u8], offset: usize) -> io::Result<()> {
        let grows = offset + bytes.len() > self.disk.content(ino).len();
        let fault = self.count(Call::Write, grows).err();
        let landed = match fault {
            None => bytes.len(),
            Some(Fault::Interrupted) => 0,
            Some(_) => self.landed(bytes.len(), offset),
        };
        if landed > 0 {
            self.done(Op::Write { ino, offset, bytes: bytes[..landed].into() })?;
        }
        fault.map_or(Ok(()), |fault| Err(error(fault)))
    }

    /// Returns the number of bytes of a failed write that are on disk. A system copies block by block,
    /// so the written part ends at a sector boundary, unless everything or nothing was written.
    fn landed(&mut self, len: usize, offset: usize) -> usize {
        let borders = (offset + len).div_ceil(SECTOR) - offset / SECTOR + 1;
        let border = (offset / SECTOR + self.rng.below(borders)) * SECTOR;
        border.saturating_sub(offset).min(len)
    }
}

fn error(fault: Fault) -> io::Error {
    match fault {
        Fault::Io => io::Error::from_raw_os_error(5),
        Fault::Interrupted => io::ErrorKind::Interrupted.into(),
        Fault::NoRoom | Fault::Full => io::ErrorKind::StorageFull.into(),
    }
}

impl Fs for SimFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.lock_inner();
        if inner.disk.has_dir(dir) {
            return Ok(());
        }
        inner.plain(Call::Mkdir, Some(Op::Mkdir(dir.to_owned())))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut inner = self.lock_inner();
        inner.plain(Call::List, None)?;
        inner.disk.list(dir)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut inner = self.lock_inner();
        inner.plain(Call::Read, None)?;
        let ino = inner.disk.ino(path)?;
        Ok(inner.disk.content(ino).to_vec())
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let mut inner = self.lock_inner();
        inner.plain(Call::OpenRead, None)?;
        let ino = inner.disk.ino(path)?;
        if !inner.may_fail {
            return Ok(Box::new(Cursor::new(inner.disk.content(ino).to_vec())));
        }
        Ok(Box::new(Reader { fs: self.clone(), ino, at: 0 }))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let mut inner = self.lock_inner();
        inner.plain(Call::Read, None)?;
        let ino = inner.disk.ino(path)?;
        Ok(inner.disk.content(ino).len() as u64)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        let mut inner = self.lock_inner();
        inner.plain(Call::Create, Some(Op::Create(path.to_owned())))?;
        let ino = inner.disk.ino(path)?;
        Ok(Box::new(SimFile { fs: self.clone(), ino }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        let mut inner = self.lock_inner();
        inner.plain(Call::Open, None)?;
        let ino = inner.disk.ino(path)?;
        Ok(Box::new(SimFile { fs: self.clone(), ino }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let op = Op::Rename(from.to_owned(), to.to_owned());
        self.lock_inner().plain(Call::Rename, Some(op))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let op = Op::HardLink(from.to_owned(), to.to_owned());
        self.lock_inner().plain(Call::HardLink, Some(op))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lock_inner().plain(Call::Remove, Some(Op::Remove(path.to_owned())))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let failed = |seed| Op::SyncDirFailed(dir.to_owned(), seed);
        self.lock_inner().sync(Call::SyncDir, Op::SyncDir(dir.to_owned()), failed)
    }

    /// Locks belong to the running system and leave no trace on the disk.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        let mut inner = self.lock_inner();
        inner.plain(Call::Lock, None)?;
        let is_free = inner.locked.insert(path.to_owned());
        let lock = || SimLock { fs: self.clone(), path: path.to_owned() };
        Ok(is_free.then(|| Box::new(lock()) as Box<dyn DirLock>))
    }
}

struct SimFile {
    fs: SimFs,
    ino: Ino,
}

impl FsFile for SimFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.fs.lock_inner().write(self.ino, bytes, offset as usize)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let op = Op::Truncate { ino: self.ino, len: len as usize };
        self.fs.lock_inner().plain(Call::Truncate, Some(op))
    }

    fn sync_data(&self) -> io::Result<()> {
        let failed = |seed| Op::SyncFailed(self.ino, seed);
        self.fs.lock_inner().sync(Call::SyncData, Op::Sync(self.ino), failed)
    }

    fn sync_all(&self) -> io::Result<()> {
        let failed = |seed| Op::SyncFailed(self.ino, seed);
        self.fs.lock_inner().sync(Call::SyncAll, Op::Sync(self.ino), failed)
    }
}

struct Reader {
    fs: SimFs,
    ino: Ino,
    at: usize,
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.fs.lock_inner();
        inner.plain(Call::Read, None)?;
        let count = inner.disk.content(self.ino).read_at(self.at, out);
        self.at += count;
        Ok(count)
    }
}

struct SimLock {
    fs: SimFs,
    path: PathBuf,
}

impl DirLock for SimLock {
    fn is_ours(&self) -> io::Result<bool> {
        self.fs.lock_inner().plain(Call::IsOurs, None).map(|()| true)
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.fs.lock_inner().locked.remove(&self.path);
    }
}
