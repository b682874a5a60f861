//! The command line, one file per command. Results go to standard output, progress and logs to standard
//! error. Exit codes: 0 success, 1 failure, 2 wrong usage; [`exit`] and some commands have more.

pub mod account;
mod admin_client;
pub mod backup;
#[cfg(feature = "cluster")]
mod cluster;
mod completions;
mod corpus;
pub mod demo;
mod doctor;
mod environment;
pub mod export;
pub mod facts;
mod facts_of_server;
mod health;
pub mod index;
pub mod ingest;
pub mod journal;
mod man;
pub mod openapi;
mod owner;
mod process;
pub mod rebuild;
pub mod restore;
pub mod score;
pub mod serve;
pub mod sources;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::Serialize;

use crate::config::outbound::GivenSecrets;
use crate::config::{Config, Given};
use crate::exit::{self, ExitWith};
use crate::index::error::OpenError;
use crate::intake::outcome::one_line;
use crate::intake::worker;
use crate::telemetry::logs::{self, Logs};
use crate::vocab::day::Day;
use crate::vocab::file_error::is_full;
use crate::vocab::money::Currency;
use crate::vocab::secret::Secret;

/// Self-hosted search for domain names that are leaving registration.
///
/// Fetch public lists with `sources`, or add your own with `ingest`; serve them with `serve`, or try it
/// out with `demo`.
#[derive(Parser, Debug)]
#[command(name = "dropdex", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Folder of corpus, accounts and rejected rows [default: data]
    #[arg(long, global = true, env = "DROPDEX_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder of the index generations [default: index]
    #[arg(long, global = true, env = "DROPDEX_INDEX", value_name = "DIR")]
    index: Option<PathBuf>,
    /// TOML file with settings; options and environment variables take precedence
    #[arg(long, global = true, env = "DROPDEX_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use this day, YYYY-MM-DD, as today, for demos and tests; also from DROPDEX_TODAY
    #[arg(long, global = true, value_name = "DATE")]
    today: Option<Day>,
    /// Write the log as JSON lines
    #[arg(long, global = true, env = "DROPDEX_LOG_JSON", value_parser = BoolishValueParser::new())]
    log_json: bool,
}

#[derive(Subcommand, Debug)]
enum Command {
    Demo(demo::DemoArgs),
    Serve(serve::ServeArgs),
    Sources(sources::SourcesArgs),
    Ingest(ingest::IngestArgs),
    Rebuild(rebuild::RebuildArgs),
    Index(index::IndexArgs),
    Score(score::ScoreArgs),
    Account(account::AccountArgs),
    Doctor(doctor::DoctorArgs),
    Export(export::ExportArgs),
    Facts(facts::FactsArgs),
    Corpus(corpus::CorpusArgs),
    Journal(journal::JournalArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    #[cfg(feature = "cluster")]
    Cluster(cluster::ClusterArgs),
    Openapi(openapi::OpenapiArgs),
    Health(health::HealthArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Man(man::ManArgs),
    /// Run one request of a server, which starts this process (internal)
    #[command(name = worker::SUBCOMMAND, hide = true)]
    IntakeWorker,
}

impl Command {
    /// Whether the command itself writes to the data folder, even while a server is running. Commands
    /// that may send their work to a server check the owner only if they do the work themselves.
    fn writes_files(&self) -> bool {
        match self {
            Command::Restore(_) => true,
            Command::Backup(args) => args.writes_files(),
            Command::Sources(args) => args.writes_files(),
            Command::Index(args) => args.writes_files(),
            Command::Journal(args) => args.writes_files(),
            _ => false,
        }
    }

    /// Whether the command uses the data folder, directly or through the server.
    fn uses_data(&self) -> bool {
        !matches!(
            self,
            Command::Demo(_)
                | Command::Doctor(_)
                | Command::Score(_)
                | Command::Export(_)
                | Command::Facts(_)
                | Command::Openapi(_)
                | Command::Health(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::IntakeWorker
        )
    }

    /// Log level unless `RUST_LOG` sets one: a server logs its actions, other commands only warnings.
    fn log_level(&self) -> &'static str {
        match self {
            Command::Serve(_) => "info",
            _ => "warn",
        }
    }
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    process::prepare();
    // clap exits here on wrong usage, with exit code 2.
    let command = environment::without_empty(Cli::command());
    let cli = Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|err| err.exit());
    let prints_results = !matches!(cli.command, Command::Serve(_));
    let log_json = cli.global.log_json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader such as `head` has closed the pipe.
        Err(err) if prints_results && is_broken_pipe(&err) => ExitCode::SUCCESS,
        Err(err) => {
            logs::report_error(&one_line(err.as_ref()), log_json || logs::is_json());
            exit_code(&err)
        }
    }
}

/// Error for arguments that are valid individually but cannot be combined. Exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub &'static str);

/// Parses the option `--currency`.
fn parse_currency(text: &str) -> Result<Currency, &'static str> {
    Currency::parse(text).ok_or("must be an ISO 4217 code such as USD")
}

fn exit_code(err: &anyhow::Error) -> ExitCode {
    let io_error = |is: fn(&io::Error) -> bool| {
        err.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is))
    };
    ExitCode::from(match err.downcast_ref::<ExitWith>() {
        Some(exit) => exit.code,
        None if err.is::<WrongUsage>() => 2,
        None if io_error(is_full) => exit::DISK_FULL,
        None if io_error(is_unusable) => exit::FOLDER,
        None if err.chain().any(|cause| cause.is::<OpenError>()) => exit::INDEX,
        None => 1,
    })
}

/// Whether a path cannot be used, and no retry helps.
fn is_unusable(err: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    matches!(err.kind(), PermissionDenied | NotADirectory | ReadOnlyFilesystem)
}

/// Prints a value as one line of JSON on standard output.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Reads a secret from the environment. Secrets are not options, because other users can see the
/// arguments of a process.
fn secret_from_env(variable: &str) -> Option<Secret> {
    std::env::var(variable).ok().filter(|text| !text.is_empty()).map(Secret::new)
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let Global { data, index, config, today, log_json } = cli.global;
    if let Command::IntakeWorker = cli.command {
        logs::start(&Logs { json: log_json, level: None }, cli.command.log_level())?;
        return worker::serve();
    }
    // These need no settings, and work beside a settings file that is invalid.
    match cli.command {
        Command::Completions(args) => return completions::run(&args),
        Command::Man(args) => return man::run(&args),
        _ => {}
    }
    let secrets = GivenSecrets {
        smtp_password: secret_from_env("DROPDEX_SMTP_PASSWORD"),
        telegram_token: secret_from_env("DROPDEX_TELEGRAM_TOKEN"),
        czds_password: secret_from_env("DROPDEX_CZDS_PASSWORD"),
        s3_secret_access_key: secret_from_env("DROPDEX_S3_SECRET_ACCESS_KEY"),
        backup_s3_secret_access_key: secret_from_env("DROPDEX_BACKUP_S3_SECRET_ACCESS_KEY"),
    };
    let variables = environment::settings();
    let mut given =
        Given { data, index, config, today, log_json, secrets, variables, ..Given::default() };
    match &cli.command {
        Command::Serve(args) => {
            given.listen.clone_from(&args.listen);
            given.drain_delay = args.drain_delay;
        }
        Command::Health(args) => given.listen.clone_from(&args.listen),
        _ => {}
    }
    let config = Config::load(given).inspect_err(|err| {
        if let Command::Doctor(args) = &cli.command {
            doctor::refused(args, err);
        }
    })?;
    config.check(logs::start(&config.telemetry.logs, cli.command.log_level()))?;
    config.renamed.iter().for_each(|renamed| renamed.warn());
    for error in &config.table_problems {
        tracing::error!(error, "a fetched table is damaged; an older one is in use");
    }
    environment::unknown().iter().for_each(|warning| tracing::warn!("{warning}"));
    if cli.command.uses_data() {
        owner::check_private(&config.data)?;
    }
    if cli.command.writes_files() {
        owner::check(&config.data)?;
    }
    match cli.command {
        Command::Demo(args) => demo::run(args, &config),
        Command::Serve(_) => serve::run(&config),
        Command::Sources(args) => sources::run(args, &config),
        Command::Ingest(args) => ingest::run(args, &config),
        Command::Rebuild(args) => rebuild::run(&args, &config),
        Command::Index(args) => index::run(args, &config),
        Command::Score(args) => score::run(args, &config),
        Command::Account(args) => {
            account::run(args, &config.data, config.plans.clone(), config.clock)
        }
        Command::Doctor(args) => doctor::run(&args, &config),
        Command::Export(args) => export::run(args, &config),
        Command::Facts(args) => facts::run(args, &config),
        Command::Corpus(args) => corpus::run(&args, &config),
        Command::Journal(args) => journal::run(args, &config),
        Command::Backup(args) => backup::run(&args, &config),
        Command::Restore(args) => restore::run(&args, &config),
        #[cfg(feature = "cluster")]
        Command::Cluster(args) => cluster::run(args, &config),
        Command::Openapi(args) => openapi::run(args),
        Command::Health(args) => health::run(&args, &config),
        Command::Completions(_) | Command::Man(_) | Command::IntakeWorker => Ok(()),
    }
}

fn is_broken_pipe(err: &anyhow::Error) -> bool {
    err.chain().any(|cause| {
        // An error of `serde_json` does not return the writer's error as its source.
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = || cause.downcast_ref::<serde_json::Error>()?.io_error_kind();
        kind.or_else(json) == Some(io::ErrorKind::BrokenPipe)
    })
}
