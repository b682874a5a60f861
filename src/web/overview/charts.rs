//! SVG bar charts. Colours are placeholders (`[fill="#100000"]`) that the style sheet replaces with the
//! tokens of the light or dark scheme.

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::coord::ranged1d::SegmentValue;
use plotters::prelude::{
    ChartBuilder, Color, DrawingArea, IntoDrawingArea, IntoFont, IntoSegmentedCoord, RGBColor,
    Rectangle, SVGBackend, TextStyle,
};

use crate::components::grouped;

/// Placeholder colours of the text, the lines and the first series.
const INK: RGBColor = RGBColor(1, 0, 0);
const LINE: RGBColor = RGBColor(2, 0, 0);
const SERIES: u8 = 16;

/// Size in pixels of a full-width chart, a half-width chart, and a chart on a phone.
const BROAD: (u32, u32) = (1160, 290);
const WIDE: (u32, u32) = (560, 290);
const SLIM: (u32, u32) = (340, 260);
const TEXT_PX: f64 = 15.0;

/// One bar of a chart.
pub struct Bar {
    /// Axis label.
    pub label: String,
    /// Stacked parts from the axis outwards: series and size.
    pub parts: Vec<(u8, u32)>,
}

impl Bar {
    fn size(&self) -> u32 {
        self.parts.iter().map(|&(_, size)| size).sum()
    }
}

/// Direction of the bars.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Vertical bars, from left to right.
    Up,
    /// Horizontal bars, from top to bottom.
    Right,
}

/// Width of a chart on the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Breadth {
    Whole,
    Half,
}

/// Placeholder colour of a series.
fn series(number: u8) -> RGBColor {
    RGBColor(SERIES + number, 0, 0)
}

/// Renders a bar chart with a text alternative.
pub fn bars(bars: &[Bar], direction: Direction, breadth: Breadth, alt: &str) -> Markup {
    let wide = if breadth == Breadth::Whole { BROAD } else { WIDE };
    html! {
        div.chart role="img" aria-label=(alt) {
            div.wide { (PreEscaped(drawn(bars, direction, wide))) }
            div.slim { (PreEscaped(drawn(bars, direction, SLIM))) }
        }
    }
}

/// Draws the SVG. Drawing into memory cannot fail; an error would result in an empty string.
fn drawn(bars: &[Bar], direction: Direction, size: (u32, u32)) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let done = match direction {
        Direction::Up => draw_up(&area, bars),
        Direction::Right => draw_right(&area, bars),
    };
    let presented = area.present();
    drop(area);
    if done.is_err() || presented.is_err() { String::new() } else { svg }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawing = Result<(), Box<dyn std::error::Error>>;

fn text() -> TextStyle<'static> {
    ("sans-serif", TEXT_PX).into_font().color(&INK)
}

/// Returns the upper end of the axis: slightly above the largest bar, at least 1.
fn ceiling(bars: &[Bar]) -> u32 {
    let largest = bars.iter().map(Bar::size).max().unwrap_or(0).max(1);
    largest + largest / 20 + 1
}

/// Returns the width in pixels of the numbers on a vertical axis up to `most`, counting nine pixels
/// for each digit or comma.
fn axis_width(most: u32) -> u32 {
    16 + 9 * grouped(most.into()).len() as u32
}

fn draw_up(area: &Area<'_>, bars: &[Bar]) -> Drawing {
    let count = bars.len() as i32;
    let mut chart = ChartBuilder::on(area)
        .margin_top(8)
        .margin_right(6)
        .x_label_area_size(26)
        .y_label_area_size(axis_width(ceiling(bars)))
        .build_cartesian_2d((0..count).into_segmented(), 0..ceiling(bars))?;
    let label = |at: &SegmentValue<i32>| match at {
        SegmentValue::CenterOf(at) => {
            bars.get(*at as usize).map_or("", |bar| &bar.label).to_owned()
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(LINE.mix(0.0))
        .bold_line_style(LINE)
        .axis_style(LINE)
        .x_labels(if area.dim_in_pixel().0 > 900 { 16 } else { 6 })
        .y_labels(10)
        .x_label_formatter(&label)
        .y_label_formatter(&|size| grouped((*size).into()))
        .label_style(text())
        .draw()?;
    for (at, bar) in (0..count).zip(bars) {
        let mut base = 0;
        for &(number, size) in bar.parts.iter().filter(|(_, size)| *size > 0) {
            let corners =
                [(SegmentValue::Exact(at), base), (SegmentValue::Exact(at + 1), base + size)];
            let mut part = Rectangle::new(corners, series(number).filled());
            part.set_margin(0, 0, 1, 1);
            chart.draw_series([part])?;
            base += size;
        }
    }
    Ok(())
}

fn draw_right(area: &Area<'_>, bars: &[Bar]) -> Drawing {
    let count = bars.len() as i32;
    let mut chart = ChartBuilder::on(area)
        .margin_top(4)
        .margin_right(26)
        .x_label_area_size(26)
        .y_label_area_size(72)
        .build_cartesian_2d(0..ceiling(bars), (0..count).into_segmented())?;
    // The axis runs upwards, but the list runs downwards.
    let place = |at: i32| count - 1 - at;
    let label = |at: &SegmentValue<i32>| match at {
        SegmentValue::CenterOf(at) => {
            bars.get(place(*at) as usize).map_or("", |bar| &bar.label).to_owned()
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(LINE.mix(0.0))
        .bold_line_style(LINE)
        .axis_style(LINE)
        .x_labels(4)
        .y_labels(bars.len() + 1)
        .x_label_formatter(&|size| grouped((*size).into()))
        .y_label_formatter(&label)
        .label_style(text())
        .draw()?;
    for (at, bar) in (0..count).zip(bars) {
        let mut base = 0;
        for &(number, size) in bar.parts.iter().filter(|(_, size)| *size > 0) {
            let row = place(at);
            let corners =
                [(base, SegmentValue::Exact(row)), (base + size, SegmentValue::Exact(row + 1))];
            let mut part = Rectangle::new(corners, series(number).filled());
            part.set_margin(2, 2, 0, 0);
            chart.draw_series([part])?;
            base += size;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, parts: &[(u8, u32)]) -> Bar {
        Bar { label: label.to_owned(), parts: parts.to_vec() }
    }

    #[test]
    fn bars_have_series_and_labels() {
        let all = [bar("11-21", &[(0, 5), (6, 0)]), bar("11-22", &[(0, 1), (1, 2_000)])];
        for direction in [Direction::Up, Direction::Right] {
            let html = bars(&all, direction, Breadth::Half, "2,006 names").into_string();
            assert!(
                html.starts_with("<div class=\"chart\" role=\"img\" aria-label=\"2,006 names\">")
            );
            assert_eq!(html.matches("<svg").count(), 2, "{html}");
            assert_eq!(html.matches("fill=\"#100000\"").count(), 4, "{html}");
            assert_eq!(html.matches("fill=\"#110000\"").count(), 2, "{html}");
            assert!(html.contains("11-22") && html.contains("2,000"), "{html}");
        }
    }

    #[test]
    fn the_axis_has_room_for_its_largest_number() {
        for (most, label) in [(900, "900"), (99_999, "100,000"), (12_345_678, "12,000,000")] {
            let svg =
                bars(&[bar("x", &[(0, most)])], Direction::Up, Breadth::Half, "").into_string();
            let before = &svg[..svg.find(label).unwrap_or_else(|| panic!("{label}: {svg}"))];
            let tag = &before[before.rfind("<text").expect("a text")..];
            assert!(tag.contains("text-anchor=\"end\""), "{tag}");
            let x = tag.split("x=\"").nth(1).and_then(|rest| rest.split('"').next());
            let x: usize = x.and_then(|x| x.parse().ok()).expect("a place");
            assert!(x >= 9 * label.len(), "{tag}");
        }
    }

    #[test]
    fn empty_charts_are_drawn() {
        for all in [vec![], vec![bar("x", &[(0, 0)])]] {
            let html = bars(&all, Direction::Up, Breadth::Whole, "none").into_string();
            assert!(!html.contains("#100000"), "{html}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        let html = bars(&[bar("<b>", &[(0, 1)])], Direction::Right, Breadth::Half, "\"<i>\"")
            .into_string();
        assert!(!html.contains("<b>") && !html.contains("<i>"), "{html}");
    }
}
