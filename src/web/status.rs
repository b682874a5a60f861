//! `GET /status`: state of the service, visible without a login. The page shows only totals, and no
//! data of any account.
//!
//! Totals that require a scan are computed on the blocking pool and cached for [`MAX_AGE`].

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::request::Parts;
use axum::routing::get;
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use crate::Web;
use crate::accounts::Queues;
use crate::components::{counted, date, grouped, panel};
use crate::edge::local::{Local, judge};
use crate::error::PageError;
use crate::index::Index;
use crate::index::filter::View as DropView;
use crate::intake::inbox::InboxCounts;
use crate::layout::Page;
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::archive::Progress;
use crate::service::backups::BackupState;
use crate::service::error::ApiError;
use crate::service::work;
use crate::sources::state::{Standing, View};
use crate::viewer::Viewer;
use crate::vocab::day::Day;
use crate::vocab::limits::STALE_AFTER_HOURS;
use crate::vocab::time::UnixMs;

/// Number of latest lists shown.
const LISTS_SHOWN: usize = 30;
/// Maximum files of the inbox shown by name.
const FILES_NAMED: usize = 3;
/// Maximum age of the cached totals.
const MAX_AGE: Duration = Duration::from_secs(2);
/// A delivery is late after this delay. Shorter delays are normal, because retries are spread over
/// time.
const LATE_AFTER: TimeDelta = TimeDelta::minutes(5);
/// Estimated cost of the totals, high enough that [`work::run`] uses the blocking pool.
const LONG_US: u32 = 10_000;

/// Route of the page.
pub fn routes() -> Router<Web> {
    let cache = Arc::new(Cache::default());
    let page = move |viewer: Viewer, State(web): State<Web>, parts: Parts| {
        status(viewer, web, parts, Arc::clone(&cache))
    };
    Router::new().route("/status", get(page))
}

async fn status(
    viewer: Viewer,
    web: Web,
    parts: Parts,
    cache: Arc<Cache>,
) -> Result<Markup, PageError> {
    let is_local = || judge(&web.app, &parts.extensions, &parts.headers, parts.version);
    let is_owner =
        web.app.site.single_user && (viewer.member.is_some() || is_local() == Local::Yes);
    let (app, now) = (web.app.clone(), viewer.now);
    let totals = work::run(LONG_US, move || Ok::<_, ApiError>(cache.totals(&app, now))).await?;
    let service = Service::new(&web.app, &totals.queues, viewer.now.0);
    let page = Page::new(
        "Status",
        "State of the service: freshness of the data, queues and the latest lists.",
    )
    .styles(&["status.css"]);
    Ok(page.show(Some(&viewer), main(&service, &totals, is_owner)))
}

/// The last computed totals, and the time of the computation.
#[derive(Default)]
struct Cache(Mutex<Option<(Instant, Arc<StatusTotals>)>>);

impl Cache {
    /// Returns totals that are at most [`MAX_AGE`] old. Concurrent requests wait for one computation.
    fn totals(&self, app: &App, now: Now) -> Arc<StatusTotals> {
        let mut kept = self.0.lock().expect("no code panics holding this lock");
        match &*kept {
            Some((at, totals)) if at.elapsed() < MAX_AGE => Arc::clone(totals),
            _ => {
                let totals = Arc::new(StatusTotals::new(app, now));
                *kept = Some((Instant::now(), Arc::clone(&totals)));
                totals
            }
        }
    }
}

/// Totals that require a scan.
struct StatusTotals {
    /// Ingest date and number of new drops of each list.
    lists: Vec<(Day, u32)>,
    queues: Queues,
    /// Number of dropped names that are not yet past the catchable stage, as counted in the overview.
    in_pipeline: u32,
    /// Newest days of the dated export files, of the pipeline and of changes; `None` if none are made.
    files: Option<[Option<Day>; 2]>,
}

impl StatusTotals {
    fn new(app: &App, now: Now) -> StatusTotals {
        let index = app.live.current();
        let in_pipeline = index.overview(app.as_of(now)).total(DropView::Active);
        let files = app.copies.as_ref().map(|copies| copies.newest().unwrap_or_default());
        StatusTotals { lists: index.lists(), queues: app.store.queues(), in_pipeline, files }
    }
}

/// State of the service.
struct Service<'a> {
    app: &'a App,
    now: DateTime<Utc>,
    index: Arc<Index>,
    queues: &'a Queues,
    /// Reason why the journal refuses writes.
    journal_problem: Option<String>,
    /// Age of the newest list; `None` without lists.
    age: Option<TimeDelta>,
    /// Counts of the lists that arrived in the inbox.
    inbox: InboxCounts,
}

impl<'a> Service<'a> {
    fn new(app: &'a App, queues: &'a Queues, now: DateTime<Utc>) -> Service<'a> {
        let index = app.live.current();
        let observed = index.manifest().newest_observed_at;
        let age = observed.map(|observed| (now - observed).max(TimeDelta::zero()));
        let (journal_problem, inbox) = (app.store.write_problem(), app.status.inbox.counts());
        Service { app, now, index, queues, journal_problem, age, inbox }
    }

    fn is_stale(&self) -> bool {
        self.age.is_none_or(|age| age > TimeDelta::hours(STALE_AFTER_HOURS))
    }

    /// State of the scheduled backups; `None` if this server makes none.
    fn backup(&self) -> Option<BackupState> {
        *self.app.status.backups.state()
    }

    /// Problems that need attention.
    fn problems(&self) -> Vec<&'static str> {
        let journal = self.journal_problem.as_deref().map(|word| match word {
            "disk_full" => {
                "The disk is full. Changes are refused until space is available; reading works."
            }
            "fenced" => {
                "Another process uses the data folder. Changes are refused here until this process is \
                 restarted."
            }
            "closed" => "The service is shutting down.",
            "halted" => {
                "This node and the log of the cluster differ, or the log has lost records. Changes are refused; reading \
                 works. If all nodes say so, run dropdex cluster restore with a backup of one of them."
            }
            "cut_off" => {
                "The shared log of the cluster cannot be written. Changes are refused until most of its servers are \
                 back; reading works."
            }
            _ => {
                "A disk write failed. Changes are refused until the service is restarted; reading \
                 works."
            }
        });
        let clock = (!self.app.clock.is_trusted()).then_some(
            "The clock of this server is wrong, or was just set. No day is stored and lists wait until it is set, or has been \
             steady for ten minutes. Reading and writing work.",
        );
        let index = self.app.status.index_problem().map(|_| {
            "The newest index is invalid, so the previous one is served. See the log for the reason."
        });
        let stale = match self.age {
            None => Some(
                "No list has been ingested yet. Run dropdex sources enable --all-free to fetch the public ones, or dropdex ingest to add your own.",
            ),
            Some(_) if self.is_stale() => {
                Some("The newest list is more than two days old. Ingest a newer list.")
            }
            Some(_) => None,
        };
        let inbox = self.inbox.problem.as_ref().map(|_| {
            "Lists in the inbox cannot be ingested. They are retried automatically; see the log for the reason."
        });
        let jobs = self.app.status.jobs.problem().map(|_| {
            "The newest lists may be missing from the index, because an ingest or rebuild failed. It is retried automatically; see the log for the reason."
        });
        let is_bad =
            |view: &View| matches!(view.standing(self.now), Standing::Late | Standing::Stopped);
        let sources = self.app.status.sources.views().iter().any(is_bad).then_some(
            "A source of lists needs attention. Run dropdex sources list to see the reason.",
        );
        let facts = (!self.app.facts.problems().is_empty()).then_some(
            "Some facts of this server cannot be used. See the log for the reason; dropdex facts list shows them.",
        );
        let backup = self.backup().is_some_and(|it| it.has_failed || it.is_late(self.now)).then_some(
            "The scheduled backup failed or is late. It is retried automatically; see the log for the reason.",
        );
        let late = late(self.queues, self.now)
            .then_some("Alert deliveries are late. Receivers may not be responding.");
        [journal, clock, index, jobs, stale, inbox, sources, facts, backup, late]
            .into_iter()
            .flatten()
            .collect()
    }
}

fn late(queues: &Queues, now: DateTime<Utc>) -> bool {
    queues.first_due.is_some_and(|due| now - due.instant() > LATE_AFTER)
}

fn main(service: &Service<'_>, totals: &StatusTotals, is_owner: bool) -> Markup {
    let problems = service.problems();
    html! {
        div.head {
            h1 { "Status" }
            p.soft { "As of " (time_of(service.now)) }
        }
        @if problems.is_empty() {
            p.notice { strong { "Everything that is switched on works." } " Lists are fresh and changes are saved." (off(service.app)) }
        } @else {
            @for problem in &problems { p.problem { (problem) } }
        }
        div.columns {
            (data_panel(service, totals))
            (queues_panel(service))
            (service_panel(service))
        }
        (sources_table(service, is_owner))
        (lists_table(&totals.lists, Day::nearest(service.now)))
    }
}

/// Says what the operator has not switched on.
fn off(app: &App) -> Markup {
    let (has_checks, has_mail) = (app.reach.checks.is_some(), app.reach.channels.email);
    let off = [(has_checks, "registry checks"), (has_mail, "e-mail")];
    let off: Vec<_> = off.iter().filter(|(is_on, _)| !is_on).map(|(_, word)| *word).collect();
    html! { @if !off.is_empty() { " Off on this server: " (off.join(" and ")) "." } }
}

/// Renders the enabled sources. Reasons of problems may contain paths, so they are shown only to the
/// owner of the machine.
fn sources_table(service: &Service<'_>, is_owner: bool) -> Markup {
    let views = service.app.status.sources.views();
    let mut views = views.iter().filter(|view| view.is_enabled()).peekable();
    if views.peek().is_none() {
        return html! {};
    }
    let time = |at: Option<DateTime<Utc>>| at.map_or_else(none_yet, time_of);
    html! {
        section aria-labelledby="sources" {
            div.head { h2 #sources { "Sources" } }
            div.table.sources tabindex="0" role="region" aria-label="Table of sources" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Source" }
                            th scope="col" { "Status" }
                            th scope="col" { "Last list" }
                            th.number scope="col" { "Rows" }
                            th scope="col" { "Next run" }
                        }
                    }
                    tbody {
                        @for view in views {
                            tr {
                                th scope="row" { (view.source.name) }
                                td {
                                    (standing(view.standing(service.now)))
                                    @if let Some(problem) = &view.state.problem {
                                        " "
                                        @if is_owner { (problem.text) }
                                        @else { "since " (time_of(problem.since)) }
                                    }
                                    @if is_owner {
                                        @for warning in view.state.warnings() { " " (warning) }
                                    }
                                }
                                td {
                                    (time(view.state.last_list))
                                    @if let (Some(version), Some(used)) = (&view.state.version, view.table_use()) {
                                        " " span.soft { "version " (version) ", " (used) }
                                    }
                                }
                                td.number { (grouped(view.state.rows)) }
                                td { (view.next_run(service.now).map_or_else(|| html! { span.soft { "none" } }, time_of)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn standing(standing: Standing) -> Markup {
    let class = match standing {
        Standing::Ok => "good",
        Standing::Off | Standing::Waiting | Standing::Failing | Standing::Doubtful => "warn",
        Standing::Late | Standing::Stopped => "bad",
    };
    html! { span.badge.(class) { (standing.as_str()) } }
}

fn data_panel(service: &Service<'_>, totals: &StatusTotals) -> Markup {
    let manifest = service.index.manifest();
    let today = Day::from_instant(service.now).unwrap_or_else(|| service.app.clock.today());
    let newest_drop = service.index.newest_drop_date(today);
    let day_or_none = |day: Option<Day>| day.map_or_else(none_yet, |day| date(day, today));
    let newest_drop = day_or_none(newest_drop);
    let facts = html! {
        dl.facts {
            dt { "Freshness" } dd { (freshness(service)) }
            dt { "Newest drops" } dd { (newest_drop) }
            dt { "Names" } dd { (grouped(manifest.names.into())) " known" }
            dt { "Dropped" } dd { (counted(manifest.dropped, "name")) ", " (grouped(totals.in_pipeline.into())) " of them in the pipeline" }
            dt { "TLDs" } dd { (grouped(manifest.tlds.len() as u64)) }
            dt { "Generation" } dd { (manifest.generation.0) ", built " (time_of(manifest.created)) }
            dt { "Scorer" } dd { "version " (manifest.scorer_version) }
            dt { "Inbox" } dd { (inbox(&service.inbox)) }
            @if let Some([pipeline, changes]) = totals.files {
                dt { "Export files" }
                dd { "pipeline of " (day_or_none(pipeline)) ", changes through " (day_or_none(changes)) }
            }
        }
    };
    panel("data", "Data", facts)
}

/// Renders the lists received since startup, by outcome, and the findings of the last scan. Files are
/// shown by name, without their folder.
fn inbox(counts: &InboxCounts) -> Markup {
    let named = |names: &[String]| {
        let shown: Vec<_> = names.iter().take(FILES_NAMED).map(String::as_str).collect();
        let more = if names.len() > FILES_NAMED { ", …" } else { "" };
        format!(": {}{more}", shown.join(", "))
    };
    html! {
        @if !counts.waiting.is_empty() {
            span.badge.warn { (counts.waiting.len()) " waiting" (named(&counts.waiting)) } " "
        }
        @if counts.refused > 0 { span.badge.bad { (grouped(counts.refused)) " refused" } " " }
        @if !counts.ignored.is_empty() {
            span.badge.warn { (counts.ignored.len()) " ignored, no file" (named(&counts.ignored)) } " "
        }
        @if let Some(name) = &counts.in_pieces {
            span.badge.warn { "a writer seems to append in pieces" (named(std::slice::from_ref(name))) } " "
        }
        @match counts.last_at {
            None => "no lists since the last restart",
            Some(at) => {
                (counted(u32::try_from(counts.added).unwrap_or(u32::MAX), "list"))
                " ingested, last ingest "
                (time_of(at))
            }
        }
        @if let Some(at) = counts.scanned_at { ", last scan " (time_of(at)) }
    }
}

fn freshness(service: &Service<'_>) -> Markup {
    let Some(age) = service.age else { return html! { span.badge.bad { "no data" } } };
    let (class, word) = if service.is_stale() { ("bad", "stale") } else { ("good", "fresh") };
    html! {
        span.badge.(class) { (word) }
        " newest list observed " (duration_text(age)) " ago"
    }
}

fn queues_panel(service: &Service<'_>) -> Markup {
    let (lists, queues) = (service.index.manifest().batches, service.queues);
    let matching = match service.app.store.watermark() {
        Some(mark) if mark.batch >= lists => {
            html! { "up to date through list " (mark.batch) }
        }
        Some(mark) => {
            html! { span.badge.warn { "working" } " at list " (mark.batch) " of " (lists) }
        }
        None => none_yet(),
    };
    let facts = html! {
        dl.facts {
            dt { "Alert matching" } dd { (matching) }
            dt { "Deliveries queued" } dd { (waiting(queues, service.now)) }
            dt { "Watched names" } dd { (grouped(queues.watched as u64)) }
            dt { "Awaiting first check" }
            dd {
                @if service.app.reach.checks.is_some() { (grouped(queues.unseen as u64)) " names" }
                @else { "checks are off on this server" }
            }
            @if let Some(archive) = &service.app.reach.archive {
                dt { "Web archive" } dd { (questions(*archive.progress())) }
            }
        }
    };
    panel("queues", "Queues", facts)
}

/// Renders the names that the web archive is asked about.
fn questions(progress: Progress) -> Markup {
    let Progress { answered, failed, waiting, is_paused } = progress;
    html! {
        @if is_paused { span.badge.warn { "paused" } " " }
        (grouped(waiting as u64)) " waiting, " (grouped(answered)) " answered"
        @if failed > 0 { ", " (grouped(failed)) " given up for a day" }
    }
}

/// Renders the number of queued deliveries, and the delay of the first.
fn waiting(queues: &Queues, now: DateTime<Utc>) -> Markup {
    let Some(due) = queues.first_due else { return html! { "none" } };
    let due_in = due.instant() - now;
    html! {
        @if late(queues, now) { span.badge.bad { "late" } " " }
        (grouped(queues.deliveries as u64))
        @if due_in > TimeDelta::zero() {
            ", the next one due in " (duration_text(due_in))
        } @else {
            ", the first one due since " (duration_text(-due_in))
        }
    }
}

fn service_panel(service: &Service<'_>) -> Markup {
    let app = service.app;
    let uptime = TimeDelta::from_std(app.status.started.elapsed()).unwrap_or(TimeDelta::MAX);
    let changes = match &service.journal_problem {
        None => html! { "saved to disk before each response" },
        Some(_) => html! { span.badge.bad { "refused" } " reading works" },
    };
    let facts = html! {
        dl.facts {
            dt { "Changes" } dd { (changes) }
            dt { "Journal" } dd { (size(app.store.log_bytes_since_snapshot())) " to replay at the next start" }
            @if let Some(BackupState { last, due, has_failed }) = service.backup() {
                dt { "Backups" }
                dd {
                    @if has_failed { span.badge.bad { "failed" } " " }
                    @match last {
                        Some(at) => { "last " (time_of(at)) ", next " (time_of(due)) },
                        None => (none_yet()),
                    }
                }
            }
            dt { "Uptime" } dd { (duration_text(uptime)) }
            dt { "Node" } dd { (app.status.node) }
            dt { "Version" } dd { "dropdex " (env!("CARGO_PKG_VERSION")) }
        }
    };
    panel("service", "Service", facts)
}

fn lists_table(lists: &[(Day, u32)], today: Day) -> Markup {
    let newest_first = || lists.iter().enumerate().rev().take(LISTS_SHOWN);
    let most = newest_first().map(|(_, list)| list.1).max().unwrap_or(0);
    html! {
        section aria-labelledby="lists" {
            div.head {
                h2 #lists { "Ingested lists" }
                p.soft {
                    @if lists.len() > LISTS_SHOWN { "Latest " (LISTS_SHOWN) " of " (grouped(lists.len() as u64)) }
                    @else { (grouped(lists.len() as u64)) " in total" }
                }
            }
            @if lists.is_empty() {
                p.panel.empty {
                    "No lists yet. Fetch the public ones with " code { "dropdex sources enable --all-free" }
                    ", or add your own with " code { "dropdex ingest" } "."
                }
            } @else {
                div.table.lists tabindex="0" role="region" aria-label="Table of ingested lists" {
                    table {
                        thead {
                            tr {
                                th.number scope="col" { "List" }
                                th scope="col" { "Ingested" }
                                th.number scope="col" { "New drops" }
                                th.share aria-hidden="true" {}
                            }
                        }
                        tbody {
                            @for (at, &(day, drops)) in newest_first() {
                                tr {
                                    th.number scope="row" { (at + 1) }
                                    td { (date(day, today)) }
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

/// Renders a bar relative to the largest value.
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
    html! { (crate::owned::instant(UnixMs::from_instant(instant))) " UTC" }
}

/// Formats a duration in its two largest units.
fn duration_text(span: TimeDelta) -> String {
    let minutes = span.num_minutes();
    match (minutes / 1_440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!("{} s", span.num_seconds()),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// Formats a size in bytes.
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
    fn durations_have_two_units() {
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
            assert_eq!(duration_text(TimeDelta::seconds(seconds)), words);
        }
    }

    #[test]
    fn sizes_have_one_unit() {
        for (bytes, words) in
            [(0, "0 B"), (1_023, "1023 B"), (1_024, "1 KiB"), (1_073_741_824, "1,024 MiB")]
        {
            assert_eq!(size(bytes), words);
        }
    }

    #[test]
    fn deliveries_are_late_after_the_limit() {
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
