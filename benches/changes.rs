//! `cargo bench --bench changes`: measures the events of a list of 400,000 names that is added to a
//! corpus of a million, the events of a midnight, their matches with 100,000 watched names, and pages
//! of the feed. Prints a Markdown table; `--help` lists the options.

mod common;
#[path = "service/two_lists.rs"]
mod two_lists;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use common::cargo::CargoArguments;
use common::names::RealNames;
use common::rng::Rng;
use dropdex::accounts::{Channel, NewWatchAlerts, Store, Watch, WatchAlerts, WatchPatch};
use dropdex::changes::{Appender, ChangeEntry, ChangeLog, Mark};
use dropdex::index::Index;
use dropdex::index::changes::DropChange;
use dropdex::index::filter::{AsOf, Filter};
use dropdex::vocab::change::{ChangeKind, ChangeKinds};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use dropdex::vocab::dqs::Dqs;
use dropdex::vocab::limits::CATCH_DAYS_DEFAULT;
use dropdex::vocab::plan::{Plan, Plans};
use dropdex::vocab::time::UnixMs;
use two_lists::median;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 1;
const TODAY: &str = "2026-11-20";
/// Names in each watchlist.
const WATCHLIST: usize = 100;
const PAGE: usize = 1_000;
/// Number of pages to read; the 99th percentile is reported.
const PAGES: usize = 1_000;

/// Derives the changes of a new list and reads them.
#[derive(Parser)]
struct Arguments {
    /// Names known before
    #[arg(long, default_value_t = 1_000_000)]
    known: usize,
    /// Names of the list
    #[arg(long, default_value_t = 400_000)]
    new: usize,
    /// New names on watchlists of 100 names
    #[arg(long, default_value_t = 100_000)]
    watched: usize,
    #[command(flatten)]
    cargo: CargoArguments,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.cargo.skip("changes") {
        return Ok(());
    }
    let today: Day = TODAY.parse()?;
    let as_of = AsOf { today, catch_days: CATCH_DAYS_DEFAULT };
    let names = RealNames::read(&RealNames::sample_path())?;
    let names = names.extend(arguments.known + arguments.new, SEED)?;
    let folder = tempfile::tempdir()?;
    let (before, index) = two_lists::make(folder.path(), &names, arguments.new, today, SEED)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} names of which {} on the drops list and {} new\n\n| | |\n| --- | ---: |",
        index.manifest().names,
        index.manifest().drops,
        arguments.new
    )?;
    let since = before.manifest().batches;
    let (seconds, of_lists) = median(|| index.changes_of_lists(Some(&before), since, as_of));
    ensure!(of_lists.len() >= arguments.new, "every new name has left its zone");
    writeln!(out, "| events of the list found ({}) | {seconds:.3} s |", of_lists.len())?;
    let (seconds, of_day) = median(|| index.changes_of_day(today.plus(1), u64::MAX));
    writeln!(out, "| events of a midnight found ({}) | {seconds:.3} s |", of_day.len())?;
    let (appender, log) =
        Appender::open(&folder.path().join("changes"), Clock::pinned_to(today).now())?;
    let begun = Instant::now();
    append(&appender, &index, &of_lists, as_of)?;
    let seconds = begun.elapsed().as_secs_f64();
    writeln!(out, "| and appended to the log | {seconds:.3} s |")?;
    let bytes = log.bytes() as f64 / of_lists.len() as f64;
    writeln!(out, "| bytes an event | {bytes:.1} |")?;
    tell(&mut out, folder.path(), &log, arguments.watched, Clock::pinned_to(today))?;
    let page = |since: u64| log.read(since, PAGE).map(|page| page.len());
    writeln!(out, "| a page of {PAGE} events, p99 of {PAGES} | {:.3} ms |", p99(&log, page)?)?;
    let filter =
        Filter { min_dqs: Dqs::clamped(20), tlds: vec!["com".into()], ..Filter::default() };
    let test = index.name_test(&filter, None, as_of);
    let filtered = |since: u64| {
        let (mut seen, mut passing) = (0, 0);
        let read = log.visit(since, |_, entry| {
            seen += 1;
            passing += usize::from(test.passes(entry.name));
            if seen < PAGE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read.map(|()| seen)
    };
    writeln!(out, "| the same with a filter on each name | {:.3} ms |", p99(&log, filtered)?)?;
    Ok(())
}

/// Matches all changes with watchlists whose owners chose every kind of change, and queues the
/// messages.
fn tell(
    out: &mut impl Write,
    folder: &Path,
    log: &ChangeLog,
    watched: usize,
    clock: Clock,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let store = Store::open(&folder.join("accounts"), Plans::default(), clock)?;
    let now = clock.now();
    let at = UnixMs::from_instant(now);
    runtime.block_on(store.begin_watch_alerts(log.oldest() - 1, at))?;
    let all = log.read(log.oldest() - 1, usize::MAX)?;
    let listed = all.iter().filter(|change| change.kind == ChangeKind::LeftZone);
    let names: Vec<_> = listed.map(|change| change.name.clone()).take(watched).collect();
    for (number, names) in names.chunks(WATCHLIST).enumerate() {
        let email = format!("owner-{number}@example.com").parse()?;
        store.add_account(&email, Plan::Api, None)?;
        let key = store.issue_key(&email)?.key;
        let caller = store.authenticate(key.reveal()).context("the key works")?;
        let alerts = WatchAlerts { kinds: ChangeKinds::ALL, ..WatchAlerts::default() };
        let new = NewWatchAlerts { alerts, channels: vec![Channel::Email], switch_on: true };
        runtime.block_on(store.set_watch_alerts(&caller, new, at))?;
        let watches = names.iter().map(|name| Watch {
            name: name.clone(),
            in_corpus: true,
            registered_again: false,
            arrived: Vec::new(),
            patch: WatchPatch::default(),
            near: None,
        });
        for added in runtime.block_on(store.add_watches(&caller, watches.collect(), now))? {
            added?;
        }
    }
    let begun = Instant::now();
    let mut changes = log.read(log.oldest() - 1, usize::MAX)?;
    store.keep_watched(&mut changes);
    let found = store.match_changes(&changes);
    let through = log.newest();
    let queued = runtime.block_on(store.record_changes(through, &changes, &found, true))?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(queued == names.len().div_ceil(WATCHLIST), "one message for each account");
    writeln!(
        out,
        "| read, matched with {} watched names of {queued} accounts, and queued | {seconds:.3} s |",
        names.len()
    )?;
    Ok(())
}

/// Returns the 99th percentile in milliseconds of pages from all parts of the log.
fn p99<E: std::error::Error + Send + Sync + 'static>(
    log: &ChangeLog,
    page: impl Fn(u64) -> Result<usize, E>,
) -> anyhow::Result<f64> {
    let mut rng = Rng::at(SEED, 1 << 41);
    let (oldest, newest) = (log.oldest(), log.newest());
    let room = (newest + 1 - oldest).saturating_sub(PAGE as u64).max(1);
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let since = oldest - 1 + rng.below(room);
        let begun = Instant::now();
        let rows = page(since)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(rows == PAGE.min((newest - since) as usize), "a page is full");
    }
    times.sort_by(f64::total_cmp);
    Ok(times[PAGES * 99 / 100])
}

fn append(
    appender: &Appender,
    index: &Index,
    changes: &[DropChange],
    as_of: AsOf,
) -> anyhow::Result<()> {
    let mark = Mark { generation: 2, batch: 2, day: as_of.today, registry: 0, hours: None };
    appender.append(mark, |writer| {
        changes.iter().try_for_each(|change| {
            let drop = index.listed_drop(change.place, as_of);
            writer.push(&ChangeEntry {
                kind: change.kind,
                source: change.source,
                name: drop.name.as_str(),
                label_len: drop.name.label_len(),
                day: as_of.today,
                dqs: Some(drop.dqs),
                dqs_before: change.dqs_before,
                release: Some(drop.release),
            })
        })
    })?;
    Ok(())
}
