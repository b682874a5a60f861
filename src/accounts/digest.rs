//! The morning digest (`data/docs/new-names.md`): its settings, the accounts for which it is due, and
//! the record of what it has. As with [`matches`](super::matches), that record takes no account lock,
//! and applying it skips accounts that already have the digest of this hour.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::data::UserData;
use super::data::account::Account;
use super::data::deliveries::DigestRows;
use super::data::digest::Digest;
use super::data::rules::Channel;
use super::decide::{Decided, random_bytes};
use super::deliveries::{live_channels, new_unsubscribe_token};
use super::error::WriteError;
use super::event::Event;
use super::rules::check_address;
use super::store::{Caller, Store};
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::time::UnixMs;
use crate::vocab::zone::{Hour, Zone};

/// Settings of a digest to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDigest {
    pub hour: Hour,
    pub zone: Zone,
    pub best: bool,
    pub searches: bool,
}

/// A digest that is due.
#[derive(Clone, Debug)]
pub struct DueDigest {
    pub account: AccountId,
    pub digest: Digest,
    /// The hour for which it is due.
    pub hour: UnixMs,
    pub owned: Arc<UserData>,
}

/// The new names for a digest that is due.
#[derive(Clone, Debug)]
pub struct FoundDigest {
    pub account: AccountId,
    pub hour: UnixMs,
    /// Number of new names of all, if the best are wanted.
    pub total: u32,
    pub rows: DigestRows,
}

impl Store {
    /// Turns the digest on or off (`None`), or changes it. Names of lists up to `batch` are not new in
    /// the first one. Saving a digest also ends an unsubscription from its mails.
    ///
    /// # Errors
    /// [`WriteError`]: the address is not verified.
    pub async fn set_digest(
        &self,
        caller: &Caller,
        new: Option<NewDigest>,
        batch: u64,
        now: UnixMs,
    ) -> Result<(), WriteError> {
        self.write(caller, |account, _| set(account, new, batch, now)).await
    }

    /// Returns the digests that are due at `now` and can be mailed.
    pub fn due_digests(&self, now: DateTime<Utc>) -> Vec<DueDigest> {
        let accounts = self.state().accounts.clone();
        let enabled = accounts.values().filter(|account| !account.is_disabled());
        let due = enabled.filter_map(|account| {
            let digest = account.data.digest?;
            let hour = digest.due(now)?;
            let owned = Arc::clone(&account.data);
            is_mailed(account).then_some(DueDigest { account: account.id, digest, hour, owned })
        });
        due.collect()
    }

    /// Queues these digests, and moves their accounts to `batch`. An account without new names gets no
    /// message. Durable when it returns; after an error, the digests are still due.
    ///
    /// # Errors
    /// [`WriteError::Journal`], [`WriteError::Random`].
    pub async fn record_digests(
        &self,
        batch: u64,
        found: Vec<FoundDigest>,
    ) -> Result<(), WriteError> {
        let at = UnixMs::from_instant(self.0.clock.now());
        for FoundDigest { account, hour, total, rows } in found {
            let owner = self.state().account(account).map(Arc::clone);
            let Some(owner) = owner.filter(|owner| is_mailed(owner)) else { continue };
            let has_names = rows != DigestRows::default();
            let delivery = has_names.then(random_bytes).transpose()?.map(DeliveryId::new);
            let token = match delivery {
                Some(_) => new_unsubscribe_token(&owner, Digest::sender(), &[0])?,
                None => None,
            };
            let queued = Event::DigestQueued { account, hour, at, batch, delivery, total, rows };
            self.append(token.into_iter().chain([queued]).collect(), None).await?;
        }
        self.0.wakes.deliveries.notify_one();
        Ok(())
    }
}

/// Whether mails of the digest reach the owner.
fn is_mailed(account: &Account) -> bool {
    !live_channels(account, Digest::sender()).is_empty()
}

fn set(
    account: &Account,
    new: Option<NewDigest>,
    batch: u64,
    now: UnixMs,
) -> Result<Decided<()>, WriteError> {
    let before = account.data.digest;
    if new.is_some() {
        check_address(account, &[Channel::Email])?;
    }
    let is_off = account.data.switched_off(RuleId::DIGEST, &Channel::Email).is_some();
    let (through, batch) = match before.filter(|_| !is_off) {
        Some(before) => (before.through, before.batch),
        None => (now, batch),
    };
    let digest = new.map(|NewDigest { hour, zone, best, searches }| {
        // An hour that has passed today must not be due at once.
        let is_moved = before.is_some_and(|before| (before.hour, before.zone) != (hour, zone));
        let through = if is_moved { through.max(now) } else { through };
        Digest { hour, zone, through, batch, best, searches }
    });
    let id = account.id;
    let set = (digest != before).then_some(Event::DigestSet { account: id, digest });
    let on = (is_off && digest.is_some()).then_some(Event::ChannelsSwitched {
        account: id,
        rule: RuleId::DIGEST,
        off: None,
    });
    Ok(Decided::new(set.into_iter().chain(on), ()))
}
