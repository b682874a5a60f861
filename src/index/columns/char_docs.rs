//! Docs by character: a set for each character of an ASCII name, over the full name in both of its
//! forms. A search for one character reads one set. Most posting lists would be as large as a
//! bitmap, but slower.

use rayon::prelude::*;

use crate::columns::alphabet::{ALPHABET, CODES};
use crate::columns::doc_sets::{DocSet, DocSets, DocSetsBuilder};
use crate::columns::idn::alias_of;
use crate::columns::records::ScoreRecords;
use crate::columns::tlds::Tlds;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

const FILE: &str = "listed.letters";
/// Words per parallel task.
const WORDS_PER_PIECE: usize = 1 << 10;

/// Docs by character. Every name has a dot, so no docs are stored for it.
#[derive(Debug, Default)]
pub struct CharDocs(DocSets);

/// Writes the characters of the docs on the drops list; `tld` holds their TLD numbers.
///
/// # Errors
/// A write fails.
pub fn write(
    records: &ScoreRecords,
    tld: &[u16],
    tlds: &Tlds,
    draft: &Draft,
) -> Result<(), BuildError> {
    let masks: Vec<u64> = tlds
        .names()
        .iter()
        .map(|name| {
            let alias = alias_of(name).unwrap_or_default();
            mask_of(name.as_bytes()) | mask_of(alias.as_bytes()) | mask_of(b".")
        })
        .collect();
    let pieces: Vec<Vec<[u64; ALPHABET.len()]>> = tld
        .par_chunks(WORDS_PER_PIECE * 64)
        .enumerate()
        .map(|(piece, tld)| {
            let first = piece * WORDS_PER_PIECE * 64;
            let words = tld.chunks(64).enumerate();
            let word =
                |(at, tld): (usize, &[u16])| word_of(records, first + at * 64, tld, tlds, &masks);
            words.map(word).collect()
        })
        .collect();
    let mut sets = DocSetsBuilder::new(tld.len() as u32);
    let mut bits = Vec::new();
    for (code, &letter) in ALPHABET.iter().enumerate() {
        bits.clear();
        if letter != b'.' {
            bits.extend(pieces.iter().flatten().map(|word| word[code]));
        }
        sets.push_bits(&bits);
    }
    sets.finish().write(FILE, draft)
}

/// Returns the bits of up to 64 docs, starting at doc `first`.
fn word_of(
    records: &ScoreRecords,
    first: usize,
    tld: &[u16],
    tlds: &Tlds,
    masks: &[u64],
) -> [u64; ALPHABET.len()] {
    let mut word = [0; ALPHABET.len()];
    for (at, &tld) in tld.iter().enumerate() {
        let label = records.label((first + at) as u32);
        let mut mask = mask_of(label.as_bytes()) | masks[usize::from(tld)];
        if label.starts_with("xn--") {
            let name = format!("{}.{}", &*label, tlds.name(tld));
            mask |= mask_of(alias_of(&name).unwrap_or_default().as_bytes());
        }
        while mask != 0 {
            word[mask.trailing_zeros() as usize] |= 1 << at;
            mask &= mask - 1;
        }
    }
    word
}

/// Returns the bits of the characters in `text`.
fn mask_of(text: &[u8]) -> u64 {
    let all = text.iter().fold(0u64, |mask, &byte| mask | 1 << CODES[usize::from(byte)]);
    all & !(1 << ALPHABET.len())
}

impl CharDocs {
    /// Opens the files that [`write`] wrote for `listed` docs.
    ///
    /// # Errors
    /// The file is damaged or does not match.
    pub fn open(files: &Files, listed: u32) -> Result<CharDocs, GenerationError> {
        Ok(CharDocs(DocSets::open(FILE, files, listed, ALPHABET.len())?))
    }

    /// Returns the docs with an ASCII character; `None` if no name has it.
    pub fn docs(&self, letter: u8) -> Option<DocSet<'_>> {
        let code = CODES[usize::from(letter)];
        (usize::from(code) < ALPHABET.len()).then(|| self.0.members([code.into()]))
    }
}
