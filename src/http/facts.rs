//! `/api/v1/facts`: files of facts that an account adds, and the sources that it sees.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{Caller, UserData};
use crate::body::JsonBody;
use crate::edge::body::read_bytes_up_to;
use crate::edge::error::Refusal;
use crate::facts_file::store::StoredColumn;
use crate::facts_file::{Choices, DateOrder, Report};
use crate::query::params::Params;
use crate::response::Timestamp;
use crate::service::app::{App, Now};
use crate::service::error::{ApiError, required};
use crate::service::fact_book::Source;
use crate::service::facts::{self, ReadFile};
use crate::vocab::day::Day;
use crate::vocab::fact::{Direction, FactType, KeyKind, Unit};
use crate::vocab::limits::{FACTS_BYTES_MAX, FACTS_ROWS_MAX};
use crate::vocab::money::Currency;

/// The sources of facts that an account sees.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FactSources)]
pub struct FactSourcesResponse<'a> {
    #[schema(value_type = u32)]
    count: usize,
    /// Rows of the account's own sources, and how many they may have.
    #[schema(value_type = u32)]
    own_rows: u64,
    #[schema(value_type = u32)]
    own_rows_max: u64,
    /// In order of their names.
    sources: Vec<SourceDetails<'a>>,
    /// Descriptions of files, by the fingerprint of their header row.
    mappings: Vec<MappingResponse<'a>>,
}

/// A source of facts with its columns.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FactSourceDetails)]
struct SourceDetails<'a> {
    /// First part of the names of its facts.
    source: &'a str,
    title: &'a str,
    /// Kind of its keys: names, labels under every suffix, or words that labels spell.
    #[schema(value_type = String, pattern = "^(domain|label|word)$")]
    key: KeyKind,
    /// Newest day of its facts.
    #[schema(value_type = String, format = Date)]
    as_of: Day,
    #[schema(value_type = String, pattern = "^(open|share-alike|own|vendor)$")]
    licence: &'static str,
    /// The line that the licence asks to be shown beside values.
    #[schema(required)]
    attribution: Option<&'a str>,
    /// Whether only this account sees it.
    own: bool,
    rows: u64,
    /// When the account last added a file to it; `null` for sources of the server.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    added_at: Option<Timestamp>,
    facts: Vec<FactDetails<'a>>,
}

/// A fact.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FactColumn)]
struct FactDetails<'a> {
    /// `SOURCE.FACT`, by which `fact`, `has`, `facts` and `sort` name it.
    fact: String,
    #[serde(rename = "type")]
    #[schema(value_type = String, pattern = "^(int|dec|money|date|year|bool|enum|text)$")]
    kind: FactType,
    #[schema(required, value_type = Option<String>)]
    unit: Option<Unit>,
    /// Whether more or less is better.
    #[schema(required, value_type = Option<String>)]
    direction: Option<Direction>,
    /// The highest value of a scale from 0.
    #[schema(required)]
    scale: Option<u32>,
    /// The currency of amounts, which are in cents.
    #[schema(required, value_type = Option<String>)]
    currency: Option<Currency>,
    /// The values of an `enum`.
    values: &'a [String],
}

/// How the columns of files with one header row are read.
#[derive(Serialize, ToSchema)]
#[schema(as = FactMapping)]
pub struct MappingResponse<'a> {
    fingerprint: &'a str,
    /// For each column in order, its description; empty for columns that are not read.
    columns: Vec<String>,
}

/// How the columns of files with one header row are to be read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FactMappingBody, example = json!({"columns": ["domain", "", "acme.rank:int:rank:less"]}))]
pub struct MappingRequest {
    /// For each column in order, its description as in a header of the canonical form; empty to ignore it.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 512)]
    columns: Option<Vec<String>>,
}

/// A file that was read.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FactsAdded)]
pub struct AddedResponse<'a> {
    /// The export, if it is a known one; `canonical` or `mapped` otherwise.
    format: &'static str,
    /// Identifies the header row.
    fingerprint: &'a str,
    /// Whether the facts are kept now; false with `dry_run`.
    added: bool,
    sources: Vec<AddedSource<'a>>,
    /// Rows below the header.
    rows: u64,
    /// Rows with a valid key.
    usable: u64,
    refused_rows: u64,
    /// Cells of usable rows that are not values of their column.
    refused_cells: u64,
    /// The first refused rows and cells.
    refused: Vec<RefusalResponse<'a>>,
    /// Rows whose key an earlier row has.
    merged: u64,
    /// Cells of merged rows that contradict an earlier row.
    disagreements: u64,
    /// Columns that nothing describes, by their names.
    ignored: &'a [String],
    /// Columns that may hold personal data or secrets, by their names. Their cells were not read.
    dropped: &'a [String],
    /// Columns that are not read until something is chosen.
    ambiguous: Vec<AmbiguousResponse<'a>>,
}

/// A source after the file was added.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FactsAddedSource)]
struct AddedSource<'a> {
    source: &'a str,
    /// Rows that the source has now.
    rows: u64,
    /// Rows of the file that are new, or replace older ones.
    from_file: u64,
    /// Rows whose name or label is in the data; the others wait for the name to appear.
    matched: u64,
    facts: Vec<String>,
}

/// A row, or a cell of a row, that was not used.
#[derive(Serialize, ToSchema)]
#[schema(as = FactRefusal)]
struct RefusalResponse<'a> {
    line: u64,
    /// `null` for the whole row.
    #[schema(required)]
    column: Option<&'a str>,
    reason: &'a str,
}

/// A column that can be read in several ways.
#[derive(Serialize, ToSchema)]
#[schema(as = FactAmbiguity)]
struct AmbiguousResponse<'a> {
    column: &'a str,
    /// The question, and the possible answers.
    choose: &'a str,
}

/// Confirmation that a source or a description was removed.
#[derive(Serialize, ToSchema)]
#[schema(as = FactsRemoved)]
pub struct RemovedResponse {
    /// Name of the source, or fingerprint.
    id: String,
    removed: bool,
}

/// Confirmation that a description was stored.
#[derive(Serialize, ToSchema)]
#[schema(as = FactsMapped)]
pub struct MappedResponse {
    fingerprint: String,
    columns: Vec<String>,
}

impl<'a> SourceDetails<'a> {
    fn new(source: &'a Source, owned: &UserData) -> SourceDetails<'a> {
        let meta = source.edition.meta();
        let row = source.is_own.then(|| owned.facts().source(&meta.id)).flatten();
        let fact = |column: &'a StoredColumn| FactDetails {
            fact: format!("{}.{}", meta.id, column.name),
            kind: column.kind,
            unit: column.unit,
            direction: column.direction,
            scale: column.scale,
            currency: column.currency,
            values: &column.words,
        };
        SourceDetails {
            source: &meta.id,
            title: &meta.title,
            key: meta.key,
            as_of: meta.as_of,
            licence: meta.licence.as_str(),
            attribution: meta.attribution.as_deref(),
            own: source.is_own,
            rows: source.edition.rows(),
            added_at: row.map(|it| Timestamp(it.row.added_at)),
            facts: meta.columns.iter().map(fact).collect(),
        }
    }
}

impl<'a> AddedResponse<'a> {
    fn new(read: &'a ReadFile, added: bool) -> AddedResponse<'a> {
        let Report { refused, ambiguous, .. } = &read.report;
        let source = |it: &'a facts::ReadSource| {
            let meta = it.source.edition.meta();
            let name = |column: &StoredColumn| format!("{}.{}", meta.id, column.name);
            AddedSource {
                source: &meta.id,
                rows: it.rows,
                from_file: it.from_file,
                matched: it.matched,
                facts: meta.columns.iter().map(name).collect(),
            }
        };
        AddedResponse {
            format: read.preset,
            fingerprint: &read.fingerprint,
            added,
            sources: read.sources.iter().map(source).collect(),
            rows: read.report.rows,
            usable: read.report.usable,
            refused_rows: read.report.refused_rows,
            refused_cells: read.report.refused_cells,
            refused: refused
                .iter()
                .map(|it| RefusalResponse {
                    line: it.line,
                    column: it.column.as_deref(),
                    reason: &it.reason,
                })
                .collect(),
            merged: read.report.merged,
            disagreements: read.report.disagreements,
            ignored: &read.report.ignored,
            dropped: &read.report.dropped,
            ambiguous: ambiguous
                .iter()
                .map(|it| AmbiguousResponse { column: &it.header, choose: &it.choose })
                .collect(),
        }
    }
}

/// `GET /api/v1/facts`: the sources that the caller sees.
pub async fn list_facts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    let owned = app.store.user_data(&caller);
    let visible = app.facts.visible(Some(&owned));
    let sources = visible.sources().iter().map(|source| SourceDetails::new(source, &owned));
    let mapping = |(fingerprint, text)| MappingResponse { fingerprint, columns: columns(text) };
    let body = FactSourcesResponse {
        count: visible.sources().len(),
        own_rows: owned.facts().sources().map(|it| it.row.rows).sum(),
        own_rows_max: FACTS_ROWS_MAX,
        sources: sources.collect(),
        mappings: owned.facts().mappings().map(mapping).collect(),
    };
    Ok(Json(body).into_response())
}

/// `POST /api/v1/facts`: adds a file.
pub async fn add_facts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, Refusal> {
    let params = Params::new(request.uri().query());
    let choices = choices(&params)?;
    let is_trial = params.flag("dry_run")?;
    let bytes = read_bytes_up_to(request.into_body(), FACTS_BYTES_MAX as usize).await?;
    let read = facts::add(&app, &caller, bytes, choices, now, is_trial).await?;
    let read = read.map_err(facts::unreadable)?;
    let status = if is_trial { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(AddedResponse::new(&read, !is_trial))).into_response())
}

/// Reads `date_order` and `currency`.
///
/// # Errors
/// A value is not allowed.
pub fn choices(params: &Params<'_>) -> Result<Choices, ApiError> {
    let date_order: Option<DateOrder> = params.one("date_order")?;
    let currency = match params.text("currency", 3)? {
        None => None,
        Some(code) => Some(Currency::parse(&code).ok_or_else(|| {
            ApiError::parameter("currency", "must be the code of a currency in use, such as EUR")
        })?),
    };
    Ok(Choices { date_order, currency, ..Choices::default() })
}

/// `DELETE /api/v1/facts/{source}`: removes one of the caller's sources.
pub async fn remove_facts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<RemovedResponse>, Refusal> {
    app.store.remove_facts(&caller, &id).await?;
    Ok(Json(RemovedResponse { id, removed: true }))
}

/// `PUT /api/v1/facts/mappings/{fingerprint}`: describes the columns of files with a header row.
pub async fn put_mapping(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(fingerprint): Path<String>,
    JsonBody(body): JsonBody<MappingRequest>,
) -> Result<Json<MappedResponse>, Refusal> {
    let columns = required(body.columns, "columns")?;
    let text = facts::mapping_text(&fingerprint, &columns)?;
    app.store.map_facts(&caller, fingerprint.as_str().into(), Some(text.into())).await?;
    Ok(Json(MappedResponse { fingerprint, columns }))
}

fn columns(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// `DELETE /api/v1/facts/mappings/{fingerprint}`: forgets a description.
pub async fn remove_mapping(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<RemovedResponse>, Refusal> {
    app.store.map_facts(&caller, id.as_str().into(), None).await?;
    Ok(Json(RemovedResponse { id, removed: true }))
}
