//! Rocket.Chat, by an incoming integration.

use chrono::{DateTime, Utc};
use serde_json::json;
use url::Url;

use super::service::{
    About, Note, Post, Service, Verdict, address, by_status, check_hooks_path, markdown,
};
use crate::outbound::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Characters of a text that fit whatever the server's own limit is.
const TEXT_MAX: usize = 1_000;
/// Error in the body of a response for an integration that does not exist.
const NO_SUCH_INTEGRATION: &str = "Invalid integration id or token";

static ABOUT: About = About {
    name: "rocketchat",
    label: "Rocket.Chat",
    hosts: &[],
    help: "In Rocket.Chat, add an incoming integration in the administration, and paste its Webhook URL.",
    parts: &[address("https://chat.example.com/hooks/…/…")],
};

pub struct RocketChat;

impl Service for RocketChat {
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
            400..500 if says(NO_SUCH_INTEGRATION) => Verdict::Dead,
            _ => by_status(answer, now, &[410]),
        }
    }
}
