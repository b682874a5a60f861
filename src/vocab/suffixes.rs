//! Public suffixes: the list compiled in by `psl`, or a newer one that replaces it for the whole
//! process.

use std::sync::OnceLock;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use psl::{Psl, Type};
use rustc_hash::FxHashMap;

/// The list that replaces the compiled one.
static INSTALLED: OnceLock<SuffixList> = OnceLock::new();

/// Suffix of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suffix {
    /// Length in bytes.
    pub len: usize,
    /// Section that contains the rule of the suffix; `None` if the suffix is a last label without a
    /// rule.
    pub section: Option<Type>,
}

/// A Public Suffix List in the format of <https://publicsuffix.org/list/>.
#[derive(Debug)]
pub struct SuffixList {
    /// SHA-256 of the file, in hex.
    sha256: String,
    /// Rules by domain in A-label form.
    rules: FxHashMap<String, Rules>,
}

/// Sections of the rules for a domain.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// `co.uk`.
    exact: Option<Type>,
    /// `*.ck`: every name directly below it.
    below: Option<Type>,
    /// `!www.ck`: not a suffix, despite `*.ck`.
    exception: Option<Type>,
}

/// Reason why a text is not a Public Suffix List.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuffixListError {
    #[error("line {line}: `{rule}` is not a suffix rule")]
    BadRule { line: usize, rule: String },
    #[error(
        "no complete section `===BEGIN {0} DOMAINS===`; fetch the file again from \
         https://publicsuffix.org/list/public_suffix_list.dat"
    )]
    Incomplete(&'static str),
}

impl SuffixList {
    /// Parses a list; `sha256` identifies it.
    ///
    /// # Errors
    /// A section is missing or cut short, or a line is not a rule.
    pub fn parse(text: &str, sha256: String) -> Result<SuffixList, SuffixListError> {
        let mut list = SuffixList { sha256, rules: FxHashMap::default() };
        for (name, section) in [("ICANN", Type::Icann), ("PRIVATE", Type::Private)] {
            let begin = format!("// ===BEGIN {name} DOMAINS===");
            let end = format!("// ===END {name} DOMAINS===");
            let mut lines = (1..).zip(text.lines()).skip_while(|(_, line)| line.trim() != begin);
            loop {
                let (number, line) = lines.next().ok_or(SuffixListError::Incomplete(name))?;
                if line.trim() == end {
                    break;
                }
                let rule = line.split_whitespace().next().unwrap_or_default();
                if !rule.is_empty() && !rule.starts_with("//") && list.add(rule, section).is_none()
                {
                    let rule = rule.chars().take(80).collect();
                    return Err(SuffixListError::BadRule { line: number, rule });
                }
            }
        }
        Ok(list)
    }

    fn add(&mut self, rule: &str, section: Type) -> Option<()> {
        let (domain, slot): (_, fn(&mut Rules) -> &mut Option<Type>) =
            match (rule.strip_prefix('!'), rule.strip_prefix("*.")) {
                (Some(domain), _) => (domain, |rules| &mut rules.exception),
                (None, Some(domain)) => (domain, |rules| &mut rules.below),
                (None, None) => (rule, |rules| &mut rules.exact),
            };
        let ascii = Uts46::new()
            .to_ascii(domain.as_bytes(), AsciiDenyList::STD3, Hyphens::Allow, DnsLength::Verify)
            .ok()?;
        *slot(self.rules.entry(ascii.into_owned()).or_default()) = Some(section);
        Some(())
    }

    /// Returns the suffix of a name in lower-case A-label form, which may be the whole name.
    fn find(&self, name: &str) -> Suffix {
        let mut rest = name;
        loop {
            let parent = rest.split_once('.').map(|(_, parent)| parent);
            let rules = self.rules.get(rest).copied().unwrap_or_default();
            let below = parent.and_then(|parent| self.rules.get(parent)?.below);
            if let (Some(parent), Some(_)) = (parent, rules.exception) {
                return Suffix { len: parent.len(), section: rules.exception };
            }
            match (rules.exact.or(below), parent) {
                (None, Some(parent)) => rest = parent,
                (section, _) => return Suffix { len: rest.len(), section },
            }
        }
    }

    /// Returns the number of domains with a rule.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns true if the list has no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns true if names can be registered below this ICANN suffix.
    pub fn is_suffix(&self, suffix: &str) -> bool {
        let found = self.find(&format!("example.{suffix}"));
        found == Suffix { len: suffix.len(), section: Some(Type::Icann) }
    }

    /// Uses the list from now on. Only the first call has an effect.
    pub fn install(self) {
        let _ = INSTALLED.set(self);
    }
}

/// Returns the SHA-256 of the installed list; `None` for the compiled one.
pub fn installed() -> Option<&'static str> {
    INSTALLED.get().map(|list| list.sha256.as_str())
}

/// Returns the suffix of a name in lower-case A-label form, which may be the whole name.
pub fn find(name: &str) -> Suffix {
    match INSTALLED.get() {
        Some(list) => list.find(name),
        None => {
            let found = psl::List.find(name.as_bytes().rsplit(|&byte| byte == b'.'));
            Suffix { len: found.len, section: found.typ }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "// a comment\n// ===BEGIN ICANN DOMAINS===\ncom\nuk\nco.uk // trailing\n\
                        *.ck\n!www.ck\n香港\n个人.香港\njp\n*.kawasaki.jp\n!city.kawasaki.jp\n\
                        // ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\nblogspot.com\n\
                        // ===END PRIVATE DOMAINS===\n";

    fn list(text: &str) -> Result<SuffixList, SuffixListError> {
        SuffixList::parse(text, "sum".to_owned())
    }

    #[test]
    fn every_kind_of_rule_is_followed() {
        let list = list(LIST).expect("a list");
        let (icann, private) = (Some(Type::Icann), Some(Type::Private));
        for (name, suffix, section) in [
            ("example.com", "com", icann),
            ("a.example.co.uk", "co.uk", icann),
            ("example.uk", "uk", icann),
            ("uk", "uk", icann),
            ("a.b.ck", "b.ck", icann),
            ("www.ck", "ck", icann),
            ("a.www.ck", "ck", icann),
            ("x.xn--ciqpn.xn--j6w193g", "xn--ciqpn.xn--j6w193g", icann),
            ("x.city.kawasaki.jp", "kawasaki.jp", icann),
            ("x.other.kawasaki.jp", "other.kawasaki.jp", icann),
            ("kawasaki.jp", "jp", icann),
            ("a.blogspot.com", "blogspot.com", private),
            ("example.unknown", "unknown", None),
        ] {
            assert_eq!(list.find(name), Suffix { len: suffix.len(), section }, "{name}");
        }
    }

    #[test]
    fn an_incomplete_list_is_refused() {
        let cut = LIST.find("// ===END PRIVATE").expect("there");
        assert_eq!(list(&LIST[..cut]).err(), Some(SuffixListError::Incomplete("PRIVATE")));
        assert_eq!(list("com\nnet\n").err(), Some(SuffixListError::Incomplete("ICANN")));
        let bad = LIST.replace("*.ck", "a..ck");
        let rule = "a..ck".to_owned();
        assert_eq!(list(&bad).err(), Some(SuffixListError::BadRule { line: 6, rule }));
    }

    /// Debian's list, if it is installed, agrees with the compiled one on common suffixes.
    #[test]
    fn a_whole_list_is_read() {
        let path = "/usr/share/publicsuffix/public_suffix_list.dat";
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let list = list(&text).expect("a list");
        assert!(list.rules.len() > 5_000);
        for name in [
            "a.com",
            "a.co.uk",
            "a.b.ck",
            "www.ck",
            "a.xn--p1ai",
            "a.city.kawasaki.jp",
            "a.github.io",
        ] {
            assert_eq!(list.find(name), find(name), "{name}");
        }
    }
}
