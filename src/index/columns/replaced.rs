//! Names of a base that a delta replaces: the names in the batches of the base whose labels also
//! occur in newer batches. These names are counted in the same way as in the build of the base.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::columns::hidden::NameCounts;
use crate::columns::table::{Omission, omission};
use crate::corpus::batch::Batch;
use crate::corpus::merge::{self, Dossiers, Merge};
use crate::error::BuildError;
use crate::vocab::day::Day;

/// Counts of replaced names.
#[derive(Debug, Default)]
pub struct Replaced {
    pub counts: NameCounts,
    /// Number of omitted names: an installed Public Suffix List splits them at another dot.
    pub left_out: u64,
    /// Whether a name dropped on a day, by [`Day::raw`].
    dropped_on: Vec<bool>,
}

impl Replaced {
    /// Counts the names of `batches` that have a label of `newer`, on all cores.
    ///
    /// # Errors
    /// A batch does not decode.
    pub fn count(batches: &[Batch], newer: &[Batch]) -> Result<Replaced, BuildError> {
        let cuts = merge::cuts(newer, rayon::current_num_threads());
        (0..=cuts.len())
            .into_par_iter()
            .map(|at| {
                let from = at.checked_sub(1).map_or(&[] as &[u8], |at| &cuts[at]);
                let names = Dossiers::of_labels(batches, newer, from)?;
                Replaced::count_range(names, cuts.get(at).map(Vec::as_slice))
            })
            .try_reduce(Replaced::default, |one, other| Ok(one.plus(other)))
    }

    fn count_range(mut names: Dossiers<'_>, to: Option<&[u8]>) -> Result<Replaced, BuildError> {
        let dropped_on = vec![false; usize::from(u16::MAX) + 1];
        let mut found = Replaced { dropped_on, ..Replaced::default() };
        while let Some(dossier) = names.gather()? {
            if to.is_some_and(|to| dossier.name >= to) {
                break;
            }
            if let Some(why) = omission(&dossier) {
                found.left_out += u64::from(why == Omission::Suffix);
                continue;
            }
            found.counts.names += 1;
            if let Some(latest) = dossier.drops.last() {
                found.counts.dropped += 1;
                found.counts.drops += u32::from(latest.returned.is_none());
            }
            for drop in dossier.drops {
                found.dropped_on[usize::from(drop.date.raw())] = true;
            }
        }
        Ok(found)
    }

    fn plus(mut self, other: Replaced) -> Replaced {
        self.counts.names += other.counts.names;
        self.counts.dropped += other.counts.dropped;
        self.counts.drops += other.counts.drops;
        self.left_out += other.left_out;
        if self.dropped_on.is_empty() {
            return Replaced { dropped_on: other.dropped_on, ..self };
        }
        self.dropped_on.iter_mut().zip(other.dropped_on).for_each(|(all, other)| *all |= other);
        self
    }

    /// Returns the days on which one of the names dropped.
    pub fn drop_dates(&self) -> BTreeSet<Day> {
        let days = (0..=u16::MAX).zip(&self.dropped_on);
        days.filter(|(_, dropped)| **dropped).filter_map(|(raw, _)| Day::from_raw(raw)).collect()
    }
}

/// Returns those of `dates` on which only names with the labels of `newer` dropped. Reads names of
/// `batches` until each date is found, which usually takes few names.
///
/// # Errors
/// A batch does not decode.
pub fn dates_without(
    mut dates: BTreeSet<Day>,
    batches: &[Batch],
    newer: &[Batch],
) -> Result<BTreeSet<Day>, BuildError> {
    let (mut names, mut newer) = (Dossiers::new(batches, b"")?, Merge::new(newer, b"")?);
    while !dates.is_empty()
        && let Some(dossier) = names.gather()?
    {
        let is_of_one = dossier.drops.iter().any(|drop| dates.contains(&drop.date));
        if !is_of_one || omission(&dossier).is_some() {
            continue;
        }
        let label = dossier.name.get(..=dossier.label_len.into()).unwrap_or(dossier.name);
        newer.seek(label)?;
        if !newer.peek().is_some_and(|entry| entry.name.starts_with(label)) {
            dossier.drops.iter().for_each(|drop| {
                dates.remove(&drop.date);
            });
        }
    }
    Ok(dates)
}
