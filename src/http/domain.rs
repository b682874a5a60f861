//! `GET /api/v1/domain/{name}`.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Serialize;

use crate::http::App;
use crate::http::allowance::Now;
use crate::http::error::ApiError;
use crate::index::{PipelineDrop, Status};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// The domain dossier (api.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DossierAnswer {
    domain: DomainName,
    tld: String,
    length: u8,
    current_status: Status,
    drop_predicted_at: Option<Day>,
    latest_drop: Option<PipelineDrop>,
    feedback: Feedback,
}

/// Community feedback totals.
#[derive(Default, Serialize)]
struct Feedback {
    up: u64,
    down: u64,
}

/// `GET /api/v1/domain/{name}`: all that is known of one name, in any spelling.
pub async fn find_domain(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<DossierAnswer>, ApiError> {
    let Path(name) =
        name.map_err(|_| ApiError::parameter("name", "is not percent-encoded UTF-8"))?;
    let domain = DomainName::parse(&name).map_err(|err| ApiError::parameter("name", err))?;
    let dossier = app.live.current().dossier(&domain, app.moment(now)).ok_or(ApiError::NotFound)?;
    Ok(Json(DossierAnswer {
        domain,
        tld: dossier.tld,
        length: dossier.length,
        current_status: dossier.status,
        drop_predicted_at: dossier.drop_predicted_at,
        latest_drop: dossier.latest_drop,
        feedback: Feedback::default(),
    }))
}
