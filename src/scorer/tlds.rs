//! What a public suffix is worth, from the reviewed table in `data/scorer/tlds.csv`.

use rustc_hash::FxHashMap;

use super::percent::Percent;

static TABLE: &str = include_str!("../../data/scorer/tlds.csv");

const COUNTRY_CODE: Percent = Percent::clamped(40);
const SECOND_LEVEL: Percent = Percent::clamped(30);
const IDN_SUFFIX: Percent = Percent::clamped(25);
const NEW_GENERIC: Percent = Percent::clamped(20);

/// Markets that judge names differently: under `ai` nearly every name is a word, under `pl` words
/// are Polish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuffixClass {
    #[default]
    Com,
    /// `net` and `org`.
    Generic,
    /// Countries' suffixes.
    Country,
    /// Countries' suffixes that the world uses for something else: `ai`, `io`, `tv`.
    Repurposed,
    /// All others, most of them a word themselves.
    New,
    /// `pl` and what lies under it.
    Polish,
}

impl SuffixClass {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// As `data/scorer/model.txt` calls them, by number.
    pub const NAMES: [&str; SuffixClass::COUNT] =
        ["com", "generic", "country", "repurposed", "new", "polish"];

    /// That of a public suffix.
    pub fn of(tld: &str) -> SuffixClass {
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

    /// Its place in tables.
    pub fn number(self) -> usize {
        self as usize
    }
}

/// Weights of public suffixes.
pub struct TldWeights {
    listed: FxHashMap<&'static str, Percent>,
}

impl TldWeights {
    /// The table the program was built with.
    pub fn load() -> TldWeights {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        let listed = rows.filter_map(|row| {
            let (suffix, weight) = row.split_once(',')?;
            Some((suffix, Percent::clamped(weight.parse().ok()?)))
        });
        TldWeights { listed: listed.collect() }
    }

    /// 1.00 for `com`; for a suffix without a row, by its kind.
    pub fn of(&self, tld: &str) -> Percent {
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
    fn every_row_is_read() {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).count() - 1;
        let weights = TldWeights::load();
        assert_eq!(weights.listed.len(), rows, "a row is malformed or listed twice");
        for suffix in weights.listed.keys() {
            let name = crate::vocab::name::DomainName::parse(&format!("example.{suffix}"));
            assert!(name.is_ok_and(|name| name.tld() == *suffix), "{suffix} is no suffix");
        }
    }

    #[test]
    fn com_is_the_most_and_kinds_have_their_own() {
        let weights = TldWeights::load();
        let of = |tld| weights.of(tld).get();
        assert_eq!(of("com"), 100);
        assert!(weights.listed.values().filter(|weight| weight.get() == 100).count() == 1);
        assert_eq!((of("tl"), of("com.pe"), of("xn--p1ai"), of("plumbing")), (40, 30, 25, 20));
    }
}
