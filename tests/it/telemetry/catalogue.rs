//! Every metric whose name occurs in the source is documented, and vice versa.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dropdex::telemetry::catalogue::METRICS;
use serde_json::Value;

pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns every word in `text` with the prefix of our metrics.
fn words(text: &str) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let found = text.match_indices("dropdex_").filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let word = text[at..].split(ends).next().unwrap_or_default();
        before.is_none_or(ends).then(|| word.to_owned())
    });
    found.collect()
}

fn source(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            source(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("telemetry/catalogue.rs")
        {
            text.push_str(&read(&path));
        }
    }
}

fn told() -> BTreeSet<String> {
    METRICS.iter().map(|metric| metric.name.to_owned()).collect()
}

#[test]
fn every_recorded_metric_is_described_and_vice_versa() {
    let mut text = String::new();
    source(&here("src"), &mut text);
    let counted: BTreeSet<String> =
        words(&text).into_iter().filter(|word| text.contains(&format!("\"{word}\""))).collect();
    assert!(counted.len() > 40, "{counted:?}");
    let (told, empty) = (told(), Vec::<&String>::new());
    assert_eq!(counted.difference(&told).collect::<Vec<_>>(), empty, "not in the catalogue");
    assert_eq!(told.difference(&counted).collect::<Vec<_>>(), empty, "never counted");
}

/// Returns the name of a metric in a query: for a histogram, without the suffixes that a scrape adds.
fn base<'a>(word: &'a str, told: &BTreeSet<String>) -> &'a str {
    let parts = ["_bucket", "_sum", "_count"];
    let cut =
        parts.iter().find_map(|part| word.strip_suffix(part).filter(|cut| told.contains(*cut)));
    cut.unwrap_or(word)
}

#[test]
fn dashboard_alerts_and_documentation_name_existing_metrics() {
    let told = told();
    let dashboard = read(&here("data/grafana-dashboard.json"));
    let parsed: Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(parsed["panels"].as_array().is_some_and(|panels| panels.len() > 10));
    for file in
        ["data/grafana-dashboard.json", "data/prometheus-alerts.yml", "data/docs/metrics.md"]
    {
        let unknown: Vec<String> = words(&read(&here(file)))
            .into_iter()
            // The prefix without a name stands for all metrics.
            .filter(|word| word != "dropdex_" && !told.contains(base(word, &told)))
            .collect();
        assert!(unknown.is_empty(), "{file} names metrics that do not exist: {unknown:?}");
    }
    let documented = words(&read(&here("data/docs/metrics.md")));
    let missing: Vec<_> = told.difference(&documented).collect();
    assert!(missing.is_empty(), "data/docs/metrics.md does not document {missing:?}");
}
