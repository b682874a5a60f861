//! What an operator can ask of a store, in a form that crosses from one process to another: a
//! running server holds the store, and `dropdex account` must work all the same.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::email::Email;
use super::password::{Password, PasswordError};
use super::secret::Secret;
use super::snapshotter::SnapshotError;
use super::state::Counts;
use super::store::{AccountSummary, CommandError, Store};
use crate::journal::{Inspection, JournalError, SegmentFacts, SnapshotFacts, SnapshotReport};
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminCommand {
    /// Add an account.
    AddAccount {
        /// Its address.
        email: Email,
        /// What it pays for.
        plan: Plan,
        /// For a log-in, where one is wanted.
        password: Option<Secret>,
    },
    /// List all accounts.
    ListAccounts,
    /// Let an account pay for another plan.
    SetPlan {
        /// Whose.
        email: Email,
        /// What it pays for from now on.
        plan: Plan,
    },
    /// Give an account a new key.
    IssueKey {
        /// Whose.
        email: Email,
    },
    /// Shut an account.
    Disable {
        /// Which.
        email: Email,
    },
    /// Give an account another password.
    SetPassword {
        /// Whose.
        email: Email,
        /// The new one.
        password: Secret,
    },
    /// Write everything to a file of its own.
    Backup {
        /// The file, which must not be there yet: an absolute path, since the server has a folder of
        /// its own.
        path: PathBuf,
    },
    /// Write a snapshot into the journal's folder, so that the next start is quick.
    Snapshot,
    /// Say what the journal holds, for which all of its files are read as an open would.
    InspectJournal,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum AdminReply {
    /// An account was added.
    Added {
        /// Its number.
        account: AccountId,
    },
    /// All accounts, in the order they were added.
    Accounts {
        /// They.
        accounts: Vec<AccountSummary>,
    },
    /// It is as wanted.
    Done,
    /// A key was made.
    Key {
        /// The key, shown this once.
        key: Secret,
        /// Whether an older one stopped working for it.
        replaced: bool,
    },
    /// A snapshot or backup is whole on disk.
    Saved(Saved),
    /// What the journal holds, and that all of it is sound.
    Journal(JournalFacts),
    /// Nothing was done.
    Refused {
        /// Why.
        error: String,
    },
}

/// A snapshot or backup. Its counts are those of the moment just after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// The record it follows.
    pub seq: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// What stands for the state in it: 64 hexadecimal digits.
    pub state_digest: String,
    /// How much the store holds.
    pub counts: Counts,
}

/// A journal in use, as an operator is shown it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalFacts {
    /// The last record that is synced.
    pub seq: u64,
    /// Records in the files.
    pub records: u64,
    /// The number of this open, from 1.
    pub epoch: u32,
    /// The store's identity: 32 hexadecimal digits.
    pub store_uuid: Option<String>,
    /// The last record that the commit mark knows to be synced.
    pub mark: Option<u64>,
    /// Segments, first to last.
    pub segments: Vec<SegmentSummary>,
    /// Snapshots, oldest first.
    pub snapshots: Vec<SnapshotSummary>,
    /// Bytes of log that the next start would read.
    pub log_bytes: u64,
    /// What stands for the state: 64 hexadecimal digits.
    pub state_digest: String,
    /// How much there is.
    pub counts: Counts,
}

/// A segment of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSummary {
    /// Its number, from 1.
    pub segment_no: u64,
    /// Its first record.
    pub first_seq: u64,
    /// Sound records in it.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// A snapshot in a journal's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSummary {
    /// The record it follows.
    pub seq: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// What stands for the state in it; `None` when it is damaged.
    pub state_digest: Option<String>,
    /// What is wrong with it, where something is.
    pub damage: Option<String>,
}

/// Does what `command` says. Blocks until it is on disk: not for async code.
pub fn execute(store: &Store, command: AdminCommand) -> AdminReply {
    attempt(store, command).unwrap_or_else(|err| AdminReply::Refused { error: err.to_string() })
}

#[derive(Debug, thiserror::Error)]
enum AdminError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
}

fn attempt(store: &Store, command: AdminCommand) -> Result<AdminReply, AdminError> {
    Ok(match command {
        AdminCommand::AddAccount { email, plan, password } => {
            let password = password.map(Password::new).transpose()?;
            let hash = password.map(|password| password.hash()).transpose()?;
            AdminReply::Added { account: store.add_account(&email, plan, hash)? }
        }
        AdminCommand::ListAccounts => AdminReply::Accounts { accounts: store.list() },
        AdminCommand::SetPlan { email, plan } => {
            store.set_plan(&email, plan)?;
            AdminReply::Done
        }
        AdminCommand::IssueKey { email } => {
            let issued = store.issue_key(&email)?;
            let key = Secret::new(issued.key.reveal().to_owned());
            AdminReply::Key { key, replaced: issued.replaced }
        }
        AdminCommand::Disable { email } => {
            store.disable(&email)?;
            AdminReply::Done
        }
        AdminCommand::SetPassword { email, password } => {
            store.set_password(&email, Password::new(password)?.hash()?)?;
            AdminReply::Done
        }
        AdminCommand::Backup { path } if !path.is_absolute() => {
            return Err(AdminError::Relative(path));
        }
        AdminCommand::Backup { path } => saved(store, store.backup(&path)?),
        AdminCommand::Snapshot => saved(store, store.snapshot_now()?),
        AdminCommand::InspectJournal => {
            let found = store.inspect_journal()?;
            let log_bytes = store.log_bytes_since_snapshot();
            let (digest, counts) = (store.state_digest(), store.counts());
            AdminReply::Journal(JournalFacts::of(found, log_bytes, digest, counts))
        }
    })
}

fn saved(store: &Store, report: SnapshotReport) -> AdminReply {
    let SnapshotReport { path, seq, bytes, state_digest } = report;
    let state_digest = hex::encode(state_digest);
    AdminReply::Saved(Saved { path, seq, bytes, state_digest, counts: store.counts() })
}

impl JournalFacts {
    /// The facts of files read, with the bytes of log a start would read and the state they lead to.
    pub(super) fn of(
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
            segments: found.segments.into_iter().map(SegmentSummary::from).collect(),
            snapshots: found.snapshots.into_iter().map(SnapshotSummary::from).collect(),
            log_bytes,
            state_digest: hex::encode(state_digest),
            counts,
        }
    }
}

impl From<SegmentFacts> for SegmentSummary {
    fn from(facts: SegmentFacts) -> SegmentSummary {
        let SegmentFacts { segment_no, first_seq, records, bytes, .. } = facts;
        SegmentSummary { segment_no, first_seq, records, bytes }
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
