//! Formats a score as a table: the points of each part, the caps, and the scores of variants. Pure.
//!
//! Parts and caps are taken from the JSON of the API, whatever their names are, so that a scorer
//! with other parts requires no change here.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde_json::Value;

use super::Variant;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

/// The content of a table.
pub struct Score<'a> {
    pub name: &'a DomainName,
    pub dqs: Dqs,
    pub explanation: &'a str,
    /// The signals as in the API: `points` with a number for each part, and `caps`, each with
    /// `name` and `max`.
    pub signals: &'a Value,
    /// Empty without `--why-not`.
    pub why_not: &'a [Variant],
}

/// Points per block of a bar.
const POINTS_PER_BLOCK: u64 = 2;
/// Maximum blocks of a bar, so that lines fit in 80 columns. No part reaches it.
const BLOCKS_MAX: u64 = 40;

/// A line of the table: a part or cap, its points, and a bar or remark.
struct TableLine {
    what: String,
    points: String,
    remark: String,
}

/// Writes the table.
///
/// # Errors
/// An I/O error of `out`.
pub fn write(out: &mut impl Write, score: &Score<'_>) -> io::Result<()> {
    writeln!(out, "{:>3}  {}", score.dqs, display_name(score.name))?;
    writeln!(out, "     {}", score.explanation)?;
    write_aligned(out, &lines(score))?;
    write_why_not(out, score.why_not)
}

/// Returns the name, with its Unicode form if that differs.
fn display_name(name: &DomainName) -> String {
    match name.unicode() {
        unicode if unicode == name.as_str() => name.to_string(),
        unicode => format!("{name} ({unicode})"),
    }
}

fn lines(score: &Score<'_>) -> Vec<TableLine> {
    let parts = parts(score.signals);
    let sum: i64 = parts.iter().map(|(_, points)| points).sum();
    let dqs = i64::from(score.dqs.points());
    let mut lines: Vec<TableLine> =
        parts.iter().map(|(part, points)| part_line(part, *points)).collect();
    if sum != dqs {
        let points = format!("{sum:+}");
        lines.push(TableLine { what: "sum".into(), points, remark: format!("held to {dqs}") });
    }
    lines.extend(caps(score.signals).map(|(cap, max)| cap_line(cap, max, sum, dqs)));
    lines
}

/// Returns the parts with points, those with the most points first.
fn parts(signals: &Value) -> Vec<(&str, i64)> {
    let all = signals["points"].as_object().into_iter().flatten();
    let points = all.filter_map(|(part, points)| Some((part.as_str(), points.as_i64()?)));
    let mut parts: Vec<_> = points.filter(|(_, points)| *points != 0).collect();
    parts.sort_by_key(|(_, points)| Reverse(points.abs()));
    parts
}

fn caps(signals: &Value) -> impl Iterator<Item = (&str, i64)> {
    let all = signals["caps"].as_array().into_iter().flatten();
    all.filter_map(|cap| Some((cap["name"].as_str()?, cap["max"].as_i64()?)))
}

fn part_line(part: &str, points: i64) -> TableLine {
    TableLine { what: part.to_owned(), points: format!("{points:+}"), remark: bar(points) }
}

/// Draws a bar, dark for added points and light for subtracted ones.
fn bar(points: i64) -> String {
    let size = points.unsigned_abs();
    let blocks = |count: u64, block: &str| block.repeat(count.min(BLOCKS_MAX) as usize);
    if points < 0 {
        return blocks(size.div_ceil(POINTS_PER_BLOCK), "░");
    }
    let half = if size.is_multiple_of(POINTS_PER_BLOCK) { "" } else { "▌" };
    blocks(size / POINTS_PER_BLOCK, "█") + half
}

fn cap_line(cap: &str, max: i64, sum: i64, dqs: i64) -> TableLine {
    // Only the strictest cap limits a score. Other caps, and caps above the sum, have no effect.
    let remark = match sum > max && dqs == max {
        true => format!("cap: held the score to {max}"),
        false => "cap: changes nothing here".to_owned(),
    };
    TableLine { what: cap.to_owned(), points: max.to_string(), remark }
}

fn write_aligned(out: &mut impl Write, lines: &[TableLine]) -> io::Result<()> {
    let what = lines.iter().map(|line| line.what.chars().count()).max().unwrap_or_default();
    let wide = lines.iter().map(|line| line.points.len()).max().unwrap_or_default();
    for line in lines {
        writeln!(out, "     {:<what$}  {:>wide$}  {}", line.what, line.points, line.remark)?;
    }
    Ok(())
}

fn write_why_not(out: &mut impl Write, why_not: &[Variant]) -> io::Result<()> {
    if why_not.is_empty() {
        return Ok(());
    }
    writeln!(out, "     otherwise:")?;
    let wide = why_not.iter().map(|other| other.domain.as_str().len()).max().unwrap_or_default();
    for Variant { domain, change, dqs, difference } in why_not {
        let difference = match difference {
            0 => "=".to_owned(),
            difference => format!("{difference:+}"),
        };
        writeln!(out, "     {dqs:>3}  {difference:>4}  {:<wide$}  {change}", domain.as_str())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::score::variants::Change;

    fn table(name: &str, dqs: u8, signals: &Value, why_not: &[Variant]) -> String {
        let name = DomainName::parse(name).expect("a name");
        let dqs = Dqs::new(dqs).expect("a score");
        let score = Score {
            name: &name,
            dqs,
            explanation: "A sentence on what moved it.",
            signals,
            why_not,
        };
        let mut out = Vec::new();
        write(&mut out, &score).expect("writes to memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn parts_are_sorted_by_size_without_zeros() {
        let points = json!({"start": 33, "digits": 0, "length": 4, "hyphens": -12, "odd": -1});
        let expected = [
            " 24  solar-panel.com",
            "     A sentence on what moved it.",
            "     start    +33  ████████████████▌",
            "     hyphens  -12  ░░░░░░",
            "     length    +4  ██",
            "     odd       -1  ░",
        ];
        let table = table("solar-panel.com", 24, &json!({"points": points}), &[]);
        assert_eq!(table.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn limits_of_the_sum_are_shown() {
        let clamped = |sum: i64| json!({"points": {"all": sum}, "caps": []});
        let last = |dqs, signals: Value| {
            let table = table("solar.com", dqs, &signals, &[]);
            table.lines().skip(3).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(last(100, clamped(104)), ["     sum  +104  held to 100"]);
        assert_eq!(last(0, clamped(-9)), ["     sum  -9  held to 0"]);
        assert_eq!(last(100, clamped(100)), [""; 0]);
        let caps = json!([{"name": "manyHyphens", "max": 15}, {"name": "offensive", "max": 25}]);
        let expected = [
            "     sum          +30  held to 15",
            "     manyHyphens   15  cap: held the score to 15",
            "     offensive     25  cap: changes nothing here",
        ];
        assert_eq!(last(15, json!({"points": {"all": 30}, "caps": caps})), expected);
        let expected = [
            "     manyHyphens  15  cap: changes nothing here",
            "     offensive    25  cap: changes nothing here",
        ];
        assert_eq!(last(9, json!({"points": {"all": 9}, "caps": caps})), expected);
    }

    #[test]
    fn unicode_names_are_shown() {
        let table = table("münchen.de", 0, &json!({"points": {}, "caps": []}), &[]);
        assert_eq!(table.lines().next(), Some("  0  xn--mnchen-3ya.de (münchen.de)"));
    }

    #[test]
    fn bars_have_a_maximum_length() {
        assert_eq!(bar(i64::MAX).chars().count(), 41);
        assert_eq!(bar(i64::MIN).chars().count(), 40);
    }

    #[test]
    fn variants_are_shown_with_their_difference() {
        let other = |domain, change, dqs, difference| Variant {
            domain: DomainName::parse(domain).expect("a name"),
            change,
            dqs: Dqs::new(dqs).expect("a score"),
            difference,
        };
        let why_not = [
            other("solarpanel.io", Change::NoHyphens, 60, 12),
            other("solar-panel.com", Change::Suffix("com"), 48, 0),
            other("solar-panel.de", Change::Suffix("de"), 9, -39),
        ];
        let table = table("solar-panel.io", 48, &json!({"points": {"all": 48}}), &why_not);
        let expected = [
            "     otherwise:",
            "      60   +12  solarpanel.io    without its hyphens",
            "      48     =  solar-panel.com  in .com",
            "       9   -39  solar-panel.de   in .de",
        ];
        assert_eq!(table.lines().skip(3).collect::<Vec<_>>(), expected);
    }
}
