//! The users' state in memory: what all events so far lead to.

use std::collections::HashMap;
use std::sync::Arc;

use super::email::Email;
use super::event::Event;
use super::keys::{KeyDigest, StoredKey};
use super::password::PasswordHash;
use super::quota::{DayUsage, Usage};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;

/// All accounts.
#[derive(Default)]
pub struct State {
    accounts: HashMap<AccountId, Account>,
    by_email: HashMap<Email, AccountId>,
    by_key: HashMap<KeyDigest, AccountId>,
    last_account: u64,
    last_day: Option<Day>,
}

/// One account.
#[derive(Clone)]
pub struct Account {
    /// Its number.
    pub id: AccountId,
    /// Its address.
    pub email: Email,
    /// What it pays for.
    pub plan: Plan,
    /// For a log-in, where one was set.
    pub password: Option<PasswordHash>,
    /// Shut: none of its keys works.
    pub disabled: bool,
    /// The UTC day it was added.
    pub created: Day,
    /// Its one key that works.
    pub key: Option<StoredKey>,
    /// What it used. Outlives keys: they come and go, the allowance is the account's.
    pub usage: Arc<Usage>,
}

/// All there is to know about an account, to compare states by.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountSnapshot {
    id: AccountId,
    email: Email,
    plan: Plan,
    password: Option<PasswordHash>,
    disabled: bool,
    created: Day,
    key: Option<StoredKey>,
    usage: DayUsage,
}

impl State {
    /// Takes over what happened. Cannot fail, and gives the same state from the same events: it is
    /// all that a restart runs. An account that no event added cannot be in a journal whose chain
    /// is whole, so what names one changes nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AccountAdded { account, email, plan, password, on } => self.add(Account {
                id: *account,
                email: email.clone(),
                plan: *plan,
                password: password.clone(),
                disabled: false,
                created: on.0,
                key: None,
                usage: Arc::default(),
            }),
            Event::PlanSet { account, plan } => {
                if let Some(account) = self.accounts.get_mut(account) {
                    account.plan = *plan;
                }
            }
            Event::KeyIssued { account, key, .. } => self.set_key(*account, Some(*key)),
            Event::AccountDisabled { account } => {
                self.set_key(*account, None);
                if let Some(account) = self.accounts.get_mut(account) {
                    account.disabled = true;
                }
            }
            Event::UsageNoted { account, day, requests, exports } => {
                self.see_day(day.0);
                if let Some(account) = self.accounts.get(account) {
                    let (requests, exports) = (*requests, *exports);
                    account.usage.restore(DayUsage { day: Some(day.0), requests, exports });
                }
            }
            Event::DayBegan { day } => self.see_day(day.0),
        }
    }

    /// The account with this address.
    pub fn by_email(&self, email: &Email) -> Option<&Account> {
        self.accounts.get(self.by_email.get(email)?)
    }

    /// The account whose working key has this digest.
    pub fn by_key(&self, presented: &KeyDigest) -> Option<&Account> {
        let account = self.accounts.get(self.by_key.get(presented)?)?;
        account.key.is_some_and(|key| key.is(presented)).then_some(account)
    }

    /// All accounts, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    /// The highest account number there was.
    pub fn last_account(&self) -> u64 {
        self.last_account
    }

    /// The latest UTC day any event tells of.
    pub fn last_day(&self) -> Option<Day> {
        self.last_day
    }

    /// Everything, in order of account numbers: equal for equal states.
    pub fn snapshot(&self) -> Vec<AccountSnapshot> {
        let mut all: Vec<_> = self.accounts().map(AccountSnapshot::of).collect();
        all.sort_by_key(|account| account.id);
        all
    }

    fn add(&mut self, account: Account) {
        self.last_account = self.last_account.max(account.id.0);
        self.by_email.insert(account.email.clone(), account.id);
        self.accounts.insert(account.id, account);
    }

    fn set_key(&mut self, account: AccountId, key: Option<StoredKey>) {
        let Some(account) = self.accounts.get_mut(&account) else { return };
        if let Some(old) = account.key.take() {
            self.by_key.remove(old.digest());
        }
        if let Some(new) = key {
            self.by_key.insert(*new.digest(), account.id);
        }
        account.key = key;
    }

    fn see_day(&mut self, day: Day) {
        self.last_day = self.last_day.max(Some(day));
    }
}

impl AccountSnapshot {
    fn of(account: &Account) -> AccountSnapshot {
        let Account { id, email, plan, password, disabled, created, key, usage } = account.clone();
        AccountSnapshot { id, email, plan, password, disabled, created, key, usage: usage.now() }
    }
}
