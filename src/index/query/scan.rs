//! Searches with conditions that no table answers: the names of a prefix, or all names, are looked at
//! one by one. In: the positions of the names that match the prefix, and the filter. Out: ordinals of
//! one page, best first, and the number of matches.
//!
//! Conditions on a drop are checked for the names that dropped alone, by column. All others walk the
//! names in order, which decodes each label once; blocks without a passing score and length are
//! skipped.

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::index::columns::checks::{DropChecks, NameChecks};
use crate::index::columns::idn::{self, Matches};
use crate::index::columns::label::TextTrail;
use crate::index::columns::names::{NameBuf, VisitedName};
use crate::index::filter::{SearchFilter, View};
use crate::index::query::index::{DayIndex, Index};
use crate::index::query::search::{SearchHits, TopHits, with_top_hits};
use crate::vocab::budget;
use crate::vocab::filter::DropConditions;

/// Names between two looks at the time budget.
const NAMES_PER_LOOK: usize = 1 << 12;

impl Index {
    /// Returns a page of the names that pass `filter`.
    pub(super) fn scan(&self, filter: &SearchFilter, day: &DayIndex) -> SearchHits {
        let matches = match &filter.prefix {
            Some(prefix) => idn::matches(&self.names, &self.idn, prefix.as_str()),
            None => Matches { names: 0..self.names.len(), ..Matches::default() },
        };
        let view = filter.view.filter(|view| *view != View::All);
        let of_drops = view.is_some() || filter.common.drop != DropConditions::default();
        let scan = Scan {
            index: self,
            day,
            name: NameChecks::new(&filter.common, &self.tlds),
            drop: of_drops.then(|| {
                let columns = self.drops_by_rank.columns(&self.records);
                DropChecks::new(columns, &filter.common, &self.tlds, day.as_of.today)
            }),
            codes: view.map(View::code_mask),
        };
        with_top_hits(filter, |mut best| {
            if scan.drop.is_some() {
                scan.offer_drops(&matches, &mut best);
            } else {
                scan.offer_names(&matches, &mut best);
            }
            scan.offer_others(&matches, &mut best);
            best.into_found(|ordinal| ordinal)
        })
    }
}

/// Prefix of an A-label.
const A_LABEL: &str = "xn--";
/// Names in a row with one prefix that no match has, after which the rest of them is skipped. Finding
/// the end of a prefix takes as long as reading some names.
const DEAD_NAMES: u32 = 32;

/// Names in a row that share a prefix that no match has.
#[derive(Default)]
struct Dead {
    prefix: String,
    names: u32,
}

impl Dead {
    /// Counts a name that did not match because of its first `len` bytes. Returns the prefix whose
    /// names are to be skipped.
    fn prefix(&mut self, label: &str, len: Option<usize>) -> Option<&str> {
        let prefix = &label[..len?];
        // A-labels are matched in Unicode, whatever they start with.
        if A_LABEL.starts_with(prefix) {
            return None;
        }
        if prefix != self.prefix {
            prefix.clone_into(&mut self.prefix);
            self.names = 0;
        }
        self.names += 1;
        (self.names == DEAD_NAMES).then_some(self.prefix.as_str())
    }
}

/// Filter of a search, resolved.
struct Scan<'a> {
    index: &'a Index,
    day: &'a DayIndex,
    name: NameChecks,
    /// Conditions on a drop.
    drop: Option<DropChecks<'a>>,
    /// Bits of the stage codes of the view.
    codes: Option<u8>,
}

impl Scan<'_> {
    /// Offers the dropped names in the range of the prefix.
    fn offer_drops(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let dropped = &self.index.drops_by_name;
        let places = dropped.places(matches.names.clone());
        let (first, last) = (places.start as usize, places.end as usize);
        let docs = dropped.docs()[first..last].chunks(NAMES_PER_LOOK);
        let mut place = places.start;
        for docs in docs.take_while(|_| !budget::spent()) {
            for (place, &doc) in (place..).zip(docs).filter(|(_, doc)| self.doc_passes(**doc)) {
                let ordinal = dropped.ordinal(place);
                best.offer(matches.whole.contains(&ordinal), self.key(doc), ordinal);
            }
            place += docs.len() as u32;
        }
    }

    /// Offers all names in the range of the prefix.
    fn offer_names(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let keys = self.index.ranks.keys();
        // Once there are more matches than are counted, only better ones than those found are read.
        let worst = Cell::new(u16::MAX);
        let is_needed = |key: u16| key <= worst.get() && self.name.key_passes(key);
        let (mut names, mut dead) = (0usize, Dead::default());
        let mut trail = TextTrail::default();
        self.index.names.for_each(
            matches.names.clone(),
            |block| {
                keys[block.start as usize..block.end as usize].iter().any(|&key| is_needed(key))
            },
            |VisitedName { ordinal, label, shared, tld }| {
                names += 1;
                if names.is_multiple_of(NAMES_PER_LOOK) && budget::spent() {
                    return ControlFlow::Break(());
                }
                let key = keys[ordinal as usize];
                trail.share(shared);
                if !is_needed(key) || !self.name.tld_passes(tld) {
                    return ControlFlow::Continue(ordinal + 1);
                }
                if self.name.label_passes_after(&mut trail, label) {
                    if self.name.spread_passes(|| self.index.names.label_range(label).len()) {
                        best.offer(matches.whole.contains(&ordinal), key, ordinal);
                        if matches.whole.is_empty() {
                            worst.set(best.worst_needed());
                        }
                    }
                } else if let Some(prefix) = dead.prefix(label, trail.dead_after()) {
                    return ControlFlow::Continue(self.index.names.range(prefix.as_bytes()).end);
                }
                ControlFlow::Continue(ordinal + 1)
            },
        );
    }

    /// Offers the names that match by their Unicode form.
    fn offer_others(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let aliases = self.index.idn.ordinals();
        let of_aliases = matches
            .aliases
            .clone()
            .map(|place| (aliases[place as usize], matches.whole_aliases.contains(&place)));
        let mut name = NameBuf::default();
        for (ordinal, whole) in of_aliases.chain(matches.others.iter().copied()) {
            if matches.names.contains(&ordinal) {
                continue;
            }
            let key = self.index.ranks.keys()[ordinal as usize];
            let passes = if self.drop.is_some() {
                let dropped = &self.index.drops_by_name;
                dropped.place(ordinal).is_some_and(|place| self.doc_passes(dropped.doc(place)))
            } else {
                self.index.names.read(ordinal, &mut name);
                self.name.key_passes(key) && self.name_passes(name.label(), name.tld())
            };
            if passes {
                best.offer(whole, key, ordinal);
            }
        }
    }

    fn doc_passes(&self, doc: u32) -> bool {
        let code = self.day.stages.by_doc()[doc as usize];
        self.codes.is_none_or(|codes| code & codes != 0)
            && self.drop.as_ref().is_some_and(|checks| checks.passes(doc))
    }

    fn name_passes(&self, label: &str, tld: u16) -> bool {
        self.name.tld_passes(tld)
            && self.name.label_passes(label)
            && self.name.spread_passes(|| self.index.names.label_range(label).len())
    }

    fn key(&self, doc: u32) -> u16 {
        self.index.drops_by_rank.keys()[doc as usize]
    }
}
