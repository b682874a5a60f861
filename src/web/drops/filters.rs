//! The filter form above the list. It also works without JavaScript.

use maud::{Markup, html};

use crate::index::Overview;
use crate::vocab::limits::{LABEL_CHARS_MAX, SUBSTRING_CHARS_MAX};
use crate::vocab::name::to_unicode;
use crate::web::components::grouped;
use crate::web::drops::Shown;
use crate::web::drops::state::State;

/// Number of frequent TLDs with a chip.
const CHIPS: usize = 12;

/// Renders the form around the TLD chips, which change with the list.
pub fn form(shown: &Shown<'_>, chips: &Markup) -> Markup {
    let state = shown.state;
    html! {
        form #filters.panel.filters action="/" method="get" aria-label="Filters" {
            @for (name, value) in state.view_fields() {
                @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
            }
            div.fields {
                (contains_field(shown))
                (number(shown, &MIN_DQS, &state.min_dqs))
                (number(shown, &MAX_LEN, &state.max_len))
            }
            fieldset.tlds {
                legend { "TLDs" }
                (chips)
                div.others {
                    label.hidden for="other-tlds" { "Other TLDs, separated by commas" }
                    input #other-tlds type="text" name="tld" maxlength="2000" placeholder="Other TLDs: shop, xyz" autocomplete="off" autocapitalize="none" spellcheck="false";
                    (problem(shown, "tld"))
                }
            }
            noscript { div.apply { button type="submit" { "Apply" } } }
        }
    }
}

/// Checkboxes of the most frequent TLDs of the view and of the selected ones.
pub fn chips(state: &State, overview: &Overview<'_>) -> Markup {
    let frequent: Vec<(&str, u32)> = overview.tlds(state.view()).take(CHIPS).collect();
    let is_frequent = |tld: &str| frequent.iter().any(|(known, _)| *known == tld);
    let others = state.tlds.iter().filter(|tld| !is_frequent(tld));
    html! {
        div #chips.chips {
            @for &(tld, count) in &frequent {
                (chip(tld, state.tlds.iter().any(|chosen| chosen == tld), Some(count)))
            }
            @for tld in others { (chip(tld, true, None)) }
        }
    }
}

/// All TLDs of the view, most frequent first, as suggestions for the text field. A page does not carry
/// them: there are more than a thousand.
pub fn suggestions(state: &State, overview: &Overview<'_>) -> Markup {
    html! {
        datalist #all-tlds {
            @for (tld, count) in overview.tlds(state.view()) {
                option value=(to_unicode(tld)) { (grouped(count.into())) }
            }
        }
    }
}

fn chip(tld: &str, chosen: bool, count: Option<u32>) -> Markup {
    html! {
        label.chip {
            input type="checkbox" name="tld" value=(tld) checked[chosen];
            span { "." (to_unicode(tld)) @if let Some(count) = count { " " small { (grouped(count.into())) } } }
        }
    }
}

fn contains_field(shown: &Shown<'_>) -> Markup {
    let invalid = shown.problem_of("q").is_some();
    html! {
        div.field {
            label for="contains" { "Name contains" }
            input #contains type="search" name="q" value=(shown.state.contains) maxlength=(SUBSTRING_CHARS_MAX)
                placeholder="part of a name" autocomplete="off" autocapitalize="none" spellcheck="false"
                data-main-search aria-invalid=[invalid.then_some("true")] aria-describedby=[invalid.then_some("q-error")];
            (problem(shown, "q"))
        }
    }
}

/// A numeric filter.
struct Number {
    id: &'static str,
    name: &'static str,
    label: &'static str,
    min: u8,
    max: u8,
}

const MIN_DQS: Number =
    Number { id: "min-dqs", name: "min_dqs", label: "Minimum score", min: 0, max: 100 };
const MAX_LEN: Number = Number {
    id: "max-len",
    name: "max_len",
    label: "Maximum length",
    min: 1,
    max: LABEL_CHARS_MAX,
};

fn number(shown: &Shown<'_>, number: &Number, sent: &str) -> Markup {
    let Number { id, name, label, min, max } = *number;
    let error = format!("{name}-error");
    let invalid = shown.problem_of(name).is_some();
    html! {
        div.field {
            label for=(id) { (label) }
            input id=(id) type="number" name=(name) min=(min) max=(max) value=(sent) placeholder="any"
                aria-invalid=[invalid.then_some("true")] aria-describedby=[invalid.then_some(error)];
            (problem(shown, name))
        }
    }
}

fn problem(shown: &Shown<'_>, parameter: &str) -> Markup {
    html! {
        @if let Some(what) = shown.problem_of(parameter) {
            p.error id={ (parameter) "-error" } { "It " (what) "." }
        }
    }
}
