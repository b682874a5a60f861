//! Pushover, with the tokens of an application and of its user or group.

use std::time::Duration;

use chrono::{DateTime, Utc};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::service::{About, Asked, Note, Post, Service, Verdict, by_status};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Maximum characters of a message.
const TEXT_MAX: usize = 1_024;
/// Maximum characters of a link.
const LINK_MAX: usize = 512;
/// Characters of a token or key.
const KEY_CHARS: usize = 30;
/// Header with the time at which the monthly count of messages is reset, in Unix seconds.
const RESET: &str = "x-limit-app-reset";

static ABOUT: About = About {
    name: "pushover",
    label: "Pushover",
    hosts: &[],
    help: "Create an application at pushover.net, and paste its API token and your user or group key.",
    parts: &[key(Part::Token, "API token"), key(Part::User, "user key")],
};

pub struct Pushover;

const fn key(part: Part, label: &'static str) -> Asked {
    Asked { part, label, placeholder: "30 letters and digits", is_required: true }
}

impl Service for Pushover {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        for part in [Part::Token, Part::User] {
            let key = hook.reveal(part).unwrap_or_default();
            if key.len() != KEY_CHARS || !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err((part, "must be 30 letters and digits"));
            }
        }
        Ok(())
    }

    fn post(&self, mut address: Url, hook: &Hook, note: Note<'_>) -> Post {
        let path = format!("{}/1/messages.json", address.path().trim_end_matches('/'));
        address.set_path(&path);
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", hook.reveal(Part::Token).unwrap_or_default())
            .append_pair("user", hook.reveal(Part::User).unwrap_or_default())
            .append_pair("title", &note.alert.headline())
            .append_pair("message", &note.names(TEXT_MAX));
        if let Some(link) = note.link.filter(|link| link.len() <= LINK_MAX) {
            form.append_pair("url", link).append_pair("url_title", "Open the rule");
        }
        let body = form.finish().into_bytes();
        Post { url: address, headers: HeaderMap::new(), body }
            .with(CONTENT_TYPE, "application/x-www-form-urlencoded")
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        match answer.status.as_u16() {
            // The month's quota of messages is used up.
            429 => {
                let reset = answer.headers.get(RESET).and_then(|it| it.to_str().ok()?.parse().ok());
                let wait = reset.map(|reset: i64| reset.saturating_sub(now.timestamp()));
                let wait = wait.and_then(|wait| u64::try_from(wait).ok()).map(Duration::from_secs);
                Verdict::Retry(wait.or_else(|| answer.retry_after(now)))
            }
            // Pushover asks clients not to repeat a request after a 4xx.
            400..500 => {
                let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                match said["token"] == "invalid" || said["user"] == "invalid" {
                    true => Verdict::Dead,
                    false => Verdict::Refused,
                }
            }
            _ => by_status(answer, now, &[]),
        }
    }
}
