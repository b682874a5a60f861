//! Pieces that more than one page shows.

mod name;
mod parts;
pub mod query;

use maud::{Markup, html};

use crate::accounts::UserData;
use crate::index::query::profile::Lifecycle;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;

pub use name::{dossier_path, name, name_linked};
pub use parts::{part_bar, part_bars, parts_of, signed};

/// A score as a number and a bar.
pub fn score(dqs: Dqs) -> Markup {
    let points = dqs.points();
    html! {
        span.score.(score_class(dqs)) {
            b { (points) }
            svg viewBox="0 0 100 8" width="64" height="6" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                rect.track width="100" height="8" rx="4" {}
                rect.bar width=(points) height="8" rx="4" {}
            }
        }
    }
}

/// How good a score is, as the class that colours it.
pub fn score_class(dqs: Dqs) -> &'static str {
    match dqs.points() {
        80.. => "top",
        60.. => "good",
        40.. => "fair",
        _ => "poor",
    }
}

/// A stage as a word in its colour, and the day that the name frees up or did.
pub fn stage(stage: Stage, release: Day) -> Markup {
    let frees = match stage {
        Stage::Redemption | Stage::PendingDelete => "free on",
        Stage::Catchable | Stage::Released => "free since",
    };
    html! {
        span.stage.(stage.as_str()) { (stage_word(stage)) }
        " "
        span.frees { (frees) " " time datetime=(release) { (release) } }
    }
}

/// A stage as people say it.
pub fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Redemption => "redemption",
        Stage::PendingDelete => "pending delete",
        Stage::Catchable => "catchable",
        Stage::Released => "released",
    }
}

/// Where a name stands whose latest drop is `drop`, if it has one.
pub fn standing(drop: Option<&Lifecycle>, held: bool) -> Markup {
    match drop {
        Some(drop) if drop.registered_again => html! {
            span.badge { "registered again" }
            " "
            span.frees { "dropped " time datetime=(drop.dropped) { (drop.dropped) } }
        },
        Some(drop) => stage(drop.stage, drop.release),
        None if held => html! { span.badge { "registered" } },
        None => html! { span.badge { "never seen to drop" } },
    }
}

/// Copies a name to the clipboard.
pub fn copy_button(name: &str) -> Markup {
    html! {
        button.act.needs-js type="button" data-copy=(name) aria-label={ "Copy " (name) } { "Copy" }
    }
}

/// What buttons of [`watch_button`] belong to: one form for all of a page, which comes back to
/// `next`.
pub fn watch_form(next: &str) -> Markup {
    html! {
        form #watch method="post" action="/watch" data-watch {
            input type="hidden" name="next" value=(next);
        }
    }
}

/// Puts a name on the watchlist or takes it off. `owned` is what the viewer has, if they have logged
/// in; others are sent to do that and come back to `next`.
pub fn watch_button(owned: Option<&UserData>, domain: &DomainName, next: &str) -> Markup {
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

/// Leads to a claim about a name.
pub fn claim_link(name: &str) -> Markup {
    html! {
        a.act href={ "/portfolio/new?domain=" (name) } aria-label={ "Claim " (name) } { "Claim" }
    }
}

/// A number with its thousands set apart: `1,234,567`.
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

/// `1 name`, `1,204 names`.
pub fn counted(number: u32, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
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
}
