//! Names from lists that came after the last visit, or after a saved search was last seen: the filter,
//! the marks of rows, the chip that leads to them, and the form that marks them as seen
//! (`data/docs/new-names.md`).

use std::sync::Arc;

use axum::extract::State as WebState;
use axum::response::Redirect;
use maud::{Markup, html};

use crate::Web;
use crate::accounts::{Caller, SavedSearch, SearchPatch, UserData, Visit, WriteError};
use crate::components::{total, totalled};
use crate::drops::saved::list_of;
use crate::drops::state::{DropsParams, NEW};
use crate::drops::{DropsResults, Listing, Shown};
use crate::error::PageError;
use crate::form::{Fields, Form};
use crate::index::Total;
use crate::index::filter::DropFilter;
use crate::logged_in::LoggedIn;
use crate::next::local_path;
use crate::service::error::ApiError;
use crate::vocab::ids::SearchId;
use crate::vocab::time::UnixMs;
use crate::vocab::zone::Zone;

/// Path of the form that marks names as seen.
pub const PATH: &str = "/seen";

/// Values of the parameter [`NEW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewNames {
    /// From lists after the last visit.
    SinceVisit,
    /// From lists up to the last visit.
    Seen,
    /// From lists after this batch. Links to the new names of a saved search have it, so that
    /// they still show these names once the search is seen.
    After(u64),
}

impl NewNames {
    /// Returns the value of a state; `None` if it does not filter by this.
    fn of(state: &DropsParams) -> Result<Option<NewNames>, ApiError> {
        let text = state.get(NEW);
        let new = match (text, text.strip_prefix("after-").map(str::parse)) {
            ("", _) => return Ok(None),
            ("since-visit", _) => NewNames::SinceVisit,
            ("seen", _) => NewNames::Seen,
            (_, Some(Ok(batch))) => NewNames::After(batch),
            _ => return Err(ApiError::parameter(NEW, "must be one of since-visit, seen")),
        };
        Ok(Some(new))
    }
}

/// Sets the parameter of a state that leads to the names from lists after a batch.
pub fn after(state: &DropsParams, batch: u64) -> DropsParams {
    state.with(&[(NEW, &format!("after-{batch}"))])
}

/// Adds the condition of a state on lists to its filter. In the first visit, all names are seen.
///
/// # Errors
/// An unknown value, or one about visits without an account.
pub fn apply(
    state: &DropsParams,
    owned: Option<&UserData>,
    visit: Option<Visit>,
    filter: &mut DropFilter,
) -> Result<(), ApiError> {
    let Some(new) = NewNames::of(state)? else { return Ok(()) };
    let since = visit.map(|visit| visit.since.map_or(visit.batch, |(_, batch)| batch));
    if owned.is_none() && !matches!(new, NewNames::After(_)) {
        return Err(ApiError::parameter(NEW, "needs an account: log in to see what is new"));
    }
    let drop = &mut filter.common.drop;
    match new {
        NewNames::SinceVisit => drop.after_batch = Some(since.unwrap_or(u64::MAX)),
        NewNames::Seen => drop.through_batch = Some(since.unwrap_or(u64::MAX)),
        NewNames::After(batch) => drop.after_batch = Some(batch),
    }
    Ok(())
}

/// Whether a name whose first list has this number is marked.
pub fn is_new(visit: Option<Visit>, batch: u32) -> bool {
    visit.and_then(|visit| visit.since).is_some_and(|(_, seen)| u64::from(batch) > seen)
}

/// The mark of a new name: a dot, with a text for screen readers.
pub fn mark() -> Markup {
    html! { i.fresh { "new" } }
}

/// Renders the chip that leads to the `count` names of the list that are new since the last visit.
pub(super) fn chip(shown: &Shown, count: Total) -> Markup {
    let since = shown.visit.and_then(|visit| visit.since).filter(|_| count.count() > 0);
    let path = || shown.state.with(&[(NEW, "since-visit")]).path();
    html! {
        @if let Some((at, _)) = since.filter(|_| shown.state.get(NEW).is_empty()) {
            a.set-chip.fresh-chip href=(path()) title={ "From lists after " (at.instant().format("%Y-%m-%d %H:%M UTC")) } {
                i.fresh aria-hidden="true" {} b { (total(count)) " new" } span { " since " (said(shown, at)) }
            }
        }
    }
}

/// An instant as clocks of the account show it: `Thu 08:10`, or `12 Nov, 08:10` once a week has passed.
fn said(shown: &Shown, at: UnixMs) -> String {
    let zone = shown.owned.as_ref().map_or(Zone::UTC, |it| it.watch_sender().alerts.zone);
    let local = zone.local(at.instant());
    let days = (zone.local(shown.now.0).date() - local.date()).num_days();
    let form = if (0..7).contains(&days) { "%a %H:%M" } else { "%-d %b, %H:%M" };
    local.format(form).to_string()
}

/// Returns the search of the account whose new names a state lists.
pub fn search_of(state: &DropsParams, owned: &UserData) -> Option<SearchId> {
    let is_after = matches!(NewNames::of(state), Ok(Some(NewNames::After(_))));
    let here = state.conditions();
    let is_here = |search: &&Arc<SavedSearch>| list_of(search).conditions() == here;
    owned.searches().find(is_here).filter(|_| is_after).map(|search| search.id)
}

/// Whether a list ends on its page, so that all of it was shown.
pub(super) fn is_at_end(listing: &Listing<'_>) -> bool {
    matches!(listing, Listing::Rows { page: Some(page), .. } if page.next.is_none())
}

/// Renders how many names are new, and the form that marks them as seen.
pub(super) fn form(shown: &Shown, found: &DropsResults<'_>) -> Markup {
    let Some(owned) = &shown.owned else { return html! {} };
    let since = shown.visit.and_then(|visit| visit.since);
    let (names, search) = (found.total(), search_of(&shown.state, owned));
    // A search whose last new name is on this page is seen already.
    let is_seen = search.is_some() && is_at_end(&found.listing);
    let is_visit = matches!(NewNames::of(&shown.state), Ok(Some(NewNames::SinceVisit)));
    let next = shown.state.with(&[(NEW, "")]).path();
    html! {
        @if names.count() > 0 && (search.is_some() || is_visit) {
            form.seen method="post" action=(PATH) {
                input type="hidden" name="next" value=(next);
                input type="hidden" name="batch" value=(found.batch);
                @if let Some(id) = search { input type="hidden" name="search" value=(id); }
                p {
                    (totalled(names, "new name"))
                    @if let Some((at, _)) = since.filter(|_| is_visit) { " since " (said(shown, at)) }
                }
                @if !is_seen { button.quiet.small { "Mark as seen" } }
            }
        }
    }
}

/// `POST /seen`: marks the names of the lists that a page showed as seen, for the next visits or for a
/// saved search.
pub async fn mark_seen(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Redirect, PageError> {
    let newest = web.app.live.current().manifest().batches;
    let batch = fields.text("batch").parse::<u64>().map(|batch| batch.min(newest));
    let batch = batch.map_err(|_| ApiError::parameter("batch", "must be the number of a list"))?;
    match fields.text("search") {
        "" => {
            let now = UnixMs::from_instant(member.viewer.now.0);
            let marked = web.app.store.mark_seen(&member.caller, batch, now).await;
            marked.map_err(ApiError::from)?;
        }
        text => {
            let id = SearchId::parse(text).ok_or(ApiError::NotFound)?;
            search_seen(&web, &member.caller, id, batch).await.map_err(ApiError::from)?;
        }
    }
    Ok(Redirect::to(local_path(Some(fields.text("next")))))
}

/// Records that the names of the lists up to `batch` were shown in a saved search.
pub async fn search_seen(
    web: &Web,
    caller: &Caller,
    id: SearchId,
    batch: u64,
) -> Result<(), WriteError> {
    let patch = SearchPatch { seen: Some(batch), ..SearchPatch::default() };
    web.app.store.change_search(caller, id, patch).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::day::Day;

    #[test]
    fn values_are_conditions_on_lists() {
        let at = |ms| UnixMs::new(ms).expect("in range");
        let visit = Visit { began: at(9), batch: 8, since: Some((at(3), 7)) };
        let owned = UserData::default();
        let batches = |query: &str, owned: Option<&UserData>, visit: Option<Visit>| {
            let state = DropsParams::of(&Fields::from_query(Some(query)));
            let mut filter = state.filter(Day::MIN).expect("valid");
            apply(&state, owned, visit, &mut filter)?;
            Ok::<_, ApiError>((filter.common.drop.after_batch, filter.common.drop.through_batch))
        };
        let first = Visit { since: None, ..visit };
        for (query, visit, expected) in [
            ("tld=com", visit, (None, None)),
            ("new=since-visit", visit, (Some(7), None)),
            ("new=seen", visit, (None, Some(7))),
            ("new=after-5", visit, (Some(5), None)),
            ("new=since-visit", first, (Some(8), None)),
            ("new=seen", first, (None, Some(8))),
        ] {
            let found = batches(query, Some(&owned), Some(visit)).expect("valid");
            assert_eq!(found, expected, "{query}");
        }
        for (query, owned) in [("new=yes", Some(&owned)), ("new=after-x", None), ("new=seen", None)]
        {
            assert!(batches(query, owned, None).is_err(), "{query}");
        }
        assert_eq!([is_new(Some(visit), 7), is_new(Some(visit), 8)], [false, true]);
        assert!(!is_new(Some(first), 9) && !is_new(None, 9));
    }
}
