//! SSRF guard (OWASP API7): checks every URL before a call and returns the addresses that may be
//! dialled. Calls to private networks are refused, except to addresses on the configured allow list.
//!
//! The guard checks the parsed host and every address that the name servers return for it. A single
//! private address is enough to refuse the name, because a mix of private and public addresses
//! suggests an attack. URLs are checked when they are stored and again at every call, because DNS
//! records change.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use url::{Host, Url};

use crate::dns::{Dns, DnsError};
use crate::vocab::url::{HostRules, WebhookUrlError};

/// Checks the targets of calls. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    rules: Arc<HostRules>,
    dns: Dns,
}

/// Addresses that may be dialled for a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vetted {
    /// One or more addresses with the URL's port, all of which passed the checks.
    pub addresses: Vec<SocketAddr>,
}

/// Error text for a name without an address.
pub const UNRESOLVED: &str = "cannot be resolved";

/// Reason why a URL cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// Shown to the URL's owner; reveals no resolved address.
    #[error("{0}")]
    Refused(WebhookUrlError),
    #[error("`{name}` cannot be used: {why}")]
    Excess { name: String, why: DnsError },
    /// The name has no address, or the name servers do not respond.
    #[error("`{name}` {UNRESOLVED}: {why}")]
    Unresolved { name: String, why: DnsError },
}

impl Guard {
    /// Creates a guard with these rules.
    pub fn new(rules: HostRules, dns: Dns) -> Guard {
        Guard { rules: Arc::new(rules), dns }
    }

    /// The rules for hosts.
    pub fn rules(&self) -> &HostRules {
        &self.rules
    }

    /// Checks a URL: https, or http to addresses on the allow list; without user name.
    ///
    /// # Errors
    /// The URL is refused or cannot be resolved.
    pub async fn vet(&self, url: &Url) -> Result<Vetted, GuardError> {
        let vetted = self.addresses(url).await;
        if let Err(GuardError::Refused(_)) = &vetted {
            metrics::counter!("dropdex_calls_refused_total").increment(1);
        }
        vetted
    }

    /// Checks a server of a protocol other than HTTP. Any port on a public address is allowed.
    ///
    /// # Errors
    /// The address is refused or cannot be resolved.
    pub async fn vet_server(&self, host: &Host, port: u16) -> Result<Vetted, GuardError> {
        let (ips, name) = match host {
            Host::Ipv4(address) => (vec![IpAddr::from(*address)], None),
            Host::Ipv6(address) => (vec![IpAddr::from(*address)], None),
            Host::Domain(name) => (self.resolve(name).await?, Some(name)),
        };
        let addresses: Vec<SocketAddr> =
            ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        for &address in &addresses {
            self.rules.check_network(address).map_err(|err| {
                metrics::counter!("dropdex_calls_refused_total").increment(1);
                told(err, name.map(String::as_str))
            })?;
        }
        Ok(Vetted { addresses })
    }

    async fn addresses(&self, url: &Url) -> Result<Vetted, GuardError> {
        if !matches!(url.scheme(), "https" | "http") {
            return Err(GuardError::Refused(WebhookUrlError::NotHttps));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Refused(WebhookUrlError::UserInfo));
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if url.scheme() == "https" || url.domain().is_none() {
            self.rules.check(url).map_err(|err| self.http_first(url, err))?;
        }
        let addresses = match url.host() {
            Some(Host::Ipv4(address)) => vec![IpAddr::from(address)],
            Some(Host::Ipv6(address)) => vec![IpAddr::from(address)],
            Some(Host::Domain(name)) => self.resolve(name).await?,
            None => return Err(GuardError::Refused(WebhookUrlError::BadHost(String::new()))),
        };
        let addresses: Vec<SocketAddr> =
            addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        for &address in &addresses {
            self.check(url, address)?;
        }
        Ok(Vetted { addresses })
    }

    /// Checks one address of `url`.
    fn check(&self, url: &Url, address: SocketAddr) -> Result<(), GuardError> {
        if url.scheme() == "http" && !self.rules.allow.covers(address) {
            return Err(GuardError::Refused(WebhookUrlError::NotHttps));
        }
        self.rules.check_address(address).map_err(|err| told(err, url.domain()))
    }

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, GuardError> {
        let name = name.strip_suffix('.').unwrap_or(name);
        self.dns.addresses(name).await.map_err(|why| {
            let name = name.to_owned();
            if why.is_excess() {
                GuardError::Excess { name, why }
            } else {
                GuardError::Unresolved { name, why }
            }
        })
    }

    /// Returns the refusal of http for an http URL, and `err` for others.
    fn http_first(&self, url: &Url, err: WebhookUrlError) -> GuardError {
        let plain = url.scheme() == "http";
        GuardError::Refused(if plain { WebhookUrlError::NotHttps } else { err })
    }
}

/// Returns the error for an address of `name`, without revealing the address.
fn told(err: WebhookUrlError, name: Option<&str>) -> GuardError {
    match (err, name) {
        (WebhookUrlError::DeniedAddress(address), Some(name)) => {
            tracing::info!(host = name, %address, "refused to call a host name with a private address");
            GuardError::Refused(WebhookUrlError::DeniedName(name.to_owned()))
        }
        (err, _) => GuardError::Refused(err),
    }
}
