//! Changes of names between two generations and between two days, and filters for single names.
//! Input: the lists and the day up to which changes are known. Output: places of drops with the
//! kind of change, in rank order.
//!
//! Columns are read in doc order; only names with a recent drop are looked up in the previous
//! generation.

use std::sync::Arc;

use rayon::prelude::*;

use crate::columns::checks::DropChecks;
use crate::filter::{AsOf, Sort, View};
use crate::query::index::{DayIndex, Index, Layer};
use crate::query::merge::merged;
use crate::vocab::change::{ChangeKind, ChangeSource};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use dropdex_query::filter::Filter;

/// Docs per parallel task.
const DOCS_PER_PIECE: u32 = 1 << 16;
/// Minimum change of a score, in points, that is reported.
const RESCORED_BY_MIN: u8 = 5;
/// Days after the release of a name during which its registration is reported as a change.
const RECENT_DAYS: i32 = 90;

/// A change of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropChange {
    pub place: u32,
    pub kind: ChangeKind,
    pub source: ChangeSource,
    /// The previous score, for [`ChangeKind::Rescored`].
    pub dqs_before: Option<Dqs>,
}

impl Index {
    /// Returns the changes by the calendar on `day` of names whose drop was known when list number
    /// `through` had arrived.
    pub fn changes_of_day(&self, day: Day, through: u64) -> Vec<DropChange> {
        let of_layer = |layer: &Layer| layer.changes_of_day(day, through);
        self.in_rank_order(self.layers().iter().map(of_layer))
    }

    /// Returns the changes by lists after number `since`, and those from the index `before` to this
    /// one. Without `before`, the changes since that index are omitted.
    ///
    /// A drop that is new in a list also gets its latest change by the calendar, because the day of
    /// that change may have passed.
    pub fn changes_of_lists(
        &self,
        before: Option<&Index>,
        since: u64,
        as_of: AsOf,
    ) -> Vec<DropChange> {
        let of_layer = |layer: &Layer| layer.changes_of_lists(before, since, as_of);
        self.in_rank_order(self.layers().iter().map(of_layer))
    }

    fn in_rank_order(&self, of_layers: impl Iterator<Item = Vec<DropChange>>) -> Vec<DropChange> {
        // All changes of a name belong to one layer and keep their order.
        merged(of_layers, usize::MAX, |one, other| {
            self.compare_places(Sort::default(), one.place, other.place)
        })
    }

    /// Prepares a filter for single names.
    pub fn name_test(&self, filter: &Filter, view: Option<View>, as_of: AsOf) -> NameTest<'_> {
        let checks = self
            .layers()
            .iter()
            .map(|layer| DropChecks::new(layer.drops_by_rank.columns(layer.beside()), filter));
        NameTest {
            index: self,
            checks: checks.collect(),
            view: view.map(|view| (self.day(as_of), view.code_mask())),
        }
    }
}

impl Layer {
    fn change(&self, doc: u32, kind: ChangeKind, source: ChangeSource) -> DropChange {
        DropChange { place: self.place(doc), kind, source, dqs_before: None }
    }

    fn changes_of_day(&self, day: Day, through: u64) -> Vec<DropChange> {
        let listed = &self.drops_by_rank;
        self.changes(listed.len(), |doc, changes| {
            let left = i32::from(listed.release(doc)) - i32::from(day.raw());
            if !(-1..=i32::from(u16::MAX)).contains(&left)
                || u64::from(listed.first_batches().number(doc)) > through
            {
                return;
            }
            let pending = self.tlds.pending_days(listed.tld(doc));
            let mut add = |kind| changes.push(self.change(doc, kind, ChangeSource::Calendar));
            if pending > 0 && left == i32::from(pending) {
                add(ChangeKind::PendingDelete);
            }
            match left {
                1 => add(ChangeKind::DropsTomorrow),
                0 => add(ChangeKind::DropsToday),
                -1 => add(ChangeKind::Available),
                _ => {}
            }
        })
    }

    fn changes_of_lists(&self, before: Option<&Index>, since: u64, as_of: AsOf) -> Vec<DropChange> {
        let listed = &self.drops_by_rank;
        let (on_list, catch_days) = (listed.len(), i32::from(as_of.catch_days));
        let dropped = listed.dropped();
        // A doc that is visible in both indexes is the same in both.
        let shared = before.and_then(|before| before.layer_like(self));
        self.changes(dropped, |doc, changes| {
            let left = i32::from(listed.release(doc)) - i32::from(as_of.today.raw());
            let is_active = left > -catch_days;
            if doc < on_list && u64::from(listed.first_batches().number(doc)) > since {
                if left > 0 {
                    changes.push(self.change(doc, ChangeKind::LeftZone, ChangeSource::List));
                }
                if is_active {
                    let kind = self.expected(doc, as_of.today);
                    changes.extend(kind.map(|it| self.change(doc, it, ChangeSource::Calendar)));
                }
            } else if let Some(before) = before
                && (if doc < on_list { is_active } else { left > -RECENT_DAYS })
                && !shared.is_some_and(|before| before.shows_doc(doc))
            {
                self.changes_since(before, doc, as_of.today, changes);
            }
        })
    }

    /// Adds the changes of a known doc since the index `before`.
    fn changes_since(&self, before: &Index, doc: u32, today: Day, changes: &mut Vec<DropChange>) {
        let listed = &self.drops_by_rank;
        let old = before.place_of(&self.name_of(doc)).map(|place| before.doc_at(place));
        let Some((before, old)) = old.filter(|&(layer, old)| old < layer.drops_by_rank.len())
        else {
            return;
        };
        if doc >= listed.len() {
            let is_released = Day::raw(today) >= listed.release(doc);
            let kind = if is_released { ChangeKind::RegisteredAgain } else { ChangeKind::Renewed };
            changes.push(self.change(doc, kind, ChangeSource::List));
            return;
        }
        // A list changed the release.
        if let Some(kind) = self.expected(doc, today)
            && before.expected(old, today) != Some(kind)
        {
            changes.push(self.change(doc, kind, ChangeSource::Calendar));
        }
        let (dqs_before, dqs) = (before.drops_by_rank.dqs(old), listed.dqs(doc));
        if dqs.points().abs_diff(dqs_before.points()) >= RESCORED_BY_MIN {
            let change = self.change(doc, ChangeKind::Rescored, ChangeSource::List);
            changes.push(DropChange { dqs_before: Some(dqs_before), ..change });
        }
    }

    /// Returns the last change of a doc by the calendar.
    fn expected(&self, doc: u32, today: Day) -> Option<ChangeKind> {
        let listed = &self.drops_by_rank;
        let left = i32::from(listed.release(doc)) - i32::from(today.raw());
        let pending = i32::from(self.tlds.pending_days(listed.tld(doc)));
        match left {
            ..0 => Some(ChangeKind::Available),
            0 => Some(ChangeKind::DropsToday),
            1 => Some(ChangeKind::DropsTomorrow),
            _ if left <= pending => Some(ChangeKind::PendingDelete),
            _ => None,
        }
    }

    /// Collects the changes that `find` adds for each visible doc below `docs`, in order.
    fn changes(
        &self,
        docs: u32,
        find: impl Fn(u32, &mut Vec<DropChange>) + Sync,
    ) -> Vec<DropChange> {
        let pieces: Vec<Vec<DropChange>> = (0..docs.div_ceil(DOCS_PER_PIECE))
            .into_par_iter()
            .map(|at| at * DOCS_PER_PIECE..docs.min((at + 1) * DOCS_PER_PIECE))
            .map(|docs| {
                let mut changes = Vec::new();
                let visible = docs.filter(|&doc| self.shows_doc(doc));
                visible.for_each(|doc| find(doc, &mut changes));
                changes
            })
            .collect();
        pieces.concat()
    }
}

/// A filter for single names, on one index and day. A name that never dropped does not pass.
pub struct NameTest<'a> {
    index: &'a Index,
    /// Checks by layer.
    checks: Vec<DropChecks<'a>>,
    /// Stages of the day, and the bits of those that pass.
    view: Option<(Arc<DayIndex>, u8)>,
}

impl NameTest<'_> {
    /// Returns true if a canonical name passes.
    pub fn passes(&self, name: &str) -> bool {
        self.index.place_of(name).is_some_and(|place| {
            let (layer, doc) = self.index.layer_at(place);
            let code = |day: &DayIndex| day.layers[layer].stages.code(doc);
            self.view.as_ref().is_none_or(|(day, mask)| code(day) & mask != 0)
                && self.checks[layer].passes(doc)
        })
    }
}
