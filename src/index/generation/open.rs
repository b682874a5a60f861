//! Loads generations from disk into memory. Every byte is verified before it is used; if the
//! current generation is damaged, its predecessor is loaded.

use std::path::Path;
use std::sync::Arc;

use crate::columns::by_tld::ByTld;
use crate::columns::drop_history::DropHistory;
use crate::columns::drops_by_name::DropsByName;
use crate::columns::drops_by_rank::DropsByRank;
use crate::columns::facts::FactTables;
use crate::columns::idn::IdnNames;
use crate::columns::lesser::lesser;
use crate::columns::name_grams::NameGrams;
use crate::columns::names::Names;
use crate::columns::rank_table::RankTable;
use crate::columns::records::ScoreRecords;
use crate::columns::tlds::Tlds;
use crate::columns::typos::Typos;
use crate::error::{GenerationError, OpenError};
use crate::query::appraise::Standing;
use crate::query::index::{Generation, Index};
use crate::scorer::Coverage;
use crate::storage::files::Files;
use crate::storage::manifest::{self, Contents, Extension, GenerationId, Manifest};
use crate::vocab::name::DomainName;

/// File names of the rank tables of all names.
pub(super) const NAMES_RANKED: &str = "names/ranked";
pub(super) const NAMES_BY_TLD: &str = "names/by-tld";

/// A generation that is open for serving, and the reason if it is not the newest.
pub struct Opened {
    pub index: Index,
    /// Why the generation named by `CURRENT` was not opened.
    pub fallback: Option<GenerationError>,
}

/// Opens the current generation or, if it is damaged, the newest good one before it.
///
/// # Errors
/// No generation exists, or none is good.
pub fn open_current(index: &Path) -> Result<Opened, OpenError> {
    reopen_current(index, None)
}

/// As [`open_current`]; a generation that is in memory in `held` is not read again.
///
/// # Errors
/// As [`open_current`].
pub fn reopen_current(index: &Path, held: Option<&Index>) -> Result<Opened, OpenError> {
    let (wanted, mut problem) = match manifest::current(index) {
        Ok(Some(wanted)) => (Some(wanted), None),
        Ok(None) => (None, None),
        Err(err) => (None, Some(err)),
    };
    let mut candidates = manifest::generations(index)?;
    if wanted.is_none() && problem.is_none() {
        return Err(OpenError::Missing(index.to_owned()));
    }
    // Generations newer than CURRENT are skipped: an operator may have rolled back from them.
    candidates.retain(|&generation| wanted.is_none_or(|wanted| generation <= wanted));
    if let Some(wanted) = wanted
        && !candidates.contains(&wanted)
    {
        candidates.push(wanted);
    }
    for generation in candidates.into_iter().rev() {
        match reopen(index, generation, held) {
            Ok(index) => return Ok(Opened { index, fallback: problem }),
            Err(err) => problem = Some(problem.unwrap_or(err)),
        }
    }
    match problem {
        Some(newest) => Err(OpenError::AllDamaged { index: index.to_owned(), newest }),
        None => Err(OpenError::Missing(index.to_owned())),
    }
}

/// Opens one generation, and the one that it extends, verifying length and hash of every file.
///
/// # Errors
/// A file is missing, damaged or of another format.
pub fn open(index: &Path, generation: GenerationId) -> Result<Index, GenerationError> {
    reopen(index, generation, None)
}

/// As [`open`]; a generation that is in memory in `held` is not read again.
///
/// # Errors
/// As [`open`].
pub fn reopen(
    index: &Path,
    generation: GenerationId,
    held: Option<&Index>,
) -> Result<Index, GenerationError> {
    let folder = manifest::folder_of(index, generation);
    let manifest = read_manifest(&folder, generation)?;
    let whole = |manifest: &Manifest| match held.and_then(|held| held.generation_like(manifest)) {
        Some(generation) => Ok(generation),
        None => {
            let folder = manifest::folder_of(index, manifest.generation);
            open_folder(&folder, manifest.generation).map(Arc::new)
        }
    };
    match &manifest.extends {
        None => Ok(Index::new(whole(&manifest)?)),
        Some(extension) => {
            let base = whole(&read_base(index, extension)?)?;
            Index::extended(base, open_folder(&folder, generation)?)
        }
    }
}

/// Reads the manifest of the generation that another extends.
fn read_base(index: &Path, extension: &Extension) -> Result<Manifest, GenerationError> {
    let folder = manifest::folder_of(index, extension.base);
    let base = read_manifest(&folder, extension.base)?;
    if base.digest() != extension.base_manifest || base.extends.is_some() {
        return Err(GenerationError::malformed(&folder, "is not the base of the delta"));
    }
    Ok(base)
}

/// Opens the generation in `folder`, which may have any name.
///
/// # Errors
/// As [`open`].
pub(super) fn open_folder(
    folder: &Path,
    generation: GenerationId,
) -> Result<Generation, GenerationError> {
    let manifest = read_manifest(folder, generation)?;
    let files = Files::new(folder, &manifest);
    let generation = open_parts(manifest, &files)?;
    files.finish()?;
    Ok(generation)
}

fn read_manifest(folder: &Path, generation: GenerationId) -> Result<Manifest, GenerationError> {
    let manifest = Manifest::read(folder)?;
    if manifest.generation != generation {
        let what = format!("is the manifest of {}", manifest.generation);
        return Err(GenerationError::malformed(folder, what));
    }
    Ok(manifest)
}

/// Verifies length and hash of every file of a generation and of its base, without loading them,
/// and returns the base. A base in `in_use` is not verified.
///
/// # Errors
/// As [`open`].
pub(super) fn check(
    index: &Path,
    generation: GenerationId,
    in_use: &[GenerationId],
) -> Result<Option<GenerationId>, GenerationError> {
    let verify = |manifest: &Manifest| {
        Files::new(&manifest::folder_of(index, manifest.generation), manifest).verify()
    };
    let manifest = read_manifest(&manifest::folder_of(index, generation), generation)?;
    verify(&manifest)?;
    if let Some(extension) = &manifest.extends {
        let base = read_base(index, extension)?;
        if !in_use.contains(&extension.base) {
            verify(&base)?;
        }
    }
    Ok(manifest.base())
}

/// Returns the base of a generation, if its manifest can be read and it has one.
pub(super) fn base_of(index: &Path, generation: GenerationId) -> Option<GenerationId> {
    Manifest::read(&manifest::folder_of(index, generation)).ok()?.base()
}

fn open_parts(manifest: Manifest, files: &Files) -> Result<Generation, GenerationError> {
    let Contents { names, dropped, drops: listed, tlds } = manifest.own();
    let tlds = Tlds::new(tlds);
    let ranks = RankTable::open(NAMES_RANKED, files)?;
    files.check(ranks.len() == names as usize, NAMES_RANKED)?;
    let texts = Names::open(files, names, &tlds)?;
    let by_tld = Arc::new(ByTld::open(NAMES_BY_TLD, files)?);
    let index = Generation {
        lesser: lesser(&texts, &ranks),
        names: texts,
        idn: IdnNames::open(files, names, tlds.len())?,
        grams: NameGrams::open(files, names)?,
        drops_by_name: DropsByName::open(files, &ranks, &by_tld)?,
        ranks,
        by_tld,
        drop_history: DropHistory::open(files, names)?,
        drops_by_rank: DropsByRank::open(files, &tlds, dropped, listed)?,
        records: ScoreRecords::open(files, dropped)?,
        typos: Typos::open(files)?,
        facts: FactTables::default(),
        tlds,
        manifest,
    };
    let fits = index.by_tld.len() == names as usize
        && index.drops_by_name.len() == dropped
        && u64::from(index.drops_by_rank.first_batches().newest()) == index.manifest.batches;
    if fits { Ok(index) } else { Err(files.malformed("names", "its files are not of one table")) }
}

/// Verifies one generation and drops it.
///
/// # Errors
/// As [`open`].
pub fn verify(index: &Path, generation: GenerationId) -> Result<Manifest, GenerationError> {
    open(index, generation).map(|index| index.manifest().clone())
}

/// Facts of an index on which a score depends.
pub struct Texts {
    /// Names by layer, newest first.
    layers: Vec<(Names, Tlds)>,
    coverage: Coverage,
}

impl Texts {
    /// Looks up a name.
    pub fn standing(&self, name: &DomainName) -> Standing {
        let holds = |(names, _): &&(Names, Tlds)| !names.label_range(name.label()).is_empty();
        let layer = self.layers.iter().find(holds).or(self.layers.last());
        let (names, tlds) = layer.expect("an index has a layer");
        Standing::new(name, names, tlds, self.coverage)
    }
}

/// Opens and verifies only the names of the current generation and of its base, for callers that count the
/// TLDs of a label.
///
/// # Errors
/// There is no index, or its manifest or names are damaged.
pub fn open_texts(index: &Path) -> Result<Texts, OpenError> {
    let current = manifest::current(index)?.ok_or_else(|| OpenError::Missing(index.to_owned()))?;
    let open = |manifest: &Manifest| {
        let folder = manifest::folder_of(index, manifest.generation);
        let Contents { names, tlds, .. } = manifest.own();
        let tlds = Tlds::new(tlds);
        Names::open(&Files::new(&folder, manifest), names, &tlds).map(|names| (names, tlds))
    };
    let manifest = read_manifest(&manifest::folder_of(index, current), current)?;
    let mut layers = vec![open(&manifest)?];
    if let Some(extension) = &manifest.extends {
        layers.push(open(&read_base(index, extension)?)?);
    }
    Ok(Texts { layers, coverage: manifest.coverage })
}
