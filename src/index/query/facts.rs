//! Joins editions of facts with an index. A join finds the dropped names that an edition has facts of; values that
//! are shown are read from the edition itself.

use std::ops::ControlFlow;

use rayon::prelude::*;

use crate::columns::facts::FactTable;
use crate::columns::names::{VisitedName, text_of};
use crate::columns::slices::has_doc;
use crate::error::QueryError;
use crate::facts::store::{Edition, StoreError, StoredRow};
use crate::filter::{AsOf, DropFilter};
use crate::query::index::{Generation, Index};
use crate::vocab::fact::{EditionId, FactColumnId, KeyKind};

/// An edition with more rows than one in this many dropped names is read in order beside all names. Its keys are
/// looked up one by one otherwise.
const NAMES_PER_KEY: u64 = 4;
/// Names per parallel task. This number is small in tests, so that small tables have several tasks.
const NAMES_PER_PIECE: u32 = if cfg!(debug_assertions) { 1 << 4 } else { 1 << 16 };

/// Docs with the numbers of their columns.
type Joined = Vec<(u32, Vec<Option<i64>>)>;

impl Index {
    /// Joins an edition with all layers that lack it.
    ///
    /// # Errors
    /// The edition cannot be read.
    pub fn join_facts(&self, id: EditionId, edition: &Edition) -> Result<(), StoreError> {
        for layer in self.layers() {
            if layer.facts.get(id).is_none() {
                layer.facts.put(id, layer.joined(edition)?);
            }
        }
        Ok(())
    }

    /// Returns the number of keys of an edition that are a name, or the label of one, in the index.
    ///
    /// # Errors
    /// The edition cannot be read.
    pub fn keys_known(&self, edition: &Edition) -> Result<u64, StoreError> {
        let (mut rows, mut known) = (edition.rows_from(b"")?, 0);
        while let Some(row) = rows.next_row()? {
            let key = text_of(&row.key);
            let is_known = match edition.meta().key {
                KeyKind::Domain => self.find(key).is_some(),
                KeyKind::Label | KeyKind::Word => {
                    self.layers().iter().any(|layer| !layer.names.label_range(key).is_empty())
                }
            };
            known += u64::from(is_known);
        }
        Ok(known)
    }

    /// Returns the numbers of a fact of the names that pass a filter, sorted.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn fact_numbers(
        &self,
        filter: &DropFilter,
        column: FactColumnId,
        as_of: AsOf,
    ) -> Result<Vec<i64>, QueryError> {
        let (day, mut numbers) = (self.day(as_of), Vec::new());
        for (layer, day) in self.layers_on(&day) {
            let Some(table) = layer.facts.get(column.edition) else { continue };
            let matches = layer.matching(filter, day)?;
            table.each_known(column.column, |doc, number| {
                // Names that were registered again follow those of the list.
                let is_listed = (doc as usize) < 64 * matches.len();
                if is_listed && has_doc(&matches, doc) {
                    numbers.push(number);
                }
            });
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns true if an edition is joined with all layers.
    pub fn has_facts(&self, id: EditionId) -> bool {
        self.layers().iter().all(|layer| layer.facts.get(id).is_some())
    }

    /// Forgets the editions that are not wanted.
    pub fn retain_facts(&self, wanted: impl Fn(EditionId) -> bool) {
        self.layers().iter().for_each(|layer| layer.facts.retain(&wanted));
    }

    /// Returns the bytes of memory of each joined edition, in all layers.
    pub fn facts_bytes(&self) -> Vec<(EditionId, usize)> {
        self.layers().iter().flat_map(|layer| layer.facts.bytes()).collect()
    }
}

impl Generation {
    fn joined(&self, edition: &Edition) -> Result<FactTable, StoreError> {
        let dropped = u64::from(self.drops_by_name.len());
        let mut found = if edition.rows().saturating_mul(NAMES_PER_KEY) > dropped {
            let pieces = self.names.len().div_ceil(NAMES_PER_PIECE);
            let of_piece = |piece| {
                let start = piece * NAMES_PER_PIECE;
                self.beside(edition, start..self.names.len().min(start + NAMES_PER_PIECE))
            };
            let found: Result<Vec<Joined>, StoreError> =
                (0..pieces).into_par_iter().map(of_piece).collect();
            found?.concat()
        } else {
            self.looked_up(edition)?
        };
        found.sort_unstable_by_key(|(doc, _)| *doc);
        let docs: Vec<u32> = found.iter().map(|(doc, _)| *doc).collect();
        let of_column = |at: usize| found.iter().map(|(_, codes)| codes[at]).collect();
        let columns: Vec<_> = (0..edition.meta().columns.len()).map(of_column).collect();
        Ok(FactTable::new(&docs, &columns))
    }

    /// Finds the names of each key.
    fn looked_up(&self, edition: &Edition) -> Result<Joined, StoreError> {
        let mut found = Joined::new();
        let mut rows = edition.rows_from(b"")?;
        while let Some(row) = rows.next_row()? {
            let key = text_of(&row.key);
            let ordinals = match edition.meta().key {
                KeyKind::Domain => self.names.find(key).map_or(0..0, |at| at..at + 1),
                KeyKind::Label | KeyKind::Word => self.names.label_range(key),
            };
            let docs = ordinals.filter_map(|ordinal| self.doc_of(ordinal));
            found.extend(docs.map(|doc| (doc, row.codes.clone())));
        }
        Ok(found)
    }

    /// Finds the keys of the dropped names at these ordinals.
    fn beside(
        &self,
        edition: &Edition,
        ordinals: std::ops::Range<u32>,
    ) -> Result<Joined, StoreError> {
        let (mut found, mut failed) = (Joined::new(), None);
        let mut key = Vec::new();
        let mut rows = None;
        let mut visit = |name: VisitedName<'_>| -> Result<(), StoreError> {
            let Some(doc) = self.doc_of(name.ordinal) else { return Ok(()) };
            key.clear();
            key.extend(name.label);
            if edition.meta().key == KeyKind::Domain {
                key.push(b'.');
                key.extend(self.tlds.name(name.tld).as_bytes());
            }
            let rows = match &mut rows {
                Some(rows) => rows,
                none => none.insert(edition.rows_from(&key)?),
            };
            rows.seek(&key)?;
            found.extend(rows.current(&key).map(|StoredRow { codes, .. }| (doc, codes.clone())));
            Ok(())
        };
        self.names.for_each(
            [ordinals],
            None,
            |_| true,
            |name| {
                let next = name.ordinal + 1;
                match visit(name) {
                    Ok(()) => ControlFlow::Continue(next),
                    Err(err) => {
                        failed = Some(err);
                        ControlFlow::Break(())
                    }
                }
            },
        );
        failed.map_or(Ok(found), Err)
    }

    fn doc_of(&self, ordinal: u32) -> Option<u32> {
        self.drops_by_name.place(ordinal).map(|place| self.drops_by_name.doc(place))
    }
}
