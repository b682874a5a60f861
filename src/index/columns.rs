//! Columns to and from tantivy's column format: bit-packed on disk, flat in memory.

use std::io;

use tantivy::columnar::{Column, ColumnType, ColumnarReader, ColumnarWriter, DynamicColumn};
use tantivy::directory::FileSlice;

use crate::index::names::{NameColumns, dqs_of, length_of, rank_key};
use crate::vocab::dqs::Dqs;

const DQS: &str = "dqs";
const LENGTH: &str = "length";
const TLD: &str = "tld";
const DROP_DATE: &str = "drop_date";
const RELEASE: &str = "release";
const STATE: &str = "state";

/// Values read from a column at once.
const BLOCK: usize = 4096;

/// Writes the columns of all names.
///
/// # Errors
/// Those of `out`.
pub fn write_names(columns: &NameColumns, out: &mut dyn io::Write) -> io::Result<()> {
    let mut writer = ColumnarWriter::default();
    for name in [DQS, LENGTH, TLD, DROP_DATE, RELEASE, STATE] {
        writer.record_column_type(name, ColumnType::U64, false);
    }
    let rows = columns.key.len() as u32;
    // One column after the other: each has one place in memory that it grows at.
    for (row, &key) in (0..rows).zip(&columns.key) {
        writer.record_numerical(row, DQS, u64::from(dqs_of(key).points()));
    }
    for (row, &key) in (0..rows).zip(&columns.key) {
        writer.record_numerical(row, LENGTH, u64::from(length_of(key)));
    }
    for (name, values) in
        [(TLD, &columns.tld), (DROP_DATE, &columns.drop_date), (RELEASE, &columns.release)]
    {
        for (row, &value) in (0..rows).zip(values) {
            writer.record_numerical(row, name, u64::from(value));
        }
    }
    for (row, &state) in (0..rows).zip(&columns.state) {
        writer.record_numerical(row, STATE, u64::from(state));
    }
    writer.serialize(rows, None, out)
}

/// Reads what [`write_names`] wrote for `rows` names.
///
/// # Errors
/// A column is missing, of another length, or holds a value that does not fit.
pub fn read_names(bytes: Vec<u8>, rows: u32) -> io::Result<NameColumns> {
    if rows == 0 {
        return Ok(NameColumns::default());
    }
    let reader = ColumnarReader::open(FileSlice::from(bytes))?;
    let open = |name: &'static str| -> io::Result<Column<u64>> {
        let handle = reader.read_columns(name)?.pop();
        match handle.map(|handle| handle.open()).transpose()? {
            Some(DynamicColumn::U64(column)) => Ok(column),
            _ => Err(bad(name)),
        }
    };
    let dqs: Vec<u8> = flatten(&open(DQS)?, rows)?;
    let length: Vec<u8> = flatten(&open(LENGTH)?, rows)?;
    let key = dqs
        .iter()
        .zip(&length)
        .map(|(&dqs, &length)| Ok(rank_key(Dqs::new(dqs).ok_or_else(|| bad(DQS))?, length)))
        .collect::<io::Result<_>>()?;
    Ok(NameColumns {
        key,
        tld: flatten(&open(TLD)?, rows)?,
        drop_date: flatten(&open(DROP_DATE)?, rows)?,
        release: flatten(&open(RELEASE)?, rows)?,
        state: flatten(&open(STATE)?, rows)?,
    })
}

/// The values of a column that has exactly one for each of `rows` rows.
///
/// # Errors
/// Another number of values, or one that does not fit.
pub fn flatten<T: TryFrom<u64>>(column: &Column<u64>, rows: u32) -> io::Result<Vec<T>> {
    if column.values.num_vals() != rows || column.num_docs() != rows {
        return Err(bad("length"));
    }
    let mut flat = Vec::with_capacity(rows as usize);
    let mut block = vec![0; BLOCK];
    while flat.len() < rows as usize {
        let block = &mut block[..BLOCK.min(rows as usize - flat.len())];
        column.values.get_range(flat.len() as u64, block);
        for &value in &*block {
            flat.push(T::try_from(value).map_err(|_| bad("value"))?);
        }
    }
    Ok(flat)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a column is not as it was written: {what}"))
}
