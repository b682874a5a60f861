//! A table to rows of facts, in two passes: the first one decides how columns are read, the second one reads.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use csv::StringRecord;

use crate::columns::{FactColumn, Role, names_a_fact};
use crate::error::FactsError;
use crate::headers::Header;
use crate::key::Key;
use crate::report::{AmbiguousColumn, KeyColumn, ReadColumn, Report};
use crate::table::{Shape, Table, TableRow};
use crate::value::{self, Ambiguity, BadCell, Evidence, Reading, RowCurrency};
use crate::vocab::fact::{FactType, KeyKind};
use crate::vocab::limits::{FACTS_COLUMNS_MAX, FACTS_ROWS_MAX};
use crate::{Choices, FactRow};

/// Maximum lines of a row. A quote that is missing makes one row of all lines up to the next one.
const ROW_LINES_MAX: u64 = 50;

/// The columns of a table by their use, as positions within its rows.
struct Columns {
    key: (usize, KeyKind),
    as_of: Option<usize>,
    currencies: Vec<usize>,
    facts: Vec<(usize, FactColumn)>,
    ignored: Vec<String>,
    dropped: Vec<String>,
}

impl Columns {
    fn new(table: &Table<'_>) -> Result<Columns, FactsError> {
        let roles = roles(table)?;
        let (mut key, mut as_of, mut currencies) = (None, None, Vec::new());
        let (mut facts, mut ignored, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (header, role)) in table.headers.iter().zip(roles).enumerate() {
            match role {
                _ if header.is_personal() => dropped.push(header.shown.clone()),
                Some(Role::Key(kind)) if key.is_none() => key = Some((at, kind)),
                Some(Role::AsOf) if as_of.is_none() => as_of = Some(at),
                Some(Role::Currency) => currencies.push(at),
                Some(Role::Fact(mut column)) => {
                    column.currency = column.currency.or(header.currency);
                    facts.push((at, column));
                }
                _ if header.shown.is_empty() => {}
                _ => ignored.push(header.shown.clone()),
            }
        }
        let key = key.ok_or(FactsError::NoKey)?;
        match facts.len() {
            0 => Err(FactsError::NoFacts),
            count if count > FACTS_COLUMNS_MAX => {
                Err(FactsError::TooManyColumns { columns: count })
            }
            _ => Ok(Columns { key, as_of, currencies, facts, ignored, dropped }),
        }
    }

    fn currency(&self, cells: &StringRecord) -> RowCurrency {
        RowCurrency::of(self.currencies.iter().filter_map(|&at| cells.get(at)))
    }
}

/// Returns the roles of the columns of a table, by position.
fn roles(table: &Table<'_>) -> Result<Vec<Option<Role>>, FactsError> {
    match table.shape {
        Shape::Preset(preset) => Ok(preset.roles(&table.headers)),
        Shape::Mapped(mapping) => Ok(mapping.roles(&table.headers)),
        Shape::Canonical => table.cells.iter().zip(&table.headers).map(canonical_role).collect(),
        Shape::Unknown => {
            let shown = table.headers.iter().map(|header| header.shown.clone());
            let (fingerprint, columns) = (table.fingerprint(), shown.collect());
            Err(FactsError::Unmapped { fingerprint, columns })
        }
    }
}

fn canonical_role((cell, header): (&String, &Header)) -> Result<Option<Role>, FactsError> {
    match cell.parse() {
        Ok(role) => Ok(Some(role)),
        Err(why) if names_a_fact(cell) => {
            Err(FactsError::Column { header: header.shown.clone(), why })
        }
        Err(_) => Ok(None),
    }
}

/// Reads all rows below the header.
pub(crate) fn rows(
    table: &Table<'_>,
    choices: Choices,
) -> Result<(Vec<FactRow>, Report), FactsError> {
    let columns = Columns::new(table)?;
    let shown = |at: usize| table.headers[at].shown.as_str();
    let mut report =
        Report::new(KeyColumn { header: shown(columns.key.0).to_owned(), kind: columns.key.1 });
    report.lists_all = choices.lists_all;
    let Decisions { facts, as_of } = decide(table, &columns, choices, &mut report)?;
    report.read = facts.iter().map(|(at, column, _)| ReadColumn::new(shown(*at), column)).collect();
    report.ignored = columns.ignored.clone();
    report.dropped = columns.dropped.clone();
    let keeps_repeats = choices.keeps_repeats;
    let mut merge = Merge { report, keeps_repeats, rows: Vec::new(), by_key: HashMap::new() };
    table.each_row(|row| {
        merge.report.rows += 1;
        let key = match key(table, &columns, &row) {
            Ok(key) => key,
            Err(reason) => return merge.report.refuse_row(row.line, reason),
        };
        let cell = |at: usize| row.cells.get(at).unwrap_or_default();
        let currency = columns.currency(row.cells);
        let mut refused = |at: usize, why: BadCell| {
            merge.report.refuse_cell(row.line, shown(at), why.to_string());
        };
        let mut values = Vec::with_capacity(facts.len());
        for (at, column, how) in &facts {
            let value = value::read(cell(*at), column, *how, currency);
            values.push(value.map_err(|why| refused(*at, why)).unwrap_or_default());
        }
        let as_of = as_of.and_then(|(at, how)| {
            value::date(cell(at), how).map_err(|why| refused(at, why)).unwrap_or_default()
        });
        merge.add(FactRow { line: row.line, key, as_of, values });
    })?;
    Ok(merge.finish())
}

/// The columns that are read, each with its position and how its cells are read.
struct Decisions {
    facts: Vec<(usize, FactColumn, Reading)>,
    /// The column with the day of a row.
    as_of: Option<(usize, Reading)>,
}

/// Decides over all cells how each column is read, and reports the columns for which that needs a choice.
fn decide(
    table: &Table<'_>,
    columns: &Columns,
    choices: Choices,
    report: &mut Report,
) -> Result<Decisions, FactsError> {
    let mut seen = vec![Evidence::default(); columns.facts.len()];
    let mut seen_days = Evidence::default();
    let mut rows = 0;
    table.each_row(|row| {
        rows += 1;
        if is_torn(table, columns, &row).is_some() {
            return;
        }
        let currency = columns.currency(row.cells);
        let cell = |at: usize| row.cells.get(at).unwrap_or_default();
        for ((at, column), seen) in columns.facts.iter().zip(&mut seen) {
            seen.see(cell(*at), column.kind, currency);
        }
        if let Some(at) = columns.as_of {
            seen_days.see(cell(at), FactType::Date, currency);
        }
    })?;
    if rows > FACTS_ROWS_MAX {
        return Err(FactsError::TooManyRows { rows });
    }
    let mut ambiguous = |at: usize, why: Ambiguity| {
        let header = table.headers[at].shown.clone();
        report.ambiguous.push(AmbiguousColumn { header, choose: why.to_string() });
    };
    let mut facts = Vec::new();
    for ((at, column), seen) in columns.facts.iter().zip(seen) {
        let order = choices.date_order.or(column.date_order);
        match seen.reading(table.delimiter, order, column.currency.or(choices.currency)) {
            Ok(how) => facts.push((*at, column.clone(), how)),
            Err(why) => ambiguous(*at, why),
        }
    }
    let days =
        columns.as_of.map(|at| (at, seen_days.reading(table.delimiter, choices.date_order, None)));
    let as_of = days.and_then(|(at, how)| match how {
        Ok(how) => Some((at, how)),
        Err(why) => {
            ambiguous(at, why);
            None
        }
    });
    Ok(Decisions { facts, as_of })
}

/// Returns the reason why the cells of a row may belong to other columns than they seem to, for instance because a
/// quote is missing. Text of a dropped column could then be read as that of another one.
fn is_torn(table: &Table<'_>, columns: &Columns, row: &TableRow<'_>) -> Option<String> {
    if !row.is_well_quoted {
        return Some("a quote is missing, or one too many".to_owned());
    }
    if row.lines > ROW_LINES_MAX {
        return Some(format!("the row has {} lines; a quote is missing", row.lines));
    }
    let (cells, headers) = (row.cells.len(), table.headers.len());
    let may_be_shorter = row.lines == 1 && columns.dropped.is_empty();
    let is_whole = cells == headers || cells < headers && may_be_shorter;
    (!is_whole).then(|| format!("the row has {cells} cells; the header has {headers}"))
}

fn key(table: &Table<'_>, columns: &Columns, row: &TableRow<'_>) -> Result<Key, String> {
    let (at, kind) = columns.key;
    match is_torn(table, columns, row) {
        Some(reason) => Err(reason),
        None => {
            let cell = row.cells.get(at).unwrap_or_default();
            Key::parse(cell, kind).map_err(|why| why.to_string())
        }
    }
}

/// Rows with distinct keys, or all rows.
struct Merge {
    report: Report,
    keeps_repeats: bool,
    rows: Vec<FactRow>,
    by_key: HashMap<Key, usize>,
}

impl Merge {
    fn add(&mut self, row: FactRow) {
        self.report.usable += 1;
        if self.keeps_repeats {
            return self.rows.push(row);
        }
        match self.by_key.entry(row.key.clone()) {
            Entry::Vacant(free) => {
                free.insert(self.rows.len());
                self.rows.push(row);
            }
            Entry::Occupied(at) => {
                self.report.merged += 1;
                merge(&mut self.rows[*at.get()], row, &mut self.report);
            }
        }
    }

    fn finish(self) -> (Vec<FactRow>, Report) {
        let Merge { rows, mut report, .. } = self;
        for (at, column) in report.read.iter_mut().enumerate() {
            column.known = rows.iter().filter(|row| row.values[at].is_some()).count() as u64;
        }
        (rows, report)
    }
}

/// Adds the values of a later row with the same key. A newer day decides; without one, the earlier row counts. The
/// row keeps the older day: none of its values is older.
fn merge(row: &mut FactRow, later: FactRow, report: &mut Report) {
    let days = (row.as_of, later.as_of);
    let newer = matches!(days, (Some(day), Some(later)) if later > day);
    let older = matches!(days, (Some(day), Some(later)) if later < day);
    for (at, (value, other)) in row.values.iter_mut().zip(later.values).enumerate() {
        match (&value, &other) {
            (_, None) => {}
            (None, Some(_)) => *value = other,
            (Some(one), Some(other)) if one == other || older => {}
            _ if newer => *value = other,
            _ => report.contradict(later.line, at),
        }
    }
    row.as_of = days.0.min(days.1);
}
