//! `dropdex ingest`: lists in, a new generation out.

use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::cli::rebuild::{is_behind, rebuild, seconds};
use crate::cli::{ExitWith, WrongUsage, beside, one_line};
use crate::config::Config;
use crate::corpus::Corpus;
use crate::corpus::ingest::{IngestError, Ingested, Source};
use crate::feeds::{self, Feed, Format, ReadOptions, ZoneOwners};
use crate::vocab::day::Day;
use crate::workers::admin::Work;
use crate::workers::inbox::{Looks, REFUSED_CODE};

/// Add lists to the corpus, then build and activate a new index
///
/// Formats are recognised; the line on standard error says what each list was taken for. gzip, zstd
/// and zip are unpacked. A list is applied whole or not at all; the same list again changes nothing.
/// Bad rows are counted and written, with their line numbers, to the folder `rejects` in the data
/// folder; more than 10 % of them and the list is refused. Prints one line of JSON.
#[derive(Args, Debug)]
pub struct IngestArgs {
    /// The lists; with --format zone-pair the older and the newer zone file
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What the lists are: auto, native, names, pool, json, bardate, delimited, stamped, registered
    /// or zone-pair
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    format: Wanted,
    /// The drop date of lists that carry none, YYYY-MM-DD
    #[arg(long, value_name = "DATE")]
    drop_date: Option<Day>,
    /// When the lists were observed: RFC 3339, or YYYY-MM-DD for midnight UTC [default: the list's
    /// own time stamp, else now]
    #[arg(long, value_name = "TS", value_parser = parse_timestamp)]
    observed_at: Option<DateTime<Utc>>,
    /// Add to the corpus only; `dropdex rebuild` builds the index later
    #[arg(long)]
    no_rebuild: bool,
    /// Do it in this process, also beside a running server, which else does it
    #[arg(long)]
    here: bool,
    /// Tell by the exit code 3 that it is the list's own fault
    #[arg(long, hide = true)]
    inbox: bool,
}

impl IngestArgs {
    /// The options again, for a server to run.
    fn options(&self) -> Vec<String> {
        let mut again = Vec::new();
        if let Wanted::Format(format) = self.format {
            again.extend(["--format".to_owned(), format.to_string()]);
        }
        if let Some(day) = self.drop_date {
            again.extend(["--drop-date".to_owned(), day.to_string()]);
        }
        if let Some(at) = self.observed_at {
            let at = at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
            again.extend(["--observed-at".to_owned(), at]);
        }
        if self.no_rebuild {
            again.push("--no-rebuild".to_owned());
        }
        again
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Auto,
    Format(Format),
}

fn parse_format(text: &str) -> Result<Wanted, String> {
    if text == "auto" {
        return Ok(Wanted::Auto);
    }
    text.parse().map(Wanted::Format).map_err(|err: feeds::FormatError| err.to_string())
}

fn parse_timestamp(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.to_utc());
    }
    NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .map(|date| date.and_time(NaiveTime::MIN).and_utc())
        .map_err(|_| "must be RFC 3339 (2026-10-03T08:10:56Z) or YYYY-MM-DD".to_owned())
}

/// The one line of JSON.
#[derive(Default, Serialize)]
struct Summary {
    /// Rows read, over all lists, and what became of them.
    rows: u64,
    accepted: u64,
    rejected: BTreeMap<&'static str, u64>,
    /// Distinct names in each list, summed.
    names: u64,
    seconds: f64,
    /// The new generation; null when none was built.
    generation: Option<String>,
    lists: Vec<ListSummary>,
}

/// What became of one list.
#[derive(Serialize)]
struct ListSummary {
    file: String,
    format: String,
    /// `added`, or `already ingested`.
    outcome: &'static str,
    accepted: u64,
    rejected: BTreeMap<&'static str, u64>,
    names: u64,
    /// The file in the folder `corpus` that holds the list.
    batch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejects_file: Option<PathBuf>,
}

/// Ingests the lists in their order, then rebuilds. A list that is refused ends it; those before
/// it stay, and are indexed.
///
/// # Errors
/// What to print on stderr before exit 1.
pub fn run(args: IngestArgs, config: &Config) -> anyhow::Result<()> {
    if !args.here {
        let files = beside::absolute(&args.files)?;
        if beside::run(config, Work::Ingest, args.options(), files)?.is_some() {
            return Ok(());
        }
    }
    let inbox = args.inbox;
    let done = run_here(args, config);
    done.map_err(|err| if inbox && is_its_own_fault(&err) { refused(&err) } else { err })
}

/// Whether an ingest failed for what the list is, and will fail again.
fn is_its_own_fault(err: &anyhow::Error) -> bool {
    err.chain().any(|cause| {
        cause.is::<feeds::FeedError>()
            || matches!(
                cause.downcast_ref::<IngestError>(),
                Some(
                    IngestError::Feed(_)
                        | IngestError::TooManyBad { .. }
                        | IngestError::Empty { .. }
                        | IngestError::SameZones
                )
            )
    })
}

fn refused(err: &anyhow::Error) -> anyhow::Error {
    ExitWith { code: REFUSED_CODE, why: one_line(err) }.into()
}

fn run_here(args: IngestArgs, config: &Config) -> anyhow::Result<()> {
    let started = Instant::now();
    let corpus = Corpus::open(&config.data)?;
    let mut summary = Summary::default();
    let outcome = ingest_all(&args, config, &corpus, &mut summary);
    let added = summary.lists.iter().any(|list| list.outcome == ADDED);
    // A process that died between the two left lists that no index holds.
    let wanted = added || (outcome.is_ok() && is_behind(&corpus, config));
    if wanted && !args.no_rebuild {
        summary.generation = Some(rebuild(&corpus, config)?.generation.to_string());
    }
    summary.seconds = seconds(started);
    if outcome.is_ok() || added {
        writeln!(stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    outcome
}

const ADDED: &str = "added";
const ALREADY: &str = "already ingested";

fn ingest_all(
    args: &IngestArgs,
    config: &Config,
    corpus: &Corpus,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    if args.format == Wanted::Format(Format::ZonePair) {
        let [older, newer] = args.files.as_slice() else {
            let what = "--format zone-pair takes two files, the older and the newer zone file";
            return Err(WrongUsage(what).into());
        };
        let list = ingest_zone_pair(args, config, corpus, older, newer)
            .with_context(|| format!("{} was not ingested", newer.display()))?;
        summary.add(list);
        return Ok(());
    }
    for path in &args.files {
        let list = ingest_list(args, config, corpus, path)
            .with_context(|| format!("{} was not ingested", path.display()))?;
        summary.add(list);
    }
    Ok(())
}

fn ingest_list(
    args: &IngestArgs,
    config: &Config,
    corpus: &Corpus,
    path: &Path,
) -> anyhow::Result<ListSummary> {
    let looks = || Looks::of(path).with_context(|| format!("cannot read {}", path.display()));
    let hashed = looks()?;
    let sha256 =
        feeds::file_sha256(path).with_context(|| format!("cannot read {}", path.display()))?;
    if let Some(list) = already(corpus, path, &sha256)? {
        return Ok(list);
    }
    let now = config.clock.now();
    let format = match args.format {
        Wanted::Auto => None,
        Wanted::Format(format) => Some(format),
    };
    let options =
        ReadOptions { format, drop_date: args.drop_date, observed_at: args.observed_at, now };
    let feed = Feed::open(path, &options)?;
    // Else one file would be known by the hash of another.
    if looks()? != hashed {
        bail!("it was replaced or written to meanwhile; try again");
    }
    tell(&format!("{}: read as {} ({})", path.display(), feed.format(), feed.reason()));
    let source = Source {
        name: file_name(path),
        sha256,
        format: feed.format().to_string(),
        observed_at: feed.observed_at(),
        ingested_at: now,
    };
    let progress = Progress::new(fs::metadata(path)?.len(), feed.bytes_read());
    let ingested = corpus.ingest(&source, feed.inspect(|_| progress.tick()))?;
    progress.finish();
    Ok(ListSummary::added(source, ingested))
}

fn ingest_zone_pair(
    args: &IngestArgs,
    config: &Config,
    corpus: &Corpus,
    older: &Path,
    newer: &Path,
) -> anyhow::Result<ListSummary> {
    let sum = |path: &Path| {
        feeds::file_sha256(path).with_context(|| format!("cannot read {}", path.display()))
    };
    // The pair is one list: its identity is both files in their order.
    let sha256: [u8; 32] =
        Sha256::new().chain_update(sum(older)?).chain_update(sum(newer)?).finalize().into();
    let name = format!("{}..{}", file_name(older), file_name(newer));
    if let Some(list) = already(corpus, Path::new(&name), &sha256)? {
        return Ok(list);
    }
    let day = feeds::zone_day(newer, args.drop_date)?;
    let before = ZoneOwners::open(older)?;
    let after = ZoneOwners::open(newer)?;
    if before.apex() != after.apex() {
        bail!(
            "{} is a file of the zone {}, {} of the zone {}; give two files of one zone",
            older.display(),
            before.apex(),
            newer.display(),
            after.apex()
        );
    }
    tell(&format!("{name}: read as zone-pair of {}, dropped on {day}", after.apex()));
    let source = Source {
        name,
        sha256,
        format: Format::ZonePair.to_string(),
        observed_at: args.observed_at.unwrap_or_else(|| day.start()),
        ingested_at: config.clock.now(),
    };
    let first = Progress::new(fs::metadata(older)?.len(), before.bytes_read());
    let second = Progress::new(fs::metadata(newer)?.len(), after.bytes_read());
    let ingested = corpus.ingest_zone_pair(
        &source,
        day,
        before.inspect(|_| first.tick()),
        after.inspect(|_| second.tick()),
    )?;
    first.finish();
    second.finish();
    Ok(ListSummary::added(source, ingested))
}

fn already(corpus: &Corpus, path: &Path, sha256: &[u8; 32]) -> anyhow::Result<Option<ListSummary>> {
    let Some(meta) = corpus.find(sha256)? else { return Ok(None) };
    tell(&format!(
        "{}: already ingested as {} on {}; nothing changes",
        path.display(),
        meta.source,
        meta.ingested_at.format("%Y-%m-%d")
    ));
    Ok(Some(ListSummary {
        file: file_name(path),
        format: meta.format,
        outcome: ALREADY,
        accepted: 0,
        rejected: BTreeMap::new(),
        names: 0,
        batch: None,
        rejects_file: None,
    }))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn tell(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

impl ListSummary {
    fn added(source: Source, ingested: Ingested) -> ListSummary {
        let Ingested { accepted, rejected, names, batch, rejects_file } = ingested;
        if let Some(path) = &rejects_file {
            let bad: u64 = rejected.values().sum();
            tell(&format!("{}: rows refused: {bad}; see {}", source.name, path.display()));
        }
        let Source { name: file, format, .. } = source;
        let batch = Some(batch);
        ListSummary { file, format, outcome: ADDED, accepted, rejected, names, batch, rejects_file }
    }
}

impl Summary {
    fn add(&mut self, list: ListSummary) {
        self.accepted += list.accepted;
        self.names += list.names;
        for (reason, count) in &list.rejected {
            *self.rejected.entry(reason).or_default() += count;
        }
        self.rows = self.accepted + self.rejected.values().sum::<u64>();
        self.lists.push(list);
    }
}

/// A bar over the bytes of a file, on a terminal; nothing elsewhere.
struct Progress {
    bar: ProgressBar,
    bytes: Arc<AtomicU64>,
}

impl Progress {
    fn new(len: u64, bytes: Arc<AtomicU64>) -> Progress {
        let bar =
            if stderr().is_terminal() { ProgressBar::new(len) } else { ProgressBar::hidden() };
        let template = "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar, bytes }
    }

    /// Called for every row: indicatif itself draws at most 20 times a second.
    fn tick(&self) {
        if !self.bar.is_hidden() {
            self.bar.set_position(self.bytes.load(Ordering::Relaxed));
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_names_every_format() {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            _args: IngestArgs,
        }
        let help = Alone::command().render_long_help().to_string();
        for format in Format::ALL {
            assert!(help.contains(&format.to_string()), "{format}");
        }
    }
}
