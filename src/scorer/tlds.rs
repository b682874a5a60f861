//! Weights of public suffixes (`data/scorer/tlds.csv`), and those that are not open to the public
//! (`data/scorer/closed.txt`).

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Caps;
use super::percent::Percent;

static TABLE: &str = include_str!("../../data/scorer/tlds.csv");
static CLOSED: &str = include_str!("../../data/scorer/closed.txt");

const COUNTRY_CODE: Percent = Percent::clamped(40);
const SECOND_LEVEL: Percent = Percent::clamped(30);
const IDN_SUFFIX: Percent = Percent::clamped(25);
const NEW_GENERIC: Percent = Percent::clamped(20);

/// Markets that value names differently: most names under `ai` are words, those under `pl` are Polish.
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
    /// All others, most of which are words.
    New,
    /// `pl` and the suffixes below it.
    Polish,
}

impl SuffixClass {
    /// Number of classes.
    pub const COUNT: usize = 6;
    /// Names in `data/scorer/model.txt`, by number.
    pub const NAMES: [&str; SuffixClass::COUNT] =
        ["com", "generic", "country", "repurposed", "new", "polish"];

    /// Class of a public suffix.
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

    /// Position in tables.
    pub fn number(self) -> usize {
        self as usize
    }
}

/// Weights of public suffixes.
pub struct TldWeights {
    listed: FxHashMap<&'static str, Percent>,
    /// Suffixes under which the public cannot register.
    closed: FxHashSet<&'static str>,
}

impl TldWeights {
    /// The table the program was built with.
    pub fn load() -> TldWeights {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        let listed = rows.filter_map(|row| {
            let (suffix, weight) = row.split_once(',')?;
            Some((suffix, Percent::clamped(weight.parse().ok()?)))
        });
        let closed = CLOSED.lines().filter(|line| !line.starts_with('#'));
        TldWeights { listed: listed.collect(), closed: closed.collect() }
    }

    /// The cap of a suffix under which the public cannot register.
    pub fn caps(&self, tld: &str) -> Caps {
        Caps::NOT_PUBLIC.when(self.closed.contains(tld))
    }

    /// Weight of a suffix: 1.00 for `com`; a default by kind for suffixes without a row.
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
