//! Operator commands, as one serialisable enum. A running server holds the store, so the CLI sends
//! it commands over the admin socket; only without a server does the CLI run them itself.

use std::io;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::api_keys::{self, NewKey};
use super::data::account::Account;
use super::decide::Decided;
use super::email::Email;
use super::error::WriteError;
use super::event::{AddedBy, Event, Transaction};
use super::keys::{ApiKey, IssuedKey};
use super::password::{Password, PasswordError, PasswordHash};
use super::profile::AccountCopy;
use super::store::locks::AccountLock;
use super::store::shared::Basis;
use super::store::snapshotter::SnapshotError;
use super::store::state::Counts;
use super::store::{ROWS_MAX, Store};
use crate::journal::{
    AppendError, Inspection, JournalError, SegmentFacts, SnapshotFacts, SnapshotReport,
};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;

/// An operator command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminCommand {
    /// Add an account, with a password if its owner is to log in.
    AddAccount {
        email: Email,
        plan: Plan,
        password: Option<Secret>,
        /// Mail a link that sets a password. Only a running server can send the mail.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        invite: bool,
    },
    ListAccounts,
    SetPlan {
        email: Email,
        plan: Plan,
    },
    /// Replace the first API key of an account, or add another.
    IssueKey {
        email: Email,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<NewKey>,
    },
    /// Disable an account permanently.
    Disable {
        email: Email,
    },
    SetPassword {
        email: Email,
        password: Secret,
    },
    /// Disable an account, and erase it after some days.
    Delete {
        email: Email,
    },
    /// Keep an account that was to be erased.
    RestoreAccount {
        email: Email,
    },
    /// Write everything of an account to an archive.
    ExportAccount {
        email: Email,
    },
    /// Reset today's allowances of an account, or of all accounts if no address is given.
    ResetUsage {
        email: Option<Email>,
    },
    /// Write everything to a new file.
    Backup {
        /// An absolute path, since the server has its own working directory.
        path: PathBuf,
    },
    /// Write a snapshot into the journal's folder.
    Snapshot,
    /// Verify the journal's files and report their content.
    InspectJournal,
    /// Request from all nodes the digest of their state after the same record.
    Checkpoint,
    /// Convert the copy of a shared log to the data of a single node.
    Leave,
}

/// The result of an [`AdminCommand`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum AdminReply {
    Added {
        account: AccountId,
    },
    /// Accounts, in order of their addition.
    Accounts {
        accounts: Vec<AccountSummary>,
    },
    /// Number of accounts whose allowances were reset.
    Reset {
        accounts: usize,
    },
    /// An account will be erased at this time.
    Leaving {
        at: UnixMs,
    },
    /// The zip archive of an account, in base64.
    Exported {
        zip: String,
    },
    /// The command succeeded, or nothing had to change.
    Done,
    Key {
        /// The key, which is shown only once.
        key: Secret,
        /// Whether the key replaced an older one.
        replaced: bool,
    },
    /// A snapshot or backup is durable.
    Saved(Saved),
    /// The journal is sound.
    Journal(JournalFacts),
    /// A checkpoint is applied on this node.
    Checkpoint {
        id: u64,
    },
    /// Nothing was changed.
    Refused {
        error: String,
    },
}

/// An account as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSummary {
    pub id: AccountId,
    pub email: Email,
    pub plan: Plan,
    pub disabled: bool,
    /// When it is erased; until then it is disabled too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_at: Option<UnixMs>,
    /// UTC day on which it was added.
    pub created: Day,
    /// The last four characters of its newest key; `None` without one.
    pub key_last4: Option<String>,
    pub has_password: bool,
    #[serde(default = "verified")]
    pub email_verified: bool,
    /// JSON requests allowed today.
    pub requests_today: u32,
    /// Exports allowed today.
    pub exports_today: u32,
}

/// Older servers omit `email_verified`, because all their addresses are verified.
fn verified() -> bool {
    true
}

/// A snapshot or backup. The counts are taken just after the file is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub path: PathBuf,
    /// The last record that it contains.
    pub seq: u64,
    pub bytes: u64,
    /// 64 hexadecimal digits.
    pub state_digest: String,
    pub counts: Counts,
}

/// A journal as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalFacts {
    /// The last durable record.
    pub seq: u64,
    /// Records in the files.
    pub records: u64,
    /// How many times the journal has been opened.
    pub epoch: u32,
    /// 32 hexadecimal digits.
    pub store_uuid: Option<String>,
    /// The last record that the commit mark covers.
    pub mark: Option<u64>,
    /// Segments, first to last.
    pub segments: Vec<SegmentFacts>,
    /// Snapshots, oldest first.
    pub snapshots: Vec<SnapshotSummary>,
    /// Bytes of log that the next start reads.
    pub log_bytes: u64,
    /// 64 hexadecimal digits.
    pub state_digest: String,
    pub counts: Counts,
}

/// A snapshot in a journal's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSummary {
    /// The last record that it contains.
    pub seq: u64,
    pub bytes: u64,
    /// `None` if it is damaged.
    pub state_digest: Option<String>,
    /// Why the journal cannot be read; `None` if it is undamaged.
    pub damage: Option<String>,
}

/// Reason why an operator's change of an account failed.
#[derive(Debug, Error)]
pub enum CommandError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Journal(#[from] AppendError),
    #[error("the system's random source failed: {0}")]
    Random(getrandom::Error),
}

/// Reason why a command conflicts with the existing accounts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("an account for {0} already exists")]
    EmailTaken(Email),
    #[error("there is no account for {0}; `dropdex account list` shows all")]
    NoSuchAccount(Email),
    /// A disabled account cannot get a key or a password.
    #[error("the account for {0} is disabled permanently; add another with another address")]
    Disabled(Email),
    #[error(
        "the account for {0} is to be erased; keep it with `dropdex account restore {0}` first"
    )]
    Leaving(Email),
    #[error(
        "{0} owns this server, and no other account can take its place; stop the server and delete its data folder instead"
    )]
    Owner(Email),
    #[error("the account for {0} is not to be erased, so there is nothing to restore")]
    NotLeaving(Email),
    /// The key cannot be added.
    #[error("no key was made: {0}")]
    Key(String),
    #[error(
        "the data of all accounts has reached its limit; raise accounts.max_data_mb in the settings"
    )]
    Full,
}

#[derive(Debug, Error)]
enum AdminError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the archive cannot be written: {0}")]
    Pack(io::Error),
    #[error("this server is a node of a cluster: stop it, then run this again")]
    InCluster,
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
}

/// Function that writes everything of an account to a zip archive. Its rows are those of the API, which this room does
/// not know.
pub type Pack = fn(&Store, &AccountCopy, DateTime<Utc>) -> io::Result<Vec<u8>>;

/// Runs a command. Blocks until the effect is durable, so async code must not call it.
pub fn execute(store: &Store, command: AdminCommand, pack: Pack) -> AdminReply {
    attempt(store, command, pack)
        .unwrap_or_else(|err| AdminReply::Refused { error: err.to_string() })
}

fn attempt(store: &Store, command: AdminCommand, pack: Pack) -> Result<AdminReply, AdminError> {
    let done = |()| AdminReply::Done;
    Ok(match command {
        AdminCommand::AddAccount { email, plan, password, invite: _ } => {
            let chosen = |password| Password::chosen(password, Some(&email));
            let password = password.map(chosen).transpose()?;
            let hash = password.map(|password| password.hash()).transpose()?;
            AdminReply::Added { account: store.add_account(&email, plan, hash)? }
        }
        AdminCommand::ListAccounts => AdminReply::Accounts { accounts: store.list() },
        AdminCommand::SetPlan { email, plan } => store.set_plan(&email, plan).map(done)?,
        AdminCommand::IssueKey { email, new } => {
            let IssuedKey { key, replaced } = match new {
                None => store.issue_key(&email)?,
                Some(new) => store.add_key(&email, new)?,
            };
            AdminReply::Key { key: Secret::new(key.reveal().to_owned()), replaced }
        }
        AdminCommand::Disable { email } => store.disable(&email).map(done)?,
        AdminCommand::SetPassword { email, password } => {
            let password = Password::chosen(password, Some(&email))?;
            store.set_password(&email, password.hash()?).map(done)?
        }
        AdminCommand::Delete { email } => {
            AdminReply::Leaving { at: store.ask_erasure(&email, store.0.clock.now())? }
        }
        AdminCommand::RestoreAccount { email } => store.restore_account(&email).map(done)?,
        AdminCommand::ExportAccount { email } => {
            let now = store.0.clock.now();
            let copy = store.copy_of(&email, now).ok_or(Refusal::NoSuchAccount(email));
            let copy = copy.map_err(CommandError::from)?;
            let archive = pack(store, &copy, now).map_err(AdminError::Pack)?;
            AdminReply::Exported { zip: STANDARD.encode(archive) }
        }
        AdminCommand::ResetUsage { email } => {
            AdminReply::Reset { accounts: store.reset_usage(email.as_ref())? }
        }
        AdminCommand::Backup { path } if !path.is_absolute() => {
            return Err(AdminError::Relative(path));
        }
        AdminCommand::Backup { path } => saved(store, store.backup(&path)?),
        AdminCommand::Checkpoint => AdminReply::Checkpoint { id: store.add_checkpoint()? },
        AdminCommand::Leave if store.shared_log().is_some() => return Err(AdminError::InCluster),
        AdminCommand::Leave => store.leave_cluster().map(done)?,
        AdminCommand::Snapshot => saved(store, store.snapshot_now()?),
        AdminCommand::InspectJournal => {
            let found = store.inspect_journal()?;
            let log_bytes = store.log_bytes_since_snapshot();
            let (digest, counts) = (store.state_digest(), store.counts());
            AdminReply::Journal(JournalFacts::new(found, log_bytes, digest, counts))
        }
    })
}

fn saved(store: &Store, report: SnapshotReport) -> AdminReply {
    let SnapshotReport { path, seq, bytes, state_digest } = report;
    let state_digest = hex::encode(state_digest);
    AdminReply::Saved(Saved { path, seq, bytes, state_digest, counts: store.counts() })
}

impl Store {
    /// Adds an account. The effect is durable when this returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn add_account(
        &self,
        email: &Email,
        plan: Plan,
        password: Option<PasswordHash>,
    ) -> Result<AccountId, CommandError> {
        let lock = self.0.locks.lock_blocking(email, &self.0.shared)?;
        if self.state().by_email(email).is_some() {
            return Err(Refusal::EmailTaken(email.clone()).into());
        }
        if self.is_full() {
            return Err(Refusal::Full.into());
        }
        let (account, email, on) = (self.next_account_id(), email.clone(), self.0.clock.today());
        let by = AddedBy::Operator;
        let added = Event::AccountAdded { account, email, plan, on, password, by };
        self.append_blocking(vec![added], lock)?;
        Ok(account)
    }

    /// Changes the plan of an account, from its next request on. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn set_plan(&self, email: &Email, plan: Plan) -> Result<(), CommandError> {
        self.command(email, |account| {
            let id = account.id;
            let set = Event::AccountChanged {
                account: id,
                plan: Some(plan),
                password: None,
                disabled: false,
            };
            Ok(if account.plan == plan { Vec::new() } else { vec![set] })
        })
    }

    /// Creates the first key of an account, or replaces it. The old key stops working at once;
    /// today's usage is kept. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn issue_key(&self, email: &Email) -> Result<IssuedKey, CommandError> {
        let key = ApiKey::generate().map_err(CommandError::Random)?;
        let now = self.0.clock.now();
        let mut replaced = false;
        self.command(email, |account| {
            let decided = api_keys::issue_first(account, key.stored(), now);
            let Decided { events, value } = decided.map_err(|err| refused(account, err))?;
            replaced = value;
            Ok(events)
        })?;
        Ok(IssuedKey { key, replaced })
    }

    /// Adds a key to an account. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn add_key(&self, email: &Email, new: NewKey) -> Result<IssuedKey, CommandError> {
        let key = ApiKey::generate().map_err(CommandError::Random)?;
        let now = self.0.clock.now();
        self.command(email, |account| {
            let decided = api_keys::make(account, new, key.stored(), now);
            Ok(decided.map_err(|err| refused(account, err))?.events)
        })?;
        Ok(IssuedKey { key, replaced: false })
    }

    /// Disables an account: its key stops working at once, and its sessions end. Durable when it
    /// returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn disable(&self, email: &Email) -> Result<(), CommandError> {
        self.command(email, |account| {
            let disabled = Event::AccountChanged {
                account: account.id,
                plan: None,
                password: None,
                disabled: true,
            };
            Ok(if account.disabled { Vec::new() } else { vec![disabled] })
        })
    }

    /// Sets the password of an account and ends all its sessions. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn set_password(&self, email: &Email, password: PasswordHash) -> Result<(), CommandError> {
        self.command(email, |account| {
            check_enabled(account)?;
            Ok(vec![Event::password(account.id, password)])
        })
    }

    /// Resets today's allowances of an account, or of all. Durable when it returns. Returns the
    /// number of accounts.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn reset_usage(&self, email: Option<&Email>) -> Result<usize, CommandError> {
        let day = self.day(self.0.clock.now());
        let accounts: Vec<_> = match email {
            None => self.state().accounts.values().map(|account| account.id).collect(),
            Some(email) => {
                let account = self.state().by_email(email).map(|account| account.id);
                vec![account.ok_or_else(|| Refusal::NoSuchAccount(email.clone()))?]
            }
        };
        self.0.shared.barrier_blocking()?;
        // If another node reserved concurrently, the decision is repeated.
        for some in accounts.chunks(ROWS_MAX) {
            let reset =
                |&account| Event::UsageNoted { account, day, requests: 0, exports: 0, reset: true };
            let reset = some.iter().map(reset);
            self.0.shared.append_blocking(Transaction(reset.collect()), Basis::ANY, || {})?;
        }
        Ok(accounts.len())
    }

    /// All accounts, in order of their addition.
    pub fn list(&self) -> Vec<AccountSummary> {
        let today = self.day(self.0.clock.now());
        let summary = |account| AccountSummary::new(account, today);
        let accounts = self.state().accounts.clone();
        accounts.values().map(|it| summary(it)).collect()
    }

    /// Decides on the account of `email` and makes the events durable, if any.
    pub(super) fn command(
        &self,
        email: &Email,
        decide: impl FnOnce(&Account) -> Result<Vec<Event>, Refusal>,
    ) -> Result<(), CommandError> {
        let unknown = || Refusal::NoSuchAccount(email.clone());
        let id = self.state().by_email(email).map(|account| account.id).ok_or_else(unknown)?;
        let lock = self.0.locks.lock_blocking(&id, &self.0.shared)?;
        let events = decide(self.state().account(id).ok_or_else(unknown)?)?;
        if events.is_empty() { Ok(()) } else { self.append_blocking(events, lock) }
    }

    fn append_blocking(&self, events: Vec<Event>, lock: AccountLock) -> Result<(), CommandError> {
        let transaction = Transaction(events);
        let (since, after) = (lock.since, self.after(&transaction, Some(lock)));
        self.0.shared.append_blocking(transaction, Basis::owner(since), after)?;
        self.0.snapshotter.consider(&self.0.shared);
        Ok(())
    }
}

/// Converts the refusal of a key to an error for operators.
fn refused(account: &Account, err: WriteError) -> Refusal {
    match err {
        WriteError::NotFound if account.erase_at.is_some() => {
            Refusal::Leaving(account.email.clone())
        }
        WriteError::NotFound => Refusal::Disabled(account.email.clone()),
        WriteError::Invalid { what, .. } => Refusal::Key(format!("the name {what}")),
        err => Refusal::Key(err.to_string()),
    }
}

fn check_enabled(account: &Account) -> Result<(), Refusal> {
    match account.erase_at {
        Some(_) => Err(Refusal::Leaving(account.email.clone())),
        None if account.disabled => Err(Refusal::Disabled(account.email.clone())),
        None => Ok(()),
    }
}

impl AccountSummary {
    fn new(account: &Account, today: Day) -> AccountSummary {
        let used = account.usage_on(today);
        AccountSummary {
            id: account.id,
            email: account.email.clone(),
            plan: account.plan,
            disabled: account.disabled,
            erase_at: account.erase_at,
            created: account.created,
            key_last4: account.access.keys.iter().next_back().map(|key| key.key.last4()),
            has_password: account.password.is_some(),
            email_verified: account.access.is_verified(),
            requests_today: used.requests,
            exports_today: used.exports,
        }
    }
}

impl JournalFacts {
    /// Returns the results of an inspection, together with the state and the number of log bytes
    /// that the next start reads.
    pub(super) fn new(
        found: Inspection,
        log_bytes: u64,
        state_digest: [u8; 32],
        counts: Counts,
    ) -> JournalFacts {
        JournalFacts {
            seq: found.recovery.last_seq,
            records: found.recovery.records,
            epoch: found.recovery.epoch,
            store_uuid: found.store_uuid.map(hex::encode),
            mark: found.recovery.mark,
            segments: found.segments,
            snapshots: found.snapshots.into_iter().map(SnapshotSummary::from).collect(),
            log_bytes,
            state_digest: hex::encode(state_digest),
            counts,
        }
    }
}

impl From<SnapshotFacts> for SnapshotSummary {
    fn from(facts: SnapshotFacts) -> SnapshotSummary {
        let SnapshotFacts { seq, bytes, state_digest, .. } = facts;
        let (state_digest, damage) = match state_digest {
            Ok(digest) => (Some(hex::encode(digest)), None),
            Err(damage) => (None, Some(damage)),
        };
        SnapshotSummary { seq, bytes, state_digest, damage }
    }
}
