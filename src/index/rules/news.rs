//! Which candidates are news to a rule, its other conditions aside: bits for each way that rules of
//! a plan have of calling a name new.
//!
//! Rules differ in stages, in what they were matched against before (hardly ever) and in the day
//! they were added (nearly always). The last tells apart only names that were known before and went on
//! to another stage, and of those only days since the first of them left redemption: a few.

use rayon::prelude::*;

use crate::index::columns::day::{DayStages, RELEASED, stage_code};
use crate::index::filter::View;
use crate::index::rules::{Interner, NewsCriteria, Plan};
use crate::vocab::day::Day;
use crate::vocab::watermark::Watermark;

/// Places within a word.
const WORD: usize = 64;
const STAGES: usize = RELEASED.trailing_zeros() as usize + 1;

/// Bits of the candidates of a block.
pub struct News {
    /// The place in `bits` of each [`NewsCriteria`] of the plan.
    places: Vec<usize>,
    bits: Vec<Vec<u64>>,
}

/// The candidates as those see them that were matched against the same before.
struct Since {
    /// By stage: those of batches that came since.
    new: [Vec<u64>; STAGES],
    /// Those known before that went on to another stage.
    moved: Vec<Moved>,
    /// Up to this day all of `moved` were in redemption.
    redemption_until: Day,
}

/// A name that went on to another stage.
#[derive(Clone, Copy)]
struct Moved {
    place: u32,
    release: u16,
    pending_days: u16,
    /// Codes of its stages: when it was known, on the base's day, and today.
    known: u8,
    then: u8,
    now: u8,
}

impl News {
    pub fn new(plan: &Plan<'_>, docs: &[u32], day: &DayStages) -> News {
        let mut bases = Interner::new();
        let of_fresh: Vec<usize> =
            plan.fresh.iter().map(|fresh| bases.number(fresh.base)).collect();
        let since: Vec<Since> =
            bases.into_values().par_iter().map(|base| Since::new(plan, *base, docs, day)).collect();
        let mut ways = Interner::new();
        let places =
            plan.fresh.iter().zip(of_fresh).map(|(&NewsCriteria { stages, created, .. }, base)| {
                ways.number((base, stages.bits(), created.max(since[base].redemption_until)))
            });
        let places = places.collect();
        let catch_days = plan.as_of.catch_days.into();
        let bits = ways
            .into_values()
            .into_par_iter()
            .map(|(base, stages, created)| since[base].bits(stages, created, catch_days))
            .collect();
        News { places, bits }
    }

    /// A bit for each candidate that is news in this way.
    pub fn bits(&self, fresh: usize) -> &[u64] {
        &self.bits[self.places[fresh]]
    }
}

impl Since {
    fn new(plan: &Plan<'_>, base: Watermark, docs: &[u32], day: &DayStages) -> Since {
        let (listed, tlds) = (&plan.index.drops_by_rank, &plan.index.tlds);
        let first_batches = listed.first_batches();
        let words = docs.len().div_ceil(WORD);
        let mut since = Since {
            new: std::array::from_fn(|_| vec![0; words]),
            moved: Vec::new(),
            redemption_until: base.day,
        };
        for (place, &doc) in (0u32..).zip(docs) {
            let now = day.by_doc()[doc as usize] & DayStages::mask(View::All);
            let batch = first_batches.number(doc);
            if u64::from(batch) > base.batch {
                let word = &mut since.new[now.trailing_zeros() as usize][place as usize / WORD];
                *word |= 1 << (place as usize % WORD);
                continue;
            }
            let then = plan.code(doc, base.day);
            if then >= now {
                continue;
            }
            let release = listed.releases()[doc as usize];
            let pending_days = tlds.pending_days(listed.tlds()[doc as usize]);
            // A clock that was set back may have a list come after the day it was matched.
            let known = plan.code(doc, first_batches.day(batch).min(base.day));
            since.moved.push(Moved { place, release, pending_days, known, then, now });
            let leaves = i32::from(release) - i32::from(pending_days);
            since.redemption_until = since.redemption_until.min(Day::MIN.plus(leaves - 2));
        }
        since
    }

    /// What is news to rules with these stages that were added on this day.
    fn bits(&self, stages: u8, created: Day, catch_days: i32) -> Vec<u64> {
        let mut bits = vec![0; self.new[0].len()];
        for (_, new) in (0..).zip(&self.new).filter(|&(stage, _)| stages >> stage & 1 == 1) {
            bits.iter_mut().zip(new).for_each(|(word, new)| *word |= new);
        }
        for moved in &self.moved {
            let word = &mut bits[moved.place as usize / WORD];
            *word |= u64::from(moved.is_news(stages, created, catch_days))
                << (moved.place as usize % WORD);
        }
        bits
    }
}

impl Moved {
    /// Whether it is in one of these stages, and was in none since it was known and the rule there.
    #[inline]
    fn is_news(self, stages: u8, created: Day, catch_days: i32) -> bool {
        let left = i32::from(self.release) - i32::from(created.raw());
        // Stages follow each other, so that the later of two days has the later of their stages.
        let from = self.known.max(stage_code(left, self.pending_days, catch_days));
        let between = (self.then << 1).wrapping_sub(from);
        stages & self.now != 0 && stages & between == 0
    }
}
