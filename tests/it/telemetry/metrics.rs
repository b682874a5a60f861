//! `/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dropdex::telemetry::catalogue::METRICS;
use serde_json::{Value, json};

use crate::common::{Client, Server, Site, TODAY, tools, wait};

const LIST: &str = "domain,drop_date\nsolar.com,2026-03-10\nsolar.de,2026-03-14\n";

/// A scrape, validated and parsed by Prometheus' own client.
pub struct Scrape {
    /// Value by name and labels, `name{a="b"}` with labels sorted.
    samples: BTreeMap<String, f64>,
    names: BTreeSet<String>,
}

impl Scrape {
    fn of(site: &Site, client: &mut Client) -> Scrape {
        let answer = client.get("/metrics");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        let text = site.write("metrics.txt", &answer.body);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/telemetry/parse.py");
        let parsed =
            Command::new(tools::python()).arg(script).arg(text).output().expect("Python runs");
        assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
        let parsed: Value = serde_json::from_slice(&parsed.stdout).expect("JSON");
        let members = |name: &str| parsed[name].as_object().expect("an object").clone();
        Scrape {
            samples: members("samples")
                .into_iter()
                .map(|(name, value)| (name, value.as_f64().expect("a number")))
                .collect(),
            names: members("families").into_iter().map(|(name, _)| name).collect(),
        }
    }

    #[track_caller]
    pub fn value(&self, sample: &str) -> f64 {
        let known = || self.samples.keys().cloned().collect::<Vec<_>>().join("\n");
        *self.samples.get(sample).unwrap_or_else(|| panic!("no {sample} in\n{}", known()))
    }
}

/// Starts a server with metrics, and returns it with a client of the metrics listener.
pub fn watched(site: &Site, settings: &str) -> (Server, Client) {
    let config = site.settings(&format!("{settings}\n[metrics]\nlisten = \"127.0.0.1:0\"\n"));
    let server = site.serve_with(&["--today", TODAY, "--config", &config]);
    let metrics = server.metrics();
    (server, metrics)
}

#[test]
fn a_scrape_reports_counters_and_gauges() {
    let site = Site::new();
    site.ingest(&site.write("list.csv", LIST), "2026-03-14T12:00:00Z");
    let key = site.account("owner@example.com", "pro");
    site.account("other@example.com", "free");
    let (server, mut metrics) = watched(&site, "");
    let mut client = server.client_with(&key);
    for target in ["/api/v1/search?q=so", "/api/v1/search?q=so&tld=com", "/api/v1/drops?q=ola"] {
        assert_eq!(client.get(target).status, 200, "{target}");
    }
    assert_eq!(client.get("/api/v1/domain/solar.com").status, 200);
    assert_eq!(client.get("/api/v1/domain/lunar.com").status, 404);
    assert_eq!(client.get("/api/export/drops").status, 200);
    assert_eq!(client.get("/no/such/page").status, 404);
    assert_eq!(client.request("BREW", "/api/v1/drops", &[]).status, 405);
    assert_eq!(
        client.send("POST", "/api/v1/watchlist", &json!({"domainName": "solar.com"})).status,
        201
    );
    assert_eq!(
        client.send("POST", "/api/v1/appraise", &json!({"domains": ["solar.com"]})).status,
        200
    );

    let scrape = Scrape::of(&site, &mut metrics);
    let requests = |route: &str, method: &str, status: &str| {
        let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
        let count = scrape.value(&format!("dropdex_http_requests_total{labels}"));
        let timed = scrape.value(&format!("dropdex_http_request_duration_seconds_count{labels}"));
        assert_eq!(count, timed, "{labels}");
        count
    };
    assert_eq!(requests("/api/v1/search", "GET", "2xx"), 2.0);
    assert_eq!(requests("/api/v1/domain/{name}", "GET", "2xx"), 1.0);
    assert_eq!(requests("/api/v1/domain/{name}", "GET", "4xx"), 1.0);
    assert_eq!(requests("/api/v1/watchlist", "POST", "2xx"), 1.0);
    assert_eq!(requests("-", "GET", "4xx"), 1.0);
    assert_eq!(requests("/api/v1/drops", "other", "4xx"), 1.0);
    for kind in ["prefix", "search", "substring", "export", "appraise"] {
        let count = format!("dropdex_query_duration_seconds_count{{kind=\"{kind}\"}}");
        assert_eq!(scrape.value(&count), 1.0, "{kind}");
    }
    for (sample, expected) in [
        ("dropdex_usage_total{kind=\"request\",outcome=\"granted\",plan=\"pro\"}", 7.0),
        ("dropdex_usage_total{kind=\"export\",outcome=\"granted\",plan=\"pro\"}", 1.0),
        ("dropdex_index_generation", 1.0),
        ("dropdex_index_names", 2.0),
        ("dropdex_index_drops", 2.0),
        ("dropdex_index_lists", 1.0),
        ("dropdex_index_fallback", 0.0),
        ("dropdex_journal_writable", 1.0),
        ("dropdex_accounts{plan=\"pro\"}", 1.0),
        ("dropdex_accounts{plan=\"free\"}", 1.0),
        ("dropdex_accounts{plan=\"disabled\"}", 0.0),
        ("dropdex_watches", 1.0),
        ("dropdex_claims", 0.0),
        ("dropdex_deliveries_waiting", 0.0),
        ("dropdex_alerts_matched_list", 1.0),
        // Counters exist before their first event, so that the event shows as an increase.
        ("dropdex_panics_total", 0.0),
        ("dropdex_queries_too_long_total", 0.0),
        ("dropdex_calls_refused_total", 0.0),
        ("dropdex_connections_reaped_total{late=\"write_stall\"}", 0.0),
        ("dropdex_connections_reaped_total{late=\"handshake\"}", 0.0),
    ] {
        assert_eq!(scrape.value(sample), expected, "{sample}");
    }
    for (sample, least) in [
        ("dropdex_index_age_seconds", 1.0),
        ("dropdex_journal_sync_duration_seconds_count", 1.0),
        ("dropdex_journal_written_bytes_total", 100.0),
        ("dropdex_journal_records_total", 5.0),
        ("dropdex_resident_bytes", 1e6),
        ("dropdex_open_fds", 5.0),
        ("dropdex_max_fds", 5.0),
        ("dropdex_threads", 2.0),
        ("dropdex_uptime_seconds", 0.0),
        ("dropdex_start_timestamp_seconds", 1e9),
    ] {
        assert!(scrape.value(sample) >= least, "{sample}: {}", scrape.value(sample));
    }
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(scrape.value(&format!("dropdex_build_info{{version=\"{version}\"}}")), 1.0);

    // Every counter is exported, and no label contains client input.
    let described: BTreeSet<String> =
        METRICS.iter().map(|metric| metric.name.trim_end_matches("_total").to_owned()).collect();
    let unknown: Vec<_> = scrape.names.difference(&described).collect();
    assert!(unknown.is_empty(), "not in the catalogue: {unknown:?}");
    for made_up in ["solar", "lunar", "BREW", "no/such"] {
        let found: Vec<_> =
            scrape.samples.keys().filter(|sample| sample.contains(made_up)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn every_metric_exists_before_its_first_event() {
    let site = Site::new();
    site.ingest(&site.write("list.csv", LIST), "2026-03-14T12:00:00Z");
    let (_server, mut metrics) = watched(&site, "");
    let scrape = Scrape::of(&site, &mut metrics);
    let absent: Vec<_> = METRICS
        .iter()
        .map(|metric| metric.name)
        .filter(|name| !scrape.names.contains(name.trim_end_matches("_total")))
        .collect();
    // Two names are too few to judge the order of the score.
    assert_eq!(absent, ["dropdex_outcomes_auc", "dropdex_outcomes_auc_fallen"]);
    for (sample, expected) in [
        ("dropdex_job_duration_seconds_count", 0.0),
        ("dropdex_query_duration_seconds_count{kind=\"drops\"}", 0.0),
        ("dropdex_http_requests_total{method=\"GET\",route=\"-\",status=\"4xx\"}", 0.0),
    ] {
        assert_eq!(scrape.value(sample), expected, "{sample}");
    }
}

/// Waits until a scrape has this line.
#[track_caller]
fn wait_for(metrics: &mut Client, line: &str) {
    wait::until(Duration::from_secs(60), line, || {
        metrics.get("/metrics").text().lines().any(|scraped| scraped == line)
    });
}

#[test]
fn new_and_damaged_generations_are_counted() {
    let site = Site::new();
    site.ingest(&site.write("list.csv", LIST), "2026-03-14T12:00:00Z");
    let (_server, mut metrics) = watched(&site, "");
    wait_for(&mut metrics, "dropdex_index_swaps_total 0");
    let more = site.write("more.csv", "domain,drop_date\nlunar.com,2026-03-15\n");
    site.ingest(&more, "2026-03-15T00:00:00Z");
    wait_for(&mut metrics, "dropdex_index_swaps_total 1");
    let scrape = Scrape::of(&site, &mut metrics);
    assert_eq!(scrape.value("dropdex_index_swaps_total"), 1.0);
    assert_eq!(scrape.value("dropdex_index_generation"), 2.0);
    assert_eq!(scrape.value("dropdex_index_names"), 3.0);
    assert_eq!(scrape.value("dropdex_index_fallback"), 0.0);
    // The third generation is damaged, so the second stays in use.
    let path = site.index().join("gen-00000000000000000003");
    std::fs::create_dir(&path).expect("a folder");
    std::fs::write(path.join("MANIFEST"), "damaged").expect("written");
    std::fs::write(site.index().join("CURRENT"), "gen-00000000000000000003\n").expect("written");
    wait_for(&mut metrics, "dropdex_index_fallback 1");
    assert_eq!(Scrape::of(&site, &mut metrics).value("dropdex_index_generation"), 2.0);
}

#[test]
fn a_suffix_with_enough_outcomes_has_an_order() {
    let site = Site::new();
    let (taken, free) = (|at: u32| format!("solar{at}.com"), |at: u32| format!("xq{at}zvk7.com"));
    let all = (0..320).flat_map(|at| [taken(at), free(at)]);
    let rows: String = all.map(|name| format!("{name},2026-01-01,2026-02-01\n")).collect();
    let mut lists =
        vec![("dropped.csv".to_owned(), format!("domain,drop_date,release_date\n{rows}"))];
    let registered: String = (0..320).map(|at| taken(at) + "\n").collect();
    for day in ["01", "04", "07", "10"] {
        let names = if day == "04" { registered.as_str() } else { "other.com\n" };
        lists.push((format!("registered-2026-02-{day}.txt"), names.to_owned()));
    }
    for (name, text) in lists {
        let list = site.write(&name, text);
        site.ok(&["ingest", list.to_str().expect("UTF-8")]);
    }
    let (_server, mut metrics) = watched(&site, "");
    wait::until(Duration::from_secs(60), "the counts of the day", || {
        metrics.get("/metrics").text().contains("dropdex_outcomes_auc_fallen{")
    });
    let scrape = Scrape::of(&site, &mut metrics);
    let labels = "{label=\"partial\",suffix=\"com\"}";
    assert_eq!(scrape.value(&format!("dropdex_outcomes_auc_fallen{labels}")), 0.0);
    assert!(scrape.value(&format!("dropdex_outcomes_auc{labels}")) > 0.9);
}

#[test]
fn the_metrics_listener_serves_only_metrics_and_only_if_configured() {
    let site = Site::with_names(["solar.com".to_owned()].into_iter(), "2026-03-10");
    let (server, mut metrics) = watched(&site, "");
    assert_eq!(metrics.get("/").status, 404);
    assert_eq!(metrics.get("/api/health").status, 404);
    let refused = metrics.request("POST", "/metrics", &[]);
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(server.client().get("/metrics").status, 404);
    drop(server);
    let server = site.serve(TODAY);
    assert!(!server.stdout().contains("metrics on"), "{}", server.stdout());
}
