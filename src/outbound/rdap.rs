//! Interprets RDAP responses (RFC 7480, RFC 9083): a response becomes a [`Reply`] and, with the name's
//! drop date, an [`RdapState`]. Pure: `workers/verify` sends the requests.
//!
//! Responses are untrusted. Size, depth and lists are bounded, unneeded members are skipped, members of
//! a wrong type count as absent where that is safe, and responses about another name are rejected.
//! Contacts and notices are never read, so no personal data is processed.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::vocab::day::Day;
use crate::vocab::json;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{
    LatestRegistration, RdapState, RdapStatus, RdapStatuses, Registrar,
};
use crate::vocab::time::UnixMs;

/// Maximum bytes of a response; registries send about ten thousand.
pub const RESPONSE_BYTES_MAX: usize = 256 * 1024;
/// Maximum nesting: a contact's address in an entity of an entity of a domain has ten levels.
const DEPTH_MAX: u32 = 32;
/// Maximum statuses of a response; about forty exist.
const STATUSES_MAX: usize = 64;
/// Maximum events of a response; there are nine kinds, and transfers may occur several times.
const EVENTS_MAX: usize = 256;
/// Maximum number of entities, of their roles and of the parts of a vCard's property.
const ENTITIES_MAX: usize = 64;
/// Maximum number of properties of a vCard.
const PROPERTIES_MAX: usize = 128;
/// Maximum bytes of a date.
const DATE_BYTES_MAX: usize = 48;
/// Days by which a registration may lie in the future, to allow for clock differences and missing
/// time zones.
const AHEAD_DAYS_MAX: i32 = 1;
/// Maximum `Retry-After` that is honoured, so that every server is queried at least once a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// Registry data of a registered name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Domain statuses.
    pub statuses: RdapStatuses,
    /// UTC day of the latest registration of the name.
    pub registered_on: Option<Day>,
    /// Its time, if the registry gives one, and the registrar.
    pub latest: LatestRegistration,
    /// UTC day of its expiry.
    pub expires_on: Option<Day>,
    /// UTC day of the last change of the name.
    pub changed_on: Option<Day>,
    /// UTC day of the past or future deletion of the name.
    pub deleted_on: Option<Day>,
}

/// Interpreted response of an RDAP server.
#[derive(Debug)]
pub enum Reply {
    /// The name is registered or being deleted.
    Found(Registration),
    /// The registry has no such name (RFC 7480 §5.3).
    NotFound,
    /// The registry has no such name, because it keeps or blocks it.
    Reserved,
    /// Redirect (RFC 7480 §5.2) with the `Location` header as sent.
    Elsewhere(String),
    /// Rate limited (RFC 7480 §5.5), with the delay if the server gives one.
    NotNow(Option<Duration>),
    /// Access denied, or limited in words. It may apply to the name or to the client, so both are paused.
    Refused,
    /// A temporary server error.
    Failed(u16),
    /// An unusable response about this name; the problem is probably permanent.
    Unusable(Unusable),
}

/// Reason why a response is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("more than {RESPONSE_BYTES_MAX} bytes")]
    TooLong,
    #[error("{0}")]
    Coding(String),
    #[error("not UTF-8")]
    NotText,
    #[error("nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    #[error("not a JSON object of a domain: {0}")]
    NotJson(String),
    #[error("an object other than a domain")]
    NotDomain,
    #[error("about another name")]
    OtherName,
    #[error("more than {STATUSES_MAX} statuses or {EVENTS_MAX} events")]
    TooMany,
}

/// The relevant parts of an HTTP response.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: u16,
    /// `Location` header.
    pub location: Option<&'a str>,
    /// `Retry-After` header.
    pub retry_after: Option<Duration>,
    pub body: &'a [u8],
}

/// Interprets `response`, received at `now`, for `name`.
pub fn read(response: Response<'_>, name: &DomainName, now: DateTime<Utc>) -> Reply {
    match response.status {
        200 => match parse(response.body, name, now) {
            Ok(registration) => Reply::Found(registration),
            Err(reason) => Reply::Unusable(reason),
        },
        404 => missing(response.body),
        // These statuses redirect a GET to exactly one URL.
        301 | 302 | 307 | 308 => match response.location {
            Some(location) => Reply::Elsewhere(location.to_owned()),
            None => Reply::Unusable(Unusable::Status(response.status)),
        },
        429 | 503 => not_now(response.retry_after),
        // Some registries answer 422 to a client that is too fast, and others put it into words.
        403 | 422 => Reply::Refused,
        _ if has_any(&as_words(response.body), &THROTTLED) => Reply::Refused,
        status @ (408 | 500..=599) => Reply::Failed(status),
        status => Reply::Unusable(Unusable::Status(status)),
    }
}

fn not_now(retry_after: Option<Duration>) -> Reply {
    // A delay of zero carries no information.
    let wait = retry_after.filter(|wait| !wait.is_zero());
    Reply::NotNow(wait.map(|wait| wait.min(RETRY_AFTER_MAX)))
}

/// Interprets the body of a 404: empty, or a JSON object such as the error of RFC 9083 §6. Any other
/// body is from a web server or a gateway that knows nothing about the name.
fn missing(body: &[u8]) -> Reply {
    let text = body.trim_ascii();
    if text.is_empty() {
        return Reply::NotFound;
    }
    if body.len() > RESPONSE_BYTES_MAX {
        return Reply::Unusable(Unusable::TooLong);
    }
    if json::is_deeper_than(text, DEPTH_MAX) {
        return Reply::Unusable(Unusable::TooDeep);
    }
    let sent: ErrorObject<'_> = match serde_json::from_slice(text) {
        Ok(sent) if text.starts_with(b"{") => sent,
        Ok(_) => return Reply::Unusable(Unusable::NotDomain),
        Err(err) => return Reply::Unusable(not_json(&err)),
    };
    let raw = |sent: Option<&RawValue>| as_words(sent.map_or("", RawValue::get).as_bytes());
    let (error, notices) = (raw(sent.title) + " " + &raw(sent.description), raw(sent.notices));
    // Notices hold terms of use, which mention limits as well.
    if has_any(&error, &THROTTLED) {
        return Reply::Refused;
    }
    let is_kept = has_any(&error, &KEPT) || has_any(&notices, &KEPT[..NOTICED]);
    if is_kept { Reply::Reserved } else { Reply::NotFound }
}

/// The members of an error object (RFC 9083 §6) that are read.
#[derive(Deserialize)]
struct ErrorObject<'a> {
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow)]
    notices: Option<&'a RawValue>,
}

/// Words of a server that limits its clients, as [`as_words`] returns them.
pub(crate) const THROTTLED: [&str; 10] = [
    "too many requests",
    "too many queries",
    "rate limit",
    "allowed queries exceeded",
    "limit exceeded",
    "quota exceeded",
    "exceeded the maximum number",
    "exceeded your",
    "too fast",
    "throttled",
];

/// Words of a registry that keeps or blocks a name. `all rights reserved` is not among them.
pub(crate) const KEPT: [&str; 9] = [
    "name is reserved",
    "name blocked",
    "reserved name",
    "reserved domain",
    "name reserved",
    "reserved by the registry",
    "premium",
    "is reserved",
    "blocked",
];
/// Number of those that notices are searched for. The others occur in terms of use.
const NOTICED: usize = 7;

/// Returns a text, or the JSON of one, in lower case, with single spaces between its words.
pub(crate) fn as_words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(RESPONSE_BYTES_MAX)]);
    let text = [r"\n", r"\r", r"\t"]
        .iter()
        .fold(text.into_owned(), |text, escape| text.replace(escape, " "));
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    words.join(" ")
}

pub(crate) fn has_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// Derives the state of a registered name from the registry's response and the date of its latest drop.
///
/// Redemption takes precedence over pending delete, because registries show
/// both statuses in redemption (RFC 3915 §3.1). The day of registration distinguishes a renewal from a
/// new registration; without that day, or without a drop, the state is only `Registered`.
pub fn derive(registration: &Registration, drop_date: Option<Day>) -> RdapState {
    let has = |status| registration.statuses.has(status);
    if has(RdapStatus::RedemptionPeriod) || has(RdapStatus::PendingRestore) {
        return RdapState::Redemption;
    }
    if has(RdapStatus::PendingDelete) {
        return RdapState::PendingDelete;
    }
    if has(RdapStatus::Reserved) {
        return RdapState::Reserved;
    }
    held(registration.registered_on, drop_date)
}

/// State of a registered name, by the day of its registration.
pub fn held(registered_on: Option<Day>, drop_date: Option<Day>) -> RdapState {
    match (registered_on, drop_date) {
        (Some(registered), Some(dropped)) if registered > dropped => RdapState::RegisteredAgain,
        (Some(_), Some(_)) => RdapState::Renewed,
        _ => RdapState::Registered,
    }
}

/// The members of a domain object (RFC 9083 §5.3) that are read.
#[derive(Deserialize)]
struct DomainObject<'a> {
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
    #[serde(borrow)]
    entities: Option<&'a RawValue>,
}

/// An entity (RFC 9083 §5.1), such as the registrar.
#[derive(Deserialize)]
struct EntityObject<'a> {
    #[serde(borrow)]
    roles: Option<&'a RawValue>,
    #[serde(borrow, rename = "vcardArray")]
    vcard: Option<&'a RawValue>,
    #[serde(borrow)]
    handle: Option<&'a RawValue>,
}

/// An event (RFC 9083 §4.5).
#[derive(Deserialize)]
struct EventObject<'a> {
    #[serde(borrow, rename = "eventAction")]
    action: Cow<'a, str>,
    #[serde(borrow, rename = "eventDate")]
    date: Cow<'a, str>,
}

/// Parses a domain object about `name`.
///
/// # Errors
/// The body is not a domain object, or is about another name.
pub fn parse(body: &[u8], name: &DomainName, now: DateTime<Utc>) -> Result<Registration, Unusable> {
    if body.len() > RESPONSE_BYTES_MAX {
        return Err(Unusable::TooLong);
    }
    let text = std::str::from_utf8(body).map_err(|_| Unusable::NotText)?;
    // RFC 8259 §8.1 allows readers to skip a byte-order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if json::is_deeper_than(text.as_bytes(), DEPTH_MAX) {
        return Err(Unusable::TooDeep);
    }
    // Without this check, serde would accept an array with the same number of items.
    if !text.trim_start().starts_with('{') {
        return Err(Unusable::NotDomain);
    }
    let sent: DomainObject<'_> = serde_json::from_str(text).map_err(|err| not_json(&err))?;
    let class = sent.class.and_then(string);
    if class.is_some_and(|class| !class.eq_ignore_ascii_case("domain")) {
        return Err(Unusable::NotDomain);
    }
    // Some registries of IDNs give only the Unicode form.
    let about = sent.ldh_name.and_then(string).or_else(|| sent.unicode_name.and_then(string));
    let about = about.ok_or(Unusable::NotDomain)?;
    if !is_same_name(&about, name) {
        return Err(Unusable::OtherName);
    }
    let mut registration =
        Registration { statuses: statuses(sent.status)?, ..Registration::default() };
    for event in items(sent.events, EVENTS_MAX)? {
        if let Ok(event) = serde_json::from_str(event.get()) {
            registration.record(&event, now);
        }
    }
    // A name with too many contacts still has its statuses and dates.
    let entities = items(sent.entities, ENTITIES_MAX).unwrap_or_default();
    registration.latest.registrar = entities.into_iter().find_map(registrar);
    Ok(registration)
}

/// Returns the name of an entity that is a registrar: the formatted name in its vCard (RFC 7095 §3.3), or
/// its handle.
fn registrar(entity: &RawValue) -> Option<Registrar> {
    let entity: EntityObject<'_> = serde_json::from_str(entity.get()).ok()?;
    let roles = entity.roles.map(|roles| match string(roles) {
        Some(one) => vec![one],
        None => items(Some(roles), ENTITIES_MAX)
            .map(|roles| roles.into_iter().filter_map(string).collect())
            .unwrap_or_default(),
    });
    let is_registrar = |role: &Cow<'_, str>| role.trim().eq_ignore_ascii_case("registrar");
    roles?.iter().any(is_registrar).then_some(())?;
    let card = items(entity.vcard, ENTITIES_MAX).unwrap_or_default();
    let properties = items(card.get(1).copied(), PROPERTIES_MAX).unwrap_or_default();
    let name = properties.into_iter().find_map(|property| {
        let property = items(Some(property), ENTITIES_MAX).ok()?;
        let key = string(property.first()?)?;
        key.eq_ignore_ascii_case("fn").then(|| string(property.get(3)?)).flatten()
    });
    name.and_then(|name| Registrar::new(&name)).or_else(|| Registrar::new(&string(entity.handle?)?))
}

impl Registration {
    /// Records an event. Unused kinds and invalid dates are ignored.
    fn record(&mut self, event: &EventObject<'_>, now: DateTime<Utc>) {
        let Some((day, at)) = parse_date(&event.date) else { return };
        let ahead = Day::from_instant(now).map_or(Day::MAX, |today| today.plus(AHEAD_DAYS_MAX));
        let latest = |known: &mut Option<Day>| *known = (*known).max(Some(day));
        match event.action.trim().to_ascii_lowercase().as_str() {
            "registration" | "reregistration" if day <= ahead => {
                match self.registered_on.cmp(&Some(day)) {
                    Ordering::Less => self.latest.at = at,
                    Ordering::Equal => self.latest.at = self.latest.at.max(at),
                    Ordering::Greater => {}
                }
                latest(&mut self.registered_on);
            }
            "expiration" => latest(&mut self.expires_on),
            "last changed" => latest(&mut self.changed_on),
            "deletion" => latest(&mut self.deleted_on),
            _ => {}
        }
    }
}

/// Parses the statuses; accepts a single string instead of an array.
fn statuses(sent: Option<&RawValue>) -> Result<RdapStatuses, Unusable> {
    if let Some(one) = sent.and_then(string) {
        return Ok(RdapStatus::parse(&one).into_iter().collect());
    }
    let all = items(sent, STATUSES_MAX)?;
    Ok(all.into_iter().filter_map(string).filter_map(|word| RdapStatus::parse(&word)).collect())
}

/// The items of an array; none for other values.
fn items(sent: Option<&RawValue>, max: usize) -> Result<Vec<&RawValue>, Unusable> {
    let items: Vec<&RawValue> =
        sent.and_then(|sent| serde_json::from_str(sent.get()).ok()).unwrap_or_default();
    if items.len() <= max { Ok(items) } else { Err(Unusable::TooMany) }
}

fn string(sent: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<JsonText<'_>>(sent.get()).ok().map(|text| text.0)
}

fn is_same_name(text: &str, name: &DomainName) -> bool {
    let bare = text.trim().trim_end_matches('.');
    bare.eq_ignore_ascii_case(name.as_str())
        || DomainName::parse(text).is_ok_and(|other| other == *name)
}

/// Parses the UTC day of a date, and its instant: RFC 3339, as RFC 9083 §3 requires, and common deviations:
/// no offset (taken as UTC), an offset without a colon, or only a day.
fn parse_date(text: &str) -> Option<(Day, Option<UnixMs>)> {
    let text = text.trim();
    if text.len() > DATE_BYTES_MAX || !text.is_ascii() {
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
        return Some((Day::from_instant(at)?, Some(UnixMs::from_instant(at))));
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(Day::from_date);
    day.map(|day| (day, None))
}

fn not_json(err: &serde_json::Error) -> Unusable {
    // Only the category and position are logged, to keep untrusted text out of the logs.
    Unusable::NotJson(format!("{:?} at {}:{}", err.classify(), err.line(), err.column()))
}

#[cfg(test)]
mod tests;
