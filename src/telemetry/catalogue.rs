//! All metrics, with name, type and description. A test compares this list with the code that
//! records them.

use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::query;
use crate::security::SecurityEvent;
use crate::vocab::change::ChangeKind;
use crate::vocab::plan::Plan;

/// Interval at which histogram samples are moved from memory into buckets.
pub const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Buckets from 0.1 ms, a typical response time, to the request deadline.
const SECONDS: [f64; 15] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
    30.0,
];

/// Buckets for ingests and rebuilds, which take seconds to minutes.
const JOB_SECONDS: [f64; 8] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    /// A counter with labels. Label values that are known in advance are registered by the recording
    /// code or by the table below.
    Counters,
    Gauge,
    /// A histogram of seconds.
    Histogram,
    /// A histogram with labels, registered like [`MetricKind::Counters`].
    Histograms,
}

/// One metric.
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
}

const fn metric(kind: MetricKind, name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind, help }
}

/// All metrics, by subject.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    // Requests
    metric(MetricKind::Counters, "dropdex_http_requests_total", "Requests, by route, method and status class."),
    metric(MetricKind::Histograms, "dropdex_http_request_duration_seconds", "Time from the request head to the response head, by route, method and status class."),
    metric(MetricKind::Histograms, "dropdex_query_duration_seconds", "Time of index queries, by kind."),
    metric(MetricKind::Counters, "dropdex_usage_total", "Requests and exports counted against quotas, by plan, kind and outcome."),
    metric(MetricKind::Counter, "dropdex_queries_too_long_total", "Queries cancelled for exceeding their time budget."),
    metric(MetricKind::Counter, "dropdex_queries_refused_total", "Queries refused because too many of their account were in progress."),
    metric(MetricKind::Counter, "dropdex_queries_abandoned_total", "Queries cancelled because the client disconnected."),
    // Server
    metric(MetricKind::Gauge, "dropdex_connections_open", "Open connections."),
    metric(MetricKind::Counter, "dropdex_connections_total", "Accepted connections."),
    metric(MetricKind::Counters, "dropdex_connections_refused_total", "Connections refused at a limit, by limit."),
    metric(MetricKind::Counters, "dropdex_connections_reaped_total", "Connections closed by a timeout, by timeout."),
    metric(MetricKind::Gauge, "dropdex_requests_in_flight", "Requests in flight, by class."),
    metric(MetricKind::Counters, "dropdex_sheds_total", "Requests shed with 503, by class."),
    metric(MetricKind::Gauge, "dropdex_budget_limit_bytes", "Limit of a byte budget, by budget."),
    metric(MetricKind::Gauge, "dropdex_budget_used_bytes", "Bytes in use of a byte budget, by budget."),
    metric(MetricKind::Counters, "dropdex_budget_refusals_total", "Requests refused because a byte budget was used up, by budget."),
    metric(MetricKind::Counter, "dropdex_request_timeouts_total", "Requests that exceeded their deadline."),
    metric(MetricKind::Counter, "dropdex_panics_total", "Requests that panicked."),
    metric(MetricKind::Counter, "dropdex_log_lines_lost_total", "Log lines that could not be written to standard error."),
    // Index
    metric(MetricKind::Gauge, "dropdex_index_generation", "Number of the served index generation."),
    metric(MetricKind::Gauge, "dropdex_index_names", "Names in the index."),
    metric(MetricKind::Gauge, "dropdex_index_drops", "Drops in the index."),
    metric(MetricKind::Gauge, "dropdex_index_lists", "Lists in the index."),
    metric(MetricKind::Gauge, "dropdex_index_age_seconds", "Time since the newest list was observed; absent without lists."),
    metric(MetricKind::Gauge, "dropdex_index_built_timestamp_seconds", "Build time of the generation, in Unix time."),
    metric(MetricKind::Gauge, "dropdex_index_fallback", "1 while an older generation is served because the newest is damaged."),
    metric(MetricKind::Counter, "dropdex_index_swaps_total", "Generations put into service since the start."),
    metric(MetricKind::Gauge, "dropdex_outcomes_auc", "How well the score orders names of the last months by outcome, by suffix and label; only with enough names."),
    metric(MetricKind::Gauge, "dropdex_outcomes_auc_fallen", "1 while `dropdex_outcomes_auc` is .03 or more below the year before, which is outside its interval, by suffix and label."),
    // Intake
    metric(MetricKind::Counters, "dropdex_inbox_lists_total", "Processed lists of the inbox, by outcome."),
    metric(MetricKind::Counters, "dropdex_source_runs_total", "Runs of fetched sources, by source and outcome."),
    metric(MetricKind::Gauge, "dropdex_source_late_seconds", "Time by which a source is overdue by its own schedule, by source; 0 when on time."),
    metric(MetricKind::Gauge, "dropdex_source_failing", "1 while the last run of a source failed, by source."),
    metric(MetricKind::Gauge, "dropdex_source_warnings", "Warnings about the lists that a source fetched last, by source: odd links, far fewer rows than usual."),
    metric(MetricKind::Gauge, "dropdex_source_rows", "Rows of the lists of a source's last successful ingest, by source."),
    metric(MetricKind::Gauge, "dropdex_source_success_timestamp_seconds", "Last successful run of a source, in Unix time, by source; 0 before the first."),
    metric(MetricKind::Gauge, "dropdex_jobs", "Ingests and rebuilds that run or wait."),
    metric(MetricKind::Counters, "dropdex_jobs_ended_total", "Ingests and rebuilds that ended, by outcome: `crashed` without a result, which is retried."),
    metric(MetricKind::Histogram, "dropdex_job_duration_seconds", "Time of ingests and rebuilds."),
    // Accounts
    metric(MetricKind::Histogram, "dropdex_journal_sync_duration_seconds", "Time of journal syncs, which writes wait for."),
    metric(MetricKind::Counter, "dropdex_journal_written_bytes_total", "Bytes written to journal files."),
    metric(MetricKind::Counter, "dropdex_journal_errors_total", "Failed file operations of the journal."),
    metric(MetricKind::Counter, "dropdex_journal_records_total", "Durable journal records since the journal was created."),
    metric(MetricKind::Gauge, "dropdex_journal_log_bytes", "Bytes of log to replay at the next start."),
    metric(MetricKind::Gauge, "dropdex_journal_writable", "1 while writes are accepted; 0 also while the shared log of a cluster cannot be written."),
    metric(MetricKind::Gauge, "dropdex_accounts", "Accounts, by plan; disabled accounts have the plan `disabled`."),
    metric(MetricKind::Gauge, "dropdex_claims", "Claims of all accounts."),
    metric(MetricKind::Gauge, "dropdex_watches", "Watchlist entries of all accounts."),
    metric(MetricKind::Gauge, "dropdex_rules", "Alert rules of all accounts."),
    metric(MetricKind::Gauge, "dropdex_account_data_bytes", "Approximate memory of all accounts and their rows."),
    metric(MetricKind::Gauge, "dropdex_account_data_limit_bytes", "Value of `dropdex_account_data_bytes` above which new accounts and rows are refused."),
    metric(MetricKind::Counters, "dropdex_security_events_total", "Log-ins, failed log-ins and changes of accounts, keys and passwords, by event."),
    metric(MetricKind::Gauge, "dropdex_backup_timestamp_seconds", "Time of the last backup of any kind, in Unix time; 0 before the first."),
    metric(MetricKind::Gauge, "dropdex_backup_interval_seconds", "Time between two scheduled backups; 0 on a server that makes none by itself."),
    metric(MetricKind::Gauge, "dropdex_backup_stored_timestamp_seconds", "Time of the newest backup in the folder or bucket of the scheduled ones, in Unix time; 0 before the first."),
    metric(MetricKind::Gauge, "dropdex_backup_bytes", "Length of the last scheduled backup."),
    metric(MetricKind::Gauge, "dropdex_backup_duration_seconds", "Time in which the last scheduled backup was made and read back."),
    metric(MetricKind::Counter, "dropdex_backup_failures_total", "Scheduled backups that failed; they are tried again."),
    // Workers
    metric(MetricKind::Gauge, "dropdex_deliveries_waiting", "Pending alert deliveries."),
    metric(MetricKind::Gauge, "dropdex_deliveries_late_seconds", "Time since the oldest pending delivery was due; 0 without one."),
    metric(MetricKind::Gauge, "dropdex_names_unverified", "Watched names that were never verified."),
    metric(MetricKind::Gauge, "dropdex_alerts_matched_list", "Newest list that alert rules were matched with."),
    metric(MetricKind::Gauge, "dropdex_watch_alerts_matched_change", "Newest change that watched names were matched with."),
    metric(MetricKind::Counters, "dropdex_deliveries_total", "Delivery attempts, by channel and outcome."),
    metric(MetricKind::Counter, "dropdex_calls_refused_total", "Outbound calls blocked by the SSRF guard."),
    metric(MetricKind::Counters, "dropdex_rdap_answers_total", "RDAP queries, by outcome."),
    metric(MetricKind::Counter, "dropdex_rdap_distrusted_total", "Times that 404s of an RDAP server stopped to count, for an hour or until it knows a registered name."),
    metric(MetricKind::Counters, "dropdex_archive_answers_total", "Queries to the web archive, by outcome."),
    metric(MetricKind::Gauge, "dropdex_archive_waiting", "Names that wait for a query to the web archive."),
    metric(MetricKind::Counters, "dropdex_changes_total", "Derived changes of names, by kind."),
    metric(MetricKind::Counter, "dropdex_change_failures_total", "Failed derivations of changes, which are repeated."),
    metric(MetricKind::Counters, "dropdex_export_files_total", "Sets of dated export files that were written, by kind."),
    metric(MetricKind::Counter, "dropdex_export_file_failures_total", "Sets of dated export files that could not be written; they are tried again."),
    metric(MetricKind::Gauge, "dropdex_export_files_bytes", "Bytes of the dated export files."),
    metric(MetricKind::Gauge, "dropdex_change_log_newest", "Newest event of the change log."),
    metric(MetricKind::Gauge, "dropdex_change_log_bytes", "Bytes of the change log."),
    // Cluster
    metric(MetricKind::Gauge, "dropdex_cluster_record", "Last record of the shared log that is applied; 0 for a single node."),
    metric(MetricKind::Gauge, "dropdex_cluster_leader", "1 while this node does the work for all nodes; always 1 for a single node."),
    metric(MetricKind::Gauge, "dropdex_cluster_cut_off", "1 while the shared log cannot be written."),
    metric(MetricKind::Gauge, "dropdex_cluster_halted", "1 while the node takes no writes because its log and the stream differ."),
    metric(MetricKind::Gauge, "dropdex_cluster_behind", "1 while the node lacks the lists that the other nodes serve."),
    metric(MetricKind::Gauge, "dropdex_cluster_caught_up", "1 while the node has all records of the shared log; always 1 for a single node."),
    metric(MetricKind::Gauge, "dropdex_cluster_data_age_seconds", "Time since the node last had all records of the shared log; 0 for a single node."),
    metric(MetricKind::Counter, "dropdex_cluster_leads_total", "Times that this process took the lead."),
    metric(MetricKind::Counter, "dropdex_cluster_fetched_bytes_total", "Bytes of files that were fetched from the object store."),
    metric(MetricKind::Counter, "dropdex_cluster_fetch_failures_total", "Failed fetches of files, which are repeated."),
    metric(MetricKind::Counter, "dropdex_cluster_publish_failures_total", "Failed publications of files, which are repeated."),
    // Process
    metric(MetricKind::Gauge, "dropdex_build_info", "Always 1; the label holds the version."),
    metric(MetricKind::Gauge, "dropdex_start_timestamp_seconds", "Start time of the process, in Unix time."),
    metric(MetricKind::Gauge, "dropdex_clock_trusted", "1 while the system clock is trusted; see Durability, Clock."),
    metric(MetricKind::Gauge, "dropdex_uptime_seconds", "Time since the start."),
    metric(MetricKind::Gauge, "dropdex_resident_bytes", "Resident memory."),
    metric(MetricKind::Gauge, "dropdex_open_fds", "Open file descriptors."),
    metric(MetricKind::Gauge, "dropdex_max_fds", "Maximum open file descriptors."),
    metric(MetricKind::Gauge, "dropdex_disk_free_bytes", "Free space of the disk of a folder, `data` or `index`."),
    metric(MetricKind::Gauge, "dropdex_disk_bytes", "Size of the disk of a folder, `data` or `index`."),
    metric(MetricKind::Counters, "dropdex_certificate_orders_total", "Certificates ordered from an authority, by outcome."),
    metric(MetricKind::Gauge, "dropdex_certificate_expires_timestamp_seconds", "End of the TLS certificate in use, in Unix time; 0 without TLS."),
    metric(MetricKind::Gauge, "dropdex_threads", "Threads."),
    metric(MetricKind::Counter, "dropdex_cpu_seconds_total", "CPU time, user and system."),
    metric(MetricKind::Histogram, "dropdex_scrape_duration_seconds", "Time to sample the gauges for a scrape."),
];

/// Label names of a counter, with their known values.
type Labels = &'static [(&'static str, &'static [&'static str])];

/// Counters whose label values are known in advance. Every combination is exported from the start.
const LABELS: [(&str, Labels); 7] = [
    ("dropdex_security_events_total", &[("event", &SecurityEvent::NAMES)]),
    ("dropdex_changes_total", &[("kind", &ChangeKind::NAMES)]),
    ("dropdex_export_files_total", &[("kind", &["pipeline", "changes"])]),
    (
        "dropdex_usage_total",
        &[
            ("plan", &Plan::NAMES),
            ("kind", &["request", "export"]),
            ("outcome", &["granted", "refused"]),
        ],
    ),
    (
        "dropdex_deliveries_total",
        &[
            ("channel", &["webhook", "email", "telegram", "chat"]),
            ("outcome", &["delivered", "retry", "failed", "switched_off"]),
        ],
    ),
    (
        "dropdex_archive_answers_total",
        &[("outcome", &["captures", "none", "not_now", "failed", "refused", "no_answer"])],
    ),
    (
        "dropdex_rdap_answers_total",
        &[(
            "outcome",
            &[
                "found",
                "not_found",
                "reserved",
                "redirect",
                "not_now",
                "refused",
                "failed",
                "unusable",
                "no_answer",
            ],
        )],
    ),
];

/// Registers a counter at 0 for every combination of `labels`, each added to the labels in
/// `chosen`.
fn register(name: &'static str, labels: Labels, chosen: &[(&'static str, &'static str)]) {
    let Some(((label, values), rest)) = labels.split_first() else {
        return metrics::counter!(name, chosen).increment(0);
    };
    for value in *values {
        register(name, rest, &[chosen, &[(*label, *value)]].concat());
    }
}

/// Installs the global recorder. Call once per process, before anything is recorded.
///
/// # Errors
/// Another recorder is already installed.
pub fn install() -> anyhow::Result<PrometheusHandle> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .context("histogram buckets")?
        .set_buckets_for_metric(
            Matcher::Full("dropdex_job_duration_seconds".to_owned()),
            &JOB_SECONDS,
        )
        .context("histogram buckets of jobs")?
        .install_recorder()
        .context("cannot install the metrics recorder")?;
    for Metric { name, kind, help } in METRICS {
        match kind {
            MetricKind::Counter => {
                metrics::describe_counter!(*name, *help);
                // Registers the counter at 0 so that `rate()` sees the first increment.
                metrics::counter!(*name).increment(0);
            }
            MetricKind::Counters => metrics::describe_counter!(*name, *help),
            MetricKind::Gauge => metrics::describe_gauge!(*name, *help),
            MetricKind::Histogram => {
                metrics::describe_histogram!(*name, *help);
                // Registration exports the counter before its first sample.
                drop(metrics::histogram!(*name));
            }
            MetricKind::Histograms => metrics::describe_histogram!(*name, *help),
        }
    }
    for (name, labels) in LABELS {
        register(name, labels, &[]);
    }
    query::register();
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for Metric { name, kind, help } in METRICS {
            assert!(name.starts_with("dropdex_"), "{name}");
            let counts = matches!(kind, MetricKind::Counter | MetricKind::Counters);
            assert_eq!(name.ends_with("_total"), counts, "{name}");
            assert!(
                *kind != MetricKind::Histogram || name.ends_with("_duration_seconds"),
                "{name}"
            );
            assert!(help.ends_with('.'), "{name}: {help}");
        }
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
        // OpenMetrics drops the suffix `_total` from the family name.
        for name in &names {
            let total = format!("{name}_total");
            assert!(!names.contains(&total.as_str()), "{name} beside {total}");
        }
    }
}
