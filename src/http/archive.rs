//! `POST /api/v1/archive`: asks a web archive about the captures of a name.
//!
//! Questions are queued for the worker, which keeps to the limits of the archive. A repeated request returns the
//! result once it has come.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::Caller;
use crate::body::JsonBody;
use crate::edge::error::Refusal;
use crate::facts_file::published::Gathered;
use crate::json;
use crate::outbound::archive::Captures;
use crate::service::app::App;
use crate::service::archive::Looked;
use crate::service::checks::Refused;
use crate::service::error::{ApiError, required};
use crate::vocab::name::DomainName;

/// A name to ask about.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArchiveBody, example = json!({"domain": "solar.com"}))]
pub struct ArchiveRequest {
    #[schema(value_type = String, format = "domain", min_length = 1, max_length = 253)]
    domain: Option<String>,
}

impl TryFrom<ArchiveRequest> for DomainName {
    type Error = ApiError;

    fn try_from(request: ArchiveRequest) -> Result<DomainName, ApiError> {
        let text = required(request.domain, "domain")?;
        let name = DomainName::parse_or_address(&text);
        name.map_err(|err| ApiError::parameter("domain", err.to_string()))
    }
}

/// The question about a name.
#[derive(Serialize, ToSchema)]
#[schema(as = ArchiveLookup)]
pub struct ArchiveResponse {
    #[schema(value_type = String)]
    domain: DomainName,
    /// `known`; `queued`: repeat the request for the result; `failed`: the archive gave no usable answer, and is not
    /// asked about the name for a day; `refused`: the hourly questions of the account are used up, too many are
    /// queued, or the server asks no archive.
    outcome: &'static str,
    /// `null` unless they are known.
    #[schema(required)]
    captures: Option<CapturesResponse>,
    /// The line to show beside captures.
    #[schema(required)]
    attribution: Option<&'static str>,
    /// Why the question was refused, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

/// The captures of a name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArchiveCaptures)]
struct CapturesResponse {
    /// Year of the first capture; `null` without captures.
    #[schema(required)]
    first: Option<u16>,
    /// Year of the last capture; `null` without captures, and if there are more than were read.
    #[schema(required)]
    last: Option<u16>,
    /// Number of days with a capture.
    days: u16,
    /// Whether there are more captures than were read, and `days` is a lower bound.
    is_cut: bool,
    /// Share of redirects among captures with a status, in percent.
    #[schema(required)]
    redirects: Option<u8>,
    /// Years of the longest time without a capture.
    #[schema(required)]
    gap: Option<u16>,
}

impl CapturesResponse {
    fn new(captures: Option<Captures>) -> CapturesResponse {
        let (first, last, redirects, gap) = (None, None, None, None);
        match captures {
            None => CapturesResponse { first, last, days: 0, is_cut: false, redirects, gap },
            Some(Captures { first, last, days, is_cut, redirects, gap }) => {
                CapturesResponse { first: Some(first), last, days, is_cut, redirects, gap }
            }
        }
    }
}

/// Queues a question, or returns what is known.
pub async fn ask_archive(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<ArchiveRequest>,
) -> Result<Response, Refusal> {
    let domain = DomainName::try_from(request)?;
    let begun = app.reach.archive.as_ref().map(|it| it.checks.begin(caller.account, &domain));
    let (outcome, captures, error) = match begun {
        Some(Ok(Some(Looked::Known(captures)))) => {
            ("known", Some(CapturesResponse::new(captures)), None)
        }
        Some(Ok(Some(Looked::Failed))) => ("failed", None, None),
        Some(Ok(None)) => ("queued", None, None),
        Some(Err(Refused)) => {
            let why =
                "the questions of this hour are used up, or too many are queued: try again later";
            ("refused", None, Some(why))
        }
        None => {
            let why = "this server asks no web archive: its operator can set [archive] enabled";
            ("refused", None, Some(why))
        }
    };
    let attribution = Gathered::Archive.attribution();
    let response = ArchiveResponse { domain, outcome, captures, attribution, error };
    Ok(json::json_response(json::json_bytes(&response)?))
}
