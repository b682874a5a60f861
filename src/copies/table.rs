//! Parquet files, written by groups of rows.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::DataType;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::vocab::day::Day;
use crate::vocab::time::UnixMs;

/// Rows of a group, which are held in memory until they are written.
const GROUP_ROWS: usize = 100_000;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Text,
    /// A 32-bit integer.
    Number,
    /// A 64-bit integer.
    Long,
    Double,
    Bool,
    Day,
    /// Milliseconds since 1970, in UTC.
    Instant,
}

/// A column of a table. Every column may hold nulls, so that a later version may leave values out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnType,
}

/// A value, of the type of its column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Text(&'a str),
    Number(i32),
    Long(i64),
    Double(f64),
    Bool(bool),
    Day(Day),
    Instant(UnixMs),
}

/// The value in a CSV file, without quotes: nothing for null.
impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => Ok(()),
            Cell::Text(text) => f.write_str(text),
            Cell::Number(number) => number.fmt(f),
            Cell::Long(number) => number.fmt(f),
            Cell::Double(number) => number.fmt(f),
            Cell::Bool(flag) => flag.fmt(f),
            Cell::Day(day) => day.fmt(f),
            Cell::Instant(at) => at.fmt(f),
        }
    }
}

/// The values of a column that are not null.
enum Values {
    /// All texts in one buffer, and where each ends.
    Text(Vec<u8>, Vec<usize>),
    Number(Vec<i32>),
    Long(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
}

impl Values {
    fn new(kind: ColumnType) -> Values {
        match kind {
            ColumnType::Text => Values::Text(Vec::new(), Vec::new()),
            ColumnType::Number | ColumnType::Day => Values::Number(Vec::new()),
            ColumnType::Long | ColumnType::Instant => Values::Long(Vec::new()),
            ColumnType::Double => Values::Double(Vec::new()),
            ColumnType::Bool => Values::Bool(Vec::new()),
        }
    }

    /// Appends a value.
    ///
    /// # Panics
    /// The value is of another type than the column.
    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Values::Text(bytes, ends), Cell::Text(text)) => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len());
            }
            (Values::Number(values), Cell::Number(number)) => values.push(number),
            (Values::Number(values), Cell::Day(day)) => values.push(days_since_1970(day)),
            (Values::Long(values), Cell::Long(number)) => values.push(number),
            (Values::Long(values), Cell::Instant(at)) => values.push(at.get().cast_signed()),
            (Values::Double(values), Cell::Double(number)) => values.push(number),
            (Values::Bool(values), Cell::Bool(flag)) => values.push(flag),
            (_, cell) => panic!("{cell:?} is not of the type of its column"),
        }
    }
}

/// A Parquet file being written.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: &'static [Column],
    /// For each column, the values of the current group, and a level for each row: 1, or 0 for null.
    group: Vec<(Values, Vec<i16>)>,
}

impl<W: Write + Send> Table<W> {
    /// Starts a file with these columns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(out: W, columns: &'static [Column]) -> Result<Table<W>, ParquetError> {
        let fields = columns.iter().map(|column| column.field().map(Arc::new));
        let schema = Type::group_type_builder("rows")
            .with_fields(fields.collect::<Result<_, _>>()?)
            .build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(Default::default()))
            .set_created_by("dropdex".to_owned())
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(Table { writer, columns, group: new_group(columns) })
    }

    /// Appends a row: one value for each column, in their order.
    ///
    /// # Errors
    /// A full group cannot be written.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> Result<(), ParquetError> {
        assert_eq!(cells.len(), self.columns.len(), "a row has a value for each column");
        for ((values, levels), &cell) in self.group.iter_mut().zip(cells) {
            let is_null = cell == Cell::Null;
            levels.push(i16::from(!is_null));
            if !is_null {
                values.push(cell);
            }
        }
        if self.group[0].1.len() == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Writes the remaining rows and the end of the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if !self.group[0].1.is_empty() {
            self.write_group()?;
        }
        self.writer.into_inner()
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut rows = self.writer.next_row_group()?;
        for (values, levels) in std::mem::replace(&mut self.group, new_group(self.columns)) {
            let mut column = rows.next_column()?.ok_or_else(|| {
                ParquetError::General("the file has fewer columns than the table".to_owned())
            })?;
            match values {
                Values::Text(bytes, ends) => {
                    write::<ByteArrayType>(&mut column, &texts(bytes, &ends), &levels)
                }
                Values::Number(values) => write::<Int32Type>(&mut column, &values, &levels),
                Values::Long(values) => write::<Int64Type>(&mut column, &values, &levels),
                Values::Double(values) => write::<DoubleType>(&mut column, &values, &levels),
                Values::Bool(values) => write::<BoolType>(&mut column, &values, &levels),
            }?;
            column.close()?;
        }
        rows.close()?;
        Ok(())
    }
}

fn new_group(columns: &[Column]) -> Vec<(Values, Vec<i16>)> {
    columns.iter().map(|column| (Values::new(column.kind), Vec::new())).collect()
}

/// Texts that share one buffer.
fn texts(bytes: Vec<u8>, ends: &[usize]) -> Vec<ByteArray> {
    let bytes = Bytes::from(bytes);
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| bytes.slice(start..end).into()).collect()
}

fn days_since_1970(day: Day) -> i32 {
    i32::try_from(day.start().timestamp() / 86_400).expect("a day is a u16")
}

fn write<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    levels: &[i16],
) -> Result<usize, ParquetError> {
    let column: &mut ColumnWriterImpl<'_, T> = column.typed();
    column.write_batch(values, Some(levels), None)
}

impl Column {
    fn field(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.kind {
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Number => (Physical::INT32, None),
            ColumnType::Long => (Physical::INT64, None),
            ColumnType::Double => (Physical::DOUBLE, None),
            ColumnType::Bool => (Physical::BOOLEAN, None),
            ColumnType::Day => (Physical::INT32, Some(LogicalType::Date)),
            ColumnType::Instant => {
                (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS)))
            }
        };
        Type::primitive_type_builder(self.name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL)
            .build()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    /// A column of each type.
    pub const COLUMNS: &[Column] = &[
        Column { name: "name", kind: ColumnType::Text },
        Column { name: "dqs", kind: ColumnType::Number },
        Column { name: "day", kind: ColumnType::Day },
        Column { name: "at", kind: ColumnType::Instant },
        Column { name: "share", kind: ColumnType::Double },
        Column { name: "seq", kind: ColumnType::Long },
        Column { name: "verified", kind: ColumnType::Bool },
    ];

    /// Returns the rows of a Parquet file as text.
    pub fn parquet_rows(file: File) -> Vec<String> {
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let rows = reader.get_row_iter(None).expect("rows");
        rows.map(|row| row.expect("a row").to_string()).collect()
    }

    #[test]
    fn every_type_of_a_parquet_file_is_read_as_written() {
        let at = "2026-11-30T12:00:00.123Z".parse().expect("an instant");
        let mut table =
            Table::new(tempfile::tempfile().expect("a file"), COLUMNS).expect("created");
        let row = [
            Cell::Text("münchen.de"),
            Cell::Number(-1),
            Cell::Day("1985-01-01".parse().expect("a day")),
            Cell::Instant(at),
            Cell::Double(0.1),
            Cell::Long(1 << 40),
            Cell::Bool(false),
        ];
        table.push(&row).expect("written");
        table.push(&[Cell::Null; 7]).expect("written");
        let file = table.finish().expect("complete");
        let reader = SerializedFileReader::new(file.try_clone().expect("open")).expect("Parquet");
        let schema = reader.metadata().file_metadata().schema_descr();
        let types: Vec<String> = schema
            .columns()
            .iter()
            .map(|it| format!("{} {:?}", it.physical_type(), it.logical_type_ref()))
            .collect();
        assert_eq!(types[0], "BYTE_ARRAY Some(String)");
        assert_eq!(types[2], "INT32 Some(Date)");
        assert!(types[3].starts_with("INT64 Some(Timestamp("), "{}", types[3]);
        assert_eq!(
            parquet_rows(file),
            [
                "{name: \"münchen.de\", dqs: -1, day: 1985-01-01, at: 2026-11-30 12:00:00.123 +00:00, share: 0.1, \
                 seq: 1099511627776, verified: false}",
                "{name: null, dqs: null, day: null, at: null, share: null, seq: null, verified: null}",
            ]
        );
    }

    #[test]
    fn groups_of_rows_are_written_as_they_fill() {
        let mut table =
            Table::new(tempfile::tempfile().expect("a file"), COLUMNS).expect("created");
        let rows = 100_001;
        for number in 0..rows {
            let mut row = [Cell::Null; 7];
            row[1] = Cell::Number(number);
            table.push(&row).expect("written");
        }
        let reader = SerializedFileReader::new(table.finish().expect("complete")).expect("Parquet");
        assert_eq!(reader.metadata().num_row_groups(), 2);
        assert_eq!(reader.metadata().file_metadata().num_rows(), i64::from(rows));
    }
}
