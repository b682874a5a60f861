//! `GET /api/v1/drops`.

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;

use crate::http::allowance::Now;
use crate::http::error::ApiError;
use crate::http::etag::Tag;
use crate::http::params::{Limits, Params};
use crate::http::rows::{DROP_JSON_BYTES, push_day, push_drops, tlds_json};
use crate::http::work::push_member;
use crate::http::{App, work};
use crate::index::DropsPage;
use crate::index::filter::DropFilter;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};

const LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

/// Bytes of a response around its rows and TLDs.
const FRAME_BYTES: usize = 128;

/// `GET /api/v1/drops`: the ranked drop list.
pub async fn list_drops(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, ApiError> {
    let filter = Params::new(request.uri().query()).drops(LIMITS)?;
    let (index, moment) = (app.live.current(), app.moment(now));
    let tag = Tag::of(&index, moment, request.uri(), &[]);
    if let Some(held) = tag.held(request.headers()) {
        return Ok(held);
    }
    let timer = QueryTimer::start(if filter.contains.is_some() {
        QueryKind::Substring
    } else {
        QueryKind::Drops
    });
    let body = work::run(index.drops_cost_us(&filter, moment), move || {
        let page = index.drops(&filter, moment)?;
        let body = drops_json(&filter, &page);
        timer.finish(page.count() as usize, &filter);
        Ok(body)
    });
    Ok(tag.on(work::json_response(body.await?)))
}

/// The drops response (api.md).
fn drops_json(filter: &DropFilter, page: &DropsPage<'_>) -> Vec<u8> {
    let tlds = tlds_json(page);
    let room = FRAME_BYTES + tlds.len() + page.count() as usize * DROP_JSON_BYTES;
    let mut out = Vec::with_capacity(room);
    out.extend_from_slice(b"{\"date\":\"");
    push_day(&mut out, page.date);
    out.push(b'"');
    push_member(&mut out, "count", page.count());
    push_member(&mut out, "limit", filter.limit);
    push_member(&mut out, "offset", filter.offset);
    out.extend_from_slice(b",\"availableTlds\":");
    out.extend_from_slice(tlds.as_bytes());
    out.extend_from_slice(b",\"drops\":");
    push_drops(page, &mut out);
    out.push(b'}');
    out
}
