//! Values as text: integers and comma-separated lists.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Parses an integer in a range.
///
/// # Errors
/// The text is not such an integer; the message has the range.
pub fn integer(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    // `parse` would accept `+5`.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|value| digits && range.contains(value));
    value.ok_or_else(|| format!("must be an integer from {} to {}", range.start(), range.end()))
}

/// Returns the items of a list. White space around items and empty items are ignored.
pub fn plain(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Text after the closing quote of an item.
const UNQUOTED: &str = "must have a comma after a quoted item";

/// Splits a list at its commas. An item may be quoted with `"`, and a quote in it is doubled. White
/// space around items and empty items are ignored.
pub fn quoted(list: &str) -> impl Iterator<Item = Result<Cow<'_, str>, &'static str>> {
    let mut rest = list;
    let next = move || {
        rest = rest.trim_start_matches([',', ' ']);
        if rest.is_empty() {
            return None;
        }
        let Some(quoted) = rest.strip_prefix('"') else {
            let (item, after) = rest.split_once(',').unwrap_or((rest, ""));
            rest = after;
            return Some(Ok(Cow::Borrowed(item.trim())));
        };
        let mut item = String::new();
        let mut left = quoted;
        while let Some((text, after)) = left.split_once('"') {
            item.push_str(text);
            let Some(more) = after.strip_prefix('"') else {
                rest = after.trim_start();
                let ends = rest.is_empty() || rest.starts_with(',');
                return Some(if ends { Ok(item.into()) } else { Err(UNQUOTED) });
            };
            item.push('"');
            left = more;
        }
        rest = "";
        Some(Err("has a quote that is not closed"))
    };
    std::iter::from_fn(next)
}

/// Writes an item of a [`quoted`] list, in quotes if it contains a comma or a quote.
pub fn quote(item: &str) -> Cow<'_, str> {
    match item.contains([',', '"']) {
        true => format!("\"{}\"", item.replace('"', "\"\"")).into(),
        false => item.into(),
    }
}
