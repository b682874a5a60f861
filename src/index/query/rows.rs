//! Rows as the API shows them, and how they are written: borrowed values in, bytes of JSON or CSV
//! appended to a buffer of the caller's. A row owns nothing and is shaped when it is written.
//!
//! Written by hand, because a page of drops is thousands of small values and little else: a
//! serialiser that takes them one by one costs three times as much. Tests hold the bytes against
//! `serde_json`.

use chrono::Datelike;
use memchr::memchr2;
use serde::Serialize;

use crate::scorer::{Cap, Percent, Points, Signals};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;

/// Bytes of JSON that a search result seldom goes beyond: what to make room for.
pub const SEARCH_JSON_BYTES: usize = 288;
/// Bytes of JSON that a row of the drops list seldom goes beyond.
pub const DROP_JSON_BYTES: usize = 768;
/// Bytes of CSV that a row of the drops list seldom goes beyond.
pub const DROP_CSV_BYTES: usize = 144;

/// The columns of the drops export.
pub const DROPS_CSV_HEADER: &str = "domain,tld,length,dqs,explanation\r\n";

/// What `currentStatus` holds (decisions.md §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Registered,
    Redemption,
    PendingDelete,
    Available,
    Unknown,
}

impl Status {
    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Registered => "registered",
            Status::Redemption => "redemption",
            Status::PendingDelete => "pending-delete",
            Status::Available => "available",
            Status::Unknown => "unknown",
        }
    }
}

/// A search result (api.md).
#[derive(Clone, Debug)]
pub struct SearchRow<'a> {
    pub domain: &'a str,
    pub tld: &'a str,
    /// Characters of the label.
    pub length: u8,
    pub current_status: Status,
    /// `None` for a name that never dropped.
    pub latest_drop: Option<LatestDrop<'a>>,
}

/// What a name's last drop was (api.md, latestDrop of search).
#[derive(Clone, Debug)]
pub struct LatestDrop<'a> {
    pub date: Day,
    pub dqs: Dqs,
    pub explanation: &'a str,
}

/// A row of the drops list (api.md, Drop).
#[derive(Clone, Debug)]
pub struct DropRow<'a> {
    pub name: &'a str,
    pub tld: &'a str,
    /// Characters of the label.
    pub length: u8,
    pub dqs: Dqs,
    pub explanation: &'a str,
    pub signals: &'a Signals<'a>,
}

impl SearchRow<'_> {
    /// Appends the row as a JSON object. Names and TLDs are letters, digits, hyphens and dots, and
    /// need no escapes.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        push(out, "{\"domain\":\"");
        push(out, self.domain);
        push(out, "\",\"tld\":\"");
        push(out, self.tld);
        push(out, "\",\"length\":");
        push_number(out, self.length);
        push(out, ",\"currentStatus\":\"");
        push(out, self.current_status.as_str());
        push(out, "\",\"latestDrop\":");
        match &self.latest_drop {
            Some(drop) => drop.write_json(out),
            None => push(out, "null"),
        }
        push(out, "}");
    }
}

impl LatestDrop<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        push(out, "{\"date\":\"");
        push_day(out, self.date);
        push(out, "\",\"dqs\":");
        push_number(out, self.dqs.points());
        push(out, ",\"explanation\":");
        push_json_text(out, self.explanation);
        push(out, "}");
    }
}

impl DropRow<'_> {
    /// Appends the row as a JSON object, its name and TLD as in [`SearchRow::write_json`].
    pub fn write_json(&self, out: &mut Vec<u8>) {
        push(out, "{\"name\":\"");
        push(out, self.name);
        push(out, "\",\"tld\":\"");
        push(out, self.tld);
        push(out, "\",\"length\":");
        push_number(out, self.length);
        push(out, ",\"dqs\":");
        push_number(out, self.dqs.points());
        push(out, ",\"explanation\":");
        push_json_text(out, self.explanation);
        push(out, ",\"signals\":");
        write_signals(self.signals, out);
        push(out, "}");
    }

    /// Appends the row as a line of the drops export. Names and TLDs are letters, digits, hyphens
    /// and dots, and need no quotes; the explanation always has them.
    pub fn write_csv(&self, out: &mut Vec<u8>) {
        push(out, self.name);
        push(out, ",");
        push(out, self.tld);
        push(out, ",");
        push_number(out, self.length);
        push(out, ",");
        push_number(out, self.dqs.points());
        push(out, ",\"");
        let mut pieces = self.explanation.split('"');
        push(out, pieces.next().unwrap_or_default());
        for piece in pieces {
            push(out, "\"\"");
            push(out, piece);
        }
        push(out, "\"\r\n");
    }
}

fn write_signals(signals: &Signals<'_>, out: &mut Vec<u8>) {
    push(out, "{\"scorerVersion\":");
    push_number(out, signals.scorer_version);
    push(out, ",\"lengthBand\":\"");
    push(out, signals.length_band);
    push(out, "\",\"dictionary_quality\":");
    push_percent(out, signals.dictionary_quality);
    push(out, ",\"words\":");
    let mut words = JsonArray::open(out);
    signals.words.iter().for_each(|word| push_json_text(words.item(), word));
    words.close();
    push(out, ",\"language\":");
    match signals.language {
        Some(code) => push_json_text(out, code),
        None => push(out, "null"),
    }
    push(out, ",\"digits\":");
    push_number(out, signals.digits);
    push(out, ",\"hyphens\":");
    push_number(out, signals.hyphens);
    push(out, ",\"pronounceability\":");
    push_percent(out, signals.pronounceability);
    push(out, ",\"tld_weight\":");
    push_percent(out, signals.tld_weight);
    push(out, ",\"tldSpread\":");
    push_number(out, signals.tld_spread);
    write_points(&signals.points, out);
    push(out, ",\"caps\":");
    let mut caps = JsonArray::open(out);
    signals.caps.iter().for_each(|cap| write_cap(cap, caps.item()));
    caps.close();
    push(out, "}");
}

fn write_cap(cap: &Cap, out: &mut Vec<u8>) {
    push(out, "{\"name\":");
    push_json_text(out, cap.name);
    push(out, ",\"max\":");
    push_signed(out, cap.max);
    push(out, "}");
}

fn write_points(points: &Points, out: &mut Vec<u8>) {
    let Points {
        start,
        length,
        dictionary,
        market,
        language,
        pronounceability,
        digits,
        hyphens,
        idn,
        tld,
        tld_spread,
        scale,
    } = *points;
    push_part(out, ",\"points\":{\"start\":", start);
    push_part(out, ",\"length\":", length);
    push_part(out, ",\"dictionary\":", dictionary);
    push_part(out, ",\"market\":", market);
    push_part(out, ",\"language\":", language);
    push_part(out, ",\"pronounceability\":", pronounceability);
    push_part(out, ",\"digits\":", digits);
    push_part(out, ",\"hyphens\":", hyphens);
    push_part(out, ",\"idn\":", idn);
    push_part(out, ",\"tld\":", tld);
    push_part(out, ",\"tldSpread\":", tld_spread);
    push_part(out, ",\"scale\":", scale);
    push(out, "}");
}

/// Inlined, so that a name is copied as the few words it is and not by a call.
#[inline(always)]
fn push_part(out: &mut Vec<u8>, name: &str, points: i32) {
    push(out, name);
    push_signed(out, points);
}

/// Inlined likewise.
#[inline(always)]
fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// A JSON array that is being appended to a buffer, item by item.
pub struct JsonArray<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> JsonArray<'a> {
    /// Begins an array at the end of `out`.
    pub fn open(out: &'a mut Vec<u8>) -> JsonArray<'a> {
        out.push(b'[');
        JsonArray { out, is_empty: true }
    }

    /// Where the next item is to be written.
    pub fn item(&mut self) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out
    }

    /// Ends it.
    pub fn close(self) {
        self.out.push(b']');
    }
}

/// Appends `number` in decimal digits.
#[inline]
pub fn push_number(out: &mut Vec<u8>, number: impl Into<u32>) {
    let mut number = number.into();
    if number < 10 {
        return out.push(b'0' + number as u8);
    }
    let mut digits = [0; 10];
    let mut start = digits.len();
    while number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

#[inline]
fn push_signed(out: &mut Vec<u8>, number: i32) {
    if number < 0 {
        out.push(b'-');
    }
    push_number(out, number.unsigned_abs());
}

/// As a number from 0 to 1, in the digits of a float: `0.0`, `0.07`, `0.5`, `1.0`.
#[inline]
fn push_percent(out: &mut Vec<u8>, percent: Percent) {
    let hundredths = percent.get();
    let (tens, ones) = (b'0' + hundredths / 10 % 10, b'0' + hundredths % 10);
    let digits = [b'0' + hundredths / 100, b'.', tens, ones];
    out.extend_from_slice(if ones == b'0' { &digits[..3] } else { &digits });
}

/// Appends `YYYY-MM-DD`.
#[inline]
pub fn push_day(out: &mut Vec<u8>, day: Day) {
    let date = day.date();
    let digit = |number: u32| b'0' + (number % 10) as u8;
    // A day is in a year of four digits.
    let (year, month, day) = (date.year() as u32, date.month(), date.day());
    out.extend_from_slice(&[
        digit(year / 1000),
        digit(year / 100),
        digit(year / 10),
        digit(year),
        b'-',
        digit(month / 10),
        digit(month),
        b'-',
        digit(day / 10),
        digit(day),
    ]);
}

/// Appends `text` as a JSON string.
pub fn push_json_text(out: &mut Vec<u8>, text: &str) {
    // No early end: so the compiler looks at many bytes at once. Texts of ours have none.
    let has_control = text.bytes().fold(false, |found, byte| found | (byte < 0x20));
    let next_escape = |rest: &[u8]| match has_control {
        true => rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\'),
        false => memchr2(b'"', b'\\', rest),
    };
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = next_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        push_escape(out, rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            push(out, "\\u00");
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]);
            return out.extend_from_slice(&[high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::scorer::{Scorer, Scratch};
    use crate::vocab::name::DomainName;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn texts_are_escaped_as_serde_does() {
        let every: String = (0..0x250).filter_map(char::from_u32).collect();
        let long = "plain ".repeat(40);
        for text in ["", "plain", "say \"hi\"", "\\", "\"", "münchen", "日本", &every, &long] {
            let expected = serde_json::to_string(text).expect("text");
            assert_eq!(written(|out| push_json_text(out, text)), expected);
        }
    }

    #[test]
    fn numbers_days_and_shares_are_written_as_serde_does() {
        for number in [0, 1, 9, 10, 99, 100, 255, 65_535, 1_000_000_000, u32::MAX] {
            assert_eq!(written(|out| push_number(out, number)), number.to_string());
        }
        for number in [0, -1, 7, -10, i32::MIN, i32::MAX] {
            assert_eq!(written(|out| push_signed(out, number)), number.to_string());
        }
        for raw in 1..=u16::MAX {
            let day = Day::from_raw(raw).expect("not 0");
            assert_eq!(written(|out| push_day(out, day)), day.to_string());
        }
        for hundredths in 0..=100 {
            let percent = Percent::clamped(hundredths);
            let expected = serde_json::to_string(&percent).expect("a number");
            assert_eq!(written(|out| push_percent(out, percent)), expected);
        }
    }

    #[test]
    fn lists_have_commas_between_their_items() {
        for items in [vec![], vec![1u32], vec![1, 22, 333]] {
            let list = written(|out| {
                let mut list = JsonArray::open(out);
                items.iter().for_each(|&item| push_number(list.item(), item));
                list.close();
            });
            assert_eq!(list, json!(items).to_string());
        }
    }

    /// Names of every kind: words, IDNs, digits, hyphens, caps.
    const NAMES: [&str; 9] = [
        "solar.com",
        "münchen.de",
        "пример.рф",
        "best-cheap-car-shop.co.uk",
        "7777.de",
        "xqzvk.info",
        "a1b2-c3.net",
        "bestshopping24online.com",
        "x.org",
    ];

    #[test]
    fn rows_of_drops_are_the_objects_of_the_api() {
        let mut scratch = Scratch::default();
        for text in NAMES {
            let name = DomainName::parse(text).expect("a name");
            for spread in [1, 3, 400] {
                let scored = Scorer::shared().score(&name, spread, &mut scratch);
                let row = DropRow {
                    name: name.as_str(),
                    tld: name.tld(),
                    length: name.length(),
                    dqs: scored.dqs,
                    explanation: &scored.explanation,
                    signals: &scored.signals,
                };
                let signals = serde_json::to_string(&scored.signals).expect("signals");
                let (domain, tld, length, dqs) = (row.name, row.tld, row.length, row.dqs);
                let said = serde_json::to_string(row.explanation).expect("text");
                assert_eq!(
                    written(|out| row.write_json(out)),
                    format!(
                        "{{\"name\":\"{domain}\",\"tld\":\"{tld}\",\"length\":{length},\
                         \"dqs\":{dqs},\"explanation\":{said},\"signals\":{signals}}}"
                    )
                );
                let quoted = row.explanation.replace('"', "\"\"");
                assert_eq!(
                    written(|out| row.write_csv(out)),
                    format!("{domain},{tld},{length},{dqs},\"{quoted}\"\r\n")
                );
            }
        }
    }

    #[test]
    fn search_results_are_the_objects_of_the_api() {
        let day = "2026-03-15".parse().expect("a day");
        let dqs = Dqs::clamped(80);
        let drop = LatestDrop { date: day, dqs, explanation: "Two words, \"so\" and \"lar\"." };
        for (status, word) in [
            (Status::Registered, "registered"),
            (Status::Redemption, "redemption"),
            (Status::PendingDelete, "pending-delete"),
            (Status::Available, "available"),
            (Status::Unknown, "unknown"),
        ] {
            assert_eq!(serde_json::to_value(status).expect("a word"), word);
            for latest_drop in [None, Some(drop.clone())] {
                let shown = latest_drop.as_ref().map_or(Value::Null, |drop| {
                    json!({ "date": "2026-03-15", "dqs": 80, "explanation": drop.explanation })
                });
                let row = SearchRow {
                    domain: "solar.com",
                    tld: "com",
                    length: 5,
                    current_status: status,
                    latest_drop,
                };
                assert_eq!(
                    written(|out| row.write_json(out)),
                    format!(
                        "{{\"domain\":\"solar.com\",\"tld\":\"com\",\"length\":5,\
                         \"currentStatus\":\"{word}\",\"latestDrop\":{shown}}}"
                    )
                );
            }
        }
    }
}
