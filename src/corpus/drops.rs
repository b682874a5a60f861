//! Converts the records of a name in all lists to its drops (`data/docs/sources.md`, "What counts as one
//! list, one drop, one release"). The result does not depend on the order in which lists were ingested.

use chrono::DateTime;

use crate::feeds::Sighting;
use crate::vocab::day::Day;
use crate::vocab::outcome::{Completeness, Sighted};
use crate::vocab::release_time::Release;
use crate::vocab::stage::Periods;

/// One drop of a name, merged from all lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// The day the name was seen leaving its zone.
    pub date: Day,
    /// The release, if a list gives one.
    pub release: Option<Release>,
    /// The registration of the name after this drop and before any later one, if a list shows it.
    pub returned: Option<Sighted>,
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
pub const DROP_RULES: u32 = 4;

impl SeenDrop {
    /// Returns the record of a drop in list number `list`; `None` for another kind of sighting.
    pub(super) fn new(
        sighting: Sighting,
        observed_at: i64,
        (list, shown): (u32, Completeness),
        tld: impl Fn() -> Periods,
    ) -> Option<SeenDrop> {
        let (drop, is_estimated) = match sighting {
            Sighting::Dropped { date, release, registered_again } => {
                let observed = observed_on(observed_at);
                // A list of all names has the name again on its own day.
                let on = (shown == Completeness::Complete).then_some(observed);
                let returned = registered_again.then_some(Sighted { on, observed, shown });
                (DropRecord { date, release, returned }, false)
            }
            Sighting::Released { on } => {
                let date = on.day.plus(-tld().days());
                (DropRecord { date, release: Some(on), returned: None }, true)
            }
            Sighting::Registered { .. } | Sighting::Known { .. } => return None,
        };
        Some(SeenDrop { drop, is_estimated, observed_at, list })
    }

    pub(super) fn drop(&self) -> DropRecord {
        self.drop
    }
}

/// Returns the day of an observation, in Unix seconds.
pub(super) fn observed_on(observed_at: i64) -> Day {
    Day::nearest(DateTime::from_timestamp(observed_at, 0).unwrap_or_default())
}

impl DropRecord {
    /// Whether a record with a later date describes the same drop: a list may repeat the drop, a zone file
    /// may confirm it, or a list may add the release of a name that left its zone. Releases one day apart
    /// count as equal.
    fn is_repeated_by(
        &self,
        later: &DropRecord,
        registrations: &[Sighted],
        tld: impl Fn() -> Periods,
    ) -> bool {
        let expected = || tld().effective_release(self.date, None);
        let day = |drop: &DropRecord| drop.release.map(|release| release.day);
        match (day(self), day(later)) {
            (Some(one), Some(other)) => one.days_since(other).abs() <= 1,
            _ if self.returned.is_some() => false,
            (None, None) => {
                let between =
                    |it: &Sighted| it.on.is_some_and(|on| (self.date..later.date).contains(&on));
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

/// Joins the registrations that two records of one drop state: the newer one wins if it states none.
fn joined_return(new: Option<Sighted>, old: Option<Sighted>) -> Option<Sighted> {
    new.map(|new| old.map_or(new, |old| new.or_better(old)))
}

/// Joins the records of a name into one record per drop, oldest first. Of several records with the same
/// drop date, the one observed last is kept. Lists that repeat a drop do not change its date. Marks each
/// drop that was followed by a registration before the next drop. Returns the number of the first list
/// that reported the last drop.
pub(super) fn join(
    seen: &mut Vec<SeenDrop>,
    registrations: &[Sighted],
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
            let returned = joined_return(next.drop.returned, kept.drop.returned);
            let drop = DropRecord { release, returned, ..next.drop };
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
                last.returned = joined_return(new.returned, old.returned);
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
    for &sighted in registrations {
        let after = drops.partition_point(|drop| Some(drop.date) <= sighted.on);
        if let Some(before) = after.checked_sub(1) {
            let returned = &mut drops[before].returned;
            *returned = Some(returned.map_or(sighted, |known| known.or_better(sighted)));
        }
    }
    first_list
}
