//! The parts of a score as a bar chart that is a table.

use maud::{Markup, html};

use crate::scorer::Signals;
use crate::vocab::dqs::Dqs;
use crate::web::components::{part_bar, parts_of, signed};

/// Every part with its bar, and what they come to.
pub fn table(dqs: Dqs, signals: &Signals<'_>) -> Markup {
    let sum = signals.points.sum();
    let cap = signals.caps.iter().filter(|cap| cap.max < sum).min_by_key(|cap| cap.max);
    html! {
        table.points {
            caption.hidden { "Points by part" }
            thead {
                tr {
                    th scope="col" { "Part" }
                    th scope="col" { span.hidden { "Bar" } }
                    th.number scope="col" { "Points" }
                    th scope="col" { "About" }
                }
            }
            tbody {
                @for part in parts_of(&signals.points) {
                    tr.none[part.points == 0] {
                        th scope="row" { (part.word) }
                        td.bar { (part_bar(part.points)) }
                        td.number { @if part.points == 0 { "0" } @else { (signed(part.points)) } }
                        td.about { (part.about) }
                    }
                }
            }
            tfoot {
                tr {
                    th scope="row" { "Sum" }
                    td {}
                    td.number { (sum) }
                    td.about {
                        @if let Some(cap) = cap { "held to " (cap.max) ": " (cap_reason(cap.name)) }
                        @else if sum != i32::from(dqs.points()) { "held within 0 to 100" }
                    }
                }
            }
        }
    }
}

/// Why a score is held down.
fn cap_reason(name: &str) -> &'static str {
    match name {
        "manyHyphens" => "names with so many hyphens are not worth more",
        "mixedScripts" => "letters of several scripts may imitate another name",
        "spam" => "it has a term that spam is made of",
        "trademark" => "whoever owns the trademark can take the name",
        "adult" => "adult terms are sold to few",
        _ => "it has an offensive word",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorer::{Scorer, Scratch};
    use crate::vocab::name::DomainName;

    fn shown(text: &str) -> (String, i32) {
        let name = DomainName::parse(text).expect("a name");
        let scored = Scorer::shared().score(&name, 1, &mut Scratch::default());
        let html = table(scored.dqs, &scored.signals).into_string();
        (html, scored.signals.points.sum())
    }

    #[test]
    fn the_sum_is_that_of_the_parts() {
        let (html, sum) = shown("solar.com");
        assert!(html.contains(&format!("<td class=\"number\">{sum}</td>")), "{html}");
        assert_eq!(html.matches("<tr").count(), 1 + 12 + 1);
    }

    #[test]
    fn a_limit_that_holds_is_named() {
        let (html, sum) = shown("best-cheap-car-shop.co.uk");
        assert!(sum > 15 && html.contains("held to 15: names with so many hyphens"), "{html}");
    }
}
