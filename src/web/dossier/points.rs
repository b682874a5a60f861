//! The parts of a score as a table with bars.

use maud::{Markup, html};

use crate::scorer::Signals;
use crate::web::components::Column::{Hidden, Number, Text};
use crate::web::components::{columns, part_bar, parts_of, signed};

/// Renders all parts, their sum and the cap that applies.
pub fn table(signals: &Signals<'_>) -> Markup {
    let sum = signals.points.sum();
    let cap = signals.caps.iter().filter(|cap| cap.max < sum).min_by_key(|cap| cap.max);
    html! {
        table.points {
            caption.hidden { "Points by part" }
            (columns(&[Text("Part"), Hidden("Bar"), Number("Points"), Text("Meaning")]))
            tbody {
                tr {
                    th scope="row" { "Base" }
                    td {}
                    td.number { (signals.points.base) }
                    td.about { "an ordinary name" }
                }
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
                        @if let Some(cap) = cap { "capped at " (cap.max) ": " (cap_reason(cap.name)) }
                    }
                }
            }
        }
    }
}

/// Reason for a cap.
fn cap_reason(name: &str) -> &'static str {
    match name {
        "notPublic" => "the suffix is not open to the public",
        "manyHyphens" => "too many hyphens",
        "mixedScripts" => "mixes scripts and may imitate another name",
        "spam" => "contains a term common in spam",
        "trademark" => "the trademark owner can claim the name",
        "adult" => "adult terms have few buyers",
        _ => "contains an offensive word",
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
        let html = table(&scored.signals).into_string();
        (html, scored.signals.points.sum())
    }

    #[test]
    fn the_table_shows_the_sum() {
        let (html, sum) = shown("solar.com");
        assert!(html.contains(&format!("<td class=\"number\">{sum}</td>")), "{html}");
        assert_eq!(html.matches("<tr").count(), 1 + 8 + 1);
    }

    #[test]
    fn an_effective_cap_is_named() {
        let (html, sum) = shown("best-cheap-car-shop.co.uk");
        assert!(sum > 15 && html.contains("capped at 15: too many hyphens"), "{html}");
    }
}
