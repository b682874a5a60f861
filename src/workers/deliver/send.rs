//! Sends one delivery through its channel.

use std::sync::Arc;

use anyhow::Context;
use chrono::{DateTime, Utc};

use crate::accounts::{Channel, MatchedName, Message, MessageKind, PendingDelivery};
use crate::index::generation::live::LiveIndex;
use crate::outbound::alert::{Alert, AlertName, Kind, Links, MAIL_NAMES_MAX};
use crate::outbound::dns::Dns;
use crate::outbound::email::{Mail, Mailer};
use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::outbound::settings::Settings;
use crate::outbound::telegram::Bot;
use crate::outbound::webhook;
use crate::outbound::{Failure, SendError};
use crate::vocab::ids::UnsubscribeToken;
use crate::workers::deliver::queue::{Health, Target};

/// The clients of all channels. Cheap to clone.
#[derive(Clone)]
pub struct Senders {
    webhooks: Client,
    mailer: Option<Mailer>,
    bot: Option<Bot>,
    /// The public URL of this server.
    home: Option<String>,
    /// Explains the scores of names in mails.
    live: Arc<LiveIndex>,
}

impl Senders {
    /// Creates the clients of the configured channels. Webhooks go through `guard`.
    ///
    /// # Errors
    /// A file that the settings name is unreadable or invalid.
    pub fn new(
        settings: &Settings,
        guard: Guard,
        dns: &Dns,
        live: Arc<LiveIndex>,
    ) -> anyhow::Result<Senders> {
        let webhooks = Client::new(guard, settings.webhooks.ca_file.as_deref());
        let mailer = settings.smtp.as_ref().map(Mailer::new).transpose()?;
        let bot = settings.telegram.as_ref().map(|telegram| {
            let guard = Guard::new(settings.rules(&telegram.allow), dns.clone());
            let client = Client::new(guard, telegram.ca_file.as_deref());
            Bot::new(telegram, client.context("telegram.ca_file")?)
        });
        Ok(Senders {
            webhooks: webhooks.context("webhooks.ca_file")?,
            mailer,
            bot: bot.transpose()?,
            home: settings.public_url.as_ref().map(|url| url.as_str().to_owned()),
            live,
        })
    }

    /// Sends a delivery.
    ///
    /// # Errors
    /// The receiver did not accept it.
    pub async fn send(
        &self,
        pending: PendingDelivery,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let mut alert = alert(&pending);
        match &*pending.delivery.channel {
            Channel::Webhook { url } => {
                let secret = pending.secret.as_ref().ok_or_else(|| not_configured("its secret"))?;
                let id = format!("msg_{}", alert.delivery_id);
                let body = alert.json();
                let message = webhook::Message { url, secret, id: &id, body };
                webhook::send(&self.webhooks, message, now).await
            }
            Channel::Email => {
                let mailer = self.mailer.as_ref().ok_or_else(|| not_configured("smtp.host"))?;
                let index = self.live.current();
                for name in alert.names.iter_mut().take(MAIL_NAMES_MAX) {
                    name.reason = index.explanation(&name.domain);
                }
                self.mail(mailer, &pending, &alert).await
            }
            Channel::Telegram { chat_id } => {
                let bot = self.bot.as_ref().ok_or_else(|| not_configured("telegram.token"))?;
                bot.send(chat_id, &alert.chat()).await
            }
        }
    }

    async fn mail(
        &self,
        mailer: &Mailer,
        pending: &PendingDelivery,
        alert: &Alert,
    ) -> Result<(), SendError> {
        let token = pending.unsubscribe.as_ref().map(UnsubscribeToken::reveal);
        let unsubscribe = self.home.as_ref().zip(token);
        let unsubscribe = unsubscribe.map(|(home, token)| format!("{home}/unsubscribe/{token}"));
        let links = Links { home: self.home.as_deref(), unsubscribe: unsubscribe.as_deref() };
        let mail = Mail {
            id: &alert.delivery_id,
            to: pending.email.as_str(),
            subject: &alert.headline(),
            text: alert.mail_text(links),
            html: alert.mail_html(links),
            unsubscribe: unsubscribe.as_deref(),
            at: alert.at,
        };
        mailer.send(mail).await
    }
}

/// The target of a channel: deliveries to one target share its limits.
pub fn target(channel: &Channel) -> Target {
    match channel {
        Channel::Webhook { url } => {
            let url = url.to_url();
            let host = url.host_str().unwrap_or_default();
            Target::Host(format!("{host}:{}", url.port_or_known_default().unwrap_or_default()))
        }
        Channel::Email => Target::Mail,
        Channel::Telegram { .. } => Target::Telegram,
    }
}

/// The health of a receiver after an attempt. One that rejects a single message is healthy.
pub fn health(result: &Result<(), SendError>) -> Health {
    let Err(err) = result else { return Health::Healthy };
    match (err.failure, err.retry_after) {
        _ if err.is_down => Health::Down,
        (Failure::Status(_), Some(asked)) => Health::Busy(asked),
        (Failure::Status(429 | 500..), None)
        | (Failure::Timeout | Failure::Unreachable | Failure::Tls | Failure::NotConfigured, _) => {
            Health::Unhealthy
        }
        _ => Health::Healthy,
    }
}

fn not_configured(setting: &str) -> SendError {
    tracing::error!(setting, "a delivery needs a setting that is missing");
    let detail = format!("{setting} is not set");
    SendError { is_down: true, ..SendError::new(Failure::NotConfigured, detail) }
}

fn alert(pending: &PendingDelivery) -> Alert {
    let Message { kind, at, list_day, total, names } = &pending.delivery.message;
    Alert {
        kind: match kind {
            MessageKind::Match => Kind::Match,
            MessageKind::Test => Kind::Test,
        },
        delivery_id: pending.delivery.id.to_string(),
        rule_id: pending.rule.id,
        rule_name: pending.rule.name.to_string(),
        at: at.instant(),
        date: *list_day,
        total: *total,
        names: names.iter().flat_map(|names| names.iter()).map(|name| alert_name(name)).collect(),
    }
}

fn alert_name(name: &MatchedName) -> AlertName {
    let MatchedName { name, dqs, drop_date, release, stage } = name;
    AlertName {
        domain: name.clone(),
        dqs: *dqs,
        drop_date: *drop_date,
        available_on: *release,
        stage: *stage,
        reason: None,
    }
}
