//! Lifecycle stages of a dropped name, from its deletion to its release (`data/docs/api.md`).

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::compiled::{self, BadTable};
use crate::day::Day;
use crate::named::{named_enum, parse_named};

named_enum! {
    /// Lifecycle stage of a dropped name.
    // User data stores a stage by its position in this list, so only append to the list.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Stage {
        /// The previous holder can still restore it.
        Redemption = "redemption",
        /// It cannot be restored; the registry will release it.
        PendingDelete = "pending-delete",
        /// Released less than `catch_days` days ago.
        Catchable = "catchable",
        /// Released earlier: no longer in the active pipeline.
        Released = "released",
    }
}

impl Stage {
    /// Returns the stage on `today` of a name whose effective release is `release`.
    pub fn on(today: Day, release: Day, pending_delete_days: u16, catch_days: u16) -> Stage {
        let days_left = release.days_since(today);
        if days_left > i32::from(pending_delete_days) {
            Stage::Redemption
        } else if days_left > 0 {
            Stage::PendingDelete
        } else if days_left > -i32::from(catch_days) {
            Stage::Catchable
        } else {
            Stage::Released
        }
    }
}

parse_named!(Stage);

/// Periods for which a TLD keeps a deleted name before it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// Days in which the holder can restore the name.
    pub redemption_days: u16,
    /// Days between that period and the release.
    pub pending_delete_days: u16,
}

impl Periods {
    /// ICANN's grace periods for generic TLDs, used for TLDs without a row of their own.
    pub const DEFAULT: Periods = Periods { redemption_days: 30, pending_delete_days: 5 };

    /// Returns the periods of `tld` (`com`, `co.uk`; without a leading dot), from `data/lifecycle.csv`.
    pub fn for_tld(tld: &str) -> Periods {
        TABLE.get(tld).map_or(Periods::DEFAULT, |(periods, _)| *periods)
    }

    /// Returns the source of the periods of `tld`; `None` for the defaults.
    pub fn source(tld: &str) -> Option<&'static str> {
        TABLE.get(tld).map(|(_, source)| source.as_str())
    }

    /// Returns the days from a drop to its release.
    pub fn days(self) -> i32 {
        i32::from(self.redemption_days) + i32::from(self.pending_delete_days)
    }

    /// Returns the day on which the registry releases a name: the feed's date, or the drop date
    /// plus both periods.
    pub fn effective_release(self, drop_date: Day, release_date: Option<Day>) -> Day {
        release_date.unwrap_or_else(|| drop_date.plus(self.days()))
    }
}

/// The periods and their source by TLD.
type Table = HashMap<String, (Periods, String)>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    parse_table(include_str!("../../data/lifecycle.csv"))
        .expect("data/lifecycle.csv is checked by a test")
});

fn parse_table(text: &str) -> Result<Table, BadTable> {
    let row = |(tld, redemption_days, pending_delete_days, source)| {
        Ok::<_, Infallible>((tld, (Periods { redemption_days, pending_delete_days }, source)))
    };
    Ok(compiled::table(text, row)?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    #[test]
    fn every_row_of_the_table_is_used() {
        let table = parse_table(include_str!("../../data/lifecycle.csv")).expect("parses");
        assert_eq!(table.len(), include_str!("../../data/lifecycle.csv").lines().count() - 1);
        let periods =
            |redemption_days, pending_delete_days| Periods { redemption_days, pending_delete_days };
        assert_eq!(Periods::for_tld("co.uk"), periods(60, 5));
        assert_eq!(Periods::for_tld("se"), periods(60, 7));
        assert_eq!(Periods::for_tld("de"), periods(30, 0));
        assert_eq!(Periods::for_tld("com"), periods(30, 5));
    }

    #[test]
    fn stages_change_on_their_days() {
        let release = Periods::for_tld("com").effective_release(day("2026-01-01"), None);
        assert_eq!(release, day("2026-02-05"));
        for (today, stage) in [
            ("2026-01-01", Stage::Redemption),
            ("2026-01-30", Stage::Redemption),
            ("2026-01-31", Stage::PendingDelete),
            ("2026-02-04", Stage::PendingDelete),
            ("2026-02-05", Stage::Catchable),
            ("2026-02-09", Stage::Catchable),
            ("2026-02-10", Stage::Released),
        ] {
            assert_eq!(Stage::on(day(today), release, 5, 5), stage, "{today}");
        }
    }

    #[test]
    fn a_release_date_of_the_feed_overrides_the_table() {
        let given = day("2026-01-03");
        assert_eq!(
            Periods::for_tld("com").effective_release(day("2026-01-01"), Some(given)),
            given
        );
        // The suffix .de has no pending delete: redemption lasts until the last day.
        assert_eq!(Stage::on(day("2026-01-02"), given, 0, 5), Stage::Redemption);
        assert_eq!(Stage::on(given, given, 0, 5), Stage::Catchable);
    }
}
