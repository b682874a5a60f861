//! Markup shared by several pages.

mod bell;
mod fact;
mod history;
mod name;
mod parts;
pub mod query;
mod table;

use chrono::TimeDelta;
use maud::{Markup, Render, html};

use crate::accounts::UserData;
use crate::index::Total;
use crate::index::query::rows::{Lifecycle, Popular};
use crate::service::app::Now;
use crate::viewer::Viewer;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::language::LanguageCode;
use crate::vocab::money::{Amount, Currency};
use crate::vocab::name::{DomainName, to_unicode};
use crate::vocab::outcome::{Completeness, Return, ReturnTime};
use crate::vocab::release_time::{Release, ReleaseTime};
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

pub use crate::service::filter_words::date_text;
pub use bell::{bell, bell_choice, kind_word};
pub use fact::fact_value;
pub use history::{History, exit_word, seen_basis, seen_class, seen_word};
pub use name::{dossier_path, name, name_linked, row_header};
pub use parts::{cap_word, part_bar, part_bars, parts_of, signed};
pub use table::{Column, columns, table};

/// Renders a panel with its title, whose ID is `title_id`.
pub fn panel(title_id: &str, title: &str, content: Markup) -> Markup {
    html! {
        section.panel aria-labelledby=(title_id) {
            h2 id=(title_id) { (title) }
            (content)
        }
    }
}

/// Renders a score on the ground of its class.
pub fn score(dqs: Dqs) -> Markup {
    html! { b.score.{ "t" (dqs.class()) } { (dqs.points()) } }
}

/// English name of an ISO 639-1 code; the code itself for languages without a dictionary.
pub fn language(code: &str) -> String {
    code.parse::<LanguageCode>().map_or_else(|_| code.to_owned(), |it| format!("{it:?}"))
}

/// Says how rare a score is: `1 in 370`. Empty below the best tenth.
pub fn rarity(dqs: Dqs) -> String {
    dqs.one_in().map(|names| format!("1 in {}", grouped(names.into()))).unwrap_or_default()
}

/// Returns the class of a bar that fills a part of its width, in percent: `p0` to `p100`. The content
/// security policy forbids inline styles.
pub fn share(part: u32, whole: u32) -> String {
    format!("p{}", u64::from(part.min(whole)) * 100 / u64::from(whole.max(1)))
}

/// Renders a stage in its colour and the release date: `redemption drops tomorrow (23 Nov)`. Dates
/// that come only from the calendar are called expected.
pub fn stage(stage: Stage, release: Day, today: Day) -> Markup {
    let drops = match (stage, release.days_since(today)) {
        (Stage::Catchable | Stage::Released, _) => {
            html! { "expected free since " (date(release, today)) }
        }
        (_, 0) => html! { "drops today (" (date(release, today)) ")" },
        (_, 1) => html! { "drops tomorrow (" (date(release, today)) ")" },
        _ => html! { "drops " (date(release, today)) },
    };
    html! {
        span.stage.(stage.as_str()) { (stage_word(stage)) }
        " "
        span.frees { (drops) }
    }
}

/// Returns the urgency of a release: a CSS class, and the filled part of the disc before the words.
fn urgency(days: i32) -> &'static str {
    match days {
        ..0 => "over",
        0..=1 => "hot",
        2 => "soon-2",
        3 => "soon-3",
        4..=7 => "soon-4",
        _ => "later",
    }
}

/// Renders the time until a release in words, with the date and the hour in the tooltip: `in 14 h`,
/// `in 3 days`.
pub fn countdown(suffix: &str, release: Release, now: Now) -> Markup {
    let time = ReleaseTime::of(suffix, release);
    let release = release.day;
    let left = time.at.map_or(release.start(), UnixMs::instant) - now.0;
    let today = Day::from_instant(now.0).unwrap_or(release);
    let days = release.days_since(today);
    let text = match days {
        ..=-2 => format!("{} days ago", grouped(days.unsigned_abs().into())),
        -1 => "yesterday".to_owned(),
        0..=1 if left >= TimeDelta::hours(1) => format!("in {} h", left.num_hours()),
        0..=1 if left > TimeDelta::zero() => format!("in {} min", left.num_minutes().max(1)),
        0 => "today".to_owned(),
        1 => "in 1 h".to_owned(),
        _ => format!("in {} days", grouped(days.unsigned_abs().into())),
    };
    let title =
        time.words().map_or_else(|| release.to_string(), |hour| format!("{release} {hour}"));
    let machine = time.at.map_or_else(|| release.to_string(), |at| at.to_string());
    html! { time.due.(urgency(days)) datetime=(machine) title=(title) { (text) } }
}

/// Renders a past time in words, with the exact time in the tooltip: `2 h ago`.
pub fn ago(at: UnixMs, now: Now) -> Markup {
    let minutes = (now.0 - at.instant()).num_minutes().max(0);
    let text = match minutes {
        0 => "just now".to_owned(),
        1..=59 => format!("{minutes} min ago"),
        60..=2_879 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1_440),
    };
    let exact = at.instant().format("%Y-%m-%d %H:%M UTC");
    html! { time datetime=(at) title=(exact) { (text) } }
}

/// Formats an amount as `$1,234.50`.
pub fn money(cents: u64) -> String {
    sum_of_money(cents.into(), Currency::USD)
}

/// Formats an amount of minor units: `$1,234.50`, `1,234.50 EUR`.
pub fn sum_of_money(minor: u128, currency: Currency) -> String {
    let units = u128::from(currency.minor_units());
    let whole = grouped(u64::try_from(minor / units).unwrap_or(u64::MAX));
    let number = match minor % units {
        0 => whole,
        rest => format!("{whole}.{rest:0width$}", width = currency.decimals() as usize),
    };
    if currency == Currency::USD {
        format!("${number}")
    } else {
        format!("{number} {}", currency.as_str())
    }
}

/// Formats an amount as [`sum_of_money`].
pub fn amount(amount: Amount) -> String {
    sum_of_money(amount.minor().into(), amount.currency())
}

/// Renders a date with the ISO date in a tooltip: `23 Nov`, or `23 Nov 2025` outside the year of
/// `today`.
pub fn date(day: Day, today: Day) -> Markup {
    html! { time datetime=(day) title=(day) { (date_text(day, today)) } }
}

/// Display name of a stage.
pub fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Redemption => "redemption",
        Stage::PendingDelete => "pending delete",
        Stage::Catchable => "just dropped",
        Stage::Released => "released",
    }
}

/// Status after a drop whose name is registered again. Lists give no details, so the name may have
/// been kept by its holder or caught by a new one.
pub const HELD_AGAIN: &str = "renewed or registered again";

/// Capitalizes the first letter.
pub fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Describes the registration of a name after a drop.
pub fn return_words(Return { time, shown }: Return) -> String {
    let when = match time {
        ReturnTime::Renewed => return "renewed before its release".to_owned(),
        ReturnTime::Undated if shown != Completeness::LaterList => return HELD_AGAIN.to_owned(),
        ReturnTime::Undated => "before its next drop",
        ReturnTime::Within(horizon) => horizon.words(),
        ReturnTime::Later => "after more than 400 days",
    };
    format!("registered again {when}")
}

/// Renders the current status of a name, given its latest drop.
pub fn standing(drop: Option<&Lifecycle>, held: bool, today: Day) -> Markup {
    match drop {
        Some(drop) if drop.registered_again => html! {
            span.badge { (HELD_AGAIN) }
            " "
            span.frees { "dropped " (date(drop.dropped, today)) }
        },
        Some(drop) => stage(drop.stage, drop.release.day, today),
        None if held => html! { span.soft { "registered" } },
        None => html! { span.soft { "no known drop" } },
    }
}

/// Renders a button that copies a name to the clipboard.
fn copy_button(name: &str) -> Markup {
    html! {
        button.act.needs-js data-copy=(name) aria-label={ "Copy " (name) } { "Copy" }
    }
}

/// Renders the form that all [`watch_button`]s of a page submit. It returns to `next`.
pub fn watch_form(next: &str) -> Markup {
    html! {
        form #watch method="post" action="/watch" data-watch {
            input type="hidden" name="next" value=(next);
        }
    }
}

/// CSS classes and texts of a watch button.
struct WatchLook {
    class: Option<&'static str>,
    watch: &'static str,
    watching: &'static str,
}

const WORD: WatchLook =
    WatchLook { class: Some("act watch"), watch: "Watch", watching: "Watching" };
const STAR: WatchLook = WatchLook { class: None, watch: "☆", watching: "★" };

/// Renders a button that adds a name to the watchlist or removes it. Without `owned`, the button
/// leads to the login page, and then back to `next`.
fn watch_button(
    owned: Option<&UserData>,
    domain: &DomainName,
    next: &str,
    look: &WatchLook,
) -> Markup {
    let WatchLook { class, watch, watching } = look;
    let Some(owned) = owned else {
        let log_in = query::with(&[("next", next)], "/login");
        return html! {
            a class=[class] href=(log_in) aria-label={ "Watch " (domain) ": log in first" } { (watch) }
        };
    };
    if owned.watch(domain).is_some() {
        let class = class.map_or("on".to_owned(), |class| format!("{class} on"));
        return html! {
            button class=(class) form="watch" formaction="/unwatch" name="domain" value=(domain) aria-label={ "Watching " (domain) ": stop" } { (watching) }
        };
    }
    html! {
        button class=[class] form="watch" name="domain" value=(domain) aria-label={ "Watch " (domain) } { (watch) }
    }
}

/// Renders a button that copies a name, and a link to the form for the result of a bid.
pub fn copy_and_log(name: &str) -> Markup {
    html! {
        (copy_button(name))
        a.act href={ "/portfolio/new?domain=" (name) } aria-label={ "Log a result for " (name) } { "Log a result" }
    }
}

/// Renders the buttons of a name: copy, log a result and watch.
pub fn actions(owned: Option<&UserData>, domain: &DomainName, next: &str) -> Markup {
    html! { (copy_and_log(domain.as_str())) (watch_button(owned, domain, next, &WORD)) }
}

/// Renders the watch button of a name of the index as a star.
pub fn watch_star(owned: Option<&UserData>, name: &str, tld: &str, next: &str) -> Markup {
    watch_button(owned, &of_index(name, tld), next, &STAR)
}

/// Converts a name of the index with the suffix `tld`.
fn of_index(name: &str, tld: &str) -> DomainName {
    let label_len = name.len() - tld.len() - 1;
    DomainName::from_stored(name.as_bytes(), label_len as u8)
        .expect("names of the index are a label and a suffix")
}

/// Renders the position of a page in all results: `1 to 100 of 31,204`.
pub fn range(offset: u32, rows: u32, total: &str) -> String {
    let (first, last) = (grouped((offset + 1).into()), grouped((offset + rows).into()));
    format!("{first} to {last} of {total}")
}

/// Number of rows that visitors without an account can page through. People rarely read that far, and
/// programs that collect names have the API.
pub const ANONYMOUS_DEPTH: u32 = 1_000;

/// Returns the offset from which a list shows no rows to this viewer.
pub fn depth(viewer: &Viewer, offset_max: u32) -> u32 {
    if viewer.member.is_some() { offset_max.saturating_add(1) } else { ANONYMOUS_DEPTH }
}

/// Renders a note that the rest of a list requires a login, which returns to `next`.
pub fn log_in_for_more(next: &str) -> Markup {
    html! {
        p.soft.more {
            "Without an account, a list ends after " (grouped(ANONYMOUS_DEPTH.into())) " names. "
            a href=(query::with(&[("next", next)], "/login")) { "Log in to see more" }
            ", or narrow the filters."
        }
    }
}

/// Renders links to the previous and next page, around the position in all results.
pub fn pager(previous: Option<String>, position: impl Render, next: Option<String>) -> Markup {
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
                div.soft { (position) }
                (link(next, "next", "Next"))
            }
        }
    }
}

/// Says which popular name a label misspells.
pub fn typo_of(popular: &Popular) -> Markup {
    html! { "One typing error from " (to_unicode(&popular.name)) ", rank " (grouped(popular.rank.get().into())) }
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

/// Formats a total: `1,204`, or `about 1.2 million` for an estimate.
pub fn total(total: Total) -> String {
    let count = u64::from(total.count());
    match total {
        Total::Exact(_) => grouped(count),
        Total::About(1_000_000..) => {
            let tenths = (count + 50_000) / 100_000;
            let fraction =
                if tenths.is_multiple_of(10) { String::new() } else { format!(".{}", tenths % 10) };
            format!("about {}{fraction} million", grouped(tenths / 10))
        }
        Total::About(_) => {
            // Two digits: the others may be wrong.
            let unit = 10u64.pow(count.max(1).ilog10().saturating_sub(1));
            format!("about {}", grouped((count + unit / 2) / unit * unit))
        }
    }
}

/// Formats a total with its noun: `1 name`, `about 1.2 million names`.
pub fn totalled(number: Total, one: &str) -> String {
    match number {
        Total::Exact(count) => counted(count, one),
        Total::About(_) => format!("{} {one}s", total(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_rounded() {
        for (count, text) in [
            (7, "about 7"),
            (1_249, "about 1,200"),
            (99_600, "about 100,000"),
            (347_212, "about 350,000"),
            (1_000_000, "about 1 million"),
            (1_249_999, "about 1.2 million"),
            (12_960_000, "about 13 million"),
            (u32::MAX, "about 4,295 million"),
        ] {
            assert_eq!(total(Total::About(count)), text);
        }
        assert_eq!(total(Total::Exact(347_212)), "347,212");
        assert_eq!(totalled(Total::Exact(1), "name"), "1 name");
        assert_eq!(totalled(Total::About(1_249_999), "name"), "about 1.2 million names");
    }

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
    fn a_countdown_ends_with_hours() {
        let day = |text: &str| text.parse::<Day>().expect("a date");
        let now = Now("2026-11-22T09:40:00Z".parse().expect("an instant"));
        for (release, text) in [
            ("2026-11-23", "hot\" datetime=\"2026-11-23\" title=\"2026-11-23\">in 14 h<"),
            ("2026-11-22", ">today<"),
            ("2026-11-24", "soon-2\" datetime=\"2026-11-24\" title=\"2026-11-24\">in 2 days<"),
            ("2026-12-22", "later\" datetime=\"2026-12-22\" title=\"2026-12-22\">in 30 days<"),
            ("2026-11-20", "over\" datetime=\"2026-11-20\" title=\"2026-11-20\">2 days ago<"),
        ] {
            let html = countdown("fr", day(release).into(), now).into_string();
            assert!(html.contains(text), "{html}");
        }
        for (suffix, release, text) in [
            (
                "com",
                "2026-11-22",
                "datetime=\"2026-11-22T19:00:00.000Z\" title=\"2026-11-22 usual hour 19:00 UTC\">in 9 h<",
            ),
            ("com", "2026-11-23", "title=\"2026-11-23 usual hour 19:00 UTC\">in 33 h<"),
            ("se", "2026-11-22", "title=\"2026-11-22 from 04:00 UTC\">today<"),
            ("se", "2026-11-25", "in 3 days<"),
        ] {
            let html = countdown(suffix, day(release).into(), now).into_string();
            assert!(html.contains(text), "{html}");
        }
    }

    #[test]
    fn dates_read_as_people_say_them() {
        let day = |text: &str| text.parse::<Day>().expect("a date");
        let today = day("2026-11-22");
        assert_eq!(date_text(day("2026-03-01"), today), "1 Mar");
        assert_eq!(date_text(day("2025-12-31"), today), "31 Dec 2025");
        let shown = |kind, on: &str| stage(kind, day(on), today).into_string();
        for (kind, on, text) in [
            (Stage::Redemption, "2026-12-02", "drops <time"),
            (Stage::PendingDelete, "2026-11-23", "drops tomorrow (<time"),
            (Stage::Catchable, "2026-11-20", "expected free since <time"),
        ] {
            assert!(shown(kind, on).contains(text), "{}", shown(kind, on));
        }
    }
}
