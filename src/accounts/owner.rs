//! The owner of a single-user server: the account that the first visit makes.

use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};

use super::decide::Decided;
use super::email::Email;
use super::error::WriteError;
use super::event::Event;
use super::hashing::Attempt;
use super::password::Password;
use super::sessions::Person;
use super::store::{Caller, Store};
use super::token::Token;
use crate::vocab::day::Day;
use crate::vocab::time::UnixMs;

/// The owner's address. No mail goes to it; it names the account.
const EMAIL: &str = "owner@localhost";

impl Store {
    /// Whether there ever was an account.
    pub fn has_accounts(&self) -> bool {
        self.0.last_account.load(Ordering::Relaxed) > 0
    }

    /// Adds the owner, without a password if `password` is `None`. Returns its address; `None` if there
    /// is an account already.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], [`WriteError::Journal`].
    pub async fn add_owner(
        &self,
        password: Option<Password>,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<Option<Email>, WriteError> {
        let email: Email = EMAIL.parse().expect("an address");
        let password = match password {
            Some(password) => Some(self.0.hashing.run(attempt, move || password.hash()).await??),
            None => None,
        };
        let lock = self.0.locks.lock(&email, &self.0.shared).await?;
        if self.has_accounts() {
            return Ok(None);
        }
        let (account, on) = (self.next_account_id(), Day::nearest(now));
        let owner = email.clone();
        let added = Event::OwnerAdded { account, email: owner, password, on };
        self.append(vec![added], Some(lock)).await?;
        Ok(Some(email))
    }

    /// The owner, if the account is enabled and has no password: every user of this machine then
    /// acts as the owner.
    pub fn open_owner(&self) -> Option<Person> {
        let state = self.state();
        let account = state.account(state.owner?)?;
        let is_open = account.password.is_none() && !account.disabled;
        is_open.then(|| Person {
            caller: Caller::new(account),
            email: account.email.clone(),
            session: None,
            is_owner: true,
        })
    }

    /// The owner's address, if this server has one.
    pub fn owner_email(&self) -> Option<Email> {
        let state = self.state();
        Some(state.account(state.owner?)?.email.clone())
    }

    /// Sets the first password of the owner. A new session begins.
    ///
    /// # Errors
    /// [`WriteError::Conflict`]: there is a password. [`WriteError::Overloaded`], [`WriteError::Journal`].
    pub async fn set_first_password(
        &self,
        caller: &Caller,
        new: Password,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<Token, WriteError> {
        let password = self.0.hashing.run(attempt, move || new.hash()).await??;
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, at) = (token.digest(), UnixMs::from_instant(now));
        self.write(caller, |account, _| {
            if account.password.is_some() {
                return Err(WriteError::Conflict("the account has a password".to_owned()));
            }
            let account = account.id;
            let events = [
                Event::PasswordSet { account, password },
                Event::SessionBegan { account, digest, at },
            ];
            Ok(Decided::new(events, token))
        })
        .await
    }
}
