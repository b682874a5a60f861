//! Converts the records of a name in all lists to its drops (`data/docs/sources.md`, "What counts as one
//! list, one drop, one release"). The result does not depend on the order in which lists were ingested.

use crate::feeds::Sighting;
use crate::vocab::day::Day;
use crate::vocab::release_time::Release;
use crate::vocab::stage::Periods;

/// One drop of a name, merged from all lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// The day the name was seen leaving its zone.
    pub date: Day,
    /// The release, if a list gives one.
    pub release: Option<Release>,
    /// Whether the name was registered again after this drop, before any later one.
    pub registered_again: bool,
}

/// A record of a drop in a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenDrop {
    drop: DropRecord,
    /// Whether the date is estimated from the release, because no list saw the name leave its zone.
    is_estimated: bool,
    /// Unix seconds.
    observed_at: i64,
    /// Number of the list.
    list: u32,
}

/// Version of the rules in this module. An index built by other rules is not extended.
pub const DROP_RULES: u32 = 3;

impl SeenDrop {
    /// Returns the record of a drop in list number `list`; `None` for another kind of sighting.
    pub(super) fn new(
        sighting: Sighting,
        observed_at: i64,
        list: u32,
        tld: impl Fn() -> Periods,
    ) -> Option<SeenDrop> {
        let (drop, is_estimated) = match sighting {
            Sighting::Dropped { date, release, registered_again } => {
                (DropRecord { date, release, registered_again }, false)
            }
            Sighting::Released { on } => {
                let date = on.day.plus(-tld().days());
                (DropRecord { date, release: Some(on), registered_again: false }, true)
            }
            Sighting::Registered { .. } | Sighting::Known { .. } => return None,
        };
        Some(SeenDrop { drop, is_estimated, observed_at, list })
    }

    pub(super) fn drop(&self) -> DropRecord {
        self.drop
    }
}

impl DropRecord {
    /// Whether a record with a later date describes the same drop: a list may repeat the drop, a zone file
    /// may confirm it, or a list may add the release of a name that left its zone. Releases one day apart
    /// count as equal.
    fn is_repeated_by(
        &self,
        later: &DropRecord,
        registrations: &[Day],
        tld: impl Fn() -> Periods,
    ) -> bool {
        let expected = || tld().effective_release(self.date, None);
        let day = |drop: &DropRecord| drop.release.map(|release| release.day);
        match (day(self), day(later)) {
            (Some(one), Some(other)) => one.days_since(other).abs() <= 1,
            _ if self.registered_again => false,
            (None, None) => {
                let between = |on: &Day| (self.date..later.date).contains(on);
                later.date <= expected() && !registrations.iter().any(between)
            }
            (Some(release), None) => later.date <= release,
            (None, Some(release)) => (self.date..=expected().plus(1)).contains(&release),
        }
    }
}

/// Joins the releases of two records of one drop.
fn joined(new: Option<Release>, old: Option<Release>) -> Option<Release> {
    match (new, old) {
        (Some(new), Some(old)) => Some(new.joined(old)),
        (new, old) => new.or(old),
    }
}

/// Joins the records of a name into one record per drop, oldest first. Of several records with the same
/// drop date, the one observed last is kept. Lists that repeat a drop do not change its date. Marks each
/// drop that was followed by a registration before the next drop. Returns the number of the first list
/// that reported the last drop.
pub(super) fn join(
    seen: &mut Vec<SeenDrop>,
    registrations: &[Day],
    tld: impl Fn() -> Periods,
    drops: &mut Vec<DropRecord>,
) -> u32 {
    // The sort is stable, so if two records were observed in the same second, the one from the
    // later list stays last.
    seen.sort_by_key(|seen| (seen.drop.date, seen.observed_at));
    seen.dedup_by(|next, kept| {
        let is_same = next.drop.date == kept.drop.date;
        if is_same {
            let list = kept.list.min(next.list);
            let is_estimated = kept.is_estimated && next.is_estimated;
            let release = next.drop.release.and_then(|new| joined(Some(new), kept.drop.release));
            let drop = DropRecord { release, ..next.drop };
            *kept = SeenDrop { drop, list, is_estimated, ..*next };
        }
        is_same
    });
    drops.clear();
    let (mut first_list, mut newest, mut is_estimated) = (0, i64::MIN, false);
    for next in &*seen {
        match drops.last_mut() {
            Some(last) if last.is_repeated_by(&next.drop, registrations, &tld) => {
                let (new, old) = if next.observed_at >= newest {
                    (next.drop, *last)
                } else {
                    (*last, next.drop)
                };
                if is_estimated && !next.is_estimated {
                    (last.date, is_estimated) = (next.drop.date, false);
                }
                last.release = joined(new.release, old.release);
                last.registered_again = new.registered_again;
                newest = newest.max(next.observed_at);
                first_list = first_list.min(next.list);
            }
            _ => {
                drops.push(next.drop);
                (first_list, newest, is_estimated) =
                    (next.list, next.observed_at, next.is_estimated);
            }
        }
    }
    for &on in registrations {
        let after = drops.partition_point(|drop| drop.date <= on);
        if let Some(before) = after.checked_sub(1) {
            drops[before].registered_again = true;
        }
    }
    first_list
}
