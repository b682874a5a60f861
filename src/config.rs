//! Settings from flags, environment and a TOML file, in this order of weight, as one [`Config`]
//! (decisions.md §11). Sections about calls to the outside are in [`outbound`], those for whoever
//! watches the service in [`telemetry`].

pub mod inbox;
pub mod index;
pub mod outbound;
pub mod telemetry;
mod server;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use serde::Deserialize;

use crate::config::inbox::{InboxFile, InboxSettings};
use crate::config::index::{IndexFile, IndexSettings};
use crate::config::outbound::{
    DnsFile, GivenSecrets, OutboundFile, RdapFile, SmtpFile, TelegramFile, WebhooksFile,
};
use crate::config::server::ServerFile;
use crate::config::telemetry::{LogFile, MetricsFile, Telemetry};
use crate::intake::request::Site;
use crate::outbound::settings::Settings;
use crate::server::settings::ServerSettings;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::limits::CATCH_DAYS_DEFAULT;
use crate::vocab::plan::{Plan, PlanLimits, Plans};
use crate::vocab::url::BaseUrl;
use crate::web::WebSettings;

/// Where the server listens unless told otherwise.
const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
/// More days than any registry keeps a name.
const CATCH_DAYS_MAX: u16 = 3_650;

/// An address to listen on: a host and a port, `127.0.0.1:8080`, `[::1]:0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress(String);

impl ListenAddress {
    /// Whether it is plainly this machine's own, as far as the text tells.
    pub fn is_loopback(&self) -> bool {
        let host = self.0.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// `host:port`, to be resolved when it is listened on.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ListenAddress {
    fn default() -> ListenAddress {
        ListenAddress(LISTEN_DEFAULT.to_owned())
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        let whole = text
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if whole {
            Ok(ListenAddress(text.to_owned()))
        } else {
            Err(format!("`{text}` is not an address and port such as {LISTEN_DEFAULT}"))
        }
    }
}

/// All settings, as meant.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder of the corpus, the journal and rejects.
    pub data: PathBuf,
    /// The folder of the index generations.
    pub index: PathBuf,
    /// How they are kept.
    pub index_life: IndexSettings,
    pub inbox: InboxSettings,
    /// The file of settings, absolute.
    pub file: Option<PathBuf>,
    pub clock: Clock,
    pub listen: ListenAddress,
    /// What this instance calls itself in `/api/ready`.
    pub node: String,
    pub catch_days: u16,
    pub plans: Plans,
    /// Calls to the outside.
    pub outbound: Settings,
    pub web: WebSettings,
    pub telemetry: Telemetry,
    /// Connections.
    pub server: ServerSettings,
}

impl Config {
    /// The installation that these settings describe, with absolute paths.
    pub fn site(&self) -> Site {
        // Fails only without a working folder, where a relative path leads nowhere anyway.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Site {
            data: absolute(&self.data),
            index: absolute(&self.index),
            keep: self.index_life.keep,
            compact_above: self.index_life.compact_above,
            clock: self.clock,
        }
    }
}

/// What the command line and the environment say; `None` leaves it to the file.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub data: Option<PathBuf>,
    pub index: Option<PathBuf>,
    pub config: Option<PathBuf>,
    pub today: Option<Day>,
    pub listen: Option<ListenAddress>,
    /// Whether the log is asked for as JSON lines.
    pub log_json: bool,
    /// Seconds.
    pub drain_delay: Option<f64>,
    pub secrets: GivenSecrets,
}

/// The file. Unknown keys are refused: a misspelt setting is not a default.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    data: Option<PathBuf>,
    #[serde(deserialize_with = "index::either")]
    index: IndexFile,
    inbox: InboxFile,
    today: Option<Day>,
    listen: Option<String>,
    node: Option<String>,
    catch_days: Option<u16>,
    plans: PlansFile,
    public_url: Option<BaseUrl>,
    smtp: Option<SmtpFile>,
    telegram: Option<TelegramFile>,
    webhooks: WebhooksFile,
    rdap: RdapFile,
    dns: DnsFile,
    web: WebFile,
    metrics: MetricsFile,
    log: LogFile,
    server: ServerFile,
}

/// The section for pages.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WebFile {
    signup: Option<bool>,
    signup_plan: Option<Plan>,
    plain_http: Option<bool>,
    /// Where it was before `[server]` was.
    proxies: Option<Vec<IpAddr>>,
}

impl WebFile {
    fn settings(self) -> WebSettings {
        let WebSettings { signup, signup_plan, plain_http } = WebSettings::default();
        WebSettings {
            signup: self.signup.unwrap_or(signup),
            signup_plan: self.signup_plan.unwrap_or(signup_plan),
            plain_http: self.plain_http.unwrap_or(plain_http),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PlansFile {
    free: PlanFile,
    core: PlanFile,
    pro: PlanFile,
    api: PlanFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PlanFile {
    requests_per_day: Option<u32>,
    exports_per_day: Option<u32>,
    active_rules: Option<u32>,
    external_names: Option<u32>,
    price_usd: Option<u32>,
}

impl PlanFile {
    /// What a plan does not have cannot be given to it by a number (api.md, Plans).
    fn check(&self, plan: Plan) -> anyhow::Result<()> {
        let given = |setting: Option<u32>| setting.is_some_and(|number| number > 0);
        anyhow::ensure!(
            plan >= Plan::Pro || !given(self.requests_per_day),
            "plans.{plan}.requests_per_day: the JSON API begins with the plan pro"
        );
        anyhow::ensure!(
            plan >= Plan::Core || !given(self.exports_per_day),
            "plans.{plan}.exports_per_day: exports begin with the plan core"
        );
        Ok(())
    }

    fn apply(&self, limits: &mut PlanLimits) {
        let PlanLimits {
            requests_per_day,
            exports_per_day,
            active_rules,
            external_names,
            price_usd,
        } = limits;
        for (setting, value) in [
            (requests_per_day, self.requests_per_day),
            (exports_per_day, self.exports_per_day),
            (active_rules, self.active_rules),
            (external_names, self.external_names),
            (price_usd, self.price_usd),
        ] {
            *setting = value.unwrap_or(*setting);
        }
    }
}

impl Config {
    /// Puts the settings together.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or holds a key or value that is none of ours.
    pub fn load(given: Given) -> anyhow::Result<Config> {
        let file = given.config.as_deref().map(read).transpose()?.unwrap_or_default();
        let mut plans = Plans::default();
        for (plan, settings) in [
            (Plan::Free, &file.plans.free),
            (Plan::Core, &file.plans.core),
            (Plan::Pro, &file.plans.pro),
            (Plan::Api, &file.plans.api),
        ] {
            settings.check(plan)?;
            settings.apply(plans.of_mut(plan));
        }
        let catch_days = file.catch_days.unwrap_or(CATCH_DAYS_DEFAULT);
        anyhow::ensure!(
            catch_days <= CATCH_DAYS_MAX,
            "catch_days is {catch_days}; it must be 0 to {CATCH_DAYS_MAX}"
        );
        let listen = file.listen.map(|text| text.parse::<ListenAddress>()).transpose();
        let listen = listen.map_err(|err| anyhow::anyhow!("listen: {err}"))?;
        let outside = OutboundFile {
            public_url: file.public_url,
            smtp: file.smtp,
            telegram: file.telegram,
            webhooks: file.webhooks,
            rdap: file.rdap,
            dns: file.dns,
        };
        let (index, index_life) = file.index.settings()?;
        let server = file.server.settings(given.drain_delay, file.web.proxies.clone())?;
        anyhow::ensure!(
            server.tls.is_none() || file.web.plain_http != Some(true),
            "web.plain_http is for a server without TLS, and server.tls_certificate is set: take one \
             of the two away"
        );
        Ok(Config {
            data: given.data.or(file.data).unwrap_or_else(|| "data".into()),
            index: given.index.or(index).unwrap_or_else(|| "index".into()),
            index_life,
            inbox: file.inbox.settings()?,
            file: given.config.map(|path| std::path::absolute(&path).unwrap_or(path)),
            clock: given.today.or(file.today).map_or_else(Clock::system, Clock::pinned_to),
            listen: given.listen.or(listen).unwrap_or_default(),
            node: file.node.unwrap_or_else(|| "dropdex".to_owned()),
            catch_days,
            plans,
            web: file.web.settings(),
            telemetry: telemetry::settings(file.metrics, file.log, given.log_json)?,
            server,
            outbound: outbound::settings(outside, given.secrets)?,
        })
    }
}

fn read(path: &Path) -> anyhow::Result<File> {
    std::fs::metadata(path).with_context(|| {
        format!("cannot read the settings in {}; --config names the file", path.display())
    })?;
    let source = config::File::from(path).format(config::FileFormat::Toml).required(true);
    config::Config::builder()
        .add_source(source)
        .build()
        .and_then(config::Config::try_deserialize)
        .with_context(|| format!("the settings in {} cannot be used", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::build::Keep;

    fn load(text: &str, given: Given) -> anyhow::Result<Config> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("dropdex.toml");
        std::fs::write(&path, text).expect("writable");
        Config::load(Given { config: Some(path), ..given })
    }

    #[test]
    fn what_is_given_beats_the_file() {
        let text = "data = \"a\"\nindex = \"b\"\ntoday = \"2026-10-03\"\ncatch_days = 7\n\
                    [plans.pro]\nrequests_per_day = 5\n";
        let given = Given { data: Some("flag".into()), ..Given::default() };
        let config = load(text, given).expect("loads");
        assert_eq!(config.data, Path::new("flag"));
        assert_eq!(config.index, Path::new("b"));
        assert_eq!(config.clock.today().to_string(), "2026-10-03");
        assert_eq!(config.catch_days, 7);
        assert_eq!(config.plans.of(Plan::Pro).requests_per_day, 5);
        assert_eq!(config.plans.of(Plan::Pro).exports_per_day, 50);
        assert_eq!(config.plans.of(Plan::Api).requests_per_day, 10_000);
    }

    #[test]
    fn the_index_has_a_folder_or_a_section() {
        let settings = |text: &str| load(text, Given::default()).expect("loads");
        let keep = |generations| Keep::new(generations).expect("in range");
        let alone = settings("index = \"b\"");
        assert_eq!(alone.index, Path::new("b"));
        assert_eq!(alone.index_life, IndexSettings::default());
        let section = settings("[index]\nkeep = 7\ncompact_above = 0\n");
        assert_eq!(section.index, Path::new("index"));
        assert_eq!(section.index_life, IndexSettings { keep: keep(7), compact_above: 0 });
        assert_eq!(settings("[index]\nfolder = \"c\"").index, Path::new("c"));
        for bad in ["keep = 0", "keep = 101", "keeps = 2", "compact_above = -1"] {
            assert!(load(&format!("[index]\n{bad}"), Given::default()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_inbox_has_settings() {
        let inbox = |text: &str| load(text, Given::default()).map(|config| config.inbox);
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
    fn pages_have_settings() {
        let text = "[web]\nsignup = false\nsignup_plan = \"pro\"\nplain_http = true\n\
                    proxies = [\"10.0.0.1\", \"::ffff:10.0.0.2\"]\n";
        let Config { web, server, .. } = load(text, Given::default()).expect("loads");
        assert_eq!((web.signup, web.signup_plan, web.plain_http), (false, Plan::Pro, true));
        let proxies: Vec<_> = server.proxies.iter().map(ToString::to_string).collect();
        assert_eq!(proxies, ["10.0.0.1", "10.0.0.2"]);
        let web = load("", Given::default()).expect("loads").web;
        assert_eq!((web.signup, web.signup_plan, web.plain_http), (true, Plan::Free, false));
    }

    #[test]
    fn loopback_is_told_by_its_text() {
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

    #[test]
    fn misspelt_settings_are_refused() {
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
            assert!(load(text, Given::default()).is_err(), "{text}");
        }
        let missing =
            Given { config: Some("/nonexistent/dropdex.toml".into()), ..Given::default() };
        assert!(Config::load(missing).is_err());
    }
}
