//! A tool: its arguments, the lists in its answer, and how the rest of a list is requested.

use rmcp::model::Tool;

use crate::edge::operation::Operation;

/// Default rows of an answer.
pub const ROWS_DEFAULT: u32 = 20;
/// Maximum rows of an answer, for lists that have pages.
pub const ROWS_MAX: u32 = 100;
/// Maximum rows of an answer, for lists without pages.
pub const ROWS_UNPAGED_MAX: u32 = 1_000;

/// A tool with its operation.
pub struct AgentTool {
    pub tool: Tool,
    pub operation: &'static Operation,
    pub arguments: Vec<Argument>,
    pub lists: &'static [List],
    pub next: Next,
    /// Columns of the first list, or else members of the response.
    pub columns: Vec<&'static str>,
}

/// An argument of a tool.
pub struct Argument {
    pub name: &'static str,
    /// Name in the operation.
    pub inner: &'static str,
    pub place: Place,
}

/// Destination of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Path,
    Query,
    /// A member of the body.
    Body(BodyType),
    /// The tool itself reads it.
    Tool,
}

/// Type of a member of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyType {
    Number,
    List,
    Other,
}

impl AgentTool {
    /// Returns the maximum of `limit`.
    pub fn rows_max(&self) -> u32 {
        if self.next == Next::Limit { ROWS_UNPAGED_MAX } else { ROWS_MAX }
    }

    /// Returns the default columns of the first list.
    pub fn shown(&self) -> &'static [&'static str] {
        self.lists.first().map_or(&[], |list| list.columns)
    }

    /// Whether the operation itself has a parameter.
    pub fn sends(&self, name: &str) -> bool {
        self.arguments.iter().any(|it| it.name == name && it.place == Place::Query)
    }
}

/// A list in the response.
#[derive(Clone, Copy)]
pub struct List {
    pub member: &'static str,
    /// Default columns of a row. A dot leads to a member of a column.
    pub columns: &'static [&'static str],
}

/// How the rest of a list is requested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// By the `nextCursor` of the response.
    Cursor,
    /// By the number of rows to skip.
    Offset,
    /// By the number of the last event.
    Since,
    /// The list has no pages.
    Limit,
}
