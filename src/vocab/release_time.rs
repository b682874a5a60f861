//! The hour at which registries release names. Input: a suffix, the day of release, and the instant that a
//! list states, if any. Output: the instant, how sure it is, and how long the run takes.
//!
//! Rules by suffix are compiled in (`data/release-times.csv`); `data/docs/release-times.md` has their
//! sources. Local times are resolved with the time zone database for the day in question.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU16;
use std::sync::LazyLock;

use chrono::{
    DateTime, Days, LocalResult, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike, Utc,
};
use chrono_tz::Tz;
use compact_str::CompactString;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::compiled::{self, BadTable};
use crate::day::{Day, RelativeDayError};
use crate::named::{named_enum, parse_named};
use crate::time::UnixMs;

named_enum! {
    /// How sure the instant of a release is, the surest first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    #[schema(as = ReleaseCertainty)]
    pub enum Certainty {
        /// The registry states the instant of this name.
        Exact = "exact",
        /// The registry states when the run of the day starts.
        Hour = "hour",
        /// Start and length of the run are known from observation.
        Window = "window",
        /// Only the day is known.
        Day = "day",
        /// The day follows from the life cycle.
        Estimate = "estimate",
    }
}

parse_named!(Certainty);

impl Certainty {
    /// Returns true if a release has an hour.
    pub fn has_hour(self) -> bool {
        self <= Certainty::Window
    }
}

/// The release of a name as lists state it: its day (UTC), and its second if a list has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    pub day: Day,
    second: Option<SecondOfDay>,
}

/// Rejects a text that is neither a day nor an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{RelativeDayError}, or an instant such as 2026-11-27T14:00Z")]
pub struct ReleaseError;

/// Seconds since the start of a day (UTC). Invariant: below 86,400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct SecondOfDay(u32);

impl From<SecondOfDay> for u32 {
    fn from(second: SecondOfDay) -> u32 {
        second.0
    }
}

impl TryFrom<u32> for SecondOfDay {
    type Error = &'static str;

    fn try_from(second: u32) -> Result<SecondOfDay, &'static str> {
        SecondOfDay::new(second).ok_or("no second of a day")
    }
}

impl SecondOfDay {
    const END: u32 = 24 * 60 * 60;
    pub const FIRST: SecondOfDay = SecondOfDay(0);
    pub const LAST: SecondOfDay = SecondOfDay(SecondOfDay::END - 1);

    /// Returns `None` if no day has the second.
    pub fn new(second: u32) -> Option<SecondOfDay> {
        (second < SecondOfDay::END).then_some(SecondOfDay(second))
    }

    pub fn get(self) -> u32 {
        self.0
    }
}

impl Release {
    pub fn new(day: Day, second: Option<SecondOfDay>) -> Release {
        Release { day, second }
    }

    /// Returns `None` if the instant is not on a [`Day`].
    pub fn at(instant: DateTime<Utc>) -> Option<Release> {
        let second = SecondOfDay::new(instant.time().num_seconds_from_midnight());
        Some(Release { day: Day::from_instant(instant)?, second })
    }

    /// Parses a day as [`Day::parse_from`] does, or an instant in RFC 3339, which may omit its seconds.
    /// Fractions of a second are ignored.
    ///
    /// # Errors
    /// The text is neither, or its day is out of range.
    pub fn parse_from(text: &str, today: Day) -> Result<Release, ReleaseError> {
        const MINUTES: usize = "2026-11-27T14:00".len();
        if let Ok(day) = Day::parse_from(text, today) {
            return Ok(day.into());
        }
        // Forms encode a space as `+`, so an unescaped `+` of an offset arrives as a space.
        let mut text = text.replace(' ', "+");
        if text.is_char_boundary(MINUTES) && text.as_bytes().get(MINUTES) != Some(&b':') {
            text.insert_str(MINUTES, ":00");
        }
        let instant = DateTime::parse_from_rfc3339(&text).map_err(|_| ReleaseError)?;
        Release::at(instant.to_utc()).ok_or(ReleaseError)
    }

    pub fn second(self) -> Option<SecondOfDay> {
        self.second
    }

    /// Returns the instant, if a list states it.
    pub fn instant(self) -> Option<UnixMs> {
        let SecondOfDay(second) = self.second?;
        Some(UnixMs::from_instant(self.day.start() + TimeDelta::seconds(second.into())))
    }

    /// Joins two statements about one release, of which `self` is the newer. A day alone, which may be off
    /// by one, does not move an instant.
    pub fn joined(self, older: Release) -> Release {
        let is_near = self.day.days_since(older.day).abs() <= 1;
        if self.second.is_none() && older.second.is_some() && is_near { older } else { self }
    }
}

/// As RFC 3339 (UTC), or as a date without a second.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instant() {
            Some(at) => write!(f, "{}", at.instant().format("%Y-%m-%dT%H:%M:%SZ")),
            None => write!(f, "{}", self.day),
        }
    }
}

impl From<Day> for Release {
    fn from(day: Day) -> Release {
        Release { day, second: None }
    }
}

/// When a name is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseTime {
    /// Its start; `None` unless the certainty has an hour.
    pub at: Option<UnixMs>,
    pub certainty: Certainty,
    /// Minutes from the start, or from the start of the day, within which the name is released.
    pub window_minutes: u16,
}

impl ReleaseTime {
    /// Returns when a name of `suffix` is released.
    pub fn of(suffix: &str, release: Release) -> ReleaseTime {
        ReleaseRules::compiled().of(suffix).on(release)
    }

    /// Returns the seconds to an instant from the release, or from the start of the run if the registry does
    /// not state the instant of each name; `None` without an hour, or before it.
    pub fn seconds_to(&self, later: UnixMs) -> Option<u64> {
        Some(later.get().checked_sub(self.at?.get())? / 1_000)
    }

    /// Returns the hour in words; `None` if only the day is known.
    pub fn words(&self) -> Option<String> {
        let at = self.at?.instant();
        Some(match self.certainty {
            Certainty::Exact => format!("at {}", at.format("%H:%M:%S UTC")),
            Certainty::Hour => format!("from {}", at.format("%H:%M UTC")),
            _ => format!("usual hour {}", at.format("%H:%M UTC")),
        })
    }
}

/// The rule of a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseRule {
    /// Local time at which the run starts.
    start: Option<NaiveTime>,
    zone: Tz,
    certainty: Certainty,
    window_minutes: u16,
}

/// The rules of all suffixes.
#[derive(Debug)]
pub struct ReleaseRules {
    by_suffix: HashMap<CompactString, ReleaseRule>,
    other: ReleaseRule,
}

/// A row of the table.
#[derive(Deserialize)]
struct Row {
    suffix: CompactString,
    start: String,
    zone: String,
    certainty: String,
    window_minutes: NonZeroU16,
    source: String,
}

impl Row {
    fn rule(self) -> Result<(CompactString, ReleaseRule), &'static str> {
        let start = match self.start.as_str() {
            "" => None,
            text => Some(
                NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| "the start is not HH:MM")?,
            ),
        };
        let certainty: Certainty =
            self.certainty.parse().map_err(|_| "the certainty is unknown")?;
        if self.source.is_empty() || start.is_some() && !certainty.has_hour() {
            return Err("no source, or an hour that is not certain");
        }
        let zone = self.zone.parse().map_err(|_| "the zone is unknown")?;
        let window_minutes = self.window_minutes.get();
        Ok((self.suffix, ReleaseRule { start, zone, certainty, window_minutes }))
    }
}

impl ReleaseRules {
    /// Returns the compiled-in rules.
    pub fn compiled() -> &'static ReleaseRules {
        static RULES: LazyLock<ReleaseRules> = LazyLock::new(|| {
            ReleaseRules::parse(include_str!("../../data/release-times.csv"))
                .expect("data/release-times.csv is checked by a test")
        });
        &RULES
    }

    fn parse(text: &str) -> Result<ReleaseRules, BadTable> {
        let mut by_suffix = HashMap::new();
        compiled::table(text, |row: Row| {
            let (suffix, rule) = row.rule()?;
            match by_suffix.insert(suffix, rule) {
                None => Ok(()),
                Some(_) => Err("the suffix occurs twice"),
            }
        })?;
        let missing = || BadTable::Row { line: 1, what: "no rule for other suffixes".to_owned() };
        let other = by_suffix.remove("*").ok_or_else(missing)?;
        Ok(ReleaseRules { by_suffix, other })
    }

    /// Returns the rule of a suffix: that of the longest suffix with a rule.
    pub fn of(&self, suffix: &str) -> ReleaseRule {
        let mut rest = Some(suffix);
        while let Some(suffix) = rest {
            if let Some(&rule) = self.by_suffix.get(suffix) {
                return rule;
            }
            rest = suffix.split_once('.').map(|(_, shorter)| shorter);
        }
        self.other
    }
}

impl ReleaseRule {
    /// Returns true if the registry states the instant of each name.
    pub fn states_instants(&self) -> bool {
        self.start.is_none() && self.certainty.has_hour()
    }

    /// Returns the release without a second that the registry does not state.
    pub fn stated(&self, release: Release) -> Release {
        if self.states_instants() { release } else { release.day.into() }
    }

    /// Returns the release at an hour of a day in the zone of the registry; `None` for no such hour.
    pub fn at_local_hour(&self, day: Day, hour: u32) -> Option<Release> {
        Release::at(in_zone(day.date().and_hms_opt(hour, 0, 0)?, self.zone))
    }

    /// Returns when a name is released.
    pub fn on(&self, release: Release) -> ReleaseTime {
        let at = match self.start {
            Some(start) => self.instant(release.day, start),
            None => self.stated(release).instant(),
        };
        let ReleaseRule { certainty, window_minutes, .. } = *self;
        match at {
            Some(_) => ReleaseTime { at, certainty, window_minutes },
            None => self.untimed(),
        }
    }

    /// Returns the second of the day at which a name is released; `None` if only the day is known.
    pub fn second_on(&self, release: Release) -> Option<SecondOfDay> {
        self.on(release).at.and_then(|at| Release::at(at.instant())?.second)
    }

    fn untimed(&self) -> ReleaseTime {
        // Without its instant, a name of a registry that states instants has a day alone.
        let (certainty, window_minutes) = match self.certainty {
            Certainty::Estimate => (Certainty::Estimate, self.window_minutes),
            _ => (Certainty::Day, MINUTES_OF_DAY),
        };
        ReleaseTime { at: None, certainty, window_minutes }
    }

    /// Returns the instant with this local time that is on a UTC day. A list has many names of one day, and
    /// searching the time zone database takes longer than all else in a row, so each thread keeps results.
    fn instant(&self, day: Day, start: NaiveTime) -> Option<UnixMs> {
        thread_local! {
            static KEPT: RefCell<FxHashMap<(Tz, NaiveTime, Day), Option<UnixMs>>> = RefCell::default();
        }
        KEPT.with_borrow_mut(|kept| {
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            *kept.entry((self.zone, start, day)).or_insert_with(|| self.resolve(day, start))
        })
    }

    fn resolve(&self, day: Day, start: NaiveTime) -> Option<UnixMs> {
        let date = day.date();
        let near =
            [Some(date), date.checked_sub_days(Days::new(1)), date.checked_add_days(Days::new(1))];
        let instants =
            near.into_iter().flatten().map(|date| in_zone(date.and_time(start), self.zone));
        let on_day = |at: &DateTime<Utc>| Day::from_instant(*at) == Some(day);
        instants.into_iter().find(on_day).map(UnixMs::from_instant)
    }
}

const MINUTES_OF_DAY: u16 = 24 * 60;
/// Maximum results that a thread keeps.
const KEPT_MAX: usize = 4_096;

/// Returns the instant of a local time: the earlier of two, and the first after a gap.
fn in_zone(local: NaiveDateTime, zone: Tz) -> DateTime<Utc> {
    let mut at = local;
    loop {
        match zone.from_local_datetime(&at) {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => return at.to_utc(),
            // Gaps end at a whole minute.
            LocalResult::None => at += TimeDelta::minutes(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect(text)
    }

    #[track_caller]
    fn at(suffix: &str, on: &str) -> (Option<String>, &'static str, u16) {
        let ReleaseTime { at, certainty, window_minutes } = ReleaseTime::of(suffix, day(on).into());
        (at.map(|at| at.to_string()), certainty.as_str(), window_minutes)
    }

    #[test]
    fn every_row_has_an_hour_or_none() {
        let rules = ReleaseRules::compiled();
        assert!(rules.by_suffix.len() > 30);
        for (suffix, rule) in &rules.by_suffix {
            for days in 0..5 * 366 {
                let day = day("2026-01-01").plus(days);
                let release = rule.on(day.into());
                assert_eq!(release.at.is_some(), release.certainty.has_hour(), "{suffix} {day}");
                let is_on_day = |at: UnixMs| Day::from_instant(at.instant()) == Some(day);
                assert!(release.at.is_none_or(is_on_day), "{suffix} {day}");
            }
        }
    }

    /// The days on which the clocks change.
    #[test]
    fn hours_follow_the_clocks_of_their_zone() {
        let hour = |at: &str| Some(at.to_owned());
        for (suffix, on, expected) in [
            ("com", "2027-03-13", "2027-03-13T19:00:00.000Z"),
            ("com", "2027-03-14", "2027-03-14T18:00:00.000Z"),
            ("com", "2027-11-06", "2027-11-06T18:00:00.000Z"),
            ("com", "2027-11-07", "2027-11-07T19:00:00.000Z"),
            ("se", "2027-03-27", "2027-03-27T04:00:00.000Z"),
            ("se", "2027-03-28", "2027-03-28T04:00:00.000Z"),
            ("nu", "2027-10-31", "2027-10-31T04:00:00.000Z"),
            ("net.au", "2027-10-03", "2027-10-03T03:00:00.000Z"),
        ] {
            assert_eq!(at(suffix, on).0, hour(expected), "{suffix} {on}");
        }
        assert_eq!(at("com", "2026-11-28").1, "window");
        assert_eq!(at("fr", "2026-11-28"), (None, "day", 1_440));
        assert_eq!(at("co.uk", "2026-11-28"), (None, "day", 1_440), "without its instant");
        assert_eq!(at("museum", "2026-11-28"), (None, "estimate", 4_320));
    }

    #[test]
    fn gaps_and_doubled_hours_have_one_instant() {
        let berlin: Tz = "Europe/Berlin".parse().expect("a zone");
        let at = |text: &str| in_zone(text.parse().expect("a local time"), berlin).to_rfc3339();
        assert_eq!(at("2027-03-28T02:30:00"), "2027-03-28T01:00:00+00:00", "the end of the gap");
        assert_eq!(at("2027-10-31T02:30:00"), "2027-10-31T00:30:00+00:00", "the first of two");
    }

    #[test]
    fn a_stated_instant_counts_where_the_registry_states_instants() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().expect("an instant");
        let release = Release::at(at("2026-11-28T11:31:21.5Z")).expect("a day");
        let stated = UnixMs::from_instant(at("2026-11-28T11:31:21Z"));
        for suffix in ["uk", "org.uk", "it"] {
            let exact =
                ReleaseTime { at: Some(stated), certainty: Certainty::Exact, window_minutes: 1 };
            assert_eq!(ReleaseTime::of(suffix, release), exact);
        }
        for suffix in ["fr", "museum"] {
            assert_eq!(
                ReleaseTime::of(suffix, release),
                ReleaseTime::of(suffix, day("2026-11-28").into())
            );
        }
        let usual = ReleaseTime::of("com", release).at.map(|at| at.to_string());
        assert_eq!(usual.as_deref(), Some("2026-11-28T19:00:00.000Z"));
    }

    #[test]
    fn seconds_count_from_the_hour_of_a_release() {
        let at = |text: &str| -> UnixMs { text.parse().expect("an instant") };
        let seconds = |suffix: &str, release: Release, later: &str| {
            ReleaseTime::of(suffix, release).seconds_to(at(later))
        };
        let on: Release = day("2026-11-28").into();
        assert_eq!(seconds("nu", on, "2026-11-28T04:00:00Z"), Some(0));
        assert_eq!(seconds("nu", on, "2026-11-28T04:01:00.900Z"), Some(60));
        assert_eq!(seconds("nu", on, "2026-11-28T03:59:59.900Z"), None);
        assert_eq!(seconds("fr", on, "2026-11-28T04:00:00Z"), None);
        assert_eq!(seconds("co.uk", on, "2026-11-28T04:00:00Z"), None, "no list states it");
        let stated = Release::at(at("2026-11-28T11:31:21Z").instant()).expect("a day");
        assert_eq!(seconds("co.uk", stated, "2026-11-28T11:31:23Z"), Some(2));
    }

    #[test]
    fn a_release_is_read_as_a_day_or_an_instant() {
        let today = day("2026-11-23");
        for (text, release) in [
            ("tomorrow", "2026-11-24"),
            ("+3d", "2026-11-26"),
            ("2026-11-27", "2026-11-27"),
            ("2026-11-27T14:00Z", "2026-11-27T14:00:00Z"),
            ("2026-11-27T14:00:30Z", "2026-11-27T14:00:30Z"),
            ("2026-11-27T14:00:30.9Z", "2026-11-27T14:00:30Z"),
            ("2026-11-27T00:30+01:00", "2026-11-26T23:30:00Z"),
            ("2026-11-27T00:30 01:00", "2026-11-26T23:30:00Z"),
            ("2026-11-27T23:30:00-05:00", "2026-11-28T04:30:00Z"),
        ] {
            let read = Release::parse_from(text, today).map(|read| read.to_string());
            assert_eq!(read.as_deref(), Ok(release), "{text}");
        }
        for text in [
            "",
            "soon",
            "2026-11-27T14Z",
            "2026-11-27T14:00",
            "2026-11-27T24:00Z",
            "2026-11-27T14:00:00",
            "1984-12-31T23:59Z",
            "2026-02-30T14:00Z",
            "2026-11-27T14:0éZ",
        ] {
            assert_eq!(Release::parse_from(text, today), Err(ReleaseError), "{text}");
        }
    }

    #[test]
    fn a_day_alone_does_not_move_an_instant() {
        let at = |text: &str| Release::at(text.parse().expect("an instant")).expect("a day");
        let (exact, next) = (at("2026-11-28T23:59:59Z"), at("2026-11-29T00:10:00Z"));
        for (newer, older, expected) in [
            (day("2026-11-28").into(), exact, exact),
            (day("2026-11-29").into(), exact, exact),
            (day("2026-11-30").into(), exact, day("2026-11-30").into()),
            (next, exact, next),
            (exact, day("2026-11-28").into(), exact),
            (day("2026-11-27").into(), day("2026-11-28").into(), day("2026-11-27").into()),
        ] {
            assert_eq!(newer.joined(older), expected, "{newer:?} {older:?}");
        }
    }

    #[test]
    fn files_of_an_hour_follow_the_clocks_of_rome() {
        for (on, hour, expected) in [
            ("2026-11-28", 9, "2026-11-28T08:00:00.000Z"),
            ("2027-03-27", 16, "2027-03-27T15:00:00.000Z"),
            ("2027-03-28", 9, "2027-03-28T07:00:00.000Z"),
            ("2027-10-31", 16, "2027-10-31T15:00:00.000Z"),
            ("2026-07-01", 0, "2026-06-30T22:00:00.000Z"),
        ] {
            let release = ReleaseRules::compiled().of("it").at_local_hour(day(on), hour);
            let at = release.and_then(Release::instant).map(|at| at.to_string());
            assert_eq!(at.as_deref(), Some(expected), "{on} {hour}");
        }
        assert!(ReleaseRules::compiled().of("it").at_local_hour(day("2026-11-28"), 24).is_none());
    }

    #[test]
    fn bad_rows_are_refused_with_their_line() {
        const HEADER: &str = "suffix,start,zone,certainty,window_minutes,source";
        for row in [
            "xx",
            "xx,25:00,UTC,hour,60,a",
            "xx,,Nowhere,day,1,a",
            "xx,,UTC,sure,1,a",
            "xx,,UTC,day,many,a",
            "xx,,UTC,day,0,a",
            "xx,,UTC,day,1,",
            "xx,04:00,UTC,day,1,a",
            "*,,UTC,day,1,a",
        ] {
            let text = format!("{HEADER}\n*,,UTC,estimate,1,a\n{row}\n");
            let err = ReleaseRules::parse(&text).expect_err(row);
            assert!(
                err.to_string().contains("line 3") || err.to_string().contains("line: 3"),
                "{err}"
            );
        }
        assert!(ReleaseRules::parse(HEADER).is_err(), "no rule for other suffixes");
    }
}
