//! Dossiers of names, and the facts that a watchlist shows.

use serde::Serialize;
use utoipa::ToSchema;

use crate::columns::drop_history::EarlierDrop;
use crate::filter::AsOf;
use crate::query::index::{Index, Layer, NameRow, RowBuffers, RowDrop, with_row_buffers};
use crate::query::rows::{PopularityFact, Status};
use crate::scorer::{Scored, Scorer, Signals};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::popularity::{ListEdition, ListedRank};
use crate::vocab::release_time::Release;
use crate::vocab::stage::Stage;

/// The drop of a name in the active pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub struct PipelineDrop {
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    pub dqs: Dqs,
    pub explanation: String,
    pub signals: Signals<'static>,
}

/// Dossier of a name (data/docs/api.md, Domain dossier, without feedback).
#[derive(Debug)]
pub struct Dossier<'a> {
    pub tld: &'a str,
    pub length: u8,
    pub dqs: Dqs,
    pub status: Status,
    /// Stage of the latest drop; `None` without one, and for a name that was registered again.
    pub stage: Option<Stage>,
    /// Date of the latest drop.
    pub drop_date: Option<Day>,
    /// Effective release of the latest drop.
    pub release: Option<Release>,
    /// The drops before it, newest first.
    pub earlier: Vec<EarlierDrop>,
    /// Effective release, as long as the name is not yet available.
    pub drop_predicted_at: Option<Day>,
    /// `None` when the name is not in the active pipeline.
    pub latest_drop: Option<PipelineDrop>,
    /// Ranks on popularity lists; empty for a name that never dropped.
    pub popularity: Vec<PopularityFact>,
}

/// Facts about a name that a watchlist shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameFacts {
    pub dqs: Dqs,
    /// Date of the latest drop, even if the name was registered again.
    pub latest_drop: Option<Day>,
    /// Effective release of that drop.
    pub release: Option<Release>,
    /// Stage of that drop; `None` for a name that never dropped or was registered again.
    pub stage: Option<Stage>,
    /// The name was registered again after its latest drop.
    pub registered_again: bool,
}

impl Index {
    /// Returns the dossier of `name`; `None` for an unknown name.
    pub fn dossier(&self, name: &DomainName, as_of: AsOf) -> Option<Dossier<'_>> {
        let (layer, ordinal, row) = self.find_row(name)?;
        let stage = row.drop.map(|drop| layer.stage(row.tld, &drop, as_of));
        let held = |drop: &RowDrop| !drop.registered_again;
        let active = row.drop.filter(held).filter(|_| stage != Some(Stage::Released));
        let before_release = matches!(stage, Some(Stage::Redemption | Stage::PendingDelete));
        Some(Dossier {
            tld: layer.tlds.name(row.tld),
            length: row.length,
            dqs: row.dqs,
            status: layer.status(&row, as_of),
            stage: stage.filter(|_| row.drop.is_some_and(|drop| held(&drop))),
            drop_date: row.drop.map(|drop| drop.date),
            release: row.drop.map(|drop| drop.release),
            earlier: layer.drop_history.before_latest(ordinal).collect(),
            drop_predicted_at: active.filter(|_| before_release).map(|drop| drop.release.day),
            latest_drop: active.map(|drop| layer.pipeline_drop(&row, &drop)),
            popularity: self.popularity(layer, &row),
        })
    }

    /// Returns the facts of `name`; `None` for an unknown name.
    pub fn facts(&self, name: &DomainName, as_of: AsOf) -> Option<NameFacts> {
        let (layer, _, row) = self.find_row(name)?;
        let stage = |drop: RowDrop| layer.stage(row.tld, &drop, as_of);
        Some(NameFacts {
            dqs: row.dqs,
            latest_drop: row.drop.map(|drop| drop.date),
            release: row.drop.map(|drop| drop.release),
            stage: row.drop.filter(|drop| !drop.registered_again).map(stage),
            registered_again: row.drop.is_some_and(|drop| drop.registered_again),
        })
    }

    /// Returns the release of the latest drop of a canonical name, with its second if a list states it.
    pub fn release_of(&self, name: &str) -> Option<Release> {
        let (layer, doc) = self.doc_at(self.place_of(name)?);
        Some(layer.row_drop(doc).release)
    }

    /// Returns the sentence that explains the score of a name; `None` if it never dropped.
    pub fn explanation(&self, name: &DomainName) -> Option<String> {
        let (layer, _, row) = self.find_row(name)?;
        let doc = row.drop?.doc;
        let explain = |RowBuffers { record, scratch, .. }: &mut RowBuffers| {
            Scorer::shared().explain(layer.known(doc, row.tld, record), scratch).to_owned()
        };
        Some(with_row_buffers(explain))
    }

    /// Returns the most popular name with this suffix, which is surely registered.
    pub fn popular_under(&self, suffix: &str) -> Option<DomainName> {
        let [base, ..] = self.layers() else { return None };
        base.typos.best_under(suffix)
    }

    /// Returns true if the corpus contains `name`.
    pub fn holds(&self, name: &DomainName) -> bool {
        self.find(name.as_str()).is_some()
    }

    /// Returns the ranks of a name on popularity lists.
    pub(super) fn popularity(&self, layer: &Layer, row: &NameRow) -> Vec<PopularityFact> {
        let Some(drop) = row.drop else { return Vec::new() };
        let lists = &self.manifest().popularity;
        let fact = |ListedRank { list, rank }| {
            let ListEdition { id, day, .. } =
                lists.iter().map(|used| &used.edition).find(|edition| edition.list == list)?;
            Some(PopularityFact { list, rank: rank.get(), date: *day, list_id: id.clone() })
        };
        layer.drops_by_rank.popularity().of(drop.doc).filter_map(fact).collect()
    }
}

impl Layer {
    fn pipeline_drop(&self, row: &NameRow, drop: &RowDrop) -> PipelineDrop {
        with_row_buffers(|buffers| {
            let RowBuffers { record, scratch, .. } = buffers;
            let known = self.known(drop.doc, row.tld, record);
            let Scored { signals, explanation, .. } =
                Scorer::shared().restore_owned(known, scratch);
            PipelineDrop { date: drop.date, dqs: row.dqs, explanation, signals }
        })
    }
}
