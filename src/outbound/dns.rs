//! Names to addresses: a host name in, every address it has out, within bounds. Whether one may be
//! dialled is [`super::guard`]'s to say.
//!
//! We ask the DNS ourselves, so that what is judged is what is dialled: no file of hosts, no search
//! list, and nothing kept, because a name may lead elsewhere the next time.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use tokio::time::timeout;

use crate::outbound::settings;
use crate::vocab::name::DomainName;

/// An answer is waited for this long in all.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// One question, of which a lost packet takes one: two fit into [`ANSWER_MAX`].
const QUESTION_MAX: Duration = Duration::from_millis(950);
/// Addresses of a name at most: services for the public have fewer.
pub const ADDRESSES_MAX: usize = 16;
/// Names that lead to a name at most.
pub const CNAMES_MAX: usize = 8;

/// Asks name servers.
#[derive(Clone)]
pub struct Dns(Arc<TokioResolver>);

/// Why a name has no addresses to be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    #[error("it has no address")]
    NoAddress,
    #[error("no answer from the name servers in time")]
    Timeout,
    #[error("the name servers failed: {0}")]
    Failed(String),
    #[error("it has more than {ADDRESSES_MAX} addresses")]
    TooManyAddresses,
    #[error("it is an alias of an alias more than {CNAMES_MAX} times")]
    TooManyAliases,
}

impl Dns {
    /// Asks the servers of these settings, or else the system's.
    ///
    /// # Errors
    /// No resolver can be made of them.
    pub fn new(settings: &settings::Dns) -> anyhow::Result<Dns> {
        let config = if settings.servers.is_empty() { system() } else { configured(settings) };
        let mut options = ResolverOpts::default();
        options.timeout = QUESTION_MAX;
        options.attempts = 1;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.preserve_intermediates = true;
        let resolver = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
        Ok(Dns(Arc::new(resolver.with_options(options).build()?)))
    }

    /// Every address of `name` (in A-label form), A and AAAA. One kind that cannot be had does not
    /// hide the other.
    ///
    /// # Errors
    /// There is none, or more than a service for the public has.
    pub async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        let fqdn = Name::from_ascii(format!("{}.", name.trim_end_matches('.')))
            .map_err(|err| DnsError::Failed(err.to_string()))?;
        let (v4, v6) =
            tokio::join!(self.ask(&fqdn, RecordType::A), self.ask(&fqdn, RecordType::AAAA));
        let found = match (v4, v6) {
            (Ok(v4), Ok(v6)) => v4.into_iter().chain(v6).collect::<BTreeSet<IpAddr>>(),
            // More than is allowed is no failure of one kind, but the name's.
            (Err(err), _) | (_, Err(err)) if err.is_excess() => return Err(err),
            (Ok(one), Err(err)) | (Err(err), Ok(one)) if one.is_empty() => return Err(err),
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => one.into_iter().collect(),
            (Err(err), Err(_)) => return Err(err),
        };
        match found.len() {
            0 => Err(DnsError::NoAddress),
            1..=ADDRESSES_MAX => Ok(found.into_iter().collect()),
            _ => Err(DnsError::TooManyAddresses),
        }
    }

    /// Whether the name servers of its suffix lead to name servers of `name`'s own. That they do not
    /// tells nothing more: a name may be registered and not delegated.
    ///
    /// # Errors
    /// [`DnsError::Timeout`] or [`DnsError::Failed`]: it is not known. Among others, a name whose own
    /// servers do not answer fails.
    pub async fn is_delegated(&self, name: &DomainName) -> Result<bool, DnsError> {
        let fqdn = Name::from_ascii(format!("{name}."))
            .map_err(|err| DnsError::Failed(err.to_string()))?;
        match timeout(ANSWER_MAX, self.0.lookup(fqdn.clone(), RecordType::NS)).await {
            Ok(Ok(answer)) => {
                // A server that does not ask for us refers to those of the name itself, beside the
                // answer.
                let records = answer.answers().iter().chain(answer.authorities());
                let is_own = |it: &Record| it.name == fqdn && matches!(it.data, RData::NS(_));
                Ok(records.into_iter().any(is_own))
            }
            Ok(Err(err)) if err.is_no_records_found() => Ok(false),
            Ok(Err(NetError::Timeout)) | Err(_) => Err(DnsError::Timeout),
            Ok(Err(err)) => Err(DnsError::Failed(err.to_string())),
        }
    }

    /// The addresses of one kind; none is no error.
    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Vec<IpAddr>, DnsError> {
        let answer = match timeout(ANSWER_MAX, self.0.lookup(name.clone(), kind)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(err)) if err.is_no_records_found() => return Ok(Vec::new()),
            Ok(Err(NetError::Timeout)) | Err(_) => return Err(DnsError::Timeout),
            Ok(Err(err)) => return Err(DnsError::Failed(err.to_string())),
        };
        let records = answer.answers();
        let is_alias = |data: &RData| matches!(data, RData::CNAME(_));
        if records.iter().filter(|record| is_alias(&record.data)).count() > CNAMES_MAX {
            return Err(DnsError::TooManyAliases);
        }
        let addresses: Vec<IpAddr> =
            records.iter().filter_map(|record| record.data.ip_addr()).collect();
        if addresses.len() > ADDRESSES_MAX {
            return Err(DnsError::TooManyAddresses);
        }
        Ok(addresses)
    }
}

impl DnsError {
    /// Whether the name answers with more than we take.
    pub fn is_excess(&self) -> bool {
        matches!(self, DnsError::TooManyAddresses | DnsError::TooManyAliases)
    }
}

fn configured(settings: &settings::Dns) -> ResolverConfig {
    let server = |address: &std::net::SocketAddr| {
        let at_port = |mut connection: ConnectionConfig| {
            connection.port = address.port();
            connection
        };
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(at_port).to_vec();
        NameServerConfig::new(address.ip(), true, connections)
    };
    ResolverConfig::from_name_servers(settings.servers.iter().map(server).collect())
}

/// The system's name servers; without any, every question fails, which says so.
fn system() -> ResolverConfig {
    match hickory_resolver::system_conf::read_system_conf() {
        Ok((config, _)) => ResolverConfig::from_name_servers(config.name_servers().to_vec()),
        Err(err) => {
            tracing::warn!(
                error = %err,
                "the system names no name servers; set dns.servers to reach anybody by name"
            );
            ResolverConfig::from_name_servers(Vec::new())
        }
    }
}
