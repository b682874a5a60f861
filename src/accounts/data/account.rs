//! One account.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::accounts::data::UserData;
use crate::accounts::data::access::Access;
use crate::accounts::data::keys::Key;
use crate::accounts::email::Email;
use crate::accounts::keys::StoredKey;
use crate::accounts::password::PasswordHash;
use crate::accounts::quota::{DayUsage, Usage};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;

/// An account and everything it owns. Snapshots store its fields by position, and what it owns in
/// items of their own.
#[derive(Clone, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    pub email: Email,
    pub plan: Plan,
    /// The password for logging in, if one was set.
    pub password: Option<PasswordHash>,
    /// A disabled account has no working key and no session.
    pub disabled: bool,
    /// The UTC day it was added.
    pub created: Day,
    /// A slot of the stored form: the only key that an account of an older version has. Always `None` in
    /// memory, where it is one of those in `access`.
    pub former_key: Option<StoredKey>,
    /// Usage as far as the journal holds it.
    pub noted: DayUsage,
    /// The live count, exact to the last request. Not part of the stored state. It belongs to the
    /// account, not to the key: a new key has no fresh allowance.
    #[serde(skip)]
    pub usage: Arc<Usage>,
    #[serde(skip)]
    pub access: Arc<Access>,
    #[serde(skip)]
    pub data: Arc<UserData>,
}

impl Account {
    /// An account that was just added by an operator.
    pub fn new(
        id: AccountId,
        email: Email,
        plan: Plan,
        password: Option<PasswordHash>,
        created: Day,
    ) -> Account {
        Account {
            id,
            email,
            plan,
            password,
            disabled: false,
            created,
            former_key: None,
            noted: DayUsage::default(),
            usage: Arc::default(),
            access: Arc::default(),
            data: Arc::default(),
        }
    }

    /// Moves the key of an older version to the others.
    pub fn adopt_former_key(&mut self) {
        if let Some(key) = self.former_key.take() {
            Arc::make_mut(&mut self.access).keys.put(Key::first(key, None));
        }
    }

    /// Usage on `today`.
    pub fn usage_on(&self, today: Day) -> DayUsage {
        let used = self.usage.now();
        if used.day == Some(today) { used } else { DayUsage::default() }
    }
}
