//! Sends alerts to chat services. Each service is one file beside this one and a line in
//! [`SERVICES`].
//!
//! A hook is a credential: anyone who has it can post with it. No error and no log line
//! contains it.

mod discord;
mod google_chat;
mod gotify;
mod incoming;
mod ntfy;
mod pushover;
pub mod service;
mod slack;
mod teams;

use chrono::{DateTime, Utc};
use hyper::Method;
use url::Url;

use crate::alert::Alert;
use crate::chat::service::{About, Note, Post, Service, Verdict};
use crate::http::{Body, Client, Request};
use crate::vocab::chat::{CUT, Chat, Hook, Part};
use crate::vocab::secret::Secret;
use crate::vocab::url::{BaseUrl, HostRules, WebhookUrl};
use crate::{Failure, SendError};

/// All services, in the order in which pages offer them.
pub const SERVICES: &[&dyn Service] = &[
    &slack::Slack,
    &discord::Discord,
    &teams::Teams,
    &incoming::MATTERMOST,
    &incoming::ROCKET_CHAT,
    &google_chat::GoogleChat,
    &ntfy::Ntfy,
    &pushover::Pushover,
    &gotify::Gotify,
];

/// Maximum characters of a token.
pub const TOKEN_CHARS_MAX: usize = 256;
/// Maximum bytes of a response.
const BODY_MAX: usize = 16 * 1024;

/// A refused part of a hook, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub part: Part,
    pub why: String,
}

/// The parts of a hook as sent by its owner.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    pub url: Option<Secret>,
    pub token: Option<Secret>,
    pub user: Option<Secret>,
}

impl Sent {
    fn part(&self, part: Part) -> Option<&str> {
        let sent = match part {
            Part::Url => &self.url,
            Part::Token => &self.token,
            Part::User => &self.user,
        };
        sent.as_ref().map(Secret::reveal)
    }
}

/// The service with this name.
pub fn service(name: &str) -> Option<&'static dyn Service> {
    SERVICES.iter().copied().find(|service| service.about().name == name)
}

/// Name of a service on pages.
pub fn label(name: &str) -> &str {
    service(name).map_or(name, |service| service.about().label)
}

/// Validates the parts that an owner sent for a service. A part in masked form stands for the same part
/// of one of the `kept` receivers; that receiver is then removed from `kept`.
///
/// # Errors
/// The first part that is missing, not expected or invalid.
pub fn parse(
    service: &dyn Service,
    sent: &Sent,
    rules: &HostRules,
    kept: &mut Vec<&Chat>,
) -> Result<Chat, Refused> {
    let about = service.about();
    let before = take_shown(about, sent, kept)?;
    let mut hook = Hook::default();
    for part in Part::ALL {
        let refused = |why: String| Refused { part, why };
        let asked = about.parts.iter().find(|asked| asked.part == part);
        let text = match (asked, sent.part(part)) {
            (None, None) => continue,
            (None, Some(_)) => return Err(refused(format!("does not belong to {}", about.name))),
            (Some(asked), None) if asked.is_required => return Err(refused("is required".into())),
            (Some(_), None) => continue,
            (Some(_), Some(text)) if text.contains(CUT) => {
                before.and_then(|chat| chat.hook.reveal(part)).unwrap_or_default()
            }
            (Some(_), Some(text)) => text,
        };
        match part {
            Part::Url => hook.url = Some(parse_url(about, rules, text).map_err(refused)?),
            Part::Token => hook.token = Some(parse_token(text).map_err(refused)?),
            Part::User => hook.user = Some(parse_token(text).map_err(refused)?),
        }
    }
    service.check(&hook).map_err(|(part, why)| Refused { part, why: why.to_owned() })?;
    Ok(Chat { service: about.name.into(), hook })
}

/// Takes the receiver whose parts were sent in masked form; `None` if all were sent in full. A
/// stored token is used only with its stored address, so that it cannot be sent elsewhere.
fn take_shown<'a>(
    about: &About,
    sent: &Sent,
    kept: &mut Vec<&'a Chat>,
) -> Result<Option<&'a Chat>, Refused> {
    let is_shown = |part: &Part| sent.part(*part).is_some_and(|text| text.contains(CUT));
    let Some(first) = Part::ALL.into_iter().find(is_shown) else { return Ok(None) };
    let is_same = |chat: &&Chat| {
        let is_same = |part: Part| {
            sent.part(part).map(str::to_owned) == chat.hook.shown(part)
                || (part != Part::Url && !is_shown(&part))
        };
        chat.service == about.name && Part::ALL.into_iter().all(is_same)
    };
    match kept.iter().position(is_same) {
        Some(at) => Ok(Some(kept.remove(at))),
        None => {
            let why = "is shortened, and no channel of this rule has it; send all of it".to_owned();
            Err(Refused { part: first, why })
        }
    }
}

fn parse_url(about: &About, rules: &HostRules, text: &str) -> Result<WebhookUrl, String> {
    let url = WebhookUrl::parse_by(rules, text).map_err(|err| err.of_channel())?;
    let host = url.to_url();
    let host = host.host_str().unwrap_or_default();
    let is_of = |own: &&str| match own.strip_prefix('*') {
        Some(suffix) => host.ends_with(suffix) && host.len() > suffix.len(),
        None => host == *own,
    };
    if about.hosts.is_empty() || about.hosts.iter().any(is_of) {
        return Ok(url);
    }
    let hosts = about.hosts.join(" or ");
    Err(format!("must be an address of {}, at {hosts}", about.label))
}

fn parse_token(text: &str) -> Result<Secret, String> {
    let fits = (1..=TOKEN_CHARS_MAX).contains(&text.len());
    if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "must be 1 to {TOKEN_CHARS_MAX} letters, digits and signs, without spaces"
        ));
    }
    Ok(Secret::new(text.to_owned()))
}

/// Client that sends to chat services. Cheap to clone.
#[derive(Clone)]
pub struct Chats {
    client: Client,
    /// Base URL of Pushover's API.
    pushover: BaseUrl,
    /// URL of this server.
    home: Option<String>,
}

impl Chats {
    /// Creates a client that sends through `client`.
    pub fn new(client: Client, pushover: BaseUrl, home: Option<String>) -> Chats {
        Chats { client, pushover, home }
    }

    /// Sends an alert.
    ///
    /// # Errors
    /// The message was not accepted.
    pub async fn send(
        &self,
        chat: &Chat,
        alert: &Alert,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let service = service(&chat.service).ok_or_else(|| {
            let what =
                format!("a newer dropdex added `{}`, which this one does not know", chat.service);
            SendError::new(Failure::NotConfigured, what)
        })?;
        let address = match &chat.hook.url {
            Some(url) => Ok(url.to_url()),
            None => Url::parse(self.pushover.as_str()),
        };
        let address = address
            .map_err(|_| SendError::new(Failure::NotConfigured, "its address is not a URL"))?;
        let link = self.home.as_deref().map(|home| alert.link(home));
        let note = Note { alert, link: link.as_deref() };
        let Post { url, headers, body } = service.post(address, &chat.hook, note);
        let request = Request { method: Method::POST, url, headers, body: body.into() };
        let answer = self.client.send(request, Body::Glance(BODY_MAX)).await?;
        let status = answer.status.as_u16();
        match service.verdict(&answer, now) {
            Verdict::Taken => Ok(()),
            Verdict::Retry(after) => Err(SendError::status(status).after(after)),
            Verdict::Refused => Err(SendError::new(Failure::Rejected, status)),
            Verdict::Dead => Err(SendError::new(Failure::Gone, status)),
        }
    }
}

#[cfg(test)]
mod tests;
