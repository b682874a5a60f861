//! Schemas of tools, derived from the OpenAPI document without its references and custom formats, which
//! MCP clients do not understand.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::edge::operation::{Operation, Parameter, ParameterPlace};
use crate::mcp::{ROWS_DEFAULT, ROWS_MAX, default_fields};
use crate::operations::document;

/// Returns the schema of a tool's arguments.
pub fn arguments(operation: &Operation) -> Arc<JsonObject> {
    let described = described(operation);
    let (mut properties, mut required) = (JsonObject::new(), Vec::new());
    for parameter in described["parameters"].as_array().into_iter().flatten() {
        let is_own =
            |it: &&Parameter| it.place != ParameterPlace::Header && parameter["name"] == it.name;
        let Some(own) = operation.parameters.iter().find(is_own) else { continue };
        let mut schema = resolved(&parameter["schema"]);
        schema["description"] = own.description.into();
        if own.name == "limit" {
            schema["maximum"] = ROWS_MAX.into();
            schema["default"] = ROWS_DEFAULT.into();
        }
        if own.name == "fields" {
            schema["default"] = default_fields().into();
        }
        properties.insert(own.name.to_owned(), schema);
        if own.required {
            required.push(own.name);
        }
    }
    let body = &described["requestBody"]["content"]["application/json"]["schema"];
    let body = resolved(body);
    for (name, schema) in body["properties"].as_object().into_iter().flatten() {
        properties.insert(name.clone(), schema.clone());
    }
    let mut required: Vec<Value> = required.into_iter().map(Value::from).collect();
    required.extend(body["required"].as_array().into_iter().flatten().cloned());
    object(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

/// Returns the schema of the result; `None` if the operation has no JSON response.
pub fn result(operation: &Operation) -> Option<Arc<JsonObject>> {
    let responses = described(operation)["responses"].as_object()?;
    let (_, found) = responses.iter().find(|(status, _)| status.starts_with('2'))?;
    let schema = &found["content"]["application/json"]["schema"];
    let mut schema = resolved(schema.as_object().map(|_| schema)?);
    schema["type"] = "object".into();
    Some(object(schema))
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
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                let target = document().pointer(target.trim_start_matches('#'));
                return resolved(target.expect("the document is complete"));
            }
            let kept = |(name, _): &(&String, &Value)| {
                !matches!(name.as_str(), "format" | "example" | "examples")
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
