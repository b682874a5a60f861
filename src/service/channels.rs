//! Channels of alerts: parsing, and the checks before a rule is saved.

use futures_util::future::join_all;

use crate::accounts::Channel;
use crate::app::{App, ConfiguredChannels};
use crate::error::ApiError;
use crate::outbound::chat::{self, Sent};
use crate::outbound::guard::{Guard, GuardError};
use crate::vocab::chat::Chat;
use crate::vocab::secret::Secret;
use crate::vocab::url::{HostRules, WebhookUrl};

/// A channel as it was sent.
#[derive(Debug, Default)]
pub struct SentChannel {
    pub kind: Option<String>,
    pub url: Option<Secret>,
    pub chat_id: Option<String>,
    pub token: Option<Secret>,
    pub user: Option<Secret>,
}

/// Types of channels other than chat services.
const OWN_TYPES: [&str; 3] = ["email", "webhook", "telegram"];

/// All types of channels.
pub fn channel_types() -> impl Iterator<Item = &'static str> {
    OWN_TYPES.into_iter().chain(chat::SERVICES.iter().map(|service| service.about().name))
}

/// Checks that messages can be sent through channels.
///
/// # Errors
/// A channel is not set up by the operator, or an address is not public.
pub async fn check(app: &App, channels: &[Channel]) -> Result<(), ApiError> {
    check_configured(app.reach.channels, channels)?;
    check_webhooks(&app.reach.guard, channels).await
}

/// Parses channels. `before` are the current channels of the rule; their chats may be sent in the
/// masked form of responses.
///
/// # Errors
/// The first invalid part of a channel, such as `channels[0].url`.
pub fn parse(
    sent: Vec<SentChannel>,
    hosts: &HostRules,
    before: &[Channel],
) -> Result<Vec<Channel>, ApiError> {
    let mut kept: Vec<_> = before.iter().filter_map(Channel::chat).collect();
    let channels = sent.into_iter().enumerate();
    channels.map(|(at, sent)| parse_one(at, sent, hosts, &mut kept)).collect()
}

/// Parses a channel. A chat in the masked form of responses stands for one of `kept`.
fn parse_one(
    at: usize,
    sent: SentChannel,
    hosts: &HostRules,
    kept: &mut Vec<&Chat>,
) -> Result<Channel, ApiError> {
    let wrong = |member: &str, what: &dyn std::fmt::Display| {
        ApiError::parameter(format!("channels[{at}].{member}"), what)
    };
    let SentChannel { kind, url, chat_id, token, user } = sent;
    let kind = kind.as_deref().ok_or_else(|| wrong("type", &"is required"))?;
    if let Some(service) = chat::service(kind) {
        if chat_id.is_some() {
            return Err(wrong("chatId", &"belongs to telegram"));
        }
        let parsed = chat::parse(service, &Sent { url, token, user }, hosts, kept);
        let chat = parsed.map_err(|refused| wrong(refused.part.as_str(), &refused.why))?;
        return Ok(Channel::Chat(chat));
    }
    if !OWN_TYPES.contains(&kind) {
        let types: Vec<_> = channel_types().collect();
        return Err(wrong("type", &format_args!("must be one of {}", types.join(", "))));
    }
    for (member, is_sent) in [("token", token.is_some()), ("user", user.is_some())] {
        if is_sent {
            return Err(wrong(member, &"belongs to a chat service"));
        }
    }
    match (kind, url, chat_id) {
        ("email", None, None) => Ok(Channel::Email),
        ("webhook", Some(url), None) => {
            let url = WebhookUrl::parse_by(hosts, url.reveal())
                .map_err(|err| wrong("url", &err.of_channel()))?;
            Ok(Channel::Webhook { url })
        }
        ("telegram", None, Some(chat_id)) => Ok(Channel::Telegram { chat_id }),
        ("webhook", None, _) => Err(wrong("url", &"is required")),
        ("telegram", _, None) => Err(wrong("chatId", &"is required")),
        ("email" | "telegram", Some(_), _) => {
            Err(wrong("url", &"belongs to a webhook or a chat service"))
        }
        _ => Err(wrong("chatId", &"belongs to telegram")),
    }
}

/// Refuses channels that the operator has not set up. The log names the missing setting.
fn check_configured(configured: ConfiguredChannels, channels: &[Channel]) -> Result<(), ApiError> {
    for (at, channel) in channels.iter().enumerate() {
        let (is_there, what, setting) = match channel {
            Channel::Email => (configured.email, "email", "smtp.host"),
            Channel::Webhook { .. } | Channel::Chat(_) => {
                (configured.webhook, "webhook", "webhooks")
            }
            Channel::Telegram { .. } => (configured.telegram, "telegram", "telegram.token"),
        };
        if !is_there {
            tracing::warn!(setting, "alert rule refused: {what} delivery is not set up");
            let why = "delivery is not set up on this server; ask its operator";
            return Err(ApiError::parameter(format!("channels[{at}]"), format!("{what} {why}")));
        }
    }
    Ok(())
}

/// Checks the addresses that the hosts of webhooks and chat services resolve to now. A host that does not resolve passes: the
/// guard checks again at every call.
async fn check_webhooks(guard: &Guard, channels: &[Channel]) -> Result<(), ApiError> {
    let refused = |at, what: String| ApiError::parameter(format!("channels[{at}].url"), what);
    let checks = channels.iter().enumerate().map(async |(at, channel)| {
        let Some(url) = channel.url() else { return Ok(()) };
        match guard.vet(&url.to_url()).await {
            Ok(_) | Err(GuardError::Unresolved { .. }) => Ok(()),
            Err(GuardError::Refused(err)) => Err(refused(at, err.of_channel())),
            Err(err) => Err(refused(at, err.to_string())),
        }
    });
    join_all(checks).await.into_iter().collect()
}
