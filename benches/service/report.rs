//! The figures of a run as JSON, and the figures of several runs as one Markdown table with a column
//! for each size.

use std::fmt::{self, Write};
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::timing::Timing;

/// The sizes between which the growth of the worst searches has a goal.
const GROWTH: [u64; 2] = [10_000_000, 100_000_000];

/// One line of the table, for one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub name: String,
    pub unit: String,
    /// The value as displayed.
    pub value: String,
    /// The project's goal for the value.
    pub goal: String,
}

impl Figure {
    /// A single number.
    pub fn number(name: impl Into<String>, value: f64, unit: &str) -> Figure {
        Figure::text(name, number(value), unit)
    }

    /// Latencies of single queries.
    pub fn queries(name: impl Into<String>, timing: &Timing) -> Figure {
        Figure::text(name, triple(timing), "µs p50 / p99 / worst")
    }

    /// Adds the project's goal for the value.
    pub fn goal(self, goal: impl Into<String>) -> Figure {
        Figure { goal: goal.into(), ..self }
    }

    fn text(name: impl Into<String>, value: String, unit: &str) -> Figure {
        Figure { name: name.into(), unit: unit.to_owned(), value, goal: String::new() }
    }
}

/// [`Point::system`] of this program.
pub const OURS: &str = "dropdex";

/// Cost of queries of one kind, for the curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    pub kind: String,
    /// This program, or a database with its version.
    pub system: String,
    pub p50_us: f64,
    pub p99_us: f64,
}

/// All results of a run on one size.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// Number of names.
    pub count: u64,
    /// The measured corpus.
    pub subject: String,
    /// The machine and the date.
    pub machine: String,
    pub figures: Vec<Figure>,
    pub points: Vec<Point>,
    /// Notes on the figures, for all sizes or for one.
    pub notes: Vec<String>,
}

impl Report {
    /// Writes the results as JSON to `path`, and replaces earlier ones.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        fs::write(path, serde_json::to_vec(self)?).with_context(|| path.display().to_string())
    }
}

/// Renders the Markdown of some runs, the smallest first.
///
/// # Errors
///
/// None: writing to a `String` does not fail.
pub fn table(reports: &[Report]) -> Result<String, fmt::Error> {
    let mut out = String::new();
    for report in reports {
        writeln!(out, "- {}", report.subject)?;
    }
    let machine = reports.first().map(|report| report.machine.as_str()).unwrap_or_default();
    writeln!(out, "\nMachine: {machine}.\n")?;
    let sizes: Vec<String> = reports.iter().map(|report| short(report.count)).collect();
    writeln!(out, "| What | Unit | {} | Goal |", sizes.join(" | "))?;
    writeln!(out, "| --- | --- |{} --- |", " ---: |".repeat(sizes.len()))?;
    for Figure { name, unit, goal, .. } in lines(reports) {
        let value = |report: &Report| {
            let same = |figure: &&Figure| figure.name == name && figure.unit == unit;
            report.figures.iter().find(same).map(|figure| figure.value.clone()).unwrap_or_default()
        };
        let values: Vec<String> = reports.iter().map(value).collect();
        writeln!(out, "| {name} | {unit} | {} | {goal} |", values.join(" | "))?;
    }
    if let Some(times) = growth(reports) {
        let values: Vec<String> = reports
            .iter()
            .map(|report| if report.count == GROWTH[1] { number(times) } else { String::new() })
            .collect();
        let values = values.join(" | ");
        writeln!(out, "| search p99, by that at 10 M | times | {values} | at most 3 |")?;
    }
    writeln!(out)?;
    let mut notes: Vec<&str> = Vec::new();
    for note in reports.iter().flat_map(|report| &report.notes) {
        if !notes.contains(&note.as_str()) {
            notes.push(note);
        }
    }
    notes.iter().try_for_each(|note| writeln!(out, "- {note}"))?;
    Ok(out)
}

/// Returns the lines of all runs, each once. A line missing from the first run is inserted after
/// its predecessor in the run that has it.
fn lines(reports: &[Report]) -> Vec<Figure> {
    let mut lines: Vec<Figure> = Vec::new();
    for report in reports {
        let mut after = 0;
        for figure in &report.figures {
            let same = |line: &Figure| line.name == figure.name && line.unit == figure.unit;
            match lines.iter().position(same) {
                Some(at) => after = at + 1,
                None => {
                    lines.insert(after, figure.clone());
                    after += 1;
                }
            }
        }
    }
    lines
}

/// Returns the factor by which the 99th percentile of searches takes longer at the larger size.
fn growth(reports: &[Report]) -> Option<f64> {
    let [small, large] = GROWTH.map(|count| {
        let report = reports.iter().find(|report| report.count == count)?;
        let mut points = report.points.iter();
        points
            .find(|point| point.kind == "search" && point.system == OURS)
            .map(|point| point.p99_us)
    });
    Some(large? / small?)
}

fn triple(timing: &Timing) -> String {
    [timing.p50_us, timing.p99_us, timing.worst_us].map(number).join(" / ")
}

/// Formats a corpus size: `1 M`, `250,000`.
pub fn short(count: u64) -> String {
    match count {
        count if count >= 1_000_000 && count % 1_000_000 == 0 => format!("{} M", count / 1_000_000),
        count => number(count as f64),
    }
}

/// Rounds to three significant digits: `0.53`, `7.21`, `48.3`, `1,234,567`.
pub fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Describes cores, processor and memory, as far as the system reports them.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| kibibytes(&text));
    let memory = memory.map(|bytes| format!(", {:.0} GiB of memory", bytes as f64 / GIB));
    format!("{cores} cores of {cpu}{}", memory.unwrap_or_default())
}

const GIB: f64 = (1_u64 << 30) as f64;

/// Returns the value of the first line `name: value` of a file under `/proc`.
pub fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Parses the bytes of `1234 kB`.
pub fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
