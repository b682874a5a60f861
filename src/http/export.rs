//! `GET /api/export/drops`: CSV, streamed (decisions.md §6).

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use crate::http::allowance::{Now, admit_export, charge_export, rate_limit_headers};
use crate::http::error::ApiError;
use crate::http::params::{Limits, Params};
use crate::http::{App, work};
use crate::index::{DropRow, Index};
use crate::vocab::day::Day;
use crate::vocab::limits::EXPORT_ROWS_MAX;

const LIMITS: Limits = Limits { default: EXPORT_ROWS_MAX, max: EXPORT_ROWS_MAX };
/// Rows shaped at once: a few hundred kilobytes wait for a slow client, not a whole export.
const ROWS_PER_CHUNK: usize = 500;

/// The columns of the drops export.
pub const DROPS_HEADER: &str = "domain,tld,length,dqs,explanation\r\n";

/// Writes one row of the drops export. Names and TLDs are letters, digits, hyphens and dots, and
/// need no quotes; the explanation always has them.
///
/// # Errors
/// Those of `out`.
pub fn write_drop(row: &DropRow, out: &mut impl Write) -> io::Result<()> {
    let explanation = row.explanation.replace('"', "\"\"");
    write!(out, "{},{},{},{},\"{explanation}\"\r\n", row.name, row.tld, row.length, row.dqs)
}

/// `GET /api/export/drops`: what the drops list shows, as CSV.
pub async fn export_drops(
    State(app): State<App>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let now = app.clock.now();
    let caller = admit_export(&app, &headers)?;
    let filter = Params::new(query.as_deref()).drops(LIMITS)?;
    let allowance = charge_export(&app, &caller, now)?;
    let (index, moment) = (app.live.current(), app.moment(Now(now)));
    let searched = Arc::clone(&index);
    // Places of rows, four bytes each: rows themselves are shaped as the client reads.
    let places = work::run(u32::MAX, move || Ok(searched.drop_places(&filter, moment)?)).await?;
    let mut response = csv_response("drops", moment.today, drop_chunks(index, places));
    rate_limit_headers(&allowance, response.headers_mut());
    Ok(response)
}

fn csv_response(what: &str, today: Day, body: Body) -> Response {
    let disposition = format!("attachment; filename=\"{what}-{today}.csv\"");
    let headers =
        [(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, disposition)];
    (headers, body).into_response()
}

/// The header line, then the rows of `places`, a chunk at a time, each made when the one before
/// is on its way.
fn drop_chunks(index: Arc<Index>, places: Vec<u32>) -> Body {
    let places = Arc::new(places);
    // Rows done; the header line goes with the first chunk, which an empty list has too.
    Body::from_stream(stream::try_unfold(None, move |done: Option<usize>| {
        let (index, places) = (Arc::clone(&index), Arc::clone(&places));
        async move {
            let start = done.unwrap_or(0);
            let end = places.len().min(start + ROWS_PER_CHUNK);
            if done.is_some() && start == end {
                return Ok::<_, io::Error>(None);
            }
            let shape = move || drop_chunk(&index, &places, start..end, done.is_none());
            let chunk = tokio::task::spawn_blocking(shape).await.map_err(io::Error::other)??;
            Ok(Some((Bytes::from(chunk), Some(end))))
        }
    }))
}

fn drop_chunk(
    index: &Index,
    places: &[u32],
    range: Range<usize>,
    first: bool,
) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::with_capacity(ROWS_PER_CHUNK * 128);
    if first {
        chunk.extend_from_slice(DROPS_HEADER.as_bytes());
    }
    for &place in &places[range] {
        write_drop(&index.drop_at(place), &mut chunk)?;
    }
    Ok(chunk)
}
