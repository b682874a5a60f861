//! Files of a journal's folder: names, creation, copies and replacement.
//!
//! ```text
//! <20 digits>.seg       a segment, by its number
//! <20 digits>.snap      a snapshot, by the record it follows
//! MARK                  the commit mark
//! LOCK                  locked while the folder is in use
//! <20 digits>.prev      a segment as a crash left it, before its sound part was rewritten
//! <20 digits>.N.torn    the tail that was cut from a segment
//! *.tmp                 unfinished; removed by the next open
//! ```

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::JournalError;
use super::frame::SegmentHeader;
use super::fs::{DirLock, Fs, FsFile};

pub(super) const SEGMENT_SUFFIX: &str = "seg";
pub(super) const SNAPSHOT_SUFFIX: &str = "snap";
pub(super) const PREVIOUS_SUFFIX: &str = "prev";
pub(super) const TORN_SUFFIX: &str = "torn";
const TEMPORARY_SUFFIX: &str = "tmp";
/// File that is locked while the journal is in use.
const LOCK_FILE: &str = "LOCK";
/// File of the commit mark.
pub(super) const MARK_FILE: &str = "MARK";
/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Adds action and path to an I/O error.
pub(super) fn io_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> JournalError + use<> {
    let path = path.to_owned();
    move |source| JournalError::Io { action, path, source }
}

/// Returns the path of a segment.
pub(super) fn segment_path(dir: &Path, segment_no: u64) -> PathBuf {
    numbered(dir, segment_no, SEGMENT_SUFFIX)
}

/// Returns the path of a snapshot.
pub(super) fn snapshot_path(dir: &Path, seq: u64) -> PathBuf {
    numbered(dir, seq, SNAPSHOT_SUFFIX)
}

/// Appends `.tmp` to `path`: the name of an unfinished file.
pub(super) fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(TEMPORARY_SUFFIX);
    PathBuf::from(name)
}

/// Returns the folder of `path`.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

/// Lists the files of one kind in `dir` with their numbers, lowest first.
pub(super) fn list_numbered(
    fs: &dyn Fs,
    dir: &Path,
    suffix: &str,
) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let mut files: Vec<_> = fs
        .list(dir)
        .map_err(io_error("list", dir))?
        .into_iter()
        .filter(|path| has_suffix(path, suffix))
        .filter_map(|path| number(&path).map(|no| (no, path)))
        .collect();
    files.sort();
    Ok(files)
}

/// Lists the files in `dir` that a journal has written, except `LOCK`.
pub(super) fn list_own(fs: &dyn Fs, dir: &Path) -> Result<Vec<PathBuf>, JournalError> {
    const SUFFIXES: [&str; 5] =
        [SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, PREVIOUS_SUFFIX, TORN_SUFFIX, TEMPORARY_SUFFIX];
    let mut files = fs.list(dir).map_err(io_error("list", dir))?;
    files.retain(|path| {
        path.file_name().is_some_and(|name| name == MARK_FILE)
            || SUFFIXES.iter().any(|suffix| has_suffix(path, suffix))
    });
    files.sort();
    Ok(files)
}

/// Removes the unfinished files that a crash left.
pub(super) fn remove_temporaries(fs: &dyn Fs, dir: &Path) -> Result<(), JournalError> {
    for path in fs.list(dir).map_err(io_error("list", dir))? {
        if has_suffix(&path, TEMPORARY_SUFFIX) {
            fs.remove(&path).map_err(io_error("remove", &path))?;
        }
    }
    Ok(())
}

/// Creates `dir` and its parents durably.
pub(super) fn make_folder(fs: &dyn Fs, dir: &Path) -> Result<(), JournalError> {
    let is_missing = |dir: &&Path| {
        *dir != Path::new("")
            && fs.list(dir).is_err_and(|err| err.kind() == io::ErrorKind::NotFound)
    };
    let mut unsure: Vec<&Path> = dir.ancestors().take_while(is_missing).collect();
    fs.create_dir_all(dir).map_err(io_error("create", dir))?;
    // A process killed here may have left a folder whose name is not durable. Nothing depends on
    // this folder before the first segment exists.
    if unsure.is_empty() && list_numbered(fs, dir, SEGMENT_SUFFIX)?.is_empty() {
        unsure.push(dir);
    }
    for made in unsure.into_iter().rev() {
        let above = folder_of(made);
        fs.sync_dir(above).map_err(io_error("sync", above))?;
    }
    Ok(())
}

/// Takes the lock of the folder.
pub(super) fn lock(fs: &dyn Fs, dir: &Path) -> Result<Box<dyn DirLock>, JournalError> {
    let path = dir.join(LOCK_FILE);
    let held = fs.lock(&path).map_err(io_error("lock", &path))?;
    held.ok_or_else(|| JournalError::Locked { dir: dir.to_owned() })
}

/// Creates a segment with its header and zeros up to `len` bytes. The file gets its final name only
/// after the sync, so that a segment without a valid header is always damage, never the result of a
/// crash.
pub(super) fn create_segment(
    fs: &dyn Fs,
    dir: &Path,
    header: &SegmentHeader,
    len: u64,
) -> Result<Box<dyn FsFile>, JournalError> {
    let path = segment_path(dir, header.segment_no);
    let temporary = temporary_path(&path);
    let mut bytes = header.encode().to_vec();
    bytes.resize(bytes.len().max(len as usize), 0);
    let create = || {
        let file = fs.create(&temporary).map_err(io_error("create", &temporary))?;
        file.write_all_at(&bytes, 0).map_err(io_error("write", &temporary))?;
        file.sync_all().map_err(io_error("sync", &temporary))?;
        fs.rename(&temporary, &path).map_err(io_error("rename", &temporary))?;
        Ok(file)
    };
    let file = create().inspect_err(|err: &JournalError| {
        if err.is_full() {
            // If this fails, the next attempt or the next open removes the file.
            let _ = fs.remove(&temporary);
        }
    })?;
    fs.sync_dir(dir).map_err(io_error("sync", dir))?;
    Ok(file)
}

/// Replaces the content of the file at `path` atomically.
pub(super) fn replace(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let temporary = temporary_path(path);
    write_new(fs, &temporary, bytes)?;
    rename_durably(fs, &temporary, path)
}

/// Renames a file and syncs its folder.
pub(super) fn rename_durably(fs: &dyn Fs, from: &Path, to: &Path) -> Result<(), JournalError> {
    fs.rename(from, to).map_err(io_error("rename", from))?;
    let dir = folder_of(to);
    fs.sync_dir(dir).map_err(io_error("sync", dir))
}

/// Checks that this process still owns the folder.
pub(super) fn check_ours(held: &dyn DirLock, dir: &Path) -> Result<(), JournalError> {
    match held.is_ours() {
        Ok(true) => Ok(()),
        Ok(false) => Err(JournalError::Fenced { dir: dir.to_owned() }),
        Err(err) => Err(io_error("look at the lock in", dir)(err)),
    }
}

/// Writes a file and syncs its content, but not its name.
pub(super) fn write_new(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let file = fs.create(path).map_err(io_error("create", path))?;
    file.write_all_at(bytes, 0).map_err(io_error("write", path))?;
    file.sync_all().map_err(io_error("sync", path))
}

/// Copies a file of any length and syncs its content, but not its name.
pub(super) fn copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<(), JournalError> {
    let mut source = fs.open_read(from).map_err(io_error("read", from))?;
    let target = fs.create(to).map_err(io_error("create", to))?;
    let mut piece = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = read_up_to(&mut source, &mut piece).map_err(io_error("read", from))?;
        if read == 0 {
            return target.sync_all().map_err(io_error("sync", to));
        }
        target.write_all_at(&piece[..read], offset).map_err(io_error("write", to))?;
        offset += read as u64;
    }
}

/// Returns true if a file exists at `path`.
pub(super) fn exists(fs: &dyn Fs, path: &Path) -> Result<bool, JournalError> {
    match fs.len(path) {
        Ok(_) => Ok(true),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(err) => Err(io_error("look at", path)(err)),
    }
}

/// Reads the header of a segment.
pub(super) fn read_header(fs: &dyn Fs, path: &Path) -> Result<SegmentHeader, JournalError> {
    let mut bytes = [0; super::frame::SEGMENT_HEADER_BYTES];
    let mut file = fs.open_read(path).map_err(io_error("read", path))?;
    let read = read_up_to(&mut file, &mut bytes).map_err(io_error("read", path))?;
    SegmentHeader::decode(&bytes[..read])
        .map_err(|source| JournalError::Header { path: path.to_owned(), source })
}

/// Reads until `piece` is full or the file ends; returns the number of bytes.
pub(super) fn read_up_to(source: &mut dyn Read, piece: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match source.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
    Ok(filled)
}

pub(super) fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension().is_some_and(|it| it == suffix)
}

fn numbered(dir: &Path, number: u64, suffix: &str) -> PathBuf {
    dir.join(format!("{number:020}.{suffix}"))
}

fn number(path: &Path) -> Option<u64> {
    let stem = path.file_stem()?.to_str()?;
    (stem.len() == 20 && stem.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| stem.parse().ok())
        .flatten()
}
