//! Matches alert rules against new drops. Input: rules, each with the watermark of its previous
//! match. Output: for each rule, the number of names that fire and the docs of the best. This
//! module does not know owners and delivery.
//!
//! A name fires once per rule and drop date (data/docs/api.md): when it is new, or when it has
//! entered a stage of the rule since the last match. Names that may fire for any rule are collected
//! once, in rank order, and processed in blocks ([`block`]). Every condition is a bitmap, computed
//! once for all rules that share it, so that a rule only takes combining and counting a few words.
//! Memory does not grow with the size of a list.

mod block;
mod needles;
mod news;
pub mod backtest;
pub mod preview;
#[cfg(test)]
mod tests;

use std::mem;

use indexmap::IndexSet;
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::columns::checks::DropChecks;
use crate::columns::day::DayStages;
use crate::columns::label::TextTest;
use crate::filter::{AsOf, RuleQuery, Sort, StageSet, View, stage_code_in};
use crate::query::index::{Generation, Index, Layer, LayerDay};
use crate::query::merge::merged;
use crate::rules::block::Block;
use crate::rules::needles::Needles;
use crate::vocab::day::Day;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::limits::LABEL_CHARS_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::watermark::Watermark;
use dropdex_query::filter::{Filter, LabelFilter, ReleaseRange};

/// Docs per parallel task.
const DOCS_PER_PIECE: u32 = 1 << 16;
/// Candidates per block. A bitmap then has 16 KiB, which fits the L1 cache, and text matches take
/// some megabytes.
const BLOCK_DOCS: usize = 1 << 17;

/// A rule to match, with its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRule {
    pub query: RuleQuery,
    /// Day on which the rule was added; earlier changes do not fire.
    pub created: Day,
    /// Watermark of the rule's previous match.
    pub base: Watermark,
    /// Range of effective releases that the rule accepts on the day of `base`; a relative range
    /// moves with the day.
    pub releases_then: ReleaseRange,
}

/// The matches of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleMatches {
    /// Number of names.
    pub total: u32,
    /// Places of the best names, best first; up to the requested number.
    pub best: Vec<u32>,
}

impl Index {
    /// Returns the matches of each of `rules`, with the places of up to `best_max` best names.
    ///
    /// A name fires if it is on the drops list, is in one of the rule's stages, passes the other
    /// conditions, and is new in one of three ways. Either the first batch with its drop is newer
    /// than the rule's base. Or the name's stage changed after the base's day, and it was in none
    /// of the rule's stages from the day on which both name and rule existed to the base's day. Or
    /// the name's release entered the rule's range after the base's day.
    pub fn matches(&self, rules: &[DueRule], best_max: usize, as_of: AsOf) -> Vec<RuleMatches> {
        self.matches_by(BLOCK_DOCS, rules, best_max, as_of)
    }

    fn matches_by(
        &self,
        block_docs: usize,
        rules: &[DueRule],
        best_max: usize,
        as_of: AsOf,
    ) -> Vec<RuleMatches> {
        let day = self.day(as_of);
        let layers = self.layers_on(&day);
        let found = layers.map(|(layer, day)| layer.matches_by(block_docs, rules, best_max, day));
        let both = |mut all: Vec<RuleMatches>, more: Vec<RuleMatches>| {
            for (all, more) in all.iter_mut().zip(more) {
                all.total += more.total;
                let best = [mem::take(&mut all.best), more.best];
                all.best = merged(best, best_max, |&one, &other| {
                    self.compare_places(Sort::default(), one, other)
                });
            }
            all
        };
        found.reduce(both).unwrap_or_default()
    }

    /// Returns the alert data of one of [`RuleMatches::best`].
    pub fn listed_drop(&self, place: u32, as_of: AsOf) -> DroppedName {
        let (layer, doc) = self.doc_at(place);
        layer.listed_drop(doc, as_of)
    }
}

impl Layer {
    fn matches_by(
        &self,
        block_docs: usize,
        rules: &[DueRule],
        best_max: usize,
        day: &LayerDay,
    ) -> Vec<RuleMatches> {
        let plan = Plan::new(self, rules, day.as_of);
        let candidates = plan.candidates(&day.stages);
        let mut found = vec![RuleMatches::default(); rules.len()];
        for docs in candidates.chunks(block_docs) {
            let block = Block::new(&plan, docs, &day.stages);
            found.par_iter_mut().zip(&plan.rules).for_each_init(
                Vec::new,
                |words, (found, rule)| {
                    block.match_rule(rule, best_max, words, found);
                },
            );
        }
        for found in &mut found {
            found.best.iter_mut().for_each(|doc| *doc = self.place(*doc));
        }
        found
    }

    fn listed_drop(&self, doc: u32, as_of: AsOf) -> DroppedName {
        let drop = self.row_drop(doc);
        let tld = self.drops_by_rank.tld(doc);
        let label = self.records.label(doc);
        let name = format!("{}.{}", &*label, self.tlds.name(tld));
        DroppedName {
            name: DomainName::from_stored(name.as_bytes(), label.len() as u8)
                .expect("a record holds the label of a name"),
            dqs: self.drops_by_rank.dqs(doc),
            drop_date: drop.date,
            release: drop.release.day,
            release_second: drop.release.second(),
            stage: self.stage(tld, &drop, as_of),
        }
    }
}

/// All rules, with their distinct conditions, so that each is computed once.
struct Plan<'a> {
    index: &'a Generation,
    as_of: AsOf,
    rules: Vec<PlannedRule>,
    /// Distinct criteria of novelty, by number.
    fresh: Vec<NewsCriteria>,
    /// Distinct maximum lengths, by number.
    lengths: Vec<u8>,
    /// Distinct conditions on other columns, by number.
    columns: Vec<DropChecks<'a>>,
    needles: Needles,
}

/// The conditions of a rule, as numbers in a [`Plan`].
struct PlannedRule {
    fresh: usize,
    /// Docs below this one have at least the minimum score.
    docs: u32,
    /// Maximum length; `None` accepts any. The same applies below.
    length: Option<usize>,
    tlds: Option<Vec<u16>>,
    needle: Option<usize>,
    /// Conditions on other columns.
    columns: Vec<usize>,
    /// Condition on the text of the label, which is checked last.
    text: Option<TextTest>,
}

/// Criteria by which a name is new to a rule, apart from its other conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NewsCriteria {
    stages: StageSet,
    created: Day,
    base: Watermark,
    /// Ranges of effective releases today and on the base's day, if they differ.
    releases: Option<(ReleaseRange, ReleaseRange)>,
}

/// The distinct values, by number.
type Interner<T> = IndexSet<T, FxBuildHasher>;

impl<'a> Plan<'a> {
    fn new(index: &'a Layer, rules: &[DueRule], as_of: AsOf) -> Plan<'a> {
        let (mut fresh, mut lengths, mut needles) =
            (Interner::default(), Interner::default(), Interner::default());
        let mut columns = Interner::default();
        let planned = rules.iter().map(|rule| {
            let RuleQuery { common, contains, stages } = &rule.query;
            let DueRule { created, base, releases_then, .. } = *rule;
            let releases_now = common.drop.release;
            let releases = (releases_now != releases_then).then_some((releases_now, releases_then));
            PlannedRule {
                fresh: fresh
                    .insert_full(
                        NewsCriteria { stages: *stages, created, base, releases }.settled(),
                    )
                    .0,
                docs: index.drops_by_rank.docs_from(common.min_dqs),
                length: (common.max_len < LABEL_CHARS_MAX)
                    .then(|| lengths.insert_full(common.max_len).0),
                tlds: index.tlds.numbers(&common.tlds),
                needle: contains.as_ref().map(|text| needles.insert_full(text.as_str()).0),
                columns: column_parts(common)
                    .into_iter()
                    .map(|part| columns.insert_full(part).0)
                    .collect(),
                text: TextTest::new(&common.label),
            }
        });
        let rules = planned.collect();
        let needles = Needles::new(needles);
        let (fresh, lengths) = (Vec::from_iter(fresh), Vec::from_iter(lengths));
        let of = index.drops_by_rank.columns(index.beside());
        let checks = |part: &Filter| DropChecks::new(of, part);
        let columns = columns.iter().map(checks).collect();
        Plan { index, as_of, rules, fresh, lengths, columns, needles }
    }

    /// Returns the docs that may be new to any rule, in rank order.
    fn candidates(&self, day: &DayStages) -> Vec<u32> {
        let Some(oldest) = self.fresh.iter().map(|fresh| fresh.base.batch).min() else {
            return Vec::new();
        };
        let since = self.fresh.iter().map(|fresh| fresh.base.day).min();
        let since = since.unwrap_or(self.as_of.today);
        let stages = self.fresh.iter().fold(0, |all, fresh| all | fresh.stages.bits());
        let docs = self.rules.iter().map(|rule| rule.docs).max().unwrap_or(0);
        let first_batches = self.index.drops_by_rank.first_batches();
        let windows: FxHashSet<_> = self.fresh.iter().filter_map(|fresh| fresh.releases).collect();
        let may_fire = |&doc: &u32| {
            let code = day.code(doc) & View::All.code_mask();
            code & stages != 0
                && (u64::from(first_batches.number(doc)) > oldest
                    || self.code(doc, since) < code
                    || windows.iter().any(|&window| self.has_entered(doc, window)))
        };
        let pieces: Vec<Vec<u32>> = (0..docs.div_ceil(DOCS_PER_PIECE))
            .into_par_iter()
            .map(|at| at * DOCS_PER_PIECE..docs.min((at + 1) * DOCS_PER_PIECE))
            .map(|docs| docs.filter(may_fire).collect())
            .collect();
        pieces.concat()
    }

    /// Returns true if the release of a doc is in the first range and not in the second.
    fn has_entered(&self, doc: u32, (now, then): (ReleaseRange, ReleaseRange)) -> bool {
        let second = || self.index.start_second(doc);
        let day = Day::from_raw(self.index.drops_by_rank.release(doc));
        day.is_some_and(|day| now.contains(day, second) && !then.contains(day, second))
    }

    /// Returns the code of the stage of a doc on `day`.
    fn code(&self, doc: u32, day: Day) -> u8 {
        let Generation { drops_by_rank: listed, tlds, .. } = self.index;
        let left = i32::from(listed.release(doc)) - i32::from(day.raw());
        let pending = tlds.pending_days(listed.tld(doc));
        stage_code_in(left, pending, self.as_of.catch_days.into())
    }
}

/// Returns the conditions that have no bitmaps of their own in a [`Plan`] and read no text. Each
/// condition is a separate item, so that rules share them.
fn column_parts(common: &Filter) -> Vec<Filter> {
    let open = Filter::open();
    // The others read the text: see `PlannedRule::text`.
    let LabelFilter {
        contains: _,
        starts: _,
        ends: _,
        not_contains: _,
        not_starts: _,
        not_ends: _,
        matchers: _,
        digits,
        hyphens,
        idn,
    } = common.label;
    let mut rest = Filter {
        tlds: Vec::new(),
        min_dqs: open.min_dqs,
        max_len: open.max_len,
        label: LabelFilter { digits, hyphens, idn, ..LabelFilter::default() },
        adult: open.adult,
        ..common.clone()
    };
    let mut parts = vec![
        Filter { not_tlds: mem::take(&mut rest.not_tlds), ..open.clone() },
        Filter { label: mem::take(&mut rest.label), ..open.clone() },
        Filter { reading: mem::take(&mut rest.reading), ..open.clone() },
        Filter { drop: mem::take(&mut rest.drop), ..open.clone() },
        Filter { adult: common.adult, ..open.clone() },
        rest,
    ];
    parts.retain(|part| *part != open);
    parts
}

impl NewsCriteria {
    /// Returns the canonical form, in which days after the base's day are equal because they make
    /// no difference.
    fn settled(self) -> NewsCriteria {
        NewsCriteria { created: self.created.min(self.base.day), ..self }
    }
}
