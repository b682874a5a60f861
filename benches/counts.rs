//! Ten fixed queries over an index built from the sample. `tests/counts` runs the queries under
//! valgrind and counts the instructions of each. `counts build FOLDER` builds the index; `counts
//! ask FOLDER` runs the queries and prints their names in that order. Without either option, the
//! bench does nothing.

#[path = "service/answer.rs"]
mod answer;
mod common;
#[path = "service/small.rs"]
mod small;

use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;

use answer::{Ask, answer};
use anyhow::anyhow;
use common::drops::{Drops, Mix};
use common::names::RealNames;
use dropdex::index::Index;
use dropdex::index::filter::AsOf;
use dropdex::query::params::{Limits, Params};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use dropdex::vocab::limits::{CATCH_DAYS_DEFAULT, DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};
use dropdex::vocab::name::DomainName;

/// The server's allocator: allocation is part of every response.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// All names of the sample, and the same number of names generated from them.
const NAMES: usize = 100_000;
const SEED: u64 = 1;
const TODAY: &str = "2026-11-20";
/// Number of runs of each query before it is counted, so that caches are filled and buffers have grown.
const WARM_UP: usize = 3;

/// A query: a list and its parameters, or a name.
enum Question {
    Search(&'static str),
    Suggest(&'static str),
    Drops(&'static str),
    Dossier(&'static str),
}

const QUESTIONS: [(&str, Question); 12] = [
    ("search-letter", Question::Search("q=s")),
    ("search-letter-rare-tld", Question::Search("q=s&tld=art")),
    ("search-letter-min-dqs-100", Question::Search("q=s&min_dqs=100")),
    ("search-letter-stage", Question::Search("q=s&stage=pending-delete")),
    ("search-word", Question::Search("q=solar&max_len=12")),
    ("search-deep", Question::Search("q=a&limit=100&offset=1000")),
    ("suggest-word", Question::Suggest("q=hotel")),
    ("suggest-edit", Question::Suggest("q=kitchne")),
    ("drops-page", Question::Drops("limit=20")),
    ("drops-substring", Question::Drops("q=shop&max_len=12&limit=20")),
    ("drops-offset", Question::Drops("tld=com&min_dqs=40&limit=20&offset=1000")),
    ("dossier", Question::Dossier("greencoffeebeansextracts.com")),
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["build", folder] => build(Path::new(folder)),
        ["ask", folder] => ask_all(&small::open(Path::new(folder))?),
        _ => Ok(()),
    }
}

fn build(folder: &Path) -> anyhow::Result<()> {
    let today: Day = TODAY.parse()?;
    let names = RealNames::read(&RealNames::sample_path())?.extend(NAMES, SEED)?;
    let drops = Drops::new(SEED, today, Mix::MARKET);
    small::build(folder, names.iter(), &drops, Clock::pinned_to(today).now())
}

fn ask_all(index: &Index) -> anyhow::Result<()> {
    let as_of = AsOf { today: TODAY.parse()?, catch_days: CATCH_DAYS_DEFAULT };
    let (mut body, mut out) = (Vec::new(), io::stdout().lock());
    for (name, question) in QUESTIONS {
        let ask = question.ask()?;
        for _ in 0..WARM_UP {
            answer(index, black_box(&ask), as_of, &mut body)?;
        }
        measured(index, &ask, as_of, &mut body)?;
        writeln!(out, "{name} {}", body.len())?;
    }
    Ok(())
}

/// The measured function; valgrind finds it by its name.
#[inline(never)]
fn measured(index: &Index, ask: &Ask, as_of: AsOf, body: &mut Vec<u8>) -> anyhow::Result<()> {
    answer(index, black_box(ask), as_of, body)?;
    black_box(body);
    Ok(())
}

impl Question {
    fn ask(&self) -> anyhow::Result<Ask> {
        let limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };
        let ask = match *self {
            Question::Search(text) => {
                Params::new(Some(text)).search(Day::MIN).map(|(_, filter)| Ask::Search(filter))
            }
            Question::Suggest(text) => Params::new(Some(text)).suggest(Day::MIN).map(Ask::Suggest),
            Question::Drops(text) => {
                Params::new(Some(text)).drops(limits, Day::MIN).map(Ask::Drops)
            }
            Question::Dossier(name) => return Ok(Ask::Dossier(DomainName::parse(name)?)),
        };
        ask.map_err(|err| anyhow!("{err:?}"))
    }
}
