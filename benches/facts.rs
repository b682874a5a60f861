//! `cargo bench --bench facts`: facts beside the letters. `DROPDEX_BENCH_COUNT` sets the number of names, all of which
//! dropped (a million by default, generated from the sample). Prints a Markdown table.
//!
//! Memory and joins of one source with twelve columns about 5 % of the names, and of link ranks of every name;
//! conditions and orders on a fact beside those on columns of the index, with all matches counted; and a file of
//! 100,000 rows from its bytes to the first response that uses it.

mod common;
#[path = "service/sample.rs"]
#[expect(dead_code, reason = "facts are about names alone")]
mod sample;

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::drops::Mix;
use dropdex::facts::compile::{Rights, compile};
use dropdex::facts::store::{Edition, Licence, SourceMeta, SourceWriter, StoredColumn};
use dropdex::facts::{Choices, FactsFile, Value};
use dropdex::index::Index;
use dropdex::index::filter::{AsOf, Counting, DropFilter, SortKey};
use dropdex::query::facts::{FactCondition, FactTest};
use dropdex::query::params::{Limits, Params};
use dropdex::vocab::fact::{EditionId, FactCodes, FactColumnId, FactType, KeyKind};
use dropdex::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
use sample::{SEED, Sample};

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TIMES: u32 = 101;
const COLUMNS: usize = 12;
/// One name in this many has facts of the sparse source.
const SPARSE: usize = 20;
/// Values have 14 bits.
const VALUES: u64 = 1 << 14;
const UPLOADED: usize = 100_000;

fn main() -> anyhow::Result<()> {
    let Sample { folder: _folder, names, index, as_of, .. } = sample::make(Mix::ALL_DROPPED)?;
    let mut sorted: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    sorted.sort_unstable();
    say(&format!("{} names, {} dropped", sorted.len(), index.manifest().dropped));
    say("\n| step | time | memory, file |\n| --- | ---: | ---: |");

    let mut rng = fastrand::Rng::with_seed(SEED);
    let some: Vec<&str> =
        sorted.iter().filter(|_| rng.usize(..SPARSE) == 0).map(String::as_str).collect();
    let sparse = edition("sparse", COLUMNS, some.iter().copied(), as_of, &mut rng)?;
    join(&index, &sparse, "12 columns about 5 % of the names")?;
    let dense = edition("dense", 1, sorted.iter().map(String::as_str), as_of, &mut rng)?;
    join(&index, &dense, "link ranks of every name")?;
    upload(&index, &some, as_of)?;

    say("\n| query, 100 rows, matches counted | median | most |\n| --- | ---: | ---: |");
    let fact = |edition: &Edition| FactColumnId { edition: edition.id(), column: 0 };
    for (name, edition) in [("5 %", &sparse), ("every", &dense)] {
        timed(&index, as_of, &format!("a fact of {name} name in a range"), |run| {
            let mut filter = parsed("view=all", as_of);
            let low = i64::from(run % 50);
            let codes = FactCodes::Range(low, low + VALUES as i64 / 50);
            filter.common.drop.facts = vec![FactCondition {
                name: "bench.c0".parse().expect("a name"),
                test: FactTest::Known,
                resolved: Some((fact(edition), codes)),
            }];
            filter
        });
        timed(&index, as_of, &format!("by a fact of {name} name"), |run| {
            let mut filter = parsed(&format!("view=all&min_len={}", 1 + run % 5), as_of);
            filter.sort.key = SortKey::Fact;
            filter.sort.fact = Some(fact(edition));
            filter.sort.descending = true;
            filter
        });
    }
    for (name, query) in [
        ("among the best of the suffix", "max_suffix_rank"),
        ("other suffixes in a range", "min_tlds"),
        ("dropped several times", "min_drops"),
    ] {
        timed(&index, as_of, name, |run| {
            let most = if query == "min_drops" { 2 + run % 3 } else { 1 + run % 50 };
            parsed(&format!("view=all&{query}={most}&min_len={}", 1 + run % 5), as_of)
        });
    }
    for sort in ["tlds", "release", "suffix_rank", "rank"] {
        timed(&index, as_of, &format!("by {sort}"), |run| {
            parsed(&format!("view=all&sort={sort}&min_len={}", 1 + run % 5), as_of)
        });
    }
    Ok(())
}

/// Writes an edition of random numbers about these names.
fn edition<'a>(
    id: &str,
    columns: usize,
    names: impl Iterator<Item = &'a str>,
    as_of: AsOf,
    rng: &mut fastrand::Rng,
) -> anyhow::Result<Edition> {
    let column = |at| StoredColumn::new(format!("c{at}"), FactType::Int);
    let meta = SourceMeta {
        id: id.to_owned(),
        title: id.to_owned(),
        key: KeyKind::Domain,
        as_of: as_of.today,
        licence: Licence::Open,
        attribution: None,
        columns: (0..columns).map(column).collect(),
    };
    let mut writer = SourceWriter::new(Vec::new(), meta)?;
    for name in names {
        let values: Vec<_> =
            (0..columns).map(|_| Some(Value::Int(rng.u64(..VALUES) as i64))).collect();
        writer.push(name, None, &values)?;
    }
    Ok(Edition::of_bytes(Arc::from(writer.finish()?))?)
}

fn join(index: &Index, edition: &Edition, what: &str) -> anyhow::Result<()> {
    let begun = Instant::now();
    index.join_facts(edition.id(), edition)?;
    let took = begun.elapsed();
    say(&format!("| join: {what} | {} | {:.1} MB |", shown(took), bytes(index, edition.id())));
    Ok(())
}

fn bytes(index: &Index, id: EditionId) -> f64 {
    let all = index.facts_bytes();
    all.iter().filter(|(of, _)| *of == id).map(|(_, bytes)| *bytes as f64 / 1e6).sum()
}

/// Reads, compiles and joins a file, and asks for its names.
fn upload(index: &Index, names: &[&str], as_of: AsOf) -> anyhow::Result<()> {
    let mut file = String::from("domain,acme.rank:int,acme.score:dec,acme.seen:date\n");
    for (at, name) in names.iter().cycle().take(UPLOADED).enumerate() {
        let other = if at < names.len() { "" } else { "other" };
        file.push_str(&format!(
            "{other}{at}{name},{at},{}.5,2026-11-{:02}\n",
            at % 90,
            1 + at % 20
        ));
    }
    let (bytes, begun) = (file.into_bytes(), Instant::now());
    let size = bytes.len() as f64 / 1e6;
    let file = FactsFile::read(bytes, &[], Choices::default())?;
    let compiled = compile(file, as_of.today, &Rights::default(), |_| None)?.remove(0);
    let edition = Edition::of_bytes(Arc::from(compiled.bytes))?;
    index.join_facts(edition.id(), &edition)?;
    let mut filter = parsed("view=all", as_of);
    filter.common.drop.facts = vec![FactCondition {
        name: "acme.rank".parse()?,
        test: FactTest::Known,
        resolved: Some((FactColumnId { edition: edition.id(), column: 0 }, FactCodes::Known)),
    }];
    index.drops(&filter, as_of, Counting::Exact)?.for_each(|_| {});
    say(&format!(
        "| file of 100,000 rows, to the first response | {} | {size:.1} MB |",
        shown(begun.elapsed())
    ));
    Ok(())
}

fn parsed(query: &str, as_of: AsOf) -> DropFilter {
    let limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };
    Params::new(Some(query)).drops(limits, as_of.today).expect("a query")
}

/// Prints the time of a query, which differs from run to run so that no total is known.
fn timed(index: &Index, as_of: AsOf, name: &str, filter: impl Fn(u32) -> DropFilter) {
    let mut times: Vec<Duration> = (0..TIMES)
        .map(|run| {
            let filter = filter(run);
            let begun = Instant::now();
            let page = index.drops(&filter, as_of, Counting::Exact).expect("a verified index");
            page.for_each(|row| {
                std::hint::black_box(row.dqs);
            });
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    say(&format!(
        "| {name} | {} | {} |",
        shown(times[times.len() / 2]),
        shown(times[times.len() - 1])
    ));
}

/// Prints a line.
fn say(line: &str) {
    // A closed pipe ends the output.
    let _ = writeln!(stdout(), "{line}");
}

fn shown(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
