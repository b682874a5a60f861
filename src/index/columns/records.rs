//! Data of dropped names that is not in a column, by doc: the label, the number of TLDs open to the
//! public with the label, and the features from which its score was computed. The TLD is a column
//! of [`crate::columns::drop_fields`].
//!
//! A record is a few numbers in [`prefix_code`](super::prefix_code), with one code per [`Field`],
//! followed by the label in [`symbols`](super::symbols), which takes the last bytes:
//!
//! ```text
//! bytes of the label; flags of the features; spread
//! unless the name is to be scored again:
//!   pronounceability; points of market and of pronounceability, each as a code and five bits
//!   per token: mark and whether it is the last; if it is not, its length
//! ```
//! Records are concatenated, with an array of their lengths.

use std::array;
use std::hint::black_box;

use crate::columns::prefix_code::{BitReader, BitWriter, Counts, PrefixCode, PrefixWriter};
use crate::columns::spans::Spans;
use crate::columns::symbols::{LABEL_BYTES, LabelText, SymbolWriter, Symbols};
use crate::error::{BuildError, GenerationError};
use crate::scorer::Brief;
use crate::storage::draft::Draft;
use crate::storage::files::Files;

const LENS: &str = "records.lens";
const BYTES: &str = "records.bytes";
const CODES: &str = "records.codes";
/// Value of the flags of a name that must be scored again. It is greater than all flags of features
/// except the highest two.
const SCORE_AGAIN: u16 = 1 << 13;
/// Lowest bits of points, which are not compressed.
const RAW: u32 = 5;
/// Value of the upper bits of points that stands for exactly zero points. No other number of points
/// has these bits.
const ZERO: u16 = 1 << 15;
/// Flag in the mark of the last token.
const LAST: u16 = 1 << u8::BITS;
/// Maximum bytes of tokens; a label with more is scored again. A record thus has at most 255 bytes.
const TOKEN_BYTES: usize = 96;

/// Numbers of a record, each with its own prefix code.
#[derive(Clone, Copy, Debug)]
enum Field {
    LabelBytes,
    Flags,
    Spread,
    Pronounceability,
    Market,
    PronounceabilityPoints,
    FirstMark,
    Mark,
    TokenLen,
}

impl Field {
    const COUNT: usize = 9;
}

/// Records of all dropped names, by doc.
#[derive(Debug, Default)]
pub struct ScoreRecords {
    symbols: Symbols,
    codes: [PrefixCode; Field::COUNT],
    spans: Spans,
    bytes: Vec<u8>,
}

/// Buffers for one record.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    label: LabelText,
    tokens: Vec<u8>,
}

/// The record of a dropped name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreRecord<'a> {
    /// Label, in A-label form.
    pub label: &'a str,
    /// Number of TLDs open to the public with the label; 255 means 255 or more.
    pub spread: u8,
    /// Input of the score, which the scorer can read.
    pub features: Brief<'a>,
}

/// An encoder of records.
#[derive(Debug)]
pub struct RecordWriter {
    symbols: SymbolWriter,
    codes: [PrefixWriter; Field::COUNT],
}

/// Counts of the numbers in some records.
#[derive(Debug, Default)]
pub struct RecordCounts([Counts; Field::COUNT]);

/// Records being built, by doc.
#[derive(Debug)]
pub struct NewRecords {
    spans: Spans,
    bytes: Vec<u8>,
}

impl ScoreRecord<'_> {
    /// Visits, in order, each field with its number, its lowest bits and their count.
    fn each(&self, label_bytes: usize, mut visit: impl FnMut(Field, u16, u64, u32)) {
        let Brief { flags, pronounceability, market_points, pronounceability_points, tokens } =
            self.features;
        let again = tokens.is_empty() || tokens.len() > TOKEN_BYTES;
        visit(Field::LabelBytes, label_bytes as u16, 0, 0);
        visit(Field::Flags, if again { SCORE_AGAIN } else { flags }, 0, 0);
        visit(Field::Spread, self.spread.into(), 0, 0);
        if again {
            return;
        }
        visit(Field::Pronounceability, pronounceability.into(), 0, 0);
        let points = [
            (Field::Market, market_points),
            (Field::PronounceabilityPoints, pronounceability_points),
        ];
        for (field, points) in points {
            match points {
                0 => visit(field, ZERO, 0, 0),
                _ => {
                    let raw = points as u64 & ((1 << RAW) - 1);
                    visit(field, (points >> RAW) as u16, raw, RAW);
                }
            }
        }
        let mut field = Field::FirstMark;
        for token in tokens.chunks(2) {
            match *token {
                [mark, len] => {
                    visit(field, mark.into(), 0, 0);
                    visit(Field::TokenLen, len.into(), 0, 0);
                }
                _ => visit(field, LAST | u16::from(token[0]), 0, 0),
            }
            field = Field::Mark;
        }
    }
}

impl RecordCounts {
    /// Counts the numbers of a record.
    pub fn add(&mut self, record: &ScoreRecord<'_>, symbols: &SymbolWriter) {
        let mut label_bytes = 0;
        symbols.encode(record.label.as_bytes(), |_| label_bytes += 1);
        record.each(label_bytes, |field, number, _, _| {
            *self.0[field as usize].entry(number).or_default() += 1;
        });
    }

    /// Adds the counts of other records.
    pub fn join(&mut self, other: RecordCounts) {
        for (all, counts) in self.0.iter_mut().zip(other.0) {
            counts.into_iter().for_each(|(number, count)| *all.entry(number).or_default() += count);
        }
    }
}

impl RecordWriter {
    /// Builds the codes from the counts of all records.
    pub fn new(symbols: SymbolWriter, counts: &RecordCounts) -> RecordWriter {
        RecordWriter { symbols, codes: array::from_fn(|at| PrefixWriter::new(&counts.0[at])) }
    }

    /// Appends the bytes of a record, at most 255.
    pub fn encode(&self, record: &ScoreRecord<'_>, out: &mut Vec<u8>) {
        let (mut label, mut label_bytes) = ([0; LABEL_BYTES], 0);
        self.symbols.encode(record.label.as_bytes(), |code| {
            label[label_bytes] = code;
            label_bytes += 1;
        });
        let mut bits = BitWriter::default();
        record.each(label_bytes, |field, number, raw, count| {
            self.codes[field as usize].write(number, &mut bits, out);
            bits.push(raw, count, out);
        });
        bits.finish(out);
        out.extend_from_slice(&label[..label_bytes]);
    }

    /// Writes the tables of the codes.
    fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        self.symbols.write(draft)?;
        let mut file = draft.create(CODES)?;
        for code in &self.codes {
            file.append(&[code.lengths().len() as u16])?;
            file.append(&code.lengths().collect::<Vec<_>>())?;
        }
        file.finish()
    }
}

impl NewRecords {
    /// Allocates records of these sizes.
    ///
    /// # Errors
    /// The records exceed 4 GiB.
    pub fn with_lens(lens: Vec<u8>) -> Result<NewRecords, BuildError> {
        let what = "bytes of dropped names";
        let too_many = BuildError::TooMany { what, limit: u32::MAX.into() };
        let spans = Spans::from_lens(lens).ok_or(too_many)?;
        Ok(NewRecords { bytes: vec![0; spans.end()], spans })
    }

    /// Sets the bytes of the record of a doc; it must have the size given before.
    pub fn set(&mut self, doc: u32, record: &[u8]) {
        self.bytes[self.spans.range(doc as usize)].copy_from_slice(record);
    }
}

impl ScoreRecords {
    /// Takes the records that a writer built.
    pub fn new(records: NewRecords, writer: &RecordWriter) -> ScoreRecords {
        ScoreRecords {
            symbols: writer.symbols.reader(),
            codes: array::from_fn(|at| writer.codes[at].reader()),
            spans: records.spans,
            bytes: records.bytes,
        }
    }

    /// Writes the files.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, writer: &RecordWriter, draft: &Draft) -> Result<(), BuildError> {
        draft.put(LENS, self.spans.lens())?;
        draft.put(BYTES, &self.bytes)?;
        writer.write(draft)
    }

    /// Opens the records of `docs` dropped names.
    ///
    /// # Errors
    /// A file is damaged, or does not hold `docs` records.
    pub fn open(files: &Files, docs: u32) -> Result<ScoreRecords, GenerationError> {
        let (lens, bytes): (Vec<u8>, Vec<u8>) = (files.take(LENS)?, files.take(BYTES)?);
        let spans = Spans::from_lens(lens);
        let spans = spans.filter(|it| (it.len(), it.end()) == (docs as usize, bytes.len()));
        files.check(spans.is_some(), LENS)?;
        let codes = read_codes(&files.take(CODES)?);
        files.check(codes.is_some(), CODES)?;
        Ok(ScoreRecords {
            symbols: Symbols::open(files)?,
            codes: codes.unwrap_or_default(),
            spans: spans.unwrap_or_default(),
            bytes,
        })
    }

    /// Returns the number of entries.
    pub fn len(&self) -> u32 {
        self.spans.len() as u32
    }

    /// Returns the record of a doc, in a buffer.
    pub fn get<'a>(&self, doc: u32, buffer: &'a mut RecordBuffer) -> ScoreRecord<'a> {
        let record = &self.bytes[self.spans.range(doc as usize)];
        let mut bits = BitReader::new(record);
        let read = |field: Field, bits: &mut BitReader<'_>| self.codes[field as usize].read(bits);
        buffer.label = self.label_of(record, read(Field::LabelBytes, &mut bits));
        buffer.tokens.clear();
        let flags = read(Field::Flags, &mut bits);
        let spread = read(Field::Spread, &mut bits) as u8;
        let mut features = Brief::default();
        if flags != SCORE_AGAIN {
            features.flags = flags;
            bits.fill();
            features.pronounceability = read(Field::Pronounceability, &mut bits) as u8;
            let mut points = |field| match read(field, &mut bits) {
                ZERO => 0,
                high => ((high << RAW) | bits.take(RAW) as u16) as i16,
            };
            features.market_points = points(Field::Market);
            features.pronounceability_points = points(Field::PronounceabilityPoints);
            let mut field = Field::FirstMark;
            while buffer.tokens.len() <= TOKEN_BYTES {
                bits.fill();
                let mark = read(field, &mut bits);
                buffer.tokens.push(mark as u8);
                if mark & LAST != 0 {
                    break;
                }
                buffer.tokens.push(read(Field::TokenLen, &mut bits) as u8);
                field = Field::Mark;
            }
        }
        features.tokens = &buffer.tokens;
        ScoreRecord { label: &buffer.label, spread, features }
    }

    /// Loads the memory of several records in parallel, instead of waiting for each cache miss.
    pub fn prefetch(&self, docs: &[u32]) {
        let first = |&doc: &u32| self.bytes[self.spans.start(doc as usize)];
        black_box(docs.iter().map(first).fold(0, u8::wrapping_add));
    }

    /// Returns the label of a doc, which is all that a text search needs.
    #[inline]
    pub fn label(&self, doc: u32) -> LabelText {
        let record = &self.bytes[self.spans.range(doc as usize)];
        let label_bytes = self.codes[Field::LabelBytes as usize].read(&mut BitReader::new(record));
        self.label_of(record, label_bytes)
    }

    #[inline]
    fn label_of(&self, record: &[u8], label_bytes: u16) -> LabelText {
        self.symbols.decode(&record[record.len().saturating_sub(usize::from(label_bytes))..])
    }
}

/// Reads the tables that [`RecordWriter::write`] wrote; `None` if they are damaged.
fn read_codes(numbers: &[u16]) -> Option<[PrefixCode; Field::COUNT]> {
    let mut rest = numbers;
    let mut codes = Vec::with_capacity(Field::COUNT);
    for _ in 0..Field::COUNT {
        let (&count, after) = rest.split_first()?;
        let (lengths, after) = after.split_at_checked(2 * usize::from(count))?;
        codes.push(PrefixCode::new(bytemuck::cast_slice(lengths))?);
        rest = after;
    }
    codes.try_into().ok().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    /// Returns records with all kinds of fields.
    fn records<'a>(labels: &'a [String], tokens: &'a [u8]) -> Vec<ScoreRecord<'a>> {
        let record = |(at, label): (usize, &'a String)| ScoreRecord {
            label,
            spread: at as u8,
            features: Brief {
                flags: [0, 1 << 15, 1 << 14, 0x1ff][at % 4],
                pronounceability: (at % 101) as u8,
                market_points: [0, -1, 1, i16::MIN, i16::MAX, -777][at % 6],
                pronounceability_points: (at as i16 - 60) * 9,
                tokens: &tokens[at % 9 / 2..at % 9 / 2 + [1, 3, 7][at % 3]],
            },
        };
        labels.iter().enumerate().map(record).collect()
    }

    #[test]
    fn records_round_trip_on_disk() {
        let tokens: Vec<u8> = (1..200).collect();
        let labels: Vec<String> = (0..120).map(|at| format!("label{at}-{}", at * at)).collect();
        let mut records = records(&labels, &tokens);
        records[3].features = Brief::default();
        records[4].features.tokens = &tokens[..TOKEN_BYTES - 1];
        records[5].features.tokens = &tokens[..TOKEN_BYTES + 1];
        let sample: Vec<&[u8]> = labels.iter().map(|label| label.as_bytes()).collect();
        let symbols = SymbolWriter::new(&sample);
        let mut counts = RecordCounts::default();
        records.iter().for_each(|record| counts.add(record, &symbols));
        let writer = RecordWriter::new(symbols, &counts);
        let mut encoded = Vec::new();
        for record in &records {
            let mut bytes = Vec::new();
            writer.encode(record, &mut bytes);
            encoded.push(bytes);
        }
        let lens = encoded.iter().map(|record| record.len() as u8).collect();
        let mut new = NewRecords::with_lens(lens).expect("few");
        (0..).zip(&encoded).for_each(|(doc, record)| new.set(doc, record));
        let made = ScoreRecords::new(new, &writer);
        let (_folder, files) = round_trip(|draft| made.write(&writer, draft)).expect("written");
        let read = ScoreRecords::open(&files, 120).expect("sound");
        // A label of too many tokens is scored again.
        records[5].features = Brief::default();
        let mut buffer = RecordBuffer::default();
        for (doc, record) in (0..).zip(&records) {
            for from in [&made, &read] {
                assert_eq!(from.get(doc, &mut buffer), *record);
                assert_eq!(&*from.label(doc), record.label);
            }
        }
        assert!(ScoreRecords::open(&files, 119).is_err(), "of another number");
    }

    #[test]
    fn invalid_tables_of_codes_are_refused() {
        let none = [0; Field::COUNT];
        assert!(read_codes(&none).is_some());
        assert!(read_codes(&none[1..]).is_none(), "one is missing");
        assert!(read_codes(&[&none[..], &[0]].concat()).is_none(), "more than all");
        let one = [&none[1..], &[1, 7, 3]].concat();
        assert!(read_codes(&one).is_some());
        assert!(read_codes(&one[..one.len() - 1]).is_none(), "one is cut off");
        assert!(read_codes(&[&none[1..], &[1, 7, 13]].concat()).is_none(), "a word is too long");
    }
}
