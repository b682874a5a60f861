//! Generations from disk into memory: every byte verified before it is used, and when the
//! current generation is damaged, the one before it.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use fst::raw::Fst;
use tantivy::SegmentReader;
use tantivy::schema::Schema;

use crate::index::automaton::{NameAutomaton, OwnedFst};
use crate::index::drops::{DropColumns, DropFields, DropTexts, Drops, Shard};
use crate::index::manifest::{self, GenerationError, GenerationId, Manifest};
use crate::index::names::Names;
use crate::index::sealed::SealedDirectory;
use crate::index::{Index, columns};
use crate::vocab::stage::Periods;

/// File names within a generation.
pub(super) const NAMES_FOLDER: &str = "names";
pub(super) const UNICODE_FST: &str = "unicode.fst";
pub(super) const NAMES_COLUMNS: &str = "names.columns";
pub(super) const DROPS_TEXT: &str = "drops.names";
/// The folder of the tantivy indexes within a generation, one folder a shard.
pub(super) const DROPS_FOLDER: &str = "drops";

/// Why no generation can be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "there is no index in {0} yet; `dropdex ingest FILE` adds a list and builds one, \
         `dropdex rebuild` builds one from the lists already ingested"
    )]
    Missing(PathBuf),
    #[error(
        "no generation in {index} can be used ({newest}); `dropdex rebuild` builds a new one \
         from the corpus"
    )]
    AllDamaged { index: PathBuf, newest: GenerationError },
    #[error(transparent)]
    Generation(#[from] GenerationError),
}

/// A generation open for serving, and what stood in the way of a newer one.
pub struct Opened {
    pub index: Index,
    /// Why the generation that `CURRENT` names is not the one that was opened.
    pub fallback: Option<GenerationError>,
}

/// Opens the current generation, or the newest good one before it.
///
/// # Errors
/// There is none, or none is good.
pub fn open_current(index: &Path) -> Result<Opened, OpenError> {
    let (wanted, mut problem) = match manifest::current(index) {
        Ok(Some(wanted)) => (Some(wanted), None),
        Ok(None) => (None, None),
        Err(err) => (None, Some(err)),
    };
    let mut candidates = manifest::generations(index)?;
    if wanted.is_none() && problem.is_none() {
        return Err(OpenError::Missing(index.to_owned()));
    }
    // Nothing newer than CURRENT: an operator may have rolled back from it.
    candidates.retain(|&generation| wanted.is_none_or(|wanted| generation <= wanted));
    if let Some(wanted) = wanted
        && !candidates.contains(&wanted)
    {
        candidates.push(wanted);
    }
    for generation in candidates.into_iter().rev() {
        match open(index, generation) {
            Ok(index) => return Ok(Opened { index, fallback: problem }),
            Err(err) => problem = Some(problem.unwrap_or(err)),
        }
    }
    match problem {
        Some(newest) => Err(OpenError::AllDamaged { index: index.to_owned(), newest }),
        None => Err(OpenError::Missing(index.to_owned())),
    }
}

/// Opens one generation, verifying length and hash of every file.
///
/// # Errors
/// Anything missing, damaged or of another format.
pub fn open(index: &Path, generation: GenerationId) -> Result<Index, GenerationError> {
    let folder = manifest::folder_of(index, generation);
    let manifest = Manifest::read(&folder)?;
    if manifest.generation != generation {
        let what = format!("is the manifest of {}", manifest.generation);
        return Err(GenerationError::malformed(&folder, what));
    }
    let mut files = read_files(&folder, &manifest)?;
    let names = open_names(&folder, &manifest, &mut files)?;
    let drops = open_drops(&folder, &manifest, &mut files)?;
    let pending = manifest.tlds.iter().map(|tld| Periods::of(tld).pending_delete_days).collect();
    Ok(Index { manifest, names, drops, pending })
}

/// Verifies one generation without keeping it.
///
/// # Errors
/// As [`open`].
pub fn verify(index: &Path, generation: GenerationId) -> Result<Manifest, GenerationError> {
    open(index, generation).map(|index| index.manifest)
}

fn read_files(
    folder: &Path,
    manifest: &Manifest,
) -> Result<HashMap<String, Vec<u8>>, GenerationError> {
    let read = |(name, sum): (&String, &manifest::FileSum)| {
        let path = folder.join(name);
        let len = fs::metadata(&path).map_err(GenerationError::io(&path))?.len();
        if len != sum.len {
            return Err(GenerationError::Length { path, len, expected: sum.len });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        fs::File::open(&path)
            .and_then(|file| file.take(len).read_to_end(&mut bytes))
            .map_err(GenerationError::io(&path))?;
        let found = blake3::Hasher::new().update_rayon(&bytes).finalize().to_hex().to_string();
        if found != sum.blake3 || bytes.len() as u64 != sum.len {
            return Err(GenerationError::Checksum { path, found, expected: sum.blake3.clone() });
        }
        Ok((name.clone(), bytes))
    };
    manifest.files.iter().map(read).collect()
}

fn take(
    folder: &Path,
    files: &mut HashMap<String, Vec<u8>>,
    name: &str,
) -> Result<Vec<u8>, GenerationError> {
    files
        .remove(name)
        .ok_or_else(|| GenerationError::malformed(folder, format!("its manifest lists no {name}")))
}

/// The file of a shard of the names.
pub(super) fn names_file(shard: u32) -> String {
    format!("{NAMES_FOLDER}/{shard}.fst")
}

fn open_automaton(
    folder: &Path,
    manifest: &Manifest,
    files: &mut HashMap<String, Vec<u8>>,
) -> Result<NameAutomaton, GenerationError> {
    let fsts = (0..manifest.name_shards)
        .map(|shard| open_fst(folder, files, &names_file(shard)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(NameAutomaton::new(fsts))
}

fn open_fst(
    folder: &Path,
    files: &mut HashMap<String, Vec<u8>>,
    name: &str,
) -> Result<OwnedFst, GenerationError> {
    let bytes = take(folder, files, name)?;
    Fst::new(bytes).map_err(|err| GenerationError::malformed(&folder.join(name), err))
}

fn open_names(
    folder: &Path,
    manifest: &Manifest,
    files: &mut HashMap<String, Vec<u8>>,
) -> Result<Names, GenerationError> {
    let by_name = open_automaton(folder, manifest, files)?;
    let by_unicode = open_fst(folder, files, UNICODE_FST)?;
    let path = folder.join(NAMES_COLUMNS);
    let columns = columns::read_names(take(folder, files, NAMES_COLUMNS)?, manifest.names)
        .map_err(|err| GenerationError::malformed(&path, err))?;
    let tlds = manifest.tlds.len();
    if by_name.len() as usize != columns.key.len()
        || columns.tld.iter().any(|&tld| usize::from(tld) >= tlds)
    {
        return Err(GenerationError::malformed(&path, "does not fit the other files"));
    }
    Ok(Names { by_name, by_unicode, columns })
}

fn open_drops(
    folder: &Path,
    manifest: &Manifest,
    files: &mut HashMap<String, Vec<u8>>,
) -> Result<Drops, GenerationError> {
    let text_path = folder.join(DROPS_TEXT);
    let texts = read_texts(&take(folder, files, DROPS_TEXT)?, manifest.drops)
        .ok_or_else(|| GenerationError::malformed(&text_path, "is not a list of names"))?;
    let path = folder.join(DROPS_FOLDER);
    let failed = |err: tantivy::TantivyError| GenerationError::malformed(&path, err);
    let mut shards = Vec::new();
    let mut columns = DropColumns::default();
    for number in 0..manifest.drop_shards {
        let prefix = format!("{DROPS_FOLDER}/{number}/");
        let sealed = files
            .extract_if(|name, _| name.starts_with(&prefix))
            .map(|(name, bytes)| (PathBuf::from(&name[prefix.len()..]), bytes));
        let (segment, fields) = open_segment(SealedDirectory::new(sealed)).map_err(failed)?;
        let first = columns.dqs.len() as u32;
        read_columns(&segment, &mut columns).map_err(failed)?;
        shards.push(Shard { first, segment, fields });
    }
    let tlds = manifest.tlds.len();
    let sound = columns.dqs.len() == manifest.drops as usize
        && columns.tld.iter().all(|&tld| usize::from(tld) < tlds)
        && columns.dqs.is_sorted_by(|left, right| left >= right);
    if !sound {
        return Err(GenerationError::malformed(&path, "is not in rank order"));
    }
    Ok(Drops::new(columns, texts, shards))
}

fn open_segment(directory: SealedDirectory) -> tantivy::Result<(SegmentReader, DropFields)> {
    let index = tantivy::Index::open(directory)?;
    let schema = index.schema();
    let fields = DropFields { gram: schema.get_field("gram")?, tld: schema.get_field("tld")? };
    match index.searchable_segments()?.as_slice() {
        [segment] => Ok((SegmentReader::open(segment)?, fields)),
        segments => Err(tantivy::TantivyError::InternalError(format!(
            "{} segments, expected 1",
            segments.len()
        ))),
    }
}

/// Appends the columns of a segment.
fn read_columns(segment: &SegmentReader, columns: &mut DropColumns) -> tantivy::Result<()> {
    let rows = segment.max_doc();
    if rows == 0 {
        return Ok(());
    }
    let fast = segment.fast_fields();
    columns.dqs.extend(columns::flatten::<u8>(&fast.u64("dqs")?, rows)?);
    columns.length.extend(columns::flatten::<u8>(&fast.u64("length")?, rows)?);
    columns.tld.extend(columns::flatten::<u16>(&fast.u64("tld")?, rows)?);
    columns.drop_date.extend(columns::flatten::<u16>(&fast.u64("drop_date")?, rows)?);
    columns.release.extend(columns::flatten::<u16>(&fast.u64("release")?, rows)?);
    Ok(())
}

/// Names end to end: an end offset (u32) for each, then the text.
fn read_texts(bytes: &[u8], rows: u32) -> Option<DropTexts> {
    let (ends, text) = bytes.split_at_checked(rows as usize * 4)?;
    let ends: Vec<u32> = ends
        .chunks_exact(4)
        .map(|end| u32::from_le_bytes(end.try_into().expect("four bytes")))
        .collect();
    let text = String::from_utf8(text.to_vec()).ok().filter(|text| text.is_ascii())?;
    let whole = ends.is_sorted() && ends.last().map_or(0, |&end| end as usize) == text.len();
    whole.then_some(DropTexts { ends, text })
}

/// The fields of the drops index.
pub(super) fn drops_schema() -> Schema {
    use tantivy::schema::{FAST, INDEXED, IndexRecordOption, TextFieldIndexing, TextOptions};
    let mut schema = Schema::builder();
    let grams = TextFieldIndexing::default()
        .set_tokenizer("gram")
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    schema.add_text_field("gram", TextOptions::default().set_indexing_options(grams));
    schema.add_u64_field("tld", FAST | INDEXED);
    for name in ["dqs", "length", "drop_date", "release"] {
        schema.add_u64_field(name, FAST);
    }
    schema.build()
}

/// Opens the names of the current generation and nothing else, verified, for those who only ask
/// in how many TLDs a label stands.
///
/// # Errors
/// There is no index, or its manifest or names are damaged.
pub fn open_name_automaton(index: &Path) -> Result<NameAutomaton, OpenError> {
    let current = manifest::current(index)?.ok_or_else(|| OpenError::Missing(index.to_owned()))?;
    let folder = manifest::folder_of(index, current);
    let mut manifest = Manifest::read(&folder)?;
    manifest.files.retain(|name, _| name.starts_with(NAMES_FOLDER) && name.ends_with(".fst"));
    let mut files = read_files(&folder, &manifest)?;
    Ok(open_automaton(&folder, &manifest, &mut files)?)
}
