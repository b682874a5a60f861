//! Batches in, a new generation out: merged, indexed, verified, and only then made current.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use rayon::prelude::*;
use tantivy::TantivyDocument;
use tantivy::directory::MmapDirectory;
use tantivy::schema::Field;
use tantivy::tokenizer::TokenizerManager;

use crate::corpus::batch::{Batch, BatchError};
use crate::corpus::merge::{Dossier, Dossiers};
use crate::index::grams::GramTokenizer;
use crate::index::manifest::{
    self, FileSum, GenerationError, GenerationId, INDEX_FORMAT, Manifest,
};
use crate::index::names::{
    NameColumns, STATE_REGISTERED, STATE_REGISTERED_AGAIN, alias_of, dqs_of, length_of, rank_key,
};
use crate::index::open::{
    self, DROPS_FOLDER, DROPS_TEXT, NAMES_COLUMNS, NAMES_FOLDER, UNICODE_FST, drops_schema,
    names_file,
};
use crate::scorer::{Base, SCORER_VERSION};
use crate::vocab::day::Day;
use crate::vocab::stage::Periods;

/// Good generations kept on disk: the new one, and one to roll back to.
const KEEP: usize = 2;
/// Parts a merge is cut into: enough to keep every core busy to the end.
const PARTS_PER_THREAD: usize = 4;
/// What tantivy sizes its first tables for; one segment is written whatever it holds.
const TANTIVY_MEMORY: usize = 256 << 20;
/// Drops in a shard at least.
const SHARD_DROPS_MIN: usize = 1_000;
/// Shards at most: each costs every query a look-up of its own.
const SHARDS_MAX: usize = 4;
/// Names looked up again in a new generation before it is published.
const SELF_TEST_NAMES: usize = 1_000;

/// Why there is no new generation. The old one stays current.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("another rebuild is running (it holds {0}); try again when it has finished")]
    Busy(PathBuf),
    #[error("{path}: {source}; --index names the index folder")]
    Folder { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error("building the drops index: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
    #[error("building the name automaton: {0}")]
    Fst(#[from] fst::Error),
    #[error("the corpus holds more than {limit} {what}")]
    TooMany { what: &'static str, limit: u64 },
    #[error("the new generation is not what was built: {0}")]
    SelfTest(String),
    #[error(transparent)]
    Generation(#[from] GenerationError),
}

/// The lock on changing an index folder. Building and rolling back take it.
#[derive(Debug)]
pub struct IndexLock {
    _file: File,
}

impl IndexLock {
    /// Takes the lock, making the folder when it is new.
    ///
    /// # Errors
    /// Another process holds it, or the folder cannot be used.
    pub fn take(index: &Path) -> Result<IndexLock, BuildError> {
        let failed = |source| BuildError::Folder { path: index.to_owned(), source };
        fs::create_dir_all(index).map_err(failed)?;
        let path = index.join("REBUILD.lock");
        let file = File::create(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(IndexLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(BuildError::Busy(path)),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

/// Builds a generation from `batches`, verifies it, makes it current and removes old ones.
///
/// # Errors
/// Any; the index folder then serves what it served before.
pub fn rebuild(
    index: &Path,
    batches: &[Batch],
    now: DateTime<Utc>,
) -> Result<Manifest, BuildError> {
    let _lock = IndexLock::take(index)?;
    remove_leftovers(index)?;
    let newest = manifest::generations(index)?.last().map_or(0, |newest| newest.0);
    let generation = GenerationId(newest + 1);
    let folder = index.join(format!(".building-{generation}"));
    let failed = |source| BuildError::Io { path: folder.clone(), source };
    fs::create_dir(&folder).map_err(failed)?;
    let table = Table::merge(batches)?;
    write_files(&folder, &table)?;
    let manifest = describe(&folder, generation, &table, batches, now).map_err(failed)?;
    manifest.write(&folder).map_err(failed)?;
    manifest::sync_folder(&folder).map_err(failed)?;
    let place = manifest::folder_of(index, generation);
    fs::rename(&folder, &place).map_err(failed)?;
    manifest::sync_folder(index).map_err(failed)?;
    self_test(index, generation, &table).inspect_err(|_| {
        // Unusable, and not current: nobody will miss it.
        let _ = fs::remove_dir_all(&place);
    })?;
    manifest::set_current(index, generation)?;
    remove_old(index, generation)?;
    Ok(manifest)
}

/// Makes the newest good generation before the current one current.
///
/// # Errors
/// There is none.
pub fn rollback(index: &Path) -> Result<Manifest, BuildError> {
    let _lock = IndexLock::take(index)?;
    let current = manifest::current(index)?;
    let mut before = manifest::generations(index)?;
    before.retain(|generation| current.is_some_and(|current| *generation < current));
    for generation in before.into_iter().rev() {
        if let Ok(manifest) = open::verify(index, generation) {
            manifest::set_current(index, generation)?;
            return Ok(manifest);
        }
    }
    let what = "holds no good generation before the current one to go back to; `dropdex rebuild` builds a \
                new one from the corpus";
    Err(GenerationError::malformed(index, what).into())
}

fn remove_leftovers(index: &Path) -> Result<(), BuildError> {
    let failed = |source| BuildError::Io { path: index.to_owned(), source };
    for entry in fs::read_dir(index).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(".building-") {
            fs::remove_dir_all(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Keeps the current generation and the good one before it.
fn remove_old(index: &Path, current: GenerationId) -> Result<(), BuildError> {
    let generations = manifest::generations(index)?;
    let readable = |generation: &GenerationId| {
        Manifest::read(&manifest::folder_of(index, *generation)).is_ok()
    };
    let kept: Vec<GenerationId> = generations
        .iter()
        .rev()
        .copied()
        .filter(|generation| *generation <= current && readable(generation))
        .take(KEEP)
        .collect();
    for generation in generations {
        if !kept.contains(&generation) {
            let folder = manifest::folder_of(index, generation);
            fs::remove_dir_all(&folder)
                .map_err(|source| BuildError::Io { path: folder.clone(), source })?;
        }
    }
    Ok(())
}

/// Everything a generation is built from, in name order.
struct Table {
    parts: Vec<Part>,
    /// All parts' columns, end to end, with global TLD numbers.
    columns: NameColumns,
    /// Ordinals of the names on the drops list, in rank order.
    drops: Vec<u32>,
    tlds: Vec<String>,
    drop_dates: Vec<Day>,
}

/// The names of one key range.
#[derive(Default)]
struct Part {
    text: Vec<u8>,
    /// `ends[at]` is where the name `at` ends in `text`.
    ends: Vec<usize>,
    label_len: Vec<u8>,
    length: Vec<u8>,
    base: Vec<Base>,
    columns: NameColumns,
    /// TLDs by the number this part gave them.
    tlds: Vec<(String, Periods)>,
    drop_dates: BTreeSet<Day>,
}

impl Part {
    fn name(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|at| self.name(at))
    }

    /// The names from `from` to before `to`, scored for the whole corpus: all names of a label
    /// are in one part.
    fn merge(batches: &[Batch], from: &[u8], to: Option<&[u8]>) -> Result<Part, BuildError> {
        let mut part = Part::default();
        let mut numbers = HashMap::new();
        let mut dossiers = Dossiers::new(batches, from)?;
        while let Some(dossier) = dossiers.gather()? {
            if to.is_some_and(|to| dossier.name >= to) {
                break;
            }
            part.push(&dossier, &mut numbers)?;
        }
        part.finish_scores();
        Ok(part)
    }

    fn push(
        &mut self,
        dossier: &Dossier<'_>,
        numbers: &mut HashMap<Vec<u8>, u16>,
    ) -> Result<(), BuildError> {
        let tld = dossier.name.get(usize::from(dossier.label_len) + 1..).unwrap_or_default();
        let number = match numbers.get(tld) {
            Some(&number) => number,
            None => {
                let number = tld_number(self.tlds.len())?;
                let text = String::from_utf8_lossy(tld).into_owned();
                let periods = Periods::of(&text);
                self.tlds.push((text, periods));
                numbers.insert(tld.to_vec(), number);
                number
            }
        };
        self.text.extend_from_slice(dossier.name);
        self.ends.push(self.text.len());
        self.label_len.push(dossier.label_len);
        self.length.push(dossier.length);
        self.base.push(dossier.base);
        let latest = dossier.drops.last();
        let release = latest.map(|drop| {
            let periods = self.tlds[usize::from(number)].1;
            periods.effective_release(drop.date, drop.release)
        });
        let state = match latest {
            Some(drop) if drop.registered_again => STATE_REGISTERED_AGAIN,
            None if dossier.registered => STATE_REGISTERED,
            _ => 0,
        };
        let columns = &mut self.columns;
        columns.tld.push(number);
        columns.drop_date.push(Day::raw_or_zero(latest.map(|drop| drop.date)));
        columns.release.push(Day::raw_or_zero(release));
        columns.state.push(state);
        self.drop_dates.extend(dossier.drops.iter().map(|drop| drop.date));
        Ok(())
    }

    /// In name order the names of one label stand together: `a-b.com`, `a.com`, `a.de`, `ab.com`.
    fn finish_scores(&mut self) {
        let mut first = 0;
        while first < self.ends.len() {
            let label_len = usize::from(self.label_len[first]);
            let label = &self.name(first)[..label_len];
            let mut end = first + 1;
            while end < self.ends.len()
                && usize::from(self.label_len[end]) == label_len
                && &self.name(end)[..label_len] == label
            {
                end += 1;
            }
            for at in first..end {
                let dqs = self.base[at].with_spread((end - first) as u32);
                self.columns.key.push(rank_key(dqs, self.length[at]));
            }
            first = end;
        }
    }
}

fn tld_number(count: usize) -> Result<u16, BuildError> {
    u16::try_from(count)
        .map_err(|_| BuildError::TooMany { what: "TLDs", limit: u64::from(u16::MAX) + 1 })
}

impl Table {
    /// Merges the batches on all cores, each working on its own range of labels.
    fn merge(batches: &[Batch]) -> Result<Table, BuildError> {
        let cuts = cuts(batches, rayon::current_num_threads() * PARTS_PER_THREAD);
        let mut parts = (0..=cuts.len())
            .into_par_iter()
            .map(|at| {
                let from = at.checked_sub(1).map_or(&[] as &[u8], |at| &cuts[at]);
                Part::merge(batches, from, cuts.get(at).map(Vec::as_slice))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let tlds: BTreeSet<&str> =
            parts.iter().flat_map(|part| part.tlds.iter().map(|(tld, _)| tld.as_str())).collect();
        let tlds: Vec<String> = tlds.into_iter().map(str::to_owned).collect();
        if tlds.len() > usize::from(u16::MAX) {
            return Err(BuildError::TooMany { what: "TLDs", limit: u16::MAX.into() });
        }
        let rows: usize = parts.iter().map(|part| part.ends.len()).sum();
        if u32::try_from(rows).is_err() {
            return Err(BuildError::TooMany { what: "names", limit: u32::MAX.into() });
        }
        let mut columns = NameColumns::default();
        let mut drop_dates = BTreeSet::new();
        for part in &mut parts {
            let number = |tld: &str| {
                tlds.binary_search_by(|known| known.as_str().cmp(tld)).unwrap_or_default() as u16
            };
            let numbers: Vec<u16> = part.tlds.iter().map(|(tld, _)| number(tld)).collect();
            let taken = std::mem::take(&mut part.columns);
            columns.key.extend(taken.key);
            columns.tld.extend(taken.tld.iter().map(|&tld| numbers[usize::from(tld)]));
            columns.drop_date.extend(taken.drop_date);
            columns.release.extend(taken.release);
            columns.state.extend(taken.state);
            drop_dates.append(&mut part.drop_dates);
        }
        let drops = ranked_drops(&columns);
        Ok(Table { parts, columns, drops, tlds, drop_dates: drop_dates.into_iter().collect() })
    }

    /// Every name with its ordinal, in order.
    fn names(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0u32..).zip(self.parts.iter().flat_map(Part::names))
    }

    /// The part and place of an ordinal, found by the ordinals the parts start at.
    fn name(&self, starts: &[u32], ordinal: u32) -> &[u8] {
        let part = starts.partition_point(|&start| start <= ordinal) - 1;
        self.parts[part].name((ordinal - starts[part]) as usize)
    }

    fn starts(&self) -> Vec<u32> {
        let mut next = 0;
        let mut starts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            starts.push(next);
            next += part.ends.len() as u32;
        }
        starts
    }
}

fn ranked_drops(columns: &NameColumns) -> Vec<u32> {
    let mut ranked: Vec<u64> = (0..columns.key.len())
        .into_par_iter()
        .filter(|&at| columns.drop_date[at] != 0 && columns.state[at] & STATE_REGISTERED_AGAIN == 0)
        .map(|at| u64::from(columns.key[at]) << 32 | at as u64)
        .collect();
    // By key, then by ordinal, which is by name.
    ranked.par_sort_unstable();
    ranked.into_iter().map(|place| place as u32).collect()
}

/// Names that cut the batches into about `parts` ranges of like size, none through a label.
fn cuts(batches: &[Batch], parts: usize) -> Vec<Vec<u8>> {
    let mut names: Vec<&[u8]> = batches.iter().flat_map(Batch::block_names).collect();
    names.par_sort_unstable();
    let step = names.len().div_ceil(parts).max(1);
    let mut cuts: Vec<Vec<u8>> = names
        .into_iter()
        .step_by(step)
        .skip(1)
        .map(|name| {
            // `label.` stands right before all names of the label.
            let dot = name.iter().position(|&byte| byte == b'.').unwrap_or(name.len() - 1);
            name[..=dot].to_vec()
        })
        .collect();
    cuts.dedup();
    cuts
}

fn write_files(folder: &Path, table: &Table) -> Result<(), BuildError> {
    let (names, drops) = rayon::join(
        || {
            write_names(folder, table)?;
            write_unicode_fst(folder, table)
        },
        || {
            write_drops(folder, table)?;
            write_columns(folder, table)
        },
    );
    names.and(drops)
}

fn create(path: &Path) -> Result<BufWriter<File>, BuildError> {
    let file = File::create_new(path)
        .map_err(|source| BuildError::Io { path: path.to_owned(), source })?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// The automata of the names, one a shard, built side by side.
fn write_names(folder: &Path, table: &Table) -> Result<(), BuildError> {
    let path = folder.join(NAMES_FOLDER);
    fs::create_dir(&path).map_err(|source| BuildError::Io { path: path.clone(), source })?;
    let starts = table.starts();
    let shards: Vec<&[Part]> = name_shards(&table.parts).collect();
    shards.par_iter().enumerate().try_for_each(|(shard, parts)| {
        let before: usize = shards[..shard].iter().map(|parts| parts.len()).sum();
        let mut out = create(&folder.join(names_file(shard as u32)))?;
        let mut builder = fst::raw::Builder::new(&mut out)?;
        for (part, &start) in parts.iter().zip(&starts[before..]) {
            for (ordinal, name) in (u64::from(start)..).zip(part.names()) {
                builder.insert(name, ordinal)?;
            }
        }
        builder.finish()?;
        out.flush().map_err(|err| fst::Error::Io(err).into())
    })
}

/// The parts, cut into shards: one a core.
fn name_shards(parts: &[Part]) -> std::slice::Chunks<'_, Part> {
    let shards = rayon::current_num_threads().clamp(1, SHARDS_MAX);
    parts.chunks(parts.len().div_ceil(shards).max(1))
}

fn write_unicode_fst(folder: &Path, table: &Table) -> Result<(), BuildError> {
    let mut aliases: Vec<(String, u32)> = table
        .names()
        .filter_map(|(ordinal, name)| {
            let name = std::str::from_utf8(name).ok().filter(|name| name.contains("xn--"))?;
            Some((alias_of(name)?, ordinal))
        })
        .collect();
    aliases.sort();
    let mut builder = fst::raw::Builder::new(create(&folder.join(UNICODE_FST))?)?;
    for (alias, ordinal) in aliases {
        builder.insert(alias, u64::from(ordinal))?;
    }
    Ok(builder.finish()?)
}

fn write_columns(folder: &Path, table: &Table) -> Result<(), BuildError> {
    let path = folder.join(NAMES_COLUMNS);
    let mut out = create(&path)?;
    super::columns::write_names(&table.columns, &mut out)
        .and_then(|()| out.flush())
        .map_err(|source| BuildError::Io { path, source })
}

/// The drops in rank order, cut into shards: one a core, unless they are few.
fn drop_shards(drops: &[u32]) -> std::slice::Chunks<'_, u32> {
    let cores = rayon::current_num_threads().clamp(2, SHARDS_MAX);
    let shards = (drops.len() / SHARD_DROPS_MIN).clamp(1, cores);
    drops.chunks(drops.len().div_ceil(shards).max(1))
}

/// The drops index and the names beside it, both in rank order.
fn write_drops(folder: &Path, table: &Table) -> Result<(), BuildError> {
    let path = folder.join(DROPS_FOLDER);
    fs::create_dir(&path).map_err(|source| BuildError::Io { path: path.clone(), source })?;
    let starts = table.starts();
    let shards: Vec<&[u32]> = drop_shards(&table.drops).collect();
    shards.par_iter().enumerate().try_for_each(|(shard, drops)| {
        write_shard(&path.join(shard.to_string()), table, &starts, drops)
    })?;
    write_drop_texts(&folder.join(DROPS_TEXT), table, &starts)
}

/// One tantivy index of one segment, documents in the order they are added: `open` checks both.
fn write_shard(
    path: &Path,
    table: &Table,
    starts: &[u32],
    drops: &[u32],
) -> Result<(), BuildError> {
    fs::create_dir(path).map_err(|source| BuildError::Io { path: path.to_owned(), source })?;
    let schema = drops_schema();
    let fields = DropDocument::new(&schema)?;
    let tokenizers = TokenizerManager::default();
    tokenizers.register("gram", GramTokenizer::default());
    let directory = MmapDirectory::open(path).map_err(tantivy::TantivyError::from)?;
    let mut writer = tantivy::Index::builder()
        .schema(schema)
        .tokenizers(tokenizers)
        .single_segment_index_writer(directory, TANTIVY_MEMORY)?;
    for &ordinal in drops {
        let name = table.name(starts, ordinal);
        writer.add_document(fields.document(name, &table.columns, ordinal as usize))?;
    }
    writer.finalize()?;
    Ok(())
}

fn write_drop_texts(path: &Path, table: &Table, starts: &[u32]) -> Result<(), BuildError> {
    let mut ends = Vec::with_capacity(table.drops.len() * 4);
    let mut text = Vec::new();
    for &ordinal in &table.drops {
        text.extend_from_slice(table.name(starts, ordinal));
        let end = u32::try_from(text.len()).map_err(|_| BuildError::TooMany {
            what: "bytes of dropped names",
            limit: u32::MAX.into(),
        })?;
        ends.extend_from_slice(&end.to_le_bytes());
    }
    let mut out = create(path)?;
    out.write_all(&ends)
        .and_then(|()| out.write_all(&text))
        .and_then(|()| out.flush())
        .map_err(|source| BuildError::Io { path: path.to_owned(), source })
}

/// Shapes the documents of the drops index.
struct DropDocument {
    gram: Field,
    tld: Field,
    dqs: Field,
    length: Field,
    drop_date: Field,
    release: Field,
}

impl DropDocument {
    fn new(schema: &tantivy::schema::Schema) -> tantivy::Result<DropDocument> {
        Ok(DropDocument {
            gram: schema.get_field("gram")?,
            tld: schema.get_field("tld")?,
            dqs: schema.get_field("dqs")?,
            length: schema.get_field("length")?,
            drop_date: schema.get_field("drop_date")?,
            release: schema.get_field("release")?,
        })
    }

    fn document(&self, name: &[u8], columns: &NameColumns, at: usize) -> TantivyDocument {
        let name = String::from_utf8_lossy(name);
        let mut document = TantivyDocument::new();
        document.add_text(self.gram, &name);
        if let Some(alias) = alias_of(&name) {
            document.add_text(self.gram, alias);
        }
        document.add_u64(self.tld, columns.tld[at].into());
        document.add_u64(self.dqs, dqs_of(columns.key[at]).points().into());
        document.add_u64(self.length, length_of(columns.key[at]).into());
        document.add_u64(self.drop_date, columns.drop_date[at].into());
        document.add_u64(self.release, columns.release[at].into());
        document
    }
}

/// Syncs and hashes every file of `folder` and writes down what the generation is.
fn describe(
    folder: &Path,
    generation: GenerationId,
    table: &Table,
    batches: &[Batch],
    now: DateTime<Utc>,
) -> io::Result<Manifest> {
    let mut files = BTreeMap::new();
    sum_files(folder, "", &mut files)?;
    let mut corpus = blake3::Hasher::new();
    for batch in batches {
        corpus.update(batch.checksum());
    }
    Ok(Manifest {
        format: INDEX_FORMAT,
        generation,
        created: now,
        scorer_version: SCORER_VERSION,
        tantivy: tantivy::version_string().to_owned(),
        fst: format!("fst format {}", fst::raw::VERSION),
        corpus: corpus.finalize().to_hex().to_string(),
        batches: batches.len() as u64,
        newest_observed_at: batches.iter().map(|batch| batch.meta().observed_at).max(),
        names: table.columns.key.len() as u32,
        drops: table.drops.len() as u32,
        name_shards: name_shards(&table.parts).len() as u32,
        drop_shards: drop_shards(&table.drops).len() as u32,
        drop_dates: table.drop_dates.clone(),
        tlds: table.tlds.clone(),
        files,
    })
}

fn sum_files(folder: &Path, prefix: &str, files: &mut BTreeMap<String, FileSum>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            sum_files(&entry.path(), &format!("{name}/"), files)?;
            manifest::sync_folder(&entry.path())?;
            continue;
        }
        let mut file = File::open(entry.path())?;
        file.sync_all()?;
        let mut hasher = blake3::Hasher::new();
        let mut block = vec![0; 1 << 22];
        let mut len = 0;
        loop {
            let read = file.read(&mut block)?;
            if read == 0 {
                break;
            }
            hasher.update_rayon(&block[..read]);
            len += read as u64;
        }
        files.insert(name, FileSum { len, blake3: hasher.finalize().to_hex().to_string() });
    }
    Ok(())
}

/// Opens the new generation as a server would and looks names up in it by every way there is.
fn self_test(index: &Path, generation: GenerationId, table: &Table) -> Result<(), BuildError> {
    let index = open::open(index, generation)?;
    index
        .names
        .by_name
        .verify()
        .and_then(|()| index.names.by_unicode.verify())
        .map_err(|err| BuildError::SelfTest(err.to_string()))?;
    let starts = table.starts();
    let rows = table.columns.key.len();
    let mut text = Vec::new();
    for at in (0..rows).step_by((rows / SELF_TEST_NAMES).max(1)) {
        let ordinal = at as u32;
        let name = table.name(&starts, ordinal);
        let columns = &index.names.columns;
        index.names.name_into(ordinal, &mut text);
        let found = std::str::from_utf8(name).ok().and_then(|name| index.names.find(name));
        let range = index.names.range(name);
        let same = found == Some(ordinal)
            && text == name
            && range.start == ordinal
            && columns.key[at] == table.columns.key[at]
            && columns.tld[at] == table.columns.tld[at]
            && columns.drop_date[at] == table.columns.drop_date[at]
            && columns.release[at] == table.columns.release[at]
            && columns.state[at] == table.columns.state[at];
        if !same {
            return Err(BuildError::SelfTest(String::from_utf8_lossy(name).into_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::batch::{self, BatchMeta, Entry, Record};
    use crate::feeds::Sighting;
    use crate::index::filter::{DropFilter, Moment, Narrow, Pipeline};
    use crate::scorer::{Scorer, Scratch};
    use crate::vocab::name::DomainName;
    use crate::vocab::query::Substring;

    fn batch_of(folder: &Path, names: &[String]) -> Batch {
        let path = folder.join("batch");
        let mut writer = batch::create(&path).expect("a new file");
        let date = "2026-10-03".parse().expect("a date");
        let sighting = Sighting::Dropped { date, release: None, registered_again: false };
        let record = Record { sighting, first_seen: None, observed_at: 0 };
        let mut names: Vec<DomainName> =
            names.iter().map(|name| DomainName::parse(name).expect("a name")).collect();
        names.sort();
        let mut scratch = Scratch::default();
        for name in &names {
            let entry = Entry {
                name: name.as_str().as_bytes(),
                label_len: name.label_len(),
                length: name.length(),
                base: Scorer::shared().base(name, &mut scratch),
                record,
            };
            writer.push(&entry).expect("written");
        }
        writer.finish(&BatchMeta::of_a_run()).expect("finished");
        Batch::open(&path).expect("opens")
    }

    fn built(names: &[&str]) -> (tempfile::TempDir, super::super::Index) {
        let folder = tempfile::tempdir().expect("a folder");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let batches = [batch_of(folder.path(), &names)];
        let index = folder.path().join("index");
        rebuild(&index, &batches, DateTime::UNIX_EPOCH).expect("built");
        let opened = open::open_current(&index).expect("opens");
        (folder, opened.index)
    }

    fn found(index: &super::super::Index, contains: &str) -> Vec<String> {
        let filter = DropFilter {
            narrow: Narrow::default(),
            pipeline: Pipeline::All,
            contains: Some(Substring::parse(contains).expect("a substring")),
            limit: 100,
            offset: 0,
        };
        let today = "2026-10-03".parse().expect("a date");
        let page = index.drops(&filter, Moment { today, catch_days: 5 }).expect("answers");
        let mut names: Vec<_> = page.rows.iter().map(|row| row.name.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn substrings_of_every_length_are_found_in_both_forms() {
        let (_folder, index) =
            built(&["abcdef.com", "bcd.de", "münchen.de", "cde.рф", "x-y.com", "aaaa.com"]);
        assert_eq!(found(&index, "b"), ["abcdef.com", "bcd.de"]);
        assert_eq!(found(&index, "bc"), ["abcdef.com", "bcd.de"]);
        assert_eq!(found(&index, "bcd"), ["abcdef.com", "bcd.de"]);
        assert_eq!(found(&index, "bcde"), ["abcdef.com"]);
        assert_eq!(found(&index, "bcd."), ["bcd.de"]);
        assert_eq!(found(&index, "ü"), ["xn--mnchen-3ya.de"]);
        assert_eq!(found(&index, "MÜNCH"), ["xn--mnchen-3ya.de"]);
        assert_eq!(found(&index, "n--mnch"), ["xn--mnchen-3ya.de"]);
        assert_eq!(found(&index, "e.рф"), ["cde.xn--p1ai"]);
        assert_eq!(found(&index, "-y.c"), ["x-y.com"]);
        // Trigrams alone would say yes: `aaa` twice over.
        assert_eq!(found(&index, "aaaaa"), [] as [&str; 0]);
        assert_eq!(found(&index, "zzz"), [] as [&str; 0]);
    }

    #[test]
    fn an_empty_corpus_has_an_index_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = folder.path().join("index");
        rebuild(&index, &[], DateTime::UNIX_EPOCH).expect("built");
        let opened = open::open_current(&index).expect("opens");
        assert_eq!(found(&opened.index, "a"), [] as [&str; 0]);
        assert_eq!(opened.index.manifest().names, 0);
    }

    #[test]
    fn old_generations_go_and_rollback_flips_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = folder.path().join("index");
        for _ in 0..4 {
            rebuild(&index, &[], DateTime::UNIX_EPOCH).expect("built");
        }
        let numbers = |index: &Path| {
            manifest::generations(index).expect("read").iter().map(|id| id.0).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&index), [3, 4]);
        assert_eq!(rollback(&index).expect("back").generation, GenerationId(3));
        assert!(matches!(manifest::current(&index), Ok(Some(GenerationId(3)))));
        assert!(rollback(&index).is_err());
        // The next number is new, and what was rolled back from goes.
        rebuild(&index, &[], DateTime::UNIX_EPOCH).expect("built");
        assert_eq!(numbers(&index), [4, 5]);
    }

    #[test]
    fn every_damaged_file_is_refused_and_the_generation_before_serves() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["abc.com", "abc.de", "münchen.de"].map(str::to_owned);
        let batches = [batch_of(folder.path(), &names)];
        let index = folder.path().join("index");
        rebuild(&index, &batches, DateTime::UNIX_EPOCH).expect("built");
        let manifest = rebuild(&index, &batches, DateTime::UNIX_EPOCH).expect("built");
        let damaged = manifest::folder_of(&index, manifest.generation);
        let files = manifest.files.keys().map(String::as_str).chain(["MANIFEST"]);
        for name in files {
            let path = damaged.join(name);
            let whole = fs::read(&path).expect("readable");
            let step = (whole.len() / 64).max(1);
            let flips = (0..whole.len()).step_by(step).map(|at| {
                let mut bytes = whole.clone();
                bytes[at] ^= 0x10;
                bytes
            });
            let cuts = (0..whole.len()).step_by(step).map(|at| whole[..at].to_vec());
            let longer = [whole.iter().copied().chain([0]).collect::<Vec<u8>>()];
            for bytes in flips.chain(cuts).chain(longer) {
                fs::write(&path, bytes).expect("writable");
                assert!(open::open(&index, manifest.generation).is_err(), "{name}");
            }
            let opened = open::open_current(&index).expect("the one before serves");
            assert_eq!(opened.index.manifest().generation, GenerationId(1), "{name}");
            assert!(opened.fallback.is_some(), "{name}");
            fs::remove_file(&path).expect("removable");
            assert!(open::open(&index, manifest.generation).is_err(), "{name} is gone");
            fs::write(&path, &whole).expect("writable");
        }
        let opened = open::open_current(&index).expect("whole again");
        assert_eq!(opened.index.manifest().generation, manifest.generation);
        assert!(opened.fallback.is_none());
        fs::remove_dir_all(manifest::folder_of(&index, GenerationId(1))).expect("removable");
        fs::write(damaged.join(names_file(0)), b"").expect("writable");
        assert!(matches!(open::open_current(&index), Err(open::OpenError::AllDamaged { .. })));
    }
}
