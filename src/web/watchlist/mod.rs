//! `/watchlist`: the watched names with their countdown, registry state and the owner's notes. Names are
//! added one by one from any page, or pasted as a list or a CSV file. Notes of several names are changed
//! here, and of a single name on its dossier.

mod page;
mod paste;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::Markup;

use crate::Web;
use crate::accounts::{EntryAlerts, Outcome, Tags, WatchPatch};
use crate::components::{grouped, query};
use crate::confirm::Asking;
use crate::edge::error::Refusal;
use crate::error::PageError;
use crate::field::FormError;
use crate::form::{Fields, Form, LargeForm};
use crate::fragment::{Wanted, wanted};
use crate::index::EarlierDrop;
use crate::index::query::rows::Lifecycle;
use crate::layout::NavItem;
use crate::logged_in::LoggedIn;
use crate::next::local_path;
use crate::notice::Notice;
use crate::owned::{ROW_LIMITS, ROWS};
use crate::query::params::{Paging, Params};
use crate::service::checks;
use crate::service::error::ApiError;
use crate::service::watch_alerts;
use crate::service::watchlist::{
    self, Summary, WatchFilter, WatchQuery, WatchRow, WatchSort, sorted_rows, usable_channels,
    watch_all, watches_cost_us,
};
use crate::service::work;
use crate::undo::Acting;
use crate::vocab::day::Day;
use crate::vocab::limits::WATCHES_PASTED_MAX;
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::number::DecimalMark;
use crate::vocab::stage::Stage;
use crate::vocab::tag::Tag;

/// Path of the page.
const PATH: &str = "/watchlist";

const ADDED: Notice = Notice::new("added", "Name added to your watchlist.");
const THERE: Notice = Notice::new("there", "This name is already on your watchlist.");
const REMOVED: Notice = Notice::new("removed", "Removed from your watchlist.");
const SAVED: Notice = Notice::new("saved", "Saved.");
const UNSELECTED: Notice = Notice::new("unselected", "Select the names to change first.");
const NOTICES: [Notice; 5] = [ADDED, THERE, REMOVED, SAVED, UNSELECTED];
/// Label of the maximum bid in forms and their errors.
pub(super) const MAX_BID_LABEL: &str = "Max bid (USD)";
/// Maximum tags and venues shown as filters.
const CHIPS_MAX: usize = 12;

/// Routes of the watchlist.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(show))
        .route("/watchlist/add", post(add))
        .route("/watchlist/notes", post(save_selected))
        .route("/watchlist/entry", post(save_one))
        .route("/watchlist/bell", post(ring))
        .route("/unwatch", post(unwatch))
}

/// A page of a watchlist.
struct WatchlistPage {
    filter: WatchFilter,
    sort: WatchSort,
    page: Paging,
    summary: Summary,
    totals: WatchlistTotals,
    /// Number of matching rows on all pages.
    matches: usize,
    /// The most frequent tags and venues of the whole list.
    tags: Vec<(Tag, u64)>,
    venues: Vec<(String, u64)>,
    /// Suggestions for the venue field.
    venue_choices: Vec<String>,
    /// Groups of the matching rows, in the default order.
    groups: Vec<Group>,
    unchecked: Unchecked,
    /// Maximum external names of the plan.
    external_max: u32,
    /// Rows of the page.
    rows: Vec<Listed>,
}

/// A row of the page.
struct Listed {
    watched: WatchRow,
    /// Whether the registry of the name supports checks.
    is_checkable: bool,
    drop: Option<Lifecycle>,
    /// Earlier drops, newest first.
    earlier: Vec<EarlierDrop>,
}

/// Matching names that registries can be asked about and were not.
struct Unchecked {
    count: usize,
    /// The first of them, as many as one request checks.
    next: Vec<DomainName>,
    /// Whether this server checks names.
    is_possible: bool,
}

/// Tasks of the whole list.
#[derive(Default)]
struct WatchlistTotals {
    /// Number of names that drop tomorrow.
    tomorrow: u64,
    /// Sum of the maximum bids in cents.
    bids: u64,
    /// Number of names that drop within a week and have no bid.
    without_bid: u64,
    /// Number of names without a bid.
    no_bid: u64,
}

/// Rows of one stage.
struct Group {
    stage: Option<Stage>,
    word: &'static str,
    names: usize,
    /// Sum of the maximum bids in cents.
    bids: u64,
}

impl Group {
    fn of(row: &WatchRow) -> (Option<Stage>, &'static str) {
        let stage = row.stage();
        let word = match stage {
            Some(Stage::Catchable) => "Just dropped",
            Some(Stage::PendingDelete) => "Drops within days",
            Some(Stage::Redemption) => "In redemption",
            Some(Stage::Released) => "Dropped earlier",
            None => "Without a drop",
        };
        (stage, word)
    }
}

impl WatchlistTotals {
    fn new(rows: &[WatchRow], today: Day) -> WatchlistTotals {
        let mut totals = WatchlistTotals::default();
        for row in rows {
            let bid = row.details().max_bid;
            let days = row.release().map(|release| release.day.days_since(today));
            totals.tomorrow += u64::from(days == Some(1));
            totals.bids += bid.map_or(0, Usd::cents);
            totals.no_bid += u64::from(bid.is_none());
            let is_soon = days.is_some_and(|days| (0..=7).contains(&days));
            totals.without_bid += u64::from(is_soon && bid.is_none());
        }
        totals
    }
}

impl WatchlistPage {
    /// Appends this filter, the sort order and the offset to `path`.
    fn address(&self, path: &str, sort: WatchSort, offset: u32) -> String {
        let sort = if sort == WatchSort::default() { "" } else { sort.as_str() };
        let tags: Vec<_> = self.filter.tags.iter().map(Tag::as_str).collect();
        let stages: Vec<_> = self.filter.stages.iter().map(|stage| stage.as_str()).collect();
        let parameters = [
            ("tag", tags.join(",")),
            ("venue", self.filter.venue.clone().unwrap_or_default()),
            ("bid", self.filter.bid.map(|bid| bid.as_str().to_owned()).unwrap_or_default()),
            ("stage", stages.join(",")),
            ("sort", sort.to_owned()),
            ("offset", query::offset(offset)),
        ];
        query::with(&parameters.each_ref().map(|(name, value)| (*name, value.as_str())), path)
    }

    /// Returns the group that starts with the row at `place`; `None` for later rows of a group, and
    /// if the list is in another order.
    fn begins_group(&self, place: usize) -> Option<&Group> {
        let stage = self.rows[place].watched.stage();
        let is_first = place == 0 || self.rows[place - 1].watched.stage() != stage;
        let is_grouped = self.sort == WatchSort::Lifecycle && is_first;
        self.groups.iter().find(|group| is_grouped && group.stage == stage)
    }
}

/// Returns the most frequent of the values, in descending order of frequency.
fn frequent<T: Ord>(values: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_insert(0) += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.truncate(CHIPS_MAX);
    counts
}

/// A pasted list, with its result.
#[derive(Default)]
struct Pasted {
    /// Content of the text field.
    text: String,
    error: Option<FormError>,
    report: Option<Report>,
}

/// Result of adding a list.
struct Report {
    added: usize,
    /// Number of names already on the watchlist.
    there: usize,
    /// Rejected items, in the order of their lines.
    refused: Vec<paste::Rejected>,
    /// The header line of a CSV file.
    header: Option<String>,
    /// Unused columns of the text.
    unused: Vec<String>,
    /// The query of a page that offers to undo it.
    action: Option<String>,
}

/// `GET /watchlist`.
async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let asked = WatchQuery::parse(Params::new(query.as_deref()), ROW_LIMITS)?;
    let list = list(&web, &member, asked).await?;
    Ok(page::show(&member, &list, query.as_deref(), &Pasted::default()))
}

/// `POST /watchlist/add`: adds one name or a pasted list.
async fn add(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let pasted = match paste(&web, &member, &fields).await? {
        Ok(pasted) => pasted,
        Err(question) => return Ok(question.into_response()),
    };
    let action = pasted.report.as_ref().and_then(|report| report.action.as_deref());
    if let Some(notice) = pasted.report.as_ref().and_then(Report::notice) {
        let action = action.map(|action| format!("&{action}")).unwrap_or_default();
        return Ok(Redirect::to(&format!("{PATH}?notice={}{action}", notice.code)).into_response());
    }
    let page = Paging { limit: ROWS, offset: 0 };
    let newest = WatchQuery { filter: WatchFilter::default(), sort: WatchSort::Added, page };
    let list = list(&web, &member, newest).await?;
    let page = page::show(&member, &list, action, &pasted);
    Ok(match pasted.error {
        Some(error) => error.into_page(page),
        None => page.into_response(),
    })
}

/// `POST /unwatch`: removes the name in the button `only`, or all selected names.
async fn unwatch(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let field = if fields.text("only").is_empty() { "domain" } else { "only" };
    let names = names(&fields, field)?;
    // Names that are not on the list are ignored.
    let acting = Acting::new(&web, &member)?;
    let removed = web.app.store.remove_watches(&acting.caller, names).await?;
    if wanted(&headers) != Wanted::Page {
        return Ok(acting.no_content());
    }
    let next = next(&fields);
    let is_list = next.split('?').next() == Some(PATH);
    let notice = (removed > 0 && is_list).then_some(REMOVED.parameter());
    Ok(acting.redirect(next, notice.as_slice()))
}

/// Parses the names in a field of a form.
fn names(fields: &Fields, field: &str) -> Result<Vec<DomainName>, PageError> {
    fields.all(field).map(parse_name).collect()
}

/// `POST /watchlist/notes`: adds tags to the selected names and sets their bid, venue and note. Empty fields
/// change nothing, and values that are already set are replaced only after a question.
async fn save_selected(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let names = names(&fields, "domain")?;
    let mut patch = added_notes(&fields)?;
    let changes = names.iter().map(|name| (name, &patch));
    let asking = asking(&member, NavItem::Watchlist, "/watchlist/notes", &fields);
    patch.keeps = match asking.about_changes(&web.user_data(&member), changes) {
        Ok(keeps) => keeps,
        Err(question) => return Ok(question.into_response()),
    };
    let notice = if names.is_empty() { UNSELECTED } else { SAVED };
    let acting = Acting::new(&web, &member)?;
    web.app.store.change_watches(&acting.caller, names, &patch).await.map_err(ApiError::from)?;
    Ok(acting.redirect(next(&fields), &[notice.parameter()]))
}

/// Reads the notes for several names. Empty fields change nothing, and tags are added.
pub(super) fn added_notes(fields: &Fields) -> Result<WatchPatch, PageError> {
    let filled = |name| Some(fields.text(name).trim()).filter(|text: &&str| !text.is_empty());
    Ok(WatchPatch {
        // Browsers submit line breaks as CRLF.
        note: filled("note").map(|note| Some(note.replace("\r\n", "\n"))),
        tags: filled("tags").map(parse_tags).transpose()?.map(Tags::Add),
        max_bid: filled("bid").map(parse_bid).transpose()?.map(Some),
        venue: filled("venue").map(|venue| Some(venue.to_owned())),
        ..WatchPatch::default()
    })
}

/// Describes a form with notes, which may have to be confirmed.
pub(super) fn asking<'a>(
    member: &'a LoggedIn,
    item: NavItem,
    path: &'a str,
    fields: &'a Fields,
) -> Asking<'a> {
    Asking {
        member,
        item,
        path,
        back: next(fields),
        fields,
        prices: &[("bid", "Max bid")],
        currency: None,
    }
}

/// `POST /watchlist/entry`: adds a name or replaces its notes.
async fn save_one(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let filled = |name| Some(fields.text(name).trim()).filter(|text: &&str| !text.is_empty());
    let patch = WatchPatch {
        // Browsers submit line breaks as CRLF.
        note: Some(filled("note").map(|note| note.replace("\r\n", "\n"))),
        tags: Some(Tags::Replace(parse_tags(fields.text("tags"))?)),
        max_bid: Some(filled("bid").map(parse_bid).transpose()?),
        venue: Some(filled("venue").map(str::to_owned)),
        ..WatchPatch::default()
    };
    let name = parse_name(fields.text("domain"))?;
    let asking = asking(&member, NavItem::Watchlist, "/watchlist/entry", &fields);
    if let Some(question) = asking.about_prices() {
        return Ok(question.into_response());
    }
    watchlist::watch(&web.app, &member.caller, name, patch, member.viewer.now).await?;
    Ok(Redirect::to(next(&fields)).into_response())
}

/// `POST /watchlist/bell`: changes the alert settings of names. The buttons `mute` and `hear` each name one
/// domain; the form on a dossier contains settings for its `domain`.
async fn ring(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let muted = || Some(EntryAlerts::default());
    let (field, alerts) = match (fields.text("mute"), fields.text("hear"), fields.text("choice")) {
        ("", "", "own") => {
            let all = |name| fields.filled(name).into_iter().map(str::to_owned).collect();
            let owned = web.user_data(&member);
            let channels = usable_channels(&web.app, &member.caller, &owned, member.viewer.now);
            ("domain", Some(watch_alerts::entry(all("kind"), all("channel"), channels)?))
        }
        ("", "", "mute") => ("domain", muted()),
        ("", "", _) => ("domain", None),
        ("", ..) => ("hear", None),
        _ => ("mute", muted()),
    };
    let patch = WatchPatch { alerts: Some(alerts), ..WatchPatch::default() };
    let names = names(&fields, field)?;
    web.app.store.change_watches(&member.caller, names, &patch).await.map_err(ApiError::from)?;
    Ok(done(&headers, &fields))
}

pub(super) fn parse_tags(text: &str) -> Result<Vec<Tag>, PageError> {
    paste::tags(text).map_err(|what| ApiError::parameter("tags", what).into())
}

pub(super) fn parse_bid(text: &str) -> Result<Usd, PageError> {
    let bid = Usd::from_text(text, DecimalMark::Either);
    bid.map_err(|err| ApiError::parameter(MAX_BID_LABEL, err).into())
}

pub(super) fn parse_name(text: &str) -> Result<DomainName, PageError> {
    DomainName::parse(text).map_err(|err| ApiError::parameter("domain", err).into())
}

/// Redirects to the page of the form. Scripts get 204.
fn done(headers: &HeaderMap, fields: &Fields) -> Response {
    match wanted(headers) {
        Wanted::Page => Redirect::to(next(fields)).into_response(),
        _ => StatusCode::NO_CONTENT.into_response(),
    }
}

pub(super) fn next(fields: &Fields) -> &str {
    local_path(Some(fields.text("next")))
}

/// Reads the current rows of a page of the watchlist.
async fn list(web: &Web, member: &LoggedIn, asked: WatchQuery) -> Result<WatchlistPage, PageError> {
    let WatchQuery { filter, sort, page } = asked;
    let app = &web.app;
    let owned = web.user_data(member);
    let (index, as_of) = (app.live.current(), app.as_of(member.viewer.now));
    let (bootstrap, store) = (app.reach.bootstrap.current(), app.store.clone());
    let is_possible = app.reach.checks.is_some();
    let external_max = app.store.limits(&member.caller).external_names;
    let list = work::run(watches_cost_us(&owned).saturating_mul(2), move || {
        let mut rows = sorted_rows(&owned, &index, &store, as_of, sort);
        let summary = Summary::new(&rows, &bootstrap);
        let totals = WatchlistTotals::new(&rows, as_of.today);
        let tags = frequent(rows.iter().flat_map(|row| row.details().tags.iter().cloned()));
        let venues = frequent(
            rows.iter().filter_map(|row| Some(row.details().venue.as_deref()?.to_owned())),
        );
        let venue_choices = venues.iter().map(|(venue, _)| venue.clone()).collect();
        rows.retain(|row| filter.passes(row));
        let mut groups: Vec<Group> = Vec::new();
        for row in &rows {
            let (stage, word) = Group::of(row);
            let bid = row.details().max_bid.map_or(0, Usd::cents);
            match groups.iter_mut().find(|group| group.stage == stage) {
                Some(group) => (group.names, group.bids) = (group.names + 1, group.bids + bid),
                None => groups.push(Group { stage, word, names: 1, bids: bid }),
            }
        }
        let is_unchecked = |row: &&WatchRow| {
            row.seen().is_none() && !row.is_renewed() && bootstrap.is_checkable(row.name())
        };
        let names = || rows.iter().filter(is_unchecked).map(|row| row.name().clone());
        let next = names().take(checks::NAMES_MAX).collect();
        let unchecked = Unchecked { count: names().count(), next, is_possible };
        let matches = rows.len();
        let listed = |watched: WatchRow| {
            let is_checkable = bootstrap.is_checkable(watched.name());
            let (drop, earlier) = index.history(watched.name(), as_of);
            Listed { watched, is_checkable, drop, earlier }
        };
        let rows = page.rows(rows.into_iter()).map(listed).collect();
        Ok(WatchlistPage {
            filter,
            sort,
            page,
            summary,
            totals,
            matches,
            tags,
            venues,
            venue_choices,
            groups,
            unchecked,
            external_max,
            rows,
        })
    });
    Ok(list.await?)
}

/// Adds the names in a text to the watchlist. The inner error is a page that asks before notes are
/// replaced.
async fn paste(
    web: &Web,
    member: &LoggedIn,
    fields: &Fields,
) -> Result<Result<Pasted, Markup>, PageError> {
    let text = fields.text("names");
    let refused = |why: &str| {
        let error = FormError::with_status(StatusCode::BAD_REQUEST, Some("names"), why);
        Ok(Pasted { text: text.to_owned(), error: Some(error), report: None })
    };
    let sent = paste::Pasted::parse(text);
    if let Some(why) = &sent.refusal {
        return Ok(refused(why));
    }
    if sent.items == 0 {
        return Ok(refused("Enter at least one name."));
    }
    if sent.items > WATCHES_PASTED_MAX {
        let (count, most) = (grouped(sent.items as u64), grouped(WATCHES_PASTED_MAX as u64));
        return Ok(refused(&format!("You entered {count} names. Add at most {most} at a time.")));
    }
    let paste::Pasted { names, rejected: refused, header, unused, .. } = sent;
    let mut report = Report { added: 0, there: 0, refused, header, unused, action: None };
    let (mut names, sent): (Vec<_>, Vec<_>) =
        names.into_iter().map(|(sent, name, patch)| ((name, patch), sent)).unzip();
    let asking =
        Asking { back: PATH, ..asking(member, NavItem::Watchlist, "/watchlist/add", fields) };
    let changes = names.iter().map(|(name, patch)| (name, patch));
    match asking.about_changes(&web.user_data(member), changes) {
        Ok(keeps) => names.iter_mut().for_each(|(_, patch)| patch.keeps = keeps),
        Err(question) => return Ok(Err(question)),
    }
    let acting = Acting::new(web, member)?;
    let outcomes = watch_all(&web.app, &acting.caller, names, member.viewer.now).await?;
    for (sent, outcome) in sent.into_iter().zip(outcomes) {
        match outcome {
            Ok(Outcome::Added) => report.added += 1,
            Ok(Outcome::AlreadyThere) => report.there += 1,
            Err(err) => {
                let why = Refusal::from(ApiError::from(err)).message().to_owned();
                report.refused.push(paste::Rejected { sent, why });
            }
        }
    }
    report.refused.sort_by_key(|it| it.sent.line);
    report.action = acting.query();
    Ok(Ok(Pasted::reported(report)))
}

impl Pasted {
    /// Renders the result page of a list. Rejected items stay in the field for correction.
    fn reported(report: Report) -> Pasted {
        let header = report.header.as_deref().filter(|_| !report.refused.is_empty());
        let rows = report.refused.iter().map(|it| it.sent.text.as_str());
        let texts: Vec<_> = header.into_iter().chain(rows).collect();
        let nothing = "No names were added. See the reasons below.";
        let error = (report.added + report.there == 0)
            .then(|| FormError::with_status(StatusCode::BAD_REQUEST, Some("names"), nothing));
        Pasted { text: texts.join("\n"), error, report: Some(report) }
    }
}

impl Report {
    /// Notice for a single name that is now on the list.
    fn notice(&self) -> Option<Notice> {
        match self {
            Report { unused, .. } if !unused.is_empty() => None,
            Report { added: 1, there: 0, refused, .. } if refused.is_empty() => Some(ADDED),
            Report { added: 0, there: 1, refused, .. } if refused.is_empty() => Some(THERE),
            _ => None,
        }
    }
}
