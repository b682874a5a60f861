//! Which names RDAP can verify, by the bootstrap registry of IANA (RFC 9224), compiled in.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::vocab::name::DomainName;

/// The registry as IANA publishes it (RFC 9224 §3): pairs of entries and base URLs.
#[derive(Deserialize)]
struct Bootstrap {
    services: Vec<(Vec<String>, Vec<String>)>,
}

/// The base URLs of the RDAP servers for `name`, each ending in a slash, in the registry's order;
/// none when its registry has no server. The longest entry that the name ends with counts
/// (RFC 9224 §4).
pub fn servers(name: &DomainName) -> &'static [String] {
    static TABLE: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
        parse_bootstrap(include_str!("../../data/rdap/dns.json"))
            .expect("data/rdap/dns.json is checked by a test")
    });
    let mut suffix = name.tld();
    loop {
        if let Some(urls) = TABLE.get(suffix) {
            return urls;
        }
        let Some((_, shorter)) = suffix.split_once('.') else { return &[] };
        suffix = shorter;
    }
}

/// Whether RDAP can verify `name`.
pub fn is_checkable(name: &DomainName) -> bool {
    !servers(name).is_empty()
}

fn parse_bootstrap(text: &str) -> serde_json::Result<HashMap<String, Vec<String>>> {
    let bootstrap: Bootstrap = serde_json::from_str(text)?;
    let rows = bootstrap.services.into_iter().flat_map(|(suffixes, urls)| {
        suffixes.into_iter().map(move |suffix| (suffix.to_ascii_lowercase(), urls.clone()))
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_whole() {
        let text = include_str!("../../data/rdap/dns.json");
        let table = parse_bootstrap(text).expect("parses");
        assert!(table.len() > 1_000, "{} suffixes", table.len());
        for (suffix, urls) in &table {
            assert!(!urls.is_empty(), "{suffix}");
            let whole = urls.iter().all(|url| url.starts_with("http") && url.ends_with('/'));
            assert!(whole, "{suffix}: {urls:?}");
        }
    }

    #[test]
    fn the_registry_of_the_name_is_asked() {
        for (name, url) in [
            ("example.com", Some("https://rdap.verisign.com/com/v1/")),
            ("example.co.uk", Some("https://rdap.nominet.uk/uk/")),
            ("example.de", None),
            ("example.se", None),
        ] {
            let name = DomainName::parse(name).expect("a name");
            assert_eq!(servers(&name).first().map(String::as_str), url, "{name}");
            assert_eq!(is_checkable(&name), url.is_some());
        }
    }
}
