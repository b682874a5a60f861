//! Outcomes of dropped names (`data/docs/outcomes.md`): how soon after its release a name was registered
//! again, and on which days lists show it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::day::Day;
use crate::named::{named_enum, parse_named};

/// Maximum days between two files of a source that shows every name. In a longer gap, a name may
/// come and go unseen.
pub const GAP_DAYS_MAX: i32 = 3;

named_enum! {
    /// Days after a release within which registrations are counted.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    pub enum Horizon {
        /// On the day of the release or the day after.
        #[serde(rename = "1")]
        Day = "1",
        #[serde(rename = "7")]
        Week = "7",
        #[serde(rename = "30")]
        Month = "30",
        /// Longer than a year, since names that were registered for one year and not renewed leave after
        /// that time.
        #[serde(rename = "400")]
        Year = "400",
    }
}

parse_named!(Horizon);

impl Horizon {
    /// Returns how a sentence names the time: *within a day*.
    pub fn words(self) -> &'static str {
        match self {
            Horizon::Day => "within a day",
            Horizon::Week => "within a week",
            Horizon::Month => "within a month",
            Horizon::Year => "within 400 days",
        }
    }

    pub const fn days(self) -> i32 {
        match self {
            Horizon::Day => 1,
            Horizon::Week => 7,
            Horizon::Month => 30,
            Horizon::Year => 400,
        }
    }
}

named_enum! {
    /// Completeness of the lists that show an outcome.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Completeness {
        /// Lists show every name of the suffix, each day: absence counts as well.
        Complete = "complete",
        /// Lists of new registrations, which omit some: shares are lower bounds.
        Partial = "partial",
        /// Only a later drop of the same name shows that it was registered: shares are lower bounds.
        LaterList = "later-list",
    }
}

parse_named!(Completeness);

/// When a name was registered again, relative to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReturnTime {
    /// Before the release: the holder renewed or restored the name.
    Renewed,
    Within(Horizon),
    /// After the longest horizon.
    Later,
    /// After the release, on a day that no list gives.
    Undated,
}

/// The registration of a name after a drop, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Return {
    pub time: ReturnTime,
    pub shown: Completeness,
}

const TIMES: [ReturnTime; 7] = [
    ReturnTime::Renewed,
    ReturnTime::Within(Horizon::Day),
    ReturnTime::Within(Horizon::Week),
    ReturnTime::Within(Horizon::Month),
    ReturnTime::Within(Horizon::Year),
    ReturnTime::Later,
    ReturnTime::Undated,
];
/// Bits of the place of a time in [`TIMES`], from 1; the place of [`Return::shown`] is above them.
const TIME_BITS: u8 = 3;

impl ReturnTime {
    /// Returns the time of a registration on `on` after a release on `release`.
    pub fn between(release: Day, on: Day) -> ReturnTime {
        let days = on.days_since(release);
        if days < 0 {
            return ReturnTime::Renewed;
        }
        let within = Horizon::ALL.into_iter().find(|horizon| days <= horizon.days());
        within.map_or(ReturnTime::Later, ReturnTime::Within)
    }

    /// Whether the name was registered again by the end of a horizon; `None` if no list gives the
    /// day.
    pub fn is_within(self, horizon: Horizon) -> Option<bool> {
        match self {
            ReturnTime::Within(within) => Some(within <= horizon),
            ReturnTime::Renewed | ReturnTime::Later => Some(false),
            ReturnTime::Undated => None,
        }
    }
}

impl Return {
    /// Returns the byte of a registration, or 0 for none.
    pub fn byte(of: Option<Return>) -> u8 {
        let Some(Return { time, shown }) = of else { return 0 };
        let place = TIMES.iter().position(|&other| other == time).unwrap_or_default() as u8 + 1;
        place | (shown as u8) << TIME_BITS
    }

    /// Returns the registration of a byte of [`Return::byte`]; `None` for 0 and other bytes.
    pub fn from_byte(byte: u8) -> Option<Return> {
        let place = byte & ((1 << TIME_BITS) - 1);
        let time = *TIMES.get(usize::from(place).checked_sub(1)?)?;
        let shown = *Completeness::ALL.get(usize::from(byte >> TIME_BITS))?;
        Some(Return { time, shown })
    }
}

/// A registration of a name after a drop, as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighted {
    /// The first day; `None` if the list only states that the name was registered by then.
    pub on: Option<Day>,
    /// The day of the list.
    pub observed: Day,
    pub shown: Completeness,
}

impl Sighted {
    /// Returns the better of two sightings of one registration: by a list of all names, with a day, and
    /// the earlier.
    #[must_use]
    pub fn or_better(self, other: Sighted) -> Sighted {
        let key = |it: &Sighted| (it.shown, it.on.is_none(), it.on, it.observed);
        if key(&other) < key(&self) { other } else { self }
    }

    /// Returns the registration relative to a release.
    pub fn after(self, release: Day) -> Return {
        let time = match self.on {
            Some(on) => ReturnTime::between(release, on),
            None if self.observed < release => ReturnTime::Renewed,
            None => ReturnTime::Undated,
        };
        Return { time, shown: self.shown }
    }

    /// Returns the day of the list if it does not follow from the registration: later than a day of it plus
    /// [`GAP_DAYS_MAX`].
    pub fn late(self) -> Option<Day> {
        let is_late = self.on.is_none_or(|on| self.observed.days_since(on) > GAP_DAYS_MAX);
        is_late.then_some(self.observed)
    }
}

/// Days on which all names of a suffix were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneDays {
    /// Suffix without a leading dot.
    pub suffix: String,
    pub days: Vec<Day>,
}

/// The periods in which a source showed every name of a suffix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenDays {
    /// Suffix without a leading dot.
    pub suffix: String,
    /// First and last day of each period without a gap above [`GAP_DAYS_MAX`], ascending.
    pub periods: Vec<(Day, Day)>,
}

/// Returns the periods of some days, in any order: gaps up to [`GAP_DAYS_MAX`] are part of a period.
pub fn periods_of(mut days: Vec<(Day, Day)>) -> Vec<(Day, Day)> {
    days.sort_unstable();
    let mut periods: Vec<(Day, Day)> = Vec::new();
    for (first, last) in days {
        match periods.last_mut() {
            Some((_, end)) if first.days_since(*end) <= GAP_DAYS_MAX => *end = last.max(*end),
            _ => periods.push((first, last)),
        }
    }
    periods
}

/// Returns true if one of `periods` has all days from `from` to `to`.
pub fn covers(periods: &[(Day, Day)], from: Day, to: Day) -> bool {
    let after = periods.partition_point(|&(first, _)| first <= from);
    after.checked_sub(1).is_some_and(|at| to <= periods[at].1)
}

/// The evidence of lists about the drops of a suffix, up to a day.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Periods in which lists showed every name of the suffix.
    pub complete: &'a [(Day, Day)],
    /// Periods with lists of new registrations.
    pub partial: &'a [(Day, Day)],
    /// The newest drop of the suffix: later drops of its names would have been listed up to this day.
    pub newest_drop: Day,
    /// Lists of later days do not count.
    pub as_of: Day,
}

/// A drop whose release is over, and the registration after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Released {
    pub on: Day,
    pub returned: Option<Return>,
    /// The day of the list that shows the registration, if it is late ([`Sighted::late`]).
    pub late: Option<Day>,
}

/// Outcome of a drop within a horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The horizon is not over.
    NotOver,
    /// The holder kept the name, so that it was never released.
    Renewed,
    /// No list shows it, or lists contradict each other.
    Unknown,
    /// Registered again within the horizon or not, by lists of this completeness.
    Known(Completeness, bool),
}

impl Evidence<'_> {
    /// Returns the registration, if a list up to the day shows it.
    fn known(&self, drop: &Released) -> Option<Return> {
        drop.returned.filter(|_| drop.late.is_none_or(|late| late <= self.as_of))
    }

    /// Returns what became of a drop within a horizon.
    pub fn verdict(&self, drop: &Released, horizon: Horizon) -> Verdict {
        let end = drop.on.plus(horizon.days());
        if end > self.as_of {
            return Verdict::NotOver;
        }
        let known = self.known(drop);
        let is_covered = covers(self.complete, drop.on, end);
        if let Some(Return { time: ReturnTime::Renewed, shown }) = known {
            // A list of all names does not have the name that another list has.
            let is_sure = shown == Completeness::Complete || !is_covered;
            return if is_sure { Verdict::Renewed } else { Verdict::Unknown };
        }
        let dated = known.and_then(|it| it.time.is_within(horizon));
        let is_taken = dated.unwrap_or_else(|| drop.late.is_some_and(|late| late <= end));
        if is_covered {
            return match known {
                Some(Return { shown: Completeness::Complete, .. }) | None => {
                    Verdict::Known(Completeness::Complete, is_taken)
                }
                Some(_) if is_taken => Verdict::Unknown,
                Some(_) => Verdict::Known(Completeness::Complete, false),
            };
        }
        if covers(self.partial, drop.on, end) {
            return Verdict::Known(Completeness::Partial, is_taken);
        }
        // Only after a year, a name that was not renewed is listed again.
        if horizon == Horizon::Year && end <= self.newest_drop {
            return Verdict::Known(Completeness::LaterList, is_taken);
        }
        Verdict::Unknown
    }
}

/// A share with its 95 % interval, by Wilson's method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Share {
    /// Names that were registered again.
    pub count: u64,
    /// `count` divided by all names of the row, from 0 to 1.
    pub share: f64,
    /// Bounds of the 95 % interval.
    pub low: f64,
    pub high: f64,
}

/// The 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Share {
    /// Returns the share of `count` in `all`; `None` for none.
    pub fn of(count: u64, all: u64) -> Option<Share> {
        if all == 0 {
            return None;
        }
        let (n, p) = (all as f64, count as f64 / all as f64);
        let spread = 1.0 + Z * Z / n;
        let middle = (p + Z * Z / (2.0 * n)) / spread;
        let half = Z / spread * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        // With no names, or all, rounding would leave the bound a little beside the share.
        let low = if count == 0 { 0.0 } else { (middle - half).max(0.0) };
        let high = if count == all { 1.0 } else { (middle + half).min(1.0) };
        let rounded = |share: f64| (share * 10_000.0).round() / 10_000.0;
        Some(Share { count, share: rounded(p), low: rounded(low), high: rounded(high) })
    }
}

/// How well a score orders outcomes: the share of pairs, one name that was registered again and one that was
/// not, in which the first has the higher score; equal scores count half.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Auc {
    /// From 0 to 1; .5 is chance.
    pub value: f64,
    /// Bounds of the 95 % interval (Hanley and McNeil, 1982).
    pub low: f64,
    pub high: f64,
}

impl Auc {
    /// A smaller number of names on either side says little.
    pub const NAMES_MIN: u64 = 300;

    /// Returns the order of names by ascending score, each with their number and how many of them were
    /// registered again; `None` with fewer than [`Auc::NAMES_MIN`] on either side.
    pub fn of(by_score: impl Iterator<Item = (u64, u64)>) -> Option<Auc> {
        let (mut pairs, mut taken_before, mut free_before) = (0.0, 0, 0);
        for (names, taken) in by_score {
            let free = names - taken;
            pairs += taken as f64 * (free_before as f64 + free as f64 / 2.0);
            (taken_before, free_before) = (taken_before + taken, free_before + free);
        }
        if taken_before.min(free_before) < Auc::NAMES_MIN {
            return None;
        }
        let (taken, free) = (taken_before as f64, free_before as f64);
        let value = pairs / (taken * free);
        let (both_taken, both_free) = (value / (2.0 - value), 2.0 * value * value / (1.0 + value));
        let variance = value * (1.0 - value)
            + (taken - 1.0) * (both_taken - value * value)
            + (free - 1.0) * (both_free - value * value);
        let half = Z * (variance / (taken * free)).max(0.0).sqrt();
        let rounded = |value: f64| (value.clamp(0.0, 1.0) * 1_000.0).round() / 1_000.0;
        Some(Auc { value: rounded(value), low: rounded(value - half), high: rounded(value + half) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    #[test]
    fn every_return_fits_a_byte() {
        for time in TIMES {
            for shown in Completeness::ALL {
                let of = Some(Return { time, shown });
                assert_eq!(Return::from_byte(Return::byte(of)), of);
            }
        }
        for none in [0, 1 << TIME_BITS, 255] {
            assert_eq!(Return::from_byte(none), None, "{none}");
        }
        assert_eq!(Return::byte(None), 0);
    }

    #[test]
    fn days_from_the_release_select_the_horizon() {
        let release = day("2026-03-01");
        let within = ReturnTime::Within;
        for (days, time) in [
            (-1, ReturnTime::Renewed),
            (0, within(Horizon::Day)),
            (1, within(Horizon::Day)),
            (2, within(Horizon::Week)),
            (7, within(Horizon::Week)),
            (8, within(Horizon::Month)),
            (31, within(Horizon::Year)),
            (400, within(Horizon::Year)),
            (401, ReturnTime::Later),
        ] {
            assert_eq!(ReturnTime::between(release, release.plus(days)), time, "{days}");
        }
    }

    #[test]
    fn the_list_of_all_names_then_the_earlier_day_wins() {
        let seen = |on: Option<&str>, shown| Sighted {
            on: on.map(day),
            observed: day("2026-05-01"),
            shown,
        };
        let order = [
            seen(Some("2026-02-03"), Completeness::Complete),
            seen(Some("2026-02-01"), Completeness::Partial),
            seen(Some("2026-02-02"), Completeness::Partial),
            seen(None, Completeness::Partial),
            seen(None, Completeness::LaterList),
        ];
        for (at, better) in order.iter().enumerate() {
            for worse in &order[at..] {
                assert_eq!(better.or_better(*worse), *better);
                assert_eq!(worse.or_better(*better), *better);
            }
        }
        assert_eq!(order[0].late(), Some(day("2026-05-01")));
        let same_day = Sighted { observed: day("2026-02-03"), ..order[0] };
        assert_eq!(same_day.late(), None);
        assert_eq!(order[3].after(day("2026-05-02")).time, ReturnTime::Renewed);
        assert_eq!(order[3].after(day("2026-05-01")).time, ReturnTime::Undated);
    }

    #[test]
    fn lists_decide_what_a_horizon_shows() {
        let periods = [(day("2024-01-01"), day("2024-12-31"))];
        let partial = [(day("2024-06-01"), day("2025-06-30"))];
        let evidence = |complete: bool, as_of: &str| Evidence {
            complete: if complete { &periods } else { &[] },
            partial: &partial,
            newest_drop: day("2026-01-01"),
            as_of: day(as_of),
        };
        let drop =
            |on: &str, of: Option<(ReturnTime, Completeness)>, late: Option<&str>| Released {
                on: day(on),
                returned: of.map(|(time, shown)| Return { time, shown }),
                late: late.map(day),
            };
        let week = ReturnTime::Within(Horizon::Week);
        let (all, some) = (Completeness::Complete, Completeness::Partial);
        let later = Completeness::LaterList;
        let judged = |evidence: Evidence<'_>, drop: Released| {
            Horizon::ALL.map(|horizon| match evidence.verdict(&drop, horizon) {
                Verdict::NotOver => "…".to_owned(),
                Verdict::Renewed => "renewed".to_owned(),
                Verdict::Unknown => "?".to_owned(),
                Verdict::Known(shown, taken) => format!("{shown} {taken}"),
            })
        };
        let (now, early) = ("2026-06-01", "2024-02-05");
        let cases = [
            // Every list of 2024 has all names, so absence counts, up to the end of the lists.
            (
                true,
                now,
                drop("2024-02-01", None, None),
                ["complete false", "complete false", "complete false", "later-list false"],
            ),
            (
                true,
                now,
                drop("2024-02-01", Some((week, all)), None),
                ["complete false", "complete true", "complete true", "later-list true"],
            ),
            (
                true,
                early,
                drop("2024-02-01", Some((week, all)), None),
                ["complete false", "…", "…", "…"],
            ),
            (true, now, drop("2024-02-01", Some((ReturnTime::Renewed, all)), None), ["renewed"; 4]),
            (
                true,
                now,
                drop("2024-02-01", Some((ReturnTime::Renewed, some)), None),
                ["?", "?", "?", "renewed"],
            ),
            // Lists contradict each other from the week on.
            (
                true,
                now,
                drop("2024-02-01", Some((week, some)), None),
                ["complete false", "?", "?", "later-list true"],
            ),
            // Outside the periods of all names, lists of new registrations give a lower bound.
            (
                false,
                now,
                drop("2024-07-01", Some((week, some)), None),
                ["partial false", "partial true", "partial true", "later-list true"],
            ),
            (false, now, drop("2024-05-31", None, None), ["?", "?", "?", "later-list false"]),
            (
                false,
                now,
                drop("2025-06-15", None, None),
                ["partial false", "partial false", "?", "…"],
            ),
            // A later drop shows a registration by its day, and nothing before that list.
            (
                false,
                now,
                drop("2023-01-01", Some((ReturnTime::Undated, later)), Some("2024-01-20")),
                ["?", "?", "?", "later-list true"],
            ),
            (
                false,
                now,
                drop("2023-01-01", Some((ReturnTime::Undated, later)), Some("2024-03-20")),
                ["?", "?", "?", "later-list false"],
            ),
            (
                false,
                now,
                drop("2025-03-01", None, None),
                ["partial false", "partial false", "partial false", "?"],
            ),
            (
                true,
                "2024-03-01",
                drop("2024-02-01", Some((week, some)), Some("2024-05-01")),
                ["complete false", "complete false", "…", "…"],
            ),
        ];
        for (at, (complete, as_of, drop, expected)) in cases.into_iter().enumerate() {
            assert_eq!(judged(evidence(complete, as_of), drop), expected, "{at}");
        }
    }

    #[test]
    fn short_gaps_do_not_end_a_period() {
        let days = ["2026-01-09", "2026-01-01", "2026-01-04", "2026-01-05"];
        let periods = periods_of(days.map(|it| (day(it), day(it))).to_vec());
        let expected = [("2026-01-01", "2026-01-05"), ("2026-01-09", "2026-01-09")]
            .map(|(a, b)| (day(a), day(b)));
        assert_eq!(periods, expected);
        assert!(covers(&periods, day("2026-01-02"), day("2026-01-05")));
        assert!(!covers(&periods, day("2026-01-02"), day("2026-01-06")));
        assert!(!covers(&periods, day("2025-12-31"), day("2026-01-05")));
        assert!(!covers(&periods, day("2026-01-06"), day("2026-01-09")));
    }

    #[test]
    fn the_order_of_scores_is_that_of_all_pairs() {
        let by_score = [(900, 20), (400, 40), (300, 90), (200, 110), (60, 50)];
        let names = by_score
            .iter()
            .enumerate()
            .flat_map(|(score, &(names, taken))| (0..names).map(move |at| (score, at < taken)));
        let names: Vec<(usize, bool)> = names.collect();
        let side =
            |taken: bool| names.iter().filter(move |name| name.1 == taken).map(|name| name.0);
        let (mut won, mut pairs) = (0.0, 0.0);
        for one in side(true) {
            for other in side(false) {
                won += if one > other {
                    1.0
                } else if one == other {
                    0.5
                } else {
                    0.0
                };
                pairs += 1.0;
            }
        }
        let found = Auc::of(by_score.into_iter()).expect("enough names");
        assert!((found.value - won / pairs).abs() < 0.0006, "{found:?} {}", won / pairs);
        // Computed with another implementation of the formula.
        assert_eq!((found.value, found.low, found.high), (0.861, 0.835, 0.888));
        assert_eq!(Auc::of([(1_000, 299)].into_iter()), None);
        let chance = Auc::of([(1_000, 400)].into_iter()).expect("enough names");
        assert_eq!(chance.value, 0.5);
    }

    #[test]
    fn intervals_are_those_of_wilson() {
        // Computed with another implementation: 994 of 53,926, and 5 of 87.
        let share = Share::of(994, 53_926).expect("some");
        assert_eq!((share.share, share.low, share.high), (0.0184, 0.0173, 0.0196));
        let few = Share::of(5, 87).expect("some");
        assert_eq!((few.share, few.low, few.high), (0.0575, 0.0248, 0.1276));
        let (none, all) = (Share::of(0, 10), Share::of(10, 10));
        assert_eq!(none.map(|it| (it.low, it.high)), Some((0.0, 0.2775)));
        assert_eq!(all.map(|it| (it.low, it.high)), Some((0.7225, 1.0)));
        assert_eq!(Share::of(0, 0), None);
    }
}
