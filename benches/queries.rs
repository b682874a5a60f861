//! `cargo bench --bench queries`: measures the cost of complete responses in this process, with a
//! million names generated from the sample; `DROPDEX_BENCH_COUNT` sets another number. Each line runs
//! the queries of a mix in turn, or one costly query repeatedly, and prints queries per second. `backtest` and
//! `outcomes` count all drops.

#[path = "service/answer.rs"]
mod answer;
mod common;
#[path = "service/hard.rs"]
mod hard;
#[path = "service/market.rs"]
#[expect(dead_code, reason = "peers and checks are the service bench's")]
mod market;
#[path = "service/queries.rs"]
#[expect(dead_code, reason = "shared with the service bench, which uses all of it")]
mod queries;
#[path = "service/scan.rs"]
#[expect(dead_code, reason = "checks are the service bench's")]
mod scan;
#[path = "service/sample.rs"]
mod sample;

use std::sync::LazyLock;

use answer::{Ask, answer};
use common::drops::Mix;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use dropdex::index::Index;
use dropdex::index::filter::{AsOf, RuleQuery, StageSet};
use dropdex::index::rules::backtest::BacktestPeriod;
use dropdex::query::params::{Limits, Params};
use dropdex::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
use dropdex::vocab::outcome::Horizon;
use market::Market;
use queries::{Mixes, asks};
use sample::{SEED, Sample};
use scan::Scan;

/// The server's allocator: allocation is part of every response.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of queries in each mix.
const QUERIES: usize = 2_000;
/// Number of queries in the slow mixes.
const LONG_QUERIES: usize = 200;

/// Conditions on the text of labels: rare and frequent ones, with and without required substrings.
const TEXTS: [(&str, &str, &str); 10] = [
    ("CVCV", "pattern", "CVCV"),
    ("*bank", "pattern", "*bank"),
    ("a start", "regex", "^(shop|store)[a-z]*$"),
    ("texts inside", "regex", "(green|solar)..(roof|home)s?"),
    ("an end", "regex", "(ai|gpt)$"),
    ("no text inside", "regex", "^[a-z]{4}$"),
    ("the nastiest", "regex", "[aeiou][a-z0-9-]{8}$"),
    ("like, 1 edit", "like", "solarpanel"),
    ("contains", "contains", "solar,wind"),
    ("ends", "ends", "bank"),
];

/// An index, and all queries that are run on it.
struct Asked {
    index: Index,
    as_of: AsOf,
    mixes: Vec<Named>,
    hard: Vec<Named>,
    /// [`TEXTS`] on the drop list.
    drops_by_text: Vec<Named>,
    searches_by_text: Vec<Named>,
}

static ASKED: LazyLock<Asked> = LazyLock::new(|| make().expect("an index of the sample"));

fn main() {
    divan::main();
}

fn make() -> anyhow::Result<Asked> {
    let Sample { folder: _folder, names, drops, index, as_of } = sample::make(Mix::MARKET)?;
    let today = as_of.today;
    let market = Market::new(names, &drops);
    let drawn = Mixes::draw(&market, SEED, QUERIES);
    let mut mixes = Vec::new();
    for (name, queries) in drawn.lists() {
        mixes.push((name, asks(queries)?));
    }
    for (name, queries) in [
        ("drops, any filters and order", &drawn.filters),
        ("drops, by pattern, regex or like", &drawn.shapes),
        ("search without a prefix", &drawn.whole),
    ] {
        mixes.push((name, asks(&queries[..LONG_QUERIES])?));
    }
    mixes.push(("dossier", drawn.dossiers.into_iter().map(Ask::Dossier).collect()));
    let mut hard = Vec::new();
    for one in hard::queries(Scan { market: &market, as_of }, SEED) {
        hard.push((one.name, vec![one.query.ask()?]));
    }
    let (mut drops_by_text, mut searches_by_text) = (Vec::new(), Vec::new());
    for (name, parameter, text) in TEXTS {
        let pairs = [(parameter, text)];
        let params = Params::from_pairs(&pairs);
        let limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };
        let invalid = |err| anyhow::anyhow!("{name}: {err:?}");
        drops_by_text.push((name, vec![Ask::Drops(params.drops(limits, today).map_err(invalid)?)]));
        let (_, filter) = params.search(today).map_err(invalid)?;
        searches_by_text.push((name, vec![Ask::Search(filter)]));
    }
    Ok(Asked { index, as_of, mixes, hard, drops_by_text, searches_by_text })
}

/// All queries of a mix.
#[divan::bench(args = names_of(&ASKED.mixes), sample_count = 10, sample_size = 1)]
fn mix(bencher: Bencher<'_, '_>, name: &str) {
    ask_all(bencher, of_name(&ASKED.mixes, name));
}

/// One condition on the text of labels, in the drop list.
#[divan::bench(args = names_of(&ASKED.drops_by_text))]
fn drops_by_text(bencher: Bencher<'_, '_>, name: &str) {
    ask_all(bencher, of_name(&ASKED.drops_by_text, name));
}

/// The same condition over all names.
#[divan::bench(args = names_of(&ASKED.searches_by_text))]
fn search_by_text(bencher: Bencher<'_, '_>, name: &str) {
    ask_all(bencher, of_name(&ASKED.searches_by_text, name));
}

/// One hard query.
#[divan::bench(args = names_of(&ASKED.hard))]
fn hard_query(bencher: Bencher<'_, '_>, name: &str) {
    ask_all(bencher, of_name(&ASKED.hard, name));
}

/// Filters of rules that are tried on the releases of three years.
const RULES: [(&str, &[(&str, &str)]); 3] = [
    ("every name", &[("adult", "include")]),
    ("one suffix, score and length", &[("tld", "com"), ("min_dqs", "30"), ("max_len", "8")]),
    ("text inside", &[("contains", "solar,wind,shop")]),
];

/// A rule tried on past releases; items are drops.
#[divan::bench(args = RULES.map(|(name, _)| name), sample_count = 100, sample_size = 1)]
fn backtest(bencher: Bencher<'_, '_>, name: &str) {
    let Asked { index, as_of, .. } = &*ASKED;
    let (_, pairs) = RULES.into_iter().find(|(known, _)| *known == name).expect("a rule");
    let params = Params::from_pairs(pairs);
    let limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };
    let filter = params.drops(limits, as_of.today).expect("a filter");
    let query = RuleQuery { common: filter.common, contains: None, stages: StageSet::ACTIVE };
    let period = BacktestPeriod::new(as_of.today, 36, Horizon::Week);
    bencher
        .counter(ItemsCount::new(index.manifest().dropped))
        .bench_local(|| black_box(index.backtest(black_box(&query), period)));
}

/// Counts the tables of outcomes of a day.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn outcomes(bencher: Bencher<'_, '_>) {
    let Asked { index, as_of, .. } = &*ASKED;
    let mut day = as_of.today;
    bencher.bench_local(|| {
        // The tables of a day are kept.
        day = day.plus(-1);
        black_box(index.outcomes(day))
    });
}

type Named = (&'static str, Vec<Ask>);

fn names_of(named: &[Named]) -> impl Iterator<Item = &'static str> {
    named.iter().map(|(name, _)| *name)
}

fn of_name<'a>(named: &'a [Named], name: &str) -> &'a [Ask] {
    named.iter().find(|(known, _)| *known == name).map_or(&[], |(_, asks)| asks)
}

fn ask_all(bencher: Bencher<'_, '_>, asks: &[Ask]) {
    let Asked { index, as_of, .. } = &*ASKED;
    let mut body = Vec::new();
    bencher.counter(ItemsCount::new(asks.len())).bench_local(|| {
        for ask in asks {
            answer(index, black_box(ask), *as_of, &mut body)
                .expect("a verified index returns a response");
            black_box(&body);
        }
    });
}
