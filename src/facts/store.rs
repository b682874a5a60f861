//! An edition of a source: its rows as one immutable sequence of bytes, in a file or in memory, sorted by key.
//!
//! ```text
//! magic "DDXFACTS"  version u16
//! blocks            of 128 rows. A row: bytes shared with the key before it u8, length u8, rest of the key;
//!                   day u16 (0: none); bits of the known columns; their values
//! index             for each block: offset, length of its first key, the key
//! meta              JSON: the source and its columns
//! end               u64 each: rows, offset of the index, offset of the meta; BLAKE3 of all bytes before it
//! ```
//! Numbers without a type are variable-length (LEB128), signed ones in zigzag form. Names are A-labels; the key of
//! a word is the label that it spells.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::value::{Decimal, Value};
use crate::vocab::day::Day;
use crate::vocab::fact::{Direction, EditionId, FactType, KeyKind, Unit};
use crate::vocab::limits::{FACTS_COLUMNS_MAX, FACTS_WORDS_MAX};
use crate::vocab::money::Currency;
use crate::vocab::named::{named_enum, parse_named};

const MAGIC: &[u8; 8] = b"DDXFACTS";
/// Incremented when the layout changes.
const VERSION: u16 = 1;
const HEAD_BYTES: usize = MAGIC.len() + 2;
const END_BYTES: usize = 3 * 8 + blake3::OUT_LEN;
/// Few rows make a look-up fast, many make the index small.
const ROWS_PER_BLOCK: u64 = 128;
/// The number of every text: texts are not compared.
const TEXT: i64 = 0;
/// Values of a column that an error lists.
const WORDS_SHOWN: usize = 20;
/// Bytes that are hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

named_enum! {
    /// Permitted uses of the values of a source (`data/docs/facts.md`, Rights).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Licence {
        /// Shown and exported with the attribution.
        Open = "open",
        /// Shown with the attribution, and not part of exports.
        ShareAlike = "share-alike",
        /// Records of those who added them.
        Own = "own",
        /// Licensed to the person who added them alone.
        Vendor = "vendor",
    }
}
parse_named!(Licence);

/// A column of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredColumn {
    /// Name within the source.
    pub name: String,
    pub kind: FactType,
    pub unit: Option<Unit>,
    pub direction: Option<Direction>,
    /// The highest value of a scale from 0.
    pub scale: Option<u32>,
    /// Decimals that the numbers of a [`FactType::Dec`] are stored with.
    pub decimals: u8,
    /// The currency of amounts.
    pub currency: Option<Currency>,
    /// The values of a [`FactType::Enum`].
    pub words: Vec<String>,
}

/// A source and its columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMeta {
    /// Name, as in [`FactName::source`](crate::vocab::fact::FactName::source).
    pub id: String,
    pub title: String,
    pub key: KeyKind,
    /// Day of the facts of rows that state none.
    pub as_of: Day,
    pub licence: Licence,
    /// The line that the licence asks to be shown.
    pub attribution: Option<String>,
    pub columns: Vec<StoredColumn>,
}

/// An edition that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the file of facts is damaged: {0}")]
    Damaged(&'static str),
    #[error("the file of facts has version {0}, of a newer dropdex")]
    Newer(u16),
    #[error("rows are not in order: every key must follow the previous one")]
    Order,
    #[error("a value is not one of its column, {0}")]
    Value(String),
    #[error("column {0} has more than {FACTS_WORDS_MAX} distinct values; store it as text")]
    Words(String),
}

impl StoredColumn {
    /// Returns a column without unit, scale and values.
    pub fn new(name: impl Into<String>, kind: FactType) -> StoredColumn {
        StoredColumn {
            name: name.into(),
            kind,
            unit: None,
            direction: None,
            scale: None,
            decimals: 0,
            currency: None,
            words: Vec::new(),
        }
    }

    /// Returns the number by which values are compared, and whether the value is a lower bound; `None` for text and
    /// for values of other columns. Adds unknown words.
    pub(crate) fn code(&mut self, value: &Value) -> Option<(i64, bool)> {
        let code = match (self.kind, value) {
            (FactType::Int, Value::Int(number)) => *number,
            (FactType::Int, Value::AtLeast { low }) => return Some((*low, true)),
            (FactType::Dec, Value::Dec(number)) => number.units_with(self.decimals.into())?,
            (FactType::Money, Value::Money { cents, currency }) => {
                (self.currency == Some(*currency)).then(|| i64::try_from(*cents).ok())??
            }
            (FactType::Date, Value::Date(day)) => day.raw().into(),
            (FactType::Year, Value::Year(year)) => (*year).into(),
            (FactType::Bool, Value::Bool(is)) => (*is).into(),
            (FactType::Enum, Value::Enum(word)) => {
                let known = self.words.iter().position(|it| it == word);
                let at = known.unwrap_or_else(|| {
                    self.words.push(word.clone());
                    self.words.len() - 1
                });
                at as i64
            }
            _ => return None,
        };
        Some((code, false))
    }

    /// Returns the numbers of a value that a person wrote: the least and the largest with which a range may begin and
    /// end. They differ if the value lies between two numbers of the column, `1.234` in one of two decimals.
    ///
    /// # Errors
    /// The text is not a value of the column; the message says what is.
    pub fn codes_of(&self, text: &str, today: Day) -> Result<(i64, i64), String> {
        let whole = |text: &str| text.parse::<i64>().ok().filter(|_| !text.starts_with('+'));
        let same = |code: Option<i64>, what: &str| {
            code.map(|code| (code, code)).ok_or_else(|| format!("must be {what}"))
        };
        match self.kind {
            FactType::Int => same(whole(text), "a whole number"),
            FactType::Year => same(whole(text), "a year"),
            FactType::Dec => {
                decimal(text, self.decimals.into()).ok_or_else(|| "must be a number".to_owned())
            }
            FactType::Money => decimal(text, 2).ok_or_else(|| {
                let currency = self.currency.map_or("", Currency::as_str);
                format!("must be an amount in {currency}, written as 12.50")
            }),
            FactType::Date => {
                let day = Day::parse_from(text, today).map_err(|err| err.to_string())?;
                Ok((day.raw().into(), day.raw().into()))
            }
            FactType::Bool => match text {
                "yes" | "true" => Ok((1, 1)),
                "no" | "false" => Ok((0, 0)),
                _ => Err("must be yes or no".to_owned()),
            },
            FactType::Enum => {
                let at = self.words.iter().position(|word| word.eq_ignore_ascii_case(text));
                let some = self.words.iter().take(WORDS_SHOWN).map(String::as_str);
                let some = some.collect::<Vec<_>>().join(", ");
                same(at.map(|at| at as i64), &format!("one of the values of the fact: {some}"))
            }
            FactType::Text => {
                Err("is text, which no condition compares; use has= for names with it".to_owned())
            }
        }
    }

    /// Returns a number as conditions write it.
    pub fn text_of(&self, code: i64) -> String {
        match self.value(code, false) {
            Some(Value::Money { cents, .. }) => format!("{}.{:02}", cents / 100, cents % 100),
            value => value.map(|value| value.to_string()).unwrap_or_default(),
        }
    }

    /// Returns the value with a code; `None` if no value has it.
    pub(crate) fn value(&self, code: i64, at_least: bool) -> Option<Value> {
        Some(match self.kind {
            FactType::Int if at_least => Value::AtLeast { low: code },
            FactType::Int => Value::Int(code),
            FactType::Dec => Value::Dec(Decimal::of_units(code, self.decimals.into())),
            FactType::Money => {
                Value::Money { cents: u64::try_from(code).ok()?, currency: self.currency? }
            }
            FactType::Date => Value::Date(Day::from_raw(u16::try_from(code).ok()?)?),
            FactType::Year => Value::Year(u16::try_from(code).ok()?),
            FactType::Bool => Value::Bool(code != 0),
            FactType::Enum => Value::Enum(self.words.get(usize::try_from(code).ok()?)?.clone()),
            FactType::Text => return None,
        })
    }
}

/// Reads a number with a point into units of the last of `decimals`: rounded up, and rounded down.
fn decimal(text: &str, decimals: usize) -> Option<(i64, i64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let (sign, digits) = whole.strip_prefix('-').map_or((1, whole), |digits| (-1, digits));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !is_plain(digits) || !is_plain(part) {
        return None;
    }
    let (kept, rest) = part.split_at(part.len().min(decimals));
    let units = format!("{digits}{kept:0<decimals$}").parse::<i64>().ok()?;
    let is_between = rest.bytes().any(|byte| byte != b'0');
    let (near, far) = (sign * units, sign * (units + i64::from(is_between)));
    Some((near.max(far), near.min(far)))
}

/// Writes an edition, row by row.
pub struct SourceWriter<W: Write> {
    out: Counting<BufWriter<W>>,
    meta: SourceMeta,
    rows: u64,
    key: Vec<u8>,
    /// Offset and first key of each block.
    blocks: Vec<(u64, Vec<u8>)>,
    buffer: Vec<u8>,
}

/// Hashes and counts what it writes.
struct Counting<W> {
    inner: W,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<W: Write> Counting<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.inner.write_all(bytes)
    }
}

impl<W: Write> SourceWriter<W> {
    /// Begins an edition.
    ///
    /// # Errors
    /// A write fails.
    pub fn new(out: W, meta: SourceMeta) -> Result<SourceWriter<W>, StoreError> {
        assert!(meta.columns.len() <= FACTS_COLUMNS_MAX, "the caller limits columns");
        let inner = BufWriter::new(out);
        let mut out = Counting { inner, hasher: blake3::Hasher::new(), bytes: 0 };
        out.put(MAGIC)?;
        out.put(&VERSION.to_le_bytes())?;
        let (key, blocks, buffer) = (Vec::new(), Vec::new(), Vec::new());
        Ok(SourceWriter { out, meta, rows: 0, key, blocks, buffer })
    }

    /// Adds a row. Keys must come in byte order, each once.
    ///
    /// # Errors
    /// The key is out of order, a value is not one of its column, or a write fails.
    pub fn push(
        &mut self,
        key: &str,
        as_of: Option<Day>,
        values: &[Option<Value>],
    ) -> Result<(), StoreError> {
        let key = key.as_bytes();
        if self.rows > 0 && *key <= *self.key || key.is_empty() || key.len() > u8::MAX.into() {
            return Err(StoreError::Order);
        }
        if self.rows.is_multiple_of(ROWS_PER_BLOCK) {
            self.blocks.push((self.out.bytes, key.to_vec()));
            self.key.clear();
        }
        let shared = self.key.iter().zip(key).take_while(|(one, other)| one == other).count();
        self.buffer.clear();
        self.buffer.extend([shared as u8, (key.len() - shared) as u8]);
        self.buffer.extend(&key[shared..]);
        self.buffer.extend(Day::raw_or_zero(as_of).to_le_bytes());
        let known = values
            .iter()
            .enumerate()
            .fold(0, |known, (at, value)| known | u64::from(value.is_some()) << at);
        put_number(&mut self.buffer, known);
        for (column, value) in self.meta.columns.iter_mut().zip(values) {
            let Some(value) = value else { continue };
            put_value(&mut self.buffer, column, value)?;
        }
        self.out.put(&self.buffer)?;
        self.key.clear();
        self.key.extend(key);
        self.rows += 1;
        Ok(())
    }

    /// Ends the edition and returns the writer, flushed.
    ///
    /// # Errors
    /// A write fails.
    pub fn finish(mut self) -> Result<W, StoreError> {
        let index = self.out.bytes;
        for (offset, key) in &self.blocks {
            self.buffer.clear();
            put_number(&mut self.buffer, *offset);
            self.buffer.push(key.len() as u8);
            self.buffer.extend(key);
            self.out.put(&self.buffer)?;
        }
        let meta = self.out.bytes;
        self.out.put(&serde_json::to_vec(&self.meta).map_err(io::Error::from)?)?;
        for number in [self.rows, index, meta] {
            self.out.put(&number.to_le_bytes())?;
        }
        let hash = self.out.hasher.finalize();
        self.out.put(hash.as_bytes())?;
        self.out.inner.into_inner().map_err(|err| StoreError::Io(err.into_error()))
    }
}

fn put_value(
    buffer: &mut Vec<u8>,
    column: &mut StoredColumn,
    value: &Value,
) -> Result<(), StoreError> {
    if let (FactType::Text, Value::Text(text)) = (column.kind, value) {
        put_number(buffer, text.len() as u64);
        buffer.extend(text.as_bytes());
        return Ok(());
    }
    let Some((code, at_least)) = column.code(value) else {
        return Err(StoreError::Value(column.name.clone()));
    };
    if column.words.len() > FACTS_WORDS_MAX {
        return Err(StoreError::Words(column.name.clone()));
    }
    let code = if column.kind == FactType::Int { code << 1 | i64::from(at_least) } else { code };
    put_number(buffer, (code << 1 ^ code >> 63).cast_unsigned());
    Ok(())
}

fn put_number(buffer: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        buffer.push(number as u8 | 0x80);
        number >>= 7;
    }
    buffer.push(number as u8);
}

/// The bytes of an edition.
#[derive(Debug)]
enum Bytes {
    Memory(Arc<[u8]>),
    File(File),
}

impl Bytes {
    fn read(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Bytes::Memory(bytes) => {
                let range = range.start as usize..range.end as usize;
                bytes.get(range).map(Cow::Borrowed).ok_or(io::ErrorKind::UnexpectedEof.into())
            }
            Bytes::File(file) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                file.read_exact_at(&mut bytes, range.start)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

/// An edition of a source, opened and verified.
#[derive(Debug)]
pub struct Edition {
    id: EditionId,
    meta: SourceMeta,
    rows: u64,
    bytes: Bytes,
    /// Offset of each block, and the end of the last one.
    offsets: Vec<u64>,
    /// First keys of all blocks, one after the other, and where each starts.
    keys: Vec<u8>,
    key_starts: Vec<u32>,
}

/// A row of an edition. The numbers of its values are by column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRow {
    /// A name or label.
    pub key: Vec<u8>,
    pub as_of: Option<Day>,
    /// The numbers by which values are compared, [`TEXT`] for each text; `None` for unknown values.
    pub codes: Vec<Option<i64>>,
    /// Columns whose value is a lower bound, as bits.
    at_least: u64,
    texts: Vec<(usize, String)>,
}

impl Edition {
    /// Opens an edition in memory.
    ///
    /// # Errors
    /// It is damaged, or of a newer version.
    pub fn of_bytes(bytes: Arc<[u8]>) -> Result<Edition, StoreError> {
        let len = bytes.len() as u64;
        Edition::new(Bytes::Memory(bytes), len)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// It is not readable, damaged, or of a newer version.
    pub fn open(path: &Path) -> Result<Edition, StoreError> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Edition::new(Bytes::File(file), len)
    }

    fn new(bytes: Bytes, len: u64) -> Result<Edition, StoreError> {
        let damaged = StoreError::Damaged;
        let end = len.checked_sub(END_BYTES as u64).ok_or(damaged("it is too short"))?;
        let head = bytes.read(0..HEAD_BYTES as u64)?;
        let version = head.strip_prefix(MAGIC).ok_or(damaged("it does not begin as one"))?;
        match u16::from_le_bytes([version[0], version[1]]) {
            VERSION => {}
            version => return Err(StoreError::Newer(version)),
        }
        let numbers = bytes.read(end..len)?;
        let number = |at: usize| {
            numbers[8 * at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let (rows, index, meta) = (number(0), number(1), number(2));
        if !(HEAD_BYTES as u64 <= index && index <= meta && meta <= end) {
            return Err(damaged("its parts overlap"));
        }
        let mut hasher = blake3::Hasher::new();
        let hashed = len - blake3::OUT_LEN as u64;
        for start in (0..hashed).step_by(HASHED_BYTES) {
            hasher.update(&bytes.read(start..hashed.min(start + HASHED_BYTES as u64))?);
        }
        let hash = hasher.finalize();
        if hash.as_bytes() != &numbers[3 * 8..] {
            return Err(damaged("its checksum differs"));
        }
        let id = hash.as_bytes().first_chunk().map_or(0, |start| u64::from_le_bytes(*start));
        let read_meta = serde_json::from_slice(&bytes.read(meta..end)?);
        let read_meta: SourceMeta = read_meta.map_err(|_| damaged("its description"))?;
        let (mut offsets, mut keys, mut key_starts) = (Vec::new(), Vec::new(), Vec::new());
        let entries = bytes.read(index..meta)?;
        let mut left = &entries[..];
        while !left.is_empty() {
            let cut = || damaged("its index");
            offsets.push(take_number(&mut left).ok_or_else(cut)?);
            let (&len, rest) = left.split_first().ok_or_else(cut)?;
            let (key, rest) = rest.split_at_checked(len.into()).ok_or_else(cut)?;
            key_starts.push(keys.len() as u32);
            keys.extend(key);
            left = rest;
        }
        if offsets.len() as u64 != rows.div_ceil(ROWS_PER_BLOCK) || !offsets.is_sorted() {
            return Err(damaged("its index has other blocks"));
        }
        offsets.push(index);
        drop(entries);
        drop(numbers);
        drop(head);
        let id = EditionId(id);
        Ok(Edition { id, meta: read_meta, rows, bytes, offsets, keys, key_starts })
    }

    /// Returns the number that identifies the bytes of the edition.
    pub fn id(&self) -> EditionId {
        self.id
    }

    pub fn meta(&self) -> &SourceMeta {
        &self.meta
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the row of a key.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn row(&self, key: &[u8]) -> Result<Option<StoredRow>, StoreError> {
        let mut rows = self.rows_from(key)?;
        Ok(rows.next_row()?.filter(|row| row.key == key).cloned())
    }

    /// Returns a cursor at the first row whose key is `key` or later.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn rows_from(&self, key: &[u8]) -> Result<Rows<'_>, StoreError> {
        let mut rows = Rows {
            edition: self,
            block: self.block_of(key),
            bytes: Cow::Borrowed(&[]),
            at: 0,
            row: StoredRow::default(),
            is_current: false,
            sought: Vec::new(),
        };
        rows.seek(key)?;
        Ok(rows)
    }

    /// Returns the last block whose first key is not after `key`.
    fn block_of(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.key_starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.first_key(middle) <= key { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    fn first_key(&self, block: usize) -> &[u8] {
        let start = self.key_starts[block] as usize;
        let end = self.key_starts.get(block + 1).map_or(self.keys.len(), |&end| end as usize);
        &self.keys[start..end]
    }

    /// Returns the values of a row, by column.
    pub fn values(&self, row: &StoredRow) -> Vec<Option<Value>> {
        let of = |(at, column): (usize, &StoredColumn)| match column.kind {
            FactType::Text => {
                let text = row.texts.iter().find(|(of, _)| *of == at);
                text.map(|(_, text)| Value::Text(text.clone()))
            }
            _ => column.value(row.codes[at]?, row.at_least >> at & 1 == 1),
        };
        self.meta.columns.iter().enumerate().map(of).collect()
    }

    /// Returns the day of the values of a row.
    pub fn as_of(&self, row: &StoredRow) -> Day {
        row.as_of.unwrap_or(self.meta.as_of)
    }
}

/// The rows of an edition in order of their keys, from one on.
pub struct Rows<'a> {
    edition: &'a Edition,
    /// The next block to be read.
    block: usize,
    /// The block that is being read, and where its next row begins.
    bytes: Cow<'a, [u8]>,
    at: usize,
    row: StoredRow,
    /// Whether `row` is still to be returned.
    is_current: bool,
    /// If it is, no key between this one and that of `row` exists.
    sought: Vec<u8>,
}

impl Rows<'_> {
    /// Returns the next row.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_row(&mut self) -> Result<Option<&StoredRow>, StoreError> {
        let has_row = std::mem::take(&mut self.is_current) || self.advance()?;
        Ok(has_row.then_some(&self.row))
    }

    /// Returns the next row if its key is `key`, and leaves it to [`Rows::next_row`].
    pub fn current(&self, key: &[u8]) -> Option<&StoredRow> {
        Some(&self.row).filter(|row| self.is_current && row.key == key)
    }

    /// Moves to the first row whose key is not before `key`. Ascending keys are cheap; labels in the order of their
    /// names are not quite ascending, since a hyphen sorts before a dot.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn seek(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let is_behind = *self.row.key >= *key;
        if self.is_current && is_behind && *self.sought <= *key {
            return Ok(());
        }
        self.sought.clear();
        self.sought.extend(key);
        if is_behind {
            self.block = self.edition.block_of(key);
            self.at = self.bytes.len();
        }
        // Most keys are in the block that is being read, or in the next one.
        let is_beyond = |block: usize| {
            block < self.edition.key_starts.len() && self.edition.first_key(block) <= key
        };
        if is_beyond(self.block) {
            self.block =
                if is_beyond(self.block + 1) { self.edition.block_of(key) } else { self.block };
            self.at = self.bytes.len();
        }
        self.is_current = false;
        while self.advance()? {
            if *self.row.key >= *key {
                self.is_current = true;
                break;
            }
        }
        Ok(())
    }

    /// Reads the next row; false after the last one.
    fn advance(&mut self) -> Result<bool, StoreError> {
        if self.at >= self.bytes.len() {
            let Some(range) = self.edition.offsets.get(self.block..self.block + 2) else {
                return Ok(false);
            };
            self.bytes = self.edition.bytes.read(range[0]..range[1])?;
            (self.at, self.block) = (0, self.block + 1);
            self.row.key.clear();
        }
        let mut left = &self.bytes[self.at..];
        let columns = &self.edition.meta.columns;
        take_row(&mut left, columns, &mut self.row).ok_or(StoreError::Damaged("a row"))?;
        self.at = self.bytes.len() - left.len();
        Ok(true)
    }
}

fn take_row(left: &mut &[u8], columns: &[StoredColumn], row: &mut StoredRow) -> Option<()> {
    let (&[shared, len], rest) = left.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(len.into())?;
    row.key.truncate(shared.into());
    row.key.extend(key);
    let (day, rest) = rest.split_first_chunk()?;
    row.as_of = Day::from_raw(u16::from_le_bytes(*day));
    *left = rest;
    let known = take_number(left)?;
    row.codes.clear();
    row.codes.resize(columns.len(), None);
    row.texts.clear();
    row.at_least = 0;
    for (at, column) in columns.iter().enumerate().filter(|(at, _)| known >> at & 1 == 1) {
        let number = take_number(left)?;
        if column.kind == FactType::Text {
            let (text, rest) = left.split_at_checked(usize::try_from(number).ok()?)?;
            row.texts.push((at, std::str::from_utf8(text).ok()?.to_owned()));
            row.codes[at] = Some(TEXT);
            *left = rest;
            continue;
        }
        let code = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
        row.codes[at] = Some(match column.kind {
            FactType::Int => {
                row.at_least |= (code & 1).cast_unsigned() << at;
                code >> 1
            }
            _ => code,
        });
    }
    Some(())
}

fn take_number(left: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = left.split_first()?;
        *left = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn meta() -> SourceMeta {
        let column = StoredColumn::new;
        SourceMeta {
            id: "acme".to_owned(),
            title: "Acme".to_owned(),
            key: KeyKind::Domain,
            as_of: Day::from_raw(15_000).expect("a day"),
            licence: Licence::Own,
            attribution: None,
            columns: vec![
                column("int", FactType::Int),
                StoredColumn { decimals: 2, ..column("dec", FactType::Dec) },
                StoredColumn { currency: Some(Currency::USD), ..column("price", FactType::Money) },
                column("seen", FactType::Date),
                column("born", FactType::Year),
                column("is", FactType::Bool),
                column("kind", FactType::Enum),
                column("note", FactType::Text),
            ],
        }
    }

    type Row = (Option<Day>, Vec<Option<Value>>);

    fn random_row(random: &mut fastrand::Rng) -> Row {
        let values = vec![
            Value::Int(random.i64(-1_000_000_000_000_000..1_000_000_000_000_000)),
            Value::Dec(Decimal::of_units(random.i64(-99_999..99_999), 2)),
            Value::Money { cents: random.u64(0..100_000), currency: Currency::USD },
            Value::Date(Day::from_raw(random.u16(1..)).expect("not 0")),
            Value::Year(random.u16(1985..2100)),
            Value::Bool(random.bool()),
            Value::Enum(format!("word {}", random.u8(0..20))),
            Value::Text("é".repeat(random.usize(0..9))),
        ];
        let mut values: Vec<_> =
            values.into_iter().map(|value| Some(value).filter(|_| random.u8(0..3) > 0)).collect();
        if random.bool() {
            values[0] = Some(Value::AtLeast { low: random.i64(-9..9) });
        }
        (Day::from_raw(random.u16(..3)), values)
    }

    fn written(rows: &BTreeMap<String, Row>) -> Arc<[u8]> {
        let mut writer = SourceWriter::new(Vec::new(), meta()).expect("in memory");
        for (key, (as_of, values)) in rows {
            writer.push(key, *as_of, values).expect(key);
        }
        writer.finish().expect("in memory").into()
    }

    #[test]
    fn rows_are_read_as_written_in_every_way() {
        let mut random = fastrand::Rng::with_seed(46);
        for count in [0, 1, 2, 127, 128, 129, 1_000] {
            let name = |random: &mut fastrand::Rng| format!("{:x}.com", random.u32(..5_000));
            let rows: BTreeMap<String, Row> =
                (0..count).map(|_| (name(&mut random), random_row(&mut random))).collect();
            let bytes = written(&rows);
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), &bytes).expect("written");
            let in_memory = Edition::of_bytes(bytes).expect("sound");
            for edition in [in_memory, Edition::open(file.path()).expect("sound")] {
                assert_eq!(edition.rows(), rows.len() as u64);
                let found = |row: &StoredRow| {
                    let key = String::from_utf8(row.key.clone()).expect("text");
                    (key, (row.as_of, edition.values(row)))
                };
                let mut cursor = edition.rows_from(b"").expect("read");
                let mut all = BTreeMap::new();
                while let Some(row) = cursor.next_row().expect("read") {
                    all.extend([found(row)]);
                }
                assert_eq!(all, rows);
                let mut cursor = edition.rows_from(b"").expect("read");
                for _ in 0..500 {
                    let key = name(&mut random);
                    let row = edition.row(key.as_bytes()).expect("read");
                    assert_eq!(row.as_ref().map(|row| found(row).1), rows.get(&key).cloned());
                    cursor.seek(key.as_bytes()).expect("read");
                    let current = cursor.current(key.as_bytes()).map(|row| found(row).1);
                    assert_eq!(current, rows.get(&key).cloned());
                    if random.bool() {
                        let next = cursor.next_row().expect("read").map(found);
                        let expected = rows.range(key..).next();
                        assert_eq!(next.as_ref().map(|(key, _)| key), expected.map(|(key, _)| key));
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_are_read_by_the_type_of_the_column() {
        let today = "2026-11-29".parse().expect("a day");
        let columns = meta().columns;
        let read = |at: usize, text: &str| columns[at].codes_of(text, today);
        assert_eq!(read(0, "-5"), Ok((-5, -5)));
        assert_eq!(read(1, "1.234"), Ok((124, 123)));
        assert_eq!(read(1, "-1.234"), Ok((-123, -124)));
        assert_eq!(read(1, "1.50"), Ok((150, 150)));
        assert_eq!(read(2, "12.5"), Ok((1_250, 1_250)));
        assert_eq!(read(3, "today"), Ok((today.raw().into(), today.raw().into())));
        assert_eq!(read(4, "2001"), Ok((2_001, 2_001)));
        assert_eq!((read(5, "yes"), read(5, "no")), (Ok((1, 1)), Ok((0, 0))));
        for (at, bad) in [
            (0, "1.5"),
            (0, "+1"),
            (0, ""),
            (1, "1,5"),
            (1, "."),
            (2, "12 EUR"),
            (3, "1.2.2026"),
            (4, "x"),
            (5, "1"),
            (6, "red"),
            (7, "text"),
        ] {
            assert!(read(at, bad).is_err(), "{at} {bad}");
        }
    }

    #[test]
    fn order_of_codes_is_that_of_values() {
        let mut column = meta().columns.remove(1);
        let mut code = |units, decimals| {
            column.code(&Value::Dec(Decimal::of_units(units, decimals))).map(|(code, _)| code)
        };
        assert_eq!(code(25, 1), Some(250));
        assert_eq!(code(-1, 0), Some(-100));
        assert_eq!(code(1, 3), None, "more decimals than the column");
    }

    #[test]
    fn rows_out_of_order_and_values_of_other_columns_are_refused() {
        let mut writer = SourceWriter::new(Vec::new(), meta()).expect("in memory");
        writer.push("b.com", None, &[]).expect("the first");
        for key in ["b.com", "a.com", ""] {
            assert!(matches!(writer.push(key, None, &[]), Err(StoreError::Order)), "{key}");
        }
        let wrong = writer.push("c.com", None, &[Some(Value::Bool(true))]);
        assert!(matches!(wrong, Err(StoreError::Value(column)) if column == "int"));
    }

    #[test]
    fn every_damage_is_noticed() {
        let mut random = fastrand::Rng::with_seed(47);
        let rows = (0..200).map(|at| (format!("{at:03}.com"), random_row(&mut random))).collect();
        let bytes = written(&rows);
        for _ in 0..500 {
            let mut damaged = bytes.to_vec();
            let at = random.usize(..damaged.len());
            damaged[at] ^= 1 << random.u8(..8);
            if random.bool() {
                damaged.truncate(at);
            }
            assert!(Edition::of_bytes(damaged.into()).is_err(), "byte {at}");
        }
    }
}
