//! Counts the outcomes of dropped names ([`super::outcome_tables`]) in one walk over all drops, on first use.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::columns::properties::Property;
use crate::query::index::{Index, Layer};
use crate::query::outcome_months::{MONTHS_HORIZON, MonthTally, MonthWindow};
use crate::query::outcome_tables::{Groups, OutcomeRow, OutcomeTables, ScoreBand, Tally};
use crate::query::summary::length_band;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::kind::Kind;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::{Evidence, Horizon, Released, Verdict};

/// Days of releases that a table counts, up to the last whose horizon is over.
pub(super) const WINDOW_DAYS: i32 = 365;
/// Docs per parallel task.
const DOCS_PER_PIECE: u32 = 1 << 16;
/// Names with this number of words or more are one group.
const WORDS_MANY: u8 = 4;

/// Counts of one task.
#[derive(Default)]
struct Counted {
    groups: Tally,
    months: MonthTally,
}

impl Counted {
    fn merged(self, other: Counted) -> Counted {
        Counted {
            groups: merged(self.groups, other.groups),
            months: self.months.merged(other.months),
        }
    }
}

/// Counts the drops of a layer.
struct Walk<'a> {
    layer: &'a Layer,
    /// Numbers of the index, by those of the layer.
    tlds: &'a [u16],
    /// By TLD number of the layer.
    evidence: Vec<Evidence<'a>>,
    months: &'a MonthWindow,
    as_of: Day,
}

impl Walk<'_> {
    /// Counts a drop by month, if the month counts.
    fn count_month(&self, tally: &mut MonthTally, doc: u32, tld: u16, drop: &Released) {
        let Some(month) = self.months.find(drop.on) else { return };
        let verdict = self.evidence[usize::from(tld)].verdict(drop, MONTHS_HORIZON);
        if let Verdict::Known(shown, taken) = verdict {
            let dqs = self.layer.drops_by_rank.dqs(doc);
            tally.add(self.tlds[usize::from(tld)], shown, month, dqs, taken);
        }
    }

    /// Counts a drop unless its release is outside the windows of all horizons.
    fn count(&self, tally: &mut Tally, tld: u16, drop: &Released, groups: impl Fn() -> Groups) {
        let age = self.as_of.days_since(drop.on);
        if age < Horizon::Day.days() || age >= Horizon::Year.days() + WINDOW_DAYS {
            return;
        }
        let evidence = &self.evidence[usize::from(tld)];
        let groups = groups();
        for (at, horizon) in Horizon::ALL.into_iter().enumerate() {
            if age >= horizon.days() + WINDOW_DAYS {
                continue;
            }
            let (shown, taken) = match evidence.verdict(drop, horizon) {
                Verdict::NotOver => break,
                Verdict::Renewed => continue,
                Verdict::Unknown => (None, false),
                Verdict::Known(shown, taken) => (Some(shown), taken),
            };
            let key = (self.tlds[usize::from(tld)], shown, groups);
            let counts = tally.entry(key).or_default();
            let count = &mut counts.horizons[at];
            match shown {
                Some(_) => {
                    (count.names, count.taken) = (count.names + 1, count.taken + u64::from(taken))
                }
                None => count.unknown += 1,
            }
            (counts.from, counts.to) = (counts.from.min(drop.on), counts.to.max(drop.on));
        }
    }

    /// Counts the latest drops of some docs.
    fn latest(&self, docs: Range<u32>) -> Counted {
        let (mut tally, drops) = (Counted::default(), &self.layer.drops_by_rank);
        for doc in docs.filter(|&doc| self.layer.shows_doc(doc)) {
            let (drop, tld) = (self.layer.latest_drop(doc), drops.tld(doc));
            self.count(&mut tally.groups, tld, &drop, || self.groups(doc));
            self.count_month(&mut tally.months, doc, tld, &drop);
        }
        tally
    }

    /// Counts the drops before the latest of each name.
    fn earlier(&self) -> Counted {
        let mut tally = Counted::default();
        for (ordinal, _, drop) in self.layer.earlier_drops() {
            let doc = self.layer.latest_doc(ordinal);
            let tld = self.layer.drops_by_rank.tld(doc);
            self.count(&mut tally.groups, tld, &drop, || self.groups(doc));
            self.count_month(&mut tally.months, doc, tld, &drop);
        }
        tally
    }

    fn groups(&self, doc: u32) -> Groups {
        let drops = &self.layer.drops_by_rank;
        let properties = drops.properties();
        let value = |property| properties.column(property).value(doc);
        Groups {
            dqs: drops.dqs(doc),
            kind: properties.kind(doc),
            words: value(Property::Words).min(WORDS_MANY),
            length: length_band(value(Property::Length)),
        }
    }
}

/// Splits docs into pieces for all cores.
pub(super) fn pieces(docs: u32) -> impl IndexedParallelIterator<Item = Range<u32>> {
    (0..docs.div_ceil(DOCS_PER_PIECE)).into_par_iter().map(move |piece| {
        let first = piece * DOCS_PER_PIECE;
        first..docs.min(first + DOCS_PER_PIECE)
    })
}

impl Index {
    /// Returns the outcomes of dropped names, as lists up to a day show it. Counted on first use.
    pub fn outcomes(&self, as_of: Day) -> Arc<OutcomeTables> {
        self.outcomes.get(as_of, || budget::shared(|| self.count_outcomes(as_of)))
    }

    /// Returns the tables of a day if they were counted.
    pub fn counted_outcomes(&self, as_of: Day) -> Option<Arc<OutcomeTables>> {
        self.outcomes.find(as_of)
    }

    /// Returns what became of names like this one, as of today; `None` if lists show nothing, or the tables of
    /// the day are not counted yet.
    pub fn outcome_of(&self, tld: &str, dqs: Dqs, kind: Kind, today: Day) -> Option<OutcomeRow> {
        let number = self.tlds().find(tld)?;
        self.counted_outcomes(today)?.nearest(number, Some(ScoreBand::of(dqs)), Some(kind))
    }

    /// Estimates the time that counting takes, if the day is not cached.
    pub fn outcomes_cost_us(&self, as_of: Day) -> u32 {
        if self.outcomes.find(as_of).is_some() { 0 } else { self.manifest().dropped / 10 }
    }

    fn count_outcomes(&self, as_of: Day) -> OutcomeTables {
        let (mut tally, months) = (Counted::default(), MonthWindow::new(as_of));
        for (at, layer) in self.layers().iter().enumerate() {
            let evidence = self.evidence_of(layer, as_of);
            let walk =
                Walk { layer, tlds: self.tlds().of_layer(at), evidence, months: &months, as_of };
            let latest = pieces(layer.drops_by_rank.dropped()).map(|docs| walk.latest(docs));
            let (latest, earlier) =
                rayon::join(|| latest.reduce(Counted::default, Counted::merged), || walk.earlier());
            tally = tally.merged(latest).merged(earlier);
        }
        OutcomeTables::new(as_of, &tally.groups, tally.months.histories(&months))
    }

    /// Returns all drops of a name, newest first, with the registration after each; empty for a name that
    /// never dropped.
    pub fn drops_of(&self, name: &DomainName) -> Vec<Released> {
        let Some((layer, ordinal, row)) = self.find_row(name) else { return Vec::new() };
        let latest = row.drop.map(|drop| layer.latest_drop(drop.doc));
        let earlier = layer.drop_history.before_latest(ordinal);
        latest.into_iter().chain(earlier.map(|drop| drop.released())).collect()
    }

    /// Returns what lists show of the drops of each suffix of a layer, by TLD number.
    pub(crate) fn evidence_of(&self, layer: &Layer, as_of: Day) -> Vec<Evidence<'_>> {
        layer.tlds.names().iter().map(|tld| self.evidence(tld, as_of)).collect()
    }

    /// Returns what lists show of the drops of a suffix.
    fn evidence(&self, tld: &str, as_of: Day) -> Evidence<'_> {
        let seen = &self.manifest().seen;
        let complete = seen.complete.binary_search_by(|seen| seen.suffix.as_str().cmp(tld));
        Evidence {
            complete: complete.map_or(&[], |at| &seen.complete[at].periods),
            partial: &seen.partial,
            newest_drop: self.newest_list(tld).map_or(Day::MIN, |at| Day::nearest(at.instant())),
            as_of,
        }
    }
}

fn merged(mut one: Tally, mut other: Tally) -> Tally {
    if one.len() < other.len() {
        std::mem::swap(&mut one, &mut other);
    }
    for (key, counts) in other {
        one.entry(key).or_default().add(&counts);
    }
    one
}
