//! `POST /api/v1/alerts/preview`: what a rule would tell, before there is one.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use super::{RuleRequest, draft_filter, rule_query};
use crate::http::allowance::Now;
use crate::http::body::PostBody;
use crate::http::error::ApiError;
use crate::http::rows::{DROP_JSON_BYTES, push_day, push_number, push_samples};
use crate::http::{App, work};
use crate::index::query::preview::Preview;
use crate::vocab::limits::{PREVIEW_DAYS, PREVIEW_SAMPLES};

/// Bytes of a preview around its samples.
const FRAME_BYTES: usize = 64 + PREVIEW_DAYS * 48;

/// `POST /api/v1/alerts/preview`: how many names a rule matches now and matched of the last lists.
/// Takes the body of a rule, of which the filter counts; adds nothing.
pub async fn preview_alert(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    PostBody { body, .. }: PostBody<RuleRequest>,
) -> Result<Response, ApiError> {
    let filter = draft_filter(body, app.guard.rules())?;
    let (index, moment) = (app.live.current(), app.moment(now));
    let body = work::run(index.preview_cost_us(moment), move || {
        Ok(preview_json(&index.preview(&rule_query(&filter), moment)?))
    });
    Ok(work::json_response(body.await?))
}

fn preview_json(preview: &Preview<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRAME_BYTES + PREVIEW_SAMPLES * DROP_JSON_BYTES);
    out.extend_from_slice(b"{\"today\":");
    push_number(&mut out, preview.today);
    out.extend_from_slice(b",\"perDay\":[");
    for (place, &(date, count)) in preview.per_day.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"date\":\"");
        push_day(&mut out, date);
        out.extend_from_slice(b"\",\"count\":");
        push_number(&mut out, count);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"samples\":");
    push_samples(preview, &mut out);
    out.push(b'}');
    out
}
