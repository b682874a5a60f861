//! Keeps the facts that other workers gather row by row: writes rows to disk at once, and merges them into the
//! edition of their source at intervals.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use crate::facts::published::{FactsFolder, Gathered, GatheredRow};
use crate::facts::store::Edition;
use crate::vocab::clock::Clock;

/// Time between rows and their merge. Each new edition is joined with the index.
const MERGE_AFTER: Duration = Duration::from_secs(60);
/// The same for rows that a member waits for.
const MERGE_AWAITED_AFTER: Duration = Duration::from_secs(2);
/// Maximum batches that are written at a time.
const BATCHES_MAX: usize = 100;
/// Sources whose rows come one by one.
const SOURCES: [Gathered; 2] = [Gathered::Archive, Gathered::Life];
/// Days for which a registration is known well enough: watched names are verified every day.
const LIFE_KNOWN_DAYS: i32 = 30;

/// Rows of a source.
pub struct Batch {
    pub source: Gathered,
    pub rows: Vec<GatheredRow>,
    /// Whether a member waits for them.
    pub is_awaited: bool,
}

/// The end to which workers send rows.
pub type Rows = mpsc::UnboundedSender<Batch>;

/// The worker.
pub struct Gather {
    folder: FactsFolder,
    clock: Clock,
    batches: mpsc::UnboundedReceiver<Batch>,
    written: u64,
}

impl Gather {
    pub fn new(folder: FactsFolder, clock: Clock) -> (Gather, Rows) {
        let (rows, batches) = mpsc::unbounded_channel();
        (Gather { folder, clock, batches, written: 0 }, rows)
    }

    /// Keeps rows until all senders are gone. First, rows that the process before left are merged.
    pub async fn run(mut self) {
        self.merge().await;
        let mut merge_at: Option<Instant> = None;
        let mut batches = Vec::new();
        loop {
            let due = merge_at.unwrap_or_else(Instant::now);
            tokio::select! {
                count = self.batches.recv_many(&mut batches, BATCHES_MAX) => {
                    if count == 0 {
                        break;
                    }
                    let is_awaited = batches.iter().any(|batch| batch.is_awaited);
                    let after = if is_awaited { MERGE_AWAITED_AFTER } else { MERGE_AFTER };
                    if self.write(std::mem::take(&mut batches)).await {
                        let at = Instant::now() + after;
                        merge_at = Some(merge_at.map_or(at, |due| due.min(at)));
                    }
                }
                () = sleep_until(due), if merge_at.is_some() => {
                    self.merge().await;
                    merge_at = None;
                }
            }
        }
        if merge_at.is_some() {
            self.merge().await;
        }
    }

    /// Writes batches to disk; false if nothing in them is new.
    async fn write(&mut self, batches: Vec<Batch>) -> bool {
        let (folder, began) = (self.folder.clone(), self.clock.now().timestamp_millis());
        let file = format!("{began}-{}", self.written);
        self.written += 1;
        let write = move || {
            let mut any = false;
            for source in SOURCES {
                let of_source = batches.iter().filter(|batch| batch.source == source);
                let mut rows: Vec<_> = of_source.flat_map(|it| it.rows.iter().cloned()).collect();
                if source == Gathered::Life && !rows.is_empty() {
                    rows = new_lives(&folder, rows);
                }
                any |= !rows.is_empty();
                if let Err(error) = folder.add_rows(source, &file, &rows) {
                    tracing::error!(%source, %error, "facts cannot be written; they are lost");
                }
            }
            any
        };
        // A panic is logged.
        spawn_blocking(write).await.unwrap_or(false)
    }

    async fn merge(&self) {
        let (folder, today) = (self.folder.clone(), self.clock.today());
        let merge = move || {
            for source in SOURCES {
                if let Err(error) = folder.merge_gathered(source, today) {
                    tracing::error!(%source, %error, "gathered facts cannot be merged; they wait");
                }
            }
        };
        // A panic is logged.
        let _ = spawn_blocking(merge).await;
    }
}

/// Returns the rows that the edition in use lacks. Otherwise there would be a new edition each minute.
fn new_lives(folder: &FactsFolder, mut rows: Vec<GatheredRow>) -> Vec<GatheredRow> {
    let Ok(known) = Edition::open(&folder.edition(Gathered::Life.as_str())) else { return rows };
    rows.retain(|row| {
        let Ok(Some(stored)) = known.row(row.name.as_str().as_bytes()) else { return true };
        let age = row.as_of.days_since(known.as_of(&stored));
        known.values(&stored) != row.values || age >= LIFE_KNOWN_DAYS
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Value;
    use crate::vocab::name::DomainName;

    struct Site {
        _data: tempfile::TempDir,
        folder: FactsFolder,
    }

    impl Site {
        fn new() -> Site {
            let data = tempfile::tempdir().expect("a folder");
            let folder = FactsFolder::new(data.path());
            Site { _data: data, folder }
        }

        fn gather(&self) -> (tokio::task::JoinHandle<()>, Rows) {
            let clock = Clock::pinned_to("2026-11-29".parse().expect("a day"));
            let (gather, rows) = Gather::new(self.folder.clone(), clock);
            (tokio::spawn(gather.run()), rows)
        }

        /// Returns the day on which a row of the edition in use was observed.
        fn seen_on(&self, source: Gathered, name: &str) -> Option<String> {
            let edition = Edition::open(&self.folder.edition(source.as_str())).ok()?;
            let row = edition.row(name.as_bytes()).expect("readable")?;
            Some(edition.as_of(&row).to_string())
        }
    }

    fn life(name: &str, as_of: &str, registered: &str) -> Batch {
        let row = GatheredRow {
            name: DomainName::parse(name).expect("a name"),
            as_of: as_of.parse().expect("a day"),
            values: vec![Some(Value::Date(registered.parse().expect("a day")))],
        };
        Batch { source: Gathered::Life, rows: vec![row], is_awaited: false }
    }

    #[tokio::test]
    async fn rows_survive_the_process_and_a_known_registration_is_not_written_again() {
        let site = Site::new();
        let rows = life("left.com", "2026-11-20", "2001-02-03").rows;
        site.folder.add_rows(Gathered::Life, "before", &rows).expect("added");
        let (worker, rows) = site.gather();
        let sent = [
            life("a.com", "2026-11-20", "2001-02-03"),
            life("b.com", "2026-10-20", "2001-02-03"),
            life("c.com", "2026-11-20", "2001-02-03"),
        ];
        sent.into_iter().for_each(|batch| rows.send(batch).expect("the worker runs"));
        drop(rows);
        worker.await.expect("no panic");
        assert_eq!(site.seen_on(Gathered::Life, "left.com").as_deref(), Some("2026-11-20"));
        let (worker, rows) = site.gather();
        let again = [
            life("a.com", "2026-11-29", "2001-02-03"),
            life("b.com", "2026-11-29", "2001-02-03"),
            life("c.com", "2026-11-29", "2026-11-28"),
        ];
        again.into_iter().for_each(|batch| rows.send(batch).expect("the worker runs"));
        drop(rows);
        worker.await.expect("no panic");
        let seen = ["a.com", "b.com", "c.com"].map(|name| site.seen_on(Gathered::Life, name));
        let seen = seen.each_ref().map(|day| day.as_deref().unwrap_or("none"));
        assert_eq!(seen, ["2026-11-20", "2026-11-29", "2026-11-29"], "known, old, another");
    }
}
