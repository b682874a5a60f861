//! Rows as numbered fields, so that fields can be added: the stored form of events, of their
//! values, and of snapshots.
//!
//! A field is its number (1 byte), the length of its value (1 byte; from 255 on, 255 and 4 bytes,
//! little-endian) and the value in [`codec`]. A field without a default is always written. A field
//! with a default is omitted while it has that value, and it gets that value when a row of a
//! version without the field is read.
//!
//! A number is never reused, and the type of its values never changes: a new type gets a new
//! number. A reader refuses unknown fields, since it would lose data of a newer version; the error
//! says that a newer dropdex wrote them. Numbers from 128 on are for data that an older version may
//! lose, and are skipped.

use std::fmt;
use std::marker::PhantomData;

use bincode::Options;
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A length of at least this value is stored in four further bytes.
const LONG: usize = 255;
/// Suffix of error messages about data that a newer version wrote.
pub const NEWER: &str = "a newer dropdex wrote it";

/// Returns the codec of values: bincode with integers and lengths of variable size. Variants of
/// enums are stored by position, so only append variants.
pub fn codec() -> impl Options {
    bincode::DefaultOptions::new()
}

/// A writer of a row, in its stored form or as JSON for people.
#[derive(Default)]
pub struct RowWriter {
    bytes: Vec<u8>,
    json: Option<Map<String, Value>>,
}

impl RowWriter {
    /// Appends a row in its stored form to these bytes.
    pub fn after(bytes: Vec<u8>) -> RowWriter {
        RowWriter { bytes, json: None }
    }

    /// Writes a row as JSON.
    pub fn json() -> RowWriter {
        RowWriter { bytes: Vec::new(), json: Some(Map::new()) }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn into_json(self) -> Value {
        Value::Object(self.json.unwrap_or_default())
    }

    /// Writes a field.
    pub fn put(&mut self, number: u8, name: &str, value: &impl Serialize) {
        if let Some(json) = &mut self.json {
            // Every value has a JSON form. If a future value has none, a dump replaces it with a
            // note.
            let value = serde_json::to_value(value).unwrap_or_else(|_| "(no JSON form)".into());
            json.insert(name.to_owned(), value);
            return;
        }
        self.bytes.push(number);
        put_with_length(&mut self.bytes, |bytes| {
            codec().serialize_into(bytes, value).expect("values have a stored form");
        });
    }

    /// Writes a field unless it equals its default.
    pub fn put_optional<T: Serialize + Default + PartialEq>(
        &mut self,
        number: u8,
        name: &str,
        value: &T,
    ) {
        if *value != T::default() {
            self.put(number, name, value);
        }
    }
}

/// Appends the bytes that `write` writes, preceded by their length.
pub fn put_with_length(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = bytes.len();
    bytes.push(0);
    write(bytes);
    let len = bytes.len() - at - 1;
    match u8::try_from(len) {
        Ok(short) if len < LONG => bytes[at] = short,
        _ => {
            bytes[at] = LONG as u8;
            let long = u32::try_from(len).expect("rows are far below 4 GiB").to_le_bytes();
            bytes.splice(at + 1..at + 1, long);
        }
    }
}

/// Takes a number, then bytes in the format of [`put_with_length`]; `None` if they are cut short.
pub fn take_numbered<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let number = *rest.split_off_first()?;
    let len = match usize::from(*rest.split_off_first()?) {
        LONG => u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?) as usize,
        short => short,
    };
    Some((number, rest.split_off(..len)?))
}

/// A reader of a stored row.
pub struct RowReader<'a> {
    /// Name of the row, for messages.
    name: &'static str,
    bytes: &'a [u8],
    /// The fields after the last one that was read; the next field to read is usually the first of
    /// them.
    rest: &'a [u8],
    /// Fields that the row has, one bit each.
    present: Numbers,
    /// Fields that were read, one bit each.
    read: Numbers,
}

/// A result with an error message for people.
type ReadResult<T> = Result<T, String>;

impl<'a> RowReader<'a> {
    /// # Errors
    /// The bytes are not fields.
    pub fn new(name: &'static str, bytes: &'a [u8]) -> ReadResult<RowReader<'a>> {
        let (mut rest, mut present) = (bytes, Numbers::default());
        while !rest.is_empty() {
            let (number, _) =
                take_numbered(&mut rest).ok_or_else(|| format!("{name} is cut short"))?;
            if !present.add(number) {
                return Err(format!("{name} has field {number} twice"));
            }
        }
        Ok(RowReader { name, bytes, rest: bytes, present, read: Numbers::default() })
    }

    fn find(&mut self, wanted: u8) -> Option<&'a [u8]> {
        if !self.present.has(wanted) {
            return None;
        }
        let mut rest = self.rest;
        if let Some((number, value)) = take_numbered(&mut rest)
            && number == wanted
        {
            self.rest = rest;
            return Some(value);
        }
        let mut rest = self.bytes;
        while let Some((number, value)) = take_numbered(&mut rest) {
            if number == wanted {
                self.rest = rest;
                return Some(value);
            }
        }
        None
    }

    fn field<T: DeserializeOwned>(&mut self, number: u8, name: &str) -> ReadResult<Option<T>> {
        self.read.add(number);
        let Some(value) = self.find(number) else { return Ok(None) };
        let read = codec().deserialize(value).map_err(|err| match *err {
            bincode::ErrorKind::Custom(inner) => inner,
            other => other.to_string(),
        });
        read.map(Some).map_err(|err| format!("{}, field {number} ({name}): {err}", self.name))
    }

    /// Reads a field without a default.
    ///
    /// # Errors
    /// The field is missing, or its value has the wrong type.
    pub fn required<T: DeserializeOwned>(&mut self, number: u8, name: &str) -> ReadResult<T> {
        let read = self.field(number, name)?;
        read.ok_or_else(|| format!("{}: field {number} ({name}) is missing", self.name))
    }

    /// Reads a field that may be missing.
    ///
    /// # Errors
    /// Its value has the wrong type.
    pub fn optional<T: DeserializeOwned + Default>(
        &mut self,
        number: u8,
        name: &str,
    ) -> ReadResult<T> {
        Ok(self.field(number, name)?.unwrap_or_default())
    }

    /// Checks that all fields were read.
    ///
    /// # Errors
    /// A field was not read and must not be skipped.
    pub fn finish(self) -> ReadResult<()> {
        // The second word has the bits of the numbers from 128 on.
        let unknown = self.present.0[0] & !self.read.0[0];
        if unknown == 0 {
            return Ok(());
        }
        let number = unknown.trailing_zeros();
        Err(format!("{}: field {number} is unknown; {NEWER}", self.name))
    }
}

/// A set of numbers of fields.
#[derive(Clone, Copy, Default)]
struct Numbers([u128; 2]);

impl Numbers {
    fn has(self, number: u8) -> bool {
        self.0[usize::from(number >> 7)] >> (number & 127) & 1 == 1
    }

    /// Adds a number. Returns true if it is new.
    fn add(&mut self, number: u8) -> bool {
        let is_new = !self.has(number);
        self.0[usize::from(number >> 7)] |= 1 << (number & 127);
        is_new
    }
}

/// Serialises a row: as bytes, or in human-readable formats with the names of its fields.
pub fn serialize<S: Serializer>(
    serializer: S,
    write: impl FnOnce(&mut RowWriter),
) -> Result<S::Ok, S::Error> {
    let mut row = match serializer.is_human_readable() {
        true => RowWriter::json(),
        false => RowWriter::default(),
    };
    write(&mut row);
    match row.json {
        Some(json) => json.serialize(serializer),
        None => serializer.serialize_bytes(&row.bytes),
    }
}

/// Reads the bytes of a row.
pub fn deserialize<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    name: &'static str,
    read: fn(&mut RowReader<'_>) -> ReadResult<T>,
) -> Result<T, D::Error> {
    struct RowVisitor<T> {
        name: &'static str,
        read: fn(&mut RowReader<'_>) -> ReadResult<T>,
        row: PhantomData<T>,
    }

    impl<T> Visitor<'_> for RowVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the bytes of {}", self.name)
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
            read_row(self.name, bytes, self.read).map_err(E::custom)
        }
    }

    deserializer.deserialize_bytes(RowVisitor { name, read, row: PhantomData })
}

/// Reads a row completely.
///
/// # Errors
/// As [`RowReader`].
pub fn read_row<T>(
    name: &'static str,
    bytes: &[u8],
    read: impl FnOnce(&mut RowReader<'_>) -> ReadResult<T>,
) -> ReadResult<T> {
    let mut row = RowReader::new(name, bytes)?;
    let value = read(&mut row)?;
    row.finish()?;
    Ok(value)
}

/// Stores a struct as numbered fields: those without a default, those with one, and those that are not stored.
///
/// ```ignore
/// row!(Claim { 1 id, 2 domain } optional { 4 registrar } skipped { usage });
/// ```
macro_rules! row {
    (
        $row:ident $(of $inner:ident)? { $($number:literal $field:ident),* $(,)? }
        $(optional { $($optional_number:literal $optional:ident),* $(,)? })?
        $(skipped { $($skipped:ident),* $(,)? })?
    ) => {
        impl serde::Serialize for $row {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::data::fields::serialize(serializer, |row| {
                    $(row.put($number, stringify!($field), &self.$field);)*
                    $($(row.put_optional($optional_number, stringify!($optional), &self.$optional);)*)?
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $row {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$row, D::Error> {
                $crate::data::fields::deserialize(deserializer, stringify!($row), |row| {
                    type Fields = row!(@fields $row $($inner)?);
                    Ok(Fields {
                        $($field: row.required($number, stringify!($field))?,)*
                        $($($optional: row.optional($optional_number, stringify!($optional))?,)*)?
                        $($($skipped: Default::default(),)*)?
                    }
                    .into())
                })
            }
        }
    };
    (@fields $row:ident) => { $row };
    (@fields $row:ident $inner:ident) => { $inner };
}

pub(crate) use row;

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Old {
        id: u64,
        notes: Option<String>,
    }

    row!(Old { 1 id } optional { 2 notes });

    #[derive(Clone, Debug, PartialEq)]
    struct New {
        id: u64,
        notes: Option<String>,
        tags: Vec<String>,
        inner: Option<Box<Old>>,
        seen: u32,
    }

    row!(New { 1 id } optional { 2 notes, 3 tags, 4 inner } skipped { seen });

    /// As [`Old`], with additional fields of a newer version.
    #[derive(Clone, Debug, PartialEq)]
    struct Ignorable {
        id: u64,
        hint: u8,
    }

    row!(Ignorable { 1 id } optional { 130 hint });

    fn bytes(row: &impl Serialize) -> Vec<u8> {
        codec().serialize(row).expect("a row has bytes")
    }

    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
        codec().deserialize(bytes).map_err(|err| err.to_string())
    }

    fn new() -> New {
        let old = Old { id: 300, notes: Some("ü".into()) };
        let (notes, tags) = (Some("x".repeat(300)), vec!["a".into(), String::new()]);
        New { id: 7, notes, tags, inner: Some(Box::new(old)), seen: 0 }
    }

    #[test]
    fn rows_round_trip() {
        let bare = New { id: u64::MAX, notes: None, tags: Vec::new(), inner: None, seen: 0 };
        for row in [new(), bare] {
            assert_eq!(read(&bytes(&row)), Ok(row));
        }
        assert_eq!(
            bytes(&Old { id: 9, notes: Some("no".into()) }),
            b"\x09\x01\x01\x09\x02\x04\x01\x02no"
        );
        let shown = serde_json::to_value(Old { id: 9, notes: None }).expect("JSON");
        assert_eq!(shown, serde_json::json!({ "id": 9 }));
    }

    #[test]
    fn a_missing_field_has_its_default_and_a_required_one_is_named() {
        let row = Old { id: 9, notes: Some("no".into()) };
        let widened =
            New { id: 9, notes: Some("no".into()), tags: Vec::new(), inner: None, seen: 0 };
        assert_eq!(read(&bytes(&row)), Ok(widened), "a row of an older version");
        assert_eq!(read::<Old>(b"\x00"), Err("Old: field 1 (id) is missing".into()));
        let refused = read::<New>(b"\x07\x01\x01\x09\x04\x02\x01\x00").expect_err("refused");
        assert_eq!(refused, "New, field 4 (inner): Old: field 1 (id) is missing");
    }

    #[test]
    fn an_unknown_field_is_refused_unless_it_may_be_lost() {
        let refused = read::<Old>(&bytes(&new())).expect_err("refused");
        assert_eq!(refused, "Old: field 3 is unknown; a newer dropdex wrote it");
        let row = Ignorable { id: 4, hint: 1 };
        assert_eq!(read(&bytes(&row)), Ok(Old { id: 4, notes: None }));
    }

    #[test]
    fn malformed_rows_are_errors() {
        assert_eq!(
            read::<Old>(b"\x06\x01\x01\x09\x01\x01\x09").err(),
            Some("Old has field 1 twice".into())
        );
        let whole = bytes(&new());
        for len in 0..whole.len() {
            assert!(read::<New>(&whole[..len]).is_err(), "cut at {len}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xfb, 0xff] {
                let mut hostile = whole.clone();
                hostile[at] = value;
                // Any bytes result in a row or an error, never in a panic.
                let _ = read::<New>(&hostile);
            }
        }
    }

    /// The bytes of a value inside a row are those of bincode.
    #[test]
    fn values_have_the_bytes_of_bincode() {
        #[derive(Serialize, Deserialize)]
        struct Plain(u8, u16);
        assert_eq!(bytes(&Plain(1, 0x0102)), b"\x01\xfb\x02\x01");
    }
}
