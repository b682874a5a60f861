//! Text to search for, normalised once: prefixes and parts of names (`data/docs/api.md`).

use icu_normalizer::uts46::Uts46MapperBorrowed;
use serde::{Deserialize, Serialize};

use crate::vocab::limits::{SEARCH_QUERY_CHARS_MAX, SUBSTRING_CHARS_MAX};
use crate::vocab::name::{DomainName, NameError, host_of_address};

/// Reason why a text cannot be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("must have 1 to {0} characters")]
    Length(usize),
    #[error("must not hold NUL or control characters")]
    Control,
}

/// The start of a name, normalised like names: lower case, NFC, mapped by UTS 46.
///
/// ASCII text matches the A-label and the Unicode form of names, other text only the Unicode form.
/// The URL of a page is reduced to its host, and a leading `www.` and the trailing dot of the root
/// are removed, since none of these is part of a registrable name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePrefix(String);

/// A part of a name, normalised like [`NamePrefix`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Substring(String);

impl NamePrefix {
    /// # Errors
    /// Empty after trimming, over 253 characters, or a control character inside.
    pub fn parse(text: &str) -> Result<NamePrefix, QueryError> {
        part_of_name(text, SEARCH_QUERY_CHARS_MAX).map(NamePrefix)
    }

    /// Returns the normalised text, 1 character or more.
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

    /// Parses a part of a whole name with its suffix. A URL is reduced to the name, as in
    /// [`NamePrefix`].
    ///
    /// # Errors
    /// As [`Substring::parse`].
    pub fn of_name(text: &str) -> Result<Substring, QueryError> {
        part_of_name(text, SUBSTRING_CHARS_MAX).map(Substring)
    }

    /// Wraps a substring from a checksummed file, which [`Substring::parse`] accepted when it was
    /// written.
    pub fn from_stored(text: String) -> Substring {
        Substring(text)
    }

    /// Returns the normalised text, 1 character or more.
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
    // UTS 46 drops some characters, such as the soft hyphen, and may leave an empty text.
    if mapped.is_empty() { Err(QueryError::Length(chars_max)) } else { Ok(mapped) }
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
}
