//! `GET /api/v1/search`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::Response;
use utoipa::ToSchema;

use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::index::SearchPage;
use crate::index::filter::SearchFilter;
use crate::index::query::rows::SearchRow;
use crate::json;
use crate::json::{push_flag, push_member};
use crate::parse;
use crate::query::params::Paging;
use crate::query::params::Params;
use crate::response::with_next;
use crate::rows::{SEARCH_JSON_BYTES, push_json_text, push_search_results};
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::work;
use crate::telemetry::query::{QueryKind, QueryTimer};

/// Bytes of a response without its rows and the query.
const FRAME_BYTES: usize = 128;

/// `GET /api/v1/search`: prefix search over every name ever seen.
pub async fn search_names(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let parse = move |uri: &Uri| Params::new(uri.query()).search(as_of.today);
    let (query, mut filter) = parse::parameters(request.uri(), parse).await?;
    let mut used = Vec::new();
    if !filter.common.drop.facts.is_empty() {
        used = app.visible_facts().resolve(&mut filter.common, as_of.today)?;
    }
    let editions: Vec<u64> = used.iter().map(|source| source.id().0).collect();
    let tag = Tag::for_query(&index, as_of, request.uri(), &editions);
    if let Some(not_modified) = tag.not_modified(request.headers()) {
        return Ok(not_modified);
    }
    let paging = Paging { limit: filter.limit, offset: filter.offset };
    let timer = QueryTimer::start(if filter.is_prefix_alone() {
        QueryKind::Prefix
    } else {
        QueryKind::Search
    });
    let (cost_us, scans) = (index.search_cost_us(&filter, as_of), filter.common.scans_names());
    let searched = Arc::clone(&index);
    let scans = scans || !used.is_empty();
    let make = move || {
        app.facts.join(&searched, &used)?;
        let page = searched.search(&filter, as_of);
        let body = SearchResponse::new(&query, &filter, &page).into_json();
        timer.finish(page.count() as usize, &filter);
        Ok((body, page.total as usize))
    };
    let body = work::run_or_scan(scans, cost_us, make).await;
    let narrowing = || {
        let (_, filter) = Params::new(request.uri().query()).search(as_of.today).ok()?;
        Some(index.narrowing(&filter))
    };
    let (body, total) = body.map_err(|err| err.narrowed(narrowing))?;
    let response = with_next(json::json_response(body), request.uri(), paging, total);
    Ok(tag.on(response))
}

/// A page of search results: exact matches first, then by score.
#[derive(ToSchema)]
#[schema(as = SearchResults, rename_all = "camelCase")]
pub struct SearchResponse<'a> {
    /// `q` as sent; empty without one.
    query: &'a str,
    /// Number of matches, exact up to 10,000.
    #[schema(maximum = 10000)]
    total: u32,
    /// Whether there are more matches than `total`.
    total_capped: bool,
    count: u32,
    limit: u32,
    offset: u32,
    #[schema(value_type = Vec<SearchRow<'a>>)]
    results: &'a SearchPage<'a>,
}

impl<'a> SearchResponse<'a> {
    pub(super) fn new(
        query: &'a str,
        filter: &SearchFilter,
        page: &'a SearchPage<'a>,
    ) -> SearchResponse<'a> {
        SearchResponse {
            query,
            total: page.total,
            total_capped: page.capped,
            count: page.count(),
            limit: filter.limit,
            offset: filter.offset,
            results: page,
        }
    }

    /// Builds the response as JSON, in one buffer. The JSON is written by hand, like that of the
    /// rows.
    pub(super) fn into_json(self) -> Vec<u8> {
        let rows = self.count as usize * SEARCH_JSON_BYTES;
        let mut out = Vec::with_capacity(FRAME_BYTES + self.query.len() + rows);
        out.extend_from_slice(b"{\"query\":");
        push_json_text(&mut out, self.query);
        push_member(&mut out, "total", self.total);
        push_flag(&mut out, "totalCapped", self.total_capped);
        push_member(&mut out, "count", self.count);
        push_member(&mut out, "limit", self.limit);
        push_member(&mut out, "offset", self.offset);
        out.extend_from_slice(b",\"results\":");
        push_search_results(self.results, &mut out);
        out.push(b'}');
        out
    }
}
