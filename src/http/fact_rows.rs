//! Facts in rows: their JSON and CSV.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::edge::csv::{cell, push, user_cell};
use crate::facts_file::Value;
use crate::rows::{push_json_text, push_quoted_day};
use crate::service::error::ApiError;
use crate::service::fact_book::{ShownFacts, Source};
use crate::vocab::day::Day;
use crate::vocab::fact::KeyKind;

/// Returns the facts if they may be part of an export.
///
/// # Errors
/// The licence of one forbids it.
pub fn exported(facts: ShownFacts) -> Result<ShownFacts, ApiError> {
    match facts.columns().iter().find(|column| !column.source.is_exported()) {
        None => Ok(facts),
        Some(column) => {
            let what = format!(
                "must not have {}: the licence of its source ({}) allows no copy within other data; leave it out",
                column.name,
                column.source.edition.meta().licence
            );
            Err(ApiError::parameter("facts", what))
        }
    }
}

/// A source of facts, for those who show its values.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FactSource)]
pub struct FactSourceResponse<'a> {
    /// First part of the names of its facts.
    source: &'a str,
    title: &'a str,
    #[schema(value_type = String, pattern = "^(domain|label|word)$")]
    key: KeyKind,
    /// Newest day of its facts.
    #[schema(value_type = String, format = Date)]
    as_of: Day,
    #[schema(value_type = String, pattern = "^(open|share-alike|own|vendor)$")]
    licence: &'static str,
    /// The line that the licence asks to be shown beside values.
    #[schema(required)]
    attribution: Option<&'a str>,
    /// Whether only this account sees it.
    own: bool,
}

impl<'a> FactSourceResponse<'a> {
    pub fn new(source: &'a Source) -> FactSourceResponse<'a> {
        let meta = source.edition.meta();
        FactSourceResponse {
            source: &meta.id,
            title: &meta.title,
            key: meta.key,
            as_of: meta.as_of,
            licence: meta.licence.as_str(),
            attribution: meta.attribution.as_deref(),
            own: source.is_own,
        }
    }
}

/// Schema of the value of a fact.
pub fn fact_value() -> RefOr<Schema> {
    let schema = json!({
        "type": ["number", "string", "boolean", "object"],
        "description": "A number, a text, `{cents, currency}`, or `{atLeast}` for the lower end of a range.",
    });
    RefOr::T(serde_json::from_value(schema).expect("a schema"))
}

/// Schema of the member `facts` of a row.
pub fn shown_facts() -> RefOr<Schema> {
    let value = json!({
        "type": "object",
        "required": ["value", "asOf"],
        "additionalProperties": false,
        "properties": {
            "value": fact_value(),
            "asOf": { "type": "string", "format": "date" },
        },
    });
    let schema = json!({
        "type": "object",
        "description": "The facts that the parameter `facts` names; null for those that are not known.",
        "additionalProperties": { "oneOf": [{ "type": "null" }, value] },
    });
    RefOr::T(serde_json::from_value(schema).expect("a schema"))
}

/// Appends the sources of shown facts as a member; nothing without facts.
pub fn push_fact_sources(out: &mut Vec<u8>, facts: &ShownFacts) {
    if facts.is_empty() {
        return;
    }
    let mut sources: Vec<&Source> = Vec::new();
    for column in facts.columns() {
        if !sources.iter().any(|known| std::ptr::eq(*known, &*column.source)) {
            sources.push(&column.source);
        }
    }
    let sources: Vec<_> = sources.into_iter().map(FactSourceResponse::new).collect();
    push(out, ",\"factSources\":");
    serde_json::to_writer(out, &sources).expect("it has a JSON form");
}

/// Adds the facts of a name to the JSON object at the end of `out`: the member `facts`, with a value and its day,
/// or null, for each.
pub fn push_facts(name: &str, facts: &ShownFacts, out: &mut Vec<u8>) {
    if facts.is_empty() {
        return;
    }
    assert_eq!(out.pop(), Some(b'}'), "an object ends with a brace");
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    push(out, "\"facts\":");
    let mut before = "{";
    for (column, value) in facts.columns().iter().zip(facts.of(name)) {
        push(out, before);
        push_json_text(out, column.name.as_str());
        match value {
            None => push(out, ":null"),
            Some(value) => {
                push(out, ":{\"value\":");
                serde_json::to_writer(&mut *out, &value.value).expect("it has a JSON form");
                push(out, ",\"asOf\":");
                push_quoted_day(out, value.as_of);
                push(out, "}");
            }
        }
        before = ",";
    }
    push(out, "}}");
}

/// Adds the facts of a name to the line of CSV at the end of `out`, which is empty but for its end if `is_first`.
/// Amounts are numbers in the currency of their column; the lower end of a range is written with a `+`.
pub fn push_fact_columns(name: &str, facts: &ShownFacts, is_first: bool, out: &mut Vec<u8>) {
    if facts.is_empty() {
        return;
    }
    out.truncate(out.len() - "\r\n".len());
    let mut before = if is_first { "" } else { "," };
    for value in facts.of(name) {
        push(out, before);
        push(out, &fact_cell(value.map(|value| value.value)));
        before = ",";
    }
    push(out, "\r\n");
}

/// Returns the cell of a value, empty for `None`.
pub fn fact_cell(value: Option<Value>) -> String {
    match value {
        Some(Value::Money { cents, .. }) => format!("{}.{:02}", cents / 100, cents % 100),
        Some(Value::AtLeast { low }) => format!("{low}+"),
        Some(Value::Enum(text) | Value::Text(text)) => user_cell(&text).into_owned(),
        value => cell(value),
    }
}
