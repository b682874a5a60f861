//! Events as JSON for operators, without secrets.

use serde_json::{Value, json};

use super::{Event, Transaction};
use crate::data::fields::RowWriter;

/// Members that are never shown, at any depth. Digests are also hidden, since they can be compared
/// with guesses.
const HIDDEN: [&str; 11] = [
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
    // Name of the member with the digest of a session that ended.
    "Session",
];

impl Transaction {
    /// Returns the events as a JSON array in which secrets are replaced by `(hidden)`.
    pub fn describe(&self) -> Value {
        Value::Array(self.0.iter().map(describe).collect())
    }
}

fn describe(event: &Event) -> Value {
    let mut row = RowWriter::json();
    event.write(&mut row);
    let mut fields = row.into_json();
    hide(&mut fields);
    json!({ event.name(): fields })
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
