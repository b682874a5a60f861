//! The overview of a day, for pages.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::filter::{AsOf, Sort, View};
use crate::query::index::{DayIndex, Index};
use crate::query::merge::merged;
use crate::query::rows::{DropRow, Lifecycle};
use crate::query::summary::{BEST_PER_BAND, CountedLayer, DaySummary, DroppedOn};
use crate::vocab::budget;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

/// Overview of a day for pages: counts of a [`DaySummary`] with TLD names, and rows.
pub struct Overview<'a> {
    index: &'a Index,
    as_of: AsOf,
    day: Arc<DayIndex>,
}

/// A TLD with its number of names.
#[derive(Clone, Copy, Debug)]
pub struct CountedTld<'a> {
    pub tld: &'a str,
    pub names: u32,
    /// Names on the drops list by stage, in the order of [`Stage::ALL`].
    pub stages: [u32; Stage::ALL.len()],
    /// Observation time of the newest list that was the first with some drop under the TLD.
    pub newest_list: Option<UnixMs>,
}

impl<'a> Overview<'a> {
    pub(super) fn new(index: &'a Index, day: &Arc<DayIndex>) -> Overview<'a> {
        Overview { index, as_of: day.as_of, day: Arc::clone(day) }
    }

    /// Returns the number of names in a view.
    pub fn total(&self, view: View) -> u32 {
        self.summary().totals[view.position()]
    }

    /// Returns the number of adult names in a view, which all other counts omit.
    pub fn adult(&self, view: View) -> u32 {
        self.summary().adult[view.position()]
    }

    /// Returns the TLDs of a view with their numbers of names, most names first.
    pub fn tlds(&self, view: View) -> impl ExactSizeIterator<Item = (&str, u32)> {
        let counted = self.summary().tlds[view.position()].iter();
        counted.map(|&(tld, count)| (self.index.tlds().name(tld), count))
    }

    /// Returns every TLD of the data, in no particular order.
    pub fn all_tlds(&self) -> impl Iterator<Item = CountedTld<'_>> {
        let tlds = self.index.tlds();
        let stages = Stage::ALL.map(|stage| {
            let counted = self.summary().tlds[View::Stage(stage).position()].iter();
            counted.copied().collect::<FxHashMap<u16, u32>>()
        });
        tlds.sorted().iter().map(move |&tld| CountedTld {
            tld: tlds.name(tld),
            names: tlds.names_under(tld),
            stages: std::array::from_fn(|at| stages[at].get(&tld).copied().unwrap_or_default()),
            newest_list: self.index.newest_list(tlds.name(tld)),
        })
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
        self.summary().day_tlds.iter().map(|&tld| self.index.tlds().name(tld))
    }

    /// Calls `visit` with the best names that are released tomorrow and their position in
    /// [`super::summary::BANDS`], band by band.
    pub fn for_each_best(&self, mut visit: impl FnMut(usize, &DropRow<'_>, Lifecycle)) {
        for (band, places) in self.summary().best.iter().enumerate() {
            self.index.shape_drops(places, self.as_of, |place, row| {
                visit(band, row, self.index.lifecycle_at(place, self.as_of));
            });
        }
    }

    pub(super) fn summary(&self) -> &DaySummary {
        self.day.summary.get_or_init(|| {
            let layers = self.index.layers_on(&self.day).enumerate();
            let counted = layers.map(|(at, (layer, day))| CountedLayer {
                listed: &layer.drops_by_rank,
                stages: &day.stages,
                tlds: self.index.tlds().of_layer(at),
                first_place: layer.place(0),
            });
            let counted: Vec<_> = counted.collect();
            let best = |of_layers: Vec<Vec<u32>>| {
                merged(of_layers, BEST_PER_BAND, |&one, &other| {
                    self.index.compare_places(Sort::default(), one, other)
                })
            };
            let (tlds, today) = (self.index.tlds().len(), self.as_of.today);
            budget::shared(|| DaySummary::new(&counted, tlds, today, best))
        })
    }
}

impl Index {
    /// Computes the stages of a day unless they are cached, and the counts from which totals are summed.
    /// Without this call, the first query of the day would wait for the computation, which takes some
    /// milliseconds per million drops.
    pub fn prepare(&self, as_of: AsOf) {
        let overview = self.overview(as_of);
        if self.is_sampled() {
            overview.summary();
        }
    }

    /// Returns the overview of a day. Counts are computed on first use and cached for the day.
    pub fn overview(&self, as_of: AsOf) -> Overview<'_> {
        Overview::new(self, &self.day(as_of))
    }
}
