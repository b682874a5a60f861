//! Short answers: rows have the requested columns, and lists end where the answer would become too long.

use serde_json::{Map, Value};

use crate::mcp::arguments::Wish;
use crate::mcp::tool::{AgentTool, Next};

/// Maximum bytes of an answer to a call without `limit` and `fields`: 2,000 tokens of 2.5 bytes. The
/// tokenisers `cl100k_base` and `o200k_base` have 2.9 bytes a token or more in rows of names, dates and
/// scores.
pub const ANSWER_BYTES_MAX: usize = 5_000;
/// Bytes reserved for `more`.
const MORE_BYTES: usize = 200;

/// Returns the answer of a tool for the response of its operation.
pub fn answer(tool: &AgentTool, wish: &Wish, response: Value) -> Value {
    let Value::Object(mut answer) = response else { return response };
    if answer.contains_key("error") {
        name_arguments(tool, &mut answer);
        return Value::Object(answer);
    }
    let events = sequences(&answer);
    let mut more = select(tool, wish, &mut answer);
    let is_whole = if tool.lists.is_empty() { wish.fields.is_some() } else { wish.limit.is_some() };
    let cut = if is_whole { Vec::new() } else { cut(&mut answer) };
    let first = tool.lists.first().map(|list| list.member);
    let is_first = |it: &&Cut| first == Some(it.path.as_str());
    match cut.iter().find(is_first) {
        Some(cut) => more.push(rest_of_page(tool, wish, cut, &events, &mut answer)),
        None => more.extend(next_page(tool, wish, &answer)),
    }
    for Cut { path, kept, missing } in cut.iter().filter(|it| !is_first(it)) {
        let how = match first {
            Some(_) => format!("limit={}", (kept + missing).min(tool.rows_max() as usize)),
            None => format!("fields={}", path.split('.').next().unwrap_or_default()),
        };
        more.push(format!("{path}: {missing} more; pass {how}"));
    }
    if !more.is_empty() {
        answer.insert("more".to_owned(), more.join(". ").into());
    }
    if let Some(note) = &wish.note {
        answer.insert("note".to_owned(), note.clone().into());
    }
    Value::Object(answer)
}

/// Keeps the requested columns of rows, or members of the response. Also keeps the requested number of
/// rows of an operation without a limit, and returns how many it removed.
fn select(tool: &AgentTool, wish: &Wish, answer: &mut Map<String, Value>) -> Vec<String> {
    let mut more = Vec::new();
    if let (Some(fields), []) = (&wish.fields, tool.lists) {
        *answer = projected(answer, fields.iter().map(String::as_str));
    }
    for (at, list) in tool.lists.iter().enumerate() {
        let Some(Value::Array(rows)) = answer.get_mut(list.member) else { continue };
        let limit = wish.limit.map_or(usize::MAX, |limit| limit as usize);
        if let Some(missing) = rows.len().checked_sub(limit).filter(|missing| *missing > 0) {
            rows.truncate(limit);
            let max = tool.rows_max();
            more.push(format!("{}: {missing} more; pass a limit up to {max}", list.member));
        }
        // Rows of such an operation have the requested columns already.
        if at == 0 && tool.sends("fields") {
            continue;
        }
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            *row = match wish.fields.as_ref().filter(|_| at == 0) {
                Some(fields) => projected(row, fields.iter().map(String::as_str)),
                None => projected(row, list.columns.iter().copied()),
            };
        }
    }
    more
}

/// Returns the members of an object that `columns` name. `a.b` is the member `b` of the member `a`.
fn projected<'a>(
    object: &Map<String, Value>,
    columns: impl Iterator<Item = &'a str>,
) -> Map<String, Value> {
    let mut kept = Map::new();
    for column in columns {
        let (name, inner) = match column.split_once('.') {
            Some((name, inner)) => (name, Some(inner)),
            None => (column, None),
        };
        let Some(value) = object.get(name) else { continue };
        match (inner, value) {
            (Some(inner), Value::Object(whole)) => {
                let part = kept.entry(name).or_insert_with(|| Map::new().into());
                if let (Some(part), Some(value)) = (part.as_object_mut(), whole.get(inner)) {
                    part.insert(inner.to_owned(), value.clone());
                }
            }
            _ => drop(kept.insert(name.to_owned(), value.clone())),
        }
    }
    kept
}

/// A list that was shortened.
struct Cut {
    path: String,
    kept: usize,
    missing: usize,
}

/// Shortens the longest lists until the answer is short enough.
fn cut(answer: &mut Map<String, Value>) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let bytes_max = ANSWER_BYTES_MAX - MORE_BYTES;
    let mut excess =
        answer.iter().map(|(name, value)| name.len() + bytes(value) + 4).sum::<usize>();
    excess = excess.saturating_sub(bytes_max);
    while excess > 0 {
        let Some((path, rows)) = longest(answer, "") else { break };
        let mut missing = 0;
        while excess > 0
            && let Some(row) = rows.pop()
        {
            excess = excess.saturating_sub(bytes(&row) + 1);
            missing += 1;
        }
        let kept = rows.len();
        match cuts.iter_mut().find(|cut| cut.path == path) {
            Some(cut) => (cut.kept, cut.missing) = (kept, cut.missing + missing),
            None => cuts.push(Cut { path, kept, missing }),
        }
    }
    cuts
}

/// Returns the list with the most bytes and its path. Lists within rows are shortened with their rows.
fn longest<'a>(
    members: &'a mut Map<String, Value>,
    parent: &str,
) -> Option<(String, &'a mut Vec<Value>)> {
    let path =
        |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    let lists = members.iter_mut().filter_map(|(name, value)| match value {
        Value::Array(rows) if !rows.is_empty() => Some((path(name), rows)),
        Value::Object(inner) => longest(inner, &path(name)),
        _ => None,
    });
    lists.max_by_key(|(_, rows)| rows.iter().map(bytes).sum::<usize>())
}

fn bytes(value: &Value) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

/// Returns the numbers of the events of a response.
fn sequences(answer: &Map<String, Value>) -> Vec<u64> {
    let rows = answer.get("data").and_then(Value::as_array);
    rows.into_iter().flatten().filter_map(|row| row["seq"].as_u64()).collect()
}

fn number(answer: &Map<String, Value>, member: &str) -> Option<u64> {
    answer.get(member).and_then(Value::as_u64)
}

/// Says how to get the rows of a page that was shortened.
fn rest_of_page(
    tool: &AgentTool,
    wish: &Wish,
    cut: &Cut,
    events: &[u64],
    answer: &mut Map<String, Value>,
) -> String {
    let Cut { kept, missing, .. } = *cut;
    let total = number(answer, "total");
    if answer.contains_key("count") && total.is_some() {
        answer.insert("count".to_owned(), kept.into());
    }
    // It continues after the rows that are missing here.
    answer.remove("nextCursor");
    let how = match tool.next {
        Next::Since => {
            let next = kept.checked_sub(1).and_then(|at| events.get(at)).copied();
            let next = next.or(events.first().map(|first| first.saturating_sub(1)));
            answer.insert("next".to_owned(), next.into());
            format!("since={}", next.unwrap_or_default())
        }
        Next::Offset => format!("offset={}", wish.offset + kept as u64),
        Next::Cursor | Next::Limit => {
            format!("limit={}", (kept + missing).min(tool.rows_max() as usize))
        }
    };
    match total {
        // The total counts the rows before a cursor too.
        Some(total) if tool.next != Next::Cursor => {
            let left = total.saturating_sub(wish.offset + kept as u64);
            format!("{left} more, {missing} of them on this page; pass {how}")
        }
        _ => format!("{missing} more; pass {how}"),
    }
}

/// Says how to get the next page; `None` after the last.
fn next_page(tool: &AgentTool, wish: &Wish, answer: &Map<String, Value>) -> Option<String> {
    let rows = answer.get(tool.lists.first()?.member)?.as_array()?.len() as u64;
    if tool.next == Next::Since {
        let next = number(answer, "next").filter(|next| number(answer, "newest") > Some(*next));
        return next.map(|next| format!("newer events follow; pass since={next}"));
    }
    let cursor = answer.get("nextCursor").and_then(Value::as_str);
    let total = number(answer, "total");
    let left = total.map(|total| total.saturating_sub(wish.offset + rows));
    let how = match tool.next {
        Next::Cursor => {
            cursor?;
            "nextCursor as cursor".to_owned()
        }
        Next::Offset => format!("offset={}", wish.offset + rows),
        Next::Limit | Next::Since => format!("a limit up to {}, or q", tool.rows_max()),
    };
    match (left, tool.next) {
        // The total counts the rows of earlier pages too.
        (_, Next::Cursor) => {
            Some(format!("more rows follow; pass {how}, or a limit up to {}", tool.rows_max()))
        }
        (Some(left), _) if left > 0 => Some(format!("{left} more; pass {how}")),
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::tools::TOOLS;

    fn tool(name: &str) -> &'static AgentTool {
        TOOLS.iter().find(|it| it.tool.name == name).expect("a tool")
    }

    fn rows(count: u64, row: impl Fn(u64) -> Value) -> Value {
        (0..count).map(row).collect()
    }

    #[test]
    fn a_long_page_ends_early_and_says_how_to_go_on() {
        let long = "x".repeat(500);
        for (name, list, response, how) in [
            ("list_drops", "drops", json!({"total": 900, "nextCursor": "abc"}), "limit=20"),
            ("search_names", "results", json!({"total": 900}), "offset="),
            ("list_changes", "data", json!({"next": 20, "newest": 900}), "since="),
            ("appraise", "appraisals", json!({"count": 20}), "limit=20"),
        ] {
            let tool = tool(name);
            let mut response = response;
            response[list] = rows(
                20,
                |at| json!({"seq": at + 1, "domain": long, "dqs": at, "explanation": long, "event": long}),
            );
            if list == "results" {
                response[list] =
                    rows(20, |at| json!({"domain": long, "dqs": at, "currentStatus": long}));
            }
            let short = answer(tool, &Wish::default(), response.clone());
            let kept = short[list].as_array().map_or(0, Vec::len);
            assert!((1..20).contains(&kept), "{name}: {kept}");
            assert!(bytes(&short) <= ANSWER_BYTES_MAX, "{name}: {}", bytes(&short));
            let more = short["more"].as_str().expect("text");
            assert!(more.contains(how), "{name}: {more}");
            match name {
                // Either would skip the rows that were left out.
                "list_drops" => assert_eq!(short.get("nextCursor"), None),
                "list_changes" => assert_eq!(short["next"], kept),
                "search_names" => assert!(more.ends_with(&format!("offset={kept}")), "{more}"),
                _ => assert!(more.starts_with(&format!("{} more", 20 - kept)), "{more}"),
            }
            let wish = Wish { limit: Some(20), ..Wish::default() };
            let whole = answer(tool, &wish, response);
            assert_eq!(whole[list].as_array().map_or(0, Vec::len), 20, "{name}");
        }
    }

    #[test]
    fn lists_that_go_on_say_how() {
        let tlds = json!({"total": 917, "count": 1, "tlds": [{"tld": "com"}]});
        let tlds = answer(tool("list_tlds"), &Wish::default(), tlds);
        assert_eq!(tlds["more"], "916 more; pass a limit up to 1000, or q");
        let found = json!({"total": 60, "results": [{"domain": "a.com"}]});
        let wish = Wish { offset: 40, ..Wish::default() };
        let found = answer(tool("search_names"), &wish, found);
        assert_eq!(found["more"], "19 more; pass offset=41");
        let last = json!({"total": 41, "results": [{"domain": "a.com"}]});
        assert_eq!(answer(tool("search_names"), &wish, last).get("more"), None);
        let changes = json!({"data": [], "next": 4, "newest": 9});
        let changes = answer(tool("list_changes"), &Wish::default(), changes);
        assert_eq!(changes["more"], "newer events follow; pass since=4");
        let family = json!({"label": "a", "names": rows(9, |_| json!({"dqs": 1}))});
        let wish = Wish { limit: Some(4), ..Wish::default() };
        let family = answer(tool("label_family"), &wish, family);
        assert_eq!(family["more"], "names: 5 more; pass a limit up to 1000");
    }

    #[test]
    fn long_lists_of_a_dossier_are_shortened() {
        let facts = rows(400, |at| json!({"fact": format!("acme.fact{at}"), "value": at}));
        let dossier = json!({"domain": "a.com", "facts": facts, "popularity": [1, 2]});
        let short = answer(tool("get_domain"), &Wish::default(), dossier.clone());
        assert!(bytes(&short) <= ANSWER_BYTES_MAX);
        assert_eq!(short["popularity"], json!([1, 2]));
        let kept = short["facts"].as_array().map_or(0, Vec::len);
        assert_eq!(short["more"], format!("facts: {} more; pass fields=facts", 400 - kept));
        let wish = Wish { fields: Some(vec!["facts".to_owned()]), ..Wish::default() };
        let whole = answer(tool("get_domain"), &wish, dossier);
        assert_eq!(
            (whole["facts"].as_array().map(Vec::len), whole.get("domain")),
            (Some(400), None)
        );
    }

    #[test]
    fn columns_of_columns_are_kept_alone() {
        let row = json!({"domain": "a.com", "latestDrop": {"date": "2026-03-01", "dqs": 4}});
        let columns = ["domain", "latestDrop.date", "stage"];
        let row = projected(row.as_object().expect("an object"), columns.into_iter());
        let expected = json!({"domain": "a.com", "latestDrop": {"date": "2026-03-01"}});
        assert_eq!(Value::Object(row), expected);
        let none = json!({"domain": "a.com", "latestDrop": null});
        let none = projected(none.as_object().expect("an object"), columns.into_iter());
        assert_eq!(Value::Object(none), json!({"domain": "a.com", "latestDrop": null}));
    }

    #[test]
    fn errors_name_the_argument_and_not_the_member() {
        let error = json!({"error": "domainNames[3]: is empty", "parameter": "domainNames[3]"});
        let named = answer(tool("watch"), &Wish::default(), error);
        let expected = json!({"error": "domains[3]: is empty", "parameter": "domains[3]"});
        assert_eq!(named, expected);
    }
}
