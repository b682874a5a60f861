//! `POST /api/v1/check`: asks registries and the DNS about up to 100 names, once each.
//!
//! Checks are queued for the verification worker, which keeps to the limits of each server. A repeated
//! request returns the results that have come in; as an event stream, the response sends each when it
//! comes.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use crate::accounts::Caller;
use crate::body::JsonBody;
use crate::edge::allowance::readmit;
use crate::edge::class::wants_stream;
use crate::edge::error::Refusal;
use crate::edge::extensions::ServerSlot;
use crate::json;
use crate::response::event_stream;
use crate::service::account_turns::AccountTurn;
use crate::service::app::App;
use crate::service::checks::{Checked, Checks, NAMES_MAX, Refused};
use crate::service::error::{ApiError, required};
use crate::vocab::limits::STREAMS_PER_ACCOUNT;
use crate::vocab::name::DomainName;
use crate::vocab::scope::Scope;
use crate::watchlist::AvailabilityResponse;

/// Time between two keep-alive messages of a stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Maximum duration of a stream. A registry that asks for a longer pause is asked later.
const STREAM_MAX: Duration = Duration::from_secs(600);

/// Names to check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CheckBody, example = json!({"domains": ["solar.com", "münchen.de"]}))]
pub struct CheckRequest {
    /// Any text is accepted; an invalid name gets an error in its place.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 100)]
    domains: Option<Vec<String>>,
}

/// One row per name, in request order.
#[derive(Serialize, ToSchema)]
#[schema(as = NameChecks)]
pub struct ChecksResponse {
    #[schema(value_type = u32)]
    count: usize,
    /// Number of names whose check is queued. Repeat the request for their results: until ten minutes
    /// after its result, repeating a check costs nothing.
    #[schema(value_type = u32)]
    queued: usize,
    checks: Vec<CheckResponse>,
}

/// The check of a name.
#[derive(Serialize, ToSchema)]
#[schema(as = NameCheck)]
pub struct CheckResponse {
    /// The name, or the text as sent if it is not a name.
    domain: String,
    /// `checked`; `queued`; `failed`: a source gave no usable answer, or asked for a pause;
    /// `refused`: the text is not a name, the hourly checks of the account are used up, or too many
    /// checks are queued.
    outcome: &'static str,
    /// `null` unless it was checked.
    #[schema(required)]
    availability: Option<AvailabilityResponse>,
    /// Why the check was refused, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The name whose check is queued.
    #[serde(skip)]
    waits_for: Option<DomainName>,
}

/// Queues checks, and returns the results that are known.
pub async fn check_names(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    mut request: Request,
) -> Result<Response, Refusal> {
    // A request without a slot of its class must not wait.
    let slot = request.extensions_mut().remove::<ServerSlot>();
    let is_stream = wants_stream(request.headers());
    let JsonBody(CheckRequest { domains }) = JsonBody::from_request(request, &()).await?;
    let domains = required(domains, "domains")?;
    if !(1..=NAMES_MAX).contains(&domains.len()) {
        let what = format!("must have 1 to {NAMES_MAX} names, not {}", domains.len());
        return Err(ApiError::parameter("domains", what).into());
    }
    let limit = STREAMS_PER_ACCOUNT;
    let turn = match slot.filter(|_| is_stream) {
        None => None,
        Some(slot) => {
            let turn = app.limits.streams.begin(caller.account, limit);
            Some((slot, turn.ok_or(ApiError::TooManyStreams { limit })?))
        }
    };
    // Before the first check is queued, so that no result is missed.
    let checks = app.reach.checks.clone();
    let settled = checks.as_ref().map(|checks| checks.subscribe());
    let begin = |text| CheckResponse::begin(checks.as_deref(), &caller, text);
    let rows: Vec<CheckResponse> = domains.into_iter().map(begin).collect();
    if let Some(turn) = turn {
        let source = checks.zip(settled);
        let heartbeat = HEARTBEAT.min(app.limits.stall / 2);
        let ends = Instant::now() + STREAM_MAX;
        return Ok(Streamed {
            stops: app.changes.subscribe(),
            app,
            caller,
            source,
            rows,
            heartbeat,
            ends,
            is_done: false,
            _turn: turn,
        }
        .respond());
    }
    let queued = rows.iter().filter(|row| row.waits_for.is_some()).count();
    let response = ChecksResponse { count: rows.len(), queued, checks: rows };
    Ok(json::json_response(json::json_bytes(&response)?))
}

impl CheckResponse {
    /// Queues the check of a name, unless its result is known. `checks` is `None` if they are off.
    fn begin(checks: Option<&Checks>, caller: &Caller, text: String) -> CheckResponse {
        let refused = |domain, why| CheckResponse {
            domain,
            outcome: "refused",
            availability: None,
            error: Some(why),
            waits_for: None,
        };
        let name = match DomainName::parse_or_address(&text) {
            Ok(name) => name,
            Err(err) => return refused(text, err.to_string()),
        };
        let Some(checks) = checks else {
            let why = "checks are off on this server: its operator can set [rdap] enabled";
            return refused(name.to_string(), why.to_owned());
        };
        match checks.begin(caller.account, &name) {
            Ok(Some(checked)) => CheckResponse::settled(&name, checked),
            Ok(None) => CheckResponse {
                domain: name.to_string(),
                outcome: "queued",
                availability: None,
                error: None,
                waits_for: Some(name),
            },
            Err(Refused) => {
                let why =
                    "the checks of this hour are used up, or too many are queued: try again later";
                refused(name.to_string(), why.to_owned())
            }
        }
    }

    fn settled(name: &DomainName, checked: Checked) -> CheckResponse {
        let (outcome, availability) = match checked {
            Checked::Seen(seen) => ("checked", Some(AvailabilityResponse::new(&seen))),
            Checked::Failed => ("failed", None),
        };
        let domain = name.to_string();
        CheckResponse { domain, outcome, availability, error: None, waits_for: None }
    }
}

/// A stream of results.
struct Streamed {
    app: App,
    caller: Caller,
    /// Ends when the server stops.
    stops: watch::Receiver<u64>,
    /// The checks, and the signal that one of them was settled; `None` if they are off.
    source: Option<(Arc<Checks>, watch::Receiver<()>)>,
    /// Rows that were not sent.
    rows: Vec<CheckResponse>,
    heartbeat: Duration,
    ends: Instant,
    is_done: bool,
    /// Held until the stream is dropped.
    _turn: (ServerSlot, AccountTurn),
}

impl Streamed {
    fn respond(self) -> Response {
        let events = stream::unfold(self, async |mut state| {
            let bytes = state.next().await?;
            Some((bytes, state))
        });
        event_stream(events)
    }

    /// Returns the next bytes; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_done {
                return None;
            }
            if let Some((_, settled)) = &mut self.source {
                settled.mark_unchanged();
            }
            let ready = self.take_settled();
            if !ready.is_empty() {
                return Some(ready.into());
            }
            let beat = Instant::now() + self.heartbeat;
            let Some((_, settled)) =
                self.source.as_mut().filter(|_| !self.rows.is_empty() && beat < self.ends)
            else {
                self.is_done = true;
                let queued = self.rows.len();
                return Some(format!("event: done\ndata: {{\"queued\":{queued}}}\n\n").into());
            };
            tokio::select! {
                _ = settled.changed() => {}
                // New changes wake the stream as well, which does no harm.
                stops = self.stops.changed() => if stops.is_err() { return None },
                () = sleep_until(beat) => {
                    let is_admitted = readmit(&self.app, &self.caller, Scope::Read).is_ok();
                    return is_admitted.then(|| ":\n\n".into());
                }
            }
        }
    }

    /// Removes the rows that no longer wait, and returns them as events.
    fn take_settled(&mut self) -> Vec<u8> {
        let mut events = Vec::new();
        let mut push = |row: &CheckResponse| {
            events.extend_from_slice(b"event: check\ndata: ");
            let row = serde_json::to_vec(row).expect("rows are text and numbers");
            events.extend_from_slice(&row);
            events.extend_from_slice(b"\n\n");
        };
        self.rows.retain(|row| match (&row.waits_for, &self.source) {
            (Some(name), Some((checks, _))) if checks.is_waiting(self.caller.account, name) => true,
            (Some(name), Some((checks, _))) => {
                let checked = checks.result(self.caller.account, name);
                let checked = checked.unwrap_or(Checked::Failed);
                push(&CheckResponse::settled(name, checked));
                false
            }
            _ => {
                push(row);
                false
            }
        });
        events
    }
}
