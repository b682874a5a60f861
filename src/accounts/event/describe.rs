//! Events as an operator may read them: everything but what opens a door.

use serde_json::Value;

use super::{Event, Transaction};
use crate::vocab::day::Day;

/// Members that are never shown, wherever they stand: digests can be compared with guesses.
const HIDDEN: [&str; 8] =
    ["password", "key", "secrets", "secret", "body", "fingerprint", "digest", "last4"];
const IN_PLACE: &str = "(hidden)";
/// Members that hold a day, stored as a number.
const DAYS: [&str; 5] = ["on", "day", "drop_date", "release", "registered_on"];

impl Transaction {
    /// The events as JSON, an array in which secrets are left out.
    pub fn describe(&self) -> Value {
        Value::Array(self.0.iter().map(describe).collect())
    }
}

fn describe(event: &Event) -> Value {
    // Every event has a JSON form: names of members are texts. A new one that had none must not end
    // a dump.
    let mut value = serde_json::to_value(event).unwrap_or_else(|_| "(no JSON form)".into());
    hide(&mut value);
    value
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Null => {}
                    _ if HIDDEN.contains(&name.as_str()) => *value = IN_PLACE.into(),
                    Value::Number(raw) if DAYS.contains(&name.as_str()) => {
                        let raw = raw.as_u64().and_then(|raw| u16::try_from(raw).ok());
                        if let Some(day) = raw.and_then(Day::from_raw) {
                            *value = day.to_string().into();
                        }
                    }
                    _ => hide(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}
