//! The sections for outbound calls: `[smtp]`, `[telegram]`, `[webhooks]`, `[rdap]`, `[whois]`, `[archive]`,
//! `[sample]` and `[dns]`.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use url::{Host, Url};

use crate::config::number::Bounded;
use crate::outbound::settings::{
    ARCHIVE_URL_DEFAULT, Archive, Dns, PUSHOVER_BASE_DEFAULT, RDAP_BOOTSTRAP_DEFAULT,
    RETRY_SECONDS_DEFAULT, Rdap, Sample, Smtp, SmtpTls, TELEGRAM_BASE_DEFAULT, Telegram, Webhooks,
    Whois,
};
use crate::outbound::whois;
use crate::vocab::named;
use crate::vocab::net::{self, AllowList};
use crate::vocab::rdap::RdapBase;
use crate::vocab::secret::{Secret, SecretSource};
use crate::vocab::suffixes;
use crate::vocab::tld::{fold_tld, is_suffix};
use crate::vocab::url::{BaseUrl, DeniedName};

/// Maximum number of attempts; a delivery stays in memory until its last.
const RETRIES_MAX: usize = 20;
/// Maximum time between the first attempt and the last: a week.
const RETRY_SECONDS_MAX: u32 = 7 * 86_400;
/// Maximum rate and concurrency of requests to an RDAP server, far above what registries allow.
const RDAP_RATE_MAX: u32 = 1_000;
const BOOTSTRAP_HOURS_DEFAULT: u64 = 24;
/// Maximum interval between two downloads of the RDAP bootstrap file: a month.
const BOOTSTRAP_HOURS_MAX: u32 = 24 * 30;
/// Maximum queries to a web archive a minute: the Internet Archive blocks addresses with more than 30, and asks
/// clients to stay at four fifths of that.
const ARCHIVE_PER_MINUTE_MAX: u32 = 24;
const ARCHIVE_BEST_DEFAULT: u32 = 300;
/// Maximum number of names a day, which takes four hours.
const ARCHIVE_BEST_MAX: u32 = 5_000;
const DNS_SERVERS_MAX: usize = 8;
const DNS_PORT: u16 = 53;

/// Secrets from the environment. Secrets from the environment take precedence over the file.
#[derive(Clone, Debug, Default)]
pub struct GivenSecrets {
    pub smtp_password: Option<Secret>,
    pub telegram_token: Option<Secret>,
    pub czds_password: Option<Secret>,
    pub s3_secret_access_key: Option<Secret>,
    pub backup_s3_secret_access_key: Option<Secret>,
}

/// The section `[smtp]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SmtpFile {
    host: Option<String>,
    port: Option<u16>,
    #[serde(deserialize_with = "named::optional")]
    tls: Option<SmtpTls>,
    username: Option<String>,
    password: Option<Secret>,
    password_file: Option<PathBuf>,
    from: Option<String>,
    ca_file: Option<PathBuf>,
}

/// The section `[telegram]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelegramFile {
    token: Option<Secret>,
    token_file: Option<PathBuf>,
    base: Option<BaseUrl>,
    allow: AllowList,
    ca_file: Option<PathBuf>,
}

/// The section `[webhooks]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WebhooksFile {
    allow: AllowList,
    deny_hosts: Vec<DeniedName>,
    ca_file: Option<PathBuf>,
    retry_seconds: Option<Vec<u32>>,
    pushover_base: Option<BaseUrl>,
}

/// The section `[rdap]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RdapFile {
    enabled: Option<bool>,
    bootstrap: Option<BaseUrl>,
    bootstrap_refresh_hours: Option<Bounded<1, BOOTSTRAP_HOURS_MAX>>,
    requests_per_second: Option<Bounded<1, RDAP_RATE_MAX>>,
    concurrency: Option<Bounded<1, RDAP_RATE_MAX>>,
    allow: AllowList,
    ca_file: Option<PathBuf>,
    /// A base URL, or `none`, by suffix.
    servers: HashMap<String, String>,
}

/// The section `[whois]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WhoisFile {
    enabled: bool,
    /// A host, or a host and port, by suffix.
    servers: HashMap<String, String>,
    allow: AllowList,
}

/// The section `[archive]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ArchiveFile {
    enabled: bool,
    url: Option<BaseUrl>,
    per_minute: Option<Bounded<1, ARCHIVE_PER_MINUTE_MAX>>,
    best: Option<Bounded<0, ARCHIVE_BEST_MAX>>,
    allow: AllowList,
    ca_file: Option<PathBuf>,
}

/// The section `[sample]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SampleFile {
    enabled: bool,
    suffixes: Vec<String>,
    except: Vec<String>,
}

/// The section `[dns]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DnsFile {
    servers: Vec<String>,
    zones: HashMap<String, Vec<String>>,
}

impl SmtpFile {
    pub(super) fn settings(self, given: Option<Secret>) -> anyhow::Result<Smtp> {
        let host = self.host.filter(|host| !host.is_empty());
        let host = host.context("smtp.host is missing; set it to the name of your mail server")?;
        let tls = self.tls.unwrap_or(SmtpTls::StartTls);
        anyhow::ensure!(
            tls != SmtpTls::None || is_local(&host),
            "smtp.tls = \"none\" sends mails and passwords unencrypted; it is allowed for localhost, a \
             private address or a name without a dot, not for {host}"
        );
        let from = self.from.context(
            "smtp.from is missing; set it to a sender such as \"dropdex <a@b.example>\"",
        )?;
        let from = from.parse().with_context(|| format!("smtp.from: `{from}` is not a mailbox"))?;
        let password = secret(given, self.password, self.password_file, "smtp.password")?;
        let login = match (self.username, password) {
            (Some(username), Some(password)) => Some((username, password)),
            (None, None) => None,
            (Some(_), None) => anyhow::bail!(
                "smtp.username needs a password; set smtp.password_file, smtp.password or \
                 DROPDEX_SMTP_PASSWORD"
            ),
            (None, Some(_)) => anyhow::bail!("smtp.password needs smtp.username"),
        };
        let port = self.port.unwrap_or(tls.default_port());
        Ok(Smtp { host, port, tls, login, from, ca_file: self.ca_file })
    }
}

/// Whether `host` is on this machine or in a private network, judged by its name.
fn is_local(host: &str) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => !net::is_global(address),
        Err(_) => {
            !host.contains('.') || host.ends_with(".internal") || host.ends_with(".localhost")
        }
    }
}

/// The secret `name` from the environment, from the setting or from the file in `NAME_file`.
pub(super) fn secret(
    given: Option<Secret>,
    text: Option<Secret>,
    file: Option<PathBuf>,
    name: &str,
) -> anyhow::Result<Option<SecretSource>> {
    anyhow::ensure!(text.is_none() || file.is_none(), "set {name} or {name}_file, not both");
    let text = given.or(text).map(SecretSource::Text);
    Ok(text.or(file.map(SecretSource::File)))
}

impl TelegramFile {
    pub(super) fn settings(self, given: Option<Secret>) -> anyhow::Result<Telegram> {
        let token = secret(given, self.token, self.token_file, "telegram.token")?.context(
            "telegram.token is missing; set telegram.token_file, telegram.token or \
             DROPDEX_TELEGRAM_TOKEN to the token from @BotFather",
        )?;
        let base = self.base.unwrap_or_else(|| built_in(TELEGRAM_BASE_DEFAULT));
        Ok(Telegram { token, base, allow: self.allow, ca_file: self.ca_file })
    }
}

impl WebhooksFile {
    pub(super) fn settings(self) -> anyhow::Result<Webhooks> {
        let WebhooksFile { allow, deny_hosts, ca_file, retry_seconds, pushover_base } = self;
        let pushover_base = pushover_base.unwrap_or_else(|| built_in(PUSHOVER_BASE_DEFAULT));
        let retry = retry_seconds.unwrap_or_else(|| RETRY_SECONDS_DEFAULT.to_vec());
        let ascending = retry.is_sorted() && retry.last().is_some_and(|&s| s <= RETRY_SECONDS_MAX);
        anyhow::ensure!(
            ascending && retry.len() <= RETRIES_MAX,
            "webhooks.retry_seconds must be 1 to {RETRIES_MAX} ascending numbers of seconds, up to \
             {RETRY_SECONDS_MAX}"
        );
        let retry = retry.into_iter().map(|seconds| Duration::from_secs(seconds.into())).collect();
        Ok(Webhooks { allow, deny_names: deny_hosts, ca_file, pushover_base, retry })
    }
}

impl RdapFile {
    pub(super) fn settings(self) -> anyhow::Result<Rdap> {
        let hours = self.bootstrap_refresh_hours.map_or(BOOTSTRAP_HOURS_DEFAULT, Bounded::get);
        let server = |(suffix, text): (String, String)| {
            let suffix = suffix.to_ascii_lowercase();
            anyhow::ensure!(
                is_suffix(&suffix),
                "rdap.servers: `{suffix}` is not a suffix such as de"
            );
            let base = match text.as_str() {
                "none" => None,
                text => {
                    let base = RdapBase::parse(text, &|url| self.allow.may_be_plain(url));
                    Some(base.with_context(|| {
                        format!(
                            "rdap.servers.{suffix}: `{text}` is not `none` or the base URL of an RDAP server \
                             with https, or is one that answers wrongly for some suffixes"
                        )
                    })?)
                }
            };
            Ok((suffix, base))
        };
        let servers = self.servers.into_iter().map(server).collect::<anyhow::Result<_>>()?;
        Ok(Rdap {
            enabled: self.enabled.unwrap_or(true),
            bootstrap: self.bootstrap.unwrap_or_else(|| built_in(RDAP_BOOTSTRAP_DEFAULT)),
            bootstrap_refresh: Duration::from_secs(hours * 3_600),
            requests_per_second: self.requests_per_second.map_or(1, Bounded::get),
            concurrency: self.concurrency.map_or(2, Bounded::get),
            allow: self.allow,
            ca_file: self.ca_file,
            servers,
        })
    }
}

impl WhoisFile {
    pub(super) fn settings(self) -> anyhow::Result<Whois> {
        let server = |(suffix, text): (String, String)| {
            let suffix = suffix.to_ascii_lowercase();
            anyhow::ensure!(
                whois::is_known(&suffix),
                "whois.servers: how a free name of `{suffix}` reads is not known, so its WHOIS server \
                 would prove nothing; see data/docs/watchlist.md for the suffixes"
            );
            let host = host_and_port(&text).with_context(|| {
                format!("whois.servers.{suffix}: `{text}` is not a host such as whois.iis.se, or HOST:PORT")
            })?;
            Ok((suffix, host))
        };
        let servers = self.servers.into_iter().map(server).collect::<anyhow::Result<_>>()?;
        Ok(Whois { enabled: self.enabled, servers, allow: self.allow })
    }
}

impl ArchiveFile {
    pub(super) fn settings(self) -> Option<Archive> {
        let per_minute = self.per_minute.map_or(ARCHIVE_PER_MINUTE_MAX, Bounded::get);
        self.enabled.then(|| Archive {
            url: self.url.unwrap_or_else(|| built_in(ARCHIVE_URL_DEFAULT)),
            every: Duration::from_secs(60) / per_minute,
            best: self.best.map_or(ARCHIVE_BEST_DEFAULT, Bounded::get),
            allow: self.allow,
            ca_file: self.ca_file,
        })
    }
}

impl SampleFile {
    pub(super) fn settings(self, rdap: &Rdap) -> anyhow::Result<Option<Sample>> {
        let known = |texts: Vec<String>, of: &str| {
            let suffix = |text: String| {
                let folded = fold_tld(&text).filter(|suffix| is_public(suffix));
                let folded = folded.with_context(|| {
                    format!("sample.{of}: `{text}` is not a suffix such as de or co.uk")
                })?;
                Ok(folded.into())
            };
            texts.into_iter().map(suffix).collect::<anyhow::Result<_>>()
        };
        let (suffixes, except) = (known(self.suffixes, "suffixes")?, known(self.except, "except")?);
        anyhow::ensure!(
            rdap.enabled || !self.enabled,
            "sample.enabled asks RDAP servers, and rdap.enabled is false; change one of them"
        );
        Ok(self.enabled.then_some(Sample { suffixes, except }))
    }
}

/// Returns true if the Public Suffix List has the suffix.
fn is_public(suffix: &str) -> bool {
    let found = suffixes::find(&format!("drop.{suffix}"));
    is_suffix(suffix) && found.len == suffix.len() && found.section.is_some()
}

/// Parses a host with an optional port.
fn host_and_port(text: &str) -> Option<(Host, u16)> {
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    let is_plain = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    // The default port of the scheme is not kept, and no WHOIS server has it.
    let port = if text.ends_with(":80") { 80 } else { url.port().unwrap_or(whois::PORT) };
    let host = url.host()?.to_owned();
    (is_plain && !text.contains(['/', '?', '#'])).then_some((host, port))
}

impl DnsFile {
    pub(super) fn settings(self) -> anyhow::Result<Dns> {
        anyhow::ensure!(
            self.servers.len() <= DNS_SERVERS_MAX,
            "dns.servers has more than {DNS_SERVERS_MAX} entries"
        );
        let addresses = |texts: &[String], of: &str| -> anyhow::Result<Vec<SocketAddr>> {
            let address = |text: &String| {
                let address = text.parse::<SocketAddr>().ok();
                let address =
                    address.or_else(|| Some((text.parse::<IpAddr>().ok()?, DNS_PORT).into()));
                address.with_context(|| {
                    format!("{of}: `{text}` is not an address such as 127.0.0.1:5353 or 9.9.9.9")
                })
            };
            texts.iter().map(address).collect()
        };
        let zone = |(suffix, servers): (String, Vec<String>)| {
            let suffix = suffix.to_ascii_lowercase();
            anyhow::ensure!(
                is_suffix(&suffix) && (1..=DNS_SERVERS_MAX).contains(&servers.len()),
                "dns.zones: `{suffix}` must be a suffix such as com or co.uk, with one to \
                 {DNS_SERVERS_MAX} servers"
            );
            let servers = addresses(&servers, &format!("dns.zones.{suffix}"))?;
            Ok((suffix, servers))
        };
        let servers = addresses(&self.servers, "dns.servers")?;
        let zones = self.zones.into_iter().map(zone).collect::<anyhow::Result<_>>()?;
        Ok(Dns { servers, zones })
    }
}

fn built_in(text: &str) -> BaseUrl {
    BaseUrl::try_from(text.to_owned()).expect("built-in addresses are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Given};
    use crate::outbound::settings::Settings;

    fn load(text: &str, secrets: GivenSecrets) -> anyhow::Result<Settings> {
        Ok(Config::load_text(text, Given { secrets, ..Given::default() })?.outbound)
    }

    fn loaded(text: &str) -> Settings {
        load(text, GivenSecrets::default()).unwrap_or_else(|err| panic!("{text}: {err:#}"))
    }

    #[test]
    fn channels_are_off_by_default() {
        let settings = loaded("");
        assert!(settings.smtp.is_none() && settings.telegram.is_none());
        assert!(settings.public_url.is_none() && settings.dns.servers.is_empty());
        assert_eq!(settings.webhooks.allow, AllowList::default());
        assert_eq!(settings.webhooks.retry.len(), 10);
        assert_eq!(settings.webhooks.retry.last(), Some(&Duration::from_secs(86_400)));
        assert!(settings.rdap.enabled);
        assert_eq!(settings.rdap.bootstrap.as_str(), RDAP_BOOTSTRAP_DEFAULT);
        assert_eq!((settings.rdap.requests_per_second, settings.rdap.concurrency), (1, 2));
        assert!(settings.archive.is_none());
        let archive = loaded("[archive]\nenabled = true").archive.expect("on");
        assert_eq!((archive.url.as_str(), archive.best), (ARCHIVE_URL_DEFAULT, 300));
        assert_eq!(archive.every, Duration::from_millis(2_500));
    }

    #[test]
    fn every_section_is_read() {
        let settings = loaded(
            "public_url = \"https://drops.example.com/\"\n\
             [smtp]\nhost = \"mail.example.com\"\nusername = \"u\"\npassword_file = \"p\"\n\
             from = \"Drops <drops@example.com>\"\nca_file = \"ca.pem\"\n\
             [telegram]\ntoken = \"1:abc\"\nbase = \"http://127.0.0.1:8081\"\nallow = [\"127.0.0.1:8081\"]\n\
             [webhooks]\nallow = [\"127.0.0.1/32:9000\"]\ndeny_hosts = [\"corp.example\"]\n\
             ca_file = \"ca.pem\"\nretry_seconds = [0, 1, 1, 3]\n\
             [rdap]\nenabled = false\nbootstrap = \"https://rdap.example/dns.json\"\n\
             bootstrap_refresh_hours = 1\nrequests_per_second = 5\nconcurrency = 7\n\
             allow = [\"[::1]:9001\"]\nca_file = \"ca.pem\"\n\
             [archive]\nenabled = true\nurl = \"https://cdx.example/cdx\"\nper_minute = 6\nbest = 0\n\
             allow = [\"[::1]:9002\"]\nca_file = \"ca.pem\"\n\
             [dns]\nservers = [\"127.0.0.1:5353\", \"9.9.9.9\", \"::1\"]\n",
        );
        let archive = settings.archive.as_ref().expect("on");
        assert_eq!((archive.url.as_str(), archive.best), ("https://cdx.example/cdx", 0));
        assert_eq!(archive.every, Duration::from_secs(10));
        let smtp = settings.smtp.as_ref().expect("set up");
        assert_eq!((smtp.tls, smtp.port), (SmtpTls::StartTls, 587));
        assert!(matches!(&smtp.login, Some((user, SecretSource::File(_))) if user == "u"));
        assert_eq!(smtp.from.to_string(), "Drops <drops@example.com>");
        let telegram = settings.telegram.as_ref().expect("set up");
        assert_eq!(telegram.base.as_str(), "http://127.0.0.1:8081");
        assert_eq!(settings.webhooks.retry[3], Duration::from_secs(3));
        assert_eq!(settings.rdap.bootstrap_refresh, Duration::from_secs(3_600));
        let servers = ["127.0.0.1:5353", "9.9.9.9:53", "[::1]:53"].map(|s| s.parse().expect(s));
        assert_eq!(settings.dns.servers, servers);
        let rules = settings.webhook_rules();
        let own = url::Url::parse("https://drops.example.com/x").expect("a URL");
        assert!(rules.check(&own).is_err(), "webhooks to our own host are denied");
        let shown = format!("{settings:?}");
        assert!(!shown.contains("1:abc"), "{shown}");
    }

    #[test]
    fn suffixes_of_the_sample_are_chosen() {
        let sample = |text: &str| loaded(&format!("[sample]\n{text}")).sample;
        assert_eq!((loaded("").sample, sample("suffixes = [\"de\"]")), (None, None), "off");
        let is_complete = |suffix: &str| suffix == "com";
        let chosen = |text: &str| {
            let sample = sample(&format!("enabled = true\n{text}")).expect("on");
            let has = |suffix: &&str| sample.has(suffix, is_complete);
            ["com", "de", "co.uk"].into_iter().filter(has).collect::<Vec<_>>()
        };
        assert_eq!(chosen(""), ["de", "co.uk"]);
        assert_eq!(chosen("except = [\".DE\"]"), ["co.uk"]);
        assert_eq!(chosen("suffixes = [\"com\", \"de\"]"), ["com", "de"]);
    }

    #[test]
    fn environment_secrets_take_precedence_over_the_file() {
        let secrets = GivenSecrets {
            smtp_password: Some(Secret::new("given".into())),
            telegram_token: Some(Secret::new("2:given".into())),
            ..GivenSecrets::default()
        };
        let text = "[smtp]\nhost = \"h.example\"\nusername = \"u\"\nfrom = \"a@h.example\"\n\
                    [telegram]\ntoken = \"1:file\"\n";
        let settings = load(text, secrets).expect("loads");
        let (_, password) = settings.smtp.expect("set up").login.expect("a login");
        assert_eq!(password.read().expect("given").reveal(), "given");
        let token = settings.telegram.expect("set up").token;
        assert_eq!(token.read().expect("given").reveal(), "2:given");
    }

    #[test]
    fn line_ends_of_secret_files_are_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        for (text, secret) in [("a b \r\n", Some("a b ")), ("x", Some("x")), ("\n", None)] {
            std::fs::write(&path, text).expect("writable");
            let read = SecretSource::File(path.clone()).read().ok();
            assert_eq!(read.as_ref().map(Secret::reveal), secret, "{text:?}");
        }
    }

    #[test]
    fn unencrypted_mail_is_for_local_hosts() {
        let text = |host: &str| {
            format!("[smtp]\nhost = \"{host}\"\ntls = \"none\"\nfrom = \"a@b.example\"\n")
        };
        for near in ["localhost", "127.0.0.1", "::1", "10.0.0.5", "mailhog", "mail.internal"] {
            assert_eq!(loaded(&text(near)).smtp.expect("set up").port, 25);
        }
        for far in ["mail.example.com", "8.8.8.8", "2606:4700::1"] {
            let refused = load(&text(far), GivenSecrets::default()).expect_err(far);
            assert!(format!("{refused:#}").contains("smtp.tls"), "{refused}");
        }
    }

    #[test]
    fn errors_name_the_setting() {
        for (text, word) in [
            ("public_url = \"drops.example.com\"", "drops.example.com"),
            ("[smtp]\nfrom = \"a@b.example\"", "smtp.host"),
            ("[smtp]\nhost = \"h.example\"", "smtp.from"),
            ("[smtp]\nhost = \"h.example\"\nfrom = \"nobody\"", "smtp.from"),
            ("[smtp]\nhost = \"h\"\nfrom = \"a@b.example\"\nusername = \"u\"", "smtp.username"),
            ("[smtp]\nhost = \"h\"\nfrom = \"a@b.example\"\npassword = \"p\"", "smtp.username"),
            (
                "[smtp]\nhost = \"h\"\nfrom = \"a@b.example\"\nusername = \"u\"\npassword = \"p\"\n\
                 password_file = \"f\"",
                "not both",
            ),
            ("[smtp]\nhost = \"h\"\nfrom = \"a@b.example\"\ntls = \"maybe\"", "maybe"),
            ("[smtp]\nhost = \"h\"\nfrom = \"a@b.example\"\nsecure = true", "secure"),
            ("[telegram]", "telegram.token"),
            ("[telegram]\ntoken = \"1:a\"\nbase = \"ftp://x\"", "ftp"),
            ("[webhooks]\nallow = [\"127.0.0.1\"]", "127.0.0.1"),
            ("[webhooks]\ndeny_hosts = [\"a b\"]", "a b"),
            ("[webhooks]\nretry_seconds = []", "retry_seconds"),
            ("[webhooks]\nretry_seconds = [5, 1]", "retry_seconds"),
            ("[webhooks]\nretry_seconds = [0, 604801]", "retry_seconds"),
            ("[webhooks]\nallowed = []", "allowed"),
            ("[rdap]\nrequests_per_second = 0", "requests_per_second"),
            ("[rdap]\nconcurrency = 0", "concurrency"),
            ("[rdap]\nbootstrap_refresh_hours = 0", "bootstrap_refresh_hours"),
            ("[archive]\nper_minute = 25", "per_minute"),
            ("[archive]\nper_minute = 0", "per_minute"),
            ("[archive]\nbest = 5001", "best"),
            ("[archive]\nurl = \"archive.example\"", "archive.example"),
            ("[dns]\nservers = [\"localhost\"]", "localhost"),
            ("[sample]\nsuffixes = [\"nosuchsuffix\"]", "nosuchsuffix"),
            ("[sample]\nenabled = true\nexcept = [\"a.com\"]", "a.com"),
            ("[sample]\nenabled = true\n[rdap]\nenabled = false", "rdap.enabled"),
            ("[sample]\nnames = 60", "names"),
        ] {
            let refused = load(text, GivenSecrets::default()).expect_err(text);
            assert!(format!("{refused:#}").contains(word), "{text}: {refused:#}");
        }
    }
}
