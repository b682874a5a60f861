//! Checks for problems that no page may have.

use std::path::Path;

use serde_json::{Value, json};

use super::driver::{Browser, Look};
use crate::common::runs::full;
use crate::common::tools;

/// Maximum bytes over the wire for a first page with its assets.
const FIRST_LOAD_MAX: u64 = 60_000;

/// Maximum movement of parts, as Chromium's layout-shift score. Such a movement is too small to be
/// visible; 0.1 counts as good.
const MOVED_MAX: f64 = 0.001;

/// Runs axe-core, either with every rule (WCAG 2.2 AA and best practices), or with those that depend on
/// colours and widths.
const RUN_AXE: &str = "
    const options = {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}};
    if (!arguments[0]) options.runOnly = {type: 'rule', values: ['color-contrast', 'target-size', 'link-in-text-block', 'scrollable-region-focusable']};
    // Long tables consist of a dozen kinds of rows, so checking the remaining rows takes seconds and
    // finds nothing new.
    document.querySelectorAll('tbody > tr:nth-child(n + 13), article ~ article ~ article').forEach((it) => it.remove());
    return axe.run(document, options).then((found) => found.violations.map((it) =>
        it.id + ': ' + it.help + '\\n' + it.nodes.map((node) =>
            '    ' + node.html.slice(0, 300) + '\\n      ' +
            node.failureSummary.split('\\n').slice(1).join(';')).join('\\n')));
";

/// Measures the bytes of the page, and how far its parts moved while it loaded.
const MEASURE: &str = "
    return new Promise((done) => {
        let moved = 0;
        const movers = new Set();
        new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) {
                if (entry.hadRecentInput) continue;
                moved += entry.value;
                for (const {node} of entry.sources) movers.add((node?.outerHTML ?? 'gone').slice(0, 200));
            }
        }).observe({type: 'layout-shift', buffered: true});
        const loads = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
        const octets = loads.reduce((sum, load) => sum + load.transferSize, 0);
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        requestAnimationFrame(() => requestAnimationFrame(() => done({moved, movers: [...movers], octets, wide})));
    });
";

impl Browser {
    /// Opens a page in several looks and returns its problems. Two of the looks cover each width
    /// and each colour scheme once; for these, all rules are applied. In full runs, the rules about
    /// appearance are applied to the other two looks, and a picture of each is kept
    /// (`target/screenshots/<name>-1280-dark.png`).
    pub fn problems_everywhere(&self, name: &str, path: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let others: &[Look] = if full() { &Look::OTHERS } else { &[] };
        for &look in Look::OPPOSITE.iter().chain(others) {
            self.look(look);
            self.open(path);
            if full() {
                self.keep_picture(&format!("{name}-{}", look.word()));
            }
            let found = self.problems(path, Look::OPPOSITE.contains(&look));
            problems.extend(found.into_iter().map(|it| format!("{path} {}: {it}", look.word())));
        }
        self.look(Look::DESKTOP);
        problems
    }

    /// Writes a picture of the current page into `target/screenshots`.
    pub fn keep_picture(&self, name: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let file = folder.join(format!("{name}.png"));
        std::fs::write(file, self.picture()).expect("a picture can be written");
    }

    /// Returns problems of the open page. Applies every rule or, without `every`, the rules about
    /// appearance.
    fn problems(&self, path: &str, every: bool) -> Vec<String> {
        let mut problems = Vec::new();
        let measured = self.script(MEASURE, &[]);
        let number = |name: &str| measured[name].as_f64().unwrap_or(f64::NAN);
        if number("wide") > 0.0 {
            problems.push(format!("it scrolls sideways by {} px", measured["wide"]));
        }
        if number("octets") > FIRST_LOAD_MAX as f64 {
            problems.push(format!("{} bytes were loaded", measured["octets"]));
        }
        if number("moved") > MOVED_MAX {
            // On a busy machine, a browser may show the head of a table before its rows have arrived.
            // Only problems that recur belong to the page.
            let again = || {
                self.open(path);
                self.script(MEASURE, &[])
            };
            let moved = |measured: &Value| measured["moved"].as_f64().unwrap_or(f64::INFINITY);
            let all: Vec<Value> = (0..4).map(|_| again()).collect();
            if all.iter().all(|measured| moved(measured) > MOVED_MAX) {
                let each = all.iter().map(|it| format!("{}, {}", it["moved"], it["movers"]));
                let each: Vec<String> = each.collect();
                problems.push(format!("its parts moved while it was loaded: {}", each.join("; ")));
            }
        }
        problems.extend(self.complaints());
        problems.extend(self.violations(every));
        problems
    }

    /// Returns errors in the console: failed scripts, and resources that the page's policy blocks. An
    /// error status of the page itself does not count.
    fn complaints(&self) -> Vec<String> {
        let severe = self.console().into_iter().filter(|entry| entry["level"] == "SEVERE");
        severe
            .filter(|entry| entry["source"] != "network")
            .map(|entry| format!("console: {}", entry["message"]))
            .collect()
    }

    /// Returns violations found by axe-core.
    fn violations(&self, every: bool) -> Vec<String> {
        // On phones, a bar covers the foot of the screen; at the end of a page there is nothing below it.
        self.script("scrollTo(0, document.documentElement.scrollHeight)", &[]);
        self.script(&format!("{}\n;window.axe = axe;", tools::axe()), &[]);
        let found = self.script(RUN_AXE, &[json!(every)]);
        let found: Vec<Value> = found.as_array().cloned().unwrap_or_default();
        found.iter().map(|it| format!("axe: {}", it.as_str().unwrap_or_default())).collect()
    }
}
