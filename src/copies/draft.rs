//! A set of files being written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::errors::ParquetError;
use sha2::{Digest, Sha256};

use crate::table::{Cell, Column, Table};
use crate::vocab::file_error::{AtPath, FileError};
use crate::vocab::new_file;
use crate::{About, CopyFile, FileName, Format, SCHEMA_VERSION, Set, SetName};

/// Name of the manifest in the folder of a set.
pub const MANIFEST: &str = "manifest.json";

/// Why a set was not written.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Io(#[from] FileError),
    #[error("{path}: {source}")]
    Table { path: PathBuf, source: ParquetError },
}

/// A set of files being written, in all formats at once.
pub struct Draft {
    folder: PathBuf,
    name: SetName,
    ndjson: GzEncoder<Output>,
    csv: GzEncoder<Output>,
    table: Table<Output>,
    rows: u64,
}

impl Draft {
    /// Creates the files in a new folder.
    ///
    /// # Errors
    /// The folder exists, or a file cannot be written.
    pub(crate) fn create(
        folder: &Path,
        name: SetName,
        columns: &'static [Column],
    ) -> Result<Draft, CopyError> {
        new_file::create_new_folder(folder).at(folder)?;
        let output = |format| {
            let path = folder.join(FileName { set: name, format }.to_string());
            let file = new_file::create_new(&path).at(&path)?;
            Ok::<_, FileError>(Output {
                out: BufWriter::new(file),
                format,
                bytes: 0,
                hash: Sha256::new(),
            })
        };
        let gzip =
            |format| Ok::<_, FileError>(GzEncoder::new(output(format)?, Compression::default()));
        let (ndjson, mut csv) = (gzip(Format::Ndjson)?, gzip(Format::Csv)?);
        let header: Vec<&str> = columns.iter().map(|column| column.name).collect();
        write!(csv, "{}\r\n", header.join(",")).at(folder)?;
        let table = Table::new(output(Format::Parquet)?, columns);
        let table = table.map_err(|source| CopyError::Table { path: folder.to_owned(), source })?;
        Ok(Draft { folder: folder.to_owned(), name, ndjson, csv, table, rows: 0 })
    }

    /// Appends a row: its lines, with their ends, and a value for each column.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn push(&mut self, json: &[u8], csv: &[u8], cells: &[Cell<'_>]) -> Result<(), CopyError> {
        self.ndjson.write_all(json).at(&self.folder)?;
        self.csv.write_all(csv).at(&self.folder)?;
        self.rows += 1;
        let written = self.table.push(cells);
        written.map_err(|source| CopyError::Table { path: self.folder.clone(), source })
    }

    /// Completes the files and writes the manifest. The set is in use once its folder is renamed.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn finish(self, about: About) -> Result<Set, CopyError> {
        let Draft { folder, name, ndjson, csv, table, rows } = self;
        let table = table.finish();
        let table = table.map_err(|source| CopyError::Table { path: folder.clone(), source })?;
        let outputs = [ndjson.finish().at(&folder)?, csv.finish().at(&folder)?, table];
        let files = outputs.into_iter().map(Output::finish).collect::<io::Result<_>>();
        let files = files.at(&folder)?;
        let set = Set { name, schema_version: SCHEMA_VERSION, about, rows, files };
        let path = folder.join(MANIFEST);
        let mut manifest = new_file::create_new(&path).at(&path)?;
        let text = serde_json::to_vec(&set).expect("a set has only texts and numbers");
        manifest.write_all(&text).and_then(|()| manifest.sync_all()).at(&path)?;
        File::open(&folder).and_then(|folder| folder.sync_all()).at(&folder)?;
        Ok(set)
    }

    /// Removes the files.
    pub(crate) fn discard(folder: &Path) {
        if let Err(error) = fs::remove_dir_all(folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "cannot remove an unfinished export file");
        }
    }
}

/// A file whose bytes are counted and hashed as they are written.
struct Output {
    out: BufWriter<File>,
    format: Format,
    bytes: u64,
    hash: Sha256,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Output {
    fn finish(mut self) -> io::Result<CopyFile> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        let sha256 = hex::encode(self.hash.finalize());
        Ok(CopyFile { format: self.format, bytes: self.bytes, sha256 })
    }
}
