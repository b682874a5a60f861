//! Parsed settings of sources, built by `config` from `[sources]` and the presets.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::facts::published::TOP_DEFAULT;
use crate::feeds::Format;
use crate::presets::{CZDS_LOGIN_URL, Class, Content, Flow, Packing, Preset, Terms};
use crate::schedule::Schedule;
use crate::vocab::day::Day;
use crate::vocab::net::AllowList;
use crate::vocab::origin::Origin;
use crate::vocab::secret::SecretSource;

/// Maximum bytes of a URL.
const ADDRESS_MAX: usize = 2_048;
/// Scheme of zone transfers.
pub const TRANSFER: &str = "axfr";
/// Placeholders for the day and for the month.
const DATE: &str = "{date}";
const MONTH: &str = "{month}";
/// Placeholder for a day in the URLs of WhoisDS: the file name `2026-11-23.zip` in base64.
const ZIP64: &str = "{zip64}";
/// Maximum concurrent requests to a host of [`Flow::Czds`]; other hosts get one.
const CZDS_LANES: usize = 4;
/// Maximum characters of a contact.
const CONTACT_MAX: usize = 200;

/// All settings of sources.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Contact of the operator, for the `User-Agent`.
    pub contact: Option<Contact>,
    /// Private addresses that may be called.
    pub allow: AllowList,
    /// PEM file of certificates to trust besides the public roots.
    pub ca_file: Option<PathBuf>,
    /// Maximum wait for the next bytes of a download.
    pub idle: Duration,
    /// Whether exports include drops from lists that are for internal use only.
    pub export_internal: bool,
    /// The presets in order, then the operator's own sources.
    pub sources: Vec<Source>,
}

/// A source: a list at one or more URLs.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of lower-case letters, digits and hyphens.
    pub name: String,
    pub about: String,
    pub class: Class,
    pub addresses: Vec<Address>,
    /// First and last day of dated URLs, relative to today.
    pub days: (i32, i32),
    /// Whether lists are cumulative, so that only the newest is fetched.
    pub newest_only: bool,
    pub flow: Flow,
    pub content: Content,
    /// Number of rows that are read of ranks by links.
    pub top: u64,
    /// Format of the lists; `None` detects it.
    pub format: Option<Format>,
    pub packing: Packing,
    pub schedule: Schedule,
    pub head_first: bool,
    pub checksum: bool,
    pub may_be_early: bool,
    /// Minimum time between two downloads of a list.
    pub pause: TimeDelta,
    pub max_bytes: u64,
    pub terms: Terms,
    /// Basic authentication at the host of the URL, or the log-in at `login_url`.
    pub login: Option<Login>,
    /// Login URL of [`Flow::Czds`].
    pub login_url: Option<Url>,
    /// The zones to download; empty for all.
    pub zones: Vec<String>,
    /// Choice in the settings file; with `None`, `dropdex sources enable` decides.
    pub enabled: Option<bool>,
}

/// User name and password at a source.
#[derive(Clone, Debug)]
pub struct Login {
    pub username: String,
    pub password: SecretSource,
}

impl From<&Preset> for Source {
    fn from(preset: &Preset) -> Source {
        let address = |url: &&str| Address((*url).to_owned());
        Source {
            name: preset.name.to_owned(),
            about: preset.about.to_owned(),
            class: preset.class,
            addresses: preset.urls.iter().map(address).collect(),
            days: preset.days,
            newest_only: preset.newest_only,
            flow: preset.flow,
            content: preset.content,
            top: TOP_DEFAULT,
            format: Some(preset.format),
            packing: preset.packing,
            schedule: preset.schedule,
            head_first: preset.head_first,
            checksum: preset.checksum,
            may_be_early: preset.may_be_early,
            pause: TimeDelta::hours(preset.hours_between.into()),
            max_bytes: u64::from(preset.max_mib) << 20,
            terms: Terms {
                text: preset.terms.to_owned(),
                licence: None,
                internal: preset.internal,
            },
            login: None,
            login_url: (preset.flow == Flow::Czds)
                .then(|| Url::parse(CZDS_LOGIN_URL).expect("a built-in address is valid")),
            zones: Vec::new(),
            enabled: None,
        }
    }
}

impl Source {
    /// Returns the URLs of today's lists; newest first if only the newest is needed.
    pub fn urls(&self, today: Day) -> Vec<Url> {
        let days = || (self.days.0..=self.days.1).map(|days| today.plus(days));
        let urls = self.addresses.iter().flat_map(|address| match address.is_dated() {
            true => days().map(|day| address.on(day)).collect(),
            false => vec![address.on(today)],
        });
        // All days of a month may share a URL, and settings may repeat one.
        let mut urls: Vec<Url> = urls.collect::<IndexSet<_>>().into_iter().collect();
        if self.newest_only {
            urls.reverse();
        }
        urls
    }

    /// Whether each list has its own URL, so that an ingested list need not be fetched again.
    pub fn is_dated(&self) -> bool {
        self.addresses.iter().all(Address::is_dated)
    }

    /// Returns the maximum number of concurrent requests to its host.
    pub fn lanes(&self) -> usize {
        if self.flow == Flow::Czds { CZDS_LANES } else { 1 }
    }

    /// Returns the zone whose file is at `url`, if the URL contains it.
    pub fn zone_at(&self, url: &Url) -> Option<String> {
        match self.flow {
            Flow::Czds => zone_of(url),
            Flow::Transfer => Some(url.path().trim_matches(['/', '.']).to_ascii_lowercase()),
            Flow::Direct | Flow::Link(_) | Flow::Tranco | Flow::WebGraph | Flow::Pages => None,
        }
    }

    /// Whether the login token may be sent to `url`.
    pub fn may_have_token(&self, url: &Url) -> bool {
        let is_icann = |host: &str| host.ends_with(".icann.org");
        let is_own = |address: &Address| address.on(Day::MIN).origin() == url.origin();
        url.scheme() == "https" && url.host_str().is_some_and(is_icann)
            || self.addresses.iter().any(is_own)
    }

    /// Returns the origin of a list from `url`.
    pub fn origin(&self, url: &Url) -> Origin {
        Origin {
            source: self.name.clone(),
            url: shown(url),
            terms: self.terms.text.clone(),
            licence: self.terms.licence.clone(),
            internal: self.terms.internal,
        }
    }
}

/// Shortens a URL for logs and messages: removes the query, which may contain a key, and the
/// fragment.
pub fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// The URL of a list: http or https, possibly with the day of the list in it, or `axfr` with a name
/// server and a zone. A fragment gives the file name if the rest of the URL identifies neither the
/// day nor the list. Invariant: a valid URL on every day, without user name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Address(String);

impl Address {
    /// Whether the URL contains a day.
    pub fn is_dated(&self) -> bool {
        [DATE, MONTH, ZIP64].iter().any(|placeholder| self.0.contains(placeholder))
    }

    /// Returns the URL of the list of `day`.
    pub fn on(&self, day: Day) -> Url {
        Url::parse(&filled(&self.0, day)).expect("a URL on every day")
    }

    /// Whether the URL gives a name server and a zone.
    pub fn is_transfer(&self) -> bool {
        self.on(Day::MIN).scheme() == TRANSFER
    }

    /// Returns the text with its placeholders.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the text with the placeholders replaced by a day.
fn filled(text: &str, day: Day) -> String {
    let zip = STANDARD.encode(format!("{day}.zip"));
    let date = day.date();
    text.replace(DATE, &date.format("%Y%m%d").to_string())
        .replace(MONTH, &date.format("%Y%m").to_string())
        .replace(ZIP64, &zip)
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Address, String> {
        let sample = filled(&text, Day::MIN);
        let url = Url::parse(&sample).map_err(|err| format!("`{text}` is not a URL: {err}"))?;
        let is_bare = url.username().is_empty() && url.password().is_none();
        if !matches!(url.scheme(), "http" | "https" | TRANSFER) || url.host().is_none() {
            return Err(format!(
                "`{text}` must start with https://, http:// or {TRANSFER}:// and a host"
            ));
        }
        if !is_bare || text.len() > ADDRESS_MAX {
            return Err(format!(
                "`{text}` must have no user and no password, and at most {ADDRESS_MAX} bytes"
            ));
        }
        if sample.contains(['{', '}']) {
            return Err(format!("`{text}`: the placeholders are {DATE}, {MONTH} and {ZIP64}"));
        }
        Ok(Address(text))
    }
}

/// A URL or e-mail address in the `User-Agent`, through which publishers can reach the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Contact(String);

impl Contact {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Contact {
    type Error = String;

    fn try_from(text: String) -> Result<Contact, String> {
        let is_plain = |c: char| c.is_ascii_graphic() && !"()\\\"".contains(c);
        let is_reachable =
            text.contains('@') || ["https://", "http://"].iter().any(|it| text.starts_with(it));
        if is_reachable && text.len() <= CONTACT_MAX && text.chars().all(is_plain) {
            Ok(Contact(text))
        } else {
            Err(format!(
                "`{text}` is not a contact such as https://example.com/about or ops@example.com"
            ))
        }
    }
}
/// Returns the zone of a link such as
/// `https://czds-download-api.icann.org/czds/downloads/com.zone`.
pub fn zone_of(url: &Url) -> Option<String> {
    let zone = url.path().rsplit('/').next()?.strip_suffix(".zone")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    (!zone.is_empty() && zone.bytes().all(is_plain)).then(|| zone.to_ascii_lowercase())
}
