//! The owner of a single-user server: the account that the first visit makes.

use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};

use super::data::access::SessionLife;
use super::data::account::Account;
use super::decide::Decided;
use super::email::Email;
use super::error::WriteError;
use super::event::{AddedBy, Event};
use super::hashing::Attempt;
use super::password::Password;
use super::store::{Caller, Store};
use super::token::Token;
use crate::vocab::day::Day;
use crate::vocab::plan::Plan;
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
        let (plan, by) = (Plan::Api, AddedBy::Owner);
        let added = Event::AccountAdded { account, email: owner, plan, on, password, by };
        self.append(vec![added], Some(lock)).await?;
        Ok(Some(email))
    }

    /// Whether there is an owner without a password, whose browser is known by its cookie alone.
    pub fn has_open_owner(&self) -> bool {
        let state = self.state();
        let owner = state.owner.and_then(|owner| state.account(owner));
        owner.is_some_and(|owner| is_open(owner))
    }

    /// Lets a browser in as the owner without a password, and begins a session that is kept. Without the
    /// link that the server printed, only while no other browser has one. Returns `None` otherwise.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn open_to_browser(
        &self,
        has_link: bool,
        now: DateTime<Utc>,
    ) -> Result<Option<Token>, WriteError> {
        let Some(id) = self.state().owner else { return Ok(None) };
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, at) = (token.digest(), UnixMs::from_instant(now));
        let is_let_in = self
            .write_to(id, |account, _| {
                let is_taken = account.access.sessions.iter().any(|it| it.is_valid_at(at));
                let is_let_in = is_open(account) && (has_link || !is_taken);
                let life = SessionLife::Kept;
                let began = Event::SessionBegan { account: id, digest, at, life };
                Ok(Decided::new(is_let_in.then_some(began), is_let_in))
            })
            .await?;
        Ok(is_let_in.then_some(token))
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
            let life = SessionLife::Short;
            let events = [
                Event::password(account, password),
                Event::SessionBegan { account, digest, at, life },
            ];
            Ok(Decided::new(events, token))
        })
        .await
    }
}

fn is_open(owner: &Account) -> bool {
    owner.password.is_none() && !owner.disabled
}
