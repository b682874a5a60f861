//! Values of facts.

use crate::components::{date_text, grouped};
use crate::facts_file::Value;
use crate::facts_file::store::StoredColumn;
use crate::vocab::day::Day;
use crate::vocab::fact::Unit;

/// Formats the value of a fact with its unit.
pub fn fact_value(value: &Value, column: &StoredColumn, today: Day) -> String {
    let text = match value {
        Value::Int(number) => signed_grouped(*number),
        Value::AtLeast { low } => format!("{} or more", signed_grouped(*low)),
        Value::Date(day) => date_text(*day, today),
        other => other.to_string(),
    };
    match (column.scale, column.unit) {
        (Some(scale), _) => format!("{text} of {scale}"),
        (None, Some(Unit::Percent)) => format!("{text} %"),
        (None, Some(unit @ (Unit::Points | Unit::Months | Unit::Years))) => {
            format!("{text} {}", unit.as_str())
        }
        (None, Some(Unit::Rank) | None) => text,
    }
}

fn signed_grouped(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}
