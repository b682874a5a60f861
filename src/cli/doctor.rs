//! `dropdex doctor`: checks an installation, and says what to do about each problem.

use std::fs;
use std::io::{Write, stdout};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use rustix::fs::{Access, StatVfs, access, statvfs};
use rustix::process::geteuid;
use serde::Serialize;
use url::Host;

use crate::backup::{self, settings::BackupPlace};
use crate::cli::{environment, journal, owner, print_json};
use crate::config::Config;
use crate::corpus::Corpus;
use crate::exit::ExitWith;
use crate::index::storage::manifest::{self, Manifest};
use crate::index::storage::space::Space;
use crate::intake::outcome::one_line;
use crate::outbound::dns::Dns;
use crate::outbound::email::Mailer;
use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::server::settings::TlsSource;
use crate::server::tls::Tls;
use crate::sources::state::{Folder, Standing, View};
use crate::vocab::limits::STALE_AFTER_HOURS;
use crate::vocab::memory;
use crate::workers::admin;

/// Exit code if there is a problem. Warnings alone exit with 0.
const PROBLEMS: u8 = 3;
/// Free space below which even a small server gets into trouble.
const SPACE_MIN: u64 = 1 << 30;
/// Days before the end of a certificate from which it should have been renewed.
const CERTIFICATE_DAYS: i64 = 21;

/// Check settings, folders, space, clock, memory, TLS, mail, sources and lists of this installation
///
/// Each finding says what to do. Works with and without a running server. Exits with 3 if there is a
/// problem; warnings alone exit with 0.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Do not connect to mail servers and sources
    #[arg(long)]
    offline: bool,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Problem,
}

/// The result of a check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    level: Level,
    /// The result of the check.
    what: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// Findings, in the order of the checks.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push(Finding { check, level: Level::Ok, what: what.into(), advice: None });
    }

    fn warn(&mut self, check: &'static str, what: impl Into<String>, advice: impl Into<String>) {
        self.add(check, Level::Warning, what.into(), advice.into());
    }

    fn problem(&mut self, check: &'static str, what: impl Into<String>, advice: impl Into<String>) {
        self.add(check, Level::Problem, what.into(), advice.into());
    }

    fn add(&mut self, check: &'static str, level: Level, what: String, advice: String) {
        self.0.push(Finding { check, level, what, advice: Some(advice) });
    }
}

/// Runs all checks.
///
/// # Errors
/// There is a problem.
pub fn run(args: &DoctorArgs, config: &Config) -> anyhow::Result<()> {
    let mut findings = Findings::default();
    settings(config, &mut findings);
    server(config, &mut findings);
    folders(config, &mut findings);
    let current = index(config, &mut findings);
    space(config, current.as_ref(), &mut findings);
    rebuild_memory(config, current.as_ref(), &mut findings);
    clock(config, current.as_ref(), &mut findings);
    certificate(config, &mut findings);
    let views = Folder::new(&config.site().data).views(&config.sources);
    lists(config, current.as_ref(), &views, &mut findings);
    backups(config, &mut findings);
    if !args.offline {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("cannot start")?.block_on(async {
            mail(config, &mut findings).await;
            reach(config, views.as_deref().unwrap_or_default(), &mut findings).await;
        });
    }
    report(&findings.0, args.json)
}

/// Prints the finding that the settings are wrong as JSON, if that is asked for. The error has it as text.
pub fn refused(args: &DoctorArgs, err: &anyhow::Error) {
    if args.json {
        let mut findings = Findings::default();
        findings.problem("settings", one_line(err.as_ref()), "correct the setting");
        // The exit code says the same.
        let _ = print_json(&findings.0);
    }
}

fn report(findings: &[Finding], json: bool) -> anyhow::Result<()> {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    if json {
        print_json(&findings)?;
    } else {
        let mut out = stdout().lock();
        for Finding { check, level, what, advice } in findings {
            let word = match level {
                Level::Ok => "ok",
                Level::Warning => "WARNING",
                Level::Problem => "PROBLEM",
            };
            writeln!(out, "{word:<8} {check:<12} {what}")?;
            if let Some(advice) = advice {
                writeln!(out, "{:<21} -> {advice}", "")?;
            }
        }
    }
    match (count(Level::Problem), count(Level::Warning)) {
        (0, _) => Ok(()),
        (problems, warnings) => {
            let why = format!("problems: {problems}, warnings: {warnings}");
            Err(ExitWith::new(PROBLEMS, why).into())
        }
    }
}

fn settings(config: &Config, findings: &mut Findings) {
    const CHECK: &str = "settings";
    let file = config.file.as_deref().map(|file| file.display().to_string());
    for renamed in &config.renamed {
        let what = format!("{} was renamed to {}", renamed.old, renamed.new);
        findings.warn(CHECK, what, "use the new name; the next version refuses the old one");
    }
    for problem in &config.table_problems {
        let advice = "run `dropdex sources fetch psl iana-tlds icann-gtlds`";
        findings.warn(CHECK, problem, advice);
    }
    for warning in environment::unknown() {
        findings.warn(CHECK, warning, "correct the name of the variable, or remove it");
    }
    findings
        .ok(CHECK, file.map_or("no settings file".to_owned(), |file| format!("{file} is read")));
}

fn server(config: &Config, findings: &mut Findings) {
    const CHECK: &str = "server";
    match UnixStream::connect(admin::socket_path(&config.site().data)) {
        Ok(_) => findings.ok(CHECK, "a server runs with this data folder"),
        Err(_) => {
            let advice = "start it with `dropdex serve`, or `systemctl start dropdex`";
            findings.warn(CHECK, "no server runs with this data folder", advice);
            if let Some(damage) = journal::damage(config) {
                let advice = "see \"Troubleshooting\" in data/docs/operating.md; `dropdex journal verify` has more";
                findings.problem("journal", damage, advice);
            }
        }
    }
}

fn folders(config: &Config, findings: &mut Findings) {
    const CHECK: &str = "folders";
    let site = config.site();
    for (setting, folder) in [("data", &site.data), ("index", &site.index)] {
        let shown = folder.display();
        match fs::metadata(folder) {
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                let advice =
                    format!("`dropdex serve` creates it; check --{setting} if it should exist");
                findings.warn(CHECK, format!("{shown} does not exist yet"), advice);
            }
            Err(err) => {
                let advice =
                    "run this as the user of the service: `runuser -u dropdex -- dropdex doctor`";
                findings.problem(CHECK, format!("{shown}: {err}"), advice);
            }
            Ok(facts) if !facts.is_dir() => {
                let advice = format!("choose a folder with --{setting}");
                findings.problem(CHECK, format!("{shown} is not a folder"), advice);
            }
            Ok(facts) => folder_of(CHECK, folder, facts.uid(), findings),
        }
    }
}

fn folder_of(check: &'static str, folder: &Path, uid: u32, findings: &mut Findings) {
    let shown = folder.display();
    let checked = owner::check_private(folder).and_then(|()| owner::check(folder));
    if let Err(err) = checked {
        let advice = "then run this again as the user of the service";
        return findings.problem(check, one_line(err.as_ref()), advice);
    }
    if access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let own = geteuid().as_raw();
        let advice = format!("run as the user of the folder, or `chown -R {own} {shown}` as root");
        let what = format!("{shown} belongs to user {uid}, and user {own} may not write there");
        return findings.problem(check, what, advice);
    }
    findings.ok(check, format!("{shown} can be written"));
}

/// Returns the manifest of the index in use.
fn index(config: &Config, findings: &mut Findings) -> Option<Manifest> {
    const CHECK: &str = "index";
    let index = config.site().index;
    let current = manifest::current(&index).and_then(|current| {
        current.map(|current| Manifest::read(&manifest::folder_of(&index, current))).transpose()
    });
    match current {
        Ok(Some(manifest)) => {
            let (names, generation) = (manifest.names, manifest.generation);
            findings.ok(CHECK, format!("generation {generation} with {names} names"));
            Some(manifest)
        }
        Ok(None) => {
            let advice = "`dropdex serve` builds it; its page asks for the first lists";
            findings.warn(CHECK, "there is no index yet", advice);
            None
        }
        Err(err) => {
            findings.problem(CHECK, one_line(&err), "build a new one: `dropdex rebuild`");
            None
        }
    }
}

fn space(config: &Config, current: Option<&Manifest>, findings: &mut Findings) {
    const CHECK: &str = "space";
    let site = config.site();
    let rebuild = current.map_or(0, Manifest::bytes);
    for (folder, size) in [(&site.data, 0), (&site.index, rebuild)] {
        let Ok(StatVfs { f_bavail, f_frsize, f_favail, f_files, .. }) = statvfs(folder) else {
            continue;
        };
        let (free, shown) = (f_bavail * f_frsize, folder.display());
        let what = format!("{shown}: {} MB free", free >> 20);
        let room = Space::for_folder(folder).and_then(|space| space.check(size, 0));
        if free < SPACE_MIN {
            let advice = format!(
                "free some space: {} MB are needed for what users write; `[index] keep` sets how many \
                 generations stay",
                SPACE_MIN >> 20
            );
            findings.problem(CHECK, what, advice);
        } else if let Err(err) = room {
            findings.problem(CHECK, what, format!("for the next rebuild: {err}"));
        } else if f_files > 0 && f_favail < 1_000 {
            let advice = "remove files, or make a file system with more inodes";
            findings.problem(CHECK, format!("{shown}: {f_favail} inodes left"), advice);
        } else {
            findings.ok(CHECK, what);
        }
    }
}

/// A rebuild verifies the new index by opening it beside the old one.
fn rebuild_memory(config: &Config, current: Option<&Manifest>, findings: &mut Findings) {
    const CHECK: &str = "memory";
    let total = memory::available_bytes();
    let what = format!("{} MB for this process", total >> 20);
    let bytes = current.map_or(0, Manifest::bytes);
    if bytes.saturating_mul(2) > total {
        let advice = format!(
            "the next rebuild opens the new index ({} MB) beside the one in use; add memory, or lower \
             `[index] rebuild_memory_mib` and set `[index] contains = \"drops\"`",
            bytes >> 20
        );
        findings.problem(CHECK, what, advice);
    } else {
        findings.ok(
            CHECK,
            format!(
                "{what}, at most {} MB of it for a rebuild",
                config.index_life.build.memory.bytes() >> 20
            ),
        );
    }
}

fn clock(config: &Config, current: Option<&Manifest>, findings: &mut Findings) {
    const CHECK: &str = "clock";
    const ADVICE: &str = "set the clock and keep it set: `timedatectl set-ntp true`";
    let (now, newest) = (config.clock.now(), current.and_then(|it| it.newest_observed_at));
    if config.clock.is_unset() {
        findings.problem(CHECK, format!("{now} is before this version was built"), ADVICE);
    } else if let Some(newest) = newest.filter(|newest| *newest > now + TimeDelta::hours(1)) {
        findings.problem(CHECK, format!("{now} is before the newest list, of {newest}"), ADVICE);
    } else {
        findings.ok(CHECK, now.format("%Y-%m-%d %H:%M:%S UTC").to_string());
    }
}

fn certificate(config: &Config, findings: &mut Findings) {
    const CHECK: &str = "tls";
    let Some(source) = &config.server.tls else {
        let what = if config.listen.is_loopback() {
            "no certificate; the server listens on this machine only"
        } else {
            "no certificate; a proxy in front must have one"
        };
        return findings.ok(CHECK, what);
    };
    let renew = match source {
        TlsSource::Files(_) => "renew it; the server takes new files by itself",
        TlsSource::Acme(_) => "the server renews it: see its log for the reason that it did not",
    };
    if let TlsSource::Acme(acme) = source
        && !acme.files.certificate.exists()
    {
        let what = format!("{} has issued no certificate yet", acme.directory);
        return findings.warn(CHECK, what, "start the server, and see its log");
    }
    match Tls::open(source).map(|tls| tls.expires().and_then(|at| DateTime::from_timestamp(at, 0)))
    {
        Err(err) => findings.problem(
            CHECK,
            one_line(err.as_ref()),
            "check server.tls_certificate and server.tls_key",
        ),
        Ok(None) => findings.warn(CHECK, "the end of the certificate cannot be read", renew),
        Ok(Some(end)) => {
            let (what, left) = (format!("the certificate ends on {end}"), end - config.clock.now());
            if left < TimeDelta::zero() {
                findings.problem(CHECK, what, renew);
            } else if left < TimeDelta::days(CERTIFICATE_DAYS) {
                findings.warn(CHECK, what, renew);
            } else {
                findings.ok(CHECK, what);
            }
        }
    }
}

fn lists(
    config: &Config,
    current: Option<&Manifest>,
    views: &anyhow::Result<Vec<View>>,
    findings: &mut Findings,
) {
    const CHECK: &str = "lists";
    let now = config.clock.now();
    match current.and_then(|manifest| manifest.newest_observed_at) {
        None if Corpus::has_lists(&config.site().data) => findings.warn(
            CHECK,
            "there are lists, but no index of them",
            "build it: `dropdex rebuild`, or start the server",
        ),
        None => findings.warn(
            CHECK,
            "there is no list yet",
            "fetch the public ones: `dropdex sources enable --all-free`",
        ),
        Some(newest) if now - newest > TimeDelta::hours(STALE_AFTER_HOURS) => {
            let what = format!("the newest list is {} hours old", (now - newest).num_hours());
            findings.problem(
                CHECK,
                what,
                "ingest a newer one, or see which source fails: `dropdex sources list`",
            );
        }
        Some(newest) => {
            findings.ok(CHECK, format!("the newest is of {}", newest.format("%Y-%m-%d %H:%M UTC")))
        }
    }
    match views {
        Err(err) => findings.problem("sources", one_line(err.as_ref()), "see the message"),
        Ok(views) => {
            for view in views.iter().filter(|view| view.is_enabled()) {
                source(view, now, findings);
            }
        }
    }
}

fn source(view: &View, now: DateTime<Utc>, findings: &mut Findings) {
    const CHECK: &str = "sources";
    let (name, standing) = (&view.source.name, view.standing(now));
    let problem = view.state.problem.as_ref().map_or("", |problem| problem.text.as_str());
    let what =
        format!("{name} is {standing}{}{problem}", if problem.is_empty() { "" } else { ": " });
    match standing {
        Standing::Late | Standing::Stopped => {
            findings.problem(CHECK, what, format!("try it with `dropdex sources check {name}`"));
        }
        Standing::Failing | Standing::Doubtful => {
            findings.warn(CHECK, what, "it is tried again; `dropdex sources list` says when");
        }
        Standing::Off | Standing::Waiting | Standing::Ok => findings.ok(CHECK, what),
    }
}

fn backups(config: &Config, findings: &mut Findings) {
    const CHECK: &str = "backup";
    let (max, advice) = match &config.backup {
        Some(backup) => (
            backup.schedule.interval() * 2,
            "see the log of the server for the reason, and try `dropdex backup now`",
        ),
        None => (
            TimeDelta::days(2),
            "make one with `dropdex backup FILE`, or on a schedule with `[backup]`; it works while the server runs",
        ),
    };
    if let Some(BackupPlace::Folder(folder)) = config.backup.as_ref().map(|backup| &backup.place)
        && !folder.is_dir()
    {
        let what = format!("backup.folder: {} is not a folder", folder.display());
        findings.problem(CHECK, what, "make it, owned by the user of the service");
    }
    match backup::last_time(&config.site().data) {
        None => findings.warn(CHECK, "there was no backup yet", advice),
        Some(at) if config.clock.now() - at > max => {
            findings.warn(CHECK, format!("the last one is of {at}"), advice);
        }
        Some(at) => findings.ok(CHECK, format!("the last one is of {at}")),
    }
}

async fn mail(config: &Config, findings: &mut Findings) {
    const CHECK: &str = "mail";
    let Some(smtp) = &config.outbound.smtp else {
        return findings.ok(CHECK, "off; `[smtp]` sets it up");
    };
    let server = format!("{}:{}", smtp.host, smtp.port);
    let tried = match Mailer::new(smtp) {
        Ok(mailer) => mailer.test().await,
        Err(err) => Err(err),
    };
    match tried {
        Ok(()) => findings.ok(CHECK, format!("{server} accepts the log-in")),
        Err(err) => {
            let advice = "check host, port, tls, username and password_file of `[smtp]`";
            findings.problem(CHECK, format!("{server}: {}", one_line(err.as_ref())), advice);
        }
    }
}

/// Connects to the servers of the enabled sources, without a request.
async fn reach(config: &Config, views: &[View], findings: &mut Findings) {
    const CHECK: &str = "reach";
    let rules = config.outbound.rules(&config.sources.allow);
    let client = Dns::new(&config.outbound.dns);
    let client = match client.and_then(|dns| Client::new(Guard::new(rules, dns), None)) {
        Ok(client) => client,
        Err(err) => return findings.problem(CHECK, one_line(err.as_ref()), "check `[dns]`"),
    };
    let today = config.clock.today();
    let enabled = views.iter().filter(|view| view.is_enabled());
    let mut servers: Vec<(String, u16)> = enabled
        .filter_map(|view| view.source.urls(today).into_iter().next())
        .filter_map(|url| {
            Some((url.host_str()?.to_owned(), url.port_or_known_default().unwrap_or(53)))
        })
        .collect();
    servers.sort();
    servers.dedup();
    for (host, port) in servers {
        let dial = async { anyhow::Ok(client.dial(&Host::parse(&host)?, port).await?) };
        match dial.await {
            Ok(_) => findings.ok(CHECK, format!("{host}:{port} accepts connections")),
            Err(err) => {
                let advice = "check the network, a firewall and `[dns]`; private addresses need `sources.allow`";
                findings.problem(
                    CHECK,
                    format!("{host}:{port}: {}", one_line(err.as_ref())),
                    advice,
                );
            }
        }
    }
}
