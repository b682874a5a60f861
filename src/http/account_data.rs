//! `/account/data.zip` and `dropdex account export`: everything of an account as one archive.
//!
//! Rows are those of the API and of the CSV exports. The archive holds what belongs to the account, so it has nothing
//! of the lists, and no index is needed to write it.

use std::io::{self, Cursor, Write};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::Serialize;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::accounts::{AccountCopy, Channel, Email, Profile, Rule, Store, UserData};
use crate::alerts::RuleResponse;
use crate::alerts::deliveries::DeliveryResponse;
use crate::alerts::watchlist::WatchAlertsResponse;
use crate::edge::caching::Caching;
use crate::edge::class::Class;
use crate::edge::csv::user_cell;
use crate::edge::error::Refusal;
use crate::edge::extensions::ServerSlot;
use crate::edge::routes::Route;
use crate::edge::{origin, session};
use crate::export::{PORTFOLIO_HEADER, WATCHLIST_HEADER, write_claim, write_watch};
use crate::fact_rows::fact_cell;
use crate::facts_file::store::{Edition, StoredColumn};
use crate::feeds::FeedResponse;
use crate::filter::FilterResponse;
use crate::portfolio::ClaimResponse;
use crate::query::stored::Conditions;
use crate::response::{self, Timestamp};
use crate::searches::SearchResponse;
use crate::service::app::App;
use crate::service::error::ApiError;
use crate::service::watchlist::WatchRow;
use crate::service::work;
use crate::telemetry::security::{self, SecurityEvent};
use crate::vocab::claim::Vote;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::RuleId;
use crate::vocab::scope::Scope;
use crate::watchlist::WatchResponse;

/// Archives of one account that are made at once.
const AT_ONCE: u32 = 1;
/// The route, which is a page's download and no operation of the API.
pub const ROUTE: Route = Route {
    method: "GET",
    path: "/account/data.zip",
    class: Class::Export,
    caching: Caching::Session,
};

/// The file that documents the others.
const README: &str = include_str!("account_data/README.txt");

/// The route of the download.
pub fn router(app: App) -> Router {
    Router::new().route(ROUTE.path, get(download)).with_state(app)
}

/// `GET /account/data.zip`, for a logged-in owner on every plan.
async fn download(State(app): State<App>, request: Request) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    if !origin::is_same_origin_or_direct(&parts.headers) {
        return Err(ApiError::CrossSite.into());
    }
    let now = app.clock.now();
    let person = session::of_request(&app, &parts, now).ok_or(ApiError::Unauthenticated)?;
    let turn = app.limits.exports.begin(person.caller.account, AT_ONCE);
    let turn = turn.ok_or(ApiError::TooManyExports { plan: person.caller.plan, limit: AT_ONCE })?;
    // The work outlives a client that disconnects, and keeps both slots meanwhile.
    let held = (turn, parts.extensions.remove::<ServerSlot>());
    let (store, email) = (app.store.clone(), person.email.clone());
    let made = work::run_low(move || {
        let _held = held;
        store.copy_of(&email, now).map(|copy| pack(&store, &copy, now))
    });
    let archive = made.await.ok_or_else(|| ApiError::Internal(anyhow::anyhow!("it panicked")))?;
    let archive = archive.ok_or(ApiError::NotFound)?;
    let archive = archive.map_err(|err| ApiError::Internal(err.into()))?;
    security::record(SecurityEvent::AccountExported, person.email.as_str());
    let disposition = format!("attachment; filename=\"{}\"", file_name(&person.email, now));
    let headers =
        [(CONTENT_TYPE, "application/zip".to_owned()), (CONTENT_DISPOSITION, disposition)];
    Ok(response::not_stored((headers, archive).into_response()))
}

/// Returns the usual name of an archive. It has no character that a header or a file system might not take.
pub fn file_name(email: &Email, now: DateTime<Utc>) -> String {
    let is_plain =
        |it: char| it.is_ascii_alphanumeric() || matches!(it, '@' | '.' | '-' | '_' | '+');
    let address: String =
        email.as_str().chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
    format!("dropdex-{address}-{}.zip", Day::nearest(now))
}

/// Returns the archive with everything of an account. Its size is bounded by the data that a plan allows.
///
/// # Errors
/// Facts of the account are damaged.
pub fn pack(store: &Store, copy: &AccountCopy, now: DateTime<Utc>) -> io::Result<Vec<u8>> {
    let owned = &*copy.data;
    let watches = WatchRow::without_index(owned, store);
    let mut archive = Archive::new(now);
    archive.file("README.txt")?.write_all(README.as_bytes())?;
    serde_json::to_writer_pretty(archive.file("account.json")?, &AccountJson::new(copy, now))?;
    archive.json("watchlist.json", watches.iter().map(WatchResponse::new))?;
    archive.csv("watchlist.csv", WATCHLIST_HEADER, &watches, write_watch)?;
    archive.json("portfolio.json", owned.claims().map(ClaimResponse::new))?;
    archive.csv("portfolio.csv", PORTFOLIO_HEADER, owned.claims(), write_claim)?;
    archive.json("alerts.json", owned.rules().map(|rule| RuleResponse::new(rule, owned)))?;
    archive.csv("alerts.csv", ALERTS_HEADER, owned.rules(), write_rule)?;
    archive.json("deliveries.json", senders(owned).map(|id| RuleDeliveries::new(id, owned)))?;
    archive.json("searches.json", owned.searches().map(|it| SearchResponse::new(it, None)))?;
    archive.csv("searches.csv", SEARCHES_HEADER, owned.searches(), |search, out| {
        let (id, name, filter) = (search.id, user_cell(&search.name), filter(&search.conditions)?);
        write!(out, "{id},{name},{},{filter}\r\n", search.created_at)
    })?;
    archive.json("hidden.json", owned.hidden())?;
    archive.csv("hidden.csv", "domain\r\n", owned.hidden(), |it, out| write!(out, "{it}\r\n"))?;
    archive.json("votes.json", owned.votes().map(|(domain, vote)| VoteJson { domain, vote }))?;
    archive.csv("votes.csv", "domain,vote\r\n", owned.votes(), |(domain, vote), out| {
        write!(out, "{domain},{}\r\n", vote.as_str())
    })?;
    let feeds = || copy.feeds.iter().map(FeedResponse::new);
    archive.json("feeds.json", feeds())?;
    archive.csv("feeds.csv", FEEDS_HEADER, feeds(), |feed, out| feed.write_csv(out))?;
    for source in owned.facts().sources() {
        let edition = Edition::of_bytes(source.bytes.clone()).map_err(io::Error::other)?;
        write_facts(&edition, archive.file(&format!("facts/{}.csv", source.row.source))?)?;
    }
    archive.json(
        "facts/mappings.json",
        owned.facts().mappings().map(|(fingerprint, columns)| MappingJson { fingerprint, columns }),
    )?;
    archive.finish()
}

const ALERTS_HEADER: &str = "id,name,active,created_at,channels,filter\r\n";
const SEARCHES_HEADER: &str = "id,name,created_at,filter\r\n";
const FEEDS_HEADER: &str = "search_id,rule_id,created_on\r\n";

/// The ids of all that sends messages: rules, the watchlist and the digest.
fn senders(owned: &UserData) -> impl Iterator<Item = RuleId> {
    owned.rules().map(|rule| rule.id).chain([RuleId::WATCHLIST, RuleId::DIGEST])
}

/// Returns the cell with a filter: JSON with the members of filters in the API.
fn filter(conditions: &Conditions) -> io::Result<String> {
    let text = serde_json::to_string(&FilterResponse(conditions.clone()))?;
    Ok(user_cell(&text).into_owned())
}

fn write_rule(rule: &Rule, out: &mut impl Write) -> io::Result<()> {
    // The secrets of chat services are cut, as in the API.
    let channel = |channel: &Channel| match channel {
        Channel::Email => "email".to_owned(),
        Channel::Webhook { url } => format!("webhook {}", url.as_str()),
        Channel::Telegram { chat_id } => format!("telegram {chat_id}"),
        Channel::Chat(chat) => format!("{} {}", chat.service, chat.hook.label()),
    };
    let channels: Vec<_> = rule.channels.iter().map(channel).collect();
    let (name, channels) = (user_cell(&rule.name), channels.join("; "));
    let Rule { id, active, created_at, .. } = rule;
    write!(
        out,
        "{id},{name},{active},{created_at},{},{}\r\n",
        user_cell(&channels),
        filter(&rule.filter)?
    )
}

/// Writes an edition as a canonical file of facts, which can be added again.
fn write_facts(edition: &Edition, out: &mut impl Write) -> io::Result<()> {
    let meta = edition.meta();
    write!(out, "{}", meta.key)?;
    for column in &meta.columns {
        write!(out, ",{}.{}", meta.id, described(column))?;
    }
    write!(out, ",as_of\r\n")?;
    let mut rows = edition.rows_from(b"").map_err(io::Error::other)?;
    while let Some(row) = rows.next_row().map_err(io::Error::other)? {
        out.write_all(&row.key)?;
        for value in edition.values(row) {
            write!(out, ",{}", fact_cell(value))?;
        }
        write!(out, ",{}\r\n", edition.as_of(row))?;
    }
    Ok(())
}

/// Returns the name of a column with what canonical headers say about it.
fn described(column: &StoredColumn) -> String {
    let mut text = format!("{}:{}", column.name, column.kind);
    let parts = [
        column.unit.map(|unit| unit.to_string()),
        column.direction.map(|direction| direction.to_string()),
        column.scale.map(|top| format!("0-{top}")),
        column.currency.map(|currency| currency.as_str().to_owned()),
    ];
    for part in parts.into_iter().flatten() {
        text.push(':');
        text.push_str(&part);
    }
    text
}

/// A zip archive in memory.
struct Archive {
    zip: ZipWriter<Cursor<Vec<u8>>>,
    options: SimpleFileOptions,
}

impl Archive {
    fn new(now: DateTime<Utc>) -> Archive {
        let (date, time) = (now.date_naive(), now.time());
        let number = |it: u32| u8::try_from(it).unwrap_or_default();
        let made = zip::DateTime::from_date_and_time(
            u16::try_from(date.year()).unwrap_or_default(),
            number(date.month()),
            number(date.day()),
            number(time.hour()),
            number(time.minute()),
            number(time.second()),
        );
        let options = SimpleFileOptions::default().last_modified_time(made.unwrap_or_default());
        Archive { zip: ZipWriter::new(Cursor::new(Vec::new())), options }
    }

    /// Begins a file.
    fn file(&mut self, name: &str) -> io::Result<&mut ZipWriter<Cursor<Vec<u8>>>> {
        self.zip.start_file(name, self.options)?;
        Ok(&mut self.zip)
    }

    /// Writes a JSON array, one row a line.
    fn json<T: Serialize>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        let out = self.file(name)?;
        let mut before = "[\n";
        for row in rows {
            out.write_all(before.as_bytes())?;
            serde_json::to_writer(&mut *out, &row)?;
            before = ",\n";
        }
        out.write_all(if before == "[\n" { b"[]\n" } else { b"\n]\n" })
    }

    /// Writes a CSV file.
    fn csv<T>(
        &mut self,
        name: &str,
        header: &str,
        rows: impl IntoIterator<Item = T>,
        write: impl Fn(T, &mut ZipWriter<Cursor<Vec<u8>>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let out = self.file(name)?;
        out.write_all(header.as_bytes())?;
        rows.into_iter().try_for_each(|row| write(row, &mut *out))
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        Ok(self.zip.finish()?.into_inner())
    }
}

/// `account.json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountJson<'a> {
    email: &'a str,
    email_verified: bool,
    plan: &'static str,
    created_on: Day,
    /// When the account is erased; `null` unless it was deleted.
    erased_at: Option<Timestamp>,
    requests_today: u32,
    exports_today: u32,
    keys: Vec<KeyJson<'a>>,
    sessions: Vec<SessionJson<'a>>,
    telegram_chat: Option<&'a str>,
    currency: &'static str,
    rates: Vec<RateJson>,
    /// Columns of the drop list; `null` for the default ones.
    columns: Option<&'a Columns>,
    watch_alerts: WatchAlertsResponse<'a>,
    digest: Option<DigestJson>,
}

/// An API key, of which only the last four characters are known.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyJson<'a> {
    name: &'a str,
    last4: String,
    scopes: Vec<&'static str>,
    created_on: Option<Day>,
    expires_at: Option<Timestamp>,
    last_used_on: Option<Day>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionJson<'a> {
    browser: &'a str,
    began_at: Timestamp,
    last_used_at: Timestamp,
}

#[derive(Serialize)]
struct RateJson {
    currency: &'static str,
    rate: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DigestJson {
    hour: u8,
    time_zone: &'static str,
    best: bool,
    searches: bool,
    sent_through: Timestamp,
}

#[derive(Serialize)]
struct VoteJson<'a> {
    domain: &'a str,
    vote: Vote,
}

/// How the columns of files with one header row are read.
#[derive(Serialize)]
struct MappingJson<'a> {
    fingerprint: &'a str,
    columns: &'a str,
}

/// Messages of a rule.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleDeliveries<'a> {
    /// The rule, `watchlist` or `digest`.
    sender: String,
    deliveries: Vec<DeliveryResponse<'a>>,
}

impl<'a> AccountJson<'a> {
    fn new(copy: &'a AccountCopy, now: DateTime<Utc>) -> AccountJson<'a> {
        let Profile { email, is_verified, plan, created, keys, sessions, .. } = &copy.profile;
        let (owned, money) = (&*copy.data, copy.data.money());
        let key = |it: &'a crate::accounts::Key| KeyJson {
            name: &it.name,
            last4: it.key.last4(),
            scopes: Scope::ALL
                .into_iter()
                .filter(|s| it.scopes.holds(*s))
                .map(Scope::as_str)
                .collect(),
            created_on: it.created,
            expires_at: it.until.map(Timestamp),
            last_used_on: it.used,
        };
        let session = |it: &'a crate::accounts::Session| SessionJson {
            browser: &it.browser,
            began_at: Timestamp(it.began),
            last_used_at: Timestamp(it.seen),
        };
        AccountJson {
            email: email.as_str(),
            email_verified: *is_verified,
            plan: plan.as_str(),
            created_on: *created,
            erased_at: copy.erase_at.map(Timestamp),
            requests_today: copy.profile.requests_today,
            exports_today: copy.profile.exports_today,
            keys: keys.iter().map(key).collect(),
            sessions: sessions.iter().map(session).collect(),
            telegram_chat: copy.profile.telegram_chat.as_deref(),
            currency: money.currency.as_str(),
            rates: money
                .rates
                .iter()
                .map(|(it, rate)| RateJson { currency: it.as_str(), rate: rate.to_string() })
                .collect(),
            columns: owned.columns(),
            watch_alerts: WatchAlertsResponse::new(owned, &owned.watch_sender().rule.channels, now),
            digest: owned.digest().map(|digest| DigestJson {
                hour: digest.hour.get(),
                time_zone: digest.zone.as_str(),
                best: digest.best,
                searches: digest.searches,
                sent_through: Timestamp(digest.through),
            }),
        }
    }
}

impl<'a> RuleDeliveries<'a> {
    fn new(id: RuleId, owned: &'a UserData) -> RuleDeliveries<'a> {
        RuleDeliveries {
            sender: match id {
                RuleId::WATCHLIST => "watchlist".to_owned(),
                RuleId::DIGEST => "digest".to_owned(),
                id => id.to_string(),
            },
            deliveries: owned.deliveries(id).map(DeliveryResponse::new).collect(),
        }
    }
}
