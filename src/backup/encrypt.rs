//! Encryption of backups in the format of [age](https://age-encryption.org/v1), whose command line reads them as well.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use age::stream::StreamWriter;
use age::x25519::Recipient;
use age::{DecryptError, Decryptor, EncryptError, Encryptor, Identity, IdentityFile};
use anyhow::Context;

use super::BackupError;

/// First bytes of an encrypted file.
const MAGIC: &[u8] = b"age-encryption.org/";

/// A writer that encrypts, if there are recipients.
pub(super) enum Output<W: Write> {
    Plain(W),
    Encrypted(StreamWriter<W>),
}

impl<W: Write> Output<W> {
    pub fn new(out: W, recipients: &[Recipient]) -> io::Result<Output<W>> {
        let recipients = recipients.iter().map(|it| it as &dyn age::Recipient);
        match Encryptor::with_recipients(recipients) {
            Err(EncryptError::MissingRecipients) => Ok(Output::Plain(out)),
            encryptor => {
                let encryptor = encryptor.map_err(io::Error::other)?;
                Ok(Output::Encrypted(encryptor.wrap_output(out)?))
            }
        }
    }

    /// Writes the end of the encrypted file.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Output::Plain(out) => Ok(out),
            Output::Encrypted(stream) => stream.finish(),
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(out) => out.write(bytes),
            Output::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Plain(out) => out.flush(),
            Output::Encrypted(stream) => stream.flush(),
        }
    }
}

/// Private keys that decrypt backups.
pub struct Identities(Vec<Box<dyn Identity>>);

impl Identities {
    /// Reads a file of `age-keygen`.
    ///
    /// # Errors
    /// The file cannot be read, or contains no private key.
    pub fn read(path: &Path) -> anyhow::Result<Identities> {
        let read = || {
            let file = BufReader::new(std::fs::File::open(path)?);
            let identities = IdentityFile::from_buffer(file)?.into_identities()?;
            anyhow::ensure!(!identities.is_empty(), "the file is empty");
            anyhow::Ok(Identities(identities))
        };
        read().with_context(|| {
            format!(
                "{} is not an identity file with a line AGE-SECRET-KEY-1…, as `age-keygen` writes it",
                path.display()
            )
        })
    }
}

/// Returns the archive in a file that may be encrypted.
///
/// # Errors
/// The file is encrypted, and no key decrypts it.
pub fn decrypted<'a>(
    mut file: impl BufRead + 'a,
    identities: Option<&Identities>,
) -> Result<Box<dyn Read + 'a>, BackupError> {
    if !file.fill_buf().map_err(BackupError::Read)?.starts_with(MAGIC) {
        return Ok(Box::new(file));
    }
    let identities = identities.ok_or(BackupError::Encrypted)?;
    let opened = Decryptor::new_buffered(file)
        .and_then(|it| it.decrypt(identities.0.iter().map(|identity| identity.as_ref())));
    match opened {
        Ok(stream) => {
            let mut archive = BufReader::new(Decrypted(stream));
            // The first bytes decide whether this is an archive at all.
            archive.fill_buf().map_err(|_| BackupError::Undecryptable)?;
            Ok(Box::new(archive))
        }
        Err(DecryptError::NoMatchingKeys) => Err(BackupError::OtherKey),
        Err(DecryptError::Io(err)) if err.kind() != io::ErrorKind::UnexpectedEof => {
            Err(BackupError::Read(err))
        }
        Err(_) => Err(BackupError::Undecryptable),
    }
}

/// A reader whose errors state that the ciphertext is damaged.
struct Decrypted<R>(R);

impl<R: Read> Read for Decrypted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|err| match err.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                io::Error::other(BackupError::Undecryptable)
            }
            _ => err,
        })
    }
}
