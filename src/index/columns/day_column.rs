//! Ranges of days of dropped names, by doc. Days are grouped into up to 64 periods, whose numbers
//! are kept as [`Slices`]: a range of days is a set of periods, and only the docs of the first and
//! last period of the range are compared one by one. The caller has the days themselves.
//!
//! Lists of years have more days than periods, so the number of docs of each day is kept as well: an
//! order by day goes day by day, not period by period.

use std::ops::RangeInclusive;

use crate::columns::slices::{SliceFiles, SliceTest, Slices, ValueSet, docs_of};
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

/// Number of bits of a period's number.
const BITS: usize = 6;
/// Maximum number of stored first days; each begins a period. Days before the first of these days
/// form another period.
const CUTS_MAX: usize = (1 << BITS) - 1;

/// Periods of the days of dropped names, by doc. Days are [`crate::vocab::day::Day::raw`].
#[derive(Debug)]
pub struct DayColumn {
    /// First day of each period, ascending, and the day after the last period.
    cuts: Vec<u16>,
    periods: Slices,
    /// Every day that has docs, ascending, and their number.
    days: Vec<(u16, u32)>,
}

/// Names of the files.
#[derive(Clone, Copy, Debug)]
pub struct DayFiles {
    pub cuts: &'static str,
    pub periods: &'static str,
    pub days: &'static str,
    pub counts: &'static str,
}

impl DayFiles {
    fn slices(self) -> SliceFiles {
        SliceFiles { bits: BITS, planes: self.periods, large: None }
    }
}

/// A compiled range of days.
#[derive(Debug)]
pub struct DayTest {
    range: RangeInclusive<u16>,
    /// Set of periods in which all days pass.
    whole: SliceTest,
    /// Set of periods in which some days pass.
    part: Option<SliceTest>,
}

impl DayTest {
    /// Returns true if a day passes.
    pub fn passes(&self, day: u16) -> bool {
        self.range.contains(&day)
    }
}

impl DayColumn {
    /// Writes the files of a column.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(files: DayFiles, days: &[u16], draft: &Draft) -> Result<(), BuildError> {
        let counts = counts(days);
        let cuts = cuts(&counts);
        let periods: Vec<u16> = days.iter().map(|&day| period(&cuts, day).into()).collect();
        draft.put(files.cuts, &cuts)?;
        let (days, counts): (Vec<u16>, Vec<u32>) = counts.into_iter().unzip();
        draft.put(files.days, &days)?;
        draft.put(files.counts, &counts)?;
        Slices::write(files.slices(), &periods, draft)
    }

    /// Opens the files that [`DayColumn::write`] wrote for `docs` names.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(from: &Files, files: DayFiles, docs: u32) -> Result<DayColumn, GenerationError> {
        let cuts: Vec<u16> = from.take(files.cuts)?;
        let fits = cuts.len() <= CUTS_MAX && cuts.is_sorted_by(|one, next| one < next);
        from.check(fits, files.cuts)?;
        let (days, counts): (Vec<u16>, Vec<u32>) =
            (from.take(files.days)?, from.take(files.counts)?);
        from.check(days.is_sorted_by(|one, next| one < next), files.days)?;
        let sum = counts.iter().try_fold(0u32, |sum, &count| sum.checked_add(count));
        from.check(counts.len() == days.len() && sum == Some(docs), files.counts)?;
        let days = days.into_iter().zip(counts).collect();
        Ok(DayColumn { cuts, periods: Slices::open(from, files.slices(), docs)?, days })
    }

    /// Returns the numbers of the periods, which sort like the days.
    pub fn periods(&self) -> &Slices {
        &self.periods
    }

    /// Returns the number of the period of a day.
    pub fn period(&self, day: u16) -> u8 {
        period(&self.cuts, day)
    }

    /// Returns the first and last day of a period that has docs.
    pub fn days_of(&self, period: u8) -> RangeInclusive<u16> {
        let place = usize::from(period);
        let first = place.checked_sub(1).and_then(|first| self.cuts.get(first));
        let next = self.cuts.get(place);
        first.map_or(0, |&first| first)..=next.map_or(u16::MAX, |&next| next.saturating_sub(1))
    }

    /// Returns the days in a range that have docs, ascending, and their number.
    pub fn days_in(&self, range: &RangeInclusive<u16>) -> &[(u16, u32)] {
        let first = self.days.partition_point(|(day, _)| day < range.start());
        let end = self.days.partition_point(|(day, _)| day <= range.end());
        self.days.get(first..end).unwrap_or_default()
    }

    /// Compiles a range of days. Of the days in `cut`, which are ends of the range, some docs fail.
    pub fn test(&self, range: RangeInclusive<u16>, cut: &[u16]) -> DayTest {
        let (first, last) = (self.period(*range.start()), self.period(*range.end()));
        let after = |period: u8| self.cuts.get(usize::from(period)).copied();
        // No day precedes the first boundary.
        let starts = first == 0 || after(first - 1) == Some(*range.start());
        let ends = after(last).map_or(*range.end() == u16::MAX, |next| next - 1 == *range.end());
        let starts = starts && !cut.contains(range.start());
        let ends = ends && !cut.contains(range.end());
        let in_range = |period: u8| (first..=last).contains(&period);
        let is_part = |period: u8| (period == first && !starts) || (period == last && !ends);
        let compile = |set| self.periods.test(set);
        DayTest {
            range,
            whole: compile(ValueSet::of(|period| in_range(period) && !is_part(period))),
            part: (!starts || !ends).then(|| compile(ValueSet::of(is_part))),
        }
    }

    /// Clears the bits of the docs that fail, starting at doc `64 * first`. `passes` is called with the
    /// docs of periods in which some fail.
    pub fn keep(
        &self,
        test: &DayTest,
        first: usize,
        words: &mut [u64],
        passes: impl Fn(u32) -> bool,
    ) {
        let mut part = Vec::new();
        if let Some(test) = &test.part {
            part.extend_from_slice(words);
            self.periods.keep(test, first, &mut part);
        }
        self.periods.keep(&test.whole, first, words);
        docs_of(first, &part, |doc| {
            words[doc as usize / 64 - first] |= u64::from(passes(doc)) << (doc % 64);
        });
    }
}

fn period(cuts: &[u16], day: u16) -> u8 {
    cuts.partition_point(|&cut| cut <= day) as u8
}

/// Returns every day that occurs, ascending, and how often.
fn counts(days: &[u16]) -> Vec<(u16, u32)> {
    let mut counts = vec![0; 1 << 16];
    days.iter().for_each(|&day| counts[usize::from(day)] += 1);
    (0..=u16::MAX).zip(counts).filter(|&(_, count)| count > 0).collect()
}

/// Returns the first days of periods with about equal numbers of docs, and the day after the last
/// period.
fn cuts(counts: &[(u16, u32)]) -> Vec<u16> {
    let Some((last, _)) = counts.last() else { return Vec::new() };
    let all: u64 = counts.iter().map(|&(_, count)| u64::from(count)).sum();
    let mut share = all / CUTS_MAX as u64;
    loop {
        let (mut cuts, mut docs) = (Vec::new(), 0);
        for (day, count) in counts.iter().map(|&(day, count)| (day, u64::from(count))) {
            if cuts.is_empty() || docs + count > share {
                cuts.push(day);
                docs = 0;
            }
            docs += count;
            if docs > share {
                // A period of a single day.
                cuts.extend(day.checked_add(1));
            }
        }
        cuts.extend(last.checked_add(1));
        cuts.dedup();
        if cuts.len() <= CUTS_MAX {
            return cuts;
        }
        share += share / 16 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    const FILES: DayFiles =
        DayFiles { cuts: "cuts", periods: "periods", days: "days", counts: "counts" };

    #[test]
    fn any_range_selects_its_days() {
        let mut rng = fastrand::Rng::with_seed(4);
        for spread in [0, 3, 40, 100, 2_000] {
            let day =
                |rng: &mut fastrand::Rng| 1_000 + rng.u16(0..=spread).min(rng.u16(0..=spread));
            let days: Vec<u16> = (0..5_000).map(|_| day(&mut rng)).collect();
            let (_folder, files) =
                round_trip(|draft| DayColumn::write(FILES, &days, draft)).expect("written");
            let column = DayColumn::open(&files, FILES, 5_000).expect("sound");
            let all: u32 = column.days_in(&(0..=u16::MAX)).iter().map(|(_, count)| count).sum();
            assert_eq!(all, 5_000);
            for _ in 0..300 {
                let start = 990 + rng.u16(0..spread + 20);
                let range = start..=start + rng.u16(0..spread / 2 + 20);
                // Of the ends, only even docs pass.
                let cut = [*range.start(), *range.end()];
                let cut = &cut[..rng.usize(0..=2)];
                let test = column.test(range.clone(), cut);
                let is_in = |doc: u32| {
                    let day = days[doc as usize];
                    test.passes(day) && (doc.is_multiple_of(2) || !cut.contains(&day))
                };
                for &(day, count) in column.days_in(&range) {
                    let same = days.iter().filter(|&&it| it == day).count();
                    assert!(range.contains(&day) && same == count as usize, "{day}");
                }
                let mut words = vec![u64::MAX; 5_000 / 64 - 3];
                column.keep(&test, 3, &mut words, is_in);
                for (doc, day) in days.iter().enumerate().skip(3 * 64).take(words.len() * 64) {
                    let passes = words[doc / 64 - 3] >> (doc % 64) & 1 == 1;
                    assert_eq!(passes, is_in(doc as u32), "{range:?} {cut:?} {day}");
                }
            }
        }
    }

    #[test]
    fn an_empty_column_has_no_passing_days() {
        assert!(cuts(&[]).is_empty());
        assert_eq!(cuts(&counts(&[u16::MAX, 7])), [7, 8, u16::MAX]);
    }
}
