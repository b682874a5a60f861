//! Search queries: picks the order for a query, and builds the page from its matches.
//!
//! Input: the positions of names that match a prefix ([`Matches`]), and the filter. Output:
//! ordinals of one page, best first, and the number of matches. The text of names is not read.
//!
//! Results are sorted: whole matches first, then by rank key, then by ordinal. In each of four
//! orders the matches are a single range: all names, all names by TLD, dropped names, dropped names
//! by TLD. Names that match by their Unicode form are also a range, in the same four orders of
//! these forms.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use crate::columns::by_tld::ByTld;
use crate::columns::drops_by_name::{DropsByName, StagedDrops};
use crate::columns::hidden::Hidden;
use crate::columns::idn::{self, IdnOrders, Matches};
use crate::columns::names::NameBuf;
use crate::columns::rank_table::{Column, HiddenPlaces, KeyFilter, Order, RankTable, Ties, key_of};
use crate::columns::tlds::Tlds;
use crate::filter::{AsOf, SearchFilter, View};
use crate::query::index::{
    Contains, Index, Layer, LayerDay, NameRow, RowBuffers, with_row_buffers,
};
use crate::query::merge::merged;
use crate::query::rows::{LatestDrop, Lifecycle, SearchRow};
use crate::scorer::Scorer;
use crate::vocab::budget;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::SEARCH_TOTAL_MAX;
use crate::vocab::name::to_unicode;
use dropdex_query::narrow::{self, Scope};

/// Columns that a search reads.
#[derive(Clone, Copy)]
pub struct SearchColumns<'a> {
    /// All names by ordinal.
    pub names: &'a RankTable,
    /// All names by TLD.
    pub by_tld: &'a ByTld,
    /// Dropped names.
    pub dropped: &'a DropsByName,
    /// Names with an A-label.
    pub idn: IdnOrders<'a>,
    /// Names that a search must omit.
    pub hidden: Option<&'a Hidden>,
}

/// One page of matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchHits {
    /// Ordinals, best first.
    pub hits: Vec<SearchHit>,
    /// Number of matches: exact up to [`SEARCH_TOTAL_MAX`], one more above it.
    pub total: u32,
}

/// A match. Matches sort like results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchHit {
    /// Whether only a part matches.
    pub is_part: bool,
    /// Rank key.
    pub key: u16,
    pub ordinal: u32,
}

/// Page of search results. The page holds ordinals; rows are built when they are visited.
pub struct SearchPage<'a> {
    /// Number of matches, up to [`SEARCH_TOTAL_MAX`].
    pub total: u32,
    /// Whether there are more than `total`.
    pub capped: bool,
    index: &'a Index,
    as_of: AsOf,
    /// Ordinals among the names of all layers, best first.
    ordinals: Vec<u32>,
}

impl SearchPage<'_> {
    /// Returns the number of rows on the page.
    pub fn count(&self) -> u32 {
        self.ordinals.len() as u32
    }

    /// Calls `visit` with each row, in order.
    pub fn for_each(&self, mut visit: impl FnMut(&SearchRow<'_>)) {
        self.visit(|row, _| visit(row));
    }

    /// Calls `visit` with each row, its score (dropped or not) and its lifecycle if it ever
    /// dropped, in order.
    pub fn for_each_placed(&self, mut visit: impl FnMut(&SearchRow<'_>, Dqs, Option<Lifecycle>)) {
        self.visit(|row, (layer, facts)| {
            let lifecycle = |drop| layer.lifecycle(facts.tld, &drop, self.as_of);
            visit(row, facts.dqs, facts.drop.map(lifecycle));
        });
    }

    fn visit(&self, mut visit: impl FnMut(&SearchRow<'_>, (&Layer, &NameRow))) {
        with_row_buffers(|buffers| {
            for (layer, ordinals) in self.index.names_by_layer(&self.ordinals) {
                layer.prefetch(&ordinals, &mut buffers.docs);
            }
            for &ordinal in self.ordinals.iter().take_while(|_| !budget::spent()) {
                let (layer, ordinal) = self.index.name_at(ordinal);
                layer.shape_result(ordinal, self.as_of, buffers, &mut |row, facts| {
                    visit(row, (layer, facts));
                });
            }
        });
    }
}

impl Index {
    /// Returns a page of the names with a prefix: whole matches first, then best first.
    pub fn search(&self, filter: &SearchFilter, as_of: AsOf) -> SearchPage<'_> {
        let day = self.day(as_of);
        let found =
            self.best_of_layers(filter, |layer, filter, at| layer.search(filter, &day.layers[at]));
        SearchPage {
            total: found.total.min(SEARCH_TOTAL_MAX),
            capped: found.total > SEARCH_TOTAL_MAX,
            index: self,
            as_of,
            ordinals: found.hits.iter().map(|hit| hit.ordinal).collect(),
        }
    }

    /// Estimates the microseconds of a search, to decide whether it may run on an async thread.
    pub fn search_cost_us(&self, filter: &SearchFilter, as_of: AsOf) -> u32 {
        // Sorting deep pages and building rows take time; everything else is fast, except scans.
        let scan = if filter.is_basic() { 0 } else { SCAN_US };
        self.day_cost_us(as_of) + filter.limit + filter.offset / 20 + scan
    }

    /// Returns what narrows a search that exceeded its time budget, as the end of a sentence.
    pub fn narrowing(&self, filter: &SearchFilter) -> String {
        let has_grams = self.contains() == Contains::All;
        let has_prefix = filter.prefix.is_some();
        narrow::advice(&filter.common, Scope::Names { has_prefix, has_grams })
    }

    /// Returns a page of the matches that `find` returns for each layer, with ordinals among the
    /// names of all layers.
    pub(super) fn best_of_layers(
        &self,
        filter: &SearchFilter,
        find: impl Fn(&Layer, &SearchFilter, usize) -> SearchHits,
    ) -> SearchHits {
        if let [layer] = self.layers() {
            return find(layer, filter, 0);
        }
        let first =
            SearchFilter { limit: filter.offset + filter.limit, offset: 0, ..filter.clone() };
        let mut total = 0;
        let found = self.layers().iter().enumerate().map(|(at, layer)| {
            let SearchHits { mut hits, total: more } = find(layer, &first, at);
            total = (total + more).min(SEARCH_TOTAL_MAX + 1);
            hits.iter_mut().for_each(|hit| hit.ordinal = layer.shared_ordinal(hit.ordinal));
            hits
        });
        let (mut one, mut other) = (NameBuf::default(), NameBuf::default());
        let mut hits = merged(found, first.limit as usize, |a, b| {
            (a.is_part, a.key).cmp(&(b.is_part, b.key)).then_with(|| {
                for (hit, name) in [(a, &mut one), (b, &mut other)] {
                    let (layer, ordinal) = self.name_at(hit.ordinal);
                    layer.names.read(ordinal, name);
                }
                one.as_str().cmp(other.as_str())
            })
        });
        hits.drain(..hits.len().min(filter.offset as usize));
        SearchHits { hits, total }
    }

    /// Returns each layer with its part of `ordinals`.
    pub(super) fn names_by_layer<'a>(
        &'a self,
        ordinals: &'a [u32],
    ) -> impl Iterator<Item = (&'a Layer, Cow<'a, [u32]>)> {
        let of_layer = move |layer| {
            let own = |&ordinal: &u32| {
                let (found, ordinal) = self.name_at(ordinal);
                std::ptr::eq(found, layer).then_some(ordinal)
            };
            ordinals.iter().filter_map(own).collect()
        };
        let is_alone = self.layers().len() == 1;
        self.layers().iter().map(move |layer| {
            (layer, if is_alone { Cow::Borrowed(ordinals) } else { Cow::Owned(of_layer(layer)) })
        })
    }
}

impl Layer {
    fn search(&self, filter: &SearchFilter, day: &LayerDay) -> SearchHits {
        match &filter.prefix {
            Some(prefix) if filter.is_basic() => {
                let matches = idn::matches(&self.names, &self.idn, prefix.as_str());
                search(&self.search_columns(), &matches, filter, &day.dropped, &self.tlds)
            }
            _ => self.scan(filter, day),
        }
    }

    /// Finds the best of several lists of matches, without counting them. With `once`, a label is found
    /// once, if neither suffixes nor a view narrow the matches.
    pub(super) fn best_matches(
        &self,
        lists: &[Matches],
        filter: &SearchFilter,
        day: Option<&LayerDay>,
        once: bool,
    ) -> SearchHits {
        let parts = self.search_columns();
        let numbers = self.tlds.numbers(&filter.common.tlds);
        let hidden = if once { Some(self.lesser()) } else { parts.hidden.map(|it| &it.names) };
        let narrowed = Narrowed {
            parts: &parts,
            hidden,
            keys: KeyFilter::new(&filter.common),
            tlds: numbers.as_deref(),
            view: filter.view.zip(day.map(|day| &day.dropped)),
        };
        with_top_hits(filter, |mut best| {
            // This behaves as if the maximum count had been exceeded.
            best.total = SEARCH_TOTAL_MAX + 1;
            lists.iter().for_each(|matches| narrowed.add(matches, &mut best));
            best.into_found(|place| narrowed.ordinal(place))
        })
    }

    fn search_columns(&self) -> SearchColumns<'_> {
        SearchColumns {
            names: &self.ranks,
            by_tld: &self.by_tld,
            dropped: &self.drops_by_name,
            idn: self.idn.orders(),
            hidden: self.hidden(),
        }
    }

    /// Loads the memory of several rows in parallel, because they are far apart.
    pub(super) fn prefetch(&self, ordinals: &[u32], docs: &mut Vec<u32>) {
        self.names.prefetch(ordinals);
        docs.clear();
        self.drops_by_name.docs_of(ordinals, docs);
        self.drops_by_rank.prefetch(docs);
        self.records.prefetch(docs);
    }

    fn shape_result(
        &self,
        ordinal: u32,
        as_of: AsOf,
        buffers: &mut RowBuffers,
        visit: &mut impl FnMut(&SearchRow<'_>, &NameRow),
    ) {
        let RowBuffers { name, record, scratch, .. } = buffers;
        self.names.read(ordinal, name);
        let row = self.row(ordinal, name.tld());
        let latest_drop = row.drop.map(|drop| LatestDrop {
            date: drop.date,
            dqs: row.dqs,
            explanation: Scorer::shared().explain(self.known(drop.doc, row.tld, record), scratch),
        });
        let shown = SearchRow {
            domain: name.as_str(),
            unicode: to_unicode(name.as_str()),
            tld: self.tlds.name(row.tld),
            length: row.length,
            current_status: self.status(&row, as_of),
            dqs: row.dqs,
            stage: row
                .drop
                .filter(|drop| !drop.registered_again)
                .map(|drop| self.stage(row.tld, &drop, as_of)),
            latest_drop,
        };
        visit(&shown, &row);
    }
}

/// A candidate: the bit [`PART`], the key, the bit [`BESIDE`], and a place or an ordinal.
/// Candidates sort like results, except that names with the same key are sorted by ordinal.
type Candidate = u64;
/// Number of candidates that are added between two trims, in addition to a share of the page.
const TRIM_STEP: usize = 64;
/// Estimated microseconds of a scan: enough for a worker thread.
const SCAN_US: u32 = 10_000;
/// Bit that marks candidates that match only in part.
const PART: Candidate = 1 << 49;
/// Bit that marks candidates whose low half is an ordinal instead of a place in the queried order.
const BESIDE: Candidate = 1 << 32;

/// Returns the part of a candidate that is compared before its ordinal: [`PART`] and the key.
fn group(candidate: Candidate) -> u64 {
    candidate >> 33
}

fn candidate(key: u16, low: u32) -> Candidate {
    u64::from(key) << 33 | u64::from(low)
}

thread_local! {
    /// Buffer for candidates; deep pages have many.
    static HITS: RefCell<Vec<Candidate>> = RefCell::default();
}

/// Finds the best `offset + limit` matches and skips the first `offset`. [`View::All`] has the same
/// effect as no view.
pub fn search(
    parts: &SearchColumns<'_>,
    matches: &Matches,
    filter: &SearchFilter,
    day: &StagedDrops,
    tlds: &Tlds,
) -> SearchHits {
    let numbers = tlds.numbers(&filter.common.tlds);
    if numbers.as_ref().is_some_and(Vec::is_empty) {
        return SearchHits::default();
    }
    let common = Narrowed {
        parts,
        hidden: parts.hidden.map(|hidden| &hidden.names),
        keys: KeyFilter::new(&filter.common),
        tlds: numbers.as_deref(),
        view: filter.view.filter(|&view| view != View::All).map(|view| (view, day)),
    };
    with_top_hits(filter, |mut best| {
        common.add(matches, &mut best);
        best.into_found(|place| common.ordinal(place))
    })
}

/// Calls `find` with an empty list of candidates for the page of `filter`. Calls may be nested.
pub(super) fn with_top_hits<T>(filter: &SearchFilter, find: impl FnOnce(TopHits<'_>) -> T) -> T {
    let mut hits = HITS.take();
    hits.clear();
    let (offset, limit) = (filter.offset as usize, filter.limit as usize);
    let found = find(TopHits {
        hits: &mut hits,
        offset,
        limit,
        trim_at: offset + limit,
        total: 0,
        worst: u16::MAX,
        full: false,
    });
    HITS.set(hits);
    found
}

/// The filter of a search, resolved to numbers.
struct Narrowed<'a> {
    parts: &'a SearchColumns<'a>,
    /// Names to omit from the order of all names.
    hidden: Option<&'a HiddenPlaces>,
    keys: KeyFilter,
    /// TLD numbers; `None` for all.
    tlds: Option<&'a [u16]>,
    /// The view, with the stages of the day.
    view: Option<(View, &'a StagedDrops)>,
}

impl Narrowed<'_> {
    /// Returns the ordinal of a place in the order that the filter selects.
    fn ordinal(&self, place: u32) -> u32 {
        let SearchColumns { by_tld, dropped, .. } = *self.parts;
        match (self.view, self.tlds) {
            (None, None) => place,
            (None, Some(_)) => by_tld.row(place),
            (Some(_), None) => dropped.ordinal(place),
            (Some(_), Some(_)) => dropped.ordinal(dropped.by_tld().row(place)),
        }
    }

    /// Adds the matches that pass.
    fn add(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let SearchColumns { names, by_tld, dropped, hidden, .. } = *self.parts;
        let spans = Spans::new(&matches.names, &matches.whole);
        match (self.view, self.tlds) {
            (None, None) => best.take(names.order(self.hidden), &spans, self.keys),
            (None, Some(tlds)) => {
                let order = by_tld.ranked().order(hidden.map(|hidden| &hidden.by_tld));
                for &tld in tlds {
                    let spans = spans.map(|ordinals| by_tld.places(tld, ordinals));
                    best.take(order, &spans, self.keys);
                }
            }
            (Some((view, day)), None) => {
                let spans = spans.map(|ordinals| dropped.places(ordinals));
                best.take(day.order(dropped, view), &spans, self.keys);
            }
            (Some((view, day)), Some(tlds)) => {
                let spans = spans.map(|ordinals| dropped.places(ordinals));
                let order = day.order_by_tld(dropped, view);
                for &tld in tlds {
                    let spans = spans.map(|rows| dropped.by_tld().places(tld, rows));
                    best.take(order, &spans, self.keys);
                }
            }
        }
        self.take_idn(matches, best);
        self.offer_others(matches, best);
    }

    /// Adds the names that match by their Unicode form. None of these names is among
    /// `matches.names`.
    fn take_idn(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let SearchColumns { idn, hidden, .. } = *self.parts;
        let spans = Spans::new(&matches.aliases, &matches.whole_aliases);
        if spans.all.is_empty() {
            return;
        }
        let ordinal = |place: u32| idn.ordinals[place as usize];
        let ordinal_by_tld = |place| ordinal(idn.by_tld.row(place));
        let spans_in = |tld| spans.map(|places| idn.by_tld.places(tld, places));
        match (self.view, self.tlds) {
            (None, None) => {
                let order = idn.ranks.order(hidden.map(|hidden| &hidden.idn));
                best.take_beside(order, &spans, self.keys, ordinal);
            }
            (None, Some(tlds)) => {
                let order = idn.by_tld.ranked().order(hidden.map(|hidden| &hidden.idn_by_tld));
                for &tld in tlds {
                    best.take_beside(order, &spans_in(tld), self.keys, ordinal_by_tld);
                }
            }
            (Some((view, day)), None) => {
                best.take_beside(day.order_of_idn(idn, view), &spans, self.keys, ordinal);
            }
            (Some((view, day)), Some(tlds)) => {
                let order = day.order_of_idn_by_tld(idn, view);
                for &tld in tlds {
                    best.take_beside(order, &spans_in(tld), self.keys, ordinal_by_tld);
                }
            }
        }
    }

    fn offer_others(&self, matches: &Matches, best: &mut TopHits<'_>) {
        let SearchColumns { names, by_tld, .. } = *self.parts;
        let in_tld = |ordinal, tld| !by_tld.places(tld, ordinal..ordinal + 1).is_empty();
        for &(ordinal, whole) in &matches.others {
            let key = names.keys()[ordinal as usize];
            if self.keys.passes(key)
                && !matches.names.contains(&ordinal)
                && self.tlds.is_none_or(|tlds| tlds.iter().any(|&tld| in_tld(ordinal, tld)))
                && self.is_visible(ordinal)
            {
                best.offer(whole, key, ordinal);
            }
        }
    }

    fn is_visible(&self, ordinal: u32) -> bool {
        if self.parts.hidden.is_some_and(|hidden| hidden.has_name(ordinal)) {
            return false;
        }
        let Some((view, day)) = self.view else { return true };
        let place = self.parts.dropped.place(ordinal);
        place.is_some_and(|place| day.code(place) & view.code_mask() != 0)
    }
}

/// The range of places that match, and the whole matches among them.
struct Spans {
    all: Range<u32>,
    whole: Range<u32>,
}

impl Spans {
    fn new(all: &Range<u32>, whole: &Range<u32>) -> Spans {
        let none = all.start..all.start;
        let whole = if whole.is_empty() { none } else { whole.clone() };
        Spans { all: all.clone(), whole }
    }

    /// Maps the places to another order, in which they are also a range.
    fn map(&self, places: impl Fn(Range<u32>) -> Range<u32>) -> Spans {
        let all = places(self.all.clone());
        if self.whole.is_empty() || all.is_empty() {
            return Spans::new(&all, &(0..0));
        }
        Spans::new(&all, &places(self.whole.clone()))
    }
}

/// The best candidates so far, and the number of matches.
pub(super) struct TopHits<'a> {
    hits: &'a mut Vec<Candidate>,
    offset: usize,
    limit: usize,
    /// Number of candidates at which the worst of the best is determined.
    trim_at: usize,
    total: u32,
    /// Partial matches with a worse key are not among the best.
    worst: u16,
    /// Whether enough whole matches were found.
    full: bool,
}

impl TopHits<'_> {
    fn wanted(&self) -> usize {
        self.offset + self.limit
    }

    /// Adds the matches of `order` in `spans`.
    fn take<C: Column>(&mut self, order: Order<'_, C>, spans: &Spans, filter: KeyFilter) {
        self.take_with(order, spans, filter, Ties::First, |place| place.into());
    }

    /// Adds the matches of an order whose places do not sort like ordinals.
    fn take_beside<C: Column>(
        &mut self,
        order: Order<'_, C>,
        spans: &Spans,
        filter: KeyFilter,
        ordinal: impl Fn(u32) -> u32,
    ) {
        let low = |place| BESIDE | u64::from(ordinal(place));
        self.take_with(order, spans, filter, Ties::All, low);
    }

    /// Adds the matches of `order` in `spans`; `low` converts a place to the lower part of a candidate.
    fn take_with<C: Column>(
        &mut self,
        order: Order<'_, C>,
        spans: &Spans,
        filter: KeyFilter,
        ties: Ties,
        low: impl Fn(u32) -> Candidate,
    ) {
        if spans.all.is_empty() {
            return;
        }
        if self.total <= SEARCH_TOTAL_MAX {
            self.total += order.count(spans.all.clone(), filter, SEARCH_TOTAL_MAX - self.total);
        }
        let (start, wanted) = (self.hits.len(), self.wanted());
        order.best(spans.whole.clone(), filter, wanted, ties, self.hits);
        let wholes = self.hits.len();
        if !self.full {
            let filter = filter.at_most(self.worst);
            let left = wanted.saturating_sub(wholes - start);
            order.best(spans.all.start..spans.whole.start, filter, left, ties, self.hits);
            order.best(spans.whole.end..spans.all.end, filter, left, ties, self.hits);
        }
        for (at, hit) in self.hits[start..].iter_mut().enumerate() {
            let part = if start + at < wholes { 0 } else { PART };
            *hit = candidate(key_of(*hit), 0) | low(*hit as u32) | part;
        }
        self.trim_if_long();
    }

    fn trim_if_long(&mut self) {
        if self.hits.len() >= self.trim_at {
            self.trim();
            // All candidates with the same key are kept, so the number of candidates between two
            // trims grows with them.
            let step = (self.wanted() / 4).max(self.hits.len() / 2);
            self.trim_at = self.hits.len() + step + TRIM_STEP;
        }
    }

    /// Returns the worst key with which a match still changes the result once `found` matches are
    /// known. A whole match changes the result with any key.
    pub(super) fn worst_needed(&self, found: u32) -> u16 {
        match found > SEARCH_TOTAL_MAX {
            true => self.worst,
            false => u16::MAX,
        }
    }

    /// Returns the number of matches and the best candidates.
    pub(super) fn into_parts(mut self) -> (u32, Vec<Candidate>) {
        self.trim();
        (self.total, self.hits.clone())
    }

    /// Adds the matches of another list, which are distinct from these.
    pub(super) fn absorb(&mut self, (total, hits): (u32, Vec<Candidate>)) {
        self.total = self.total.saturating_add(total);
        self.hits.extend(hits);
        self.trim_if_long();
    }

    /// Adds a match that no order contains.
    pub(super) fn offer(&mut self, whole: bool, key: u16, ordinal: u32) {
        self.total = self.total.saturating_add(1);
        let candidate = candidate(key, ordinal) | BESIDE;
        if whole {
            self.hits.push(candidate);
        } else if !self.full && key <= self.worst {
            self.hits.push(candidate | PART);
        }
        self.trim_if_long();
    }

    /// Drops candidates that are not among the best, regardless of their ordinals.
    fn trim(&mut self) {
        let wanted = self.wanted();
        if wanted > 0 && self.hits.len() >= wanted {
            let (_, &mut last, _) = self.hits.select_nth_unstable(wanted - 1);
            self.hits.retain(|&hit| group(hit) <= group(last));
            self.full = last < PART;
            self.worst = (last >> 33) as u16;
        }
    }

    /// Returns the page; `ordinal` maps a place to its ordinal.
    pub(super) fn into_found(mut self, ordinal: impl Fn(u32) -> u32) -> SearchHits {
        self.trim();
        let total = self.total.min(SEARCH_TOTAL_MAX + 1);
        if self.hits.len() <= self.offset {
            return SearchHits { hits: Vec::new(), total };
        }
        // Computing ordinals is expensive, so only candidates with the keys of the page are
        // resolved and sorted.
        let (_, &mut first, _) = self.hits.select_nth_unstable(self.offset);
        let before = self.hits.iter().filter(|&&hit| group(hit) < group(first)).count();
        self.hits.retain(|&hit| group(hit) >= group(first));
        for hit in self.hits.iter_mut() {
            let low = *hit as u32;
            let ordinal = if *hit & BESIDE == 0 { ordinal(low) } else { low };
            *hit = group(*hit) << 33 | u64::from(ordinal);
        }
        self.hits.sort_unstable();
        let page = self.hits.iter().skip(self.offset - before).take(self.limit);
        let hit = |&hit: &Candidate| SearchHit {
            is_part: hit & PART != 0,
            key: (hit >> 33) as u16,
            ordinal: hit as u32,
        };
        SearchHits { hits: page.map(hit).collect(), total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::hidden::NameOrders;
    use crate::columns::part::{Part, PartDrops};
    use crate::columns::rank_table::tests::Random;
    use crate::columns::spans::Spans;
    use crate::columns::table::Table;
    use crate::filter::Filter;
    use crate::vocab::stage::Stage;
    use dropdex_query::filter::Adult;
    use dropdex_query::text::NamePrefix;

    const TLDS: u32 = 40;

    /// Names with their columns, but without text.
    struct World {
        table: Table,
        names: RankTable,
        by_tld: ByTld,
        dropped: DropsByName,
        day: StagedDrops,
        /// Ordinals, in the order of their Unicode forms.
        aliases: Vec<u32>,
        idn_ranks: RankTable,
        idn_by_tld: ByTld,
        /// Hidden names: every tenth name, in some of the test cases.
        hidden: Option<Hidden>,
        /// Returns key, TLD and stage code of each name, by ordinal.
        rows: Vec<(u16, u16, Option<u8>)>,
    }

    fn part(random: &mut Random, len: u32) -> Part {
        let dropped: Vec<u32> = (0..len).filter(|_| random.below(4) == 0).collect();
        let mut registered: Vec<bool> = (0..len).map(|_| random.below(2) == 0).collect();
        dropped.iter().for_each(|&at| registered[at as usize] = false);
        let mut tld = || {
            let below = 1 + random.below(TLDS);
            random.below(below) as u16
        };
        Part {
            spans: Spans::from_lens(vec![0; len as usize]).expect("empty"),
            tld: (0..len).map(|_| tld()).collect(),
            key: random.keys(len as usize),
            registered,
            drops: PartDrops { at: dropped, ..PartDrops::default() },
            ..Part::default()
        }
    }

    fn world(random: &mut Random, sizes: &[u32]) -> World {
        let parts = sizes.iter().map(|&len| part(random, len)).collect();
        let mut table = Table { parts, ..Table::default() };
        table.tlds = Tlds::new((0..TLDS).map(|number| format!("t{number}")).collect());
        let column = |of: fn(&Part) -> &Vec<u16>| -> Vec<u16> {
            table.parts.iter().flat_map(|part| of(part).clone()).collect()
        };
        let (keys, tlds) = (column(|part| &part.key), column(|part| &part.tld));
        let mut docs: Vec<u32> = (0..table.dropped()).collect();
        (1..docs.len()).for_each(|at| docs.swap(at, random.below(at as u32 + 1) as usize));
        // The code is 0 (registered again) or a stage, some with the bit of names that dropped today.
        let code = |random: &mut Random| match random.below(5) {
            4 => 0,
            stage => 1 << stage | u8::from(random.below(9) == 0) << 4,
        };
        let mut codes: Vec<u8> = docs.iter().map(|_| code(random)).collect();
        let hides = random.below(2) == 0;
        let is_hidden = |ordinal: u32| hides && ordinal.is_multiple_of(10);
        let mut rows: Vec<(u16, u16, Option<u8>)> =
            keys.iter().zip(&tlds).map(|(&key, &tld)| (key, tld, None)).collect();
        let mut place = 0;
        for part in table.parts.iter() {
            for &at in &part.drops.at {
                let code = &mut codes[docs[place] as usize];
                *code *= u8::from(!is_hidden(part.first + at));
                rows[(part.first + at) as usize].2 = Some(*code);
                place += 1;
            }
        }
        let dropped = DropsByName::new(&table, docs).expect("in memory");
        let by_tld = ByTld::new(TLDS as usize, &tlds, &keys);
        let mut aliases: Vec<u32> = (0..table.len()).filter(|_| random.below(90) == 0).collect();
        (1..aliases.len()).for_each(|at| aliases.swap(at, random.below(at as u32 + 1) as usize));
        let of = |column: &[u16]| aliases.iter().map(|&at| column[at as usize]).collect::<Vec<_>>();
        let idn_ranks = RankTable::new(of(&keys));
        let idn_by_tld = ByTld::new(TLDS as usize, &of(&tlds), &of(&keys));
        let idn = IdnOrders { ordinals: &aliases, ranks: &idn_ranks, by_tld: &idn_by_tld };
        let names = RankTable::new(keys);
        let hidden: Vec<(u32, u16)> = (0..).zip(tlds).filter(|(at, _)| is_hidden(*at)).collect();
        let orders = NameOrders { names: &names, by_tld: &by_tld, idn, dropped: &dropped };
        let hidden = hides.then(|| Hidden::new(&hidden, orders, TLDS as usize, dropped.len()));
        World {
            day: StagedDrops::new(&dropped, idn, &codes),
            hidden,
            idn_ranks,
            idn_by_tld,
            aliases,
            names,
            by_tld,
            dropped,
            table,
            rows,
        }
    }

    impl World {
        fn parts(&self) -> SearchColumns<'_> {
            let World { aliases, idn_ranks, idn_by_tld, .. } = self;
            SearchColumns {
                names: &self.names,
                by_tld: &self.by_tld,
                dropped: &self.dropped,
                idn: IdnOrders { ordinals: aliases, ranks: idn_ranks, by_tld: idn_by_tld },
                hidden: self.hidden.as_ref(),
            }
        }

        fn search(&self, matches: &Matches, filter: &SearchFilter) -> SearchHits {
            search(&self.parts(), matches, filter, &self.day, &self.table.tlds)
        }

        /// Computes the result by a scan of all names.
        fn slow(&self, matches: &Matches, filter: &SearchFilter) -> SearchHits {
            let named = matches.names.clone().map(|at| (at, matches.whole.contains(&at)));
            let aliased = matches.aliases.clone().map(|place| {
                (self.aliases[place as usize], matches.whole_aliases.contains(&place))
            });
            let others = matches.others.iter().copied();
            let beside =
                aliased.chain(others.filter(|(ordinal, _)| !matches.names.contains(ordinal)));
            let mut hits: Vec<SearchHit> = named
                .chain(beside)
                .map(|(ordinal, whole)| SearchHit {
                    is_part: !whole,
                    key: self.rows[ordinal as usize].0,
                    ordinal,
                })
                .filter(|hit| self.passes(hit.ordinal, filter))
                .collect();
            hits.sort_unstable();
            let total = hits.len().min(10_001) as u32;
            let page = hits.into_iter().skip(filter.offset as usize).take(filter.limit as usize);
            SearchHits { hits: page.collect(), total }
        }

        fn passes(&self, ordinal: u32, filter: &SearchFilter) -> bool {
            let (key, tld, code) = self.rows[ordinal as usize];
            let common = &filter.common;
            let is_it = |wanted: &str| self.table.tlds.find(wanted) == Some(tld);
            KeyFilter::new(common).passes(key)
                && self.hidden.as_ref().is_none_or(|hidden| !hidden.has_name(ordinal))
                && (common.tlds.is_empty() || common.tlds.iter().any(|wanted| is_it(wanted)))
                && filter
                    .view
                    .is_none_or(|view| code.is_some_and(|code| code & view.code_mask() != 0))
        }

        fn matches(&self, random: &mut Random) -> Matches {
            let within = |random: &mut Random, range: &Range<u32>| {
                let width = 1 + random.below(300);
                let start = range.start + random.below(range.len() as u32 + 1);
                if random.below(3) == 0 { start..range.end.min(start + width) } else { 0..0 }
            };
            let names = random.range(self.rows.len() as u32);
            let whole = within(random, &names);
            if random.below(2) == 0 {
                return Matches { names, whole, ..Matches::default() };
            }
            let aliases = random.range(self.aliases.len() as u32);
            let whole_aliases = within(random, &aliases);
            // Outside the range, a name is found only once, as an alias or otherwise.
            let mut others: Vec<(u32, bool)> = (0..self.rows.len() as u32)
                .filter(|_| random.below(2_000) == 0)
                .map(|ordinal| (ordinal, ordinal % 3 == 0))
                .collect();
            others.retain(|(ordinal, _)| !self.aliases.contains(ordinal));
            Matches { names, whole, aliases, whole_aliases, others }
        }
    }

    fn filter(random: &mut Random) -> SearchFilter {
        let stage = Stage::ALL[random.below(4) as usize];
        let pipelines = [None, None, Some(View::Active), Some(View::Today)];
        let one = |random: &mut Random| format!("t{}", random.below(TLDS + 3)).into();
        let tlds = [0, 0, 1, 1, 2, 60][random.below(6) as usize];
        let keys = random.filter();
        SearchFilter {
            prefix: NamePrefix::parse("x").ok(),
            common: Filter {
                tlds: (0..tlds).map(|_| one(random)).collect(),
                min_dqs: crate::columns::rank_key::dqs_of(keys.key_max.min(100 << 8)),
                max_len: keys.width_max.min(63),
                adult: if keys.width_max == u8::MAX { Adult::Include } else { Adult::Exclude },
                ..Filter::default()
            },
            view: match random.below(5) {
                4 => Some(View::Stage(stage)),
                at => pipelines[at as usize],
            },
            limit: [1, 20, 100][random.below(3) as usize],
            offset: [0, 0, 5, 250, 10_000][random.below(5) as usize],
        }
    }

    #[test]
    fn results_are_those_of_a_scan() {
        let mut random = Random(0x5eed);
        for sizes in [&[][..], &[1], &[64, 0, 448], &[700, 5_000], &[30_000, 120_000, 3]] {
            let world = world(&mut random, sizes);
            for _ in 0..60 {
                let (matches, filter) = (world.matches(&mut random), filter(&mut random));
                let expected = world.slow(&matches, &filter);
                assert_eq!(world.search(&matches, &filter), expected, "{matches:?} {filter:?}");
            }
        }
    }

    #[test]
    fn names_know_whether_they_dropped() {
        let mut random = Random(31);
        let world = world(&mut random, &[1_000, 0, 777]);
        let mut place = 0;
        for part in world.table.parts.iter() {
            for at in 0..part.len() as u32 {
                let ordinal = part.first + at;
                assert_eq!(world.dropped.registered(ordinal), part.registered[at as usize]);
                let expected = part.drops.at.contains(&at).then_some(place);
                assert_eq!(world.dropped.place(ordinal), expected);
                if let Some(found) = expected {
                    assert_eq!(world.dropped.ordinal(found), ordinal);
                    assert_eq!(world.dropped.keys()[found as usize], part.key[at as usize]);
                    assert_eq!(world.rows[ordinal as usize].2, Some(world.day.code(found)));
                    place += 1;
                }
            }
        }
        assert_eq!(world.dropped.len(), place);
        assert_eq!(world.dropped.places(0..world.table.len()), 0..place);
    }
}
