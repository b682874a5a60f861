//! The operator's door: a unix socket in the data folder, for the owner of the folder alone.
//!
//! One JSON line in is an [`AdminCommand`], one JSON line out its [`AdminReply`]. [`AdminSocket`]
//! serves them beside the HTTP server, which holds the store; [`ask`] is the other end. A line may also
//! be a [`JobCommand`], work on lists that the server has done for whoever asks ([`ask_for_job`]).

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::future::Future;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accounts::Store;
use crate::accounts::admin::{AdminCommand, AdminReply, execute};
use crate::vocab::day::Day;
use crate::workers::jobs::{Finished, Jobs, Places};

/// The socket's name in the data folder.
const SOCKET_FILE: &str = "admin.sock";
/// Bytes of a command at most: the paths of a thousand lists fit.
const COMMAND_BYTES_MAX: u64 = 256 << 10;
/// Bytes of a reply at most: a list of 100,000 accounts takes some 30 MB.
const REPLY_BYTES_MAX: u64 = 256 << 20;
/// Connections served at once; more wait.
const CONNECTIONS_MAX: usize = 16;
/// How long a connection may take to send its next command.
const COMMAND_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a client waits for a reply: a sync on a slow disk, with room.
const REPLY_WAIT_MAX: Duration = Duration::from_secs(30);
/// As [`REPLY_WAIT_MAX`] for commands that read or write everything there is: some gigabytes.
const LONG_REPLY_WAIT_MAX: Duration = Duration::from_secs(600);

/// Work on lists, for [`Jobs`]: what a command line says, after the options for all commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum JobCommand {
    /// `dropdex ingest` or `dropdex rebuild`.
    Job {
        work: Work,
        /// Options; the files come after them.
        arguments: Vec<String>,
        files: Vec<PathBuf>,
        index: PathBuf,
        today: Option<Day>,
    },
}

/// The commands that a server runs for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Ingest,
    Rebuild,
}

impl Work {
    /// The command, done by whom it is told to.
    fn command(self) -> &'static [&'static str] {
        match self {
            Work::Ingest => &["ingest", "--here"],
            Work::Rebuild => &["rebuild", "--here"],
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum JobReply {
    /// It ran to its end: what it printed, and its exit code, if it was not a signal that ended it.
    Finished { code: Option<i32>, stdout: String, stderr: String },
    /// The server may not read this file, or sees none: who asks has to do it.
    CannotRead { file: PathBuf },
    /// It did not, for this reason.
    Refused { error: String },
}

/// What comes in.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Store(AdminCommand),
    Job(JobCommand),
}

/// What goes out.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Store(AdminReply),
    Job(JobReply),
}

/// What commands are carried out on.
#[derive(Clone)]
pub struct Serving {
    pub store: Store,
    pub jobs: Jobs,
    /// Where jobs find things, unless they say otherwise.
    pub places: Places,
}

/// Where a server with this data folder listens.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    data_dir.join(SOCKET_FILE)
}

/// A listening socket. Its file goes when this is dropped.
pub struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl AdminSocket {
    /// Listens in `data_dir`. Whoever calls holds the store of that folder, so a socket file that is
    /// there was left by a server that was killed, and is replaced. Call inside a tokio runtime.
    ///
    /// # Errors
    /// The folder cannot be written, or its path is too long for a socket (some 100 bytes).
    pub fn bind(data_dir: &Path) -> anyhow::Result<AdminSocket> {
        let path = socket_path(data_dir);
        let listener = bind_for_owner_alone(data_dir, &path).with_context(|| {
            format!(
                "cannot make the admin socket {}; the data folder must be writable and its path \
                 shorter than some 90 bytes",
                path.display()
            )
        })?;
        Ok(AdminSocket { listener, path })
    }

    /// Serves commands until `stop` is done; commands in hand are finished.
    pub async fn serve(self, serving: Serving, stop: impl Future<Output = ()>) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&self.listener, &slots) => accepted,
            };
            match accepted {
                Ok((connection, slot)) => {
                    let (serving, mut stopped) = (serving.clone(), stopped.clone());
                    connections.spawn(async move {
                        let _slot = slot;
                        serve_connection(connection, &serving, &mut stopped).await;
                    });
                }
                Err(err) => {
                    tracing::warn!(error = %err, "admin socket: cannot accept a connection");
                    // Out of file handles, most likely: others must end first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        // Nobody is left to be told only when all connections have ended.
        let _ = stopping.send(true);
        while connections.join_next().await.is_some() {}
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), error = %err, "cannot remove the socket");
        }
    }
}

/// Binds in a folder only the owner can enter and moves the socket out once its mode is set, so
/// that at no time anybody else could connect.
fn bind_for_owner_alone(data_dir: &Path, path: &Path) -> io::Result<UnixListener> {
    let private = tempfile::Builder::new()
        .prefix(".a")
        .rand_bytes(4)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(data_dir)?;
    let hidden = private.path().join("s");
    let listener = UnixListener::bind(&hidden)?;
    fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
    fs::rename(&hidden, path)?;
    Ok(listener)
}

async fn accept(
    listener: &UnixListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(UnixStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (connection, _) = listener.accept().await?;
    Ok((connection, slot))
}

async fn serve_connection(
    mut connection: UnixStream,
    serving: &Serving,
    stopped: &mut tokio::sync::watch::Receiver<bool>,
) {
    let (read, mut write) = connection.split();
    let mut read = tokio::io::BufReader::new(read);
    loop {
        let line = tokio::select! {
            // Only between commands: one that was read is carried out and answered.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            line = timeout(COMMAND_WAIT_MAX, read_line(&mut read)) => line,
        };
        let reply = match line {
            Ok(Ok(line)) if !line.is_empty() => answer(serving, &line).await,
            // The client has gone, is silent, or sends what is no line.
            _ => return,
        };
        let Ok(mut reply) = serde_json::to_vec(&reply) else { return };
        reply.push(b'\n');
        if write.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// The next line, at most [`COMMAND_BYTES_MAX`] long; empty at the end. A longer one comes cut, and
/// is then no command.
async fn read_line(read: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    read.take(COMMAND_BYTES_MAX).read_until(b'\n', &mut line).await?;
    Ok(line)
}

async fn answer(serving: &Serving, line: &[u8]) -> Answer {
    // serde's message names the place and may name a value: a password is never echoed.
    match serde_json::from_slice(line) {
        Ok(Line::Store(command)) => Answer::Store(carry_out(&serving.store, command).await),
        Ok(Line::Job(command)) => Answer::Job(run_job(serving, command).await),
        Err(_) => {
            let error = "this is not a command this server knows; is it of the same version?";
            Answer::Store(AdminReply::Refused { error: error.into() })
        }
    }
}

/// The first file that cannot be opened here: a service may see less of the disk than an operator.
async fn first_unreadable(files: &[PathBuf]) -> Option<PathBuf> {
    let files = files.to_owned();
    let look = move || files.into_iter().find(|file| fs::File::open(file).is_err());
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

async fn carry_out(store: &Store, command: AdminCommand) -> AdminReply {
    let store = store.clone();
    let done = tokio::task::spawn_blocking(move || execute(&store, command)).await;
    done.unwrap_or_else(|_| AdminReply::Refused {
        error: "the command failed in the server".into(),
    })
}

async fn run_job(serving: &Serving, command: JobCommand) -> JobReply {
    let JobCommand::Job { work, arguments, files, index, today } = command;
    if let Some(file) = first_unreadable(&files).await {
        return JobReply::CannotRead { file };
    }
    let places = Places { index, today, ..serving.places.clone() };
    let own = work.command().iter().map(OsString::from);
    let options = own.chain(arguments.into_iter().map(OsString::from));
    let files = files.into_iter().map(OsString::from);
    let all = options.chain(["--".into()]).chain(files).collect();
    match serving.jobs.run(&places, all).await {
        Ok(Finished { code, stdout, stderr }) => JobReply::Finished { code, stdout, stderr },
        Err(err) => JobReply::Refused { error: err.to_string() },
    }
}

/// Why a running server gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is none: no socket, or one a killed server left behind.
    #[error("no server listens on {}", path.display())]
    NobodyThere {
        /// The socket.
        path: PathBuf,
    },
    /// There is one and it did not answer. The command may have been carried out.
    #[error("the server on {} gave no answer: {reason:#}", path.display())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        reason: anyhow::Error,
    },
}

/// Asks the server that runs with this data folder. Blocks, for half a minute at most, or ten minutes
/// where all data is read or written.
///
/// # Errors
/// [`AskError`].
pub fn ask(data_dir: &Path, command: &AdminCommand) -> Result<AdminReply, AskError> {
    ask_within(data_dir, command, Some(reply_wait_max(command)))
}

/// As [`ask`], for work on lists. Blocks until it is done, however long it takes.
///
/// # Errors
/// [`AskError`].
pub fn ask_for_job(data_dir: &Path, command: &JobCommand) -> Result<JobReply, AskError> {
    ask_within(data_dir, command, None)
}

fn ask_within<R: DeserializeOwned>(
    data_dir: &Path,
    command: &impl Serialize,
    wait_max: Option<Duration>,
) -> Result<R, AskError> {
    let path = socket_path(data_dir);
    let connection = match StdUnixStream::connect(&path) {
        Ok(connection) => connection,
        Err(err) if is_nobody_there(&err) => return Err(AskError::NobodyThere { path }),
        Err(err) => return Err(AskError::NoAnswer { path, reason: err.into() }),
    };
    converse(&connection, command, wait_max).map_err(|reason| AskError::NoAnswer { path, reason })
}

fn is_nobody_there(err: &io::Error) -> bool {
    // A path that is no socket path, being too long, is `InvalidInput`: no server could bind it.
    let kinds =
        [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused, io::ErrorKind::InvalidInput];
    kinds.contains(&err.kind())
}

fn reply_wait_max(command: &AdminCommand) -> Duration {
    match command {
        AdminCommand::Backup { .. } | AdminCommand::Snapshot | AdminCommand::InspectJournal => {
            LONG_REPLY_WAIT_MAX
        }
        AdminCommand::AddAccount { .. }
        | AdminCommand::ListAccounts
        | AdminCommand::SetPlan { .. }
        | AdminCommand::IssueKey { .. }
        | AdminCommand::SetPassword { .. }
        | AdminCommand::Disable { .. } => REPLY_WAIT_MAX,
    }
}

fn converse<R: DeserializeOwned>(
    mut connection: &StdUnixStream,
    command: &impl Serialize,
    wait_max: Option<Duration>,
) -> anyhow::Result<R> {
    connection.set_read_timeout(wait_max)?;
    connection.set_write_timeout(Some(REPLY_WAIT_MAX))?;
    let mut line = serde_json::to_vec(command)?;
    line.push(b'\n');
    if line.len() as u64 > COMMAND_BYTES_MAX {
        return Err(anyhow!("the command is too long for it; give fewer files at once"));
    }
    connection.write_all(&line)?;
    let mut reply = Vec::new();
    let read = io::Read::take(connection, REPLY_BYTES_MAX);
    BufReader::new(read).read_until(b'\n', &mut reply)?;
    if reply.is_empty() {
        return Err(anyhow!("it hung up"));
    }
    serde_json::from_slice(&reply)
        .context("it answered with something else; is it of this version?")
}
