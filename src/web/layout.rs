//! The frame of every page (head, navigation, footer) and its security headers.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets;
use crate::viewer::Viewer;

/// Content security policy: only scripts, styles and images of this server load, and no other site
/// may frame a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Entries of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NavItem {
    Drops,
    Search,
    Overview,
    Watchlist,
    Alerts,
    Portfolio,
    Docs,
    Reference,
    Account,
}

/// The places of the navigation. On phones, they are a bar at the bottom of the screen.
const PLACES: [(NavItem, &str, &str, &str); 4] = [
    (NavItem::Drops, "/", "Drops", "drop"),
    (NavItem::Watchlist, "/watchlist", "Watchlist", "star"),
    (NavItem::Alerts, "/alerts", "Alerts", "bell"),
    (NavItem::Portfolio, "/portfolio", "Portfolio", "coin"),
];
/// Pages below the item *More* of phones. Wide screens list the first after the places, and all of them in
/// the footer.
const PAGES: [(NavItem, &str, &str); 4] = [
    (NavItem::Overview, "/overview", "Overview"),
    (NavItem::Search, "/search", "Search"),
    (NavItem::Docs, "/docs/getting-started", "Documentation"),
    (NavItem::Reference, "/docs", "API"),
];

/// Builder of a page.
pub struct Page<'a> {
    title: &'a str,
    /// Description of the page, which search engines show.
    description: &'a str,
    place: Option<NavItem>,
    styles: &'a [&'a str],
    scripts: &'a [&'a str],
    /// Content of the header instead of the search field.
    bar: Option<Markup>,
}

impl<'a> Page<'a> {
    /// Creates a page with this title and description, and the base style.
    pub fn new(title: &'a str, description: &'a str) -> Page<'a> {
        Page { title, description, place: None, styles: &[], scripts: &[], bar: None }
    }

    /// Marks the entry of the navigation as current.
    pub fn at(self, place: NavItem) -> Page<'a> {
        Page { place: Some(place), ..self }
    }

    /// Replaces the search field of the header.
    pub fn bar(self, bar: Markup) -> Page<'a> {
        Page { bar: Some(bar), ..self }
    }

    /// Adds style sheets, such as `drops.css`.
    pub fn styles(self, styles: &'a [&'a str]) -> Page<'a> {
        Page { styles, ..self }
    }

    /// Adds script modules, such as `drops.js`.
    pub fn scripts(self, scripts: &'a [&'a str]) -> Page<'a> {
        Page { scripts, ..self }
    }

    /// Renders the whole page. Without `viewer`, the header shows no account links.
    pub fn show(self, viewer: Option<&Viewer>, main: Markup) -> Markup {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    title { (self.title) " · dropdex" }
                    meta name="description" content=(self.description);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    link rel="icon" type="image/svg+xml" href=(assets::path("icon.svg"));
                    link rel="stylesheet" href=(assets::path("base.css"));
                    @for name in self.styles { link rel="stylesheet" href=(assets::path(name)); }
                    script type="module" src=(assets::path("base.js")) {}
                    script type="module" src=(assets::path("search-box.js")) {}
                    @for name in self.scripts { script type="module" src=(assets::path(name)) {} }
                }
                body {
                    a.skip href="#main" { "Skip to content" }
                    (self.header(viewer))
                    @if viewer.is_some_and(|viewer| viewer.demo) {
                        p.sample role="note" { b { "Sample data." } span.wide { " Names are real, dates are moved to today, and bids are invented." } " Everything is removed when the demo stops." }
                    }
                    main #main tabindex="-1" { (main) }
                    footer.site {
                        p {
                            "dropdex " (env!("CARGO_PKG_VERSION")) " · Dates are in UTC"
                            @for (_, path, word) in &PAGES[1..] { " · " a href=(path) { (word) } }
                            " · " a href="/status" { "Status" }
                        }
                    }
                }
            }
        };
        shrunk(page)
    }

    fn header(&self, viewer: Option<&Viewer>) -> Markup {
        let current = |place| (self.place == Some(place)).then_some("page");
        let account = html! {
            @if let Some(member) = viewer.and_then(|viewer| viewer.member.as_ref()) {
                a href="/account" title=(member.email.as_str()) aria-current=[current(NavItem::Account)] { "Account" }
                @if member.session.is_some() {
                    form method="post" action="/logout" { button.quiet type="submit" { "Log out" } }
                }
            } @else if viewer.is_some() {
                a href="/login" aria-current=[current(NavItem::Account)] { "Log in" }
            }
        };
        html! {
            header.site {
                a.brand href="/" { (mark()) span { "dropdex" } }
                nav aria-label="Main" {
                    ul {
                        @for (place, path, word, icon) in PLACES {
                            li { a href=(path) aria-current=[current(place)] { i.icon.(icon) {} (word) } }
                        }
                        @for (place, path, word) in &PAGES[..1] {
                            li.wide { a href=(path) aria-current=[current(*place)] { (word) } }
                        }
                        li.only-phone { button type="button" popovertarget="more" { i.icon.dots {} "More" } }
                    }
                }
                @if let Some(bar) = &self.bar { (bar) } @else {
                    form.find role="search" action="/search" method="get" {
                        label.hidden for="find" { "Search names" }
                        input #find type="search" name="q" maxlength="253" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="Search names";
                    }
                }
                div.member { (account) }
            }
            div #more.sheet popover {
                @for (place, path, word) in PAGES { a href=(path) aria-current=[current(place)] { (word) } }
                (account)
            }
        }
    }
}

/// Releases the spare capacity of markup, which would otherwise be held while the response waits
/// for its client.
pub fn shrunk(PreEscaped(mut html): Markup) -> Markup {
    html.shrink_to_fit();
    PreEscaped(html)
}

/// Renders the logo of `icon.svg` in the colours of the page.
fn mark() -> Markup {
    html! {
        svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" focusable="false" {
            rect.ground width="32" height="32" rx="7" {}
            path.drop d="M16 5c4.5 5.6 7.2 9.3 7.2 13a7.2 7.2 0 0 1-14.4 0c0-3.7 2.7-7.4 7.2-13z" {}
            path.light d="M12.4 18.2a3.6 3.6 0 0 0 3.6 3.6" fill="none" stroke-width="1.8" stroke-linecap="round" {}
        }
    }
}

/// Adds the security and cache headers of pages to a response, unless it already has them. The
/// server adds the headers that all responses have (`edge/caching`).
pub async fn protect(response: Response) -> Response {
    protect_now(response)
}

/// Synchronous version of [`protect`].
pub fn protect_now(response: Response) -> Response {
    let mut response = response.into_response();
    let is_page = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(REFERRER_POLICY, "same-origin");
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_FRAME_OPTIONS, "DENY");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    // Pages depend on the session, so they must not be cached.
    set(CACHE_CONTROL, if is_page { "no-store" } else { "no-cache" });
    response
}
