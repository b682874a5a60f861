//! Schemas of tools, derived from the OpenAPI document without its references and custom formats, which
//! MCP clients do not understand.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::edge::operation::{Operation, Parameter, ParameterKind};
use crate::mcp::tool::{AgentTool, BodyType, List, ROWS_DEFAULT};
use crate::operations::document;
use crate::query::conditions::{CONDITIONS, Condition, Kind};

/// The tool whose schema describes the filters; those of the others refer to it.
const WITH_FILTERS: &str = "list_drops";

/// Returns the schema of a tool's arguments. It has no patterns, because lists may be arrays or text.
pub fn arguments(tool: &AgentTool) -> Arc<JsonObject> {
    let body = resolved(body(tool.operation));
    let (mut properties, mut required) = (JsonObject::new(), Vec::new());
    for argument in &tool.arguments {
        let own = tool.operation.parameters.iter().find(|it| it.name == argument.inner);
        let schema = match (argument.name, own) {
            ("limit", _) => limit(tool),
            ("fields", _) => fields(tool),
            (_, Some(own)) => parameter(tool, own),
            (_, None) => without_null(body["properties"][argument.inner].clone()),
        };
        let required_members = body["required"].as_array();
        if own.is_some_and(|own| own.required)
            || required_members.is_some_and(|it| it.contains(&argument.inner.into()))
        {
            required.push(argument.name);
        }
        properties.insert(argument.name.to_owned(), schema);
    }
    object(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

/// Removes `null` from the types: an argument without a value is absent.
fn without_null(mut schema: Value) -> Value {
    if let Value::Array(kinds) = &schema["type"] {
        schema["type"] = kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
    }
    schema
}

fn limit(tool: &AgentTool) -> Value {
    let by_default = match tool.sends("limit") {
        true => ROWS_DEFAULT.to_string(),
        false => "as many as fit".to_owned(),
    };
    let text = format!("Maximum rows, by default {by_default}.");
    json!({"type": "integer", "minimum": 1, "maximum": tool.rows_max(), "description": text})
}

fn fields(tool: &AgentTool) -> Value {
    let shown = tool.shown();
    let others: Vec<_> = tool.columns.iter().copied().filter(|it| !shown.contains(it)).collect();
    let text = match shown {
        [] => "Members of the answer, comma-separated; by default all that fit.".to_owned(),
        shown => format!("Columns, by default {}; also {}.", shown.join(","), others.join(", ")),
    };
    json!({"type": "string", "description": text})
}

/// Whether values have a form that the short description of a condition does not explain.
fn needs_long_text(kind: &Kind) -> bool {
    !matches!(kind, Kind::Number { .. } | Kind::OneOf(..) | Kind::Facts(_) | Kind::Release(_))
}

fn parameter(tool: &AgentTool, own: &Parameter) -> Value {
    let is_it = |it: &&Condition| it.parameter == own.name && it.text == own.description;
    let condition = CONDITIONS.iter().find(is_it);
    if condition.is_some() && tool.tool.name != WITH_FILTERS {
        let is_number = matches!(own.kind, ParameterKind::Integer { .. });
        return json!({"type": if is_number { "integer" } else { "string" }});
    }
    let text = match condition {
        Some(Condition { kind, member_text, .. }) if !needs_long_text(kind) => member_text,
        _ => own.description,
    };
    match own.kind {
        ParameterKind::Integer { min, max, .. } => {
            json!({"type": "integer", "minimum": min, "maximum": max, "description": text})
        }
        ParameterKind::Id | ParameterKind::Sequence => {
            json!({"type": "integer", "description": text})
        }
        ParameterKind::SomeOf(words)
        | ParameterKind::Sort { words, .. }
        | ParameterKind::Facets { words } => {
            let text = format!("{text} Of {}.", words.join(", "));
            json!({"type": "string", "description": text})
        }
        ParameterKind::Flag => json!({"type": "boolean", "description": text}),
        ParameterKind::OneOf { words, .. } => json!({"enum": words, "description": text}),
        ParameterKind::Text { .. }
        | ParameterKind::Format { .. }
        | ParameterKind::List { .. }
        | ParameterKind::Date => {
            json!({"type": "string", "description": text})
        }
    }
}

/// Returns the members of an operation's body.
pub fn members(operation: &Operation) -> impl Iterator<Item = (&'static str, BodyType)> {
    let properties = target(body(operation))["properties"].as_object();
    properties.into_iter().flatten().map(|(name, schema)| {
        let has = |kind: &str| match &schema["type"] {
            Value::Array(kinds) => kinds.iter().any(|it| it == kind),
            only => only == kind,
        };
        let of = match () {
            () if has("array") => BodyType::List,
            () if has("number") || has("integer") => BodyType::Number,
            () => BodyType::Other,
        };
        (name.as_str(), of)
    })
}

fn body(operation: &Operation) -> &'static Value {
    &described(operation)["requestBody"]["content"]["application/json"]["schema"]
}

/// Returns the columns of the first of these lists, or the members of the response.
pub fn columns(operation: &Operation, lists: &[List]) -> Vec<&'static str> {
    let responses = described(operation)["responses"].as_object();
    let found = responses.into_iter().flatten().find(|(status, _)| status.starts_with('2'));
    let Some((_, found)) = found else { return Vec::new() };
    let mut schema = target(&found["content"]["application/json"]["schema"]);
    if let Some(list) = lists.first() {
        schema = target(&schema["properties"][list.member]["items"]);
    }
    let kinds = schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
    let mut columns = Vec::new();
    for kind in kinds {
        for (name, _) in target(kind)["properties"].as_object().into_iter().flatten() {
            if !columns.contains(&name.as_str()) {
                columns.push(name.as_str());
            }
        }
    }
    columns
}

/// Returns the schema at the path of a reference.
fn at(path: &str) -> &'static Value {
    let found = document().pointer(path.trim_start_matches('#'));
    found.expect("the document is complete")
}

/// Follows a reference.
fn target(schema: &'static Value) -> &'static Value {
    schema["$ref"].as_str().map_or(schema, |path| target(at(path)))
}

fn described(operation: &Operation) -> &'static Value {
    &document()["paths"][operation.path][operation.method.to_ascii_lowercase()]
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(members) => Arc::new(members),
        _ => unreachable!("schemas of tools are objects"),
    }
}

/// Returns a schema with its references replaced by their targets.
fn resolved(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            if let Some(path) = members.get("$ref").and_then(Value::as_str) {
                return resolved(at(path));
            }
            let kept = |(name, _): &(&String, &Value)| {
                !matches!(
                    name.as_str(),
                    "format" | "example" | "examples" | "minLength" | "maxLength"
                )
            };
            // The keys of `properties` are names of members and not keywords.
            let resolve = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                ("properties", Value::Object(inner)) => {
                    let inner = inner.iter().map(|(name, value)| (name.clone(), resolved(value)));
                    (name.clone(), Value::Object(inner.collect()))
                }
                _ => (name.clone(), resolved(value)),
            };
            Value::Object(members.iter().filter(kept).map(resolve).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(resolved).collect()),
        other => other.clone(),
    }
}
