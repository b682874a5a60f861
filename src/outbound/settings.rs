//! Parsed settings of outbound calls. `config` builds these settings; the modules beside this one
//! use them.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lettre::message::Mailbox;
use serde::Deserialize;
use url::Host;

use crate::vocab::net::{AllowList, Network};
use crate::vocab::rdap::{Bootstrap, ChosenServers};
use crate::vocab::secret::SecretSource;
use crate::vocab::url::{BaseUrl, DeniedName, HostRules};

/// IANA's registry of RDAP servers by TLD (RFC 9224).
pub const RDAP_BOOTSTRAP_DEFAULT: &str = "https://data.iana.org/rdap/dns.json";
/// Telegram's Bot API.
pub const TELEGRAM_BASE_DEFAULT: &str = "https://api.telegram.org";
/// The CDX server of the Wayback Machine.
pub const ARCHIVE_URL_DEFAULT: &str = "https://web.archive.org/cdx/search/cdx";
/// Pushover's API.
pub const PUSHOVER_BASE_DEFAULT: &str = "https://api.pushover.net";
/// Times of the delivery attempts, in seconds after the first one, as Standard Webhooks recommends.
pub const RETRY_SECONDS_DEFAULT: [u32; 10] =
    [0, 5, 5 * 60, 30 * 60, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
const HOUR: u32 = 3_600;

/// Settings of outbound calls; `None` means not configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Public URL of this server, for links in mails.
    pub public_url: Option<BaseUrl>,
    pub smtp: Option<Smtp>,
    pub telegram: Option<Telegram>,
    pub webhooks: Webhooks,
    pub rdap: Rdap,
    pub whois: Whois,
    /// `None` asks no web archive.
    pub archive: Option<Archive>,
    /// `None` asks about no released name.
    pub sample: Option<Sample>,
    pub dns: Dns,
    pub calls: Calls,
}

/// Public networks that are never called (`data/docs/configuration.md`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calls {
    pub deny_networks: Vec<Network>,
    /// External addresses of this installation. A router may route calls to them back into the
    /// local network.
    pub own_addresses: Vec<Network>,
}

impl Settings {
    /// Returns the rules for the hosts of calls, with the exceptions in an allow list.
    pub fn rules(&self, allow: &AllowList) -> HostRules {
        let Calls { deny_networks, own_addresses } = &self.calls;
        let deny_networks = deny_networks.iter().chain(own_addresses).copied().collect();
        HostRules { allow: allow.clone(), deny_names: Vec::new(), deny_networks }
    }

    /// Returns the rules for the hosts of webhooks: the configured rules, which also exclude this
    /// server itself.
    pub fn webhook_rules(&self) -> HostRules {
        let own = self.public_url.as_ref().and_then(BaseUrl::host_name);
        let deny_names = self.webhooks.deny_names.iter().cloned().chain(own).collect();
        HostRules { deny_names, ..self.rules(&self.webhooks.allow) }
    }
}

/// The operator's mail server.
#[derive(Clone, Debug)]
pub struct Smtp {
    /// Host name or literal address.
    pub host: String,
    pub port: u16,
    pub tls: SmtpTls,
    /// User name and password.
    pub login: Option<(String, SecretSource)>,
    /// Sender of mails.
    pub from: Mailbox,
    /// PEM file of certificates to trust besides the public roots.
    pub ca_file: Option<PathBuf>,
}

/// Encryption of the connection to the mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmtpTls {
    /// STARTTLS, required.
    StartTls,
    /// TLS from the start.
    Tls,
    /// No encryption, for a server on this machine or in a private network.
    None,
}

impl SmtpTls {
    /// Default port (RFC 6409, RFC 8314, RFC 5321).
    pub fn default_port(self) -> u16 {
        match self {
            SmtpTls::StartTls => 587,
            SmtpTls::Tls => 465,
            SmtpTls::None => 25,
        }
    }
}

/// The Telegram bot.
#[derive(Clone, Debug)]
pub struct Telegram {
    pub token: SecretSource,
    pub base: BaseUrl,
    /// Allowed private addresses of `base`.
    pub allow: AllowList,
    pub ca_file: Option<PathBuf>,
}

/// Allowed targets and retries of webhooks and chat services.
#[derive(Clone, Debug)]
pub struct Webhooks {
    pub allow: AllowList,
    pub deny_names: Vec<DeniedName>,
    pub ca_file: Option<PathBuf>,
    pub pushover_base: BaseUrl,
    /// Times of the attempts after the first one, ascending, not empty.
    pub retry: Vec<Duration>,
}

/// Limits of RDAP queries.
#[derive(Clone, Debug)]
pub struct Rdap {
    pub enabled: bool,
    pub bootstrap: BaseUrl,
    pub bootstrap_refresh: Duration,
    /// Maximum per server, 1 or more.
    pub requests_per_second: u32,
    /// Maximum concurrent requests per server, 1 or more.
    pub concurrency: u32,
    pub allow: AllowList,
    pub ca_file: Option<PathBuf>,
    /// Servers by suffix, which outweigh those of the registry.
    pub servers: ChosenServers,
}

impl Rdap {
    /// Returns the compiled-in registry with the servers from the settings.
    pub fn compiled(&self) -> Bootstrap {
        let is_default = self.bootstrap.as_str() == RDAP_BOOTSTRAP_DEFAULT;
        Bootstrap::compiled().as_ref().clone().completed(is_default, &self.servers)
    }
}

/// Suffixes of the random sample of released names (`data/docs/outcomes.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Empty for all suffixes without lists of all names, which need no sample. The terms of zone files forbid
    /// many queries, so the operator has to name their suffixes.
    pub suffixes: HashSet<String>,
    pub except: HashSet<String>,
}

impl Sample {
    /// Returns true if names of a suffix are drawn. `is_complete` is true if lists show all names of it.
    pub fn has(&self, suffix: &str, is_complete: impl FnOnce(&str) -> bool) -> bool {
        let is_named = self.suffixes.contains(suffix);
        let is_default = self.suffixes.is_empty() && !is_complete(suffix);
        (is_named || is_default) && !self.except.contains(suffix)
    }
}

/// Configured WHOIS servers, which replace those of the table: host and port, by suffix.
pub type WhoisHosts = HashMap<String, (Host, u16)>;

/// WHOIS, off by default: the terms of many registries forbid all but single queries.
#[derive(Clone, Debug, Default)]
pub struct Whois {
    pub enabled: bool,
    /// Configured servers, which replace those of the table.
    pub servers: WhoisHosts,
    /// Private addresses that may be called.
    pub allow: AllowList,
}

/// Queries to a web archive.
#[derive(Clone, Debug)]
pub struct Archive {
    pub url: BaseUrl,
    /// Time between two queries.
    pub every: Duration,
    /// Number of the best names on their way out that are asked about each day.
    pub best: u32,
    /// Private addresses that may be called.
    pub allow: AllowList,
    pub ca_file: Option<PathBuf>,
}

/// Name servers.
#[derive(Clone, Debug, Default)]
pub struct Dns {
    /// Recursive resolvers; empty to use the system's.
    pub servers: Vec<SocketAddr>,
    /// Servers to ask for a suffix; they replace those that the DNS names.
    pub zones: HashMap<String, Vec<SocketAddr>>,
}
