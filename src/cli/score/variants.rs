//! Variants of a name; their scores show the cost of its hyphens, digits and suffix. Pure.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::vocab::name::{DomainName, to_unicode};

/// Suffixes under which a name is compared: the three original ones, the one popular with start-ups,
/// and a large country code.
const SUFFIXES: [&str; 5] = ["com", "net", "org", "io", "de"];

/// The change that makes a variant of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    NoHyphens,
    NoDigits,
    /// Another public suffix, without a leading dot.
    Suffix(&'static str),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::NoHyphens => f.write_str("without its hyphens"),
            Change::NoDigits => f.write_str("without its digits"),
            Change::Suffix(suffix) => write!(f, "in .{suffix}"),
        }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the distinct valid variants that differ from `name`.
pub fn variants(name: &DomainName) -> Vec<(Change, DomainName)> {
    let changes = [Change::NoHyphens, Change::NoDigits].into_iter();
    let changes = changes.chain(SUFFIXES.map(Change::Suffix));
    let mut made: Vec<(Change, DomainName)> = Vec::new();
    for change in changes {
        let Some(variant) = changed(name, change) else { continue };
        if variant != *name && made.iter().all(|(_, other)| *other != variant) {
            made.push((change, variant));
        }
    }
    made
}

/// Applies a change; `None` if the result is not a valid name.
fn changed(name: &DomainName, change: Change) -> Option<DomainName> {
    // Only visible hyphens and digits are removed, because the encoding of an A-label has some of
    // its own.
    let label = to_unicode(name.label());
    let (label, suffix) = match change {
        Change::NoHyphens => (label.replace('-', ""), name.tld()),
        Change::NoDigits => (without_digits(&label), name.tld()),
        Change::Suffix(suffix) => (label.into_owned(), suffix),
    };
    DomainName::parse(&format!("{label}.{suffix}")).ok()
}

/// Removes digits, and hyphens that only set off digits: `24-shop` becomes `shop`, `a-24-b` `a-b`.
fn without_digits(label: &str) -> String {
    let pieces: Vec<String> =
        label.split('-').map(|piece| piece.replace(char::is_numeric, "")).collect();
    let left: Vec<&str> =
        pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
    left.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants_of(name: &str) -> Vec<String> {
        let name = DomainName::parse(name).unwrap_or_else(|err| panic!("{name}: {err}"));
        variants(&name).iter().map(|(change, name)| format!("{name} {change}")).collect()
    }

    const ELSEWHERE: usize = SUFFIXES.len() - 1;

    #[test]
    fn a_plain_name_only_has_variants_under_other_suffixes() {
        let expected =
            ["solar.net in .net", "solar.org in .org", "solar.io in .io", "solar.de in .de"];
        assert_eq!(variants_of("solar.com"), expected);
        let abroad = variants_of("solar.co.uk");
        assert_eq!((abroad.len(), abroad[0].as_str()), (SUFFIXES.len(), "solar.com in .com"));
    }

    #[test]
    fn hyphens_and_digits_are_removed_separately() {
        for (name, without_hyphens, without_digits) in [
            ("solar-panel24.com", "solarpanel24.com", "solar-panel.com"),
            ("24-shop.com", "24shop.com", "shop.com"),
            ("a-24-b.com", "a24b.com", "a-b.com"),
            ("best-4-u2.com", "best4u2.com", "best-u.com"),
            ("łódź-24.com", "łódź24.com", "łódź.com"),
        ] {
            let made = variants_of(name);
            let written = |name| DomainName::parse(name).expect("a name");
            let hyphens = format!("{} without its hyphens", written(without_hyphens));
            let digits = format!("{} without its digits", written(without_digits));
            assert_eq!(made[..2], [hyphens, digits], "{name}");
            assert_eq!(made.len(), 2 + ELSEWHERE, "{name}: {made:?}");
        }
    }

    #[test]
    fn invalid_and_identical_variants_are_omitted() {
        // Without its digits a number would not be a name, and the hyphens of an A-label are not
        // visible.
        for name in ["365.com", "münchen.com", "x.com"] {
            assert_eq!(variants_of(name).len(), ELSEWHERE, "{name}");
        }
        // `1-2` is valid without hyphens, but not without digits.
        assert_eq!(variants_of("1-2.com")[..2], ["12.com without its hyphens", "1-2.net in .net"]);
    }
}
