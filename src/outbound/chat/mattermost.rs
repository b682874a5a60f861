//! Mattermost, by an incoming webhook.

use chrono::{DateTime, Utc};
use serde_json::json;
use url::Url;

use super::service::{
    About, Note, Post, Service, Verdict, address, by_status, check_hooks_path, markdown,
};
use crate::outbound::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Maximum characters of a text that no version splits.
const TEXT_MAX: usize = 4_000;
/// Error id in the body of a 400 for a hook that does not exist.
const NO_SUCH_HOOK: &str = "web.incoming_webhook.invalid";

static ABOUT: About = About {
    name: "mattermost",
    label: "Mattermost",
    hosts: &[],
    help: "In Mattermost, add an incoming webhook under Integrations, and paste its URL.",
    parts: &[address("https://mattermost.example.com/hooks/…")],
};

pub struct Mattermost;

impl Service for Mattermost {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        check_hooks_path(hook)
    }

    fn post(&self, address: Url, _: &Hook, note: Note<'_>) -> Post {
        Post::json(address, &json!({"text": note.text(TEXT_MAX, "\n", markdown)}))
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        let says = |what: &str| String::from_utf8_lossy(&answer.body).contains(what);
        match answer.status.as_u16() {
            400 | 404 if says(NO_SUCH_HOOK) => Verdict::Dead,
            _ => by_status(answer, now, &[410]),
        }
    }
}
