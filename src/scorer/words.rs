//! The pieces of a label in Unicode.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

/// Pieces of a label in order: words, numbers and other text. Serialised as a list of strings.
#[derive(Clone, Debug, Default)]
pub struct Words<'a> {
    /// The label in Unicode.
    text: Cow<'a, str>,
    /// Start and end of each piece, in bytes of `text`.
    cuts: Cow<'a, [Cut]>,
}

/// Start and end of a piece, in bytes of the label in Unicode.
pub type Cut = (u8, u8);

impl<'a> Words<'a> {
    /// Creates the pieces of `text`, given by cuts within it.
    pub(super) fn new(text: &'a str, cuts: &'a [Cut]) -> Words<'a> {
        Words { text: Cow::Borrowed(text), cuts: Cow::Borrowed(cuts) }
    }

    /// Returns the pieces.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.cuts.iter().map(|&cut| self.cut(cut))
    }

    /// Returns the piece at this position.
    pub(super) fn get(&self, number: usize) -> &str {
        self.cut(self.cuts[number])
    }

    /// Converts to an owned value.
    pub fn into_owned(self) -> Words<'static> {
        Words { text: Cow::Owned(self.text.into_owned()), cuts: Cow::Owned(self.cuts.into_owned()) }
    }

    fn cut(&self, (start, end): Cut) -> &str {
        &self.text[usize::from(start)..usize::from(end)]
    }
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
