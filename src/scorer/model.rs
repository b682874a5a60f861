//! The fitted model (`data/scorer/model.txt`), which turns facts into whole points per part.
//!
//! A table belongs to one fact and one classification of names (by suffix or by length). The table
//! lists the hundredths of a point that each range of the fact adds in each class. A part is the sum
//! of its tables, so every score can be checked by hand.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::coverage::{Spread, UNIT};
use super::facts::Facts;
use super::shape::Form;
use super::tlds::SuffixClass;

static TABLES: &str = include_str!("../../data/scorer/model.txt");

/// First length, in characters, of each length class after the first.
const LENGTHS: [u32; 6] = [4, 5, 6, 8, 11, 15];
const LENGTH_CLASSES: usize = LENGTHS.len() + 1;
/// Names used in [`TABLES`], by number.
const LENGTH_NAMES: [&str; LENGTH_CLASSES] = ["1-3", "4", "5", "6-7", "8-10", "11-14", "15+"];
/// Score of a name whose parts add nothing: the median score of the reference day.
pub const BASE: i32 = 20;
/// A sum of all parts, in hundredths of a point, is closer to 0.
const SUM_MAX: i32 = 1 << 16;
/// Spread above which the points stay the same.
const SPREAD_MAX: usize = 255;

/// A part of the score that is computed from tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreComponent {
    Length,
    Dictionary,
    Language,
    Pronounceability,
    Digits,
    Hyphens,
    /// Replaces all other parts of the label, if it has a shape.
    Shape,
}

impl ScoreComponent {
    const COUNT: usize = 7;
    /// Names used in [`TABLES`], by number.
    const NAMES: [&str; ScoreComponent::COUNT] =
        ["length", "dictionary", "language", "pronounceability", "digits", "hyphens", "shape"];
}

/// Accessor function of a fact.
pub type Fact = fn(&Facts) -> i32;

/// Names and accessors of all facts.
pub static FACTS: [(&str, Fact); 17] = [
    ("chars", |facts| facts.chars as i32),
    ("bits", |facts| facts.bits as i32),
    ("bits_per_letter", |facts| facts.bits_per_letter as i32),
    ("pieces", |facts| facts.pieces as i32),
    ("fit", |facts| facts.fit as i32),
    ("letter_cost", |facts| facts.letter_cost as i32),
    ("english_cost", |facts| facts.english_cost as i32),
    ("polish_cost", |facts| facts.polish_cost as i32),
    ("polish_dearest", |facts| facts.polish_dearest as i32),
    ("spelt_bits", |facts| facts.spelt_bits as i32),
    ("digits", |facts| facts.digits as i32),
    ("distinct_digits", |facts| facts.distinct_digits as i32),
    ("digits_where", |facts| facts.digits_where as i32),
    ("number", |facts| i32::from(facts.letters + facts.others == 0)),
    ("hyphens", |facts| facts.hyphens as i32),
    ("unknown", |facts| facts.unknown as i32),
    ("shape", |facts| facts.shape as i32),
];

/// Class of a name by suffix and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameClass(u8);

impl NameClass {
    /// Class of a label with `chars` characters.
    pub fn new(suffix: SuffixClass, chars: u32) -> NameClass {
        let length = LENGTHS.iter().filter(|&&from| chars >= from).count();
        NameClass((suffix.number() * LENGTH_CLASSES + length) as u8)
    }

    /// Returns the names of the suffix class and of the length class, as in the tables.
    pub fn names(self) -> [&'static str; 2] {
        [SuffixClass::NAMES[self.suffix()], LENGTH_NAMES[self.length()]]
    }

    fn suffix(self) -> usize {
        usize::from(self.0) / LENGTH_CLASSES
    }

    fn length(self) -> usize {
        usize::from(self.0) % LENGTH_CLASSES
    }
}

/// Class of a name by suffix and form, for the points of `tldSpread` and the top of the scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing(u8);

impl Standing {
    /// Number of standings.
    pub const COUNT: usize = SuffixClass::COUNT * Form::COUNT;

    /// Standing of a label under a suffix of this class.
    pub fn new(suffix: SuffixClass, form: Form) -> Standing {
        Standing((suffix.number() * Form::COUNT + form as usize) as u8)
    }

    /// The standing's number, below 64.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the standing with this number, or the last one for larger numbers.
    pub fn from_number(number: u8) -> Standing {
        Standing(number.min(Standing::COUNT as u8 - 1))
    }
}

#[derive(Clone, Copy)]
enum By {
    Suffix,
    Length,
}

/// Table of the points of one fact.
struct PointTable {
    fact: Fact,
    by: By,
    /// Lower bounds of all ranges except the first.
    edges: Vec<i32>,
    /// Hundredths of a point, by class, then by range.
    points: Vec<i32>,
}

impl PointTable {
    fn points(&self, facts: &Facts, class: NameClass) -> i32 {
        let value = (self.fact)(facts);
        // Comparing with all edges avoids branches, and there are few edges.
        let range: usize = self.edges.iter().map(|&edge| usize::from(value >= edge)).sum();
        let class = match self.by {
            By::Suffix => class.suffix(),
            By::Length => class.length(),
        };
        self.points[class * (self.edges.len() + 1) + range]
    }
}

/// Correction of a sum of all parts: the percentage of what exceeds `from` that is added to it.
#[derive(Clone, Copy, Debug)]
struct Lift {
    from: i32,
    percent: i32,
}

/// All tables.
pub struct Model {
    parts: [Vec<PointTable>; ScoreComponent::COUNT],
    /// Hundredths of a point, by standing, then by spread.
    spread: Vec<i16>,
    /// Corrections at the top of the scale, by standing.
    lifts: [Vec<Lift>; Standing::COUNT],
    /// Pairs of a sum, in hundredths of a point, and its score; both ascending.
    scale: Vec<(i32, i32)>,
    /// Hundredths of a point by suffix class, for suffixes without their own entry.
    start: [i32; SuffixClass::COUNT],
    /// Hundredths of a point by suffix.
    suffixes: FxHashMap<&'static str, i32>,
    /// Weight, in hundredths, of the parts that depend on the label, by suffix class.
    slope: [i32; SuffixClass::COUNT],
    /// The sum whose score is [`BASE`].
    base: i32,
}

impl Model {
    /// Returns the model compiled into the program.
    pub fn shared() -> &'static Model {
        static SHARED: LazyLock<Model> = LazyLock::new(|| Model::parse(TABLES));
        &SHARED
    }

    /// Returns the hundredths of a point of a public suffix.
    pub fn suffix(&self, tld: &str) -> i32 {
        let own = self.suffixes.get(tld).copied();
        own.unwrap_or_else(|| self.start[SuffixClass::for_tld(tld).number()]) - self.base
    }

    /// Returns the hundredths of a point of one part.
    pub fn hundredths(&self, part: ScoreComponent, facts: &Facts, class: NameClass) -> i32 {
        let sum = self.parts[part as usize].iter().map(|table| table.points(facts, class)).sum();
        if matches!(part, ScoreComponent::Length | ScoreComponent::Shape) {
            sum
        } else {
            self.weighed(sum, class)
        }
    }

    /// Applies the weight of this suffix class to hundredths of a point that depend on the label.
    pub fn weighed(&self, hundredths: i32, class: NameClass) -> i32 {
        hundredths * self.slope[class.suffix()] / 100
    }

    /// Returns the hundredths of a point for the other TLDs that have the label.
    pub fn spread(&self, standing: Standing, spread: Spread) -> i32 {
        let (others, weight) = spread.coverage.reference(spread.others());
        let first = usize::from(standing.0) * (SPREAD_MAX + 1) + 1;
        let at =
            |others: u64| i64::from(self.spread[first + (others as usize).min(SPREAD_MAX - 1)]);
        let (whole, part) = (others / UNIT, (others % UNIT) as i64);
        let between = at(whole) * (UNIT as i64 - part) + at(whole + 1) * part;
        (between * weight / (UNIT * UNIT) as i64) as i32
    }

    /// Corrects a sum of all parts for names of this standing, so that at the top of the scale, the same
    /// score means the same demand for names of all forms.
    pub fn lifted(&self, standing: Standing, sum: i32) -> i32 {
        let lifts = self.lifts[usize::from(standing.0)].iter();
        let above = lifts.map(|lift| (sum + self.base - lift.from).max(0) * lift.percent / 100);
        sum + above.sum::<i32>()
    }

    /// Inverse of [`Model::lifted`]. Of two sums that are lifted to the same one, returns the lower.
    pub fn unlifted(&self, standing: Standing, lifted: i32) -> i32 {
        if self.lifts[usize::from(standing.0)].is_empty() {
            return lifted;
        }
        let (mut low, mut high) = (lifted - SUM_MAX, lifted + SUM_MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.lifted(standing, middle) < lifted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Converts a sum of all parts, in hundredths of a point, to a score. Sums below the first one
    /// on the scale get the score of the first; sums above the last get 100.
    pub fn score(&self, sum: i32) -> i32 {
        let sum = sum + self.base;
        let above = self.scale.partition_point(|&(from, _)| from <= sum);
        let (Some(&(from, low)), Some(&(to, high))) =
            (self.scale.get(above.wrapping_sub(1)), self.scale.get(above))
        else {
            return self.scale[if above == 0 { 0 } else { self.scale.len() - 1 }].1;
        };
        low + (2 * (sum - from) * (high - low) + to - from) / (2 * (to - from))
    }

    /// Panics on a malformed table. The file is part of the program, so a test would find the
    /// error.
    fn parse(text: &'static str) -> Model {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let mut lines = lines.map(|line| line.split(' ').collect::<Vec<_>>());
        let mut model = Model {
            parts: Default::default(),
            spread: Vec::new(),
            lifts: [const { Vec::new() }; Standing::COUNT],
            scale: Vec::new(),
            start: [0; SuffixClass::COUNT],
            suffixes: FxHashMap::default(),
            slope: [100; SuffixClass::COUNT],
            base: 0,
        };
        while let Some(line) = lines.next() {
            match line[..] {
                ["start", ref points @ ..] => model.start = by_class(points),
                ["slope", ref weights @ ..] => model.slope = by_class(weights),
                ["suffix", tld, points] => {
                    model.suffixes.insert(tld, number(points));
                }
                ["scale", ref steps @ ..] => {
                    let pairs = steps.chunks(2);
                    model.scale = pairs.map(|pair| (number(pair[0]), number(pair[1]))).collect();
                }
                ["spread", ref edges @ ..] => model.spread = spreads(edges, &mut lines),
                ["lift", suffix, form, from, percent] => {
                    let lift = Lift { from: number(from), percent: number(percent) };
                    let at = position(&SuffixClass::NAMES, suffix) * Form::COUNT;
                    model.lifts[at + position(&Form::NAMES, form)].push(lift);
                }
                ["table", part, fact, by] => {
                    let part = position(&ScoreComponent::NAMES, part);
                    let (fact, by) = (fact_named(fact), by_named(by));
                    model.parts[part].push(table(fact, by, &mut lines));
                }
                _ => panic!("unknown line in the model: {line:?}"),
            }
        }
        assert!(model.scale.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1), "rises");
        model.base = model.sum_of(BASE);
        model
    }

    /// Returns the sum whose score is `score`.
    fn sum_of(&self, score: i32) -> i32 {
        let above = self.scale.partition_point(|&(_, high)| high < score).max(1);
        let [(from, low), (to, high)] = [self.scale[above - 1], self.scale[above]];
        from + (score - low) * (to - from) / (high - low)
    }
}

fn by_class(texts: &[&str]) -> [i32; SuffixClass::COUNT] {
    assert_eq!(texts.len(), SuffixClass::COUNT, "one value per class of suffix");
    std::array::from_fn(|at| number(texts[at]))
}

fn number(text: &str) -> i32 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

fn position(names: &[&str], name: &str) -> usize {
    let found = names.iter().position(|&known| known == name);
    found.unwrap_or_else(|| panic!("unknown name in the model: {name}"))
}

fn fact_named(name: &str) -> Fact {
    FACTS[position(&FACTS.map(|(name, _)| name), name)].1
}

fn by_named(name: &str) -> By {
    match name {
        "suffix" => By::Suffix,
        "length" => By::Length,
        _ => panic!("classes are by suffix or by length, not by {name}"),
    }
}

/// Parses a table: a line of edges, then a line of points per class.
fn table<'a>(fact: Fact, by: By, lines: &mut impl Iterator<Item = Vec<&'a str>>) -> PointTable {
    let mut row = |name: &str| -> Vec<i32> {
        let line = lines.next().unwrap_or_default();
        assert_eq!(line.first(), Some(&name), "the rows of a table are in order");
        line[1..].iter().map(|text| number(text)).collect()
    };
    let edges = row("edges");
    assert!(edges.is_sorted_by(|one, next| one < next), "edges go up");
    let names: &[&str] = match by {
        By::Suffix => &SuffixClass::NAMES,
        By::Length => &LENGTH_NAMES,
    };
    let points: Vec<_> = names.iter().flat_map(|name| row(name)).collect();
    assert_eq!(points.len(), names.len() * (edges.len() + 1), "a row has a value for each range");
    PointTable { fact, by, edges, points }
}

/// Parses the hundredths of a point of every spread: after the edges, a line per standing.
fn spreads<'a>(edges: &[&str], lines: &mut impl Iterator<Item = Vec<&'a str>>) -> Vec<i16> {
    let edges: Vec<_> = edges.iter().map(|text| number(text) as usize).collect();
    let names = SuffixClass::NAMES.iter().flat_map(|suffix| Form::NAMES.map(|form| (suffix, form)));
    let rows = names.flat_map(|(suffix, form)| {
        let line = lines.next().unwrap_or_default();
        assert_eq!(line[..2], [*suffix, form], "the rows of spreads are in order");
        let points: Vec<_> = line[2..].iter().map(|text| number(text) as i16).collect();
        assert_eq!(points.len(), edges.len() + 1, "a row has a value for each range");
        let at = |spread| points[edges.partition_point(|&edge| edge <= spread)];
        (0..=SPREAD_MAX).map(at).collect::<Vec<_>>()
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::coverage::Coverage;
    use super::super::shape::Shape;
    use super::*;

    #[test]
    fn tables_are_looked_up_by_class_and_range() {
        let text = "start 700 0 0 0 0 0\nscale 0 0 5000 50 6000 90 8000 100\n\ntable hyphens hyphens suffix\nedges 1 2\n\
            com 50 -150 -260\ngeneric 0 0 0\ncountry 0 100 0\nrepurposed 0 0 0\nnew 0 0 0\npolish 0 0 -49\n";
        let model = Model::parse(text);
        let points = |suffix, hyphens| {
            let facts = Facts { hyphens, ..Facts::default() };
            model.hundredths(ScoreComponent::Hyphens, &facts, NameClass::new(suffix, 8))
        };
        assert_eq!((model.start[0], model.base), (700, 2000));
        let com = [0, 1, 2, 9].map(|hyphens| points(SuffixClass::Com, hyphens));
        assert_eq!(com, [50, -150, -260, -260]);
        assert_eq!((points(SuffixClass::Country, 1), points(SuffixClass::Polish, 2)), (100, -49));
        let scores = [-5, 0, 50, 55, 60, 70, 80, 300].map(|sum| model.score(100 * sum - 2000));
        assert_eq!(scores, [0, 0, 50, 70, 90, 95, 100, 100]);
    }

    #[test]
    fn the_scale_never_falls() {
        let model = Model::shared();
        assert!((-9_000..30_000).all(|sum| model.score(sum) <= model.score(sum + 1)));
        assert_eq!((model.score(-30_000), model.score(0), model.score(30_000)), (0, BASE, 100));
    }

    #[test]
    fn every_part_has_a_table_and_every_fact_is_used() {
        let model = Model::shared();
        assert!(model.parts.iter().all(|tables| !tables.is_empty()));
        for (name, _) in FACTS {
            let used = TABLES
                .lines()
                .any(|line| line.starts_with("table") && line.split(' ').nth(2) == Some(name));
            assert!(used, "no table uses {name}");
        }
    }

    #[test]
    fn standings_are_unique() {
        use Form::{Invented, Letters, Number, Other, Pair, Phrase, Word};
        let forms = [Other, Word, Pair, Phrase, Invented, Letters, Number];
        let seen: std::collections::BTreeSet<_> = ["com", "net", "de", "io", "club", "com.pl"]
            .into_iter()
            .flat_map(|tld| {
                forms.map(|form| Standing::new(SuffixClass::for_tld(tld), form).number())
            })
            .collect();
        assert_eq!(seen.len(), Standing::COUNT);
        assert!(
            seen.iter()
                .all(|&number| number < 64 && Standing::from_number(number).number() == number)
        );
        assert_eq!(NameClass::new(SuffixClass::Polish, 6).names(), ["polish", "6-7"]);
    }

    #[test]
    fn more_tlds_add_points() {
        for standing in (0..Standing::COUNT as u8).map(Standing) {
            let model = Model::shared();
            let points = |tlds| model.spread(standing, Spread::of(tlds));
            assert!(points(100) > points(1), "{standing:?}");
            assert_eq!(points(0), points(1));
            assert_eq!(points(255), points(u32::MAX));
            let unknown = Spread { tlds: 9, coverage: Coverage::NONE };
            assert_eq!(model.spread(standing, unknown), 0);
        }
    }

    #[test]
    fn corrections_keep_the_order() {
        let model = Model::shared();
        for standing in (0..Standing::COUNT as u8).map(Standing) {
            let lifted = |sum| model.lifted(standing, sum);
            assert!((-9_000..20_000).step_by(50).all(|sum| lifted(sum) < lifted(sum + 50)));
            for sum in -9_000..20_000 {
                let found = model.unlifted(standing, lifted(sum));
                assert!((sum - 1..=sum).contains(&found) && lifted(found) == lifted(sum), "{sum}");
            }
        }
    }

    #[test]
    fn shapes_under_com_are_in_market_order() {
        let model = Model::shared();
        let com = NameClass::new(SuffixClass::Com, 4);
        let points = |shape| {
            let facts = Facts { shape, ..Facts::default() };
            model.hundredths(ScoreComponent::Shape, &facts, com)
        };
        assert!(Shape::ALL.is_sorted_by_key(|&shape| points(shape)));
    }
}
