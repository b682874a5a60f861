//! Writes members to a tar file, and reads them back.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use super::files::has_a_place;
use super::{BackupError, BackupFacts, Done, FACTS, FORMAT, Member, SETTINGS, SUMS, USERS};
use crate::vocab::new_file;

/// Maximum bytes of the files that are read into memory: enough for the names and checksums of
/// 100,000 files.
const SMALL_BYTES_MAX: u64 = 16 << 20;
/// Size of the copy buffer.
const CHUNK_BYTES: usize = 128 << 10;
/// Mask of the mode bits of restored files.
const MODE: u32 = 0o640;

/// Writes an archive of `members`, in their order, and flushes it.
///
/// # Errors
/// A file cannot be read, or the archive cannot be written.
pub fn write(out: impl Write, facts: BackupFacts, members: &[Member]) -> Result<Done, BackupError> {
    let mut builder = Builder::new(out);
    let mut sums = String::new();
    let mut done = Done { facts, files: 0, bytes: 0 };
    let json =
        serde_json::to_vec(&done.facts).map_err(io::Error::from).map_err(BackupError::Write)?;
    append_bytes(&mut builder, FACTS, &json)?;
    note(&mut sums, &Sha256::digest(&json), FACTS);
    for member in members {
        let file = File::open(&member.path).map_err(BackupError::at(&member.path))?;
        let found = file.metadata().map_err(BackupError::at(&member.path))?;
        let mut header = header(found.len(), found.mode() & 0o777, found.mtime());
        let mut reader = Hashing { inner: file.take(found.len()), hash: Sha256::new(), bytes: 0 };
        builder.append_data(&mut header, &member.name, &mut reader).map_err(BackupError::Write)?;
        if reader.bytes != found.len() {
            return Err(BackupError::Moved(member.path.clone()));
        }
        note(&mut sums, &reader.hash.finalize(), &member.name);
        done.files += 1;
        done.bytes += found.len();
    }
    append_bytes(&mut builder, SUMS, sums.as_bytes())?;
    builder.into_inner().and_then(|mut out| out.flush()).map_err(BackupError::Write)?;
    Ok(done)
}

fn append_bytes(
    builder: &mut Builder<impl Write>,
    name: &str,
    bytes: &[u8],
) -> Result<(), BackupError> {
    let mut header = header(bytes.len() as u64, 0o600, 0);
    builder.append_data(&mut header, name, bytes).map_err(BackupError::Write)
}

fn header(size: u64, mode: u32, modified: i64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(modified.try_into().unwrap_or_default());
    header
}

/// Appends a line in the format of `sha256sum`.
fn note(sums: &mut String, sum: &[u8], name: &str) {
    sums.push_str(&hex::encode(sum));
    sums.push_str("  ");
    sums.push_str(name);
    sums.push('\n');
}

/// A reader that hashes and counts the bytes it passes on.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Reads an archive to its end, verifies it, and writes its files to the folder `into`, synced. Without
/// `into`, the archive is only verified. If this fails, the caller must remove the files already
/// written.
///
/// # Errors
/// The archive cannot be read, is of a newer format, is damaged or incomplete, or a file cannot be
/// written.
pub fn read(archive: impl Read, into: Option<&Path>) -> Result<Done, BackupError> {
    let mut archive = Archive::new(archive);
    let mut entries = archive.entries().map_err(BackupError::Read)?;
    let mut sums = BTreeMap::<String, String>::new();
    // Every backup starts with the file of its facts.
    let first = entries.next().and_then(Result::ok).ok_or(BackupError::NotABackup)?;
    if name_of(&first) != FACTS {
        return Err(BackupError::NotABackup);
    }
    let json = small(first)?;
    let facts = parse_facts(&json)?;
    sums.insert(FACTS.to_owned(), hex::encode(Sha256::digest(&json)));
    let mut done = Done { facts, files: 0, bytes: 0 };
    for entry in entries {
        let entry = entry.map_err(cut_or_unreadable)?;
        let name = name_of(&entry);
        if name == SUMS {
            compare(&sums, &small(entry)?)?;
            return Ok(done);
        }
        let has_place = name == USERS || name == SETTINGS || has_a_place(&name);
        if !has_place
            || entry.header().entry_type() != EntryType::Regular
            || sums.contains_key(&name)
        {
            return Err(BackupError::Foreign(name));
        }
        let size = entry.size();
        let mode = entry.header().mode().unwrap_or(0o600) & MODE;
        let mut reader = Hashing { inner: entry, hash: Sha256::new(), bytes: 0 };
        match into {
            Some(folder) => extract(&mut reader, &folder.join(&name), mode)?,
            None => copy(&mut reader, &mut io::sink(), Path::new(""))?,
        }
        if reader.bytes != size {
            return Err(BackupError::CutShort);
        }
        sums.insert(name, hex::encode(reader.hash.finalize()));
        done.files += 1;
        done.bytes += size;
    }
    Err(BackupError::CutShort)
}

fn name_of(entry: &tar::Entry<'_, impl Read>) -> String {
    String::from_utf8_lossy(&entry.path_bytes()).into_owned()
}

/// The tar crate reports an end of file within a header as a different error.
fn cut_or_unreadable(err: io::Error) -> BackupError {
    let is_cut = err.kind() == io::ErrorKind::UnexpectedEof
        || err.to_string().contains("failed to read entire block");
    if is_cut { BackupError::CutShort } else { BackupError::Read(err) }
}

fn small(mut entry: tar::Entry<'_, impl Read>) -> Result<Vec<u8>, BackupError> {
    let (size, name) = (entry.size(), name_of(&entry));
    if size > SMALL_BYTES_MAX {
        return Err(BackupError::Changed(name));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(cut_or_unreadable)?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(BackupError::CutShort) }
}

fn parse_facts(json: &[u8]) -> Result<BackupFacts, BackupError> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = serde_json::from_slice(json).map_err(|_| BackupError::NotABackup)?;
    if format != FORMAT {
        return Err(BackupError::Newer(format));
    }
    serde_json::from_slice(json).map_err(|_| BackupError::Changed(FACTS.to_owned()))
}

/// Checks that the files found and their checksums are exactly those of the list.
fn compare(found: &BTreeMap<String, String>, list: &[u8]) -> Result<(), BackupError> {
    let damaged = || BackupError::Changed(SUMS.to_owned());
    let text = std::str::from_utf8(list).map_err(|_| damaged())?;
    let mut listed = BTreeMap::new();
    for line in text.lines() {
        let (sum, name) = line.split_once("  ").ok_or_else(damaged)?;
        listed.insert(name, sum);
    }
    if let Some((name, _)) =
        found.iter().find(|(name, sum)| listed.get(name.as_str()) != Some(&sum.as_str()))
    {
        return Err(BackupError::Changed(name.clone()));
    }
    match listed.keys().find(|name| !found.contains_key(**name)) {
        Some(name) => Err(BackupError::Lost((*name).to_owned())),
        None => Ok(()),
    }
}

fn extract(reader: &mut impl Read, path: &Path, mode: u32) -> Result<(), BackupError> {
    let parent: PathBuf = path.parent().unwrap_or(Path::new(".")).to_owned();
    new_file::create_folder(&parent).map_err(BackupError::at(&parent))?;
    let mut file = new_file::create_new(path).map_err(BackupError::at(path))?;
    file.set_permissions(Permissions::from_mode(mode)).map_err(BackupError::at(path))?;
    copy(reader, &mut file, path)?;
    file.sync_all().map_err(BackupError::at(path))
}

/// Copies all bytes, with different errors for reading and writing.
fn copy(from: &mut impl Read, to: &mut impl Write, path: &Path) -> Result<(), BackupError> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&buffer[..read]).map_err(BackupError::at(path))?,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(cut_or_unreadable(err)),
        }
    }
}
