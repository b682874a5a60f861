//! `cargo bench --bench matching`: matches ten thousand alert rules against the 400,000 names that a
//! list adds to a corpus of a million, and compares the time with other programs. Prints a Markdown
//! table; `--help` lists the options.

mod common;
#[path = "service/two_lists.rs"]
mod two_lists;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use clap::Parser;
use common::cargo::CargoArguments;
use common::names::{Corpus as Names, RealNames};
use common::rng::Rng;
use dropdex::index::Index;
use dropdex::index::filter::{AsOf, Counting, DropFilter, Filter, RuleQuery, Sort, StageSet, View};
use dropdex::index::rules::{DueRule, RuleMatches};
use dropdex::query::filter::ReleaseRange;
use dropdex::query::text::Substring;
use dropdex::vocab::day::Day;
use dropdex::vocab::dqs::Dqs;
use dropdex::vocab::limits::CATCH_DAYS_DEFAULT;
use dropdex::vocab::name::{DomainName, to_unicode};
use dropdex::vocab::stage::Stage;
use dropdex::vocab::watermark::Watermark;
use serde::{Deserialize, Serialize};
use two_lists::median;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 1;
const TODAY: &str = "2026-11-20";
/// Maximum names in a message.
const BEST_MAX: usize = 500;
/// Number of rules that the other programs match, one after the other; their times are extrapolated to
/// all rules.
const SLICE: usize = 200;
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/matching_peer.py");

/// Matches alert rules against the names of a new list.
#[derive(Parser)]
struct Arguments {
    /// Names known before
    #[arg(long, default_value_t = 1_000_000)]
    known: usize,
    /// Names of the list
    #[arg(long, default_value_t = 400_000)]
    new: usize,
    #[arg(long, default_value_t = 10_000)]
    rules: usize,
    #[command(flatten)]
    cargo: CargoArguments,
}

/// A rule, as the peer reads it.
#[derive(Serialize)]
struct Asked<'a> {
    tlds: Vec<&'a str>,
    min_dqs: u8,
    max_length: u8,
    contains: Option<&'a str>,
    stages: Vec<usize>,
}

#[derive(Deserialize)]
struct Peer {
    version: String,
    seconds: f64,
    totals: Vec<u32>,
}

/// A rule with its stages, which the rule itself does not expose.
struct Drawn {
    rule: DueRule,
    stages: Vec<Stage>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.cargo.skip("matching") {
        return Ok(());
    }
    let today: Day = TODAY.parse()?;
    let as_of = AsOf { today, catch_days: CATCH_DAYS_DEFAULT };
    let names = RealNames::read(&RealNames::sample_path())?;
    let names = names.extend(arguments.known + arguments.new, SEED)?;
    let folder = tempfile::tempdir()?;
    let (_, index) = two_lists::make(folder.path(), &names, arguments.new, today, SEED)?;
    index.prepare(as_of);
    let drawn = draw(&names, arguments.rules, today);
    let rules: Vec<DueRule> = drawn.iter().map(|drawn| drawn.rule.clone()).collect();
    let mut out = io::stdout().lock();
    let (seconds, matches) = median(|| index.matches(&rules, BEST_MAX, as_of));
    let fired = matches.iter().filter(|found| found.total > 0).count();
    let told: u64 = matches.iter().map(|found| u64::from(found.total)).sum();
    writeln!(
        out,
        "{} rules, {} names of which {} on the drops list and {} new: {fired} rules fire, {told} \
         names in all\n",
        rules.len(),
        index.manifest().names,
        index.manifest().drops,
        arguments.new,
    )?;
    writeln!(out, "| | {} rules |\n| --- | ---: |", rules.len())?;
    writeln!(out, "| all at once, as a new list is matched | {seconds:.3} s |")?;

    // Programs that take one rule at a time search only new names, which is less work.
    let base = Watermark { batch: 1, day: today };
    let slice: Vec<DueRule> =
        rules.iter().take(SLICE).map(|rule| DueRule { base, ..rule.clone() }).collect();
    let expected = index.matches(&slice, BEST_MAX, as_of);
    let all = rules.len() as f64 / slice.len() as f64;
    let (seconds, one_by_one) = median(|| {
        let one = |rule| index.matches(std::slice::from_ref(rule), BEST_MAX, as_of).remove(0);
        slice.iter().map(one).collect::<Vec<RuleMatches>>()
    });
    ensure!(one_by_one == expected, "a rule alone fires as it does among others");
    writeln!(out, "| one rule after the other ({SLICE}, extrapolated) | {:.1} s |", seconds * all)?;
    let (seconds, _) = median(|| slice.iter().map(|rule| walk(&index, rule, as_of)).sum::<u32>());
    writeln!(
        out,
        "| one drops query a rule, new and old ({SLICE}, extrapolated) | {:.1} s |",
        seconds * all
    )?;
    let totals: Vec<u32> = expected.iter().map(|found| found.total).collect();
    match ask_peer(folder.path(), &index, &drawn[..slice.len()], as_of)? {
        Some(peer) => {
            ensure!(peer.totals == totals, "the peer finds something else");
            writeln!(
                out,
                "| one query a rule over the new names alone, {} ({SLICE}, extrapolated; same \
                 answers) | {:.1} s |",
                peer.version,
                peer.seconds * all
            )?;
        }
        None => writeln!(out, "| SQLite: there is no python3 to ask it with | |")?,
    }
    let (seconds, _) =
        median(|| slice.iter().filter(|rule| index.preview(&rule.query, as_of).is_ok()).count());
    writeln!(out, "| one preview, on average | {:.2} ms |", seconds / slice.len() as f64 * 1e3)?;
    Ok(())
}

/// Draws rules like those that people create: most have TLDs, a score or a length, and half of them
/// have a text.
fn draw(names: &Names, count: usize, today: Day) -> Vec<Drawn> {
    let mut rng = Rng::at(SEED, 1 << 40);
    (0..count).map(|_| draw_rule(names, today, &mut rng)).collect()
}

fn draw_rule(names: &Names, today: Day, rng: &mut Rng) -> Drawn {
    let mut name = || names.get(rng.below(names.len() as u64) as usize);
    let (held, tlds): (DomainName, Vec<DomainName>) = (name(), (0..100).map(|_| name()).collect());
    let mut common = Filter::default();
    if rng.chance(600) {
        // A rule has a few TLDs, drawn with their frequency among names; one rule in fifty has the
        // maximum number.
        let count = if rng.chance(20) { 100 } else { 1 + rng.below(5) as usize };
        common.tlds = tlds[..count].iter().map(|name| name.tld().into()).collect();
    }
    if rng.chance(600) {
        common.min_dqs = Dqs::clamped(20 + rng.below(60) as i32);
    }
    if rng.chance(400) {
        common.max_len = 4 + rng.below(12) as u8;
    }
    let label: Vec<char> = to_unicode(held.label()).chars().collect();
    let contains = rng.chance(500).then(|| {
        let len = (2 + rng.below(6) as usize).min(label.len());
        let first = rng.below((label.len() - len + 1) as u64) as usize;
        Substring::from_stored(label[first..first + len].iter().collect())
    });
    let stages = match rng.below(10) {
        0 => vec![Stage::PendingDelete],
        1 => vec![Stage::Catchable],
        2 => vec![Stage::PendingDelete, Stage::Catchable],
        _ => vec![Stage::Redemption, Stage::PendingDelete, Stage::Catchable],
    };
    let query = RuleQuery { common, contains, stages: StageSet::from_stages(&stages) };
    let created = today.plus(-(rng.below(400) as i32));
    let base = Watermark { batch: 1, day: today.plus(-1) };
    let releases_then = ReleaseRange::default();
    Drawn { rule: DueRule { query, created, base, releases_then }, stages }
}

/// Counts the names in the drop list that pass a rule, new or not.
fn walk(index: &Index, rule: &DueRule, as_of: AsOf) -> u32 {
    let filter = DropFilter {
        common: rule.query.common.clone(),
        view: View::Active,
        contains: rule.query.contains.clone(),
        sort: Sort::default(),
        sort_fact: None,
        after: None,
        limit: u32::MAX,
        offset: 0,
    };
    index.drops(&filter, as_of, Counting::None).map_or(0, |page| page.count())
}

/// Matches the same new names and rules in SQLite; `None` without Python.
fn ask_peer(
    folder: &Path,
    index: &Index,
    rules: &[Drawn],
    as_of: AsOf,
) -> anyhow::Result<Option<Peer>> {
    let (names, asked) = (folder.join("names.tsv"), folder.join("rules.json"));
    let mut out = BufWriter::new(File::create(&names)?);
    let all = RuleQuery {
        common: Filter::default(),
        contains: None,
        stages: StageSet::from_stages(&Stage::ALL),
    };
    let base = Watermark { batch: 1, day: as_of.today };
    let releases_then = ReleaseRange::default();
    let all = DueRule { query: all, created: as_of.today, base, releases_then };
    let new = index.matches(&[all], usize::MAX, as_of).remove(0);
    for doc in new.best {
        let drop = index.listed_drop(doc, as_of);
        let unicode = to_unicode(drop.name.as_str());
        let unicode = if unicode == drop.name.as_str() { "" } else { &unicode };
        let (name, tld, length) = (drop.name.as_str(), drop.name.tld(), drop.name.length());
        writeln!(out, "{name}\t{unicode}\t{tld}\t{length}\t{}\t{}", drop.dqs, drop.stage as u8)?;
    }
    out.flush()?;
    let rules: Vec<Asked<'_>> = rules.iter().map(asked_of).collect();
    serde_json::to_writer(File::create(&asked)?, &rules)?;
    let told = Command::new("python3").arg(PEER).args([&names, &asked]).output();
    let told = match told {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        told => told?,
    };
    ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    Ok(Some(serde_json::from_slice(&told.stdout)?))
}

fn asked_of(Drawn { rule: DueRule { query, .. }, stages }: &Drawn) -> Asked<'_> {
    Asked {
        tlds: query.common.tlds.iter().map(|tld| tld.as_str()).collect(),
        min_dqs: query.common.min_dqs.points(),
        max_length: query.common.max_len,
        contains: query.contains.as_ref().map(Substring::as_str),
        stages: stages.iter().map(|stage| *stage as usize).collect(),
    }
}
