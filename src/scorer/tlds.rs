//! Weights of public suffixes (`data/scorer/tlds.csv`), those that are not open to the public
//! (`data/scorer/closed.txt`), and those under which the registry reserves labels of one character
//! (`data/scorer/reserved.csv`). Fetched tables replace the compiled-in list of brand TLDs. TLDs that
//! have left the root zone also count as closed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Caps;
use super::percent::Percent;
use crate::vocab::tables;

static TABLE: &str = include_str!("../../data/scorer/tlds.csv");
static CLOSED: &str = include_str!("../../data/scorer/closed.txt");
static RESERVED: &str = include_str!("../../data/scorer/reserved.csv");
/// Start of the line above the brand TLDs in [`CLOSED`].
const BRANDS: &str = "# Brand TLDs";

const COUNTRY_CODE: Percent = Percent::clamped(40);
const SECOND_LEVEL: Percent = Percent::clamped(30);
const IDN_SUFFIX: Percent = Percent::clamped(25);
const NEW_GENERIC: Percent = Percent::clamped(20);

/// Classes of suffixes; each class has a market that values names differently: most names under `ai`
/// are words, those under `pl` are Polish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuffixClass {
    #[default]
    Com,
    /// `net` and `org`.
    Generic,
    /// Country-code suffixes.
    Country,
    /// Country-code suffixes in generic use: `ai`, `io`, `tv`.
    Repurposed,
    /// All other suffixes, most of which are words.
    New,
    /// `pl` and the suffixes below it.
    Polish,
}

impl SuffixClass {
    /// Number of classes.
    pub const COUNT: usize = 6;
    /// Names used in `data/scorer/model.txt`, by number.
    pub const NAMES: [&str; SuffixClass::COUNT] =
        ["com", "generic", "country", "repurposed", "new", "polish"];

    /// Returns the class of a public suffix.
    pub fn for_tld(tld: &str) -> SuffixClass {
        let last = tld.rsplit('.').next().unwrap_or(tld);
        match tld {
            "com" => SuffixClass::Com,
            "net" | "org" => SuffixClass::Generic,
            "ai" | "io" | "co" | "me" | "tv" | "cc" => SuffixClass::Repurposed,
            _ if last == "pl" => SuffixClass::Polish,
            _ if last.len() == 2 => SuffixClass::Country,
            _ => SuffixClass::New,
        }
    }

    /// Index of the class in tables.
    pub fn number(self) -> usize {
        self as usize
    }
}

/// Weights of public suffixes.
pub struct TldWeights {
    listed: FxHashMap<&'static str, Percent>,
    /// Suffixes that are not open to registrations by the public.
    closed: FxHashSet<&'static str>,
    /// Suffixes that reserve labels of one character, and the labels that exist nevertheless.
    reserved: FxHashMap<&'static str, &'static str>,
    /// All existing TLDs, if a table of them is in use.
    delegated: Option<&'static FxHashSet<String>>,
}

impl TldWeights {
    /// Loads the table compiled into the program, and the tables in use.
    pub fn load() -> TldWeights {
        TldWeights::with(tables::brand_tlds(), tables::delegated_tlds())
    }

    fn with(
        brands: Option<&'static FxHashSet<String>>,
        delegated: Option<&'static FxHashSet<String>>,
    ) -> TldWeights {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        let listed = rows.filter_map(|row| {
            let (suffix, weight) = row.split_once(',')?;
            Some((suffix, Percent::clamped(weight.parse().ok()?)))
        });
        let (others, compiled) = CLOSED.split_once(BRANDS).unwrap_or((CLOSED, ""));
        let names = |text: &'static str| text.lines().filter(|line| !line.starts_with('#'));
        let mut closed: FxHashSet<&'static str> = names(others).collect();
        match brands {
            Some(brands) => closed.extend(brands.iter().map(String::as_str)),
            // The first line is the end of the heading.
            None => closed.extend(names(compiled).skip(1)),
        }
        let reserved = RESERVED.lines().filter(|line| !line.starts_with('#')).skip(1);
        let reserved = reserved.filter_map(|row| row.split_once(',')).collect();
        TldWeights { listed: listed.collect(), closed, reserved, delegated }
    }

    /// Returns the cap of a suffix that is not open to registrations by the public.
    pub fn caps(&self, tld: &str) -> Caps {
        let is_gone =
            |known: &FxHashSet<String>| !known.contains(tld.rsplit('.').next().unwrap_or(tld));
        let is_closed = self.closed.contains(tld) || self.delegated.is_some_and(is_gone);
        Caps::NOT_PUBLIC.when(is_closed)
    }

    /// Returns the cap of a label of one character that the registry reserves.
    pub fn reserved(&self, label: &str, tld: &str) -> Caps {
        let reserves = || self.reserved.get(tld).is_some_and(|existing| !existing.contains(label));
        Caps::RESERVED.when(label.len() == 1 && reserves())
    }

    /// Returns the weight of a suffix: 1.00 for `com`, and a default by kind for suffixes without a
    /// row.
    pub fn weight(&self, tld: &str) -> Percent {
        self.listed.get(tld).copied().unwrap_or_else(|| by_kind(tld))
    }
}

fn by_kind(tld: &str) -> Percent {
    match tld {
        _ if tld.split('.').any(|label| label.starts_with("xn--")) => IDN_SUFFIX,
        _ if tld.contains('.') => SECOND_LEVEL,
        _ if tld.len() == 2 => COUNTRY_CODE,
        _ => NEW_GENERIC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_valid() {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).count() - 1;
        let weights = TldWeights::load();
        assert_eq!(weights.listed.len(), rows, "a row is malformed or listed twice");
        for suffix in weights.listed.keys() {
            let name = crate::vocab::name::DomainName::parse(&format!("example.{suffix}"));
            assert!(name.is_ok_and(|name| name.tld() == *suffix), "{suffix} is not a suffix");
        }
    }

    #[test]
    fn closed_suffixes_have_a_cap() {
        let weights = TldWeights::load();
        for closed in ["gov", "gv.at", "monash", "ac.uk"] {
            assert_eq!(weights.caps(closed), Caps::NOT_PUBLIC, "{closed}");
        }
        for open in ["com", "edu.pl", "ac.nz", "law", "bond"] {
            assert_eq!(weights.caps(open), Caps::default(), "{open}");
        }
    }

    #[test]
    fn labels_of_one_character_are_reserved_under_some_suffixes() {
        let weights = TldWeights::load();
        let rows = RESERVED.lines().filter(|line| !line.starts_with('#')).count() - 1;
        assert_eq!(weights.reserved.len(), rows, "a row is malformed or listed twice");
        for (label, tld) in [("a", "com"), ("7", "net"), ("q", "jobs"), ("x", "eu")] {
            assert_eq!(weights.reserved(label, tld), Caps::RESERVED, "{label}.{tld}");
        }
        for (label, tld) in [("x", "com"), ("i", "net"), ("a", "io"), ("0", "vip"), ("ab", "com")] {
            assert_eq!(weights.reserved(label, tld), Caps::default(), "{label}.{tld}");
        }
    }

    #[test]
    fn fetched_tables_replace_the_compiled_brands() {
        let set = |tlds: &[&str]| -> &'static FxHashSet<String> {
            Box::leak(Box::new(tlds.iter().map(|&tld| tld.to_owned()).collect()))
        };
        let all = set(&["com", "uk", "monash", "newbrand", "gov"]);
        let weights = TldWeights::with(Some(set(&["newbrand"])), Some(all));
        for closed in ["gov", "gov.uk", "newbrand", "info"] {
            assert_eq!(weights.caps(closed), Caps::NOT_PUBLIC, "{closed}");
        }
        for open in ["com", "co.uk", "monash"] {
            assert_eq!(weights.caps(open), Caps::default(), "{open}");
        }
    }

    #[test]
    fn com_weighs_most_and_kinds_have_defaults() {
        let weights = TldWeights::load();
        let weight = |tld| weights.weight(tld).get();
        assert_eq!(weight("com"), 100);
        assert!(weights.listed.values().filter(|weight| weight.get() == 100).count() == 1);
        assert_eq!(
            (weight("tl"), weight("com.pe"), weight("xn--p1ai"), weight("plumbing")),
            (40, 30, 25, 20)
        );
    }
}
