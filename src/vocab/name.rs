//! Registrable domain names in canonical form (`data/docs/api.md`, Names).
//!
//! [`DomainName::parse`] accepts any spelling that people and feeds use. Public suffixes are the
//! ICANN section of the Public Suffix List ([`suffixes`]); `idna` maps Unicode by UTS 46
//! (non-transitional, STD3).

use std::borrow::Cow;
use std::fmt;

use compact_str::CompactString;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use psl::Type;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::LABEL_CHARS_MAX;
use crate::suffixes::{self, Suffix};

/// Maximum bytes of a name, without the trailing dot (RFC 1035 §2.3.4).
pub const NAME_OCTETS_MAX: usize = 253;

/// A registrable domain name: one label plus an ICANN public suffix, in lower-case A-label form.
///
/// Ordered by its bytes, which is the order of every file and response.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName {
    text: CompactString,
    /// Bytes of the registrable label. Invariant: `text[label_len]` is the dot before the suffix.
    label_len: u8,
}

/// Reason why a text is not a [`DomainName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name holds a NUL, control or white-space character")]
    ControlOrSpace,
    #[error("the name holds `{0}`; letters, digits, hyphens and dots are allowed")]
    BadCharacter(char),
    #[error("the name has an empty label (two dots in a row, or a leading dot)")]
    EmptyLabel,
    #[error("a label is longer than 63 bytes")]
    LabelTooLong,
    #[error("the name is longer than 253 bytes")]
    NameTooLong,
    #[error("a label starts or ends with a hyphen, or has hyphens in third and fourth place")]
    BadHyphens,
    #[error("the name is not a valid internationalised name (UTS 46)")]
    BadIdna,
    #[error("the name has a single label; a public suffix such as .com is missing")]
    SingleLabel,
    #[error("the last label is not in the Public Suffix List")]
    UnknownSuffix,
    #[error("the name is a public suffix itself")]
    IsPublicSuffix,
    #[error("the name lies under a private suffix (PRIVATE section of the Public Suffix List)")]
    PrivateSuffix,
    #[error("the name is a host below a registrable name")]
    BelowRegistrable,
}

impl NameError {
    /// Returns a stable code for counters and reject files.
    pub fn code(&self) -> &'static str {
        match self {
            NameError::Empty => "empty-name",
            NameError::ControlOrSpace => "control-or-space",
            NameError::BadCharacter(_) => "bad-character",
            NameError::EmptyLabel => "empty-label",
            NameError::LabelTooLong => "label-too-long",
            NameError::NameTooLong => "name-too-long",
            NameError::BadHyphens => "bad-hyphens",
            NameError::BadIdna => "bad-idna",
            NameError::SingleLabel => "single-label",
            NameError::UnknownSuffix => "unknown-suffix",
            NameError::IsPublicSuffix => "is-public-suffix",
            NameError::PrivateSuffix => "private-suffix",
            NameError::BelowRegistrable => "below-registrable",
        }
    }
}

impl DomainName {
    /// Parses any spelling of a name: case, surrounding white space and one trailing dot are
    /// ignored, and both U-labels and A-labels are accepted.
    ///
    /// # Errors
    /// The first rule that the text breaks; each has its own [`NameError`].
    pub fn parse(text: &str) -> Result<DomainName, NameError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        check_characters(text)?;
        let ascii = to_ascii(text)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        check_labels(name)?;
        let label_len = registrable_label_len(name)?;
        Ok(DomainName { text: CompactString::new(name), label_len })
    }

    /// Parses a name as people enter it. The URL of a page yields the name that is its host, or
    /// that its host lies below.
    ///
    /// # Errors
    /// As [`DomainName::parse`].
    pub fn parse_or_address(text: &str) -> Result<DomainName, NameError> {
        host_of_address(text).map_or_else(|| DomainName::parse(text), DomainName::of_host)
    }

    /// Parses a host, and returns the registrable name that equals the host or that the host lies
    /// below. A host below a private suffix does not belong to the owner of the suffix, so it has
    /// no name.
    ///
    /// # Errors
    /// As [`DomainName::parse`]: no part of the host is a name.
    pub fn of_host(host: &str) -> Result<DomainName, NameError> {
        let whole = DomainName::parse(host);
        let (mut parsed, mut rest) = (whole.clone(), host);
        while let (Err(err), Some((_, parent))) = (&parsed, rest.split_once('.')) {
            if *err == NameError::PrivateSuffix {
                return parsed;
            }
            (parsed, rest) = (DomainName::parse(parent), parent);
        }
        parsed.or(whole)
    }

    /// Wraps a name from a checksummed file, which [`DomainName::parse`] accepted when it was
    /// written. The Public Suffix List is not consulted again, because a suffix may have left it
    /// since.
    ///
    /// Returns `None` if `label_len` does not point at a dot or the text is not ASCII.
    pub fn from_stored(text: &[u8], label_len: u8) -> Option<DomainName> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
        let dot = text.as_bytes().get(usize::from(label_len));
        (dot == Some(&b'.') && label_len > 0)
            .then(|| DomainName { text: CompactString::new(text), label_len })
    }

    /// Returns true if the public suffixes in use still split a stored name at the same dot as when
    /// it was parsed.
    pub fn is_registrable(text: &str, label_len: u8) -> bool {
        registrable_label_len(text) == Ok(label_len)
    }

    /// Returns the whole name: `example.co.uk`, `xn--mnchen-3ya.de`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the registrable label in A-label form: `example`.
    pub fn label(&self) -> &str {
        &self.text[..usize::from(self.label_len)]
    }

    /// Returns the public suffix without a leading dot: `co.uk`.
    pub fn tld(&self) -> &str {
        &self.text[usize::from(self.label_len) + 1..]
    }

    /// Returns the length of [`DomainName::label`] in bytes, which is the offset of the dot before
    /// the suffix.
    pub fn label_len(&self) -> u8 {
        self.label_len
    }

    /// Returns the number of characters of the registrable label, for an IDN in its Unicode form: 1
    /// to 63.
    pub fn length(&self) -> u8 {
        if !is_a_label(self.label()) {
            return self.label_len;
        }
        let chars = to_unicode(self.label()).chars().count();
        u8::try_from(chars).unwrap_or(LABEL_CHARS_MAX).min(LABEL_CHARS_MAX)
    }

    /// Returns true if any label is an A-label, so that [`DomainName::unicode`] differs.
    pub fn is_idn(&self) -> bool {
        self.text.split('.').any(is_a_label)
    }

    /// Returns the name with every label in Unicode.
    pub fn unicode(&self) -> Cow<'_, str> {
        to_unicode(&self.text)
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Serialises as text in JSON and other readable formats. Binary formats, such as the journal, also
/// hold the length of the label, because the list of public suffixes changes.
impl Serialize for DomainName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&self.text)
        } else {
            (self.label_len, self.as_str()).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for DomainName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DomainName, D::Error> {
        if deserializer.is_human_readable() {
            let text = <Cow<'de, str>>::deserialize(deserializer)?;
            return DomainName::parse_or_address(&text).map_err(D::Error::custom);
        }
        let (label_len, text) = <(u8, CompactString)>::deserialize(deserializer)?;
        Some(text)
            .filter(|text| text.len() <= NAME_OCTETS_MAX)
            .and_then(|text| DomainName::from_stored(text.as_bytes(), label_len))
            .ok_or_else(|| D::Error::custom("not a name with a label of that length"))
    }
}

/// Prefix of an A-label.
pub const A_LABEL: &str = "xn--";

/// Returns true for a label in `xn--` form.
pub fn is_a_label(label: &str) -> bool {
    label.starts_with(A_LABEL)
}

/// Decodes the A-labels of a domain or label; returns it unchanged if that fails.
pub fn to_unicode(name: &str) -> Cow<'_, str> {
    if name.is_ascii() && !name.contains(A_LABEL) {
        return Cow::Borrowed(name);
    }
    let (text, outcome) =
        Uts46::new().to_unicode(name.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
    match outcome {
        Ok(()) => text,
        Err(_) => Cow::Borrowed(name),
    }
}

/// Returns the host in a URL: `https://me@www.example.com:8080/path?x#y`, or without a scheme,
/// `example.com/`. `None` if the text is not a URL.
pub fn host_of_address(text: &str) -> Option<&str> {
    let text = text.trim();
    let (scheme, rest) = match text.split_once("//") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let is_web = |scheme: &str| {
        ["", "http:", "https:"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    };
    if scheme.is_some_and(|scheme| !is_web(scheme)) {
        return None;
    }
    let end = rest.find(['/', '?', '#', '\\']);
    let authority = &rest[..end.unwrap_or(rest.len())];
    let is_address = scheme.is_some() || end.is_some() && authority.contains('.');
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    is_address.then_some(host)
}

fn check_characters(text: &str) -> Result<(), NameError> {
    for char in text.chars() {
        if char.is_control() || char.is_whitespace() {
            return Err(NameError::ControlOrSpace);
        }
        if char.is_ascii() && !char.is_ascii_alphanumeric() && char != '-' && char != '.' {
            return Err(NameError::BadCharacter(char));
        }
    }
    Ok(())
}

/// Converts a name to lower-case A-label form, which may keep one trailing dot.
fn to_ascii(text: &str) -> Result<Cow<'_, str>, NameError> {
    let plain = text.is_ascii()
        && !text
            .split('.')
            .any(|label| label.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(A_LABEL)));
    if plain {
        let lower = text.bytes().all(|byte| !byte.is_ascii_uppercase());
        return Ok(if lower { text.into() } else { text.to_ascii_lowercase().into() });
    }
    let convert = |hyphens| {
        Uts46::new().to_ascii(text.as_bytes(), AsciiDenyList::STD3, hyphens, DnsLength::Ignore)
    };
    convert(Hyphens::Check).map_err(|_| match convert(Hyphens::Allow) {
        Ok(_) => NameError::BadHyphens,
        Err(_) => NameError::BadIdna,
    })
}

fn check_labels(name: &str) -> Result<(), NameError> {
    if name.len() > NAME_OCTETS_MAX {
        return Err(NameError::NameTooLong);
    }
    for label in name.split('.') {
        let bytes = label.as_bytes();
        if bytes.is_empty() {
            return Err(NameError::EmptyLabel);
        }
        if bytes.len() > usize::from(LABEL_CHARS_MAX) {
            return Err(NameError::LabelTooLong);
        }
        let inner = bytes.get(2..4) == Some(b"--") && !is_a_label(label);
        if bytes[0] == b'-' || bytes[bytes.len() - 1] == b'-' || inner {
            return Err(NameError::BadHyphens);
        }
    }
    Ok(())
}

/// Returns the length in bytes of the label before the public suffix.
fn registrable_label_len(name: &str) -> Result<u8, NameError> {
    if !name.contains('.') {
        let known = suffixes::find(name).section.is_some();
        return Err(if known { NameError::IsPublicSuffix } else { NameError::SingleLabel });
    }
    let suffix = suffixes::find(name);
    let suffix_len = match suffix.section {
        Some(Type::Icann) => suffix.len,
        Some(Type::Private) => icann_suffix_above(name, suffix).ok_or(NameError::PrivateSuffix)?,
        None => return Err(NameError::UnknownSuffix),
    };
    if suffix_len >= name.len() {
        return Err(NameError::IsPublicSuffix);
    }
    let label = &name[..name.len() - suffix_len - 1];
    if label.contains('.') {
        return Err(NameError::BelowRegistrable);
    }
    Ok(u8::try_from(label.len()).expect("labels are at most 63 bytes"))
}

/// Returns the length of the ICANN suffix directly above a name that is itself a private suffix,
/// such as `uk.com`. The name was registered there, so it can drop.
fn icann_suffix_above(name: &str, private: Suffix) -> Option<usize> {
    let (_, parent) = name.split_once('.').filter(|_| private.len == name.len())?;
    let above = suffixes::find(parent);
    (above == Suffix { len: parent.len(), section: Some(Type::Icann) }).then_some(parent.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<String, NameError> {
        DomainName::parse(text).map(|name| name.to_string())
    }

    #[test]
    fn spellings_of_a_name_are_one_name() {
        for text in [
            "münchen.de",
            "MÜNCHEN.DE",
            " xn--mnchen-3ya.de. ",
            "XN--MNCHEN-3YA.de",
            "mu\u{308}nchen.de",
            "münchen。de",
            "ｍünchen.de",
        ] {
            assert_eq!(parse(text), Ok("xn--mnchen-3ya.de".into()), "{text}");
        }
        assert_eq!(parse("straße.de"), Ok("xn--strae-oqa.de".into()), "non-transitional");
        assert_eq!(parse("Example.CO.uk"), Ok("example.co.uk".into()));
        assert_eq!(parse("0--0.ml"), Ok("0--0.ml".into()));
        assert_eq!(parse("пример.рф"), Ok("xn--e1afmkfd.xn--p1ai".into()));
    }

    #[test]
    fn a_name_is_split_into_its_parts() {
        let name = DomainName::parse("münchen.co.uk").expect("valid");
        assert_eq!((name.label(), name.tld()), ("xn--mnchen-3ya", "co.uk"));
        assert_eq!((name.length(), name.is_idn()), (7, true));
        assert_eq!(name.unicode(), "münchen.co.uk");
        let name = DomainName::parse("example.рф").expect("valid");
        assert_eq!((name.length(), name.is_idn(), name.tld()), (7, true, "xn--p1ai"));
        let stored = DomainName::from_stored(name.as_str().as_bytes(), name.label_len());
        assert_eq!(stored, Some(name));
        assert_eq!(DomainName::from_stored(b"example.com", 6), None);
    }

    #[test]
    fn hosts_count_for_their_registrable_name() {
        for (host, name) in [
            ("www.netflix.com", Ok("netflix.com")),
            ("Netflix.com", Ok("netflix.com")),
            ("_dmarc.a--b.example.co.uk.", Ok("example.co.uk")),
            ("a.b.c.xn--mnchen-3ya.de", Ok("xn--mnchen-3ya.de")),
            ("com", Err(NameError::IsPublicSuffix)),
            ("co.uk", Err(NameError::IsPublicSuffix)),
            ("someone.github.io", Err(NameError::PrivateSuffix)),
            ("_dmarc.someone.github.io", Err(NameError::PrivateSuffix)),
            ("github.io", Ok("github.io")),
            ("router.lan", Err(NameError::UnknownSuffix)),
            ("a_b.com", Err(NameError::BadCharacter('_'))),
        ] {
            let found = DomainName::of_host(host).map(|name| name.to_string());
            assert_eq!(found, name.map(str::to_owned), "{host}");
        }
    }

    #[test]
    fn urls_are_reduced_to_names() {
        for text in [
            "https://solar.com/",
            "HTTP://WWW.Solar.COM",
            " https://me:pw@a.b.solar.com:8080/path?x=1#y ",
            "//solar.com/x",
            "solar.com/",
            "www.solar.com/path?x",
            "solar.com?utm=1",
            "https://solar.com.",
            "solar.com.",
        ] {
            let name = DomainName::parse_or_address(text).map(|name| name.to_string());
            assert_eq!(name, Ok("solar.com".to_owned()), "{text}");
        }
        for (text, reason) in [
            ("http://", NameError::Empty),
            ("https://someone.github.io/", NameError::PrivateSuffix),
            ("http://192.0.2.1/", NameError::UnknownSuffix),
            ("http://localhost:8080/", NameError::SingleLabel),
            ("www.solar.com", NameError::BelowRegistrable),
            ("solar.com:80", NameError::BadCharacter(':')),
            ("ftp://solar.com/", NameError::BadCharacter(':')),
            ("mailto:me@solar.com", NameError::BadCharacter(':')),
            ("me@solar.com", NameError::BadCharacter('@')),
            ("12/4/2026", NameError::BadCharacter('/')),
            ("/solar.com", NameError::BadCharacter('/')),
        ] {
            assert_eq!(DomainName::parse_or_address(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn every_rule_has_its_own_error() {
        let long = "a".repeat(64) + ".com";
        let longer = format!("{0}.{0}.{0}.{0}.com", "a".repeat(63));
        for (text, reason) in [
            ("", NameError::Empty),
            (" \t", NameError::Empty),
            ("exa mple.com", NameError::ControlOrSpace),
            ("exam\0ple.com", NameError::ControlOrSpace),
            ("exam\u{2003}ple.com", NameError::ControlOrSpace),
            ("exam_ple.com", NameError::BadCharacter('_')),
            ("http://example.com", NameError::BadCharacter(':')),
            ("example..com", NameError::EmptyLabel),
            (".example.com", NameError::EmptyLabel),
            ("example.com..", NameError::EmptyLabel),
            (&long, NameError::LabelTooLong),
            (&longer, NameError::NameTooLong),
            ("-example.com", NameError::BadHyphens),
            ("example-.com", NameError::BadHyphens),
            ("ex--ample.com", NameError::BadHyphens),
            ("-münchen.de", NameError::BadHyphens),
            ("xn--a.com", NameError::BadIdna),
            ("xn--example-.com", NameError::BadIdna),
            ("a\u{200d}b.com", NameError::BadIdna),
            ("com", NameError::IsPublicSuffix),
            ("co.uk", NameError::IsPublicSuffix),
            ("foo.ck", NameError::IsPublicSuffix),
            ("localhost", NameError::SingleLabel),
            ("example.invalidtld", NameError::UnknownSuffix),
            ("192.0.2.1", NameError::UnknownSuffix),
            ("someone.github.io", NameError::PrivateSuffix),
            ("a.b.uk.com", NameError::PrivateSuffix),
            ("s3.amazonaws.com", NameError::PrivateSuffix),
            ("www.example.com", NameError::BelowRegistrable),
        ] {
            assert_eq!(parse(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn suffixes_follow_the_public_suffix_list() {
        for (text, tld) in [
            ("example.xn--55qx5d.cn", "xn--55qx5d.cn"),
            ("www.ck", "ck"),
            ("foo.bar.ck", "bar.ck"),
            ("city.kawasaki.jp", "kawasaki.jp"),
        ] {
            let name = DomainName::parse(text).expect(text);
            assert_eq!(name.tld(), tld, "{text}");
        }
    }

    #[test]
    fn a_private_suffix_below_an_icann_suffix_is_registrable() {
        for (text, tld) in [
            ("uk.com", "com"),
            ("GR.com.", "com"),
            ("github.io", "io"),
            ("co.ca", "ca"),
            ("blogspot.com", "com"),
            ("co.com", "com"),
            ("barsy.co.uk", "co.uk"),
        ] {
            let name = DomainName::parse(text).expect(text);
            assert_eq!(name.tld(), tld, "{text}");
            assert!(DomainName::is_registrable(name.as_str(), name.label_len()), "{text}");
        }
        for text in ["uk", "co.uk", "example.uk.com", "www.github.io", "example.barsy.co.uk"] {
            assert!(DomainName::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        /// The fast path for plain ASCII agrees with the UTS 46 library.
        #[test]
        fn the_fast_path_agrees_with_uts46(label in "[a-zA-Z0-9-]{1,20}", tld in "(com|CO\\.uk|de)") {
            let text = format!("{label}.{tld}");
            let by_library = Uts46::new()
                .to_ascii(text.as_bytes(), AsciiDenyList::STD3, Hyphens::Check, DnsLength::Verify)
                .map(|name| name.into_owned())
                .ok();
            prop_assert_eq!(parse(&text).ok(), by_library);
        }

        #[test]
        fn parsing_is_idempotent_and_never_panics(text in "\\PC{0,40}|[a-zé.-]{1,30}\\.(com|de)") {
            if let Ok(name) = DomainName::parse(&text) {
                prop_assert_eq!(DomainName::parse(name.as_str()), Ok(name.clone()));
                prop_assert_eq!(DomainName::parse(&name.unicode()), Ok(name));
            }
        }
    }
}
