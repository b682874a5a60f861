//! The store's methods for people: sign up, log in, log out, and what they change about their own
//! account. Writes are on disk when they return; passwords are compared off the runtime.

use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};

use super::access::{Address, LINK_AGE_MAX, is_younger};
use super::decide::access::{self as decide, NoLink};
use super::email::Email;
use super::event::{Event, StoredDay};
use super::keys::ApiKey;
use super::password::{Password, PasswordHash};
use super::quota::DayUsage;
use super::secret::Secret;
use super::state::Account;
use super::store::{Caller, IssuedKey, Store};
use super::token::{Token, TokenDigest};
use super::write::WriteError;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::{Plan, Plans};
use crate::vocab::time::UnixMs;

/// Somebody with a session that holds. Good for one request, as a [`Caller`] is.
#[derive(Clone)]
pub struct Person {
    /// Their account.
    pub caller: Caller,
    /// Its address.
    pub email: Email,
    /// The session they came with.
    pub session: TokenDigest,
}

/// What signing up came to.
pub enum SignUp {
    /// There is an account, and a session for its owner.
    Done(Token),
    /// The address has an account.
    EmailTaken,
}

/// What changing a password came to.
pub enum PasswordChange {
    /// It is another one, all sessions have ended, and this is a new one.
    Done(Token),
    /// What was given as the present password is not it.
    WrongPassword,
}

/// What asking for a link that verifies an address came to.
pub enum VerificationLink {
    /// The link, and the address it is to be mailed to.
    Made { token: Token, email: Email },
    /// There is nothing to verify.
    Verified,
    /// No other link before then.
    Wait(DateTime<Utc>),
}

/// What an account's own pages say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its address.
    pub email: Email,
    /// Whether mails may go there.
    pub is_verified: bool,
    /// Until when the newest link that verifies the address works; `None` without one.
    pub link_until: Option<DateTime<Utc>>,
    /// What it pays for.
    pub plan: Plan,
    /// The UTC day it was added.
    pub created: Day,
    /// The last four characters of its key.
    pub key_last4: Option<String>,
    /// Sessions that hold, the caller's own among them: when each began and was last seen, newest
    /// first.
    pub sessions: Vec<ProfileSession>,
    /// The chat that new alert rules begin with.
    pub telegram_chat: Option<String>,
    /// JSON requests granted today.
    pub requests_today: u32,
    /// Exports granted today.
    pub exports_today: u32,
    /// When today's allowance ends.
    pub resets_at: DateTime<Utc>,
}

/// A session, as its account's owner is shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileSession {
    /// What it is told apart by.
    pub digest: TokenDigest,
    /// When it began.
    pub began: DateTime<Utc>,
    /// When it was last used, to some five minutes.
    pub seen: DateTime<Utc>,
}

impl Store {
    /// Whose session the token is, if it holds at `now`. Notes the use of it now and then, without
    /// waiting.
    pub fn person(&self, token: &Token, now: DateTime<Utc>) -> Option<Person> {
        let (digest, now) = (token.digest(), UnixMs::of(now));
        let (person, is_to_be_noted) = {
            let state = self.state();
            let (account, session) = state.by_session(&digest)?;
            if account.disabled || !session.holds_at(now) {
                return None;
            }
            (Person::of(account, digest), session.is_to_be_noted(now))
        };
        if is_to_be_noted {
            let account = person.caller.account;
            // Should this fail, the next use is noted, or the session ends early.
            let _ = self.note(Event::SessionSeen { account, digest, at: now });
        }
        Some(person)
    }

    /// Makes an account for somebody, and a session.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], and what else refuses a write.
    pub async fn sign_up(
        &self,
        email: Email,
        plan: Plan,
        password: Password,
        now: DateTime<Utc>,
    ) -> Result<SignUp, WriteError> {
        let token = Token::generate().map_err(WriteError::Random)?;
        // Also where the address is taken: the time tells nobody.
        let password = self.0.hashing.run(move || password.hash()).await??;
        let stripe = self.0.stripes.of(&email).await;
        if self.state().by_email(&email).is_some() {
            return Ok(SignUp::EmailTaken);
        }
        let account = AccountId(self.0.last_account.fetch_add(1, Ordering::Relaxed) + 1);
        let on = StoredDay(day_of(now));
        let events = vec![
            Event::AccountSignedUp { account, email, plan, password, on },
            Event::SessionBegan { account, digest: token.digest(), at: UnixMs::of(now) },
        ];
        self.append_as(events, Some(stripe)).await?;
        Ok(SignUp::Done(token))
    }

    /// A new session for somebody who knows the password. `None` alike, and after as much work, for a
    /// wrong password, an unknown address, an account without a password, and one that was shut.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], and what else refuses a write.
    pub async fn log_in(
        &self,
        email: &Email,
        password: Secret,
        now: DateTime<Utc>,
    ) -> Result<Option<Token>, WriteError> {
        let found = {
            let state = self.state();
            state.by_email(email).map(|account| (account.id, account.password.clone()))
        };
        let (account, hash) = found.unzip();
        let Some(verified) = self.verify(hash.flatten(), password).await? else { return Ok(None) };
        let Some(account) = account else { return Ok(None) };
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, now) = (token.digest(), UnixMs::of(now));
        let decided = self
            .write_to(account, |account, _| Ok(decide::log_in(account, &verified, digest, now)))
            .await?;
        Ok(decided.then_some(token))
    }

    /// Ends the session of a token, whether it still holds or not.
    ///
    /// # Errors
    /// What refuses a write.
    pub async fn log_out(&self, token: &Token) -> Result<(), WriteError> {
        let digest = token.digest();
        let account = self.state().by_session(&digest).map(|(account, _)| account.id);
        match account {
            Some(account) => {
                self.write_to(account, |account, _| Ok(decide::log_out(account, &digest))).await
            }
            None => Ok(()),
        }
    }

    /// Ends all sessions of the caller's account.
    ///
    /// # Errors
    /// What refuses a write.
    pub async fn log_out_everywhere(&self, caller: &Caller) -> Result<(), WriteError> {
        self.write(caller, |account, _| Ok(decide::log_out_everywhere(account))).await
    }

    /// Gives the caller's account another password, for whoever knows the present one. All sessions
    /// end, a new one begins.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`], and what else refuses a write.
    pub async fn change_password(
        &self,
        caller: &Caller,
        present: Secret,
        new: Password,
        now: DateTime<Utc>,
    ) -> Result<PasswordChange, WriteError> {
        let hash = {
            let state = self.state();
            state.account(caller.account).and_then(|account| account.password.clone())
        };
        let Some(verified) = self.verify(hash, present).await? else {
            return Ok(PasswordChange::WrongPassword);
        };
        let new = self.0.hashing.run(move || new.hash()).await??;
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, now) = (token.digest(), UnixMs::of(now));
        let decide = |account: &Account, _: &_| {
            Ok(decide::change_password(account, &verified, new, digest, now))
        };
        match self.write(caller, decide).await? {
            true => Ok(PasswordChange::Done(token)),
            false => Ok(PasswordChange::WrongPassword),
        }
    }

    /// Makes a new key for the caller's account; the old one stops working at once.
    ///
    /// # Errors
    /// What refuses a write.
    pub async fn issue_own_key(
        &self,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<IssuedKey, WriteError> {
        let key = ApiKey::generate().map_err(WriteError::Random)?;
        let (stored, today) = (key.stored(), day_of(now));
        let replaced =
            self.write(caller, |account, _| decide::issue_key(account, stored, today)).await?;
        Ok(IssuedKey { key, replaced })
    }

    /// What the account's own pages say of it. `None` where there is no such account.
    pub fn profile(&self, caller: &Caller, now: DateTime<Utc>) -> Option<Profile> {
        let today = self.day(now);
        let state = self.state();
        Some(Profile::of(state.account(caller.account)?, today, UnixMs::of(now)))
    }

    /// What every plan allows.
    pub fn plans(&self) -> &Plans {
        &self.0.plans
    }

    /// Makes a link that verifies the address of the caller's account; one made before works no
    /// longer.
    ///
    /// # Errors
    /// What refuses a write.
    pub async fn ask_verification(
        &self,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<VerificationLink, WriteError> {
        let token = Token::generate().map_err(WriteError::Random)?;
        let (digest, now) = (token.digest(), UnixMs::of(now));
        let decide = |account: &Account, _: &_| {
            let super::decide::Decided { events, answer } = decide::ask_link(account, digest, now);
            let answer = answer.map(|()| account.email.clone());
            Ok(super::decide::Decided { events, answer })
        };
        Ok(match self.write(caller, decide).await? {
            Ok(email) => VerificationLink::Made { token, email },
            Err(NoLink::Verified) => VerificationLink::Verified,
            Err(NoLink::Wait(until)) => VerificationLink::Wait(until),
        })
    }

    /// Whether a link verifies an address at `now`.
    pub fn is_good_link(&self, token: &Token, now: DateTime<Utc>) -> bool {
        let (digest, state) = (token.digest(), self.state());
        let account = state.by_link(&digest);
        account.is_some_and(|account| decide::is_good_link(account, &digest, UnixMs::of(now)))
    }

    /// Takes the address of the link's account for its owner's; whether the link was good.
    ///
    /// # Errors
    /// What refuses a write.
    pub async fn verify_email(
        &self,
        token: &Token,
        now: DateTime<Utc>,
    ) -> Result<bool, WriteError> {
        let (digest, now) = (token.digest(), UnixMs::of(now));
        let account = self.state().by_link(&digest).map(|account| account.id);
        let Some(account) = account else { return Ok(false) };
        self.write_to(account, |account, _| Ok(decide::verify(account, &digest, now))).await
    }

    /// Sets or (`None`) forgets the chat that the caller's new alert rules begin with.
    ///
    /// # Errors
    /// [`WriteError::Invalid`] of `chatId`.
    pub async fn set_telegram_chat(
        &self,
        caller: &Caller,
        chat: Option<String>,
    ) -> Result<(), WriteError> {
        self.write(caller, |account, _| decide::set_chat(account, chat)).await
    }

    /// The hash that `password` fits, which is `hash`. Where there is none as much work is done.
    async fn verify(
        &self,
        hash: Option<PasswordHash>,
        password: Secret,
    ) -> Result<Option<PasswordHash>, WriteError> {
        let work = move || match hash {
            Some(hash) => hash.fits(&password).then_some(hash),
            None => {
                PasswordHash::of_nobody().fits(&password);
                None
            }
        };
        self.0.hashing.run(work).await
    }
}

impl Person {
    fn of(account: &Account, session: TokenDigest) -> Person {
        Person { caller: Caller::of(account), email: account.email.clone(), session }
    }
}

impl Profile {
    fn of(account: &Account, today: Day, now: UnixMs) -> Profile {
        let used = account.usage.now();
        let used = if used.day == Some(today) { used } else { DayUsage::default() };
        let access = &account.access;
        let link = match &access.address {
            Address::Unverified(links) => links.newest,
            Address::Verified => None,
        };
        let link = link.filter(|(_, at)| is_younger(*at, LINK_AGE_MAX, now));
        let sessions = access.sessions.iter().rev().filter(|session| session.holds_at(now));
        let sessions = sessions.map(|session| ProfileSession {
            digest: session.digest,
            began: session.began.instant(),
            seen: session.seen.instant(),
        });
        Profile {
            email: account.email.clone(),
            is_verified: access.is_verified(),
            link_until: link.map(|(_, at)| at.instant() + LINK_AGE_MAX),
            plan: account.plan,
            created: account.created,
            key_last4: account.key.map(|key| key.last4()),
            sessions: sessions.collect(),
            telegram_chat: access.telegram_chat.as_ref().map(ToString::to_string),
            requests_today: used.requests,
            exports_today: used.exports,
            resets_at: today.plus(1).start(),
        }
    }
}

fn day_of(now: DateTime<Utc>) -> Day {
    Day::of(now).unwrap_or(if now.timestamp() < 0 { Day::MIN } else { Day::MAX })
}
