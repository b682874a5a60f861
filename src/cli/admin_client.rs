//! Commands that a running server executes, or this process if no server is running. The server
//! holds the users' data, and queues work on lists.

use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::accounts::Store;
use crate::accounts::admin::{AdminCommand, AdminReply, execute};
use crate::cli::owner;
use crate::config::Config;
use crate::exit::{self, ExitWith};
use crate::http::account_data;
use crate::intake::outcome::Outcome;
use crate::intake::request::{Request, Site, Task};
use crate::intake::run::{self, Observer};
use crate::journal::JournalError;
use crate::vocab::clock::Clock;
use crate::vocab::plan::Plans;
use crate::workers::admin::{self, AskError, IntakeCommand, IntakeReply};

/// Time for retries while a starting or stopping server holds the store but has no socket.
const HANDOVER_WAIT_MAX: Duration = Duration::from_secs(3);
const HANDOVER_PAUSE: Duration = Duration::from_millis(50);

/// Runs an account or journal command on the server that uses the data folder or, without one, on
/// the store in the folder.
///
/// A starting server holds the store before it opens the socket, and a stopping one closes the
/// socket first. Therefore both are tried in turn for a while.
///
/// # Errors
/// Neither can be used. A refusal is a reply, not an error.
pub fn execute_command(
    command: &AdminCommand,
    data_dir: &Path,
    plans: Plans,
    clock: Clock,
) -> anyhow::Result<AdminReply> {
    let deadline = Instant::now() + HANDOVER_WAIT_MAX;
    loop {
        match admin::ask(data_dir, command) {
            Ok(reply) => return Ok(reply),
            Err(AskError::NotRunning { .. }) => {}
            Err(err @ (AskError::Stranger { .. } | AskError::Unreachable { .. })) => {
                return Err(err.into());
            }
            Err(err @ AskError::NoReply { .. }) => {
                return Err(err).context(
                    "the change may or may not have been made; `dropdex account list` shows it",
                );
            }
        }
        owner::check(data_dir)?;
        match Store::open(data_dir, plans.clone(), clock) {
            Ok(store) if store.is_copy() && *command != AdminCommand::Leave => {
                store.close().context("cannot close the journal")?;
                bail!(
                    "the data folder {} is that of a node of a cluster: start its server, which executes \
                     this; `dropdex cluster leave` makes it that of a single node",
                    data_dir.display()
                );
            }
            Ok(store) => return execute_on(store, command.clone()),
            Err(JournalError::Locked { .. }) if Instant::now() < deadline => {
                std::thread::sleep(HANDOVER_PAUSE);
            }
            Err(err @ JournalError::Locked { .. }) => {
                return Err(err).context(format!(
                    "the data folder {} is in use by a process that does not answer on the admin \
                     socket; try again when it has started or stopped",
                    data_dir.display()
                ));
            }
            Err(err) => return Err(err.into()),
        }
    }
}

/// Runs a command on the server that uses the data folder.
///
/// # Errors
/// No server is running, or it does not respond. A refusal is a reply, not an error.
pub fn execute_on_server(command: &AdminCommand, data_dir: &Path) -> anyhow::Result<AdminReply> {
    admin::ask(data_dir, command).context("the server must be running for this; start it")
}

fn execute_on(store: Store, command: AdminCommand) -> anyhow::Result<AdminReply> {
    let reply = execute(&store, command, account_data::pack);
    store.close().context("cannot close the journal")?;
    Ok(reply)
}

/// Returns the error for a reply that does not match the command.
pub fn unexpected_reply() -> anyhow::Error {
    anyhow!("unexpected reply from the server; is it of the same version?")
}

/// The option of commands that run in the server by default.
#[derive(Args, Debug)]
pub struct Local {
    /// Run in this process even if a server is running
    #[arg(long)]
    local: bool,
    /// The old name of --local
    #[arg(long, hide = true)]
    here: bool,
}

/// Runs work on lists in the server that uses the data folder, after its queued tasks. Without a
/// server, with `--local`, or if the server cannot read the files, the work runs in this process.
///
/// # Errors
/// The server did not run it. A failure of the work itself is part of the outcome.
pub fn run_task(task: Task, local: &Local, config: &Config) -> anyhow::Result<Outcome> {
    if local.here {
        tracing::warn!("--here is now called --local; the old name goes with the next version");
    }
    if !local.local
        && !local.here
        && let Some(outcome) = run_in_server(&task, config)?
    {
        outcome.notes.iter().try_for_each(|note| writeln!(stderr(), "{note}"))?;
        return Ok(outcome);
    }
    if task.dates_lists() && config.clock.is_unset() {
        let why = "the clock of this machine shows a time before this program was built, so lists would get a wrong \
                   day; set it (`timedatectl`), or give the time of the lists (`--observed-at`)";
        return Err(ExitWith::new(exit::CLOCK, why).into());
    }
    owner::check(&config.data)?;
    owner::check(&config.index)?;
    Ok(run::run(&Request { site: config.site(), task }, &Terminal::new()))
}

/// Returns the error to end with after this outcome, with its exit code.
///
/// # Errors
/// The work failed, or a list was refused.
pub fn end(outcome: &Outcome) -> anyhow::Result<()> {
    let Some(error) = outcome.error() else { return Ok(()) };
    if outcome.failure.as_ref().is_some_and(|failure| failure.is_full) {
        return Err(ExitWith::new(exit::DISK_FULL, error).into());
    }
    bail!(error.to_owned())
}

/// Returns the server's outcome; `None` if no server is running or it cannot read one of the files.
fn run_in_server(task: &Task, config: &Config) -> anyhow::Result<Option<Outcome>> {
    let Site { index, clock, .. } = config.site();
    if let Some(file) = task.files().iter().find(|file| file.to_str().is_none()) {
        bail!("{} is not UTF-8, so the server cannot open it; add --local", file.display());
    }
    let command = IntakeCommand { task: task.clone(), index, clock };
    match admin::ask_for_intake(&config.data, &command) {
        Ok(IntakeReply::Finished(outcome)) => Ok(Some(*outcome)),
        Ok(IntakeReply::CannotRead { file }) => {
            let file = file.display();
            writeln!(stderr(), "the running server cannot read {file}; running here instead")?;
            Ok(None)
        }
        Ok(IntakeReply::Refused { error }) => bail!(error),
        Err(AskError::NotRunning { .. }) => Ok(None),
        Err(err @ (AskError::Stranger { .. } | AskError::Unreachable { .. })) => Err(err.into()),
        Err(err @ AskError::NoReply { .. }) => Err(err).context(
            "the work may or may not have been done; run the command again, which skips what is done",
        ),
    }
}

/// Prints notes to standard error, and on a terminal a progress bar over the bytes of a file.
struct Terminal(ProgressBar);

impl Terminal {
    fn new() -> Terminal {
        let bar = if stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let template = "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Terminal(bar)
    }
}

impl Observer for Terminal {
    fn note(&self, note: &str) {
        self.0.suspend(|| {
            let _ = writeln!(stderr(), "{note}");
        });
    }

    /// indicatif draws at most 20 times a second.
    fn progress(&self, read: u64, size: u64) {
        if !self.0.is_hidden() {
            self.0.set_length(size);
            self.0.set_position(read);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
