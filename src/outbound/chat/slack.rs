//! Slack, through an incoming webhook.

use chrono::{DateTime, Utc};
use serde_json::json;
use url::Url;

use super::service::{About, Note, Post, Service, Verdict, address, by_status};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Maximum characters of the text of a section.
const TEXT_MAX: usize = 3_000;

static ABOUT: About = About {
    name: "slack",
    label: "Slack",
    hosts: &["hooks.slack.com", "hooks.slack-gov.com"],
    help: "In Slack, add the app Incoming WebHooks to a channel, and paste its Webhook URL.",
    parts: &[address("https://hooks.slack.com/services/T…/B…/…")],
};

pub struct Slack;

impl Service for Slack {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        let url = hook.url.as_ref().map(|url| url.to_url());
        match url.is_some_and(|url| url.path().starts_with("/services/")) {
            true => Ok(()),
            false => {
                Err((Part::Url, "must be an incoming webhook: its path starts with /services/"))
            }
        }
    }

    fn post(&self, address: Url, _: &Hook, note: Note<'_>) -> Post {
        let text = note.text(TEXT_MAX, "\n", escape);
        // With `verbatim`, Slack does not turn names, channels and users in the text into links.
        let section = json!({"type": "mrkdwn", "text": text, "verbatim": true});
        Post::json(
            address,
            &json!({
                // Used by notifications and screen readers.
                "text": note.alert.headline_with(escape),
                "blocks": [{"type": "section", "text": section}],
                "unfurl_links": false,
                "unfurl_media": false,
            }),
        )
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        // 403: the workspace forbids the post; 404: the hook is unknown; 410: the channel is
        // archived.
        by_status(answer, now, &[403, 404, 410])
    }
}

/// Unescaped, a name could mention a whole channel (`<!channel>`).
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
