//! Properties of dropped names that filters and facets use, by doc. Each property is a column of
//! [`Slices`].

use std::ops::RangeInclusive;

use crate::columns::label::{MarkTest, marks_of};
use crate::columns::rank_key::{is_adult, length_of};
use crate::columns::slices::{RangeTest, SliceFiles, SliceTest, Slices, ValueSet};
use crate::columns::typos::Typos;
use crate::error::{BuildError, GenerationError};
use crate::scorer::{Scorer, Scratch, StoredScore, Traits};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::kind::Kind;
use crate::vocab::language::LanguageCode;
use crate::vocab::limits::{LABEL_CHARS_MAX, WORDS_MAX};
use dropdex_query::filter::{Adult, Filter, ReadingFilter, TypoFilter};

/// Offset that is added to the number of a kind for names whose score is capped.
const CAPPED: u8 = 8;

/// A property of a dropped name, numbered like its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Number of characters of the label.
    Length,
    /// The result of [`marks_of`] for the label.
    Marks,
    /// Number of words of the label, up to [`WORDS_MAX`].
    Words,
    /// Position of the kind, with [`CAPPED`].
    Kind,
    /// Position of the language, from 1; 0 for none.
    Language,
    /// Number of other TLDs with the label.
    OtherTlds,
    /// Number of drops.
    Drops,
    /// 1 for an adult name.
    Adult,
    /// 1 for a label that misspells that of a popular name.
    Typo,
}

impl Property {
    pub const ALL: [Property; 9] = [
        Property::Length,
        Property::Marks,
        Property::Words,
        Property::Kind,
        Property::Language,
        Property::OtherTlds,
        Property::Drops,
        Property::Adult,
        Property::Typo,
    ];

    fn files(self) -> SliceFiles {
        let (bits, planes, large) = match self {
            Property::Length => (6, "listed.length", None),
            Property::Marks => (4, "listed.marks", None),
            Property::Words => (4, "listed.words", None),
            Property::Kind => (4, "listed.kind", None),
            Property::Language => (4, "listed.language", None),
            Property::OtherTlds => {
                (4, "listed.spread", Some(("listed.spread-docs", "listed.spread-large")))
            }
            Property::Drops => {
                (2, "listed.drops", Some(("listed.drops-docs", "listed.drops-large")))
            }
            Property::Adult => (1, "listed.adult", None),
            Property::Typo => (1, "listed.typo", None),
        };
        SliceFiles { bits, planes, large }
    }
}

/// Numbers of one dropped name by property.
pub type PropertyRow = [u16; Property::ALL.len()];

/// Returns the numbers of a dropped name with a [`rank_key`](crate::columns::rank_key::rank_key), whose
/// label is in `others` other TLDs.
pub fn row_of(
    typos: &Typos,
    known: StoredScore<'_>,
    key: u16,
    others: u16,
    drops: u8,
    scratch: &mut Scratch,
) -> PropertyRow {
    let traits = Scorer::shared().traits(known, scratch);
    [
        length_of(key).into(),
        marks_of(known.label).into(),
        words_of(&traits).into(),
        kind_value(traits.kind, traits.capped).into(),
        language_value(traits.language).into(),
        others,
        drops.into(),
        is_adult(key).into(),
        typos.of_label(known.label, traits.kind).is_some().into(),
    ]
}

fn words_of(traits: &Traits) -> u8 {
    traits.words.min(WORDS_MAX)
}

fn kind_value(kind: Kind, capped: bool) -> u8 {
    kind as u8 | if capped { CAPPED } else { 0 }
}

fn language_value(language: Option<LanguageCode>) -> u8 {
    language.map_or(0, |language| language as u8 + 1)
}

/// Properties of all dropped names.
#[derive(Debug)]
pub struct Properties([Slices; Property::ALL.len()]);

impl Properties {
    /// Writes the rows, by doc.
    ///
    /// # Errors
    /// A write fails.
    pub fn write<'a>(
        rows: impl Iterator<Item = &'a PropertyRow> + Clone,
        draft: &Draft,
    ) -> Result<(), BuildError> {
        for property in Property::ALL {
            let values: Vec<u16> = rows.clone().map(|row| row[property as usize]).collect();
            Slices::write(property.files(), &values, draft)?;
        }
        Ok(())
    }

    /// Opens the files that [`Properties::write`] wrote for `docs` names.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(files: &Files, docs: u32) -> Result<Properties, GenerationError> {
        let columns = Property::ALL.map(|property| Slices::open(files, property.files(), docs));
        let columns: Vec<Slices> = columns.into_iter().collect::<Result<_, _>>()?;
        Ok(Properties(columns.try_into().expect("a column a property")))
    }

    /// Returns the column of a property.
    pub fn column(&self, property: Property) -> &Slices {
        &self.0[property as usize]
    }

    /// Returns the kind of a doc.
    pub fn kind(&self, doc: u32) -> Kind {
        Kind::ALL[usize::from(self.column(Property::Kind).value(doc) % CAPPED)]
    }

    /// Returns the number of names by kind, whether capped or not, in the order of [`Kind::ALL`].
    pub fn count_kinds(&self, matches: &[u64]) -> Vec<u32> {
        let counts = self.column(Property::Kind).count(matches);
        let of = |kind: Kind| [false, true].map(|capped| usize::from(kind_value(kind, capped)));
        Kind::ALL.iter().map(|&kind| of(kind).iter().map(|&value| counts[value]).sum()).collect()
    }

    /// Returns the number of names by language, in the order of [`LanguageCode::ALL`].
    pub fn count_languages(&self, matches: &[u64]) -> Vec<u32> {
        let counts = self.column(Property::Language).count(matches);
        let of = |&language| counts[usize::from(language_value(Some(language)))];
        LanguageCode::ALL.iter().map(of).collect()
    }
}

/// Conditions of a filter on properties.
#[derive(Debug, Default)]
pub struct PropertyTests {
    sets: Vec<(Property, SliceTest)>,
    ranges: Vec<(Property, RangeTest)>,
}

impl PropertyTests {
    /// Resolves the conditions of a filter.
    pub fn new(filter: &Filter, properties: &Properties) -> PropertyTests {
        let mut tests = PropertyTests::default();
        let mut set = |property: Property, is_open: bool, values: ValueSet| {
            if !is_open {
                tests.sets.push((property, properties.column(property).test(values)));
            }
        };
        set(Property::Adult, filter.adult == Adult::Include, ValueSet::of(|value| value == 0));
        let marks = MarkTest::new(&filter.label);
        set(Property::Marks, marks.is_open(), ValueSet::of(|value| marks.passes(value)));
        let TraitTest { words, kinds, languages, typo } = TraitTest::new(&filter.reading);
        let ReadingFilter { min_words, max_words, .. } = filter.reading;
        let is_wanted = |value| typo.is_none_or(|typo| typo == (value != 0));
        set(Property::Typo, typo.is_none(), ValueSet::of(is_wanted));
        let all_words = (min_words, max_words) == (0, WORDS_MAX);
        set(Property::Words, all_words, ValueSet::of(|value| words.contains(&value)));
        set(Property::Kind, kinds == ValueSet::ALL, kinds);
        set(Property::Language, languages == ValueSet::ALL, languages);
        // No label has 0 characters, so an open lower bound needs no check.
        let shortest = if filter.min_len <= 1 { 0 } else { filter.min_len };
        let lengths = shortest..=filter.max_len;
        let all_lengths = lengths == (0..=LABEL_CHARS_MAX);
        set(Property::Length, all_lengths, ValueSet::of(|value| lengths.contains(&value)));
        let mut range = |property: Property, range: RangeInclusive<u16>| {
            if range != (0..=u16::MAX) {
                tests.ranges.push((property, properties.column(property).range_test(range)));
            }
        };
        range(Property::OtherTlds, filter.min_tlds..=filter.max_tlds);
        let least = if filter.drop.min_drops <= 1 { 0 } else { filter.drop.min_drops.into() };
        range(Property::Drops, least..=u16::MAX);
        tests
    }

    /// Returns true if all names pass.
    pub fn is_open(&self) -> bool {
        self.sets.is_empty() && self.ranges.is_empty()
    }

    /// Clears the bits of the docs that fail, starting at doc `64 * first`.
    pub fn keep(&self, properties: &Properties, first: usize, words: &mut [u64]) {
        for (property, test) in &self.sets {
            properties.column(*property).keep(test, first, words);
        }
        for (property, test) in &self.ranges {
            properties.column(*property).keep_range(test, first, words);
        }
    }

    /// Returns true if a doc passes.
    pub fn passes(&self, properties: &Properties, doc: u32) -> bool {
        self.sets.iter().all(|(of, test)| test.passes(properties.column(*of).value(doc)))
            && (self.ranges.iter())
                .all(|(of, test)| test.passes(properties.column(*of).number(doc)))
    }
}

/// Condition on the traits that the scorer finds in a label.
#[derive(Debug)]
pub struct TraitTest {
    words: RangeInclusive<u8>,
    kinds: ValueSet,
    languages: ValueSet,
    /// Whether the label must, or must not, misspell that of a popular name.
    typo: Option<bool>,
}

impl TraitTest {
    /// Takes the conditions from a filter.
    pub fn new(filter: &ReadingFilter) -> TraitTest {
        let ReadingFilter { min_words, max_words, languages, kinds, caps, typo } = filter;
        let is_kind = |value: u8| {
            let wanted = kinds.iter().any(|&kind| kind as u8 == value % CAPPED);
            (kinds.is_empty() || wanted) && (caps.is_none() || value < CAPPED)
        };
        let is_language = |value: u8| {
            let wanted = languages.iter().any(|&code| language_value(Some(code)) == value);
            languages.is_empty() || wanted
        };
        TraitTest {
            words: *min_words..=*max_words,
            kinds: if kinds.is_empty() && caps.is_none() {
                ValueSet::ALL
            } else {
                ValueSet::of(is_kind)
            },
            languages: ValueSet::of(is_language),
            typo: typo.map(|typo| typo == TypoFilter::Only),
        }
    }

    /// Returns true if a label passes.
    pub fn passes(&self, label: &str, traits: &Traits, typos: &Typos) -> bool {
        let is_typo = || typos.of_label(label, traits.kind).is_some();
        self.words.contains(&words_of(traits))
            && self.kinds.has(kind_value(traits.kind, traits.capped))
            && self.languages.has(language_value(traits.language))
            && self.typo.is_none_or(|typo| typo == is_typo())
    }
}
