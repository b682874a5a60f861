//! Builds the lookup tables of the scorer from the lists in `data/scorer`, so that no list is parsed at
//! run time. `prebuilt.rs` embeds the files; `data/scorer/README.md` describes them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ruzstd::decoding::StreamingDecoder;

#[path = "../../benches/scoring/sequence_table.rs"]
mod sequence_table;
#[path = "sequences.rs"]
#[allow(dead_code, reason = "the scorer looks up what this builds")]
mod sequences;
#[path = "trie.rs"]
#[allow(dead_code, unused_imports, reason = "the scorer walks what this builds")]
mod trie;
#[path = "../../benches/scoring/trie_builder.rs"]
mod trie_builder;

/// Number of values of a word, one per class of suffix.
const CLASSES: usize = 6;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let sequences = unpack("sequences.zst");
    // The unpacked lists are for tests and benches.
    write(&out, "sequences", sequences.iter().copied());
    let words = String::from_utf8(unpack("words.tsv.zst")).expect("words.tsv is text");
    write(&out, "words.tsv", words.bytes());
    let words: Vec<_> = words.lines().map(Word::parse).collect();
    assert!(words.is_sorted_by(|one, next| one.text < next.text), "words.tsv: sorted, each once");

    let texts: Vec<_> = words.iter().map(|word| word.text).collect();
    write(
        &out,
        "trie.bin",
        trie_builder::build(&texts).iter().flatten().flat_map(|n| n.to_le_bytes()),
    );
    let levels = words.iter().flat_map(|word| word.levels.to_le_bytes());
    let costs = words.iter().flat_map(|word| word.cost.to_le_bytes());
    let claims = words.iter().flat_map(|word| word.claims.to_le_bytes());
    let values = words.iter().flat_map(|word| word.values.map(|value| value as u8));
    write(&out, "words.bin", levels.chain(costs).chain(claims).chain(values));
    let table = sequence_table::table(&sequences);
    write(&out, "sequences.bin", table.iter().flatten().flat_map(|slot| slot.to_le_bytes()));
}

/// Unpacks a file of `data/scorer`.
#[allow(clippy::print_stdout, reason = "directives of cargo are lines on standard output")]
fn unpack(name: &str) -> Vec<u8> {
    let path = Path::new("../../data/scorer").join(name);
    println!("cargo::rerun-if-changed={}", path.display());
    let packed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut unpacked = Vec::new();
    let mut frame = StreamingDecoder::new(packed.as_slice()).expect("a zstd frame");
    frame.read_to_end(&mut unpacked).expect("the frame unpacks");
    unpacked
}

fn write(folder: &Path, name: &str, bytes: impl Iterator<Item = u8>) {
    let path = folder.join(name);
    let bytes: Vec<u8> = bytes.collect();
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A line of `words.tsv`: the word, its cost, its levels as pairs of a letter for the language (`a` is
/// the first; a capital claims the word) and a hexadecimal digit, and, if any is not 0, its values by
/// class of suffix.
struct Word<'a> {
    text: &'a str,
    cost: u16,
    /// Four bits per language.
    levels: u64,
    /// One bit per language.
    claims: u16,
    values: [i8; CLASSES],
}

impl Word<'_> {
    /// Panics on a malformed line, because the file is part of the program.
    fn parse(line: &str) -> Word<'_> {
        let fields: Vec<_> = line.split('\t').collect();
        let number = |text: &str| -> i16 {
            text.parse().unwrap_or_else(|_| panic!("words.tsv: not a number: {line}"))
        };
        let (text, cost) = (fields[0], number(fields[1]).unsigned_abs());
        let plain = text.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(cost > 0 && plain && (1..=24).contains(&text.len()), "words.tsv: {line}");
        let (mut levels, mut claims) = (0, 0);
        for pair in fields[2].as_bytes().chunks_exact(2) {
            let language = pair[0].to_ascii_lowercase() - b'a';
            let level = char::from(pair[1]).to_digit(16).expect("a hexadecimal digit");
            levels |= u64::from(level) << (4 * language);
            claims |= u16::from(pair[0].is_ascii_uppercase()) << language;
        }
        let mut values = [0; CLASSES];
        for (value, text) in
            values.iter_mut().zip(fields.get(3).into_iter().flat_map(|it| it.split(' ')))
        {
            *value = number(text) as i8;
        }
        Word { text, cost, levels, claims, values }
    }
}
