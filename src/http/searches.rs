//! `/api/v1/searches`: the caller's saved searches.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{Caller, SavedSearch, SearchPatch};
use crate::body::{JsonBody, Patch, PostBody};
use crate::edge::error::Refusal;
use crate::filter::{FilterRequest, FilterResponse};
use crate::index::Total;
use crate::index::filter::{AsOf, Sort, SortKey};
use crate::json;
use crate::params::path_id;
use crate::query::params::{Limits, Params};
use crate::response::{self, Deleted, Timestamp};
use crate::service::app::{App, Now};
use crate::service::error::{ApiError, required};
use crate::service::searches::{self, Order, SearchCounts, ordered};
use crate::service::work;
use crate::vocab::ids::SearchId;
use crate::vocab::limits::{ENTRIES_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Path of the collection; a search is at `PATH/{id}`.
const PATH: &str = "/api/v1/searches";

/// A saved search.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SavedSearch)]
pub struct SearchResponse<'a> {
    #[schema(value_type = u64)]
    id: SearchId,
    name: &'a str,
    filter: FilterResponse,
    #[schema(value_type = SortKey)]
    sort: &'a str,
    #[schema(value_type = Order)]
    order: &'a str,
    /// Number of names that match now; null if time did not suffice to count them. Counts are cached, so a
    /// later request returns more of them.
    #[schema(required)]
    total: Option<u32>,
    /// Whether `total` and `newSinceSeen` are exact, and no estimates.
    total_exact: bool,
    /// Number of matching names from lists that arrived after the search was last opened; null if
    /// `total` is.
    #[schema(required)]
    new_since_seen: Option<u32>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl<'a> SearchResponse<'a> {
    pub fn new(search: &'a SavedSearch, counts: Option<SearchCounts>) -> SearchResponse<'a> {
        let set = |name| Some(search.conditions.get(name)).filter(|value| !value.is_empty());
        let key = set("sort").and_then(|sort| sort.parse().ok()).unwrap_or(SortKey::Dqs);
        let natural = if Sort::natural(key).descending { Order::Desc } else { Order::Asc };
        SearchResponse {
            id: search.id,
            name: &search.name,
            filter: FilterResponse(search.conditions.clone()),
            sort: key.as_str(),
            order: set("order").unwrap_or(natural.as_str()),
            total: counts.map(|counts| counts.total.count()),
            total_exact: counts
                .is_some_and(|counts| counts.total.is_exact() && counts.new.is_exact()),
            new_since_seen: counts.map(|counts| counts.new.count()),
            created_at: Timestamp(search.created_at),
        }
    }
}

/// A new saved search.
#[derive(Serialize, ToSchema)]
pub struct AddedSearch<'a> {
    #[schema(value_type = u64)]
    id: SearchId,
    search: SearchResponse<'a>,
}

/// A saved search.
#[derive(Serialize, ToSchema)]
pub struct OneSearch<'a> {
    search: SearchResponse<'a>,
}

/// A page of saved searches, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = SavedSearches)]
pub struct SearchList<'a> {
    #[schema(value_type = u32)]
    count: usize,
    /// Number on all pages.
    #[schema(value_type = u32)]
    total: usize,
    limit: u32,
    offset: u32,
    searches: Vec<SearchResponse<'a>>,
}

/// A search to save.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = SearchBody, example = json!({
    "name": "Tomorrow's .com", "filter": {"tlds": ["com"], "releaseFrom": "tomorrow", "releaseTo": "tomorrow"}
}))]
pub struct SearchRequest {
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    pub name: Option<String>,
    #[schema(value_type = FilterRequest)]
    pub filter: Option<FilterRequest>,
    #[schema(value_type = Option<SortKey>)]
    pub sort: Option<String>,
    /// By default the natural order of `sort`.
    #[schema(value_type = Option<Order>)]
    pub order: Option<String>,
}

/// Changes to a saved search. Absent members are unchanged; a new `sort` has its natural order.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = SearchPatchBody, example = json!({"seen": true}))]
pub struct SearchPatchRequest {
    #[serde(default)]
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    pub name: Patch<String>,
    #[serde(default)]
    #[schema(value_type = FilterRequest)]
    pub filter: Patch<FilterRequest>,
    #[serde(default)]
    #[schema(value_type = SortKey)]
    pub sort: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Order)]
    pub order: Patch<String>,
    /// `true` marks all names as seen, so that none is new until the next list.
    #[serde(default)]
    #[schema(value_type = bool)]
    pub seen: Patch<bool>,
}

/// `GET /api/v1/searches`: the caller's saved searches, newest first.
pub async fn list_searches(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let page = Params::new(uri.query()).page(LIMITS, ENTRIES_OFFSET_MAX)?;
    let owned = app.store.user_data(&caller);
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let total = owned.searches().count();
    let body = work::scan(move || {
        let rows = page.rows(owned.searches());
        let response = |search| {
            Ok(SearchResponse::new(search, SearchCounts::in_time(&app, &index, search, as_of)?))
        };
        let searches = rows.map(|search| response(search)).collect::<Result<Vec<_>, ApiError>>()?;
        let (count, limit, offset) = (searches.len(), page.limit, page.offset);
        json::json_bytes(&SearchList { count, total, limit, offset, searches })
    });
    Ok(response::with_next(json::json_response(body.await?), &uri, page, total))
}

/// `POST /api/v1/searches`: saves a search.
pub async fn add_search(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<SearchRequest>,
) -> Result<Response, Refusal> {
    let parse = |today| {
        let name = required(body.name, "name")?;
        let filters = required(body.filter, "filter")?.parse(today)?;
        Ok((name, ordered(&filters, body.sort, body.order)?))
    };
    let (draft, total) = searches::add(&app, &caller, parse, post).await?;
    let receipt = |search: &SavedSearch| {
        let counts = total.map(|total| SearchCounts { total, new: Total::Exact(0) });
        let search_response = SearchResponse::new(search, counts);
        response::receipt(
            StatusCode::CREATED,
            &AddedSearch { id: search.id, search: search_response },
        )
    };
    let answered = draft.respond(receipt).await?;
    Ok(response::added(answered, PATH, |search| search.id.get()))
}

/// `PATCH /api/v1/searches/{id}`: changes the given members.
pub async fn change_search(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    id: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<SearchPatchRequest>,
) -> Result<Response, Refusal> {
    let id = path_id(id, SearchId::parse)?;
    let before = app.store.user_data(&caller).search(id).cloned().ok_or(ApiError::NotFound)?;
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let newest = index.manifest().batches;
    let parse = move || parse_patch(body, &before, newest, as_of);
    let search = app.store.change_search(&caller, id, work::scan(parse).await?).await?;
    let body = work::scan(move || {
        let counts = SearchCounts::in_time(&app, &index, &search, as_of)?;
        json::json_bytes(&OneSearch { search: SearchResponse::new(&search, counts) })
    });
    Ok(json::json_response(body.await?).into_response())
}

fn parse_patch(
    request: SearchPatchRequest,
    before: &SavedSearch,
    newest: u64,
    as_of: AsOf,
) -> Result<SearchPatch, ApiError> {
    let filter = request.filter.try_map(|filter| filter.parse(as_of.today))?.not_null("filter")?;
    let (sort, direction) = (request.sort.not_null("sort")?, request.order.not_null("order")?);
    let set = |name| Some(before.conditions.get(name).to_owned()).filter(|value| !value.is_empty());
    let is_changed = filter.is_some() || sort.is_some() || direction.is_some();
    // A new sort starts with its natural order.
    let (sort, direction) = match (sort, direction) {
        (None, None) => (set("sort"), set("order")),
        (None, direction) => (set("sort"), direction),
        both => both,
    };
    let filters = filter.unwrap_or_else(|| before.conditions.unordered());
    let conditions = is_changed.then(|| ordered(&filters, sort, direction)).transpose()?;
    let seen = request.seen.not_null("seen")?;
    if seen == Some(false) {
        return Err(ApiError::parameter("seen", "must be true"));
    }
    Ok(SearchPatch { name: request.name.not_null("name")?, conditions, seen: seen.map(|_| newest) })
}

/// `DELETE /api/v1/searches/{id}`: deletes a saved search.
pub async fn remove_search(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Deleted>, Refusal> {
    let id = path_id(id, SearchId::parse)?;
    app.store.remove_search(&caller, id).await?;
    Ok(Json(Deleted::new(id.get())))
}
