//! `/checks`: whether selected names are free, asked at registries and in the DNS. The page is loaded
//! again until every result has come.

use axum::Router;
use axum::extract::{RawQuery, State as WebState};
use axum::http::HeaderValue;
use axum::http::header::REFRESH;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use maud::{Markup, html};

use crate::Web;
use crate::components::Column::Text;
use crate::components::{self, Column, ago, counted, query, seen_basis, seen_class, seen_word};
use crate::drops::bulk;
use crate::error::PageError;
use crate::form::{Fields, Form, LargeForm};
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::owned::STYLES;
use crate::service::app::Now;
use crate::service::checks::{Checked, Checks, NAMES_MAX};
use crate::service::error::ApiError;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::watchlist::{next, parse_name};

const PATH: &str = "/checks";
/// Seconds after which the page is loaded again.
const RELOAD_S: HeaderValue = HeaderValue::from_static("4");
const COLUMNS: [Column<'_>; 4] = [Text("Name"), Text("State"), Text("Because"), Text("Checked")];

/// Routes of checks.
pub fn routes() -> Router<Web> {
    Router::new().route(PATH, get(show).post(begin))
}

/// `POST /checks`: queues a check of each selected name, unless its result is fresh.
async fn begin(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Result<Redirect, PageError> {
    let names = bulk::names(&web, &member, &fields).await?;
    if names.is_empty() || names.len() > NAMES_MAX {
        let what = format!("select 1 to {NAMES_MAX} names to check, not {}", names.len());
        return Err(ApiError::parameter("domain", what).into());
    }
    if let Some(checks) = &web.app.reach.checks {
        for name in &names {
            // The page says which names are not checked.
            let _ = checks.begin(member.caller.account, name);
        }
    }
    let mut sent: Vec<(&str, &str)> = names.iter().map(|name| ("domain", name.as_str())).collect();
    sent.push(("next", next(&fields)));
    Ok(Redirect::to(&query::with(&sent, PATH)))
}

/// `GET /checks?domain=…`: the results that have come.
async fn show(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    RawQuery(sent): RawQuery,
) -> Result<Response, PageError> {
    let fields = Fields::from_query(sent.as_deref());
    let names = fields.all("domain").take(NAMES_MAX).map(parse_name);
    let names = names.collect::<Result<Vec<DomainName>, _>>()?;
    let checks = web.app.reach.checks.as_deref();
    let account = member.caller.account;
    let is_waiting =
        |name: &DomainName| checks.is_some_and(|checks| checks.is_waiting(account, name));
    let waiting = names.iter().filter(|name| is_waiting(name)).count() as u32;
    let said = match (checks, waiting) {
        (None, _) => "Registry checks are off on this server.".to_owned(),
        (_, 0) => "All results have come.".to_owned(),
        (_, waiting) => {
            format!("{} to go. This page is loaded again by itself.", counted(waiting, "name"))
        }
    };
    let page = Page::new("Checks", "Whether the names that you selected are free.")
        .at(NavItem::Drops)
        .styles(STYLES)
        .show(
            Some(&member.viewer),
            html! {
                div.head { h1 { "Checks" } }
                p.soft.lead role="status" { (said) }
                (components::table("Table of checks", "cards", &COLUMNS, html! {
                    tbody { @for name in &names { (row(checks, account, name, member.viewer.now)) } }
                }))
                p { a.button href=(next(&fields)) { "Back to the list" } }
            },
        );
    let mut response = page.into_response();
    if waiting > 0 {
        response.headers_mut().insert(REFRESH, RELOAD_S);
    }
    Ok(response)
}

fn row(checks: Option<&Checks>, account: AccountId, name: &DomainName, now: Now) -> Markup {
    let is_waiting = checks.is_some_and(|checks| checks.is_waiting(account, name));
    let checked = checks.and_then(|checks| checks.result(account, name));
    let today = Day::nearest(now.0);
    html! {
        tr {
            th scope="row" { (components::name_linked(name.as_str(), name.tld())) }
            @match checked {
                _ if is_waiting => { td data-label="State" { span.soft { "queued" } } td {} td {} }
                Some(Checked::Seen(seen)) => {
                    td data-label="State" { @if seen.is_verified() { span.confirmed { "✓ " } } span.badge.(seen_class(&seen)) { (seen_word(&seen)) } }
                    td data-label="Because" { @if let Some(basis) = seen_basis(&seen, None, today) { (basis) } }
                    td data-label="Checked" { (ago(seen.at, now)) }
                }
                Some(Checked::Failed) => {
                    td data-label="State" { "no response" }
                    td data-label="Because" { "No source gave a usable answer, or the registry asked for a pause." }
                    td {}
                }
                None => {
                    td data-label="State" { span.soft { "not checked" } }
                    td data-label="Because" { "The checks of this hour are used up, or too many are queued. Try again later." }
                    td {}
                }
            }
        }
    }
}
