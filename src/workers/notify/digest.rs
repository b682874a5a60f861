//! Morning digests: at the hour of each account, finds the names that came since the last digest, and
//! records the message, which [`crate::workers::deliver`] sends. The record also holds the hour and the
//! newest list, so a restart or another leader neither loses nor repeats a digest.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinError;
use tokio::time::{MissedTickBehavior, interval};

use crate::accounts::{DigestRows, DigestSearch, DueDigest, FoundDigest, MatchedName, Store};
use crate::accounts::{SavedSearch, WriteError};
use crate::index::Index;
use crate::index::filter::{AsOf, Counting, DropFilter};
use crate::index::generation::live::LiveIndex;
use crate::query::stored::Conditions;
use crate::service::fact_book::FactBook;
use crate::vocab::clock::Clock;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::limits::{DIGEST_BEST, DIGEST_SEARCH_NAMES};
use crate::vocab::name::DomainName;

/// Interval at which the clock is read, because timers do not fire when the clock is set.
const PERIOD: Duration = Duration::from_secs(2);
/// Names that are read for the best ones, of which some may be hidden.
const READ: u32 = 200;

/// The worker that sends morning digests.
pub struct Digests {
    pub live: Arc<LiveIndex>,
    pub store: Store,
    /// Facts to which saved searches refer.
    pub facts: Arc<FactBook>,
    pub clock: Clock,
    /// Days for which a name counts as catchable after its effective release.
    pub catch_days: u16,
}

/// Why digests were not recorded. They are still due.
#[derive(Debug, thiserror::Error)]
enum DigestError {
    #[error("finding new names panicked: {0}")]
    Panic(#[from] JoinError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Digests {
    /// Sends digests until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.send_all() => {}
        }
    }

    async fn send_all(&self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(err) = self.send_due().await {
                tracing::error!(error = %err, "queueing morning digests failed; trying again");
            }
        }
    }

    async fn send_due(&self) -> Result<(), DigestError> {
        if !self.clock.is_trusted() {
            return Ok(());
        }
        let due = self.store.due_digests(self.clock.now());
        if due.is_empty() {
            return Ok(());
        }
        let (index, facts) = (self.live.current(), Arc::clone(&self.facts));
        let as_of = AsOf { today: self.clock.today(), catch_days: self.catch_days };
        let batch = index.manifest().batches;
        let found = tokio::task::spawn_blocking(move || {
            due.iter().map(|due| find(&index, &facts, due, as_of)).collect::<Vec<_>>()
        });
        let found = found.await?;
        let (accounts, with_names) =
            (found.len(), found.iter().filter(|found| found.rows != DigestRows::default()).count());
        self.store.record_digests(batch, found).await?;
        tracing::info!(accounts, with_names, "queued morning digests");
        Ok(())
    }
}

/// Finds the names of a digest. A search that can no longer be resolved has none.
fn find(index: &Index, facts: &FactBook, due: &DueDigest, as_of: AsOf) -> FoundDigest {
    let DueDigest { account, digest, hour, owned } = due;
    let names = |filter: DropFilter, most: usize| {
        let mut filter = DropFilter { limit: READ, offset: 0, ..filter };
        filter.common.drop.after_batch = Some(digest.batch);
        let visible = || facts.visible(Some(owned));
        let applied = facts.apply_drops(index, visible, &mut filter, as_of.today);
        applied.map_err(|err| err.to_string())?;
        let page = index.drops(&filter, as_of, Counting::Exact).map_err(|err| err.to_string())?;
        let mut shown = Vec::new();
        page.for_each_placed(|row, lifecycle| {
            let name = DomainName::parse(row.name).ok().filter(|name| !owned.hides(name));
            let Some(name) = name.filter(|_| shown.len() < most) else { return };
            let (release, release_second) = (lifecycle.release.day, lifecycle.release.second());
            let (dqs, drop_date, stage) = (row.dqs, row.drop_date, row.stage);
            let name = DroppedName { name, dqs, drop_date, release, release_second, stage };
            shown.push(MatchedName::from(name));
        });
        Ok::<_, String>((page.total.map_or(0, |total| total.count()), shown))
    };
    let failed =
        |err: &String| tracing::warn!(account = account.0, error = %err, "a digest lacks names");
    let names_of = |conditions: &Conditions, most| {
        let filter = conditions.drops(as_of.today).map_err(|err| err.to_string());
        filter.and_then(|filter| names(filter, most)).inspect_err(failed).unwrap_or_default()
    };
    let (total, best) = match digest.best {
        true => names_of(&Conditions::default(), DIGEST_BEST),
        false => (0, Vec::new()),
    };
    let search = |search: &Arc<SavedSearch>| {
        let found = names_of(&search.conditions, DIGEST_SEARCH_NAMES);
        let (total, names) = Some(found).filter(|(_, names)| !names.is_empty())?;
        Some(DigestSearch { id: search.id, name: search.name.clone(), total, names })
    };
    let searches: Vec<_> = match digest.searches {
        true => owned.searches().filter_map(search).collect(),
        false => Vec::new(),
    };
    let rows = DigestRows { best, searches };
    FoundDigest { account: *account, hour: *hour, total, rows }
}
