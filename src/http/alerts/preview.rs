//! `POST /api/v1/alerts/preview`: the matches of a rule before it is added.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{PreviewRequest, preview_filter};
use crate::body::PostBody;
use crate::edge::error::Refusal;
use crate::filter::FilterRequest;
use crate::index::query::rows::DropRow;
use crate::index::rules::preview::Preview;
use crate::json;
use crate::rows::{DROP_JSON_BYTES, push_samples};
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::limits::PREVIEW_SAMPLES;

/// The matches of a rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Preview)]
pub struct PreviewResponse {
    /// Number of names that match now.
    today: u32,
    /// Number of names that the rule would have sent on each of the most recent days that have lists, newest
    /// first.
    per_day: Vec<DayCount>,
    /// The day of the newest list, and the number of names that the rule would have sent for it; `null`
    /// without a list.
    #[schema(required)]
    latest: Option<DayCount>,
    /// The highest-scored names that match now.
    #[schema(value_type = Vec<DropRow<'static>>)]
    samples: Box<RawValue>,
}

/// A count for one day.
#[derive(Serialize, ToSchema)]
struct DayCount {
    #[schema(value_type = String, format = Date)]
    date: Day,
    count: u32,
}

impl PreviewResponse {
    fn new(preview: &Preview<'_>) -> Result<PreviewResponse, ApiError> {
        let mut samples = Vec::with_capacity(PREVIEW_SAMPLES * DROP_JSON_BYTES);
        push_samples(preview, &mut samples);
        let samples =
            serde_json::from_slice(&samples).map_err(|err| ApiError::Internal(err.into()))?;
        let per_day = preview.per_day.iter().map(|&(date, count)| DayCount { date, count });
        Ok(PreviewResponse {
            today: preview.today,
            per_day: per_day.collect(),
            latest: preview.latest.map(|(date, count)| DayCount { date, count }),
            samples,
        })
    }
}

/// `POST /api/v1/alerts/preview`: counts the names that a rule matches now, and those of recent lists.
/// Uses the filter of the body and stores nothing.
pub async fn preview_alert(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    PostBody { body, .. }: PostBody<PreviewRequest>,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let scans = body.filter.as_ref().is_some_and(FilterRequest::reads_text);
    let body = work::run_or_scan(scans, index.preview_cost_us(as_of), move || {
        let filter = preview_filter(body, app.reach.guard.rules(), as_of.today)?;
        let mut query = filter.rule(as_of.today)?;
        app.apply_facts(&index, &mut query.common, as_of.today)?;
        let preview = index.preview_moving(&query, filter.releases(&query), as_of)?;
        json::json_bytes(&PreviewResponse::new(&preview)?)
    });
    Ok(json::json_response(body.await?))
}
