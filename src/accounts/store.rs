//! The users' state, durable: decide, append, apply.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::decide::{Command, Refusal, decide};
use super::email::Email;
use super::event::{EVENT, Event, StoredDay};
use super::keys::{self, ApiKey};
use super::password::PasswordHash;
use super::quota::{Allowance, Counter, DayUsage, Usage};
use super::state::{Account, AccountSnapshot, State};
use crate::journal::fs::{Disk, Fs};
use crate::journal::{AppendError, Journal, JournalError, Options, Recovery};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::{Plan, PlanLimits, Plans};

/// Where the journal lives, inside the data folder.
const JOURNAL_FOLDER: &str = "journal";

/// All accounts, their keys and their usage. Cheap to clone; clones are one store.
///
/// Methods that change accounts block until the change is on disk: async code calls them through
/// `spawn_blocking`. [`Store::authenticate`] takes about a microsecond, most of it SHA-256; a charge
/// a tenth of that. Neither waits for the disk.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    journal: Journal,
    /// Written by the journal's thread alone, once an event is on disk. Held for a look-up or for
    /// one event.
    state: Arc<RwLock<State>>,
    /// Accounts with a command between decide and apply: a second command on the same account waits,
    /// so that it decides on what the first one led to. Others go on and share a sync.
    in_flight: Mutex<HashSet<Email>>,
    landed: Condvar,
    last_account: AtomicU64,
    /// The latest UTC day seen, as [`Day::raw`]; 0 before the first.
    last_day: AtomicU16,
    warned_of_clock: AtomicBool,
    plans: Plans,
    clock: Clock,
    recovery: Recovery,
}

/// Whose key it was. Good for one request: it keeps the plan of the moment it was made.
#[derive(Clone)]
pub struct Caller {
    /// The account.
    pub account: AccountId,
    /// What it pays for.
    pub plan: Plan,
    usage: Arc<Usage>,
}

/// A new key, and whether an older one stopped working for it.
pub struct IssuedKey {
    /// The key, to be shown once.
    pub key: ApiKey,
    /// Whether the account had one before.
    pub replaced: bool,
}

/// An account as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSummary {
    /// Its number.
    pub id: AccountId,
    /// Its address.
    pub email: Email,
    /// What it pays for.
    pub plan: Plan,
    /// Whether it has been shut.
    pub disabled: bool,
    /// The UTC day it was added.
    pub created: Day,
    /// The last four characters of its key; `None` without one.
    pub key_last4: Option<String>,
    /// Whether it has a password.
    pub has_password: bool,
    /// JSON requests granted today.
    pub requests_today: u32,
    /// Exports granted today.
    pub exports_today: u32,
}

/// Why a store could not be opened.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The journal could not be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Why a command was not carried out.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It does not fit the accounts there are.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It could not be made durable.
    #[error(transparent)]
    Journal(#[from] AppendError),
    /// No key could be made.
    #[error("the system's random source failed: {0}")]
    Random(getrandom::Error),
}

impl Store {
    /// Opens the store in the data folder `dir` (its journal lives in `dir/journal`), making it when
    /// there is none.
    ///
    /// # Errors
    /// [`StoreError`]: in use by another process, damaged, or the disk failed.
    pub fn open(dir: &Path, plans: Plans, clock: Clock) -> Result<Store, StoreError> {
        Store::open_on(Arc::new(Disk), dir, plans, clock)
    }

    /// As [`Store::open`], on a disk of the caller's: tests bring one that fails.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(
        fs: Arc<dyn Fs>,
        dir: &Path,
        plans: Plans,
        clock: Clock,
    ) -> Result<Store, StoreError> {
        let clock_ms = Arc::new(move || clock.now().timestamp_millis().max(0) as u64);
        let options = Options { fs, ..Options::new(&dir.join(JOURNAL_FOLDER), clock_ms) };
        let mut state = State::default();
        let (journal, recovery) = Journal::open(options, |record| {
            state.apply(&Event::decode(record.fields.kind, record.payload)?);
            Ok(())
        })?;
        Ok(Store(Arc::new(Inner {
            journal,
            in_flight: Mutex::default(),
            landed: Condvar::new(),
            last_account: AtomicU64::new(state.last_account()),
            last_day: AtomicU16::new(Day::raw_or_zero(state.last_day())),
            warned_of_clock: AtomicBool::new(false),
            state: Arc::new(RwLock::new(state)),
            plans,
            clock,
            recovery,
        })))
    }

    /// Whose key `presented` is. `None` alike for a malformed, an unknown and a revoked one.
    pub fn authenticate(&self, presented: &str) -> Option<Caller> {
        let digest = keys::digest_of_presented(presented)?;
        let state = self.state();
        let account = state.by_key(&digest)?;
        Some(Caller { account: account.id, plan: account.plan, usage: Arc::clone(&account.usage) })
    }

    /// Charges one JSON request at `now`, if the day's allowance has one left.
    pub fn charge_request(&self, caller: &Caller, now: DateTime<Utc>) -> Allowance {
        let limit = self.limits(caller).requests_per_day;
        self.charge(Counter::Requests, caller, limit, now)
    }

    /// Charges one export at `now`, if the day's budget has one left.
    pub fn charge_export(&self, caller: &Caller, now: DateTime<Utc>) -> Allowance {
        let limit = self.limits(caller).exports_per_day;
        self.charge(Counter::Exports, caller, limit, now)
    }

    /// What the caller's plan allows.
    pub fn limits(&self, caller: &Caller) -> &PlanLimits {
        self.0.plans.of(caller.plan)
    }

    /// Adds an account. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: the address is taken, or the journal takes no writes.
    pub fn add_account(
        &self,
        email: &Email,
        plan: Plan,
        password: Option<PasswordHash>,
    ) -> Result<AccountId, CommandError> {
        // A number is spent even when the command is refused: it only must not come twice.
        let account = AccountId(self.0.last_account.fetch_add(1, Ordering::Relaxed) + 1);
        self.run(email, Command::Add { account, plan, password })?;
        Ok(account)
    }

    /// Lets an account pay for another plan, from its next request on. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: no such account, or the journal takes no writes.
    pub fn set_plan(&self, email: &Email, plan: Plan) -> Result<(), CommandError> {
        self.run(email, Command::SetPlan(plan)).map(|_| ())
    }

    /// Makes a new key for an account; the old one stops working at once. What was used today stays
    /// used. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: no such account, it is disabled, or the journal takes no writes.
    pub fn issue_key(&self, email: &Email) -> Result<IssuedKey, CommandError> {
        let key = ApiKey::generate().map_err(CommandError::Random)?;
        let before = self.run(email, Command::IssueKey(key.stored()))?;
        Ok(IssuedKey { key, replaced: before.is_some_and(|account| account.key.is_some()) })
    }

    /// Shuts an account; its key stops working at once. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: no such account, or the journal takes no writes.
    pub fn disable(&self, email: &Email) -> Result<(), CommandError> {
        self.run(email, Command::Disable).map(|_| ())
    }

    /// All accounts, in the order they were added.
    pub fn list(&self) -> Vec<AccountSummary> {
        let today = self.day(self.0.clock.now());
        let mut all: Vec<_> =
            self.state().accounts().map(|account| AccountSummary::of(account, today)).collect();
        all.sort_by_key(|account| account.id);
        all
    }

    /// Everything the store knows, to compare stores by.
    pub fn snapshot(&self) -> Vec<AccountSnapshot> {
        self.state().snapshot()
    }

    /// What was found when the store was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.0.recovery
    }

    /// Whether changes can be made.
    ///
    /// # Errors
    /// `read_only` after a failed write: keys still work, and are still charged, until a restart.
    pub fn health(&self) -> Result<(), String> {
        self.0.journal.health().map_err(|_| "read_only".into())
    }

    /// Writes down what was used to the last request, and closes the journal in order. Clones of the
    /// store go on reading; changes are refused.
    ///
    /// # Errors
    /// What could not be written.
    pub fn close(self) -> Result<(), AppendError> {
        let accounts: Vec<(AccountId, Arc<Usage>)> = self
            .state()
            .accounts()
            .map(|account| (account.id, Arc::clone(&account.usage)))
            .collect();
        for (account, usage) in accounts {
            if let Some(used) = usage.take_unnoted() {
                self.note_and_wait(account, used)?;
            }
        }
        self.0.journal.close()
    }

    /// Runs one command; returns the account as it was before, if it was there.
    fn run(&self, email: &Email, command: Command) -> Result<Option<Account>, CommandError> {
        let _landing = self.take_off(email);
        let before = self.state().by_email(email).cloned();
        let event = decide(&self.state(), email, command, self.0.clock.today())?;
        if let Some(event) = event {
            let payload = event.encode();
            let state = Arc::clone(&self.0.state);
            self.0.journal.append(EVENT, payload, move |_| {
                state.write().unwrap_or_else(PoisonError::into_inner).apply(&event);
            })?;
        }
        Ok(before)
    }

    /// Waits until no command on this account is between decide and apply, then is that command.
    fn take_off<'a>(&'a self, email: &'a Email) -> Landing<'a> {
        let mut in_flight = self.0.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        while in_flight.contains(email) {
            in_flight = self.0.landed.wait(in_flight).unwrap_or_else(PoisonError::into_inner);
        }
        in_flight.insert(email.clone());
        Landing { inner: &self.0, email }
    }

    fn charge(
        &self,
        counter: Counter,
        caller: &Caller,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Allowance {
        let day = self.day(now);
        caller.usage.charge(counter, day, limit, |used| {
            let note = usage_noted(caller.account, used);
            note.is_some_and(|note| self.0.journal.append_lazy(EVENT, note.encode()).is_ok())
        })
    }

    /// The UTC day of `now`, or the latest one seen where that is later: a clock that steps back
    /// opens no day again.
    fn day(&self, now: DateTime<Utc>) -> Day {
        let nearest = if now.timestamp() < 0 { Day::MIN } else { Day::MAX };
        let day = Day::of(now).unwrap_or(nearest);
        let last = &self.0.last_day;
        if last.load(Ordering::Relaxed) == day.raw() {
            return day;
        }
        let before = last.fetch_max(day.raw(), Ordering::Relaxed);
        if before < day.raw() {
            // Should this fail, the next note of usage brings the day.
            let began = Event::DayBegan { day: StoredDay(day) };
            let _ = self.0.journal.append_lazy(EVENT, began.encode());
            return day;
        }
        let later = Day::from_raw(before).unwrap_or(day);
        if later != day && !self.0.warned_of_clock.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                clock.day = %day, latest.day = %later,
                "the clock is behind the latest day seen; allowances stay those of that day"
            );
        }
        later
    }

    fn note_and_wait(&self, account: AccountId, used: DayUsage) -> Result<(), AppendError> {
        let Some(note) = usage_noted(account, used) else { return Ok(()) };
        loop {
            // Lazy: the close syncs all of them at once. A full queue empties while we wait.
            match self.0.journal.append_lazy(EVENT, note.encode()) {
                Err(AppendError::Busy) => std::thread::yield_now(),
                other => return other,
            }
        }
    }

    /// The state. No code panics while it holds the lock.
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn usage_noted(account: AccountId, used: DayUsage) -> Option<Event> {
    let DayUsage { day, requests, exports } = used;
    Some(Event::UsageNoted { account, day: StoredDay(day?), requests, exports })
}

/// Lets the next command on the account go on.
struct Landing<'a> {
    inner: &'a Inner,
    email: &'a Email,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let mut in_flight = self.inner.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        in_flight.remove(self.email);
        drop(in_flight);
        self.inner.landed.notify_all();
    }
}

impl AccountSummary {
    fn of(account: &Account, today: Day) -> AccountSummary {
        let used = account.usage.now();
        let used = if used.day == Some(today) { used } else { DayUsage::default() };
        AccountSummary {
            id: account.id,
            email: account.email.clone(),
            plan: account.plan,
            disabled: account.disabled,
            created: account.created,
            key_last4: account.key.map(|key| key.last4()),
            has_password: account.password.is_some(),
            requests_today: used.requests,
            exports_today: used.exports,
        }
    }
}
