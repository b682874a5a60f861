//! Names in, [`Dqs`] with its reasons out. Pure: no clock, no I/O, so the same name always gets
//! the same score.
//!
//! A name is taken apart ([`label`]), split into the most probable words ([`segment`],
//! [`dictionary`]), its letters are tried for how usual they are ([`letters`], [`spelling`]), its suffix is weighed
//! ([`tlds`]). What was seen becomes whole points per part ([`signals`]) by fitted tables
//! ([`model`]); their sum is the score. A sentence says what moved it ([`explain`]).
//! What was seen fits in a few bytes ([`evidence`]): whoever keeps them with the name has its
//! signals and its sentence again without reading it ([`Scorer::recall`]), and without the memory
//! that dictionaries take.

mod dictionary;
mod evidence;
mod explain;
mod label;
mod letters;
mod model;
mod percent;
mod prebuilt;
mod segment;
mod signals;
mod spelling;
mod terms;
mod tlds;
mod trie;
#[cfg(test)]
#[path = "../../benches/scoring/trie_builder.rs"]
mod trie_builder;
mod words;

use std::sync::LazyLock;

use serde::Serialize;

use crate::vocab::dqs::Dqs;
use crate::vocab::name::{DomainName, is_a_label};

use dictionary::{Dictionary, Reading, Setting, Token, TokenKind, Tongue, digits_where};
use label::Label;
use letters::LetterModel;
use model::{Class, Model};
use signals::{Caps, Facts, MANY_HYPHENS_MIN, ReadPoints};
use spelling::Spelling;
use terms::Terms;
use tlds::{SuffixClass, TldWeights};
use words::Cut;

pub use percent::Percent;
pub use signals::{Cap, Points};
pub use words::Words;

/// Which scorer gave a score. Any change to a score, signal or explanation raises it, and the
/// next rebuild scores the whole corpus again.
pub const SCORER_VERSION: u32 = 3;

/// Everything a score is made from: dictionaries, letter statistics, suffix weights. Immutable.
pub struct Scorer {
    tlds: TldWeights,
    dictionary: Dictionary,
    spelling: Spelling,
    terms: Terms,
}

/// Buffers that scoring reuses from name to name: one per thread.
#[derive(Clone, Default)]
pub struct Scratch {
    label: Label,
    reading: Reading,
    /// The tokens in the label as people write it.
    cuts: Vec<Cut>,
    sentence: String,
}

/// The score of a name but for `tldSpread`, which only the whole corpus knows: computed once at
/// ingest, kept in the batch, finished at rebuild by [`Base::with_spread`].
///
/// The low 16 bits hold the sum of the points so far, plus [`Base::BIAS`]; the next 8 the highest
/// score that the caps allow, the highest 8 the class in which spread is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base(u32);

/// What is known of a name that was scored before.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The registrable label in A-label form.
    pub label: &'a str,
    /// The public suffix without a leading dot.
    pub tld: &'a str,
    /// In how many TLDs the corpus holds the label, its own included; 0 is read as 1.
    pub spread: u32,
    /// What [`Scorer::base_with_evidence`] gave for this label and suffix, by the same
    /// [`SCORER_VERSION`]. Empty evidence is always right: the name is then read again.
    pub evidence: &'a [u8],
}

/// A finished score with its reasons.
#[derive(Clone, Debug)]
pub struct Scored {
    pub dqs: Dqs,
    pub signals: Signals<'static>,
    /// One plain sentence, at most 160 characters, that names what moved the score most.
    pub explanation: String,
}

/// The same, borrowed from the label and from the [`Scratch`] it was made in.
#[derive(Clone, Debug)]
pub struct Recalled<'a> {
    pub dqs: Dqs,
    pub signals: Signals<'a>,
    /// As [`Scored::explanation`].
    pub explanation: &'a str,
}

/// A name as the model sees it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// By name; `spread` is 1.
    pub facts: [(&'static str, i32); model::FACTS.len()],
    /// Those of its suffix and of its length.
    pub class: [&'static str; 2],
    pub tld_weight: Percent,
    pub idn: bool,
    /// The pieces in order: the word, or nothing for what is no word.
    pub words: Vec<String>,
    pub caps: Vec<Cap>,
}

/// What a score is told from, but for what stands in a [`Scratch`].
#[derive(Default)]
struct Seen {
    facts: Facts,
    /// All of them.
    points: Points,
    /// Sentences may hold the words.
    printable: bool,
    /// The label has not been read: the cuts are those of [`Known::label`] itself.
    unread: bool,
}

impl Seen {
    fn words<'a>(&self, known: &Known<'a>, scratch: &'a Scratch) -> Words<'a> {
        let text = if self.unread { known.label } else { scratch.label.written() };
        Words::new(text, &scratch.cuts)
    }
}

/// What the score was made from, as the API shows it (decisions.md §8).
///
/// `points` sum to the score before it is held within 0..=100; a cap in `caps` then holds it to
/// that cap's `max`. So `dqs = min(clamp(sum of points, 0, 100), max of every cap)`.
#[derive(Clone, Debug, Serialize)]
pub struct Signals<'a> {
    /// [`SCORER_VERSION`].
    #[serde(rename = "scorerVersion")]
    pub scorer_version: u32,
    /// `1-3`, `4-5`, `6-8`, `9-12`, `13-20`, `21+`: characters of the label in Unicode.
    #[serde(rename = "lengthBand")]
    pub length_band: &'static str,
    /// How well dictionaries know it: 1 for one very common word, less for rarer words, for more
    /// of them and for letters that are none, 0 for none at all.
    pub dictionary_quality: Percent,
    /// The label in pieces, in order: words, numbers, and what is between them.
    pub words: Words<'a>,
    /// ISO 639-1 code of most of its words; `null` when there are none, or only proper names.
    pub language: Option<&'static str>,
    /// Decimal digits in the label.
    pub digits: u32,
    /// Hyphens in the label.
    pub hyphens: u32,
    /// How easily its letters are spoken, from their sequence; 0.5 where that cannot be judged
    /// (fewer than four letters, other scripts).
    pub pronounceability: Percent,
    /// What the public suffix is worth: 1 for `com`.
    pub tld_weight: Percent,
    /// In how many TLDs the corpus holds the label, its own included.
    #[serde(rename = "tldSpread")]
    pub tld_spread: u32,
    /// What each part added or took.
    pub points: Points,
    /// Limits that apply, strictest first, whether or not the points reach them. Mostly empty.
    pub caps: Vec<Cap>,
}

/// Whether a label, in A-label form, has letters of scripts that nobody writes together: the usual
/// way to fake a known name.
pub fn mixes_scripts(label: &str) -> bool {
    // Only an A-label has letters beyond the Latin ones of ASCII.
    is_a_label(label) && {
        let mut parts = Label::default();
        parts.read(label);
        parts.mixed_scripts
    }
}

impl Signals<'_> {
    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Signals<'static> {
        Signals { words: self.words.into_owned(), ..self }
    }
}

impl Base {
    /// Keeps negative sums apart from the bits above them.
    const BIAS: i32 = 1 << 15;

    /// Of the sum of all points but those of `tldSpread` and of the scale.
    fn new(sum: i32, caps: Caps, class: Class) -> Base {
        let max = caps.max() as u32;
        Base(u32::from(class.number()) << 24 | max << 16 | (sum + Base::BIAS) as u32)
    }

    /// As a batch stores it.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// What [`Base::to_bits`] gave, by the same [`SCORER_VERSION`].
    pub const fn from_bits(bits: u32) -> Base {
        Base(bits)
    }

    /// The score of the name when the corpus holds its label in `tld_spread` TLDs, its own
    /// included; 0 is read as 1.
    pub fn with_spread(self, tld_spread: u32) -> Dqs {
        let model = Model::shared();
        let class = Class::numbered((self.0 >> 24) as u8);
        let sum = (self.0 & 0xffff) as i32 - Base::BIAS + model.spread(class, tld_spread);
        let sum = sum + model.scale(sum);
        Dqs::clamped(sum.min((self.0 >> 16 & 0xff) as i32))
    }
}

impl Scorer {
    /// The one scorer of the process.
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
        }
    }

    /// Everything but `tldSpread`: what ingest computes once per name. Allocates nothing for an
    /// ASCII name once `scratch` has grown.
    pub fn base(&self, name: &DomainName, scratch: &mut Scratch) -> Base {
        let facts = self.look(name.label(), name.tld(), scratch);
        base(&facts, name.tld())
    }

    /// As [`Scorer::base`], and appends to `out` what the score was made from: at most 255 bytes,
    /// mostly ten to thirteen, none where the name is to be read again.
    pub fn base_with_evidence(
        &self,
        name: &DomainName,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Base {
        let facts = self.look(name.label(), name.tld(), scratch);
        let Scratch { label, reading, .. } = scratch;
        let printable = self.printable(label, &reading.tokens);
        evidence::write(&facts, printable, &reading.tokens, out);
        base(&facts, name.tld())
    }

    /// What the model's tables look at, by name, and the pieces of the label: what fitting the
    /// model anew takes.
    pub fn observe(&self, name: &DomainName, scratch: &mut Scratch) -> Observed {
        let facts = self.look(name.label(), name.tld(), scratch);
        let Scratch { label, reading, .. } = scratch;
        let text = |token: &Token| {
            let word = token.is_word().then(|| label.text(token.start, token.end).to_owned());
            word.unwrap_or_default()
        };
        Observed {
            facts: model::FACTS.map(|(name, fact)| (name, fact(&facts))),
            class: Class::of(SuffixClass::of(name.tld()), facts.chars).names(),
            tld_weight: facts.tld_weight,
            idn: facts.idn,
            words: reading.tokens.iter().map(text).collect(),
            caps: facts.caps.list().collect(),
        }
    }

    /// The score with its reasons, when the corpus holds the label in `tld_spread` TLDs, the
    /// name's own included; 0 is read as 1. Its `dqs` is `base(name).with_spread(tld_spread)`.
    pub fn score(&self, name: &DomainName, tld_spread: u32, scratch: &mut Scratch) -> Scored {
        let (label, tld) = (name.label(), name.tld());
        let known = Known { label, tld, spread: tld_spread, evidence: &[] };
        let Recalled { dqs, signals, explanation } = self.recall(known, scratch);
        let explanation = explanation.to_owned();
        Scored { dqs, signals: signals.into_owned(), explanation }
    }

    /// What [`Scorer::score`] gives, from what is known of the name.
    pub fn recall<'a>(&self, known: Known<'a>, scratch: &'a mut Scratch) -> Recalled<'a> {
        let seen = self.seen(&known, scratch);
        let explanation = self.tell(&known, &seen, scratch);
        scratch.sentence = explanation;
        let scratch: &'a Scratch = scratch;
        let Seen { facts, points, .. } = seen;
        let signals = Signals {
            scorer_version: SCORER_VERSION,
            length_band: signals::length_band(facts.chars),
            dictionary_quality: facts.quality,
            words: seen.words(&known, scratch),
            language: language(&scratch.reading.tokens).and_then(Tongue::code),
            digits: facts.digits,
            hyphens: facts.hyphens,
            pronounceability: facts.pronounceability,
            tld_weight: facts.tld_weight,
            tld_spread: known.spread.max(1),
            points,
            caps: facts.caps.list().collect(),
        };
        let dqs = Dqs::clamped(points.sum().min(facts.caps.max()));
        Recalled { dqs, signals, explanation: &scratch.sentence }
    }

    /// The sentence of [`Scorer::recall`] alone.
    pub fn explain<'a>(&self, known: Known<'_>, scratch: &'a mut Scratch) -> &'a str {
        let seen = self.seen(&known, scratch);
        let explanation = self.tell(&known, &seen, scratch);
        scratch.sentence = explanation;
        &scratch.sentence
    }

    /// What is to be told of the name: from its evidence or, where that says nothing, from the
    /// name. Leaves tokens and cuts in `scratch`.
    fn seen(&self, known: &Known<'_>, scratch: &mut Scratch) -> Seen {
        let mut seen = Seen::default();
        let Scratch { label, reading, .. } = scratch;
        let Known { label: text, tld, spread, evidence } = *known;
        match evidence::read(text, evidence, &mut reading.tokens, label, &mut seen.facts) {
            Some(printable) => {
                (seen.printable, seen.unread) = (printable, !seen.facts.idn);
                seen.facts.tld_weight = self.tlds.of(tld);
            }
            None => {
                seen.facts = self.look(text, tld, scratch);
                seen.printable = self.printable(&scratch.label, &scratch.reading.tokens);
            }
        }
        let Scratch { label, reading, cuts, .. } = scratch;
        cuts.clear();
        // An ASCII label is cut where its tokens are.
        let cut = |token: &Token| match seen.facts.idn {
            true => label.cut(token.start, token.end),
            false => (token.start as u8, token.end as u8),
        };
        cuts.extend(reading.tokens.iter().map(cut));
        let class = Class::of(SuffixClass::of(tld), seen.facts.chars);
        let model = Model::shared();
        seen.points = Points::of(&seen.facts, class);
        seen.points.tld_spread = model.spread(class, spread);
        seen.points.scale = model.scale(seen.points.sum());
        seen
    }

    /// The sentence, in the buffer that `scratch` keeps for it.
    fn tell(&self, known: &Known<'_>, seen: &Seen, scratch: &mut Scratch) -> String {
        let mut sentence = std::mem::take(&mut scratch.sentence);
        let story = explain::Story {
            tld: known.tld,
            facts: &seen.facts,
            points: &seen.points,
            tokens: &scratch.reading.tokens,
            written: &seen.words(known, scratch),
            printable: seen.printable,
            tld_spread: known.spread.max(1),
        };
        story.tell(&mut sentence);
        sentence
    }

    /// True when sentences may hold every word among the tokens.
    fn printable(&self, label: &Label, tokens: &[Token]) -> bool {
        let mut words = tokens.iter().filter(|token| token.is_word());
        words.all(|word| self.terms.may_print(label.text(word.start, word.end)))
    }

    /// Reads the name into `scratch` and sums up what is there.
    fn look(&self, text: &str, tld: &str, scratch: &mut Scratch) -> Facts {
        let Scratch { label, reading, .. } = scratch;
        label.read(text);
        let suffix = SuffixClass::of(tld);
        let setting = Setting { expected: self.dictionary.expected(tld), class: suffix };
        self.dictionary.read(label, setting, reading);
        let class = Class::of(suffix, label.chars);
        let mut facts = self.facts(label, tld, reading);
        if suffix == SuffixClass::Polish {
            (facts.polish_cost, facts.polish_dearest) = polish_costs(label);
        }
        facts.read = ReadPoints::of(&facts, class, market(reading));
        facts
    }

    /// What the pieces of a label show.
    fn facts(&self, label: &Label, tld: &str, reading: &Reading) -> Facts {
        let tokens = &reading.tokens;
        let count = |kind| tokens.iter().filter(|token| token.kind == kind).map(Token::len).sum();
        let letters = tokens.iter().filter(|token| token.is_letters());
        let pieces = tokens.iter().filter(|token| token.may_be_word()).count();
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
            spread: 1,
            quality: Percent::clamped(dictionary::quality(tokens, pieces)),
            pronounceability: ease(total, steps),
            tld_weight: self.tlds.of(tld),
            read: ReadPoints::default(),
            caps: self.caps(label, tokens),
        }
    }

    fn caps(&self, label: &Label, tokens: &[Token]) -> Caps {
        let hyphens = Caps::MANY_HYPHENS.when(label.hyphens >= MANY_HYPHENS_MIN);
        let scripts = Caps::MIXED_SCRIPTS.when(label.mixed_scripts);
        self.terms.caps(label, tokens).with(hyphens).with(scripts)
    }
}

/// All of the score but for what `tldSpread` adds.
fn base(facts: &Facts, tld: &str) -> Base {
    let class = Class::of(SuffixClass::of(tld), facts.chars);
    Base::new(Points::of(facts, class).sum(), facts.caps, class)
}

/// Cost of a letter where there is none to judge, in sixteenths of a bit.
const LETTER_COST_PLAIN: u32 = 64;

/// Characters from which it counts how usual a spelling is: fewer can be any.
const SPELT_FROM: u32 = 4;

/// Of all runs of letters together: their cost and its steps.
fn letter_costs<const COSTS: usize>(model: &LetterModel<COSTS>, label: &Label) -> (u32, u32) {
    let costs = letter_runs(label).map(|run| model.cost(run));
    costs.fold((0, 0), |(total, steps), (cost, length)| (total + cost, steps + length))
}

/// Among Polish names: of all runs of letters together the cost of a step, and of the dearest one.
fn polish_costs(label: &Label) -> (u32, u32) {
    let polish = LetterModel::polish();
    let (total, steps) = letter_costs(polish, label);
    let dearest = letter_runs(label).map(|run| polish.dearest(run)).max();
    (total.checked_div(steps).unwrap_or(LETTER_COST_PLAIN), dearest.unwrap_or(0))
}

/// The runs of letters in a label.
fn letter_runs(label: &Label) -> impl Iterator<Item = &str> {
    let runs = label.runs.iter().filter(|run| run.kind == label::RunKind::Letters);
    runs.map(|run| label.text(run.start, run.end))
}

/// How easily it is spoken; half below four letters, where every name is spelt out.
fn ease(total: u32, steps: u32) -> Percent {
    const STEPS_MIN: u32 = 5;
    let judged = LetterModel::ease(total, steps).filter(|_| steps >= STEPS_MIN);
    judged.unwrap_or(Percent::HALF)
}

/// Whole points for what buyers pay for the words: more words share more, though not as much as
/// each alone would have.
fn market(reading: &Reading) -> i32 {
    /// One by the square root of the number of pieces, in 256ths.
    const SHARE: [i32; 8] = [256, 256, 181, 148, 128, 114, 105, 97];
    const TENTHS: i32 = 10;
    let share = SHARE[reading.tokens.len().min(SHARE.len() - 1)];
    let value = reading.value * share;
    (value + value.signum() * 128 * TENTHS) / (256 * TENTHS)
}

fn distinct_digits(label: &Label, tokens: &[Token]) -> u32 {
    let numbers = tokens.iter().filter(|token| token.kind == TokenKind::Digits);
    let seen = numbers
        .flat_map(|token| label.text(token.start, token.end).bytes())
        .fold(0u16, |seen, digit| seen | 1 << (digit - b'0'));
    seen.count_ones()
}

/// The tongue of most letters in words; the first of equals.
fn language(tokens: &[Token]) -> Option<Tongue> {
    let letters_of = |tongue| {
        let own = tokens.iter().filter(|token| token.kind == TokenKind::Word(tongue));
        own.map(Token::len).sum::<u32>()
    };
    let tongues = tokens.iter().filter_map(|token| match token.kind {
        TokenKind::Word(tongue) => Some(tongue),
        _ => None,
    });
    tongues.rev().max_by_key(|&tongue| letters_of(tongue))
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
            let mut evidence = Vec::new();
            Scorer::shared().base_with_evidence(&name, &mut scratch, &mut evidence);
            let scored = Scorer::shared().score(&name, 2, &mut scratch);
            let (label, tld) = (name.label(), name.tld());
            let known = Known { label, tld, spread: 2, evidence: &evidence };
            let told = Scorer::shared().recall(known, &mut scratch);
            assert_eq!((told.dqs, told.explanation), (scored.dqs, &*scored.explanation), "{name}");
            assert!(told.signals.words.iter().eq(scored.signals.words.iter()), "{name}");
        }
    }

    #[test]
    fn a_scorer_is_ready_within_a_request() {
        let name = DomainName::parse("solar.com").expect("a name");
        let (budget, _waiting) = Budget::new(Duration::from_millis(100));
        let read = budget.lend(|| {
            let fresh = Scorer::load();
            (fresh.score(&name, 1, &mut Scratch::default()).dqs, budget::spent())
        });
        let dqs = Scorer::shared().score(&name, 1, &mut Scratch::default()).dqs;
        assert_eq!(read, Ok((dqs, false)));
    }

    #[test]
    fn what_names_seldom_have_is_more_to_spell() {
        let mut scratch = Scratch::default();
        let mut bits = |label: &str| {
            let name = DomainName::parse(&format!("{label}.com")).expect(label);
            let facts = Scorer::shared().observe(&name, &mut scratch).facts;
            facts.iter().find(|(fact, _)| *fact == "spelt_bits").expect("a fact").1
        };
        assert!(bits("hotel") < bits("hoteq") && bits("hoteq") < bits("hqteq"));
        assert_eq!(
            [bits("48151"), bits("48-151")],
            [16, 16],
            "ten digits are as likely as each other"
        );
        assert_eq!([bits("xqz"), bits("789")], [0, 0], "of three letters any are usual");
    }
}
