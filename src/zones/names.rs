//! Sorted owners on disk, each with a few extra bytes: the names in a zone, and the missing ones.
//!
//! ```text
//! "DDZN" version bytes-a-name
//! shared length text[length] extra[bytes-a-name]     for each name; its first `shared` bytes repeat its predecessor
//! 0xff count(u64, little-endian) BLAKE3 of all bytes before it
//! ```

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::error::ZoneError;
use crate::vocab::file_error::AtPath;
use crate::vocab::new_file;

const HEAD: [u8; 5] = *b"DDZN\x01";
const END: u8 = 0xff;
const BUFFER_BYTES: usize = 256 << 10;
const _: () = assert!(OWNER_BYTES_MAX < END as usize);

/// Maximum length of an owner in bytes (RFC 1035 §2.3.4).
pub const OWNER_BYTES_MAX: usize = 253;

/// Writes distinct names in ascending order. `N` is the number of extra bytes per name.
pub struct NamesWriter<const N: usize> {
    path: PathBuf,
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    last: Vec<u8>,
    count: u64,
    chunk: Vec<u8>,
}

/// Reads a file that [`NamesWriter`] wrote, one name at a time.
pub struct NamesReader<const N: usize> {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Range of the unread bytes in `buffer`.
    unread: Range<usize>,
    /// End of the hashed part of `buffer`.
    hashed: usize,
    hasher: blake3::Hasher,
    name: Vec<u8>,
    /// Number of extra bytes per name in the file: N, or none in a file of an older version.
    stored: usize,
    extra: [u8; N],
    count: u64,
    /// Whether a current name exists.
    is_at_name: bool,
}

impl<const N: usize> NamesWriter<N> {
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path) -> Result<NamesWriter<N>, ZoneError> {
        let file = new_file::create(path).at(path)?;
        let mut chunk = Vec::with_capacity(2 * BUFFER_BYTES);
        chunk.extend_from_slice(&HEAD);
        chunk.push(N as u8);
        Ok(NamesWriter {
            path: path.to_owned(),
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            hasher: blake3::Hasher::new(),
            last: Vec::new(),
            count: 0,
            chunk,
        })
    }

    /// Adds a name if it sorts after the last one. Returns how the name compares to the last one.
    ///
    /// # Errors
    /// A write fails.
    pub fn push(&mut self, name: &[u8], extra: [u8; N]) -> Result<Ordering, ZoneError> {
        let shared = name.iter().zip(&self.last).take_while(|(one, other)| one == other).count();
        let order = name.get(shared).cmp(&self.last.get(shared));
        if order.is_le() && self.count > 0 {
            return Ok(order);
        }
        self.chunk.extend_from_slice(&[shared as u8, (name.len() - shared) as u8]);
        self.chunk.extend_from_slice(&name[shared..]);
        self.chunk.extend_from_slice(&extra);
        self.last.truncate(shared);
        self.last.extend_from_slice(&name[shared..]);
        self.count += 1;
        if self.chunk.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(Ordering::Greater)
    }

    fn flush(&mut self) -> Result<(), ZoneError> {
        self.hasher.update(&self.chunk);
        self.file.write_all(&self.chunk).at(&self.path)?;
        self.chunk.clear();
        Ok(())
    }

    /// Writes the trailer and syncs the file. Returns the number of names.
    ///
    /// # Errors
    /// A write fails.
    pub fn finish(mut self) -> Result<u64, ZoneError> {
        self.chunk.push(END);
        self.chunk.extend_from_slice(&self.count.to_le_bytes());
        self.flush()?;
        self.file.write_all(self.hasher.finalize().as_bytes()).at(&self.path)?;
        self.file.flush().at(&self.path)?;
        self.file.get_ref().sync_all().at(&self.path)?;
        Ok(self.count)
    }
}

impl<const N: usize> NamesReader<N> {
    /// Opens a file and reads its first name. If the file has no extra bytes, those of its names are 0.
    ///
    /// # Errors
    /// The file cannot be read, or has another format.
    pub fn open(path: &Path) -> Result<NamesReader<N>, ZoneError> {
        let mut reader = NamesReader {
            path: path.to_owned(),
            file: File::open(path).at(path)?,
            buffer: vec![0; BUFFER_BYTES],
            unread: 0..0,
            hashed: 0,
            hasher: blake3::Hasher::new(),
            name: Vec::new(),
            stored: N,
            extra: [0; N],
            count: 0,
            is_at_name: true,
        };
        let head = reader.take(HEAD.len() + 1)?;
        let (is_names, stored) = (head[..HEAD.len()] == HEAD, usize::from(head[HEAD.len()]));
        if !is_names || stored != N && stored != 0 {
            return Err(reader.damaged("it has another version"));
        }
        reader.stored = stored;
        reader.next()?;
        Ok(reader)
    }

    /// Returns the current name and its extra bytes; `None` after the last name.
    pub fn name(&self) -> Option<(&[u8], [u8; N])> {
        self.is_at_name.then_some((&self.name[..], self.extra))
    }

    /// If the current name is this name, returns its extra bytes and advances.
    ///
    /// # Errors
    /// As for [`NamesReader::next`].
    pub fn next_if(&mut self, name: &[u8]) -> Result<Option<[u8; N]>, ZoneError> {
        match self.name() {
            Some((current, extra)) if current == name => self.next().map(|()| Some(extra)),
            _ => Ok(None),
        }
    }

    /// Advances to the next name.
    ///
    /// # Errors
    /// The file cannot be read or is damaged. Damage is detected at the last name or earlier.
    pub fn next(&mut self) -> Result<(), ZoneError> {
        if !self.is_at_name {
            return Ok(());
        }
        let shared = self.take(1)?[0];
        if shared == END {
            return self.check_end();
        }
        let shared = usize::from(shared);
        let length = usize::from(self.take(1)?[0]);
        if shared > self.name.len() || shared + length > OWNER_BYTES_MAX {
            return Err(self.damaged("a name"));
        }
        self.name.truncate(shared);
        let stored = self.stored;
        self.prepare(length + stored)?;
        let entry = &self.buffer[self.unread.start..][..length + stored];
        self.name.extend_from_slice(&entry[..length]);
        self.extra[..stored].copy_from_slice(&entry[length..]);
        self.unread.start += length + stored;
        self.count += 1;
        Ok(())
    }

    fn check_end(&mut self) -> Result<(), ZoneError> {
        let count = self.take(8)?.try_into().map_or(0, u64::from_le_bytes);
        self.hash();
        let expected = self.hasher.finalize();
        let is_whole = self.take(32)? == expected.as_bytes();
        if !is_whole || count != self.count {
            return Err(self.damaged("its checksum is another"));
        }
        self.is_at_name = false;
        Ok(())
    }

    /// Reads `count` bytes.
    fn take(&mut self, count: usize) -> Result<&[u8], ZoneError> {
        self.prepare(count)?;
        let start = self.unread.start;
        self.unread.start += count;
        Ok(&self.buffer[start..start + count])
    }

    /// Makes `count` bytes available in the buffer.
    #[inline]
    fn prepare(&mut self, count: usize) -> Result<(), ZoneError> {
        if self.unread.len() >= count { Ok(()) } else { self.fill(count) }
    }

    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), ZoneError> {
        self.hash();
        self.buffer.copy_within(self.unread.clone(), 0);
        (self.unread, self.hashed) = (0..self.unread.len(), 0);
        while self.unread.len() < count {
            match self.file.read(&mut self.buffer[self.unread.end..]).at(&self.path)? {
                0 => return Err(self.damaged("it is cut short")),
                got => self.unread.end += got,
            }
        }
        Ok(())
    }

    /// Adds the consumed bytes to the checksum.
    fn hash(&mut self) {
        self.hasher.update(&self.buffer[self.hashed..self.unread.start]);
        self.hashed = self.unread.start;
    }

    /// Returns the error for damage to the file.
    pub fn damaged(&self, what: &'static str) -> ZoneError {
        ZoneError::Damaged { path: self.path.clone(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names");
        let mut writer = NamesWriter::<2>::create(&path).expect("created");
        for (at, name) in (0u16..).zip(names) {
            let order = writer.push(name.as_bytes(), at.to_le_bytes()).expect("written");
            assert_eq!(order, Ordering::Greater);
        }
        assert_eq!(writer.finish().expect("written"), names.len() as u64);
        (folder, path)
    }

    fn read(path: &Path) -> Result<Vec<(String, u16)>, ZoneError> {
        let mut reader = NamesReader::<2>::open(path)?;
        let mut all = Vec::new();
        while let Some((name, extra)) = reader.name() {
            all.push((String::from_utf8_lossy(name).into_owned(), u16::from_le_bytes(extra)));
            reader.next()?;
        }
        Ok(all)
    }

    #[test]
    fn names_come_back_with_their_bytes() {
        let long = format!("{}.", "x".repeat(OWNER_BYTES_MAX - 1));
        let many: Vec<String> = (0..60_000).map(|at| format!("name-{at:06}.")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for names in [&[][..], &["a-b.", "a.", "b.", "ba.", &long], &many] {
            let (_folder, path) = written(names);
            let found = read(&path).expect("sound");
            assert_eq!(found.len(), names.len());
            for (at, (name, extra)) in found.iter().enumerate() {
                assert_eq!((name.as_str(), usize::from(*extra)), (names[at], at));
            }
        }
    }

    #[test]
    fn names_out_of_order_and_repeated_ones_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = NamesWriter::<0>::create(&folder.path().join("names")).expect("created");
        use Ordering::{Equal, Greater, Less};
        for (name, order) in [
            ("b.", Greater),
            ("b.", Equal),
            ("a.", Less),
            ("b-c.", Less),
            ("bc.", Greater),
            ("b", Less),
        ] {
            assert_eq!(writer.push(name.as_bytes(), []).expect("written"), order, "{name}");
        }
        assert_eq!(writer.finish().expect("written"), 2);
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_found() {
        let (_folder, path) = written(&["a-b.", "a.", "b.", "bcd.", "bce."]);
        let sound = std::fs::read(&path).expect("readable");
        for at in 0..sound.len() {
            let mut bad = sound.clone();
            bad[at] ^= 0x21;
            std::fs::write(&path, &bad).expect("written");
            assert!(read(&path).is_err(), "byte {at} changed");
            std::fs::write(&path, &sound[..at]).expect("written");
            assert!(read(&path).is_err(), "cut at {at}");
        }
    }
}
