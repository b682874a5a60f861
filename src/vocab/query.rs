//! Search input, normalised once: name prefixes, substrings and TLD filters (`data/docs/api.md`).

use compact_str::CompactString;
use icu_normalizer::uts46::Uts46MapperBorrowed;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde::{Deserialize, Serialize};

use crate::vocab::limits::{LABEL_CHARS_MAX, SEARCH_QUERY_CHARS_MAX, SUBSTRING_CHARS_MAX};
use crate::vocab::name::{DomainName, NAME_OCTETS_MAX, NameError, host_of_address};

/// Reason why a text cannot be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("must have 1 to {0} characters")]
    Length(usize),
    #[error("must not hold NUL or control characters")]
    Control,
}

/// The start of a name, normalised as names are: lower case, NFC, UTS 46-mapped.
///
/// ASCII text matches the A-label and the Unicode form of names, other text only the Unicode form. The
/// address of a page, `www.` before a name and the dot of the root behind one are read as the name, since no
/// name starts with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePrefix(String);

/// A part of a name, normalised as [`NamePrefix`] is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Substring(String);

impl NamePrefix {
    /// # Errors
    /// Empty after trimming, over 253 characters, or a control character inside.
    pub fn parse(text: &str) -> Result<NamePrefix, QueryError> {
        part_of_name(text, SEARCH_QUERY_CHARS_MAX).map(NamePrefix)
    }

    /// The normalised text, 1 character or more.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Substring {
    /// # Errors
    /// Empty after trimming, over 63 characters, or a control character inside.
    pub fn parse(text: &str) -> Result<Substring, QueryError> {
        normalise(text, SUBSTRING_CHARS_MAX).map(Substring)
    }

    /// A part of a whole name with its suffix, which may also be an address, as for [`NamePrefix`].
    ///
    /// # Errors
    /// As [`Substring::parse`].
    pub fn of_name(text: &str) -> Result<Substring, QueryError> {
        part_of_name(text, SUBSTRING_CHARS_MAX).map(Substring)
    }

    /// A substring from a checksummed file, which [`Substring::parse`] accepted when it was written.
    pub fn from_stored(text: String) -> Substring {
        Substring(text)
    }

    /// The normalised text, 1 character or more.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn part_of_name(text: &str, chars_max: usize) -> Result<String, QueryError> {
    let host = host_of_address(text).filter(|host| !host.is_empty());
    let text = normalise(host.unwrap_or(text), chars_max)?;
    let is_host = host.is_some() || text.starts_with("www.");
    Ok(match DomainName::parse(&text) {
        Ok(_) => text.trim_end_matches('.').to_owned(),
        Err(NameError::BelowRegistrable) if is_host => {
            let name = DomainName::of_host(&text);
            name.map_or(text, |name| name.unicode().into_owned())
        }
        Err(_) => text,
    })
}

fn normalise(text: &str, chars_max: usize) -> Result<String, QueryError> {
    let text = text.trim();
    let is_ascii = text.is_ascii();
    let chars = if is_ascii { text.len() } else { text.chars().count() };
    if chars == 0 || chars > chars_max {
        return Err(QueryError::Length(chars_max));
    }
    if text.chars().any(char::is_control) {
        return Err(QueryError::Control);
    }
    if is_ascii {
        return Ok(text.to_ascii_lowercase());
    }
    let mapped: String = Uts46MapperBorrowed::new().map_normalize(text.chars()).collect();
    // UTS 46 drops some characters, such as the soft hyphen, and may leave nothing.
    if mapped.is_empty() { Err(QueryError::Length(chars_max)) } else { Ok(mapped) }
}

/// Normalises a TLD of a filter: trimmed, case-folded, A-label form, without a leading dot. The TLD
/// need not exist: an unknown one matches nothing.
pub fn fold_tld(text: &str) -> Option<CompactString> {
    let text = text.trim();
    let text = text.strip_prefix('.').unwrap_or(text);
    if text.is_empty() {
        return None;
    }
    // The common case. Digits and hyphens may belong to an A-label that UTS 46 would change.
    let folded = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'.'));
    if folded {
        return Some(text.into());
    }
    let ascii = Uts46::new()
        .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .map(CompactString::from)
        .unwrap_or_else(|_| text.to_lowercase().into());
    Some(ascii)
}

/// Returns true when a folded TLD is well-formed: DNS labels separated by dots.
pub fn is_suffix(tld: &str) -> bool {
    tld.len() <= NAME_OCTETS_MAX && tld.split('.').all(is_label)
}

/// Returns true for a lower-case label of the DNS (RFC 1035 §2.3.1).
pub fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=usize::from(LABEL_CHARS_MAX)).contains(&label.len())
        && label.bytes().all(plain)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_normalised_like_names() {
        for (text, prefix) in [
            (" Exam.CO ", "exam.co"),
            ("MÜN", "mün"),
            ("mu\u{308}n", "mün"),
            ("XN--mn", "xn--mn"),
            ("ＡＢ", "ab"),
            ("straße", "straße"),
            ("solar.com.", "solar.com"),
            ("MÜNCHEN。de。", "münchen.de"),
            ("solar.", "solar."),
            ("http://solar.com/", "solar.com"),
            ("HTTPS://Solar.com", "solar.com"),
            ("https://www.solar.com/path?q=1#top", "solar.com"),
            ("www.solar.com", "solar.com"),
            ("www.mu\u{308}nchen.de/", "münchen.de"),
            ("https://solar", "solar"),
            ("http://solar.c", "solar.c"),
            ("www", "www"),
            ("www.", "www."),
            ("www.com", "www.com"),
            ("shop.solar.com", "shop.solar.com"),
        ] {
            assert_eq!(NamePrefix::parse(text).map(|prefix| prefix.0), Ok(prefix.into()), "{text}");
        }
    }

    #[test]
    fn invalid_queries_are_rejected() {
        for text in ["", "  ", "\u{ad}", &"a".repeat(254)] {
            assert_eq!(NamePrefix::parse(text), Err(QueryError::Length(253)), "{text:?}");
        }
        let long = format!("https://solar.com/{}", "a".repeat(80));
        assert_eq!(Substring::of_name(&long).map(|part| part.0), Ok("solar.com".to_owned()));
        assert_eq!(Substring::parse(&"ü".repeat(64)), Err(QueryError::Length(63)));
        assert!(Substring::parse(&"ü".repeat(63)).is_ok());
        assert_eq!(NamePrefix::parse("a\0b"), Err(QueryError::Control));
    }

    #[test]
    fn tld_filters_are_folded() {
        assert_eq!(fold_tld(" .COM ").as_deref(), Some("com"));
        assert_eq!(fold_tld("рф").as_deref(), Some("xn--p1ai"));
        assert_eq!(fold_tld("co.uk").as_deref(), Some("co.uk"));
        assert_eq!(fold_tld(" "), None);
        assert_eq!(fold_tld("."), None);
    }

    #[test]
    fn malformed_suffixes_are_rejected() {
        let long = format!("{}.uk", "a".repeat(63));
        for tld in ["com", "co.uk", "xn--p1ai", "nobody-knows-1t", &long] {
            assert!(is_suffix(tld), "{tld}");
        }
        for tld in ["", "co..uk", "a b", "com.", "-a", "a-", "c_m", "co,uk", "*.ck", "\u{8}y"] {
            assert!(!is_suffix(tld), "{tld:?}");
        }
        assert!(!is_suffix(&format!("a{long}")));
    }
}
