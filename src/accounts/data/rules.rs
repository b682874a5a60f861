//! The alert rules of one account.

use std::sync::Arc;

use compact_str::CompactString;

use crate::accounts::secret::Secret;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::RuleId;
use crate::vocab::query::Substring;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;

/// Which names a rule is about. What is `None` or empty does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFilter {
    /// As [`fold_tld`](crate::vocab::query::fold_tld) gives them; at most 100.
    pub tlds: Vec<CompactString>,
    /// This score or a better one.
    pub min_dqs: Option<Dqs>,
    /// Characters of the label at most: 1 to 63.
    pub max_length: Option<u8>,
    /// A part of the name.
    pub contains: Option<Substring>,
    /// One of these stages.
    pub stages: Vec<Stage>,
}

/// Where an alert goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// To the account's address.
    Email,
    /// Posted to an address, signed.
    Webhook {
        /// The address.
        url: WebhookUrl,
    },
    /// To a chat.
    Telegram {
        /// Telegram's id of it: 1 to 64 characters without white space.
        chat_id: String,
    },
}

/// An alert rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id.
    pub id: RuleId,
    /// What its owner calls it: 1 to 100 characters on one line.
    pub name: CompactString,
    /// Which names.
    pub filter: RuleFilter,
    /// Where alerts go: 1 to 5, none twice.
    pub channels: Vec<Channel>,
    /// Whether it is at work.
    pub active: bool,
    /// When it was added.
    pub created_at: UnixMs,
    /// One for each webhook channel, in their order.
    pub secrets: Vec<WebhookSecret>,
}

/// What a webhook's messages are signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSecret {
    /// Of which webhook of the rule.
    pub url: WebhookUrl,
    /// `whsec_` and 32 random bytes in base64.
    pub secret: Secret,
}

/// A rule to be added; it is active.
#[derive(Clone, Debug)]
pub struct NewRule {
    /// As in [`Rule`].
    pub name: String,
    /// As in [`Rule`].
    pub filter: RuleFilter,
    /// As in [`Rule`].
    pub channels: Vec<Channel>,
}

/// What to change of a rule; `None` leaves it.
#[derive(Clone, Debug, Default)]
pub struct RulePatch {
    /// As in [`Rule`].
    pub name: Option<String>,
    /// The whole filter.
    pub filter: Option<RuleFilter>,
    /// All channels.
    pub channels: Option<Vec<Channel>>,
    /// Whether it is at work.
    pub active: Option<bool>,
}

/// A rule that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRule {
    /// The rule as it is now.
    pub rule: Rule,
    /// The secrets of webhooks it did not have before, to be shown once; those it had keep theirs.
    pub new_secrets: Vec<WebhookSecret>,
}

/// All rules of an account, newest first, then id descending. At most a thousand. A clone copies
/// pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::accounts) struct Rules(Vec<Arc<Rule>>);

impl Rules {
    pub(in crate::accounts) fn from_unsorted(mut rules: Vec<Rule>) -> Rules {
        rules.sort_by_key(|rule| std::cmp::Reverse((rule.created_at, rule.id)));
        Rules(rules.into_iter().map(Arc::new).collect())
    }

    pub(in crate::accounts) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many are at work.
    pub(in crate::accounts) fn active(&self) -> usize {
        self.0.iter().filter(|rule| rule.active).count()
    }

    pub(in crate::accounts) fn get(&self, id: RuleId) -> Option<&Rule> {
        self.shared(id).map(Arc::as_ref)
    }

    /// The rule, for those who keep it.
    pub(in crate::accounts) fn shared(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.0.iter().find(|rule| rule.id == id)
    }

    /// The first `limit` that are at work, oldest first: those the plan still allows, should it
    /// have shrunk since.
    pub(in crate::accounts) fn at_work(&self, limit: u32) -> impl Iterator<Item = &Arc<Rule>> {
        self.0.iter().rev().filter(|rule| rule.active).take(limit as usize)
    }

    pub(in crate::accounts) fn newest_first(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Rule> + ExactSizeIterator {
        self.0.iter().map(Arc::as_ref)
    }

    /// Adds a rule, or puts it in the place of the one with its id.
    pub(in crate::accounts) fn put(&mut self, rule: Rule) {
        self.remove(rule.id);
        let place = self
            .0
            .partition_point(|other| (other.created_at, other.id) > (rule.created_at, rule.id));
        self.0.insert(place, Arc::new(rule));
    }

    pub(in crate::accounts) fn remove(&mut self, id: RuleId) {
        self.0.retain(|rule| rule.id != id);
    }
}
