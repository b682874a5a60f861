//! The days on which lists showed the outcomes of dropped names (`data/docs/outcomes.md`).

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::batch::{self, BatchMeta};
use crate::feeds::Format;
use crate::vocab::day::Day;
use crate::vocab::outcome::{SeenDays, periods_of};

/// The suffix of the lists of [`Format::History`], and the first day whose deletions they have.
const HISTORY: (&str, NaiveDate) =
    ("fr", NaiveDate::from_ymd_opt(2014, 1, 1).expect("a date of the calendar"));

/// The days of the lists of a corpus that show registrations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// By suffix: days on which lists showed every name.
    pub complete: Vec<SeenDays>,
    /// Days of lists of new registrations, of any suffix.
    pub partial: Vec<(Day, Day)>,
}

impl Seen {
    /// Returns the days of some lists, except replaced ones.
    pub fn of<'a>(lists: impl Iterator<Item = &'a BatchMeta> + Clone) -> Seen {
        let mut complete: BTreeMap<String, Vec<(Day, Day)>> = BTreeMap::new();
        let mut partial = Vec::new();
        for (_, list) in batch::not_replaced(lists) {
            let observed = Day::nearest(list.observed_at);
            if let Some(zone) = &list.zone {
                let days = complete.entry(zone.suffix.clone()).or_default();
                days.extend(zone.days.iter().map(|&day| (day, day)));
            } else if list.is_history() {
                let first = Day::from_date(HISTORY.1).expect("a day after 1985");
                complete.entry(HISTORY.0.to_owned()).or_default().push((first, observed));
            } else if list.format == Format::Registered.as_str() {
                partial.push((observed, observed));
            }
        }
        let periods = |(suffix, days)| SeenDays { suffix, periods: periods_of(days) };
        Seen { complete: complete.into_iter().map(periods).collect(), partial: periods_of(partial) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::outcome::ZoneDays;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn list(format: Format, observed: &str) -> BatchMeta {
        let observed_at = day(observed).start();
        BatchMeta { format: format.as_str().into(), observed_at, ..BatchMeta::default() }
    }

    #[test]
    fn days_are_those_of_lists_that_count() {
        let zone = |suffix: &str, days: &[&str], observed| BatchMeta {
            zone: Some(ZoneDays {
                suffix: suffix.into(),
                days: days.iter().map(|it| day(it)).collect(),
            }),
            ..list(Format::Native, observed)
        };
        let lists = [
            zone("nu", &["2026-01-01", "2026-01-02"], "2026-01-02"),
            list(Format::Names, "2026-01-02"),
            list(Format::Registered, "2026-01-02"),
            zone("ee", &["2026-01-03"], "2026-01-03"),
            zone("nu", &["2026-01-05", "2026-01-09"], "2026-01-09"),
            list(Format::History, "2026-01-10"),
            BatchMeta { replaces: vec![3], ..list(Format::Registered, "2026-01-12") },
        ];
        let seen = Seen::of(lists.iter());
        let expected = [
            ("ee", vec![("2026-01-03", "2026-01-03")]),
            ("fr", vec![("2014-01-01", "2026-01-10")]),
            ("nu", vec![("2026-01-01", "2026-01-05"), ("2026-01-09", "2026-01-09")]),
        ];
        let days = |&(from, to): &(&str, &str)| (day(from), day(to));
        let expected = expected.map(|(suffix, periods)| SeenDays {
            suffix: suffix.into(),
            periods: periods.iter().map(days).collect(),
        });
        assert_eq!(seen.complete, expected);
        assert_eq!(seen.partial, [days(&("2026-01-12", "2026-01-12"))]);
    }
}
