//! Conditions on names: one type for the drops list, the search, exports, alert rules and previews.
//! A request or a form is parsed into this type once; the index evaluates it
//! (`data/docs/queries.md`).

use std::ops::RangeInclusive;

use compact_str::CompactString;

use crate::facts::FactCondition;
use crate::matcher::Matcher;
use crate::text::Substring;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::kind::Kind;
use crate::vocab::language::LanguageCode;
use crate::vocab::limits::{LABEL_CHARS_MAX, WORDS_MAX};
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::popularity::ListRank;
use crate::vocab::release_time::{Release, SecondOfDay};
use crate::vocab::suffix_rank::SuffixRank;
use crate::vocab::time::UnixMs;

named_enum! {
    /// Condition on the digits of a label.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Digits {
        None = "none",
        /// One digit or more.
        Some = "some",
        /// Only digits.
        Only = "only",
    }
}
parse_named!(Digits);

named_enum! {
    /// Condition on the hyphens of a label.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Hyphens {
        None = "none",
        Some = "some",
    }
}
parse_named!(Hyphens);

named_enum! {
    /// Condition on whether a label is internationalised.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Idn {
        None = "none",
        Only = "only",
    }
}
parse_named!(Idn);

named_enum! {
    /// Condition on whether a label misspells that of a popular name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TypoFilter {
        None = "none",
        Only = "only",
    }
}
parse_named!(TypoFilter);

named_enum! {
    /// Condition on the caps of a score.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum CapsFilter {
        /// No cap applies.
        None = "none",
    }
}
parse_named!(CapsFilter);

named_enum! {
    /// Treatment of names with an adult term.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Adult {
        /// They do not pass.
        #[default]
        Exclude = "exclude",
        Include = "include",
    }
}
parse_named!(Adult);

/// Conditions on names. The default lets every name pass, except for adult names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    /// One of these TLDs, normalised by [`crate::vocab::tld::fold_tld`]; empty means all.
    pub tlds: Vec<CompactString>,
    /// None of these TLDs.
    pub not_tlds: Vec<CompactString>,
    pub min_dqs: Dqs,
    pub max_dqs: Dqs,
    /// Length of the label in characters, 1 to 63.
    pub min_len: u8,
    pub max_len: u8,
    pub label: LabelFilter,
    pub reading: ReadingFilter,
    /// Number of other TLDs in which the corpus holds the label.
    pub min_tlds: u16,
    pub max_tlds: u16,
    pub drop: DropConditions,
    pub adult: Adult,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            tlds: Vec::new(),
            not_tlds: Vec::new(),
            min_dqs: Dqs::MIN,
            max_dqs: Dqs::MAX,
            min_len: 1,
            max_len: LABEL_CHARS_MAX,
            label: LabelFilter::default(),
            reading: ReadingFilter::default(),
            min_tlds: 0,
            max_tlds: u16::MAX,
            drop: DropConditions::default(),
            adult: Adult::default(),
        }
    }
}

impl Filter {
    /// Returns the filter that lets every name pass.
    pub fn open() -> Filter {
        Filter { adult: Adult::Include, ..Filter::default() }
    }

    /// Adds matchers, and the bounds of length that follow from them.
    #[must_use]
    pub fn with_matchers(mut self, matchers: Vec<Matcher>) -> Filter {
        for matcher in matchers.iter().filter(|matcher| !matcher.compares_a_labels()) {
            self.min_len = self.min_len.max(*matcher.lengths().start());
            self.max_len = self.max_len.min(*matcher.lengths().end());
        }
        self.label.matchers = matchers;
        self
    }

    /// Sorts the lists of alternatives and removes repeated items, so that equal conditions are equal values.
    pub fn sort_lists(&mut self) {
        fn sort<T: Ord>(list: &mut Vec<T>) {
            list.sort_unstable();
            list.dedup();
        }
        let LabelFilter { contains, starts, ends, not_contains, not_starts, not_ends, .. } =
            &mut self.label;
        for texts in [contains, starts, ends, not_contains, not_starts, not_ends] {
            sort(texts);
        }
        sort(&mut self.tlds);
        sort(&mut self.not_tlds);
        sort(&mut self.reading.languages);
        sort(&mut self.reading.kinds);
        self.drop.facts.sort_by_cached_key(FactCondition::to_string);
    }

    /// Returns true if a search has to read every name in its range.
    pub fn scans_names(&self) -> bool {
        self.label.has_text() || self.reading != ReadingFilter::default()
    }

    /// Returns true if the search has tables for all conditions: TLDs, a minimum score, adult names, and
    /// without these a maximum length.
    pub fn is_basic(&self) -> bool {
        let Filter { not_tlds, max_dqs, min_len, max_len, label, reading, .. } = self;
        let Filter { min_tlds, max_tlds, drop, adult, .. } = self;
        (*adult == Adult::Exclude || *max_len >= LABEL_CHARS_MAX)
            && not_tlds.is_empty()
            && *max_dqs == Dqs::MAX
            && *min_len <= 1
            && (*min_tlds, *max_tlds) == (0, u16::MAX)
            && *label == LabelFilter::default()
            && *reading == ReadingFilter::default()
            && *drop == DropConditions::default()
    }
}

/// Conditions on the label of a name, without regard to case. A text that begins with `xn--` is
/// compared with the A-label, any other with the Unicode form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelFilter {
    /// The label contains one of these texts; without texts, any label passes. The same applies
    /// below.
    pub contains: Vec<Substring>,
    pub starts: Vec<Substring>,
    pub ends: Vec<Substring>,
    /// The label contains none of these texts.
    pub not_contains: Vec<Substring>,
    pub not_starts: Vec<Substring>,
    pub not_ends: Vec<Substring>,
    /// The label matches all of these matchers.
    pub matchers: Vec<Matcher>,
    pub digits: Option<Digits>,
    pub hyphens: Option<Hyphens>,
    pub idn: Option<Idn>,
}

impl LabelFilter {
    /// Returns true if the label must contain a text or match an expression.
    pub fn has_text(&self) -> bool {
        let lists = [&self.contains, &self.starts, &self.ends];
        lists.iter().any(|list| !list.is_empty()) || !self.matchers.is_empty()
    }

    /// Returns the most selective list of texts of which every passing label contains at least one.
    /// Empty if no list is selective enough.
    pub fn required(&self) -> &[Substring] {
        let lists = [&self.contains[..], &self.starts, &self.ends];
        let literals = self.matchers.iter().map(Matcher::literals);
        let shortest = |list: &[Substring]| {
            list.iter().map(|text| text.as_str().chars().count()).min().unwrap_or(0)
        };
        // A single character is not selective enough.
        let all = lists.into_iter().chain(literals).filter(|list| shortest(list) > 1);
        all.max_by_key(|list| (shortest(list), std::cmp::Reverse(list.len()))).unwrap_or_default()
    }
}

/// Conditions on the properties that the scorer finds in a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadingFilter {
    /// Number of words, counted up to [`WORDS_MAX`]; 0 for a label that is not made of words.
    pub min_words: u8,
    pub max_words: u8,
    /// Accepted languages; empty means all, including labels without a language.
    pub languages: Vec<LanguageCode>,
    /// Accepted kinds; empty means all.
    pub kinds: Vec<Kind>,
    pub caps: Option<CapsFilter>,
    pub typo: Option<TypoFilter>,
}

impl Default for ReadingFilter {
    fn default() -> ReadingFilter {
        ReadingFilter {
            min_words: 0,
            max_words: WORDS_MAX,
            languages: Vec::new(),
            kinds: Vec::new(),
            caps: None,
            typo: None,
        }
    }
}

/// Conditions on the latest drop of a name. A name that never dropped passes none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DropConditions {
    /// Drop date.
    pub dropped: DayRange,
    pub release: ReleaseRange,
    /// Minimum number of drops. For names that dropped, 0 and 1 are equivalent.
    pub min_drops: u8,
    /// The first list with the drop was observed at or after this instant.
    pub listed_since: Option<UnixMs>,
    /// Maximum of the best rank on a popularity list.
    pub max_rank: Option<ListRank>,
    /// Maximum place among the drops of its suffix.
    pub max_suffix_rank: Option<SuffixRank>,
    /// Minimum expectation; names of suffixes without a model do not pass.
    pub expected_taken: Option<ExpectedTaken>,
    /// The first list with the drop is newer than this batch.
    pub after_batch: Option<u64>,
    /// The first list with the drop is not newer than this batch.
    pub through_batch: Option<u64>,
    pub facts: Vec<FactCondition>,
}

/// A range of days, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DayRange {
    /// `None` is unbounded.
    pub from: Option<Day>,
    pub to: Option<Day>,
}

impl DayRange {
    /// Returns true if a day is included.
    pub fn contains(self, day: Day) -> bool {
        self.from.is_none_or(|from| from <= day) && self.to.is_none_or(|to| day <= to)
    }

    /// Returns true if the first day is after its last one.
    pub fn is_crossed(self) -> bool {
        self.from.zip(self.to).is_some_and(|(from, to)| from > to)
    }

    /// Returns true if every day is included.
    pub fn is_open(self) -> bool {
        self == DayRange::default()
    }
}

/// A range of effective releases, both ends included. A bound is a day or an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReleaseRange {
    /// `None` is unbounded.
    pub from: Option<Release>,
    pub to: Option<Release>,
}

impl From<DayRange> for ReleaseRange {
    fn from(DayRange { from, to }: DayRange) -> ReleaseRange {
        ReleaseRange { from: from.map(Release::from), to: to.map(Release::from) }
    }
}

impl ReleaseRange {
    /// Returns the days of which some part is included.
    pub fn days(self) -> DayRange {
        DayRange { from: self.from.map(|from| from.day), to: self.to.map(|to| to.day) }
    }

    /// Returns true if a bound is an instant.
    pub fn has_instant(self) -> bool {
        [self.from, self.to].into_iter().flatten().any(|bound| bound.second().is_some())
    }

    /// Returns the seconds of a day that are included; `None` for all.
    pub fn seconds_on(self, day: Day) -> Option<RangeInclusive<SecondOfDay>> {
        let bound = |of: Option<Release>| of.filter(|of| of.day == day).and_then(Release::second);
        let (from, to) = (bound(self.from), bound(self.to));
        (from.is_some() || to.is_some())
            .then(|| from.unwrap_or(SecondOfDay::FIRST)..=to.unwrap_or(SecondOfDay::LAST))
    }

    /// Returns true if a release on a day may be included. `second` is called on the day of an instant
    /// only; if it returns `None`, the name may be released at any time of the day.
    pub fn contains(self, day: Day, second: impl FnOnce() -> Option<SecondOfDay>) -> bool {
        let is_in = |seconds: RangeInclusive<SecondOfDay>| {
            second().is_none_or(|second| seconds.contains(&second))
        };
        self.days().contains(day) && self.seconds_on(day).is_none_or(is_in)
    }

    /// Returns true if every release on a day is included.
    pub fn contains_all(self, day: Day) -> bool {
        self.days().contains(day) && self.seconds_on(day).is_none()
    }

    /// Returns true if the range starts after its end.
    pub fn is_crossed(self) -> bool {
        let instant = |bound: Release, other| (bound.day, bound.second().unwrap_or(other));
        self.from.zip(self.to).is_some_and(|(from, to)| {
            instant(from, SecondOfDay::FIRST) > instant(to, SecondOfDay::LAST)
        })
    }

    /// Returns true if every release is included.
    pub fn is_open(self) -> bool {
        self == ReleaseRange::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range([from, to]: [&str; 2]) -> ReleaseRange {
        let bound = |text: &str| {
            (!text.is_empty()).then(|| Release::parse_from(text, Day::MIN).expect(text))
        };
        ReleaseRange { from: bound(from), to: bound(to) }
    }

    #[test]
    fn a_release_of_unknown_hour_passes_if_part_of_its_day_does() {
        const NOON: &str = "2026-11-27T12:00Z";
        for (bounds, release, passes) in [
            ([NOON, ""], "2026-11-27", true),
            ([NOON, ""], "2026-11-26", false),
            ([NOON, ""], "2026-11-26T23:00Z", false),
            ([NOON, ""], "2026-11-27T11:59:59Z", false),
            ([NOON, ""], NOON, true),
            ([NOON, ""], "2026-11-28T00:00Z", true),
            (["", NOON], "2026-11-27", true),
            (["", NOON], NOON, true),
            (["", NOON], "2026-11-27T12:00:01Z", false),
            (["", NOON], "2026-11-28", false),
            ([NOON, NOON], "2026-11-27", true),
            ([NOON, NOON], "2026-11-27T12:00:01Z", false),
            ([NOON, "2026-11-27"], "2026-11-27T23:59:59Z", true),
            (["2026-11-27", NOON], "2026-11-27T00:00Z", true),
        ] {
            let Release { day, .. } = range([release, ""]).from.expect("a bound");
            let second = || range([release, ""]).from.and_then(Release::second);
            assert_eq!(range(bounds).contains(day, second), passes, "{bounds:?} {release}");
        }
    }

    #[test]
    fn ranges_are_crossed_by_their_instants() {
        for (bounds, is_crossed) in [
            (["2026-11-27T12:00Z", "2026-11-27T11:59:59Z"], true),
            (["2026-11-27T12:00Z", "2026-11-27T12:00Z"], false),
            (["2026-11-27T12:00Z", "2026-11-27"], false),
            (["2026-11-27", "2026-11-27T00:00Z"], false),
            (["2026-11-28", "2026-11-27T23:59Z"], true),
            (["2026-11-28T00:00Z", ""], false),
        ] {
            assert_eq!(range(bounds).is_crossed(), is_crossed, "{bounds:?}");
        }
    }
}
