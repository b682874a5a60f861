//! dropdex: self-hosted, in-memory search for domain names that are leaving registration.
//!
//! The modules are in the order in which a name passes them. `ARCHITECTURE.md` in this folder follows a
//! name, a query and a write through the code.

pub mod vocab;
pub mod query;
// From a list to a query result.
pub mod feeds;
pub mod zones;
pub mod scorer;
pub mod corpus;
pub mod index;
pub mod intake;
pub mod changes;
// User data.
pub mod journal;
pub mod cluster;
pub mod accounts;
pub mod backup;
// The service.
pub mod telemetry;
pub mod outbound;
pub mod sources;
pub mod service;
pub mod workers;
pub mod edge;
pub mod http;
pub mod web;
pub mod server;
pub mod config;
// In a build without the feature, settings with a section `[cluster]` are refused.
#[cfg_attr(not(feature = "cluster"), path = "nodes/without.rs")]
pub mod nodes;
pub mod app;
pub mod cli;
