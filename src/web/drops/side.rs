//! The sidebar: numbers of names by score, TLD, length and so on, each a link that sets a filter.

use maud::{Markup, html};

use crate::components::{language, query, share, total, totalled};
use crate::drops::presets;
use crate::drops::saved::{self, Counted};
use crate::drops::state::{DropsParams, NEW};
use crate::drops::{DropsResults, Shown};
use crate::index::Total;
use crate::index::filter::Facet;
use crate::index::query::rows::FacetValue;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::name::to_unicode;
use crate::vocab::popularity::ListRank;

/// Maximum values shown of a facet.
const VALUES: usize = 10;
/// Ranges of lengths that are counted together.
const LENGTHS: [(u8, u8); 5] = [(1, 4), (5, 6), (7, 9), (10, 13), (14, 63)];

/// A value, its count, and the target of its link.
struct FacetRow {
    word: String,
    count: u32,
    path: String,
    /// Whether the list is filtered by this value; its link then removes the filter.
    is_set: bool,
}

pub fn show(shown: &Shown, found: Option<&DropsResults<'_>>, saved: &[Counted]) -> Markup {
    let state = &shown.state;
    html! {
        aside.side.sheet #filters aria-label="Filters" popover {
            (searches(shown, saved))
            (more(shown))
            @if !state.is_filtered() { section.presets { h2 { "Start with" } (presets::links()) } }
            @if let Some(found) = found {
                @let are_exact = found.facets_are_exact;
                @for (facet, values) in &found.facets {
                    @match facet {
                        Facet::DqsBand => (section(state, "Score", &["min_dqs", "max_dqs"], scores(state, values), are_exact)),
                        Facet::SuffixRank => (section(state, "Within its TLD", &["max_suffix_rank"], bands(state, values), are_exact)),
                        Facet::Tld => (section(state, "TLD", &["tld"], tlds(state, values), are_exact)),
                        Facet::Length => (section(state, "Length", &["min_len", "max_len"], lengths(state, values), are_exact)),
                        Facet::Kind => (section(state, "Kind", &["kind"], words(state, "kind", values, kind_word), are_exact)),
                        Facet::Language => (section(state, "Language", &["language"], words(state, "language", values, language), are_exact)),
                        _ => {},
                    }
                }
            }
            (section(state, "Letters", &["digits", "hyphens", "idn", "caps", "typo", "adult"], letters(state), true))
            button.done type="button" popovertarget="filters" popovertargetaction="hide" {
                "Show " @match found { Some(found) => (totalled(found.total(), "name")), None => "the list" }
            }
        }
    }
}

/// Renders saved searches with their totals, and the form that saves the current one.
fn searches(shown: &Shown, saved: &[Counted]) -> Markup {
    let path = shown.state.path();
    let list = shown.state.with(&[(NEW, ""), ("offset", shown.state.get("offset"))]).path();
    html! {
        section.saved {
            h2 { "Saved searches" @if !saved.is_empty() { a href=(saved::PATH) aria-label="Manage saved searches" { "Manage" } } }
            @if !saved.is_empty() {
                ul {
                    @for (search, counts) in saved {
                        @let is_here = saved::list_of(search).path() == list;
                        li {
                            a href={ (saved::PATH) "/" (search.id) } aria-current=[is_here.then_some("true")] {
                                span.w { (search.name) } " "
                                @if let Some(counts) = counts.filter(|it| it.new.count() == 0) { span { (total(counts.total)) } }
                            }
                            (saved::new_names(search, *counts))
                        }
                    }
                }
            }
            @if shown.owned.is_some() { (saved::save_form(&shown.state, shown.today)) }
            @else { p { a href=(query::with(&[("next", &path)], "/login")) { "Log in to save this search" } } }
        }
    }
}

fn section(
    state: &DropsParams,
    title: &str,
    parameters: &[&'static str],
    rows: Vec<FacetRow>,
    are_exact: bool,
) -> Markup {
    let names = |count| if are_exact { Total::Exact(count) } else { Total::About(count) };
    let none: Vec<_> = parameters.iter().map(|name| (*name, "")).collect();
    let is_set = parameters.iter().any(|name| !state.get(name).is_empty());
    let most = rows.iter().map(|row| row.count).max().unwrap_or_default();
    html! {
        @if is_set || !rows.is_empty() {
            section {
                h2 { (title) @if is_set { a href=(state.with(&none).path()) aria-label={ "Clear the filter: " (title) } { "Clear" } } }
                ul {
                    @for row in &rows {
                        li {
                            a class=[(row.count > 0).then(|| share(row.count, most))] href=(row.path) aria-current=[row.is_set.then_some("true")] {
                                (row.word) " "
                                @if row.count > 0 { span { (total(names(row.count))) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Builds a link that sets both bounds, or removes them if they are set.
fn bounded(
    state: &DropsParams,
    (low, high): (&'static str, &'static str),
    (from, to): (u8, u8),
    open: (u8, u8),
) -> (String, bool) {
    let text = |bound: u8, open: u8| {
        if bound == open { String::new() } else { bound.to_string() }
    };
    let (from, to) = (text(from, open.0), text(to, open.1));
    let is_set = (state.get(low), state.get(high)) == (&from, &to);
    let values = if is_set { [(low, ""), (high, "")] } else { [(low, &*from), (high, &*to)] };
    (state.with(&values).path(), is_set)
}

fn scores(state: &DropsParams, values: &[FacetValue]) -> Vec<FacetRow> {
    let counts: Vec<(u8, u32)> = numbers(values).collect();
    let mut to = Dqs::MAX.points();
    let row = |band: Dqs| {
        let from = band.points();
        let (path, is_set) = bounded(state, ("min_dqs", "max_dqs"), (from, to), (0, 100));
        let is_round = |names: &u32| 10_u32.pow(names.ilog10()) == *names;
        let share = match band.one_in().filter(is_round) {
            Some(names) => format!(", best {} %", 100.0 / f64::from(names)),
            None => String::new(),
        };
        let word = match to {
            100 => format!("{from}+{share}"),
            to => format!("{from}–{to}{share}"),
        };
        to = from.saturating_sub(1);
        let count = counts.iter().find(|(start, _)| *start == from).map_or(0, |(_, count)| *count);
        FacetRow { word, count, path, is_set }
    };
    let rows = Dqs::BANDS.into_iter().rev().map(row);
    rows.filter(|row| row.count > 0 || row.is_set).collect()
}

fn lengths(state: &DropsParams, values: &[FacetValue]) -> Vec<FacetRow> {
    let counts: Vec<(u8, u32)> = numbers(values).collect();
    let row = |(from, to): (u8, u8)| {
        let within = counts.iter().filter(|(length, _)| (from..=to).contains(length));
        let (path, is_set) = bounded(state, ("min_len", "max_len"), (from, to), (1, 63));
        let word = if to == 63 { format!("{from} or more") } else { format!("{from}–{to}") };
        FacetRow { word, count: within.map(|(_, count)| count).sum(), path, is_set }
    };
    LENGTHS.into_iter().map(row).filter(|row| row.count > 0 || row.is_set).collect()
}

fn tlds(state: &DropsParams, values: &[FacetValue]) -> Vec<FacetRow> {
    words(state, "tld", values, |tld| format!(".{}", to_unicode(tld)))
}

/// Builds links that add a value to a list, or remove it.
fn words(
    state: &DropsParams,
    name: &'static str,
    values: &[FacetValue],
    word: impl Fn(&str) -> String,
) -> Vec<FacetRow> {
    let set: Vec<&str> = state.get(name).split(',').filter(|value| !value.is_empty()).collect();
    let row = |value: &FacetValue| {
        let is_set = set.contains(&value.value.as_str());
        let mut others: Vec<&str> = set.iter().copied().filter(|it| *it != value.value).collect();
        if !is_set {
            others.push(&value.value);
        }
        FacetRow {
            word: word(&value.value),
            count: value.count,
            path: state.with(&[(name, &others.join(","))]).path(),
            is_set,
        }
    };
    values.iter().take(VALUES).map(row).collect()
}

fn kind_word(kind: &str) -> String {
    let word = match kind {
        "word" => "One word",
        "words" => "Several words",
        "name" => "Person or place",
        "invented" => "Invented",
        "letters" => "Letters",
        "number" => "Number",
        "mixed" => "Letters and digits",
        other => other,
    };
    word.to_owned()
}

/// Returns the best shares of a TLD, smallest first.
fn bands(state: &DropsParams, values: &[FacetValue]) -> Vec<FacetRow> {
    let mut bands: Vec<_> = numbers(values).collect();
    bands.sort_unstable();
    let row = |(percent, count): (u8, u32)| {
        let text = percent.to_string();
        let is_set = state.get("max_suffix_rank") == text;
        let next = if is_set { "" } else { text.as_str() };
        let path = state.with(&[("max_suffix_rank", next)]).path();
        FacetRow { word: format!("Best {percent} %"), count, path, is_set }
    };
    bands.into_iter().map(row).collect()
}

fn letters(state: &DropsParams) -> Vec<FacetRow> {
    let row = |name: &'static str, value: &str, word: &str| {
        let is_set = state.get(name) == value;
        let path = state.with(&[(name, if is_set { "" } else { value })]).path();
        FacetRow { word: word.to_owned(), count: 0, path, is_set }
    };
    vec![
        row("digits", "none", "No digits"),
        row("hyphens", "none", "No hyphens"),
        row("idn", "none", "No IDNs"),
        row("digits", "only", "Digits only"),
        row("caps", "none", "No trademarks or spam"),
        row("typo", "none", "No misspellings of popular names"),
        row("adult", "include", "With adult names"),
    ]
}

fn numbers(values: &[FacetValue]) -> impl Iterator<Item = (u8, u32)> {
    values.iter().filter_map(|value| Some((value.value.parse().ok()?, value.count)))
}

const TEXTS: [(&str, &str); 5] = [
    ("contains", "Contains"),
    ("starts", "Starts with"),
    ("ends", "Ends with"),
    ("not_contains", "Does not contain"),
    ("tld", "TLDs"),
];
const PAIRS: [(&str, &str, &str, &str); 4] = [
    ("Score", "min_dqs", "max_dqs", "100"),
    ("Length", "min_len", "max_len", "63"),
    ("Words", "min_words", "max_words", "15"),
    ("Other TLDs", "min_tlds", "max_tlds", ""),
];
const NUMBERS: [(&str, &str, u32); 3] = [
    ("Popularity rank at most", "max_rank", ListRank::MAX),
    ("Best % of its TLD", "max_suffix_rank", 100),
    ("Taken soon, % at least", "expected_taken", ExpectedTaken::PERCENT_MAX),
];
const DATES: [(&str, &str, &str); 2] =
    [("Drops", "release_from", "release_to"), ("Left the zone", "dropped_from", "dropped_to")];

/// Returns the parameters that have a field in [`more`], with the labels of the fields.
fn fields() -> impl Iterator<Item = (&'static str, String)> {
    let text = TEXTS.iter().map(|(name, word)| (*name, (*word).to_owned()));
    let numbers = NUMBERS.iter().map(|(word, name, _)| (*name, (*word).to_owned()));
    let pairs = PAIRS.iter().flat_map(|(word, low, high, _)| {
        [(*low, format!("{word} at least")), (*high, format!("{word} at most"))]
    });
    let dates = DATES.iter().flat_map(|(word, from, to)| {
        [(*from, format!("{word} from")), (*to, format!("{word} to"))]
    });
    text.chain(numbers).chain(pairs).chain(dates)
}

/// Returns the sentence about an invalid parameter, with the label of its field.
pub fn problem(parameter: &str, what: &str) -> String {
    match fields().find(|(name, _)| *name == parameter) {
        Some((_, label)) => format!("{label}: {what}."),
        None => format!("The parameter {parameter} {what}."),
    }
}

/// Renders fields for the filters that have no list of values. Works without scripts.
fn more(shown: &Shown) -> Markup {
    let state = &shown.state;
    let given = |name| Some(state.get(name)).filter(|value| !value.is_empty());
    let bound = |name, label: String| {
        // A date is the day that `tomorrow` or `+7d` stands for. A field for dates cannot hold an instant.
        let date = Day::parse_from(state.get(name), shown.today).ok();
        let instant = given(name).filter(|_| date.is_none());
        html! {
            @match instant {
                None => { input type="date" name=(name) value=[date] aria-label=(label); }
                Some(instant) => { input name=(name) value=(instant) maxlength="40" aria-label=(label); }
            }
        }
    };
    let none: Vec<_> = fields().map(|(name, _)| (name, "")).collect();
    html! {
        details.more {
            summary { "All filters" }
            form action="/" method="get" autocomplete="off" autocapitalize="none" spellcheck="false" {
                (state.with(&none).hidden_inputs())
                @for (name, word) in TEXTS {
                    label { (word) input name=(name) value=[given(name)] maxlength="2000"; }
                }
                @for (word, low, high, most) in PAIRS {
                    fieldset {
                        legend { (word) }
                        input type="number" name=(low) value=[given(low)] min="0" max=[(!most.is_empty()).then_some(most)] aria-label={ (word) " at least" };
                        " to "
                        input type="number" name=(high) value=[given(high)] min="0" max=[(!most.is_empty()).then_some(most)] aria-label={ (word) " at most" };
                    }
                }
                @for (word, name, most) in NUMBERS {
                    label { (word) input type="number" name=(name) value=[given(name)] min="1" max=(most); }
                }
                @for (word, from, to) in DATES {
                    fieldset {
                        legend { (word) }
                        (bound(from, format!("{word} from")))
                        " to "
                        (bound(to, format!("{word} to")))
                    }
                }
                button { "Apply" }
            }
        }
    }
}
