//! `/account/api`: the key, made or replaced, shown once, with lines that use it.

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::http::header::HOST;
use maud::{Markup, html};

use crate::accounts::Profile;
use crate::vocab::plan::Plan;
use crate::web::Web;
use crate::web::account::{Tab, profile_of, tab_page};
use crate::web::components::grouped;
use crate::web::error::PageError;
use crate::web::notice::{self, Notice};
use crate::web::viewer::LoggedIn;

pub const WELCOME: Notice =
    Notice::new("welcome", "Your account is ready. Make an API key here, or go on to the drops.");
const NOTICES: [Notice; 1] = [WELCOME];

/// What the lines ask for: short, and something on any day.
const EXAMPLE: &str = "/api/v1/drops?tld=com&max_len=8&limit=5";

/// `GET /account/api`.
pub async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let profile = profile_of(&web, &member)?;
    let home = home(&web, &headers);
    let main = html! {
        (plan_hint(&web, &profile))
        (key_panel(&profile))
        (lines(&home, None))
    };
    let notice = notice::shown(&NOTICES, query.as_deref());
    Ok(tab_page(&member.viewer, Tab::Api, &notice, &main))
}

/// `POST /account/key`: a new key, on this answer alone; the one before stops working at once.
pub async fn issue(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
) -> Result<Markup, PageError> {
    let issued = web.app.store.issue_own_key(&member.caller, member.viewer.now.0).await?;
    let profile = profile_of(&web, &member)?;
    let (home, key) = (home(&web, &headers), issued.key.reveal());
    let main = html! {
        (plan_hint(&web, &profile))
        section.panel {
            h2 { "Your new key" }
            p.hint role="status" {
                "Keep it now: it is shown this once. "
                @if issued.replaced { "The key you had before no longer works." }
            }
            div.row {
                code.key #key { (key) }
                button type="button" data-copy-from="key" { "Copy the key" }
            }
        }
        (lines(&home, Some(key)))
    };
    Ok(tab_page(&member.viewer, Tab::Api, &html! {}, &main))
}

fn plan_hint(web: &Web, profile: &Profile) -> Markup {
    let pro = web.app.store.plans().limits(Plan::Pro);
    html! {
        @if profile.plan < Plan::Pro {
            p.hint {
                "The JSON API begins with the plan pro, which has " (grouped(pro.requests_per_day.into()))
                " requests a day; yours is " (profile.plan) ". A key made now works from then on. "
                @if profile.plan == Plan::Core { "CSV exports take it today. " }
                a href="/account/plan" { "See the plans" }
            }
        }
    }
}

fn key_panel(profile: &Profile) -> Markup {
    let question = "The key you have stops working at once. Make a new one?";
    html! {
        section.panel {
            h2 { "API key" }
            @if let Some(last4) = &profile.key_last4 {
                p { "Your key ends in " code { (last4) } ". It cannot be shown again; a new one takes its place." }
                form method="post" action="/account/key" data-confirm=(question) {
                    button type="submit" { "Replace the key" }
                }
            } @else {
                p { "You have no key yet. It is shown once, when it is made." }
                form method="post" action="/account/key" { button type="submit" { "Make a key" } }
            }
        }
    }
}

/// Where this server is reached: as its operator says, else as this browser does.
fn home(web: &Web, headers: &HeaderMap) -> String {
    if let Some(home) = &web.outside.home {
        return home.as_str().to_owned();
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost:8080");
    let scheme = if web.settings.plain_http { "http" } else { "https" };
    format!("{scheme}://{host}")
}

/// Lines that use the key; without it they take it from the environment.
fn lines(home: &str, key: Option<&str>) -> Markup {
    let texts = [
        ("curl", "curl", curl(home, key)),
        ("python", "Python", python(home, key)),
        ("javascript", "JavaScript", javascript(home, key)),
    ];
    html! {
        section.panel {
            h2 { "Use it" }
            @if key.is_none() {
                p.soft { "These lines take the key from the environment variable " code { "DROPDEX_KEY" } "." }
            }
            @for (id, word, text) in &texts {
                div.head {
                    h3 { (word) }
                    button.quiet.small type="button" data-copy-from=(id) aria-label={ "Copy the lines for " (word) } { "Copy" }
                }
                pre id=(id) tabindex="0" role="region" aria-label={ "Lines for " (word) } { (text) }
            }
            p { "All it answers is in the " a href="/docs" { "API reference" } "." }
        }
    }
}

fn curl(home: &str, key: Option<&str>) -> String {
    let key = key.unwrap_or("$DROPDEX_KEY");
    format!("curl -H \"Authorization: Bearer {key}\" \\\n  \"{home}{EXAMPLE}\"")
}

fn python(home: &str, key: Option<&str>) -> String {
    let (import, value) = match key {
        Some(key) => ("", format!("\"Bearer {key}\"")),
        None => ("import os\n", "\"Bearer \" + os.environ[\"DROPDEX_KEY\"]".to_owned()),
    };
    format!(
        "import json\n{import}import urllib.request\n\n\
         request = urllib.request.Request(\n    \"{home}{EXAMPLE}\",\n    \
         headers={{\"Authorization\": {value}}},\n)\n\
         for drop in json.load(urllib.request.urlopen(request))[\"drops\"]:\n    \
         print(drop[\"dqs\"], drop[\"name\"])"
    )
}

fn javascript(home: &str, key: Option<&str>) -> String {
    let value = match key {
        Some(key) => format!("\"Bearer {key}\""),
        None => "`Bearer ${process.env.DROPDEX_KEY}`".to_owned(),
    };
    format!(
        "const answer = await fetch(\"{home}{EXAMPLE}\", {{\n  \
         headers: {{ Authorization: {value} }},\n}});\n\
         for (const {{ dqs, name }} of (await answer.json()).drops) console.log(dqs, name);"
    )
}
