//! Reads the delegated names of a zone file (RFC 1035 §5) in file order.
//!
//! A name with NS records in one file of a zone and none in the next has dropped; the corpus
//! compares the two files.

use std::borrow::Cow;
use std::path::Path;

use chrono::DateTime;

use super::container::{self, ListText};
use super::error::{FeedError, FeedProblem};
use super::file_name::{self, NameDay};
use super::lines::{Parsed, RowParser};
use super::rejects::RejectReason;
use super::{Observation, Sighting};
use crate::vocab::day::Day;
use crate::vocab::name::{DomainName, NameError};

/// Rows of a zone file: the owners of NS records one level below the apex.
///
/// Records of the apex, glue, DNSSEC, deeper delegations and public suffixes below the apex (`co.uk`
/// in uk) are skipped. Consecutive NS records of a name result in one row; records that are not
/// consecutive result in several rows.
pub(super) struct Delegations {
    records: ZoneRecords,
    apex: String,
    /// The last owner of NS records.
    last_owner: String,
}

impl Delegations {
    pub(super) fn new(apex: &str) -> Delegations {
        let (records, last_owner) = (ZoneRecords::below(apex), String::new());
        Delegations { records, apex: apex.to_owned(), last_owner }
    }
}

impl RowParser for Delegations {
    type Seen = Observation;
    const IS_OCTETS: bool = true;

    fn parse(&mut self, row: &str) -> Parsed {
        match self.records.read(row) {
            Ok(RecordKind::Ns) if self.records.owner != self.last_owner => {
                self.last_owner.clone_from(&self.records.owner);
                let name = delegated(&self.last_owner, &self.apex)?;
                let sighting = Sighting::Known { registered: true };
                let observed_at = DateTime::UNIX_EPOCH;
                Some(name.map(|name| Observation { name, sighting, first_seen: None, observed_at }))
            }
            Ok(_) => None,
            Err(reason) => Some(Err(reason)),
        }
    }
}

/// Day of a zone file: `given` or, without it, the date in its file name.
///
/// # Errors
/// [`FeedProblem::NoZoneDay`] if both are missing.
pub fn zone_day(path: &Path, given: Option<Day>) -> Result<Day, FeedError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let problem = match (given, file_name::day(&file_name)) {
        (Some(day), _) | (None, NameDay::One(day)) => return Ok(day),
        (None, NameDay::None) => FeedProblem::NoZoneDay,
        (None, NameDay::Ambiguous(text, days)) => {
            FeedProblem::AmbiguousDay { text, days, option: "--drop-date" }
        }
    };
    Err(FeedError::new(path, problem))
}

/// Parses the owner of NS records. Returns `None` for skipped owners.
fn delegated(owner: &str, apex: &str) -> Option<Result<DomainName, RejectReason>> {
    let label = owner.strip_suffix(apex)?.strip_suffix('.')?;
    if label.is_empty() || label.contains('.') {
        return None;
    }
    match DomainName::parse(owner) {
        Ok(name) => Some(Ok(name)),
        Err(NameError::IsPublicSuffix | NameError::PrivateSuffix) => None,
        Err(error) => Some(Err(error.into())),
    }
}

/// Opens a zone file and finds its apex.
pub(super) fn open_text(path: &Path) -> Result<(String, ListText), FeedProblem> {
    let text = container::open(path)?;
    let apex = apex(&String::from_utf8_lossy(&text.head)).ok_or(FeedProblem::NoApex)?;
    Ok((apex, text))
}

/// Returns the owner of the first SOA record or, without one, the first $ORIGIN, if it is a valid
/// zone name in ASCII. The owner must be in canonical form, because names are compared with it.
pub(super) fn apex(head: &str) -> Option<String> {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    claimed_apex(head).filter(|apex| apex.split('.').all(is_label))
}

fn claimed_apex(head: &str) -> Option<String> {
    let mut records = ZoneRecords::default();
    let mut first_origin = None;
    for line in head.lines() {
        let kind = records.read(line);
        if matches!(kind, Ok(RecordKind::Soa)) && !records.owner.is_empty() {
            return Some(records.owner);
        }
        first_origin = first_origin.or_else(|| records.origin.clone());
    }
    first_origin
}

/// Returns true if the first row is a record or directive of a zone file.
pub(super) fn looks_like<'a>(mut lines: impl Iterator<Item = &'a str>) -> bool {
    let Some(first) = lines.find(|line| !line.trim_start().starts_with(';')) else { return false };
    let word = first.split_ascii_whitespace().next().unwrap_or_default();
    if first.len() > word.len()
        && ["$ORIGIN", "$TTL"].iter().any(|it| word.eq_ignore_ascii_case(it))
    {
        return true;
    }
    let mut tokens = first.split_ascii_whitespace().skip(1).peekable();
    let qualified = tokens.peek().is_some_and(|token| is_ttl(token) || is_class(token));
    let kind = tokens.find(|token| !is_ttl(token) && !is_class(token));
    let known = |kind: &str| RECORD_TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known));
    let has_data = tokens.next().is_some();
    has_data
        && kind.is_some_and(|kind| known(kind) && (qualified || kind.eq_ignore_ascii_case("NS")))
}

/// Types with which a zone file may start.
const RECORD_TYPES: [&str; 11] =
    ["SOA", "NS", "A", "AAAA", "DS", "DNSKEY", "RRSIG", "NSEC", "NSEC3", "TXT", "TSIG"];
/// Maximum bytes of a multi-line record: its data has up to 64 KiB, and each byte is written with up to
/// four characters.
const RECORD_BYTES_MAX: usize = 512 << 10;

/// Type of a record, as far as it is relevant here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    Soa,
    Ns,
    Other,
    /// A comment, a directive, or the continuation of a record in parentheses.
    None,
}

/// State of a zone file that earlier lines set for later ones.
#[derive(Default)]
pub struct ZoneRecords {
    /// Origin of relative names in lower case, without a trailing dot.
    origin: Option<String>,
    /// Absolute owner of the last record in lower case, without a trailing dot.
    owner: String,
    open_parentheses: u32,
    /// Bytes read so far of the last record.
    bytes: usize,
    /// Whether the last record continues and its type has not been read yet.
    awaits_type: bool,
}

impl ZoneRecords {
    /// State at the start of a zone file without `$ORIGIN`.
    pub fn below(apex: &str) -> ZoneRecords {
        ZoneRecords { origin: Some(apex.to_owned()), ..ZoneRecords::default() }
    }

    /// Absolute owner of the last record in lower case, without a trailing dot.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether the last record continues on the next line.
    pub fn is_open(&self) -> bool {
        self.open_parentheses > 0
    }

    /// Sets the owner that applies to following records without an owner, after the caller has
    /// parsed lines itself.
    pub fn set_owner(&mut self, owner: &str) {
        self.owner.clear();
        self.owner.push_str(owner);
        self.owner.make_ascii_lowercase();
    }

    /// Reads a line and sets [`ZoneRecords::owner`] to the owner of its record. Parentheses may
    /// continue a record at any point; the kind is returned for the line that contains the type.
    ///
    /// # Errors
    /// The line is not a record, is an unsupported directive, or makes the record too long.
    pub fn read(&mut self, line: &str) -> Result<RecordKind, RejectReason> {
        let goes_on = self.is_open();
        let record = self.without_comment(line);
        self.bytes = line.len() + if goes_on { self.bytes } else { 0 };
        if self.bytes > RECORD_BYTES_MAX {
            (self.open_parentheses, self.awaits_type) = (0, false);
            return Err(RejectReason::TooLong);
        }
        let mut tokens = record.split_ascii_whitespace();
        if !goes_on {
            self.awaits_type = false;
            if record.starts_with('$') {
                return self.directive(tokens);
            }
            if !record.starts_with([' ', '\t']) {
                let Some(owner) = tokens.next() else { return Ok(RecordKind::None) };
                absolute(owner, self.origin.as_deref(), &mut self.owner)?;
            } else if record.trim().is_empty() && !self.is_open() {
                return Ok(RecordKind::None);
            }
        } else if !self.awaits_type {
            return Ok(RecordKind::None);
        }
        let kind = tokens.find(|token| !is_ttl(token) && !is_class(token));
        self.awaits_type = kind.is_none() && self.is_open();
        match kind {
            Some(kind) if kind.eq_ignore_ascii_case("NS") => Ok(RecordKind::Ns),
            Some(kind) if kind.eq_ignore_ascii_case("SOA") => Ok(RecordKind::Soa),
            Some(kind) if is_meta(kind) => Ok(RecordKind::None),
            Some(kind) if is_type(kind) => Ok(RecordKind::Other),
            None if self.awaits_type => Ok(RecordKind::None),
            _ => Err(RejectReason::BadRecord),
        }
    }

    fn directive<'a>(
        &mut self,
        mut tokens: impl Iterator<Item = &'a str>,
    ) -> Result<RecordKind, RejectReason> {
        let is = |word: &str, known: &str| word.eq_ignore_ascii_case(known);
        match (tokens.next(), tokens.next()) {
            (Some(word), Some(name)) if is(word, "$ORIGIN") => {
                let mut origin = String::new();
                absolute(name, self.origin.as_deref().or(Some("")), &mut origin)?;
                self.origin = Some(origin);
                Ok(RecordKind::None)
            }
            (Some(word), Some(_)) if is(word, "$TTL") => Ok(RecordKind::None),
            _ => Err(RejectReason::ZoneDirective),
        }
    }

    /// Removes the comment of a line. Counts parentheses outside quotes and replaces them with
    /// blanks.
    fn without_comment<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        if !line.contains([';', '"', '(', ')']) {
            return line.into();
        }
        let (mut quoted, mut escaped, mut end) = (false, false, line.len());
        let mut parentheses = Vec::new();
        for (at, byte) in line.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = !quoted,
                b';' if !quoted => {
                    end = at;
                    break;
                }
                b'(' | b')' if !quoted => {
                    self.open_parentheses = match byte {
                        b'(' => self.open_parentheses + 1,
                        _ => self.open_parentheses.saturating_sub(1),
                    };
                    parentheses.push(at);
                }
                _ => {}
            }
        }
        if parentheses.is_empty() {
            return line[..end].into();
        }
        let mut record = line[..end].to_owned();
        parentheses.iter().for_each(|&at| record.replace_range(at..=at, " "));
        // An owner may follow a parenthesis, but must not follow blanks.
        if parentheses[0] == 0 && line[1..].starts_with(|c: char| !c.is_ascii_whitespace()) {
            record.remove(0);
        }
        record.into()
    }
}

/// Writes a name of a zone file in absolute form and lower case, without its trailing dot.
fn absolute(name: &str, origin: Option<&str>, into: &mut String) -> Result<(), RejectReason> {
    into.clear();
    // Bytes that are not UTF-8.
    if name.contains(char::REPLACEMENT_CHARACTER) {
        return Err(RejectReason::BadRecord);
    }
    match (name.strip_suffix('.'), origin) {
        (Some(whole), _) => into.push_str(whole),
        (None, None) => return Err(RejectReason::BadRecord),
        (None, Some(origin)) if name == "@" => into.push_str(origin),
        (None, Some("")) => into.push_str(name),
        (None, Some(origin)) => into.extend([name, ".", origin]),
    }
    into.make_ascii_lowercase();
    Ok(())
}

/// Whether a token is a TTL, in seconds or with BIND's units: `3600`, `1h30m`.
fn is_ttl(token: &str) -> bool {
    token.starts_with(|char: char| char.is_ascii_digit())
        && token
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"wdhms".contains(&byte.to_ascii_lowercase()))
}

/// Whether a token is a class, by name or number (RFC 3597 §5). The classes `ANY` and `NONE` occur
/// only in messages.
fn is_class(token: &str) -> bool {
    let is_number = |prefix: &str| {
        let number = token.get(prefix.len()..).filter(|rest| !rest.is_empty());
        token.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            && number.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let classes = ["IN", "CH", "HS", "ANY", "NONE"];
    classes.iter().any(|class| token.eq_ignore_ascii_case(class)) || is_number("CLASS")
}

/// Whether a record belongs to a message instead of the zone; `dig` prints such records among the
/// others.
fn is_meta(kind: &str) -> bool {
    ["TSIG", "OPT", "TKEY", "TYPE250", "TYPE41", "TYPE249"]
        .iter()
        .any(|meta| kind.eq_ignore_ascii_case(meta))
}

fn is_type(token: &str) -> bool {
    token.starts_with(|char: char| char.is_ascii_alphabetic())
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_in_every_spelling() {
        let mut records = ZoneRecords::default();
        for (line, kind, owner) in [
            ("; a comment", RecordKind::None, ""),
            ("$ORIGIN COM.", RecordKind::None, ""),
            ("$TTL 900", RecordKind::None, ""),
            ("@ IN SOA a.gtld. nstld. ( 1 ; serial", RecordKind::Soa, "com"),
            ("   900 )", RecordKind::None, "com"),
            ("EXAMPLE NS NS1.EXAMPLE", RecordKind::Ns, "example.com"),
            ("\tNS NS2.EXAMPLE", RecordKind::Ns, "example.com"),
            ("ns1.example 172800 IN A 192.0.2.1", RecordKind::Other, "ns1.example.com"),
            ("other.com. in 1h30m ns ns1.example.", RecordKind::Ns, "other.com"),
            ("third.com.\t10800\tin\tns\tns1.x.", RecordKind::Ns, "third.com"),
            ("third.com. TXT \"; ( no comment\" \"a\"", RecordKind::Other, "third.com"),
            ("fourth NS ns1 ; NS", RecordKind::Ns, "fourth.com"),
            ("", RecordKind::None, "fourth.com"),
        ] {
            assert_eq!(records.read(line), Ok(kind), "{line}");
            assert_eq!(records.owner, owner, "{line}");
        }
        assert_eq!(records.read("$INCLUDE other.zone"), Err(RejectReason::ZoneDirective));
        assert_eq!(records.read("example.com."), Err(RejectReason::BadRecord));
        assert_eq!(records.read("example.com. 3600 IN ???"), Err(RejectReason::BadRecord));
    }

    #[test]
    fn parentheses_continue_a_record_anywhere() {
        let kinds = |text: &str| {
            let mut records = ZoneRecords::below("com");
            let read = text.lines().map(|line| records.read(line).map_err(|_| ()));
            let kinds: Vec<_> = read.filter(|kind| *kind != Ok(RecordKind::None)).collect();
            assert!(!records.is_open(), "{text}");
            (kinds, records.owner)
        };
        for text in [
            "a.com. 900 IN NS ns1.x.",
            "a.com. ( 900\n IN ; ( class\n NS\n ns1.x. )",
            "a.com. (\n\n900 IN NS) ns1.x.",
            "a 900 IN NS (\nns1.x.\n)",
            "a.com.(900(IN)NS\nns1.x.)",
            "(a.com. NS\n ns1.x.\n)",
            "a.com. CLASS1 ( \nNS ns1.x. )",
        ] {
            assert_eq!(kinds(text), (vec![Ok(RecordKind::Ns)], "a.com".into()), "{text}");
        }
        for text in [
            "a.com. 900 IN RRSIG NS 8 2 (\n 2026 com.\n NS== )",
            "a.com. 900 IN TXT (\n\"( no\"\n\\( )",
            "a.com. ( 900 IN\nDS\n 1 13 2 (\n AB ) CD )",
        ] {
            assert_eq!(kinds(text), (vec![Ok(RecordKind::Other)], "a.com".into()), "{text}");
        }
        assert_eq!(kinds("a.com. (\n900 IN\n)").0, [Err(())]);
    }

    #[test]
    fn a_record_in_parentheses_is_bounded() {
        let mut records = ZoneRecords::below("com");
        assert_eq!(records.read("a TXT ("), Ok(RecordKind::Other));
        let line = "x".repeat(1_000);
        let read = (0..1_000).map(|_| records.read(&line)).find(Result::is_err);
        assert_eq!(read, Some(Err(RejectReason::TooLong)));
        assert_eq!(records.read("b NS ns1"), Ok(RecordKind::Ns));
        assert_eq!(records.owner, "b.com");
    }

    #[test]
    fn records_of_messages_are_skipped() {
        let mut records = ZoneRecords::below("com");
        for line in [
            "key.example.\t0\tANY\tTSIG\thmac-sha256. 1795435200 300 32 AAAA= 1 NOERROR 0",
            "key 0 CLASS255 TYPE250 \\# 0",
            ". 0 CLASS4096 OPT",
        ] {
            assert_eq!(records.read(line), Ok(RecordKind::None), "{line}");
        }
    }

    #[test]
    fn the_apex_is_the_soa_owner_or_the_origin() {
        assert_eq!(apex("app.\t60\tin\tsoa\tns.\thm.\t1 2 3 4 5\n"), Some("app".into()));
        assert_eq!(apex("$ORIGIN Com.\n@ SOA a. b. 1 2 3 4 5\n"), Some("com".into()));
        assert_eq!(apex("$ORIGIN com.\nEXAMPLE NS ns1\n"), Some("com".into()));
        assert_eq!(apex("example.com.\nother.com.\n"), None);
    }

    #[test]
    fn only_zone_files_are_recognised_as_such() {
        for line in [
            "$ORIGIN com.",
            "$origin\tcom.",
            "$TTL\t3600",
            "$TTL 3600",
            "app.\t21600\tin\tsoa\tns-tld1.x. hm. 1 2 3 4 5",
            "EXAMPLE NS NS1.EXAMPLE",
            "app. 60 IN DNSKEY 256 3 8 AwE=",
        ] {
            assert!(looks_like(["; comment", line].into_iter()), "{line}");
        }
        for line in ["a.com", "a.se\t2026-10-20", "2026-04-07 08:10:56 MEST", "domain a b", "{"] {
            assert!(!looks_like([line].into_iter()), "{line}");
        }
        assert!(!looks_like([].into_iter()));
    }

    #[test]
    fn only_registrable_names_one_level_down_are_delegated() {
        let name =
            |owner, apex| delegated(owner, apex).map(|name| name.map(|name| name.to_string()));
        assert_eq!(name("example.com", "com"), Some(Ok("example.com".into())));
        assert_eq!(name("example.co.uk", "co.uk"), Some(Ok("example.co.uk".into())));
        // The name is registrable, although it is listed in the private section.
        assert_eq!(name("blogspot.com", "com"), Some(Ok("blogspot.com".into())));
        for (owner, apex) in [
            ("com", "com"),
            ("ns1.example.com", "com"),
            ("examplecom", "com"),
            ("example.net", "com"),
            ("co.uk", "uk"),
            ("example.uk.com", "uk.com"),
        ] {
            assert_eq!(name(owner, apex), None, "{owner}");
        }
        let refused = Some(Err(RejectReason::Name(NameError::BadCharacter('_'))));
        assert_eq!(name("_tcp.com", "com"), refused);
    }
}
