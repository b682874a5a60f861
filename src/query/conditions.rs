//! Every condition on names, in one table. The parameters of the API, its document, the members of a
//! filter in JSON, the options of the command line, the chips and terms of the query bar and the stored
//! conditions of rules and saved searches follow from it (`data/docs/queries.md`).

use std::fmt::Display;

use compact_str::CompactString;

use crate::error::{BadParameter, ParameterCode};
use crate::facts::FactCondition;
use crate::filter::{Adult, CapsFilter, Digits, Filter, Hyphens, Idn, TypoFilter};
use crate::list;
use crate::matcher::{Matcher, MatcherError};
use crate::text::Substring;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::kind::Kind as LabelKind;
use crate::vocab::language::LanguageCode;
use crate::vocab::limits::{
    EXCLUDED_TEXTS_MAX, FACT_CONDITIONS_MAX, LABEL_CHARS_MAX, LABEL_TEXTS_MAX, LIKE_DISTANCE_MAX,
    MIN_DROPS_MAX, OTHER_TLDS_MAX, TLD_FILTER_MAX, WORDS_MAX,
};
use crate::vocab::popularity::ListRank;
use crate::vocab::release_time::Release;
use crate::vocab::stage::Stage;
use crate::vocab::suffix_rank::SuffixRank;
use crate::vocab::time::UnixMs;
use crate::vocab::tld::fold_tld;

/// A condition on names.
#[derive(Clone, Copy)]
pub struct Condition {
    /// Name in a query string.
    pub parameter: &'static str,
    /// Name in JSON.
    pub member: &'static str,
    pub kind: Kind,
    /// An example value, as a client sends it.
    pub example: &'static str,
    /// Description of the parameter.
    pub text: &'static str,
    /// Description of the member.
    pub member_text: &'static str,
    pub bar: Bar,
    /// Terms of the query bar, each with its meaning.
    pub help: &'static [(&'static str, &'static str)],
}

/// Type and range of the value, and the field that it sets.
#[derive(Clone, Copy)]
pub enum Kind {
    Number {
        least: u32,
        most: u32,
        default: Option<u32>,
        set: fn(&mut Parsed, u32),
    },
    /// One of these words.
    OneOf(&'static [&'static str], fn(&mut Parsed, &str)),
    /// Some of these words.
    SomeOf(&'static [&'static str], fn(&mut Parsed, &str)),
    Tlds(fn(&mut Parsed) -> &mut Vec<CompactString>),
    /// Conditions on facts, each of them as this function reads it.
    Facts(fn(&str) -> Result<FactCondition, &'static str>),
    /// Texts, up to this number.
    Texts(usize, fn(&mut Parsed) -> &mut Vec<Substring>),
    /// Part of the whole name.
    NamePart,
    Pattern,
    Regex,
    Like,
    Day(fn(&mut Parsed) -> &mut Option<Day>),
    /// A day or an instant.
    Release(fn(&mut Parsed) -> &mut Option<Release>),
    /// A timestamp, or the start of a day.
    Instant(fn(&mut Parsed) -> &mut Option<UnixMs>),
}

impl Kind {
    /// Returns true if the value is a list, to which the query bar appends.
    pub fn is_list(&self) -> bool {
        matches!(self, Kind::SomeOf(..) | Kind::Tlds(_) | Kind::Texts(..) | Kind::Facts(_))
    }

    /// Returns true if the value may be a day.
    pub fn is_day(&self) -> bool {
        matches!(self, Kind::Day(_) | Kind::Release(_))
    }

    /// Returns true if the condition reads the text of names.
    pub fn reads_text(&self) -> bool {
        use Kind::{Like, NamePart, Pattern, Regex, Texts};
        matches!(self, Texts(..) | NamePart | Pattern | Regex | Like)
    }
}

/// The form of a condition in the query bar, and of its chip.
#[derive(Clone, Copy)]
pub enum Bar {
    /// The chip has the name of the parameter, and there is no term.
    None,
    /// Lower bound of a range, whose chip shows both.
    Low(Range),
    /// Upper bound of a range.
    High,
    Value(Term),
    /// The negation of another condition, written with a leading hyphen.
    Excluded,
    /// A feature of the label: those of the values `none`, `some` and `only` that it accepts, with
    /// their descriptions.
    Feature(&'static [(&'static str, &'static str)]),
}

/// A range in the query bar.
#[derive(Clone, Copy)]
pub struct Range {
    /// Name in a chip.
    pub word: &'static str,
    /// Names in the query bar; errors list the first.
    pub keys: &'static [&'static str],
    /// Parameter of the upper bound.
    pub high: &'static str,
    /// Whether the lower bound is above the upper one.
    crossed: fn(&Filter) -> bool,
}

/// A value in the query bar.
#[derive(Clone, Copy)]
pub struct Term {
    /// Name in a chip.
    pub word: &'static str,
    /// Names in the query bar; errors list the first.
    pub keys: &'static [&'static str],
    /// The parameter that a term with a leading hyphen sets instead.
    pub not: Option<&'static str>,
}

/// Every condition. Lists of parameters have this order. `q` comes last: in a search, it has
/// another meaning.
pub const CONDITIONS: &[Condition] = &[
    row("tld", "tlds", Kind::Tlds(|it| &mut it.filter.tlds), "com,co.uk")
        .text(
            "Comma-separated public suffixes, at most 1,000: `com,co.uk`. `uk` matches `uk` only, not `co.uk`.",
            "One of these public suffixes.",
        )
        .value("TLD", &["tld"], Some("not_tld"), &[("tld:com,net", "one of these TLDs")]),
    row("not_tld", "notTlds", Kind::Tlds(|it| &mut it.filter.not_tlds), "info,xyz")
        .both("None of these public suffixes.")
        .excluded(&[("-tld:xyz", "not this TLD")]),
    row("stage", "stages", Kind::SomeOf(&Stage::NAMES, |it, word| it.stages.extend(word.parse::<Stage>())), "pending-delete,catchable")
        .text(
            "Lifecycle stage today: any of these. When it is set, `view` is ignored.",
            "One of these stages.",
        ),
    row("min_dqs", "minDqs", number(0, 100, |it, points| it.filter.min_dqs = Dqs::clamped(points as i32)), "70")
        .text("Minimum Domain Quality Score.", "Minimum score.")
        .low("score", &["score", "dqs"], "max_dqs", |it| it.min_dqs > it.max_dqs)
        .help(&[("score:>=80", "score of at least 80")]),
    row("max_dqs", "maxDqs", number(0, 100, |it, points| it.filter.max_dqs = Dqs::clamped(points as i32)), "90")
        .text("Maximum Domain Quality Score.", "Maximum score.")
        .high(),
    row("min_len", "minLength", number(1, LABEL_CHARS_MAX as u32, |it, chars| it.filter.min_len = chars as u8), "3")
        .both("Minimum length of the label, in characters.")
        .low("length", &["len", "length"], "max_len", |it| it.min_len > it.max_len)
        .help(&[("len:4-8", "four to eight letters")]),
    row("max_len", "maxLength", number(1, LABEL_CHARS_MAX as u32, |it, chars| it.filter.max_len = chars as u8), "8")
        .both("Maximum length of the label, in characters.")
        .high(),
    row("contains", "contains", Kind::Texts(LABEL_TEXTS_MAX, |it| &mut it.filter.label.contains), "solar,wind")
        .text(
            "The label contains one of these texts, at most 20, separated by commas. A text with a comma is quoted with `\"`.",
            "A text: part of the name, suffix included. A list: the label contains one of the texts.",
        )
        .value("contains", &["contains"], Some("not_contains"), &[("shop", "contains a text")]),
    row("starts", "starts", Kind::Texts(LABEL_TEXTS_MAX, |it| &mut it.filter.label.starts), "get,my")
        .both("The label starts with one of these texts.")
        .value("starts with", &["starts"], Some("not_starts"), &[("starts:my", "starts with a text")]),
    row("ends", "ends", Kind::Texts(LABEL_TEXTS_MAX, |it| &mut it.filter.label.ends), "bank,pay")
        .both("The label ends with one of these texts.")
        .value("ends with", &["ends"], Some("not_ends"), &[("ends:hub", "ends with a text")]),
    row("not_contains", "notContains", Kind::Texts(EXCLUDED_TEXTS_MAX, |it| &mut it.filter.label.not_contains), "casino,xxx")
        .text(
            "The label contains none of these texts, at most 50. The same applies below.",
            "The label contains none of these texts.",
        )
        .excluded(&[("-shop", "does not contain it")]),
    row("not_starts", "notStarts", Kind::Texts(EXCLUDED_TEXTS_MAX, |it| &mut it.filter.label.not_starts), "the")
        .both("The label starts with none of these texts.")
        .excluded(&[]),
    row("not_ends", "notEnds", Kind::Texts(EXCLUDED_TEXTS_MAX, |it| &mut it.filter.label.not_ends), "online,24")
        .both("The label ends with none of these texts.")
        .excluded(&[]),
    row("pattern", "pattern", Kind::Pattern, "CVCV")
        .text(
            "Shape of the whole label, such as `CVCV`, `LLL` or `*bank`: `C` consonant, `V` vowel, `L` letter, `N` digit, `A` letter or digit, `?` any character, `*` any run; lower-case letters, digits and `-` stand for themselves.",
            "Shape of the whole label.",
        )
        .value("pattern", &["pattern"], None, &[]),
    row("regex", "regex", Kind::Regex, "^(shop|store)[a-z]*$")
        .text(
            "Regular expression found in the label, without regard to case, with the syntax of the Rust crate `regex`.",
            "Regular expression found in the label.",
        )
        .value("regex", &["regex"], None, &[]),
    row("like", "like", Kind::Like, "solarpanel")
        .text(
            "The label is at most `distance` edits from this one, of 3 to 30 characters. A swap of neighbours is one edit.",
            "The label is at most `distance` edits from this one.",
        )
        .value("like", &["like"], None, &[]),
    row("distance", "distance", Kind::Number { least: 1, most: LIKE_DISTANCE_MAX as u32, default: Some(1), set: |it, edits| it.distance = edits as u8 }, "1")
        .text("Maximum edits of `like`.", "Maximum edits of `like`; 1 by default.")
        .value("edits", &["distance"], None, &[]),
    row("digits", "digits", Kind::OneOf(&Digits::NAMES, |it, word| it.filter.label.digits = word.parse().ok()), "none")
        .text("Digits of the label: none, at least one, or nothing else.", "Digits of the label.")
        .feature(&[("none", "no digits"), ("some", "with digits"), ("only", "digits only")])
        .help(&[("-digits", "no digits")]),
    row("hyphens", "hyphens", Kind::OneOf(&Hyphens::NAMES, |it, word| it.filter.label.hyphens = word.parse().ok()), "none")
        .text("Hyphens of the label: none, or at least one.", "Hyphens of the label.")
        .feature(&[("none", "no hyphens"), ("some", "with hyphens")])
        .help(&[("-hyphens", "no hyphens")]),
    row("idn", "idn", Kind::OneOf(&Idn::NAMES, |it, word| it.filter.label.idn = word.parse().ok()), "none")
        .text("Internationalised labels: without them, or nothing else.", "Internationalised labels.")
        .feature(&[("none", "no IDNs"), ("only", "IDNs only")]),
    row("min_words", "minWords", number(0, WORDS_MAX as u32, |it, words| it.filter.reading.min_words = words as u8), "1")
        .text(
            "Minimum number of words, counted up to 15; 0 for a label that is not made of words.",
            "Minimum number of words in the label.",
        )
        .low("words", &["words"], "max_words", |it| it.reading.min_words > it.reading.max_words)
        .help(&[("words:2", "made of two words")]),
    row("max_words", "maxWords", number(0, WORDS_MAX as u32, |it, words| it.filter.reading.max_words = words as u8), "2")
        .text("Maximum number of words.", "Maximum number of words in the label.")
        .high(),
    row("language", "languages", Kind::SomeOf(&LanguageCode::NAMES, |it, word| it.filter.reading.languages.extend(word.parse::<LanguageCode>())), "en,de")
        .text("Language of the words: any of these ISO 639-1 codes.", "One of these languages.")
        .value("language", &["lang", "language"], None, &[("lang:en", "English words")]),
    row("kind", "kinds", Kind::SomeOf(&LabelKind::NAMES, |it, word| it.filter.reading.kinds.extend(word.parse::<LabelKind>())), "word,words")
        .text(
            "Kind of the label: one dictionary word, several words, a person or place, pronounceable letters, other letters, a number, or digits and letters.",
            "One of these kinds of label.",
        )
        .value("kind", &["kind"], None, &[("kind:word,words", "made of words and nothing else")]),
    row("caps", "caps", Kind::OneOf(&CapsFilter::NAMES, |it, word| it.filter.reading.caps = word.parse().ok()), "none")
        .text(
            "`none`: without names whose score is capped: trademarks, adult words, spam, suffixes that are not open to the public.",
            "Without names whose score is capped.",
        )
        .feature(&[("none", "no trademarks, adult words or spam")])
        .help(&[("-caps", "no trademarks, adult words or spam")]),
    row("typo", "typo", Kind::OneOf(&TypoFilter::NAMES, |it, word| it.filter.reading.typo = word.parse().ok()), "none")
        .text(
            "Labels that are one typing error from that of a name in the first 2,000 of a popularity list: without them, or nothing else. Dictionary words are no misspellings.",
            "Misspellings of popular names.",
        )
        .feature(&[("none", "no misspellings of popular names"), ("only", "misspellings of popular names")]),
    row("adult", "adult", Kind::OneOf(&Adult::NAMES, |it, word| it.filter.adult = word.parse().unwrap_or_default()), "include")
        .text(
            "`exclude`, the default: without names that have an adult term. `include`: with them.",
            "Whether names that have an adult term pass; `exclude` by default.",
        )
        .feature(&[("include", "with adult names")])
        .help(&[("adult:include", "with adult names")]),
    row("min_tlds", "minTlds", number(0, OTHER_TLDS_MAX, |it, tlds| it.filter.min_tlds = tlds as u16), "0")
        .text(
            "Minimum number of other suffixes in which the data has the label.",
            "Minimum number of other suffixes with the label.",
        )
        .low("other TLDs", &["tlds"], "max_tlds", |it| it.min_tlds > it.max_tlds)
        .help(&[("tlds:>=5", "registered in at least five other TLDs")]),
    row("max_tlds", "maxTlds", number(0, OTHER_TLDS_MAX, |it, tlds| it.filter.max_tlds = tlds as u16), "100")
        .text(
            "Maximum number of other suffixes in which the data has the label.",
            "Maximum number of other suffixes with the label.",
        )
        .high(),
    row("min_drops", "minDrops", number(1, MIN_DROPS_MAX, |it, drops| it.filter.drop.min_drops = drops as u8), "1")
        .text("Minimum number of drops on record.", "Minimum number of drops.")
        .value("earlier drops", &["seen"], None, &[("seen:2", "dropped at least twice")]),
    row("max_rank", "maxRank", number(1, ListRank::MAX, |it, rank| it.filter.drop.max_rank = ListRank::new(rank)), "100000")
        .text(
            "Maximum of the best rank on a popularity list. Names on none do not pass.",
            "Maximum of the best rank on a popularity list.",
        )
        .value("popularity rank at most", &["rank"], None, &[("rank:100k", "among the first 100,000 of a popularity list")]),
    row("max_suffix_rank", "maxSuffixRank", number(1, 100, |it, percent| it.filter.drop.max_suffix_rank = Some(SuffixRank::best(percent))), "1")
        .both("Among the best 1 to 100 % of the drops of its suffix.")
        .value("rank in its TLD, % at most", &["best"], None, &[("best:1", "among the best 1 % of its TLD")]),
    row("expected_taken", "expectedTaken", number(0, ExpectedTaken::PERCENT_MAX, |it, percent| it.filter.drop.expected_taken = ExpectedTaken::new(percent)), "30")
        .text(
            "At least this percentage of names like it is expected to be registered again within a week of the release. Names of suffixes without a model do not pass.",
            "Minimum percentage of names like it that is expected to be registered again within a week.",
        )
        .value("taken soon, % at least", &["taken"], None, &[("taken:30", "30 % of names like it are taken within a week")]),
    row("dropped_from", "droppedFrom", Kind::Day(|it| &mut it.filter.drop.dropped.from), "-7d")
        .text(
            "First drop date: `YYYY-MM-DD`, `today`, `tomorrow`, `yesterday`, `+3d` or `-3d`. The same applies below.",
            "First drop date; may be relative.",
        )
        .low("left the zone", &["dropped"], "dropped_to", |it| it.drop.dropped.is_crossed()),
    row("dropped_to", "droppedTo", Kind::Day(|it| &mut it.filter.drop.dropped.to), "today")
        .text("Last drop date.", "Last drop date; may be relative.")
        .high(),
    row("release_from", "releaseFrom", Kind::Release(|it| &mut it.filter.drop.release.from), "today")
        .text(
            "First effective release: a date as above, or an instant such as `2026-11-27T14:00Z`. A name whose hour is unknown passes if part of its day is in the range.",
            "First effective release: a day, which may be relative, or an instant such as `2026-11-27T14:00Z`.",
        )
        .low("drops", &["drops", "release"], "release_to", |it| it.drop.release.is_crossed())
        .help(&[("drops:tomorrow", "released tomorrow"), ("drops:+3d", "released in the next three days")]),
    row("release_to", "releaseTo", Kind::Release(|it| &mut it.filter.drop.release.to), "+3d")
        .text(
            "Last effective release: a date or an instant.",
            "Last effective release: a day, which may be relative, or an instant.",
        )
        .high(),
    row("listed_since", "listedSince", Kind::Instant(|it| &mut it.filter.drop.listed_since), "2026-03-01T00:00:00Z")
        .text(
            "The list that first had the drop was observed at or after this timestamp or date.",
            "The list that contained the drop was observed on this day or later.",
        ),
    row("fact", "facts", Kind::Facts(FactCondition::parse), "acme.rank:..1000")
        .text(
            "Facts of the name, each as `SOURCE.FACT:LOW..HIGH` or `SOURCE.FACT:VALUE|VALUE`, at most 20, separated by commas; an item with a comma is quoted with `\"`. A name without the fact does not pass. `fact.SOURCE.FACT=LOW..HIGH` is the same as one item.",
            "Facts of the name, each as `SOURCE.FACT:LOW..HIGH` or `SOURCE.FACT:VALUE|VALUE`.",
        )
        .value("fact", &["fact"], None, &[("fact:acme.rank:..1000", "a fact in a range")]),
    row("has", "has", Kind::Facts(FactCondition::parse_has), "acme.rank")
        .text(
            "Facts that the name has, as `SOURCE.FACT`, or lacks, as `!SOURCE.FACT`; at most 20, separated by commas.",
            "Facts that the name has, or, after `!`, lacks.",
        )
        .value("has", &["has"], None, &[("has:acme.rank", "with this fact")]),
    row("q", "q", Kind::NamePart, "shop")
        .text(
            "Case-insensitive substring of the full name, 1 to 63 characters. Unicode text matches the Unicode \
             form of IDNs.",
            "Part of the name, beside a list of `contains`.",
        )
        .value("name contains", &["name"], None, &[]),
];

/// The conditions that the drops list, the search, the exports and the changes share.
pub const SHARED: &[Condition] = CONDITIONS.split_at(CONDITIONS.len() - 1).0;

const fn row(
    parameter: &'static str,
    member: &'static str,
    kind: Kind,
    example: &'static str,
) -> Condition {
    Condition {
        parameter,
        member,
        kind,
        example,
        text: "",
        member_text: "",
        bar: Bar::None,
        help: &[],
    }
}

const fn number(least: u32, most: u32, set: fn(&mut Parsed, u32)) -> Kind {
    Kind::Number { least, most, default: None, set }
}

type Help = &'static [(&'static str, &'static str)];

impl Condition {
    const fn text(self, text: &'static str, member_text: &'static str) -> Condition {
        Condition { text, member_text, ..self }
    }

    const fn both(self, text: &'static str) -> Condition {
        self.text(text, text)
    }

    const fn help(self, help: Help) -> Condition {
        Condition { help, ..self }
    }

    const fn low(
        self,
        word: &'static str,
        keys: &'static [&'static str],
        high: &'static str,
        crossed: fn(&Filter) -> bool,
    ) -> Condition {
        Condition { bar: Bar::Low(Range { word, keys, high, crossed }), ..self }
    }

    const fn high(self) -> Condition {
        Condition { bar: Bar::High, ..self }
    }

    const fn value(
        self,
        word: &'static str,
        keys: &'static [&'static str],
        not: Option<&'static str>,
        help: Help,
    ) -> Condition {
        Condition { bar: Bar::Value(Term { word, keys, not }), help, ..self }
    }

    const fn excluded(self, help: Help) -> Condition {
        Condition { bar: Bar::Excluded, help, ..self }
    }

    const fn feature(self, says: Help) -> Condition {
        Condition { bar: Bar::Feature(says), ..self }
    }

    /// Returns the condition with this parameter.
    pub fn of_parameter(name: &str) -> Option<&'static Condition> {
        CONDITIONS.iter().find(|condition| condition.parameter == name)
    }

    /// Returns the condition with this member.
    pub fn of_member(name: &str) -> Option<&'static Condition> {
        CONDITIONS.iter().find(|condition| condition.member == name)
    }

    /// Parses a value that is not empty.
    fn parse(&self, text: &str, today: Day, into: &mut Parsed) -> Result<(), BadParameter> {
        let wrong = |what: &dyn Display| BadParameter::new(self.parameter, what);
        match self.kind {
            Kind::Number { least, most, set, .. } => {
                set(into, list::integer(text, least..=most).map_err(|what| wrong(&what))?);
            }
            Kind::OneOf(words, set) => {
                set(into, known(words, text).map_err(|what| wrong(&what))?);
            }
            Kind::SomeOf(words, add) => {
                for word in list::plain(text) {
                    add(into, known(words, word).map_err(|what| wrong(&what))?);
                }
            }
            Kind::Tlds(of) => {
                let tlds: Vec<_> = text.split(',').filter_map(fold_tld).collect();
                self.at_most(TLD_FILTER_MAX, tlds.len())?;
                *of(into) = tlds;
            }
            Kind::Texts(most, of) => {
                let mut texts = Vec::new();
                for item in list::quoted(text) {
                    let item = item.map_err(|what| wrong(&what))?;
                    texts.push(Substring::parse(&item).map_err(|err| wrong(&err))?);
                }
                self.at_most(most, texts.len())?;
                *of(into) = texts;
            }
            Kind::Facts(read) => {
                let facts = &mut into.filter.drop.facts;
                for item in list::quoted(text) {
                    let item = item.map_err(|what| wrong(&what))?;
                    facts.push(read(&item).map_err(|what| wrong(&what))?);
                }
                let count = facts.len();
                self.at_most(FACT_CONDITIONS_MAX, count)?;
            }
            Kind::NamePart => {
                into.contains = Some(Substring::of_name(text).map_err(|err| wrong(&err))?);
            }
            Kind::Pattern => into.add(Matcher::pattern(text), self)?,
            Kind::Regex => into.add(Matcher::regex(text), self)?,
            // The condition `distance` may follow later.
            Kind::Like => into.like = Some(text.to_owned()),
            Kind::Day(of) => {
                *of(into) = Some(Day::parse_from(text, today).map_err(|err| wrong(&err))?);
            }
            Kind::Release(of) => {
                *of(into) = Some(Release::parse_from(text, today).map_err(|err| wrong(&err))?);
            }
            Kind::Instant(of) => {
                // Forms encode a space as `+`, so an unescaped `+` of an offset arrives as a space.
                let instant = text.replace(' ', "+").parse().ok();
                let start =
                    || Some(UnixMs::from_instant(Day::parse_from(text, today).ok()?.start()));
                let what = "must be a timestamp such as 2026-11-21T12:00:00Z, or a date";
                *of(into) = Some(instant.or_else(start).ok_or_else(|| wrong(&what))?);
            }
        }
        Ok(())
    }

    fn at_most(&self, most: usize, items: usize) -> Result<(), BadParameter> {
        let what = || BadParameter::new(self.parameter, format!("must have at most {most} items"));
        if items > most { Err(what()) } else { Ok(()) }
    }
}

/// Returns `word` if it is one of `words`.
///
/// # Errors
/// `word` is not one of them; the text lists them.
pub fn known<'a>(words: &[&str], word: &'a str) -> Result<&'a str, String> {
    let known = words.contains(&word).then_some(word);
    known.ok_or_else(|| format!("must be one of {}", words.join(", ")))
}

/// The values of conditions, parsed.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    pub filter: Filter,
    /// Part of the whole name.
    pub contains: Option<Substring>,
    pub stages: Vec<Stage>,
    matchers: Vec<Matcher>,
    like: Option<String>,
    /// Maximum edits of `like`; 0 if it is not set.
    distance: u8,
}

impl Parsed {
    /// Parses the values of `conditions`. `sent` returns the value of a parameter.
    ///
    /// # Errors
    /// The first invalid value in the order of the table or, if all are valid, a range whose lower
    /// bound is above its upper one.
    pub fn new<'a>(
        conditions: &[Condition],
        today: Day,
        sent: impl Fn(&'static str) -> Result<Option<&'a str>, BadParameter>,
    ) -> Result<Parsed, BadParameter> {
        let mut parsed = Parsed::default();
        for condition in conditions {
            if let Some(text) = sent(condition.parameter)? {
                condition.parse(text, today, &mut parsed)?;
            }
        }
        for condition in conditions {
            if let Bar::Low(Range { high, crossed, .. }) = condition.bar
                && crossed(&parsed.filter)
            {
                let what = format!("must not be above {high}");
                let code = ParameterCode::CrossedRange;
                return Err(BadParameter::coded(code, condition.parameter, what));
            }
        }
        if let Some(text) = parsed.like.take() {
            // Generated clients send the default of `distance` even without `like`.
            let like = Matcher::like(&text, parsed.distance.max(1));
            parsed.matchers.push(like.map_err(|err| BadParameter::new("like", err))?);
        }
        let matchers = std::mem::take(&mut parsed.matchers);
        parsed.filter = parsed.filter.with_matchers(matchers);
        Ok(parsed)
    }

    fn add(
        &mut self,
        matcher: Result<Matcher, MatcherError>,
        of: &Condition,
    ) -> Result<(), BadParameter> {
        let refused = |err: MatcherError| {
            let code = match (of.kind, &err) {
                (_, MatcherError::TooLarge) => ParameterCode::RegexTooLarge,
                (Kind::Regex, _) => ParameterCode::InvalidRegex,
                _ => ParameterCode::InvalidPattern,
            };
            BadParameter::coded(code, of.parameter, err)
        };
        self.matchers.push(matcher.map_err(refused)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members that are not the parameter in camelCase (`data/docs/api.md`, Words): lists in the plural, and
    /// lengths in full.
    const OTHERS: [(&str, &str); 8] = [
        ("tld", "tlds"),
        ("not_tld", "notTlds"),
        ("stage", "stages"),
        ("language", "languages"),
        ("kind", "kinds"),
        ("fact", "facts"),
        ("min_len", "minLength"),
        ("max_len", "maxLength"),
    ];

    #[test]
    fn members_are_parameters_in_camel_case() {
        for condition in CONDITIONS {
            let mut words = condition.parameter.split('_');
            let first = words.next().unwrap_or_default().to_owned();
            let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
            let member = words.fold(first, |member, word| member + &capital(word));
            let other = OTHERS.iter().find(|(parameter, _)| *parameter == condition.parameter);
            assert_eq!(condition.member, other.map_or(member.as_str(), |(_, member)| member));
        }
    }
}
