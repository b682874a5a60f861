//! `/api/v1/domain/{name}`: the dossier of a name, and what the caller thinks of it.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use crate::accounts::{self, Caller};
use crate::http::allowance::Now;
use crate::http::body::{JsonBody, Patch};
use crate::http::error::ApiError;
use crate::http::etag::Tag;
use crate::http::{App, work};
use crate::index::PipelineDrop;
use crate::index::query::rows::Status;
use crate::vocab::claim::Vote;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// The domain dossier (api.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DossierAnswer<'a> {
    domain: &'a DomainName,
    tld: &'a str,
    length: u8,
    current_status: Status,
    drop_predicted_at: Option<Day>,
    latest_drop: Option<PipelineDrop>,
    feedback: Feedback,
}

/// Community feedback totals.
#[derive(Serialize)]
struct Feedback {
    up: u64,
    down: u64,
}

impl From<accounts::Feedback> for Feedback {
    fn from(votes: accounts::Feedback) -> Feedback {
        Feedback { up: votes.up, down: votes.down }
    }
}

/// What a vote answers: it, and the totals it led to.
#[derive(Serialize)]
pub struct VoteAnswer {
    domain: DomainName,
    vote: Option<Vote>,
    feedback: Feedback,
}

/// A vote, as sent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VoteRequest {
    vote: Patch<String>,
}

impl TryFrom<VoteRequest> for Option<Vote> {
    type Error = ApiError;

    fn try_from(sent: VoteRequest) -> Result<Option<Vote>, ApiError> {
        match sent.vote {
            Patch::Null => Ok(None),
            Patch::Value(word) if word == "up" => Ok(Some(Vote::Up)),
            Patch::Value(word) if word == "down" => Ok(Some(Vote::Down)),
            Patch::Value(_) => Err(ApiError::parameter("vote", "must be up, down or null")),
            Patch::Absent => Err(ApiError::parameter("vote", "is required")),
        }
    }
}

fn name_in(path: Result<Path<String>, PathRejection>) -> Result<DomainName, ApiError> {
    let Path(name) =
        path.map_err(|_| ApiError::parameter("name", "is not percent-encoded UTF-8"))?;
    DomainName::parse(&name).map_err(|err| ApiError::parameter("name", err))
}

/// `GET /api/v1/domain/{name}`: all that is known of one name, in any spelling.
pub async fn find_domain(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let domain = name_in(name)?;
    let (index, moment) = (app.live.current(), app.moment(now));
    let feedback = app.store.feedback(&domain);
    let tag = Tag::of(&index, moment, request.uri(), &[feedback.up, feedback.down]);
    // A name that nobody has heard of is no answer that anybody holds.
    let dossier = index.dossier(&domain, moment).ok_or(ApiError::NotFound)?;
    if let Some(held) = tag.held(request.headers()) {
        return Ok(held);
    }
    let body = work::json_bytes(&DossierAnswer {
        domain: &domain,
        tld: dossier.tld,
        length: dossier.length,
        current_status: dossier.status,
        drop_predicted_at: dossier.drop_predicted_at,
        latest_drop: dossier.latest_drop,
        feedback: feedback.into(),
    })?;
    Ok(tag.on(work::json_response(body)))
}

/// `PUT /api/v1/domain/{name}/feedback`: sets or, with null, takes back the caller's one vote on a
/// name that was seen.
pub async fn vote(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody<VoteRequest>,
) -> Result<Json<VoteAnswer>, ApiError> {
    let domain = name_in(name)?;
    let vote = Option::<Vote>::try_from(body)?;
    if !app.live.current().holds(&domain) {
        return Err(ApiError::NotFound);
    }
    let feedback = app.store.vote(&caller, &domain, vote).await?.into();
    Ok(Json(VoteAnswer { domain, vote, feedback }))
}
