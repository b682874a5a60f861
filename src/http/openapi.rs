//! The OpenAPI 3.1 document: the table of operations in, JSON out.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::http::operations::{
    Access, Answer, Content, Group, OPERATIONS, Operation, Parameter, ParameterKind,
    ParameterPlace, Shape,
};
use crate::http::shapes;
use crate::vocab::limits::BODY_BYTES_MAX;
use crate::vocab::plan::Plan;

const DESCRIPTION: &str = "Domain names that are leaving registration: ranked drops, prefix search, \
    dossiers, watchlists, alert rules, claims and CSV exports. All dates are UTC. `HEAD` is answered \
    wherever `GET` is, without the body. Every answer has an `X-Request-Id`: name it when you report \
    a fault. A parameter of the query that is empty counts as absent. `x-plan` is the least plan an \
    operation takes, `x-counts` what it counts against.";

static DOCUMENT: LazyLock<Value> = LazyLock::new(make);

/// The document of this build.
pub fn document() -> &'static Value {
    &DOCUMENT
}

fn make() -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut schemas = BTreeMap::new();
    add_shape(&mut schemas, ERROR);
    for operation in OPERATIONS {
        let shapes = operation.answers.iter().filter_map(|answer| match answer.content {
            Content::Json(shape) => Some(shape),
            Content::Text(_) | Content::Refusal => None,
        });
        shapes.chain(operation.body).for_each(|shape| add_shape(&mut schemas, shape));
        let item = paths.entry(operation.path).or_default();
        item.insert(operation.method.to_lowercase(), described(operation));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "dropdex",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": env!("CARGO_PKG_LICENSE") },
        },
        "servers": [{ "url": "/" }],
        "tags": Group::ALL.map(|group| json!({ "name": group.as_str() })),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": headers(),
            "parameters": {
                "IfNoneMatch": {
                    "name": "If-None-Match",
                    "in": "header",
                    "required": false,
                    "description": "The `ETag` of an answer that is held: 304 without a body if it still is the \
                                    answer. Counts as any request.",
                    "schema": { "type": "string" },
                },
            },
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key: `ddx_` and 48 hexadecimal digits.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-dropdex",
                    "description": "Somebody who has logged in to the pages.",
                },
            },
        },
    })
}

const ERROR: Shape = Shape::of::<shapes::Error>();

fn add_shape(schemas: &mut BTreeMap<String, Value>, shape: Shape) {
    let mut parts = vec![((shape.name)().into_owned(), (shape.schema)())];
    (shape.parts)(&mut parts);
    for (name, schema) in parts {
        let mut schema = serde_json::to_value(schema).expect("a schema is JSON");
        without_formats_of_null(&mut schema);
        schemas.insert(name, schema);
    }
}

/// Takes the size of numbers (`int32`, `double`) away where there may be none: it is nothing that null
/// could have, and validators take it for a rule.
fn without_formats_of_null(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let types = members.get("type").and_then(Value::as_array);
            let is_number = |it: &Value| it == "integer" || it == "number";
            if types.is_some_and(|types| types.iter().any(is_number)) {
                members.remove("format");
            }
            members.values_mut().for_each(without_formats_of_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_formats_of_null),
        _ => {}
    }
}

fn reference(shape: Shape) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", (shape.name)()) })
}

/// What carries the headers of a counted request.
fn headers() -> Value {
    let number =
        |description| json!({ "description": description, "schema": { "type": "integer" } });
    let text = |description| json!({ "description": description, "schema": { "type": "string" } });
    json!({
        "RateLimitLimit": number("The day's allowance."),
        "RateLimitRemaining": number("What is left of it."),
        "RateLimitReset": number("When it starts anew: the next 00:00 UTC, in Unix seconds."),
        "RetryAfter": number("Seconds to wait."),
        "RequestId": text("The name of the request, as in the server's log."),
        "ETag": text("A tag of the answer: send it in `If-None-Match` to be told whether it still holds."),
        "IndexGeneration": text("The generation of the index that answered."),
        "CacheControl": text("Keep it for yourself, and ask before you use it again."),
    })
}

fn described(operation: &Operation) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.group.as_str()],
        "summary": operation.summary,
        "responses": responses(operation),
    });
    if !operation.description.is_empty() {
        described["description"] = operation.description.into();
    }
    let mut parameters: Vec<Value> = operation.parameters.iter().map(parameter).collect();
    if operation.tagged {
        parameters.push(json!({ "$ref": "#/components/parameters/IfNoneMatch" }));
    }
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    let (plan, counts) = match operation.access {
        Access::Everybody => (None, None),
        Access::Key => (Some(Plan::Pro), Some("request")),
        Access::Export => (Some(Plan::Core), Some("export")),
    };
    described["x-plan"] = plan.map(Plan::as_str).into();
    described["x-counts"] = counts.into();
    if let Some(shape) = operation.body {
        described["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": reference(shape) } },
        });
    }
    described["security"] = match operation.access {
        Access::Everybody => json!([]),
        Access::Key => json!([{ "key": [] }]),
        Access::Export => json!([{ "key": [] }, { "session": [] }]),
    };
    described
}

fn parameter(parameter: &Parameter) -> Value {
    let place = match parameter.place {
        ParameterPlace::Path => "path",
        ParameterPlace::Query => "query",
        ParameterPlace::Header => "header",
    };
    let mut schema = match parameter.kind {
        ParameterKind::Integer { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        ParameterKind::Id => json!({ "type": "integer", "format": "int64", "minimum": 1 }),
        ParameterKind::Text { chars_max } => {
            json!({ "type": "string", "minLength": 1, "maxLength": chars_max })
        }
        ParameterKind::Format(format) => {
            json!({ "type": "string", "minLength": 1, "format": format })
        }
        ParameterKind::SomeOf(words) => {
            let word = words.join("|");
            json!({ "type": "string", "pattern": format!("^ *({word})? *(, *({word})? *)*$") })
        }
        ParameterKind::Date => json!({ "type": "string", "format": "date" }),
        ParameterKind::OneOf { words, .. } => json!({ "type": "string", "enum": words }),
    };
    match parameter.kind {
        ParameterKind::Integer { default: Some(default), .. } => schema["default"] = default.into(),
        ParameterKind::OneOf { default: Some(default), .. } => schema["default"] = default.into(),
        _ => {}
    }
    let mut described = json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": schema,
    });
    if parameter.place == ParameterPlace::Query && !parameter.required {
        described["allowEmptyValue"] = true.into();
    }
    described
}

/// What it says of itself, and what its access and body bring along. A status that has more than
/// one reason tells all of them.
fn responses(operation: &Operation) -> BTreeMap<String, Value> {
    let mut responses = BTreeMap::new();
    for answer in operation.answers {
        add_answer(&mut responses, answer);
    }
    let is_open = operation.access == Access::Everybody;
    // Whoever watches the service is always answered.
    let sheds =
        !operation.path.starts_with("/api/health") && !operation.path.starts_with("/api/ready");
    let takes = operation.body.is_some() || !operation.parameters.is_empty();
    let body = format!("The body has more than {BODY_BYTES_MAX} bytes.");
    let plan = match operation.access {
        Access::Export => "The plan has no CSV exports (below Core), or another site asked.",
        _ => "The plan has no JSON API (below Pro).",
    };
    for (applies, status, description) in [
        (
            takes && !is_open,
            400,
            "A parameter, header or member of the body is not as it should be.",
        ),
        (!is_open, 401, "No valid key."),
        (!is_open, 403, plan),
        (operation.body.is_some(), 413, &body),
        (operation.body.is_some(), 415, "The body does not say that it is JSON."),
        (!is_open, 429, "The day's allowance is used up."),
        (operation.body.is_some(), 408, "The body did not come in time."),
        (true, 500, "A fault of the server's."),
        (operation.changes && !is_open, 503, "Nothing can be changed at the moment."),
        (sheds, 503, "The server has too much to do at the moment, or this takes it too long."),
    ] {
        if applies {
            add_refusal(&mut responses, status, description);
        }
    }
    if operation.tagged {
        responses.insert("304".to_owned(), json!({ "description": "What is held still holds." }));
    }
    for (status, description) in
        [("414", "The address is too long."), ("431", "The headers are too many or too long.")]
    {
        responses.insert(status.to_owned(), json!({ "description": description }));
    }
    for (status, response) in &mut responses {
        add_headers(operation, status, response);
    }
    responses
}

/// The headers of an answer. None is promised by the document: what never reached a handler lacks some.
fn add_headers(operation: &Operation, status: &str, response: &mut Value) {
    let is_refused_first = matches!(status, "401" | "403" | "414" | "431");
    let is_counted = operation.access != Access::Everybody && !is_refused_first;
    let is_tagged = operation.tagged && matches!(status, "200" | "304");
    let is_of_index = operation.of_index && matches!(status, "200" | "304");
    let tells_when = matches!(status, "429" | "503");
    for (applies, name, header) in [
        (true, "X-Request-Id", "RequestId"),
        (is_counted, "X-RateLimit-Limit", "RateLimitLimit"),
        (is_counted, "X-RateLimit-Remaining", "RateLimitRemaining"),
        (is_counted, "X-RateLimit-Reset", "RateLimitReset"),
        (tells_when, "Retry-After", "RetryAfter"),
        (is_tagged, "ETag", "ETag"),
        (is_tagged, "Cache-Control", "CacheControl"),
        (is_of_index, "X-Index-Generation", "IndexGeneration"),
    ] {
        if applies {
            let header = format!("#/components/headers/{header}");
            response["headers"][name] = json!({ "$ref": header });
        }
    }
}

fn add_answer(responses: &mut BTreeMap<String, Value>, answer: &Answer) {
    let (kind, schema) = match answer.content {
        Content::Json(shape) => ("application/json", reference(shape)),
        Content::Text(kind @ "application/json") => (kind, json!({ "type": "object" })),
        Content::Text(kind) => (kind, json!({ "type": "string" })),
        Content::Refusal => return add_refusal(responses, answer.status, answer.description),
    };
    let response = json!({
        "description": answer.description,
        "content": { kind: { "schema": schema } },
    });
    responses.insert(answer.status.to_string(), response);
}

fn add_refusal(responses: &mut BTreeMap<String, Value>, status: u16, description: &str) {
    if let Some(known) = responses.get_mut(&status.to_string()) {
        let before = known["description"].as_str().unwrap_or_default();
        known["description"] = format!("{before} {description}").into();
        return;
    }
    let response = json!({
        "description": description,
        "content": { "application/json": { "schema": reference(ERROR) } },
    });
    responses.insert(status.to_string(), response);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` below a value.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(to)) = members.get("$ref") {
                    found.push(to.clone());
                }
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let mut found = Vec::new();
        references(document(), &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for reference in found {
            let place = reference.strip_prefix('#').expect("within the document");
            assert!(document().pointer(place).is_some(), "{reference}");
        }
    }

    #[test]
    fn names_of_operations_are_unique_and_no_path_is_told_twice() {
        let mut ids: Vec<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), OPERATIONS.len());
        let mut routes: Vec<_> =
            OPERATIONS.iter().map(|operation| (operation.path, operation.method)).collect();
        routes.sort_unstable();
        routes.dedup();
        assert_eq!(routes.len(), OPERATIONS.len());
    }

    #[test]
    fn parameters_in_a_path_are_those_that_are_told() {
        for operation in OPERATIONS {
            let told: Vec<_> = operation
                .parameters
                .iter()
                .filter(|parameter| parameter.place == ParameterPlace::Path)
                .map(|parameter| format!("{{{}}}", parameter.name))
                .collect();
            let in_path: Vec<_> =
                operation.path.split('/').filter(|part| part.starts_with('{')).collect();
            assert_eq!(told, in_path, "{}", operation.path);
        }
    }
}
