//! `Range` and `If-Range` (RFC 9110 §13.1.5, §14.2).

use std::ops::Range;

use axum::http::HeaderMap;
use axum::http::header::{IF_RANGE, RANGE};

use crate::edge::etag::Tag;
use crate::service::error::ApiError;

/// Returns the single range of bytes that a request for a file of `len` bytes wants; `None` for the whole
/// file. Several ranges, other units and malformed values count as absent, and so does a range of another
/// version of the file.
///
/// # Errors
/// 416 for a range behind the end.
pub fn wanted(headers: &HeaderMap, len: u64, tag: &Tag) -> Result<Option<Range<u64>>, ApiError> {
    let mut lines = headers.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Ok(None) };
    if headers.get(IF_RANGE).is_some_and(|sent| !tag.is(sent)) {
        return Ok(None);
    }
    let Some(parsed) = line.to_str().ok().and_then(|text| parse(text, len)) else {
        return Ok(None);
    };
    if parsed.is_empty() { Err(ApiError::Range { len }) } else { Ok(Some(parsed)) }
}

/// Returns the bytes of a range, empty if it is behind the end; `None` for another form.
fn parse(text: &str, len: u64) -> Option<Range<u64>> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| -> Option<Option<u64>> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        // A number that is too large is behind the end.
        is_number.then(|| (!text.is_empty()).then(|| text.parse().unwrap_or(u64::MAX)))
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    match (number(first)?, number(last)?) {
        (Some(first), None) => Some(first.min(len)..len),
        (Some(first), Some(last)) if first <= last => {
            Some(first.min(len)..last.saturating_add(1).min(len))
        }
        (None, Some(suffix)) => Some(len - suffix.min(len)..len),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn single_ranges_are_parsed_and_all_else_is_the_whole_file() {
        let tag = Tag::for_bytes(b"file");
        let wanted = |sent: &str| {
            let headers = [(RANGE, HeaderValue::from_str(sent).expect("a value"))];
            wanted(&headers.into_iter().collect(), 100, &tag)
        };
        for (sent, expected) in [
            ("bytes=0-0", Some(0..1)),
            ("bytes=0-99", Some(0..100)),
            ("bytes=10-", Some(10..100)),
            ("Bytes = 10-19", Some(10..20)),
            ("bytes=90-500", Some(90..100)),
            ("bytes=-1", Some(99..100)),
            ("bytes=-500", Some(0..100)),
            ("bytes=5-99999999999999999999999", Some(5..100)),
            ("bytes=5-4", None),
            ("bytes=0-1,3-4", None),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("bytes=+1-2", None),
            ("items=0-1", None),
            ("bytes", None),
        ] {
            assert_eq!(wanted(sent).expect(sent), expected, "{sent}");
        }
        for behind in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999-"]
        {
            assert!(matches!(wanted(behind), Err(ApiError::Range { len: 100 })), "{behind}");
        }
    }

    #[test]
    fn a_range_of_another_version_is_ignored() {
        let tag = Tag::for_bytes(b"file");
        let own = tag.value().clone();
        let weak = HeaderValue::try_from(format!("W/{}", own.to_str().expect("ASCII")));
        let date = HeaderValue::from_static("Sun, 29 Nov 2026 00:00:00 GMT");
        for (sent, is_range) in [(own, true), (weak.expect("a value"), false), (date, false)] {
            let headers =
                [(RANGE, HeaderValue::from_static("bytes=0-1")), (IF_RANGE, sent.clone())];
            let found = wanted(&headers.into_iter().collect(), 100, &tag).expect("in the file");
            assert_eq!(found.is_some(), is_range, "{sent:?}");
        }
    }
}
