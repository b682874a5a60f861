//! A generation in memory: its parts, the data of a day, and the columns of a name. The other
//! modules of the folder answer queries from them.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use rustc_hash::FxHashMap;

use crate::index::columns::by_tld::ByTld;
use crate::index::columns::day::DayStages;
use crate::index::columns::drop_history::DropHistory;
use crate::index::columns::drops_by_name::{DropsByName, StagedDrops};
use crate::index::columns::drops_by_rank::DropsByRank;
use crate::index::columns::idn::IdnNames;
use crate::index::columns::names::{NameBuf, Names};
use crate::index::columns::rank_key::{dqs_of, length_of};
use crate::index::columns::rank_table::RankTable;
use crate::index::columns::records::{RecordBuffer, ScoreRecord, ScoreRecords};
use crate::index::columns::tlds::Tlds;
use crate::index::filter::{AsOf, Facet, View};
use crate::index::query::rows::{FacetValue, Lifecycle, Status};
use crate::index::query::summary::DaySummary;
use crate::index::storage::manifest::Manifest;
use crate::scorer::{Features, Scratch, Spread, StoredScore};
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
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
    pub(in crate::index) by_tld: Arc<ByTld>,
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
    /// See [`crate::index::DropsPage::cached_tlds`].
    pub(super) tld_texts: [OnceLock<String>; View::EVERY.len()],
    /// Counts by facet of each of [`View::EVERY`] without filters, made on first use.
    facets: [FacetCounts; View::EVERY.len()],
    /// Computed when a page first needs it.
    pub(in crate::index) summary: OnceLock<DaySummary>,
    /// See [`Index::kept_count`].
    counts: Mutex<FxHashMap<CountKey, u32>>,
}

/// Values of each facet, in the order of [`Facet::ALL`].
pub(super) type FacetCounts = [OnceLock<Vec<FacetValue>>; Facet::ALL.len()];

/// Key of a count that is kept for a day: digests of the query and of what narrows it.
pub type CountKey = (u64, u64);
/// Maximum counts that are kept. When there are more, all are dropped: they are cheap to compute.
pub(super) const COUNTS_MAX: usize = 1 << 14;

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

/// Buffers that are reused from row to row.
#[derive(Default)]
pub(in crate::index) struct RowBuffers {
    pub(in crate::index) name: NameBuf,
    pub(in crate::index) text: String,
    pub(in crate::index) docs: Vec<u32>,
    pub(in crate::index) record: RecordBuffer,
    pub(in crate::index) scratch: Scratch,
}

thread_local! {
    /// One per thread; taken out while rows are built.
    static BUFFERS: Cell<RowBuffers> = Cell::default();
}

/// Calls `work` with the thread's buffers. Nested calls get new ones.
pub(in crate::index) fn with_row_buffers<T>(work: impl FnOnce(&mut RowBuffers) -> T) -> T {
    let mut buffers = BUFFERS.take();
    let done = work(&mut buffers);
    BUFFERS.set(buffers);
    done
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

    /// Estimates the time to compute a day that is not cached.
    pub(in crate::index) fn day_cost_us(&self, as_of: AsOf) -> u32 {
        if self.is_prepared(as_of) { 0 } else { self.drops_by_name.len() / 10 }
    }

    /// Returns the doc of a canonical name; `None` for one that never dropped.
    pub(in crate::index) fn doc_of(&self, name: &str) -> Option<u32> {
        let place = self.drops_by_name.place(self.names.find(name)?)?;
        Some(self.drops_by_name.doc(place))
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
        let day = |raw| Day::from_raw(raw).expect("names that dropped have their days");
        RowDrop {
            doc,
            date: day(self.drops_by_rank.drop_date(doc)),
            release: day(self.drops_by_rank.release(doc)),
            registered_again: doc >= self.drops_by_rank.len(),
        }
    }

    pub(in crate::index) fn stage(&self, tld: u16, drop: &RowDrop, as_of: AsOf) -> Stage {
        let pending = self.tlds.pending_days(tld);
        Stage::on(as_of.today, drop.release, pending, as_of.catch_days)
    }

    /// Returns the lifecycle of a doc of the drops list.
    pub(in crate::index) fn doc_lifecycle(&self, doc: u32, as_of: AsOf) -> Lifecycle {
        let tld = self.drops_by_rank.tld(doc);
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

    /// Returns the input from which the scorer explains the score of a dropped name.
    pub(in crate::index) fn known<'a>(
        &'a self,
        doc: u32,
        tld: u16,
        buffer: &'a mut RecordBuffer,
    ) -> StoredScore<'a> {
        let ScoreRecord { label, spread, features, rank } = self.records.get(doc, buffer);
        let rank = rank.unwrap_or_else(|| self.drops_by_rank.rank(doc));
        let tlds = match spread {
            u8::MAX => self.names.label_range(label).len() as u32,
            spread => spread.into(),
        };
        let spread = Spread { tlds, coverage: self.manifest.coverage };
        let features = Features::Brief(features, rank);
        StoredScore { label, tld: self.tlds.name(tld), spread, features }
    }
}

impl DayIndex {
    fn new(index: &Index, as_of: AsOf) -> DayIndex {
        let (stages, codes) = DayStages::new(index.drops_by_rank.dates(), &index.tlds, as_of);
        let dropped = StagedDrops::new(&index.drops_by_name, &codes);
        DayIndex {
            as_of,
            stages,
            dropped,
            tld_texts: Default::default(),
            facets: Default::default(),
            summary: OnceLock::new(),
            counts: Mutex::default(),
        }
    }

    /// Returns the counts of a view without filters; `None` for several stages.
    pub(super) fn facets(&self, view: View) -> Option<&FacetCounts> {
        view.place().map(|place| &self.facets[place])
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, FxHashMap<CountKey, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cached days: today, and the day before or after around midnight.
const DAYS_KEPT: usize = 2;
