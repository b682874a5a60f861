//! The list of drops: view tabs, rows, pagination and CSV links.

use maud::{Markup, html};

use crate::index::filter::View;
use crate::index::query::rows::DropRow;
use crate::index::query::rows::Lifecycle;
use crate::index::{DropsPage, Overview};
use crate::vocab::limits::EXPORT_ROWS_MAX;
use crate::vocab::name::to_unicode;
use crate::vocab::stage::Stage;
use crate::web::components::ANONYMOUS_DEPTH;
use crate::web::components::Column::{Hidden, Number, Text};
use crate::web::components::{
    self, actions_cell, columns, grouped, log_in_for_more, name_linked, score, stage,
};
use crate::web::drops::Shown;
use crate::web::drops::state::{ROWS, State};

/// A page of results.
pub struct Listing<'a> {
    /// `None` beyond the depth of the viewer.
    pub page: Option<DropsPage<'a>>,
    pub counted: Counted,
}

/// Position of a page in all results.
#[derive(Clone, Copy)]
pub struct Counted {
    pub offset: u32,
    pub rows: u32,
    pub total: u32,
}

/// The views as tabs.
const TABS: [(View, &str); 7] = [
    (View::Active, "Active"),
    (View::Today, "Dropped today"),
    (View::Stage(Stage::Catchable), "Catchable"),
    (View::Stage(Stage::PendingDelete), "Pending delete"),
    (View::Stage(Stage::Redemption), "Redemption"),
    (View::Stage(Stage::Released), "Released"),
    (View::All, "All"),
];

/// Renders the filtered list.
pub fn section(shown: &Shown<'_>, listing: &Listing<'_>, overview: &Overview<'_>) -> Markup {
    let counted = listing.counted;
    html! {
        section #list aria-label="Ranked drops" data-path=(shown.state.path()) {
            (tabs(shown.state, overview))
            div.bar {
                p role="status" { (range(counted)) }
                @if shown.state.is_narrowed() { a.clear href=(shown.state.cleared()) data-load { "Clear filters" } }
                (files(shown, counted))
                button.quiet.small.needs-js #show-keys type="button" { "Shortcuts" }
            }
            @match &listing.page {
                Some(page) if counted.rows > 0 => (table(shown, page)),
                _ => (empty(shown, counted)),
            }
            (pager(shown, counted))
        }
    }
}

/// Replaces the list when a parameter is invalid.
pub fn invalid(shown: &Shown<'_>) -> Markup {
    let what = ["stage", "view", "offset"].into_iter().find_map(|parameter| {
        shown.problem_of(parameter).map(|what| format!("The parameter {parameter} {what}."))
    });
    html! {
        section #list aria-label="Ranked drops" data-path=(shown.state.path()) {
            p.problem role="alert" {
                (what.as_deref().unwrap_or("A filter is invalid. See the message above."))
                " " a href="/" { "Clear all filters" }
            }
        }
    }
}

fn tabs(state: &State, overview: &Overview<'_>) -> Markup {
    let here = state.view();
    html! {
        nav aria-label="View" {
            ul.tabs {
                @for (view, word) in TABS {
                    li {
                        a href=(state.on(view)) data-load aria-current=[(view == here).then_some("page")] {
                            (word) " " span.count { (grouped(overview.total(view).into())) }
                        }
                    }
                }
            }
        }
    }
}

/// Formats a position: `1 to 100 of 31,204`.
fn range(counted: Counted) -> String {
    let Counted { offset, rows, total } = counted;
    match rows {
        0 => "No names".to_owned(),
        rows => components::range(offset, rows, &grouped(total.into())),
    }
}

fn files(shown: &Shown<'_>, counted: Counted) -> Markup {
    let state = shown.state;
    if counted.rows == 0 {
        return html! {};
    }
    if !shown.exports {
        return html! {
            p.files { a href="/account/plan" { "Upgrade to Core for CSV export" } }
        };
    }
    html! {
        p.files {
            "CSV: "
            a href=(state.csv_of_page(counted.offset)) download { "this page" }
            @if counted.total > counted.rows {
                " or "
                a href=(state.csv_of_all()) download {
                    @if counted.total > EXPORT_ROWS_MAX { "the first " (grouped(EXPORT_ROWS_MAX.into())) }
                    @else { "all " (grouped(counted.total.into())) }
                }
            }
        }
    }
}

fn empty(shown: &Shown<'_>, counted: Counted) -> Markup {
    let state = shown.state;
    html! {
        div.panel.empty {
            @if counted.total > 0 {
                @if counted.offset >= shown.depth && counted.offset < counted.total { (log_in_for_more(&state.path())) }
                @else { p { "There are no more names." } }
                p { a href=(state.page(0)) data-load { "Back to the first page" } }
            } @else if state.is_narrowed() {
                p { "No names match these filters." }
                p { a href=(state.cleared()) data-load { "Clear filters" } " or choose another tab." }
            } @else {
                p { "There are no names in this view today. Choose another tab." }
            }
        }
    }
}

fn table(shown: &Shown<'_>, page: &DropsPage<'_>) -> Markup {
    let next = shown.state.path();
    let mut rows = Vec::with_capacity(ROWS as usize);
    page.for_each_placed(|drop, place| rows.push(row(shown, drop, place, &next)));
    html! {
        table.drops {
            caption.hidden { "Drops, best score first" }
            (columns(&[Text("Name"), Text("DQS"), Text("Stage"), Number("Length"), Text("TLD"), Hidden("Actions")]))
            tbody { @for row in &rows { (row) } }
        }
    }
}

fn row(shown: &Shown<'_>, drop: &DropRow<'_>, place: Lifecycle, next: &str) -> Markup {
    html! {
        tr data-name=(drop.name) {
            th scope="row" { (name_linked(drop.name, drop.tld)) }
            td.dqs {
                details name="parts" {
                    summary { (score(drop.dqs)) span.hidden { ": why this score" } }
                    // A script adds the parts of the score: they would be three quarters of the page.
                    div.why { p { (drop.explanation) } }
                }
            }
            td.where { (stage(place.stage, place.release, shown.today)) }
            td.number.length data-label="Length" { (drop.length) }
            td.tld { "." (to_unicode(drop.tld)) }
            (actions_cell(shown.owned, drop.name, drop.tld, next))
        }
    }
}

fn pager(shown: &Shown<'_>, counted: Counted) -> Markup {
    let state = shown.state;
    let Counted { offset, rows, total } = counted;
    let after = offset + rows;
    let has_more = rows > 0 && after < total;
    let has_next = has_more && after < shown.depth;
    let previous = (offset > 0).then(|| state.page(offset.saturating_sub(ROWS)));
    html! {
        (components::pager(previous, &range(counted), has_next.then(|| state.page(after))))
        @if has_more && !has_next && shown.depth == ANONYMOUS_DEPTH { (log_in_for_more(&state.path())) }
    }
}
