//! `POST /api/v1/appraise`: scores of names, whether or not they are in the corpus.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::JsonBody;
use crate::edge::error::Refusal;
use crate::edge::etag;
use crate::index::Index;
use crate::index::query::appraise::{Appraisal, cost_us};
use crate::json;
use crate::scorer::Signals;
use crate::service::app::App;
use crate::service::error::{ApiError, required};
use crate::service::work;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::budget;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::APPRAISED_MAX;
use crate::vocab::name::DomainName;

/// Names to appraise.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AppraiseBody, example = json!({"domains": ["solar.com", "münchen.de"]}))]
pub struct AppraiseRequest {
    /// Any text is accepted; an invalid name gets an error in its place.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 100)]
    domains: Option<Vec<String>>,
}

/// The texts to appraise, parsed later one by one, so that an invalid name does not fail the others.
impl TryFrom<AppraiseRequest> for Vec<String> {
    type Error = ApiError;

    fn try_from(request: AppraiseRequest) -> Result<Vec<String>, ApiError> {
        let domains = required(request.domains, "domains")?;
        if (1..=APPRAISED_MAX).contains(&domains.len()) {
            return Ok(domains);
        }
        let what = format!("must have 1 to {APPRAISED_MAX} names, not {}", domains.len());
        Err(ApiError::parameter("domains", what))
    }
}

/// One appraisal per name, in request order.
#[derive(Serialize, ToSchema)]
#[schema(as = Appraisals)]
pub struct AppraisalsResponse<'a> {
    #[schema(value_type = u32)]
    count: usize,
    appraisals: Vec<AppraisalResponse<'a>>,
}

/// The score of a name, or the reason why the text is not a name.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Appraisal)]
#[expect(clippy::large_enum_variant, reason = "there are at most 100, and nearly all are names")]
enum AppraisalResponse<'a> {
    Name {
        #[schema(value_type = String)]
        domain: DomainName,
        tld: String,
        length: u8,
        #[schema(value_type = u8, minimum = 0, maximum = 100)]
        dqs: Dqs,
        explanation: String,
        signals: Signals<'static>,
        /// Whether the name is in the corpus.
        known: bool,
    },
    Refused {
        /// The text as sent.
        domain: &'a str,
        error: String,
    },
}

impl<'a> AppraisalResponse<'a> {
    fn new(text: &'a str, index: &Index) -> AppraisalResponse<'a> {
        let domain = match DomainName::parse_or_address(text) {
            Ok(domain) => domain,
            Err(err) => {
                return AppraisalResponse::Refused { domain: text, error: err.to_string() };
            }
        };
        let Appraisal { dqs, explanation, signals, known } = index.appraise(&domain);
        AppraisalResponse::Name {
            tld: domain.tld().to_owned(),
            length: domain.length(),
            domain,
            dqs,
            explanation,
            signals,
            known,
        }
    }
}

/// `POST /api/v1/appraise`: scores with their signals. An appraisal stores nothing, so an
/// `Idempotency-Key` has no effect.
pub async fn appraise_names(
    State(app): State<App>,
    JsonBody(body): JsonBody<AppraiseRequest>,
) -> Result<Response, Refusal> {
    let domains = Vec::<String>::try_from(body)?;
    let index = app.live.current();
    let timer = QueryTimer::start(QueryKind::Appraise);
    let served = Arc::clone(&index);
    let body = work::run(cost_us(&domains), move || {
        let appraisals: Vec<_> = domains
            .iter()
            .take_while(|_| !budget::spent())
            .map(|text| AppraisalResponse::new(text, &index))
            .collect();
        let body = json::json_bytes(&AppraisalsResponse { count: appraisals.len(), appraisals });
        timer.finish(domains.len(), &domains);
        body
    });
    Ok(etag::from_generation(&served, json::json_response(body.await?)))
}
