//! What an operator sets for calls to the outside, as meant: `config` makes it, the modules beside
//! this one take it. Nothing is read or dialled here, but for [`SecretSource::read`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lettre::message::Mailbox;
use serde::Deserialize;

use crate::vocab::net::AllowList;
use crate::vocab::secret::Secret;
use crate::vocab::url::{BaseUrl, DeniedName, HostRules};

/// The registries' RDAP servers by TLD, as IANA publishes them (RFC 9224).
pub const RDAP_BOOTSTRAP_DEFAULT: &str = "https://data.iana.org/rdap/dns.json";
/// The Bot API.
pub const TELEGRAM_BASE_DEFAULT: &str = "https://api.telegram.org";
/// How long after the first attempt each next one is due, as Standard Webhooks has it; the last is
/// the end.
pub const RETRY_SECONDS_DEFAULT: [u32; 10] =
    [0, 5, 5 * 60, 30 * 60, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
const HOUR: u32 = 3_600;

/// All of it. What is `None` is not set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where people reach this server: links in mails begin with it.
    pub public_url: Option<BaseUrl>,
    pub smtp: Option<Smtp>,
    pub telegram: Option<Telegram>,
    pub webhooks: Webhooks,
    pub rdap: Rdap,
    pub dns: Dns,
}

impl Settings {
    /// The rules for hosts of webhooks: the operator's, and that no webhook leads to ourselves.
    pub fn webhook_rules(&self) -> HostRules {
        let own = self.public_url.as_ref().and_then(BaseUrl::host_name);
        let deny_names = self.webhooks.deny_names.iter().cloned().chain(own).collect();
        HostRules { allow: self.webhooks.allow.clone(), deny_names }
    }
}

/// A password or token, or the file that holds it.
#[derive(Clone, Debug)]
pub enum SecretSource {
    Text(Secret),
    File(PathBuf),
}

impl SecretSource {
    /// The secret. A line end after it in the file is no part of it.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub fn read(&self) -> std::io::Result<Secret> {
        match self {
            SecretSource::Text(secret) => Ok(secret.clone()),
            SecretSource::File(path) => {
                let text = std::fs::read_to_string(path)?;
                let text = text.trim_end_matches(['\r', '\n']);
                if text.is_empty() {
                    return Err(std::io::Error::new(
                        std::io::ErrorKind::InvalidData,
                        "it is empty",
                    ));
                }
                Ok(Secret::new(text.to_owned()))
            }
        }
    }
}

/// The mail server that takes our mail.
#[derive(Clone, Debug)]
pub struct Smtp {
    /// A name or a literal address.
    pub host: String,
    pub port: u16,
    pub tls: SmtpTls,
    /// User name and password.
    pub login: Option<(String, SecretSource)>,
    /// What mails say they are from.
    pub from: Mailbox,
    /// Certificates, in PEM, that are trusted besides the public roots.
    pub ca_file: Option<PathBuf>,
}

/// How a connection to the mail server is kept from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmtpTls {
    /// Plain at first, then TLS, or nothing is sent.
    StartTls,
    /// TLS from the first octet.
    Tls,
    /// Not at all: to a server on this machine or in a private network.
    None,
}

impl SmtpTls {
    /// The port where servers speak it (RFC 6409, RFC 8314, RFC 5321).
    pub fn default_port(self) -> u16 {
        match self {
            SmtpTls::StartTls => 587,
            SmtpTls::Tls => 465,
            SmtpTls::None => 25,
        }
    }
}

/// The bot that sends messages.
#[derive(Clone, Debug)]
pub struct Telegram {
    pub token: SecretSource,
    pub base: BaseUrl,
    /// Where `base` may lead besides the public.
    pub allow: AllowList,
    pub ca_file: Option<PathBuf>,
}

/// Where webhooks may lead, and when they are tried again.
#[derive(Clone, Debug)]
pub struct Webhooks {
    pub allow: AllowList,
    pub deny_names: Vec<DeniedName>,
    pub ca_file: Option<PathBuf>,
    /// When each attempt is due, counted from the first; ascending, not empty.
    pub retry: Vec<Duration>,
}

/// How registries are asked.
#[derive(Clone, Debug)]
pub struct Rdap {
    pub enabled: bool,
    pub bootstrap: BaseUrl,
    pub bootstrap_refresh: Duration,
    /// To one server, 1 or more.
    pub requests_per_second: u32,
    /// Requests under way to one server, 1 or more.
    pub concurrency: u32,
    pub allow: AllowList,
    pub ca_file: Option<PathBuf>,
}

/// Who is asked for addresses; nobody named means the system's resolvers.
#[derive(Clone, Debug, Default)]
pub struct Dns {
    pub servers: Vec<SocketAddr>,
}
