//! Stages of one day, computed once per day and generation. Input: dates of the drops list and the
//! day. Output: bitmaps of docs by stage, and the TLDs of every view.
//! [`crate::vocab::stage::Stage`] defines stages; a test compares the two.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::columns::drop_fields::{BLOCK, DropFields};
use crate::columns::drop_segment::DropField;
use crate::columns::slices::has_doc;
use crate::columns::tlds::Tlds;
use crate::filter::{AsOf, DROPPED_TODAY, RELEASED, View, stage_code, stage_code_in};
use crate::vocab::day::Day;
use crate::vocab::stage::Stage;

/// Number of bits per stage code.
const CODE_BITS: usize = 5;
/// Number of stages.
const STAGES: usize = Stage::ALL.len();
/// Words per parallel task.
const WORDS_PER_PIECE: usize = 1 << 10;
const DOCS_PER_PIECE: usize = WORDS_PER_PIECE * 64;
/// Lowest bit of each byte of a word.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
/// Multiplier that gathers eight bytes, each 0 or 1, into the bits of the top byte.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// Columns from which stages are computed, by doc.
#[derive(Clone, Copy)]
pub struct DropDates<'a> {
    /// Number of docs on the drops list.
    pub listed: u32,
    pub fields: &'a DropFields,
    /// Bitmap of docs that have no stage, as if they were registered again; empty for none.
    pub hidden: &'a [u64],
    /// Bitmap of the adult names.
    pub adult: &'a [u64],
}

/// Stages of all dropped names on one day.
#[derive(Debug)]
pub struct DayStages {
    /// A bitmap of docs for each bit of a code.
    bits: [Vec<u64>; CODE_BITS],
    /// TLD numbers of each of [`View::EVERY`], sorted by TLD name.
    tlds: [Vec<u16>; View::EVERY.len()],
    /// Union of the codes of all names of each TLD.
    seen: Vec<u8>,
    today: Day,
    /// Number of docs of each of [`View::EVERY`], without adult names.
    counts: [u32; View::EVERY.len()],
    /// Whether every doc on the list has a stage.
    is_whole: bool,
}

/// Bitmap of the docs of a view on the drops list.
#[derive(Clone, Copy, Debug)]
pub enum StageDocs<'a> {
    All,
    In(&'a [u64]),
    NotIn(&'a [u64]),
    /// Bitmaps whose union has the docs; the same bitmap may occur twice.
    Any([&'a [u64]; STAGES]),
}

impl StageDocs<'_> {
    /// Returns the bits of the 64 docs that start at doc `64 * word`.
    #[inline]
    pub fn word(self, word: usize) -> u64 {
        match self {
            StageDocs::All => u64::MAX,
            StageDocs::In(words) => words[word],
            StageDocs::NotIn(words) => !words[word],
            StageDocs::Any(sets) => sets.iter().fold(0, |all, words| all | words[word]),
        }
    }

    /// Copies to `words` the bits of its docs, starting at doc `64 * first`.
    pub fn copy(self, first: usize, words: &mut [u64]) {
        match self {
            StageDocs::All => words.fill(u64::MAX),
            StageDocs::In(bits) => words.copy_from_slice(&bits[first..first + words.len()]),
            StageDocs::NotIn(bits) => {
                words.iter_mut().zip(&bits[first..]).for_each(|(word, bits)| *word = !bits);
            }
            StageDocs::Any(_) => {
                (first..).zip(words).for_each(|(at, word)| *word = self.word(at));
            }
        }
    }
}

/// Result of one parallel task.
struct Piece {
    bits: [Vec<u64>; CODE_BITS],
    /// Codes of the names of each TLD, combined.
    seen: Vec<u8>,
}

/// Day and periods from which codes are computed.
struct Rule<'a> {
    today: i32,
    catch_days: i32,
    /// Pending-delete days by TLD number.
    pending: &'a [u16],
}

impl DayStages {
    /// Computes the stages of all dropped names on a day. Also returns the codes of the stages by
    /// doc.
    pub fn new(drops: DropDates<'_>, tlds: &Tlds, as_of: AsOf) -> (DayStages, Vec<u8>) {
        let numbers = (0..=u16::MAX).take(tlds.len());
        let pending: Vec<u16> = numbers.map(|number| tlds.pending_days(number)).collect();
        let rule = Rule {
            today: as_of.today.raw().into(),
            catch_days: as_of.catch_days.into(),
            pending: &pending,
        };
        let on_list = drops.listed as usize;
        let mut by_doc = vec![0; drops.fields.docs() as usize];
        let pieces: Vec<Piece> = by_doc[..on_list]
            .par_chunks_mut(DOCS_PER_PIECE)
            .enumerate()
            .map(|(at, codes)| rule.judge(drops, at * DOCS_PER_PIECE, codes))
            .collect();
        let mut seen = vec![0; tlds.len()];
        let mut bits: [Vec<u64>; CODE_BITS] = Default::default();
        for piece in pieces {
            seen.iter_mut().zip(&piece.seen).for_each(|(all, here)| *all |= here);
            bits.iter_mut().zip(piece.bits).for_each(|(all, here)| all.extend(here));
        }
        let tlds_of = |view: View| {
            let present = |&tld: &u16| seen[usize::from(tld)] & view.code_mask() != 0;
            tlds.sorted().iter().copied().filter(present).collect()
        };
        let tlds = View::EVERY.map(tlds_of);
        let count = |bits: &Vec<u64>| {
            let not_adult = bits.iter().zip(drops.adult).map(|(word, adult)| word & !adult);
            not_adult.map(u64::count_ones).sum()
        };
        let ones: Vec<u32> = bits.iter().map(count).collect();
        let counts = View::EVERY.map(|view| {
            let codes = (0..CODE_BITS).filter(|bit| view.code_mask() >> bit & 1 == 1);
            codes.map(|bit| ones[bit]).sum()
        });
        let (today, is_whole) = (as_of.today, drops.hidden.is_empty());
        (DayStages { bits, tlds, seen, today, counts, is_whole }, by_doc)
    }

    /// Returns the day.
    pub fn today(&self) -> Day {
        self.today
    }

    /// Returns the code of a doc: one stage, plus [`DROPPED_TODAY`]; 0 for a name registered again.
    #[inline]
    pub fn code(&self, doc: u32) -> u8 {
        let (word, place) = (doc as usize / 64, doc % 64);
        // The docs after the last word belong to names that were registered again.
        let bit = |bits: &Vec<u64>| bits.get(word).map_or(0, |word| (word >> place & 1) as u8);
        (0..).zip(&self.bits).fold(0, |code, (at, bits)| code | bit(bits) << at)
    }

    /// Returns the TLD numbers in `view`, sorted by TLD name.
    pub fn tlds_in(&self, view: View) -> Cow<'_, [u16]> {
        let Some(place) = view.place() else {
            let present = |tld: &&u16| self.seen[usize::from(**tld)] & view.code_mask() != 0;
            return self.tlds_in(View::All).iter().filter(present).copied().collect();
        };
        Cow::Borrowed(&self.tlds[place])
    }

    /// Returns the number of docs of one of [`View::EVERY`], without adult names.
    pub fn count(&self, view: View) -> Option<u32> {
        view.place().map(|place| self.counts[place])
    }

    /// Returns the docs of `view`.
    pub fn docs_in(&self, view: View) -> StageDocs<'_> {
        let bits = |code: u8| self.bits[code.trailing_zeros() as usize].as_slice();
        match view {
            View::All if self.is_whole => StageDocs::All,
            View::Active if self.is_whole => StageDocs::NotIn(bits(RELEASED)),
            View::Today => StageDocs::In(bits(DROPPED_TODAY)),
            View::Stage(stage) => StageDocs::In(bits(stage_code(stage))),
            View::All | View::Active | View::Stages(_) => {
                let mask = view.code_mask();
                let mut wanted =
                    Stage::ALL.map(stage_code).into_iter().filter(|code| mask & code != 0);
                let first = wanted.next().map_or(&[] as &[u64], bits);
                StageDocs::Any(std::array::from_fn(|_| wanted.next().map_or(first, bits)))
            }
        }
    }
}

impl Rule<'_> {
    /// Computes the codes of docs, starting at doc `first`.
    fn judge(&self, drops: DropDates<'_>, first: usize, codes: &mut [u8]) -> Piece {
        let mut seen = vec![0; self.pending.len()];
        let mut bits: [Vec<u64>; CODE_BITS] = Default::default();
        let mut values = [[0; BLOCK]; 3];
        for (start, codes) in (first as u32..).step_by(BLOCK).zip(codes.chunks_mut(BLOCK)) {
            let fields = [DropField::Tld, DropField::DropDay, DropField::ReleaseDay];
            for (field, values) in fields.into_iter().zip(&mut values) {
                drops.fields.read(field, start, values);
            }
            for (at, code) in codes.iter_mut().enumerate() {
                if !drops.hidden.is_empty() && has_doc(drops.hidden, start + at as u32) {
                    continue;
                }
                let [tld, drop_date, release] = values.each_ref().map(|values| values[at] as u16);
                *code = self.code(tld, drop_date, release);
                seen[usize::from(tld)] |= *code;
            }
            let words = bit_words(codes);
            bits.iter_mut().zip(words).for_each(|(bits, word)| bits.push(word));
        }
        Piece { bits, seen }
    }

    /// Computes [`Stage::on`], and whether the name dropped today, without branches: it steps back
    /// one stage for each boundary that is not yet reached.
    #[inline]
    fn code(&self, tld: u16, drop_date: u16, release: u16) -> u8 {
        let left = i32::from(release) - self.today;
        let today = u8::from(i32::from(drop_date) == self.today);
        stage_code_in(left, self.pending[usize::from(tld)], self.catch_days)
            | (today * DROPPED_TODAY)
    }
}

/// Transposes up to 64 codes into one word per bit.
fn bit_words(codes: &[u8]) -> [u64; CODE_BITS] {
    let mut padded = [0; 64];
    padded[..codes.len()].copy_from_slice(codes);
    let (eights, _) = padded.as_chunks::<8>();
    std::array::from_fn(|bit| {
        let mut word = 0;
        for (at, &eight) in eights.iter().enumerate() {
            let ones = u64::from_le_bytes(eight) >> bit & LOW_BITS;
            word |= (ones.wrapping_mul(GATHER) >> 56) << (8 * at);
        }
        word
    })
}
