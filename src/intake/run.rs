//! Runs requests in the calling process: from files to corpus to generation.

use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::compact::compact_if_many;
use crate::corpus::batch::BatchMeta;
use crate::corpus::ingest::{IngestError, Ingested, Source};
use crate::corpus::{Corpus, CorpusError};
use crate::facts::published::{FactsFolder, Gathered, MarketList, MarketReport};
use crate::feeds::{self, Feed, FeedError, FeedProblem, Format, ReadOptions};
use crate::index::error::BuildError;
use crate::index::generation::base::ExtendRule;
use crate::index::generation::build::{self, BuildSettings};
use crate::index::storage::manifest::{self, Manifest, UsedList};
use crate::outcome::{Failure, ListOutcome, ListReport, Outcome, Step, one_line};
use crate::popularity;
use crate::request::{Ingest, Lists, Rebuild, Request, Site, Task};
use crate::vocab::day::Day;
use crate::vocab::file_error::is_full;
use crate::vocab::outcome::ZoneDays;
use crate::vocab::popularity::ListEdition;
use crate::vocab::tables::Table;
use crate::zones::{self, Tracker, ZoneError, ZoneSource};

/// Folder in the data folder for the state of each zone.
const ZONES: &str = "zones";

/// Observes the progress of the work, for a terminal.
pub trait Observer {
    /// A remark, which is also in [`Outcome::notes`].
    fn note(&self, _note: &str) {}
    /// Called for every row, with the bytes read of a file and its size.
    fn progress(&self, _read: u64, _size: u64) {}
}

/// Ignores all progress.
impl Observer for () {}

/// Runs a request to its end. Failures are part of the outcome.
pub fn run(request: &Request, observer: &dyn Observer) -> Outcome {
    let started = Instant::now();
    let Request { site, task } = request;
    let mut work = IntakeRun { site, observer, outcome: Outcome::default(), step: Step::Ingest };
    let done = match task {
        Task::Ingest(ingest) => work.ingest(ingest),
        Task::Rebuild(rebuild) => work.rebuild(*rebuild),
    };
    work.outcome.failure = done.err().map(|err| Failure {
        step: work.step,
        is_transient: is_transient(&err),
        is_full: lacks_space(&err),
        message: one_line(err.as_ref()),
    });
    work.outcome.seconds = (started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
    work.outcome
}

/// The file changed during its ingest.
#[derive(Debug, thiserror::Error)]
#[error("the file changed while it was read; try again")]
struct Changed;

/// Whether the list itself is at fault, so that every retry would fail as well.
fn is_refusal(err: &anyhow::Error) -> bool {
    err.chain().any(|cause| {
        cause.is::<FeedError>()
            || cause.downcast_ref().is_some_and(ZoneError::is_of_the_file)
            || matches!(
                cause.downcast_ref(),
                Some(
                    IngestError::Feed(_)
                        | IngestError::TooManyBad { .. }
                        | IngestError::Empty { .. }
                        | IngestError::SameZones
                )
            )
    })
}

/// Whether the cause lies outside the list and is temporary.
fn is_transient(err: &anyhow::Error) -> bool {
    let is_busy = |cause: &(dyn Error + 'static)| {
        cause.is::<Changed>()
            || matches!(cause.downcast_ref(), Some(CorpusError::Busy(_)))
            || matches!(cause.downcast_ref(), Some(BuildError::Busy(_)))
    };
    lacks_space(err) || err.chain().any(is_busy)
}

fn lacks_space(err: &anyhow::Error) -> bool {
    err.chain().any(|cause| {
        cause.downcast_ref().is_some_and(is_full)
            || matches!(cause.downcast_ref(), Some(BuildError::NoRoom(_)))
    })
}

/// A running request.
struct IntakeRun<'a> {
    site: &'a Site,
    observer: &'a dyn Observer,
    outcome: Outcome,
    step: Step,
}

impl<'a> IntakeRun<'a> {
    /// Adds the lists, then builds if any was added, even if a later one was refused or failed.
    fn ingest(&mut self, ingest: &Ingest) -> anyhow::Result<()> {
        let corpus = Corpus::open(&self.site.data)?;
        let read = self.add_lists(&corpus, ingest);
        // A process that was killed before its rebuild may have left lists that are in no
        // generation.
        let is_behind = || {
            self.outcome.error().is_none()
                && index_state_of(&corpus, &self.site.index) != IndexState::Current
        };
        if !ingest.rebuild {
            return read;
        }
        if self.outcome.added().next().is_some() || (read.is_ok() && is_behind()) {
            self.build(&corpus, self.site.build)?;
            self.step = Step::Ingest;
        } else {
            self.remove_leftovers();
        }
        read
    }

    fn rebuild(&mut self, rebuild: Rebuild) -> anyhow::Result<()> {
        let corpus = Corpus::open(&self.site.data)?;
        if rebuild.only_if_behind
            && index_state_of(&corpus, &self.site.index) == IndexState::Current
        {
            self.remove_leftovers();
            return Ok(());
        }
        if rebuild.compact {
            corpus.compact(&corpus.batches()?, 0)?;
        }
        // Operators request a full rebuild; a server requests one only for lists that an ingest has not indexed.
        let whole = BuildSettings { extend: ExtendRule::NEVER, ..self.site.build };
        self.build(&corpus, if rebuild.only_if_behind { self.site.build } else { whole })
    }

    fn build(&mut self, corpus: &Corpus, settings: BuildSettings) -> anyhow::Result<()> {
        self.step = Step::Rebuild;
        let Site { index, clock, data, .. } = self.site;
        let folder = FactsFolder::new(data);
        // An index without these facts is better than none.
        if let Err(err) = folder.merge_gathered(Gathered::Zone, clock.today()) {
            tracing::warn!(error = %err, "cannot merge facts about names that left their zones");
        }
        let batches = compact_if_many(corpus, self.site, corpus.batches()?)?;
        let ranked = corpus.ranked_lists()?;
        if let Err(err) = popularity::keep(&folder, &ranked) {
            tracing::warn!(error = %err, "cannot keep the popularity lists as facts");
        }
        let manifest = build::update(index, &batches, &ranked, settings, clock.now())?;
        let left_out = manifest.suffixes.as_ref().map_or(0, |used| used.names_left_out);
        let suffixes = self.site.tables.iter().find(|file| file.table == Table::Suffixes);
        if let Some(file) = suffixes.filter(|_| left_out > 0) {
            self.note(format!(
                "{left_out} names of the corpus are not registrable under {} and are left out",
                file.path.display()
            ));
        }
        self.outcome.generation = Some(manifest);
        Ok(())
    }

    /// Removes leftovers in the index folder when no build is needed. A process that was killed after it
    /// published its generation may have left up to a whole older one, and no build may follow for days.
    fn remove_leftovers(&self) {
        let Site { index, .. } = self.site;
        if let Err(err) = build::tidy(index) {
            tracing::warn!(index = %index.display(), error = %err, "cannot remove leftovers of a build");
        }
    }

    fn add_lists(&mut self, corpus: &Corpus, ingest: &Ingest) -> anyhow::Result<()> {
        match &ingest.lists {
            Lists::Files { files, format } => {
                for path in files {
                    let added = self.add_file(corpus, ingest, (*format, None), path);
                    if !self.report(path, file_name(path), added)? {
                        break;
                    }
                }
            }
            Lists::ZonePair { older, newer } => {
                let name = format!("{}..{}", file_name(older), file_name(newer));
                let added = self.add_zone_pair(corpus, ingest, &name, older, newer);
                self.report(newer, name, added)?;
            }
        }
        Ok(())
    }

    /// Adds a list to the report; false if it was refused, which ends the ingest.
    fn report(
        &mut self,
        path: &Path,
        file: String,
        added: anyhow::Result<ListOutcome>,
    ) -> anyhow::Result<bool> {
        let added = added.with_context(|| format!("{} was not ingested", path.display()));
        let outcome = match added {
            Err(err) if is_refusal(&err) => ListOutcome::Refused { reason: one_line(err.as_ref()) },
            added => added?,
        };
        let goes_on = !matches!(outcome, ListOutcome::Refused { .. });
        self.outcome.lists.push(ListReport { file, outcome });
        Ok(goes_on)
    }

    /// Adds a list with its format, if given, and the zone that it has the changes of, if any.
    fn add_file(
        &mut self,
        corpus: &Corpus,
        ingest: &Ingest,
        (format, zone): (Option<Format>, Option<&ZoneDays>),
        path: &Path,
    ) -> anyhow::Result<ListOutcome> {
        let opened = version(path)?;
        let now = self.site.clock.now();
        let Ingest { drop_date, observed_at, .. } = *ingest;
        let options = ReadOptions { format, drop_date, observed_at, now };
        let feed = match Feed::open(path, &options) {
            // A zone file is handled before it is hashed: hashing takes minutes, and a zone is
            // identified by its serial number.
            Err(FeedError { problem: FeedProblem::ZoneFile, .. }) => {
                return self.add_zone(corpus, ingest, format, path);
            }
            feed => feed,
        };
        let sha256 = sha256(path)?;
        let held = corpus.find(&sha256)?;
        let feed = match feed {
            Err(FeedError { problem: FeedProblem::RankedList, .. }) => {
                let (edition, feed) = Feed::open_ranked(path, &options)?;
                if let Some(held) = self.find_ranked(corpus, path, &sha256, &edition)? {
                    return Ok(held);
                }
                let source = self.source(ingest, path, (opened, sha256), &feed, Vec::new())?;
                let reading = feed.reason().to_owned();
                let progress = self.progress(path, feed.bytes_read())?;
                let rows = feed.inspect(|_| progress());
                let ingested = corpus.ingest_ranked(&source, edition, rows)?;
                return Ok(self.added(source, reading, ingested));
            }
            // The list was already ingested, and the options do not require another reading.
            Err(_) if (drop_date, observed_at) == (None, None) && is_held_as(&held, format) => {
                return Ok(self.already_held(path, &held[0].1));
            }
            feed => feed?,
        };
        let asked = Asked {
            format,
            day: drop_date.and(feed.day()),
            observed_at,
            of_day: feed.day().filter(|_| feed.format().is_of_one_day()),
        };
        let replaces = match asked.identify(&held, &file_name(path)) {
            Identity::Held(held) => return Ok(self.already_held(path, held)),
            Identity::New { replaces } => replaces,
        };
        let source = self.source(ingest, path, (opened, sha256), &feed, replaces)?;
        let source = Source { zone: zone.cloned(), ..source };
        let reading = feed.reason().to_owned();
        let progress = self.progress(path, feed.bytes_read())?;
        let ingested = corpus.ingest(&source, feed.inspect(|_| progress()))?;
        self.keep_market(&source, path);
        Ok(self.added(source, reading, ingested))
    }

    /// Keeps the prices, bids and ends in the list of a market as facts.
    fn keep_market(&mut self, source: &Source, path: &Path) {
        let Some(origin) = &source.origin else { return };
        let Ok(house) = origin.source.parse() else { return };
        let day = Day::nearest(source.observed_at);
        let list = MarketList { house, is_internal: origin.internal, day };
        let Site { data, clock, .. } = self.site;
        match FactsFolder::new(data).add_market(path, list, clock.today()) {
            Ok(Some(MarketReport { rows, refused_cells })) => self.note(format!(
                "{}: {rows} rows have facts of the market {house}; {refused_cells} of their cells are refused",
                path.display()
            )),
            Ok(None) => {}
            // The names of the list count without these facts.
            Err(err) => {
                tracing::warn!(path = %path.display(), error = %err, "cannot keep the facts of a market");
            }
        }
    }

    /// Returns the identity and origin of a list whose head has been read.
    fn source<T>(
        &mut self,
        ingest: &Ingest,
        path: &Path,
        (opened, sha256): (FileVersion, [u8; 32]),
        feed: &Feed<T>,
        replaces: Vec<u32>,
    ) -> anyhow::Result<Source> {
        // Without this check, the batch could contain the hash of another file.
        if version(path)? != opened {
            return Err(Changed.into());
        }
        let format = feed.format().to_string();
        self.note(format!("{}: read as {format} ({})", path.display(), feed.reason()));
        if feeds::ends_within_a_line(path).unwrap_or(false) {
            self.note(format!(
                "{}: the last line has no line end; if the file is cut short, send it again whole",
                path.display()
            ));
        }
        if !replaces.is_empty() {
            let numbers: Vec<String> = replaces.iter().map(u32::to_string).collect();
            self.note(format!(
                "{}: the same bytes were read in another way; this reading replaces list {}",
                path.display(),
                numbers.join(", ")
            ));
        }
        Ok(Source {
            name: file_name(path),
            sha256,
            format,
            observed_at: feed.observed_at(),
            ingested_at: self.site.clock.now(),
            origin: ingest.origin.clone(),
            day: feed.day(),
            replaces,
            zone: None,
        })
    }

    /// Returns the outcome of a popularity list if the corpus holds it or a newer one.
    fn find_ranked(
        &mut self,
        corpus: &Corpus,
        path: &Path,
        sha256: &[u8; 32],
        edition: &ListEdition,
    ) -> anyhow::Result<Option<ListOutcome>> {
        let mut metas = corpus.ranked_metas()?.into_iter();
        let sha256 = hex::encode(sha256);
        let Some(held) = metas.find(|meta| {
            meta.edition.list == edition.list
                && (meta.source_sha256 == sha256 || meta.edition.day > edition.day)
        }) else {
            return Ok(None);
        };
        self.note(format!(
            "{}: the list {} of {} is already held; nothing changes",
            path.display(),
            edition.list,
            held.edition.day
        ));
        Ok(Some(ListOutcome::AlreadyHeld { format: Format::Ranked.to_string() }))
    }

    /// Compares a zone file, or the list of a registry, with those of earlier days, and adds the
    /// resulting lists of drops.
    fn add_zone(
        &mut self,
        corpus: &Corpus,
        ingest: &Ingest,
        format: Option<Format>,
        path: &Path,
    ) -> anyhow::Result<ListOutcome> {
        let (zone, folder, kind) = match format {
            Some(Format::Registry) => {
                let zone = zones::registry_apex(path)?;
                let folder = format!("{zone}.registry");
                (zone, folder, ZoneSource::Registry)
            }
            _ => {
                let (zone, _) = feeds::open_zone_text(path)?;
                (zone.clone(), zone, ZoneSource::Zone)
            }
        };
        if let Some(expected) = ingest.zone.as_ref().filter(|expected| **expected != zone) {
            let expected = expected.clone();
            return Err(ZoneError::WrongZone { found: zone, expected }.into());
        }
        let observed_on = || Day::nearest(ingest.observed_at.unwrap_or(self.site.clock.now()));
        let day = match feeds::zone_day(path, ingest.drop_date) {
            Err(FeedError { problem: FeedProblem::NoZoneDay, .. }) => observed_on(),
            day => day?,
        };
        let mut tracker = Tracker::open(&self.site.data.join(ZONES).join(&folder))?;
        // An earlier ingest may have left behind lists that it did not add.
        let waited = self.add_drops(corpus, ingest, &mut tracker)?;
        let outcome = tracker.take(path, day, kind, self.site.zone_names)?;
        self.note(format!("{}: zone {zone} on {day}: {outcome}", path.display()));
        let lists = waited + self.add_drops(corpus, ingest, &mut tracker)?;
        Ok(ListOutcome::Compared { zone, lists })
    }

    /// Adds the lists that a zone's comparisons have written.
    fn add_drops(
        &mut self,
        corpus: &Corpus,
        ingest: &Ingest,
        tracker: &mut Tracker,
    ) -> anyhow::Result<u32> {
        let lists: Vec<zones::DropsFile> = tracker.lists();
        for list in &lists {
            let observed_at = Some(list.day.start());
            let ingest = Ingest { observed_at, drop_date: None, ..ingest.clone() };
            let reading = (Some(Format::Native), Some(&list.seen));
            let added = self.add_file(corpus, &ingest, reading, &list.path)?;
            self.outcome.lists.push(ListReport { file: file_name(&list.path), outcome: added });
            let facts = FactsFolder::new(&self.site.data);
            facts
                .add_exits(&list.path, zones::NS_CLASS)
                .with_context(|| list.path.display().to_string())?;
            tracker.ingested(list)?;
        }
        Ok(lists.len() as u32)
    }

    fn add_zone_pair(
        &mut self,
        corpus: &Corpus,
        ingest: &Ingest,
        name: &str,
        older: &Path,
        newer: &Path,
    ) -> anyhow::Result<ListOutcome> {
        // The pair counts as one list, identified by the hashes of both files in order.
        let sha256 = Sha256::new().chain_update(sha256(older)?).chain_update(sha256(newer)?);
        let sha256 = sha256.finalize().into();
        let day = feeds::zone_day(newer, ingest.drop_date)?;
        let held = corpus.find(&sha256)?;
        let asked = Asked {
            format: None,
            day: ingest.drop_date,
            observed_at: ingest.observed_at,
            of_day: None,
        };
        let replaces = match asked.identify(&held, name) {
            Identity::Held(held) => return Ok(self.already_held(Path::new(name), held)),
            Identity::New { replaces } => replaces,
        };
        let (zone_before, before) = Feed::open_zone(older)?;
        let (zone, after) = Feed::open_zone(newer)?;
        ensure!(
            zone_before == zone,
            "{} is a file of the zone {zone_before}, {} of the zone {zone}; give two files of one zone",
            older.display(),
            newer.display()
        );
        let reading = format!("two files of the zone {zone}; dropped on {day}");
        self.note(format!("{name}: read as zone-pair ({reading})"));
        let source = Source {
            name: name.to_owned(),
            sha256,
            format: Format::ZonePair.to_string(),
            observed_at: ingest.observed_at.unwrap_or_else(|| day.start()),
            ingested_at: self.site.clock.now(),
            origin: ingest.origin.clone(),
            day: Some(day),
            replaces,
            zone: None,
        };
        let first = self.progress(older, before.bytes_read())?;
        let second = self.progress(newer, after.bytes_read())?;
        let (before, after) = (before.inspect(|_| first()), after.inspect(|_| second()));
        let ingested = corpus.ingest_zone_pair(&source, day, before, after)?;
        Ok(self.added(source, reading, ingested))
    }

    /// Returns the outcome for a list that the corpus already holds.
    fn already_held(&mut self, path: &Path, held: &BatchMeta) -> ListOutcome {
        let day = held.day.map(|day| format!(" with the day {day}")).unwrap_or_default();
        self.note(format!(
            "{}: already held as {}, read as {}{day}, ingested on {}; nothing changes. To read it in another \
             way, say how (--format, --drop-date, --observed-at)",
            path.display(),
            held.source,
            held.format,
            held.ingested_at.format("%Y-%m-%d")
        ));
        ListOutcome::AlreadyHeld { format: held.format.clone() }
    }

    fn added(&mut self, source: Source, reading: String, ingested: Ingested) -> ListOutcome {
        if let Some(path) = &ingested.rejects_file {
            let bad: u64 = ingested.rejected.values().sum();
            self.note(format!("{}: rejected rows: {bad}; see {}", source.name, path.display()));
        }
        ListOutcome::Added { format: source.format, reading, ingested }
    }

    fn note(&mut self, note: String) {
        self.observer.note(&note);
        self.outcome.notes.push(note);
    }

    /// Returns a function that reports how far the file at `path` has been read.
    fn progress(&self, path: &Path, read: Arc<AtomicU64>) -> anyhow::Result<impl Fn() + use<'a>> {
        let size = fs::metadata(path).with_context(|| unreadable(path))?.len();
        let observer = self.observer;
        Ok(move || observer.progress(read.load(Ordering::Relaxed), size))
    }
}

/// Whether one of these lists was read in the given format or, without a format, in any.
fn is_held_as(held: &[(u32, BatchMeta)], format: Option<Format>) -> bool {
    let is_same = |meta: &BatchMeta| format.is_none_or(|format| meta.format == format.as_str());
    held.iter().any(|(_, meta)| is_same(meta))
}

/// Reading of a list, as the options request it.
struct Asked {
    format: Option<Format>,
    /// The day of `--drop-date`, if the format uses it.
    day: Option<Day>,
    observed_at: Option<DateTime<Utc>>,
    /// The day of a list of bare names, whatever its source is.
    of_day: Option<Day>,
}

/// Whether the corpus holds a list.
enum Identity<'a> {
    Held(&'a BatchMeta),
    New { replaces: Vec<u32> },
}

impl Asked {
    /// Compares the list with held lists that have the same bytes (`data/docs/sources.md`). If options
    /// determine the reading, the held list must have the same reading; without options, the list counts
    /// as held. The exception is a list of bare names with another day in its file name, because a
    /// publisher may repeat names.
    fn identify<'a>(&self, held: &'a [(u32, BatchMeta)], file: &str) -> Identity<'a> {
        let is_asked = |meta: &BatchMeta| {
            self.format.is_none_or(|format| meta.format == format.as_str())
                && self.day.is_none_or(|day| meta.day == Some(day))
                && self.observed_at.is_none_or(|at| meta.observed_at == at)
        };
        let is_of_day = |meta: &BatchMeta| {
            self.of_day.is_none() || meta.day.is_none() || meta.day == self.of_day
        };
        let asked = || held.iter().filter(|(_, meta)| is_asked(meta));
        if let Some((_, meta)) = asked().find(|(_, meta)| is_of_day(meta)) {
            return Identity::Held(meta);
        }
        if asked().next().is_some() {
            return Identity::New { replaces: Vec::new() };
        }
        // If lists of several days have the same bytes, only the one with this file name is
        // corrected.
        let is_same = |(_, meta): &&(u32, BatchMeta)| meta.source == file;
        let all = || held.iter();
        let numbers = match all().any(|held| is_same(&held)) {
            true => all().filter(is_same).map(|(number, _)| *number).collect(),
            false => all().map(|(number, _)| *number).collect(),
        };
        Identity::New { replaces: numbers }
    }
}

/// State of an installation's index relative to its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The index holds all lists, or the corpus is in use by a process that will build the index.
    Current,
    /// The corpus holds lists that are not in a generation.
    Lacks,
    /// The index was built from other lists, for example before a restore into a new data folder.
    Foreign,
}

/// Compares the index of an installation with its lists, without verifying either.
pub fn index_state(site: &Site) -> IndexState {
    if !Corpus::has_lists(&site.data) {
        return IndexState::Current;
    }
    Corpus::open(&site.data)
        .map_or(IndexState::Current, |corpus| index_state_of(&corpus, &site.index))
}

/// An unreadable file or folder counts as current here: `corpus verify` and `index verify` report it.
fn index_state_of(corpus: &Corpus, index: &Path) -> IndexState {
    let read = |generation| Manifest::read(&manifest::folder_of(index, generation)).ok();
    let generations = manifest::published(index).unwrap_or_default();
    let mut manifests: Vec<Manifest> = generations.into_iter().filter_map(read).collect();
    let (Ok(batches), Ok(ranked)) = (corpus.checksums(), corpus.ranked_metas()) else {
        return IndexState::Current;
    };
    let lists: u64 = batches.iter().map(|(lists, _)| lists).sum();
    let indexed = manifests.iter().map(|manifest| manifest.batches).max().unwrap_or(0);
    manifests.retain(|manifest| manifest.batches == indexed);
    let popularity: Vec<UsedList> = ranked.iter().map(UsedList::from).collect();
    let joined = manifests.iter().filter(|manifest| manifest.popularity == popularity);
    let ranked = corpus.ranked_checksums().unwrap_or_default();
    let is_built_from = |manifest: &Manifest| {
        let mut held = 0;
        let of_batches = batches.iter().take_while(|(lists, _)| {
            held += lists;
            held <= manifest.batches
        });
        let checksums = of_batches.map(|(_, checksum)| checksum).chain(&ranked);
        manifest.corpus == manifest::digest_of(checksums.map(|it| it.as_bytes().as_slice()))
    };
    let mut joined = joined.peekable();
    if lists < indexed || joined.peek().is_some() && !joined.any(is_built_from) {
        return IndexState::Foreign;
    }
    let is_joined =
        popularity.is_empty() || manifests.iter().any(|manifest| manifest.popularity == popularity);
    if lists > indexed || !is_joined { IndexState::Lacks } else { IndexState::Current }
}

/// Identity and state of a file. The value changes if the file is replaced or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    pub is_file: bool,
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl FileVersion {
    /// Reads the version of the file at `path`. Follows symbolic links.
    ///
    /// # Errors
    /// An I/O error.
    pub fn read(path: &Path) -> io::Result<FileVersion> {
        let facts = fs::metadata(path)?;
        Ok(FileVersion {
            is_file: facts.is_file(),
            inode: facts.ino(),
            len: facts.len(),
            changed: (facts.mtime(), facts.mtime_nsec()),
        })
    }

    /// Whether this is another state of the same file, which was written to between the two.
    pub fn is_later_state_of(&self, before: &FileVersion) -> bool {
        self.inode == before.inode && self != before
    }
}

fn version(path: &Path) -> anyhow::Result<FileVersion> {
    FileVersion::read(path).with_context(|| unreadable(path))
}

fn sha256(path: &Path) -> anyhow::Result<[u8; 32]> {
    feeds::file_sha256(path).with_context(|| unreadable(path))
}

fn unreadable(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::WorkerMemory;
    use crate::vocab::clock::Clock;

    /// A build that is killed after its generation became current leaves an older one half removed.
    #[test]
    fn requests_that_need_no_build_remove_leftovers_of_a_killed_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("list.csv");
        fs::write(&list, "domain,drop_date\na.com,2026-03-14\n").expect("written");
        let site = Site {
            data: folder.path().join("data"),
            index: folder.path().join("index"),
            build: BuildSettings::default(),
            compact_above: 0,
            worker: WorkerMemory::default(),
            clock: Clock::default(),
            zone_names: zones::Keep::default(),
            tables: Vec::new(),
        };
        let run = |task| {
            let outcome = run(&Request { site: site.clone(), task }, &());
            assert_eq!(outcome.error(), None);
            outcome.generation.is_some()
        };
        let ingest = Task::Ingest(Ingest {
            lists: Lists::Files { files: vec![list], format: None },
            drop_date: None,
            observed_at: Some(DateTime::UNIX_EPOCH),
            origin: None,
            zone: None,
            rebuild: true,
        });
        let rebuild = Task::Rebuild(Rebuild { compact: false, only_if_behind: true });
        assert!(run(ingest.clone()));
        for task in [ingest, rebuild] {
            let left = site.index.join(".removing-gen-00000000000000000000");
            fs::create_dir_all(left.join("names")).expect("created");
            fs::write(site.index.join(".current-x"), "gen").expect("written");
            assert!(!run(task.clone()), "{task:?} needs no build");
            let entries = fs::read_dir(&site.index).expect("readable");
            let names = entries.map(|entry| entry.expect("one").file_name());
            let hidden = names.filter(|name| name.to_string_lossy().starts_with('.'));
            assert_eq!(hidden.count(), 0, "{task:?}");
        }
    }
}
