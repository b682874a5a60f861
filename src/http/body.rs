//! Request bodies: bytes parsed into request types, with errors that name the member at fault.
//!
//! Unknown and repeated members are errors. Values are validated later, where a request type is converted
//! into a domain type. At most [`BODY_BYTES_MAX`] bytes are read.

use std::fmt;
use std::marker::PhantomData;

use axum::RequestExt;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Uri};
use chrono::{DateTime, Utc};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::accounts::{Idempotency, IdempotencyKey, Post};
use crate::edge::body::read_bytes_up_to;
use crate::edge::error::Refusal;
use crate::query::error::ParameterCode;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::vocab::json;
use crate::vocab::limits::{BODY_BYTES_MAX, BODY_DEPTH_MAX};
use crate::vocab::money::{Amount, Usd, UsdError};
use crate::vocab::similar;

/// Header that makes a POST idempotent.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
/// Maximum characters of client text in an error message.
const ECHO_CHARS_MAX: usize = 160;

/// Extractor of a JSON body.
pub struct JsonBody<T>(pub T);

/// Extractor of a POST request: JSON body, time and idempotency key.
pub struct PostBody<T> {
    pub body: T,
    pub post: Post,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<JsonBody<T>, Refusal> {
        let bytes = read_json(request).await?;
        Ok(JsonBody(parse(&bytes)?))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for PostBody<T> {
    type Rejection = Refusal;

    async fn from_request(mut request: Request, _: &S) -> Result<PostBody<T>, Refusal> {
        let head = PostHead::read(&mut request).await?;
        let bytes = read_json(request).await?;
        Ok(PostBody { body: parse(&bytes)?, post: head.into_post(&bytes) })
    }
}

/// Extractor of a POST whose body is empty or `{}`.
pub struct BarePost(pub Post);

/// An object without members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

impl<S: Send + Sync> FromRequest<S> for BarePost {
    type Rejection = Refusal;

    async fn from_request(mut request: Request, _: &S) -> Result<BarePost, Refusal> {
        let head = PostHead::read(&mut request).await?;
        let (parts, body) = request.into_parts();
        let bytes = read_bytes(body).await?;
        if !bytes.is_empty() {
            check_content_type(&parts.headers)?;
            parse::<Empty>(&bytes)?;
        }
        // An empty body and `{}` are the same request.
        Ok(BarePost(head.into_post(b"")))
    }
}

/// The part of a POST that is known before its body is read.
struct PostHead {
    now: DateTime<Utc>,
    key: Option<IdempotencyKey>,
    method: Method,
    uri: Uri,
}

impl PostHead {
    async fn read(request: &mut Request) -> Result<PostHead, ApiError> {
        let axum::Extension(Now(now)) = request.extract_parts().await.map_err(|_| {
            ApiError::Internal(anyhow::anyhow!("handler is not wrapped in `guarded`"))
        })?;
        let key = idempotency_key(request.headers())?;
        Ok(PostHead { now, key, method: request.method().clone(), uri: request.uri().clone() })
    }

    fn into_post(self, body: &[u8]) -> Post {
        let PostHead { now, key, method, uri } = self;
        let idempotency =
            key.map(|key| Idempotency { key, fingerprint: fingerprint(&method, &uri, body) });
        Post { now, idempotency }
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::repeated(IDEMPOTENCY_KEY));
    }
    // Values that are not visible ASCII are rejected like an empty key.
    let text = value.to_str().unwrap_or_default();
    let key = IdempotencyKey::parse(text);
    key.map(Some).map_err(|err| ApiError::parameter(IDEMPOTENCY_KEY, err))
}

/// Digest of method, path and body, to detect that a key is reused for another request.
fn fingerprint(method: &Method, uri: &Uri, body: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in [method.as_str().as_bytes(), uri.path().as_bytes(), body] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().into()
}

/// Reads a JSON body.
async fn read_json(request: Request) -> Result<Vec<u8>, ApiError> {
    let (parts, body) = request.into_parts();
    check_content_type(&parts.headers)?;
    read_bytes(body).await
}

/// # Errors
/// [`ApiError::UnsupportedMediaType`] unless the body is JSON without an encoding.
pub fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let kind = kinds.next().filter(|_| kinds.next().is_none());
    let is_json = kind.and_then(|kind| kind.to_str().ok()).is_some_and(is_json);
    let plain = headers.get_all(CONTENT_ENCODING).iter().all(|encoding| encoding == "identity");
    if is_json && plain { Ok(()) } else { Err(ApiError::UnsupportedMediaType) }
}

/// Accepts `application/json` with any parameters, but no other character set (RFC 8259 §8.1).
fn is_json(kind: &str) -> bool {
    let mut parts = kind.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    json && parts.filter_map(|parameter| parameter.split_once('=')).all(|(name, value)| {
        let utf8 = value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8");
        utf8 || !name.trim().eq_ignore_ascii_case("charset")
    })
}

/// Reads a body of at most [`BODY_BYTES_MAX`].
///
/// # Errors
/// 413 for a larger body, 400 for a truncated one.
pub async fn read_bytes(body: Body) -> Result<Vec<u8>, ApiError> {
    read_bytes_up_to(body, BODY_BYTES_MAX).await
}

/// Parses a body.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    check_structure(bytes)?;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|err| {
        let path = err.path().to_string();
        member_error(&path, &err.into_inner())
    })?;
    json.end().map_err(|err| not_json(&err))?;
    Ok(value)
}

/// Checks that a body is an object and not nested too deeply, before it is parsed.
fn check_structure(bytes: &[u8]) -> Result<(), ApiError> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        return Err(ApiError::parameter("body", "must be a JSON object"));
    }
    if json::is_deeper_than(bytes, BODY_DEPTH_MAX) {
        let what = format!("is nested more than {BODY_DEPTH_MAX} levels deep");
        return Err(ApiError::parameter("body", what));
    }
    Ok(())
}

/// Returns the error for the member at `path` (`filter.tlds[1]`; `.` for the whole body).
fn member_error(path: &str, err: &serde_json::Error) -> ApiError {
    if err.classify() != Category::Data {
        return not_json(err);
    }
    let path = if path == "." { "" } else { path };
    let text = err.to_string();
    // The path already states the position.
    let what = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    let repeated = what.strip_prefix("duplicate field `").and_then(|rest| rest.strip_suffix('`'));
    let code = match what.starts_with("unknown field") {
        true => ParameterCode::UnknownMember,
        false => ParameterCode::InvalidValue,
    };
    let hint = did_you_mean(what);
    let what = hint.as_deref().unwrap_or(what);
    match (repeated, path) {
        (Some(member), "") => ApiError::repeated(member.to_owned()),
        (Some(member), path) => ApiError::repeated(format!("{path}.{member}")),
        (None, "") => ApiError::coded(code, "body", shorten(what)),
        (None, path) => ApiError::coded(code, shorten(path), shorten(what)),
    }
}

/// Returns the error for a known member in another spelling, such as `min_dqs`; `None` for other members.
fn did_you_mean(what: &str) -> Option<String> {
    let (unknown, expected) = what.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    let nearest = similar::respelt(unknown, expected.split('`').skip(1).step_by(2))?;
    Some(format!("unknown field `{unknown}`; did you mean `{nearest}`?"))
}

fn not_json(err: &serde_json::Error) -> ApiError {
    ApiError::parameter("body", format!("is not valid JSON: {err}"))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A member of a PATCH body: absent leaves the value, null clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    #[default]
    Absent,
    Null,
    Value(T),
}

impl<T> Patch<T> {
    /// Returns the new value, or `None` to leave it unchanged. Use it for a value that cannot be
    /// cleared.
    ///
    /// # Errors
    /// 400 for null.
    pub fn not_null(self, name: &'static str) -> Result<Option<T>, ApiError> {
        match self {
            Patch::Absent => Ok(None),
            Patch::Null => Err(ApiError::parameter(name, "must not be null")),
            Patch::Value(value) => Ok(Some(value)),
        }
    }

    /// Returns `None` to leave the value unchanged, and `Some(None)` to clear it.
    pub fn nested(self) -> Option<Option<T>> {
        match self {
            Patch::Absent => None,
            Patch::Null => Some(None),
            Patch::Value(value) => Some(Some(value)),
        }
    }

    /// Converts the value.
    ///
    /// # Errors
    /// The error of `convert`.
    pub fn try_map<U>(
        self,
        convert: impl FnOnce(T) -> Result<U, ApiError>,
    ) -> Result<Patch<U>, ApiError> {
        Ok(match self {
            Patch::Absent => Patch::Absent,
            Patch::Null => Patch::Null,
            Patch::Value(value) => Patch::Value(convert(value)?),
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Patch<T>, D::Error> {
        // `#[serde(default)]` on the member covers absence.
        let value = Option::<T>::deserialize(deserializer)?;
        Ok(value.map_or(Patch::Null, Patch::Value))
    }
}

/// A `T` that is deserialised only from a JSON object. A derived `Deserialize` alone would accept
/// an array too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }
        deserializer.deserialize_map(Members(PhantomData)).map(Object)
    }
}

/// A JSON number with an integral value. JSON does not distinguish 60 from 60.0 (RFC 8259 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonInteger(pub i64);

impl<'de> Deserialize<'de> for JsonInteger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonInteger, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = JsonInteger;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<JsonInteger, E> {
                Ok(JsonInteger(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<JsonInteger, E> {
                // Such a value is out of range for every member; a later check rejects it.
                Ok(JsonInteger(i64::try_from(value).unwrap_or(i64::MAX)))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<JsonInteger, E> {
                // Numbers beyond `i64` become its limits, which are also out of range for every
                // member.
                match value.fract() == 0.0 {
                    true => Ok(JsonInteger(value as i64)),
                    false => Err(E::invalid_type(Unexpected::Float(value), &self)),
                }
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// A price: a JSON number with at most two decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money(pub Usd);

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        // The digits are parsed, because 12.5 and 12.500000000000000001 are equal as binary
        // fractions.
        let number = Box::<RawValue>::deserialize(deserializer)?;
        let price = Usd::from_json_number(number.get()).ok_or(UsdError::Range);
        price.map(Money).map_err(de::Error::custom)
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Number(self.0.into()).serialize(serializer)
    }
}

/// The number of an amount, without its currency.
pub struct Number(pub Amount);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (minor, units) = (self.0.minor(), self.0.currency().minor_units());
        if minor.is_multiple_of(units) {
            return serializer.serialize_u64(minor / units);
        }
        // Amounts have at most 14 digits, so the nearest f64 prints exactly.
        serializer.serialize_f64(minor as f64 / units as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Shape {
        name: Option<String>,
        #[serde(default)]
        note: Patch<String>,
        filter: Option<Object<Inner>>,
        list: Option<Vec<Object<Inner>>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Inner {
        min_dqs: Option<JsonInteger>,
        price: Option<Money>,
    }

    fn shape(text: &str) -> Result<Shape, String> {
        parse(text.as_bytes()).map_err(|err| match err {
            ApiError::BadParameter { name, what, .. } => format!("{name}: {what}"),
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn patch_tells_absent_null_and_value_apart() {
        let note = |text| shape(text).map(|shape| shape.note);
        assert_eq!(note("{}"), Ok(Patch::Absent));
        assert_eq!(note(r#"{"note": null}"#), Ok(Patch::Null));
        assert_eq!(note(r#"{"note": ""}"#), Ok(Patch::Value(String::new())));
        assert_eq!(shape(r#" {"name": null} "#).map(|shape| shape.name), Ok(None));
    }

    #[test]
    fn errors_name_the_member() {
        let deep = format!("{{\"name\":{}", "[".repeat(16));
        for (text, error) in [
            ("", "body: must be a JSON object"),
            ("[1]", "body: must be a JSON object"),
            ("null", "body: must be a JSON object"),
            ("{", "body: is not valid JSON: EOF while parsing an object at line 1 column 1"),
            ("{}}", "body: is not valid JSON: trailing characters at line 1 column 3"),
            ("{'a':1}", "body: is not valid JSON: key must be a string at line 1 column 2"),
            (&deep, "body: is nested more than 16 levels deep"),
            (r#"{"name": 5}"#, "name: invalid type: integer `5`, expected a string"),
            (r#"{"name": "a", "name": "b"}"#, "name: is given more than once"),
            (
                r#"{"nom": 1}"#,
                "nom: unknown field `nom`, expected one of `name`, `note`, `filter`, `list`",
            ),
            (r#"{"filter": [1]}"#, "filter: invalid type: sequence, expected an object"),
            (
                r#"{"filter": {"minDqs": 1.5}}"#,
                "filter.minDqs: invalid type: floating point `1.5`, expected an integer",
            ),
            (r#"{"filter": {"minDqs": 1, "minDqs": 1}}"#, "filter.minDqs: is given more than once"),
            (
                r#"{"filter": {"min_dqs": 1}}"#,
                "filter.min_dqs: unknown field `min_dqs`; did you mean `minDqs`?",
            ),
            (
                r#"{"list": [{}, {"x": 1}]}"#,
                "list[1].x: unknown field `x`, expected `minDqs` or `price`",
            ),
            (
                r#"{"list": [{"price": "1"}]}"#,
                "list[0].price: must be a number from 0 to 1000000000 with at most two decimals",
            ),
        ] {
            assert_eq!(shape(text), Err(error.to_owned()), "{text}");
        }
        let long = shape(&format!("{{\"{}\": 1}}", "ü".repeat(10_000))).expect_err("unknown");
        assert!(long.chars().count() < 400, "{long}");
    }

    #[test]
    fn integral_numbers_are_integers() {
        for (text, number) in
            [("60", 60), ("60.0", 60), ("6e1", 60), ("-0.0", 0), ("1e300", i64::MAX)]
        {
            let read = shape(&format!(r#"{{"filter": {{"minDqs": {text}}}}}"#)).expect(text);
            let Object(Inner { min_dqs, .. }) = read.filter.expect("there");
            assert_eq!(min_dqs, Some(JsonInteger(number)), "{text}");
        }
    }

    #[test]
    fn brackets_in_strings_do_not_count_as_nesting() {
        let text = format!(r#"{{"name": "\"{}\\"}}"#, "[".repeat(100));
        assert!(shape(&text).is_ok());
    }

    #[test]
    fn prices_print_without_trailing_zeros() {
        for (cents, text) in [(0, "0"), (1, "0.01"), (1205, "12.05"), (1250, "12.5"), (1200, "12")]
        {
            let price = Money(Usd::from_cents(cents).expect("a price"));
            assert_eq!(serde_json::to_string(&price).expect("JSON"), text);
        }
        let most = Money(Usd::from_cents(99_999_999_999).expect("a price"));
        assert_eq!(serde_json::to_string(&most).expect("JSON"), "999999999.99");
    }

    #[test]
    fn json_content_types_are_recognised() {
        for kind in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"; v=1",
        ] {
            assert!(is_json(kind), "{kind}");
        }
        for kind in
            ["", "text/json", "application/jsonp", "application/json; charset=latin1", "text/plain"]
        {
            assert!(!is_json(kind), "{kind}");
        }
    }
}
