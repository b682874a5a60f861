//! Outcomes of dropped names (`data/docs/outcomes.md`): shares of names that were registered again, by
//! suffix, score, kind, words and length. Tables are counted in one walk over all drops, on first use,
//! and kept for a few days.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::columns::drop_history::EarlierDrop;
use crate::columns::properties::Property;
use crate::query::index::{Index, Layer};
use crate::query::summary::BANDS;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::kind::Kind;
use crate::vocab::name::{DomainName, to_unicode};
use crate::vocab::outcome::{Completeness, Evidence, Horizon, Released, Share, Verdict};

/// Days of releases that a table counts, up to the last whose horizon is over.
pub const WINDOW_DAYS: i32 = 365;
/// A group of fewer names has no row of its own.
pub const NAMES_MIN: u64 = 100;
/// Docs per parallel task.
const DOCS_PER_PIECE: u32 = 1 << 16;
/// Cached days.
const DAYS_KEPT: usize = 4;
/// Names with this number of words or more are one group.
const WORDS_MANY: u8 = 4;

/// Ten scores, from 0-9 to 90-100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScoreBand(u8);

impl ScoreBand {
    pub const NAMES: [&'static str; 10] =
        ["0-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "70-79", "80-89", "90-100"];

    pub fn of(dqs: Dqs) -> ScoreBand {
        ScoreBand((dqs.points() / 10).min(9))
    }

    /// Returns the band with a name of [`ScoreBand::NAMES`].
    pub fn parse(text: &str) -> Option<ScoreBand> {
        let place = ScoreBand::NAMES.iter().position(|name| *name == text)?;
        Some(ScoreBand(place as u8))
    }

    pub fn as_str(self) -> &'static str {
        ScoreBand::NAMES[usize::from(self.0)]
    }
}

/// A group of the names of a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    Suffix,
    Band(ScoreBand),
    BandAndKind(ScoreBand, Kind),
    Kind(Kind),
    /// Names with this number of words, at most [`WORDS_MANY`].
    Words(u8),
    /// Position in [`BANDS`].
    Length(u8),
}

/// The groups of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Groups {
    band: ScoreBand,
    kind: Kind,
    words: u8,
    length: u8,
}

impl Groups {
    fn all(self) -> [Group; 6] {
        let Groups { band, kind, words, length } = self;
        [
            Group::Suffix,
            Group::Band(band),
            Group::BandAndKind(band, kind),
            Group::Kind(kind),
            Group::Words(words),
            Group::Length(length),
        ]
    }
}

/// Names of a group whose horizon is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    names: u64,
    taken: u64,
    /// Names that lists show nothing about.
    unknown: u64,
}

/// Counts by horizon, in the order of [`Horizon::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    horizons: [Count; Horizon::ALL.len()],
    /// First and last release of a counted name.
    from: Day,
    to: Day,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { horizons: Default::default(), from: Day::MAX, to: Day::MIN }
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        for (all, more) in self.horizons.iter_mut().zip(&other.horizons) {
            all.names += more.names;
            all.taken += more.taken;
            all.unknown += more.unknown;
        }
        (self.from, self.to) = (self.from.min(other.from), self.to.max(other.to));
    }
}

/// Counts of one task, by TLD number and groups; unknown outcomes have no completeness.
type Tally = FxHashMap<(u16, Option<Completeness>, Groups), Counts>;

/// Outcomes as of a day.
#[derive(Debug)]
pub struct OutcomeTables {
    pub as_of: Day,
    /// By TLD number of the index, completeness and group.
    counts: FxHashMap<(u16, Completeness, Group), Counts>,
    /// Names that lists show nothing about, by TLD number and group.
    unknown: FxHashMap<(u16, Group), Counts>,
}

/// The share of a group within a horizon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct HorizonShare {
    pub horizon: Horizon,
    /// Names that were released, and whose horizon is over.
    pub names: u64,
    #[serde(flatten)]
    pub share: Share,
    /// Part of the names with a known outcome among all that were released, from 0 to 1.
    pub coverage: f64,
}

/// Outcomes of the names of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeRow {
    pub tld: u16,
    pub shown: Completeness,
    pub group: Group,
    /// Horizons that lists can show, ascending; one or more.
    pub shares: Vec<HorizonShare>,
    /// First and last release of a counted name.
    pub from: Day,
    pub to: Day,
}

impl OutcomeRow {
    /// Describes the row in a sentence: *Of 794 .nu names with a score of 40-49, 24 % were registered again
    /// within a day (21-27 %) and 36 % within a month.*
    pub fn sentence(&self, tld: &str) -> String {
        let kind = |kind: Kind| match kind {
            Kind::Word => "of one word",
            Kind::Words => "of several words",
            Kind::Name => "of people or places",
            Kind::Invented => "that are invented",
            Kind::Letters => "of letters",
            Kind::Number => "of digits",
            Kind::Mixed => "of digits and letters",
        };
        let group = match self.group {
            Group::Band(band) => format!(" with a score of {}", band.as_str()),
            Group::BandAndKind(band, of) => {
                format!(" {} with a score of {}", kind(of), band.as_str())
            }
            Group::Kind(of) => format!(" {}", kind(of)),
            Group::Suffix | Group::Words(_) | Group::Length(_) => String::new(),
        };
        let (first, more) = self.shares.split_first().expect("one or more");
        let at_least = if self.shown == Completeness::Complete { "" } else { "at least " };
        let within = |share: &HorizonShare| match share.horizon {
            Horizon::Day => "within a day",
            Horizon::Week => "within a week",
            Horizon::Month => "within a month",
            Horizon::Year => "within 400 days",
        };
        let Share { share, low, high, .. } = first.share;
        let mut text = format!(
            "Of {} .{} names{group}, {at_least}{} % were registered again {} ({}-{} %)",
            first.names,
            to_unicode(tld),
            percent(share),
            within(first),
            percent(low),
            percent(high)
        );
        let month = more.iter().find(|share| share.horizon == Horizon::Month).or(more.last());
        if let Some(more) = month {
            text += &format!(" and {at_least}{} % {}", percent(more.share.share), within(more));
        }
        text + "."
    }

    /// Returns the number of names of the first horizon.
    pub fn names(&self) -> u64 {
        self.shares.first().map_or(0, |share| share.names)
    }
}

/// The tables of the latest days that were asked for.
#[derive(Default)]
pub struct OutcomeCache {
    /// Newest first.
    days: ArcSwap<Vec<Arc<OutcomeTables>>>,
    making: Mutex<()>,
}

impl OutcomeCache {
    fn find(&self, as_of: Day) -> Option<Arc<OutcomeTables>> {
        self.days.load().iter().find(|tables| tables.as_of == as_of).cloned()
    }

    /// Returns the tables of a day, which one thread makes while others wait.
    fn get(&self, as_of: Day, make: impl FnOnce() -> OutcomeTables) -> Arc<OutcomeTables> {
        let found = || self.find(as_of);
        if let Some(tables) = found() {
            return tables;
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = found() {
            return tables;
        }
        let tables = Arc::new(make());
        let kept = self.days.load().iter().take(DAYS_KEPT - 1).cloned().collect::<Vec<_>>();
        self.days.store(Arc::new([vec![Arc::clone(&tables)], kept].concat()));
        tables
    }
}

/// Counts the drops of a layer.
struct Walk<'a> {
    layer: &'a Layer,
    /// Numbers of the index, by those of the layer.
    tlds: &'a [u16],
    /// By TLD number of the layer.
    evidence: Vec<Evidence<'a>>,
    as_of: Day,
}

impl Walk<'_> {
    /// Counts a drop unless its release is outside the windows of all horizons.
    fn count(&self, tally: &mut Tally, tld: u16, drop: &Released, groups: impl Fn() -> Groups) {
        let age = self.as_of.days_since(drop.on);
        if age < Horizon::Day.days() || age >= Horizon::Year.days() + WINDOW_DAYS {
            return;
        }
        let evidence = &self.evidence[usize::from(tld)];
        let (mut known, groups) = (None, groups());
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
            if known != Some(shown) {
                (counts.from, counts.to) = (counts.from.min(drop.on), counts.to.max(drop.on));
                known = Some(shown);
            }
        }
    }

    /// Counts the latest drops of some docs.
    fn latest(&self, docs: Range<u32>) -> Tally {
        let (mut tally, drops) = (Tally::default(), &self.layer.drops_by_rank);
        for doc in docs.filter(|&doc| self.layer.shows_doc(doc)) {
            let on = Day::from_raw(drops.release(doc)).expect("dropped names have days");
            let returns = drops.returns();
            let drop = Released { on, returned: returns.of(doc), late: returns.late(doc) };
            self.count(&mut tally, drops.tld(doc), &drop, || self.groups(doc));
        }
        tally
    }

    /// Counts the drops before the latest of each name.
    fn earlier(&self) -> Tally {
        let mut tally = Tally::default();
        for (ordinal, drop) in self.layer.drop_history.iter() {
            let Some(place) = self.layer.drops_by_name.place(ordinal) else { continue };
            if !self.layer.shows_name(ordinal) {
                continue;
            }
            let doc = self.layer.drops_by_name.doc(place);
            let tld = self.layer.drops_by_rank.tld(doc);
            self.count(&mut tally, tld, &released(&drop), || self.groups(doc));
        }
        tally
    }

    fn groups(&self, doc: u32) -> Groups {
        let drops = &self.layer.drops_by_rank;
        let properties = drops.properties();
        let value = |property| properties.column(property).value(doc);
        Groups {
            band: ScoreBand::of(drops.dqs(doc)),
            kind: properties.kind(doc),
            words: value(Property::Words).min(WORDS_MANY),
            length: length_band(value(Property::Length)),
        }
    }
}

fn length_band(length: u8) -> u8 {
    BANDS.iter().position(|&(_, longest)| length <= longest).unwrap_or_default() as u8
}

fn released(drop: &EarlierDrop) -> Released {
    Released { on: drop.release, returned: drop.returned, late: drop.late }
}

impl Index {
    /// Returns the outcomes of dropped names, as lists up to a day show it. Counted on first use: about a
    /// second for ten million drops.
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
        let mut tally = Tally::default();
        for (at, layer) in self.layers().iter().enumerate() {
            let evidence = layer.tlds.names().iter().map(|tld| self.evidence(tld, as_of)).collect();
            let walk = Walk { layer, tlds: self.tlds().of_layer(at), evidence, as_of };
            let dropped = layer.drops_by_rank.dropped();
            let pieces = (0..dropped.div_ceil(DOCS_PER_PIECE)).into_par_iter().map(|piece| {
                let first = piece * DOCS_PER_PIECE;
                walk.latest(first..dropped.min(first + DOCS_PER_PIECE))
            });
            let (latest, earlier) =
                rayon::join(|| pieces.reduce(Tally::default, merged), || walk.earlier());
            tally = merged(merged(tally, latest), earlier);
        }
        OutcomeTables::new(as_of, &tally)
    }

    /// Returns all drops of a name, newest first, with the registration after each; empty for a name that
    /// never dropped.
    pub fn drops_of(&self, name: &DomainName) -> Vec<Released> {
        let Some((layer, ordinal, row)) = self.find_row(name) else { return Vec::new() };
        let returns = layer.drops_by_rank.returns();
        let latest = row.drop.map(|drop| Released {
            on: drop.release.day,
            returned: returns.of(drop.doc),
            late: returns.late(drop.doc),
        });
        let earlier = layer.drop_history.before_latest(ordinal);
        latest.into_iter().chain(earlier.map(|drop| released(&drop))).collect()
    }

    /// Returns what lists show of the drops of a suffix.
    pub fn evidence(&self, tld: &str, as_of: Day) -> Evidence<'_> {
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

/// Returns a share in percent: without decimals from 10 % on.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        large if large >= 10.0 => format!("{large:.0}"),
        small => format!("{small:.1}"),
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

impl OutcomeTables {
    fn new(as_of: Day, tally: &Tally) -> OutcomeTables {
        let (mut counts, mut unknown) = (FxHashMap::default(), FxHashMap::default());
        for (&(tld, shown, groups), more) in tally {
            for group in groups.all() {
                let all: &mut Counts = match shown {
                    Some(shown) => counts.entry((tld, shown, group)).or_default(),
                    None => unknown.entry((tld, group)).or_default(),
                };
                all.add(more);
            }
        }
        // Lists without a single registration of a suffix do not cover it.
        let is_shown = |tld: u16, shown: Completeness| {
            shown == Completeness::Complete || {
                let all: Option<&Counts> = counts.get(&(tld, shown, Group::Suffix));
                all.is_some_and(|all| all.horizons.iter().any(|count| count.taken > 0))
            }
        };
        let hidden: Vec<_> = counts.keys().filter(|key| !is_shown(key.0, key.1)).copied().collect();
        for key @ (tld, _, group) in hidden {
            let lost = counts.remove(&key).unwrap_or_default();
            let all = unknown.entry((tld, group)).or_default();
            for (all, lost) in all.horizons.iter_mut().zip(lost.horizons) {
                all.unknown += lost.names;
            }
        }
        OutcomeTables { as_of, counts, unknown }
    }

    /// Returns the row of a group; `None` without names.
    pub fn row(&self, tld: u16, shown: Completeness, group: Group) -> Option<OutcomeRow> {
        let counts = self.counts.get(&(tld, shown, group))?;
        let all = |at: usize| -> u64 {
            let of = |shown| {
                let counts = self.counts.get(&(tld, shown, group));
                counts.map_or(0, |counts| counts.horizons[at].names)
            };
            let unknown = self.unknown.get(&(tld, group));
            Completeness::ALL.into_iter().map(of).sum::<u64>()
                + unknown.map_or(0, |unknown| unknown.horizons[at].unknown)
        };
        let share = |(at, horizon)| {
            let Counts { horizons, .. } = counts;
            let Count { names, taken, .. } = horizons[at];
            let share = Share::of(taken, names)?;
            let coverage = names as f64 / all(at) as f64;
            let coverage = (coverage * 10_000.0).round() / 10_000.0;
            Some(HorizonShare { horizon, names, share, coverage })
        };
        let shares: Vec<_> = Horizon::ALL.into_iter().enumerate().filter_map(share).collect();
        let (from, to) = (counts.from, counts.to);
        (!shares.is_empty()).then_some(OutcomeRow { tld, shown, group, shares, from, to })
    }

    /// Returns the row of a band and kind, by the most complete lists, or of a larger group if that has fewer
    /// than [`NAMES_MIN`] names: all kinds of the band, then the suffix.
    pub fn nearest(
        &self,
        tld: u16,
        band: Option<ScoreBand>,
        kind: Option<Kind>,
    ) -> Option<OutcomeRow> {
        let exact = match (band, kind) {
            (Some(band), Some(kind)) => Some(Group::BandAndKind(band, kind)),
            (None, Some(kind)) => Some(Group::Kind(kind)),
            _ => None,
        };
        let groups = exact.into_iter().chain(band.map(Group::Band)).chain([Group::Suffix]);
        let groups: Vec<Group> = groups.collect();
        Completeness::ALL.into_iter().find_map(|shown| {
            groups.iter().find_map(|&group| {
                self.row(tld, shown, group).filter(|row| row.names() >= NAMES_MIN)
            })
        })
    }

    /// Returns every row of a suffix with [`NAMES_MIN`] names or more, by completeness and group.
    pub fn rows_of(&self, tld: u16) -> Vec<OutcomeRow> {
        let mut keys: Vec<_> = self.counts.keys().filter(|key| key.0 == tld).copied().collect();
        keys.sort_unstable();
        let rows = keys.into_iter().filter_map(|(tld, shown, group)| self.row(tld, shown, group));
        rows.filter(|row| row.names() >= NAMES_MIN).collect()
    }
}
