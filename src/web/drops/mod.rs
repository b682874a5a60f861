//! `/`: the ranked list of drops. A query string comes in, spelled as that of the API and of the CSV
//! export, so that the address, the list and the file agree; a page of a hundred rows goes out, or,
//! for the script of the page, the list and the chips of TLDs alone.

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
use crate::index::Index;
use crate::index::filter::{AsOf, View};
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::plan::Plan;
use crate::web::Web;
use crate::web::components::{counted, watch_form};
use crate::web::error::PageError;
use crate::web::fragment::{self, Wanted};
use crate::web::layout::{NavItem, Page};
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
    let (status, markup) = work::run(u32::MAX, move || {
        let found = find(&index, &state, as_of, timer);
        let (status, listing, problem) = match found {
            Ok(listing) => (StatusCode::OK, Some(listing), None),
            Err(err @ ApiError::BadParameter { .. }) => (StatusCode::BAD_REQUEST, None, Some(err)),
            Err(err) => return Err(err),
        };
        let overview = index.overview(as_of);
        let shown = Shown { state: &state, problem, exports, owned: owned.as_deref() };
        let list = match &listing {
            Some(listing) => list::section(&shown, listing, &overview),
            None => list::refused(&shown),
        };
        let chips = filters::chips(&state, &overview);
        let markup = if wanted != Wanted::Page {
            html! { (chips) (list) }
        } else {
            let newest = overview.newest();
            let active = overview.total(View::Active);
            let main = html! {
                div.head {
                    h1 { "Drops" }
                    p.soft {
                        (counted(active, "name")) " on the way back to the market, the newest seen to drop on "
                        time datetime=(newest) { (newest) }
                    }
                }
                (filters::form(&shown, &chips))
                (list)
                (watch_form(&state.path()))
                (keys())
            };
            Page::new("Drops")
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

/// What is shown, and to whom.
struct Shown<'a> {
    state: &'a State,
    /// Which parameter is wrong, and how.
    problem: Option<ApiError>,
    /// The plan has CSV exports.
    exports: bool,
    /// What the viewer has, if they have logged in.
    owned: Option<&'a UserData>,
}

impl Shown<'_> {
    /// What is wrong with a parameter, if it is.
    fn problem_of(&self, parameter: &str) -> Option<&str> {
        match &self.problem {
            Some(ApiError::BadParameter { name, what }) if name == parameter => Some(what),
            _ => None,
        }
    }
}

fn find<'a>(
    index: &'a Index,
    state: &State,
    as_of: AsOf,
    timer: QueryTimer,
) -> Result<Listing<'a>, ApiError> {
    let filter = state.filter()?;
    let page = index.drops(&filter, as_of)?;
    let rows = page.count();
    // A page that is not full says how many there are.
    let total = match rows < filter.limit && (rows > 0 || filter.offset == 0) {
        true => filter.offset + rows,
        false => index.count_drops(&filter, as_of)?,
    };
    timer.finish(rows as usize, &filter);
    Ok(Listing { page, counted: Counted { offset: filter.offset, rows, total } })
}

/// What the keyboard does, for those who ask.
fn keys() -> Markup {
    const KEYS: [(&str, &str); 8] = [
        ("j  k", "next and previous name"),
        ("Enter", "the parts of its score"),
        ("o", "its dossier"),
        ("w", "watch it, or stop"),
        ("c", "copy it"),
        ("n  p", "next and previous page"),
        ("/", "to the field for a part of the name"),
        ("?", "this help"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keyboard" }
            dl.facts {
                @for (keys, what) in KEYS {
                    dt { @for key in keys.split("  ") { kbd { (key) } " " } }
                    dd { (what) }
                }
            }
            p { label { input #keys-on type="checkbox" checked; "Single keys do this on this page" } }
            form method="dialog" { button type="submit" { "Close" } }
        }
    }
}
