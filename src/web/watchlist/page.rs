//! Markup of the watchlist.

use maud::{Markup, html};

use super::paste;
use super::{
    Group, Listed, MAX_BID_LABEL, NOTICES, PATH, Pasted, Report, Unchecked, WatchlistPage,
};
use crate::accounts::WatchDetails;
use crate::components::Column::{Number, Text};
use crate::components::{
    self, History, ago, countdown, counted, grouped, money, query, seen_class, seen_word,
};
use crate::error::sentence;
use crate::field::Field;
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice;
use crate::owned::{STYLES, csv, menu, nothing, pager};
use crate::service::app::Now;
use crate::service::watchlist::{HasBid, WatchFilter, WatchSort};
use crate::vocab::day::Day;
use crate::vocab::limits::{VENUE_CHARS_MAX, WATCH_NOTE_CHARS_MAX, WATCHES_PASTED_MAX};

/// Maximum rejected names shown without expanding the list.
const REFUSED_OPEN_MAX: usize = 20;
/// Columns of the table.
const COLUMNS: u32 = 10;

/// Renders the whole page.
pub fn show(
    member: &LoggedIn,
    list: &WatchlistPage,
    query: Option<&str>,
    pasted: &Pasted,
) -> Markup {
    let is_empty = list.summary.total == 0;
    let csv_address = list.address("/api/export/watchlist", list.sort, 0);
    Page::new(
        "Watchlist",
        "The names you watch: when they drop, what you bid and what their registry reports.",
    )
    .at(NavItem::Watchlist)
    .styles(STYLES)
    .scripts(&["watchlist.js", "undo.js"])
    .show(
        Some(&member.viewer),
        html! {
            div.head {
                h1 { "Watchlist" }
                @if !is_empty {
                    (summary(list))
                    div.buttons {
                        (menu("More", html! {
                            a.button.quiet href="/watchlist/alerts" { "Alerts" }
                            (csv(member.caller.plan, &csv_address))
                            a.button.quiet href="/watchlist/feed" { "Feed and calendar" }
                        }))
                        a.button href="#adding" { "Add names" }
                    }
                }
            }
            (notice::undoable(&NOTICES, query, &list.address(PATH, list.sort, list.page.offset)))
            @if let Some(report) = &pasted.report { (reported(report)) }
            @if !is_empty { (chips(list)) (unchecked(list)) (table(list, member.viewer.now)) }
            (adding(pasted, is_empty))
        },
    )
}

/// Renders the tasks of the next days on one line, without those that have nothing to do.
fn summary(list: &WatchlistPage) -> Markup {
    let totals = &list.totals;
    let external = list.summary.external as u64;
    let of_plan = format!("of {} names outside our data", grouped(list.external_max.into()));
    let drop = if totals.tomorrow == 1 { "drops tomorrow" } else { "drop tomorrow" };
    let parts = [
        (totals.tomorrow, grouped(totals.tomorrow), drop),
        (totals.bids, money(totals.bids), "in maximum bids"),
        (totals.without_bid, grouped(totals.without_bid), "of this week without a bid"),
        (external, grouped(external), &of_plan),
    ];
    let parts = parts.iter().filter(|(number, ..)| *number > 0).enumerate();
    html! {
        p.soft.sum {
            @for (place, (_, figure, words)) in parts {
                @if place > 0 { " · " }
                span { b { (figure) } " " (words) }
            }
        }
    }
}

/// Says once, above the table, how many names were not checked yet, and checks them.
fn unchecked(list: &WatchlistPage) -> Markup {
    let Unchecked { count, next, is_possible } = &list.unchecked;
    let all = if *count > next.len() {
        format!("Check {} now", next.len())
    } else {
        "Check all now".to_owned()
    };
    html! {
        @if *count > 0 {
            form.unchecked method="post" action="/checks" {
                input type="hidden" name="next" value=(list.address(PATH, list.sort, list.page.offset));
                @for name in next { input type="hidden" name="domain" value=(name); }
                (counted(*count as u32, "name")) " not checked yet at the registry"
                @if *is_possible { " " button.quiet.small type="submit" { (all) } }
            }
        }
    }
}

/// Renders filters as links, each with its number of matching names.
fn chips(list: &WatchlistPage) -> Markup {
    let filter = &list.filter;
    let is_all = *filter == WatchFilter::default();
    let no_bid = filter.bid == Some(HasBid::None);
    let chip = |is_on: bool, address: String, word: &str, count: u64| {
        html! {
            li { a.pick href=(address) aria-current=[is_on.then_some("true")] { (word) " " span.count { (grouped(count)) } } }
        }
    };
    html! {
        nav aria-label="Filters" {
            ul.picks {
                (chip(is_all, PATH.to_owned(), "All", list.summary.total as u64))
                (chip(no_bid, query::with(&[("bid", "none")], PATH), "No bid set", list.totals.no_bid))
                @for (tag, count) in &list.tags {
                    (chip(filter.tags.contains(tag), query::with(&[("tag", tag.as_str())], PATH), &format!("#{}", tag.as_str()), *count))
                }
                @for (venue, count) in &list.venues {
                    (chip(filter.venue.as_ref() == Some(venue), query::with(&[("venue", venue)], PATH), venue, *count))
                }
            }
        }
    }
}

/// Renders the form to add names.
fn adding(pasted: &Pasted, is_empty: bool) -> Markup {
    let (most, columns) = (grouped(WATCHES_PASTED_MAX as u64), paste::COLUMNS);
    let help = format!(
        "Enter up to {most} names, separated by new lines, spaces, commas or semicolons. Or paste a CSV \
         file with a header line: {columns}. Downloads of this list are such files."
    );
    let field = Field::new("names", "Names").help(&help).error(pasted.error.as_ref());
    let rows = if is_empty || !pasted.text.is_empty() { 5 } else { 2 };
    html! {
        section.panel aria-labelledby="adding" {
            @if is_empty {
                h2 #adding { "Your watchlist is empty" }
                p.soft {
                    "Add the names you want to catch. For each name, you see when it drops and what its registry reports, and you can note tags, a maximum bid and a venue."
                }
            } @else {
                h2 #adding { "Add names" }
            }
            form.adding.beside[!is_empty] method="post" action="/watchlist/add" {
                (field.textarea(&pasted.text, rows, None))
                p.send {
                    button type="submit" { "Add names" }
                    label.file.needs-js { span { "or open a file" } " " input #file type="file" accept=".csv,.txt,text/csv,text/plain"; }
                }
            }
        }
    }
}

/// Renders the result of adding names.
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
                @if !report.unused.is_empty() {
                    li { "Columns not used: " (report.unused.join(", ")) " (columns that are read: " (paste::COLUMNS) ")" }
                }
            }
            @if !report.refused.is_empty() {
                p { "Rows that were not added are in the field below. Correct or remove them." }
                details open[report.refused.len() <= REFUSED_OPEN_MAX] {
                    summary { "Why were they not added?" }
                    (components::table("Names that were not added", "cards", &[Number("Line"), Text("Name"), Text("Reason")], html! {
                        tbody {
                            @for paste::Rejected { sent, why } in &report.refused {
                                tr {
                                    td.number data-label="Line" { (sent.line) }
                                    th.sent scope="row" { @if sent.name.is_empty() { (nothing()) } @else { (sent.name) } }
                                    td { (sentence(why)) }
                                }
                            }
                        }
                    }))
                }
            }
        }
    }
}

fn table(list: &WatchlistPage, now: Now) -> Markup {
    let at = |offset: u32| list.address(PATH, list.sort, offset);
    html! {
        form #watched method="post" action="/unwatch" {
            input type="hidden" name="next" value=(at(list.page.offset));
            // The button that Enter in a field activates; otherwise Enter would activate the button
            // of the first row.
            button.hidden type="submit" formaction="/watchlist/notes" tabindex="-1" aria-hidden="true" { "Apply" }
            @if list.rows.is_empty() {
                p.panel.empty { "No watched names match this filter. " a href=(PATH) { "Show all" } }
            } @else {
                div.table tabindex="0" role="region" aria-label="Watched names" {
                    table.cards.sorted.watches {
                        thead {
                            tr {
                                th.check scope="col" {
                                    span.hidden { "Select" }
                                    input #all.needs-js type="checkbox" aria-label="Select all names on this page";
                                }
                                (sortable(list, WatchSort::Name, "Name"))
                                (sortable(list, WatchSort::Dqs, "Score"))
                                (sortable(list, WatchSort::Release, "Drops"))
                                (sortable(list, WatchSort::Lifecycle, "State"))
                                th scope="col" { "Tags" }
                                (sortable(list, WatchSort::Bid, "Max bid"))
                                (sortable(list, WatchSort::Venue, "Venue"))
                                th scope="col" { "Note" }
                                th scope="col" { span.hidden { "Remove" } }
                            }
                        }
                        tbody {
                            @for (place, listed) in list.rows.iter().enumerate() {
                                @if let Some(group) = list.begins_group(place) { (group_head(group)) }
                                (row(listed, now))
                            }
                        }
                    }
                }
                (bulk(list))
            }
            div.below {
                (pager(list.page, list.matches, at))
            }
        }
    }
}

/// Renders the actions on the selected names.
fn bulk(list: &WatchlistPage) -> Markup {
    html! {
        div.bulk role="group" aria-label="Selected names" {
            span.picked role="status" { "Selected names" }
            label { "Add tags" input type="text" name="tags" placeholder="flip, keep" autocomplete="off"; }
            label { (MAX_BID_LABEL) input type="text" name="bid" inputmode="decimal" placeholder="unchanged" autocomplete="off"; }
            label { "Venue" input type="text" name="venue" maxlength=(VENUE_CHARS_MAX) list="venues" placeholder="unchanged" autocomplete="off"; }
            label { "Note" input type="text" name="note" maxlength=(WATCH_NOTE_CHARS_MAX) placeholder="unchanged" autocomplete="off"; }
            datalist #venues { @for venue in &list.venue_choices { option value=(venue) {} } }
            button type="submit" formaction="/watchlist/notes" { "Save" }
            button type="submit" formaction="/checks" { "Check now" }
            button.danger type="submit" { "Remove" }
            button.needs-js #clear type="button" { "Clear" }
        }
    }
}

fn group_head(group: &Group) -> Markup {
    html! {
        tr.group {
            th colspan=(COLUMNS) scope="rowgroup" {
                b { (group.word) }
                span.soft { (counted(group.names as u32, "name")) @if group.bids > 0 { ", " (money(group.bids)) " in maximum bids" } }
            }
        }
    }
}

/// Renders a column header that sorts the list.
fn sortable(list: &WatchlistPage, sort: WatchSort, word: &str) -> Markup {
    let order = match sort {
        WatchSort::Dqs | WatchSort::Added | WatchSort::Bid => "descending",
        _ => "ascending",
    };
    html! {
        th scope="col" aria-sort=[(list.sort == sort).then_some(order)] {
            a href=(list.address(PATH, sort, 0)) { (word) }
        }
    }
}

fn row(listed: &Listed, now: Now) -> Markup {
    let watched = &listed.watched;
    let (domain, details) = (watched.name(), watched.details());
    let dossier = format!("{}#watching", components::dossier_path(domain.as_str()));
    let dossier_alerts = format!("{}#alerts", components::dossier_path(domain.as_str()));
    html! {
        tr {
            td.check {
                input type="checkbox" name="domain" value=(domain) aria-label={ "Select " (domain.unicode()) };
            }
            th scope="row" {
                (components::name_linked(domain.as_str(), domain.tld()))
                @if watched.is_external() { " " span.badge title="This name isn't in our data yet. It counts towards the limit of your plan." { "external" } }
            }
            td.of-score data-label="Score" {
                @if let Some(dqs) = watched.dqs() { (components::score(dqs)) } @else { (nothing()) }
            }
            td.of-due data-label="Drops" {
                @if let Some(release) = watched.release() { (countdown(domain.tld(), release, now)) } @else { (nothing()) }
            }
            td.stage-of data-label="State" { (state(listed, now)) }
            td.tags data-label="Tags" { (tags(details)) }
            td.number.of-bid data-label="Max bid" {
                @match details.max_bid {
                    Some(bid) => { a.plain href=(dossier) { (money(bid.cents())) span.hidden { " is the maximum bid for " (domain.unicode()) } } }
                    None => { a.set href=(dossier) { "set bid" span.hidden { " for " (domain.unicode()) } } }
                }
            }
            td.venue data-label="Venue" { @if let Some(venue) = &details.venue { (venue) } @else { (nothing()) } }
            td.note data-label="Note" title=[details.note.as_deref()] { @if let Some(note) = &details.note { (note) } @else { (nothing()) } }
            td.do {
                (components::bell(domain, watched.alerts(), &dossier_alerts))
                button.act type="submit" name="only" value=(domain) aria-label={ "Remove " (domain.unicode()) } { "Remove" }
            }
        }
    }
}

fn tags(details: &WatchDetails) -> Markup {
    html! {
        @if details.tags.is_empty() { (nothing()) }
        @for tag in &details.tags {
            a.tag href=(query::with(&[("tag", tag.as_str())], PATH)) { (tag.as_str()) } " "
        }
    }
}

/// Renders the state of a name, from the registry or, if it reported none, from the calendar. The
/// state expands to the name's history.
fn state(listed: &Listed, now: Now) -> Markup {
    let Listed { watched, is_checkable, .. } = listed;
    let now_state = html! {
        @match (watched.seen(), watched.stage()) {
            (Some(seen), _) => { @if seen.is_verified() { span.confirmed { "✓ " } } span.badge.(seen_class(seen)) { (seen_word(seen)) } " " span.frees { (ago(seen.at, now)) } }
            (None, Some(stage)) => { span.stage.(stage.as_str()) { (components::stage_word(stage)) } " " span.frees { @if !is_checkable { "no registry check" } } }
            (None, None) if watched.is_renewed() => { span.badge { (components::HELD_AGAIN) } }
            (None, None) => { span.soft { @if *is_checkable { "no known drop" } @else { "check not supported" } } }
        }
    };
    let (drop, earlier) = (listed.drop.as_ref(), &listed.earlier[..]);
    let history = History { drop, earlier, seen: watched.seen(), watched: Some(watched) };
    let today = Day::nearest(now.0);
    html! {
        details.history {
            summary { (now_state) }
            (history.shown(today))
        }
    }
}
