//! Tags that accounts put on watched names.

use std::str::FromStr;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::limits::TAG_CHARS_MAX;

/// A word or short phrase: 1 to [`TAG_CHARS_MAX`] characters on one line, without commas, so that lists
/// of tags can be separated by them. White space around a tag and a leading `#` are not part of the
/// tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tag(CompactString);

/// Rejects a text that is not a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have 1 to {TAG_CHARS_MAX} characters, without commas and control characters")]
pub struct TagError;

impl Tag {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Tag {
    type Err = TagError;

    fn from_str(text: &str) -> Result<Tag, TagError> {
        let text = text.trim();
        let text = text.strip_prefix('#').unwrap_or(text).trim_start();
        let is_valid = (1..=TAG_CHARS_MAX).contains(&text.chars().count())
            && !text.contains(|char: char| char.is_control() || char == ',');
        if is_valid { Ok(Tag(text.into())) } else { Err(TagError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_trimmed_and_bounded() {
        let parse = |text: &str| text.parse::<Tag>().map(|tag| tag.as_str().to_owned());
        assert_eq!(parse(" #flip "), Ok("flip".to_owned()));
        assert_eq!(parse("garden shop"), Ok("garden shop".to_owned()));
        assert_eq!(parse(&"é".repeat(TAG_CHARS_MAX)), Ok("é".repeat(TAG_CHARS_MAX)));
        let long = "a".repeat(TAG_CHARS_MAX + 1);
        for bad in ["", " ", "#", "a,b", "a\nb", &long] {
            assert_eq!(parse(bad), Err(TagError), "{bad:?}");
        }
    }
}
