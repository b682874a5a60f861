//! Google Chat, through a space's webhook.

use chrono::{DateTime, Utc};
use serde_json::json;
use url::Url;

use super::service::{About, Note, Post, Service, Verdict, address, by_status};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Maximum characters of a text.
const TEXT_MAX: usize = 4_000;

static ABOUT: About = About {
    name: "googlechat",
    label: "Google Chat",
    hosts: &["chat.googleapis.com"],
    help: "In Google Chat, open a space's Apps & integrations, add a webhook, and paste its link.",
    parts: &[address("https://chat.googleapis.com/v1/spaces/…/messages?key=…&token=…")],
};

pub struct GoogleChat;

impl Service for GoogleChat {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        let url = hook.url.as_ref().map(|url| url.to_url());
        let is_whole = |url: Url| {
            let has = |name: &str| url.query_pairs().any(|(sent, _)| sent == name);
            let path = url.path();
            path.starts_with("/v1/spaces/")
                && path.ends_with("/messages")
                && has("key")
                && has("token")
        };
        match url.is_some_and(is_whole) {
            true => Ok(()),
            false => Err((Part::Url, "must be the whole link of a webhook, with key and token")),
        }
    }

    fn post(&self, address: Url, _: &Hook, note: Note<'_>) -> Post {
        Post::json(address, &json!({"text": note.text(TEXT_MAX, "\n", escape)}))
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        // A wrong key or token; the webhook or its space was removed.
        by_status(answer, now, &[401, 403, 404, 410])
    }
}

/// The format has no escapes. A zero-width space prevents `<users/all>` from mentioning everyone.
fn escape(text: &str) -> String {
    text.replace('<', "<\u{200b}")
}
