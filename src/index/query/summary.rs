//! Daily summary of the drops list without adult names: counts by TLD, stage, score and drop date, and
//! the best names that are released tomorrow, for each length band. The summary is computed once per day and
//! generation, on first use, in one walk over the columns.

use std::cmp::Reverse;
use std::ops::Range;

use rayon::prelude::*;

use crate::columns::day::DayStages;
use crate::columns::drops_by_rank::DropsByRank;
use crate::filter::{DROPPED_TODAY, View};
use crate::vocab::day::Day;

/// Number of drop dates counted, up to today.
pub const SUMMARY_DAYS: usize = 30;
/// Number of TLDs whose drops on these dates are also counted separately: the TLDs with the most drops.
pub const SUMMARY_TLDS: usize = 6;
/// Number of best names kept per length band.
pub const BEST_PER_BAND: usize = 5;

/// Length bands as in `lengthBand` of the API: name and maximum length.
pub const BANDS: [(&str, u8); 6] =
    [("1-3", 3), ("4-5", 5), ("6-8", 8), ("9-12", 12), ("13-20", 20), ("21+", u8::MAX)];

/// Returns the position of a length in [`BANDS`].
pub fn length_band(length: u8) -> u8 {
    BANDS.iter().position(|&(_, longest)| length <= longest).unwrap_or_default() as u8
}

/// Number of stage codes: five bits.
const CODES: usize = 32;
/// Number of scores, 0 to 100.
const SCORES: usize = 101;
/// Docs per parallel task.
const DOCS_PER_PIECE: usize = 1 << 17;

/// The counts of the drops list on one day.
#[derive(Debug)]
pub struct DaySummary {
    /// TLDs of each of [`View::EVERY`], as numbers of the index, with their number of names, most
    /// first.
    pub tlds: [Vec<(u16, u32)>; View::EVERY.len()],
    /// Number of names of each of [`View::EVERY`].
    pub totals: [u32; View::EVERY.len()],
    /// Number of adult names of each of [`View::EVERY`]; the other counts omit them.
    pub adult: [u32; View::EVERY.len()],
    /// Number of names of each of [`View::EVERY`], by score.
    pub scores: [Vec<u32>; View::EVERY.len()],
    /// The last days up to today, oldest first.
    pub days: Vec<DroppedOn>,
    /// TLDs counted in [`DroppedOn::by_tld`].
    pub day_tlds: Vec<u16>,
    /// Places of the names that are released tomorrow, by length band, best first.
    pub best: [Vec<u32>; BANDS.len()],
}

/// A layer of the index that is counted.
pub struct CountedLayer<'a> {
    pub listed: &'a DropsByRank,
    /// Stages of the layer; only visible docs have one.
    pub stages: &'a DayStages,
    /// TLD numbers of the index, by those of the layer.
    pub tlds: &'a [u16],
    /// Place of its first doc.
    pub first_place: u32,
}

/// One drop date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedOn {
    pub date: Day,
    /// Number of names whose latest drop was on this date.
    pub total: u32,
    /// Number of names of each separately counted TLD, in the order of [`DaySummary::day_tlds`].
    pub by_tld: Vec<u32>,
}

/// The counts of one parallel task.
struct Counts {
    /// Number of names by TLD number and code.
    tlds: Vec<[u32; CODES]>,
    /// Number of names by score and code.
    scores: Vec<[u32; CODES]>,
    /// Number of names by day of the window and TLD number.
    days: Vec<u32>,
    /// Number of adult names by code; the other counts omit them.
    adult: [u32; CODES],
}

impl Counts {
    fn new(tlds: usize) -> Counts {
        Counts {
            tlds: vec![[0; CODES]; tlds],
            scores: vec![[0; CODES]; SCORES],
            days: vec![0; SUMMARY_DAYS * tlds],
            adult: [0; CODES],
        }
    }

    fn plus(mut self, other: Counts) -> Counts {
        let add = |all: &mut [[u32; CODES]], more: &[[u32; CODES]]| {
            for (all, more) in all.iter_mut().zip(more) {
                all.iter_mut().zip(more).for_each(|(all, more)| *all += more);
            }
        };
        add(&mut self.tlds, &other.tlds);
        add(&mut self.scores, &other.scores);
        self.days.iter_mut().zip(&other.days).for_each(|(all, more)| *all += more);
        self.adult.iter_mut().zip(&other.adult).for_each(|(all, more)| *all += more);
        self
    }
}

impl DaySummary {
    /// Counts the names of `layers` with the stages of today. `tlds` is the total number of TLDs. `best` picks the best from the best places of
    /// each layer.
    pub fn new(
        layers: &[CountedLayer<'_>],
        tlds: usize,
        today: Day,
        best: impl Fn(Vec<Vec<u32>>) -> Vec<u32>,
    ) -> DaySummary {
        let first = first_day(today);
        let counts = layers
            .iter()
            .map(|layer| Walk { layer, first, today }.count_all(tlds))
            .fold(Counts::new(tlds), Counts::plus);
        let of_layers: Vec<_> = layers.iter().map(|layer| layer.best_of(today.plus(1))).collect();
        let best_of =
            |band: usize| best(of_layers.iter().map(|bands| bands[band].clone()).collect());
        let of = |counts: &[u32; CODES], view: View| {
            let mask = view.code_mask();
            let codes = (0u8..).zip(counts).filter(|(code, _)| code & mask != 0);
            codes.map(|(_, count)| count).sum::<u32>()
        };
        let by_tld = View::EVERY.map(|view| {
            let numbered = (0..=u16::MAX).zip(&counts.tlds);
            let counted = numbered.map(|(number, counts)| (number, of(counts, view)));
            let mut present: Vec<_> = counted.filter(|&(_, count)| count > 0).collect();
            // TLDs with lower numbers have more names overall.
            present.sort_by_key(|&(number, count)| (Reverse(count), number));
            present
        });
        let scores =
            View::EVERY.map(|view| counts.scores.iter().map(|score| of(score, view)).collect());
        let totals = std::array::from_fn(|at| by_tld[at].iter().map(|&(_, count)| count).sum());
        let (day_tlds, days) = by_day(&counts.days, tlds, first);
        let best = std::array::from_fn(best_of);
        let adult = View::EVERY.map(|view| of(&counts.adult, view));
        DaySummary { tlds: by_tld, totals, adult, scores, days, day_tlds, best }
    }
}

fn first_day(today: Day) -> Day {
    today.plus(1 - SUMMARY_DAYS as i32)
}

/// The inputs of a count.
struct Walk<'a> {
    layer: &'a CountedLayer<'a>,
    first: Day,
    today: Day,
}

impl Walk<'_> {
    fn count_all(&self, tlds: usize) -> Counts {
        let docs = self.layer.listed.len() as usize;
        let pieces = (0..docs.div_ceil(DOCS_PER_PIECE)).into_par_iter().map(|piece| {
            let start = piece * DOCS_PER_PIECE;
            start..docs.min(start + DOCS_PER_PIECE)
        });
        pieces
            .fold(|| Counts::new(tlds), |counts, docs| self.count(docs, counts))
            .reduce(|| Counts::new(tlds), Counts::plus)
    }

    fn count(&self, docs: Range<usize>, mut counts: Counts) -> Counts {
        let tlds = counts.tlds.len();
        let window = self.first.raw()..=self.today.raw();
        let CountedLayer { listed, stages, tlds: numbers, .. } = self.layer;
        for doc in docs {
            let doc = doc as u32;
            let code = stages.code(doc);
            if code == 0 {
                continue;
            }
            if listed.is_adult(doc) {
                counts.adult[usize::from(code)] += 1;
                continue;
            }
            let tld = usize::from(numbers[usize::from(listed.tld(doc))]);
            counts.tlds[tld][usize::from(code)] += 1;
            let score = listed.dqs(doc).points();
            counts.scores[usize::from(score)][usize::from(code)] += 1;
            let date = listed.drop_date(doc);
            if window.contains(&date) {
                counts.days[usize::from(date - self.first.raw()) * tlds + tld] += 1;
            }
        }
        counts
    }
}

/// Returns the TLDs with the most names over all days of `counts`, and their number of names on
/// each day.
fn by_day(counts: &[u32], tlds: usize, first: Day) -> (Vec<u16>, Vec<DroppedOn>) {
    let in_all = |tld: u16| counts.iter().skip(tld.into()).step_by(tlds).sum::<u32>();
    let numbers = (0..=u16::MAX).take(tlds);
    let mut present: Vec<_> = numbers.map(|tld| (tld, in_all(tld))).collect();
    present.retain(|&(_, count)| count > 0);
    present.sort_by_key(|&(number, count)| (Reverse(count), number));
    let named: Vec<u16> = present.iter().take(SUMMARY_TLDS).map(|&(tld, _)| tld).collect();
    let day = |at: usize| {
        let here = &counts[at * tlds..(at + 1) * tlds];
        DroppedOn {
            date: first.plus(at as i32),
            total: here.iter().sum(),
            by_tld: named.iter().map(|&tld| here[usize::from(tld)]).collect(),
        }
    };
    (named.clone(), (0..SUMMARY_DAYS).map(day).collect())
}

impl CountedLayer<'_> {
    /// Returns the places of the first docs of each band that are released on `date`, which are the
    /// best, because docs are in rank order.
    fn best_of(&self, date: Day) -> [Vec<u32>; BANDS.len()] {
        let mut best: [Vec<u32>; BANDS.len()] = Default::default();
        let mut wanted = BANDS.len() * BEST_PER_BAND;
        for doc in 0..self.listed.len() {
            let is_hidden = self.stages.code(doc) == 0 || self.listed.is_adult(doc);
            if self.listed.release(doc) != date.raw() || is_hidden {
                continue;
            }
            let length = self.listed.length(doc);
            let band = BANDS.iter().position(|&(_, longest)| length <= longest);
            let band = &mut best[band.expect("the last band has no end")];
            if band.len() < BEST_PER_BAND {
                band.push(self.first_place + doc);
                wanted -= 1;
                if wanted == 0 {
                    break;
                }
            }
        }
        best
    }
}

// Codes are counted by their value.
const _: () = assert!((DROPPED_TODAY as usize) << 1 == CODES);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::columns::drops_by_rank;
    use crate::columns::fixtures::{TestTables, round_trip};
    use crate::columns::rank_order::RankOrder;
    use crate::columns::tlds::Tlds;
    use crate::filter::AsOf;
    use crate::vocab::stage::Stage;

    fn raw(raw: u16) -> Day {
        Day::from_raw(raw).expect("a day")
    }

    #[test]
    fn counts_are_those_of_a_scan() {
        for (seed, names) in [(1, 0), (2, 1), (3, 200), (4, 5_000)] {
            let table = TestTables::new(seed).table(names);
            let order = RankOrder::new(&table).expect("in memory");
            let write = |draft: &_| drops_by_rank::write(&table, &order, draft);
            let (_folder, files) = round_trip(write).expect("written");
            let tlds = &table.tlds;
            let listed = DropsByRank::open(&files, tlds, table.dropped(), order.listed());
            let listed = listed.expect("sound");
            for today in [991, 1_005, 1_020, 1_040, 1_200] {
                check(&listed, tlds, raw(today));
            }
        }
    }

    fn check(listed: &DropsByRank, tlds: &Tlds, today: Day) {
        let as_of = AsOf { today, catch_days: 5 };
        let (stages, _) = DayStages::new(listed.dates(&[]), tlds, as_of);
        let numbers: Vec<u16> = (0..=u16::MAX).take(tlds.len()).collect();
        let layer = CountedLayer { listed, stages: &stages, tlds: &numbers, first_place: 0 };
        let summary = DaySummary::new(&[layer], tlds.len(), today, |mut best| best.remove(0));
        let docs = || (0..listed.len() as usize).filter(|&doc| !listed.is_adult(doc as u32));
        let stage = |doc: usize| {
            let pending = tlds.pending_days(listed.tld(doc as u32));
            Stage::on(today, raw(listed.release(doc as u32)), pending, as_of.catch_days)
        };
        for view in View::EVERY {
            let is_in = |doc: &usize| match view {
                View::Active => stage(*doc) != Stage::Released,
                View::Today => listed.drop_date(*doc as u32) == today.raw(),
                View::All => true,
                View::Stage(wanted) => stage(*doc) == wanted,
                View::Stages(_) => unreachable!("EVERY has none"),
            };
            let (mut by_tld, mut scores) = (BTreeMap::<u16, u32>::new(), vec![0; SCORES]);
            for doc in docs().filter(is_in) {
                *by_tld.entry(listed.tld(doc as u32)).or_default() += 1;
                scores[usize::from(listed.dqs(doc as u32).points())] += 1;
            }
            assert_eq!(summary.totals[view.position()] as usize, docs().filter(is_in).count());
            let all = (0..listed.len() as usize).filter(is_in).count();
            let both = summary.totals[view.position()] + summary.adult[view.position()];
            assert_eq!(both as usize, all);
            let found: BTreeMap<u16, u32> = summary.tlds[view.position()].iter().copied().collect();
            assert_eq!(found, by_tld, "{view:?} on {today}");
            assert!(summary.tlds[view.position()].is_sorted_by_key(|&(_, count)| Reverse(count)));
            assert_eq!(summary.scores[view.position()], scores);
        }
        assert_eq!(summary.days.len(), SUMMARY_DAYS);
        assert_eq!(summary.days.last().map(|day| day.date), Some(today));
        for day in &summary.days {
            let on = |doc: &usize| listed.drop_date(*doc as u32) == day.date.raw();
            assert_eq!(day.total as usize, docs().filter(on).count(), "{}", day.date);
            for (&tld, &count) in summary.day_tlds.iter().zip(&day.by_tld) {
                let of_tld = docs().filter(on).filter(|&doc| listed.tld(doc as u32) == tld);
                assert_eq!(count as usize, of_tld.count(), "{} {tld}", day.date);
            }
        }
        let mut shortest = 0;
        for (docs_found, (_, longest)) in summary.best.iter().zip(BANDS) {
            let fits = |doc: &usize| (shortest..=longest).contains(&listed.length(*doc as u32));
            let on = |doc: &usize| listed.release(*doc as u32) == today.plus(1).raw();
            let expected: Vec<u32> =
                docs().filter(on).filter(fits).take(BEST_PER_BAND).map(|doc| doc as u32).collect();
            assert_eq!(docs_found, &expected);
            shortest = longest.saturating_add(1);
        }
    }
}
