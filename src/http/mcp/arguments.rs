//! Arguments of a call, parsed into the request to the operation.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{self, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::JsonObject;
use serde_json::Value;
use url::form_urlencoded;

use crate::batch::ParameterValue;
use crate::mcp::tool::{AgentTool, Argument, BodyType, Place, ROWS_DEFAULT};
use crate::query::error::{BadParameter, ParameterCode};
use crate::query::list;
use crate::query::params::Params;
use crate::service::error::ApiError;
use crate::vocab::similar;

/// Names of the argument for a name or names. Each tool has one of them, and accepts the others.
const DOMAIN: [&str; 6] = ["domain", "domains", "name", "names", "domain_name", "domain_names"];
/// Maximum characters of an unknown argument that an error quotes.
const ECHO_CHARS_MAX: usize = 64;

/// The part of a call that shapes the answer.
#[derive(Debug, Default)]
pub struct Wish {
    pub limit: Option<u32>,
    /// Columns of a row, or members of the response.
    pub fields: Option<Vec<String>>,
    /// Number of rows that the call skips.
    pub offset: u64,
    /// A hint about an argument that was sent under another name.
    pub note: Option<String>,
}

/// Builds the request to the operation.
///
/// # Errors
/// An argument that the tool does not have, that it cannot convert, or that is missing.
pub fn request(tool: &AgentTool, arguments: JsonObject) -> Result<(Request, Wish), ApiError> {
    let operation = tool.operation;
    let mut path = operation.path.to_owned();
    let mut query = form_urlencoded::Serializer::new(String::new());
    let (mut body, mut wish) = (JsonObject::new(), Wish::default());
    let mut given: Vec<&str> = Vec::new();
    for (sent, value) in arguments {
        let Argument { name, inner, place } = find(tool, &sent)?;
        if value.is_null() && !matches!(place, Place::Body(_)) {
            continue;
        }
        if given.contains(name) {
            return Err(ApiError::repeated(*name));
        }
        given.push(name);
        if *name != sent {
            wish.note = Some(format!("{sent}: this argument is called {name}"));
        }
        if let Place::Body(of) = place {
            body.insert((*inner).to_owned(), converted(value, *of));
            continue;
        }
        let value: ParameterValue = serde_json::from_value(value)
            .map_err(|_| ApiError::parameter(*name, "must be text, a number or a list of texts"))?;
        let text = value.text();
        match *name {
            "limit" => wish.limit = limit(tool, &text)?,
            "offset" => wish.offset = text.trim().parse().unwrap_or_default(),
            "fields" => wish.fields = fields(tool, &text)?,
            _ => {}
        }
        match place {
            Place::Path => {
                let text = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
                path = path.replace(&format!("{{{inner}}}"), &text);
            }
            Place::Query => drop(query.append_pair(inner, &text)),
            Place::Body(_) | Place::Tool => {}
        }
    }
    for (name, value) in [("limit", ROWS_DEFAULT.to_string()), ("fields", tool.shown().join(","))] {
        if tool.sends(name) && !given.contains(&name) {
            query.append_pair(name, &value);
        }
    }
    let is_missing = |it: &&Argument| it.place == Place::Path && !given.contains(&it.name);
    if let Some(missing) = tool.arguments.iter().find(is_missing) {
        return Err(ApiError::parameter(missing.name, "is required"));
    }
    let query = query.finish();
    let uri = if query.is_empty() { path } else { format!("{path}?{query}") };
    let method = Method::from_bytes(operation.method.as_bytes()).expect("a method");
    let mut request = http::Request::builder().method(method).uri(uri);
    let body = if operation.body.is_some() {
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Body::from(Value::Object(body).to_string())
    } else {
        Body::empty()
    };
    let request = request.body(body).map_err(|err| ApiError::Internal(err.into()))?;
    Ok((request, wish))
}

/// Returns the argument with this name. The argument for a name has several.
fn find<'a>(tool: &'a AgentTool, sent: &str) -> Result<&'a Argument, ApiError> {
    let named = |name: &str| tool.arguments.iter().find(|it| it.name == name);
    let found = named(sent).or_else(|| {
        similar::respelt(sent, DOMAIN.into_iter())?;
        DOMAIN[..2].iter().find_map(|name| named(name))
    });
    found.ok_or_else(|| {
        let name: String = sent.chars().take(ECHO_CHARS_MAX).collect();
        let nearest = similar::nearest(&name, tool.arguments.iter().map(|it| it.name));
        ApiError::UnknownParameter { name, nearest }
    })
}

/// Parses `limit`, whose maximum is below that of the operation.
fn limit(tool: &AgentTool, text: &str) -> Result<Option<u32>, BadParameter> {
    Params::from_pairs(&[("limit", text)]).integer("limit", 1..=tool.rows_max())
}

/// Parses `fields`. Operations with this parameter check it themselves.
fn fields(tool: &AgentTool, text: &str) -> Result<Option<Vec<String>>, BadParameter> {
    if tool.sends("fields") || text.is_empty() {
        return Ok(None);
    }
    let fields: Vec<_> = list::plain(text).map(str::to_owned).collect();
    if fields.iter().all(|field| tool.columns.contains(&field.as_str())) {
        return Ok(Some(fields));
    }
    let what = format!("must be some of {}", tool.columns.join(", "));
    Err(BadParameter::coded(ParameterCode::UnknownField, "fields", what))
}

/// Converts text to the type of a member: agents send numbers and lists as text too.
fn converted(value: Value, of: BodyType) -> Value {
    match (of, value) {
        (BodyType::Number, Value::String(text)) => match text.trim().parse() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::String(text),
        },
        (BodyType::List, Value::String(text)) => list::plain(&text).collect(),
        (_, other) => other,
    }
}
