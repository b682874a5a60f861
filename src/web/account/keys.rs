//! The API keys of an account as part of a page, with examples of their use.

use maud::{Markup, html};

use crate::Web;
use crate::account::plan::word;
use crate::accounts::{Key, Profile};
use crate::components::Column::{Hidden, Text};
use crate::components::{date, grouped, table};
use crate::field::{Field, Input};
use crate::form::Fields;
use crate::notice::Notice;
use crate::owned::instant;
use crate::service::app::Now;
use crate::vocab::day::Day;
use crate::vocab::limits::RULE_NAME_CHARS_MAX;
use crate::vocab::plan::Plan;
use crate::vocab::scope::Scope;
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

pub fn plan_hint(web: &Web, profile: &Profile) -> Markup {
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
pub fn examples(home: &str, key: Option<&str>) -> Markup {
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
