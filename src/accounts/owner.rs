//! The owner of a server: the account that the first visit creates.

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

/// The address of the owner of a single-user server. It identifies the account and receives no mail.
const EMAIL: &str = "owner@localhost";

impl Store {
    /// Returns true if an account was ever added.
    pub fn has_accounts(&self) -> bool {
        self.0.last_account.load(Ordering::Relaxed) > 0
    }

    /// Adds the owner, without a password if `password` is `None`, and without an address of their own if
    /// `email` is. Returns the address of the account; `None` if an account already exists.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], [`WriteError::Journal`].
    pub async fn add_owner(
        &self,
        email: Option<Email>,
        password: Option<Password>,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<Option<Email>, WriteError> {
        let email = email.unwrap_or_else(|| EMAIL.parse().expect("an address"));
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

    /// Returns true if the owner has no password, so that only a cookie identifies the owner's browser.
    pub fn has_open_owner(&self) -> bool {
        let state = self.state();
        let owner = state.owner.and_then(|owner| state.account(owner));
        owner.is_some_and(|owner| is_open(owner))
    }

    /// Logs a browser in as the owner without a password, with a "keep me signed in" session.
    /// Without the link that the server printed, this works only while no other browser has a
    /// session; otherwise it returns `None`.
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

    /// Returns the owner's address, if this server has an owner.
    pub fn owner_email(&self) -> Option<Email> {
        let state = self.state();
        Some(state.account(state.owner?)?.email.clone())
    }

    /// Sets the first password of the owner. A new session begins.
    ///
    /// # Errors
    /// [`WriteError::Conflict`]: a password is already set. [`WriteError::Overloaded`],
    /// [`WriteError::Journal`].
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
    owner.password.is_none() && !owner.is_disabled()
}
