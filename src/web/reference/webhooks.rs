//! How a receiver verifies a webhook: the README's section, whose programs the tests run as printed.

use std::sync::LazyLock;

use maud::{Markup, html};

const README: &str = include_str!("../../../README.md");
const HEADING: &str = "\n## Verifying a webhook\n";

/// A program, and the line that says what it is.
struct Example {
    title: &'static str,
    code: &'static str,
}

static EXAMPLES: LazyLock<Vec<Example>> = LazyLock::new(|| {
    let section = README.split_once(HEADING).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut pieces = section.split("```");
    let mut examples = Vec::new();
    while let (Some(before), Some(fenced)) = (pieces.next(), pieces.next()) {
        let title = before.trim_end().rsplit("\n\n").next().unwrap_or_default();
        // What follows the fence on its line is the language.
        let code = fenced.split_once('\n').map_or("", |(_, code)| code);
        examples.push(Example { title: title.trim().trim_end_matches(':'), code });
    }
    examples
});

/// The section of the page.
pub fn section() -> Markup {
    html! {
        section.group aria-labelledby="webhooks" {
            h2 #webhooks { "Webhooks" }
            div.panel {
                p {
                    "Alerts are sent as the Standard Webhooks specification has it: a POST of JSON "
                    code { "{\"type\", \"timestamp\", \"data\"}" } " with the headers "
                    code { "webhook-id" } ", " code { "webhook-timestamp" } " and "
                    code { "webhook-signature" } "."
                }
                p {
                    "Whoever knows your address can send you anything, so verify the signature with the secret ("
                    code { "whsec_…" } ") that was shown when the rule was saved, over the body as it came. "
                    "A message may come twice: " code { "webhook-id" } " is then the same. "
                    "Answer 2xx within 15 seconds; anything else is tried again for a day, and 410 switches the channel off."
                }
                @for example in EXAMPLES.iter() {
                    details {
                        summary { (super::code_words(example.title)) }
                        pre tabindex="0" aria-label=(example.title) { code { (example.code) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_four_programs() {
        let titles: Vec<_> = EXAMPLES.iter().map(|example| example.title).collect();
        assert_eq!(titles.len(), 4, "{titles:?}");
        assert!(titles[0].starts_with("Python, with the library"), "{titles:?}");
        assert!(EXAMPLES.iter().all(|example| example.code.contains("webhook-signature")
            || example.code.contains("standardwebhooks")));
        assert!(EXAMPLES.iter().all(|example| example.code.ends_with('\n')));
    }
}
