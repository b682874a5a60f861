//! `/search`: search over all known names by start, part, pattern or spelling, with the filters of the
//! API. Fragments contain only the results, or the suggestions below the search field.

mod options;
mod results;

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{Markup, html};

use crate::Web;
use crate::components::{self, query, watch_form};
use crate::drops::presets;
use crate::error::PageError;
use crate::form::Fields;
use crate::fragment::{self, Wanted};
use crate::index::filter::SearchFilter;
use crate::layout::{NavItem, Page, shrunk};
use crate::query::error::BadParameter;
use crate::query::params::Params;
use crate::service::work;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::viewer::Viewer;
use crate::vocab::day::Day;
use crate::vocab::limits::{SEARCH_OFFSET_MAX, SEARCH_QUERY_CHARS_MAX};

/// Rows of a page.
const ROWS: u32 = 50;

pub fn routes() -> Router<Web> {
    Router::new().route("/search", get(search_names))
}

/// Ways to search: parameter of the API, label in the form, and an example.
const WAYS: [(&str, &str, &str); 6] = [
    ("q", "Starts with", "solar, münch, exam.co"),
    ("contains", "Contains", "solar"),
    ("ends", "Ends with", "shop"),
    ("pattern", "Pattern", "CVCV, LLL, *bank"),
    ("like", "Similar to", "google"),
    ("regex", "Regular expression", "^(my|the)[a-z]{4}$"),
];

/// Filters in the form, besides the text.
const FILTERS: [&str; 9] =
    ["stage", "view", "tld", "min_dqs", "min_len", "max_len", "digits", "hyphens", "idn"];

/// A search as sent, with the filter that it represents.
struct Search {
    /// Query as sent, trimmed.
    text: String,
    /// Parameter of the API for the text: one of [`WAYS`].
    way: &'static str,
    /// Non-empty values of [`FILTERS`], as sent.
    filters: Vec<(&'static str, String)>,
    /// `None` for an empty query or an invalid parameter.
    filter: Option<SearchFilter>,
    /// Offset from which the viewer sees no rows.
    depth: u32,
}

impl Search {
    /// Parses a query string. For an invalid parameter, returns the error together with the search
    /// as sent.
    fn parse(
        query: Option<&str>,
        rows: u32,
        depth: u32,
        today: Day,
    ) -> (Search, Option<BadParameter>) {
        let sent = Fields::from_query(query);
        let text = |name| sent.text(name).trim().to_owned();
        let (way, ..) = WAYS.into_iter().find(|(way, ..)| *way == text("by")).unwrap_or(WAYS[0]);
        let filters = FILTERS.into_iter().map(|name| (name, text(name)));
        let filters = filters.filter(|(_, value)| !value.is_empty()).collect();
        let asked = Search { text: text("q"), way, filters, filter: None, depth };
        if asked.text.is_empty() {
            return (asked, None);
        }
        let limit = rows.to_string();
        let mut parameters = vec![(way, asked.text.as_str())];
        parameters.extend(asked.filters.iter().map(|(name, value)| (*name, value.as_str())));
        parameters.extend([("limit", limit.as_str()), ("offset", sent.text("offset").trim())]);
        match Params::from_pairs(&parameters).search(today) {
            Ok((_, filter)) => (Search { filter: Some(filter), ..asked }, None),
            Err(err) => (asked, Some(err)),
        }
    }

    /// URL of the page at `offset`.
    fn page(&self, offset: u32) -> String {
        let offset = query::offset(offset);
        let mut parameters = self.parameters();
        parameters.push(("offset", &offset));
        query::with(&parameters, "/search")
    }

    /// URL of the same query in another view.
    fn within(&self, stage: &str, view: &str) -> String {
        let mut parameters = self.parameters();
        parameters.retain(|(name, _)| !["stage", "view"].contains(name));
        parameters.extend([("stage", stage), ("view", view)]);
        query::with(&parameters, "/search")
    }

    /// Returns the value of a filter as sent; empty if it is not set.
    fn get(&self, name: &str) -> &str {
        let sent = self.filters.iter().find(|(set, _)| *set == name);
        sent.map_or("", |(_, value)| value)
    }

    /// Parameters of the page's URL.
    fn parameters(&self) -> Vec<(&'static str, &str)> {
        let by = if self.way == "q" { "" } else { self.way };
        let filters = self.filters.iter().map(|(name, value)| (*name, value.as_str()));
        [("q", self.text.as_str()), ("by", by)].into_iter().chain(filters).collect()
    }
}

/// `GET /search`: names that match `q` in the way that `by` selects.
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
    let scans = asked.filter.as_ref().is_some_and(|filter| filter.common.label.has_text());
    let searched = Arc::clone(&index);
    let app = web.app.clone();
    let make = move || {
        let mut asked = asked;
        if let Some(filter) = &mut asked.filter {
            app.apply_facts(&searched, &mut filter.common, as_of.today)?;
        }
        let filter = asked.filter.as_ref().filter(|filter| filter.offset < depth);
        let found = filter.map(|filter| searched.search(filter, as_of));
        if let (Some(filter), Some(found)) = (filter, &found) {
            timer.finish(found.count() as usize, filter);
        }
        if wanted == Wanted::Options {
            return Ok(options::list(&asked, found.as_ref()));
        }
        let why = problem.as_ref().map(|problem| says(&asked, problem));
        let results =
            results::section(&asked, why.as_deref(), found.as_ref(), owned.as_deref(), as_of.today);
        Ok(match wanted {
            Wanted::Page => page(&viewer, &asked, why.as_deref(), &results),
            _ => shrunk(results),
        })
    };
    let narrowing = || {
        let (asked, _) = Search::parse(query.as_deref(), rows, depth, as_of.today);
        asked.filter.map(|filter| index.narrowing(&filter))
    };
    let made = work::run_or_scan(scans, cost, make).await;
    let markup = made.map_err(|err| err.narrowed(narrowing))?;
    Ok(fragment::vary((status, markup).into_response()))
}

/// Returns the error of an invalid parameter as a sentence.
fn says(asked: &Search, BadParameter { name, what, .. }: &BadParameter) -> String {
    match name == asked.way {
        true => format!("It {what}."),
        false => format!("The parameter {name} {what}."),
    }
}

fn page(viewer: &Viewer, asked: &Search, problem: Option<&str>, results: &Markup) -> Markup {
    let example = WAYS.into_iter().find(|(way, ..)| *way == asked.way).map_or("", |(.., it)| it);
    let main = html! {
        div.head {
            h1 { "Search" }
            p.soft { "Search all known names, dropping or not" }
        }
        form #search.panel role="search" action="/search" method="get" aria-label="Names" {
            div.ask {
                label.hidden for="by" { "How to search" }
                select #by name="by" {
                    @for (way, word, _) in WAYS {
                        option value=(if way == "q" { "" } else { way }) selected[way == asked.way] { (word) }
                    }
                }
                label.hidden for="q" { "Text" }
                input #q type="search" name="q" value=(asked.text) maxlength=(SEARCH_QUERY_CHARS_MAX)
                    placeholder=(example) autocomplete="off" autocapitalize="none" spellcheck="false"
                    data-main-search autofocus[asked.text.is_empty()]
                    aria-invalid=[problem.map(|_| "true")] aria-describedby=[problem.map(|_| "q-error")];
                @for name in ["stage", "view"] {
                    @if !asked.get(name).is_empty() { input type="hidden" name=(name) value=(asked.get(name)); }
                }
                button type="submit" { "Search" }
            }
            @if let Some(problem) = problem { p #q-error.error { (problem) } }
            (more(asked))
        }
        @if asked.text.is_empty() {
            section.panel.presets aria-labelledby="presets" { h2 #presets { "Searches to start with" } (presets::links()) }
        }
        (results)
        (watch_form(&asked.page(asked.filter.as_ref().map_or(0, |filter| filter.offset))))
    };
    Page::new("Search", "Search all known domain names, dropping or not.")
        .at(NavItem::Search)
        .styles(&["components.css", "search.css"])
        .scripts(&["search.js"])
        .show(Some(viewer), main)
}

/// Renders the filters of the form, expanded if one is set.
fn more(asked: &Search) -> Markup {
    type Values = &'static [(&'static str, &'static str)];
    const CHOICES: [(&str, &str, Values); 3] = [
        ("digits", "Digits", &[("none", "none"), ("some", "some"), ("only", "only")]),
        ("hyphens", "Hyphens", &[("none", "none"), ("some", "some")]),
        ("idn", "IDNs", &[("none", "none"), ("only", "only")]),
    ];
    const NUMBERS: [(&str, &str, u8); 3] =
        [("min_dqs", "Score from", 100), ("min_len", "Length from", 63), ("max_len", "to", 63)];
    let is_set = FILTERS[2..].iter().any(|name| !asked.get(name).is_empty());
    html! {
        details.filters open[is_set] {
            summary { "Filters" }
            div {
                label { "TLDs " input type="text" name="tld" value=(asked.get("tld")) placeholder="com, de" maxlength="2000" autocomplete="off" autocapitalize="none" spellcheck="false"; }
                @for (name, word, most) in NUMBERS {
                    label { (word) " " input type="number" name=(name) value=(asked.get(name)) min="0" max=(most); }
                }
                @for (name, word, values) in CHOICES {
                    label {
                        (word) " "
                        select name=(name) {
                            option value="" { "any" }
                            @for (value, says) in values { option value=(value) selected[asked.get(name) == *value] { (says) } }
                        }
                    }
                }
            }
        }
    }
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
        let asked = self::asked("q=bank&by=contains&tld=com&max_len=9&min_len=");
        let filter = asked.filter.as_ref().expect("asked");
        assert!(filter.prefix.is_none() && filter.common.label.has_text());
        assert_eq!(asked.page(50), "/search?q=bank&by=contains&tld=com&max_len=9&offset=50");
        assert_eq!(self::asked("q=a&by=nonsense").page(0), "/search?q=a");
    }

    #[test]
    fn invalid_parameters_are_reported_with_the_query() {
        for (query, parameter) in [
            ("q=a%00", "q"),
            ("q=a&stage=x", "stage"),
            ("q=a&offset=10001", "offset"),
            ("q=a(&by=regex", "regex"),
            ("q=a&min_len=9&max_len=3", "min_len"),
        ] {
            let (asked, problem) = Search::parse(Some(query), ROWS, u32::MAX, Day::MIN);
            let Some(BadParameter { name, .. }) = problem else { panic!("{query}") };
            assert_eq!(name, parameter);
            assert!(asked.text.starts_with('a'));
        }
    }
}
