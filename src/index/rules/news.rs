//! Bitmaps of the candidates that are new to a rule, one for each distinct set of criteria.
//!
//! Rules often differ in their stages, rarely in their watermark, and nearly always in the day on
//! which they were added. The day of a rule matters only for names that were already known and
//! changed stage, and only for the days since the first of these names left redemption.

use rayon::prelude::*;

use crate::columns::day::DayStages;
use crate::filter::{RELEASED, View, stage_code_in};
use crate::rules::{Interner, NewsCriteria, Plan};
use crate::vocab::day::Day;
use crate::vocab::watermark::Watermark;

/// Bits per word.
const WORD: usize = 64;
const STAGES: usize = RELEASED.trailing_zeros() as usize + 1;

/// Bitmaps of the candidates of a block.
pub struct News {
    /// Position in `bits` of each [`NewsCriteria`] of the plan.
    places: Vec<usize>,
    bits: Vec<Vec<u64>>,
}

/// The candidates relative to one base.
struct Since {
    /// Candidates of newer batches, by stage.
    new: [Vec<u64>; STAGES],
    /// Known candidates that changed stage.
    moved: Vec<Moved>,
    /// Last day on which all of `moved` were in redemption.
    redemption_until: Day,
}

/// A name that changed stage.
#[derive(Clone, Copy)]
pub struct Moved {
    pub place: u32,
    pub release: u16,
    pub pending_days: u16,
    /// Stage codes of the name on the day when it became known, on the base's day, and today.
    pub known: u8,
    pub then: u8,
    pub now: u8,
}

impl News {
    pub fn new(plan: &Plan<'_>, docs: &[u32], day: &DayStages) -> News {
        let mut bases = Interner::default();
        let of_fresh: Vec<usize> =
            plan.fresh.iter().map(|fresh| bases.insert_full(fresh.base).0).collect();
        let bases = Vec::from_iter(bases);
        let since: Vec<Since> =
            bases.into_par_iter().map(|base| Since::new(plan, base, docs, day)).collect();
        let mut ways = Interner::default();
        let places = plan.fresh.iter().zip(of_fresh).map(
            |(&NewsCriteria { stages, created, releases, .. }, base)| {
                let created = created.max(since[base].redemption_until);
                ways.insert_full((base, stages.bits(), created, releases)).0
            },
        );
        let places = places.collect();
        let catch_days = plan.as_of.catch_days.into();
        let bits = Vec::from_iter(ways)
            .into_par_iter()
            .map(|(base, stages, created, releases)| {
                let mut bits = since[base].bits(stages, created, catch_days);
                if let Some(window) = releases {
                    let in_stages = |doc: u32| day.code(doc) & stages != 0;
                    for (place, &doc) in docs.iter().enumerate() {
                        let is_news = in_stages(doc) && plan.has_entered(doc, window);
                        bits[place / WORD] |= u64::from(is_news) << (place % WORD);
                    }
                }
                bits
            })
            .collect();
        News { places, bits }
    }

    /// Returns the bitmap of candidates that are new by these criteria.
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
            let now = day.code(doc) & View::All.code_mask();
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
            let release = listed.release(doc);
            let pending_days = tlds.pending_days(listed.tld(doc));
            // If a clock was set back, a list may be newer than the day on which it was matched.
            let known = plan.code(doc, first_batches.day(batch).min(base.day));
            since.moved.push(Moved { place, release, pending_days, known, then, now });
            let leaves = i32::from(release) - i32::from(pending_days);
            since.redemption_until = since.redemption_until.min(Day::MIN.plus(leaves - 2));
        }
        since
    }

    /// Returns the bitmap for rules with these stages that were added on this day.
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
    /// Returns true if the name is in one of these stages now, and was in none of them since it
    /// became known and the rule was added.
    #[inline]
    pub fn is_news(self, stages: u8, created: Day, catch_days: i32) -> bool {
        let left = i32::from(self.release) - i32::from(created.raw());
        // Stages only advance, so the later of two days has the later stage.
        let from = self.known.max(stage_code_in(left, self.pending_days, catch_days));
        let between = (self.then << 1).wrapping_sub(from);
        stages & self.now != 0 && stages & between == 0
    }
}
