//! The alert rules of one account.

use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::vocab::dqs::Dqs;
use crate::vocab::ids::RuleId;
use crate::vocab::query::Substring;
use crate::vocab::secret::Secret;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;

/// The names that a rule matches. A field that is `None` or empty does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFilter {
    /// At most 100, each as [`fold_tld`](crate::vocab::query::fold_tld) returns it.
    pub tlds: Vec<CompactString>,
    /// Lowest score.
    pub min_dqs: Option<Dqs>,
    /// Maximum length of the label in characters, 1 to 63.
    pub max_length: Option<u8>,
    pub contains: Option<Substring>,
    pub stages: Vec<Stage>,
}

/// A destination of alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// Mail to the account's address.
    Email,
    /// A signed POST request.
    Webhook { url: WebhookUrl },
    /// A Telegram chat, by its number or `@name`.
    Telegram { chat_id: String },
}

/// An alert rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// The key that signs the messages of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookSecret {
    pub url: WebhookUrl,
    /// `whsec_` and 32 random bytes in base64.
    pub secret: Secret,
}

/// All rules of an account, at most 1,000: newest first, then id descending. A clone copies
/// pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Arc<Rule>>);

impl Rules {
    pub fn from_unsorted(mut rules: Vec<Rule>) -> Rules {
        rules.sort_by_key(|rule| std::cmp::Reverse((rule.created_at, rule.id)));
        Rules(rules.into_iter().map(Arc::new).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of active rules.
    pub fn active(&self) -> usize {
        self.0.iter().filter(|rule| rule.active).count()
    }

    pub fn get(&self, id: RuleId) -> Option<&Rule> {
        self.get_shared(id).map(Arc::as_ref)
    }

    pub fn get_shared(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.0.iter().find(|rule| rule.id == id)
    }

    /// The first `limit` active rules, oldest first: those that the plan allows if it has shrunk.
    pub fn active_within(&self, limit: u32) -> impl Iterator<Item = &Arc<Rule>> {
        self.0.iter().rev().filter(|rule| rule.active).take(limit as usize)
    }

    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Rule> + ExactSizeIterator {
        self.0.iter().map(Arc::as_ref)
    }

    /// Adds a rule, or replaces the one with its id.
    pub fn put(&mut self, rule: Rule) {
        self.remove(rule.id);
        let key = |rule: &Rule| (rule.created_at, rule.id);
        let place = self.0.partition_point(|other| key(other) > key(&rule));
        self.0.insert(place, Arc::new(rule));
    }

    pub fn remove(&mut self, id: RuleId) {
        self.0.retain(|rule| rule.id != id);
    }
}
