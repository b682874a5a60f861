//! `GET /api/v1/drops`.

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use utoipa::ToSchema;

use crate::http::allowance::Now;
use crate::http::error::ApiError;
use crate::http::etag::Tag;
use crate::http::params::{Limits, Params};
use crate::http::rows::{DROP_JSON_BYTES, push_day, push_drops, tlds_json};
use crate::http::work::push_member;
use crate::http::{App, work};
use crate::index::DropsPage;
use crate::index::filter::DropFilter;
use crate::index::query::rows::DropRow;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::day::Day;
use crate::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};

const LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

/// Bytes of a response apart from its rows and TLDs.
const FRAME_BYTES: usize = 128;

/// `GET /api/v1/drops`: the ranked drop list.
pub async fn list_drops(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, ApiError> {
    let filter = Params::new(request.uri().query()).drops(LIMITS)?;
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let tag = Tag::for_query(&index, as_of, request.uri(), &[]);
    if let Some(not_modified) = tag.not_modified(request.headers()) {
        return Ok(not_modified);
    }
    let timer = QueryTimer::start(if filter.contains.is_some() {
        QueryKind::Substring
    } else {
        QueryKind::Drops
    });
    let body = work::run(index.drops_cost_us(&filter, as_of), move || {
        let page = index.drops(&filter, as_of)?;
        let body = DropsResponse::new(&filter, &page).into_json();
        timer.finish(page.count() as usize, &filter);
        Ok(body)
    });
    Ok(tag.on(work::json_response(body.await?)))
}

/// A page of the ranked drop list.
#[derive(ToSchema)]
#[schema(as = Drops, rename_all = "camelCase")]
pub struct DropsResponse<'a> {
    /// The newest drop date in the corpus that is not after today.
    #[schema(value_type = String, format = Date)]
    date: Day,
    /// Number of rows on this page.
    count: u32,
    limit: u32,
    offset: u32,
    /// TLDs in the view before any other filter, sorted.
    #[schema(value_type = Vec<String>)]
    available_tlds: &'a str,
    #[schema(value_type = Vec<DropRow<'a>>)]
    drops: &'a DropsPage<'a>,
}

impl<'a> DropsResponse<'a> {
    fn new(filter: &DropFilter, page: &'a DropsPage<'a>) -> DropsResponse<'a> {
        DropsResponse {
            date: page.date,
            count: page.count(),
            limit: filter.limit,
            offset: filter.offset,
            available_tlds: tlds_json(page),
            drops: page,
        }
    }

    /// The response as JSON, in one buffer. Its rows are written by hand as well.
    fn into_json(self) -> Vec<u8> {
        let tlds = self.available_tlds;
        let rows = self.count as usize * DROP_JSON_BYTES;
        let mut out = Vec::with_capacity(FRAME_BYTES + tlds.len() + rows);
        out.extend_from_slice(b"{\"date\":\"");
        push_day(&mut out, self.date);
        out.push(b'"');
        push_member(&mut out, "count", self.count);
        push_member(&mut out, "limit", self.limit);
        push_member(&mut out, "offset", self.offset);
        out.extend_from_slice(b",\"availableTlds\":");
        out.extend_from_slice(tlds.as_bytes());
        out.extend_from_slice(b",\"drops\":");
        push_drops(self.drops, &mut out);
        out.push(b'}');
        out
    }
}
