//! Rank keys in one order of names, with tables that let a query skip most of them.
//!
//! Input: a column of [`rank_key`](crate::columns::rank_key::rank_key)s by *place*, in an order in
//! which the matches of a query are one range of places. Output: the number of places of a range
//! that pass a [`KeyFilter`], and the best of them. The meaning of places is up to the caller.
//!
//! [`Tables`] hold the smallest key of every block of 256 places, and counts by score and width of
//! every superblock of 32,768 places. To count a wide range, superblocks are added up and the two
//! ends are scanned. The k-th best key is found by binary search over such sums; only blocks whose
//! smallest key is not worse than that key are then scanned.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::columns::rank_key::{ADULT, rank_key, within_score};
use crate::columns::slices::{docs_of, has_doc, set_doc};
use crate::error::{BuildError, GenerationError};
use crate::filter::Filter;
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::budget;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;
use dropdex_query::filter::Adult;

/// Key of a place that does not belong to a table.
pub const ABSENT: u16 = u16::MAX;

/// Places per block. The smallest key of each block is known.
const BLOCK: usize = 256;
/// Blocks per group; the smallest keys of groups are also known.
const GROUP: usize = 32;
/// Places per superblock: few enough for counts of 16 bits.
const SUPER: usize = 1 << 15;
/// Blocks per superblock.
const SUPER_BLOCKS: usize = SUPER / BLOCK;
/// Places that are tested together; a chunk without a match is skipped as a whole.
const LANES: usize = 32;
/// Number of scores, 0 to 100.
const ROWS: usize = 101;
/// Maximum widths of the classes that tables count. Most filters use one of these widths; for others, counts
/// are only bounds, and places are scanned.
const WIDTHS: [u8; 25] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24, 28, 36, 63, WIDEST];
/// Width of the longest adult name.
const WIDEST: u8 = ADULT as u8 + LABEL_CHARS_MAX;
const _: () = assert!(WIDTHS[ANY - 1] == LABEL_CHARS_MAX);
const CLASSES: usize = WIDTHS.len();
/// Class of all names.
const ANY: usize = CLASSES - 1;

/// Condition on a rank key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFilter {
    /// Worst key that passes.
    pub key_max: u16,
    /// Maximum width: the label length in characters, plus [`ADULT`] for an adult name. [`u8::MAX`] for any.
    pub width_max: u8,
}

impl KeyFilter {
    /// Takes score, length and adult names from a filter for which [`Filter::is_basic`] holds; TLDs are
    /// not part of keys.
    pub fn new(common: &Filter) -> KeyFilter {
        let width_max = match common.adult {
            Adult::Exclude => common.max_len.min(LABEL_CHARS_MAX),
            Adult::Include => u8::MAX,
        };
        KeyFilter { key_max: rank_key(common.min_dqs, u8::MAX), width_max }
    }

    /// Returns true if `key` passes.
    #[inline]
    pub fn passes(self, key: u16) -> bool {
        // Both sides of the condition are always evaluated, so that loops over this test have no
        // branch.
        (key <= self.key_max) & (within_score(key) <= self.width_max)
    }

    /// Returns the filter with its worst key limited to `key_max`.
    #[must_use]
    pub fn at_most(self, key_max: u16) -> KeyFilter {
        KeyFilter { key_max: self.key_max.min(key_max), ..self }
    }

    /// Returns true if every key passes.
    fn is_open(self) -> bool {
        self.key_max >= rank_key(Dqs::MIN, WIDEST) && self.width_max == u8::MAX
    }
}

/// Packs key and place into a number. The ascending order of these numbers is the order of the results.
#[inline]
pub fn hit(key: u16, place: u32) -> u64 {
    u64::from(key) << 32 | u64::from(place)
}

/// Returns the key of a [`hit`].
#[inline]
pub fn key_of(hit: u64) -> u16 {
    (hit >> 32) as u16
}

/// Treatment of places whose key equals that of the k-th best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// Only the first such places are kept, so that the result has `k` places.
    First,
    /// All such places are kept, for a caller that sorts names with equal keys in another order.
    All,
}

impl Ties {
    /// Keeps the `k` best of the hits that start at position `start`, unordered. [`Ties::All`] also keeps
    /// hits whose key equals that of the worst one kept.
    pub fn keep_best(self, hits: &mut Vec<u64>, start: usize, k: usize) {
        if k == 0 {
            hits.truncate(start);
        } else if hits.len() - start > k {
            let (_, &mut last, _) = hits[start..].select_nth_unstable(k - 1);
            let mut kept = start + k;
            if self == Ties::All {
                for at in start + k..hits.len() {
                    hits.swap(kept, at);
                    kept += usize::from(key_of(hits[kept]) == key_of(last));
                }
            }
            hits.truncate(kept);
        }
    }
}

/// Columns that decide whether a place passes.
pub trait Column: Copy {
    /// Returns the number of `places` that pass.
    fn count(&self, places: Range<usize>, filter: KeyFilter) -> u32;
    /// Appends a [`hit`] for each passing place of `places`, in order.
    fn collect(&self, places: Range<usize>, filter: KeyFilter, hits: &mut Vec<u64>);
    /// Returns true if every place is known to pass.
    fn all_pass(&self, _filter: KeyFilter) -> bool {
        false
    }
}

/// The keys of the places that are not hidden.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a> {
    pub keys: &'a [u16],
    /// Bitmap of the hidden places, of which there are few; empty if no place is hidden.
    pub hidden: &'a [u64],
}

impl Column for Visible<'_> {
    fn count(&self, places: Range<usize>, filter: KeyFilter) -> u32 {
        // A chunk's count fits into 16 bits, so eight lanes are added at a time.
        let passing = |keys: &[u16]| keys.iter().map(|&key| u16::from(filter.passes(key))).sum();
        let chunks = self.keys[places.clone()].chunks(SUPER);
        let all = chunks.map(|keys| -> u32 { u16::into(passing(keys)) }).sum();
        if self.hidden.is_empty() || places.is_empty() {
            return all;
        }
        let words = places.start / 64..places.end.div_ceil(64);
        let mut hidden = 0;
        docs_of(words.start, &self.hidden[words.clone()], |place| {
            let place = place as usize;
            hidden += u32::from(places.contains(&place) && filter.passes(self.keys[place]));
        });
        all - hidden
    }

    fn collect(&self, places: Range<usize>, filter: KeyFilter, hits: &mut Vec<u64>) {
        let start = hits.len();
        let mut place = places.start as u32;
        let (chunks, rest) = self.keys[places].as_chunks::<LANES>();
        for keys in chunks {
            push_passing(keys, place, keys.map(|key| u8::from(filter.passes(key))), hits);
            place += LANES as u32;
        }
        let found = (place..).zip(rest).filter(|&(_, &key)| filter.passes(key));
        hits.extend(found.map(|(place, &key)| hit(key, place)));
        if self.hidden.is_empty() {
            return;
        }
        let mut kept = start;
        for at in start..hits.len() {
            hits[kept] = hits[at];
            kept += usize::from(!has_doc(self.hidden, hits[at] as u32));
        }
        hits.truncate(kept);
    }

    fn all_pass(&self, filter: KeyFilter) -> bool {
        self.hidden.is_empty() && filter.is_open()
    }
}

/// Keys and stage codes; a passing code has a bit of `mask`.
#[derive(Clone, Copy, Debug)]
pub struct Coded<'a> {
    pub keys: &'a [u16],
    pub codes: &'a [u8],
    pub mask: u8,
}

impl Coded<'_> {
    #[inline]
    fn passes(self, key: u16, code: u8, filter: KeyFilter) -> bool {
        filter.passes(key) & (code & self.mask != 0)
    }
}

impl Column for Coded<'_> {
    fn count(&self, places: Range<usize>, filter: KeyFilter) -> u32 {
        let keys = self.keys[places.clone()].chunks(SUPER);
        let codes = self.codes[places].chunks(SUPER);
        let passing = |(&key, &code): (&u16, &u8)| u16::from(self.passes(key, code, filter));
        let counts = keys.zip(codes).map(|(keys, codes)| keys.iter().zip(codes).map(passing).sum());
        counts.map(|count: u16| u32::from(count)).sum()
    }

    fn collect(&self, places: Range<usize>, filter: KeyFilter, hits: &mut Vec<u64>) {
        let mut place = places.start as u32;
        let (chunks, rest) = self.keys[places.clone()].as_chunks::<LANES>();
        let (code_chunks, rest_codes) = self.codes[places].as_chunks::<LANES>();
        for (keys, codes) in chunks.iter().zip(code_chunks) {
            let passing = |at: usize| u8::from(self.passes(keys[at], codes[at], filter));
            push_passing(keys, place, std::array::from_fn(passing), hits);
            place += LANES as u32;
        }
        let rows = (place..).zip(rest.iter().zip(rest_codes));
        let found = rows.filter(|&(_, (&key, &code))| self.passes(key, code, filter));
        hits.extend(found.map(|(place, (&key, _))| hit(key, place)));
    }
}

/// Appends a [`hit`] for each place whose entry in `passing` is 1; `place` is the place of the
/// first entry.
#[inline]
fn push_passing(keys: &[u16; LANES], place: u32, passing: [u8; LANES], hits: &mut Vec<u64>) {
    let (words, _) = passing.as_chunks::<8>();
    for (eight, &word) in words.iter().enumerate() {
        let mut left = u64::from_le_bytes(word);
        while left != 0 {
            let at = eight * 8 + left.trailing_zeros() as usize / 8;
            hits.push(hit(keys[at], place + at as u32));
            left &= left - 1;
        }
    }
}

/// Returns the smallest class that holds all names up to `width`.
fn class_around(width: u8) -> usize {
    WIDTHS.partition_point(|&limit| limit < width).min(ANY)
}

/// Returns the largest class without names above `width`; `None` for width 0.
fn class_within(width: u8) -> Option<usize> {
    WIDTHS.partition_point(|&limit| limit <= width).checked_sub(1)
}

/// Returns true if a class holds exactly the names up to `width`.
fn is_exact(width: u8) -> bool {
    // No name has a width between these.
    let no_adult = LABEL_CHARS_MAX..=ADULT as u8;
    width >= WIDEST || no_adult.contains(&width) || WIDTHS.binary_search(&width).is_ok()
}

/// Smallest keys and counts of an order.
#[derive(Debug, Default)]
pub struct Tables {
    /// Number of places.
    len: usize,
    /// Smallest key by class, then by block; [`ABSENT`] for a block without keys.
    minima: Vec<u16>,
    /// Smallest keys by class, then group of blocks.
    group_minima: Vec<u16>,
    /// Number of names with a row (100 - score) or a better row, by class, row and complete
    /// superblock.
    counts: Vec<u16>,
}

impl Tables {
    /// Builds the tables of `len` places; `key_of` returns the key of a place, or [`ABSENT`].
    pub fn new(len: usize, key_of: impl Fn(usize) -> u16) -> Tables {
        let blocks = len.div_ceil(BLOCK);
        let supers = len / SUPER;
        let mut tables = Tables {
            len,
            minima: vec![ABSENT; CLASSES * blocks],
            group_minima: Vec::new(),
            counts: vec![0; CLASSES * ROWS * supers],
        };
        let class_of: [u8; 256] = std::array::from_fn(|width| class_around(width as u8) as u8);
        let mut counts = [[0u16; CLASSES]; ROWS];
        for block in 0..blocks {
            let mut minima = [ABSENT; CLASSES];
            let end = (block + 1) * BLOCK;
            for place in block * BLOCK..len.min(end) {
                let key = key_of(place);
                if key != ABSENT {
                    let class = usize::from(class_of[usize::from(within_score(key))]);
                    minima[class] = minima[class].min(key);
                    counts[row_of(key)][class] += 1;
                }
            }
            tables.put_minima(block, &minima);
            // An incomplete last superblock is always scanned.
            if end.is_multiple_of(SUPER) && end <= len {
                tables.put_counts(block / SUPER_BLOCKS, &mut counts);
            }
        }
        tables.group_minima = tables.grouped();
        tables
    }

    /// Stores the smallest keys of a block, accumulated over the widths.
    fn put_minima(&mut self, block: usize, minima: &[u16; CLASSES]) {
        let blocks = self.blocks();
        let mut smallest = ABSENT;
        for (class, &key) in minima.iter().enumerate() {
            smallest = smallest.min(key);
            self.minima[class * blocks + block] = smallest;
        }
    }

    /// Stores the counts of a superblock, accumulated over scores and widths, and resets `counts`.
    fn put_counts(&mut self, at: usize, counts: &mut [[u16; CLASSES]; ROWS]) {
        let supers = self.supers();
        let mut above = [0; CLASSES];
        for (row, counts) in counts.iter_mut().enumerate() {
            let mut shorter = 0;
            for (class, count) in counts.iter_mut().enumerate() {
                shorter += std::mem::take(count);
                above[class] += shorter;
                self.counts[(class * ROWS + row) * supers + at] = above[class];
            }
        }
    }

    /// Returns the smallest keys of groups.
    fn grouped(&self) -> Vec<u16> {
        let smallest = |keys: &[u16]| keys.iter().copied().min().unwrap_or(ABSENT);
        let classes = self.minima.chunks(self.blocks().max(1));
        classes.flat_map(|class| class.chunks(GROUP).map(smallest)).collect()
    }

    fn blocks(&self) -> usize {
        self.len.div_ceil(BLOCK)
    }

    fn supers(&self) -> usize {
        self.len / SUPER
    }

    /// Returns the number of names of `class` in complete superblocks with `row` or a better one.
    fn names_to_row(&self, supers: &Range<usize>, class: usize, row: usize) -> u32 {
        let first = (class * ROWS + row) * self.supers();
        let counts = &self.counts[first + supers.start..first + supers.end];
        counts.iter().map(|&count| u32::from(count)).sum()
    }

    /// Returns the number of names of `class` in complete superblocks with `row`.
    fn names_in_row(&self, supers: &Range<usize>, class: usize, row: usize) -> u32 {
        let better = row.checked_sub(1).map_or(0, |row| self.names_to_row(supers, class, row));
        self.names_to_row(supers, class, row) - better
    }

    /// Returns the number of names in complete superblocks that pass; a lower bound if no class
    /// matches the maximum width.
    fn names_passing(&self, supers: &Range<usize>, filter: KeyFilter) -> u32 {
        let Some(class) = class_within(filter.width_max) else { return 0 };
        let row = row_of(filter.key_max);
        let better = row.checked_sub(1).map_or(0, |row| self.names_to_row(supers, class, row));
        let within = class_within(within_score(filter.key_max));
        let same = within.map_or(0, |it| self.names_in_row(supers, class.min(it), row));
        better + same
    }

    /// Returns a key that at least `k` passing names in complete superblocks reach or exceed; the
    /// worst key of the filter if there are fewer than `k`.
    fn kth_key(&self, supers: &Range<usize>, filter: KeyFilter, k: u32) -> u16 {
        let Some(class) = class_within(filter.width_max) else { return filter.key_max };
        let rows = row_of(filter.key_max) + 1;
        let row = first_where(rows, |row| self.names_to_row(supers, class, row) >= k);
        if row == rows {
            return filter.key_max;
        }
        let better = row.checked_sub(1).map_or(0, |row| self.names_to_row(supers, class, row));
        let within = |it| better + self.names_in_row(supers, it, row) >= k;
        let class = first_where(class, within);
        filter.key_max.min((row as u16) << 8 | u16::from(WIDTHS[class]))
    }

    /// Calls `visit`, in order, with the blocks of `places` in which a name of `class` may have a
    /// key up to `key_max`. `visit` returns the new worst key, or `None` to stop.
    fn walk(
        &self,
        places: Range<usize>,
        class: usize,
        mut key_max: u16,
        mut visit: impl FnMut(Range<usize>) -> Option<u16>,
    ) {
        let (blocks, groups) = (self.blocks(), self.blocks().div_ceil(GROUP));
        let minima = &self.minima[class * blocks..][..blocks];
        let group_minima = &self.group_minima[class * groups..][..groups];
        let (first, end) = (places.start / BLOCK, places.end.div_ceil(BLOCK));
        let mut block = first;
        while block < end {
            let group = block / GROUP;
            let group_end = end.min((group + 1) * GROUP);
            if group_minima[group] > key_max {
                block = group_end;
                continue;
            }
            if budget::spent() {
                return;
            }
            for (at, &minimum) in (block..).zip(&minima[block..group_end]) {
                if minimum <= key_max {
                    let start = places.start.max(at * BLOCK);
                    let Some(worst) = visit(start..places.end.min((at + 1) * BLOCK)) else {
                        return;
                    };
                    key_max = worst;
                }
            }
            block = group_end;
        }
    }

    /// Like [`Tables::kth_key`], for a range of blocks narrower than a superblock.
    fn kth_minimum(&self, blocks: Range<usize>, filter: KeyFilter, k: usize) -> u16 {
        let class = class_within(filter.width_max);
        let Some(class) = class.filter(|_| k > 0 && blocks.len() >= k) else {
            return filter.key_max;
        };
        let first = class * self.blocks();
        let mut smallest = [ABSENT; 2 * SUPER_BLOCKS];
        let found = &mut smallest[..blocks.len()];
        found.copy_from_slice(&self.minima[first + blocks.start..first + blocks.end]);
        let (_, &mut kth, _) = found.select_nth_unstable(k - 1);
        filter.key_max.min(kth)
    }

    /// Writes files whose names start with `name`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, name: &str, draft: &Draft) -> Result<(), BuildError> {
        draft.put(&format!("{name}.minima"), &self.minima)?;
        draft.put(&format!("{name}.counts"), &self.counts)
    }

    /// Opens the tables of `len` places that [`Tables::write`] wrote.
    ///
    /// # Errors
    /// A file is damaged, or does not hold `len` places.
    pub fn open(name: &str, len: usize, files: &Files) -> Result<Tables, GenerationError> {
        let (minima_name, counts_name) = (format!("{name}.minima"), format!("{name}.counts"));
        let minima = files.take(&minima_name)?;
        let counts = files.take(&counts_name)?;
        let mut tables = Tables { len, minima, group_minima: Vec::new(), counts };
        files.check(tables.minima.len() == CLASSES * tables.blocks(), &minima_name)?;
        files.check(tables.counts.len() == CLASSES * ROWS * tables.supers(), &counts_name)?;
        tables.group_minima = tables.grouped();
        Ok(tables)
    }
}

/// Returns 100 - score of a key.
fn row_of(key: u16) -> usize {
    usize::from(key >> 8).min(ROWS - 1)
}

/// Returns the first number below `end` from which on `holds` is true, or else `end`.
pub fn first_where(end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, end);
    while from < to {
        let middle = from.midpoint(to);
        if holds(middle) { to = middle } else { from = middle + 1 }
    }
    from
}

/// An order to query: its column, and the tables of the places that can match.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a, C> {
    pub column: C,
    pub tables: &'a Tables,
}

impl<C: Column> Order<'_, C> {
    /// Returns the number of `places` that pass: exact up to `cap`, and otherwise some number above
    /// `cap`.
    pub fn count(&self, places: Range<u32>, filter: KeyFilter, cap: u32) -> u32 {
        if self.column.all_pass(filter) {
            return places.len() as u32;
        }
        let places = places.start as usize..places.end as usize;
        let supers = places.start.div_ceil(SUPER)..places.end / SUPER;
        if supers.is_empty() {
            return self.count_by_looking(places, filter, cap);
        }
        let inner = self.tables.names_passing(&supers, filter);
        if inner > cap {
            return inner;
        }
        if !(is_exact(filter.width_max) && is_exact(within_score(filter.key_max))) {
            return self.count_by_looking(places, filter, cap);
        }
        let before = places.start..supers.start * SUPER;
        let after = supers.end * SUPER..places.end;
        let found = inner + self.count_by_looking(before, filter, cap - inner);
        if found > cap {
            return found;
        }
        found + self.count_by_looking(after, filter, cap - found)
    }

    fn count_by_looking(&self, places: Range<usize>, filter: KeyFilter, cap: u32) -> u32 {
        let mut found = 0;
        self.tables.walk(places, class_around(filter.width_max), filter.key_max, |places| {
            found += self.column.count(places, filter);
            (found <= cap).then_some(filter.key_max)
        });
        found
    }

    /// Appends the `k` best of `places` that pass, by key and place, as unordered [`hit`]s.
    pub fn best(
        &self,
        places: Range<u32>,
        filter: KeyFilter,
        k: usize,
        ties: Ties,
        hits: &mut Vec<u64>,
    ) {
        let places = places.start as usize..places.end as usize;
        if k == 0 || places.is_empty() {
            return;
        }
        let mut wanted = filter.at_most(self.bound(&places, filter, k));
        let start = hits.len();
        // In a wide range, the key of many places equals the bound, but only the first of them are
        // needed.
        let mut room = start + k;
        self.tables.walk(places, class_around(filter.width_max), wanted.key_max, |places| {
            self.column.collect(places, wanted, hits);
            if hits.len() >= room {
                ties.keep_best(hits, start, k);
                let worst = hits[start..].iter().copied().max().map_or(0, key_of);
                wanted.key_max = match ties {
                    // A later place with the same key sorts after it.
                    Ties::First => worst.checked_sub(1)?,
                    Ties::All => worst,
                };
                let kept = hits.len() - start;
                room = start + kept + kept / 2 + LANES;
            }
            Some(wanted.key_max)
        });
        ties.keep_best(hits, start, k);
    }

    /// Returns a key that is not better than the `k`-th best key.
    fn bound(&self, places: &Range<usize>, filter: KeyFilter, k: usize) -> u16 {
        let supers = places.start.div_ceil(SUPER)..places.end / SUPER;
        if !supers.is_empty() {
            return self.tables.kth_key(&supers, filter, u32::try_from(k).unwrap_or(u32::MAX));
        }
        let blocks = places.start.div_ceil(BLOCK)..places.end / BLOCK;
        match blocks.len().cmp(&k) {
            Ordering::Less if places.len() > 2 * k => self.kth_row(places, filter, k),
            Ordering::Less => filter.key_max,
            _ => self.tables.kth_minimum(blocks, filter, k),
        }
    }

    /// Finds the bound by counting, which is the cheapest way for deep pages of narrow ranges.
    fn kth_row(&self, places: &Range<usize>, filter: KeyFilter, k: usize) -> u16 {
        let key_of = |row: usize| (row as u16) << 8 | 0xff;
        let row = first_where(row_of(filter.key_max), |row| {
            self.column.count(places.clone(), filter.at_most(key_of(row))) as usize >= k
        });
        filter.key_max.min(key_of(row))
    }
}

/// Keys of an order, with their tables.
#[derive(Debug, Default)]
pub struct RankTable {
    keys: Arc<Vec<u16>>,
    tables: Tables,
}

impl RankTable {
    /// Builds the tables of keys by place.
    pub fn new(keys: Vec<u16>) -> RankTable {
        let tables = Tables::new(keys.len(), |place| keys[place]);
        RankTable { keys: Arc::new(keys), tables }
    }

    /// Writes files whose names start with `name`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, name: &str, draft: &Draft) -> Result<(), BuildError> {
        draft.put(&format!("{name}.keys"), self.keys.as_slice())?;
        self.tables.write(name, draft)
    }

    /// Opens the files that [`RankTable::write`] wrote.
    ///
    /// # Errors
    /// A file is damaged, or the files do not match.
    pub fn open(name: &str, files: &Files) -> Result<RankTable, GenerationError> {
        let keys: Vec<u16> = files.take(&format!("{name}.keys"))?;
        let tables = Tables::open(name, keys.len(), files)?;
        Ok(RankTable { keys: Arc::new(keys), tables })
    }

    /// Returns the number of places.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the keys by place.
    pub fn keys(&self) -> &[u16] {
        &self.keys
    }

    /// Returns the shared keys by place, for another order of the same places.
    pub fn shared_keys(&self) -> Arc<Vec<u16>> {
        Arc::clone(&self.keys)
    }

    /// Returns the order of the places that `hidden` leaves visible.
    pub fn order<'a>(&'a self, hidden: Option<&'a HiddenPlaces>) -> Order<'a, Visible<'a>> {
        let keys = self.keys.as_slice();
        match hidden {
            None => Order { column: Visible { keys, hidden: &[] }, tables: &self.tables },
            Some(HiddenPlaces { bits, tables }) => {
                Order { column: Visible { keys, hidden: bits }, tables }
            }
        }
    }
}

/// Places that an order omits, and the tables of the other places.
#[derive(Debug)]
pub struct HiddenPlaces {
    /// Bitmap of the omitted places.
    bits: Vec<u64>,
    tables: Tables,
}

impl HiddenPlaces {
    /// Hides `places` of `table`.
    pub fn new(table: &RankTable, places: impl IntoIterator<Item = u32>) -> HiddenPlaces {
        let mut bits = vec![0; table.len().div_ceil(64)];
        places.into_iter().for_each(|place| set_doc(&mut bits, place));
        HiddenPlaces::of_bits(table, bits)
    }

    /// Hides the places of a bitmap.
    pub fn of_bits(table: &RankTable, bits: Vec<u64>) -> HiddenPlaces {
        let key = |at: usize| if has_doc(&bits, at as u32) { ABSENT } else { table.keys[at] };
        let tables = Tables::new(table.len(), key);
        HiddenPlaces { bits, tables }
    }

    /// Hides the places that either of them hides.
    pub fn either(table: &RankTable, one: &HiddenPlaces, other: &HiddenPlaces) -> HiddenPlaces {
        let bits = one.bits.iter().zip(&other.bits).map(|(one, other)| one | other);
        HiddenPlaces::of_bits(table, bits.collect())
    }

    /// Returns true if a place is hidden.
    #[inline]
    pub fn has(&self, place: u32) -> bool {
        has_doc(&self.bits, place)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A generator of pseudorandom numbers, the same in every run.
    pub struct Random(pub u64);

    impl Random {
        pub fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// Returns a number below `end`, which is not 0.
        pub fn below(&mut self, end: u32) -> u32 {
            ((self.next() >> 32) % u64::from(end)) as u32
        }

        /// Returns a typical key: scores around 30, few above 80, lengths around 11.
        pub fn key(&mut self) -> u16 {
            let dqs: u32 = (0..4).map(|_| self.below(17)).sum::<u32>();
            let lucky = if self.below(50) == 0 { self.below(50) } else { 0 };
            let length = 1 + self.below(8) + self.below(8) + self.below(8);
            let long = if self.below(30) == 0 { self.below(40) } else { 0 };
            let dqs = Dqs::clamped((dqs + lucky) as i32);
            let adult = if self.below(20) == 0 { ADULT } else { 0 };
            rank_key(dqs, (length + long).min(63) as u8) | adult
        }

        pub fn keys(&mut self, len: usize) -> Vec<u16> {
            (0..len).map(|_| self.key()).collect()
        }

        pub fn range(&mut self, len: u32) -> Range<u32> {
            let (a, b) = (self.below(len + 1), self.below(len + 1));
            a.min(b)..a.max(b)
        }

        pub fn filter(&mut self) -> KeyFilter {
            let (min_dqs, max_len) = (self.below(101) as u8, 1 + self.below(63) as u8);
            let common = Filter {
                min_dqs: Dqs::new(if self.below(3) == 0 { 0 } else { min_dqs }).expect("in range"),
                max_len: if self.below(3) == 0 { 63 } else { max_len },
                ..Filter::default()
            };
            let all = Filter { max_len: 63, adult: Adult::Include, ..common.clone() };
            let common = if self.below(4) == 0 { all } else { common };
            let filter = KeyFilter::new(&common);
            if self.below(4) == 0 { filter.at_most(self.key()) } else { filter }
        }
    }

    /// Keys that count their reads.
    #[derive(Clone, Copy)]
    struct Counted<'a> {
        keys: Visible<'a>,
        reads: &'a std::cell::Cell<usize>,
    }

    impl Column for Counted<'_> {
        fn count(&self, places: Range<usize>, filter: KeyFilter) -> u32 {
            self.keys.count(places, filter)
        }

        fn collect(&self, places: Range<usize>, filter: KeyFilter, hits: &mut Vec<u64>) {
            self.reads.set(self.reads.get() + 1);
            self.keys.collect(places, filter, hits);
        }
    }

    /// In a range that is ten times as wide, ten times as many names have the key of the last row
    /// on the page.
    #[test]
    fn a_page_of_a_wide_range_reads_few_blocks() {
        let mut random = Random(11);
        let keys: Vec<u16> = (0..1 << 21).map(|_| random.key() / 512 * 512 + 7).collect();
        let tables = Tables::new(keys.len(), |place| keys[place]);
        let reads = std::cell::Cell::new(0);
        let visible = Visible { keys: &keys, hidden: &[] };
        let order = Order { column: Counted { keys: visible, reads: &reads }, tables: &tables };
        let open = KeyFilter { key_max: u16::MAX, width_max: u8::MAX };
        for width in [1 << 17, 1 << 21] {
            for k in [1, 20, 100] {
                let mut hits = Vec::new();
                reads.set(0);
                order.best(0..width, open, k, Ties::First, &mut hits);
                hits.sort_unstable();
                let expected = slow(0..width, open, |place| Some(keys[place]));
                assert_eq!(hits, expected[..k], "{k} of {width}");
                assert!(reads.get() <= 2 * k + 20, "{} blocks for {k} of {width}", reads.get());
            }
        }
    }

    /// Returns the hits of a range, best first, by a scan.
    pub fn slow(
        places: Range<u32>,
        filter: KeyFilter,
        key_of: impl Fn(usize) -> Option<u16>,
    ) -> Vec<u64> {
        let keys = places.filter_map(|place| Some((key_of(place as usize)?, place)));
        let passing = keys.filter(|&(key, _)| filter.passes(key));
        let mut hits: Vec<u64> = passing.map(|(key, place)| hit(key, place)).collect();
        hits.sort_unstable();
        hits
    }

    /// Compares one result with that of the scan.
    fn check<C: Column>(order: Order<'_, C>, places: Range<u32>, filter: KeyFilter, slow: &[u64]) {
        for cap in [0, 7, 1_000, u32::MAX] {
            let found = order.count(places.clone(), filter, cap);
            let expected = slow.len() as u32;
            assert_eq!(found.min(cap.saturating_add(1)), expected.min(cap.saturating_add(1)));
        }
        for k in [0, 1, 20, 300, 10_100] {
            // Earlier content is kept.
            let mut hits = vec![u64::MAX];
            order.best(places.clone(), filter, k, Ties::First, &mut hits);
            assert_eq!(hits.remove(0), u64::MAX);
            hits.sort_unstable();
            assert_eq!(hits, slow[..k.min(slow.len())], "{places:?} {filter:?} {k}");
            hits.clear();
            order.best(places.clone(), filter, k, Ties::All, &mut hits);
            hits.sort_unstable();
            let tied =
                slow.iter().skip(k).take_while(|hit| k > 0 && key_of(**hit) == key_of(slow[k - 1]));
            let expected = k.min(slow.len()) + tied.count();
            assert_eq!(hits, slow[..expected], "{places:?} {filter:?} {k}, with ties");
        }
    }

    /// Returns ranges with ends at and next to the boundaries of blocks, groups and superblocks.
    fn ranges(random: &mut Random, len: u32) -> Vec<Range<u32>> {
        let borders = [0, BLOCK, BLOCK * GROUP, SUPER, 2 * SUPER, len as usize];
        let near = |border: usize| [border.saturating_sub(1), border, border + 1];
        let ends: Vec<u32> = borders.into_iter().flat_map(near).map(|end| end as u32).collect();
        let mut end = || ends[random.below(ends.len() as u32) as usize].min(len);
        let mut ranges: Vec<Range<u32>> =
            (0..12).map(|_| (end(), end())).map(|(a, b)| a.min(b)..a.max(b)).collect();
        ranges.extend((0..12).map(|_| random.range(len)));
        ranges.push(0..len);
        ranges
    }

    const SIZES: [usize; 9] =
        [0, 1, 255, 256, 257, SUPER - 1, SUPER, 3 * SUPER + 77, 5 * SUPER + BLOCK];

    #[test]
    fn results_are_those_of_a_scan() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for len in SIZES {
            let ranked = RankTable::new(random.keys(len));
            for places in ranges(&mut random, len as u32) {
                let filter = random.filter();
                let slow = slow(places.clone(), filter, |place| Some(ranked.keys[place]));
                check(ranked.order(None), places, filter, &slow);
            }
        }
    }

    #[test]
    fn stage_codes_filter_places() {
        let mut random = Random(77);
        for len in SIZES {
            let keys = random.keys(len);
            let codes: Vec<u8> = (0..len).map(|_| 1 << random.below(5)).collect();
            for mask in [1, 6, 16, 32] {
                let among = |place: usize| codes[place] & mask != 0;
                let tables =
                    Tables::new(len, |place| if among(place) { keys[place] } else { ABSENT });
                let column = Coded { keys: &keys, codes: &codes, mask };
                for places in ranges(&mut random, len as u32).into_iter().step_by(4) {
                    let filter = random.filter();
                    let slow = slow(places.clone(), filter, |at| among(at).then(|| keys[at]));
                    check(Order { column, tables: &tables }, places, filter, &slow);
                }
            }
        }
    }

    /// In a column with a single key, all places are equally good, so the first ones are the best.
    #[test]
    fn ties_are_ordered_by_place() {
        let len = 2 * SUPER as u32 + 1_000;
        let key = rank_key(Dqs::MAX, 1);
        let ranked = RankTable::new(vec![key; len as usize]);
        let open = KeyFilter::new(&Filter::open());
        let mut hits = Vec::new();
        ranked.order(None).best(100..len - 5, open, 400, Ties::First, &mut hits);
        hits.sort_unstable();
        assert_eq!(hits, (100..500).map(|place| hit(key, place)).collect::<Vec<u64>>());
        let order = ranked.order(None);
        assert_eq!(order.count(100..len - 5, open, 10_000), len - 105);
        assert_eq!(order.count(100..len - 5, open.at_most(key - 1), 10_000), 0);
    }
}
