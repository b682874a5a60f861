//! Builds a new generation from batches: merges and indexes them, verifies the result, and only then
//! makes it current.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::columns::by_tld::ByTldBuilder;
use crate::columns::drop_history::DropHistory;
use crate::columns::drops_by_name::DropsByName;
use crate::columns::drops_by_rank;
use crate::columns::idn::IdnNames;
use crate::columns::name_gram_writer;
use crate::columns::names::{NameBuf, Names};
use crate::columns::part::{Part, Section};
use crate::columns::rank_key::{ADULT, rank_key};
use crate::columns::rank_order::RankOrder;
use crate::columns::rank_table::RankTable;
use crate::columns::replaced::Replaced;
use crate::columns::table::Table;
use crate::corpus::batch::{self, Batch};
use crate::corpus::drops::DROP_RULES;
use crate::corpus::lock::{FolderLock, LockError};
use crate::corpus::ranked::RankedList;
use crate::corpus::seen::Seen;
use crate::error::{BuildError, GenerationError};
use crate::generation::base::{Base, ExtendRule, NoDelta};
use crate::generation::memory::MemoryBound;
use crate::generation::open;
use crate::generation::selftest::SelfTest;
use crate::query::index::{Contains, Generation, Index, RowDrop};
use crate::scorer::SCORER_VERSION;
use crate::storage::draft::Draft;
use crate::storage::manifest::{
    self, GenerationId, INDEX_FORMAT, Manifest, SuffixesUsed, UsedList, corpus_digest,
};
use crate::storage::space::Space;
use crate::vocab::file_error::AtPath;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::Return;
use crate::vocab::popularity::ListedRank;
use crate::vocab::release_time::SecondOfDay;
use crate::vocab::{suffixes, tables};

/// Lock file of the index folder: held while building or rolling back.
const LOCK: &str = "REBUILD.lock";
/// Name prefix of unfinished generations.
const BUILDING: &str = ".building-";
/// Name prefix of generations being removed.
const REMOVING: &str = ".removing-";
/// Estimated size of a generation relative to the corpus: 1.1 if one name in seven dropped, 1.7 if
/// all did.
const BYTES_PER_CORPUS_BYTE: u64 = 2;
/// Minimum of the estimated bytes of a new name: drop lists take most.
const BYTES_PER_NAME_ABOUT: u64 = 80;
/// Estimated fixed size of a generation.
const BYTES_WITHOUT_NAMES: u64 = 64 << 10;
/// Names that the self-test looks up before a generation is published.
const SELF_TEST_NAMES: usize = 1_000;

/// Number of good generations kept on disk. Invariant: 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep(u16);

impl Keep {
    /// Upper bound of the setting, since each generation takes disk space.
    pub const MAX: u16 = 100;

    /// Returns `None` if the number is out of range.
    pub fn new(generations: u16) -> Option<Keep> {
        (1..=Keep::MAX).contains(&generations).then_some(Keep(generations))
    }
}

impl Default for Keep {
    /// Returns the default: the new generation, and one to roll back to.
    fn default() -> Keep {
        Keep(2)
    }
}

/// Settings of builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildSettings {
    pub keep: Keep,
    pub memory: MemoryBound,
    pub extend: ExtendRule,
    /// `None` means all names, if the memory allows it.
    pub contains: Option<Contains>,
}

/// Builds a generation from `batches` and popularity lists, verifies it, makes it current and removes
/// old ones.
///
/// # Errors
/// Any step fails; the current generation then stays in use.
pub fn rebuild(
    index: &Path,
    batches: &[Batch],
    ranked: &[RankedList],
    settings: BuildSettings,
    now: DateTime<Utc>,
) -> Result<Manifest, BuildError> {
    Build::begin(index, batches, ranked, settings, now)?.whole()
}

/// As [`rebuild`], but extends the index by the missing lists if the settings allow it and results
/// stay the same.
///
/// # Errors
/// As [`rebuild`].
pub fn update(
    index: &Path,
    batches: &[Batch],
    ranked: &[RankedList],
    settings: BuildSettings,
    now: DateTime<Utc>,
) -> Result<Manifest, BuildError> {
    let build = Build::begin(index, batches, ranked, settings, now)?;
    match build.extension() {
        Ok(manifest) => Ok(manifest),
        Err(NoDelta::Failed(err)) => Err(err),
        Err(NoDelta::Whole(reason)) => {
            tracing::info!(%reason, "building the whole index");
            build.whole()
        }
    }
}

/// A build, which holds the lock of the index folder.
struct Build<'a> {
    index: &'a Path,
    batches: &'a [Batch],
    ranked: &'a [RankedList],
    settings: BuildSettings,
    now: DateTime<Utc>,
    generation: GenerationId,
    _lock: FolderLock,
}

impl<'a> Build<'a> {
    fn begin(
        index: &'a Path,
        batches: &'a [Batch],
        ranked: &'a [RankedList],
        settings: BuildSettings,
        now: DateTime<Utc>,
    ) -> Result<Build<'a>, BuildError> {
        let lock = FolderLock::take(index, LOCK)?;
        remove_leftovers(index, &lock)?;
        let newest = manifest::generations(index)?.last().map_or(0, |newest| newest.0);
        let generation = GenerationId(newest + 1);
        Ok(Build { index, batches, ranked, settings, now, generation, _lock: lock })
    }

    fn whole(&self) -> Result<Manifest, BuildError> {
        let Build { index, batches, ranked, settings, .. } = *self;
        let on_disk = settings.memory.on_disk(batches);
        Space::for_folder(index)?.check(estimate(index, batches), on_disk)?;
        self.publish(|folder| {
            let draft = Draft::new(folder.to_owned()).at(folder)?;
            let table = Table::merge(batches, ranked, settings.memory.room(folder)?)?;
            self.write(draft, table, |manifest| manifest)
        })
    }

    /// Builds a delta from the batches that are missing in a base.
    fn extension(&self) -> Result<Manifest, NoDelta> {
        let Build { index, batches, ranked, settings, .. } = *self;
        let base = Base::find(index, batches, ranked, settings.extend)?;
        let (held, newer) = batches.split_at(base.batches);
        let new: u64 = newer.iter().map(|batch| batch.meta().names).sum();
        let bytes = new * base.bytes_per_name() + BYTES_WITHOUT_NAMES;
        let space = Space::for_folder(index).map_err(BuildError::from)?;
        space.check(bytes, settings.memory.on_disk(newer)).map_err(BuildError::from)?;
        self.publish(|folder| {
            let draft = Draft::new(folder.to_owned()).at(folder).map_err(BuildError::from)?;
            let (coverage, room) = (base.manifest.coverage, settings.memory.room(folder)?);
            let (table, replaced) = rayon::join(
                || Table::merge_labels(batches, base.batches, ranked, coverage, room),
                || Replaced::count(held, newer),
            );
            let (table, replaced) = (table?, replaced?);
            let together = base.with(batches, &table, &replaced)?;
            Ok(self.write(draft, table, |own| together.describe(own, &base))?)
        })
    }

    /// Calls `write` to write and verify a generation in a folder, then makes it current and
    /// removes old ones.
    fn publish<E: From<BuildError>>(
        &self,
        write: impl FnOnce(&Path) -> Result<Manifest, E>,
    ) -> Result<Manifest, E> {
        let folder = self.index.join(format!("{BUILDING}{}", self.generation));
        let written = write(&folder);
        if written.is_err()
            && let Err(left) = fs::remove_dir_all(&folder)
        {
            // On a full disk, the draft would take space that the journal needs.
            tracing::warn!(folder = %folder.display(), error = %left, "a draft is left");
        }
        let manifest = written?;
        self.make_current(&folder, &manifest)?;
        Ok(manifest)
    }

    /// Writes a generation of `table` and verifies it. `described` completes the manifest.
    fn write(
        &self,
        mut draft: Draft,
        table: Table,
        described: impl FnOnce(Manifest) -> Manifest,
    ) -> Result<Manifest, BuildError> {
        let Build { batches, ranked, settings, now, generation, .. } = *self;
        if !settings.memory.allows_side_by_side(&table) {
            draft.run_one_by_one();
        }
        let order = RankOrder::new(&table)?;
        let contains = settings.contains.unwrap_or_else(|| settings.memory.contains(&table));
        tracing::info!(?contains, names = table.len(), "writing the index");
        write_parts(&table, &order, contains, &draft)?;
        let manifest = describe(generation, &table, &order, &draft, (batches, ranked), now);
        let manifest = described(manifest);
        manifest.write(draft.folder()).at(draft.folder())?;
        let self_test = SelfTest::new(&table)?;
        let spot_checks = SpotChecks::new(table)?;
        verify(&draft, generation, &spot_checks, &self_test)?;
        Ok(manifest)
    }

    fn make_current(&self, folder: &Path, manifest: &Manifest) -> Result<(), BuildError> {
        let Build { index, settings, generation, .. } = *self;
        let place = manifest::folder_of(index, generation);
        fs::rename(folder, &place).at(folder)?;
        manifest::sync_folder(index).at(index)?;
        // If `CURRENT` is unreadable, there is no generation to return to.
        let before = manifest::current(index).unwrap_or_default();
        manifest::set_current(index, generation)?;
        remove_old(index, manifest, before, settings.keep)
    }
}

/// Estimates the size of a generation of `batches`, assuming that names take as much space as in
/// the current generation, and that lists that are not yet in it have only new names. Without a
/// current generation, the size of the corpus is used.
fn estimate(index: &Path, batches: &[Batch]) -> u64 {
    let current = manifest::current(index).ok().flatten();
    let current = current.and_then(|id| Manifest::read(&manifest::folder_of(index, id)).ok());
    let Some(manifest) = current else {
        let corpus: u64 = batches.iter().map(Batch::size).sum();
        return corpus * BYTES_PER_CORPUS_BYTE + BYTES_WITHOUT_NAMES;
    };
    let base = manifest.base().and_then(|id| Manifest::read(&manifest::folder_of(index, id)).ok());
    let bytes = manifest.bytes() + base.map_or(0, |base| base.bytes());
    let (indexed, names) = (manifest.batches, u64::from(manifest.names));
    let lists = batches.iter().flat_map(Batch::lists);
    let later = lists.skip(usize::try_from(indexed).unwrap_or(usize::MAX));
    let new: u64 = later.map(|list| list.names).sum();
    let per_name = bytes.checked_div(names).unwrap_or(0).max(BYTES_PER_NAME_ABOUT);
    bytes + new * per_name + BYTES_WITHOUT_NAMES
}

/// Syncs the draft and verifies it concurrently: the disk writes while the cores read.
fn verify(
    draft: &Draft,
    generation: GenerationId,
    spot_checks: &SpotChecks,
    self_test: &SelfTest,
) -> Result<(), BuildError> {
    thread::scope(|scope| {
        let syncing = scope.spawn(|| draft.sync());
        let tested = open::open_folder(draft.folder(), generation)
            .map_err(BuildError::from)
            .and_then(|generation| {
                spot_checks.find_in(&generation)?;
                self_test.ask(&Index::new(Arc::new(generation)))
            });
        let synced = syncing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        tested.and(synced)
    })
}

/// Makes the newest good generation before the current one current.
///
/// # Errors
/// No earlier generation is good.
pub fn rollback(index: &Path) -> Result<Manifest, BuildError> {
    let _lock = FolderLock::take(index, LOCK)?;
    let current = manifest::current(index)?;
    let mut before = manifest::generations(index)?;
    before.retain(|generation| current.is_some_and(|current| *generation < current));
    for generation in before.into_iter().rev() {
        if let Ok(manifest) = open::verify(index, generation) {
            manifest::set_current(index, generation)?;
            manifest::mark_rolled_back(index)?;
            return Ok(manifest);
        }
    }
    let what = "holds no good generation before the current one to go back to; `dropdex rebuild` builds a \
                new one from the corpus";
    Err(GenerationError::malformed(index, what).into())
}

/// Moves the generations in `received`, which another node has built, to the folder of the index.
/// If this node has built a generation with the same number, that generation is replaced.
///
/// # Errors
/// The folder cannot be used, or a rebuild is running.
pub fn install(index: &Path, received: &Path) -> Result<(), BuildError> {
    let _lock = FolderLock::take(index, LOCK)?;
    for generation in manifest::generations(received)? {
        let (from, to) =
            (manifest::folder_of(received, generation), manifest::folder_of(index, generation));
        let found = Manifest::read(&from)?;
        if Manifest::read(&to).is_ok_and(|held| held == found) {
            continue;
        }
        if to.exists() {
            remove(index, generation)?;
        }
        fs::rename(&from, &to).at(&from)?;
    }
    Ok(manifest::sync_folder(index).at(index)?)
}

/// Makes an installed generation the current one, and removes old ones.
///
/// # Errors
/// The generation is missing or damaged, a rebuild is running, or the disk failed.
pub fn adopt(index: &Path, generation: GenerationId, keep: Keep) -> Result<(), BuildError> {
    let lock = FolderLock::take(index, LOCK)?;
    let before = manifest::current(index).unwrap_or_default();
    let manifest = Manifest::read(&manifest::folder_of(index, generation))?;
    manifest::set_current(index, generation)?;
    remove_leftovers(index, &lock)?;
    remove_old(index, &manifest, before.filter(|before| *before < generation), keep)
}

/// Removes leftovers of a killed rebuild, unless one is running.
///
/// # Errors
/// The folder cannot be read or written.
pub fn tidy(index: &Path) -> Result<(), BuildError> {
    if !index.exists() {
        return Ok(());
    }
    match FolderLock::take_now(index, LOCK) {
        Ok(lock) => remove_leftovers(index, &lock),
        Err(LockError::Busy(_)) => Ok(()),
        Err(err) => Err(err.into()),
    }
}

/// The caller must hold the lock, so that no other process uses the leftovers.
fn remove_leftovers(index: &Path, _lock: &FolderLock) -> Result<(), BuildError> {
    for entry in fs::read_dir(index).at(index)? {
        let entry = entry.at(index)?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with(BUILDING) || name.starts_with(REMOVING) {
            fs::remove_dir_all(&path).at(&path)?;
        } else if name.starts_with(manifest::CURRENT_DRAFT) {
            fs::remove_file(&path).at(&path)?;
        }
    }
    Ok(())
}

/// Removes old generations. Keeps `keep` generations: the current one, and the newest intact ones
/// up to `before`, the previously current one. Newer generations were rolled back. The base of a
/// kept generation is also kept. A damaged generation does not count and is removed. A generation
/// that cannot be read does not count either, but is kept.
fn remove_old(
    index: &Path,
    current: &Manifest,
    before: Option<GenerationId>,
    keep: Keep,
) -> Result<(), BuildError> {
    let mut kept = 1;
    // A base is older than the generations that extend it.
    let mut bases: Vec<GenerationId> = current.base().into_iter().collect();
    let current = current.generation;
    for generation in manifest::generations(index)?.into_iter().rev() {
        let is_earlier = generation < current && before.is_none_or(|before| generation <= before);
        if generation == current {
            continue;
        }
        if is_earlier && kept < keep.0 {
            match open::check(index, generation, &bases) {
                Ok(base) => {
                    kept += 1;
                    bases.extend(base);
                    continue;
                }
                Err(GenerationError::Io(err)) if err.source.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%generation, error = %err, "an older generation cannot be read");
                    bases.extend(open::base_of(index, generation));
                    continue;
                }
                Err(err) => {
                    tracing::warn!(%generation, error = %err, "an older generation is damaged")
                }
            }
        }
        if bases.contains(&generation) {
            continue;
        }
        remove(index, generation)?;
    }
    Ok(())
}

fn remove(index: &Path, generation: GenerationId) -> Result<(), BuildError> {
    let folder = manifest::folder_of(index, generation);
    // A generation is renamed before it is removed, so that a partly removed one is never found.
    let doomed = index.join(format!("{REMOVING}{generation}"));
    fs::rename(&folder, &doomed).at(&folder)?;
    Ok(fs::remove_dir_all(&doomed).at(&doomed)?)
}

/// Writes all files of a generation except the manifest.
fn write_parts(
    table: &Table,
    order: &RankOrder,
    contains: Contains,
    draft: &Draft,
) -> Result<(), BuildError> {
    let names = || -> Result<(), BuildError> {
        Names::write(table, draft)?;
        IdnNames::write(table, draft)?;
        match contains {
            Contains::All => name_gram_writer::write(table, draft),
            Contains::Drops => Ok(()),
        }
    };
    let orders = || -> Result<(), BuildError> {
        let mut keys = Vec::with_capacity(table.len() as usize);
        let mut counts = vec![0; table.tlds.len()];
        table.parts.for_each(
            &[Section::Keys],
            |_| (),
            |part, ()| {
                keys.extend_from_slice(&part.key);
                part.tld.iter().for_each(|&tld| counts[usize::from(tld)] += 1);
                Ok(())
            },
        )?;
        RankTable::new(keys).write(open::NAMES_RANKED, draft)?;
        let mut by_tld = ByTldBuilder::new(&counts);
        table.parts.for_each(
            &[Section::Keys],
            |_| (),
            |part, ()| {
                part.tld.iter().zip(&part.key).for_each(|(&tld, &key)| by_tld.push(tld, key));
                Ok(())
            },
        )?;
        by_tld.finish().write(open::NAMES_BY_TLD, draft)
    };
    let drops = || -> Result<(), BuildError> {
        DropsByName::write(table, order.docs(), draft)?;
        DropHistory::write(table, draft)?;
        table.typos.write(draft)?;
        drops_by_rank::write(table, order, draft)
    };
    draft.both(names, || draft.both(orders, drops))
}

fn describe(
    generation: GenerationId,
    table: &Table,
    order: &RankOrder,
    draft: &Draft,
    (batches, ranked): (&[Batch], &[RankedList]),
    now: DateTime<Utc>,
) -> Manifest {
    Manifest {
        format: INDEX_FORMAT,
        drop_rules: DROP_RULES,
        generation,
        created: now,
        scorer_version: SCORER_VERSION,
        tantivy: tantivy::version_string().to_owned(),
        fst: format!("fst format {}", fst::raw::VERSION),
        corpus: corpus_digest(batches, ranked),
        batches: batches.iter().map(|batch| batch.lists().len() as u64).sum(),
        suffixes: suffixes::installed().map(|sha256| SuffixesUsed {
            sha256: sha256.to_owned(),
            names_left_out: table.left_out,
        }),
        tables: tables::versions(),
        coverage: table.coverage,
        seen: Seen::of(batches.iter().flat_map(Batch::lists)),
        internal_lists: internal_lists(batches),
        popularity: ranked.iter().map(|list| UsedList::from(list.meta())).collect(),
        newest_observed_at: newest_observed_at(batches),
        extends: None,
        names: table.len(),
        dropped: table.dropped(),
        drops: order.listed(),
        drop_dates: table.drop_dates.clone(),
        tlds: table.tlds.names().to_vec(),
        files: draft.sums(),
    }
}

/// Returns the observation time of the newest list that no other reading replaces.
fn newest_observed_at(batches: &[Batch]) -> Option<DateTime<Utc>> {
    let live = batch::not_replaced(batches.iter().flat_map(Batch::lists));
    live.map(|(_, list)| list.observed_at).max()
}

fn internal_lists(batches: &[Batch]) -> Vec<u32> {
    let lists = (1..).zip(batches.iter().flat_map(Batch::lists));
    let internal = lists
        .filter(|(_, list)| list.origin.as_ref().is_some_and(|origin| origin.internal))
        .map(|(number, _)| number);
    internal.collect()
}

/// A sample of names of a table, to look up in the new generation.
struct SpotChecks(Vec<SpotCheck>);

struct SpotCheck {
    name: Vec<u8>,
    label_len: u8,
    ordinal: u32,
    key: u16,
    /// Date, effective release with its second, and registered-again flag of the latest drop, and its
    /// first batch.
    drop: Option<(u16, u16, Option<u32>, u8, u32)>,
    /// Ranks on popularity lists.
    ranks: Vec<ListedRank>,
    registered: bool,
}

impl SpotChecks {
    /// Takes the sample and drops the table, which is large and no longer needed.
    fn new(table: Table) -> Result<SpotChecks, BuildError> {
        let step = (table.len() as usize / SELF_TEST_NAMES).max(1);
        let checks = |part: &Part| -> Vec<SpotCheck> {
            let first = (part.first as usize).next_multiple_of(step) - part.first as usize;
            (first..part.len()).step_by(step).map(|at| SpotCheck::new(part, at)).collect()
        };
        let mut all = Vec::new();
        table.parts.for_each(&Section::ALL, checks, |_, checks| {
            all.extend(checks);
            Ok(())
        })?;
        Ok(SpotChecks(all))
    }

    /// Looks up each name in every way that queries use.
    fn find_in(&self, index: &Generation) -> Result<(), BuildError> {
        let lost = self.0.iter().find(|check| !check.is_in(index));
        lost.map_or(Ok(()), |lost| {
            Err(BuildError::SelfTest(String::from_utf8_lossy(&lost.name).into_owned()))
        })
    }
}

impl SpotCheck {
    fn new(part: &Part, at: usize) -> SpotCheck {
        let drops = &part.drops;
        let drop = drops.at.binary_search(&(at as u32)).ok();
        let before = |drop: usize| drops.ranks.partition_point(|(of, _)| (*of as usize) < drop);
        let ranks = drop.map_or(0..0, |drop| before(drop)..before(drop + 1));
        SpotCheck {
            name: part.name(at).to_vec(),
            label_len: part.label_len[at],
            ordinal: part.first + at as u32,
            key: part.key[at],
            drop: drop.map(|drop| {
                let (returned, first_batch) = (drops.returned[drop], drops.first_batch[drop]);
                let seconds = &drops.release_seconds;
                let second = seconds.binary_search_by_key(&(drop as u32), |[of, _]| *of);
                let second = second.ok().map(|at| seconds[at][1]);
                (drops.date[drop], drops.release[drop], second, returned, first_batch)
            }),
            ranks: drops.ranks[ranks].iter().map(|(_, listed)| *listed).collect(),
            registered: part.registered[at],
        }
    }

    fn is_in(&self, index: &Generation) -> bool {
        let Some(name) = DomainName::from_stored(&self.name, self.label_len) else { return false };
        let Some(tld) = index.tlds.find(name.tld()) else { return false };
        let mut read = NameBuf::default();
        index.names.read(self.ordinal, &mut read);
        let row = index.row(self.ordinal, tld);
        let drop = row.drop.map(|drop| {
            let first_batch = index.drops_by_rank.first_batches().number(drop.doc);
            let second = index.drops_by_rank.release_seconds().of(drop.doc).map(SecondOfDay::get);
            let RowDrop { date, release, .. } = drop;
            let returned = Return::byte(index.drops_by_rank.returns().of(drop.doc));
            (date.raw(), release.day.raw(), second, returned, first_batch)
        });
        let place = index.by_tld.places(tld, self.ordinal..self.ordinal + 1);
        index.names.find(name.as_str()) == Some(self.ordinal)
            && index.names.range(&self.name).start == self.ordinal
            && (read.as_str(), read.tld()) == (name.as_str(), tld)
            && rank_key(row.dqs, row.length) == self.key & !ADULT
            && index.ranks.keys()[self.ordinal as usize] == self.key
            && place.len() == 1
            && index.by_tld.row(place.start) == self.ordinal
            && (drop, row.registered) == (self.drop, self.registered)
            && row.drop.is_none_or(|drop| {
                index.drops_by_rank.popularity().of(drop.doc).eq(self.ranks.iter().copied())
            })
            && row.drop.is_none_or(|drop| *index.records.label(drop.doc) == *name.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::parts::Room;
    use crate::corpus::batch::{self, BatchMeta, Entry, StoredObservation};
    use crate::feeds::Sighting;
    use crate::filter::{AsOf, Counting, DropFilter, Filter, Sort, View};
    use crate::scorer::{Scorer, Scratch};
    use crate::vocab::name::DomainName;
    use dropdex_query::text::Substring;

    const TLDS: [&str; 5] = ["com", "de", "рф", "co.uk", "museum"];

    fn batch_of(folder: &Path, names: &[String]) -> Batch {
        let path = folder.join("batch");
        let mut writer = batch::create(&path).expect("a new file");
        let date = "2026-10-03".parse().expect("a date");
        let sighting = Sighting::Dropped { date, release: None, registered_again: false };
        let record = StoredObservation { sighting, first_seen: None, observed_at: 0 };
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
                features: &[],
                record,
            };
            writer.push(&entry, None).expect("written");
        }
        let (rows, names) = writer.counts();
        writer.finish(&BatchMeta { rows, names, ..BatchMeta::default() }).expect("finished");
        Batch::open(&path).expect("opens")
    }

    fn keeping(generations: u16) -> BuildSettings {
        let keep = Keep::new(generations).expect("in range");
        BuildSettings { keep, ..BuildSettings::default() }
    }

    fn built(names: &[&str]) -> (tempfile::TempDir, Index) {
        let folder = tempfile::tempdir().expect("a folder");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let batches = [batch_of(folder.path(), &names)];
        let index = folder.path().join("index");
        rebuild(&index, &batches, &[], BuildSettings::default(), DateTime::UNIX_EPOCH)
            .expect("built");
        let opened = open::open_current(&index).expect("opens");
        (folder, opened.index)
    }

    fn found(index: &Index, contains: &str) -> Vec<String> {
        let filter = DropFilter {
            common: Filter::default(),
            view: View::All,
            contains: Some(Substring::parse(contains).expect("a substring")),
            sort: Sort::default(),
            sort_fact: None,
            after: None,
            limit: 100,
            offset: 0,
        };
        let today = "2026-10-03".parse().expect("a date");
        let as_of = AsOf { today, catch_days: 5 };
        let page = index.drops(&filter, as_of, Counting::None).expect("answers");
        let mut names = Vec::new();
        page.for_each(|row| names.push(row.name.to_owned()));
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
        // If only trigrams were compared, `aaaa.com` would match, because it contains `aaa`, the
        // only trigram of the text.
        assert_eq!(found(&index, "aaaaa"), [] as [&str; 0]);
        assert_eq!(found(&index, "zzz"), [] as [&str; 0]);
    }

    #[test]
    fn an_empty_corpus_has_an_index() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = folder.path().join("index");
        rebuild(&index, &[], &[], BuildSettings::default(), DateTime::UNIX_EPOCH).expect("built");
        let opened = open::open_current(&index).expect("opens");
        assert_eq!(found(&opened.index, "a"), [] as [&str; 0]);
        assert_eq!(opened.index.manifest().names, 0);
    }

    #[test]
    fn little_memory_gives_the_same_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = |at: u32| {
            let label = at.wrapping_mul(2_654_435_761) % 100_000;
            format!(
                "{}{label}.{}",
                ["ab", "c-d", "xü", "я"][at as usize % 4],
                TLDS[at as usize % 5]
            )
        };
        let mut names: Vec<String> = (0..14_000).map(name).collect();
        names.sort();
        names.dedup();
        let batches = [batch_of(folder.path(), &names)];
        let files = |memory| {
            let index = folder.path().join("index");
            let settings =
                BuildSettings { memory, contains: Some(Contains::All), ..BuildSettings::default() };
            let built = rebuild(&index, &batches, &[], settings, DateTime::UNIX_EPOCH);
            // Tantivy gives its files random names.
            let files = built.expect("built").files.into_iter().filter_map(|(name, file)| {
                let drawn = name.strip_prefix("drops/").and_then(|name| name.rsplit_once('.'));
                match drawn {
                    Some((_, "json")) => None,
                    Some((_, kind)) => Some((kind.to_owned(), file.blake3)),
                    None => Some((name, file.blake3)),
                }
            });
            files.collect::<Vec<_>>()
        };
        let expected = files(MemoryBound::default());
        assert!(expected.len() > 30);
        let table =
            Table::merge(&batches, &[], MemoryBound::tiny().room(folder.path()).expect("a file"));
        let table = table.expect("merged");
        assert!(table.parts.on_disk() > 10, "{} parts on disk", table.parts.on_disk());
        assert!(!MemoryBound::tiny().allows_side_by_side(&table));
        assert!(MemoryBound::default().allows_side_by_side(&table));
        for (file, expected) in files(MemoryBound::tiny()).iter().zip(&expected) {
            assert_eq!(file, expected);
        }
    }

    #[test]
    fn old_generations_are_removed_and_rollback_restores_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = folder.path().join("index");
        for _ in 0..4 {
            rebuild(&index, &[], &[], BuildSettings::default(), DateTime::UNIX_EPOCH)
                .expect("built");
        }
        let numbers = |index: &Path| {
            manifest::generations(index).expect("read").iter().map(|id| id.0).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&index), [3, 4]);
        assert_eq!(rollback(&index).expect("back").generation, GenerationId(3));
        assert!(matches!(manifest::current(&index), Ok(Some(GenerationId(3)))));
        assert!(rollback(&index).is_err());
        // The next generation gets a new number. The generation that was rolled back is removed,
        // and its predecessor is kept.
        rebuild(&index, &[], &[], BuildSettings::default(), DateTime::UNIX_EPOCH).expect("built");
        assert_eq!(numbers(&index), [3, 5]);
        assert_eq!(rollback(&index).expect("back").generation, GenerationId(3));
    }

    #[test]
    fn the_set_number_of_generations_is_kept_and_leftovers_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = folder.path().join("index");
        let numbers = || {
            manifest::generations(&index).expect("read").iter().map(|id| id.0).collect::<Vec<_>>()
        };
        let build = |keep| {
            let settings = keeping(keep);
            rebuild(&index, &[], &[], settings, DateTime::UNIX_EPOCH).expect("built");
        };
        (0..4).for_each(|_| build(3));
        assert_eq!(numbers(), [2, 3, 4]);
        build(1);
        assert_eq!(numbers(), [5]);
        assert!(Keep::new(0).is_none() && Keep::new(101).is_none());

        let left = || {
            let names = fs::read_dir(&index).expect("read").map(|entry| entry.expect("one"));
            names.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).count()
        };
        let leave = || {
            for name in [".building-gen-7", ".removing-gen-00000000000000000001"] {
                fs::create_dir_all(index.join(name).join("names")).expect("made");
            }
            fs::write(index.join(".current-x"), "gen").expect("written");
        };
        leave();
        let lock = FolderLock::take(&index, LOCK).expect("free");
        tidy(&index).expect("not now");
        assert_eq!(left(), 3, "another process builds");
        drop(lock);
        tidy(&index).expect("tidied");
        assert_eq!(left(), 0);
        leave();
        build(2);
        assert_eq!((left(), numbers()), (0, vec![5, 6]));
        tidy(&folder.path().join("gone")).expect("nothing to do");
        assert!(!folder.path().join("gone").exists());
    }

    #[test]
    fn damaged_generations_do_not_count_as_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let batches = [batch_of(folder.path(), &["abc.com".to_owned()])];
        let index = folder.path().join("index");
        let build = |keep| {
            let settings = keeping(keep);
            rebuild(&index, &batches, &[], settings, DateTime::UNIX_EPOCH)
                .expect("built")
                .generation
                .0
        };
        let numbers = || {
            manifest::generations(&index).expect("read").iter().map(|id| id.0).collect::<Vec<_>>()
        };
        let damage = |generation, file: &str| {
            let path = manifest::folder_of(&index, GenerationId(generation)).join(file);
            let mut bytes = fs::read(&path).expect("readable");
            bytes[0] ^= 1;
            fs::write(&path, bytes).expect("writable");
        };
        assert_eq!((build(2), build(2)), (1, 2));
        damage(2, "names/text");
        let served = open::open_current(&index).expect("its predecessor serves").index;
        assert_eq!(served.manifest().generation, GenerationId(1));
        assert_eq!((build(2), numbers()), (3, vec![1, 3]));
        open::open(&index, GenerationId(1)).expect("still intact");
        // Several generations may be damaged, in any file.
        assert_eq!((build(3), numbers()), (4, vec![1, 3, 4]));
        damage(4, "MANIFEST");
        damage(3, "records.bytes");
        assert_eq!((build(2), numbers()), (5, vec![1, 5]));
        fs::remove_file(manifest::folder_of(&index, GenerationId(1)).join("names/text"))
            .expect("removable");
        assert_eq!((build(2), numbers()), (6, vec![5, 6]));
    }

    #[test]
    fn a_generation_with_wrong_results_is_not_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = |tag: &str| -> Vec<String> {
            (0..300).map(|at| format!("{tag}{at}shop.{}", ["com", "de", "рф"][at % 3])).collect()
        };
        let (mine, others) = (names("ab"), names("ac"));
        let batches = [batch_of(folder.path(), &mine)];
        let index = folder.path().join("index");
        rebuild(&index, &batches, &[], BuildSettings::default(), DateTime::UNIX_EPOCH)
            .expect("built");
        let opened = open::open_current(&index).expect("opens").index;
        let table = Table::merge(&batches, &[], Room::default()).expect("merged");
        SelfTest::new(&table).expect("in memory").ask(&opened).expect("it is of this table");
        let other = tempfile::tempdir().expect("a folder");
        let table =
            Table::merge(&[batch_of(other.path(), &others)], &[], Room::default()).expect("merged");
        let refused = SelfTest::new(&table).expect("in memory").ask(&opened);
        assert!(matches!(refused, Err(BuildError::SelfTest(_))), "{refused:?}");
        // A single wrong column of a single name is enough.
        let mut table = Table::merge(&batches, &[], Room::default()).expect("merged");
        for part in table.parts.iter_mut() {
            part.drops.returned.fill(1);
        }
        let refused = SelfTest::new(&table).expect("in memory").ask(&opened);
        assert!(matches!(refused, Err(BuildError::SelfTest(_))), "{refused:?}");
    }

    #[test]
    fn every_damaged_file_is_refused_and_the_previous_generation_is_served() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["abc.com", "abc.de", "münchen.de"].map(str::to_owned);
        let batches = [batch_of(folder.path(), &names)];
        let index = folder.path().join("index");
        rebuild(&index, &batches, &[], BuildSettings::default(), DateTime::UNIX_EPOCH)
            .expect("built");
        let manifest =
            rebuild(&index, &batches, &[], BuildSettings::default(), DateTime::UNIX_EPOCH)
                .expect("built");
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
            let opened = open::open_current(&index).expect("its predecessor serves");
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
        fs::write(damaged.join("names/text"), b"").expect("writable");
        assert!(matches!(
            open::open_current(&index),
            Err(crate::error::OpenError::AllDamaged { .. })
        ));
    }
}
