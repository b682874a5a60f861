//! `/watchlist`: the watched names with their stage and registry status. Names are added one by one from
//! any page or pasted as a list, and removed.

mod page;
mod paste;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::Markup;

use crate::accounts::Outcome;
use crate::http::error::{ApiError, Refusal};
use crate::http::params::{Page, Params};
use crate::http::watchlist::{
    Summary, WatchQuery, WatchRow, WatchSort, sorted_rows, watch_all, watches_cost_us,
};
use crate::http::work;
use crate::vocab::day::Day;
use crate::vocab::limits::WATCHES_PASTED_MAX;
use crate::vocab::name::DomainName;
use crate::web::Web;
use crate::web::components::grouped;
use crate::web::error::{PageError, sentence};
use crate::web::field::FormError;
use crate::web::form::{Fields, Form, LargeForm};
use crate::web::fragment::{Wanted, wanted};
use crate::web::logged_in::LoggedIn;
use crate::web::next::local_path;
use crate::web::notice::Notice;
use crate::web::owned::{ROW_LIMITS, ROWS};

/// Where the page is.
const PATH: &str = "/watchlist";

const ADDED: Notice = Notice::new("added", "Name added to your watchlist.");
const THERE: Notice = Notice::new("there", "This name is already on your watchlist.");
const REMOVED: Notice = Notice::new("removed", "Removed from your watchlist.");
const NOTICES: [Notice; 3] = [ADDED, THERE, REMOVED];

/// The routes of the watchlist.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(show))
        .route("/watchlist/add", post(add))
        .route("/watch", post(watch))
        .route("/unwatch", post(unwatch))
}

/// A page of a watchlist.
struct List {
    sort: WatchSort,
    page: Page,
    today: Day,
    summary: Summary,
    /// Maximum external names of the plan.
    external_max: u32,
    /// Rows of the page, and whether their registry supports checks.
    rows: Vec<(WatchRow, bool)>,
}

/// A pasted list and its result.
#[derive(Default)]
struct Pasted {
    /// Content of the field.
    text: String,
    error: Option<FormError>,
    report: Option<Report>,
}

/// Result of adding a list.
struct Report {
    added: usize,
    /// Already on the watchlist.
    there: usize,
    /// Rejected items as sent, and the reason.
    refused: Vec<(String, String)>,
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
    let pasted = paste(&web, &member, fields.text("names")).await?;
    if let Some(notice) = pasted.report.as_ref().and_then(Report::notice) {
        return Ok(notice.at(PATH).into_response());
    }
    let newest = WatchQuery { sort: WatchSort::Added, page: Page { limit: ROWS, offset: 0 } };
    let list = list(&web, &member, newest).await?;
    let page = page::show(&member, &list, None, &pasted);
    Ok(match pasted.error {
        Some(error) => error.into_page(page),
        None => page.into_response(),
    })
}

/// `POST /watch`: adds one name from any page. Scripts get 204.
async fn watch(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let name = parse_name(fields.text("domain"))?;
    let mut outcomes = watch_all(&web.app, &member.caller, vec![name], member.viewer.now).await?;
    outcomes.pop().expect("one name has one outcome")?;
    Ok(done(&headers, &fields))
}

/// `POST /unwatch`: removes the name of the button `only`, or all selected names.
async fn unwatch(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let field = if fields.text("only").is_empty() { "domain" } else { "only" };
    let names = fields.all(field).map(parse_name).collect::<Result<Vec<_>, _>>()?;
    // Names that are not on the list are ignored.
    let removed = web.app.store.remove_watches(&member.caller, names).await?;
    if removed > 0 && next(&fields) == PATH && wanted(&headers) == Wanted::Page {
        return Ok(REMOVED.at(PATH).into_response());
    }
    Ok(done(&headers, &fields))
}

fn parse_name(text: &str) -> Result<DomainName, PageError> {
    DomainName::parse(text).map_err(|err| ApiError::parameter("domain", err).into())
}

/// Redirects to the page of the form. Scripts get 204.
fn done(headers: &HeaderMap, fields: &Fields) -> Response {
    match wanted(headers) {
        Wanted::Page => Redirect::to(next(fields)).into_response(),
        _ => StatusCode::NO_CONTENT.into_response(),
    }
}

fn next(fields: &Fields) -> &str {
    local_path(Some(fields.text("next")))
}

/// Reads the current rows of a page of the watchlist.
async fn list(web: &Web, member: &LoggedIn, asked: WatchQuery) -> Result<List, PageError> {
    let WatchQuery { sort, page } = asked;
    let app = &web.app;
    let owned = web.user_data(member);
    let (index, as_of) = (app.live.current(), app.as_of(member.viewer.now));
    let (bootstrap, store) = (app.bootstrap.current(), app.store.clone());
    let external_max = app.store.limits(&member.caller).external_names;
    let list = work::run(watches_cost_us(&owned), move || {
        let rows = sorted_rows(&owned, &index, &store, as_of, sort);
        let summary = Summary::new(&rows, &bootstrap);
        let with_check = |row: WatchRow| {
            let is_checkable = bootstrap.is_checkable(row.name());
            (row, is_checkable)
        };
        let rows = page.rows(rows.into_iter()).map(with_check).collect();
        Ok(List { sort, page, today: as_of.today, summary, external_max, rows })
    });
    Ok(list.await?)
}

/// Adds the names in a text to the watchlist.
async fn paste(web: &Web, member: &LoggedIn, text: &str) -> Result<Pasted, PageError> {
    let refused = |why: &str| Pasted {
        text: text.to_owned(),
        error: Some(FormError::with_status(StatusCode::BAD_REQUEST, Some("names"), why)),
        report: None,
    };
    let count = paste::count(text);
    if count == 0 {
        return Ok(refused("Enter at least one name."));
    }
    if count > WATCHES_PASTED_MAX {
        let (count, most) = (grouped(count as u64), grouped(WATCHES_PASTED_MAX as u64));
        return Ok(refused(&format!("You entered {count} names. Add at most {most} at a time.")));
    }
    let (names, not_names) = paste::names_in(text);
    let outcomes = watch_all(&web.app, &member.caller, names.clone(), member.viewer.now).await?;
    let mut report = Report { added: 0, there: 0, refused: Vec::new() };
    report.refused.extend(not_names.into_iter().map(|it| (it.text, sentence(&it.why.to_string()))));
    for (name, outcome) in names.into_iter().zip(outcomes) {
        match outcome {
            Ok(Outcome::Added) => report.added += 1,
            Ok(Outcome::AlreadyThere) => report.there += 1,
            Err(err) => {
                let why = Refusal::from(ApiError::from(err));
                report.refused.push((name.unicode().into_owned(), sentence(why.message())));
            }
        }
    }
    Ok(Pasted::reported(report))
}

impl Pasted {
    /// The result page of a list. Rejected items stay in the field for correction.
    fn reported(report: Report) -> Pasted {
        let texts: Vec<_> = report.refused.iter().map(|(text, _)| text.as_str()).collect();
        let nothing = "No names were added. See the reasons below.";
        let error = (report.added + report.there == 0)
            .then(|| FormError::with_status(StatusCode::BAD_REQUEST, Some("names"), nothing));
        Pasted { text: texts.join("\n"), error, report: Some(report) }
    }
}

impl Report {
    /// Notice for a single name that is on the list now.
    fn notice(&self) -> Option<Notice> {
        match self {
            Report { added: 1, there: 0, refused } if refused.is_empty() => Some(ADDED),
            Report { added: 0, there: 1, refused } if refused.is_empty() => Some(THERE),
            _ => None,
        }
    }
}
