//! The lifecycle of a drop from deletion to release, as a chart and as dates.

use maud::{Markup, html};

use crate::components::{
    HELD_AGAIN, counted, date, date_text, exit_word, return_words, share, stage_word, upper_first,
};
use crate::index::EarlierDrop;
use crate::index::filter::AsOf;
use crate::index::query::rows::Lifecycle;
use crate::vocab::day::Day;
use crate::vocab::stage::Stage;

/// The days that a name spends in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    stage: Stage,
    from: Day,
    to: Day,
}

/// Renders the latest drop with its stages and today.
pub fn timeline(drop: &Lifecycle, as_of: AsOf) -> Markup {
    let today = as_of.today;
    if drop.registered_again {
        return html! {
            p {
                "Dropped on " (date(drop.dropped, today)) " (" (relative(drop.dropped, today))
                "). It was " (HELD_AGAIN) " since."
            }
        };
    }
    let spans = spans(drop, as_of);
    let (first, last) = frame(&spans, today);
    let part = |from: Day, to: Day| {
        let days = |from: Day, to: Day| to.days_since(from).max(0) as u32;
        share(days(from, to), days(first, last))
    };
    html! {
        div.timeline role="img" aria-labelledby="timeline-text" {
            @for span in &spans {
                @let word = upper_first(stage_word(span.stage));
                @let days = counted(span.to.days_since(span.from) as u32, "day");
                span.(span.stage.as_str()).(part(span.from, span.to)) title={ (word) ", " (days) } { (word) span { ", " (days) } } " "
            }
            b.now.(part(first, today)) { "Today" }
        }
        p #timeline-text.hidden { (summary(drop, as_of)) }
        ol.milestones { @for milestone in milestones(drop, as_of) { (milestone.shown(today)) } }
    }
}

/// Renders the drops before the latest one.
pub fn earlier(drops: &[EarlierDrop], today: Day) -> Markup {
    html! {
        @if drops.is_empty() {
            p.soft { "None. This is its first known drop." }
        } @else {
            table {
                thead { tr { th scope="col" { "Dropped" } th scope="col" { "Freed" } th scope="col" { "Afterwards" } } }
                tbody {
                    @for drop in drops {
                        tr {
                            td { (date(drop.date, today)) }
                            td { (date(drop.release, today)) }
                            td { (drop.returned.map_or_else(|| "unknown".to_owned(), return_words)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the stages of a drop that last at least a day, in order.
fn spans(drop: &Lifecycle, as_of: AsOf) -> Vec<Span> {
    let caught = drop.release.day.plus(as_of.catch_days.into());
    let end = caught.max(as_of.today).plus(2);
    // A list may report a release before the usual end of the stages.
    let pending = drop.pending_delete.max(drop.dropped).min(drop.release.day);
    let all = [
        Span { stage: Stage::Redemption, from: drop.dropped, to: pending },
        Span { stage: Stage::PendingDelete, from: pending, to: drop.release.day },
        Span { stage: Stage::Catchable, from: drop.release.day, to: caught },
        Span { stage: Stage::Released, from: caught, to: end },
    ];
    all.into_iter().filter(|span| span.from < span.to).collect()
}

/// Returns the first and last day of the chart.
fn frame(spans: &[Span], today: Day) -> (Day, Day) {
    let first = spans.iter().map(|span| span.from).min().map_or(today, |first| first.min(today));
    let last = spans.iter().map(|span| span.to).max().map_or(today, |last| last.max(today));
    (first, last)
}

/// Returns the text alternative of the chart.
fn summary(drop: &Lifecycle, as_of: AsOf) -> String {
    let word = stage_word(drop.stage);
    let left = drop.release.day.days_since(as_of.today);
    let frees = match left {
        0.. => format!("drops {}", relative(drop.release.day, as_of.today)),
        _ => format!(
            "expected to be available since {}, not verified",
            date_text(drop.release.day, as_of.today)
        ),
    };
    let dropped = date_text(drop.dropped, as_of.today);
    format!("{} on {dropped}, now {word}; {frees}.", exit_word(drop))
}

/// A date in the lifecycle.
struct Milestone {
    class: &'static str,
    word: &'static str,
    day: Day,
}

impl Milestone {
    fn shown(&self, today: Day) -> Markup {
        html! {
            li.(self.class) {
                span.what { (self.word) }
                b { (date(self.day, today)) }
                span.when { (relative(self.day, today)) }
            }
        }
    }
}

/// Returns the dates of a drop, in order.
fn milestones(drop: &Lifecycle, as_of: AsOf) -> Vec<Milestone> {
    let milestone = |class, word, day| Milestone { class, word, day };
    let leaves = drop.release.day.plus(as_of.catch_days.into());
    let mut all = vec![milestone("dropped", exit_word(drop), drop.dropped)];
    if drop.pending_delete < drop.release.day {
        all.push(milestone("pending-delete", "Pending delete", drop.pending_delete));
    }
    all.push(milestone("catchable", "Drops", drop.release.day));
    all.push(milestone("released", "Leaves the list", leaves));
    all.sort_by_key(|milestone| milestone.day);
    all
}

/// Formats a date relative to today: `in 9 days`, `yesterday`.
pub fn relative(day: Day, today: Day) -> String {
    match day.days_since(today) {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        -1 => "yesterday".to_owned(),
        days @ 2.. => format!("in {days} days"),
        days => format!("{} days ago", days.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn drop(dropped: &str, pending_delete: &str, release: &str, stage: Stage) -> Lifecycle {
        Lifecycle {
            dropped: day(dropped),
            pending_delete: day(pending_delete),
            release: day(release).into(),
            stage,
            registered_again: false,
        }
    }

    fn on(today: &str) -> AsOf {
        AsOf { today: day(today), catch_days: 5 }
    }

    #[test]
    fn stages_follow_each_other() {
        let drop = drop("2026-01-01", "2026-01-31", "2026-02-05", Stage::Redemption);
        let found: Vec<_> = spans(&drop, on("2026-01-10"))
            .into_iter()
            .map(|span| (span.stage, span.from.to_string(), span.to.to_string()))
            .collect();
        let span = |stage, from: &str, to: &str| (stage, from.to_owned(), to.to_owned());
        let expected = [
            span(Stage::Redemption, "2026-01-01", "2026-01-31"),
            span(Stage::PendingDelete, "2026-01-31", "2026-02-05"),
            span(Stage::Catchable, "2026-02-05", "2026-02-10"),
            span(Stage::Released, "2026-02-10", "2026-02-12"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tld_without_pending_delete_skips_that_stage() {
        let drop = drop("2026-01-01", "2026-01-31", "2026-01-31", Stage::Catchable);
        let html = timeline(&drop, on("2026-02-01")).into_string();
        assert!(!html.contains("pending-delete"), "{html}");
        assert!(html.contains("expected to be available since 31 Jan, not verified"), "{html}");
    }

    #[test]
    fn an_early_release_keeps_stages_in_order() {
        let drop = drop("2026-01-01", "2025-12-29", "2026-01-03", Stage::PendingDelete);
        let spans = spans(&drop, on("2026-01-02"));
        assert!(spans.is_sorted_by_key(|span| span.from));
        assert_eq!(spans[0].stage, Stage::PendingDelete);
    }

    /// Lists of coming releases contain names that left the zone long ago.
    #[test]
    fn a_drop_date_after_the_begin_of_pending_delete_is_a_first_listing() {
        let listed = drop("2026-11-27", "2026-11-20", "2026-11-27", Stage::Catchable);
        let html = timeline(&listed, on("2026-11-27")).into_string();
        assert!(html.contains("First listed") && !html.contains("Left the zone"), "{html}");
        for left in ["2026-11-20", "2026-11-19", "2026-11-28"] {
            let drop = drop(left, "2026-11-20", "2026-11-27", Stage::PendingDelete);
            let html = timeline(&drop, on("2026-11-27")).into_string();
            assert!(html.contains("Left the zone"), "{left}: {html}");
        }
    }

    #[test]
    fn dates_are_relative_to_today() {
        let today = day("2026-01-10");
        for (other, text) in [
            ("2026-01-10", "today"),
            ("2026-01-11", "tomorrow"),
            ("2026-01-09", "yesterday"),
            ("2026-01-19", "in 9 days"),
            ("2025-12-31", "10 days ago"),
        ] {
            assert_eq!(relative(day(other), today), text);
        }
    }
}
