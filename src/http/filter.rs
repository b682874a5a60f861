//! Filters as JSON, in alert rules, previews and saved searches. A member stands for a parameter of the
//! drops list, whose parser checks its value, so that there is one set of filters.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::body::JsonInteger;
use crate::http::params::{Limits, Params, items};
use crate::index::filter::DropFilter;
use crate::query::filter::{CapsFilter, Digits, Hyphens, Idn};
use crate::query::stored::Conditions;
use crate::query::text::Substring;
use crate::service::error::{ApiError, ParameterCode};
use crate::vocab::day::Day;
use crate::vocab::kind::Kind as LabelKind;
use crate::vocab::language::LanguageCode;
use crate::vocab::limits::{
    EXCLUDED_TEXTS_MAX, LABEL_TEXTS_MAX, LIKE_DISTANCE_MAX, MIN_DROPS_MAX, OTHER_TLDS_MAX,
    RELEASE_WITHIN_DAYS_MAX, RULE_TLDS_MAX, WORDS_MAX,
};
use crate::vocab::popularity::ListRank;
use crate::vocab::stage::Stage;
use crate::vocab::tld::{fold_tld, is_suffix};

/// A member of a filter.
struct FilterMember {
    name: &'static str,
    /// The parameter of the drops list.
    parameter: &'static str,
    kind: Kind,
    description: &'static str,
}

/// Type of a member.
#[derive(Clone, Copy)]
enum Kind {
    Number(u32, u32),
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of these words.
    SomeOf(&'static [&'static str]),
    Tlds,
    /// Texts, at most this number of them.
    Texts(usize),
    /// A text that the whole name contains (parameter `q`), or texts for the label.
    Contains,
    /// `release_from=today&release_to=+3d`.
    Within,
}

const fn member(
    name: &'static str,
    parameter: &'static str,
    kind: Kind,
    description: &'static str,
) -> FilterMember {
    FilterMember { name, parameter, kind, description }
}

const LENGTH: Kind = Kind::Number(1, 63);
const DQS: Kind = Kind::Number(0, 100);
const OTHER_TLDS: Kind = Kind::Number(0, OTHER_TLDS_MAX);
const WORDS: Kind = Kind::Number(0, WORDS_MAX as u32);
const SOME: Kind = Kind::Texts(LABEL_TEXTS_MAX);
const NONE: Kind = Kind::Texts(EXCLUDED_TEXTS_MAX);

/// Every member. Each parameter of the drops list that filters has one.
const MEMBERS: &[FilterMember] = &[
    member("tlds", "tld", Kind::Tlds, "One of these public suffixes."),
    member("notTlds", "not_tld", Kind::Tlds, "None of these public suffixes."),
    member("minDqs", "min_dqs", DQS, "Minimum score."),
    member("maxDqs", "max_dqs", DQS, "Maximum score."),
    member("minLength", "min_len", LENGTH, "Minimum length of the label, in characters."),
    member("maxLength", "max_len", LENGTH, "Maximum length of the label, in characters."),
    member(
        "contains",
        "contains",
        Kind::Contains,
        "A text: part of the name, suffix included. A list: the label contains one of the texts.",
    ),
    member("q", "q", Kind::Text, "Part of the name, beside a list of `contains`."),
    member("starts", "starts", SOME, "The label starts with one of these texts."),
    member("ends", "ends", SOME, "The label ends with one of these texts."),
    member("notContains", "not_contains", NONE, "The label contains none of these texts."),
    member("notStarts", "not_starts", NONE, "The label starts with none of these texts."),
    member("notEnds", "not_ends", NONE, "The label ends with none of these texts."),
    member("pattern", "pattern", Kind::Text, "Shape of the whole label."),
    member("regex", "regex", Kind::Text, "Regular expression found in the label."),
    member("like", "like", Kind::Text, "The label is at most `distance` edits from this one."),
    member(
        "distance",
        "distance",
        Kind::Number(1, LIKE_DISTANCE_MAX as u32),
        "Maximum edits of `like`; 1 by default.",
    ),
    member("stages", "stage", Kind::SomeOf(&Stage::NAMES), "One of these stages."),
    member("digits", "digits", Kind::OneOf(&Digits::NAMES), "Digits of the label."),
    member("hyphens", "hyphens", Kind::OneOf(&Hyphens::NAMES), "Hyphens of the label."),
    member("idn", "idn", Kind::OneOf(&Idn::NAMES), "Internationalised labels."),
    member("minWords", "min_words", WORDS, "Minimum number of words in the label."),
    member("maxWords", "max_words", WORDS, "Maximum number of words in the label."),
    member("languages", "language", Kind::SomeOf(&LanguageCode::NAMES), "One of these languages."),
    member("kinds", "kind", Kind::SomeOf(&LabelKind::NAMES), "One of these kinds of label."),
    member("caps", "caps", Kind::OneOf(&CapsFilter::NAMES), "Without names whose score is capped."),
    member("minTlds", "min_tlds", OTHER_TLDS, "Minimum number of other suffixes with the label."),
    member("maxTlds", "max_tlds", OTHER_TLDS, "Maximum number of other suffixes with the label."),
    member("minDrops", "min_drops", Kind::Number(1, MIN_DROPS_MAX), "Minimum number of drops."),
    member(
        "releaseWithinDays",
        "release_to",
        Kind::Within,
        "The effective release is today or at most this many days later.",
    ),
    member("releaseFrom", "release_from", Kind::Text, "First effective release; may be relative."),
    member("releaseTo", "release_to", Kind::Text, "Last effective release; may be relative."),
    member("droppedFrom", "dropped_from", Kind::Text, "First drop date; may be relative."),
    member("droppedTo", "dropped_to", Kind::Text, "Last drop date; may be relative."),
    member(
        "maxRank",
        "max_rank",
        Kind::Number(1, ListRank::MAX),
        "Maximum of the best rank on a popularity list.",
    ),
    member(
        "listedSince",
        "listed_since",
        Kind::Text,
        "The list that contained the drop was observed on this day or later.",
    ),
];

const NAMES: [&str; MEMBERS.len()] = {
    let mut names = [""; MEMBERS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = MEMBERS[at].name;
        at += 1;
    }
    names
};

/// A page of any length: filters are parsed as the drops list parses them.
const LIMITS: Limits = Limits { default: 1, max: 1 };

/// The value of a member, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    Number(i64),
    Text(String),
    List(Vec<String>),
}

/// A filter as sent. Members that are absent or `null` do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterRequest(Vec<(usize, Sent)>);

impl FilterRequest {
    /// The filter of parameters of the drops list, as a form sends them.
    pub fn from_pairs<'a, 'b>(pairs: impl Iterator<Item = (&'a str, &'b str)>) -> FilterRequest {
        let list = |text: &str| -> Vec<String> {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(str::to_owned).collect()
        };
        let sent = pairs.filter(|(_, value)| !value.is_empty()).filter_map(|(name, value)| {
            let at = MEMBERS.iter().position(|member| match member.kind {
                Kind::Within => false,
                _ => member.parameter == name,
            })?;
            let sent = match MEMBERS[at].kind {
                // A text that is not a number becomes one out of range, so that the error has the range.
                Kind::Number(..) => Sent::Number(value.parse().unwrap_or(i64::MAX)),
                Kind::Tlds | Kind::SomeOf(_) => Sent::List(list(value)),
                Kind::Texts(_) | Kind::Contains => {
                    match items(value).collect::<Result<Vec<_>, _>>() {
                        Ok(texts) => Sent::List(texts.into_iter().map(Cow::into_owned).collect()),
                        Err(_) => Sent::List(vec![value.to_owned()]),
                    }
                }
                Kind::Text | Kind::OneOf(_) | Kind::Within => Sent::Text(value.to_owned()),
            };
            Some((at, sent))
        });
        FilterRequest(sent.collect())
    }

    /// Whether parsing compiles a regular expression.
    pub fn compiles(&self) -> bool {
        self.0.iter().any(|(at, _)| MEMBERS[*at].name == "regex")
    }

    /// Whether the text of labels is read.
    pub fn reads_labels(&self) -> bool {
        let reads = |kind| matches!(kind, Kind::Text | Kind::Texts(_) | Kind::Contains);
        self.0.iter().any(|(at, _)| reads(MEMBERS[*at].kind))
    }

    /// Parses the members of the filter, which are called `filter.…` in errors.
    ///
    /// # Errors
    /// 400 for the first invalid member.
    pub fn parse(self, today: Day) -> Result<Conditions, ApiError> {
        let mut pairs = Vec::new();
        for (at, sent) in self.0 {
            parse_member(&MEMBERS[at], sent, &mut pairs)?;
        }
        let borrowed: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        drops(&borrowed, today).map_err(of_member)?;
        Ok(Conditions::new(borrowed))
    }
}

/// The parameter of the drops list that a member stands for.
pub fn parameter_of(member: &str) -> Option<&'static str> {
    MEMBERS.iter().find(|known| known.name == member).map(|known| known.parameter)
}

/// Conditions that were stored, and parameters beside them, as a query of the drops list.
///
/// # Errors
/// A parameter that is invalid; stored ones were valid.
pub fn drops(pairs: &[(&str, &str)], today: Day) -> Result<DropFilter, ApiError> {
    Params::from_pairs(pairs).drops(LIMITS, today)
}

fn parse_member(
    member: &FilterMember,
    sent: Sent,
    pairs: &mut Vec<(&'static str, String)>,
) -> Result<(), ApiError> {
    let name = format!("filter.{}", member.name);
    let wrong = |what: &dyn fmt::Display| ApiError::parameter(name.clone(), what);
    let item =
        |at: usize, what: &dyn fmt::Display| ApiError::parameter(format!("{name}[{at}]"), what);
    let (parameter, value) = match (member.kind, sent) {
        (Kind::Within, Sent::Number(days)) => {
            let most = i64::from(RELEASE_WITHIN_DAYS_MAX);
            if !(0..=most).contains(&days) {
                return Err(wrong(&format!("must be an integer from 0 to {most}")));
            }
            pairs.push(("release_from", "today".to_owned()));
            ("release_to", format!("+{days}d"))
        }
        (kind, Sent::Text(text)) if matches!(kind, Kind::Contains) || member.name == "q" => {
            let text = Substring::of_name(&text).map_err(|err| wrong(&err))?;
            ("q", text.as_str().to_owned())
        }
        (_, Sent::Number(number)) => (member.parameter, number.to_string()),
        (_, Sent::Text(text)) if text.trim().is_empty() => return Err(wrong(&"must not be empty")),
        (_, Sent::Text(text)) => (member.parameter, text.trim().to_owned()),
        (Kind::Tlds, Sent::List(tlds)) => {
            (member.parameter, parse_tlds(&tlds, wrong, item)?.join(","))
        }
        (Kind::SomeOf(words), Sent::List(list)) => {
            let mut distinct: Vec<String> = Vec::new();
            for (at, text) in list.into_iter().enumerate() {
                if !words.contains(&text.as_str()) {
                    return Err(item(at, &format!("must be one of {}", words.join(", "))));
                }
                if !distinct.contains(&text) {
                    distinct.push(text);
                }
            }
            (member.parameter, distinct.join(","))
        }
        (_, Sent::List(texts)) => {
            let mut list: Vec<String> = Vec::new();
            for (at, text) in texts.iter().enumerate() {
                let text = Substring::parse(text).map_err(|err| item(at, &err))?;
                list.push(quoted(text.as_str()).into_owned());
            }
            (member.parameter, list.join(","))
        }
    };
    pairs.push((parameter, value));
    Ok(())
}

/// TLDs in their folded form, each once.
fn parse_tlds(
    sent: &[String],
    wrong: impl Fn(&dyn fmt::Display) -> ApiError,
    item: impl Fn(usize, &dyn fmt::Display) -> ApiError,
) -> Result<Vec<compact_str::CompactString>, ApiError> {
    if sent.len() > RULE_TLDS_MAX {
        return Err(wrong(&format!("must have at most {RULE_TLDS_MAX} items")));
    }
    let mut tlds = Vec::with_capacity(sent.len());
    for (at, text) in sent.iter().enumerate() {
        // An unknown suffix is valid and matches nothing yet; a malformed one is an error.
        let tld = fold_tld(text).filter(|tld| is_suffix(tld));
        let tld = tld.ok_or_else(|| item(at, &"must be a public suffix, such as com or co.uk"))?;
        if !tlds.contains(&tld) {
            tlds.push(tld);
        }
    }
    Ok(tlds)
}

/// An item of a list, between quotes if it has a comma or a quote.
fn quoted(item: &str) -> Cow<'_, str> {
    match item.contains([',', '"']) {
        true => format!("\"{}\"", item.replace('"', "\"\"")).into(),
        false => item.into(),
    }
}

/// An error about a parameter as one about its member.
fn of_member(err: ApiError) -> ApiError {
    let ApiError::BadParameter { name, what, code } = err else { return err };
    let of = |parameter: &str| {
        let is_it = |member: &&FilterMember| {
            member.parameter == parameter && !matches!(member.kind, Kind::Within)
        };
        MEMBERS.iter().find(is_it).map_or(parameter.to_owned(), |member| member.name.to_owned())
    };
    let what = match (code, what.rsplit_once(' ')) {
        (ParameterCode::CrossedRange, Some((start, high))) => format!("{start} {}", of(high)),
        _ => what,
    };
    ApiError::BadParameter { name: format!("filter.{}", of(&name)).into(), what, code }
}

/// The name of a member, parsed.
struct Known(usize);

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Known, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let at = NAMES.iter().position(|known| *known == name);
        at.map(Known).ok_or_else(|| de::Error::unknown_field(&name, &NAMES))
    }
}

/// A text or a list.
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
                let (mut filter, mut known) = (FilterRequest::default(), [false; MEMBERS.len()]);
                while let Some(Known(at)) = map.next_key()? {
                    if std::mem::replace(&mut known[at], true) {
                        return Err(de::Error::duplicate_field(NAMES[at]));
                    }
                    let sent = match MEMBERS[at].kind {
                        Kind::Number(..) | Kind::Within => map
                            .next_value::<Option<JsonInteger>>()?
                            .map(|JsonInteger(number)| Sent::Number(number)),
                        Kind::Text | Kind::OneOf(_) => {
                            map.next_value::<Option<String>>()?.map(Sent::Text)
                        }
                        Kind::SomeOf(_) | Kind::Tlds | Kind::Texts(_) => {
                            map.next_value::<Option<Vec<String>>>()?.map(Sent::List)
                        }
                        Kind::Contains => {
                            map.next_value::<Option<TextOrList>>()?.map(|it| match it {
                                TextOrList::Text(text) => Sent::Text(text),
                                TextOrList::List(list) => Sent::List(list),
                            })
                        }
                    };
                    filter.0.extend(sent.map(|sent| (at, sent)));
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

/// The members of a filter that are set.
pub struct FilterResponse(pub Conditions);

impl Serialize for FilterResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let within = within(&self.0);
        if let Some(days) = within {
            map.serialize_entry("releaseWithinDays", &days)?;
        }
        for member in MEMBERS {
            let value = self.0.get(member.parameter);
            let is_written = within.is_some() && member.parameter.starts_with("release_");
            // `q` alone is the text form of `contains`.
            let is_contains = member.name == "contains" && value.is_empty();
            let is_moved = member.name == "q" && self.0.get("contains").is_empty();
            match member.kind {
                _ if is_contains && !self.0.get("q").is_empty() => {
                    map.serialize_entry("contains", self.0.get("q"))?;
                }
                Kind::Within => {}
                _ if value.is_empty() || is_written || is_moved => {}
                Kind::Number(..) => {
                    map.serialize_entry(member.name, &value.parse::<u32>().unwrap_or_default())?;
                }
                Kind::Text | Kind::OneOf(_) => map.serialize_entry(member.name, value)?,
                Kind::Tlds | Kind::SomeOf(_) => {
                    map.serialize_entry(member.name, &value.split(',').collect::<Vec<_>>())?;
                }
                Kind::Texts(_) | Kind::Contains => {
                    let texts: Vec<_> = items(value).filter_map(Result::ok).collect();
                    map.serialize_entry(member.name, &texts)?;
                }
            }
        }
        map.end()
    }
}

/// The days of `releaseWithinDays`.
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

/// The JSON schema of a filter.
fn schema(description: &str, is_request: bool) -> RefOr<Schema> {
    let text = |format: &str| json!({"type": "string", "minLength": 1, "format": format});
    let list =
        |items: Value, most: usize| json!({"type": "array", "items": items, "maxItems": most});
    let of = |member: &FilterMember| {
        let mut of = match member.kind {
            Kind::Number(least, most) => {
                json!({"type": "integer", "format": "int32", "minimum": least, "maximum": most})
            }
            Kind::Within => json!({
                "type": "integer", "format": "int32", "minimum": 0, "maximum": RELEASE_WITHIN_DAYS_MAX,
            }),
            Kind::Text => text(match member.name {
                "pattern" | "regex" => member.name,
                "like" => "label",
                "q" => "name-part",
                "listedSince" => "instant",
                _ => "day",
            }),
            Kind::OneOf(words) => json!({"type": "string", "enum": words}),
            Kind::SomeOf(words) => list(json!({"type": "string", "enum": words}), words.len()),
            Kind::Tlds => list(text("tld"), RULE_TLDS_MAX),
            Kind::Texts(most) => list(text("name-part"), most),
            Kind::Contains => json!({
                "oneOf": [text("name-part"), list(text("name-part"), LABEL_TEXTS_MAX)],
            }),
        };
        of["description"] = member.description.into();
        if is_request {
            nullable(&mut of);
        }
        (member.name.to_owned(), of)
    };
    let properties: serde_json::Map<String, Value> = MEMBERS.iter().map(of).collect();
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

/// Makes a schema accept `null`.
fn nullable(schema: &mut Value) {
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    match schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        Some(one_of) => one_of.push(json!({"type": "null"})),
        None => schema["type"] = json!([schema["type"], "null"]),
    }
}
