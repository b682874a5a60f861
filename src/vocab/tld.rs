//! TLDs and labels as text: folding, and whether they are well-formed.

use compact_str::CompactString;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use crate::limits::LABEL_CHARS_MAX;
use crate::name::NAME_OCTETS_MAX;

/// Normalises a TLD of a filter: trims it, folds case, converts it to A-label form, and removes a
/// leading dot. The TLD need not exist: an unknown one matches nothing.
pub fn fold_tld(text: &str) -> Option<CompactString> {
    let text = text.trim();
    let text = text.strip_prefix('.').unwrap_or(text);
    if text.is_empty() {
        return None;
    }
    // The common case. Text with digits or hyphens may be an A-label that UTS 46 would change.
    let folded = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'.'));
    if folded {
        return Some(text.into());
    }
    let ascii = Uts46::new()
        .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .map(CompactString::from)
        .unwrap_or_else(|_| text.to_lowercase().into());
    Some(ascii)
}

/// Returns true if a folded TLD is well-formed: DNS labels separated by dots.
pub fn is_suffix(tld: &str) -> bool {
    tld.len() <= NAME_OCTETS_MAX && tld.split('.').all(is_label)
}

/// Returns true for a lower-case label of the DNS (RFC 1035 §2.3.1).
pub fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=usize::from(LABEL_CHARS_MAX)).contains(&label.len())
        && label.bytes().all(plain)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tld_filters_are_folded() {
        assert_eq!(fold_tld(" .COM ").as_deref(), Some("com"));
        assert_eq!(fold_tld("рф").as_deref(), Some("xn--p1ai"));
        assert_eq!(fold_tld("co.uk").as_deref(), Some("co.uk"));
        assert_eq!(fold_tld(" "), None);
        assert_eq!(fold_tld("."), None);
    }

    #[test]
    fn malformed_suffixes_are_rejected() {
        let long = format!("{}.uk", "a".repeat(63));
        for tld in ["com", "co.uk", "xn--p1ai", "nobody-knows-1t", &long] {
            assert!(is_suffix(tld), "{tld}");
        }
        for tld in ["", "co..uk", "a b", "com.", "-a", "a-", "c_m", "co,uk", "*.ck", "\u{8}y"] {
            assert!(!is_suffix(tld), "{tld:?}");
        }
        assert!(!is_suffix(&format!("a{long}")));
    }
}
