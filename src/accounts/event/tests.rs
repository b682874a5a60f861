use super::*;
use crate::accounts::data::claims::Attribution;
use crate::accounts::data::deliveries::{OffReason, Problem, StatusClass};
use crate::accounts::data::rules::{RuleFilter, WebhookSecret};
use crate::accounts::data::watch_alerts::Quiet;
use crate::accounts::fixtures::{at, claim, day, email, name, stored_key};
use crate::query::text::Substring;
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::chat::{Chat, Hook};
use crate::vocab::claim::ClaimStatus;
use crate::vocab::dqs::Dqs;
use crate::vocab::money::Usd;
use crate::vocab::observation::{ObservedBy, RdapState, RdapStatuses};
use crate::vocab::scope::{Scope, Scopes};
use crate::vocab::secret::Secret;
use crate::vocab::stage::Stage;
use crate::vocab::url::WebhookUrl;
use crate::vocab::zone::Hour;

/// A line a transaction: its name, its kind and its bytes.
fn lines(all: impl IntoIterator<Item = (String, Transaction)>) -> String {
    let line = |(name, transaction): (String, Transaction)| {
        let (kind, payload) = transaction.encode();
        format!("{name}: {} {}\n", kind.number(), hex::encode(payload))
    };
    all.into_iter().map(line).collect()
}

/// Events of accounts, keys and usage: every variant and plan, with and without a password.
fn all() -> Vec<(&'static str, Event)> {
    let account = AccountId(0x0102);
    let email = email("ann@example.com");
    let key = stored_key();
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
            ..RuleFilter::default()
        },
        channels: vec![
            Channel::Email,
            Channel::Webhook { url: url.clone() },
            Channel::Telegram { chat_id: "-100".into() },
        ],
        active: true,
        created_at: at(3),
        secrets: vec![WebhookSecret { url, secret: Secret::new("whsec_AAAA".into()) }],
        search: None,
    }
}

/// Events of claims, watchlists, rules, votes and kept responses.
fn owned() -> Vec<(String, Event)> {
    let account = AccountId(0x0102);
    let boxed = Box::<Claim>::new;
    let watch = |external, registered_again| {
        let (name, added_at) = (name("xn--mnchen-3ya.de"), at(4));
        WatchEntry { name, added_at, external, registered_again }
    };
    let reply = KeptResponse {
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
    let names = vec![name("a.com"), name("b.co.uk")];
    let mut events = vec![
        ("claim".to_owned(), Event::ClaimAdded { account, claim: boxed(claim()) }),
        ("claim, changed".into(), Event::ClaimChanged { account, claim: boxed(sold()) }),
        ("claim, removed".into(), Event::ClaimRemoved { account, claim: claim().id }),
        ("watch".into(), Event::WatchAdded { account, watch: watch(false, true) }),
        ("watch, external".into(), Event::WatchAdded { account, watch: watch(true, false) }),
        ("watch, removed".into(), Event::WatchRemoved { account, name: names[1].clone() }),
        ("watches, arrived".into(), Event::WatchesArrived { account, names: names.clone() }),
        ("rule".into(), Event::RuleAdded { account, rule: Box::new(rule()) }),
        ("rule, changed".into(), Event::RuleChanged { account, rule: Box::new(bare) }),
        ("rule, removed".into(), Event::RuleRemoved { account, rule: rule().id }),
        ("reply".into(), Event::ReplyKept { account, reply }),
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

/// Events of alerts and verification.
fn outbox() -> Vec<(String, Event)> {
    let (account, rule_id) = (AccountId(0x0102), rule().id);
    let matched = |text, stage| {
        let (drop_date, release) = (day(), day().plus(35));
        let dqs = Dqs::new(70).expect("a score");
        MatchedName { name: name(text), dqs, drop_date, release, stage }
    };
    let names: Vec<_> = Stage::ALL.map(|stage| matched("example.co.uk", stage)).to_vec();
    let through = Watermark { batch: 0x0304, day: day() };
    let found = |names, deliveries| RecordedMatch {
        account,
        rule: rule_id,
        total: 0x0506,
        names,
        deliveries,
    };
    let two = vec![(0, delivery(0x11)), (2, delivery(0x22))];
    let matches = vec![found(vec![2, 0], two.clone()), found(Vec::new(), Vec::new())];
    let test = Event::TestQueued {
        account,
        rule: rule_id,
        at: at(6),
        day: day(),
        total: 3,
        names: names[..1].to_vec(),
        deliveries: two,
    };
    let off = |reason, channel: &Channel| {
        let (channel, off) = (channel.clone(), SwitchedOff { reason, at: at(9) });
        Event::ChannelSwitchedOff { account, rule: rule_id, channel, off }
    };
    let (done, id) = (true, delivery(0x33));
    let mut events = vec![
        ("list".to_owned(), Event::ListMatched { through, done: false, at: at(5), names, matches }),
        (
            "list, nothing in it".into(),
            Event::ListMatched { through, done, at: at(5), names: Vec::new(), matches: Vec::new() },
        ),
        ("test".into(), test),
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
    for outcome in every_outcome() {
        let settled = Event::DeliverySettled {
            account,
            rule: rule_id,
            delivery: id,
            at: at(7),
            attempts: 0x0708,
            outcome,
        };
        events.push((format!("{outcome:?}"), settled));
    }
    events.push(("verified".into(), Event::NamesVerified { rows: observations() }));
    events
}

fn every_outcome() -> Vec<AttemptOutcome> {
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
    let retried = problems.map(|problem| AttemptOutcome::Retry { next_at: at(60_000), problem });
    let problem = Problem::Gone;
    [
        AttemptOutcome::Delivered,
        AttemptOutcome::Failed { problem },
        AttemptOutcome::SwitchOff { problem },
    ]
    .into_iter()
    .chain(retried)
    .collect()
}

fn observations() -> Vec<(DomainName, Observation)> {
    let seen = |(place, state): (usize, RdapState)| Observation {
        state,
        at: at(10),
        registered_on: (place % 2 == 0).then(|| day().plus(-1_000)),
        statuses: RdapStatuses::from(1 << place),
        source: if place == 2 { ObservedBy::Dns } else { ObservedBy::Rdap },
    };
    let all = RdapState::ALL.into_iter().enumerate().map(seen);
    all.map(|seen| (name("a.com"), seen)).collect()
}

/// Events of logins.
fn access() -> Vec<(String, Event)> {
    let (account, digest) = (AccountId(0x0102), TokenDigest::new([0x44; 32]));
    let email = email("ann@example.com");
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
        .map(|(name, event)| {
            format!("{name}: {}\n", hex::encode(Transaction(vec![event.clone()]).encode().1))
        })
        .collect();
    assert_eq!(ours, include_str!("../../../tests/golden/journal-events-v1.hex"));
}

#[test]
fn the_bytes_of_every_transaction_never_change() {
    let multiple = everything().into_iter().skip(all().len());
    assert_eq!(lines(multiple), include_str!("../../../tests/golden/journal-events-v2.hex"));
}

#[test]
fn the_bytes_of_alert_events_never_change() {
    assert_eq!(lines(newest()), include_str!("../../../tests/golden/journal-events-v3.hex"));
}

#[test]
fn the_bytes_of_login_events_never_change() {
    assert_eq!(lines(sessions()), include_str!("../../../tests/golden/journal-events-v4.hex"));
}

fn token() -> Event {
    let (account, rule) = (AccountId(0x0102), rule().id);
    let token = UnsubscribeToken::new([0x55; 16]);
    Event::UnsubscribeTokenSet { account, rule, token }
}

#[test]
fn the_bytes_of_unsubscribe_tokens_never_change() {
    let (kind, payload) = Transaction(vec![token()]).encode();
    let ours = format!("unsubscribe token: {} {}\n", kind.number(), hex::encode(payload));
    assert_eq!(ours, include_str!("../../../tests/golden/journal-events-v5.hex"));
    let shown = Transaction(vec![token()]).describe().to_string();
    assert!(shown.contains("(hidden)") && !shown.contains("5555"), "{shown}");
}

/// Events about notes, hidden names and trades.
fn notes() -> impl Iterator<Item = (String, Transaction)> {
    let account = AccountId(0x0102);
    let details = WatchDetails {
        note: Some("über\nzwei".into()),
        tags: vec!["flip".parse().expect("a tag"), "garden shop".parse().expect("a tag")],
        max_bid: Usd::from_cents(42_050),
        venue: Some("DropCatch".into()),
    };
    let trade = Trade {
        bid: Usd::from_cents(42_050),
        venue: Some("DropCatch".into()),
        renews_on: Some(day()),
        renewal: Usd::from_cents(1_100),
    };
    let set = |details| Event::WatchDetailsSet { account, name: name("a.com"), details };
    let traded = |trade| Event::ClaimTradeSet { account, claim: sold().id, trade };
    let names = || vec![name("a.com"), name("example.co.uk")];
    let all = [
        ("details", set(details)),
        ("no details", set(WatchDetails::default())),
        ("hidden", Event::NamesHidden { account, names: names() }),
        ("shown", Event::NamesShown { account, names: names() }),
        ("trade", traded(trade)),
        ("no trade", traded(Trade::default())),
        (
            "owner",
            Event::OwnerAdded {
                account,
                email: email("owner@localhost"),
                password: None,
                on: day(),
            },
        ),
    ];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_notes_never_change() {
    assert_eq!(lines(notes()), include_str!("../../../tests/golden/journal-events-v6.hex"));
}

/// A session that its owner keeps.
fn kept_session() -> (String, Transaction) {
    let (account, digest) = (AccountId(7), TokenDigest::new([9; 32]));
    ("session, kept".into(), Transaction(vec![Event::SessionKept { account, digest }]))
}

#[test]
fn the_bytes_of_kept_sessions_never_change() {
    let (kind, payload) = kept_session().1.encode();
    let ours = format!("{} {}", kind.number(), hex::encode(payload));
    let digest = "09".repeat(32);
    assert_eq!(ours, format!("16 26000000{}{digest}", "0700000000000000"));
}

/// Events about the details of rules, and saved searches.
fn searches() -> impl Iterator<Item = (String, Transaction)> {
    let (account, id) = (AccountId(0x0102), SearchId::new(9).expect("an id"));
    let conditions = Conditions::new([("starts", "get,\"a,b\""), ("min_len", "3")]);
    let search = SavedSearch {
        id,
        name: "Über 3".into(),
        conditions: conditions.clone(),
        created_at: at(3),
        seen: 41,
    };
    let details = |more, search| {
        let rule = rule().id;
        Event::RuleDetailsSet { account, rule, more, search }
    };
    let all = [
        ("details", details(conditions, Some(id))),
        ("no details", details(Conditions::default(), None)),
        ("search", Event::SearchSaved { account, search: Box::new(search) }),
        ("search, removed", Event::SearchRemoved { account, search: id }),
        ("search, seen", Event::SearchSeen { account, search: id, batch: 42 }),
    ];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_searches_never_change() {
    assert_eq!(lines(searches()), include_str!("../../../tests/golden/journal-events-v7.hex"));
}

/// Events about the columns of the drop list.
fn columns() -> impl Iterator<Item = (String, Transaction)> {
    let account = AccountId(0x0102);
    let chosen = Columns::named(["due", "why"].into_iter());
    [("columns", Some(chosen)), ("usual columns", None)].into_iter().map(move |(name, columns)| {
        (name.to_owned(), Transaction(vec![Event::ColumnsChosen { account, columns }]))
    })
}

#[test]
fn the_bytes_of_columns_never_change() {
    assert_eq!(lines(columns()), include_str!("../../../tests/golden/journal-events-v8.hex"));
}

/// Rules with chat services, and a channel that failed for days.
fn chats() -> impl Iterator<Item = (String, Transaction)> {
    let account = AccountId(0x0102);
    let url = |text: &str| Some(WebhookUrl::from_stored(text.to_owned()));
    let secret = |text: &str| Some(Secret::new(text.to_owned()));
    let chat = |service: &str, hook| Channel::Chat(Chat { service: service.into(), hook });
    let none = Hook::default;
    let slack = "https://hooks.slack.com/services/T/B/slackslackslack";
    let slack = chat("slack", Hook { url: url(slack), ..none() });
    let ntfy = "https://ntfy.sh/topictopictopic";
    let ntfy = chat("ntfy", Hook { url: url(ntfy), token: secret("tk_tokentoken"), ..none() });
    let both = Hook { token: secret("tokentoken"), user: secret("useruser"), ..none() };
    let channels = vec![slack.clone(), ntfy, chat("pushover", both)];
    let rule = Rule { channels, secrets: Vec::new(), ..rule() };
    let off = SwitchedOff { reason: OffReason::Failing, at: at(9) };
    let off = Event::ChannelSwitchedOff { account, rule: rule.id, channel: slack, off };
    let all = [("rule", Event::RuleAdded { account, rule: Box::new(rule) }), ("off", off)];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_chats_never_change() {
    assert_eq!(lines(chats()), include_str!("../../../tests/golden/journal-events-v9.hex"));
}

#[test]
fn dumps_show_no_hook() {
    for (name, transaction) in chats() {
        let shown = transaction.describe().to_string();
        assert!(shown.contains("slack\"") && shown.contains("(hidden)"), "{name}: {shown}");
        for secret in ["slackslack", "topictopic", "tokentoken", "useruser"] {
            assert!(!shown.contains(secret), "{name}: {shown}");
        }
    }
}

/// Events of keys with names and scopes.
fn keys() -> impl Iterator<Item = (String, Transaction)> {
    let account = AccountId(0x0102);
    let id = KeyId::new(9).expect("an id");
    let scopes = Scopes::of([Scope::Read, Scope::Mcp]).expect("two");
    let key = Key::new(id, "Über 3".into(), stored_key(), scopes, Some(day()), Some(at(3)));
    let first = Key::first(stored_key(), None);
    let of = FeedOf::Search(SearchId::new(7).expect("an id"));
    let feed = Feed { of, digest: TokenDigest::new([9; 32]), created: day() };
    let all = [
        ("key, made", Event::KeyAdded { account, new: Box::new(key) }),
        ("key, first", Event::KeyAdded { account, new: Box::new(first) }),
        ("key, removed", Event::KeyRemoved { account, id }),
        ("key, until", Event::KeyUntilSet { account, id, until: at(4) }),
        ("key, used", Event::KeyUsed { account, id, day: day() }),
        ("feed", Event::FeedMade { account, feed }),
        ("feed, revoked", Event::FeedRevoked { account, of: FeedOf::Watchlist }),
    ];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_keys_never_change() {
    assert_eq!(lines(keys()), include_str!("../../../tests/golden/journal-events-v10.hex"));
}

/// Events of watch alerts.
fn watch_alerts() -> impl Iterator<Item = (String, Transaction)> {
    let account = AccountId(0x0102);
    let hour = |hour| Hour::new(hour).expect("an hour");
    let url = WebhookUrl::from_stored("https://hooks.example.com/x".to_owned());
    let secrets =
        vec![WebhookSecret { url: url.clone(), secret: Secret::new("whsec_AA==".to_owned()) }];
    let channels = vec![Channel::Email, Channel::Webhook { url }];
    let plain = WatchAlerts::default();
    let full = WatchAlerts {
        kinds: ChangeKinds::ALL,
        digest: Some(hour(8)),
        quiet: Quiet::new(hour(22), hour(7)),
        zone: "Europe/Berlin".parse().expect("a zone"),
    };
    let set = |alerts, channels, secrets| Event::WatchAlertsSet {
        account,
        alerts,
        channels,
        secrets,
        at: at(1),
    };
    let own = EntryAlerts {
        kinds: ChangeKinds::NONE.with(ChangeKind::Available),
        channels: vec!["email".into(), "slack".into()],
    };
    let chosen = |alerts| Event::EntryAlertsSet { account, name: name("a.co.uk"), alerts };
    let changes = ChangeKind::ALL.map(|kind| WatchedChange {
        kind,
        name: name("a.co.uk"),
        day: day(),
        verified: kind == ChangeKind::Renewed,
        dqs: Dqs::new(70),
        dqs_before: Dqs::new(60).filter(|_| kind == ChangeKind::Rescored),
    });
    let message = RecordedChanges {
        account,
        channel: 1,
        delivery: delivery(9),
        due: at(5),
        total: 600,
        changes: vec![0, 7],
    };
    let matched = |upto, changes: &[WatchedChange], messages| Event::ChangesMatched {
        through: 0x0304,
        upto,
        at: at(4),
        changes: changes.to_vec(),
        messages,
    };
    let test = Event::WatchTestQueued {
        account,
        at: at(6),
        day: day(),
        changes: changes[..1].to_vec(),
        deliveries: vec![(0, delivery(8))],
    };
    let all = [
        ("watch alerts, set", set(plain, vec![Channel::Email], Vec::new())),
        ("watch alerts, full", set(full, channels, secrets)),
        ("entry, own", chosen(Some(own))),
        ("entry, mute", chosen(Some(EntryAlerts::default()))),
        ("entry, follows", chosen(None)),
        ("watch alerts, began", Event::WatchAlertsBegan { at: at(2), through: 0x0203 }),
        ("changes, some", matched(Some(account), &changes, vec![message])),
        ("changes, done", matched(None, &[], Vec::new())),
        ("watch test", test),
    ];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_watch_alerts_never_change() {
    assert_eq!(lines(watch_alerts()), include_str!("../../../tests/golden/journal-events-v11.hex"));
}

/// Events of feeds of rules.
fn rule_feeds() -> impl Iterator<Item = (String, Transaction)> {
    let account = AccountId(0x0102);
    let of = FeedOf::Rule(RuleId::new(8).expect("an id"));
    let feed = Feed { of, digest: TokenDigest::new([9; 32]), created: day() };
    let all = [
        ("feed of a rule", Event::FeedMade { account, feed }),
        ("feed of a rule, revoked", Event::FeedRevoked { account, of }),
    ];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_rule_feeds_never_change() {
    assert_eq!(lines(rule_feeds()), include_str!("../../../tests/golden/journal-events-v12.hex"));
}

/// Events of the shared log.
fn shared() -> impl Iterator<Item = (String, Transaction)> {
    [("checkpoint".to_owned(), Transaction(vec![Event::Checkpoint { id: 0x0102_0304 }]))]
        .into_iter()
}

#[test]
fn the_bytes_of_checkpoints_never_change() {
    assert_eq!(lines(shared()), include_str!("../../../tests/golden/journal-events-v13.hex"));
}

/// Events about the nodes of a cluster.
fn nodes() -> impl Iterator<Item = (String, Transaction)> {
    let lead = |node: Option<&str>| Lead { term: 0x0203, node: node.map(Into::into) };
    let publication = Publication { generation: 0x0405, list: [6; 32] };
    let all = [
        ("lead", Event::LeadTaken { lead: lead(Some("one")) }),
        ("lead, given up", Event::LeadTaken { lead: lead(None) }),
        ("files, announced", Event::FilesAnnounced { publication: publication.clone() }),
        ("files, served", Event::FilesServed { publication }),
    ];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_nodes_never_change() {
    assert_eq!(lines(nodes()), include_str!("../../../tests/golden/journal-events-v14.hex"));
}

/// What a wrong clock needs afterwards.
fn corrections() -> impl Iterator<Item = (String, Transaction)> {
    let (account, day) = (AccountId(0x0203), day());
    let all = [
        ("day, corrected", Event::DayCorrected { day }),
        ("usage, reset", Event::UsageReset { account, day }),
    ];
    all.into_iter().map(|(name, event)| (name.to_owned(), Transaction(vec![event])))
}

#[test]
fn the_bytes_of_corrections_never_change() {
    assert_eq!(lines(corrections()), include_str!("../../../tests/golden/journal-events-v15.hex"));
}

#[test]
fn a_decision_concerns_its_account_and_address() {
    let touched = |events: Vec<Event>| Transaction(events).touched();
    let plan = |account| Event::PlanSet { account, plan: Plan::Pro };
    let (one, other) = (AccountId(1), AccountId(2));
    assert_eq!(touched(vec![plan(one), plan(one)]), touched(vec![plan(one)]));
    assert_eq!(touched(vec![plan(one), plan(other)]).len(), 2);
    let added = |account, email: &str| {
        let (email, plan) = (email.parse().expect("an address"), Plan::Pro);
        touched(vec![Event::AccountAdded { account, email, plan, password: None, on: day() }])
    };
    let share = |one: &[u64], other: &[u64]| one.iter().any(|key| other.contains(key));
    assert!(share(&added(one, "a@example.com"), &added(other, "a@example.com")), "one address");
    assert!(share(&added(one, "a@example.com"), &added(one, "b@example.com")), "one number");
    assert!(!share(&added(one, "a@example.com"), &added(other, "b@example.com")));
    assert!(touched(vec![Event::DayBegan { day: day() }]).is_empty());
}

/// The transactions of all versions.
fn every() -> impl Iterator<Item = (String, Transaction)> {
    let older = everything().into_iter().chain(newest()).chain(sessions());
    let newer = searches().chain(columns()).chain(chats()).chain(keys());
    let newer = newer.chain(watch_alerts()).chain(rule_feeds()).chain(shared()).chain(nodes());
    older.chain(notes()).chain([kept_session()]).chain(newer)
}

#[test]
fn transactions_round_trip() {
    for (name, transaction) in every() {
        let (kind, payload) = transaction.encode();
        assert!(Transaction::decode(kind, &payload).expect(&name) == transaction, "{name}");
    }
}

#[test]
fn malformed_events_are_errors() {
    for (name, transaction) in every() {
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
    let other = Kind::for_caller(18).expect("the caller's");
    let refused = Transaction::decode(other, &everything()[0].1.encode().1);
    assert!(matches!(refused, Err(EventError::Kind(18))));
}

/// Sets each byte of every transaction to the values that make the worst lengths. The result is an
/// error or another event, never a panic.
#[test]
fn hostile_bytes_do_not_panic() {
    for (name, transaction) in every() {
        let (kind, bytes) = transaction.encode();
        for at in 0..bytes.len() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut hostile = bytes.clone();
                hostile[at] = value;
                if let Ok(read) = Transaction::decode(kind, &hostile) {
                    // Whatever is read fits a record again.
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
    assert!(codec().deserialize::<DomainName>(&name).is_err(), "a name over 253 bytes");
    let name = codec().serialize(&(3_u8, "abcd.com")).expect("encoded");
    assert!(codec().deserialize::<DomainName>(&name).is_err(), "no dot after the label");
}
