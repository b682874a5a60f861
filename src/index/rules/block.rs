//! A block of candidates in rank order, with a bitmap for every condition of every rule.

use rayon::prelude::*;

use crate::columns::checks::DropChecks;
use crate::columns::day::DayStages;
use crate::columns::doc_sets::{DocSets, mark_docs};
use crate::columns::records::ScoreRecords;
use crate::rules::needles::Occurrences;
use crate::rules::news::News;
use crate::rules::{Plan, PlannedRule, RuleMatches};

/// Bits per word.
const WORD: usize = 64;
/// A text that occurs in more than 1/N of the places, where N is this number, gets a bitmap,
/// because combining words is then cheaper than visiting places.
const MANY_SHARE: usize = 16;

/// Consecutive candidates; a *place* is the position of a candidate among them.
pub struct Block<'a> {
    docs: &'a [u32],
    news: News,
    records: &'a ScoreRecords,
    /// Bitmaps by number of the length.
    lengths: Vec<Vec<u64>>,
    /// Bitmaps by number of the condition.
    columns: Vec<Vec<u64>>,
    tlds: DocSets,
    found: Occurrences,
    /// Bitmaps of frequent texts, by number of the text.
    many: Vec<Option<Vec<u64>>>,
}

impl<'a> Block<'a> {
    /// Computes all conditions of all rules.
    pub fn new(plan: &Plan<'a>, docs: &'a [u32], day: &DayStages) -> Block<'a> {
        let listed = &plan.index.drops_by_rank;
        let lengths: Vec<u8> = docs.iter().map(|&doc| listed.length(doc)).collect();
        let no_longer = |&most: &u8| bits_of(docs.len(), |at| lengths[at] <= most);
        let passing = |checks: &DropChecks<'_>| bits_of(docs.len(), |at| checks.passes(docs[at]));
        let tlds: Vec<u16> = docs.iter().map(|&doc| listed.tld(doc)).collect();
        let found = plan.needles.find(plan.index, docs);
        let many = |text| {
            let places: &[u32] = found.places(text);
            (places.len() * MANY_SHARE > docs.len()).then(|| {
                let mut words = vec![0; docs.len().div_ceil(WORD)];
                mark_docs(places, 0, &mut words);
                words
            })
        };
        Block {
            docs,
            news: News::new(plan, docs, day),
            records: &plan.index.records,
            lengths: plan.lengths.par_iter().map(no_longer).collect(),
            columns: plan.columns.par_iter().map(passing).collect(),
            tlds: DocSets::of(&tlds, plan.index.tlds.len()),
            many: (0..found.texts()).into_par_iter().map(many).collect(),
            found,
        }
    }

    /// Adds the matches of a rule to `found`; `words` is scratch space.
    pub fn match_rule(
        &self,
        rule: &PlannedRule,
        best_max: usize,
        words: &mut Vec<u64>,
        found: &mut RuleMatches,
    ) {
        let places = self.docs.partition_point(|&doc| doc < rule.docs);
        if places == 0 {
            return;
        }
        let count = places.div_ceil(WORD);
        words.clear();
        words.resize(2 * count, 0);
        let (passing, scratch) = words.split_at_mut(count);
        passing.copy_from_slice(&self.news.bits(rule.fresh)[..count]);
        passing[count - 1] &= u64::MAX >> ((WORD - places % WORD) % WORD);
        if let Some(length) = rule.length {
            keep(passing, &self.lengths[length]);
        }
        rule.columns.iter().for_each(|&column| keep(passing, &self.columns[column]));
        if let Some(tlds) = &rule.tlds {
            // Docs after the last word are omitted.
            self.tlds.members(tlds.iter().copied()).mark(0, scratch);
            keep(passing, scratch);
        }
        let reads =
            |doc: u32| rule.text.as_ref().is_none_or(|text| text.passes(&self.records.label(doc)));
        let needle = rule.needle.map(|text| (&self.many[text], self.found.places(text)));
        if let Some((Some(bits), _)) = needle {
            keep(passing, bits);
        }
        match needle {
            Some((None, holding)) => {
                let holding = &holding[..holding.partition_point(|&at| (at as usize) < places)];
                let passes =
                    |&&at: &&u32| passing[at as usize / WORD] >> (at as usize % WORD) & 1 == 1;
                let docs = holding.iter().filter(passes).map(|&at| self.docs[at as usize]);
                docs.filter(|&doc| reads(doc)).for_each(|doc| add(doc, best_max, found));
            }
            _ if rule.text.is_some() => {
                let docs = places_of(passing).map(|at| self.docs[at]);
                docs.filter(|&doc| reads(doc)).for_each(|doc| add(doc, best_max, found));
            }
            _ => add_bits(self.docs, passing, best_max, found),
        }
    }
}

/// Returns a bitmap of the places below `len`.
fn bits_of(len: usize, is_set: impl Fn(usize) -> bool) -> Vec<u64> {
    let word = |first: usize| {
        let places = first..len.min(first + WORD);
        places.fold(0, |word, at| word | u64::from(is_set(at)) << (at - first))
    };
    (0..len).step_by(WORD).map(word).collect()
}

fn keep(words: &mut [u64], others: &[u64]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
}

/// Returns the places whose bits are set.
fn places_of(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let next = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
        let lefts = std::iter::successors(Some(word).filter(|word| *word != 0), next);
        lefts.map(move |left| at * WORD + left.trailing_zeros() as usize)
    })
}

/// Adds the docs at the places whose bits are set.
fn add_bits(docs: &[u32], words: &[u64], best_max: usize, found: &mut RuleMatches) {
    for (at, &word) in words.iter().enumerate() {
        let mut left = word;
        while left != 0 && found.best.len() < best_max {
            found.best.push(docs[at * WORD + left.trailing_zeros() as usize]);
            left &= left - 1;
        }
        found.total += word.count_ones();
    }
}

fn add(doc: u32, best_max: usize, found: &mut RuleMatches) {
    if found.best.len() < best_max {
        found.best.push(doc);
    }
    found.total += 1;
}
