//! The parts of a score: a summary in three lines, and a table with bars.

use maud::{Markup, html};

use crate::components::Column::{Hidden, Number, Text};
use crate::components::{columns, counted, language, part_bar, parts_of, signed, upper_first};
use crate::index::query::profile::Siblings;
use crate::scorer::{Cap, Signals};
use crate::vocab::name::{DomainName, to_unicode};

/// Renders the reasons of a score in three lines, whose points add up to the sum of the parts.
pub fn reasons(domain: &DomainName, signals: &Signals<'_>, siblings: &Siblings) -> Markup {
    let points = &signals.points;
    let (market, suffix) = (points.market + points.tld_spread, points.tld);
    let name = points.sum() - market - suffix;
    let cap = cap_of(signals);
    html! {
        dl.reasons {
            (reason(name, "The name.", &about_name(domain, signals)))
            (reason(market, "The market.", &about_market(signals, siblings)))
            (reason(suffix, "The suffix.", &format!(".{}, worth {} of 100 to buyers.", to_unicode(domain.tld()), signals.tld_weight.get())))
            @if let Some(cap) = cap { div.cap { dt { "≤ " (cap.max) } dd { b { "Limited. " } (upper_first(cap_reason(cap.name))) "." } } }
        }
    }
}

fn reason(points: i32, word: &str, about: &str) -> Markup {
    html! {
        div { dt.minus[points < 0] { (signed(points)) } dd { b { (word) } " " (about) } }
    }
}

fn about_name(domain: &DomainName, signals: &Signals<'_>) -> String {
    let words: Vec<_> = signals.words.iter().map(|word| format!("“{word}”")).collect();
    let is_made_of_words = signals.dictionary_quality.get() >= 25;
    let made_of = match (is_made_of_words, words.as_slice(), signals.language) {
        (true, [word], Some(code)) => format!("The {} word {word}.", language(code)),
        (true, [word], None) => format!("One word, {word}."),
        (true, [first @ .., last], code) => {
            let of = code.map_or_else(String::new, |code| format!("{} ", language(code)));
            format!("{} {of}words, {} and {last}.", words.len(), first.join(", "))
        }
        _ if signals.pronounceability.get() >= 60 => {
            "Not made of known words, easy to say.".to_owned()
        }
        _ => "Not made of known words.".to_owned(),
    };
    let also = match (signals.digits, signals.hyphens) {
        (0, 0) => String::new(),
        (_, 0) => ", with digits".to_owned(),
        (0, _) => ", with hyphens".to_owned(),
        _ => ", with digits and hyphens".to_owned(),
    };
    format!("{made_of} {}{also}.", counted(domain.length().into(), "character"))
}

fn about_market(signals: &Signals<'_>, siblings: &Siblings) -> String {
    let Siblings { total, registered, leaving, .. } = *siblings;
    let others = counted(registered, "other TLD");
    match (registered, leaving) {
        // A label in no other TLD is mentioned only if that costs points, because it is uncertain
        // otherwise.
        (0, _) if total == 0 && signals.points.tld_spread >= 0 => {
            "No other TLDs in our data.".to_owned()
        }
        (0, _) => "Not registered in other TLDs.".to_owned(),
        (_, 0) => format!("Registered in {others}."),
        (1, _) => "Registered in 1 other TLD, which it is leaving.".to_owned(),
        (all, leaving) if all == leaving => format!("Registered in {others}, all of them leaving."),
        (_, leaving) => format!("Registered in {others}, {leaving} of them leaving."),
    }
}

fn cap_of<'a>(signals: &'a Signals<'_>) -> Option<&'a Cap> {
    let sum = signals.points.sum();
    signals.caps.iter().filter(|cap| cap.max < sum).min_by_key(|cap| cap.max)
}

/// Renders all parts, their sum and the cap that applies.
pub fn table(signals: &Signals<'_>) -> Markup {
    let sum = signals.points.sum();
    let cap = cap_of(signals);
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

/// Returns the reason for a cap.
fn cap_reason(name: &str) -> &'static str {
    match name {
        "notPublic" => "the suffix is not open to the public",
        "reserved" => "the registry reserves labels of one character",
        "manyHyphens" => "too many hyphens",
        "mixedScripts" => "mixes scripts and may imitate another name",
        "spam" => "contains a term common in spam",
        "brand" => "a known brand, or taken for one",
        "trademark" => "contains a known brand",
        "adult" => "adult terms have few buyers",
        "alsoBrand" => "also a known brand",
        "minors" => "joins minors and sex",
        _ => "contains an offensive word",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorer::{Scorer, Scratch, Spread};

    fn shown(text: &str) -> (String, i32) {
        let name = DomainName::parse(text).expect("a name");
        let scored = Scorer::shared().score(&name, Spread::of(1), &mut Scratch::default());
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
    fn three_reasons_add_up_to_the_score() {
        for text in ["solar.com", "bright-acre77.de", "xqzvkt.shop"] {
            let name = DomainName::parse(text).expect("a name");
            let scored = Scorer::shared().score(&name, Spread::of(3), &mut Scratch::default());
            let siblings = Siblings { best: Vec::new(), total: 9, registered: 5, leaving: 3 };
            let html = reasons(&name, &scored.signals, &siblings).into_string();
            let sums = html.split("<dt").skip(1).take(3).map(|rest| {
                let text = rest.split(['>', '<']).nth(1).expect("points").replace('\u{2212}', "-");
                text.parse::<i32>().expect("a number")
            });
            assert_eq!(sums.sum::<i32>(), scored.signals.points.sum(), "{html}");
            assert!(html.contains("Registered in 5 other TLDs, 3 of them leaving."), "{html}");
        }
    }

    #[test]
    fn an_effective_cap_is_named() {
        let (html, sum) = shown("hotel.monash");
        assert!(sum > 10 && html.contains("capped at 10: the suffix is not open"), "{html}");
    }
}
