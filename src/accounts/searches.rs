//! Saved searches (`data/docs/api.md`, Saved searches).

use compact_str::CompactString;

use super::data::account::Account;
use super::data::searches::SavedSearch;
use super::decide::{Decided, check_text, draw_id};
use super::error::{InvalidField, WriteError};
use super::event::{Event, RowOf};
use super::idempotency::{Draft, Post};
use super::store::{Caller, Store};
use crate::query::stored::Conditions;
use crate::vocab::ids::SearchId;
use crate::vocab::limits::{RULE_NAME_CHARS_MAX, SEARCHES_MAX};
use crate::vocab::time::UnixMs;

/// A search to be saved.
#[derive(Clone, Debug)]
pub struct NewSearch {
    pub name: String,
    /// Filters and order, validated.
    pub conditions: Conditions,
    /// The newest batch at the time of saving.
    pub seen: u64,
}

/// A change of a saved search; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct SearchPatch {
    pub name: Option<String>,
    pub conditions: Option<Conditions>,
    pub seen: Option<u64>,
}

impl Store {
    /// Saves a search.
    ///
    /// # Errors
    /// [`WriteError`]: an invalid name, 100 searches, an idempotency key used before.
    pub async fn add_search(
        &self,
        caller: &Caller,
        search: NewSearch,
        post: Post,
    ) -> Result<Draft<'_, SavedSearch>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, _| add(account, search, now)).await
    }

    /// Changes a saved search.
    ///
    /// # Errors
    /// [`WriteError`]: no such search, an invalid name.
    pub async fn change_search(
        &self,
        caller: &Caller,
        id: SearchId,
        patch: SearchPatch,
    ) -> Result<SavedSearch, WriteError> {
        self.write(caller, |account, _| change(account, id, patch)).await
    }

    /// Deletes a saved search. Rules that were created from it are kept.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_search(&self, caller: &Caller, id: SearchId) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            account.data.searches.get(id).ok_or(WriteError::NotFound)?;
            let removed = Event::Removed { account: account.id, row: RowOf::Search(id) };
            Ok(Decided::new([removed], ()))
        })
        .await
    }
}

fn add(account: &Account, new: NewSearch, now: UnixMs) -> Result<Decided<SavedSearch>, WriteError> {
    let name = name(new.name)?;
    let searches = &account.data.searches;
    if searches.len() >= SEARCHES_MAX as usize {
        return Err(WriteError::TooMany { what: "saved searches", limit: SEARCHES_MAX });
    }
    let search = SavedSearch {
        id: draw_id(SearchId::new, |id| searches.get(id).is_some())?,
        name,
        conditions: new.conditions,
        created_at: now,
        seen: new.seen,
    };
    let event = Event::SearchPut { account: account.id, search: Box::new(search.clone()) };
    Ok(Decided::new([event], search))
}

fn change(
    account: &Account,
    id: SearchId,
    patch: SearchPatch,
) -> Result<Decided<SavedSearch>, WriteError> {
    let before = account.data.searches.get(id).ok_or(WriteError::NotFound)?;
    let mut search = SavedSearch::clone(before);
    if let Some(text) = patch.name {
        search.name = name(text)?;
    }
    search.conditions = patch.conditions.unwrap_or(search.conditions);
    // After a rollback to an older generation, names must not become new again.
    search.seen = search.seen.max(patch.seen.unwrap_or_default());
    let event = (search != **before).then(|| {
        let search = Box::new(search.clone());
        Event::SearchPut { account: account.id, search }
    });
    Ok(Decided::new(event, search))
}

fn name(text: String) -> Result<CompactString, WriteError> {
    check_text(InvalidField::SearchName, &text, 1..=RULE_NAME_CHARS_MAX, char::is_control)?;
    Ok(text.into())
}
