//! `POST /api/v1/search/batch`: several searches in one request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::accounts::Caller;
use crate::http::allowance::{Now, charge_more};
use crate::http::body::{JsonBody, required};
use crate::http::error::ApiError;
use crate::http::operation::Queries;
use crate::http::params::{Params, unknown_parameter};
use crate::http::search::SearchResponse;
use crate::http::work::push_member;
use crate::http::{App, etag, work};
use crate::index::filter::SearchFilter;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::limits::BATCH_MAX;

/// Searches to run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchBatchBody, example = json!({"queries": [{"q": "solar", "tld": ["com", "io"]}, {"pattern": "CVCV", "min_dqs": 60}]}))]
pub struct BatchRequest {
    /// The parameters of a search each, by name. A list is an array or text with commas.
    #[schema(value_type = Vec<Object>, min_items = 1, max_items = 50)]
    queries: Option<Vec<BTreeMap<String, ParameterValue>>>,
}

/// Value of a parameter in JSON.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    Text(String),
    Number(i64),
    List(Vec<String>),
}

/// The searches, in request order.
#[derive(ToSchema)]
#[schema(as = SearchBatch)]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
pub struct BatchResponse<'a> {
    count: u32,
    results: Vec<SearchResponse<'a>>,
}

impl ParameterValue {
    /// The value as a query string has it.
    pub fn text(&self) -> Cow<'_, str> {
        let quoted = |item: &String| match item.contains([',', '"']) {
            true => format!("\"{}\"", item.replace('"', "\"\"")),
            false => item.clone(),
        };
        match self {
            ParameterValue::Text(text) => Cow::Borrowed(text),
            ParameterValue::Number(number) => Cow::Owned(number.to_string()),
            ParameterValue::List(items) => {
                Cow::Owned(items.iter().map(quoted).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Parses one search. Errors name the member, such as `queries[2].min_dqs`.
fn parse(
    at: usize,
    query: &BTreeMap<String, ParameterValue>,
    known: Queries,
    today: Day,
) -> Result<(String, SearchFilter), ApiError> {
    let member = |name: &str| format!("queries[{at}].{name}");
    if let Some(name) = query.keys().find(|name| known.0.iter().all(|known| known.name != **name)) {
        return Err(match unknown_parameter(name, known.0) {
            ApiError::UnknownParameter { name, nearest } => {
                ApiError::UnknownParameter { name: member(&name), nearest }
            }
            other => other,
        });
    }
    let texts: Vec<_> = query.iter().map(|(name, value)| (name.as_str(), value.text())).collect();
    let pairs: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_ref())).collect();
    Params::from_pairs(&pairs).search(today).map_err(|err| match err {
        ApiError::BadParameter { name, what, code } => {
            ApiError::BadParameter { name: member(&name).into(), what, code }
        }
        other => other,
    })
}

/// `POST /api/v1/search/batch`: up to 50 searches. Each counts as a request.
pub async fn search_batch(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    Extension(caller): Extension<Caller>,
    Extension(known): Extension<Queries>,
    JsonBody(body): JsonBody<BatchRequest>,
) -> Result<Response, ApiError> {
    let queries = required(body.queries, "queries")?;
    if !(1..=BATCH_MAX).contains(&queries.len()) {
        let what = format!("must have 1 to {BATCH_MAX} searches, not {}", queries.len());
        return Err(ApiError::parameter("queries", what));
    }
    let allowance = charge_more(&app, &caller, queries.len() - 1, now.0).await?;
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let served = Arc::clone(&index);
    let body = work::scan(move || {
        // Each may compile an expression, which takes a while.
        let asked = queries.iter().enumerate().take_while(|_| !budget::spent());
        let asked = asked.map(|(at, query)| parse(at, query, known, as_of.today));
        let asked = asked.collect::<Result<Vec<_>, ApiError>>()?;
        let mut out = b"{\"results\":[".to_vec();
        for (at, (query, filter)) in asked.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let page = index.search(filter, as_of);
            out.append(&mut SearchResponse::new(query, filter, &page).into_json());
        }
        out.push(b']');
        push_member(&mut out, "count", asked.len() as u32);
        out.push(b'}');
        Ok(out)
    });
    let mut response = etag::from_generation(&served, work::json_response(body.await?));
    if let Some(allowance) = allowance {
        response.extensions_mut().insert(allowance);
    }
    Ok(response)
}
