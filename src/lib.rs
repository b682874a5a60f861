//! dropdex: self-hosted, in-memory search for domain names that are leaving registration.
//!
//! `ARCHITECTURE.md` in this folder follows a name, a query and a write through the rooms. Rooms
//! that are crates of their own are re-exported here by their short names.

pub use dropdex_accounts as accounts;
pub use dropdex_changes as changes;
pub use dropdex_cluster as cluster;
pub use dropdex_copies as copies;
pub use dropdex_corpus as corpus;
pub use dropdex_edge as edge;
pub use dropdex_facts as facts;
pub use dropdex_feeds as feeds;
pub use dropdex_http as http;
pub use dropdex_index as index;
pub use dropdex_intake as intake;
pub use dropdex_journal as journal;
pub use dropdex_outbound as outbound;
pub use dropdex_query as query;
pub use dropdex_sales as sales;
pub use dropdex_scorer as scorer;
pub use dropdex_service as service;
pub use dropdex_sources as sources;
pub use dropdex_telemetry as telemetry;
pub use dropdex_vocab as vocab;
pub use dropdex_web as web;
pub use dropdex_zones as zones;

pub mod backup;
pub mod bucket;
pub mod workers;
pub mod server;
pub mod config;
pub mod exit;
// A build without the feature refuses settings with a section `[cluster]`.
#[cfg_attr(not(feature = "cluster"), path = "nodes/without.rs")]
pub mod nodes;
pub mod app;
pub mod cli;
