//! `/search`: names by prefix over everything ever seen. A query string comes in, a page of results
//! goes out; for scripts the results alone, or the few best as options of a list below a field.

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
use crate::vocab::limits::SEARCH_QUERY_CHARS_MAX;
use crate::web::Web;
use crate::web::components::{query, watch_form};
use crate::web::error::PageError;
use crate::web::fragment::{self, Wanted};
use crate::web::layout::{NavItem, Page};
use crate::web::viewer::Viewer;

/// Rows of a page.
const ROWS: u32 = 50;

pub fn routes() -> Router<Web> {
    Router::new().route("/search", get(search_names))
}

/// What is asked for, as sent and as meant.
struct Asked {
    /// As sent, trimmed.
    text: String,
    /// `stage` or `view` as sent; empty where the whole corpus is searched.
    part: (String, String),
    /// `None` where nothing is searched for yet.
    filter: Option<SearchFilter>,
}

impl Asked {
    /// Of a query string; where a parameter is not as it should be, nothing is searched for and it
    /// is told what is wrong.
    fn parse(query: Option<&str>, rows: u32) -> (Asked, Option<ApiError>) {
        let mut asked =
            Asked { text: String::new(), part: (String::new(), String::new()), filter: None };
        let mut offset = String::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let field = match &*name {
                "q" => &mut asked.text,
                "stage" => &mut asked.part.0,
                "view" => &mut asked.part.1,
                "offset" => &mut offset,
                _ => continue,
            };
            value.trim().clone_into(field);
        }
        if asked.text.is_empty() {
            return (asked, None);
        }
        let path = asked.path_with(&[("limit", &rows.to_string()), ("offset", &offset)]);
        let sent = path.split_once('?').map(|(_, query)| query);
        match Params::new(sent).search() {
            Ok((_, filter)) => (Asked { filter: Some(filter), ..asked }, None),
            Err(err) => (asked, Some(err)),
        }
    }

    /// The address of the page from `offset` on.
    fn page(&self, offset: u32) -> String {
        let offset = if offset == 0 { String::new() } else { offset.to_string() };
        self.path_with(&[("offset", &offset)])
    }

    /// The address of the same text in another part of the pipeline.
    fn within(&self, stage: &str, view: &str) -> String {
        let parameters = [("q", self.text.as_str()), ("stage", stage), ("view", view)];
        path_of(&parameters)
    }

    fn path_with(&self, more: &[(&str, &str)]) -> String {
        let (stage, view) = &self.part;
        let mut parameters = vec![("q", self.text.as_str()), ("stage", stage), ("view", view)];
        parameters.extend(more);
        path_of(&parameters)
    }
}

fn path_of(parameters: &[(&str, &str)]) -> String {
    let sent: Vec<(&str, &str)> =
        parameters.iter().copied().filter(|(_, value)| !value.is_empty()).collect();
    query::with(&sent, "/search")
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
    let (asked, problem) = Asked::parse(query.as_deref(), rows);
    // A query string is refused for its parameters alone.
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let (index, as_of) = (web.app.live.current(), web.app.as_of(viewer.now));
    let cost = asked.filter.as_ref().map_or(0, |filter| index.search_cost_us(filter, as_of));
    let owned = viewer.member.as_ref().map(|member| web.user_data(member));
    let timer = QueryTimer::start(QueryKind::Search);
    let markup = work::run(cost, move || {
        let found = asked.filter.as_ref().map(|filter| index.search(filter, as_of));
        if let (Some(filter), Some(found)) = (&asked.filter, &found) {
            timer.finish(found.count() as usize, filter);
        }
        if wanted == Wanted::Options {
            return Ok(options::list(&asked, found.as_ref()));
        }
        let results = results::section(&asked, found.as_ref(), owned.as_deref());
        Ok(match wanted {
            Wanted::Page => page(&viewer, &asked, problem.as_ref(), &results),
            _ => results,
        })
    })
    .await?;
    Ok(fragment::vary((status, markup).into_response()))
}

fn page(viewer: &Viewer, asked: &Asked, problem: Option<&ApiError>, results: &Markup) -> Markup {
    let problem = problem.and_then(|problem| match problem {
        ApiError::BadParameter { name, what } => Some((name, what)),
        _ => None,
    });
    let main = html! {
        div.head {
            h1 { "Search" }
            p.soft { "Every name ever seen, dropping or not, by how it starts" }
        }
        form #search.panel role="search" action="/search" method="get" aria-label="Names" {
            div.ask {
                label.hidden for="q" { "How the name starts" }
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
    Page::new("Search")
        .at(NavItem::Search)
        .styles(&["components.css", "search.css"])
        .scripts(&["search.js"])
        .show(Some(viewer), main)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Asked {
        let (asked, problem) = Asked::parse(Some(query), ROWS);
        assert!(problem.is_none(), "{query}: {problem:?}");
        asked
    }

    #[test]
    fn nothing_is_searched_for_without_a_text() {
        for query in ["", "q=", "q=++&stage=catchable", "offset=5"] {
            assert!(asked(query).filter.is_none(), "{query}");
        }
    }

    #[test]
    fn addresses_keep_what_is_asked() {
        let asked = asked("q=+m%C3%BCn+&stage=catchable&offset=50&limit=3");
        let filter = asked.filter.as_ref().expect("asked");
        assert_eq!((filter.limit, filter.offset), (ROWS, 50));
        assert_eq!(asked.page(100), "/search?q=m%C3%BCn&stage=catchable&offset=100");
        assert_eq!(asked.page(0), "/search?q=m%C3%BCn&stage=catchable");
        assert_eq!(asked.within("", "active"), "/search?q=m%C3%BCn&view=active");
    }

    #[test]
    fn what_is_wrong_is_told_with_what_was_sent() {
        for (query, parameter) in
            [("q=a%00", "q"), ("q=a&stage=x", "stage"), ("q=a&offset=10001", "offset")]
        {
            let (asked, problem) = Asked::parse(Some(query), ROWS);
            let Some(ApiError::BadParameter { name, .. }) = problem else { panic!("{query}") };
            assert_eq!(name, parameter);
            assert!(asked.text.starts_with('a'));
        }
    }
}
