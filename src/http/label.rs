//! `GET /api/v1/label/{label}`: every name with a label, and its variants.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::index::query::family::{FamilyName, VariantKind};
use crate::json;
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::name::DomainName;

/// Estimated microseconds for a label; it has at most a few thousand suffixes and a hundred
/// variants.
const COST_US: u32 = 1_000;

/// The names of a label, and of labels like it.
#[derive(Serialize, ToSchema)]
#[schema(as = LabelFamily)]
pub struct LabelResponse<'a> {
    /// The label, in A-label form.
    label: &'a str,
    /// Number of names.
    #[schema(value_type = u32)]
    count: usize,
    /// Highest score first, then by suffix. Empty if the data has none.
    names: Vec<FamilyName<'a>>,
    /// Labels that differ in a hyphen or a plural and have names in the data.
    variants: Vec<LabelVariant<'a>>,
}

/// A label that differs in a hyphen or a plural.
#[derive(Serialize, ToSchema)]
pub struct LabelVariant<'a> {
    label: String,
    kind: VariantKind,
    #[schema(value_type = u32)]
    count: usize,
    names: Vec<FamilyName<'a>>,
}

fn parse_label(path: Result<Path<String>, PathRejection>) -> Result<DomainName, ApiError> {
    let Path(label) =
        path.map_err(|_| ApiError::parameter("label", "is not percent-encoded UTF-8"))?;
    if label.contains('.') {
        return Err(ApiError::parameter("label", "must be one label, without a dot"));
    }
    // A label must follow the rules of names.
    let name = DomainName::parse(&format!("{}.com", label.trim()));
    name.map_err(|err| ApiError::parameter("label", err))
}

/// `GET /api/v1/label/{label}`: suffix, stage, dates and score of every name with the label.
pub async fn find_label(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    label: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let name = parse_label(label)?;
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let tag = Tag::for_query(&index, as_of, request.uri(), &[]);
    if let Some(not_modified) = tag.not_modified(request.headers()) {
        return Ok(not_modified);
    }
    let body = work::run(COST_US, move || {
        let label = name.label();
        let names = index.family(label, as_of);
        let variants = index.label_variants(label).into_iter().map(|(kind, label)| {
            let names = index.family(&label, as_of);
            LabelVariant { label, kind, count: names.len(), names }
        });
        let variants = variants.collect();
        json::json_bytes(&LabelResponse { label, count: names.len(), names, variants })
    });
    Ok(tag.on(json::json_response(body.await?)))
}
