//! `/docs/...`: the documentation in `data/docs`, rendered from Markdown on the first request, with
//! a table of contents and a search over headings.

mod render;

use std::sync::LazyLock;

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{Markup, PreEscaped, Render, html};

pub use self::render::slug;
use self::render::{Document, Heading};
use crate::Web;
use crate::error::PageError;
use crate::layout::{NavItem, Page};
use crate::query::params::Params;
use crate::service::error::ApiError;
use crate::viewer::Viewer;

/// All pages in reading order, each with its path below `/docs/` and its Markdown.
const SOURCES: &[(&str, &str)] = &[
    ("getting-started", include_str!("../../../data/docs/getting-started.md")),
    ("sources", include_str!("../../../data/docs/sources.md")),
    ("facts", include_str!("../../../data/docs/facts.md")),
    ("configuration", include_str!("../../../data/docs/configuration.md")),
    ("operating", include_str!("../../../data/docs/operating.md")),
    ("network", include_str!("../../../data/docs/network.md")),
    ("accounts", include_str!("../../../data/docs/accounts.md")),
    ("new-names", include_str!("../../../data/docs/new-names.md")),
    ("watchlist", include_str!("../../../data/docs/watchlist.md")),
    ("release-times", include_str!("../../../data/docs/release-times.md")),
    ("watch-alerts", include_str!("../../../data/docs/watch-alerts.md")),
    ("portfolio", include_str!("../../../data/docs/portfolio.md")),
    ("alerts-and-webhooks", include_str!("../../../data/docs/alerts-and-webhooks.md")),
    ("changes", include_str!("../../../data/docs/changes.md")),
    ("copy", include_str!("../../../data/docs/copy.md")),
    ("channels", include_str!("../../../data/docs/channels.md")),
    ("feeds", include_str!("../../../data/docs/feeds.md")),
    ("api", include_str!("../../../data/docs/api.md")),
    ("queries", include_str!("../../../data/docs/queries.md")),
    ("clients", include_str!("../../../data/docs/clients.md")),
    ("api-changes", include_str!("../../../data/docs/api-changes.md")),
    ("stability", include_str!("../../../data/docs/stability.md")),
    ("agents", include_str!("../../../data/docs/agents.md")),
    ("metrics", include_str!("../../../data/docs/metrics.md")),
    ("score", include_str!("../../../data/docs/score.md")),
    ("outcomes", include_str!("../../../data/docs/outcomes.md")),
    ("durability", include_str!("../../../data/docs/durability.md")),
    ("cluster", include_str!("../../../data/docs/cluster.md")),
    ("architecture", include_str!("../../ARCHITECTURE.md")),
    ("contributing", include_str!("../../../data/docs/contributing.md")),
    ("releasing", include_str!("../../../data/docs/releasing.md")),
    ("changelog", include_str!("../../../data/docs/changelog.md")),
    ("notices", include_str!("../../../data/docs/notices.md")),
];

/// A rendered page.
struct DocsPage {
    slug: &'static str,
    document: Document,
}

static PAGES: LazyLock<Vec<DocsPage>> = LazyLock::new(|| {
    SOURCES
        .iter()
        .map(|&(slug, markdown)| DocsPage { slug, document: render::render(markdown) })
        .collect()
});

/// Routes of the documentation.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/docs/search", get(search))
        .route("/docs/score.svg", get(score_chart))
        .route("/docs/{page}", get(show))
}

/// `GET /docs/{page}`.
async fn show(viewer: Viewer, Path(slug): Path<String>) -> Result<Markup, PageError> {
    let page = PAGES.iter().find(|page| page.slug == slug).ok_or(ApiError::NotFound)?;
    Ok(frame(&viewer, page.document.title(), Some(page), "", PreEscaped(&page.document.html)))
}

/// Renders the chart on the page about the score.
async fn score_chart() -> Response {
    let chart: &[u8] = include_bytes!("../../../benches/score.svg");
    ([(CONTENT_TYPE, "image/svg+xml")], chart).into_response()
}

/// `GET /docs/search`: headings that contain every word of `q`.
async fn search(viewer: Viewer, RawQuery(sent): RawQuery) -> Result<Markup, PageError> {
    let query = Params::new(sent.as_deref()).one::<String>("q")?.unwrap_or_default();
    let found = matches(&query);
    let main = html! {
        h1 { "Search the documentation" }
        @if query.trim().is_empty() {
            p { "Type a word to find headings, or choose a page." }
        } @else if found.is_empty() {
            p { "No heading contains “" (query) "”. Try a shorter word, or choose a page." }
        } @else {
            ul {
                @for (page, heading) in found {
                    li {
                        a href={ "/docs/" (page.slug) "#" (heading.id) } { (heading.text) }
                        @if heading.level > 1 { " " span.soft { (page.document.title()) } }
                    }
                }
            }
        }
    };
    Ok(frame(&viewer, "Search the documentation", None, &query, main))
}

/// Headings whose text contains every word of `query`, ignoring case, in reading order.
fn matches(query: &str) -> Vec<(&'static DocsPage, &'static Heading)> {
    let words: Vec<_> = query.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let headings =
        |page: &'static DocsPage| page.document.headings.iter().map(move |it| (page, it));
    PAGES
        .iter()
        .flat_map(headings)
        .filter(|(_, heading)| {
            let text = heading.text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        })
        .collect()
}

/// Renders a page of the documentation, with links to all pages and to the headings of `current`
/// beside `main`.
fn frame(
    viewer: &Viewer,
    title: &str,
    current: Option<&DocsPage>,
    query: &str,
    main: impl Render,
) -> Markup {
    let slug = current.map(|page| page.slug);
    let about = current
        .map_or("Search the headings of the documentation.", |page| page.document.about.as_str());
    let main = html! {
        div.reference.docs {
            nav.contents aria-label="Documentation" {
                form role="search" action="/docs/search" method="get" {
                    label.hidden for="docs-search" { "Search headings" }
                    input #docs-search type="search" name="q" value=(query) placeholder="Search headings" autocomplete="off";
                }
                ul {
                    li { a href="/docs" { "API reference" } }
                    @for page in PAGES.iter() {
                        li {
                            a href={ "/docs/" (page.slug) } aria-current=[(slug == Some(page.slug)).then_some("page")] {
                                (page.document.title())
                            }
                            @if slug == Some(page.slug) { (contents(&page.document)) }
                        }
                    }
                }
            }
            div.prose { (main) }
        }
    };
    Page::new(title, about).at(NavItem::Docs).styles(&["reference.css"]).show(Some(viewer), main)
}

fn contents(document: &Document) -> Markup {
    html! {
        ul {
            @for heading in document.headings.iter().filter(|heading| heading.level == 2) {
                li { a href={ "#" (heading.id) } { (heading.text) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The targets of `attribute` in rendered HTML.
    fn targets<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
        let opening = format!("{attribute}=\"");
        let pieces: Vec<_> = html.split(&opening).skip(1).collect();
        pieces.into_iter().map(|rest| rest.split('"').next().expect("a closing quote"))
    }

    #[test]
    fn every_link_between_pages_has_a_target() {
        let mut checked = 0;
        for page in PAGES.iter() {
            for target in targets(&page.document.html, "href") {
                if target.starts_with("https://") {
                    continue;
                }
                let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
                let linked = match path.strip_prefix("/docs/") {
                    _ if path.is_empty() => page,
                    Some(slug) => PAGES
                        .iter()
                        .find(|page| page.slug == slug)
                        .unwrap_or_else(|| panic!("{}: dead link {target}", page.slug)),
                    None => panic!("{}: {target} is not a page", page.slug),
                };
                let exists = fragment.is_empty()
                    || linked.document.headings.iter().any(|heading| heading.id == fragment);
                assert!(exists, "{}: dead link {target}", page.slug);
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked}");
    }

    #[test]
    fn every_relative_link_of_the_sources_names_a_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (slug, markdown) in SOURCES {
            let folder = root.join(if *slug == "architecture" { "src" } else { "data/docs" });
            for link in markdown.split("](").skip(1) {
                let target = link.split([')', '#']).next().expect("a piece");
                if !target.is_empty() && !target.starts_with("http") {
                    assert!(folder.join(target).exists(), "{slug}: {target} does not exist");
                }
            }
        }
    }

    #[test]
    fn every_file_in_the_folder_is_a_page() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/docs");
        let slugs: HashSet<_> = SOURCES.iter().map(|(slug, _)| *slug).collect();
        for entry in fs::read_dir(folder).expect("data/docs can be read") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_str().expect("UTF-8");
            assert!(slugs.contains(name.trim_end_matches(".md")), "{name} is not in SOURCES");
        }
    }

    #[test]
    fn ids_are_unique_within_a_page() {
        for page in PAGES.iter() {
            let mut seen = HashSet::new();
            for heading in &page.document.headings {
                assert!(seen.insert(&heading.id), "{}: {}", page.slug, heading.id);
            }
        }
    }

    #[test]
    fn search_finds_headings_by_every_word() {
        let found = matches("verifying WEBHOOK");
        let found: Vec<_> =
            found.iter().map(|(page, heading)| (page.slug, heading.id.as_str())).collect();
        assert_eq!(found, [("alerts-and-webhooks", "verifying-a-webhook")]);
        assert!(matches("  ").is_empty());
        assert!(matches("verifying nonsense").is_empty());
    }
}
