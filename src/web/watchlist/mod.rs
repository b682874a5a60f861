//! `/watchlist`: the names an account watches, joined with what lists and registries say of them; names
//! put on it one by one, from any page, or pasted by the thousand; and taken off it.

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
use crate::vocab::limits::WATCHES_PASTED_MAX;
use crate::vocab::name::DomainName;
use crate::web::Web;
use crate::web::components::grouped;
use crate::web::error::{PageError, sentence};
use crate::web::field::FormError;
use crate::web::form::{Fields, Form};
use crate::web::fragment::{Wanted, wanted};
use crate::web::next::local_path;
use crate::web::notice::Notice;
use crate::web::owned::{ROW_LIMITS, ROWS};
use crate::web::viewer::LoggedIn;

/// Where the page is.
const PATH: &str = "/watchlist";

const ADDED: Notice = Notice::new("added", "The name is on your watchlist.");
const THERE: Notice = Notice::new("there", "The name was on your watchlist already.");
const REMOVED: Notice = Notice::new("removed", "Taken off your watchlist.");
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
    summary: Summary,
    /// How many names that cost quota the plan allows.
    external_max: u32,
    /// Those of the page, and whether their registry can be asked.
    rows: Vec<(WatchRow, bool)>,
}

/// A pasted list and what became of it.
#[derive(Default)]
struct Pasted {
    /// What stays in the field.
    text: String,
    fault: Option<FormError>,
    report: Option<Report>,
}

/// What became of the names of a list.
struct Report {
    added: usize,
    /// On the list already.
    there: usize,
    /// As sent, and a sentence that says why it was refused.
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

/// `POST /watchlist/add`: a pasted list, or a name.
async fn add(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let pasted = paste(&web, &member, fields.text("names")).await?;
    if let Some(notice) = pasted.report.as_ref().and_then(Report::notice) {
        return Ok(notice.at(PATH).into_response());
    }
    let newest = WatchQuery { sort: WatchSort::Added, page: Page { limit: ROWS, offset: 0 } };
    let list = list(&web, &member, newest).await?;
    let page = page::show(&member, &list, None, &pasted);
    Ok(match pasted.fault {
        Some(fault) => fault.answer(page),
        None => page.into_response(),
    })
}

/// `POST /watch`: one name, from any page. A script gets an answer without a page.
async fn watch(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let name = name_of(fields.text("domain"))?;
    let mut outcomes = watch_all(&web.app, &member.caller, vec![name], member.viewer.now).await?;
    outcomes.pop().expect("one name has one outcome")?;
    Ok(done(&headers, &fields))
}

/// `POST /unwatch`: names off the list: the one of the button `only`, or all that are named.
async fn unwatch(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let field = if fields.text("only").is_empty() { "domain" } else { "only" };
    let names = fields.all(field).map(name_of).collect::<Result<Vec<_>, _>>()?;
    // One that is off already is as it should be.
    let removed = web.app.store.remove_watches(&member.caller, names).await?;
    if removed > 0 && next(&fields) == PATH && wanted(&headers) == Wanted::Page {
        return Ok(REMOVED.at(PATH).into_response());
    }
    Ok(done(&headers, &fields))
}

fn name_of(text: &str) -> Result<DomainName, PageError> {
    DomainName::parse(text).map_err(|err| ApiError::parameter("domain", err).into())
}

/// Back to where the form was; for a script, nothing more.
fn done(headers: &HeaderMap, fields: &Fields) -> Response {
    match wanted(headers) {
        Wanted::Page => Redirect::to(next(fields)).into_response(),
        Wanted::Part | Wanted::Options => StatusCode::NO_CONTENT.into_response(),
    }
}

fn next(fields: &Fields) -> &str {
    local_path(Some(fields.text("next")))
}

/// The rows that were asked for, as index and store see them now.
async fn list(web: &Web, member: &LoggedIn, asked: WatchQuery) -> Result<List, PageError> {
    let WatchQuery { sort, page } = asked;
    let app = &web.app;
    let owned = app.store.user_data(&member.caller);
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
        Ok(List { sort, page, summary, external_max, rows })
    });
    Ok(list.await?)
}

/// Puts the names of a text on the list.
async fn paste(web: &Web, member: &LoggedIn, text: &str) -> Result<Pasted, PageError> {
    let refused = |why: &str| Pasted {
        text: text.to_owned(),
        fault: Some(FormError::new(StatusCode::BAD_REQUEST, Some("names"), why)),
        report: None,
    };
    let count = paste::count(text);
    if count == 0 {
        return Ok(refused("Type or paste at least one name."));
    }
    if count > WATCHES_PASTED_MAX {
        let (count, most) = (grouped(count as u64), grouped(WATCHES_PASTED_MAX as u64));
        return Ok(refused(&format!("These are {count} names; send at most {most} at once.")));
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
    /// A list that was read. What was refused stays in the field, to be put right.
    fn reported(report: Report) -> Pasted {
        let texts: Vec<_> = report.refused.iter().map(|(text, _)| text.as_str()).collect();
        let nothing = "No name was added; each is named below with the reason.";
        let fault = (report.added + report.there == 0)
            .then(|| FormError::new(StatusCode::BAD_REQUEST, Some("names"), nothing));
        Pasted { text: texts.join("\n"), fault, report: Some(report) }
    }
}

impl Report {
    /// All there is to say of one name that is on the list now.
    fn notice(&self) -> Option<Notice> {
        match self {
            Report { added: 1, there: 0, refused } if refused.is_empty() => Some(ADDED),
            Report { added: 0, there: 1, refused } if refused.is_empty() => Some(THERE),
            _ => None,
        }
    }
}
