//! Changes of names between two generations and between two days, and the test whether a name passes a
//! filter. In: the lists and the day up to which changes are known. Out: docs with the kind of change, in
//! rank order.
//!
//! Columns are read in doc order; only names whose drop is recent are looked up in the generation before.

use std::sync::Arc;

use rayon::prelude::*;

use crate::index::columns::checks::DropChecks;
use crate::index::filter::{AsOf, View};
use crate::index::query::index::{DayIndex, Index};
use crate::vocab::change::{ChangeKind, ChangeSource};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::filter::Filter;

/// Docs per parallel task.
const DOCS_PER_PIECE: u32 = 1 << 16;
/// Minimum change of a score, in points, that is reported.
const RESCORED_BY_MIN: u8 = 5;
/// Days after its release in which a registration of a name is a change.
const RECENT_DAYS: i32 = 90;

/// A change of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocChange {
    pub doc: u32,
    pub kind: ChangeKind,
    pub source: ChangeSource,
    /// The score before, for [`ChangeKind::Rescored`].
    pub dqs_before: Option<Dqs>,
}

impl DocChange {
    fn new(doc: u32, kind: ChangeKind, source: ChangeSource) -> DocChange {
        DocChange { doc, kind, source, dqs_before: None }
    }
}

impl Index {
    /// Returns the changes that the calendar brings on `day`, of names whose drop was known with list
    /// number `through`.
    pub fn changes_of_day(&self, day: Day, through: u64) -> Vec<DocChange> {
        let listed = &self.drops_by_rank;
        self.changes(listed.len(), |doc, changes| {
            let left = i32::from(listed.release(doc)) - i32::from(day.raw());
            if !(-1..=i32::from(u16::MAX)).contains(&left)
                || u64::from(listed.first_batches().number(doc)) > through
            {
                return;
            }
            let pending = self.tlds.pending_days(listed.tld(doc));
            let mut add = |kind| changes.push(DocChange::new(doc, kind, ChangeSource::Calendar));
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

    /// Returns the changes that lists after number `since` bring, and those from the generation
    /// `before` to this one. Without `before`, the latter are unknown and left out.
    ///
    /// A drop that a list carries first gets what the calendar says about it today as well: the days on
    /// which it would have come are over.
    pub fn changes_of_lists(
        &self,
        before: Option<&Index>,
        since: u64,
        as_of: AsOf,
    ) -> Vec<DocChange> {
        let listed = &self.drops_by_rank;
        let (on_list, catch_days) = (listed.len(), i32::from(as_of.catch_days));
        let dropped = listed.dropped();
        self.changes(dropped, |doc, changes| {
            let left = i32::from(listed.release(doc)) - i32::from(as_of.today.raw());
            let is_active = left > -catch_days;
            if doc < on_list && u64::from(listed.first_batches().number(doc)) > since {
                if is_active {
                    changes.push(DocChange::new(doc, ChangeKind::LeftZone, ChangeSource::List));
                    let kind = self.expected(doc, as_of.today);
                    changes.extend(kind.map(|it| DocChange::new(doc, it, ChangeSource::Calendar)));
                }
            } else if let Some(before) = before
                && (if doc < on_list { is_active } else { left > -RECENT_DAYS })
            {
                self.changes_since(before, doc, as_of.today, changes);
            }
        })
    }

    /// Adds the changes of a known doc from `before` to this generation.
    fn changes_since(&self, before: &Index, doc: u32, today: Day, changes: &mut Vec<DocChange>) {
        let listed = &self.drops_by_rank;
        let name = self.name_of(doc);
        let Some(old) = before.doc_of(&name).filter(|old| *old < before.drops_by_rank.len()) else {
            return;
        };
        if doc >= listed.len() {
            let is_released = Day::raw(today) >= listed.release(doc);
            let kind = if is_released { ChangeKind::RegisteredAgain } else { ChangeKind::Renewed };
            changes.push(DocChange::new(doc, kind, ChangeSource::List));
            return;
        }
        // A list gave another release.
        if let Some(kind) = self.expected(doc, today)
            && before.expected(old, today) != Some(kind)
        {
            changes.push(DocChange::new(doc, kind, ChangeSource::Calendar));
        }
        let (dqs_before, dqs) = (before.drops_by_rank.dqs(old), listed.dqs(doc));
        if dqs.points().abs_diff(dqs_before.points()) >= RESCORED_BY_MIN {
            let change = DocChange::new(doc, ChangeKind::Rescored, ChangeSource::List);
            changes.push(DocChange { dqs_before: Some(dqs_before), ..change });
        }
    }

    /// Returns the change that the calendar brought last for a doc.
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

    /// Collects what `find` adds for each doc below `docs`, in order.
    fn changes(&self, docs: u32, find: impl Fn(u32, &mut Vec<DocChange>) + Sync) -> Vec<DocChange> {
        let pieces: Vec<Vec<DocChange>> = (0..docs.div_ceil(DOCS_PER_PIECE))
            .into_par_iter()
            .map(|at| at * DOCS_PER_PIECE..docs.min((at + 1) * DOCS_PER_PIECE))
            .map(|docs| {
                let mut changes = Vec::new();
                docs.for_each(|doc| find(doc, &mut changes));
                changes
            })
            .collect();
        pieces.concat()
    }

    /// Prepares a filter for single names.
    pub fn name_test(&self, filter: &Filter, view: Option<View>, as_of: AsOf) -> NameTest<'_> {
        let columns = self.drops_by_rank.columns(&self.records);
        NameTest {
            index: self,
            checks: DropChecks::new(columns, filter, &self.tlds),
            view: view.map(|view| (self.day(as_of), view.code_mask())),
        }
    }
}

/// A filter for single names, with the facts of one generation and day. A name that never dropped does
/// not pass.
pub struct NameTest<'a> {
    index: &'a Index,
    checks: DropChecks<'a>,
    /// Stages of the day and those that pass.
    view: Option<(Arc<DayIndex>, u8)>,
}

impl NameTest<'_> {
    /// Returns true if a canonical name passes.
    pub fn passes(&self, name: &str) -> bool {
        self.index.doc_of(name).is_some_and(|doc| {
            let code = |day: &DayIndex| day.stages.code(doc);
            self.view.as_ref().is_none_or(|(day, mask)| code(day) & mask != 0)
                && self.checks.passes(doc)
        })
    }
}
