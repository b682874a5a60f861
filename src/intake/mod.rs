//! The pipeline from lists to corpus and index generation, used by `dropdex ingest`, `dropdex
//! rebuild`, the admin socket and the inbox.
//!
//! [`run::run`] does the work in the calling process and returns an [`outcome::Outcome`]. A server
//! never calls it: its [`queue::Queue`] starts a child process for each [`request::Request`], one at
//! a time, and exchanges one typed message in each direction with it ([`worker`]).
//!
//! Measured with 6 million names on 2 busy cores: if the server does the work itself, its memory peaks at
//! 1,172 MB and stays at 656 MB, search p50 is 0.39 ms and p99 24 ms; with a child, the figures are 633 MB
//! (child 1,151 MB), 615 MB, 0.28 ms and 24 ms. In both cases, memory is returned to the system. The
//! reason for the child is containment: a truncated batch (SIGBUS), a panic or the OOM killer ends the
//! child instead of the server, and the child can be killed when the server stops.

pub mod compact;
pub mod inbox;
pub mod message;
mod open_files;
pub mod outcome;
mod popularity;
pub mod queue;
pub mod request;
pub mod run;
pub mod tables;
pub mod worker;

use dropdex_corpus as corpus;
use dropdex_facts as facts;
use dropdex_feeds as feeds;
use dropdex_index as index;
use dropdex_vocab as vocab;
use dropdex_zones as zones;
