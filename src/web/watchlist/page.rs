//! The watchlist as markup.

use maud::{Markup, html};

use super::{List, NOTICES, PATH, Pasted, Report};
use crate::http::watchlist::{WatchRow, WatchSort};
use crate::vocab::limits::WATCHES_PASTED_MAX;
use crate::vocab::observation::RdapState;
use crate::web::components::{self, counted, grouped};
use crate::web::field::Field;
use crate::web::layout::{NavItem, Page};
use crate::web::notice;
use crate::web::owned::{STYLES, address, csv, day, instant, nothing, pager, tile};
use crate::web::viewer::LoggedIn;

/// Refused names that are shown without being asked for.
const REFUSED_OPEN_MAX: usize = 20;

/// The whole page.
pub fn show(member: &LoggedIn, list: &List, query: Option<&str>, pasted: &Pasted) -> Markup {
    let is_empty = list.summary.total == 0;
    let csv_address = address("/api/export/watchlist", &[("sort", sort_word(list.sort))]);
    Page::new("Watchlist").at(NavItem::Watchlist).styles(STYLES).scripts(&["watchlist.js"]).show(
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
            (tile("Not in any list yet", html! {
                (grouped(summary.external as u64))
                span.of { " of " (grouped(list.external_max.into())) }
            }))
            (tile("Renewed since added", figure(summary.renewed)))
            (tile("Registry can be asked", figure(summary.checkable)))
        }
    }
}

/// The form that takes names in.
fn adding(pasted: &Pasted, is_empty: bool) -> Markup {
    let most = grouped(WATCHES_PASTED_MAX as u64);
    let help = format!(
        "One name or up to {most}, separated by lines, spaces, commas or semicolons. \
         münchen.de and xn--mnchen-3ya.de are the same name."
    );
    let field = Field::new("names", "Names to watch").help(&help).fault(pasted.fault.as_ref());
    let rows = if is_empty || !pasted.text.is_empty() { 5 } else { 2 };
    html! {
        section.panel aria-labelledby="adding" {
            @if is_empty {
                h2 #adding { "Watch your first names" }
                p.soft {
                    "See at a glance when a name can be caught. Its registry is asked what it says, and how a \
                     name stands in today's list is shown beside it."
                }
            } @else {
                h2 #adding { "Add names" }
            }
            form.adding.beside[!is_empty] method="post" action="/watchlist/add" {
                (field.textarea(&pasted.text, rows, None))
                p.send { button type="submit" { "Watch" } }
            }
        }
    }
}

/// What became of a pasted list.
fn reported(report: &Report) -> Markup {
    let names = |number: usize| counted(number as u32, "name");
    let class = if report.refused.is_empty() { "notice" } else { "hint" };
    html! {
        section.report.(class) role="status" {
            h2 { "Your list was read" }
            ul {
                li { b { (names(report.added)) } " added" }
                @if report.there > 0 { li { b { (names(report.there)) } " on your watchlist already" } }
                @if !report.refused.is_empty() { li { b { (names(report.refused.len())) } " refused" } }
            }
            @if !report.refused.is_empty() {
                p { "What was refused is in the field below, to be put right or removed." }
                details open[report.refused.len() <= REFUSED_OPEN_MAX] {
                    summary { "Why they were refused" }
                    div.table tabindex="0" role="region" aria-label="Refused names" {
                        table.cards {
                            thead { tr { th scope="col" { "Sent" } th scope="col" { "Reason" } } }
                            tbody {
                                @for (text, why) in &report.refused {
                                    tr { th.sent scope="row" { (text) } td { (why) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn table(list: &List) -> Markup {
    let at = |offset: u32| {
        let offset = if offset == 0 { String::new() } else { offset.to_string() };
        address(PATH, &[("sort", sort_word(list.sort)), ("offset", &offset)])
    };
    html! {
        form #watched method="post" action="/unwatch" {
            input type="hidden" name="next" value=(PATH);
            div.table tabindex="0" role="region" aria-label="Watched names" {
                table.cards.sorted {
                    thead {
                        tr {
                            th.check scope="col" { span.hidden { "Choose" } }
                            (sortable(list.sort, WatchSort::Name, "Name"))
                            (sortable(list.sort, WatchSort::Dqs, "DQS"))
                            (sortable(list.sort, WatchSort::Lifecycle, "Stage"))
                            th scope="col" { "Last drop" }
                            th scope="col" { "Registry says" }
                            (sortable(list.sort, WatchSort::Added, "Added"))
                            th scope="col" { span.hidden { "Remove" } }
                        }
                    }
                    tbody { @for (watched, is_checkable) in &list.rows { (row(watched, *is_checkable)) } }
                }
            }
            div.below {
                button.danger type="submit" { "Remove chosen names" }
                (pager(list.page, list.summary.total, at))
            }
        }
    }
}

/// The head of a column that leads to the list in its order.
fn sortable(current: WatchSort, sort: WatchSort, word: &str) -> Markup {
    let order = match sort {
        WatchSort::Dqs | WatchSort::Added => "descending",
        WatchSort::Lifecycle | WatchSort::Name => "ascending",
    };
    html! {
        th scope="col" aria-sort=[(current == sort).then_some(order)] {
            a href=(address(PATH, &[("sort", sort_word(sort))])) { (word) }
        }
    }
}

/// The word of an order in addresses; the usual one needs none.
fn sort_word(sort: WatchSort) -> &'static str {
    if sort == WatchSort::default() { "" } else { sort.as_str() }
}

fn row(watched: &WatchRow, is_checkable: bool) -> Markup {
    let domain = watched.name();
    html! {
        tr {
            td.check {
                input type="checkbox" name="domain" value=(domain) aria-label={ "Choose " (domain.unicode()) };
            }
            th scope="row" {
                (components::name_linked(domain.as_str(), domain.tld()))
                @if watched.is_external() { " " span.badge title="No list has brought this name yet; it counts against your plan" { "not in a list" } }
            }
            td data-label="DQS" {
                @if let Some(dqs) = watched.dqs() { (components::score(dqs)) } @else { (nothing()) }
            }
            td.stage-of data-label="Stage" {
                @if let Some((stage, release)) = watched.stage_and_release() {
                    (components::stage(stage, release))
                } @else if watched.is_renewed() {
                    span.badge { "registered again" }
                } @else { (nothing()) }
            }
            td data-label="Last drop" {
                @if let Some(day) = watched.latest_drop() { time datetime=(day) { (day) } } @else { (nothing()) }
            }
            td data-label="Registry says" { (registry(watched, is_checkable)) }
            td data-label="Added" { (day(watched.added_at())) }
            td.do {
                button.quiet.small type="submit" name="only" value=(domain) aria-label={ "Remove " (domain.unicode()) } { "Remove" }
            }
        }
    }
}

/// What the registry was last seen to say, and when.
fn registry(watched: &WatchRow, is_checkable: bool) -> Markup {
    let Some((state, at)) = watched.rdap() else {
        let word = if is_checkable { "not asked yet" } else { "cannot be asked" };
        return html! { span.soft { (word) } };
    };
    let (word, class) = match state {
        RdapState::Redemption => ("redemption", "info"),
        RdapState::PendingDelete => ("pending delete", "warn"),
        RdapState::Available => ("available", "good"),
        RdapState::Registered => ("registered", ""),
        RdapState::Renewed => ("renewed", "bad"),
        RdapState::RegisteredAgain => ("registered again", "bad"),
        RdapState::Unknown => ("no clear answer", ""),
    };
    html! { span.badge.(class) { (word) } " " span.frees { (instant(at)) } }
}
