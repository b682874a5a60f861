//! The whole state as bytes, and back.
//!
//! A snapshot is a list of chunks of at most 1 MiB, each a run of [`Item`]s in the codec of events.
//! First comes what is about all accounts together, then account after account in order of
//! numbers, each followed by what it owns, sorted; a long list is several items. Equal states give
//! equal bytes, so their digest stands for the state. Items are stored as events are: append only,
//! and golden bytes hold them.

use std::sync::Arc;

use bincode::Options;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::email::Email;
use super::event::{
    EventError, StoredClaim, StoredDay, StoredReply, StoredRule, StoredWatch, Transaction, codec,
};
use super::keys::StoredKey;
use super::owned::Owned;
use super::owned::claims::{Claim, Claims};
use super::owned::replies::Replies;
use super::owned::rules::{Rule, Rules};
use super::owned::watches::{WatchEntry, Watches};
use super::password::PasswordHash;
use super::quota::DayUsage;
use super::state::{Account, Frozen, State};
use crate::journal::{CHUNK_BYTES_MAX, Position, Record, Replay, ReplayResult};
use crate::vocab::claim::Vote;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;

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
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES_MAX);
    let last_day = state.last_day.map(StoredDay);
    push(&mut chunk, &Item::Whole { last_account: state.last_account, last_day });
    for account in &state.accounts {
        push_account(&mut chunk, account, &mut write)?;
    }
    if chunk.is_empty() { Ok(()) } else { write(&chunk) }
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

fn push_account<E>(
    chunk: &mut Vec<u8>,
    account: &Account,
    write: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let owned = &account.owned;
    push_item(chunk, &Item::Account(Box::new(StoredAccount::of(account))), write)?;
    push_rows(chunk, owned.claims.by_id().map(|it| it.clone().into()), Item::Claims, write)?;
    push_rows(chunk, owned.watches.iter().map(Into::into), Item::Watches, write)?;
    push_rows(chunk, owned.rules.newest_first().map(|it| it.clone().into()), Item::Rules, write)?;
    let votes = owned.votes.iter().map(|(name, vote)| (name.clone(), *vote));
    push_rows(chunk, votes, Item::Votes, write)?;
    push_rows(chunk, owned.replies.iter().map(|it| it.clone().into()), Item::Replies, write)
}

/// Rows as items of about [`ITEM_BYTES`] each; no item where there are none.
fn push_rows<T: Serialize, E>(
    chunk: &mut Vec<u8>,
    rows: impl Iterator<Item = T>,
    item: fn(Vec<T>) -> Item,
    write: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut pending, mut bytes) = (Vec::new(), 0);
    for row in rows {
        bytes += codec().serialized_size(&row).expect("a row came through a record");
        pending.push(row);
        if bytes >= ITEM_BYTES {
            push_item(chunk, &item(std::mem::take(&mut pending)), write)?;
            bytes = 0;
        }
    }
    if pending.is_empty() { Ok(()) } else { push_item(chunk, &item(pending), write) }
}

fn push_item<E>(
    chunk: &mut Vec<u8>,
    item: &Item,
    write: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    push(chunk, item);
    if chunk.len() >= CHUNK_BYTES {
        write(chunk)?;
        chunk.clear();
    }
    Ok(())
}

fn push(chunk: &mut Vec<u8>, item: &Item) {
    codec().serialize_into(chunk, item).expect("items are far below 1 MiB, and memory takes all");
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
    /// The account whose things are coming in.
    open: Option<Open>,
}

struct Open {
    account: Account,
    claims: Vec<Claim>,
    watches: Vec<WatchEntry>,
    rules: Vec<Rule>,
    votes: Vec<(CompactString, Vote)>,
    replies: Replies,
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
                return Ok(());
            }
            Item::Account(account) => {
                self.finish_account();
                self.open = Some(Open::new(account.account()));
                return Ok(());
            }
            item => self.open.as_mut().ok_or("it begins with what no account owns")?.take(item),
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
        Open { account, claims, watches, rules, votes, replies: Replies::default() }
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Claims(rows) => self.claims.extend(rows.into_iter().map(Claim::from)),
            Item::Watches(rows) => self.watches.extend(rows.into_iter().map(WatchEntry::from)),
            Item::Rules(rows) => self.rules.extend(rows.into_iter().map(Rule::from)),
            Item::Votes(rows) => self.votes.extend(rows),
            Item::Replies(rows) => rows.into_iter().for_each(|row| self.replies.put(row.into())),
            Item::Whole { .. } | Item::Account(_) => {}
        }
    }

    fn close(self) -> Account {
        let owned = Owned {
            claims: Arc::new(Claims::from_sorted(self.claims)),
            watches: Arc::new(Watches::from_sorted(self.watches)),
            rules: Arc::new(Rules::from_unsorted(self.rules)),
            votes: Arc::new(self.votes.into_iter().collect()),
            replies: Arc::new(self.replies),
        };
        Account { owned: Arc::new(owned), ..self.account }
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
    use crate::accounts::owned::replies::KeptReply;
    use crate::accounts::quota::Usage;
    use crate::vocab::day::Day;
    use crate::vocab::ids::{ClaimId, RuleId};
    use crate::vocab::name::DomainName;
    use crate::vocab::time::UnixMs;

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
        };
        Arc::new(Account {
            owned: Arc::new(owned),
            noted: DayUsage { day: Some(day()), requests: 5, exports: 6 },
            usage: Arc::new(Usage::default()),
            ..Account::new(AccountId(number), email, Plan::Pro, None, day())
        })
    }

    fn frozen(accounts: Vec<Arc<Account>>) -> Frozen {
        Frozen { accounts, last_account: 9, last_day: Some(day()) }
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
        let orphan = codec().serialize(&Item::Votes(Vec::new())).expect("encoded");
        assert!(load(&[orphan]).is_err(), "votes of nobody");
    }
}
