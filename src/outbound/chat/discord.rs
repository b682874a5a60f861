//! Discord, through a channel's webhook.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::service::{About, Note, Post, Service, Verdict, address, by_status, markdown};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Maximum characters of a message.
const TEXT_MAX: usize = 2_000;
/// Message flag that suppresses link previews.
const SUPPRESS_EMBEDS: u32 = 1 << 2;
/// Maximum pause that is honoured.
const PAUSE_MAX_S: f64 = 86_400.0;

static ABOUT: About = About {
    name: "discord",
    label: "Discord",
    hosts: &["discord.com", "discordapp.com", "ptb.discord.com", "canary.discord.com"],
    help: "In Discord, open a channel's settings, Integrations, Webhooks, and paste a webhook's URL.",
    parts: &[address("https://discord.com/api/webhooks/…/…")],
};

pub struct Discord;

/// The members of a 429 response that are read.
#[derive(Deserialize)]
struct Limited {
    /// Seconds.
    retry_after: f64,
}

impl Service for Discord {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        let url = hook.url.as_ref().map(|url| url.to_url());
        let path = url.as_ref().map_or("", Url::path).trim_end_matches('/');
        let after = path.strip_prefix("/api/").and_then(|path| path.split_once("webhooks/"));
        // A further path segment, such as `/slack`, would select the format of another service.
        match after.is_some_and(|(_, rest)| rest.split('/').count() == 2) {
            true => Ok(()),
            false => Err((Part::Url, "must end with /api/webhooks/, a number and a token")),
        }
    }

    fn post(&self, address: Url, _: &Hook, note: Note<'_>) -> Post {
        let body = json!({
            "content": note.text(TEXT_MAX, "\n", markdown),
            "allowed_mentions": {"parse": []},
            "flags": SUPPRESS_EMBEDS,
        });
        Post::json(address, &body)
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        if answer.status == 429
            && let Ok(Limited { retry_after }) = serde_json::from_slice(&answer.body)
        {
            let pause = Duration::from_secs_f64(retry_after.clamp(0.0, PAUSE_MAX_S));
            return Verdict::Retry(Some(pause));
        }
        // 401 means a wrong token, 404 and 410 an unknown webhook.
        by_status(answer, now, &[401, 404, 410])
    }
}
