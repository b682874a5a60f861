//! The owner's view of an account: profile, API key, verification of the address, default chat.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::data::UserData;
use super::data::access::{
    Address, LINK_AGE_MAX, LINK_PAUSE, LINKS_PER_DAY_MAX, Session, is_younger,
};
use super::data::account::Account;
use super::data::feeds::Feed;
use super::data::keys::Key;
use super::data::money::MoneySettings;
use super::data::rules::{Channel, Rule};
use super::data::watch_alerts::WatchSettings;
use super::decide::{Decided, invalid};
use super::email::Email;
use super::error::{InvalidField, WriteError};
use super::event::Event;
use super::rules::{CHAT_ID_INVALID, is_chat_id};
use super::store::{Caller, Store};
use super::token::{Token, TokenDigest};
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// The outcome of a request for a verification link.
pub enum VerificationLink {
    /// The token of the link, and the address to which it is mailed.
    Made { token: Token, email: Email },
    /// The address is already verified.
    Verified,
    /// No new link is available before this time.
    Wait(DateTime<Utc>),
}

/// An account as its owner sees it.
#[derive(Clone, Debug)]
pub struct Profile {
    pub email: Email,
    pub is_verified: bool,
    /// Expiry of the newest verification link; `None` if none is valid.
    pub link_until: Option<DateTime<Utc>>,
    pub plan: Plan,
    /// UTC day on which the account was added.
    pub created: Day,
    /// API keys, oldest first.
    pub keys: Vec<Key>,
    /// Valid sessions, the caller's own included, newest first.
    pub sessions: Vec<Session>,
    /// The default chat of new alert rules.
    pub telegram_chat: Option<String>,
    /// JSON requests allowed today.
    pub requests_today: u32,
    /// Exports allowed today.
    pub exports_today: u32,
    /// The next 00:00 UTC.
    pub resets_at: DateTime<Utc>,
}

/// An account with all its data, at one moment.
#[derive(Clone, Debug)]
pub struct AccountCopy {
    pub profile: Profile,
    /// When it is erased; `None` unless it was deleted.
    pub erase_at: Option<UnixMs>,
    /// Feeds, oldest first.
    pub feeds: Vec<Feed>,
    pub data: Arc<UserData>,
}

impl Store {
    /// Returns a copy of the account with this address, which may be disabled; `None` if there is none.
    pub fn copy_of(&self, email: &Email, now: DateTime<Utc>) -> Option<AccountCopy> {
        let today = self.day(now);
        let state = self.state();
        let account = state.by_email(email)?;
        Some(AccountCopy {
            profile: Profile::new(account, today, UnixMs::from_instant(now)),
            erase_at: account.erase_at,
            feeds: account.access.feeds.iter().copied().collect(),
            data: Arc::clone(&account.data),
        })
    }

    /// Returns the profile of the caller's account; `None` if the account does not exist.
    pub fn profile(&self, caller: &Caller, now: DateTime<Utc>) -> Option<Profile> {
        let today = self.day(now);
        let state = self.state();
        Some(Profile::new(state.account(caller.account)?, today, UnixMs::from_instant(now)))
    }

    /// Sets the default chat of new alert rules, or removes it with `None`.
    ///
    /// # Errors
    /// [`WriteError::Invalid`].
    pub async fn set_telegram_chat(
        &self,
        caller: &Caller,
        chat: Option<String>,
    ) -> Result<(), WriteError> {
        if chat.as_deref().is_some_and(|chat| !is_chat_id(chat)) {
            return Err(invalid(InvalidField::ChatId, CHAT_ID_INVALID));
        }
        self.write(caller, |account, _| {
            let is_new = account.access.telegram_chat.as_deref() != chat.as_deref();
            let chat = chat.map(Into::into);
            let set = Event::PreferencesSet {
                account: account.id,
                chat: Some(chat),
                columns: None,
                money: None,
            };
            Ok(Decided::new(is_new.then_some(set), ()))
        })
        .await
    }

    /// Replaces the id of a chat after a change of the id, in every channel of the account that
    /// uses it. Does nothing while messages are queued for the old id, since a change of channels
    /// would cause those to fail. Returns true if the new id is stored.
    ///
    /// # Errors
    /// [`WriteError::NotFound`]: the account does not exist. [`WriteError::Journal`].
    pub async fn move_telegram_chat(
        &self,
        account: AccountId,
        from: &str,
        to: &str,
    ) -> Result<bool, WriteError> {
        let moved = |channels: &[Channel]| {
            let mut moved: Vec<Channel> = Vec::new();
            for channel in channels {
                let channel = match channel {
                    Channel::Telegram { chat_id } if chat_id == from => {
                        Channel::Telegram { chat_id: to.to_owned() }
                    }
                    other => other.clone(),
                };
                if !moved.contains(&channel) {
                    moved.push(channel);
                }
            }
            (moved != channels).then_some(moved)
        };
        self.write_to(account, |account, _| {
            let (id, data) = (account.id, &account.data);
            let is_old = |channel: &Channel| {
                matches!(channel, Channel::Telegram { chat_id } if chat_id == from)
            };
            let mut queued = data.outbox.iter().flat_map(|(_, outbox)| {
                outbox.pending().filter_map(|(_, delivery)| outbox.get(delivery))
            });
            if queued.any(|delivery| is_old(&delivery.channel)) {
                return Ok(Decided::new([], false));
            }
            let mut events = Vec::new();
            for rule in data.rules() {
                if let Some(channels) = moved(&rule.channels) {
                    let rule = Rule { channels, ..rule.clone() };
                    events.push(Event::RulePut { account: id, rule: Box::new(rule) });
                }
            }
            let settings = data.watch_sender().settings();
            if let Some(channels) = moved(&settings.channels) {
                let settings = Box::new(WatchSettings { channels, ..settings });
                events.push(Event::WatchAlertsSet { account: id, settings });
            }
            if account.access.telegram_chat.as_deref() == Some(from) {
                let chat = Some(Some(to.into()));
                events.push(Event::PreferencesSet { account: id, chat, columns: None, money: None });
            }
            Ok(Decided::new(events, true))
        })
        .await
    }

    /// Stores the chosen columns of the drop list; `None` for the default ones.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn set_columns(
        &self,
        caller: &Caller,
        columns: Option<Columns>,
    ) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            let is_new = account.data.columns != columns;
            let (account, columns) = (account.id, Some(columns));
            let chosen = Event::PreferencesSet { account, chat: None, columns, money: None };
            Ok(Decided::new(is_new.then_some(chosen), ()))
        })
        .await
    }

    /// Stores the currency of the account, and its rates.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn set_money(&self, caller: &Caller, money: MoneySettings) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            let is_new = account.data.money != money;
            let (account, money) = (account.id, Some(money));
            let set = Event::PreferencesSet { account, chat: None, columns: None, money };
            Ok(Decided::new(is_new.then_some(set), ()))
        })
        .await
    }

    /// Creates a link that verifies the address of the caller's account. An older link becomes
    /// invalid.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn ask_verification(
        &self,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<VerificationLink, WriteError> {
        let token = Token::generate().map_err(WriteError::Random)?;
        let at = UnixMs::from_instant(now);
        self.write(caller, |account, _| {
            let Address::Unverified(links) = account.access.address else {
                return Ok(Decided::new([], VerificationLink::Verified));
            };
            let wait = |until| Ok(Decided::new([], VerificationLink::Wait(until)));
            let today = Day::nearest(at.instant());
            match (links.newest, links.on) {
                (_, Some((day, count))) if !today.replaces(day) && count >= LINKS_PER_DAY_MAX => {
                    wait(day.plus(1).start())
                }
                (Some((_, last)), _) if is_younger(last, LINK_PAUSE, at) => {
                    wait(last.instant() + LINK_PAUSE)
                }
                _ => {
                    let (account, email) = (account.id, account.email.clone());
                    let digest = token.digest();
                    let asked = Event::EmailVerificationAsked { account, digest, at };
                    Ok(Decided::new([asked], VerificationLink::Made { token, email }))
                }
            }
        })
        .await
    }

    /// Returns true if a verification link is valid at `now`.
    pub fn is_good_link(&self, token: &Token, now: DateTime<Utc>) -> bool {
        let (digest, state) = (token.digest(), self.state());
        let account = state.by_link(&digest);
        account.is_some_and(|account| is_valid_link(account, &digest, UnixMs::from_instant(now)))
    }

    /// Marks the address of the link's account as verified. Returns true if the link was valid.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn verify_email(
        &self,
        token: &Token,
        now: DateTime<Utc>,
    ) -> Result<bool, WriteError> {
        let (digest, now) = (token.digest(), UnixMs::from_instant(now));
        let id = self.state().by_link(&digest).map(|account| account.id);
        let Some(id) = id else { return Ok(false) };
        self.write_to(id, |account, _| {
            let is_valid = is_valid_link(account, &digest, now);
            let verified = Event::EmailVerified { account: id };
            Ok(Decided::new(is_valid.then_some(verified), is_valid))
        })
        .await
    }
}

fn is_valid_link(account: &Account, digest: &TokenDigest, now: UnixMs) -> bool {
    let link = account.access.link().filter(|(link, _)| link.is(digest));
    !account.is_disabled() && link.is_some_and(|(_, at)| is_younger(*at, LINK_AGE_MAX, now))
}

impl Profile {
    fn new(account: &Account, today: Day, now: UnixMs) -> Profile {
        let used = account.usage_on(today);
        let access = &account.access;
        let link = access.link().filter(|(_, at)| is_younger(*at, LINK_AGE_MAX, now));
        let sessions = access.sessions.iter().rev().filter(|session| session.is_valid_at(now));
        Profile {
            email: account.email.clone(),
            is_verified: access.is_verified(),
            link_until: link.map(|(_, at)| at.instant() + LINK_AGE_MAX),
            plan: account.plan,
            created: account.created,
            keys: account.access.keys.iter().cloned().collect(),
            sessions: sessions.cloned().collect(),
            telegram_chat: access.telegram_chat.as_ref().map(ToString::to_string),
            requests_today: used.requests,
            exports_today: used.exports,
            resets_at: today.plus(1).start(),
        }
    }
}
