//! dropdex: self-hosted, in-memory search for domain names that are leaving registration.
//!
//! `ARCHITECTURE.md` in this folder follows a name, a query and a write through the rooms. Rooms
//! that are crates of their own are re-exported here by their short names.

pub use dropdex_accounts as accounts;
pub use dropdex_changes as changes;
pub use dropdex_cluster as cluster;
pub use dropdex_corpus as corpus;
pub use dropdex_feeds as feeds;
pub use dropdex_index as index;
pub use dropdex_journal as journal;
pub use dropdex_outbound as outbound;
pub use dropdex_query as query;
pub use dropdex_scorer as scorer;
pub use dropdex_telemetry as telemetry;
pub use dropdex_vocab as vocab;
pub use dropdex_zones as zones;

pub mod intake;
pub mod backup;
pub mod sources;
pub mod service;
pub mod workers;
pub mod edge;
pub mod http;
pub mod web;
pub mod server;
pub mod config;
// A build without the feature refuses settings with a section `[cluster]`.
#[cfg_attr(not(feature = "cluster"), path = "nodes/without.rs")]
pub mod nodes;
pub mod app;
pub mod cli;
