//! The list: tabs, days, rows, pages, and actions on selected names.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::components::{
    self, ANONYMOUS_DEPTH, counted, grouped, log_in_for_more, query, rarity, row_header, score,
    share, stage_word, total, totalled, watch_star,
};
use crate::drops::presets;
use crate::drops::state::{DropsParams, FACTS, NEW, ROW_CHOICES, ROWS};
use crate::drops::words::Chip;
use crate::drops::{
    BEST_OF_DAY, BestOfDay, DropsResults, FIRST_ROWS, HIGH, Listing, RowsPart, Shown, Tab,
    TabPlace, bulk, chips, columns, csv, new, sets,
};
use crate::index::filter::{Sort, SortKey};
use crate::index::query::rows::{DropRow, Lifecycle};
use crate::index::{DropsPage, Total};
use crate::owned::for_excel;
use crate::vocab::day::Day;
use crate::vocab::fact::FactType;
use crate::vocab::limits::EXPORT_ROWS_MAX;
use crate::vocab::stage::Stage;

/// Columns of the table that cannot be hidden: selection and watch, name, and score.
const FIXED_COLUMNS: usize = 3;

/// Renders everything beside the sidebar.
pub fn show(shown: &Shown, found: &Result<DropsResults<'_>, String>) -> Markup {
    let state = &shown.state;
    let not_understood = shown.not_understood.as_ref().map(|it| &it.why);
    html! {
        section #list aria-label="Drops" {
            div #places {
                @if let Some(why) = not_understood.or(found.as_ref().err()) {
                    p.problem #problem role="alert" { (why) " " a href="/" { "Clear all filters" } }
                }
                @if let Ok(found) = found {
                    div.top {
                        (tabs(state, found))
                        button.only-phone.quiet type="button" popovertarget="tools" aria-label="Actions" { i.icon.dots {} }
                        (tools(shown, found))
                    }
                    @if !found.days.is_empty() { (days(shown, found)) }
                    (sets::show(shown))
                }
            }
            div #rows {
                @if let Ok(found) = found {
                    (new::form(shown, found))
                    @match &found.listing {
                        Listing::Digest(best) if found.listing.rows() > 0 => (digest(shown, best)),
                        Listing::Rows { page: Some(page), sort, offset, total } if page.count() > 0 => {
                            (table(shown, *sort, &page_rows(shown, page)))
                            (rest_link(shown, page.count()))
                            (pager(shown, *offset, page, *total))
                        }
                        Listing::Rows { offset, total, .. } if total.count() > 0 => (beyond(shown, *offset, total.count())),
                        _ => (empty(shown, found)),
                    }
                    (hidden(shown))
                    (adult(shown, found.adult))
                    (bulk::form(shown, found.total()))
                }
            }
        }
    }
}

/// Renders the rows that the page left out, for a script to add them to its table.
pub fn rest(shown: &Shown, listing: &Listing<'_>) -> Markup {
    html! {
        table {
            @match listing {
                Listing::Digest(best) => (digest_rows(shown, best)),
                Listing::Rows { page: Some(page), .. } => (page_rows(shown, page)),
                Listing::Rows { page: None, .. } => {}
            }
        }
    }
}

/// Renders a link to all rows of the page, unless it shows them. Its space is that of the other rows, so
/// that nothing moves when they take its place.
fn rest_link(shown: &Shown, rows: u32) -> Markup {
    let mut page = vec![("rows", "all")];
    if shown.hidden.are_shown {
        page.push(("hidden", "show"));
    }
    html! {
        @if shown.part == RowsPart::First && rows > FIRST_ROWS {
            p #others.(share(rows - FIRST_ROWS, 100)) {
                a href=(shown.state.path_with(&page)) { "Show all " (rows) " rows" }
            }
        }
    }
}

fn tabs(state: &DropsParams, found: &DropsResults<'_>) -> Markup {
    let here = Tab::of(state);
    html! {
        nav aria-label="View" {
            ul.tabs {
                @for TabPlace { tab, state, names } in &found.tabs {
                    li {
                        a href=(state.path()) aria-current=[(here == Some(*tab)).then_some("page")] {
                            (tab.word()) " " span.count { (total(*names)) }
                        }
                    }
                }
                @if here.is_none() {
                    li { a href=(state.path()) aria-current="page" { (part_word(state)) } }
                }
            }
        }
    }
}

/// Describes a part of the list without a tab.
fn part_word(state: &DropsParams) -> String {
    match (state.get("stage"), state.get("view")) {
        ("", "today") => "Left the zone today".to_owned(),
        ("", _) => "Whole pipeline".to_owned(),
        (stage, _) => match stage.parse::<Stage>() {
            Ok(stage) => {
                let word = stage_word(stage);
                format!("{}{}", word[..1].to_uppercase(), &word[1..])
            }
            Err(_) => stage.replace(',', ", "),
        },
    }
}

fn tools(shown: &Shown, found: &DropsResults<'_>) -> Markup {
    let state = &shown.state;
    // Some licences allow no copy of facts within other data.
    let exported = shown.facts.columns().iter().filter(|it| it.source.is_exported());
    let exported: Vec<_> = exported.map(|it| it.name.as_str()).collect();
    let csv =
        state.listed().with(&[(FACTS, &exported.join(","))]).csv(&csv::members(&shown.columns));
    let names = found.total();
    let rule = state.conditions().moving(shown.today);
    let name = presets::name_of(&rule);
    let rule: Vec<_> = rule.parameters().chain([("name", name)]).collect();
    html! {
        div #tools.tools.sheet popover {
            label.only-phone { input #picking type="checkbox"; "Select" }
            button.only-phone.quiet.needs-js type="button" data-share="Dropping domain names" { "Share" }
            @if state.is_filtered() { a.clear href=(state.unfiltered().path()) { "Clear filters" } }
            a href=(query::with(&rule, "/alerts/new")) aria-label="Alert me about these" { "Alert me" }
            @if names.count() > 0 {
                // The API does not know what an account has seen.
                @if !state.get(NEW).is_empty() {}
                @else if shown.exports {
                    @let rows = if names.count() > EXPORT_ROWS_MAX { format!("the first {}", grouped(EXPORT_ROWS_MAX.into())) } else { totalled(names, "name") };
                    a href=(csv) download title=(rows) aria-label={ "CSV: " (rows) } { "CSV" }
                    a href=(for_excel(&csv)) download title="CSV with a byte order mark, so that Excel reads it as UTF-8" {
                        "for Excel"
                    }
                } @else if shown.owned.is_some() { a href="/account/plan" { "CSV needs the plan Core" } }
            }
            (columns::picker(shown))
            button.quiet.small.needs-js #show-keys type="button" { "Shortcuts" }
        }
    }
}

fn days(shown: &Shown, found: &DropsResults<'_>) -> Markup {
    let state = &shown.state;
    let most = found.days.iter().map(|(_, count)| count.count()).max().unwrap_or_default();
    let is_all = state.is_digest();
    let chosen = shown.release_day();
    html! {
        nav.days aria-label="Release days" {
            ul {
                li {
                    a href=(if is_all { state.soon() } else { state.anywhere() }.path()) aria-current=[is_all.then_some("true")] {
                        "All " (found.days.len()) " days " span { (total(found.soon())) }
                    }
                }
                @for (day, count) in &found.days {
                    li {
                        a class=(share(count.count(), most)) href=(state.on_day(*day).path()) title=(day) aria-current=[(chosen == Some(*day)).then_some("true")] {
                            (short_day(*day, shown.today)) " " span { (total(*count)) }
                        }
                    }
                }
            }
        }
    }
}

/// Label of a coming day: `Tomorrow`, `+3 Wed 25`.
fn short_day(day: Day, today: Day) -> String {
    match day.days_since(today) {
        1 => "Tomorrow".to_owned(),
        ahead => format!("+{ahead} {}", day.date().format("%a %-d")),
    }
}

fn digest(shown: &Shown, best: &[BestOfDay<'_>]) -> Markup {
    html! {
        (table(shown, Sort::natural(SortKey::Release), &digest_rows(shown, best)))
        (rest_link(shown, best.iter().map(|best| best.page.count()).sum()))
        p.foot.soft {
            "The best " (BEST_OF_DAY) " of each day. "
            a href=(shown.state.soon().path()) { "Show all in one list" }
        }
    }
}

/// Renders the days of the digest in the part of the page. A day whose last row belongs to it does.
fn digest_rows(shown: &Shown, best: &[BestOfDay<'_>]) -> Markup {
    let mut rows_before = 0;
    html! {
        @for best in best.iter().filter(|best| best.page.count() > 0) {
            @let () = rows_before += best.page.count();
            @let is_shown = shown.part.has(rows_before - 1);
            @let rows = rows(shown, &best.page, |_| is_shown);
            @if is_shown { tbody { (day_head(shown, best)) (rows) } }
        }
    }
}

/// Renders the rows of a page in its part.
fn page_rows(shown: &Shown, page: &DropsPage<'_>) -> Markup {
    html! { tbody { (rows(shown, page, |place| shown.part.has(place))) } }
}

fn day_head(shown: &Shown, best: &BestOfDay<'_>) -> Markup {
    let BestOfDay { day, page, total: names, high } = best;
    let ahead = day.days_since(shown.today);
    html! {
        tr.group {
            th colspan=(FIXED_COLUMNS + shown.columns.as_slice().len() + shown.facts.columns().len()) scope="rowgroup" {
                span.g {
                    span.due.{ "d" (ahead) } { b { @if ahead == 1 { "Tomorrow" } @else { "+" (ahead) " days" } } } " "
                    time datetime=(day) { (day.date().format("%a %-d %b").to_string()) } " "
                    span { (totalled(*names, "name")) @if high.count() > 0 { ", " (total(*high)) " at " (HIGH) " or more" } } " "
                    @if page.next.is_some() {
                        a.end href=(shown.state.on_day(*day).path()) { "Show all " (total(*names)) }
                    }
                }
            }
        }
    }
}

fn table(shown: &Shown, sort: Sort, body: &Markup) -> Markup {
    let state = &shown.state;
    let is_digest = state.is_digest();
    let head_of = |class: &str, word: &str, about: Option<&str>, key: SortKey, by: &str| {
        let is_fact_here = key != SortKey::Fact || state.get("sort") == by;
        let is_here = sort.key == key && is_fact_here && !is_digest;
        let natural = Sort::natural(key);
        // The heading of the column that already sorts the list reverses the order.
        let turned = is_here && sort.descending == natural.descending;
        let order = match (turned, natural.descending) {
            (false, _) => "",
            (true, true) => "asc",
            (true, false) => "desc",
        };
        let path = state.listed().with(&[("sort", by), ("order", order)]).path();
        let sorted = is_here.then_some(if sort.descending { "descending" } else { "ascending" });
        html! { th class=(class) scope="col" title=[about] aria-sort=[sorted] { a href=(path) { (word) } } }
    };
    let head = |class: &str, word: &str, about: Option<&str>, key: SortKey| {
        head_of(class, word, about, key, key.as_str())
    };
    let table = html! {
        table.drops.by-facts[!shown.facts.is_empty()] {
            caption.hidden { "Drops" }
            thead {
                tr {
                    th.sel scope="col" { input.needs-js #all type="checkbox" aria-label="Select all names on this page"; }
                    (head("name", "Name", None, SortKey::Name))
                    (head("dqs", "Score", None, SortKey::Dqs))
                    @for column in shown.columns.as_slice() {
                        @match columns::sort(*column) {
                            Some(key) => (head(columns::class(*column), columns::word(*column), columns::about(*column), key)),
                            None => th class=(columns::class(*column)) scope="col" { (columns::word(*column)) },
                        }
                    }
                    @for fact in shown.facts.columns() {
                        @let title = fact.source.edition.meta().title.as_str();
                        @let word = columns::fact_word(fact);
                        @if fact.stored().kind == FactType::Text {
                            th.text scope="col" title=(title) { (word) }
                        } @else {
                            (head_of(columns::fact_class(fact), &word, Some(title), SortKey::Fact, &format!("fact:{}", fact.name)))
                        }
                    }
                }
            }
            (body)
        }
    };
    let facts = shown.facts.columns().len();
    html! {
        @if facts > 0 { div.scroll.always[facts > sets::FACTS_MAX] { (table) } } @else { (table) }
        (sources(shown))
    }
}

/// Renders whose facts the columns show, with the lines that licences ask for.
fn sources(shown: &Shown) -> Markup {
    let metas = shown.facts.columns().iter().map(|it| it.source.edition.meta());
    let lines: BTreeSet<_> =
        metas.map(|it| it.attribution.as_deref().unwrap_or(&it.title)).collect();
    html! {
        @if !lines.is_empty() {
            p.foot.soft { "– is unknown, not 0. Facts: " (lines.into_iter().collect::<Vec<_>>().join("; ")) }
        }
    }
}

/// Renders the rows whose place on the page `is_wanted`, and counts the hidden ones of all.
fn rows(shown: &Shown, page: &DropsPage<'_>, is_wanted: impl Fn(u32) -> bool) -> Markup {
    let next = shown.state.path();
    let (mut rows, mut at) = (Vec::new(), 0);
    page.for_each_placed(|drop, place| {
        let is_hidden = shown.hides(drop.name);
        if is_hidden {
            shown.hidden.left_out.update(|count| count + 1);
        }
        if is_wanted(at) && (!is_hidden || shown.hidden.are_shown) {
            rows.push(row(shown, drop, place, is_hidden, &next));
        }
        at += 1;
    });
    html! { @for row in &rows { (row) } }
}

fn row(shown: &Shown, drop: &DropRow<'_>, place: Lifecycle, is_hidden: bool, next: &str) -> Markup {
    let name = drop.name;
    let mark = html! {
        @if new::is_new(shown.visit, drop.first_batch) { (new::mark()) }
        @if is_hidden { " " span.badge { "hidden" } }
    };
    html! {
        tr {
            td.sel {
                input type="checkbox" form="bulk" name="domain" value=(name) aria-label={ "Select " (name) };
                (watch_star(shown.owned.as_deref(), name, drop.tld, next))
            }
            (row_header(name, drop.tld, &mark))
            td.dqs { (score(drop.dqs)) " " (rarity(drop.dqs)) }
            @for column in shown.columns.as_slice() { (columns::cell(*column, drop, place, shown)) }
            (columns::fact_cells(name, shown))
        }
    }
}

/// Renders how many rows of the page are hidden. Must run after rendering the rows, which counts
/// the hidden ones.
fn hidden(shown: &Shown) -> Markup {
    let path = shown.state.path();
    html! {
        @match (shown.hidden.left_out.get(), shown.hidden.are_shown) {
            (0, _) => {},
            (count, true) => p.foot.soft { (grouped(count.into())) " hidden on this page, shown. " a href=(path) { "Leave out" } },
            (count, false) => p.foot.soft { (grouped(count.into())) " hidden on this page. " a href=(shown.state.path_with(&[("hidden", "show")])) { "Show" } },
        }
    }
}

fn adult(shown: &Shown, names: u32) -> Markup {
    let path = shown.state.with(&[("adult", "include")]).path();
    html! {
        @if names > 0 {
            p.foot.soft { (counted(names, "adult name")) @if names == 1 { " is" } @else { " are" } " hidden. " a href=(path) { "Show" } }
        }
    }
}

fn pager(shown: &Shown, offset: u32, page: &DropsPage<'_>, names: Total) -> Markup {
    let state = &shown.state;
    let size = state.get("limit").parse().unwrap_or(ROWS).max(1);
    let after = offset + page.count();
    let has_more = page.next.is_some();
    let has_next = has_more && after < shown.depth;
    let previous = (offset > 0).then(|| state.page(offset.saturating_sub(size)));
    let position = components::range(offset, page.count(), &total(names));
    html! {
        div.pages {
            p role="status" { (position) }
            @if names.count() > ROW_CHOICES[0] { (page_size(state, size)) }
            (components::pager(previous, jump(state, offset, size, names), has_next.then(|| state.page(after))))
        }
        @if has_more && !has_next && shown.depth == ANONYMOUS_DEPTH { (log_in_for_more(&state.path())) }
    }
}

/// `Page 3 of 13`, with the number as a field.
fn jump(state: &DropsParams, offset: u32, size: u32, names: Total) -> Markup {
    let page = offset / size + 1;
    let last = match names {
        Total::Exact(names) => Total::Exact(names.div_ceil(size)),
        Total::About(names) => Total::About(names.div_ceil(size)),
    };
    html! {
        form.jump action="/" method="get" {
            (state.with(&[]).hidden_inputs())
            label { "Page " input type="number" name="page" value=(page) min="1" max=[last.is_exact().then_some(last.count())] required; }
            " of " (total(last)) " "
            button.quiet.small { "Go" }
        }
    }
}

fn page_size(state: &DropsParams, size: u32) -> Markup {
    html! {
        form.size action="/" method="get" data-auto {
            (state.with(&[("limit", "")]).hidden_inputs())
            label for="limit" { "Rows" }
            select #limit name="limit" {
                @for choice in ROW_CHOICES { option value=(choice) selected[choice == size] { (choice) } }
            }
            noscript { button.quiet.small { "Show" } }
        }
    }
}

/// Renders the message for an offset after the last name, or beyond the viewer's limit.
fn beyond(shown: &Shown, offset: u32, total: u32) -> Markup {
    let state = &shown.state;
    html! {
        div.panel.empty {
            @if offset >= shown.depth && offset < total { (log_in_for_more(&state.path())) }
            @else { p { "There are no more names." } }
            p { a href=(state.page(0)) { "Back to the first page" } }
        }
    }
}

fn empty(shown: &Shown, found: &DropsResults<'_>) -> Markup {
    let state = &shown.state;
    let others = || found.tabs.iter().filter(|it| it.names.count() > 0);
    html! {
        div.panel.empty {
            @if state.is_filtered() { h2 { "No names match these filters" } }
            @else if state.is_digest() { h2 { "No known name is released in the next seven days" } }
            @else { h2 { "There are no names here today" } }
            @if !found.ways.is_empty() {
                p { "Remove one filter to see:" }
                ul.ways {
                    @for (chip, count) in &found.ways { (way(state, chip, *count)) }
                }
            }
            @if others().next().is_some() {
                p { "In other tabs:" }
                ul.ways {
                    @for TabPlace { tab, state, names } in others() {
                        li { a href=(state.path()) { span { (tab.word()) } " " b { (totalled(*names, "name")) } } }
                    }
                }
            }
            @if state.is_filtered() { p { a href=(state.unfiltered().path()) { "Clear filters" } } }
        }
    }
}

fn way(state: &DropsParams, chip: &Chip, count: Total) -> Markup {
    html! {
        li {
            a href=(chips::without(state, chip).path()) {
                span { (chip.word) " " (chip.value) } " " b { (totalled(count, "name")) }
            }
        }
    }
}
