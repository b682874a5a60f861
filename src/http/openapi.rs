//! Builds the OpenAPI 3.1 document from a table of operations.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::edge::code::{Code, Retry};
use crate::edge::error::ErrorResponse;
use crate::edge::operation::{
    Access, Content, Cost, Group, Operation, Parameter, ParameterKind, ParameterPlace,
    ResponseSpec, Shape,
};
use crate::outbound::alert::Envelope;
use crate::vocab::limits::{BODY_BYTES_MAX, FACTS_BYTES_MAX};
use crate::vocab::plan::Plan;
use crate::vocab::scope::Scope;

const DESCRIPTION: &str = "Domain names that are leaving registration: ranked drops, prefix search, \
    dossiers, watchlists, alert rules, claims and CSV exports. All dates are UTC. Every `GET` endpoint \
    also accepts `HEAD`. Every response has an `X-Request-Id`; quote it when you report a problem. An \
    empty query parameter counts as absent. `x-plan` is the lowest plan that includes an operation, \
    `x-counts` the allowance that it counts against.";

const NO_EXPORTS: &str = "Your plan does not include CSV exports (below Core), or the request came \
    from another site.";
const EXPORTS_USED_UP: &str =
    "Your daily exports are used up, or your plan's maximum of concurrent exports is running.";
const TOO_MANY_WRITES: &str = "You write faster than your plan allows in a minute (`write_limit`).";
const OVERLOADED: &str =
    "The server is overloaded, or too many queries of your account are in progress.";

/// Builds the document.
pub fn describe(operations: &[Operation]) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut schemas = BTreeMap::new();
    add_shape(&mut schemas, ERROR);
    add_shape(&mut schemas, MESSAGE);
    for operation in operations {
        let shapes = operation.responses.iter().filter_map(|response| match response.content {
            Content::Json(shape) => Some(shape),
            Content::Text(_) | Content::Refusal => None,
        });
        shapes.chain(operation.body).for_each(|shape| add_shape(&mut schemas, shape));
        let item = paths.entry(operation.path).or_default();
        let member = format!("{}/{{id}}", operation.path);
        let has_members = operations.iter().any(|it| it.path == member);
        item.insert(operation.method.to_lowercase(), described(operation, has_members));
    }
    let responses = share_responses(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "dropdex",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": {
                "name": env!("CARGO_PKG_LICENSE"),
                "identifier": env!("CARGO_PKG_LICENSE"),
            },
        },
        "servers": [{ "url": "/" }],
        "tags": tags(),
        "paths": paths,
        "webhooks": { "alert": { "post": alert() } },
        "components": {
            "schemas": schemas,
            "responses": responses,
            "headers": headers(),
            "parameters": {
                "IfMatch": {
                    "name": "If-Match",
                    "in": "header",
                    "required": false,
                    "description": "`ETag` of the resource as you know it, or `*`. If it has another one, or none, the \
                                    response is 412 and nothing is changed.",
                    "schema": { "type": "string" },
                },
                "Prefer": {
                    "name": "Prefer",
                    "in": "header",
                    "required": false,
                    "description": "`handling=lenient` ignores unknown query parameters, which are refused otherwise \
                                    (RFC 7240).",
                    "schema": { "type": "string" },
                },
                "IfNoneMatch": {
                    "name": "If-None-Match",
                    "in": "header",
                    "required": false,
                    "description": "`ETag` of a response that you have. If it is still current, the response \
                                    is 304 without a body. Counts as a request.",
                    "schema": { "type": "string" },
                },
            },
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "API key: `ddx_` and 48 hexadecimal digits.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-dropdex",
                    "description": "Session of a user who is logged in to the web pages.",
                },
            },
        },
    })
}

const ERROR: Shape = Shape::of::<ErrorResponse>();
const MESSAGE: Shape = Shape::of::<Envelope<'static>>();

/// Describes the request that the server sends to webhooks of alert rules and the watchlist.
fn alert() -> Value {
    let header = |name, description| json!({ "name": name, "in": "header", "required": true, "description": description, "schema": { "type": "string" } });
    json!({
        "operationId": "receiveAlert",
        "tags": [WEBHOOKS],
        "summary": "Message to a webhook",
        "description": "Sent to the webhooks of alert rules and of the watchlist, signed as Standard Webhooks \
                        specify. A receiver may get a message twice, with the same `webhook-id`. New members and \
                        values of `type` may be added.",
        "parameters": [
            header("webhook-id", "ID of the delivery, the same in every attempt."),
            header("webhook-timestamp", "Time of the attempt, in Unix seconds."),
            header("webhook-signature", "`v1,` and the HMAC-SHA256 in base64 of id, time and body, with dots between them."),
        ],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": reference(MESSAGE) } },
        },
        "responses": {
            "2XX": { "description": "Delivered. Respond within 15 seconds." },
            "410": { "description": "The receiver no longer exists, so the channel is switched off." },
            "default": { "description": "Not delivered; the message is sent again." },
        },
        "security": [],
    })
}

fn add_shape(schemas: &mut BTreeMap<String, Value>, shape: Shape) {
    let mut parts = vec![((shape.name)().into_owned(), (shape.schema)())];
    (shape.parts)(&mut parts);
    for (name, schema) in parts {
        schemas.insert(name, serde_json::to_value(schema).expect("a schema is JSON"));
    }
}

/// Tag of messages to webhooks. If an operation had it too, openapi-generator would overwrite the code of
/// the operation with that of the message.
const WEBHOOKS: &str = "Webhooks";

fn tags() -> Vec<Value> {
    let tag = |name: &str, description: &str| json!({ "name": name, "description": description });
    let messages = tag(WEBHOOKS, "Messages that the server sends to your webhooks.");
    let groups = Group::ALL.map(|group| tag(group.as_str(), group.description()));
    groups.into_iter().chain([messages]).collect()
}

fn reference(shape: Shape) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", (shape.name)()) })
}

/// Headers that several responses share.
fn headers() -> Value {
    let number = |description| json!({ "description": description, "schema": { "type": "integer", "format": "int64" } });
    let text = |description| json!({ "description": description, "schema": { "type": "string" } });
    json!({
        "RateLimitLimit": number("The day's allowance."),
        "RateLimitRemaining": number("Requests left of the allowance."),
        "RateLimitReset": number("When the allowance resets: the next 00:00 UTC, in Unix seconds."),
        "RateLimit": text("What is left of each limit, as in the IETF draft: `\"day\";r=99, \"writes\";r=59`."),
        "RateLimitPolicy": text("Each limit and its window in seconds: `\"day\";q=100;w=86400, \"writes\";q=60;w=60`."),
        "RetryAfter": number("Seconds to wait."),
        "RequestId": text("ID of the request, as in the server's log."),
        "Link": text("The next page, with `rel=\"next\"` (RFC 8288); absent from the last one."),
        "Location": text("Path of the new resource."),
        "IdempotencyReplayed": text("`true` if this is the stored response to an earlier request with the same `Idempotency-Key`."),
        "ETag": text("Tag of the response. Send it in `If-None-Match` to revalidate."),
        "ContentRange": text("The part of the file and its length: `bytes 0-99/5967`, or `bytes */5967` for a range behind the end."),
        "IndexGeneration": text("Generation of the index that served the response."),
        "CacheControl": text("`private, no-cache`: revalidate before every reuse; or `no-store`."),
        "WwwAuthenticate": text("`Bearer`; with `error=\"invalid_token\"` if the key is not valid, and `error=\"insufficient_scope\"` if it lacks a scope."),
    })
}

fn described(operation: &Operation, has_members: bool) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.group.as_str()],
        "summary": operation.summary,
        "responses": responses(operation, has_members),
    });
    if !operation.description.is_empty() {
        described["description"] = operation.description.into();
    }
    let mut parameters: Vec<Value> = operation.parameters.iter().map(parameter).collect();
    if operation.is_conditional() {
        parameters.push(json!({ "$ref": "#/components/parameters/IfMatch" }));
    }
    if operation.tagged {
        parameters.push(json!({ "$ref": "#/components/parameters/IfNoneMatch" }));
    }
    if operation.parameters.iter().any(|it| it.place == ParameterPlace::Query) {
        parameters.push(json!({ "$ref": "#/components/parameters/Prefer" }));
    }
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    let (plan, counts) = match operation.access {
        Access::Everybody => (None, None),
        Access::Key => {
            let counts = match operation.cost {
                Cost::Request => Some("request"),
                Cost::Suggestion => Some("suggestion"),
                Cost::Nothing => None,
            };
            (Some(Plan::Pro), counts)
        }
        Access::Export => (Some(Plan::Core), (operation.cost != Cost::Nothing).then_some("export")),
    };
    described["x-plan"] = plan.map(Plan::as_str).into();
    described["x-counts"] = counts.into();
    described["x-scope"] = operation.scope().map(Scope::as_str).into();
    if let Some(shape) = operation.body {
        described["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": reference(shape) } },
        });
    }
    if operation.file {
        let file = json!({ "schema": { "type": "string", "format": "binary" } });
        described["requestBody"] = json!({
            "required": true,
            "content": {
                "text/csv": file, "text/tab-separated-values": file, "application/octet-stream": file
            },
        });
    }
    described["security"] = match operation.access {
        Access::Everybody => json!([]),
        Access::Key => json!([{ "key": [] }]),
        Access::Export => json!([{ "key": [] }, { "session": [] }]),
    };
    described
}

/// An order or a facet by a fact.
const FACT: &str = "^fact:[a-z0-9_-]{1,40}[.][a-z0-9_-]{1,40}$";

fn list(item: Value) -> Value {
    json!({ "type": "array", "minItems": 1, "items": item })
}

fn parameter(parameter: &Parameter) -> Value {
    let mut schema = match parameter.kind {
        ParameterKind::Integer { min, max, .. } => {
            json!({ "type": "integer", "format": "int32", "minimum": min, "maximum": max })
        }
        ParameterKind::Id => json!({ "type": "integer", "format": "int64", "minimum": 1 }),
        ParameterKind::Sequence => json!({ "type": "integer", "format": "int64", "minimum": 0 }),
        ParameterKind::Text { chars_max } => {
            json!({ "type": "string", "minLength": 1, "maxLength": chars_max })
        }
        ParameterKind::Format { format, .. } => {
            json!({ "type": "string", "minLength": 1, "format": format })
        }
        ParameterKind::List { format } => {
            list(json!({ "type": "string", "minLength": 1, "format": format }))
        }
        ParameterKind::SomeOf(words) => list(json!({ "type": "string", "enum": words })),
        ParameterKind::Facets { words } => {
            let forms = [json!({ "enum": words }), json!({ "pattern": FACT })];
            list(json!({ "type": "string", "anyOf": forms }))
        }
        ParameterKind::Date => json!({ "type": "string", "format": "date" }),
        ParameterKind::OneOf { words, .. } => json!({ "type": "string", "enum": words }),
        ParameterKind::Flag => json!({ "type": "boolean", "default": false }),
        ParameterKind::Sort { words, default } => {
            let forms = [json!({ "enum": words }), json!({ "pattern": FACT })];
            json!({ "type": "string", "anyOf": forms, "default": default })
        }
    };
    match parameter.kind {
        ParameterKind::Integer { default: Some(default), .. } => schema["default"] = default.into(),
        ParameterKind::OneOf { default: Some(default), .. } => schema["default"] = default.into(),
        ParameterKind::Format { chars_max: Some(max), .. } => schema["maxLength"] = max.into(),
        _ => {}
    }
    let mut described = json!({
        "name": parameter.name,
        "in": parameter.place.as_str(),
        "required": parameter.required,
        "description": parameter.description,
        "schema": schema,
    });
    if parameter.is_list() {
        // `tld=com,net`: the same parameter twice is refused.
        described["style"] = "form".into();
        described["explode"] = false.into();
    }
    if parameter.place == ParameterPlace::Query {
        described["example"] = match parameter.kind {
            _ if parameter.is_list() => parameter.example.split(',').collect(),
            ParameterKind::Integer { .. } | ParameterKind::Id | ParameterKind::Sequence => {
                parameter.example.parse::<u32>().ok().into()
            }
            ParameterKind::Flag => (parameter.example == "true").into(),
            _ => parameter.example.into(),
        };
    }
    if parameter.place == ParameterPlace::Query && !parameter.required {
        described["allowEmptyValue"] = true.into();
    }
    described
}

/// Moves refusals that several operations have to a place of their own, and returns them by name. Each is named after
/// its status; the most frequent one of a status has no number.
fn share_responses(paths: &mut BTreeMap<&str, Map<String, Value>>) -> BTreeMap<String, Value> {
    let mut uses: BTreeMap<(String, String), (u32, Value)> = BTreeMap::new();
    let responses = |operation: &mut Value| match operation["responses"].take() {
        Value::Object(responses) => responses,
        _ => Map::new(),
    };
    for operation in paths.values_mut().flat_map(Map::values_mut) {
        let all = responses(operation);
        for (status, response) in all.iter().filter(|(status, _)| !status.starts_with('2')) {
            let key = (status.clone(), response.to_string());
            uses.entry(key).or_insert_with(|| (0, response.clone())).0 += 1;
        }
        operation["responses"] = all.into();
    }
    let mut shared: Vec<_> = uses.into_iter().filter(|(_, (count, _))| *count > 1).collect();
    shared.sort_by_key(|((status, text), (count, _))| {
        (status.clone(), Reverse(*count), text.clone())
    });
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for ((status, text), (_, response)) in shared {
        let code = status.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
        let words = code.and_then(|code| code.canonical_reason()).unwrap_or("Response");
        let word: String = words.chars().filter(char::is_ascii_alphanumeric).collect();
        let name = (1..)
            .map(|number| if number == 1 { word.clone() } else { format!("{word}{number}") })
            .find(|name| !named.contains_key(name))
            .expect("there are enough numbers");
        named.insert(name.clone(), response);
        names.insert(text, name);
    }
    for operation in paths.values_mut().flat_map(Map::values_mut) {
        let mut all = responses(operation);
        for response in all.values_mut() {
            if let Some(name) = names.get(&response.to_string()) {
                *response = json!({ "$ref": format!("#/components/responses/{name}") });
            }
        }
        operation["responses"] = all.into();
    }
    named
}

/// Returns the responses in the table, and those that follow from the operation.
fn responses(operation: &Operation, has_members: bool) -> BTreeMap<String, Value> {
    let mut responses = BTreeMap::new();
    for response in operation.responses {
        add_response(&mut responses, response);
    }
    add_refusals(&mut responses, operation);
    let cached = operation.tagged.then_some(("304", "Your cached response is still current."));
    let long = [("414", "The URL is too long."), ("431", "The headers are too large.")];
    for (status, description) in cached.into_iter().chain(long) {
        responses.insert(status.to_owned(), json!({ "description": description }));
    }
    for (status, response) in &mut responses {
        add_headers(operation, has_members, status, response);
    }
    responses
}

/// Adds the refusals that follow from access, body and effect. Descriptions for the same status are
/// joined in this order.
fn add_refusals(responses: &mut BTreeMap<String, Value>, operation: &Operation) {
    let mut add = |code: Code, text: &str| add_refusal(responses, code.status(), text);
    let is_limited = operation.access != Access::Everybody;
    match operation.access {
        Access::Everybody => {}
        Access::Key => {
            add(Code::PlanRequired, "Your plan does not include the JSON API (below Pro).");
            match operation.cost {
                Cost::Request => add(Code::RateLimited, "Your daily allowance is used up."),
                Cost::Suggestion => {
                    add(Code::SuggestionLimit, "Your suggestions of this minute are used up.");
                }
                Cost::Nothing => {}
            }
        }
        Access::Export => {
            add(Code::PlanRequired, NO_EXPORTS);
            add(Code::ExportsRunning, EXPORTS_USED_UP);
        }
    }
    if is_limited {
        add(Code::InvalidKey, "Missing or invalid credentials.");
        add(Code::InsufficientScope, "Your key lacks the scope (`insufficient_scope`).");
    }
    if is_limited && (operation.body.is_some() || !operation.parameters.is_empty()) {
        add(Code::InvalidValue, "A parameter, a header or a member of the body is invalid.");
    }
    if operation.file {
        add(Code::BodyTooLarge, &format!("The file is larger than {FACTS_BYTES_MAX} bytes."));
        add(Code::BodyTimeout, "The file did not arrive in time.");
    }
    if operation.is_conditional() {
        add(Code::PreconditionFailed, "The resource is not in the state that `If-Match` names.");
    }
    if operation.body.is_some() {
        add(Code::BodyTooLarge, &format!("The body is larger than {BODY_BYTES_MAX} bytes."));
        add(Code::UnsupportedMediaType, "The `Content-Type` is not `application/json`.");
        add(Code::BodyTimeout, "The body did not arrive in time.");
    }
    if operation.changes && is_limited {
        add(Code::WriteLimit, TOO_MANY_WRITES);
        add(Code::WritesUnavailable, "Writes are unavailable at the moment.");
        if operation.method != "DELETE" {
            add(Code::PlanLimit, "The server has reached its operator's limit of user data.");
        }
    }
    add(Code::Internal, "Internal error.");
    // Probes are never shed.
    if !operation.path.starts_with("/api/health") && !operation.path.starts_with("/api/ready") {
        add(Code::QueryTimeout, "The query exceeded its time budget; narrow the filters.");
        add(Code::Overloaded, OVERLOADED);
    }
}

/// Adds headers. All are optional, because responses that never reach a handler lack some.
fn add_headers(operation: &Operation, has_members: bool, status: &str, response: &mut Value) {
    let is_refused_first = matches!(status, "401" | "403" | "414" | "431");
    let is_counted = operation.access != Access::Everybody && !is_refused_first;
    let is_tagged =
        (operation.tagged || operation.represents) && matches!(status, "200" | "206" | "304");
    let takes = |name| operation.parameters.iter().any(|it| it.name == name);
    let is_done = matches!(status, "200" | "201" | "202");
    let is_of_index = operation.of_index && matches!(status, "200" | "304");
    let number = status.parse::<u16>().ok();
    let comes_later = |it: &Code| it.retry() == Retry::Later && Some(it.status()) == number;
    let tells_when = Code::ALL.iter().any(comes_later);
    for (applies, name, header) in [
        (true, "X-Request-Id", "RequestId"),
        (is_counted, "X-RateLimit-Limit", "RateLimitLimit"),
        (is_counted, "X-RateLimit-Remaining", "RateLimitRemaining"),
        (is_counted, "X-RateLimit-Reset", "RateLimitReset"),
        (is_counted, "RateLimit", "RateLimit"),
        (is_counted, "RateLimit-Policy", "RateLimitPolicy"),
        (tells_when, "Retry-After", "RetryAfter"),
        (status == "200" && (takes("cursor") || takes("offset")), "Link", "Link"),
        (status == "201" && has_members, "Location", "Location"),
        (is_done && takes("Idempotency-Key"), "Idempotency-Replayed", "IdempotencyReplayed"),
        (is_tagged, "ETag", "ETag"),
        (matches!(status, "206" | "416"), "Content-Range", "ContentRange"),
        (true, "Cache-Control", "CacheControl"),
        (matches!(status, "401" | "403"), "WWW-Authenticate", "WwwAuthenticate"),
        (is_of_index, "X-Index-Generation", "IndexGeneration"),
    ] {
        if applies {
            let header = format!("#/components/headers/{header}");
            response["headers"][name] = json!({ "$ref": header });
        }
    }
}

fn add_response(responses: &mut BTreeMap<String, Value>, spec: &ResponseSpec) {
    let (kind, schema) = match spec.content {
        Content::Json(shape) => ("application/json", reference(shape)),
        Content::Text(kind @ "application/json") => (kind, json!({ "type": "object" })),
        Content::Text(kind @ ("application/gzip" | "application/vnd.apache.parquet")) => {
            (kind, json!({ "type": "string", "format": "binary" }))
        }
        Content::Text(kind) => (kind, json!({ "type": "string" })),
        Content::Refusal => return add_refusal(responses, spec.status, spec.description),
    };
    // A response may have several media types.
    let response = responses
        .entry(spec.status.to_string())
        .or_insert_with(|| json!({ "description": spec.description, "content": {} }));
    response["content"][kind] = json!({ "schema": schema });
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
    use crate::operations::{OPERATIONS, document};

    /// Collects every `$ref` below a value.
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
    fn every_reference_resolves() {
        let mut found = Vec::new();
        references(document(), &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for reference in found {
            let place = reference.strip_prefix('#').expect("within the document");
            assert!(document().pointer(place).is_some(), "{reference}");
        }
    }

    /// Collects every integer schema below a value, with its path.
    fn integers(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
        if value["type"] == "integer" || value["type"] == json!(["integer", "null"]) {
            found.push((path.to_owned(), value.clone()));
        }
        match value {
            Value::Object(members) => members
                .iter()
                .for_each(|(name, member)| integers(member, &format!("{path}/{name}"), found)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(at, item)| integers(item, &format!("{path}/{at}"), found)),
            _ => {}
        }
    }

    #[test]
    fn generators_find_what_they_need() {
        let mut found = Vec::new();
        integers(document(), "", &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for (path, schema) in found {
            let format = schema["format"].as_str();
            assert!(matches!(format, Some("int32" | "int64")), "{path}: {schema}");
        }
        let license = &document()["info"]["license"];
        assert_eq!(license["identifier"], env!("CARGO_PKG_LICENSE"), "OpenAPI 3.1 §4.8.4");
        for tag in document()["tags"].as_array().expect("an array") {
            assert!(tag["description"].is_string(), "{tag}");
        }
        for operation in OPERATIONS {
            assert!(!operation.description.is_empty(), "{}", operation.id);
        }
    }

    #[test]
    fn operation_ids_and_routes_are_unique() {
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
    fn path_parameters_match_the_path() {
        for operation in OPERATIONS {
            let documented: Vec<_> = operation
                .parameters
                .iter()
                .filter(|parameter| parameter.place == ParameterPlace::Path)
                .map(|parameter| format!("{{{}}}", parameter.name))
                .collect();
            let in_path: Vec<_> =
                operation.path.split('/').filter(|part| part.starts_with('{')).collect();
            assert_eq!(documented, in_path, "{}", operation.path);
        }
    }
}
