//! The JSON API and the CSV exports. [`operations`] has the table of routes with their
//! documentation. Use cases are in `service`, statuses in `edge`.

pub mod account;
pub mod account_data;
pub mod alerts;
pub mod appraise;
pub mod archive;
pub mod batch;
pub mod body;
pub mod changes;
pub mod check;
pub mod cursor;
pub mod domain;
pub mod drops;
pub mod export;
pub mod fact_rows;
pub mod facts;
pub mod feeds;
pub mod files;
pub mod filter;
pub mod health;
mod guarded;
pub mod hidden;
pub mod json;
pub mod label;
pub mod mcp;
mod openapi;
pub mod operations;
pub mod params;
pub mod outcomes;
mod parse;
pub mod portfolio;
mod precondition;
pub mod response;
pub mod rows;
pub mod search;
pub mod searches;
pub mod suggest;
pub mod tlds;
pub mod unsubscribe;
pub mod watchlist;

use dropdex_accounts as accounts;
use dropdex_cluster as cluster;
use dropdex_copies as copies;
use dropdex_edge as edge;
use dropdex_facts as facts_file;
use dropdex_index as index;
use dropdex_outbound as outbound;
use dropdex_query as query;
use dropdex_sales as sales;
use dropdex_scorer as scorer;
use dropdex_service as service;
use dropdex_sources as sources;
use dropdex_telemetry as telemetry;
use dropdex_vocab as vocab;

use axum::Router;

use crate::edge::operation::{Description, Operation};
use crate::edge::routes::Route;
use crate::service::app::App;

/// The operations of the API, with their documentation.
pub fn description() -> Description {
    Description { operations: operations::OPERATIONS, document: operations::document }
}

/// The routes of the API, of the tools for agents and of the download of an account, without a fallback for unknown paths.
pub fn router(app: App) -> Router {
    let api = operations::router(app.clone());
    let download = account_data::router(app.clone());
    api.clone().merge(mcp::router(app, api)).merge(download)
}

/// Attributes of the routes of [`router`].
pub fn routes() -> impl Iterator<Item = Route> {
    operations::OPERATIONS
        .iter()
        .map(Operation::attributes)
        .chain([mcp::ROUTE, account_data::ROUTE])
}
