//! Reads the operator's files of sales, `sales/*.csv` in the data folder, and reads them again when they change.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{MissedTickBehavior, interval};

use crate::facts::{Choices, FactsFile};
use crate::sales::{Sales, SalesFile, SalesReport};
use crate::service::comparables::{LiveSales, SalesSnapshot};
use crate::vocab::limits::SALES_MAX;

/// Time between two looks at the folder.
const PERIOD: Duration = Duration::from_secs(2);
const FOLDER: &str = "sales";

/// The worker that watches the files.
pub struct SalesFiles {
    folder: PathBuf,
    live: Arc<LiveSales>,
}

/// The files in the folder, each with its size and time of modification.
type Seen = BTreeMap<PathBuf, (u64, SystemTime)>;

impl SalesFiles {
    /// Creates the worker for the folder in `data`.
    pub fn new(data: &Path, live: Arc<LiveSales>) -> SalesFiles {
        SalesFiles { folder: data.join(FOLDER), live }
    }

    /// Watches until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = std::pin::pin!(stop);
        let mut seen = Seen::new();
        loop {
            tokio::select! {
                () = &mut stop => return,
                _ = ticks.tick() => seen = self.check(seen).await,
            }
        }
    }

    /// Reads all files again if one changed, and returns what is in the folder.
    async fn check(&self, seen: Seen) -> Seen {
        let found = match files(&self.folder) {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(folder = %self.folder.display(), %error, "cannot list the files of sales");
                return seen;
            }
        };
        if found == seen {
            return found;
        }
        let (paths, live) = (found.clone(), Arc::clone(&self.live));
        let read = move || {
            // Freeing the old sales takes time as well.
            live.publish(snapshot(paths.keys()));
        };
        // A panic is logged.
        let _ = tokio::task::spawn_blocking(read).await;
        found
    }
}

fn files(folder: &Path) -> io::Result<Seen> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Seen::new()),
        entries => entries?,
    };
    let file = |entry: DirEntry| {
        let (path, metadata) = (entry.path(), fs::metadata(entry.path())?);
        let is_csv = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("csv"));
        let state = (metadata.len(), metadata.modified()?);
        Ok((is_csv && metadata.is_file()).then_some((path, state)))
    };
    entries.filter_map(|entry| entry.and_then(file).transpose()).collect()
}

/// Reads all files. One that cannot be read is reported and left out; `None` without sales.
fn snapshot<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Option<SalesSnapshot> {
    let (mut all, mut hasher) = (Vec::new(), DefaultHasher::new());
    for path in paths {
        let file = path.display();
        let read = FactsFile::bytes(path).map_err(Into::into).and_then(|bytes| {
            bytes.hash(&mut hasher);
            SalesFile::read(bytes, &[], Choices::default())
        });
        match read {
            Ok(SalesFile { sales, .. }) if all.len() + sales.len() > SALES_MAX => {
                tracing::error!(%file, sales = sales.len(), max = SALES_MAX, "too many sales; the file is not used");
            }
            Ok(SalesFile { sales, report }) => {
                let SalesReport { refused_rows, unsold, .. } = report;
                tracing::info!(%file, sales = sales.len(), unsold, refused_rows, "sales read");
                all.extend(sales);
            }
            Err(error) => tracing::error!(%file, %error, "the file of sales is not used"),
        }
    }
    let sales = Some(all).filter(|all| !all.is_empty()).map(Sales::new)?;
    Some(SalesSnapshot { sales, digest: hasher.finish() })
}
