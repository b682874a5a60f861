//! Computes the [`Dqs`] of a name with its signals and explanation. Pure: no clock and no I/O, so the
//! same name always gets the same score.
//!
//! The scorer splits a name into runs ([`label`]) and the most probable words ([`segment`],
//! [`dictionary`]), measures how usual its letters are ([`letters`], [`spelling`]), and weighs its
//! suffix ([`tlds`]). Fitted tables ([`model`]) turn these facts into whole points per part
//! ([`signals`]), whose sum is the score. A short explanation names the parts with the greatest
//! effect ([`explain`]). The facts fit in a few bytes ([`features`]), which are stored with the
//! name. The signals and explanation of the name can be restored from these bytes without the
//! dictionaries ([`Scorer::restore`]).

mod brands;
mod coverage;
mod dictionary;
mod features;
mod explain;
mod facts;
mod label;
mod letters;
mod model;
pub mod near;
mod percent;
mod prebuilt;
mod segment;
mod sequences;
mod shape;
mod signals;
mod spelling;
mod terms;
mod tlds;
mod trie;
#[cfg(test)]
#[path = "../../benches/scoring/sequence_table.rs"]
#[allow(dead_code, reason = "the build script fills the table")]
mod sequence_table;
#[cfg(test)]
#[path = "../../benches/scoring/trie_builder.rs"]
mod trie_builder;
mod words;

use dropdex_vocab as vocab;

use std::sync::LazyLock;

use serde::Serialize;
use utoipa::ToSchema;

use crate::vocab::dqs::Dqs;
use crate::vocab::kind::Kind;
use crate::vocab::language::LanguageCode;
use crate::vocab::name::{DomainName, is_a_label};

use brands::Brands;
use dictionary::{Dictionary, Reading, Setting, Token, TokenKind, digits_where};
use facts::{Caps, Facts, MANY_HYPHENS_MIN, ReadPoints};
use label::Label;
use letters::LetterModel;
use model::{Model, NameClass, Standing};
use shape::{Form, Shape};
use signals::{Parts, read_points};
use spelling::Spelling;
use terms::Terms;
use tlds::{SuffixClass, TldWeights};
use words::Cut;

pub use coverage::{Coverage, Spread};
pub use dictionary::Language;
pub use facts::Cap;
pub use features::Brief;
pub use percent::Percent;
pub use signals::Points;
pub use words::Words;

/// Version of the scorer. The version must be incremented on any change to a score, a signal or the
/// stored features; the next rebuild then scores the whole corpus again. The wording of
/// explanations does not count.
pub const SCORER_VERSION: u32 = 10;

/// Dictionaries, letter statistics, suffix weights and brands. Immutable.
pub struct Scorer {
    tlds: TldWeights,
    dictionary: Dictionary,
    spelling: Spelling,
    terms: Terms,
    brands: Brands,
}

/// Buffers that scoring reuses from name to name, one per thread.
#[derive(Clone, Default)]
pub struct Scratch {
    label: Label,
    reading: Reading,
    /// Positions of the tokens in the Unicode label.
    cuts: Vec<Cut>,
    sentence: String,
}

/// The score of a name without `tldSpread`, which depends on the whole corpus. Computed once at
/// ingest, stored in the batch, and finished at rebuild by [`Base::with_spread`].
///
/// A number with three digits of different bases: the standing for the points of `tldSpread`, the caps,
/// and the sum of the parts, in hundredths of a point, plus [`Base::BIAS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base(u32);

/// A name with its stored score features.
#[derive(Clone, Copy, Debug)]
pub struct StoredScore<'a> {
    /// The registrable label in A-label form.
    pub label: &'a str,
    /// The public suffix without a leading dot.
    pub tld: &'a str,
    pub spread: Spread,
    pub features: Features<'a>,
}

/// Score features of a label and suffix in the same [`SCORER_VERSION`]. The features may be empty; the
/// name is then scored again.
#[derive(Clone, Copy, Debug)]
pub enum Features<'a> {
    /// Output of [`Scorer::base_with_features`].
    Whole(&'a [u8]),
    /// Brief features, and the [`Grade::rank`] of the name with the spread in [`StoredScore::spread`].
    Brief(Brief<'a>, u16),
}

impl Features<'_> {
    /// No features.
    pub const NONE: Features<'static> = Features::Whole(&[]);
}

/// A score, with its unrounded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grade {
    pub dqs: Dqs,
    /// Sum of all parts before rounding and caps, in hundredths of a point above an arbitrary zero.
    /// Orders names with the same score; higher values come first.
    pub rank: u16,
}

/// Traits of a label for filters and facets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    pub kind: Kind,
    /// Number of words; 0 for a label with other letters.
    pub words: u8,
    /// Most likely language of the words, by letters; `None` without words, or with only proper
    /// names.
    pub language: Option<LanguageCode>,
    /// Whether a cap other than `alsoBrand` applies, even if the points do not reach it.
    pub capped: bool,
    /// Whether the label has an adult term.
    pub adult: bool,
    /// Whether the label joins minors and sex. No list, count or page may hold the name.
    pub prohibited: bool,
}

/// A score with its signals and explanation.
#[derive(Clone, Debug)]
pub struct Scored {
    pub dqs: Dqs,
    /// See [`Grade::rank`].
    pub rank: u16,
    pub signals: Signals<'static>,
    /// One sentence of at most 160 characters on what moved the score most.
    pub explanation: String,
}

/// A [`Scored`] that borrows from the label and the [`Scratch`].
#[derive(Clone, Debug)]
pub struct Restored<'a> {
    pub dqs: Dqs,
    /// See [`Grade::rank`].
    pub rank: u16,
    pub signals: Signals<'a>,
    /// See [`Traits::words`].
    pub words: u8,
    /// See [`Scored::explanation`].
    pub explanation: &'a str,
}

/// The facts of a name, for fitting the model.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Names and values of facts.
    pub facts: [(&'static str, i32); model::FACTS.len()],
    /// Names of the suffix class and length class of the name.
    pub class: [&'static str; 2],
    pub tld_weight: Percent,
    pub idn: bool,
    /// Number of the form of the label.
    pub form: u8,
    /// Market value of the words in hundredths of a point, before weighting by class.
    pub market: i32,
    /// The pieces in order; pieces other than words are empty.
    pub words: Vec<String>,
    pub caps: Vec<Cap>,
}

/// Facts and points of a name, whose tokens are in a [`Scratch`].
struct Breakdown {
    facts: Facts,
    grade: Grade,
    /// Points of all parts.
    points: Points,
    /// Whether explanations may print the words.
    printable: bool,
    /// True if the label was not decoded; the cuts then apply to [`StoredScore::label`].
    unread: bool,
}

impl Breakdown {
    fn words<'a>(&self, known: &StoredScore<'a>, scratch: &'a Scratch) -> Words<'a> {
        let text = if self.unread { known.label } else { scratch.label.written() };
        Words::new(text, &scratch.cuts)
    }
}

/// Inputs of a score. They vary with `scorerVersion`; ignore members you do not know.
// `dqs = min(sum of points, max of every cap)`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Signals<'a> {
    /// Version of the scorer.
    #[serde(rename = "scorerVersion")]
    pub scorer_version: u32,
    /// Length of the label in Unicode characters: `1-3`, `4-5`, `6-8`, `9-12`, `13-20` or `21+`.
    #[serde(rename = "lengthBand")]
    pub length_band: &'static str,
    /// How well dictionaries cover the label: 1 for one very common word, 0 for no words.
    #[schema(value_type = f32, minimum = 0, maximum = 1)]
    pub dictionary_quality: Percent,
    /// The label split into words, numbers and the rest, in order.
    #[schema(value_type = Vec<String>)]
    pub words: Words<'a>,
    /// ISO 639-1 code of most of the words; `null` without words, with proper names only, and for words
    /// that several languages have.
    #[schema(required)]
    pub language: Option<&'static str>,
    pub kind: Kind,
    /// Shape of a short label of letters or digits only: `LL`, `LLL`, `LLLL`, `CVCV` (four letters,
    /// consonants and vowels in turn), `NN`, `NNN` or `NNNN`.
    #[schema(required)]
    pub pattern: Option<&'static str>,
    /// Number of digits in the label.
    pub digits: u32,
    /// Number of hyphens in the label.
    pub hyphens: u32,
    /// How easily the label is spoken. 0.5 for labels under four letters and for other scripts.
    #[schema(value_type = f32, minimum = 0, maximum = 1)]
    pub pronounceability: Percent,
    /// Value of the public suffix: 1 for `com`.
    #[schema(value_type = f32, minimum = 0, maximum = 1)]
    pub tld_weight: Percent,
    /// Number of TLDs open to the public in which the corpus has the label, its own included.
    #[serde(rename = "tldSpread")]
    pub tld_spread: u32,
    pub points: Points,
    /// Caps that apply, strictest first, whether or not the points reach them.
    pub caps: Vec<Cap>,
}

/// Returns true if a label in A-label form mixes scripts that no language combines, a common way to
/// imitate a known name.
pub fn mixes_scripts(label: &str) -> bool {
    // Other labels consist of ASCII.
    is_a_label(label) && {
        let mut parts = Label::default();
        parts.read(label);
        parts.mixed_scripts
    }
}

impl Signals<'_> {
    /// Converts to an owned value.
    pub fn into_owned(self) -> Signals<'static> {
        Signals { words: self.words.into_owned(), ..self }
    }
}

impl Base {
    /// Number of stored sums, all that fit beside the others.
    const SUMS: u32 = u32::MAX / (Standing::COUNT << Caps::COUNT) as u32;
    /// Offset that makes the stored sum positive.
    const BIAS: i32 = Base::SUMS as i32 / 2;

    /// Packs the sum of all parts except `tldSpread`.
    fn new(sum: i32, caps: Caps, standing: Standing) -> Base {
        let upper = u32::from(standing.number()) << Caps::COUNT | u32::from(caps.bits());
        let sum = (sum + Base::BIAS).clamp(0, Base::SUMS as i32 - 1);
        Base(upper * Base::SUMS + sum as u32)
    }

    fn sum(self) -> i32 {
        (self.0 % Base::SUMS) as i32 - Base::BIAS
    }

    fn standing(self) -> Standing {
        Standing::from_number(((self.0 / Base::SUMS) >> Caps::COUNT) as u8)
    }

    fn caps(self) -> Caps {
        Caps::from_bits((self.0 / Base::SUMS) as u16)
    }

    /// Returns the bits, as stored in a batch.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Inverse of [`Base::to_bits`] in the same [`SCORER_VERSION`].
    pub const fn from_bits(bits: u32) -> Base {
        Base(bits)
    }

    /// Returns the base with its cap updated: the tables that say whether the suffix is open to the
    /// public may have changed.
    #[must_use]
    pub fn with_open(self, is_open: bool) -> Base {
        let others = self.caps().without(Caps::NOT_PUBLIC);
        Base::new(self.sum(), others.with(Caps::NOT_PUBLIC.when(!is_open)), self.standing())
    }

    /// Completes the score with the label's spread in the corpus.
    pub fn with_spread(self, spread: Spread) -> Grade {
        let (model, standing) = (Model::shared(), self.standing());
        let sum = model.lifted(standing, self.sum() + model.spread(standing, spread));
        Grade::new(sum, self.caps().max())
    }

    /// See [`Traits::prohibited`].
    pub fn is_prohibited(self) -> bool {
        self.caps().has(Caps::MINORS)
    }

    /// See [`Traits::adult`].
    pub fn is_adult(self) -> bool {
        self.caps().has(Caps::ADULT)
    }
}

impl Facts {
    /// Determines the form and, for an ASCII `label`, the shape.
    pub fn set_form(&mut self, label: &str, tokens: &[Token]) {
        debug_assert!(
            tokens.iter().all(|token| token.kind != TokenKind::Digits || self.digits > 0)
        );
        self.form = self.form_of(tokens);
        self.shape = match self.idn {
            true => Shape::None,
            false => Shape::of(label, self.form),
        };
    }

    /// Returns the form of a label with these tokens.
    fn form_of(&self, tokens: &[Token]) -> Form {
        let Facts { chars, digits, hyphens, letters, others, .. } = *self;
        if hyphens + others > 0 || digits > 0 && letters > 0 {
            Form::Other
        } else if digits > 0 {
            Form::Number
        } else if tokens.iter().all(Token::is_word) {
            [Form::Other, Form::Word, Form::Pair, Form::Phrase][tokens.len().min(3)]
        } else if chars <= shape::SHORT {
            Form::Letters
        } else {
            Form::Invented
        }
    }
}

/// Offset that makes [`Grade::rank`] positive.
const RANK_BIAS: i32 = 1 << 15;

impl Grade {
    /// Computes the score from the sum of all parts, limited to `max`.
    fn new(sum: i32, max: i32) -> Grade {
        let dqs = Dqs::clamped(Model::shared().score(sum).min(max));
        let rank = (sum + RANK_BIAS).clamp(0, u16::MAX.into()) as u16;
        Grade { dqs, rank }
    }
}

impl Scorer {
    /// Returns the shared scorer of the process.
    pub fn shared() -> &'static Scorer {
        static SHARED: LazyLock<Scorer> = LazyLock::new(Scorer::load);
        &SHARED
    }

    fn load() -> Scorer {
        Scorer {
            tlds: TldWeights::load(),
            dictionary: Dictionary::new(),
            spelling: Spelling::new(),
            terms: Terms::load(),
            brands: Brands::load(),
        }
    }

    /// Returns true for a name that joins minors and sex; see [`Traits::prohibited`].
    pub fn is_prohibited(&self, name: &DomainName, scratch: &mut Scratch) -> bool {
        self.base(name, scratch).is_prohibited()
    }

    /// Returns true if anyone may register under a public suffix.
    pub fn is_open(&self, tld: &str) -> bool {
        self.tlds.caps(tld) == Caps::default()
    }

    /// Computes the score without `tldSpread`. Does not allocate for ASCII names once `scratch` has
    /// grown.
    pub fn base(&self, name: &DomainName, scratch: &mut Scratch) -> Base {
        let facts = self.read_facts(name.label(), name.tld(), scratch);
        base(&facts, name.tld())
    }

    /// Updates the cap of a closed suffix in stored score features, like [`Base::with_open`].
    pub fn set_open(features: &mut [u8], is_open: bool) {
        features::set_open(features, is_open);
    }

    /// Like [`Scorer::base`], but also appends the score features to `out`: at most 255 bytes, usually
    /// ten to thirteen, and none if the name must be scored again.
    pub fn base_with_features(
        &self,
        name: &DomainName,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Base {
        let facts = self.read_facts(name.label(), name.tld(), scratch);
        let Scratch { label, reading, .. } = scratch;
        let printable = self.printable(label, &reading.tokens);
        features::write(&facts, printable, &reading.tokens, out);
        base(&facts, name.tld())
    }

    /// Returns the facts and pieces of a name, for fitting the model.
    pub fn observe(&self, name: &DomainName, scratch: &mut Scratch) -> Observed {
        let facts = self.read_facts(name.label(), name.tld(), scratch);
        let Scratch { label, reading, .. } = scratch;
        let text = |token: &Token| {
            let word = token.is_word().then(|| label.text(token.start, token.end).to_owned());
            word.unwrap_or_default()
        };
        Observed {
            facts: model::FACTS.map(|(name, fact)| (name, fact(&facts))),
            class: NameClass::new(SuffixClass::for_tld(name.tld()), facts.chars).names(),
            tld_weight: facts.tld_weight,
            idn: facts.idn,
            form: facts.form as u8,
            market: market(reading),
            words: reading.tokens.iter().map(text).collect(),
            caps: facts.caps.list().collect(),
        }
    }

    /// Computes the score with signals and explanation. Its `dqs` and `rank` equal those of
    /// `base(name).with_spread(spread)`.
    pub fn score(&self, name: &DomainName, spread: Spread, scratch: &mut Scratch) -> Scored {
        let (label, tld) = (name.label(), name.tld());
        self.restore_owned(StoredScore { label, tld, spread, features: Features::NONE }, scratch)
    }

    /// Like [`Scorer::restore`], but returns an owned value.
    pub fn restore_owned(&self, known: StoredScore<'_>, scratch: &mut Scratch) -> Scored {
        let Restored { dqs, rank, signals, explanation, .. } = self.restore(known, scratch);
        let explanation = explanation.to_owned();
        Scored { dqs, rank, signals: signals.into_owned(), explanation }
    }

    /// Restores the result of [`Scorer::score`] from stored features.
    pub fn restore<'a>(&self, known: StoredScore<'a>, scratch: &'a mut Scratch) -> Restored<'a> {
        let seen = self.breakdown(&known, scratch);
        self.write_explanation(&known, &seen, scratch);
        let scratch: &'a Scratch = scratch;
        let Breakdown { facts, points, grade: Grade { dqs, rank }, .. } = seen;
        let tokens = &scratch.reading.tokens;
        let signals = Signals {
            scorer_version: SCORER_VERSION,
            length_band: signals::length_band(facts.chars),
            dictionary_quality: facts.quality,
            words: seen.words(&known, scratch),
            language: language(tokens)
                .filter(|_| facts.certain)
                .and_then(Language::code)
                .map(LanguageCode::as_str),
            kind: kind(&facts, tokens),
            pattern: signals::pattern(known.label),
            digits: facts.digits,
            hyphens: facts.hyphens,
            pronounceability: facts.pronounceability,
            tld_weight: facts.tld_weight,
            tld_spread: known.spread.tlds.max(1),
            points,
            caps: facts.caps.list().collect(),
        };
        Restored { dqs, rank, signals, words: words(tokens), explanation: &scratch.sentence }
    }

    /// Restores the traits of a label for filters and facets.
    pub fn traits(&self, known: StoredScore<'_>, scratch: &mut Scratch) -> Traits {
        let (facts, _, _) = self.recall(&known, scratch);
        let tokens = &scratch.reading.tokens;
        Traits {
            kind: kind(&facts, tokens),
            words: words(tokens),
            language: language(tokens).filter(|_| facts.certain).and_then(Language::code),
            capped: facts.caps.limit(),
            adult: facts.caps.has(Caps::ADULT),
            prohibited: facts.caps.has(Caps::MINORS),
        }
    }

    /// Restores the score without `tldSpread`, as if nothing were known about other TLDs.
    pub fn without_spread(&self, known: StoredScore<'_>, scratch: &mut Scratch) -> Dqs {
        let (facts, _, _) = self.recall(&known, scratch);
        let (model, suffix) = (Model::shared(), SuffixClass::for_tld(known.tld));
        let standing = Standing::new(suffix, facts.form);
        let sum = match known.features {
            Features::Brief(_, rank) => {
                let sum = model.unlifted(standing, i32::from(rank) - RANK_BIAS);
                sum - model.spread(standing, known.spread)
            }
            Features::Whole(_) => Parts::new(&facts, NameClass::new(suffix, facts.chars)).sum(),
        };
        Grade::new(model.lifted(standing, sum), facts.caps.max()).dqs
    }

    /// Restores only the explanation.
    pub fn explain<'a>(&self, known: StoredScore<'_>, scratch: &'a mut Scratch) -> &'a str {
        let seen = self.breakdown(&known, scratch);
        self.write_explanation(&known, &seen, scratch);
        &scratch.sentence
    }

    /// Restores facts from the features or, without them, from the name, and stores the tokens in
    /// `scratch`. Also returns whether explanations may print the words, and whether the label was not
    /// decoded.
    fn recall(&self, known: &StoredScore<'_>, scratch: &mut Scratch) -> (Facts, bool, bool) {
        let mut facts = Facts::default();
        let Scratch { label, reading, .. } = scratch;
        let StoredScore { label: text, tld, features, .. } = *known;
        let tokens = &mut reading.tokens;
        let read = match features {
            Features::Whole(bytes) => features::read(text, bytes, tokens, label, &mut facts),
            Features::Brief(brief, _) => {
                features::read_brief(text, brief, tokens, label, &mut facts)
            }
        };
        match read {
            Some(printable) => {
                facts.set_form(text, &reading.tokens);
                facts.tld_weight = self.tlds.weight(tld);
                facts.tld_points = Model::shared().suffix(tld);
                (facts, printable, !facts.idn)
            }
            None => {
                let facts = self.read_facts(text, tld, scratch);
                (facts, self.printable(&scratch.label, &scratch.reading.tokens), false)
            }
        }
    }

    /// Like [`Scorer::recall`], but also computes the points, and stores the cuts in `scratch`.
    fn breakdown(&self, known: &StoredScore<'_>, scratch: &mut Scratch) -> Breakdown {
        let (facts, printable, unread) = self.recall(known, scratch);
        let Scratch { label, reading, cuts, .. } = scratch;
        cuts.clear();
        // Positions in an ASCII label equal those of its tokens.
        let cut = |token: &Token| match facts.idn {
            true => label.cut(token.start, token.end),
            false => (token.start as u8, token.end as u8),
        };
        cuts.extend(reading.tokens.iter().map(cut));
        let (model, suffix) = (Model::shared(), SuffixClass::for_tld(known.tld));
        let standing = Standing::new(suffix, facts.form);
        let parts = Parts::new(&facts, NameClass::new(suffix, facts.chars));
        let parts = parts.with_spread(model.spread(standing, known.spread));
        let sum = match known.features {
            Features::Brief(_, rank) => i32::from(rank) - RANK_BIAS,
            Features::Whole(_) => model.lifted(standing, parts.sum()),
        };
        let parts = parts.with_sum(sum, &facts);
        let points = parts.points(model.score(parts.sum()));
        let grade = Grade::new(parts.sum(), facts.caps.max());
        Breakdown { facts, grade, points, printable, unread }
    }

    /// Writes the explanation into the buffer of `scratch`.
    fn write_explanation(&self, known: &StoredScore<'_>, seen: &Breakdown, scratch: &mut Scratch) {
        let mut sentence = std::mem::take(&mut scratch.sentence);
        let input = explain::ExplanationInput {
            tld: known.tld,
            facts: &seen.facts,
            points: &seen.points,
            tokens: &scratch.reading.tokens,
            written: &seen.words(known, scratch),
            pattern: signals::pattern(known.label),
            printable: seen.printable,
            others: known.spread.tlds.saturating_sub(1),
        };
        input.write(&mut sentence);
        scratch.sentence = sentence;
    }

    /// Returns true if explanations may print all words.
    fn printable(&self, label: &Label, tokens: &[Token]) -> bool {
        let mut words = tokens.iter().filter(|token| token.is_word());
        words.all(|word| self.terms.may_print(label.text(word.start, word.end)))
    }

    /// Reads a name into `scratch` and computes its facts.
    fn read_facts(&self, text: &str, tld: &str, scratch: &mut Scratch) -> Facts {
        let Scratch { label, reading, .. } = scratch;
        label.read(text);
        let suffix = SuffixClass::for_tld(tld);
        let setting = Setting { expected: self.dictionary.expected(tld), class: suffix };
        self.dictionary.read(label, setting, reading);
        let class = NameClass::new(suffix, label.chars);
        let mut facts = self.facts(label, tld, reading);
        facts.set_form(label.whole_text(), &reading.tokens);
        if suffix == SuffixClass::Polish {
            (facts.polish_cost, facts.polish_dearest) = polish_costs(label);
        }
        facts.read = read_points(&facts, class, Model::shared().weighed(market(reading), class));
        facts
    }

    /// Computes the facts of a label, except those of the Polish model and the dictionary points.
    fn facts(&self, label: &Label, tld: &str, reading: &Reading) -> Facts {
        let tokens = &reading.tokens;
        let count = |kind| tokens.iter().filter(|token| token.kind == kind).map(Token::len).sum();
        let letters = tokens.iter().filter(|token| token.is_letters());
        let words = tokens.iter().filter(|token| token.is_word()).count() as u32;
        let letters: u32 = letters.map(Token::len).sum();
        let others: u32 = count(TokenKind::Other);
        let (total, steps) = letter_costs(LetterModel::names(), label);
        let (english, _) = letter_costs(LetterModel::english(), label);
        let spelt: u32 = letter_runs(label).map(|run| self.spelling.cost(run)).sum();
        let spelt = spelt + dictionary::unread_cost(label.digits, others);
        Facts {
            chars: label.chars,
            digits: label.digits,
            distinct_digits: distinct_digits(label, tokens),
            digits_where: digits_where(tokens),
            hyphens: label.hyphens,
            letters,
            others,
            idn: label.idn,
            bits: reading.cost / 16,
            bits_per_letter: reading.cost.checked_div(letters + others + label.digits).unwrap_or(0),
            pieces: tokens.len() as u32,
            unknown: count(TokenKind::Unknown) + count(TokenKind::Letter),
            fit: (10 * reading.fit).checked_div(words).unwrap_or(0),
            letter_cost: total.checked_div(steps).unwrap_or(LETTER_COST_PLAIN),
            english_cost: english.checked_div(steps).unwrap_or(LETTER_COST_PLAIN),
            polish_cost: 0,
            polish_dearest: 0,
            spelt_bits: if label.chars < SPELT_FROM { 0 } else { spelt / 16 },
            form: Form::default(),
            shape: Shape::default(),
            quality: dictionary::quality(tokens),
            pronounceability: pronounceability(total, steps),
            tld_weight: self.tlds.weight(tld),
            tld_points: Model::shared().suffix(tld),
            read: ReadPoints::default(),
            certain: reading.certain,
            caps: self
                .caps(label, tokens)
                .with(self.tlds.caps(tld))
                .with(self.tlds.reserved(label.written(), tld)),
        }
    }

    fn caps(&self, label: &Label, tokens: &[Token]) -> Caps {
        let hyphens = Caps::MANY_HYPHENS.when(label.hyphens >= MANY_HYPHENS_MIN);
        let scripts = Caps::MIXED_SCRIPTS.when(label.mixed_scripts);
        let brands = self.brands.caps(label, tokens);
        self.terms.caps(label, tokens).with(hyphens).with(scripts).with(brands)
    }
}

/// Computes the score without the points of `tldSpread`.
fn base(facts: &Facts, tld: &str) -> Base {
    let suffix = SuffixClass::for_tld(tld);
    let parts = Parts::new(facts, NameClass::new(suffix, facts.chars));
    Base::new(parts.sum(), facts.caps, Standing::new(suffix, facts.form))
}

/// Default cost of a letter, in sixteenths of a bit, for labels without letters.
const LETTER_COST_PLAIN: u32 = 64;

/// Minimum characters of a label for its spelling to have a cost; any shorter spelling is fine.
const SPELT_FROM: u32 = 4;

/// Returns the total cost and number of steps of all runs of letters.
fn letter_costs<const COSTS: usize>(model: &LetterModel<COSTS>, label: &Label) -> (u32, u32) {
    let costs = letter_runs(label).map(|run| model.cost(run));
    costs.fold((0, 0), |(total, steps), (cost, length)| (total + cost, steps + length))
}

/// Returns the mean and maximum cost of a step in the Polish model.
fn polish_costs(label: &Label) -> (u32, u32) {
    let polish = LetterModel::polish();
    let (total, steps) = letter_costs(polish, label);
    let max_step_cost = letter_runs(label).map(|run| polish.max_step_cost(run)).max();
    (total.checked_div(steps).unwrap_or(LETTER_COST_PLAIN), max_step_cost.unwrap_or(0))
}

/// Returns the runs of letters in a label.
fn letter_runs(label: &Label) -> impl Iterator<Item = &str> {
    let runs = label.runs.iter().filter(|run| run.kind == label::RunKind::Letters);
    runs.map(|run| label.text(run.start, run.end))
}

/// Computes the pronounceability; 0.5 below four letters, because people spell out such names.
fn pronounceability(total: u32, steps: u32) -> Percent {
    const STEPS_MIN: u32 = 5;
    let judged = LetterModel::pronounceability(total, steps).filter(|_| steps >= STEPS_MIN);
    judged.unwrap_or(Percent::HALF)
}

/// Returns the market value of the words in hundredths of a point. Several words are worth more than
/// one of them, but less than their sum.
fn market(reading: &Reading) -> i32 {
    /// Inverse square roots of the number of pieces, in 256ths.
    const SHARE: [i32; 8] = [256, 256, 181, 148, 128, 114, 105, 97];
    /// Hundredths in a tenth.
    const TENTH: i32 = 10;
    let share = SHARE[reading.tokens.len().min(SHARE.len() - 1)];
    reading.value * share * TENTH / 256
}

/// Minimum pronounceability of letters outside words that count as an invented name.
const INVENTED_FROM: u8 = 65;
/// Maximum length of a label that counts as an abbreviation unless it is a word.
const LETTERS_MAX: u32 = 3;

/// Determines the kind of a label.
fn kind(facts: &Facts, tokens: &[Token]) -> Kind {
    let mut words = tokens.iter().filter_map(|token| match token.kind {
        TokenKind::Word(language) => Some(language),
        _ => None,
    });
    match words.clone().count() {
        _ if facts.digits > 0 && facts.letters + facts.others > 0 => Kind::Mixed,
        _ if facts.digits > 0 => Kind::Number,
        words_only if words_only > 0 && words_only == tokens.len() => {
            if words.all(|language| language.code().is_none()) {
                Kind::Name
            } else if words_only == 1 {
                Kind::Word
            } else {
                Kind::Words
            }
        }
        _ if facts.letters <= LETTERS_MAX || facts.others > 0 => Kind::Letters,
        _ if facts.pronounceability.get() >= INVENTED_FROM => Kind::Invented,
        _ => Kind::Letters,
    }
}

fn distinct_digits(label: &Label, tokens: &[Token]) -> u32 {
    let numbers = tokens.iter().filter(|token| token.kind == TokenKind::Digits);
    let seen = numbers
        .flat_map(|token| label.text(token.start, token.end).bytes())
        .fold(0u16, |seen, digit| seen | 1 << (digit - b'0'));
    seen.count_ones()
}

/// Counts the words of a label; 0 if it has other letters.
fn words(tokens: &[Token]) -> u8 {
    let is_read = |token: &Token| !matches!(token.kind, TokenKind::Unknown | TokenKind::Letter);
    let words = match tokens.iter().all(is_read) {
        true => tokens.iter().filter(|token| token.is_word()).count(),
        false => 0,
    };
    u8::try_from(words).unwrap_or(u8::MAX)
}

/// Returns the language with the most letters in words; of several, the first.
fn language(tokens: &[Token]) -> Option<Language> {
    let letters_of = |language| {
        let own = tokens.iter().filter(|token| token.kind == TokenKind::Word(language));
        own.map(Token::len).sum::<u32>()
    };
    let languages = tokens.iter().filter_map(|token| match token.kind {
        TokenKind::Word(language) => Some(language),
        _ => None,
    });
    languages.rev().max_by_key(|&language| letters_of(language))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::vocab::budget::{self, Budget};

    #[test]
    fn restored_names_equal_scored_names() {
        let mut scratch = Scratch::default();
        for name in ["best-hotel-4u.com", "łódź24.pl", "东京.cn", "p\u{430}ypal.com", "ß.de"]
        {
            let name = DomainName::parse(name).expect(name);
            let mut features = Vec::new();
            Scorer::shared().base_with_features(&name, &mut scratch, &mut features);
            let scored = Scorer::shared().score(&name, Spread::of(2), &mut scratch);
            let (label, tld) = (name.label(), name.tld());
            let known = StoredScore {
                label,
                tld,
                spread: Spread::of(2),
                features: Features::Whole(&features),
            };
            let restored = Scorer::shared().restore(known, &mut scratch);
            assert_eq!(
                (restored.dqs, restored.explanation),
                (scored.dqs, &*scored.explanation),
                "{name}"
            );
            assert!(restored.signals.words.iter().eq(scored.signals.words.iter()), "{name}");
        }
    }

    #[test]
    fn a_scorer_is_ready_within_a_request() {
        let name = DomainName::parse("solar.com").expect("a name");
        let (budget, _waiting) = Budget::new(Duration::from_millis(100));
        let read = budget.lend(None, || {
            let fresh = Scorer::load();
            (fresh.score(&name, Spread::of(1), &mut Scratch::default()).dqs, budget::spent())
        });
        let dqs = Scorer::shared().score(&name, Spread::of(1), &mut Scratch::default()).dqs;
        assert_eq!(read, Ok((dqs, false)));
    }

    #[test]
    fn unusual_sequences_cost_more_to_spell() {
        let mut scratch = Scratch::default();
        let mut bits = |label: &str| {
            let name = DomainName::parse(&format!("{label}.com")).expect(label);
            let facts = Scorer::shared().observe(&name, &mut scratch).facts;
            facts.iter().find(|(fact, _)| *fact == "spelt_bits").expect("a fact").1
        };
        assert!(bits("hotel") < bits("hoteq") && bits("hoteq") < bits("hqteq"));
        assert_eq!([bits("48151"), bits("48-151")], [16, 16], "all digits are equally likely");
        assert_eq!([bits("xqz"), bits("789")], [0, 0], "three characters may be anything");
    }
}
