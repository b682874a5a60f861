//! The store's methods for what accounts own. Every one is keyed by the account of its caller: no
//! look-up by bare id exists. Writes are on disk when they return.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::decide::replies::posted;
use super::decide::{Decided, claims, rules, watches};
use super::owned::Owned;
use super::owned::claims::{Claim, ClaimPatch, NewClaim};
use super::owned::rules::{ChangedRule, NewRule, Rule, RulePatch, WebhookSecret};
use super::owned::watches::{Watch, WatchEntry};
use super::store::{Caller, Store};
use super::write::{Answered, Feedback, Outcome, Post, Reply, WriteError};
use crate::vocab::claim::Vote;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

impl Store {
    /// All the caller's account owns, at one moment.
    pub fn owned(&self, caller: &Caller) -> Arc<Owned> {
        let state = self.state();
        state.account(caller.account).map(|account| Arc::clone(&account.owned)).unwrap_or_default()
    }

    /// How many accounts voted for and against a name.
    pub fn feedback(&self, name: &DomainName) -> Feedback {
        self.state().feedback(name)
    }

    /// The caller's own vote on a name.
    pub fn own_vote(&self, caller: &Caller, name: &DomainName) -> Option<Vote> {
        self.owned(caller).vote(name)
    }

    /// Adds a claim and answers with what `shape` makes of it.
    ///
    /// # Errors
    /// [`WriteError`]: a value that does not fit, 100,000 claims, a key used before.
    pub async fn add_claim(
        &self,
        caller: &Caller,
        claim: NewClaim,
        post: Post,
        shape: impl FnOnce(&Claim) -> Reply + Send,
    ) -> Result<Answered, WriteError> {
        let now = UnixMs::of(post.now);
        self.write(caller, |account, _| {
            posted(account, &post, || {
                let Decided { events, answer } = claims::add(account, claim, now)?;
                Ok(Decided { events, answer: shape(&answer) })
            })
        })
        .await
    }

    /// Changes a claim.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::Invalid`].
    pub async fn change_claim(
        &self,
        caller: &Caller,
        id: ClaimId,
        patch: ClaimPatch,
        now: DateTime<Utc>,
    ) -> Result<Claim, WriteError> {
        self.write(caller, |account, _| claims::change(account, id, patch, UnixMs::of(now))).await
    }

    /// Removes a claim.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_claim(&self, caller: &Caller, id: ClaimId) -> Result<(), WriteError> {
        self.write(caller, |account, _| claims::remove(account, id)).await
    }

    /// Puts a name on the watchlist; `shape` makes the answer of the entry, which may have been
    /// there.
    ///
    /// # Errors
    /// [`WriteError`]: no quota left for an external name, 10,000 entries, a key used before.
    pub async fn add_watch(
        &self,
        caller: &Caller,
        watch: Watch,
        post: Post,
        shape: impl FnOnce(&WatchEntry, Outcome) -> Reply + Send,
    ) -> Result<Answered, WriteError> {
        let now = UnixMs::of(post.now);
        self.write(caller, |account, limits| {
            posted(account, &post, || {
                let Decided { events, answer } = watches::add(account, limits, &watch, now)?;
                let (entry, outcome) = answer;
                Ok(Decided { events, answer: shape(&entry, outcome) })
            })
        })
        .await
    }

    /// Puts names on the watchlist, in their order and as one transaction; what became of each. At
    /// most a thousand: they have to fit in a record.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: none of them was put there then.
    pub async fn add_watches(
        &self,
        caller: &Caller,
        new: Vec<Watch>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Result<Outcome, WriteError>>, WriteError> {
        self.write(caller, |account, limits| {
            let Decided { events, answer } =
                watches::add_all(account, limits, &new, UnixMs::of(now));
            let outcomes = answer.into_iter().map(|one| one.map(|(_, outcome)| outcome));
            Ok(Decided { events, answer: outcomes.collect() })
        })
        .await
    }

    /// Takes names off the watchlist, as one transaction; how many were on it.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: all of them are there still.
    pub async fn remove_watches(
        &self,
        caller: &Caller,
        names: Vec<DomainName>,
    ) -> Result<usize, WriteError> {
        self.write(caller, |account, _| Ok(watches::remove_all(account, &names))).await
    }

    /// Takes a name off the watchlist.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_watch(&self, caller: &Caller, name: &DomainName) -> Result<(), WriteError> {
        self.write(caller, |account, _| watches::remove(account, name)).await
    }

    /// Adds an alert rule; `shape` makes the answer of it and the secrets of its webhooks, which
    /// are shown this once.
    ///
    /// # Errors
    /// [`WriteError`]: a value that does not fit, the plan's caps and channels, a key used before.
    pub async fn add_rule(
        &self,
        caller: &Caller,
        rule: NewRule,
        post: Post,
        shape: impl FnOnce(&Rule, &[WebhookSecret]) -> Reply + Send,
    ) -> Result<Answered, WriteError> {
        let now = UnixMs::of(post.now);
        self.write(caller, |account, limits| {
            posted(account, &post, || {
                let Decided { events, answer } = rules::add(account, limits, rule, now)?;
                Ok(Decided { events, answer: shape(&answer, &answer.secrets) })
            })
        })
        .await
    }

    /// Changes an alert rule.
    ///
    /// # Errors
    /// [`WriteError`]: no such rule, a value that does not fit, the plan's caps and channels.
    pub async fn change_rule(
        &self,
        caller: &Caller,
        id: RuleId,
        patch: RulePatch,
    ) -> Result<ChangedRule, WriteError> {
        self.write(caller, |account, limits| rules::change(account, limits, id, patch)).await
    }

    /// Removes an alert rule. Claims it led to keep its name.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_rule(&self, caller: &Caller, id: RuleId) -> Result<(), WriteError> {
        self.write(caller, |account, _| rules::remove(account, id)).await
    }

    /// Sets, changes or (`None`) takes back the caller's vote on a name. One account has one.
    ///
    /// # Errors
    /// [`WriteError::TooMany`], and what else refuses a write.
    pub async fn vote(
        &self,
        caller: &Caller,
        name: &DomainName,
        vote: Option<Vote>,
    ) -> Result<Feedback, WriteError> {
        self.write(caller, |account, _| watches::vote(account, name, vote)).await?;
        Ok(self.feedback(name))
    }
}
