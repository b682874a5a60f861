//! Daily zone files: which names left the zone permanently, and which only for a while.
//!
//! A name without delegation is not necessarily dropped: owners forget to pay and renew, registrars put
//! names on hold, servers publish half a zone. `data/docs/sources.md` has the rules and where they are
//! from. [`Tracker`] keeps what was in the zone and what is missing, takes one zone file a day, and writes
//! lists of drops that [`crate::feeds`] reads like any other.
//!
//! | file | content |
//! | --- | --- |
//! | `owners` | a zone file → owners of delegations, and whether the file is whole |
//! | `registry` | a registry's list of its names → the same |
//! | `snapshot` | names → a sorted file |
//! | `names` | that file |
//! | `compare` | yesterday's and today's file, and the missing names → what left, came and came back |
//! | `tracker` | which files are in use; what a day with too many changes means |

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
