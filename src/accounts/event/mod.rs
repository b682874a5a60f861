//! What happened, as it is stored.
//!
//! The bytes are bincode 1.3 with fixed-width little-endian integers, at most 1 MiB, no trailing
//! byte. A variant is stored by its place in the list and a field by its place in the variant, so:
//! never reorder, remove or change one. A new shape is a new variant at the end; readers keep the
//! old ones for ever. The golden bytes under `tests/golden` hold this.

mod describe;
mod outbox;
mod stored;

use bincode::Options;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::email::Email;
use super::keys::StoredKey;
pub use outbox::{
    StoredAttempt, StoredDelivery, StoredMatch, StoredMatchedName, StoredObservation, StoredOff,
    StoredTest, StoredWatermark,
};
pub use stored::{StoredClaim, StoredName, StoredReply, StoredRule, StoredWatch};

use super::password::PasswordHash;
use super::token::TokenDigest;
use crate::journal::{Kind, PAYLOAD_BYTES_MAX};
use crate::vocab::claim::Vote;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, ClaimId, DeliveryId, RuleId};
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// The journal's number for records that hold one [`Event`]. They are read for ever, and written
/// where one event is all.
pub const EVENT: Kind = match Kind::of_caller(16) {
    Some(kind) => kind,
    None => panic!("16 is the caller's"),
};

/// The journal's number for records that hold a list of [`Event`]s: a transaction.
pub const TRANSACTION: Kind = match Kind::of_caller(17) {
    Some(kind) => kind,
    None => panic!("17 is the caller's"),
};

/// One thing that happened to the users' state.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// An account came to be.
    AccountAdded {
        /// Its number, not used before.
        account: AccountId,
        /// Its address, not in use.
        email: Email,
        /// What it pays for.
        plan: Plan,
        /// For a log-in, where one was set.
        password: Option<PasswordHash>,
        /// The UTC day.
        on: StoredDay,
    },
    /// An account pays for something else from now on.
    PlanSet {
        /// Whose.
        account: AccountId,
        /// What it pays for now.
        plan: Plan,
    },
    /// An account got a key; the one before no longer works.
    KeyIssued {
        /// Whose.
        account: AccountId,
        /// What is kept of it.
        key: StoredKey,
        /// The UTC day.
        on: StoredDay,
    },
    /// An account was shut; its key no longer works.
    AccountDisabled {
        /// Whose.
        account: AccountId,
    },
    /// How much of a day's allowance an account has used so far.
    UsageNoted {
        /// Whose.
        account: AccountId,
        /// The UTC day.
        day: StoredDay,
        /// JSON requests granted on it.
        requests: u32,
        /// Exports granted on it.
        exports: u32,
    },
    /// A UTC day began; none before it comes back.
    DayBegan {
        /// The day.
        day: StoredDay,
    },
    /// A claim was added.
    ClaimAdded {
        /// By whom.
        account: AccountId,
        /// The claim, with an id the account had not used.
        claim: Box<StoredClaim>,
    },
    /// A claim has changed.
    ClaimChanged {
        /// Whose.
        account: AccountId,
        /// What it is now.
        claim: Box<StoredClaim>,
    },
    /// A claim was removed.
    ClaimRemoved {
        /// Whose.
        account: AccountId,
        /// Which.
        claim: ClaimId,
    },
    /// A name was put on a watchlist.
    WatchAdded {
        /// Whose.
        account: AccountId,
        /// The entry.
        watch: StoredWatch,
    },
    /// A name was taken off a watchlist.
    WatchRemoved {
        /// Whose.
        account: AccountId,
        /// The name.
        name: StoredName,
    },
    /// A list brought names that were watched as external: they no longer cost quota.
    WatchesArrived {
        /// Whose.
        account: AccountId,
        /// The names.
        names: Vec<StoredName>,
    },
    /// An alert rule was added.
    RuleAdded {
        /// By whom.
        account: AccountId,
        /// The rule, with an id the account had not used.
        rule: Box<StoredRule>,
    },
    /// An alert rule has changed.
    RuleChanged {
        /// Whose.
        account: AccountId,
        /// What it is now.
        rule: Box<StoredRule>,
    },
    /// An alert rule was removed.
    RuleRemoved {
        /// Whose.
        account: AccountId,
        /// Which.
        rule: RuleId,
    },
    /// An account thinks otherwise of a name now.
    VoteSet {
        /// Who.
        account: AccountId,
        /// Of which name.
        name: StoredName,
        /// What; `None` when it no longer says.
        vote: Option<Vote>,
    },
    /// The answer to the request of this transaction, kept for those who send it again.
    ReplyKept {
        /// Whose.
        account: AccountId,
        /// The answer.
        reply: Box<StoredReply>,
    },
    /// A list was matched against rules, and what is to be sent of it. A long list of matches is
    /// several records, each whole in itself: a rule that one names is done with the list.
    ListMatched {
        /// What has been matched then.
        through: StoredWatermark,
        /// Whether no other record of this list follows: all rules are done with it.
        done: bool,
        /// When.
        at: UnixMs,
        /// The names of this record's matches, each once.
        names: Vec<StoredMatchedName>,
        /// What matched.
        matches: Vec<StoredMatch>,
    },
    /// The owner of a rule wants to see what a message looks like.
    TestQueued {
        /// Whose.
        account: AccountId,
        /// The message.
        test: Box<StoredTest>,
    },
    /// A delivery was tried.
    DeliverySettled {
        /// Whose.
        account: AccountId,
        /// The try.
        attempt: StoredAttempt,
    },
    /// A failed delivery is to be tried again from the start, at its owner's request.
    DeliveryRequeued {
        /// Whose.
        account: AccountId,
        /// Of which rule.
        rule: RuleId,
        /// Which.
        delivery: DeliveryId,
        /// When.
        at: UnixMs,
    },
    /// Nothing is to be sent through a channel of a rule any more.
    ChannelSwitchedOff {
        /// Whose.
        account: AccountId,
        /// Of which rule.
        rule: RuleId,
        /// The channel, and why.
        off: StoredOff,
    },
    /// All channels of a rule are to be used again.
    ChannelsSwitchedOn {
        /// Whose.
        account: AccountId,
        /// The rule.
        rule: RuleId,
    },
    /// Registries were asked for names that somebody watches.
    NamesVerified {
        /// What they said, of each name.
        rows: Vec<(StoredName, StoredObservation)>,
    },
    /// Somebody made an account; whether the address is theirs is to be seen.
    AccountSignedUp {
        /// Its number, not used before.
        account: AccountId,
        /// The address, not in use.
        email: Email,
        /// What it pays for.
        plan: Plan,
        /// For its log-ins.
        password: PasswordHash,
        /// The UTC day.
        on: StoredDay,
    },
    /// An account has another password; everybody who had logged in is out.
    PasswordSet {
        /// Whose.
        account: AccountId,
        /// The new one.
        password: PasswordHash,
    },
    /// Somebody logged in.
    SessionBegan {
        /// To which account.
        account: AccountId,
        /// What is kept of the session's id.
        digest: TokenDigest,
        /// When.
        at: UnixMs,
    },
    /// A session was used. Not every use is written down.
    SessionSeen {
        /// Of which account.
        account: AccountId,
        /// Which.
        digest: TokenDigest,
        /// When.
        at: UnixMs,
    },
    /// A session was ended by its owner.
    SessionEnded {
        /// Of which account.
        account: AccountId,
        /// Which.
        digest: TokenDigest,
    },
    /// A link was made that verifies the address of an account; the one before works no longer.
    EmailVerificationAsked {
        /// Whose.
        account: AccountId,
        /// What is kept of the link.
        digest: TokenDigest,
        /// When.
        at: UnixMs,
    },
    /// The address of an account is its owner's.
    EmailVerified {
        /// Whose.
        account: AccountId,
    },
    /// New alert rules of an account begin with another chat.
    TelegramChatSet {
        /// Whose.
        account: AccountId,
        /// The chat; `None` for none.
        chat: Option<CompactString>,
    },
}

/// A [`Day`] as two bytes, days since 1984-12-31, where `Day` itself is stored as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct StoredDay(pub Day);

impl TryFrom<u16> for StoredDay {
    type Error = &'static str;

    fn try_from(raw: u16) -> Result<StoredDay, &'static str> {
        Day::from_raw(raw).map(StoredDay).ok_or("0 is not a day")
    }
}

impl From<StoredDay> for u16 {
    fn from(day: StoredDay) -> u16 {
        day.0.raw()
    }
}

/// Why a stored payload is not an [`Event`].
#[derive(Debug, Error)]
pub enum EventError {
    /// Its bytes are none this build knows.
    #[error("it is not an event this dropdex knows ({0}); a later dropdex may have written it")]
    Decode(#[from] bincode::Error),
    /// The journal holds it under a number this build does not know.
    #[error("its kind is {0}, which this dropdex does not know; a later one wrote it")]
    Kind(u16),
}

impl Event {
    /// As stored. Every event is far shorter than a payload may be.
    fn encode(&self) -> Vec<u8> {
        codec().serialize(self).expect("texts in an event are bounded and far below 1 MiB")
    }
}

/// The events of one record, which happened together or not at all.
#[derive(Clone, PartialEq, Eq)]
pub struct Transaction(pub Vec<Event>);

impl Transaction {
    /// As stored: kind and payload. One event alone is stored as such.
    pub fn encode(&self) -> (Kind, Vec<u8>) {
        match self.0.as_slice() {
            [event] => (EVENT, event.encode()),
            events => {
                let payload = codec().serialize(events);
                (TRANSACTION, payload.expect("what a request may bring is far below 1 MiB"))
            }
        }
    }

    /// The events stored as `payload`, under `kind`.
    ///
    /// # Errors
    /// [`EventError`].
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Transaction, EventError> {
        match kind {
            EVENT => Ok(Transaction(vec![codec().deserialize(payload)?])),
            TRANSACTION => Ok(Transaction(codec().deserialize(payload)?)),
            other => Err(EventError::Kind(other.number())),
        }
    }
}

/// The one codec, of snapshots too: `bincode::serialize` and other options write other bytes.
pub(super) fn codec() -> impl Options {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_little_endian()
        .with_limit(PAYLOAD_BYTES_MAX as u64)
        .reject_trailing_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::owned::claims::{Attribution, Claim};
    use crate::accounts::owned::deliveries::{
        MatchedName, OffReason, Problem, Settled, StatusClass, SwitchedOff,
    };
    use crate::accounts::owned::replies::KeptReply;
    use crate::accounts::owned::rules::{Channel, Rule, RuleFilter, WebhookSecret};
    use crate::accounts::owned::watches::WatchEntry;
    use crate::accounts::secret::Secret;
    use crate::vocab::claim::ClaimStatus;
    use crate::vocab::dqs::Dqs;
    use crate::vocab::money::Usd;
    use crate::vocab::name::DomainName;
    use crate::vocab::observation::{Observation, ObservedBy, RdapState, RdapStatuses};
    use crate::vocab::query::Substring;
    use crate::vocab::stage::Stage;
    use crate::vocab::url::WebhookUrl;
    use crate::vocab::watermark::Watermark;

    fn day() -> StoredDay {
        StoredDay("2026-11-21".parse().expect("a day"))
    }

    /// One of each shape: every variant, every plan, with and without a password.
    fn all() -> Vec<(&'static str, Event)> {
        let account = AccountId(0x0102);
        let email: Email = "ann@example.com".parse().expect("an address");
        let key = serde_json::json!({"digest": vec![0xab; 32], "last4": b"c0de"});
        let key: StoredKey = serde_json::from_value(key).expect("a key");
        let hash: PasswordHash = serde_json::from_str(r#""$argon2id$x""#).expect("a hash");
        let mut events: Vec<_> = Plan::ALL
            .into_iter()
            .map(|plan| (plan.as_str(), Event::PlanSet { account, plan }))
            .collect();
        for (name, password) in [("account", None), ("account, password", Some(hash))] {
            let (email, plan) = (email.clone(), Plan::Pro);
            events.push((name, Event::AccountAdded { account, email, plan, password, on: day() }));
        }
        events.push(("key", Event::KeyIssued { account, key, on: day() }));
        events.push(("disabled", Event::AccountDisabled { account }));
        let (requests, exports) = (100, 7);
        events.push(("usage", Event::UsageNoted { account, day: day(), requests, exports }));
        events.push(("day", Event::DayBegan { day: day() }));
        events
    }

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).expect("a name")
    }

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_790_000_000_000 + ms).expect("an instant")
    }

    fn claim() -> Claim {
        Claim {
            id: ClaimId::new(0x0102_0304).expect("an id"),
            domain: name("example.co.uk"),
            status: ClaimStatus::Attempted,
            registrar: None,
            acquired_price: None,
            resale_price: None,
            sold_at: None,
            reported_at: at(0),
            updated_at: at(1),
            user_notes: None,
            alert_rule: None,
        }
    }

    fn sold() -> Claim {
        Claim {
            status: ClaimStatus::Sold,
            registrar: Some("Example Ltd".into()),
            acquired_price: Usd::from_cents(1250),
            resale_price: Usd::from_cents(100_000_000_000),
            sold_at: Some(at(2)),
            user_notes: Some("über\nzwei".into()),
            alert_rule: Some(Box::new(Attribution {
                id: RuleId::new(7).expect("an id"),
                name: "short .de".into(),
            })),
            ..claim()
        }
    }

    fn rule() -> Rule {
        let url = WebhookUrl::from_stored("https://hooks.example.com/x".into());
        Rule {
            id: RuleId::new(7).expect("an id"),
            name: "short .de".into(),
            filter: RuleFilter {
                tlds: vec!["de".into(), "co.uk".into()],
                min_dqs: Dqs::new(70),
                max_length: Some(6),
                contains: Substring::parse("solar").ok(),
                stages: Stage::ALL.to_vec(),
            },
            channels: vec![
                Channel::Email,
                Channel::Webhook { url: url.clone() },
                Channel::Telegram { chat_id: "-100".into() },
            ],
            active: true,
            created_at: at(3),
            secrets: vec![WebhookSecret { url, secret: Secret::new("whsec_AAAA".into()) }],
        }
    }

    /// One of each shape of what accounts own.
    fn owned() -> Vec<(String, Event)> {
        let account = AccountId(0x0102);
        let boxed = |claim: Claim| Box::new(StoredClaim::from(claim));
        let watch = |external, registered_again| {
            let (name, added_at) = (name("xn--mnchen-3ya.de"), at(4));
            WatchEntry { name, added_at, external, registered_again }.into()
        };
        let reply = KeptReply {
            key: [0x11; 16],
            fingerprint: [0x22; 32],
            at: at(5),
            status: 201,
            body: br#"{"id":7}"#.as_slice().into(),
        };
        let bare = Rule {
            filter: RuleFilter::default(),
            channels: vec![Channel::Email],
            active: false,
            secrets: Vec::new(),
            ..rule()
        };
        let names = vec![StoredName(name("a.com")), StoredName(name("b.co.uk"))];
        let mut events = vec![
            ("claim".to_owned(), Event::ClaimAdded { account, claim: boxed(claim()) }),
            ("claim, changed".into(), Event::ClaimChanged { account, claim: boxed(sold()) }),
            ("claim, removed".into(), Event::ClaimRemoved { account, claim: claim().id }),
            ("watch".into(), Event::WatchAdded { account, watch: watch(false, true) }),
            ("watch, external".into(), Event::WatchAdded { account, watch: watch(true, false) }),
            ("watch, removed".into(), Event::WatchRemoved { account, name: names[1].clone() }),
            ("watches, arrived".into(), Event::WatchesArrived { account, names: names.clone() }),
            ("rule".into(), Event::RuleAdded { account, rule: Box::new(rule().into()) }),
            ("rule, changed".into(), Event::RuleChanged { account, rule: Box::new(bare.into()) }),
            ("rule, removed".into(), Event::RuleRemoved { account, rule: rule().id }),
            ("reply".into(), Event::ReplyKept { account, reply: Box::new(reply.into()) }),
        ];
        for vote in [Some(Vote::Up), Some(Vote::Down), None] {
            let name = names[0].clone();
            events.push((format!("vote {vote:?}"), Event::VoteSet { account, name, vote }));
        }
        for status in ClaimStatus::ALL {
            let claim = Claim { status, ..claim() };
            events.push((format!("{status}"), Event::ClaimAdded { account, claim: boxed(claim) }));
        }
        events
    }

    fn delivery(byte: u8) -> DeliveryId {
        DeliveryId::new([byte; 16])
    }

    /// One of each shape of what is sent and verified.
    fn outbox() -> Vec<(String, Event)> {
        let (account, rule_id) = (AccountId(0x0102), rule().id);
        let matched = |text, stage| {
            let (drop_date, release) = (day().0, day().0.plus(35));
            let dqs = Dqs::new(70).expect("a score");
            StoredMatchedName::from(&MatchedName {
                name: name(text),
                dqs,
                drop_date,
                release,
                stage,
            })
        };
        let names: Vec<_> = Stage::ALL.map(|stage| matched("example.co.uk", stage)).to_vec();
        let through = Watermark { batch: 0x0304, day: day().0 }.into();
        let found = |names, deliveries| StoredMatch {
            account,
            rule: rule_id,
            total: 0x0506,
            names,
            deliveries,
        };
        let two = vec![(0, delivery(0x11)), (2, delivery(0x22))];
        let matches = vec![found(vec![2, 0], two.clone()), found(Vec::new(), Vec::new())];
        let test = StoredTest {
            rule: rule_id,
            at: at(6),
            day: day(),
            total: 3,
            names: names[..1].to_vec(),
            deliveries: two,
        };
        let off = |reason, channel: &Channel| {
            let off = StoredOff::of(channel, SwitchedOff { reason, at: at(9) });
            Event::ChannelSwitchedOff { account, rule: rule_id, off }
        };
        let (done, id) = (true, delivery(0x33));
        let mut events = vec![
            (
                "list".to_owned(),
                Event::ListMatched { through, done: false, at: at(5), names, matches },
            ),
            (
                "list, nothing in it".into(),
                Event::ListMatched {
                    through,
                    done,
                    at: at(5),
                    names: Vec::new(),
                    matches: Vec::new(),
                },
            ),
            ("test".into(), Event::TestQueued { account, test: Box::new(test) }),
            (
                "requeued".into(),
                Event::DeliveryRequeued { account, rule: rule_id, delivery: id, at: at(8) },
            ),
            ("on".into(), Event::ChannelsSwitchedOn { account, rule: rule_id }),
        ];
        for (reason, channel) in [OffReason::Gone, OffReason::Unsubscribed, OffReason::Gone]
            .into_iter()
            .zip(&rule().channels)
        {
            events.push((format!("off {reason:?}"), off(reason, channel)));
        }
        for settled in every_settled() {
            let attempt = StoredAttempt {
                rule: rule_id,
                delivery: id,
                at: at(7),
                attempts: 0x0708,
                settled: settled.into(),
            };
            events.push((format!("{settled:?}"), Event::DeliverySettled { account, attempt }));
        }
        events.push(("verified".into(), Event::NamesVerified { rows: observations() }));
        events
    }

    fn every_settled() -> Vec<Settled> {
        let classes = [
            StatusClass::Redirect,
            StatusClass::ClientError,
            StatusClass::ServerError,
            StatusClass::Other,
        ];
        let problems = [
            Problem::Refused,
            Problem::Timeout,
            Problem::Unreachable,
            Problem::Tls,
            Problem::Gone,
            Problem::Rejected,
            Problem::NotConfigured,
            Problem::SwitchedOff,
        ];
        let problems = problems.into_iter().chain(classes.map(Problem::Status));
        let retried = problems.map(|problem| Settled::Retry { next_at: at(60_000), problem });
        let problem = Problem::Gone;
        [Settled::Delivered, Settled::Failed { problem }, Settled::SwitchOff { problem }]
            .into_iter()
            .chain(retried)
            .collect()
    }

    fn observations() -> Vec<(StoredName, StoredObservation)> {
        let seen = |(place, state): (usize, RdapState)| Observation {
            state,
            at: at(10),
            registered_on: (place % 2 == 0).then(|| day().0.plus(-1_000)),
            statuses: RdapStatuses::from(1 << place),
            source: if place == 2 { ObservedBy::Dns } else { ObservedBy::Rdap },
        };
        let all = RdapState::ALL.into_iter().enumerate().map(seen);
        all.map(|seen| (StoredName(name("a.com")), seen.into())).collect()
    }

    /// One of each shape of how people get in.
    fn access() -> Vec<(String, Event)> {
        let (account, digest) = (AccountId(0x0102), TokenDigest::new([0x44; 32]));
        let email: Email = "ann@example.com".parse().expect("an address");
        let password: PasswordHash = serde_json::from_str(r#""$argon2id$x""#).expect("a hash");
        let (plan, hash) = (Plan::Free, password.clone());
        let mut events = vec![
            (
                "signed up".to_owned(),
                Event::AccountSignedUp { account, email, plan, password, on: day() },
            ),
            ("password".into(), Event::PasswordSet { account, password: hash }),
            ("session".into(), Event::SessionBegan { account, digest, at: at(11) }),
            ("session, seen".into(), Event::SessionSeen { account, digest, at: at(12) }),
            ("session, ended".into(), Event::SessionEnded { account, digest }),
            ("link".into(), Event::EmailVerificationAsked { account, digest, at: at(13) }),
            ("verified".into(), Event::EmailVerified { account }),
        ];
        for chat in [Some("-100".into()), None] {
            events.push((format!("chat {chat:?}"), Event::TelegramChatSet { account, chat }));
        }
        events
    }

    fn sessions() -> impl Iterator<Item = (String, Transaction)> {
        access().into_iter().map(|(name, event)| (name, Transaction(vec![event])))
    }

    fn newest() -> impl Iterator<Item = (String, Transaction)> {
        let singles = outbox().into_iter().map(|(name, event)| (name, Transaction(vec![event])));
        let both = outbox().drain(..3).map(|(_, event)| event).collect();
        singles.chain([("three at once".to_owned(), Transaction(both))])
    }

    fn everything() -> Vec<(String, Transaction)> {
        let first = all().into_iter().map(|(name, event)| (name.to_owned(), event));
        let mut singles: Vec<_> = first.chain(owned()).collect();
        let three = singles.iter().rev().take(3).map(|(_, event)| event.clone()).collect();
        let singles = singles.drain(..).map(|(name, event)| (name, Transaction(vec![event])));
        let mut all: Vec<_> = singles.collect();
        all.push(("three at once".into(), Transaction(three)));
        all.push(("nothing".into(), Transaction(Vec::new())));
        all
    }

    #[test]
    fn the_bytes_of_every_event_never_change() {
        let ours: String = all()
            .iter()
            .map(|(name, event)| format!("{name}: {}\n", hex::encode(event.encode())))
            .collect();
        assert_eq!(ours, include_str!("../../../tests/golden/journal-events-v1.hex"));
    }

    #[test]
    fn the_bytes_of_every_transaction_never_change() {
        let ours: String = everything()
            .iter()
            .skip(all().len())
            .map(|(name, transaction)| {
                let (kind, payload) = transaction.encode();
                format!("{name}: {} {}\n", kind.number(), hex::encode(payload))
            })
            .collect();
        assert_eq!(ours, include_str!("../../../tests/golden/journal-events-v2.hex"));
    }

    #[test]
    fn the_bytes_of_what_is_sent_never_change() {
        let ours: String = newest()
            .map(|(name, transaction)| {
                let (kind, payload) = transaction.encode();
                format!("{name}: {} {}\n", kind.number(), hex::encode(payload))
            })
            .collect();
        assert_eq!(ours, include_str!("../../../tests/golden/journal-events-v3.hex"));
    }

    #[test]
    fn the_bytes_of_log_ins_never_change() {
        let ours: String = sessions()
            .map(|(name, transaction)| {
                let (kind, payload) = transaction.encode();
                format!("{name}: {} {}\n", kind.number(), hex::encode(payload))
            })
            .collect();
        assert_eq!(ours, include_str!("../../../tests/golden/journal-events-v4.hex"));
    }

    #[test]
    fn what_is_stored_is_read_back() {
        for settled in every_settled() {
            assert_eq!(Settled::from(outbox::StoredSettled::from(settled)), settled);
        }
        for (_, stored) in observations() {
            assert_eq!(StoredObservation::from(Observation::from(stored)), stored);
        }
        for (name, transaction) in everything().into_iter().chain(newest()).chain(sessions()) {
            let (kind, payload) = transaction.encode();
            assert!(Transaction::decode(kind, &payload).expect(&name) == transaction, "{name}");
        }
        for claim in [claim(), sold()] {
            assert_eq!(Claim::from(StoredClaim::from(claim.clone())), claim);
        }
        assert_eq!(Rule::from(StoredRule::from(rule())), rule());
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for (name, transaction) in everything().into_iter().chain(newest()).chain(sessions()) {
            let (kind, bytes) = transaction.encode();
            for len in 0..bytes.len() {
                assert!(Transaction::decode(kind, &bytes[..len]).is_err(), "{name} cut at {len}");
            }
            let trailing = [bytes.as_slice(), &[0]].concat();
            assert!(Transaction::decode(kind, &trailing).is_err(), "{name} and one byte");
        }
        assert!(Transaction::decode(EVENT, &[0xff; 64]).is_err(), "an unknown variant");
        let day_0 = [5, 0, 0, 0, 0, 0];
        assert!(Transaction::decode(EVENT, &day_0).is_err(), "day 0");
        let other = Kind::of_caller(18).expect("the caller's");
        let refused = Transaction::decode(other, &all()[0].1.encode());
        assert!(matches!(refused, Err(EventError::Kind(18))));
    }

    /// Bytes that passed every checksum and still are none of ours: each byte of every transaction
    /// set to the values that make the worst lengths. An error or another event, never a panic.
    #[test]
    fn hostile_bytes_do_no_harm() {
        for (name, transaction) in everything().into_iter().chain(newest()).chain(sessions()) {
            let (kind, bytes) = transaction.encode();
            for at in 0..bytes.len() {
                for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                    let mut hostile = bytes.clone();
                    hostile[at] = value;
                    if let Ok(read) = Transaction::decode(kind, &hostile) {
                        // What is read is as bounded as what we write: it fits a record again.
                        assert!(read.encode().1.len() <= PAYLOAD_BYTES_MAX, "{name} at {at}");
                    }
                }
            }
        }
        let endless = [u64::MAX.to_le_bytes(), (1_u64 << 40).to_le_bytes()];
        for len in endless {
            assert!(Transaction::decode(TRANSACTION, &len).is_err());
        }
        let long = "a".repeat(250) + ".com";
        let name = codec().serialize(&(250_u8, long)).expect("encoded");
        assert!(codec().deserialize::<StoredName>(&name).is_err(), "a name over 253 octets");
        let name = codec().serialize(&(3_u8, "abcd.com")).expect("encoded");
        assert!(codec().deserialize::<StoredName>(&name).is_err(), "no dot after the label");
    }
}
