//! The admin socket: a unix socket in the data folder, which only the owner of the folder can open.
//!
//! A client sends an [`AdminCommand`] as one line of JSON and receives an [`AdminReply`] as another.
//! A client may instead send an [`IntakeCommand`] with work on lists; it then receives an
//! [`IntakeReply`] when the work is done. [`AdminSocket`] is the server side, [`ask`] and
//! [`ask_for_intake`] the client side.

use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures_util::future::BoxFuture;
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accounts::admin::{AdminCommand, AdminReply, execute};
use crate::accounts::{Email, Store};
use crate::http::account_data;
use crate::intake::message;
use crate::intake::outcome::Outcome;
use crate::intake::queue::Queue;
use crate::intake::request::{Request, Site, Task};
use crate::telemetry::security::{self, SecurityEvent};
use crate::vocab::clock::Clock;

/// The socket's name in the data folder.
const SOCKET_FILE: &str = "admin.sock";
/// Maximum bytes of a command; enough for the paths of a thousand lists.
const COMMAND_BYTES_MAX: u64 = 256 << 10;
/// Maximum bytes of a reply. A list of 100,000 accounts takes about 30 MB.
const REPLY_BYTES_MAX: u64 = 256 << 20;
/// Length of the accept queue.
const BACKLOG: u32 = 128;
/// Maximum connections served at once; others wait.
const CONNECTIONS_MAX: usize = 16;
/// Time limit for a client to send its next command.
const COMMAND_WAIT_MAX: Duration = Duration::from_secs(10);
/// Time limit for a reply: several times the duration of a sync on a slow disk.
const REPLY_WAIT_MAX: Duration = Duration::from_secs(30);
/// Time limit for the reply to a command that reads or writes all data, which may be gigabytes.
const LONG_REPLY_WAIT_MAX: Duration = Duration::from_secs(600);

/// Work on lists, as sent to a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IntakeCommand {
    pub task: Task,
    /// The index folder of the command. The data folder and the retention are taken from the
    /// server.
    pub index: PathBuf,
    /// The clock of the command: `--today` may pin it.
    pub clock: Clock,
}

/// The reply to an [`IntakeCommand`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum IntakeReply {
    /// The work has ended.
    Finished(Box<Outcome>),
    /// The server cannot open this file, so the command has to do the work itself.
    CannotRead { file: PathBuf },
    /// The work was not started.
    Refused { error: String },
}

/// The store and the queue that execute commands.
#[derive(Clone)]
pub struct Backend {
    pub store: Store,
    pub queue: Queue,
    /// `None` if the server cannot send mail with links.
    pub inviter: Option<Inviter>,
}

/// Mails the link for setting the first password to the owner of an account.
pub type Inviter = Arc<dyn Fn(Email) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Returns the socket path of a server with this data folder.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    data_dir.join(SOCKET_FILE)
}

/// A listening socket. Dropping the socket removes its file.
pub struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl AdminSocket {
    /// Listens in `data_dir`. The caller must hold the store of that folder: an existing socket file
    /// is then left over from a killed server, and is replaced. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The folder is not writable, or its path is too long for a socket (about 100 bytes).
    pub fn bind(data_dir: &Path) -> anyhow::Result<AdminSocket> {
        let path = socket_path(data_dir);
        let listener = bind_for_owner(data_dir, &path).with_context(|| {
            format!(
                "cannot create the admin socket {}; the data folder must be writable and its path \
                 shorter than 90 bytes",
                path.display()
            )
        })?;
        Ok(AdminSocket { listener, path })
    }

    /// Serves commands until `stop` is done, then finishes those that it has read.
    pub async fn serve(self, backend: Backend, stop: impl Future<Output = ()>) {
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
                    let (backend, mut stopped) = (backend.clone(), stopped.clone());
                    connections.spawn(async move {
                        let _slot = slot;
                        serve_connection(connection, &backend, &mut stopped).await;
                    });
                }
                Err(err) => {
                    tracing::warn!(error = %err, "admin socket: cannot accept a connection");
                    // File descriptors have probably run out, so wait for connections to close.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        // `send` fails if no connection is open.
        let _ = stopping.send(true);
        while connections.join_next().await.is_some() {}
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), error = %err, "cannot remove the admin socket");
        }
    }
}

/// Binds a socket and moves it to `path`, replacing an existing file. On Linux, the file has the mode of
/// the socket from the moment of binding, so other users can never connect. A private folder would
/// protect the socket too, but it would need a block on a disk that may be full.
fn bind_for_owner(data_dir: &Path, path: &Path) -> io::Result<UnixListener> {
    let hidden = data_dir.join(format!(".a{:08x}", fastrand::u32(..)));
    let socket = UnixSocket::new_stream()?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    socket.bind(&hidden)?;
    let bound = socket.listen(BACKLOG).and_then(|listener| {
        fs::rename(&hidden, path)?;
        Ok(listener)
    });
    if bound.is_err() {
        // Only the first error is reported.
        let _ = fs::remove_file(&hidden);
    }
    bound
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
    backend: &Backend,
    stopped: &mut tokio::sync::watch::Receiver<bool>,
) {
    let (read, mut write) = connection.split();
    let mut read = tokio::io::BufReader::new(read);
    loop {
        let line = tokio::select! {
            // Stops only between commands: a command that has been read is executed and gets its
            // reply.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            line = timeout(COMMAND_WAIT_MAX, read_line(&mut read)) => line,
        };
        let reply = match line {
            Ok(Ok(line)) if !line.is_empty() => reply(backend, &line).await,
            // The client closed the connection, timed out or sent no valid line.
            _ => return,
        };
        let Ok(reply) = reply else { return };
        if write.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// Reads the next line; empty at the end of the stream. A line longer than [`COMMAND_BYTES_MAX`] is
/// truncated, and then fails to parse.
async fn read_line(read: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    read.take(COMMAND_BYTES_MAX).read_until(b'\n', &mut line).await?;
    Ok(line)
}

async fn reply(backend: &Backend, line: &[u8]) -> serde_json::Result<Vec<u8>> {
    // serde's error is not returned, because it may quote a value such as a password.
    if let Ok(command) = serde_json::from_slice(line) {
        return json_line(&execute_admin(backend, command).await);
    }
    if let Ok(command) = message::decode(line) {
        return message::encode(&run_intake(backend, command).await);
    }
    let error = "unknown command; is the server of the same version?".to_owned();
    json_line(&AdminReply::Refused { error })
}

fn json_line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

async fn execute_admin(backend: &Backend, command: AdminCommand) -> AdminReply {
    let refused = |error: String| AdminReply::Refused { error };
    let invited = match &command {
        AdminCommand::AddAccount { email, invite: true, .. } => Some(email.clone()),
        _ => None,
    };
    if invited.is_some() && backend.inviter.is_none() {
        return refused(
            "no account was added: an invitation is sent by mail, and [smtp] or public_url is not set".into(),
        );
    }
    let event = security_event(&command);
    let store = backend.store.clone();
    let done =
        tokio::task::spawn_blocking(move || execute(&store, command, account_data::pack)).await;
    let reply = done.unwrap_or_else(|_| {
        refused("the command panicked in the server; its log has the details".into())
    });
    if let AdminReply::Refused { .. } = reply {
        return reply;
    }
    if let Some((event, email, detail)) = event {
        security::record_with(event, email.as_str(), &detail);
    }
    let (Some(email), Some(inviter)) = (invited, &backend.inviter) else { return reply };
    match inviter(email.clone()).await {
        Ok(()) => {
            security::record(SecurityEvent::AccountInvited, email.as_str());
            reply
        }
        Err(err) => refused(format!(
            "the account for {email} was added, but the invitation was not sent: {err}; once mail works, \
             its owner gets a link from \"Forgot your password?\" on the login page"
        )),
    }
}

/// Returns the security event to log for an executed command, with the account and a detail.
fn security_event(command: &AdminCommand) -> Option<(SecurityEvent, Email, String)> {
    Some(match command {
        AdminCommand::AddAccount { email, plan, .. } => {
            (SecurityEvent::AccountAdded, email.clone(), format!("plan {plan}"))
        }
        AdminCommand::SetPlan { email, plan } => {
            (SecurityEvent::PlanSet, email.clone(), format!("plan {plan}"))
        }
        AdminCommand::IssueKey { email, .. } => {
            (SecurityEvent::KeyMade, email.clone(), String::new())
        }
        AdminCommand::Disable { email } => {
            (SecurityEvent::AccountDisabled, email.clone(), String::new())
        }
        AdminCommand::Delete { email } => {
            (SecurityEvent::AccountDeleted, email.clone(), String::new())
        }
        AdminCommand::RestoreAccount { email } => {
            (SecurityEvent::AccountRestored, email.clone(), String::new())
        }
        AdminCommand::ExportAccount { email } => {
            (SecurityEvent::AccountExported, email.clone(), String::new())
        }
        AdminCommand::SetPassword { email, .. } => {
            (SecurityEvent::PasswordChanged, email.clone(), String::new())
        }
        _ => return None,
    })
}

async fn run_intake(Backend { store, queue, .. }: &Backend, command: IntakeCommand) -> IntakeReply {
    let IntakeCommand { task, index, clock } = command;
    if !store.leads() {
        let error = match store.lead().node {
            Some(node) => {
                format!("the node `{node}` does the work on lists; run the command there")
            }
            None => {
                "no node of the cluster leads at the moment; try again in some seconds".to_owned()
            }
        };
        return IntakeReply::Refused { error };
    }
    if let Some(file) = first_unreadable(task.files()).await {
        return IntakeReply::CannotRead { file };
    }
    // A command on the same machine has no better clock than the server, unless `--today` is given.
    let clock = if clock.pinned().is_some() { clock } else { queue.site().clock };
    let site = Site { index, clock, ..queue.site().clone() };
    match queue.run_request(Request { site, task }).await {
        Ok(outcome) => IntakeReply::Finished(Box::new(outcome)),
        Err(err) => IntakeReply::Refused { error: err.to_string() },
    }
}

/// Returns the first file that the server cannot open: a service may have access to fewer files
/// than an operator.
async fn first_unreadable(files: Vec<PathBuf>) -> Option<PathBuf> {
    let find = move || files.into_iter().find(|file| fs::File::open(file).is_err());
    tokio::task::spawn_blocking(find).await.ok().flatten()
}

/// Reasons why a command got no reply.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The socket does not exist, or was left behind by a killed server.
    #[error("no server listens on {}", path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
    },
    /// A process of another user is listening, so no request was sent.
    #[error(
        "{} belongs to a process of the user {uid}, who is neither you, nor root, nor the owner of the \
         folder; nothing was sent to it. If no server of yours runs there, remove the file",
        path.display()
    )]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// The user of the process.
        uid: u32,
    },
    /// No connection could be made, so no request was sent.
    #[error(
        "cannot connect to the server on {}: {source}; run this as the user of the service, or as root",
        path.display()
    )]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The connection failed. The command may have been executed.
    #[error("no valid reply from the server on {}: {reason:#}", path.display())]
    NoReply {
        /// The socket.
        path: PathBuf,
        /// The cause.
        reason: anyhow::Error,
    },
}

/// Sends a command to the server that uses this data folder. Blocks for at most half a minute, or ten
/// minutes for commands that read or write all data.
///
/// # Errors
/// [`AskError`].
pub fn ask(data_dir: &Path, command: &AdminCommand) -> Result<AdminReply, AskError> {
    exchange(
        data_dir,
        Some(reply_wait_max(command)),
        || Ok(json_line(command)?),
        |reply| Ok(serde_json::from_slice(reply)?),
    )
}

/// [`ask`] for work on lists. Blocks until the work is done, however long it takes.
///
/// # Errors
/// [`AskError`].
pub fn ask_for_intake(data_dir: &Path, command: &IntakeCommand) -> Result<IntakeReply, AskError> {
    exchange(data_dir, None, || Ok(message::encode(command)?), message::decode)
}

fn exchange<R>(
    data_dir: &Path,
    wait_max: Option<Duration>,
    encode: impl FnOnce() -> anyhow::Result<Vec<u8>>,
    decode: impl FnOnce(&[u8]) -> anyhow::Result<R>,
) -> Result<R, AskError> {
    let path = socket_path(data_dir);
    let no_reply = |reason| AskError::NoReply { path: path.clone(), reason };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|err| no_reply(err.into()))?;
    let reply = runtime.block_on(async {
        let connection = match UnixStream::connect(&path).await {
            Ok(connection) => connection,
            Err(err) if is_not_running(&err) => {
                return Err(AskError::NotRunning { path: path.clone() });
            }
            Err(source) => return Err(AskError::Unreachable { path: path.clone(), source }),
        };
        let uid = connection.peer_cred().map_err(|err| no_reply(err.into()))?.uid();
        if !may_serve(uid, data_dir) {
            return Err(AskError::Stranger { path: path.clone(), uid });
        }
        let line = encode().map_err(no_reply)?;
        send(connection, &line, wait_max).await.map_err(no_reply)
    })?;
    decode(&reply).context("unexpected reply; is the server of the same version?").map_err(no_reply)
}

/// Whether a process of this user may be the server of a data folder. This is checked because
/// commands contain passwords.
fn may_serve(uid: u32, data_dir: &Path) -> bool {
    let owner = fs::metadata(data_dir).map(|folder| folder.uid());
    uid == 0 || uid == rustix::process::geteuid().as_raw() || owner.is_ok_and(|owner| owner == uid)
}

fn is_not_running(err: &io::Error) -> bool {
    // A path that is too long for a socket results in `InvalidInput`; no server can have bound it.
    let kinds =
        [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused, io::ErrorKind::InvalidInput];
    kinds.contains(&err.kind())
}

fn reply_wait_max(command: &AdminCommand) -> Duration {
    match command {
        AdminCommand::Backup { .. } | AdminCommand::Snapshot | AdminCommand::InspectJournal => {
            LONG_REPLY_WAIT_MAX
        }
        _ => REPLY_WAIT_MAX,
    }
}

/// Sends a line and returns the response line.
async fn send(
    mut connection: UnixStream,
    line: &[u8],
    wait_max: Option<Duration>,
) -> anyhow::Result<Vec<u8>> {
    if line.len() as u64 > COMMAND_BYTES_MAX {
        return Err(anyhow!("the command is too long; give fewer files at once"));
    }
    let late = "it did not answer in time";
    timeout(REPLY_WAIT_MAX, connection.write_all(line)).await.context(late)??;
    let mut reply = Vec::new();
    let mut read = tokio::io::BufReader::new(connection.take(REPLY_BYTES_MAX));
    let read = read.read_until(b'\n', &mut reply);
    match wait_max {
        Some(wait_max) => timeout(wait_max, read).await.context(late)??,
        None => read.await?,
    };
    if reply.is_empty() {
        return Err(anyhow!("it closed the connection"));
    }
    Ok(reply)
}
