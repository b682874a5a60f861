//! Votes on names. Each account has one vote per name.

use serde::Serialize;
use utoipa::ToSchema;

use super::decide::Decided;
use super::error::WriteError;
use super::event::Event;
use super::store::{Caller, Store};
use crate::vocab::claim::Vote;
use crate::vocab::limits::VOTES_MAX;
use crate::vocab::name::DomainName;

/// Vote totals over all accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Feedback {
    pub up: u64,
    pub down: u64,
}

impl Store {
    /// Returns the votes of all accounts on a name.
    pub fn feedback(&self, name: &DomainName) -> Feedback {
        let (up, down) = self.state().votes(name);
        Feedback { up: up.into(), down: down.into() }
    }

    /// Returns the caller's own vote on a name.
    pub fn own_vote(&self, caller: &Caller, name: &DomainName) -> Option<Vote> {
        self.user_data(caller).vote(name)
    }

    /// Sets or changes the caller's vote on a name, or withdraws it with `None`.
    ///
    /// # Errors
    /// [`WriteError::TooMany`], [`WriteError::Journal`].
    pub async fn vote(
        &self,
        caller: &Caller,
        name: &DomainName,
        vote: Option<Vote>,
    ) -> Result<Feedback, WriteError> {
        self.write(caller, |account, _| {
            let votes = &account.data.votes;
            let before = votes.get(name.as_str());
            if before.is_none() && vote.is_some() && votes.len() >= VOTES_MAX as usize {
                return Err(WriteError::TooMany { what: "votes", limit: VOTES_MAX });
            }
            let set = Event::VoteSet { account: account.id, name: name.clone(), vote };
            Ok(Decided::new((before != vote).then_some(set), ()))
        })
        .await?;
        Ok(self.feedback(name))
    }
}
