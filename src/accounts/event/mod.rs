//! Events: changes of the users' state, as the journal stores them.
//!
//! The bytes are bincode 1.3 with fixed-width little-endian integers, at most 1 MiB, without
//! trailing bytes. A variant is identified by its position in the enum and a field by its position
//! in the variant: never reorder, remove or change one. A new shape is a new variant at the end,
//! and readers keep the old ones. `tests/golden` holds the bytes of every variant.

mod describe;
#[cfg(test)]
mod tests;
mod touched;

use bincode::Options;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::data::claims::{Claim, Trade};
use super::data::deliveries::{AttemptOutcome, MatchedName, SwitchedOff};
use super::data::feeds::{Feed, FeedOf};
use super::data::keys::Key;
use super::data::nodes::{Lead, Publication};
use super::data::responses::KeptResponse;
use super::data::rules::{Channel, Rule, WebhookSecret};
use super::data::searches::SavedSearch;
use super::data::watch_alerts::{EntryAlerts, WatchAlerts};
use super::data::watches::{WatchDetails, WatchEntry};
use super::email::Email;
use super::keys::StoredKey;
use super::password::PasswordHash;
use super::token::TokenDigest;
use crate::journal::{Kind, PAYLOAD_BYTES_MAX};
use crate::query::stored::Conditions;
use crate::vocab::claim::Vote;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::{
    AccountId, ClaimId, DeliveryId, KeyId, RuleId, SearchId, UnsubscribeToken,
};
use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;
use crate::vocab::watermark::Watermark;
pub use touched::of_leader;

/// Kind of journal records that hold a single [`Event`].
pub const EVENT: Kind = match Kind::for_caller(16) {
    Some(kind) => kind,
    None => panic!("16 is in the caller's range"),
};

/// Kind of journal records that hold a list of [`Event`]s: a transaction.
pub const TRANSACTION: Kind = match Kind::for_caller(17) {
    Some(kind) => kind,
    None => panic!("17 is in the caller's range"),
};

/// A change of the users' state.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// An operator added an account. The number and the address are unused.
    AccountAdded {
        account: AccountId,
        email: Email,
        plan: Plan,
        password: Option<PasswordHash>,
        on: Day,
    },
    PlanSet {
        account: AccountId,
        plan: Plan,
    },
    /// The only API key of an account. Not written any more: [`Event::KeyAdded`] is.
    KeyIssued {
        account: AccountId,
        key: StoredKey,
        on: Day,
    },
    AccountDisabled {
        account: AccountId,
    },
    /// Requests and exports granted on a UTC day so far.
    UsageNoted {
        account: AccountId,
        day: Day,
        requests: u32,
        exports: u32,
    },
    /// A UTC day began; earlier days are over even if the clock is set back.
    DayBegan {
        day: Day,
    },
    ClaimAdded {
        account: AccountId,
        claim: Box<Claim>,
    },
    ClaimChanged {
        account: AccountId,
        claim: Box<Claim>,
    },
    ClaimRemoved {
        account: AccountId,
        claim: ClaimId,
    },
    WatchAdded {
        account: AccountId,
        watch: WatchEntry,
    },
    WatchRemoved {
        account: AccountId,
        name: DomainName,
    },
    /// The corpus now holds these watched names: they no longer consume quota.
    WatchesArrived {
        account: AccountId,
        names: Vec<DomainName>,
    },
    RuleAdded {
        account: AccountId,
        rule: Box<Rule>,
    },
    RuleChanged {
        account: AccountId,
        rule: Box<Rule>,
    },
    RuleRemoved {
        account: AccountId,
        rule: RuleId,
    },
    /// An account set, changed or (`None`) withdrew its vote.
    VoteSet {
        account: AccountId,
        name: DomainName,
        vote: Option<Vote>,
    },
    /// The response to the request of this transaction, kept for repeats of the request.
    ReplyKept {
        account: AccountId,
        reply: KeptResponse,
    },
    /// Alert rules were matched against a list, and these messages queued. A long list takes several
    /// records: each is complete for the rules that it names, and `done` marks the last one.
    ListMatched {
        through: Watermark,
        done: bool,
        at: UnixMs,
        /// The names of all matches of this record, each once.
        names: Vec<MatchedName>,
        matches: Vec<RecordedMatch>,
    },
    /// A test message was queued; it counts for `day`.
    TestQueued {
        account: AccountId,
        rule: RuleId,
        at: UnixMs,
        day: Day,
        /// Number of names that match.
        total: u32,
        /// Some of them.
        names: Vec<MatchedName>,
        /// As in [`RecordedMatch`].
        deliveries: Vec<(u8, DeliveryId)>,
    },
    /// An attempt to deliver ended.
    DeliverySettled {
        account: AccountId,
        rule: RuleId,
        delivery: DeliveryId,
        at: UnixMs,
        /// Attempts so far, this one included.
        attempts: u16,
        outcome: AttemptOutcome,
    },
    /// The owner queued a failed delivery again.
    DeliveryRequeued {
        account: AccountId,
        rule: RuleId,
        delivery: DeliveryId,
        at: UnixMs,
    },
    ChannelSwitchedOff {
        account: AccountId,
        rule: RuleId,
        channel: Channel,
        off: SwitchedOff,
    },
    /// All channels of a rule were switched on.
    ChannelsSwitchedOn {
        account: AccountId,
        rule: RuleId,
    },
    /// Observations of watched names.
    NamesVerified {
        rows: Vec<(DomainName, Observation)>,
    },
    /// Self-service sign-up; the address is unverified.
    AccountSignedUp {
        account: AccountId,
        email: Email,
        plan: Plan,
        password: PasswordHash,
        on: Day,
    },
    /// The password was changed, which ended all sessions.
    PasswordSet {
        account: AccountId,
        password: PasswordHash,
    },
    SessionBegan {
        account: AccountId,
        digest: TokenDigest,
        at: UnixMs,
    },
    /// A session was used. Only some uses are recorded.
    SessionSeen {
        account: AccountId,
        digest: TokenDigest,
        at: UnixMs,
    },
    SessionEnded {
        account: AccountId,
        digest: TokenDigest,
    },
    /// A verification link was made; it replaces the one before.
    EmailVerificationAsked {
        account: AccountId,
        digest: TokenDigest,
        at: UnixMs,
    },
    EmailVerified {
        account: AccountId,
    },
    /// The default chat of new alert rules was set or (`None`) removed.
    TelegramChatSet {
        account: AccountId,
        chat: Option<CompactString>,
    },
    /// The secret in the unsubscribe links of a rule was drawn, before its first mail was queued.
    UnsubscribeTokenSet {
        account: AccountId,
        rule: RuleId,
        token: UnsubscribeToken,
    },
    /// The notes on a watched name were replaced; empty ones remove them.
    WatchDetailsSet {
        account: AccountId,
        name: DomainName,
        details: WatchDetails,
    },
    NamesHidden {
        account: AccountId,
        names: Vec<DomainName>,
    },
    /// Hidden names are shown again.
    NamesShown {
        account: AccountId,
        names: Vec<DomainName>,
    },
    /// Bid and renewal of a claim. Follows the event that adds or changes the claim.
    ClaimTradeSet {
        account: AccountId,
        claim: ClaimId,
        trade: Trade,
    },
    /// The first visit to a single-user server made the account of its owner, who may have no password.
    OwnerAdded {
        account: AccountId,
        email: Email,
        password: Option<PasswordHash>,
        on: Day,
    },
    /// The owner keeps a session. Follows the event that begins it.
    SessionKept {
        account: AccountId,
        digest: TokenDigest,
    },
    /// Conditions of a rule that its own event does not hold, and the search it was made from. Follows
    /// the event that adds or changes the rule.
    RuleDetailsSet {
        account: AccountId,
        rule: RuleId,
        more: Conditions,
        search: Option<SearchId>,
    },
    /// A search was saved or changed.
    SearchSaved {
        account: AccountId,
        search: Box<SavedSearch>,
    },
    SearchRemoved {
        account: AccountId,
        search: SearchId,
    },
    /// The owner opened a saved search while this batch was the newest.
    SearchSeen {
        account: AccountId,
        search: SearchId,
        batch: u64,
    },
    /// The owner chose the columns of the drop list, or (`None`) went back to the usual ones.
    ColumnsChosen {
        account: AccountId,
        columns: Option<Columns>,
    },
    /// A key was made; it replaces the one with its id.
    KeyAdded {
        account: AccountId,
        new: Box<Key>,
    },
    KeyRemoved {
        account: AccountId,
        id: KeyId,
    },
    /// When a key stops working.
    KeyUntilSet {
        account: AccountId,
        id: KeyId,
        until: UnixMs,
    },
    /// A key was used on a UTC day. Recorded once a day.
    KeyUsed {
        account: AccountId,
        id: KeyId,
        day: Day,
    },
    /// A feed was made, or got another address.
    FeedMade {
        account: AccountId,
        feed: Feed,
    },
    FeedRevoked {
        account: AccountId,
        of: FeedOf,
    },
    /// The owner saved what is sent about watched names, and where to.
    WatchAlertsSet {
        account: AccountId,
        alerts: WatchAlerts,
        channels: Vec<Channel>,
        /// One for each webhook channel, in their order.
        secrets: Vec<WebhookSecret>,
        at: UnixMs,
    },
    /// The owner made a choice for a watched name, or (`None`) follows that of the account again.
    EntryAlertsSet {
        account: AccountId,
        name: DomainName,
        alerts: Option<EntryAlerts>,
    },
    /// Watched names are matched with changes from the one after `through` on. Names that were watched
    /// before tell nothing until their owner saves settings.
    WatchAlertsBegan {
        at: UnixMs,
        through: u64,
    },
    /// Watched names were matched with the changes up to `through`, and these messages queued. Many
    /// accounts take several records: each is complete for the accounts up to `upto`, the last for all.
    ChangesMatched {
        through: u64,
        upto: Option<AccountId>,
        at: UnixMs,
        /// The changes of all messages of this record, each once.
        changes: Vec<WatchedChange>,
        messages: Vec<RecordedChanges>,
    },
    /// A test message about watched names was queued; it counts for `day`.
    WatchTestQueued {
        account: AccountId,
        at: UnixMs,
        day: Day,
        changes: Vec<WatchedChange>,
        /// As in [`RecordedMatch`].
        deliveries: Vec<(u8, DeliveryId)>,
    },
    /// Changes nothing: nodes compute the digest of their state here, to be compared.
    Checkpoint {
        id: u64,
    },
    /// A node took the lead of the cluster, or the leader gave it up.
    LeadTaken {
        lead: Lead,
    },
    /// The leader has put files into the object store, for all nodes to fetch.
    FilesAnnounced {
        publication: Publication,
    },
    /// All nodes serve the files that were announced, from this record on.
    FilesServed {
        publication: Publication,
    },
    /// Today is `day`: the latest day so far was that of a wrong clock.
    DayCorrected {
        day: Day,
    },
    /// An operator let an account begin its allowances of `day` again.
    UsageReset {
        account: AccountId,
        day: Day,
    },
}

/// Changes of watched names for one channel of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedChanges {
    pub account: AccountId,
    /// Position of the channel.
    pub channel: u8,
    pub delivery: DeliveryId,
    /// When the message is due.
    pub due: UnixMs,
    /// Number of changes.
    pub total: u32,
    /// The first of them, as positions in the changes of the event.
    pub changes: Vec<u16>,
}

/// The names that one rule matched in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedMatch {
    pub account: AccountId,
    pub rule: RuleId,
    /// Number of names that matched.
    pub total: u32,
    /// The best of them, as positions in the names of the event.
    pub names: Vec<u16>,
    /// For each channel: its position in the rule, and the id of its delivery.
    pub deliveries: Vec<(u8, DeliveryId)>,
}

/// Why a stored payload could not be decoded.
#[derive(Debug, Error)]
pub enum EventError {
    #[error("not a known event ({0}); a newer dropdex may have written it")]
    Decode(#[from] bincode::Error),
    #[error("unknown record kind {0}; a newer dropdex wrote it")]
    Kind(u16),
}

/// The events of one record: all of them happened, or none.
#[derive(Clone, PartialEq, Eq)]
pub struct Transaction(pub Vec<Event>);

impl Transaction {
    /// Record kind and payload. A single event is stored without a list around it.
    pub fn encode(&self) -> (Kind, Vec<u8>) {
        let (kind, payload) = match self.0.as_slice() {
            [event] => (EVENT, codec().serialize(event)),
            events => (TRANSACTION, codec().serialize(events)),
        };
        (kind, payload.expect("the events of one request are far below 1 MiB"))
    }

    /// Decodes a payload of this kind.
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

/// The codec of events and snapshots. Other options, such as those of `bincode::serialize`, write
/// other bytes.
pub fn codec() -> impl Options {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_little_endian()
        .with_limit(PAYLOAD_BYTES_MAX as u64)
        .reject_trailing_bytes()
}
