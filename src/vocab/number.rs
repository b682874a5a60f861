//! Numbers as people write them, with group marks and a currency. An ambiguous number is refused: a
//! mark that could be a decimal point is never dropped.

use std::borrow::Cow;

use compact_str::{CompactString, format_compact};

/// Maximum characters of a refused text that an error repeats.
const ECHO_CHARS_MAX: usize = 40;
/// Marks between groups of three digits that no country uses as the decimal mark: blanks and
/// apostrophes.
const GROUP_MARKS: [char; 6] = [' ', '\u{a0}', '\u{2009}', '\u{202f}', '\'', '\u{2019}'];

/// The decimal mark in the file or form of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1,250.50`: files separated by commas or tabs.
    Point,
    /// `1.250,50`: files separated by semicolons. `1250.50` is also accepted.
    Comma,
    /// `1,250.50`, `1.250,50` or `12,50`: fields of forms, whose pages show the number as it was read
    /// ([`is_exact`]) before it is saved. `1,250` has groups, and `1.250` is refused.
    Either,
}

/// A text that is not a number, or an ambiguous one. Printed at the end of an error message: `;
/// write 12.50, not "12,50"`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NumberError(CompactString);

/// Returns a refused text as an error repeats it.
fn echo(sent: &str) -> Cow<'_, str> {
    match sent.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &sent[..end]).into(),
        None => sent.into(),
    }
}

impl NumberError {
    fn new(sent: &str, write: &[String]) -> NumberError {
        let sent = echo(sent);
        NumberError(match write {
            [] => format_compact!(", not {sent:?}"),
            write => format_compact!("; write {}, not {sent:?}", write.join(" or ")),
        })
    }

    /// Returns the error for an amount in a currency that is not supported. `number` is the amount
    /// without the currency.
    pub fn in_currency(sent: &str, number: &str, currency: &str, kept: &str) -> NumberError {
        let sent = echo(sent);
        let like = match plain(number, DecimalMark::Comma) {
            Ok(number) => number,
            Err(_) => "12.50".to_owned(),
        };
        NumberError(format_compact!(
            "; only {kept} are kept, and {sent:?} is in {currency}: convert it, and write it as {like} is written"
        ))
    }
}

/// Reads a number that a person wrote, and returns its digits with at most one point. Marks between
/// groups are dropped only if one to three digits precede the first one and three follow each.
///
/// # Errors
/// The text is not such a number. If the number can be guessed, the error says how to write it, to
/// the cent.
pub fn plain(text: &str, decimals: DecimalMark) -> Result<String, NumberError> {
    let sent = text.trim();
    let readings = Readings::of(sent).ok_or_else(|| NumberError::new(sent, &[]))?;
    let refused = || Err(NumberError::new(sent, &readings.suggested()));
    let Some(last_mark) = readings.last_mark else {
        return readings.grouped.clone().map_or_else(refused, Ok);
    };
    match (&readings.grouped, &readings.decimal) {
        // A single mark before three digits separates groups in some countries, and decimals in others.
        (Some(grouped), Some(_)) if last_mark == ',' && decimals != DecimalMark::Comma => {
            Ok(grouped.clone())
        }
        (Some(grouped), None) if (last_mark, decimals) != ('.', DecimalMark::Point) => {
            Ok(grouped.clone())
        }
        (None, Some((whole, places))) if (1..=2).contains(&places.len()) => {
            match (last_mark, decimals) {
                (',', DecimalMark::Point) => refused(),
                _ => Ok(format!("{whole}.{places}")),
            }
        }
        _ => refused(),
    }
}

/// Returns true for a number that is read the same way everywhere: digits, with decimals after a point
/// if any. `1,250.50` is one, `1,250` and `12,50` are not.
pub fn is_exact(text: &str) -> bool {
    Readings::of(text).is_some_and(|it| match it.last_mark {
        Some(mark) => mark == '.' && it.grouped.is_none() && it.nearly_grouped.is_none(),
        None => true,
    })
}

/// The possible interpretations of digits with marks between them.
pub struct Readings {
    /// The interpretation in which every mark is a group (thousands) separator.
    pub grouped: Option<String>,
    /// The same interpretation of a single mark before three digits, but without the rule for the length
    /// of the first group.
    nearly_grouped: Option<String>,
    /// The interpretation in which the last mark is the decimal mark: the digits before and after it.
    pub decimal: Option<(String, String)>,
    /// `None` for digits alone, which are `grouped`.
    pub last_mark: Option<char>,
}

impl Readings {
    /// Returns the interpretations of a text; `None` if it holds no digit, or characters that are neither
    /// digits nor marks.
    pub fn of(text: &str) -> Option<Readings> {
        let is_mark = |char: char| matches!(char, '.' | ',') || GROUP_MARKS.contains(&char);
        if !text.contains(|char: char| char.is_ascii_digit())
            || text.contains(|char: char| !char.is_ascii_digit() && !is_mark(char))
        {
            return None;
        }
        // A point at the end is not followed by decimals.
        let number = text.strip_suffix('.').unwrap_or(text);
        let marks: Vec<char> = number.chars().filter(|char| is_mark(*char)).collect();
        let Some((&last_mark, earlier)) = marks.split_last() else {
            let grouped = Some(number.to_owned());
            return Some(Readings {
                grouped,
                nearly_grouped: None,
                decimal: None,
                last_mark: None,
            });
        };
        Some(Readings::new(&number.split(is_mark).collect::<Vec<_>>(), last_mark, earlier))
    }

    /// Reads the groups of digits around the marks `earlier` and `last_mark`; there is one more
    /// group than marks.
    fn new(parts: &[&str], last_mark: char, earlier: &[char]) -> Readings {
        let [first, middle @ .., last] = parts else { unreachable!("a mark has two sides") };
        let is_group = |part: &&str| part.len() == 3;
        let starts_groups = (1..=3).contains(&first.len()) && !first.starts_with('0');
        let is_grouped = starts_groups
            && middle.iter().chain([last]).all(is_group)
            && earlier.iter().all(|mark| *mark == last_mark);
        let is_one_kind = earlier.windows(2).all(|pair| pair[0] == pair[1]);
        let is_decimal = matches!(last_mark, '.' | ',')
            && !earlier.contains(&last_mark)
            && !last.is_empty()
            && is_one_kind
            && (middle.is_empty() || starts_groups && middle.iter().all(is_group));
        let whole = || if parts.len() == 2 && first.is_empty() { "0" } else { first };
        let is_nearly = middle.is_empty()
            && is_group(last)
            && !matches!(first.bytes().next(), None | Some(b'0'));
        Readings {
            nearly_grouped: is_nearly.then(|| parts.concat()),
            grouped: is_grouped.then(|| parts.concat()),
            decimal: is_decimal
                .then(|| (format!("{}{}", whole(), middle.concat()), (*last).to_owned())),
            last_mark: Some(last_mark),
        }
    }

    /// Returns the readings in the form that every field accepts: without groups, rounded to the
    /// cent.
    fn suggested(&self) -> Vec<String> {
        let decimal = self.decimal.as_ref().and_then(|(whole, digits)| {
            // `012,500` has neither reading.
            let is_plain = whole == "0" || !whole.starts_with('0');
            match digits.len() {
                1..=2 => Some(format!("{whole}.{digits}")),
                _ => is_plain.then(|| rounded(whole, digits)).flatten(),
            }
        });
        let grouped = self.grouped.clone().or_else(|| self.nearly_grouped.clone());
        let mut all: Vec<String> = grouped.into_iter().chain(decimal).collect();
        all.dedup();
        all
    }
}

/// Rounds a number half up to two decimals and returns its shortest text; `None` if it is too large
/// for any field.
fn rounded(whole: &str, decimals: &str) -> Option<String> {
    let mut digits = decimals.bytes().chain(std::iter::repeat(b'0'));
    let cents: String = digits.by_ref().take(2).map(char::from).collect();
    let rounds_up = digits.next().is_some_and(|digit| digit >= b'5');
    let cents = format!("{whole}{cents}").parse::<u64>().ok()?.checked_add(rounds_up.into())?;
    let number = format!("{}.{:02}", cents / 100, cents % 100);
    Some(number.trim_end_matches('0').trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecimalMark::{Comma, Either, Point};

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
            // A point after commas can only be the decimal point.
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
            // Blanks and apostrophes only separate groups.
            ("1 250", Some("1250"), Some("1250")),
            ("1\u{a0}250,50", None, Some("1250.50")),
            ("1\u{202f}250.50", Some("1250.50"), Some("1250.50")),
            ("1'250'000.5", Some("1250000.5"), Some("1250000.5")),
            ("1’250", Some("1250"), Some("1250")),
            ("1 25", None, None),
            ("1'2", None, None),
            // Malformed numbers.
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
    fn forms_accept_either_decimal_mark_and_refuse_what_is_ambiguous() {
        for (text, number) in [
            ("12.5", Some("12.5")),
            ("12,5", Some("12.5")),
            ("12,50", Some("12.50")),
            ("1.250,00", Some("1250.00")),
            ("1,250.00", Some("1250.00")),
            ("1 250,5", Some("1250.5")),
            ("1,250", Some("1250")),
            ("1.250.000", Some("1250000")),
            ("1,250,000", Some("1250000")),
            ("1.250", None),
            ("0,250", None),
            ("12.345", None),
            ("12,50.00", None),
            ("1,2,5", None),
        ] {
            assert_eq!(plain(text, Either).ok().as_deref(), number, "{text:?}");
        }
        for text in ["0", "12", "12.5", "12.50", "1250.00", "1,250.50", "1 250.5"] {
            assert!(is_exact(text), "{text:?}");
        }
        for text in ["", "12,5", "1,250", "1.250", "1 250", "1.250,50", "$12", "12 USD", "-1"] {
            assert!(!is_exact(text), "{text:?}");
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
            ("12.505", Point, "; write 12505 or 12.51, not \"12.505\""),
            ("12.505", Comma, "; write 12505 or 12.51, not \"12.505\""),
            ("12,504", Comma, "; write 12504 or 12.5, not \"12,504\""),
            ("12.999", Point, "; write 12999 or 13, not \"12.999\""),
            ("1234.567", Point, "; write 1234567 or 1234.57, not \"1234.567\""),
            ("0.295", Point, "; write 0.3, not \"0.295\""),
            (",005", Comma, "; write 0.01, not \",005\""),
            ("12.5051", Point, "; write 12.51, not \"12.5051\""),
            ("1,250.505", Point, "; write 1250.51, not \"1,250.505\""),
            ("012,500", Point, ", not \"012,500\""),
            (
                "99999999999999999999.999",
                Point,
                "; write 99999999999999999999999, not \"99999999999999999999.999\"",
            ),
            ("1,2,5", Point, ", not \"1,2,5\""),
            ("ten", Point, ", not \"ten\""),
        ] {
            let refused = plain(text, decimals).expect_err(text);
            assert_eq!(refused.to_string(), error, "{text}");
        }
        let long = plain(&"é".repeat(100), Point).expect_err("no number").to_string();
        assert_eq!(long.chars().filter(|char| *char == 'é').count(), ECHO_CHARS_MAX);
    }
}
