//! An index in memory: its layers, the data of a day, and the columns of a name. The other modules
//! of the folder run queries on each layer and merge the results.

use std::cell::Cell;
use std::ops::{ControlFlow, Deref, Range};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::columns::by_tld::ByTld;
use crate::columns::checks::Beside;
use crate::columns::day::DayStages;
use crate::columns::drop_history::DropHistory;
use crate::columns::drops_by_name::{DropsByName, StagedDrops};
use crate::columns::drops_by_rank::DropsByRank;
use crate::columns::expected_taken::ExpectedColumn;
use crate::columns::facts::FactTables;
use crate::columns::hidden::{Hidden, NameOrders};
use crate::columns::idn::IdnNames;
use crate::columns::name_grams::NameGrams;
use crate::columns::names::{NameBuf, Names, VisitedName, text_of};
use crate::columns::rank_key::{dqs_of, length_of};
use crate::columns::rank_table::{HiddenPlaces, RankTable};
use crate::columns::records::{RecordBuffer, ScoreRecord, ScoreRecords};
use crate::columns::suffix_ranks::SuffixRanks;
use crate::columns::tlds::Tlds;
use crate::columns::typos::Typos;
use crate::error::GenerationError;
use crate::filter::{AsOf, Facet, View};
use crate::query::expectation_model::Models;
use crate::query::kept::Kept;
use crate::query::outcome_tables::OutcomeTables;
use crate::query::rows::{FacetValue, Lifecycle, Status};
use crate::query::shared_tlds::SharedTlds;
use crate::query::summary::DaySummary;
use crate::query::totals::Totals;
use crate::scorer::{Features, Scorer, Scratch, Spread, StoredScore};
use crate::storage::manifest::Manifest;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::Released;
use crate::vocab::release_time::{Release, SecondOfDay};
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

/// An index in memory: a generation, or a base and the delta that extends it. Results are the same
/// for both.
pub struct Index {
    /// Manifest of the newest generation.
    manifest: Manifest,
    /// One or two layers, oldest first. A name is visible in one of them.
    layers: Vec<Layer>,
    /// Every TLD, with its number in each layer.
    tlds: SharedTlds,
    days: Kept<AsOf, DayIndex, DAYS_KEPT>,
    /// The models of the outcomes of each suffix.
    pub(super) models: Models,
    pub(super) outcomes: Kept<Day, OutcomeTables, OUTCOMES_KEPT>,
}

/// A generation with its visible names. The other names are also in a newer layer.
pub struct Layer {
    generation: Arc<Generation>,
    /// Hidden names; `None` if all names are visible.
    hidden: Option<Hidden>,
    /// Names that are hidden or rank after another name of their label, if any are hidden. All names of a
    /// label are hidden, or none.
    lesser: Option<HiddenPlaces>,
    /// Place of the layer's first doc among the docs of all layers, and ordinal of its first name
    /// among all names.
    first_place: u32,
    first_ordinal: u32,
    suffix_ranks: SuffixRanks,
    expected: ExpectedColumn,
    /// Cache of [`Layer::newest_list`].
    newest_lists: OnceLock<Vec<Option<UnixMs>>>,
}

/// Names in which a search finds text anywhere without reading all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Contains {
    /// Every name.
    All,
    /// Names on the drop list.
    Drops,
}

/// A generation in memory.
pub struct Generation {
    pub(crate) manifest: Manifest,
    pub(crate) tlds: Tlds,
    /// All names, and their Unicode forms.
    pub(crate) names: Names,
    pub(crate) idn: IdnNames,
    /// Grams of all names, if the generation has them.
    pub(crate) grams: Option<NameGrams>,
    /// Rank keys in name order, and by TLD.
    pub(crate) ranks: RankTable,
    /// Names that rank after another name of their label.
    pub(crate) lesser: HiddenPlaces,
    pub(crate) by_tld: Arc<ByTld>,
    /// Dropped names in name order.
    pub(crate) drops_by_name: DropsByName,
    /// Earlier drops of names.
    pub(crate) drop_history: DropHistory,
    /// Dropped names in rank order, and their records.
    pub(crate) drops_by_rank: DropsByRank,
    pub(crate) records: ScoreRecords,
    pub(crate) typos: Typos,
    /// Facts of dropped names. They are not part of the files: a source changes without a rebuild.
    pub(crate) facts: FactTables,
}

impl Deref for Layer {
    type Target = Generation;

    fn deref(&self) -> &Generation {
        &self.generation
    }
}

/// Data of one day, since stages change at 00:00 UTC.
pub(crate) struct DayIndex {
    pub(crate) as_of: AsOf,
    /// Stages by layer.
    pub(crate) layers: Vec<LayerDay>,
    /// Cache of [`crate::DropsPage::cached_tlds`].
    pub(super) tld_texts: [OnceLock<String>; View::EVERY.len()],
    /// Counts by facet of each of [`View::EVERY`] without filters, computed on first use.
    facets: [FacetCounts; View::EVERY.len()],
    /// The summary, computed when a page first needs it.
    pub(crate) summary: OnceLock<DaySummary>,
}

/// Stages of the names of a layer on one day.
pub(crate) struct LayerDay {
    pub(crate) as_of: AsOf,
    pub(crate) stages: DayStages,
    pub(crate) dropped: StagedDrops,
    pub(super) totals: Totals,
}

/// The values of each facet, in the order of [`Facet::ALL`].
pub(super) type FacetCounts = [OnceLock<Vec<FacetValue>>; Facet::ALL.len()];

/// The columns of one name.
#[derive(Clone, Copy)]
pub(crate) struct NameRow {
    pub(crate) dqs: Dqs,
    pub(crate) length: u8,
    /// TLD number.
    pub(crate) tld: u16,
    pub(crate) drop: Option<RowDrop>,
    /// Whether the name never dropped and is registered according to the lists.
    pub(crate) registered: bool,
}

/// Latest drop of a name.
#[derive(Clone, Copy)]
pub(crate) struct RowDrop {
    pub(crate) doc: u32,
    pub(crate) date: Day,
    /// Effective release.
    pub(crate) release: Release,
    pub(crate) registered_again: bool,
}

/// Buffers that are reused from row to row.
#[derive(Default)]
pub(crate) struct RowBuffers {
    pub(crate) name: NameBuf,
    pub(crate) text: String,
    pub(crate) docs: Vec<u32>,
    pub(crate) record: RecordBuffer,
    pub(crate) scratch: Scratch,
}

thread_local! {
    /// Buffers of the thread; they are taken out while rows are built.
    static BUFFERS: Cell<RowBuffers> = Cell::default();
}

/// Calls `work` with the thread's buffers. Nested calls get new buffers.
pub(crate) fn with_row_buffers<T>(work: impl FnOnce(&mut RowBuffers) -> T) -> T {
    let mut buffers = BUFFERS.take();
    let done = work(&mut buffers);
    BUFFERS.set(buffers);
    done
}

impl Index {
    /// Creates the index of a generation.
    pub(crate) fn new(generation: Arc<Generation>) -> Index {
        let manifest = generation.manifest.clone();
        Index::of_layers(manifest, vec![Layer::new(generation)])
    }

    /// Creates the index of `delta` on the generation that it extends. Names of `base` whose label
    /// is in `delta` are hidden.
    ///
    /// # Errors
    /// The number of visible names differs from the manifest of `delta`.
    pub(crate) fn extended(
        base: Arc<Generation>,
        delta: Generation,
    ) -> Result<Index, GenerationError> {
        let manifest = delta.manifest.clone();
        let hidden = base.hide_labels_of(&delta);
        let visible = |all: u32, hidden: u32, own: u32| (all - hidden).checked_add(own);
        let (counts, own) = (hidden.counts(), delta.manifest.own());
        let all = &base.manifest;
        let fits = visible(all.names, counts.names, own.names) == Some(manifest.names)
            && visible(all.dropped, counts.dropped, own.dropped) == Some(manifest.dropped)
            && visible(all.drops, counts.drops, own.drops) == Some(manifest.drops);
        // Ordinals and places of all layers are numbered consecutively, including hidden ones.
        if !fits || all.names.checked_add(own.names).is_none() {
            let what = format!("does not fit {}, which it extends", all.generation);
            return Err(GenerationError::malformed(
                Path::new(&manifest.generation.to_string()),
                what,
            ));
        }
        let (first_place, first_ordinal) = (base.drops_by_rank.dropped(), base.names.len());
        let lesser = HiddenPlaces::either(&base.ranks, &base.lesser, &hidden.names);
        let base = Layer { hidden: Some(hidden), lesser: Some(lesser), ..Layer::new(base) };
        let delta = Layer { first_place, first_ordinal, ..Layer::new(Arc::new(delta)) };
        Ok(Index::of_layers(manifest, vec![base, delta]))
    }

    fn of_layers(manifest: Manifest, layers: Vec<Layer>) -> Index {
        let tlds = SharedTlds::new(&layers.iter().map(Layer::counted_tlds).collect::<Vec<_>>());
        let (days, models, outcomes) = Default::default();
        let mut index = Index { manifest, layers, tlds, days, models, outcomes };
        let ranks = index.suffix_ranks();
        index.layers.iter_mut().zip(ranks).for_each(|(layer, ranks)| layer.suffix_ranks = ranks);
        index.models = index.fit_models();
        let expected = index.expected_columns(&index.models);
        index.layers.iter_mut().zip(expected).for_each(|(layer, of)| layer.expected = of);
        index
    }

    /// Returns the generation with this manifest, if a layer holds it.
    pub(crate) fn generation_like(&self, manifest: &Manifest) -> Option<Arc<Generation>> {
        let layer = self.layers.iter().find(|layer| layer.generation.manifest == *manifest);
        layer.map(|layer| Arc::clone(&layer.generation))
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the names in which a search finds text anywhere without reading every name.
    pub fn contains(&self) -> Contains {
        match self.layers.iter().all(|layer| layer.grams.is_some()) {
            true => Contains::All,
            false => Contains::Drops,
        }
    }

    /// Returns, for every list, oldest first, the day of its ingestion and the number of latest
    /// drops that it was the first to report. Counting takes a few milliseconds for ten million
    /// drops on each call.
    pub fn lists(&self) -> Vec<(Day, u32)> {
        let mut all = Vec::new();
        for layer in &self.layers {
            let tally = layer.drops_by_rank.first_batches().tally(|doc| layer.shows_doc(doc));
            all.resize(tally.len(), (Day::MIN, 0));
            for ((day, count), (of_layer, more)) in all.iter_mut().zip(tally) {
                (*day, *count) = (of_layer, *count + more);
            }
        }
        all
    }

    /// Returns the newest drop date up to `today`.
    pub fn newest_drop_date(&self, today: Day) -> Option<Day> {
        let dates = &self.manifest.drop_dates;
        let known = dates.partition_point(|&date| date <= today);
        known.checked_sub(1).map(|at| dates[at])
    }

    /// Returns true if the day is cached.
    pub fn is_prepared(&self, as_of: AsOf) -> bool {
        self.days.find(as_of).is_some()
    }

    /// Returns the data of a day, computed on first use.
    pub(crate) fn day(&self, as_of: AsOf) -> Arc<DayIndex> {
        self.days.get(as_of, || budget::shared(|| DayIndex::new(&self.layers, as_of)))
    }

    /// Estimates the time that computing a day takes, if it is not cached.
    pub(crate) fn day_cost_us(&self, as_of: AsOf) -> u32 {
        if self.is_prepared(as_of) { 0 } else { self.manifest.dropped / 10 }
    }

    /// Returns the layers, oldest first.
    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the layers with their data of a day.
    pub(crate) fn layers_on<'a>(
        &'a self,
        day: &'a DayIndex,
    ) -> impl Iterator<Item = (&'a Layer, &'a LayerDay)> {
        self.layers.iter().zip(&day.layers)
    }

    /// Returns the layer in which the names of a label are visible.
    pub(crate) fn layer_of(&self, label: &str) -> &Layer {
        let (base, newer) = self.layers.split_first().expect("one layer or more");
        let holds = |layer: &&Layer| !layer.names.label_range(label).is_empty();
        newer.iter().rev().find(holds).unwrap_or(base)
    }

    /// Returns the layer of the doc at a place, and the doc.
    pub(crate) fn doc_at(&self, place: u32) -> (&Layer, u32) {
        let (layer, doc) = self.layer_at(place);
        (&self.layers[layer], doc)
    }

    /// As [`Index::doc_at`], but also returns the position of the layer.
    pub(crate) fn layer_at(&self, place: u32) -> (usize, u32) {
        let layer = self.layers.iter().rposition(|layer| layer.first_place <= place);
        let layer = layer.expect("the first place is 0");
        (layer, place - self.layers[layer].first_place)
    }

    /// Returns the layer of this index that holds the same generation as `other`, a layer of another index.
    pub(crate) fn layer_like(&self, other: &Layer) -> Option<&Layer> {
        self.layers.iter().find(|layer| Arc::ptr_eq(&layer.generation, &other.generation))
    }

    /// Returns the layer of the name at an ordinal among those of all layers, and its ordinal
    /// within the layer.
    pub(crate) fn name_at(&self, ordinal: u32) -> (&Layer, u32) {
        let layer = self.layers.iter().rfind(|layer| layer.first_ordinal <= ordinal);
        let layer = layer.expect("the first ordinal is 0");
        (layer, ordinal - layer.first_ordinal)
    }

    /// Returns the observation time of the newest list that was the first to report some drop under
    /// a TLD.
    pub(super) fn newest_list(&self, tld: &str) -> Option<UnixMs> {
        let newest = |layer: &Layer| layer.newest_list(layer.tlds.find(tld)?);
        self.layers.iter().filter_map(newest).max()
    }

    /// Returns the numbers of the TLDs in the layers.
    pub fn tlds(&self) -> &SharedTlds {
        &self.tlds
    }

    /// Returns the place of a canonical name among the docs of all layers; `None` for one that never
    /// dropped.
    pub(crate) fn place_of(&self, name: &str) -> Option<u32> {
        let (layer, ordinal) = self.find(name)?;
        let drops = &layer.drops_by_name;
        Some(layer.first_place + drops.doc(drops.place(ordinal)?))
    }

    /// Returns the layer in which a canonical name is visible, and its ordinal within the layer.
    pub(crate) fn find(&self, name: &str) -> Option<(&Layer, u32)> {
        self.layers.iter().rev().find_map(|layer| Some((layer, layer.names.find(name)?)))
    }

    /// Returns layer, ordinal and columns of `name`; `None` for an unknown name.
    pub(crate) fn find_row(&self, name: &DomainName) -> Option<(&Layer, u32, NameRow)> {
        let (layer, ordinal) = self.find(name.as_str())?;
        Some((layer, ordinal, layer.row(ordinal, layer.tlds.find(name.tld())?)))
    }
}

impl Layer {
    fn new(generation: Arc<Generation>) -> Layer {
        Layer {
            generation,
            hidden: None,
            lesser: None,
            first_place: 0,
            first_ordinal: 0,
            suffix_ranks: SuffixRanks::default(),
            expected: ExpectedColumn::default(),
            newest_lists: OnceLock::new(),
        }
    }

    /// Returns the places of drops among those of their suffix.
    pub(crate) fn suffix_ranks(&self) -> &SuffixRanks {
        &self.suffix_ranks
    }

    /// Returns the expected shares of names that are registered again, by doc.
    pub(crate) fn expected_taken(&self) -> &ExpectedColumn {
        &self.expected
    }

    /// Returns the columns that conditions on dropped names read beside the drop list.
    pub(crate) fn beside(&self) -> Beside<'_> {
        let Generation { tlds, records, facts, .. } = &*self.generation;
        let (suffix_ranks, expected) = (&self.suffix_ranks, &self.expected);
        Beside { tlds, records, suffix_ranks, expected, facts }
    }

    /// Returns the names that are not visible.
    pub(crate) fn hidden(&self) -> Option<&Hidden> {
        self.hidden.as_ref()
    }

    /// Returns the names to omit so that each visible label has one name, its best.
    pub(crate) fn lesser(&self) -> &HiddenPlaces {
        self.lesser.as_ref().unwrap_or(&self.generation.lesser)
    }

    /// Returns true if a name is visible.
    #[inline]
    pub(crate) fn shows_name(&self, ordinal: u32) -> bool {
        self.hidden.as_ref().is_none_or(|hidden| !hidden.has_name(ordinal))
    }

    /// Returns true if a doc is visible.
    #[inline]
    pub(crate) fn shows_doc(&self, doc: u32) -> bool {
        self.hidden.as_ref().is_none_or(|hidden| !hidden.has_doc(doc))
    }

    /// Returns the drops before the latest of each visible name, with the ordinal of the name and the number
    /// of its drops up to this one.
    pub(crate) fn earlier_drops(&self) -> impl Iterator<Item = (u32, u8, Released)> {
        let (mut last, mut count) = (u32::MAX, 0u8);
        let drops = self.drop_history.iter().map(move |(ordinal, drop)| {
            count = if ordinal == last { count.saturating_add(1) } else { 1 };
            last = ordinal;
            (ordinal, count, drop.released())
        });
        drops.filter(|&(ordinal, ..)| self.shows_name(ordinal))
    }

    /// Returns the doc of the latest drop of a name with earlier ones.
    pub(crate) fn latest_doc(&self, ordinal: u32) -> u32 {
        let place = self.drops_by_name.place(ordinal);
        self.drops_by_name.doc(place.expect("a name with earlier drops has a latest"))
    }

    /// Returns the place of a doc among those of all layers.
    pub(crate) fn place(&self, doc: u32) -> u32 {
        self.first_place + doc
    }

    /// Returns the ordinal of a name among those of all layers.
    pub(crate) fn shared_ordinal(&self, ordinal: u32) -> u32 {
        self.first_ordinal + ordinal
    }

    /// Returns every TLD by number, with its visible names.
    fn counted_tlds(&self) -> Vec<(&str, u32)> {
        let names = |tld| {
            let hidden = self.hidden.as_ref().map_or(0, |hidden| hidden.names_under(tld));
            self.by_tld.places(tld, 0..self.names.len()).len() as u32 - hidden
        };
        (0..).zip(self.tlds.names()).map(|(tld, name)| (name.as_str(), names(tld))).collect()
    }

    fn newest_list(&self, tld: u16) -> Option<UnixMs> {
        let newest = self
            .newest_lists
            .get_or_init(|| self.drops_by_rank.newest_lists(|doc| self.shows_doc(doc)));
        newest.get(usize::from(tld)).copied().flatten()
    }
}

impl Generation {
    /// Hides names whose label is also in `other`.
    fn hide_labels_of(&self, other: &Generation) -> Hidden {
        let pieces: Vec<Vec<(u32, u16)>> = (0..other.names.len().div_ceil(NAMES_PER_PIECE))
            .into_par_iter()
            .map(|at| at * NAMES_PER_PIECE..other.names.len().min((at + 1) * NAMES_PER_PIECE))
            .map(|names| self.names_with_labels(&other.names, names))
            .collect();
        let names = pieces.concat();
        let orders = NameOrders {
            names: &self.ranks,
            by_tld: &self.by_tld,
            idn: self.idn.orders(),
            dropped: &self.drops_by_name,
        };
        Hidden::new(&names, orders, self.tlds.len(), self.drops_by_rank.len())
    }

    /// Returns the ordinal and TLD number of each name of this layer whose label occurs in the
    /// range `names` of `others`. The label of the name before that range is skipped.
    fn names_with_labels(&self, others: &Names, names: Range<u32>) -> Vec<(u32, u16)> {
        let (mut found, mut last) = (Vec::new(), Vec::new());
        if let Some(before) = names.start.checked_sub(1) {
            let mut name = NameBuf::default();
            others.read(before, &mut name);
            name.label().as_bytes().clone_into(&mut last);
        }
        let next = |visited: VisitedName<'_>| ControlFlow::Continue(visited.ordinal + 1);
        others.for_each(
            [names],
            None,
            |_| true,
            |other| {
                if other.label != last.as_slice() {
                    other.label.clone_into(&mut last);
                    let same = self.names.label_range(text_of(other.label));
                    self.names.for_each(
                        [same],
                        None,
                        |_| true,
                        |name| {
                            found.push((name.ordinal, name.tld));
                            next(name)
                        },
                    );
                }
                next(other)
            },
        );
        found
    }

    /// Returns the columns of an ordinal whose TLD number is `tld`.
    pub(crate) fn row(&self, ordinal: u32, tld: u16) -> NameRow {
        let key = self.ranks.keys()[ordinal as usize];
        let drop = self
            .drops_by_name
            .place(ordinal)
            .map(|place| self.row_drop(self.drops_by_name.doc(place)));
        NameRow {
            dqs: dqs_of(key),
            length: length_of(key),
            tld,
            drop,
            registered: drop.is_none() && self.drops_by_name.registered(ordinal),
        }
    }

    pub(crate) fn row_drop(&self, doc: u32) -> RowDrop {
        let day = |raw| Day::from_raw(raw).expect("dropped names have days");
        RowDrop {
            doc,
            date: day(self.drops_by_rank.drop_date(doc)),
            release: Release::new(day(self.drops_by_rank.release(doc)), self.release_second(doc)),
            registered_again: doc >= self.drops_by_rank.len(),
        }
    }

    /// Returns the latest drop of a doc with the registration after it.
    pub(crate) fn latest_drop(&self, doc: u32) -> Released {
        let (on, returns) = (self.drops_by_rank.release(doc), self.drops_by_rank.returns());
        let on = Day::from_raw(on).expect("dropped names have days");
        Released { on, returned: returns.of(doc), late: returns.late(doc) }
    }

    fn release_second(&self, doc: u32) -> Option<SecondOfDay> {
        let seconds = self.drops_by_rank.release_seconds();
        // Few suffixes have seconds, and finding that of a doc takes several memory accesses.
        let has_any = !seconds.is_empty()
            && self.tlds.release_rule(self.drops_by_rank.tld(doc)).states_instants();
        if has_any { seconds.of(doc) } else { None }
    }

    /// Returns the second at which a doc is released; `None` if only its day is known.
    pub(crate) fn start_second(&self, doc: u32) -> Option<SecondOfDay> {
        let rule = self.tlds.release_rule(self.drops_by_rank.tld(doc));
        rule.second_on(self.row_drop(doc).release)
    }

    pub(crate) fn stage(&self, tld: u16, drop: &RowDrop, as_of: AsOf) -> Stage {
        let pending = self.tlds.pending_days(tld);
        Stage::on(as_of.today, drop.release.day, pending, as_of.catch_days)
    }

    /// Returns the lifecycle of a doc of the drops list.
    pub(crate) fn doc_lifecycle(&self, doc: u32, as_of: AsOf) -> Lifecycle {
        let tld = self.drops_by_rank.tld(doc);
        self.lifecycle(tld, &self.row_drop(doc), as_of)
    }

    pub(crate) fn lifecycle(&self, tld: u16, drop: &RowDrop, as_of: AsOf) -> Lifecycle {
        Lifecycle {
            dropped: drop.date,
            pending_delete: drop.release.day.plus(-i32::from(self.tlds.pending_days(tld))),
            release: drop.release,
            stage: self.stage(tld, drop, as_of),
            registered_again: drop.registered_again,
        }
    }

    pub(crate) fn status(&self, row: &NameRow, as_of: AsOf) -> Status {
        match row.drop {
            Some(drop) if drop.registered_again => Status::Registered,
            Some(drop) => match self.stage(row.tld, &drop, as_of) {
                Stage::Redemption => Status::Redemption,
                Stage::PendingDelete => Status::PendingDelete,
                Stage::Catchable | Stage::Released => Status::Available,
            },
            None if row.registered => Status::Registered,
            None => Status::Unknown,
        }
    }

    /// Returns the input from which the scorer explains the score of a dropped name.
    pub(crate) fn known<'a>(
        &'a self,
        doc: u32,
        tld: u16,
        buffer: &'a mut RecordBuffer,
    ) -> StoredScore<'a> {
        let ScoreRecord { label, spread, features } = self.records.get(doc, buffer);
        let tlds = match spread {
            u8::MAX => self.names.label_range(label).len() as u32,
            spread => spread.into(),
        };
        let spread = Spread { tlds, coverage: self.manifest.coverage };
        let features = Features::Brief(features, self.drops_by_rank.rank(doc));
        StoredScore { label, tld: self.tlds.name(tld), spread, features }
    }

    /// Returns the score of a dropped name without its other TLDs.
    pub(crate) fn base_dqs(&self, doc: u32) -> Dqs {
        with_row_buffers(|RowBuffers { record, scratch, .. }| {
            let known = self.known(doc, self.drops_by_rank.tld(doc), record);
            Scorer::shared().without_spread(known, scratch)
        })
    }
}

impl LayerDay {
    fn new(layer: &Layer, as_of: AsOf) -> LayerDay {
        let hidden = layer.hidden.as_ref().map_or(&[][..], Hidden::docs);
        let dates = layer.drops_by_rank.dates(hidden);
        let (stages, codes) = DayStages::new(dates, &layer.tlds, as_of);
        let dropped = StagedDrops::new(&layer.drops_by_name, layer.idn.orders(), &codes);
        LayerDay { as_of, stages, dropped, totals: Totals::default() }
    }
}

impl DayIndex {
    fn new(layers: &[Layer], as_of: AsOf) -> DayIndex {
        DayIndex {
            as_of,
            layers: layers.iter().map(|layer| LayerDay::new(layer, as_of)).collect(),
            tld_texts: Default::default(),
            facets: Default::default(),
            summary: OnceLock::new(),
        }
    }

    /// Returns the counts of a view without filters; `None` for several stages.
    pub(super) fn facets(&self, view: View) -> Option<&FacetCounts> {
        view.place().map(|place| &self.facets[place])
    }
}

/// Names per parallel task. This number is small in tests, so that small tables have several tasks.
const NAMES_PER_PIECE: u32 = if cfg!(debug_assertions) { 1 << 2 } else { 1 << 12 };
/// Cached days: today, and the day before or after around midnight.
const DAYS_KEPT: usize = 2;
/// Cached days of outcomes.
const OUTCOMES_KEPT: usize = 4;
