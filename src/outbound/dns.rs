//! Resolves host names to a bounded number of addresses. [`super::guard`] decides which may be dialled.
//!
//! dropdex queries the DNS itself, without hosts file, search list or cache, so that it dials
//! exactly the addresses it checked.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use tokio::time::timeout;

use crate::settings;

/// Timeout of a lookup.
const LOOKUP_MAX: Duration = Duration::from_secs(2);
/// Timeout of a query. Two attempts fit into [`LOOKUP_MAX`], so that one lost packet is retried.
const QUERY_MAX: Duration = Duration::from_millis(950);
/// Maximum addresses of a name; public services have fewer.
pub const ADDRESSES_MAX: usize = 16;
/// Maximum aliases (CNAME) of a name.
pub const CNAMES_MAX: usize = 8;

/// DNS resolver.
#[derive(Clone)]
pub struct Dns(Arc<TokioResolver>);

/// Reason why a name has no usable address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    #[error("it has no address")]
    NoAddress,
    #[error("the name servers did not respond in time")]
    Timeout,
    #[error("the name servers failed: {0}")]
    Failed(String),
    #[error("it has more than {ADDRESSES_MAX} addresses")]
    TooManyAddresses,
    #[error("it is an alias of an alias more than {CNAMES_MAX} times")]
    TooManyAliases,
}

impl Dns {
    /// Creates a resolver for the configured name servers, or else the system's.
    ///
    /// # Errors
    /// The resolver cannot be built.
    pub fn new(settings: &settings::Dns) -> anyhow::Result<Dns> {
        let config = if settings.servers.is_empty() { system() } else { configured(settings) };
        let mut options = ResolverOpts::default();
        options.timeout = QUERY_MAX;
        options.attempts = 1;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.preserve_intermediates = true;
        let resolver = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
        Ok(Dns(Arc::new(resolver.with_options(options).build()?)))
    }

    /// Returns all A and AAAA addresses of `name` (in A-label form). If one of the two lookups fails,
    /// the addresses of the other are used.
    ///
    /// # Errors
    /// The name has no address, or too many.
    pub async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        let fqdn = absolute(name.trim_end_matches('.'))?;
        let (v4, v6) =
            tokio::join!(self.ask(&fqdn, RecordType::A), self.ask(&fqdn, RecordType::AAAA));
        let found = match (v4, v6) {
            (Ok(v4), Ok(v6)) => v4.into_iter().chain(v6).collect::<BTreeSet<IpAddr>>(),
            // Too many addresses or aliases disqualify the name.
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

    /// Returns the hosts of the name servers of a zone; none if `zone` is not the top of one.
    ///
    /// # Errors
    /// [`DnsError::Timeout`] or [`DnsError::Failed`] if the result is unknown.
    pub async fn name_servers(&self, zone: &str) -> Result<Vec<String>, DnsError> {
        let fqdn = absolute(zone)?;
        let Some(answer) = self.lookup(&fqdn, RecordType::NS).await? else { return Ok(Vec::new()) };
        let records = answer.answers().iter().filter(|record| record.name == fqdn);
        let hosts = records.filter_map(|record| match &record.data {
            RData::NS(host) => Some(host.0.to_ascii().trim_end_matches('.').to_owned()),
            _ => None,
        });
        Ok(hosts.collect())
    }

    /// Returns the addresses of one record type, which may be none.
    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Vec<IpAddr>, DnsError> {
        let Some(answer) = self.lookup(name, kind).await? else { return Ok(Vec::new()) };
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

    /// Returns the response, or `None` when the name has no such record.
    async fn lookup(&self, name: &Name, kind: RecordType) -> Result<Option<Lookup>, DnsError> {
        match timeout(LOOKUP_MAX, self.0.lookup(name.clone(), kind)).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(err)) if err.is_no_records_found() => Ok(None),
            Ok(Err(NetError::Timeout)) | Err(_) => Err(DnsError::Timeout),
            Ok(Err(err)) => Err(DnsError::Failed(err.to_string())),
        }
    }
}

impl DnsError {
    /// Returns true when the name has too many addresses or aliases.
    pub fn is_excess(&self) -> bool {
        matches!(self, DnsError::TooManyAddresses | DnsError::TooManyAliases)
    }
}

fn absolute(name: &str) -> Result<Name, DnsError> {
    Name::from_ascii(format!("{name}.")).map_err(|err| DnsError::Failed(err.to_string()))
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

/// Reads the system's name servers. If none are configured, every lookup fails.
fn system() -> ResolverConfig {
    match hickory_resolver::system_conf::read_system_conf() {
        Ok((config, _)) => ResolverConfig::from_name_servers(config.name_servers().to_vec()),
        Err(err) => {
            tracing::warn!(
                error = %err,
                "the system has no name servers configured; set dns.servers to resolve host names"
            );
            ResolverConfig::from_name_servers(Vec::new())
        }
    }
}
