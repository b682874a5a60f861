//! `cargo bench --bench fast_fields`: the columns of the drop list as tantivy fast fields.
//!
//! Filters are compared with the bit slices of the index. Both variants run the same queries on the same names: the
//! number of matches, and the first hundred in rank order. The time for the slices is that of a complete
//! response, including rows.
//!
//! Reads are compared with numbers of a fixed number of bits ([`Packed`]), on pages of a hundred rows from
//! anywhere in the list. The index reads the fields of a page with one call each.
//!
//! `DROPDEX_BENCH_COUNT` sets the number of names (a million by default, generated from the sample). Prints
//! Markdown tables.

mod common;
#[path = "service/market.rs"]
#[expect(dead_code, reason = "shared with the service bench")]
mod market;
#[path = "service/sample.rs"]
mod sample;

use std::cmp::Reverse;
use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use common::drops::Mix;
use common::rng::Rng;
use dropdex::index::filter::Counting;
use dropdex::query::params::{Limits, Params};
use dropdex::vocab::day::Day;
use dropdex::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
use market::Market;
use sample::Sample;
use tantivy::columnar::{Column, ColumnType, ColumnarReader, ColumnarWriter};

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TIMES: usize = 201;
const ROWS: usize = 100;
/// Pages of rows that are read, each once.
const PAGES: usize = 4_000;

/// The columns, in the order of their values in [`Doc`].
const COLUMNS: [&str; 6] = ["dqs", "length", "tld", "drop_day", "release_day", "rank"];

/// The queries, as parameters of the drop list. `TLD` stands for the most frequent suffix.
const QUESTIONS: [(&str, &[(&str, &str)]); 5] = [
    ("released in three days", &[("release_from", "today"), ("release_to", "+2d")]),
    (
        "and of 5 to 8 characters",
        &[("release_from", "today"), ("release_to", "+2d"), ("min_len", "5"), ("max_len", "8")],
    ),
    (
        "and in one suffix",
        &[
            ("release_from", "today"),
            ("release_to", "+2d"),
            ("min_len", "5"),
            ("max_len", "8"),
            ("tld", "TLD"),
        ],
    ),
    (
        "a score of 40 to 60 and 8 characters",
        &[("min_dqs", "40"), ("max_dqs", "60"), ("min_len", "8"), ("max_len", "8")],
    ),
    (
        "dropped in the last week, one suffix",
        &[("dropped_from", "-6d"), ("dropped_to", "today"), ("tld", "TLD")],
    ),
];

/// A row of the drop list: its values by column, in rank order.
type Doc = [u64; COLUMNS.len()];

fn main() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let Sample { folder, names, drops, index, as_of } = sample::make(Mix::MARKET)?;
    let today = as_of.today;
    let market = Market::new(names, &drops);
    let docs = docs_of(&market);
    let tld = most_frequent(&docs);
    let tld_text = market.tlds()[tld as usize].clone();
    let bytes = written(&docs)?;
    let begun = Instant::now();
    let columns = opened(&bytes)?;
    let open = begun.elapsed();
    writeln!(out, "{} names, {} in the drop list.\n", market.len(), docs.len())?;
    writeln!(out, "| What | fast fields | bit slices | ratio |\n| --- | ---: | ---: | ---: |")?;
    let slices = slices_bytes(folder.path())?;
    let per_doc = |bytes: u64| bytes as f64 / docs.len() as f64;
    writeln!(
        out,
        "| bytes a row | {:.2} | {:.2} |  |",
        per_doc(bytes.len() as u64),
        per_doc(slices)
    )?;
    writeln!(out, "| open the columns | {} |  |  |", micros(open))?;
    for (name, pairs) in QUESTIONS {
        let ranges = ranges(pairs, today, tld)?;
        let (total, first) = by_columns(&columns, docs.len(), &ranges);
        let pairs: Vec<_> = pairs
            .iter()
            .map(|&(key, value)| (key, if value == "TLD" { &*tld_text } else { value }))
            .collect();
        let pairs = [pairs.as_slice(), &[("view", "all"), ("limit", "100")]].concat();
        let limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };
        let filter = Params::from_pairs(&pairs).drops(limits, today);
        let filter = filter.map_err(|err| anyhow::anyhow!("{name}: {err:?}"))?;
        let (page, counted) =
            (index.drops(&filter, as_of, Counting::None)?, index.count_drops(&filter, as_of)?);
        ensure!(
            counted as usize == total && page.count() as usize == first.len(),
            "{name}: {} of {total} names, {} of {} rows",
            counted,
            page.count(),
            first.len()
        );
        let fast = median(|| drop(black_box(by_columns(&columns, docs.len(), &ranges))));
        let slices =
            median(|| drop(black_box(index.drops(black_box(&filter), as_of, Counting::Exact))));
        let ratio = fast.as_secs_f64() / slices.as_secs_f64();
        writeln!(
            out,
            "| {name}: {total} names | {} | {} | {ratio:.1} |",
            micros(fast),
            micros(slices)
        )?;
    }
    compare_reads(&columns, &docs, &mut out)
}

/// Returns the sum of the values of a page.
type Reader<'a> = &'a dyn Fn(&[u32]) -> u64;

/// Prints the times of reads of a value, on pages of rows.
fn compare_reads(
    columns: &[Column<u64>],
    docs: &[Doc],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut rng = Rng::at(1, 0);
    let mut page = || -> Vec<u32> {
        let mut page: Vec<u32> = (0..ROWS).map(|_| rng.below(docs.len() as u64) as u32).collect();
        page.sort_unstable();
        page
    };
    let pages: Vec<Vec<u32>> = (0..PAGES).map(|_| page()).collect();
    writeln!(
        out,
        "\n| A read, in ns | packed | field, by row | field, by page | by page to packed |"
    )?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: |")?;
    for (at, (name, column)) in COLUMNS.iter().zip(columns).enumerate() {
        let packed = Packed::new(docs.iter().map(|doc| doc[at]));
        let by_row = |page: &[u32]| page.iter().map(|&doc| column.values.get_val(doc)).sum::<u64>();
        let by_page = |page: &[u32]| {
            let mut values = [0; ROWS];
            column.values.get_vals(page, &mut values);
            values.iter().sum::<u64>()
        };
        let from_packed = |page: &[u32]| page.iter().map(|&doc| packed.get(doc)).sum::<u64>();
        let readers: [Reader<'_>; 3] = [&from_packed, &by_row, &by_page];
        let sums = readers.map(|read| pages.iter().map(|page| read(page)).sum::<u64>());
        ensure!(sums[1..] == [sums[0]; 2], "{name}: {sums:?}");
        let [packed, by_row, by_page] = readers.map(|read| {
            let time = median(|| {
                black_box(pages.iter().map(|page| read(black_box(page))).sum::<u64>());
            });
            time.as_secs_f64() * 1e9 / (PAGES * ROWS) as f64
        });
        let ratio = by_page / packed;
        writeln!(out, "| {name} | {packed:.1} | {by_row:.1} | {by_page:.1} | {ratio:.2} |")?;
    }
    Ok(())
}

/// Numbers of as many bits as the largest one needs, one after the other.
struct Packed {
    bits: usize,
    bytes: Vec<u8>,
}

impl Packed {
    fn new(numbers: impl ExactSizeIterator<Item = u64> + Clone) -> Packed {
        let largest = numbers.clone().max().unwrap_or(0);
        let bits = (u64::BITS - largest.leading_zeros()) as usize;
        let mut bytes = vec![0; (numbers.len() * bits).div_ceil(8) + size_of::<u64>()];
        for (at, number) in numbers.enumerate() {
            let place = &mut bytes[at * bits / 8..];
            let shifted = number << (at * bits % 8);
            place.iter_mut().zip(shifted.to_le_bytes()).for_each(|(byte, more)| *byte |= more);
        }
        Packed { bits, bytes }
    }

    #[inline]
    fn get(&self, doc: u32) -> u64 {
        let bit = doc as usize * self.bits;
        let read = self.bytes[bit / 8..].first_chunk().expect("padded to a whole read");
        u64::from_le_bytes(*read) >> (bit % 8) & ((1 << self.bits) - 1)
    }
}

/// Returns the rows of the drop list, best first.
fn docs_of(market: &Market) -> Vec<Doc> {
    let mut rows = Vec::new();
    for (at, facts) in market.all_facts() {
        let row = market.row(*at as usize);
        let Some(dropped) = market.dropped(row).filter(|dropped| !dropped.registered_again) else {
            continue;
        };
        let [date, release] = [dropped.date, dropped.release].map(|day| u64::from(day.raw()));
        let key = (Reverse(row.dqs), Reverse(facts.rank), row.length, *at);
        rows.push((
            key,
            [row.dqs.into(), row.length.into(), row.tld.into(), date, release, facts.rank.into()],
        ));
    }
    rows.sort_unstable_by_key(|(key, _)| *key);
    rows.into_iter().map(|(_, doc)| doc).collect()
}

fn most_frequent(docs: &[Doc]) -> u64 {
    let mut counts = std::collections::HashMap::<u64, usize>::new();
    docs.iter().for_each(|doc| *counts.entry(doc[2]).or_default() += 1);
    counts.into_iter().max_by_key(|&(tld, count)| (count, Reverse(tld))).map_or(0, |(tld, _)| tld)
}

fn written(docs: &[Doc]) -> anyhow::Result<Vec<u8>> {
    let mut writer = ColumnarWriter::default();
    // The type is recorded, because otherwise small numbers would be stored as signed ones with other
    // ranges.
    COLUMNS.iter().for_each(|name| writer.record_column_type(name, ColumnType::U64, false));
    for (doc, values) in docs.iter().enumerate() {
        for (name, value) in COLUMNS.iter().zip(values) {
            writer.record_numerical(doc as u32, name, *value);
        }
    }
    let mut bytes = Vec::new();
    writer.serialize(docs.len() as u32, None, &mut bytes)?;
    Ok(bytes)
}

fn opened(bytes: &[u8]) -> anyhow::Result<Vec<Column<u64>>> {
    let reader = ColumnarReader::open(bytes.to_vec())?;
    let column = |name: &&str| {
        let handle = reader.read_columns(name)?.pop().context("the column was written")?;
        handle.open_u64_lenient()?.context("the column holds numbers")
    };
    COLUMNS.iter().map(column).collect()
}

/// Returns the values of a column that each parameter accepts.
fn ranges(
    pairs: &[(&str, &str)],
    today: Day,
    tld: u64,
) -> anyhow::Result<Vec<(usize, RangeInclusive<u64>)>> {
    let mut ranges: Vec<Option<RangeInclusive<u64>>> = vec![None; COLUMNS.len()];
    for &(name, value) in pairs {
        let day = || {
            let days = match value {
                "today" => 0,
                days => days.trim_end_matches('d').trim_start_matches('+').parse()?,
            };
            anyhow::Ok(u64::from(today.plus(days).raw()))
        };
        let (column, low, high) = match name {
            "min_dqs" => (0, Some(value.parse()?), None),
            "max_dqs" => (0, None, Some(value.parse()?)),
            "min_len" => (1, Some(value.parse()?), None),
            "max_len" => (1, None, Some(value.parse()?)),
            "tld" => (2, Some(tld), Some(tld)),
            "dropped_from" => (3, Some(day()?), None),
            "dropped_to" => (3, None, Some(day()?)),
            "release_from" => (4, Some(day()?), None),
            "release_to" => (4, None, Some(day()?)),
            other => anyhow::bail!("{other} has no column"),
        };
        let (from, to) = ranges[column].clone().unwrap_or(0..=u64::MAX).into_inner();
        ranges[column] = Some(low.unwrap_or(from)..=high.unwrap_or(to));
    }
    Ok(ranges.into_iter().enumerate().filter_map(|(at, range)| Some((at, range?))).collect())
}

/// Runs a query on fast fields: intersects the rows of each column's range, narrowest first.
fn by_columns(
    columns: &[Column<u64>],
    docs: usize,
    ranges: &[(usize, RangeInclusive<u64>)],
) -> (usize, Vec<u32>) {
    let mut found: Option<Vec<u32>> = None;
    for (column, range) in ranges {
        let column = &columns[*column];
        let Some(kept) = &mut found else {
            let mut rows = Vec::new();
            column.get_docids_for_value_range(range.clone(), 0..docs as u32, &mut rows);
            found = Some(rows);
            continue;
        };
        // Reading the column at the remaining docs is cheaper than another walk over the whole
        // column.
        kept.retain(|doc| column.first(*doc).is_some_and(|value| range.contains(&value)));
    }
    let found = found.unwrap_or_default();
    (found.len(), found.into_iter().take(ROWS).collect())
}

/// Returns the bytes of the index for the bitmaps of the columns.
fn slices_bytes(folder: &std::path::Path) -> anyhow::Result<u64> {
    let current = fs::read_dir(folder.join("index"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.is_dir())
        .context("a generation exists")?;
    let mut bytes = 0;
    for file in fs::read_dir(current)? {
        let file = file?;
        let name = file.file_name();
        let column = name.to_str().and_then(|name| name.strip_prefix("listed."));
        let column = column.and_then(|name| name.split('-').next());
        if column.is_some_and(|name| matches!(name, "length" | "tld" | "drop" | "release")) {
            bytes += file.metadata()?.len();
        }
    }
    Ok(bytes)
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..TIMES)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[TIMES / 2]
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}
