//! The key of a row: what its facts are about.

use std::fmt;

use crate::vocab::fact::KeyKind;
use crate::vocab::name::{DomainName, NameError, host_of_address};

/// Maximum characters of a word or several.
const WORD_CHARS_MAX: usize = 80;

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Domain(DomainName),
    /// A label in A-label form.
    Label(String),
    /// Words in lower case, separated by single blanks.
    Word(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Domain(name) => name.fmt(f),
            Key::Label(text) | Key::Word(text) => f.write_str(text),
        }
    }
}

/// A cell that is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadKey {
    #[error("{0}")]
    Name(#[from] NameError),
    /// Facts of a part of a site may differ from those of the name.
    #[error("the key is a host below a name; did you mean {0}?")]
    Host(DomainName),
    #[error("the key is the address of a page; did you mean {0}?")]
    Page(DomainName),
    #[error("the key is not a label: {0}")]
    Label(NameError),
    #[error("the key is not one to {WORD_CHARS_MAX} characters without control characters")]
    Word,
}

impl Key {
    pub(crate) fn parse(text: &str, kind: KeyKind) -> Result<Key, BadKey> {
        match kind {
            KeyKind::Domain => domain(text.trim()).map(Key::Domain),
            KeyKind::Label => {
                // Any suffix will do: it is not kept.
                let name = DomainName::parse(&format!("{}.com", text.trim()));
                name.map(|name| Key::Label(name.label().to_owned())).map_err(BadKey::Label)
            }
            KeyKind::Word => {
                let words: Vec<&str> = text.split_whitespace().collect();
                let word = words.join(" ").to_lowercase();
                let fits = (1..=WORD_CHARS_MAX).contains(&word.chars().count());
                let is_plain = fits && !text.trim().contains(char::is_control);
                is_plain.then_some(Key::Word(word)).ok_or(BadKey::Word)
            }
        }
    }
}

/// Reads a name, `www` below it, or the address of its root: `https://www.brightmesa.com/`.
fn domain(text: &str) -> Result<DomainName, BadKey> {
    let host = host_of_address(text).unwrap_or(text);
    let is_www = |host: &&str| host.get(..4).is_some_and(|www| www.eq_ignore_ascii_case("www."));
    let below_www = Some(host).filter(is_www).map(|host| DomainName::parse(&host[4..]));
    let name = match (DomainName::parse(host), below_www) {
        (Err(_), Some(Ok(name))) => name,
        (Err(NameError::BelowRegistrable), _) => {
            return Err(BadKey::Host(DomainName::of_host(host)?));
        }
        (name, _) => name?,
    };
    let after = text.split_once("//").map_or(text, |(_, after)| after);
    let path = after.split_once(['/', '?', '#', '\\']).map_or("", |(_, path)| path);
    if path.is_empty() { Ok(name) } else { Err(BadKey::Page(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_name_are_the_name() {
        for (text, name) in [
            ("brightmesa.com", "brightmesa.com"),
            (" BrightMesa.COM. ", "brightmesa.com"),
            ("brightmesa.com/", "brightmesa.com"),
            ("http://brightmesa.com", "brightmesa.com"),
            ("https://www.BrightMesa.com:443/", "brightmesa.com"),
            ("WWW.brightmesa.com", "brightmesa.com"),
            ("www.com", "www.com"),
            ("münchen-helden.de", "xn--mnchen-helden-wob.de"),
        ] {
            let key = Key::parse(text, KeyKind::Domain).map(|key| key.to_string());
            assert_eq!(key.as_deref(), Ok(name), "{text}");
        }
    }

    #[test]
    fn parts_of_a_site_are_refused_with_the_name() {
        let name = || DomainName::parse("brightmesa.com").expect("a name");
        for (text, why) in [
            ("blog.brightmesa.com", BadKey::Host(name())),
            ("https://a.b.brightmesa.com/x", BadKey::Host(name())),
            ("www.blog.brightmesa.com", BadKey::Host(name())),
            ("brightmesa.com/shop", BadKey::Page(name())),
            ("https://brightmesa.com/?a=1", BadKey::Page(name())),
            ("", BadKey::Name(NameError::Empty)),
            ("joe@brightmesa.com", BadKey::Name(NameError::BadCharacter('@'))),
            ("=brightmesa.com", BadKey::Name(NameError::BadCharacter('='))),
            ("com", BadKey::Name(NameError::IsPublicSuffix)),
            ("me.github.io", BadKey::Name(NameError::PrivateSuffix)),
        ] {
            assert_eq!(Key::parse(text, KeyKind::Domain), Err(why), "{text}");
        }
        let said =
            Key::parse("blog.brightmesa.com", KeyKind::Domain).expect_err("a host").to_string();
        assert_eq!(said, "the key is a host below a name; did you mean brightmesa.com?");
    }

    #[test]
    fn labels_and_words_are_keys() {
        let read = |text, kind| Key::parse(text, kind).ok().map(|key| key.to_string());
        assert_eq!(read(" BrightMesa ", KeyKind::Label).as_deref(), Some("brightmesa"));
        assert_eq!(read("bücher", KeyKind::Label).as_deref(), Some("xn--bcher-kva"));
        assert_eq!(read("two.labels", KeyKind::Label), None);
        assert_eq!(read("Car  Insurance", KeyKind::Word).as_deref(), Some("car insurance"));
        assert_eq!(read("  ", KeyKind::Word), None);
        assert_eq!(read("two\nlines", KeyKind::Word), None);
        assert_eq!(read(&"a".repeat(WORD_CHARS_MAX + 1), KeyKind::Word), None);
    }
}
