//! Searches with conditions that have no table: the names of a prefix, or all names, are examined
//! one by one. Input: the positions of the names that match the prefix, and the filter. Output:
//! ordinals of one page, best first, and the number of matches.
//!
//! Conditions on a drop are checked only for names that dropped: in bulk for a wide range, as in
//! the drops list, and one by one for a narrow one. All other conditions walk the names in order,
//! which decodes each label once; blocks without a passing score and length are skipped.

use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use crate::columns::checks::{DropChecks, NameChecks};
use crate::columns::idn::{self, Matches};
use crate::columns::label::TextTrail;
use crate::columns::name_grams::GramPlan;
use crate::columns::names::{NameBuf, VisitedName, text_of};
use crate::columns::needles::Needles;
use crate::columns::slices::has_doc;
use crate::filter::{DropFilter, SearchFilter, Sort, View};
use crate::query::index::{Layer, LayerDay, RowBuffers, with_row_buffers};
use crate::query::search::{SearchHits, TopHits, with_top_hits};
use crate::scorer::{Features, Scorer, Scratch, Spread, StoredScore};
use crate::vocab::budget;
use crate::vocab::name::A_LABEL;
use dropdex_query::filter::DropConditions;

/// Names between two checks of the time budget.
const NAMES_PER_LOOK: usize = 1 << 12;
/// Minimum number of names in a range for which compiling the texts takes less time than searching
/// for them one by one.
const MANY_NAMES: usize = if SMALL { 1 << 6 } else { 1 << 16 };
/// Names that one core examines before it takes the next piece.
const PIECE_NAMES: u32 = if SMALL { 1 << 9 } else { 1 << 16 };
/// The same number, used if grams leave only few names to examine.
const PIECE_NAMES_NARROWED: u32 = if SMALL { 1 << 10 } else { 1 << 20 };
/// Whether the limits are small, as in tests, so that small tables cover every path.
const SMALL: bool = cfg!(debug_assertions);
/// Minimum dropped names in a range for which the whole drops list is filtered at once.
const WIDE: usize = if SMALL { 1 << 6 } else { 1 << 12 };
/// Cost of scoring a name, as the number of names that are examined in the same time.
const NAMES_SCORED: usize = 64;

impl Layer {
    /// Returns a page of the names that pass `filter`.
    pub(super) fn scan(&self, filter: &SearchFilter, day: &LayerDay) -> SearchHits {
        let matches = match &filter.prefix {
            Some(prefix) => idn::matches(&self.names, &self.idn, prefix.as_str()),
            None => Matches { names: 0..self.names.len(), ..Matches::default() },
        };
        let view = filter.view.filter(|view| *view != View::All);
        let of_drops = view.is_some() || filter.common.drop != DropConditions::default();
        let mut name = NameChecks::new(&filter.common, &self.tlds);
        let is_wide = !of_drops && matches.names.len() > MANY_NAMES;
        if is_wide {
            name.expect_order(&filter.common);
        }
        let scan = Scan {
            index: self,
            day,
            name,
            needles: is_wide.then(|| Needles::new(&filter.common.label)).flatten(),
            grams: self
                .grams
                .as_ref()
                .filter(|_| is_wide)
                .and_then(|grams| grams.plan(&filter.common.label)),
            drop: of_drops.then(|| {
                DropChecks::new(self.drops_by_rank.columns(self.beside()), &filter.common)
            }),
            codes: view.map(View::code_mask),
            listed: (of_drops && self.drops_by_name.places(matches.names.clone()).len() >= WIDE)
                .then(|| {
                    let drops = DropFilter {
                        common: filter.common.clone(),
                        view: view.unwrap_or(View::All),
                        contains: None,
                        sort: Sort::default(),
                        sort_fact: None,
                        after: None,
                        limit: 0,
                        offset: 0,
                    };
                    self.matching(&drops, day).ok()
                })
                .flatten(),
        };
        with_top_hits(filter, |mut best| {
            if scan.drop.is_some() {
                scan.offer_drops(&matches, &mut best);
            } else {
                scan.offer_names(filter, &matches, &mut best);
            }
            scan.offer_others(&matches, &mut best);
            best.into_found(|ordinal| ordinal)
        })
    }
}

/// Number of consecutive names with the same non-matching prefix after which the remaining names
/// with that prefix are skipped. Finding the end of a prefix takes as long as reading several
/// names.
const DEAD_NAMES: u32 = 32;

/// A run of consecutive names that share a prefix with which no name matches.
#[derive(Default)]
struct Dead {
    prefix: Vec<u8>,
    names: u32,
}

impl Dead {
    /// Counts a name that did not match because of its first `len` bytes. Returns the prefix whose
    /// names the walk should skip, if any.
    fn prefix(&mut self, label: &[u8], len: Option<usize>) -> Option<&[u8]> {
        let prefix = &label[..len?];
        // A-labels are matched in their Unicode form, which may have any prefix.
        if A_LABEL.as_bytes().starts_with(prefix) {
            return None;
        }
        if prefix != self.prefix {
            prefix.clone_into(&mut self.prefix);
            self.names = 0;
        }
        self.names += 1;
        (self.names == DEAD_NAMES).then_some(self.prefix.as_slice())
    }
}

/// The matches that all pieces of a range have found so far.
struct Found {
    names: AtomicU32,
    /// Worst key that still changes the result.
    worst: AtomicU16,
}

/// The resolved filter of a search.
struct Scan<'a> {
    index: &'a Layer,
    day: &'a LayerDay,
    name: NameChecks,
    /// For a wide range, the texts that labels must contain, and the blocks with their grams.
    needles: Option<Needles>,
    grams: Option<GramPlan<'a>>,
    /// Conditions on a drop.
    drop: Option<DropChecks<'a>>,
    /// Mask of the stage codes of the view.
    codes: Option<u8>,
    /// For a wide range, the docs of the drops list that pass.
    listed: Option<Vec<u64>>,
}

impl Scan<'_> {
    /// Offers the dropped names in the range of the prefix.
    fn offer_drops(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let dropped = &self.index.drops_by_name;
        let places = dropped.places(matches.names.clone());
        let looks = places.clone().step_by(NAMES_PER_LOOK);
        for first in looks.take_while(|_| !budget::spent()) {
            for place in first..places.end.min(first + NAMES_PER_LOOK as u32) {
                let doc = dropped.doc(place);
                if self.doc_passes(doc) && self.index.shows_doc(doc) {
                    let ordinal = dropped.ordinal(place);
                    best.offer(matches.whole.contains(&ordinal), self.key(doc), ordinal);
                }
            }
        }
    }

    /// Offers all names in the range of the prefix, using all cores for a wide range.
    fn offer_names(&self, filter: &SearchFilter, matches: &Matches, best: &mut TopHits<'_>) {
        let so_far = Found { names: AtomicU32::new(0), worst: AtomicU16::new(u16::MAX) };
        let ranges = self.starting(filter, matches.names.clone());
        if ranges.iter().map(Range::len).sum::<usize>() <= PIECE_NAMES as usize {
            return ranges
                .into_iter()
                .for_each(|range| self.offer_piece(range, matches, &so_far, best));
        }
        let names = if self.grams.is_some() { PIECE_NAMES_NARROWED } else { PIECE_NAMES };
        let pieces = ranges.into_iter().flat_map(|Range { start, end }| {
            let firsts = (start..end).step_by(names as usize);
            firsts.map(move |first| first..end.min(first.saturating_add(names)))
        });
        let found = budget::on_all_cores(pieces.collect(), |piece| {
            with_top_hits(filter, |mut best| {
                self.offer_piece(piece, matches, &so_far, &mut best);
                best.into_parts()
            })
        });
        found.into_iter().for_each(|parts| best.absorb(parts));
    }

    /// Returns the ranges of `names`, in order, whose labels can start as the filter requires.
    fn starting(&self, filter: &SearchFilter, names: Range<u32>) -> Vec<Range<u32>> {
        let starts = &filter.common.label.starts;
        if starts.is_empty() {
            return vec![names];
        }
        // Texts refer to the Unicode form, which cannot be searched in A-labels.
        let texts = starts.iter().map(|text| text.as_str()).chain([A_LABEL]);
        let ranges = texts.map(|text| self.index.names.range(text.as_bytes()));
        let mut ranges: Vec<Range<u32>> = ranges
            .map(|range| range.start.max(names.start)..range.end.min(names.end))
            .filter(|range| !range.is_empty())
            .collect();
        ranges.sort_unstable_by_key(|range| range.start);
        // One text can be the start of another.
        ranges.dedup_by(|next, before| {
            let is_joined = next.start <= before.end;
            if is_joined {
                before.end = before.end.max(next.end);
            }
            is_joined
        });
        ranges
    }

    /// Offers the names of a piece.
    fn offer_piece(
        &self,
        names: Range<u32>,
        matches: &Matches,
        so_far: &Found,
        best: &mut TopHits<'_>,
    ) {
        let ranges = match &self.grams {
            _ if budget::spent() => return,
            Some(grams) => grams.candidates(names),
            None => vec![names],
        };
        let keys = self.index.ranks.keys();
        let mut scratch = Scratch::default();
        // Once there are more matches than are counted, only names that are better than the best
        // found so far in any piece are read.
        let worst = Cell::new(u16::MAX);
        let is_needed = |key: u16| key <= worst.get() && self.name.key_passes(key);
        let (looked, is_spent) = (Cell::new(0), Cell::new(false));
        let (mut dead, mut trail) = (Dead::default(), TextTrail::default());
        self.index.names.for_each(
            ranges,
            self.needles.as_ref(),
            |block| {
                looked.set(looked.get() + block.len());
                if looked.get() >= NAMES_PER_LOOK {
                    looked.set(0);
                    is_spent.set(budget::spent());
                }
                worst.set(so_far.worst.load(Ordering::Relaxed));
                let keys = &keys[block.start as usize..block.end as usize];
                // The compiler vectorises this loop over eight keys, but would not vectorise `any`.
                let best = keys.iter().fold(u16::MAX, |best, &key| best.min(key));
                !is_spent.get() && best <= worst.get() && keys.iter().any(|&key| is_needed(key))
            },
            |VisitedName { ordinal, label, shared, tld }| {
                let key = keys[ordinal as usize];
                trail.share(shared);
                if !is_needed(key) || !self.name.tld_passes(tld) || !self.index.shows_name(ordinal)
                {
                    return ControlFlow::Continue(ordinal + 1);
                }
                if self.name.label_passes_after(&mut trail, label) {
                    let label = text_of(label);
                    if self.name.spread_passes(|| self.index.names.label_range(label).len())
                        && self.traits_pass(ordinal, label, tld, &mut scratch, &looked)
                    {
                        best.offer(matches.whole.contains(&ordinal), key, ordinal);
                        let found = so_far.names.fetch_add(1, Ordering::Relaxed) + 1;
                        if matches.whole.is_empty() {
                            let needed = best.worst_needed(found);
                            worst
                                .set(needed.min(so_far.worst.fetch_min(needed, Ordering::Relaxed)));
                        }
                    }
                } else if let Some(prefix) = dead.prefix(label, trail.dead_after()) {
                    return ControlFlow::Continue(self.index.names.range(prefix).end);
                }
                ControlFlow::Continue(ordinal + 1)
            },
        );
    }

    /// Offers the names that match by their Unicode form.
    fn offer_others(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let aliases = self.index.idn.orders().ordinals;
        let of_aliases = matches
            .aliases
            .clone()
            .map(|place| (aliases[place as usize], matches.whole_aliases.contains(&place)));
        let (mut name, mut scratch) = (NameBuf::default(), Scratch::default());
        for (ordinal, whole) in of_aliases.chain(matches.others.iter().copied()) {
            if matches.names.contains(&ordinal) || !self.index.shows_name(ordinal) {
                continue;
            }
            let key = self.index.ranks.keys()[ordinal as usize];
            let passes = if self.drop.is_some() {
                let dropped = &self.index.drops_by_name;
                dropped.place(ordinal).is_some_and(|place| self.doc_passes(dropped.doc(place)))
            } else {
                self.index.names.read(ordinal, &mut name);
                self.name.key_passes(key)
                    && self.name_passes(name.label(), name.tld())
                    && self.traits_pass(
                        ordinal,
                        name.label(),
                        name.tld(),
                        &mut scratch,
                        &Cell::new(0),
                    )
            };
            if passes {
                best.offer(whole, key, ordinal);
            }
        }
    }

    fn doc_passes(&self, doc: u32) -> bool {
        // Names registered again are not on the drops list.
        if let Some(listed) = self.listed.as_ref().filter(|_| doc < self.index.drops_by_rank.len())
        {
            return has_doc(listed, doc);
        }
        let code = self.day.stages.code(doc);
        self.codes.is_none_or(|codes| code & codes != 0)
            && self.drop.as_ref().is_some_and(|checks| checks.passes(doc))
    }

    fn name_passes(&self, label: &str, tld: u16) -> bool {
        self.name.tld_passes(tld)
            && self.name.label_passes(label)
            && self.name.spread_passes(|| self.index.names.label_range(label).len())
    }

    /// Returns true if the traits that the scorer reads from a name pass. Features of a dropped
    /// name are stored; any other name is scored, and counts as [`NAMES_SCORED`] in `names`.
    fn traits_pass(
        &self,
        ordinal: u32,
        label: &str,
        tld: u16,
        scratch: &mut Scratch,
        names: &Cell<usize>,
    ) -> bool {
        let Some(test) = self.name.traits() else { return true };
        with_row_buffers(|RowBuffers { record, .. }| {
            let known = match self.index.drops_by_name.place(ordinal) {
                Some(place) => self.index.known(self.index.drops_by_name.doc(place), tld, record),
                None => {
                    names.set(names.get() + NAMES_SCORED);
                    let (tld, spread) = (self.index.tlds.name(tld), Spread::UNKNOWN);
                    StoredScore { label, tld, spread, features: Features::NONE }
                }
            };
            test.passes(known.label, &Scorer::shared().traits(known, scratch), &self.index.typos)
        })
    }

    fn key(&self, doc: u32) -> u16 {
        self.index.drops_by_rank.key(doc)
    }
}
