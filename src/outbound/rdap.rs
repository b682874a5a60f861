//! What a registry's answer means: the status, head and body of an RDAP response in (RFC 7480,
//! RFC 9083), a [`Reply`] out, and from that with the name's drop an [`RdapState`]. Pure: asking is
//! `workers/verify`'s, over [`super`]'s client.
//!
//! An answer is hostile input. Its size, depth and lists are bounded, members nobody needs are
//! skipped unread, a member of a wrong type counts as absent where nothing hangs on it, and an
//! answer about another name is none. Contacts and notices are never looked at, so nobody's
//! personal data gets any further than this.

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::vocab::day::Day;
use crate::vocab::json;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{RdapState, RdapStatus, RdapStatuses};

/// Octets of an answer at most: those of registries have some ten thousand.
pub const ANSWER_OCTETS_MAX: usize = 256 * 1024;
/// Objects and arrays within each other at most: a contact's address within an entity of an entity
/// of a domain is ten deep.
const DEPTH_MAX: u32 = 32;
/// Statuses of an answer at most: there are some forty.
const STATUSES_MAX: usize = 64;
/// Events of an answer at most: there are nine kinds, and transfers repeat.
const EVENTS_MAX: usize = 256;
/// Octets of a date at most.
const DATE_OCTETS_MAX: usize = 48;
/// A registration may lie so far ahead of our clock: clocks differ, and so do time zones that an
/// answer forgot to name.
const AHEAD_DAYS_MAX: i32 = 1;
/// `Retry-After` is not believed beyond this: a server that wants more is asked once a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// What the registry says of a name it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Its statuses, as far as they are ones of a domain.
    pub statuses: RdapStatuses,
    /// The UTC day it was registered, or registered anew: the latest such event.
    pub registered_on: Option<Day>,
    /// The UTC day it expires or expired.
    pub expires_on: Option<Day>,
    /// The UTC day of its last change.
    pub changed_on: Option<Day>,
    /// The UTC day it was or will be deleted.
    pub deleted_on: Option<Day>,
}

/// What a server answered.
#[derive(Debug)]
pub enum Reply {
    /// The name is registered, or on its way out.
    Found(Registration),
    /// The registry has no such name (RFC 7480 §5.3).
    NotFound,
    /// Another address has the answer (RFC 7480 §5.2): the header as sent.
    Elsewhere(String),
    /// Nothing is to be asked of this server for so long (RFC 7480 §5.5); `None` when it does not say.
    NotNow(Option<Duration>),
    /// The server failed; it may not next time.
    Failed(u16),
    /// The server has no usable answer about this name, and will hardly have one soon.
    Unusable(Unusable),
}

/// Why an answer is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("more than {ANSWER_OCTETS_MAX} octets")]
    TooLong,
    #[error("not UTF-8")]
    NotText,
    #[error("objects and arrays more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error("not JSON of a domain: {0}")]
    NotJson(String),
    #[error("an object that is no domain")]
    NotDomain,
    #[error("about another name")]
    OtherName,
    #[error("more than {STATUSES_MAX} statuses or {EVENTS_MAX} events")]
    TooMany,
}

/// The parts of an HTTP response that matter here.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: u16,
    /// `Location`, if there is one.
    pub location: Option<&'a str>,
    /// What `Retry-After` says, if there is one.
    pub retry_after: Option<Duration>,
    pub body: &'a [u8],
}

/// What `response`, which arrived at `now`, says about `name`.
pub fn read(response: Response<'_>, name: &DomainName, now: DateTime<Utc>) -> Reply {
    match response.status {
        200 => match parse(response.body, name, now) {
            Ok(registration) => Reply::Found(registration),
            Err(reason) => Reply::Unusable(reason),
        },
        404 => Reply::NotFound,
        // Only these keep the method and lead to one other place.
        301 | 302 | 307 | 308 => match response.location {
            Some(location) => Reply::Elsewhere(location.to_owned()),
            None => Reply::Unusable(Unusable::Status(response.status)),
        },
        429 | 503 => {
            // Who says "now" while refusing says nothing.
            let wait = response.retry_after.filter(|wait| !wait.is_zero());
            Reply::NotNow(wait.map(|wait| wait.min(RETRY_AFTER_MAX)))
        }
        status @ (408 | 500..=599) => Reply::Failed(status),
        status => Reply::Unusable(Unusable::Status(status)),
    }
}

/// The state of a name whose registry answered, given the date of its latest drop.
///
/// What the registry says now beats the calendar: a name in pending delete that the registry knows
/// no more is available, as seen. A deletion that can be taken back beats one that cannot, because
/// registries show both statuses in redemption (RFC 3915 §3.1). Whether a holder kept a name or
/// another one caught it is told by the day of its registration; without that day, or without a
/// drop, it is registered and no more can be said.
pub fn derive(found: Option<&Registration>, drop_date: Option<Day>) -> RdapState {
    let Some(registration) = found else { return RdapState::Available };
    let has = |status| registration.statuses.has(status);
    if has(RdapStatus::RedemptionPeriod) || has(RdapStatus::PendingRestore) {
        return RdapState::Redemption;
    }
    if has(RdapStatus::PendingDelete) {
        return RdapState::PendingDelete;
    }
    held(registration.registered_on, drop_date)
}

/// The state of a name that is held, registered on that day.
pub fn held(registered_on: Option<Day>, drop_date: Option<Day>) -> RdapState {
    match (registered_on, drop_date) {
        (Some(registered), Some(dropped)) if registered > dropped => RdapState::RegisteredAgain,
        (Some(_), Some(_)) => RdapState::Renewed,
        _ => RdapState::Registered,
    }
}

/// A domain object (RFC 9083 §5.3), as far as it is read.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow, rename = "objectClassName")]
    class: Option<&'a RawValue>,
    #[serde(borrow, rename = "ldhName")]
    ldh_name: Option<&'a RawValue>,
    #[serde(borrow, rename = "unicodeName")]
    unicode_name: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    events: Option<&'a RawValue>,
}

/// An event (RFC 9083 §4.5).
#[derive(Deserialize)]
struct SentEvent<'a> {
    #[serde(borrow, rename = "eventAction")]
    action: Cow<'a, str>,
    #[serde(borrow, rename = "eventDate")]
    date: Cow<'a, str>,
}

/// Reads a domain object about `name`.
///
/// # Errors
/// Why it is none, or not about that name.
pub fn parse(body: &[u8], name: &DomainName, now: DateTime<Utc>) -> Result<Registration, Unusable> {
    if body.len() > ANSWER_OCTETS_MAX {
        return Err(Unusable::TooLong);
    }
    let text = std::str::from_utf8(body).map_err(|_| Unusable::NotText)?;
    // RFC 8259 §8.1 lets a reader skip it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if json::is_deeper_than(text.as_bytes(), DEPTH_MAX) {
        return Err(Unusable::TooDeep);
    }
    // An array of as many items would pass for it.
    if !text.trim_start().starts_with('{') {
        return Err(Unusable::NotDomain);
    }
    let sent: Sent<'_> = serde_json::from_str(text).map_err(|err| not_json(&err))?;
    let class = sent.class.and_then(string);
    if class.is_some_and(|class| !class.eq_ignore_ascii_case("domain")) {
        return Err(Unusable::NotDomain);
    }
    // A registry of IDNs may know the Unicode form alone.
    let about = sent.ldh_name.and_then(string).or_else(|| sent.unicode_name.and_then(string));
    let about = about.ok_or(Unusable::NotDomain)?;
    if !is_same_name(&about, name) {
        return Err(Unusable::OtherName);
    }
    let mut registration =
        Registration { statuses: statuses(sent.status)?, ..Registration::default() };
    for event in items(sent.events, EVENTS_MAX)? {
        if let Ok(event) = serde_json::from_str(event.get()) {
            registration.note(&event, now);
        }
    }
    Ok(registration)
}

impl Registration {
    /// Takes note of an event. Kinds of no use here, and dates that are none, are passed over.
    fn note(&mut self, event: &SentEvent<'_>, now: DateTime<Utc>) {
        let Some(day) = parse_day(&event.date) else { return };
        let ahead = Day::of(now).map_or(Day::MAX, |today| today.plus(AHEAD_DAYS_MAX));
        let latest = |known: &mut Option<Day>| *known = (*known).max(Some(day));
        match event.action.trim().to_ascii_lowercase().as_str() {
            "registration" | "reregistration" if day <= ahead => latest(&mut self.registered_on),
            "expiration" => latest(&mut self.expires_on),
            "last changed" => latest(&mut self.changed_on),
            "deletion" => latest(&mut self.deleted_on),
            _ => {}
        }
    }
}

/// The statuses that are ones of a domain. A single one that is no array is taken as one.
fn statuses(sent: Option<&RawValue>) -> Result<RdapStatuses, Unusable> {
    if let Some(one) = sent.and_then(string) {
        return Ok(RdapStatus::parse(&one).into_iter().collect());
    }
    let all = items(sent, STATUSES_MAX)?;
    Ok(all.into_iter().filter_map(string).filter_map(|word| RdapStatus::parse(&word)).collect())
}

/// The items of an array; none of what is no array.
fn items(sent: Option<&RawValue>, max: usize) -> Result<Vec<&RawValue>, Unusable> {
    let items: Vec<&RawValue> =
        sent.and_then(|sent| serde_json::from_str(sent.get()).ok()).unwrap_or_default();
    if items.len() <= max { Ok(items) } else { Err(Unusable::TooMany) }
}

fn string(sent: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(sent.get()).ok().map(|text| text.0)
}

fn is_same_name(text: &str, name: &DomainName) -> bool {
    let bare = text.trim().trim_end_matches('.');
    bare.eq_ignore_ascii_case(name.as_str())
        || DomainName::parse(text).is_ok_and(|other| other == *name)
}

/// The UTC day of a date: RFC 3339 as RFC 9083 §3 wants it, and what registries write instead: no
/// offset, which is taken as UTC, an offset without a colon, or a day alone.
fn parse_day(text: &str) -> Option<Day> {
    let text = text.trim();
    if text.len() > DATE_OCTETS_MAX || !text.is_ascii() {
        return None;
    }
    let with_offset = || {
        DateTime::parse_from_rfc3339(text)
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"))
            .ok()
            .map(|at| at.to_utc())
    };
    let without = |format| NaiveDateTime::parse_from_str(text, format).ok().map(|at| at.and_utc());
    if let Some(at) = with_offset()
        .or_else(|| without("%Y-%m-%dT%H:%M:%S%.fZ"))
        .or_else(|| without("%Y-%m-%dT%H:%M:%S%.f"))
        .or_else(|| without("%Y-%m-%d %H:%M:%S%.f"))
    {
        return Day::of(at);
    }
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(Day::from_date)
}

fn not_json(err: &serde_json::Error) -> Unusable {
    // The category and the place; the text of a stranger stays out of our logs.
    Unusable::NotJson(format!("{:?} at {}:{}", err.classify(), err.line(), err.column()))
}

#[cfg(test)]
mod tests;
