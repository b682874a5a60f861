//! Events as JSON for operators, without secrets.

use serde_json::Value;

use super::{Event, Transaction};

/// Members that are never shown, at any depth. Digests are hidden too: they can be compared with
/// guesses.
const HIDDEN: [&str; 10] = [
    "password",
    "key",
    "secrets",
    "secret",
    "token",
    "body",
    "fingerprint",
    "digest",
    "last4",
    "hook",
];

impl Transaction {
    /// The events as a JSON array in which secrets are replaced by `(hidden)`.
    pub fn describe(&self) -> Value {
        Value::Array(self.0.iter().map(describe).collect())
    }
}

fn describe(event: &Event) -> Value {
    // Every event has a JSON form. If a new one does not, a dump goes on without it.
    let mut value = serde_json::to_value(event).unwrap_or_else(|_| "(no JSON form)".into());
    hide(&mut value);
    value
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if HIDDEN.contains(&name.as_str()) && !value.is_null() {
                    *value = "(hidden)".into();
                } else {
                    hide(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}
