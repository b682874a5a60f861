use super::*;
use crate::data::claims::{Attribution, Commission, Terms};
use crate::data::deliveries::{DigestSearch, OffReason, Problem, StatusClass};
use crate::data::facts::{FactsRow, Part};
use crate::data::fields::RowWriter;
use crate::data::rules::WebhookSecret;
use crate::data::watch_alerts::{EntryAlerts, Quiet, WatchAlerts};
use crate::data::watches::{WatchDetails, WatchEntry};
use crate::fixtures::{at, claim, day, name, rule, stored_key};
use crate::journal::PAYLOAD_BYTES_MAX;
use crate::query::stored::Conditions;
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::chat::{Chat, Hook};
use crate::vocab::claim::ClaimStatus;
use crate::vocab::claim::RenewalDecision;
use crate::vocab::dqs::Dqs;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::evidence::{Evidence, EvidenceSet};
use crate::vocab::money::{Amount, Currency, Percent, Rate, Usd};
use crate::vocab::observation::{
    LatestRegistration, ObservedBy, RdapState, RdapStatuses, Registrar,
};
use crate::vocab::scope::{Scope, Scopes};
use crate::vocab::secret::Secret;
use crate::vocab::stage::Stage;
use crate::vocab::url::WebhookUrl;
use crate::vocab::zone::Hour;

const ACCOUNT: AccountId = AccountId(0x0102);

type Named = Vec<(&'static str, Event)>;

fn hash() -> Option<PasswordHash> {
    Some(serde_json::from_str(r#""$argon2id$x""#).expect("a hash"))
}

fn delivery(byte: u8) -> DeliveryId {
    DeliveryId::new([byte; 16])
}

fn digest() -> TokenDigest {
    TokenDigest::new([0x44; 32])
}

/// Events of accounts, usage, sessions, keys and feeds.
fn access() -> Named {
    let account = ACCOUNT;
    let added = |email: &str, password, by| {
        let (email, plan) = (email.parse().expect("an address"), Plan::Pro);
        Event::AccountAdded { account, email, plan, on: day(), password, by }
    };
    let changed =
        |plan, password, disabled| Event::AccountChanged { account, plan, password, disabled };
    let used =
        |requests, reset| Event::UsageNoted { account, day: day(), requests, exports: 0, reset };
    let began = |life| Event::SessionBegan { account, digest: digest(), at: at(11), life };
    let seen = Event::SessionSeen {
        account,
        digest: digest(),
        at: at(12),
        browser: CompactString::default(),
    };
    let (id, of) = (KeyId::new(9).expect("an id"), FeedOf::Rule(rule().id));
    let scopes = Scopes::of([Scope::Read, Scope::Mcp]).expect("two");
    let key = Key::new(id, "Über 3".into(), stored_key(), scopes, Some(day()), Some(at(3)));
    let first = Key::first(stored_key(), None);
    let key_changed = |until, used| Event::KeyChanged { account, id, until, used };
    let feed = Feed { of, digest: digest(), created: day() };
    vec![
        ("account", added("ann@example.com", None, AddedBy::Operator)),
        ("account, signed up", added("ann@example.com", hash(), AddedBy::SignUp)),
        ("account, owner", added("owner@localhost", None, AddedBy::Owner)),
        ("plan", changed(Some(Plan::Free), None, false)),
        ("password", changed(None, hash(), false)),
        ("disabled", changed(None, None, true)),
        ("usage", used(100, false)),
        ("usage, reset", used(0, true)),
        ("day", Event::DayBegan { day: day(), corrects: false }),
        ("day, corrected", Event::DayBegan { day: day(), corrects: true }),
        ("link", Event::EmailVerificationAsked { account, digest: digest(), at: at(13) }),
        ("address, verified", Event::EmailVerified { account }),
        ("session", began(SessionLife::Short)),
        ("session, kept", began(SessionLife::Kept)),
        ("session, seen", seen),
        ("key", Event::KeyPut { account, new: Box::new(key) }),
        ("key, first", Event::KeyPut { account, new: Box::new(first) }),
        ("key, until", key_changed(Some(at(4)), None)),
        ("key, used", key_changed(None, Some(day()))),
        ("feed", Event::FeedPut { account, feed }),
    ]
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
        bid: Usd::from_cents(42_050),
        venue: Some("DropCatch".into()),
        renews_on: Some(day()),
        renewal: Usd::from_cents(1_100),
        ..claim()
    }
}

fn full_rule() -> Rule {
    let url = WebhookUrl::from_stored("https://hooks.example.com/x".into());
    let hook = |text: &str| {
        let url = Some(WebhookUrl::from_stored(text.to_owned()));
        Hook { url, token: Some(Secret::new("tokentoken".into())), user: None }
    };
    let slack = hook("https://hooks.slack.com/services/T/B/slackslackslack");
    Rule {
        filter: Conditions::new([
            ("tld", "de,co.uk"),
            ("min_dqs", "70"),
            ("max_len", "6"),
            ("q", "solar"),
            ("stage", "redemption,pending-delete,catchable,released"),
            ("starts", "get"),
            ("min_len", "3"),
            ("adult", "include"),
        ]),
        channels: vec![
            Channel::Email,
            Channel::Webhook { url: url.clone() },
            Channel::Telegram { chat_id: "-100".into() },
            Channel::Chat(Chat { service: "slack".into(), hook: slack }),
        ],
        secrets: vec![WebhookSecret::new(url, Secret::new("whsec_AAAA".into()))],
        search: SearchId::new(9),
        ..rule()
    }
}

/// Events of rows that an account owns.
fn owned() -> Named {
    let account = ACCOUNT;
    let entry = |external, registered_again| {
        let (name, added_at) = (name("xn--mnchen-3ya.de"), at(4));
        WatchEntry { name, added_at, external, registered_again }
    };
    let watch = |entry, details, alerts| Event::WatchPut {
        account,
        watch: Box::new(WatchRow { entry, details, alerts }),
    };
    let details = WatchDetails {
        note: Some("über\nzwei".into()),
        tags: vec!["flip".parse().expect("a tag"), "garden shop".parse().expect("a tag")],
        max_bid: Usd::from_cents(42_050),
        venue: Some("DropCatch".into()),
    };
    let own = EntryAlerts {
        kinds: ChangeKinds::NONE.with(ChangeKind::Available),
        channels: vec!["email".into(), "slack".into()],
    };
    let search = SavedSearch {
        id: SearchId::new(9).expect("an id"),
        name: "Über 3".into(),
        conditions: Conditions::new([
            ("starts", "get,\"a,b\""),
            ("min_len", "3"),
            ("adult", "include"),
        ]),
        created_at: at(3),
        seen: 41,
    };
    let reply = KeptResponse {
        key: [0x11; 16],
        fingerprint: [0x22; 32],
        at: at(5),
        status: 201,
        body: br#"{"id":7}"#.as_slice().into(),
    };
    let paused = Rule { active: false, ..rule() };
    let names = vec![name("a.com"), name("b.co.uk")];
    let vote = |vote| Event::VoteSet { account, name: name("a.com"), vote };
    let hidden = |shown| Event::NamesHidden { account, names: names.clone(), shown };
    let chosen = Columns::named(["due", "why"].into_iter());
    let set = |chat, columns| Event::PreferencesSet { account, chat, columns, money: None };
    let removed = |row| Event::Removed { account, row };
    let mut all = vec![
        ("claim", Event::ClaimPut { account, claim: Box::new(claim()) }),
        ("claim, sold", Event::ClaimPut { account, claim: Box::new(sold()) }),
        ("watch", watch(entry(false, true), WatchDetails::default(), None)),
        ("watch, noted", watch(entry(true, false), details, Some(own))),
        (
            "watch, mute",
            watch(entry(true, false), WatchDetails::default(), Some(EntryAlerts::default())),
        ),
        ("watches, arrived", Event::WatchesArrived { account, names: names.clone() }),
        ("rule", Event::RulePut { account, rule: Box::new(full_rule()) }),
        ("rule, paused", Event::RulePut { account, rule: Box::new(paused) }),
        ("search", Event::SearchPut { account, search: Box::new(search) }),
        ("removed claim", removed(RowOf::Claim(claim().id))),
        ("removed watch", removed(RowOf::Watch(name("b.co.uk")))),
        ("removed rule", removed(RowOf::Rule(rule().id))),
        ("removed search", removed(RowOf::Search(SearchId::new(9).expect("an id")))),
        ("removed key", removed(RowOf::Key(KeyId::FIRST))),
        ("removed feed", removed(RowOf::Feed(FeedOf::Watchlist))),
        ("removed session", removed(RowOf::Session(digest()))),
        ("vote up", vote(Some(Vote::Up))),
        ("vote down", vote(Some(Vote::Down))),
        ("vote withdrawn", vote(None)),
        ("hidden", hidden(false)),
        ("shown", hidden(true)),
        ("chat", set(Some(Some("-100".into())), None)),
        ("no chat", set(Some(None), None)),
        ("columns", set(None, Some(Some(chosen)))),
        ("usual columns", set(None, Some(None))),
        ("reply", Event::ReplyKept { account, reply }),
    ];
    all.extend(ClaimStatus::ALL.map(|status| {
        let claim = Box::new(Claim { status, ..claim() });
        (status.as_str(), Event::ClaimPut { account, claim })
    }));
    all
}

/// The kinds of the first version. The bytes of its sets do not change.
fn first_kinds() -> ChangeKinds {
    ChangeKinds::from(0xff)
}

/// Events of alerts and verification.
fn outbox() -> Named {
    let (account, rule_id) = (ACCOUNT, rule().id);
    let matched = |text, stage| {
        let (drop_date, release, release_second) = (day(), day().plus(35), None);
        let dqs = Dqs::new(70).expect("a score");
        MatchedName(DroppedName {
            name: name(text),
            dqs,
            drop_date,
            release,
            release_second,
            stage,
        })
    };
    let names: Vec<_> = Stage::ALL.map(|stage| matched("example.co.uk", stage)).to_vec();
    let through = Watermark { batch: 0x0304, day: day() };
    let two = vec![(0, delivery(0x11)), (2, delivery(0x22))];
    let found = |names, deliveries| RecordedMatch {
        account,
        rule: rule_id,
        total: 0x0506,
        names,
        deliveries,
    };
    let matches = vec![found(vec![2, 0], two.clone()), found(Vec::new(), Vec::new())];
    let list =
        |done, names, matches| Event::ListMatched { through, at: at(5), done, names, matches };
    let changes = first_kinds().iter().map(|kind| WatchedChange {
        kind,
        name: name("a.co.uk"),
        day: day(),
        verified: kind == ChangeKind::Renewed,
        dqs: Dqs::new(70),
        dqs_before: Dqs::new(60).filter(|_| kind == ChangeKind::Rescored),
    });
    let changes: Vec<_> = changes.collect();
    let message = RecordedChanges {
        account,
        channel: 1,
        delivery: delivery(9),
        due: at(5),
        total: 600,
        changes: vec![0, 7],
    };
    let changed = |upto, changes: &[WatchedChange], messages| Event::ChangesMatched {
        through: 0x0304,
        at: at(4),
        upto,
        changes: changes.to_vec(),
        messages,
    };
    let test = |rule, names, changes| Event::TestQueued {
        account,
        rule,
        at: at(6),
        day: day(),
        total: 3,
        names,
        changes,
        deliveries: two.clone(),
    };
    let off = |reason| (Channel::Email, SwitchedOff { reason, at: at(9) });
    let switched = |off| Event::ChannelsSwitched { account, rule: rule_id, off };
    let hour = |hour| Hour::new(hour).expect("an hour");
    let usual = [ChangeKind::DropsTomorrow, ChangeKind::Available, ChangeKind::Renewed];
    let usual = usual.into_iter().collect();
    let plain = WatchSettings {
        alerts: WatchAlerts { kinds: usual, ..WatchAlerts::default() },
        channels: vec![Channel::Email],
        secrets: Vec::new(),
        at: at(1),
    };
    let alerts = WatchAlerts {
        kinds: first_kinds(),
        digest: Some(hour(8)),
        quiet: Quiet::new(hour(22), hour(7)),
        zone: "Europe/Berlin".parse().expect("a zone"),
    };
    let Rule { channels, secrets, .. } = full_rule();
    let full = WatchSettings { alerts, channels, secrets, at: at(1) };
    let set = |settings| Event::WatchAlertsSet { account, settings: Box::new(settings) };
    let requeued =
        Event::DeliveryRequeued { account, rule: rule_id, delivery: delivery(0x33), at: at(8) };
    let token = UnsubscribeToken::new([0x55; 16]);
    let verified = |states, evidence, registrations| Event::NamesVerified {
        rows: observations(states),
        evidence,
        registrations,
    };
    let registered =
        LatestRegistration { at: Some(at(7)), registrar: Registrar::new("Example Registrar") };
    let free = [Evidence::RdapNone, Evidence::Control, Evidence::NotDelegated];
    let evidence = vec![EvidenceSet::default(), free.into_iter().collect()];
    let (first, later) = RdapState::ALL.split_at(7);
    let mut all = vec![
        ("list", list(false, names.clone(), matches)),
        ("list, nothing in it", list(true, Vec::new(), Vec::new())),
        ("changes began", Event::WatchAlertsBegan { at: at(2), through: 0x0203 }),
        ("changes", changed(Some(account), &changes, vec![message])),
        ("changes, done", changed(None, &[], Vec::new())),
        ("test", test(rule_id, names[..1].to_vec(), Vec::new())),
        ("test of the watchlist", test(RuleId::WATCHLIST, Vec::new(), changes[..1].to_vec())),
        ("requeued", requeued),
        ("on", switched(None)),
        ("off, gone", switched(Some(off(OffReason::Gone)))),
        ("off, failing", switched(Some(off(OffReason::Failing)))),
        ("token", Event::UnsubscribeTokenSet { account, rule: rule_id, token }),
        ("verified", verified(first, Vec::new(), Vec::new())),
        ("verified, evidence", verified(later, evidence, Vec::new())),
        ("verified, registered", verified(first, Vec::new(), vec![registered])),
        ("watch alerts", set(plain)),
        ("watch alerts, full", set(full)),
    ];
    all.extend(every_outcome().into_iter().map(|outcome| {
        let (at, attempts) = (at(7), 0x0708);
        let delivery = delivery(0x33);
        (
            "settled",
            Event::DeliverySettled { account, rule: rule_id, delivery, at, attempts, outcome },
        )
    }));
    all
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

fn observations(states: &[RdapState]) -> Vec<(DomainName, Observation)> {
    let seen = |(place, state): (usize, RdapState)| Observation {
        state,
        at: at(10),
        registered_on: (place % 2 == 0).then(|| day().plus(-1_000)),
        statuses: RdapStatuses::from(1 << place),
        source: if place == 2 { ObservedBy::Dns } else { ObservedBy::Rdap },
        evidence: EvidenceSet::default(),
        registration: LatestRegistration::default(),
    };
    let all = states.iter().copied().enumerate().map(seen);
    all.map(|seen| (name("a.com"), seen)).collect()
}

/// Events of the random sample.
fn sample() -> Named {
    let drawn = |names: &[&str]| Event::SampleDrawn {
        on: day(),
        suffix: "com".into(),
        seed: [7; 32],
        names: names.iter().map(|text| (name(text), Dqs::MAX)).collect(),
    };
    let answers =
        [SampleAnswer::None, SampleAnswer::Free(7), SampleAnswer::Taken(9), SampleAnswer::Kept];
    let rows = answers.map(|answer| (day(), name("a.com"), answer)).to_vec();
    vec![
        ("sample", drawn(&["b.com", "a.com"])),
        ("sample, answers", Event::SampleAnswered { rows }),
    ]
}

/// Events of the facts of an account.
fn facts() -> Named {
    let account = AccountId(3);
    let source = CompactString::from("acme");
    let row = FactsRow {
        source: source.clone(),
        added_at: UnixMs::new(5).expect("in range"),
        rows: 300,
        file_rows: 4,
        from_file: 3,
        refused: 1,
    };
    let mapped = |mapping: Option<&str>| Event::FactsMapped {
        account,
        print: "0a".into(),
        mapping: mapping.map(Into::into),
    };
    vec![
        ("part of facts", Event::FactsPart { account, number: 1, bytes: Part(vec![0, 1, 255]) }),
        ("facts", Event::FactsPut { account, row: Box::new(row) }),
        ("description of facts", mapped(Some("domain,a.b:int"))),
        ("no description of facts", mapped(None)),
        ("removed facts", Event::Removed { account, row: RowOf::Facts(source) }),
    ]
}

/// Events of the nodes of a cluster.
fn nodes() -> Named {
    let lead = |node: Option<&str>| Lead { term: 0x0203, node: node.map(Into::into) };
    let files = |served| {
        let publication = Publication { generation: 0x0405, list: [6; 32] };
        Event::FilesAnnounced { publication, served }
    };
    vec![
        ("checkpoint", Event::Checkpoint { id: 0x0102_0304 }),
        ("lead", Event::LeadTaken { lead: lead(Some("one")) }),
        ("lead, given up", Event::LeadTaken { lead: lead(None) }),
        ("files, announced", files(false)),
        ("files, served", files(true)),
    ]
}

fn every() -> Vec<(&'static str, Transaction)> {
    let all = access().into_iter().chain(owned()).chain(outbox()).chain(nodes());
    let mut all: Vec<_> = all.map(|(name, event)| (name, Transaction(vec![event]))).collect();
    let three = all.iter().rev().take(3).flat_map(|(_, it)| it.0.clone()).collect();
    all.push(("three at once", Transaction(three)));
    all.push(("nothing", Transaction(Vec::new())));
    all.extend(
        sample().into_iter().chain(facts()).map(|(name, event)| (name, Transaction(vec![event]))),
    );
    let later =
        actions().into_iter().chain(amounts()).chain(digests()).chain(visits()).chain(erasure());
    all.extend(later.map(|(name, event)| (name, Transaction(vec![event]))));
    all
}

/// Events with amounts in several currencies.
fn amounts() -> Named {
    let eur = Currency::parse("EUR").expect("a currency");
    let euros = |cents| Amount::new(eur, cents);
    let terms = Terms {
        bid: euros(4_200),
        acquired_price: Amount::new(Currency::parse("JPY").expect("a currency"), 1_500),
        resale_price: None,
        renewal: euros(1_199),
        commission: Percent::try_from(1_250).ok().map(Commission::Percent),
        sold_venue: Some("Sedo".into()),
        decision: None,
    };
    let claim = Claim { bid: None, acquired_price: None, renewal: None, ..sold() };
    let fee = Terms { commission: euros(60_00).map(Commission::Amount), ..Terms::default() };
    let decision = Some((day(), RenewalDecision::Drop));
    let kept = Terms { decision, ..Terms::default() };
    let change = WatchedChange {
        kind: ChangeKind::RenewalDue,
        name: name("a.com"),
        day: day(),
        verified: false,
        dqs: None,
        dqs_before: None,
    };
    let due = Event::RenewalsDue {
        account: ACCOUNT,
        through: day(),
        at: at(13),
        changes: vec![change],
        messages: Vec::new(),
    };
    let put = |terms: Terms| {
        let claim = Claim { terms: Some(Box::new(terms)), ..claim.clone() };
        Event::ClaimPut { account: ACCOUNT, claim: Box::new(claim) }
    };
    let rates = vec![(Currency::USD, Rate::try_from(91_743_119).expect("a rate"))];
    let money = Some(MoneySettings { currency: eur, rates });
    let set = |money| Event::PreferencesSet { account: ACCOUNT, chat: None, columns: None, money };
    vec![
        ("claim, currencies", put(terms)),
        ("claim, fee", put(fee)),
        ("currency", set(money)),
        ("usual currency", set(Some(MoneySettings::default()))),
        ("claim, decided", put(kept)),
        ("renewals", due),
    ]
}

/// Events of actions that can be undone.
fn actions() -> Named {
    let (account, id) = (ACCOUNT, ActionId::new(0x0708).expect("an id"));
    let began = |marks, mark| Event::ActionBegan { account, id, at: at(6), marks, mark };
    let marks = vec![(name("a.com"), None), (name("b.co.uk"), Some("spam".into()))];
    let browser = "Firefox on Linux".into();
    let change = WatchedChange {
        kind: ChangeKind::DropsTomorrow,
        name: name("a.com"),
        day: day(),
        verified: false,
        dqs: Dqs::new(77),
        dqs_before: None,
    };
    let message = RecordedChanges {
        account,
        channel: 1,
        delivery: DeliveryId::new([7; 16]),
        due: at(14),
        total: 1,
        changes: vec![0],
    };
    let (changes, messages) = (vec![change], vec![message]);
    let told = Event::ChangesTold { account, at: at(13), changes, messages };
    let named = Event::SessionSeen { account, digest: digest(), at: at(12), browser };
    vec![
        ("action", began(Vec::new(), None)),
        ("action, marks", began(marks, Some("clean".into()))),
        ("undone", Event::ActionUndone { account, id }),
        ("session, named", named),
        ("changes, late", told),
    ]
}

/// Events of visits of the list.
fn visits() -> Named {
    let visited = |since| Event::ListVisited {
        account: ACCOUNT,
        visit: Visit { began: at(9), batch: 0x0304, since },
    };
    vec![("visit", visited(None)), ("later visit", visited(Some((at(8), 0x0203))))]
}

/// Events of accounts that are erased.
fn erasure() -> Named {
    let asked = |at| Event::ErasureAsked { account: ACCOUNT, at };
    vec![
        ("erasure asked", asked(Some(at(10)))),
        ("account restored", asked(None)),
        ("account erased", Event::AccountErased { account: ACCOUNT }),
    ]
}

/// Events of morning digests.
fn digests() -> Named {
    let account = ACCOUNT;
    let set = |digest| Event::DigestSet { account, digest };
    let zone = "Europe/Berlin".parse().expect("a zone");
    let (through, batch) = (at(3), 0x0203);
    let hour = Hour::new(8).expect("an hour");
    let digest = Digest { hour, zone, through, batch, best: true, searches: false };
    let one = MatchedName(DroppedName {
        name: name("a.com"),
        dqs: Dqs::new(70).expect("a score"),
        drop_date: day(),
        release: day().plus(35),
        release_second: None,
        stage: Stage::Redemption,
    });
    let search = DigestSearch {
        id: SearchId::new(7).expect("an id"),
        name: "Mine".into(),
        total: 9,
        names: vec![one.clone()],
    };
    let queued = |delivery, total, rows| {
        let (hour, at, batch) = (at(4), at(5), 0x0304);
        Event::DigestQueued { account, hour, at, batch, delivery, total, rows }
    };
    let rows = DigestRows { best: vec![one], searches: vec![search] };
    vec![
        ("digest", set(Some(digest))),
        ("no digest", set(None)),
        ("queued digest", queued(Some(delivery(0x33)), 12, rows)),
        ("nothing new", queued(None, 0, DigestRows::default())),
    ]
}

#[test]
fn the_bytes_of_every_event_never_change() {
    let line = |(name, transaction): (&str, Transaction)| {
        format!("{name}: {}\n", hex::encode(transaction.encode().1))
    };
    // A new event adds a line at the end; a line that was part of a release never changes.
    let golden = include_str!("../../../tests/golden/journal-events.hex");
    let ours: String = every().into_iter().map(line).collect();
    let missing: Vec<_> =
        ours.lines().filter(|&line| !golden.lines().any(|it| it == line)).collect();
    assert!(missing.is_empty(), "not in the file:\n{}", missing.join("\n"));
    assert_eq!(golden.lines().count(), ours.lines().count(), "the file has lines of no event");
    let covered =
        |number| every().iter().any(|(_, it)| it.0.iter().any(|it| it.number() == number));
    let missing: Vec<_> = Event::ALL.iter().filter(|(_, number)| !covered(*number)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn transactions_round_trip() {
    for (name, transaction) in every() {
        let (kind, payload) = transaction.encode();
        assert!(Transaction::decode(kind, &payload).expect(name) == transaction, "{name}");
    }
}

#[test]
fn dumps_show_no_secret() {
    for (name, transaction) in every() {
        let shown = transaction.describe().to_string();
        for secret in ["slackslack", "tokentoken", "whsec_", "argon2id", "5555", "68,68,68,68"] {
            assert!(!shown.contains(secret), "{name}: {shown}");
        }
    }
    let shown = Transaction(vec![Event::RulePut { account: ACCOUNT, rule: Box::new(full_rule()) }]);
    let shown = shown.describe().to_string();
    assert!(shown.contains("RulePut") && shown.contains("slack\""), "{shown}");
    assert!(shown.contains("(hidden)") && shown.contains("\"name\":\"short\""), "{shown}");
}

fn refused(payload: &[u8]) -> EventError {
    match Transaction::decode(TRANSACTION, payload) {
        Ok(_) => panic!("read {}", hex::encode(payload)),
        Err(err) => err,
    }
}

#[test]
fn data_of_a_newer_version_is_refused_by_name() {
    let field = b"\x06\x06\x01\x01\x07\x09\x01\x01";
    let newer = [
        (refused(b"\x7f\x00"), "event 127 is unknown"),
        (refused(field), "EmailVerified: field 9 is unknown"),
    ];
    for (err, what) in newer {
        assert!(matches!(err, EventError::Newer(_)), "{err:?}");
        assert_eq!(err.to_string(), format!("{what}; a newer dropdex wrote it"));
    }
    let kind = RecordKind::for_caller(77).expect("the caller's");
    let err = Transaction::decode(kind, &[]).err().expect("refused");
    assert_eq!(err.to_string(), "unknown record kind 77; a newer dropdex wrote it");
    let ignorable = b"\x06\x06\x01\x01\x07\x81\x01\x01";
    let read = Transaction::decode(TRANSACTION, ignorable).expect("a hint may be lost");
    assert!(read == Transaction(vec![Event::EmailVerified { account: AccountId(7) }]));
}

#[test]
fn a_missing_field_has_its_default_or_is_named() {
    let bare = Transaction::decode(TRANSACTION, b"\x04\x05\x01\x03\xfb\xc4\x3b").expect("a day");
    assert!(bare == Transaction(vec![Event::DayBegan { day: day(), corrects: false }]));
    let err = refused(b"\x06\x00");
    assert!(matches!(err, EventError::Malformed(_)), "{err:?}");
    assert_eq!(err.to_string(), "EmailVerified: field 1 (account) is missing");
    let err = refused(b"\x0c\x06\x01\x01\x07\x02\x01\x00");
    assert_eq!(err.to_string(), "ClaimPut, field 2 (claim): Claim: field 1 (id) is missing");
}

#[test]
fn an_older_journal_is_referred_to_the_upgrade() {
    for number in FORMER {
        let kind = RecordKind::for_caller(number).expect("the caller's");
        let err = Transaction::decode(kind, &[0; 9]).err().expect("refused");
        assert!(err.to_string().contains("`dropdex journal upgrade`"), "{err}");
    }
}

#[test]
fn malformed_events_are_errors() {
    for (name, transaction) in every() {
        let (kind, bytes) = transaction.encode();
        let whole = transaction.0.len();
        for len in 0..bytes.len() {
            let read = Transaction::decode(kind, &bytes[..len]);
            assert!(
                read.is_err() || read.is_ok_and(|it| it.0.len() < whole),
                "{name} cut at {len}"
            );
        }
        let trailing = [bytes.as_slice(), &[0]].concat();
        assert!(Transaction::decode(kind, &trailing).is_err(), "{name} and one byte");
    }
    refused(&[0xff; 64]);
    let err = refused(b"\x04\x03\x01\x01\x00");
    assert!(err.to_string().starts_with("DayBegan, field 1 (day): "), "{err}");
}

/// Sets each byte of every transaction to values that result in extreme lengths. The result is an
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
                    // Every decoded transaction fits into a record again.
                    assert!(read.encode().1.len() <= PAYLOAD_BYTES_MAX, "{name} at {at}");
                }
            }
        }
    }
    for bytes in [b"\xfd\xff\xff\xff\xff\xff\xff\xff\xff", b"\xfd\x00\x00\x00\x00\x00\x01\x00\x00"]
    {
        let mut endless = b"\x1e\x0b\x01\x09".to_vec();
        endless.extend_from_slice(bytes);
        refused(&endless);
    }
    let long = "a".repeat(250) + ".com";
    for (label, text) in [(250_u8, long.as_str()), (3, "abcd.com")] {
        let mut payload = vec![30];
        put_with_length(&mut payload, |bytes| {
            let mut row = RowWriter::after(std::mem::take(bytes));
            row.put(1, "rows", &vec![(label, text)]);
            *bytes = row.into_bytes();
        });
        refused(&payload);
    }
}

#[test]
fn a_decision_concerns_its_account_and_address() {
    let touched = |events: Vec<Event>| Transaction(events).touched();
    let plan = |account| Event::AccountChanged {
        account,
        plan: Some(Plan::Pro),
        password: None,
        disabled: false,
    };
    let (one, other) = (AccountId(1), AccountId(2));
    assert_eq!(touched(vec![plan(one), plan(one)]), touched(vec![plan(one)]));
    assert_eq!(touched(vec![plan(one), plan(other)]).len(), 2);
    let added = |account, email: &str| {
        let (email, plan) = (email.parse().expect("an address"), Plan::Pro);
        let by = AddedBy::Operator;
        touched(vec![Event::AccountAdded { account, email, plan, on: day(), password: None, by }])
    };
    let share = |one: &[u64], other: &[u64]| one.iter().any(|key| other.contains(key));
    assert!(share(&added(one, "a@example.com"), &added(other, "a@example.com")), "one address");
    assert!(share(&added(one, "a@example.com"), &added(one, "b@example.com")), "one number");
    assert!(!share(&added(one, "a@example.com"), &added(other, "b@example.com")));
    assert!(touched(vec![Event::DayBegan { day: day(), corrects: false }]).is_empty());
}
