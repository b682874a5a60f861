//! Stages of one day. Dates of the drops list and a moment come in, once a day and generation;
//! what goes out is one code a doc, the same as bits by stage, and the TLDs of every view. What
//! the stages are is [`crate::vocab::stage::Stage`]'s to say; a test holds this against it.

use rayon::prelude::*;

use crate::index::columns::drops_by_rank::DropsByRank;
use crate::index::columns::tlds::Tlds;
use crate::index::filter::{AsOf, View};
use crate::vocab::stage::Stage;

/// In redemption.
pub const REDEMPTION: u8 = 1;
/// Pending delete.
pub const PENDING_DELETE: u8 = 2;
/// Free since a few days.
pub const CATCHABLE: u8 = 4;
/// Free for longer.
pub const RELEASED: u8 = 8;
/// DropsByName today, beside its stage.
pub const DROPPED_TODAY: u8 = 16;

/// Bits in a code.
const CODE_BITS: usize = 5;
/// Words that one thread works out at a time.
const WORDS_PER_PIECE: usize = 1 << 10;
const DOCS_PER_PIECE: usize = WORDS_PER_PIECE * 64;
/// The lowest bit of each byte of a word.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
/// Multiplied with bytes of 0 or 1, puts them side by side in the top byte.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// Where every dropped name stands on one day.
#[derive(Debug)]
pub struct DayStages {
    /// Exactly one stage, and [`DROPPED_TODAY`]; 0 for a name registered again.
    by_doc: Vec<u8>,
    /// For each bit of a code, a bit a doc.
    bits: [Vec<u64>; CODE_BITS],
    /// TLD numbers of each of [`View::EVERY`], in the order of their names.
    tlds: [Vec<u16>; View::EVERY.len()],
}

/// The docs of a part of the pipeline among those on the drops list, a bit a doc.
#[derive(Clone, Copy, Debug)]
pub enum StageDocs<'a> {
    All,
    In(&'a [u64]),
    NotIn(&'a [u64]),
}

impl StageDocs<'_> {
    /// The bits of the docs from `64 * word` on.
    #[inline]
    pub fn word(self, word: usize) -> u64 {
        match self {
            StageDocs::All => u64::MAX,
            StageDocs::In(words) => words[word],
            StageDocs::NotIn(words) => !words[word],
        }
    }

    /// Copies the bits of the docs from `64 * first` on.
    pub fn copy(self, first: usize, words: &mut [u64]) {
        match self {
            StageDocs::All => words.fill(u64::MAX),
            StageDocs::In(bits) => words.copy_from_slice(&bits[first..first + words.len()]),
            StageDocs::NotIn(bits) => {
                words.iter_mut().zip(&bits[first..]).for_each(|(word, bits)| *word = !bits);
            }
        }
    }
}

/// What one thread finds of some consecutive docs.
struct Piece {
    bits: [Vec<u64>; CODE_BITS],
    /// By TLD number: the codes its names have.
    seen: Vec<u8>,
}

/// A moment against the rows.
struct Rule<'a> {
    today: i32,
    catch_days: i32,
    /// By TLD number.
    pending: &'a [u16],
}

impl DayStages {
    /// The stages of all dropped names at `moment`.
    pub fn new(listed: &DropsByRank, tlds: &Tlds, as_of: AsOf) -> DayStages {
        let numbers = (0..=u16::MAX).take(tlds.len());
        let pending: Vec<u16> = numbers.map(|number| tlds.pending_days(number)).collect();
        let rule = Rule {
            today: as_of.today.raw().into(),
            catch_days: as_of.catch_days.into(),
            pending: &pending,
        };
        let on_list = listed.len() as usize;
        let mut by_doc = vec![0; listed.tlds().len()];
        let pieces: Vec<Piece> = by_doc[..on_list]
            .par_chunks_mut(DOCS_PER_PIECE)
            .enumerate()
            .map(|(at, codes)| rule.judge(listed, at * DOCS_PER_PIECE, codes))
            .collect();
        let mut seen = vec![0; tlds.len()];
        let mut bits: [Vec<u64>; CODE_BITS] = Default::default();
        for piece in pieces {
            seen.iter_mut().zip(&piece.seen).for_each(|(all, here)| *all |= here);
            bits.iter_mut().zip(piece.bits).for_each(|(all, here)| all.extend(here));
        }
        let tlds_of = |view| {
            let present = |&tld: &u16| seen[usize::from(tld)] & DayStages::mask(view) != 0;
            tlds.sorted().iter().copied().filter(present).collect()
        };
        DayStages { by_doc, bits, tlds: View::EVERY.map(tlds_of) }
    }

    /// One code a doc.
    pub fn by_doc(&self) -> &[u8] {
        &self.by_doc
    }

    /// A doc belongs to `pipeline` if its code has one of these bits.
    pub fn mask(view: View) -> u8 {
        match view {
            View::Active => REDEMPTION | PENDING_DELETE | CATCHABLE,
            View::Today => DROPPED_TODAY,
            View::All => REDEMPTION | PENDING_DELETE | CATCHABLE | RELEASED,
            View::Stage(stage) => code_of(stage),
        }
    }

    /// The numbers of the TLDs in `pipeline`, in the order of their names.
    pub fn tlds_in(&self, view: View) -> &[u16] {
        &self.tlds[view.position()]
    }

    /// The docs of `pipeline`.
    pub fn docs_in(&self, view: View) -> StageDocs<'_> {
        let bits = |code: u8| self.bits[code.trailing_zeros() as usize].as_slice();
        match view {
            View::All => StageDocs::All,
            View::Active => StageDocs::NotIn(bits(RELEASED)),
            View::Today => StageDocs::In(bits(DROPPED_TODAY)),
            View::Stage(stage) => StageDocs::In(bits(code_of(stage))),
        }
    }
}

/// The bit of a stage: those of later stages are higher.
pub fn code_of(stage: Stage) -> u8 {
    match stage {
        Stage::Redemption => REDEMPTION,
        Stage::PendingDelete => PENDING_DELETE,
        Stage::Catchable => CATCHABLE,
        Stage::Released => RELEASED,
    }
}

impl Rule<'_> {
    /// Fills in the codes of the docs from `first` on.
    fn judge(&self, listed: &DropsByRank, first: usize, codes: &mut [u8]) -> Piece {
        let docs = first..first + codes.len();
        let tlds = &listed.tlds()[docs.clone()];
        let releases = &listed.releases()[docs.clone()];
        let drop_dates = &listed.drop_dates()[docs];
        let mut seen = vec![0; self.pending.len()];
        for (((code, &tld), &release), &drop_date) in
            codes.iter_mut().zip(tlds).zip(releases).zip(drop_dates)
        {
            *code = self.code(tld, drop_date, release);
            seen[usize::from(tld)] |= *code;
        }
        let mut bits: [Vec<u64>; CODE_BITS] = Default::default();
        for chunk in codes.chunks(64) {
            let words = bit_words(chunk);
            bits.iter_mut().zip(words).for_each(|(bits, word)| bits.push(word));
        }
        Piece { bits, seen }
    }

    /// The stage that [`Stage::on`] gives: one step back for each border not reached; and whether
    /// it dropped today.
    #[inline]
    fn code(&self, tld: u16, drop_date: u16, release: u16) -> u8 {
        let left = i32::from(release) - self.today;
        let today = u8::from(i32::from(drop_date) == self.today);
        stage_code(left, self.pending[usize::from(tld)], self.catch_days) | (today * DROPPED_TODAY)
    }
}

/// The bit of the stage with so many days left to the release.
#[inline]
pub fn stage_code(days_left: i32, pending_days: u16, catch_days: i32) -> u8 {
    let steps = u8::from(days_left > -catch_days)
        + u8::from(days_left > 0)
        + u8::from(days_left > i32::from(pending_days));
    // With no days to catch, a name is released on the day it is free.
    RELEASED >> steps
}

/// For each bit of a code, the bits of up to 64 codes side by side.
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
