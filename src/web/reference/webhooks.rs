//! Instructions for verifying a webhook, with the programs in `data/examples`, which the tests run.

use maud::{Markup, html};

/// A program, with the line that introduces it.
struct Example {
    title: &'static str,
    code: &'static str,
}

const EXAMPLES: [Example; 4] = [
    Example {
        title: "Python, with the library (`pip install standardwebhooks`)",
        code: include_str!("../../../data/examples/verify_webhook_library.py"),
    },
    Example {
        title: "Python, standard library only",
        code: include_str!("../../../data/examples/verify_webhook.py"),
    },
    Example {
        title: "JavaScript (Node.js), with the library (`npm install standardwebhooks`)",
        code: include_str!("../../../data/examples/verify_webhook_library.cjs"),
    },
    Example {
        title: "JavaScript (Node.js), standard library only",
        code: include_str!("../../../data/examples/verify_webhook.cjs"),
    },
];

/// Renders the page.
pub fn section() -> Markup {
    html! {
        h1 { (super::WEBHOOKS) }
        div.panel {
            p {
                "Webhooks follow the Standard Webhooks specification: a POST with the JSON body "
                code { "{\"type\", \"timestamp\", \"data\"}" } " with the headers "
                code { "webhook-id" } ", " code { "webhook-timestamp" } " and "
                code { "webhook-signature" } "."
            }
            p {
                "Anyone who knows your URL can call it, so verify the signature of the raw body with the secret ("
                code { "whsec_…" } ") that was shown when you saved the rule. "
                "A message may arrive twice with the same " code { "webhook-id" } ". "
                "Respond with 2xx within 15 seconds. Other responses are retried for a day, and 410 switches the channel off."
            }
            @for example in EXAMPLES.iter() {
                details {
                    summary { (super::code_words(example.title)) }
                    pre tabindex="0" role="group" aria-label=(example.title) { code { (example.code) } }
                }
            }
        }
    }
}
