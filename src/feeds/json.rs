//! JSON lists of any size. The elements of the top-level list are cut out and parsed one by one, so
//! that memory holds a single element.
//!
//! A scanner finds the end of each element by its brackets, because a streaming parser cannot resume
//! after a syntax error. Thus a malformed element is rejected, and reading continues with the next
//! one. Unbalanced brackets fail the whole list.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader};

use memchr::{memchr_iter, memchr2};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::columns::{Fields, Resolved, role};
use super::container::Input;
use super::dates::{self, SlashOrder};
use super::error::FeedProblem;
use super::lines::{Parsed, ROW_BYTES_MAX, RowParser, value};
use super::rejects::{Reject, RejectReason};
use super::{Given, Observation, Row};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::vocab::release_time::Release;

/// Keys of the list in a top-level object.
const LIST_KEYS: [&str; 2] = ["data", "domains"];
const BUFFER_BYTES: usize = 256 << 10;

/// The rows of a JSON list.
pub(super) struct JsonRows {
    elements: Elements,
    given: Given,
    element: Vec<u8>,
}

impl JsonRows {
    pub(super) fn new(input: Input, given: Given) -> JsonRows {
        let elements = Elements::new(input);
        JsonRows { elements, given, element: Vec::new() }
    }

    fn next_row(&mut self) -> Result<Option<Row>, FeedProblem> {
        let Some((line, whole)) = self.elements.next(&mut self.element)? else { return Ok(None) };
        let seen =
            if whole { observation(&self.element, self.given) } else { Err(RejectReason::TooLong) };
        Ok(Some(match seen {
            Ok(seen) => Row::Seen(seen),
            Err(reason) => Row::Rejected(Reject::new(line, reason, &self.element)),
        }))
    }
}

/// Parser of lists with one object per line (NDJSON), such as exports of dropdex.
pub(super) struct Lines(pub(super) Given);

impl RowParser for Lines {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        (!row.trim().is_empty()).then(|| observation(row.as_bytes(), self.0))
    }
}

/// Returns true for a line that is an object with a domain name.
pub(super) fn is_line(line: &str) -> bool {
    let Ok(Element(fields)) = serde_json::from_str(line) else { return false };
    let is_name = |cell: Cell<'_>| match cell {
        Cell::Text(name) => DomainName::parse(&name).is_ok(),
        Cell::Null | Cell::Other => false,
    };
    line.starts_with('{') && fields.resolve().name.is_some_and(is_name)
}

fn observation(element: &[u8], given: Given) -> Result<Observation, RejectReason> {
    let Element(element) = serde_json::from_slice(element)
        .map_err(|error| RejectReason::BadJson(error.to_string()))?;
    let Resolved { name: Some(Cell::Text(name)), release, drop, .. } = element.resolve() else {
        return Err(RejectReason::MissingName);
    };
    let name = DomainName::parse(&name)?;
    let day = |value: Option<(SlashOrder, Cell<'_>)>, column| {
        value.map_or(Ok(None), |(order, cell)| cell.day(order, column))
    };
    let release = day(release, "release_date")?;
    let drop = day(drop, "drop_date")?;
    given.listed(name, release.map(Release::from), drop)
}

impl Iterator for JsonRows {
    type Item = Result<Row, FeedProblem>;

    fn next(&mut self) -> Option<Result<Row, FeedProblem>> {
        self.next_row().transpose()
    }
}

/// The elements of the first list at the top level.
pub(super) struct Elements {
    reader: Reader,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    Start,
    InList { in_object: bool },
    End,
}

impl Elements {
    pub(super) fn new(input: Input) -> Elements {
        Elements { reader: Reader::new(input), place: Place::Start }
    }

    /// Reads the next element into `element`. Returns the line of the element, and false if the
    /// element was truncated to [`ROW_BYTES_MAX`].
    pub(super) fn next(
        &mut self,
        element: &mut Vec<u8>,
    ) -> Result<Option<(u64, bool)>, FeedProblem> {
        if let Place::Start = self.place {
            let in_object = self.enter_list(element)?;
            self.place = Place::InList { in_object };
        }
        let Place::InList { in_object } = self.place else { return Ok(None) };
        match self.reader.peek(b",")? {
            None => Err(self.reader.broken("it ends before its list is closed")),
            Some(b']') => {
                self.reader.consume(1);
                self.finish(in_object, element)?;
                self.place = Place::End;
                Ok(None)
            }
            Some(b'}') => Err(self.reader.broken("`}` where an element or `]` is expected")),
            Some(_) => {
                let line = self.reader.line;
                Ok(Some((line, self.reader.value(element)?)))
            }
        }
    }

    /// Skips to the first element. Returns true if the list is a member of an object.
    fn enter_list(&mut self, scratch: &mut Vec<u8>) -> Result<bool, FeedProblem> {
        match self.reader.peek(b"")? {
            Some(b'[') => {
                self.reader.consume(1);
                return Ok(false);
            }
            Some(b'{') => self.reader.consume(1),
            _ => return Err(FeedProblem::JsonShape),
        }
        while let Some(key) = self.key(scratch)? {
            let listed = LIST_KEYS.iter().any(|list| key.eq_ignore_ascii_case(list));
            if listed && self.reader.peek(b"")? == Some(b'[') {
                self.reader.consume(1);
                return Ok(true);
            }
            self.reader.value(scratch)?;
        }
        Err(FeedProblem::JsonShape)
    }

    /// Reads the text after the list, to detect a truncated file.
    fn finish(&mut self, in_object: bool, scratch: &mut Vec<u8>) -> Result<(), FeedProblem> {
        if in_object {
            while self.key(scratch)?.is_some() {
                self.reader.value(scratch)?;
            }
        }
        match self.reader.peek(b"")? {
            None => Ok(()),
            Some(_) => Err(self.reader.broken("text after its end")),
        }
    }

    /// Reads the next key of the top-level object, up to its value; `None` after the last.
    fn key(&mut self, scratch: &mut Vec<u8>) -> Result<Option<String>, FeedProblem> {
        match self.reader.peek(b",")? {
            Some(b'}') => {
                self.reader.consume(1);
                return Ok(None);
            }
            Some(b'"') => self.reader.value(scratch)?,
            Some(_) => return Err(self.reader.broken("a key in quotes is expected")),
            None => return Err(self.reader.broken("it ends inside its outermost object")),
        };
        let key = String::from_utf8_lossy(scratch).trim_matches('"').to_owned();
        if self.reader.peek(b"")? != Some(b':') {
            return Err(self.reader.broken("`:` is expected after a key"));
        }
        self.reader.consume(1);
        match self.reader.peek(b"")? {
            Some(b',' | b'}' | b']') | None => Err(self.reader.broken("a key has no value")),
            Some(_) => Ok(Some(key)),
        }
    }
}

/// Reads the text and counts its lines.
struct Reader {
    input: BufReader<Input>,
    /// Current line, counted from 1.
    line: u64,
}

impl Reader {
    fn new(input: Input) -> Reader {
        Reader { input: BufReader::with_capacity(BUFFER_BYTES, input), line: 1 }
    }

    fn broken(&self, why: &'static str) -> FeedProblem {
        FeedProblem::BrokenJson { line: self.line, why }
    }

    fn consume(&mut self, bytes: usize) {
        let consumed = &self.input.buffer()[..bytes];
        self.line += memchr_iter(b'\n', consumed).count() as u64;
        self.input.consume(bytes);
    }

    /// Skips white space and `separators` and returns the next byte without consuming it.
    fn peek(&mut self, separators: &[u8]) -> io::Result<Option<u8>> {
        loop {
            let held = self.input.fill_buf()?;
            let skip = |byte: &u8| byte.is_ascii_whitespace() || separators.contains(byte);
            let found = held.iter().position(|byte| !skip(byte));
            let byte = found.map(|at| held[at]);
            let skipped = found.unwrap_or(held.len());
            self.consume(skipped);
            if byte.is_some() || skipped == 0 {
                return Ok(byte);
            }
        }
    }

    /// Reads the next value into `value`. Returns false if the value was truncated.
    fn value(&mut self, value: &mut Vec<u8>) -> Result<bool, FeedProblem> {
        value.clear();
        let mut whole = true;
        let mut scan = Scan::default();
        loop {
            let held = self.input.fill_buf()?;
            if held.is_empty() {
                return Err(self.broken("it ends inside a value"));
            }
            let (used, done) = scan.step(held);
            let room = ROW_BYTES_MAX - value.len();
            whole &= used <= room;
            value.extend_from_slice(&held[..used.min(room)]);
            self.consume(used);
            if done {
                return Ok(whole);
            }
        }
    }
}

/// State of the scanner at the end of a chunk.
#[derive(Default)]
struct Scan {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Returns how many of these bytes belong to the value, and whether it ends there.
    fn step(&mut self, held: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < held.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                let Some(length) = memchr2(b'"', b'\\', &held[at..]) else { break };
                at += length + 1;
                self.escaped = held[at - 1] == b'\\';
                self.in_string = self.escaped;
                if !self.in_string && self.depth == 0 {
                    return (at, true);
                }
                continue;
            }
            match held[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return (at, true),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                byte if self.depth == 0 && (byte == b',' || byte.is_ascii_whitespace()) => {
                    return (at, true);
                }
                _ => {}
            }
            at += 1;
        }
        (held.len(), false)
    }
}

/// Name and dates of an object, or a bare name.
struct Element<'a>(Fields<Cell<'a>>);

/// A date or name value of an object.
enum Cell<'a> {
    Text(Cow<'a, str>),
    Null,
    Other,
}

impl Cell<'_> {
    fn day(&self, order: SlashOrder, column: &'static str) -> Result<Option<Day>, RejectReason> {
        match self {
            Cell::Text(text) => dates::optional_day(value(text), order, column),
            Cell::Null => Ok(None),
            Cell::Other => Err(RejectReason::BadDate(column)),
        }
    }
}

impl<'de> Deserialize<'de> for Element<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Element<'de>, D::Error> {
        deserializer.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Element<'de>, E> {
        let name = Cell::Text(Cow::Owned(name.to_owned()));
        Ok(Element(Fields::of_name(name)))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Element<'de>, M::Error> {
        let mut fields = Fields::default();
        while let Some(Text(key)) = map.next_key()? {
            let Some(role) = role(&key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            match map.next_value()? {
                Cell::Null => fields.mention(role),
                cell => drop(fields.put(role, cell)),
            }
        }
        Ok(Element(fields))
    }
}

impl<'de> Deserialize<'de> for Cell<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cell<'de>, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str(json)
                .map(|Text(text)| Cell::Text(text))
                .map_err(D::Error::custom),
            Some(b'n') => Ok(Cell::Null),
            _ => Ok(Cell::Other),
        }
    }
}

/// A string, borrowed unless it contains escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// A reader that returns one byte per read, so that every value is split between reads.
    struct Drip(io::Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let step = buffer.len().min(1);
            self.0.read(&mut buffer[..step])
        }
    }

    fn cut(text: &str) -> Result<Vec<(u64, String)>, FeedProblem> {
        let input: Input = Box::new(Drip(io::Cursor::new(text.as_bytes().to_vec())));
        let mut elements = Elements::new(input);
        let (mut cut, mut element) = (Vec::new(), Vec::new());
        while let Some((line, _)) = elements.next(&mut element)? {
            cut.push((line, String::from_utf8_lossy(&element).into_owned()));
        }
        assert!(elements.next(&mut element)?.is_none(), "the end is final");
        Ok(cut)
    }

    #[test]
    fn elements_of_every_shape() {
        let both = vec![(1, r#"{"a":"]\"}"}"#.to_owned()), (2, "[1,{}]".to_owned())];
        for text in [
            "[{\"a\":\"]\\\"}\"},\n[1,{}]]",
            "{\"meta\":{\"data\":[7]},\"data\":[{\"a\":\"]\\\"}\"},\n[1,{}]],\"data\":[8]}\n",
            "{\"n\":1,\"s\":\"x\",\"DOMAINS\" : [ {\"a\":\"]\\\"}\"} ,\n [1,{}] ] , \"z\":null }",
            "{\"data\":null,\"domains\":[{\"a\":\"]\\\"}\"},\n[1,{}]]}",
        ] {
            assert_eq!(cut(text).expect("whole"), both, "{text}");
        }
        assert_eq!(cut("[]").expect("empty"), []);
        let scalars = cut("[1, \"a.se\",null]").expect("scalars");
        assert_eq!(scalars.len(), 3);
        assert_eq!(scalars[1].1, "\"a.se\"");
    }

    #[test]
    fn every_truncation_is_detected() {
        let whole = r#"{"meta":{"n":[1]},"data":[{"name":"a.se"},{"name":"b.se"}],"end":"x"}"#;
        assert_eq!(cut(whole).expect("whole").len(), 2);
        for end in 1..whole.len() {
            let problem = cut(&whole[..end]).expect_err("cut short");
            assert!(matches!(problem, FeedProblem::BrokenJson { line: 1, .. }), "{end}: {problem}");
        }
    }

    #[test]
    fn unbalanced_brackets_fail_the_list() {
        for text in [
            "[{\"a\":1}}]",
            "[{\"a\":1},{]",
            "[1]]",
            "{\"data\":[1]} x",
            "{\"data\":[1]",
            "{data:[1]}",
            "{\"a\"[1]}",
            "{\"a\":}",
        ] {
            assert!(matches!(cut(text), Err(FeedProblem::BrokenJson { .. })), "{text}");
        }
        for text in ["{}", "{\"rows\":[1]}", "{\"data\":{\"a\":[1]}}", "x"] {
            assert!(matches!(cut(text), Err(FeedProblem::JsonShape)), "{text}");
        }
    }

    #[test]
    fn deep_nesting_uses_bounded_stack_and_memory() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let input: Input = Box::new(io::Cursor::new(format!("[{deep},{deep}{deep}]")));
        let mut elements = Elements::new(input);
        let mut element = Vec::new();
        for _ in 0..3 {
            assert_eq!(elements.next(&mut element).expect("balanced"), Some((1, false)));
            assert_eq!(element.len(), ROW_BYTES_MAX);
        }
        assert_eq!(elements.next(&mut element).expect("closed"), None);
    }
}
