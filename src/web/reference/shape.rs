//! Schemas of the OpenAPI document as tables of properties.

use maud::{Markup, html};
use serde_json::Value;

/// All schemas of a document, sorted by name.
pub fn all(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let schemas = document["components"]["schemas"].as_object();
    schemas.expect("the document has schemas").iter()
}

/// Anchor of a schema on its page.
pub fn anchor(name: &str) -> String {
    format!("shape-{name}")
}

/// Link to a schema.
pub fn link(name: &str) -> Markup {
    html! { a href={ (super::path(super::SCHEMAS)) "#" (anchor(name)) } { (name) } }
}

/// Renders the description of a schema and its properties, values or variants.
pub fn described(schema: &Value) -> Markup {
    html! {
        @if let Some(text) = schema["description"].as_str() { p { (super::code_words(text)) } }
        @if let Some(words) = schema["enum"].as_array() {
            p {
                @for (place, word) in words.iter().filter_map(Value::as_str).enumerate() {
                    @if place > 0 { ", " }
                    code { (word) }
                }
            }
        }
        @if let Some(variants) = schema["oneOf"].as_array() {
            @for (place, variant) in variants.iter().enumerate() {
                @if place > 0 { p { "or" } }
                (members(variant))
            }
        }
        (members(schema))
    }
}

fn members(schema: &Value) -> Markup {
    let Some(members) = schema["properties"].as_object() else { return html! {} };
    let required = required(schema);
    html! {
        div.table {
            table {
                thead { tr { th scope="col" { "Property" } th scope="col" { "Type" } th scope="col" { "Meaning" } } }
                tbody {
                    @for (name, member) in members {
                        tr {
                            th scope="row" {
                                code { (name) }
                                @if !required.contains(&name.as_str()) { " " span.soft { "optional" } }
                            }
                            td { (kind(member)) }
                            td { @if let Some(text) = member["description"].as_str() { (super::code_words(text)) } }
                        }
                    }
                }
            }
        }
    }
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Type of a property, linked to its schema.
fn kind(schema: &Value) -> Markup {
    if let Some(reference) = schema["$ref"].as_str() {
        return link(reference.rsplit('/').next().unwrap_or(reference));
    }
    if let Some(variants) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        return html! {
            @for (place, variant) in variants.iter().enumerate() {
                @if place > 0 { " or " }
                (kind(variant))
            }
        };
    }
    let words: Vec<_> = match &schema["type"] {
        Value::String(word) => vec![word.as_str()],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => vec!["any"],
    };
    html! {
        @for (place, word) in words.iter().enumerate() {
            @if place > 0 { " or " }
            @match *word {
                "array" => { "list of " (kind(&schema["items"])) }
                "string" => (text(schema)),
                word => { (word) (range(schema)) }
            }
        }
    }
}

fn text(schema: &Value) -> Markup {
    html! {
        @match schema["format"].as_str() {
            Some("date") => "date, YYYY-MM-DD",
            Some("date-time") => "time, ISO 8601",
            _ => "string",
        }
    }
}

fn range(schema: &Value) -> Markup {
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    html! {
        @match (number("minimum"), number("maximum")) {
            (Some(min), Some(max)) => { ", " (min) " to " (max) }
            (Some(min), None) if min > 0.0 => { ", " (min) " or more" }
            (None, Some(max)) => { ", at most " (max) }
            _ => {}
        }
    }
}
