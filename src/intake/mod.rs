//! Lists in, corpus and index generation out: the one pipeline behind `dropdex ingest`, `dropdex
//! rebuild`, the admin socket and the inbox.
//!
//! [`run::run`] does the work in the calling process and returns an [`outcome::Outcome`]. A server
//! never calls it: its [`queue::Queue`] starts a child process for each [`request::Request`], one at
//! a time, and exchanges one typed message in each direction with it ([`worker`]).

pub mod compact;
pub mod inbox;
pub mod message;
pub mod outcome;
pub mod queue;
pub mod request;
pub mod run;
pub mod worker;
