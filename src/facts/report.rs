//! Report on a file: the columns and rows that were read, and the others with the reasons.

use serde::Serialize;

use crate::columns::FactColumn;
use crate::vocab::fact::{Direction, FactName, FactType, KeyKind, Unit};

/// Maximum refusals and disagreements that a report lists; it counts all.
pub const LISTED_MAX: usize = 20;

/// Report on a file. It repeats names of columns, but no cell.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Rows below the header with at least one cell.
    pub rows: u64,
    /// Rows with a valid key; `rows` less `refused_rows`.
    pub usable: u64,
    pub refused_rows: u64,
    /// Cells of usable rows that are not values of their column.
    pub refused_cells: u64,
    /// The first refused rows and cells.
    pub refused: Vec<Refusal>,
    /// Usable rows whose key an earlier row has.
    pub merged: u64,
    /// Cells of merged rows that contradict an earlier row.
    pub disagreements: u64,
    /// The first of them.
    pub contradicted: Vec<Contradiction>,
    pub key: KeyColumn,
    pub read: Vec<ReadColumn>,
    /// Columns that nothing describes, by their names.
    pub ignored: Vec<String>,
    /// Columns that may hold personal data or secrets, by their names.
    pub dropped: Vec<String>,
    /// Columns that are not read until something is chosen.
    pub ambiguous: Vec<AmbiguousColumn>,
    #[serde(skip)]
    pub(crate) lists_all: bool,
}

/// A row, or a cell of a row, that was not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub line: u64,
    /// `None` for the whole row.
    pub column: Option<String>,
    pub reason: String,
}

/// A cell whose value differs from that of an earlier row, which counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    pub line: u64,
    pub column: String,
}

/// The column of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyColumn {
    pub header: String,
    pub kind: KeyKind,
}

/// A column of facts.
#[derive(Clone, Debug, Serialize)]
pub struct ReadColumn {
    pub header: String,
    pub fact: FactName,
    #[serde(rename = "type")]
    pub kind: FactType,
    pub unit: Option<Unit>,
    pub direction: Option<Direction>,
    /// The highest value of a scale from 0.
    pub scale: Option<u32>,
    /// Number of keys with a value.
    pub known: u64,
}

impl ReadColumn {
    pub(crate) fn new(header: &str, column: &FactColumn) -> ReadColumn {
        ReadColumn {
            header: header.to_owned(),
            fact: column.name.clone(),
            kind: column.kind,
            unit: column.unit,
            direction: column.direction,
            scale: column.scale,
            known: 0,
        }
    }
}

/// A column that can be read in several ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AmbiguousColumn {
    pub header: String,
    /// The question, and the possible answers.
    pub choose: String,
}

impl Report {
    pub(crate) fn new(key: KeyColumn) -> Report {
        Report {
            rows: 0,
            usable: 0,
            refused_rows: 0,
            refused_cells: 0,
            refused: Vec::new(),
            merged: 0,
            disagreements: 0,
            contradicted: Vec::new(),
            key,
            read: Vec::new(),
            ignored: Vec::new(),
            dropped: Vec::new(),
            ambiguous: Vec::new(),
            lists_all: false,
        }
    }

    pub(crate) fn refuse_row(&mut self, line: u64, reason: String) {
        self.refused_rows += 1;
        self.list(Refusal { line, column: None, reason });
    }

    pub(crate) fn refuse_cell(&mut self, line: u64, header: &str, reason: String) {
        self.refused_cells += 1;
        self.list(Refusal { line, column: Some(header.to_owned()), reason });
    }

    fn list(&mut self, refusal: Refusal) {
        if self.lists_all || self.refused.len() < LISTED_MAX {
            self.refused.push(refusal);
        }
    }

    /// Counts a contradiction in the column of facts at this position.
    pub(crate) fn contradict(&mut self, line: u64, at: usize) {
        self.disagreements += 1;
        if self.contradicted.len() < LISTED_MAX {
            let column = self.read[at].header.clone();
            self.contradicted.push(Contradiction { line, column });
        }
    }
}
