//! Matches every list once, when the generation that contains it goes live. For each rule that fires, the
//! store records one message, which [`crate::workers::deliver`] sends.
//!
//! The store keeps a watermark: the newest matched batch and a day. A generation without a newer batch is
//! not matched: after a restart, a rollback, or a rebuild from the same lists. After a crash, the next
//! start matches the remaining rules.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::task::JoinError;

use crate::accounts::{MatchableRule, MatchedName, RuleMatch, Store, WriteError};
use crate::index::Index;
use crate::index::filter::{AsOf, RuleQuery};
use crate::index::generation::live::LiveIndex;
use crate::index::rules::{DueRule, RuleMatches};
use crate::service::fact_book::FactBook;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::limits::MESSAGE_NAMES_MAX;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// Delay before retrying a failed write; most likely the disk is full.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The matching worker.
pub struct Matching {
    pub live: Arc<LiveIndex>,
    pub store: Store,
    /// Facts to which rules refer.
    pub facts: Arc<FactBook>,
    pub clock: Clock,
    /// Days for which a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// Notified when another generation is served. A generation that is published during a match is
    /// matched next.
    pub published: Arc<Notify>,
}

/// Why a generation was not matched. The worker retries.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    #[error("matching panicked: {0}")]
    Panic(#[from] JoinError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The matches of a list.
#[derive(Default)]
struct Fired {
    matches: Vec<RuleMatch>,
    /// The distinct names in all messages.
    table: Vec<MatchedName>,
}

impl Matching {
    /// On the very first start, sets the watermark to the current lists.
    pub async fn begin(&self) {
        if self.store.watermark().is_none()
            && let Err(err) = self.match_live().await
        {
            tracing::error!(error = %err, "cannot set the watermark of alert rules");
        }
    }

    /// Matches the current generation and every later one until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.match_all() => {}
        }
    }

    async fn match_all(&self) {
        loop {
            match self.match_live().await {
                Ok(()) => self.published.notified().await,
                Err(err) => {
                    tracing::error!(error = %err, "matching alert rules failed; trying again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// Matches the current generation, unless it is already matched.
    ///
    /// # Errors
    /// [`MatchError`]; the call can be repeated.
    pub async fn match_live(&self) -> Result<(), MatchError> {
        let index = self.live.current();
        let today = self.clock.today();
        let through = Watermark { batch: index.manifest().batches, day: today };
        let Some(before) = self.store.watermark() else {
            // Rules apply only to lists that arrive after the first start.
            return Ok(self.store.set_watermark_if_none(through).await?);
        };
        if through.batch <= before.batch {
            if through.batch < before.batch {
                tracing::warn!(
                    lists = through.batch,
                    matched = before.batch,
                    "fewer lists are served than were matched; no alerts before there are more"
                );
            }
            return Ok(());
        }
        // This prevents stages from being reported twice if the clock was set back.
        let known = Watermark { day: today.max(before.day), ..through };
        let through = if self.clock.corrects() { before.and(through) } else { known };
        let as_of = AsOf { today, catch_days: self.catch_days };
        let rules = self.store.matchable_rules();
        let (count, begun) = (rules.len(), Instant::now());
        let timer = QueryTimer::start(QueryKind::Match);
        let facts = OfRules { book: Arc::clone(&self.facts), store: self.store.clone() };
        let fired = tokio::task::spawn_blocking(move || {
            let fired = Fired::new(&index, &rules, &facts, as_of);
            timer.finish(fired.matches.len(), &through);
            fired
        });
        let fired = fired.await?;
        let names: u64 = fired.matches.iter().map(|found| u64::from(found.total)).sum();
        let (firing, matched_ms) = (fired.matches.len(), begun.elapsed().as_millis() as u64);
        let at = UnixMs::from_instant(self.clock.now());
        self.store.record_matches(through, at, fired.matches, fired.table.into()).await?;
        tracing::info!(
            batch = through.batch,
            rules = count,
            firing,
            names,
            matched_ms,
            "matched alert rules"
        );
        Ok(())
    }
}

/// The facts that the owners of rules see.
struct OfRules {
    book: Arc<FactBook>,
    store: Store,
}

impl OfRules {
    /// Resolves the conditions of a rule on facts. A rule about facts that are gone matches nothing until they are
    /// back; the log says so.
    fn apply(
        &self,
        index: &Index,
        rule: &MatchableRule,
        query: &mut RuleQuery,
        today: Day,
    ) -> Option<()> {
        if query.common.drop.facts.is_empty() {
            return Some(());
        }
        let owned = self.store.data_of(rule.account)?;
        let visible = || self.book.visible(Some(&owned));
        let applied = self.book.apply(index, visible, &mut query.common, today);
        let (account, rule) = (rule.account.0, rule.rule.id.get());
        applied
            .inspect_err(|err| {
                tracing::warn!(account, rule, error = %err, "an alert rule is about facts that are not known");
            })
            .ok()
    }
}

impl Fired {
    fn new(index: &Index, rules: &[MatchableRule], facts: &OfRules, as_of: AsOf) -> Fired {
        let due = |rule: &MatchableRule| {
            let filter = &rule.rule.filter;
            let query = filter.rule(as_of.today);
            let query = query.inspect_err(|err| {
                let (account, rule) = (rule.account.0, rule.rule.id.get());
                tracing::error!(
                    account,
                    rule,
                    error = %err,
                    "the stored filter of an alert rule is invalid; the rule is not matched"
                );
            });
            let mut query = query.ok()?;
            facts.apply(index, rule, &mut query, as_of.today)?;
            let (created, base) = (rule.created_day, rule.base);
            let releases_then = filter.releases(&query)(base.day);
            Some(DueRule { query, created, base, releases_then })
        };
        let resolved = rules.iter().filter_map(|rule| Some((rule, due(rule)?)));
        let (rules, due): (Vec<_>, Vec<_>) = resolved.unzip();
        let found = index.matches(&due, MESSAGE_NAMES_MAX, as_of);
        let mut fired = Fired::default();
        let mut positions = FxHashMap::default();
        for (rule, RuleMatches { total, best }) in rules.into_iter().zip(found) {
            if total == 0 {
                continue;
            }
            let mut position = |doc| {
                *positions.entry(doc).or_insert_with(|| {
                    fired.table.push(index.listed_drop(doc, as_of).into());
                    fired.table.len() as u32 - 1
                })
            };
            let names = best.into_iter().map(&mut position).collect();
            fired.matches.push(RuleMatch {
                account: rule.account,
                rule: rule.rule.id,
                total,
                names,
            });
        }
        fired
    }
}
