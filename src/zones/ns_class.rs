//! Classes of name servers, which say how a name was used.

use std::borrow::Cow;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::vocab::compiled::{self, BadTable};
use crate::vocab::ns_class::NsClass;

/// Suffixes of the host names of servers. Each name of a zone is looked up, twice at least.
static SUFFIXES: LazyLock<FxHashMap<Box<[u8]>, NsClass>> = LazyLock::new(|| {
    let rows = table().expect("a test reads it");
    rows.into_iter().map(|(suffix, class)| (suffix.into_bytes().into(), class)).collect()
});

fn table() -> Result<Vec<(String, NsClass)>, BadTable> {
    #[derive(Deserialize)]
    struct Row {
        suffix: String,
        class: String,
    }
    let read = |row: Row| row.class.parse().map(|class| (row.suffix, class));
    compiled::table(include_str!("ns_class.csv"), read)
}

/// Returns the class of a name server by its host name, such as `NS1.AFTERNIC.COM.`; `None` if it has no class.
pub(super) fn class_of(server: &[u8]) -> Option<NsClass> {
    let mut server = Cow::Borrowed(server.strip_suffix(b".").unwrap_or(server));
    if server.iter().any(u8::is_ascii_uppercase) {
        server.to_mut().make_ascii_lowercase();
    }
    // A suffix has two labels at least.
    let dots = memchr::memrchr_iter(b'.', &server).skip(1).map(|dot| dot + 1);
    dots.chain([0]).find_map(|start| SUFFIXES.get(&server[start..]).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_the_class_of_their_suffix() {
        for (server, class) in [
            ("ns1.afternic.com.", Some(NsClass::ForSale)),
            ("NS2.Bodis.COM", Some(NsClass::Parked)),
            ("dns101.registrar.failed-whois-verification.namecheap.com.", Some(NsClass::Expired)),
            ("ns1.markmonitor.com.", Some(NsClass::BrandKeeper)),
            ("amy.ns.cloudflare.com.", Some(NsClass::Hosted)),
            ("wordpress.com.", Some(NsClass::Hosted)),
            ("dns1.namecheap.com.", None),
            ("ns1.notafternic.com.", None),
            ("afternic.com.example.net.", None),
            ("com.", None),
            ("ns1", None),
            ("", None),
        ] {
            assert_eq!(class_of(server.as_bytes()), class, "{server}");
        }
        assert_eq!(class_of(&[b'a'; 300]), None);
    }

    #[test]
    fn the_table_has_each_suffix_once_in_lower_case_and_all_classes() {
        let table = table().expect("a table");
        assert_eq!(table.len(), SUFFIXES.len());
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        for (suffix, _) in &table {
            assert!(suffix.contains('.') && suffix.bytes().all(is_plain), "{suffix}");
        }
        for class in NsClass::ALL {
            assert!(SUFFIXES.values().any(|other| *other == class), "{class}");
        }
    }
}
