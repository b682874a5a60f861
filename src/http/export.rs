//! `/api/export/*`: streamed CSV. A request first collects the positions of its rows, a few bytes each,
//! and writes the rows from one immutable snapshot as the client reads.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::{FromRef, FromRequestParts, RawQuery, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LINK};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc::{self, Sender};

use crate::accounts::{Allowance, Caller, Claim};
use crate::edge::error::Refusal;
use crate::edge::etag;
use crate::edge::extensions::{HeadersOnly, ServerSlot};
use crate::edge::rate_limit::rate_limit_headers;
use crate::http::allowance::{admit_export, charge_export, exports_left, readmit};
use crate::http::cursor::{self, QueryDigest};
use crate::http::drops::next_link;
use crate::http::parse;
use crate::http::rows::{
    DROP_CSV_BYTES, DROPS_CSV_HEADER, EXPORT_MEMBERS, members, push_drop, push_drop_columns,
    push_drop_csv,
};
use crate::index::filter::DropFilter;
use crate::index::query::rows::DropRow;
use crate::query::error::BadParameter;
use crate::query::params::{Limits, Params};
use crate::service::account_turns::AccountTurn;
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::portfolio::ClaimFilter;
use crate::service::watchlist::{LOOKUP_US, WatchQuery, WatchRow, sorted_rows};
use crate::service::work;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::cell::without_formula;
use crate::vocab::day::Day;
use crate::vocab::limits::EXPORT_ROWS_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::scope::Scope;
use crate::vocab::tag::Tag;

const LIMITS: Limits = Limits { default: EXPORT_ROWS_MAX, max: EXPORT_ROWS_MAX };
/// Rows per chunk. A slow client holds one chunk in memory, not the whole export.
const ROWS_PER_CHUNK: usize = 500;

/// Byte order mark, without which Excel reads UTF-8 as the code page of the machine.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Header line of the watchlist export.
const WATCHLIST_HEADER: &str = "domain,source,stage,drop_date,dqs,rdap_state,rdap_verified_at,added_at,release_date,tags,\
     max_bid_usd,venue,note\r\n";
/// Header line of the portfolio export.
const PORTFOLIO_HEADER: &str = "id,domain,tld,status,registrar,acquired_price_usd,\
    resale_price_usd,sold_at,reported_at,updated_at,user_notes,bid_usd,venue,renews_on,renewal_usd\r\n";

/// Writes one row of the watchlist export.
fn write_watch(row: &WatchRow, out: &mut impl Write) -> io::Result<()> {
    let (name, source, added_at) = (row.name(), row.source(), row.added_at());
    let (stage, drop_date) = (cell(row.stage()), cell(row.latest_drop()));
    let (state, seen_at) = row.rdap().unzip();
    write!(out, "{name},{source},{stage},{drop_date},{},", cell(row.dqs()))?;
    write!(out, "{},{},{added_at},", cell(state), cell(seen_at))?;
    let details = row.details();
    let text =
        |text: &Option<Box<str>>| user_cell(text.as_deref().unwrap_or_default()).into_owned();
    let tags = details.tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(", ");
    let (tags, bid) = (user_cell(&tags), cell(details.max_bid));
    let release = cell(row.stage_and_release().map(|(_, release)| release));
    write!(out, "{release},{tags},{bid},{},{}\r\n", text(&details.venue), text(&details.note))
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
    let venue = user_cell(claim.venue.as_deref().unwrap_or_default());
    let (bid, renews_on, renewal) = (cell(claim.bid), cell(claim.renews_on), cell(claim.renewal));
    write!(
        out,
        "{sold_at},{reported_at},{updated_at},{notes},{bid},{venue},{renews_on},{renewal}\r\n"
    )
}

/// A cell without user text; empty for `None`.
fn cell(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A cell with user text, quoted by RFC 4180 §2.
fn user_cell(text: &str) -> Cow<'_, str> {
    let text = without_formula(text);
    if !text.contains([',', '"', '\r', '\n']) {
        return text;
    }
    Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
}

/// `GET /api/export/drops`: the drops list as CSV.
pub async fn export_drops(
    State(app): State<App>,
    export: Export,
    uri: Uri,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(export.now));
    let parse = move |uri: &Uri| {
        let params = Params::new(uri.query());
        let filter = cursor::page(&params, LIMITS, as_of.today)?;
        Ok::<_, ApiError>((filter, export_lines(&params)?))
    };
    let (filter, (format, header, line)) = parse::parameters(&uri, parse).await?;
    let started = match export.start(&app).await? {
        Begun::Counted(started) => started,
        Begun::HeadersOnly(allowance) => {
            let response = file_response("drops", format, as_of.today, no_rows(), &allowance);
            return Ok(etag::from_generation(&index, response));
        }
    };
    let (searched, timer) = (Arc::clone(&index), QueryTimer::start(QueryKind::Export));
    let served = Arc::clone(&index);
    // Positions of rows, four bytes each; rows are written as the client reads.
    let scans = filter.common.label.has_text();
    let exports_internal = app.limits.exports_internal;
    let found = work::run_or_scan(scans, u32::MAX, move || {
        // One more, to know whether rows follow.
        let rows = filter.limit as usize;
        let more = DropFilter { limit: filter.limit.saturating_add(1), ..filter.clone() };
        let mut places = match exports_internal {
            true => searched.drop_places(&more, as_of),
            false => searched.exported_places(&more, as_of),
        }?;
        let follows = places.len() > rows;
        places.truncate(rows);
        timer.finish(places.len(), &filter);
        let last = places.last().filter(|_| follows);
        let position = last.map(|&place| searched.position_of(filter.sort, place));
        let next = position.map(|next| cursor::encode(&next, QueryDigest::of(&filter)));
        Ok((places, next))
    });
    let (places, next) = found.await?;
    let allowance = started.allowance;
    let body = chunks(started, header, places, move |places, out| {
        index.shape_drops(places, as_of, |_, row| line(row, out));
        Ok(())
    });
    let mut response = file_response("drops", format, as_of.today, body, &allowance);
    let next = next.map(|cursor| next_link(&uri, &cursor));
    if let Some(link) = next.and_then(|link| HeaderValue::try_from(link).ok()) {
        response.headers_mut().insert(LINK, link);
    }
    Ok(etag::from_generation(&served, response))
}

/// The drops of some names as CSV, in their order, after a byte order mark if `bom`. Names that never dropped
/// are left out.
///
/// # Errors
/// 429 as for every export.
pub async fn export_names(
    app: &App,
    export: Export,
    names: Vec<DomainName>,
    bom: bool,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(export.now));
    let started = match export.start(app).await? {
        Begun::Counted(started) => started,
        Begun::HeadersOnly(left) => {
            return Ok(csv_response("drops", as_of.today, no_rows(), &left));
        }
    };
    let (searched, exports_internal) = (Arc::clone(&index), app.limits.exports_internal);
    let places = work::run(work::cost_us(names.len(), LOOKUP_US), move || {
        let mut places = searched.places_of(&names);
        places.retain(|&place| exports_internal || searched.is_exported(place));
        Ok(places)
    });
    let (places, allowance) = (places.await?, started.allowance);
    let body = chunks(started, csv_header(DROPS_CSV_HEADER, bom), places, move |places, out| {
        index.shape_drops(places, as_of, |_, row| push_drop_csv(row, out));
        Ok(())
    });
    Ok(csv_response("drops", as_of.today, body, &allowance))
}

named_enum! {
    /// Format of an export; the name is the extension of the file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ExportFormat {
        #[default]
        Csv = "csv",
        /// A JSON object a line.
        Ndjson = "ndjson",
    }
}
parse_named!(ExportFormat);

/// Writes the line of a row.
type WriteLine = Box<dyn Fn(&DropRow<'_>, &mut Vec<u8>) + Send + Sync>;

/// The start of a CSV file: its header line, after a byte order mark if `bom`.
fn csv_header(header: impl Into<Cow<'static, str>>, bom: bool) -> Cow<'static, str> {
    let header = header.into();
    if bom { format!("{BYTE_ORDER_MARK}{header}").into() } else { header }
}

/// The format of a drops export, the start of the file, and the writer of its lines.
///
/// # Errors
/// 400 for an invalid `format`, `columns` or `bom`.
pub fn export_lines(
    params: &Params<'_>,
) -> Result<(ExportFormat, Cow<'static, str>, WriteLine), BadParameter> {
    let format = params.one("format")?.unwrap_or_default();
    let columns = members(params, "columns", None)?.map(|(members, _)| members);
    let bom = params.flag("bom")?;
    if bom && format != ExportFormat::Csv {
        // RFC 8259 §8.1 forbids it in JSON.
        return Err(BadParameter::new("bom", "must be false, unless the format is csv"));
    }
    Ok(match (format, columns) {
        (ExportFormat::Csv, None) => {
            (format, csv_header(DROPS_CSV_HEADER, bom), Box::new(push_drop_csv))
        }
        (ExportFormat::Csv, Some(members)) => {
            let names: Vec<&str> = members.iter().map(|member| member.as_str()).collect();
            let header = format!("{}\r\n", names.join(","));
            let write = move |row: &DropRow<'_>, out: &mut Vec<u8>| {
                push_drop_columns(row, &members, out);
            };
            (format, csv_header(header, bom), Box::new(write))
        }
        (ExportFormat::Ndjson, members) => {
            let members = members.unwrap_or_else(|| EXPORT_MEMBERS.to_vec());
            let write = move |row: &DropRow<'_>, out: &mut Vec<u8>| {
                push_drop(row, &members, out);
                out.push(b'\n');
            };
            (format, "".into(), Box::new(write))
        }
    })
}

/// `GET /api/export/watchlist`: the caller's watchlist, as CSV.
pub async fn export_watchlist(
    State(app): State<App>,
    export: Export,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let params = Params::new(query.as_deref());
    let header = csv_header(WATCHLIST_HEADER, params.flag("bom")?);
    let asked = WatchQuery::parse(params, LIMITS)?;
    let (index, as_of) = (app.live.current(), app.as_of(export.now));
    let owned = app.store.user_data(&export.caller);
    let started = match export.start(&app).await? {
        Begun::Counted(started) => started,
        Begun::HeadersOnly(left) => {
            return Ok(csv_response("watchlist", as_of.today, no_rows(), &left));
        }
    };
    let (listed, searched, store) = (Arc::clone(&owned), Arc::clone(&index), app.store.clone());
    let observed = store.clone();
    let names = work::run(u32::MAX, move || {
        let mut rows = sorted_rows(&listed, &searched, &observed, as_of, asked.sort);
        rows.retain(|row| asked.filter.passes(row));
        Ok(asked.page.rows(rows.iter()).map(|row| row.name().clone()).collect())
    });
    let (names, allowance) = (names.await?, started.allowance);
    let body = chunks(started, header, names, move |names, out| {
        let entries = names.iter().filter_map(|name| owned.watch(name)).collect();
        let rows = WatchRow::all(entries, &owned, &index, &store, as_of);
        rows.iter().try_for_each(|row| write_watch(row, out))
    });
    Ok(csv_response("watchlist", as_of.today, body, &allowance))
}

/// `GET /api/export/portfolio`: the caller's claims, as CSV.
pub async fn export_portfolio(
    State(app): State<App>,
    export: Export,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let params = Params::new(query.as_deref());
    let header = csv_header(PORTFOLIO_HEADER, params.flag("bom")?);
    let filter = ClaimFilter::parse(params, LIMITS)?;
    let today = app.as_of(export.now).today;
    let owned = app.store.user_data(&export.caller);
    let started = match export.start(&app).await? {
        Begun::Counted(started) => started,
        Begun::HeadersOnly(left) => {
            return Ok(csv_response("portfolio", today, no_rows(), &left));
        }
    };
    let listed = Arc::clone(&owned);
    let ids =
        work::run(u32::MAX, move || Ok(filter.page_of(&listed).map(|claim| claim.id).collect()));
    let (ids, allowance) = (ids.await?, started.allowance);
    let body = chunks(started, header, ids, move |ids, out| {
        let mut claims = ids.iter().filter_map(|&id| owned.claim(id));
        claims.try_for_each(|claim| write_claim(claim, out))
    });
    Ok(csv_response("portfolio", today, body, &allowance))
}

/// An export that the caller's plan includes.
pub struct Export {
    caller: Caller,
    now: Now,
    slot: Option<ServerSlot>,
    headers_only: bool,
}

/// An export that may begin.
enum Begun {
    Counted(Started),
    /// The response to HEAD. It counts nothing: no rows are read.
    HeadersOnly(Allowance),
}

/// A counted export.
struct Started {
    app: App,
    caller: Caller,
    allowance: Allowance,
    slots: Slots,
}

/// The slots of the account and of the server that an export takes. The body and the task that fills it
/// have one each, and the first to be dropped gives the slots back: the body when its client has read
/// the end or is gone, the task when the client takes nothing for too long.
#[derive(Clone)]
struct Slots(Arc<Mutex<Option<HeldSlots>>>);

type HeldSlots = (AccountTurn, Option<ServerSlot>);

impl Drop for Slots {
    fn drop(&mut self) {
        drop(self.0.lock().expect("no code panics holding this lock").take());
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Export
where
    App: FromRef<S>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Export, Refusal> {
        let app = App::from_ref(state);
        let now = app.clock.now();
        let caller = admit_export(&app, parts, now)?;
        let headers_only = parts.extensions.get::<HeadersOnly>().is_some();
        Ok(Export { caller, now: Now(now), slot: parts.extensions.remove(), headers_only })
    }
}

impl Export {
    /// Counts the export, unless only its headers are asked for. Call it after the parameters have been
    /// validated.
    ///
    /// # Errors
    /// 429 while as many exports of the account run as its plan allows, and when the day's budget is
    /// used up.
    async fn start(self, app: &App) -> Result<Begun, ApiError> {
        let Export { caller, now, slot, headers_only } = self;
        let limit = app.store.limits(&caller).concurrent_exports;
        let running = app.limits.exports.begin(caller.account, limit);
        let running = running.ok_or(ApiError::TooManyExports { plan: caller.plan, limit })?;
        if headers_only {
            return Ok(Begun::HeadersOnly(exports_left(app, &caller, now.0)?));
        }
        let allowance = charge_export(app, &caller, now.0).await?;
        let slots = Slots(Arc::new(Mutex::new(Some((running, slot)))));
        Ok(Begun::Counted(Started { app: app.clone(), caller, allowance, slots }))
    }
}

fn csv_response(what: &str, today: Day, body: Body, charged: &Allowance) -> Response {
    file_response(what, ExportFormat::Csv, today, body, charged)
}

fn file_response(
    what: &str,
    format: ExportFormat,
    today: Day,
    body: Body,
    charged: &Allowance,
) -> Response {
    let disposition = format!("attachment; filename=\"{what}-{today}.{format}\"");
    let content_type = match format {
        ExportFormat::Csv => "text/csv; charset=utf-8",
        ExportFormat::Ndjson => "application/x-ndjson",
    };
    let headers = [(CONTENT_TYPE, content_type.to_owned()), (CONTENT_DISPOSITION, disposition)];
    let mut response = (headers, body).into_response();
    rate_limit_headers(charged, response.headers_mut());
    response
}

/// A body of the header line and the rows that `write` makes of `places`, one chunk at a time. A task
/// makes the next chunk while the client reads, and ends when the client takes none for too long: an
/// HTTP/2 stream whose window is closed shows no other sign of that.
fn chunks<P: Send + Sync + 'static>(
    started: Started,
    header: impl Into<Cow<'static, str>>,
    places: Vec<P>,
    write: impl Fn(&[P], &mut Vec<u8>) -> io::Result<()> + Send + Sync + 'static,
) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let state = (receiver, started.slots.clone());
    tokio::spawn(send_chunks(started, header.into(), places, write, sender));
    Body::from_stream(stream::try_unfold(state, async |mut state| {
        match state.0.recv().await {
            Some(Sent::Rows(chunk)) => Ok(Some((chunk, state))),
            Some(Sent::End) => Ok(None),
            // The status has been sent, so a failure aborts the connection.
            None => Err(io::Error::other("the export was aborted")),
        }
    }))
}

/// The body of the response to HEAD: of unknown length as the rows, so that the headers are those of GET.
fn no_rows() -> Body {
    Body::from_stream(stream::empty::<io::Result<Bytes>>())
}

/// An item of an export. Without [`Sent::End`], rows are missing.
enum Sent {
    Rows(Bytes),
    End,
}

async fn send_chunks<P: Send + Sync + 'static>(
    started: Started,
    mut header: Cow<'static, str>,
    places: Vec<P>,
    write: impl Fn(&[P], &mut Vec<u8>) -> io::Result<()> + Send + Sync + 'static,
    sender: Sender<Sent>,
) {
    let rows = Arc::new((places, write));
    let mut start = 0;
    loop {
        // The connection is aborted, as for every export without an end.
        if readmit(&started.app, &started.caller, Scope::Export).is_err() {
            return;
        }
        let end = rows.0.len().min(start + ROWS_PER_CHUNK);
        let shared = Arc::clone(&rows);
        let header = if start == 0 { std::mem::take(&mut header) } else { Cow::Borrowed("") };
        let write_chunk = move || -> Result<Vec<u8>, ApiError> {
            let (places, write) = &*shared;
            let mut chunk = Vec::with_capacity(ROWS_PER_CHUNK * DROP_CSV_BYTES);
            chunk.extend_from_slice(header.as_bytes());
            let written = write(&places[start..end], &mut chunk);
            written.map_err(|err| ApiError::Internal(err.into()))?;
            Ok(chunk)
        };
        let item = match work::run_aside(write_chunk).await {
            Ok(chunk) => Sent::Rows(chunk.into()),
            // The conversion logs it.
            Err(err) => return drop(Refusal::from(err)),
        };
        // Fails when the client is gone or has stalled.
        if sender.send_timeout(item, started.app.limits.stall).await.is_err() {
            return;
        }
        start = end;
        if start == rows.0.len() {
            break;
        }
    }
    let _ = sender.send_timeout(Sent::End, started.app.limits.stall).await;
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
            ("'=1+2", "''=1+2"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("\n=1", "\"'\n=1\""),
            ("＝1", "'＝1"),
            ("＋1", "'＋1"),
            ("－1", "'－1"),
            ("＠SUM(A1)", "'＠SUM(A1)"),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            (" =1", " =1"),
            ("a=1", "a=1"),
        ] {
            assert_eq!(user_cell(text), cell, "{text:?}");
        }
    }
}
