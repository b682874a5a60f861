//! Messages to Telegram chats through the Bot API: a chat and a text in, delivered or a
//! [`SendError`] out. The bot's token is a part of the address; it is in no error and no log.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::outbound::http::{Answer, Body, Client, Request};
use crate::outbound::{Failure, SendError, settings};
use crate::vocab::secret::Secret;
use crate::vocab::url::BaseUrl;

/// UTF-16 units of a text at most, as Telegram counts them.
pub const TEXT_UNITS_MAX: usize = 4_096;
/// Octets of an answer at most.
const BODY_MAX: usize = 16 * 1024;

/// The bot that sends messages. Cheap to clone.
#[derive(Clone)]
pub struct Bot {
    client: Client,
    base: BaseUrl,
    token: Secret,
}

#[derive(Serialize)]
struct SendMessage<'a> {
    chat_id: &'a str,
    text: &'a str,
    link_preview_options: LinkPreview,
}

#[derive(Serialize)]
struct LinkPreview {
    is_disabled: bool,
}

/// An answer of the API, as far as we need it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reply {
    ok: bool,
    parameters: Parameters,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    retry_after: Option<u32>,
}

impl Bot {
    /// A bot of these settings, which calls through `client`.
    ///
    /// # Errors
    /// The token cannot be read, or is none.
    pub fn new(settings: &settings::Telegram, client: Client) -> anyhow::Result<Bot> {
        use anyhow::Context;
        let token = settings.token.read().context("telegram.token_file cannot be read")?;
        let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'-');
        anyhow::ensure!(
            !token.reveal().is_empty() && token.reveal().bytes().all(word),
            "telegram.token is none: @BotFather gives such as 123456:ABC-def"
        );
        Ok(Bot { client, base: settings.base.clone(), token })
    }

    /// Sends `text`, of which what is beyond [`TEXT_UNITS_MAX`] is cut.
    ///
    /// # Errors
    /// It was not taken.
    pub async fn send(&self, chat_id: &str, text: &str) -> Result<(), SendError> {
        let message = SendMessage {
            chat_id,
            text: cut(text),
            link_preview_options: LinkPreview { is_disabled: true },
        };
        let body = serde_json::to_vec(&message).expect("text is JSON");
        let address = format!("{}/bot{}/sendMessage", self.base.as_str(), self.token.reveal());
        let url = Url::parse(&address)
            .map_err(|_| SendError::of(Failure::NotConfigured, "telegram.base is no address"))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = Request { method: Method::POST, url, headers, body: Bytes::from(body) };
        judge(&self.client.send(request, Body::Whole(BODY_MAX)).await?)
    }
}

/// What an answer means. A chat that is not there, or does not let the bot in, will not change by
/// itself.
fn judge(answer: &Answer) -> Result<(), SendError> {
    let reply: Reply = serde_json::from_slice(&answer.body).unwrap_or_default();
    match answer.status.as_u16() {
        200 if reply.ok => Ok(()),
        status @ (400 | 403) => Err(SendError::of(Failure::Rejected, status)),
        // The token is wrong: the operator's to mend, and then worth another try.
        status @ (401 | 404) => {
            tracing::error!(status, "Telegram does not know telegram.token");
            Err(SendError::of(Failure::Status(status), status))
        }
        status => {
            let wait = reply.parameters.retry_after.map(|s| Duration::from_secs(s.into()));
            Err(SendError::status(status).after(wait))
        }
    }
}

/// As much of `text` as one message holds.
fn cut(text: &str) -> &str {
    let mut units = 0;
    let beyond = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > TEXT_UNITS_MAX
    });
    beyond.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let max = TEXT_UNITS_MAX;
        assert_eq!(cut(&"a".repeat(max)).len(), max);
        assert_eq!(cut(&"a".repeat(max + 1)).len(), max);
        assert_eq!(cut(&"😀".repeat(max)).chars().count(), max / 2);
        assert_eq!(cut(&format!("a{}", "😀".repeat(max))).chars().count(), max / 2);
        assert_eq!(cut(""), "");
    }
}
