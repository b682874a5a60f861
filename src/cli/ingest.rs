//! `dropdex ingest`: adds lists to the corpus and builds a new generation.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::Context;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::Args;
use serde::Serialize;
use tempfile::TempDir;

use crate::cli::admin_client::{Local, end, run_task};
use crate::cli::{WrongUsage, print_json};
use crate::config::Config;
use crate::feeds::{self, Format};
use crate::intake::outcome::{ListOutcome, ListReport, Outcome, Step};
use crate::intake::request::{Ingest, Lists, Task};
use crate::vocab::day::Day;
use crate::vocab::new_file;

/// Add lists to the corpus, then build and activate a new index
///
/// The format of each list is recognised and printed on standard error. gzip, zstd and zip files are
/// unpacked. A list is added completely or not at all; adding the same list again changes nothing.
/// Bad rows are counted and written, with their line numbers, to the folder `rejects` in the data
/// folder; a list with more than 10 % bad rows is refused. A running server does the work, after
/// its queued tasks. Prints one line of JSON.
#[derive(Args, Debug)]
pub struct IngestArgs {
    /// The lists, - for standard input; with --format zone-pair the older and the newer zone file
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the lists: auto, native, names, pool, json, bardate, delimited, stamped, registered,
    /// released, dynadot, history, registry, ranked, zone or zone-pair
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    format: GivenFormat,
    /// The drop date of lists that carry none, YYYY-MM-DD
    #[arg(long, value_name = "DATE")]
    drop_date: Option<Day>,
    /// When the lists were observed: RFC 3339, or YYYY-MM-DD for midnight UTC [default: the list's
    /// own time stamp or, without one, now]
    #[arg(long, value_name = "TS", value_parser = parse_timestamp)]
    observed_at: Option<DateTime<Utc>>,
    /// Add to the corpus only; `dropdex rebuild` builds the index later
    #[arg(long)]
    no_rebuild: bool,
    #[command(flatten)]
    local: Local,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenFormat {
    Auto,
    Format(Format),
}

fn parse_format(text: &str) -> Result<GivenFormat, String> {
    if text == "auto" {
        return Ok(GivenFormat::Auto);
    }
    text.parse().map(GivenFormat::Format).map_err(|err: feeds::FormatError| err.to_string())
}

fn parse_timestamp(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.to_utc());
    }
    NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .map(|date| date.and_time(NaiveTime::MIN).and_utc())
        .map_err(|_| "must be RFC 3339 (2026-10-03T08:10:56Z) or YYYY-MM-DD".to_owned())
}

/// Output: one line of JSON.
#[derive(Default, Serialize)]
struct IngestSummary<'a> {
    /// Rows read, over all lists.
    rows: u64,
    accepted: u64,
    rejected: BTreeMap<&'a str, u64>,
    /// Distinct names in each list, summed.
    names: u64,
    seconds: f64,
    /// The new generation; null when none was built.
    generation: Option<String>,
    lists: Vec<ListLine<'a>>,
}

/// One list in the output.
#[derive(Default, Serialize)]
struct ListLine<'a> {
    file: &'a str,
    format: &'a str,
    /// How the list was read; empty unless it was added.
    reading: &'a str,
    /// `added`, `already held`, or `compared` for a zone file.
    outcome: &'static str,
    accepted: u64,
    rejected: BTreeMap<&'a str, u64>,
    names: u64,
    /// The file in the folder `corpus` that holds the list.
    batch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejects_file: Option<&'a Path>,
}

/// Ingests the lists in order, then rebuilds. A refused list ends the command; the lists before it
/// stay and are indexed.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: IngestArgs, config: &Config) -> anyhow::Result<()> {
    let streams = Streams::new(&config.data);
    let files = args.files.into_iter().map(|file| streams.keep(file)).collect::<Result<_, _>>()?;
    let lists = lists(files, args.format)?;
    let IngestArgs { drop_date, observed_at, no_rebuild, local, .. } = args;
    let task =
        Ingest { lists, drop_date, observed_at, origin: None, zone: None, rebuild: !no_rebuild };
    let outcome = run_task(Task::Ingest(task), &local, config)?;
    let is_built = outcome.failure.as_ref().is_none_or(|failure| failure.step == Step::Ingest);
    if outcome.error().is_none() || outcome.added().next().is_some() && is_built {
        print_json(&IngestSummary::new(&outcome))?;
    }
    end(&outcome)
}

/// Copies of streams, because a list is read more than once, and by other processes too. The copies
/// are removed when the command ends.
struct Streams<'a> {
    data: &'a Path,
    folders: RefCell<Vec<TempDir>>,
}

impl Streams<'_> {
    fn new(data: &Path) -> Streams<'_> {
        Streams { data, folders: RefCell::default() }
    }

    /// Returns the path itself for a file; for a stream, the path of a copy with the same name
    /// (`stdin` for `-`).
    fn keep(&self, path: PathBuf) -> anyhow::Result<PathBuf> {
        let is_stdin = ["-", "/dev/stdin"].iter().any(|stdin| path == Path::new(stdin));
        let is_stream =
            || fs::metadata(&path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir());
        if !is_stdin && !is_stream() {
            return Ok(path);
        }
        let name =
            if is_stdin { OsStr::new("stdin") } else { path.file_name().unwrap_or_default() };
        new_file::create_folder(self.data)?;
        let folder = tempfile::Builder::new().prefix(".stream-").tempdir_in(self.data);
        let folder =
            folder.with_context(|| format!("cannot keep a copy in {}", self.data.display()))?;
        let copy = folder.path().join(name);
        let mut input: Box<dyn Read> = if is_stdin {
            Box::new(stdin().lock())
        } else {
            Box::new(File::open(&path).with_context(|| unreadable(&path))?)
        };
        let mut file = new_file::create_new(&copy).with_context(|| unreadable(&copy))?;
        io::copy(&mut input, &mut file).with_context(|| unreadable(&path))?;
        self.folders.borrow_mut().push(folder);
        Ok(copy)
    }
}

fn unreadable(path: &Path) -> String {
    format!("{}: cannot be read or copied", path.display())
}

/// Returns the files with absolute paths, because the server has another working directory.
fn lists(files: Vec<PathBuf>, format: GivenFormat) -> anyhow::Result<Lists> {
    let files = files.into_iter().map(std::path::absolute).collect::<Result<Vec<_>, _>>();
    let files = files.context("cannot resolve a path")?;
    match format {
        GivenFormat::Auto => Ok(Lists::Files { files, format: None }),
        GivenFormat::Format(Format::ZonePair) => {
            let what = "--format zone-pair takes two files, the older and the newer zone file";
            let [older, newer] = <[PathBuf; 2]>::try_from(files).map_err(|_| WrongUsage(what))?;
            Ok(Lists::ZonePair { older, newer })
        }
        GivenFormat::Format(format) => Ok(Lists::Files { files, format: Some(format) }),
    }
}

impl<'a> IngestSummary<'a> {
    fn new(outcome: &'a Outcome) -> IngestSummary<'a> {
        let lists: Vec<_> = outcome.lists.iter().filter_map(ListLine::new).collect();
        let mut summary = IngestSummary {
            seconds: outcome.seconds,
            generation: outcome.generation.as_ref().map(|built| built.generation.to_string()),
            ..IngestSummary::default()
        };
        for list in &lists {
            summary.accepted += list.accepted;
            summary.names += list.names;
            for (&reason, count) in &list.rejected {
                *summary.rejected.entry(reason).or_default() += count;
            }
        }
        summary.rows = summary.accepted + summary.rejected.values().sum::<u64>();
        IngestSummary { lists, ..summary }
    }
}

impl<'a> ListLine<'a> {
    /// Returns `None` for a refused list, which is reported as an error on standard error.
    fn new(list: &'a ListReport) -> Option<ListLine<'a>> {
        let ListReport { file, outcome } = list;
        match outcome {
            ListOutcome::Added { format, reading, ingested } => Some(ListLine {
                file,
                format,
                reading,
                outcome: "added",
                accepted: ingested.accepted,
                rejected: ingested.rejected.iter().map(|(reason, n)| (&**reason, *n)).collect(),
                names: ingested.names,
                batch: Some(&ingested.batch),
                rejects_file: ingested.rejects_file.as_deref(),
            }),
            ListOutcome::Compared { .. } => Some(ListLine {
                file,
                format: Format::Zone.as_str(),
                outcome: "compared",
                ..ListLine::default()
            }),
            ListOutcome::AlreadyHeld { format } => {
                Some(ListLine { file, format, outcome: "already held", ..ListLine::default() })
            }
            ListOutcome::Refused { .. } => None,
        }
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
