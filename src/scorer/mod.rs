//! Names in, [`Dqs`] with its reasons out. Pure: no clock, no I/O, so the same name always gets
//! the same score.
//!
//! A name is taken apart ([`label`]), its words are looked for ([`dictionary`]), its letters are
//! tried for how they sound ([`letters`]), its suffix is weighed ([`tlds`]). What was seen becomes
//! whole points per part ([`signals`]), whose sum is the score, and a sentence ([`explain`]).

mod dictionary;
mod explain;
mod label;
mod letters;
mod percent;
mod signals;
mod terms;
mod tlds;

use std::sync::LazyLock;

use serde::Serialize;

use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

use dictionary::{Dictionary, Reading, Token, TokenKind, Tongue};
use label::Label;
use letters::LetterModel;
use signals::{Caps, Facts};
use terms::Terms;
use tlds::TldWeights;

pub use percent::Percent;
pub use signals::{Cap, Points};

/// Which scorer gave a score. Any change to a score, signal or explanation raises it, and the
/// next rebuild scores the whole corpus again.
pub const SCORER_VERSION: u32 = 1;

/// Everything a score is made from: dictionaries, letter statistics, suffix weights. Immutable.
pub struct Scorer {
    dictionary: Dictionary,
    letters: LetterModel,
    tlds: TldWeights,
    terms: Terms,
}

/// Buffers that scoring reuses from name to name: one per thread.
#[derive(Clone, Default)]
pub struct Scratch {
    label: Label,
    reading: Reading,
}

/// The score of a name but for `tldSpread`, which only the whole corpus knows: computed once at
/// ingest, kept in the batch, finished at rebuild by [`Base::with_spread`].
///
/// The low 16 bits hold the sum of the points so far, plus [`Base::BIAS`]; the next 8 the highest
/// score that the caps allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base(u32);

/// A finished score with its reasons.
#[derive(Clone, Debug)]
pub struct Scored {
    pub dqs: Dqs,
    pub signals: Signals,
    /// One plain sentence, at most 160 characters, that names what moved the score most.
    pub explanation: String,
}

/// What the score was made from, as the API shows it (decisions.md §8).
///
/// `points` sum to the score before it is held within 0..=100; a cap in `caps` then holds it to
/// that cap's `max`. So `dqs = min(clamp(sum of points, 0, 100), max of every cap)`.
#[derive(Clone, Debug, Serialize)]
pub struct Signals {
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
    pub words: Vec<String>,
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

impl Base {
    /// Keeps negative sums apart from the bits above them.
    const BIAS: i32 = 1 << 15;

    fn new(points: &Points, caps: Caps) -> Base {
        let max = caps.strictest().map_or(100, |cap| cap.max);
        Base((max as u32) << 16 | (points.sum() + Base::BIAS) as u32)
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
        let sum = (self.0 & 0xffff) as i32 - Base::BIAS + signals::spread(tld_spread);
        Dqs::clamped(sum.min((self.0 >> 16 & 0xff) as i32))
    }
}

impl Scorer {
    /// The one scorer of the process, loaded at the first call.
    pub fn shared() -> &'static Scorer {
        static SHARED: LazyLock<Scorer> = LazyLock::new(Scorer::load);
        &SHARED
    }

    fn load() -> Scorer {
        let dictionary = Dictionary::load();
        let letters = LetterModel::learn(dictionary.words());
        Scorer { dictionary, letters, tlds: TldWeights::load(), terms: Terms::load() }
    }

    /// Everything but `tldSpread`: what ingest computes once per name. Allocates nothing for an
    /// ASCII name once `scratch` has grown.
    pub fn base(&self, name: &DomainName, scratch: &mut Scratch) -> Base {
        let facts = self.look(name, scratch);
        Base::new(&Points::of(&facts), facts.caps)
    }

    /// The score with its reasons, when the corpus holds the label in `tld_spread` TLDs, the
    /// name's own included; 0 is read as 1. Its `dqs` is `base(name).with_spread(tld_spread)`.
    pub fn score(&self, name: &DomainName, tld_spread: u32, scratch: &mut Scratch) -> Scored {
        let facts = self.look(name, scratch);
        let base = Points::of(&facts);
        let points = Points { tld_spread: signals::spread(tld_spread), ..base };
        let dqs = Base::new(&base, facts.caps).with_spread(tld_spread);
        let tokens = &scratch.reading.tokens;
        let explanation = explain::Story {
            name,
            facts: &facts,
            points: &points,
            tokens,
            label: &scratch.label,
            terms: &self.terms,
            tld_spread: tld_spread.max(1),
        }
        .tell();
        let written = |token: &Token| scratch.label.written(token.start, token.end);
        let signals = Signals {
            scorer_version: SCORER_VERSION,
            length_band: signals::length_band(facts.chars),
            dictionary_quality: facts.quality,
            words: tokens.iter().map(written).collect(),
            language: facts.language.and_then(Tongue::code),
            digits: facts.digits,
            hyphens: facts.hyphens,
            pronounceability: facts.pronounceability,
            tld_weight: facts.tld_weight,
            tld_spread: tld_spread.max(1),
            points,
            caps: facts.caps.list().collect(),
        };
        Scored { dqs, signals, explanation }
    }

    /// Reads the name into `scratch` and sums up what is there.
    fn look(&self, name: &DomainName, scratch: &mut Scratch) -> Facts {
        let Scratch { label, reading } = scratch;
        label.read(name.label());
        self.dictionary.read(label, self.dictionary.expected(name.tld()), reading);
        let tokens = &reading.tokens;
        let count = |kind| tokens.iter().filter(|token| token.kind == kind).map(Token::len).sum();
        let letters = tokens.iter().filter(|token| token.is_letters());
        let pieces = tokens.iter().filter(|token| token.may_be_word()).count();
        Facts {
            chars: label.chars,
            digits: label.digits,
            distinct_digits: distinct_digits(label, tokens),
            hyphens: label.hyphens,
            letters: letters.map(Token::len).sum(),
            others: count(TokenKind::Other),
            idn: label.idn,
            quality: Percent::clamped(dictionary::quality(tokens, pieces)),
            pronounceability: self.pronounceability(label),
            language: language(tokens),
            tld_weight: self.tlds.of(name.tld()),
            caps: Caps {
                offensive: self.terms.offend(label, tokens),
                mixed_scripts: label.mixed_scripts,
                many_hyphens: label.hyphens >= 3,
            },
        }
    }

    /// Of all runs of letters together; half below four letters, where every name is spelt out.
    fn pronounceability(&self, label: &Label) -> Percent {
        const LETTERS_MIN: u32 = 4;
        let (mut total, mut steps, mut letters) = (0, 0, 0);
        for run in label.runs.iter().filter(|run| run.kind == label::RunKind::Letters) {
            let (cost, length) = self.letters.cost(label.text(run.start, run.end));
            total += cost;
            steps += length;
            letters += u32::from(run.end - run.start);
        }
        if letters < LETTERS_MIN {
            return Percent::HALF;
        }
        LetterModel::ease(total, steps).unwrap_or(Percent::HALF)
    }
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
