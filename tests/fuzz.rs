//! Every parser of outside bytes, run on the kept inputs of the fuzzers (`tests/fuzz/corpus`) and on
//! variations of them from a seed. The fuzzers themselves are guided by coverage, run for hours and are
//! started by hand (tests/README.md).

#[path = "it/common/nameless.rs"]
mod nameless;
#[path = "it/common/rng.rs"]
#[expect(dead_code, reason = "shared with the integration tests, which use all of it")]
mod rng;
#[path = "it/common/runs.rs"]
#[expect(dead_code, reason = "shared with the integration tests, which use all of it")]
mod runs;
#[path = "fuzz/src/service.rs"]
mod service;
#[path = "fuzz/src/targets.rs"]
mod targets;

use std::path::Path;
use std::thread;

use rng::Rng;

/// Number of inputs derived from each target's corpus; fewer for the whole service, which is
/// slower. At full size, [`FULL_TIMES`] times as many.
const INPUTS: usize = 6_000;
const INPUTS_OF_THE_SERVICE: usize = 300;
const FULL_TIMES: usize = 330;
/// Maximum bytes of an input; longer ones are left to the fuzzers.
const INPUT_BYTES_MAX: usize = 4_096;

macro_rules! test_each {
    ($($target:ident: $inputs:expr),* $(,)?) => {
        $(#[test]
        fn $target() {
            run(stringify!($target), targets::$target, $inputs);
        })*

        #[test]
        fn every_fuzzer_also_runs_here_and_has_kept_inputs() {
            let run = [$(stringify!($target)),*];
            let manifest = include_str!("fuzz/Cargo.toml").split("[[bin]]").skip(1);
            let fuzzers: Vec<&str> = manifest.filter_map(|bin| bin.split('"').nth(1)).collect();
            assert_eq!(run.as_slice(), fuzzers);
            assert!(run.iter().all(|name| !kept(name).is_empty()));
        }
    };
}

test_each! {
    names: INPUTS,
    matchers: INPUTS_OF_THE_SERVICE,
    urls: INPUTS,
    queries: INPUTS_OF_THE_SERVICE,
    days: INPUTS,
    cursors: INPUTS,
    cursor_pages: INPUTS_OF_THE_SERVICE,
    headers: INPUTS_OF_THE_SERVICE,
    bodies: INPUTS_OF_THE_SERVICE,
    forms: INPUTS_OF_THE_SERVICE,
    feed_any: INPUTS,
    feed_native: INPUTS,
    feed_names: INPUTS,
    feed_pool: INPUTS,
    feed_json: INPUTS,
    feed_tables: INPUTS,
    feed_zone: INPUTS,
    journal: INPUTS,
    journal_files: INPUTS,
    batch: INPUTS,
    manifest: INPUTS,
    rdap: INPUTS,
    bootstrap: INPUTS,
    codings: INPUTS,
    mounts: INPUTS,
}

/// Runs `target` on its kept inputs and on as many variations as `inputs`. A failing run prints its
/// input.
fn run(name: &str, target: fn(&[u8]), inputs: usize) {
    let kept = kept(name);
    for input in &kept {
        Attempt { name, input }.make(target);
    }
    let mut rng = Rng::new(runs::seed_of_the_commit());
    for _ in 0..runs::figure(inputs, FULL_TIMES * inputs) {
        let input = changed(&kept, &mut rng);
        Attempt { name, input: &input }.make(target);
    }
}

/// An input that is being parsed.
struct Attempt<'a> {
    name: &'a str,
    input: &'a [u8],
}

impl Attempt<'_> {
    fn make(&self, target: fn(&[u8])) {
        target(self.input);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let input = self.input.escape_ascii();
            runs::say(&format!("fuzz target {}: failed on b\"{input}\"", self.name));
        }
    }
}

/// Returns the kept inputs of a target, ordered by file name.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|err| panic!("{folder:?}: {err}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a readable file")).collect()
}

/// Changes one of the kept inputs, or nothing, in one to eight places.
fn changed(kept: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = if rng.chance(2) { Vec::new() } else { rng.pick(kept).clone() };
    for _ in 0..=rng.below(8) {
        change(&mut input, kept, rng);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// Byte sequences that are significant to at least one parser.
const TOKENS: [&[u8]; 24] = [
    b"\0",
    b"\r\n",
    b"\"",
    b"\\",
    b"%00",
    b"%ff",
    b"..",
    b"xn--",
    b"\xc3\xbc",
    b"\xe2\x80\x8b",
    b"\xf0\x9f\x98\x80",
    b"\xff\xfe",
    b"-1",
    b"0",
    b"99999999999999999999",
    b"2026-02-30",
    b"null",
    b"{}",
    b"[[[[",
    b",,",
    b"=",
    b"&",
    b"\t",
    b"://",
];

fn change(input: &mut Vec<u8>, kept: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.below(input.len() + 1);
    let end = at + rng.below(input.len() - at + 1);
    match rng.below(8) {
        0 if at < input.len() => input[at] ^= 1 << rng.below(8),
        1 if at < input.len() => input[at] = rng.below(256) as u8,
        2 => drop(input.drain(at..end)),
        3 => input.truncate(at),
        4 => {
            let part = input[at..end].to_vec();
            input.splice(at..at, part);
        }
        5 => {
            let other = rng.pick(kept);
            let from = rng.below(other.len() + 1);
            let to = from + rng.below(other.len() - from + 1);
            input.splice(at..end, other[from..to].iter().copied());
        }
        _ => {
            let token: &&[u8] = rng.pick(&TOKENS);
            input.splice(at..at, token.iter().copied());
        }
    }
}
