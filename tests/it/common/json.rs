//! Readable differences between JSON documents.

use std::fmt;

use serde_json::{Value, json};

/// Returns the body of a 401, either without a key or with an invalid one.
pub fn unauthenticated(has_key: bool) -> Value {
    let code = if has_key { "invalid_key" } else { "unauthenticated" };
    json!({"error": "authentication required", "code": code})
}

/// Returns the error about a name that is not in the data.
pub fn unknown_name() -> Value {
    json!({"error": "not found", "code": "not_found", "hint": UNKNOWN_NAME})
}

const UNKNOWN_NAME: &str = "the name is not in the data; POST /api/v1/appraise scores any name, POST /api/v1/check asks its registry";

/// Returns the error body with this message, which starts with the parameter at fault.
pub fn error(message: &str) -> Value {
    let code = match message {
        "not found" => "not_found",
        "method not allowed" => "method_not_allowed",
        "authentication required" => "unauthenticated",
        "body: must have at most 65536 bytes" => "body_too_large",
        "Idempotency-Key: was used with another request in the last 24 h" => "idempotency_conflict",
        _ if message.starts_with("this delivery cannot be retried: ") => "conflict",
        _ if message.starts_with("Content-Type: ") => "unsupported_media_type",
        _ => {
            // A message that names no parameter means that the state of the object does not allow
            // the call.
            let Some((parameter, what)) = message.split_once(": ") else {
                return json!({"error": message, "code": "conflict"});
            };
            let code = match what {
                "is given more than once" => "repeated_parameter",
                _ if what.starts_with("unknown field") => "unknown_member",
                _ => "invalid_value",
            };
            return json!({"error": message, "code": code, "parameter": parameter});
        }
    };
    json!({"error": message, "code": code})
}

/// Returns the first difference between two documents, or `None` if they are equal. The order of an object's
/// members is ignored, but the type of a number is not (1 is not 1.0).
pub fn difference(expected: &Value, got: &Value) -> Option<Difference> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            let keys: std::collections::BTreeSet<&String> =
                expected.keys().chain(got.keys()).collect();
            keys.into_iter().find_map(|key| match (expected.get(key), got.get(key)) {
                (Some(expected), Some(got)) => {
                    difference(expected, got).map(|found| found.under(&format!(".{key}")))
                }
                (expected, got) => {
                    Some(Difference::between(expected, got).under(&format!(".{key}")))
                }
            })
        }
        (Value::Array(expected), Value::Array(got)) => {
            (0..expected.len().max(got.len())).find_map(|at| {
                match (expected.get(at), got.get(at)) {
                    (Some(expected), Some(got)) => difference(expected, got),
                    (expected, got) => Some(Difference::between(expected, got)),
                }
                .map(|found| found.under(&format!("[{at}]")))
            })
        }
        _ => (expected != got).then(|| Difference::between(Some(expected), Some(got))),
    }
}

/// A path, and both values at that path.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    path: String,
    expected: String,
    got: String,
}

impl Difference {
    fn between(expected: Option<&Value>, got: Option<&Value>) -> Difference {
        Difference { path: String::new(), expected: short(expected), got: short(got) }
    }

    fn under(self, parent: &str) -> Difference {
        Difference { path: format!("{parent}{}", self.path), ..self }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at ${}\n  expected: {}\n  got:      {}", self.path, self.expected, self.got)
    }
}

fn short(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "(nothing)".into();
    };
    let text = value.to_string();
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let left = json!({"a": [1, {"b": null}], "c": 1});
        assert_eq!(difference(&left, &json!({"c": 1, "a": [1, {"b": null}]})), None);
        for (right, place) in [
            (json!({"a": [1, {"b": 0}], "c": 1}), ".a[1].b"),
            (json!({"a": [1, {}], "c": 1}), ".a[1].b"),
            (json!({"a": [1], "c": 1}), ".a[1]"),
            (json!({"a": [1, {"b": null}], "c": 1.0}), ".c"),
            (json!({"a": [1, {"b": null}], "c": 1, "d": null}), ".d"),
            (json!([]), ""),
        ] {
            let found = difference(&left, &right).expect("they differ");
            assert_eq!(found.path, place, "{right}");
        }
    }
}
