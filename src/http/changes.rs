//! `GET /api/v1/changes`: the events of names, as pages, by long poll, or as server-sent events
//! (`data/docs/changes.md`).
//!
//! Filters are evaluated on current facts, from the index that is in use when the page is built. A
//! waiting request holds a slot of its own class in the server, so it delays no other requests.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderName, Uri};
use axum::response::Response;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::accounts::{Caller, Store, UserData};
use crate::edge::allowance::{charge_more, readmit};
use crate::edge::class::{STREAM_TIME_MAX, wants_stream};
use crate::edge::csv::push_number;
use crate::edge::error::Refusal;
use crate::edge::extensions::ServerSlot;
use crate::index::Index;
use crate::index::changes::NameTest;
use crate::index::filter::{AsOf, Filter};
use crate::json;
use crate::parse;
use crate::query::params::{ChangesQuery, Params, sequence};
use crate::response::event_stream;
use crate::rows::{push_json_text, push_quoted_day, push_quoted_instant};
use crate::service::account_turns::{AccountTurn, OneAtATime};
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::budget;
use crate::vocab::change::{ChangeKind, ChangeKinds, ChangeSource, is_personal};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::limits::STREAMS_PER_ACCOUNT;
use crate::vocab::observation::{LatestRegistration, RdapState};
use crate::vocab::release_time::{Certainty, Release, ReleaseRules, ReleaseTime};
use crate::vocab::scope::Scope;
use crate::vocab::time::UnixMs;
use dropdex_changes::{ChangeEntry, ChangeLog, ReadError};

/// Time between two keep-alive messages of a stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Range of milliseconds after which clients of an ended stream reconnect, so that they do not all
/// reconnect at once.
const RETRY_MS: std::ops::Range<u32> = 1_000..5_000;
/// Maximum number of events that a page reads to find matching ones. Testing a name takes about a microsecond.
const SCANNED_MAX: usize = 100_000;
/// Bytes to reserve for a row.
const ROW_BYTES: usize = 384;
const FRAME_BYTES: usize = 64;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Maximum number of events of a short page with filters.
const SHORT_EVENTS: u64 = 1_000;
/// Number of events after which a page yields to other accounts whose turn it is.
const EVENTS_PER_LOOK: usize = 256;

/// Pages in progress: one long and one short page per account at a time, because new events wake all
/// streams of an account.
static PAGES: LazyLock<OneAtATime<(AccountId, bool)>> = LazyLock::new(OneAtATime::default);

/// Lists events after a sequence number.
pub async fn list_changes(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    Extension(caller): Extension<Caller>,
    mut request: Request,
) -> Result<Response, Refusal> {
    // A request without a slot of its class must not wait.
    let slot = request.extensions_mut().remove::<ServerSlot>();
    let turn = slot.map(|slot| Turn::begin(&app, &caller, slot)).transpose()?;
    let today = app.as_of(now).today;
    let parse = move |uri: &Uri| Params::new(uri.query()).changes(today);
    let asked = parse::parameters(request.uri(), parse).await?;
    let last = request.headers().get(LAST_EVENT_ID);
    let last = last.map(|value| sequence(value.to_str().unwrap_or_default())).transpose();
    let last = last.map_err(|what| ApiError::parameter("Last-Event-ID", what))?;
    let (since, wait) = (last.or(asked.since), asked.wait);
    let uri = request.uri().clone();
    let reader =
        ChangesReader { app, caller, uri, asked: Arc::new(asked), today, has_counted: true };
    if wants_stream(request.headers()) {
        return Ok(reader.stream(since, turn).await?);
    }
    let wait = if turn.is_some() { wait } else { Duration::ZERO };
    let page = reader.wait(since.unwrap_or(0), Instant::now() + wait).await?;
    Ok(json::json_response(page.into_json()))
}

/// A page of events, oldest first.
#[derive(ToSchema)]
#[schema(as = Changes, rename_all = "camelCase")]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
pub struct ChangesResponse<'a> {
    data: Vec<ChangeRow<'a>>,
    /// Send it as `since` to continue. With filters, more events may follow a short or empty page,
    /// as long as `next` is below `newest`.
    next: u64,
    /// Sequence number of the newest event.
    newest: u64,
}

/// An event of a name.
#[derive(ToSchema)]
#[schema(as = Change, rename_all = "camelCase")]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
struct ChangeRow<'a> {
    /// Unique, and higher than that of every earlier event.
    seq: u64,
    event: ChangeKind,
    domain: &'a str,
    /// UTC day of the event.
    #[schema(value_type = String, format = Date)]
    day: Day,
    source: ChangeSource,
    /// Whether a list or the registry reported the event; false if the calendar expects it.
    verified: bool,
    /// Domain Quality Score at the time; `null` for a name that is not in the data.
    #[schema(minimum = 0, maximum = 100, required)]
    dqs: Option<u8>,
    /// The previous score; `null` unless `event` is `rescored`.
    #[schema(minimum = 0, maximum = 100, required)]
    dqs_before: Option<u8>,
    /// Effective release at the time; `null` without a drop.
    #[schema(value_type = Option<String>, format = Date, required)]
    release_date: Option<Day>,
    /// Start of that release; `null` unless the registry releases names of the suffix at a known hour.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    release_at: Option<UnixMs>,
    /// How sure the hour is; `null` without a drop.
    #[schema(required)]
    release_certainty: Option<Certainty>,
    /// Minutes from `releaseAt`, or from the start of the day, within which the name is released.
    #[schema(required)]
    release_window_minutes: Option<u16>,
    /// When the name was registered; `null` unless the event is `registered-again` and the registry's RDAP
    /// server gives the time.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    registered_at: Option<UnixMs>,
    /// Registrar of that registration; `null` unless the RDAP server gives it.
    #[schema(required, max_length = 64)]
    registrar: Option<&'a str>,
}

/// A long poll or a stream in progress, counted until it is dropped.
struct Turn {
    _slot: ServerSlot,
    _of_account: AccountTurn,
}

impl Turn {
    fn begin(app: &App, caller: &Caller, slot: ServerSlot) -> Result<Turn, ApiError> {
        let limit = STREAMS_PER_ACCOUNT;
        let turn = app.limits.streams.begin(caller.account, limit);
        let turn = turn.ok_or(ApiError::TooManyStreams { limit })?;
        Ok(Turn { _slot: slot, _of_account: turn })
    }
}

/// Reader of pages for one request.
#[derive(Clone)]
struct ChangesReader {
    app: App,
    caller: Caller,
    uri: Uri,
    asked: Arc<ChangesQuery>,
    /// The day for which relative dates in `asked` were resolved.
    today: Day,
    /// Whether the next long page is covered by the request, which was already counted.
    has_counted: bool,
}

/// Format of rows.
#[derive(Clone, Copy)]
enum PageFormat {
    /// Items of a JSON array.
    Array,
    /// Server-sent events.
    Events,
}

/// A page being built.
struct ChangesPage {
    rows: u32,
    bytes: Vec<u8>,
    next: u64,
    newest: u64,
}

impl ChangesReader {
    /// Returns a page of events after `since`, as soon as it has rows or at the deadline.
    async fn wait(mut self, mut since: u64, deadline: Instant) -> Result<ChangesPage, ApiError> {
        let mut newest = self.app.changes.subscribe();
        let mut last: Option<ChangesPage> = None;
        loop {
            newest.mark_unchanged();
            let page = match (self.page(since, PageFormat::Array).await, last) {
                // The allowance is used up. The last page contains the number from which to
                // continue.
                (Err(ApiError::RateLimited { .. }), Some(last)) => return Ok(last),
                (page, _) => page?,
            };
            if page.rows > 0 || Instant::now() >= deadline {
                return Ok(page);
            }
            since = page.next;
            // An error means that the server is stopping.
            if page.next >= page.newest
                && !matches!(timeout_at(deadline, newest.changed()).await, Ok(Ok(())))
            {
                return Ok(page);
            }
            last = Some(page);
        }
    }

    /// Responds with a stream of events after `since`, or of future events without `since`.
    async fn stream(
        mut self,
        since: Option<u64>,
        turn: Option<Turn>,
    ) -> Result<Response, ApiError> {
        let since = since.unwrap_or_else(|| self.app.changes.newest());
        let newest = self.app.changes.subscribe();
        // An error can be sent as a status only before the stream begins.
        let mut first = self.page(since, PageFormat::Events).await?;
        let retry = format!("retry: {}\n\n", fastrand::u32(RETRY_MS));
        first.bytes.splice(..0, retry.into_bytes());
        let heartbeat = HEARTBEAT.min(self.app.limits.stall / 2);
        let ends = Instant::now() + STREAM_TIME_MAX;
        let (since, first) = (first.next, Some(first.bytes.into()));
        let state = Streamed { reader: self, since, newest, first, heartbeat, ends, _turn: turn };
        let events = stream::unfold(state, async |mut state| {
            let bytes = state.next().await?;
            Some((bytes, state))
        });
        Ok(event_stream(events))
    }

    /// Builds one page. A long page needs a turn of the account, and counts as a request.
    ///
    /// # Errors
    /// 401 if the key no longer works, 403 if the plan no longer includes the API.
    async fn page(&mut self, since: u64, form: PageFormat) -> Result<ChangesPage, ApiError> {
        self.caller = readmit(&self.app, &self.caller, Scope::Read)?;
        let today = self.app.clock.today();
        if today != self.today {
            // Relative dates are resolved again, because they move with the day.
            let asked = Params::new(self.uri.query()).changes(today)?;
            (self.today, self.asked) = (today, Arc::new(asked));
        }
        let (app, asked) = (self.app.clone(), Arc::clone(&self.asked));
        let account = self.caller.account;
        let user = app.store.user_data(&self.caller);
        let as_of = AsOf { today, catch_days: app.catch_days };
        let is_filtered = asked.filter != Filter::open() || asked.view.is_some();
        let oldest = app.changes.oldest().saturating_sub(1);
        let is_narrow = asked.kinds != ChangeKinds::ALL || asked.domain.is_some() || asked.watched;
        let is_long = (is_filtered || is_narrow)
            && app.changes.newest().saturating_sub(since.max(oldest)) > SHORT_EVENTS;
        if is_long && !std::mem::take(&mut self.has_counted) {
            charge_more(&app, &self.caller, 1, app.clock.now()).await?;
        }
        let _page = PAGES.enter((account, is_long)).await;
        let make = move || {
            let index = app.live.current();
            let mut filter = asked.filter.clone();
            app.facts.apply(&index, || app.facts.visible(Some(&user)), &mut filter, today)?;
            let test = is_filtered.then(|| index.name_test(&filter, asked.view, as_of));
            let passes = |entry: &ChangeEntry<'_>| {
                asked.domain.as_ref().is_none_or(|domain| domain.as_str() == entry.name)
                    && is_visible(entry, &user)
                    && (!asked.watched || user.watch(&entry.domain()).is_some())
                    && test.as_ref().is_none_or(|test: &NameTest<'_>| test.passes(entry.name))
            };
            let known = |entry: &ChangeEntry<'_>| Known::of(entry, &index, &app.store);
            ChangesPage::new(&app.changes, &asked, since, form, passes, known)
        };
        // A stream responds to its request long before this, so the account that waits for its turn must be passed.
        if is_long { work::scan_for(account, make).await } else { work::run_aside(make).await }
    }
}

/// Whether an account may see an event.
fn is_visible(entry: &ChangeEntry<'_>, user: &UserData) -> bool {
    !is_personal(entry.kind, entry.source)
        || user
            .watch(&entry.domain())
            .is_some_and(|watch| Day::nearest(watch.added_at.instant()) <= entry.day)
}

/// Facts about the name of an event that the log does not have.
pub struct Known {
    /// With its second, if a list states it.
    release: Option<Release>,
    /// The registration that the event is about.
    registration: LatestRegistration,
}

impl Known {
    /// Looks up what the log does not have.
    pub fn of(entry: &ChangeEntry<'_>, index: &Index, store: &Store) -> Known {
        let stated = |day: Day| {
            // Other suffixes have no seconds, so that their names need not be looked up.
            let rule = ReleaseRules::compiled().of(suffix_of(entry));
            let known = rule.states_instants().then(|| index.release_of(entry.name)).flatten();
            known.filter(|release| release.day == day).unwrap_or(day.into())
        };
        let release = entry.release.map(stated);
        let is_of_registry = entry.source == ChangeSource::Registry;
        if !is_of_registry || entry.kind != ChangeKind::RegisteredAgain {
            return Known { release, registration: LatestRegistration::default() };
        }
        let seen = store.observations([&entry.domain()]).pop().flatten();
        let seen = seen.filter(|seen| seen.state == RdapState::RegisteredAgain);
        let registration = seen.map(|seen| seen.registration).filter(|registration| {
            // A later registration caused another event.
            registration.at.is_none_or(|at| Day::nearest(at.instant()) <= entry.day)
        });
        Known { release, registration: registration.unwrap_or_default() }
    }

    /// The hour of the release; `None` without a drop.
    pub fn release_time(&self, entry: &ChangeEntry<'_>) -> Option<ReleaseTime> {
        self.release.map(|release| ReleaseTime::of(suffix_of(entry), release))
    }
}

fn suffix_of<'a>(entry: &ChangeEntry<'a>) -> &'a str {
    &entry.name[usize::from(entry.label_len) + 1..]
}

impl ChangesPage {
    fn new(
        log: &ChangeLog,
        asked: &ChangesQuery,
        since: u64,
        form: PageFormat,
        passes: impl Fn(&ChangeEntry<'_>) -> bool,
        known: impl Fn(&ChangeEntry<'_>) -> Known,
    ) -> Result<ChangesPage, ApiError> {
        let newest = log.newest();
        let next = if since == 0 { log.oldest() - 1 } else { since };
        let bytes = Vec::with_capacity(asked.limit as usize * ROW_BYTES + FRAME_BYTES);
        let mut page = ChangesPage { rows: 0, bytes, next, newest };
        let mut left = SCANNED_MAX;
        let read = log.visit(since, |seq, entry| {
            page.next = seq;
            left -= 1;
            if asked.kinds.has(entry.kind) && passes(&entry) {
                page.push(seq, &entry, &known(&entry), form);
            }
            let is_abandoned = left.is_multiple_of(EVENTS_PER_LOOK) && budget::abandoned();
            let goes_on = page.rows < asked.limit && left > 0 && seq < newest && !is_abandoned;
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        match read {
            Ok(()) => Ok(page),
            Err(ReadError::TooOld { oldest }) => Err(ApiError::ChangesGone { oldest }),
            Err(ReadError::Ahead { newest }) => Err(ApiError::parameter(
                "since",
                format!("is ahead of the newest event, {newest}: it belongs to another log"),
            )),
            Err(ReadError::Segment(err)) => Err(ApiError::Internal(err.into())),
        }
    }

    fn push(&mut self, seq: u64, entry: &ChangeEntry<'_>, known: &Known, form: PageFormat) {
        let is_first = self.rows == 0;
        self.rows += 1;
        let out = &mut self.bytes;
        match form {
            PageFormat::Array if is_first => {}
            PageFormat::Array => out.push(b','),
            PageFormat::Events => {
                let _ = write!(out, "id: {seq}\nevent: {}\ndata: ", entry.kind);
            }
        }
        push_row(seq, entry, known, out);
        if matches!(form, PageFormat::Events) {
            out.extend_from_slice(b"\n\n");
        }
    }

    fn into_json(self) -> Vec<u8> {
        let ChangesPage { bytes, next, newest, .. } = self;
        let mut out = Vec::with_capacity(bytes.len() + FRAME_BYTES);
        out.extend_from_slice(b"{\"data\":[");
        out.extend_from_slice(&bytes);
        let _ = write!(out, "],\"next\":{next},\"newest\":{newest}}}");
        out
    }
}

/// Appends an event as a JSON object. Names need no escapes.
pub fn push_row(seq: u64, entry: &ChangeEntry<'_>, known: &Known, out: &mut Vec<u8>) {
    let ChangeEntry { kind, source, name, day, dqs, dqs_before, release, .. } = *entry;
    let verified = source != ChangeSource::Calendar;
    let _ = write!(out, "{{\"seq\":{seq},\"event\":\"{kind}\",\"domain\":\"{name}\",\"day\":");
    push_quoted_day(out, day);
    let _ = write!(out, ",\"source\":\"{source}\",\"verified\":{verified}");
    for (member, score) in [(",\"dqs\":", dqs), (",\"dqsBefore\":", dqs_before)] {
        out.extend_from_slice(member.as_bytes());
        match score {
            Some(score) => push_number(out, score.points()),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.extend_from_slice(b",\"releaseDate\":");
    match release {
        Some(release) => push_quoted_day(out, release),
        None => out.extend_from_slice(b"null"),
    }
    let time = known.release_time(entry);
    out.extend_from_slice(b",\"releaseAt\":");
    push_quoted_instant(out, time.and_then(|it| it.at));
    match time {
        Some(ReleaseTime { certainty, window_minutes, .. }) => {
            let _ = write!(
                out,
                ",\"releaseCertainty\":\"{}\",\"releaseWindowMinutes\":{window_minutes}",
                certainty.as_str()
            );
        }
        None => out.extend_from_slice(b",\"releaseCertainty\":null,\"releaseWindowMinutes\":null"),
    }
    let LatestRegistration { at, registrar } = known.registration;
    out.extend_from_slice(b",\"registeredAt\":");
    push_quoted_instant(out, at);
    out.extend_from_slice(b",\"registrar\":");
    match &registrar {
        Some(registrar) => push_json_text(out, registrar.as_str()),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

/// An event stream being sent.
struct Streamed {
    reader: ChangesReader,
    since: u64,
    newest: watch::Receiver<u64>,
    first: Option<Bytes>,
    heartbeat: Duration,
    ends: Instant,
    /// Turn of the request, held until the stream is dropped.
    _turn: Option<Turn>,
}

impl Streamed {
    /// Returns the next bytes; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            self.newest.mark_unchanged();
            // The client reconnects and then gets the error as a status.
            let page = self.reader.page(self.since, PageFormat::Events).await.ok()?;
            self.since = page.next;
            if page.rows > 0 {
                return Some(page.bytes.into());
            }
            if page.next < page.newest {
                continue;
            }
            let beat = Instant::now() + self.heartbeat;
            if beat >= self.ends {
                return None;
            }
            match timeout_at(beat, self.newest.changed()).await {
                Ok(Ok(())) => {}
                // The server is stopping.
                Ok(Err(_)) => return None,
                Err(_) if readmit(&self.reader.app, &self.reader.caller, Scope::Read).is_err() => {
                    return None;
                }
                // A message without data is not an event, but it updates the number from which the
                // client continues.
                Err(_) => return Some(format!(":\nid: {}\n\n", self.since).into()),
            }
        }
    }
}
