//! What a query asks for, as meant: parsed, in range, ready to run.

use compact_str::CompactString;

use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;
use crate::vocab::query::{NamePrefix, Substring};
use crate::vocab::stage::Stage;

/// The day a query is answered for. A request takes one and keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    pub today: Day,
    /// Days a name counts as catchable after its effective release.
    pub catch_days: u16,
}

/// A part of the pipeline (decisions.md §2): a `stage`, or where none is given a `view`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pipeline {
    /// Every stage but released.
    Active,
    /// Dropped today.
    Today,
    /// Every name that ever dropped.
    All,
    /// One stage.
    Stage(Stage),
}

/// What both lists can be narrowed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Any of these TLDs, folded as [`crate::vocab::query::fold_tld`] does; empty means all.
    pub tlds: Vec<CompactString>,
    pub min_dqs: Dqs,
    /// Characters of the label at most, 1 to 63.
    pub max_len: u8,
}

impl Default for Narrow {
    fn default() -> Narrow {
        Narrow { tlds: Vec::new(), min_dqs: Dqs::MIN, max_len: LABEL_CHARS_MAX }
    }
}

/// `GET /api/v1/drops` and the drops export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropFilter {
    pub narrow: Narrow,
    pub pipeline: Pipeline,
    pub contains: Option<Substring>,
    pub limit: u32,
    pub offset: u32,
}

/// `GET /api/v1/search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFilter {
    pub prefix: NamePrefix,
    pub narrow: Narrow,
    /// `None` searches the whole corpus.
    pub pipeline: Option<Pipeline>,
    pub limit: u32,
    pub offset: u32,
}

/// A drop's days against a [`Pipeline`] on some day, with everything that does not change from
/// row to row worked out. Days are [`Day::raw`].
pub struct Window<'a> {
    pipeline: Pipeline,
    today: i32,
    catch_days: i32,
    /// Pending-delete days by TLD number.
    pending: &'a [u16],
}

impl<'a> Window<'a> {
    /// The rows of `pipeline` at `moment`; `pending` holds pending-delete days by TLD number.
    pub fn new(pipeline: Pipeline, moment: Moment, pending: &'a [u16]) -> Window<'a> {
        let today = i32::from(moment.today.raw());
        Window { pipeline, today, catch_days: i32::from(moment.catch_days), pending }
    }

    /// True when a drop of `drop_date` with the effective release `release` belongs to it.
    #[inline]
    pub fn holds(&self, tld: u16, drop_date: u16, release: u16) -> bool {
        let left = i32::from(release) - self.today;
        match self.pipeline {
            Pipeline::All => true,
            Pipeline::Active => left > -self.catch_days,
            Pipeline::Today => i32::from(drop_date) == self.today,
            Pipeline::Stage(Stage::Redemption) => left > self.pending_days(tld),
            Pipeline::Stage(Stage::PendingDelete) => left > 0 && left <= self.pending_days(tld),
            Pipeline::Stage(Stage::Catchable) => left <= 0 && left > -self.catch_days,
            Pipeline::Stage(Stage::Released) => left <= -self.catch_days,
        }
    }

    #[inline]
    fn pending_days(&self, tld: u16) -> i32 {
        i32::from(self.pending[usize::from(tld)])
    }
}

/// A set of TLD numbers, or all of them.
pub struct TldSet {
    /// A bit per TLD number; `None` holds all.
    bits: Option<Vec<u64>>,
    numbers: Vec<u16>,
}

impl TldSet {
    /// The numbers of those of `wanted` that are in `tlds` (sorted); all when `wanted` is empty.
    pub fn new(wanted: &[CompactString], tlds: &[String]) -> TldSet {
        if wanted.is_empty() {
            return TldSet { bits: None, numbers: Vec::new() };
        }
        let mut bits = vec![0u64; tlds.len().div_ceil(64)];
        let mut numbers = Vec::new();
        for tld in wanted {
            if let Ok(at) = tlds.binary_search_by(|known| known.as_str().cmp(tld)) {
                if bits[at / 64] & (1 << (at % 64)) == 0 {
                    numbers.push(at as u16);
                }
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        TldSet { bits: Some(bits), numbers }
    }

    #[inline]
    pub fn holds(&self, tld: u16) -> bool {
        let tld = usize::from(tld);
        self.bits.as_ref().is_none_or(|bits| bits[tld / 64] >> (tld % 64) & 1 == 1)
    }

    /// The numbers when the set is not all TLDs.
    pub fn numbers(&self) -> Option<&[u16]> {
        self.bits.is_some().then_some(&self.numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window and [`Stage::on`] are two spellings of decisions.md §2: they agree on every day.
    #[test]
    fn windows_agree_with_stages() {
        let pending = [5, 0, 7];
        for today in 900..1100u16 {
            let moment = Moment { today: Day::from_raw(today).expect("a day"), catch_days: 5 };
            for (tld, &days) in pending.iter().enumerate() {
                let release = Day::from_raw(1000).expect("a day");
                let stage = Stage::on(moment.today, release, days, 5);
                for asked in Stage::ALL {
                    let window = Window::new(Pipeline::Stage(asked), moment, &pending);
                    assert_eq!(window.holds(tld as u16, 950, 1000), asked == stage, "{today}");
                }
                let active = Window::new(Pipeline::Active, moment, &pending);
                assert_eq!(active.holds(tld as u16, 950, 1000), stage != Stage::Released);
                let of_today = Window::new(Pipeline::Today, moment, &pending);
                assert_eq!(of_today.holds(tld as u16, 950, 1000), today == 950);
            }
        }
    }

    #[test]
    fn unknown_tlds_match_nothing() {
        let tlds = ["co.uk".to_owned(), "com".to_owned()];
        let set = TldSet::new(&["com".into(), "nosuch".into(), "com".into()], &tlds);
        assert_eq!(set.numbers(), Some([1].as_slice()));
        assert_eq!((set.holds(0), set.holds(1)), (false, true));
        assert!(TldSet::new(&[], &tlds).holds(0));
        assert!(!TldSet::new(&["nosuch".into()], &tlds).holds(0));
    }
}
