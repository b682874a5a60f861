//! How the service is watched: requests and the state of things in, metrics and lines of the log out.
//!
//! What happens is counted where it happens, by the macros of `metrics`; here is what all of it has in
//! common: the names ([`catalogue`]), the listener that gives them away ([`listener`]), what is told of
//! every request ([`requests`]), which one a line of the log is about ([`current`]), what is told of every long query ([`query`]), the journal's disk as it is
//! watched ([`disk`]) and the process ([`process`]). Without a listener the macros do nothing.
//!
//! No metric has a label that a client can make up: routes are templates, methods and statuses are
//! classes.

pub mod catalogue;
pub mod current;
pub mod disk;
pub mod listener;
pub mod logs;
pub mod process;
pub mod query;
pub mod requests;
