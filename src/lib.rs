//! dropdex: a self-hosted, in-memory, indexed search service for domain names that are leaving
//! registration.
//!
//! The modules stand in the order a name goes through them; `ARCHITECTURE.md` beside this file
//! walks a name, a query and a write through the code.

pub mod vocab;
pub mod feeds;
pub mod scorer;
pub mod corpus;
pub mod index;
pub mod journal;
pub mod accounts;
pub mod workers;
pub mod http;
pub mod config;
