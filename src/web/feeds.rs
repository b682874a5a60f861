//! Feeds of the watchlist, saved searches and alert rules: creates their addresses, and shows them
//! once.

use axum::Router;
use axum::extract::{FromRequestParts, RawQuery, State};
use axum::http::request::Parts;
use axum::response::Redirect;
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::Web;
use crate::account::WITH_TABLES;
use crate::accounts::{FeedOf, WriteError};
use crate::edge::home::Home;
use crate::error::PageError;
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice::{self, Notice};
use crate::owned::path_param;
use crate::service::error::ApiError;
use crate::vocab::ids::{RuleId, SearchId};

const WATCHLIST: &str = "/watchlist/feed";
const REVOKED: Notice = Notice::new("revoked", "Revoked. The old addresses no longer work.");

/// Routes of feeds.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(WATCHLIST, get(show).post(make))
        .route("/watchlist/feed/revoke", post(revoke))
        .route("/searches/{id}/feed", get(show).post(make))
        .route("/searches/{id}/feed/revoke", post(revoke))
        .route("/alerts/{id}/feed", get(show).post(make))
        .route("/alerts/{id}/feed/revoke", post(revoke))
}

/// Renders the link from a saved search or rule at `path` to its feed.
pub fn button(path: &str, name: &str) -> Markup {
    html! { a.button.quiet.small href={ (path) "/feed" } aria-label={ "Feed of " (name) } { "Feed" } }
}

/// The list in the path: a saved search, a rule, or the watchlist.
struct FeedSubject {
    web: Web,
    member: LoggedIn,
    of: FeedOf,
    title: String,
    path: String,
}

impl FromRequestParts<Web> for FeedSubject {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<FeedSubject, PageError> {
        let member = LoggedIn::from_request_parts(parts, web).await?;
        let web = web.clone();
        if parts.uri.path().starts_with(WATCHLIST) {
            let (title, path) = ("your watchlist".to_owned(), WATCHLIST.to_owned());
            return Ok(FeedSubject { web, member, of: FeedOf::Watchlist, title, path });
        }
        if parts.uri.path().starts_with("/alerts/") {
            let id = path_param(parts, "id", RuleId::parse).await?;
            let rule = web.user_data(&member).rule(id).cloned().ok_or(ApiError::NotFound)?;
            let (title, path) = (format!("“{}”", rule.name), format!("/alerts/{id}/feed"));
            return Ok(FeedSubject { web, member, of: FeedOf::Rule(id), title, path });
        }
        let id = path_param(parts, "id", SearchId::parse).await?;
        let search = web.user_data(&member).search(id).cloned().ok_or(ApiError::NotFound)?;
        let (title, path) = (format!("“{}”", search.name), format!("/searches/{id}/feed"));
        Ok(FeedSubject { web, member, of: FeedOf::Search(id), title, path })
    }
}

/// `GET …/feed`: explains feeds, and shows whether this one exists.
async fn show(names: FeedSubject, RawQuery(query): RawQuery) -> Markup {
    let feeds = names.web.app.store.feeds(&names.member.caller);
    let created = feeds.iter().find(|feed| feed.of == names.of).map(|feed| feed.created);
    page(
        &names,
        &html! {
            (notice::shown(&[REVOKED], query.as_deref()))
            p {
                "Read these names where you read other things: as an Atom feed in a reader, or as a calendar of expected releases. "
                "A feed has a secret address. Anyone who knows it can read these names, and nothing else."
            }
            @if let Some(created) = created {
                p { "There is a feed since " (created.date().format("%-d %b %Y")) ". Its addresses were shown once." }
                form.inline method="post" action=(names.path) data-confirm="The current addresses stop working. Create new ones?" {
                    button type="submit" { "Create new addresses" }
                }
                " "
                form.inline method="post" action={ (names.path) "/revoke" } data-confirm="Readers and calendars no longer get these names. Revoke the feed?" {
                    button.quiet type="submit" { "Revoke" }
                }
            } @else {
                form method="post" action=(names.path) { button type="submit" { "Create feed" } }
            }
        },
    )
}

/// `POST …/feed`: creates the addresses, and shows them once.
async fn make(
    names: FeedSubject,
    State(web): State<Web>,
    Home(home): Home,
) -> Result<Markup, PageError> {
    let now = names.member.viewer.now.0;
    let token = web.app.store.make_feed(&names.member.caller, names.of, now).await?;
    // The base URL already contains the path of the server.
    let path = |kind| format!("/feeds/{}.{kind}", token.reveal());
    let (atom, calendar) = (path("atom"), path("ics"));
    let address = |id: &str, label: &str, path: &str, help: &str| {
        html! {
            section.panel {
                h2 { (label) }
                div.row {
                    code.key id=(id) { (home) (path) }
                    button type="button" data-copy-from=(id) { "Copy" }
                }
                p.soft { (help) }
            }
        }
    };
    Ok(page(
        &names,
        &html! {
            p.hint role="status" { "Copy the address you need now. You will not be able to see it again." }
            (address("atom", "Feed", &atom, "For a feed reader. The newest hundred names."))
            (address("calendar", "Calendar", &calendar, "For a calendar that subscribes to an address. Google refreshes about once a day."))
        },
    ))
}

/// `POST …/feed/revoke`.
async fn revoke(names: FeedSubject) -> Result<Redirect, PageError> {
    match names.web.app.store.revoke_feed(&names.member.caller, names.of).await {
        Ok(()) | Err(WriteError::NotFound) => Ok(REVOKED.at(&names.path)),
        Err(err) => Err(err.into()),
    }
}

fn page(names: &FeedSubject, main: &Markup) -> Markup {
    let (item, back, word) = match names.of {
        FeedOf::Watchlist => (NavItem::Watchlist, "/watchlist", "Back to the watchlist"),
        FeedOf::Search(_) => (NavItem::Drops, "/searches", "Back to saved searches"),
        FeedOf::Rule(_) => (NavItem::Alerts, "/alerts", "Back to alerts"),
    };
    Page::new("Feed and calendar", "Names for readers and calendars, at a secret address.")
        .at(item)
        .styles(WITH_TABLES)
        .scripts(&["account.js"])
        .show(
            Some(&names.member.viewer),
            html! {
                h1 { "Feed of " (names.title) }
                (main)
                p { a href=(back) { (word) } }
            },
        )
}
