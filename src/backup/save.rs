//! Makes, verifies and prunes backups in a store.

use std::io::{self, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, ensure};
use chrono::{DateTime, SubsecRound, Utc};
use sha2::{Digest, Sha256};

use super::encrypt::{Identities, Output, decrypted};
use super::name::BackupName;
use super::settings::BackupSettings;
use super::store::{BackupStore, Stored};
use super::{Collected, Done, archive};

/// A backup that was made, or verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Length of the file, and its checksum of 64 hexadecimal digits.
    pub bytes: u64,
    pub sha256: String,
    /// The content; `None` if it is encrypted and no identity was given.
    pub content: Option<Done>,
}

/// Writes a backup to a store, reads it back, and then removes the oldest backups. Fails soon once `stop` is set.
///
/// # Errors
/// A file cannot be read, the store cannot be written, or it returns other bytes. The older backups are then
/// unchanged.
pub fn save(
    store: &BackupStore,
    settings: &BackupSettings,
    collected: &Collected,
    now: DateTime<Utc>,
    stop: &AtomicBool,
) -> anyhow::Result<(Stored, Verified)> {
    let name =
        BackupName { at: now.trunc_subsecs(0), is_encrypted: !settings.encrypt_to.is_empty() };
    let mut draft = store.create(name, collected.bytes()?)?;
    let mut out = Output::new(Metered::new(&mut draft, stop), &settings.encrypt_to)?;
    let done = collected.write(&mut out)?;
    let (bytes, sha256) = out.finish().context("cannot write the backup")?.end();
    let mut stored = Metered::new(draft.close()?, stop);
    io::copy(&mut stored, &mut io::sink()).context("cannot read the backup back")?;
    ensure!(
        stored.end() == (bytes, sha256.clone()),
        "the store returns other bytes than were written; check its disk"
    );
    draft.publish(&sha256)?;
    // The backup is complete, and the next one prunes again.
    if let Err(err) = store.prune(settings.keep) {
        tracing::warn!(error = format!("{err:#}"), "old backups were not removed");
    }
    Ok((Stored { name, bytes }, Verified { bytes, sha256, content: Some(done) }))
}

/// Verifies a backup: all checksums inside it and, if it is given, that of the whole file.
///
/// # Errors
/// It cannot be read or decrypted, or is damaged.
pub fn verify(
    file: impl Read,
    sha256: Option<&str>,
    identities: Option<&Identities>,
) -> anyhow::Result<Verified> {
    let never = AtomicBool::new(false);
    let mut file = BufReader::with_capacity(1 << 20, Metered::new(file, &never));
    let content = match decrypted(&mut file, identities) {
        Ok(mut archive) => {
            let done = archive::read(&mut archive, None)?;
            // The archive ends with padding.
            io::copy(&mut archive, &mut io::sink())?;
            Some(done)
        }
        // The checksum proves that the file is the one that was written.
        Err(super::BackupError::Encrypted) if sha256.is_some() => None,
        Err(err) => return Err(err.into()),
    };
    io::copy(&mut file, &mut io::sink()).context("cannot read the backup")?;
    let (bytes, found) = file.into_inner().end();
    ensure!(
        sha256.is_none_or(|expected| expected == found),
        "the backup differs from its checksum: it is damaged or cut short; use another one"
    );
    Ok(Verified { bytes, sha256: found, content })
}

/// Passes bytes on, hashes and counts them. Fails once `stop` is set.
struct Metered<'a, T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
    stop: &'a AtomicBool,
}

impl<'a, T> Metered<'a, T> {
    fn new(inner: T, stop: &'a AtomicBool) -> Metered<'a, T> {
        Metered { inner, hash: Sha256::new(), bytes: 0, stop }
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the server is shutting down"));
        }
        Ok(bytes.len())
    }

    /// Returns the number of bytes and their checksum.
    fn end(self) -> (u64, String) {
        (self.bytes, hex::encode(self.hash.finalize()))
    }
}

impl<T: Write> Write for Metered<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.pass(&bytes[..written])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Metered<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.pass(&buffer[..read])
    }
}
