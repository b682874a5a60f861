//! Lookup tables built ahead from the lists in `data/scorer` and used in place, so that a process
//! that scores a name parses none of them.
//!
//! `data/scorer/README.md` describes the files. The tests below hold them equal to their sources;
//! after a change of a source, `DROPDEX_BLESS=1 cargo test --lib scorer::prebuilt` writes them anew.

use super::tlds::SuffixClass;
use super::trie::Node;

const _: () = assert!(cfg!(target_endian = "little"), "the tables hold little-endian numbers");

/// A file on the boundary of a cache line: numbers in it are aligned, and no bucket of sequences
/// crosses a line.
#[repr(C, align(64))]
struct Aligned<Bytes: ?Sized>(Bytes);

static TRIE: &Aligned<[u8]> = &Aligned(*include_bytes!("../../data/scorer/trie.bin"));
static WORDS: &Aligned<[u8]> = &Aligned(*include_bytes!("../../data/scorer/words.bin"));
static SEQUENCES: &Aligned<[u8]> = &Aligned(*include_bytes!("../../data/scorer/sequences.bin"));

/// Buckets of the table of sequences: a third of its slots stays free, so that few buckets are full.
pub const BUCKETS: usize = 3 << 17;
pub const SLOTS: usize = 8;

/// Slots that are compared at once, filled from the first on.
pub type Bucket = [u16; SLOTS];

/// Bytes of one word in `words.bin`: eight of levels, two of cost, one per class of suffix.
const WORD_BYTES: usize = 8 + 2 + SuffixClass::COUNT;

/// Columns of the word list, each by the word's number.
#[derive(Clone, Copy)]
pub struct WordColumns {
    /// Bits of the word's `Levels`.
    pub levels: &'static [u64],
    /// In sixteenths of a bit.
    pub costs: &'static [u16],
    /// Tenths of a point, by class of suffix.
    pub values: &'static [[i8; SuffixClass::COUNT]],
}

/// The nodes of the word trie.
pub fn trie() -> &'static [Node] {
    bytemuck::cast_slice(&TRIE.0)
}

/// The columns of the word list.
pub fn words() -> WordColumns {
    let count = WORDS.0.len() / WORD_BYTES;
    let (levels, rest) = WORDS.0.split_at(count * 8);
    let (costs, values) = rest.split_at(count * 2);
    WordColumns {
        levels: bytemuck::cast_slice(levels),
        costs: bytemuck::cast_slice(costs),
        values: bytemuck::cast_slice(values),
    }
}

/// The hash table of letter sequences.
pub fn sequences() -> &'static [Bucket; BUCKETS] {
    let buckets: &[Bucket] = bytemuck::cast_slice(&SEQUENCES.0);
    buckets.try_into().expect("the file holds one table")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    use super::super::dictionary::{Language, Levels};
    use super::super::{spelling, trie_builder};
    use super::*;

    fn source(name: &str) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/scorer").join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Compares a file with what its sources give, or writes it when `DROPDEX_BLESS` is set.
    fn check(name: &str, built: &[u8]) {
        if env::var_os("DROPDEX_BLESS").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/scorer").join(name);
            fs::write(path, built).expect("the file can be written");
            return;
        }
        assert!(
            source(name) == built,
            "data/scorer/{name} is not what its sources give; run \
             `DROPDEX_BLESS=1 cargo test --lib scorer::prebuilt`"
        );
    }

    /// A line of `words.tsv`: the word, its cost, its levels as pairs of a letter for the language
    /// (`a` is the first) and a hexadecimal digit, and, if any is not 0, its values by class of
    /// suffix.
    struct Word<'a> {
        text: &'a str,
        cost: u16,
        levels: Levels,
        values: [i8; SuffixClass::COUNT],
    }

    impl Word<'_> {
        fn parse(line: &str) -> Option<Word<'_>> {
            let mut fields = line.split('\t');
            let (text, cost) = (fields.next()?, fields.next()?.parse().ok()?);
            let mut levels = Levels::default();
            for pair in fields.next()?.as_bytes().chunks_exact(2) {
                let level = char::from(pair[1]).to_digit(16)?;
                levels.raise(Language::from_number(pair[0] - b'a'), level as u8);
            }
            let mut values = [0; SuffixClass::COUNT];
            for (value, text) in values.iter_mut().zip(fields.next().unwrap_or_default().split(' '))
            {
                *value = text.parse().unwrap_or_default();
            }
            Some(Word { text, cost, levels, values })
        }
    }

    #[test]
    fn word_tables_equal_the_word_list() {
        let list = String::from_utf8(source("words.tsv")).expect("text");
        let words: Vec<_> = list
            .lines()
            .map(|line| Word::parse(line).unwrap_or_else(|| panic!("malformed: {line}")))
            .collect();
        assert!(words.iter().all(|word| word.cost > 0 && word.text.len() <= 24));
        assert!(words.iter().all(|word| word.text.bytes().all(|byte| byte.is_ascii_lowercase())));
        assert!(words.is_sorted_by(|one, next| one.text < next.text), "sorted, each word once");

        let texts: Vec<_> = words.iter().map(|word| word.text).collect();
        check("trie.bin", bytemuck::cast_slice(&trie_builder::build(&texts)));
        let mut columns = Vec::new();
        columns.extend(words.iter().flat_map(|word| word.levels.to_bits().to_le_bytes()));
        columns.extend(words.iter().flat_map(|word| word.cost.to_le_bytes()));
        columns.extend(words.iter().flat_map(|word| word.values.map(|value| value as u8)));
        check("words.bin", &columns);
    }

    #[test]
    fn the_sequence_table_equals_the_packed_sequences() {
        let table = spelling::packed::table(&source("sequences.zst"));
        check("sequences.bin", bytemuck::cast_slice(&table));
    }
}
