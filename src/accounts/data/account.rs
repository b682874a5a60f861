//! One account.

use std::sync::Arc;

use crate::data::UserData;
use crate::data::access::Access;
use crate::email::Email;
use crate::password::PasswordHash;
use crate::quota::{DayUsage, Usage};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// An account and everything it owns.
#[derive(Clone)]
pub struct Account {
    pub id: AccountId,
    pub email: Email,
    pub plan: Plan,
    /// The password for logging in, if one was set.
    pub password: Option<PasswordHash>,
    /// Whether the account is disabled permanently; see [`Account::is_disabled`].
    pub disabled: bool,
    /// When the account is erased. Until then it is disabled, and can be restored.
    pub erase_at: Option<UnixMs>,
    /// UTC day on which it was added.
    pub created: Day,
    /// Usage that is recorded in the journal.
    pub noted: DayUsage,
    /// The live count, exact to the last request. The live count is not part of the stored state.
    /// The count belongs to the account, not to the key, so that a new key gets no fresh allowance.
    pub usage: Arc<Usage>,
    pub access: Arc<Access>,
    pub data: Arc<UserData>,
}

impl Account {
    /// Returns an account that was just added by an operator.
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
            erase_at: None,
            created,
            noted: DayUsage::default(),
            usage: Arc::default(),
            access: Arc::default(),
            data: Arc::default(),
        }
    }

    /// Returns true if no key, session or feed of the account works, and nothing is sent to its owner.
    pub fn is_disabled(&self) -> bool {
        self.disabled || self.erase_at.is_some()
    }

    /// Returns the usage on `today`.
    pub fn usage_on(&self, today: Day) -> DayUsage {
        let used = self.usage.now();
        if used.day == Some(today) { used } else { DayUsage::default() }
    }
}
