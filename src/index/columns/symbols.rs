//! Compression of labels by a table of symbols: each byte of an encoded label stands for a text of
//! one to eight bytes. The table is built from labels of the same list, so frequent pieces take one
//! byte. On average, a label of ten bytes takes six. Any label can be read without the previous
//! ones.

use std::ops::Deref;

use rustc_hash::FxHashMap;

use crate::columns::alphabet::{ALPHABET, CODES};
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

const FILE: &str = "records.symbols";
/// Maximum number of symbols.
const COUNT: usize = 1 << u8::BITS;
/// Maximum bytes of a symbol.
const LEN: usize = size_of::<u64>();
/// Rounds in which symbols grow: each joins neighbouring symbols of the previous round.
const ROUNDS: usize = 6;
/// Maximum bytes of a label.
pub const LABEL_BYTES: usize = 63;
/// Value for a node of the trie at which no symbol ends, or for a missing successor.
const NONE: u16 = u16::MAX;

/// A decoded label.
#[derive(Clone, Copy, Debug)]
pub struct LabelText {
    len: u8,
    /// The label, and space for a whole symbol after it.
    bytes: [u8; LABEL_BYTES + LEN],
}

impl Default for LabelText {
    fn default() -> LabelText {
        LabelText { len: 0, bytes: [0; LABEL_BYTES + LEN] }
    }
}

impl LabelText {
    /// Returns the bytes of the label in order.
    pub fn into_bytes(self) -> impl Iterator<Item = u8> {
        self.bytes.into_iter().take(self.len.into())
    }
}

impl Deref for LabelText {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.len)];
        std::str::from_utf8(bytes).expect("symbols are ASCII")
    }
}

/// The decoder: a table of symbols.
#[derive(Debug)]
pub struct Symbols {
    /// Symbols, padded with zeros.
    texts: Box<[[u8; LEN]; COUNT]>,
    lens: Box<[u8; COUNT]>,
}

impl Default for Symbols {
    fn default() -> Symbols {
        Symbols { texts: Box::new([[0; LEN]; COUNT]), lens: Box::new([0; COUNT]) }
    }
}

/// The encoder: a table of symbols.
#[derive(Debug)]
pub struct SymbolWriter {
    /// Symbols by code.
    texts: Vec<u64>,
    nodes: Vec<Node>,
}

/// A node of the trie of symbols.
#[derive(Clone, Debug)]
struct Node {
    /// Successors by position in [`ALPHABET`].
    next: [u16; ALPHABET.len()],
    code: u16,
}

impl SymbolWriter {
    /// Chooses the symbols that encode `sample` in few bytes. Each round keeps the symbols, and
    /// pairs of neighbours as one symbol, that covered the most bytes in the previous round.
    pub fn new(sample: &[&[u8]]) -> SymbolWriter {
        let letters = || ALPHABET.iter().filter(|&&letter| letter != b'.');
        let mut writer = SymbolWriter::of(letters().map(|&letter| letter.into()).collect());
        for _ in 0..ROUNDS {
            let mut found = FxHashMap::<u64, u64>::default();
            for label in sample {
                let mut before = 0;
                writer.encode(label, |code| {
                    let text = writer.texts[usize::from(code)];
                    *found.entry(text).or_default() += 1;
                    if before != 0 && len_of(before) + len_of(text) <= LEN {
                        *found.entry(before | text << (8 * len_of(before))).or_default() += 1;
                    }
                    before = text;
                });
            }
            let covered = |(text, count): (u64, u64)| (count * len_of(text) as u64, text);
            let longer = found.into_iter().filter(|&(text, _)| len_of(text) > 1);
            let mut longer: Vec<(u64, u64)> = longer.map(covered).collect();
            longer.sort_unstable_by(|one, other| other.cmp(one));
            let mut texts: Vec<u64> = letters().map(|&letter| letter.into()).collect();
            let room = COUNT - texts.len();
            texts.extend(longer.into_iter().take(room).map(|(_, text)| text));
            writer = SymbolWriter::of(texts);
        }
        writer
    }

    fn of(texts: Vec<u64>) -> SymbolWriter {
        let node = Node { next: [NONE; ALPHABET.len()], code: NONE };
        let mut nodes = vec![node.clone()];
        for (code, text) in (0..).zip(&texts) {
            let mut at = 0;
            for byte in &text.to_le_bytes()[..len_of(*text)] {
                let letter = usize::from(CODES[usize::from(*byte)]);
                if nodes[at].next[letter] == NONE {
                    nodes[at].next[letter] = nodes.len() as u16;
                    nodes.push(node.clone());
                }
                at = usize::from(nodes[at].next[letter]);
            }
            nodes[at].code = code;
        }
        SymbolWriter { texts, nodes }
    }

    /// Visits the codes of a label: at each place, that of the longest matching symbol.
    pub fn encode(&self, label: &[u8], mut visit: impl FnMut(u8)) {
        let mut rest = label;
        while !rest.is_empty() {
            let (mut node, mut found) = (&self.nodes[0], (NONE, 0));
            for (len, &byte) in (1..).zip(rest) {
                let next = node.next.get(usize::from(CODES[usize::from(byte)])).copied();
                let Some(next) = next.filter(|&next| next != NONE) else { break };
                node = &self.nodes[usize::from(next)];
                if node.code != NONE {
                    found = (node.code, len);
                }
            }
            let (code, len) = found;
            visit(u8::try_from(code).expect("labels are letters, digits and hyphens"));
            rest = &rest[len..];
        }
    }

    /// Returns the decoder of this table.
    pub fn reader(&self) -> Symbols {
        Symbols::of(&self.texts)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        draft.put(FILE, &self.texts)
    }
}

/// Returns the bytes of a symbol, which are the lowest bytes of its number.
fn len_of(text: u64) -> usize {
    (u64::BITS - text.leading_zeros()).div_ceil(u8::BITS) as usize
}

impl Symbols {
    /// Opens the files that [`SymbolWriter::write`] wrote.
    ///
    /// # Errors
    /// The file is damaged, or has symbols that cannot occur in a label.
    pub fn open(files: &Files) -> Result<Symbols, GenerationError> {
        let texts: Vec<u64> = files.take(FILE)?;
        let is_letter = |byte: &u8| usize::from(CODES[usize::from(*byte)]) < ALPHABET.len();
        let is_label = |text: &u64| text.to_le_bytes()[..len_of(*text)].iter().all(is_letter);
        let fits = texts.len() <= COUNT && texts.iter().all(|text| *text != 0 && is_label(text));
        files.check(fits, FILE)?;
        Ok(Symbols::of(&texts))
    }

    fn of(texts: &[u64]) -> Symbols {
        let mut symbols = Symbols::default();
        for (at, text) in texts.iter().enumerate() {
            symbols.texts[at] = text.to_le_bytes();
            symbols.lens[at] = len_of(*text) as u8;
        }
        symbols
    }

    /// Returns the label with these codes.
    #[inline]
    pub fn decode(&self, codes: &[u8]) -> LabelText {
        let mut label = LabelText::default();
        let mut len = 0;
        for &code in codes {
            // Only codes that the encoder did not write decode to more bytes than a label has.
            let start = len.min(LABEL_BYTES);
            label.bytes[start..start + LEN].copy_from_slice(&self.texts[usize::from(code)]);
            len = start + usize::from(self.lens[usize::from(code)]);
        }
        label.len = len.min(LABEL_BYTES) as u8;
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    #[test]
    fn labels_round_trip_and_frequent_pieces_take_one_byte() {
        let labels: Vec<String> = (0..3_000)
            .map(|at| format!("{}{}", ["solarpanel", "best-", "xn--", "q"][at % 4], at * at))
            .chain([String::from("-"), "z".repeat(63), String::from("solarpanelsolarpanel")])
            .collect();
        let sample: Vec<&[u8]> = labels.iter().step_by(3).map(|label| label.as_bytes()).collect();
        for sample in [&[][..], &sample] {
            let writer = SymbolWriter::new(sample);
            let (_folder, files) = round_trip(|draft| writer.write(draft)).expect("written");
            let symbols = Symbols::open(&files).expect("sound");
            let mut bytes = 0;
            for label in &labels {
                let mut codes = Vec::new();
                writer.encode(label.as_bytes(), |code| codes.push(code));
                bytes += codes.len();
                assert_eq!(&*symbols.decode(&codes), label);
            }
            let all: usize = labels.iter().map(String::len).sum();
            assert_eq!(bytes == all, sample.is_empty(), "{bytes} of {all}");
            assert!(sample.is_empty() || 2 * bytes < all, "{bytes} of {all}");
        }
    }

    #[test]
    fn invalid_tables_of_symbols_are_refused() {
        let letter = u64::from(b'a');
        let open = |texts: &[u64]| {
            let (_folder, files) = round_trip(|draft| draft.put(FILE, texts)).expect("written");
            Symbols::open(&files).is_ok()
        };
        assert!(open(&[letter]) && open(&[letter; COUNT]));
        assert!(!open(&[letter; COUNT + 1]), "too many");
        assert!(!open(&[0]), "an empty one");
        assert!(!open(&[letter << 8]), "a gap");
        assert!(!open(&[0xc3]), "not ASCII");
    }

    #[test]
    fn codes_that_were_not_written_here_end_within_the_label() {
        let long = u64::from_le_bytes(*b"abcdefgh");
        let (_folder, files) = round_trip(|draft| draft.put(FILE, &[long])).expect("written");
        let symbols = Symbols::open(&files).expect("sound");
        assert!(symbols.decode(&[0; 200]).len() <= LABEL_BYTES);
        assert_eq!(&*symbols.decode(&[9]), "", "a code without a symbol");
    }
}
