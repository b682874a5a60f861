//! Lists that dropdex fetches automatically: presets of public sources, and sources of the operator.
//!
//! [`settings::Source`] describes a list; [`presets`] has the known ones. [`fetch::Fetcher`] downloads
//! an address into a file or finds that nothing changed. [`run::Runner`] fetches a source, hands each new
//! file to `intake` as an inbox file is, and stores the outcome in [`state`]. [`worker::Worker`] does so by
//! schedule in a server, `dropdex sources fetch` on demand.

pub mod czds;
pub mod fetch;
pub mod presets;
pub mod run;
pub mod schedule;
pub mod settings;
pub mod state;
pub mod worker;
