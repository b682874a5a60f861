//! Every list that goes live, matched once. A generation comes in when it is served; what goes out is
//! one message for each rule that names of it fire for, written down by the store, from where they
//! are sent. Nothing is sent here.
//!
//! What was matched is a watermark in the store: a newest batch and a day. A generation that brings
//! no newer batch is not matched: one that is served again after a restart, one of before, to which
//! an operator rolled back, one that was rebuilt from the same lists. A crash leaves the watermark
//! where it was, or has some rules done; the next start matches the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::task::JoinError;

use crate::accounts::{MatchableRule, MatchedName, RuleMatch, Store, WriteError};
use crate::index::Index;
use crate::index::filter::{Moment, RuleQuery};
use crate::index::generation::live::LiveIndex;
use crate::index::rules::{DueRule, ListedDrop, RuleMatches};
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::clock::Clock;
use crate::vocab::limits::MESSAGE_NAMES_MAX;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// How long until it is tried again to write matches down: a full disk is what stands in the way.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What matching needs.
pub struct Matching {
    pub live: Arc<LiveIndex>,
    pub store: Store,
    pub clock: Clock,
    /// Days a name counts as catchable after its effective release.
    pub catch_days: u16,
    /// Told when another generation is served; one that comes meanwhile is matched next.
    pub published: Arc<Notify>,
}

/// Why a generation was not matched. It will be tried again.
#[derive(Debug, thiserror::Error)]
enum MatchError {
    #[error("matching broke off: {0}")]
    Panic(#[from] JoinError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What fires, ready to be written down.
#[derive(Default)]
struct Fired {
    matches: Vec<RuleMatch>,
    /// The names that all messages together list, each once.
    table: Vec<MatchedName>,
}

impl Matching {
    /// At the first start of all: says that what is there now is the past.
    pub async fn begin(&self) {
        if self.store.watermark().is_none()
            && let Err(err) = self.match_live().await
        {
            tracing::error!(error = %err, "lists are not matched yet");
        }
    }

    /// Matches what is served now, and each generation that is served later, until `stop` is done.
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
                    tracing::error!(error = %err, "alert rules are not matched; trying again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// Matches the generation being served, unless that is done.
    async fn match_live(&self) -> Result<(), MatchError> {
        let index = self.live.current();
        let today = self.clock.today();
        let through = Watermark { batch: index.manifest().batches, day: today };
        let Some(before) = self.store.watermark() else {
            // Rules are about what comes: what is there when a server starts first is the past.
            return Ok(self.store.set_watermark_if_none(through).await?);
        };
        if through.batch <= before.batch {
            if through.batch < before.batch {
                tracing::warn!(
                    lists = through.batch,
                    matched = before.batch,
                    "fewer lists are served than alert rules were matched with; nothing is told \
                     before there are more"
                );
            }
            return Ok(());
        }
        // A clock that was set back must not have a stage come twice.
        let through = Watermark { day: today.max(before.day), ..through };
        let moment = Moment { today, catch_days: self.catch_days };
        let rules = self.store.matchable_rules();
        let (count, begun) = (rules.len(), Instant::now());
        let timer = QueryTimer::start(QueryKind::Match);
        let fired = tokio::task::spawn_blocking(move || {
            let fired = Fired::of(&index, &rules, moment);
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
            "alert rules are matched"
        );
        Ok(())
    }
}

impl Fired {
    fn of(index: &Index, rules: &[MatchableRule], moment: Moment) -> Fired {
        let due: Vec<DueRule> = rules.iter().map(due).collect();
        let found = index.matches(&due, MESSAGE_NAMES_MAX, moment);
        let mut fired = Fired::default();
        let mut places = FxHashMap::default();
        for (rule, RuleMatches { total, best }) in rules.iter().zip(found) {
            if total == 0 {
                continue;
            }
            let mut place = |doc| {
                *places.entry(doc).or_insert_with(|| {
                    fired.table.push(matched_name(index.listed_drop(doc, moment)));
                    fired.table.len() as u32 - 1
                })
            };
            let names = best.into_iter().map(&mut place).collect();
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

fn due(rule: &MatchableRule) -> DueRule {
    let filter = &rule.rule.filter;
    let query = RuleQuery::new(
        filter.tlds.clone(),
        filter.min_dqs,
        filter.max_length,
        filter.contains.clone(),
        &filter.stages,
    );
    DueRule { query, created: rule.created_day, base: rule.base }
}

fn matched_name(ListedDrop { name, dqs, drop_date, release, stage }: ListedDrop) -> MatchedName {
    MatchedName { name, dqs, drop_date, release, stage }
}
