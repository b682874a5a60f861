//! The query bar in the header: the active filters as chips, and a field that adds more.

use maud::{Markup, html};

use crate::drops::state::DropsParams;
use crate::drops::words::{self, Chip};
use crate::drops::{Shown, new};
use crate::index::Total;
use crate::vocab::limits::SEARCH_QUERY_CHARS_MAX;

/// Returns the state without a filter.
pub fn without(state: &DropsParams, chip: &Chip) -> DropsParams {
    let none: Vec<_> = chip.parameters.iter().map(|name| (*name, "")).collect();
    state.with(&none)
}

/// Renders the query bar. The form works without scripts; it sends the active filters along with the new
/// text. `new_names` of the list are new since the last visit.
pub fn bar(shown: &Shown, new_names: Total) -> Markup {
    let state = &shown.state;
    let text = shown.not_understood.as_ref().map(|it| it.text.as_str());
    html! {
        form #bar.find.query role="search" action="/" method="get" {
            span.set #set {
                (state.with(&[]).hidden_inputs())
                @for chip in words::chips(state, Some(shown.today)) {
                    (removable(state, &chip))
                }
                (new::chip(shown, new_names))
            }
            label.hidden for="find" { "Search or filter names" }
            input #find type="search" name="add" value=[text] maxlength=(SEARCH_QUERY_CHARS_MAX)
                placeholder="Search or filter" autocomplete="off" autocapitalize="none" spellcheck="false"
                data-main-search aria-invalid=[text.map(|_| "true")] aria-describedby=[text.map(|_| "problem")];
            button.only-phone.quiet type="button" popovertarget="filters" aria-label="Filters" { i.icon.funnel {} }
            details.menu.help {
                summary aria-label="What can be typed here" { "?" }
                dl {
                    @for (example, says) in words::examples() { dt { code { (example) } } dd { (says) } }
                }
            }
        }
    }
}

fn removable(state: &DropsParams, chip: &Chip) -> Markup {
    let Chip { word, value, .. } = chip;
    html! {
        a.set-chip href=(without(state, chip).path()) aria-label={ "Remove the filter: " (word) " " (value) } {
            @if !word.is_empty() { span { (word) } " " }
            b { (value) }
            span.x aria-hidden="true" { "×" }
        }
    }
}
