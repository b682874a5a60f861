//! A change of a watched name, as its watchers receive it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::change::{Change, ChangeKind};
use crate::day::Day;
use crate::dqs::Dqs;
use crate::name::DomainName;

/// A change of a watched name.
// Stored by the positions of the fields: append only. The names of the fields are those of the API
// and of webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchedChange {
    pub kind: ChangeKind,
    #[serde(rename = "domain")]
    #[schema(value_type = String)]
    pub name: DomainName,
    /// The UTC day on which it happened; for a renewal, that on which it is due.
    #[schema(value_type = String, format = Date)]
    pub day: Day,
    /// Whether the registry or a list said so; false when the calendar expects it.
    pub verified: bool,
    /// The score at the time; `null` for a name that is not in the corpus.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 100, required)]
    pub dqs: Option<Dqs>,
    /// The score before, if the change is about it.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 100, required)]
    pub dqs_before: Option<Dqs>,
}

impl WatchedChange {
    /// Returns the change in words that follow the name: `drops tomorrow, 2026-11-24`.
    pub fn words(&self) -> String {
        let day = self.day;
        match self.kind {
            ChangeKind::LeftZone => format!("left its zone, {day}"),
            ChangeKind::PendingDelete if self.verified => format!("is in pending delete, {day}"),
            ChangeKind::PendingDelete => format!("is expected in pending delete, {day}"),
            ChangeKind::DropsTomorrow => format!("drops tomorrow, {}", day.plus(1)),
            ChangeKind::DropsToday => format!("drops today, {day}"),
            ChangeKind::DropsInAnHour => format!("drops within an hour, {day}"),
            ChangeKind::RenewalDue => format!("is due for renewal on {day}"),
            ChangeKind::Available if self.verified => format!("is available, verified {day}"),
            ChangeKind::Available => format!("is expected to be available, not verified, {day}"),
            ChangeKind::Renewed => format!("was renewed, {day}"),
            ChangeKind::RegisteredAgain => format!("was registered again, {day}"),
            ChangeKind::Rescored => match (self.dqs_before, self.dqs) {
                (Some(before), Some(after)) => {
                    format!("was scored {after}, before {before}, {day}")
                }
                _ => format!("was rescored, {day}"),
            },
        }
    }
}

impl From<&Change> for WatchedChange {
    fn from(change: &Change) -> WatchedChange {
        let Change { kind, name, day, dqs, dqs_before, .. } = change;
        WatchedChange {
            kind: *kind,
            name: name.clone(),
            day: *day,
            verified: change.verified(),
            dqs: *dqs,
            dqs_before: *dqs_before,
        }
    }
}
