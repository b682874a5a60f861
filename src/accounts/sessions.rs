//! Login: sign-up, sessions and passwords. Writes are durable when they return; passwords are hashed
//! on blocking threads.

use chrono::{DateTime, Utc};
use compact_str::CompactString;

use super::data::access::SessionLife;
use super::data::account::Account;
use super::decide::Decided;
use super::email::Email;
use super::error::WriteError;
use super::event::{AddedBy, Event, RowOf};
use super::hashing::Attempt;
use super::password::{Password, PasswordHash, PasswordSeal};
use super::store::{Caller, Credential, Store};
use super::token::{Token, TokenDigest};
use crate::vocab::day::Day;
use crate::vocab::plan::Plan;
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;

/// The logged-in owner of an account. Valid for one request, like a [`Caller`].
#[derive(Clone)]
pub struct Person {
    pub caller: Caller,
    pub email: Email,
    /// The session of the request, which its owner can end; `None` for the owner of a single-user
    /// server without a password, who could not log in again.
    pub session: Option<TokenDigest>,
    /// Whether this is the owner of the server, for whom plans do not matter.
    pub is_owner: bool,
}

/// The outcome of a change of password.
pub enum PasswordChange {
    /// The password was changed and all sessions were ended; the token is that of a new one.
    Done(Token),
    /// The current password was wrong.
    WrongPassword,
}

/// Behaviour of a log-in to an account that is to be erased.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IfLeaving {
    /// Begins no session and returns when the account goes.
    Ask,
    /// Keeps the account and begins a session.
    Restore,
}

/// The outcome of a log-in.
pub enum LogIn {
    /// A session began.
    Begun(Token),
    /// The account is no longer to be erased, and a session began.
    Restored(Token),
    /// The password is right, but the account is to be erased at this time. No session began.
    Leaving(UnixMs),
    /// The password is wrong, or the account cannot be logged in to.
    Refused,
}

impl LogIn {
    /// Returns the token of the session; `None` if none began.
    pub fn token(self) -> Option<Token> {
        match self {
            LogIn::Begun(token) | LogIn::Restored(token) => Some(token),
            LogIn::Leaving(_) | LogIn::Refused => None,
        }
    }
}

impl Store {
    /// Returns the owner of a session, if it is valid at `now`. Only some uses are recorded, and
    /// the caller does not wait for the record.
    pub fn person(&self, token: &Token, now: DateTime<Utc>) -> Option<Person> {
        let (digest, now) = (token.digest(), UnixMs::from_instant(now));
        let (person, is_to_be_noted) = {
            let state = self.state();
            let (account, session) = state.by_session(&digest)?;
            if !session.is_valid_at(now) {
                return None;
            }
            let caller = Caller::new(account, Credential::Session(digest));
            let (email, is_owner) = (account.email.clone(), state.owner == Some(account.id));
            let is_open = is_owner && account.password.is_none();
            let person = Person { caller, email, session: (!is_open).then_some(digest), is_owner };
            (person, session.is_to_be_noted(now))
        };
        if is_to_be_noted {
            let account = person.caller.account;
            // If this fails, the next use is recorded; at worst, the session ends early.
            let browser = CompactString::default();
            let _ = self.note(Event::SessionSeen { account, digest, at: now, browser });
        }
        Some(person)
    }

    /// Returns true if an address has an account, disabled or not.
    pub fn has_account(&self, email: &Email) -> bool {
        self.state().by_email(email).is_some()
    }

    /// Adds an account unless the address has one. Returns true if the account was added.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], [`WriteError::ServerFull`], [`WriteError::Journal`].
    pub async fn sign_up(
        &self,
        email: Email,
        plan: Plan,
        password: Password,
        is_verified: bool,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<bool, WriteError> {
        // The password is hashed even if the address is taken, so that the response time does not
        // reveal that.
        let password = self.0.hashing.run(attempt, move || password.hash()).await??;
        if self.is_full() {
            return Err(WriteError::ServerFull);
        }
        let lock = self.0.locks.lock(&email, &self.0.shared).await?;
        if self.has_account(&email) {
            return Ok(false);
        }
        let (account, on) = (self.next_account_id(), Day::nearest(now));
        let (password, by) = (Some(password), AddedBy::SignUp);
        let mut events = vec![Event::AccountAdded { account, email, plan, on, password, by }];
        events.extend(is_verified.then_some(Event::EmailVerified { account }));
        self.append(events, Some(lock)).await?;
        Ok(true)
    }

    /// Begins a session if the password is right. Refuses, after the same amount of work, a wrong
    /// password, an unknown address, an account without a password and an account that is disabled
    /// permanently.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], [`WriteError::Journal`].
    pub async fn log_in(
        &self,
        email: &Email,
        password: Secret,
        life: SessionLife,
        leaving: IfLeaving,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<LogIn, WriteError> {
        let found = {
            let state = self.state();
            state.by_email(email).map(|account| (account.id, account.password.clone()))
        };
        let (id, hash) = found.unzip();
        let Some(verified) = self.verify(hash.flatten(), password, attempt).await? else {
            return Ok(LogIn::Refused);
        };
        let Some(id) = id else { return Ok(LogIn::Refused) };
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, at) = (token.digest(), UnixMs::from_instant(now));
        self.write_to(id, |account, _| {
            if account.disabled || account.password.as_ref() != Some(&verified) {
                return Ok(Decided::new([], LogIn::Refused));
            }
            let began = Event::SessionBegan { account: id, digest, at, life };
            Ok(match account.erase_at {
                None => Decided::new([began], LogIn::Begun(token)),
                Some(_) if leaving == IfLeaving::Restore => {
                    let kept = Event::ErasureAsked { account: id, at: None };
                    Decided::new([kept, began], LogIn::Restored(token))
                }
                Some(at) => Decided::new([], LogIn::Leaving(at)),
            })
        })
        .await
    }

    /// Records the browser of a new session, without waiting for the record.
    pub fn name_session(&self, token: &Token, browser: &str) {
        let digest = token.digest();
        let of = self.state().by_session(&digest).map(|(of, session)| (of.id, session.began));
        if let Some((account, at)) = of.filter(|_| !browser.is_empty()) {
            let browser = browser.into();
            // Without this record, the list of sessions has no name.
            let _ = self.note(Event::SessionSeen { account, digest, at, browser });
        }
    }

    /// Ends the session of the caller's account with this [public id](TokenDigest::public_id).
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::Journal`].
    pub async fn end_session(&self, caller: &Caller, id: &str) -> Result<(), WriteError> {
        // Not counted as a write either.
        self.write_to(caller.account, |account, _| {
            let mut sessions = account.access.sessions.iter();
            let session = sessions.find(|session| session.digest.public_id() == id);
            let row = RowOf::Session(session.ok_or(WriteError::NotFound)?.digest);
            Ok(Decided::new([Event::Removed { account: account.id, row }], ()))
        })
        .await
    }

    /// Ends the session of a token, valid or not.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn log_out(&self, token: &Token) -> Result<(), WriteError> {
        let digest = token.digest();
        let id = self.state().by_session(&digest).map(|(account, _)| account.id);
        let Some(id) = id else { return Ok(()) };
        self.write_to(id, |account, _| {
            let session = account.access.session(&digest);
            let row = RowOf::Session(digest);
            let ended = session.map(|_| Event::Removed { account: id, row });
            Ok(Decided::new(ended, ()))
        })
        .await
    }

    /// Ends all sessions of the caller's account.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn log_out_everywhere(&self, caller: &Caller) -> Result<(), WriteError> {
        // This is not counted as a write, so that an owner can always end the sessions of an intruder.
        self.write_to(caller.account, |account, _| {
            let digests = account.access.sessions.iter().map(|session| session.digest);
            let row = RowOf::Session;
            let ended = |digest| Event::Removed { account: account.id, row: row(digest) };
            Ok(Decided::new(digests.map(ended), ()))
        })
        .await
    }

    /// Changes the password of the caller's account if `current` is right. All sessions end and a
    /// new one begins.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], [`WriteError::Journal`].
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: Secret,
        new: Password,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<PasswordChange, WriteError> {
        let hash = {
            let state = self.state();
            state.account(caller.account).and_then(|account| account.password.clone())
        };
        let Some(verified) = self.verify(hash, current, attempt).await? else {
            return Ok(PasswordChange::WrongPassword);
        };
        let password = self.0.hashing.run(attempt, move || new.hash()).await??;
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, at) = (token.digest(), UnixMs::from_instant(now));
        let is_changed = self
            .write(caller, |account, _| {
                let id = account.id;
                let is_allowed = still_has(account, &verified);
                let events = is_allowed.then(|| {
                    let life = SessionLife::Short;
                    [
                        Event::password(id, password),
                        Event::SessionBegan { account: id, digest, at, life },
                    ]
                });
                Ok(Decided::new(events.into_iter().flatten(), is_allowed))
            })
            .await?;
        Ok(if is_changed { PasswordChange::Done(token) } else { PasswordChange::WrongPassword })
    }

    /// Returns the seal of the password of an address, even if no password is set; `None` if no
    /// enabled account has the address.
    pub fn password_seal(&self, email: &Email) -> Option<PasswordSeal> {
        let state = self.state();
        let account = state.by_email(email).filter(|account| !account.is_disabled())?;
        Some(seal_of(account))
    }

    /// Replaces the password of an address if it still has this seal. All sessions end and a new one
    /// begins. Returns `None` if the password has changed since.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], [`WriteError::Journal`].
    pub async fn reset_password(
        &self,
        email: &Email,
        seal: PasswordSeal,
        new: Password,
        attempt: Attempt,
        now: DateTime<Utc>,
    ) -> Result<Option<Token>, WriteError> {
        let id = self.state().by_email(email).map(|account| account.id);
        let Some(id) = id else { return Ok(None) };
        let password = self.0.hashing.run(attempt, move || new.hash()).await??;
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, at) = (token.digest(), UnixMs::from_instant(now));
        let is_reset = self
            .write_to(id, |account, _| {
                let is_allowed = seal_of(account) == seal && !account.is_disabled();
                let life = SessionLife::Short;
                let events = [
                    Event::password(id, password),
                    Event::SessionBegan { account: id, digest, at, life },
                ];
                let events = is_allowed.then_some(events).into_iter().flatten();
                Ok(Decided::new(events, is_allowed))
            })
            .await?;
        Ok(is_reset.then_some(token))
    }

    /// Returns `hash` if the password matches it. Without a hash, this does the same amount of
    /// work.
    pub(super) async fn verify(
        &self,
        hash: Option<PasswordHash>,
        password: Secret,
        attempt: Attempt,
    ) -> Result<Option<PasswordHash>, WriteError> {
        let work = move || match hash {
            Some(hash) => hash.matches(&password).then_some(hash),
            None => {
                PasswordHash::unknown().matches(&password);
                None
            }
        };
        self.0.hashing.run(attempt, work).await
    }
}

/// Returns the seal of the account's password. Accounts without a password share a seal that
/// matches no password.
fn seal_of(account: &Account) -> PasswordSeal {
    account.password.as_ref().map_or_else(|| PasswordHash::unknown().seal(), PasswordHash::seal)
}

/// Returns true if the verified password is still that of the account, and the account is still
/// enabled. Either may have changed while the password was being hashed.
pub(super) fn still_has(account: &Account, verified: &PasswordHash) -> bool {
    !account.is_disabled() && account.password.as_ref() == Some(verified)
}
