//! The users' state, durable: decide, append, apply.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::decide::{Command, Decided, Refusal, decide};
use super::email::Email;
use super::event::{Event, StoredDay, Transaction};
use super::figures;
use super::hashing::Hashing;
use super::keys::{self, ApiKey};
use super::outbox::Wakes;
use super::password::PasswordHash;
use super::quota::{Allowance, Counter, DayUsage, Usage};
use super::snapshot::Loader;
use super::snapshotter::{SnapshotError, Snapshotter};
use super::state::{Account, Counts, State};
use super::stripes::{Stripe, Stripes};
use super::write::WriteError;
use crate::journal::fs::{Disk, Fs};
use crate::journal::{
    AppendError, Appended, Inspection, Journal, JournalError, Options, Recovery,
    SEGMENT_BYTES_DEFAULT, SnapshotReport, Unread, inspect_to,
};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::{Plan, PlanLimits, Plans};

/// Where the journal lives, inside the data folder.
pub(super) const JOURNAL_FOLDER: &str = "journal";

/// The log since the last snapshot grows to 64 MiB, or half that snapshot's size if it is more,
/// before another is made: a start reads each byte of it, and a snapshot writes every row.
const SNAPSHOT_AFTER_BYTES: u64 = 64 << 20;

/// All accounts, their keys, their usage and what they own. Cheap to clone; clones are one store.
///
/// Methods that change accounts block until the change is on disk: async code calls them through
/// `spawn_blocking`. What accounts do with their own things is async. [`Store::authenticate`] takes
/// about a microsecond, most of it SHA-256; a charge a tenth of that. Neither waits for the disk.
#[derive(Clone)]
pub struct Store(pub(super) Arc<Inner>);

pub(super) struct Inner {
    /// Ends before `shared` does.
    snapshotter: Snapshotter,
    pub(super) shared: Arc<Shared>,
    /// A command holds the stripe of its account from before it decides until it is applied: a
    /// second one decides on what the first led to. Others go on and share a sync.
    pub(super) stripes: Stripes,
    pub(super) hashing: Hashing,
    pub(super) last_account: AtomicU64,
    /// The latest UTC day seen, as [`Day::raw`]; 0 before the first.
    last_day: AtomicU16,
    warned_of_clock: AtomicBool,
    /// Held while the matches of a list are written: the next list is decided on what they led to.
    pub(super) matching: tokio::sync::Mutex<()>,
    pub(super) wakes: Wakes,
    pub(super) plans: Plans,
    pub(super) clock: Clock,
    recovery: Recovery,
}

/// What the snapshotter's thread shares with the store.
pub(super) struct Shared {
    pub(super) journal: Journal,
    /// The journal's folder and disk, for those who look at its files.
    pub(super) dir: PathBuf,
    pub(super) fs: Arc<dyn Fs>,
    /// Written by the journal's thread alone, once a record is on disk. Held for a look-up or for
    /// one transaction.
    pub(super) state: Arc<RwLock<State>>,
}

/// Where a store lives and what it is given to work with.
pub struct StoreOptions {
    /// The data folder; the journal is in `journal` inside it.
    pub dir: PathBuf,
    /// What each plan allows.
    pub plans: Plans,
    /// The time.
    pub clock: Clock,
    /// The disk.
    pub fs: Arc<dyn Fs>,
    /// Bytes of a journal segment.
    pub segment_bytes: u64,
    /// A snapshot is made when the log has grown by this many bytes since the last one, or by half
    /// of that one's size where it is more.
    pub snapshot_after_bytes: u64,
}

impl StoreOptions {
    /// The store in the data folder `dir` on the real disk.
    pub fn new(dir: &Path, plans: Plans, clock: Clock) -> StoreOptions {
        StoreOptions {
            dir: dir.to_owned(),
            plans,
            clock,
            fs: Arc::new(Disk),
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            snapshot_after_bytes: SNAPSHOT_AFTER_BYTES,
        }
    }
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
    /// Whether mails may go to its address.
    #[serde(default = "verified")]
    pub email_verified: bool,
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
        Store::open_with(StoreOptions { fs, ..StoreOptions::new(dir, plans, clock) })
    }

    /// As [`Store::open`], with everything chosen.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(options: StoreOptions) -> Result<Store, StoreError> {
        let StoreOptions { dir, plans, clock, fs, segment_bytes, snapshot_after_bytes } = options;
        let clock_ms = Arc::new(move || clock.now().timestamp_millis().max(0) as u64);
        let dir = dir.join(JOURNAL_FOLDER);
        let journal = Options::new(&dir, clock_ms);
        let fs_of_journal = Arc::clone(&fs);
        let mut loader = Loader::default();
        let (journal, recovery) =
            Journal::open(Options { segment_bytes, fs: fs_of_journal, ..journal }, &mut loader)?;
        let snapshot_bytes = recovery.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes);
        let state = loader.into_state(recovery.position);
        let (last_account, last_day) = (state.last_account(), state.last_day());
        let state = Arc::new(RwLock::new(state));
        let shared = Arc::new(Shared { journal, dir, fs, state });
        Ok(Store(Arc::new(Inner {
            snapshotter: Snapshotter::start(&shared, snapshot_after_bytes, snapshot_bytes),
            shared,
            stripes: Stripes::new(),
            hashing: Hashing::default(),
            last_account: AtomicU64::new(last_account),
            last_day: AtomicU16::new(Day::raw_or_zero(last_day)),
            warned_of_clock: AtomicBool::new(false),
            matching: tokio::sync::Mutex::default(),
            wakes: Wakes::default(),
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
        Some(Caller::of(account))
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
        let stripe = self.0.stripes.of_blocking(email);
        self.run(stripe, email, Command::Add { plan, password })?;
        let state = self.state();
        // What was added stays: accounts are shut, never removed.
        Ok(state.by_email(email).expect("it was applied before the append returned").id)
    }

    /// Lets an account pay for another plan, from its next request on. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: no such account, or the journal takes no writes.
    pub fn set_plan(&self, email: &Email, plan: Plan) -> Result<(), CommandError> {
        self.run(self.stripe(email), email, Command::SetPlan(plan)).map(|_| ())
    }

    /// Makes a new key for an account; the old one stops working at once. What was used today stays
    /// used. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: no such account, it is disabled, or the journal takes no writes.
    pub fn issue_key(&self, email: &Email) -> Result<IssuedKey, CommandError> {
        let key = ApiKey::generate().map_err(CommandError::Random)?;
        let before = self.run(self.stripe(email), email, Command::IssueKey(key.stored()))?;
        Ok(IssuedKey { key, replaced: before.is_some_and(|had_key| had_key) })
    }

    /// Shuts an account; its key stops working at once, and its sessions end. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: no such account, or the journal takes no writes.
    pub fn disable(&self, email: &Email) -> Result<(), CommandError> {
        self.run(self.stripe(email), email, Command::Disable).map(|_| ())
    }

    /// Gives an account another password; everybody who had logged in is out. Durable when it returns.
    ///
    /// # Errors
    /// [`CommandError`]: no such account, it is disabled, or the journal takes no writes.
    pub fn set_password(&self, email: &Email, password: PasswordHash) -> Result<(), CommandError> {
        self.run(self.stripe(email), email, Command::SetPassword(password)).map(|_| ())
    }

    /// All accounts, in the order they were added.
    pub fn list(&self) -> Vec<AccountSummary> {
        let today = self.day(self.0.clock.now());
        let mut all: Vec<_> =
            self.state().accounts().map(|account| AccountSummary::of(account, today)).collect();
        all.sort_by_key(|account| account.id);
        all
    }

    /// What stands for everything the store knows: stores with equal states have equal digests,
    /// whatever led to them. The digest of a snapshot or backup of this state is the same. What was
    /// used since the last note of it is not part of the state.
    pub fn state_digest(&self) -> [u8; 32] {
        self.0.shared.digest()
    }

    /// How much there is.
    pub fn counts(&self) -> Counts {
        self.state().counts()
    }

    /// Writes a snapshot into the journal's folder now, so that the next start reads it and no log.
    /// Blocks; writes go on meanwhile.
    ///
    /// # Errors
    /// [`SnapshotError`]. Nothing is lost then.
    pub fn snapshot_now(&self) -> Result<SnapshotReport, SnapshotError> {
        self.0.snapshotter.snapshot(&self.0.shared)
    }

    /// Writes everything to `file`, which must not be there yet; `journal::restore` makes a store
    /// of it. Blocks; writes go on meanwhile and are not in it.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn backup(&self, file: &Path) -> Result<SnapshotReport, SnapshotError> {
        self.0.snapshotter.backup(&self.0.shared, file)
    }

    /// Reads the journal's own files while it is written, as far as it is known to be synced.
    ///
    /// # Errors
    /// [`JournalError`]: what is damaged or missing. A snapshot that was finished meanwhile may have
    /// removed what was to be read: worth a second try.
    pub fn inspect_journal(&self) -> Result<Inspection, JournalError> {
        let Shared { journal, dir, fs, .. } = &*self.0.shared;
        inspect_to(fs.as_ref(), dir, journal.durable_seq(), &mut Unread)
    }

    /// Bytes of log that the next start would read.
    pub fn log_bytes_since_snapshot(&self) -> u64 {
        self.0.shared.journal.log_bytes_since_snapshot()
    }

    /// What was found when the store was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.0.recovery
    }

    /// Whether changes can be made.
    ///
    /// # Errors
    /// `read_only` after a failed write: keys still work, and are still charged, until a restart.
    /// `disk_full` until there is room again, `fenced` where another process took the folder,
    /// `closed` after a close.
    pub fn health(&self) -> Result<(), String> {
        let word = |refusal| match refusal {
            AppendError::DiskFull => "disk_full",
            AppendError::Fenced => "fenced",
            AppendError::Closed => "closed",
            AppendError::Poisoned { .. } | AppendError::Busy | AppendError::TooLong { .. } => {
                "read_only"
            }
        };
        self.0.shared.journal.health().map_err(|refusal| word(refusal).to_owned())
    }

    /// Writes down what was used to the last request, and closes the journal in order. Clones of the
    /// store go on reading; changes are refused. On a full disk the last counts are lost, up to a
    /// hundredth of an allowance, as in a crash; the end is in order all the same.
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
            let Some(used) = usage.take_unnoted() else { continue };
            match self.note_and_wait(account, used) {
                Ok(()) => {}
                Err(AppendError::DiskFull) => {
                    tracing::warn!("the disk is full: the last counts of requests are not kept");
                    break;
                }
                Err(err) => return Err(err),
            }
        }
        self.0.snapshotter.stop();
        self.0.shared.journal.close()
    }

    /// Runs one command; returns whether the account had a key before, if it was there.
    fn run(
        &self,
        stripe: Stripe,
        email: &Email,
        command: Command,
    ) -> Result<Option<bool>, CommandError> {
        let number = || AccountId(self.0.last_account.fetch_add(1, Ordering::Relaxed) + 1);
        let (had_key, event) = {
            let state = self.state();
            let had_key = state.by_email(email).map(|account| account.key.is_some());
            (had_key, decide(&state, email, command, self.0.clock.today(), number)?)
        };
        if let Some(event) = event {
            let transaction = Transaction(vec![event]);
            let (kind, payload) = transaction.encode();
            self.0.shared.journal.append(
                kind,
                payload,
                self.applying(transaction, Some(stripe)),
            )?;
            self.0.snapshotter.consider(&self.0.shared);
        }
        Ok(had_key)
    }

    /// Lets `decide` read the account and makes durable what comes of it. The answer is given when
    /// it is; what is in flight goes on when nobody awaits it any more.
    pub(super) async fn write<T>(
        &self,
        caller: &Caller,
        decide: impl FnOnce(&Account, &PlanLimits) -> Result<Decided<T>, WriteError>,
    ) -> Result<T, WriteError> {
        self.write_to(caller.account, decide).await
    }

    /// As [`Store::write`], of an account that nobody presented a key of.
    pub(super) async fn write_to<T>(
        &self,
        account: AccountId,
        decide: impl FnOnce(&Account, &PlanLimits) -> Result<Decided<T>, WriteError>,
    ) -> Result<T, WriteError> {
        let stripe = self.0.stripes.of(&account).await;
        let Decided { events, answer } = self.decide_for(account, decide)?;
        self.append_as(events, Some(stripe)).await?;
        Ok(answer)
    }

    /// Makes these durable as one record, if there are any.
    pub(super) async fn append_as(
        &self,
        events: Vec<Event>,
        stripe: Option<Stripe>,
    ) -> Result<(), WriteError> {
        if events.is_empty() {
            return Ok(());
        }
        let transaction = Transaction(events);
        let (kind, payload) = transaction.encode();
        let journal = &self.0.shared.journal;
        let apply = self.applying(transaction, stripe);
        journal.append_async(kind, payload, apply)?.durable().await?;
        self.0.snapshotter.consider(&self.0.shared);
        Ok(())
    }

    /// Decides on the account as it is, without keeping others from reading or changing theirs.
    fn decide_for<T>(
        &self,
        account: AccountId,
        decide: impl FnOnce(&Account, &PlanLimits) -> Result<Decided<T>, WriteError>,
    ) -> Result<Decided<T>, WriteError> {
        let account = self.state().account(account).map(Arc::clone);
        let account = account.ok_or(WriteError::NotFound)?;
        // The plan of this moment: the caller's may be of a moment ago.
        decide(&account, self.0.plans.of(account.plan))
    }

    /// What the journal is to do once `transaction` is on disk. The stripe goes with it, so that a
    /// caller that has gone away lets nobody decide too early.
    fn applying(
        &self,
        transaction: Transaction,
        stripe: Option<Stripe>,
    ) -> impl FnOnce(Appended) + Send + 'static {
        let state = Arc::clone(&self.0.shared.state);
        let wake = self.0.wakes.after(&transaction);
        move |appended| {
            let mut state = state.write().unwrap_or_else(PoisonError::into_inner);
            state.apply(transaction, appended.position);
            drop(state);
            drop(stripe);
            wake();
        }
    }

    /// The stripe for commands on the account with this address; of the address where there is
    /// none, which is all the same then. Accounts keep their addresses.
    fn stripe(&self, email: &Email) -> Stripe {
        let account = self.state().by_email(email).map(|account| account.id);
        match account {
            Some(account) => self.0.stripes.of_blocking(&account),
            None => self.0.stripes.of_blocking(email),
        }
    }

    /// Writes down without waiting.
    pub(super) fn note(&self, event: Event) -> Result<(), AppendError> {
        let transaction = Transaction(vec![event]);
        let (kind, payload) = transaction.encode();
        self.0.shared.journal.append_lazy(kind, payload, self.applying(transaction, None))
    }

    fn charge(
        &self,
        counter: Counter,
        caller: &Caller,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Allowance {
        let day = self.day(now);
        let allowance = caller.usage.charge(counter, day, limit, |used| {
            let note = usage_noted(caller.account, used);
            note.is_some_and(|note| self.note(note).is_ok())
        });
        figures::count_usage(caller.plan, counter, allowance.granted);
        allowance
    }

    /// The UTC day of `now`, or the latest one seen where that is later: a clock that steps back
    /// opens no day again.
    pub(super) fn day(&self, now: DateTime<Utc>) -> Day {
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
            let _ = self.note(began);
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
            match self.note(note.clone()) {
                Err(AppendError::Busy) => std::thread::yield_now(),
                other => return other,
            }
        }
    }

    /// The state. No code panics while it holds the lock.
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a server says that does not tell: it knows no other addresses.
fn verified() -> bool {
    true
}

fn usage_noted(account: AccountId, used: DayUsage) -> Option<Event> {
    let DayUsage { day, requests, exports } = used;
    Some(Event::UsageNoted { account, day: StoredDay(day?), requests, exports })
}

impl Caller {
    pub(super) fn of(account: &Account) -> Caller {
        Caller { account: account.id, plan: account.plan, usage: Arc::clone(&account.usage) }
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
            email_verified: account.access.is_verified(),
            requests_today: used.requests,
            exports_today: used.exports,
        }
    }
}
