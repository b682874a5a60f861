//! `POST /api/v1/appraise`: the scores of names, whether or not a list ever brought them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::http::body::{JsonBody, required};
use crate::http::error::ApiError;
use crate::http::{App, etag, work};
use crate::index::Index;
use crate::index::query::appraise::{Appraisal, cost_us};
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::budget;
use crate::vocab::limits::APPRAISED_MAX;
use crate::vocab::name::DomainName;

/// Names to appraise, as sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppraiseRequest {
    domains: Option<Vec<String>>,
}

/// The texts to appraise; each is judged as a name of its own, so that one bad name does not cost
/// the others their answer.
impl TryFrom<AppraiseRequest> for Vec<String> {
    type Error = ApiError;

    fn try_from(sent: AppraiseRequest) -> Result<Vec<String>, ApiError> {
        let domains = required(sent.domains, "domains")?;
        if (1..=APPRAISED_MAX).contains(&domains.len()) {
            return Ok(domains);
        }
        let what = format!("must have 1 to {APPRAISED_MAX} names, not {}", domains.len());
        Err(ApiError::parameter("domains", what))
    }
}

/// The appraisals, in the order they were asked for (api.md).
#[derive(Serialize)]
struct AppraisalsAnswer<'a> {
    count: usize,
    appraisals: Vec<Appraised<'a>>,
}

/// What is answered to one text.
#[derive(Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "nearly all are names, and there are few")]
enum Appraised<'a> {
    Name {
        domain: DomainName,
        tld: String,
        length: u8,
        #[serde(flatten)]
        appraisal: Appraisal,
    },
    /// As sent, and why it is no name.
    Refused { domain: &'a str, error: String },
}

impl<'a> Appraised<'a> {
    fn new(text: &'a str, index: &Index) -> Appraised<'a> {
        match DomainName::parse(text) {
            Ok(domain) => Appraised::Name {
                tld: domain.tld().to_owned(),
                length: domain.length(),
                appraisal: index.appraise(&domain),
                domain,
            },
            Err(err) => Appraised::Refused { domain: text, error: err.to_string() },
        }
    }
}

/// `POST /api/v1/appraise`: scores with their reasons. Changes nothing, so there is nothing that an
/// `Idempotency-Key` could keep from being done twice.
pub async fn appraise_names(
    State(app): State<App>,
    JsonBody(body): JsonBody<AppraiseRequest>,
) -> Result<Response, ApiError> {
    let domains = Vec::<String>::try_from(body)?;
    let index = app.live.current();
    let timer = QueryTimer::start(QueryKind::Appraise);
    let answering = Arc::clone(&index);
    let body = work::run(cost_us(&domains), move || {
        let appraisals: Vec<_> = domains
            .iter()
            .take_while(|_| !budget::spent())
            .map(|text| Appraised::new(text, &index))
            .collect();
        let body = work::json_bytes(&AppraisalsAnswer { count: appraisals.len(), appraisals });
        timer.finish(domains.len(), &domains);
        body
    });
    Ok(etag::from_generation(&answering, work::json_response(body.await?)))
}
