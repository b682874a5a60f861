//! `/`: the ranked list of drops, 40 rows per page. The query string is that of the API and of the CSV
//! export, so the URL, the list and the file agree. Fragments hold the list with the TLD chips, or all
//! TLDs.

mod filters;
mod list;
mod state;

use axum::Router;
use axum::extract::{RawQuery, State as WebState};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{Markup, html};

use crate::accounts::UserData;
use crate::http::error::ApiError;
use crate::http::work;
use crate::index::filter::{AsOf, View};
use crate::index::{DropsPage, Index};
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::day::Day;
use crate::vocab::limits::DROPS_OFFSET_MAX;
use crate::vocab::plan::Plan;
use crate::web::Web;
use crate::web::components::{self, counted, date, watch_form};
use crate::web::error::PageError;
use crate::web::fragment::{self, Wanted};
use crate::web::layout::{NavItem, Page, shrunk};
use crate::web::viewer::Viewer;
use list::{Counted, Listing};
use state::State;

pub fn routes() -> Router<Web> {
    Router::new().route("/", get(list_drops))
}

/// `GET /`: the drops that pass the filters in the query string.
async fn list_drops(
    WebState(web): WebState<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let state = State::parse(query.as_deref());
    let (index, as_of) = (web.app.live.current(), web.app.as_of(viewer.now));
    let wanted = fragment::wanted(&headers);
    let owned = viewer.member.as_ref().map(|member| web.user_data(member));
    let exports = viewer.member.as_ref().is_some_and(|member| member.caller.plan >= Plan::Core);
    let timer = QueryTimer::start(if state.contains.is_empty() {
        QueryKind::Drops
    } else {
        QueryKind::Substring
    });
    let depth = components::depth(&viewer, DROPS_OFFSET_MAX);
    let (status, markup) = work::run(u32::MAX, move || {
        if wanted == Wanted::Tlds {
            let tlds = filters::suggestions(&state, &index.overview(as_of));
            return Ok((StatusCode::OK, shrunk(tlds)));
        }
        let found = find(&index, &state, depth, as_of, timer);
        let (status, listing, problem) = match found {
            Ok(listing) => (StatusCode::OK, Some(listing), None),
            Err(err @ ApiError::BadParameter { .. }) => (StatusCode::BAD_REQUEST, None, Some(err)),
            Err(err) => return Err(err),
        };
        let overview = index.overview(as_of);
        let (today, owned) = (as_of.today, owned.as_deref());
        let shown = Shown { state: &state, problem, exports, depth, owned, today };
        let list = match &listing {
            Some(listing) => list::section(&shown, listing, &overview),
            None => list::invalid(&shown),
        };
        let chips = filters::chips(&state, &overview);
        let markup = if wanted != Wanted::Page {
            shrunk(html! { (chips) (list) })
        } else {
            let newest = overview.newest();
            let active = overview.total(View::Active);
            let main = html! {
                div.head {
                    h1 { "Drops" }
                    p.soft {
                        (counted(active, "name")) " in the pipeline, data through " (date(newest, as_of.today))
                    }
                }
                (filters::form(&shown, &chips))
                (list)
                (watch_form(&state.path()))
                (keys())
            };
            Page::new("Drops", "Domain names that are leaving registration, best score first: filter by TLD, score, length and stage.")
                .at(NavItem::Drops)
                .styles(&["components.css", "drops.css"])
                .scripts(&["drops.js"])
                .show(Some(&viewer), main)
        };
        Ok((status, markup))
    })
    .await?;
    Ok(fragment::vary((status, markup).into_response()))
}

/// Input of the markup functions.
struct Shown<'a> {
    state: &'a State,
    /// The invalid parameter.
    problem: Option<ApiError>,
    /// The plan includes CSV exports.
    exports: bool,
    /// Offset from which the viewer sees no rows.
    depth: u32,
    today: Day,
    /// Watches, rules and claims of the viewer; `None` if not logged in.
    owned: Option<&'a UserData>,
}

impl Shown<'_> {
    /// Error of a parameter.
    fn problem_of(&self, parameter: &str) -> Option<&str> {
        match &self.problem {
            Some(ApiError::BadParameter { name, what, .. }) if name == parameter => Some(what),
            _ => None,
        }
    }
}

fn find<'a>(
    index: &'a Index,
    state: &State,
    depth: u32,
    as_of: AsOf,
    timer: QueryTimer,
) -> Result<Listing<'a>, ApiError> {
    let filter = state.filter(as_of.today)?;
    let is_shown = filter.offset < depth;
    let page = is_shown.then(|| index.drops(&filter, as_of)).transpose()?;
    let rows = page.as_ref().map_or(0, DropsPage::count);
    let total = match &page {
        Some(page) => page.total,
        None => index.count_drops(&filter, as_of)?,
    };
    timer.finish(rows as usize, &filter);
    Ok(Listing { page, counted: Counted { offset: filter.offset, rows, total } })
}

/// Help dialog for the keyboard shortcuts.
fn keys() -> Markup {
    const KEYS: [(&str, &str); 8] = [
        ("j  k", "Next and previous name"),
        ("Enter", "Show score details"),
        ("o", "Open the name"),
        ("w", "Watch or stop watching"),
        ("c", "Copy the name"),
        ("n  p", "Next and previous page"),
        ("/", "Go to the search field"),
        ("?", "Show this help"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keyboard shortcuts" }
            dl.facts {
                @for (keys, what) in KEYS {
                    dt { @for key in keys.split("  ") { kbd { (key) } " " } }
                    dd { (what) }
                }
            }
            p { label { input #keys-on type="checkbox" checked; "Enable single-key shortcuts" } }
            form method="dialog" { button type="submit" { "Close" } }
        }
    }
}
