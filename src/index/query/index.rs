//! A generation in memory, its queries, and the pages that they return.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::index::columns::by_tld::ByTld;
use crate::index::columns::day::DayStages;
use crate::index::columns::drop_history::DropHistory;
use crate::index::columns::drops_by_name::{DropsByName, StagedDrops};
use crate::index::columns::drops_by_rank::DropsByRank;
use crate::index::columns::idn::{self, IdnNames};
use crate::index::columns::names::{NameBuf, Names};
use crate::index::columns::rank_key::{dqs_of, length_of};
use crate::index::columns::rank_table::RankTable;
use crate::index::columns::records::{ScoreRecord, ScoreRecords};
use crate::index::columns::tlds::Tlds;
use crate::index::error::QueryError;
use crate::index::filter::{AsOf, DropFilter, SearchFilter, View};
use crate::index::query::rows::{DropRow, LatestDrop, Lifecycle, SearchRow, Status};
use crate::index::query::search;
use crate::index::query::summary::{DaySummary, DroppedOn};
use crate::index::storage::manifest::Manifest;
use crate::scorer::{Restored, Scored, Scorer, Scratch, Signals, StoredScore};
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::SEARCH_TOTAL_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;

/// A generation in memory.
pub struct Index {
    pub(in crate::index) manifest: Manifest,
    pub(in crate::index) tlds: Tlds,
    /// All names, and their Unicode forms.
    pub(in crate::index) names: Names,
    pub(in crate::index) idn: IdnNames,
    /// Rank keys in name order, and by TLD.
    pub(in crate::index) ranks: RankTable,
    pub(in crate::index) by_tld: ByTld,
    /// Dropped names in name order.
    pub(in crate::index) drops_by_name: DropsByName,
    /// Drops before the latest.
    pub(in crate::index) drop_history: DropHistory,
    /// Dropped names in rank order, and their records.
    pub(in crate::index) drops_by_rank: DropsByRank,
    pub(in crate::index) records: ScoreRecords,
    /// Newest first.
    pub(in crate::index) days: ArcSwap<Vec<Arc<DayIndex>>>,
    pub(in crate::index) making_day: Mutex<()>,
}

/// Data of one day, since stages change at 00:00 UTC.
pub(in crate::index) struct DayIndex {
    pub(in crate::index) as_of: AsOf,
    pub(in crate::index) stages: DayStages,
    pub(in crate::index) dropped: StagedDrops,
    /// See [`DropsPage::cached_tlds`].
    tld_texts: [OnceLock<String>; View::EVERY.len()],
    /// Computed when a page first needs it.
    pub(in crate::index) summary: OnceLock<DaySummary>,
}

/// Columns of one name.
#[derive(Clone, Copy)]
pub(in crate::index) struct NameRow {
    pub(in crate::index) dqs: Dqs,
    pub(in crate::index) length: u8,
    /// TLD number.
    pub(in crate::index) tld: u16,
    pub(in crate::index) drop: Option<RowDrop>,
    /// Never dropped, and registered according to the lists.
    pub(in crate::index) registered: bool,
}

/// Latest drop of a name.
#[derive(Clone, Copy)]
pub(in crate::index) struct RowDrop {
    pub(in crate::index) doc: u32,
    pub(in crate::index) date: Day,
    /// Effective.
    pub(in crate::index) release: Day,
    pub(in crate::index) registered_again: bool,
}

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

/// Overview of a day for pages: counts of a [`DaySummary`] with TLD names, and rows.
pub struct Overview<'a> {
    index: &'a Index,
    as_of: AsOf,
    day: Arc<DayIndex>,
}

/// Page of search results. It holds ordinals; rows are built when they are visited.
pub struct SearchPage<'a> {
    /// Number of matches, at most [`SEARCH_TOTAL_MAX`].
    pub total: u32,
    /// There are more than `total`.
    pub capped: bool,
    index: &'a Index,
    as_of: AsOf,
    /// Best first.
    ordinals: Vec<u32>,
}

/// The drop of a name in the active pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub struct PipelineDrop {
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    pub dqs: Dqs,
    pub explanation: String,
    pub signals: Signals<'static>,
}

/// Dossier of a name (data/docs/api.md, Domain dossier, without feedback).
#[derive(Debug)]
pub struct Dossier<'a> {
    pub tld: &'a str,
    pub length: u8,
    pub status: Status,
    /// Effective release, until the name is available.
    pub drop_predicted_at: Option<Day>,
    /// `None` when the name is not in the active pipeline.
    pub latest_drop: Option<PipelineDrop>,
}

/// Facts that a watchlist shows of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameFacts {
    pub dqs: Dqs,
    /// Date of the latest drop, even if the name was registered again.
    pub latest_drop: Option<Day>,
    /// Stage of that drop and its effective release; `None` for a name that never dropped or was
    /// registered again.
    pub stage: Option<(Stage, Day)>,
    /// Registered again after its latest drop.
    pub registered_again: bool,
}

/// Buffers that are reused from row to row.
#[derive(Default)]
pub(in crate::index) struct RowBuffers {
    pub(in crate::index) name: NameBuf,
    pub(in crate::index) text: String,
    pub(in crate::index) docs: Vec<u32>,
    pub(in crate::index) scratch: Scratch,
}

thread_local! {
    /// One per thread; taken out while rows are built.
    static SHAPER: Cell<RowBuffers> = Cell::default();
}

/// Calls `work` with the thread's buffers. Nested calls get new ones.
pub(in crate::index) fn with_row_buffers<T>(work: impl FnOnce(&mut RowBuffers) -> T) -> T {
    let mut shaper = SHAPER.take();
    let done = work(&mut shaper);
    SHAPER.set(shaper);
    done
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

impl Overview<'_> {
    /// Returns the number of names in a view.
    pub fn total(&self, view: View) -> u32 {
        self.summary().totals[view.position()]
    }

    /// Returns the TLDs of a view with their number of names, most first.
    pub fn tlds(&self, view: View) -> impl ExactSizeIterator<Item = (&str, u32)> {
        let counted = self.summary().tlds[view.position()].iter();
        counted.map(|&(tld, count)| (self.index.tlds.name(tld), count))
    }

    /// Returns the number of names of a view by score, 0 to 100.
    pub fn scores(&self, view: View) -> &[u32] {
        &self.summary().scores[view.position()]
    }

    /// Returns the last days up to today, oldest first.
    pub fn days(&self) -> &[DroppedOn] {
        &self.summary().days
    }

    /// Returns the TLDs counted separately on those days, most names first.
    pub fn day_tlds(&self) -> impl ExactSizeIterator<Item = &str> {
        self.summary().day_tlds.iter().map(|&tld| self.index.tlds.name(tld))
    }

    /// Calls `visit` with the best names of the newest drop date and their position in
    /// [`super::summary::BANDS`], band by band.
    pub fn for_each_best(&self, mut visit: impl FnMut(usize, &DropRow<'_>, Lifecycle)) {
        for (band, docs) in self.summary().best.iter().enumerate() {
            self.index.shape_drops(docs, |doc, row| {
                visit(band, row, self.index.doc_lifecycle(doc, self.as_of));
            });
        }
    }

    /// Returns the newest drop date up to today; today if there is none.
    pub fn newest(&self) -> Day {
        self.index.newest_drop_date(self.as_of.today).unwrap_or(self.as_of.today)
    }

    fn summary(&self) -> &DaySummary {
        self.day.summary.get_or_init(|| {
            let Index { drops_by_rank: listed, tlds, .. } = self.index;
            budget::shared(|| {
                DaySummary::new(listed, tlds, &self.day.stages, self.as_of.today, self.newest())
            })
        })
    }
}

impl SearchPage<'_> {
    /// Rows on the page.
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
        self.visit(|row, facts| {
            let lifecycle = |drop| self.index.lifecycle(facts.tld, &drop, self.as_of);
            visit(row, facts.dqs, facts.drop.map(lifecycle));
        });
    }

    fn visit(&self, mut visit: impl FnMut(&SearchRow<'_>, &NameRow)) {
        with_row_buffers(|shaper| {
            self.index.prefetch(&self.ordinals, &mut shaper.docs);
            for &ordinal in self.ordinals.iter().take_while(|_| !budget::spent()) {
                self.index.shape_result(ordinal, self.as_of, shaper, &mut visit);
            }
        });
    }
}

impl Index {
    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns for every list, oldest first, the day it was ingested and how many latest drops it
    /// reported first. Counted on each call: some milliseconds for ten million drops.
    pub fn lists(&self) -> Vec<(Day, u32)> {
        self.drops_by_rank.first_batches().tally()
    }

    /// Returns the newest drop date up to `today`.
    pub fn newest_drop_date(&self, today: Day) -> Option<Day> {
        let dates = &self.manifest.drop_dates;
        let known = dates.partition_point(|&date| date <= today);
        known.checked_sub(1).map(|at| dates[at])
    }

    /// Computes the stages of a day unless they are cached. The first query of the day would
    /// otherwise wait: milliseconds for a million drops.
    pub fn prepare(&self, as_of: AsOf) {
        self.day(as_of);
    }

    /// Returns true if the day is cached.
    pub fn is_prepared(&self, as_of: AsOf) -> bool {
        self.days.load().iter().any(|day| day.as_of == as_of)
    }

    /// Returns the data of a day, computed on first use.
    pub(in crate::index) fn day(&self, as_of: AsOf) -> Arc<DayIndex> {
        let find = || self.days.load().iter().find(|day| day.as_of == as_of).cloned();
        if let Some(day) = find() {
            return day;
        }
        // One thread computes it, others wait.
        let _making = self.making_day.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(day) = find() {
            return day;
        }
        let day = Arc::new(budget::shared(|| DayIndex::new(self, as_of)));
        let kept = self.days.load().iter().take(DAYS_KEPT - 1).cloned().collect::<Vec<_>>();
        self.days.store(Arc::new([vec![Arc::clone(&day)], kept].concat()));
        day
    }

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

    /// Returns the overview of a day. Counts are computed on first use and cached for the day.
    pub fn overview(&self, as_of: AsOf) -> Overview<'_> {
        Overview { index: self, as_of, day: self.day(as_of) }
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
        with_row_buffers(|shaper| {
            self.walk_drops(filter, &day, |doc| self.shape_drop(doc, shaper, &mut visit))
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
        with_row_buffers(|shaper| {
            for docs in places.chunks(ROWS_PREFETCHED).take_while(|_| !budget::spent()) {
                self.drops_by_rank.prefetch(docs);
                self.records.prefetch(docs);
                for &doc in docs {
                    self.shape_drop(doc, shaper, &mut |row| visit(doc, row));
                }
            }
        });
    }

    /// Returns a page of names with a prefix: whole matches first, then best first.
    pub fn search(&self, filter: &SearchFilter, as_of: AsOf) -> SearchPage<'_> {
        let day = self.day(as_of);
        let matches = idn::matches(&self.names, &self.idn, filter.prefix.as_str());
        let found =
            search::search(&self.search_columns(), &matches, filter, &day.dropped, &self.tlds);
        SearchPage {
            total: found.total.min(SEARCH_TOTAL_MAX),
            capped: found.total > SEARCH_TOTAL_MAX,
            index: self,
            as_of,
            ordinals: found.ordinals,
        }
    }

    fn search_columns(&self) -> search::SearchColumns<'_> {
        let (ordinals, keys) = (self.idn.ordinals(), self.idn.keys());
        search::SearchColumns {
            names: &self.ranks,
            by_tld: &self.by_tld,
            dropped: &self.drops_by_name,
            aliases: search::IdnColumns { ordinals, keys, tlds: self.idn.tlds() },
        }
    }

    /// Returns the dossier of `name`; `None` for an unknown name.
    pub fn dossier(&self, name: &DomainName, as_of: AsOf) -> Option<Dossier<'_>> {
        let (_, row) = self.find_row(name)?;
        let stage = row.drop.map(|drop| self.stage(row.tld, &drop, as_of));
        let held = |drop: &RowDrop| !drop.registered_again;
        let active = row.drop.filter(held).filter(|_| stage != Some(Stage::Released));
        let before_release = matches!(stage, Some(Stage::Redemption | Stage::PendingDelete));
        Some(Dossier {
            tld: self.tlds.name(row.tld),
            length: row.length,
            status: self.status(&row, as_of),
            drop_predicted_at: active.filter(|_| before_release).map(|drop| drop.release),
            latest_drop: active.map(|drop| self.pipeline_drop(&row, &drop)),
        })
    }

    /// Returns the facts of `name`; `None` for an unknown name.
    pub fn facts(&self, name: &DomainName, as_of: AsOf) -> Option<NameFacts> {
        let (_, row) = self.find_row(name)?;
        let stage = |drop: RowDrop| (self.stage(row.tld, &drop, as_of), drop.release);
        Some(NameFacts {
            dqs: row.dqs,
            latest_drop: row.drop.map(|drop| drop.date),
            stage: row.drop.filter(|drop| !drop.registered_again).map(stage),
            registered_again: row.drop.is_some_and(|drop| drop.registered_again),
        })
    }

    /// Returns true if the corpus contains `name`.
    pub fn holds(&self, name: &DomainName) -> bool {
        self.names.find(name.as_str()).is_some()
    }

    /// Estimates the microseconds of a search, to decide whether it may run on an async thread.
    pub fn search_cost_us(&self, filter: &SearchFilter, as_of: AsOf) -> u32 {
        // Deep pages are sorted and rows are built; everything else is fast.
        self.day_cost_us(as_of) + filter.limit + filter.offset / 20
    }

    /// See [`Index::search_cost_us`].
    pub fn drops_cost_us(&self, filter: &DropFilter, as_of: AsOf) -> u32 {
        // The walk visits drops until the page is full.
        let looked_at =
            self.drops_by_rank.len() / if filter.contains.is_some() { 10_000 } else { 50_000 };
        self.day_cost_us(as_of) + filter.limit + looked_at
    }

    /// Estimates the time to compute a day that is not cached.
    pub(in crate::index) fn day_cost_us(&self, as_of: AsOf) -> u32 {
        if self.is_prepared(as_of) { 0 } else { self.drops_by_name.len() / 10 }
    }

    /// Loads the memory of several rows in parallel: they are far apart.
    fn prefetch(&self, ordinals: &[u32], docs: &mut Vec<u32>) {
        self.names.prefetch(ordinals);
        docs.clear();
        self.drops_by_name.docs_of(ordinals, docs);
        self.drops_by_rank.prefetch(docs);
        self.records.prefetch(docs);
    }

    /// Returns ordinal and columns of `name`; `None` for an unknown name.
    pub(in crate::index) fn find_row(&self, name: &DomainName) -> Option<(u32, NameRow)> {
        let ordinal = self.names.find(name.as_str())?;
        Some((ordinal, self.row(ordinal, self.tlds.find(name.tld())?)))
    }

    /// Returns the columns of an ordinal whose TLD number is `tld`.
    pub(in crate::index) fn row(&self, ordinal: u32, tld: u16) -> NameRow {
        let key = self.ranks.keys()[ordinal as usize];
        let drop = self
            .drops_by_name
            .place(ordinal)
            .map(|place| self.row_drop(self.drops_by_name.doc(place)));
        NameRow {
            dqs: dqs_of(key),
            length: length_of(key),
            tld,
            drop,
            registered: drop.is_none() && self.drops_by_name.registered(ordinal),
        }
    }

    pub(in crate::index) fn row_drop(&self, doc: u32) -> RowDrop {
        let day = |column: &[u16]| {
            Day::from_raw(column[doc as usize]).expect("names that dropped have their days")
        };
        RowDrop {
            doc,
            date: day(self.drops_by_rank.drop_dates()),
            release: day(self.drops_by_rank.releases()),
            registered_again: doc >= self.drops_by_rank.len(),
        }
    }

    pub(in crate::index) fn stage(&self, tld: u16, drop: &RowDrop, as_of: AsOf) -> Stage {
        let pending = self.tlds.pending_days(tld);
        Stage::on(as_of.today, drop.release, pending, as_of.catch_days)
    }

    /// Returns the lifecycle of a doc of the drops list.
    pub(in crate::index) fn doc_lifecycle(&self, doc: u32, as_of: AsOf) -> Lifecycle {
        let tld = self.drops_by_rank.tlds()[doc as usize];
        self.lifecycle(tld, &self.row_drop(doc), as_of)
    }

    pub(in crate::index) fn lifecycle(&self, tld: u16, drop: &RowDrop, as_of: AsOf) -> Lifecycle {
        Lifecycle {
            dropped: drop.date,
            pending_delete: drop.release.plus(-i32::from(self.tlds.pending_days(tld))),
            release: drop.release,
            stage: self.stage(tld, drop, as_of),
            registered_again: drop.registered_again,
        }
    }

    pub(in crate::index) fn status(&self, row: &NameRow, as_of: AsOf) -> Status {
        match row.drop {
            Some(drop) if drop.registered_again => Status::Registered,
            Some(drop) => match self.stage(row.tld, &drop, as_of) {
                Stage::Redemption => Status::Redemption,
                Stage::PendingDelete => Status::PendingDelete,
                Stage::Catchable | Stage::Released => Status::Available,
            },
            None if row.registered => Status::Registered,
            None => Status::Unknown,
        }
    }

    fn pipeline_drop(&self, row: &NameRow, drop: &RowDrop) -> PipelineDrop {
        with_row_buffers(|shaper| {
            let known = self.known(drop.doc, row.tld);
            let Scored { signals, explanation, .. } =
                Scorer::shared().restore_owned(known, &mut shaper.scratch);
            PipelineDrop { date: drop.date, dqs: row.dqs, explanation, signals }
        })
    }

    /// Returns the input from which the scorer explains the score of a dropped name.
    pub(in crate::index) fn known(&self, doc: u32, tld: u16) -> StoredScore<'_> {
        let ScoreRecord { label, spread, features } = self.records.get(doc);
        let spread = match spread {
            u8::MAX => self.names.label_range(label).len() as u32,
            spread => spread.into(),
        };
        StoredScore { label, tld: self.tlds.name(tld), spread, features }
    }

    fn shape_drop<T>(
        &self,
        doc: u32,
        shaper: &mut RowBuffers,
        visit: &mut impl FnMut(&DropRow<'_>) -> T,
    ) -> T {
        let RowBuffers { text, scratch, .. } = shaper;
        let known = self.known(doc, self.drops_by_rank.tlds()[doc as usize]);
        text.clear();
        text.extend([known.label, ".", known.tld]);
        let Restored { dqs, signals, explanation } = Scorer::shared().restore(known, scratch);
        debug_assert_eq!(
            dqs,
            self.drops_by_rank.dqs(doc),
            "{text}: the index and the scorer agree"
        );
        let (tld, length) = (known.tld, self.drops_by_rank.length(doc));
        visit(&DropRow { name: text, tld, length, dqs, explanation, signals: &signals })
    }

    fn shape_result(
        &self,
        ordinal: u32,
        as_of: AsOf,
        shaper: &mut RowBuffers,
        visit: &mut impl FnMut(&SearchRow<'_>, &NameRow),
    ) {
        let RowBuffers { name, scratch, .. } = shaper;
        self.names.read(ordinal, name);
        let row = self.row(ordinal, name.tld());
        let latest_drop = row.drop.map(|drop| LatestDrop {
            date: drop.date,
            dqs: row.dqs,
            explanation: Scorer::shared().explain(self.known(drop.doc, row.tld), scratch),
        });
        let shown = SearchRow {
            domain: name.as_str(),
            tld: self.tlds.name(row.tld),
            length: row.length,
            current_status: self.status(&row, as_of),
            latest_drop,
        };
        visit(&shown, &row);
    }
}

impl DayIndex {
    fn new(index: &Index, as_of: AsOf) -> DayIndex {
        let stages = DayStages::new(index.drops_by_rank.dates(), &index.tlds, as_of);
        let dropped = StagedDrops::new(&index.drops_by_name, stages.by_doc());
        DayIndex { as_of, stages, dropped, tld_texts: Default::default(), summary: OnceLock::new() }
    }
}

/// Rows prefetched together: few enough to stay in the cache until they are built.
const ROWS_PREFETCHED: usize = 32;
/// Capacity reserved for docs of a page.
const ROWS_ABOUT: u32 = 1_000;
/// Cached days: today, and the day before or after around midnight.
const DAYS_KEPT: usize = 2;
