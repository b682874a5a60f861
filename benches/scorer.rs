//! `cargo bench --bench scorer`: measures names per second and core, and the growth of work with
//! length.
//!
//! Names come from the file that `DROPDEX_BENCH_NAMES` names (plain text, one per line), otherwise from
//! the bundled sample, otherwise they are generated from the word lists with a fixed seed.

use std::fs::File;
use std::io::Read;
use std::{env, fs};

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};
use dropdex::scorer::{Features, Scorer, Scratch, Spread, StoredScore};
use dropdex::vocab::name::DomainName;
use flate2::read::MultiGzDecoder;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample/sample.csv.gz");
const NAMES: usize = 10_000;

/// Counts the allocations of each part: `base` must not allocate once its buffers have grown.
#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    let name = DomainName::parse("example.com").expect("a name");
    // Reading the first name loads the dictionaries.
    Scorer::shared().base(&name, &mut Scratch::default());
    divan::main();
}

/// The work of an ingest: everything except `tldSpread`.
#[divan::bench]
fn base(bencher: Bencher<'_, '_>) {
    let (names, mut scratch) = (names(), Scratch::default());
    let scorer = Scorer::shared();
    bencher.counter(ItemsCount::new(names.len())).bench_local(|| {
        for name in &names {
            black_box(scorer.base(black_box(name), &mut scratch));
        }
    });
}

/// Restores signals and explanation from stored features, as for a response.
#[divan::bench]
fn recall(bencher: Bencher<'_, '_>) {
    tell(bencher, |scorer, known, scratch| {
        black_box(scorer.restore(known, scratch));
    });
}

/// Only the explanation, from features.
#[divan::bench]
fn explain(bencher: Bencher<'_, '_>) {
    tell(bencher, |scorer, known, scratch| {
        black_box(scorer.explain(known, scratch));
    });
}

fn tell(bencher: Bencher<'_, '_>, told: impl Fn(&Scorer, StoredScore<'_>, &mut Scratch)) {
    let (names, mut scratch) = (names(), Scratch::default());
    let scorer = Scorer::shared();
    let mut with_evidence = |name| {
        let mut features = Vec::new();
        scorer.base_with_features(name, &mut scratch, &mut features);
        features
    };
    let features: Vec<_> = names.iter().map(&mut with_evidence).collect();
    bencher.counter(ItemsCount::new(names.len())).bench_local(|| {
        for (name, features) in names.iter().zip(&features) {
            let (label, tld) = (name.label(), name.tld());
            told(
                scorer,
                black_box(StoredScore {
                    label,
                    tld,
                    spread: Spread::of(3),
                    features: Features::Whole(features),
                }),
                &mut scratch,
            );
        }
    });
}

/// A score with signals and explanation, of a name that must be split first.
#[divan::bench]
fn score(bencher: Bencher<'_, '_>) {
    let (names, mut scratch) = (names(), Scratch::default());
    let scorer = Scorer::shared();
    bencher.counter(ItemsCount::new(names.len())).bench_local(|| {
        for name in &names {
            black_box(scorer.score(black_box(name), Spread::of(3), &mut scratch));
        }
    });
}

/// The work of a rebuild.
#[divan::bench]
fn with_spread(bencher: Bencher<'_, '_>) {
    let (names, mut scratch) = (names(), Scratch::default());
    let bases: Vec<_> =
        names.iter().map(|name| Scorer::shared().base(name, &mut scratch)).collect();
    bencher.counter(ItemsCount::new(bases.len())).bench_local(|| {
        for (at, base) in bases.iter().enumerate() {
            black_box(black_box(*base).with_spread(Spread::of(at as u32 & 63)));
        }
    });
}

/// A name of this many letters that contains no word: the most work for its length.
#[divan::bench(args = [8, 16, 32, 63])]
fn base_of_length(bencher: Bencher<'_, '_>, letters: usize) {
    let label: String = "qualitynonsensorium".chars().cycle().take(letters).collect();
    let name = DomainName::parse(&format!("{label}.com")).expect("letters make a label");
    let mut scratch = Scratch::default();
    bencher.bench_local(|| Scorer::shared().base(black_box(&name), &mut scratch));
}

fn names() -> Vec<DomainName> {
    match env::var("DROPDEX_BENCH_NAMES") {
        Ok(path) => {
            let text = fs::read_to_string(&path).unwrap_or_else(|err| panic!("{path}: {err}"));
            spread_over(&text)
        }
        Err(_) => sample().as_deref().map_or_else(invented, spread_over),
    }
}

/// Returns the sample list, whose first column holds names; `None` if it does not exist.
fn sample() -> Option<String> {
    let mut text = String::new();
    MultiGzDecoder::new(File::open(SAMPLE).ok()?).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns [`NAMES`] of the names at even distances, so that a sorted file yields a representative
/// sample.
fn spread_over(text: &str) -> Vec<DomainName> {
    let first = |line: &str| DomainName::parse(line.split(',').next()?).ok();
    let names: Vec<_> = text.lines().filter_map(first).collect();
    let step = (names.len() / NAMES).max(1);
    names.into_iter().step_by(step).take(NAMES).collect()
}

/// Generates labels of one to three words or random letters, with suffixes in the proportions of real
/// lists.
fn invented() -> Vec<DomainName> {
    let file = fs::File::open("data/scorer/words.tsv.zst").expect("the list is there");
    let mut list = String::new();
    let mut unpacked = ruzstd::decoding::StreamingDecoder::new(file).expect("a zstd frame");
    unpacked.read_to_string(&mut list).expect("text");
    let words: Vec<&str> = list.lines().filter_map(|line| line.split('\t').next()).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below
    };
    let mut names = Vec::with_capacity(NAMES);
    while names.len() < NAMES {
        let mut label = String::new();
        for _ in 0..=draw(3) {
            match draw(4) {
                0 => (0..2 + draw(5)).for_each(|_| label.push(char::from(b'a' + draw(26) as u8))),
                _ => label.push_str(words[draw(words.len())]),
            }
        }
        let tld = ["com", "com", "com", "de", "pl", "net", "org", "co.uk", "xyz"][draw(9)];
        names.extend(DomainName::parse(&format!("{label}.{tld}")));
    }
    names
}
