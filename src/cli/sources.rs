//! `dropdex sources`: lists that dropdex fetches automatically.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use futures_util::future::join_all;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::app;
use crate::cli::admin_client::{Local, run_task};
use crate::cli::{WrongUsage, print_json};
use crate::config::Config;
use crate::facts::published::FactsFolder;
use crate::intake::outcome::{Outcome, one_line};
use crate::intake::request::{Rebuild, Task};
use crate::intake::tables::TablesFolder;
use crate::outbound::guard::UNRESOLVED;
use crate::sources::fetch::FetchError;
use crate::sources::presets::Class;
use crate::sources::run::{self, Checked, Intake, Report, RunOutcome, Runner, check};
use crate::sources::settings::Source;
use crate::sources::state::{Approval, Choice, Folder, TableUse, View};
use crate::vocab::similar;

/// Fetch published lists: show, enable, disable, fetch and check sources
///
/// A running server fetches the enabled sources by their schedules.
#[derive(Args, Debug)]
pub struct SourcesArgs {
    #[command(subcommand)]
    command: SourcesCommand,
}

#[derive(Subcommand, Debug)]
enum SourcesCommand {
    /// List all sources with their terms, last fetch, rows and next run
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Enable sources; shows their terms, and asks for consent if they restrict the use
    Enable {
        /// Names of sources
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// All public lists and tables, which need no account
        #[arg(long)]
        all_free: bool,
        /// Accept the terms without a prompt
        #[arg(long)]
        yes: bool,
    },
    /// Disable sources; lists that were ingested stay
    Disable {
        /// Names of sources
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Fetch sources now and ingest what is new, then build and activate a new index
    ///
    /// Retries a source that waits for you after a refusal.
    Fetch {
        /// Names of enabled sources [default: all enabled ones]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        local: Local,
    },
    /// Put an edition of facts into use that was held back, because it has fewer than half of the names
    Accept {
        /// Name of a source
        name: String,
    },
    /// Try sources without keeping anything: is the list there, in the right format, with how many rows
    Check {
        /// Names of sources [default: all enabled ones or, if none, all that need no account]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: SourcesArgs, config: &Config) -> anyhow::Result<()> {
    let folder = Folder::new(&config.site().data);
    match args.command {
        SourcesCommand::List { json } => list(config, &folder, json),
        SourcesCommand::Enable { names, all_free, yes } => {
            enable(config, &folder, &names, all_free, yes)
        }
        SourcesCommand::Disable { names } => disable(config, &folder, &names),
        SourcesCommand::Fetch { names, json, local } => fetch(config, &folder, &names, json, local),
        SourcesCommand::Accept { name } => accept(config, &folder, name),
        SourcesCommand::Check { names, json } => check_all(config, &folder, &names, json),
    }
}

impl SourcesArgs {
    /// Whether the command writes to the data folder.
    pub fn writes_files(&self) -> bool {
        use SourcesCommand::{Accept, Disable, Enable, Fetch};
        matches!(self.command, Enable { .. } | Disable { .. } | Fetch { .. } | Accept { .. })
    }
}

/// Returns the sources with these names, in the given order.
fn named(views: Vec<View>, names: &[String]) -> anyhow::Result<Vec<View>> {
    let known = |name: &&String| !views.iter().any(|view| view.source.name == **name);
    if let Some(name) = names.iter().find(known) {
        let known = views.iter().map(|view| view.source.name.as_str());
        match similar::nearest(name, known) {
            Some(nearest) => bail!("there is no source `{name}`; did you mean {nearest}?"),
            None => bail!("there is no source `{name}`; `dropdex sources list` shows all"),
        }
    }
    let is_named = |view: &View| names.contains(&view.source.name);
    Ok(views.into_iter().filter(is_named).collect())
}

/// A source in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a str,
    about: &'a str,
    class: &'static str,
    enabled: bool,
    /// `off`, `waiting`, `ok`, `doubtful`, `failing`, `late` or `stopped`.
    status: &'static str,
    /// Whether the settings file determines if it is enabled.
    fixed: bool,
    urls: Vec<&'a str>,
    schedule: String,
    terms: &'a str,
    licence: Option<&'a str>,
    internal_use_only: bool,
    last_success: Option<DateTime<Utc>>,
    last_list: Option<DateTime<Utc>>,
    rows: u64,
    rejected: u64,
    /// Version of the table that was fetched last.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    next_run: Option<DateTime<Utc>>,
    late_seconds: i64,
    #[serde(skip_serializing_if = "<[Approval]>::is_empty")]
    approvals: &'a [Approval],
    warnings: Vec<String>,
    problem: Option<&'a str>,
    problem_since: Option<DateTime<Utc>>,
}

impl<'a> Listed<'a> {
    fn new(view: &'a View, now: DateTime<Utc>) -> Listed<'a> {
        let (source, state) = (&view.source, &view.state);
        Listed {
            name: &source.name,
            about: &source.about,
            class: class_word(source.class),
            enabled: view.is_enabled(),
            status: view.standing(now).as_str(),
            fixed: source.enabled.is_some(),
            urls: source.addresses.iter().map(|address| address.as_str()).collect(),
            schedule: source.schedule.to_string(),
            terms: &source.terms.text,
            licence: source.terms.licence.as_deref(),
            internal_use_only: source.terms.internal,
            last_success: state.last_success,
            last_list: state.last_list,
            rows: state.rows,
            rejected: state.rejected,
            version: state.version.as_deref(),
            next_run: view.next_run(now),
            late_seconds: view.late_by(now).map_or(0, |late| late.num_seconds()),
            approvals: &state.approvals,
            warnings: state.warnings(),
            problem: state.problem.as_ref().map(|problem| problem.text.as_str()),
            problem_since: state.problem.as_ref().map(|problem| problem.since),
        }
    }
}

fn class_word(class: Class) -> &'static str {
    match class {
        Class::Free => "free",
        Class::Terms => "terms",
        Class::Account => "account",
        Class::Own => "own",
    }
}

fn list(config: &Config, folder: &Folder, json: bool) -> anyhow::Result<()> {
    let (views, now) = (folder.views(&config.sources)?, config.clock.now());
    if json {
        let listed: Vec<Listed<'_>> = views.iter().map(|view| Listed::new(view, now)).collect();
        return print_json(&listed);
    }
    let mut out = stdout().lock();
    for (class, heading) in [
        (Class::Free, "Public lists and tables, which need no account"),
        (Class::Terms, "Lists with terms, off until you accept them"),
        (Class::Account, "Sources that need an account"),
        (Class::Own, "Own sources"),
    ] {
        let mut views = views.iter().filter(|view| view.source.class == class).peekable();
        if views.peek().is_some() {
            writeln!(out, "{heading}")?;
        }
        for view in views {
            print_view(&mut out, view, now)?;
        }
    }
    if !views.iter().any(View::is_enabled) {
        writeln!(
            out,
            "No source is enabled. Enable the public ones: dropdex sources enable --all-free"
        )?;
    }
    Ok(())
}

fn print_view(out: &mut impl Write, view: &View, now: DateTime<Utc>) -> anyhow::Result<()> {
    let (source, state) = (&view.source, &view.state);
    writeln!(out, "  {:<12} {:<7}  {}", source.name, view.standing(now), source.about)?;
    let pad = " ".repeat(24);
    writeln!(out, "{pad}{}", terms(source))?;
    let time = |at: Option<DateTime<Utc>>| {
        at.map_or("never".to_owned(), |at| at.format("%Y-%m-%d %H:%M UTC").to_string())
    };
    if view.is_enabled() || state.last_list.is_some() {
        let next = view.next_run(now).map_or("none".to_owned(), |next| time(Some(next)));
        let (schedule, rows) = (source.schedule, state.rows);
        writeln!(
            out,
            "{pad}last list {}, {rows} rows; last checked {}; next {next} ({schedule})",
            time(state.last_list),
            match state.last_failure.filter(|_| state.problem.is_some()) {
                Some(at) => format!("{}, failed", time(Some(at))),
                None => time(state.last_success),
            }
        )?;
    }
    if let (Some(version), Some(used)) = (&state.version, view.table_use()) {
        let used = match used {
            TableUse::Overridden => used.as_str(),
            _ => "in use by servers started since",
        };
        writeln!(out, "{pad}version {version}, {used}")?;
    }
    if !state.approvals.is_empty() {
        writeln!(out, "{pad}{}", approvals(view))?;
    }
    for warning in state.warnings() {
        writeln!(out, "{pad}WARNING: {warning}")?;
    }
    if let Some(problem) = &state.problem {
        writeln!(out, "{pad}FAILED since {}: {}", time(Some(problem.since)), problem.text)?;
    }
    Ok(())
}

/// Describes the number of zones by status, and when the access to the wanted ones ends.
fn approvals(view: &View) -> String {
    let mut statuses = BTreeMap::<&str, u32>::new();
    for approval in &view.state.approvals {
        *statuses.entry(&approval.status).or_default() += 1;
    }
    let counts = statuses.iter().map(|(status, count)| format!("{count} {status}"));
    let wanted = view.state.approvals.iter().filter(|it| view.source.zones.contains(&it.zone));
    let wanted = wanted.map(|Approval { zone, status, expires }| {
        let expires = expires.as_ref().map(|expires| format!(" until {expires}"));
        format!("{zone}: {status}{}", expires.unwrap_or_default())
    });
    let lines = [counts.collect::<Vec<_>>().join(", "), wanted.collect::<Vec<_>>().join(", ")];
    format!("zones: {}", lines.join("; ").trim_end_matches("; "))
}

/// Returns the terms on one line.
fn terms(source: &Source) -> String {
    let licence = source.terms.licence.as_ref().map(|licence| format!(" Licence: {licence}."));
    let internal = if source.terms.internal { " Internal use only." } else { "" };
    format!("{}{}{internal}", source.terms.text, licence.unwrap_or_default())
}

fn enable(
    config: &Config,
    folder: &Folder,
    names: &[String],
    all_free: bool,
    yes: bool,
) -> anyhow::Result<()> {
    if names.is_empty() && !all_free {
        let why = "name the sources to enable, or enable all public ones with --all-free";
        return Err(WrongUsage(why).into());
    }
    let all = folder.views(&config.sources)?;
    let free = all.iter().filter(|view| all_free && view.source.class == Class::Free);
    let free = free.map(|view| view.source.name.clone()).collect::<Vec<_>>();
    let views = named(all, &[names, free.as_slice()].concat())?;
    for view in &views {
        let Source { name, enabled, .. } = &view.source;
        if *enabled == Some(false) && names.contains(name) {
            bail!(
                "{name} is disabled in the settings file; change [sources.{name}] `enabled` there"
            );
        }
    }
    let needs_login =
        |view: &&View| view.source.class == Class::Account && view.source.login.is_none();
    if let Some(view) = views.iter().find(needs_login) {
        return Err(FetchError::NoLogin(view.source.name.clone()).into());
    }
    for view in &views {
        writeln!(stderr(), "{:<12} {}", view.source.name, terms(&view.source))?;
    }
    let asks = views.iter().any(|view| matches!(view.source.class, Class::Terms | Class::Account));
    if asks && !yes && !is_accepted()? {
        bail!("nothing was enabled");
    }
    folder.enable(&views, config.clock.now())?;
    let names: Vec<&str> = views.iter().map(|view| view.source.name.as_str()).collect();
    writeln!(stdout(), "enabled {}", names.join(", "))?;
    writeln!(stderr(), "a running server fetches them now; start one with `dropdex serve`")?;
    Ok(())
}

/// Asks for consent on the terminal.
fn is_accepted() -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        let why = "these terms must be accepted: read them, then run the command with --yes";
        return Err(WrongUsage(why).into());
    }
    write!(stderr(), "Do you accept these terms? [y/N] ")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("standard input")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn disable(config: &Config, folder: &Folder, names: &[String]) -> anyhow::Result<()> {
    let views = named(folder.views(&config.sources)?, names)?;
    let mut choices = folder.choices()?;
    for view in &views {
        let Source { name, enabled, .. } = &view.source;
        if *enabled == Some(true) {
            bail!(
                "{name} is enabled in the settings file; set [sources.{name}] `enabled = false` there"
            );
        }
        choices.insert(name.clone(), Choice { enabled: false, at: config.clock.now() });
    }
    folder.set_choices(&choices)?;
    writeln!(stdout(), "disabled {}", names.join(", "))?;
    Ok(())
}

/// Runs tasks one at a time, in the server or, without one, in this process.
struct Here(Arc<Mutex<(Local, Config)>>);

impl Intake for Here {
    async fn run_task(&self, task: Task) -> anyhow::Result<Outcome> {
        let here = Arc::clone(&self.0);
        let run = move || {
            let here = here.lock().unwrap_or_else(PoisonError::into_inner);
            run_task(task, &here.0, &here.1)
        };
        tokio::task::spawn_blocking(run).await?
    }
}

/// The outcome of `fetch` in JSON.
#[derive(Serialize)]
struct Fetches<'a> {
    sources: &'a [Report],
    /// The new generation; null when none was built.
    generation: Option<String>,
}

fn fetch(
    config: &Config,
    folder: &Folder,
    names: &[String],
    json: bool,
    local: Local,
) -> anyhow::Result<()> {
    let mut views = folder.views(&config.sources)?;
    if names.is_empty() {
        views.retain(View::is_enabled);
    } else {
        views = named(views, names)?;
    }
    if let Some(off) = views.iter().find(|view| !view.is_enabled()) {
        let name = &off.source.name;
        bail!("{name} is not enabled; run `dropdex sources enable {name}`");
    }
    if views.is_empty() {
        bail!("no source is enabled; run `dropdex sources enable --all-free`");
    }
    let runner = Runner {
        fetcher: app::fetcher(config)?,
        folder: folder.clone(),
        tables: TablesFolder::new(&config.site().data),
        facts: FactsFolder::new(&config.site().data),
        intake: Here(Arc::new(Mutex::new((local, config.clone())))),
    };
    let (reports, generation) = Runtime::new()?.block_on(async {
        let runs = views.iter().map(|view| runner.run(&view.source));
        let reports = join_all(runs).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut generation = None;
        if reports.iter().any(|report| report.lists > 0) {
            let rebuild = Task::Rebuild(Rebuild { compact: false, only_if_behind: true });
            let outcome = runner.intake.run_task(rebuild).await?;
            if let Some(error) = outcome.error() {
                bail!("the lists were ingested, but the index was not rebuilt: {error}");
            }
            generation = outcome.generation.map(|manifest| manifest.generation.to_string());
        }
        anyhow::Ok((reports, generation))
    })?;
    if json {
        print_json(&Fetches { sources: &reports, generation })?;
    } else {
        reports.iter().try_for_each(print_report)?;
    }
    fail_with(reports.iter().map(|report| report.error.as_deref()))
}

fn accept(config: &Config, folder: &Folder, name: String) -> anyhow::Result<()> {
    let views = named(folder.views(&config.sources)?, &[name])?;
    let facts = FactsFolder::new(&config.site().data);
    for View { source, .. } in &views {
        let names = run::accept(folder, &facts, source, config.clock.now())?;
        writeln!(stdout(), "{:<12} facts about {names} names are in use", source.name)?;
    }
    Ok(())
}

/// Fails if any source failed. The error names the remedy if it is the same for all.
fn fail_with<'a>(errors: impl ExactSizeIterator<Item = Option<&'a str>>) -> anyhow::Result<()> {
    let all = errors.len();
    let failed: Vec<&str> = errors.flatten().collect();
    if failed.is_empty() {
        return Ok(());
    }
    if failed.len() == all && failed.iter().all(|error| error.contains(UNRESOLVED)) {
        bail!(
            "no name can be resolved: check the DNS and the Internet access of this machine, or set \
             `servers` in [dns] of the settings"
        );
    }
    bail!("{} of {all} sources failed", failed.len());
}

fn print_report(report: &Report) -> anyhow::Result<()> {
    let Report { source, outcome, rows, rejected, compared, error, .. } = report;
    let text = match outcome {
        RunOutcome::Added if report.editions > 0 => {
            format!("new facts about {rows} names, rejected {rejected} lines")
        }
        RunOutcome::Added if report.lists == 0 => {
            format!("a newer table of {rows} entries takes effect when the server starts")
        }
        RunOutcome::Added => format!("added {rows} rows, rejected {rejected}"),
        RunOutcome::Unchanged if *compared > 0 => {
            "compared with the days before; no drops yet".to_owned()
        }
        RunOutcome::Unchanged => "nothing new".to_owned(),
        RunOutcome::Early => "not published yet".to_owned(),
        RunOutcome::Busy => "being fetched by the server".to_owned(),
        RunOutcome::Failed => format!("FAILED: {}", error.as_deref().unwrap_or_default()),
    };
    writeln!(stdout(), "{source:<12} {text}")?;
    for warning in &report.warnings {
        writeln!(stdout(), "{source:<12} WARNING: {warning}")?;
    }
    Ok(())
}

/// The result of `check` in JSON.
#[derive(Serialize)]
struct CheckLine<'a> {
    source: &'a str,
    ok: bool,
    lists: &'a [Checked],
    error: Option<String>,
}

fn check_all(config: &Config, folder: &Folder, names: &[String], json: bool) -> anyhow::Result<()> {
    let views = folder.views(&config.sources)?;
    let is_any_on = views.iter().any(View::is_enabled);
    let default = |view: &View| match is_any_on {
        true => view.is_enabled(),
        false => view.source.class == Class::Free,
    };
    let views = if names.is_empty() {
        views.into_iter().filter(default).collect()
    } else {
        named(views, names)?
    };
    let fetcher = app::fetcher(config)?;
    let checks = views.iter().map(|view| check(&fetcher, &view.source));
    let checked = Runtime::new()?.block_on(join_all(checks));
    let mut lines = Vec::new();
    for (view, checked) in views.iter().zip(&checked) {
        let error = checked.as_ref().err().map(|err| one_line(err.as_ref()));
        let lists = checked.as_deref().unwrap_or_default();
        lines.push(CheckLine { source: &view.source.name, ok: error.is_none(), lists, error });
    }
    if json {
        print_json(&lines)?;
    } else {
        lines.iter().try_for_each(print_check)?;
    }
    fail_with(lines.iter().map(|line| line.error.as_deref()))
}

fn print_check(line: &CheckLine<'_>) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    let name = line.source;
    if let Some(error) = &line.error {
        writeln!(out, "{name:<12} FAILED: {error}")?;
    }
    for Checked { url, format, bytes, rows, rejected, .. } in line.lists {
        match format {
            Some(format) => writeln!(
                out,
                "{name:<12} ok: {format}, {rows} rows, {rejected} rejected, {bytes} bytes, {url}"
            )?,
            None if name == "czds" => writeln!(out, "{name:<12} ok: {url}")?,
            None => writeln!(out, "{name:<12} not published yet: {url}")?,
        }
    }
    Ok(())
}
