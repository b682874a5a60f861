//! Accounts that are taken away: the request, the days in which it can be taken back, and the erasure.

use chrono::{DateTime, TimeDelta, Utc};

use super::admin::{CommandError, Refusal};
use super::decide::Decided;
use super::email::Email;
use super::error::WriteError;
use super::event::Event;
use super::hashing::Attempt;
use super::sessions::still_has;
use super::store::{Caller, Store};
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;

/// Time from the request to the erasure.
pub const GRACE: TimeDelta = TimeDelta::days(7);

impl Store {
    /// Disables an account, to be erased after [`GRACE`]. Returns the time of the erasure; a second request does not
    /// change it. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn ask_erasure(&self, email: &Email, now: DateTime<Utc>) -> Result<UnixMs, CommandError> {
        let mut at = UnixMs::from_instant(now + GRACE);
        self.command(email, |account| match account.erase_at {
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
