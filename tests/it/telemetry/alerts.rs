//! Alerts and the dashboard, checked by `promtool`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::catalogue::{here, read};
use crate::common::tools;

/// Runs `promtool`, which must find no error in the file.
fn promtool(words: [&str; 2], file: &Path) {
    let output = Command::new(tools::promtool()).args(words).arg(file).output().expect("it runs");
    let told = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&told));
}

/// Returns the alert names after each `key`.
fn names(text: &str, key: &str) -> BTreeSet<String> {
    let behind = text.split(key).skip(1);
    behind.map(|text| text.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
}

#[test]
fn every_alert_fires_exactly_when_it_should() {
    let tests = here("tests/it/telemetry/alerts.yml");
    promtool(["test", "rules"], &tests);
    let alerts = names(&read(&here("data/prometheus-alerts.yml")), "- alert: ");
    assert!(alerts.len() >= 10, "{alerts:?}");
    assert_eq!(names(&read(&tests), "alertname: "), alerts, "each has its test");
}

#[test]
fn the_dashboards_queries_are_valid_promql() {
    let dashboard: Value =
        serde_json::from_str(&read(&here("data/grafana-dashboard.json"))).expect("JSON");
    let mut asked = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            asked.push(target["expr"].as_str().expect("a question").to_owned());
        }
    }
    assert!(asked.len() > 40, "{asked:?}");
    // Replaces the variables of Grafana by values.
    let rules: Vec<Value> = asked
        .iter()
        .map(|expr| expr.replace("$__rate_interval", "1m").replace('$', ""))
        .enumerate()
        .map(|(number, expr)| serde_json::json!({ "record": format!("asked:{number}"), "expr": expr }))
        .collect();
    let rules = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("rules.yml");
    // JSON is YAML.
    fs::write(&file, rules.to_string()).expect("written");
    promtool(["check", "rules"], &file);
}
