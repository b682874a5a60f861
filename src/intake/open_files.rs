//! Detects files of a folder that a process on this machine has open for writing, with inotify.
//!
//! While a writer pauses, its file looks complete, judged by size and times. The kernel reports when the
//! writer closes the file, even if it is killed. The kernel does not report writers on other machines
//! (NFS), or files opened before the watch began.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Size of the event buffer, enough for a few hundred events.
const EVENT_BYTES: usize = 16 << 10;

/// A watch on one folder.
pub(super) struct OpenFiles {
    events: OwnedFd,
    files: HashMap<OsString, FileState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileState {
    /// The file appeared. The file may be a hard link, which is never opened.
    Created,
    /// The file was opened after its creation, most likely for writing.
    Opened,
    Written,
}

impl OpenFiles {
    /// Creates the event queue. Events arrive once [`OpenFiles::watch`] is called.
    ///
    /// # Errors
    /// The system refuses it, most likely because the user has too many queues.
    pub(super) fn new() -> Result<OpenFiles, Errno> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(OpenFiles { events, files: HashMap::new() })
    }

    /// Watches the folder. A repeated call has no effect, unless another folder is at this path
    /// now.
    ///
    /// # Errors
    /// The folder cannot be watched.
    pub(super) fn watch(&self, folder: &Path) -> Result<(), Errno> {
        let events = WatchFlags::CREATE
            | WatchFlags::OPEN
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&self.events, folder, events).map(|_| ())
    }

    /// Reads the events up to now.
    ///
    /// # Errors
    /// The events cannot be read.
    pub(super) fn update(&mut self) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = inotify::Reader::new(&self.events, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    record(&mut self.files, event.events(), name);
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(err) => return Err(err),
            }
        }
    }

    /// Returns whether a process has the file of this name open for writing.
    pub(super) fn contains(&self, name: &OsStr) -> bool {
        matches!(self.files.get(name), Some(FileState::Opened | FileState::Written))
    }
}

fn record(files: &mut HashMap<OsString, FileState>, events: ReadFlags, name: Option<&OsStr>) {
    if events.contains(ReadFlags::QUEUE_OVERFLOW) {
        // Events were lost. A file whose close event was lost would wait forever.
        return files.clear();
    }
    let Some(name) = name else { return };
    let state = files.get(name).copied();
    let ended = ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_FROM | ReadFlags::DELETE;
    if events.contains(ReadFlags::CREATE) {
        files.insert(name.to_owned(), FileState::Created);
    } else if events.contains(ReadFlags::MODIFY) {
        files.insert(name.to_owned(), FileState::Written);
    } else if events.contains(ReadFlags::OPEN) && state == Some(FileState::Created) {
        files.insert(name.to_owned(), FileState::Opened);
    } else if events.intersects(ended)
        || events.contains(ReadFlags::CLOSE_NOWRITE) && state == Some(FileState::Opened)
    {
        files.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;

    use super::*;

    fn watched() -> (tempfile::TempDir, OpenFiles) {
        let folder = tempfile::tempdir().expect("a folder");
        let files = OpenFiles::new().expect("inotify");
        files.watch(folder.path()).expect("watched");
        (folder, files)
    }

    fn is_open(files: &mut OpenFiles, name: &str) -> bool {
        files.update().expect("events");
        files.contains(OsStr::new(name))
    }

    #[test]
    fn a_file_is_open_until_its_writer_closes_it() {
        let (folder, mut files) = watched();
        let path = folder.path().join("a.csv");
        let mut writer = File::create(&path).expect("created");
        assert!(is_open(&mut files, "a.csv"), "nothing was written yet");
        writer.write_all(b"alphaone.com\n").expect("written");
        drop(File::open(&path).expect("a reader"));
        assert!(is_open(&mut files, "a.csv"), "a reader that leaves changes nothing");
        drop(writer);
        assert!(!is_open(&mut files, "a.csv"));
        let mut writer = File::options().append(true).open(&path).expect("opened");
        writer.write_all(b"alphatwo.com\n").expect("written");
        assert!(is_open(&mut files, "a.csv"), "written to again");
        fs::rename(&path, folder.path().join("b.csv")).expect("renamed");
        assert!(!is_open(&mut files, "a.csv"));
        writer.write_all(b"alphathree.com\n").expect("written");
        assert!(is_open(&mut files, "b.csv"), "under its new name");
        drop(writer);
        assert!(!is_open(&mut files, "b.csv"));
    }

    #[test]
    fn files_that_arrive_complete_are_not_open() {
        let (folder, mut files) = watched();
        let elsewhere = tempfile::tempdir_in(folder.path()).expect("a folder");
        let list = elsewhere.path().join("list");
        fs::write(&list, "alphaone.com\n").expect("written");
        fs::hard_link(&list, folder.path().join("linked")).expect("linked");
        fs::copy(&list, folder.path().join("copied")).expect("copied");
        fs::rename(&list, folder.path().join("moved")).expect("moved");
        for name in ["linked", "copied", "moved"] {
            assert!(!is_open(&mut files, name), "{name}");
            drop(File::open(folder.path().join(name)).expect("a reader"));
            assert!(!is_open(&mut files, name), "{name}");
        }
    }
}
