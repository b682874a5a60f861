//! Tables of the outcomes of dropped names (`data/docs/outcomes.md`): shares of names that were registered
//! again, by suffix, score, kind, words and length, and their words.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::query::outcome_months::{OutcomeHistory, SCORES};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::kind::Kind;
use crate::vocab::name::to_unicode;
use crate::vocab::outcome::{Auc, Completeness, Horizon, Share};

/// A group of fewer names has no row of its own.
pub const NAMES_MIN: u64 = 100;

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

    /// Returns all bands, lowest first.
    pub fn all() -> impl Iterator<Item = ScoreBand> {
        (0..ScoreBand::NAMES.len() as u8).map(ScoreBand)
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
    /// Names with this number of words; 4 counts those with more as well.
    Words(u8),
    /// Position in [`BANDS`](crate::query::summary::BANDS).
    Length(u8),
}

/// The groups of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Groups {
    pub dqs: Dqs,
    pub kind: Kind,
    pub words: u8,
    pub length: u8,
}

impl Groups {
    fn all(self) -> [Group; 6] {
        let Groups { dqs, kind, words, length } = self;
        let band = ScoreBand::of(dqs);
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
pub(super) struct Count {
    pub names: u64,
    pub taken: u64,
    /// Names that lists show nothing about.
    pub unknown: u64,
}

/// Counts by horizon, in the order of [`Horizon::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub horizons: [Count; Horizon::ALL.len()],
    /// First and last release of a counted name.
    pub from: Day,
    pub to: Day,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { horizons: Default::default(), from: Day::MAX, to: Day::MIN }
    }
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        for (all, more) in self.horizons.iter_mut().zip(&other.horizons) {
            all.names += more.names;
            all.taken += more.taken;
            all.unknown += more.unknown;
        }
        (self.from, self.to) = (self.from.min(other.from), self.to.max(other.to));
    }
}

/// Counts of one task, by TLD number and groups; unknown outcomes have no completeness.
pub(super) type Tally = FxHashMap<(u16, Option<Completeness>, Groups), Counts>;

/// Outcomes as of a day.
#[derive(Debug)]
pub struct OutcomeTables {
    pub as_of: Day,
    /// By TLD number of the index, completeness and group.
    counts: FxHashMap<(u16, Completeness, Group), Counts>,
    /// Names that lists show nothing about, by TLD number and group.
    unknown: FxHashMap<(u16, Group), Counts>,
    /// By TLD number and completeness, then by score and horizon.
    scores: FxHashMap<(u16, Completeness), Vec<[Count; Horizon::ALL.len()]>>,
    /// By TLD number and completeness.
    histories: FxHashMap<(u16, Completeness), OutcomeHistory>,
}

/// The share of a group within a horizon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HorizonShare {
    pub horizon: Horizon,
    /// Names that were released, and whose horizon is over.
    pub names: u64,
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
        let Share { share, low, high, .. } = first.share;
        let mut text = format!(
            "Of {} .{} names{group}, {at_least}{} % were registered again {} ({}-{} %)",
            first.names,
            to_unicode(tld),
            percent(share),
            first.horizon.words(),
            percent(low),
            percent(high)
        );
        let month = more.iter().find(|share| share.horizon == Horizon::Month).or(more.last());
        if let Some(more) = month {
            text +=
                &format!(" and {at_least}{} % {}", percent(more.share.share), more.horizon.words());
        }
        text + "."
    }

    /// Returns the number of names of the first horizon.
    pub fn names(&self) -> u64 {
        self.shares.first().map_or(0, |share| share.names)
    }
}

/// Returns a share in percent: without decimals from 10 % on.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        large if large >= 10.0 => format!("{large:.0}"),
        small => format!("{small:.1}"),
    }
}

impl OutcomeTables {
    pub(super) fn new(
        as_of: Day,
        tally: &Tally,
        histories: FxHashMap<(u16, Completeness), OutcomeHistory>,
    ) -> OutcomeTables {
        let (mut counts, mut unknown) = (FxHashMap::default(), FxHashMap::default());
        let mut scores = FxHashMap::default();
        for (&(tld, shown, groups), more) in tally {
            if let Some(shown) = shown {
                let by_score: &mut Vec<_> = scores.entry((tld, shown)).or_default();
                by_score.resize(SCORES, Default::default());
                let all: &mut [Count; 4] = &mut by_score[usize::from(groups.dqs.points())];
                for (all, more) in all.iter_mut().zip(&more.horizons) {
                    (all.names, all.taken) = (all.names + more.names, all.taken + more.taken);
                }
            }
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
        OutcomeTables { as_of, counts, unknown, scores, histories }
    }

    /// Returns how well the score orders the names of a suffix; `None` for too few.
    pub fn auc(&self, tld: u16, shown: Completeness, horizon: Horizon) -> Option<Auc> {
        let scores = self.scores.get(&(tld, shown))?.iter().map(|all| &all[horizon as usize]);
        Auc::of(scores.map(|count| (count.names, count.taken)))
    }

    /// Returns the outcomes of a suffix by month of release; `None` if no list shows them.
    pub fn history(&self, tld: u16, shown: Completeness) -> Option<&OutcomeHistory> {
        self.histories.get(&(tld, shown))
    }

    /// Returns all histories, with TLD number and completeness, in no order.
    pub fn histories(&self) -> impl Iterator<Item = (u16, Completeness, &OutcomeHistory)> {
        self.histories.iter().map(|(&(tld, shown), history)| (tld, shown, history))
    }

    /// Returns the suffixes with a row, most names first, with the lists that show most of them.
    pub fn suffixes(&self) -> Vec<(u16, Completeness)> {
        let rows = self.counts.keys().filter(|key| key.2 == Group::Suffix);
        let rows = rows.filter_map(|&(tld, shown, group)| self.row(tld, shown, group));
        let mut rows: Vec<_> = rows.filter(|row| row.names() >= NAMES_MIN).collect();
        rows.sort_by_key(|row| (row.shown, Reverse(row.names()), row.tld));
        rows.into_iter().map(|row| (row.tld, row.shown)).collect()
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
