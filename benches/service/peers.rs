//! Databases with the same names and queries: `benches/peers.py`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use dropdex::index::filter::AsOf;
use dropdex::vocab::day::Day;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::market::{Column, Listing, Market, Row};
use crate::queries::Query;
use crate::scan::Scan;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers.py");
/// Maximum names: larger corpora would take the peers hours and more memory than the machine has.
pub const NAMES_MAX: usize = 10_000_000;
/// The peers, as the script names them.
pub const PEERS: [&str; 3] = ["postgresql", "sqlite", "duckdb"];
/// Time limit of a mix, in seconds; a peer that reaches it reports the number of queries that it
/// ran.
const MIX_BUDGET_S: u32 = 45;
/// Total time limit of a peer, in seconds.
const BUDGET_S: u32 = 1_800;
/// Number of results compared per mix.
pub const COMPARED: usize = 50;
/// Number of mixes that peers run.
pub const MIXES: usize = 5;
/// Views whose facets are counted.
pub const FACETED: [&str; 3] = ["active", "all", "today"];
/// Exit code of a peer that lacks a dependency, which it prints on standard error.
const NOT_THERE: i32 = 3;

/// Queries sent to a peer.
#[derive(Serialize)]
struct Task<'a> {
    /// Today as [`Day::raw`], like all days.
    today: u16,
    catch_days: u16,
    mix_budget_s: u32,
    budget_s: u32,
    /// Number of queries of each mix whose results are returned.
    told: usize,
    mixes: [&'a [Query]; MIXES],
    /// Parts of the pipeline for which facets are counted.
    faceted: [&'static str; 3],
}

/// Results of a peer.
#[derive(Deserialize)]
pub struct Peer {
    /// Name and version of the peer.
    pub version: String,
    /// Seconds to load all rows and to create the indexes.
    pub load_s: f64,
    pub index_s: f64,
    /// Bytes of the database with its indexes.
    pub bytes: u64,
    /// For each mix, in the order given.
    pub mixes: Vec<Mix>,
    /// Timing of seven facets of each part of [`FACETED`], repeated.
    pub facets_ns: Vec<u64>,
}

/// Results for one mix.
#[derive(Deserialize)]
pub struct Mix {
    /// Results of the first queries.
    pub latencies_ns: Vec<u64>,
    answers: Vec<Told>,
}

/// The result of one query.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Told {
    names: Vec<String>,
    /// Number of matches up to 10,001; only for searches.
    total: Option<usize>,
}

/// The files that all peers read.
pub struct Peers<'a> {
    scan: Scan<'a>,
    mixes: [&'a [Query]; MIXES],
    names: PathBuf,
    task: PathBuf,
}

impl<'a> Peers<'a> {
    /// Writes the market of `scan` and the queries of all mixes into `folder`.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub fn new(
        folder: &Path,
        scan: Scan<'a>,
        mixes: [&'a [Query]; MIXES],
    ) -> anyhow::Result<Peers<'a>> {
        let (names, task) = (folder.join("names.tsv"), folder.join("queries.json"));
        write_names(scan.market, &names).with_context(|| names.display().to_string())?;
        let AsOf { today, catch_days } = scan.as_of;
        let asked = Task {
            today: today.raw(),
            catch_days,
            mix_budget_s: MIX_BUDGET_S,
            budget_s: BUDGET_S,
            told: COMPARED,
            mixes,
            faceted: FACETED,
        };
        std::fs::write(&task, serde_json::to_vec(&asked)?).context("writing the queries")?;
        Ok(Peers { scan, mixes, names, task })
    }

    /// Loads the names into `peer` and runs the queries. Some of the peer's results must equal
    /// those of a scan. An inner `Err` is the reason why the peer was not measured.
    ///
    /// # Errors
    ///
    /// The peer cannot be run, or its results differ.
    pub fn run(&self, peer: &str) -> anyhow::Result<Result<Peer, String>> {
        let python = std::env::var_os("DROPDEX_BENCH_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(python);
        command.args([SCRIPT, peer]).args([&self.names, &self.task]).stdin(Stdio::null());
        let Ok(output) = command.output() else { return Ok(Err("there is no python3".into())) };
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(NOT_THERE) {
            return Ok(Err(said.trim().to_owned()));
        }
        if !output.status.success() {
            bail!("{command:?} ended with {}: {said}", output.status);
        }
        let found: Peer =
            serde_json::from_slice(&output.stdout).context("what the peer printed")?;
        for (queries, mix) in self.mixes.iter().zip(&found.mixes) {
            self.compare(&found.version, queries, &mix.answers)?;
        }
        Ok(Ok(found))
    }

    fn compare(&self, peer: &str, queries: &[Query], told: &[Told]) -> anyhow::Result<()> {
        ensure!(!told.is_empty(), "{peer} gave no response");
        queries.par_iter().zip(told).try_for_each(|(query, told)| {
            let answer = self.scan.answer(query);
            let names = self.scan.names(&answer);
            let total = answer.total.min(10_001);
            ensure!(
                told.names == names && told.total.is_none_or(|told| told == total),
                "{query}: {peer} finds\n{told:?}\na scan finds {total}:\n{names:?}"
            );
            Ok(())
        })
    }
}

/// Writes name, Unicode form, TLD, length, dqs, drop date, effective release, first day of pending
/// delete, registered again, label, unrounded score and the columns of filters. Values are separated by
/// tabs, missing values are empty, and days are numbers.
fn write_names(market: &Market, path: &Path) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let listed = |(_, row): &(usize, &Row)| row.listing == Listing::Every;
    for (at, row) in market.rows().iter().enumerate().filter(listed) {
        let unicode = market.unicode(at).unwrap_or_default();
        let (name, tld) = (market.text(at), market.tld(at));
        write!(out, "{name}\t{unicode}\t{tld}\t{}\t{}", row.length, row.dqs)?;
        let drop = market.dropped(row);
        let days = drop.map(|drop| [drop.date, drop.release, drop.pending_from()]);
        match days.map(|days| days.map(Day::raw)) {
            Some([date, release, pending]) => write!(out, "\t{date}\t{release}\t{pending}")?,
            None => write!(out, "\t\t\t")?,
        }
        let again = drop.is_some_and(|drop| drop.registered_again);
        write!(out, "\t{}\t{}", u8::from(again), market.label(at))?;
        match market.facts(at) {
            Some(facts) => {
                write!(out, "\t{}", facts.rank)?;
                let values = &facts.values[1..Column::DropDate as usize];
                values.iter().try_for_each(|value| write!(out, "\t{value}"))?;
            }
            None => write!(out, "{}", "\t".repeat(Column::DropDate as usize))?,
        }
        writeln!(out)?;
    }
    out.flush()
}
