//! Dossiers in, answers out. Immutable generations on disk ([`manifest`], [`build`]), verified
//! and loaded into memory we own ([`open`]), asked through [`Index`] and replaced whole
//! ([`live`]).

pub mod automaton;
pub mod build;
mod columns;
pub mod drops;
pub mod filter;
mod grams;
pub mod live;
pub mod manifest;
pub mod names;
pub mod open;
mod sealed;

use std::cell::RefCell;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::index::drops::{DropHit, Drops};
use crate::index::filter::{DropFilter, Moment, Pipeline, SearchFilter};
use crate::index::manifest::Manifest;
use crate::index::names::{NameRow, Names};
use crate::scorer::{Scored, Scorer, Scratch, Signals};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::SEARCH_TOTAL_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;

/// One generation in memory.
pub struct Index {
    manifest: Manifest,
    names: Names,
    drops: Drops,
    /// Pending-delete days by TLD number.
    pending: Vec<u16>,
}

/// A verified file did not answer: a bug or failing memory, never the client's fault.
#[derive(Debug, thiserror::Error)]
#[error("index generation {generation}: {source}")]
pub struct QueryError {
    generation: String,
    source: tantivy::TantivyError,
}

/// A row of the drops list (api.md, Drop).
#[derive(Debug, Serialize)]
pub struct DropRow {
    pub name: DomainName,
    pub tld: String,
    /// Characters of the label.
    pub length: u8,
    pub dqs: Dqs,
    pub explanation: String,
    pub signals: Signals,
}

/// A page of the drops list.
#[derive(Debug)]
pub struct DropsPage<'a> {
    /// The newest drop date not after today; today where there is none, and in the view `today`.
    pub date: Day,
    /// TLDs in the view before other filters, sorted.
    pub available_tlds: Vec<&'a str>,
    pub rows: Vec<DropRow>,
}

/// What a name's last drop was (api.md, latestDrop of search).
#[derive(Debug, Serialize)]
pub struct LatestDrop {
    pub date: Day,
    pub dqs: Dqs,
    pub explanation: String,
}

/// A search result (api.md).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchRow {
    pub domain: String,
    pub tld: String,
    pub length: u8,
    pub current_status: Status,
    pub latest_drop: Option<LatestDrop>,
}

/// A page of search results.
#[derive(Debug)]
pub struct SearchPage {
    /// Matches, at most [`SEARCH_TOTAL_MAX`].
    pub total: u32,
    /// True when there are more than `total`.
    pub capped: bool,
    pub rows: Vec<SearchRow>,
}

/// What a dossier says of a name in the pipeline (api.md, latestDrop of the dossier).
#[derive(Debug, Serialize)]
pub struct PipelineDrop {
    pub date: Day,
    pub dqs: Dqs,
    pub explanation: String,
    pub signals: Signals,
}

/// All that is known of one name (api.md, Domain dossier, but for feedback).
#[derive(Debug)]
pub struct Dossier {
    pub tld: String,
    pub length: u8,
    pub status: Status,
    /// The effective release while the name is not free yet.
    pub drop_predicted_at: Option<Day>,
    /// `None` when the name is not in the active pipeline.
    pub latest_drop: Option<PipelineDrop>,
}

/// What a watchlist shows of a name, in one look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameFacts {
    pub dqs: Dqs,
    /// The date of the latest drop, whatever came after it.
    pub latest_drop: Option<Day>,
    /// The stage of that drop and its effective release; `None` for a name that never dropped or
    /// was registered again.
    pub stage: Option<(Stage, Day)>,
    /// Registered again after its latest drop.
    pub registered_again: bool,
}

/// What `currentStatus` holds (decisions.md §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Registered,
    Redemption,
    PendingDelete,
    Available,
    Unknown,
}

thread_local! {
    /// Buffers of the scorer, one set a thread.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Index {
    /// What the generation says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The newest drop date not after `today`.
    pub fn newest_drop_date(&self, today: Day) -> Option<Day> {
        let dates = &self.manifest.drop_dates;
        let known = dates.partition_point(|&date| date <= today);
        known.checked_sub(1).map(|at| dates[at])
    }

    /// A page of the drops list, best first.
    ///
    /// # Errors
    /// [`QueryError`], which a verified generation does not give.
    pub fn drops(&self, filter: &DropFilter, moment: Moment) -> Result<DropsPage<'_>, QueryError> {
        let mut rows = Vec::new();
        self.for_each_drop(filter, moment, |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        let date = match filter.pipeline {
            Pipeline::Today => moment.today,
            _ => self.newest_drop_date(moment.today).unwrap_or(moment.today),
        };
        let numbers = self.drops.tlds_in(filter.pipeline, moment, &self.pending);
        Ok(DropsPage {
            date,
            available_tlds: numbers.iter().map(|&tld| self.tld(tld)).collect(),
            rows,
        })
    }

    /// Calls `visit` with the rows of [`Index::drops`], one by one, until it breaks.
    ///
    /// # Errors
    /// [`QueryError`], which a verified generation does not give.
    pub fn for_each_drop(
        &self,
        filter: &DropFilter,
        moment: Moment,
        mut visit: impl FnMut(DropRow) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        self.walk_drops(filter, moment, |place| visit(self.drop_at(place)))
    }

    fn walk_drops(
        &self,
        filter: &DropFilter,
        moment: Moment,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let (mut skip, mut left) = (filter.offset, filter.limit);
        self.drops
            .for_each(filter, moment, &self.manifest.tlds, &self.pending, |place| {
                if skip > 0 {
                    skip -= 1;
                    return ControlFlow::Continue(());
                }
                visit(place)?;
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .map_err(|source| {
                let generation = self.manifest.generation.to_string();
                QueryError { generation, source }
            })
    }

    /// The places of the rows of [`Index::drops`], for [`Index::drop_at`].
    ///
    /// # Errors
    /// [`QueryError`], which a verified generation does not give.
    pub fn drop_places(&self, filter: &DropFilter, moment: Moment) -> Result<Vec<u32>, QueryError> {
        let mut places = Vec::new();
        self.walk_drops(filter, moment, |place| {
            places.push(place);
            ControlFlow::Continue(())
        })?;
        Ok(places)
    }

    /// The row at a place that [`Index::drop_places`] of this generation gave.
    pub fn drop_at(&self, place: u32) -> DropRow {
        self.drop_row(&self.drops.hit(place))
    }

    /// A page of names that start with a prefix: whole matches first, then best first.
    pub fn search(&self, filter: &SearchFilter, moment: Moment) -> SearchPage {
        let ranked = self.names.search(filter, moment, &self.manifest.tlds, &self.pending);
        let mut text = Vec::new();
        let rows = ranked.ordinals.iter().map(|&ordinal| {
            self.names.name_into(ordinal, &mut text);
            self.search_row(&text, self.names.row(ordinal), moment)
        });
        SearchPage {
            total: ranked.total.min(SEARCH_TOTAL_MAX),
            capped: ranked.total > SEARCH_TOTAL_MAX,
            rows: rows.collect(),
        }
    }

    /// What is known of `name`; `None` for a name never seen.
    pub fn dossier(&self, name: &DomainName, moment: Moment) -> Option<Dossier> {
        let row = self.names.row(self.names.find(name.as_str())?);
        let stage = self.stage(&row, moment);
        let in_pipeline =
            !row.registered_again && stage.is_some_and(|stage| stage != Stage::Released);
        let before_release = matches!(stage, Some(Stage::Redemption | Stage::PendingDelete))
            && !row.registered_again;
        let latest_drop = row.drop.filter(|_| in_pipeline).map(|(date, _)| {
            let Scored { dqs, signals, explanation } = self.score(name);
            PipelineDrop { date, dqs, explanation, signals }
        });
        Some(Dossier {
            tld: self.tld(row.tld).to_owned(),
            length: row.length,
            status: self.status(&row, moment),
            drop_predicted_at: row.drop.filter(|_| before_release).map(|(_, release)| release),
            latest_drop,
        })
    }

    /// The facts of `name`; `None` for a name never seen.
    pub fn facts(&self, name: &DomainName, moment: Moment) -> Option<NameFacts> {
        let row = self.names.row(self.names.find(name.as_str())?);
        let stage = self.stage(&row, moment).filter(|_| !row.registered_again);
        Some(NameFacts {
            dqs: row.dqs,
            latest_drop: row.drop.map(|(date, _)| date),
            stage: stage.zip(row.drop.map(|(_, release)| release)),
            registered_again: row.registered_again,
        })
    }

    /// Whether `name` was ever seen.
    pub fn holds(&self, name: &DomainName) -> bool {
        self.names.find(name.as_str()).is_some()
    }

    /// How many rows a search looks at, with what its answer costs in rows: what tells a query that can be answered at once from one that has to leave the async threads.
    pub fn search_cost(&self, filter: &SearchFilter) -> u32 {
        self.names.width(filter).saturating_add(filter.limit.saturating_mul(COST_OF_A_ROW))
    }

    /// See [`Index::search_cost`].
    pub fn drops_cost(&self, filter: &DropFilter, moment: Moment) -> u32 {
        let rows = filter.limit.saturating_mul(COST_OF_A_ROW).saturating_add(filter.offset);
        let plain = filter.pipeline == Pipeline::Active
            && filter.contains.is_none()
            && filter.narrow
                == filter::Narrow { min_dqs: filter.narrow.min_dqs, ..Default::default() }
            && self.drops.knows_tlds_in(filter.pipeline, moment);
        if plain { rows } else { rows.saturating_add(self.drops.count()) }
    }

    fn tld(&self, number: u16) -> &str {
        &self.manifest.tlds[usize::from(number)]
    }

    fn stage(&self, row: &NameRow, moment: Moment) -> Option<Stage> {
        let pending = self.pending[usize::from(row.tld)];
        let (_, release) = row.drop?;
        Some(Stage::on(moment.today, release, pending, moment.catch_days))
    }

    fn status(&self, row: &NameRow, moment: Moment) -> Status {
        match self.stage(row, moment) {
            _ if row.registered_again => Status::Registered,
            Some(Stage::Redemption) => Status::Redemption,
            Some(Stage::PendingDelete) => Status::PendingDelete,
            Some(Stage::Catchable | Stage::Released) => Status::Available,
            None if row.registered => Status::Registered,
            None => Status::Unknown,
        }
    }

    fn score(&self, name: &DomainName) -> Scored {
        let spread = self.names.tld_spread(name.label()).max(1);
        SCRATCH.with_borrow_mut(|scratch| Scorer::shared().score(name, spread, scratch))
    }

    fn name(&self, text: &[u8], tld: u16) -> DomainName {
        let label_len = text.len().saturating_sub(self.tld(tld).len() + 1);
        DomainName::from_stored(text, u8::try_from(label_len).unwrap_or(0))
            .expect("a verified generation holds names that were parsed")
    }

    fn drop_row(&self, hit: &DropHit<'_>) -> DropRow {
        let name = self.name(hit.name.as_bytes(), hit.tld);
        let Scored { dqs, signals, explanation } = self.score(&name);
        debug_assert_eq!(dqs, hit.dqs, "{name}: the index and the scorer agree");
        let tld = self.tld(hit.tld).to_owned();
        DropRow { name, tld, length: hit.length, dqs: hit.dqs, explanation, signals }
    }

    fn search_row(&self, text: &[u8], row: NameRow, moment: Moment) -> SearchRow {
        let name = self.name(text, row.tld);
        let latest_drop = row.drop.map(|(date, _)| LatestDrop {
            date,
            dqs: row.dqs,
            explanation: self.score(&name).explanation,
        });
        SearchRow {
            domain: name.as_str().to_owned(),
            tld: self.tld(row.tld).to_owned(),
            length: row.length,
            current_status: self.status(&row, moment),
            latest_drop,
        }
    }
}

/// Looking at this many rows costs about what shaping one row of an answer does.
const COST_OF_A_ROW: u32 = 2_000;
