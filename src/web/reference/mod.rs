//! `/docs`: the API reference, generated from the same tables and schemas as the OpenAPI document. It is
//! rendered once.

mod shape;
mod webhooks;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::routing::get;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use crate::Web;
use crate::components::Column::Text;
use crate::components::table;
use crate::edge::operation::{
    Access, Content, Description, Group, Operation, Parameter, ParameterKind, ParameterPlace,
};
use crate::layout::{NavItem, Page};
use crate::viewer::Viewer;
use crate::vocab::plan::Plan;

/// Routes of the reference.
pub fn routes(api: Description) -> Router<Web> {
    // The part of the page that does not depend on the viewer.
    let operations_html = Arc::new(OnceLock::new());
    let page = async move |viewer: Viewer| {
        show(&viewer, api, operations_html.get_or_init(|| operations(api).into_string()))
    };
    Router::new().route("/docs", get(page))
}

/// `GET /docs`.
fn show(viewer: &Viewer, api: Description, operations_html: &str) -> Markup {
    let plan = viewer.member.as_ref().map(|member| member.caller.plan);
    let main = html! {
        div.reference {
            (contents(api))
            div {
                (introduction(plan))
                (PreEscaped(operations_html))
                (webhooks::section())
            }
        }
    };
    Page::new(
        "API reference",
        "Endpoints, parameters, errors, webhooks and schemas of the dropdex JSON API.",
    )
    .at(NavItem::Reference)
    .styles(&["reference.css"])
    .scripts(&["reference.js"])
    .show(Some(viewer), main)
}

fn contents(api: Description) -> Markup {
    html! {
        nav.contents aria-label="On this page" {
            ul {
                li { a href="#start" { "Getting started" } }
                li { a href="#limits" { "Rate limits" } }
                li { a href="#errors" { "Errors" } }
                @for group in Group::ALL {
                    li {
                        a href={ "#" (anchor(group)) } { (group.as_str()) }
                        ul {
                            @for operation in operations_in(api, group) {
                                li { a href={ "#" (operation.id) } { (operation.summary) } }
                            }
                        }
                    }
                }
                li { a href="#webhooks" { "Webhooks" } }
                li { a href="#shapes" { "Schemas" } }
            }
        }
    }
}

fn anchor(group: Group) -> String {
    group.as_str().to_lowercase()
}

fn operations_in(api: Description, group: Group) -> impl Iterator<Item = &'static Operation> {
    api.operations.iter().filter(move |operation| operation.group == group)
}

fn introduction(plan: Option<Plan>) -> Markup {
    html! {
        h1 { "API reference" }
        p {
            "JSON over HTTPS. Dates are in UTC. Machine-readable: "
            a href="/api/openapi.json" { "OpenAPI 3.1 document" }
            "."
        }
        section.panel #start aria-labelledby="start-title" {
            h2 #start-title { "Getting started" }
            p {
                "Send your API key with every request in the header "
                code { "Authorization: Bearer ddx_…" } ". "
                @match plan {
                    None => { a href="/login?next=/account/api" { "Log in" } " or " a href="/signup" { "sign up" } " to get one." }
                    Some(plan) if plan < Plan::Pro => { "Your plan (" (plan.as_str()) ") does not include the JSON API. " a href="/account/plan" { "See your plan" } "." }
                    Some(_) => { a href="/account/api" { "Create or replace your key" } ". It is shown once." }
                }
            }
            div.field.key.needs-js {
                label for="key" { "Insert your key into the examples" }
                input #key type="password" autocomplete="off" spellcheck="false" placeholder="ddx_" aria-describedby="key-help";
                p.help #key-help { "The key stays in this page. It is not sent or stored." }
            }
            (example("curl -H \"Authorization: Bearer $DROPDEX_KEY\" \"$DROPDEX_URL/api/v1/drops?tld=com&max_len=8&limit=5\""))
        }
        section.panel #limits aria-labelledby="limits-title" {
            h2 #limits-title { "Rate limits" }
            p {
                "Each JSON request with a valid key of a plan with API access counts, regardless of its response. "
                "The count resets at 00:00 UTC. Responses have these headers:"
            }
            dl.facts {
                dt { code { "X-RateLimit-Limit" } } dd { "requests per day" }
                dt { code { "X-RateLimit-Remaining" } } dd { "requests left today" }
                dt { code { "X-RateLimit-Reset" } } dd { "time of the reset in Unix seconds" }
                dt { code { "RateLimit" } ", " code { "RateLimit-Policy" } } dd { "the same in the form of an IETF draft" }
            }
            p {
                "CSV exports have a separate daily limit. Above a limit, the response is 429 with "
                code { "Retry-After" } "."
            }
        }
        section.panel #errors aria-labelledby="errors-title" {
            h2 #errors-title { "Errors" }
            p { "Errors are JSON with a message in " code { "error" } " and a machine-readable " code { "code" } ". " code { "parameter" } " names the parameter or body member at fault." }
            (table("Statuses", "", &[Text("Status"), Text("Means")], html! {
                tbody { @for (status, means) in STATUSES { tr { th scope="row" { (status) } td { (means) } } } }
            }))
        }
    }
}

const STATUSES: [(u16, &str); 10] = [
    (400, "A parameter, header or body property is invalid. The message names it."),
    (401, "The API key is missing or invalid."),
    (403, "Not included in your plan (PLAN_REQUIRED), or above its limit (PLAN_LIMIT)."),
    (404, "The resource does not exist or belongs to another account."),
    (405, "The path does not support this method. The Allow header lists the supported ones."),
    (409, "Conflict with the current state, or the idempotency key was used before."),
    (413, "The request body is too large."),
    (415, "The Content-Type is not application/json."),
    (
        429,
        "The daily limit is reached, or too many exports run at once, or you write too fast. Wait for the time in Retry-After.",
    ),
    (503, "Changes are currently refused or the server is not ready. Try again."),
];

/// All operations and schemas.
fn operations(api: Description) -> Markup {
    html! {
        @for group in Group::ALL {
            section.group aria-labelledby=(anchor(group)) {
                h2 id=(anchor(group)) { (group.as_str()) }
                @for operation in operations_in(api, group) { (described(api, operation)) }
            }
        }
        section.group aria-labelledby="shapes" {
            h2 #shapes { "Schemas" }
            @for (name, schema) in shape::all((api.document)()) {
                article.panel id=(shape::anchor(name)) {
                    h3 { (name) }
                    (shape::described(schema))
                }
            }
        }
    }
}

fn described(api: Description, operation: &Operation) -> Markup {
    html! {
        article.panel.operation id=(operation.id) {
            h3 { (operation.summary) }
            p.path {
                span.method.(operation.method.to_lowercase()) { (operation.method) }
                " " code { (operation.path) }
                @match operation.access {
                    Access::Everybody => { " " span.badge { "no key" } }
                    Access::Key => { " " span.badge.info { "Pro and above" } }
                    Access::Export => { " " span.badge.info { "Core and above" } }
                }
            }
            @if !operation.description.is_empty() { p { (code_words(operation.description)) } }
            @if !operation.parameters.is_empty() { (parameters(operation)) }
            @if let Some(shape) = operation.body {
                p { "Body: " (shape::link(&(shape.name)())) }
            }
            @if operation.file { p { "Body: the file, as CSV or TSV." } }
            (example(&curl(api, operation)))
            (answers(operation))
        }
    }
}

fn parameters(operation: &Operation) -> Markup {
    let label = format!("Parameters of {}", operation.summary);
    let rows = html! {
        tbody {
            @for parameter in operation.parameters {
                tr {
                    th scope="row" {
                        code { (parameter.name) }
                        @if parameter.required { " " span.soft { "required" } }
                        @if parameter.place == ParameterPlace::Header { " " span.soft { "header" } }
                    }
                    td { (value(parameter)) }
                    td { (code_words(parameter.description)) }
                }
            }
        }
    };
    table(&label, "", &[Text("Parameter"), Text("Value"), Text("Meaning")], rows)
}

fn value(parameter: &Parameter) -> Markup {
    match parameter.kind {
        ParameterKind::Integer { min, max, default } => html! {
            (min) " to " (max)
            @if let Some(default) = default { ", default " (default) }
        },
        ParameterKind::Id => html! { "an id" },
        ParameterKind::Sequence => html! { "the number of an event, or 0" },
        ParameterKind::Text { chars_max } => html! { "text, 1 to " (chars_max) " characters" },
        ParameterKind::Format { format, .. } => html! { (reading(format)) },
        ParameterKind::List { format } => html! { (reading(format)) ", separated by commas" },
        ParameterKind::SomeOf(words) => html! {
            "any of "
            @for (place, word) in words.iter().enumerate() {
                @if place > 0 { ", " }
                code { (word) }
            }
        },
        ParameterKind::Date => html! { "YYYY-MM-DD" },
        ParameterKind::Facets { words } => html! {
            "any of "
            @for word in words { code { (word) } ", " }
            code { "fact:SOURCE.FACT" }
        },
        ParameterKind::Sort { words, default } => html! {
            @for word in words { code { (word) } ", " }
            code { "fact:SOURCE.FACT" } "; default " code { (default) }
        },
        ParameterKind::Flag => html! { code { "true" } " or " code { "false" } ", the default" },
        ParameterKind::OneOf { words, default } => html! {
            @for (place, word) in words.iter().enumerate() {
                @if place > 0 { ", " }
                code { (word) }
            }
            @if let Some(default) = default { "; default " code { (default) } }
        },
    }
}

/// Describes a text format.
fn reading(format: &str) -> &str {
    match format {
        "domain" => "a name",
        "tld" => "TLDs",
        "name-prefix" => "start of a name",
        "name-part" => "part of a name",
        "pattern" => "a pattern",
        "regex" => "a regular expression",
        "label" => "a label",
        "text" => "texts",
        "fact" => "conditions on facts",
        "fact-name" => "names of facts",
        "tag" => "tags",
        "currency" => "a currency",
        "day" | "past-day" => "a date",
        "cursor" => "a cursor",
        "instant" => "a timestamp or a date",
        _ => "text",
    }
}

fn answers(operation: &Operation) -> Markup {
    html! {
        ul.answers {
            @for answer in operation.responses {
                li {
                    b { (answer.status) } " "
                    @match answer.content {
                        Content::Json(shape) => { (shape::link(&(shape.name)())) ": " }
                        Content::Text(kind) => { code { (kind) } ": " }
                        Content::Refusal => {}
                    }
                    (answer.description)
                }
            }
        }
    }
}

/// Renders text, with words in backticks as code.
fn code_words(text: &str) -> Markup {
    html! {
        @for (place, piece) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// Renders an example call. The script of the page fills in the key and the server URL.
fn example(text: &str) -> Markup {
    html! {
        div.example {
            pre tabindex="0" role="group" aria-label="Example" { code data-example { (text) } }
            button.quiet.small.needs-js type="button" data-copy-example { "Copy" }
        }
    }
}

fn curl(api: Description, operation: &Operation) -> String {
    let mut path = operation.path.to_owned();
    for (place, sample) in
        [("{name}", "solar.com"), ("{id}", "1234567890"), ("{delivery}", "msg_2x7kq")]
    {
        path = path.replace(place, sample);
    }
    let needed: Vec<_> = operation
        .parameters
        .iter()
        .filter(|parameter| parameter.place == ParameterPlace::Query && parameter.required)
        .map(|parameter| match parameter.name {
            "q" => "q=solar",
            _ => "domain=solar.com",
        })
        .collect();
    if !needed.is_empty() {
        path = format!("{path}?{}", needed.join("&"));
    }
    let mut call = String::from("curl");
    if operation.method != "GET" {
        call.push_str(&format!(" -X {}", operation.method));
    }
    if operation.access != Access::Everybody {
        call.push_str(" -H \"Authorization: Bearer $DROPDEX_KEY\"");
    }
    if let Some(shape) = operation.body {
        let body = sample(api, &(shape.name)());
        call.push_str(&format!(" \\\n  -H 'Content-Type: application/json' -d '{body}'"));
    }
    if operation.file {
        call.push_str(" \\\n  -H 'Content-Type: text/csv' --data-binary @majestic.csv");
    }
    call.push_str(&format!(" \\\n  \"$DROPDEX_URL{path}\""));
    call
}

/// Returns an example of a request body.
fn sample(api: Description, shape: &str) -> Value {
    let schema = &(api.document)()["components"]["schemas"][shape];
    schema.get("example").cloned().unwrap_or_else(|| serde_json::json!({ "vote": "up" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dropdex_http::description;

    #[test]
    fn all_operations_are_listed_and_all_links_resolve() {
        let api = description();
        let page = html! {
            (contents(api)) (introduction(None)) (operations(api)) (webhooks::section())
        };
        let page = page.into_string();
        for operation in api.operations {
            assert!(page.contains(&format!("id=\"{}\"", operation.id)), "{}", operation.id);
        }
        let mut links = 0;
        for rest in page.split("href=\"#").skip(1) {
            let target = rest.split('"').next().expect("an end");
            assert!(page.contains(&format!("id=\"{target}\"")), "{target}");
            links += 1;
        }
        assert!(links > 2 * api.operations.len(), "{links}");
    }

    #[test]
    fn examples_have_required_bodies() {
        let api = description();
        for operation in api.operations.iter().filter(|operation| operation.body.is_some()) {
            assert!(curl(api, operation).contains(" -d '{"), "{}", operation.id);
        }
    }
}
