//! `GET /api/v1/drops`.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::Serialize;

use crate::http::allowance::Now;
use crate::http::error::ApiError;
use crate::http::params::{Limits, Params};
use crate::http::{App, work};
use crate::index::DropRow;
use crate::vocab::day::Day;
use crate::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};

const LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

/// The drops response (api.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DropsAnswer<'a> {
    date: Day,
    count: usize,
    limit: u32,
    offset: u32,
    available_tlds: Vec<&'a str>,
    drops: Vec<DropRow>,
}

/// `GET /api/v1/drops`: the ranked drop list.
pub async fn list_drops(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let filter = Params::new(query.as_deref()).drops(LIMITS)?;
    let (index, moment) = (app.live.current(), app.moment(now));
    let body = work::run(index.drops_cost(&filter, moment), move || {
        let page = index.drops(&filter, moment)?;
        work::json_bytes(&DropsAnswer {
            date: page.date,
            count: page.rows.len(),
            limit: filter.limit,
            offset: filter.offset,
            available_tlds: page.available_tlds,
            drops: page.rows,
        })
    });
    Ok(work::json_response(body.await?))
}
