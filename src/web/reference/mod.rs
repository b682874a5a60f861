//! `/docs`: the API reference, generated from the same tables and schemas as the OpenAPI document: an index of
//! operations, and a page for each group of them. The pages are rendered once.

mod shape;
mod webhooks;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use crate::Web;
use crate::components::Column::Text;
use crate::components::table;
use crate::edge::operation::{
    Access, Content, Description, Group, Operation, Parameter, ParameterKind, ParameterPlace,
};
use crate::error::PageError;
use crate::layout::{NavItem, Page};
use crate::service::error::ApiError;
use crate::viewer::Viewer;
use crate::vocab::plan::Plan;

/// Path of the pages below the index.
const PAGES: &str = "/docs/reference";
/// Pages without operations.
const SCHEMAS: &str = "Schemas";
const WEBHOOKS: &str = "Webhooks";

/// The content of a page.
struct Section {
    title: &'static str,
    html: String,
}

/// Routes of the reference.
pub fn routes(api: Description) -> Router<Web> {
    let sections = Arc::new(OnceLock::new());
    let of_group = async move |viewer: Viewer, Path(sent): Path<String>| {
        let sections: &Vec<Section> = sections.get_or_init(|| sections_of(api));
        let section = sections.iter().find(|section| slug(section.title) == sent);
        let section = section.ok_or(ApiError::NotFound)?;
        Ok::<_, PageError>(show(&viewer, section.title, &PreEscaped(&section.html)))
    };
    let index = async move |viewer: Viewer| {
        let plan = viewer.member.as_ref().map(|member| member.caller.plan);
        show(&viewer, "API reference", &html! { (introduction(plan)) (index(api)) })
    };
    Router::new().route("/docs", get(index)).route("/docs/reference/{page}", get(of_group))
}

fn sections_of(api: Description) -> Vec<Section> {
    let of_group = |group: Group| {
        let content = html! {
            h1 { (group.as_str()) }
            (key_field())
            @for operation in operations_in(api, group) { (described(api, operation)) }
        };
        Section { title: group.as_str(), html: content.into_string() }
    };
    let others = [
        Section { title: WEBHOOKS, html: webhooks::section().into_string() },
        Section { title: SCHEMAS, html: schemas(api).into_string() },
    ];
    Group::ALL.into_iter().map(of_group).chain(others).collect()
}

/// Renders a page, with links to all of them beside it.
fn show(viewer: &Viewer, title: &str, content: &impl maud::Render) -> Markup {
    let titles = Group::ALL.iter().map(|group| group.as_str()).chain([WEBHOOKS, SCHEMAS]);
    let current = |here: &str| (here == title).then_some("page");
    let main = html! {
        div.reference {
            nav.contents aria-label="API reference" {
                ul {
                    li { a href="/docs" aria-current=[current("API reference")] { "Overview" } }
                    @for title in titles {
                        li { a href=(path(title)) aria-current=[current(title)] { (title) } }
                    }
                    li { a href="/docs/getting-started" { "All documentation" } }
                }
            }
            div { (content) }
        }
    };
    let title = if title == "API reference" { title.to_owned() } else { format!("API: {title}") };
    let about = format!("{title} of dropdex: endpoints, parameters, errors and examples.");
    Page::new(&title, &about)
        .at(NavItem::Reference)
        .styles(&["reference.css"])
        .scripts(&["reference.js"])
        .show(Some(viewer), main)
}

/// Path of a page by its title.
fn path(title: &str) -> String {
    format!("{PAGES}/{}", slug(title))
}

fn slug(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

/// Lists the operations by group.
fn index(api: Description) -> Markup {
    html! {
        @for group in Group::ALL {
            section.group aria-labelledby=(slug(group.as_str())) {
                h2 id=(slug(group.as_str())) { a href=(path(group.as_str())) { (group.as_str()) } }
                ul.operations {
                    @for operation in operations_in(api, group) {
                        li id=(operation.id) {
                            a href={ (path(group.as_str())) "#" (operation.id) } {
                                (method(operation)) " " code { (operation.path) }
                            }
                            " " (operation.summary)
                        }
                    }
                }
            }
        }
    }
}

fn method(operation: &Operation) -> Markup {
    html! { span.method.(operation.method.to_lowercase()) { (operation.method) } }
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
                    None => { a href="/login?next=/account/security" { "Log in" } " or " a href="/signup" { "sign up" } " to get one." }
                    Some(plan) if plan < Plan::Pro => { "Your plan (" (plan.as_str()) ") does not include the JSON API. " a href="/account/plan" { "See your plan" } "." }
                    Some(_) => { a href="/account/security" { "Create or replace your key" } ". It is shown once." }
                }
            }
            (key_field())
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

/// The field for the key, which a script inserts into the examples.
fn key_field() -> Markup {
    html! {
        div.field.key.needs-js {
            label for="key" { "Insert your key into the examples" }
            input #key type="password" autocomplete="off" spellcheck="false" placeholder="ddx_" aria-describedby="key-help";
            p.help #key-help { "The key stays in this page. It is not sent or stored." }
        }
    }
}

fn schemas(api: Description) -> Markup {
    html! {
        h1 { (SCHEMAS) }
        @for (name, schema) in shape::all((api.document)()) {
            article.panel id=(shape::anchor(name)) {
                h2 { (name) }
                (shape::described(schema))
            }
        }
    }
}

fn described(api: Description, operation: &Operation) -> Markup {
    html! {
        article.panel.operation id=(operation.id) {
            h2 { (operation.summary) }
            p.path {
                (method(operation))
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
    fn every_operation_has_a_place_and_every_link_a_target() {
        let api = description();
        let sections = sections_of(api);
        let index = html! { (introduction(None)) (index(api)) }.into_string();
        let pages = sections.iter().map(|section| (path(section.title), &section.html));
        let pages: Vec<_> = pages.chain([("/docs".to_owned(), &index)]).collect();
        for operation in api.operations {
            let id = format!("id=\"{}\"", operation.id);
            assert_eq!(pages.iter().filter(|(_, html)| html.contains(&id)).count(), 2, "{id}");
        }
        let mut links = 0;
        for rest in pages.iter().flat_map(|(_, html)| html.split("href=\"/docs").skip(1)) {
            let target = format!("/docs{}", rest.split('"').next().expect("an end"));
            let (to, part) = target.split_once('#').unwrap_or((&target, ""));
            let (_, html) = pages.iter().find(|(path, _)| path == to).expect(to);
            assert!(part.is_empty() || html.contains(&format!("id=\"{part}\"")), "{target}");
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
