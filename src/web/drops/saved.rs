//! Saved searches in the sidebar: totals, numbers of new names, and the form that saves the list.

use std::sync::Arc;
use std::time::{Duration, Instant};

use maud::{Markup, html};

use crate::accounts::{SavedSearch, UserData};
use crate::components::total;
use crate::drops::presets;
use crate::drops::state::DropsParams;
use crate::drops::words::described;
use crate::index::Index;
use crate::index::filter::AsOf;
use crate::owned::idempotency_field;
use crate::service::app::App;
use crate::service::searches::SearchCounts;
use crate::vocab::day::Day;
use crate::vocab::limits::RULE_NAME_CHARS_MAX;

/// Path of the saved searches.
pub const PATH: &str = "/searches";

/// Maximum time that a page spends counting the names of its searches. Counts are cached, so the
/// next page continues with the rest.
const COUNT_TIME: Duration = Duration::from_millis(30);

/// A saved search, with its counts; `None` if time ran out.
pub type Counted = (Arc<SavedSearch>, Option<SearchCounts>);

/// Returns the saved searches of an account, newest first.
pub fn counted(app: &App, owned: &UserData, index: &Index, as_of: AsOf) -> Vec<Counted> {
    let begun = Instant::now();
    let count = |search: &Arc<SavedSearch>| {
        let in_time = begun.elapsed() < COUNT_TIME;
        let counts = in_time.then(|| SearchCounts::in_time(app, index, search, as_of));
        let counts = counts.transpose().inspect_err(|err| {
            tracing::error!(search = search.id.get(), error = ?err, "cannot count a saved search");
        });
        (Arc::clone(search), counts.ok().flatten().flatten())
    };
    owned.searches().map(count).collect()
}

/// Returns the state of the list that a search opens.
pub fn list_of(search: &SavedSearch) -> DropsParams {
    let state = DropsParams::from_pairs(search.conditions.pairs());
    let places = ["stage", "release_from", "release_to", "dropped_from", "dropped_to"];
    // If no part of the list were selected, the page would show the digest.
    match places.iter().all(|place| state.get(place).is_empty()) {
        true => state.with(&[("view", "active")]),
        false => state,
    }
}

/// Renders the number of new names as a link to exactly them.
pub fn new_names(search: &SavedSearch, counts: Option<SearchCounts>) -> Markup {
    let new = counts.map(|counts| counts.new).filter(|new| new.count() > 0);
    html! {
        @if let Some(new) = new {
            a.new href={ (PATH) "/" (search.id) "?new=1" } aria-label={ (total(new)) " new in " (search.name) } {
                (total(new)) " new"
            }
        }
    }
}

/// Renders the form that saves the filters of a list. Tomorrow is saved as a relative day, not as a
/// date.
pub fn save_form(state: &DropsParams, today: Day) -> Markup {
    let listed = state.listed().moving(today);
    let name = match presets::name_of(&listed) {
        "" => described(&listed.conditions()).chars().take(RULE_NAME_CHARS_MAX).collect(),
        preset => preset.to_owned(),
    };
    html! {
        details.save {
            summary { "Save this search" }
            form method="post" action=(PATH) {
                (listed.with(&[("limit", "")]).hidden_inputs())
                (idempotency_field())
                label { "Name" input type="text" name="name" value=(name) maxlength=(RULE_NAME_CHARS_MAX) required autocomplete="off"; }
                button { "Save search" }
            }
        }
    }
}
