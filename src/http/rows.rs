//! JSON and CSV of the rows that the index returns, appended straight to the response buffer.
//!
//! The code is written by hand, because a page of drops has thousands of small values, for which
//! `serde_json` takes three times as long. The tests compare the bytes with those of `serde_json`.

use std::borrow::Cow;

use chrono::Datelike;
use memchr::memchr2;

use crate::edge::csv::{push, push_number, push_quoted_cell};
use crate::index::query::rows::{DropRow, LatestDrop, SearchRow};
use crate::index::rules::preview::Preview;
use crate::index::{DropsPage, SearchPage};
use crate::query::error::{BadParameter, ParameterCode};
use crate::query::list;
use crate::query::params::Params;
use crate::scorer::{Cap, Percent, Points, Signals};
use crate::vocab::day::Day;
use crate::vocab::named::named_enum;
use crate::vocab::stage::Stage;
use crate::vocab::suffix_rank::SuffixRank;
use crate::vocab::time::UnixMs;

/// Bytes to reserve for the JSON of a search result; longer results are rare.
pub const SEARCH_JSON_BYTES: usize = 320;
/// Bytes to reserve for the JSON of a row of the drops list.
pub const DROP_JSON_BYTES: usize = 1_024;
named_enum! {
    /// Member of a row of the drops list, by its name in JSON.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Member {
        Name = "name",
        Unicode = "unicode",
        Tld = "tld",
        Length = "length",
        Dqs = "dqs",
        Explanation = "explanation",
        Signals = "signals",
        Stage = "stage",
        DropDate = "dropDate",
        ReleaseDate = "releaseDate",
        ReleaseAt = "releaseAt",
        ReleaseCertainty = "releaseCertainty",
        ReleaseWindowMinutes = "releaseWindowMinutes",
        DaysToRelease = "daysToRelease",
        Words = "words",
        Language = "language",
        Kind = "kind",
        OtherTlds = "otherTlds",
        DropCount = "dropCount",
        ListedAt = "listedAt",
        PopularityRank = "popularityRank",
        SuffixRank = "suffixRank",
        TypoOf = "typoOf",
        ExpectedTaken = "expectedTaken",
    }
}

/// Default members of a row.
pub const DROP_MEMBERS: &[Member] = &Member::ALL;
/// Default members of a line of an export.
pub const EXPORT_MEMBERS: &[Member] =
    &[Member::Name, Member::Tld, Member::Length, Member::Dqs, Member::Explanation];

/// Returns the distinct members of a row that the parameter `name` requests, in its order; `None`
/// without it. `beside` is an additional accepted name, and the flag says whether it was sent.
///
/// # Errors
/// An unknown member.
pub fn members(
    params: &Params<'_>,
    name: &'static str,
    beside: Option<&str>,
) -> Result<Option<(Vec<Member>, bool)>, BadParameter> {
    let Some(sent) = params.get(name)? else { return Ok(None) };
    let (mut members, mut has_beside) = (Vec::new(), false);
    for item in list::plain(sent) {
        if Some(item) == beside {
            has_beside = true;
            continue;
        }
        let known = Member::ALL.into_iter().find(|member| member.as_str() == item);
        let member = known.ok_or_else(|| {
            let what = format!("must be some of {}", Member::NAMES.join(", "));
            BadParameter::coded(ParameterCode::UnknownField, name, what)
        })?;
        if !members.contains(&member) {
            members.push(member);
        }
    }
    Ok(Some((members, has_beside)))
}

/// Appends a page of the drops list as a JSON array of rows with these members; `also` adds to each row.
pub fn push_drops(
    page: &DropsPage<'_>,
    members: &[Member],
    also: impl Fn(&DropRow<'_>, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let mut rows = JsonArray::open(out);
    page.for_each(|row| {
        let out = rows.item();
        push_drop(row, members, out);
        also(row, out);
    });
    rows.close();
}

/// Appends the sample rows of a rule preview as a JSON array.
pub fn push_samples(preview: &Preview<'_>, out: &mut Vec<u8>) {
    let mut rows = JsonArray::open(out);
    preview.for_each_sample(|row| push_drop(row, DROP_MEMBERS, rows.item()));
    rows.close();
}

/// Returns the TLDs of the page's view as a JSON array. The index caches the array for the day,
/// because it takes about ten kilobytes in every response.
pub fn tlds_json<'a>(page: &'a DropsPage<'_>) -> Cow<'a, str> {
    page.cached_tlds(|tlds| {
        let mut json = Vec::new();
        let mut array = JsonArray::open(&mut json);
        tlds.for_each(|tld| push_json_text(array.item(), tld));
        array.close();
        String::from_utf8(json).expect("built from text")
    })
}

/// Appends a page of search results as a JSON array.
pub fn push_search_results(page: &SearchPage<'_>, out: &mut Vec<u8>) {
    let mut rows = JsonArray::open(out);
    page.for_each(|row| push_search_result(row, rows.item()));
    rows.close();
}

/// Appends a search result as a JSON object. Names and TLDs consist of letters, digits, hyphens and
/// dots, and need no escapes.
fn push_search_result(row: &SearchRow<'_>, out: &mut Vec<u8>) {
    push(out, "{\"domain\":\"");
    push(out, row.domain);
    push(out, "\",\"unicode\":\"");
    push(out, &row.unicode);
    push(out, "\",\"tld\":\"");
    push(out, row.tld);
    push(out, "\",\"length\":");
    push_number(out, row.length);
    push(out, ",\"currentStatus\":\"");
    push(out, row.current_status.as_str());
    push(out, "\",\"dqs\":");
    push_number(out, row.dqs.points());
    push(out, ",\"stage\":");
    push_word(out, row.stage.map(Stage::as_str));
    push(out, ",\"latestDrop\":");
    match &row.latest_drop {
        Some(drop) => push_latest_drop(drop, out),
        None => push(out, "null"),
    }
    push(out, "}");
}

fn push_latest_drop(drop: &LatestDrop<'_>, out: &mut Vec<u8>) {
    push(out, "{\"date\":\"");
    push_day(out, drop.date);
    push(out, "\",\"dqs\":");
    push_number(out, drop.dqs.points());
    push(out, ",\"explanation\":");
    push_json_text(out, drop.explanation);
    push(out, "}");
}

/// Appends these members of a row of the drops list as a JSON object.
pub fn push_drop(row: &DropRow<'_>, members: &[Member], out: &mut Vec<u8>) {
    let mut before = "{\"";
    for &member in members {
        push(out, before);
        push(out, member.as_str());
        push(out, "\":");
        push_value(row, member, out);
        before = ",\"";
    }
    push(out, if members.is_empty() { "{}" } else { "}" });
}

/// Appends a member of a row as a JSON value. Names and TLDs need no escapes.
fn push_value(row: &DropRow<'_>, member: Member, out: &mut Vec<u8>) {
    match member {
        Member::Name => push_word(out, Some(row.name)),
        Member::Unicode => push_word(out, Some(&row.unicode)),
        Member::Tld => push_word(out, Some(row.tld)),
        Member::Length => push_number(out, row.length),
        Member::Dqs => push_number(out, row.dqs.points()),
        Member::Explanation => push_json_text(out, row.explanation),
        Member::Signals => push_signals(row.signals, out),
        Member::Stage => push_word(out, Some(row.stage.as_str())),
        Member::DropDate => push_quoted_day(out, row.drop_date),
        Member::ReleaseDate => push_quoted_day(out, row.release_date),
        Member::ReleaseAt => push_quoted_instant(out, row.release_at),
        Member::ReleaseCertainty => push_word(out, Some(row.release_certainty.as_str())),
        Member::ReleaseWindowMinutes => push_number(out, row.release_window_minutes),
        Member::DaysToRelease => push_signed(out, row.days_to_release),
        Member::Words => push_texts(out, row.words.iter()),
        Member::Language => push_word(out, row.language),
        Member::Kind => push_word(out, Some(row.kind.as_str())),
        Member::OtherTlds => push_number(out, row.other_tlds),
        Member::DropCount => push_number(out, row.drop_count),
        Member::ListedAt => push_quoted_instant(out, Some(row.listed_at)),
        Member::PopularityRank => match row.popularity_rank {
            Some(rank) => push_number(out, rank.get()),
            None => push(out, "null"),
        },
        Member::SuffixRank => match row.suffix_rank {
            Some(rank) => push_suffix_rank(out, rank),
            None => push(out, "null"),
        },
        Member::TypoOf => match row.typo_of {
            Some(popular) => {
                push(out, "{\"name\":");
                push_json_text(out, &popular.name);
                push(out, ",\"rank\":");
                push_number(out, popular.rank.get());
                push(out, "}");
            }
            None => push(out, "null"),
        },
        Member::ExpectedTaken => match row.expected_taken {
            Some(expected) => push_number(out, expected.percent()),
            None => push(out, "null"),
        },
    }
}

/// Appends percent with at most one decimal.
fn push_suffix_rank(out: &mut Vec<u8>, rank: SuffixRank) {
    push_number(out, rank.tenths() / 10);
    if !rank.tenths().is_multiple_of(10) {
        push(out, ".");
        push_number(out, rank.tenths() % 10);
    }
}

/// Appends a date as a JSON string.
pub fn push_quoted_day(out: &mut Vec<u8>, day: Day) {
    push(out, "\"");
    push_day(out, day);
    push(out, "\"");
}

/// Appends a word that needs no escapes as a JSON string, or `null`.
fn push_word(out: &mut Vec<u8>, word: Option<&str>) {
    let Some(word) = word else { return push(out, "null") };
    push(out, "\"");
    push(out, word);
    push(out, "\"");
}

/// Appends an instant as a JSON string, or `null`.
pub fn push_quoted_instant(out: &mut Vec<u8>, at: Option<UnixMs>) {
    let Some(at) = at else { return push(out, "null") };
    push(out, "\"");
    push_instant(out, at);
    push(out, "\"");
}

/// Appends an instant in the format of [`UnixMs`].
fn push_instant(out: &mut Vec<u8>, at: UnixMs) {
    let Some(day) = Day::from_instant(at.instant()) else {
        return push(out, &at.to_string());
    };
    push_day(out, day);
    let ms = (at.get() % MS_PER_DAY) as u32;
    let digit = |number: u32| b'0' + (number % 10) as u8;
    let two = |number: u32| [digit(number / 10), digit(number)];
    let [hours, minutes, seconds] =
        [two(ms / 3_600_000), two(ms / 60_000 % 60), two(ms / 1_000 % 60)];
    out.push(b'T');
    out.extend_from_slice(&hours);
    out.push(b':');
    out.extend_from_slice(&minutes);
    out.push(b':');
    out.extend_from_slice(&seconds);
    out.extend_from_slice(&[b'.', digit(ms / 100), digit(ms / 10), digit(ms), b'Z']);
}

const MS_PER_DAY: u64 = 86_400_000;

/// Appends these members of a row as a line of CSV. Words are separated by spaces. Explanation, words
/// and signals are quoted; no other value needs quotes.
pub fn push_drop_columns(row: &DropRow<'_>, members: &[Member], out: &mut Vec<u8>) {
    for (at, &member) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match member {
            Member::Name => push(out, row.name),
            Member::Unicode => push(out, &row.unicode),
            Member::Tld => push(out, row.tld),
            Member::Stage => push(out, row.stage.as_str()),
            Member::DropDate => push_day(out, row.drop_date),
            Member::ReleaseDate => push_day(out, row.release_date),
            Member::ReleaseAt => row.release_at.iter().for_each(|at| push_instant(out, *at)),
            Member::ReleaseCertainty => push(out, row.release_certainty.as_str()),
            Member::ListedAt => push_instant(out, row.listed_at),
            Member::Explanation => push_quoted_cell(out, row.explanation),
            Member::Words => {
                let words: Vec<&str> = row.words.iter().collect();
                push_quoted_cell(out, &words.join(" "));
            }
            Member::Language => push(out, row.language.unwrap_or_default()),
            Member::PopularityRank => {
                row.popularity_rank.iter().for_each(|rank| push_number(out, rank.get()));
            }
            Member::SuffixRank => {
                row.suffix_rank.iter().for_each(|rank| push_suffix_rank(out, *rank));
            }
            Member::TypoOf => row.typo_of.iter().for_each(|popular| push(out, &popular.name)),
            Member::ExpectedTaken => {
                row.expected_taken.iter().for_each(|expected| push_number(out, expected.percent()));
            }
            Member::Kind => push(out, row.kind.as_str()),
            Member::Signals => {
                let mut json = Vec::new();
                push_signals(row.signals, &mut json);
                push_quoted_cell(out, &String::from_utf8_lossy(&json));
            }
            Member::Length
            | Member::Dqs
            | Member::ReleaseWindowMinutes
            | Member::DaysToRelease
            | Member::OtherTlds
            | Member::DropCount => push_value(row, member, out),
        }
    }
    push(out, "\r\n");
}

fn push_signals(signals: &Signals<'_>, out: &mut Vec<u8>) {
    push(out, "{\"scorerVersion\":");
    push_number(out, signals.scorer_version);
    push(out, ",\"lengthBand\":\"");
    push(out, signals.length_band);
    push(out, "\",\"dictionary_quality\":");
    push_percent(out, signals.dictionary_quality);
    push(out, ",\"words\":");
    push_texts(out, signals.words.iter());
    push(out, ",\"language\":");
    push_word(out, signals.language);
    push(out, ",\"kind\":\"");
    push(out, signals.kind.as_str());
    push(out, "\",\"pattern\":");
    push_optional(out, signals.pattern);
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
    push_points(&signals.points, out);
    push(out, ",\"caps\":");
    let mut caps = JsonArray::open(out);
    signals.caps.iter().for_each(|cap| push_cap(cap, caps.item()));
    caps.close();
    push(out, "}");
}

fn push_texts<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    let mut array = JsonArray::open(out);
    texts.for_each(|text| push_json_text(array.item(), text));
    array.close();
}

fn push_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => push_json_text(out, text),
        None => push(out, "null"),
    }
}

fn push_cap(cap: &Cap, out: &mut Vec<u8>) {
    push(out, "{\"name\":");
    push_json_text(out, cap.name);
    push(out, ",\"max\":");
    push_signed(out, cap.max);
    push(out, "}");
}

fn push_points(points: &Points, out: &mut Vec<u8>) {
    let Points { base, tld, length, dictionary, market, pronounceability, characters, tld_spread } =
        *points;
    push_part(out, ",\"points\":{\"base\":", base);
    push_part(out, ",\"tld\":", tld);
    push_part(out, ",\"length\":", length);
    push_part(out, ",\"dictionary\":", dictionary);
    push_part(out, ",\"market\":", market);
    push_part(out, ",\"pronounceability\":", pronounceability);
    push_part(out, ",\"characters\":", characters);
    push_part(out, ",\"tldSpread\":", tld_spread);
    push(out, "}");
}

/// Inlined, so that the compiler copies a constant name with a few moves instead of a call.
#[inline(always)]
fn push_part(out: &mut Vec<u8>, name: &str, points: i32) {
    push(out, name);
    push_signed(out, points);
}

/// JSON array that is appended to a buffer item by item.
pub struct JsonArray<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> JsonArray<'a> {
    /// Starts an array at the end of `out`.
    pub fn open(out: &'a mut Vec<u8>) -> JsonArray<'a> {
        out.push(b'[');
        JsonArray { out, is_empty: true }
    }

    /// Returns the buffer, ready for the next item.
    pub fn item(&mut self) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out
    }

    /// Ends the array.
    pub fn close(self) {
        self.out.push(b']');
    }
}

#[inline]
fn push_signed(out: &mut Vec<u8>, number: i32) {
    if number < 0 {
        out.push(b'-');
    }
    push_number(out, number.unsigned_abs());
}

/// Appends a number from 0 to 1 in the format of floats: `0.0`, `0.07`, `0.5`, `1.0`.
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
    // Years of a `Day` have four digits.
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
    // The fold has no early exit, so that the compiler vectorises it. The server's own texts
    // contain no control characters.
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
    use crate::edge::csv::push_drop_csv;
    use crate::index::query::rows::Status;
    use crate::scorer::{Scorer, Scratch, Spread};
    use crate::vocab::dqs::Dqs;
    use crate::vocab::expected_taken::ExpectedTaken;
    use crate::vocab::name::DomainName;
    use crate::vocab::popularity::ListRank;
    use crate::vocab::release_time::Certainty;

    fn output_of(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn texts_are_escaped_like_serde_json() {
        let every: String = (0..0x250).filter_map(char::from_u32).collect();
        let long = "plain ".repeat(40);
        for text in ["", "plain", "say \"hi\"", "\\", "\"", "münchen", "日本", &every, &long] {
            let expected = serde_json::to_string(text).expect("text");
            assert_eq!(output_of(|out| push_json_text(out, text)), expected);
        }
    }

    #[test]
    fn numbers_days_and_percentages_match_serde_json() {
        for number in [0, 1, 9, 10, 99, 100, 255, 65_535, 1_000_000_000, u32::MAX] {
            assert_eq!(output_of(|out| push_number(out, number)), number.to_string());
        }
        for number in [0, -1, 7, -10, i32::MIN, i32::MAX] {
            assert_eq!(output_of(|out| push_signed(out, number)), number.to_string());
        }
        for raw in 1..=u16::MAX {
            let day = Day::from_raw(raw).expect("not 0");
            assert_eq!(output_of(|out| push_day(out, day)), day.to_string());
        }
        for hundredths in 0..=100 {
            let percent = Percent::clamped(hundredths);
            let expected = serde_json::to_string(&percent).expect("a number");
            assert_eq!(output_of(|out| push_percent(out, percent)), expected);
        }
    }

    #[test]
    fn array_items_are_separated_by_commas() {
        for items in [vec![], vec![1u32], vec![1, 22, 333]] {
            let list = output_of(|out| {
                let mut list = JsonArray::open(out);
                items.iter().for_each(|&item| push_number(list.item(), item));
                list.close();
            });
            assert_eq!(list, json!(items).to_string());
        }
    }

    /// Names with words, IDNs, digits, hyphens and capped scores.
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
    fn drop_rows_match_serde_json_and_csv() {
        let mut scratch = Scratch::default();
        for text in NAMES {
            let name = DomainName::parse(text).expect("a name");
            for spread in [1, 3, 400] {
                let scored = Scorer::shared().score(&name, Spread::of(spread), &mut scratch);
                let row = DropRow {
                    name: name.as_str(),
                    unicode: name.unicode(),
                    tld: name.tld(),
                    length: name.length(),
                    dqs: scored.dqs,
                    explanation: &scored.explanation,
                    signals: &scored.signals,
                    stage: Stage::PendingDelete,
                    drop_date: "2026-03-15".parse().expect("a day"),
                    release_date: "2026-04-19".parse().expect("a day"),
                    release_at: UnixMs::new(1_776_621_600_000),
                    release_certainty: Certainty::Window,
                    release_window_minutes: 60,
                    days_to_release: -3,
                    words: &scored.signals.words,
                    language: scored.signals.language,
                    kind: scored.signals.kind,
                    other_tlds: 12,
                    drop_count: 2,
                    listed_at: "2026-03-16T01:02:03.045Z".parse().expect("an instant"),
                    first_batch: 1,
                    popularity_rank: ListRank::new(12_345),
                    suffix_rank: SuffixRank::from_tenths(4),
                    typo_of: None,
                    expected_taken: ExpectedTaken::new(31),
                };
                let signals = serde_json::to_string(&scored.signals).expect("signals");
                let (domain, tld, length, dqs) = (row.name, row.tld, row.length, row.dqs);
                let explanation = serde_json::to_string(row.explanation).expect("text");
                let words = serde_json::to_string(&scored.signals.words).expect("words");
                let language = serde_json::to_string(&scored.signals.language).expect("a code");
                assert_eq!(
                    output_of(|out| push_drop(&row, DROP_MEMBERS, out)),
                    format!(
                        "{{\"name\":\"{domain}\",\"unicode\":\"{}\",\"tld\":\"{tld}\",\"length\":{length},\
                         \"dqs\":{dqs},\"explanation\":{explanation},\"signals\":{signals},\
                         \"stage\":\"pending-delete\",\"dropDate\":\"2026-03-15\",\
                         \"releaseDate\":\"2026-04-19\",\
                         \"releaseAt\":\"2026-04-19T18:00:00.000Z\",\
                         \"releaseCertainty\":\"window\",\"releaseWindowMinutes\":60,\"daysToRelease\":-3,\"words\":{words},\
                         \"language\":{language},\"kind\":\"{}\",\"otherTlds\":12,\
                         \"dropCount\":2,\"listedAt\":\"2026-03-16T01:02:03.045Z\",\
                         \"popularityRank\":12345,\"suffixRank\":0.4,\"typoOf\":null,\"expectedTaken\":31}}",
                        row.unicode, scored.signals.kind
                    )
                );
                let some = [Member::ReleaseDate, Member::Signals];
                let cell = signals.replace('"', "\"\"");
                assert_eq!(
                    output_of(|out| push_drop_columns(&row, &some, out)),
                    format!("2026-04-19,\"{cell}\"\r\n")
                );
                assert_eq!(
                    output_of(|out| push_drop(&row, &some[..1], out)),
                    "{\"releaseDate\":\"2026-04-19\"}"
                );
                assert_eq!(output_of(|out| push_drop(&row, &[], out)), "{}");
                let quoted = row.explanation.replace('"', "\"\"");
                assert_eq!(
                    output_of(|out| push_drop_csv(&row, out)),
                    format!("{domain},{tld},{length},{dqs},\"{quoted}\"\r\n")
                );
            }
        }
    }

    #[test]
    fn search_results_match_the_api_schema() {
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
                let expected_drop = latest_drop.as_ref().map_or(Value::Null, |drop| {
                    json!({ "date": "2026-03-15", "dqs": 80, "explanation": drop.explanation })
                });
                let row = SearchRow {
                    domain: "solar.com",
                    unicode: "solar.com".into(),
                    tld: "com",
                    length: 5,
                    current_status: status,
                    dqs,
                    stage: Some(Stage::Catchable),
                    latest_drop,
                };
                assert_eq!(
                    output_of(|out| push_search_result(&row, out)),
                    format!(
                        "{{\"domain\":\"solar.com\",\"unicode\":\"solar.com\",\"tld\":\"com\",\"length\":5,\
                         \"currentStatus\":\"{word}\",\"dqs\":80,\"stage\":\"catchable\",\
                         \"latestDrop\":{expected_drop}}}"
                    )
                );
            }
        }
    }
}
