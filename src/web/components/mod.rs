//! Markup shared by several pages.

mod name;
mod parts;
pub mod query;
mod table;

use chrono::Datelike;
use maud::{Markup, html};

use crate::accounts::UserData;
use crate::index::query::rows::Lifecycle;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;
use crate::web::viewer::Viewer;

pub use name::{dossier_path, name, name_linked};
pub use parts::{part_bar, part_bars, parts_of, signed};
pub use table::{Column, columns, table};

/// A panel with its title, whose id is `title_id`.
pub fn panel(title_id: &str, title: &str, content: Markup) -> Markup {
    html! {
        section.panel aria-labelledby=(title_id) {
            h2 id=(title_id) { (title) }
            (content)
        }
    }
}

/// A score as a number and a bar.
pub fn score(dqs: Dqs) -> Markup {
    let points = dqs.points();
    html! {
        span.score.(score_class(dqs)) {
            b { (points) }
            svg aria-hidden="true" { rect width={ (points) "%" } height="100%" rx="3" {} }
        }
    }
}

/// CSS class of a score, which sets its colour.
pub fn score_class(dqs: Dqs) -> &'static str {
    match dqs.points() {
        80.. => "top",
        60.. => "good",
        40.. => "fair",
        _ => "poor",
    }
}

/// A stage in its colour and the release date: `redemption available tomorrow (23 Nov)`.
pub fn stage(stage: Stage, release: Day, today: Day) -> Markup {
    let available = match (stage, release.days_since(today)) {
        (Stage::Catchable | Stage::Released, _) => html! { "since " (date(release, today)) },
        (_, 0) => html! { "today (" (date(release, today)) ")" },
        (_, 1) => html! { "tomorrow (" (date(release, today)) ")" },
        _ => date(release, today),
    };
    html! {
        span.stage.(stage.as_str()) { (stage_word(stage)) }
        " "
        span.frees { "available " (available) }
    }
}

/// A date as people say it, with the ISO date in a tooltip: `23 Nov`, or `23 Nov 2025` outside the
/// year of `today`.
pub fn date(day: Day, today: Day) -> Markup {
    html! { time datetime=(day) title=(day) { (date_text(day, today)) } }
}

/// The text of [`date`].
pub fn date_text(day: Day, today: Day) -> String {
    let is_same_year = day.date().year() == today.date().year();
    day.date().format(if is_same_year { "%-d %b" } else { "%-d %b %Y" }).to_string()
}

/// Display name of a stage.
pub fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Redemption => "redemption",
        Stage::PendingDelete => "pending delete",
        Stage::Catchable => "catchable",
        Stage::Released => "released",
    }
}

/// Current status of a name with this latest drop.
pub fn standing(drop: Option<&Lifecycle>, held: bool, today: Day) -> Markup {
    match drop {
        Some(drop) if drop.registered_again => html! {
            span.badge { "registered again" }
            " "
            span.frees { "dropped " (date(drop.dropped, today)) }
        },
        Some(drop) => stage(drop.stage, drop.release, today),
        None if held => html! { span.badge { "registered" } },
        None => html! { span.badge { "no known drop" } },
    }
}

/// Button that copies a name to the clipboard.
fn copy_button(name: &str) -> Markup {
    html! {
        button.act.needs-js data-copy=(name) aria-label={ "Copy " (name) } { "Copy" }
    }
}

/// The form that all [`watch_button`]s of a page submit. It returns to `next`.
pub fn watch_form(next: &str) -> Markup {
    html! {
        form #watch method="post" action="/watch" data-watch {
            input type="hidden" name="next" value=(next);
        }
    }
}

/// Button that adds a name to the watchlist or removes it. Without `owned`, it leads to the login page
/// and back to `next`.
fn watch_button(owned: Option<&UserData>, domain: &DomainName, next: &str) -> Markup {
    let Some(owned) = owned else {
        let log_in = query::with(&[("next", next)], "/login");
        return html! {
            a.act.watch href=(log_in) aria-label={ "Watch " (domain) ": log in first" } { "Watch" }
        };
    };
    if owned.watch(domain).is_some() {
        return html! {
            button.act.watch.on type="submit" form="watch" formaction="/unwatch" name="domain" value=(domain) aria-label={ "Watching " (domain) ": stop" } { "Watching" }
        };
    }
    html! {
        button.act.watch type="submit" form="watch" name="domain" value=(domain) aria-label={ "Watch " (domain) } { "Watch" }
    }
}

/// Link to the form of a new claim.
fn claim_link(name: &str) -> Markup {
    html! {
        a.act href={ "/portfolio/new?domain=" (name) } aria-label={ "Claim " (name) } { "Claim" }
    }
}

/// Buttons of a name: copy, watch and claim.
pub fn actions(owned: Option<&UserData>, domain: &DomainName, next: &str) -> Markup {
    let name = domain.as_str();
    html! { (copy_button(name)) (watch_button(owned, domain, next)) (claim_link(name)) }
}

/// As [`actions`], for a name of the index with the suffix `tld`, in a cell.
pub fn actions_cell(owned: Option<&UserData>, name: &str, tld: &str, next: &str) -> Markup {
    let label_len = name.len() - tld.len() - 1;
    let domain = DomainName::from_stored(name.as_bytes(), label_len as u8)
        .expect("names of the index are a label and a suffix");
    html! { td.actions { (actions(owned, &domain, next)) } }
}

/// Position of a page in all results: `1 to 100 of 31,204`.
pub fn range(offset: u32, rows: u32, total: &str) -> String {
    let (first, last) = (grouped((offset + 1).into()), grouped((offset + rows).into()));
    format!("{first} to {last} of {total}")
}

/// Rows of a list that visitors without an account can page through. People rarely read that far, and
/// programs that collect names have the API.
pub const ANONYMOUS_DEPTH: u32 = 1_000;

/// Offset from which a list shows no rows to this viewer.
pub fn depth(viewer: &Viewer, offset_max: u32) -> u32 {
    if viewer.member.is_some() { offset_max.saturating_add(1) } else { ANONYMOUS_DEPTH }
}

/// Says that a list goes on for visitors who log in, and return to `next`.
pub fn log_in_for_more(next: &str) -> Markup {
    html! {
        p.soft.more {
            "Without an account, a list ends after " (grouped(ANONYMOUS_DEPTH.into())) " names. "
            a href=(query::with(&[("next", next)], "/login")) { "Log in to see more" }
            ", or narrow the filters."
        }
    }
}

/// Links to the previous and the next page around the position in all results.
pub fn pager(previous: Option<String>, position: &str, next: Option<String>) -> Markup {
    let link = |path: Option<String>, rel: &str, word: &str| {
        html! {
            @if let Some(path) = path { a.button.quiet rel=(rel) href=(path) data-load { (word) } }
            @else { span {} }
        }
    };
    html! {
        @if previous.is_some() || next.is_some() {
            nav.pager aria-label="Pages" {
                (link(previous, "prev", "Previous"))
                span.soft { (position) }
                (link(next, "next", "Next"))
            }
        }
    }
}

/// Formats a number with thousands separators: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 name`, `1,204 names`.
pub fn counted(number: u32, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_separators() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (31_204, "31,204"),
            (1_000_000, "1,000,000"),
            (u32::MAX.into(), "4,294,967,295"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(
            (counted(1, "name"), counted(2_000, "name")),
            ("1 name".into(), "2,000 names".into())
        );
    }

    #[test]
    fn dates_read_as_people_say_them() {
        let day = |text: &str| text.parse::<Day>().expect("a date");
        let today = day("2026-11-22");
        assert_eq!(date_text(day("2026-03-01"), today), "1 Mar");
        assert_eq!(date_text(day("2025-12-31"), today), "31 Dec 2025");
        let shown = |kind, on: &str| stage(kind, day(on), today).into_string();
        for (kind, on, text) in [
            (Stage::Redemption, "2026-12-02", "available <time"),
            (Stage::PendingDelete, "2026-11-23", "available tomorrow (<time"),
            (Stage::Catchable, "2026-11-20", "available since <time"),
        ] {
            assert!(shown(kind, on).contains(text), "{}", shown(kind, on));
        }
    }
}
