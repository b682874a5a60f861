//! `/api/export/*`: streamed CSV. A request first collects the positions of its rows, a few bytes each,
//! and writes the rows from one immutable snapshot as the client reads.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use crate::accounts::{Allowance, Caller, Claim};
use crate::http::allowance::{Now, admit_export, charge_export};
use crate::http::error::{ApiError, Refusal};
use crate::http::params::{Limits, Params};
use crate::http::portfolio::ClaimFilter;
use crate::http::rate_limit::rate_limit_headers;
use crate::http::rows::{DROP_CSV_BYTES, DROPS_CSV_HEADER, push_drop_csv};
use crate::http::watchlist::{WatchQuery, WatchRow, sorted_rows};
use crate::http::{App, etag, work};
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::day::Day;
use crate::vocab::limits::EXPORT_ROWS_MAX;

const LIMITS: Limits = Limits { default: EXPORT_ROWS_MAX, max: EXPORT_ROWS_MAX };
/// Rows per chunk. A slow client holds one chunk in memory, not the whole export.
const ROWS_PER_CHUNK: usize = 500;

/// Header line of the watchlist export.
const WATCHLIST_HEADER: &str =
    "domain,source,stage,drop_date,dqs,rdap_state,rdap_verified_at,added_at\r\n";
/// Header line of the portfolio export.
const PORTFOLIO_HEADER: &str = "id,domain,tld,status,registrar,acquired_price_usd,\
    resale_price_usd,sold_at,reported_at,updated_at,user_notes\r\n";

/// Writes one row of the watchlist export. No cell contains user text.
fn write_watch(row: &WatchRow, out: &mut impl Write) -> io::Result<()> {
    let (name, source, added_at) = (row.name(), row.source(), row.added_at());
    let (stage, drop_date) = (cell(row.stage()), cell(row.latest_drop()));
    let (state, seen_at) = row.rdap().unzip();
    write!(out, "{name},{source},{stage},{drop_date},{},", cell(row.dqs()))?;
    write!(out, "{},{},{added_at}\r\n", cell(state), cell(seen_at))
}

/// Writes one row of the portfolio export.
fn write_claim(claim: &Claim, out: &mut impl Write) -> io::Result<()> {
    let (domain, tld, status) = (&claim.domain, claim.domain.tld(), claim.status);
    let registrar = user_cell(claim.registrar.as_deref().unwrap_or_default());
    let (acquired, resale) = (cell(claim.acquired_price), cell(claim.resale_price));
    write!(out, "{},{domain},{tld},{status},{registrar},{acquired},{resale},", claim.id)?;
    let notes = user_cell(claim.user_notes.as_deref().unwrap_or_default());
    let (sold_at, reported_at, updated_at) =
        (cell(claim.sold_at), claim.reported_at, claim.updated_at);
    write!(out, "{sold_at},{reported_at},{updated_at},{notes}\r\n")
}

/// A cell without user text; empty for `None`.
fn cell(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A cell with user text. A leading `'` keeps spreadsheets from evaluating it as a formula, and quotes
/// follow RFC 4180 §2.
fn user_cell(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) };
    if !text.contains([',', '"', '\r', '\n']) {
        return text;
    }
    Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
}

/// `GET /api/export/drops`: the drops list as CSV.
pub async fn export_drops(
    State(app): State<App>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let export = Export::admit(&app, &headers)?;
    let filter = Params::new(query.as_deref()).drops(LIMITS)?;
    let charged = export.charge(&app)?;
    let (index, as_of) = (app.live.current(), app.as_of(export.now));
    let (searched, timer) = (Arc::clone(&index), QueryTimer::start(QueryKind::Export));
    let served = Arc::clone(&index);
    // Positions of rows, four bytes each; rows are written as the client reads.
    let places = work::run(u32::MAX, move || {
        let places = searched.drop_places(&filter, as_of)?;
        timer.finish(places.len(), &filter);
        Ok(places)
    });
    let places = places.await?;
    let body = chunks(DROPS_CSV_HEADER, places, move |places, out| {
        index.shape_drops(places, |_, row| push_drop_csv(row, out));
        Ok(())
    });
    Ok(etag::from_generation(&served, csv_response("drops", as_of.today, body, &charged)))
}

/// `GET /api/export/watchlist`: the caller's watchlist, as CSV.
pub async fn export_watchlist(
    State(app): State<App>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let export = Export::admit(&app, &headers)?;
    let WatchQuery { sort, page } = WatchQuery::parse(Params::new(query.as_deref()), LIMITS)?;
    let charged = export.charge(&app)?;
    let (index, as_of) = (app.live.current(), app.as_of(export.now));
    let owned = app.store.user_data(&export.caller);
    let (listed, searched, store) = (Arc::clone(&owned), Arc::clone(&index), app.store.clone());
    let asked = store.clone();
    let names = work::run(u32::MAX, move || {
        let rows = sorted_rows(&listed, &searched, &asked, as_of, sort);
        Ok(page.rows(rows.iter()).map(|row| row.name().clone()).collect())
    });
    let body = chunks(WATCHLIST_HEADER, names.await?, move |names, out| {
        let entries = names.iter().filter_map(|name| owned.watch(name)).collect();
        let rows = WatchRow::all(entries, &index, &store, as_of);
        rows.iter().try_for_each(|row| write_watch(row, out))
    });
    Ok(csv_response("watchlist", as_of.today, body, &charged))
}

/// `GET /api/export/portfolio`: the caller's claims, as CSV.
pub async fn export_portfolio(
    State(app): State<App>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let export = Export::admit(&app, &headers)?;
    let filter = ClaimFilter::parse(Params::new(query.as_deref()), LIMITS)?;
    let charged = export.charge(&app)?;
    let today = app.as_of(export.now).today;
    let owned = app.store.user_data(&export.caller);
    let listed = Arc::clone(&owned);
    let ids =
        work::run(u32::MAX, move || Ok(filter.page_of(&listed).map(|claim| claim.id).collect()));
    let body = chunks(PORTFOLIO_HEADER, ids.await?, move |ids, out| {
        let mut claims = ids.iter().filter_map(|&id| owned.claim(id));
        claims.try_for_each(|claim| write_claim(claim, out))
    });
    Ok(csv_response("portfolio", today, body, &charged))
}

/// An export that the caller's plan includes.
struct Export {
    caller: Caller,
    now: Now,
}

impl Export {
    fn admit(app: &App, headers: &HeaderMap) -> Result<Export, ApiError> {
        let now = app.clock.now();
        Ok(Export { now: Now(now), caller: admit_export(app, headers, now)? })
    }

    /// Counts the export. Call it after the parameters have been validated.
    fn charge(&self, app: &App) -> Result<Allowance, ApiError> {
        charge_export(app, &self.caller, self.now.0)
    }
}

fn csv_response(what: &str, today: Day, body: Body, charged: &Allowance) -> Response {
    let disposition = format!("attachment; filename=\"{what}-{today}.csv\"");
    let headers =
        [(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, disposition)];
    let mut response = (headers, body).into_response();
    rate_limit_headers(charged, response.headers_mut());
    response
}

/// A body of the header line and the rows that `write` makes of `places`, one chunk at a time. A chunk
/// is made when the previous one has been sent.
fn chunks<P: Send + Sync + 'static>(
    header: &'static str,
    places: Vec<P>,
    write: impl Fn(&[P], &mut Vec<u8>) -> io::Result<()> + Send + Sync + 'static,
) -> Body {
    let rows = Arc::new((places, write));
    // State: rows written so far; `None` before the first chunk, which has the header line.
    Body::from_stream(stream::try_unfold(None, move |done: Option<usize>| {
        let rows = Arc::clone(&rows);
        async move {
            let start = done.unwrap_or(0);
            let end = rows.0.len().min(start + ROWS_PER_CHUNK);
            if done.is_some() && start == end {
                return Ok::<_, io::Error>(None);
            }
            let write_chunk = move || -> Result<Vec<u8>, ApiError> {
                let (places, write) = &*rows;
                let mut chunk = Vec::with_capacity(ROWS_PER_CHUNK * DROP_CSV_BYTES);
                if done.is_none() {
                    chunk.extend_from_slice(header.as_bytes());
                }
                let written = write(&places[start..end], &mut chunk);
                written.map_err(|err| ApiError::Internal(err.into()))?;
                Ok(chunk)
            };
            // The status has been sent, so a failure aborts the connection.
            let chunk = work::run(u32::MAX, write_chunk).await;
            let chunk = chunk.map_err(|err| io::Error::other(Refusal::from(err).message()))?;
            Ok(Some((Bytes::from(chunk), Some(end))))
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_cells_are_quoted_and_not_formulas() {
        for (text, cell) in [
            ("", ""),
            ("Gandi SAS", "Gandi SAS"),
            ("a'b", "a'b"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+2", "'=1+2"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            (" =1", " =1"),
            ("a=1", "a=1"),
        ] {
            assert_eq!(user_cell(text), cell, "{text:?}");
        }
    }
}
