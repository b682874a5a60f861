//! One run of a source: fetches its lists, passes each new one to `intake`, and stores the outcome.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use url::Url;

use crate::facts::published::{
    FactsFolder, ListFile, PublishedError, PublishedFacts, PublishedList,
};
use crate::feeds::{Feed, FeedError, FeedProblem, Format, ReadOptions, Row};
use crate::fetch::{Download, FetchError, Fetched, Fetcher};
use crate::intake::outcome::{ListOutcome, Outcome, one_line};
use crate::intake::queue::Queue;
use crate::intake::request::{Ingest, Lists, Task};
use crate::intake::tables::{KeepError, TablesFolder};
use crate::presets::{Content, Flow};
use crate::settings::{Source, shown, zone_of};
use crate::state::{Folder, Held, Known, Retry, SourceState};
use crate::vocab::day::Day;
use crate::vocab::named::named_enum;
use crate::vocab::new_file;
use crate::vocab::tables::{Published, Table};
use crate::{czds, fetch, state};

/// Files in the folder of a source that persist between runs.
const KEPT: [&str; 3] = [state::STATE, state::LOCK, czds::TOKEN];
const REFUSED: &str = "refused";
/// Folder of the lists of a source whose lists together are one edition.
const LISTS: &str = "lists";
/// Maximum number of failures of a run that are reported in full.
const FAILURES_NAMED: usize = 5;
/// Maximum number of pages of a list.
const PAGES_MAX: u32 = 100;

/// Runs tasks of the pipeline, in a server or a command.
pub trait Intake: Send + Sync {
    /// Runs the task.
    ///
    /// # Errors
    /// The task was not run. A failure of the work itself is part of the outcome.
    fn run_task(&self, task: Task) -> impl Future<Output = anyhow::Result<Outcome>> + Send;
}

impl Intake for Queue {
    async fn run_task(&self, task: Task) -> anyhow::Result<Outcome> {
        Ok(self.run(task).await?)
    }
}

/// Runs sources.
pub struct Runner<I> {
    pub fetcher: Fetcher,
    pub folder: Folder,
    pub tables: TablesFolder,
    pub facts: FactsFolder,
    pub intake: I,
}

named_enum! {
    /// The outcome of a run.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunOutcome {
        /// The corpus has a new list, the next start has a new table, or new facts are in use.
        Added = "added",
        /// All lists are unchanged.
        #[default]
        Unchanged = "unchanged",
        /// No list is published yet.
        Early = "early",
        /// Another process is fetching the source.
        Busy = "busy",
        Failed = "failed",
    }
}

/// Result of a run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub source: String,
    pub outcome: RunOutcome,
    /// Number of added lists.
    pub lists: u32,
    pub rows: u64,
    pub rejected: u64,
    /// Number of zone files and registry lists that were compared with earlier ones. On most days, this
    /// results in drops.
    pub compared: u32,
    /// Number of new editions of facts.
    pub editions: u32,
    pub error: Option<String>,
    /// Warnings about the fetched lists.
    pub warnings: Vec<String>,
    pub next_run: Option<DateTime<Utc>>,
}

/// Why a URL provided no list.
struct Failed {
    text: String,
    retry: Retry,
    is_unauthorized: bool,
}

impl Failed {
    fn new(text: String, retry: Retry) -> Failed {
        Failed { text, retry, is_unauthorized: false }
    }

    /// Whether the other zones would fail as well, because of a pause, new terms or a refused login.
    /// By contrast, a single zone may fail because it is not approved for the account.
    fn concerns_all(&self) -> bool {
        matches!(self.retry, Retry::After(_) | Retry::OnRequest)
    }

    /// Adds the name of the zone.
    fn about(self, zone: Option<String>) -> Failed {
        let Some(zone) = zone else { return self };
        Failed { text: format!("{zone}: {}", self.text), ..self }
    }
}

impl From<FetchError> for Failed {
    fn from(err: FetchError) -> Failed {
        let is_unauthorized = matches!(err, FetchError::Unauthorized);
        Failed { is_unauthorized, ..Failed::new(err.to_string(), err.retry()) }
    }
}

impl From<anyhow::Error> for Failed {
    fn from(err: anyhow::Error) -> Failed {
        Failed::new(one_line(err.as_ref()), Retry::Soon)
    }
}

/// The failures of a run, collected so that no failed list hides another.
#[derive(Default)]
struct Failures(Vec<Failed>);

impl Failures {
    fn add(&mut self, failed: Failed) {
        if self.0.iter().all(|before| before.text != failed.text) {
            self.0.push(failed);
        }
    }

    /// Returns all failures as text, and when to retry. Failures that need an operator or a pause take
    /// precedence over temporary failures, and these take precedence over failures that wait for the
    /// next run.
    fn summary(&self) -> Option<(String, Retry)> {
        let retry = self.0.iter().map(|failed| failed.retry).max_by_key(|retry| match retry {
            Retry::NextRun => (0, TimeDelta::zero()),
            Retry::Soon => (1, TimeDelta::zero()),
            Retry::After(pause) => (2, *pause),
            Retry::OnRequest => (3, TimeDelta::zero()),
        })?;
        let named = self.0.iter().take(FAILURES_NAMED).map(|failed| failed.text.as_str());
        let mut text = named.collect::<Vec<_>>().join("; ");
        let more = self.0.len().saturating_sub(FAILURES_NAMED);
        if more > 0 {
            text = format!("{text}; and {more} more");
        }
        Some((text, retry))
    }
}

impl<I: Intake> Runner<I> {
    /// Fetches all lists of a source and ingests the new ones, without a rebuild. The failure of one
    /// list does not affect the others.
    ///
    /// # Errors
    /// The folder of the source cannot be used.
    pub async fn run(&self, source: &Source) -> anyhow::Result<Report> {
        let report = Report { source: source.name.clone(), ..Report::default() };
        let Some(lease) = self.folder.lease(&source.name)? else {
            return Ok(Report { outcome: RunOutcome::Busy, ..report });
        };
        let folder = lease.folder.as_path();
        let mut state = self.folder.state(&source.name);
        tidy(folder, &state).with_context(|| folder.display().to_string())?;
        let is_removed = match source.content {
            Content::Names => false,
            // The compiled-in copy is in use.
            Content::Table(table) => !self.tables.holds(table),
            Content::Facts(list) => !self.facts.holds(list),
        };
        if is_removed {
            state.held.clear();
            state.version = None;
        }
        if source.addresses.len() > 1 && matches!(source.content, Content::Facts(_)) {
            // A restored backup does not have the lists that an edition consists of.
            let is_there = |url: &String| {
                Url::parse(url)
                    .is_ok_and(|url| folder.join(LISTS).join(fetch::file_name(&url)).exists())
            };
            state.held.retain(|url, _| is_there(url));
        }
        let mut run = SourceRun {
            runner: self,
            source,
            folder,
            state,
            report,
            failures: Failures::default(),
            urls: VecDeque::new(),
            published: 0,
            has_logged_in: false,
            has_new_lists: false,
        };
        match run.find_lists().await {
            Ok(()) => {
                run.fetch_lists().await?;
                run.join_lists().await;
            }
            Err(err) => run.failures.add(err.into()),
        }
        run.finish()
    }
}

/// A run in progress.
struct SourceRun<'a, I> {
    runner: &'a Runner<I>,
    source: &'a Source,
    /// The folder of the source.
    folder: &'a Path,
    state: SourceState,
    report: Report,
    failures: Failures,
    /// Lists to fetch.
    urls: VecDeque<Url>,
    /// Number of the source's lists, without those found not to be published yet.
    published: usize,
    /// Whether the run has renewed its token.
    has_logged_in: bool,
    /// Whether the run has fetched lists of an edition of several.
    has_new_lists: bool,
}

impl<I: Intake> SourceRun<'_, I> {
    /// Finds the lists to fetch: all of the source except dated ones that were ingested.
    async fn find_lists(&mut self) -> Result<(), FetchError> {
        let SourceRun { runner: Runner { fetcher, .. }, source, folder, state, .. } = self;
        state.odd.clear();
        let mut urls = match source.flow {
            Flow::Czds => {
                let links = czds::zone_links(fetcher, source, folder).await?;
                state.odd = links.warnings;
                if let Some(approvals) = czds::approvals(fetcher, source).await {
                    state.approvals = approvals;
                }
                links.zones
            }
            _ => source.urls(fetcher.clock.today()),
        };
        self.published = urls.len();
        if source.is_dated() {
            let held = |url: &Url| state.held.contains_key(url.as_str());
            if source.newest_only
                && let Some(at) = urls.iter().position(held)
            {
                urls.truncate(at);
            }
            urls.retain(|url| !held(url));
        }
        self.urls = urls.into();
        Ok(())
    }

    /// Fetches the lists. Downloads continue while a list is ingested; lists are ingested one at a time.
    async fn fetch_lists(&mut self) -> anyhow::Result<()> {
        let is_czds = self.source.flow == Flow::Czds;
        let mut fetches = JoinSet::new();
        loop {
            while fetches.len() < self.source.lanes()
                && let Some(url) = self.urls.pop_front()
            {
                let (mut known, is_late) = (self.state.known(&url), self.has_logged_in);
                let (fetcher, source) = (self.runner.fetcher.clone(), self.source.clone());
                let folder = self.folder.to_owned();
                fetches.spawn(async move {
                    let fetched = fetcher.fetch(&source, &url, &mut known, &folder).await;
                    One { url, known, fetched, is_late }
                });
            }
            let Some(done) = fetches.join_next().await else { return Ok(()) };
            let One { url, known, fetched, is_late } = done.context("a download panicked")?;
            self.state.set_known(&url, known);
            match self.take(&url, fetched).await {
                Ok(Taken::Done { next_page }) => {
                    self.urls.extend(next_page);
                    if self.source.newest_only {
                        self.urls.clear();
                    }
                    // Even after being killed, a process must not download a zone again on the same
                    // day.
                    if self.source.pause > TimeDelta::zero() {
                        self.runner.folder.set_state(&self.source.name, &self.state)?;
                    }
                }
                Ok(Taken::Early) => self.published -= 1,
                // The token expired during the run. Another download may have renewed it already.
                Err(err) if is_czds && err.is_unauthorized && !is_late => {
                    if !self.has_logged_in {
                        self.has_logged_in = true;
                        let Runner { fetcher, .. } = self.runner;
                        if let Err(err) = czds::log_in(fetcher, self.source, self.folder).await {
                            self.failures = Failures(vec![err.into()]);
                            return Ok(());
                        }
                    }
                    self.urls.push_front(url);
                }
                Err(err) if is_czds && err.concerns_all() => {
                    self.failures = Failures(vec![err.about(zone_of(&url))]);
                    return Ok(());
                }
                Err(err) => self.failures.add(err.about(zone_of(&url).filter(|_| is_czds))),
            }
        }
    }

    /// Uses the result of a fetch.
    async fn take(
        &mut self,
        url: &Url,
        fetched: Result<Fetched, FetchError>,
    ) -> Result<Taken, Failed> {
        match fetched {
            Ok(Fetched::New(download)) => self.take_new(url, download).await,
            Ok(Fetched::Unchanged) => match self.state.refused.get(url.as_str()) {
                Some(reason) => Err(Failed::new(reason.clone(), Retry::NextRun)),
                None => Ok(Taken::Done { next_page: None }),
            },
            Ok(Fetched::Early) => Ok(Taken::Early),
            // A single zone is not approved, or no longer.
            Err(FetchError::Forbidden) if self.source.flow == Flow::Czds => {
                let text = "access to the zone is not approved, or has expired (403); request it on the \
                            portal";
                Err(Failed::new(text.to_owned(), Retry::NextRun))
            }
            Err(err) => Err(err.into()),
        }
    }

    /// Uses a downloaded file, puts it away and records the outcome.
    async fn take_new(&mut self, url: &Url, download: Download) -> Result<Taken, Failed> {
        let Download { path, held } = download;
        let next_page = match self.source.flow {
            Flow::Pages => next_page(url, &path),
            _ => None,
        };
        let used = match self.source.content {
            Content::Names => self.ingest(url, &path).await,
            Content::Table(table) => self.keep_table(table, &path),
            Content::Facts(list) => self.keep_facts(list, &path, &held).await,
        };
        // The next run downloads the needed files anyway. Files of facts may be gigabytes in size.
        let is_facts = matches!(self.source.content, Content::Facts(_));
        let put_away = match &used {
            Ok(Some(_)) if !is_facts => keep_refused(&path),
            _ => fs::remove_file(&path),
        };
        put_away.with_context(|| path.display().to_string())?;
        let (refused, url) = (used?, url.as_str().to_owned());
        // A zone may be downloaded only once in 24 hours, even if the file was unusable.
        let is_final =
            self.source.content != Content::Names || self.source.pause > TimeDelta::zero();
        match refused {
            None => {
                self.state.refused.remove(&url);
                self.state.held.insert(url, held);
                Ok(Taken::Done { next_page })
            }
            Some(reason) if is_final => {
                self.state.held.insert(url.clone(), held);
                self.state.refused.insert(url, reason.clone());
                Err(Failed::new(reason, Retry::NextRun))
            }
            Some(reason) => Err(Failed::new(reason, Retry::Soon)),
        }
    }

    /// Stores a complete, newer table for the next start. Returns why the table is refused, if it is.
    fn keep_table(&mut self, table: Table, path: &Path) -> anyhow::Result<Option<String>> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        match self.runner.tables.keep(table, &bytes, self.runner.fetcher.clock.today()) {
            Ok(kept) if kept.is_new => {
                self.report.rows = kept.entries;
                let before = self.state.version.replace(kept.version);
                if self.state.version != before {
                    self.report.outcome = RunOutcome::Added;
                }
                Ok(None)
            }
            Ok(_) => Ok(None),
            Err(err @ KeepError::Io { .. }) => Err(err.into()),
            Err(err) => {
                Ok(Some(format!("the table is not used, and the previous one stays: {err}")))
            }
        }
    }

    /// Uses a new file of facts. Returns why the file is refused, if it is.
    async fn keep_facts(
        &mut self,
        list: PublishedList,
        path: &Path,
        held: &Held,
    ) -> anyhow::Result<Option<String>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = ListFile { name: name.clone(), path: path.to_owned() };
        if self.source.addresses.len() == 1 {
            let as_of = list.day_of(&name).or_else(|| day_of(held));
            return self.compile(list, vec![file], as_of).await;
        }
        // The lists of an edition are compiled when all of them were fetched.
        let (scratch, top) = (self.folder.to_owned(), self.source.top);
        let read = move || PublishedFacts::read(list, &[file], top, &scratch);
        match tokio::task::spawn_blocking(read).await.context("a reader panicked")? {
            Err(err @ PublishedError::Scratch(_)) => return Err(err.into()),
            Err(err) => return Ok(Some(unused(&err))),
            Ok(_) => {}
        }
        let lists = self.folder.join(LISTS);
        new_file::create_folder(&lists)
            .and_then(|()| fs::copy(path, lists.join(name)))
            .with_context(|| lists.display().to_string())?;
        self.has_new_lists = true;
        Ok(None)
    }

    /// Compiles the lists of an edition, if any of them is new.
    async fn join_lists(&mut self) {
        let Content::Facts(list) = self.source.content else { return };
        if !std::mem::take(&mut self.has_new_lists) {
            return;
        }
        let lists = self.folder.join(LISTS);
        let file = |url: &Url| {
            let name = fetch::file_name(url);
            ListFile { path: lists.join(&name), name }
        };
        let urls = self.source.urls(self.runner.fetcher.clock.today());
        let files = urls.iter().map(file).filter(|file| file.path.exists()).collect();
        let failed = match self.compile(list, files, None).await {
            Ok(None) => return,
            Ok(Some(reason)) => Failed::new(reason, Retry::NextRun),
            Err(err) => err.into(),
        };
        // The next run fetches and compiles them again.
        self.state.held.clear();
        self.failures.add(failed);
    }

    /// Compiles an edition, and puts it into use or holds it back. Returns why its files are refused, if they are.
    async fn compile(
        &mut self,
        list: PublishedList,
        files: Vec<ListFile>,
        as_of: Option<Day>,
    ) -> anyhow::Result<Option<String>> {
        let today = self.runner.fetcher.clock.today();
        let as_of = as_of.unwrap_or(today).min(today);
        let (folder, top) = (self.runner.facts.clone(), self.source.top);
        let keep = move || folder.keep(list, &files, top, as_of);
        let kept = match tokio::task::spawn_blocking(keep).await.context("a reader panicked")? {
            Err(err) if err.is_of_the_files() => return Ok(Some(unused(&err))),
            kept => kept?,
        };
        let (names, source) = (kept.names, &self.source.name);
        self.state.held_back = kept.held_back_by.map(|in_use| {
            format!(
                "the new edition has {names} names, fewer than half of the {in_use} in use, and is held back; check \
                 the list of the publisher, then accept it with `dropdex sources accept {source}`"
            )
        });
        if self.state.held_back.is_none() {
            self.report.outcome = RunOutcome::Added;
            self.report.editions += 1;
            (self.report.rows, self.report.rejected) = (names, kept.report.refused_lines);
        }
        Ok(None)
    }

    /// Ingests a list. Returns why the list is refused, if it is.
    async fn ingest(&mut self, url: &Url, path: &Path) -> anyhow::Result<Option<String>> {
        let source = self.source;
        let task = Ingest {
            lists: Lists::Files { files: vec![path.to_owned()], format: source.format },
            drop_date: None,
            observed_at: None,
            origin: Some(source.origin(url)),
            zone: source.zone_at(url),
            rebuild: false,
        };
        let outcome = self.runner.intake.run_task(Task::Ingest(task)).await?;
        if let Some(failure) = outcome.failure {
            bail!(failure.message);
        }
        if let Some(reason) = outcome.refused() {
            let kept = self.folder.join(REFUSED);
            let kept = kept.display();
            return Ok(Some(format!("the list was refused, and is kept in {kept}: {reason}")));
        }
        // A comparison of zone files may result in several lists, each with its own outcome, or
        // none.
        for list in outcome.lists {
            match list.outcome {
                ListOutcome::Added { ingested, .. } => {
                    self.report.outcome = RunOutcome::Added;
                    self.report.lists += 1;
                    self.report.rows += ingested.accepted;
                    self.report.rejected += ingested.rejected.values().sum::<u64>();
                }
                ListOutcome::Compared { .. } => self.report.compared += 1,
                _ => {}
            }
        }
        Ok(None)
    }

    /// Records the outcome, plans the next run and stores the state.
    fn finish(self) -> anyhow::Result<Report> {
        let SourceRun { runner, source, mut state, mut report, mut failures, published, .. } = self;
        if let Some(reason) = &state.held_back {
            failures.add(Failed::new(reason.clone(), Retry::NextRun));
        }
        let (now, jitter) = (runner.fetcher.clock.now(), fastrand::f64());
        if let Some((text, retry)) = failures.summary() {
            state.failed(source, text.clone(), retry, now, jitter);
            report.outcome = RunOutcome::Failed;
            report.error = Some(text);
        } else {
            state.succeeded(source, now, jitter);
            if report.outcome == RunOutcome::Unchanged && published == 0 {
                report.outcome = RunOutcome::Early;
            }
        }
        if report.outcome == RunOutcome::Added || report.lists + report.compared > 0 {
            (state.last_list, state.rows, state.rejected) =
                (Some(now), report.rows, report.rejected);
            if report.lists > 0 && report.compared == 0 {
                state.grew(report.rows / u64::from(report.lists));
            }
        }
        report.warnings = state.warnings();
        report.next_run = state.next_run.filter(|_| !state.is_stopped());
        runner.folder.set_state(&source.name, &state)?;
        Ok(report)
    }
}

/// A finished fetch.
struct One {
    url: Url,
    known: Known,
    fetched: Result<Fetched, FetchError>,
    /// Whether the fetch started after the run had renewed its token.
    is_late: bool,
}

/// Result for a list.
enum Taken {
    Done { next_page: Option<Url> },
    Early,
}

/// Returns the counter for runs of a source.
pub fn runs_total(source: &str, outcome: RunOutcome) -> metrics::Counter {
    let (source, outcome) = (source.to_owned(), outcome.as_str());
    metrics::counter!("dropdex_source_runs_total", "source" => source, "outcome" => outcome)
}

impl Report {
    /// Logs and counts a run in a server.
    pub fn record(&self) {
        let Report {
            source,
            outcome,
            lists,
            rows,
            rejected,
            compared,
            editions,
            error,
            warnings,
            next_run,
        } = self;
        let next = next_run.map(|next| next.to_rfc3339()).unwrap_or_default();
        match (outcome, error) {
            (RunOutcome::Failed, Some(error)) => {
                if next.is_empty() {
                    tracing::warn!(source, error, "a source is stopped until an operator acts");
                } else {
                    tracing::warn!(source, error, next, "a source was not fetched");
                }
            }
            (RunOutcome::Added, _) if *editions > 0 => {
                tracing::info!(source, names = rows, rejected, "a source has new facts");
            }
            (RunOutcome::Added, _) if *lists == 0 => {
                tracing::info!(
                    source,
                    entries = rows,
                    "a newer table takes effect at the next start"
                );
            }
            (RunOutcome::Added, _) => {
                tracing::info!(source, lists, rows, rejected, "a source has new lists");
            }
            (RunOutcome::Unchanged, _) if *compared > 0 => {
                tracing::info!(source, compared, "a source has new zone files, and no drops yet");
            }
            _ => tracing::debug!(source, outcome = outcome.as_str(), "a source has nothing new"),
        }
        for warning in warnings {
            tracing::warn!(source, warning, "a source is doubtful");
        }
        runs_total(source, *outcome).increment(1);
    }
}

fn unused(err: &dyn std::error::Error) -> String {
    format!("the facts are not used, and the previous ones stay: {err}")
}

/// Returns the day that the server states for a file.
fn day_of(held: &Held) -> Option<Day> {
    let date = DateTime::parse_from_rfc2822(held.last_modified.as_deref()?).ok()?;
    Day::from_instant(date.to_utc())
}

/// Puts the edition of a source that is held back into use. Returns its number of names.
///
/// # Errors
/// No edition is held back, the source is being fetched, or a file cannot be written.
pub fn accept(
    folder: &Folder,
    facts: &FactsFolder,
    source: &Source,
    now: DateTime<Utc>,
) -> anyhow::Result<u64> {
    let name = &source.name;
    let Content::Facts(list) = source.content else {
        bail!("{name} is not a source of facts; only editions of facts are held back");
    };
    let Some(_lease) = folder.lease(name)? else {
        bail!("{name} is being fetched; try again later");
    };
    let Some(names) = facts.accept(list)? else { bail!("no edition of {name} is held back") };
    let mut state = folder.state(name);
    state.held_back = None;
    (state.problem, state.last_list, state.rows) = (None, Some(now), names);
    folder.set_state(name, &state)?;
    Ok(names)
}

/// Removes leftovers of a killed process: drafts, and downloads that were not ingested.
fn tidy(folder: &Path, state: &SourceState) -> std::io::Result<()> {
    let partial = |url: &String| Url::parse(url).ok().map(|url| fetch::part_of(&url, folder));
    let partials: Vec<PathBuf> = state.partials.keys().filter_map(partial).collect();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_kept = KEPT.iter().any(|kept| name == *kept) || partials.contains(&entry.path());
        if entry.file_type()?.is_file() && !is_kept {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Keeps a refused list for the operator. The list replaces the list refused before.
fn keep_refused(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(".")).join(REFUSED);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    new_file::create_folder(&folder)?;
    fs::rename(path, folder.join(path.file_name().unwrap_or_default()))
}

/// Returns the URL of the page that follows the one in the file: `io.json` is followed by
/// `io/page:2.json`.
fn next_page(url: &Url, path: &Path) -> Option<Url> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PageInfo {
        page: u32,
        next_page: serde_json::Value,
    }
    let PageInfo { page, next_page } = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let is_last = matches!(next_page, serde_json::Value::Null | serde_json::Value::Bool(false));
    if is_last || page >= PAGES_MAX {
        return None;
    }
    let first = url.path().strip_suffix(".json")?;
    let first = first.rsplit_once("/page:").map_or(first, |(first, _)| first);
    let mut next = url.clone();
    next.set_path(&format!("{first}/page:{}.json", page + 1));
    Some(next)
}

/// Findings of a dry run at a URL.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    pub url: String,
    /// `None` if the list was not read, because it is a zone file or not yet published.
    pub format: Option<String>,
    pub bytes: u64,
    pub rows: u64,
    pub rejected: u64,
    pub last_modified: Option<String>,
}

/// Downloads the lists of a source and reads them to the end, without storing anything.
///
/// # Errors
/// A list cannot be fetched or read.
pub async fn check(fetcher: &Fetcher, source: &Source) -> anyhow::Result<Vec<Checked>> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut checked = Vec::new();
    let urls = match source.flow {
        Flow::Czds => {
            let links = czds::zone_links(fetcher, source, folder.path()).await?;
            for warning in &links.warnings {
                tracing::warn!(source = source.name, warning, "a source is doubtful");
            }
            links.zones
        }
        _ => source.urls(fetcher.clock.today()),
    };
    if source.flow == Flow::Czds {
        // Only access is checked, because zone files are gigabytes in size.
        let listed = |url: &Url| Checked { url: shown(url), ..Checked::default() };
        return Ok(urls.iter().map(listed).collect());
    }
    for url in urls {
        if source.newest_only && checked.iter().any(|it: &Checked| it.format.is_some()) {
            break;
        }
        let fetched = fetcher.fetch(source, &url, &mut Known::default(), folder.path()).await?;
        let Fetched::New(Download { path, held }) = fetched else {
            checked.push(Checked { url: shown(&url), ..Checked::default() });
            continue;
        };
        let (format, content, top) = (source.format, source.content, source.top);
        let (now, today) = (fetcher.clock.now(), fetcher.clock.today());
        let read = move || match content {
            Content::Table(table) => {
                let published = Published::parse(table, &fs::read(&path)?, String::new())?;
                let version = published.check(today)?.as_str();
                Ok((format!("{table} {version}"), published.entries as u64, 0))
            }
            Content::Facts(list) => count_facts(list, path, top),
            Content::Names => {
                count(path, ReadOptions { format, drop_date: None, observed_at: None, now })
            }
        };
        let (format, rows, rejected) = tokio::task::spawn_blocking(read).await??;
        checked.push(Checked {
            url: shown(&url),
            format: Some(format),
            bytes: held.bytes,
            rows,
            rejected,
            last_modified: held.last_modified,
        });
    }
    Ok(checked)
}

/// Returns the format, rows and rejected rows of a list. The rows of a zone are its names.
fn count(path: PathBuf, options: ReadOptions) -> anyhow::Result<(String, u64, u64)> {
    let feed = match options.format {
        Some(Format::Zone) => Ok(Feed::open_zone(&path)?.1),
        Some(Format::Registry) => Feed::open_registry(&path),
        _ => Feed::open(&path, &options),
    };
    match feed {
        Err(FeedError { problem: FeedProblem::RankedList, .. }) => {
            let (_, feed) = Feed::open_ranked(&path, &options)?;
            count_rows(feed, options.format)
        }
        feed => count_rows(feed?, options.format),
    }
}

/// Returns the kind, usable lines and refused lines of a file of facts.
fn count_facts(list: PublishedList, path: PathBuf, top: u64) -> anyhow::Result<(String, u64, u64)> {
    let scratch = path.parent().unwrap_or(Path::new(".")).to_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let read = PublishedFacts::read(list, &[ListFile { name, path }], top, &scratch)?;
    let lines = read.report.lines - read.report.refused_lines;
    Ok((format!("facts {list}"), lines, read.report.refused_lines))
}

fn count_rows<T>(feed: Feed<T>, format: Option<Format>) -> anyhow::Result<(String, u64, u64)> {
    let format = format.unwrap_or_else(|| feed.format()).to_string();
    let (mut rows, mut rejected) = (0, 0);
    for row in feed {
        match row? {
            Row::Seen(_) => rows += 1,
            Row::Rejected(_) => rejected += 1,
        }
    }
    Ok((format, rows, rejected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_followed_to_the_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("io.json");
        let next = |url: &str, text: &str| {
            fs::write(&path, text).expect("written");
            let url = Url::parse(url).expect("a URL");
            next_page(&url, &path).map(String::from)
        };
        let first = "https://park.io/domains/index/io.json?limit=1000";
        let second = "https://park.io/domains/index/io/page:2.json?limit=1000";
        let third = "https://park.io/domains/index/io/page:3.json?limit=1000";
        assert_eq!(next(first, r#"{"page":1,"nextPage":true}"#).as_deref(), Some(second));
        assert_eq!(next(second, r#"{"page":2,"nextPage":3}"#).as_deref(), Some(third));
        for last in [r#"{"page":3,"nextPage":false}"#, r#"{"page":3,"nextPage":null}"#, "[]", "<"] {
            assert_eq!(next(third, last), None, "{last}");
        }
        assert_eq!(next(third, r#"{"page":100,"nextPage":true}"#), None);
    }
}
