//! The events of the former layout, and their conversion to present ones.

use bincode::Options;
use compact_str::CompactString;
use serde::Deserialize;

use super::rows::{
    Claim, DroppedName, EntryAlerts, Feed, KeptResponse, KeyRow, Lead, Publication,
    RecordedChanges, RecordedMatch, RuleRow, SavedSearch, Trade, WatchAlerts, WatchDetails,
    WatchEntry, WebhookSecret, all, codec, detailed,
};
use crate::data::UserData;
use crate::data::access::SessionLife;
use crate::data::deliveries::{AttemptOutcome, SwitchedOff};
use crate::data::feeds::FeedOf;
use crate::data::keys::Key as NewKey;
use crate::data::rules::Channel;
use crate::data::watch_alerts::WatchSettings;
use crate::data::watches::WatchRow;
use crate::email::Email;
use crate::event::{AddedBy, Event as New, FORMER, RowOf};
use crate::journal::RecordKind;
use crate::keys::StoredKey;
use crate::password::PasswordHash;
use crate::query::stored::Conditions;
use crate::store::state::State;
use crate::token::TokenDigest;
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

/// A change of the users' state. Stored by position in the list.
#[derive(Deserialize)]
pub enum Event {
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
    KeyIssued {
        account: AccountId,
        key: StoredKey,
        #[expect(dead_code, reason = "a key of that version has no day")]
        on: Day,
    },
    AccountDisabled {
        account: AccountId,
    },
    UsageNoted {
        account: AccountId,
        day: Day,
        requests: u32,
        exports: u32,
    },
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
    WatchesArrived {
        account: AccountId,
        names: Vec<DomainName>,
    },
    RuleAdded {
        account: AccountId,
        rule: Box<RuleRow>,
    },
    RuleChanged {
        account: AccountId,
        rule: Box<RuleRow>,
    },
    RuleRemoved {
        account: AccountId,
        rule: RuleId,
    },
    VoteSet {
        account: AccountId,
        name: DomainName,
        vote: Option<Vote>,
    },
    ReplyKept {
        account: AccountId,
        reply: KeptResponse,
    },
    ListMatched {
        through: Watermark,
        done: bool,
        at: UnixMs,
        names: Vec<DroppedName>,
        matches: Vec<RecordedMatch>,
    },
    TestQueued {
        account: AccountId,
        rule: RuleId,
        at: UnixMs,
        day: Day,
        total: u32,
        names: Vec<DroppedName>,
        deliveries: Vec<(u8, DeliveryId)>,
    },
    DeliverySettled {
        account: AccountId,
        rule: RuleId,
        delivery: DeliveryId,
        at: UnixMs,
        attempts: u16,
        outcome: AttemptOutcome,
    },
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
    ChannelsSwitchedOn {
        account: AccountId,
        rule: RuleId,
    },
    NamesVerified {
        rows: Vec<(DomainName, Observation)>,
    },
    AccountSignedUp {
        account: AccountId,
        email: Email,
        plan: Plan,
        password: PasswordHash,
        on: Day,
    },
    PasswordSet {
        account: AccountId,
        password: PasswordHash,
    },
    SessionBegan {
        account: AccountId,
        digest: TokenDigest,
        at: UnixMs,
    },
    SessionSeen {
        account: AccountId,
        digest: TokenDigest,
        at: UnixMs,
    },
    SessionEnded {
        account: AccountId,
        digest: TokenDigest,
    },
    EmailVerificationAsked {
        account: AccountId,
        digest: TokenDigest,
        at: UnixMs,
    },
    EmailVerified {
        account: AccountId,
    },
    TelegramChatSet {
        account: AccountId,
        chat: Option<CompactString>,
    },
    UnsubscribeTokenSet {
        account: AccountId,
        rule: RuleId,
        token: UnsubscribeToken,
    },
    WatchDetailsSet {
        account: AccountId,
        name: DomainName,
        details: WatchDetails,
    },
    NamesHidden {
        account: AccountId,
        names: Vec<DomainName>,
    },
    NamesShown {
        account: AccountId,
        names: Vec<DomainName>,
    },
    ClaimTradeSet {
        account: AccountId,
        claim: ClaimId,
        trade: Trade,
    },
    OwnerAdded {
        account: AccountId,
        email: Email,
        password: Option<PasswordHash>,
        on: Day,
    },
    SessionKept {
        account: AccountId,
        digest: TokenDigest,
    },
    RuleDetailsSet {
        account: AccountId,
        rule: RuleId,
        more: Conditions,
        search: Option<SearchId>,
    },
    SearchSaved {
        account: AccountId,
        search: Box<SavedSearch>,
    },
    SearchRemoved {
        account: AccountId,
        search: SearchId,
    },
    SearchSeen {
        account: AccountId,
        search: SearchId,
        batch: u64,
    },
    ColumnsChosen {
        account: AccountId,
        columns: Option<Columns>,
    },
    KeyAdded {
        account: AccountId,
        new: Box<KeyRow>,
    },
    KeyRemoved {
        account: AccountId,
        id: KeyId,
    },
    KeyUntilSet {
        account: AccountId,
        id: KeyId,
        until: UnixMs,
    },
    KeyUsed {
        account: AccountId,
        id: KeyId,
        day: Day,
    },
    FeedMade {
        account: AccountId,
        feed: Feed,
    },
    FeedRevoked {
        account: AccountId,
        of: FeedOf,
    },
    WatchAlertsSet {
        account: AccountId,
        alerts: WatchAlerts,
        channels: Vec<Channel>,
        secrets: Vec<WebhookSecret>,
        at: UnixMs,
    },
    EntryAlertsSet {
        account: AccountId,
        name: DomainName,
        alerts: Option<EntryAlerts>,
    },
    WatchAlertsBegan {
        at: UnixMs,
        through: u64,
    },
    ChangesMatched {
        through: u64,
        upto: Option<AccountId>,
        at: UnixMs,
        changes: Vec<WatchedChange>,
        messages: Vec<RecordedChanges>,
    },
    WatchTestQueued {
        account: AccountId,
        at: UnixMs,
        day: Day,
        changes: Vec<WatchedChange>,
        deliveries: Vec<(u8, DeliveryId)>,
    },
    Checkpoint {
        id: u64,
    },
    LeadTaken {
        lead: Lead,
    },
    FilesAnnounced {
        publication: Publication,
    },
    FilesServed {
        publication: Publication,
    },
    DayCorrected {
        day: Day,
    },
    UsageReset {
        account: AccountId,
        day: Day,
    },
}

/// Decodes the events of a record: one of the first kind, or a list.
///
/// # Errors
/// The payload does not hold events of the former layout.
pub fn decode(kind: RecordKind, payload: &[u8]) -> Result<Vec<Event>, bincode::Error> {
    match kind.number() == *FORMER.start() {
        true => Ok(vec![codec().deserialize(payload)?]),
        false => codec().deserialize(payload),
    }
}

/// Returns the present event with the effect of a former one on this state; `None` if that had no
/// effect. Data that was stored apart from its row is merged into the row.
pub fn converted(event: Event, state: &State) -> Option<New> {
    let data = |account| state.account(account).map(|it| &*it.data);
    Some(match event {
        Event::AccountAdded { account, email, plan, password, on } => {
            New::AccountAdded { account, email, plan, on, password, by: AddedBy::Operator }
        }
        Event::AccountSignedUp { account, email, plan, password, on } => {
            let (password, by) = (Some(password), AddedBy::SignUp);
            New::AccountAdded { account, email, plan, on, password, by }
        }
        Event::OwnerAdded { account, email, password, on } => {
            let (plan, by) = (Plan::Api, AddedBy::Owner);
            New::AccountAdded { account, email, plan, on, password, by }
        }
        Event::PlanSet { account, plan } => {
            let plan = Some(plan);
            New::AccountChanged { account, plan, password: None, disabled: false }
        }
        Event::PasswordSet { account, password } => New::password(account, password),
        Event::AccountDisabled { account } => {
            New::AccountChanged { account, plan: None, password: None, disabled: true }
        }
        Event::KeyIssued { account, key, .. } => {
            New::KeyPut { account, new: Box::new(NewKey::first(key, None)) }
        }
        Event::KeyAdded { account, new } => New::KeyPut { account, new: Box::new((*new).into()) },
        Event::KeyRemoved { account, id } => New::Removed { account, row: RowOf::Key(id) },
        Event::KeyUntilSet { account, id, until } => {
            New::KeyChanged { account, id, until: Some(until), used: None }
        }
        Event::KeyUsed { account, id, day } => {
            New::KeyChanged { account, id, until: None, used: Some(day) }
        }
        Event::FeedMade { account, feed } => New::FeedPut { account, feed: feed.into() },
        Event::FeedRevoked { account, of } => New::Removed { account, row: RowOf::Feed(of) },
        Event::UsageNoted { account, day, requests, exports } => {
            New::UsageNoted { account, day, requests, exports, reset: false }
        }
        Event::UsageReset { account, day } => {
            New::UsageNoted { account, day, requests: 0, exports: 0, reset: true }
        }
        Event::DayBegan { day } => New::DayBegan { day, corrects: false },
        Event::DayCorrected { day } => New::DayBegan { day, corrects: true },
        Event::SessionBegan { account, digest, at } => {
            New::SessionBegan { account, digest, at, life: SessionLife::Short }
        }
        Event::SessionKept { account, digest } => {
            let at = state.account(account)?.access.session(&digest)?.began;
            New::SessionBegan { account, digest, at, life: SessionLife::Kept }
        }
        Event::SessionSeen { account, digest, at } => {
            New::SessionSeen { account, digest, at, browser: CompactString::default() }
        }
        Event::SessionEnded { account, digest } => {
            New::Removed { account, row: RowOf::Session(digest) }
        }
        Event::EmailVerificationAsked { account, digest, at } => {
            New::EmailVerificationAsked { account, digest, at }
        }
        Event::EmailVerified { account } => New::EmailVerified { account },
        Event::TelegramChatSet { account, chat } => {
            New::PreferencesSet { account, chat: Some(chat), columns: None, money: None }
        }
        Event::ColumnsChosen { account, columns } => {
            New::PreferencesSet { account, chat: None, columns: Some(columns), money: None }
        }
        Event::ClaimAdded { account, claim } | Event::ClaimChanged { account, claim } => {
            let before = data(account)?.claims.get(claim.id());
            New::ClaimPut { account, claim: Box::new(claim.after(before)) }
        }
        Event::ClaimTradeSet { account, claim, trade } => {
            let claim = trade.of(data(account)?.claims.get(claim)?);
            New::ClaimPut { account, claim: Box::new(claim) }
        }
        Event::ClaimRemoved { account, claim } => {
            New::Removed { account, row: RowOf::Claim(claim) }
        }
        Event::WatchAdded { account, watch } => {
            let row = data(account)?.watches.row(watch.into());
            New::WatchPut { account, watch: Box::new(row) }
        }
        Event::WatchDetailsSet { account, name, details } => {
            let row = WatchRow { details: details.into(), ..watched(data(account)?, &name)? };
            New::WatchPut { account, watch: Box::new(row) }
        }
        Event::EntryAlertsSet { account, name, alerts } => {
            let alerts = alerts.map(Into::into);
            let row = WatchRow { alerts, ..watched(data(account)?, &name)? };
            New::WatchPut { account, watch: Box::new(row) }
        }
        Event::WatchRemoved { account, name } => New::Removed { account, row: RowOf::Watch(name) },
        Event::WatchesArrived { account, names } => New::WatchesArrived { account, names },
        Event::RuleAdded { account, rule } | Event::RuleChanged { account, rule } => {
            New::RulePut { account, rule: Box::new((*rule).into()) }
        }
        Event::RuleDetailsSet { account, rule, more, search } => {
            let rule = detailed(data(account)?.rules.get(rule)?, more, search);
            New::RulePut { account, rule: Box::new(rule) }
        }
        Event::RuleRemoved { account, rule } => New::Removed { account, row: RowOf::Rule(rule) },
        Event::SearchSaved { account, search } => {
            New::SearchPut { account, search: Box::new((*search).into()) }
        }
        Event::SearchSeen { account, search, batch } => {
            let mut search = (**data(account)?.searches.get(search)?).clone();
            search.seen = batch;
            New::SearchPut { account, search: Box::new(search) }
        }
        Event::SearchRemoved { account, search } => {
            New::Removed { account, row: RowOf::Search(search) }
        }
        Event::VoteSet { account, name, vote } => New::VoteSet { account, name, vote },
        Event::NamesHidden { account, names } => New::NamesHidden { account, names, shown: false },
        Event::NamesShown { account, names } => New::NamesHidden { account, names, shown: true },
        Event::ReplyKept { account, reply } => New::ReplyKept { account, reply: reply.into() },
        Event::ListMatched { through, done, at, names, matches } => {
            let (names, matches) = (all(names), all(matches));
            New::ListMatched { through, at, done, names, matches }
        }
        Event::TestQueued { account, rule, at, day, total, names, deliveries } => {
            let (names, changes) = (all(names), Vec::new());
            New::TestQueued { account, rule, at, day, total, names, changes, deliveries }
        }
        Event::WatchTestQueued { account, at, day, changes, deliveries } => {
            let (rule, total, names) = (RuleId::WATCHLIST, changes.len() as u32, Vec::new());
            New::TestQueued { account, rule, at, day, total, names, changes, deliveries }
        }
        Event::DeliverySettled { account, rule, delivery, at, attempts, outcome } => {
            New::DeliverySettled { account, rule, delivery, at, attempts, outcome }
        }
        Event::DeliveryRequeued { account, rule, delivery, at } => {
            New::DeliveryRequeued { account, rule, delivery, at }
        }
        Event::ChannelSwitchedOff { account, rule, channel, off } => {
            New::ChannelsSwitched { account, rule, off: Some((channel, off)) }
        }
        Event::ChannelsSwitchedOn { account, rule } => {
            New::ChannelsSwitched { account, rule, off: None }
        }
        Event::UnsubscribeTokenSet { account, rule, token } => {
            New::UnsubscribeTokenSet { account, rule, token }
        }
        Event::WatchAlertsSet { account, alerts, channels, secrets, at } => {
            let (alerts, secrets) = (alerts.into(), all(secrets));
            let settings = Box::new(WatchSettings { alerts, channels, secrets, at });
            New::WatchAlertsSet { account, settings }
        }
        Event::WatchAlertsBegan { at, through } => New::WatchAlertsBegan { at, through },
        Event::ChangesMatched { through, upto, at, changes, messages } => {
            New::ChangesMatched { through, at, upto, changes, messages: all(messages) }
        }
        Event::NamesVerified { rows } => {
            New::NamesVerified { rows, evidence: Vec::new(), registrations: Vec::new() }
        }
        Event::Checkpoint { id } => New::Checkpoint { id },
        Event::LeadTaken { lead } => New::LeadTaken { lead: lead.into() },
        Event::FilesAnnounced { publication } => {
            New::FilesAnnounced { publication: publication.into(), served: false }
        }
        Event::FilesServed { publication } => {
            New::FilesAnnounced { publication: publication.into(), served: true }
        }
    })
}

fn watched(data: &UserData, name: &DomainName) -> Option<WatchRow> {
    Some(data.watches.row(data.watches.get(name)?))
}
