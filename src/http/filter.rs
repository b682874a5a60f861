//! Filters as JSON, in alert rules, previews and saved searches. Each member except [`WITHIN`]
//! represents one of the [`CONDITIONS`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value as Json, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::body::JsonInteger;
use crate::query::conditions::{CONDITIONS, Condition, Kind};
use crate::query::list;
use crate::query::stored::{Conditions, Value};
use crate::service::error::ApiError;
use crate::vocab::day::Day;
use crate::vocab::limits::{
    FACT_CONDITIONS_MAX, LABEL_TEXTS_MAX, RELEASE_WITHIN_DAYS_MAX, RULE_TLDS_MAX,
};

/// The member that represents a range such as `release_from=today` and `release_to=+3d`.
const WITHIN: &str = "releaseWithinDays";

/// Names of all members; the last is [`WITHIN`].
const NAMES: [&str; CONDITIONS.len() + 1] = {
    let mut names = [WITHIN; CONDITIONS.len() + 1];
    let mut at = 0;
    while at < CONDITIONS.len() {
        names[at] = CONDITIONS[at].member;
        at += 1;
    }
    names
};

/// A filter as sent: members by their position in [`NAMES`]. Absent and `null` members do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterRequest(Vec<(usize, Value)>);

impl FilterRequest {
    /// Whether parsing compiles a regular expression.
    pub fn compiles(&self) -> bool {
        self.conditions().any(|condition| matches!(condition.kind, Kind::Regex))
    }

    /// Whether the filter reads the text of names.
    pub fn reads_text(&self) -> bool {
        self.conditions().any(|condition| condition.kind.reads_text())
    }

    fn conditions(&self) -> impl Iterator<Item = &'static Condition> {
        self.0.iter().filter_map(|(at, _)| CONDITIONS.get(*at))
    }

    /// Parses the members of the filter. Errors name the members `filter.…`.
    ///
    /// # Errors
    /// 400 for the first invalid member.
    pub fn parse(self, today: Day) -> Result<Conditions, ApiError> {
        let mut values = Vec::with_capacity(self.0.len() + 1);
        for (at, value) in self.0 {
            match (CONDITIONS.get(at), value) {
                (Some(condition), value) => values.push((condition, value)),
                (None, Value::Number(days @ 0..=RELEASE_DAYS_MAX)) => {
                    let set =
                        [("release_from", "today".to_owned()), ("release_to", format!("+{days}d"))];
                    values.extend(set.into_iter().filter_map(|(name, text)| {
                        Some((Condition::of_parameter(name)?, Value::Text(text)))
                    }));
                }
                (None, _) => {
                    let what = format!("must be an integer from 0 to {RELEASE_WITHIN_DAYS_MAX}");
                    return Err(ApiError::parameter(format!("filter.{WITHIN}"), what));
                }
            }
        }
        Ok(Conditions::parse(values, today)?)
    }
}

const RELEASE_DAYS_MAX: i64 = RELEASE_WITHIN_DAYS_MAX as i64;

/// The name of a member, deserialised as its position in [`NAMES`].
struct MemberName(usize);

impl<'de> Deserialize<'de> for MemberName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MemberName, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let at = NAMES.iter().position(|known| *known == name);
        at.map(MemberName).ok_or_else(|| de::Error::unknown_field(&name, &NAMES))
    }
}

/// A text or a list of texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "invalid type: expected a string or a list of strings")]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for FilterRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FilterRequest, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = FilterRequest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FilterRequest, A::Error> {
                let (mut filter, mut known) = (FilterRequest::default(), [false; NAMES.len()]);
                while let Some(MemberName(at)) = map.next_key()? {
                    if std::mem::replace(&mut known[at], true) {
                        return Err(de::Error::duplicate_field(NAMES[at]));
                    }
                    let value = match CONDITIONS.get(at).map(|condition| condition.kind) {
                        None | Some(Kind::Number { .. }) => map
                            .next_value::<Option<JsonInteger>>()?
                            .map(|JsonInteger(number)| Value::Number(number)),
                        Some(Kind::Texts(..)) if NAMES[at] == "contains" => {
                            map.next_value::<Option<TextOrList>>()?.map(|it| match it {
                                TextOrList::Text(text) => Value::Text(text),
                                TextOrList::List(list) => Value::List(list),
                            })
                        }
                        Some(kind) if kind.is_list() => {
                            map.next_value::<Option<Vec<String>>>()?.map(Value::List)
                        }
                        Some(_) => map.next_value::<Option<String>>()?.map(Value::Text),
                    };
                    filter.0.extend(value.map(|value| (at, value)));
                }
                Ok(filter)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl PartialSchema for FilterRequest {
    fn schema() -> RefOr<Schema> {
        let what = "Conditions on names. A member that is absent or `null` does not filter.";
        schema(what, true)
    }
}

impl ToSchema for FilterRequest {
    fn name() -> Cow<'static, str> {
        "AlertFilterBody".into()
    }
}

/// Serialises the members of a filter that are set.
pub struct FilterResponse(pub Conditions);

impl Serialize for FilterResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let FilterResponse(conditions) = self;
        let mut map = serializer.serialize_map(None)?;
        let within = within(conditions);
        if let Some(days) = within {
            map.serialize_entry(WITHIN, &days)?;
        }
        for condition in CONDITIONS {
            let (member, value) = (condition.member, conditions.get(condition.parameter));
            if value.is_empty() || within.is_some() && member.starts_with("release") {
                continue;
            }
            match condition.kind {
                // A single text is the short form of `contains`.
                Kind::NamePart if conditions.get("contains").is_empty() => {
                    map.serialize_entry("contains", value)?;
                }
                Kind::Number { .. } => {
                    map.serialize_entry(member, &value.parse::<u32>().unwrap_or_default())?;
                }
                Kind::Tlds(_) | Kind::SomeOf(..) => {
                    map.serialize_entry(member, &value.split(',').collect::<Vec<_>>())?;
                }
                Kind::Texts(..) | Kind::Facts(_) => {
                    let texts: Vec<_> = list::quoted(value).filter_map(Result::ok).collect();
                    map.serialize_entry(member, &texts)?;
                }
                _ => map.serialize_entry(member, value)?,
            }
        }
        map.end()
    }
}

/// Returns the number of days for [`WITHIN`].
fn within(conditions: &Conditions) -> Option<u16> {
    let to = conditions.get("release_to").strip_prefix('+')?.strip_suffix('d')?;
    to.parse().ok().filter(|_| conditions.get("release_from") == "today")
}

impl PartialSchema for FilterResponse {
    fn schema() -> RefOr<Schema> {
        schema("Conditions on names. An absent member does not filter.", false)
    }
}

impl ToSchema for FilterResponse {
    fn name() -> Cow<'static, str> {
        "AlertFilter".into()
    }
}

/// Builds the JSON schema of a filter.
fn schema(description: &str, is_request: bool) -> RefOr<Schema> {
    let mut properties = serde_json::Map::new();
    let mut add = |member: &str, mut of: Json, description: &str| {
        of["description"] = description.into();
        if is_request {
            nullable(&mut of);
        }
        properties.insert(member.to_owned(), of);
    };
    for condition in CONDITIONS {
        add(condition.member, member_schema(condition), condition.member_text);
    }
    let what = "The effective release is today or at most this many days later.";
    add(WITHIN, integer(0, RELEASE_WITHIN_DAYS_MAX.into()), what);
    let mut object = json!({
        "type": "object",
        "description": description,
        "properties": properties,
    });
    if is_request {
        object["additionalProperties"] = false.into();
    }
    RefOr::T(serde_json::from_value(object).expect("a schema"))
}

fn integer(least: u32, most: u32) -> Json {
    json!({"type": "integer", "format": "int32", "minimum": least, "maximum": most})
}

/// Builds the JSON schema of a condition's member.
fn member_schema(condition: &Condition) -> Json {
    let text = |format: &str| json!({"type": "string", "minLength": 1, "format": format});
    let list =
        |items: Json, most: usize| json!({"type": "array", "items": items, "maxItems": most});
    match condition.kind {
        Kind::Number { least, most, .. } => integer(least, most),
        Kind::OneOf(words, _) => json!({"type": "string", "enum": words}),
        Kind::SomeOf(words, _) => list(json!({"type": "string", "enum": words}), words.len()),
        Kind::Tlds(_) => list(text("tld"), RULE_TLDS_MAX),
        Kind::Texts(..) if condition.member == "contains" => json!({
            "oneOf": [text("name-part"), list(text("name-part"), LABEL_TEXTS_MAX)],
        }),
        Kind::Texts(most, _) => list(text("name-part"), most),
        Kind::Facts(_) if condition.member == "has" => {
            list(text("fact-presence"), FACT_CONDITIONS_MAX)
        }
        Kind::Facts(_) => list(text("fact-range"), FACT_CONDITIONS_MAX),
        Kind::NamePart => text("name-part"),
        Kind::Pattern => text("pattern"),
        Kind::Regex => text("regex"),
        Kind::Like => text("label"),
        Kind::Day(_) => text("day"),
        Kind::Release(_) | Kind::Instant(_) => text("instant"),
    }
}

/// Extends a schema to accept `null`.
fn nullable(schema: &mut Json) {
    if let Some(words) = schema.get_mut("enum").and_then(Json::as_array_mut) {
        words.push(Json::Null);
    }
    match schema.get_mut("oneOf").and_then(Json::as_array_mut) {
        Some(one_of) => one_of.push(json!({"type": "null"})),
        None => schema["type"] = json!([schema["type"], "null"]),
    }
}
