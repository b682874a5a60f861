//! What accounts own, as events and snapshots store it.
//!
//! Types of their own, so that a change of those in memory cannot change a stored byte. The rules of
//! [`super`] hold here: fields and variants are stored by their place, and are never reordered,
//! removed or changed.

use compact_str::CompactString;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::accounts::owned::claims::{Attribution, Claim};
use crate::accounts::owned::replies::KeptReply;
use crate::accounts::owned::rules::{Channel, Rule, RuleFilter, WebhookSecret};
use crate::accounts::owned::watches::WatchEntry;
use crate::accounts::secret::Secret;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::money::Usd;
use crate::vocab::name::{DomainName, NAME_OCTETS_MAX};
use crate::vocab::query::Substring;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;

/// A name and where its suffix starts, since the list of public suffixes changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredName(pub DomainName);

impl Serialize for StoredName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.label_len(), self.0.as_str()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StoredName, D::Error> {
        let (label_len, text) = <(u8, CompactString)>::deserialize(deserializer)?;
        Some(text)
            .filter(|text| text.len() <= NAME_OCTETS_MAX)
            .and_then(|text| DomainName::from_stored(text.as_bytes(), label_len))
            .map(StoredName)
            .ok_or_else(|| D::Error::custom("it is no name with a label of that length"))
    }
}

/// A [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClaim {
    id: ClaimId,
    domain: StoredName,
    status: ClaimStatus,
    registrar: Option<Box<str>>,
    acquired_price: Option<Usd>,
    resale_price: Option<Usd>,
    sold_at: Option<UnixMs>,
    reported_at: UnixMs,
    updated_at: UnixMs,
    user_notes: Option<Box<str>>,
    alert_rule: Option<(RuleId, CompactString)>,
}

impl From<Claim> for StoredClaim {
    fn from(claim: Claim) -> StoredClaim {
        StoredClaim {
            id: claim.id,
            domain: StoredName(claim.domain),
            status: claim.status,
            registrar: claim.registrar,
            acquired_price: claim.acquired_price,
            resale_price: claim.resale_price,
            sold_at: claim.sold_at,
            reported_at: claim.reported_at,
            updated_at: claim.updated_at,
            user_notes: claim.user_notes,
            alert_rule: claim.alert_rule.map(|rule| (rule.id, rule.name)),
        }
    }
}

impl From<StoredClaim> for Claim {
    fn from(stored: StoredClaim) -> Claim {
        Claim {
            id: stored.id,
            domain: stored.domain.0,
            status: stored.status,
            registrar: stored.registrar,
            acquired_price: stored.acquired_price,
            resale_price: stored.resale_price,
            sold_at: stored.sold_at,
            reported_at: stored.reported_at,
            updated_at: stored.updated_at,
            user_notes: stored.user_notes,
            alert_rule: stored.alert_rule.map(|(id, name)| Box::new(Attribution { id, name })),
        }
    }
}

/// A [`WatchEntry`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWatch {
    name: StoredName,
    added_at: UnixMs,
    external: bool,
    registered_again: bool,
}

impl From<WatchEntry> for StoredWatch {
    fn from(entry: WatchEntry) -> StoredWatch {
        let WatchEntry { name, added_at, external, registered_again } = entry;
        StoredWatch { name: StoredName(name), added_at, external, registered_again }
    }
}

impl From<StoredWatch> for WatchEntry {
    fn from(stored: StoredWatch) -> WatchEntry {
        let StoredWatch { name, added_at, external, registered_again } = stored;
        WatchEntry { name: name.0, added_at, external, registered_again }
    }
}

/// A [`Rule`]. Texts are stored as texts: what made them canonical may be another's tomorrow.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRule {
    id: RuleId,
    name: CompactString,
    filter: StoredFilter,
    channels: Vec<StoredChannel>,
    active: bool,
    created_at: UnixMs,
    /// Webhook and secret.
    secrets: Vec<(String, Secret)>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredFilter {
    tlds: Vec<CompactString>,
    min_dqs: Option<Dqs>,
    max_length: Option<u8>,
    contains: Option<String>,
    stages: Vec<Stage>,
}

/// A [`Channel`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredChannel {
    /// As [`Channel::Email`], and so on.
    Email,
    Webhook {
        url: String,
    },
    Telegram {
        chat_id: String,
    },
}

impl From<Rule> for StoredRule {
    fn from(rule: Rule) -> StoredRule {
        let RuleFilter { tlds, min_dqs, max_length, contains, stages } = rule.filter;
        let contains = contains.map(|part| part.as_str().to_owned());
        let secrets = rule.secrets.into_iter().map(|it| (it.url.as_str().to_owned(), it.secret));
        StoredRule {
            id: rule.id,
            name: rule.name,
            filter: StoredFilter { tlds, min_dqs, max_length, contains, stages },
            channels: rule.channels.into_iter().map(StoredChannel::from).collect(),
            active: rule.active,
            created_at: rule.created_at,
            secrets: secrets.collect(),
        }
    }
}

impl From<StoredRule> for Rule {
    fn from(stored: StoredRule) -> Rule {
        let StoredFilter { tlds, min_dqs, max_length, contains, stages } = stored.filter;
        let contains = contains.map(Substring::from_stored);
        let secret = |(url, secret)| WebhookSecret { url: WebhookUrl::from_stored(url), secret };
        Rule {
            id: stored.id,
            name: stored.name,
            filter: RuleFilter { tlds, min_dqs, max_length, contains, stages },
            channels: stored.channels.into_iter().map(Channel::from).collect(),
            active: stored.active,
            created_at: stored.created_at,
            secrets: stored.secrets.into_iter().map(secret).collect(),
        }
    }
}

impl From<Channel> for StoredChannel {
    fn from(channel: Channel) -> StoredChannel {
        match channel {
            Channel::Email => StoredChannel::Email,
            Channel::Webhook { url } => StoredChannel::Webhook { url: url.as_str().to_owned() },
            Channel::Telegram { chat_id } => StoredChannel::Telegram { chat_id },
        }
    }
}

impl From<StoredChannel> for Channel {
    fn from(stored: StoredChannel) -> Channel {
        match stored {
            StoredChannel::Email => Channel::Email,
            StoredChannel::Webhook { url } => {
                Channel::Webhook { url: WebhookUrl::from_stored(url) }
            }
            StoredChannel::Telegram { chat_id } => Channel::Telegram { chat_id },
        }
    }
}

/// A [`KeptReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReply {
    key: [u8; 16],
    fingerprint: [u8; 32],
    at: UnixMs,
    status: u16,
    body: Box<[u8]>,
}

impl StoredReply {
    /// When the request was carried out.
    pub fn at(&self) -> UnixMs {
        self.at
    }
}

impl From<KeptReply> for StoredReply {
    fn from(reply: KeptReply) -> StoredReply {
        let KeptReply { key, fingerprint, at, status, body } = reply;
        StoredReply { key, fingerprint, at, status, body }
    }
}

impl From<StoredReply> for KeptReply {
    fn from(stored: StoredReply) -> KeptReply {
        let StoredReply { key, fingerprint, at, status, body } = stored;
        KeptReply { key, fingerprint, at, status, body }
    }
}
