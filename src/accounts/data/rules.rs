//! The alert rules of one account.

use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::accounts::data::fields::row;
use crate::accounts::data::sorted::Sorted;
use crate::query::stored::Conditions;
use crate::query::text::Substring;
use crate::vocab::chat::Chat;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::{RuleId, SearchId};
use crate::vocab::secret::Secret;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;

/// The names that a rule matches. A field that is `None` or empty does not filter. Stored as conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Conditions", into = "Conditions")]
pub struct RuleFilter {
    /// At most 100, each as [`fold_tld`](crate::vocab::tld::fold_tld) returns it.
    pub tlds: Vec<CompactString>,
    /// Lowest score.
    pub min_dqs: Option<Dqs>,
    /// Maximum length of the label in characters, 1 to 63.
    pub max_length: Option<u8>,
    /// A part of the whole name.
    pub contains: Option<Substring>,
    pub stages: Vec<Stage>,
    /// All other conditions.
    pub more: Conditions,
}

impl RuleFilter {
    /// Splits validated conditions.
    pub fn new(conditions: &Conditions) -> RuleFilter {
        let number = |name| conditions.get(name).parse().ok();
        let items = |name| conditions.get(name).split(',').filter(|item| !item.is_empty());
        let contains = Some(conditions.get("q")).filter(|text| !text.is_empty());
        let others = conditions.pairs().filter(|(name, _)| !OWN.contains(name));
        RuleFilter {
            tlds: items("tld").map(CompactString::from).collect(),
            min_dqs: number("min_dqs").and_then(Dqs::new),
            max_length: number("max_len"),
            contains: contains.map(|text| Substring::from_stored(text.to_owned())),
            stages: items("stage").filter_map(|stage| stage.parse().ok()).collect(),
            more: Conditions::new(others),
        }
    }

    /// All conditions.
    pub fn conditions(&self) -> Conditions {
        let number = |number: Option<u8>| number.map(|it| it.to_string()).unwrap_or_default();
        let stages: Vec<_> = self.stages.iter().map(|stage| stage.as_str()).collect();
        let contains = self.contains.as_ref().map_or("", Substring::as_str);
        let values = [
            self.tlds.join(","),
            number(self.min_dqs.map(Dqs::points)),
            number(self.max_length),
            contains.to_owned(),
            stages.join(","),
        ];
        let own = OWN.into_iter().zip(values.iter().map(String::as_str));
        Conditions::new(own.chain(self.more.pairs()))
    }
}

impl From<Conditions> for RuleFilter {
    fn from(conditions: Conditions) -> RuleFilter {
        RuleFilter::new(&conditions)
    }
}

impl From<RuleFilter> for Conditions {
    fn from(filter: RuleFilter) -> Conditions {
        filter.conditions()
    }
}

/// Parameters of the conditions that have a field.
const OWN: [&str; 5] = ["tld", "min_dqs", "max_len", "q", "stage"];

/// A destination of alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// Mail to the account's address.
    Email,
    /// A signed POST request.
    Webhook { url: WebhookUrl },
    /// A Telegram chat, by its number or `@name`.
    Telegram { chat_id: String },
    /// A chat service.
    Chat(Chat),
}

impl Channel {
    /// The chat service; `None` for another channel.
    pub fn chat(&self) -> Option<&Chat> {
        match self {
            Channel::Chat(chat) => Some(chat),
            _ => None,
        }
    }

    /// Name of its type in the API: `email`, `webhook`, `telegram`, or that of the chat service.
    pub fn type_name(&self) -> &str {
        match self {
            Channel::Email => "email",
            Channel::Webhook { .. } => "webhook",
            Channel::Telegram { .. } => "telegram",
            Channel::Chat(chat) => &chat.service,
        }
    }

    /// The address that its owner chose.
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
    pub filter: RuleFilter,
    /// 1 to 5 distinct channels.
    pub channels: Vec<Channel>,
    pub active: bool,
    pub created_at: UnixMs,
    /// One for each webhook channel, in their order.
    pub secrets: Vec<WebhookSecret>,
    /// The saved search that it was made from.
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
}

row!(WebhookSecret { 1 url, 2 secret });

/// Approximate memory of a rule besides its texts, its outbox included.
const RULE_BYTES: u64 = 1_024;

impl Rule {
    /// Approximate memory of the rule.
    pub fn bytes(&self) -> u64 {
        let tlds: usize = self.filter.tlds.iter().map(|tld| size_of_val(tld) + tld.len()).sum();
        let channel = |channel: &Channel| match channel {
            Channel::Email => 0,
            // The URL is stored with its secret too.
            Channel::Webhook { url } => 2 * url.as_str().len(),
            Channel::Telegram { chat_id } => chat_id.len(),
            Channel::Chat(chat) => chat.hook.bytes(),
        };
        let channels: usize = self.channels.iter().map(channel).sum();
        RULE_BYTES + (self.name.len() + tlds + channels) as u64 + self.filter.more.bytes()
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

    /// Approximate memory of all rules.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of active rules.
    pub fn active(&self) -> usize {
        self.by_age.values().filter(|rule| rule.active).count()
    }

    pub fn get(&self, id: RuleId) -> Option<&Rule> {
        self.get_shared(id).map(Arc::as_ref)
    }

    pub fn get_shared(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.by_age.values().find(|rule| rule.id == id)
    }

    /// The first `limit` active rules, oldest first: those that the plan allows if it has shrunk.
    pub fn active_within(&self, limit: u32) -> impl Iterator<Item = &Arc<Rule>> {
        self.by_age.values().filter(|rule| rule.active).take(limit as usize)
    }

    /// Newest first, then id descending.
    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Rule> {
        self.by_age.values().rev().map(Arc::as_ref)
    }

    /// Adds a rule, or replaces the one with its id.
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
