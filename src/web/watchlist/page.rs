//! The watchlist as markup.

use maud::{Markup, html};

use super::{List, NOTICES, PATH, Pasted, Report};
use crate::http::watchlist::{WatchRow, WatchSort};
use crate::vocab::day::Day;
use crate::vocab::limits::WATCHES_PASTED_MAX;
use crate::vocab::observation::RdapState;
use crate::web::components::Column::Text;
use crate::web::components::{self, counted, grouped, query};
use crate::web::field::Field;
use crate::web::layout::{NavItem, Page};
use crate::web::logged_in::LoggedIn;
use crate::web::notice;
use crate::web::owned::{STYLES, csv, day, instant, nothing, pager, tile};

/// Maximum rejected names shown without expanding the list.
const REFUSED_OPEN_MAX: usize = 20;

/// The whole page.
pub fn show(member: &LoggedIn, list: &List, query: Option<&str>, pasted: &Pasted) -> Markup {
    let is_empty = list.summary.total == 0;
    let csv_address = query::with(&[("sort", sort_word(list.sort))], "/api/export/watchlist");
    Page::new("Watchlist", "The names you watch, with their stage and what their registry reports.")
        .at(NavItem::Watchlist)
        .styles(STYLES)
        .scripts(&["watchlist.js"])
        .show(
            Some(&member.viewer),
            html! {
                div.head {
                    h1 { "Watchlist" }
                    @if !is_empty { p { (csv(member.caller.plan, &csv_address)) } }
                }
                (notice::shown(&NOTICES, query))
                @if let Some(report) = &pasted.report { (reported(report)) }
                @if !is_empty { (summary(list)) }
                (adding(pasted, is_empty))
                @if !is_empty { (table(list)) }
            },
        )
}

fn summary(list: &List) -> Markup {
    let summary = list.summary;
    let figure = |number: usize| html! { (grouped(number as u64)) };
    html! {
        dl.tiles {
            (tile("Names", figure(summary.total)))
            (tile("Not in our data yet", html! {
                (grouped(summary.external as u64))
                span.of { " of " (grouped(list.external_max.into())) }
            }))
            (tile("Renewed since added", figure(summary.renewed)))
            (tile("Registry check available", figure(summary.checkable)))
        }
    }
}

/// The form to add names.
fn adding(pasted: &Pasted, is_empty: bool) -> Markup {
    let most = grouped(WATCHES_PASTED_MAX as u64);
    let help =
        format!("Enter up to {most} names, separated by new lines, spaces, commas or semicolons.");
    let field = Field::new("names", "Names").help(&help).error(pasted.error.as_ref());
    let rows = if is_empty || !pasted.text.is_empty() { 5 } else { 2 };
    html! {
        section.panel aria-labelledby="adding" {
            @if is_empty {
                h2 #adding { "Your watchlist is empty" }
                p.soft {
                    "Add the names you want to catch. For each name, you see its stage and what its registry reports."
                }
            } @else {
                h2 #adding { "Add names" }
            }
            form.adding.beside[!is_empty] method="post" action="/watchlist/add" {
                (field.textarea(&pasted.text, rows, None))
                p.send { button type="submit" { "Add names" } }
            }
        }
    }
}

/// Result of adding names.
fn reported(report: &Report) -> Markup {
    let names = |number: usize| counted(number as u32, "name");
    let class = if report.refused.is_empty() { "notice" } else { "hint" };
    html! {
        section.report.(class) role="status" {
            h2 { "Result" }
            ul {
                li { b { (names(report.added)) } " added" }
                @if report.there > 0 { li { b { (names(report.there)) } " already on your watchlist" } }
                @if !report.refused.is_empty() { li { b { (names(report.refused.len())) } " not added" } }
            }
            @if !report.refused.is_empty() {
                p { "Names that were not added are in the field below. Correct or remove them." }
                details open[report.refused.len() <= REFUSED_OPEN_MAX] {
                    summary { "Why were they not added?" }
                    (components::table("Names that were not added", "cards", &[Text("Name"), Text("Reason")], html! {
                        tbody {
                            @for (text, why) in &report.refused {
                                tr { th.sent scope="row" { (text) } td { (why) } }
                            }
                        }
                    }))
                }
            }
        }
    }
}

fn table(list: &List) -> Markup {
    let at = |offset: u32| {
        query::with(&[("sort", sort_word(list.sort)), ("offset", &query::offset(offset))], PATH)
    };
    html! {
        form #watched method="post" action="/unwatch" {
            input type="hidden" name="next" value=(PATH);
            div.table tabindex="0" role="region" aria-label="Watched names" {
                table.cards.sorted {
                    thead {
                        tr {
                            th.check scope="col" { span.hidden { "Select" } }
                            (sortable(list.sort, WatchSort::Name, "Name"))
                            (sortable(list.sort, WatchSort::Dqs, "DQS"))
                            (sortable(list.sort, WatchSort::Lifecycle, "Stage"))
                            th scope="col" { "Last drop" }
                            th scope="col" { "Registry status" }
                            (sortable(list.sort, WatchSort::Added, "Added"))
                            th scope="col" { span.hidden { "Remove" } }
                        }
                    }
                    tbody { @for (watched, is_checkable) in &list.rows { (row(watched, *is_checkable, list.today)) } }
                }
            }
            div.below {
                button.danger type="submit" { "Remove selected" }
                (pager(list.page, list.summary.total, at))
            }
        }
    }
}

/// A column header that sorts the list.
fn sortable(current: WatchSort, sort: WatchSort, word: &str) -> Markup {
    let order = match sort {
        WatchSort::Dqs | WatchSort::Added => "descending",
        WatchSort::Lifecycle | WatchSort::Name => "ascending",
    };
    html! {
        th scope="col" aria-sort=[(current == sort).then_some(order)] {
            a href=(query::with(&[("sort", sort_word(sort))], PATH)) { (word) }
        }
    }
}

/// The `sort` parameter. Empty for the default order.
fn sort_word(sort: WatchSort) -> &'static str {
    if sort == WatchSort::default() { "" } else { sort.as_str() }
}

fn row(watched: &WatchRow, is_checkable: bool, today: Day) -> Markup {
    let domain = watched.name();
    html! {
        tr {
            td.check {
                input type="checkbox" name="domain" value=(domain) aria-label={ "Select " (domain.unicode()) };
            }
            th scope="row" {
                (components::name_linked(domain.as_str(), domain.tld()))
                @if watched.is_external() { " " span.badge title="This name isn't in our data yet. It counts towards the limit of your plan." { "external" } }
            }
            td data-label="DQS" {
                @if let Some(dqs) = watched.dqs() { (components::score(dqs)) } @else { (nothing()) }
            }
            td.stage-of data-label="Stage" {
                @if let Some((stage, release)) = watched.stage_and_release() {
                    (components::stage(stage, release, today))
                } @else if watched.is_renewed() {
                    span.badge { "registered again" }
                } @else { (nothing()) }
            }
            td data-label="Last drop" {
                @if let Some(day) = watched.latest_drop() { (components::date(day, today)) } @else { (nothing()) }
            }
            td data-label="Registry status" { (registry(watched, is_checkable)) }
            td data-label="Added" { (day(watched.added_at())) }
            td.do {
                button.quiet.small type="submit" name="only" value=(domain) aria-label={ "Remove " (domain.unicode()) } { "Remove" }
            }
        }
    }
}

/// Latest status reported by the registry, and when it was checked.
fn registry(watched: &WatchRow, is_checkable: bool) -> Markup {
    let Some((state, at)) = watched.rdap() else {
        let word = if is_checkable { "not checked yet" } else { "check not supported" };
        return html! { span.soft { (word) } };
    };
    let (word, class) = match state {
        RdapState::Redemption => ("redemption", "info"),
        RdapState::PendingDelete => ("pending delete", "warn"),
        RdapState::Available => ("available", "good"),
        RdapState::Registered => ("registered", ""),
        RdapState::Renewed => ("renewed", "bad"),
        RdapState::RegisteredAgain => ("registered again", "bad"),
        RdapState::Unknown => ("unclear", ""),
    };
    html! { span.badge.(class) { (word) } " " span.frees { (instant(at)) } }
}
