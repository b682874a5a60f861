//! Use cases, shared by JSON, CSV and pages: commands on accounts that need the index, queries with
//! time limits, and the state shared by all requests. Independent of HTTP statuses and headers.

pub mod account_turns;
pub mod app;
pub mod channels;
pub mod checks;
pub mod error;
pub mod feed_limits;
pub mod portfolio;
pub mod receipt;
pub mod rules;
pub mod searches;
pub mod site;
pub mod watch_alerts;
pub mod watchlist;
pub mod work;
