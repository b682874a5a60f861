//! Daily zone files: which names left the zone permanently, and which only for a while.
//!
//! A name without delegation is not necessarily dropped: owners forget to pay and renew, registrars put
//! names on hold, servers publish incomplete zones. `data/docs/sources.md` has the rules and their sources.
//! [`Tracker`] keeps the names of the zone and the missing ones, processes one zone file a day, and writes
//! lists of drops that [`crate::feeds`] reads like any other.
//!
//! | file | content |
//! | --- | --- |
//! | `owners` | a zone file → owners of delegations, and whether the file is complete |
//! | `registry` | a registry's list of its names → the same |
//! | `snapshot` | names → a sorted file |
//! | `names` | that file |
//! | `compare` | yesterday's and today's file, and the missing names → names that left, appeared and returned |
//! | `tracker` | which files are in use; when to believe a day with too many changes |

mod compare;
mod error;
mod names;
mod owners;
mod registry;
mod snapshot;
mod tracker;

#[cfg(test)]
mod tests;

use dropdex_feeds as feeds;
use dropdex_vocab as vocab;

pub use compare::{Changes, Keep, Kind};
pub use error::ZoneError;
pub use registry::apex as registry_apex;
pub use tracker::{Applied, List, Outcome, Tracker};
