//! Lists that dropdex fetches automatically: presets of public sources, and sources defined by the
//! operator.
//!
//! [`settings::Source`] describes a list; [`presets`] contains the known ones. [`fetch::Fetcher`] downloads
//! a URL to a file, unless it has not changed. [`run::Runner`] fetches a source, passes each new file to
//! `intake` like a file of the inbox, and stores the outcome in [`state`]. [`worker::Worker`] runs sources
//! on schedule in a server; `dropdex sources fetch` runs them on demand.

pub mod czds;
pub mod fetch;
pub mod presets;
pub mod run;
pub mod schedule;
pub mod settings;
pub mod state;
pub mod worker;

use dropdex_facts as facts;
use dropdex_feeds as feeds;
use dropdex_intake as intake;
use dropdex_outbound as outbound;
use dropdex_vocab as vocab;
