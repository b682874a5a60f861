//! Accounts that are taken away: the request, the days in which it can be taken back, and the erasure.

use chrono::{DateTime, TimeDelta, Utc};

use super::admin::{CommandError, Refusal};
use super::email::Email;
use super::event::Event;
use super::store::Store;
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
