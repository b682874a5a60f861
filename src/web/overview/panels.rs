//! What the overview shows: for each picture a heading, what it says in words, and its numbers as a
//! table.

use maud::{Markup, html};

use crate::index::Overview;
use crate::index::filter::{AsOf, View};
use crate::index::query::summary::{BANDS, DroppedOn};
use crate::vocab::name::to_unicode;
use crate::vocab::stage::Stage;
use crate::web::components::{counted, grouped, name_linked, score, stage};
use crate::web::overview::charts::{Bar, Breadth, Direction, bars};

/// TLDs that have a bar.
const TLDS: usize = 12;
/// Points of a bar of the distribution of scores.
const BIN: usize = 5;
/// The series of scores from bad to good, after those of TLDs.
const SCORE_SERIES: [u8; 4] = [8, 9, 10, 11];

/// All of the page below its frame.
pub fn main(overview: &Overview<'_>, as_of: AsOf) -> Markup {
    html! {
        div.head {
            h1 { "Overview" }
            p.soft { "The drops list on " time datetime=(as_of.today) { (as_of.today) } }
        }
        (tiles(overview))
        div.pictures {
            (per_day(overview))
            (scores(overview))
            (tlds(overview))
            (best(overview))
        }
    }
}

fn tiles(overview: &Overview<'_>) -> Markup {
    const TILES: [(View, &str, &str); 5] = [
        (View::Today, "/?view=today", "dropped today"),
        (View::Stage(Stage::Redemption), "/?stage=redemption", "in redemption"),
        (View::Stage(Stage::PendingDelete), "/?stage=pending-delete", "pending delete"),
        (View::Stage(Stage::Catchable), "/?stage=catchable", "catchable"),
        (View::Active, "/", "in all on the way back"),
    ];
    html! {
        ul.tiles {
            @for (view, path, word) in TILES {
                li { a href=(path) { b { (grouped(overview.total(view).into())) } " " span { (word) } } }
            }
        }
    }
}

fn panel(id: &str, title: &str, told: &str, picture: &Markup, numbers: &Markup) -> Markup {
    html! {
        section.panel aria-labelledby=(id) {
            h2 id=(id) { (title) }
            p { (told) }
            (picture)
            details { summary { "The numbers" } (numbers) }
        }
    }
}

fn per_day(overview: &Overview<'_>) -> Markup {
    let days = overview.days();
    let tlds: Vec<_> = overview.day_tlds().map(|tld| format!(".{}", to_unicode(tld))).collect();
    let others = tlds.len() as u8;
    let all: Vec<Bar> = days
        .iter()
        .map(|day| Bar {
            label: day.date.to_string()[5..].to_owned(),
            parts: (0..).zip(day.by_tld.iter().copied()).chain([(others, rest(day))]).collect(),
        })
        .collect();
    let told = told_of_days(days);
    let picture = html! {
        (bars(&all, Direction::Up, Breadth::Whole, &told))
        ul.legend {
            @for (number, tld) in tlds.iter().enumerate() { li { span.{ "series-" (number) } {} " " (tld) } }
            li { span.{ "series-" (others) } {} " others" }
        }
    };
    let numbers = html! {
        div.table tabindex="0" role="region" aria-label="Names by drop date" {
            table {
                thead {
                    tr {
                        th scope="col" { "Drop date" }
                        th.number scope="col" { "Names" }
                        @for tld in &tlds { th.number scope="col" { (tld) } }
                        th.number scope="col" { "others" }
                    }
                }
                tbody {
                    @for day in days.iter().rev() {
                        tr {
                            th scope="row" { time datetime=(day.date) { (day.date) } }
                            td.number { (grouped(day.total.into())) }
                            @for count in &day.by_tld { td.number { (grouped((*count).into())) } }
                            td.number { (grouped(rest(day).into())) }
                        }
                    }
                }
            }
        }
    };
    panel("per-day", "Drops per day", &told, &picture, &numbers)
}

/// Names of a day whose TLD is not told apart.
fn rest(day: &DroppedOn) -> u32 {
    day.total - day.by_tld.iter().sum::<u32>()
}

fn told_of_days(days: &[DroppedOn]) -> String {
    let total: u32 = days.iter().map(|day| day.total).sum();
    let most = days.iter().max_by_key(|day| day.total).filter(|day| day.total > 0);
    match most {
        None => format!("No name was seen to drop in the last {} days.", days.len()),
        Some(most) => format!(
            "{} dropped in the last {} days, most of them on {}: {}.",
            counted(total, "name"),
            days.len(),
            most.date,
            grouped(most.total.into())
        ),
    }
}

fn tlds(overview: &Overview<'_>) -> Markup {
    let active = overview.total(View::Active);
    let counts: Vec<_> = overview.tlds(View::Active).take(TLDS).collect();
    let in_all = overview.tlds(View::Active).len();
    let told = match counts.first() {
        None => "No name is on the way back to the market.".to_owned(),
        Some((tld, count)) => format!(
            "{} of the {} on the way back are under .{}; there are {in_all} TLDs in all.",
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
            thead { tr { th scope="col" { "TLD" } th.number scope="col" { "Names" } th.number scope="col" { "Share" } } }
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
        "TLDs of the active pipeline",
        &told,
        &bars(&all, Direction::Right, Breadth::Half, &told),
        &numbers,
    )
}

fn scores(overview: &Overview<'_>) -> Markup {
    let scores = overview.scores(View::Active);
    let total: u32 = scores.iter().sum();
    let from = |least: usize| scores.get(least..).unwrap_or_default().iter().sum::<u32>();
    let told = format!(
        "{} of the {} on the way back score 80 or more, {} score 60 or more.",
        grouped(from(80).into()),
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
            thead { tr { th scope="col" { "DQS" } th.number scope="col" { "Names" } } }
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
    panel("scores", "Scores", &told, &bars(&all, Direction::Up, Breadth::Half, &told), &numbers)
}

/// The lowest and the highest score of each bar, and how many names have them.
fn bins(scores: &[u32]) -> Vec<(usize, usize, u32)> {
    let highest = scores.len().saturating_sub(1);
    let bins = (0..highest).step_by(BIN);
    let bin = |least: usize| {
        // The best score goes with those just below it.
        let most = if least + BIN >= highest { highest } else { least + BIN - 1 };
        (least, most, scores[least..=most].iter().sum())
    };
    bins.map(bin).collect()
}

/// The series of a score, as its bar in lists has it.
fn score_series(least: usize) -> u8 {
    match least {
        80.. => SCORE_SERIES[3],
        60.. => SCORE_SERIES[2],
        40.. => SCORE_SERIES[1],
        _ => SCORE_SERIES[0],
    }
}

fn best(overview: &Overview<'_>) -> Markup {
    let newest = overview.newest();
    let mut bands: Vec<Vec<Markup>> = BANDS.iter().map(|_| Vec::new()).collect();
    overview.for_each_best(|band, drop, place| {
        bands[band].push(html! {
            tr {
                td { (name_linked(drop.name, drop.tld)) }
                td { (score(drop.dqs)) }
                td.where { (stage(place.stage, place.release)) }
            }
        });
    });
    html! {
        section.panel.best aria-labelledby="best" {
            h2 #best { "The best of " time datetime=(newest) { (newest) } }
            p { "The names with the best scores that dropped on that day, by the length of their label." }
            div.bands {
                @for ((band, _), rows) in BANDS.iter().zip(&bands) {
                    @if !rows.is_empty() {
                        table {
                            caption { (band) " characters" }
                            thead.hidden { tr { th scope="col" { "Name" } th scope="col" { "DQS" } th scope="col" { "Stage" } } }
                            tbody { @for row in rows { (row) } }
                        }
                    }
                }
            }
            @if bands.iter().all(Vec::is_empty) { p.soft { "No name that dropped on it is free to come back." } }
        }
    }
}

/// In whole per cent, or less than one.
fn share(part: u32, whole: u32) -> String {
    let percent = (u64::from(part) * 100 + u64::from(whole) / 2) / u64::from(whole.max(1));
    if percent == 0 && part > 0 { "under 1 %".to_owned() } else { format!("{percent} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_is_in_one_bar() {
        let scores: Vec<u32> = (0..=100).collect();
        let bins = bins(&scores);
        assert_eq!(bins.len(), 20);
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u32>(), 5_050);
        assert_eq!(bins[0], (0, 4, 10));
        assert_eq!(bins[19], (95, 100, 585));
    }

    #[test]
    fn shares_are_whole() {
        let shares = [(1, 3), (2, 3), (1, 1_000), (0, 5), (0, 0), (5, 5)];
        let words = shares.map(|(part, whole)| share(part, whole));
        assert_eq!(words, ["33 %", "67 %", "under 1 %", "0 %", "0 %", "100 %"]);
    }
}
