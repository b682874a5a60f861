//! Gotify: an application on a self-hosted server.

use chrono::{DateTime, Utc};
use hyper::header::HeaderName;
use serde_json::json;
use url::Url;

use super::service::{About, Asked, Note, Post, Service, Verdict, address, by_status};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Maximum bytes of a message.
const TEXT_MAX: usize = 32_000;
/// Priority at which the app plays a sound.
const PRIORITY: u8 = 5;
const KEY: HeaderName = HeaderName::from_static("x-gotify-key");

static ABOUT: About = About {
    name: "gotify",
    label: "Gotify",
    hosts: &[],
    help: "In Gotify, create an application, and paste the server's address and the application's token.",
    parts: &[
        address("https://gotify.example.com"),
        Asked { part: Part::Token, label: "token", placeholder: "A…", is_required: true },
    ],
};

pub struct Gotify;

impl Service for Gotify {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        match hook.url.as_ref().is_some_and(|url| url.to_url().query().is_none()) {
            true => Ok(()),
            false => Err((Part::Url, "must be the address of the server alone, without ?")),
        }
    }

    fn post(&self, mut address: Url, hook: &Hook, note: Note<'_>) -> Post {
        let path = address.path().trim_end_matches('/');
        let path = format!("{}/message", path.trim_end_matches("/message"));
        address.set_path(&path);
        let mut body = json!({
            "title": note.alert.headline(),
            "message": note.names(TEXT_MAX),
            "priority": PRIORITY,
        });
        if let Some(link) = note.link {
            body["extras"] = json!({"client::notification": {"click": {"url": link}}});
        }
        Post::json(address, &body).with(KEY, hook.reveal(Part::Token).unwrap_or_default())
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        // The token is wrong, or its application was removed.
        by_status(answer, now, &[401, 403, 410])
    }
}
