//! `/account/api`: creates or replaces the API key, shows it once, and lists code examples.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use maud::{Markup, html};

use crate::accounts::Profile;
use crate::vocab::plan::Plan;
use crate::web::Web;
use crate::web::account::plan::word;
use crate::web::account::{Tab, profile_of, tab_page};
use crate::web::components::grouped;
use crate::web::error::PageError;
use crate::web::logged_in::LoggedIn;

/// Request of the code examples. It has results on any day.
const EXAMPLE: &str = "/api/v1/drops?tld=com&max_len=8&limit=5";

/// `GET /account/api`.
pub async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
) -> Result<Markup, PageError> {
    let profile = profile_of(&web, &member)?;
    let home = home(&web, &headers);
    let main = html! {
        (plan_hint(&web, &profile))
        (key_panel(&profile))
        (examples(&home, None))
    };
    Ok(tab_page(&member.viewer, Tab::Api, &html! {}, &main))
}

/// `POST /account/key`: creates a key and shows it once. The previous key stops working at once.
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
                "Copy your key now. You will not be able to see it again. "
                @if issued.replaced { "Your previous key no longer works." }
            }
            div.row {
                code.key #key { (key) }
                button type="button" data-copy-from="key" { "Copy key" }
            }
        }
        (examples(&home, Some(key)))
    };
    Ok(tab_page(&member.viewer, Tab::Api, &html! {}, &main))
}

fn plan_hint(web: &Web, profile: &Profile) -> Markup {
    let pro = web.app.store.plans().limits(Plan::Pro);
    html! {
        @if profile.plan < Plan::Pro {
            p.hint {
                @if web.settings.public_plans {
                    "The JSON API requires the Pro plan, with " (grouped(pro.requests_per_day.into()))
                    " requests per day. You are on the " (word(profile.plan)) " plan. "
                } @else {
                    "Your plan does not include the JSON API. "
                }
                @if profile.plan == Plan::Core { "You can use a key for CSV exports today. " }
                @else { "You can create a key now and use it once your plan includes the API. " }
                a href="/account/plan" { "See your plan" }
            }
        }
    }
}

fn key_panel(profile: &Profile) -> Markup {
    let question = "Your current key stops working at once. Create a new key?";
    html! {
        section.panel {
            h2 { "API key" }
            @if let Some(last4) = &profile.key_last4 {
                p { "Your key ends in " code { (last4) } ". For security, it cannot be shown again. If you lost it, replace it." }
                form method="post" action="/account/key" data-confirm=(question) {
                    button type="submit" { "Replace key" }
                }
            } @else {
                p { "You have no API key yet. A key is shown once, when you create it." }
                form method="post" action="/account/key" { button type="submit" { "Create API key" } }
            }
        }
    }
}

/// Base URL of this server: the configured public URL, or the one this browser uses.
fn home(web: &Web, headers: &HeaderMap) -> String {
    if let Some(home) = &web.outside.home {
        return home.as_str().to_owned();
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost:8080");
    let scheme = if web.settings.plain_http { "http" } else { "https" };
    format!("{scheme}://{host}")
}

/// Code examples. Without `key`, they read it from the environment.
fn examples(home: &str, key: Option<&str>) -> Markup {
    let texts = [
        ("curl", "curl", curl(home, key)),
        ("python", "Python", python(home, key)),
        ("javascript", "JavaScript", javascript(home, key)),
    ];
    html! {
        section.panel {
            h2 { "Use your key" }
            @if key.is_none() {
                p.soft { "The examples read the key from the environment variable " code { "DROPDEX_KEY" } "." }
            }
            @for (id, word, text) in &texts {
                div.head {
                    h3 { (word) }
                    button.quiet.small type="button" data-copy-from=(id) aria-label={ "Copy the " (word) " example" } { "Copy" }
                }
                pre id=(id) tabindex="0" role="region" aria-label={ (word) " example" } { (text) }
            }
            p { "For all endpoints, see the " a href="/docs" { "API reference" } "." }
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
        "const response = await fetch(\"{home}{EXAMPLE}\", {{\n  \
         headers: {{ Authorization: {value} }},\n}});\n\
         for (const {{ dqs, name }} of (await response.json()).drops) console.log(dqs, name);"
    )
}
