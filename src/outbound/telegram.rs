//! Sends messages to Telegram chats through the Bot API. The bot's token is part of the URL and never
//! appears in errors or logs.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::alert::{Alert, Layout};
use crate::http::{Answer, Body, Client, Request};
use crate::vocab::secret::Secret;
use crate::vocab::url::BaseUrl;
use crate::{Failure, SendError, settings};

/// Maximum bytes of a text. Telegram counts UTF-16 units, which are fewer.
const TEXT_BYTES_MAX: usize = 4_096;
/// Maximum bytes of a response.
const BODY_MAX: usize = 16 * 1024;

/// Client of the Bot API. Cheap to clone.
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

/// The members of a response that are read.
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
    /// The group became a supergroup, which has a different ID.
    migrate_to_chat_id: Option<i64>,
}

impl Bot {
    /// Creates a bot with these settings, which calls through `client`.
    ///
    /// # Errors
    /// The token cannot be read or is malformed.
    pub fn new(settings: &settings::Telegram, client: Client) -> anyhow::Result<Bot> {
        use anyhow::Context;
        let token = settings.token.read().context("telegram.token_file cannot be read")?;
        let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'-');
        anyhow::ensure!(
            !token.reveal().is_empty() && token.reveal().bytes().all(word),
            "telegram.token is malformed: @BotFather issues tokens such as 123456:ABC-def"
        );
        Ok(Bot { client, base: settings.base.clone(), token })
    }

    /// Sends an alert. `home` is the URL of this server. Returns the ID of the chat if it has changed.
    ///
    /// # Errors
    /// The message was not accepted.
    pub async fn send(
        &self,
        chat_id: &str,
        alert: &Alert,
        home: Option<&str>,
    ) -> Result<Option<String>, SendError> {
        let head = alert.headline() + "\n";
        let link = home.map(|home| alert.link(home));
        let link = link.as_deref();
        let layout = Layout { bytes_max: TEXT_BYTES_MAX, head: &head, between: "\n", link };
        let text = alert.chat(layout);
        let answer = self.post(chat_id, &text).await?;
        let Some(moved) = Reply::of(&answer).parameters.migrate_to_chat_id else {
            return classify(&answer).map(|()| None);
        };
        let moved = moved.to_string();
        classify(&self.post(&moved, &text).await?)?;
        Ok(Some(moved))
    }

    async fn post(&self, chat_id: &str, text: &str) -> Result<Answer, SendError> {
        let link_preview_options = LinkPreview { is_disabled: true };
        let message = SendMessage { chat_id, text, link_preview_options };
        let body = serde_json::to_vec(&message).expect("text is JSON");
        let address = format!("{}/bot{}/sendMessage", self.base.as_str(), self.token.reveal());
        let url = Url::parse(&address)
            .map_err(|_| SendError::new(Failure::NotConfigured, "telegram.base is not a URL"))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = Request { method: Method::POST, url, headers, body: Bytes::from(body) };
        Ok(self.client.send(request, Body::Whole(BODY_MAX)).await?)
    }
}

impl Reply {
    /// Parses a response. A response that is not from the Bot API yields the default.
    fn of(answer: &Answer) -> Reply {
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }
}

/// Classifies a response. A chat that does not exist or blocks the bot is permanent.
fn classify(answer: &Answer) -> Result<(), SendError> {
    let reply = Reply::of(answer);
    match answer.status.as_u16() {
        200 if reply.ok => Ok(()),
        status @ (400 | 403) => Err(SendError::new(Failure::Rejected, status)),
        // The token is wrong. A retry may succeed once the operator has fixed it.
        status @ (401 | 404) => {
            tracing::error!(status, "Telegram rejected telegram.token");
            Err(SendError::new(Failure::Status(status), status))
        }
        status => {
            let wait = reply.parameters.retry_after.map(|s| Duration::from_secs(s.into()));
            Err(SendError::status(status).after(wait))
        }
    }
}
