//! Pieces that more than one page shows.

use maud::{Markup, html};

use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::stage::Stage;

/// A score as a number and a bar.
pub fn score(dqs: Dqs) -> Markup {
    let points = dqs.points();
    let class = match points {
        80.. => "top",
        60.. => "good",
        40.. => "fair",
        _ => "poor",
    };
    html! {
        span.score.(class) {
            b { (points) }
            svg viewBox="0 0 100 8" width="64" height="6" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                rect.track width="100" height="8" rx="4" {}
                rect.bar width=(points) height="8" rx="4" {}
            }
        }
    }
}

/// A stage as a word in its colour, and the day that the name frees up or did.
pub fn stage(stage: Stage, release: Day) -> Markup {
    let (word, frees) = match stage {
        Stage::Redemption => ("redemption", "free on"),
        Stage::PendingDelete => ("pending delete", "free on"),
        Stage::Catchable => ("catchable", "free since"),
        Stage::Released => ("released", "free since"),
    };
    html! {
        span.stage.(stage.as_str()) { (word) }
        " "
        span.frees { (frees) " " time datetime=(release) { (release) } }
    }
}

/// A number with its thousands set apart: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (123_456, "123,456"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
