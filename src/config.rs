//! Settings from flags, the environment and a TOML file, in this order of precedence, as one [`Config`].
//!
//! Ranges are checked by the types of [`number`], so that an error names the setting. Old names of
//! settings are listed in [`renamed`], and [`environment`] reads variables.

mod backup;
mod bucket;
pub mod cluster;
pub mod environment;
pub mod inbox;
pub mod index;
pub mod number;
pub mod outbound;
mod problem;
pub mod renamed;
mod server;
mod sources;
pub mod telemetry;
mod tls;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use config::{Value, ValueKind};
use serde::Deserialize;

use crate::backup::settings::BackupSettings;
use crate::config::backup::BackupFile;
use crate::config::cluster::{ClusterFile, ClusterSettings};
use crate::config::environment::Variable;
use crate::config::inbox::InboxSettings;
use crate::config::index::{IndexFile, IndexSettings};
use crate::config::number::{Bounded, Seconds};
use crate::config::outbound::{
    ArchiveFile, DnsFile, GivenSecrets, RdapFile, SampleFile, SmtpFile, TelegramFile, WebhooksFile,
    WhoisFile,
};
use crate::config::problem::Problem;
use crate::config::renamed::Renamed;
use crate::config::server::ServerFile;
use crate::config::sources::SourcesFile;
use crate::config::telemetry::{LogFile, MetricsFile, Telemetry};
use crate::config::tls::TlsFile;
use crate::exit::{self, ExitWith};
use crate::intake::request::Site;
use crate::intake::tables::{TableFile, TablesFolder};
use crate::outbound::settings::{Calls, Settings};
use crate::server::settings::{ServerSettings, TlsSource};
use crate::sources::settings::Settings as Sources;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::limits::CATCH_DAYS_DEFAULT;
use crate::vocab::memory;
use crate::vocab::named;
use crate::vocab::plan::{AccountLimits, Plan, PlanLimits, Plans};
use crate::vocab::url::BaseUrl;
use crate::web::WebSettings;
use crate::web::links::Links;
use crate::zones;

const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
/// Ten years, longer than any registry keeps a name.
const CATCH_DAYS_MAX: u32 = 3_650;
/// Accounts may use 1/N of the memory, where N is this number. The index, a second generation
/// during a reload, and requests need the rest.
const DATA_SHARE: u64 = 4;
/// A client that was away for a week continues without a new copy.
const EXPORT_FILES_DAYS_DEFAULT: i32 = 7;
/// The log of changes has no older ones.
const EXPORT_FILES_DAYS_MAX: u32 = 90;
/// Enough for a few hundred claims with ordinary notes.
const UNVERIFIED_DATA_KB_DEFAULT: u32 = 256;

/// A host and port to listen on: `127.0.0.1:8080`, `[::1]:0`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ListenAddress(String);

impl ListenAddress {
    /// Whether the host is a loopback address or `localhost`. Does not resolve names.
    pub fn is_loopback(&self) -> bool {
        let host = self.0.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// `host:port`, with the host unresolved.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `host:port` at which this machine reaches a server that listens here: for all addresses of the
    /// machine, the loopback address.
    pub fn from_here(&self) -> String {
        let (host, port) = self.0.rsplit_once(':').unwrap_or((&self.0, ""));
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) if address.is_unspecified() => format!("127.0.0.1:{port}"),
            Ok(IpAddr::V6(address)) if address.is_unspecified() => format!("[::1]:{port}"),
            _ => self.0.clone(),
        }
    }
}

impl Default for ListenAddress {
    fn default() -> ListenAddress {
        ListenAddress(LISTEN_DEFAULT.to_owned())
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = String;

    fn try_from(text: String) -> Result<ListenAddress, String> {
        let is_valid = text
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if is_valid {
            Ok(ListenAddress(text))
        } else {
            Err(format!("`{text}` is not an address and port such as {LISTEN_DEFAULT}"))
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        text.to_owned().try_into()
    }
}

/// All settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The settings file, if there is one.
    pub file: Option<PathBuf>,
    /// Folder of the corpus, the journal and rejected rows.
    pub data: PathBuf,
    /// Folder of the index generations.
    pub index: PathBuf,
    pub index_life: IndexSettings,
    pub inbox: InboxSettings,
    pub sources: Sources,
    /// Selects the names of zone files that enter the corpus.
    pub zone_names: zones::Keep,
    pub clock: Clock,
    /// Tables that replace the compiled-in ones. The process already uses them.
    pub tables: Vec<TableFile>,
    /// Reasons why fetched tables are not used; logged once the log is set up.
    pub table_problems: Vec<String>,
    pub listen: ListenAddress,
    /// Name of this instance in `/api/ready`, and in the shared log.
    pub node: String,
    /// `None` for a single node.
    pub cluster: Option<ClusterSettings>,
    /// `None` if backups are made only by commands that name a file.
    pub backup: Option<BackupSettings>,
    pub catch_days: u16,
    /// Whether facts are kept that are known because a member watches or checks a name. Everyone who uses the server
    /// sees them, which shows what members want. By default, they are kept by a server for one person.
    pub facts_of_members: Option<bool>,
    /// Days of changes for which dated files are kept; `None` if no files are made.
    pub export_files: Option<i32>,
    pub plans: Plans,
    pub accounts: AccountLimits,
    pub outbound: Settings,
    pub web: WebSettings,
    pub telemetry: Telemetry,
    pub server: ServerSettings,
    /// Old names that the file uses; logged once the log is set up.
    pub renamed: Vec<&'static Renamed>,
}

impl Config {
    /// Whether the server is for one person on this machine.
    pub fn is_single_user(&self) -> bool {
        self.listen.is_loopback() && self.outbound.public_url.is_none() && self.server.tls.is_none()
    }

    /// Sets the exit code for wrong settings, and names the settings file, if a value that is only used at the start
    /// is wrong.
    ///
    /// # Errors
    /// That of `result`.
    pub fn check<T>(&self, result: anyhow::Result<T>) -> anyhow::Result<T> {
        result.map_err(|err| in_file(err, self.file.as_deref()))
    }

    /// The folders and index settings of this installation, with absolute paths.
    pub fn site(&self) -> Site {
        Site {
            data: absolute(&self.data),
            index: absolute(&self.index),
            build: self.index_life.build,
            compact_above: self.index_life.compact_above,
            worker: self.index_life.worker,
            clock: self.clock,
            zone_names: self.zone_names,
            tables: self.tables.clone(),
        }
    }
}

/// Adds the exit code for wrong settings, and the settings file.
fn in_file(err: anyhow::Error, file: Option<&Path>) -> anyhow::Error {
    let why = file.map_or_else(
        || "invalid settings".to_owned(),
        |file| format!("invalid settings file {}", file.display()),
    );
    err.context(ExitWith::new(exit::SETTINGS, why))
}

/// `absolute` fails only if the process has no working directory; no relative path resolves then.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Settings from the command line and the environment. If one is `None`, the settings file decides.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub data: Option<PathBuf>,
    pub index: Option<PathBuf>,
    pub config: Option<PathBuf>,
    pub today: Option<Day>,
    pub listen: Option<ListenAddress>,
    pub log_json: bool,
    /// Drain delay in seconds.
    pub drain_delay: Option<f64>,
    pub secrets: GivenSecrets,
    /// Settings of the environment that have no option.
    pub variables: Vec<Variable>,
}

/// The settings file. Unknown keys are errors, so that a misspelled setting does not go unnoticed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    data: Option<PathBuf>,
    index: IndexFile,
    inbox: InboxSettings,
    facts: FactsSection,
    export_files: ExportFilesSection,
    sources: SourcesFile,
    zones: ZonesFile,
    today: Option<Day>,
    /// Relative paths are resolved against the working directory.
    psl: Option<PathBuf>,
    listen: Option<ListenAddress>,
    node: Option<String>,
    cluster: Option<ClusterFile>,
    backup: Option<BackupFile>,
    catch_days: Option<Bounded<0, CATCH_DAYS_MAX>>,
    plans: PlansFile,
    accounts: AccountsFile,
    public_url: Option<BaseUrl>,
    /// `None` disables mail.
    smtp: Option<SmtpFile>,
    /// `None` disables Telegram.
    telegram: Option<TelegramFile>,
    webhooks: WebhooksFile,
    rdap: RdapFile,
    whois: WhoisFile,
    archive: ArchiveFile,
    sample: SampleFile,
    dns: DnsFile,
    outbound: Calls,
    web: WebSettings,
    links: Links,
    metrics: MetricsFile,
    log: LogFile,
    server: ServerFile,
    tls: TlsFile,
}

/// The section `[facts]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FactsSection {
    of_members: Option<bool>,
}

/// The section `[export_files]`. Off by default: each day takes about as much disk as the list of drops in all
/// formats.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ExportFilesSection {
    enabled: bool,
    keep_days: Option<Bounded<1, EXPORT_FILES_DAYS_MAX>>,
}

/// The section `[zones]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ZonesFile {
    #[serde(deserialize_with = "named::deserialize")]
    keep: zones::Keep,
}

/// The section `[plans]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlansFile {
    /// Whether pages show all plans with their prices and the benefits of a higher plan.
    #[serde(default)]
    public: bool,
    // None is missing: [`read`] adds the defaults.
    free: PlanLimits,
    core: PlanLimits,
    pro: PlanLimits,
    api: PlanLimits,
}

impl Default for PlansFile {
    fn default() -> PlansFile {
        let plans = Plans::default();
        let [free, core, pro, api] = Plan::ALL.map(|plan| *plans.limits(plan));
        PlansFile { public: false, free, core, pro, api }
    }
}

impl PlansFile {
    fn limits(&self) -> Plans {
        Plans::new([self.free, self.core, self.pro, self.api])
    }
}

/// The section `[accounts]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AccountsFile {
    max_data_mb: Option<NonZeroU32>,
    unverified_data_kb: Option<NonZeroU32>,
}

impl AccountsFile {
    fn limits(&self) -> AccountLimits {
        let total_bytes = self.max_data_mb.map(|mb| u64::from(mb.get()) << 20);
        let unverified_kb =
            self.unverified_data_kb.map_or(UNVERIFIED_DATA_KB_DEFAULT, NonZeroU32::get);
        AccountLimits {
            total_bytes: total_bytes.unwrap_or_else(|| memory::available_bytes() / DATA_SHARE),
            unverified_bytes: u64::from(unverified_kb) << 10,
        }
    }
}

/// Checks that no plan has an allowance for a feature that the plan does not include.
fn check_plans(plans: &Plans) -> anyhow::Result<()> {
    for plan in Plan::ALL {
        let limits = plans.limits(plan);
        anyhow::ensure!(
            plan >= Plan::Pro || limits.requests_per_day == 0,
            "plans.{plan}.requests_per_day: the JSON API requires the plan pro"
        );
        anyhow::ensure!(
            plan >= Plan::Core || limits.exports_per_day == 0,
            "plans.{plan}.exports_per_day: exports require the plan core"
        );
    }
    Ok(())
}

impl Config {
    /// Reads a settings file with this text.
    #[cfg(test)]
    fn load_text(text: &str, given: Given) -> anyhow::Result<Config> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("dropdex.toml");
        std::fs::write(&path, text).expect("writable");
        Config::load(Given { config: Some(path), ..given })
    }

    /// Reads the file and merges it with `given`.
    ///
    /// # Errors
    /// The file is unreadable, is not TOML, or has an unknown key or an invalid value.
    pub fn load(given: Given) -> anyhow::Result<Config> {
        let (path, variables) = (given.config.clone(), given.variables.clone());
        Config::of(given).map_err(|err| {
            // The first word of an error is the key.
            let text = format!("{err:#}");
            let key = text.split([':', ' ']).next().unwrap_or_default();
            let about = variables.iter().find(|variable| variable.is_about(key));
            match about {
                Some(variable) => {
                    let why = format!("the environment variable {} is wrong", variable.name);
                    err.context(ExitWith::new(exit::SETTINGS, why))
                }
                None => in_file(err, path.as_deref()),
            }
        })
    }

    fn of(given: Given) -> anyhow::Result<Config> {
        let (file, renamed) = read(given.config.as_deref(), &given.variables)?;
        let plans = file.plans.limits();
        check_plans(&plans)?;
        let drain_delay = given.drain_delay.map(Seconds::try_from).transpose();
        let drain_delay = drain_delay.map_err(|err| anyhow::anyhow!("--drain-delay: {err}"))?;
        let data = given.data.or(file.data).unwrap_or_else(|| "data".into());
        let mut server = file.server.settings(drain_delay)?;
        if let Some(acme) = file.tls.settings(file.public_url.as_ref(), &absolute(&data))? {
            anyhow::ensure!(
                server.tls.is_none(),
                "tls.acme: server.tls_certificate is set too; remove one of them"
            );
            server.tls = Some(TlsSource::Acme(acme));
        }
        anyhow::ensure!(
            server.tls.is_none() || !file.web.plain_http,
            "web.plain_http is for a server without TLS, and this one has a certificate; remove one of the settings"
        );
        let psl = file.psl.map(|path| absolute(&path));
        let psl = psl.map(|path| TableFile::install_fixed(&path)).transpose().context("psl")?;
        let (tables, problems) = TablesFolder::new(&absolute(&data)).install(psl);
        let GivenSecrets {
            smtp_password,
            telegram_token,
            czds_password,
            s3_secret_access_key,
            backup_s3_secret_access_key,
        } = given.secrets;
        let rdap = file.rdap.settings()?;
        let outbound = Settings {
            public_url: file.public_url,
            smtp: file.smtp.map(|section| section.settings(smtp_password)).transpose()?,
            telegram: file.telegram.map(|section| section.settings(telegram_token)).transpose()?,
            webhooks: file.webhooks.settings()?,
            sample: file.sample.settings(&rdap)?,
            rdap,
            whois: file.whois.settings()?,
            archive: file.archive.settings(),
            dns: file.dns.settings()?,
            calls: file.outbound,
        };
        Ok(Config {
            file: given.config,
            data,
            index_life: file.index.settings(),
            index: given.index.or(file.index.folder).unwrap_or_else(|| "index".into()),
            inbox: file.inbox,
            sources: file.sources.settings(czds_password)?,
            zone_names: file.zones.keep,
            clock: given.today.or(file.today).map_or_else(Clock::system, Clock::pinned_to),
            listen: given.listen.or(file.listen).unwrap_or_default(),
            cluster: file
                .cluster
                .map(|section| section.settings(file.node.as_deref(), s3_secret_access_key))
                .transpose()?,
            backup: file
                .backup
                .map(|section| section.settings(backup_s3_secret_access_key))
                .transpose()?,
            node: file.node.unwrap_or_else(|| "dropdex".to_owned()),
            tables,
            table_problems: problems.iter().map(|err| format!("{err:#}")).collect(),
            catch_days: file.catch_days.map_or(CATCH_DAYS_DEFAULT, Bounded::get),
            facts_of_members: file.facts.of_members,
            export_files: file.export_files.enabled.then(|| {
                file.export_files.keep_days.map_or(EXPORT_FILES_DAYS_DEFAULT, Bounded::get)
            }),
            plans,
            accounts: file.accounts.limits(),
            web: WebSettings { links: file.links, public_plans: file.plans.public, ..file.web },
            telemetry: telemetry::settings(file.metrics, file.log, given.log_json),
            server,
            outbound,
            renamed,
        })
    }
}

/// Reads the file, and adds the variables. Also returns the old names that the file uses.
fn read(
    path: Option<&Path>,
    variables: &[Variable],
) -> anyhow::Result<(File, Vec<&'static Renamed>)> {
    let defaults = config::Config::try_from(&BTreeMap::from([("plans", Plans::default())]))?;
    let mut builder = config::Config::builder().add_source(defaults);
    if let Some(path) = path {
        let facts = std::fs::metadata(path).context("cannot be read; check --config")?;
        anyhow::ensure!(!facts.is_dir(), "is a folder; name the file with --config");
        let source = config::File::from(path).format(config::FileFormat::Toml).required(true);
        builder = builder.add_source(source);
    }
    let read = builder.build().and_then(|read| read.cache.into_table()).map_err(Problem::from);
    let mut sections = read?;
    // `index = "folder"` is short for a section `[index]` with that folder.
    if let Some(Value { kind: ValueKind::String(folder), .. }) = sections.get("index") {
        let section = config::Map::from([("folder".to_owned(), Value::from(folder.as_str()))]);
        sections.insert("index".to_owned(), section.into());
    }
    environment::merge(&mut sections, variables)?;
    let renamed = renamed::apply(&mut sections)?;
    Ok((File::deserialize(Value::from(sections)).map_err(Problem::from)?, renamed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generation::base::ExtendRule;
    use crate::index::generation::build::{BuildSettings, Keep};
    use crate::index::generation::memory::MemoryBound;
    use crate::index::query::index::Contains;
    use crate::intake::request::WorkerMemory;

    #[test]
    fn flags_take_precedence_over_the_file() {
        let text = "data = \"a\"\nindex = \"b\"\ntoday = \"2026-10-03\"\ncatch_days = 7\n\
                    [plans.pro]\nrequests_per_day = 5\n";
        let given = Given { data: Some("flag".into()), ..Given::default() };
        let config = Config::load_text(text, given).expect("loads");
        assert_eq!(config.data, Path::new("flag"));
        assert_eq!(config.index, Path::new("b"));
        assert_eq!(config.clock.today().to_string(), "2026-10-03");
        assert_eq!(config.catch_days, 7);
        assert_eq!(config.plans.limits(Plan::Pro).requests_per_day, 5);
        assert_eq!(config.plans.limits(Plan::Pro).exports_per_day, 50);
        assert_eq!(config.plans.limits(Plan::Api).requests_per_day, 10_000);
    }

    #[test]
    fn the_index_setting_is_a_folder_or_a_section() {
        let settings = |text: &str| Config::load_text(text, Given::default()).expect("loads");
        let keep = |generations| Keep::new(generations).expect("in range");
        let alone = settings("index = \"b\"");
        assert_eq!(alone.index, Path::new("b"));
        assert_eq!(alone.index_life, IndexSettings::default());
        let section = settings(
            "[index]\nkeep = 7\ncompact_above = 0\nrebuild_memory_mib = 100\nextend_from = 9\n\
             extend_percent = 50\ncontains = \"drops\"\n",
        );
        assert_eq!(section.index, Path::new("index"));
        let memory = MemoryBound::from_mib(100).expect("in range");
        let extend = ExtendRule { from: 9, percent: 50 };
        let contains = Some(Contains::Drops);
        let build = BuildSettings { keep: keep(7), memory, extend, contains };
        let worker = WorkerMemory::for_rebuild(memory);
        assert_eq!(
            section.index_life,
            IndexSettings { build, compact_above: 0, worker, facts_memory_mib: 64 }
        );
        let bounded = settings("[index]\nworker_memory_mib = 300\n").index_life.worker;
        assert_eq!(bounded, WorkerMemory::from_mib(300));
        assert_eq!(settings("[index]\nfolder = \"c\"").index, Path::new("c"));
        for bad in [
            "keep = 0",
            "keep = 101",
            "keeps = 2",
            "compact_above = -1",
            "rebuild_memory_mib = 15",
            "worker_memory_mib = 31",
            "extend_percent = 101",
            "contains = \"none\"",
        ] {
            assert!(
                Config::load_text(&format!("[index]\n{bad}"), Given::default()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn names_of_zones_are_kept_as_the_settings_say() {
        let keep = |text: &str| {
            Config::load_text(text, Given::default()).map(|config| config.zone_names).ok()
        };
        assert_eq!(keep(""), Some(zones::Keep::Drops));
        assert_eq!(keep("[zones]\nkeep = \"all\""), Some(zones::Keep::All));
        assert_eq!(keep("[zones]\nkeep = \"none\""), None);
    }

    #[test]
    fn export_files_are_off_unless_enabled() {
        let days = |text: &str| {
            Config::load_text(text, Given::default()).map(|config| config.export_files)
        };
        assert_eq!(days("").expect("loads"), None);
        assert_eq!(days("[export_files]\nkeep_days = 3\n").expect("loads"), None);
        assert_eq!(days("[export_files]\nenabled = true\n").expect("loads"), Some(7));
        let chosen = "[export_files]\nenabled = true\nkeep_days = 90\n";
        assert_eq!(days(chosen).expect("loads"), Some(90));
        for bad in [0, 91] {
            let text = format!("[export_files]\nkeep_days = {bad}\n");
            assert!(format!("{:#}", days(&text).expect_err("refused")).contains("keep_days"));
        }
    }

    #[test]
    fn inbox_settings_are_read() {
        let inbox =
            |text: &str| Config::load_text(text, Given::default()).map(|config| config.inbox);
        let seconds = std::time::Duration::from_secs;
        let on = |period| InboxSettings { enabled: true, period };
        assert_eq!(inbox("").expect("loads"), on(seconds(5)));
        assert_eq!(inbox("[inbox]\nseconds = 1").expect("loads"), on(seconds(1)));
        assert!(!inbox("[inbox]\nenabled = false").expect("loads").enabled);
        for bad in ["seconds = 0", "seconds = 86401", "minutes = 1"] {
            assert!(inbox(&format!("[inbox]\n{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn web_settings_are_read() {
        let text = "[web]\nsignup = false\nsignup_plan = \"pro\"\nplain_http = true\n\
                    proxies = [\"10.0.0.1\", \"::ffff:10.0.0.2\"]\n";
        let Config { web, server, .. } = Config::load_text(text, Given::default()).expect("loads");
        assert_eq!((web.signup, web.signup_plan, web.plain_http), (Some(false), Plan::Pro, true));
        let proxies: Vec<_> = server.proxies.iter().map(ToString::to_string).collect();
        assert_eq!(proxies, ["10.0.0.1", "10.0.0.2"]);
        let web = Config::load_text("", Given::default()).expect("loads").web;
        assert_eq!((web.signup, web.signup_plan, web.plain_http), (None, Plan::Free, false));
    }

    #[test]
    fn a_list_of_links_replaces_its_default() {
        let links =
            |text: &str| Config::load_text(text, Given::default()).map(|config| config.web.links);
        let text = "[[links.backorder]]\nname = \"Mine\"\nurl = \"https://a.example/{name}\"\ntlds = [\".De\"]\n";
        let found = links(text).expect("loads");
        let name = |text| crate::vocab::name::DomainName::parse(text).expect("a name");
        let [mine] = found.backorder.as_slice() else { panic!("{found:?}") };
        assert_eq!(mine.address(&name("b.de")).as_deref(), Some("https://a.example/b.de"));
        assert_eq!(mine.address(&name("b.com")), None);
        assert_eq!(found.research, Links::default().research);
        let bad = "[[links.research]]\nname = \"x\"\nurl = \"ftp://a.example/{name}\"\n";
        assert!(links(bad).is_err());
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_at_the_loopback_address() {
        for (listen, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.5:80", "10.0.0.5:80"),
            ("[2001:db8::5]:80", "[2001:db8::5]:80"),
            ("localhost:80", "localhost:80"),
        ] {
            let listen: ListenAddress = listen.parse().expect("valid");
            assert_eq!(listen.from_here(), reached);
        }
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        for (text, expected) in [
            ("127.0.0.1:8080", true),
            ("127.9.9.9:0", true),
            ("[::1]:80", true),
            ("localhost:80", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("drops.example:80", false),
        ] {
            assert_eq!(
                text.parse::<ListenAddress>().map(|it| it.is_loopback()),
                Ok(expected),
                "{text}"
            );
        }
    }

    fn with_variables(text: &str, variables: &[(&str, &str)]) -> anyhow::Result<Config> {
        let variables = variables.iter().filter_map(|(name, text)| Variable::new(name, text));
        Config::load_text(text, Given { variables: variables.collect(), ..Given::default() })
    }

    #[test]
    fn variables_override_the_file() {
        let text = "catch_days = 7\nindex = \"b\"\n[server]\nmax_reads = 3\nmax_writes = 4\n";
        let config = with_variables(
            text,
            &[
                ("DROPDEX_CATCH_DAYS", "9"),
                ("DROPDEX_INDEX__KEEP", "5"),
                ("DROPDEX_SERVER__MAX_READS", "8"),
                ("DROPDEX_SERVER__PROXIES", "[\"10.0.0.1\"]"),
                ("DROPDEX_INBOX", "{ enabled = false, seconds = 2 }"),
                ("DROPDEX_INBOX__SECONDS", "3"),
                ("DROPDEX_SOURCES__UK_NOMINET__ENABLED", "true"),
                ("DROPDEX_SOURCES__CONTACT", "ops@example.com"),
                ("DROPDEX_WEB__SIGNUP", "false"),
                ("DROPDEX_PLANS__PRO__PRICE_USD", "9"),
                ("DROPDEX_PLANS", "{free = {data_mb = 3}}"),
                ("DROPDEX_NODE", "7"),
                ("DROPDEX_LISTEN", "[::1]:80"),
                ("DROPDEX_PUBLIC_URL", ""),
            ],
        );
        let config = config.expect("loads");
        assert_eq!((config.catch_days, config.index.as_path()), (9, Path::new("b")));
        assert_eq!(config.index_life.build.keep, Keep::new(5).expect("in range"));
        let server = &config.server;
        assert_eq!(
            server.proxies.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.0.0.1"]
        );
        assert_eq!((config.inbox.enabled, config.inbox.period.as_secs()), (false, 3));
        let uk = config.sources.sources.iter().find(|source| source.name == "uk-nominet");
        assert_eq!(uk.and_then(|source| source.enabled), Some(true));
        assert_eq!((config.web.signup, config.node.as_str()), (Some(false), "7"));
        assert_eq!(config.listen.as_str(), "[::1]:80");
        assert_eq!(config.outbound.public_url, None);
        let plan = |plan| config.plans.limits(plan);
        assert_eq!((plan(Plan::Pro).price_usd, plan(Plan::Free).data_mb), (9, 3));
    }

    #[test]
    fn errors_name_the_place_the_key_and_what_is_allowed() {
        let file = "invalid settings file ";
        for (text, variables, words) in [
            (
                "[server]\nmax_reeds = 3",
                &[][..],
                &[file, "server.max_reeds: no such setting; did you mean max_reads?"][..],
            ),
            (
                "[server]\nmax_reads = \"x\"",
                &[],
                &[file, "server.max_reads: is string \"x\", but must be a whole number"],
            ),
            ("[index]\nkeep = 0", &[], &["index.keep: 0 is out of range; it must be 1 to 100"]),
            (
                "[sources.uk-nominet]\nschedul = \"x\"",
                &[],
                &["sources.uk-nominet.schedul: no such setting; did you mean schedule?"],
            ),
            (
                "[sources]\nidle_second = 5",
                &[],
                &["sources.idle_second: ", "did you mean idle_seconds?"],
            ),
            ("[smtp]\nhost = \"a\"", &[], &[file, "smtp.from is missing"]),
            (
                "[plans.gold]\nprice_usd = 1",
                &[],
                &["plans.gold: no such setting; known are public, free, core, pro, api"],
            ),
            (
                "[plans.pro]\nprice_usd = -1",
                &[],
                &["plans.pro.price_usd: ", "a whole number from 0"],
            ),
            (
                "[smtp]\ntls = \"ssl\"",
                &[],
                &["smtp.tls: `ssl` is unknown; known are starttls, tls, none"],
            ),
            (
                "[web]\nsignup_plan = \"gold\"",
                &[],
                &["web.signup_plan: `gold` is unknown; known are free, core, pro, api"],
            ),
            (
                "[index]\ncontains = \"some\"",
                &[],
                &["index.contains: `some` is unknown; known are all, drops"],
            ),
            ("[zones]\nkeep = \"x\"", &[], &["zones.keep: `x` is unknown; known are "]),
            ("server = 5", &[], &["server: ", "must be a section with settings of its own"]),
            (
                "[server]\nproxies = [\"10.0.0.0/8\"]",
                &[],
                &["server.proxies[0]: must be an IP address such as 10.0.0.2, not a name"],
            ),
            (
                "",
                &[("DROPDEX_SERVER__PROXIES", "10.0.0.1")],
                &["DROPDEX_SERVER__PROXIES is wrong: server.proxies: ", "a list such as [\"one\""],
            ),
            ("[accounts]\nmax_data_mb = 0", &[], &["accounts.max_data_mb: ", "from 1"]),
            ("data = 1\ndata = 2", &[], &["is not TOML at line 2, column 1: duplicate key"]),
            ("data = \"\u{1b}[2J\"", &[], &["is not TOML at line 1"]),
            ("[[links.backorder]]\nname = \"x\"", &[], &["links.backorder[0].url: is missing"]),
            (
                "",
                &[("DROPDEX_SERVER__MAX_READS", "x")],
                &[
                    "the environment variable DROPDEX_SERVER__MAX_READS is wrong: server.max_reads: ",
                ],
            ),
            (
                "",
                &[("DROPDEX_SERVER__MAX_REEDS", "3")],
                &["DROPDEX_SERVER__MAX_REEDS", "did you mean max_reads?"],
            ),
            ("", &[("DROPDEX_SMTP", "{host =")], &["DROPDEX_SMTP is not a table in TOML"]),
            ("", &[("DROPDEX_CATCH_DAYS", "-1")], &["DROPDEX_CATCH_DAYS", "catch_days: "]),
        ] {
            let err = format!("{:#}", with_variables(text, variables).expect_err(text));
            assert!(words.iter().all(|word| err.contains(word)), "{err}");
            assert!(!err.contains('\u{1b}'), "{err:?}");
        }
    }

    /// The error about an unknown name lists the known ones.
    #[test]
    fn the_names_of_variables_are_those_of_the_file() {
        let of = |section: &str| {
            let text = format!("{section}nothing-like-it = {{}}");
            let err =
                format!("{:#}", Config::load_text(&text, Given::default()).expect_err("unknown"));
            let known = err.rsplit("known are ").next().expect("a list").to_owned();
            let mut known: Vec<String> = known.split(", ").map(str::to_owned).collect();
            known.sort();
            known
        };
        let mut top = environment::TOP;
        top.sort_unstable();
        assert_eq!(of(""), top);
    }

    #[test]
    fn unknown_and_invalid_settings_are_errors() {
        for text in [
            "dat = \"a\"",
            "[plans.gold]\nprice_usd = 1",
            "[plans.core]\nrequests_per_day = 50",
            "[plans.free]\nexports_per_day = 1",
            "catch_days = -1",
            "today = 5",
            "listen = \"nowhere\"",
            "[web]\nsign_up = true",
            "[web]\nproxies = [\"proxy\"]",
            "[metrics]\nlisten = \"everywhere\"",
            "[log]\nslow_ms = -1",
            "[log]\nformat = \"json\"",
            "=",
        ] {
            assert!(Config::load_text(text, Given::default()).is_err(), "{text}");
        }
        let missing =
            Given { config: Some("/nonexistent/dropdex.toml".into()), ..Given::default() };
        assert!(Config::load(missing).is_err());
    }
}
