//! Raw lists in, [`Row`]s out: what registries and vendors publish, as observations of names.
//!
//! A reader streams: memory does not grow with the file. Nothing here writes, or knows what the
//! corpus already holds.

use chrono::{DateTime, Utc};

use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// What one list says about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The name it is about.
    pub name: DomainName,
    /// What was seen.
    pub sighting: Sighting,
    /// The day the name was first seen registered, where the list says so.
    pub first_seen: Option<Day>,
    /// When it was seen: the row's own time, else the list's.
    pub observed_at: DateTime<Utc>,
}

/// The kinds of things lists say (decisions.md §2, §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// The name left its zone on `date`; the registry frees it on `release`, where the list says.
    Dropped { date: Day, release: Option<Day>, registered_again: bool },
    /// The name was newly registered on `on`: a drop on or before that day is undone.
    Registered { on: Day },
    /// The name exists; `registered` when the list says it is held. No drop is meant.
    Known { registered: bool },
}
