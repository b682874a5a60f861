//! Where backups are kept: a folder, or a bucket of an S3-compatible service.
//!
//! A backup is a file and, beside it, its checksum as `sha256sum` writes it. The checksum is written last, once the
//! backup was read back, so a file without one is unfinished.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::aws::AmazonS3;
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use rustix::fs::{Advice, fadvise, statvfs};
use tempfile::NamedTempFile;
use tokio::runtime::Handle;

use super::collect::remove_leftovers;
use super::name::BackupName;
use super::settings::BackupPlace;
use crate::bucket::{PART_BYTES, S3Settings};
use crate::outbound::settings::Settings;
use crate::vocab::whole_file;

/// Prefix of unfinished files in a folder.
const DRAFT: &str = ".dropdex-backup-";
/// Space that a backup leaves free on the disk of its folder, which may hold the data too.
const SPACE_LEFT: u64 = 64 << 20;
/// How often a failed request to a bucket is repeated.
const RETRIES: usize = 4;
/// Services accept 10,000 parts. Half of that leaves room for encryption and names.
const PARTS_MAX: u64 = 5_000;

/// A store. Its methods block, so async code must not call them.
pub enum BackupStore {
    Folder(PathBuf),
    Bucket(Bucket),
}

/// A stored backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stored {
    pub name: BackupName,
    pub bytes: u64,
}

/// Files in a store.
struct Contents {
    /// Newest first.
    complete: Vec<Stored>,
    /// Names of all files of dropdex: backups, also unfinished ones, and checksums.
    files: Vec<(BackupName, String)>,
}

impl BackupStore {
    /// Opens a store. `calls` has the rules for the address of a bucket, and `runtime` runs its requests.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn open(
        place: &BackupPlace,
        calls: &Settings,
        runtime: Handle,
    ) -> anyhow::Result<BackupStore> {
        Ok(match place {
            BackupPlace::Folder(folder) => BackupStore::Folder(folder.clone()),
            BackupPlace::Bucket(s3) => {
                BackupStore::Bucket(Bucket::open(s3, calls, runtime).context("backup.s3")?)
            }
        })
    }

    /// Lists the complete backups, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self) -> anyhow::Result<Vec<Stored>> {
        Ok(self.contents()?.complete)
    }

    /// Removes all but the newest `keep` backups, and unfinished files that are older than those. Other files stay.
    /// Returns the number of removed backups.
    ///
    /// # Errors
    /// The store cannot be read, or a file cannot be removed.
    pub fn prune(&self, keep: usize) -> anyhow::Result<usize> {
        let Contents { complete, files } = self.contents()?;
        let Some(oldest) = complete.get(keep.saturating_sub(1)) else { return Ok(0) };
        let mut old: Vec<_> = files.iter().filter(|(name, _)| *name < oldest.name).collect();
        // Without its checksum, a backup whose removal is interrupted counts as unfinished.
        old.sort_by_key(|(name, file)| BackupName::parse(file) == Some(*name));
        for (_, file) in old {
            self.remove(file)?;
        }
        Ok(complete.len() - keep)
    }

    /// Begins to write a backup of about `bytes`.
    ///
    /// # Errors
    /// The store cannot be written, or its disk has too little space.
    pub fn create(&self, name: BackupName, bytes: u64) -> anyhow::Result<Draft<'_>> {
        match self {
            BackupStore::Folder(folder) => {
                let disk = statvfs(folder).with_context(|| unusable(folder))?;
                let free = disk.f_bavail * disk.f_frsize;
                ensure!(
                    free >= bytes + SPACE_LEFT,
                    "{} has {free} bytes free, and the backup needs {}; free space, lower [backup] keep, or choose \
                     another folder",
                    folder.display(),
                    bytes + SPACE_LEFT
                );
                remove_leftovers(folder, DRAFT);
                let file = NamedTempFile::with_prefix_in(DRAFT, folder);
                Ok(Draft::File { file: file.with_context(|| unusable(folder))?, folder, name })
            }
            BackupStore::Bucket(bucket) => bucket.create(name, bytes),
        }
    }

    /// Opens a stored file.
    ///
    /// # Errors
    /// It does not exist, or cannot be read.
    pub fn read(&self, name: BackupName) -> anyhow::Result<Box<dyn Read + '_>> {
        match self {
            BackupStore::Folder(folder) => {
                let path = folder.join(name.to_string());
                let file = File::open(&path);
                Ok(Box::new(file.with_context(|| format!("cannot read {}", path.display()))?))
            }
            BackupStore::Bucket(bucket) => Ok(Box::new(bucket.read(name)?)),
        }
    }

    /// Returns the checksum of a backup, 64 hexadecimal digits.
    ///
    /// # Errors
    /// It does not exist, or cannot be read.
    pub fn checksum(&self, name: BackupName) -> anyhow::Result<String> {
        let file = name.checksum();
        let text = match self {
            BackupStore::Folder(folder) => fs::read_to_string(folder.join(&file))?,
            BackupStore::Bucket(bucket) => bucket.small(&file)?,
        };
        parse_checksum(&text).with_context(|| format!("{file} is not a file of sha256sum"))
    }

    fn contents(&self) -> anyhow::Result<Contents> {
        let listed = match self {
            BackupStore::Folder(folder) => list_folder(folder).with_context(|| unusable(folder))?,
            BackupStore::Bucket(bucket) => bucket.list()?,
        };
        let is_checked = |name: BackupName| listed.iter().any(|(file, _)| *file == name.checksum());
        let found = listed.iter().filter_map(|(file, bytes)| {
            Some(Stored { name: BackupName::parse(file)?, bytes: *bytes })
        });
        let mut complete: Vec<_> = found.filter(|it| is_checked(it.name)).collect();
        complete.sort_by(|one, other| other.cmp(one));
        let known = |file: &str| BackupName::parse(file).or(BackupName::parse_checksum(file));
        let files = listed.iter().filter_map(|(file, _)| Some((known(file)?, file.clone())));
        Ok(Contents { complete, files: files.collect() })
    }

    fn remove(&self, file: &str) -> anyhow::Result<()> {
        match self {
            BackupStore::Folder(folder) => match fs::remove_file(folder.join(file)) {
                Err(err) if err.kind() != io::ErrorKind::NotFound => {
                    Err(err).with_context(|| format!("cannot remove {file}"))
                }
                _ => Ok(()),
            },
            BackupStore::Bucket(bucket) => bucket.remove(file),
        }
    }
}

/// Returns the checksum in a line of `sha256sum`.
pub fn parse_checksum(text: &str) -> Option<String> {
    let sum = text.split_whitespace().next()?;
    let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_sum.then(|| sum.to_ascii_lowercase())
}

fn unusable(folder: &Path) -> String {
    format!(
        "cannot use the folder {} of [backup]; create it for the user of dropdex, or mount its disk",
        folder.display()
    )
}

/// Returns the names and lengths of the files in a folder.
fn list_folder(folder: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut listed = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = match entry.metadata() {
            // Removed meanwhile.
            Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        if let (true, Ok(name)) = (found.is_file(), entry.file_name().into_string()) {
            listed.push((name, found.len()));
        }
    }
    Ok(listed)
}

/// A backup that is being written. Dropping it removes what was written.
pub enum Draft<'a> {
    File { file: NamedTempFile, folder: &'a Path, name: BackupName },
    Upload(Upload<'a>),
}

impl Draft<'_> {
    /// Makes all bytes durable, and returns a reader of what is stored.
    ///
    /// # Errors
    /// A disk operation or request fails.
    pub fn close(&mut self) -> anyhow::Result<Box<dyn Read + '_>> {
        match self {
            Draft::File { file, .. } => {
                let file = file.as_file_mut();
                file.sync_all()?;
                // The disk is read, not the cache.
                fadvise(&*file, 0, None, Advice::DontNeed)?;
                file.seek(SeekFrom::Start(0))?;
                Ok(Box::new(file))
            }
            Draft::Upload(upload) => Ok(Box::new(upload.complete()?)),
        }
    }

    /// Makes a closed draft a backup with this checksum.
    ///
    /// # Errors
    /// A disk operation or request fails.
    pub fn publish(self, sha256: &str) -> anyhow::Result<()> {
        let line = |name: BackupName| format!("{sha256}  {name}\n");
        match self {
            Draft::File { file, folder, name } => {
                let path = folder.join(name.to_string());
                file.persist_noclobber(&path)
                    .with_context(|| format!("cannot make {}", path.display()))?;
                // Also syncs the folder.
                whole_file::replace(&folder.join(name.checksum()), line(name).as_bytes())
                    .with_context(|| unusable(folder))
            }
            Draft::Upload(mut upload) => {
                let Upload { bucket, name, .. } = upload;
                bucket.put_small(&name.checksum(), line(name))?;
                upload.state = UploadState::Published;
                Ok(())
            }
        }
    }
}

impl Write for Draft<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Draft::File { file, .. } => file.write(bytes),
            Draft::Upload(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Draft::File { file, .. } => file.flush(),
            // A part is sent once it is full.
            Draft::Upload(_) => Ok(()),
        }
    }
}

/// A bucket.
pub struct Bucket {
    store: AmazonS3,
    prefix: Key,
    runtime: Handle,
    /// Bucket and prefix, for messages.
    shown: String,
}

impl Bucket {
    fn open(s3: &S3Settings, calls: &Settings, runtime: Handle) -> anyhow::Result<Bucket> {
        let (store, prefix) = s3.open(s3.client(calls)?, RETRIES)?;
        let shown = format!("the bucket {} below {}", s3.bucket, s3.prefix);
        Ok(Bucket { store, prefix, runtime, shown })
    }

    fn key(&self, name: &str) -> Key {
        self.prefix.clone().join(name)
    }

    fn failed(&self, what: &str) -> impl FnOnce(object_store::Error) -> anyhow::Error + use<> {
        let shown = self.shown.clone();
        let what = what.to_owned();
        move |err| {
            anyhow!(
                "cannot {what} in {shown}: {err}; check endpoint, bucket and keys of [backup.s3]"
            )
        }
    }

    fn list(&self) -> anyhow::Result<Vec<(String, u64)>> {
        let listing = self.store.list_with_delimiter(Some(&self.prefix));
        let listed = self.runtime.block_on(listing).map_err(self.failed("list"))?.objects;
        let file =
            |it: object_store::ObjectMeta| Some((it.location.filename()?.to_owned(), it.size));
        Ok(listed.into_iter().filter_map(file).collect())
    }

    fn small(&self, file: &str) -> anyhow::Result<String> {
        let key = self.key(file);
        let read = async { self.store.get(&key).await?.bytes().await };
        let bytes = self.runtime.block_on(read).map_err(self.failed(&format!("read {file}")))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn put_small(&self, file: &str, text: String) -> anyhow::Result<()> {
        let key = self.key(file);
        let put = self.store.put(&key, text.into());
        self.runtime.block_on(put).map(drop).map_err(self.failed(&format!("write {file}")))
    }

    fn remove(&self, file: &str) -> anyhow::Result<()> {
        let key = self.key(file);
        match self.runtime.block_on(self.store.delete(&key)) {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            removed => removed.map_err(self.failed(&format!("remove {file}"))),
        }
    }

    fn create(&self, name: BackupName, bytes: u64) -> anyhow::Result<Draft<'_>> {
        let key = self.key(&name.to_string());
        let begun = self.runtime.block_on(self.store.put_multipart(&key));
        Ok(Draft::Upload(Upload {
            bucket: self,
            name,
            parts: begun.map_err(self.failed(&format!("write {name}")))?,
            part_bytes: PART_BYTES.max(usize::try_from(bytes / PARTS_MAX)?),
            waiting: Vec::new(),
            state: UploadState::Begun,
        }))
    }

    fn read(&self, name: BackupName) -> anyhow::Result<Download<'_>> {
        let key = self.key(&name.to_string());
        let head = self.runtime.block_on(self.store.head(&key));
        let bytes = head.map_err(self.failed(&format!("read {name}")))?.size;
        let starts = (0..bytes).step_by(PART_BYTES);
        let read = move |start: u64| {
            let range = start..(start + PART_BYTES as u64).min(bytes);
            let key = key.clone();
            async move { self.store.get_range(&key, range).await }
        };
        // The next part is fetched while the current one is used.
        let parts = stream::iter(starts).map(read).buffered(2).boxed();
        Ok(Download { runtime: &self.runtime, parts, part: Vec::new().into() })
    }
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadState {
    Begun,
    Completed,
    Published,
}

/// An object that is being written.
pub struct Upload<'a> {
    bucket: &'a Bucket,
    name: BackupName,
    parts: Box<dyn MultipartUpload>,
    part_bytes: usize,
    /// Bytes of the next part.
    waiting: Vec<u8>,
    state: UploadState,
}

impl<'a> Upload<'a> {
    fn put_part(&mut self) -> object_store::Result<()> {
        let part = std::mem::take(&mut self.waiting);
        self.bucket.runtime.block_on(self.parts.put_part(part.into()))
    }

    fn complete(&mut self) -> anyhow::Result<Download<'a>> {
        let bucket = self.bucket;
        let completed = self.put_part().and_then(|()| {
            let completing = self.parts.complete();
            bucket.runtime.block_on(completing)
        });
        completed.map_err(bucket.failed(&format!("write {}", self.name)))?;
        self.state = UploadState::Completed;
        bucket.read(self.name)
    }
}

impl Write for Upload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.part_bytes - self.waiting.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.waiting.extend_from_slice(taken);
        if self.waiting.len() == self.part_bytes {
            let failed = self.bucket.failed(&format!("write {}", self.name));
            self.put_part().map_err(|err| io::Error::other(failed(err)))?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload<'_> {
    /// Removes what was not published. Failures are ignored: a later backup prunes unfinished files.
    fn drop(&mut self) {
        match self.state {
            UploadState::Published => {}
            UploadState::Completed => {
                let _ = self.bucket.remove(&self.name.to_string());
            }
            UploadState::Begun => {
                let _ = self.bucket.runtime.block_on(self.parts.abort());
            }
        }
    }
}

/// A reader of an object, part by part.
struct Download<'a> {
    runtime: &'a Handle,
    parts: BoxStream<'a, object_store::Result<hyper::body::Bytes>>,
    part: hyper::body::Bytes,
}

impl Read for Download<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.runtime.block_on(self.parts.next()) {
                Some(part) => self.part = part.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let taken = self.part.split_to(buffer.len().min(self.part.len()));
        buffer[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}
