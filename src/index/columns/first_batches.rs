//! First batch that reported each drop, by doc, and the day on which each batch was ingested.
//! Numbers take one, two or four bytes, depending on the newest batch. They are not compressed further,
//! because the numbers of docs that are adjacent in rank order are unrelated. If there is only one batch,
//! no numbers are stored.

use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::day::Day;
use crate::vocab::time::UnixMs;

/// Multiplier that gathers bytes of 0 or 1 into the bits of the top byte.
const GATHER: u64 = 0x0102_0408_1020_4080;

const NUMBERS: &str = "listed.first-batch";
const DAYS: &str = "listed.batch-days";
const OBSERVED: &str = "listed.batch-observed";

/// First batches of the latest drops, by doc.
#[derive(Debug)]
pub struct FirstBatches {
    numbers: Numbers,
    /// Days of ingestion, by batch number minus one.
    days: Vec<Day>,
    /// Instants of observation, by batch number minus one.
    observed: Vec<UnixMs>,
}

/// Times of an ingested list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTimes {
    /// Day of ingestion.
    pub ingested: Day,
    /// Instant of its observation or, if the list states none, of its ingestion.
    pub observed: UnixMs,
}

#[derive(Debug)]
enum Numbers {
    /// Number of docs, all from the only batch.
    Same(u32),
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

impl FirstBatches {
    /// Writes the batch numbers by doc and the times of all batches.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(numbers: &[u32], batches: &[BatchTimes], draft: &Draft) -> Result<(), BuildError> {
        let days: Vec<u16> = batches.iter().map(|batch| batch.ingested.raw()).collect();
        let observed: Vec<u64> = batches.iter().map(|batch| batch.observed.get()).collect();
        draft.put(DAYS, &days)?;
        draft.put(OBSERVED, &observed)?;
        match width(batches.len()) {
            0 => Ok(()),
            1 => draft.put(NUMBERS, &numbers.iter().map(|&n| n as u8).collect::<Vec<u8>>()),
            2 => draft.put(NUMBERS, &numbers.iter().map(|&n| n as u16).collect::<Vec<u16>>()),
            _ => draft.put(NUMBERS, numbers),
        }
    }

    /// Opens the files that [`FirstBatches::write`] wrote for `docs` names.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(files: &Files, docs: u32) -> Result<FirstBatches, GenerationError> {
        let raw: Vec<u16> = files.take(DAYS)?;
        let days: Vec<Day> = raw.iter().filter_map(|&raw| Day::from_raw(raw)).collect();
        let observed: Vec<u64> = files.take(OBSERVED)?;
        let observed: Vec<UnixMs> = observed.into_iter().filter_map(UnixMs::new).collect();
        let numbers = match width(raw.len()) {
            0 => Numbers::Same(if raw.is_empty() { 0 } else { docs }),
            1 => Numbers::One(files.take(NUMBERS)?),
            2 => Numbers::Two(files.take(NUMBERS)?),
            _ => Numbers::Four(files.take(NUMBERS)?),
        };
        let read = FirstBatches { numbers, days, observed };
        let known = 1..=read.days.len() as u32;
        let fits = [read.days.len(), read.observed.len()] == [raw.len(); 2]
            && read.len() == docs
            && (0..docs).all(|doc| known.contains(&read.number(doc)));
        files.check(fits, NUMBERS)?;
        Ok(read)
    }

    fn len(&self) -> u32 {
        let len = match &self.numbers {
            Numbers::Same(docs) => *docs as usize,
            Numbers::One(numbers) => numbers.len(),
            Numbers::Two(numbers) => numbers.len(),
            Numbers::Four(numbers) => numbers.len(),
        };
        len as u32
    }

    /// Returns the first batch that reported the drop of a doc: 1 to [`FirstBatches::newest`].
    #[inline]
    pub fn number(&self, doc: u32) -> u32 {
        let at = doc as usize;
        match &self.numbers {
            Numbers::Same(_) => 1,
            Numbers::One(numbers) => numbers[at].into(),
            Numbers::Two(numbers) => numbers[at].into(),
            Numbers::Four(numbers) => numbers[at],
        }
    }

    /// Returns the number of the newest batch; 0 if there is no batch.
    pub fn newest(&self) -> u32 {
        self.days.len() as u32
    }

    /// Returns the day of ingestion of each batch, and the number of drops that it was the first to
    /// report, counting only drops that `counts` accepts.
    pub fn tally(&self, counts: impl Fn(u32) -> bool) -> Vec<(Day, u32)> {
        let mut tally: Vec<(Day, u32)> = self.days.iter().map(|&day| (day, 0)).collect();
        for doc in (0..self.len()).filter(|&doc| counts(doc)) {
            tally[self.number(doc) as usize - 1].1 += 1;
        }
        tally
    }

    /// Returns the instant at which the batch was observed.
    pub fn observed(&self, number: u32) -> UnixMs {
        self.observed[number as usize - 1]
    }

    /// Returns for each batch, by its number minus one, whether it was observed at or after `since`
    /// and has a number above `after` and up to `through`.
    pub fn accepted(
        &self,
        since: Option<UnixMs>,
        (after, through): (Option<u64>, Option<u64>),
    ) -> Vec<bool> {
        let is_accepted = |(number, at): (u64, &UnixMs)| {
            since.is_none_or(|since| *at >= since)
                && after.is_none_or(|after| number > after)
                && through.is_none_or(|through| number <= through)
        };
        (1..).zip(&self.observed).map(is_accepted).collect()
    }

    /// Returns for each batch, by its number minus one, whether it was observed at this instant.
    pub fn observed_at(&self, instant: UnixMs) -> Vec<bool> {
        self.observed.iter().map(|&at| at == instant).collect()
    }

    /// Clears the bits of the docs whose first list is not accepted, starting at doc `64 * first`;
    /// `lists` is indexed by batch number minus one.
    pub fn keep(&self, lists: &[bool], first: usize, words: &mut [u64]) {
        let is_wanted = |number: u32| lists[number as usize - 1];
        let start = lists.iter().position(|&it| it).unwrap_or(lists.len());
        let end = lists.iter().rposition(|&it| it).map_or(start, |last| last + 1);
        // Lists are nearly always ingested in the order of their observation.
        let is_range = lists[start..end].iter().all(|&it| it);
        match &self.numbers {
            Numbers::Same(_) if lists == [true] => {}
            Numbers::Same(_) => words.fill(0),
            // Numbers are below 256, and the accepted lists have the numbers `start + 1` to `end`.
            Numbers::One(numbers) if is_range => {
                let (start, lists) = (start as u8, (end - start) as u8);
                keep_where(numbers, first, words, |number| {
                    number.wrapping_sub(start).wrapping_sub(1) < lists
                });
            }
            Numbers::One(numbers) => keep_where(numbers, first, words, |it| is_wanted(it.into())),
            Numbers::Two(numbers) => keep_where(numbers, first, words, |it| is_wanted(it.into())),
            Numbers::Four(numbers) => keep_where(numbers, first, words, is_wanted),
        }
    }

    /// Returns the day on which the batch was ingested.
    #[inline]
    pub fn day(&self, number: u32) -> Day {
        self.days[number as usize - 1]
    }
}

/// Clears the bits of the docs whose value fails.
#[inline]
pub fn keep_where<T: Copy>(
    column: &[T],
    first: usize,
    words: &mut [u64],
    passes: impl Fn(T) -> bool,
) {
    for (at, word) in (first..).zip(words).filter(|(_, word)| **word != 0) {
        let values = &column[at * 64..column.len().min(at * 64 + 64)];
        let mut flags = [0u8; 64];
        if let Some(values) = values.first_chunk::<64>() {
            flags = values.map(|value| u8::from(passes(value)));
        } else {
            flags.iter_mut().zip(values).for_each(|(flag, &value)| *flag = passes(value).into());
        }
        *word &= bits_of(&flags);
    }
}

/// Returns the bits of 64 bytes of 0 or 1.
#[inline]
fn bits_of(flags: &[u8; 64]) -> u64 {
    let (eights, _) = flags.as_chunks::<8>();
    let bits = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
    (0..).zip(eights).fold(0, |word, (at, eight)| word | bits(eight) << (8 * at))
}

/// Returns the width in bytes of a batch number.
fn width(batches: usize) -> usize {
    match batches {
        0..=1 => 0,
        2..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    #[test]
    fn numbers_are_read_as_written_in_any_width() {
        for newest in [0, 1, 2, 255, 256, 65_535, 65_536, 100_000] {
            let day = |number: u32| Day::from_raw(1 + (number % 65_535) as u16).expect("a day");
            let observed =
                |number: u32| UnixMs::new(u64::from(number) * 1_000).expect("an instant");
            let times = |number| BatchTimes { ingested: day(number), observed: observed(number) };
            let batches: Vec<BatchTimes> = (1..=newest).map(times).collect();
            let numbers: Vec<u32> = [1, 2, 255, 256, 65_535, 65_536, newest]
                .into_iter()
                .filter(|number| (1..=newest).contains(number))
                .collect();
            let docs = numbers.len() as u32;
            let write = |draft: &Draft| FirstBatches::write(&numbers, &batches, draft);
            let (_folder, files) = round_trip(write).expect("written");
            let read = FirstBatches::open(&files, docs).expect("sound");
            assert_eq!(read.newest(), newest);
            for (doc, &number) in (0..).zip(&numbers) {
                assert_eq!((read.number(doc), read.day(number)), (number, day(number)));
                assert_eq!(read.observed(number), observed(number));
            }
            let tally = read.tally(|_| true);
            assert_eq!(tally.len(), newest as usize);
            for (number, &(ingested, first)) in (1..).zip(&tally) {
                let told = numbers.iter().filter(|&&told| told == number).count();
                assert_eq!((ingested, first as usize), (day(number), told));
            }
            let other = FirstBatches::open(&files, docs + 1);
            assert_eq!(other.is_err(), newest != 1, "of other docs");
            for wanted in 0..newest.min(3) {
                let lists: Vec<bool> = (0..newest).map(|at| at == wanted).collect();
                let mut words = [u64::MAX >> (64 - docs)];
                read.keep(&lists, 0, &mut words);
                let of_list = |&(_, &number): &(u32, &u32)| number == wanted + 1;
                let docs = (0..).zip(&numbers).filter(of_list);
                assert_eq!(words[0], docs.fold(0, |bits, (doc, _)| bits | 1 << doc));
            }
        }
    }

    #[test]
    fn drops_without_a_batch_are_refused() {
        let times = BatchTimes { ingested: Day::MIN, observed: UnixMs::new(0).expect("1970") };
        let batches = [times; 2];
        for numbers in [[0], [3]] {
            let write = |draft: &Draft| FirstBatches::write(&numbers, &batches, draft);
            let (_folder, files) = round_trip(write).expect("written");
            assert!(FirstBatches::open(&files, 1).is_err(), "{numbers:?}");
        }
    }
}
