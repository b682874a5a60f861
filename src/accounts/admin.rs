//! What an operator can ask of a store, in a form that crosses from one process to another: a
//! running server holds the store, and `dropdex account` must work all the same.

use serde::{Deserialize, Serialize};

use super::email::Email;
use super::password::{Password, PasswordError};
use super::secret::Secret;
use super::store::{AccountSummary, CommandError, Store};
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
    /// Nothing was done.
    Refused {
        /// Why.
        error: String,
    },
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
    })
}
