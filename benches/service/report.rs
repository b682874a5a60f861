//! One Markdown table and the machine it was measured on, ready to be pasted.

use std::fmt;
use std::fs;

use dropdex::vocab::day::Day;

use crate::timing::Timing;

/// One line of the table.
#[derive(Debug, Default)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    /// Of single queries, where they were timed.
    pub timing: Option<Timing>,
    /// What the project wants the value to be.
    pub goal: Option<String>,
    /// The peer's figure from the same run.
    pub peer: Option<String>,
    /// As `name` or a note says.
    pub ratio: Option<String>,
}

impl Figure {
    /// A single number.
    pub fn number(name: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure { name: name.into(), value, unit, ..Figure::default() }
    }

    /// Queries a second, and the latencies of single ones.
    pub fn queries(name: impl Into<String>, per_second: f64, timing: Timing) -> Figure {
        Figure { timing: Some(timing), ..Figure::number(name, per_second, "queries/s") }
    }

    /// With what the project wants it to be.
    pub fn goal(self, goal: impl Into<String>) -> Figure {
        Figure { goal: Some(goal.into()), ..self }
    }

    /// With a ratio.
    pub fn ratio(self, ratio: impl Into<String>) -> Figure {
        Figure { ratio: Some(ratio.into()), ..self }
    }

    /// With the peer's latencies for the same queries, and by how much they are longer.
    pub fn beside(self, peer: &Timing) -> Figure {
        let ratio = self.timing.map(|ours| {
            let ratios = [
                peer.p50_us / ours.p50_us,
                peer.p99_us / ours.p99_us,
                peer.worst_us / ours.worst_us,
            ];
            ratios.map(number).join(" / ")
        });
        Figure { peer: Some(triple(peer)), ratio, ..self }
    }
}

/// All that a run found.
#[derive(Debug)]
pub struct Report {
    /// What was measured: the corpus.
    pub subject: String,
    /// The wall clock's day.
    pub measured_on: Day,
    pub figures: Vec<Figure>,
    /// What one must know to read the table.
    pub notes: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.subject)?;
        writeln!(f, "Machine: {}; {}.\n", machine(), self.measured_on)?;
        writeln!(f, "| What | Figure | Unit | µs p50 / p99 / worst | Goal | SQLite | Ratio |")?;
        writeln!(f, "| --- | ---: | --- | ---: | --- | ---: | ---: |")?;
        for Figure { name, value, unit, timing, goal, peer, ratio } in &self.figures {
            let value = number(*value);
            let timing = timing.as_ref().map(triple);
            let [timing, goal, peer, ratio] =
                [timing.as_ref(), goal.as_ref(), peer.as_ref(), ratio.as_ref()]
                    .map(|cell| cell.map(String::as_str).unwrap_or_default());
            writeln!(f, "| {name} | {value} | {unit} | {timing} | {goal} | {peer} | {ratio} |")?;
        }
        writeln!(f)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "- {note}"))
    }
}

fn triple(timing: &Timing) -> String {
    [timing.p50_us, timing.p99_us, timing.worst_us].map(number).join(" / ")
}

/// Three digits that say something: `0.53`, `7.21`, `48.3`, `1,234,567`.
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

/// Cores, processor and memory; what the system does not tell is left out.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| kibibytes(&text));
    let memory = memory.map(|bytes| format!(", {:.0} GiB of memory", bytes as f64 / GIB));
    format!("{cores} cores of {cpu}{}", memory.unwrap_or_default())
}

const GIB: f64 = (1_u64 << 30) as f64;

/// The value of the first line `name: value` of a file under `/proc`.
pub fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The bytes of `1234 kB`.
pub fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
