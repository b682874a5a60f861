//! The folder `inbox/` in the data folder. Lists that arrive there are ingested, then one generation
//! is built for all of them.
//!
//! A file is ingested once it is complete: its name does not start with a dot or end like that of a partial upload, it
//! was unchanged between two scans, and no writer is known to have it open. A text without a line break at its end may
//! be truncated, so it waits for another [`SCANS_UNENDED`] scans. After its ingest the file moves to `done/`, or to
//! `refused/` with a note that gives the reason. If a file is written to after that, it was not complete, so it moves
//! back and is ingested again. A list is refused if it is unusable, or if its ingest failed [`TRIES_MAX`] times. After
//! temporary failures (a full disk, another ingest, a stopping server) it stays in place, and the failure is not
//! counted.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use chrono::{DateTime, TimeDelta, Utc};
use metrics::{Counter, counter};
use tokio::time::{MissedTickBehavior, interval};

use crate::feeds;
use crate::open_files::OpenFiles;
use crate::outcome::{ListOutcome, Outcome};
use crate::queue::{Queue, QueueError};
use crate::request::{Ingest, Lists, Rebuild, Task};
use crate::run::FileVersion;
use crate::vocab::clock::Clock;
use crate::vocab::new_file;

/// The folder in the data folder.
const FOLDER: &str = "inbox";
const DONE: &str = "done";
const REFUSED: &str = "refused";
/// Marker file that exists while the corpus may hold lists that are not in a generation. A server
/// that finds it at startup rebuilds the index.
const BEHIND: &str = ".rebuild";
/// File extensions of partial uploads.
const UNFINISHED: [&str; 6] = ["part", "partial", "tmp", "temp", "crdownload", "filepart"];
/// Number of scans to skip after a failure.
const SCANS_SKIPPED: u32 = 12;
/// Number of scans for which a text without a final line break must be unchanged, because its
/// writer may only be pausing.
const SCANS_UNENDED: u32 = 12;
/// Time within which another file of the same name may be the remainder of a list.
const REST_WITHIN: TimeDelta = TimeDelta::hours(1);
/// Number of leading bytes that are compared if two files have the same name.
const COMPARED_BYTES: u64 = 64 << 10;
/// Number of failed ingests, by a crash or an internal error, after which a list is refused.
const TRIES_MAX: u32 = 3;
/// Maximum number of moved lists that are watched for late writes.
const PUT_AWAY_MAX: usize = 1_000;
/// Ending of the note beside a refused list.
const NOTE: &str = ".why.txt";

/// The worker that watches the inbox.
pub struct Inbox {
    pub queue: Queue,
    /// Time between two scans.
    pub period: Duration,
    pub status: Arc<InboxStatus>,
    pub clock: Clock,
}

/// Counts of lists since startup.
#[derive(Clone, Debug, Default)]
pub struct InboxCounts {
    pub added: u64,
    pub already_held: u64,
    pub refused: u64,
    /// When the last list was processed.
    pub last_at: Option<DateTime<Utc>>,
    /// When the folder was last read.
    pub scanned_at: Option<DateTime<Utc>>,
    /// Names of the waiting files.
    pub waiting: Vec<String>,
    /// Names of entries that are not files, which are ignored.
    pub ignored: Vec<String>,
    /// Name of the last list whose writer seems to reopen its path for every piece.
    pub in_pieces: Option<String>,
    /// Why nothing can be ingested at the moment.
    pub problem: Option<String>,
}

/// The state of the inbox, shared with the pages that show it.
#[derive(Debug, Default)]
pub struct InboxStatus(Mutex<InboxCounts>);

impl InboxStatus {
    /// Returns a copy of the state.
    pub fn counts(&self) -> InboxCounts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, InboxCounts> {
        self.0.lock().expect("no code panics holding this lock")
    }
}

/// The files found by a scan.
type Files = BTreeMap<PathBuf, FileVersion>;

/// The entries found by a scan.
#[derive(Default)]
struct Entries {
    files: Files,
    /// Names of folders, pipes and dangling links, each with its kind.
    ignored: BTreeMap<String, &'static str>,
}

/// State between scans.
#[derive(Default)]
struct Memory {
    seen: Files,
    /// Number of failed attempts for each file.
    failures: HashMap<PathBuf, (FileVersion, u32)>,
    /// `None` if the system cannot watch files. Then only sizes and times are compared.
    open: Option<OpenFiles>,
    /// Files for which an open writer was already logged.
    awaited: HashSet<PathBuf>,
    /// Texts without a final line break, with the number of scans during which they were unchanged.
    unended: HashMap<PathBuf, (FileVersion, u32)>,
    /// Ignored entries that were already logged.
    ignored: BTreeMap<String, &'static str>,
    /// The last lists that were moved, oldest first.
    put_away: VecDeque<PutAway>,
}

/// A list that was moved to `done/` or `refused/`.
struct PutAway {
    /// Former path of the list in the inbox.
    from: PathBuf,
    to: PathBuf,
    /// Version of the file at the time of the ingest.
    version: FileVersion,
    at: DateTime<Utc>,
}

/// Label values for the outcome of a list in metrics.
const OUTCOMES: [&str; 3] = ["added", "already", "refused"];

fn lists_total(outcome: &'static str) -> Counter {
    counter!("dropdex_inbox_lists_total", "outcome" => outcome)
}

impl Inbox {
    /// Watches the folder until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut ticks = interval(self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut memory, mut skipped) = (Memory::default(), 0);
        memory.open = OpenFiles::new()
            .inspect_err(|err| {
                tracing::warn!(%err, "the inbox is not notified of writers; it compares sizes and times only");
            })
            .ok();
        // Registers the counters at 0 so that `rate()` sees the first increment.
        OUTCOMES.into_iter().for_each(|outcome| lists_total(outcome).increment(0));
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                _ = ticks.tick() => {}
            }
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            let scanned = tokio::select! {
                biased;
                () = &mut stop => return,
                scanned = self.scan(&mut memory) => scanned,
            };
            if let Err(err) = &scanned {
                tracing::warn!(error = format!("{err:#}"), "lists in the inbox wait");
                skipped = SCANS_SKIPPED;
            }
            self.status.lock().problem = scanned.err().map(|err| format!("{err:#}"));
        }
    }

    fn folder(&self) -> PathBuf {
        self.queue.site().data.join(FOLDER)
    }

    /// Ingests the files that are unchanged since the last scan, then rebuilds once if any was new.
    async fn scan(&self, memory: &mut Memory) -> anyhow::Result<()> {
        let folder = self.folder();
        take_back(&mut memory.put_away);
        let found = tokio::task::spawn_blocking(move || entries(&folder)).await?;
        let found = found.with_context(|| format!("cannot read {}", self.folder().display()))?;
        let Entries { files: found, ignored } = found;
        memory.ignore(ignored);
        memory.update_open(&self.folder());
        let unchanged: Vec<(PathBuf, FileVersion)> = found
            .iter()
            .filter(|(path, version)| memory.seen.get(*path) == Some(*version))
            .map(|(path, version)| (path.clone(), *version))
            .collect();
        memory.awaited.retain(|path| found.contains_key(path));
        memory.failures.retain(|path, (version, _)| found.get(path) == Some(version));
        memory.unended.retain(|path, (version, _)| found.get(path) == Some(version));
        memory.seen = found;
        self.show(memory);
        let mut all = Ok(());
        for (path, version) in unchanged {
            if memory.is_open(&path) || memory.may_be_cut(&path, version) {
                continue;
            }
            if let Some(name) = memory.rest_of(&path, self.clock.now()) {
                self.status.lock().in_pieces = Some(name);
            }
            match self.take(&path, version, &mut memory.failures).await {
                Ok(to) => {
                    if memory.put_away.len() == PUT_AWAY_MAX {
                        memory.put_away.pop_front();
                    }
                    let from = path.clone();
                    let at = self.clock.now();
                    memory.put_away.extend(to.map(|to| PutAway { from, to, version, at }));
                    memory.unended.remove(&path);
                    memory.seen.remove(&path);
                    self.show(memory);
                }
                // The other files are still ingested.
                Err(err) => all = all.and(Err(err)),
            }
        }
        all.and(self.rebuild().await)
    }

    /// Publishes the findings of a scan for the status page.
    fn show(&self, memory: &Memory) {
        let mut counts = self.status.lock();
        counts.scanned_at = Some(self.clock.now());
        counts.waiting = memory.seen.keys().map(|path| file_name(path)).collect();
        counts.ignored = memory.ignored.keys().cloned().collect();
    }

    /// Ingests a list and moves it out of the inbox. Returns the new path of the list, unless
    /// another file has replaced it meanwhile.
    async fn take(
        &self,
        path: &Path,
        version: FileVersion,
        failures: &mut HashMap<PathBuf, (FileVersion, u32)>,
    ) -> anyhow::Result<Option<PathBuf>> {
        // The marker is written first, so that the next server rebuilds if this one dies right
        // after an ingest.
        let marker = self.folder().join(BEHIND);
        let mut may_be_behind = marker.exists();
        new_file::open(&marker).with_context(|| format!("cannot write {}", marker.display()))?;
        let outcome = match self.ingest(path).await {
            Ok(outcome) => outcome,
            Err(Failed::Passing(err)) => return Err(err.context(path.display().to_string())),
            Err(Failed::Hard(err)) => {
                let (_, tries) = failures.entry(path.to_owned()).or_insert((version, 0));
                *tries += 1;
                if *tries < TRIES_MAX {
                    return Err(err.context(format!(
                        "{}: the ingest failed, try {tries} of {TRIES_MAX}",
                        path.display()
                    )));
                }
                may_be_behind = true;
                let reason = format!("the ingest failed {TRIES_MAX} times: {err:#}");
                ListOutcome::Refused { reason }
            }
        };
        failures.remove(path);
        if !may_be_behind && !outcome.has_added() {
            fs::remove_file(&marker).with_context(|| format!("{}", marker.display()))?;
        }
        let file = path.file_name().unwrap_or_default().display();
        // If another file has replaced it meanwhile, a later scan ingests that file.
        let place =
            if FileVersion::read(path).is_ok_and(|now| now == version) {
                let place = self.put_away(path, &outcome);
                Some(place.with_context(|| {
                    format!("{} cannot be moved out of the inbox", path.display())
                })?)
            } else {
                tracing::warn!(%file, "a list in the inbox was replaced during its ingest");
                None
            };
        self.count(&outcome);
        match outcome {
            ListOutcome::Refused { reason } => {
                tracing::warn!(%file, reason, "a list in the inbox is refused");
            }
            ListOutcome::Added { .. } => tracing::info!(%file, "a list in the inbox is added"),
            ListOutcome::Compared { zone, lists } => {
                tracing::info!(%file, zone, lists, "a zone file in the inbox is compared");
            }
            ListOutcome::AlreadyHeld { .. } => {
                tracing::info!(%file, "a list in the inbox was ingested before");
            }
        }
        Ok(place)
    }

    async fn ingest(&self, path: &Path) -> Result<ListOutcome, Failed> {
        let lists = Lists::Files { files: vec![path.to_owned()], format: None };
        let task = Ingest {
            lists,
            drop_date: None,
            observed_at: None,
            origin: None,
            zone: None,
            rebuild: false,
        };
        let Outcome { mut lists, failure, notes, .. } =
            match self.queue.run(Task::Ingest(task)).await {
                Ok(outcome) => outcome,
                Err(err @ QueueError::Crashed(_)) => return Err(Failed::Hard(err.into())),
                Err(err) => return Err(Failed::Passing(err.into())),
            };
        for note in notes {
            tracing::info!(file = file_name(path), note, "a note on a list in the inbox");
        }
        match failure {
            Some(failure) if failure.is_transient => Err(Failed::Passing(anyhow!(failure.message))),
            Some(failure) => Err(Failed::Hard(anyhow!(failure.message))),
            None => match lists.pop() {
                Some(list) => Ok(list.outcome),
                None => Err(Failed::Hard(anyhow!("the outcome has no list"))),
            },
        }
    }

    fn count(&self, outcome: &ListOutcome) {
        let mut counts = self.status.lock();
        let (count, word) = match outcome {
            ListOutcome::Added { .. } | ListOutcome::Compared { .. } => {
                (&mut counts.added, OUTCOMES[0])
            }
            ListOutcome::AlreadyHeld { .. } => (&mut counts.already_held, OUTCOMES[1]),
            ListOutcome::Refused { .. } => (&mut counts.refused, OUTCOMES[2]),
        };
        *count += 1;
        lists_total(word).increment(1);
        counts.last_at = Some(self.clock.now());
    }

    fn put_away(&self, path: &Path, outcome: &ListOutcome) -> io::Result<PathBuf> {
        let name = path.file_name().unwrap_or(OsStr::new("list"));
        let is_refused = matches!(outcome, ListOutcome::Refused { .. });
        let folder = self.folder().join(if is_refused { REFUSED } else { DONE });
        let place = free_path(&folder, name);
        if let ListOutcome::Refused { reason } = outcome {
            new_file::create(&note_of(&place))?.write_all(format!("{reason}\n").as_bytes())?;
        }
        fs::rename(path, &place)?;
        Ok(place)
    }

    async fn rebuild(&self) -> anyhow::Result<()> {
        let marker = self.folder().join(BEHIND);
        if !marker.exists() {
            return Ok(());
        }
        // The ingest for which the marker was written may have failed.
        let task = Rebuild { compact: false, only_if_behind: true };
        let outcome = match self.queue.run(Task::Rebuild(task)).await {
            // The queue retries automatically; the marker stays until a later scan finds no work.
            Err(QueueError::Paused(_)) => return Ok(()),
            outcome => outcome?,
        };
        if let Some(error) = outcome.error() {
            bail!("the index was not rebuilt: {error}");
        }
        fs::remove_file(&marker).with_context(|| format!("{}", marker.display()))
    }
}

impl Memory {
    /// Reads which files are open for writing.
    fn update_open(&mut self, folder: &Path) {
        let Some(open) = &mut self.open else { return };
        if let Err(err) = open.watch(folder).and_then(|()| open.update()) {
            tracing::warn!(%err, "the inbox cannot be watched for writers; it compares sizes and times only");
            self.open = None;
        }
    }

    /// Records the ignored entries and logs each once.
    fn ignore(&mut self, ignored: BTreeMap<String, &'static str>) {
        for (name, kind) in &ignored {
            if self.ignored.get(name) != Some(kind) {
                tracing::warn!(
                    entry = name,
                    kind,
                    "the inbox takes files only; this entry is ignored"
                );
            }
        }
        self.ignored = ignored;
    }

    /// Returns true if a text that ends in the middle of a line must wait for the rest. Logs it
    /// once.
    fn may_be_cut(&mut self, path: &Path, version: FileVersion) -> bool {
        // The ingest will report an unreadable file.
        if !feeds::ends_within_a_line(path).unwrap_or(false) {
            return false;
        }
        let (_, scans) = self.unended.entry(path.to_owned()).or_insert((version, 0));
        *scans += 1;
        if *scans == 1 {
            tracing::info!(
                file = file_name(path),
                "the last line of a list in the inbox has no line end; it waits for the rest"
            );
        }
        *scans <= SCANS_UNENDED
    }

    /// Returns the name of a file that seems to be the remainder or a longer version of a list that was
    /// already read, because its writer reopens the path for every piece.
    fn rest_of(&self, path: &Path, now: DateTime<Utc>) -> Option<String> {
        let is_recent = |before: &&PutAway| now - before.at <= REST_WITHIN;
        let mut recent = self.put_away.iter().rev().filter(is_recent);
        let before = recent.find(|before| before.from == path)?;
        let (old, new) = (start_of(&before.to).ok()?, start_of(path).ok()?);
        let line = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec);
        // A corrected list starts with the same header as the original.
        if line(&old) == line(&new) && !new.starts_with(&old) {
            return None;
        }
        let file = file_name(path);
        tracing::warn!(
            file,
            "a list of this name was read a short time ago: its writer seems to append in pieces, of which \
             each is read as a list; let it write under a name that ends in .part, and rename the file when \
             it is whole"
        );
        Some(file)
    }

    /// Returns whether a writer has the file open. Logs it once.
    fn is_open(&mut self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        let is_open = self.open.as_ref().is_some_and(|open| open.contains(name));
        if is_open && self.awaited.insert(path.to_owned()) {
            tracing::info!(file = %name.display(), "a list in the inbox is still open for writing; it waits");
        }
        is_open
    }
}

/// Moves lists that were written to after their move back to the inbox.
fn take_back(put_away: &mut VecDeque<PutAway>) {
    put_away.retain(|PutAway { from, to, version, .. }| {
        // A deleted or replaced list is no longer watched.
        let Ok(now) = FileVersion::read(to) else { return false };
        if !now.is_later_state_of(version) {
            return now == *version;
        }
        let file = from.file_name().unwrap_or(OsStr::new("list"));
        let folder = from.parent().unwrap_or(Path::new("."));
        match fs::rename(to, free_path(folder, file)) {
            Ok(()) => {
                // Only refused lists have a note.
                let _ = fs::remove_file(note_of(to));
                tracing::warn!(
                    file = %file.display(),
                    "a list was written to after it had been read; it is read again"
                );
                false
            }
            Err(err) => {
                tracing::warn!(file = %to.display(), %err, "the list grew and cannot be moved back");
                true
            }
        }
    });
}

/// Returns the path of the note beside a refused list.
fn note_of(place: &Path) -> PathBuf {
    let mut note = place.as_os_str().to_owned();
    note.push(NOTE);
    note.into()
}

/// Why a list was neither added nor refused.
enum Failed {
    /// The failure may be temporary.
    Passing(anyhow::Error),
    /// A crash or an internal error, which counts as a failed attempt.
    Hard(anyhow::Error),
}

/// Returns a free path for `name` in `folder`, with a number if the plain path is taken.
fn free_path(folder: &Path, name: &OsStr) -> PathBuf {
    let plain = folder.join(name);
    let numbered = (2..).map(|number: u32| {
        let mut name = name.to_owned();
        name.push(format!(".{number}"));
        folder.join(name)
    });
    std::iter::once(plain).chain(numbered).find(|path| !path.exists()).expect("numbers do not end")
}

/// Reads the first bytes of a file.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(COMPARED_BYTES).read_to_end(&mut start)?;
    Ok(start)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the files that may be lists, and the entries that cannot be. Creates missing folders.
fn entries(folder: &Path) -> io::Result<Entries> {
    let own = [DONE, REFUSED].map(|name| folder.join(name));
    own.iter().try_for_each(|folder| new_file::create_folder(folder))?;
    let mut entries = Entries::default();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if is_unfinished(&path) || own.contains(&path) {
            continue;
        }
        let kind = match FileVersion::read(&path) {
            Ok(version) if version.is_file => {
                entries.files.insert(path, version);
                continue;
            }
            Ok(_) if path.is_dir() => "folder",
            Ok(_) => "pipe, socket or device",
            Err(_) if entry.file_type().is_ok_and(|kind| kind.is_symlink()) => "link to nothing",
            // The file has disappeared.
            Err(_) => continue,
        };
        entries.ignored.insert(file_name(&path), kind);
    }
    Ok(entries)
}

/// Returns the files in the inbox of a data folder that wait to be ingested.
pub fn waiting(data: &Path) -> Vec<PathBuf> {
    // Without an inbox, no files wait.
    let entries = fs::read_dir(data.join(FOLDER)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.is_file());
    paths.filter(|path| !is_hidden(path)).collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().unwrap_or_default().as_encoded_bytes().starts_with(b".")
}

fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    is_hidden(path)
        || name.ends_with(b"~")
        || UNFINISHED.iter().any(|unfinished| ending.eq_ignore_ascii_case(unfinished))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_files_are_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in
            ["a.csv", "b.csv.gz", "list", ".hidden", "c.csv.part", "d.TMP", "e~", "f.filepart"]
        {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let names = |files: Files| -> Vec<String> {
            let name = |path: &PathBuf| path.file_name().expect("one").to_string_lossy().into();
            files.keys().map(name).collect()
        };
        let first = entries(folder.path()).expect("read").files;
        assert_eq!(names(first.clone()), ["a.csv", "b.csv.gz", "list"]);
        fs::write(folder.path().join("a.csv"), "longer than it was").expect("written");
        let second = entries(folder.path()).expect("read").files;
        let same: Files =
            second.into_iter().filter(|(path, it)| first.get(path) == Some(it)).collect();
        assert_eq!(names(same), ["b.csv.gz", "list"]);
    }

    #[test]
    fn entries_that_are_no_files_are_ignored_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("monday")).expect("made");
        std::os::unix::fs::symlink("/nonexistent", path("gone.csv")).expect("linked");
        std::os::unix::net::UnixListener::bind(path("socket")).expect("bound");
        fs::write(path("a.csv"), "a").expect("written");
        std::os::unix::fs::symlink(path("a.csv"), path("b.csv")).expect("linked");
        let Entries { files, ignored } = entries(folder.path()).expect("read");
        assert_eq!(files.len(), 2);
        let expected = [
            ("gone.csv", "link to nothing"),
            ("monday", "folder"),
            ("socket", "pipe, socket or device"),
        ];
        let ignored: Vec<_> = ignored.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        assert_eq!(ignored, expected);
    }

    #[test]
    fn a_text_that_ends_within_a_line_waits_for_a_number_of_scans() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txt");
        let mut memory = Memory::default();
        fs::write(&path, "a.com\nb.co").expect("written");
        let version = FileVersion::read(&path).expect("there");
        let scans = (0..100).take_while(|_| memory.may_be_cut(&path, version)).count();
        assert_eq!(scans, SCANS_UNENDED as usize);
        for whole in ["a.com\nb.com\n", "[\"a.com\"]", ""] {
            fs::write(&path, whole).expect("written");
            assert!(!Memory::default().may_be_cut(&path, version), "{whole:?}");
        }
    }

    #[test]
    fn the_rest_of_a_list_that_was_read_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("a.csv"), folder.path().join("done.csv"));
        let at = DateTime::UNIX_EPOCH;
        for (old, new, minutes, is_rest) in [
            ("domain,drop_date\na.com,2026-03-14\nb.co", "m,2026-03-14\n", 1, true),
            ("a.com\nb.com\n", "c.com\n", 1, true),
            ("a.com\nb.com\n", "a.com\nb.com\nc.com\n", 1, true),
            ("domain\na.com\n", "domain\nb.com\n", 1, false),
            ("a.com\nb.com\n", "c.com\n", 24 * 60, false),
        ] {
            fs::write(&to, old).expect("written");
            fs::write(&from, new).expect("written");
            let version = FileVersion::read(&to).expect("there");
            let before = PutAway { from: from.clone(), to: to.clone(), version, at };
            let memory = Memory { put_away: [before].into(), ..Memory::default() };
            let rest = memory.rest_of(&from, at + TimeDelta::minutes(minutes));
            assert_eq!(rest.is_some(), is_rest, "{old:?} {new:?}");
        }
    }

    #[test]
    fn files_that_were_put_away_are_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        for expected in ["list.csv", "list.csv.2", "list.csv.3"] {
            let place = free_path(folder.path(), OsStr::new("list.csv"));
            assert_eq!(place, folder.path().join(expected));
            fs::write(place, "").expect("written");
        }
    }
}
