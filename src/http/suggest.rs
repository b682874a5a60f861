//! `GET /api/v1/suggest`: completions of a typed text.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use utoipa::ToSchema;

use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::index::Index;
use crate::index::filter::{AsOf, SuggestFilter};
use crate::index::query::suggest::Suggestion;
use crate::json::{json_response, push_member};
use crate::query::params::Params;
use crate::rows::{JsonArray, push_json_text};
use crate::service::app::{App, Now};
use crate::service::work;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::to_unicode;
use crate::vocab::stage::Stage;

/// Bytes to reserve for a row.
const ROW_BYTES: usize = 96;

/// Completions, best first.
#[derive(ToSchema)]
#[schema(as = Suggestions)]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
pub struct SuggestResponse {
    /// Names with the typed label come first, then names of other labels that begin with it.
    names: Vec<SuggestRow>,
}

/// A suggested name.
#[derive(ToSchema)]
#[schema(as = SuggestedName)]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
pub struct SuggestRow {
    /// Name with A-labels.
    name: String,
    /// The same name in Unicode.
    unicode: String,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    dqs: Dqs,
    /// `null` for a name that never dropped or was registered again.
    #[schema(required)]
    stage: Option<Stage>,
}

/// `GET /api/v1/suggest`.
pub async fn suggest_names(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let asked = Params::new(request.uri().query()).suggest(as_of.today)?;
    let tag = Tag::for_query(&index, as_of, request.uri(), &[]);
    if let Some(not_modified) = tag.not_modified(request.headers()) {
        return Ok(reusable(not_modified));
    }
    let searched = Arc::clone(&index);
    let body = work::run(index.suggest_cost_us(&asked, as_of), move || {
        let mut out = Vec::with_capacity(ROW_BYTES * (asked.limit as usize + 1));
        push_suggestions(&searched, &asked, as_of, &mut out);
        Ok(out)
    });
    Ok(reusable(tag.on(json_response(body.await?))))
}

/// Lets the client show a response again for a minute, as while a text is typed and corrected.
fn reusable(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    response
}

/// Appends the response to a type-ahead as JSON.
pub fn push_suggestions(index: &Index, asked: &SuggestFilter, as_of: AsOf, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"names\":");
    let mut names = JsonArray::open(out);
    index.suggest(asked, as_of, |suggestion| push_row(names.item(), suggestion));
    names.close();
    out.push(b'}');
}

fn push_row(out: &mut Vec<u8>, suggestion: &Suggestion<'_>) {
    out.extend_from_slice(b"{\"name\":");
    push_json_text(out, suggestion.domain);
    out.extend_from_slice(b",\"unicode\":");
    push_json_text(out, &to_unicode(suggestion.domain));
    push_member(out, "dqs", suggestion.dqs.points().into());
    out.extend_from_slice(b",\"stage\":");
    match suggestion.stage {
        Some(stage) => push_json_text(out, stage.as_str()),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}
