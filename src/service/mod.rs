//! Use cases, shared by JSON, CSV and pages: commands on accounts that need the index, queries with
//! time limits, and the state shared by all requests. Independent of HTTP statuses and headers.

pub mod account_turns;
pub mod app;
pub mod archive;
pub mod backtests;
pub mod backups;
pub mod channels;
pub mod checks;
pub mod comparables;
pub mod error;
pub mod downloads;
pub mod fact_book;
pub mod fact_topic;
pub mod facts;
pub mod feed_limits;
pub mod filter_words;
pub mod imports;
pub mod marks;
pub mod portfolio;
pub mod receipt;
pub mod rules;
pub mod searches;
pub mod site;
pub mod undo;
pub mod watch_alerts;
pub mod watchlist;
pub mod work;

use dropdex_accounts as accounts;
use dropdex_changes as changes;
use dropdex_copies as copies;
use dropdex_facts as facts_file;
use dropdex_index as index;
use dropdex_intake as intake;
use dropdex_outbound as outbound;
use dropdex_query as query;
use dropdex_sales as sales;
use dropdex_scorer as scorer;
use dropdex_sources as sources;
use dropdex_telemetry as telemetry;
use dropdex_vocab as vocab;
