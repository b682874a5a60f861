//! The rows of the former layout, whose fields were stored by position, and their conversion to
//! present ones.

use std::sync::Arc;

use bincode::Options;
use compact_str::CompactString;
use serde::Deserialize;

use crate::data::deliveries::{DeliveryStatus, MessageKind, Problem};
use crate::data::feeds::FeedOf;
use crate::data::rules::Channel;
use crate::data::watch_alerts::Quiet;
use crate::data::{
    account, claims, deliveries, feeds, keys, nodes, responses, rules, searches, watch_alerts,
    watches,
};
use crate::email::Email;
use crate::event;
use crate::journal::PAYLOAD_BYTES_MAX;
use crate::keys::StoredKey;
use crate::password::PasswordHash;
use crate::query::stored::Conditions;
use crate::query::text::Substring;
use crate::quota::DayUsage;
use crate::store::progress;
use crate::token::TokenDigest;
use crate::vocab::change::ChangeKinds;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::dropped_name;
use crate::vocab::ids::{AccountId, ClaimId, DeliveryId, KeyId, RuleId, SearchId};
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::plan::Plan;
use crate::vocab::scope::Scopes;
use crate::vocab::secret::Secret;
use crate::vocab::stage::Stage;
use crate::vocab::tag::Tag;
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;
use crate::vocab::zone::{Hour, Zone};

/// Returns the codec of the former layout.
pub fn codec() -> impl Options {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_little_endian()
        .with_limit(PAYLOAD_BYTES_MAX as u64)
        .reject_trailing_bytes()
}

/// Rows that have the fields of the present type of the same name, in their former order.
macro_rules! rows {
    ($($row:ident in $place:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(Deserialize)]
            pub struct $row {
                $(pub $field: $type,)*
            }

            impl From<$row> for $place::$row {
                fn from(row: $row) -> $place::$row {
                    $place::$row { $($field: row.$field,)* }
                }
            }
        )*
    };
}

rows! {
    Attribution in claims { id: RuleId, name: CompactString }
    WatchEntry in watches {
        name: DomainName, added_at: UnixMs, external: bool, registered_again: bool,
    }
    WatchDetails in watches {
        note: Option<Box<str>>, tags: Vec<Tag>, max_bid: Option<Usd>, venue: Option<Box<str>>,
    }
    WatchAlerts in watch_alerts {
        kinds: ChangeKinds, digest: Option<Hour>, quiet: Option<Quiet>, zone: Zone,
    }
    EntryAlerts in watch_alerts { kinds: ChangeKinds, channels: Vec<CompactString> }
    Feed in feeds { of: FeedOf, digest: TokenDigest, created: Day }
    KeptResponse in responses {
        key: [u8; 16], fingerprint: [u8; 32], at: UnixMs, status: u16, body: Box<[u8]>,
    }
    SavedSearch in searches {
        id: SearchId, name: CompactString, conditions: Conditions, created_at: UnixMs, seen: u64,
    }
    RecordedMatch in event {
        account: AccountId, rule: RuleId, total: u32, names: Vec<u16>,
        deliveries: Vec<(u8, DeliveryId)>,
    }
    RecordedChanges in event {
        account: AccountId, channel: u8, delivery: DeliveryId, due: UnixMs, total: u32,
        changes: Vec<u16>,
    }
    Lead in nodes { term: u64, node: Option<CompactString> }
    Publication in nodes { generation: u64, list: [u8; 32] }
    ChangeProgress in progress { began: UnixMs, through: u64, ahead: Option<(u64, AccountId)> }
}

#[derive(Deserialize)]
pub struct WebhookSecret {
    url: WebhookUrl,
    secret: Secret,
}

impl From<WebhookSecret> for rules::WebhookSecret {
    fn from(row: WebhookSecret) -> rules::WebhookSecret {
        rules::WebhookSecret::new(row.url, row.secret)
    }
}

#[derive(Deserialize)]
pub struct DroppedName {
    pub name: DomainName,
    pub dqs: Dqs,
    pub drop_date: Day,
    pub release: Day,
    pub stage: Stage,
}

impl From<DroppedName> for deliveries::MatchedName {
    fn from(row: DroppedName) -> deliveries::MatchedName {
        let DroppedName { name, dqs, drop_date, release, stage } = row;
        let release_second = None;
        deliveries::MatchedName(dropped_name::DroppedName {
            name,
            dqs,
            drop_date,
            release,
            release_second,
            stage,
        })
    }
}

/// Converts rows.
pub fn all<F, T: From<F>>(rows: Vec<F>) -> Vec<T> {
    rows.into_iter().map(T::from).collect()
}

#[derive(Deserialize)]
pub struct Claim {
    id: ClaimId,
    domain: DomainName,
    status: ClaimStatus,
    registrar: Option<Box<str>>,
    acquired_price: Option<Usd>,
    resale_price: Option<Usd>,
    sold_at: Option<UnixMs>,
    reported_at: UnixMs,
    updated_at: UnixMs,
    user_notes: Option<Box<str>>,
    alert_rule: Option<Attribution>,
}

/// The bid on a claimed name and its next renewal, which were stored separately.
#[derive(Default, Deserialize)]
pub struct Trade {
    bid: Option<Usd>,
    venue: Option<Box<str>>,
    renews_on: Option<Day>,
    renewal: Option<Usd>,
}

impl Claim {
    /// Returns the present row; bid and renewal are those of the claim that it replaces.
    pub fn after(self, before: Option<&claims::Claim>) -> claims::Claim {
        claims::Claim {
            id: self.id,
            domain: self.domain,
            status: self.status,
            registrar: self.registrar,
            acquired_price: self.acquired_price,
            resale_price: self.resale_price,
            sold_at: self.sold_at,
            reported_at: self.reported_at,
            updated_at: self.updated_at,
            user_notes: self.user_notes,
            alert_rule: self.alert_rule.map(|rule| Box::new(rule.into())),
            bid: before.and_then(|it| it.bid),
            venue: before.and_then(|it| it.venue.clone()),
            renews_on: before.and_then(|it| it.renews_on),
            renewal: before.and_then(|it| it.renewal),
            terms: before.and_then(|it| it.terms.clone()),
        }
    }

    pub fn id(&self) -> ClaimId {
        self.id
    }
}

impl Trade {
    /// Returns the claim with this trade.
    pub fn of(self, claim: &claims::Claim) -> claims::Claim {
        let Trade { bid, venue, renews_on, renewal } = self;
        claims::Claim { bid, venue, renews_on, renewal, ..claim.clone() }
    }
}

#[derive(Deserialize)]
struct Filter {
    tlds: Vec<CompactString>,
    min_dqs: Option<Dqs>,
    max_length: Option<u8>,
    contains: Option<Substring>,
    stages: Vec<Stage>,
}

/// A rule without its further conditions and its search, which were stored separately.
#[derive(Deserialize)]
pub struct RuleRow {
    id: RuleId,
    name: CompactString,
    filter: Filter,
    channels: Vec<Channel>,
    active: bool,
    created_at: UnixMs,
    secrets: Vec<WebhookSecret>,
}

/// Returns the parameters of the conditions that the rule itself had.
const OWN: [&str; 5] = ["tld", "min_dqs", "max_len", "q", "stage"];

impl From<Filter> for Conditions {
    fn from(filter: Filter) -> Conditions {
        let Filter { tlds, min_dqs, max_length, contains, stages } = filter;
        let number = |number: Option<u8>| number.map(|it| it.to_string()).unwrap_or_default();
        let stages: Vec<_> = stages.iter().map(|stage| stage.as_str()).collect();
        let values = [
            tlds.join(","),
            number(min_dqs.map(Dqs::points)),
            number(max_length),
            contains.map(|text| text.as_str().to_owned()).unwrap_or_default(),
            stages.join(","),
        ];
        let own = OWN.into_iter().zip(values.iter().map(String::as_str));
        Conditions::new(own.chain([("adult", "include")]))
    }
}

impl From<RuleRow> for rules::Rule {
    fn from(row: RuleRow) -> rules::Rule {
        rules::Rule {
            id: row.id,
            name: row.name,
            filter: row.filter.into(),
            channels: row.channels,
            active: row.active,
            created_at: row.created_at,
            secrets: all(row.secrets),
            search: None,
        }
    }
}

/// Returns the rule with the data that was stored separately.
pub fn detailed(rule: &rules::Rule, more: Conditions, search: Option<SearchId>) -> rules::Rule {
    let own = rule.filter.pairs().filter(|(name, _)| OWN.contains(name));
    let filter = Conditions::new(own.chain(more.pairs()));
    rules::Rule { filter, search, ..rule.clone() }
}

#[derive(Deserialize)]
pub struct KeyRow {
    id: KeyId,
    name: CompactString,
    key: StoredKey,
    scopes: Scopes,
    created: Option<Day>,
    until: Option<UnixMs>,
    used: Option<Day>,
}

impl From<KeyRow> for keys::Key {
    fn from(row: KeyRow) -> keys::Key {
        let KeyRow { id, name, key, scopes, created, until, used } = row;
        let mut key = keys::Key::new(id, name, key, scopes, created, until);
        key.used = used;
        key
    }
}

#[derive(Deserialize)]
pub struct Nodes {
    lead: Lead,
    announced: Option<Publication>,
    served: Vec<Publication>,
}

impl From<Nodes> for nodes::Nodes {
    fn from(row: Nodes) -> nodes::Nodes {
        let (announced, served) = (row.announced.map(Into::into), all(row.served));
        nodes::Nodes { lead: row.lead.into(), announced, served }
    }
}

#[derive(Deserialize)]
pub struct Account {
    id: AccountId,
    email: Email,
    plan: Plan,
    password: Option<PasswordHash>,
    disabled: bool,
    created: Day,
    /// The only key of an account of the oldest layout.
    key: Option<StoredKey>,
    noted: DayUsage,
}

impl From<Account> for account::Account {
    fn from(row: Account) -> account::Account {
        let Account { id, email, plan, password, disabled, created, key, noted } = row;
        let mut account = account::Account::new(id, email, plan, password, created);
        (account.disabled, account.noted) = (disabled, noted);
        if let Some(key) = key {
            Arc::make_mut(&mut account.access).keys.put(keys::Key::first(key, None));
        }
        account
    }
}

/// A delivery whose names are positions in the snapshot's table.
#[derive(Deserialize)]
pub struct Delivery {
    pub id: DeliveryId,
    pub channel: Channel,
    pub kind: MessageKind,
    pub at: UnixMs,
    pub list_day: Day,
    pub total: u32,
    pub names: Option<Vec<u32>>,
    pub attempts: u16,
    pub status: DeliveryStatus,
    pub last_attempt_at: Option<UnixMs>,
    pub last_problem: Option<Problem>,
}
