//! Generates the observations that lists report about names: realistic drop dates, drawn from a
//! seed.
//!
//! The observations of a name depend only on the seed, the day and the name, so a larger corpus has the
//! same observations for the names of a smaller one.

use std::io::{self, Write};

use chrono::{Datelike, Weekday};
use dropdex::feeds::{Observation, Sighting};
use dropdex::vocab::day::Day;
use dropdex::vocab::limits::CATCH_DAYS_DEFAULT;
use dropdex::vocab::name::DomainName;
use dropdex::vocab::stage::Periods;

use super::rng::Rng;

/// Number of days, including today, of recent drops.
pub const RECENT_DAYS: u16 = 60;
/// Number of days since an old drop: long enough that every TLD has released the name, but at most
/// ten years.
const RELEASED_DAYS: std::ops::Range<u64> = 200..3_650;
/// Days between two drops of one name: 6 to 14 months.
const BETWEEN_DROPS_DAYS: std::ops::Range<u64> = 183..427;
/// Days from the drop to an explicit release: registries publish their lists a week or two ahead.
const RELEASE_AHEAD_DAYS: std::ops::Range<u64> = 1..15;

/// Shares of the kinds of names, in per mille.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Share of all names that dropped within [`RECENT_DAYS`].
    pub recent: u32,
    /// Share of all names that dropped and were released long ago. Names that are neither recent nor
    /// released never dropped; half of these are known to be registered.
    pub released: u32,
    /// Whether all recent drops are in the active pipeline, except those registered again.
    pub active_only: bool,
    /// Share of recent drops that were registered again.
    pub registered_again: u32,
    /// Share of recent drops with a release date.
    pub explicit_release: u32,
    /// Share of recent drops with an earlier drop.
    pub twice: u32,
}

impl Mix {
    /// A whole market: a tenth of the names is dropping, and most never dropped.
    pub const MARKET: Mix = Mix {
        recent: 100,
        released: 50,
        active_only: true,
        registered_again: 10,
        explicit_release: 30,
        twice: 20,
    };
    /// An operator who keeps only drop lists: every name dropped, most of them long ago.
    pub const ALL_DROPPED: Mix = Mix {
        recent: 200,
        released: 800,
        active_only: true,
        registered_again: 10,
        explicit_release: 30,
        twice: 20,
    };
    /// A drop catcher's view, for the sample: most names are dropping or dropped recently.
    pub const SAMPLE: Mix = Mix {
        recent: 800,
        released: 0,
        active_only: false,
        registered_again: 12,
        explicit_release: 37,
        twice: 25,
    };
}

/// Generates the observations that lists report for each name on one day.
#[derive(Clone, Copy, Debug)]
pub struct Drops {
    seed: u64,
    today: Day,
    mix: Mix,
}

impl Drops {
    /// Creates drops up to and including `today`, the same for the same `seed`.
    pub fn new(seed: u64, today: Day, mix: Mix) -> Drops {
        Drops { seed, today, mix }
    }

    /// Returns observations of `name`: one, or two if it dropped before, the older first. All
    /// observations count as made at the start of the day.
    pub fn of(&self, name: DomainName) -> impl Iterator<Item = Observation> + use<> {
        let mut rng = Rng::of(self.seed, name.as_str());
        let fate = rng.below(1000) as u32;
        let [before, last] = if fate < self.mix.recent {
            self.recent(name.tld(), &mut rng)
        } else if fate < self.mix.recent + self.mix.released {
            [None, Some(plain_drop(self.today.plus(-between(&mut rng, RELEASED_DAYS))))]
        } else {
            [None, Some(Sighting::Known { registered: rng.chance(500) })]
        };
        let observed_at = self.today.start();
        [before, last].into_iter().flatten().map(move |sighting| Observation {
            name: name.clone(),
            sighting,
            first_seen: None,
            observed_at,
        })
    }

    /// Returns observations of all `names`, in their order.
    pub fn observations(
        &self,
        names: impl Iterator<Item = DomainName>,
    ) -> impl Iterator<Item = Observation> {
        names.flat_map(|name| self.of(name))
    }

    /// Returns a recent drop, and its predecessor.
    fn recent(&self, tld: &str, rng: &mut Rng) -> [Option<Sighting>; 2] {
        let ahead = rng.chance(self.mix.explicit_release).then(|| between(rng, RELEASE_AHEAD_DAYS));
        let date = self.recent_day(tld, ahead, rng);
        let before = rng
            .chance(self.mix.twice)
            .then(|| plain_drop(date.plus(-between(rng, BETWEEN_DROPS_DAYS))));
        let last = Sighting::Dropped {
            date,
            release: ahead.map(|days| date.plus(days).into()),
            registered_again: rng.chance(self.mix.registered_again),
        };
        [before, Some(last)]
    }

    /// Draws one of the last days. Most registries delete fewer names at weekends, so a weekend day is
    /// drawn again once.
    fn recent_day(&self, tld: &str, ahead: Option<i32>, rng: &mut Rng) -> Day {
        let periods = Periods::for_tld(tld);
        let held = ahead.unwrap_or_else(|| {
            i32::from(periods.redemption_days) + i32::from(periods.pending_delete_days)
        });
        // A name leaves the pipeline `catch_days` after its release (data/docs/api.md, Drops and
        // stages).
        let in_pipeline = held + i32::from(CATCH_DAYS_DEFAULT);
        let recent = i32::from(RECENT_DAYS);
        let days = if self.mix.active_only { recent.min(in_pipeline) } else { recent };
        let mut draw = || self.today.plus(-between(rng, 0..days as u64));
        match draw() {
            day if is_weekend(day) => draw(),
            day => day,
        }
    }
}

fn plain_drop(date: Day) -> Sighting {
    Sighting::Dropped { date, release: None, registered_again: false }
}

fn between(rng: &mut Rng, days: std::ops::Range<u64>) -> i32 {
    (days.start + rng.below(days.end - days.start)) as i32
}

fn is_weekend(day: Day) -> bool {
    matches!(day.date().weekday(), Weekday::Sat | Weekday::Sun)
}

/// Writes observations in the native format (data/docs/sources.md). Unknown values stay empty, and
/// `observed_at` is left to the list.
///
/// # Errors
///
/// Errors of `out`; also for [`Sighting::Registered`] and [`Sighting::Released`], which belong to other
/// formats.
pub fn write_csv(
    observations: impl Iterator<Item = Observation>,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "domain,drop_date,release_date,status,registered_again")?;
    for Observation { name, sighting, .. } in observations {
        match sighting {
            Sighting::Dropped { date, release, registered_again } => {
                let release = release.map(|day| day.to_string()).unwrap_or_default();
                let again = if registered_again { "true" } else { "" };
                writeln!(out, "{name},{date},{release},,{again}")?;
            }
            Sighting::Known { registered } => {
                writeln!(out, "{name},,,{},", if registered { "registered" } else { "" })?;
            }
            Sighting::Registered { .. } | Sighting::Released { .. } => {
                let why = format!("{name}: the native format cannot say {sighting:?}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dropdex::vocab::stage::Stage;

    use super::*;

    const NAMES: usize = 20_000;

    fn today() -> Day {
        "2026-11-20".parse().expect("a day")
    }

    fn names() -> impl Iterator<Item = DomainName> {
        (0..NAMES).map(|at| {
            let tld = ["com", "de", "co.uk", "nl"][at % 4];
            DomainName::parse(&format!("name{at}.{tld}")).expect("a name")
        })
    }

    fn told(mix: Mix) -> Vec<Vec<Observation>> {
        let drops = Drops::new(9, today(), mix);
        names().map(|name| drops.of(name).collect()).collect()
    }

    /// Per mille of `part` in `whole`.
    fn per_mille(part: usize, whole: usize) -> u32 {
        (part * 1000 / whole) as u32
    }

    /// Returns names whose last drop is recent, with its date, release and registeredAgain.
    fn recent(told: &[Vec<Observation>]) -> Vec<(&Observation, Day, Option<Day>, bool)> {
        let last = |of: &'_ Vec<Observation>| match of.last().expect("something").sighting {
            Sighting::Dropped { date, release, registered_again }
                if today().days_since(date) < i32::from(RECENT_DAYS) =>
            {
                Some((date, release.map(|it| it.day), registered_again))
            }
            _ => None,
        };
        told.iter()
            .filter_map(|of| last(of).map(|(date, release, again)| (&of[0], date, release, again)))
            .collect()
    }

    #[test]
    fn the_market_has_its_shares() {
        let told = told(Mix::MARKET);
        let recent = recent(&told);
        assert!((90..110).contains(&per_mille(recent.len(), NAMES)), "{}", recent.len());
        let released = told
            .iter()
            .filter(|of| {
                matches!(of[..], [Observation { sighting: Sighting::Dropped { date, .. }, .. }]
                if today().days_since(date) >= 200)
            })
            .count();
        assert!((42..58).contains(&per_mille(released, NAMES)), "{released}");
        let held = told.iter().filter(|of| of[0].sighting == Sighting::Known { registered: true });
        assert!((400..450).contains(&per_mille(held.count(), NAMES)));
        for (seen, date, release, _) in recent {
            let periods = Periods::for_tld(seen.name.tld());
            let release = periods.effective_release(date, release);
            let days = periods.pending_delete_days;
            let stage = Stage::on(today(), release, days, CATCH_DAYS_DEFAULT);
            assert!(stage != Stage::Released, "{} of {date} is {stage}", seen.name);
        }
    }

    #[test]
    fn the_sample_has_its_shares() {
        let told = told(Mix::SAMPLE);
        let recent = recent(&told);
        assert!((785..815).contains(&per_mille(recent.len(), NAMES)), "{}", recent.len());
        let share = |count| per_mille(count, NAMES);
        let again = recent.iter().filter(|(.., again)| *again).count();
        assert!((7..13).contains(&share(again)), "{again}");
        let explicit = recent.iter().filter(|(_, _, release, _)| release.is_some()).count();
        assert!((25..35).contains(&share(explicit)), "{explicit}");
        let twice = told.iter().filter(|of| of.len() == 2).count();
        assert!((16..24).contains(&share(twice)), "{twice}");
        let days: std::collections::BTreeSet<Day> =
            recent.iter().map(|&(_, date, ..)| date).collect();
        assert_eq!(days.len(), usize::from(RECENT_DAYS), "a drop on every day");
        assert_eq!(days.last(), Some(&today()));
        let weekends = recent.iter().filter(|(_, date, ..)| is_weekend(*date)).count();
        assert!((60..110).contains(&per_mille(weekends, recent.len())), "{weekends}");
    }

    #[test]
    fn a_second_drop_is_6_to_14_months_before() {
        let told = told(Mix::SAMPLE);
        for of in told.iter().filter(|of| of.len() == 2) {
            let dates = of.iter().map(|seen| match seen.sighting {
                Sighting::Dropped { date, .. } => date,
                other => panic!("{other:?}"),
            });
            let dates: Vec<Day> = dates.collect();
            assert!((183..427).contains(&dates[1].days_since(dates[0])), "{dates:?}");
        }
    }

    #[test]
    fn the_same_seed_repeats_and_another_seed_differs() {
        let say = |seed| -> Vec<Observation> {
            Drops::new(seed, today(), Mix::MARKET).observations(names()).collect()
        };
        assert_eq!(say(1), say(1));
        assert_ne!(say(1), say(2));
        let last = names().last().expect("a name");
        let alone: Vec<Observation> = Drops::new(1, today(), Mix::MARKET).of(last).collect();
        assert!(say(1).ends_with(&alone), "independent of the other names");
    }

    #[test]
    fn csv_rows_hold_the_observations() {
        let name = |text| DomainName::parse(text).expect("a name");
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let seen = |text, sighting| Observation {
            name: name(text),
            sighting,
            first_seen: None,
            observed_at: today().start(),
        };
        let again = Sighting::Dropped {
            date: day("2026-11-01"),
            release: Some(day("2026-11-09").into()),
            registered_again: true,
        };
        let rows = [
            seen("a.com", plain_drop(day("2026-11-02"))),
            seen("b.com", again),
            seen("c.com", Sighting::Known { registered: true }),
            seen("d.com", Sighting::Known { registered: false }),
        ];
        let mut csv = Vec::new();
        write_csv(rows.into_iter(), &mut csv).expect("written");
        assert_eq!(
            String::from_utf8(csv).expect("text"),
            "domain,drop_date,release_date,status,registered_again\n\
             a.com,2026-11-02,,,\nb.com,2026-11-01,2026-11-09,,true\nc.com,,,registered,\nd.com,,,,\n"
        );
        let cannot = seen("e.com", Sighting::Registered { on: today() });
        assert!(write_csv([cannot].into_iter(), &mut Vec::new()).is_err());
    }
}
