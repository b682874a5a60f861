//! Files of a cluster: the leader publishes its lists, index and log of changes; all nodes fetch
//! them, and put them into use at the same record of the shared log.
//!
//! [`publish`] runs on the leader and [`fetch`] on every node; [`switch`] puts the files into use,
//! and [`link`] manages the folders. [`Held`] is the state of a node's files, which survives a
//! restart.

pub mod fetch;
pub mod link;
pub mod publish;
pub mod switch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::task::{JoinError, spawn_blocking};

use crate::accounts::{Publication, Store, WriteError};
use crate::changes::Appender;
use crate::changes::segment::SegmentError;
use crate::index::Index;
use crate::index::error::GenerationError;
use crate::index::filter::AsOf;
use crate::index::generation::live::LiveIndex;
use crate::index::generation::open;
use crate::index::storage::manifest::GenerationId;
use crate::intake::request::Site;
use crate::nodes::store::list::{FileList, RelativePath};
use crate::nodes::store::objects::Objects;
use crate::nodes::store::transfer::{Hashed, Transfer, TransferError};
use crate::vocab::clock::Clock;
use crate::vocab::whole_file;
use switch::Switch;

/// File in the data folder with the state of this node's files.
const HELD: &str = "files.json";

/// Files of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The installed files; `None` while they are being replaced.
    pub installed: Option<Publication>,
    /// Parts of the installed files, stored so that the files need not be hashed again.
    pub list: FileList,
    /// The files that were last put into use.
    pub in_use: Option<Publication>,
}

impl Held {
    fn path(data: &Path) -> PathBuf {
        data.join(HELD)
    }

    /// Reads the state from a data folder. If its file cannot be read, returns the default state, so that all files
    /// are compared again.
    pub fn read(data: &Path) -> Held {
        let path = Held::path(data);
        let read = std::fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        read.unwrap_or_else(|err: io::Error| {
            if err.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), error = %err, "the state of files is unreadable; comparing all files again");
            }
            Held::default()
        })
    }

    /// Writes the state.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        whole_file::replace(&Held::path(data), &json)
    }
}

/// Reason why files were not published or fetched. The caller retries.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the index that was fetched cannot be served: {0}")]
    Index(#[from] GenerationError),
    #[error("the log of changes cannot be read: {0}")]
    Changes(#[from] SegmentError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0:#}")]
    Install(anyhow::Error),
    #[error("work on files panicked: {0}")]
    Panic(#[from] JoinError),
}

/// Publishes and fetches the files of a node.
pub struct Exchange<O> {
    pub transfer: Transfer<O>,
    pub store: Store,
    pub switch: Arc<Switch>,
    pub site: Site,
    pub appender: Arc<Appender>,
    pub live: Arc<LiveIndex>,
    pub clock: Clock,
    /// Number of days that a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// State of the files.
    pub held: Mutex<Held>,
    /// Cache of the parts of files, for a leader.
    pub hashed: tokio::sync::Mutex<Hashed>,
}

impl<O: Objects> Exchange<O> {
    /// Opens a generation and computes today's stages.
    async fn open(&self, generation: u64) -> Result<Arc<Index>, FilesError> {
        let (folder, live) = (self.site.index.clone(), Arc::clone(&self.live));
        let as_of = AsOf { today: self.clock.today(), catch_days: self.catch_days };
        let opened = spawn_blocking(move || {
            let index = open::reopen(&folder, GenerationId(generation), Some(&live.current()))?;
            index.prepare(as_of);
            Ok::<_, GenerationError>(Arc::new(index))
        });
        Ok(opened.await??)
    }

    /// Changes the state of files, and writes it.
    fn hold(&self, change: impl FnOnce(&mut Held)) -> io::Result<()> {
        let mut held = self.held();
        change(&mut held);
        held.write(&self.site.data)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the path by which lists name a file.
fn relative(path: &str) -> Result<RelativePath, FilesError> {
    let parsed = RelativePath::parse(path);
    parsed.ok_or_else(|| io::Error::other(format!("{path:?} cannot be published")).into())
}
