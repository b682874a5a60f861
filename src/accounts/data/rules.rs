//! The alert rules of one account.

use std::iter;
use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::data::fields::row;
use crate::data::sorted::Sorted;
use crate::query::stored::Conditions;
use crate::vocab::chat::Chat;
use crate::vocab::ids::{RuleId, SearchId};
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;

/// A destination of alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// E-mail to the account's address.
    Email,
    /// A signed POST request.
    Webhook { url: WebhookUrl },
    /// A Telegram chat, by its number or `@name`.
    Telegram { chat_id: String },
    /// A chat service.
    Chat(Chat),
}

impl Channel {
    /// Returns the chat service; `None` for another channel.
    pub fn chat(&self) -> Option<&Chat> {
        match self {
            Channel::Chat(chat) => Some(chat),
            _ => None,
        }
    }

    /// Returns the name of its type in the API: `email`, `webhook`, `telegram`, or the name of the
    /// chat service.
    pub fn type_name(&self) -> &str {
        match self {
            Channel::Email => "email",
            Channel::Webhook { .. } => "webhook",
            Channel::Telegram { .. } => "telegram",
            Channel::Chat(chat) => &chat.service,
        }
    }

    /// Returns the URL that its owner chose, if it has one.
    pub fn url(&self) -> Option<&WebhookUrl> {
        match self {
            Channel::Webhook { url } => Some(url),
            Channel::Chat(chat) => chat.hook.url.as_ref(),
            Channel::Email | Channel::Telegram { .. } => None,
        }
    }
}

/// An alert rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub id: RuleId,
    /// 1 to 100 characters on one line.
    pub name: CompactString,
    /// Conditions, all of which a name must match.
    pub filter: Conditions,
    /// 1 to 5 distinct channels.
    pub channels: Vec<Channel>,
    pub active: bool,
    pub created_at: UnixMs,
    /// Secrets of the webhook channels, in order of the channels.
    pub secrets: Vec<WebhookSecret>,
    /// The saved search from which it was created.
    pub search: Option<SearchId>,
}

row!(Rule {
    1 id, 2 name, 3 created_at
} optional {
    4 filter, 5 channels, 6 active, 7 secrets, 8 search
});

/// The key that signs the messages of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSecret {
    pub url: WebhookUrl,
    /// `whsec_` and 32 random bytes in base64.
    pub secret: Secret,
    /// The secret before, and until when messages are signed with it too.
    pub former: Option<(Secret, UnixMs)>,
}

row!(WebhookSecret { 1 url, 2 secret } optional { 3 former });

impl WebhookSecret {
    pub fn new(url: WebhookUrl, secret: Secret) -> WebhookSecret {
        WebhookSecret { url, secret, former: None }
    }

    /// Returns the secrets that sign a message at this time: the present one, then the former one.
    pub fn signing(&self, now: UnixMs) -> impl Iterator<Item = &Secret> {
        let former = self.former.as_ref().filter(|(_, until)| now < *until);
        iter::once(&self.secret).chain(former.map(|(secret, _)| secret))
    }
}

/// Approximate size in memory of a rule without its texts, but with its outbox.
const RULE_BYTES: u64 = 1_024;

impl Rule {
    /// Returns the approximate size in memory of the rule.
    pub fn bytes(&self) -> u64 {
        let channel = |channel: &Channel| match channel {
            Channel::Email => 0,
            // The URL is also stored with its secret.
            Channel::Webhook { url } => 2 * url.as_str().len(),
            Channel::Telegram { chat_id } => chat_id.len(),
            Channel::Chat(chat) => chat.hook.bytes(),
        };
        let channels: usize = self.channels.iter().map(channel).sum();
        RULE_BYTES + (self.name.len() + channels) as u64 + self.filter.bytes()
    }
}

/// All rules of an account, at most 1,000, by age and id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    by_age: Sorted<(UnixMs, RuleId), Arc<Rule>>,
    bytes: u64,
}

impl Rules {
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Returns the approximate size in memory of all rules.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of active rules.
    pub fn active(&self) -> usize {
        self.by_age.values().filter(|rule| rule.active).count()
    }

    pub fn get(&self, id: RuleId) -> Option<&Rule> {
        self.get_shared(id).map(Arc::as_ref)
    }

    pub fn get_shared(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.by_age.values().find(|rule| rule.id == id)
    }

    /// Returns the first `limit` active rules, oldest first: those that remain allowed after a
    /// change to a smaller plan.
    pub fn active_within(&self, limit: u32) -> impl Iterator<Item = &Arc<Rule>> {
        self.by_age.values().filter(|rule| rule.active).take(limit as usize)
    }

    /// Returns the rules, newest first, then id descending.
    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        self.by_age.values().rev().map(Arc::as_ref)
    }

    /// Adds a rule, or replaces the one with the same id.
    pub fn put(&mut self, rule: Rule) {
        self.remove(rule.id);
        self.bytes += rule.bytes();
        self.by_age.insert((rule.created_at, rule.id), Arc::new(rule));
    }

    pub fn remove(&mut self, id: RuleId) {
        if let Some(rule) = self.get_shared(id).map(Arc::clone) {
            self.by_age.remove(&(rule.created_at, id));
            self.bytes -= rule.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_former_secret_signs_until_its_time() {
        let url = WebhookUrl::parse("https://hooks.example.com/").expect("a URL");
        let at = |ms| UnixMs::new(ms).expect("a time");
        let text = |secret: &Secret| secret.reveal().to_owned();
        let mut secret = WebhookSecret::new(url, Secret::new("new".into()));
        assert_eq!(secret.signing(at(0)).map(text).collect::<Vec<_>>(), ["new"]);
        secret.former = Some((Secret::new("old".into()), at(1_000)));
        assert_eq!(secret.signing(at(999)).map(text).collect::<Vec<_>>(), ["new", "old"]);
        assert_eq!(secret.signing(at(1_000)).map(text).collect::<Vec<_>>(), ["new"]);
    }
}
