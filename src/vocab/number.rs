//! Numbers as people write them, with group marks and a currency. A number that can be read in two ways is
//! refused: a mark is never dropped because it might be one.

use std::borrow::Cow;
use std::fmt::Write;

use compact_str::CompactString;

/// Characters of a refused text that an error repeats.
const ECHO_CHARS_MAX: usize = 40;
/// Marks between groups of three digits that no country writes before decimals: blanks and apostrophes.
const GROUP_MARKS: [char; 6] = [' ', '\u{a0}', '\u{2009}', '\u{202f}', '\'', '\u{2019}'];

/// Mark before the decimals in the file or form that a number is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1,250.50`: forms, and files separated by commas or tabs.
    Point,
    /// `1.250,50`: files separated by semicolons. `1250.50` is read too.
    Comma,
}

/// A text that is no number, or more than one. Written as the end of an error: `; write 12.50, not "12,50"`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NumberError(CompactString);

impl NumberError {
    fn new(sent: &str, write: &[&str]) -> NumberError {
        let mut text = CompactString::default();
        let sent: Cow<'_, str> = match sent.char_indices().nth(ECHO_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &sent[..end]).into(),
            None => sent.into(),
        };
        let written = match write {
            [] => write!(text, ", not {sent:?}"),
            write => write!(text, "; write {}, not {sent:?}", write.join(" or ")),
        };
        written.expect("a text takes what is written to it");
        NumberError(text)
    }
}

/// Reads a number that a person wrote, and returns its digits with at most one point. A mark between
/// groups is dropped only where one to three digits come before it and three after each.
///
/// # Errors
/// Other texts, with the way to write the number where it can be guessed.
pub fn plain(text: &str, decimals: DecimalMark) -> Result<String, NumberError> {
    let sent = text.trim();
    let refused = |write: &[&str]| Err(NumberError::new(sent, write));
    let is_mark = |char: char| matches!(char, '.' | ',') || GROUP_MARKS.contains(&char);
    if !sent.contains(|char: char| char.is_ascii_digit())
        || sent.contains(|char: char| !char.is_ascii_digit() && !is_mark(char))
    {
        return refused(&[]);
    }
    // A point that ends the number has no decimals behind it.
    let number = sent.strip_suffix('.').unwrap_or(sent);
    let mut marks: Vec<char> = number.chars().filter(|char| is_mark(*char)).collect();
    let parts: Vec<&str> = number.split(is_mark).collect();
    let (first, rest) = parts.split_first().expect("a split has one part");
    let Some(last_mark) = marks.last().copied() else { return Ok(number.to_owned()) };
    let last = *rest.last().expect("a part after the mark");
    let groups = |parts: &[&str]| {
        (1..=3).contains(&first.len())
            && !first.starts_with('0')
            && parts.iter().all(|part| part.len() == 3)
    };
    let occurs = marks.iter().filter(|mark| **mark == last_mark).count();
    let is_decimal = matches!(last_mark, '.' | ',') && occurs == 1;
    if is_decimal && (marks.len() > 1 || (1..=2).contains(&last.len())) {
        marks.pop();
        let wholes = &rest[..rest.len() - 1];
        let one_kind = marks.windows(2).all(|pair| pair[0] == pair[1]);
        if !(1..=2).contains(&last.len()) || !one_kind || !(wholes.is_empty() || groups(wholes)) {
            return refused(&[]);
        }
        let first = if first.is_empty() { "0" } else { first };
        let number = format!("{first}{}.{last}", wholes.concat());
        return match (last_mark, decimals) {
            ('.', _) | (_, DecimalMark::Comma) => Ok(number),
            _ => refused(&[&number]),
        };
    }
    let one_kind = marks.iter().all(|mark| *mark == last_mark);
    if !one_kind || !groups(rest) {
        return refused(&[]);
    }
    let number = parts.concat();
    match (last_mark, decimals) {
        // A single mark before three digits: groups in one country, decimals in another.
        (',', DecimalMark::Point) => Ok(number),
        ('.' | ',', _) if occurs == 1 => match last.trim_end_matches('0') {
            "" => refused(&[&number, first]),
            cents if cents.len() < 3 => refused(&[&number, &format!("{first}.{cents}")]),
            _ => refused(&[&number]),
        },
        ('.', DecimalMark::Point) => refused(&[&number]),
        _ => Ok(number),
    }
}

/// Reads a whole number that a person wrote: `10,000`.
///
/// # Errors
/// As [`plain`]; decimals.
pub fn whole(text: &str) -> Result<u64, NumberError> {
    let digits = plain(text, DecimalMark::Point)?;
    digits.parse().map_err(|_| NumberError::new(text.trim(), &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecimalMark::{Comma, Point};

    #[test]
    fn a_mark_is_dropped_only_between_groups_of_three() {
        for (text, point, comma) in [
            ("0", Some("0"), Some("0")),
            ("1250", Some("1250"), Some("1250")),
            ("12.5", Some("12.5"), Some("12.5")),
            ("12.50", Some("12.50"), Some("12.50")),
            ("0.29", Some("0.29"), Some("0.29")),
            (" 12 ", Some("12"), Some("12")),
            // A comma before one or two digits is a decimal comma.
            ("12,5", None, Some("12.5")),
            ("1,25", None, Some("1.25")),
            ("12,50", None, Some("12.50")),
            ("1250,00", None, Some("1250.00")),
            ("1.250,00", None, Some("1250.00")),
            ("1.250.000,5", None, Some("1250000.5")),
            // A point after commas cannot be anything but the decimal point.
            ("1,250.00", Some("1250.00"), Some("1250.00")),
            ("1,250,000.5", Some("1250000.5"), Some("1250000.5")),
            ("1,250,000", Some("1250000"), Some("1250000")),
            ("1.250.000", None, Some("1250000")),
            ("1,250", Some("1250"), None),
            ("999,999", Some("999999"), None),
            ("1.250", None, None),
            ("0,250", None, None),
            ("0.250", None, None),
            ("012,500", None, None),
            // Blanks and apostrophes are between groups only.
            ("1 250", Some("1250"), Some("1250")),
            ("1\u{a0}250,50", None, Some("1250.50")),
            ("1\u{202f}250.50", Some("1250.50"), Some("1250.50")),
            ("1'250'000.5", Some("1250000.5"), Some("1250000.5")),
            ("1’250", Some("1250"), Some("1250")),
            ("1 25", None, None),
            ("1'2", None, None),
            // Malformed.
            ("1,2,5", None, None),
            ("12,50,00", None, None),
            ("1,250,00", None, None),
            ("12,50.00", None, None),
            ("1.25.0", None, None),
            ("1250,000", None, None),
            ("1,2500", None, None),
            ("1,,250", None, None),
            ("1 250,000.5", None, None),
            ("1'250 000", None, None),
            ("12.345", None, None),
            ("1234.567", None, None),
            ("1,250.000", None, None),
            (".5", Some("0.5"), Some("0.5")),
            (",5", None, Some("0.5")),
            ("5.", Some("5"), Some("5")),
            ("1,250.", Some("1250"), None),
            ("5,", None, None),
            ("5 .", None, None),
            (",250", None, None),
            (".", None, None),
            ("", None, None),
            (",", None, None),
            ("-1", None, None),
            ("+1", None, None),
            ("1e3", None, None),
            ("1.2E+05", None, None),
            ("0x10", None, None),
            ("12 dollars", None, None),
            ("１２", None, None),
            ("٣", None, None),
            ("NaN", None, None),
        ] {
            assert_eq!(plain(text, Point).ok().as_deref(), point, "{text:?} with a point");
            assert_eq!(plain(text, Comma).ok().as_deref(), comma, "{text:?} with a comma");
        }
    }

    #[test]
    fn a_refused_number_says_what_to_write() {
        for (text, decimals, error) in [
            ("12,50", Point, "; write 12.50, not \"12,50\""),
            ("1.250,00", Point, "; write 1250.00, not \"1.250,00\""),
            ("1.250", Point, "; write 1250 or 1.25, not \"1.250\""),
            ("1,250", Comma, "; write 1250 or 1.25, not \"1,250\""),
            ("1.250.000", Point, "; write 1250000, not \"1.250.000\""),
            ("1.000", Point, "; write 1000 or 1, not \"1.000\""),
            ("12.345", Point, "; write 12345, not \"12.345\""),
            ("ten", Point, ", not \"ten\""),
        ] {
            let refused = plain(text, decimals).expect_err(text);
            assert_eq!(refused.to_string(), error, "{text}");
        }
        let long = plain(&"é".repeat(100), Point).expect_err("no number").to_string();
        assert_eq!(long.chars().filter(|char| *char == 'é').count(), ECHO_CHARS_MAX);
        assert_eq!(whole("10,000").ok(), Some(10_000));
        for text in ["10,5", "1.5", "1,00", "99999999999999999999", ""] {
            assert!(whole(text).is_err(), "{text}");
        }
    }
}
