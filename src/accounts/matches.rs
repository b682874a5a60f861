//! Matches of alert rules with lists: returns the rules to be matched, and records the matches.
//!
//! A record of matches concerns many accounts and takes no account lock. The event of a record is
//! decided on the current state; applying it checks each rule again, and skips rules that were
//! paused or removed meanwhile.

use std::mem;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::data::account::Account;
use super::data::deliveries::MatchedName;
use super::data::rules::Rule;
use super::deliveries::{draw_deliveries, live_channels, new_unsubscribe_token};
use super::error::WriteError;
use super::event::{Event, RecordedMatch};
use super::store::Store;
use super::store::state::State;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, RuleId};
use crate::vocab::limits::MESSAGE_NAMES_MAX;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// Maximum bytes of a record of matches. Applying a record of this length locks the state for a
/// millisecond.
const MATCHES_BYTES_MAX: usize = 300 << 10;
/// Approximate bytes of a match in a record, without its positions.
const MATCH_BYTES: usize = 64;
/// Approximate bytes of a matched name in a record, without the name itself.
const NAME_BYTES: usize = 24;

/// A rule to be matched against a list.
#[derive(Clone, Debug)]
pub struct MatchableRule {
    pub account: AccountId,
    pub plan: Plan,
    pub rule: Arc<Rule>,
    /// The watermark up to which it has been matched.
    pub base: Watermark,
    /// UTC day on which it was added.
    pub created_day: Day,
    /// Positions of the used channels in `rule.channels`; not empty.
    pub live_channels: Vec<usize>,
}

/// The names that a rule matched in a list.
#[derive(Clone, Debug)]
pub struct RuleMatch {
    pub account: AccountId,
    pub rule: RuleId,
    /// Number of names that matched.
    pub total: u32,
    /// The best names, best first, as positions in the table of all matches. Only the first
    /// [`MESSAGE_NAMES_MAX`] are used.
    pub names: Vec<u32>,
}

impl Store {
    /// Returns the watermark of all alert rules; `None` before the first start of a server.
    pub fn watermark(&self) -> Option<Watermark> {
        self.state().progress.all
    }

    /// Sets the watermark if it is not set, so that nothing up to `through` triggers an alert.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn set_watermark_if_none(&self, through: Watermark) -> Result<(), WriteError> {
        let _one_matcher = self.0.matching.lock().await;
        if self.watermark().is_some() {
            return Ok(());
        }
        let at = UnixMs::from_instant(self.0.clock.now());
        self.append(MatchBatch::default().take_events(through, at, true), None).await
    }

    /// Returns the rules to be matched: active, within the plan, with a live channel, and of
    /// enabled accounts. Empty before a watermark is set.
    pub fn matchable_rules(&self) -> Vec<MatchableRule> {
        let (accounts, progress) = {
            let state = self.state();
            (state.accounts.clone(), state.progress.clone())
        };
        let mut rules = Vec::new();
        for account in accounts.values().filter(|account| !account.is_disabled()) {
            let limit = self.plan_limits(account.plan).active_rules;
            for rule in account.data.rules.active_within(limit) {
                let Some(base) = progress.get(account.id, rule.id) else { return Vec::new() };
                let live_channels = live_channels(account, rule);
                if live_channels.is_empty() {
                    continue;
                }
                rules.push(MatchableRule {
                    account: account.id,
                    plan: account.plan,
                    rule: Arc::clone(rule),
                    base,
                    created_day: Day::nearest(rule.created_at.instant()),
                    live_channels,
                });
            }
        }
        rules
    }

    /// Queues a message for each match of a list and moves the watermark of all rules to `through`.
    /// Durable when it returns. After a crash, some rules may already have been matched with the
    /// list; the caller then calls this again with all matches. Rules that have already been
    /// matched with the list, or were paused or removed meanwhile, are skipped.
    ///
    /// # Errors
    /// [`WriteError::Journal`], [`WriteError::Random`]: call it again with all matches.
    pub async fn record_matches(
        &self,
        through: Watermark,
        at: UnixMs,
        matches: Vec<RuleMatch>,
        table: Arc<[MatchedName]>,
    ) -> Result<(), WriteError> {
        let _one_matcher = self.0.matching.lock().await;
        let mut left = matches.as_slice();
        loop {
            let mut batch = MatchBatch::default();
            while let Some((first, rest)) = left.split_first() {
                if !batch.add(&self.state(), through, first, &table)? {
                    break;
                }
                left = rest;
            }
            self.append(batch.take_events(through, at, left.is_empty()), None).await?;
            if left.is_empty() {
                return Ok(());
            }
        }
    }
}

/// The matches of one record.
#[derive(Default)]
pub(super) struct MatchBatch {
    names: Vec<MatchedName>,
    /// Positions in `names` by position in the caller's table.
    positions: FxHashMap<u32, u16>,
    matches: Vec<RecordedMatch>,
    /// Unsubscribe tokens of rules that send their first mail.
    tokens: Vec<Event>,
    bytes: usize,
}

impl MatchBatch {
    /// Adds a match; returns false if the record is full. A single match always fits. Rules that
    /// have already been matched with the list, are paused, were removed or have no live channel are
    /// skipped.
    ///
    /// # Errors
    /// [`WriteError::Random`].
    pub(super) fn add(
        &mut self,
        state: &State,
        through: Watermark,
        found: &RuleMatch,
        table: &[MatchedName],
    ) -> Result<bool, WriteError> {
        let Some((account, rule)) = active_rule(state, found) else { return Ok(true) };
        let is_done =
            state.progress.get(found.account, found.rule).is_some_and(|it| it.covers(through));
        let channels = live_channels(account, rule);
        if is_done || channels.is_empty() {
            return Ok(true);
        }
        let best = &found.names[..found.names.len().min(MESSAGE_NAMES_MAX)];
        let new = best.iter().filter(|at| !self.positions.contains_key(at));
        let new = new.filter_map(|at| table.get(*at as usize));
        let new_bytes: usize = new.map(|matched| matched.name.as_str().len() + NAME_BYTES).sum();
        let bytes = MATCH_BYTES + 2 * best.len() + new_bytes;
        let is_full = self.bytes + bytes > MATCHES_BYTES_MAX
            || self.names.len() + best.len() > usize::from(u16::MAX);
        if is_full && !self.matches.is_empty() {
            return Ok(false);
        }
        self.bytes += bytes;
        self.tokens.extend(new_unsubscribe_token(account, rule, &channels)?);
        let names = best.iter().filter_map(|at| self.position(*at, table)).collect();
        let (account, rule, total) = (found.account, found.rule, found.total);
        let deliveries = draw_deliveries(&channels)?;
        self.matches.push(RecordedMatch { account, rule, total, names, deliveries });
        Ok(true)
    }

    /// Returns the events of this record, and empties the batch.
    pub(super) fn take_events(&mut self, through: Watermark, at: UnixMs, done: bool) -> Vec<Event> {
        let MatchBatch { names, matches, tokens, .. } = mem::take(self);
        let matched = Event::ListMatched { through, done, at, names, matches };
        tokens.into_iter().chain([matched]).collect()
    }

    fn position(&mut self, at: u32, table: &[MatchedName]) -> Option<u16> {
        if let Some(known) = self.positions.get(&at) {
            return Some(*known);
        }
        let name = table.get(at as usize)?;
        let new = u16::try_from(self.names.len()).ok()?;
        self.names.push(name.clone());
        self.positions.insert(at, new);
        Some(new)
    }
}

fn active_rule<'a>(state: &'a State, found: &RuleMatch) -> Option<(&'a Account, &'a Rule)> {
    let account = state.account(found.account).filter(|account| !account.is_disabled())?;
    let rule = account.data.rules.get(found.rule).filter(|rule| rule.active)?;
    Some((account, rule))
}
