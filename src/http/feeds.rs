//! Feeds: the names of a saved search, an alert rule or the watchlist for readers (Atom) and calendars (iCalendar), at
//! secret addresses, and the endpoints that create these addresses (`data/docs/feeds.md`).

mod atom;
mod calendar;

use std::io::{self, Write};
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{Caller, Feed, FeedOf, Token, UserData};
use crate::body::{JsonInteger, PostBody};
use crate::edge::csv::cell;
use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::edge::home::Home;
use crate::index::Index;
use crate::index::filter::{AsOf, Counting, DropFilter, RuleQuery, Sort, SortKey, View};
use crate::params::path_id;
use crate::query::params::Params;
use crate::response;
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::watchlist::{WatchRow, WatchSort, sorted_rows};
use crate::service::work;
use crate::telemetry::current;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::{RuleId, SearchId};
use crate::vocab::name::to_unicode;
use crate::vocab::release_time::ReleaseTime;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

/// Maximum names of a feed; readers store older entries themselves.
const NAMES_MAX: usize = 100;
/// Seconds that a client may reuse a feed.
const REUSE: &str = "private, max-age=900";
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// A feed to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = FeedBody, example = json!({"searchId": 1234}))]
pub struct FeedRequest {
    /// The saved search.
    #[schema(value_type = Option<u64>, minimum = 1)]
    search_id: Option<JsonInteger>,
    /// The alert rule. Without a search or a rule, the watchlist.
    #[schema(value_type = Option<u64>, minimum = 1)]
    rule_id: Option<JsonInteger>,
}

/// Converts a number to an ID; 0 if it cannot be one.
fn id(JsonInteger(number): JsonInteger) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Determines the source of the feed's names.
///
/// # Errors
/// 404 for a number that cannot be an ID, 400 if both a search and a rule are given.
fn feed_of(
    search: Option<u64>,
    rule: Option<u64>,
    rule_member: &'static str,
) -> Result<FeedOf, ApiError> {
    let of = match (search, rule) {
        (None, None) => Some(FeedOf::Watchlist),
        (Some(id), None) => SearchId::new(id).map(FeedOf::Search),
        (None, Some(id)) => RuleId::new(id).map(FeedOf::Rule),
        (Some(_), Some(_)) => {
            let what = "must be absent if a search is given: a feed has the names of one of them";
            return Err(ApiError::parameter(rule_member, what));
        }
    };
    of.ok_or(ApiError::NotFound)
}

/// Returns the saved search or the alert rule of a feed; the feed of the watchlist has neither.
fn ids_of(of: FeedOf) -> (Option<SearchId>, Option<RuleId>) {
    match of {
        FeedOf::Watchlist => (None, None),
        FeedOf::Search(id) => (Some(id), None),
        FeedOf::Rule(id) => (None, Some(id)),
    }
}

/// A feed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Feed)]
pub struct FeedResponse {
    /// The saved search. The feed of the watchlist has neither a search nor a rule.
    #[schema(value_type = Option<u64>, required)]
    search_id: Option<SearchId>,
    /// The alert rule.
    #[schema(value_type = Option<u64>, required)]
    rule_id: Option<RuleId>,
    #[schema(value_type = String, format = Date)]
    created_on: Day,
}

impl FeedResponse {
    pub fn new(feed: &Feed) -> FeedResponse {
        let (search_id, rule_id) = ids_of(feed.of);
        FeedResponse { search_id, rule_id, created_on: feed.created }
    }

    /// Writes the feed as a line of CSV.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let FeedResponse { search_id, rule_id, created_on } = self;
        write!(out, "{},{},{created_on}\r\n", cell(*search_id), cell(*rule_id))
    }
}

/// The feeds of the account.
#[derive(Serialize, ToSchema)]
#[schema(as = Feeds)]
pub struct FeedList {
    #[schema(value_type = u32)]
    count: usize,
    feeds: Vec<FeedResponse>,
}

/// Secret addresses of a feed, shown once. Anyone who has one can read the names.
#[derive(Serialize, ToSchema)]
#[schema(as = FeedAddresses)]
pub struct FeedAddresses {
    /// Path of the Atom feed, for readers.
    pub atom: String,
    /// Path of the calendar, for programs that read iCalendar.
    pub calendar: String,
}

impl FeedAddresses {
    /// Builds the addresses on a server below the path `base`.
    pub fn new(base: &str, token: &Token) -> FeedAddresses {
        let path = |kind| format!("{base}/feeds/{}.{kind}", token.reveal());
        FeedAddresses { atom: path("atom"), calendar: path("ics") }
    }
}

/// `GET /api/v1/feeds`: the caller's feeds, without their addresses.
pub async fn list_feeds(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Json<FeedList> {
    let feeds: Vec<_> = app.store.feeds(&caller).iter().map(FeedResponse::new).collect();
    Json(FeedList { count: feeds.len(), feeds })
}

/// `POST /api/v1/feeds`: creates a feed, or replaces its address.
pub async fn make_feed(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PostBody { body, post }: PostBody<FeedRequest>,
) -> Result<Response, Refusal> {
    let of = feed_of(body.search_id.map(id), body.rule_id.map(id), "ruleId")?;
    let draft = app.store.draft_feed(&caller, of, post).await?;
    let receipt = |token: &Token| {
        response::receipt(StatusCode::CREATED, &FeedAddresses::new(app.site.base(), token))
    };
    Ok(response::not_stored(response::posted(draft.respond(receipt).await?)))
}

/// A feed that was revoked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RevokedFeed)]
pub struct RevokedFeed {
    /// The saved search. The feed of the watchlist has neither a search nor a rule.
    #[schema(value_type = Option<u64>, required)]
    search_id: Option<SearchId>,
    /// The alert rule.
    #[schema(value_type = Option<u64>, required)]
    rule_id: Option<RuleId>,
    removed: bool,
}

/// `DELETE /api/v1/feeds?search_id=&rule_id=`: revokes the address of a feed.
pub async fn revoke_feed(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Json<RevokedFeed>, Refusal> {
    let params = Params::new(query.as_deref());
    let of = feed_of(params.one("search_id")?, params.one("rule_id")?, "rule_id")?;
    app.store.revoke_feed(&caller, of).await?;
    let (search_id, rule_id) = ids_of(of);
    Ok(Json(RevokedFeed { search_id, rule_id, removed: true }))
}

/// Format of a feed, selected by the extension of its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedFormat {
    Atom,
    Calendar,
}

/// A name in a feed.
struct FeedEntry {
    /// Canonical name; `unicode` is its Unicode form.
    name: String,
    unicode: String,
    dqs: Option<Dqs>,
    dropped: Option<Day>,
    /// `None` for a name that a list reported as registered again.
    stage: Option<Stage>,
    release: Day,
    time: ReleaseTime,
    /// Whether the registry or a list has reported, since the owner began to watch the name, that
    /// it was renewed or registered again.
    is_gone: bool,
    /// Explanation of its score.
    why: String,
    /// The owner's note.
    note: String,
    /// When it entered the feed.
    since: UnixMs,
}

impl FeedEntry {
    /// Returns the text of the entry: `words`, then the explanation of the score, then the note.
    fn text(&self, words: &str) -> String {
        let gone = if self.is_gone { "Renewed or registered again." } else { "" };
        let parts = [gone, words, &self.why, &self.note].map(str::trim);
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }
}

/// Content of a feed, used by the writers of both formats.
struct FeedContent<'a> {
    /// Unique ID, which stays the same as long as the feed has its address.
    id: &'a str,
    title: &'a str,
    /// Base URL of the pages.
    home: &'a str,
    /// Host of the base URL, for IDs that never change.
    host: &'a str,
    /// URL of this feed in its format.
    own: &'a str,
    /// Path of the page that shows the same names.
    shown_at: &'a str,
    entries: &'a [FeedEntry],
    /// Time of the data.
    updated: UnixMs,
}

/// `GET /feeds/{address}`: the names. The secret address is the only credential.
pub async fn read_feed(
    State(app): State<App>,
    address: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let (token, form) = path_id(address, parse)?;
    let unknown = || if app.store.was_caught_up() { ApiError::NotFound } else { ApiError::Unread };
    let (caller, of, digest) = app.store.feed(&token).ok_or_else(unknown)?;
    current::set_account(caller.account.0);
    let _running = app.limits.feeds.begin(caller.account, digest)?;
    let (index, as_of) = (app.live.current(), app.as_of(Now(app.clock.now())));
    let owned = app.store.user_data(&caller);
    let Home(home) = Home::of(&app, request.extensions());
    let path = request.uri().path().to_owned();
    let is_atom = form == FeedFormat::Atom;
    let served = Arc::clone(&index);
    let app = app.clone();
    let body = work::scan(move || {
        let (title, entries) = entries(&app, &owned, &served, of, as_of)?;
        let updated = UnixMs::from_instant(served.manifest().created);
        let host = home.split_once("://").map_or(home.as_str(), |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or_default();
        let own = format!("{home}{path}");
        let (id, entries) = (digest.public_id(), &entries);
        let shown_at = match of {
            FeedOf::Watchlist => "/watchlist".to_owned(),
            FeedOf::Search(id) => format!("/searches/{id}"),
            FeedOf::Rule(id) => format!("/alerts/{id}"),
        };
        let page = FeedContent {
            id: &id,
            title: &title,
            home: &home,
            host,
            own: &own,
            shown_at: &shown_at,
            entries,
            updated,
        };
        Ok(if is_atom { atom::write(&page) } else { calendar::write(&page) })
    })
    .await?;
    // The tag is computed from the text. Events of a calendar also contain the time of the
    // generation.
    let tag = Tag::for_bytes(body.as_bytes());
    let mut response = match tag.not_modified(request.headers()) {
        Some(response) => response,
        None => {
            let kind = if is_atom { atom::KIND } else { calendar::KIND };
            tag.on(([(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response())
        }
    };
    for (name, value) in
        [(CACHE_CONTROL, REUSE), (REFERRER_POLICY, "no-referrer"), (ROBOTS, "noindex")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

fn parse(address: &str) -> Option<(Token, FeedFormat)> {
    let (token, form) = address.rsplit_once('.')?;
    let form = match form {
        "atom" => FeedFormat::Atom,
        "ics" => FeedFormat::Calendar,
        _ => return None,
    };
    Some((Token::parse(token)?, form))
}

/// Returns the title and the names of a feed.
fn entries(
    app: &App,
    owned: &UserData,
    index: &Index,
    of: FeedOf,
    as_of: AsOf,
) -> Result<(String, Vec<FeedEntry>), ApiError> {
    match of {
        FeedOf::Watchlist => {
            let rows = sorted_rows(owned, index, &app.store, as_of, WatchSort::Release);
            let entries = rows.iter().filter_map(|row| watched(row, index, as_of.today));
            Ok(("dropdex: watchlist".to_owned(), entries.take(NAMES_MAX).collect()))
        }
        FeedOf::Search(id) => {
            let search = owned.search(id).ok_or(ApiError::NotFound)?;
            let filter = search.conditions.drops(as_of.today)?;
            Ok((format!("dropdex: {}", search.name), newest(app, index, filter, as_of)?))
        }
        FeedOf::Rule(id) => {
            let rule = owned.rule(id).ok_or(ApiError::NotFound)?;
            let RuleQuery { common, contains, stages } = rule.filter.rule(as_of.today)?;
            let (view, sort) = (View::Stages(stages), Sort::natural(SortKey::Listed));
            let filter = DropFilter {
                common,
                view,
                contains,
                sort,
                sort_fact: None,
                after: None,
                limit: 0,
                offset: 0,
            };
            Ok((format!("dropdex: {}", rule.name), newest(app, index, filter, as_of)?))
        }
    }
}

/// Returns the names that match a filter, newest first.
fn newest(
    app: &App,
    index: &Index,
    mut filter: DropFilter,
    as_of: AsOf,
) -> Result<Vec<FeedEntry>, ApiError> {
    app.apply_facts(index, &mut filter.common, as_of.today)?;
    filter.sort = Sort::natural(SortKey::Listed);
    filter.limit = NAMES_MAX as u32;
    let mut entries = Vec::new();
    index.drops(&filter, as_of, Counting::None)?.for_each(|row| {
        entries.push(FeedEntry {
            name: row.name.to_owned(),
            unicode: to_unicode(row.name).into_owned(),
            dqs: Some(row.dqs),
            dropped: Some(row.drop_date),
            stage: Some(row.stage),
            release: row.release_date,
            time: ReleaseTime {
                at: row.release_at,
                certainty: row.release_certainty,
                window_minutes: row.release_window_minutes,
            },
            is_gone: false,
            why: row.explanation.to_owned(),
            note: String::new(),
            since: row.listed_at,
        });
    });
    Ok(entries)
}

/// Returns the entry of a watched name, unless its release is long past.
fn watched(row: &WatchRow, index: &Index, today: Day) -> Option<FeedEntry> {
    const DAYS_AFTER: i32 = 30;
    let (stage, release, is_gone) = (row.stage(), row.latest_release()?, row.is_renewed());
    // A name that was registered again before it was watched is not about to drop.
    let is_shown = (stage.is_some() || is_gone) && release.day.plus(DAYS_AFTER) >= today;
    is_shown.then(|| FeedEntry {
        name: row.name().as_str().to_owned(),
        unicode: row.name().unicode().to_string(),
        dqs: row.dqs(),
        dropped: row.latest_drop(),
        stage,
        release: release.day,
        time: ReleaseTime::of(row.name().tld(), release),
        is_gone,
        why: index.explanation(row.name()).unwrap_or_default(),
        note: row.details().note.as_deref().unwrap_or_default().to_owned(),
        since: row.added_at(),
    })
}
