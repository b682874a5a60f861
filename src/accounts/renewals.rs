//! Reminders of renewals (`data/docs/portfolio.md`): the accounts that are to be reminded, and the record of
//! their messages. As with [`changes`](super::changes), the record takes no account lock, and applying it skips
//! accounts that were reminded of the day.

use super::data::account::Account;
use super::data::claims::Claim;
use super::error::WriteError;
use super::event::Event;
use super::store::Store;
use super::watch_alerts::{Queued, queue};
use crate::vocab::change::ChangeKind;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;

/// Days before a renewal on which its owner is reminded.
const DAYS_BEFORE: [i32; 3] = [60, 30, 7];

impl Store {
    /// Queues reminders of the renewals that come 60, 30 or 7 days after `today`, or after a day since the last
    /// reminders of the account. Returns the number of accounts. Durable when it returns. `has_mail` is true if
    /// this server sends mail.
    ///
    /// # Errors
    /// [`WriteError::Journal`], [`WriteError::Random`].
    pub async fn remind_of_renewals(
        &self,
        today: Day,
        has_mail: bool,
    ) -> Result<usize, WriteError> {
        let mut reminded = 0;
        for account in self.accounts_to_remind(today) {
            let _one = self.0.watching.lock().await;
            let owner = self.state().account(account).cloned();
            let Some(owner) = owner.filter(|owner| !owner.is_disabled()) else { continue };
            let at = UnixMs::from_instant(self.0.clock.now());
            let queued = queue(&owner, due(&owner, today), has_mail, at)?;
            let Some(Queued { token, changes, messages }) = queued else { continue };
            let recorded = Event::RenewalsDue { account, through: today, at, changes, messages };
            self.append(token.into_iter().chain([recorded]).collect(), None).await?;
            reminded += 1;
        }
        Ok(reminded)
    }

    fn accounts_to_remind(&self, today: Day) -> Vec<AccountId> {
        let accounts = self.state().accounts.clone();
        let is_due = |account: &&std::sync::Arc<Account>| {
            !account.is_disabled() && !due(account, today).is_empty()
        };
        accounts.values().filter(is_due).map(|account| account.id).collect()
    }
}

/// Returns the renewals of which an account is to be reminded, the next one first.
fn due(account: &Account, today: Day) -> Vec<WatchedChange> {
    let last = account.data.reminded.unwrap_or(today.plus(-1));
    let is_due = |day: Day| {
        DAYS_BEFORE.iter().map(|days| day.plus(-days)).any(|on| last < on && on <= today)
    };
    let renewal = |claim: &Claim| {
        let day = claim.renews_on.filter(|day| *day >= today && is_due(*day))?;
        let is_open = claim.is_held() && claim.decision().is_none();
        is_open.then(|| WatchedChange {
            kind: ChangeKind::RenewalDue,
            name: claim.domain.clone(),
            day,
            verified: false,
            dqs: None,
            dqs_before: None,
        })
    };
    let mut due: Vec<_> = account.data.claims().filter_map(renewal).collect();
    due.sort_by(|one, other| (one.day, &one.name).cmp(&(other.day, &other.name)));
    due.dedup_by(|one, other| one.name == other.name);
    due
}
