//! API keys on `/account/security`: creates, replaces and revokes them, shows each once, and lists code
//! examples.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::Web;
use crate::account::plan::word;
use crate::account::security::{Refused, page as security_page};
use crate::account::{SECURITY, Tab, profile_of, tab_page};
use crate::accounts::{ApiKey, Key, NewKey, Profile, Replaced, WriteError};
use crate::components::Column::{Hidden, Text};
use crate::components::{date, grouped, table};
use crate::edge::home::Home;
use crate::error::PageError;
use crate::field::{Field, Input};
use crate::form::{Fields, Form};
use crate::logged_in::LoggedIn;
use crate::notice::Notice;
use crate::owned::instant;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::telemetry::security::{self, SecurityEvent};
use crate::vocab::day::Day;
use crate::vocab::ids::KeyId;
use crate::vocab::limits::RULE_NAME_CHARS_MAX;
use crate::vocab::plan::Plan;
use crate::vocab::scope::{Scope, Scopes};
use crate::vocab::time::UnixMs;

/// Request in the code examples, which has results on any day.
const EXAMPLE: &str = "/api/v1/drops?tld=com&max_len=8&limit=5";

/// Choices of a key's lifetime: form value and label.
const LIFETIMES: [(&str, &str); 5] = [
    ("", "never"),
    ("30", "in 30 days"),
    ("90", "in 90 days"),
    ("365", "in a year"),
    ("730", "in two years"),
];

pub const REVOKED: Notice = Notice::new("revoked", "The key was revoked. It no longer works.");
pub const GONE: Notice = Notice::new("gone", "This key was revoked before.");

/// `POST /account/key`: creates or replaces the first key, and shows it once. The previous key stops
/// working at once.
pub async fn issue(
    State(web): State<Web>,
    member: LoggedIn,
    Home(home): Home,
) -> Result<Markup, PageError> {
    let issued = web.app.store.issue_own_key(&member.caller, member.viewer.now.0).await?;
    let event = if issued.replaced { SecurityEvent::KeyReplaced } else { SecurityEvent::KeyMade };
    security::record(event, member.email.as_str());
    let before = if issued.replaced { "Your previous key no longer works." } else { "" };
    shown_once(&web, &member, &home, &issued.key, before)
}

/// `POST /account/keys`: creates a key with a name, scopes and an expiry.
pub async fn make(
    State(web): State<Web>,
    member: LoggedIn,
    Home(home): Home,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let again = |problem: &str| {
        let page = security_page(&web, &member, &home, &html! {}, Refused::Key(&fields, problem))?;
        Ok((StatusCode::BAD_REQUEST, page).into_response())
    };
    let scopes: Result<Vec<Scope>, _> = fields.all("scope").map(str::parse).collect();
    let Some(scopes) = scopes.ok().and_then(Scopes::of) else {
        return again("Choose what the key may do.");
    };
    let days = match fields.text("days") {
        "" => None,
        text => match text.parse() {
            Ok(days) => Some(days),
            Err(_) => return again("Choose when the key expires."),
        },
    };
    let new = NewKey { name: fields.text("name").trim().to_owned(), scopes, days };
    match web.app.store.make_key(&member.caller, new, member.viewer.now.0).await {
        Ok(key) => {
            security::record(SecurityEvent::KeyMade, member.email.as_str());
            Ok(shown_once(&web, &member, &home, &key, "")?.into_response())
        }
        Err(WriteError::Invalid { what, .. }) => again(&format!("The name {what}.")),
        Err(err @ WriteError::TooMany { .. }) => again(&format!("Revoke a key first: {err}.")),
        Err(err) => Err(err.into()),
    }
}

/// `POST /account/keys/replace`: replaces a key. With `keep`, the old key works for another day.
pub async fn replace(
    State(web): State<Web>,
    member: LoggedIn,
    Home(home): Home,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let id = KeyId::parse(fields.text("id")).ok_or(ApiError::NotFound)?;
    let (old, before) = if fields.text("keep").is_empty() {
        (Replaced::AtOnce, "The old key no longer works.")
    } else {
        (Replaced::AfterGrace, "The old key works for 24 hours more.")
    };
    match web.app.store.replace_key(&member.caller, id, old, member.viewer.now.0).await {
        Ok(key) => {
            security::record(SecurityEvent::KeyReplaced, member.email.as_str());
            Ok(shown_once(&web, &member, &home, &key, before)?.into_response())
        }
        Err(err @ WriteError::TooMany { .. }) => {
            let problem = format!("Revoke a key first, or replace this one at once: {err}.");
            let page = security_page(
                &web,
                &member,
                &home,
                &html! {},
                Refused::Key(&Fields::default(), &problem),
            )?;
            Ok((StatusCode::BAD_REQUEST, page).into_response())
        }
        Err(err) => Err(err.into()),
    }
}

/// `POST /account/keys/revoke`: revokes a key, which stops working at once.
pub async fn revoke(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Redirect, PageError> {
    let id = KeyId::parse(fields.text("id")).ok_or(ApiError::NotFound)?;
    let notice = match web.app.store.revoke_key(&member.caller, id).await {
        Ok(()) => {
            security::record(SecurityEvent::KeyRevoked, member.email.as_str());
            REVOKED
        }
        Err(WriteError::NotFound) => GONE,
        Err(err) => return Err(err.into()),
    };
    Ok(notice.at(SECURITY))
}

/// Renders the keys of an account. `refused` is a rejected form with its problem.
pub fn section(
    web: &Web,
    profile: &Profile,
    home: &str,
    now: Now,
    refused: Option<(&Fields, &str)>,
) -> Markup {
    html! {
        (plan_hint(web, profile))
        (key_panel(profile, UnixMs::from_instant(now.0)))
        @if !profile.keys.is_empty() || refused.is_some() { (new_key_form(refused)) }
        (examples(home, None))
    }
}

/// Renders the page that shows a new key. `before` states what happened to the previous key.
fn shown_once(
    web: &Web,
    member: &LoggedIn,
    home: &str,
    key: &ApiKey,
    before: &str,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let key = key.reveal();
    let main = html! {
        (plan_hint(web, &profile))
        section.panel {
            h2 { "Your new key" }
            p.hint role="status" {
                "Copy your key now. You will not be able to see it again. " (before)
            }
            div.row {
                code.key #key { (key) }
                button type="button" data-copy-from="key" { "Copy key" }
            }
            p { a href=(SECURITY) { "Back to your keys" } }
        }
        (examples(home, Some(key)))
    };
    Ok(tab_page(&member.viewer, Tab::Security, &html! {}, &main))
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

fn key_panel(profile: &Profile, now: UnixMs) -> Markup {
    let head = [
        Text("Name"),
        Text("Ends in"),
        Text("May use"),
        Text("Created"),
        Text("Last used"),
        Text("Expires"),
        Hidden("Actions"),
    ];
    html! {
        section.panel {
            h2 { "API keys" }
            @if profile.keys.is_empty() {
                p { "You have no API key yet. A key is shown once, when you create it." }
                form method="post" action="/account/key" { button type="submit" { "Create API key" } }
            } @else {
                p { "For security, a key cannot be shown again. If you lost one, replace it." }
                (table("API keys", "cards", &head, html! {
                    tbody { @for key in &profile.keys { (key_row(key, now)) } }
                }))
            }
        }
    }
}

fn key_row(key: &Key, now: UnixMs) -> Markup {
    let today = Day::nearest(now.instant());
    let day = |day: Option<Day>, none| {
        html! {
            @if let Some(day) = day { (date(day, today)) } @else { span.soft { (none) } }
        }
    };
    let replace = "Replace this key with a new one?";
    let revoke = "Programs that use this key stop working at once. Revoke it?";
    html! {
        tr {
            th scope="row" { (key.name) }
            td data-label="Ends in" { code { (key.key.last4()) } }
            td data-label="May use" { (key.scopes) }
            td data-label="Created" { (day(key.created, "unknown")) }
            td data-label="Last used" { (day(key.used, "never")) }
            td data-label="Expires" {
                @match key.until {
                    None => span.soft { "never" },
                    Some(until) if key.works_at(now) => { (instant(until)) " UTC" },
                    Some(_) => span.badge.warn { "expired" },
                }
            }
            td {
                details.actions {
                    summary { "Change" }
                    form method="post" action="/account/keys/replace" data-confirm=(replace) {
                        input type="hidden" name="id" value=(key.id);
                        label.keep {
                            input type="checkbox" name="keep" value="yes";
                            " The old key works for 24 hours more"
                        }
                        button.quiet.small type="submit" { "Replace" }
                    }
                    form method="post" action="/account/keys/revoke" data-confirm=(revoke) {
                        input type="hidden" name="id" value=(key.id);
                        button.quiet.small type="submit" { "Revoke" }
                    }
                }
            }
        }
    }
}

/// Renders the form for a key with limits. `refused` is a rejected form with its problem.
fn new_key_form(refused: Option<(&Fields, &str)>) -> Markup {
    let value = |name| refused.map_or("", |(fields, _)| fields.text(name));
    let is_chosen = |scope: Scope| match refused {
        Some((fields, _)) => fields.all("scope").any(|sent| sent == scope.as_str()),
        None => scope == Scope::Read,
    };
    let name = Input {
        is_required: true,
        longest: Some(RULE_NAME_CHARS_MAX),
        placeholder: Some("home server"),
        ..Input::TEXT
    };
    html! {
        details.panel open[refused.is_some()] {
            summary { "Create another key" }
            @if let Some((_, problem)) = refused { p.problem role="alert" { (problem) } }
            form method="post" action="/account/keys" {
                (Field::new("name", "Name").help("Name of the program that uses the key, so that you recognise it.").input(value("name"), name))
                fieldset {
                    legend { "May use" }
                    @for scope in Scope::ALL {
                        label.keep {
                            input type="checkbox" name="scope" value=(scope) checked[is_chosen(scope)];
                            " " (scope) " " span.soft { (scope.description()) }
                        }
                    }
                }
                (Field::new("days", "Expires").select(value("days"), &LIFETIMES))
                button type="submit" { "Create key" }
            }
        }
    }
}

/// Renders code examples. Without `key`, the examples read it from the environment.
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
