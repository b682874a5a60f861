//! `/search`: prefix search over all known names. Fragments hold the results only, or the suggestions
//! below the search field.

mod options;
mod results;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{Markup, html};

use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::work;
use crate::index::filter::SearchFilter;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::day::Day;
use crate::vocab::limits::{SEARCH_OFFSET_MAX, SEARCH_QUERY_CHARS_MAX};
use crate::web::Web;
use crate::web::components::{self, query, watch_form};
use crate::web::error::PageError;
use crate::web::form::Fields;
use crate::web::fragment::{self, Wanted};
use crate::web::layout::{NavItem, Page, shrunk};
use crate::web::viewer::Viewer;

/// Rows of a page.
const ROWS: u32 = 50;

pub fn routes() -> Router<Web> {
    Router::new().route("/search", get(search_names))
}

/// A search as sent, and the filter it stands for.
struct Search {
    /// Query as sent, trimmed.
    text: String,
    /// `stage` and `view` as sent. Both empty searches all names.
    part: (String, String),
    /// `None` for an empty query or an invalid parameter.
    filter: Option<SearchFilter>,
    /// Offset from which the viewer sees no rows.
    depth: u32,
}

impl Search {
    /// Parses a query string. Returns the error of an invalid parameter beside the search as sent.
    fn parse(query: Option<&str>, rows: u32, depth: u32, today: Day) -> (Search, Option<ApiError>) {
        let sent = Fields::from_query(query);
        let text = |name| sent.text(name).trim().to_owned();
        let asked =
            Search { text: text("q"), part: (text("stage"), text("view")), filter: None, depth };
        if asked.text.is_empty() {
            return (asked, None);
        }
        let limit = rows.to_string();
        let mut parameters = asked.parameters().to_vec();
        parameters.extend([("limit", limit.as_str()), ("offset", sent.text("offset").trim())]);
        match Params::from_pairs(&parameters).search(today) {
            Ok((_, filter)) => (Search { filter: Some(filter), ..asked }, None),
            Err(err) => (asked, Some(err)),
        }
    }

    /// URL of the page at `offset`.
    fn page(&self, offset: u32) -> String {
        let offset = query::offset(offset);
        let mut parameters = self.parameters().to_vec();
        parameters.push(("offset", &offset));
        query::with(&parameters, "/search")
    }

    /// URL of the same query in another view.
    fn within(&self, stage: &str, view: &str) -> String {
        let parameters = [("q", self.text.as_str()), ("stage", stage), ("view", view)];
        query::with(&parameters, "/search")
    }

    fn parameters(&self) -> [(&'static str, &str); 3] {
        let (stage, view) = &self.part;
        [("q", &self.text), ("stage", stage), ("view", view)]
    }
}

/// `GET /search`: names that start with `q`.
async fn search_names(
    State(web): State<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let wanted = fragment::wanted(&headers);
    let rows = if wanted == Wanted::Options { options::ROWS } else { ROWS };
    let depth = components::depth(&viewer, SEARCH_OFFSET_MAX);
    let (index, as_of) = (web.app.live.current(), web.app.as_of(viewer.now));
    let (asked, problem) = Search::parse(query.as_deref(), rows, depth, as_of.today);
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let cost = asked.filter.as_ref().map_or(0, |filter| index.search_cost_us(filter, as_of));
    let owned = viewer.member.as_ref().map(|member| web.user_data(member));
    let timer = QueryTimer::start(QueryKind::Search);
    let markup = work::run(cost, move || {
        let filter = asked.filter.as_ref().filter(|filter| filter.offset < depth);
        let found = filter.map(|filter| index.search(filter, as_of));
        if let (Some(filter), Some(found)) = (filter, &found) {
            timer.finish(found.count() as usize, filter);
        }
        if wanted == Wanted::Options {
            return Ok(options::list(&asked, found.as_ref()));
        }
        let results = results::section(&asked, found.as_ref(), owned.as_deref(), as_of.today);
        Ok(match wanted {
            Wanted::Page => page(&viewer, &asked, problem.as_ref(), &results),
            _ => shrunk(results),
        })
    })
    .await?;
    Ok(fragment::vary((status, markup).into_response()))
}

fn page(viewer: &Viewer, asked: &Search, problem: Option<&ApiError>, results: &Markup) -> Markup {
    let problem = problem.and_then(|problem| match problem {
        ApiError::BadParameter { name, what, .. } => Some((name, what)),
        _ => None,
    });
    let main = html! {
        div.head {
            h1 { "Search" }
            p.soft { "Search all known names, dropping or not, by how they start" }
        }
        form #search.panel role="search" action="/search" method="get" aria-label="Names" {
            div.ask {
                label.hidden for="q" { "Start of the name" }
                input #q type="search" name="q" value=(asked.text) maxlength=(SEARCH_QUERY_CHARS_MAX)
                    placeholder="solar, münch, exam.co" autocomplete="off" autocapitalize="none" spellcheck="false"
                    data-main-search autofocus[asked.text.is_empty()]
                    aria-invalid=[problem.map(|_| "true")] aria-describedby=[problem.map(|_| "q-error")];
                @for (name, value) in [("stage", &asked.part.0), ("view", &asked.part.1)] {
                    @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
                }
                button type="submit" { "Search" }
            }
            @if let Some((name, what)) = problem {
                p #q-error.error {
                    @if name == "q" { "It " (what) "." } @else { "The parameter " (name) " " (what) "." }
                }
            }
        }
        (results)
        (watch_form(&asked.page(asked.filter.as_ref().map_or(0, |filter| filter.offset))))
    };
    Page::new("Search", "Search all known domain names, dropping or not, by how they start.")
        .at(NavItem::Search)
        .styles(&["components.css", "search.css"])
        .scripts(&["search.js"])
        .show(Some(viewer), main)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Search {
        let (asked, problem) = Search::parse(Some(query), ROWS, u32::MAX, Day::MIN);
        assert!(problem.is_none(), "{query}: {problem:?}");
        asked
    }

    #[test]
    fn empty_queries_have_no_filter() {
        for query in ["", "q=", "q=++&stage=catchable", "offset=5"] {
            assert!(asked(query).filter.is_none(), "{query}");
        }
    }

    #[test]
    fn links_keep_the_search() {
        let asked = asked("q=+m%C3%BCn+&stage=catchable&offset=50&limit=3");
        let filter = asked.filter.as_ref().expect("asked");
        assert_eq!((filter.limit, filter.offset), (ROWS, 50));
        assert_eq!(asked.page(100), "/search?q=m%C3%BCn&stage=catchable&offset=100");
        assert_eq!(asked.page(0), "/search?q=m%C3%BCn&stage=catchable");
        assert_eq!(asked.within("", "active"), "/search?q=m%C3%BCn&view=active");
    }

    #[test]
    fn invalid_parameters_are_reported_with_the_query() {
        for (query, parameter) in
            [("q=a%00", "q"), ("q=a&stage=x", "stage"), ("q=a&offset=10001", "offset")]
        {
            let (asked, problem) = Search::parse(Some(query), ROWS, u32::MAX, Day::MIN);
            let Some(ApiError::BadParameter { name, .. }) = problem else { panic!("{query}") };
            assert_eq!(name, parameter);
            assert!(asked.text.starts_with('a'));
        }
    }
}
