//! Daily zone files: finds which names left a zone permanently, and which only for a while.
//!
//! A name without a delegation has not necessarily dropped: owners pay late and renew, registrars put names
//! on hold, servers publish incomplete zones. `data/docs/sources.md` describes the rules and their sources.
//! [`Tracker`] stores the names of the zone and the missing ones, processes one zone file a day, and writes
//! lists of drops, which [`crate::feeds`] reads like any others.
//!
//! | file | content |
//! | --- | --- |
//! | `owners` | a zone file → owners of delegations, and whether the file is complete |
//! | `registry` | a registry's list of its names → the same |
//! | `snapshot` | names → a sorted file |
//! | `names` | that file |
//! | `ns_class` | a name server → how its names are used |
//! | `compare` | yesterday's and today's file, and the missing names → names that left, appeared and returned |
//! | `tracker` | which files are in use; when to believe a day with too many changes |

mod compare;
mod error;
mod names;
mod ns_class;
mod owners;
mod registry;
mod snapshot;
mod tracker;

#[cfg(test)]
mod tests;

use dropdex_feeds as feeds;
use dropdex_vocab as vocab;

pub use compare::{Changes, Keep, NS_CLASS, ZoneSource};
pub use error::ZoneError;
pub use registry::apex as registry_apex;
pub use tracker::{Applied, DropsFile, Tracker, ZoneOutcome};
