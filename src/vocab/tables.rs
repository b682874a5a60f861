//! Tables that age: the Public Suffix List, the TLDs of the root zone and the contracts of gTLDs. A
//! copy of each is compiled in. A newer copy replaces it for the whole life of a process, so that
//! the process always parses and scores a name the same way.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use chrono::{DateTime, FixedOffset, NaiveDate, Utc};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::named::named_enum;
use crate::suffixes::{SuffixList, SuffixListError};

named_enum! {
    /// A table, named like its source.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Table {
        /// The Public Suffix List: where the registrable part of a name starts.
        Suffixes = "psl",
        /// IANA's list of TLDs: names under any other suffix cannot be registered.
        Delegated = "iana-tlds",
        /// ICANN's table of gTLDs: which of them are for one brand only.
        Gtlds = "icann-gtlds",
    }
}

/// Number of entries in the compiled copies: rules of `psl` 2.1.247, TLDs among those rules, and
/// brand TLDs in `data/scorer/closed.txt`.
const COMPILED: [usize; Table::ALL.len()] = [10_396, 1_439, 358];
/// Minimum and maximum plausible size of a table, in percent of the compiled copy.
const PLAUSIBLE_PERCENT: [usize; 2] = [80, 400];
/// A day before the compiled copies were published (`psl` 2.1.247). Change the day with each update
/// of the copies.
const COMPILED_ON: &str = "2026-11-01";
/// Suffixes that every complete list has.
const WELL_KNOWN: [&str; 11] =
    ["com", "net", "org", "de", "fr", "uk", "co.uk", "com.au", "co.jp", "com.br", "xn--p1ai"];
/// Maximum number of days by which the date of a table may lie in the future.
const AHEAD_MAX: i32 = 2;
/// Maximum length of a version in bytes.
const VERSION_MAX: usize = 40;

/// A table in its published form.
#[derive(Debug)]
pub struct Published {
    pub table: Table,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// Number of rules, TLDs or brand TLDs.
    pub entries: usize,
    version: Option<Version>,
    content: LoadedTable,
}

#[derive(Debug)]
enum LoadedTable {
    Suffixes(SuffixList),
    Tlds(FxHashSet<String>),
}

/// The version that a table states. Versions of a table are ordered as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    text: String,
    day: Day,
}

impl Version {
    /// Letters, digits, `-` and `_`, which are safe in a file name.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the compiled copy is newer.
    pub fn is_outdated(&self) -> bool {
        self.day < COMPILED_ON.parse().expect("a day")
    }

    /// Parses a text that starts with a date, `2026-11-20_...` or `20261120...`.
    fn parse(text: &str) -> Option<Version> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let shown = text.len() <= VERSION_MAX && text.bytes().all(is_plain);
        let date = text.get(..10).and_then(|date| date.parse().ok());
        let compact = || NaiveDate::parse_from_str(text.get(..8)?, "%Y%m%d").ok();
        let day = date.or_else(|| Day::from_date(compact()?));
        Some(Version { text: text.to_owned(), day: day.filter(|_| shown)? })
    }
}

/// Reason why a file is not used as a table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("the file is not UTF-8")]
    NotText,
    #[error(transparent)]
    Suffixes(#[from] SuffixListError),
    #[error("line {0} is not a TLD")]
    BadTld(usize),
    #[error("the file is not ICANN's table of gTLDs: {0}")]
    NotGtlds(String),
    #[error("the file does not say which version it is, or is dated {AHEAD_MAX} days ahead")]
    NoVersion,
    #[error(
        "the table has {entries} entries, and the one compiled in {compiled}: it is incomplete, or its \
         format has changed"
    )]
    Implausible { entries: usize, compiled: usize },
    #[error("the table is wrong about {0}")]
    Wrong(&'static str),
}

impl Published {
    /// Parses a table; `sha256` identifies the file.
    ///
    /// # Errors
    /// The file is not such a table, or is cut short.
    pub fn parse(table: Table, bytes: &[u8], sha256: String) -> Result<Published, TableError> {
        let text = std::str::from_utf8(bytes).map_err(|_| TableError::NotText)?;
        let (version, entries, content) = match table {
            Table::Suffixes => {
                let list = SuffixList::parse(text, sha256.clone())?;
                let version = text.lines().find_map(|line| line.strip_prefix("// VERSION:"));
                (version.map(str::trim).map(str::to_owned), list.len(), LoadedTable::Suffixes(list))
            }
            Table::Delegated => {
                let (version, tlds) = delegated(text)?;
                (version, tlds.len(), LoadedTable::Tlds(tlds))
            }
            Table::Gtlds => {
                let (version, brands) = brands(text)?;
                (version, brands.len(), LoadedTable::Tlds(brands))
            }
        };
        let version = version.and_then(|text| Version::parse(&text));
        Ok(Published { table, sha256, entries, version, content })
    }

    /// Returns the version that the table states.
    pub fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// Checks a table fetched on the day `today`, and returns its version.
    ///
    /// # Errors
    /// The table has no version, an implausible size, or lacks entries that every version has.
    pub fn check(&self, today: Day) -> Result<&Version, TableError> {
        let compiled = COMPILED[self.table as usize];
        let [least, most] = PLAUSIBLE_PERCENT.map(|percent| compiled * percent / 100);
        if !(least..=most).contains(&self.entries) {
            return Err(TableError::Implausible { entries: self.entries, compiled });
        }
        let is_wrong = |suffix: &&&str| match &self.content {
            LoadedTable::Suffixes(list) => !list.is_suffix(suffix),
            // The suffixes in the list above are delegated TLDs and not brands.
            LoadedTable::Tlds(tlds) => {
                !suffix.contains('.') && tlds.contains(**suffix) != (self.table == Table::Delegated)
            }
        };
        if let Some(suffix) = WELL_KNOWN.iter().find(is_wrong) {
            return Err(TableError::Wrong(suffix));
        }
        let version = self.version.as_ref();
        version.filter(|version| version.day <= today.plus(AHEAD_MAX)).ok_or(TableError::NoVersion)
    }

    /// Uses the table in this process from now on. Only the first call has an effect. `is_fixed` is
    /// true if the settings name its file.
    pub fn install(self, is_fixed: bool) {
        let Published { table, sha256, version, content, .. } = self;
        let version = version.map(|version| version.text);
        let _ = IN_USE[table as usize].set(InUse { sha256, version, is_fixed });
        match content {
            LoadedTable::Suffixes(list) => list.install(),
            LoadedTable::Tlds(tlds) => {
                let _ = TLDS[usize::from(table == Table::Gtlds)].set(tlds);
            }
        }
    }
}

/// Parses `# Version 2026112300, Last Updated ...`, then one TLD per line in upper case.
fn delegated(text: &str) -> Result<(Option<String>, FxHashSet<String>), TableError> {
    let version = text.lines().next().and_then(|line| line.strip_prefix("# Version "));
    let version = version.and_then(|rest| rest.split(',').next()).map(str::to_owned);
    let mut tlds = FxHashSet::default();
    for (line, tld) in (1..).zip(text.lines().map(str::trim)) {
        if tld.is_empty() || tld.starts_with('#') {
            continue;
        }
        if !is_tld(tld) {
            return Err(TableError::BadTld(line));
        }
        tlds.insert(tld.to_ascii_lowercase());
    }
    Ok((version, tlds))
}

/// Returns the TLDs with Specification 13 and a running contract.
fn brands(text: &str) -> Result<(Option<String>, FxHashSet<String>), TableError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Gtlds {
        #[serde(rename = "gTLDs")]
        gtlds: Vec<Gtld>,
        updated_on: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Gtld {
        #[serde(rename = "gTLD")]
        gtld: String,
        specification13: Option<bool>,
        contract_terminated: Option<bool>,
    }
    let Gtlds { gtlds, updated_on } =
        serde_json::from_str(text).map_err(|err| TableError::NotGtlds(err.to_string()))?;
    let updated = DateTime::<FixedOffset>::parse_from_str(&updated_on, "%Y-%m-%dT%H:%M:%S%.f%z");
    let updated = updated.or_else(|_| DateTime::parse_from_rfc3339(&updated_on)).ok();
    let version = updated.map(|at| at.with_timezone(&Utc).format("%Y%m%dT%H%M%SZ").to_string());
    let is_brand =
        |row: &Gtld| row.specification13 == Some(true) && row.contract_terminated != Some(true);
    let brands = gtlds.into_iter().filter(is_brand).map(|row| row.gtld.to_ascii_lowercase());
    let brands: FxHashSet<String> = brands.collect();
    match brands.iter().find(|tld| !is_tld(tld)) {
        Some(bad) => Err(TableError::NotGtlds(format!("`{}`", bad.escape_default()))),
        None => Ok((version, brands)),
    }
}

fn is_tld(text: &str) -> bool {
    (2..=63).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A table that this process uses instead of the compiled copy.
#[derive(Debug)]
pub struct InUse {
    pub sha256: String,
    pub version: Option<String>,
    /// Whether the settings name its file.
    pub is_fixed: bool,
}

static IN_USE: [OnceLock<InUse>; Table::ALL.len()] = [const { OnceLock::new() }; 3];
/// The delegated TLDs and the brand TLDs.
static TLDS: [OnceLock<FxHashSet<String>>; 2] = [const { OnceLock::new() }; 2];

/// Returns the table that this process uses; `None` for the compiled copy.
pub fn in_use(table: Table) -> Option<&'static InUse> {
    IN_USE[table as usize].get()
}

/// Returns the versions of the TLD tables that this process uses instead of the compiled copies.
/// (The Public Suffix List has its own entry in a manifest.)
pub fn versions() -> BTreeMap<String, String> {
    let version = |table: Table| Some((table.to_string(), in_use(table)?.version.clone()?));
    [Table::Delegated, Table::Gtlds].into_iter().filter_map(version).collect()
}

/// Returns the TLDs of the root zone, if they are known.
pub fn delegated_tlds() -> Option<&'static FxHashSet<String>> {
    TLDS[0].get()
}

/// Returns the brand TLDs of the table that replaces the compiled one, if any.
pub fn brand_tlds() -> Option<&'static FxHashSet<String>> {
    TLDS[1].get()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn today() -> Day {
        "2026-11-23".parse().expect("a day")
    }

    /// Returns a table of the compiled copy's size with these well-known suffixes.
    fn text(table: Table, well_known: &[&str]) -> String {
        let many = COMPILED[table as usize];
        let tlds = || well_known.iter().filter(|suffix| !suffix.contains('.'));
        match table {
            Table::Suffixes => {
                let rules: String = (0..many).map(|at| format!("s{at}.com\n")).collect();
                format!(
                    "// VERSION: 2026-11-20_08-12-33_UTC\n// ===BEGIN ICANN DOMAINS===\n{}\n{rules}\
                     // ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\nblogspot.com\n\
                     // ===END PRIVATE DOMAINS===\n",
                    well_known.join("\n")
                )
            }
            Table::Delegated => {
                let tlds = tlds().map(|tld| format!("{}\n", tld.to_uppercase()));
                let tlds: String = tlds.chain((0..many).map(|at| format!("XN--{at}\n"))).collect();
                format!("# Version 2026112300, Last Updated Mon Nov 23 07:07:01 2026 UTC\n{tlds}")
            }
            Table::Gtlds => {
                let row = |tld: &str, is_brand: bool| {
                    serde_json::json!({
                        "gTLD": tld, "specification13": is_brand, "contractTerminated": false,
                        "registryOperator": "Operator",
                    })
                };
                let mut rows: Vec<_> = tlds().map(|tld| row(tld, false)).collect();
                rows.extend((0..many).map(|at| row(&format!("brand{at}"), true)));
                rows.push(serde_json::json!({
                    "gTLD": "gone", "specification13": null, "contractTerminated": true,
                }));
                let updated = "2026-11-22T15:54:03.596+0000";
                serde_json::json!({ "gTLDs": rows, "updatedOn": updated, "version": 2 }).to_string()
            }
        }
    }

    fn checked(table: Table, text: &str) -> Result<String, String> {
        let parsed = Published::parse(table, text.as_bytes(), "sum".to_owned());
        let parsed = parsed.map_err(|err| err.to_string())?;
        parsed.check(today()).map(|it| it.as_str().to_owned()).map_err(|err| err.to_string())
    }

    #[test]
    fn whole_tables_are_accepted_with_their_versions() {
        for (table, version) in [
            (Table::Suffixes, "2026-11-20_08-12-33_UTC"),
            (Table::Delegated, "2026112300"),
            (Table::Gtlds, "20261122T155403Z"),
        ] {
            assert_eq!(checked(table, &text(table, &WELL_KNOWN)).as_deref(), Ok(version));
        }
        let version = |text| Version::parse(text).expect("a version");
        assert!(version("2026112301") > version("2026112300"));
        assert!(version("2024-01-01").is_outdated() && !version("2026112300").is_outdated());
        for bad in ["", "2026", "2", "20269912", "2026-11-20/x", "two"] {
            assert_eq!(Version::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn damaged_and_implausible_tables_are_refused() {
        for table in Table::ALL {
            let whole = text(table, &WELL_KNOWN);
            assert!(checked(table, &whole[..whole.len() / 2]).is_err(), "{table}: cut short");
            assert!(checked(table, "<!DOCTYPE html>").is_err(), "{table}: a page");
            assert!(checked(table, "").is_err(), "{table}: empty");
            let later = whole.replace("2026-11-2", "2031-11-2").replace("20261123", "20311123");
            assert!(checked(table, &later).is_err_and(|err| err.contains("ahead")), "{table}");
        }
        let without_com = text(Table::Suffixes, &WELL_KNOWN[1..]);
        assert!(checked(Table::Suffixes, &without_com).is_err_and(|err| err.contains("com")));
        let without_com = text(Table::Delegated, &WELL_KNOWN[1..]);
        assert!(checked(Table::Delegated, &without_com).is_err_and(|err| err.contains("com")));
        let closed = text(Table::Gtlds, &WELL_KNOWN).replace("brand7\"", "com\"");
        assert!(checked(Table::Gtlds, &closed).is_err_and(|err| err.contains("com")));
        let unversioned = text(Table::Suffixes, &WELL_KNOWN).replace("// VERSION", "// Version");
        assert!(checked(Table::Suffixes, &unversioned).is_err_and(|err| err.contains("version")));
    }
}
