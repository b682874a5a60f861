//! List formats and their names on the command line.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::vocab::named::named_enum;

named_enum! {
    /// Format of a list, as `--format` names it and [`Feed::format`](super::Feed::format) reports it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Format {
        /// dropdex's own CSV: a header with `domain` and `drop_date`, and optional further columns.
        Native = "native",
        /// One name per line; the day comes from `--drop-date` or the file name.
        Names = "names",
        /// Pool.com's pending-delete text: `name,M/D/YYYY h:mm:ss AM,kind`, no header.
        Pool = "pool",
        /// JSON with a list of objects (`data`, `domains` or a bare array): .se, .nu, Park.io, GoDaddy.
        Json = "json",
        /// The text form of the .se and .nu lists: name, tab, release day.
        Bardate = "bardate",
        /// Any delimited table whose header names a domain and a release column: Nominet, .au, Google
        /// Registry, the IETF draft, DropCatch, SnapNames, Sedo.
        Delimited = "delimited",
        /// A time stamp on the first line, then released names: .pl, .mx.
        Stamped = "stamped",
        /// Newly registered names, one per line, each of which undoes an earlier drop.
        Registered = "registered",
        /// Names that the registry has released, one per line: .cl.
        Released = "released",
        /// Backorders of Dynadot: a header, then rows that start with a name and the time at which it
        /// drops.
        Dynadot = "dynadot",
        /// All names that a registry ever had, with the days of registration and deletion: .fr.
        History = "history",
        /// All current names of a registry, compared with those of earlier days: .sk.
        Registry = "registry",
        /// A popularity list, which ranks names and has no drops: Tranco, Majestic Million, Umbrella.
        Ranked = "ranked",
        /// Two zone files of one zone, whose difference is the drops.
        ZonePair = "zone-pair",
        /// The zone file of a day, compared with earlier ones.
        Zone = "zone",
    }
}

impl Format {
    /// Whether a list consists only of names, all for the same day.
    pub fn is_of_one_day(self) -> bool {
        matches!(self, Format::Names | Format::Registered | Format::Released)
    }
}

/// Rejects a text that is not a [`Format`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a list format; the formats are {words}", words = words())]
pub struct FormatError(String);

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(word: &str) -> Result<Format, FormatError> {
        Format::ALL
            .into_iter()
            .find(|format| format.as_str() == word)
            .ok_or_else(|| FormatError(word.chars().take(40).collect()))
    }
}

/// Names of all formats, for messages.
pub(super) fn words() -> String {
    Format::ALL.map(Format::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_names_round_trip() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let refused = "csv".parse::<Format>().expect_err("no format");
        assert_eq!(
            refused.to_string(),
            "`csv` is not a list format; the formats are native, names, pool, json, bardate, \
             delimited, stamped, registered, released, dynadot, history, registry, ranked, zone-pair, zone"
        );
    }
}
