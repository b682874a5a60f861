//! The drops list as a tantivy index of one segment: trigrams of labels, and fast fields. Input: the
//! columns of dropped names by doc. Output: a folder that [`tantivy::Index`] opens.
//!
//! Names registered again follow those of the list. They have values but no trigrams, and are deleted
//! for tantivy, so that its searchers find the list only.
//!
//! tantivy's columnar writer takes 140 bytes a doc until it serialises. Each core therefore writes a
//! piece of the docs at a time, and the pieces, of five bytes a doc, are merged into the file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tantivy::columnar::{
    ColumnType, ColumnarReader, ColumnarWriter, MergeRowOrder, StackMergeOrder, merge_columnar,
};
use tantivy::directory::{
    CompositeWrite, Directory, MmapDirectory, RamDirectory, TerminatingWrite,
};
use tantivy::fastfield::write_alive_bitset;
use tantivy::index::SegmentComponent;
use tantivy::postings::{FieldSerializer, InvertedIndexSerializer};
use tantivy::schema::{FAST, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::{Compressor, StoreWriter};
use tantivy::{BitSet, IndexMeta, Segment, SegmentReader};

use crate::columns::rank_key::{dqs_of, length_of};
use crate::columns::rank_order::DropRow;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::file_error::AtPath;
use crate::vocab::named::named_enum;
use crate::vocab::new_file;

/// Folder of the index within a generation.
const FOLDER: &str = "drops";
/// Field of the trigrams.
pub(super) const GRAM: &str = "gram";
/// Docs of a piece.
const DOCS_PER_PIECE: usize = if cfg!(debug_assertions) { 1 << 10 } else { 1 << 16 };
/// Size of the blocks of stored documents, of which there are none.
const STORE_BLOCK_BYTES: usize = 1 << 14;
/// Position of the deletion of the names registered again among the changes of the index.
const DELETED_AT: u64 = 0;

named_enum! {
    /// A fast field, whose values are numbers of 16 bits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DropField {
        Dqs = "dqs",
        /// Label length in characters.
        Length = "length",
        /// TLD number.
        Tld = "tld",
        /// Latest drop date, [`crate::vocab::day::Day::raw`].
        DropDay = "drop_day",
        /// Effective release of that drop.
        ReleaseDay = "release_day",
        /// Unrounded score, [`crate::scorer::Grade::rank`].
        Rank = "rank",
    }
}

impl DropField {
    fn of(self, row: &DropRow) -> u16 {
        match self {
            DropField::Dqs => dqs_of(row.key).points().into(),
            DropField::Length => length_of(row.key).into(),
            DropField::Tld => row.tld,
            DropField::DropDay => row.drop_date,
            DropField::ReleaseDay => row.release,
            DropField::Rank => row.rank,
        }
    }
}

/// A segment being written. Fields and postings can be written in parallel.
pub struct NewSegment {
    folder: PathBuf,
    segment: Segment,
}

impl NewSegment {
    /// Creates the folder of an index of `dropped` docs, of which the first `listed` are on the list.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(draft: &Draft, dropped: u32, listed: u32) -> Result<NewSegment, BuildError> {
        let folder = draft.folder().join(FOLDER);
        new_file::create_new_folder(&folder).at(&folder)?;
        let directory = MmapDirectory::open(&folder).map_err(tantivy::TantivyError::from)?;
        let index = tantivy::Index::create(directory, schema(), Default::default())?;
        let segment = index.new_segment().with_max_doc(dropped);
        let segment = segment.with_delete_meta(dropped - listed, DELETED_AT);
        Ok(NewSegment { folder, segment })
    }

    /// Writes the fast fields of all docs.
    ///
    /// # Errors
    /// A write fails.
    pub fn write_fields(&self, rows: &[DropRow]) -> tantivy::Result<()> {
        let mut out = self.segment.open_write(SegmentComponent::FastFields)?;
        if rows.len() <= DOCS_PER_PIECE {
            out.write_all(&fields_of(rows)?)?;
        } else {
            let pieces = rows.par_chunks(DOCS_PER_PIECE);
            let pieces = pieces.map(|rows| ColumnarReader::open(fields_of(rows)?));
            let pieces = pieces.collect::<io::Result<Vec<_>>>()?;
            let pieces: Vec<&ColumnarReader> = pieces.iter().collect();
            let order = MergeRowOrder::Stack(StackMergeOrder::stack(&pieces));
            merge_columnar(&pieces, &[], order, &mut out)?;
        }
        Ok(out.terminate()?)
    }

    /// Calls `write` to write all terms, in order.
    ///
    /// # Errors
    /// A write fails.
    pub fn write_grams(
        &self,
        write: impl FnOnce(&mut FieldSerializer<'_>) -> io::Result<()>,
    ) -> tantivy::Result<()> {
        let mut serializer = InvertedIndexSerializer::open(&self.segment)?;
        let mut out = serializer.new_field(self.segment.schema().get_field(GRAM)?, 0, None)?;
        write(&mut out)?;
        out.close()?;
        Ok(serializer.close()?)
    }

    /// Writes the rest, and adds the files to the draft.
    ///
    /// # Errors
    /// A write fails.
    pub fn finish(self, draft: &Draft) -> Result<(), BuildError> {
        for file in self.write_rest()? {
            draft.adopt(&format!("{FOLDER}/{}", file.display()))?;
        }
        Ok(())
    }

    /// Writes the components without content that every segment must have, the set of docs on the list, and
    /// the description of the index. Returns the names of all files.
    fn write_rest(&self) -> tantivy::Result<Vec<PathBuf>> {
        let NewSegment { folder, segment } = self;
        CompositeWrite::wrap(segment.open_write(SegmentComponent::FieldNorms)?).close()?;
        let store = segment.open_write(SegmentComponent::Store)?;
        StoreWriter::new(store, Compressor::None, STORE_BLOCK_BYTES, false)?.close()?;
        let meta = segment.meta();
        if meta.has_deletes() {
            let mut on_list = BitSet::with_max_value_and_full(meta.max_doc());
            (meta.num_docs()..meta.max_doc()).for_each(|doc| on_list.remove(doc));
            let mut out = segment.open_write(SegmentComponent::Delete)?;
            write_alive_bitset(&on_list, &mut out)?;
            out.terminate()?;
        }
        let index = segment.index();
        let meta = IndexMeta {
            index_settings: index.settings().clone(),
            persisted_custom_extensions: Vec::new(),
            segments: vec![meta.clone()],
            schema: index.schema(),
            opstamp: DELETED_AT,
            payload: None,
        };
        let json = serde_json::to_vec(&meta).map_err(io::Error::from)?;
        index.directory().atomic_write(Path::new("meta.json"), &json)?;
        index.directory().sync_directory()?;
        let files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().into()));
        Ok(files.collect::<io::Result<Vec<PathBuf>>>()?)
    }
}

fn schema() -> Schema {
    let mut schema = Schema::builder();
    let grams = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    schema.add_text_field(GRAM, TextOptions::default().set_indexing_options(grams));
    for field in DropField::ALL {
        schema.add_u64_field(field.as_str(), FAST);
    }
    schema.build()
}

/// Returns the fast fields of a piece as a file of their own.
fn fields_of(rows: &[DropRow]) -> io::Result<Vec<u8>> {
    let mut writer = ColumnarWriter::default();
    for field in DropField::ALL {
        writer.record_column_type(field.as_str(), ColumnType::U64, false);
        for (doc, row) in (0..).zip(rows) {
            writer.record_numerical(doc, field.as_str(), u64::from(field.of(row)));
        }
    }
    let mut bytes = Vec::new();
    writer.serialize(rows.len() as u32, None, &mut bytes)?;
    Ok(bytes)
}

/// Opens the segment of `dropped` docs, of which the first `listed` are on the list, from verified files.
///
/// # Errors
/// A file is damaged or does not match.
pub fn open(files: &Files, dropped: u32, listed: u32) -> Result<SegmentReader, GenerationError> {
    let prefix = format!("{FOLDER}/");
    // The files are kept in memory, so that changes on disk do not affect queries.
    let directory = RamDirectory::create();
    for name in files.names_under(&prefix) {
        let copied = directory.atomic_write(Path::new(&name[prefix.len()..]), &files.take(&name)?);
        copied.map_err(|err| files.malformed(&name, err))?;
    }
    let segment = open_segment(directory).map_err(|err| files.malformed(FOLDER, err))?;
    let fits = (segment.max_doc(), segment.num_docs()) == (dropped, listed);
    files.check(fits, FOLDER)?;
    Ok(segment)
}

fn open_segment(directory: RamDirectory) -> tantivy::Result<SegmentReader> {
    let index = tantivy::Index::open(directory)?;
    match index.searchable_segments()?.as_slice() {
        [segment] => SegmentReader::open(segment),
        segments => Err(tantivy::TantivyError::InternalError(format!(
            "{} segments, expected 1",
            segments.len()
        ))),
    }
}
