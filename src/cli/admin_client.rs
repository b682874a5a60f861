//! What holds the users' data: a running server, or else the store in the data folder. Commands
//! work the same with both.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::accounts::admin::{AdminCommand, AdminReply, execute};
use crate::accounts::{Store, StoreError};
use crate::journal::JournalError;
use crate::vocab::clock::Clock;
use crate::vocab::plan::Plans;
use crate::workers::admin::{self, AskError};

/// How long to keep trying while a server that starts or stops holds the store but not the socket.
const HANDOVER_WAIT_MAX: Duration = Duration::from_secs(3);
const HANDOVER_PAUSE: Duration = Duration::from_millis(50);

/// Asks a running server, or opens the store of the data folder and asks that.
///
/// A server that starts has the store before it has the socket, and one that stops the other way
/// round: both are tried in turn for a while.
///
/// # Errors
/// Nobody could be asked. A refusal is a reply.
pub fn ask(
    command: &AdminCommand,
    data_dir: &Path,
    plans: Plans,
    clock: Clock,
) -> anyhow::Result<AdminReply> {
    let deadline = Instant::now() + HANDOVER_WAIT_MAX;
    loop {
        match admin::ask(data_dir, command) {
            Ok(reply) => return Ok(reply),
            Err(AskError::NobodyThere { .. }) => {}
            Err(err @ AskError::NoAnswer { .. }) => {
                return Err(err).context(
                    "the change may or may not have been made: `dropdex account list` shows it",
                );
            }
        }
        match Store::open(data_dir, plans.clone(), clock) {
            Ok(store) => return run_on(store, command.clone()),
            Err(StoreError::Journal(JournalError::Locked { .. })) if Instant::now() < deadline => {
                std::thread::sleep(HANDOVER_PAUSE);
            }
            Err(err @ StoreError::Journal(JournalError::Locked { .. })) => {
                return Err(err).context(format!(
                    "the data folder {} is in use, and its user does not answer on the admin \
                     socket; try again when it has started or stopped",
                    data_dir.display()
                ));
            }
            Err(err) => return Err(err.into()),
        }
    }
}

fn run_on(store: Store, command: AdminCommand) -> anyhow::Result<AdminReply> {
    let reply = execute(&store, command);
    store.close().context("the journal could not be closed in order")?;
    Ok(reply)
}

/// A reply that does not belong to the command.
pub fn another_answer() -> anyhow::Error {
    anyhow!("the server answered another question; is it of the same version?")
}
