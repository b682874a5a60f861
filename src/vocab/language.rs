//! Languages of labels.

use super::named::{named_enum, parse_named};

named_enum! {
    /// Language whose words the scorer knows, by its ISO 639-1 code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum LanguageCode {
        English = "en",
        German = "de",
        French = "fr",
        Spanish = "es",
        Italian = "it",
        Polish = "pl",
        Swedish = "sv",
        Dutch = "nl",
        Portuguese = "pt",
        Danish = "da",
        Norwegian = "no",
        Finnish = "fi",
        Czech = "cs",
        Turkish = "tr",
    }
}
parse_named!(LanguageCode);
