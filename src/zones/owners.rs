//! Reads the owners of delegations from a zone file, as fast as the file can be decompressed.
//!
//! Published zone files have one record per line, absolute names, and the records of an owner in
//! sequence. This module parses such lines as bytes. [`ZoneRecords`] parses all others: comments,
//! directives, parentheses, relative names.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use memchr::{memchr, memchr2};

use super::error::ZoneError;
use super::names::OWNER_BYTES_MAX;
use super::ns_class::class_of;
use super::snapshot::{Names, Owner};
use crate::feeds::{self, RecordKind, ZoneRecords};
use crate::vocab::ns_class::NsClass;

/// Size of the read buffer. A longer line is not a record.
const READ_BYTES: usize = 1 << 20;
/// Fields of a SOA record after its type (RFC 1035 §3.3.13).
const SOA_FIELDS: usize = 7;
/// Maximum bytes of these fields: two names of 255 bytes, each byte of which may be escaped as
/// `\\DDD`, and five numbers.
const SOA_BYTES_MAX: usize = 2 * 4 * 255 + 5 * 20;
/// Maximum number of lines that are not records, such as warnings printed by a tool.
const BAD_LINES_MAX: u32 = 100;

/// Owners of NS records below the apex, in the order of the file.
///
/// An owner includes the dot before the apex, but not the apex: `example.` in com. Owners thus
/// compare like full names in a file sorted by bytes, in which `a-b.com.` precedes `a.com.`.
pub struct Owners {
    lines: Lines,
    parser: Parser,
}

struct Lines {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Unread part of the buffer.
    unread: Range<usize>,
    is_at_end: bool,
}

struct Parser {
    apex: String,
    /// The apex with dots around it: `.com.`.
    end: Vec<u8>,
    /// The first field of the last delegating line, verbatim.
    last: Vec<u8>,
    /// Whether the owner of the previous record was `last`, a line that `records` has not parsed.
    is_ahead: bool,
    owner: Vec<u8>,
    /// Class of the first name server of the owner.
    class: Option<NsClass>,
    records: ZoneRecords,
    bad_lines: u32,
    soa: Soa,
}

/// The SOA record, which opens a zone and is repeated at its end.
#[derive(Default)]
struct Soa {
    first: Option<Vec<String>>,
    /// Fields of an unfinished record that were read so far.
    open: Option<Vec<String>>,
    /// Whether the last record repeats the first one.
    is_closed: bool,
}

impl Owners {
    /// Opens a zone file, compressed or not.
    ///
    /// # Errors
    /// The file cannot be read, or does not name a zone.
    pub fn open(path: &Path) -> Result<Owners, ZoneError> {
        let (apex, input) = feeds::open_zone_text(path)?;
        let buffer = vec![0; READ_BYTES];
        Ok(Owners {
            lines: Lines { input, buffer, unread: 0..0, is_at_end: false },
            parser: Parser {
                end: format!(".{apex}.").into_bytes(),
                records: ZoneRecords::below(&apex),
                apex,
                last: Vec::new(),
                is_ahead: false,
                owner: Vec::new(),
                class: None,
                bad_lines: 0,
                soa: Soa::default(),
            },
        })
    }
}

impl Names for Owners {
    fn apex(&self) -> &str {
        &self.parser.apex
    }

    /// An owner whose records are not consecutive is returned several times.
    fn next(&mut self) -> Result<Option<Owner<'_>>, ZoneError> {
        while let Some(line) = self.lines.next()? {
            if self.parser.read(line.trim_ascii_end())? {
                let Parser { owner, class, .. } = &self.parser;
                return Ok(Some(Owner { name: owner, class: *class }));
            }
        }
        Ok(None)
    }

    /// [`ZoneError::NoEnd`] when the first record of the zone is not repeated at its end.
    fn serial(&self) -> Result<u32, ZoneError> {
        let Soa { first, is_closed, .. } = &self.parser.soa;
        let serial = first.as_ref().and_then(|fields| fields.get(2)?.parse().ok());
        serial.filter(|_| *is_closed).ok_or(ZoneError::NoEnd)
    }
}

impl Lines {
    /// Returns the next line, without its line break.
    fn next(&mut self) -> Result<Option<&[u8]>, ZoneError> {
        let mut searched = 0;
        loop {
            let Range { start, end } = self.unread;
            if let Some(at) = memchr(b'\n', &self.buffer[start + searched..end]) {
                let end = start + searched + at;
                self.unread.start = end + 1;
                return Ok(Some(&self.buffer[start..end]));
            }
            if self.is_at_end {
                self.unread.start = end;
                return Ok((start < end).then(|| &self.buffer[start..end]));
            }
            searched = end - start;
            self.fill()?;
        }
    }

    /// Reads more bytes, and appends them to the unread ones.
    fn fill(&mut self) -> Result<(), ZoneError> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.unread.end == self.buffer.len() {
            return Err(ZoneError::LongLine);
        }
        let got = loop {
            match self.input.read(&mut self.buffer[self.unread.end..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other.map_err(ZoneError::Unpack)?,
            }
        };
        self.unread.end += got;
        self.is_at_end = got == 0;
        Ok(())
    }
}

impl Parser {
    /// Parses a line. Returns true if the line delegates an owner other than that of the previous
    /// line.
    fn read(&mut self, line: &[u8]) -> Result<bool, ZoneError> {
        let Some(end) = memchr2(b' ', b'\t', line) else { return self.read_slowly(line) };
        if self.records.is_open() || memchr(b'(', line).is_some() {
            return self.read_slowly(line);
        }
        let (name, rest) = line.split_at(end);
        if name == self.last && !name.is_empty() {
            (self.soa.is_closed, self.is_ahead) = (false, true);
            return Ok(false);
        }
        let is_whole = name.ends_with(b".") && !matches!(name[0], b';' | b'$' | b'@' | b'"');
        if is_whole && let Some(server) = name_server(rest) {
            self.owner.clear();
            self.owner.extend_from_slice(name);
            self.owner.make_ascii_lowercase();
            if self.is_below() {
                self.last.clear();
                self.last.extend_from_slice(name);
                (self.soa.is_closed, self.is_ahead) = (false, true);
                self.class = self.class_of(server);
                return Ok(true);
            }
        }
        self.read_slowly(line)
    }

    /// Parses a line in any notation. Comments and data may contain any bytes.
    fn read_slowly(&mut self, line: &[u8]) -> Result<bool, ZoneError> {
        let text = &*String::from_utf8_lossy(line);
        let goes_on = self.records.is_open();
        if std::mem::take(&mut self.is_ahead) {
            let owner = String::from_utf8_lossy(&self.last);
            self.records.set_owner(owner.trim_end_matches('.'));
        }
        match self.records.read(text) {
            Ok(RecordKind::Ns) => {
                self.soa.is_closed = false;
                self.owner.clear();
                self.owner.extend_from_slice(self.records.owner().as_bytes());
                self.owner.push(b'.');
                let is_new = self.owner != self.last;
                self.last.clear();
                if self.is_below() {
                    // The next line may repeat or omit this owner.
                    self.last.extend_from_slice(&self.owner);
                    self.last.extend_from_slice(&self.end[1..]);
                    if is_new {
                        let server = fields(text).last().unwrap_or_default();
                        self.class = self.class_of(server.as_bytes());
                    }
                    return Ok(is_new);
                }
                return Ok(false);
            }
            Ok(RecordKind::Soa) => self.soa.begin(text)?,
            Ok(RecordKind::Other) => self.soa.is_closed = false,
            Ok(RecordKind::None) if goes_on => self.soa.go_on(text)?,
            Ok(RecordKind::None) => {}
            Err(_) if std::str::from_utf8(line).is_err() => return Err(ZoneError::NotText),
            Err(_) if self.bad_lines == BAD_LINES_MAX => {
                return Err(ZoneError::BadLine(text.chars().take(80).collect()));
            }
            Err(_) => {
                self.bad_lines += 1;
                self.soa.open = None;
            }
        }
        if !self.records.is_open() {
            self.soa.finish();
        }
        Ok(false)
    }

    /// Returns the class of a name server, which may be relative to the apex.
    fn class_of(&self, server: &[u8]) -> Option<NsClass> {
        match server.last() {
            Some(b'.') => class_of(server),
            _ => class_of(&[server, &self.end].concat()),
        }
    }

    /// Removes the apex from the owner. Returns false for the apex itself and for names outside the
    /// zone.
    fn is_below(&mut self) -> bool {
        let Some(label) = self.owner.strip_suffix(&self.end[..]) else { return false };
        let length = label.len();
        self.owner.truncate(length + 1);
        (1..OWNER_BYTES_MAX).contains(&length)
    }
}

/// Returns the name server of an NS record with only the usual fields between owner and type: a TTL in seconds and
/// the class IN.
fn name_server(rest: &[u8]) -> Option<&[u8]> {
    let mut fields = rest.split(|byte| matches!(byte, b' ' | b'\t')).filter(|it| !it.is_empty());
    let is_type =
        |field: &&[u8]| !field.iter().all(u8::is_ascii_digit) && !field.eq_ignore_ascii_case(b"IN");
    let kind = fields.find(is_type)?;
    matches!(kind, b"NS" | b"ns").then(|| fields.next().unwrap_or_default())
}

impl Soa {
    fn begin(&mut self, text: &str) -> Result<(), ZoneError> {
        let is_kind = |field: &str| field.eq_ignore_ascii_case("SOA");
        self.open = Some(Vec::new());
        self.extend(fields(text).skip_while(|field| !is_kind(field)).skip(1))
    }

    fn go_on(&mut self, text: &str) -> Result<(), ZoneError> {
        self.extend(fields(text))
    }

    /// Appends fields to the open record, if any.
    fn extend<'a>(&mut self, more: impl Iterator<Item = &'a str>) -> Result<(), ZoneError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut bytes: usize = open.iter().map(String::len).sum();
        for field in more {
            bytes += field.len();
            if open.len() == SOA_FIELDS || bytes > SOA_BYTES_MAX {
                return Err(ZoneError::LongSoa);
            }
            open.push(field.to_ascii_lowercase());
        }
        Ok(())
    }

    fn finish(&mut self) {
        let Some(read) = self.open.take() else { return };
        match &self.first {
            None => self.first = Some(read),
            Some(first) => self.is_closed = *first == read,
        }
    }
}

/// Returns the fields of a line, without comment and parentheses.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    let record = text.split(';').next().unwrap_or_default();
    let fields = record.split(|char: char| char.is_ascii_whitespace() || "()".contains(char));
    fields.filter(|field| !field.is_empty())
}
