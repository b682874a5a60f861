//! Kinds of labels.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::named::{named_enum, parse_named};

named_enum! {
    /// Kind of a label, by its words and characters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        /// One dictionary word.
        Word = "word",
        /// Several words and nothing else.
        Words = "words",
        /// Names of people or places and nothing else.
        Name = "name",
        /// Pronounceable letters, not all of which are words.
        Invented = "invented",
        /// Letters that are hard to pronounce, and letters of scripts without a dictionary.
        Letters = "letters",
        /// Digits only.
        Number = "number",
        /// Digits and letters.
        Mixed = "mixed",
    }
}

parse_named!(Kind);
