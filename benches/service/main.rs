//! The whole service, measured: from observations to a served index, the memory it takes, and
//! its answers in this process, over HTTP, and beside SQLite. Prints one Markdown table.
//!
//! `cargo bench --bench service -- [--names FILE] [--count N]`; `--help` lists all.

#[path = "../common/mod.rs"]
mod common;
mod hard;
mod load;
mod market;
mod peer;
mod process;
mod queries;
mod report;
mod scan;
mod server;
mod stages;
mod timing;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use clap::Parser;
use common::drops::{Drops, Mix};
use common::names::RealNames;
use dropdex::feeds::Observation;
use dropdex::index::Index;
use dropdex::index::filter::Moment;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use dropdex::vocab::limits::CATCH_DAYS_DEFAULT;
use dropdex::vocab::name::DomainName;
use load::{Load, Request};
use market::Market;
use queries::{Asker, List, Query};
use rayon::prelude::*;
use report::{Figure, Report, number};
use scan::Scan;
use server::Service;
use stages::{Built, Folders};
use timing::{Timing, ask_all};

/// What the server uses: allocation is part of every answer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Queries of each mix in this process, and how long they may take.
const QUERIES: usize = 20_000;
const MIX_BUDGET: Duration = Duration::from_secs(10);
/// Queries of each mix whose answers are compared with a scan before anything is timed.
const CHECKED: usize = 200;
/// Each hard query is asked this often, or for this long.
const HARD_TIMES: usize = 300;
const HARD_BUDGET: Duration = Duration::from_secs(1);
/// Queries of each mix that SQLite is asked too.
const PEER_QUERIES: usize = 300;
/// Over HTTP each mix and its static route take turns, so that a mood of the machine meets both.
const TURNS: usize = 3;
const TURN: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_secs(1);
/// The goals are for this many names.
const GOAL_NAMES: &str = "at 10 M names";

/// Measures the whole service on a corpus made from real names.
#[derive(Parser)]
struct Arguments {
    /// Real names, one a line or in the first column of a CSV file; plain, gzip or zstd
    /// [default: the sample in data/sample]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Names to make
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    count: u32,
    /// The same seed gives the same corpus and queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The day of the lists and of the queries
    #[arg(long, default_value = "2026-11-20", value_name = "YYYY-MM-DD")]
    today: Day,
    /// Given by `cargo bench`; changes nothing
    #[arg(long, hide = true)]
    bench: bool,
    /// Given by `cargo bench FILTER` to every bench: run only where the name has it
    #[arg(hide = true)]
    filter: Option<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.filter.as_ref().is_some_and(|filter| !"service".contains(filter)) {
        return Ok(());
    }
    let report = run(&arguments)?;
    write!(io::stdout().lock(), "{report}")?;
    Ok(())
}

fn run(arguments: &Arguments) -> anyhow::Result<Report> {
    let (seed, today) = (arguments.seed, arguments.today);
    let clock = Clock::pinned_to(today);
    let folders = Folders::new()?;
    progress("making the corpus");
    let drops = Drops::new(seed, today, Mix::MARKET);
    let (market, subject) = make_market(arguments, &drops)?;
    let moment = Moment { today, catch_days: CATCH_DAYS_DEFAULT };
    let scan = Scan { market: &market, moment };

    progress("ingesting, rebuilding, opening");
    let observations = shuffled_observations(&market, &drops, seed);
    let rows = observations.len();
    let built = stages::build(&folders, observations, market.len(), clock.now())?;
    let mut figures = stage_figures(&built, &market, rows);
    progress("starting a server");
    let resident = process::resident_bytes(&folders.data(), &folders.index(), today)?;
    figures.extend(resident.into_iter().flat_map(|bytes| resident_figures(bytes, &market)));

    let index = Arc::new(built.index);
    let mixes = Mixes::draw(&market, seed);
    let hard = hard::queries(scan, seed);
    progress("comparing answers with a scan");
    check(&index, scan, &mixes, &hard)?;
    progress("asking in this process");
    figures.extend(in_process_figures(&index, moment, &mixes)?);
    figures.extend(hard_figures(&index, moment, &hard)?);
    progress("asking over HTTP");
    let service = Service::new(Arc::clone(&index), &folders.accounts(), clock)?;
    figures.extend(http_figures(&service, scan, &mixes)?);
    let mut notes = notes();
    if peer::is_there() {
        progress("asking SQLite");
        let stages = built.ingest + built.rebuild + built.open;
        let (beside, note) = peer_figures(&folders, &index, scan, &mixes, stages)?;
        figures.extend(beside);
        notes.push(note);
    } else {
        notes.push("SQLite was not measured: there is no `python3` with its `sqlite3`.".into());
    }
    Ok(Report { subject, measured_on: Clock::system().today(), figures, notes })
}

/// Says on standard error what takes the time.
fn progress(doing: &str) {
    // Nobody reads it where standard error is closed.
    let _ = writeln!(io::stderr(), "{doing} ...");
}

/// The corpus, and the sentence that says what it is.
fn make_market(arguments: &Arguments, drops: &Drops) -> anyhow::Result<(Market, String)> {
    let path = arguments.names.clone().unwrap_or_else(RealNames::sample_path);
    let real = RealNames::read(&path)?;
    let names = real.extend(arguments.count as usize, arguments.seed)?;
    let market = Market::new(names, drops);
    let (count, dropped) =
        (market.len(), market.rows().iter().filter(|row| row.drop.is_some()).count());
    let subject = format!(
        "{} names made from {} real ones (seed {}, today {}), {:.1} octets each, {} with a drop.",
        number(count as f64),
        number(real.names().len() as f64),
        arguments.seed,
        arguments.today,
        market.text_len() as f64 / count as f64,
        number(dropped as f64),
    );
    Ok((market, subject))
}

fn shuffled_observations(market: &Market, drops: &Drops, seed: u64) -> Vec<Observation> {
    let mut observations: Vec<Observation> =
        (0..market.len()).into_par_iter().flat_map_iter(|at| drops.of(market.name(at))).collect();
    stages::shuffle(&mut observations, seed);
    observations
}

fn stage_figures(built: &Built, market: &Market, rows: usize) -> Vec<Figure> {
    let names = market.len() as f64;
    let rate = |count: f64, took: Duration| count / took.as_secs_f64();
    vec![
        Figure::number("ingest: score, sort, write", rate(rows as f64, built.ingest), "rows/s"),
        Figure::number(
            "rebuild: batches to a verified, published generation",
            rate(names, built.rebuild),
            "names/s",
        )
        .goal(format!("600,000 or more {GOAL_NAMES}")),
        Figure::number("open: verify and load", built.open.as_secs_f64() * 1e3, "ms"),
        Figure::number(
            "open: index verified and loaded",
            rate(built.index_bytes as f64, built.open) / 1e9,
            "GB/s",
        ),
        Figure::number("corpus on disk", built.corpus_bytes as f64 / names, "bytes/name"),
        Figure::number("index on disk", built.index_bytes as f64 / names, "bytes/name"),
    ]
}

fn resident_figures(bytes: u64, market: &Market) -> [Figure; 2] {
    let per_name = bytes as f64 / market.len() as f64;
    [
        Figure::number("idle server, resident", bytes as f64 / 1e6, "MB"),
        Figure::number("idle server, resident, all in", per_name, "bytes/name")
            .goal(format!("under 64 {GOAL_NAMES}")),
    ]
}

/// All queries of a run.
struct Mixes {
    search: Vec<Query>,
    search_narrow: Vec<Query>,
    drops: Vec<Query>,
    drops_long: Vec<Query>,
    dossiers: Vec<DomainName>,
}

impl Mixes {
    fn draw(market: &Market, seed: u64) -> Mixes {
        let draw = |mix: u64, make: &dyn Fn(&mut Asker<'_>) -> Query| -> Vec<Query> {
            let mut asker = Asker::new(market, seed, mix);
            (0..QUERIES).map(|_| make(&mut asker)).collect()
        };
        let mut asker = Asker::new(market, seed, 5);
        Mixes {
            search: draw(1, &|asker| asker.keystroke(1..=8)),
            search_narrow: draw(2, &|asker| asker.keystroke(3..=8)),
            drops: draw(3, &|asker| asker.drops(20)),
            drops_long: draw(4, &|asker| asker.drops(100)),
            dossiers: (0..QUERIES).map(|_| asker.dossier()).collect(),
        }
    }

    /// The mixes of list queries with what they are called.
    fn lists(&self) -> [(&'static str, &[Query]); 4] {
        [
            ("search, keystrokes (1 to 8 characters)", &self.search),
            ("search, 3 to 8 characters", &self.search_narrow),
            ("drops, limit 20", &self.drops),
            ("drops, limit 100", &self.drops_long),
        ]
    }
}

fn check(
    index: &Index,
    scan: Scan<'_>,
    mixes: &Mixes,
    hard: &[(String, Query)],
) -> anyhow::Result<()> {
    for (_, queries) in mixes.lists() {
        scan::check_lists(index, scan, &queries[..CHECKED])?;
    }
    let hard: Vec<Query> = hard.iter().map(|(_, query)| query.clone()).collect();
    scan::check_lists(index, scan, &hard)?;
    scan::check_dossiers(index, scan, &mixes.dossiers[..CHECKED])
}

/// Asks list queries one by one on this thread, parsed beforehand.
fn ask_lists(
    index: &Index,
    moment: Moment,
    queries: &[Query],
    budget: Duration,
) -> anyhow::Result<(Timing, f64)> {
    match queries.first().map(|query| query.list) {
        Some(List::Search) => {
            let filters: Vec<_> =
                queries.iter().map(Query::search_filter).collect::<Result<_, _>>()?;
            Ok(ask_all(&filters, budget, |filter| index.search(filter, moment)))
        }
        _ => {
            let filters: Vec<_> =
                queries.iter().map(Query::drop_filter).collect::<Result<_, _>>()?;
            Ok(ask_all(&filters, budget, |filter| index.drops(filter, moment).map(drop)))
        }
    }
}

fn in_process_figures(index: &Index, moment: Moment, mixes: &Mixes) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut add = |name: &str, (timing, per_second): (Timing, f64)| {
        figures.push(Figure::queries(format!("in-process: {name}"), per_second, timing));
    };
    for (name, queries) in mixes.lists() {
        add(name, ask_lists(index, moment, queries, MIX_BUDGET)?);
    }
    add("dossier", ask_all(&mixes.dossiers, MIX_BUDGET, |name| index.dossier(name, moment)));
    Ok(figures)
}

fn hard_figures(
    index: &Index,
    moment: Moment,
    hard: &[(String, Query)],
) -> anyhow::Result<Vec<Figure>> {
    let figure = |(name, query): &(String, Query)| -> anyhow::Result<Figure> {
        let again = vec![query.clone(); HARD_TIMES];
        let (timing, per_second) = ask_lists(index, moment, &again, HARD_BUDGET)?;
        Ok(Figure::queries(format!("hard: {name}"), per_second, timing))
    };
    hard.iter().map(figure).collect()
}

fn http_figures(service: &Service, scan: Scan<'_>, mixes: &Mixes) -> anyhow::Result<Vec<Figure>> {
    let own = service.listen(&[])?;
    let mut figures = Vec::new();
    for (name, path, queries) in [
        ("search", "/bare/search", &mixes.search),
        ("drops, limit 20", "/bare/drops", &mixes.drops),
    ] {
        let requests: Arc<[Request]> = queries
            .iter()
            .map(|query| Request::new(&query.target(), Some(service.key())))
            .collect();
        let mean_bytes = check_bodies(own, &requests, scan, queries)?;
        let address = service.listen(&[(path, mean_bytes)])?;
        let bare = Arc::from([Request::new(path, None)]);
        let (mix, bare) = take_turns(address, &requests, &bare)?;
        figures.extend(http_rows(name, mean_bytes, &mix, &bare));
    }
    Ok(figures)
}

/// Asks every request once, compares the names in the first answers with a scan, and gives the
/// mean size of the bodies in bytes.
fn check_bodies(
    address: std::net::SocketAddr,
    requests: &[Request],
    scan: Scan<'_>,
    queries: &[Query],
) -> anyhow::Result<usize> {
    let known: Vec<Vec<&str>> =
        queries[..CHECKED].par_iter().map(|query| scan.names(&scan.answer(query))).collect();
    let mut bytes = 0;
    load::ask_each(address, requests, |at, body| {
        bytes += body.len();
        if let Some(known) = known.get(at) {
            let told = names_in(body)?;
            ensure!(told == *known, "{} lists {told:?}, a scan {known:?}", queries[at]);
        }
        Ok(())
    })?;
    Ok(bytes / requests.len().max(1))
}

/// The names of the rows of a page, in order.
fn names_in(body: &[u8]) -> anyhow::Result<Vec<String>> {
    let page: serde_json::Value = serde_json::from_slice(body)?;
    let rows = page["results"].as_array().or_else(|| page["drops"].as_array());
    let name = |row: &serde_json::Value| {
        row["domain"].as_str().or_else(|| row["name"].as_str()).map(str::to_owned)
    };
    Ok(rows.into_iter().flatten().filter_map(name).collect())
}

fn take_turns(
    address: std::net::SocketAddr,
    mix: &Arc<[Request]>,
    bare: &Arc<[Request]>,
) -> anyhow::Result<(Load, Load)> {
    let (mut of_mix, mut of_bare) = (Load::default(), Load::default());
    load::drive(address, bare, WARM_UP)?;
    load::drive(address, mix, WARM_UP)?;
    for _ in 0..TURNS {
        let turn = |requests| load::drive(address, requests, TURN);
        let (bare, mix) = (turn(bare)?, turn(mix)?);
        of_bare.add_turn(bare);
        of_mix.add_turn(mix);
    }
    Ok((of_mix, of_bare))
}

fn http_rows(name: &str, mean_bytes: usize, mix: &Load, bare: &Load) -> [Figure; 2] {
    let row = |name: &str, bytes: f64, load: &Load| Figure {
        timing: Some(load.timing()),
        ..Figure::number(
            format!("HTTP: {name}, {} bytes", number(bytes)),
            load.per_second(),
            "requests/s",
        )
    };
    let ratio = mix.per_second() / bare.per_second();
    [
        row("static route", mean_bytes as f64, bare),
        row(name, mix.mean_body_bytes(), mix).ratio(format!("{ratio:.2}")),
    ]
}

/// Rows beside the peer's, and the note that says what it is.
fn peer_figures(
    folders: &Folders,
    index: &Index,
    scan: Scan<'_>,
    mixes: &Mixes,
    stages: Duration,
) -> anyhow::Result<(Vec<Figure>, String)> {
    let (search, drops) = (&mixes.search[..PEER_QUERIES], &mixes.drops[..PEER_QUERIES]);
    let peer = peer::run(folders.peer(), scan, search, drops)?;
    let peer_s = peer.load_s + peer.index_s;
    let all = Figure {
        peer: Some(number(peer_s)),
        ..Figure::number("list to answers: ingest, rebuild, open", stages.as_secs_f64(), "s")
    };
    let mut figures = vec![all.ratio(number(peer_s / stages.as_secs_f64()))];
    for ((name, queries), mix) in
        [("search, keystrokes", search), ("drops, limit 20", drops)].iter().zip(&peer.mixes)
    {
        let asked = mix.latencies_ns.len();
        let (ours, per_second) = ask_lists(index, scan.moment, &queries[..asked], MIX_BUDGET)?;
        let theirs = Timing::of(mix.latencies_ns.clone());
        let name = format!("in-process: {name}, the first {asked} queries");
        figures.push(Figure::queries(name, per_second, ours).beside(&theirs));
    }
    let note = format!(
        "SQLite {} in memory through Python's `sqlite3` on one connection: {:.0} bytes/name with \
         its indexes; names come scored, rows without explanations and signals; its answers to \
         {} queries of each mix were compared with the same scan. Ratio: SQLite's figure by \
         dropdex's.",
        peer.version,
        peer.bytes as f64 / scan.market.len() as f64,
        peer::COMPARED,
    );
    Ok((figures, note))
}

fn notes() -> Vec<String> {
    let checked = format!(
        "{CHECKED} answers of each mix and of every hard query were compared with a plain scan \
         over all names before anything was timed, and as many bodies over HTTP."
    );
    let http = format!(
        "HTTP over loopback with TCP_NODELAY, {} keep-alive connections; client and server share \
         the cores. Mixes are authenticated and counted, the static route is neither; the two \
         took turns. Ratio: the mix's requests/s by those of the static route above it.",
        load::CONNECTIONS,
    );
    let in_process =
        "In-process figures are answers as the index gives them, before they are JSON, \
                      with explanations and signals worked out for each row; one thread, one \
                      query after the other."
            .to_owned();
    vec![checked, in_process, http]
}
