//! Microsoft Teams, through a workflow that posts the messages it receives.

use chrono::{DateTime, Utc};
use serde_json::json;
use url::Url;

use super::service::{About, Note, Post, Service, Verdict, address, by_status, markdown};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// Maximum bytes of the text. The limit of the whole message is 28 KB, and JSON escaping makes the
/// text longer.
const TEXT_MAX: usize = 20_000;

static ABOUT: About = About {
    name: "teams",
    label: "Microsoft Teams",
    hosts: &["*.logic.azure.com", "*.environment.api.powerplatform.com"],
    help: "In Teams, open a channel's Workflows, add “Send webhook alerts to a channel”, and paste its URL.",
    parts: &[address("https://….environment.api.powerplatform.com/…")],
};

pub struct Teams;

impl Service for Teams {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)> {
        let url = hook.url.as_ref().map(|url| url.to_url());
        match url.is_some_and(|url| url.path().contains("/workflows/") && url.query().is_some()) {
            true => Ok(()),
            false => {
                Err((Part::Url, "must be the whole URL of a workflow, with what follows the ?"))
            }
        }
    }

    fn post(&self, address: Url, _: &Hook, note: Note<'_>) -> Post {
        // A text block ignores single line breaks.
        let text = note.text(TEXT_MAX, "\n\n", markdown);
        let mut card = json!({
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [{"type": "TextBlock", "text": text, "wrap": true}],
        });
        if let Some(link) = note.link {
            card["actions"] =
                json!([{"type": "Action.OpenUrl", "title": "Open the rule", "url": link}]);
        }
        let attachment = json!({
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": card,
        });
        Post::json(address, &json!({"type": "message", "attachments": [attachment]}))
    }

    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict {
        // 202 only means that the workflow received the message. 401 and 403 mean a wrong
        // signature, 404 and 410 an unknown workflow.
        by_status(answer, now, &[401, 403, 404, 410])
    }
}
