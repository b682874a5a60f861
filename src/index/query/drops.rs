//! The drops list: pages and exports. Docs are positions in rank order, so the first matches are
//! the result in that order; rows are built when they are visited.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::columns::drops_by_rank::Wanted;
use crate::columns::sampling::{Sample, Sampling};
use crate::columns::slices::ones;
use crate::columns::typos::Popular;
use crate::error::QueryError;
use crate::filter::{AsOf, Counting, DropFilter, Filter, RowPosition, Sort, View};
use crate::query::facets::is_view;
use crate::query::index::{
    DayIndex, Generation, Index, Layer, LayerDay, RowBuffers, with_row_buffers,
};
use crate::query::merge::merged;
use crate::query::overview::Overview;
use crate::query::rows::{DropRow, Lifecycle};
use crate::query::totals::Total;
use crate::scorer::{Restored, Scorer, Words};
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::kind::Kind;
use crate::vocab::name::{DomainName, is_a_label, to_unicode};
use crate::vocab::release_time::ReleaseTime;
use crate::vocab::time::UnixMs;
use dropdex_query::filter::LabelFilter;

/// Number of rows prefetched together: few enough to stay in the cache until they are built.
const ROWS_PREFETCHED: usize = 32;
/// Estimated microseconds of a filter on all cores: enough for a worker thread.
const ALL_CORES_US: u32 = 1_000;
/// Maximum capacity reserved for docs of a page.
const ROWS_ABOUT: usize = 1_001;

/// Page of the drops list. The page holds docs; rows are built when they are visited.
pub struct DropsPage<'a> {
    /// Newest drop date up to today; today if no name has one, or if the view is `today`.
    pub date: Day,
    /// Number of names that pass the filter, if they were to be counted.
    pub total: Option<Total>,
    /// Position of the last row, if more rows follow.
    pub next: Option<RowPosition>,
    index: &'a Index,
    day: Arc<DayIndex>,
    view: View,
    /// Places, in the order of the rows.
    places: Vec<u32>,
}

impl DropsPage<'_> {
    /// Returns the number of rows.
    pub fn count(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns the number of the index generation.
    pub fn generation(&self) -> u64 {
        self.index.manifest().generation.0
    }

    /// Returns the TLDs of the view before other filters, sorted.
    fn tlds(&self) -> Vec<&str> {
        let layers = self.index.layers_on(&self.day);
        let of_layers = layers.map(|(layer, day)| {
            let numbers = day.stages.tlds_in(self.view);
            numbers.iter().map(|&tld| layer.tlds.name(tld)).collect()
        });
        let mut tlds = merged(of_layers, usize::MAX, Ord::cmp);
        tlds.dedup();
        tlds
    }

    /// Returns the text that `render` creates from the sorted TLDs of the view before other
    /// filters. The text is created once per view and cached for the day, except for sets of
    /// stages.
    pub fn cached_tlds(
        &self,
        render: impl FnOnce(&mut dyn Iterator<Item = &str>) -> String,
    ) -> Cow<'_, str> {
        let text = || render(&mut self.tlds().into_iter());
        match self.view.place() {
            Some(place) => Cow::Borrowed(self.day.tld_texts[place].get_or_init(text)),
            None => Cow::Owned(text()),
        }
    }

    /// Calls `visit` with each row, in order.
    pub fn for_each(&self, mut visit: impl FnMut(&DropRow<'_>)) {
        self.index.shape_drops(&self.places, self.day.as_of, |_, row| visit(row));
    }

    /// Calls `visit` with each row and its lifecycle, in order.
    pub fn for_each_placed(&self, mut visit: impl FnMut(&DropRow<'_>, Lifecycle)) {
        let (index, as_of) = (self.index, self.day.as_of);
        let visit = |place, row: &DropRow<'_>| visit(row, index.lifecycle_at(place, as_of));
        index.shape_drops(&self.places, as_of, visit);
    }
}

impl Index {
    /// Returns a page of the drops list.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn drops(
        &self,
        filter: &DropFilter,
        as_of: AsOf,
        counting: Counting,
    ) -> Result<DropsPage<'_>, QueryError> {
        let day = self.day(as_of);
        let summed = (counting != Counting::None).then(|| self.summed(filter, &day)).flatten();
        let of_layers = if summed.is_some() { Counting::None } else { counting };
        // One extra row shows whether a page follows.
        let take = (filter.limit as usize).saturating_add(1);
        let (mut places, counted) = match self.layers() {
            [layer] => layer.best_docs(filter, &day.layers[0], take, of_layers)?,
            layers => {
                let skip = filter.offset as usize;
                let wanted = take.saturating_add(skip);
                let first = DropFilter { offset: 0, ..filter.clone() };
                let (mut found, mut totals) = (Vec::with_capacity(layers.len()), Vec::new());
                for (layer, day) in self.layers_on(&day) {
                    let (mut docs, total) = layer.best_docs(&first, day, wanted, of_layers)?;
                    docs.iter_mut().for_each(|doc| *doc = layer.place(*doc));
                    found.push(docs);
                    totals.push(total);
                }
                let mut places = merged(found, wanted, |&one, &other| {
                    self.compare_places(filter.sort, one, other)
                });
                places.drain(..skip.min(places.len()));
                (places, totals.into_iter().sum())
            }
        };
        let follows = places.len() == take;
        places.truncate(filter.limit as usize);
        let mut total = summed.or(counted);
        if filter.after.is_none() && (filter.offset == 0 || !places.is_empty()) {
            let end = filter.offset.saturating_add(places.len() as u32);
            total = total.map(|total| total.with_page(end, follows));
        }
        let last = places.last().filter(|_| follows);
        let next = last.map(|&place| self.position_of(filter.sort, place));
        let date = match filter.view {
            View::Today => as_of.today,
            _ => self.newest_drop_date(as_of.today).unwrap_or(as_of.today),
        };
        Ok(DropsPage { date, total, next, index: self, day, view: filter.view, places })
    }

    /// Counts the names of the drops list that pass `filter`, ignoring offset and limit.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn count_drops(&self, filter: &DropFilter, as_of: AsOf) -> Result<u32, QueryError> {
        self.total_of(filter, as_of, Counting::Exact).map(Total::count)
    }

    /// As [`Index::count_drops`], but only estimates a number that would take a long time to count.
    ///
    /// # Errors
    /// As [`Index::count_drops`].
    pub fn estimate_drops(&self, filter: &DropFilter, as_of: AsOf) -> Result<Total, QueryError> {
        self.total_of(filter, as_of, Counting::Estimate)
    }

    fn total_of(
        &self,
        filter: &DropFilter,
        as_of: AsOf,
        counting: Counting,
    ) -> Result<Total, QueryError> {
        let day = self.day(as_of);
        let of_layer = |(layer, day): (&Layer, &LayerDay)| {
            layer.page(filter, day, (0, 0), counting, &mut Vec::new())
        };
        match self.summed(filter, &day) {
            Some(total) => Ok(total),
            None => self.layers_on(&day).map(of_layer).sum(),
        }
    }

    /// Returns the number of names that pass `filter` on a long list, if a sum of the counts of the day
    /// has it: those of some TLDs or scores in a view.
    fn summed(&self, filter: &DropFilter, day: &Arc<DayIndex>) -> Option<Total> {
        if !self.is_sampled() || filter.contains.is_some() {
            return None;
        }
        let place = filter.view.place()?;
        let Filter { tlds, min_dqs, max_dqs, .. } = &filter.common;
        let (tlds, min_dqs, max_dqs) = (tlds.clone(), *min_dqs, *max_dqs);
        let by_tld = filter.common == Filter { tlds, ..Filter::default() };
        let by_score = filter.common == Filter { min_dqs, max_dqs, ..Filter::default() };
        if !by_tld && !by_score {
            return None;
        }
        let overview = Overview::new(self, day);
        let counts = overview.summary();
        let is_wanted = |tld: u16| filter.common.tlds.iter().any(|it| it == self.tlds().name(tld));
        let total = if by_score {
            let scores = usize::from(min_dqs.points())..=usize::from(max_dqs.points());
            counts.scores[place].get(scores).unwrap_or_default().iter().sum()
        } else {
            counts.tlds[place]
                .iter()
                .filter(|(tld, _)| is_wanted(*tld))
                .map(|(_, count)| count)
                .sum()
        };
        Some(Total::Exact(total))
    }

    /// Returns true if totals may be estimated.
    pub(super) fn is_sampled(&self) -> bool {
        let docs_max = 64 * Sampling::default().counted;
        self.layers().iter().any(|layer| layer.drops_by_rank.len() as usize > docs_max)
    }

    /// Returns the places of the rows of [`Index::drops`], for [`Index::shape_drops`].
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn drop_places(&self, filter: &DropFilter, as_of: AsOf) -> Result<Vec<u32>, QueryError> {
        Ok(self.drops(filter, as_of, Counting::None)?.places)
    }

    /// As [`Index::drop_places`], without the drops that were first reported by a list for internal
    /// use only.
    ///
    /// # Errors
    /// As [`Index::drop_places`].
    pub fn exported_places(
        &self,
        filter: &DropFilter,
        as_of: AsOf,
    ) -> Result<Vec<u32>, QueryError> {
        let internal = &self.manifest().internal_lists;
        if internal.is_empty() {
            return self.drop_places(filter, as_of);
        }
        let DropFilter { limit, offset, .. } = *filter;
        let all = DropFilter { limit: u32::MAX, offset: 0, ..filter.clone() };
        let places = self.drop_places(&all, as_of)?.into_iter();
        let places = places.filter(|&place| self.is_exported(place));
        Ok(places.skip(offset as usize).take(limit as usize).collect())
    }

    /// Returns true if a drop may leave the server: its first list is not for internal use only.
    pub fn is_exported(&self, place: u32) -> bool {
        let (layer, doc) = self.doc_at(place);
        let first = layer.drops_by_rank.first_batches().number(doc);
        self.manifest().internal_lists.binary_search(&first).is_err()
    }

    /// Returns the places of some names, in their order, for [`Index::shape_drops`]. Names that never
    /// dropped have no place.
    pub fn places_of(&self, names: &[DomainName]) -> Vec<u32> {
        names.iter().filter_map(|name| self.place_of(name.as_str())).collect()
    }

    /// Calls `visit` with places that [`Index::drop_places`] of this index returned, and the row of
    /// each on the day.
    pub fn shape_drops(
        &self,
        places: &[u32],
        as_of: AsOf,
        mut visit: impl FnMut(u32, &DropRow<'_>),
    ) {
        with_row_buffers(|buffers| {
            for places in places.chunks(ROWS_PREFETCHED).take_while(|_| !budget::spent()) {
                for layer in self.layers() {
                    let docs = places.iter().map(|&place| self.doc_at(place));
                    let docs = docs.filter(|(of, _)| std::ptr::eq(*of, layer));
                    layer.prefetch_docs(&docs.map(|(_, doc)| doc).collect::<Vec<_>>());
                }
                for &place in places {
                    let (layer, doc) = self.doc_at(place);
                    layer.shape_drop(doc, as_of, buffers, &mut |row| visit(place, row));
                }
            }
        });
    }

    /// See [`Index::search_cost_us`].
    pub fn drops_cost_us(&self, filter: &DropFilter, as_of: AsOf, counting: Counting) -> u32 {
        // The divisors are names of the drops list per microsecond, as measured for most queries.
        let listed = self.manifest().drops;
        let known = self.docs_of_page(filter, as_of, counting);
        let walked = known.unwrap_or(listed);
        let looked_at = walked / if filter.contains.is_some() { 6_000 } else { 50_000 };
        let is_narrowed = known.is_none() && filter.sort != Sort::default();
        let narrowed = if is_narrowed { listed / 6_000 } else { 0 };
        // Work on all cores runs on other threads, for which an async thread must not wait.
        let has_pieces = || self.layers().iter().any(|layer| layer.drops_by_rank.has_pieces());
        let waits = if known.is_none() && has_pieces() { ALL_CORES_US } else { 0 };
        let has_texts = filter.common.label != LabelFilter::default();
        let texts = if has_texts { listed / 100 } else { 0 };
        self.day_cost_us(as_of) + filter.limit + looked_at + narrowed + texts + waits
    }

    /// Returns the number of docs that a page is expected to visit; `None` for all, because the total is
    /// unknown or the order needs a bitmap of all matches.
    fn docs_of_page(&self, filter: &DropFilter, as_of: AsOf, counting: Counting) -> Option<u32> {
        let day = self.is_prepared(as_of).then(|| self.day(as_of))?;
        let page = u64::from(filter.offset) + u64::from(filter.limit);
        // The end of the page, if matches are spread evenly.
        let evenly = |listed: u32, total: u32| {
            let docs = u64::from(listed) * page / u64::from(total.max(1));
            u32::try_from(docs).unwrap_or(u32::MAX).min(listed)
        };
        let is_ranked = filter.sort == Sort::default();
        if is_ranked
            && day.summary.get().is_some()
            && let Some(total) = self.summed(filter, &day)
        {
            return Some(evenly(self.manifest().drops, total.count()));
        }
        let docs = |(layer, day): (&Layer, &LayerDay)| {
            let total = day.kept_total(filter, counting)?.count();
            let listed = layer.drops_by_rank.len();
            if is_ranked {
                return Some(evenly(listed, total));
            }
            let words = layer.walk_by_value(filter, day, total, page as usize)?.words;
            Some(u32::try_from(64 * words).unwrap_or(u32::MAX).min(listed))
        };
        self.layers_on(&day).map(docs).sum()
    }

    pub(super) fn lifecycle_at(&self, place: u32, as_of: AsOf) -> Lifecycle {
        let (layer, doc) = self.doc_at(place);
        layer.doc_lifecycle(doc, as_of)
    }
}

impl LayerDay {
    /// Returns the number of docs that pass `filter`, if it is known already.
    fn kept_total(&self, filter: &DropFilter, counting: Counting) -> Option<Total> {
        let of_view = is_view(filter).then(|| self.stages.count(filter.view)).flatten();
        let kept = || self.totals.get(self.totals.key(filter), counting);
        of_view.map(Total::Exact).or_else(kept)
    }

    fn keep_total(&self, filter: &DropFilter, counting: Counting, total: Total) {
        // A walk that was stopped has no valid count.
        if !budget::spent() {
            self.totals.keep(self.totals.key(filter), counting, total);
        }
    }
}

impl Layer {
    /// Returns up to `take` docs that pass `filter`, from its position and offset on, and the number of
    /// all docs that pass.
    fn best_docs(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
        take: usize,
        counting: Counting,
    ) -> Result<(Vec<u32>, Option<Total>), QueryError> {
        let shown = |total| Some(total).filter(|_| counting != Counting::None);
        if filter.sort != Sort::default() {
            let known = self.known_total(filter, day, counting)?;
            if let Some(total) = known
                && let Some(docs) = self.docs_by_value(filter, day, total.count(), take)?
            {
                return Ok((docs, shown(total)));
            }
            let matches = self.matching(filter, day)?;
            let counted = ones(&matches);
            let total = known.unwrap_or(Total::Exact(counted));
            day.keep_total(filter, counting, total);
            return Ok((self.sorted_docs(filter, matches, counted, take), shown(total)));
        }
        let mut docs = Vec::with_capacity(take.min(ROWS_ABOUT));
        let from = filter.after.as_ref().map_or(0, |after| self.first_after(after));
        let total = self.page(filter, day, (from, take), counting, &mut docs)?;
        Ok((docs, shown(total)))
    }

    /// Returns the number of docs that pass `filter`, unless all of them must be counted for it. An
    /// estimate takes part of the time of a count.
    fn known_total(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
        counting: Counting,
    ) -> Result<Option<Total>, QueryError> {
        let kept = day.kept_total(filter, counting);
        if kept.is_some() || counting == Counting::Exact {
            return Ok(kept);
        }
        let sample = self.sample(filter, day, |_, _| {})?;
        let total = sample.map(|sample| match sample.is_whole() {
            true => Total::Exact(sample.matches),
            false => Total::About(sample.scaled(sample.matches)),
        });
        if let Some(total) = total {
            day.keep_total(filter, counting, total);
        }
        Ok(total)
    }

    /// Appends to `docs` up to `take` docs that pass `filter`, from doc `from` and the offset on.
    /// Returns the number of all docs that pass, which is counted once per day, or 0 for [`Counting::None`].
    fn page(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
        (from, take): (u32, usize),
        counting: Counting,
        docs: &mut Vec<u32>,
    ) -> Result<Total, QueryError> {
        let known = match counting {
            Counting::None => Some(Total::Exact(0)),
            _ => self.known_total(filter, day, counting)?,
        };
        if let Some(known) = known.filter(|_| take == 0) {
            return Ok(known);
        }
        let wanted = Wanted { from, take, counts: known.is_none() };
        let counted = self.drops_by_rank.page(filter, &day.stages, self.beside(), wanted, docs);
        let counted = counted.map_err(|source| self.query_error(source))?;
        if let Some(counted) = counted {
            day.keep_total(filter, counting, Total::Exact(counted));
        }
        Ok(known.or(counted.map(Total::Exact)).unwrap_or(Total::Exact(0)))
    }

    /// Calls `visit` with blocks of the docs that pass `filter`; see [`crate::columns::sampling`].
    pub(super) fn sample(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
        visit: impl FnMut(usize, &[u64]),
    ) -> Result<Option<Sample>, QueryError> {
        // The best of each suffix are close together, and so are names that are expected to be taken; few names
        // have facts. A sample would miss many of them.
        let drop = &filter.common.drop;
        let is_uneven = drop.max_suffix_rank.is_some() || drop.expected_taken.is_some();
        if is_uneven || !drop.facts.is_empty() {
            return Ok(None);
        }
        let (beside, sampling) = (self.beside(), Sampling::default());
        let sample = self.drops_by_rank.sample(filter, &day.stages, beside, &sampling, visit);
        sample.map_err(|source| self.query_error(source))
    }

    /// Returns the docs of the drops list that pass `filter`, as a bitmap.
    pub(crate) fn matching(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
    ) -> Result<Vec<u64>, QueryError> {
        let matching = self.drops_by_rank.matching(filter, &day.stages, self.beside());
        matching.map_err(|source| self.query_error(source))
    }

    /// Calls `visit` with the docs that pass `filter` until it breaks, best first and without a limit.
    pub(crate) fn walk_drops(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
        visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let walked = self.drops_by_rank.for_each(filter, &day.stages, self.beside(), visit);
        walked.map_err(|source| self.query_error(source))
    }

    fn shape_drop<T>(
        &self,
        doc: u32,
        as_of: AsOf,
        buffers: &mut RowBuffers,
        visit: &mut impl FnMut(&DropRow<'_>) -> T,
    ) -> T {
        let RowBuffers { text, record, scratch, .. } = buffers;
        let tld = self.drops_by_rank.tld(doc);
        let known = self.known(doc, tld, record);
        text.clear();
        text.extend([known.label, ".", known.tld]);
        let restored = Scorer::shared().restore(known, scratch);
        let Restored { dqs, signals, explanation, words, .. } = restored;
        // If `min_words` counts no words, the list is empty, even if some pieces are words.
        let none = Words::default();
        let words = if words == 0 { &none } else { &signals.words };
        debug_assert_eq!(
            dqs,
            self.drops_by_rank.dqs(doc),
            "{text}: the index and the scorer agree"
        );
        let drop = self.row_drop(doc);
        // Reading the column takes several memory accesses.
        let length = match is_a_label(known.label) {
            true => self.drops_by_rank.length(doc),
            false => known.label.len() as u8,
        };
        let ReleaseTime { at, certainty, window_minutes } =
            self.tlds.release_rule(tld).on(drop.release);
        visit(&DropRow {
            name: text,
            unicode: to_unicode(text),
            tld: known.tld,
            length,
            dqs,
            explanation,
            signals: &signals,
            stage: self.stage(tld, &drop, as_of),
            drop_date: drop.date,
            release_date: drop.release.day,
            release_at: at,
            release_certainty: certainty,
            release_window_minutes: window_minutes,
            days_to_release: drop.release.day.days_since(as_of.today),
            words,
            language: signals.language,
            kind: signals.kind,
            other_tlds: self.drops_by_rank.other_tlds(doc),
            drop_count: self.drops_by_rank.drops(doc),
            listed_at: self.listed_at(doc),
            first_batch: self.drops_by_rank.first_batches().number(doc),
            popularity_rank: self.drops_by_rank.popularity().best(doc),
            suffix_rank: self.suffix_ranks().of(doc),
            typo_of: self.typo_of(doc, known.label, signals.kind),
            expected_taken: self.expected_taken().of(doc),
        })
    }

    pub(super) fn query_error(&self, source: std::io::Error) -> QueryError {
        QueryError { generation: self.manifest.generation.to_string(), source }
    }
}

impl Generation {
    /// Returns when the first list with the drop was observed.
    pub(super) fn listed_at(&self, doc: u32) -> UnixMs {
        let first_batches = self.drops_by_rank.first_batches();
        first_batches.observed(first_batches.number(doc))
    }

    /// Returns the popular name whose label the label of a doc misspells.
    fn typo_of(&self, doc: u32, label: &str, kind: Kind) -> Option<&Popular> {
        let is_typo = self.drops_by_rank.is_typo(doc);
        is_typo.then(|| self.typos.of_label(label, kind)).flatten()
    }

    /// Loads the data from which rows are built.
    fn prefetch_docs(&self, docs: &[u32]) {
        self.drops_by_rank.prefetch(docs);
        self.records.prefetch(docs);
    }
}
