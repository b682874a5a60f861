use super::*;
use crate::data::UserData;
use crate::data::access::{Session, SessionLife};
use crate::data::actions::{Action, Changed, Content, Key as RowKey, RuleBefore};
use crate::data::claims::Claim;
use crate::data::deliveries::{DigestSearch, OffReason, StatusClass};
use crate::data::facts::{Facts, FactsRow, PART_BYTES, Part};
use crate::data::feeds::{Feed, FeedOf};
use crate::data::keys::Key;
use crate::data::nodes::{Lead, Publication};
use crate::data::responses::KeptResponse;
use crate::data::rules::{Rule, WebhookSecret};
use crate::data::sample::Sample;
use crate::data::searches::SavedSearch;
use crate::data::visits::Visit;
use crate::data::watch_alerts::{EntryAlerts, Quiet, WatchAlerts};
use crate::data::watches::{WatchDetails, WatchEntry, WatchRow};
use crate::fixtures::{self, at, day, name, rule, stored_key};
use crate::query::stored::Conditions;
use crate::quota::{DayUsage, Usage};
use crate::store::progress::MatchProgress;
use crate::store::state::Accounts;
use crate::store::watched::Watched;
use crate::token::TokenDigest;
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::chat::{Chat, Hook};
use crate::vocab::claim::Vote;
use crate::vocab::dqs::Dqs;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::evidence::EvidenceSet;
use crate::vocab::ids::{ActionId, ClaimId, KeyId, SearchId};
use crate::vocab::observation::{
    FormerState, LatestRegistration, Observation, ObservedBy, RdapState, RdapStatus, RdapStatuses,
    Registrar,
};
use crate::vocab::plan::Plan;
use crate::vocab::sample::{OPEN_DAYS, SampleAnswer};
use crate::vocab::scope::{Scope, Scopes};
use crate::vocab::secret::Secret;
use crate::vocab::stage::Stage;
use crate::vocab::url::WebhookUrl;
use crate::vocab::zone::Hour;

fn claim(id: u64, notes: &str) -> Claim {
    Claim {
        id: ClaimId::new(id).expect("an id"),
        status: crate::vocab::claim::ClaimStatus::Caught,
        user_notes: Some(notes.into()),
        ..fixtures::claim()
    }
}

fn watch(text: &str) -> WatchRow {
    let (external, registered_again) = (text.len().is_multiple_of(2), false);
    let entry = WatchEntry { name: name(text), added_at: at(2), external, registered_again };
    WatchRow { entry, details: WatchDetails::default(), alerts: None }
}

fn reply(key: u8, len: usize) -> KeptResponse {
    let (key, fingerprint, at, status) = ([key; 16], [2; 32], at(3), 201);
    KeptResponse { key, fingerprint, at, status, body: vec![b'x'; len].into() }
}

fn account(number: u64, claims: Vec<Claim>, watches: Vec<WatchRow>) -> Arc<Account> {
    let email = format!("a{number}@example.com").parse().expect("an address");
    let mut data = UserData::default();
    claims.into_iter().for_each(|claim| data.claims.put(claim));
    for watch in watches {
        data.watches.put(watch);
    }
    data.rules.put(rule());
    data.votes.set("a.com", Some(Vote::Up));
    data.votes.set("b.com", Some(Vote::Down));
    data.responses.put(reply(9, 2));
    Arc::new(Account {
        data: Arc::new(data),
        noted: DayUsage { day: Some(day()), requests: 5, exports: 6 },
        usage: Arc::new(Usage::default()),
        ..Account::new(AccountId(number), email, Plan::Pro, None, day())
    })
}

fn frozen(accounts: Vec<Arc<Account>>) -> Frozen {
    let (progress, watched) = (MatchProgress::default(), Watched::default());
    let mut by_id = Accounts::default();
    accounts.into_iter().for_each(|account| drop(by_id.insert(account.id, account)));
    Frozen {
        accounts: by_id,
        owner: None,
        last_account: 9,
        last_day: Some(day()),
        progress,
        changes: None,
        watched,
        sample: Sample::default(),
        shared: SharedPosition::default(),
        nodes: Nodes::default(),
    }
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
    let line = |(name, state): (&str, Frozen)| {
        let chunks: Vec<_> = chunks(&state).iter().map(hex::encode).collect();
        format!("{name}: {}\n", chunks.join(" "))
    };
    let all = [
        ("rows", frozen(vec![full, bare])),
        ("outboxes", sending()),
        ("logins", entered()),
        ("notes", noted()),
        ("watch alerts", watching()),
        ("the rest", others()),
        ("evidence", proven(LatestRegistration::default())),
        ("registration", proven(registered())),
        ("sample", sampled()),
        ("facts", with_facts(4)),
        ("actions", acted()),
        ("visits", visited()),
        ("digests", digested()),
    ];
    let ours: String = all.into_iter().map(line).collect();
    assert_eq!(ours, include_str!("../../../../tests/golden/accounts-snapshot-0.1.hex"));
}

fn matched(text: &str) -> Arc<MatchedName> {
    Arc::new(MatchedName(DroppedName {
        name: name(text),
        dqs: Dqs::new(70).expect("a score"),
        drop_date: day(),
        release: day().plus(35),
        release_second: None,
        stage: Stage::Redemption,
    }))
}

fn delivery(byte: u8, channel: Channel, names: Option<&[&str]>) -> Delivery {
    let names = names.map(|names| names.iter().map(|name| matched(name)).collect());
    let content = names.map(MessageRows::Names);
    let (kind, total) = (MessageKind::Match, 3);
    Delivery {
        id: DeliveryId::new([byte; 16]),
        channel: Arc::new(channel),
        message: Message { kind, at: at(5), list_day: day(), total, content },
        attempts: u16::from(byte),
        status: DeliveryStatus::Pending { next_at: at(6) },
        last_attempt_at: None,
        last_problem: None,
    }
}

/// Returns a state with deliveries and observations.
fn sending() -> Frozen {
    let (rule_id, mut outbox) = (rule().id, Outbox::default());
    let telegram = Channel::Telegram { chat_id: "-100".into() };
    outbox.change(rule_id, |outbox| {
        outbox.unsubscribe = Some(UnsubscribeToken::new([1; 16]));
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
    let data = Arc::make_mut(&mut full.data);
    data.outbox = outbox;
    data.tests = Some((day(), 4));
    let mut state = frozen(vec![Arc::new(full)]);
    let through = |batch| Watermark { batch, day: day() };
    state.progress.finish(through(5));
    state.progress.advance(AccountId(3), rule_id, through(6));
    let seen = Observation {
        state: RdapState::Renewed,
        at: at(9),
        registered_on: Some(day()),
        statuses: RdapStatuses::NONE.with(RdapStatus::Active),
        source: ObservedBy::Rdap,
        evidence: EvidenceSet::default(),
        registration: LatestRegistration::default(),
    };
    state.watched.add(&name("b.com"));
    state.watched.observe(&name("b.com"), seen);
    state
}

/// Adds accounts with sessions, verification links and a default chat.
fn entered() -> Frozen {
    let digest = |byte| TokenDigest::new([byte; 32]);
    let session = |byte, life| {
        let browser = CompactString::default();
        Session { digest: digest(byte), began: at(10), seen: at(11), life, browser }
    };
    let entered = Access {
        sessions: vec![session(1, SessionLife::Short), session(2, SessionLife::Kept)],
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

/// Adds an account with notes on a name, a hidden name and a trade, and a name with former states.
fn noted() -> Frozen {
    let mut full = (*account(8, vec![claim(1, "x"), claim(2, "y")], vec![watch("a.com")])).clone();
    let data = Arc::make_mut(&mut full.data);
    let tags = vec!["flip".parse().expect("a tag")];
    let details = WatchDetails { note: Some("n".into()), tags, ..WatchDetails::default() };
    data.watches.put(WatchRow { details, ..watch("a.com") });
    data.hidden.add(name("b.com"));
    let claim = claim(2, "y");
    data.claims.put(Claim { venue: Some("DropCatch".into()), renews_on: Some(day()), ..claim });
    let mut state = frozen(vec![Arc::new(full)]);
    state.owner = Some(AccountId(8));
    state.watched.add(&name("a.com"));
    for (number, state_then) in
        [RdapState::Redemption, RdapState::PendingDelete].into_iter().enumerate()
    {
        let (registered_on, statuses) = (None, RdapStatuses::NONE);
        let at = at(20 + number as u64);
        let seen = Observation {
            state: state_then,
            at,
            registered_on,
            statuses,
            source: ObservedBy::Rdap,
            evidence: EvidenceSet::default(),
            registration: LatestRegistration::default(),
        };
        state.watched.observe(&name("a.com"), seen);
    }
    state
}

/// The kinds of the first version. The bytes of its sets do not change.
fn first_kinds() -> ChangeKinds {
    ChangeKinds::from(0xff)
}

fn registered() -> LatestRegistration {
    LatestRegistration { at: Some(at(8)), registrar: Registrar::new("Example") }
}

/// Adds a watched name with the statements of the sources about it.
fn proven(registration: LatestRegistration) -> Frozen {
    let mut state = frozen(Vec::new());
    let seen = Observation {
        state: RdapState::Available,
        at: at(9),
        registered_on: None,
        statuses: RdapStatuses::NONE,
        source: ObservedBy::Rdap,
        evidence: EvidenceSet::from(0b101),
        registration,
    };
    state.watched.add(&name("b.com"));
    state.watched.observe(&name("b.com"), seen);
    state
}

/// A state with a draw without names, a draw with an answer, and one without.
fn sampled() -> Frozen {
    let mut state = frozen(Vec::new());
    let names = |texts: &[&str]| texts.iter().map(|text| (name(text), Dqs::MAX)).collect();
    let later = day().plus(OPEN_DAYS + 1);
    state.sample.draw(day(), "com".into(), names(&["b.com"]));
    state.sample.answer(day(), &name("b.com"), SampleAnswer::Free(7));
    state.sample.draw(later, "com".into(), names(&["b.com", "a.com"]));
    state.sample.draw(later, "net".into(), names(&["c.net"]));
    state.sample.answer(later, &name("a.com"), SampleAnswer::Taken(1));
    state
}

/// A state with two sources, one of several parts, a description, and a part that waits.
fn with_facts(bytes: usize) -> Frozen {
    let mut full = (*account(9, Vec::new(), Vec::new())).clone();
    let data = Arc::make_mut(&mut full.data);
    for (source, bytes) in [("b", 3), ("a", bytes)] {
        let row = FactsRow {
            source: source.into(),
            added_at: at(5),
            rows: 2,
            file_rows: 0,
            from_file: 2,
            refused: 0,
        };
        for (number, part) in (0..).zip(Facts::parts(&vec![7; bytes])) {
            data.facts.add_part(number, &part);
        }
        data.facts.put(row);
    }
    data.facts.map("0a".into(), Some("domain,a.b:int".into()));
    data.facts.add_part(0, &Part(vec![1]));
    data.facts.add_part(1, &Part(vec![2]));
    frozen(vec![Arc::new(full)])
}

/// A state with an action on rows of every kind, and one that was too large.
fn acted() -> Frozen {
    let mut full = (*account(9, vec![claim(1, "one")], Vec::new())).clone();
    let id = |id| ActionId::new(id).expect("an id");
    let search = |id| SearchId::new(id).expect("an id");
    let conditions = Conditions::new([("starts", "get")]);
    let saved =
        SavedSearch { id: search(9), name: "Mine".into(), conditions, created_at: at(3), seen: 1 };
    let (reason, at_off) = (OffReason::Unsubscribed, at(8));
    let before = RuleBefore {
        rule: rule(),
        feed: Some(feed()),
        unsubscribe: Some(UnsubscribeToken::new([1; 16])),
        off: vec![(Channel::Email, SwitchedOff { reason, at: at_off })],
    };
    let rows = [
        (RowKey::Watch(name("a.com")), Some(Content::Watch(Box::new(watch("a.com")))), None),
        (RowKey::Watch(name("b.com")), None, Some(5)),
        (RowKey::Hidden(name("a.com")), Some(Content::Hidden), None),
        (RowKey::Mark(name("a.com")), Some(Content::Mark("spam".into())), Some(6)),
        (RowKey::Claim(claim(1, "one").id), Some(Content::Claim(Box::new(claim(1, "one")))), None),
        (RowKey::Rule(rule().id), Some(Content::Rule(Box::new(before))), None),
        (RowKey::Search(search(9)), Some(Content::Search(Box::new(saved), None)), None),
    ];
    let actions = &mut Arc::make_mut(&mut full.data).actions;
    let (is_too_large, rows_of, bytes) = (true, Default::default(), 0);
    actions.put(Action { id: id(7), at: at(5), is_too_large, rows: rows_of, bytes });
    actions.begin(id(8), at(6));
    for (key, before, after) in rows {
        actions.record(id(8), Changed { key, before, after });
    }
    frozen(vec![Arc::new(full)])
}

/// An account that visited the list.
fn visited() -> Frozen {
    let mut full = Arc::unwrap_or_clone(account(9, Vec::new(), Vec::new()));
    let data = Arc::make_mut(&mut full.data);
    data.visit = Some(Visit { began: at(9), batch: 8, since: Some((at(3), 7)) });
    frozen(vec![Arc::new(full)])
}

/// An account with a digest, and one that waits to be sent.
fn digested() -> Frozen {
    let mut full = Arc::unwrap_or_clone(account(9, Vec::new(), Vec::new()));
    let data = Arc::make_mut(&mut full.data);
    let zone = "Europe/Berlin".parse().expect("a zone");
    let hour = Hour::new(8).expect("an hour");
    let (through, batch) = (at(3), 7);
    data.digest = Some(Digest { hour, zone, through, batch, best: true, searches: true });
    let named = || vec![MatchedName::clone(&matched("a.com"))];
    let id = SearchId::new(9).expect("an id");
    let search = DigestSearch { id, name: "Mine".into(), total: 3, names: named() };
    let rows = DigestRows { best: named(), searches: vec![search] };
    let content = Some(MessageRows::Digest(Arc::new(rows)));
    let (kind, total) = (MessageKind::Match, 12);
    let message = Message { kind, at: at(5), list_day: day(), total, content };
    data.outbox.change(RuleId::DIGEST, |outbox| {
        outbox.queue(Digest::sender(), &message, &[(0, DeliveryId::new([1; 16]))]);
    });
    frozen(vec![Arc::new(full)])
}

#[test]
fn visits_and_digests_round_trip() {
    for state in [visited(), digested()] {
        let read = load(&chunks(&state)).expect("sound");
        let data = |accounts: &Accounts| accounts.get(&AccountId(9)).map(|it| it.data.clone());
        assert_eq!(data(&read.accounts), data(&state.accounts));
    }
}

#[test]
fn actions_round_trip() {
    let read = load(&chunks(&acted())).expect("read").freeze();
    let data = |state: &Frozen| state.accounts.values().next().expect("one").data.clone();
    assert!(data(&read) == data(&acted()));
    assert_eq!(data(&read).actions.iter().map(|action| action.rows.len()).sum::<usize>(), 7);
    assert_eq!(digest(&read), digest(&acted()));
}

#[test]
fn facts_round_trip() {
    let full = || with_facts(2 * PART_BYTES + 1);
    let read = load(&chunks(&full())).expect("read").freeze();
    let data = |state: &Frozen| state.accounts.values().next().expect("one").data.facts.clone();
    assert_eq!(data(&read), data(&full()));
    assert_eq!(data(&read).pending(), (2, 2));
    assert_eq!(digest(&read), digest(&full()));
}

#[test]
fn samples_round_trip() {
    let read = load(&chunks(&sampled())).expect("read").freeze();
    assert!(read.sample == sampled().sample);
    assert_eq!(read.sample.changes(), 5);
    assert_eq!(digest(&read), digest(&sampled()));
}

#[test]
fn notes_and_former_states_round_trip() {
    let read = load(&chunks(&noted())).expect("read").freeze();
    assert!(
        read.accounts.values().next().expect("one").data
            == noted().accounts.values().next().expect("one").data
    );
    let former = [FormerState { state: RdapState::Redemption, last_seen: at(20) }];
    assert_eq!(read.watched.former(&name("a.com")), former);
    assert_eq!(digest(&read), digest(&noted()));
}

/// Returns a state with rows that the other samples lack.
fn others() -> Frozen {
    let id = SearchId::new(9).expect("an id");
    let conditions = Conditions::new([("starts", "get"), ("adult", "include")]);
    let mut full = (*account(8, Vec::new(), Vec::new())).clone();
    let data = Arc::make_mut(&mut full.data);
    data.rules.put(Rule { filter: conditions.clone(), search: Some(id), ..rule() });
    let (name, created_at, seen) = ("Mine".into(), at(3), 41);
    data.searches.put(SavedSearch { id, name, conditions, created_at, seen });
    data.columns = Some(Columns::named(["due", "why"].into_iter()));
    let url = "https://hooks.slack.com/services/T/B/slackslackslack".to_owned();
    let hook = Hook { url: Some(WebhookUrl::from_stored(url)), ..Hook::default() };
    let slack = Arc::new(Channel::Chat(Chat { service: "slack".into(), hook }));
    data.outbox.change(rule().id, |outbox| outbox.failing.push((slack, at(7))));
    let (id, scopes) = (KeyId::new(9).expect("an id"), Scopes::of([Scope::Mcp]).expect("one"));
    let mut key = Key::new(id, "Mine".into(), stored_key(), scopes, Some(day()), Some(at(3)));
    key.used = Some(day());
    let access = Arc::make_mut(&mut full.access);
    access.keys.put(key);
    access.feeds.put(feed());
    full.disabled = true;
    let mut state = frozen(vec![Arc::new(full)]);
    let publication = |generation| Publication { generation, list: [4; 32] };
    state.nodes = Nodes {
        lead: Lead { term: 0x0203, node: Some("one".into()) },
        announced: Some(publication(9)),
        served: vec![publication(8), publication(7)],
    };
    state.shared = SharedPosition { seq: 0x0102, chain: Chain([3; 32]) };
    state
}

fn feed() -> Feed {
    Feed { of: FeedOf::Watchlist, digest: TokenDigest::new([7; 32]), created: day() }
}

#[test]
fn all_other_rows_round_trip() {
    let state = others();
    let read = load(&chunks(&state)).expect("read");
    // The account is disabled, so neither its feed nor its key works.
    assert!(read.by_feed(&feed().digest).is_none());
    assert!(read.by_key(stored_key().digest()).is_none());
    assert_eq!((&read.nodes, read.shared), (&state.nodes, state.shared));
    let read = read.freeze();
    let one = |state: &Frozen| state.accounts.values().next().map(Arc::clone).expect("one");
    assert!(one(&read).data == one(&state).data && one(&read).disabled);
    assert_eq!(one(&read).access, one(&state).access);
    assert_eq!(digest(&read), digest(&state));
}

/// Returns a state with changes of watched names.
fn watching() -> Frozen {
    let url = WebhookUrl::from_stored("https://hooks.example.com/x".to_owned());
    let secret = Secret::new("whsec_AA==".to_owned());
    let secrets = vec![WebhookSecret::new(url.clone(), secret)];
    let channels = vec![Channel::Email, Channel::Webhook { url }];
    let hour = |hour| Hour::new(hour).expect("an hour");
    let alerts = WatchAlerts {
        kinds: first_kinds(),
        digest: Some(hour(8)),
        quiet: Quiet::new(hour(22), hour(7)),
        zone: "Europe/Berlin".parse().expect("a zone"),
    };
    let change = Arc::new(WatchedChange {
        kind: ChangeKind::Rescored,
        name: name("a.com"),
        day: day(),
        verified: true,
        dqs: Dqs::new(70),
        dqs_before: Dqs::new(60),
    });
    let own = EntryAlerts { kinds: first_kinds(), channels: vec!["email".into()] };
    let own = WatchRow { alerts: Some(own), ..watch("a.com") };
    let mute = WatchRow { alerts: Some(EntryAlerts::default()), ..watch("b.com") };
    let mut full = (*account(8, Vec::new(), vec![own, mute])).clone();
    let data = Arc::make_mut(&mut full.data);
    let settings = WatchSettings { alerts, channels, secrets, at: at(3) };
    data.watch_sender = Some(WatchSender::new(settings));
    let message = |changes: Option<&[Arc<WatchedChange>]>| Message {
        kind: MessageKind::Changes,
        content: changes.map(|changes| MessageRows::Changes(changes.into())),
        ..delivery(1, Channel::Email, None).message
    };
    data.outbox.change(RuleId::WATCHLIST, |outbox| {
        let pending = delivery(1, Channel::Email, None);
        let (first, second) = (message(Some(&[Arc::clone(&change), change])), message(None));
        outbox.put(Delivery { message: first, ..pending });
        let failed = delivery(2, Channel::Email, None);
        outbox.put(Delivery { message: second, status: DeliveryStatus::Failed, ..failed });
    });
    let mut state = frozen(vec![Arc::new(full)]);
    let ahead = Some((9, AccountId(7)));
    state.changes = Some(ChangeProgress { began: at(1), through: 5, ahead });
    state
}

#[test]
fn watch_alerts_round_trip() {
    let state = watching();
    let read = load(&chunks(&state)).expect("read");
    assert_eq!(read.queue.pending().len(), 1);
    let read = read.freeze();
    let data =
        |state: &Frozen| state.accounts.values().map(|it| Arc::clone(&it.data)).collect::<Vec<_>>();
    assert!(data(&read) == data(&state) && read.changes == state.changes);
    assert_eq!(digest(&read), digest(&state));
}

#[test]
fn sessions_and_links_of_a_snapshot_are_found() {
    let state = load(&chunks(&entered())).expect("read");
    for (read, written) in state.freeze().accounts.values().zip(entered().accounts.values()) {
        assert_eq!(read.access, written.access);
    }
    let session = state.by_session(&TokenDigest::new([2; 32])).expect("there");
    assert_eq!((session.0.id, session.1.seen), (AccountId(5), at(11)));
    let linked = state.by_link(&TokenDigest::new([3; 32])).expect("there");
    assert_eq!(linked.id, AccountId(6));
    assert!(state.by_session(&TokenDigest::new([3; 32])).is_none());
}

#[test]
fn state_changes_round_trip() {
    let mut state = frozen(vec![Arc::new((*account(3, Vec::new(), Vec::new())).clone())]);
    let observation = |state| Observation {
        state,
        at: at(1),
        registered_on: None,
        statuses: RdapStatuses::NONE,
        source: ObservedBy::Rdap,
        evidence: EvidenceSet::from(0b101),
        registration: LatestRegistration::default(),
    };
    for text in ["a.com", "b.com"] {
        state.watched.add(&name(text));
        for observed in [RdapState::PendingDelete, RdapState::Unknown, RdapState::Available] {
            state.watched.observe(&name(text), observation(observed));
        }
    }
    let read = load(&chunks(&state)).expect("read").freeze();
    assert_eq!(read.watched.changed_since(2), state.watched.changed_since(2));
    let [change] = &state.watched.changed_since(2)[..] else { panic!("one of two names") };
    assert_eq!((change.number, change.name.as_str()), (4, "b.com"));
    assert_eq!(change.before, Some(RdapState::PendingDelete), "the last one that is known");
    assert_eq!(digest(&read), digest(&state));
}

/// 2,000 messages of the same 500 names.
#[test]
fn names_are_written_once() {
    let texts: Vec<_> = (0..500).map(|at| format!("name-{at}.com")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let message = delivery(1, Channel::Email, Some(&texts));
    let mut outbox = Outbox::default();
    for number in 1..=2_000_u64 {
        let rule = RuleId::new(number).expect("an id");
        outbox.change(rule, |outbox| {
            // Equal names get one position even if they are separate values in memory.
            let copied = message.message.names().iter();
            let copied = copied.map(|name| Arc::new((**name).clone()));
            let copied = (number == 2_000).then(|| MessageRows::Names(copied.collect()));
            let content = copied.or_else(|| message.message.content.clone());
            let message_of_it = Message { content, ..message.message.clone() };
            outbox.put(Delivery { message: message_of_it, ..message.clone() });
        });
    }
    let mut full = (*account(3, Vec::new(), Vec::new())).clone();
    Arc::make_mut(&mut full.data).outbox = outbox;
    let state = frozen(vec![Arc::new(full)]);
    let chunks = chunks(&state);
    assert!(chunks.iter().all(|chunk| (1..=CHUNK_BYTES_MAX).contains(&chunk.len())));
    let bytes: usize = chunks.iter().map(Vec::len).sum();
    assert!(bytes < 2_000 * (500 * 4 + 200), "{bytes} bytes");
    let read = load(&chunks).expect("read").freeze();
    let data =
        |state: &Frozen| state.accounts.values().map(|it| Arc::clone(&it.data)).collect::<Vec<_>>();
    assert!(data(&read) == data(&state));
    assert_eq!(digest(&read), digest(&state));
}

#[test]
fn snapshots_of_any_size_round_trip() {
    let notes = "ü".repeat(5_000);
    let claims = (1..400).map(|id| claim(id, &notes[..(id as usize % 100) * 100])).collect();
    let mut names: Vec<_> = (0..9_000).map(|at| format!("name-{at}.com")).collect();
    names.sort();
    let watches = names.iter().map(|name| watch(name)).collect();
    let mut long = (*account(3, claims, watches)).clone();
    let data = Arc::make_mut(&mut long.data);
    (0..8).for_each(|key| data.responses.put(reply(key, 256 << 10)));
    let state = frozen(vec![account(1, Vec::new(), Vec::new()), Arc::new(long)]);
    let chunks = chunks(&state);
    assert!(chunks.len() > 2);
    assert!(chunks.iter().all(|chunk| (1..=CHUNK_BYTES_MAX).contains(&chunk.len())));
    let read = load(&chunks).expect("read").freeze();
    assert_eq!(digest(&read), digest(&state));
    for (read, written) in read.accounts.values().zip(state.accounts.values()) {
        assert!(read.data == written.data && read.noted == written.noted);
    }
}

#[test]
fn hostile_bytes_do_not_panic() {
    let full = account(3, vec![claim(1, "one")], vec![watch("a.com")]);
    let whole = chunks(&frozen(vec![full])).remove(0);
    let mut sound = 0;
    for len in 0..whole.len() {
        sound += usize::from(load(&[whole[..len].to_vec()]).is_ok());
    }
    // Truncates the bytes between items: before the first, and after each item except the last.
    assert_eq!(sound, 1 + 6);
    for whole in [whole, chunks(&sending()).remove(0), chunks(&entered()).remove(0)] {
        for at in 0..whole.len() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut hostile = whole.clone();
                hostile[at] = value;
                // Damaged bytes result in an error or another state, never in a panic. In practice,
                // the journal's checksums detect them first.
                if let Ok(state) = load(&[hostile]) {
                    digest(&state.freeze());
                }
            }
        }
    }
    assert!(load(&[vec![item::VOTES, 1, 0]]).is_err(), "votes without an account");
}

#[test]
fn items_of_other_versions_are_refused() {
    let refused = |chunk: Vec<u8>| load(&[chunk]).err().expect("refused").to_string();
    let known = chunks(&frozen(vec![account(3, Vec::new(), Vec::new())])).remove(0);
    let unknown = [known.as_slice(), &[99, 1, 0]].concat();
    assert_eq!(refused(unknown), "item 99 is unknown; a newer dropdex wrote it");
    let field = refused(vec![item::STATE, 7, 6, 1, 1, 9, 77, 1, 0]);
    assert_eq!(field, "item 1: StateRow: field 77 is unknown; a newer dropdex wrote it");
    let missing = refused(vec![item::STATE, 1, 0]);
    assert_eq!(missing, "item 1: StateRow: field 1 (last_account) is missing");
    assert!(refused(vec![0, 0, 0, 0]).contains("`dropdex journal upgrade`"));
}
