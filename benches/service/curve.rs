//! Draws the cost of a query over the size of the corpus, both on logarithmic axes, as an SVG.

use std::fmt::{self, Write};

use crate::report::{Point, Report, number, short};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// The edges of the plot.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 600.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 370.0;
const COLOURS: [&str; 3] = ["#0b62a4", "#b8410f", "#3d7d2c"];

/// Draws the curves of `reports` in the order of their sizes: p50 as a line, p99 dashed.
///
/// # Errors
///
/// None, because writing to a `String` does not fail.
pub fn svg(reports: &[Report]) -> Result<String, fmt::Error> {
    let axes = Axes::of(reports);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\">µs a query, in process, \
         over names in the corpus</text>\n"
    );
    axes.draw(&mut out, reports)?;
    let kinds = reports.first().map(|report| report.points.as_slice()).unwrap_or_default();
    for (at, (Point { kind, .. }, colour)) in kinds.iter().zip(COLOURS).enumerate() {
        for (part, dashes, pick) in [
            ("p50", "none", (|point| point.p50_us) as fn(&Point) -> f64),
            ("p99", "6 4", |point| point.p99_us),
        ] {
            let of_kind = |report: &Report| {
                let point = report.points.iter().find(|point| point.kind == *kind)?;
                Some((axes.x(report.count as f64), axes.y(pick(point))))
            };
            let line: Vec<_> = reports.iter().filter_map(of_kind).collect();
            let text: String = line.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
            writeln!(
                out,
                "<polyline points=\"{text}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>"
            )?;
            for (x, y) in &line {
                writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")?;
            }
            let y = TOP + 20.0 + 44.0 * at as f64 + if part == "p99" { 18.0 } else { 0.0 };
            let (from, to, words) = (RIGHT + 15.0, RIGHT + 45.0, RIGHT + 52.0);
            writeln!(
                out,
                "<path d=\"M{from} {y}H{to}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/><text x=\"{words}\" y=\"{}\">{kind} {part}</text>",
                y + 4.0
            )?;
        }
    }
    out.push_str("</svg>\n");
    Ok(out)
}

/// Axes of whole decades that cover all points.
struct Axes {
    x: [f64; 2],
    y: [f64; 2],
}

impl Axes {
    fn of(reports: &[Report]) -> Axes {
        let points = || reports.iter().flat_map(|report| &report.points);
        let decades = |values: &mut dyn Iterator<Item = f64>| {
            let (least, most) = values
                .filter(|value| *value > 0.0)
                .fold((f64::INFINITY, 0.0), |(least, most), value| {
                    (value.min(least), value.max(most))
                });
            let low = least.log10().floor();
            [low, most.log10().ceil().max(low + 1.0)]
        };
        Axes {
            x: decades(&mut reports.iter().map(|report| report.count as f64)),
            y: decades(&mut points().flat_map(|point| [point.p50_us, point.p99_us])),
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (value.log10() - self.x[0]) / (self.x[1] - self.x[0]) * (RIGHT - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (value.log10() - self.y[0]) / (self.y[1] - self.y[0]) * (BOTTOM - TOP)
    }

    fn draw(&self, out: &mut String, reports: &[Report]) -> fmt::Result {
        for decade in self.y[0] as i32..=self.y[1] as i32 {
            let value = 10_f64.powi(decade);
            let y = self.y(value);
            writeln!(
                out,
                "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                if value < 1_000.0 { value.to_string() } else { number(value) }
            )?;
        }
        for report in reports {
            let x = self.x(report.count as f64);
            writeln!(
                out,
                "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                BOTTOM + 20.0,
                short(report.count)
            )?;
        }
        Ok(())
    }
}
