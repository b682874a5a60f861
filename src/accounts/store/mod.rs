//! The durable store: decide, append, apply.
//!
//! A write is decided on the current state, appended to the journal as one record, and applied to
//! the state once the record is durable. At startup, the same records are applied again.

mod lead;
pub(super) mod limits;
pub mod locks;
pub mod metrics;
mod progress;
pub mod shared;
pub mod snapshot;
pub mod snapshotter;
pub mod state;
pub mod upgrade;
mod usage;
mod wakes;
mod watched;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLockReadGuard};
use std::time::{Duration, Instant};

use chrono::DateTime;
use rustc_hash::FxHashMap;
use tokio::sync::{Mutex, Notify};

use super::ceilings::{self, Ceilings};
use super::data::UserData;
use super::data::account::Account;
use super::decide::{Decided, random_bytes};
use super::error::WriteError;
use super::event::{Event, Transaction};
use super::hashing::Hashing;
use super::keys::{self, KeyDigest};
use super::quota::Usage;
use super::token::TokenDigest;
use crate::cluster::facts::NodeFacts;
use crate::cluster::log::{Condition, SharedLog, Waits};
use crate::cluster::record::{Chain, SharedPosition};
use crate::cluster::stream::Stream;
use crate::journal::fs::{Disk, Fs};
use crate::journal::{
    AppendError, Inspection, Journal, JournalError, Options, Recovery, SEGMENT_BYTES_DEFAULT,
    SnapshotReport, Unread, inspect,
};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, ActionId};
use crate::vocab::plan::{AccountLimits, Plan, PlanLimits, Plans};
use crate::vocab::scope::Scopes;
use crate::vocab::time::UnixMs;
use locks::{AccountLock, AccountLocks};
pub use shared::OnServe;
use shared::{Basis, Leadership, Shared, StateReplica};
use snapshot::{Loader, shared_base};
use snapshotter::{SnapshotError, Snapshotter};
use state::{Counts, State};
use wakes::Wakes;
pub use watched::StateChange;

/// Folder of the journal in the data folder.
pub const JOURNAL_FOLDER: &str = "journal";
/// Maximum outcomes or observations per record; at their maximum length, they take half of a
/// record.
pub const ROWS_MAX: usize = 1_500;
/// Growth of the log, in bytes, after which a snapshot is written; if half the size of the last
/// snapshot is more, that applies. A start reads every byte of the log, and a snapshot writes every
/// row.
const SNAPSHOT_AFTER_BYTES: u64 = 64 << 20;

/// All accounts and their data. Cheap to clone; clones share one store.
///
/// Operator methods block until the change is durable: async code calls them through
/// `spawn_blocking`. Methods for account owners are async. [`Store::authenticate`] takes about a
/// microsecond, most of it SHA-256, and a charge a tenth of that. Neither method waits for the
/// disk.
#[derive(Clone)]
pub struct Store(pub(super) Arc<Inner>);

pub struct Inner {
    /// This field is declared before `shared`, so it is dropped first.
    pub(super) snapshotter: Snapshotter,
    pub(super) shared: Arc<Shared>,
    /// Locks of accounts. A write holds its lock from before its decision until it is applied, so
    /// that the next write is decided on the result. Writes of other accounts may share the same
    /// sync.
    pub(super) locks: AccountLocks,
    pub(super) hashing: Hashing,
    pub(super) last_account: AtomicU64,
    /// The last UTC day that this process has recorded, as [`Day::raw`]; 0 before the first.
    last_day: AtomicU16,
    /// Held while the matches of a list are recorded, so that the decision on the next list is
    /// based on the result.
    pub(super) matching: Mutex<()>,
    /// Held while changes of watched names are recorded.
    pub(super) watching: Mutex<()>,
    /// When each account last requested the drop list.
    pub(super) visiting: std::sync::Mutex<FxHashMap<AccountId, UnixMs>>,
    pub(super) wakes: Wakes,
    plans: Plans,
    /// Limits of bytes and write rates; `None` outside of servers.
    pub(super) ceilings: Option<Ceilings>,
    pub(super) clock: Clock,
    recovery: Recovery,
}

/// Location and settings of a store.
pub struct StoreOptions {
    /// The data folder; the journal is in its folder `journal`.
    pub dir: PathBuf,
    pub plans: Plans,
    /// Limits of bytes and write rates; `None` enforces only the plan's limit of bytes.
    pub limits: Option<AccountLimits>,
    pub clock: Clock,
    pub fs: Arc<dyn Fs>,
    /// Bytes of a journal segment.
    pub segment_bytes: u64,
    /// Growth of the log after which a snapshot is written, or half the size of the last snapshot
    /// if that is more.
    pub snapshot_after_bytes: u64,
    /// Timings of the shared log, on a node of a cluster.
    pub waits: Waits,
}

impl StoreOptions {
    /// Options of a store in the data folder `dir` on the real disk.
    pub fn new(dir: &Path, plans: Plans, clock: Clock) -> StoreOptions {
        StoreOptions {
            dir: dir.to_owned(),
            plans,
            limits: None,
            clock,
            fs: Arc::new(Disk),
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            snapshot_after_bytes: SNAPSHOT_AFTER_BYTES,
            waits: Waits::default(),
        }
    }
}

/// An authenticated account. Valid for one request only, because it holds the plan of that moment.
#[derive(Clone)]
pub struct Caller {
    pub account: AccountId,
    pub plan: Plan,
    /// Scopes of the key; all scopes without a key.
    pub scopes: Scopes,
    usage: Arc<Usage>,
    credential: Credential,
    /// The action that its writes belong to.
    pub(super) action: Option<ActionId>,
}

/// Means by which a caller was authenticated, so that it can be looked up again.
#[derive(Clone, Copy)]
pub(super) enum Credential {
    Key(KeyDigest),
    Session(TokenDigest),
    Feed(TokenDigest),
}

impl Caller {
    /// Returns a caller with all scopes, for an owner who is logged in or for a feed that is being
    /// read.
    pub(super) fn new(account: &Account, credential: Credential) -> Caller {
        let usage = Arc::clone(&account.usage);
        let (account, plan) = (account.id, account.plan);
        Caller { account, plan, scopes: Scopes::ALL, usage, credential, action: None }
    }
}

impl Store {
    /// Opens the store in the data folder `dir`, or creates it.
    ///
    /// # Errors
    /// [`JournalError`]: in use by another process, damaged, or the disk failed.
    pub fn open(dir: &Path, plans: Plans, clock: Clock) -> Result<Store, JournalError> {
        Store::open_with(StoreOptions::new(dir, plans, clock))
    }

    /// As [`Store::open`], with all options.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(options: StoreOptions) -> Result<Store, JournalError> {
        Store::build(options, None, |_, _, _| Ok(None))
    }

    /// As [`Store::open_with`], for the node `node` of a cluster that shares the log in `stream`.
    /// `on_serve` is called when the log puts files into use.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_shared<S: Stream>(
        options: StoreOptions,
        node: &str,
        stream: S,
        on_serve: OnServe,
    ) -> Result<Store, JournalError> {
        let (dir, waits) = (options.dir.clone(), options.waits);
        Store::build(options, Some(node), |journal, mut replica, chains| {
            replica.on_serve = on_serve;
            let applied =
                shared_base(&replica.state.read().unwrap_or_else(PoisonError::into_inner));
            let start = (applied, chains);
            let log = SharedLog::start(node, stream, journal, replica, start, waits);
            let failed = |source| JournalError::Io {
                action: "start the thread of the shared log of",
                path: dir,
                source,
            };
            log.map(Some).map_err(failed)
        })
    }

    fn build(
        options: StoreOptions,
        node: Option<&str>,
        share: impl FnOnce(
            &Arc<Journal>,
            StateReplica,
            Vec<Chain>,
        ) -> Result<Option<SharedLog<Transaction>>, JournalError>,
    ) -> Result<Store, JournalError> {
        let StoreOptions {
            dir, plans, limits, clock, fs, segment_bytes, snapshot_after_bytes, ..
        } = options;
        let clock_ms = Arc::new(move || clock.now().timestamp_millis().max(0) as u64);
        let dir = dir.join(JOURNAL_FOLDER);
        let options =
            Options { segment_bytes, fs: Arc::clone(&fs), ..Options::new(&dir, clock_ms) };
        let mut loader = Loader::default();
        let (journal, recovery) = Journal::open(options, &mut loader)?;
        let snapshot_bytes = recovery.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes);
        let chains = loader.take_chains();
        let state = loader.into_state(recovery.position);
        let last_account = state.last_account;
        let newest = i64::try_from(recovery.last_unix_ms).ok().filter(|it| *it > 0);
        if node.is_some() {
            clock.await_others();
        }
        // A node without a journal compares its clock with the shared log.
        if node.is_none() || newest.is_some() {
            clock.start(newest.and_then(DateTime::from_timestamp_millis));
        }
        let journal = Arc::new(journal);
        let replica = StateReplica::new(state, clock);
        let log = share(&journal, replica.clone(), chains)?;
        let StateReplica { state, wakes, checkpoints, .. } = replica;
        let leadership = node.map(Leadership::of);
        let shared = Arc::new(Shared { journal, log, leadership, dir, fs, state, checkpoints });
        Ok(Store(Arc::new(Inner {
            snapshotter: Snapshotter::start(&shared, snapshot_after_bytes, snapshot_bytes),
            shared,
            locks: AccountLocks::new(),
            hashing: Hashing::default(),
            last_account: AtomicU64::new(last_account),
            last_day: AtomicU16::new(0),
            matching: Mutex::default(),
            watching: Mutex::default(),
            visiting: std::sync::Mutex::default(),
            wakes,
            ceilings: limits.map(|limits| Ceilings::new(limits, &plans)),
            plans,
            clock,
            recovery,
        })))
    }

    /// Returns the account of an API key; `None` for a malformed, unknown, expired or revoked key.
    /// The first use of a day is recorded, but the caller does not wait for the record.
    pub fn authenticate(&self, presented: &str) -> Option<Caller> {
        let digest = keys::digest_of_presented(presented)?;
        let now = self.0.clock.now();
        let day = Day::nearest(now);
        let (caller, first_used) = {
            let state = self.state();
            let (account, key) = state.by_key(&digest)?;
            if !key.works_at(UnixMs::from_instant(now)) {
                return None;
            }
            let caller = Caller::new(account, Credential::Key(digest));
            let caller = Caller { scopes: key.scopes, ..caller };
            let is_noted = self.0.clock.stores() && key.is_first_use(day);
            (caller, is_noted.then_some(key.id))
        };
        if let Some(id) = first_used {
            // If recording fails, the first use after the next start is recorded.
            let (account, used) = (caller.account, Some(day));
            let _ = self.note(Event::KeyChanged { account, id, until: None, used });
        }
        Some(caller)
    }

    /// Looks up a caller again while a long response is being sent. Returns `None` once the key was
    /// revoked, replaced or expired, the session was ended, the feed was revoked, or the account
    /// was disabled. A session that ends because it is idle does not interrupt a download of its
    /// owner.
    pub fn renew(&self, caller: &Caller) -> Option<Caller> {
        let (credential, state) = (caller.credential, self.state());
        let account = match &credential {
            Credential::Key(digest) => {
                let (account, key) = state.by_key(digest)?;
                key.works_at(UnixMs::from_instant(self.0.clock.now())).then_some(account)
            }
            Credential::Session(digest) => state.by_session(digest).map(|(account, _)| account),
            Credential::Feed(digest) => state.by_feed(digest).map(|(account, _)| account),
        };
        Some(Caller { scopes: caller.scopes, ..Caller::new(account?, credential) })
    }

    /// Returns when a key stopped working because it expired or was replaced. `None` for a key that
    /// works, is unknown or was revoked, and for a key that stopped working 30 days ago or earlier.
    pub fn key_expired_at(&self, presented: &str) -> Option<UnixMs> {
        let digest = keys::digest_of_presented(presented)?;
        let now = UnixMs::from_instant(self.0.clock.now());
        let state = self.state();
        let (_, key) = state.by_key(&digest)?;
        key.until.filter(|_| !key.works_at(now))
    }

    /// Returns all data of the caller's account, at one moment.
    pub fn user_data(&self, caller: &Caller) -> Arc<UserData> {
        let state = self.state();
        state.account(caller.account).map(|account| Arc::clone(&account.data)).unwrap_or_default()
    }

    /// Returns the data of an account; `None` if it does not exist.
    pub fn data_of(&self, account: AccountId) -> Option<Arc<UserData>> {
        self.state().account(account).map(|account| Arc::clone(&account.data))
    }

    /// Returns the limits of the caller's plan.
    pub fn limits(&self, caller: &Caller) -> &PlanLimits {
        self.plan_limits(caller.plan)
    }

    /// Returns the limits of all plans.
    pub fn plans(&self) -> &Plans {
        &self.0.plans
    }

    pub(super) fn plan_limits(&self, plan: Plan) -> &PlanLimits {
        self.0.plans.limits(plan)
    }

    /// Returns the digest of the state. Equal states have equal digests, independent of their
    /// history; the same holds for snapshots and backups. Usage that is not yet recorded is not
    /// included.
    pub fn state_digest(&self) -> [u8; 32] {
        let state = self.state().freeze();
        snapshot::digest(&state)
    }

    /// Returns the numbers of accounts and rows.
    pub fn counts(&self) -> Counts {
        let (accounts, pending) = {
            let state = self.state();
            (state.accounts.clone(), state.queue.pending().len())
        };
        Counts::new(&accounts, pending)
    }

    /// Writes a snapshot into the journal's folder, to shorten the log that the next start reads.
    /// Blocks; writes continue meanwhile.
    ///
    /// # Errors
    /// [`SnapshotError`]. Nothing is lost.
    pub fn snapshot_now(&self) -> Result<SnapshotReport, SnapshotError> {
        self.0.snapshotter.snapshot(&self.0.shared)
    }

    /// Writes a backup of all data to a new `file`, which `journal::restore` turns into a store.
    /// Blocks; writes continue meanwhile but are not included.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn backup(&self, file: &Path) -> Result<SnapshotReport, SnapshotError> {
        self.0.snapshotter.backup(&self.0.shared, file)
    }

    /// Verifies the durable part of the journal's files, while it is being written.
    ///
    /// # Errors
    /// [`JournalError`]: damaged or missing files. A snapshot that is finished meanwhile may remove
    /// segments that are still to be read; in that case, try again.
    pub fn inspect_journal(&self) -> Result<Inspection, JournalError> {
        let Shared { journal, dir, fs, .. } = &*self.0.shared;
        inspect(fs.as_ref(), dir, Some(journal.durable_seq()), &mut Unread)
    }

    /// Returns the bytes of log that the next start would read.
    pub fn log_bytes_since_snapshot(&self) -> u64 {
        self.0.shared.journal.log_bytes_since_snapshot()
    }

    /// Returns the report of the recovery when the store was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.0.recovery
    }

    /// Checks that writes are accepted.
    ///
    /// # Errors
    /// `read_only` after a failed write, until a restart: API keys still work, and their requests
    /// are still counted. `disk_full` until there is room again, `fenced` if another process took
    /// over the folder, `closed` after a close.
    pub fn health(&self) -> Result<(), String> {
        let word = |refusal| match refusal {
            AppendError::Halted { .. } => "halted",
            AppendError::DiskFull => "disk_full",
            AppendError::Fenced => "fenced",
            AppendError::Closed => "closed",
            AppendError::Poisoned { .. }
            | AppendError::Busy
            | AppendError::TooLong { .. }
            | AppendError::Superseded
            | AppendError::Unreachable
            | AppendError::Unknown => "read_only",
        };
        self.0.shared.health().map_err(|refusal| word(refusal).to_owned())
    }

    /// Returns why writes are currently refused, if they are: a word of [`Store::health`], or
    /// `cut_off` while the shared log is unreachable.
    pub fn write_problem(&self) -> Option<String> {
        let cut_off = || {
            let refuses = self.shared_log().is_some_and(|log| log.refuses_writes(Instant::now()));
            refuses.then(|| "cut_off".to_owned())
        };
        self.health().err().or_else(cut_off)
    }

    /// Returns true if this node had all records of the shared log at some time since its start.
    /// Until then, a key that is unknown on this node may exist.
    pub fn was_caught_up(&self) -> bool {
        self.shared_log().is_none_or(|log| log.is_caught_up)
    }

    /// Returns true if the day and the time of this process may be stored.
    pub fn is_clock_trusted(&self) -> bool {
        self.0.clock.is_trusted()
    }

    /// Returns the age of the data of a node of a cluster: the time since it last had all records
    /// of the shared log or, if it has not had them since its start, the time since its newest
    /// record. `None` for a single node, and if there is no record.
    pub fn data_age(&self) -> Option<Duration> {
        let complete_at = self.shared_log()?.complete_at;
        let newest = i64::try_from(self.0.recovery.last_unix_ms).ok().filter(|it| *it > 0);
        let of_newest = || {
            let age = self.0.clock.now() - DateTime::from_timestamp_millis(newest?)?;
            Some(age.to_std().unwrap_or_default())
        };
        complete_at.map(|at| at.elapsed()).or_else(of_newest)
    }

    /// Returns the health of the shared log; `None` for a single node.
    pub fn shared_log(&self) -> Option<Condition> {
        self.0.shared.log.as_ref().map(SharedLog::condition)
    }

    /// Waits, without a timeout, until all earlier writes of all nodes are applied here.
    pub async fn caught_up(&self) {
        while self.0.shared.barrier().await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns the last record of the shared log that is visible to reads; 0 for a single node.
    /// [`Shared::since`] may still name the previous one.
    pub fn log_position(&self) -> u64 {
        self.state().shared.seq
    }

    /// Waits until a record of the shared log is applied. Returns false if that takes longer than
    /// `wait`.
    pub async fn reaches(&self, seq: u64, wait: Duration) -> bool {
        match &self.0.shared.log {
            Some(log) => log.reaches(seq, wait).await,
            None => true,
        }
    }

    /// Returns position and health of the node; `None` without a cluster.
    pub fn node_facts(&self) -> Option<NodeFacts> {
        let Shared { log, leadership, checkpoints, .. } = &*self.0.shared;
        let (log, leadership) = (log.as_ref()?, leadership.as_ref()?);
        let condition = log.condition();
        let caught_up = condition.is_complete(Instant::now());
        let Condition { cut_off, halted, .. } = condition;
        let now = self.0.clock.is_trusted().then(|| self.0.clock.now());
        let SharedPosition { seq, chain } = log.applied();
        Some(NodeFacts {
            node: leadership.node.to_string(),
            seq,
            chain: hex::encode(chain.0),
            leads: self.leads(),
            files: None,
            behind: false,
            caught_up,
            cut_off: cut_off.map(|it| it.error),
            halted,
            unix_ms: now.map(|now| now.timestamp_millis()),
            clock_untrusted: now.is_none(),
            silent: Vec::new(),
            checkpoints: checkpoints.list(),
        })
    }

    /// Returns true if the data is a copy of a shared log, so that writes of a single node would
    /// not reach the other nodes.
    pub fn is_copy(&self) -> bool {
        self.state().shared.seq > 0
    }

    /// Converts a copy of a shared log to the data of a single node. Blocks until that is durable.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn leave_cluster(&self) -> Result<(), AppendError> {
        let checkpoint = Transaction(vec![Event::Checkpoint { id: 0 }]);
        self.0.shared.append_blocking(checkpoint, Basis::ANY, || {})
    }

    /// Requests from all nodes the digest of their state after the same record; see [`NodeFacts`].
    /// Blocks until that record is applied here. Returns the id of the checkpoint.
    ///
    /// # Errors
    /// [`AppendError`], or the system's random source failed.
    pub fn add_checkpoint(&self) -> Result<u64, WriteError> {
        let id = u64::from_le_bytes(random_bytes()?);
        let checkpoint = Transaction(vec![Event::Checkpoint { id }]);
        self.0.shared.append_blocking(checkpoint, Basis::ANY, || {})?;
        Ok(id)
    }

    /// Records usage up to the last request and closes the journal cleanly. Clones of the store can
    /// still read; writes are refused. On a full disk, the last counts are lost, up to a hundredth
    /// of an allowance, as after a crash.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn close(self) -> Result<(), AppendError> {
        match self.note_all_usage() {
            Err(AppendError::DiskFull) => {
                tracing::warn!("disk full: the last request counts were not recorded");
            }
            other => other?,
        }
        self.0.snapshotter.stop();
        self.0.shared.close()
    }

    /// Decides on the caller's account and makes the events durable before it returns, within the limits
    /// of bytes and writes. An appended write continues if the caller stops waiting.
    pub(super) async fn write<T>(
        &self,
        caller: &Caller,
        decide: impl FnOnce(&Account, &PlanLimits) -> Result<Decided<T>, WriteError>,
    ) -> Result<T, WriteError> {
        self.admit(caller)?;
        let decide = |account: &Account, limits: &PlanLimits| {
            Ok(self.recorded(caller, decide(account, limits)?))
        };
        self.write_to(caller.account, decide).await
    }

    /// As [`Store::write`], but for an account without a caller. The write does not count towards
    /// its rate limit.
    pub(super) async fn write_to<T>(
        &self,
        account: AccountId,
        decide: impl FnOnce(&Account, &PlanLimits) -> Result<Decided<T>, WriteError>,
    ) -> Result<T, WriteError> {
        let (lock, account) = self.lock_account(account).await?;
        let Decided { events, value } = decide(&account, self.plan_limits(account.plan))?;
        self.room(&account).check(ceilings::growth(&account.data, &events))?;
        drop(account);
        self.append(events, Some(lock)).await?;
        Ok(value)
    }

    /// Waits for the lock of an account and returns the account. Limits are those of the account's
    /// current plan, which may differ from the plan in `Caller`.
    pub(super) async fn lock_account(
        &self,
        account: AccountId,
    ) -> Result<(AccountLock, Arc<Account>), WriteError> {
        let lock = self.0.locks.lock(&account, &self.0.shared).await?;
        let account = self.state().account(account).map(Arc::clone);
        Ok((lock, account.ok_or(WriteError::NotFound)?))
    }

    /// Appends the events as one record, if any, and waits until it is durable. Events without a
    /// lock come from a worker; in a cluster, only the workers of the leader write them.
    pub(super) async fn append(
        &self,
        events: Vec<Event>,
        lock: Option<AccountLock>,
    ) -> Result<(), WriteError> {
        if events.is_empty() {
            return Ok(());
        }
        let transaction = Transaction(events);
        let basis = match &lock {
            Some(lock) => Basis::owner(lock.since),
            None => self.leaders_basis()?,
        };
        let after = self.after(&transaction, lock);
        self.0.shared.append(transaction, basis, after)?.durable().await?;
        self.0.snapshotter.consider(&self.0.shared);
        Ok(())
    }

    /// Appends an event without waiting.
    pub(super) fn note(&self, event: Event) -> Result<(), AppendError> {
        let transaction = Transaction(vec![event]);
        let after = self.after(&transaction, None);
        self.0.shared.append_lazy(transaction, after)
    }

    /// Returns the function to call once `transaction` is applied. The function owns the account's
    /// lock, so that a caller that stops waiting does not release it early.
    pub(super) fn after(
        &self,
        transaction: &Transaction,
        lock: Option<AccountLock>,
    ) -> impl FnOnce() + Send + 'static + use<> {
        let wake = self.0.wakes.after(transaction);
        move || {
            drop(lock);
            wake();
        }
    }

    /// Returns a notification that fires when a delivery may be due earlier than the worker
    /// expects, or may no longer be sent. For one waiter.
    pub fn deliveries_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.wakes.deliveries)
    }

    /// Returns a notification that fires when a name was added to a watchlist. For one waiter.
    pub fn watches_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.wakes.watches)
    }

    /// Returns a notification that fires when files of the cluster are announced. For one waiter.
    pub fn files_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.wakes.files)
    }

    /// Returns a notification that fires when watched names were verified. For one waiter.
    pub fn observations_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.wakes.observations)
    }

    pub(super) fn next_account_id(&self) -> AccountId {
        // The state may have a higher number, because other nodes also add accounts.
        self.0.last_account.fetch_max(self.state().last_account, Ordering::Relaxed);
        AccountId(self.0.last_account.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Locks the state. No code panics while it holds the lock.
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}
