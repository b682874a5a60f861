//! `/api/v1/hidden`: names that the caller does not want to see in lists.

use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{Caller, Hid};
use crate::body::PostBody;
use crate::edge::error::Refusal;
use crate::query::params::{Limits, Params};
use crate::response;
use crate::service::app::App;
use crate::service::error::{ApiError, required};
use crate::vocab::limits::{HIDDEN_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};
use crate::vocab::name::DomainName;
use crate::watchlist::parse_names;

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };

/// A page of hidden names, in name order.
#[derive(Serialize, ToSchema)]
#[schema(as = HiddenNames)]
pub struct HiddenResponse {
    #[schema(value_type = u32)]
    count: usize,
    /// Hidden names in all.
    #[schema(value_type = u32)]
    total: usize,
    limit: u32,
    offset: u32,
    #[schema(value_type = Vec<String>)]
    hidden: Vec<DomainName>,
}

/// Names to hide.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = HiddenBody, example = json!({"domainNames": ["solar.com"]}))]
pub struct HideRequest {
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 1000)]
    domain_names: Option<Vec<String>>,
}

/// Number of names hidden by a request, and in total.
#[derive(Serialize, ToSchema)]
#[schema(as = Hid)]
pub struct HideResponse {
    /// Number of names that were not hidden before.
    #[schema(value_type = u32)]
    added: usize,
    /// Hidden names in all.
    #[schema(value_type = u32)]
    total: usize,
}

/// Confirmation that a name is shown again.
#[derive(Serialize, ToSchema)]
#[schema(as = HiddenRemoved)]
pub struct ShowResponse {
    #[schema(value_type = String)]
    domain: DomainName,
    removed: bool,
}

/// `GET /api/v1/hidden`.
pub async fn list_hidden(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let page = Params::new(uri.query()).page(LIMITS, HIDDEN_MAX)?;
    let owned = app.store.user_data(&caller);
    let hidden: Vec<_> = page.rows(owned.hidden()).cloned().collect();
    let (limit, offset) = (page.limit, page.offset);
    let total = owned.hidden_count();
    let list = HiddenResponse { count: hidden.len(), total, limit, offset, hidden };
    Ok(response::with_next(Json(list).into_response(), &uri, page, total))
}

/// `POST /api/v1/hidden`: hides 1 to 1,000 names.
pub async fn hide(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<HideRequest>,
) -> Result<Response, Refusal> {
    let names = parse_names(&required(body.domain_names, "domainNames")?, "domainNames")?;
    let names = names.into_iter().enumerate();
    let parsed = names.map(|(at, name)| {
        name.map_err(|err| ApiError::parameter(format!("domainNames[{at}]"), err))
    });
    let draft = app.store.draft_hidden(&caller, parsed.collect::<Result<_, _>>()?, post).await?;
    let receipt = |&Hid { added, total }: &Hid| {
        response::receipt(StatusCode::OK, &HideResponse { added, total })
    };
    Ok(response::posted(draft.respond(receipt).await?))
}

/// `DELETE /api/v1/hidden?domain=`: shows a name again.
pub async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Json<ShowResponse>, Refusal> {
    let domain = Params::new(query.as_deref()).domain("domain")?;
    app.store.unhide(&caller, domain.clone()).await?;
    Ok(Json(ShowResponse { domain, removed: true }))
}
