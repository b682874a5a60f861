//! Alert rules against what a list brought. Rules come in, each with how far it was matched before;
//! what goes out is, for each, how many names fire and which are the best, as docs. What a rule is
//! called, whose it is and where its alerts go is not known here.
//!
//! A name fires once for a rule and drop date (data/docs/api.md): when it is new, or when it came
//! into the rule's stages since. Names that may fire for any rule are gathered once, in rank order,
//! and looked at in blocks ([`block`]): every condition is a bit a name, worked out once for all
//! rules that have it, so that a rule is a few words joined and counted. No rule makes others slow,
//! and memory does not grow with what a list brings.

mod block;
mod needles;
mod news;
#[cfg(test)]
mod tests;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::index::columns::day::{DayStages, stage_code};
use crate::index::filter::{AsOf, RuleQuery, StageSet, View};
use crate::index::query::index::Index;
use crate::index::rules::block::Block;
use crate::index::rules::needles::Needles;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;
use crate::vocab::watermark::Watermark;

/// Docs that one thread looks at at a time.
const DOCS_PER_PIECE: u32 = 1 << 16;
/// Candidates looked at together: sixteen kilobytes a set, which a core's nearest cache holds, and
/// some megabytes for the texts found in them.
const BLOCK_DOCS: usize = 1 << 17;

/// A rule, and since when it is at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRule {
    pub query: RuleQuery,
    /// The day it was added: what was so before is no news to it.
    pub created: Day,
    /// What it was matched against before.
    pub base: Watermark,
}

/// What fires for a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleMatches {
    /// How many names.
    pub total: u32,
    /// The docs of the best, best first: all of them, or as many as were asked for.
    pub best: Vec<u32>,
}

/// A name on the drops list, as an alert tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDrop {
    pub name: DomainName,
    pub dqs: Dqs,
    pub drop_date: Day,
    /// Effective.
    pub release: Day,
    pub stage: Stage,
}

impl Index {
    /// What fires for each of `rules` at `moment`, with the docs of the best `best_max` each.
    ///
    /// A name fires when it is listed, in one of the rule's stages and passes the rule's other
    /// conditions; and when the first batch that told of its drop is newer than the rule's base, or
    /// when it went on to another stage after the base's day, and was in none of the rule's stages
    /// between the day it was known and the rule was there, and the base's day.
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
        let plan = Plan::new(self, rules, as_of);
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
        found
    }

    /// What an alert tells of one of [`RuleMatches::best`].
    pub fn listed_drop(&self, doc: u32, as_of: AsOf) -> ListedDrop {
        let drop = self.row_drop(doc);
        let tld = self.drops_by_rank.tlds()[doc as usize];
        let label = self.records.get(doc).label;
        let name = format!("{label}.{}", self.tlds.name(tld));
        ListedDrop {
            name: DomainName::from_stored(name.as_bytes(), label.len() as u8)
                .expect("a record holds the label of a name"),
            dqs: self.drops_by_rank.dqs(doc),
            drop_date: drop.date,
            release: drop.release,
            stage: self.stage(tld, &drop, as_of),
        }
    }
}

/// All rules, their conditions gathered so that each is worked out once.
struct Plan<'a> {
    index: &'a Index,
    as_of: AsOf,
    rules: Vec<PlannedRule>,
    /// Ways for a name to be news, by number.
    fresh: Vec<NewsCriteria>,
    /// Longest labels that are asked for, by number.
    lengths: Vec<u8>,
    needles: Needles,
}

/// A rule's conditions, by their numbers in a [`Plan`].
struct PlannedRule {
    fresh: usize,
    /// Docs below this have the score.
    docs: u32,
    /// `None` where any length passes; so with the others.
    length: Option<usize>,
    tlds: Option<Vec<u16>>,
    needle: Option<usize>,
}

/// What makes a name news to a rule, its other conditions aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NewsCriteria {
    stages: StageSet,
    created: Day,
    base: Watermark,
}

/// Gives each different value a number.
struct Interner<T>(FxHashMap<T, usize>);

impl<T: Eq + std::hash::Hash> Interner<T> {
    fn new() -> Interner<T> {
        Interner(FxHashMap::default())
    }

    fn number(&mut self, value: T) -> usize {
        let next = self.0.len();
        *self.0.entry(value).or_insert(next)
    }

    fn into_values(self) -> Vec<T> {
        let mut values: Vec<(T, usize)> = self.0.into_iter().collect();
        values.sort_unstable_by_key(|&(_, number)| number);
        values.into_iter().map(|(value, _)| value).collect()
    }
}

impl<'a> Plan<'a> {
    fn new(index: &'a Index, rules: &[DueRule], as_of: AsOf) -> Plan<'a> {
        let (mut fresh, mut lengths, mut needles) =
            (Interner::new(), Interner::new(), Interner::new());
        let planned = rules.iter().map(|rule| {
            let RuleQuery { common, contains, stages } = &rule.query;
            let DueRule { created, base, .. } = *rule;
            PlannedRule {
                fresh: fresh.number(NewsCriteria { stages: *stages, created, base }.settled()),
                docs: index.drops_by_rank.docs_from(common.min_dqs),
                length: (common.max_len < LABEL_CHARS_MAX).then(|| lengths.number(common.max_len)),
                tlds: index.tlds.numbers(&common.tlds),
                needle: contains.as_ref().map(|text| needles.number(text.as_str())),
            }
        });
        let rules = planned.collect();
        let needles = Needles::new(&needles.into_values());
        let (fresh, lengths) = (fresh.into_values(), lengths.into_values());
        Plan { index, as_of, rules, fresh, lengths, needles }
    }

    /// The docs that are news to any rule, or may be, in rank order.
    fn candidates(&self, day: &DayStages) -> Vec<u32> {
        let Some(oldest) = self.fresh.iter().map(|fresh| fresh.base.batch).min() else {
            return Vec::new();
        };
        let since = self.fresh.iter().map(|fresh| fresh.base.day).min();
        let since = since.unwrap_or(self.as_of.today);
        let stages = self.fresh.iter().fold(0, |all, fresh| all | fresh.stages.bits());
        let docs = self.rules.iter().map(|rule| rule.docs).max().unwrap_or(0);
        let first_batches = self.index.drops_by_rank.first_batches();
        let may_fire = |&doc: &u32| {
            let code = day.by_doc()[doc as usize] & DayStages::mask(View::All);
            code & stages != 0
                && (u64::from(first_batches.number(doc)) > oldest || self.code(doc, since) < code)
        };
        let pieces: Vec<Vec<u32>> = (0..docs.div_ceil(DOCS_PER_PIECE))
            .into_par_iter()
            .map(|at| at * DOCS_PER_PIECE..docs.min((at + 1) * DOCS_PER_PIECE))
            .map(|docs| docs.filter(may_fire).collect())
            .collect();
        pieces.concat()
    }

    /// The code of the stage that a doc was in on `day`, or would have been.
    fn code(&self, doc: u32, day: Day) -> u8 {
        let Index { drops_by_rank: listed, tlds, .. } = self.index;
        let at = doc as usize;
        let left = i32::from(listed.releases()[at]) - i32::from(day.raw());
        let pending = tlds.pending_days(listed.tlds()[at]);
        stage_code(left, pending, self.as_of.catch_days.into())
    }
}

impl NewsCriteria {
    /// The same, told in one way: what came after the base's day is not looked at.
    fn settled(self) -> NewsCriteria {
        NewsCriteria { created: self.created.min(self.base.day), ..self }
    }
}
