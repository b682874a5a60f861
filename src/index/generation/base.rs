//! Decides whether an index can be extended, finds its base, and combines base and delta.
//!
//! A delta must give the same results as a full rebuild. The data of a name depends only on the
//! other names of its label, which the delta contains too, and on the tables, popularity lists and
//! estimate of the market in use, which must be those of the base.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::columns::replaced::{Replaced, dates_without};
use crate::columns::table::{Table, coverage};
use crate::corpus::batch::Batch;
use crate::corpus::drops::DROP_RULES;
use crate::corpus::ranked::RankedList;
use crate::error::BuildError;
use crate::scorer::SCORER_VERSION;
use crate::storage::manifest::{
    self, Contents, Extension, Manifest, SuffixesUsed, UsedList, corpus_digest,
};
use crate::vocab::day::Day;
use crate::vocab::{suffixes, tables};

/// Reason why an index is built completely instead of extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WholeBecause {
    #[error("there is no index to extend")]
    NoIndex,
    #[error("the index is small")]
    Small,
    #[error("suffixes, tables, the scorer or the rules for drops have changed")]
    Tables,
    #[error("popularity lists have changed")]
    Popularity,
    #[error("the batches of the index were compacted or have changed")]
    Corpus,
    #[error("no list is new")]
    NothingNew,
    #[error("a list was read in another way")]
    Replaced,
    #[error("the lists since the last whole index are large")]
    ManyNew,
    #[error("the estimate of the market has changed")]
    Market,
    #[error("there are too many names or TLDs")]
    TooMany,
}

/// Reason why no delta was built.
#[derive(Debug)]
pub enum NoDelta {
    /// The index must be built completely.
    Whole(WholeBecause),
    Failed(BuildError),
}

impl From<WholeBecause> for NoDelta {
    fn from(reason: WholeBecause) -> NoDelta {
        NoDelta::Whole(reason)
    }
}

impl From<BuildError> for NoDelta {
    fn from(err: BuildError) -> NoDelta {
        NoDelta::Failed(err)
    }
}

/// Conditions under which an ingest extends an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtendRule {
    /// Minimum size of an index to extend, in names; 0 disables extending.
    pub from: u32,
    /// Maximum names in the missing lists, in percent of the names of the index.
    pub percent: u32,
}

impl ExtendRule {
    /// Always builds complete indexes.
    pub const NEVER: ExtendRule = ExtendRule { from: 0, percent: 0 };
}

impl Default for ExtendRule {
    /// Building a smaller index takes only seconds. Each list rebuilds the whole delta, and queries
    /// search both.
    fn default() -> ExtendRule {
        ExtendRule { from: 5_000_000, percent: 5 }
    }
}

/// A generation to extend.
pub struct Base {
    pub manifest: Manifest,
    /// Number of batches that it holds: the first ones of the corpus.
    pub batches: usize,
}

impl Base {
    /// Finds the generation that the missing batches can extend: the current one, or its base.
    ///
    /// # Errors
    /// The index cannot be extended, or a batch does not decode.
    pub fn find(
        index: &Path,
        batches: &[Batch],
        ranked: &[RankedList],
        rule: ExtendRule,
    ) -> Result<Base, NoDelta> {
        let manifest = read_base(index).ok_or(WholeBecause::NoIndex)?;
        let base = Base::of_corpus(manifest, batches, ranked, rule)?;
        match coverage(batches)? == base.manifest.coverage {
            true => Ok(base),
            false => Err(WholeBecause::Market.into()),
        }
    }

    /// Checks everything except the estimate of the market.
    fn of_corpus(
        manifest: Manifest,
        batches: &[Batch],
        ranked: &[RankedList],
        rule: ExtendRule,
    ) -> Result<Base, WholeBecause> {
        let used = manifest.suffixes.as_ref().map(|used| used.sha256.as_str());
        let lists = |count: usize| batches[..count].iter().flat_map(Batch::lists).count() as u64;
        let held = (0..=batches.len()).find(|&count| lists(count) >= manifest.batches);
        let held = held.ok_or(WholeBecause::Corpus)?;
        let new: u64 = batches[held..].iter().map(|batch| batch.meta().names).sum();
        let popularity = ranked.iter().map(|list| UsedList::from(list.meta()));
        let checks = [
            (rule.from > 0 && manifest.names >= rule.from, WholeBecause::Small),
            (manifest.scorer_version == SCORER_VERSION, WholeBecause::Tables),
            (manifest.drop_rules == DROP_RULES, WholeBecause::Tables),
            (used == suffixes::installed(), WholeBecause::Tables),
            (manifest.tables == tables::versions(), WholeBecause::Tables),
            (popularity.eq(manifest.popularity.iter().cloned()), WholeBecause::Popularity),
            (corpus_digest(&batches[..held], ranked) == manifest.corpus, WholeBecause::Corpus),
            (held < batches.len(), WholeBecause::NothingNew),
            (!replaces(&batches[held..]), WholeBecause::Replaced),
            (
                new * 100 <= u64::from(manifest.names) * u64::from(rule.percent),
                WholeBecause::ManyNew,
            ),
        ];
        match checks.into_iter().find(|(holds, _)| !holds) {
            None => Ok(Base { manifest, batches: held }),
            Some((_, reason)) => Err(reason),
        }
    }

    /// Returns the approximate bytes that a name takes on disk.
    pub fn bytes_per_name(&self) -> u64 {
        self.manifest.bytes().div_ceil(u64::from(self.manifest.names.max(1)))
    }

    /// Returns the combined content of base and delta: `table` belongs to the delta, and replaces
    /// `replaced`.
    ///
    /// # Errors
    /// A number exceeds its limit, or a batch does not decode.
    pub fn with(
        &self,
        batches: &[Batch],
        table: &Table,
        replaced: &Replaced,
    ) -> Result<Extended, NoDelta> {
        let base = &self.manifest;
        // A list of an earlier day can replace a name's drop date, and so remove the last name with that date.
        let mut gone = replaced.drop_dates();
        table.drop_dates.iter().for_each(|date| {
            gone.remove(date);
        });
        let (held, newer) = batches.split_at(self.batches);
        let gone = dates_without(gone, held, newer)?;
        let left = base.drop_dates.iter().filter(|date| !gone.contains(date));
        let dates: BTreeSet<Day> = left.chain(&table.drop_dates).copied().collect();
        let known: BTreeSet<&String> = base.tlds.iter().collect();
        let new = table.tlds.names().iter().filter(|tld| !known.contains(tld));
        let tlds: Vec<String> = base.tlds.iter().chain(new).cloned().collect();
        // Hidden names also have numbers.
        let fits =
            base.names.checked_add(table.len()).is_some() && u16::try_from(tlds.len()).is_ok();
        if !fits {
            return Err(WholeBecause::TooMany.into());
        }
        let left_out = base.suffixes.as_ref().map_or(0, |used| used.names_left_out);
        Ok(Extended {
            names_before: base.names - replaced.counts.names,
            dropped_before: base.dropped - replaced.counts.dropped,
            drops_before: base.drops - replaced.counts.drops,
            left_out_before: left_out - replaced.left_out,
            drop_dates: dates.into_iter().collect(),
            tlds,
        })
    }
}

/// A base and its delta.
pub struct Extended {
    /// Computes the counts of the base without the replaced names.
    names_before: u32,
    dropped_before: u32,
    drops_before: u32,
    left_out_before: u64,
    drop_dates: Vec<Day>,
    tlds: Vec<String>,
}

impl Extended {
    /// Converts the manifest of the delta to that of the delta on `base`.
    pub fn describe(self, own: Manifest, base: &Base) -> Manifest {
        let Contents { names, dropped, drops, .. } = own.own();
        let suffixes = own.suffixes.clone().map(|used| SuffixesUsed {
            names_left_out: self.left_out_before + used.names_left_out,
            ..used
        });
        let extension = Extension {
            base: base.manifest.generation,
            base_manifest: base.manifest.digest(),
            own: own.own(),
        };
        Manifest {
            extends: Some(extension),
            suffixes,
            names: self.names_before + names,
            dropped: self.dropped_before + dropped,
            drops: self.drops_before + drops,
            drop_dates: self.drop_dates,
            tlds: self.tlds,
            ..own
        }
    }
}

/// Returns true if one of the lists replaces an earlier reading of the same list. The names of that
/// reading are in the base.
fn replaces(batches: &[Batch]) -> bool {
    batches.iter().flat_map(Batch::lists).any(|list| !list.replaces.is_empty())
}

/// Reads the manifest of the current generation, or of its base.
fn read_base(index: &Path) -> Option<Manifest> {
    let read = |generation| Manifest::read(&manifest::folder_of(index, generation)).ok();
    let current = read(manifest::current(index).ok()??)?;
    match &current.extends {
        None => Some(current),
        Some(extension) => {
            read(extension.base).filter(|base| base.digest() == extension.base_manifest)
        }
    }
}
