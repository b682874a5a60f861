//! The drops list: pages, counts and exports. Docs are positions in rank order, so the first matches
//! are the result; rows are built when they are visited.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::index::error::QueryError;
use crate::index::filter::{AsOf, DropFilter, View};
use crate::index::query::index::{DayIndex, Index, RowBuffers, with_row_buffers};
use crate::index::query::rows::{DropRow, Lifecycle};
use crate::scorer::{Restored, Scorer};
use crate::vocab::budget;
use crate::vocab::day::Day;

/// Rows prefetched together: few enough to stay in the cache until they are built.
const ROWS_PREFETCHED: usize = 32;
/// Capacity reserved for docs of a page.
const ROWS_ABOUT: u32 = 1_000;

/// Page of the drops list. It holds docs; rows are built when they are visited.
pub struct DropsPage<'a> {
    /// Newest drop date up to today; today if there is none, and in the view `today`.
    pub date: Day,
    index: &'a Index,
    day: Arc<DayIndex>,
    view: View,
    /// In rank order.
    docs: Vec<u32>,
}

impl DropsPage<'_> {
    /// Returns the number of rows.
    pub fn count(&self) -> u32 {
        self.docs.len() as u32
    }

    /// Returns the TLDs of the view before other filters, sorted.
    pub fn tlds(&self) -> impl Iterator<Item = &str> {
        self.day.stages.tlds_in(self.view).iter().map(|&tld| self.index.tlds.name(tld))
    }

    /// Returns the text that `render` makes of [`DropsPage::tlds`]. It is made once per view and
    /// cached for the day.
    pub fn cached_tlds(
        &self,
        render: impl FnOnce(&mut dyn Iterator<Item = &str>) -> String,
    ) -> &str {
        self.day.tld_texts[self.view.position()].get_or_init(|| render(&mut self.tlds()))
    }

    /// Calls `visit` with each row, in order.
    pub fn for_each(&self, mut visit: impl FnMut(&DropRow<'_>)) {
        self.index.shape_drops(&self.docs, |_, row| visit(row));
    }

    /// Calls `visit` with each row and its lifecycle, in order.
    pub fn for_each_placed(&self, mut visit: impl FnMut(&DropRow<'_>, Lifecycle)) {
        let (index, as_of) = (self.index, self.day.as_of);
        index.shape_drops(&self.docs, |doc, row| visit(row, index.doc_lifecycle(doc, as_of)));
    }
}

impl Index {
    /// Returns a page of the drops list, best first.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn drops(&self, filter: &DropFilter, as_of: AsOf) -> Result<DropsPage<'_>, QueryError> {
        let day = self.day(as_of);
        let mut docs = Vec::with_capacity(filter.limit.min(ROWS_ABOUT) as usize);
        self.walk_drops(filter, &day, |doc| {
            docs.push(doc);
            ControlFlow::Continue(())
        })?;
        let date = match filter.view {
            View::Today => as_of.today,
            _ => self.newest_drop_date(as_of.today).unwrap_or(as_of.today),
        };
        Ok(DropsPage { date, index: self, day, view: filter.view, docs })
    }

    /// Counts the names of the drops list that pass `filter`, ignoring offset and limit.
    ///
    /// # Errors
    /// [`QueryError`], which a verified generation does not give.
    pub fn count_drops(&self, filter: &DropFilter, as_of: AsOf) -> Result<u32, QueryError> {
        let day = self.day(as_of);
        let counted = self.drops_by_rank.count(filter, &day.stages, &self.tlds, &self.records);
        counted.map_err(|source| self.query_error(source))
    }

    /// Calls `visit` with the rows of [`Index::drops`] until it breaks.
    ///
    /// # Errors
    /// [`QueryError`], which a verified generation does not give.
    pub fn for_each_drop(
        &self,
        filter: &DropFilter,
        as_of: AsOf,
        mut visit: impl FnMut(&DropRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let day = self.day(as_of);
        with_row_buffers(|buffers| {
            self.walk_drops(filter, &day, |doc| self.shape_drop(doc, buffers, &mut visit))
        })
    }

    pub(in crate::index) fn walk_drops(
        &self,
        filter: &DropFilter,
        day: &DayIndex,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let mut left = filter.limit;
        let walked =
            self.drops_by_rank.for_each(filter, &day.stages, &self.tlds, &self.records, |doc| {
                visit(doc)?;
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        walked.map_err(|source| self.query_error(source))
    }

    fn query_error(&self, source: std::io::Error) -> QueryError {
        QueryError { generation: self.manifest.generation.to_string(), source }
    }

    /// Returns the docs of the rows of [`Index::drops`], for [`Index::shape_drops`].
    ///
    /// # Errors
    /// [`QueryError`], which a verified generation does not give.
    pub fn drop_places(&self, filter: &DropFilter, as_of: AsOf) -> Result<Vec<u32>, QueryError> {
        Ok(self.drops(filter, as_of)?.docs)
    }

    /// Calls `visit` with docs that [`Index::drop_places`] of this generation returned, and the row
    /// of each.
    pub fn shape_drops(&self, places: &[u32], mut visit: impl FnMut(u32, &DropRow<'_>)) {
        with_row_buffers(|buffers| {
            for docs in places.chunks(ROWS_PREFETCHED).take_while(|_| !budget::spent()) {
                self.drops_by_rank.prefetch(docs);
                self.records.prefetch(docs);
                for &doc in docs {
                    self.shape_drop(doc, buffers, &mut |row| visit(doc, row));
                }
            }
        });
    }

    /// See [`Index::search_cost_us`].
    pub fn drops_cost_us(&self, filter: &DropFilter, as_of: AsOf) -> u32 {
        // The walk visits drops until the page is full.
        let looked_at =
            self.drops_by_rank.len() / if filter.contains.is_some() { 10_000 } else { 50_000 };
        self.day_cost_us(as_of) + filter.limit + looked_at
    }

    fn shape_drop<T>(
        &self,
        doc: u32,
        buffers: &mut RowBuffers,
        visit: &mut impl FnMut(&DropRow<'_>) -> T,
    ) -> T {
        let RowBuffers { text, scratch, .. } = buffers;
        let known = self.known(doc, self.drops_by_rank.tlds()[doc as usize]);
        text.clear();
        text.extend([known.label, ".", known.tld]);
        let Restored { dqs, signals, explanation, .. } = Scorer::shared().restore(known, scratch);
        debug_assert_eq!(
            dqs,
            self.drops_by_rank.dqs(doc),
            "{text}: the index and the scorer agree"
        );
        let (tld, length) = (known.tld, self.drops_by_rank.length(doc));
        visit(&DropRow { name: text, tld, length, dqs, explanation, signals: &signals })
    }
}
