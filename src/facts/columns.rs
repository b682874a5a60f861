//! The columns of a file: which one is the key, and which facts the others hold. One notation describes a
//! column in canonical headers, in mappings and in the table of presets:
//! `majestic.tf:int:points:0-100:more`.

use std::fmt;
use std::str::FromStr;

use csv::ReaderBuilder;
use serde::Serialize;

use crate::dates::DateOrder;
use crate::headers::Header;
use crate::vocab::fact::{Direction, FactName, FactType, KeyKind, Unit};
use crate::vocab::money::Currency;

/// A column of facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactColumn {
    pub name: FactName,
    pub kind: FactType,
    pub unit: Option<Unit>,
    pub direction: Option<Direction>,
    /// The highest value of a scale from 0.
    pub scale: Option<u32>,
    /// The currency of amounts that state none.
    pub(crate) currency: Option<Currency>,
    /// Order of day and month in dates that have both orders.
    pub(crate) date_order: Option<DateOrder>,
    /// Whether the file writes 0 for values that are not set.
    pub(crate) zero_is_unknown: bool,
}

/// Use of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Key(KeyKind),
    /// The day of the facts of a row.
    AsOf,
    /// The currency of the amounts of a row.
    Currency,
    Fact(FactColumn),
}

/// A text that does not describe a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not a column: write `domain`, `label`, `word`, `as_of`, `currency` or SOURCE.FACT, with a type \
     (`:int`, `:dec`, `:money`, `:date`, `:year`, `:bool`, `:enum`, `:text`) and, after it, a unit \
     (`:points`, `:percent`, `:rank`, `:months`, `:years`), `:more` or `:less`, a scale (`:0-100`), \
     a currency (`:EUR`), `:dmy`, `:mdy` or `:zero-is-unknown`"
)]
pub struct NotAColumn;

impl FromStr for Role {
    type Err = NotAColumn;

    fn from_str(text: &str) -> Result<Role, NotAColumn> {
        let text = text.trim();
        if let Ok(kind) = text.parse() {
            return Ok(Role::Key(kind));
        }
        match text {
            "as_of" => Ok(Role::AsOf),
            "currency" => Ok(Role::Currency),
            _ => fact_column(text).map(Role::Fact).ok_or(NotAColumn),
        }
    }
}

fn fact_column(text: &str) -> Option<FactColumn> {
    let mut parts = text.split(':');
    let name = parts.next()?.parse().ok()?;
    let kind = parts.next().map_or(Ok(FactType::Text), str::parse).ok()?;
    let mut column = FactColumn {
        name,
        kind,
        unit: None,
        direction: None,
        scale: None,
        currency: None,
        date_order: None,
        zero_is_unknown: false,
    };
    parts.try_for_each(|modifier| column.modify(modifier))?;
    Some(column)
}

impl FactColumn {
    /// Applies a modifier; `None` if it is unknown or the type has none like it.
    fn modify(&mut self, modifier: &str) -> Option<()> {
        let is_number = matches!(self.kind, FactType::Int | FactType::Dec);
        if let Ok(direction) = modifier.parse() {
            self.direction = Some(direction);
        } else if let Some(unit) = modifier.parse().ok().filter(|_| is_number) {
            self.unit = Some(unit);
        } else if let Some(top) = modifier.strip_prefix("0-").filter(|_| is_number) {
            self.scale = Some(top.parse().ok()?);
        } else if let Some(order) = modifier.parse().ok().filter(|_| self.kind == FactType::Date) {
            self.date_order = Some(order);
        } else if modifier == "zero-is-unknown" && (is_number || self.kind == FactType::Money) {
            self.zero_is_unknown = true;
        } else {
            self.currency =
                Some(Currency::parse(modifier).filter(|_| self.kind == FactType::Money)?);
        }
        Some(())
    }
}

/// Returns true for a cell that a file in canonical form has in its header, although the part after the name may
/// be wrong.
pub(crate) fn names_a_fact(cell: &str) -> bool {
    cell.trim().split(':').next().is_some_and(|name| name.parse::<FactName>().is_ok())
}

/// Identifies a header row: the hash of its cells, without case and surrounding blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 8]);

impl Fingerprint {
    pub(crate) fn of<'a>(cells: impl IntoIterator<Item = &'a str>) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        for cell in cells {
            let cell = cell.trim().to_lowercase();
            hasher.update(&(cell.len() as u64).to_le_bytes()).update(cell.as_bytes());
        }
        let hash = *hasher.finalize().as_bytes();
        Fingerprint(std::array::from_fn(|at| hash[at]))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The columns of all files with one header row, as a person described them.
#[derive(Clone, Debug)]
pub struct Mapping {
    fingerprint: String,
    /// By position; `None` for columns that are not read.
    roles: Vec<Option<Role>>,
}

/// Rejects a text that is not a [`Mapping`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    #[error("must be FINGERPRINT=COLUMN,COLUMN,...")]
    Form,
    #[error("column {0} {1}")]
    Column(usize, NotAColumn),
    #[error("needs one column `domain`, `label` or `word`, not {0}")]
    Keys(usize),
}

impl FromStr for Mapping {
    type Err = MappingError;

    /// Parses a fingerprint and, for each column of the file, a column in canonical form or nothing:
    /// `0011223344556677=domain,,acme.rank:int:rank:less`.
    fn from_str(text: &str) -> Result<Mapping, MappingError> {
        let (fingerprint, columns) = text.split_once('=').ok_or(MappingError::Form)?;
        let mut reader = ReaderBuilder::new().has_headers(false).from_reader(columns.as_bytes());
        let record = reader.records().next().and_then(Result::ok).ok_or(MappingError::Form)?;
        let role = |(number, cell): (usize, &str)| match cell.trim() {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|why| MappingError::Column(number, why)),
        };
        let roles = (1..).zip(record.iter()).map(role).collect::<Result<Vec<Option<Role>>, _>>()?;
        match roles.iter().flatten().filter(|role| matches!(role, Role::Key(_))).count() {
            1 => Ok(Mapping { fingerprint: fingerprint.trim().to_lowercase(), roles }),
            keys => Err(MappingError::Keys(keys)),
        }
    }
}

impl Mapping {
    pub(crate) fn is_for(&self, fingerprint: Fingerprint) -> bool {
        self.fingerprint == fingerprint.to_string()
    }

    pub(crate) fn roles(&self, headers: &[Header]) -> Vec<Option<Role>> {
        (0..headers.len()).map(|at| self.roles.get(at).cloned().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_described_in_one_notation() {
        let Ok(Role::Fact(column)) = "moz.spam:int:points:0-17:less".parse() else {
            panic!("a column")
        };
        assert_eq!((column.name.to_string(), column.kind), ("moz.spam".to_owned(), FactType::Int));
        assert_eq!((column.unit, column.scale), (Some(Unit::Points), Some(17)));
        assert_eq!(column.direction, Some(Direction::Less));
        let text: Result<Role, _> = "acme.note".parse();
        assert!(matches!(text, Ok(Role::Fact(FactColumn { kind: FactType::Text, .. }))));
        for good in ["domain", " label ", "word", "as_of", "a.b:money:eur", "a.b:date:dmy"] {
            assert!(good.parse::<Role>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "tf",
            "A.b",
            ".b",
            "a.",
            "a.b.c",
            "a.b:number",
            "a.b:",
            "a.b:int:EUR",
            "a.b:text:points",
            "a.b:int:0-x",
            "a.b:money:mdy",
            "a.b:date:zero-is-unknown",
        ] {
            assert_eq!(bad.parse::<Role>(), Err(NotAColumn), "{bad}");
        }
    }

    #[test]
    fn a_mapping_needs_one_key_and_valid_columns() {
        let error = |text: &str| text.parse::<Mapping>().expect_err(text);
        assert_eq!(error("domain,a.b:int"), MappingError::Form);
        assert_eq!(error("00="), MappingError::Form);
        assert_eq!(error("00=domain,nothing"), MappingError::Column(2, NotAColumn));
        assert_eq!(error("00=a.b:int"), MappingError::Keys(0));
        assert_eq!(error("00=domain,label"), MappingError::Keys(2));
        assert!("00=domain,,a.b:int".parse::<Mapping>().is_ok());
    }

    #[test]
    fn a_fingerprint_ignores_case_and_blanks_but_not_the_order() {
        let of = |cells: [&'static str; 2]| Fingerprint::of(cells).to_string();
        assert_eq!(of(["Domain ", "TF"]), of(["domain", "tf"]));
        assert_ne!(of(["tf", "domain"]), of(["domain", "tf"]));
        assert_ne!(of(["domai", "ntf"]), of(["domain", "tf"]));
        assert_eq!(of(["a", "b"]).len(), 16);
    }
}
