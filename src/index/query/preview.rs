//! Preview of an alert rule: how many names match today and matched on each of the last drop dates,
//! and the best as rows. One walk over the matches, at most the whole drops list.

use std::ops::ControlFlow;

use crate::index::error::QueryError;
use crate::index::filter::{AsOf, DropFilter, RuleQuery, Sort, View};
use crate::index::query::index::Index;
use crate::index::query::merge::merged;
use crate::index::query::rows::DropRow;
use crate::vocab::day::Day;
use crate::vocab::limits::{PREVIEW_DAYS, PREVIEW_SAMPLES};

/// Minimum docs per microsecond of a walk.
const DOCS_PER_US: u32 = 100;

/// Preview of a rule.
pub struct Preview<'a> {
    /// Number of names that match now, in one of the stages of the rule.
    pub today: u32,
    /// The last [`PREVIEW_DAYS`] drop dates up to today, newest first, and how many names of each
    /// match apart from their stage, which has changed since.
    pub per_day: Vec<(Day, u32)>,
    index: &'a Index,
    as_of: AsOf,
    /// Places of the best current matches.
    samples: Vec<u32>,
}

impl Preview<'_> {
    /// Calls `visit` with the best names that match now, best first: at most [`PREVIEW_SAMPLES`].
    pub fn for_each_sample(&self, mut visit: impl FnMut(&DropRow<'_>)) {
        self.index.shape_drops(&self.samples, self.as_of, |_, row| visit(row));
    }
}

impl Index {
    /// Previews a rule with these conditions.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn preview(&self, query: &RuleQuery, as_of: AsOf) -> Result<Preview<'_>, QueryError> {
        let day = self.day(as_of);
        let filter = DropFilter {
            common: query.common.clone(),
            view: View::All,
            contains: query.contains.clone(),
            sort: Sort::default(),
            after: None,
            limit: u32::MAX,
            offset: 0,
        };
        let mut by_date = vec![0; usize::from(u16::MAX) + 1];
        let (mut today, mut samples) = (0, Vec::new());
        for (layer, day) in self.layers_on(&day) {
            let mut best = Vec::new();
            layer.walk_drops(&filter, day, |doc| {
                by_date[usize::from(layer.drops_by_rank.drop_date(doc))] += 1;
                if day.stages.code(doc) & query.stages.bits() != 0 {
                    today += 1;
                    if best.len() < PREVIEW_SAMPLES {
                        best.push(layer.place(doc));
                    }
                }
                ControlFlow::Continue(())
            })?;
            samples.push(best);
        }
        let samples = merged(samples, PREVIEW_SAMPLES, |&one, &other| {
            self.compare_places(filter.sort, one, other)
        });
        let dates = &self.manifest().drop_dates;
        let known = dates.partition_point(|&date| date <= as_of.today);
        let last = dates[..known].iter().rev().take(PREVIEW_DAYS);
        let per_day = last.map(|&date| (date, by_date[usize::from(date.raw())])).collect();
        Ok(Preview { today, per_day, index: self, as_of, samples })
    }

    /// See [`Index::search_cost_us`].
    pub fn preview_cost_us(&self, as_of: AsOf) -> u32 {
        self.day_cost_us(as_of) + PREVIEW_SAMPLES as u32 + self.manifest().drops / DOCS_PER_US
    }
}
