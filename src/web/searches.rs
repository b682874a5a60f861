//! `/searches`: saved searches. Opening one leads to the list of drops.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, RawQuery, State as WebState};
use axum::http::request::Parts;
use axum::response::{Redirect, Response};
use axum::routing::get;
use maud::{Markup, html};

use crate::Web;
use crate::accounts::{SavedSearch, SearchPatch};
use crate::components::Column::{Hidden, Number, Text};
use crate::components::{self, Column, total};
use crate::drops::new;
use crate::drops::saved::{PATH, counted, list_of, new_names};
use crate::drops::state::DropsParams;
use crate::drops::words::described;
use crate::error::PageError;
use crate::feeds;
use crate::form::{Fields, Form};
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice::{self, Notice};
use crate::owned::{Deletion, STYLES, idempotent_post, path_param};
use crate::query::stored::Conditions;
use crate::service::error::ApiError;
use crate::service::receipt::{self, added_id};
use crate::service::searches::{self, SearchCounts, ordered};
use crate::service::work;
use crate::undo::Acting;
use crate::vocab::ids::SearchId;
use crate::vocab::limits::{RULE_NAME_CHARS_MAX, SEARCHES_MAX};

const RENAMED: Notice = Notice::new("renamed", "Search renamed.");
const REMOVED: Notice = Notice::new("removed", "Search deleted.");
const NOTICES: [Notice; 2] = [RENAMED, REMOVED];

const COLUMNS: [Column<'_>; 6] = [
    Text("Search"),
    Text("Filters"),
    Number("Names"),
    Number("New"),
    Text("Name"),
    Hidden("Actions"),
];

/// Routes of saved searches.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(show).post(add))
        .route("/searches/{id}", get(open).post(rename))
        .route("/searches/{id}/delete", get(confirm_delete).post(remove))
}

/// The search in the path.
struct RequestedSearch {
    web: Web,
    member: LoggedIn,
    search: Arc<SavedSearch>,
}

impl FromRequestParts<Web> for RequestedSearch {
    type Rejection = PageError;

    async fn from_request_parts(
        parts: &mut Parts,
        web: &Web,
    ) -> Result<RequestedSearch, PageError> {
        let member = LoggedIn::from_request_parts(parts, web).await?;
        let id = path_param(parts, "id", SearchId::parse).await?;
        let search = web.user_data(&member).search(id).cloned().ok_or(ApiError::NotFound)?;
        Ok(RequestedSearch { web: web.clone(), member, search })
    }
}

/// `GET /searches`: all saved searches.
async fn show(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let (owned, index) = (web.user_data(&member), web.app.live.current());
    let as_of = web.app.as_of(member.viewer.now);
    let app = web.app.clone();
    let all = work::run(u32::MAX, move || Ok(counted(&app, &owned, &index, as_of))).await?;
    Ok(Page::new("Saved searches", "Filters that you keep under a name, with what is new in each.")
        .at(NavItem::Drops)
        .styles(STYLES)
        .show(
            Some(&member.viewer),
            html! {
                div.head { h1 { "Saved searches" } }
                (notice::undoable(&NOTICES, query.as_deref(), PATH))
                @if all.is_empty() {
                    div.panel.empty {
                        h2 { "Keep a search that you run again" }
                        p { "Set filters on the list of drops, then choose “Save this search”. You see what is new in it on each visit." }
                        p { a.button href="/" { "Go to the list" } }
                    }
                } @else {
                    p.soft.lead { (all.len()) " of " (SEARCHES_MAX) " searches." }
                    (components::table("Table of saved searches", "cards", &COLUMNS, html! {
                        tbody { @for (search, counts) in &all { (row(search, *counts)) } }
                    }))
                }
            },
        ))
}

fn row(search: &SavedSearch, counts: Option<SearchCounts>) -> Markup {
    let path = format!("{PATH}/{}", search.id);
    let filters = described(&DropsParams::from_pairs(search.conditions.pairs()));
    let field = format!("name-{}", search.id);
    html! {
        tr {
            th scope="row" data-label="Search" { a href=(path) { (search.name) } }
            td.wide data-label="Filters" { @if filters.is_empty() { "All names" } @else { (filters) } }
            td.number data-label="Names" { @if let Some(counts) = counts { (total(counts.total)) } }
            td.number data-label="New" { (new_names(search, counts)) }
            td.wide data-label="Name" {
                form.inline method="post" action=(path) {
                    label.hidden for=(field) { "New name of " (search.name) }
                    input id=(field) type="text" name="name" value=(search.name) maxlength=(RULE_NAME_CHARS_MAX) required autocomplete="off";
                    " " button.quiet.small type="submit" { "Rename" }
                }
            }
            td.wide {
                div.buttons {
                    a.button.quiet.small href={ "/alerts/new?search=" (search.id) } aria-label={ "Alert me about " (search.name) } { "Alert me" }
                    (feeds::button(&path, &search.name))
                    a.button.quiet.small href={ (path) "/delete" } aria-label={ "Delete " (search.name) } { "Delete" }
                }
            }
        }
    }
}

/// `POST /searches`: saves the filters of a list.
async fn add(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Redirect, PageError> {
    let state = DropsParams::of(&fields);
    let name = fields.text("name").trim().to_owned();
    let post = idempotent_post(&fields, member.viewer.now);
    let parse = move |today| {
        let set = |name| Some(state.get(name).to_owned()).filter(|value| !value.is_empty());
        let filters = Conditions::of_form(state.conditions().parameters(), today)?;
        Ok((name, ordered(&filters, set("sort"), set("order"))?))
    };
    let (draft, _) = searches::add(&web.app, &member.caller, parse, post).await?;
    let answered = draft.respond(|search| receipt::of_id(search.id.get())).await;
    let answered = answered.map_err(ApiError::from)?;
    let id = added_id(&answered, |search| search.id.get()).ok_or(ApiError::NotFound)?;
    Ok(Redirect::to(&format!("{PATH}/{id}")))
}

/// `GET /searches/{id}`: opens the list of a search, with `?new=1` its new names.
async fn open(found: RequestedSearch, RawQuery(query): RawQuery) -> Redirect {
    let state = list_of(&found.search);
    let is_new = !Fields::from_query(query.as_deref()).text("new").is_empty();
    let state = if is_new { new::after(&state, found.search.seen) } else { state };
    Redirect::to(&state.path())
}

/// `POST /searches/{id}`: renames a search.
async fn rename(found: RequestedSearch, Form(fields): Form<Fields>) -> Result<Redirect, PageError> {
    let RequestedSearch { web, member, search } = found;
    let name = Some(fields.text("name").trim().to_owned());
    let patch = SearchPatch { name, ..SearchPatch::default() };
    let changed = web.app.store.change_search(&member.caller, search.id, patch).await;
    changed.map_err(ApiError::from)?;
    Ok(RENAMED.at(PATH))
}

/// `GET /searches/{id}/delete`.
async fn confirm_delete(found: RequestedSearch) -> Markup {
    let deletion = Deletion {
        item: NavItem::Drops,
        noun: "search",
        path: &format!("{PATH}/{}", found.search.id),
        description: html! { p { b { (found.search.name) } } },
        consequence: "Alert rules created from it stay.",
    };
    deletion.page(&found.member)
}

/// `POST /searches/{id}/delete`.
async fn remove(found: RequestedSearch) -> Result<Response, PageError> {
    let RequestedSearch { web, member, search } = found;
    let acting = Acting::new(&web, &member)?;
    web.app.store.remove_search(&acting.caller, search.id).await.map_err(ApiError::from)?;
    Ok(acting.redirect(PATH, &[REMOVED.parameter()]))
}
