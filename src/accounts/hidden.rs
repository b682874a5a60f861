//! Names that an account hides from its lists (`data/docs/api.md`, Hidden names).

use std::collections::BTreeSet;

use super::data::account::Account;
use super::decide::Decided;
use super::error::WriteError;
use super::event::Event;
use super::idempotency::{Draft, Post};
use super::store::{Caller, Store};
use crate::vocab::limits::HIDDEN_MAX;
use crate::vocab::name::DomainName;

/// Counts of newly hidden names, and of all hidden names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hid {
    pub added: usize,
    pub total: usize,
}

impl Store {
    /// Hides up to 1,000 names, which fit a record, as one transaction. Returns the number of newly
    /// hidden names.
    ///
    /// # Errors
    /// [`WriteError::TooMany`], [`WriteError::Journal`]: none was hidden.
    pub async fn hide(&self, caller: &Caller, names: Vec<DomainName>) -> Result<usize, WriteError> {
        let post = Post::repeatable(self.0.clock.now());
        Ok(self.draft_hidden(caller, names, post).await?.finish().await?.added)
    }

    /// As [`Store::hide`], for a POST that may have an idempotency key.
    ///
    /// # Errors
    /// As [`Store::hide`], and an idempotency key used before.
    pub async fn draft_hidden(
        &self,
        caller: &Caller,
        names: Vec<DomainName>,
        post: Post,
    ) -> Result<Draft<'_, Hid>, WriteError> {
        self.draft(caller, post, |account, _| {
            let hidden = &account.data.hidden;
            let new: BTreeSet<_> = names.into_iter().filter(|name| !hidden.holds(name)).collect();
            let count = new.len();
            if hidden.len() + count > HIDDEN_MAX as usize {
                return Err(WriteError::TooMany { what: "hidden names", limit: HIDDEN_MAX });
            }
            let names = new.into_iter().collect();
            let event = (count > 0).then_some(event(account, names, false));
            Ok(Decided::new(event, Hid { added: count, total: hidden.len() + count }))
        })
        .await
    }

    /// Stops hiding names. Names that are not hidden are ignored.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn unhide_all(
        &self,
        caller: &Caller,
        mut names: Vec<DomainName>,
    ) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            names.retain(|name| account.data.hidden.holds(name));
            let shown = (!names.is_empty()).then(|| event(account, names, true));
            Ok(Decided::new(shown, ()))
        })
        .await
    }

    /// Stops hiding a name.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn unhide(&self, caller: &Caller, name: DomainName) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            if !account.data.hidden.holds(&name) {
                return Err(WriteError::NotFound);
            }
            Ok(Decided::new([event(account, vec![name], true)], ()))
        })
        .await
    }
}

fn event(account: &Account, names: Vec<DomainName>, shown: bool) -> Event {
    Event::NamesHidden { account: account.id, names, shown }
}
