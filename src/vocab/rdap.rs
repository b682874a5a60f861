//! IANA's RDAP bootstrap registry (RFC 9224), which maps suffixes to the base URLs of RDAP servers.
//!
//! A copy is compiled in, so that a first start needs no network, and so are servers that registries run
//! but IANA does not list (`data/rdap/overlay.csv`). The operator's choice outweighs both. Files are
//! untrusted: sizes are bounded, and only URLs that may be queried are kept. `workers::bootstrap` fetches
//! newer files.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use url::Url;

use crate::compiled;
use crate::name::DomainName;
use crate::time::UnixMs;
use crate::tld::is_suffix;

/// Maximum suffixes in a file: ten times IANA's number.
const SUFFIXES_MAX: usize = 15_000;
/// Maximum servers in an entry; IANA's entries have one.
const SERVERS_MAX: usize = 16;
/// Maximum bytes of a base URL.
const BASE_OCTETS_MAX: usize = 1_024;

/// The base URL of an RDAP server. Invariant: canonical by the URL Standard, at most
/// [`BASE_OCTETS_MAX`] bytes, ends with a slash, has no user, query or fragment, and is https unless
/// the operator allows plain http to this address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RdapBase(Url);

impl RdapBase {
    /// Parses a base URL; `plain` returns true for URLs that may be queried without TLS. `None` for
    /// URLs that must not be queried.
    pub fn parse(text: &str, plain: &dyn Fn(&Url) -> bool) -> Option<RdapBase> {
        if text.len() >= BASE_OCTETS_MAX || text.chars().any(|c| c.is_control() || c == '\\') {
            return None;
        }
        let mut url = Url::parse(text).ok().filter(|url| !is_denied(url))?;
        // RFC 9224 §3 requires the slash; without it, joining a path would drop the last segment.
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let allowed = url.scheme() == "https" || url.scheme() == "http" && plain(&url);
        (bare && allowed && url.has_host() && url.as_str().len() <= BASE_OCTETS_MAX)
            .then_some(RdapBase(url))
    }

    /// Returns the URL of the query for `name` (RFC 9082 §3.1.3).
    pub fn domain(&self, name: &DomainName) -> Url {
        let mut url = self.0.clone();
        // A name contains no characters that need escaping.
        url.set_path(&format!("{}domain/{name}", self.0.path()));
        url
    }

    /// Returns scheme, host and port, which identify the server.
    pub fn origin(&self) -> String {
        origin(&self.0)
    }

    /// Returns the canonical text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Hosts, with the start of a path, that answer 404 or a page for registered names. Aggregators such as
/// rdap.org do so for suffixes that they do not know.
const DENIED: [(&str, &str); 4] =
    [("rdap.org", "/"), ("rdap.gg", "/"), ("rdap.nic.co", "/"), ("rdap.centralnic.com", "/la")];

fn is_denied(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    DENIED.iter().any(|(denied, path)| {
        let is_host =
            host == *denied || host.strip_suffix(denied).is_some_and(|it| it.ends_with('.'));
        is_host && url.path().starts_with(path)
    })
}

/// The operator's servers by suffix; `None` if the suffix is not to be queried.
pub type ChosenServers = HashMap<String, Option<RdapBase>>;

/// Returns the servers that IANA does not list, by suffix.
fn overlay() -> &'static HashMap<String, RdapBase> {
    static OVERLAY: LazyLock<HashMap<String, RdapBase>> = LazyLock::new(|| {
        let row = |(suffix, base): (String, String)| {
            let base = RdapBase::parse(&base, &|_| false).filter(|_| is_suffix(&suffix));
            base.map(|base| (suffix, base)).ok_or("no suffix, or no base URL")
        };
        let rows = compiled::table(include_str!("../../data/rdap/overlay.csv"), row);
        rows.expect("data/rdap/overlay.csv is checked by a test").into_iter().collect()
    });
    &OVERLAY
}

/// Returns scheme, host and port of a URL.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The format in which IANA publishes the registry (RFC 9224 §3): pairs of suffixes and base URLs.
#[derive(Deserialize)]
struct RegistryFile {
    version: String,
    publication: String,
    services: Vec<(Vec<String>, Vec<String>)>,
}

/// Reason why a file is not a bootstrap registry.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    #[error("it is not a bootstrap file (RFC 9224 §3): {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("its version is `{0}`; 1.0 is known")]
    Version(String),
    #[error("its publication date `{0}` is not a timestamp")]
    Publication(String),
    #[error("it lists more than {SUFFIXES_MAX} suffixes")]
    TooLong,
    #[error("it lists `{0}`, which is not a domain suffix")]
    Suffix(String),
    #[error("none of its servers uses https")]
    NoServer,
}

/// RDAP servers by suffix.
#[derive(Clone)]
pub struct Bootstrap {
    publication: UnixMs,
    /// Number of suffixes in the file.
    listed: usize,
    /// Servers by suffix in lower-case A-label form, without a leading dot. Empty if the operator
    /// excludes the suffix.
    servers: HashMap<String, Arc<[RdapBase]>>,
}

impl Bootstrap {
    /// Returns the compiled-in copy.
    pub fn compiled() -> Arc<Bootstrap> {
        static COPY: LazyLock<Arc<Bootstrap>> = LazyLock::new(|| {
            let text = include_str!("../../data/rdap/dns.json");
            Arc::new(
                Bootstrap::parse(text, &|_| false)
                    .expect("data/rdap/dns.json is checked by a test"),
            )
        });
        Arc::clone(&COPY)
    }

    /// Parses a file; `plain` returns true for servers that may be queried without TLS. A suffix is
    /// left out if none of its servers may be queried.
    ///
    /// # Errors
    /// [`BootstrapError`]: the file must not be used.
    pub fn parse(text: &str, plain: &dyn Fn(&Url) -> bool) -> Result<Bootstrap, BootstrapError> {
        let sent: RegistryFile = serde_json::from_str(text)?;
        if sent.version != "1.0" {
            return Err(BootstrapError::Version(short(sent.version)));
        }
        let publication = sent.publication.parse();
        let publication =
            publication.map_err(|_| BootstrapError::Publication(short(sent.publication)))?;
        if sent.services.iter().map(|(suffixes, _)| suffixes.len()).sum::<usize>() > SUFFIXES_MAX {
            return Err(BootstrapError::TooLong);
        }
        let mut servers = HashMap::new();
        for (suffixes, urls) in sent.services {
            let bases = urls.iter().take(SERVERS_MAX).filter_map(|url| RdapBase::parse(url, plain));
            let bases: Arc<[RdapBase]> = bases.collect();
            for suffix in suffixes {
                let suffix = suffix.to_ascii_lowercase();
                if !is_suffix(&suffix) {
                    return Err(BootstrapError::Suffix(short(suffix)));
                }
                if !bases.is_empty() {
                    servers.insert(suffix, Arc::clone(&bases));
                }
            }
        }
        (!servers.is_empty())
            .then_some(Bootstrap { publication, listed: servers.len(), servers })
            .ok_or(BootstrapError::NoServer)
    }

    /// Adds the operator's servers, and with `overlay` those that IANA does not list.
    #[must_use]
    pub fn completed(mut self, overlay: bool, chosen: &ChosenServers) -> Bootstrap {
        for (suffix, base) in self::overlay().iter().filter(|_| overlay) {
            let servers = self.servers.entry(suffix.clone());
            servers.or_insert_with(|| Arc::from([base.clone()]));
        }
        let chosen =
            chosen.iter().map(|(suffix, base)| (suffix.clone(), base.iter().cloned().collect()));
        self.servers.extend(chosen);
        self
    }

    /// Returns the suffixes of the file that are in the overlay as well, sorted.
    pub fn in_overlay(&self) -> Vec<&str> {
        let mut both: Vec<&str> = overlay()
            .keys()
            .map(String::as_str)
            .filter(|it| self.servers.contains_key(*it))
            .collect();
        both.sort_unstable();
        both
    }

    /// Returns the servers for `name`, in the registry's order; empty if it has none. The longest
    /// matching suffix applies (RFC 9224 §4).
    pub fn servers(&self, name: &DomainName) -> &[RdapBase] {
        self.servers_of(name.tld())
    }

    /// Returns the servers of the names of a suffix, as [`Bootstrap::servers`].
    pub fn servers_of<'a>(&'a self, mut suffix: &str) -> &'a [RdapBase] {
        loop {
            if let Some(servers) = self.servers.get(suffix) {
                return servers;
            }
            let Some((_, shorter)) = suffix.split_once('.') else { return &[] };
            suffix = shorter;
        }
    }

    /// Returns true if an RDAP server exists for `name`.
    pub fn is_checkable(&self, name: &DomainName) -> bool {
        !self.servers(name).is_empty()
    }

    /// Returns the publication time of the file.
    pub fn publication(&self) -> UnixMs {
        self.publication
    }

    /// Returns the number of suffixes in the file.
    pub fn len(&self) -> usize {
        self.listed
    }

    /// Always returns false, because a file without servers is rejected.
    pub fn is_empty(&self) -> bool {
        self.listed == 0
    }

    /// Returns true if `self` has less than half the suffixes of `older`, so that it is probably
    /// truncated or forged.
    pub fn is_shrunken(&self, older: &Bootstrap) -> bool {
        self.len() * 2 < older.len()
    }
}

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} suffixes, published on {}", self.len(), self.publication)
    }
}

/// Returns the start of an untrusted text, for a log message.
fn short(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).expect("a name")
    }

    fn servers(bootstrap: &Bootstrap, of: &str) -> Vec<String> {
        bootstrap.servers(&name(of)).iter().map(|base| base.as_str().to_owned()).collect()
    }

    fn file(services: &str) -> String {
        format!(
            "{{\"version\":\"1.0\",\"publication\":\"2026-10-01T00:00:00Z\",\"x\":[{{}}],\
             \"services\":{services}}}"
        )
    }

    #[test]
    fn the_compiled_in_copy_parses() {
        let copy = Bootstrap::compiled();
        assert!(copy.len() > 1_000, "{copy:?}");
        for (name, url) in [
            ("example.com", Some("https://rdap.verisign.com/com/v1/")),
            ("example.co.uk", Some("https://rdap.nominet.uk/uk/")),
            ("example.de", None),
            ("example.se", None),
            // The server has no TLS.
            ("example.kg", None),
        ] {
            assert_eq!(servers(&copy, name).first().map(String::as_str), url, "{name}");
        }
        assert!(copy.is_checkable(&name("example.com")) && !copy.is_checkable(&name("a.de")));
    }

    #[test]
    fn the_overlay_and_the_operator_complete_the_registry() {
        let base = |text: &str| RdapBase::parse(text, &|_| false);
        let chosen: ChosenServers =
            [("co.uk".to_owned(), base("https://own.example/rdap")), ("net".to_owned(), None)]
                .into();
        let copy = Bootstrap::compiled();
        let all = copy.as_ref().clone().completed(true, &chosen);
        for (name, url) in [
            ("a.de", Some("https://rdap.denic.de/")),
            ("a.co", Some("https://rdap.registry.co/co/")),
            ("a.com", Some("https://rdap.verisign.com/com/v1/")),
            ("a.co.uk", Some("https://own.example/rdap/")),
            ("a.uk", Some("https://rdap.nominet.uk/uk/")),
            ("a.net", None),
            ("example.se", None),
        ] {
            assert_eq!(servers(&all, name).first().map(String::as_str), url, "{name}");
        }
        assert_eq!(all.len(), copy.len(), "the size of the file");
        assert!(copy.in_overlay().is_empty(), "IANA lists {:?}: remove them", copy.in_overlay());
        let own = Bootstrap::parse(&file("[[[\"de\"],[\"https://x.example/\"]]]"), &|_| false);
        let own = own.expect("a file");
        assert_eq!(own.in_overlay(), ["de"]);
        let own = own.completed(true, &ChosenServers::new());
        assert_eq!(servers(&own, "a.de"), ["https://x.example/"], "IANA wins");
        assert_eq!(
            overlay().len(),
            include_str!("../../data/rdap/overlay.csv").lines().count() - 3
        );
    }

    #[test]
    fn servers_that_answer_wrongly_are_refused() {
        for url in [
            "https://rdap.org/",
            "https://www.rdap.org/x/",
            "https://RDAP.gg/",
            "https://rdap.nic.co/v1/",
            "https://rdap.centralnic.com/la/",
        ] {
            assert_eq!(RdapBase::parse(url, &|_| false), None, "{url}");
        }
        for url in
            ["https://rdap.centralnic.com/gl/", "https://xrdap.org/", "https://rdap.nic.cod/"]
        {
            assert!(RdapBase::parse(url, &|_| false).is_some(), "{url}");
        }
    }

    #[test]
    fn the_longest_suffix_with_an_allowed_server_applies() {
        let text = file(
            "[[[\"UK\",\"xn--p1ai\"],[\"http://plain.example/\",\"https://Uk.example/rdap\"]],\
              [[\"co.uk\"],[\"https://co.example/a/\"]],\
              [[\"com\"],[\"http://127.0.0.1:9000/\"]],\
              [[\"net\"],[\"ftp://net.example/\",\"https://u@net.example/\",\"https://n.example/?\"]]]",
        );
        let none = Bootstrap::parse(&text, &|_| false).expect("a file");
        assert_eq!(servers(&none, "a.uk"), ["https://uk.example/rdap/"]);
        assert_eq!(servers(&none, "a.org.uk"), ["https://uk.example/rdap/"]);
        assert_eq!(servers(&none, "a.co.uk"), ["https://co.example/a/"]);
        assert_eq!(servers(&none, "пример.рф"), ["https://uk.example/rdap/"]);
        assert!(servers(&none, "a.com").is_empty() && servers(&none, "a.net").is_empty());
        let loopback = |url: &Url| url.host_str() == Some("127.0.0.1");
        let some = Bootstrap::parse(&text, &loopback).expect("a file");
        assert_eq!(servers(&some, "a.com"), ["http://127.0.0.1:9000/"]);
        let asked = some.servers(&name("a.co.uk"))[0].domain(&name("a.co.uk"));
        assert_eq!(asked.as_str(), "https://co.example/a/domain/a.co.uk");
        assert!(none.is_shrunken(&Bootstrap::compiled()) && !some.is_shrunken(&none));
    }

    #[test]
    fn invalid_registries_are_rejected() {
        let good = file("[[[\"com\"],[\"https://a.example/\"]]]");
        assert!(Bootstrap::parse(&good, &|_| false).is_ok());
        let many: Vec<String> = (0..=SUFFIXES_MAX).map(|n| format!("\"a{n}\"")).collect();
        for bad in [
            String::new(),
            "{}".into(),
            "[]".into(),
            good.replace("1.0", "2.0"),
            good.replace("2026-10-01T00:00:00Z", "yesterday"),
            good.replace("\"com\"", "\"c om\""),
            good.replace("\"com\"", "\"\""),
            good.replace("\"com\"", "7"),
            good.replace("https", "http"),
            good[..good.len() - 1].to_owned(),
            file("[]"),
            file("[[[\"com\"]]]"),
            file(&format!("[[[{}],[\"https://a.example/\"]]]", many.join(","))),
            "[".repeat(100_000),
        ] {
            let got = Bootstrap::parse(&bad, &|_| false);
            assert!(got.is_err(), "{:.80}", bad);
        }
    }
}
