//! Compares the OpenAPI document with that of the last release. The rules are those of
//! `data/docs/stability.md`: what a client that was written for the release may rely on.

use std::collections::BTreeSet;

use serde_json::Value;

/// Deepest nesting of schemas that is compared; deeper ones refer to themselves.
const DEPTH_MAX: usize = 24;
/// Limits that a request must meet, and whether a larger value is the stricter one.
const LIMITS: [(&str, bool); 6] = [
    ("minimum", true),
    ("minLength", true),
    ("minItems", true),
    ("maximum", false),
    ("maxLength", false),
    ("maxItems", false),
];
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Who sends a value. A client must be able to send what it sent before, and to read what it receives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    ByClient,
    ByServer,
}

/// Returns the differences that break clients of the old document, one line each.
pub fn breaking(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Comparison { old, new, lines: BTreeSet::new() };
    for (path, item) in members(&old["paths"]) {
        for (method, operation) in members(item).filter(|(name, _)| METHODS.contains(name)) {
            let place = format!("{} {path}", method.to_uppercase());
            match &new["paths"][path][method] {
                Value::Null => found.add(&place, "was removed"),
                now => found.operation(&place, operation, now),
            }
        }
    }
    for (name, hook) in members(&old["webhooks"]) {
        let payload = "/post/requestBody/content/application~1json/schema";
        let now = new["webhooks"][name].pointer(payload);
        match (hook.pointer(payload), now) {
            (Some(was), Some(now)) => found.schema(name, was, now, Sent::ByServer, 0),
            _ => found.add(name, "was removed"),
        }
    }
    // Generators name types by these.
    for (name, _) in members(&old["components"]["schemas"]) {
        if new["components"]["schemas"][name].is_null() {
            found.add(&format!("schema {name}"), "was removed or renamed");
        }
    }
    if old["components"]["securitySchemes"] != new["components"]["securitySchemes"] {
        found.add("authentication", "changed");
    }
    found.lines.into_iter().collect()
}

struct Comparison<'a> {
    old: &'a Value,
    new: &'a Value,
    lines: BTreeSet<String>,
}

impl<'a> Comparison<'a> {
    fn add(&mut self, place: &str, what: &str) {
        self.lines.insert(format!("{place}: {what}"));
    }

    fn operation(&mut self, place: &str, was: &'a Value, now: &'a Value) {
        for name in ["operationId", "tags", "security"] {
            if was[name] != now[name] {
                self.add(place, &format!("{name} changed"));
            }
        }
        let parameters = |document: &'a Value, operation: &'a Value| {
            items(&operation["parameters"])
                .map(move |it| resolved(document, it))
                .collect::<Vec<_>>()
        };
        let same =
            |one: &Value, other: &Value| one["name"] == other["name"] && one["in"] == other["in"];
        let (before, after) = (parameters(self.old, was), parameters(self.new, now));
        for parameter in &before {
            let place = format!("{place}: parameter `{}`", word(&parameter["name"]));
            let Some(now) = after.iter().find(|it| same(it, parameter)) else {
                self.add(&place, "was removed");
                continue;
            };
            if now["required"] == true && parameter["required"] != true {
                self.add(&place, "is required");
            }
            for name in ["style", "explode"] {
                if parameter[name] != now[name] {
                    self.add(&place, &format!("{name} changed"));
                }
            }
            self.schema(&place, &parameter["schema"], &now["schema"], Sent::ByClient, 0);
        }
        for parameter in after.iter().filter(|it| it["required"] == true) {
            if !before.iter().any(|it| same(it, parameter)) {
                let name = word(&parameter["name"]);
                self.add(&format!("{place}: parameter `{name}`"), "is new and required");
            }
        }
        let (body, new_body) = (&was["requestBody"], &now["requestBody"]);
        if new_body["required"] == true && body["required"] != true {
            self.add(place, "needs a body");
        }
        self.contents(&format!("{place}: body"), body, new_body, Sent::ByClient);
        for (status, response) in members(&was["responses"]).filter(|it| it.0.starts_with('2')) {
            let place = format!("{place}: {status}");
            if now["responses"][status].is_null() {
                self.add(&place, "was removed");
                continue;
            }
            let response = resolved(self.old, response);
            let now = resolved(self.new, &now["responses"][status]);
            for (name, _) in members(&response["headers"]) {
                if now["headers"][name].is_null() {
                    self.add(&place, &format!("header `{name}` was removed"));
                }
            }
            self.contents(&place, response, now, Sent::ByServer);
        }
    }

    fn contents(&mut self, place: &str, was: &'a Value, now: &'a Value, sent: Sent) {
        for (kind, content) in members(&was["content"]) {
            match &now["content"][kind] {
                Value::Null => self.add(place, &format!("`{kind}` was removed")),
                now => self.schema(place, &content["schema"], &now["schema"], sent, 0),
            }
        }
    }

    fn schema(&mut self, place: &str, was: &'a Value, now: &'a Value, sent: Sent, depth: usize) {
        let (was, now) = (resolved(self.old, was), resolved(self.new, now));
        if depth > DEPTH_MAX || was == now && self.old["components"] == self.new["components"] {
            return;
        }
        let (types, new_types) = (types(was), types(now));
        let widens = |from: &BTreeSet<&str>, to: &BTreeSet<&str>| {
            let fits = |it: &&str| to.contains(it) || *it == "integer" && to.contains("number");
            to.is_empty() || !from.is_empty() && from.iter().all(fits)
        };
        let is_kept = match sent {
            Sent::ByClient => widens(&types, &new_types),
            Sent::ByServer => widens(&new_types, &types),
        };
        if !is_kept {
            self.add(place, &format!("type {types:?} became {new_types:?}"));
        }
        if !was["format"].is_null() && was["format"] != now["format"] {
            self.add(place, "format changed");
        }
        if sent == Sent::ByClient {
            self.limits(place, was, now);
        }
        self.members(place, was, now, sent, depth);
        if now["items"].is_object() || was["items"].is_object() {
            self.schema(&format!("{place}[]"), &was["items"], &now["items"], sent, depth + 1);
        }
        self.variants(place, was, now, sent, depth);
    }

    /// A client may rely on what it was allowed to send. Values in responses are open.
    fn limits(&mut self, place: &str, was: &'a Value, now: &'a Value) {
        for (name, larger_is_stricter) in LIMITS {
            let is_stricter = match (was[name].as_f64(), now[name].as_f64()) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(was), Some(now)) if larger_is_stricter => now > was,
                (Some(was), Some(now)) => now < was,
            };
            if is_stricter {
                self.add(place, &format!("{name} is stricter"));
            }
        }
        for name in ["pattern", "multipleOf"] {
            if !now[name].is_null() && was[name] != now[name] {
                self.add(place, &format!("{name} changed"));
            }
        }
        if was["default"] != now["default"] {
            self.add(place, "default changed");
        }
        if !now["enum"].is_null() {
            if was["enum"].is_null() {
                self.add(place, "allows only some values");
            }
            for value in items(&was["enum"]).filter(|it| !items(&now["enum"]).any(|now| now == *it))
            {
                self.add(place, &format!("{value} is not allowed"));
            }
        }
    }

    fn members(&mut self, place: &str, was: &'a Value, now: &'a Value, sent: Sent, depth: usize) {
        let is_required =
            |schema: &Value, name: &str| items(&schema["required"]).any(|it| it == name);
        for (name, schema) in members(&was["properties"]) {
            let place = format!("{place}.{name}");
            match &now["properties"][name] {
                Value::Null => self.add(&place, "was removed"),
                now => self.schema(&place, schema, now, sent, depth + 1),
            }
            if sent == Sent::ByServer && is_required(was, name) && !is_required(now, name) {
                self.add(&place, "may be absent");
            }
        }
        if sent == Sent::ByClient {
            for name in items(&now["required"]).map(word).filter(|name| !is_required(was, name)) {
                self.add(&format!("{place}.{name}"), "is required");
            }
        }
    }

    /// Each variant that the reader of a value must know needs an equal on the other side.
    fn variants(&mut self, place: &str, was: &'a Value, now: &'a Value, sent: Sent, depth: usize) {
        for kind in ["oneOf", "anyOf", "allOf"] {
            let (old, new) = (self.old, self.new);
            let matches = |was: &'a Value, now: &'a Value| {
                let mut one = Comparison { old, new, lines: BTreeSet::new() };
                one.schema("", was, now, sent, depth + 1);
                one.lines.is_empty()
            };
            let (before, after) = (&was[kind], &now[kind]);
            if before.is_null() && after.is_null() {
                continue;
            }
            let is_kept = match sent {
                Sent::ByClient => {
                    items(before).all(|was| items(after).any(|now| matches(was, now)))
                }
                Sent::ByServer => {
                    items(after).all(|now| items(before).any(|was| matches(was, now)))
                }
            };
            if !is_kept || before.is_null() {
                self.add(place, &format!("{kind} changed"));
            }
        }
    }
}

/// Follows a reference within the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    target.and_then(|path| document.pointer(path)).unwrap_or(value)
}

fn types(schema: &Value) -> BTreeSet<&str> {
    match &schema["type"] {
        Value::String(one) => BTreeSet::from([one.as_str()]),
        several => items(several).map(word).collect(),
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A small document with one of each thing that is compared.
    fn document() -> Value {
        json!({
            "paths": {"/things": {
                "get": {
                    "operationId": "listThings", "tags": ["Things"], "security": [{"key": []}],
                    "parameters": [
                        {"$ref": "#/components/parameters/Sort"},
                        {"name": "tld", "in": "query", "style": "form", "explode": false,
                         "schema": {"type": "array", "items": {"type": "string", "maxLength": 63}}},
                    ],
                    "responses": {"200": {
                        "headers": {"ETag": {}},
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                    }, "404": {}},
                },
                "post": {
                    "operationId": "addThing",
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}},
                    "responses": {"201": {}},
                },
            }},
            "webhooks": {"thing": {"post": {"requestBody": {"content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/Thing"}
            }}}}}},
            "components": {
                "parameters": {"Sort": {
                    "name": "sort", "in": "query", "required": false,
                    "schema": {"type": "string", "enum": ["dqs", "name"]},
                }},
                "schemas": {
                    "Thing": {
                        "type": "object", "required": ["id", "stage"],
                        "properties": {
                            "id": {"type": "integer"}, "stage": {"type": "string", "enum": ["new"]},
                            "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
                        },
                    },
                    "Body": {
                        "type": "object", "required": ["name"],
                        "properties": {
                            "name": {"type": "string", "maxLength": 10},
                            "price": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                        },
                    },
                },
                "securitySchemes": {"key": {"type": "http"}},
            },
        })
    }

    /// Returns the differences after the member at a pointer got a value, or was removed.
    fn after(pointer: &str, value: Option<Value>) -> Vec<String> {
        let (old, mut new) = (document(), document());
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        let parent = new.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        let name = name.replace("~1", "/");
        match (parent, value) {
            (Value::Object(members), Some(value)) => drop(members.insert(name, value)),
            (Value::Object(members), None) => assert!(members.remove(&name).is_some(), "{pointer}"),
            (Value::Array(items), Some(value)) => items.push(value),
            (parent, _) => panic!("{pointer}: {parent}"),
        }
        breaking(&old, &new)
    }

    const GET: &str = "/paths/~1things/get";
    const POST: &str = "/paths/~1things/post";
    const THING: &str = "/components/schemas/Thing";
    const BODY: &str = "/components/schemas/Body";

    #[test]
    fn every_breaking_difference_is_found() {
        let required = json!({"name": "day", "in": "query", "required": true, "schema": {}});
        for (pointer, value, line) in [
            ("/paths/~1things".to_owned(), None, "GET /things: was removed"),
            (
                format!("{GET}/operationId"),
                Some(json!("things")),
                "GET /things: operationId changed",
            ),
            (format!("{GET}/tags"), Some(json!(["All"])), "GET /things: tags changed"),
            (
                format!("{GET}/parameters"),
                Some(json!([])),
                "GET /things: parameter `sort`: was removed",
            ),
            (
                format!("{GET}/parameters/-"),
                Some(required),
                "GET /things: parameter `day`: is new and required",
            ),
            (
                format!("{GET}/parameters/1/explode"),
                Some(json!(true)),
                "GET /things: parameter `tld`: explode changed",
            ),
            (
                format!("{GET}/parameters/1/schema/items/maxLength"),
                Some(json!(62)),
                "GET /things: parameter `tld`[]: maxLength is stricter",
            ),
            (
                format!("{GET}/parameters/1/schema/default"),
                Some(json!(["com"])),
                "GET /things: parameter `tld`: default changed",
            ),
            (
                "/components/parameters/Sort/required".to_owned(),
                Some(json!(true)),
                "GET /things: parameter `sort`: is required",
            ),
            (
                "/components/parameters/Sort/schema/enum".to_owned(),
                Some(json!(["dqs"])),
                "GET /things: parameter `sort`: \"name\" is not allowed",
            ),
            (format!("{GET}/responses/200"), None, "GET /things: 200: was removed"),
            (
                format!("{GET}/responses/200/headers/ETag"),
                None,
                "GET /things: 200: header `ETag` was removed",
            ),
            (
                format!("{GET}/responses/200/content"),
                Some(json!({"text/csv": {}})),
                "GET /things: 200: `application/json` was removed",
            ),
            (
                format!("{THING}/properties/id/type"),
                Some(json!("string")),
                "thing.id: type {\"integer\"} became {\"string\"}",
            ),
            (
                format!("{THING}/properties/id/type"),
                Some(json!(["integer", "null"])),
                "GET /things: 200.id: type {\"integer\"} became {\"integer\", \"null\"}",
            ),
            (format!("{THING}/properties/parts"), None, "GET /things: 200.parts: was removed"),
            (
                format!("{THING}/required"),
                Some(json!(["id"])),
                "GET /things: 200.stage: may be absent",
            ),
            (
                format!("{POST}/requestBody/required"),
                Some(json!(true)),
                "POST /things: needs a body",
            ),
            (
                format!("{BODY}/required"),
                Some(json!(["name", "price"])),
                "POST /things: body.price: is required",
            ),
            (
                format!("{BODY}/properties/name/maxLength"),
                Some(json!(9)),
                "POST /things: body.name: maxLength is stricter",
            ),
            (
                format!("{BODY}/properties/name/pattern"),
                Some(json!("a+")),
                "POST /things: body.name: pattern changed",
            ),
            (
                format!("{BODY}/properties/price/oneOf"),
                Some(json!([{"type": "string"}])),
                "POST /things: body.price: oneOf changed",
            ),
            (
                "/components/securitySchemes/key/type".to_owned(),
                Some(json!("apiKey")),
                "authentication: changed",
            ),
            ("/webhooks/thing".to_owned(), None, "thing: was removed"),
        ] {
            let found = after(&pointer, value);
            assert!(found.iter().any(|it| it == line), "{pointer}: {found:?}");
        }
        let mut renamed = document();
        let schemas = renamed["components"]["schemas"].as_object_mut().expect("schemas");
        let thing = schemas.remove("Thing").expect("the schema");
        schemas.insert("Item".to_owned(), thing);
        let lines = breaking(&document(), &renamed);
        assert!(lines.contains(&"schema Thing: was removed or renamed".to_owned()), "{lines:?}");
    }

    #[test]
    fn additions_are_allowed() {
        let optional = json!({"name": "day", "in": "query", "schema": {"type": "string"}});
        for (pointer, value) in [
            (format!("{GET}/parameters/-"), optional),
            (format!("{GET}/description"), json!("Another text.")),
            (format!("{GET}/responses/503"), json!({})),
            (format!("{GET}/responses/200/headers/Link"), json!({})),
            (format!("{THING}/properties/more"), json!({"type": "string"})),
            (format!("{THING}/required/-"), json!("parts")),
            (format!("{THING}/properties/stage/enum/-"), json!("old")),
            ("/components/parameters/Sort/schema/enum/-".to_owned(), json!("len")),
            (format!("{BODY}/properties/more"), json!({"type": "string"})),
            (format!("{BODY}/properties/name/maxLength"), json!(11)),
            (format!("{BODY}/properties/name/type"), json!(["string", "null"])),
            (format!("{BODY}/properties/price/oneOf/-"), json!({"type": "null"})),
            (format!("{BODY}/required"), json!([])),
            ("/paths/~1others".to_owned(), json!({"get": {}})),
        ] {
            assert_eq!(after(&pointer, Some(value)), [""; 0], "{pointer}");
        }
    }
}
