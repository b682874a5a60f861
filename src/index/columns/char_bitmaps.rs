//! Bitmaps of docs by character: one bit a doc for each character of an ASCII name, over the full
//! name in both its forms. A search for one character is one bitmap; posting lists would be as
//! large and slower.

use rayon::prelude::*;

use crate::index::columns::idn::alias_of;
use crate::index::columns::records::ScoreRecords;
use crate::index::columns::tlds::Tlds;
use crate::index::error::{BuildError, GenerationError};
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;

const FILE: &str = "listed.letters";
/// Characters of ASCII names in byte order; every name has the dot.
pub const ALPHABET: &[u8; 38] = b"-.0123456789abcdefghijklmnopqrstuvwxyz";
/// Words per parallel task.
const WORDS_PER_PIECE: usize = 1 << 10;

/// Position of a byte in [`ALPHABET`]; `ALPHABET.len()` for any other.
pub const CODES: [u8; 256] = {
    let mut codes = [ALPHABET.len() as u8; 256];
    let mut at = 0;
    while at < ALPHABET.len() {
        codes[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    codes
};

/// Bitmaps by character.
#[derive(Debug, Default)]
pub struct CharBitmaps {
    bits: Vec<u64>,
    words: usize,
}

/// Writes the bitmaps of the docs on the list; `tld` holds their TLD numbers.
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
    let mut file = draft.create(FILE)?;
    let mut row = Vec::new();
    for letter in 0..ALPHABET.len() {
        row.clear();
        row.extend(pieces.iter().flatten().map(|word| word[letter]));
        file.append(&row)?;
    }
    file.finish()
}

/// Returns the bits of up to 64 docs from `first` on.
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

/// Returns a bit for each character in `text`.
fn mask_of(text: &[u8]) -> u64 {
    let all = text.iter().fold(0u64, |mask, &byte| mask | 1 << CODES[usize::from(byte)]);
    all & !(1 << ALPHABET.len())
}

impl CharBitmaps {
    /// Opens what [`write`] wrote for `listed` docs.
    ///
    /// # Errors
    /// The file is damaged or does not fit.
    pub fn open(files: &Files, listed: u32) -> Result<CharBitmaps, GenerationError> {
        let words = listed.div_ceil(64) as usize;
        let bits: Vec<u64> = files.take(FILE)?;
        files.check(bits.len() == words * ALPHABET.len(), FILE)?;
        Ok(CharBitmaps { bits, words })
    }

    /// Returns the bitmap of an ASCII character; `None` for one that no name has.
    pub fn docs(&self, letter: u8) -> Option<&[u64]> {
        let code = usize::from(CODES[usize::from(letter)]);
        self.bits.get(code * self.words..(code + 1) * self.words).filter(|_| code < ALPHABET.len())
    }
}
