//! `GET /api/v1/search`.

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;

use crate::http::allowance::Now;
use crate::http::error::ApiError;
use crate::http::etag::Tag;
use crate::http::params::Params;
use crate::http::rows::{SEARCH_JSON_BYTES, push_json_text, push_search_results};
use crate::http::work::push_member;
use crate::http::{App, work};
use crate::index::SearchPage;
use crate::index::filter::SearchFilter;
use crate::telemetry::query::{QueryKind, QueryTimer};

/// Bytes of a response around its rows, but for the query.
const FRAME_BYTES: usize = 128;

/// `GET /api/v1/search`: names by prefix, over everything ever seen.
pub async fn search_names(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, ApiError> {
    let (query, filter) = Params::new(request.uri().query()).search()?;
    let (index, moment) = (app.live.current(), app.moment(now));
    let tag = Tag::of(&index, moment, request.uri(), &[]);
    if let Some(held) = tag.held(request.headers()) {
        return Ok(held);
    }
    let timer = QueryTimer::start(if filter.is_prefix_alone() {
        QueryKind::Prefix
    } else {
        QueryKind::Search
    });
    let body = work::run(index.search_cost_us(&filter, moment), move || {
        let page = index.search(&filter, moment);
        let body = search_json(&query, &filter, &page);
        timer.finish(page.count() as usize, &filter);
        Ok(body)
    });
    Ok(tag.on(work::json_response(body.await?)))
}

/// The search response (api.md).
fn search_json(query: &str, filter: &SearchFilter, page: &SearchPage<'_>) -> Vec<u8> {
    let room = FRAME_BYTES + query.len() + page.count() as usize * SEARCH_JSON_BYTES;
    let mut out = Vec::with_capacity(room);
    out.extend_from_slice(b"{\"query\":");
    push_json_text(&mut out, query);
    push_member(&mut out, "total", page.total);
    let capped: &[u8] = if page.capped { b"true" } else { b"false" };
    out.extend_from_slice(b",\"totalCapped\":");
    out.extend_from_slice(capped);
    push_member(&mut out, "count", page.count());
    push_member(&mut out, "limit", filter.limit);
    push_member(&mut out, "offset", filter.offset);
    out.extend_from_slice(b",\"results\":");
    push_search_results(page, &mut out);
    out.push(b'}');
    out
}
