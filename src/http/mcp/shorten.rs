//! Answers of tools.

use serde_json::{Map, Value};

use crate::mcp::arguments::Wish;
use crate::mcp::tool::AgentTool;

/// Returns the answer of a tool for the response of its operation.
pub fn answer(tool: &AgentTool, wish: &Wish, response: Value) -> Value {
    let Value::Object(mut answer) = response else { return response };
    if answer.contains_key("error") {
        name_arguments(tool, &mut answer);
        return Value::Object(answer);
    }
    if let Some(note) = &wish.note {
        answer.insert("note".to_owned(), note.clone().into());
    }
    Value::Object(answer)
}

/// Names the arguments of the tool in an error of its operation.
fn name_arguments(tool: &AgentTool, error: &mut Map<String, Value>) {
    let Some(Value::String(parameter)) = error.get("parameter").cloned() else { return };
    let is_it = |inner: &str| {
        let rest = parameter.strip_prefix(inner);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    };
    let renamed = tool.arguments.iter().find(|it| it.name != it.inner && is_it(it.inner));
    let Some(argument) = renamed else { return };
    for member in ["parameter", "error"] {
        let Some(Value::String(text)) = error.get_mut(member) else { continue };
        if let Some(rest) = text.strip_prefix(argument.inner) {
            *text = format!("{}{rest}", argument.name);
        }
    }
}
