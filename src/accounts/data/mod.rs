//! Stored data: accounts and the data that they own. This folder contains only values; nothing in
//! it knows events, the journal or the store.
//!
//! Types that are stored serialise themselves: rows as numbered fields (`fields`), so that fields
//! can be added. Values in fields are encoded with bincode, which stores the position of an enum's
//! variant, so only append variants.

pub mod access;
pub mod account;
pub mod actions;
pub mod claims;
pub mod deliveries;
pub mod digest;
pub mod facts;
pub mod feeds;
pub mod fields;
pub mod hidden;
pub mod keys;
pub mod money;
pub mod nodes;
pub mod responses;
pub mod rules;
pub mod sample;
pub mod searches;
pub mod sorted;
pub mod visits;
pub mod votes;
pub mod watch_alerts;
pub mod watches;

use std::sync::Arc;

use crate::vocab::claim::Vote;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::{ActionId, ClaimId, DeliveryId, RuleId, SearchId};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;
use actions::{Action, Actions};
use claims::{Claim, Claims};
use deliveries::{Delivery, Outbox, Problem, SwitchedOff};
use digest::Digest;
use facts::Facts;
use hidden::Hidden;
use money::MoneySettings;
use responses::Responses;
use rules::{Channel, Rule, Rules};
use searches::{SavedSearch, Searches};
use visits::Visit;
use votes::Votes;
use watch_alerts::{EntryAlerts, WatchSender};
use watches::{WatchDetails, WatchEntry, Watches};

/// All data of one account, at one moment. A clone shares all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserData {
    pub(super) claims: Claims,
    pub(super) watches: Watches,
    pub(super) rules: Rules,
    pub(super) votes: Votes,
    pub(super) responses: Responses,
    pub(super) outbox: Outbox,
    pub(super) hidden: Hidden,
    pub(super) searches: Searches,
    /// The chosen columns of the drop list; `None` for the default ones.
    pub(super) columns: Option<Columns>,
    pub(super) money: MoneySettings,
    /// The last day with reminders of renewals.
    pub(super) reminded: Option<Day>,
    /// The current or last visit of the drop list.
    pub(super) visit: Option<Visit>,
    /// The latest UTC day with test messages, and the number of messages.
    pub(super) tests: Option<(Day, u32)>,
    /// Settings and channels of watch alerts; `None` until the owner has saved them.
    pub(super) watch_sender: Option<WatchSender>,
    /// The morning digest; `None` if it is off.
    pub(super) digest: Option<Digest>,
    pub(super) facts: Facts,
    /// Recent actions, which can be undone.
    pub(super) actions: Actions,
}

impl UserData {
    /// Returns the approximate size in memory of all rows: claims, watchlist, rules, votes, hidden
    /// names, saved searches, facts, actions and stored responses. It depends only on the rows, not on the order of
    /// writes.
    pub fn bytes(&self) -> u64 {
        self.claims.bytes()
            + self.watches.bytes()
            + self.rules.bytes()
            + self.votes.bytes()
            + self.responses.bytes()
            + self.hidden.bytes()
            + self.searches.bytes()
            + self.watch_sender.as_ref().map_or(0, |sender| sender.rule.bytes())
            + self.facts.bytes()
            + self.actions.bytes()
    }

    /// Returns an action that can still be undone at `now`.
    pub fn action(&self, id: ActionId, now: UnixMs) -> Option<&Action> {
        self.actions.get(id, now)
    }

    /// Facts that the account added.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Claims, newest `reported_at` first, then id descending.
    pub fn claims(&self) -> impl DoubleEndedIterator<Item = &Claim> {
        self.claims.newest_first()
    }

    /// Returns the number of claims.
    pub fn claim_count(&self) -> usize {
        self.claims.len()
    }

    /// Returns the claim with this id.
    pub fn claim(&self, id: ClaimId) -> Option<&Claim> {
        self.claims.get(id)
    }

    /// Returns the watchlist entry of this name.
    pub fn watch(&self, name: &DomainName) -> Option<WatchEntry> {
        self.watches.get(name)
    }

    /// Returns the owner's notes on a watched name; `None` without notes.
    pub fn watch_details(&self, name: &DomainName) -> Option<&Arc<WatchDetails>> {
        self.watches.details(name.as_str())
    }

    /// Settings and channels of watch alerts, or the defaults.
    pub fn watch_sender(&self) -> &WatchSender {
        self.watch_sender.as_ref().unwrap_or_else(|| WatchSender::usual())
    }

    /// Returns true if the owner has saved the settings of watch alerts.
    pub fn has_watch_sender(&self) -> bool {
        self.watch_sender.is_some()
    }

    /// Returns the owner's choice for a watched name; `None` if it follows the account's settings.
    pub fn entry_alerts(&self, name: &DomainName) -> Option<&Arc<EntryAlerts>> {
        self.watches.alerts(name.as_str())
    }

    /// Returns the morning digest; `None` if it is off.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns a rule, or the channels of the watchlist or of the digest as a rule.
    pub fn sender(&self, id: RuleId) -> Option<&Arc<Rule>> {
        match id {
            RuleId::WATCHLIST => Some(&self.watch_sender().rule),
            RuleId::DIGEST => Some(Digest::sender()),
            id => self.rules.get_shared(id),
        }
    }

    /// Venues noted on the watchlist, in order of names.
    pub fn watched_venues(&self) -> impl Iterator<Item = &str> {
        self.watches.all_details().filter_map(|(_, details)| details.venue.as_deref())
    }

    /// Returns the number of hidden names.
    pub fn hidden_count(&self) -> usize {
        self.hidden.len()
    }

    /// Hidden names, in order.
    pub fn hidden(&self) -> impl Iterator<Item = &DomainName> {
        self.hidden.iter()
    }

    /// Returns true if the account hides a name.
    pub fn hides(&self, name: &DomainName) -> bool {
        self.hidden.holds(name)
    }

    /// Returns the number of names on the watchlist.
    pub fn watch_count(&self) -> usize {
        self.watches.len()
    }

    /// Returns the watchlist, in order of names.
    pub fn watches(&self) -> impl Iterator<Item = WatchEntry> {
        self.watches.iter()
    }

    /// Returns the watched names that consume quota, in order.
    pub fn external_names(&self) -> impl Iterator<Item = DomainName> {
        self.watches.iter().filter(|entry| entry.external).map(|entry| entry.name)
    }

    /// Returns the number of alert rules.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// Alert rules, newest first, then id descending.
    pub fn rules(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        self.rules.newest_first()
    }

    /// Returns the rule with this id.
    pub fn rule(&self, id: RuleId) -> Option<&Rule> {
        self.rules.get(id)
    }

    /// Saved searches, newest first.
    pub fn searches(&self) -> impl Iterator<Item = &Arc<SavedSearch>> {
        self.searches.iter().rev()
    }

    /// Returns the saved search with this id.
    pub fn search(&self, id: SearchId) -> Option<&Arc<SavedSearch>> {
        self.searches.get(id)
    }

    /// Returns the currency of the account, and its rates.
    pub fn money(&self) -> &MoneySettings {
        &self.money
    }

    /// Returns the chosen columns of the drop list; `None` for the default ones.
    pub fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }

    /// Returns the current or last visit of the drop list.
    pub fn visit(&self) -> Option<Visit> {
        self.visit
    }

    /// Returns the account's own vote on a name.
    pub fn vote(&self, name: &DomainName) -> Option<Vote> {
        self.votes.get(name.as_str())
    }

    /// Votes of the account, in order of names.
    pub fn votes(&self) -> impl Iterator<Item = (&str, Vote)> {
        self.votes.iter().map(|(name, vote)| (name.as_str(), *vote))
    }

    /// Deliveries of a rule, newest first.
    pub fn deliveries(&self, rule: RuleId) -> impl Iterator<Item = &Delivery> {
        self.outbox.get(rule).into_iter().flat_map(|outbox| outbox.deliveries.iter().rev())
    }

    /// One delivery of a rule.
    pub fn delivery(&self, rule: RuleId, id: DeliveryId) -> Option<&Delivery> {
        self.outbox.get(rule)?.get(id)
    }

    /// Returns why a channel of a rule is off; `None` if it is on.
    pub fn switched_off(&self, rule: RuleId, channel: &Channel) -> Option<SwitchedOff> {
        self.outbox.get(rule)?.switched_off(channel)
    }

    /// Returns since when a channel of a rule has been failing, and why its last message failed;
    /// `None` if that was delivered.
    pub fn failing(&self, rule: RuleId, channel: &Channel) -> Option<(UnixMs, Problem)> {
        let since = self.outbox.get(rule)?.failing_since(channel)?;
        let of_channel = self.deliveries(rule).filter(|it| *it.channel == *channel);
        let problem = of_channel.filter_map(|it| it.last_problem).next()?;
        Some((since, problem))
    }
}
