//! Events of names: changes of state that the service derives from lists, the calendar and RDAP
//! (`data/docs/changes.md`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::day::Day;
use crate::dqs::Dqs;
use crate::name::DomainName;
use crate::named::{named_enum, parse_named};

named_enum! {
    /// Kind of an event.
    // The change log and user data store a kind by its position in this list, and sets as bits, so
    // only append to the list.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum ChangeKind {
        /// A list carried a drop of the name for the first time.
        LeftZone = "left-zone",
        /// The name cannot be restored any more; the registry will release it.
        PendingDelete = "pending-delete",
        /// The registry releases the name on the next day.
        DropsTomorrow = "drops-tomorrow",
        /// The registry releases the name on this day.
        DropsToday = "drops-today",
        /// The name can be registered.
        Available = "available",
        /// The holder kept the name.
        Renewed = "renewed",
        /// The name was registered again after its drop.
        RegisteredAgain = "registered-again",
        /// The score rose or fell by 5 points or more.
        Rescored = "rescored",
        /// The registry releases the name within the next hour. Only for watched names whose hour is known.
        DropsInAnHour = "drops-in-an-hour",
        /// A name of the portfolio is due for renewal in 60, 30 or 7 days. Only in watch alerts.
        RenewalDue = "renewal-due",
    }
}

parse_named!(ChangeKind);

impl ChangeKind {
    /// Returns the kind at a position in the list.
    pub fn at(place: u8) -> Option<ChangeKind> {
        ChangeKind::ALL.get(usize::from(place)).copied()
    }
}

/// Set of kinds, one bit each. Unknown bits are dropped on construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct ChangeKinds(u32);

impl ChangeKinds {
    /// No kind.
    pub const NONE: ChangeKinds = ChangeKinds(0);

    /// All kinds.
    pub const ALL: ChangeKinds = ChangeKinds((1 << ChangeKind::ALL.len()) - 1);

    /// Returns the set with `kind` added.
    #[must_use]
    pub fn with(self, kind: ChangeKind) -> ChangeKinds {
        ChangeKinds(self.0 | 1 << kind as u32)
    }

    /// Returns true if `kind` is in the set.
    pub fn has(self, kind: ChangeKind) -> bool {
        self.0 & 1 << kind as u32 != 0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the kinds in the order of [`ChangeKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = ChangeKind> {
        ChangeKind::ALL.into_iter().filter(move |&kind| self.has(kind))
    }
}

impl From<u32> for ChangeKinds {
    fn from(bits: u32) -> ChangeKinds {
        ChangeKinds(bits & ChangeKinds::ALL.0)
    }
}

impl From<ChangeKinds> for u32 {
    fn from(kinds: ChangeKinds) -> u32 {
        kinds.0
    }
}

impl FromIterator<ChangeKind> for ChangeKinds {
    fn from_iter<I: IntoIterator<Item = ChangeKind>>(kinds: I) -> ChangeKinds {
        kinds.into_iter().fold(ChangeKinds::NONE, ChangeKinds::with)
    }
}

named_enum! {
    /// Origin of an event.
    // The change log stores it by its position in this list, so only append to the list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
    #[schema(rename_all = "snake_case")]
    pub enum ChangeSource {
        /// A list, or a score computed from lists.
        List = "list",
        /// The calendar: expected from the lifecycle of the suffix.
        Calendar = "calendar",
        /// A response of the registry about a watched name.
        Registry = "registry",
    }
}

/// One event of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Place in the log: unique, and higher than that of every earlier event.
    pub seq: u64,
    pub kind: ChangeKind,
    pub source: ChangeSource,
    pub name: DomainName,
    /// UTC day on which it happened.
    pub day: Day,
    /// The score at the time; `None` for a name that is not in the lists.
    pub dqs: Option<Dqs>,
    /// The previous score; `Some` only for [`ChangeKind::Rescored`].
    pub dqs_before: Option<Dqs>,
    /// Effective release of the latest drop at the time, if there is a drop.
    pub release: Option<Day>,
}

/// Returns true if an event reveals that its name is watched. Only accounts that watch it may see it.
pub fn is_personal(kind: ChangeKind, source: ChangeSource) -> bool {
    source == ChangeSource::Registry
        || matches!(kind, ChangeKind::DropsInAnHour | ChangeKind::RenewalDue)
}

impl Change {
    /// Returns true if a list or the registry reported the event, and false if it is expected by
    /// the calendar.
    pub fn verified(&self) -> bool {
        self.source != ChangeSource::Calendar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_names_of_kinds_are_stable() {
        for (place, kind) in ChangeKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            assert_eq!(ChangeKind::at(place as u8), Some(kind));
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).expect("JSON"), format!("\"{kind}\""));
        }
        assert_eq!(ChangeKind::at(ChangeKind::ALL.len() as u8), None);
        assert!("dropped".parse::<ChangeKind>().is_err());
    }

    #[test]
    fn sets_contain_their_members() {
        let some: ChangeKinds =
            [ChangeKind::Renewed, ChangeKind::DropsTomorrow].into_iter().collect();
        assert!(some.has(ChangeKind::Renewed) && !some.has(ChangeKind::Available));
        let kinds: Vec<_> = some.iter().collect();
        assert_eq!(kinds, [ChangeKind::DropsTomorrow, ChangeKind::Renewed]);
        assert_eq!(ChangeKinds::from(u32::from(some)), some);
        assert_eq!(ChangeKinds::from(u32::MAX), ChangeKinds::ALL);
        assert!(ChangeKinds::NONE.is_empty() && ChangeKinds::default().is_empty());
    }
}
