//! The tools: operations of the API under names of their own, with short answers.

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool, ToolAnnotations};

use crate::edge::operation::{Parameter, ParameterPlace};
use crate::mcp::tool::{AgentTool, Argument, List, Next, Place};
use crate::mcp::{explain, schema};
use crate::operations::OPERATIONS;
use crate::query::conditions::SHARED;

/// Definition of a tool.
struct Spec {
    name: &'static str,
    /// ID of the operation.
    operation: &'static str,
    about: &'static str,
    /// Arguments with another name than in the operation, each with that name.
    renamed: &'static [(&'static str, &'static str)],
    /// Parameters and members that agents do not need.
    without: &'static [&'static str],
    filters: Filters,
    lists: &'static [List],
    next: Next,
}

/// The filters of an operation that its tool has.
enum Filters {
    All,
    /// These alone.
    Some(&'static [&'static str]),
}

impl Filters {
    /// Returns false for a filter that the tool lacks.
    fn has(&self, name: &str) -> bool {
        match self {
            Filters::All => true,
            Filters::Some(some) => {
                some.contains(&name) || SHARED.iter().all(|condition| condition.parameter != name)
            }
        }
    }
}

const fn list(member: &'static str, columns: &'static [&'static str]) -> List {
    List { member, columns }
}

const SPECS: &[Spec] = &[
    Spec {
        name: "list_drops",
        operation: "listDrops",
        about: "Ranked drops, best score first.",
        renamed: &[],
        without: &["total"],
        filters: Filters::All,
        lists: &[list("drops", &["name", "dqs", "stage", "releaseDate", "kind", "explanation"])],
        next: Next::Cursor,
    },
    Spec {
        name: "explain_filters",
        operation: "explainFilters",
        about: "Says in words what filters of `list_drops` mean, and how many names each of them leaves out, with \
                examples; also the filters that apply by default.",
        renamed: &[],
        without: &[],
        filters: Filters::All,
        lists: &[list("conditions", &["arguments", "means", "leavesOut", "examples"])],
        next: Next::Limit,
    },
    Spec {
        name: "search_names",
        operation: "searchNames",
        about: "Prefix search over every name ever seen, dropped or not. `currentStatus` is a guess from lists and the \
                calendar. Filters are those of `list_drops`.",
        renamed: &[],
        without: &[],
        filters: Filters::All,
        lists: &[list(
            "results",
            &[
                "domain",
                "dqs",
                "stage",
                "currentStatus",
                "latestDrop.date",
                "latestDrop.explanation",
            ],
        )],
        next: Next::Offset,
    },
    Spec {
        name: "get_domain",
        operation: "findDomain",
        about: "Dossier of a name: latest drop with score and signals, facts, votes. `currentStatus` is a guess from \
                lists and the calendar, made from `stage` and `releaseDate` beside it; no registry is asked.",
        renamed: &[("domain", "name")],
        without: &[],
        filters: Filters::All,
        lists: &[],
        next: Next::Limit,
    },
    Spec {
        name: "label_family",
        operation: "findLabel",
        about: "Every name with a label: suffix, stage, dates and score, best first; and the labels that differ in a \
                hyphen or a plural. `currentStatus` is a guess from lists and the calendar.",
        renamed: &[],
        without: &[],
        filters: Filters::All,
        lists: &[
            list("names", &["domain", "dqs", "stage", "currentStatus", "dropDate", "releaseDate"]),
            list("variants", &["label", "kind", "count"]),
        ],
        next: Next::Limit,
    },
    Spec {
        name: "appraise",
        operation: "appraiseNames",
        about: "Scores of up to 100 names, in the data or not. An invalid name gets an error in its place.",
        renamed: &[],
        without: &[],
        filters: Filters::All,
        lists: &[list("appraisals", &["domain", "dqs", "explanation", "length", "known", "error"])],
        next: Next::Limit,
    },
    Spec {
        name: "list_changes",
        operation: "listChanges",
        about: "Events of names, oldest first, kept for 90 days: left the zone, drops tomorrow, renewed and so on.",
        renamed: &[],
        without: &["wait", "view"],
        filters: Filters::Some(&["tld", "min_dqs"]),
        lists: &[list("data", &["event", "domain", "day", "dqs", "releaseDate", "verified"])],
        next: Next::Since,
    },
    Spec {
        name: "list_tlds",
        operation: "listTlds",
        about: "Suffixes, most names first, but one that equals `q` before all others.",
        renamed: &[],
        without: &[],
        filters: Filters::All,
        lists: &[list(
            "tlds",
            &["tld", "names", "pipeline", "redemptionDays", "pendingDeleteDays", "registration"],
        )],
        next: Next::Limit,
    },
    Spec {
        name: "list_watchlist",
        operation: "listWatches",
        about: "The watchlist of the account, with counts over all of it.",
        renamed: &[],
        without: &[],
        filters: Filters::All,
        lists: &[list(
            "watchlist",
            &["domain", "dqs", "stage", "releaseDate", "rdapObservedState", "tags"],
        )],
        next: Next::Offset,
    },
    Spec {
        name: "watch",
        operation: "addWatches",
        about: "Watches up to 1,000 names. Tags, bid and venue are set on all of them, also on those that were on the \
                list. A name that is refused has its reason in its place.",
        renamed: &[("domains", "domainNames"), ("max_bid_usd", "maxBidUsd")],
        without: &["alerts"],
        filters: Filters::All,
        lists: &[list("results", &["domain", "outcome", "error"])],
        next: Next::Limit,
    },
    Spec {
        name: "unwatch",
        operation: "removeWatch",
        about: "Stops watching a name.",
        renamed: &[],
        without: &[],
        filters: Filters::All,
        lists: &[],
        next: Next::Limit,
    },
];

/// The tools, in the order of the list that clients see.
pub static TOOLS: LazyLock<Vec<AgentTool>> = LazyLock::new(|| SPECS.iter().map(build).collect());

fn build(spec: &'static Spec) -> AgentTool {
    let mut operations = OPERATIONS.iter().chain([&explain::OPERATION]);
    let operation = operations.find(|operation| operation.id == spec.operation);
    let operation = operation.expect("every tool names an operation");
    let mut annotations = ToolAnnotations::with_title(operation.summary)
        .read_only(!operation.changes)
        .open_world(false);
    if operation.changes {
        annotations = annotations.destructive(operation.method == "DELETE").idempotent(true);
    }
    let named = |inner: &'static str| {
        let renamed = spec.renamed.iter().find(|(_, known)| *known == inner);
        renamed.map_or(inner, |(name, _)| *name)
    };
    let place = |of: &Parameter| match of.place {
        ParameterPlace::Path => Some(Place::Path),
        ParameterPlace::Query => Some(Place::Query),
        // Clients of the API send headers; agents do not.
        ParameterPlace::Header => None,
    };
    let parameters = operation.parameters.iter();
    let parameters = parameters.filter_map(|of| place(of).map(|place| (of.name, place)));
    let members = schema::members(operation).map(|(name, of)| (name, Place::Body(of)));
    let mut arguments: Vec<_> = parameters
        .chain(members)
        .filter(|(inner, _)| !spec.without.contains(inner) && spec.filters.has(inner))
        .map(|(inner, place)| Argument { name: named(inner), inner, place })
        .collect();
    let columns = schema::columns(operation, spec.lists);
    let own = [("limit", !spec.lists.is_empty()), ("fields", columns.len() > SHORT_COLUMNS)];
    for (name, is_useful) in own {
        if is_useful && arguments.iter().all(|known| known.name != name) {
            arguments.push(Argument { name, inner: name, place: Place::Tool });
        }
    }
    let mut tool = AgentTool {
        tool: Tool::new(spec.name, spec.about, Arc::default()).with_annotations(annotations),
        operation,
        arguments,
        lists: spec.lists,
        next: spec.next,
        columns,
    };
    tool.tool.input_schema = schema::arguments(&tool);
    tool
}

/// Number of columns that are always shown.
const SHORT_COLUMNS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum bytes of the list of tools, which a client puts into every conversation: 6,000 tokens of
    /// three bytes. The tokenisers `cl100k_base` and `o200k_base` have four bytes a token here.
    const LIST_BYTES_MAX: usize = 18_000;

    #[test]
    fn tools_have_short_schemas_without_references() {
        let mut sizes = Vec::new();
        for AgentTool { tool, operation, .. } in TOOLS.iter() {
            let text = serde_json::to_string(tool).expect("JSON");
            assert!(!text.contains("$ref"), "{text}");
            assert_eq!(tool.input_schema["type"], "object");
            assert_eq!(tool.input_schema["additionalProperties"], false);
            let read_only = tool.annotations.as_ref().and_then(|it| it.read_only_hint);
            assert_eq!(read_only, Some(!operation.changes), "{}", tool.name);
            sizes.push((tool.name.clone(), text.len()));
        }
        let bytes: usize = sizes.iter().map(|(_, bytes)| bytes + 1).sum();
        assert!(bytes <= LIST_BYTES_MAX, "{bytes}: {sizes:?}");
    }
}
