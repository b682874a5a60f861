//! Every metric, by name: what it is, for `/metrics` and for those who read the README. Whoever counts
//! something new adds a line here; a test compares.

use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Samples of histograms wait in memory until they are put into buckets: often enough that they stay
/// few, seldom enough that nobody notices.
pub const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// From a tenth of a millisecond, which most answers take, to the longest that a request may take.
const SECONDS: [f64; 15] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
    30.0,
];

/// Ingests and rebuilds take seconds to minutes.
const JOB_SECONDS: [f64; 8] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    /// Counters by label. Whoever counts has them begin, where it knows them before they happen.
    Counters,
    Gauge,
    /// Of seconds.
    Histogram,
}

/// One metric.
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, help }
}

const fn counters(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counters, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, help }
}

/// All of them, by what they are about.
pub const METRICS: &[Metric] = &[
    // Requests.
    counters(
        "dropdex_http_requests_total",
        "Requests answered, by route, method and class of status.",
    ),
    histogram(
        "dropdex_http_request_duration_seconds",
        "From a request's head to its answer's head, by route, method and class of status.",
    ),
    histogram(
        "dropdex_query_duration_seconds",
        "Questions to the index, by kind, from asked to shaped.",
    ),
    counters(
        "dropdex_usage_total",
        "What is counted against allowances, by plan, kind and outcome.",
    ),
    counter(
        "dropdex_queries_too_long_total",
        "Questions that were ended for their time on a core.",
    ),
    counter("dropdex_queries_abandoned_total", "Questions that were ended because nobody waited."),
    // The door.
    gauge("dropdex_connections_open", "Connections that are open."),
    counter("dropdex_connections_total", "Connections that were taken."),
    counters("dropdex_connections_refused_total", "Connections beyond a limit, by limit."),
    counters(
        "dropdex_connections_reaped_total",
        "Connections that were closed for being late, by what.",
    ),
    gauge("dropdex_requests_in_flight", "Requests being answered, by class."),
    counters("dropdex_sheds_total", "Requests refused because there was too much to do, by class."),
    counter("dropdex_request_timeouts_total", "Requests that took longer than any may."),
    counter("dropdex_panics_total", "Requests that met a fault of ours."),
    // The index.
    gauge("dropdex_index_generation", "The number of the generation that is served."),
    gauge("dropdex_index_names", "Names in it."),
    gauge("dropdex_index_drops", "Drops in it."),
    gauge("dropdex_index_lists", "Lists that it was made from."),
    gauge(
        "dropdex_index_age_seconds",
        "Since the newest list was observed; absent before any list.",
    ),
    gauge("dropdex_index_built_timestamp_seconds", "When the generation was built, in Unix time."),
    gauge("dropdex_index_fallback", "1 while an older generation is served than the newest one."),
    counter("dropdex_index_swaps_total", "Generations taken into service since the start."),
    // Lists that come in.
    counters(
        "dropdex_inbox_lists_total",
        "Lists of the inbox that are done, by what became of them.",
    ),
    gauge("dropdex_jobs", "Ingests and rebuilds under way or waiting."),
    histogram("dropdex_job_duration_seconds", "Ingests and rebuilds, from start to end."),
    // What users own.
    histogram(
        "dropdex_journal_sync_duration_seconds",
        "Syncs of the journal: what a write waits for.",
    ),
    counter("dropdex_journal_written_bytes_total", "Bytes written to the journal's files."),
    counter("dropdex_journal_errors_total", "Failed calls to the journal's disk."),
    counter("dropdex_journal_records_total", "Records of the journal known to be on disk, ever."),
    gauge("dropdex_journal_log_bytes", "Bytes of log that the next start reads."),
    gauge("dropdex_journal_writable", "1 while changes are taken."),
    gauge("dropdex_accounts", "Accounts, by plan; those that were shut have the plan `disabled`."),
    gauge("dropdex_claims", "Claims of all accounts."),
    gauge("dropdex_watches", "Names on all watchlists, as often as they are watched."),
    gauge("dropdex_rules", "Alert rules of all accounts."),
    // What goes on without requests.
    gauge("dropdex_deliveries_waiting", "Deliveries of alerts to be sent."),
    gauge(
        "dropdex_deliveries_late_seconds",
        "How long the first of them has been due; 0 for none.",
    ),
    gauge("dropdex_names_unverified", "Watched names of which nothing has been seen yet."),
    gauge("dropdex_alerts_matched_list", "The newest list that alert rules were matched with."),
    counters("dropdex_deliveries_total", "Tries to deliver an alert, by channel and outcome."),
    counter("dropdex_calls_refused_total", "Calls to the outside that the guard refused."),
    counters("dropdex_rdap_answers_total", "Questions to registries, by outcome."),
    // The process.
    gauge("dropdex_build_info", "Always 1; its labels say what runs."),
    gauge("dropdex_start_timestamp_seconds", "When the process started, in Unix time."),
    gauge("dropdex_uptime_seconds", "Since it started."),
    gauge("dropdex_resident_bytes", "Memory that it has."),
    gauge("dropdex_open_fds", "Files and sockets that it has open."),
    gauge("dropdex_max_fds", "How many it may have open."),
    gauge("dropdex_threads", "Threads of it."),
    counter("dropdex_cpu_seconds_total", "Time on cores, of its own and in the system."),
    histogram(
        "dropdex_scrape_duration_seconds",
        "What reading the state of things for a scrape took.",
    ),
];

/// Takes note of everything that is counted from now on. Once a process.
///
/// # Errors
/// Something else takes note already.
pub fn install() -> anyhow::Result<PrometheusHandle> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .context("the buckets of the metrics")?
        .set_buckets_for_metric(
            Matcher::Full("dropdex_job_duration_seconds".to_owned()),
            &JOB_SECONDS,
        )
        .context("the buckets of jobs")?
        .install_recorder()
        .context("the metrics cannot be kept")?;
    for Metric { name, kind, help } in METRICS {
        match kind {
            Kind::Counter => {
                metrics::describe_counter!(*name, *help);
                // From nought, so that the first is an increase to who asks for rates.
                metrics::counter!(*name).increment(0);
            }
            Kind::Counters => metrics::describe_counter!(*name, *help),
            Kind::Gauge => metrics::describe_gauge!(*name, *help),
            Kind::Histogram => metrics::describe_histogram!(*name, *help),
        }
    }
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_prometheus_wants_them() {
        for Metric { name, kind, help } in METRICS {
            assert!(name.starts_with("dropdex_"), "{name}");
            let counts = matches!(kind, Kind::Counter | Kind::Counters);
            assert_eq!(name.ends_with("_total"), counts, "{name}");
            assert!(*kind != Kind::Histogram || name.ends_with("_duration_seconds"), "{name}");
            assert!(help.ends_with('.'), "{name}: {help}");
        }
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
        // Of one family, as newer formats name them, is one kind.
        for name in &names {
            let total = format!("{name}_total");
            assert!(!names.contains(&total.as_str()), "{name} beside {total}");
        }
    }
}
