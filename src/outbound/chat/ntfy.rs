//! ntfy: a topic on ntfy.sh or a self-hosted server.

use chrono::{DateTime, Utc};
use hyper::header::AUTHORIZATION;
use serde_json::json;
use url::Url;

use super::service::{About, Asked, Note, Post, Service, Verdict, address, by_status};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};
use crate::vocab::secret::Secret;

/// Maximum bytes of a message; ntfy turns a longer one into a file.
const TEXT_MAX: usize = 4_096;
/// Maximum characters of a topic.
const TOPIC_CHARS_MAX: usize = 64;

static ABOUT: About = About {
    name: "ntfy",
    label: "ntfy",
    hosts: &[],
    help: "Paste the address of a topic that you subscribe to in the app, and an access token if the topic needs one.",
    parts: &[
        address("https://ntfy.sh/your-secret-topic"),
        Asked { part: Part::Token, label: "token", placeholder: "tk_…", is_required: false },
    ],
};

pub struct Ntfy;

impl Service for Ntfy {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        let is_topic = |url: &Url| {
            let topic = topic(url).1;
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            let fits = (1..=TOPIC_CHARS_MAX).contains(&topic.len());
            fits && topic.bytes().all(plain) && url.query().is_none()
        };
        match hook.url.as_ref().is_some_and(|url| is_topic(&url.to_url())) {
            true => Ok(()),
            false => Err((
                Part::Url,
                "must end with the name of a topic, such as https://ntfy.sh/my-topic",
            )),
        }
    }

    fn post(&self, address: Url, hook: &Hook, note: Note<'_>) -> Post {
        let (base, topic) = topic(&address);
        let mut body = json!({
            "topic": topic,
            "title": note.alert.headline(),
            "message": note.names(TEXT_MAX),
        });
        if let Some(link) = note.link {
            body["click"] = json!(link);
        }
        let mut url = address.clone();
        url.set_path(&base);
        let post = Post::json(url, &body);
        match hook.token.as_ref().map(Secret::reveal) {
            Some(token) => post.with(AUTHORIZATION, &format!("Bearer {token}")),
            None => post,
        }
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        // The token is wrong, or another user has reserved the topic.
        by_status(answer, now, &[401, 403, 410])
    }
}

/// Returns the path that messages are posted to, and the topic.
fn topic(url: &Url) -> (String, String) {
    let path = url.path().trim_end_matches('/');
    let (base, topic) = path.rsplit_once('/').unwrap_or_default();
    (format!("{base}/"), topic.to_owned())
}
