//! State of the sources, in `sources/` of the data folder: `enabled.json` contains the choices made
//! with `dropdex sources enable` or on the page for a new server, `contact.json` the contact given there,
//! and `NAME/state.json` the results of a source's last runs.
//!
//! `NAME/lock` is locked while a source is fetched, so that a command and a server do not fetch it at the
//! same time. `NAME/` also contains an unfinished download, and `NAME/refused/` the last refused list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use chrono::{DateTime, TimeDelta, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::presets::Content;
use crate::settings::{Contact, Settings, Source};
use crate::vocab::named::named_enum;
use crate::vocab::new_file;
use crate::vocab::tables;
use crate::vocab::whole_file;

const FOLDER: &str = "sources";
const CHOICES: &str = "enabled.json";
const CONTACT: &str = "contact.json";
pub(super) const STATE: &str = "state.json";
pub(super) const LOCK: &str = "lock";
/// Maximum URLs in a state: more than a month of two lists a day.
const HELD_MAX: usize = 80;
/// Pauses before the second, third and fourth attempt after temporary failures.
const RETRY_SECONDS: [i64; 3] = [15, 60, 300];
/// Number of runs that determine the usual number of rows.
const SIZES_MAX: usize = 15;
/// A list with at most 1/N of the usual number of rows, where N is this number, counts as shrunk.
/// Usual numbers below [`USUAL_LEAST`] are ignored.
const SHRUNK_TIMES: u64 = 10;
const USUAL_LEAST: u64 = 20;
/// Shortest and longest pause that a server may request.
const PAUSE_MIN: TimeDelta = TimeDelta::seconds(15);
const PAUSE_MAX: TimeDelta = TimeDelta::hours(24);

/// An operator's choice to enable or disable a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub enabled: bool,
    /// Time at which the choice was made and, for a source with terms, the terms were accepted.
    pub at: DateTime<Utc>,
}

/// The choices, by name of source.
pub type Choices = BTreeMap<String, Choice>;

/// An ingested list: validators for conditional requests, and its hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub bytes: u64,
    /// SHA-256 of the file in hex.
    pub sha256: String,
    pub at: DateTime<Utc>,
}

/// A zone that the account has requested at CZDS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub zone: String,
    /// Status as named by the service: `Approved`, `Pending`, `Expired`.
    pub status: String,
    /// Time at which the access ends, in the format of the service.
    pub expires: Option<String>,
}

/// Stored state of the list at a URL.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The last ingested list.
    pub held: Option<Held>,
    /// An interrupted download.
    pub partial: Option<Partial>,
}

/// The version of a list whose download was interrupted. The remaining bytes must be from the same
/// version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "StoredPartial")]
pub struct Partial {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// Size of the whole file in bytes.
    pub total: Option<u64>,
}

/// Stored form of a [`Partial`]; until 2026-11 it was only the validator.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredPartial {
    Validator(String),
    #[serde(rename_all = "camelCase")]
    Version {
        etag: Option<String>,
        last_modified: Option<String>,
        total: Option<u64>,
    },
}

impl From<StoredPartial> for Partial {
    fn from(stored: StoredPartial) -> Partial {
        match stored {
            StoredPartial::Validator(tag) if tag.starts_with('"') => {
                Partial { etag: Some(tag), ..Partial::default() }
            }
            StoredPartial::Validator(date) => {
                Partial { last_modified: Some(date), ..Partial::default() }
            }
            StoredPartial::Version { etag, last_modified, total } => {
                Partial { etag, last_modified, total }
            }
        }
    }
}

impl Partial {
    /// Returns the value of `If-Range`, a strong ETag or the date. Without either, the download cannot
    /// be resumed.
    pub fn validator(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        strong.or(self.last_modified.as_deref())
    }

    /// Whether a part with these facts may be from the same version. Facts that one of them lacks
    /// are ignored.
    pub fn fits(&self, other: &Partial) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        same(&self.etag, &other.etag)
            && same(&self.last_modified, &other.last_modified)
            && same(&self.total, &other.total)
    }
}

/// Why the last run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The error, worded so that an operator can act on it.
    pub text: String,
    /// Time of the first of the consecutive failures.
    pub since: DateTime<Utc>,
    /// Number of quick retries used.
    pub tries: u32,
    /// Whether retries stop until an operator acts.
    pub waits: bool,
}

/// Time at which a failure is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The failure is retried three times within minutes, then at the next run.
    Soon,
    /// The failure is retried when the server allows it.
    After(TimeDelta),
    /// The failure is retried at the next run of the schedule.
    NextRun,
    /// The failure is retried when the operator requests it.
    OnRequest,
}

/// State of a source after its last run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceState {
    /// URLs in the settings at the last run. New ones are due at once.
    pub addresses: Vec<String>,
    /// The last ingested list of each URL.
    pub held: BTreeMap<String, Held>,
    /// Why the newest list of a URL was refused; the previous one stays in use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// The reason for which the newest edition of facts is held back. The one before stays in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
    /// Interrupted downloads, by URL.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub partials: BTreeMap<String, Partial>,
    /// Warnings of the last run, which fetched the lists nevertheless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<String>,
    /// Zones of CZDS; empty for other sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// Time of the last run that reached the source without a failure.
    pub last_success: Option<DateTime<Utc>>,
    /// When a run last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<DateTime<Utc>>,
    /// Time at which a list was last ingested.
    pub last_list: Option<DateTime<Utc>>,
    pub rows: u64,
    pub rejected: u64,
    /// Number of rows of the latest lists, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u64>,
    /// Version of the table stored for the next start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub problem: Option<Problem>,
    /// Time of the next run; `None` means at once.
    pub next_run: Option<DateTime<Utc>>,
}

impl SourceState {
    /// Whether the source is due.
    pub fn is_due(&self, source: &Source, now: DateTime<Utc>) -> bool {
        if self.addresses != addresses(source) {
            return true;
        }
        // A run in the far future was planned with a different clock.
        let is_due = |next: DateTime<Utc>| {
            next <= now || next > now + source.schedule.interval() + PAUSE_MAX
        };
        !self.is_stopped() && self.next_run.is_none_or(is_due)
    }

    /// Whether the source waits for an operator.
    pub fn is_stopped(&self) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.waits)
    }

    /// Returns the stored state of the list at a URL.
    pub fn known(&self, url: &Url) -> Known {
        let (held, partial) = (self.held.get(url.as_str()), self.partials.get(url.as_str()));
        Known { held: held.cloned(), partial: partial.cloned() }
    }

    /// Stores the findings of a fetch.
    pub fn set_known(&mut self, url: &Url, known: Known) {
        if let Some(held) = known.held {
            self.held.insert(url.as_str().to_owned(), held);
        }
        match known.partial {
            Some(partial) => self.partials.insert(url.as_str().to_owned(), partial),
            None => self.partials.remove(url.as_str()),
        };
    }

    /// Records a run without failures. `jitter` is from 0 to 1.
    pub fn succeeded(&mut self, source: &Source, now: DateTime<Utc>, jitter: f64) {
        self.addresses = addresses(source);
        self.last_success = Some(now);
        self.problem = None;
        self.next_run = Some(next_run(source, now, jitter));
        // Dated URLs are new each day, so only the newest lists are remembered.
        while source.is_dated() && self.held.len() > HELD_MAX {
            let oldest = self.held.iter().min_by_key(|(_, held)| held.at);
            if let Some(url) = oldest.map(|(url, _)| url.clone()) {
                self.held.remove(&url);
            }
        }
    }

    /// Records a failed run and plans the next one. `jitter` is from 0 to 1.
    pub fn failed(
        &mut self,
        source: &Source,
        text: String,
        retry: Retry,
        now: DateTime<Utc>,
        jitter: f64,
    ) {
        self.addresses = addresses(source);
        let (since, tries) =
            self.problem.as_ref().map_or((now, 0), |problem| (problem.since, problem.tries));
        let scheduled = next_run(source, now, jitter);
        let pause = |pause: TimeDelta| now + scaled(pause, 1.0 + jitter / 4.0);
        let (next, tries) = match retry {
            Retry::Soon => match RETRY_SECONDS.get(tries as usize) {
                Some(&seconds) => (pause(TimeDelta::seconds(seconds)).min(scheduled), tries + 1),
                None => (scheduled, 0),
            },
            Retry::After(asked) => (pause(asked.clamp(PAUSE_MIN, PAUSE_MAX)), tries),
            Retry::NextRun | Retry::OnRequest => (scheduled, 0),
        };
        self.next_run = Some(next);
        self.last_failure = Some(now);
        self.problem = Some(Problem { text, since, tries, waits: retry == Retry::OnRequest });
    }

    /// Records the number of rows of each list of a run.
    pub fn grew(&mut self, rows: u64) {
        if self.sizes.len() >= SIZES_MAX {
            self.sizes.remove(0);
        }
        self.sizes.push(rows);
    }

    /// Describes by how much the last list is shorter than earlier ones.
    fn shrunk(&self) -> Option<String> {
        let (&last, before) = self.sizes.split_last()?;
        let mut before = before.to_vec();
        before.sort_unstable();
        let &usual = before.get(before.len() / 2)?;
        let is_short = usual >= USUAL_LEAST && last.saturating_mul(SHRUNK_TIMES) <= usual;
        is_short.then(|| {
            let percent = last * 100 / usual;
            format!(
                "{last} rows, {percent} % of the usual {usual}; check the list of the publisher"
            )
        })
    }

    /// Returns the warnings of the last run, if it fetched the lists nevertheless.
    pub fn warnings(&self) -> Vec<String> {
        self.odd.iter().cloned().chain(self.shrunk()).collect()
    }

    /// Makes the source due, regardless of its last run.
    pub fn make_due(&mut self) {
        self.next_run = None;
        self.problem = None;
    }
}

fn addresses(source: &Source) -> Vec<String> {
    source.addresses.iter().map(|address| address.as_str().to_owned()).collect()
}

fn scaled(span: TimeDelta, factor: f64) -> TimeDelta {
    TimeDelta::milliseconds((span.num_milliseconds() as f64 * factor) as i64)
}

fn next_run(source: &Source, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
    source.schedule.next_after(now) + scaled(source.schedule.jitter_max(), jitter)
}

/// The folder `sources/` of a data folder.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// A source that this process has locked for fetching; the lock is released on drop.
#[derive(Debug)]
pub struct Lease {
    /// The folder of the source.
    pub folder: PathBuf,
    _lock: File,
}

impl Folder {
    /// Returns the folder in the data folder `data`, without creating it.
    pub fn new(data: &Path) -> Folder {
        Folder(data.join(FOLDER))
    }

    /// Reads the operator's choices.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn choices(&self) -> anyhow::Result<Choices> {
        let path = self.0.join(CHOICES);
        let read = read(&path).map_err(|err| {
            // The file may be as it was, so it must not be removed.
            let is_unread = err.is::<std::io::Error>();
            let advice = if is_unread {
                "cannot be read"
            } else {
                "damaged; remove it and enable the sources again"
            };
            err.context(format!("{}: {advice}", path.display()))
        });
        Ok(read?.unwrap_or_default())
    }

    /// Replaces the choices.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_choices(&self, choices: &Choices) -> anyhow::Result<()> {
        write(&self.0, CHOICES, choices)
    }

    /// Enables sources and makes them due at once: enabling one again implies that the operator has solved
    /// its last problem.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn enable<'a>(
        &self,
        views: impl IntoIterator<Item = &'a View>,
        at: DateTime<Utc>,
    ) -> anyhow::Result<()> {
        let mut choices = self.choices()?;
        for view in views {
            let name = &view.source.name;
            if !view.is_enabled() {
                choices.insert(name.clone(), Choice { enabled: true, at });
            }
            if let Some(_lease) = self.lease(name)? {
                let mut state = self.state(name);
                state.make_due();
                self.set_state(name, &state)?;
            }
        }
        self.set_choices(&choices)
    }

    /// Reads the contact that was given on the page for a new server. A damaged file is logged and ignored.
    pub fn contact(&self) -> Option<Contact> {
        let path = self.0.join(CONTACT);
        read(&path).unwrap_or_else(|err| {
            let error = format!("{err:#}");
            tracing::warn!(path = %path.display(), error, "the contact for publishers is damaged; remove the file");
            None
        })
    }

    /// Stores the contact for publishers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_contact(&self, contact: &Contact) -> anyhow::Result<()> {
        write(&self.0, CONTACT, contact)
    }

    /// Reads the state of a source. A damaged state is logged and reset, which costs one download.
    pub fn state(&self, name: &str) -> SourceState {
        let path = self.0.join(name).join(STATE);
        read(&path).unwrap_or_else(|err| {
            let error = format!("{err:#}");
            tracing::warn!(path = %path.display(), error, "the state of a source is damaged; starting over");
            None
        }).unwrap_or_default()
    }

    /// Replaces the state of a source.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_state(&self, name: &str, state: &SourceState) -> anyhow::Result<()> {
        write(&self.0.join(name), STATE, state)
    }

    /// Locks a source for fetching. Returns `None` while another process fetches it.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn lease(&self, name: &str) -> anyhow::Result<Option<Lease>> {
        let folder = self.0.join(name);
        let locked = || {
            new_file::create_folder(&folder)?;
            let lock = new_file::open(&folder.join(LOCK))?;
            match lock.try_lock() {
                Ok(()) => Ok(Some(Lease { folder: folder.clone(), _lock: lock })),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(err)) => Err(err),
            }
        };
        locked().with_context(|| format!("cannot use {}", folder.display()))
    }

    /// Returns all sources with their states.
    ///
    /// # Errors
    /// The errors of [`Folder::choices`].
    pub fn views(&self, settings: &Settings) -> anyhow::Result<Vec<View>> {
        let choices = self.choices()?;
        let view = |source: &Source| View {
            choice: choices.get(&source.name).copied(),
            state: self.state(&source.name),
            source: source.clone(),
        };
        Ok(settings.sources.iter().map(view).collect())
    }

    /// Returns the names of sources with a choice or state here that the settings do not define, for
    /// example because a backup was restored without its settings file, or because a source was removed.
    ///
    /// # Errors
    /// The choices cannot be read.
    pub fn undefined(&self, settings: &Settings) -> anyhow::Result<Vec<String>> {
        let mut names: BTreeSet<String> = self.choices()?.into_keys().collect();
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.path().join(STATE).exists() {
                names.extend(entry.file_name().into_string());
            }
        }
        names.retain(|name| settings.sources.iter().all(|source| source.name != *name));
        Ok(names.into_iter().collect())
    }
}

named_enum! {
    /// Health of a source.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Standing {
        Off = "off",
        /// The source has not been fetched yet.
        Waiting = "waiting",
        Ok = "ok",
        /// The last run fetched the lists, with warnings.
        Doubtful = "doubtful",
        /// The last run failed and will be retried.
        Failing = "failing",
        /// No run has succeeded for two intervals of the schedule.
        Late = "late",
        /// The source was refused, so an operator has to act.
        Stopped = "stopped",
    }
}

named_enum! {
    /// Whether a process uses the table fetched last.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TableUse {
        InUse = "in use",
        AtNextStart = "takes effect at the next start",
        /// The settings name another file, so the fetched one is not used.
        Overridden = "not used: the setting psl names another file",
    }
}

/// A source, the operator's choice, and its state.
#[derive(Clone, Debug)]
pub struct View {
    pub source: Source,
    pub choice: Option<Choice>,
    pub state: SourceState,
}

impl View {
    /// Whether the source is fetched, according to the settings file or, without an entry there,
    /// the operator's choice.
    pub fn is_enabled(&self) -> bool {
        self.source.enabled.unwrap_or(self.choice.is_some_and(|choice| choice.enabled))
    }

    /// Returns the health of the source.
    pub fn standing(&self, now: DateTime<Utc>) -> Standing {
        match &self.state.problem {
            _ if !self.is_enabled() => Standing::Off,
            Some(problem) if problem.waits => Standing::Stopped,
            _ if self.late_by(now).is_some() => Standing::Late,
            Some(_) => Standing::Failing,
            None if self.state.last_success.is_none() => Standing::Waiting,
            None if !self.state.warnings().is_empty() => Standing::Doubtful,
            None => Standing::Ok,
        }
    }

    /// Returns which table this process uses, if the source is a fetched table.
    pub fn table_use(&self) -> Option<TableUse> {
        let Content::Table(table) = self.source.content else { return None };
        let held = self.state.version.as_ref()?;
        Some(match tables::in_use(table) {
            Some(used) if used.is_fixed => TableUse::Overridden,
            Some(used) if used.version.as_ref() == Some(held) => TableUse::InUse,
            _ => TableUse::AtNextStart,
        })
    }

    /// Returns the time of the next run; `None` if the source is off or waits for an operator.
    pub fn next_run(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let is_on = self.is_enabled() && !self.state.is_stopped();
        is_on.then(|| self.state.next_run.map_or(now, |next| next.max(now)))
    }

    /// Returns how long the source has been overdue. A source is overdue two intervals of its
    /// schedule after its last success or, without one, after it was enabled. `None` if the source
    /// is on time or off.
    pub fn late_by(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let since = self.choice.map(|choice| choice.at);
        let since = self.state.problem.as_ref().map(|problem| problem.since).or(since);
        let last = self.state.last_success.or(since)?;
        let late = now - last - self.source.schedule.interval() * 2;
        (self.is_enabled() && late > TimeDelta::zero()).then_some(late)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => bail!(err),
    }
}

/// Replaces a file atomically; only its owner can read it.
pub(super) fn write(folder: &Path, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    let path = folder.join(name);
    let replaced = new_file::create_folder(folder).and_then(|()| whole_file::replace(&path, &text));
    replaced.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn parts_of_two_versions_are_distinguished() {
        let part = |etag: Option<&str>, date: Option<&str>, total| Partial {
            etag: etag.map(str::to_owned),
            last_modified: date.map(str::to_owned),
            total,
        };
        let first = part(Some("\"a\""), Some("Mon"), Some(9));
        assert!(first.fits(&first) && first.fits(&Partial::default()));
        assert!(first.fits(&part(None, Some("Mon"), None)));
        for other in [
            part(Some("\"b\""), Some("Mon"), Some(9)),
            part(Some("\"a\""), Some("Tue"), Some(9)),
            part(Some("\"a\""), Some("Mon"), Some(8)),
            part(None, None, Some(8)),
        ] {
            assert!(!first.fits(&other), "{other:?}");
        }
        assert_eq!(first.validator(), Some("\"a\""));
        assert_eq!(part(Some("W/\"a\""), Some("Mon"), None).validator(), Some("Mon"));
        let read = |text: &str| serde_json::from_str::<Partial>(text).expect("stored");
        assert_eq!(read(r#""\"a\"""#), part(Some("\"a\""), None, None));
        assert_eq!(read(r#""Mon""#), part(None, Some("Mon"), None));
        assert_eq!(read(&serde_json::to_string(&first).expect("JSON")), first);
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    fn uk() -> Source {
        Source::from(presets::find("uk-nominet").expect("a preset"))
    }

    fn next(state: &SourceState) -> String {
        state.next_run.expect("planned").format("%d %H:%M:%S").to_string()
    }

    #[test]
    fn failures_that_may_pass_are_retried_three_times_then_by_schedule() {
        let (source, mut state) = (uk(), SourceState::default());
        let mut now = at("2026-11-23T10:00:00Z");
        assert!(state.is_due(&source, now), "never fetched");
        let mut runs = Vec::new();
        for _ in 0..5 {
            state.failed(&source, "503".to_owned(), Retry::Soon, now, 0.0);
            assert!(!state.is_due(&source, now));
            runs.push(next(&state));
            now = state.next_run.expect("planned");
            assert!(state.is_due(&source, now));
        }
        let expected = ["23 10:00:15", "23 10:01:15", "23 10:06:15", "24 03:40:00", "24 03:40:15"];
        assert_eq!(runs, expected);
        assert_eq!(state.problem.as_ref().expect("one").since, at("2026-11-23T10:00:00Z"));
        state.succeeded(&source, now, 0.5);
        assert_eq!((next(&state).as_str(), &state.problem), ("25 03:45:00", &None));
    }

    #[test]
    fn a_list_with_a_tenth_of_its_usual_rows_is_doubtful() {
        let shrunk = |sizes: &[u64]| {
            let mut state = SourceState::default();
            sizes.iter().for_each(|rows| state.grew(*rows));
            state.shrunk()
        };
        for sizes in [&[][..], &[2], &[200, 150], &[200, 21], &[19, 1], &[0, 2], &[2, 200]] {
            assert_eq!(shrunk(sizes), None, "{sizes:?}");
        }
        let text = shrunk(&[190, 210, 5_000, 1, 200, 2]).expect("shrunk");
        assert!(text.starts_with("2 rows, 1 % of the usual 200;"), "{text}");
        assert!(shrunk(&[20, 2]).is_some() && shrunk(&[200, 0]).is_some());
        assert_eq!(shrunk(&[200, 2, 210]), None, "until a whole list comes");
    }

    #[test]
    fn refusals_wait_for_the_operator_or_a_new_address() {
        let (mut source, mut state) = (uk(), SourceState::default());
        let now = at("2026-11-23T10:00:00Z");
        state.failed(&source, "403".to_owned(), Retry::OnRequest, now, 0.0);
        assert!(!state.is_due(&source, now + TimeDelta::days(30)));
        source.addresses = vec!["https://a.example/uk".to_owned().try_into().expect("a URL")];
        assert!(state.is_due(&source, now), "the settings name another address");
        state.failed(&source, "403".to_owned(), Retry::OnRequest, now, 0.0);
        state.make_due();
        assert!(state.is_due(&source, now));
    }

    #[test]
    fn a_pause_that_the_server_asks_for_is_kept_within_a_day() {
        let (source, mut state) = (uk(), SourceState::default());
        let now = at("2026-11-23T10:00:00Z");
        state.failed(&source, "429".to_owned(), Retry::After(TimeDelta::minutes(7)), now, 0.0);
        assert_eq!(next(&state), "23 10:07:00");
        state.failed(&source, "429".to_owned(), Retry::After(TimeDelta::days(900)), now, 0.0);
        assert_eq!(next(&state), "24 10:00:00");
        state.failed(&source, "404".to_owned(), Retry::NextRun, now, 0.0);
        assert_eq!(next(&state), "24 03:40:00");
    }

    #[test]
    fn a_source_is_late_after_two_intervals_of_its_schedule() {
        let now = at("2026-11-23T10:00:00Z");
        let choice = Choice { enabled: true, at: now };
        let mut view = View { source: uk(), choice: Some(choice), state: SourceState::default() };
        assert_eq!(view.late_by(now + TimeDelta::days(2)), None);
        assert_eq!(view.late_by(now + TimeDelta::hours(49)), Some(TimeDelta::hours(1)));
        view.state.succeeded(&view.source.clone(), now + TimeDelta::days(1), 0.0);
        assert_eq!(view.late_by(now + TimeDelta::days(3)), None);
        assert_eq!(view.late_by(now + TimeDelta::days(4)), Some(TimeDelta::days(1)));
        view.choice = Some(Choice { enabled: false, at: now });
        assert_eq!(view.late_by(now + TimeDelta::days(4)), None);
    }

    #[test]
    fn the_health_of_a_source_follows_its_runs() {
        let now = at("2026-11-23T10:00:00Z");
        let source = uk();
        let mut view = View { source: source.clone(), choice: None, state: SourceState::default() };
        assert_eq!(view.standing(now), Standing::Off);
        view.choice = Some(Choice { enabled: true, at: now });
        assert_eq!(view.standing(now), Standing::Waiting);
        view.state.failed(&source, "503".to_owned(), Retry::Soon, now, 0.0);
        assert_eq!(view.standing(now), Standing::Failing);
        assert_eq!(view.standing(now + TimeDelta::days(3)), Standing::Late);
        view.state.failed(&source, "403".to_owned(), Retry::OnRequest, now, 0.0);
        assert_eq!((view.standing(now), view.next_run(now)), (Standing::Stopped, None));
        view.state.succeeded(&source, now, 0.0);
        assert_eq!(view.standing(now), Standing::Ok);
    }

    #[test]
    fn one_process_fetches_a_source_at_a_time_and_states_survive() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(data.path());
        assert_eq!((folder.choices().expect("none"), folder.state("a")), Default::default());
        let lease = folder.lease("a").expect("works").expect("free");
        assert!(folder.lease("a").expect("works").is_none());
        drop(lease);
        assert!(folder.lease("a").expect("works").is_some());
        let state = SourceState { rows: 7, ..SourceState::default() };
        folder.set_state("a", &state).expect("written");
        assert_eq!(folder.state("a"), state);
        fs::write(data.path().join("sources/a/state.json"), "{").expect("written");
        assert_eq!(folder.state("a"), SourceState::default());
        fs::write(data.path().join("sources/enabled.json"), "{").expect("written");
        let damaged = format!("{:#}", folder.choices().expect_err("damaged"));
        assert!(damaged.contains("enable the sources again"), "{damaged}");
    }
}
