//! `/api/export/files`: dated files with the whole pipeline and with the changes of a day
//! (`data/docs/copy.md`). A worker writes them; a request reads them from disk.

mod range;
pub mod rows;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::copies::{FileName, Format, Kind, Set};
use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::edge::export::{Begun, Export, file_body};
use crate::edge::rate_limit::rate_limit_headers;
use crate::json::{json_bytes, json_response};
use crate::params::path_id;
use crate::query::params::{Limits, Paging, Params};
use crate::response::Timestamp;
use crate::response::with_next;
use crate::service::app::App;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::limits::{ENTRIES_OFFSET_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX};

const LIMITS: Limits = Limits { default: OWNED_LIMIT_DEFAULT, max: OWNED_LIMIT_MAX };
/// Path of the list; a file is at `PATH/{name}`.
pub const PATH: &str = "/api/export/files";

/// A page of the dated files, the newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = ExportFiles)]
pub struct FileList {
    files: Vec<FileRow>,
    #[schema(value_type = u32)]
    count: usize,
    #[schema(value_type = u32)]
    total: usize,
    limit: u32,
    offset: u32,
}

/// A dated file.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ExportFile)]
struct FileRow {
    name: String,
    /// `pipeline` or `changes`.
    #[schema(value_type = String)]
    kind: Kind,
    /// `ndjson` and `csv`, both compressed with gzip, or `parquet`.
    #[schema(value_type = String)]
    format: Format,
    /// UTC day of the pipeline or of the changes.
    #[schema(value_type = String, format = Date)]
    day: Day,
    rows: u64,
    bytes: u64,
    /// SHA-256 of the file, in hexadecimal digits.
    sha256: String,
    /// Rises when a column is renamed, removed or changes its type.
    schema_version: u32,
    /// Generation of the index that the rows come from.
    generation: u64,
    /// When the file was written.
    #[schema(value_type = String, format = DateTime)]
    made_at: Timestamp,
    /// `lastSeq` of the day before, plus one; `null` for the pipeline.
    #[schema(required)]
    first_seq: Option<u64>,
    /// Sequence number of the newest change that the file includes; continue with `since=` this number.
    last_seq: u64,
    url: String,
}

/// The files of a set.
fn rows_of(set: Set) -> impl Iterator<Item = FileRow> {
    let Set { name: set_name, schema_version, about, rows, files } = set;
    files.into_iter().map(move |file| {
        let name = FileName { set: set_name, format: file.format }.to_string();
        FileRow {
            url: format!("{PATH}/{name}"),
            name,
            kind: set_name.kind,
            format: file.format,
            day: set_name.day,
            rows,
            bytes: file.bytes,
            sha256: file.sha256,
            schema_version,
            generation: about.generation,
            made_at: Timestamp(about.made_at),
            first_seq: about.first_seq,
            last_seq: about.last_seq,
        }
    })
}

/// `GET /api/export/files`: the dated files, the newest first. Counts towards no allowance.
pub async fn list_files(
    State(app): State<App>,
    export: Export,
    uri: Uri,
) -> Result<Response, Refusal> {
    let page = Params::new(uri.query()).page(LIMITS, ENTRIES_OFFSET_MAX)?;
    let allowance = export.allowance(&app);
    let read = move || {
        let sets = app.copies.as_ref().map_or(Ok(Vec::new()), |copies| copies.sets());
        let sets = sets.map_err(|err| ApiError::Internal(err.into()))?;
        let allowed = sets.into_iter().filter(|set| set.is_allowed(app.limits.exports_internal));
        let all: Vec<FileRow> = allowed.flat_map(rows_of).collect();
        let (total, Paging { limit, offset }) = (all.len(), page);
        let files: Vec<FileRow> = page.rows(all.into_iter()).collect();
        Ok((json_bytes(&FileList { count: files.len(), total, limit, offset, files })?, total))
    };
    let (body, total) = work::run_aside(read).await?;
    let mut response = with_next(json_response(body), &uri, page, total);
    rate_limit_headers(&allowance, response.headers_mut());
    Ok(response)
}

/// `GET /api/export/files/{name}`: a dated file, or a range of its bytes. A download counts one export;
/// ranges of a file that the account downloaded on this day count nothing.
pub async fn read_file(
    State(app): State<App>,
    export: Export,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let name: FileName = path_id(name, |text| text.parse().ok())?;
    let opened = app.clone();
    let open = move || {
        let Some(copies) = &opened.copies else { return Ok(None) };
        let found = copies.open(name).map_err(|err| ApiError::Internal(err.into()))?;
        Ok(found.filter(|(set, _)| set.is_allowed(opened.limits.exports_internal)))
    };
    let (set, file) = work::run_aside(open).await?.ok_or(ApiError::NotFound)?;
    let about = set.file(name.format).ok_or(ApiError::NotFound)?;
    let tag = Tag::for_bytes(about.sha256.as_bytes());
    if let Some(not_modified) = tag.not_modified(&headers) {
        return Ok(not_modified);
    }
    let range = range::wanted(&headers, about.bytes, &tag)?;
    let (text, account) = (name.to_string(), export.caller.account);
    let today = app.as_of(export.now).today;
    let is_counted = range.is_some() && app.limits.downloads.has(account, &text, today);
    let bytes = range.clone().unwrap_or(0..about.bytes);
    let length = bytes.end - bytes.start;
    let (body, allowance) = if is_counted && !export.is_head() {
        let started = export.resume(&app)?;
        let allowance = started.allowance;
        (file_body(started, file, bytes.clone()), allowance)
    } else {
        match export.start(&app).await? {
            Begun::Counted(started) => {
                app.limits.downloads.add(account, &text, today);
                let allowance = started.allowance;
                (file_body(started, file, bytes.clone()), allowance)
            }
            Begun::HeadersOnly(left) => (Body::empty(), left),
        }
    };
    let described = [
        (CONTENT_TYPE, name.format.media_type().to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{text}\"")),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (CONTENT_LENGTH, length.to_string()),
    ];
    let mut response = tag.on((described, body).into_response());
    rate_limit_headers(&allowance, response.headers_mut());
    if range.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let of = format!("bytes {}-{}/{}", bytes.start, bytes.end - 1, about.bytes);
        response.headers_mut().insert(CONTENT_RANGE, HeaderValue::try_from(of).expect("digits"));
    }
    Ok(response)
}
