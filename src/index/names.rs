//! Every name ever seen, in name order: a prefix is one contiguous range of ordinals.
//!
//! An fst maps names to ordinals and back. What a query filters by stands in flat columns, one
//! value per ordinal, read once from tantivy's column format. A second fst maps the Unicode forms
//! of internationalised names to the same ordinals.

use std::collections::BinaryHeap;
use std::ops::Range;

use fst::{IntoStreamer, Streamer};

use crate::index::automaton::{NameAutomaton, OwnedFst};
use crate::index::filter::{Moment, SearchFilter, TldSet, Window};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::SEARCH_TOTAL_MAX;
use crate::vocab::name::to_unicode;

/// The state column: registered again after its latest drop.
pub const STATE_REGISTERED_AGAIN: u8 = 1;
/// The state column: never dropped, and a list said that it is held.
pub const STATE_REGISTERED: u8 = 2;

/// `dqs` descending, then `length` ascending, as one number that sorts ascending.
#[inline]
pub fn rank_key(dqs: Dqs, length: u8) -> u16 {
    u16::from(Dqs::MAX.points() - dqs.points()) << 8 | u16::from(length)
}

/// The score in a [`rank_key`].
#[inline]
pub fn dqs_of(key: u16) -> Dqs {
    Dqs::clamped(i32::from(Dqs::MAX.points()) - i32::from(key >> 8))
}

/// The length in a [`rank_key`].
#[inline]
pub fn length_of(key: u16) -> u8 {
    (key & 0xff) as u8
}

/// One value per name, by ordinal.
#[derive(Debug, Default)]
pub struct NameColumns {
    /// [`rank_key`].
    pub key: Vec<u16>,
    /// TLD numbers.
    pub tld: Vec<u16>,
    /// Latest drop, [`Day::raw`]; 0 for a name that never dropped.
    pub drop_date: Vec<u16>,
    /// Effective release of that drop; 0 likewise.
    pub release: Vec<u16>,
    /// `STATE_` bits.
    pub state: Vec<u8>,
}

/// The names part of a generation.
pub struct Names {
    pub(super) by_name: NameAutomaton,
    pub(super) by_unicode: OwnedFst,
    pub(super) columns: NameColumns,
}

/// One name's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRow {
    pub ordinal: u32,
    pub dqs: Dqs,
    pub length: u8,
    /// TLD number.
    pub tld: u16,
    /// Latest drop and its effective release.
    pub drop: Option<(Day, Day)>,
    pub registered_again: bool,
    /// Held, as lists say; only told for a name that never dropped.
    pub registered: bool,
}

/// The best of what matched, best first, and how many matched: exact up to
/// [`SEARCH_TOTAL_MAX`], one more above it.
pub struct Ranked {
    pub ordinals: Vec<u32>,
    pub total: u32,
}

impl Names {
    /// The ordinal of a canonical name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.by_name.find(name)
    }

    /// The name of an ordinal, into `text`.
    pub fn name_into(&self, ordinal: u32, text: &mut Vec<u8>) {
        self.by_name.name_into(ordinal, text);
    }

    /// The row of an ordinal below the number of names.
    pub fn row(&self, ordinal: u32) -> NameRow {
        let at = ordinal as usize;
        let columns = &self.columns;
        let drop_date = Day::from_raw(columns.drop_date[at]);
        NameRow {
            ordinal,
            dqs: dqs_of(columns.key[at]),
            length: length_of(columns.key[at]),
            tld: columns.tld[at],
            drop: drop_date.zip(Day::from_raw(columns.release[at])),
            registered_again: columns.state[at] & STATE_REGISTERED_AGAIN != 0,
            registered: columns.state[at] & STATE_REGISTERED != 0,
        }
    }

    /// In how many TLDs the corpus holds `label` (A-label form).
    pub fn tld_spread(&self, label: &str) -> u32 {
        self.by_name.tld_spread(label)
    }

    /// The ordinals of the names that start with `prefix`.
    pub fn range(&self, prefix: &[u8]) -> Range<u32> {
        self.by_name.range(prefix)
    }

    /// How many names a search has to look at.
    pub fn width(&self, filter: &SearchFilter) -> u32 {
        self.range(filter.prefix.as_str().as_bytes()).len() as u32
    }

    /// The best `offset + limit` names of a search, without its first `offset`.
    pub fn search(
        &self,
        filter: &SearchFilter,
        moment: Moment,
        tlds: &[String],
        pending: &[u16],
    ) -> Ranked {
        let scan = Scan {
            columns: &self.columns,
            window: filter.pipeline.map(|pipeline| Window::new(pipeline, moment, pending)),
            tlds: TldSet::new(&filter.narrow.tlds, tlds),
            // The worst key that still has the score: any length.
            key_max: rank_key(filter.narrow.min_dqs, u8::MAX),
            length_max: filter.narrow.max_len,
        };
        let mut best = Best::new((filter.offset + filter.limit) as usize);
        if scan.tlds.numbers().is_none_or(|numbers| !numbers.is_empty()) {
            self.scan_prefix(filter.prefix.as_str(), &scan, &mut best);
        }
        best.into_ranked(filter.offset as usize)
    }

    fn scan_prefix(&self, prefix: &str, scan: &Scan<'_>, best: &mut Best) {
        let range = self.range(prefix.as_bytes());
        let exact = self.exact(prefix, &range);
        scan.offer(range.start..exact.start, false, best);
        scan.offer(exact.clone(), true, best);
        scan.offer(exact.end..range.end, false, best);
        self.for_each_alias(prefix, |ordinal, whole| {
            // An ASCII prefix may find a name by both its forms.
            if !range.contains(&ordinal) {
                scan.offer(ordinal..ordinal + 1, whole, best);
            }
        });
    }

    /// The names within `range` whose whole name or label is `prefix`.
    fn exact(&self, prefix: &str, range: &Range<u32>) -> Range<u32> {
        let by_label = if prefix.contains('.') {
            self.find(prefix).map(|ordinal| ordinal..ordinal + 1)
        } else {
            let mut label = prefix.as_bytes().to_vec();
            label.push(b'.');
            Some(self.range(&label))
        };
        by_label.filter(|exact| !exact.is_empty()).unwrap_or(range.start..range.start)
    }

    /// Every name whose Unicode form, being another than its A-label form, starts with `prefix`;
    /// true when the whole name or label is `prefix`.
    fn for_each_alias(&self, prefix: &str, mut visit: impl FnMut(u32, bool)) {
        let mut keys = AliasWalk::new(&self.by_unicode, prefix.as_bytes());
        while let Some((key, ordinal)) = keys.next() {
            let rest = &key[prefix.len()..];
            let whole = rest.is_empty() || (rest[0] == b'.' && !prefix.contains('.'));
            visit(ordinal, whole);
        }
    }
}

/// The alias that a name has in `by_unicode`: its Unicode form, when that differs.
pub fn alias_of(name: &str) -> Option<String> {
    if !name.contains("xn--") {
        return None;
    }
    let unicode = to_unicode(name);
    (unicode != name).then(|| unicode.into_owned())
}

/// The filters of one search over the columns.
struct Scan<'a> {
    columns: &'a NameColumns,
    window: Option<Window<'a>>,
    tlds: TldSet,
    key_max: u16,
    length_max: u8,
}

impl Scan<'_> {
    /// Offers every name of `range` that passes.
    fn offer(&self, range: Range<u32>, exact: bool, best: &mut Best) {
        let unfiltered = self.window.is_none()
            && self.tlds.numbers().is_none()
            && self.key_max == rank_key(Dqs::MIN, u8::MAX)
            && self.length_max >= crate::vocab::limits::LABEL_CHARS_MAX;
        if unfiltered {
            best.total = best.total.saturating_add(range.len() as u32);
            for ordinal in range {
                best.place(exact, self.columns.key[ordinal as usize], ordinal);
            }
            return;
        }
        for ordinal in range {
            let key = self.columns.key[ordinal as usize];
            if key <= self.key_max && self.passes(ordinal as usize, key) {
                best.total += 1;
                best.place(exact, key, ordinal);
            }
        }
    }

    #[inline]
    fn passes(&self, at: usize, key: u16) -> bool {
        let columns = self.columns;
        length_of(key) <= self.length_max
            && self.tlds.holds(columns.tld[at])
            && self.window.as_ref().is_none_or(|window| {
                columns.drop_date[at] != 0
                    && columns.state[at] & STATE_REGISTERED_AGAIN == 0
                    && window.holds(columns.tld[at], columns.drop_date[at], columns.release[at])
            })
    }
}

/// The best so many names offered, worst on top.
struct Best {
    heap: BinaryHeap<u64>,
    wanted: usize,
    total: u32,
}

impl Best {
    fn new(wanted: usize) -> Best {
        Best { heap: BinaryHeap::with_capacity(wanted.min(1024)), wanted, total: 0 }
    }

    /// Exact matches first, then by rank key, then by name: ordinals are in name order.
    #[inline]
    fn place(&mut self, exact: bool, key: u16, ordinal: u32) {
        let place = u64::from(!exact) << 48 | u64::from(key) << 32 | u64::from(ordinal);
        if self.heap.len() < self.wanted {
            self.heap.push(place);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && place < *worst
        {
            *worst = place;
        }
    }

    fn into_ranked(self, offset: usize) -> Ranked {
        let total = self.total.min(SEARCH_TOTAL_MAX + 1);
        let sorted = self.heap.into_sorted_vec();
        Ranked {
            ordinals: sorted.into_iter().skip(offset).map(|place| place as u32).collect(),
            total,
        }
    }
}

/// Walks the keys of an fst that start with a prefix.
struct AliasWalk<'a> {
    stream: fst::raw::Stream<'a>,
    prefix: Vec<u8>,
}

impl<'a> AliasWalk<'a> {
    fn new(fst: &'a OwnedFst, prefix: &[u8]) -> AliasWalk<'a> {
        AliasWalk { stream: fst.range().ge(prefix).into_stream(), prefix: prefix.to_vec() }
    }

    fn next(&mut self) -> Option<(&[u8], u32)> {
        let (key, output) = self.stream.next()?;
        key.starts_with(&self.prefix).then(|| (key, output.value() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_score_and_length() {
        for points in 0..=100 {
            let dqs = Dqs::new(points).expect("in range");
            for length in [1, 63] {
                let key = rank_key(dqs, length);
                assert_eq!((dqs_of(key), length_of(key)), (dqs, length));
            }
        }
        let dqs = |points| Dqs::new(points).expect("in range");
        assert!(rank_key(dqs(80), 9) < rank_key(dqs(79), 1));
        assert!(rank_key(dqs(80), 8) < rank_key(dqs(80), 9));
    }
}
