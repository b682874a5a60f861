//! Measures one size, from the corpus to the last figure.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use dropdex::index::Index;
use dropdex::index::filter::{AsOf, Counting, DropFilter, Facet};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::limits::{CATCH_DAYS_DEFAULT, DROPS_OFFSET_MAX};

use crate::answer::{Ask, answer};
use crate::bare::{self, Bare};
use crate::check::{self, Names};
use crate::client;
use crate::common::drops::{Drops, Mix};
use crate::common::names::RealNames;
use crate::hard::{self, Hard};
use crate::market::Market;
use crate::peers::{self, Peer, Peers};
use crate::queries::{Mixes, Query, asks};
use crate::report::{Figure, OURS, Point, Report, machine, number};
use crate::scan::Scan;
use crate::server::Service;
use crate::stages::{self, Built, Folders};
use crate::timing::{Timing, ask_all};
use crate::wrk::{self, Load};

/// Filters whose total is estimated and counted, and total above which an estimate has a bound.
const ESTIMATES: usize = 1_000;
const LARGE: u32 = 100_000;
/// Number of queries of each mix in this process; the time is limited as well.
const QUERIES: usize = 20_000;
const MIX_BUDGET: Duration = Duration::from_secs(10);
/// Queries of each mix whose responses are compared with a scan before anything is timed: chosen so
/// that about this number of names is scanned, within limits.
const NAMES_SCANNED: usize = 2_000_000_000;
const CHECKED: std::ops::RangeInclusive<usize> = 20..=200;
/// Maximum runs of each hard query.
const HARD_TIMES: usize = 300;
const HARD_BUDGET: Duration = Duration::from_secs(1);
/// Minimum bytes per name of a file of the index that is listed.
const FILE_BYTES_NOTED: f64 = 0.05;
/// Queries of each mix that peers run too.
const PEER_QUERIES: usize = 300;
const PEER_MIXES: [&str; peers::MIXES] = [
    "search",
    "drops",
    "drops, any filters and order",
    "drops by pattern or regex",
    "search without prefix",
];
/// Over HTTP, each mix and its static route take turns, so that slow phases of the machine affect both.
const TURNS: usize = 3;
const TURN: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(1);

/// Data that figures are computed from.
struct Run {
    market: Market,
    as_of: AsOf,
    folders: Folders,
    report: Report,
}

/// Pages that a scan found for the first queries of the mixes that are sent over HTTP.
struct Scanned {
    search: Vec<Names>,
    suggest: Vec<Names>,
    drops: Vec<Names>,
}

/// Computes all figures of one size, and writes them to its file after each step.
///
/// # Errors
///
/// A stage fails, a response is wrong, or the file cannot be written.
pub fn run(size: &crate::Measure) -> anyhow::Result<()> {
    progress("making the corpus");
    let mix = if size.all_dropped { Mix::ALL_DROPPED } else { Mix::MARKET };
    let drops = Drops::new(size.seed, size.today, mix);
    let mut run = Run::new(size, &drops)?;
    progress("ingesting, rebuilding");
    let built = stages::build(&run.folders, &run.market, &drops, size.seed)?;
    run.stage_figures(&built)?;
    let mixes = Mixes::draw(&run.market, size.seed, QUERIES);
    let index = Arc::new(run.open(&built)?);
    // A run takes hours at some sizes: what is measured stays if a later step fails.
    run.report.save(&size.json)?;
    progress("comparing results with a scan");
    let hard = hard::queries(run.scan(), size.seed);
    let scanned = run.check(&index, &mixes, &hard)?;
    progress("asking in this process");
    run.mix_figures(&index, &mixes)?;
    run.hard_figures(&index, &hard)?;
    run.report.save(&size.json)?;
    progress("asking over HTTP");
    run.http_figures(&index, &mixes, &scanned)?;
    run.report.save(&size.json)?;
    if !size.without_peers {
        run.peer_figures(&index, &mixes, &built)?;
        run.report.save(&size.json)?;
    }
    drop(index);
    progress("taking in a day's list");
    run.day_figures()?;
    run.report.save(&size.json)
}

/// Prints the current step to standard error.
fn progress(doing: &str) {
    // Ignored when standard error is closed.
    let _ = writeln!(io::stderr(), "{doing} ...");
}

impl Run {
    fn new(size: &crate::Measure, drops: &Drops) -> anyhow::Result<Run> {
        let path = size.names.clone().unwrap_or_else(RealNames::sample_path);
        let real = RealNames::read(&path)?;
        let known = real.names().len();
        let names = real.extend(size.count as usize, size.seed)?;
        drop(real);
        let market = Market::new(names, drops);
        let dropped = market.rows().iter().filter(|row| row.is_dropped()).count();
        let subject = format!(
            "{} names made from {} real ones (seed {}, today {}), {:.1} bytes each, {} with a drop.",
            number(market.len() as f64),
            number(known as f64),
            size.seed,
            size.today,
            market.text_len() as f64 / market.len() as f64,
            number(dropped as f64),
        );
        let report = Report {
            count: market.len() as u64,
            subject,
            machine: format!("{}; {}", machine(), Clock::system().today()),
            figures: Vec::new(),
            points: Vec::new(),
            notes: Vec::new(),
        };
        let as_of = AsOf { today: size.today, catch_days: CATCH_DAYS_DEFAULT };
        let folders = Folders::new(size.today, size.rebuild_memory)?;
        Ok(Run { market, as_of, folders, report })
    }

    fn scan(&self) -> Scan<'_> {
        Scan { market: &self.market, as_of: self.as_of }
    }

    fn add(&mut self, figure: Figure) {
        self.report.figures.push(figure);
    }

    fn note(&mut self, note: impl Into<String>) {
        self.report.notes.push(note.into());
    }

    fn stage_figures(&mut self, built: &Built) -> anyhow::Result<()> {
        let (names, Built { ingest, rebuild, .. }) = (self.market.len() as f64, built);
        let gb = |bytes: u64| bytes as f64 / 1e9;
        self.add(Figure::number(
            "ingest: read, score, sort, write",
            built.rows as f64 / ingest.seconds,
            "rows/s",
        ));
        let rate = names / rebuild.seconds;
        self.add(
            Figure::number("rebuild, to a published generation", rate, "names/s").goal("1,500,000"),
        );
        let a_million = rebuild.cpu_seconds / names * 1e6;
        self.add(
            Figure::number("rebuild, of all cores", a_million, "core-seconds a million names")
                .goal("1.3"),
        );
        self.add(Figure::number("rebuild, memory at most", gb(rebuild.peak_bytes), "GB"));
        self.add(Figure::number("corpus on disk", built.corpus_bytes as f64 / names, "bytes/name"));
        self.add(Figure::number("index on disk", built.index_bytes as f64 / names, "bytes/name"));
        let key = self.folders.site.add_account()?;
        let server = self.folders.site.serve()?;
        let start = server.start.as_secs_f64();
        self.add(Figure::number("start, until it listens", start * 1e3, "ms"));
        self.add(
            Figure::number("start, index read and verified", gb(built.index_bytes) / start, "GB/s")
                .goal("1"),
        );
        if let Some(bytes) = server.idle_bytes(&key)? {
            self.add(Figure::number("idle server, resident", bytes as f64 / 1e6, "MB"));
            let times = rebuild.peak_bytes as f64 / bytes as f64;
            self.add(
                Figure::number("rebuild, memory at most, by that of the server", times, "times")
                    .goal("1.3, at 300 M"),
            );
            let each = bytes as f64 / names;
            self.add(
                Figure::number("idle server, resident, all in", each, "bytes/name")
                    .goal("32, from 10 M"),
            );
        }
        drop(server);
        self.export_figure()
    }

    /// Rate of exported rows without the startup time, from the CPU times of exporting all rows and a
    /// single row.
    fn export_figure(&mut self) -> anyhow::Result<()> {
        let scan = self.scan();
        let listed = |row| scan.market.dropped(row).is_some_and(|drop| scan.stage(&drop).is_some());
        let rows = self.market.rows().iter().filter(|row| listed(row)).count();
        let export = ["export", "drops", "--view", "all"];
        let site = &self.folders.site;
        let all = site.run_silent(&export)?.cpu_seconds;
        let one = site.run_silent(&[&export[..], &["--limit", "1"]].concat())?.cpu_seconds;
        let rate = rows as f64 / (all - one).max(0.01);
        self.add(
            Figure::number("export, rows after the start", rate, "rows/s a core").goal("1,000,000"),
        );
        Ok(())
    }

    fn day_figures(&mut self) -> anyhow::Result<()> {
        let list = stages::write_day(&self.folders, &self.market)?;
        // A large market does not fit into memory beside a rebuild and a server with two generations.
        drop(std::mem::take(&mut self.market));
        let taken = stages::take_day(&self.folders, &list)?;
        let names = number(taken.names as f64);
        self.add(
            Figure::number("a day's list, until it is served", taken.took.as_secs_f64(), "s")
                .goal("60"),
        );
        if let Some(bytes) = taken.peak_bytes {
            let what = "a day's list: server with both generations, resident at most";
            self.add(Figure::number(what, bytes as f64 / 1e9, "GB"));
        }
        self.note(format!(
            "The day's list of {names} names is given to a running server by `dropdex ingest`; the server \
             rebuilds in a process of its own."
        ));
        Ok(())
    }

    fn open(&mut self, built: &Built) -> anyhow::Result<Index> {
        let (index, took) = stages::open(&self.folders)?;
        let indexed = self.market.indexed();
        ensure!(index.manifest().names as usize == indexed, "the index has other names");
        let rate = built.index_bytes as f64 / 1e9 / took.as_secs_f64();
        self.add(Figure::number("open in process, verified", rate, "GB/s").goal("1"));
        let (names, files) = (self.market.len() as f64, &index.manifest().files);
        let mut files: Vec<_> = files.iter().map(|(name, file)| (file.len, name)).collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        let sizes = files.iter().map(|&(len, name)| (len as f64 / names, name));
        let sizes = sizes.take_while(|(each, _)| *each >= FILE_BYTES_NOTED);
        let sizes: Vec<_> = sizes.map(|(each, name)| format!("{name} {each:.2}")).collect();
        self.note(format!(
            "Index on disk at {}, bytes a name: {}.",
            number(names),
            sizes.join(", ")
        ));
        Ok(index)
    }

    fn check(&mut self, index: &Index, mixes: &Mixes, hard: &[Hard]) -> anyhow::Result<Scanned> {
        let checked = self.checked();
        let list = |queries: &[Query]| check::lists(index, self.scan(), &queries[..checked]);
        let [search, search_narrow, drops, drops_long] =
            mixes.lists().map(|(_, queries)| list(queries));
        search_narrow?;
        drops_long?;
        list(&mixes.filters)?;
        let scanned = Scanned { search: search?, suggest: list(&mixes.suggest)?, drops: drops? };
        // Conditions on texts make a scan of all names slower.
        let texts = [&mixes.long_texts, &mixes.short_texts, &mixes.letter_kinds];
        for queries in [&mixes.shapes, &mixes.whole].into_iter().chain(texts) {
            check::lists(index, self.scan(), &queries[..checked / 4])?;
        }
        let hard: Vec<Query> = hard.iter().map(|hard| hard.query.clone()).collect();
        check::lists(index, self.scan(), &hard)?;
        check::dossiers(index, self.scan(), &mixes.dossiers[..checked])?;
        self.note(
            "Answers of every mix and of every hard query were compared with a plain scan over all \
             names before anything was timed (200 of a mix; fewer above 10 M names), and as many \
             bodies over HTTP.",
        );
        Ok(scanned)
    }

    fn checked(&self) -> usize {
        (NAMES_SCANNED / self.market.len()).clamp(*CHECKED.start(), *CHECKED.end())
    }

    fn mix_figures(&mut self, index: &Index, mixes: &Mixes) -> anyhow::Result<()> {
        let goals = ["10 / 150 / 1,000", "", "50 / 1,000", ""];
        let kinds = [Some("search"), None, Some("drops"), None];
        for (((name, queries), goal), kind) in mixes.lists().into_iter().zip(goals).zip(kinds) {
            let timing = ask_all(index, &asks(queries)?, self.as_of, MIX_BUDGET)?;
            self.add(Figure::queries(format!("in process: {name}"), &timing).goal(goal));
            self.point(kind, OURS, &timing);
        }
        for (name, queries, goal, kind) in [
            ("suggest", &mixes.suggest, "p99 300", None),
            ("drops, any filters and order, limit 100", &mixes.filters, "100 / 2,000", None),
            ("drops by pattern, regex or like, limit 100", &mixes.shapes, "500 / 20,000", None),
            (
                "search by contains, ends, pattern or regex, no prefix",
                &mixes.whole,
                "5,000 / 100,000",
                Some("search without prefix"),
            ),
            (
                "search by contains, ends or regex, a text of 4 letters or more",
                &mixes.long_texts,
                "1,000 / 15,000 at 10 M, 15,000 / 150,000 at 300 M",
                None,
            ),
            ("the same, a text of 3 letters", &mixes.short_texts, "p50 5,000 at 10 M", None),
            (
                "search by pattern or regex of kinds of letters",
                &mixes.letter_kinds,
                "p50 40,000 at 10 M",
                None,
            ),
        ] {
            let timing = ask_all(index, &asks(queries)?, self.as_of, MIX_BUDGET)?;
            self.add(Figure::queries(format!("in process: {name}"), &timing).goal(goal));
            self.point(kind, OURS, &timing);
        }
        self.estimates(index, &mixes.filters)?;
        self.facet_figures(index)?;
        self.cursor_figures(index)?;
        let dossiers: Vec<Ask> = mixes.dossiers.iter().cloned().map(Ask::Dossier).collect();
        let timing = ask_all(index, &dossiers, self.as_of, MIX_BUDGET)?;
        self.add(Figure::queries("in process: dossier", &timing).goal("p99 20"));
        self.note(
            "In process: whole answers as JSON, with explanations and signals; one thread, one query \
             after the other.",
        );
        Ok(())
    }

    /// Compares estimated totals with exact ones.
    ///
    /// # Errors
    ///
    /// Of totals above 100,000, more than one in 100 is not within 2 % of its estimate.
    fn estimates(&mut self, index: &Index, queries: &[Query]) -> anyhow::Result<()> {
        let (mut estimates, mut large, mut far) = (0, 0, 0);
        for ask in asks(&queries[..queries.len().min(ESTIMATES)])? {
            let Ask::Drops(filter) = ask else { continue };
            let estimate = index.estimate_drops(&filter, self.as_of)?;
            let exact = index.count_drops(&filter, self.as_of)?;
            estimates += u32::from(!estimate.is_exact());
            large += u32::from(exact > LARGE);
            let off = u64::from(estimate.count().abs_diff(exact));
            far += u32::from(exact > LARGE && off * 50 > u64::from(exact));
        }
        let found = format!("of {large} totals above {LARGE}, {far} are more than 2 % off");
        ensure!(far * 100 <= large, "{found}");
        self.note(format!("Totals of {ESTIMATES} filters: {estimates} estimates; {found}."));
        Ok(())
    }

    /// Measures all seven facets of a page without filters, and the first request of a view, which
    /// counts them.
    fn facet_figures(&mut self, index: &Index) -> anyhow::Result<()> {
        let first = self.count_facets(index, peers::FACETED.len())?;
        let again = self.count_facets(index, HARD_TIMES)?;
        self.add(
            Figure::queries("in process: drops, limit 100, all facets, no filters", &again)
                .goal("1,000 / 5,000"),
        );
        self.add(Figure::queries("the same, first of a day and list (three views)", &first));
        Ok(())
    }

    fn count_facets(&self, index: &Index, times: usize) -> anyhow::Result<Timing> {
        let mut latencies_ns = Vec::with_capacity(times);
        let mut body = Vec::new();
        for view in peers::FACETED.iter().cycle().take(times) {
            let filter = Query::drop_filter(&format!("view={view}&limit=100"))?;
            let begun = Instant::now();
            answer(index, &Ask::Drops(filter.clone()), self.as_of, &mut body)?;
            for values in index.facets(&filter, &Facet::ALL, self.as_of, Counting::Estimate)?.values
            {
                values.iter().for_each(|it| body.extend_from_slice(it.value.as_bytes()));
            }
            latencies_ns.push(begun.elapsed().as_nanos() as u64);
        }
        Ok(Timing::of(latencies_ns))
    }

    /// Measures pages by cursor as deep as an offset allows, and first pages.
    fn cursor_figures(&mut self, index: &Index) -> anyhow::Result<()> {
        for sort in ["dqs", "release", "length", "name"] {
            let first = Query::drop_filter(&format!("view=all&limit=100&sort={sort}"))?;
            let total = index.count_drops(&first, self.as_of)?;
            let depth = (total.saturating_sub(200)).min(DROPS_OFFSET_MAX);
            let deep = DropFilter { offset: depth, limit: 1, ..first.clone() };
            let after = index.drops(&deep, self.as_of, Counting::None)?.next;
            let after = DropFilter { after, ..first.clone() };
            for (what, filter) in
                [("first page", first), ("page by cursor at a depth of 1,000,000", after)]
            {
                let again = vec![Ask::Drops(filter); HARD_TIMES];
                let timing = ask_all(index, &again, self.as_of, HARD_BUDGET)?;
                self.add(Figure::queries(format!("drops by {sort}: {what}"), &timing));
            }
            if depth < DROPS_OFFSET_MAX {
                let (depth, names) = (number(depth.into()), number(self.market.len() as f64));
                self.note(format!("At {names} names, cursors were at a depth of {depth}."));
            }
        }
        Ok(())
    }

    fn point(&mut self, kind: Option<&str>, system: &str, timing: &Timing) {
        let &Timing { p50_us, p99_us, .. } = timing;
        let point =
            |kind: &str| Point { kind: kind.to_owned(), system: system.to_owned(), p50_us, p99_us };
        self.report.points.extend(kind.map(point));
    }

    fn hard_figures(&mut self, index: &Index, hard: &[Hard]) -> anyhow::Result<()> {
        let mut asked = Vec::new();
        for Hard { name, query } in hard {
            let again = vec![query.ask()?; HARD_TIMES];
            let timing = ask_all(index, &again, self.as_of, HARD_BUDGET)?;
            let goal = if name.starts_with("search") { "worst 1,000" } else { "" };
            self.add(Figure::queries(format!("hard: {name}"), &timing).goal(goal));
            asked.push(format!("`{query}`"));
        }
        let count = number(self.market.len() as f64);
        self.note(format!("Hard queries at {count} names, in their order: {}.", asked.join(", ")));
        Ok(())
    }

    fn http_figures(
        &mut self,
        index: &Arc<Index>,
        mixes: &Mixes,
        scanned: &Scanned,
    ) -> anyhow::Result<()> {
        let clock = Clock::pinned_to(self.as_of.today);
        let service = Service::new(Arc::clone(index), &self.folders.accounts(), clock)?;
        let own = service.listen(&[])?;
        for (name, path, queries, known, goal) in [
            ("search", "/bare/search", &mixes.search, &scanned.search, "0.5"),
            ("suggest", "/bare/suggest", &mixes.suggest, &scanned.suggest, "0.7"),
            ("drops, limit 20", "/bare/drops", &mixes.drops, &scanned.drops, "0.4"),
        ] {
            let targets: Vec<String> = queries.iter().map(Query::target).collect();
            let mean_bytes = check_bodies(own, service.key(), &targets, known)?;
            if !wrk::is_there() {
                self.note("HTTP was not measured: there is no `wrk`.");
                continue;
            }
            let file = |name: &str, text: &str| -> anyhow::Result<PathBuf> {
                let path = self.folders.root().join(name);
                fs::write(&path, text)?;
                Ok(path)
            };
            let mix = file("mix", &targets.join("\n"))?;
            let (same, bare) = (file("static", path)?, file("bare", bare::PATH)?);
            let address = service.listen(&[(path, mean_bytes)])?;
            let outside = Bare::start(mean_bytes)?;
            let turns = take_turns([
                (address, &mix, Some(service.key())),
                (address, &same, None),
                (outside.address, &bare, None),
            ])?;
            self.http_rows(name, mean_bytes, &turns, goal);
        }
        Ok(())
    }

    fn http_rows(&mut self, name: &str, bytes: usize, [mix, same, bare]: &[Turns; 3], goal: &str) {
        let (ours, theirs) = (mix.per_second(), same.per_second());
        let named = |what: &str| format!("HTTP: {what}");
        self.add(Figure::number(named(&format!("{name}, mean body")), bytes as f64, "bytes"));
        self.add(Figure::number(
            named(&format!("static route of that size beside {name}")),
            theirs,
            "requests/s",
        ));
        self.add(Figure::number(named(name), ours, "requests/s"));
        self.add(
            Figure::number(named(&format!("{name}, by the static route")), ours / theirs, "ratio")
                .goal(goal),
        );
        self.add(Figure::number(
            named(&format!("{name}, by a bare axum route in another process")),
            ours / bare.per_second(),
            "ratio",
        ));
        self.add(Figure::queries(named(name), &mix.timing()));
        self.note(format!(
            "HTTP: `wrk` over loopback, one thread, {} keep-alive connections; client and server \
             share the cores. Mixes are authenticated and counted. The static route is neither, and \
             is behind the same deadlines, admission and metrics; the bare route is behind nothing. \
             The three took turns.",
            wrk::CONNECTIONS,
        ));
    }

    fn peer_figures(&mut self, index: &Index, mixes: &Mixes, built: &Built) -> anyhow::Result<()> {
        if self.market.len() > peers::NAMES_MAX {
            return Ok(());
        }
        // Peers compute edit distances differently.
        let has_regex =
            |query: &&Query| query.text.as_ref().is_some_and(|it| it.parameter != "like");
        let shapes: Vec<Query> =
            mixes.shapes.iter().filter(has_regex).take(PEER_QUERIES).cloned().collect();
        let asked_of_all = [
            &mixes.search[..PEER_QUERIES],
            &mixes.drops[..PEER_QUERIES],
            &mixes.filters[..PEER_QUERIES],
            &shapes,
            &mixes.whole[..PEER_QUERIES],
        ];
        let mut ours = Vec::new();
        for (name, queries) in PEER_MIXES.into_iter().zip(asked_of_all) {
            let timing = ask_all(index, &asks(queries)?, self.as_of, MIX_BUDGET)?;
            ours.push(Figure::queries(format!("{name}, {PEER_QUERIES} queries: dropdex"), &timing));
        }
        let load = built.ingest.seconds + built.rebuild.seconds;
        let mut loads = vec![Figure::number("list to index: dropdex", load, "s")];
        let mut beside: Vec<Vec<Figure>> = ours.into_iter().map(|figure| vec![figure]).collect();
        let mut notes = Vec::new();
        let timing = self.count_facets(index, HARD_TIMES)?;
        beside.push(vec![Figure::queries("seven facets, no filters: dropdex", &timing)]);
        let asked = Peers::new(self.folders.root(), self.scan(), asked_of_all)?;
        let mut found = Vec::new();
        for name in peers::PEERS {
            progress(&format!("asking {name}"));
            found.push((name, asked.run(name)?));
        }
        for (name, found) in found {
            match found {
                Ok(peer) => self.peer_rows(&peer, &mut loads, &mut beside, &mut notes),
                Err(why) => notes.push(format!("{name} was not measured: {why}.")),
            }
        }
        self.report.figures.extend(loads.into_iter().chain(beside.into_iter().flatten()));
        self.report.notes.extend(notes);
        Ok(())
    }

    fn peer_rows(
        &mut self,
        peer: &Peer,
        loads: &mut Vec<Figure>,
        beside: &mut [Vec<Figure>],
        notes: &mut Vec<String>,
    ) {
        let version = &peer.version;
        let seconds = peer.load_s + peer.index_s;
        loads.push(Figure::number(format!("list to index: {version}"), seconds, "s"));
        let (facets, beside) = beside.split_last_mut().expect("mixes and facets");
        let timing = Timing::of(peer.facets_ns.clone());
        facets.push(Figure::queries(format!("seven facets, no filters: {version}"), &timing));
        for ((figures, mix), kind) in beside.iter_mut().zip(&peer.mixes).zip(PEER_MIXES) {
            let timing = Timing::of(mix.latencies_ns.clone());
            let name = format!("{kind}, {PEER_QUERIES} queries: {version}");
            if timing.count < PEER_QUERIES {
                let (count, names) = (timing.count, number(self.market.len() as f64));
                notes.push(format!("{version} came to {count} {kind} queries at {names} names."));
            }
            figures.push(Figure::queries(name, &timing));
            self.point(Some(kind), version, &timing);
        }
        let each = peer.bytes as f64 / self.market.len() as f64;
        let names = number(self.market.len() as f64);
        notes.push(format!(
            "{version} through Python on one connection, {each:.0} bytes/name at {names} names; names \
             come scored, rows without explanations and signals; its answers to {} queries of each \
             mix were compared with the same scan.",
            peers::COMPARED,
        ));
    }
}

/// Sends every request once, compares the names in the first responses with those of a scan, and
/// returns the mean size of the bodies in bytes.
fn check_bodies(
    address: SocketAddr,
    key: &str,
    targets: &[String],
    known: &[Names],
) -> anyhow::Result<usize> {
    let mut bytes = 0;
    client::ask_each(address, key, targets, |at, body| {
        bytes += body.len();
        if let Some(known) = known.get(at) {
            let (returned, target) = (names_in(body)?, &targets[at]);
            let has_more = known.len() < 5 && target.contains("/suggest");
            ensure!(
                returned == *known || has_more && returned.starts_with(known),
                "{target} returns {returned:?}, but a scan finds {known:?}"
            );
        }
        Ok(())
    })?;
    Ok(bytes / targets.len().max(1))
}

/// Returns the names of the rows of a page, in order.
fn names_in(body: &[u8]) -> anyhow::Result<Names> {
    let page: serde_json::Value = serde_json::from_slice(body)?;
    let lists = ["results", "drops", "names"].map(|list| page[list].as_array());
    let rows = lists.into_iter().flatten().next();
    let name = |row: &serde_json::Value| {
        let name = row.as_str().or_else(|| row["domain"].as_str()).or_else(|| row["name"].as_str());
        name.map(str::to_owned)
    };
    Ok(rows.into_iter().flatten().filter_map(name).collect())
}

/// Results of loads that alternated with others.
struct Turns(Vec<Load>);

impl Turns {
    /// Timing of the median turn, as [`Turns::timing`].
    fn per_second(&self) -> f64 {
        let mut rates: Vec<f64> = self.0.iter().map(Load::per_second).collect();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }

    fn timing(&self) -> Timing {
        let mut timings: Vec<Timing> = self.0.iter().map(Load::timing).collect();
        timings.sort_by(|one, other| one.p99_us.total_cmp(&other.p99_us));
        timings[timings.len() / 2]
    }
}

/// The address to which the targets of a file are sent, and the key that they need.
type Drive<'a> = (SocketAddr, &'a Path, Option<&'a str>);

fn take_turns(drives: [Drive<'_>; 3]) -> anyhow::Result<[Turns; 3]> {
    let drive = |(address, targets, key): Drive<'_>, time| wrk::drive(address, targets, key, time);
    for each in drives {
        drive(each, WARM_UP)?;
    }
    let mut turns = [const { Turns(Vec::new()) }; 3];
    for _ in 0..TURNS {
        for (turns, each) in turns.iter_mut().zip(drives) {
            turns.0.push(drive(each, TURN)?);
        }
    }
    Ok(turns)
}
