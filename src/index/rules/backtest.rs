//! Backtest of an alert rule: how many names of past releases match, and how many of them were registered
//! again (`data/docs/outcomes.md`). One walk over all drops, earlier ones included.

use std::collections::{BTreeMap, BinaryHeap};
use std::hash::Hasher;
use std::ops::{Range, RangeInclusive};

use chrono::Datelike;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};
use utoipa::ToSchema;

use crate::columns::checks::DropChecks;
use crate::filter::{RuleQuery, StageSet};
use crate::query::index::{Index, Layer};
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::to_unicode;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::outcome::{
    Completeness, Evidence, Horizon, Released, ReturnTime, Share, Verdict,
};
use dropdex_query::filter::{DayRange, DropConditions, Filter};
use dropdex_query::text::Substring;

/// Names that are shown with their outcomes.
pub const EXAMPLES: usize = 20;
/// Estimated number of docs per microsecond of a walk.
const DOCS_PER_US: u32 = 20;
/// Words of a bitmap of docs that are walked together.
const PIECE_WORDS: usize = 1 << 10;

named_enum! {
    /// The score that the conditions of a rule are compared with.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ToSchema)]
    #[schema(rename_all = "lowercase")]
    pub enum ComparedScore {
        /// The score of today.
        #[default]
        Today = "today",
        /// The score without the other TLDs of the label, which follows from the name alone.
        Base = "base",
    }
}

parse_named!(ComparedScore);

/// The question of a backtest: names released in `days` days up to `to` are asked for their outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacktestPeriod {
    pub as_of: Day,
    pub horizon: Horizon,
    /// First and last day of the releases. The horizon of the last is over on `as_of`.
    pub from: Day,
    pub to: Day,
    pub score: ComparedScore,
}

impl BacktestPeriod {
    /// Returns the last months for whose releases a horizon is over.
    pub fn new(as_of: Day, months: u16, horizon: Horizon) -> BacktestPeriod {
        let to = as_of.plus(-horizon.days());
        let days = (i32::from(months) * 365 + 6) / 12;
        let score = ComparedScore::default();
        BacktestPeriod { as_of, horizon, from: to.plus(1 - days), to, score }
    }

    /// Returns the number of days.
    pub fn days(&self) -> u32 {
        (self.to.days_since(self.from) + 1).unsigned_abs()
    }
}

/// Names of a group, and their outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tested {
    /// Names that were released.
    pub names: u64,
    /// Names that were renewed instead; not among `names`.
    pub renewed: u64,
    /// Names with a known outcome, and those of them that were registered again, in the order of
    /// [`Completeness::ALL`].
    known: [(u64, u64); Completeness::ALL.len()],
}

impl Tested {
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::NotOver => {}
            Verdict::Renewed => self.renewed += 1,
            Verdict::Unknown => self.names += 1,
            Verdict::Known(shown, taken) => {
                self.names += 1;
                let (known, again) = &mut self.known[shown as usize];
                (*known, *again) = (*known + 1, *again + u64::from(taken));
            }
        }
    }

    fn plus(&mut self, other: &Tested) {
        self.names += other.names;
        self.renewed += other.renewed;
        for (all, more) in self.known.iter_mut().zip(&other.known) {
            (all.0, all.1) = (all.0 + more.0, all.1 + more.1);
        }
    }

    /// Returns the lists that show most of the outcomes, the number of these, and the share of names that
    /// were registered again. Outcomes by other lists count as unknown.
    pub fn share(&self) -> Option<(Completeness, u64, Share)> {
        let counted = Completeness::ALL.into_iter().zip(self.known);
        // Of equal numbers, the most complete lists.
        let (shown, (names, taken)) = counted.rev().max_by_key(|(_, (names, _))| *names)?;
        Share::of(taken, names).map(|share| (shown, names, share))
    }
}

/// A name that matches, with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    pub name: String,
    pub dqs: Dqs,
    pub release: Day,
    pub verdict: Verdict,
    /// When it was registered again, if a list shows that.
    pub time: Option<ReturnTime>,
}

/// Result of a backtest.
#[derive(Clone, Debug, PartialEq)]
pub struct Backtest {
    pub period: BacktestPeriod,
    pub all: Tested,
    /// Most names first.
    pub by_tld: Vec<(String, Tested)>,
    /// By the first day of a month, ascending.
    pub by_month: Vec<(Day, Tested)>,
    /// Days of the period on which no name at all was released: their lists are missing.
    pub missing: Vec<(Day, Day)>,
    /// Random names, the same for equal questions, by release.
    pub examples: Vec<Example>,
}

/// A candidate for an example. Of all, those with the lowest random numbers are shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    random: u64,
    name: String,
    layer: usize,
    doc: u32,
    drop: Released,
    verdict: Verdict,
}

/// Counts of one task.
#[derive(Default)]
struct Tally {
    /// By TLD number of the layer and release.
    days: FxHashMap<(u16, u16), Tested>,
    /// The candidates with the lowest numbers.
    examples: BinaryHeap<Candidate>,
}

impl Tally {
    fn merged(mut self, other: Tally) -> Tally {
        for (key, more) in other.days {
            self.days.entry(key).or_default().plus(&more);
        }
        for candidate in other.examples {
            self.offer(candidate.random, || candidate);
        }
        self
    }

    /// Keeps a candidate if its number is among the lowest. Of equal numbers, names decide.
    fn offer(&mut self, random: u64, candidate: impl FnOnce() -> Candidate) {
        let is_full = self.examples.len() == EXAMPLES;
        if is_full && self.examples.peek().is_some_and(|worst| worst.random < random) {
            return;
        }
        self.examples.push(candidate());
        if is_full {
            self.examples.pop();
        }
    }
}

/// A walk over the drops of a layer.
struct Walk<'a> {
    layer: &'a Layer,
    at: usize,
    period: BacktestPeriod,
    /// By TLD number of the layer.
    evidence: Vec<Evidence<'a>>,
    text: Option<&'a Substring>,
    /// Scores to compare with [`ComparedScore::Base`]; `None` if the checks compare the score of today.
    base: Option<RangeInclusive<Dqs>>,
    least_drops: u8,
    /// The conditions with the period, for latest drops, and without, for earlier ones.
    latest: DropChecks<'a>,
    earlier: DropChecks<'a>,
}

impl Walk<'_> {
    fn count(&self, tally: &mut Tally, doc: u32, drop: &Released) {
        let tld = self.layer.drops_by_rank.tld(doc);
        let verdict = self.evidence[usize::from(tld)].verdict(drop, self.period.horizon);
        if verdict == Verdict::NotOver {
            return;
        }
        let raw = drop.on.raw();
        tally.days.entry((tld, raw)).or_default().add(verdict);
        // A name has another place once a list shows that it was registered again, but the same facts.
        let mut hasher = FxHasher::default();
        hasher.write_u16(self.layer.drops_by_rank.rank(doc));
        hasher.write_u8(self.layer.drops_by_rank.length(doc));
        hasher.write(self.layer.tlds.name(tld).as_bytes());
        hasher.write_u16(raw);
        // FxHash leaves the low bits of numbers weak.
        let random = hasher.finish().swap_bytes().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        tally.offer(random, || {
            let name = self.layer.name_of(doc);
            Candidate { random, name, layer: self.at, doc, drop: *drop, verdict }
        });
    }

    /// Counts the latest drops of the docs of some words.
    fn latest(&self, words: Range<usize>) -> Tally {
        let (mut tally, dropped) = (Tally::default(), self.layer.drops_by_rank.dropped());
        let mut bits: Vec<u64> = words
            .clone()
            .map(|word| {
                let docs = dropped.saturating_sub(word as u32 * 64).min(64);
                if docs == 64 { u64::MAX } else { (1 << docs) - 1 }
            })
            .collect();
        self.latest.keep(words.start, &mut bits);
        for (word, mut bits) in words.zip(bits) {
            while bits != 0 {
                let doc = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if self.layer.shows_doc(doc)
                    && self.latest.score_and_tld_pass(doc)
                    && self.has_text(doc)
                    && self.base_passes(doc)
                {
                    self.count(&mut tally, doc, &self.layer.latest_drop(doc));
                }
            }
        }
        tally
    }

    /// Counts drops before the latest of each name. A rule saw only the drops before each.
    fn earlier(&self) -> Tally {
        let (mut tally, period) = (Tally::default(), self.period.from..=self.period.to);
        for (ordinal, count, drop) in self.layer.earlier_drops() {
            if count < self.least_drops || !period.contains(&drop.on) {
                continue;
            }
            let doc = self.layer.latest_doc(ordinal);
            if self.earlier.passes(doc) && self.has_text(doc) && self.base_passes(doc) {
                self.count(&mut tally, doc, &drop);
            }
        }
        tally
    }

    fn base_passes(&self, doc: u32) -> bool {
        self.base.as_ref().is_none_or(|dqs| dqs.contains(&self.layer.base_dqs(doc)))
    }

    fn has_text(&self, doc: u32) -> bool {
        let Some(text) = self.text else { return true };
        let name = self.layer.name_of(doc);
        name.contains(text.as_str())
            || name.contains("xn--") && to_unicode(&name).contains(text.as_str())
    }
}

impl Index {
    /// Tries a rule on past releases. Conditions about time and about places among today's drops do
    /// not apply; see [`without_today`].
    pub fn backtest(&self, query: &RuleQuery, period: BacktestPeriod) -> Backtest {
        let (latest, earlier) = without_today(&query.common, period);
        let dqs = query.common.min_dqs..=query.common.max_dqs;
        let base =
            (period.score == ComparedScore::Base && dqs != (Dqs::MIN..=Dqs::MAX)).then_some(dqs);
        let walk = |(at, layer): (usize, &'_ Layer)| {
            let walk = Walk {
                layer,
                at,
                period,
                evidence: self.evidence_of(layer, period.as_of),
                text: query.contains.as_ref(),
                base: base.clone(),
                least_drops: query.common.drop.min_drops,
                latest: DropChecks::new(layer.drops_by_rank.columns(layer.beside()), &latest),
                earlier: DropChecks::new(layer.drops_by_rank.columns(layer.beside()), &earlier),
            };
            let words = (layer.drops_by_rank.dropped() as usize).div_ceil(64);
            let pieces = (0..words.div_ceil(PIECE_WORDS)).into_par_iter().map(|piece| {
                let first = piece * PIECE_WORDS;
                walk.latest(first..words.min(first + PIECE_WORDS))
            });
            let (latest, earlier) =
                rayon::join(|| pieces.reduce(Tally::default, Tally::merged), || walk.earlier());
            latest.merged(earlier)
        };
        let tallies: Vec<Tally> =
            budget::shared(|| self.layers().iter().enumerate().map(walk).collect());
        self.backtest_of(period, tallies)
    }

    /// Estimates the microseconds of a backtest.
    pub fn backtest_cost_us(&self) -> u32 {
        EXAMPLES as u32 + self.manifest().dropped / DOCS_PER_US
    }

    /// Adds up the counts of all layers.
    fn backtest_of(&self, period: BacktestPeriod, tallies: Vec<Tally>) -> Backtest {
        let (mut all, mut by_tld) = (Tested::default(), BTreeMap::<u16, Tested>::new());
        let (mut by_month, mut examples) = (BTreeMap::<Day, Tested>::new(), BinaryHeap::new());
        for (layer, tally) in tallies.into_iter().enumerate() {
            let tlds = self.tlds().of_layer(layer);
            for ((tld, release), more) in tally.days {
                let release = Day::from_raw(release).expect("a release");
                let month = release.plus(1 - release.date().day() as i32);
                all.plus(&more);
                by_tld.entry(tlds[usize::from(tld)]).or_default().plus(&more);
                by_month.entry(month).or_default().plus(&more);
            }
            examples.extend(tally.examples);
        }
        let mut by_tld: Vec<_> =
            by_tld.into_iter().map(|(tld, of)| (self.tlds().name(tld).to_owned(), of)).collect();
        by_tld.sort_by(|one, other| (other.1.names, &one.0).cmp(&(one.1.names, &other.0)));
        let examples = examples.into_sorted_vec().into_iter().take(EXAMPLES);
        let mut examples: Vec<Example> =
            examples.map(|it| self.example(it, period.score)).collect();
        examples.sort_by(|one, other| (one.release, &one.name).cmp(&(other.release, &other.name)));
        let by_month = by_month.into_iter().collect();
        Backtest { period, all, by_tld, by_month, missing: self.without_release(period), examples }
    }

    fn example(&self, candidate: Candidate, score: ComparedScore) -> Example {
        let Candidate { name, layer, doc, drop, verdict, .. } = candidate;
        let layer = &self.layers()[layer];
        let dqs = match score {
            ComparedScore::Today => layer.drops_by_rank.dqs(doc),
            ComparedScore::Base => layer.base_dqs(doc),
        };
        Example { name, dqs, release: drop.on, verdict, time: drop.returned.map(|it| it.time) }
    }

    /// Returns the days of a period on which no name was released.
    fn without_release(&self, period: BacktestPeriod) -> Vec<(Day, Day)> {
        let mut has = vec![false; period.days() as usize];
        let mut note = |release: Day| {
            let at = usize::try_from(release.days_since(period.from)).ok();
            at.and_then(|at| has.get_mut(at)).into_iter().for_each(|has| *has = true);
        };
        for layer in self.layers() {
            let (_, releases) = layer.drops_by_rank.day_columns();
            let known = releases.days_in(&(period.from.raw()..=period.to.raw()));
            known.iter().filter_map(|(day, _)| Day::from_raw(*day)).for_each(&mut note);
            layer.drop_history.iter().for_each(|(_, drop)| note(drop.release));
        }
        let mut missing: Vec<(Day, Day)> = Vec::new();
        for (at, _) in has.iter().enumerate().filter(|(_, has)| !**has) {
            let day = period.from.plus(at as i32);
            match missing.last_mut() {
                Some((_, last)) if last.plus(1) == day => *last = day,
                _ => missing.push((day, day)),
            }
        }
        missing
    }
}

/// Returns the conditions for latest drops, released in the period, and for earlier ones, whose release and
/// number of drops the caller checks. The caller also checks scores that are not those of today. Dates, stages and lists of a rule are about the day on which it
/// matches; ranks of suffixes are about today's drops alone.
fn without_today(filter: &Filter, period: BacktestPeriod) -> (Filter, Filter) {
    let DropConditions { min_drops, max_rank, .. } = filter.drop;
    let facts = filter.drop.facts.clone();
    let always = DropConditions { max_rank, facts, ..DropConditions::default() };
    let release = DayRange { from: Some(period.from), to: Some(period.to) }.into();
    let latest = DropConditions { release, min_drops, ..always.clone() };
    let (min_dqs, max_dqs) = match period.score {
        ComparedScore::Today => (filter.min_dqs, filter.max_dqs),
        ComparedScore::Base => (Dqs::MIN, Dqs::MAX),
    };
    let of = |drop: DropConditions| Filter { drop, min_dqs, max_dqs, ..filter.clone() };
    (of(latest), of(always))
}

/// Returns the members of a filter that do not apply to past releases.
pub fn ignored(query: &RuleQuery) -> Vec<&'static str> {
    let RuleQuery { common, stages, .. } = query;
    let DropConditions { dropped, release, listed_since, max_suffix_rank, .. } = &common.drop;
    let expected = common.drop.expected_taken;
    let all = [
        ("stages", *stages != StageSet::ACTIVE),
        ("releaseFrom, releaseTo", !release.is_open()),
        ("droppedFrom, droppedTo", !dropped.is_open()),
        ("listedSince", listed_since.is_some()),
        ("maxSuffixRank", max_suffix_rank.is_some()),
        // It was fitted to the outcomes that are counted.
        ("expectedTaken", expected.is_some()),
    ];
    all.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

/// Returns the members of a filter that are compared with the values of today.
pub fn today_values(query: &RuleQuery, score: ComparedScore) -> Vec<&'static str> {
    let Filter { min_dqs, max_dqs, min_tlds, max_tlds, drop, .. } = &query.common;
    let is_today = score == ComparedScore::Today;
    let all = [
        ("dqs", is_today && (*min_dqs, *max_dqs) != (Dqs::MIN, Dqs::MAX)),
        ("otherTlds", (*min_tlds, *max_tlds) != (0, u16::MAX)),
        ("popularityRank", drop.max_rank.is_some()),
        ("facts", !drop.facts.is_empty()),
    ];
    all.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}
