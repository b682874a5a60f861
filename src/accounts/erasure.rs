//! Accounts that are taken away: the request, the days in which it can be taken back, and the erasure.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::admin::{CommandError, Refusal};
use super::decide::Decided;
use super::email::Email;
use super::error::WriteError;
use super::event::Event;
use super::hashing::Attempt;
use super::sessions::still_has;
use super::store::snapshotter::SnapshotError;
use super::store::{Caller, Store};
use crate::vocab::ids::AccountId;
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;

/// Time from the request to the erasure.
pub const GRACE: TimeDelta = TimeDelta::days(7);

/// Snapshots after an erasure until the journal's folder has forgotten the account: the journal keeps two, and the
/// records after the first of them.
const SNAPSHOTS: u8 = 2;

/// The removal of erased accounts from the journal's folder of this node, whichever node erased them.
pub struct Purge {
    store: Store,
    /// Accounts that were to be erased at the last step.
    leaving: BTreeSet<AccountId>,
    /// Snapshots to be written.
    owed: u8,
}

impl Purge {
    /// Begins with the accounts that are to be erased now.
    pub fn new(store: Store) -> Purge {
        let mut purge = Purge { store, leaving: BTreeSet::new(), owed: 0 };
        purge.look();
        purge
    }

    /// If an account was erased since the previous step, ends the segment; the next step then writes a snapshot, and
    /// a later one another, once there are records after the first. Blocks, so async code must not call it.
    ///
    /// # Errors
    /// [`SnapshotError`]; the next step tries again.
    pub fn step(&mut self) -> Result<(), SnapshotError> {
        if self.look() {
            // Records that are being written may still reach the old segment, but all of them before the next step.
            self.store.0.shared.journal.end_segment();
            self.owed = SNAPSHOTS;
        } else if self.owed > 0 && self.store.log_bytes_since_snapshot() > 0 {
            self.store.snapshot_now()?;
            self.owed -= 1;
        }
        Ok(())
    }

    /// Looks which accounts are to be erased. Returns whether one was erased since the last time.
    fn look(&mut self) -> bool {
        // Writes wait while the state is locked, but not while its accounts are looked through.
        let accounts = self.store.state().accounts.clone();
        let is_erased = self.leaving.iter().any(|id| accounts.get(id).is_none());
        let leaving = accounts.values().filter(|account| account.erase_at.is_some());
        self.leaving = leaving.map(|account| account.id).collect();
        is_erased
    }
}

impl Store {
    /// Disables an account, to be erased after [`GRACE`]. Returns the time of the erasure; a second request does not
    /// change it. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn ask_erasure(&self, email: &Email, now: DateTime<Utc>) -> Result<UnixMs, CommandError> {
        let owner = self.state().owner;
        let mut at = UnixMs::from_instant(now + GRACE);
        self.command(email, |account| match account.erase_at {
            _ if owner == Some(account.id) => Err(Refusal::Owner(email.clone())),
            Some(before) => {
                at = before;
                Ok(Vec::new())
            }
            None => Ok(vec![Event::ErasureAsked { account: account.id, at: Some(at) }]),
        })?;
        Ok(at)
    }

    /// Disables the caller's account, to be erased after [`GRACE`], if the password is right. Returns the time of the
    /// erasure; `None` for a wrong password.
    ///
    /// # Errors
    /// [`WriteError::Conflict`]: the owner of the server cannot leave it. [`WriteError::Overloaded`],
    /// [`WriteError::Journal`].
    pub async fn leave(
        &self,
        caller: &Caller,
        password: Secret,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<Option<UnixMs>, WriteError> {
        let (is_owner, hash) = {
            let state = self.state();
            let account = state.account(caller.account);
            let hash = account.and_then(|account| account.password.clone());
            (state.owner == Some(caller.account), hash)
        };
        if is_owner {
            return Err(WriteError::Conflict("the owner of a server cannot leave it".to_owned()));
        }
        let Some(verified) = self.verify(hash, password, attempt).await? else { return Ok(None) };
        let at = UnixMs::from_instant(now + GRACE);
        self.write(caller, |account, _| {
            let is_allowed = still_has(account, &verified);
            let asked = Event::ErasureAsked { account: account.id, at: Some(at) };
            Ok(Decided::new(is_allowed.then_some(asked), is_allowed.then_some(at)))
        })
        .await
    }

    /// Keeps an account that was to be erased. Its keys and feeds work again. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn restore_account(&self, email: &Email) -> Result<(), CommandError> {
        self.command(email, |account| match account.erase_at {
            Some(_) => Ok(vec![Event::ErasureAsked { account: account.id, at: None }]),
            None => Err(Refusal::NotLeaving(email.clone())),
        })
    }

    /// Erases the accounts whose time has come. Returns their addresses. Durable when it returns. Blocks, so async
    /// code must not call it.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn erase_due(&self, now: DateTime<Utc>) -> Result<Vec<Email>, CommandError> {
        let is_due = |at: Option<UnixMs>| at.is_some_and(|at| at.instant() <= now);
        let accounts = self.state().accounts.clone();
        let due = accounts.values().filter(|account| is_due(account.erase_at));
        let due: Vec<Email> = due.map(|account| account.email.clone()).collect();
        for email in &due {
            // The account may have been restored meanwhile.
            self.command(email, |account| {
                let erased = Event::AccountErased { account: account.id };
                Ok(if is_due(account.erase_at) { vec![erased] } else { Vec::new() })
            })?;
        }
        Ok(due)
    }
}
