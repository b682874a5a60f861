//! The commit mark: a small file beside the log that records how far the log was synced.
//!
//! After a crash the mark distinguishes damaged acknowledged bytes from the tail of an unacknowledged
//! write. The mark is written asynchronously and may be about 50 ms behind the log, but never ahead of
//! it.
//!
//! The file has 4 KiB with two slots, at 0 and at 2048, written in turn: while one is being written,
//! the other is intact. All numbers are little-endian.
//!
//! ```text
//! slot, 64 bytes
//!  0  magic        8  "ddxmark\n"
//!  8  format       2  1
//! 10  min_reader   2  1
//! 12  store_uuid  16
//! 28  counter      8  one more at each write: the higher slot counts
//! 36  seq          8  all records up to here are synced
//! 44  chain       16  of that record
//! 60  crc          4  CRC-32 of bytes 0..60
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::bytes::{HEADER_BYTES, array, check_header, encode_header, u64_at};
use super::bytes::{HeaderError, StoreUuid};
use super::error::JournalError;
use super::frame::Chain;
use super::frame::Position;
use super::fs::{Fs, FsFile};
use super::segment::{MARK_FILE, io_error, replace};

const MAGIC: [u8; 8] = *b"ddxmark\n";
const SLOT_BYTES: usize = HEADER_BYTES;
const SLOTS_AT: [usize; 2] = [0, 2048];
/// Size of the file.
pub const MARK_BYTES: usize = 4096;
/// Minimum pause between marks.
pub const MARK_PAUSE_DEFAULT: Duration = Duration::from_millis(50);

/// Position up to which a log was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The store it belongs to.
    pub store_uuid: StoreUuid,
    /// Write counter: the slot with the higher counter is newer.
    pub counter: u64,
    /// The last synced record; 0 before the first.
    pub seq: u64,
    /// Its link in the chain.
    pub chain: Chain,
}

/// Timing of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// A separate thread writes the mark, no more often than once in this time, and at the end.
    Background(Duration),
    /// The writer writes the mark after each sync, for deterministic tests.
    Inline,
}

/// Content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundMark {
    /// The file is missing.
    Absent,
    /// Neither slot is sound.
    Unreadable,
    /// The newer sound slot.
    Sound(Mark),
}

impl FoundMark {
    /// Returns the newest undamaged mark, if any.
    pub fn sound(self) -> Option<Mark> {
        match self {
            FoundMark::Sound(mark) => Some(mark),
            FoundMark::Absent | FoundMark::Unreadable => None,
        }
    }
}

impl Mark {
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let (counter, seq) = (self.counter.to_le_bytes(), self.seq.to_le_bytes());
        encode_header(MAGIC, &self.store_uuid, &[&counter, &seq, &self.chain])
    }

    fn decode(bytes: &[u8]) -> Result<Mark, HeaderError> {
        let slot = check_header(MAGIC, bytes)?;
        Ok(Mark {
            store_uuid: array(slot, 12),
            counter: u64_at(slot, 28),
            seq: u64_at(slot, 36),
            chain: array(slot, 44),
        })
    }

    fn slot_at(&self) -> usize {
        SLOTS_AT[(self.counter % 2) as usize]
    }

    /// Encodes a file with only this mark.
    fn file(&self) -> Vec<u8> {
        let mut bytes = vec![0; MARK_BYTES];
        bytes[self.slot_at()..][..SLOT_BYTES].copy_from_slice(&self.encode());
        bytes
    }
}

/// Reads the mark in `dir`.
///
/// # Errors
/// The disk failed, or a newer dropdex wrote the mark. A damaged mark is not an error.
pub(super) fn read(fs: &dyn Fs, dir: &Path) -> Result<FoundMark, JournalError> {
    let path = dir.join(MARK_FILE);
    let bytes = match fs.read(&path) {
        Ok(bytes) => bytes,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(FoundMark::Absent),
        Err(err) => return Err(io_error("read", &path)(err)),
    };
    let mut newest: Option<Mark> = None;
    for at in SLOTS_AT {
        match Mark::decode(bytes.get(at..).unwrap_or_default()) {
            Ok(mark) if newest.is_none_or(|other| other.counter < mark.counter) => {
                newest = Some(mark);
            }
            Err(HeaderError::Newer { format, min_reader }) => {
                return Err(JournalError::NewerMark { path, format, min_reader });
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(newest.map_or(FoundMark::Unreadable, FoundMark::Sound))
}

/// Replaces the file with a new one, so that a process that lost the folder but still has the old
/// file open cannot change the mark.
pub(super) fn make(fs: &dyn Fs, dir: &Path, mark: &Mark) -> Result<(), JournalError> {
    replace(fs, &dir.join(MARK_FILE), &mark.file())
}

/// The open file. After a failure no more marks are written: a failed sync must not be repeated, and
/// an old mark stays valid.
pub(super) struct MarkFile {
    /// `None` after a failure.
    file: Option<Box<dyn FsFile>>,
    last: Mark,
}

impl MarkFile {
    fn write(&mut self, Position { seq, chain, .. }: Position) {
        let Some(file) = self.file.as_ref().filter(|_| seq > self.last.seq) else { return };
        let mark = Mark { counter: self.last.counter + 1, seq, chain, ..self.last };
        let written = file
            .write_all_at(&mark.encode(), mark.slot_at() as u64)
            .and_then(|()| file.sync_data());
        if let Err(err) = written {
            tracing::warn!(
                error = %err,
                "writing the journal's commit mark failed; no more marks are written until a restart"
            );
            self.file = None;
        }
        self.last = mark;
    }

    /// Writes the newest of the wanted positions, no more than one per `pause`. Closing `paused`
    /// ends a pause early.
    fn write_until_end(
        mut self,
        wanted: &Receiver<Position>,
        paused: &Receiver<()>,
        pause: Duration,
        is_abandoned: &AtomicBool,
    ) {
        while let Ok(next) = wanted.recv() {
            let newest = wanted.try_iter().last().unwrap_or(next);
            if is_abandoned.load(Ordering::SeqCst) {
                return;
            }
            self.write(newest);
            let _ = paused.recv_timeout(pause);
        }
    }
}

/// Writes commit marks.
pub(super) enum Marker {
    Inline(MarkFile),
    Background(BackgroundMarker),
}

pub(super) struct BackgroundMarker {
    /// Synced positions. Dropping both senders ends the thread after it has written the last
    /// position.
    synced: Option<Sender<Position>>,
    pause_end: Option<Sender<()>>,
    is_abandoned: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Marker {
    /// Creates the file with `mark` and continues from it.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn start(
        fs: &dyn Fs,
        dir: &Path,
        mark: Mark,
        marking: Marking,
    ) -> Result<Marker, JournalError> {
        make(fs, dir, &mark)?;
        let path = dir.join(MARK_FILE);
        let file = fs.open(&path).map_err(io_error("open", &path))?;
        let file = MarkFile { file: Some(file), last: mark };
        let pause = match marking {
            Marking::Inline => return Ok(Marker::Inline(file)),
            Marking::Background(pause) => pause,
        };
        let ((synced, wanted), (pause_end, paused)) = (mpsc::channel(), mpsc::channel());
        let is_abandoned = Arc::<AtomicBool>::default();
        let flag = Arc::clone(&is_abandoned);
        let thread = thread::Builder::new()
            .name("journal-mark".into())
            .spawn(move || file.write_until_end(&wanted, &paused, pause, &flag))
            .map_err(io_error("start the thread that writes", &path))?;
        Ok(Marker::Background(BackgroundMarker {
            synced: Some(synced),
            pause_end: Some(pause_end),
            is_abandoned,
            thread: Some(thread),
        }))
    }

    /// Reports that all records up to `position` are synced and acknowledged.
    pub(super) fn synced(&mut self, position: Position) {
        match self {
            Marker::Inline(file) => file.write(position),
            Marker::Background(marker) => {
                // The thread ends before the marker only if it panics.
                let _ = marker.synced.as_ref().map(|synced| synced.send(position));
            }
        }
    }

    /// Stops writing, because another process has the folder.
    pub(super) fn abandon(&mut self) {
        match self {
            Marker::Inline(file) => file.file = None,
            Marker::Background(marker) => {
                marker.is_abandoned.store(true, Ordering::SeqCst);
                marker.end();
            }
        }
    }
}

impl BackgroundMarker {
    fn end(&mut self) {
        (self.synced, self.pause_end) = (None, None);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread leaves an old mark, which stays valid.
            let _ = thread.join();
        }
    }
}

impl Drop for BackgroundMarker {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Mark =
        Mark { store_uuid: *b"0123456789abcdef", counter: 5, seq: 9, chain: [7; 16] };

    #[test]
    fn the_bytes_of_format_1_never_change() {
        let golden = include_str!("../../tests/golden/journal-mark-v1.hex");
        assert_eq!(format!("slot {}\n", hex::encode(MARK.encode())), golden);
        assert_eq!(SLOTS_AT, [0, 2048]);
    }

    #[test]
    fn marks_round_trip_and_every_flipped_bit_is_detected() {
        let whole = MARK.encode();
        assert_eq!(Mark::decode(&whole).expect("whole"), MARK);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let unsound = Mark::decode(&bytes).expect_err("a flipped bit");
            assert!(!matches!(unsound, HeaderError::Newer { .. }), "bit {bit}");
        }
    }

    #[test]
    fn the_newer_sound_slot_is_used() {
        let dir = tempfile::tempdir().expect("a folder");
        let (fs, path) = (super::super::fs::Disk, dir.path().join(MARK_FILE));
        assert_eq!(read(&fs, dir.path()).expect("read"), FoundMark::Absent);
        make(&fs, dir.path(), &MARK).expect("made");
        let mut file = MarkFile { file: Some(fs.open(&path).expect("open")), last: MARK };
        for seq in 10..14 {
            file.write(Position { seq, chain: [seq as u8; 16], epoch: 1 });
            let mark = read(&fs, dir.path()).expect("read").sound().expect("sound");
            assert_eq!((mark.seq, mark.chain, mark.counter), (seq, [seq as u8; 16], seq - 4));
            // While one slot is written, the other is still valid.
            let whole = std::fs::read(&path).expect("read");
            let mut torn = whole.clone();
            torn[mark.slot_at() + 40] ^= 1;
            std::fs::write(&path, &torn).expect("written");
            let before = read(&fs, dir.path()).expect("read").sound().expect("sound");
            assert_eq!(before.seq, seq - 1);
            std::fs::write(&path, &whole).expect("written");
        }
        std::fs::write(&path, vec![0; MARK_BYTES]).expect("written");
        assert_eq!(read(&fs, dir.path()).expect("read"), FoundMark::Unreadable);
    }

    #[test]
    fn newer_formats_are_rejected() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut bytes = MARK.file();
        let slot = &mut bytes[MARK.slot_at()..][..SLOT_BYTES];
        slot[8..12].copy_from_slice(&[9, 0, 2, 0]);
        let crc = crc32fast::hash(&slot[..60]);
        slot[60..].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(dir.path().join(MARK_FILE), bytes).expect("written");
        let refused = read(&super::super::fs::Disk, dir.path()).expect_err("newer");
        assert!(refused.to_string().contains("has format 9"), "{refused}");
    }
}
