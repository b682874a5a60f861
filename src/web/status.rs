//! `GET /status`: how the service is, for whoever runs it and whoever wonders. Sums alone, nothing of
//! any account; open to all.
//!
//! What takes looking at every name is worked out on the blocking pool and kept for a moment, so that
//! asking often costs nothing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use crate::accounts::Queues;
use crate::http::error::ApiError;
use crate::http::{App, work};
use crate::index::Index;
use crate::intake::inbox::InboxCounts;
use crate::vocab::day::Day;
use crate::vocab::limits::STALE_AFTER_HOURS;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;
use crate::web::Web;
use crate::web::components::grouped;
use crate::web::error::PageError;
use crate::web::layout::Page;
use crate::web::viewer::Viewer;

/// The newest lists are shown, older ones are counted.
const LISTS_SHOWN: usize = 30;
/// How old what is shown may be.
const KEPT: Duration = Duration::from_secs(2);
/// A delivery is late when it was due this long ago: senders take turns, retries are spread.
const LATE_AFTER: TimeDelta = TimeDelta::minutes(5);
/// More than may be done on an async thread: see [`work::run`].
const LONG_US: u32 = 10_000;

/// The route of the page.
pub fn routes() -> Router<Web> {
    let kept = Arc::new(Kept::default());
    let page = move |viewer: Viewer, State(web): State<Web>| status(viewer, web, Arc::clone(&kept));
    Router::new().route("/status", get(page))
}

async fn status(viewer: Viewer, web: Web, kept: Arc<Kept>) -> Result<Markup, PageError> {
    let app = web.app.clone();
    let sums = work::run(LONG_US, move || Ok::<_, ApiError>(kept.sums(&app))).await?;
    let service = Service::of(&web.app, viewer.now.0);
    let page = Page::new("Status").styles(&["status.css"]);
    Ok(page.show(Some(&viewer), main(&service, &sums, viewer.now.0)))
}

/// The sums that were worked out last, and when.
#[derive(Default)]
struct Kept(Mutex<Option<(Instant, Arc<Sums>)>>);

impl Kept {
    /// The sums as they were a moment ago at most. One works them out, others wait for it.
    fn sums(&self, app: &App) -> Arc<Sums> {
        let mut kept = self.0.lock().expect("no code panics holding this lock");
        match &*kept {
            Some((at, sums)) if at.elapsed() < KEPT => Arc::clone(sums),
            _ => {
                let sums = Arc::new(Sums::of(app));
                *kept = Some((Instant::now(), Arc::clone(&sums)));
                sums
            }
        }
    }
}

/// What takes looking at every name.
struct Sums {
    /// Each list: the day it was ingested on, and the drops it was the first to tell of.
    lists: Vec<(Day, u32)>,
    queues: Queues,
}

impl Sums {
    fn of(app: &App) -> Sums {
        Sums { lists: app.live.current().lists(), queues: app.store.queues() }
    }
}

/// What is known at once.
struct Service {
    index: Arc<Index>,
    uptime: Duration,
    node: String,
    today: Day,
    /// Why the journal takes no changes.
    journal_problem: Option<String>,
    /// Why an older generation is served.
    index_problem: Option<String>,
    /// Bytes of journal that the next start reads.
    log_bytes: u64,
    /// Since the newest list was observed; `None` before any list.
    age: Option<TimeDelta>,
    /// How far alert rules are matched.
    matched: Option<Watermark>,
    /// Counts of the lists that arrived in the inbox.
    inbox: InboxCounts,
}

impl Service {
    fn of(app: &App, now: DateTime<Utc>) -> Service {
        let index = app.live.current();
        let observed = index.manifest().newest_observed_at;
        Service {
            uptime: app.started.elapsed(),
            node: app.node.clone(),
            today: Day::from_instant(now).unwrap_or_else(|| app.clock.today()),
            journal_problem: app.store.health().err(),
            index_problem: app.index_problem(),
            log_bytes: app.store.log_bytes_since_snapshot(),
            age: observed.map(|observed| (now - observed).max(TimeDelta::zero())),
            matched: app.store.watermark(),
            inbox: app.inbox.counts(),
            index,
        }
    }

    fn is_stale(&self) -> bool {
        self.age.is_none_or(|age| age > TimeDelta::hours(STALE_AFTER_HOURS))
    }

    /// What somebody has to look at, in words.
    fn problems(&self, queues: &Queues, now: DateTime<Utc>) -> Vec<&'static str> {
        let journal = self.journal_problem.as_deref().map(|word| match word {
            "disk_full" => {
                "The disk is full: nothing can be changed until there is room, everything can be read."
            }
            "fenced" => {
                "Another process uses the data folder: nothing can be changed here until this one is \
                 stopped and started again."
            }
            "closed" => "The service is stopping.",
            _ => {
                "A write to the disk failed: nothing can be changed until the service is started \
                 again, everything can be read."
            }
        });
        let index = self.index_problem.as_ref().map(|_| {
            "The newest index cannot be used, so the one before it is served; the log says why."
        });
        let stale = match self.age {
            None => Some("No list has been ingested yet: run dropdex ingest with the first one."),
            Some(_) if self.is_stale() => {
                Some("The newest list is more than two days old: ingest the next one.")
            }
            Some(_) => None,
        };
        let inbox = self.inbox.problem.as_ref().map(|_| {
            "Lists in the inbox cannot be taken in at the moment; the log says why. They are tried again."
        });
        let late = late(queues, now)
            .then_some("Alerts are waiting longer than they should; receivers may not answer.");
        [journal, index, stale, inbox, late].into_iter().flatten().collect()
    }
}

fn late(queues: &Queues, now: DateTime<Utc>) -> bool {
    queues.first_due.is_some_and(|due| now - due.instant() > LATE_AFTER)
}

fn main(service: &Service, sums: &Sums, now: DateTime<Utc>) -> Markup {
    let problems = service.problems(&sums.queues, now);
    html! {
        div.head {
            h1 { "Status" }
            p.soft { "As of " (time_of(now)) }
        }
        @if problems.is_empty() {
            p.notice { strong { "All is well." } " Lists are fresh, changes are kept, alerts go out." }
        } @else {
            @for problem in &problems { p.problem { (problem) } }
        }
        div.columns {
            (data_panel(service))
            (queues_panel(service, &sums.queues, now))
            (service_panel(service))
        }
        (lists_table(&sums.lists))
    }
}

fn data_panel(service: &Service) -> Markup {
    let manifest = service.index.manifest();
    let newest_drop = service.index.newest_drop_date(service.today);
    html! {
        section.panel aria-labelledby="data" {
            h2 #data { "Data" }
            dl.facts {
                dt { "Freshness" }
                dd { (freshness(service)) }
                dt { "Newest drops" }
                dd { (newest_drop.map_or_else(none_yet, |day| html! { time datetime=(day) { (day) } })) }
                dt { "Names" }
                dd { (grouped(manifest.names.into())) " ever seen" }
                dt { "Dropped" }
                dd { (grouped(manifest.dropped.into())) ", of which " (grouped(manifest.drops.into())) " are on the list" }
                dt { "TLDs" }
                dd { (grouped(manifest.tlds.len() as u64)) }
                dt { "Generation" }
                dd { (manifest.generation.0) ", made " (time_of(manifest.created)) }
                dt { "Scorer" }
                dd { "version " (manifest.scorer_version) }
                dt { "Inbox" }
                dd { (inbox(&service.inbox)) }
            }
        }
    }
}

/// What arrived since the start, and what became of it.
fn inbox(counts: &InboxCounts) -> Markup {
    html! {
        @if counts.waiting > 0 { span.badge.warn { (counts.waiting) " waiting" } " " }
        @if counts.refused > 0 { span.badge.bad { (grouped(counts.refused)) " refused" } " " }
        @match counts.last_at {
            None => "nothing has arrived since the start",
            Some(at) => {
                (grouped(counts.added)) " lists taken in, the last one looked at "
                (time_of(at))
            }
        }
    }
}

fn freshness(service: &Service) -> Markup {
    let Some(age) = service.age else { return html! { span.badge.bad { "no data" } } };
    let (class, word) = if service.is_stale() { ("bad", "stale") } else { ("good", "fresh") };
    html! {
        span.badge.(class) { (word) }
        " newest list observed " (lasted(age)) " ago"
    }
}

fn queues_panel(service: &Service, queues: &Queues, now: DateTime<Utc>) -> Markup {
    let lists = service.index.manifest().batches;
    html! {
        section.panel aria-labelledby="queues" {
            h2 #queues { "Queues" }
            dl.facts {
                dt { "Alerts matched" }
                dd {
                    @match service.matched {
                        Some(mark) if mark.batch >= lists => { span.badge.good { "up to date" } " through list " (mark.batch) }
                        Some(mark) => { span.badge.warn { "working" } " at list " (mark.batch) " of " (lists) }
                        None => { (none_yet()) }
                    }
                }
                dt { "Alerts to send" }
                dd { (waiting(queues, now)) }
                dt { "Names watched" }
                dd { (grouped(queues.watched as u64)) }
                dt { "Not verified yet" }
                dd { (grouped(queues.unseen as u64)) " of them" }
            }
        }
    }
}

/// How many deliveries wait, and for how long the first of them.
fn waiting(queues: &Queues, now: DateTime<Utc>) -> Markup {
    let Some(due) = queues.first_due else { return html! { span.badge.good { "none" } } };
    let due_in = due.instant() - now;
    html! {
        @if late(queues, now) { span.badge.bad { "late" } " " }
        (grouped(queues.deliveries as u64))
        @if due_in > TimeDelta::zero() {
            ", the next one due in " (lasted(due_in))
        } @else {
            ", the first one due for " (lasted(-due_in))
        }
    }
}

fn service_panel(service: &Service) -> Markup {
    html! {
        section.panel aria-labelledby="service" {
            h2 #service { "Service" }
            dl.facts {
                dt { "Changes" }
                dd {
                    @match &service.journal_problem {
                        None => { span.badge.good { "kept" } " on disk before they are answered" }
                        Some(_) => { span.badge.bad { "refused" } " reading works" }
                    }
                }
                dt { "Journal" }
                dd { (size(service.log_bytes)) " to read at the next start" }
                dt { "Running for" }
                dd { (lasted(TimeDelta::from_std(service.uptime).unwrap_or(TimeDelta::MAX))) }
                dt { "Node" }
                dd { (service.node) }
                dt { "Version" }
                dd { "dropdex " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

fn lists_table(lists: &[(Day, u32)]) -> Markup {
    let newest_first = || lists.iter().enumerate().rev().take(LISTS_SHOWN);
    let most = newest_first().map(|(_, list)| list.1).max().unwrap_or(0);
    html! {
        section aria-labelledby="lists" {
            div.head {
                h2 #lists { "Lists ingested" }
                p.soft {
                    @if lists.len() > LISTS_SHOWN { "The newest " (LISTS_SHOWN) " of " (grouped(lists.len() as u64)) }
                    @else { (grouped(lists.len() as u64)) " in all" }
                }
            }
            @if lists.is_empty() {
                p.panel.empty { "None yet. Lists are ingested with " code { "dropdex ingest" } "." }
            } @else {
                div.table.lists tabindex="0" role="region" aria-label="Table of lists ingested" {
                    table {
                        thead {
                            tr {
                                th.number scope="col" { "List" }
                                th scope="col" { "Ingested" }
                                th.number scope="col" { "Drops it told of first" }
                                th.share aria-hidden="true" {}
                            }
                        }
                        tbody {
                            @for (at, &(day, drops)) in newest_first() {
                                tr {
                                    th.number scope="row" { (at + 1) }
                                    td { time datetime=(day) { (day) } }
                                    td.number { (grouped(drops.into())) }
                                    td.share aria-hidden="true" { (bar(drops, most)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A number as a bar beside those of other rows.
fn bar(value: u32, most: u32) -> Markup {
    let width = u64::from(value) * 1_000 / u64::from(most.max(1));
    html! {
        svg viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect width=(width) height="8" {}
        }
    }
}

fn none_yet() -> Markup {
    html! { span.soft { "none yet" } }
}

fn time_of(instant: DateTime<Utc>) -> Markup {
    html! {
        time datetime=(UnixMs::from_instant(instant)) { (instant.format("%Y-%m-%d %H:%M UTC")) }
    }
}

/// A span of time in its two largest units.
fn lasted(span: TimeDelta) -> String {
    let minutes = span.num_minutes();
    match (minutes / 1_440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!("{} s", span.num_seconds()),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// Bytes in the unit they are read in.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes / 1_024),
        _ => format!("{} MiB", grouped(bytes / 1_048_576)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_two_units() {
        for (seconds, words) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_599, "59 min"),
            (3_600, "1 h 0 min"),
            (86_399, "23 h 59 min"),
            (86_400, "1 d 0 h"),
            (31_536_000, "365 d 0 h"),
        ] {
            assert_eq!(lasted(TimeDelta::seconds(seconds)), words);
        }
    }

    #[test]
    fn sizes_are_told_in_one_unit() {
        for (bytes, words) in
            [(0, "0 B"), (1_023, "1023 B"), (1_024, "1 KiB"), (1_073_741_824, "1,024 MiB")]
        {
            assert_eq!(size(bytes), words);
        }
    }

    #[test]
    fn only_what_is_long_overdue_is_late() {
        let now = UnixMs::new(10_000_000_000).expect("in range");
        let due = |ago: i64| Queues {
            deliveries: 1,
            first_due: Some(UnixMs::from_instant(now.instant() - TimeDelta::minutes(ago))),
            watched: 0,
            unseen: 0,
        };
        assert!(!late(&due(-1), now.instant()) && !late(&due(5), now.instant()));
        assert!(late(&due(6), now.instant()));
    }
}
