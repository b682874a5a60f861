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
use crate::params::unknown_name;
use crate::query::error::{BadParameter, ParameterCode};
use crate::query::list;
use crate::query::params::Params;
use crate::service::error::ApiError;
use crate::vocab::similar;

/// Names of the argument for a name or names. Each tool has one of them, and accepts the others.
const DOMAIN: [&str; 6] = ["domain", "domains", "name", "names", "domain_name", "domain_names"];

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
    found.ok_or_else(|| unknown_name(sent, tool.arguments.iter().map(|it| it.name)))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::edge::error::Refusal;
    use crate::edge::operation::ParameterKind;
    use crate::mcp::tools::TOOLS;

    fn tool(name: &str) -> &'static AgentTool {
        TOOLS.iter().find(|it| it.tool.name == name).expect("a tool")
    }

    fn ask(tool: &AgentTool, arguments: Value) -> Result<(Request, Wish), String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        request(tool, arguments).map_err(|err| Refusal::from(err).message().to_owned())
    }

    /// Returns the arguments that a call needs, with one more.
    fn with(tool: &AgentTool, name: &str, value: &Value) -> Value {
        let mut all = json!({});
        for path in tool.arguments.iter().filter(|it| it.place == Place::Path) {
            all[path.name] = "solar.com".into();
        }
        all[name] = value.clone();
        all
    }

    fn kind_of(tool: &AgentTool, argument: &Argument) -> Option<ParameterKind> {
        let known = tool.operation.parameters.iter().find(|it| it.name == argument.inner);
        known.map(|it| it.kind)
    }

    #[test]
    fn arguments_become_the_request_of_the_operation() {
        let arguments =
            json!({"tld": ["com", "net"], "min_dqs": 70, "contains": ["a,b"], "kind": null});
        let (drops, _) = ask(tool("list_drops"), arguments).expect("a request");
        let path = drops.uri().path_and_query().expect("a path").as_str();
        let fields = tool("list_drops").shown().join("%2C");
        let expected = "contains=%22a%2Cb%22&min_dqs=70&tld=com%2Cnet&limit=20";
        assert_eq!(path, format!("/api/v1/drops?{expected}&fields={fields}"));
        let (dossier, _) =
            ask(tool("get_domain"), json!({"domain": "a/../b.com"})).expect("a request");
        assert_eq!(dossier.uri().path(), "/api/v1/domain/a%2F%2E%2E%2Fb%2Ecom");
        assert_eq!(ask(tool("get_domain"), json!({})).expect_err("no name"), "domain: is required");
    }

    #[test]
    fn numbers_may_be_numbers_or_text() {
        for tool in TOOLS.iter() {
            for argument in &tool.arguments {
                let is_number = argument.name == "limit"
                    || matches!(kind_of(tool, argument), Some(ParameterKind::Integer { .. }));
                if !is_number || argument.place == Place::Path {
                    continue;
                }
                for value in [json!(3), json!("3"), json!(3.0), json!(3e0)] {
                    let given = with(tool, argument.name, &value);
                    let (sent, wish) = ask(tool, given).expect("a request");
                    let query = sent.uri().query().unwrap_or_default();
                    let pair = format!("{}=3", argument.inner);
                    let is_sent = query.split('&').filter(|it| **it == pair).count() == 1;
                    let is_kept = argument.place == Place::Tool && wish.limit == Some(3);
                    assert!(is_sent || is_kept, "{}: {value}: {query}", tool.tool.name);
                }
            }
        }
        for value in [json!(420.5), json!("420.5")] {
            assert_eq!(converted(value, BodyType::Number), json!(420.5));
        }
        assert_eq!(converted(json!("a.com, b.com"), BodyType::List), json!(["a.com", "b.com"]));
    }

    #[test]
    fn other_spellings_are_refused_with_the_right_one() {
        for tool in TOOLS.iter() {
            for argument in tool.arguments.iter().filter(|it| !DOMAIN.contains(&it.name)) {
                let camel: String = argument
                    .name
                    .split('_')
                    .enumerate()
                    .map(|(at, word)| match at {
                        0 => word.to_owned(),
                        _ => word[..1].to_uppercase() + &word[1..],
                    })
                    .collect();
                let spellings = [
                    camel,
                    argument.name.to_uppercase(),
                    argument.name.replace('_', "-"),
                    format!("{}_", argument.name),
                ];
                for spelling in spellings.iter().filter(|it| **it != argument.name) {
                    let refused = ask(tool, with(tool, spelling, &json!("3"))).map(drop);
                    let expected = format!(
                        "unknown parameter \"{spelling}\"; did you mean \"{}\"?",
                        argument.name
                    );
                    assert_eq!(refused, Err(expected), "{}", tool.tool.name);
                }
            }
            let refused = ask(tool, with(tool, "zzzzzzzz", &json!("3"))).map(drop);
            assert_eq!(refused, Err("unknown parameter \"zzzzzzzz\"".to_owned()));
        }
    }

    #[test]
    fn every_tool_for_names_accepts_each_name_of_that_argument() {
        let mut tried = Vec::new();
        for tool in TOOLS.iter() {
            let Some(own) = tool.arguments.iter().find(|it| DOMAIN.contains(&it.name)) else {
                continue;
            };
            for spelling in DOMAIN.into_iter().chain(["domainName", "domainNames", "Domain"]) {
                let (_, wish) = ask(tool, json!({spelling: "solar.com"})).expect("a request");
                let note = (spelling != own.name)
                    .then(|| format!("{spelling}: this argument is called {}", own.name));
                assert_eq!(wish.note, note, "{}", tool.tool.name);
            }
            let twice = ask(tool, json!({"domain": "a.com", "domains": "b.com"}));
            assert_eq!(twice.map(drop), Err(format!("{}: is given more than once", own.name)));
            tried.push(&*tool.tool.name);
        }
        assert_eq!(tried, ["get_domain", "appraise", "list_changes", "watch", "unwatch"]);
    }

    #[test]
    fn values_of_wrong_types_name_the_argument() {
        for tool in TOOLS.iter() {
            for argument in &tool.arguments {
                let refused = ask(tool, with(tool, argument.name, &json!({"a": 1}))).map(drop);
                if matches!(argument.place, Place::Body(_)) {
                    // The operation checks its body.
                    assert_eq!(refused, Ok(()));
                    continue;
                }
                let what = "must be text, a number or a list of texts";
                assert_eq!(refused, Err(format!("{}: {what}", argument.name)));
            }
            if tool.arguments.iter().any(|it| it.name == "limit") {
                for limit in [json!(0), json!(1.5), json!("many"), json!(1_000_000), json!(true)] {
                    let refused = ask(tool, with(tool, "limit", &limit)).map(drop);
                    let max = tool.rows_max();
                    let expected = format!("limit: must be an integer from 1 to {max}");
                    assert_eq!(refused, Err(expected), "{limit}");
                }
            }
            let is_own = |it: &&Argument| it.name == "fields" && it.place == Place::Tool;
            if tool.arguments.iter().any(|it| is_own(&it)) {
                let refused = ask(tool, with(tool, "fields", &json!("dqs,wings"))).map(drop);
                let expected = format!("fields: must be some of {}", tool.columns.join(", "));
                assert_eq!(refused, Err(expected));
            }
        }
    }
}
