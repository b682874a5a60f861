//! The section `[sources]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use chrono::TimeDelta;
use config::{Value, ValueKind};
use serde::Deserialize;

use crate::config::number::Bounded;
use crate::config::problem::Problem;
use crate::facts::published::{PublishedList, TOP_DEFAULT};
use crate::feeds::Format;
use crate::sources::presets::{Class, Content, Flow, PRESETS, Packing, TRANSFER_MIB_MAX, Terms};
use crate::sources::schedule::Schedule;
use crate::sources::settings::{Address, Contact, Login, Settings, Source};
use crate::vocab::day::Day;
use crate::vocab::net::AllowList;
use crate::vocab::secret::{Secret, SecretSource};
use crate::vocab::similar;
use crate::vocab::tld::is_label;

const IDLE_SECONDS_DEFAULT: u32 = 60;
const IDLE_SECONDS_MAX: u32 = 3_600;
/// Default of `max_mib` for an operator's own source.
const MIB_DEFAULT: u32 = 256;
/// Five times the largest compressed zone file.
const MIB_MAX: u32 = 25 << 10;
/// More rows than Common Crawl's ranks have.
const TOP_MAX: u32 = 1_000_000_000;
const NAME_MAX: usize = 40;

/// The section `[sources]`: settings shared by all sources, and one table per source.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, Value>")]
pub(super) struct SourcesFile {
    shared: SharedFile,
    sources: BTreeMap<String, SourceFile>,
}

/// The settings of all sources.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SharedFile {
    contact: Option<Contact>,
    allow: AllowList,
    ca_file: Option<PathBuf>,
    idle_seconds: Option<Bounded<1, IDLE_SECONDS_MAX>>,
    export_internal: bool,
}

/// Tables are those of sources. Parsing each on its own lets errors name the source.
impl TryFrom<BTreeMap<String, Value>> for SourcesFile {
    type Error = Problem;

    fn try_from(section: BTreeMap<String, Value>) -> Result<SourcesFile, Problem> {
        let is_table = |value: &Value| matches!(value.kind, ValueKind::Table(_));
        let (tables, shared): (Vec<_>, Vec<_>) =
            section.into_iter().partition(|(_, value)| is_table(value));
        let shared = Value::from(config::Map::from_iter(shared));
        let read = |(name, table): (String, Value)| {
            let read = SourceFile::deserialize(table);
            let source = read.map_err(|err| Problem::from(err).in_section(&name))?;
            Ok((name, source))
        };
        Ok(SourcesFile {
            shared: SharedFile::deserialize(shared)?,
            sources: tables.into_iter().map(read).collect::<Result<_, Problem>>()?,
        })
    }
}

/// The table of a source.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SourceFile {
    enabled: Option<bool>,
    url: Option<Urls>,
    format: Option<String>,
    schedule: Option<Schedule>,
    username: Option<String>,
    password: Option<Secret>,
    password_file: Option<PathBuf>,
    max_mib: Option<Bounded<1, MIB_MAX>>,
    login_url: Option<String>,
    zones: Option<Vec<String>>,
    top: Option<Bounded<1, TOP_MAX>>,
    terms: Option<String>,
    licence: Option<String>,
    internal: Option<bool>,
}

/// One URL or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Urls {
    One(String),
    Many(Vec<String>),
}

impl SourcesFile {
    pub(super) fn settings(self, czds_password: Option<Secret>) -> anyhow::Result<Settings> {
        let SourcesFile { shared, sources: mut tables } = self;
        let SharedFile { contact, allow, ca_file, idle_seconds, export_internal } = shared;
        let mut sources: Vec<Source> = PRESETS.iter().map(Source::from).collect();
        for source in &mut sources {
            if let Some(mut table) = tables.remove(&source.name) {
                if source.flow == Flow::Czds && czds_password.is_some() {
                    (table.password, table.password_file) = (czds_password.clone(), None);
                }
                let name = format!("sources.{}", source.name);
                table.apply(source).context(name)?;
            }
        }
        for (name, table) in tables {
            let own = table.own(&name).with_context(|| format!("sources.{name}"))?;
            sources.push(own);
        }
        let idle = idle_seconds.map_or(IDLE_SECONDS_DEFAULT.into(), Bounded::get);
        let idle = Duration::from_secs(idle);
        Ok(Settings { contact, allow, ca_file, idle, export_internal, sources })
    }
}

impl SourceFile {
    /// Builds a source that the operator defined.
    fn own(self, name: &str) -> anyhow::Result<Source> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.url.is_none() {
            let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            match similar::nearest(name, known.iter().copied()) {
                Some(nearest) => bail!("no preset has this name; did you mean {nearest}?"),
                None => bail!(
                    "no preset has this name; give an own source an `url`, or use one of {}",
                    known.join(", ")
                ),
            }
        }
        ensure!(
            (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain),
            "the name of a source is 1 to {NAME_MAX} lower-case letters, digits and hyphens"
        );
        let mut source = Source {
            name: name.to_owned(),
            about: "Own source".to_owned(),
            class: Class::Own,
            addresses: Vec::new(),
            // Yesterday's list may have been published after yesterday's last run.
            days: (-1, 0),
            newest_only: false,
            flow: Flow::Direct,
            content: Content::Names,
            top: TOP_DEFAULT,
            format: None,
            packing: Packing::Any,
            schedule: Schedule::daily(6, 0),
            head_first: false,
            checksum: false,
            may_be_early: false,
            pause: TimeDelta::zero(),
            max_bytes: u64::from(MIB_DEFAULT) << 20,
            terms: Terms { text: "Own source.".to_owned(), licence: None, internal: false },
            login: None,
            login_url: None,
            zones: Vec::new(),
            enabled: Some(true),
        };
        self.apply(&mut source)?;
        source.may_be_early = source.is_dated();
        Ok(source)
    }

    /// Overrides a preset with the settings of its table.
    fn apply(self, source: &mut Source) -> anyhow::Result<()> {
        let urls = match self.url {
            None => Vec::new(),
            Some(Urls::One(url)) => vec![url],
            Some(Urls::Many(urls)) => {
                ensure!(!urls.is_empty(), "`url` is empty");
                urls
            }
        };
        if !urls.is_empty() {
            let urls = urls.into_iter().map(Address::try_from).collect::<Result<Vec<_>, _>>();
            source.addresses = urls.map_err(anyhow::Error::msg).context("url")?;
            let transfers = source.addresses.iter().filter(|it| it.is_transfer()).count();
            ensure!(
                transfers == 0 || transfers == source.addresses.len(),
                "url: axfr:// stands alone"
            );
            match (transfers > 0, source.flow) {
                (true, _) => {
                    (source.flow, source.format) = (Flow::Transfer, Some(Format::Zone));
                    source.max_bytes = u64::from(TRANSFER_MIB_MAX) << 20;
                }
                (false, Flow::Transfer) => source.flow = Flow::Direct,
                (false, _) => {}
            }
        }
        if self.login_url.is_some() || self.zones.is_some() {
            ensure!(source.flow == Flow::Czds, "login_url and zones are settings of czds");
        }
        if let Some(url) = self.login_url {
            let address =
                Address::try_from(url).map_err(anyhow::Error::msg).context("login_url")?;
            source.login_url = Some(address.on(Day::MIN));
        }
        for zone in self.zones.into_iter().flatten() {
            let zone = zone.trim_matches('.').to_ascii_lowercase();
            let is_name = zone.split('.').all(is_label);
            ensure!(is_name, "zones: `{zone}` is not a TLD such as com or xn--p1ai");
            source.zones.push(zone);
        }
        if let Some(top) = self.top {
            let has_ranks = source.content == Content::Facts(PublishedList::Links);
            ensure!(has_ranks, "top is a setting of cc-ranks");
            source.top = top.get();
        }
        if let Some(format) = self.format {
            let format: Format = format.parse().context("format")?;
            ensure!(format != Format::ZonePair, "format: a zone pair is two files");
            source.format = Some(format);
        }
        let password = match (self.password, self.password_file) {
            (Some(_), Some(_)) => bail!("set password or password_file, not both"),
            (Some(text), None) => Some(SecretSource::Text(text)),
            (None, file) => file.map(SecretSource::File),
        };
        source.login = match (self.username, password) {
            (Some(username), Some(password)) => Some(Login { username, password }),
            (None, None) => None,
            (Some(_), None) => {
                bail!("username needs password_file, or for czds DROPDEX_CZDS_PASSWORD")
            }
            (None, Some(_)) => bail!("the password needs username"),
        };
        source.enabled = self.enabled.or(source.enabled);
        source.schedule = self.schedule.unwrap_or(source.schedule);
        source.max_bytes =
            self.max_mib.map_or(source.max_bytes, |mib| Bounded::get::<u64>(mib) << 20);
        source.terms.text = self.terms.unwrap_or_else(|| source.terms.text.clone());
        source.terms.licence = self.licence.or(source.terms.licence.take());
        source.terms.internal = self.internal.unwrap_or(source.terms.internal);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Given};
    use crate::sources::presets;

    fn load(text: &str) -> anyhow::Result<Settings> {
        Ok(Config::load_text(text, Given::default())?.sources)
    }

    fn loaded(text: &str) -> Settings {
        load(text).unwrap_or_else(|err| panic!("{text}: {err:#}"))
    }

    fn source<'a>(settings: &'a Settings, name: &str) -> &'a Source {
        settings.sources.iter().find(|source| source.name == name).expect(name)
    }

    #[test]
    fn every_preset_is_valid_and_off() {
        let settings = loaded("");
        assert_eq!(settings.sources.len(), PRESETS.len());
        let today = "2026-12-31".parse().expect("a day");
        for (source, preset) in settings.sources.iter().zip(PRESETS) {
            assert_eq!(source.name, preset.name);
            assert_eq!(source.enabled, None, "{}", source.name);
            for address in &source.addresses {
                let text = address.as_str().to_owned();
                assert_eq!(Address::try_from(text).as_ref(), Ok(address));
            }
            let is_safe = |url: &url::Url| matches!(url.scheme(), "https" | "axfr");
            assert!(source.urls(today).iter().all(is_safe));
            assert!(presets::find(&source.name).is_some() && !source.terms.text.is_empty());
        }
        let it = source(&settings, "it-droptime").urls(today);
        assert_eq!(it.len(), 6);
        assert_eq!(it[2].as_str(), "https://www.nic.it/droptime/files/2027010209.txt");
    }

    #[test]
    fn presets_are_changed_and_own_sources_added() {
        let settings = loaded(
            "[sources]\ncontact = \"ops@example.com\"\nallow = [\"127.0.0.1:9000\"]\nidle_seconds = 5\n\
             [sources.uk-nominet]\nenabled = true\nurl = \"http://127.0.0.1:9000/uk.csv.gz\"\n\
             schedule = \"every 1h\"\n\
             [sources.cc-ranks]\ntop = 1000\n\
             [sources.mine]\nurl = [\"https://a.example/{date}.csv?key=1\"]\nformat = \"names\"\n\
             username = \"me\"\npassword_file = \"secret\"\nmax_mib = 3\nlicence = \"CC-BY-4.0\"\n",
        );
        assert_eq!(settings.contact.as_ref().map(Contact::as_str), Some("ops@example.com"));
        assert_eq!(settings.idle, Duration::from_secs(5));
        let uk = source(&settings, "uk-nominet");
        assert_eq!((uk.enabled, uk.schedule), (Some(true), Schedule::hours(1)));
        assert!(uk.head_first && uk.checksum, "only the address changes");
        assert_eq!(source(&settings, "cc-ranks").top, 1_000);
        let mine = source(&settings, "mine");
        assert_eq!(mine.enabled, Some(true));
        assert_eq!((mine.class, mine.max_bytes), (Class::Own, 3 << 20));
        assert!(mine.login.is_some() && mine.may_be_early);
        let urls = mine.urls("2026-11-23".parse().expect("a day"));
        let shown: Vec<String> = urls.iter().map(crate::sources::settings::shown).collect();
        assert_eq!(shown, ["https://a.example/20261122.csv", "https://a.example/20261123.csv"]);
        assert!(!format!("{settings:?}").contains("hunter"));
    }

    #[test]
    fn errors_name_the_source() {
        for (text, word) in [
            ("[sources.uk-nominett]\nenabled = true", "did you mean uk-nominet?"),
            ("[sources.x]\nenabled = true", "use one of uk-nominet, se-bardate"),
            ("[sources.Mine]\nurl = \"https://a.example/x\"", "lower-case"),
            ("[sources.mine]\nurl = \"ftp://a.example/x\"", "https://"),
            ("[sources.mine]\nurl = \"https://u:p@a.example/x\"", "no user"),
            ("[sources.mine]\nurl = \"https://a.example/{day}\"", "{date}"),
            ("[sources.mine]\nurl = []", "empty"),
            ("[sources.crux]\ntop = 1000", "top is a setting of cc-ranks"),
            ("[sources.cc-ranks]\ntop = 0", "out of range"),
            ("[sources.mine]\nurl = \"https://a.example/\"\nformat = \"xls\"", "xls"),
            ("[sources.mine]\nurl = \"https://a.example/\"\nformat = \"zone-pair\"", "two files"),
            ("[sources.mine]\nurl = \"https://a.example/\"\nschedule = \"hourly\"", "hourly"),
            ("[sources.mine]\nurl = \"https://a.example/\"\nusername = \"u\"", "password_file"),
            ("[sources.sedo]\nenable = true", "enable"),
            ("[sources.sedo]\nzones = [\"com\"]", "czds"),
            ("[sources.czds]\nzones = [\"c om\"]", "c om"),
            ("[sources.czds]\nlogin_url = \"account\"", "login_url"),
            ("[sources]\ncontact = \"a b\"", "a b"),
            ("[sources]\nidle_seconds = 0", "idle_seconds"),
        ] {
            let refused = load(text).expect_err(text);
            assert!(format!("{refused:#}").contains(word), "{text}: {refused:#}");
        }
    }
}
