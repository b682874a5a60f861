//! Sends one delivery through its channel.

use std::sync::Arc;

use anyhow::Context;
use chrono::{DateTime, Utc};

use crate::accounts::{
    Channel, ClosedChannel, DigestRows, DigestSearch, MatchedName, Message, MessageKind,
    MessageRows, PendingDelivery, Problem,
};
use crate::index::generation::live::LiveIndex;
use crate::outbound::alert::{self, Alert, MAIL_NAMES_MAX, MailLinks};
use crate::outbound::chat::{self, Chats};
use crate::outbound::digest::{DigestMail, SearchPart};
use crate::outbound::dns::Dns;
use crate::outbound::email::{Mail, Mailer};
use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::outbound::settings::Settings;
use crate::outbound::switched_off::Notice;
use crate::outbound::telegram::Bot;
use crate::outbound::webhook;
use crate::outbound::{Failure, SendError};
use crate::vocab::ids::{RuleId, UnsubscribeToken};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;
use crate::vocab::watched_change::WatchedChange;
use crate::workers::deliver::queue::{Health, Target};

/// The clients of all channels. Cheap to clone.
#[derive(Clone)]
pub struct Senders {
    webhooks: Client,
    chats: Chats,
    mailer: Option<Mailer>,
    bot: Option<Bot>,
    /// The public URL of this server.
    home: Option<String>,
    /// Index that explains the scores of names in mails.
    live: Arc<LiveIndex>,
}

impl Senders {
    /// Creates the clients of the configured channels. Webhooks and chats go through `guard`.
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
        let webhooks = webhooks.context("webhooks.ca_file")?;
        let home = settings.public_url.as_ref().map(|url| url.as_str().to_owned());
        let mailer = settings.smtp.as_ref().map(Mailer::new).transpose()?;
        let bot = settings.telegram.as_ref().map(|telegram| {
            let guard = Guard::new(settings.rules(&telegram.allow), dns.clone());
            let client = Client::new(guard, telegram.ca_file.as_deref());
            Bot::new(telegram, client.context("telegram.ca_file")?)
        });
        Ok(Senders {
            chats: Chats::new(
                webhooks.clone(),
                settings.webhooks.pushover_base.clone(),
                home.clone(),
            ),
            webhooks,
            mailer,
            bot: bot.transpose()?,
            home,
            live,
        })
    }

    /// Sends a delivery. Returns the new ID of a Telegram chat, if it changed.
    ///
    /// # Errors
    /// The receiver did not accept it.
    pub async fn send(
        &self,
        pending: PendingDelivery,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, SendError> {
        let mut alert = self::alert(&pending);
        match &*pending.delivery.channel {
            Channel::Webhook { url } => {
                let secret = pending.secret.as_ref().ok_or_else(|| not_configured("its secret"))?;
                let id = format!("msg_{}", alert.delivery_id);
                let body = alert.json();
                let secrets = secret.signing(UnixMs::from_instant(now)).collect();
                let message = webhook::Message { url, secrets, id: &id, body };
                webhook::send(&self.webhooks, message, now).await
            }
            Channel::Email => {
                let mailer = self.mailer.as_ref().ok_or_else(|| not_configured("smtp.host"))?;
                let index = self.live.current();
                if let Some(MessageRows::Digest(rows)) = &pending.delivery.message.content {
                    let explain = |name: &DomainName| index.explanation(name);
                    let digest = digest_mail(&pending.delivery.message, rows);
                    let parts = |links: MailLinks<'_>| {
                        (
                            digest.headline(),
                            digest.text(links, &explain),
                            digest.html(links, &explain),
                        )
                    };
                    self.mail(mailer, &pending, &alert, parts).await?;
                    return Ok(None);
                }
                alert.explain(MAIL_NAMES_MAX, |domain| index.explanation(domain));
                let parts = |links: MailLinks<'_>| {
                    (alert.headline(), alert.mail_text(links), alert.mail_html(links))
                };
                self.mail(mailer, &pending, &alert, parts).await
            }
            Channel::Telegram { chat_id } => {
                let bot = self.bot.as_ref().ok_or_else(|| not_configured("telegram.token"))?;
                return bot.send(chat_id, &alert, self.home.as_deref()).await;
            }
            Channel::Chat(chat) => self.chats.send(chat, &alert, now).await,
        }?;
        Ok(None)
    }

    /// If mail is set up, notifies the owner by mail that a channel was switched off.
    ///
    /// # Errors
    /// The mail server did not accept it.
    pub async fn report(
        &self,
        closed: &ClosedChannel,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let (Some(mailer), Some(to)) = (&self.mailer, &closed.email) else { return Ok(()) };
        // A mail about refused mails would be refused too.
        if *closed.channel == Channel::Email {
            return Ok(());
        }
        let (rule_id, rule_name) = (closed.rule.id, &*closed.rule.name);
        let (channel, why) = (name(&closed.channel), why(closed.problem));
        let notice =
            Notice { rule_id, rule_name, channel: &channel, why: &why, home: self.home.as_deref() };
        let mail = Mail {
            id: &format!("{}-off", closed.delivery),
            to: to.as_str(),
            subject: &notice.subject(),
            text: notice.text(),
            html: notice.html(),
            unsubscribe: None,
            at: now,
        };
        mailer.send(mail).await
    }

    /// Mails a message with the subject, text and HTML that `parts` returns.
    async fn mail(
        &self,
        mailer: &Mailer,
        pending: &PendingDelivery,
        alert: &Alert,
        parts: impl Fn(MailLinks<'_>) -> (String, String, String),
    ) -> Result<(), SendError> {
        let token = pending.unsubscribe.as_ref().map(UnsubscribeToken::reveal);
        let unsubscribe = self.home.as_ref().zip(token);
        let unsubscribe = unsubscribe.map(|(home, token)| format!("{home}/unsubscribe/{token}"));
        let links = MailLinks { home: self.home.as_deref(), unsubscribe: unsubscribe.as_deref() };
        let (subject, text, html) = parts(links);
        let mail = Mail {
            id: &alert.delivery_id,
            to: pending.email.as_str(),
            subject: &subject,
            text,
            html,
            unsubscribe: unsubscribe.as_deref(),
            at: alert.at,
        };
        mailer.send(mail).await
    }
}

/// The target of a channel. All deliveries to a target share its limits.
pub fn target(channel: &Channel) -> Target {
    match channel {
        Channel::Webhook { url } => host(url),
        Channel::Email => Target::Mail,
        Channel::Telegram { .. } => Target::Telegram,
        Channel::Chat(chat) => match &chat.hook.url {
            Some(url) => host(url),
            None => Target::Host(chat.service.to_string()),
        },
    }
}

/// Host and port of a URL.
fn host(url: &WebhookUrl) -> Target {
    let url = url.to_url();
    let host = url.host_str().unwrap_or_default();
    Target::Host(format!("{host}:{}", url.port_or_known_default().unwrap_or_default()))
}

/// The label of a channel's kind in metrics.
pub fn kind(channel: &Channel) -> &'static str {
    match channel {
        Channel::Webhook { .. } => "webhook",
        Channel::Email => "email",
        Channel::Telegram { .. } => "telegram",
        Channel::Chat(_) => "chat",
    }
}

/// A description of a channel that its owner recognises, without secrets.
fn name(channel: &Channel) -> String {
    match channel {
        Channel::Webhook { url } => {
            format!("the webhook at {}", url.to_url().host_str().unwrap_or_default())
        }
        Channel::Email => "e-mail".to_owned(),
        Channel::Telegram { chat_id } => format!("the Telegram chat {chat_id}"),
        Channel::Chat(chat) => format!("{} ({})", chat::label(&chat.service), chat.hook.label()),
    }
}

/// States why a channel was switched off.
fn why(problem: Problem) -> String {
    let last = match problem {
        Problem::Gone => return "It responded that this address is gone.".to_owned(),
        Problem::Refused => "its address leads into a private network",
        Problem::Timeout => "it did not respond in time",
        Problem::Unreachable => "there was no connection",
        Problem::Tls => "the TLS connection failed",
        Problem::Status(_) => "it responded with an error",
        Problem::Rejected => "it refused the message",
        Problem::NotConfigured | Problem::SwitchedOff => "it is not set up",
    };
    format!("Nothing could be delivered to it for 5 days. At the last attempt, {last}.")
}

/// The health of a receiver after an attempt. A channel that rejects a single message is healthy.
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

fn digest_mail<'a>(message: &Message, rows: &'a DigestRows) -> DigestMail<'a> {
    let names = |names: &'a [MatchedName]| names.iter().map(|name| &**name).collect();
    let search = |search: &'a DigestSearch| {
        let DigestSearch { id, name, total, names: found } = search;
        SearchPart { id: *id, name, total: *total, names: names(found) }
    };
    let searches = rows.searches.iter().map(search).collect();
    DigestMail { date: message.list_day, total: message.total, best: names(&rows.best), searches }
}

fn alert(pending: &PendingDelivery) -> Alert {
    let Message { kind, at, list_day, total, .. } = pending.delivery.message;
    let message = &pending.delivery.message;
    let content = match pending.rule.id {
        RuleId::WATCHLIST => {
            let changes = message.changes().iter().map(|it| WatchedChange::clone(it).into());
            alert::Content::Watchlist(changes.collect())
        }
        id => alert::Content::Rule {
            id,
            name: pending.rule.name.to_string(),
            names: message.names().iter().map(|it| it.0.clone()).collect(),
        },
    };
    Alert {
        is_test: kind == MessageKind::Test,
        delivery_id: pending.delivery.id.to_string(),
        at: at.instant(),
        date: list_day,
        total,
        content,
        reasons: Vec::new(),
    }
}
