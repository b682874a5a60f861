//! SQLite on the same names and queries: `benches/peer_sqlite.py`, which needs Python 3 and
//! nothing else.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use dropdex::index::filter::Moment;
use dropdex::vocab::day::Day;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::market::Market;
use crate::queries::Query;
use crate::scan::Scan;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer_sqlite.py");
/// Seconds a mix may take the peer; it then says how many queries it got to.
const BUDGET_S: u32 = 60;
/// Answers of each mix that are compared.
pub const COMPARED: usize = 100;

/// What the peer is asked.
#[derive(Serialize)]
struct Task<'a> {
    /// [`Day::raw`], as all days.
    today: u16,
    catch_days: u16,
    budget_s: u32,
    /// The answers of so many queries of each mix are told.
    told: usize,
    mixes: [&'a [Query]; 2],
}

/// What it found.
#[derive(Deserialize)]
pub struct Peer {
    /// The version of SQLite.
    pub version: String,
    /// Seconds to load all rows, and to make the indexes.
    pub load_s: f64,
    pub index_s: f64,
    /// Bytes of the database with its indexes.
    pub bytes: u64,
    /// For each mix, in the order given.
    pub mixes: Vec<Mix>,
}

/// What it found for one mix.
#[derive(Deserialize)]
pub struct Mix {
    /// Of the first so many queries.
    pub latencies_ns: Vec<u64>,
    answers: Vec<Told>,
}

/// One answer.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Told {
    names: Vec<String>,
    /// Matches up to 10,001; on search alone.
    total: Option<usize>,
}

/// True when there is a Python 3 with SQLite.
pub fn is_there() -> bool {
    let import = ["-c", "import sqlite3"];
    let status = Command::new("python3").args(import).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Loads the market into SQLite and asks it `search` and `drops`. Some of its answers are compared
/// with a scan: it has to find the same to be a peer.
///
/// # Errors
/// The script fails, or finds something else.
pub fn run(
    folder: &Path,
    scan: Scan<'_>,
    search: &[Query],
    drops: &[Query],
) -> anyhow::Result<Peer> {
    let names = folder.join("names.tsv");
    write_names(scan.market, &names).with_context(|| names.display().to_string())?;
    let Moment { today, catch_days } = scan.moment;
    let mixes = [search, drops];
    let task = Task { today: today.raw(), catch_days, budget_s: BUDGET_S, told: COMPARED, mixes };
    let queries = folder.join("queries.json");
    std::fs::write(&queries, serde_json::to_vec(&task)?)
        .with_context(|| queries.display().to_string())?;
    let mut command = Command::new("python3");
    command.arg(SCRIPT).arg(&names).arg(&queries).stderr(Stdio::inherit());
    let output = command.output().context("cannot run python3")?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    let peer: Peer = serde_json::from_slice(&output.stdout).context("what the peer printed")?;
    for (queries, mix) in mixes.iter().zip(&peer.mixes) {
        compare(scan, queries, &mix.answers)?;
    }
    Ok(peer)
}

fn compare(scan: Scan<'_>, queries: &[Query], told: &[Told]) -> anyhow::Result<()> {
    ensure!(!told.is_empty(), "the peer told no answer");
    queries.par_iter().zip(told).try_for_each(|(query, told)| {
        let answer = scan.answer(query);
        let names = scan.names(&answer);
        let total = answer.total.min(10_001);
        ensure!(
            told.names == names && told.total.is_none_or(|told| told == total),
            "{query}: SQLite finds\n{told:?}\na scan finds {total}:\n{names:?}"
        );
        Ok(())
    })
}

/// name, Unicode form, TLD, length, dqs, drop date, effective release, first day of pending
/// delete, registered again; a tab between two, what there is not stays empty, days as numbers.
fn write_names(market: &Market, path: &Path) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for at in 0..market.len() {
        let row = market.row(at);
        let unicode = market.unicode(at).unwrap_or_default();
        let (name, tld) = (market.text(at), market.tld(at));
        write!(out, "{name}\t{unicode}\t{tld}\t{}\t{}", row.length, row.dqs)?;
        let days = row.drop.map(|drop| [drop.date, drop.release, drop.pending_from()]);
        match days.map(|days| days.map(Day::raw)) {
            Some([date, release, pending]) => write!(out, "\t{date}\t{release}\t{pending}")?,
            None => write!(out, "\t\t\t")?,
        }
        let again = row.drop.is_some_and(|drop| drop.registered_again);
        writeln!(out, "\t{}", u8::from(again))?;
    }
    out.flush()
}
