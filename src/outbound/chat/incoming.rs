//! Self-hosted chat servers, which accept Markdown text at the URL of an incoming webhook.

use chrono::{DateTime, Utc};
use serde_json::json;
use url::Url;

use super::service::{About, Note, Post, Service, Verdict, address, by_status, markdown};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// A kind of chat server with incoming webhooks.
pub struct IncomingWebhook {
    about: About,
    /// Maximum characters of a text.
    text_max: usize,
    /// Text in the body of a 4xx response for a webhook that does not exist.
    no_such_hook: &'static str,
}

/// Mattermost. No version splits a text of up to 4,000 characters.
pub static MATTERMOST: IncomingWebhook = IncomingWebhook {
    about: About {
        name: "mattermost",
        label: "Mattermost",
        hosts: &[],
        help: "In Mattermost, add an incoming webhook under Integrations, and paste its URL.",
        parts: &[address("https://mattermost.example.com/hooks/…")],
    },
    text_max: 4_000,
    no_such_hook: "web.incoming_webhook.invalid",
};

/// Rocket.Chat. Operators may lower the text limit, but hardly below 1,000 characters.
pub static ROCKET_CHAT: IncomingWebhook = IncomingWebhook {
    about: About {
        name: "rocketchat",
        label: "Rocket.Chat",
        hosts: &[],
        help: "In Rocket.Chat, add an incoming integration in the administration, and paste its Webhook URL.",
        parts: &[address("https://chat.example.com/hooks/…/…")],
    },
    text_max: 1_000,
    no_such_hook: "Invalid integration id or token",
};

impl Service for IncomingWebhook {
    fn about(&self) -> &About {
        &self.about
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        let has_key = |url: &Url| {
            let key = url.path().split_once("/hooks/");
            key.is_some_and(|(_, key)| !key.is_empty())
        };
        match hook.url.as_ref().is_some_and(|url| has_key(&url.to_url())) {
            true => Ok(()),
            false => {
                Err((Part::Url, "must be an incoming webhook: its path has /hooks/ and a key"))
            }
        }
    }

    fn post(&self, address: Url, _: &Hook, note: Note<'_>) -> Post {
        Post::json(address, &json!({"text": note.text(self.text_max, "\n", markdown)}))
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        let is_gone = answer.status.is_client_error()
            && String::from_utf8_lossy(&answer.body).contains(self.no_such_hook);
        if is_gone { Verdict::Dead } else { by_status(answer, now, &[410]) }
    }
}
