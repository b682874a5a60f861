//! `GET /api/v1/suggest`: names for type-ahead. The response contains only names, without counting
//! matches.

use axum::extract::{Request, State};
use axum::response::Response;
use utoipa::ToSchema;

use crate::edge::error::Refusal;
use crate::edge::etag;
use crate::json;
use crate::query::params::Params;
use crate::rows::{JsonArray, push_json_text};
use crate::service::app::App;

/// Bytes to reserve for a name.
const NAME_BYTES: usize = 32;

/// Names that start with a text.
#[derive(ToSchema)]
#[schema(as = Suggestions)]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
pub struct SuggestResponse {
    /// A name or label equal to the text comes first, then the highest scores.
    names: Vec<String>,
}

/// `GET /api/v1/suggest`: the first names that a search would return.
pub async fn suggest_names(State(app): State<App>, request: Request) -> Result<Response, Refusal> {
    let filter = Params::new(request.uri().query()).suggest()?;
    let index = app.live.current();
    let mut out = Vec::with_capacity(NAME_BYTES * (filter.limit as usize + 1));
    out.extend_from_slice(b"{\"names\":");
    let mut names = JsonArray::open(&mut out);
    index.suggest(&filter, |name| push_json_text(names.item(), name));
    names.close();
    out.push(b'}');
    Ok(etag::from_generation(&index, json::json_response(out)))
}
