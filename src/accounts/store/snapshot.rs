//! The whole state as bytes, and back.
//!
//! A snapshot is a list of chunks of at most 1 MiB, each a run of [`Item`]s in the codec of events.
//! First comes what is about all accounts together, then account after account in order of
//! numbers, each followed by what it owns, sorted; a long list is several items. Equal states give
//! equal bytes, so their digest stands for the state. Items are stored as events are: append only,
//! and golden bytes hold them.

use std::collections::HashMap;
use std::sync::Arc;

use bincode::Options;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::access::{Access, Address, Links, Session};
use super::email::Email;
use super::event::{
    EventError, StoredClaim, StoredDay, StoredDelivery, StoredMatchedName, StoredName,
    StoredObservation, StoredOff, StoredReply, StoredRule, StoredWatch, StoredWatermark,
    Transaction, codec,
};
use super::keys::StoredKey;
use super::owned::Owned;
use super::owned::claims::{Claim, Claims};
use super::owned::deliveries::{MatchedName, Outbox};
use super::owned::replies::Replies;
use super::owned::rules::{Rule, Rules};
use super::owned::watches::{WatchEntry, Watches};
use super::password::PasswordHash;
use super::quota::DayUsage;
use super::state::{Account, Frozen, State};
use super::token::TokenDigest;
use crate::journal::{CHUNK_BYTES_MAX, Position, Record, Replay, ReplayResult};
use crate::vocab::claim::Vote;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// Rows are put into items of about this many bytes.
const ITEM_BYTES: u64 = 64 << 10;
/// A chunk is handed over once it is this long: the longest row (an answer of 256 KiB) still fits.
const CHUNK_BYTES: usize = 512 << 10;
const _: () = assert!(CHUNK_BYTES + ITEM_BYTES as usize + (300 << 10) <= CHUNK_BYTES_MAX);

/// A piece of a snapshot.
#[derive(Serialize, Deserialize)]
enum Item {
    /// About all accounts together; the first item.
    Whole { last_account: u64, last_day: Option<StoredDay> },
    /// An account. All up to the next one is its own.
    Account(Box<StoredAccount>),
    /// In order of ids.
    Claims(Vec<StoredClaim>),
    /// In order of names.
    Watches(Vec<StoredWatch>),
    /// Newest first.
    Rules(Vec<StoredRule>),
    /// In order of names.
    Votes(Vec<(CompactString, Vote)>),
    /// In order of keys' digests.
    Replies(Vec<StoredReply>),
    /// How far alert rules are matched. About all accounts, as the two after it; they come before
    /// the first account.
    Matched(StoredWatermark),
    /// Rules that are ahead, in order of accounts and rules.
    Ahead(Vec<(AccountId, RuleId, StoredWatermark)>),
    /// What was seen of watched names, in order of names.
    Observed(Vec<(StoredName, StoredObservation)>),
    /// More of the one table of names that deliveries of all accounts have places in.
    Names(Vec<StoredMatchedName>),
    /// The last UTC day with test messages, and how many.
    Tests(StoredDay, u32),
    /// In order of rules: what their mails name, channels that are off.
    Outboxes(Vec<(RuleId, Option<DeliveryId>, Vec<StoredOff>)>),
    /// In order of rules, then oldest first.
    Deliveries(Vec<(RuleId, StoredDelivery)>),
    /// Log-ins, oldest first: digest, when it began, when it was last seen.
    Sessions(Vec<(TokenDigest, UnixMs, UnixMs)>),
    /// The address is not verified. The link that verifies it; the last UTC day with links, and how
    /// many.
    Unverified(Option<(TokenDigest, UnixMs)>, Option<(StoredDay, u32)>),
    /// The chat that new alert rules begin with.
    TelegramChat(CompactString),
}

#[derive(Serialize, Deserialize)]
struct StoredAccount {
    id: AccountId,
    email: Email,
    plan: Plan,
    password: Option<PasswordHash>,
    disabled: bool,
    created: StoredDay,
    key: Option<StoredKey>,
    /// Day, requests, exports.
    noted: Option<(StoredDay, u32, u32)>,
}

/// Hands the chunks of a state to `write`, in order.
///
/// # Errors
/// What `write` returns, at once.
pub(super) fn write_chunks<E>(
    state: &Frozen,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut chunks = Chunks {
        chunk: Vec::with_capacity(CHUNK_BYTES_MAX),
        places: HashMap::new(),
        new_names: Vec::new(),
        write,
    };
    chunks.whole(state)?;
    for account in &state.accounts {
        chunks.account(account)?;
    }
    chunks.finish()
}

/// What stands for a state: BLAKE3 over its chunks, each after its length (`u32`, little-endian).
pub(super) fn digest(state: &Frozen) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let hashed = write_chunks(state, |chunk| {
        hasher.update(&(chunk.len() as u32).to_le_bytes());
        hasher.update(chunk);
        Ok::<(), std::convert::Infallible>(())
    });
    match hashed {
        Ok(()) => *hasher.finalize().as_bytes(),
    }
}

/// A snapshot on its way out.
struct Chunks<W> {
    chunk: Vec<u8>,
    /// Names of deliveries that are in the table, or in `new_names`, with their places: as equal
    /// names have one place, equal states have equal bytes.
    places: HashMap<Arc<MatchedName>, u32>,
    new_names: Vec<StoredMatchedName>,
    write: W,
}

impl<E, W: FnMut(&[u8]) -> Result<(), E>> Chunks<W> {
    /// What is about all accounts together.
    fn whole(&mut self, state: &Frozen) -> Result<(), E> {
        let last_day = state.last_day.map(StoredDay);
        self.item(&Item::Whole { last_account: state.last_account, last_day })?;
        if let Some(all) = state.matched.all {
            self.item(&Item::Matched(all.into()))?;
        }
        let ahead = state.matched.ahead.iter();
        self.rows(ahead.map(|(&(account, rule), it)| (account, rule, (*it).into())), Item::Ahead)?;
        let observed = state.watched.by_name().into_iter();
        self.rows(observed.map(|(name, it)| (StoredName(name.clone()), it.into())), Item::Observed)
    }

    fn account(&mut self, account: &Account) -> Result<(), E> {
        let owned = &account.owned;
        self.item(&Item::Account(Box::new(StoredAccount::of(account))))?;
        self.access(&account.access)?;
        self.rows(owned.claims.by_id().map(|it| it.clone().into()), Item::Claims)?;
        self.rows(owned.watches.iter().map(Into::into), Item::Watches)?;
        self.rows(owned.rules.newest_first().map(|it| it.clone().into()), Item::Rules)?;
        let votes = owned.votes.iter().map(|(name, vote)| (name.clone(), *vote));
        self.rows(votes, Item::Votes)?;
        self.rows(owned.replies.iter().map(|it| it.clone().into()), Item::Replies)?;
        if let Some((day, count)) = owned.tests {
            self.item(&Item::Tests(StoredDay(day), count))?;
        }
        let outboxes =
            owned.outbox.iter().filter(|(_, it)| it.mail_id.is_some() || !it.off.is_empty());
        let off = |(channel, off): &(Arc<_>, _)| StoredOff::of(channel, *off);
        let outboxes =
            outboxes.map(|(rule, it)| (rule, it.mail_id, it.off.iter().map(off).collect()));
        self.rows(outboxes, Item::Outboxes)?;
        self.deliveries(&owned.outbox)
    }

    /// How the account is entered, as far as it is not that of an account just added.
    fn access(&mut self, access: &Access) -> Result<(), E> {
        if !access.sessions.is_empty() {
            let rows = access.sessions.iter().map(|it| (it.digest, it.began, it.seen));
            self.item(&Item::Sessions(rows.collect()))?;
        }
        if let Address::Unverified(Links { newest, on }) = access.address {
            let on = on.map(|(day, count)| (StoredDay(day), count));
            self.item(&Item::Unverified(newest, on))?;
        }
        match &access.telegram_chat {
            Some(chat) => self.item(&Item::TelegramChat(chat.clone())),
            None => Ok(()),
        }
    }

    /// Deliveries, each after the names it has places of.
    fn deliveries(&mut self, outbox: &Outbox) -> Result<(), E> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for (rule, outbox) in outbox.iter() {
            for delivery in &outbox.deliveries {
                let row = (rule, StoredDelivery::of(delivery, |name| self.place(name, &mut bytes)));
                bytes += size_of(&row);
                rows.push(row);
                if bytes >= ITEM_BYTES {
                    self.names_and(std::mem::take(&mut rows))?;
                    bytes = 0;
                }
            }
        }
        if rows.is_empty() { Ok(()) } else { self.names_and(rows) }
    }

    fn place(&mut self, name: &Arc<MatchedName>, bytes: &mut u64) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = u32::try_from(self.places.len()).expect("memory holds fewer names");
        let stored = StoredMatchedName::from(&**name);
        *bytes += size_of(&stored);
        self.new_names.push(stored);
        self.places.insert(Arc::clone(name), place);
        place
    }

    fn names_and(&mut self, rows: Vec<(RuleId, StoredDelivery)>) -> Result<(), E> {
        if !self.new_names.is_empty() {
            let names = std::mem::take(&mut self.new_names);
            self.item(&Item::Names(names))?;
        }
        self.item(&Item::Deliveries(rows))
    }

    /// Rows as items of about [`ITEM_BYTES`] each; no item where there are none.
    fn rows<T: Serialize>(
        &mut self,
        rows: impl Iterator<Item = T>,
        item: fn(Vec<T>) -> Item,
    ) -> Result<(), E> {
        let (mut pending, mut bytes) = (Vec::new(), 0);
        for row in rows {
            bytes += size_of(&row);
            pending.push(row);
            if bytes >= ITEM_BYTES {
                self.item(&item(std::mem::take(&mut pending)))?;
                bytes = 0;
            }
        }
        if pending.is_empty() { Ok(()) } else { self.item(&item(pending)) }
    }

    fn item(&mut self, item: &Item) -> Result<(), E> {
        codec()
            .serialize_into(&mut self.chunk, item)
            .expect("items are far below 1 MiB, and memory takes all");
        if self.chunk.len() >= CHUNK_BYTES {
            (self.write)(&self.chunk)?;
            self.chunk.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), E> {
        if self.chunk.is_empty() { Ok(()) } else { (self.write)(&self.chunk) }
    }
}

fn size_of(row: &impl Serialize) -> u64 {
    codec().serialized_size(row).expect("a row came through a record")
}

impl StoredAccount {
    fn of(account: &Account) -> StoredAccount {
        let DayUsage { day, requests, exports } = account.noted;
        StoredAccount {
            id: account.id,
            email: account.email.clone(),
            plan: account.plan,
            password: account.password.clone(),
            disabled: account.disabled,
            created: StoredDay(account.created),
            key: account.key,
            noted: day.map(|day| (StoredDay(day), requests, exports)),
        }
    }

    fn account(self) -> Account {
        let StoredAccount { id, email, plan, password, disabled, created, key, noted } = self;
        let noted =
            noted.map(|(day, requests, exports)| DayUsage { day: Some(day.0), requests, exports });
        Account {
            disabled,
            key,
            noted: noted.unwrap_or_default(),
            ..Account::new(id, email, plan, password, created.0)
        }
    }
}

/// Builds a state from the chunks of a snapshot and the records after it.
#[derive(Default)]
pub(super) struct Loader {
    state: State,
    /// Names of deliveries, by their places.
    names: Vec<Arc<MatchedName>>,
    /// The account whose things are coming in.
    open: Option<Open>,
}

struct Open {
    account: Account,
    access: Access,
    claims: Vec<Claim>,
    watches: Vec<WatchEntry>,
    rules: Vec<Rule>,
    votes: Vec<(CompactString, Vote)>,
    replies: Replies,
    outbox: Outbox,
    tests: Option<(Day, u32)>,
}

impl Loader {
    /// The state all of it led to, at `position`.
    pub(super) fn into_state(mut self, position: Position) -> State {
        self.finish_account();
        self.state.begin(position);
        self.state
    }

    fn item(&mut self, item: Item) -> Result<(), &'static str> {
        match item {
            Item::Whole { last_account, last_day } => {
                self.state.set_last(last_account, last_day.map(|day| day.0));
            }
            Item::Matched(through) => self.state.set_matched(through.into()),
            Item::Ahead(rows) => {
                for (account, rule, through) in rows {
                    self.state.set_ahead(account, rule, through.into());
                }
            }
            Item::Observed(rows) => {
                for (name, observation) in rows {
                    self.state.put_observation(name.0, observation.into());
                }
            }
            Item::Names(rows) => {
                self.names.extend(rows.into_iter().map(|row| Arc::new(MatchedName::from(row))));
            }
            Item::Account(account) => {
                self.finish_account();
                self.open = Some(Open::new(account.account()));
            }
            item => {
                let open = self.open.as_mut().ok_or("it begins with what no account owns")?;
                open.take(item, &self.names)?;
            }
        }
        Ok(())
    }

    fn finish_account(&mut self) {
        if let Some(open) = self.open.take() {
            self.state.put_account(open.close());
        }
    }
}

impl Open {
    fn new(account: Account) -> Open {
        let (claims, watches, rules, votes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (replies, outbox, tests) = (Replies::default(), Outbox::default(), None);
        let access = Access::default();
        Open { account, access, claims, watches, rules, votes, replies, outbox, tests }
    }

    fn take(&mut self, item: Item, names: &[Arc<MatchedName>]) -> Result<(), &'static str> {
        match item {
            Item::Claims(rows) => self.claims.extend(rows.into_iter().map(Claim::from)),
            Item::Watches(rows) => self.watches.extend(rows.into_iter().map(WatchEntry::from)),
            Item::Rules(rows) => self.rules.extend(rows.into_iter().map(Rule::from)),
            Item::Votes(rows) => self.votes.extend(rows),
            Item::Replies(rows) => rows.into_iter().for_each(|row| self.replies.put(row.into())),
            Item::Tests(day, count) => self.tests = Some((day.0, count)),
            Item::Outboxes(rows) => {
                for (rule, mail_id, off) in rows {
                    let off = off.into_iter().map(StoredOff::into_parts);
                    let off = off.map(|(channel, off)| (Arc::new(channel), off)).collect();
                    self.outbox.change(rule, |outbox| {
                        (outbox.mail_id, outbox.off) = (mail_id, off);
                    });
                }
            }
            Item::Deliveries(rows) => {
                for (rule, delivery) in rows {
                    let delivery = delivery.into_delivery(names);
                    let delivery = delivery.ok_or("a delivery has names that come nowhere")?;
                    self.outbox.change(rule, |outbox| outbox.put(delivery));
                }
            }
            Item::Sessions(rows) => {
                let session = |(digest, began, seen)| Session { digest, began, seen };
                self.access.sessions.extend(rows.into_iter().map(session));
            }
            Item::Unverified(newest, on) => {
                let on = on.map(|(day, count)| (day.0, count));
                self.access.address = Address::Unverified(Links { newest, on });
            }
            Item::TelegramChat(chat) => self.access.telegram_chat = Some(chat),
            // The caller takes these.
            Item::Whole { .. }
            | Item::Account(_)
            | Item::Matched(_)
            | Item::Ahead(_)
            | Item::Observed(_)
            | Item::Names(_) => {}
        }
        Ok(())
    }

    fn close(self) -> Account {
        let owned = Owned {
            claims: Arc::new(Claims::from_sorted(self.claims)),
            watches: Arc::new(Watches::from_sorted(self.watches)),
            rules: Arc::new(Rules::from_unsorted(self.rules)),
            votes: Arc::new(self.votes.into_iter().collect()),
            replies: Arc::new(self.replies),
            outbox: Arc::new(self.outbox),
            tests: self.tests,
        };
        Account { owned: Arc::new(owned), access: Arc::new(self.access), ..self.account }
    }
}

impl Replay for Loader {
    fn reset(&mut self) {
        *self = Loader::default();
    }

    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult {
        let mut rest = bytes;
        while !rest.is_empty() {
            let limited = codec().allow_trailing_bytes();
            let item = limited.deserialize_from(&mut rest).map_err(EventError::Decode)?;
            self.item(item)?;
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> ReplayResult {
        self.finish_account();
        let fields = record.fields;
        let position = Position { seq: fields.seq, chain: record.chain, epoch: fields.epoch };
        self.state.apply(Transaction::decode(fields.kind, record.payload)?, position);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::owned::deliveries::{
        Delivery, DeliveryStatus, Message, MessageKind, OffReason, Problem, StatusClass,
        SwitchedOff,
    };
    use crate::accounts::owned::replies::KeptReply;
    use crate::accounts::owned::rules::Channel;
    use crate::accounts::quota::Usage;
    use crate::vocab::dqs::Dqs;
    use crate::vocab::ids::ClaimId;
    use crate::vocab::name::DomainName;
    use crate::vocab::observation::{Observation, ObservedBy, RdapState, RdapStatus, RdapStatuses};
    use crate::vocab::stage::Stage;
    use crate::vocab::watermark::Watermark;

    fn day() -> Day {
        "2026-11-21".parse().expect("a day")
    }

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).expect("a name")
    }

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_790_000_000_000 + ms).expect("an instant")
    }

    fn claim(id: u64, notes: &str) -> Claim {
        Claim {
            id: ClaimId::new(id).expect("an id"),
            domain: name("example.co.uk"),
            status: crate::vocab::claim::ClaimStatus::Caught,
            registrar: None,
            acquired_price: None,
            resale_price: None,
            sold_at: None,
            reported_at: at(0),
            updated_at: at(1),
            user_notes: Some(notes.into()),
            alert_rule: None,
        }
    }

    fn watch(text: &str) -> WatchEntry {
        let (external, registered_again) = (text.len().is_multiple_of(2), false);
        WatchEntry { name: name(text), added_at: at(2), external, registered_again }
    }

    fn reply(key: u8, len: usize) -> KeptReply {
        let (key, fingerprint, at, status) = ([key; 16], [2; 32], at(3), 201);
        KeptReply { key, fingerprint, at, status, body: vec![b'x'; len].into() }
    }

    fn rule() -> Rule {
        Rule {
            id: RuleId::new(7).expect("an id"),
            name: "short".into(),
            filter: Default::default(),
            channels: vec![crate::accounts::Channel::Email],
            active: true,
            created_at: at(4),
            secrets: Vec::new(),
        }
    }

    fn account(number: u64, claims: Vec<Claim>, watches: Vec<WatchEntry>) -> Arc<Account> {
        let email = format!("a{number}@example.com").parse().expect("an address");
        let mut replies = Replies::default();
        replies.put(reply(9, 2));
        let owned = Owned {
            claims: Arc::new(Claims::from_sorted(claims)),
            watches: Arc::new(Watches::from_sorted(watches)),
            rules: Arc::new(Rules::from_unsorted(vec![rule()])),
            votes: Arc::new([("a.com".into(), Vote::Up), ("b.com".into(), Vote::Down)].into()),
            replies: Arc::new(replies),
            ..Owned::default()
        };
        Arc::new(Account {
            owned: Arc::new(owned),
            noted: DayUsage { day: Some(day()), requests: 5, exports: 6 },
            usage: Arc::new(Usage::default()),
            ..Account::new(AccountId(number), email, Plan::Pro, None, day())
        })
    }

    fn frozen(accounts: Vec<Arc<Account>>) -> Frozen {
        let (matched, watched) = Default::default();
        Frozen { accounts, last_account: 9, last_day: Some(day()), matched, watched }
    }

    fn chunks(state: &Frozen) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        let written = write_chunks(state, |chunk| {
            chunks.push(chunk.to_vec());
            Ok::<(), std::convert::Infallible>(())
        });
        assert!(written.is_ok());
        chunks
    }

    fn load(chunks: &[Vec<u8>]) -> Result<State, Box<dyn std::error::Error + Send + Sync>> {
        let mut loader = Loader::default();
        loader.reset();
        for chunk in chunks {
            loader.chunk(chunk)?;
        }
        Ok(loader.into_state(Position::default()))
    }

    #[test]
    fn the_bytes_of_a_snapshot_never_change() {
        let bare = "b@example.com".parse().expect("an address");
        let bare = Arc::new(Account::new(AccountId(4), bare, Plan::Free, None, day()));
        let full = account(3, vec![claim(1, "one"), claim(2, "two")], vec![watch("a.com")]);
        let ours: String =
            chunks(&frozen(vec![full, bare])).iter().map(|it| hex::encode(it) + "\n").collect();
        assert_eq!(ours, include_str!("../../tests/golden/accounts-snapshot-v1.hex"));
    }

    fn matched(text: &str) -> Arc<MatchedName> {
        Arc::new(MatchedName {
            name: name(text),
            dqs: Dqs::new(70).expect("a score"),
            drop_date: day(),
            release: day().plus(35),
            stage: Stage::Redemption,
        })
    }

    fn delivery(byte: u8, channel: Channel, names: Option<&[&str]>) -> Delivery {
        let names = names.map(|names| names.iter().map(|name| matched(name)).collect());
        let (kind, total) = (MessageKind::Match, 3);
        Delivery {
            id: DeliveryId::new([byte; 16]),
            channel: Arc::new(channel),
            message: Message { kind, at: at(5), list_day: day(), total, names },
            attempts: u16::from(byte),
            status: DeliveryStatus::Pending { next_at: at(6) },
            last_attempt_at: None,
            last_problem: None,
        }
    }

    /// A state with all that came to snapshots after the first version.
    fn sending() -> Frozen {
        let (rule_id, mut outbox) = (rule().id, Outbox::default());
        let telegram = Channel::Telegram { chat_id: "-100".into() };
        outbox.change(rule_id, |outbox| {
            outbox.mail_id = Some(DeliveryId::new([1; 16]));
            outbox.put(Delivery {
                status: DeliveryStatus::Delivered,
                last_attempt_at: Some(at(7)),
                ..delivery(1, Channel::Email, None)
            });
            outbox.put(delivery(2, Channel::Email, Some(&["a.com", "b.com"])));
            outbox.put(Delivery {
                status: DeliveryStatus::Failed,
                last_problem: Some(Problem::Status(StatusClass::ServerError)),
                ..delivery(3, telegram.clone(), Some(&["b.com", "c.com"]))
            });
            let (reason, at) = (OffReason::Unsubscribed, at(8));
            outbox.off.push((Arc::new(telegram), SwitchedOff { reason, at }));
        });
        let mut full = (*account(3, Vec::new(), vec![watch("a.com"), watch("b.com")])).clone();
        let owned = Arc::make_mut(&mut full.owned);
        owned.outbox = Arc::new(outbox);
        owned.tests = Some((day(), 4));
        let mut state = frozen(vec![Arc::new(full)]);
        let through = |batch| Watermark { batch, day: day() };
        state.matched.finish(through(5));
        state.matched.advance(AccountId(3), rule_id, through(6));
        let seen = Observation {
            state: RdapState::Renewed,
            at: at(9),
            registered_on: Some(day()),
            statuses: RdapStatuses::NONE.with(RdapStatus::Active),
            source: ObservedBy::Rdap,
        };
        state.watched.put(name("b.com"), seen);
        state
    }

    #[test]
    fn the_bytes_of_what_is_sent_never_change() {
        let ours: String = chunks(&sending()).iter().map(|it| hex::encode(it) + "\n").collect();
        assert_eq!(ours, include_str!("../../tests/golden/accounts-snapshot-v2.hex"));
    }

    /// Accounts that people have logged in to, signed up for, been mailed about.
    fn entered() -> Frozen {
        let digest = |byte| TokenDigest::new([byte; 32]);
        let session = |byte| Session { digest: digest(byte), began: at(10), seen: at(11) };
        let entered = Access {
            sessions: vec![session(1), session(2)],
            telegram_chat: Some("-100".into()),
            ..Access::default()
        };
        let links = Links { newest: Some((digest(3), at(12))), on: Some((day(), 2)) };
        let asked = Access { address: Address::Unverified(links), ..Access::default() };
        let all = [entered, asked, Access::unverified()];
        let with = |(number, access)| {
            let bare = (*account(number, Vec::new(), Vec::new())).clone();
            Arc::new(Account { access: Arc::new(access), ..bare })
        };
        frozen((5..).zip(all).map(with).collect())
    }

    #[test]
    fn the_bytes_of_log_ins_never_change() {
        let ours: String = chunks(&entered()).iter().map(|it| hex::encode(it) + "\n").collect();
        assert_eq!(ours, include_str!("../../tests/golden/accounts-snapshot-v3.hex"));
    }

    #[test]
    fn log_ins_and_links_of_a_snapshot_are_found() {
        let state = load(&chunks(&entered())).expect("read");
        for (read, written) in state.freeze().accounts.iter().zip(entered().accounts) {
            assert_eq!(read.access, written.access);
        }
        let session = state.by_session(&TokenDigest::new([2; 32])).expect("there");
        assert_eq!((session.0.id, session.1.seen), (AccountId(5), at(11)));
        let linked = state.by_link(&TokenDigest::new([3; 32])).expect("there");
        assert_eq!(linked.id, AccountId(6));
        assert!(state.by_session(&TokenDigest::new([3; 32])).is_none());
    }

    #[test]
    fn snapshots_of_every_kind_are_read() {
        let entered = include_str!("../../tests/golden/accounts-snapshot-v3.hex");
        let bytes: Vec<_> = entered.lines().map(|line| hex::decode(line).expect("hex")).collect();
        assert_eq!(chunks(&load(&bytes).expect("read").freeze()), bytes);
        for (golden, is_bare) in [
            (include_str!("../../tests/golden/accounts-snapshot-v1.hex"), true),
            (include_str!("../../tests/golden/accounts-snapshot-v2.hex"), false),
        ] {
            let bytes: Vec<_> =
                golden.lines().map(|line| hex::decode(line).expect("hex")).collect();
            let state = load(&bytes).expect("read");
            assert_eq!(chunks(&state.freeze()), bytes, "and written as it was");
            assert_eq!(state.watermark().is_none(), is_bare);
            assert_eq!(state.pending().len(), usize::from(!is_bare));
            assert_eq!(state.observation(&name("b.com")).is_none(), is_bare);
            assert_eq!(state.of_mail(DeliveryId::new([1; 16])).is_none(), is_bare);
        }
    }

    /// Ten thousand messages of the same five hundred names.
    #[test]
    fn names_are_written_once() {
        let texts: Vec<_> = (0..500).map(|at| format!("name-{at}.com")).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        let message = delivery(1, Channel::Email, Some(&texts));
        let mut outbox = Outbox::default();
        for number in 1..=10_000_u64 {
            let rule = RuleId::new(number).expect("an id");
            outbox.change(rule, |outbox| {
                // Equal names are one, whether they are shared or not.
                let copied = message.message.names.as_deref().unwrap_or_default();
                let copied = copied.iter().map(|name| Arc::new((**name).clone()));
                let copied = (number == 10_000).then(|| copied.collect());
                let names = copied.or_else(|| message.message.names.clone());
                let message_of_it = Message { names, ..message.message.clone() };
                outbox.put(Delivery { message: message_of_it, ..message.clone() });
            });
        }
        let mut full = (*account(3, Vec::new(), Vec::new())).clone();
        Arc::make_mut(&mut full.owned).outbox = Arc::new(outbox);
        let state = frozen(vec![Arc::new(full)]);
        let chunks = chunks(&state);
        assert!(chunks.iter().all(|chunk| (1..=CHUNK_BYTES_MAX).contains(&chunk.len())));
        let bytes: usize = chunks.iter().map(Vec::len).sum();
        assert!(bytes < 10_000 * (500 * 4 + 200), "{bytes} bytes");
        let read = load(&chunks).expect("read").freeze();
        assert!(read.accounts[0].owned == state.accounts[0].owned);
        assert_eq!(digest(&read), digest(&state));
    }

    #[test]
    fn what_is_written_is_read_back_whatever_its_size() {
        let notes = "ü".repeat(5_000);
        let claims = (1..400).map(|id| claim(id, &notes[..(id as usize % 100) * 100])).collect();
        let mut names: Vec<_> = (0..9_000).map(|at| format!("name-{at}.com")).collect();
        names.sort();
        let watches = names.iter().map(|name| watch(name)).collect();
        let mut long = (*account(3, claims, watches)).clone();
        let owned = Arc::make_mut(&mut long.owned);
        (0..8).for_each(|key| Arc::make_mut(&mut owned.replies).put(reply(key, 256 << 10)));
        let state = frozen(vec![account(1, Vec::new(), Vec::new()), Arc::new(long)]);
        let chunks = chunks(&state);
        assert!(chunks.len() > 2);
        assert!(chunks.iter().all(|chunk| (1..=CHUNK_BYTES_MAX).contains(&chunk.len())));
        let read = load(&chunks).expect("read").freeze();
        assert_eq!(digest(&read), digest(&state));
        for (read, written) in read.accounts.iter().zip(&state.accounts) {
            assert!(read.owned == written.owned && read.noted == written.noted);
        }
    }

    #[test]
    fn hostile_bytes_do_no_harm() {
        let full = account(3, vec![claim(1, "one")], vec![watch("a.com")]);
        let whole = chunks(&frozen(vec![full])).remove(0);
        let mut sound = 0;
        for len in 0..whole.len() {
            sound += usize::from(load(&[whole[..len].to_vec()]).is_ok());
        }
        // Cuts between items: after nothing and after each but the last.
        assert_eq!(sound, 1 + 6);
        for whole in [whole, chunks(&sending()).remove(0), chunks(&entered()).remove(0)] {
            for at in 0..whole.len() {
                for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                    let mut hostile = whole.clone();
                    hostile[at] = value;
                    // An error or another state, never a panic: the journal's checksums come first.
                    if let Ok(state) = load(&[hostile]) {
                        digest(&state.freeze());
                    }
                }
            }
        }
        let orphan = codec().serialize(&Item::Votes(Vec::new())).expect("encoded");
        assert!(load(&[orphan]).is_err(), "votes of nobody");
    }
}
