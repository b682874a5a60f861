//! `GET /api/v1/search`.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::Serialize;

use crate::http::allowance::Now;
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::{App, work};
use crate::index::SearchRow;

/// The search response (api.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchAnswer {
    query: String,
    total: u32,
    total_capped: bool,
    count: usize,
    limit: u32,
    offset: u32,
    results: Vec<SearchRow>,
}

/// `GET /api/v1/search`: names by prefix, over everything ever seen.
pub async fn search_names(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let (query, filter) = Params::new(query.as_deref()).search()?;
    let (index, moment) = (app.live.current(), app.moment(now));
    let body = work::run(index.search_cost(&filter), move || {
        let page = index.search(&filter, moment);
        work::json_bytes(&SearchAnswer {
            query,
            total: page.total,
            total_capped: page.capped,
            count: page.rows.len(),
            limit: filter.limit,
            offset: filter.offset,
            results: page.rows,
        })
    });
    Ok(work::json_response(body.await?))
}
