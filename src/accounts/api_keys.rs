//! API keys that owners create, replace and revoke (`data/docs/api.md`, Keys).

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::data::account::Account;
use super::data::keys::{KEY_GRACE, Key};
use super::decide::{Decided, check_text, draw_id, invalid};
use super::error::{InvalidField, WriteError};
use super::event::{Event, RowOf};
use super::keys::{ApiKey, IssuedKey, StoredKey};
use super::store::{Caller, Store};
use crate::vocab::day::Day;
use crate::vocab::ids::KeyId;
use crate::vocab::limits::{KEY_DAYS_MAX, KEYS_MAX, RULE_NAME_CHARS_MAX};
use crate::vocab::scope::Scopes;
use crate::vocab::time::UnixMs;

/// A key to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    pub name: String,
    pub scopes: Scopes,
    /// Days until the key expires; `None` for never.
    pub days: Option<u16>,
}

/// Time for which a replaced key keeps working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The old key stops working at once.
    AtOnce,
    /// The old key works for another 24 hours.
    AfterGrace,
}

impl Store {
    /// Creates the first key of the caller's account, or replaces it.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] if the account is disabled, [`WriteError::TooMany`],
    /// [`WriteError::Journal`].
    pub async fn issue_own_key(
        &self,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<IssuedKey, WriteError> {
        let key = ApiKey::generate().map_err(WriteError::Random)?;
        let replaced = self.write(caller, |account, _| issue_first(account, key.stored(), now));
        Ok(IssuedKey { replaced: replaced.await?, key })
    }

    /// Creates a key with a name, scopes and an expiry.
    ///
    /// # Errors
    /// [`WriteError::Invalid`], [`WriteError::TooMany`], [`WriteError::NotFound`] if the account is
    /// disabled, [`WriteError::Journal`].
    pub async fn make_key(
        &self,
        caller: &Caller,
        new: NewKey,
        now: DateTime<Utc>,
    ) -> Result<ApiKey, WriteError> {
        let key = ApiKey::generate().map_err(WriteError::Random)?;
        self.write(caller, |account, _| make(account, new, key.stored(), now)).await?;
        Ok(key)
    }

    /// Replaces a key with one that has the same name, scopes and lifetime.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::TooMany`]: the old key, which works for another day,
    /// would exceed the limit. [`WriteError::Journal`].
    pub async fn replace_key(
        &self,
        caller: &Caller,
        id: KeyId,
        old: Replaced,
        now: DateTime<Utc>,
    ) -> Result<ApiKey, WriteError> {
        let key = ApiKey::generate().map_err(WriteError::Random)?;
        self.write(caller, |account, _| replace(account, id, old, key.stored(), now)).await?;
        Ok(key)
    }

    /// Revokes a key: it stops working at once.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::Journal`].
    pub async fn revoke_key(&self, caller: &Caller, id: KeyId) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            account.access.keys.get(id).ok_or(WriteError::NotFound)?;
            Ok(Decided::new([removed(account, id)], ()))
        })
        .await
    }
}

pub(super) fn issue_first(
    account: &Account,
    key: StoredKey,
    now: DateTime<Utc>,
) -> Result<Decided<bool>, WriteError> {
    check_enabled(account)?;
    let is_replaced = account.access.keys.get(KeyId::FIRST).is_some();
    if !is_replaced {
        check_room(account, now)?;
    }
    let new = Box::new(Key::first(key, Some(Day::nearest(now))));
    Ok(Decided::new([Event::KeyPut { account: account.id, new }], is_replaced))
}

pub(super) fn make(
    account: &Account,
    new: NewKey,
    key: StoredKey,
    now: DateTime<Utc>,
) -> Result<Decided<()>, WriteError> {
    check_enabled(account)?;
    check_text(InvalidField::KeyName, &new.name, 1..=RULE_NAME_CHARS_MAX, char::is_control)?;
    if new.days.is_some_and(|days| !(1..=KEY_DAYS_MAX).contains(&days)) {
        return Err(invalid(InvalidField::KeyDays, format!("must be 1 to {KEY_DAYS_MAX}")));
    }
    check_room(account, now)?;
    let old = account.access.keys.forgettable(UnixMs::from_instant(now));
    let mut events: Vec<_> = old.map(|key| removed(account, key.id)).collect();
    let (name, scopes) = (new.name.trim().into(), new.scopes);
    let (created, until) = (Some(Day::nearest(now)), new.days.map(|days| expiry(now, days)));
    let new = Box::new(Key::new(free_id(account)?, name, key, scopes, created, until));
    events.push(Event::KeyPut { account: account.id, new });
    Ok(Decided::new(events, ()))
}

fn replace(
    account: &Account,
    id: KeyId,
    old: Replaced,
    key: StoredKey,
    now: DateTime<Utc>,
) -> Result<Decided<()>, WriteError> {
    let before = account.access.keys.get(id).ok_or(WriteError::NotFound)?;
    let (account_id, now_ms) = (account.id, UnixMs::from_instant(now));
    let ended = match old {
        Replaced::AtOnce => removed(account, id),
        Replaced::AfterGrace => {
            check_room(account, now)?;
            let grace = UnixMs::from_instant(now + KEY_GRACE);
            let until = before.until.map_or(grace, |until| until.min(grace));
            Event::KeyChanged { account: account_id, id, until: Some(until), used: None }
        }
    };
    if !before.works_at(now_ms) {
        check_room(account, now)?;
    }
    let until = before.lifetime_days().map(|days| expiry(now, days.max(1)));
    let (name, scopes, created) = (before.name.clone(), before.scopes, Some(Day::nearest(now)));
    let new = Box::new(Key::new(free_id(account)?, name, key, scopes, created, until));
    Ok(Decided::new([ended, Event::KeyPut { account: account_id, new }], ()))
}

fn removed(account: &Account, id: KeyId) -> Event {
    Event::Removed { account: account.id, row: RowOf::Key(id) }
}

fn free_id(account: &Account) -> Result<KeyId, WriteError> {
    let is_taken = |id| id == KeyId::FIRST || account.access.keys.get(id).is_some();
    draw_id(KeyId::new, is_taken)
}

fn expiry(now: DateTime<Utc>, days: u16) -> UnixMs {
    UnixMs::from_instant(now + TimeDelta::days(days.into()))
}

fn check_enabled(account: &Account) -> Result<(), WriteError> {
    if account.is_disabled() { Err(WriteError::NotFound) } else { Ok(()) }
}

fn check_room(account: &Account, now: DateTime<Utc>) -> Result<(), WriteError> {
    if account.access.keys.working(UnixMs::from_instant(now)) < KEYS_MAX as usize {
        return Ok(());
    }
    Err(WriteError::TooMany { what: "API keys", limit: KEYS_MAX })
}
