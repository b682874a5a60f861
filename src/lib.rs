//! dropdex: a self-hosted, in-memory, indexed search service for domain names that are leaving
//! registration.
//!
//! The modules stand in the order a name goes through them; `ARCHITECTURE.md` beside this file
//! walks a name, a query and a write through the code.

pub mod vocab;
// A list, from the door to the answer.
pub mod feeds;
pub mod scorer;
pub mod corpus;
pub mod index;
pub mod intake;
// What users own.
pub mod journal;
pub mod accounts;
// The service around them.
pub mod telemetry;
pub mod outbound;
pub mod workers;
pub mod http;
pub mod web;
pub mod server;
pub mod config;
pub mod app;
pub mod cli;
