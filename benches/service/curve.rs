//! Draws the cost of a query over the size of the corpus, both on logarithmic axes, as an SVG: a panel for each
//! kind of query.

use std::fmt::{self, Write};

use crate::report::{OURS, Point, Report, number, short};

const WIDTH: f64 = 1_020.0;
const HEIGHT: f64 = 400.0;
/// The edges of the plots.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 1_000.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 330.0;
/// Space between two panels.
const GAP: f64 = 24.0;
/// Kinds of queries, as [`Point::kind`] and as a title.
const PANELS: [(&str, &str); 3] =
    [("search", "prefix"), ("search without prefix", "text anywhere"), ("drops", "drops")];
/// A colour for each system in the order of appearance.
const COLOURS: [&str; 4] = ["#0b62a4", "#b8410f", "#3d7d2c", "#7a4d9e"];

/// Draws the curves of `reports` in the order of their sizes: p50 as a line, p99 of dropdex dashed.
///
/// # Errors
///
/// None, because writing to a `String` does not fail.
pub fn svg(reports: &[Report]) -> Result<String, fmt::Error> {
    let scale = Scale::of(reports);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\">µs a query, in process, \
         over names in the corpus</text>\n"
    );
    let mut systems: Vec<&str> = Vec::new();
    for point in drawn(reports) {
        if !systems.contains(&point.system.as_str()) {
            systems.push(&point.system);
        }
    }
    let width = (RIGHT - LEFT - GAP * (PANELS.len() - 1) as f64) / PANELS.len() as f64;
    for (at, (kind, title)) in PANELS.into_iter().enumerate() {
        let left = LEFT + (width + GAP) * at as f64;
        let panel = Panel { scale: &scale, left, right: left + width };
        panel.draw_axes(&mut out, reports, at == 0)?;
        writeln!(out, "<text x=\"{left}\" y=\"{}\">{title}</text>", TOP - 8.0)?;
        for (system, colour) in systems.iter().zip(COLOURS) {
            panel.line(
                &mut out,
                reports,
                (kind, system),
                |point| point.p50_us,
                (colour, "none"),
            )?;
            if *system == OURS {
                panel.line(
                    &mut out,
                    reports,
                    (kind, system),
                    |point| point.p99_us,
                    (colour, "6 4"),
                )?;
            }
        }
    }
    legend(&mut out, &systems)?;
    out.push_str("</svg>\n");
    Ok(out)
}

/// Returns the points of all panels.
fn drawn(reports: &[Report]) -> impl Iterator<Item = &Point> {
    let points = reports.iter().flat_map(|report| &report.points);
    points.filter(|point| PANELS.iter().any(|(kind, _)| point.kind == *kind))
}

fn legend(out: &mut String, systems: &[&str]) -> fmt::Result {
    let y = HEIGHT - 20.0;
    let ours = [(format!("{OURS}, p99"), COLOURS[0], "6 4")];
    let lines =
        systems.iter().zip(COLOURS).map(|(it, colour)| (format!("{it}, p50"), colour, "none"));
    for (at, (name, colour, dashes)) in ours.into_iter().chain(lines).enumerate() {
        let x = LEFT + 185.0 * at as f64;
        writeln!(
            out,
            "<path d=\"M{x} {y}h30\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <text x=\"{}\" y=\"{}\">{name}</text>",
            x + 37.0,
            y + 4.0
        )?;
    }
    Ok(())
}

/// Whole decades that cover all points.
struct Scale {
    x: [f64; 2],
    y: [f64; 2],
}

impl Scale {
    fn of(reports: &[Report]) -> Scale {
        let decades = |values: &mut dyn Iterator<Item = f64>| {
            let (least, most) = values
                .filter(|value| *value > 0.0)
                .fold((f64::INFINITY, 0.0), |(least, most), value| {
                    (value.min(least), value.max(most))
                });
            let low = least.log10().floor();
            [low, most.log10().ceil().max(low + 1.0)]
        };
        Scale {
            x: decades(&mut reports.iter().map(|report| report.count as f64)),
            y: decades(&mut drawn(reports).flat_map(|point| [point.p50_us, point.p99_us])),
        }
    }
}

/// The plot of one kind of query.
struct Panel<'a> {
    scale: &'a Scale,
    left: f64,
    right: f64,
}

impl Panel<'_> {
    fn x(&self, value: f64) -> f64 {
        let [low, high] = self.scale.x;
        self.left + (value.log10() - low) / (high - low) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        let [low, high] = self.scale.y;
        BOTTOM - (value.log10() - low) / (high - low) * (BOTTOM - TOP)
    }

    /// Draws one figure of one system at all sizes that have it.
    fn line(
        &self,
        out: &mut String,
        reports: &[Report],
        (kind, system): (&str, &str),
        pick: impl Fn(&Point) -> f64,
        (colour, dashes): (&str, &str),
    ) -> fmt::Result {
        let at_size = |report: &Report| {
            let mut points = report.points.iter();
            let point = points.find(|point| point.kind == kind && point.system == system)?;
            Some((self.x(report.count as f64), self.y(pick(point))))
        };
        let line: Vec<_> = reports.iter().filter_map(at_size).collect();
        let text: String = line.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
        writeln!(
            out,
            "<polyline points=\"{text}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>"
        )?;
        for (x, y) in &line {
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")?;
        }
        Ok(())
    }

    fn draw_axes(&self, out: &mut String, reports: &[Report], labelled: bool) -> fmt::Result {
        let (left, right) = (self.left, self.right);
        for decade in self.scale.y[0] as i32..=self.scale.y[1] as i32 {
            let value = 10_f64.powi(decade);
            let y = self.y(value);
            writeln!(out, "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>")?;
            if labelled {
                writeln!(
                    out,
                    "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    left - 8.0,
                    y + 4.0,
                    number(value)
                )?;
            }
        }
        for count in reports.iter().map(|report| report.count) {
            let x = self.x(count as f64);
            writeln!(
                out,
                "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                BOTTOM + 18.0,
                short(count)
            )?;
        }
        Ok(())
    }
}
