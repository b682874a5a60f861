//! A dropped name with the data of an alert.

use serde::Serialize;
use utoipa::ToSchema;

use crate::day::Day;
use crate::dqs::Dqs;
use crate::name::DomainName;
use crate::stage::Stage;

/// A name that a rule matched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AlertName)]
pub struct DroppedName {
    #[serde(rename = "domain")]
    #[schema(value_type = String)]
    pub name: DomainName,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    pub dqs: Dqs,
    // The day it left its zone.
    #[schema(value_type = String, format = Date)]
    pub drop_date: Day,
    /// Effective release: first day on which the name can be registered.
    #[serde(rename = "releaseDate")]
    #[schema(value_type = String, format = Date)]
    pub release: Day,
    /// Stage on the day of the message.
    pub stage: Stage,
}
