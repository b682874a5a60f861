//! The store as a whole: refusals, limits under races, and restarts.

mod ceilings;
mod deliveries;
mod digest;
mod erasure;
mod keys;
mod renewals;
mod sessions;
mod shared;
mod undo;
mod watch_alerts;

use std::sync::Arc;

use chrono::{DateTime, Duration, TimeZone, Utc};

use super::decide::Decided;
use super::fixtures::{email, name};
use super::*;
use crate::query::stored::Conditions;
use crate::vocab::claim::{ClaimStatus, Vote};
use crate::vocab::clock::Clock;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::limits::{CLAIMS_MAX, RULES_MAX, WATCHES_MAX};
use crate::vocab::money::{Amount, Currency, Percent, Rate, Usd};
use crate::vocab::plan::{Plan, Plans};
use crate::vocab::time::UnixMs;
use crate::vocab::url::WebhookUrl;

/// A store in a temporary folder, and a runtime.
struct World {
    dir: tempfile::TempDir,
    store: Store,
    runtime: tokio::runtime::Runtime,
}

const ATTEMPT: Attempt = Attempt { network: 1, is_known: false };

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).single().expect("an instant")
}

fn plain(now: DateTime<Utc>) -> Post {
    Post { now, idempotency: None }
}

fn keyed(now: DateTime<Utc>, key: &str, fingerprint: u8) -> Post {
    let key = IdempotencyKey::parse(key).expect("a key");
    Post { now, idempotency: Some(Idempotency { key, fingerprint: [fingerprint; 32] }) }
}

fn eur() -> Currency {
    Currency::parse("EUR").expect("a currency")
}

fn euros(cents: u64) -> Option<Amount> {
    Amount::new(eur(), cents)
}

fn attempted(domain: &str) -> NewClaim {
    NewClaim {
        domain: name(domain),
        status: ClaimStatus::Attempted,
        registrar: None,
        acquired_price: None,
        resale_price: None,
        sold_at: None,
        user_notes: None,
        alert_rule: None,
        bid: None,
        venue: None,
        renews_on: None,
        renewal: None,
        commission: None,
        sold_venue: None,
    }
}

fn by_email(text: &str) -> NewRule {
    NewRule {
        name: text.to_owned(),
        filter: Conditions::default(),
        channels: vec![Channel::Email],
        search: None,
    }
}

fn webhook(text: &str) -> Channel {
    Channel::Webhook { url: WebhookUrl::parse(text).expect("an address") }
}

fn watch(text: &str, in_corpus: bool) -> Watch {
    Watch {
        name: name(text),
        in_corpus,
        registered_again: false,
        arrived: Vec::new(),
        patch: WatchPatch::default(),
        near: None,
    }
}

/// Returns a response that contains the id, so that responses differ.
fn created(id: impl std::fmt::Display) -> Receipt {
    Receipt { code: 201, bytes: id.to_string().into_bytes() }
}

fn open(dir: &std::path::Path) -> Store {
    Store::open(dir, Plans::default(), Clock::pinned_to("2026-11-21".parse().expect("a day")))
        .expect("opened")
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().expect("a folder");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build();
        World { store: open(dir.path()), dir, runtime: runtime.expect("a runtime") }
    }

    fn account(&self, address: &str, plan: Plan) -> Caller {
        self.store.add_account(&email(address), plan, None).expect("added");
        let key = self.store.issue_key(&email(address)).expect("issued").key;
        self.store.authenticate(key.reveal()).expect("a working key")
    }

    /// Reopens the store and checks that its data has not changed.
    fn reopened(self) -> World {
        let World { dir, store, runtime } = self;
        let (other, list) = (store.clone(), store.list());
        store.close().expect("closed");
        let digest = other.state_digest();
        drop(other);
        let store = open(dir.path());
        assert_eq!(store.state_digest(), digest, "replay restores the state");
        assert_eq!(store.list(), list);
        World { dir, store, runtime }
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn add_claim(&self, caller: &Caller, claim: NewClaim) -> Result<ClaimId, WriteError> {
        let answered = self.add_claim_by(caller, claim, plain(noon()))?;
        Ok(answered.value.expect("a new claim").id)
    }

    fn add_claim_by(
        &self,
        caller: &Caller,
        claim: NewClaim,
        post: Post,
    ) -> Result<Answered<Claim>, WriteError> {
        self.wait(add_claim(self.store.clone(), caller.clone(), claim, post))
    }

    fn add_watch(&self, caller: &Caller, watch: Watch) -> Result<Outcome, WriteError> {
        let answered = self.wait(add_watch(self.store.clone(), caller.clone(), watch))?;
        Ok(answered.value.expect("not a repeat").1)
    }

    fn add_rule(&self, caller: &Caller, rule: NewRule) -> Result<RuleId, WriteError> {
        let answered = self.wait(add_rule(self.store.clone(), caller.clone(), rule))?;
        Ok(answered.value.expect("a new rule").id)
    }

    fn change_claim(
        &self,
        caller: &Caller,
        id: ClaimId,
        patch: ClaimPatch,
    ) -> Result<Claim, WriteError> {
        self.wait(self.store.change_claim(caller, id, patch, noon() + Duration::hours(1)))
    }

    fn change_rule(
        &self,
        caller: &Caller,
        id: RuleId,
        patch: RulePatch,
    ) -> Result<ChangedRule, WriteError> {
        self.wait(self.store.change_rule(caller, id, patch))
    }
}

async fn add_claim(
    store: Store,
    caller: Caller,
    claim: NewClaim,
    post: Post,
) -> Result<Answered<Claim>, WriteError> {
    store.add_claim(&caller, claim, post).await?.respond(|claim| created(claim.id)).await
}

async fn add_watch(
    store: Store,
    caller: Caller,
    watch: Watch,
) -> Result<Answered<(WatchEntry, Outcome)>, WriteError> {
    store.add_watch(&caller, watch, plain(noon())).await?.respond(|_| created("")).await
}

async fn add_rule(
    store: Store,
    caller: Caller,
    rule: NewRule,
) -> Result<Answered<Rule>, WriteError> {
    store.add_rule(&caller, rule, plain(noon())).await?.respond(|rule| created(rule.id)).await
}

#[track_caller]
fn assert_invalid<T: std::fmt::Debug>(result: Result<T, WriteError>, expected: InvalidField) {
    let fits = matches!(&result, Err(WriteError::Invalid { field, .. }) if *field == expected);
    assert!(fits, "{result:?}");
}

#[track_caller]
fn assert_plan_limit<T: std::fmt::Debug>(result: Result<T, WriteError>, number: Option<u32>) {
    let fits = matches!(&result, Err(WriteError::PlanLimit { limit, .. }) if *limit == number);
    assert!(fits, "{result:?}");
}

#[track_caller]
fn assert_not_found<T: std::fmt::Debug>(result: Result<T, WriteError>) {
    assert!(matches!(result, Err(WriteError::NotFound)), "{result:?}");
}

#[test]
fn a_sale_sets_its_time_and_leaving_sold_clears_it() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let id = world.add_claim(&ann, attempted("a.com")).expect("added");
    let set = |status| ClaimPatch { status: Some(status), ..ClaimPatch::default() };

    let resale_price = Some(Usd::from_cents(5_000).map(Amount::from));
    let sale = ClaimPatch { resale_price, ..set(ClaimStatus::Sold) };
    let sold = world.change_claim(&ann, id, sale).expect("changed");
    assert_eq!(sold.sold_at, Some(UnixMs::from_instant(noon() + Duration::hours(1))));
    assert_eq!(
        (sold.resale_price, sold.reported_at),
        (Usd::from_cents(5_000), UnixMs::from_instant(noon()))
    );
    let given: UnixMs = "2026-01-02T03:04:05Z".parse().expect("an instant");
    let moved = ClaimPatch { sold_at: Some(Some(given)), ..ClaimPatch::default() };
    assert_eq!(world.change_claim(&ann, id, moved).expect("changed").sold_at, Some(given));
    let again = world.change_claim(&ann, id, set(ClaimStatus::Sold)).expect("changed");
    assert_eq!(again.sold_at, Some(given), "it was sold already");
    let none = ClaimPatch { sold_at: Some(None), ..ClaimPatch::default() };
    assert_invalid(world.change_claim(&ann, id, none), InvalidField::SoldAt);

    let left = world.change_claim(&ann, id, set(ClaimStatus::Lost)).expect("changed");
    assert_eq!((left.sold_at, left.resale_price), (None, None));
    let price = ClaimPatch { resale_price, ..ClaimPatch::default() };
    assert_invalid(world.change_claim(&ann, id, price), InvalidField::ResalePrice);
    let both = ClaimPatch { sold_at: Some(Some(given)), ..set(ClaimStatus::Caught) };
    assert_invalid(world.change_claim(&ann, id, both), InvalidField::SoldAt);
    assert_invalid(
        world.add_claim(&ann, NewClaim { sold_at: Some(given), ..attempted("b.com") }),
        InvalidField::SoldAt,
    );

    let world = world.reopened();
    assert_eq!(world.store.user_data(&ann).claim(id), Some(&left));
}

#[test]
fn texts_have_limits() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    for registrar in [String::new(), " ".into(), "a".repeat(201), "a\nb".into(), "a\0".into()] {
        let claim = NewClaim { registrar: Some(registrar), ..attempted("a.com") };
        assert_invalid(world.add_claim(&ann, claim), InvalidField::Registrar);
    }
    for notes in ["a".repeat(10_001), "a\u{7}".into()] {
        let claim = NewClaim { user_notes: Some(notes), ..attempted("a.com") };
        assert_invalid(world.add_claim(&ann, claim), InvalidField::UserNotes);
    }
    let longest = NewClaim {
        registrar: Some("é".repeat(200)),
        user_notes: Some("é\n".repeat(5_000)),
        ..attempted("a.com")
    };
    world.add_claim(&ann, longest).expect("fits");
    let blank = NewClaim { user_notes: Some(String::new()), ..attempted("a.com") };
    let id = world.add_claim(&ann, blank).expect("fits");
    assert_eq!(world.store.user_data(&ann).claim(id).expect("there").user_notes, None);
    for text in [String::new(), "\t".into(), "a".repeat(101), "a\nb".into()] {
        assert_invalid(world.add_rule(&ann, by_email(&text)), InvalidField::RuleName);
    }
    let owned = world.store.user_data(&ann);
    assert_eq!(
        (owned.claim_count(), owned.rule_count()),
        (2, 0),
        "no other claim or rule was added"
    );
}

#[test]
fn claims_keep_the_name_of_the_rule_that_led_to_them() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let bob = world.account("bob@example.com", Plan::Pro);
    let rule = world.add_rule(&ann, by_email("short")).expect("added");
    let of_rule = || NewClaim { alert_rule: Some(rule), ..attempted("a.com") };
    assert_invalid(world.add_claim(&bob, of_rule()), InvalidField::AlertRule);
    let id = world.add_claim(&ann, of_rule()).expect("added");
    let renamed = RulePatch { name: Some("long".into()), ..RulePatch::default() };
    assert_eq!(world.change_rule(&ann, rule, renamed).expect("changed").rule.name, "long");
    world.wait(world.store.remove_rule(&ann, rule)).expect("removed");
    let owned = world.store.user_data(&ann);
    let attribution = owned.claim(id).and_then(|claim| claim.alert_rule.as_deref().cloned());
    assert_eq!(attribution, Some(Attribution { id: rule, name: "short".into() }));
    assert_invalid(world.add_claim(&ann, of_rule()), InvalidField::AlertRule);
}

#[test]
fn other_accounts_resources_are_not_found() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let bob = world.account("bob@example.com", Plan::Pro);
    let claim = world.add_claim(&ann, attempted("a.com")).expect("added");
    let rule = world.add_rule(&ann, by_email("short")).expect("added");
    world.add_watch(&ann, watch("a.com", true)).expect("added");
    let before = world.store.state_digest();
    assert_not_found(world.change_claim(&bob, claim, ClaimPatch::default()));
    assert_not_found(world.wait(world.store.remove_claim(&bob, claim)));
    assert_not_found(world.change_rule(&bob, rule, RulePatch::default()));
    assert_not_found(world.wait(world.store.remove_rule(&bob, rule)));
    assert_not_found(world.wait(world.store.remove_watch(&bob, &name("a.com"))));
    let owned = world.store.user_data(&bob);
    assert_eq!((owned.claim(claim), owned.rule(rule)), (None, None));
    assert_eq!(world.store.state_digest(), before);
    world.wait(world.store.remove_claim(&ann, claim)).expect("removed");
    assert_not_found(world.wait(world.store.remove_claim(&ann, claim)));
}

#[test]
fn external_names_consume_quota_and_release_it() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Core);
    for at in 0..10 {
        let outcome = world.add_watch(&ann, watch(&format!("ext{at}.com"), false));
        assert_eq!(outcome.expect("within the plan"), Outcome::Added);
    }
    assert_plan_limit(world.add_watch(&ann, watch("y.com", false)), Some(10));
    assert_eq!(
        world.add_watch(&ann, watch("z.com", true)).expect("consumes no quota"),
        Outcome::Added
    );
    let there = world.add_watch(&ann, watch("ext3.com", false)).expect("consumes no quota");
    assert_eq!(there, Outcome::AlreadyThere);

    // The list holds x0 and x1; names outside the list and names without a price do not count.
    let arrived = ["ext1.com", "ext0.com", "ext0.com", "z.com", "other.com"].map(name).to_vec();
    let with = |text, arrived| Watch { arrived, ..watch(text, false) };
    world.add_watch(&ann, with("y.com", arrived.clone())).expect("quota of one name was released");
    world.add_watch(&ann, watch("y2.com", false)).expect("quota of another name was released");
    assert_plan_limit(world.add_watch(&ann, with("y3.com", arrived)), Some(10));
    let owned = world.store.user_data(&ann);
    assert_eq!(owned.external_names().count(), 10);
    assert_eq!(owned.watch(&name("ext0.com")).map(|entry| entry.external), Some(false));
    world.wait(world.store.remove_watch(&ann, &name("ext5.com"))).expect("removed");
    world.add_watch(&ann, watch("y3.com", false)).expect("the removed name released its quota");

    // If the name of an existing entry has arrived in the corpus, the entry is returned in its new
    // state.
    let arrived = Watch { arrived: vec![name("ext6.com")], ..watch("ext6.com", true) };
    assert_eq!(world.add_watch(&ann, arrived).expect("there"), Outcome::AlreadyThere);
    let world = world.reopened();
    let ann = world.store.user_data(&ann);
    assert_eq!(ann.watch(&name("ext6.com")).map(|entry| entry.external), Some(false));
    assert_eq!(ann.external_names().count(), 9);
}

#[test]
fn plans_gate_channels_and_cap_active_rules() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    let hook = webhook("https://hooks.example.com/x");
    let telegram = Channel::Telegram { chat_id: "@somewhere".into() };
    for channel in [hook.clone(), telegram] {
        let rule = NewRule { channels: vec![Channel::Email, channel], ..by_email("x") };
        assert_plan_limit(world.add_rule(&ann, rule), None);
    }
    let first = world.add_rule(&ann, by_email("first")).expect("the plan has one rule");
    assert_plan_limit(world.add_rule(&ann, by_email("second")), Some(1));
    let stop = || RulePatch { active: Some(false), ..RulePatch::default() };
    let start = || RulePatch { active: Some(true), ..RulePatch::default() };
    world.change_rule(&ann, first, start()).expect("it was active before");
    world.change_rule(&ann, first, stop()).expect("stopped");
    let second = world.add_rule(&ann, by_email("second")).expect("the paused rule does not count");
    assert_plan_limit(world.change_rule(&ann, first, start()), Some(1));

    world.store.set_plan(&email("ann@example.com"), Plan::Core).expect("set");
    let hooked = RulePatch { channels: Some(vec![hook]), ..start() };
    world.change_rule(&ann, first, hooked).expect("the current plan applies");
    world.store.set_plan(&email("ann@example.com"), Plan::Free).expect("set");
    let renamed = RulePatch { name: Some("old".into()), ..RulePatch::default() };
    world.change_rule(&ann, first, renamed).expect("an existing rule may stay");
    world.change_rule(&ann, first, stop()).expect("stopped");
    world.change_rule(&ann, second, stop()).expect("stopped");
    assert_plan_limit(world.change_rule(&ann, first, start()), None);
}

#[test]
fn invalid_rules_name_the_field() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Api);
    let with = |channels| NewRule { channels, ..by_email("x") };
    let hooks = |count| (0..count).map(|at| webhook(&format!("https://h{at}.example.com/")));
    assert_invalid(world.add_rule(&ann, with(vec![])), InvalidField::Channels);
    assert_invalid(world.add_rule(&ann, with(hooks(6).collect())), InvalidField::Channels);
    let twice = vec![Channel::Email, Channel::Email];
    assert_invalid(world.add_rule(&ann, with(twice)), InvalidField::Channel(1));
    for chat_id in ["", "-", "abc", "@abc", "12 3", "@a-b-c", "12345678901234567890"] {
        let channels = vec![Channel::Email, Channel::Telegram { chat_id: chat_id.into() }];
        assert_invalid(world.add_rule(&ann, with(channels)), InvalidField::ChannelChatId(1));
    }
    assert_eq!(world.store.user_data(&ann).rule_count(), 0);
    world.add_rule(&ann, with(hooks(5).collect())).expect("five are fine");
}

#[test]
fn webhooks_keep_their_secrets() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let (one, two) = (webhook("https://one.example.com/"), webhook("https://two.example.com/"));
    let rule = NewRule { channels: vec![Channel::Email, one.clone()], ..by_email("x") };
    let id = world.add_rule(&ann, rule).expect("added");
    let before = world.store.user_data(&ann).rule(id).expect("there").secrets.clone();
    let secret = before[0].secret.reveal();
    assert_eq!((before.len(), secret.len(), &secret[..6]), (1, 50, "whsec_"));
    let patch = RulePatch { channels: Some(vec![two, one.clone()]), ..RulePatch::default() };
    let changed = world.change_rule(&ann, id, patch.clone()).expect("changed");
    assert_eq!(changed.new_secrets.len(), 1);
    assert_eq!(changed.rule.secrets, [changed.new_secrets[0].clone(), before[0].clone()]);
    let again = world.change_rule(&ann, id, patch).expect("no change");
    assert_eq!(again, ChangedRule { new_secrets: Vec::new(), ..changed });
    let patch = RulePatch { channels: Some(vec![one]), ..RulePatch::default() };
    assert_eq!(world.change_rule(&ann, id, patch).expect("changed").rule.secrets, before);
}

#[test]
fn each_account_has_one_vote_per_name() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let bob = world.account("bob@example.com", Plan::Pro);
    let good = name("good.com");
    let vote = |world: &World, caller: &Caller, vote| {
        let feedback = world.wait(world.store.vote(caller, &good, vote)).expect("voted");
        (feedback.up, feedback.down)
    };
    assert_eq!(vote(&world, &ann, None), (0, 0), "no vote to withdraw");
    assert_eq!(vote(&world, &ann, Some(Vote::Up)), (1, 0));
    assert_eq!(vote(&world, &ann, Some(Vote::Up)), (1, 0));
    assert_eq!(vote(&world, &bob, Some(Vote::Up)), (2, 0));
    assert_eq!(vote(&world, &ann, Some(Vote::Down)), (1, 1));
    assert_eq!(world.store.own_vote(&ann, &good), Some(Vote::Down));
    let world = world.reopened();
    assert_eq!(vote(&world, &bob, None), (0, 1));
    assert_eq!(vote(&world, &ann, None), (0, 0));
    assert_eq!(world.store.feedback(&good), Feedback::default());
    assert_eq!(world.store.counts().votes, 0);
}

#[test]
fn an_idempotency_key_replays_its_response_for_24_hours() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let bob = world.account("bob@example.com", Plan::Pro);
    let post = |world: &World, caller: &Caller, post: Post| {
        world.add_claim_by(caller, attempted("a.com"), post)
    };
    let first = post(&world, &ann, keyed(noon(), "k", 1)).expect("added");
    assert!(!first.is_replay());
    let again = post(&world, &ann, keyed(noon(), "k", 1)).expect("answered");
    assert_eq!(again, Answered { value: None, ..first.clone() });
    let conflict = post(&world, &ann, keyed(noon(), "k", 2));
    assert!(matches!(conflict, Err(WriteError::IdempotencyConflict)), "{conflict:?}");
    assert!(!post(&world, &ann, keyed(noon(), "K", 1)).expect("another key").is_replay());
    assert!(!post(&world, &bob, keyed(noon(), "k", 1)).expect("another account").is_replay());
    assert!(!post(&world, &ann, plain(noon())).expect("no key").is_replay());

    let world = world.reopened();
    let last = noon() + Duration::days(1) - Duration::milliseconds(1);
    assert_eq!(post(&world, &ann, keyed(last, "k", 1)).expect("still kept").receipt, first.receipt);
    assert_eq!(world.store.user_data(&ann).responses.iter().count(), 2);
    let over = noon() + Duration::days(1);
    let anew = post(&world, &ann, keyed(over, "k", 2)).expect("expired");
    assert!(!anew.is_replay() && anew.receipt != first.receipt);
    let owned = world.store.user_data(&ann);
    assert_eq!(
        (owned.claim_count(), owned.responses.iter().count()),
        (4, 1),
        "the expired ones were dropped"
    );
    world.reopened();
}

#[test]
fn only_successful_responses_are_kept() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Free);
    let add = |watch: Watch, key: &str| {
        let reply = |(_, outcome): &(WatchEntry, Outcome)| Receipt {
            code: if *outcome == Outcome::Added { 201 } else { 200 },
            bytes: format!("{outcome:?}").into_bytes(),
        };
        let post = keyed(noon(), key, 1);
        world.wait(async { world.store.add_watch(&ann, watch, post).await?.respond(reply).await })
    };
    assert_plan_limit(add(watch("x.com", false), "k"), Some(0));
    assert_eq!(add(watch("x.com", true), "k").expect("a refusal is not kept").receipt.code, 201);
    let there = add(watch("x.com", true), "l").expect("there");
    assert_eq!((there.receipt.code, there.is_replay()), (200, false));
    world.wait(world.store.remove_watch(&ann, &name("x.com"))).expect("removed");
    let replayed = add(watch("x.com", true), "l").expect("kept");
    assert_eq!((replayed.receipt.code, replayed.is_replay()), (200, true));
    assert!(
        world.store.user_data(&ann).watch(&name("x.com")).is_none(),
        "the replay added nothing"
    );
}

#[test]
fn idempotency_keys_are_printable() {
    for text in ["", "a\n", "é", &"a".repeat(256)] {
        assert!(IdempotencyKey::parse(text).is_err(), "{text:?}");
    }
    for text in ["a", " ~", &"a".repeat(255)] {
        assert!(IdempotencyKey::parse(text).is_ok(), "{text:?}");
    }
}

/// Runs `write` in 64 concurrent tasks and returns how many succeeded.
fn race<F>(world: &World, write: impl Fn(usize) -> F) -> usize
where
    F: Future<Output = bool> + Send + 'static,
{
    let start = Arc::new(tokio::sync::Barrier::new(64));
    let tasks: Vec<_> = (0..64)
        .map(|at| {
            let (start, write) = (Arc::clone(&start), write(at));
            world.runtime.spawn(async move {
                start.wait().await;
                write.await
            })
        })
        .collect();
    world.wait(async {
        let mut through = 0;
        for task in tasks {
            through += usize::from(task.await.expect("no panic"));
        }
        through
    })
}

#[test]
fn limits_hold_under_64_concurrent_writes() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Core);
    let names = race(&world, |at| {
        let (store, ann) = (world.store.clone(), ann.clone());
        let watch = watch(&format!("ext{at}.com"), false);
        async move { add_watch(store, ann, watch).await.is_ok() }
    });
    let rules = race(&world, |at| {
        let (store, ann, rule) = (world.store.clone(), ann.clone(), by_email(&at.to_string()));
        async move { add_rule(store, ann, rule).await.is_ok() }
    });
    let claims = race(&world, |_| {
        let (store, ann) = (world.store.clone(), ann.clone());
        async move {
            let answered = add_claim(store, ann, attempted("a.com"), keyed(noon(), "one", 1)).await;
            !answered.expect("added or replayed").is_replay()
        }
    });
    assert_eq!((names, rules, claims), (10, 5, 1));
    let owned = world.store.user_data(&ann);
    assert_eq!(owned.external_names().count(), 10);
    assert_eq!((owned.rule_count(), owned.claim_count()), (5, 1));
    let votes = race(&world, |at| {
        let (store, ann) = (world.store.clone(), ann.clone());
        let vote = if at % 2 == 0 { Vote::Up } else { Vote::Down };
        async move { store.vote(&ann, &name("a.com"), Some(vote)).await.is_ok() }
    });
    let feedback = world.store.feedback(&name("a.com"));
    assert_eq!((votes, feedback.up + feedback.down), (64, 1));
    world.reopened();
}

#[test]
fn limits_of_every_plan_hold_under_races() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    fill(&world, &ann, |at| {
        let claim = decided_claim(&format!("c{at}.com"), at + 1);
        (at < u64::from(CLAIMS_MAX) - 10).then_some(claim)
    });
    fill(&world, &ann, |at| {
        let name = name(&format!("w{at}.com"));
        let added_at = UnixMs::from_instant(noon());
        let entry = WatchEntry { name, added_at, external: false, registered_again: false };
        let watch = WatchRow { entry, details: WatchDetails::default(), alerts: None };
        let event = event::Event::WatchPut { account: ann.account, watch: Box::new(watch) };
        (at < u64::from(WATCHES_MAX) - 10).then_some(event)
    });
    let claims = race(&world, |_| {
        let (store, ann) = (world.store.clone(), ann.clone());
        async move { add_claim(store, ann, attempted("a.com"), plain(noon())).await.is_ok() }
    });
    let watches = race(&world, |at| {
        let (store, ann) = (world.store.clone(), ann.clone());
        let watch = watch(&format!("ext{at}.com"), true);
        async move { add_watch(store, ann, watch).await.is_ok() }
    });
    assert_eq!((claims, watches), (10, 10));
    let refused = world.add_claim(&ann, attempted("a.com"));
    assert!(matches!(refused, Err(WriteError::TooMany { limit: CLAIMS_MAX, .. })), "{refused:?}");
    let refused = world.add_watch(&ann, watch("y.com", true));
    assert!(matches!(refused, Err(WriteError::TooMany { limit: WATCHES_MAX, .. })), "{refused:?}");
    let there = world.add_watch(&ann, watch("w0.com", true));
    assert_eq!(there.expect("consumes no quota"), Outcome::AlreadyThere);
    for at in 0..RULES_MAX {
        let id = world.add_rule(&ann, by_email(&at.to_string())).expect("added");
        let stop = RulePatch { active: Some(false), ..RulePatch::default() };
        world.change_rule(&ann, id, stop).expect("stopped");
    }
    let refused = world.add_rule(&ann, by_email("one more"));
    assert!(matches!(refused, Err(WriteError::TooMany { limit: RULES_MAX, .. })), "{refused:?}");
    world.reopened();
}

fn decided_claim(domain: &str, id: u64) -> event::Event {
    let at = UnixMs::from_instant(noon());
    let claim = Claim {
        id: ClaimId::new(id).expect("an id"),
        domain: name(domain),
        reported_at: at,
        updated_at: at,
        ..fixtures::claim()
    };
    let account = crate::vocab::ids::AccountId(1);
    event::Event::ClaimPut { account, claim: Box::new(claim) }
}

/// Writes events, 1,000 per record.
fn fill(world: &World, caller: &Caller, event: impl Fn(u64) -> Option<event::Event>) {
    let mut events = (0..).map_while(event).peekable();
    while events.peek().is_some() {
        let some: Vec<_> = events.by_ref().take(1_000).collect();
        let decided = |_: &data::account::Account, _: &_| Ok(Decided::new(some, ()));
        world.wait(world.store.write(caller, decided)).expect("written");
    }
}

#[test]
fn a_write_completes_if_its_caller_is_dropped() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Core);
    for at in 0..10 {
        let watch = watch(&format!("ext{at}.com"), false);
        let mut adding = Box::pin(add_watch(world.store.clone(), ann.clone(), watch));
        // The write is dropped after its first poll, which has submitted it.
        world.wait(async { drop(futures_util::poll!(adding.as_mut())) });
        drop(adding);
        // This waits for the account's lock, which is free once the previous command is applied.
        let next = world.wait(world.store.remove_watch(&ann, &name("no.com")));
        assert_not_found(next);
        assert!(world.store.user_data(&ann).watch(&name(&format!("ext{at}.com"))).is_some());
    }
    assert_plan_limit(world.add_watch(&ann, watch("y.com", false)), Some(10));
    world.reopened();
}

#[test]
fn refusals_consume_no_account_ids() {
    let world = World::new();
    world.account("ann@example.com", Plan::Free);
    for _ in 0..3 {
        let refused = world.store.add_account(&email("ann@example.com"), Plan::Free, None);
        assert!(matches!(refused, Err(CommandError::Refused(_))), "{refused:?}");
    }
    let next = world.store.add_account(&email("bob@example.com"), Plan::Free, None);
    assert_eq!(next.expect("added").0, 2);
}

#[test]
fn readers_keep_their_snapshot() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let id = world.add_claim(&ann, attempted("a.com")).expect("added");
    let moment = world.store.user_data(&ann);
    world.wait(world.store.remove_claim(&ann, id)).expect("removed");
    world.add_claim(&ann, attempted("b.com")).expect("added");
    let domains = |owned: &UserData| -> Vec<String> {
        owned.claims().map(|claim| claim.domain.to_string()).collect()
    };
    assert_eq!(domains(&moment), ["a.com"]);
    assert_eq!(domains(&world.store.user_data(&ann)), ["b.com"]);
}

#[test]
fn claims_come_newest_first_then_by_id() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    for (hours, domain) in [(1, "b.com"), (0, "a.com"), (1, "c.com"), (2, "d.com")] {
        let post = plain(noon() + Duration::hours(hours));
        world.add_claim_by(&ann, attempted(domain), post).expect("added");
    }
    let owned = world.store.user_data(&ann);
    let order: Vec<_> = owned.claims().map(|claim| (claim.reported_at, claim.id)).collect();
    assert_eq!(order.len(), 4);
    assert!(order.is_sorted_by(|before, after| before > after), "{order:?}");
}

#[test]
fn amounts_keep_the_currency_in_which_they_were_entered() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Api);
    let commission = Percent::from_text("12.5").ok().map(Commission::Percent);
    let sold_venue = Some("Sedo".to_owned());
    let unsold = NewClaim { commission, ..attempted("a.com") };
    assert_invalid(world.add_claim(&ann, unsold), InvalidField::Commission);
    let unsold = NewClaim { sold_venue: sold_venue.clone(), ..attempted("a.com") };
    assert_invalid(world.add_claim(&ann, unsold), InvalidField::SoldVenue);
    let new = NewClaim {
        status: ClaimStatus::Sold,
        bid: euros(4_200),
        acquired_price: Usd::from_cents(1_100).map(Amount::from),
        resale_price: euros(99_999),
        commission,
        sold_venue,
        ..attempted("a.com")
    };
    let id = world.add_claim(&ann, new).expect("added");
    let claim = world.store.user_data(&ann).claim(id).expect("a claim").clone();
    assert_eq!((claim.bid, claim.amount(Price::Bid)), (None, euros(4_200)));
    assert_eq!(claim.acquired_price, Usd::from_cents(1_100));
    assert_eq!(claim.commission(), euros(12_500));

    // Another currency replaces the amount, and leaving `sold` removes the terms of the sale.
    let bid = Usd::from_cents(5_000);
    let patch = ClaimPatch {
        bid: Some(bid.map(Amount::from)),
        acquired_price: Some(euros(1_000)),
        ..ClaimPatch::default()
    };
    let changed = world.change_claim(&ann, claim.id, patch).expect("changed");
    assert_eq!((changed.bid, changed.amount(Price::Bid)), (bid, bid.map(Amount::from)));
    assert_eq!((changed.acquired_price, changed.amount(Price::Acquired)), (None, euros(1_000)));
    assert_eq!(changed.sale_terms(), (commission, Some("Sedo")));
    let caught = ClaimPatch { status: Some(ClaimStatus::Caught), ..ClaimPatch::default() };
    let left = world.change_claim(&ann, claim.id, caught).expect("changed");
    assert_eq!((left.sale_terms(), left.commission()), ((None, None), None));
    assert_eq!(left.amount(Price::Resale), None);
    let clear = ClaimPatch { acquired_price: Some(None), ..ClaimPatch::default() };
    assert_eq!(world.change_claim(&ann, claim.id, clear).expect("changed").terms, None);
}

/// Adds two accounts with some data of every kind.
fn populate(world: &World) -> (Caller, Caller) {
    let ann = world.account("ann@example.com", Plan::Api);
    let bob = world.account("bob@example.com", Plan::Core);
    for (at, caller) in [&ann, &bob, &ann, &ann].into_iter().enumerate() {
        let channels = vec![Channel::Email, webhook("https://hooks.example.com/x")];
        let rule = world.add_rule(caller, NewRule { channels, ..by_email("x") }).expect("added");
        let claim = NewClaim {
            user_notes: Some("noted".repeat(at)),
            alert_rule: Some(rule),
            bid: euros(4_200),
            ..attempted(&format!("claim{at}.com"))
        };
        let post = keyed(noon(), &format!("key {at}"), 1);
        world.add_claim_by(caller, claim, post).expect("added");
        world.add_watch(caller, watch(&format!("ext{at}.com"), at % 2 == 0)).expect("added");
        world.wait(world.store.vote(caller, &name("good.com"), Some(Vote::Up))).expect("voted");
        world.store.charge_request(caller, noon());
    }
    let rates = vec![(eur(), Rate::from_text("1.0835").expect("a rate"))];
    let money = MoneySettings { rates, ..MoneySettings::default() };
    world.wait(world.store.set_money(&ann, money)).expect("saved");
    world.store.disable(&email("bob@example.com")).expect("disabled");
    (ann, bob)
}

#[test]
fn a_snapshot_holds_everything_under_the_digest_of_the_state() {
    let world = World::new();
    world.store.snapshot_now().expect("an empty store has a snapshot too");
    let world = world.reopened();
    let (ann, _) = populate(&world);
    let before = (*world.store.user_data(&ann)).clone();
    let report = world.store.snapshot_now().expect("written");
    assert_eq!(report.state_digest, world.store.state_digest());
    let world = world.reopened();
    assert_eq!(world.store.recovery().snapshot.as_ref().map(|it| it.seq), Some(report.seq));
    assert_eq!(*world.store.user_data(&ann), before, "from the snapshot");
    world.add_claim(&ann, attempted("late.com")).expect("added");
    let world = world.reopened();
    assert_eq!(world.store.user_data(&ann).claim_count(), 4, "from the snapshot and the log");
    assert_eq!(world.store.feedback(&name("good.com")), Feedback { up: 2, down: 0 });
    assert!(world.store.authenticate("ddx_").is_none());
    let counts =
        Counts { accounts: 2, claims: 5, watches: 4, rules: 4, votes: 2, ..Counts::default() };
    assert_eq!(world.store.counts(), counts);
}

#[test]
fn a_backup_restores_to_the_same_state() {
    let world = World::new();
    populate(&world);
    let file = world.dir.path().join("backup");
    let report = world.store.backup(&file).expect("written");
    assert!(world.store.backup(&file).is_err(), "the file exists");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let disk = crate::journal::fs::Disk;
    crate::journal::restore(&disk, &file, &elsewhere.path().join("journal")).expect("restored");
    let restored = open(elsewhere.path());
    assert_eq!(restored.state_digest(), report.state_digest);
    assert_eq!(restored.state_digest(), world.store.state_digest());
    assert_eq!(restored.counts(), world.store.counts());
}

#[test]
fn snapshots_are_written_as_the_log_grows() {
    let dir = tempfile::tempdir().expect("a folder");
    let clock = Clock::pinned_to("2026-11-21".parse().expect("a day"));
    let options = || StoreOptions {
        segment_bytes: 4_096,
        snapshot_after_bytes: 2_000,
        ..StoreOptions::new(dir.path(), Plans::default(), clock)
    };
    let store = Store::open_with(options()).expect("opened");
    // The thread runs asynchronously, so this writes until the first snapshot exists.
    let is_snapshot = |path: &std::path::Path| path.extension().is_some_and(|it| it == "snap");
    let has_one = || {
        let files = std::fs::read_dir(dir.path().join("journal")).expect("a folder");
        files.map(|file| file.expect("an entry").path()).any(|path| is_snapshot(&path))
    };
    let mut at = 0;
    while !has_one() {
        store.add_account(&email(&format!("a{at}@example.com")), Plan::Free, None).expect("added");
        at += 1;
        assert!(at < 50_000, "no snapshot was made");
    }
    let digest = store.state_digest();
    // Closing waits for a snapshot that is being written, or abandons it. The state is complete in
    // either case.
    store.close().expect("closed");
    let store = Store::open_with(options()).expect("opened");
    assert_eq!(store.state_digest(), digest);
    let snapshot = store.recovery().snapshot.clone().expect("a snapshot was written");
    assert!(snapshot.seq > 10, "{snapshot:?}");
}

/// The archive of an account, where no test reads it.
pub fn no_archive(_: &Store, _: &AccountCopy, _: DateTime<Utc>) -> std::io::Result<Vec<u8>> {
    Ok(Vec::new())
}

#[test]
fn an_operator_can_inspect_and_back_up_a_store_in_use() {
    use super::admin::{AdminCommand, AdminReply, execute};
    let world = World::new();
    populate(&world);
    let path = world.dir.path().join("backup");
    let reply = execute(&world.store, AdminCommand::Backup { path: path.clone() }, no_archive);
    let AdminReply::Saved(saved) = reply else { panic!("{reply:?}") };
    assert_eq!((saved.path, saved.counts), (path, world.store.counts()));
    assert_eq!(saved.state_digest, hex::encode(world.store.state_digest()));
    let reply = execute(&world.store, AdminCommand::Snapshot, no_archive);
    let AdminReply::Saved(snapshot) = reply else { panic!("{reply:?}") };
    let reply = execute(&world.store, AdminCommand::InspectJournal, no_archive);
    let AdminReply::Journal(facts) = reply else { panic!("{reply:?}") };
    assert_eq!(facts.snapshots.len(), 1);
    assert_eq!(facts.snapshots[0].state_digest.as_ref(), Some(&snapshot.state_digest));
    assert_eq!((facts.state_digest, facts.counts), (snapshot.state_digest, snapshot.counts));
    let relative = AdminCommand::Backup { path: "backup".into() };
    assert!(matches!(execute(&world.store, relative, no_archive), AdminReply::Refused { .. }));
}
