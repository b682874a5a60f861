//! Parameters of API requests: parses the ID in a path, and refuses query parameters that an
//! operation does not have. [`crate::query::params`] parses their values. Pages ignore unknown
//! parameters.

use std::borrow::Cow;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderName};

use crate::edge::operation::{Operation, Parameter, ParameterPlace};
use crate::query::error::{BadParameter, ParameterCode};
use crate::query::facts;
use crate::query::params::decode;
use crate::service::error::ApiError;
use crate::vocab::similar;

/// Parses the ID in a path.
///
/// # Errors
/// 404 for text that is not an ID.
pub fn path_id<T>(
    path: Result<Path<String>, PathRejection>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ApiError> {
    path.ok().and_then(|Path(text)| parse(&text)).ok_or(ApiError::NotFound)
}

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Maximum characters of an unknown parameter quoted in an error.
const ECHO_CHARS_MAX: usize = 64;

/// Checks that an operation has all the parameters that occur in a query string, and that none of its lists
/// occurs twice. With `Prefer: handling=lenient` (RFC 7240 §4.4), unknown ones are ignored.
///
/// # Errors
/// 400 for the first unknown parameter, or for a repeated list.
pub fn refuse_unknown(
    operation: &Operation,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let Some(query) = query else { return Ok(()) };
    let names = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        // A name that cannot be decoded is shown as sent.
        decode(name).unwrap_or(Cow::Borrowed(name))
    });
    let names: Vec<Cow<'_, str>> = names.collect();
    let is_known = |name: &str| {
        let name = if name.starts_with(facts::PREFIX) { facts::FACT } else { name };
        in_query(operation.parameters).any(|known| known == name)
    };
    match names.iter().find(|name| !is_known(name)) {
        Some(unknown) if !is_lenient(headers) => {
            return Err(unknown_parameter(unknown, operation.parameters));
        }
        _ => {}
    }
    // Some clients send an item of a list at a time.
    let lists = operation.parameters.iter().filter(|it| it.is_list());
    match lists.into_iter().find(|it| names.iter().filter(|name| *name == it.name).count() > 1) {
        Some(list) => {
            let what = "is given more than once; separate the items of a list with commas";
            Err(BadParameter::coded(ParameterCode::Repeated, list.name, what).into())
        }
        None => Ok(()),
    }
}

/// Returns the names of the query parameters.
fn in_query(parameters: &'static [Parameter]) -> impl Iterator<Item = &'static str> {
    let in_query = parameters.iter().filter(|known| known.place == ParameterPlace::Query);
    in_query.map(|known| known.name)
}

/// Returns the error for a name that is not in `known`.
pub fn unknown_parameter(name: &str, known: &'static [Parameter]) -> ApiError {
    unknown_name(name, in_query(known))
}

/// As [`unknown_parameter`], for other names.
pub fn unknown_name(name: &str, known: impl Iterator<Item = &'static str>) -> ApiError {
    let name: String = name.chars().take(ECHO_CHARS_MAX).collect();
    let nearest = similar::nearest(&name, known);
    ApiError::UnknownParameter { name, nearest }
}

/// Whether the client prefers lenient handling. The header is a list and may be repeated.
fn is_lenient(headers: &HeaderMap) -> bool {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|preference| {
        let token = preference.split(';').next().unwrap_or_default();
        let pair = token.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        pair.is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("handling")
                && value.trim_matches('"').eq_ignore_ascii_case("lenient")
        })
    })
}
