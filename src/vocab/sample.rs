//! The random sample of released names (`data/docs/outcomes.md`): what the registry says about each of them,
//! and the shares that follow. Pure.

use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::dqs::Dqs;
use crate::observation::{Observation, ObservedBy, RdapState};
use crate::outcome::{Horizon, Share};

/// Names drawn of a suffix for each day of releases. In a month, they give a share within 2.3 points.
pub const NAMES_A_DAY: usize = 60;
/// The horizons at whose ends the registry is asked.
pub const HORIZONS: [Horizon; 3] = [Horizon::Day, Horizon::Week, Horizon::Month];
/// Days on which the registry is asked after each horizon, until it answers.
const ASKED_DAYS: i32 = 4;
/// Days after a release on which the names are forgotten, and only scores and answers are kept.
pub const OPEN_DAYS: i32 = Horizon::Month.days() + ASKED_DAYS + 1;
/// Days of releases that are counted, up to the last whose horizon is over.
const WINDOW_DAYS: i32 = 365;
/// Days for which an answer is kept.
pub const KEPT_DAYS: i32 = WINDOW_DAYS + OPEN_DAYS;
/// With more names without an answer than one in this number, a share is a range.
const UNANSWERED_PART: u64 = 10;
/// Groups of ten scores, from 0-9 to 90-100.
const BANDS: usize = 10;

/// Answer of a registry about a drawn name. User data stores a variant by its position: append only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampleAnswer {
    /// Nothing that counts.
    #[default]
    None,
    /// Not registered again by the end of this day, counted from the release.
    Free(u8),
    /// Registered again on this day, counted from the release.
    Taken(u8),
    /// Never released: its holder renewed it, or the registry keeps it.
    Kept,
}

impl SampleAnswer {
    /// Returns what an observation says about a name released on `release`.
    ///
    /// A registration counts by its date; one after the drop and before the computed release counts as on the day
    /// of the release. A 404 counts if two sources agree. A name that the registry still deletes is not registered
    /// again.
    pub fn of(seen: &Observation, release: Day) -> SampleAnswer {
        let days = |day: Day| u8::try_from(day.days_since(release).min(i32::from(u8::MAX))).ok();
        let today = Day::nearest(seen.at.instant());
        let free = || days(today.plus(-1)).map_or(SampleAnswer::None, SampleAnswer::Free);
        match (seen.state, seen.registered_on) {
            _ if seen.source != ObservedBy::Rdap => SampleAnswer::None,
            (RdapState::Available, _) if seen.is_free() => free(),
            (RdapState::Redemption | RdapState::PendingDelete, _) => free(),
            (RdapState::Reserved, _) => SampleAnswer::Kept,
            (
                state @ (RdapState::Registered | RdapState::Renewed | RdapState::RegisteredAgain),
                Some(day),
            ) => match days(day) {
                Some(days) => SampleAnswer::Taken(days),
                None if state == RdapState::RegisteredAgain => SampleAnswer::Taken(0),
                None => SampleAnswer::Kept,
            },
            _ => SampleAnswer::None,
        }
    }

    /// Returns the answer after a later one.
    #[must_use]
    pub fn then(self, later: SampleAnswer) -> SampleAnswer {
        match (self, later) {
            (SampleAnswer::Taken(_) | SampleAnswer::Kept, _) | (_, SampleAnswer::None) => self,
            (SampleAnswer::Free(before), SampleAnswer::Free(now)) => {
                SampleAnswer::Free(before.max(now))
            }
            _ => later,
        }
    }

    /// Returns the days that remain to ask about a name, today excluded; `None` if it is not asked about
    /// this many days after its release.
    pub fn days_left(self, age: i32) -> Option<i32> {
        HORIZONS.into_iter().find_map(|horizon| {
            let left = horizon.days() + ASKED_DAYS - age;
            let is_due = age > horizon.days() && left >= 0 && self.known(horizon).is_none();
            (is_due && self != SampleAnswer::Kept).then_some(left)
        })
    }

    /// Whether the name was registered again within a horizon; `None` without an answer.
    fn known(self, horizon: Horizon) -> Option<bool> {
        match self {
            SampleAnswer::Taken(days) => Some(i32::from(days) <= horizon.days()),
            SampleAnswer::Free(days) => (i32::from(days) >= horizon.days()).then_some(false),
            SampleAnswer::None | SampleAnswer::Kept => None,
        }
    }
}

/// Drawn names whose horizon is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// Released names, those without an answer included.
    pub names: u64,
    pub taken: u64,
    pub unanswered: u64,
}

/// The share of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleShare {
    /// With too few answers, `share` counts no name without an answer as registered, and the bounds are those of
    /// two intervals: the lower one if no such name was registered, and the upper one if all were.
    pub share: Share,
    pub is_range: bool,
}

impl SampleCount {
    pub fn add(&mut self, answer: SampleAnswer, horizon: Horizon) {
        if answer == SampleAnswer::Kept {
            return;
        }
        let known = answer.known(horizon);
        self.names += 1;
        self.taken += u64::from(known == Some(true));
        self.unanswered += u64::from(known.is_none());
    }

    /// Adds the counts of another group.
    pub fn plus(&mut self, other: SampleCount) {
        self.names += other.names;
        self.taken += other.taken;
        self.unanswered += other.unanswered;
    }

    /// Returns the share of names that were registered again; `None` without names.
    pub fn share(self) -> Option<SampleShare> {
        let SampleCount { names, taken, unanswered } = self;
        if unanswered * UNANSWERED_PART <= names {
            let share = Share::of(taken, names - unanswered)?;
            return Some(SampleShare { share, is_range: false });
        }
        let (none, all) = (Share::of(taken, names)?, Share::of(taken + unanswered, names)?);
        Some(SampleShare { share: Share { high: all.high, ..none }, is_range: true })
    }
}

/// The counts of a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTable {
    /// First and last release of a counted name.
    pub from: Day,
    pub to: Day,
    /// By tens of the score, then in the order of [`HORIZONS`].
    pub bands: [[SampleCount; HORIZONS.len()]; BANDS],
}

impl Default for SampleTable {
    fn default() -> SampleTable {
        SampleTable { from: Day::MAX, to: Day::MIN, bands: Default::default() }
    }
}

impl SampleTable {
    /// Counts a name for each horizon that is over on `as_of`.
    pub fn add(&mut self, release: Day, dqs: Dqs, answer: SampleAnswer, as_of: Day) {
        let age = as_of.days_since(release);
        let band = &mut self.bands[usize::from(dqs.points() / 10).min(BANDS - 1)];
        for (count, horizon) in band.iter_mut().zip(HORIZONS) {
            if age > horizon.days() && age < horizon.days() + WINDOW_DAYS {
                count.add(answer, horizon);
                (self.from, self.to) = (self.from.min(release), self.to.max(release));
            }
        }
    }

    /// Returns the counts of all scores.
    pub fn all(&self) -> [SampleCount; HORIZONS.len()] {
        let mut all = [SampleCount::default(); HORIZONS.len()];
        for band in &self.bands {
            all.iter_mut().zip(band).for_each(|(all, more)| all.plus(*more));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, EvidenceSet};
    use crate::observation::{LatestRegistration, RdapStatuses};
    use crate::time::UnixMs;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    /// An observation on 2026-03-09.
    fn seen(state: RdapState, registered_on: Option<&str>, evidence: &[Evidence]) -> Observation {
        Observation {
            state,
            at: "2026-03-09T00:00:01Z".parse::<UnixMs>().expect("an instant"),
            registered_on: registered_on.map(day),
            statuses: RdapStatuses::NONE,
            source: ObservedBy::Rdap,
            evidence: evidence.iter().copied().collect::<EvidenceSet>(),
            registration: LatestRegistration::default(),
        }
    }

    #[test]
    fn answers_follow_from_the_registration_or_from_two_sources() {
        use Evidence::{Control, NotDelegated, RdapNone};
        use RdapState::{
            Available, Expected, PendingDelete, Redemption, Registered, RegisteredAgain, Renewed,
            Reserved, Taken, Unknown,
        };
        let free = [RdapNone, Control, NotDelegated];
        for (state, registered_on, evidence, answer) in [
            (Available, None, &free[..], SampleAnswer::Free(7)),
            (Available, None, &free[..2], SampleAnswer::None),
            (Redemption, Some("2001-01-01"), &[], SampleAnswer::Free(7)),
            (PendingDelete, Some("2001-01-01"), &[], SampleAnswer::Free(7)),
            (Registered, Some("2026-03-01"), &[], SampleAnswer::Taken(0)),
            (RegisteredAgain, Some("2026-03-08"), &[], SampleAnswer::Taken(7)),
            (RegisteredAgain, Some("2026-02-27"), &[], SampleAnswer::Taken(0)),
            (Renewed, Some("2001-01-01"), &[], SampleAnswer::Kept),
            (Registered, Some("2001-01-01"), &[], SampleAnswer::Kept),
            (Registered, None, &[], SampleAnswer::None),
            (Reserved, None, &[], SampleAnswer::Kept),
            (Taken, None, &[], SampleAnswer::None),
            (Expected, None, &[], SampleAnswer::None),
            (Unknown, None, &[], SampleAnswer::None),
        ] {
            let seen = seen(state, registered_on, evidence);
            assert_eq!(
                SampleAnswer::of(&seen, day("2026-03-01")),
                answer,
                "{state} {registered_on:?}"
            );
            let of_dns = Observation { source: ObservedBy::Dns, ..seen };
            assert_eq!(SampleAnswer::of(&of_dns, day("2026-03-01")), SampleAnswer::None);
        }
        let early = seen(Available, None, &free);
        assert_eq!(SampleAnswer::of(&early, day("2026-03-09")), SampleAnswer::None, "today");
        assert_eq!(SampleAnswer::of(&early, day("2025-01-01")), SampleAnswer::Free(255));
    }

    #[test]
    fn names_are_asked_about_after_each_horizon_until_the_registry_answers() {
        let asked = |answer: SampleAnswer| {
            let days = (0..50).filter(|&age| answer.days_left(age).is_some());
            days.collect::<Vec<_>>()
        };
        assert_eq!(asked(SampleAnswer::None), [2, 3, 4, 5, 8, 9, 10, 11, 31, 32, 33, 34]);
        assert_eq!(asked(SampleAnswer::Free(1)), [8, 9, 10, 11, 31, 32, 33, 34]);
        assert_eq!(asked(SampleAnswer::Free(9)), [31, 32, 33, 34]);
        for done in [SampleAnswer::Free(30), SampleAnswer::Taken(3), SampleAnswer::Kept] {
            assert!(asked(done).is_empty(), "{done:?}");
        }
        let left: Vec<_> = (2..6).map(|age| SampleAnswer::None.days_left(age)).collect();
        assert_eq!(left, [Some(3), Some(2), Some(1), Some(0)]);
        assert!((0..50).all(|age| age < OPEN_DAYS || SampleAnswer::None.days_left(age).is_none()));
    }

    #[test]
    fn a_later_answer_never_undoes_a_registration() {
        use SampleAnswer::{Free, Kept, None, Taken};
        for (before, later, now) in [
            (None, Free(2), Free(2)),
            (Free(2), None, Free(2)),
            (Free(9), Free(2), Free(9)),
            (Free(2), Taken(5), Taken(5)),
            (Taken(5), Free(30), Taken(5)),
            (Taken(5), Kept, Taken(5)),
            (Kept, Free(30), Kept),
        ] {
            assert_eq!(before.then(later), now, "{before:?}, {later:?}");
        }
    }

    #[test]
    fn names_without_an_answer_widen_the_share() {
        let count = |names, taken, unanswered| SampleCount { names, taken, unanswered };
        assert_eq!(count(0, 0, 0).share(), None);
        let few = count(1_000, 90, 100).share().expect("names");
        assert_eq!((few.share, few.is_range), (Share::of(90, 900).expect("names"), false));
        let many = count(1_000, 90, 101).share().expect("names");
        let ends = [90, 191].map(|taken| Share::of(taken, 1_000).expect("names"));
        assert!(many.is_range);
        assert_eq!((many.share.count, many.share.share), (90, 0.09));
        assert_eq!((many.share.low, many.share.high), (ends[0].low, ends[1].high));
        assert!(count(10, 0, 10).share().expect("names").share.high > 0.99, "nothing is known");
    }

    #[test]
    fn a_name_is_counted_once_its_horizon_is_over_and_for_a_year() {
        let release = day("2026-03-01");
        let dqs = |points| Dqs::new(points).expect("a score");
        let counted = |answer, days| {
            let mut table = SampleTable::default();
            table.add(release, dqs(100), answer, release.plus(days));
            assert_eq!(table.bands[9], table.all());
            table.all().map(|SampleCount { names, taken, unanswered }| (names, taken, unanswered))
        };
        let (none, no, yes, open) = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 0, 1));
        assert_eq!(counted(SampleAnswer::Taken(5), 1), [none; 3]);
        assert_eq!(counted(SampleAnswer::Taken(5), 2), [no, none, none]);
        assert_eq!(counted(SampleAnswer::Taken(5), 31), [no, yes, yes]);
        assert_eq!(counted(SampleAnswer::Free(8), 31), [no, no, open]);
        assert_eq!(counted(SampleAnswer::None, 31), [open; 3]);
        assert_eq!(counted(SampleAnswer::Kept, 31), [none; 3]);
        assert_eq!(counted(SampleAnswer::Taken(0), 366), [none, yes, yes]);
        assert_eq!(counted(SampleAnswer::Taken(0), 395), [none; 3]);
        const { assert!(KEPT_DAYS >= 395) };
    }
}
