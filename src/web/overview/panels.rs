//! Panels of the overview, each with a heading, a sentence, a chart and a table of the numbers.

use chrono::Datelike as _;
use maud::{Markup, html};

use crate::components::Column::{Number, Text};
use crate::components::{
    self, columns, counted, date, date_text, grouped, name_linked, score, signed, table,
};
use crate::drops::state::DropsParams;
use crate::drops::why::why;
use crate::index::Overview;
use crate::index::filter::{AsOf, View};
use crate::index::query::summary::{BANDS, DroppedOn};
use crate::overview::charts::{Bar, Breadth, Direction, bars};
use crate::vocab::day::Day;
use crate::vocab::name::to_unicode;
use crate::vocab::stage::Stage;

/// Maximum TLDs in the chart.
const TLDS: usize = 12;
/// Width of a bin in the score distribution.
const BIN: usize = 5;
/// Series of the score bands, from low to high.
const SCORE_SERIES: [u8; 3] = [3, 4, 5];
/// Series of the days.
const COM: u8 = 0;
const OTHERS: u8 = 1;
const WEEKEND: u8 = 2;
/// Lowest score in the distribution: most names have less, and would hide the others.
const LEAST: usize = 40;

/// Renders the content of the page.
pub fn main(overview: &Overview<'_>, as_of: AsOf) -> Markup {
    html! {
        div.head {
            h1 { "Overview" }
            p.soft { "Drops on " (date(as_of.today, as_of.today)) " · " a href="/outcomes" { "Outcomes by score" } }
        }
        (tiles(overview))
        div.pictures {
            (per_day(overview, as_of.today))
            (scores(overview))
            (tlds(overview))
            (best(overview, as_of.today))
        }
    }
}

fn tiles(overview: &Overview<'_>) -> Markup {
    const TILES: [(View, &str, &str); 5] = [
        (View::Today, "/?view=today", "left the zone today"),
        (View::Stage(Stage::Redemption), "/?stage=redemption", "in redemption"),
        (View::Stage(Stage::PendingDelete), "/?stage=pending-delete", "pending delete"),
        (View::Stage(Stage::Catchable), "/?stage=catchable", "just dropped"),
        (View::Active, "/?view=active", "in the whole pipeline"),
    ];
    html! {
        ul.tiles {
            @for (view, path, word) in TILES {
                li {
                    a href=(path) {
                        b { (grouped(overview.total(view).into())) } " " span { (word) }
                        @if view == View::Today { (since_last_week(overview.days())) }
                    }
                }
            }
        }
    }
}

/// Compares the last day with the same day of the week before.
fn since_last_week(days: &[DroppedOn]) -> Markup {
    let [.., before, _, _, _, _, _, _, last] = days else { return html! {} };
    if before.total == 0 || last.total == 0 {
        return html! {};
    }
    let change = (f64::from(last.total) / f64::from(before.total) - 1.0) * 100.0;
    let weekday = before.date.date().format("%A");
    html! {
        @match change.round() as i32 {
            0 => { ", as many as last " (weekday) }
            change => { ", " (signed(change)) " % on last " (weekday) }
        }
    }
}

fn panel(id: &str, title: &str, text: &str, picture: &Markup, numbers: &Markup) -> Markup {
    let content = html! {
        p { (text) }
        (picture)
        details { summary { "Show as table" } (numbers) }
    };
    components::panel(id, title, content)
}

fn per_day(overview: &Overview<'_>, today: Day) -> Markup {
    // The lists of today may not be here yet.
    let days = match overview.days() {
        [days @ .., DroppedOn { total: 0, .. }] => days,
        days => days,
    };
    let tlds: Vec<_> = overview.day_tlds().map(|tld| format!(".{}", to_unicode(tld))).collect();
    let com = overview.day_tlds().position(|tld| tld == "com");
    let bar = |day: &DroppedOn| {
        let names = com.map_or(0, |com| day.by_tld[com]);
        let is_weekend = day.date.date().weekday().number_from_monday() > 5;
        let other = if is_weekend { WEEKEND } else { OTHERS };
        Bar {
            label: day.date.date().format("%-d %b").to_string(),
            parts: vec![(COM, names), (other, day.total - names)],
        }
    };
    let all: Vec<Bar> = days.iter().map(bar).collect();
    let text = days_summary(days, today);
    let picture = html! {
        (bars(&all, Direction::Up, Breadth::Whole, &text))
        ul.legend {
            @for (series, word) in [(COM, ".com"), (OTHERS, "other TLDs"), (WEEKEND, "on a weekend")] {
                li { span.{ "series-" (series) } {} " " (word) }
            }
        }
    };
    let numbers = html! {
        tbody {
            @for day in days.iter().rev() {
                tr {
                    th scope="row" { (date(day.date, today)) }
                    td.number { (grouped(day.total.into())) }
                    @for count in &day.by_tld { td.number { (grouped((*count).into())) } }
                    td.number { (grouped(rest(day).into())) }
                }
            }
        }
    };
    let head = tlds.iter().map(|tld| Number(tld));
    let head: Vec<_> = [Text("Drop date"), Number("Names")].into_iter().chain(head).collect();
    let head = [head, vec![Number("others")]].concat();
    let numbers = table("Names by drop date", "", &head, numbers);
    panel("per-day", "Drops per day", &text, &picture, &numbers)
}

/// Returns the number of names of a day under all other TLDs.
fn rest(day: &DroppedOn) -> u32 {
    day.total - day.by_tld.iter().sum::<u32>()
}

fn days_summary(days: &[DroppedOn], today: Day) -> String {
    let total: u32 = days.iter().map(|day| day.total).sum();
    let most = days.iter().max_by_key(|day| day.total).filter(|day| day.total > 0);
    match most {
        None => format!("No names dropped in the last {} days.", days.len()),
        Some(most) => format!(
            "{} dropped in the last {} days. The peak was {} with {}.",
            counted(total, "name"),
            days.len(),
            date_text(most.date, today),
            grouped(most.total.into())
        ),
    }
}

fn tlds(overview: &Overview<'_>) -> Markup {
    let active = overview.total(View::Active);
    let counts: Vec<_> = overview.tlds(View::Active).take(TLDS).collect();
    let in_all = overview.tlds(View::Active).len();
    let text = match counts.first() {
        None => "No names are in the pipeline.".to_owned(),
        Some((tld, count)) => format!(
            "{} of the {} in the pipeline are under .{}. There are {in_all} TLDs in total.",
            share(*count, active),
            counted(active, "name"),
            to_unicode(tld)
        ),
    };
    let bar = |&(tld, count): &(&str, u32)| Bar {
        label: format!(".{}", to_unicode(tld)),
        parts: vec![(0, count)],
    };
    let all: Vec<Bar> = counts.iter().map(bar).collect();
    let numbers = html! {
        table {
            (columns(&[Text("TLD"), Number("Names"), Number("Share")]))
            tbody {
                @for (tld, count) in &counts {
                    tr {
                        th scope="row" { a href={ "/?tld=" (tld) } { "." (to_unicode(tld)) } }
                        td.number { (grouped((*count).into())) }
                        td.number { (share(*count, active)) }
                    }
                }
            }
        }
    };
    panel(
        "tlds",
        "TLDs in the pipeline",
        &text,
        &bars(&all, Direction::Right, Breadth::Half, &text),
        &numbers,
    )
}

fn scores(overview: &Overview<'_>) -> Markup {
    let scores = overview.scores(View::Active);
    let total: u32 = scores.iter().sum();
    let from = |least: usize| scores.get(least..).unwrap_or_default().iter().sum::<u32>();
    let text = format!(
        "{} of the {} in the pipeline score 90 or more, {} score 60 or more.",
        grouped(from(90).into()),
        counted(total, "name"),
        grouped(from(60).into())
    );
    let bins = bins(scores);
    let all: Vec<Bar> = bins
        .iter()
        .map(|&(least, _, count)| Bar {
            label: least.to_string(),
            parts: vec![(score_series(least), count)],
        })
        .collect();
    let numbers = html! {
        table {
            (columns(&[Text("Score"), Number("Names")]))
            tbody {
                @for (least, most, count) in bins.iter().rev() {
                    tr {
                        th scope="row" { a href={ "/?min_dqs=" (least) } { (least) " to " (most) } }
                        td.number { (grouped((*count).into())) }
                    }
                }
            }
        }
    };
    panel("scores", "Scores", &text, &bars(&all, Direction::Up, Breadth::Half, &text), &numbers)
}

/// Returns the lowest score, highest score and number of names of each bin.
fn bins(scores: &[u32]) -> Vec<(usize, usize, u32)> {
    let highest = scores.len().saturating_sub(1);
    let bins = (LEAST..highest).step_by(BIN);
    let bin = |least: usize| {
        // The last bin includes the highest score.
        let most = if least + BIN >= highest { highest } else { least + BIN - 1 };
        (least, most, scores[least..=most].iter().sum())
    };
    bins.map(bin).collect()
}

/// Returns the series of a score: the best hundredth, the best tenth, and the others.
fn score_series(least: usize) -> u8 {
    match least {
        90.. => SCORE_SERIES[2],
        60.. => SCORE_SERIES[1],
        _ => SCORE_SERIES[0],
    }
}

fn best(overview: &Overview<'_>, today: Day) -> Markup {
    let tomorrow = today.plus(1);
    let mut bands: Vec<Vec<Markup>> = BANDS.iter().map(|_| Vec::new()).collect();
    overview.for_each_best(|band, drop, _| {
        bands[band].push(html! {
            tr {
                td { (name_linked(drop.name, drop.tld)) }
                td { (score(drop.dqs)) }
                td.where { (why(drop, &DropsParams::default())) }
            }
        });
    });
    html! {
        section.panel.best aria-labelledby="best" {
            h2 #best { "Best of tomorrow" }
            p { "Highest scores among the names that drop on " (date(tomorrow, today)) ", by length. " a href={ "/?release_from=" (tomorrow) "&release_to=" (tomorrow) } { "Show all" } }
            div.bands {
                @for ((band, _), rows) in BANDS.iter().zip(&bands) {
                    @if !rows.is_empty() {
                        table {
                            caption { (band) " characters" }
                            thead.hidden { tr { th scope="col" { "Name" } th scope="col" { "Score" } th scope="col" { "Why" } } }
                            tbody { @for row in rows { (row) } }
                        }
                    }
                }
            }
            @if bands.iter().all(Vec::is_empty) { p.soft { "No known name drops tomorrow." } }
        }
    }
}

/// Formats a share as a whole percentage.
fn share(part: u32, whole: u32) -> String {
    let percent = (u64::from(part) * 100 + u64::from(whole) / 2) / u64::from(whole.max(1));
    if percent == 0 && part > 0 { "<1 %".to_owned() } else { format!("{percent} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_from_40_is_in_one_bin() {
        let scores: Vec<u32> = (0..=100).collect();
        let bins = bins(&scores);
        assert_eq!(bins.len(), 12);
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u32>(), 4_270);
        assert_eq!(bins[0], (40, 44, 210));
        assert_eq!(bins[11], (95, 100, 585));
    }

    #[test]
    fn shares_are_whole_percentages() {
        let shares = [(1, 3), (2, 3), (1, 1_000), (0, 5), (0, 0), (5, 5)];
        let words = shares.map(|(part, whole)| share(part, whole));
        assert_eq!(words, ["33 %", "67 %", "<1 %", "0 %", "0 %", "100 %"]);
    }
}
