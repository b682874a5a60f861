//! The judgement before every call: a URL in, the addresses that may be dialled for it out, or the
//! one reason why none may. Whoever named the URL, nobody makes this machine talk to its own network
//! (OWASP API7): the configured allow list is the only way past.
//!
//! Judged is what will be dialled: the parsed host, and every address that the name servers give for
//! it. One that is not public condemns the name, because who mixes answers means no good. What is
//! judged at the door is judged again at each call, because names change.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use url::{Host, Url};

use crate::outbound::dns::{Dns, DnsError};
use crate::vocab::url::{HostRules, WebhookUrlError};

/// Judges where calls go. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    rules: Arc<HostRules>,
    dns: Dns,
}

/// What may be dialled for a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vetted {
    /// All of them were judged; at least one, at the URL's port.
    pub addresses: Vec<SocketAddr>,
}

/// Why nothing may be, or can be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// For its owner to read: it tells no address that its text did not.
    #[error("{0}")]
    Refused(WebhookUrlError),
    #[error("`{name}` cannot be used: {why}")]
    Excess { name: String, why: DnsError },
    /// Not refused: the name servers know no address, or do not answer.
    #[error("`{name}` cannot be resolved: {why}")]
    Unresolved { name: String, why: DnsError },
}

impl Guard {
    /// A guard by these rules.
    pub fn new(rules: HostRules, dns: Dns) -> Guard {
        Guard { rules: Arc::new(rules), dns }
    }

    /// The rules for what a URL says.
    pub fn rules(&self) -> &HostRules {
        &self.rules
    }

    /// Judges a URL: https, or http to allowed addresses alone; no user in it.
    ///
    /// # Errors
    /// It is refused, or leads nowhere.
    pub async fn judge(&self, url: &Url) -> Result<Vetted, GuardError> {
        let judged = self.judged(url).await;
        if let Err(GuardError::Refused(_)) = &judged {
            metrics::counter!("dropdex_calls_refused_total").increment(1);
        }
        judged
    }

    async fn judged(&self, url: &Url) -> Result<Vetted, GuardError> {
        if !matches!(url.scheme(), "https" | "http") {
            return Err(GuardError::Refused(WebhookUrlError::NotHttps));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Refused(WebhookUrlError::UserInfo));
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if url.scheme() == "https" || url.domain().is_none() {
            self.rules.check(url).map_err(|err| self.of_scheme(url, err))?;
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

    /// Judges one address that `url` leads to.
    fn check(&self, url: &Url, address: SocketAddr) -> Result<(), GuardError> {
        if url.scheme() == "http" && !self.rules.allow.covers(address) {
            return Err(GuardError::Refused(WebhookUrlError::NotHttps));
        }
        self.rules.check_address(address).map_err(|err| match (err, url.domain()) {
            (WebhookUrlError::DeniedAddress(address), Some(name)) => {
                tracing::info!(host = name, %address, "refused to call a name that leads inside");
                GuardError::Refused(WebhookUrlError::DeniedName(name.to_owned()))
            }
            (err, _) => GuardError::Refused(err),
        })
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

    /// The reason for http is that it is http.
    fn of_scheme(&self, url: &Url, err: WebhookUrlError) -> GuardError {
        let plain = url.scheme() == "http";
        GuardError::Refused(if plain { WebhookUrlError::NotHttps } else { err })
    }
}
