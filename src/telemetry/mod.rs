//! Metrics and logs.
//!
//! Code counts events where they happen, with the macros of the `metrics` crate. This module contains
//! the shared parts: the list of all metrics ([`catalogue`]), the `/metrics` endpoint ([`listener`]),
//! request ids, counts and access logs ([`requests`]), the request that a log line belongs to
//! ([`current`]), query times ([`query`]), the metered disk of the journal ([`disk`]) and the process
//! ([`process`]). Without a listener, the macros do nothing.
//!
//! No label contains text chosen by clients: route labels are templates, and method and status
//! labels are classes.

pub mod catalogue;
pub mod current;
pub mod disk;
pub mod listener;
pub mod logs;
pub mod process;
pub mod query;
pub mod requests;
pub mod security;

use dropdex_journal as journal;
use dropdex_vocab as vocab;
