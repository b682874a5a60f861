//! A dropped name with the data of an alert.

use serde::Serialize;
use utoipa::ToSchema;

use crate::day::Day;
use crate::dqs::Dqs;
use crate::name::DomainName;
use crate::release_time::{Certainty, Release, ReleaseTime, SecondOfDay};
use crate::stage::Stage;

/// A name that a rule matched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DroppedName {
    pub name: DomainName,
    pub dqs: Dqs,
    /// The day it left its zone.
    pub drop_date: Day,
    /// Effective release: first day on which the name can be registered.
    pub release: Day,
    /// Second of that day, if a list states it.
    pub release_second: Option<SecondOfDay>,
    /// Stage on the day of the message.
    pub stage: Stage,
}

impl DroppedName {
    pub fn release_time(&self) -> ReleaseTime {
        ReleaseTime::of(self.name.tld(), Release::new(self.release, self.release_second))
    }
}

/// A name that a rule matched, as webhooks send it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertName<'a> {
    #[schema(value_type = String)]
    domain: &'a DomainName,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    dqs: Dqs,
    /// The day it left its zone.
    #[schema(value_type = String, format = Date)]
    drop_date: Day,
    /// Effective release: first day on which the name can be registered.
    #[schema(value_type = String, format = Date)]
    release_date: Day,
    /// Start of the release on that day; `null` if its hour is not known.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    release_at: Option<String>,
    /// How sure the hour is.
    release_certainty: Certainty,
    /// Minutes from `releaseAt`, or from the start of the day, within which the name is released.
    release_window_minutes: u16,
    /// Stage on the day of the message.
    stage: Stage,
}

impl<'a> From<&'a DroppedName> for AlertName<'a> {
    fn from(name: &'a DroppedName) -> AlertName<'a> {
        let ReleaseTime { at, certainty, window_minutes } = name.release_time();
        AlertName {
            domain: &name.name,
            dqs: name.dqs,
            drop_date: name.drop_date,
            release_date: name.release,
            release_at: at.map(|at| at.to_string()),
            release_certainty: certainty,
            release_window_minutes: window_minutes,
            stage: name.stage,
        }
    }
}
