//! Streamed exports: admission, counting, and rows written as fast as the client reads.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures_util::stream;
use tokio::sync::mpsc::{self, Sender};

use crate::accounts::{Allowance, Caller, Counter};
use crate::allowance::{admit_export, charge_export, exports_left, forgive, readmit};
use crate::csv::DROP_CSV_BYTES;
use crate::error::Refusal;
use crate::extensions::{HeadersOnly, ServerSlot};
use crate::index::query::rows::DropRow;
use crate::rate_limit::rate_limit_headers;
use crate::service::account_turns::AccountTurn;
use crate::service::app::{App, Now};
use crate::service::error::ApiError;
use crate::service::watchlist::LOOKUP_US;
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::scope::Scope;

/// Rows per chunk. A slow client keeps one chunk in memory, not the whole export.
const ROWS_PER_CHUNK: usize = 500;
/// Bytes per chunk of a file.
const FILE_CHUNK_BYTES: u64 = 1 << 17;

named_enum! {
    /// Format of an export; the name is the extension of the file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ExportFormat {
        #[default]
        Csv = "csv",
        /// One JSON object per line.
        Ndjson = "ndjson",
    }
}
parse_named!(ExportFormat);

/// An export that the caller's plan allows.
pub struct Export {
    pub caller: Caller,
    pub now: Now,
    slot: Option<ServerSlot>,
    headers_only: bool,
}

/// Outcome of admitting an export.
pub enum Begun {
    Counted(Started),
    /// A HEAD request, which does not count, since no rows are read.
    HeadersOnly(Allowance),
}

/// A counted export, ready to write rows.
pub struct Started {
    app: App,
    caller: Caller,
    now: DateTime<Utc>,
    /// The day's remaining exports.
    pub allowance: Allowance,
    slots: Slots,
}

impl Started {
    /// Takes the export back if its rows cannot be found at the moment (503).
    ///
    /// # Errors
    /// The given ones.
    pub fn forgiven<T>(&self, found: Result<T, ApiError>) -> Result<T, Refusal> {
        forgive(&self.app, (&self.caller, Counter::Exports), 1, self.now, found)
    }
}

/// The slots of the account and of the server that an export takes. The body and the task that fills it
/// share the slots, and the first of the two to be dropped releases them. The body is dropped when its
/// client has read to the end or disconnected, the task when the client has stalled for too long.
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
    /// Counts the export, unless only its headers are requested. Must be called after the parameters
    /// were validated.
    ///
    /// # Errors
    /// 429 while the account runs as many exports as its plan allows, or when the day's budget is
    /// used up.
    pub async fn start(self, app: &App) -> Result<Begun, ApiError> {
        let headers_only = self.headers_only;
        let running = self.begin(app)?;
        if headers_only {
            return Ok(Begun::HeadersOnly(exports_left(app, &running.caller, running.now.0)?));
        }
        let allowance = charge_export(app, &running.caller, running.now.0).await?;
        Ok(Begun::Counted(running.counted(app, allowance)))
    }

    /// Continues an export that was counted before.
    ///
    /// # Errors
    /// 429 while the account runs as many exports as its plan allows.
    pub fn resume(self, app: &App) -> Result<Started, ApiError> {
        let allowance = self.allowance(app);
        Ok(self.begin(app)?.counted(app, allowance))
    }

    /// Whether only the headers are requested.
    pub fn is_head(&self) -> bool {
        self.headers_only
    }

    /// The day's remaining exports.
    pub fn allowance(&self, app: &App) -> Allowance {
        app.store.allowance(Counter::Exports, &self.caller, self.now.0)
    }

    fn begin(self, app: &App) -> Result<Running, ApiError> {
        let Export { caller, now, slot, .. } = self;
        let limit = app.store.limits(&caller).concurrent_exports;
        let turn = app.limits.exports.begin(caller.account, limit);
        let turn = turn.ok_or(ApiError::TooManyExports { plan: caller.plan, limit })?;
        Ok(Running { caller, now, held: (turn, slot) })
    }
}

/// An export that has its slots.
struct Running {
    caller: Caller,
    now: Now,
    held: HeldSlots,
}

impl Running {
    fn counted(self, app: &App, allowance: Allowance) -> Started {
        let slots = Slots(Arc::new(Mutex::new(Some(self.held))));
        Started { app: app.clone(), caller: self.caller, now: self.now.0, allowance, slots }
    }
}

/// The response with a CSV file.
pub fn csv_response(what: &str, today: Day, body: Body, charged: &Allowance) -> Response {
    file_response(what, ExportFormat::Csv, today, body, charged)
}

/// The response with a file `{what}-{today}`, with the rate-limit headers.
pub fn file_response(
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

/// A body with the header line and the rows that `write` creates from `places`, one chunk at a time.
pub fn chunks<P: Send + Sync + 'static>(
    started: Started,
    header: impl Into<Cow<'static, str>>,
    places: Vec<P>,
    write: impl Fn(&[P], &mut Vec<u8>) -> io::Result<()> + Send + Sync + 'static,
) -> Body {
    let header = header.into();
    streamed(started, move |number| {
        let start = number * ROWS_PER_CHUNK;
        let end = places.len().min(start + ROWS_PER_CHUNK);
        let mut chunk = Vec::with_capacity(ROWS_PER_CHUNK * DROP_CSV_BYTES);
        if number == 0 {
            chunk.extend_from_slice(header.as_bytes());
        }
        write(&places[start..end], &mut chunk)?;
        Ok((chunk, end == places.len()))
    })
}

/// A body with bytes `range` of a file.
pub fn file_body(started: Started, file: File, range: Range<u64>) -> Body {
    streamed(started, move |number| {
        let start = range.start + number as u64 * FILE_CHUNK_BYTES;
        let end = range.end.min(start + FILE_CHUNK_BYTES);
        let mut chunk = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
        file.read_exact_at(&mut chunk, start)?;
        Ok((chunk, end == range.end))
    })
}

/// A body of the chunks that `make` creates from their numbers, until one is the last. A task creates the next
/// chunk while the client reads. The task ends when the client takes no chunk for too long, since a closed
/// window is the only sign of a stalled HTTP/2 client.
fn streamed(
    started: Started,
    make: impl Fn(usize) -> io::Result<(Vec<u8>, bool)> + Send + Sync + 'static,
) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let state = (receiver, started.slots.clone());
    tokio::spawn(send_chunks(started, make, sender));
    Body::from_stream(stream::try_unfold(state, async |mut state| {
        match state.0.recv().await {
            Some(ExportItem::Rows(chunk)) => Ok(Some((chunk, state))),
            Some(ExportItem::End) => Ok(None),
            // The status is already sent, so a failure aborts the connection.
            None => Err(io::Error::other("the export was aborted")),
        }
    }))
}

/// The body of the response to HEAD. Like the response to GET, this response has no declared length, so
/// their headers are equal.
pub fn no_rows() -> Body {
    Body::from_stream(stream::empty::<io::Result<Bytes>>())
}

/// Exports the drops of some names as CSV, in their order: the header line, and the lines that `line`
/// appends. Omits names that never dropped.
///
/// # Errors
/// 429 as for every export.
pub async fn export_names(
    app: &App,
    export: Export,
    names: Vec<DomainName>,
    header: impl Into<Cow<'static, str>>,
    line: impl Fn(&DropRow<'_>, &mut Vec<u8>) + Send + Sync + 'static,
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
    let body = chunks(started, header, places, move |places, out| {
        index.shape_drops(places, as_of, |_, row| line(row, out));
        Ok(())
    });
    Ok(csv_response("drops", as_of.today, body, &allowance))
}

/// An item of an export. An export that ends without [`ExportItem::End`] lacks rows.
enum ExportItem {
    Rows(Bytes),
    End,
}

async fn send_chunks(
    started: Started,
    make: impl Fn(usize) -> io::Result<(Vec<u8>, bool)> + Send + Sync + 'static,
    sender: Sender<ExportItem>,
) {
    let make = Arc::new(make);
    for number in 0.. {
        // Returning without [`ExportItem::End`] aborts the connection.
        if readmit(&started.app, &started.caller, Scope::Export).is_err() {
            return;
        }
        let shared = Arc::clone(&make);
        let make_chunk = move || shared(number).map_err(|err| ApiError::Internal(err.into()));
        let (chunk, is_last) = match work::run_aside(make_chunk).await {
            Ok(made) => made,
            // Converting the error also logs it.
            Err(err) => return drop(Refusal::from(err)),
        };
        // Sending fails if the client disconnected or stalled.
        let item = ExportItem::Rows(chunk.into());
        if sender.send_timeout(item, started.app.limits.stall).await.is_err() {
            return;
        }
        if is_last {
            break;
        }
    }
    let _ = sender.send_timeout(ExportItem::End, started.app.limits.stall).await;
}
