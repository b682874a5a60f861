//! `POST /api/v1/search/batch`: several searches in one request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Number;
use utoipa::ToSchema;

use crate::accounts::{Caller, Counter};
use crate::body::JsonBody;
use crate::edge::allowance::{charge_more, forgive};
use crate::edge::error::Refusal;
use crate::edge::etag;
use crate::edge::operation::Queries;
use crate::index::filter::SearchFilter;
use crate::json;
use crate::json::push_member;
use crate::params::unknown_parameter;
use crate::query::error::BadParameter;
use crate::query::params::Params;
use crate::search::SearchResponse;
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::{ApiError, required};
use crate::service::work;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::limits::BATCH_MAX;

/// Searches to run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchBatchBody, example = json!({"queries": [{"q": "solar", "tld": ["com", "io"]}, {"pattern": "CVCV", "min_dqs": 60}]}))]
pub struct BatchRequest {
    /// Parameters of each search, by name. A list is an array or a comma-separated text.
    #[schema(value_type = Vec<Object>, min_items = 1, max_items = 50)]
    queries: Option<Vec<BTreeMap<String, ParameterValue>>>,
}

/// Value of a parameter in JSON: an item, or a list of items.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    Item(ParameterItem),
    List(Vec<ParameterItem>),
}

/// A string, number or boolean, which a query string would contain as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum ParameterItem {
    Text(String),
    Number(Number),
    Flag(bool),
}

/// Largest integer up to which JSON numbers are exact: 2^53 - 1.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// The searches, in request order.
#[derive(ToSchema)]
#[schema(as = SearchBatch)]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
pub struct BatchResponse<'a> {
    count: u32,
    results: Vec<SearchResponse<'a>>,
}

impl ParameterValue {
    /// Returns the value in the form of a query string.
    pub fn text(&self) -> Cow<'_, str> {
        let quoted = |item: &ParameterItem| match item.text() {
            text if text.contains([',', '"']) => format!("\"{}\"", text.replace('"', "\"\"")),
            text => text.into_owned(),
        };
        match self {
            ParameterValue::Item(item) => item.text(),
            ParameterValue::List(items) => {
                Cow::Owned(items.iter().map(quoted).collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Returns the value if it is a single integer, as a number or as text.
    pub fn integer(&self) -> Option<i64> {
        match self {
            ParameterValue::Item(item) => item.text().trim().parse().ok(),
            ParameterValue::List(_) => None,
        }
    }
}

impl ParameterItem {
    /// JSON does not distinguish 60 from 60.0 (RFC 8259 §6), so an integral number is written as an
    /// integer.
    fn text(&self) -> Cow<'_, str> {
        match self {
            ParameterItem::Text(text) => Cow::Borrowed(text),
            ParameterItem::Number(number) => match number.as_f64() {
                Some(value)
                    if number.is_f64() && value.fract() == 0.0 && value.abs() <= EXACT_MAX =>
                {
                    Cow::Owned((value as i64).to_string())
                }
                _ => Cow::Owned(number.to_string()),
            },
            ParameterItem::Flag(flag) => Cow::Owned(flag.to_string()),
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
    Params::from_pairs(&pairs)
        .search(today)
        .map_err(|err| BadParameter { name: member(&err.name).into(), ..err }.into())
}

/// `POST /api/v1/search/batch`: up to 50 searches. Each counts as a request.
pub async fn search_batch(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    Extension(caller): Extension<Caller>,
    Extension(known): Extension<Queries>,
    JsonBody(body): JsonBody<BatchRequest>,
) -> Result<Response, Refusal> {
    let queries = required(body.queries, "queries")?;
    if !(1..=BATCH_MAX).contains(&queries.len()) {
        let what = format!("must have 1 to {BATCH_MAX} searches, not {}", queries.len());
        return Err(ApiError::parameter("queries", what).into());
    }
    let more = queries.len() - 1;
    let allowance = charge_more(&app, &caller, more, now.0).await?;
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let (served, asked_of) = (Arc::clone(&index), app.clone());
    let body = work::scan(move || {
        // Each search may compile a regular expression, which takes a while.
        let asked = queries.iter().enumerate().take_while(|_| !budget::spent());
        let asked = asked.map(|(at, query)| parse(at, query, known, as_of.today));
        let asked = asked.collect::<Result<Vec<_>, ApiError>>()?;
        let count = asked.len() as u32;
        let mut out = b"{\"results\":[".to_vec();
        for (at, (query, mut filter)) in asked.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            asked_of.apply_facts(&index, &mut filter.common, as_of.today)?;
            let page = index.search(&filter, as_of);
            out.append(&mut SearchResponse::new(&query, &filter, &page).into_json());
        }
        out.push(b']');
        push_member(&mut out, "count", count);
        out.push(b'}');
        Ok(out)
    });
    let body = forgive(&app, (&caller, Counter::Requests), more, now.0, body.await)?;
    let mut response = etag::from_generation(&served, json::json_response(body));
    if let Some(allowance) = allowance {
        response.extensions_mut().insert(allowance);
    }
    Ok(response)
}
