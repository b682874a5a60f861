//! Moves files between an installation and an object store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use hyper::body::Bytes;
use thiserror::Error;
use tokio::task::spawn_blocking;

use super::list::{FileList, FileParts, ObjectKey, PART_BYTES_MAX, RelativePath, StoredBackup};
use super::objects::{ObjectError, Objects};
use crate::vocab::new_file;

/// Number of parts transferred at once.
const PARTS_AT_ONCE: usize = 4;
/// Maximum attempts for a part before the transfer fails. The next call resumes where this one
/// stopped.
const TRIES: u32 = 5;
/// Pause before the second attempt; it doubles with each attempt.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 250 });
/// Name of the note of a backup, and of its file.
const BACKUP: &str = "backup";
/// Free space that a download preserves.
const SPACE_LEFT: u64 = 256 << 20;

/// Reason why a transfer failed. Parts transferred so far are kept.
#[derive(Debug, Error)]
pub enum TransferError {
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} changed while it was read", .0.display())]
    Changed(PathBuf),
    #[error("the list of files cannot be read ({0}); a newer dropdex may have written it")]
    List(serde_json::Error),
    #[error("{needed} bytes are needed in {}, and {free} are free; make room", folder.display())]
    NoRoom { folder: PathBuf, needed: u64, free: u64 },
    #[error("a transfer panicked")]
    Panicked,
}

/// Cache of the parts of files, so that unchanged files are not hashed again.
#[derive(Debug, Default)]
pub struct Hashed(HashMap<FileIdentity, FileParts>);

impl Hashed {
    /// Adds a file whose parts are known.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn add(&mut self, path: &Path, parts: &FileParts) -> io::Result<()> {
        let identity = FileIdentity::of(&File::open(path)?)?;
        self.0.insert(identity, parts.clone());
        Ok(())
    }
}

/// Attributes that are equal if a file is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileIdentity {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    fn of(file: &File) -> io::Result<FileIdentity> {
        let facts = file.metadata()?;
        Ok(FileIdentity {
            device: facts.dev(),
            inode: facts.ino(),
            len: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
        })
    }
}

/// Byte counts of a download.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Downloaded {
    /// Bytes fetched from the store.
    pub fetched: u64,
    /// Bytes found on disk.
    pub kept: u64,
}

/// Moves files to and from a store.
pub struct Transfer<O> {
    objects: O,
    /// Rate limits, one for each direction.
    up: Option<DefaultDirectRateLimiter>,
    down: Option<DefaultDirectRateLimiter>,
}

impl<O: Objects> Transfer<O> {
    /// Creates a transfer with at most `bytes_per_second` in each direction.
    pub fn new(objects: O, bytes_per_second: Option<NonZeroU32>) -> Transfer<O> {
        let burst = NonZeroU32::new(PART_BYTES_MAX as u32).expect("above 0");
        let limiter =
            |rate: NonZeroU32| RateLimiter::direct(Quota::per_second(rate).allow_burst(burst));
        let [up, down] = [(); 2].map(|()| bytes_per_second.map(limiter));
        Transfer { objects, up, down }
    }

    /// Stores files and their list. Parts of `known` lists are skipped, because the store has them already.
    /// Returns the key of the list.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn upload(
        &self,
        files: &BTreeMap<RelativePath, PathBuf>,
        known: &[FileList],
        hashed: &mut Hashed,
    ) -> Result<(ObjectKey, FileList), TransferError> {
        let mut stored: HashSet<ObjectKey> = known
            .iter()
            .flat_map(|list| list.files.values())
            .flat_map(|it| it.parts.clone())
            .collect();
        let (mut list, mut still) = (FileList::default(), HashMap::new());
        for (name, path) in files {
            let file = Arc::new(File::open(path).map_err(at(path))?);
            let identity = FileIdentity::of(&file).map_err(at(path))?;
            let held = hashed
                .0
                .get(&identity)
                .filter(|parts| parts.parts.iter().all(|key| stored.contains(key)));
            let parts = match held {
                Some(parts) => parts.clone(),
                None => self.upload_file(path, &file, identity, &mut stored).await?,
            };
            still.insert(identity, parts.clone());
            list.files.insert(name.clone(), parts);
        }
        hashed.0 = still;
        let bytes = list.encode();
        let key = ObjectKey::of(&bytes);
        self.put(key, bytes.into()).await?;
        Ok((key, list))
    }

    async fn upload_file(
        &self,
        path: &Path,
        file: &Arc<File>,
        identity: FileIdentity,
        stored: &mut HashSet<ObjectKey>,
    ) -> Result<FileParts, TransferError> {
        let places = (0..identity.len).step_by(PART_BYTES_MAX);
        let mut reading = stream::iter(places)
            .map(|place| {
                let (file, left) = (Arc::clone(file), identity.len - place);
                blocking(path, move || read_part(&file, place, left.min(PART_BYTES_MAX as u64)))
            })
            .buffered(PARTS_AT_ONCE);
        let (mut parts, mut sending) = (Vec::new(), stream::FuturesUnordered::new());
        while let Some(read) = reading.next().await {
            let bytes = read?;
            let key = hash(bytes.clone()).await?;
            parts.push(key);
            if stored.insert(key) {
                sending.push(self.put(key, bytes));
            }
            while sending.len() >= PARTS_AT_ONCE {
                sending.try_next().await?;
            }
        }
        while sending.try_next().await?.is_some() {}
        if FileIdentity::of(file).map_err(at(path))? != identity {
            return Err(TransferError::Changed(path.to_owned()));
        }
        Ok(FileParts { len: identity.len, parts })
    }

    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), TransferError> {
        wait_for(self.up.as_ref(), bytes.len()).await;
        Ok(again(|| self.objects.put(key, bytes.clone())).await?)
    }

    /// Returns the list with this key.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn list(&self, key: ObjectKey) -> Result<FileList, TransferError> {
        FileList::decode(&self.get(key).await?).map_err(TransferError::List)
    }

    /// Fetches the files of a list for which `place` returns a path. Parts of an interrupted download
    /// are kept.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn download(
        &self,
        list: &FileList,
        place: impl Fn(&RelativePath) -> Option<PathBuf>,
    ) -> Result<Downloaded, TransferError> {
        let mut done = Downloaded::default();
        for (name, parts) in &list.files {
            let Some(path) = place(name) else { continue };
            let Downloaded { fetched, kept } = self.download_file(&path, parts).await?;
            done.fetched += fetched;
            done.kept += kept;
        }
        Ok(done)
    }

    async fn download_file(
        &self,
        path: &Path,
        parts: &FileParts,
    ) -> Result<Downloaded, TransferError> {
        let (len, target) = (parts.len, path.to_owned());
        let opened = spawn_blocking(move || open_sized(&target, len)).await;
        let file = opened.map_err(|_| TransferError::Panicked)??;
        let fetched = stream::iter(parts.places())
            .map(|(key, place, len)| {
                let file = Arc::clone(&file);
                async move {
                    let held = Arc::clone(&file);
                    let held = blocking(path, move || read_part(&held, place, len as u64)).await?;
                    if hash(held).await? == key {
                        return Ok(0);
                    }
                    wait_for(self.down.as_ref(), len).await;
                    let bytes = self.get(key).await?;
                    if bytes.len() != len {
                        return Err(ObjectError::Damaged(key).into());
                    }
                    blocking(path, move || file.write_all_at(&bytes, place)).await?;
                    Ok::<u64, TransferError>(len as u64)
                }
            })
            .buffer_unordered(PARTS_AT_ONCE)
            .try_fold(0, |sum, bytes| async move { Ok(sum + bytes) })
            .await?;
        blocking(path, move || file.sync_all()).await?;
        Ok(Downloaded { fetched, kept: len - fetched })
    }

    async fn get(&self, key: ObjectKey) -> Result<Bytes, TransferError> {
        let bytes = again(|| self.objects.get(key)).await?;
        if hash(bytes.clone()).await? == key {
            Ok(bytes)
        } else {
            Err(ObjectError::Damaged(key).into())
        }
    }

    /// Stores a backup and replaces the previous one.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn put_backup(
        &self,
        file: &Path,
        made: DateTime<Utc>,
    ) -> Result<StoredBackup, TransferError> {
        let files = BTreeMap::from([(backup_path(), file.to_owned())]);
        let (key, list) = self.upload(&files, &[], &mut Hashed::default()).await?;
        let backup = StoredBackup { list: key, bytes: list.bytes(), made };
        let note = serde_json::to_vec(&backup).map_err(TransferError::List)?;
        again(|| self.objects.put_note(BACKUP, note.clone().into())).await?;
        Ok(backup)
    }

    /// Returns the last stored backup.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn backup(&self) -> Result<Option<StoredBackup>, TransferError> {
        let note = again(|| self.objects.note(BACKUP)).await?;
        note.map(|note| serde_json::from_slice(&note)).transpose().map_err(TransferError::List)
    }

    /// Fetches a backup into a file.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn fetch_backup(
        &self,
        backup: &StoredBackup,
        to: &Path,
    ) -> Result<(), TransferError> {
        let list = self.list(backup.list).await?;
        self.download(&list, |path| (*path == backup_path()).then(|| to.to_owned())).await?;
        Ok(())
    }

    /// Removes objects that neither these lists nor the backup need. Recent objects are kept: another node may be
    /// storing them.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn keep_only(
        &self,
        lists: &[ObjectKey],
        older_than: Duration,
    ) -> Result<usize, TransferError> {
        let backup = self.backup().await?.map(|it| it.list);
        let lists: Vec<ObjectKey> = lists.iter().copied().chain(backup).collect();
        let mut needed: HashSet<ObjectKey> = lists.iter().copied().collect();
        for key in lists {
            let list = self.list(key).await?;
            needed.extend(list.files.values().flat_map(|file| file.parts.iter().copied()));
        }
        let mut removed = 0;
        for stored in self.objects.list().await? {
            if !needed.contains(&stored.key) && stored.age >= older_than {
                self.objects.delete(stored.key).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Returns true if a file has these parts.
///
/// # Errors
/// The file cannot be read.
pub fn is_like(path: &Path, parts: &FileParts) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    if file.metadata()?.len() != parts.len {
        return Ok(false);
    }
    for (key, place, len) in parts.places() {
        if ObjectKey::of(&read_part(&file, place, len as u64)?) != key {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Calls the store, and retries while it is unavailable.
async fn again<T, F: Future<Output = Result<T, ObjectError>>>(
    mut call: impl FnMut() -> F,
) -> Result<T, ObjectError> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match call().await {
            // A server that lags may not yet have a new object.
            Err(err) => tracing::debug!(error = %err, "retrying a transfer"),
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    call().await
}

async fn wait_for(limiter: Option<&DefaultDirectRateLimiter>, bytes: usize) {
    if let (Some(limiter), Some(bytes)) = (limiter, NonZeroU32::new(bytes as u32)) {
        // A part is never larger than the burst.
        let _ = limiter.until_n_ready(bytes).await;
    }
}

/// Hashes a part off the runtime's threads.
async fn hash(bytes: Bytes) -> Result<ObjectKey, TransferError> {
    spawn_blocking(move || ObjectKey::of(&bytes)).await.map_err(|_| TransferError::Panicked)
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, TransferError> {
    spawn_blocking(call).await.map_err(|_| TransferError::Panicked)?.map_err(at(path))
}

fn read_part(file: &File, place: u64, len: u64) -> io::Result<Bytes> {
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, place)?;
    Ok(bytes.into())
}

/// Opens or creates a file with this length. Parts of the content may already have been downloaded.
fn open_sized(path: &Path, len: u64) -> Result<Arc<File>, TransferError> {
    let open = || {
        let folder = path.parent().unwrap_or(path);
        new_file::create_folder(folder)?;
        let file = new_file::open(path)?;
        let facts = file.metadata()?;
        let free = rustix::fs::statvfs(folder)?;
        Ok((file, facts, free.f_bavail * free.f_frsize))
    };
    let (file, facts, free) = open().map_err(at(path))?;
    let needed = len.saturating_sub(facts.blocks() * 512);
    if needed > 0 && free < needed + SPACE_LEFT {
        let folder = path.parent().unwrap_or(path).to_owned();
        return Err(TransferError::NoRoom { folder, needed: needed + SPACE_LEFT, free });
    }
    file.set_len(len).map_err(at(path))?;
    Ok(Arc::new(file))
}

fn backup_path() -> RelativePath {
    RelativePath::parse(BACKUP).expect("a path within an installation")
}

fn at(path: &Path) -> impl Fn(io::Error) -> TransferError {
    move |source| TransferError::Io { path: path.to_owned(), source }
}
