//! Topics of sources of facts.

use crate::vocab::day::Day;

/// Days after which a value may have changed a lot, by topic.
const LINKS_DAYS: i32 = 180;
const KEYWORDS_DAYS: i32 = 400;
const OTHER_DAYS: i32 = 365;
/// Offers without an end are kept for as long after their list.
const OFFER_DAYS: i32 = 7;

/// The subject of a source, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Links to a name.
    Links,
    Keywords,
    /// Offers of auction houses.
    Markets,
    Other,
}

impl Topic {
    pub fn of(source: &str) -> Topic {
        match source {
            "ahrefs" | "archive" | "cc" | "expireddomains" | "majestic" | "moz" | "spamzilla" => {
                Topic::Links
            }
            "keywords" => Topic::Keywords,
            "market" => Topic::Markets,
            _ => Topic::Other,
        }
    }

    /// Returns the last day on which the values of a row are current. `end` is the day on which its offer ends.
    pub fn current_until(self, as_of: Day, end: Option<Day>) -> Day {
        match self {
            Topic::Links => as_of.plus(LINKS_DAYS),
            Topic::Keywords => as_of.plus(KEYWORDS_DAYS),
            Topic::Markets => end.unwrap_or(as_of.plus(OFFER_DAYS)),
            Topic::Other => as_of.plus(OTHER_DAYS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_current_for_as_long_as_their_topic_allows() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let end = Some(day("2026-01-03"));
        for (source, end, last) in [
            ("majestic", None, "2026-06-30"),
            ("cc", end, "2026-06-30"),
            ("keywords", None, "2027-02-05"),
            ("market", end, "2026-01-03"),
            ("market", None, "2026-01-08"),
            ("godaddy", None, "2027-01-01"),
            ("acme", end, "2027-01-01"),
        ] {
            let until = Topic::of(source).current_until(day("2026-01-01"), end);
            assert_eq!(until, day(last), "{source} {end:?}");
        }
    }
}
