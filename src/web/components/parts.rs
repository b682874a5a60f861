//! The parts of a score as signed bars.

use maud::{Markup, html};

use crate::scorer::{Cap, Points};

/// Points at either end of the scale of bars. Larger values are clipped.
const BAR_POINTS: i32 = 50;

/// A part of a score, with its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRow {
    pub word: &'static str,
    /// Explanation of the part.
    pub about: &'static str,
    pub points: i32,
}

/// The parts of a score, in the order of the API, without the base.
pub fn parts_of(points: &Points) -> [PartRow; 7] {
    let part = |word, about, points| PartRow { word, about, points };
    [
        part("TLD", "value of the suffix", points.tld),
        part("Length", "short names are rare and easy to remember", points.length),
        part("Words", "known words that fit together and the suffix", points.dictionary),
        part("Market", "value of these words, fitted to sold names", points.market),
        part("Sound", "how natural it sounds", points.pronounceability),
        part("Characters", "digits, hyphens and letters that are hard to type", points.characters),
        part("Other TLDs", "the same label in other TLDs", points.tld_spread),
    ]
}

/// Renders the parts with points other than 0, and the caps that apply.
pub fn part_bars(points: &Points, caps: &[Cap]) -> Markup {
    html! {
        dl.parts {
            @for part in parts_of(points).iter().filter(|part| part.points != 0) {
                div {
                    dt { (part.word) }
                    dd { (part_bar(part.points)) b { (signed(part.points)) } }
                }
            }
            @for cap in caps {
                div.cap { dt { "Limit: " (cap_word(cap)) } dd { b { "at most " (cap.max) } } }
            }
        }
    }
}

/// Renders a bar to the right (plus) or left (minus) of the middle.
pub fn part_bar(points: i32) -> Markup {
    let width = points.abs().min(BAR_POINTS);
    let (class, left) = if points < 0 { ("minus", -width) } else { ("plus", 0) };
    html! {
        svg viewBox="-50 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect.(class) x=(left) width=(width) height="8" {}
        }
    }
}

/// Formats points with a sign. The minus sign is as wide as a digit.
pub fn signed(points: i32) -> String {
    if points < 0 { format!("\u{2212}{}", points.unsigned_abs()) } else { format!("+{points}") }
}

/// Returns a cap in a word or two.
pub fn cap_word(cap: &Cap) -> &'static str {
    match cap.name {
        "notPublic" => "closed suffix",
        "reserved" => "reserved",
        "manyHyphens" => "hyphens",
        "mixedScripts" => "mixed scripts",
        "spam" => "spam",
        "brand" | "trademark" => "known brand",
        "adult" => "adult",
        "alsoBrand" => "also a brand",
        "minors" => "not listed",
        _ => "offensive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_sum() {
        let points = Points {
            base: 20,
            tld: 4,
            length: 9,
            dictionary: 49,
            market: 5,
            pronounceability: 5,
            characters: -6,
            tld_spread: -5,
        };
        let sum: i32 = parts_of(&points).iter().map(|part| part.points).sum();
        assert_eq!(points.base + sum, points.sum());
    }

    #[test]
    fn parts_without_points_are_omitted() {
        let points = Points { length: 21, characters: -70, ..Points::default() };
        let html = part_bars(&points, &[Cap { name: "spam", max: 30 }]).into_string();
        assert!(html.contains("Length") && html.contains("+21"), "{html}");
        assert!(html.contains("x=\"-50\" width=\"50\"") && html.contains("\u{2212}70"), "{html}");
        assert!(!html.contains("Market"), "{html}");
        assert!(html.contains("at most 30"), "{html}");
    }
}
