//! Events: changes of the users' state, as the journal stores them.
//!
//! A record holds a transaction: its events, each with its number, its length and its numbered
//! fields (`data/fields`). The number of an event is never reused. A reader refuses unknown events
//! and fields. `tests/golden` holds the bytes of every event.

mod describe;
#[macro_use]
mod table;
#[cfg(test)]
mod tests;
mod rows;
mod touched;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::data::access::SessionLife;
use super::data::claims::Claim;
use super::data::deliveries::{AttemptOutcome, DigestRows, MatchedName, SwitchedOff};
use super::data::digest::Digest;
use super::data::facts::{FactsRow, Part};
use super::data::feeds::{Feed, FeedOf};
use super::data::fields::{NEWER, put_with_length, row, take_numbered};
use super::data::keys::Key;
use super::data::money::MoneySettings;
use super::data::nodes::{Lead, Publication};
use super::data::responses::KeptResponse;
use super::data::rules::{Channel, Rule};
use super::data::searches::SavedSearch;
use super::data::visits::Visit;
use super::data::watch_alerts::WatchSettings;
use super::data::watches::WatchRow;
use super::email::Email;
use super::password::PasswordHash;
use super::token::TokenDigest;
use crate::journal::RecordKind;
use crate::vocab::claim::Vote;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::evidence::EvidenceSet;
use crate::vocab::ids::{
    AccountId, ActionId, ClaimId, DeliveryId, KeyId, RuleId, SearchId, UnsubscribeToken,
};
use crate::vocab::name::DomainName;
use crate::vocab::observation::{LatestRegistration, Observation};
use crate::vocab::plan::Plan;
use crate::vocab::sample::SampleAnswer;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;
use crate::vocab::watermark::Watermark;
pub use touched::of_leader;

/// Kind of journal records that hold a transaction.
pub const TRANSACTION: RecordKind = match RecordKind::for_caller(19) {
    Some(kind) => kind,
    None => panic!("19 is in the caller's range"),
};

/// Kinds of records with transactions in the format before fields had numbers.
pub const FORMER: std::ops::RangeInclusive<u16> = 16..=17;

table! {
    /// A change of the users' state: its number, its fields without a default and, after a
    /// semicolon, those with a default.
    pub enum Event {
        /// An account was added. The number and the address were not in use before.
        1 AccountAdded {
            1 account: AccountId, 2 email: Email, 3 plan: Plan, 4 on: Day;
            5 password: Option<PasswordHash>, 6 by: AddedBy,
        }
        /// An account got a new password, which ends all sessions. A disabled account stays disabled.
        2 AccountChanged {
            1 account: AccountId;
            2 plan: Option<Plan>, 3 password: Option<PasswordHash>, 4 disabled: bool,
        }
        /// Numbers of requests and exports allowed so far on a UTC day; with `reset`, an operator
        /// has reset them.
        3 UsageNoted {
            1 account: AccountId, 2 day: Day;
            3 requests: u32, 4 exports: u32, 5 reset: bool,
        }
        /// A UTC day began. Earlier days are over, even if the clock is set back. With `corrects`,
        /// the latest day so far came from a wrong clock.
        4 DayBegan { 1 day: Day; 2 corrects: bool }
        /// A verification link was created; it replaces the previous one.
        5 EmailVerificationAsked { 1 account: AccountId, 2 digest: TokenDigest, 3 at: UnixMs; }
        6 EmailVerified { 1 account: AccountId; }
        7 SessionBegan {
            1 account: AccountId, 2 digest: TokenDigest, 3 at: UnixMs;
            4 life: SessionLife,
        }
        /// A session was used, for the first time with the name of its browser. Only some uses are recorded.
        8 SessionSeen {
            1 account: AccountId, 2 digest: TokenDigest, 3 at: UnixMs;
            4 browser: CompactString,
        }
        /// A key was created; it replaces the one with the same id.
        9 KeyPut { 1 account: AccountId, 2 new: Box<Key>; }
        /// The time at which a key stops working was set, or the use of a key was recorded, which
        /// happens once a day.
        10 KeyChanged {
            1 account: AccountId, 2 id: KeyId;
            3 until: Option<UnixMs>, 4 used: Option<Day>,
        }
        /// A feed was created, or got another URL.
        11 FeedPut { 1 account: AccountId, 2 feed: Feed; }
        12 ClaimPut { 1 account: AccountId, 2 claim: Box<Claim>; }
        /// A name is watched, or its notes changed.
        13 WatchPut { 1 account: AccountId, 2 watch: Box<WatchRow>; }
        /// Watched names are now in the corpus and no longer consume quota.
        14 WatchesArrived { 1 account: AccountId, 2 names: Vec<DomainName>; }
        15 RulePut { 1 account: AccountId, 2 rule: Box<Rule>; }
        16 SearchPut { 1 account: AccountId, 2 search: Box<SavedSearch>; }
        /// A row was removed, or a session ended.
        17 Removed { 1 account: AccountId, 2 row: RowOf; }
        /// An account set or changed its vote, or withdrew it (`None`).
        18 VoteSet { 1 account: AccountId, 2 name: DomainName; 3 vote: Option<Vote> }
        /// Names were hidden, or are no longer hidden.
        19 NamesHidden { 1 account: AccountId, 2 names: Vec<DomainName>; 3 shown: bool }
        /// The default chat of new alert rules, the columns of the drop list, or currency and rates
        /// changed. An inner `None` restores the default.
        20 PreferencesSet {
            1 account: AccountId;
            2 chat: Option<Option<CompactString>>, 3 columns: Option<Option<Columns>>,
            4 money: Option<MoneySettings>,
        }
        /// The response to the request of this transaction was stored for repeats of the request.
        21 ReplyKept { 1 account: AccountId, 2 reply: KeptResponse; }
        /// Alert rules were matched against a list, and these messages queued. A long list takes
        /// several records: each is complete for the rules that it names, and `done` marks the last
        /// one. `names` has the names of all matches in this record, without repeats.
        22 ListMatched {
            1 through: Watermark, 2 at: UnixMs;
            3 done: bool, 4 names: Vec<MatchedName>, 5 matches: Vec<RecordedMatch>,
        }
        /// Matching of watched names with changes began after `through`. For names that were
        /// already watched, nothing is sent until the owner saves settings.
        23 WatchAlertsBegan { 1 at: UnixMs, 2 through: u64; }
        /// Watched names were matched with the changes up to `through`, and these messages queued.
        /// Many accounts take several records: each is complete for the accounts up to `upto`, the
        /// last one for all. `changes` has the changes of all messages in this record, without
        /// repeats.
        24 ChangesMatched {
            1 through: u64, 2 at: UnixMs;
            3 upto: Option<AccountId>, 4 changes: Vec<WatchedChange>, 5 messages: Vec<RecordedChanges>,
        }
        /// A test message was queued; it counts for `day`. `total` names match, of which the
        /// message shows some; a test of the watchlist shows changes. `deliveries` is as in
        /// [`RecordedMatch`].
        25 TestQueued {
            1 account: AccountId, 2 rule: RuleId, 3 at: UnixMs, 4 day: Day;
            5 total: u32, 6 names: Vec<MatchedName>, 7 changes: Vec<WatchedChange>,
            8 deliveries: Vec<(u8, DeliveryId)>,
        }
        /// An attempt to deliver ended. `attempts` includes this attempt.
        26 DeliverySettled {
            1 account: AccountId, 2 rule: RuleId, 3 delivery: DeliveryId, 4 at: UnixMs, 5 attempts: u16,
            6 outcome: AttemptOutcome;
        }
        /// The owner queued a failed delivery again.
        27 DeliveryRequeued { 1 account: AccountId, 2 rule: RuleId, 3 delivery: DeliveryId, 4 at: UnixMs; }
        /// A channel of a rule was switched off, or all were switched on (`None`).
        28 ChannelsSwitched { 1 account: AccountId, 2 rule: RuleId; 3 off: Option<(Channel, SwitchedOff)> }
        /// The secret in the unsubscribe links of a rule was drawn, before its first mail was queued.
        29 UnsubscribeTokenSet { 1 account: AccountId, 2 rule: RuleId, 3 token: UnsubscribeToken; }
        /// Watched names were observed. `evidence` has the statements of the sources about each row, and
        /// `registrations` its registration.
        30 NamesVerified {
            1 rows: Vec<(DomainName, Observation)>;
            2 evidence: Vec<EvidenceSet>, 3 registrations: Vec<LatestRegistration>,
        }
        /// The owner saved the settings and channels of watch alerts.
        31 WatchAlertsSet { 1 account: AccountId, 2 settings: Box<WatchSettings>; }
        /// Nodes compute the digest of their state at this record, for comparison. It changes nothing.
        32 Checkpoint { 1 id: u64; }
        /// A node took the lead of the cluster, or the leader gave it up.
        33 LeadTaken { 1 lead: Lead; }
        /// The leader uploaded files to the object store, for all nodes to fetch. With `served`,
        /// all nodes put the files into use at this record.
        34 FilesAnnounced { 1 publication: Publication; 2 served: bool }
        /// Names of a suffix were drawn for the random sample of those released on a day: those with the
        /// smallest hashes under the key `seed`, in that order. Of two draws, the first counts.
        35 SampleDrawn {
            1 on: Day, 2 suffix: CompactString, 3 seed: [u8; 32], 4 names: Vec<(DomainName, Dqs)>;
        }
        /// Registries answered about drawn names; each row begins with the day of the release.
        36 SampleAnswered { 1 rows: Vec<(Day, DomainName, SampleAnswer)>; }
        /// A part of an edition of facts arrived; number 0 begins one.
        37 FactsPart { 1 account: AccountId, 2 number: u32, 3 bytes: Part; }
        /// The parts that arrived are the edition of a source.
        38 FactsPut { 1 account: AccountId, 2 row: Box<FactsRow>; }
        /// The owner described the columns of files with a fingerprint, or withdrew that (`None`).
        39 FactsMapped { 1 account: AccountId, 2 print: CompactString; 3 mapping: Option<CompactString> }
        /// The events after this one in its transaction are an action, or a part of one, that the owner
        /// may undo. Applying them keeps the rows as they were. Marks are facts, so they are listed: names
        /// with their marks before, and the mark that they got.
        40 ActionBegan {
            1 account: AccountId, 2 id: ActionId, 3 at: UnixMs;
            4 marks: Vec<(DomainName, Option<CompactString>)>, 5 mark: Option<CompactString>,
        }
        /// The owner undid an action: its rows are as before, except those that were changed after it.
        41 ActionUndone { 1 account: AccountId, 2 id: ActionId; }
        /// Messages were queued about changes of names that an account began to watch after their match.
        /// Fields as in [`Event::ChangesMatched`].
        44 ChangesTold {
            1 account: AccountId, 2 at: UnixMs;
            3 changes: Vec<WatchedChange>, 4 messages: Vec<RecordedChanges>,
        }
        /// Reminders of renewals up to a day were queued. Other fields as in [`Event::ChangesMatched`].
        46 RenewalsDue {
            1 account: AccountId, 2 through: Day, 3 at: UnixMs;
            4 changes: Vec<WatchedChange>, 5 messages: Vec<RecordedChanges>,
        }
        /// An account is to be erased at a time, or no longer (`None`). Until then it is disabled.
        47 ErasureAsked { 1 account: AccountId; 2 at: Option<UnixMs> }
        /// An account and all that belongs to it were erased. Its address is free again.
        48 AccountErased { 1 account: AccountId; }
        /// A visit of the drop list began, or its names were marked as seen.
        42 ListVisited { 1 account: AccountId, 2 visit: Visit; }
        /// The owner turned the morning digest on, changed it, or turned it off (`None`).
        43 DigestSet { 1 account: AccountId; 2 digest: Option<Digest> }
        /// The morning digest for an hour was queued, with the names of lists up to `batch`. Without a
        /// `delivery`, no name was new.
        45 DigestQueued {
            1 account: AccountId, 2 hour: UnixMs, 3 at: UnixMs, 4 batch: u64;
            5 delivery: Option<DeliveryId>, 6 total: u32, 7 rows: DigestRows,
        }
    }
}

impl Event {
    /// Returns the event that an account got a new password.
    pub fn password(account: AccountId, password: PasswordHash) -> Event {
        let password = Some(password);
        Event::AccountChanged { account, plan: None, password, disabled: false }
    }
}

/// Origin of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddedBy {
    #[default]
    Operator,
    /// Self-service sign-up; the address is unverified.
    SignUp,
    /// The first visit to a single-user server created the account of its owner, which may have no
    /// password.
    Owner,
}

/// A row of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowOf {
    Claim(ClaimId),
    Watch(DomainName),
    Rule(RuleId),
    Search(SearchId),
    Key(KeyId),
    Feed(FeedOf),
    Session(TokenDigest),
    /// A source of facts, by its name.
    Facts(CompactString),
}

/// Changes of watched names for one channel of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChanges {
    pub account: AccountId,
    /// Position of the channel.
    pub channel: u8,
    pub delivery: DeliveryId,
    /// Time at which the message is due.
    pub due: UnixMs,
    /// Number of changes.
    pub total: u32,
    /// The first changes, as positions in the event's list of changes.
    pub changes: Vec<u16>,
}

row!(RecordedChanges { 1 account, 2 channel, 3 delivery, 4 due, 5 total, 6 changes });

/// The names that one rule matched in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMatch {
    pub account: AccountId,
    pub rule: RuleId,
    /// Number of names that matched.
    pub total: u32,
    /// The best names, as positions in the event's list of names.
    pub names: Vec<u16>,
    /// For each channel: the position in the rule, and the id of its delivery.
    pub deliveries: Vec<(u8, DeliveryId)>,
}

row!(RecordedMatch { 1 account, 2 rule, 3 total, 4 names, 5 deliveries });

/// Reason why a stored payload could not be decoded.
#[derive(Debug, Error)]
pub enum EventError {
    #[error("{0}")]
    Newer(String),
    #[error("{0}")]
    Malformed(String),
    #[error("an older dropdex wrote it; convert the journal with `dropdex journal upgrade`")]
    Former,
}

impl EventError {
    /// Returns an error with this message. If the message says so, the error is classified as
    /// caused by a newer version.
    pub fn new(message: String) -> EventError {
        match message.ends_with(NEWER) {
            true => EventError::Newer(message),
            false => EventError::Malformed(message),
        }
    }
}

/// The events of one record, which take effect together.
#[derive(Clone, PartialEq, Eq)]
pub struct Transaction(pub Vec<Event>);

impl Transaction {
    /// Returns record kind and payload.
    pub fn encode(&self) -> (RecordKind, Vec<u8>) {
        let mut payload = Vec::new();
        for event in &self.0 {
            payload.push(event.number());
            put_with_length(&mut payload, |bytes| event.encode(bytes));
        }
        (TRANSACTION, payload)
    }

    /// Decodes a payload of this kind.
    ///
    /// # Errors
    /// [`EventError`].
    pub fn decode(kind: RecordKind, mut payload: &[u8]) -> Result<Transaction, EventError> {
        match kind {
            TRANSACTION => {}
            kind if FORMER.contains(&kind.number()) => return Err(EventError::Former),
            kind => {
                return Err(EventError::new(format!(
                    "unknown record kind {}; {NEWER}",
                    kind.number()
                )));
            }
        }
        let mut events = Vec::new();
        while !payload.is_empty() {
            let (number, fields) = take_numbered(&mut payload)
                .ok_or_else(|| EventError::new("a transaction is cut short".to_owned()))?;
            events.push(Event::decode(number, fields).map_err(EventError::new)?);
        }
        Ok(Transaction(events))
    }
}
